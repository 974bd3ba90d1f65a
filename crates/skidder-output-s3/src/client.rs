//! One worker's way to the bucket: puts objects, and believes nothing that is no proof.

use super::answer::advice;
use super::config::Config;
use super::object::Object;
use http::header::ETAG;
use http::{HeaderMap, HeaderValue, Method};
use skidder_amazon::{Ask, Client, DIGEST, Failure, Meter};
use skidder_net::Connection;
use skidder_pipeline::OutputMetrics;
use std::sync::Arc;
use std::time::Duration;

/// The checksum of an object, which older servers do not repeat.
const CHECKSUM: &str = "x-amz-checksum-crc32";

/// Adds what goes over the connection to the metrics of the output.
#[derive(Debug)]
pub(crate) struct Metered(pub(crate) Arc<OutputMetrics>);

impl Meter for Metered {
    fn answered(&self, sent_bytes: u64, latency: Duration) {
        self.0.write_bytes.add(sent_bytes);
        self.0.latency_ns.add(latency.as_nanos() as u64);
    }

    fn received(&self, bytes: u64) {
        self.0.read_bytes.add(bytes);
    }
}

/// See the module's text.
pub(crate) struct BucketClient {
    pub(crate) config: Arc<Config>,
    pub(crate) client: Client,
}

impl BucketClient {
    /// Uses this connection for the next request.
    pub(crate) fn adopt(&mut self, connection: Connection) {
        self.client.adopt(connection);
    }

    /// Puts an object. That is done when the server has checked its digest and said so.
    pub(crate) async fn put(&mut self, object: &Object) -> Result<(), Failure> {
        let config = Arc::clone(&self.config);
        let mut ask = Ask::empty(Method::PUT, Some(&object.key));
        ask.headers = config.headers.iter().map(|(name, value)| (*name, &**value)).collect();
        ask.headers.push(("content-type", config.content_type()));
        ask.headers.push((CHECKSUM, &object.checksum));
        ask.headers.push((DIGEST, &object.digest));
        ask.body = &object.body;
        let answer = self.client.ask(ask).await.map_err(|failure| advised(failure, &config))?;
        let status = answer.status;
        match flaw(status, &answer.headers, answer.body, &object.checksum) {
            None => Ok(()),
            Some(what) => Err(Failure::Unexpected { service: "S3", status, what: what.to_owned() }),
        }
    }

    /// Sends a request without a body, about an object or the bucket itself.
    pub(crate) async fn ask(&mut self, method: Method, key: Option<&str>) -> Result<(), Failure> {
        let asked = self.client.ask(Ask::empty(method, key)).await;
        asked.map(|_| ()).map_err(|failure| advised(failure, &self.config))
    }
}

/// The same with the remedy in settings of the output.
fn advised(failure: Failure, config: &Config) -> Failure {
    match failure {
        Failure::Refused(refused) => {
            let advice = advice(&refused, &config.bucket);
            Failure::Refused(Box::new(refused.advised(advice)))
        }
        other => other,
    }
}

/// Why a good answer to an object does not prove that it is there. A captive portal answers 200 to everything.
fn flaw(status: u16, headers: &HeaderMap, body: &[u8], checksum: &str) -> Option<&'static str> {
    if status != 200 {
        return Some("it answers 200 to an object that it has");
    }
    if !headers.contains_key(ETAG) {
        return Some("there is no `etag`");
    }
    if !body.trim_ascii().is_empty() {
        return Some("there is a page behind the headers");
    }
    let theirs = headers.get(CHECKSUM).map(HeaderValue::as_bytes);
    if theirs.is_some_and(|theirs| theirs != checksum.as_bytes()) {
        return Some("`x-amz-checksum-crc32` is of another object");
    }
    None
}
