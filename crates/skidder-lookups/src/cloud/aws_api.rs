//! The tag of an EC2 instance with the name of its cluster, from the API of EC2: for instances that do not show their tags.
//!
//! Signed with the credentials of the environment, else with those of the role of the instance, by Signature Version 4
//! (<https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html>); the question is
//! `DescribeTags` (<https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeTags.html>).

use super::providers::{AskError, CloudClient};
use skidder_aws::{Credentials, EMPTY_DIGEST, Request, Scope, authorization, time_text};
use skidder_config::Secret;
use skidder_net::cloud::text_of;
use skidder_net::{HttpClient, HttpRequest, percent_encoded};

/// The tag that nodes of EKS have.
pub(super) const CLUSTER_NAME: &str = "eks:cluster-name";

/// Where the instance shows the credentials of its role.
const ROLES: &str = "/latest/meta-data/iam/security-credentials/";

/// The name of the cluster; nothing if the instance has no such tag.
pub(super) async fn cluster_name(
    client: &CloudClient,
    metadata: &HttpClient,
    headers: &[(&str, &str)],
    (region, instance): (&str, &str),
) -> Result<Option<String>, AskError> {
    let credentials = match Credentials::of_environment(|name| std::env::var(name).ok()) {
        Some(credentials) => credentials,
        None => of_role(metadata, headers).await?,
    };
    let host = format!("ec2.{region}.amazonaws.com");
    let server = client.api(&host)?;
    let query = query(&[
        ("Action", "DescribeTags"),
        ("Filter.1.Name", "resource-id"),
        ("Filter.1.Value.1", instance),
        ("Filter.2.Name", "key"),
        ("Filter.2.Value.1", CLUSTER_NAME),
        ("Version", "2016-11-15"),
    ]);
    let time = time_text(client.clock.wall());
    let scope = Scope { time: &time, region, service: "ec2" };
    let session = credentials.session.as_ref().map(Secret::reveal);
    let mut signed = vec![("host", server.host()), ("x-amz-date", &time)];
    signed.extend(session.map(|session| ("x-amz-security-token", session)));
    let request =
        Request { method: "GET", path: "/", query: &query, headers: &signed, body: EMPTY_DIGEST };
    let authorization = authorization(&credentials, scope, &request);
    let mut all = vec![("authorization", authorization.as_str())];
    all.extend_from_slice(&signed[1..]);
    let answer = server.ask(HttpRequest::get(&format!("/?{query}")).headers(&all)).await?;
    Ok(text_of(&answer, "value"))
}

/// Those that the instance has by its role.
async fn of_role(metadata: &HttpClient, headers: &[(&str, &str)]) -> Result<Credentials, AskError> {
    let roles = metadata.ask(HttpRequest::get(ROLES).headers(headers)).await?;
    let roles = String::from_utf8_lossy(&roles);
    let role = roles.lines().next().unwrap_or_default().trim();
    let path = format!("{ROLES}{}", percent_encoded(role));
    let role = metadata.json(HttpRequest::get(&path).headers(headers)).await?;
    let text = |name: &str| role[name].as_str().unwrap_or_default().to_owned();
    let session = Some(text("Token")).filter(|token| !token.is_empty());
    let credentials = Credentials {
        id: text("AccessKeyId"),
        secret: Secret::new(text("SecretAccessKey")),
        session: session.map(Secret::new),
    };
    if credentials.id.is_empty() || credentials.secret.is_empty() {
        return Err(AskError::NoCredentials);
    }
    Ok(credentials)
}

/// Parameters in the order of their names, as they are signed.
fn query(parameters: &[(&str, &str)]) -> String {
    let pairs: Vec<String> = parameters
        .iter()
        .map(|(name, value)| format!("{name}={}", percent_encoded(value)))
        .collect();
    pairs.join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_value_of_an_answer_is_the_name() {
        let item = |value: &str| {
            format!(
                "<?xml version=\"1.0\"?><DescribeTagsResponse><tagSet><item><key>eks:cluster-name</key>\
                 <value>{value}</value></item></tagSet></DescribeTagsResponse>"
            )
        };
        let name = |answer: &str| text_of(answer.as_bytes(), "value");
        assert_eq!(name(&item("blue &amp; green")).as_deref(), Some("blue & green"));
        assert_eq!(name(&item("")), None);
        assert_eq!(name("<DescribeTagsResponse><tagSet/></DescribeTagsResponse>"), None);
    }
}
