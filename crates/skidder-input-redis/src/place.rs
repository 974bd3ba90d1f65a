//! One key of one server: connections to it, and what goes wrong there.

use crate::settings::{Settings, name_of};
use skidder_input::{InputError, Intake, Sending, Source, Stopped};
use skidder_redis::{Connection, Failure, Reply, RespError, Target, with_advice};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Longest answer that is read: one element or entry that is longer is an error.
pub(crate) const ANSWER_BYTES_MAX: usize = 256 << 20;

/// How long a stop waits for verdicts, to pass them on to the server.
pub(crate) const STOP_WAIT: Duration = Duration::from_secs(2);

/// How long a stop takes at most.
const STOP_MAX: Duration = Duration::from_secs(4);

/// Why a reader begins anew.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// After a pause.
    #[error(transparent)]
    Server(Failure),
    /// After a pause.
    #[error("the server refused {command}: {}", with_advice(error))]
    Refused { command: &'static str, error: String },
    /// After a long pause: two of them would take everything away from each other.
    #[error(
        "another process is the consumer `{consumer}` of the list `{key}`: give each process its own `consumer`; what \
         was in flight comes twice"
    )]
    Fenced { consumer: String, key: String },
    /// After a pause, and from the beginning.
    #[error(
        "the consumer's own list or state changed on the server without it; what was in flight may come twice"
    )]
    Gone,
    /// Never: this is the end.
    #[error(transparent)]
    End(#[from] InputError),
    /// No output takes anything any more.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl From<Failure> for ReadError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Greeting { command, error } => Self::Refused { command, error },
            failure => Self::Server(failure),
        }
    }
}

impl From<RespError> for ReadError {
    fn from(error: RespError) -> Self {
        Self::Server(Failure::Connection(error))
    }
}

/// See the module's text.
pub(crate) struct Place {
    pub(crate) intake: Intake,
    pub(crate) settings: Arc<Settings>,
    pub(crate) server: Arc<Target>,
    /// The key; empty for the slow log.
    pub(crate) key: String,
    /// The server and the key, in messages.
    pub(crate) name: String,
    /// Failures in a row.
    failures: u32,
}

impl Place {
    pub(crate) fn new(
        intake: Intake,
        settings: Arc<Settings>,
        server: Arc<Target>,
        key: &str,
    ) -> Self {
        let host = name_of(&server);
        let name = if key.is_empty() { host } else { format!("{host} {key}") };
        Self { intake, settings, server, key: key.to_owned(), name, failures: 0 }
    }

    /// A connection that is logged in.
    pub(crate) async fn open(&self) -> Result<Connection, ReadError> {
        let mut connection = self.server.open_quietly(self.settings.timeout).await?;
        connection.set_answer_bytes_max(ANSWER_BYTES_MAX);
        Ok(connection)
    }

    /// It works again.
    pub(crate) fn succeeded(&mut self) {
        if self.failures == 0 {
            return;
        }
        tracing::info!(source = self.name, failures = self.failures, "Redis can be read again");
        self.failures = 0;
        self.set_trouble(None);
    }

    /// Reports a failure and waits until it is time to try again. Returns whether that is so; `false`: the input ends.
    pub(crate) async fn failed(&mut self, source: &Source, error: &ReadError) -> bool {
        self.failures = self.failures.saturating_add(1);
        let text = error.to_string();
        source.failed(&text);
        self.set_trouble(Some(&text));
        let failures = self.failures;
        if is_power_of_ten(failures) {
            tracing::error!(
                source = self.name,
                error = text,
                failures,
                "cannot read from Redis; trying again"
            );
        }
        let pause = match error {
            ReadError::Fenced { .. } => self.settings.backoff_max,
            _ => self.pause(),
        };
        tokio::select! {
            biased;
            () = self.intake.stopped() => false,
            () = tokio::time::sleep(pause) => true,
        }
    }

    /// The pause after so many failures.
    fn pause(&self) -> Duration {
        let Settings { backoff_init, backoff_max, .. } = &*self.settings;
        let factor = 2_u32.saturating_pow(self.failures.saturating_sub(1).min(30));
        backoff_init.saturating_mul(factor).min(*backoff_max)
    }

    fn set_trouble(&self, error: Option<&str>) {
        self.intake.metrics().set_trouble_of(&self.name, error);
    }
}

/// Reads a key over one connection after the other.
pub(crate) trait Reads: Send {
    /// Where it reads, and the source of its events.
    fn place(&mut self) -> (&mut Place, &Source);

    /// Reads over one connection. Returns when the input ends.
    fn session(&mut self) -> impl Future<Output = Result<(), ReadError>> + Send;

    /// A session has failed; another one follows.
    fn session_failed(&mut self, error: &ReadError);
}

/// Reads until the input ends.
pub(crate) async fn read_on(mut reader: impl Reads) -> Result<(), InputError> {
    loop {
        let intake = reader.place().0.intake.clone();
        let late = async {
            intake.stopped().await;
            tokio::time::sleep(STOP_MAX).await;
        };
        let ended = tokio::select! {
            biased;
            ended = reader.session() => ended,
            // The server hangs: what it has of us is pending there.
            () = late => return Ok(()),
        };
        match ended {
            Ok(()) | Err(ReadError::Stopped(_)) => return Ok(()),
            Err(ReadError::End(error)) => return Err(error),
            Err(error) => {
                reader.session_failed(&error);
                let (place, source) = reader.place();
                if !place.failed(source, &error).await {
                    return Ok(());
                }
            }
        }
    }
}

fn is_power_of_ten(number: u32) -> bool {
    number > 0 && 10_u32.pow(number.ilog10()) == number
}

/// One command whose answer is no error.
pub(crate) async fn ask(
    connection: &mut Connection,
    command: &'static str,
    arguments: &[&[u8]],
) -> Result<Reply, ReadError> {
    good(command, connection.ask(arguments).await?)
}

/// An answer that is no error.
pub(crate) fn good(command: &'static str, reply: Reply) -> Result<Reply, ReadError> {
    match reply {
        Reply::Error(error) => Err(ReadError::Refused { command, error }),
        reply => Ok(reply),
    }
}

/// An answer that this command cannot have.
pub(crate) fn unproven(command: &'static str, answer: Reply) -> ReadError {
    RespError::Unproven { command, answer }.into()
}

/// Ends when the input must stop, and what it has read had some time to find room.
pub(crate) async fn stopping(intake: &Intake) {
    intake.stopped().await;
    tokio::time::sleep(STOP_WAIT / 2).await;
}

/// Waits until a batch has found room in the queues, or stays pending because the input must stop: `false`. `true` if
/// meanwhile there are verdicts to pass on, or the server must see that the consumer lives; not any more if that has failed.
pub(crate) async fn waits(
    sending: &mut Sending,
    stopping: &mut Pin<&mut impl Future<Output = ()>>,
    news: &Notify,
    pause: Duration,
    has_failed: bool,
) -> Result<bool, Stopped> {
    tokio::select! {
        biased;
        sent = sending => sent.map(|()| false),
        () = stopping => Ok(false),
        () = news.notified(), if !has_failed => Ok(true),
        () = tokio::time::sleep(pause), if !has_failed => Ok(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_logged_more_and_more_rarely() {
        let logged: Vec<u32> = (0..1200).filter(|number| is_power_of_ten(*number)).collect();
        assert_eq!(logged, [1, 10, 100, 1000]);
    }
}
