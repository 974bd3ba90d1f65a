//! Access tokens: of Microsoft Entra ID for a client with a secret
//! (<https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow>), or of the host for a managed
//! identity (<https://learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token>).

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::Value;
use skidder_config::Secret;
use skidder_net::{
    AGENT, Connection, ConnectionError, HostUrl, Pieces, ProxyChoice, Route, WithoutTls,
    encode_percent, percent_encoded, usual_port,
};
use skidder_os::Timestamp;
use skidder_tls::TlsClient;
use std::sync::Arc;
use std::time::Duration;

/// How long one request may take.
const TIMEOUT: Duration = Duration::from_secs(20);
/// What tokens of storage are for: all storage accounts.
pub(crate) const STORAGE: &str = "https://storage.azure.com/";
/// What tokens of Event Hubs are for: all namespaces.
pub const EVENT_HUBS: &str = "https://eventhubs.azure.net/";
/// Entra ID, unless `AZURE_AUTHORITY_HOST` names that of another cloud.
const AUTHORITY: &str = "https://login.microsoftonline.com";
/// The metadata service of a virtual machine.
const INSTANCE: &str = "http://169.254.169.254";
/// Lifetime of a token without an expiry time.
const LIFETIME: Duration = Duration::from_mins(10);
/// The longest that is believed.
const LIFETIME_MAX: Duration = Duration::from_hours(24);

/// Who issues tokens, and for whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenSource {
    /// Entra ID, for a client (an application) with a secret.
    Client {
        /// As `https://login.microsoftonline.com`.
        authority: HostUrl,
        /// The tenant's id or domain.
        tenant: String,
        /// The client's id.
        id: String,
        /// The client's secret.
        secret: Secret,
    },
    /// The host, for an identity that is assigned to it.
    Managed(ManagedIdentity),
}

/// An identity of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedIdentity {
    service: IdentityService,
    /// The id of one that a user has assigned; `None` for that of the system.
    client_id: Option<String>,
}

/// The service that gives tokens of the host's identities.
#[derive(Clone, Debug, PartialEq, Eq)]
enum IdentityService {
    /// Of a virtual machine.
    Instance(HostUrl),
    /// Of App Service, Functions, and Container Apps, with the secret that shows that a request comes from the inside.
    App(HostUrl, Secret),
}

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The issuer cannot be reached.
    #[error("{issuer} `{url}` does not answer: {source}{advice}")]
    Connection {
        /// Its name.
        issuer: &'static str,
        /// Where it is.
        url: String,
        /// The remedy, behind a semicolon; perhaps empty.
        advice: &'static str,
        /// Why.
        source: Box<ConnectionError>,
    },
    /// The issuer refused.
    #[error("{issuer} `{url}` answered {status}{what}{advice}")]
    Refused {
        /// Its name.
        issuer: &'static str,
        /// Where it is.
        url: String,
        /// The HTTP status.
        status: u16,
        /// What it says, behind a colon.
        what: String,
        /// The remedy, behind a semicolon; perhaps empty.
        advice: &'static str,
    },
    /// The answer has no token, or the request cannot be sent.
    #[error("{issuer} `{url}` answered without a token")]
    Nothing {
        /// Its name.
        issuer: &'static str,
        /// Where it is.
        url: String,
    },
}

/// The URL of Entra ID: `AZURE_AUTHORITY_HOST` of the environment, or that of the public cloud.
///
/// # Errors
///
/// The variable has another value than a URL.
pub fn authority_host(variable: impl Fn(&str) -> Option<String>) -> Result<HostUrl, String> {
    let text = variable("AZURE_AUTHORITY_HOST").filter(|text| !text.is_empty());
    let text = text.unwrap_or_else(|| AUTHORITY.to_owned());
    let text = if text.contains("://") { text } else { format!("https://{text}") };
    url("AZURE_AUTHORITY_HOST", &text)
}

fn url(name: &str, text: &str) -> Result<HostUrl, String> {
    HostUrl::parse(text, "", "", usual_port).map_err(|error| format!("{name}: `{text}`: {error}"))
}

impl ManagedIdentity {
    /// The identity `client_id` of the host, or that of the system. Which service to ask is said by the environment, as the
    /// programs of Azure understand it.
    ///
    /// # Errors
    ///
    /// A variable has a wrong value, or the host is of a kind that is not supported.
    pub fn read(
        client_id: Option<String>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let set = |name: &str| variable(name).filter(|text| !text.is_empty());
        let service = match (set("IDENTITY_ENDPOINT"), set("IDENTITY_HEADER")) {
            (Some(endpoint), Some(header)) => {
                if set("IDENTITY_SERVER_THUMBPRINT").is_some() {
                    return Err(unsupported("Service Fabric"));
                }
                IdentityService::App(url("IDENTITY_ENDPOINT", &endpoint)?, Secret::new(header))
            }
            (Some(_), None) if set("IMDS_ENDPOINT").is_some() => {
                return Err(unsupported("Azure Arc"));
            }
            _ if set("MSI_ENDPOINT").is_some() => {
                return Err(unsupported(
                    "a host with MSI_ENDPOINT (Cloud Shell, Machine Learning)",
                ));
            }
            _ => {
                let text = set("AZURE_POD_IDENTITY_AUTHORITY_HOST");
                let text = text.unwrap_or_else(|| INSTANCE.to_owned());
                IdentityService::Instance(url("AZURE_POD_IDENTITY_AUTHORITY_HOST", &text)?)
            }
        };
        let client_id = client_id.filter(|id| !id.is_empty());
        Ok(Self { service, client_id })
    }
}

fn unsupported(host: &str) -> String {
    format!(
        "managed identities of {host} are not supported; those of virtual machines, AKS, App Service and Container Apps are"
    )
}

/// A request for a token.
struct Question {
    method: Method,
    path: String,
    headers: Vec<(HeaderName, String)>,
    body: String,
}

impl TokenSource {
    /// The name of the issuer, for messages.
    pub fn issuer(&self) -> &'static str {
        match self {
            Self::Client { .. } => "Microsoft Entra ID",
            Self::Managed(ManagedIdentity { service: IdentityService::Instance(_), .. }) => {
                "the metadata service of the machine"
            }
            Self::Managed(_) => "the identity service of the app",
        }
    }

    /// Where the issuer is.
    pub fn url(&self) -> &HostUrl {
        match self {
            Self::Client { authority, .. } => authority,
            Self::Managed(ManagedIdentity { service, .. }) => match service {
                IdentityService::Instance(url) | IdentityService::App(url, _) => url,
            },
        }
    }

    /// `resource` is what the token is for.
    fn question(&self, resource: &str) -> Question {
        match self {
            Self::Client { authority, tenant, id, secret } => {
                let mut path = format!("{}/", authority.path);
                encode_percent(&mut path, tenant);
                path.push_str("/oauth2/v2.0/token");
                let scope = format!("{resource}.default");
                let fields = [
                    ("grant_type", "client_credentials"),
                    ("client_id", id),
                    ("client_secret", secret.reveal()),
                    ("scope", &scope),
                ];
                let fields =
                    fields.map(|(name, value)| format!("{name}={}", percent_encoded(value)));
                let form = "application/x-www-form-urlencoded".to_owned();
                let headers = vec![(CONTENT_TYPE, form)];
                Question { method: Method::POST, path, headers, body: fields.join("&") }
            }
            Self::Managed(ManagedIdentity { service, client_id }) => {
                let (url, end, version, header) = match service {
                    IdentityService::Instance(url) => {
                        let header = (HeaderName::from_static("metadata"), "true".to_owned());
                        (url, "/metadata/identity/oauth2/token", "2018-02-01", header)
                    }
                    IdentityService::App(url, secret) => {
                        let name = HeaderName::from_static("x-identity-header");
                        (url, "", "2019-08-01", (name, secret.reveal().to_owned()))
                    }
                };
                let resource = percent_encoded(resource);
                let mut path =
                    format!("{}{end}?api-version={version}&resource={resource}", url.path);
                if let Some(id) = client_id {
                    path.push_str("&client_id=");
                    encode_percent(&mut path, id);
                }
                let headers = vec![header];
                Question { method: Method::GET, path, headers, body: String::new() }
            }
        }
    }

    fn nothing(&self) -> TokenError {
        TokenError::Nothing { issuer: self.issuer(), url: self.url().to_string() }
    }

    /// The remedy for a refusal, behind a semicolon.
    fn advice(&self, error: &str, what: &str) -> &'static str {
        match self {
            Self::Client { .. } => match error {
                "invalid_client" => {
                    "; see the client's id and secret, and whether the secret has expired"
                }
                "unauthorized_client" => "; see the client's id: it must be one of this tenant",
                _ if what.contains("AADSTS90002") || what.contains("AADSTS900023") => {
                    "; see the tenant's id"
                }
                _ => "",
            },
            Self::Managed(_) if what.contains("dentity not found") => {
                "; assign an identity to this host, or correct the id of the managed identity"
            }
            Self::Managed(_) => "",
        }
    }
}

/// Asks issuers, over a connection of its own for each request.
pub(crate) struct TokenClient {
    pub(crate) tls: Option<Arc<TlsClient>>,
    /// For Entra ID; the others are on this host.
    pub(crate) proxy: ProxyChoice,
}

impl TokenClient {
    /// A new token, and until when it holds.
    pub(crate) async fn ask(
        &self,
        source: &TokenSource,
        resource: &str,
        now: Timestamp,
    ) -> Result<(Secret, Timestamp), TokenError> {
        let (issuer, url) = (source.issuer(), source.url());
        let (status, answer) = self.send(source, resource).await?;
        let json: Value = serde_json::from_slice(&answer).unwrap_or_default();
        if (200..300).contains(&status) {
            return token_of(&json, now).ok_or_else(|| source.nothing());
        }
        let text = |name: &str| json[name].as_str().unwrap_or_default();
        // The lines behind the first have the numbers of the request.
        let description = text("error_description").lines().next().unwrap_or_default();
        let parts = [text("error"), description];
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        let what = parts.fold(String::new(), |what, text| format!("{what}: {text}"));
        let advice = source.advice(text("error"), description);
        Err(TokenError::Refused { issuer, url: url.to_string(), status, what, advice })
    }

    async fn send(
        &self,
        source: &TokenSource,
        resource: &str,
    ) -> Result<(u16, Vec<u8>), TokenError> {
        let (issuer, url) = (source.issuer(), source.url());
        let Question { method, path, headers: own, body } = source.question(resource);
        let mut headers = HeaderMap::new();
        let value = |text: &str| HeaderValue::from_str(text).map_err(|_| source.nothing());
        headers.insert(HOST, value(&url.authority())?);
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        for (name, text) in own {
            let mut value = value(&text)?;
            value.set_sensitive(name != CONTENT_TYPE);
            headers.insert(name, value);
        }
        if method == Method::POST {
            headers.insert(CONTENT_LENGTH, value(&body.len().to_string())?);
        }
        let host = url.address();
        let proxy = match source {
            // An HTTP proxy gets a tunnel request, which is for TLS.
            TokenSource::Client { .. } if url.https => self.proxy.of(true, &host),
            _ => None,
        };
        let tls = self.tls.clone().filter(|_| url.https);
        let uri = path.parse().map_err(|_| source.nothing())?;
        let body = Pieces::new(&[Bytes::from(body)]);
        let mut answer = Vec::new();
        let sent = async {
            let route = Route { host, proxy, tls, http2: false, without_tls: WithoutTls::Http };
            let mut connection = Connection::open(&route, None, TIMEOUT).await?;
            connection.send(method, uri, headers, body, &mut answer, TIMEOUT).await
        };
        let (status, _) = sent.await.map_err(|error: ConnectionError| TokenError::Connection {
            issuer,
            url: url.to_string(),
            advice: match source {
                TokenSource::Client { .. } => "",
                TokenSource::Managed(_) => "; a managed identity works on hosts of Azure only",
            },
            source: Box::new(error),
        })?;
        Ok((status, answer))
    }
}

/// Numbers stand there as such or as texts.
fn token_of(json: &Value, now: Timestamp) -> Option<(Secret, Timestamp)> {
    let token = json["access_token"].as_str().filter(|text| !text.is_empty())?;
    let seconds = |name: &str| match &json[name] {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    let left = match (seconds("expires_in"), seconds("expires_on")) {
        (Some(seconds), _) => Duration::from_secs(seconds),
        (None, Some(at)) => {
            let now = u64::try_from(now.0 / 1_000_000_000).unwrap_or_default();
            Duration::from_secs(at.saturating_sub(now))
        }
        (None, None) => LIFETIME,
    };
    let left = i64::try_from(left.min(LIFETIME_MAX).as_nanos()).unwrap_or(i64::MAX);
    Some((Secret::new(token), Timestamp(now.0.saturating_add(left))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn managed(id: Option<&str>, all: &[(&str, &str)]) -> Result<TokenSource, String> {
        let find = |name: &str| {
            let found = all.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        ManagedIdentity::read(id.map(str::to_owned), find).map(TokenSource::Managed)
    }

    #[test]
    fn a_client_is_shown_by_its_secret() {
        let source = TokenSource::Client {
            authority: authority_host(|_| None).unwrap(),
            tenant: "a/b".to_owned(),
            id: "id".to_owned(),
            secret: Secret::new("s+&="),
        };
        let Question { path, body, .. } = source.question(STORAGE);
        assert_eq!(source.url().to_string(), "https://login.microsoftonline.com:443");
        assert_eq!(path, "/a%2Fb/oauth2/v2.0/token");
        let expected = "grant_type=client_credentials&client_id=id&client_secret=s%2B%26%3D&\
             scope=https%3A%2F%2Fstorage.azure.com%2F.default";
        assert_eq!(body, expected);
        assert!(!format!("{source:?}").contains("s+&="));
        let of = |text: &str| authority_host(|_| Some(text.to_owned()));
        assert!(of("login.partner.microsoftonline.cn").unwrap().https);
        assert!(of("ftp://x").unwrap_err().contains("AZURE_AUTHORITY_HOST"));
    }

    #[test]
    fn the_service_of_an_identity_is_that_of_the_environment() {
        let machine = managed(None, &[]).unwrap().question(STORAGE);
        let expected = "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3A%2F%2Fstorage.azure.com%2F";
        assert_eq!((&*machine.path, &*machine.headers[0].1), (expected, "true"));
        let app = [("IDENTITY_ENDPOINT", "http://h:1/msi/token"), ("IDENTITY_HEADER", "secret")];
        let app = managed(Some("a b"), &app).unwrap().question(STORAGE);
        assert!(app.path.starts_with("/msi/token?api-version=2019-08-01&"), "{}", app.path);
        assert!(app.path.ends_with("&client_id=a%20b"), "{}", app.path);
        let table: [(&[(&str, &str)], &str); 3] = [
            (&[("IDENTITY_ENDPOINT", "http://h"), ("IMDS_ENDPOINT", "http://h")], "Azure Arc"),
            (&[("MSI_ENDPOINT", "http://h")], "MSI_ENDPOINT"),
            (&[("IDENTITY_ENDPOINT", "x y"), ("IDENTITY_HEADER", "s")], "IDENTITY_ENDPOINT"),
        ];
        for (variables, expected) in table {
            let error = managed(None, variables).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_token_holds_as_long_as_the_answer_says() {
        let now = Timestamp(1_000_000_000_000);
        let table = [
            (json!({"access_token": "t", "expires_in": 3599}), Some(3599)),
            (json!({"access_token": "t", "expires_in": "60", "expires_on": "9999"}), Some(60)),
            (json!({"access_token": "t", "expires_on": "1100"}), Some(100)),
            (json!({"access_token": "t", "expires_on": "9"}), Some(0)),
            (json!({"access_token": "t", "expires_on": "soon"}), Some(600)),
            (json!({"access_token": "t", "expires_in": u64::MAX}), Some(86_400)),
            (json!({"access_token": ""}), None),
            (json!(null), None),
        ];
        for (answer, expected) in table {
            let found = token_of(&answer, now);
            let left = found.map(|(_, until)| (until.0 - now.0) / 1_000_000_000);
            assert_eq!(left, expected, "{answer}");
        }
    }
}
