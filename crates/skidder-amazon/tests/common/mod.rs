//! A scripted server that checks signatures, and clients of it.
#![allow(dead_code, reason = "each test program uses a part of it")]

use skidder_amazon::{
    Client, Failure, Meter, Provider, Refused, Service, Source, Target, bucket_url,
};
use skidder_aws::Credentials;
use skidder_config::Secret;
use skidder_contract::{ReceivedRequest, Signer, listen, serve_all};
use skidder_net::{HostUrl, ProxyChoice};
use skidder_os::{RealFs, SystemClock};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};

pub(crate) const KEYS: (&str, &str) = ("AKIDTEST", "a/secret+of=tests");
pub(crate) const REGION: &str = "eu-test-1";

/// What to do with one request.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Answer this, whole.
    Answer(u16, Vec<(&'static str, String)>, String),
    /// Answer this, as it is, and close the connection.
    Raw(String),
    /// Answer with an empty object, and close the connection behind it without saying so.
    OkAndClose,
    /// Send nothing.
    Silence,
}

impl Act {
    pub(crate) fn xml(status: u16, body: &str) -> Self {
        Self::Answer(status, Vec::new(), body.to_owned())
    }

    pub(crate) fn json(status: u16, body: serde_json::Value) -> Self {
        Self::Answer(status, Vec::new(), body.to_string())
    }
}

#[derive(Clone)]
pub(crate) struct Scripted {
    pub(crate) address: String,
    service: &'static str,
    script: Arc<Mutex<VecDeque<Act>>>,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
    /// Connections so far.
    pub(crate) connections: Arc<AtomicU64>,
}

impl Scripted {
    pub(crate) async fn start(
        service: &'static str,
        script: impl IntoIterator<Item = Act>,
    ) -> Self {
        let (listener, address) = listen().await;
        let script = Arc::new(Mutex::new(script.into_iter().collect()));
        let (requests, connections) = (Arc::default(), Arc::<AtomicU64>::default());
        let address = address.to_string();
        let server = Self { address, service, script, requests, connections };
        let serving = server.clone();
        let connections = Arc::clone(&server.connections);
        let accepted = move || {
            connections.fetch_add(1, Ordering::Relaxed);
        };
        serve_all(listener, None, accepted, move |stream| {
            let server = serving.clone();
            async move { drop(server.serve(stream).await) }
        });
        server
    }

    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// The request, which must be the only one since the last call.
    pub(crate) fn one(&self) -> ReceivedRequest {
        let requests = std::mem::take(&mut *self.requests.lock().unwrap());
        assert_eq!(requests.len(), 1, "{requests:?}");
        requests.into_iter().next().unwrap()
    }

    async fn serve(&self, stream: impl AsyncRead + AsyncWrite + Unpin) -> std::io::Result<()> {
        let mut stream = BufReader::new(stream);
        while let Some(request) = ReceivedRequest::read(&mut stream).await? {
            let signer =
                Signer { id: KEYS.0, secret: KEYS.1, region: REGION, service: self.service };
            let checked = request.check(signer);
            let is_head = request.method == "HEAD";
            self.requests.lock().unwrap().push(request);
            let act = match checked {
                Ok(()) => self.script.lock().unwrap().pop_front().expect("an act is left"),
                Err((status, code)) => {
                    Act::xml(status, &format!("<Error><Code>{code}</Code></Error>"))
                }
            };
            match act {
                Act::Answer(status, headers, body) => {
                    let mut head = format!("HTTP/1.1 {status} X\r\n");
                    for (name, value) in &headers {
                        head += &format!("{name}: {value}\r\n");
                    }
                    if !headers.iter().any(|(name, _)| *name == "content-length") {
                        head += &format!("content-length: {}\r\n", body.len());
                    }
                    let body = if is_head { "" } else { &*body };
                    stream.write_all(format!("{head}\r\n{body}").as_bytes()).await?;
                }
                Act::Raw(text) => {
                    stream.write_all(text.as_bytes()).await?;
                    return Ok(());
                }
                Act::OkAndClose => {
                    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await?;
                    return Ok(());
                }
                Act::Silence => std::future::pending().await,
            }
        }
        Ok(())
    }
}

pub(crate) fn keys(id: &str, secret: &str) -> Source {
    Source::Fixed(Credentials { id: id.to_owned(), secret: Secret::new(secret), session: None })
}

/// A service at an address; `bucket` only for S3.
pub(crate) fn service(
    name: &'static str,
    address: &str,
    source: Source,
    bucket: Option<&str>,
) -> Service {
    let url = HostUrl::parse(&format!("http://{address}"), "", "", |_| 80).unwrap();
    let direct = ProxyChoice::Direct;
    let url = match bucket {
        Some(bucket) => bucket_url(url, bucket, true),
        None => url,
    };
    Service {
        name,
        region: REGION.to_owned(),
        target: Arc::new(Target::at(url, &direct)),
        tls: None,
        provider: Arc::new(Provider::new(source, direct, Arc::new(RealFs)).unwrap()),
        timeout: Duration::from_secs(20),
    }
}

/// Counts what a client sends and gets.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    pub(crate) answers: AtomicU64,
    pub(crate) sent: AtomicU64,
    pub(crate) received: AtomicU64,
}

impl Counted {
    pub(crate) fn numbers(&self) -> (u64, u64, u64) {
        let of = |number: &AtomicU64| number.load(Ordering::Relaxed);
        (of(&self.answers), of(&self.sent), of(&self.received))
    }
}

impl Meter for Counted {
    fn answered(&self, sent_bytes: u64, _: Duration) {
        self.answers.fetch_add(1, Ordering::Relaxed);
        self.sent.fetch_add(sent_bytes, Ordering::Relaxed);
    }

    fn received(&self, bytes: u64) {
        self.received.fetch_add(bytes, Ordering::Relaxed);
    }
}

pub(crate) fn client(service: &Service) -> Client {
    service.client(Arc::new(()), Arc::new(SystemClock::new()))
}

pub(crate) fn refused(failure: Failure) -> Refused {
    match failure {
        Failure::Refused(refused) => *refused,
        other => panic!("{other:?}"),
    }
}
