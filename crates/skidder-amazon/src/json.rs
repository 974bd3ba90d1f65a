//! Services that take and give JSON, in a `POST` to one path with the operation in a header
//! (<https://smithy.io/2.0/aws/protocols/aws-json-1_0-protocol.html>).

use crate::client::{Client, Failure};
use bytes::Bytes;
use http::Method;
use serde::de::DeserializeOwned;
use serde_json::Value;
use skidder_net::cloud::Ask;
use std::time::Duration;

/// A client of such a service.
#[derive(Debug)]
pub(crate) struct JsonClient {
    client: Client,
    /// How messages call the service.
    name: &'static str,
    /// What stands before the operation in `x-amz-target`.
    prefix: &'static str,
    content_type: &'static str,
}

impl JsonClient {
    /// `version` is that of the protocol: `application/x-amz-json-1.0` or `-1.1`.
    pub(crate) fn new(
        client: Client,
        name: &'static str,
        prefix: &'static str,
        content_type: &'static str,
    ) -> Self {
        Self { client, name, prefix, content_type }
    }

    /// Calls an operation. An empty answer counts as `{}`. `patience` is added to the time limit.
    pub(crate) async fn call<T: DeserializeOwned>(
        &mut self,
        operation: &str,
        input: &Value,
        patience: Duration,
    ) -> Result<T, Failure> {
        let target = format!("{}.{operation}", self.prefix);
        let body = [Bytes::from(input.to_string())];
        let mut ask = Ask::empty(Method::POST, None);
        ask.headers = vec![("content-type", self.content_type), ("x-amz-target", &target)];
        ask.body = &body;
        ask.patience = patience;
        let service = self.name;
        let answer = self.client.ask(ask).await?;
        let text = if answer.body.trim_ascii().is_empty() { &b"{}"[..] } else { answer.body };
        serde_json::from_slice(text).map_err(|error| Failure::Unexpected {
            service,
            status: answer.status,
            what: error.to_string(),
        })
    }
}
