//! Calls and streams at a small server of hyper's.

use crate::{Answers, CallError, Channel, Code, Origin, Requests, decode_percent, head};
use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;

const SOON: Duration = Duration::from_secs(20);

/// A message with a text.
#[derive(Clone, PartialEq, Message)]
struct Note {
    #[prost(string, tag = "1")]
    text: String,
}

fn note(text: &str) -> Note {
    Note { text: text.to_owned() }
}

fn framed(text: &str) -> Frame<Bytes> {
    let body = note(text).encode_to_vec();
    let mut bytes = head(false, body.len() as u32).to_vec();
    bytes.extend(body);
    Frame::data(bytes.into())
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

fn trailers(code: &str, message: &str) -> HeaderMap {
    let mut fields = HeaderMap::new();
    fields.insert("grpc-status", HeaderValue::from_str(code).unwrap());
    fields.insert("grpc-message", HeaderValue::from_str(message).unwrap());
    fields
}

async fn answer(mut request: Request<Incoming>) -> Result<Response<Out>, Infallible> {
    let (out, frames) = mpsc::unbounded_channel();
    let mut response = Response::new(Out(frames));
    let login = request.headers().get(AUTHORIZATION).cloned();
    match request.uri().path() {
        "/s/Echo" => {
            assert_eq!(request.headers()["te"], "trailers");
            assert_eq!(request.headers()["content-type"], "application/grpc");
            tokio::spawn(async move {
                while let Some(Ok(frame)) = request.body_mut().frame().await {
                    out.send(Frame::data(frame.into_data().unwrap())).unwrap();
                }
                out.send(Frame::trailers(trailers("0", ""))).unwrap();
            });
        }
        // A status without a body stands in the headers.
        "/s/Refuse" => {
            let said = format!("who is {}?", login.unwrap().to_str().unwrap()).replace(' ', "%20");
            *response.headers_mut() = trailers("16", &said);
        }
        "/s/Break" => {
            out.send(framed("one")).unwrap();
            out.send(framed("two")).unwrap();
            out.send(Frame::trailers(trailers("14", "later"))).unwrap();
        }
        "/s/Cut" => {
            out.send(Frame::data(Bytes::from_static(b"\0\0\0\0\x09a"))).unwrap();
            out.send(Frame::trailers(trailers("0", ""))).unwrap();
        }
        "/s/Garbage" => {
            out.send(framed("one")).unwrap();
            out.send(Frame::data(Bytes::from_static(b"\0\0\0\0\x02\xff\xff"))).unwrap();
            out.send(framed("two")).unwrap();
            out.send(Frame::trailers(trailers("0", ""))).unwrap();
        }
        "/s/Silent" => {
            tokio::time::sleep(Duration::from_hours(1)).await;
        }
        _ => {
            *response.status_mut() = http::StatusCode::BAD_GATEWAY;
            out.send(Frame::data(Bytes::from_static(b"<p>no</p>"))).unwrap();
        }
    }
    Ok(response)
}

async fn channel() -> Channel {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    tokio::spawn(async move {
        let serving = http2::Builder::new(TokioExecutor::new())
            .serve_connection(TokioIo::new(theirs), service_fn(answer));
        drop(serving.await);
    });
    let origin = Origin { https: false, authority: "server:1".to_owned() };
    Channel::over(Box::new(ours), &Arc::new(origin)).await.unwrap()
}

fn login() -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut value = HeaderValue::from_static("Bearer geheimnis");
    value.set_sensitive(true);
    headers.insert(AUTHORIZATION, value);
    headers
}

#[tokio::test]
async fn calls_run_beside_each_other_over_one_connection() {
    let channel = channel().await;
    let headers = HeaderMap::new();
    let question = note("x");
    let silent = channel.call::<Note>("/s/Silent", &headers, &question, Duration::from_millis(300));
    let echoes = async {
        for number in 0..100 {
            let text = format!("{number}").repeat(1 + number * 100);
            let echo = channel.call::<Note>("/s/Echo", &headers, &note(&text), SOON).await.unwrap();
            assert_eq!(echo.text, text);
        }
    };
    let (silent, ()) = tokio::join!(silent, echoes);
    let error = silent.unwrap_err();
    assert!(matches!(error, CallError::Connection(_)) && !error.keeps_connection(), "{error}");
}

#[tokio::test]
async fn a_refusal_has_its_code_and_no_secret() {
    let channel = channel().await;
    let error = channel.call::<Note>("/s/Refuse", &login(), &note("x"), SOON).await.unwrap_err();
    assert_eq!(error.code(), Some(Code::Unauthenticated));
    assert!(error.keeps_connection());
    let text = error.to_string();
    assert!(text.starts_with("the server answered UNAUTHENTICATED: who is "), "{text}");
    assert!(!text.contains("geheimnis"), "{text}");
    let error = channel.call::<Note>("/s/None", &login(), &note("x"), SOON).await.unwrap_err();
    let CallError::Foreign { status: 502, said } = &error else { panic!("{error}") };
    assert!(said.contains("no"), "{said}");
    let error = channel.call::<Note>("/s/Cut", &login(), &note("x"), SOON).await.unwrap_err();
    assert!(error.to_string().contains("ends in the middle"), "{error}");
    let error = channel.call::<Note>("/s/Break", &login(), &note("x"), SOON).await.unwrap_err();
    assert!(error.to_string().contains("two messages"), "{error}");
    assert!(channel.is_open());
    assert_eq!(decode_percent("a%20b%zz%"), b"a b%zz%");
}

#[tokio::test]
async fn a_stream_goes_both_ways_at_any_time() {
    let channel = channel().await;
    let (requests, mut answers): (Requests<Note>, Answers<Note>) =
        channel.stream("/s/Echo", &HeaderMap::new()).await.unwrap();
    for round in 0..10 {
        for number in 0..round {
            requests.send(&note(&format!("{round}.{number}"))).await.unwrap();
        }
        for number in 0..round {
            let answer = answers.next().await.unwrap().unwrap();
            assert_eq!(answer.text, format!("{round}.{number}"));
        }
        assert_eq!(answers.try_next(), None);
    }
    // Nothing is lost if waiting is given up.
    let waiting = tokio::time::timeout(Duration::from_millis(20), answers.next()).await;
    assert!(waiting.is_err());
    requests.send(&note("last")).await.unwrap();
    drop(requests);
    assert_eq!(answers.next().await.unwrap(), Some(note("last")));
    assert_eq!(answers.next().await.unwrap(), None);
    assert!(matches!(answers.next().await, Err(CallError::Connection(_))));
}

#[tokio::test]
async fn messages_before_the_end_come_first_and_the_end_is_found_once() {
    let channel = channel().await;
    let (_requests, mut answers): (Requests<Note>, Answers<Note>) =
        channel.stream("/s/Break", &HeaderMap::new()).await.unwrap();
    let mut texts = vec![answers.next().await.unwrap().unwrap().text];
    while texts.len() < 2 {
        texts.extend(answers.try_next().map(|note| note.text));
        tokio::task::yield_now().await;
    }
    assert_eq!(texts, ["one", "two"]);
    for _ in 0..20 {
        assert_eq!(answers.try_next(), None);
        tokio::task::yield_now().await;
    }
    let error = answers.next().await.unwrap_err();
    assert_eq!(error.code(), Some(Code::Unavailable));
    assert_eq!(error.to_string(), "the server answered UNAVAILABLE: later");
}

#[tokio::test]
async fn a_message_that_cannot_be_read_is_an_error_whoever_finds_it() {
    for tries in [0, 20] {
        let channel = channel().await;
        let (_requests, mut answers): (Requests<Note>, Answers<Note>) =
            channel.stream("/s/Garbage", &HeaderMap::new()).await.unwrap();
        assert_eq!(answers.next().await.unwrap(), Some(note("one")));
        for _ in 0..tries {
            assert_eq!(answers.try_next(), None, "nothing comes behind it");
            tokio::task::yield_now().await;
        }
        let error = answers.next().await.unwrap_err();
        assert!(matches!(error, CallError::Unreadable(_)), "{error}");
        assert!(answers.next().await.is_err());
    }
}

#[tokio::test]
async fn a_connection_that_breaks_ends_its_streams() {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let serving = tokio::spawn(async move {
        let serving = http2::Builder::new(TokioExecutor::new())
            .serve_connection(TokioIo::new(theirs), service_fn(answer));
        drop(serving.await);
    });
    let origin = Origin { https: false, authority: "server:1".to_owned() };
    let channel = Channel::over(Box::new(ours), &Arc::new(origin)).await.unwrap();
    let (requests, mut answers): (Requests<Note>, Answers<Note>) =
        channel.stream("/s/Echo", &HeaderMap::new()).await.unwrap();
    requests.send(&note("a")).await.unwrap();
    assert_eq!(answers.next().await.unwrap(), Some(note("a")));
    serving.abort();
    let error = answers.next().await.unwrap_err();
    assert!(matches!(error, CallError::Connection(_)), "{error}");
}
