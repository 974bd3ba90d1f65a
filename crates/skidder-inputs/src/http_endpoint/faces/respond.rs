//! One request of a face: taken or refused, and its answer.

use super::super::answer::{Answer, Route, Session};
use super::bulk::{Bulk, Defaults};
use super::deliver::{Outcome, deliver, worst};
use super::{Call, Refusal, call, elasticsearch, of_body, parameter};
use hyper::body::Incoming;
use hyper::http::request;
use hyper::{Request, StatusCode};
use skidder_event::Parts;
use std::sync::Arc;

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
        let call = match call(&self.settings.faces.faces, &head.method, &path[own..]) {
            Ok(call) => call,
            Err(answer) => {
                session.source.failed("a request that no face knows");
                return *answer;
            }
        };
        if let Err((status, message)) = self.settings.validator.check_login(&head.headers) {
            return self.refuse(&call, session, Refusal::Wrong(status), &message);
        }
        if !call.has_body() {
            return self.answer_at_once(&call, &head, session);
        }
        if let Err((high, bytes)) = self.in_flight.admit() {
            let message = format!("{bytes} bytes are in flight; the high water is {high}");
            return self.refuse(&call, session, Refusal::Busy, &message);
        }
        // Counted until the answer.
        let mut counted = self.in_flight.begin();
        let reading = async {
            let body = self.signed(&head.headers, body).await?;
            self.unpacked(&head.headers, body, &mut counted).await
        };
        match reading.await {
            Ok(body) => self.take_for(&call, body, &head, session).await,
            Err(error) => {
                let (refusal, message) = of_body(error);
                self.refuse(&call, session, refusal, &message)
            }
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
            Call::Bulk(_) => {
                let wrong = Refusal::Wrong(StatusCode::BAD_REQUEST);
                self.refuse(call, session, wrong, "request body is required")
            }
        }
    }

    async fn take_for(
        self: &Arc<Self>,
        call: &Call,
        body: Parts,
        head: &request::Parts,
        session: &mut Session,
    ) -> Answer {
        self.intake.metrics().listening.message_bytes.add(body.bytes.len() as u64);
        match call {
            Call::Bulk(index) => {
                let pipeline = parameter(head.uri.query(), "pipeline");
                let defaults = Defaults { index: index.clone(), pipeline };
                let answer = self.take_bulk(call, &body.bytes, &defaults, head, session).await;
                self.decoder.buffers.put(body);
                answer
            }
            Call::Elasticsearch(_) => self.answer_at_once(call, head, session),
        }
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
            session.source.failed(left_out);
            tracing::warn!(source = %session.source.about().name, "{left_out}");
        }
        let patience = self.settings.faces.completion_timeout;
        let outcomes = deliver(batches, &mut session.source, patience).await;
        let worst = worst(&outcomes);
        if bulk.sent() > 0 && !outcomes.contains(&Outcome::Taken) {
            // Some clients do not look into the items of an answer with status 200.
            return self.refuse(call, session, Refusal::Busy, worst.message());
        }
        if worst != Outcome::Taken {
            session.source.failed(worst.message());
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
        session.source.failed(message);
        let name = &session.source.about().name;
        tracing::debug!(source = %name, ?refusal, message, "a request is refused");
        call.face().refuse(refusal, message, self.settings.retry_after)
    }
}
