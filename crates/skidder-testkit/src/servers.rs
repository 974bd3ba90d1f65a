//! Real servers for tests: Elasticsearch, with and without security, OpenSearch, OpenLDAP, and others
//! (`servers/plain.rs`).
//!
//! `cargo xtask test` starts one of each for the whole run and sets their URLs in environment
//! variables. A test that runs without them starts a server of its own with the scripts in
//! `tests/servers` and stops it at the end, which takes ten seconds or more. Tests that call these
//! are `#[ignore]`d; since they share the servers, each uses index names of its own
//! ([`unique_name`]).

use base64::Engine;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::Value;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The user of the secure server, who may do everything, and the password.
pub const USER: (&str, &str) = ("elastic", "secret");
/// Bound on each read and write, so that a stuck server fails a test and does not hang it.
const TIMEOUT: Duration = Duration::from_mins(1);
/// Hits that [`Server::search`] returns at most; the servers' own limit.
const HITS_MAX: u32 = 10_000;

mod kerberos;
mod plain;

/// Why a server could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The script did not start it; its words say what is missing.
    #[error("`{script}` did not start a server: {said}")]
    Start {
        /// The script in `tests/servers`.
        script: &'static str,
        /// What it printed.
        said: String,
    },
    /// The connection failed: look at the server's log.
    #[error("`{url}` cannot be reached")]
    Connection {
        /// The URL of the server.
        url: String,
        /// The system's error.
        source: io::Error,
    },
    /// The server answered something that is not HTTP with JSON.
    #[error("`{url}` answered nonsense: {what}")]
    Nonsense {
        /// The URL of the request.
        url: String,
        /// What was expected.
        what: String,
    },
    /// The server refused.
    #[error("{method} `{url}` was answered {status}: {body}")]
    Status {
        /// The method of the request.
        method: &'static str,
        /// The URL of the request.
        url: String,
        /// The HTTP status.
        status: u16,
        /// The answer's body.
        body: Value,
    },
}

/// An answer, whatever its status.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body; `null` when it is empty.
    pub body: Value,
}

/// A running server. One that was started for this value is stopped with it.
#[derive(Debug)]
pub struct Server {
    url: String,
    host: String,
    port: u16,
    certificates: Option<PathBuf>,
    own: Option<Own>,
}

/// A server that a script started for one test.
#[derive(Debug)]
struct Own {
    script: &'static str,
    directory: tempfile::TempDir,
}

impl Drop for Own {
    fn drop(&mut self) {
        let stopped = script(self.script).arg("stop").arg(self.directory.path()).status();
        assert!(
            std::thread::panicking() || stopped.is_ok_and(|status| status.success()),
            "cannot stop the server of {}",
            self.script
        );
    }
}

impl Server {
    /// Elasticsearch 9.5, without security.
    pub fn elasticsearch() -> Result<Self, ServerError> {
        Self::given_or_started("SKIDDER_TEST_ELASTICSEARCH", "elasticsearch.sh", false)
    }

    /// Elasticsearch 9.5 over TLS with users and API keys; see [`USER`] and [`Server::certificate`].
    pub fn elasticsearch_secure() -> Result<Self, ServerError> {
        Self::given_or_started("SKIDDER_TEST_ELASTICSEARCH_SECURE", "elasticsearch.sh", true)
    }

    /// OpenSearch 3, without security.
    pub fn opensearch() -> Result<Self, ServerError> {
        Self::given_or_started("SKIDDER_TEST_OPENSEARCH", "opensearch.sh", false)
    }

    /// OpenLDAP with the people of `tests/servers/openldap`; only its URL is of use here.
    pub fn openldap() -> Result<Self, ServerError> {
        Self::given_or_started("SKIDDER_TEST_OPENLDAP", "openldap.sh", false)
    }

    /// The same over TLS, for one test; see [`Server::certificate`].
    pub fn openldap_secure() -> Result<Self, ServerError> {
        Self::start("openldap.sh", true, "")
    }

    /// The folder of a server of the test's own.
    pub fn folder(&self) -> &Path {
        self.own.as_ref().expect("only a server of the test's own has one").directory.path()
    }

    /// Elasticsearch 9.5, without security, for one test: with settings (`NAME=VALUE`, separated by
    /// spaces) that no other test sees, and to be stopped and started at will.
    pub fn own_elasticsearch(settings: &str) -> Result<Self, ServerError> {
        Self::start("elasticsearch.sh", false, settings)
    }

    /// Stops a server of the test's own; its data stays.
    pub fn stop(&self) -> Result<(), ServerError> {
        self.perform("stop")
    }

    /// Starts a server that was stopped, at the same address with the same data.
    pub fn start_again(&self) -> Result<(), ServerError> {
        self.perform("again")
    }

    fn perform(&self, action: &str) -> Result<(), ServerError> {
        let own = self.own.as_ref().expect("only a server of the test's own is stopped");
        let failed = |said: String| ServerError::Start { script: own.script, said };
        let mut command = script(own.script);
        command.arg(action).arg(own.directory.path()).stdin(Stdio::null());
        let output = command.output().map_err(|error| failed(error.to_string()))?;
        if output.status.success() {
            return Ok(());
        }
        Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()))
    }

    fn given_or_started(
        variable: &str,
        script: &'static str,
        secure: bool,
    ) -> Result<Self, ServerError> {
        match std::env::var(variable) {
            Ok(url) => {
                let folder = std::env::var_os("SKIDDER_TEST_CERTIFICATES").map(PathBuf::from);
                Self::at(url, folder.filter(|_| secure), None)
            }
            Err(_) => Self::start(script, secure, ""),
        }
    }

    fn start(name: &'static str, secure: bool, settings: &str) -> Result<Self, ServerError> {
        Self::start_with(name, secure, &[("SETTINGS", OsStr::new(settings))])
    }

    /// The same with these variables for the script.
    fn start_with(
        name: &'static str,
        secure: bool,
        variables: &[(&str, &OsStr)],
    ) -> Result<Self, ServerError> {
        let failed = |said: String| ServerError::Start { script: name, said };
        let directory = tempfile::tempdir().map_err(|error| failed(error.to_string()))?;
        let certificates = secure.then(|| directory.path().join("certs"));
        let mut command = script(name);
        command.arg("start").arg(directory.path()).arg("0");
        command.env("SECURITY", if secure { "1" } else { "0" }).stdin(Stdio::null());
        command.envs(variables.iter().copied());
        // From here on the script's `stop` runs whatever happens.
        let own = Own { script: name, directory };
        let output = command.output().map_err(|error| failed(error.to_string()))?;
        let said = String::from_utf8_lossy(&output.stdout);
        match said.split_whitespace().find_map(|word| word.strip_prefix("url=")) {
            Some(url) if output.status.success() => {
                Self::at(url.to_owned(), certificates, Some(own))
            }
            _ => Err(failed(String::from_utf8_lossy(&output.stderr).into_owned())),
        }
    }

    /// A server that runs already, without TLS.
    pub fn at_url(url: &str) -> Result<Self, ServerError> {
        Self::at(url.to_owned(), None, None)
    }

    fn at(
        url: String,
        certificates: Option<PathBuf>,
        own: Option<Own>,
    ) -> Result<Self, ServerError> {
        let authority = url.split_once("://").map(|(_, rest)| rest.trim_end_matches('/'));
        let parts = authority.and_then(|authority| authority.rsplit_once(':'));
        let parsed = parts.and_then(|(host, port)| Some((host.to_owned(), port.parse().ok()?)));
        let Some((host, port)) = parsed else {
            let what = "expected `scheme://host:port`".to_owned();
            return Err(ServerError::Nonsense { url, what });
        };
        Ok(Self { url, host, port, certificates, own })
    }

    /// `http://` or `https://`, host and port, without a slash at the end.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Whether this value started the server and will stop it.
    pub fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// A file made by `tests/servers/certs.sh`: `ca.crt`, `client.crt`, `client.key`, `other-ca.crt`
    /// and more. `None` for a server without TLS.
    pub fn certificate(&self, name: &str) -> Option<PathBuf> {
        self.certificates.as_ref().map(|folder| folder.join(name))
    }

    /// Sends a request, with a JSON body if there is one, and returns the answer whatever its status.
    pub fn request(
        &self,
        method: &'static str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, ServerError> {
        let text = body.map(Value::to_string).unwrap_or_default();
        self.exchange(method, path, &text)
    }

    /// `GET`; a status of 300 or more is an error.
    pub fn get(&self, path: &str) -> Result<Value, ServerError> {
        self.successful("GET", path, None)
    }

    /// `POST` of JSON; a status of 300 or more is an error.
    pub fn post(&self, path: &str, body: &Value) -> Result<Value, ServerError> {
        self.successful("POST", path, Some(body))
    }

    /// `PUT` of JSON; a status of 300 or more is an error.
    pub fn put(&self, path: &str, body: &Value) -> Result<Value, ServerError> {
        self.successful("PUT", path, Some(body))
    }

    /// Makes everything that was indexed visible to searches.
    pub fn refresh(&self, index: &str) -> Result<(), ServerError> {
        self.successful("POST", &format!("/{index}/_refresh"), None).map(|_| ())
    }

    /// Number of documents in an index or data stream, after a refresh.
    pub fn count(&self, index: &str) -> Result<u64, ServerError> {
        self.refresh(index)?;
        let path = format!("/{index}/_count");
        let answer = self.get(&path)?;
        answer["count"].as_u64().ok_or_else(|| self.nonsense(&path, "expected `count`"))
    }

    /// The documents that match `query` (for all: `json!({"match_all": {}})`), after a refresh, in no
    /// particular order. More than 10,000 are an error, since a server gives no more at once: what is left out would look
    /// lost.
    pub fn search(&self, index: &str, query: &Value) -> Result<Vec<Value>, ServerError> {
        self.refresh(index)?;
        let path = format!("/{index}/_search");
        let asked =
            serde_json::json!({ "size": HITS_MAX, "query": query, "track_total_hits": true });
        let mut answer = self.post(&path, &asked)?;
        if answer["hits"]["total"]["value"].as_u64().is_none_or(|total| total > HITS_MAX.into()) {
            return Err(self.nonsense(&path, "expected at most 10,000 `hits.total.value`"));
        }
        let Some(hits) = answer["hits"]["hits"].as_array_mut() else {
            return Err(self.nonsense(&path, "expected `hits.hits`"));
        };
        Ok(hits.iter_mut().map(|hit| hit["_source"].take()).collect())
    }

    fn successful(
        &self,
        method: &'static str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, ServerError> {
        let Answer { status, body } = self.request(method, path, body)?;
        if status >= 300 {
            return Err(ServerError::Status { method, url: self.full(path), status, body });
        }
        Ok(body)
    }

    fn full(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    fn nonsense(&self, path: &str, what: &str) -> ServerError {
        ServerError::Nonsense { url: self.full(path), what: what.to_owned() }
    }

    /// Sends a request with these headers; returns status and body, whatever they are.
    pub fn text(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<(u16, String), ServerError> {
        let (status, body) = self.bytes(method, path, headers, body)?;
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }

    fn exchange(&self, method: &str, path: &str, body: &str) -> Result<Answer, ServerError> {
        let mut headers = Vec::new();
        if !body.is_empty() {
            headers.push(("content-type", "application/json"));
        }
        let (user, password) = USER;
        let encoded =
            base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
        let login = format!("Basic {encoded}");
        if self.certificates.is_some() {
            headers.push(("authorization", &login));
        }
        let (status, body) = self.bytes(method, path, &headers, body)?;
        if body.is_empty() {
            return Ok(Answer { status, body: Value::Null });
        }
        let parsed = serde_json::from_slice(&body);
        let body = parsed.map_err(|error| self.nonsense(path, &error.to_string()))?;
        Ok(Answer { status, body })
    }

    /// One connection for each request: slow, and without state.
    fn bytes(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<(u16, Vec<u8>), ServerError> {
        let failed = |source| ServerError::Connection { url: self.url.clone(), source };
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}:{}\r\nconnection: close\r\ncontent-length: {}\r\n",
            self.host,
            self.port,
            body.len()
        );
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str(&format!("\r\n{body}"));
        let mut stream = self.connect().map_err(failed)?;
        stream.write_all(request.as_bytes()).map_err(failed)?;
        stream.flush().map_err(failed)?;
        read_answer(stream).map_err(failed)
    }

    fn connect(&self) -> io::Result<Box<dyn Stream>> {
        let stream = TcpStream::connect((self.host.as_str(), self.port))?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        let Some(folder) = &self.certificates else { return Ok(Box::new(stream)) };
        let config = tls(&folder.join("ca.crt"))?;
        let name = ServerName::try_from(self.host.clone()).map_err(io::Error::other)?;
        let connection = rustls::ClientConnection::new(config, name).map_err(io::Error::other)?;
        Ok(Box::new(rustls::StreamOwned::new(connection, stream)))
    }
}

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// Trusts one certificate authority and no other.
fn tls(authority: &Path) -> io::Result<Arc<rustls::ClientConfig>> {
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(authority).map_err(io::Error::other)? {
        roots.add(certificate.map_err(io::Error::other)?).map_err(io::Error::other)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

/// Status and body of an answer with a length, or that is chunked, or that ends with the
/// connection (RFC 9112, section 6.3).
fn read_answer(stream: impl Read) -> io::Result<(u16, Vec<u8>)> {
    let mut reader = BufReader::new(stream);
    let first = line(&mut reader)?;
    let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| invalid("no status"))?;
    let mut length = None;
    let mut chunked = false;
    loop {
        let header = line(&mut reader)?.to_ascii_lowercase();
        match header.split_once(':') {
            None => break,
            Some(("content-length", value)) => {
                length = Some(value.trim().parse().map_err(|_| invalid("no length"))?);
            }
            Some(("transfer-encoding", value)) => chunked = value.trim() == "chunked",
            Some(_) => {}
        }
    }
    let mut body = Vec::new();
    if chunked {
        loop {
            let size = line(&mut reader)?;
            let size = u64::from_str_radix(&size, 16).map_err(|_| invalid("no size"))?;
            append(&mut reader, size, &mut body)?;
            line(&mut reader)?;
            if size == 0 {
                break;
            }
        }
    } else if let Some(length) = length {
        append(&mut reader, length, &mut body)?;
    } else {
        reader.read_to_end(&mut body)?;
    }
    Ok((status, body))
}

fn append(reader: &mut impl Read, length: u64, body: &mut Vec<u8>) -> io::Result<()> {
    let before = body.len();
    reader.take(length).read_to_end(body)?;
    if (body.len() - before) as u64 == length {
        Ok(())
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

fn line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

pub(crate) fn script(name: &str) -> Command {
    Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/servers").join(name))
}

/// A free port of this machine.
pub fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// A name for an index that no other test of this run uses.
pub fn unique_name(prefix: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{prefix}-{}-{number}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_framing_of_an_answer_gives_the_same_body() {
        for rest in [
            "Content-Length: 2\r\n\r\n{}more",
            "transfer-encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
            "x: y\r\n\r\n{}",
        ] {
            let answer = format!("HTTP/1.1 201 Created\r\n{rest}");
            assert_eq!(read_answer(answer.as_bytes()).unwrap(), (201, b"{}".to_vec()), "{rest}");
        }
        assert!(read_answer(&b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}"[..]).is_err());
    }

    #[test]
    fn names_are_used_once() {
        assert_ne!(unique_name("a"), unique_name("a"));
    }

    /// What each of the servers must be able to do for the tests of the outputs.
    fn stores_and_finds(server: &Server) {
        let index = unique_name("testkit");
        let path = format!("/{index}/_doc");
        server.post(&path, &json!({ "message": "one", "number": 1 })).unwrap();
        server.post(&path, &json!({ "message": "two", "number": 2 })).unwrap();
        assert_eq!(server.count(&index).unwrap(), 2);
        let found = server.search(&index, &json!({ "match": { "message": "two" } })).unwrap();
        assert_eq!(found, [json!({ "message": "two", "number": 2 })]);
        let refused = server.get("/no-such-index/_count").unwrap_err();
        assert!(matches!(refused, ServerError::Status { status: 404, .. }), "{refused}");
    }

    #[test]
    #[ignore = "needs Elasticsearch"]
    fn elasticsearch_stores_and_finds() {
        stores_and_finds(&Server::elasticsearch().unwrap());
    }

    #[test]
    #[ignore = "needs Elasticsearch"]
    fn secure_elasticsearch_stores_and_finds_and_makes_api_keys() {
        let server = Server::elasticsearch_secure().unwrap();
        stores_and_finds(&server);
        let key = server.post("/_security/api_key", &json!({ "name": "testkit" })).unwrap();
        assert!(key["encoded"].is_string(), "{key}");
    }

    #[test]
    #[ignore = "needs OpenSearch"]
    fn opensearch_stores_and_finds() {
        stores_and_finds(&Server::opensearch().unwrap());
    }
}
