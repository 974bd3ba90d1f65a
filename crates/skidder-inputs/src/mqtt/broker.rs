//! A broker for tests, over packets of another implementation: it keeps a session, and does on request what no broker does.

use super::decode::Version;
use crate::testing::push_in_parts;
use bytes::BytesMut;
use rumqttc::mqttbytes as v4;
use rumqttc::mqttbytes::v4::Packet as Old;
use rumqttc::v5::mqttbytes as v5;
use rumqttc::v5::mqttbytes::v5::Packet as New;
use skidder_contract::{FarSideFuture, line};
use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// Lines that wait in the broker, at most.
const LINES_MAX: usize = 600;

/// A packet of the client.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Request {
    Connect {
        id: String,
        is_clean: bool,
        keep_alive: u16,
        expiry: Option<u32>,
        window: Option<u16>,
    },
    Subscribe(u16, Vec<(String, u8)>),
    Acknowledge(u16),
    Record(u16),
    Complete(u16),
    Ping,
    Disconnect,
}

/// What the broker does next.
#[derive(Clone, Debug)]
pub(super) enum Command {
    /// Sends these bytes.
    Raw(Vec<u8>),
    /// Sends these bytes, and nothing else over this connection.
    Garbage(Vec<u8>),
    /// Closes the connection.
    Break,
}

/// A message that is sent, and has not come to its end.
struct Flight {
    id: u16,
    line: usize,
    is_recorded: bool,
}

#[derive(Default)]
pub(super) struct State {
    lines: VecDeque<usize>,
    in_flight: Vec<Flight>,
    pub(super) has_session: bool,
    last_id: u16,
    pub(super) acknowledged: BTreeSet<usize>,
    pub(super) requests: Vec<Request>,
    pub(super) commands: VecDeque<Command>,
    /// Bytes in place of the answers to the next connections.
    pub(super) answers: VecDeque<Vec<u8>>,
    /// Bytes in place of the answers to the next subscriptions.
    pub(super) subacks: VecDeque<Vec<u8>>,
    /// Acknowledgements get lost.
    pub(super) is_deaf: bool,
    /// Signs of life get no answer.
    pub(super) is_silent: bool,
    connection: u64,
}

/// See the module's text.
#[derive(Clone)]
pub(super) struct Broker {
    pub(super) address: SocketAddr,
    pub(super) version: Version,
    pub(super) qos: u8,
    topic: String,
    window: usize,
    state: Arc<Mutex<State>>,
    changed: Arc<Notify>,
}

impl Broker {
    /// Sends lines to a topic with this quality of service, and at most `window` without an acknowledgement.
    pub(super) async fn start(version: Version, qos: u8, topic: &str, window: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let broker = Self {
            address: listener.local_addr().unwrap(),
            version,
            qos,
            topic: topic.to_owned(),
            window,
            state: Arc::default(),
            changed: Arc::default(),
        };
        let of = broker.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let of = of.clone();
                tokio::spawn(async move { of.serve(stream).await });
            }
        });
        broker
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(super) fn push(&self, lines: Range<usize>) {
        self.state().lines.extend(lines);
        self.changed.notify_waiters();
    }

    pub(super) fn command(&self, command: Command) {
        self.state().commands.push_back(command);
        self.changed.notify_waiters();
    }

    /// The broker loses its memory.
    pub(super) fn forget(&self) {
        let mut state = self.state();
        (state.has_session, state.last_id) = (false, 0);
        state.in_flight.clear();
    }

    /// Messages that have not come to their end.
    pub(super) fn in_flight(&self) -> usize {
        self.state().in_flight.len()
    }

    /// How often a packet came for which this holds.
    pub(super) fn count(&self, holds: impl Fn(&Request) -> bool) -> usize {
        self.state().requests.iter().filter(|request| holds(request)).count()
    }

    pub(super) fn connections(&self) -> usize {
        self.count(|request| matches!(request, Request::Connect { .. }))
    }

    pub(super) fn hand_over(&self, lines: Range<usize>) -> FarSideFuture<'_> {
        let push = |part: &[usize]| {
            let mut state = self.state();
            let has_room = state.lines.len() < LINES_MAX;
            if has_room {
                state.lines.extend(part);
            }
            has_room
        };
        Box::pin(async move { push_in_parts(lines, 50, &self.changed, push).await })
    }

    /// Sends what is no packet when all lines are sent.
    pub(super) fn send_garbage(&self) -> FarSideFuture<'_> {
        Box::pin(async move {
            while !self.state().lines.is_empty() {
                tokio::task::yield_now().await;
            }
            self.command(Command::Garbage(vec![0xf7; 100]));
            while !self.state().commands.is_empty() {
                tokio::task::yield_now().await;
            }
        })
    }

    async fn serve(self, mut stream: TcpStream) {
        let mut incoming = BytesMut::new();
        let mut connection = None;
        let mut is_mute = false;
        loop {
            let mut answers = Vec::new();
            while let Some(request) = self.read(&mut incoming) {
                if connection.is_some_and(|number| number != self.state().connection) {
                    // Another connection has the session: what is late counts no more.
                    return;
                }
                let is_connect = matches!(request, Request::Connect { .. });
                answers.extend(self.answer(request));
                if is_connect {
                    connection = Some(self.state().connection);
                }
            }
            if !is_mute && stream.write_all(&answers).await.is_err() {
                return;
            }
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let is_current = connection == Some(self.state().connection);
            if connection.is_some() && !is_current {
                return;
            }
            if is_current && !is_mute {
                let (bytes, command) = self.next();
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
                let has_command = command.is_some();
                match command {
                    Some(Command::Raw(bytes)) => drop(stream.write_all(&bytes).await),
                    Some(Command::Garbage(bytes)) => {
                        is_mute = true;
                        drop(stream.write_all(&bytes).await);
                    }
                    Some(Command::Break) => return,
                    None => {}
                }
                if !bytes.is_empty() || has_command {
                    self.changed.notify_waiters();
                    continue;
                }
            }
            tokio::select! {
                read = stream.read_buf(&mut incoming) => match read {
                    Ok(0) | Err(_) => return,
                    Ok(_) => {}
                },
                () = &mut changed => {}
            }
        }
    }

    /// Messages to send now, and a command.
    fn next(&self) -> (Vec<u8>, Option<Command>) {
        let mut state = self.state();
        let mut out = Vec::new();
        while self.qos == 0 || state.in_flight.len() < self.window {
            let Some(line) = state.lines.pop_front() else { break };
            let mut id = 0;
            if self.qos > 0 {
                id = state.last_id % u16::MAX + 1;
                state.last_id = id;
                state.in_flight.push(Flight { id, line, is_recorded: false });
            }
            out.extend(self.publish(line, id, false));
            if out.len() > 64 << 10 {
                break;
            }
        }
        let command =
            if state.lines.is_empty() || self.qos > 0 { state.commands.pop_front() } else { None };
        (out, command)
    }

    /// Notes a packet; returns the answer.
    fn answer(&self, request: Request) -> Vec<u8> {
        let mut state = self.state();
        state.requests.push(request.clone());
        let (is_deaf, is_silent) = (state.is_deaf, state.is_silent);
        let place = |state: &State, id: u16| state.in_flight.iter().position(|it| it.id == id);
        match request {
            Request::Connect { is_clean, .. } => {
                state.connection += 1;
                self.changed.notify_waiters();
                if let Some(answer) = state.answers.pop_front() {
                    return answer;
                }
                let has_session = state.has_session && !is_clean;
                if !has_session {
                    state.in_flight.clear();
                }
                state.has_session = true;
                let mut out = self.connected(has_session);
                let in_flight = std::mem::take(&mut state.in_flight);
                for flight in &in_flight {
                    out.extend(if flight.is_recorded {
                        self.release(flight.id)
                    } else {
                        self.publish(flight.line, flight.id, true)
                    });
                }
                state.in_flight = in_flight;
                out
            }
            Request::Subscribe(id, topics) => {
                state.subacks.pop_front().unwrap_or_else(|| self.subscribed(id, &topics))
            }
            Request::Acknowledge(id) if !is_deaf => {
                assert_eq!(self.qos, 1);
                let place = place(&state, id).expect("a message was sent");
                assert_eq!(place, 0, "in their order");
                let line = state.in_flight.remove(place).line;
                state.acknowledged.insert(line);
                Vec::new()
            }
            Request::Record(id) if !is_deaf => {
                assert_eq!(self.qos, 2);
                let place = place(&state, id).expect("a message was sent");
                state.in_flight[place].is_recorded = true;
                let line = state.in_flight[place].line;
                state.acknowledged.insert(line);
                self.release(id)
            }
            Request::Complete(id) => {
                if let Some(place) = place(&state, id) {
                    assert!(state.in_flight.remove(place).is_recorded);
                }
                Vec::new()
            }
            Request::Ping if !is_silent => vec![0xd0, 0],
            _ => Vec::new(),
        }
    }

    fn read(&self, incoming: &mut BytesMut) -> Option<Request> {
        if incoming.is_empty() {
            return None;
        }
        if self.version == Version::V311 {
            let packet = Old::read(incoming, usize::MAX).ok()?;
            return Some(match packet {
                Old::Connect(it) => Request::Connect {
                    id: it.client_id,
                    is_clean: it.clean_session,
                    keep_alive: it.keep_alive,
                    expiry: None,
                    window: None,
                },
                Old::Subscribe(it) => {
                    let topics = it.filters.into_iter().map(|it| (it.path, it.qos as u8));
                    Request::Subscribe(it.pkid, topics.collect())
                }
                Old::PubAck(it) => Request::Acknowledge(it.pkid),
                Old::PubRec(it) => Request::Record(it.pkid),
                Old::PubComp(it) => Request::Complete(it.pkid),
                Old::PingReq => Request::Ping,
                Old::Disconnect => Request::Disconnect,
                other => panic!("{other:?}"),
            });
        }
        if incoming.starts_with(&[0xe0, 0]) {
            // Which the other implementation cannot read.
            incoming.clear();
            return Some(Request::Disconnect);
        }
        let packet = New::read(incoming, None).ok()?;
        Some(match packet {
            New::Connect(it, ..) => {
                let properties = it.properties.unwrap();
                Request::Connect {
                    id: it.client_id,
                    is_clean: it.clean_start,
                    keep_alive: it.keep_alive,
                    expiry: properties.session_expiry_interval,
                    window: properties.receive_maximum,
                }
            }
            New::Subscribe(it) => {
                let topics = it.filters.into_iter().map(|it| (it.path, it.qos as u8));
                Request::Subscribe(it.pkid, topics.collect())
            }
            New::PubAck(it) => Request::Acknowledge(it.pkid),
            New::PubRec(it) => Request::Record(it.pkid),
            New::PubComp(it) => Request::Complete(it.pkid),
            New::PingReq(_) => Request::Ping,
            New::Disconnect(_) => Request::Disconnect,
            other => panic!("{other:?}"),
        })
    }

    fn connected(&self, session_present: bool) -> Vec<u8> {
        match self.version {
            Version::V311 => old(&Old::ConnAck(v4::v4::ConnAck {
                session_present,
                code: v4::v4::ConnectReturnCode::Success,
            })),
            Version::V5 => new(&New::ConnAck(v5::v5::ConnAck {
                session_present,
                code: v5::v5::ConnectReturnCode::Success,
                properties: None,
            })),
        }
    }

    fn subscribed(&self, pkid: u16, topics: &[(String, u8)]) -> Vec<u8> {
        match self.version {
            Version::V311 => {
                let code = |(_, qos): &(String, u8)| {
                    v4::v4::SubscribeReasonCode::Success(v4::qos(*qos).unwrap())
                };
                old(&Old::SubAck(v4::v4::SubAck::new(pkid, topics.iter().map(code).collect())))
            }
            Version::V5 => {
                let code = |(_, qos): &(String, u8)| {
                    v5::v5::SubscribeReasonCode::Success(v5::qos(*qos).unwrap())
                };
                let return_codes = topics.iter().map(code).collect();
                new(&New::SubAck(v5::v5::SubAck { pkid, return_codes, properties: None }))
            }
        }
    }

    fn publish(&self, number: usize, pkid: u16, dup: bool) -> Vec<u8> {
        match self.version {
            Version::V311 => {
                let qos = v4::qos(self.qos).unwrap();
                let mut publish = v4::v4::Publish::new(&*self.topic, qos, line(number));
                (publish.pkid, publish.dup) = (pkid, dup);
                old(&Old::Publish(publish))
            }
            Version::V5 => {
                let qos = v5::qos(self.qos).unwrap();
                let properties = v5::v5::PublishProperties {
                    user_properties: vec![("name".to_owned(), "value".to_owned())],
                    content_type: Some("text/plain".to_owned()),
                    ..Default::default()
                };
                let mut publish =
                    v5::v5::Publish::new(&*self.topic, qos, line(number), Some(properties));
                (publish.pkid, publish.dup) = (pkid, dup);
                new(&New::Publish(publish))
            }
        }
    }

    fn release(&self, pkid: u16) -> Vec<u8> {
        match self.version {
            Version::V311 => old(&Old::PubRel(v4::v4::PubRel::new(pkid))),
            Version::V5 => new(&New::PubRel(v5::v5::PubRel::new(pkid, None))),
        }
    }
}

/// The bytes of a packet of version 3.1.1.
pub(super) fn old(packet: &Old) -> Vec<u8> {
    let mut out = BytesMut::new();
    packet.write(&mut out, usize::MAX).unwrap();
    out.to_vec()
}

/// The bytes of a packet of version 5.
pub(super) fn new(packet: &New) -> Vec<u8> {
    let mut out = BytesMut::new();
    packet.write(&mut out, None).unwrap();
    out.to_vec()
}

/// Properties of the answer to `CONNECT` in version 5, all of them empty.
pub(super) fn no_properties() -> v5::v5::ConnAckProperties {
    v5::v5::ConnAckProperties {
        session_expiry_interval: None,
        receive_max: None,
        max_qos: None,
        retain_available: None,
        max_packet_size: None,
        assigned_client_identifier: None,
        topic_alias_max: None,
        reason_string: None,
        user_properties: Vec::new(),
        wildcard_subscription_available: None,
        subscription_identifiers_available: None,
        shared_subscription_available: None,
        server_keep_alive: None,
        response_information: None,
        server_reference: None,
        authentication_method: None,
        authentication_data: None,
    }
}
