//! The way to the server: connections, and what each call has besides its message.

use crate::settings::Settings;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use prost::Message;
use skidder_grpc::{CallError, Channel, Code};
use skidder_net::{ConnectionError, percent_encoded};
use skidder_os::Clock;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// Of connecting, and of an answer.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

/// By it the server finds the way to the machines that have the subscription.
const ROUTING: HeaderName = HeaderName::from_static("x-goog-request-params");

/// The server.
pub(crate) struct Server {
    pub(crate) settings: Arc<Settings>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// Why a call has no answer.
#[derive(Debug)]
pub(crate) enum AskError {
    Call(CallError),
    /// There is no access token.
    Token(String),
}

impl From<ConnectionError> for AskError {
    fn from(error: ConnectionError) -> Self {
        Self::Call(error.into())
    }
}

impl Server {
    /// Opens a connection.
    pub(crate) async fn open(&self) -> Result<Channel, ConnectionError> {
        let Settings { route, origin, .. } = &*self.settings;
        Channel::open(route, origin, TIMEOUT).await
    }

    /// The headers of a call about `name`, which its message has as `field`.
    pub(crate) async fn headers(&self, field: &str, name: &str) -> Result<HeaderMap, AskError> {
        let mut headers = HeaderMap::new();
        let routing = HeaderValue::try_from(format!("{field}={}", percent_encoded(name)));
        headers.insert(ROUTING, routing.map_err(|error| AskError::Token(error.to_string()))?);
        // It is kept: few calls wait for a new one.
        let login = self.settings.login.header(&self.clock);
        let token = tokio::time::timeout(TIMEOUT, login).await;
        let late = || Err(format!("it did not come within {} s", TIMEOUT.as_secs()));
        if let Some(token) = token.unwrap_or_else(|_| late()).map_err(AskError::Token)? {
            headers.insert(AUTHORIZATION, token);
        }
        Ok(headers)
    }

    /// Sends a message over a connection, and returns the answer.
    pub(crate) async fn call<A: Message + Default>(
        &self,
        channel: &Channel,
        path: &str,
        about: (&str, &str),
        message: &impl Message,
    ) -> Result<A, AskError> {
        let headers = self.headers(about.0, about.1).await?;
        let answer = channel.call(path, &headers, message, TIMEOUT).await;
        if let Err(error) = &answer {
            self.note_refusal(error, &headers).await;
        }
        answer.map_err(AskError::Call)
    }

    /// A call with these headers failed: if its token was refused, the next one is new.
    pub(crate) async fn note_refusal(&self, error: &CallError, headers: &HeaderMap) {
        if error.code() == Some(Code::Unauthenticated) {
            self.settings.login.refused(headers).await;
        }
    }
}

/// A connection for calls, which is opened when it is needed.
pub(crate) struct Link {
    server: Arc<Server>,
    channel: Mutex<Option<Channel>>,
}

impl Link {
    pub(crate) fn new(server: Arc<Server>) -> Self {
        Self { server, channel: Mutex::new(None) }
    }

    async fn channel(&self) -> Result<Channel, ConnectionError> {
        let mut channel = self.channel.lock().await;
        if let Some(open) = channel.as_ref().filter(|channel| channel.is_open()) {
            return Ok(open.clone());
        }
        let open = self.server.open().await?;
        *channel = Some(open.clone());
        Ok(open)
    }

    /// Sends a message about `about.1`, and returns the answer.
    pub(crate) async fn call<A: Message + Default>(
        &self,
        path: &str,
        about: (&str, &str),
        message: &impl Message,
    ) -> Result<A, AskError> {
        let channel = self.channel().await?;
        let answer = self.server.call(&channel, path, about, message).await;
        if let Err(AskError::Call(error)) = &answer
            && !error.keeps_connection()
        {
            // Others that use it find out by themselves.
            *self.channel.lock().await = None;
        }
        answer
    }
}
