//! The two halves of a stream.

use crate::channel::{CallError, Channel, MESSAGE_BYTES_MAX, SHOWN_BYTES_MAX};
use crate::frames::{Frames, framed};
use crate::status::{Code, Status};
use bytes::Bytes;
use http::{HeaderMap, Response};
use hyper::body::{Body as _, Incoming};
use prost::Message;
use skidder_net::{ConnectionError, Redactor, excerpt};
use std::fmt;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use tokio::sync::mpsc;

/// The head of an answer, which may not come before the server has something to say.
type Head = Pin<Box<dyn Future<Output = Result<Response<Incoming>, hyper::Error>> + Send>>;

/// The stream is over: what the server says comes out of its other half.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stream is over")]
pub struct RequestsClosed;

/// Where messages to the server go in. Dropping it says that no more will come.
#[derive(Debug)]
pub struct Requests<Q> {
    sender: mpsc::Sender<Bytes>,
    messages: PhantomData<fn(Q)>,
}

impl<Q: Message> Requests<Q> {
    pub(crate) fn new(sender: mpsc::Sender<Bytes>) -> Self {
        Self { sender, messages: PhantomData }
    }

    /// Sends a message; waits while the server takes none.
    ///
    /// # Errors
    ///
    /// The stream is over.
    pub async fn send(&self, message: &Q) -> Result<(), RequestsClosed> {
        let bytes = framed(message).ok_or(RequestsClosed)?;
        self.sender.send(bytes).await.map_err(|_| RequestsClosed)
    }
}

/// Where messages of the server come out. Dropping it ends the call.
pub struct Answers<A> {
    state: State,
    frames: Frames,
    /// An end that [`Answers::try_next`] has found.
    found: Option<Data>,
    /// A message that cannot be read, which it has found.
    unreadable: Option<CallError>,
    redactor: Redactor,
    /// The connection lives as long.
    _channel: Channel,
    messages: PhantomData<fn() -> A>,
}

enum State {
    Head(Head),
    Body { body: Incoming, status: u16, fields: Box<Fields> },
    Ended,
}

/// What an answer has besides its messages.
#[derive(Default)]
struct Fields {
    headers: HeaderMap,
    trailers: HeaderMap,
}

impl<A> fmt::Debug for Answers<A> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Answers").finish_non_exhaustive()
    }
}

impl<A: Message + Default> Answers<A> {
    pub(crate) fn new(head: Head, redactor: Redactor, channel: Channel) -> Self {
        Self {
            state: State::Head(head),
            frames: Frames::new(MESSAGE_BYTES_MAX),
            found: None,
            unreadable: None,
            redactor,
            _channel: channel,
            messages: PhantomData,
        }
    }

    /// The next message, for which it waits; `None` when the server has ended the call in good order. Loses nothing if it is
    /// cancelled.
    ///
    /// # Errors
    ///
    /// The call is over, and so is the stream.
    pub async fn next(&mut self) -> Result<Option<A>, CallError> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// The next message, if it is there already. An end or an error comes out of [`Answers::next`].
    pub fn try_next(&mut self) -> Option<A> {
        let mut context = Context::from_waker(Waker::noop());
        loop {
            if self.unreadable.is_some() {
                return None;
            }
            match self.message() {
                Ok(None) => {}
                Ok(message) => return message,
                Err(error) => {
                    self.unreadable = Some(error);
                    return None;
                }
            }
            if self.found.is_some() || !matches!(self.state, State::Body { .. }) {
                return None;
            }
            match self.poll_data(&mut context) {
                Data::More => {}
                Data::Pending => return None,
                end => self.found = Some(end),
            }
        }
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<A>, CallError>> {
        if let Some(error) = self.unreadable.take() {
            self.state = State::Ended;
            return Poll::Ready(Err(error));
        }
        loop {
            if let State::Head(head) = &mut self.state {
                match head.as_mut().poll(context) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok(answer)) => self.take_head(answer),
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(self.broken(error))),
                }
            }
            match self.message() {
                Ok(None) => {}
                Ok(message) => return Poll::Ready(Ok(message)),
                Err(error) => {
                    self.state = State::Ended;
                    return Poll::Ready(Err(error));
                }
            }
            let data = match self.found.take() {
                Some(found) => found,
                None => self.poll_data(context),
            };
            match data {
                Data::Pending => return Poll::Pending,
                Data::More => {}
                Data::Broken(error) => return Poll::Ready(Err(self.broken(error))),
                Data::End => return Poll::Ready(self.end()),
            }
        }
    }

    fn take_head(&mut self, answer: Response<Incoming>) {
        let (head, body) = answer.into_parts();
        let fields = Fields { headers: head.headers, ..Fields::default() };
        let status = head.status.as_u16();
        self.state = State::Body { body, status, fields: Box::new(fields) };
    }

    fn broken(&mut self, error: hyper::Error) -> CallError {
        self.state = State::Ended;
        CallError::Connection(ConnectionError::Broken(error))
    }

    /// A message that is there as a whole.
    fn message(&mut self) -> Result<Option<A>, CallError> {
        // What a proxy says is none, nor is what stands behind an error.
        if !matches!(self.state, State::Body { status: 200, .. }) {
            return Ok(None);
        }
        let Some(bytes) = self.frames.next()? else { return Ok(None) };
        let message = A::decode(bytes).map_err(|error| CallError::Unreadable(error.to_string()))?;
        Ok(Some(message))
    }

    /// Takes what has come.
    fn poll_data(&mut self, context: &mut Context<'_>) -> Data {
        let State::Body { body, status, fields } = &mut self.state else { return Data::End };
        match Pin::new(body).poll_frame(context) {
            Poll::Pending => Data::Pending,
            Poll::Ready(None) => Data::End,
            Poll::Ready(Some(Err(error))) => Data::Broken(error),
            Poll::Ready(Some(Ok(frame))) => {
                match frame.into_data() {
                    // Of a text for people the beginning is enough.
                    Ok(data) if *status != 200 => {
                        self.frames.push_some(&data, SHOWN_BYTES_MAX);
                    }
                    Ok(data) => self.frames.push(&data),
                    Err(frame) => {
                        if let Ok(trailers) = frame.into_trailers() {
                            fields.trailers = trailers;
                        }
                    }
                }
                Data::More
            }
        }
    }

    /// The body is over: what the server says.
    fn end(&mut self) -> Result<Option<A>, CallError> {
        let state = std::mem::replace(&mut self.state, State::Ended);
        let State::Body { status, fields, .. } = state else {
            return Err(CallError::Connection(ConnectionError::Lost));
        };
        let Fields { mut headers, mut trailers } = *fields;
        for fields in [&mut headers, &mut trailers] {
            self.redactor.hide_in_header(fields, "grpc-message");
        }
        match Status::read(&headers, &trailers, SHOWN_BYTES_MAX) {
            Some(Status { code: Code::Ok, .. }) => {
                self.frames.end()?;
                Ok(None)
            }
            Some(status) => Err(CallError::Status(status)),
            None => {
                let mut said = self.frames.rest().to_vec();
                self.redactor.hide(&mut said);
                let said =
                    if status == 200 { String::new() } else { excerpt(&said, SHOWN_BYTES_MAX) };
                Err(CallError::Foreign { status, said })
            }
        }
    }
}

/// What [`Answers::poll_data`] found.
enum Data {
    Pending,
    More,
    End,
    Broken(hyper::Error),
}
