//! Requests to a service over kept connections, shared by all workers of an input.
//!
//! A request that a token is refused for is sent once more with another one; what may pass is tried again as [`Retry`] says.

use crate::refused::Refused;
use crate::source::Source;
use crate::tokens::{TokenError, Tokens};
use http::header::AUTHORIZATION;
use http::{HeaderMap, Uri};
use skidder_net::ConnectionError;
use skidder_net::cloud::{self, Ask, Meter, RefusedAnswer, Sender, Signer, SignerFuture, Target};
use skidder_os::Clock;
use skidder_tls::TlsClient;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a piece of an answer at most.
pub(crate) const PIECE_BYTES: usize = 64 << 10;

/// Why a request was not taken.
pub type Failure = cloud::Failure<TokenError, Refused>;
/// The beginning of a good answer.
pub(crate) type Opened = cloud::Opened<Arc<Sender<Service>>>;

/// How requests are repeated that may pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retry {
    /// Tries in all, at least 1.
    pub attempts: u32,
    /// The pause behind the first one.
    pub first: Duration,
    /// The longest pause.
    pub longest: Duration,
    /// Each pause is that many times as long as the one before; at least 1.
    pub factor: f64,
}

impl Retry {
    /// The pause behind try number `number`, which begins at 1. A longer one that the server wants wins.
    fn pause(&self, number: u32, wanted: Option<Duration>) -> Duration {
        let factor = self.factor.powi(i32::try_from(number.saturating_sub(1)).unwrap_or(i32::MAX));
        let seconds = (self.first.as_secs_f64() * factor).min(self.longest.as_secs_f64());
        let pause = Duration::try_from_secs_f64(seconds).unwrap_or(self.longest);
        pause.max(wanted.unwrap_or_default().min(self.longest))
    }
}

/// A service and how to get there.
#[derive(Clone, Debug)]
pub struct Service {
    /// Where it is; paths of requests stand behind its path.
    pub target: Arc<Target>,
    /// For a server with TLS, whose absence there is a mistake of the configuration.
    pub tls: Option<Arc<TlsClient>>,
    /// Gives tokens.
    pub tokens: Arc<Tokens>,
    /// Of connecting, and of a request with its answer, or of each piece of that.
    pub timeout: Duration,
    /// How requests are repeated.
    pub retry: Retry,
}

impl Service {
    /// A client without a connection yet, which keeps `idle_max` connections while they are not used.
    pub fn client(self, meter: Arc<dyn Meter>, clock: Arc<dyn Clock>, idle_max: usize) -> Client {
        let route = self.target.route(self.tls.clone());
        Client { sender: Arc::new(Sender::new(self, route, meter, clock, idle_max)) }
    }
}

impl Signer for Service {
    type Credentials = TokenError;
    type Refused = Refused;

    fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The key of a request is its path, escaped, with a slash at its beginning.
    fn sign<'a>(
        &'a self,
        ask: &'a Ask<'a>,
        clock: &'a Arc<dyn Clock>,
    ) -> SignerFuture<'a, Result<(Uri, HeaderMap), Failure>> {
        Box::pin(async move {
            let token = self.tokens.get(clock).await.map_err(Failure::Credentials)?;
            let mut headers = self.target.headers(&ask.headers)?;
            headers.extend(token.map(|token| (AUTHORIZATION, token)));
            let path = format!("{}{}", self.target.root, ask.key.unwrap_or_default());
            Ok((self.target.uri(&path, &ask.escaped_query())?, headers))
        })
    }

    fn refused<'a>(&'a self, answer: RefusedAnswer<'a>) -> SignerFuture<'a, Refused> {
        Box::pin(async move {
            let refused = Refused::read(answer.status, answer.headers, answer.body);
            if let Some(token) = answer.login.filter(|_| refused.is_about_credentials()) {
                self.tokens.forget(token).await;
            }
            refused
        })
    }
}

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Client {
    sender: Arc<Sender<Service>>,
}

impl Client {
    /// Sends a request and reads the whole answer, at most `bytes_max` bytes. Returns its status, 200 to 299, and its body.
    ///
    /// # Errors
    ///
    /// There is no answer, or it is no success, also after the tries that are allowed.
    pub(crate) async fn ask(
        &self,
        ask: Ask<'_>,
        bytes_max: usize,
    ) -> Result<(u16, Vec<u8>), Failure> {
        let mut number = 1;
        loop {
            let answer = async {
                let Opened { status, mut body, .. } = self.open_once(&ask).await?;
                let mut whole = Vec::new();
                while let Some(piece) = body.piece(PIECE_BYTES).await? {
                    if whole.len() + piece.len() > bytes_max {
                        return Err(ConnectionError::TooLong(bytes_max).into());
                    }
                    whole.extend_from_slice(&piece);
                }
                Ok((status, whole))
            };
            match answer.await {
                Ok(answer) => return Ok(answer),
                Err(failure) => self.wait(failure, &mut number).await?,
            }
        }
    }

    /// Sends a request and reads the beginning of the answer, whose body is taken in pieces.
    ///
    /// # Errors
    ///
    /// There is no answer, or it is no success, also after the tries that are allowed.
    pub(crate) async fn open(&self, ask: Ask<'_>) -> Result<Opened, Failure> {
        let mut number = 1;
        loop {
            match self.open_once(&ask).await {
                Ok(opened) => return Ok(opened),
                Err(failure) => self.wait(failure, &mut number).await?,
            }
        }
    }

    /// Waits for the next try, and counts it; the failure if there is none.
    async fn wait(&self, failure: Failure, number: &mut u32) -> Result<(), Failure> {
        let retry = &self.sender.signer().retry;
        let wanted = match &failure {
            Failure::Refused(refused) => refused.pause,
            _ => None,
        };
        if *number >= retry.attempts || !failure.may_pass() {
            return Err(failure);
        }
        tracing::debug!(error = %failure, tries = *number, "a request failed; trying again");
        tokio::time::sleep(retry.pause(*number, wanted)).await;
        *number += 1;
        Ok(())
    }

    /// One try; two if the first one's token is refused.
    async fn open_once(&self, ask: &Ask<'_>) -> Result<Opened, Failure> {
        let has_token = *self.sender.signer().tokens.source() != Source::None;
        match Sender::open(Arc::clone(&self.sender), ask).await {
            Err(Failure::Refused(refused)) if has_token && refused.is_about_credentials() => {
                Sender::open(Arc::clone(&self.sender), ask).await
            }
            opened => opened,
        }
    }
}

#[cfg(test)]
mod tests;
