//! One request of a path: taken or refused, and its answer.

use super::body::{BodyError, Coding, read, unpack};
use super::busy::{Busy, Count};
use super::decode::{Decoded, Decoder};
use super::faces::FaceState;
use super::in_flight::{Counted, InFlight, Over};
use super::payload::Payload;
use super::query::wait_of;
use super::settings::Settings;
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::RETRY_AFTER;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use skidder_event::{Acknowledge, Acknowledgement, Map, Parts, Progress, Value};
use skidder_input::{Intake, Source};
use skidder_parse::json_fields::JsonFields;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tracing::{Instrument as _, Span};

/// How long a request waits at a stop for the verdicts of its events.
pub(super) const LAST_ANSWERS_MAX: Duration = Duration::from_secs(1);

/// An answer.
pub(super) type Answer = Response<Payload>;

/// A path of a server, while its input runs.
pub(super) struct Route {
    pub(super) settings: Settings,
    pub(super) intake: Intake,
    pub(super) decoder: Decoder,
    pub(super) in_flight: Arc<InFlight>,
    pub(super) faces: FaceState,
    /// Requests that are not over.
    requests: Arc<Count>,
    /// Connections that have a source of this input.
    sessions: Arc<Count>,
    /// The input's, for the log: the task of a connection is not that of the input.
    span: Span,
}

/// What a connection keeps for a path.
pub(super) struct Session {
    pub(super) source: Source,
    pub(super) json: JsonFields,
    _here: Busy,
}

/// A body, read or not yet.
pub(super) enum Unpacked {
    Unread(Incoming),
    Read(Parts),
}

/// The verdicts on the events of a request.
#[derive(Debug, Default)]
pub(super) struct Verdicts {
    missing: AtomicUsize,
    is_rejected: AtomicBool,
    changed: Notify,
}

#[derive(Debug)]
pub(super) struct OfRequest(pub(super) Arc<Verdicts>);

impl Acknowledge for OfRequest {
    fn accept(self: Box<Self>) {
        self.0.missing.fetch_sub(1, Ordering::AcqRel);
        self.0.changed.notify_one();
    }

    fn reject(self: Box<Self>) {
        self.0.is_rejected.store(true, Ordering::Release);
        self.0.changed.notify_one();
    }
}

impl Verdicts {
    /// The verdicts on so many batches.
    pub(super) fn of(batches: usize) -> Self {
        Self { missing: AtomicUsize::new(batches), ..Self::default() }
    }

    /// Whether all are there, and the events were accepted.
    pub(super) fn are_accepted(&self) -> bool {
        !self.is_rejected.load(Ordering::Acquire) && self.missing.load(Ordering::Acquire) == 0
    }

    /// Waits for all; returns whether the events were accepted.
    pub(super) async fn all(&self) -> bool {
        loop {
            if self.is_rejected.load(Ordering::Acquire) {
                return false;
            }
            if self.missing.load(Ordering::Acquire) == 0 {
                return true;
            }
            self.changed.notified().await;
        }
    }
}

impl Route {
    pub(super) fn new(mut settings: Settings, intake: Intake) -> Self {
        let in_flight = Arc::new(InFlight::new(settings.in_flight));
        let program = settings.program.take();
        let decoder = Decoder::new(settings.target.take(), settings.preserve_original, program);
        let (requests, sessions) = (Arc::default(), Arc::default());
        let faces = FaceState::new(intake.clock().wall().0);
        let span = Span::current();
        Self { settings, intake, decoder, in_flight, faces, requests, sessions, span }
    }

    /// Counts a request.
    pub(super) fn begin(&self) -> Busy {
        self.requests.begin()
    }

    /// Opens a source for a connection.
    pub(super) fn open(&self, peer: &str) -> Session {
        let source = self.intake.open(peer, Map::new());
        Session { source, json: JsonFields::default(), _here: self.sessions.begin() }
    }

    /// Waits until no request is under way and no connection has a source, for which connections with half a request
    /// get only a moment.
    pub(super) async fn idle(&self) {
        self.requests.idle().await;
        if tokio::time::timeout(LAST_ANSWERS_MAX, self.sessions.idle()).await.is_err() {
            tracing::debug!("a connection with half a request is left to its time limit");
        }
    }

    /// Answers a request; ends soon after the input must stop.
    pub(super) async fn answer(
        self: &Arc<Self>,
        request: Request<Incoming>,
        path: &str,
        session: &mut Session,
    ) -> Answer {
        self.answer_here(request, path, session).instrument(self.span.clone()).await
    }

    async fn answer_here(
        self: &Arc<Self>,
        request: Request<Incoming>,
        path: &str,
        session: &mut Session,
    ) -> Answer {
        if !self.settings.faces.faces.is_empty() {
            return Box::pin(self.respond_as_face(request, path, session)).await;
        }
        tokio::select! {
            biased;
            answer = Box::pin(self.respond(request, session)) => answer,
            () = self.ending() => {
                self.failed(session, StatusCode::GATEWAY_TIMEOUT, "context canceled")
            }
        }
    }

    /// Ends soon after the input must stop.
    pub(super) async fn ending(&self) {
        self.intake.stopped().await;
        tokio::time::sleep(LAST_ANSWERS_MAX).await;
    }

    async fn respond(
        self: &Arc<Self>,
        request: Request<Incoming>,
        session: &mut Session,
    ) -> Answer {
        let (head, body) = request.into_parts();
        let validator = &self.settings.validator;
        let checked = validator
            .check_login(&head.headers)
            .and_then(|()| validator.check_form(&head.method, &head.headers));
        if let Err((status, message)) = checked {
            return self.failed(session, status, &message);
        }
        let body = match self.signed(&head.headers, body).await {
            Ok(body) => body,
            Err(error) => return self.refused(session, error),
        };
        if head.method == Method::OPTIONS {
            return self.options();
        }
        let wait = match wait_of(head.uri.query()) {
            Ok(wait) => wait,
            Err(message) => return self.failed(session, StatusCode::BAD_REQUEST, &message),
        };
        if let Err((high, bytes)) = self.in_flight.admit() {
            let text = format!(
                r#"{{"warn":"in flight bytes above high water mark","high_water":{high},"in_flight":{bytes}}}"#
            );
            session.put_off("in flight bytes above high water mark");
            return self.busy(text, 1);
        }
        let mut counted = self.in_flight.begin();
        let coding = head.headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes);
        let unpacked = self.unpacked(coding, body, &mut counted).await.and_then(|body| {
            if body.bytes.trim_ascii().is_empty() {
                let message = "body cannot be empty".to_owned();
                return Err(BodyError::Refused(StatusCode::NOT_ACCEPTABLE, message));
            }
            Ok(body)
        });
        match unpacked {
            Ok(body) => self.take(body, &head.headers, session, wait, counted).await,
            Err(error) => self.refused(session, error),
        }
    }

    /// Reads and checks a body that needs a signature; leaves another one.
    pub(super) async fn signed(
        &self,
        headers: &HeaderMap,
        body: Incoming,
    ) -> Result<Unpacked, BodyError> {
        let Some(hmac) = &self.settings.validator.hmac else { return Ok(Unpacked::Unread(body)) };
        let refused = |(status, message)| BodyError::Refused(status, message);
        let signature = hmac.sent(headers).map_err(refused)?;
        let buffers = &*self.decoder.buffers;
        let bytes = read(body, self.settings.body_bytes_max, None, buffers).await?;
        hmac.check(&signature, &bytes.bytes).map_err(refused)?;
        Ok(Unpacked::Read(bytes))
    }

    /// A body as it was before it was compressed.
    pub(super) async fn unpacked(
        &self,
        coding: Option<&[u8]>,
        body: Unpacked,
        counted: &mut Counted,
    ) -> Result<Parts, BodyError> {
        let (bytes_max, buffers) = (self.settings.body_bytes_max, &*self.decoder.buffers);
        let coding = Coding::of(coding, !self.settings.faces.faces.is_empty())?;
        let plain = coding == Coding::Plain;
        let sent = match body {
            Unpacked::Unread(body) => {
                read(body, bytes_max, plain.then_some(&mut *counted), buffers).await?
            }
            Unpacked::Read(signed) => {
                if plain {
                    let add = counted.add(signed.bytes.len());
                    add.map_err(BodyError::InFlight)?;
                }
                signed
            }
        };
        self.intake.metrics().bytes.add(sent.bytes.len() as u64);
        if plain {
            return Ok(sent);
        }
        let body = unpack(coding, &sent.bytes, bytes_max, counted, buffers)?;
        buffers.put(sent);
        Ok(body)
    }

    /// Sends the events of a body on.
    async fn take(
        self: &Arc<Self>,
        body: Parts,
        headers: &HeaderMap,
        session: &mut Session,
        wait: Option<Duration>,
        counted: Counted,
    ) -> Answer {
        let listening = self.intake.metrics().listening();
        listening.message_bytes.add(body.bytes.len() as u64);
        let headers = self.included(headers);
        let time = self.intake.clock().wall().0;
        let Session { source, json, .. } = session;
        let crc = self.settings.crc.as_ref();
        let decoded = self.decoder.decode(body, source, json, (time, headers.as_ref()), crc);
        let Decoded { batches, challenge, skipped, left_out } = match decoded {
            Ok(decoded) => decoded,
            Err((status, message)) => return self.failed(session, status, &message),
        };
        if skipped > 0 {
            let what = format!("{skipped} elements of a list are no objects and become no events");
            session.left_out(&what);
        }
        if let Some(left_out) = left_out {
            session.left_out(&left_out);
        }
        let counted = (counted, self.begin());
        let sent = match wait {
            None => self.send(batches, &mut session.source, counted).await,
            Some(wait) => {
                let sending = self.send_and_wait(batches, &mut session.source);
                let sent = tokio::time::timeout(wait, sending).await;
                drop(counted);
                sent.unwrap_or_else(|_| {
                    let message = "could not publish event within timeout";
                    Err((StatusCode::GATEWAY_TIMEOUT, message))
                })
            }
        };
        match (sent, challenge) {
            (Err((status, message)), _) => self.failed(session, status, message),
            (Ok(()), Some(answer)) => json_answer(StatusCode::OK, answer.into()),
            (Ok(()), None) => self.accepted(),
        }
    }

    /// Sends events; ends when the queues have them. Those that wait for room go in also if the client leaves.
    async fn send(
        &self,
        batches: Vec<(skidder_event::Batch, u64)>,
        source: &mut Source,
        counted: (Counted, Busy),
    ) -> Result<(), (StatusCode, &'static str)> {
        let counted = Arc::new(counted);
        for (batch, bytes) in batches {
            let sending = source.send(batch, Progress::Nothing(bytes));
            if !sending.is_waiting() {
                continue;
            }
            let counted = Arc::clone(&counted);
            let waiting = tokio::spawn(async move {
                let sent = sending.await;
                drop(counted);
                sent
            });
            if !matches!(waiting.await, Ok(Ok(()))) {
                return Err((StatusCode::SERVICE_UNAVAILABLE, "the program ends"));
            }
        }
        Ok(())
    }

    /// Sends events and waits for their verdicts. When this is dropped, those that no queue has are given up: the client
    /// sends them again.
    async fn send_and_wait(
        &self,
        batches: Vec<(skidder_event::Batch, u64)>,
        source: &mut Source,
    ) -> Result<(), (StatusCode, &'static str)> {
        let verdicts = Arc::new(Verdicts::of(batches.len()));
        let ends = (StatusCode::SERVICE_UNAVAILABLE, "the program ends");
        for (batch, bytes) in batches {
            let owed = Acknowledgement::new(OfRequest(Arc::clone(&verdicts)));
            let sending = source.send(batch, Progress::Acknowledge(owed, bytes));
            sending.await.map_err(|_| ends)?;
        }
        if self.intake.await_verdicts(verdicts.all()).await { Ok(()) } else { Err(ends) }
    }

    /// The headers that events get.
    pub(super) fn included(&self, headers: &HeaderMap) -> Option<Value> {
        let mut found = Map::default();
        let mut is_empty = true;
        for name in &self.settings.include_headers {
            // Go keeps it elsewhere.
            if *name == HOST {
                continue;
            }
            let text = |value: &HeaderValue| {
                Value::from(String::from_utf8_lossy(value.as_bytes()).into_owned())
            };
            let values: Vec<Value> = headers.get_all(name).iter().map(text).collect();
            if !values.is_empty() {
                found.insert(&canonical(name), Value::List(values));
                is_empty = false;
            }
        }
        (!is_empty).then_some(Value::Map(found))
    }

    /// The answer to a request that was taken.
    fn accepted(&self) -> Answer {
        let (status, body) = &self.settings.response;
        json_answer(*status, body.clone())
    }

    fn options(&self) -> Answer {
        let validator = &self.settings.validator;
        let mut answer = Response::new(Payload::default());
        *answer.status_mut() = validator.options_status;
        for (name, value) in validator.options.iter().flatten() {
            answer.headers_mut().append(name, value.clone());
        }
        answer
    }

    fn refused(&self, session: &Session, error: BodyError) -> Answer {
        match error {
            BodyError::Refused(status, message) => self.failed(session, status, &message),
            BodyError::Contradiction(message) => {
                self.failed(session, StatusCode::BAD_REQUEST, &message)
            }
            BodyError::Damaged(position, why) => {
                let message = format!("malformed JSON object at stream position {position}: {why}");
                self.failed(session, StatusCode::BAD_REQUEST, &message)
            }
            BodyError::InFlight(Over { max, all: bytes, .. }) => {
                session.put_off("max in flight bytes exceeded during read");
                let text = format!(
                    r#"{{"error":"max in flight bytes exceeded during read","max_in_flight":{max},"in_flight":{bytes}}}"#
                );
                self.busy(text, 2)
            }
        }
    }

    /// The answer to a request that may come again.
    fn busy(&self, text: String, times: u64) -> Answer {
        let mut answer = json_answer(StatusCode::SERVICE_UNAVAILABLE, text.into());
        let seconds = self.settings.retry_after * times;
        answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        answer
    }

    /// The answer to a request that was not taken, which is counted.
    fn failed(&self, session: &Session, status: StatusCode, message: &str) -> Answer {
        session.refused(status, message);
        let body = format!("{{\"message\":{}}}\n", serde_json::Value::from(message));
        json_answer(status, body.into())
    }
}

fn json_answer(status: StatusCode, body: Box<str>) -> Answer {
    let has_body = !matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let body = if has_body { Bytes::from(String::from(body)) } else { Bytes::new() };
    let mut answer = Response::new(Payload::new(body));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// The name as Go writes it (`X-Request-Id`), with `_` for dots.
fn canonical(name: &HeaderName) -> String {
    let mut is_first = true;
    let letter = |letter: char| {
        let upper = if is_first { letter.to_ascii_uppercase() } else { letter };
        is_first = letter == '-';
        if upper == '.' { '_' } else { upper }
    };
    name.as_str().chars().map(letter).collect()
}
