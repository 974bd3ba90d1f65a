//! A server for the tests of this folder.

use super::Ask;
use http::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;

/// The existing documents, what is refused, and the requests that came.
#[derive(Default)]
pub(super) struct Server {
    pub(super) has: BTreeMap<String, Value>,
    /// Paths that begin so are not known.
    pub(super) unknown: &'static str,
    /// Paths that begin so need other rights.
    pub(super) forbidden: &'static str,
    /// It does not know the newer types of fields.
    pub(super) is_old: bool,
    /// It takes no document at this path.
    pub(super) refuses: Option<&'static str>,
    /// Paths that begin so are answered with 503.
    pub(super) busy: &'static str,
    pub(super) requests: Vec<String>,
}

impl Ask for Server {
    type Error = Infallible;

    async fn ask(
        &mut self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(u16, Vec<u8>), Infallible> {
        self.requests.push(format!("{method} {path}"));
        if path == "/_nodes/ingest" {
            let node = json!({ "ingest": { "processors": [{ "type": "geoip" }] } });
            return Ok((200, json!({ "nodes": { "a": node } }).to_string().into_bytes()));
        }
        if !self.unknown.is_empty() && path.starts_with(self.unknown) {
            return Ok((400, b"{\"error\":\"no handler found for uri\"}".to_vec()));
        }
        if !self.busy.is_empty() && path.starts_with(self.busy) {
            return Ok((503, b"{}".to_vec()));
        }
        if !self.forbidden.is_empty() && path.starts_with(self.forbidden) {
            return Ok((403, b"{}".to_vec()));
        }
        if method == Method::DELETE {
            return Ok((if self.has.remove(path).is_some() { 200 } else { 404 }, Vec::new()));
        }
        match body {
            Some(_) if self.refuses == Some(path) => Ok((400, b"no such processor".to_vec())),
            Some(body) if self.is_old && body.to_string().contains("match_only_text") => {
                let answer = b"No handler for type [match_only_text] declared on field [message]";
                Ok((400, answer.to_vec()))
            }
            Some(body) => {
                self.has.insert(path.to_owned(), body.clone());
                Ok((200, Vec::new()))
            }
            None if self.has.contains_key(path) => Ok((200, Vec::new())),
            None => Ok((404, Vec::new())),
        }
    }
}
