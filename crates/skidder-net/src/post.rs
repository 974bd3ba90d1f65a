//! Documents posted to a URL, apart from the events: each over its own connection, closed after the answer.

use crate::HostUrl;
use crate::connection::{Connection, ConnectionError, Pieces};
use crate::headers::{
    AGENT, basic_login_of, excerpt, proxy_login, request_uri, retry_after, secret_header,
};
use crate::{HTTPS, PROXY, Proxy, ProxyChoice, Route, WithoutTls, read_headers, read_https};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{
    AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HOST, PROXY_AUTHORIZATION, USER_AGENT,
};
use http::{HeaderMap, HeaderValue, Method, Uri};
use skidder_config::{Group, Key, OneOf, Section, settings};
use skidder_os::Fs;
use skidder_tls::TlsClient;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of an answer that a message shows.
const SHOWN_BYTES_MAX: usize = 512;

settings! {
    /// Where documents are posted to, and how.
    pub static POSTER = Group::new("poster", "Where documents are posted to.").include(&[&PROXY, &HTTPS]);

    TIMEOUT: Duration = Key::new("timeout")
        .default(Duration::from_secs(10))
        .at_least(Duration::from_millis(1))
        .about("of a connection, and of an answer");
    COMPRESSION: OneOf<bool> =
        Key::one_of("compression", &[("gzip", true), ("none", false)]).default("gzip").about("or `none`");
    HEADERS: BTreeMap<String, String> = Key::new("headers").secret().about("go with every request");
}

/// Where documents go, and how.
#[derive(Clone, Debug)]
pub struct Poster {
    url: HostUrl,
    uri: Uri,
    route: Route,
    headers: HeaderMap,
    timeout: Duration,
    compresses: bool,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Posted {
    /// Its status.
    pub status: u16,
    /// The `Retry-After` of the server, if it is in seconds.
    pub retry_after: Option<Duration>,
    /// Its body.
    pub body: Vec<u8>,
}

/// There was no answer.
#[derive(Debug, thiserror::Error)]
#[error("{url}: {error}")]
pub struct PostError {
    url: String,
    error: ConnectionError,
}

/// The setting with the target URL, and which parts the URL may omit.
#[derive(Clone, Copy, Debug)]
pub struct PosterDefaults {
    /// Its default is a whole URL.
    pub endpoint: &'static Key<String>,
    /// The end of its path, which is added if it is missing.
    pub path: &'static str,
    /// Its port without TLS; with TLS it is 443.
    pub port: u16,
}

impl Poster {
    /// Reads the endpoint, `headers`, `timeout`, `compression`, `ssl` and `proxy_url`; reports mistakes to the section's
    /// problems.
    pub fn read(
        section: &Section<'_>,
        defaults: PosterDefaults,
        kind: &'static str,
        fs: &Arc<dyn Fs>,
    ) -> Option<Self> {
        let example = defaults.endpoint.default_value().unwrap_or_default();
        let parse = |text: String| {
            if !text.contains("://") {
                return Err(format!("expected a URL, as in `{example}`"));
            }
            HostUrl::parse(&text, "", "", |https| if https { 443 } else { defaults.port })
        };
        let url = section.get(defaults.endpoint).try_map(parse).optional();
        let url = match url {
            Some(url) => url,
            None if section.has_key(defaults.endpoint) => return None,
            None => parse(example.to_owned()).ok()?,
        };
        let proxy = ProxyChoice::read(section, |name| std::env::var(name).ok());
        let proxy = proxy.of(url.https, &url.address());
        let settings = read_https(section);
        let mut tls = None;
        if url.https {
            match TlsClient::new(&settings, Arc::clone(fs)) {
                Ok(client) if settings.enabled => tls = Some(client),
                Ok(_) => {
                    let message = format!("`{url}` needs TLS, but `ssl.enabled` is false");
                    section.problem("ssl.enabled", message, "");
                    return None;
                }
                Err(error) => {
                    error.report(section);
                    return None;
                }
            }
        }
        let headers = headers(&url, section, kind, proxy.as_deref());
        let (Some(uri), Some(headers)) =
            (request_uri(&url, defaults.path, proxy.as_deref()), headers)
        else {
            section.problem(defaults.endpoint.name(), format!("`{url}` cannot be asked"), "");
            return None;
        };
        Some(Self {
            route: Route {
                host: url.address(),
                proxy,
                tls,
                http2: false,
                without_tls: WithoutTls::Http,
            },
            url,
            uri,
            headers,
            timeout: section.get(&TIMEOUT).value(),
            compresses: section.get(&COMPRESSION).value(),
        })
    }

    /// Posts a document.
    ///
    /// # Errors
    ///
    /// There is no answer within the time.
    pub async fn post(&self, document: &[u8]) -> Result<Posted, PostError> {
        let failed = |error| PostError { url: self.url.to_string(), error };
        let mut headers = self.headers.clone();
        let body = match self.compresses.then(|| compressed(document)) {
            Some(body) => {
                headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
                body
            }
            None => Bytes::copy_from_slice(document),
        };
        let opened = Connection::open(&self.route, None, self.timeout).await;
        let mut connection = opened.map_err(failed)?;
        let (uri, mut answer) = (self.uri.clone(), Vec::new());
        let body = Pieces::new(&[body]);
        let sent =
            connection.send(Method::POST, uri, headers, body, &mut answer, self.timeout).await;
        let (status, headers) = sent.map_err(failed)?;
        Ok(Posted { status, retry_after: retry_after(&headers), body: answer })
    }

    /// The error text for an answer that is no success.
    pub fn refusal(&self, posted: &Posted) -> String {
        let mut text = format!("{}: the server answered {}", self.url, posted.status);
        let shown = excerpt(&posted.body, SHOWN_BYTES_MAX);
        if !shown.is_empty() {
            write!(text, ": {shown}").expect("a string takes everything");
        }
        text
    }
}

fn compressed(document: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(document).expect("memory takes everything");
    encoder.finish().expect("memory takes everything").into()
}

fn headers(
    url: &HostUrl,
    section: &Section<'_>,
    kind: &'static str,
    proxy: Option<&Proxy>,
) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert(HOST, HeaderValue::from_str(&url.authority()).ok()?);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    if let Some(login) = basic_login_of(url) {
        headers.insert(AUTHORIZATION, secret_header(&login)?);
    }
    for (name, value) in read_headers(section, &HEADERS) {
        headers.insert(name, value);
    }
    if let Some(login) = proxy_login(url, proxy) {
        headers.insert(PROXY_AUTHORIZATION, secret_header(&login)?);
    }
    Some(headers)
}
