//! Headers of every request, and the server's description of itself on `GET /`.

use super::config::{Config, Credentials};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::Uri;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use skidder_net::{HostUrl, Login, Proxy, basic_login, basic_login_of, encode_percent};
use skidder_outputs::Context;
use std::sync::Arc;

/// Requested answer fields: without it a server repeats index and id of every event.
const FILTER_PATH: &str = "errors,items.*.error,items.*.status";

/// Length of a compressed body before compression, which servers log.
const UNCOMPRESSED_LENGTH: HeaderName =
    HeaderName::from_static("x-elastic-uncompressed-request-length");

/// The constant parts of all requests to one host.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) host: HostUrl,
    pub(crate) root: Uri,
    pub(crate) bulk: Uri,
    /// The prefix of every path.
    before: String,
    headers: HeaderMap,
    /// Makes a header for each request, if these need one.
    pub(crate) login: Option<Login>,
}

/// Why no request can be sent to a host. A mistake of the configuration.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The path or a parameter does not fit in a URL.
    #[error("`{0}` is no URL")]
    Url(String),
    /// The credentials do not fit in a header.
    #[error("the credentials for `{0}` cannot be sent in a header")]
    Credentials(String),
}

impl Target {
    pub(crate) fn new(
        host: &HostUrl,
        config: &Config,
        context: &Context,
        proxy: Option<&Proxy>,
        kerberos: Option<&Arc<skidder_kerberos::Login>>,
    ) -> Result<Self, TargetError> {
        let uri = |text: String| text.parse::<Uri>().map_err(|_| TargetError::Url(text));
        let mut query = String::from("filter_path=");
        encode_percent(&mut query, FILTER_PATH);
        for (name, value) in config.parameters.iter().filter(|(name, _)| name != "filter_path") {
            query.push('&');
            encode_percent(&mut query, name);
            query.push('=');
            encode_percent(&mut query, value);
        }
        let mut headers = HeaderMap::new();
        let authority = host.authority();
        let host_value =
            HeaderValue::from_str(&authority).map_err(|_| TargetError::Url(authority.clone()))?;
        headers.insert(header::HOST, host_value);
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        let agent = HeaderValue::from_str(&user_agent(context));
        headers.insert(
            header::USER_AGENT,
            agent.unwrap_or_else(|_| HeaderValue::from_static("skidder")),
        );
        if let Some(value) = authorization(host, &config.credentials) {
            let mut value = HeaderValue::from_str(&value)
                .map_err(|_| TargetError::Credentials(authority.clone()))?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        for (name, value) in &config.headers {
            headers.insert(name.clone(), value.clone());
        }
        // An HTTP proxy gets the whole URL of an unencrypted request.
        let mut before = host.path.clone();
        if let Some(Proxy::Http(proxy)) = proxy.filter(|_| !host.https) {
            before = format!("http://{authority}{}", host.path);
            if let Some(value) = proxy.authorization() {
                let mut value = HeaderValue::from_str(&value)
                    .map_err(|_| TargetError::Credentials(proxy.to_string()))?;
                value.set_sensitive(true);
                headers.insert(header::PROXY_AUTHORIZATION, value);
            }
        }
        Ok(Self {
            host: host.clone(),
            root: uri(format!("{before}/"))?,
            before: before.clone(),
            bulk: uri(format!("{before}/_bulk?{query}"))?,
            headers,
            login: kerberos.map(|kerberos| Login::new(Arc::clone(kerberos), &host.name)),
        })
    }

    /// A path, percent-encoded where it must be, on this host.
    pub(crate) fn uri(&self, path: &str) -> Uri {
        let uri = format!("{}{path}", self.before).parse();
        uri.expect("what stands before it was parsed with another path")
    }

    /// Headers of a request that may have a JSON body.
    pub(crate) fn json_headers(&self) -> HeaderMap {
        let mut headers = self.headers.clone();
        let json = HeaderValue::from_static("application/json");
        headers.entry(header::CONTENT_TYPE).or_insert(json);
        headers
    }

    /// Headers of a request without a body.
    pub(crate) fn get_headers(&self) -> HeaderMap {
        self.headers.clone()
    }

    /// Headers of a bulk request. `compressed` has the length of its body before it was compressed.
    pub(crate) fn bulk_headers(&self, compressed: Option<u64>) -> HeaderMap {
        let mut headers = self.headers.clone();
        let json = HeaderValue::from_static("application/json; charset=UTF-8");
        headers.entry(header::CONTENT_TYPE).or_insert(json);
        if let Some(plain_bytes) = compressed {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            headers.insert(UNCOMPRESSED_LENGTH, HeaderValue::from(plain_bytes));
        }
        headers
    }
}

/// Credentials of the URL, else those of the settings.
fn authorization(host: &HostUrl, credentials: &Credentials) -> Option<String> {
    if let Some(login) = basic_login_of(host) {
        return Some(login);
    }
    match credentials {
        Credentials::None => None,
        Credentials::Basic(user, password) => Some(basic_login(user, password)),
        Credentials::ApiKey(key) => Some(format!("ApiKey {}", BASE64.encode(key.reveal()))),
    }
}

/// As Filebeat names itself, so that rules for it keep matching.
fn user_agent(context: &Context) -> String {
    let mut beat = context.beat.clone();
    if let Some(first) = beat.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    // Go's names.
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let privilege =
        if rustix::process::geteuid().is_root() { "Privileged" } else { "Unprivileged" };
    let os = std::env::consts::OS;
    format!("Elastic-{beat}/{} ({os}; {arch}; Standalone; {privilege})", context.version)
}

/// The kind of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerInfo {
    /// `version.number`.
    pub(crate) version: String,
    pub(crate) flavour: Flavour,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavour {
    Elasticsearch,
    /// Elasticsearch as a service, whose version has no meaning.
    Serverless,
    OpenSearch,
}

impl Flavour {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Elasticsearch => "Elasticsearch",
            Self::Serverless => "Elasticsearch Serverless",
            Self::OpenSearch => "OpenSearch",
        }
    }
}

#[derive(Deserialize)]
struct Root {
    version: Version,
}

#[derive(Deserialize)]
struct Version {
    number: String,
    distribution: Option<String>,
    build_flavor: Option<String>,
}

impl ServerInfo {
    /// Reads the answer to `GET /`.
    pub(crate) fn read(body: &[u8]) -> Result<Self, serde_json::Error> {
        let root: Root = serde_json::from_slice(body)?;
        let flavour = match root.version.distribution.as_deref() {
            Some("opensearch") => Flavour::OpenSearch,
            _ if root.version.build_flavor.as_deref() == Some("serverless") => Flavour::Serverless,
            _ => Flavour::Elasticsearch,
        };
        Ok(Self { version: root.version.number, flavour })
    }

    /// Whether it has data streams, and index templates of the kind that makes them (Elasticsearch 7.9).
    pub(crate) fn has_data_streams(&self) -> bool {
        self.flavour != Flavour::Elasticsearch
            || parts(&self.version).is_none_or(|version| version >= (7, 9))
    }

    /// Whether it is older than `version`, counting major and minor. The others count otherwise.
    pub(crate) fn is_older_than(&self, version: &str) -> bool {
        if self.flavour != Flavour::Elasticsearch {
            return false;
        }
        match (parts(&self.version), parts(version)) {
            (Some(theirs), Some(ours)) => theirs < ours,
            _ => false,
        }
    }
}

/// Major and minor of a version.
fn parts(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_config::Secret;

    #[test]
    fn servers_say_what_they_are() {
        let elastic = b"{\"name\":\"a\",\"version\":{\"number\":\"9.2.1\",\"build_flavor\":\"default\"},\"tagline\":\"You Know, for Search\"}";
        let info = ServerInfo::read(elastic).unwrap();
        assert_eq!((info.version.as_str(), info.flavour), ("9.2.1", Flavour::Elasticsearch));
        let open = b"{\"version\":{\"distribution\":\"opensearch\",\"number\":\"3.1.0\"}}";
        let info = ServerInfo::read(open).unwrap();
        assert_eq!(info.flavour, Flavour::OpenSearch);
        assert!(!info.is_older_than("9.5.0"));
        let less = b"{\"version\":{\"number\":\"8.11.0\",\"build_flavor\":\"serverless\"}}";
        let info = ServerInfo::read(less).unwrap();
        assert_eq!(info.flavour, Flavour::Serverless);
        assert!(!info.is_older_than("9.5.0") && info.has_data_streams());
        ServerInfo::read(b"<html>").unwrap_err();
        ServerInfo::read(b"{}").unwrap_err();
    }

    #[test]
    fn versions_are_compared_by_major_and_minor() {
        let table =
            [("9.5.0", false), ("9.4.9", true), ("8.19.0", true), ("10.0.0", false), ("x", false)];
        for (version, older) in table {
            let info = ServerInfo { version: version.to_owned(), flavour: Flavour::Elasticsearch };
            assert_eq!(info.is_older_than("9.5.2"), older, "{version}");
        }
    }

    #[test]
    fn the_credentials_of_a_url_win() {
        let mut host = crate::parse_host("http://es", "", "").unwrap();
        let key = Credentials::ApiKey(Secret::new("id:key"));
        assert_eq!(authorization(&host, &key).unwrap(), "ApiKey aWQ6a2V5");
        let basic = Credentials::Basic("u".to_owned(), Secret::new("p"));
        assert_eq!(authorization(&host, &basic).unwrap(), "Basic dTpw");
        assert_eq!(authorization(&host, &Credentials::None), None);
        host.credentials = Some(("url".to_owned(), Secret::new("x")));
        assert_eq!(authorization(&host, &key).unwrap(), "Basic dXJsOng=");
    }
}
