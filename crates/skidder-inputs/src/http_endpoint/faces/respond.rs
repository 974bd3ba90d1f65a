//! One request of a face: taken or refused, and its answer.

use super::super::answer::{Answer, Route, Session, Verdicts};
use super::super::body::{BodyError, Coding, unpack};
use super::super::in_flight::Counted;
use super::bulk::{Bulk, Defaults};
use super::deliver::{Outcome, deliver, enter, worst};
use super::events::{Events, Unused};
use super::{
    Call, Face, LEFT_OUT, Refusal, call, elasticsearch, grpc, hec, loki, of_body, otlp,
    otlp_accepted, otlp_json, parameter,
};
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use hyper::http::request;
use hyper::{Request, StatusCode};
use skidder_event::{Batch, Parts};
use std::sync::Arc;

/// The answer to a request of Splunk's clients that is refused, which is counted.
fn refuse_by(code: hec::Code, session: &Session) -> Answer {
    let answer = code.answer();
    session.refused(answer.status(), code.text());
    answer
}

/// Batches, and the bytes of their texts.
type Batches = Vec<(Batch, u64)>;

impl Route {
    /// Answers a request to a path, which is the input's own or below it.
    pub(in super::super) async fn respond_as_face(
        self: &Arc<Self>,
        request: Request<Incoming>,
        path: &str,
        session: &mut Session,
    ) -> Answer {
        let (head, body) = request.into_parts();
        let own = self.settings.path.len() - 1;
        let faces = &self.settings.faces;
        let call = match call(&faces.faces, &head, &path[own..]) {
            Ok(call) => call,
            Err(unknown) => {
                session.refused(unknown.answer.status(), &unknown.why);
                return unknown.answer;
            }
        };
        tokio::select! {
            biased;
            answer = self.respond_to(&call, &head, body, session) => answer,
            // The client sends it again: to the input that takes the place of this one, or when the program is back.
            () = self.ending() => {
                self.refuse(&call, session, Refusal::Busy, Outcome::Stopped.message())
            }
        }
    }

    /// Answers a request that a face knows.
    async fn respond_to(
        self: &Arc<Self>,
        call: &Call,
        head: &request::Parts,
        body: Incoming,
        session: &mut Session,
    ) -> Answer {
        if let Err(answer) = self.check_login(call, &head.headers, session) {
            return *answer;
        }
        if !call.has_body() {
            return self.answer_at_once(call, head, session);
        }
        if let Err((high, bytes)) = self.in_flight.admit() {
            let message = format!("{bytes} bytes are in flight; the high water is {high}");
            return self.refuse(call, session, Refusal::Busy, &message);
        }
        // Counted until the answer.
        let mut counted = self.in_flight.begin();
        let reading = async {
            if *call == Call::OtlpGrpc {
                // Before a body of a size is read.
                grpc::coding(&head.headers)?;
            }
            let body = self.signed(&head.headers, body).await?;
            if *call == Call::OtlpGrpc {
                let body = self.unpacked(None, body, &mut counted).await?;
                return self.unframed(&head.headers, body, &mut counted);
            }
            let coding = head.headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes);
            // A push is packed by Snappy, whether its header says so or not.
            let coding =
                coding.filter(|coding| *call != Call::LokiPush(false) || *coding != b"snappy");
            self.unpacked(coding, body, &mut counted).await
        };
        match reading.await {
            Ok(body) => self.take_for(call, body, &mut counted, head, session).await,
            Err(error) => {
                let (refusal, message) = of_body(error);
                self.refuse(call, session, refusal, &message)
            }
        }
    }

    /// The message of a request of gRPC.
    fn unframed(
        &self,
        headers: &HeaderMap,
        mut body: Parts,
        counted: &mut Counted,
    ) -> Result<Parts, BodyError> {
        let (coding, message) = grpc::unframe(headers, &body.bytes)?;
        if coding == Coding::Plain {
            let frame = body.bytes.len() - message.len();
            body.bytes.drain(..frame);
            return Ok(body);
        }
        let (bytes_max, buffers) = (self.settings.body_bytes_max, &*self.decoder.buffers);
        let unpacked = unpack(coding, message, bytes_max, counted, buffers)?;
        buffers.put(body);
        Ok(unpacked)
    }

    /// Checks who sends. A token of Splunk's takes the place of `basic_auth`.
    fn check_login(
        &self,
        call: &Call,
        headers: &HeaderMap,
        session: &Session,
    ) -> Result<(), Box<Answer>> {
        match (&self.settings.faces.token, call) {
            (_, Call::HecHealth | Call::LokiReady) => Ok(()),
            (Some(token), call) if call.face() == Face::SplunkHec => {
                hec::check(headers, token).map_err(|code| Box::new(refuse_by(code, session)))
            }
            _ => self.settings.validator.check_login(headers).map_err(|(status, message)| {
                let mut answer = self.refuse(call, session, Refusal::Wrong(status), &message);
                // RFC 9110, 15.5.2. In gRPC the status is another one.
                if answer.status() == StatusCode::UNAUTHORIZED
                    && self.settings.validator.user.is_some()
                {
                    let how = HeaderValue::from_static("Basic realm=\"skidder\"");
                    answer.headers_mut().insert(WWW_AUTHENTICATE, how);
                }
                Box::new(answer)
            }),
        }
    }

    /// The answer to a request that brings no events.
    fn answer_at_once(&self, call: &Call, head: &request::Parts, session: &Session) -> Answer {
        let name = &session.source.about().name;
        match call {
            Call::Elasticsearch(path) => {
                if elasticsearch::is_setup(&head.method) {
                    tracing::warn!(
                        source = %name, path,
                        "a template, policy or pipeline of a client is not kept: load it into Elasticsearch itself"
                    );
                }
                elasticsearch::respond(&head.method, path)
            }
            Call::HecHealth => hec::Code::Healthy.answer(),
            _ => super::answer(StatusCode::OK, "text/plain; charset=utf-8", "ready\n"),
        }
    }

    async fn take_for(
        self: &Arc<Self>,
        call: &Call,
        body: Parts,
        counted: &mut Counted,
        head: &request::Parts,
        session: &mut Session,
    ) -> Answer {
        self.intake.metrics().listening().message_bytes.add(body.bytes.len() as u64);
        let answer = match call {
            Call::Bulk(index) => {
                let pipeline = parameter(head.uri.query(), "pipeline");
                let defaults = Defaults { index: index.clone(), pipeline };
                self.take_bulk(call, &body.bytes, &defaults, head, session).await
            }
            Call::HecEvents | Call::HecRaw => {
                self.take_hec(call, &body.bytes, counted, head, session).await
            }
            Call::HecAck => {
                self.answer_acks(&body.bytes, head).unwrap_or_else(|code| refuse_by(code, session))
            }
            Call::LokiPush(is_json) => {
                let made = self.read_loki(*is_json, &body.bytes, counted, &head.headers, session);
                self.take_whole(call, made, session, || {
                    super::answer(StatusCode::NO_CONTENT, "text/plain", "")
                })
                .await
            }
            Call::Otlp(_) | Call::OtlpGrpc => {
                let is_json = *call == Call::Otlp(true);
                let made = self.read_otlp(is_json, &body.bytes, counted, &head.headers, session);
                let rejected = made.as_ref().map_or(0, |(_, rejected)| *rejected);
                if rejected > 0 {
                    session.left_out(&format!("{LEFT_OUT}: {rejected}"));
                }
                let made = made.map(|(batches, _)| batches);
                let accepted = || match call {
                    Call::OtlpGrpc => grpc::accepted(rejected),
                    _ => otlp_accepted(rejected, is_json),
                };
                self.take_whole(call, made, session, accepted).await
            }
            Call::Elasticsearch(_) | Call::HecHealth | Call::LokiReady => {
                self.answer_at_once(call, head, session)
            }
        };
        self.decoder.buffers.put(body);
        answer
    }

    /// Sends on what a request brought, and answers behind the last verdict.
    async fn take_whole(
        &self,
        call: &Call,
        made: Result<Batches, Unused>,
        session: &mut Session,
        accepted: impl FnOnce() -> Answer,
    ) -> Answer {
        let batches = match made {
            Ok(batches) => batches,
            Err(Unused(refusal, message)) => {
                return self.refuse(call, session, refusal, &message);
            }
        };
        let patience = self.settings.faces.completion_timeout;
        let delivered = deliver(batches, &mut session.source, &self.intake, patience).await;
        match worst(&delivered) {
            Outcome::Taken => accepted(),
            outcome => self.refuse(call, session, Refusal::Busy, outcome.message()),
        }
    }

    fn read_loki(
        &self,
        is_json: bool,
        body: &[u8],
        counted: &mut Counted,
        headers: &HeaderMap,
        session: &mut Session,
    ) -> Result<Batches, Unused> {
        let included = self.included(headers);
        let source = &mut session.source;
        let mut events = Events::new(source, &self.decoder, included.as_ref(), counted);
        let tenant = headers.get("x-scope-orgid").and_then(|value| value.to_str().ok());
        let tenant = tenant.unwrap_or_default();
        if is_json {
            loki::json(body, tenant, &mut events)?;
        } else {
            let body = loki::inflate(body, self.settings.body_bytes_max)?;
            loki::protobuf(&body, tenant, &mut events)?;
        }
        events.finish()
    }

    fn read_otlp(
        &self,
        is_json: bool,
        body: &[u8],
        counted: &mut Counted,
        headers: &HeaderMap,
        session: &mut Session,
    ) -> Result<(Batches, u64), Unused> {
        let included = self.included(headers);
        let now = self.intake.clock().wall().0;
        let source = &mut session.source;
        let mut events = Events::new(source, &self.decoder, included.as_ref(), counted);
        let rejected = if is_json {
            otlp_json::read(body, now, &mut events)?
        } else {
            otlp::protobuf(body, now, &mut events).map_err(|error| error.to_string())?
        };
        Ok((events.finish()?, rejected))
    }

    async fn take_hec(
        &self,
        call: &Call,
        body: &[u8],
        counted: &mut Counted,
        head: &request::Parts,
        session: &mut Session,
    ) -> Answer {
        let query = head.uri.query();
        let included = self.included(&head.headers);
        let Session { source, json, .. } = session;
        let mut events = Events::new(source, &self.decoder, included.as_ref(), counted);
        let now = self.intake.clock().wall().0;
        let paths = &self.faces.hec;
        let mut reading = hec::Reading { decoder: &self.decoder, paths, json, query, now };
        let read = match call {
            Call::HecRaw => reading.raw(body, &mut events).map_err(|code| (code, None)),
            _ => reading.objects(body, &mut events).map_err(|(code, event)| (code, Some(event))),
        };
        let batches = events.finish();
        if let Err((code, event)) = read {
            let Some(event) = event else { return refuse_by(code, session) };
            let answer = code.answer_for(event);
            session.refused(answer.status(), &format!("event {event}: {}", code.text()));
            return answer;
        }
        if !self.settings.faces.use_ack {
            return self.take_whole(call, batches, session, || hec::Code::Success.answer()).await;
        }
        let batches = match batches {
            Ok(batches) => batches,
            Err(Unused(refusal, message)) => {
                return self.refuse(call, session, refusal, &message);
            }
        };
        let Some(channel) = hec::channel(&head.headers, query) else {
            return refuse_by(hec::Code::ChannelMissing, session);
        };
        let verdicts = Arc::new(Verdicts::of(batches.len()));
        let Some(ack) = self.faces.acks.begin(&channel, &verdicts) else {
            return self.refuse(
                call,
                session,
                Refusal::Busy,
                "too many requests whose acknowledgement no client has asked for",
            );
        };
        let patience = self.settings.faces.completion_timeout;
        match enter(batches, &mut session.source, patience, &verdicts).await {
            Outcome::Taken => hec::accepted(ack),
            outcome => {
                self.faces.acks.cancel(&channel, ack);
                self.refuse(call, session, Refusal::Busy, outcome.message())
            }
        }
    }

    fn answer_acks(&self, body: &[u8], head: &request::Parts) -> Result<Answer, hec::Code> {
        if !self.settings.faces.use_ack {
            return Err(hec::Code::AckDisabled);
        }
        let channel = hec::channel(&head.headers, head.uri.query());
        let channel = channel.ok_or(hec::Code::ChannelMissing)?;
        let asked = hec::asked(body).ok_or(hec::Code::InvalidFormat)?;
        let known = asked.into_iter().map(|id| (id, self.faces.acks.take(&channel, id)));
        let known: Vec<_> = known.collect();
        if known.iter().any(|(_, is_delivered)| !is_delivered) {
            self.intake.flush();
        }
        Ok(hec::acks(&known))
    }

    async fn take_bulk(
        &self,
        call: &Call,
        body: &[u8],
        defaults: &Defaults,
        head: &request::Parts,
        session: &mut Session,
    ) -> Answer {
        let mut bulk = match Bulk::parse(body, defaults) {
            Ok(bulk) => bulk,
            Err((status, message)) => {
                return self.refuse(call, session, Refusal::Wrong(status), &message);
            }
        };
        let headers = self.included(&head.headers);
        let time = self.intake.clock().wall().0;
        let Session { source, json, .. } = session;
        let batches = bulk.batches(body, &self.decoder, (source, json), (time, headers.as_ref()));
        if let Some(left_out) = &bulk.left_out {
            session.left_out(left_out);
        }
        if let Some(refused) = bulk.refused() {
            session.left_out(&refused);
        }
        let patience = self.settings.faces.completion_timeout;
        let outcomes = deliver(batches, &mut session.source, &self.intake, patience).await;
        let worst = worst(&outcomes);
        if bulk.sent() > 0 && !outcomes.contains(&Outcome::Taken) {
            // Some clients do not look into the items of an answer with status 200.
            return self.refuse(call, session, Refusal::Busy, worst.message());
        }
        if worst != Outcome::Taken {
            session.put_off(worst.message());
        }
        elasticsearch::text(StatusCode::OK, bulk.answer(&outcomes))
    }

    /// The answer to a request that is not taken, which is counted.
    pub(super) fn refuse(
        &self,
        call: &Call,
        session: &Session,
        refusal: Refusal,
        message: &str,
    ) -> Answer {
        match refusal {
            Refusal::Busy => session.put_off(message),
            Refusal::Wrong(status) => session.refused(status, message),
        }
        call.refuse(refusal, message, self.settings.retry_after)
    }
}
