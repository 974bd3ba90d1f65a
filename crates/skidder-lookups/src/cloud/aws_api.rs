//! The tag of an EC2 instance with the name of its cluster, from the API of EC2: for instances that do not show their tags.
//!
//! Signed with the credentials of the environment, else with those of the role of the instance, by Signature Version 4
//! (<https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html>); the question is
//! `DescribeTags` (<https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeTags.html>).

use super::providers::{AskError, Asker};
use crate::http::{Ask, Server, escaped};
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use quick_xml::events::Event;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// The tag that nodes of EKS have.
pub(super) const CLUSTER_NAME: &str = "eks:cluster-name";

/// Where the instance shows the credentials of its role.
const ROLES: &str = "/latest/meta-data/iam/security-credentials/";

/// What a request is signed with.
#[derive(Clone, PartialEq, Eq)]
struct Credentials {
    id: String,
    secret: String,
    /// Empty for those that do not expire.
    session: String,
}

/// Where and when a request is made.
#[derive(Clone, Copy, Debug)]
struct Scope<'a> {
    /// Year to second, as `20150830T123600Z`.
    time: &'a str,
    region: &'a str,
    service: &'a str,
}

/// The name of the cluster; nothing if the instance has no such tag.
pub(super) async fn cluster_name(
    asker: &Asker,
    metadata: &Server,
    headers: &[(&str, &str)],
    (region, instance): (&str, &str),
) -> Result<Option<String>, AskError> {
    let credentials = match of_environment(|name| std::env::var(name).ok()) {
        Some(credentials) => credentials,
        None => of_role(metadata, headers).await?,
    };
    let host = format!("ec2.{region}.amazonaws.com");
    let server = asker.api(&host)?;
    let query = query(&[
        ("Action", "DescribeTags"),
        ("Filter.1.Name", "resource-id"),
        ("Filter.1.Value.1", instance),
        ("Filter.2.Name", "key"),
        ("Filter.2.Value.1", CLUSTER_NAME),
        ("Version", "2016-11-15"),
    ]);
    let time = Timestamp::from_nanosecond(i128::from(asker.clock.wall().0)).unwrap_or_default();
    let time = time.strftime("%Y%m%dT%H%M%SZ").to_string();
    let scope = Scope { time: &time, region, service: "ec2" };
    let signed = [
        ("host", server.host()),
        ("x-amz-date", &time),
        ("x-amz-security-token", credentials.session.as_str()),
    ];
    let signed = if credentials.session.is_empty() { &signed[..2] } else { &signed[..] };
    let authorization = authorization(&credentials, scope, &query, signed);
    let mut all = vec![("authorization", authorization.as_str())];
    all.extend_from_slice(&signed[1..]);
    let answer = server.ask(Ask::get(&format!("/?{query}")).headers(&all)).await?;
    Ok(first_value(&answer))
}

/// Those of the usual variables.
fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Option<Credentials> {
    let set = |name: &str| variable(name).filter(|text| !text.is_empty());
    Some(Credentials {
        id: set("AWS_ACCESS_KEY_ID")?,
        secret: set("AWS_SECRET_ACCESS_KEY")?,
        session: set("AWS_SESSION_TOKEN").unwrap_or_default(),
    })
}

/// Those that the instance has by its role.
async fn of_role(metadata: &Server, headers: &[(&str, &str)]) -> Result<Credentials, AskError> {
    let roles = metadata.ask(Ask::get(ROLES).headers(headers)).await?;
    let roles = String::from_utf8_lossy(&roles);
    let role = roles.lines().next().unwrap_or_default().trim();
    let path = format!("{ROLES}{}", escaped(role));
    let role = metadata.json(Ask::get(&path).headers(headers)).await?;
    let text = |name: &str| role[name].as_str().unwrap_or_default().to_owned();
    let credentials = Credentials {
        id: text("AccessKeyId"),
        secret: text("SecretAccessKey"),
        session: text("Token"),
    };
    if credentials.id.is_empty() || credentials.secret.is_empty() {
        return Err(AskError::NoCredentials);
    }
    Ok(credentials)
}

/// Parameters in the order of their names, as they are signed.
fn query(parameters: &[(&str, &str)]) -> String {
    let pairs: Vec<String> =
        parameters.iter().map(|(name, value)| format!("{name}={}", escaped(value))).collect();
    pairs.join("&")
}

/// The header `authorization` of a GET of `/` without a body. `headers` are those that are signed, in the order of their names.
fn authorization(
    credentials: &Credentials,
    scope: Scope<'_>,
    query: &str,
    headers: &[(&str, &str)],
) -> String {
    let Scope { time, region, service } = scope;
    let day = time.get(..8).unwrap_or_default();
    let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    let mut request = format!("GET\n/\n{query}\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}:{value}\n"));
    }
    request.push_str(&format!("\n{names}\n{}", hex(&Sha256::digest(b""))));
    let place = format!("{day}/{region}/{service}/aws4_request");
    let digest = hex(&Sha256::digest(request));
    let text = format!("AWS4-HMAC-SHA256\n{time}\n{place}\n{digest}");
    let start = format!("AWS4{}", credentials.secret).into_bytes();
    let key = [day, region, service, "aws4_request"]
        .iter()
        .fold(start, |key, part| signed(&key, part.as_bytes()));
    let signature = hex(&signed(&key, text.as_bytes()));
    let id = &credentials.id;
    format!(
        "AWS4-HMAC-SHA256 Credential={id}/{place}, SignedHeaders={names}, Signature={signature}"
    )
}

fn signed(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut code = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length");
    code.update(text);
    code.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a text cannot fail.
        write!(text, "{byte:02x}").unwrap_or_default();
        text
    })
}

/// The text of the first element `value` of an answer.
fn first_value(answer: &[u8]) -> Option<String> {
    let mut reader = quick_xml::Reader::from_reader(answer);
    let mut inside = false;
    let mut value = String::new();
    loop {
        match reader.read_event().ok()? {
            Event::Start(tag) => inside = tag.local_name().as_ref() == "value",
            Event::Text(text) if inside => value.push_str(&text),
            Event::GeneralRef(name) if inside => {
                value.push_str(quick_xml::escape::resolve_predefined_entity(&name)?);
            }
            Event::End(_) if inside => return Some(value).filter(|value| !value.is_empty()),
            Event::Eof => return None,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first of Amazon's own examples of signatures (`get-vanilla`).
    #[test]
    fn requests_are_signed_as_amazon_does() {
        let credentials = Credentials {
            id: "AKIDEXAMPLE".to_owned(),
            secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned(),
            session: String::new(),
        };
        let time = "20150830T123600Z";
        let scope = Scope { time, region: "us-east-1", service: "service" };
        let headers = [("host", "example.amazonaws.com"), ("x-amz-date", time)];
        let expected = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
             SignedHeaders=host;x-amz-date, \
             Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31";
        assert_eq!(authorization(&credentials, scope, "", &headers), expected);
    }

    #[test]
    fn credentials_of_the_environment_need_both_parts() {
        let of = |all: &[(&str, &str)]| {
            let find = |name: &str| {
                let found = all.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            of_environment(find)
                .map(|found| format!("{} {} {}", found.id, found.secret, found.session))
        };
        let (id, secret) = (("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b"));
        assert_eq!(of(&[id]), None);
        assert_eq!(of(&[id, ("AWS_SECRET_ACCESS_KEY", "")]), None);
        assert_eq!(of(&[id, secret]).as_deref(), Some("a b "));
        assert_eq!(of(&[id, secret, ("AWS_SESSION_TOKEN", "c")]).as_deref(), Some("a b c"));
    }

    #[test]
    fn the_first_value_of_an_answer_is_the_name() {
        let item = |value: &str| {
            format!(
                "<?xml version=\"1.0\"?><DescribeTagsResponse><tagSet><item><key>eks:cluster-name</key>\
                 <value>{value}</value></item></tagSet></DescribeTagsResponse>"
            )
        };
        assert_eq!(
            first_value(item("blue &amp; green").as_bytes()).as_deref(),
            Some("blue & green")
        );
        assert_eq!(first_value(item("").as_bytes()), None);
        assert_eq!(first_value(b"<DescribeTagsResponse><tagSet/></DescribeTagsResponse>"), None);
        assert_eq!(first_value(b"<a><value>cut"), None);
    }
}
