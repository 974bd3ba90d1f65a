//! A connection to one broker for one request after the other.

use crate::codes::Code;
use crate::connect::{ConnectError, Dialer, Stream};
use crate::messages::{API_VERSIONS, Identity, METADATA_WITH_RIGHTS, Metadata, Versions};
use crate::sasl::SaslError;
use crate::wire::{self, Api, Nonsense};
use skidder_net::{WithoutTls, is_hang_up, plain_remedy};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Longest answer that is read: metadata of some hundred thousand partitions.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// Room for an answer; it grows with what comes.
const ROOM_BYTES: usize = 4 << 10;
/// Most bytes by which the room for an answer grows at once, whatever length it claims.
const STEP_BYTES: usize = 1 << 20;

/// Longest answer whose memory is used again.
const REUSED_BYTES_MAX: usize = 4 << 20;

/// Why a request to a broker failed.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error(transparent)]
    /// There is no connection.
    Connect(#[from] ConnectError),
    #[error("the connection broke: {0}")]
    /// The network, or the far side.
    Broken(#[from] io::Error),
    #[error("the broker ended the connection")]
    /// The far side closed it.
    Ended,
    #[error("{}{}", .0, plain_remedy(WithoutTls::NoSsl, false))]
    /// The far side hung up on a connection without TLS before its first answer.
    Unanswered(Box<AskError>),
    #[error("no answer within {0:?} (`timeout`)")]
    /// No answer in time.
    Time(Duration),
    #[error("this port speaks TLS")]
    /// The answer is an alert of TLS.
    Tls,
    #[error("the answer makes no sense: {0}")]
    /// Not the answer of a broker.
    Nonsense(#[from] Nonsense),
    #[error("the answer says: {0}")]
    /// The broker refuses.
    Code(Code),
    #[error("the broker is older than Kafka {0}")]
    /// The broker supports no version that we do.
    TooOld(&'static str),
}

impl AskError {
    /// The remedy; empty if unknown.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Code(code) => code.advice(),
            Self::Tls => WithoutTls::NoSsl.with_tls(),
            // It has its own.
            Self::Unanswered(_)
            | Self::Connect(ConnectError::PlainLogin(_) | ConnectError::Sasl(SaslError::Tls)) => "",
            Self::TooOld(_) => "use newer brokers, or for Zstandard another `compression`",
            _ => "see `hosts`, `ssl` and `username`, and whether the brokers run",
        }
    }
}

/// Received bytes of an unfinished answer.
#[derive(Debug, Default)]
pub struct Incoming(pub Vec<u8>);

impl Incoming {
    /// Makes room for more: for some bytes, or for what is missing of an answer that has begun, in steps.
    pub fn reserve(&mut self) {
        let expected =
            self.0.first_chunk().map_or(0, |length| u32::from_be_bytes(*length) as usize);
        let missing = (expected + 4).saturating_sub(self.0.len());
        self.0.reserve(missing.clamp(ROOM_BYTES, STEP_BYTES));
    }

    /// The next answer, if all of it is there: the number of its request, and its body.
    pub fn take_answer(&mut self) -> Result<Option<(i32, Vec<u8>)>, AskError> {
        if skidder_net::is_tls_alert(&self.0) {
            return Err(AskError::Tls);
        }
        let Some((length, rest)) = self.0.split_first_chunk() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if !(4..=ANSWER_BYTES_MAX).contains(&length) {
            return Err(Nonsense("its length is none").into());
        }
        let Some((answer, _)) = rest.split_at_checked(length) else { return Ok(None) };
        let number = wire::Reader(answer).i32()?;
        if self.0.len() == 4 + length {
            // All there is: it need not be copied into memory of its own.
            let mut body = std::mem::take(&mut self.0);
            body.drain(..8);
            return Ok(Some((number, body)));
        }
        let body = self.0[8..4 + length].to_vec();
        self.0.drain(..4 + length);
        Ok(Some((number, body)))
    }
}

/// See the module's text.
pub struct Connection {
    /// The connection itself.
    pub stream: Box<dyn Stream>,
    /// Versions of requests that both sides support.
    pub versions: Versions,
    incoming: Incoming,
    /// Of the last question.
    number: i32,
    client_id: String,
    timeout: Duration,
}

impl Connection {
    /// To `node`, a `host:port`.
    pub async fn open(dialer: &Dialer, node: &str) -> Result<Self, AskError> {
        Self::greet(dialer, dialer.open(node).await?).await
    }

    /// On a stream without requests yet but for a login: learns which versions the broker supports.
    pub async fn greet(dialer: &Dialer, stream: Box<dyn Stream>) -> Result<Self, AskError> {
        let mut connection = Self {
            stream,
            versions: Versions::default(),
            incoming: Incoming::default(),
            number: 0,
            client_id: dialer.client_id.clone(),
            timeout: dialer.timeout,
        };
        // A login before was answered.
        let may_want_tls = dialer.is_plain() && !dialer.logs_in();
        for version in [API_VERSIONS, 0] {
            let question = Versions::question(version);
            let answer = connection.ask(Api::Versions, version, &question).await;
            let answer = answer.map_err(|error| match &error {
                AskError::Ended if may_want_tls => AskError::Unanswered(Box::new(error)),
                AskError::Broken(broken) if may_want_tls && is_hang_up(broken) => {
                    AskError::Unanswered(Box::new(error))
                }
                _ => error,
            })?;
            match Versions::read(&answer, version)? {
                Ok(versions) => {
                    connection.versions = versions;
                    return Ok(connection);
                }
                // Brokers before 2.4 know an older version of the question only.
                Err(Code::UNSUPPORTED_VERSION) => {}
                Err(code) => return Err(AskError::Code(code)),
            }
        }
        Err(AskError::Code(Code::UNSUPPORTED_VERSION))
    }

    /// Sends one request; returns the body of the answer, which comes within `timeout`.
    pub async fn ask(&mut self, api: Api, version: i16, body: &[u8]) -> Result<Vec<u8>, AskError> {
        self.ask_slowly(api, version, body, Duration::ZERO).await
    }

    /// The same with a request that the broker may keep waiting for so long.
    pub async fn ask_slowly(
        &mut self,
        api: Api,
        version: i16,
        body: &[u8],
        wait: Duration,
    ) -> Result<Vec<u8>, AskError> {
        let limit = self.timeout + wait;
        let result = tokio::time::timeout(limit, self.exchange(api, version, body)).await;
        result.unwrap_or(Err(AskError::Time(limit)))
    }

    /// Takes an answer back whose memory the next one can have.
    pub fn reuse(&mut self, mut answer: Vec<u8>) {
        if self.incoming.0.is_empty() && answer.capacity() <= REUSED_BYTES_MAX {
            answer.clear();
            self.incoming.0 = answer;
        }
    }

    async fn exchange(&mut self, api: Api, version: i16, body: &[u8]) -> Result<Vec<u8>, AskError> {
        self.number = self.number.wrapping_add(1);
        let mut frame = Vec::new();
        wire::begin_request(&mut frame, api, version, self.number, &self.client_id);
        frame.extend_from_slice(body);
        wire::end_request(&mut frame, 0);
        self.stream.write_all(&frame).await?;
        self.stream.flush().await?;
        loop {
            match self.incoming.take_answer()? {
                Some((number, answer)) if number == self.number => return Ok(answer),
                Some(_) => return Err(Nonsense("it is for another request").into()),
                None => {}
            }
            self.incoming.reserve();
            if self.stream.read_buf(&mut self.incoming.0).await? == 0 {
                return Err(AskError::Ended);
            }
        }
    }

    /// The broker's metadata of these topics, which it may create for that, or of all (`None`).
    pub async fn metadata(
        &mut self,
        topics: Option<&[String]>,
        rights: bool,
    ) -> Result<Metadata, AskError> {
        let version = self.versions.metadata.ok_or(AskError::TooOld("0.11"))?;
        let rights = rights && version >= METADATA_WITH_RIGHTS;
        let question = Metadata::question(version, topics, rights);
        let answer = self.ask(Api::Metadata, version, &question).await?;
        Ok(Metadata::read(&answer, version)?)
    }

    /// A number for a producer.
    pub async fn identity(&mut self) -> Result<Identity, AskError> {
        let version = self.versions.init_producer_id.ok_or(AskError::TooOld("0.11"))?;
        let answer = self.ask(Api::InitProducerId, version, &Identity::question()).await?;
        Identity::read(&answer)?.map_err(AskError::Code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_out_one_by_one_however_they_come_in() {
        let bytes = [0, 0, 0, 6, 0, 0, 0, 7, 1, 2, 0, 0, 0, 4, 0, 0, 0, 8];
        let mut incoming = Incoming::default();
        let mut found = Vec::new();
        for byte in bytes {
            incoming.0.push(byte);
            found.extend(incoming.take_answer().expect("no nonsense"));
        }
        assert_eq!(found, [(7, vec![1, 2]), (8, vec![])]);
        assert!(incoming.0.is_empty());
    }

    #[test]
    fn a_length_that_no_answer_has_is_told() {
        for length in [[0, 0, 0, 3], [0xff; 4], [0x04, 0, 0, 1], *b"HTTP"] {
            Incoming(length.to_vec()).take_answer().expect_err("it is nonsense");
        }
        let alert = Incoming(vec![0x15, 3, 3, 0, 2, 2, 70]).take_answer();
        assert!(matches!(alert, Err(AskError::Tls)), "{alert:?}");
    }
}
