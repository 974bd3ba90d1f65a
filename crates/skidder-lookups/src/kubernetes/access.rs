//! How the API server is reached: from inside of the cluster, or as configured in a kubeconfig file.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;
use skidder_config::{Problems, Section, Settings as Tree};
use skidder_net::{AnswerStream, HttpClient, HttpError, HttpRequest};
use skidder_os::{Fs, read_to_end};
use skidder_tls::{Pem, TlsClient, TlsSettings, VerificationMode};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The folder with a pod's credentials for the API.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Largest token and configuration that are read.
const FILE_BYTES_MAX: usize = 1 << 20;

/// Requests to the API end after this time.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The login at the server.
#[derive(Clone)]
enum Login {
    Anonymous,
    Token(String),
    /// Read again for each request: Kubernetes replaces it.
    TokenFile(PathBuf),
}

/// The way to the API server.
#[derive(Clone)]
pub struct Access {
    server: HttpClient,
    login: Login,
    fs: Arc<dyn Fs>,
    /// As it was given.
    pub url: String,
    /// The cluster's name in the kubeconfig.
    pub cluster: Option<String>,
    /// The namespace this program is in, if it runs in a pod.
    pub own_namespace: Option<String>,
}

impl fmt::Debug for Access {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Access").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Access {
    /// From `kube_config`; without one, as a pod of the cluster. The error is why neither is possible.
    pub fn find(kube_config: Option<&str>, fs: &Arc<dyn Fs>) -> Result<Self, String> {
        match kube_config {
            Some(path) => Self::from_file(Path::new(path), fs),
            None => match std::env::var("KUBECONFIG") {
                // As in Filebeat, if there is such a file.
                Ok(path) if fs.metadata(Path::new(&path)).is_ok() => {
                    Self::from_file(Path::new(&path), fs)
                }
                _ => Self::in_cluster(fs),
            },
        }
    }

    fn in_cluster(fs: &Arc<dyn Fs>) -> Result<Self, String> {
        let variable = |name: &str| {
            std::env::var(name).map_err(|_| {
                format!("this is no pod of a cluster (`{name}` is not set) and no `kube_config` is given")
            })
        };
        let host = variable("KUBERNETES_SERVICE_HOST")?;
        let port = variable("KUBERNETES_SERVICE_PORT")?;
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        let url = format!("https://{host}:{port}");
        let account = Path::new(ACCOUNT);
        let tls = TlsSettings {
            certificate_authorities: vec![Pem::File(account.join("ca.crt"))],
            ..TlsSettings::default()
        };
        let own_namespace = text_of(&**fs, &account.join("namespace")).ok();
        let login = Login::TokenFile(account.join("token"));
        Self::new(url, &tls, login, fs).map(|access| Self { own_namespace, ..access })
    }

    fn new(url: String, tls: &TlsSettings, login: Login, fs: &Arc<dyn Fs>) -> Result<Self, String> {
        let config = if url.starts_with("https://") {
            Some(TlsClient::new(tls, Arc::clone(fs)).map_err(|error| error.to_string())?)
        } else {
            None
        };
        let server = HttpClient::parse(&url, config, TIMEOUT)?;
        let fs = Arc::clone(fs);
        Ok(Self { server, login, fs, url, cluster: None, own_namespace: None })
    }

    /// The current context of a kubeconfig file.
    fn from_file(path: &Path, fs: &Arc<dyn Fs>) -> Result<Self, String> {
        let name = path.display().to_string();
        let text = text_of(&**fs, path).map_err(|error| format!("`{name}`: {error}"))?;
        let tree = Tree::parse(&name, &text).map_err(|problems| problems.to_string())?;
        let problems = Problems::new();
        let root = tree.root(&problems);
        let current = root.string("current-context").or(String::new());
        let context = named(&root, "contexts", &current, "context");
        let context = context.ok_or(format!("`{name}` has no context `{current}`"))?;
        let cluster_name = context.string("cluster").or(String::new());
        let user_name = context.string("user").or(String::new());
        context.skip();
        let cluster = named(&root, "clusters", &cluster_name, "cluster");
        let cluster = cluster.ok_or(format!("`{name}` has no cluster `{cluster_name}`"))?;
        let folder = path.parent().unwrap_or(Path::new("/"));
        let url = cluster.string("server").or(String::new());
        let mut tls = TlsSettings::default();
        tls.certificate_authorities.extend(
            pem(&cluster, "certificate-authority", folder).map_err(|e| format!("`{name}`: {e}"))?,
        );
        if cluster.bool("insecure-skip-tls-verify").or(false) {
            tls.verification_mode = VerificationMode::None;
        }
        cluster.skip();
        let mut login = Login::Anonymous;
        if let Some(user) = named(&root, "users", &user_name, "user") {
            let of = |key| pem(&user, key, folder).map_err(|e| format!("`{name}`: {e}"));
            if let (Some(certificate), Some(key)) = (of("client-certificate")?, of("client-key")?) {
                tls.identity = Some((certificate, key));
            }
            if let Some(token) = user.string("token").optional() {
                login = Login::Token(token);
            } else if let Some(file) = user.string("tokenFile").optional() {
                login = Login::TokenFile(folder.join(file));
            } else if user.has("exec") || user.has("auth-provider") {
                user.skip();
                root.skip();
                return Err(format!(
                    "`{name}`: programs that give credentials (`exec`, `auth-provider`) are not \
                     supported; use a token or a certificate"
                ));
            }
            user.skip();
        }
        root.skip();
        let access =
            Self::new(url, &tls, login, fs).map_err(|error| format!("`{name}`: {error}"))?;
        Ok(Self { cluster: Some(cluster_name).filter(|name| !name.is_empty()), ..access })
    }

    /// Requests an object.
    pub async fn json(&self, path: &str) -> Result<Json, HttpError> {
        let token = self.token();
        let headers = headers(&token);
        self.server.json(HttpRequest::get(path).headers(&headers)).await.map_err(explained)
    }

    /// Requests an object or a list, as text.
    pub(super) async fn bytes(&self, path: &str) -> Result<Vec<u8>, HttpError> {
        let token = self.token();
        let headers = headers(&token);
        self.server.ask(HttpRequest::get(path).headers(&headers)).await.map_err(explained)
    }

    /// Creates an object below the path of its list.
    pub async fn create(&self, path: &str, object: &Json) -> Result<Json, HttpError> {
        let (token, body) = (self.token(), object.to_string());
        let headers = headers_of_json(&token);
        self.server.json(HttpRequest::post(path, &body).headers(&headers)).await.map_err(explained)
    }

    /// Replaces an object; fails if it is another version than there.
    pub async fn replace(&self, path: &str, object: &Json) -> Result<Json, HttpError> {
        let (token, body) = (self.token(), object.to_string());
        let headers = headers_of_json(&token);
        self.server.json(HttpRequest::put(path, &body).headers(&headers)).await.map_err(explained)
    }

    /// Begins a watch.
    pub async fn open(&self, path: &str) -> Result<AnswerStream, HttpError> {
        let token = self.token();
        let headers = headers(&token);
        self.server.open(HttpRequest::get(path).headers(&headers)).await.map_err(explained)
    }

    /// The value of the header `authorization`; empty without one.
    fn token(&self) -> String {
        let token = match &self.login {
            Login::Anonymous => return String::new(),
            Login::Token(token) => token.clone(),
            Login::TokenFile(path) => match text_of(&*self.fs, path) {
                Ok(token) => token,
                Err(error) => {
                    tracing::warn!(path = %path.display(), error, "the token of Kubernetes cannot be read");
                    return String::new();
                }
            },
        };
        format!("Bearer {}", token.trim())
    }
}

/// An error with only the message of the server's object of kind `Status`, which names the right that is missing.
fn explained(error: HttpError) -> HttpError {
    match error {
        HttpError::Status { status, body } => {
            let body = message_of(&body).unwrap_or(body);
            HttpError::Status { status, body }
        }
        other => other,
    }
}

/// The text behind `"message":`. The body may be cut off behind it.
fn message_of(body: &str) -> Option<String> {
    let (_, rest) = body.split_once("\"message\":")?;
    serde_json::Deserializer::from_str(rest).into_iter::<String>().next()?.ok()
}

fn headers(token: &str) -> Vec<(&'static str, &str)> {
    let mut headers = vec![("accept", "application/json")];
    if !token.is_empty() {
        headers.push(("authorization", token));
    }
    headers
}

fn headers_of_json(token: &str) -> Vec<(&'static str, &str)> {
    let mut headers = headers(token);
    headers.push(("content-type", "application/json"));
    headers
}

fn text_of(fs: &dyn Fs, path: &Path) -> Result<String, String> {
    let file = fs.open(path).map_err(|error| error.to_string())?;
    let bytes = read_to_end(&*file, FILE_BYTES_MAX).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map(|text| text.trim().to_owned()).map_err(|error| error.to_string())
}

/// The section `inner` of the entry with a name in a list of a kubeconfig.
fn named<'a>(root: &Section<'a>, list: &str, name: &str, inner: &str) -> Option<Section<'a>> {
    let mut found = None;
    for entry in root.sections(list) {
        if entry.string("name").or(String::new()) == name {
            found = Some(entry.section(inner));
        }
        entry.skip();
    }
    found
}

/// `key-data` in base64, or the file at `key`.
fn pem(section: &Section<'_>, key: &str, folder: &Path) -> Result<Option<Pem>, String> {
    if let Some(data) = section.string(&format!("{key}-data")).optional() {
        let bytes =
            STANDARD.decode(data.trim()).map_err(|_| format!("`{key}-data` is no base64"))?;
        let text = String::from_utf8(bytes).map_err(|_| format!("`{key}-data` is no PEM"))?;
        return Ok(Some(Pem::Inline(text)));
    }
    Ok(section.string(key).optional().map(|path| Pem::File(folder.join(path))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_reported_with_the_message_of_the_server() {
        let message = "pods is forbidden: User \"x\" cannot list resource \"pods\"";
        let whole =
            serde_json::json!({"kind": "Status", "message": message, "reason": "Forbidden"});
        let whole = whole.to_string();
        let begin = whole.find(",\"reason\"").unwrap();
        for body in [&whole, &whole[..begin], &whole[..begin + 5]] {
            assert_eq!(message_of(body).as_deref(), Some(message), "{body}");
        }
        for body in ["", "not found", "{\"message\":7}", &whole[..begin - 3]] {
            assert_eq!(message_of(body), None, "{body}");
        }
    }
}
