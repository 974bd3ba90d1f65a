//! Temporary credentials of roles, from the token service for a web identity (as pods of EKS have one), an
//! agent on the host of a container (ECS, pod identities of EKS), or the metadata service of an instance.
//!
//! The service and the role are set by the variables that Amazon's own programs read
//! (<https://docs.aws.amazon.com/sdkref/latest/guide/standardized-credentials.html>).

use crate::urls::service_url;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use skidder_aws::{Credentials, time_of};
use skidder_config::Secret;
use skidder_net::cloud::text_of;
use skidder_net::{
    Connection, ConnectionError, HostUrl, Pieces, ProxyChoice, Route, WithoutTls, encode_percent,
};
use skidder_os::{Fs, Timestamp, read_to_end};
use skidder_tls::TlsClient;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long one request may take: the service is near.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);
/// Longest token in a file.
const TOKEN_BYTES_MAX: usize = 64 << 10;
/// The metadata services of containers and instances.
const CONTAINER: &str = "http://169.254.170.2";
const INSTANCE: &str = "http://169.254.169.254";
/// Lifetime of credentials without an expiry time.
const LIFETIME: Duration = Duration::from_mins(10);

/// The issuer of a role's credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// The token service, for the token in a file.
    WebIdentity {
        /// The service.
        service: HostUrl,
        /// The role's ARN.
        role: String,
        /// The name of the session.
        session: String,
        /// The file, read each time.
        token: PathBuf,
    },
    /// An agent on the host of the container.
    Container {
        /// The agent, with the path to ask for.
        agent: HostUrl,
        /// The token for it.
        token: ContainerToken,
    },
    /// The metadata service of the instance (IMDSv2).
    Instance(HostUrl),
}

/// The token for the agent of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContainerToken {
    /// Nothing.
    None,
    /// This.
    Text(Secret),
    /// The content of a file, read each time.
    File(PathBuf),
}

/// Why there are no credentials.
#[derive(Debug, thiserror::Error)]
pub enum RoleError {
    /// The token that proves the role cannot be read.
    #[error("cannot read the token in `{}`: {source}", .path.display())]
    Token {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The issuer cannot be reached.
    #[error("{issuer} `{url}` does not answer: {source}")]
    Connection {
        /// Its name.
        issuer: &'static str,
        /// Where it is.
        url: String,
        /// Why.
        source: ConnectionError,
    },
    /// The issuer refused.
    #[error("{issuer} `{url}` answered {status}{what}")]
    Refused {
        /// Its name.
        issuer: &'static str,
        /// Where it is.
        url: String,
        /// The HTTP status.
        status: u16,
        /// What it says, behind a colon.
        what: String,
    },
    /// The answer is none of the issuer.
    #[error("{issuer} `{url}` answered without credentials")]
    Nothing {
        /// Its name.
        issuer: &'static str,
        /// Where it is.
        url: String,
    },
}

/// A question to one of them.
struct Question<'a> {
    method: Method,
    path: &'a str,
    headers: Vec<(HeaderName, &'a str)>,
    body: String,
}

impl Role {
    /// The web identity of the environment. The error is a mistake in a variable.
    pub(crate) fn web_identity(
        region: &str,
        set: &impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, String> {
        let (Some(token), Some(role)) = (set("AWS_WEB_IDENTITY_TOKEN_FILE"), set("AWS_ROLE_ARN"))
        else {
            return Ok(None);
        };
        let session = set("AWS_ROLE_SESSION_NAME").unwrap_or_else(|| "skidder".to_owned());
        let service = match set("AWS_ENDPOINT_URL_STS") {
            Some(service) => url("AWS_ENDPOINT_URL_STS", &service)?,
            None => service_url("sts", region),
        };
        Ok(Some(Self::WebIdentity { service, role, session, token: PathBuf::from(token) }))
    }

    /// The agent of the environment. The error is a mistake in a variable.
    pub(crate) fn container(set: &impl Fn(&str) -> Option<String>) -> Result<Option<Self>, String> {
        let relative = set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
        let whole = relative.map(|path| format!("{CONTAINER}{path}"));
        let Some(whole) = whole.or_else(|| set("AWS_CONTAINER_CREDENTIALS_FULL_URI")) else {
            return Ok(None);
        };
        let file = set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE").map(PathBuf::from);
        let text = || set("AWS_CONTAINER_AUTHORIZATION_TOKEN").map(Secret::new);
        let token = match (file, text) {
            (Some(file), _) => ContainerToken::File(file),
            (None, text) => text().map_or(ContainerToken::None, ContainerToken::Text),
        };
        let agent = url("AWS_CONTAINER_CREDENTIALS_FULL_URI", &whole)?;
        Ok(Some(Self::Container { agent, token }))
    }

    /// The instance, unless the environment forbids it. The error is a mistake in a variable.
    pub(crate) fn instance(set: &impl Fn(&str) -> Option<String>) -> Result<Option<Self>, String> {
        if set("AWS_EC2_METADATA_DISABLED").is_some_and(|text| text.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let service = set("AWS_EC2_METADATA_SERVICE_ENDPOINT");
        let service = service.unwrap_or_else(|| INSTANCE.to_owned());
        Ok(Some(Self::Instance(url("AWS_EC2_METADATA_SERVICE_ENDPOINT", &service)?)))
    }

    /// The name of the service, for messages.
    pub fn issuer(&self) -> &'static str {
        match self {
            Self::WebIdentity { .. } => "the token service",
            Self::Container { .. } => "the agent of the container",
            Self::Instance(_) => "the metadata service of the instance",
        }
    }

    /// Where the service is.
    pub fn url(&self) -> &HostUrl {
        match self {
            Self::WebIdentity { service, .. } => service,
            Self::Container { agent, .. } => agent,
            Self::Instance(service) => service,
        }
    }

    /// New credentials, and until when they hold.
    pub(crate) async fn ask(
        &self,
        client: &RoleClient,
        now: Timestamp,
    ) -> Result<(Credentials, Timestamp), RoleError> {
        let found = match self {
            Self::WebIdentity { role, session, token, .. } => {
                let token = client.read(token)?;
                let body = identity_form(role, session, &token);
                let form = "application/x-www-form-urlencoded";
                let question = Question {
                    method: Method::POST,
                    path: "/",
                    headers: vec![(CONTENT_TYPE, form)],
                    body,
                };
                of_xml(&client.ask(self, question).await?)
            }
            Self::Container { agent, token } => {
                let token = match token {
                    ContainerToken::None => String::new(),
                    ContainerToken::Text(text) => text.reveal().to_owned(),
                    ContainerToken::File(path) => client.read(path)?,
                };
                let mut headers = Vec::new();
                if !token.is_empty() {
                    headers.push((AUTHORIZATION, &*token));
                }
                let path = if agent.path.is_empty() { "/" } else { &*agent.path };
                let question = Question::get(path, headers);
                of_json(&client.ask(self, question).await?)
            }
            Self::Instance(_) => of_json(&self.ask_instance(client).await?),
        };
        let (issuer, url) = (self.issuer(), self.url().to_string());
        let (credentials, until) = found.ok_or(RoleError::Nothing { issuer, url })?;
        let lifetime = i64::try_from(LIFETIME.as_nanos()).unwrap_or(i64::MAX);
        Ok((credentials, until.unwrap_or(Timestamp(now.0.saturating_add(lifetime)))))
    }

    /// <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-metadata-security-credentials.html>.
    async fn ask_instance(&self, client: &RoleClient) -> Result<Vec<u8>, RoleError> {
        const ROLES: &str = "/latest/meta-data/iam/security-credentials/";
        let lifetime = HeaderName::from_static("x-aws-ec2-metadata-token-ttl-seconds");
        let question = Question {
            method: Method::PUT,
            path: "/latest/api/token",
            headers: vec![(lifetime, "300")],
            body: String::new(),
        };
        let token = client.ask(self, question).await?;
        let token = String::from_utf8_lossy(&token);
        let shown = || vec![(HeaderName::from_static("x-aws-ec2-metadata-token"), token.trim())];
        let roles = client.ask(self, Question::get(ROLES, shown())).await?;
        let roles = String::from_utf8_lossy(&roles);
        let mut path = ROLES.to_owned();
        encode_percent(&mut path, roles.lines().next().unwrap_or_default().trim());
        client.ask(self, Question::get(&path, shown())).await
    }
}

impl<'a> Question<'a> {
    fn get(path: &'a str, headers: Vec<(HeaderName, &'a str)>) -> Self {
        Self { method: Method::GET, path, headers, body: String::new() }
    }
}

/// Sends each request over a connection of its own.
pub(crate) struct RoleClient {
    pub(crate) fs: Arc<dyn Fs>,
    pub(crate) tls: Option<Arc<TlsClient>>,
    /// For the token service; the others are on this machine.
    pub(crate) proxy: ProxyChoice,
}

impl RoleClient {
    fn read(&self, path: &Path) -> Result<String, RoleError> {
        let read = self.fs.open(path).and_then(|file| read_to_end(&*file, TOKEN_BYTES_MAX));
        let bytes = read.map_err(|source| RoleError::Token { path: path.to_path_buf(), source })?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    async fn ask(&self, role: &Role, question: Question<'_>) -> Result<Vec<u8>, RoleError> {
        let (issuer, url) = (role.issuer(), role.url());
        let nothing = || RoleError::Nothing { issuer, url: url.to_string() };
        let mut headers = HeaderMap::new();
        let host = HeaderValue::from_str(&url.authority()).map_err(|_| nothing())?;
        headers.insert(HOST, host);
        for (name, value) in question.headers {
            let mut value = HeaderValue::from_str(value).map_err(|_| nothing())?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let host = url.address();
        let proxy = match role {
            // An HTTP proxy gets a tunnel request, which is for TLS.
            Role::WebIdentity { .. } if url.https => self.proxy.of(true, &host),
            _ => None,
        };
        let tls = self.tls.clone().filter(|_| url.https);
        let uri = question.path.parse().map_err(|_| nothing())?;
        let body = Pieces::new(&[Bytes::from(question.body)]);
        let mut answer = Vec::new();
        let response = async {
            let route = Route { host, proxy, tls, http2: false, without_tls: WithoutTls::Http };
            let mut connection = Connection::open(&route, None, TIMEOUT).await?;
            connection.send(question.method, uri, headers, body, &mut answer, TIMEOUT).await
        };
        let (status, _) = response.await.map_err(|source| RoleError::Connection {
            issuer,
            url: url.to_string(),
            source,
        })?;
        if (200..300).contains(&status) {
            return Ok(answer);
        }
        let parts = [text_of(&answer, "Code"), text_of(&answer, "Message")];
        let what =
            parts.into_iter().flatten().fold(String::new(), |what, text| format!("{what}: {text}"));
        Err(RoleError::Refused { issuer, url: url.to_string(), status, what })
    }
}

/// A URL of the environment.
pub(crate) fn url(variable: &str, text: &str) -> Result<HostUrl, String> {
    let usual = |https| if https { 443 } else { 80 };
    HostUrl::parse(text, "", "", usual).map_err(|error| format!("{variable}: `{text}`: {error}"))
}

/// <https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html>.
fn identity_form(role: &str, session: &str, token: &str) -> String {
    let mut form = "Action=AssumeRoleWithWebIdentity&Version=2011-06-15".to_owned();
    for (name, value) in
        [("RoleArn", role), ("RoleSessionName", session), ("WebIdentityToken", token)]
    {
        form.push('&');
        form.push_str(name);
        form.push('=');
        encode_percent(&mut form, value);
    }
    form
}

pub(crate) type Found = Option<(Credentials, Option<Timestamp>)>;

pub(crate) fn of_xml(answer: &[u8]) -> Found {
    let text = |element| text_of(answer, element);
    let credentials = Credentials {
        id: text("AccessKeyId")?,
        secret: Secret::new(text("SecretAccessKey")?),
        session: text("SessionToken").map(Secret::new),
    };
    Some((credentials, text("Expiration").as_deref().and_then(time_of)))
}

fn of_json(answer: &[u8]) -> Found {
    let answer: serde_json::Value = serde_json::from_slice(answer).ok()?;
    let text =
        |name: &str| answer[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let credentials = Credentials {
        id: text("AccessKeyId")?,
        secret: Secret::new(text("SecretAccessKey")?),
        session: text("Token").map(Secret::new),
    };
    Some((credentials, text("Expiration").as_deref().and_then(time_of)))
}
