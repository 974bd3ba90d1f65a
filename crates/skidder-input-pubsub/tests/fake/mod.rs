//! A small server of Pub/Sub in memory: it counts what is not acknowledged, and gives each message to one stream at a time.

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use skidder_contract::line;
use skidder_grpc::head;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc, watch};
use tokio_rustls::TlsAcceptor;

/// Messages of a stream that broke come again so much later.
const EXPIRES_AFTER: Duration = Duration::from_millis(500);
/// Messages of an answer.
const ANSWER_MESSAGES_MAX: usize = 40;

/// `StreamingPullRequest`.
#[derive(Clone, PartialEq, Message)]
struct Pull {
    #[prost(string, tag = "1")]
    subscription: String,
    #[prost(int32, tag = "5")]
    deadline: i32,
    #[prost(int64, tag = "7")]
    messages_max: i64,
}

/// `StreamingPullResponse`.
#[derive(Clone, PartialEq, Message)]
struct Answer {
    #[prost(message, repeated, tag = "1")]
    received: Vec<Received>,
}

/// `ReceivedMessage`.
#[derive(Clone, PartialEq, Message)]
struct Received {
    #[prost(string, tag = "1")]
    ack_id: String,
    #[prost(message, optional, tag = "2")]
    message: Option<Published>,
}

/// `PubsubMessage`.
#[derive(Clone, PartialEq, Message)]
struct Published {
    #[prost(bytes = "vec", tag = "1")]
    data: Vec<u8>,
    #[prost(string, tag = "3")]
    id: String,
}

/// `AcknowledgeRequest` and `ModifyAckDeadlineRequest`, which have their ids at different places.
#[derive(Clone, PartialEq, Message)]
struct About {
    #[prost(string, repeated, tag = "2")]
    acknowledged: Vec<String>,
    #[prost(int32, tag = "3")]
    seconds: i32,
    #[prost(string, repeated, tag = "4")]
    changed: Vec<String>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<usize>,
    /// By receipt: the line, and the stream that has it.
    given: BTreeMap<String, (usize, u64)>,
    acknowledged: BTreeSet<usize>,
    receipts: u64,
    streams: u64,
    garbage: usize,
    deadlines: BTreeSet<i32>,
    logins: BTreeSet<String>,
    refused: Option<String>,
    /// What a stream still sends at its end, and how late.
    last: Option<(Duration, Range<usize>)>,
}

/// See the module's text. It ends with the runtime.
#[derive(Clone)]
pub(crate) struct Fake {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    changed: Arc<Notify>,
    /// Grows to break all connections.
    breaks: Arc<watch::Sender<u64>>,
}

/// What comes out of a channel.
struct Out(mpsc::UnboundedReceiver<Frame<Bytes>>);

impl hyper::body::Body for Out {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|frame| frame.map(Ok))
    }
}

fn framed(message: &impl Message) -> Frame<Bytes> {
    let body = message.encode_to_vec();
    let mut bytes = head(false, body.len() as u32).to_vec();
    bytes.extend(body);
    Frame::data(bytes.into())
}

fn end(code: &'static str) -> Frame<Bytes> {
    let mut fields = HeaderMap::new();
    fields.insert("grpc-status", HeaderValue::from_static(code));
    Frame::trailers(fields)
}

impl Fake {
    pub(crate) fn start() -> Self {
        Self::start_with(None)
    }

    /// With TLS if there is something that accepts it.
    pub(crate) fn start_with(tls: Option<TlsAcceptor>) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let breaks = Arc::new(watch::channel(0).0);
        let fake = Self { address, state: Arc::default(), changed: Arc::default(), breaks };
        let of = fake.clone();
        tokio::spawn(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (of, tls) = (of.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => of.converse(stream).await,
                        Some(tls) => of.converse(tls.accept(stream).await.unwrap()).await,
                    }
                });
            }
        });
        fake
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(crate) fn publish(&self, lines: Range<usize>) {
        self.state().waiting.extend(lines);
        self.changed.notify_waiters();
    }

    /// Sends what is no message, over one stream.
    pub(crate) async fn send_garbage(&self) {
        self.state().garbage = 1;
        self.changed.notify_waiters();
        while self.state().garbage > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// When the client ends a stream, these are still on their way for so long.
    pub(crate) fn end_late(&self, late: Duration, lines: Range<usize>) {
        self.state().last = Some((late, lines));
    }

    pub(crate) fn break_connections(&self) {
        self.breaks.send_modify(|number| *number += 1);
    }

    pub(crate) fn acknowledged(&self) -> BTreeSet<usize> {
        self.state().acknowledged.clone()
    }

    /// Messages that are given and not acknowledged.
    pub(crate) fn outstanding(&self) -> usize {
        self.state().given.len()
    }

    /// The deadlines that streams have asked for.
    pub(crate) fn deadlines(&self) -> BTreeSet<i32> {
        self.state().deadlines.clone()
    }

    async fn converse(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let mut breaks = self.breaks.subscribe();
        let service = service_fn(move |request| self.clone().serve(request));
        let serving = http2::Builder::new(TokioExecutor::new())
            .serve_connection(TokioIo::new(stream), service);
        tokio::select! {
            _ = serving => {}
            _ = breaks.changed() => {}
        }
    }

    /// The logins of calls so far, each once.
    pub(crate) fn logins(&self) -> BTreeSet<String> {
        self.state().logins.clone()
    }

    /// This login is good no more.
    pub(crate) fn refuse(&self, login: &str) {
        self.state().refused = Some(login.to_owned());
    }

    /// Whether the login of a call is good.
    fn let_in(&self, request: &Request<Incoming>) -> bool {
        let login = request.headers().get(AUTHORIZATION);
        let login = login.map_or("", |login| login.to_str().unwrap()).to_owned();
        let mut state = self.state();
        let is_good = state.refused.as_ref() != Some(&login);
        state.logins.insert(login);
        is_good
    }

    async fn serve(self, mut request: Request<Incoming>) -> Result<Response<Out>, Infallible> {
        let (out, frames) = mpsc::unbounded_channel();
        let path = request.uri().path().to_owned();
        if !self.let_in(&request) {
            drop(out.send(end("16")));
            return Ok(Response::new(Out(frames)));
        }
        if path.ends_with("/StreamingPull") {
            tokio::spawn(async move {
                if let Some(number) = self.pull(request, out).await {
                    // As though the deadline were over by then.
                    tokio::time::sleep(EXPIRES_AFTER).await;
                    self.expire(number);
                }
            });
            return Ok(Response::new(Out(frames)));
        }
        let Ok(body) = request.body_mut().collect().await else {
            return Ok(Response::new(Out(frames)));
        };
        let about = About::decode(&body.to_bytes()[5..]).unwrap();
        let mut state = self.state();
        for id in &about.acknowledged {
            if let Some((line, _)) = state.given.remove(id) {
                state.acknowledged.insert(line);
            }
        }
        if about.seconds == 0 {
            for id in &about.changed {
                if let Some((line, _)) = state.given.remove(id) {
                    state.waiting.push_front(line);
                }
            }
        }
        drop(state);
        self.changed.notify_waiters();
        drop((out.send(framed(&About::default())), out.send(end("0"))));
        Ok(Response::new(Out(frames)))
    }

    /// What this stream was given and nobody has acknowledged is given to another one.
    fn expire(&self, number: u64) {
        let mut state = self.state();
        let expired = state.given.extract_if(.., |_, (_, of)| *of == number);
        let expired: Vec<usize> = expired.map(|(_, (line, _))| line).collect();
        state.waiting.extend(expired);
        drop(state);
        self.changed.notify_waiters();
    }

    /// Serves a stream until its end; returns its number.
    async fn pull(
        &self,
        mut request: Request<Incoming>,
        out: mpsc::UnboundedSender<Frame<Bytes>>,
    ) -> Option<u64> {
        let first = request.body_mut().frame().await?.ok()?;
        let first = Pull::decode(&first.into_data().unwrap()[5..]).unwrap();
        assert_eq!(first.subscription, "projects/test/subscriptions/all");
        let number = {
            let mut state = self.state();
            state.deadlines.insert(first.deadline);
            state.streams += 1;
            state.streams
        };
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            while let Some(frame) = self.next(number, first.messages_max) {
                if out.send(frame).is_err() {
                    return Some(number);
                }
            }
            tokio::select! {
                () = &mut changed => {}
                // The client is gone; signs of life are no news.
                frame = request.body_mut().frame() => if !matches!(frame, Some(Ok(_))) { break },
            }
        }
        let last = self.state().last.take();
        if let Some((late, lines)) = last {
            tokio::time::sleep(late).await;
            self.state().waiting.extend(lines);
            while let Some(frame) = self.next(number, first.messages_max) {
                drop(out.send(frame));
            }
            drop(out.send(end("0")));
            // Their deadline is a long one.
            return None;
        }
        Some(number)
    }

    /// What the stream with this number is sent next.
    fn next(&self, number: u64, messages_max: i64) -> Option<Frame<Bytes>> {
        let mut state = self.state();
        if state.garbage > 0 {
            state.garbage -= 1;
            return Some(Frame::data(Bytes::from_static(b"\0\0\0\0\x02\xff\xff")));
        }
        let given = state.given.values().filter(|(_, of)| *of == number).count();
        let room = usize::try_from(messages_max).unwrap().saturating_sub(given);
        let count = room.min(ANSWER_MESSAGES_MAX).min(state.waiting.len());
        if count == 0 {
            return None;
        }
        let lines: Vec<usize> = state.waiting.drain(..count).collect();
        let received = lines.into_iter().map(|number_of_line| {
            state.receipts += 1;
            let ack_id = format!("receipt {}", state.receipts);
            state.given.insert(ack_id.clone(), (number_of_line, number));
            let (data, id) = (line(number_of_line).into_bytes(), number_of_line.to_string());
            Received { ack_id, message: Some(Published { data, id }) }
        });
        let received = received.collect();
        Some(framed(&Answer { received }))
    }
}
