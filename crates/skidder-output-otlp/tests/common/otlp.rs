//! A scripted receiver of OTLP over gRPC and over HTTP; requests are read with the messages of
//! `opentelemetry-proto`.

use super::number;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use opentelemetry_proto::tonic::collector::logs::v1::{
    ExportLogsPartialSuccess, ExportLogsServiceRequest, ExportLogsServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use prost::Message as _;
use skidder_contract::{listen, serve_all};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read as _, Write as _};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;

/// What to do with one request that has logs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// Take everything.
    Ok,
    /// Take nothing now: UNAVAILABLE, 503.
    Busy,
    /// Take nothing for so many seconds: RESOURCE_EXHAUSTED with RetryInfo, 429 with Retry-After.
    TooMany(u8),
    /// Take nothing ever: INVALID_ARGUMENT, 400.
    Bad,
    /// Too large if there are more logs than this, else take everything. Stays in the script.
    AtMost(usize),
    /// RESOURCE_EXHAUSTED without a reason, 503 over HTTP.
    Exhausted,
    /// Take all but the first so many, and report the number.
    AllBut(usize),
    /// An answer that is none, with the status of a success.
    Nonsense,
    /// Take nothing, and answer 200 with this type and body; over gRPC with the status of a success besides.
    Reply(&'static str, &'static str),
    /// Read everything, take nothing, give no answer.
    Drop,
    /// Send nothing until the other side gives up.
    Silence,
    /// Take everything and close the connection behind the answer.
    OkAndClose,
}

#[derive(Default)]
pub(crate) struct State {
    script: VecDeque<Act>,
    /// How often each line was taken.
    pub(crate) taken: BTreeMap<usize, usize>,
    /// Requests as they came, with their path and headers, those without logs too.
    pub(crate) requests: Vec<(String, HeaderMap, ExportLogsServiceRequest)>,
    pub(crate) connections: usize,
    pub(crate) closed: usize,
    /// The required header `authorization`.
    pub(crate) allows: Option<&'static str>,
}

#[derive(Clone)]
pub(crate) struct FakeCollector {
    pub(crate) address: String,
    pub(crate) state: Arc<Mutex<State>>,
    grpc: bool,
}

/// A body with trailers.
struct Reply(VecDeque<Frame<Bytes>>);

impl Body for Reply {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        Poll::Ready(self.0.pop_front().map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }
}

impl FakeCollector {
    pub(crate) async fn start(grpc: bool, script: impl IntoIterator<Item = Act>) -> Self {
        Self::start_with(grpc, script, None).await
    }

    pub(crate) async fn start_with(
        grpc: bool,
        script: impl IntoIterator<Item = Act>,
        tls: Option<TlsAcceptor>,
    ) -> Self {
        let (listener, address) = listen().await;
        let state = State { script: script.into_iter().collect(), ..State::default() };
        let server =
            Self { address: address.to_string(), state: Arc::new(Mutex::new(state)), grpc };
        let serving = server.clone();
        let counting = server.clone();
        let accepted = move || counting.state.lock().unwrap().connections += 1;
        serve_all(listener, tls, accepted, move |stream| {
            let server = serving.clone();
            async move { server.serve(stream).await }
        });
        server
    }

    pub(crate) fn taken(&self) -> BTreeMap<usize, usize> {
        self.state.lock().unwrap().taken.clone()
    }

    async fn serve(&self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let service = service_fn(|request| {
            let server = self.clone();
            async move { server.answer(request).await }
        });
        let io = TokioIo::new(stream);
        // Broken connections are part of the test.
        if self.grpc {
            let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            drop(builder.serve_connection(io, service).await);
        } else {
            let builder = hyper::server::conn::http1::Builder::new();
            drop(builder.serve_connection(io, service).await);
        }
        self.state.lock().unwrap().closed += 1;
    }

    async fn answer(&self, request: Request<Incoming>) -> io::Result<Response<Reply>> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        let path = head.uri.path().to_owned();
        let message = self.unpack(&head.headers, &body);
        let logs = lines(&message);
        let codec = head.headers.get("grpc-encoding").cloned();
        let act = {
            let mut state = self.state.lock().unwrap();
            let authorization = head.headers.get("authorization").map(HeaderValue::as_bytes);
            let is_known =
                state.allows.is_none_or(|allows| authorization == Some(allows.as_bytes()));
            state.requests.push((path, head.headers, message));
            if !is_known {
                return Ok(self.refusal(401, 16, "who are you", &[]));
            }
            if logs.is_empty() {
                return Ok(self.success(None));
            }
            match state.script.front().copied() {
                Some(Act::AtMost(_)) => state.script.front().copied().unwrap(),
                _ => state.script.pop_front().unwrap_or(Act::Ok),
            }
        };
        let reply = match act {
            Act::Ok => self.take(&logs),
            Act::AtMost(most) if logs.len() <= most => self.take(&logs),
            Act::AtMost(_) => {
                self.refusal(413, 8, "grpc: received message larger than max (2 vs. 1)", &[])
            }
            Act::Busy => self.refusal(503, 14, "later%21", &[]),
            Act::Exhausted => self.refusal(503, 8, "quota", &[]),
            Act::TooMany(seconds) => self.refusal(429, 8, "slow down", &[seconds]),
            Act::Bad => self.refusal(400, 3, "bad", &[]),
            Act::AllBut(refused) => {
                let refused = refused.min(logs.len());
                self.take(&logs[refused..]);
                self.success(Some(refused as i64))
            }
            Act::Nonsense => self.reply(200, Bytes::from_static(b"<html>"), HeaderMap::new()),
            Act::Reply(kind, body) => {
                let mut trailers = HeaderMap::new();
                if self.grpc {
                    trailers.insert("grpc-status", HeaderValue::from_static("0"));
                }
                let mut reply = self.reply(200, Bytes::from_static(body.as_bytes()), trailers);
                reply.headers_mut().insert("content-type", HeaderValue::from_static(kind));
                return Ok(reply);
            }
            Act::Drop => return Err(io::Error::other("no answer")),
            Act::Silence => std::future::pending().await,
            Act::OkAndClose => {
                let mut reply = self.take(&logs);
                reply.headers_mut().insert("connection", HeaderValue::from_static("close"));
                reply
            }
        };
        Ok(in_codec(reply, codec))
    }

    fn unpack(&self, headers: &HeaderMap, body: &[u8]) -> ExportLogsServiceRequest {
        let name = if self.grpc { "grpc-encoding" } else { "content-encoding" };
        let codec = headers.get(name).map_or("none", |value| value.to_str().unwrap());
        let packed = if self.grpc {
            assert_eq!(headers["content-type"], "application/grpc");
            assert_eq!(headers["te"], "trailers");
            assert_eq!(body[0] == 1, codec != "none");
            let length = u32::from_be_bytes(body[1..5].try_into().unwrap());
            assert_eq!(length as usize, body.len() - 5);
            &body[5..]
        } else {
            assert_eq!(headers["content-type"], "application/x-protobuf");
            body
        };
        let mut plain = Vec::new();
        match codec {
            "none" => plain.extend_from_slice(packed),
            "gzip" => {
                flate2::read::GzDecoder::new(packed).read_to_end(&mut plain).unwrap();
            }
            "zstd" => {
                plain.reserve(64 << 20);
                zstd_safe::decompress(&mut plain, packed).unwrap();
            }
            other => panic!("{other}"),
        }
        ExportLogsServiceRequest::decode(&*plain).unwrap()
    }

    /// Counts the lines and answers that they are there.
    fn take(&self, logs: &[usize]) -> Response<Reply> {
        let mut state = self.state.lock().unwrap();
        for number in logs {
            *state.taken.entry(*number).or_default() += 1;
        }
        self.success(None)
    }

    fn success(&self, refused: Option<i64>) -> Response<Reply> {
        let partial_success = refused.map(|rejected_log_records| ExportLogsPartialSuccess {
            rejected_log_records,
            error_message: "not those".to_owned(),
        });
        let message = ExportLogsServiceResponse { partial_success }.encode_to_vec();
        let mut trailers = HeaderMap::new();
        let mut body = Vec::new();
        if self.grpc {
            body.push(0);
            body.extend_from_slice(&(message.len() as u32).to_be_bytes());
            trailers.insert("grpc-status", HeaderValue::from_static("0"));
        }
        body.extend_from_slice(&message);
        self.reply(200, body.into(), trailers)
    }

    /// `wait`: the seconds to wait, if any.
    fn refusal(&self, status: u16, code: u8, said: &'static str, wait: &[u8]) -> Response<Reply> {
        let mut fields = HeaderMap::new();
        if !self.grpc {
            let mut reply = self.reply(status, Bytes::from_static(said.as_bytes()), fields);
            reply.headers_mut().insert("content-type", HeaderValue::from_static("text/plain"));
            if let [seconds] = wait {
                reply.headers_mut().insert("retry-after", HeaderValue::from(u16::from(*seconds)));
            }
            return reply;
        }
        fields.insert("grpc-status", HeaderValue::from(u16::from(code)));
        fields.insert("grpc-message", HeaderValue::from_static(said));
        if let [seconds] = wait {
            // google.rpc.Status { details: Any { RetryInfo { retry_delay { seconds } } } }
            let mut details = b"\x08\x08\x1a\x30\x0a\x28type.googleapis.com/google.rpc.RetryInfo\x12\x04\x0a\x02\x08".to_vec();
            details.push(*seconds);
            use base64::Engine as _;
            let text = base64::engine::general_purpose::STANDARD.encode(details);
            fields.insert("grpc-status-details-bin", text.parse().unwrap());
        }
        // An answer without a body has its trailers as headers.
        let mut reply = self.reply(200, Bytes::new(), HeaderMap::new());
        reply.headers_mut().extend(fields);
        reply
    }

    fn reply(&self, status: u16, body: Bytes, trailers: HeaderMap) -> Response<Reply> {
        let mut frames = VecDeque::new();
        if !body.is_empty() {
            frames.push_back(Frame::data(body));
        }
        if !trailers.is_empty() {
            frames.push_back(Frame::trailers(trailers));
        }
        let mut response = Response::new(Reply(frames));
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        let kind = if self.grpc { "application/grpc" } else { "application/x-protobuf" };
        response.headers_mut().insert("content-type", HeaderValue::from_static(kind));
        response
    }
}

/// An answer of gRPC in the codec of the request, as grpc-go does.
fn in_codec(mut reply: Response<Reply>, codec: Option<HeaderValue>) -> Response<Reply> {
    let Some(codec) = codec.filter(|codec| codec == "gzip") else { return reply };
    for frame in &mut reply.body_mut().0 {
        let Some(data) = frame.data_ref().filter(|data| data[..] != *b"<html>") else { continue };
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(&data[5..]).unwrap();
        let packed = packed.finish().unwrap();
        let mut body = vec![1];
        body.extend_from_slice(&(packed.len() as u32).to_be_bytes());
        body.extend_from_slice(&packed);
        *frame = Frame::data(body.into());
    }
    reply.headers_mut().insert("grpc-encoding", codec);
    reply
}

/// Numbers of the lines of a request.
pub(crate) fn lines(request: &ExportLogsServiceRequest) -> Vec<usize> {
    let scopes = request.resource_logs.iter().flat_map(|group| &group.scope_logs);
    let records = scopes.flat_map(|scope| &scope.log_records);
    let body = |value: &Option<_>| match value {
        Some(Value::StringValue(text)) => number(text),
        other => panic!("{other:?}"),
    };
    records.map(|record| body(&record.body.as_ref().unwrap().value)).collect()
}
