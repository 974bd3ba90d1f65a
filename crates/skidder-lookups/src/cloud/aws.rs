//! EC2: a token (IMDSv2) if the machine gives one, its identity document, its tags.
//!
//! <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-metadata.html>

use super::answers::set;
use super::aws_api::{CLUSTER_NAME, cluster_name};
use super::providers::{AskError, CloudClient};
use http::Method;
use skidder_event::{Map, Value};
use skidder_net::{HttpClient, HttpError, HttpRequest, percent_encoded};

/// Life of the token in seconds. It is used at once and then forgotten.
const TOKEN_SECONDS: &str = "21600";
/// Tags that are requested, one by one. An instance can have 50.
const TAGS_MAX: usize = 50;

/// Requests the fields of `cloud`, `orchestrator` and `aws.tags`.
pub(super) async fn ask(client: &CloudClient, server: &HttpClient) -> Result<Map, AskError> {
    let token = token(server).await?;
    let header = [("X-aws-ec2-metadata-token", token.as_str())];
    let headers = if token.is_empty() { &[][..] } else { &header };
    let path = "/latest/dynamic/instance-identity/document";
    let document = server.json(HttpRequest::get(path).headers(headers)).await?;
    let mut fields = Map::new();
    for (name, field) in [
        ("instanceId", "cloud.instance.id"),
        ("instanceType", "cloud.machine.type"),
        ("region", "cloud.region"),
        ("availabilityZone", "cloud.availability_zone"),
        ("accountId", "cloud.account.id"),
        ("imageId", "cloud.image.id"),
    ] {
        set(&mut fields, field, document[name].as_str().unwrap_or_default());
    }
    set(&mut fields, "cloud.service.name", "EC2");
    let text = |name: &str| document[name].as_str().unwrap_or_default();
    let (region, account) = (text("region"), text("accountId"));
    let tags = match tags(server, headers).await {
        Some(tags) => tags,
        None => cluster_tag(client, server, headers, (region, text("instanceId"))).await,
    };
    if let Some(Value::Str(cluster)) = tags.get(CLUSTER_NAME) {
        let arn = format!("arn:aws:eks:{region}:{account}:cluster/{cluster}");
        set(&mut fields, "orchestrator.cluster.id", &arn);
        set(&mut fields, "orchestrator.cluster.name", cluster);
    }
    if !tags.is_empty() {
        fields.insert_path("aws.tags", tags);
    }
    Ok(fields)
}

/// A token, or nothing where the service supports only the first version: a refusal of the method or the
/// path means that there is none.
async fn token(server: &HttpClient) -> Result<String, AskError> {
    let headers = [("X-aws-ec2-metadata-token-ttl-seconds", TOKEN_SECONDS)];
    let ask =
        HttpRequest { method: Method::PUT, path: "/latest/api/token", headers: &headers, body: "" };
    match server.ask(ask).await {
        Ok(token) => Ok(String::from_utf8_lossy(&token).trim().to_owned()),
        Err(HttpError::Status { status, .. }) if matches!(status.as_u16(), 403..=405) => {
            Ok(String::new())
        }
        Err(error) => Err(error.into()),
    }
}

/// The tag with the name of the cluster, as the API names it; empty if there is none, or the API does not return it.
async fn cluster_tag(
    client: &CloudClient,
    server: &HttpClient,
    headers: &[(&str, &str)],
    place: (&str, &str),
) -> Map {
    let mut tags = Map::new();
    match cluster_name(client, server, headers, place).await {
        Ok(Some(name)) => tags.insert(CLUSTER_NAME, name),
        Ok(None) => {}
        Err(error) => tracing::debug!(%error, "the API of EC2 does not say the name of a cluster"),
    }
    tags
}

/// The tags, if the instance shows them (`InstanceMetadataTags`).
async fn tags(server: &HttpClient, headers: &[(&str, &str)]) -> Option<Map> {
    let mut tags = Map::new();
    let path = "/latest/meta-data/tags/instance";
    let keys = match server.ask(HttpRequest::get(path).headers(headers)).await {
        Ok(keys) => String::from_utf8_lossy(&keys).into_owned(),
        Err(error) => {
            tracing::debug!(%error, "the instance shows no tags");
            return None;
        }
    };
    for key in keys.lines().map(str::trim).filter(|key| !key.is_empty()).take(TAGS_MAX) {
        let path = format!("{path}/{}", percent_encoded(key));
        match server.ask(HttpRequest::get(&path).headers(headers)).await {
            Ok(value) => tags.insert(key, String::from_utf8_lossy(&value).into_owned()),
            Err(error) => tracing::debug!(key, %error, "a tag of the instance cannot be read"),
        }
    }
    Some(tags)
}
