//! A connection to a broker: from the dial to the answer to `CONNECT`, and its buffers.

use super::decode::{BadPacket, Connected, Decoder, Packet, Version};
use super::encode::{Connect, put_subscribe};
use super::reasons;
use super::settings::{Broker, Settings};
use skidder_net::{NetError, Stream, WithoutTls, is_tls_alert, plain_remedy, tls_remedy};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf};

/// Bytes that are read at once.
pub(super) const READ_BYTES: usize = 64 << 10;

/// The packet id of the subscription.
pub(super) const SUBSCRIPTION: u16 = 1;

/// Why there is no connection, or why it ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    /// The network.
    #[error(transparent)]
    Connect(#[from] NetError),
    /// The broker says nothing.
    #[error(
        "no answer to `CONNECT` within `timeout` ({} s); is this the port of an MQTT broker{}?",
        .limit.as_secs_f64(), if *.is_encrypted { "" } else { ", and without TLS" },
    )]
    NoAnswer { limit: Duration, is_encrypted: bool },
    /// The broker refuses the connection.
    #[error("the broker refuses the connection: {0}")]
    Refused(String),
    /// The broker ends the connection, and says why.
    #[error("the broker ends the connection: {0}")]
    Ended(String),
    /// The far side has closed it.
    #[error(
        "the broker closed the connection; see its log, and whether another client has the `client_id`"
    )]
    Closed,
    /// The far side has ended it without TLS and without an answer to `CONNECT`.
    #[error(
        "the broker ended the connection before it answered `CONNECT`{}",
        plain_remedy(WithoutTls::Mqtt, false)
    )]
    NoTls,
    /// It is broken.
    #[error("the connection broke: {0}{remedy}", remedy = remedy(.0))]
    Broken(io::Error),
    /// The broker gives no sign of life.
    #[error("the broker is silent: no answer to `{request}` within `timeout` ({} s)", .limit.as_secs_f64())]
    Silent { request: &'static str, limit: Duration },
    /// The broker takes nothing.
    #[error("the broker takes nothing for `timeout` ({} s)", .0.as_secs_f64())]
    Stuck(Duration),
    /// The port speaks TLS.
    #[error("{}", plain_remedy(WithoutTls::Mqtt, true))]
    Tls,
    /// It is no broker.
    #[error("the bytes of the broker make no sense: {0}; is this the port of an MQTT broker?")]
    Nonsense(#[from] BadPacket),
}

/// The remedy for an error of TLS, as a broker that wants a certificate sends it behind the handshake.
fn remedy(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::InvalidData {
        tls_remedy(error, WithoutTls::Mqtt)
    } else {
        String::new()
    }
}

/// See the module's text.
pub(super) struct Link {
    pub(super) reader: ReadHalf<Box<dyn Stream>>,
    pub(super) writer: WriteHalf<Box<dyn Stream>>,
    pub(super) decoder: Decoder,
    /// Received, and not decoded yet.
    pub(super) incoming: Vec<u8>,
    /// To be sent.
    pub(super) outgoing: Vec<u8>,
    /// Bytes were handed over that a buffer of TLS may still hold.
    pub(super) is_unflushed: bool,
    /// The broker's name.
    pub(super) name: String,
}

impl Link {
    /// Connects, and waits for the broker's answer; the subscription is sent behind that.
    pub(super) async fn open(
        settings: &Settings,
        broker: &Broker,
    ) -> Result<(Self, Connected), LinkError> {
        let stream = broker.route.open(settings.timeout).await?;
        let (reader, writer) = tokio::io::split(stream);
        let mut link = Self {
            reader,
            writer,
            decoder: Decoder::new(settings.version, settings.message_bytes_max),
            incoming: Vec::new(),
            outgoing: Vec::new(),
            is_unflushed: false,
            name: broker.route.host.to_string(),
        };
        let connect = Connect {
            version: settings.version,
            client_id: &settings.client_id,
            is_clean: settings.clean_session,
            keep_alive: settings.keep_alive,
            login: broker.login.as_ref(),
            session_expiry: settings.session_expiry,
            receive_maximum: settings.receive_maximum,
        };
        connect.put(&mut link.outgoing);
        let answer = tokio::time::timeout(settings.timeout, link.handshake(settings.version));
        let late = LinkError::NoAnswer {
            limit: settings.timeout,
            is_encrypted: broker.route.tls.is_some(),
        };
        let is_encrypted = broker.route.tls.is_some();
        let connected = answer.await.unwrap_or(Err(late)).map_err(|error| match error {
            LinkError::Closed | LinkError::Broken(_) if !is_encrypted => LinkError::NoTls,
            error => error,
        })?;
        let Settings { version, topics, qos, .. } = settings;
        put_subscribe(&mut link.outgoing, *version, SUBSCRIPTION, topics, *qos);
        Ok((link, connected))
    }

    async fn handshake(&mut self, version: Version) -> Result<Connected, LinkError> {
        self.send().await?;
        loop {
            self.receive().await?;
            if is_tls_alert(&self.incoming) {
                return Err(LinkError::Tls);
            }
            let (used, packet) = self.decoder.next(&self.incoming)?;
            let connected = match packet {
                None => continue,
                Some(Packet::Connected(connected)) => connected,
                Some(Packet::Disconnect { code, words }) => {
                    return Err(ended(version, code, words.as_deref()));
                }
                Some(_) => return Err(BadPacket("its first packet is not `CONNACK`").into()),
            };
            self.incoming.drain(..used);
            if connected.code != 0 {
                let reason = reasons::connection(version, connected.code);
                let said = reasons::sentence(reason, connected.code, connected.words.as_deref());
                return Err(LinkError::Refused(said));
            }
            return Ok(connected);
        }
    }

    async fn receive(&mut self) -> Result<usize, LinkError> {
        receive(&mut self.reader, &mut self.incoming).await
    }

    /// Sends everything that is to be sent.
    pub(super) async fn send(&mut self) -> Result<(), LinkError> {
        self.writer.write_all(&self.outgoing).await.map_err(LinkError::Broken)?;
        self.outgoing.clear();
        self.is_unflushed = false;
        self.writer.flush().await.map_err(LinkError::Broken)
    }
}

/// Receives some bytes. May be dropped while it waits.
pub(super) async fn receive(
    reader: &mut ReadHalf<Box<dyn Stream>>,
    incoming: &mut Vec<u8>,
) -> Result<usize, LinkError> {
    incoming.reserve(READ_BYTES);
    match reader.read_buf(incoming).await {
        Ok(0) => Err(LinkError::Closed),
        Ok(bytes) => Ok(bytes),
        // rustls: the far side has closed TCP without the end of TLS.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(LinkError::Closed),
        Err(error) => Err(LinkError::Broken(error)),
    }
}

/// Sends some of what is to be sent, or flushes. May be dropped while it waits.
pub(super) async fn send_some(
    writer: &mut WriteHalf<Box<dyn Stream>>,
    outgoing: &mut Vec<u8>,
    is_unflushed: &mut bool,
) -> Result<(), LinkError> {
    if outgoing.is_empty() {
        writer.flush().await.map_err(LinkError::Broken)?;
        *is_unflushed = false;
        return Ok(());
    }
    let sent = writer.write(outgoing).await.map_err(LinkError::Broken)?;
    if sent == 0 {
        return Err(LinkError::Broken(io::ErrorKind::WriteZero.into()));
    }
    outgoing.drain(..sent);
    *is_unflushed = true;
    Ok(())
}

/// The broker has ended the connection for this reason.
pub(super) fn ended(version: Version, code: u8, words: Option<&str>) -> LinkError {
    LinkError::Ended(reasons::sentence(reasons::connection(version, code), code, words))
}
