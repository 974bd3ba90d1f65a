//! Tokens: requested when one is needed, kept, and replaced before they end.

use crate::jwt::{SignError, assertion};
use crate::key::KeyFile;
use crate::source::{Source, SourceError, read_file};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::Value;
use skidder_net::cloud::Temporary;
use skidder_net::{
    Connection, ConnectionError, HostUrl, Pieces, ProxyChoice, Route, WithoutTls, encode_percent,
    excerpt, percent_encoded, secret_header, usual_port,
};
use skidder_os::{Clock, Fs, Timestamp};
use skidder_tls::{TlsClient, TlsError, TlsSettings};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How long one request may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// A token is replaced this long before it ends, as Google's own programs do.
const MARGIN: Duration = Duration::from_secs(225);
/// Bytes of an answer that a message shows.
const SHOWN_BYTES_MAX: usize = 300;
/// Where a machine's metadata server has tokens
/// (<https://cloud.google.com/compute/docs/access/authenticate-workloads#applications>).
const MACHINE_PATH: &str = "/computeMetadata/v1/instance/service-accounts/default/token?scopes=";

/// Why there is no token. It may be asked for again.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The credentials cannot be read any more.
    #[error("no token: {0}")]
    Source(#[from] SourceError),
    /// The key cannot sign.
    #[error("no token: {0}")]
    Sign(#[from] SignError),
    /// The issuer cannot be reached.
    #[error("no token: {issuer} `{url}` does not answer: {source}{}", advice(.issuer))]
    Connection {
        /// What it is.
        issuer: &'static str,
        /// Where it is.
        url: String,
        /// Why.
        source: ConnectionError,
    },
    /// The issuer refused.
    #[error("no token: {issuer} `{url}` answered {status}: {what}{}", advice(.issuer))]
    Refused {
        /// What it is.
        issuer: &'static str,
        /// Where it is.
        url: String,
        /// The HTTP status.
        status: u16,
        /// What it says.
        what: String,
    },
    /// The answer is none of the issuer.
    #[error("no token: {issuer} `{url}` answered without one")]
    Nothing {
        /// What it is.
        issuer: &'static str,
        /// Where it is.
        url: String,
    },
    /// The URL of the issuer is none.
    #[error("no token: `token_uri` of the credentials is `{url}`; {message}")]
    Url {
        /// The URL.
        url: String,
        /// What is wrong.
        message: String,
    },
}

const SERVICE: &str = "the token service";
const MACHINE: &str = "the metadata server";

/// What is missing where there is no metadata server.
fn advice(issuer: &str) -> &'static str {
    if issuer == MACHINE {
        "; this is asked because no credentials are set: set a file with those of a service account, or the variable \
         GOOGLE_APPLICATION_CREDENTIALS"
    } else {
        ""
    }
}

/// Gives the token of now. Shared by all workers.
pub struct Tokens {
    source: Source,
    scope: &'static str,
    fs: Arc<dyn Fs>,
    tls: Option<Arc<TlsClient>>,
    proxy: ProxyChoice,
    /// Headers with a token.
    given: Temporary<HeaderValue>,
}

/// A question for a token.
struct Question {
    issuer: &'static str,
    url: HostUrl,
    /// Path and query.
    path: String,
    /// What is sent; nothing to ask with `GET`.
    form: Option<String>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Tokens").field(&self.source).field(&self.scope).finish()
    }
}

impl Tokens {
    /// For the rights of `scope`. Reads certificates; connects to nothing. `proxy` is for the token service.
    ///
    /// # Errors
    ///
    /// The certificates of the system cannot be read.
    pub fn new(
        source: Source,
        scope: &'static str,
        proxy: ProxyChoice,
        fs: Arc<dyn Fs>,
    ) -> Result<Self, TlsError> {
        // `ssl` of the settings is about the server of the service.
        let is_https = !matches!(source, Source::None | Source::Machine(_));
        let tls = is_https.then(|| TlsClient::new(&TlsSettings::default(), Arc::clone(&fs)));
        let tls = tls.transpose()?;
        Ok(Self { source, scope, fs, tls, proxy, given: Temporary::default() })
    }

    /// Where the credentials come from.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The header `authorization` of requests; nothing if they have none. One that ends soon is replaced; if that fails, it is
    /// used as long as it holds.
    ///
    /// # Errors
    ///
    /// There is no token.
    pub async fn get(&self, clock: &Arc<dyn Clock>) -> Result<Option<HeaderValue>, TokenError> {
        if self.source == Source::None {
            return Ok(None);
        }
        let warn = |error| tracing::warn!(%error, "cannot replace a token that ends soon");
        self.given.get(clock, MARGIN, |now| self.ask(now), warn).await.map(Some)
    }

    /// The server does not accept this token any more: another one is requested next time.
    pub async fn forget(&self, header: &HeaderValue) {
        self.given.forget_this(header).await;
    }

    /// A new token, and until when it holds.
    async fn ask(&self, now: Timestamp) -> Result<(HeaderValue, Timestamp), TokenError> {
        let question = self.question(now)?;
        let (issuer, url) = (question.issuer, question.url.to_string());
        let (status, answer) = self.send(question).await?;
        if !(200..300).contains(&status) {
            let what = refusal(&answer);
            return Err(TokenError::Refused { issuer, url, status, what });
        }
        let found = read_answer(&answer);
        let (token, seconds) =
            found.ok_or_else(|| TokenError::Nothing { issuer, url: url.clone() })?;
        let header = secret_header(&format!("Bearer {token}"));
        let header = header.ok_or(TokenError::Nothing { issuer, url })?;
        Ok((header, later(now, Duration::from_secs(seconds))))
    }

    fn question(&self, now: Timestamp) -> Result<Question, TokenError> {
        let read;
        let key = match &self.source {
            Source::Key(key) => key,
            Source::File(path) => {
                read = read_file(&*self.fs, path)?;
                &read
            }
            Source::Machine(url) => {
                let path = format!("{MACHINE_PATH}{}", percent_encoded(self.scope));
                return Ok(Question { issuer: MACHINE, url: url.clone(), path, form: None });
            }
            Source::None => unreachable!("requests without credentials have no token"),
        };
        let form = match key {
            KeyFile::Account(account) => form_of(&[
                ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
                ("assertion", &assertion(account, self.scope, now)?),
            ]),
            KeyFile::User(user) => form_of(&[
                ("grant_type", "refresh_token"),
                ("client_id", &user.client_id),
                ("client_secret", user.client_secret.reveal()),
                ("refresh_token", user.refresh_token.reveal()),
            ]),
        };
        let url = HostUrl::parse(key.token_uri(), "https", "", usual_port);
        let url =
            url.map_err(|message| TokenError::Url { url: key.token_uri().to_owned(), message })?;
        let path = if url.path.is_empty() { "/".to_owned() } else { url.path.clone() };
        Ok(Question { issuer: SERVICE, url, path, form: Some(form) })
    }

    /// Sends a request over a connection of its own.
    async fn send(&self, question: Question) -> Result<(u16, Vec<u8>), TokenError> {
        let Question { issuer, url, path, form } = question;
        let nothing = || TokenError::Nothing { issuer, url: url.to_string() };
        let mut headers = HeaderMap::new();
        let host = HeaderValue::from_str(&url.authority()).map_err(|_| nothing())?;
        headers.insert(HOST, host);
        let method = if form.is_some() {
            let form = HeaderValue::from_static("application/x-www-form-urlencoded");
            headers.insert(CONTENT_TYPE, form);
            Method::POST
        } else {
            let flavor = HeaderName::from_static("metadata-flavor");
            headers.insert(flavor, HeaderValue::from_static("Google"));
            Method::GET
        };
        let host = url.address();
        // An HTTP proxy gets a tunnel request, which is for TLS; the metadata server is on this machine.
        let proxy = if url.https { self.proxy.of(true, &host) } else { None };
        let tls = self.tls.clone().filter(|_| url.https);
        let uri = path.parse().map_err(|_| nothing())?;
        let body = Pieces::new(&[Bytes::from(form.unwrap_or_default())]);
        let mut answer = Vec::new();
        let asking = async {
            let route = Route { host, proxy, tls, http2: false, without_tls: WithoutTls::Http };
            let mut connection = Connection::open(&route, None, TIMEOUT).await?;
            connection.send(method, uri, headers, body, &mut answer, TIMEOUT).await
        };
        let sent = asking.await;
        let (status, _) =
            sent.map_err(|source| TokenError::Connection { issuer, url: url.to_string(), source })?;
        Ok((status, answer))
    }
}

fn later(time: Timestamp, span: Duration) -> Timestamp {
    let span = i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
    Timestamp(time.0.saturating_add(span))
}

fn form_of(members: &[(&str, &str)]) -> String {
    let mut form = String::new();
    for (name, value) in members {
        if !form.is_empty() {
            form.push('&');
        }
        form.push_str(name);
        form.push('=');
        encode_percent(&mut form, value);
    }
    form
}

/// The token of an answer, and for how many seconds it holds (RFC 6749, section 5.1).
fn read_answer(answer: &[u8]) -> Option<(String, u64)> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let token = answer.get("access_token")?.as_str().filter(|token| !token.is_empty())?;
    Some((token.to_owned(), answer.get("expires_in").and_then(Value::as_u64).unwrap_or(300)))
}

/// What a refusal says (RFC 6749, section 5.2), without what else stands in it.
fn refusal(answer: &[u8]) -> String {
    let Ok(json) = serde_json::from_slice::<Value>(answer) else {
        return excerpt(answer, SHOWN_BYTES_MAX);
    };
    let text = |name: &str| json.get(name).and_then(Value::as_str).unwrap_or_default();
    match (text("error"), text("error_description")) {
        ("", "") => excerpt(answer, SHOWN_BYTES_MAX),
        (error, "") => format!("`{error}`"),
        (error, description) => format!("`{error}`: {description}"),
    }
}

#[cfg(test)]
mod tests;
