//! Requests to Kibana: its version, and the import of saved objects.

use crate::settings::Kibana;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method};
use serde_json::Value;
use skidder_net::{
    Connection, ConnectionError, Pieces, Redactor, Route, WithoutTls, excerpt, request_uri,
};
use skidder_os::Fs;
use skidder_tls::TlsClient;
use std::sync::Arc;

/// Bytes of an answer that a message shows.
const SHOWN_BYTES_MAX: usize = 512;
/// The oldest Kibana whose API for saved objects takes dashboards as we send them: major and minor version.
const VERSION_MIN: (u64, u64) = (7, 14);

/// Why Kibana does not have an object.
#[derive(Debug, thiserror::Error)]
pub enum KibanaError {
    /// No answer. It may come later.
    #[error("{url}: {source}; is `setup.kibana.host` right?")]
    Connection {
        /// The server.
        url: String,
        /// Why.
        source: ConnectionError,
    },
    /// The settings cannot be used.
    #[error("{0}")]
    Settings(String),
    /// An answer that refuses. It may be another one later.
    #[error("{url}: Kibana answered {status}: {answer}{advice}")]
    Refused {
        /// The server.
        url: String,
        /// Its status.
        status: u16,
        /// What it says, with the objects that it names.
        answer: String,
        /// What to change.
        advice: &'static str,
    },
    /// Kibana has another version than one that can be used, or does not say which.
    #[error("{0}")]
    Version(String),
}

/// A connection to Kibana for each request.
pub(crate) struct Client<'a> {
    kibana: &'a Kibana,
    route: Route,
    is_serverless: bool,
}

impl<'a> Client<'a> {
    pub(crate) fn new(kibana: &'a Kibana, fs: &Arc<dyn Fs>) -> Result<Self, KibanaError> {
        let mut tls = None;
        if kibana.url.https {
            if !kibana.tls.enabled {
                let message = format!("`{}` needs TLS, but `ssl.enabled` is false", kibana.url);
                return Err(KibanaError::Settings(message));
            }
            let client = TlsClient::new(&kibana.tls, Arc::clone(fs));
            tls = Some(client.map_err(|error| {
                KibanaError::Settings(format!("`setup.kibana.{}`: {error}", error.setting()))
            })?);
        }
        let (host, proxy) = (kibana.url.address(), kibana.proxy.clone());
        Ok(Self {
            kibana,
            route: Route { host, proxy, tls, http2: false, without_tls: WithoutTls::Http },
            is_serverless: false,
        })
    }

    /// The version, after it was checked.
    pub(crate) async fn greet(&mut self) -> Result<String, KibanaError> {
        let answer = self.send(Method::GET, "/api/status", None).await?;
        let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
        let version = &answer["version"];
        let number = version["number"].as_str().unwrap_or_default().to_owned();
        let mut parts = number.split('.').map(str::parse::<u64>);
        let (Some(Ok(major)), Some(Ok(minor))) = (parts.next(), parts.next()) else {
            return Err(KibanaError::Version(format!(
                "{}: this does not answer as Kibana does; is `setup.kibana.host` right, and may the user see the version?",
                self.kibana.url
            )));
        };
        if (major, minor) < VERSION_MIN {
            let (least, minor) = VERSION_MIN;
            return Err(KibanaError::Version(format!(
                "{}: Kibana has version {number}; dashboards need {least}.{minor} or later",
                self.kibana.url
            )));
        }
        self.is_serverless = version["build_flavor"] == "serverless";
        Ok(number)
    }

    /// Imports objects, one a line, over those that are there.
    pub(crate) async fn import(&self, name: &str, objects: &str) -> Result<(), KibanaError> {
        let (boundary, body) = multipart(name, objects);
        let path = "/api/saved_objects/_import?overwrite=true";
        let answer = self.send(Method::POST, path, Some((&boundary, body))).await?;
        let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
        if answer["success"] == true {
            return Ok(());
        }
        let mistakes: Vec<String> = elements(&answer["errors"]).map(object_error).collect();
        let answer = if mistakes.is_empty() {
            "no `success` in the answer".to_owned()
        } else {
            mistakes.join("; ")
        };
        Err(KibanaError::Refused {
            url: self.kibana.url.to_string(),
            status: 200,
            answer,
            advice: "",
        })
    }

    /// The answer, if it is a success.
    async fn send(
        &self,
        method: Method,
        path: &str,
        form: Option<(&str, Bytes)>,
    ) -> Result<Vec<u8>, KibanaError> {
        let Kibana { url, headers, proxy, timeout, .. } = self.kibana;
        let uri = request_uri(url, path, proxy.as_deref())
            .ok_or_else(|| KibanaError::Settings(format!("`{url}` cannot be asked")))?;
        let mut headers = headers.clone();
        let redactor = Redactor::of(&headers);
        let mut body = Pieces::new(&[]);
        if let Some((boundary, bytes)) = form {
            let kind = format!("multipart/form-data; boundary={boundary}");
            let kind = HeaderValue::try_from(kind).expect("a boundary has letters and digits");
            headers.insert(CONTENT_TYPE, kind);
            if self.is_serverless {
                headers.insert("x-elastic-internal-origin", HeaderValue::from_static("skidder"));
            }
            body = Pieces::new(&[bytes]);
        }
        let failed = |source| KibanaError::Connection { url: url.to_string(), source };
        let mut connection = Connection::open(&self.route, None, *timeout).await.map_err(failed)?;
        let mut answer = Vec::new();
        let sent = connection.send(method, uri, headers, body, &mut answer, *timeout).await;
        let (status, _) = sent.map_err(failed)?;
        if (200..300).contains(&status) {
            return Ok(answer);
        }
        redactor.hide(&mut answer);
        let advice = match status {
            401 => "; see `setup.kibana.username`, `password`, `api_key` and `service_token`",
            403 => "; the user needs the right to manage saved objects in this space",
            404 => "; see `setup.kibana.path` and `setup.kibana.space.id`",
            _ => "",
        };
        let answer = refusal(&answer);
        Err(KibanaError::Refused { url: url.to_string(), status, answer, advice })
    }
}

/// A form with one file, and the boundary of its parts, which is nowhere in the file.
fn multipart(name: &str, objects: &str) -> (String, Bytes) {
    let mut boundary = "skidder-form".to_owned();
    while objects.contains(&boundary) {
        boundary.push_str("-x");
    }
    let plain = |character: char| match character {
        '"' | '\\' => '_',
        character if character.is_control() => '_',
        character => character,
    };
    let name: String = name.chars().map(plain).collect();
    let body = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
         Content-Type: application/ndjson\r\n\r\n{objects}\r\n--{boundary}--\r\n"
    );
    (boundary, body.into())
}

/// What an answer with an error says: its message, and the objects with theirs.
fn refusal(answer: &[u8]) -> String {
    let value: Value = serde_json::from_slice(answer).unwrap_or_default();
    let Some(message) = value["message"].as_str() else { return excerpt(answer, SHOWN_BYTES_MAX) };
    let objects = elements(&value["attributes"]["objects"]).map(object_error);
    std::iter::once(message.to_owned()).chain(objects).collect::<Vec<_>>().join("; ")
}

fn elements(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// One object that Kibana did not take.
fn object_error(object: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let error = &object["error"];
    let reason = if error["message"].is_string() { &error["message"] } else { &error["type"] };
    let mut text = format!("{} `{}`: {}", word(&object["type"]), word(&object["id"]), word(reason));
    for missing in elements(&error["references"]) {
        text += &format!(", needs {} `{}`", word(&missing["type"]), word(&missing["id"]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boundary_is_nowhere_in_the_file_and_a_name_ends_no_header() {
        let (boundary, body) = multipart("a\"b\r\nc.ndjson", "{\"a\":\"skidder-form\"}");
        let body = String::from_utf8(body.to_vec()).unwrap();
        assert_eq!(boundary, "skidder-form-x");
        assert!(body.contains("filename=\"a_b__c.ndjson\"\r\n"), "{body}");
        assert!(body.ends_with("\r\n--skidder-form-x--\r\n"), "{body}");
    }

    #[test]
    fn a_refusal_names_its_objects() {
        let answer = br#"{"message":"bad","attributes":{"objects":[{"id":"a","type":"dashboard","error":{"message":"no"}}]}}"#;
        assert_eq!(refusal(answer), "bad; dashboard `a`: no");
        assert_eq!(refusal(b"<html>"), "<html>");
    }
}
