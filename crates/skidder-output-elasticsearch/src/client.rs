//! One worker's connection to one server: connects, asks for its version, sends bulk requests.

use super::answer::AnswerError;
use super::manage::Asking;
use super::request::Request;
use super::server::{ServerInfo, Target};
use super::setup::{Installer, PipelineLoader, SetupError};
use http::Method;
use skidder_net::{
    ANSWER_KEPT_BYTES_MAX, Connection, ConnectionError, Pieces, Route, WithoutTls, excerpt,
    plain_remedy,
};
use skidder_os::{Clock, Monotonic};
use skidder_pipeline::OutputMetrics;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of an answer that a message shows.
const SHOWN_BYTES_MAX: usize = 512;

/// Why a request was not taken. In every case it is sent again, later.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    #[error("the server answered {status}{}", suffix(.answer))]
    Status { status: u16, answer: String },
    #[error("the server refused the credentials ({status}){}; {}", suffix(.answer), credentials_remedy(*.status))]
    Credentials { status: u16, answer: String },
    #[error("{}{}", .0, plain_remedy(WithoutTls::Http, false))]
    Plain(ConnectionError),
    #[error("the server answered {status}, but {error}")]
    Unreadable { status: u16, error: AnswerError },
    #[error(
        "the server answers, but not as Elasticsearch or OpenSearch do: {0}; is `hosts` right, and is there no other \
         program at this port?"
    )]
    NotElasticsearch(serde_json::Error),
    #[error(transparent)]
    Setup(#[from] SetupError<ConnectionError>),
    #[error("the server has version {theirs}, older than {ours}; see `allow_older_versions`")]
    TooOld { theirs: String, ours: String },
}

/// The text of an answer, after its status.
fn suffix(answer: &str) -> String {
    if answer.is_empty() { String::new() } else { format!(": {answer}") }
}

fn credentials_remedy(status: u16) -> &'static str {
    match status {
        401 => "see `username`, `password`, `api_key` and `kerberos`",
        _ => {
            "the user may not do this: give it the cluster privilege `monitor`, and `create_doc` for the index"
        }
    }
}

impl Failure {
    /// A server that was greeted gave no answer.
    pub(crate) fn greeting(error: ConnectionError, https: bool) -> Self {
        match error {
            ConnectionError::Broken(_) if !https => Self::Plain(error),
            error => error.into(),
        }
    }

    /// An answer that is no success.
    pub(crate) fn status(status: u16, answer: &[u8]) -> Self {
        let answer = excerpt(answer, SHOWN_BYTES_MAX);
        match status {
            401 | 403 => Self::Credentials { status, answer },
            _ => Self::Status { status, answer },
        }
    }
}

/// See the module's text.
pub(crate) struct Client {
    pub(crate) target: Arc<Target>,
    pub(crate) route: Route,
    pub(crate) timeout: Duration,
    /// The setup of the server before events come.
    pub(crate) installer: Option<Arc<Installer>>,
    /// Ingest pipelines that events may name.
    pub(crate) pipelines: Option<Arc<PipelineLoader>>,
    pub(crate) idle: Duration,
    /// Version below which a server is refused.
    pub(crate) version_min: Option<String>,
    pub(crate) metrics: Arc<OutputMetrics>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) connection: Option<Connection>,
    pub(crate) last_used: Monotonic,
    /// Name and version of the server; unknown at first and after the connection failed.
    pub(crate) known: Option<ServerInfo>,
    /// The last logged one, so that it is not logged again.
    pub(crate) logged: Option<ServerInfo>,
    pub(crate) answer: Vec<u8>,
}

impl Client {
    /// The last answer.
    pub(crate) fn answer(&self) -> &[u8] {
        &self.answer
    }

    /// Closes the connection; name and version of the server stay known.
    pub(crate) fn close(&mut self) {
        self.connection = None;
    }

    fn lacks_pipelines(&self) -> bool {
        self.pipelines.as_ref().is_some_and(|pipelines| pipelines.is_due(self.clock.monotonic()))
    }

    /// Asks the server for name and version, unless they are known, and sets up what it lacks.
    pub(crate) async fn greet(&mut self) -> Result<(), Failure> {
        if self.known.is_some() && !self.lacks_pipelines() {
            return Ok(());
        }
        self.connection = None;
        let mut connection = self.open().await?;
        let (status, _) = connection
            .send(
                Method::GET,
                self.target.root.clone(),
                self.target.get_headers(),
                Pieces::new(&[]),
                &mut self.answer,
                self.timeout,
            )
            .await
            .map_err(|error| Failure::greeting(error, self.target.host.https))?;
        if !(200..300).contains(&status) {
            return Err(Failure::status(status, &self.answer));
        }
        let info = ServerInfo::read(&self.answer).map_err(Failure::NotElasticsearch)?;
        if let Some(ours) = &self.version_min
            && info.is_older_than(ours)
        {
            return Err(Failure::TooOld { theirs: info.version, ours: ours.clone() });
        }
        if let Some(installer) = &self.installer {
            let (target, timeout) = (&*self.target, self.timeout);
            let mut asking = Asking { connection: &mut connection, target, timeout };
            installer.once(&info, &mut asking).await?;
        }
        if let Some(pipelines) = &self.pipelines {
            let (target, timeout) = (&*self.target, self.timeout);
            let mut asking = Asking { connection: &mut connection, target, timeout };
            let (clock, metrics) = (&*self.clock, &*self.metrics);
            pipelines.load_due(&info, &mut asking, clock, metrics).await?;
        }
        if self.logged.as_ref() != Some(&info) {
            let host = &self.target.host;
            let flavour = info.flavour.name();
            tracing::info!(%host, version = info.version, flavour, "connected to the server");
            self.logged = Some(info.clone());
        }
        self.known = Some(info);
        self.connection = Some(connection);
        self.last_used = self.clock.monotonic();
        Ok(())
    }

    /// Sends a request and reads the answer; gives its status.
    pub(crate) async fn bulk(&mut self, request: &Request) -> Result<u16, Failure> {
        // A reload may have brought inputs whose events name other pipelines.
        if self.lacks_pipelines() {
            self.greet().await?;
        }
        let started = self.clock.monotonic();
        let stale = started.since(self.last_used) > self.idle;
        if self.connection.as_ref().is_some_and(|open| stale || !open.is_open()) {
            self.connection = None;
        }
        loop {
            let mut connection = match self.connection.take() {
                Some(connection) => connection,
                None => self.open().await.inspect_err(|_| self.known = None)?,
            };
            let was_used = connection.is_used();
            let sent = connection
                .send(
                    Method::POST,
                    self.target.bulk.clone(),
                    self.target.bulk_headers(request.gzip.then_some(request.plain_bytes)),
                    Pieces::new(&request.body),
                    &mut self.answer,
                    self.timeout,
                )
                .await;
            match sent {
                Ok((status, _)) => {
                    let now = self.clock.monotonic();
                    self.last_used = now;
                    self.connection = Some(connection);
                    self.metrics.write_bytes.add(request.body_bytes());
                    self.metrics.read_bytes.add(self.answer.len() as u64);
                    self.metrics.latency_ns.add(now.since(started).as_nanos() as u64);
                    self.answer.shrink_to(ANSWER_KEPT_BYTES_MAX);
                    return Ok(status);
                }
                // The server closed the connection while it was idle: no failure, but a new one.
                Err(ConnectionError::Broken(_)) if was_used => {}
                Err(error) => {
                    self.known = None;
                    return Err(error.into());
                }
            }
        }
    }

    async fn open(&self) -> Result<Connection, ConnectionError> {
        Connection::open(&self.route, self.target.login.clone(), self.timeout).await
    }
}
