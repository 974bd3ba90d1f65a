//! Requests over HTTP/2: with prior knowledge and negotiated by TLS, many at once, and within limits.

use super::faces::{ELASTICSEARCH, LOKI, OTLP, SPLUNK};
use super::*;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};

/// A client that sends requests over one connection.
#[derive(Clone)]
pub(super) struct Client(SendRequest<Full<Bytes>>);

impl Client {
    pub(super) async fn connect(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).await.unwrap()).await.unwrap()
    }

    pub(super) async fn over(
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) -> Option<Self> {
        let builder = Builder::new(TokioExecutor::new());
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.ok()?;
        // Its end is that of its requests.
        tokio::spawn(async move { drop(connection.await) });
        Some(Self(sender))
    }

    /// The answer, with its trailers among its headers; nothing if the connection ends before.
    pub(super) async fn send(&self, request: Request<Full<Bytes>>) -> Option<Answered> {
        let mut sender = self.0.clone();
        sender.ready().await.ok()?;
        let (head, body) = sender.send_request(request).await.ok()?.into_parts();
        let body = body.collect().await.ok()?;
        let mut headers = BTreeMap::<_, Vec<_>>::new();
        for (name, value) in head.headers.iter().chain(body.trailers().into_iter().flatten()) {
            let value = value.to_str().unwrap().to_owned();
            headers.entry(name.to_string()).or_default().push(value);
        }
        headers.remove("content-length");
        headers.remove("date");
        let body = String::from_utf8_lossy(&body.to_bytes()).into_owned();
        Some(Answered { status: head.status.as_u16(), headers, body })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

/// The bytes of a request of HTTP/1.1 as one of HTTP/2.
fn request_of_bytes(bytes: &[u8]) -> Request<Full<Bytes>> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut lines = head.lines();
    let mut first = lines.next().unwrap().split(' ');
    let (method, path) = (first.next().unwrap(), first.next().unwrap());
    let mut request = Request::builder().method(method).uri(format!("http://h{path}"));
    for line in lines.filter(|line| !line.starts_with("Host")) {
        let (name, value) = line.split_once(": ").unwrap();
        request = request.header(name, value);
    }
    request.body(Full::from(bytes[end + 4..].to_vec())).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_face_answers_over_http2_as_over_http1() {
    for dialect in [PLAIN, ELASTICSEARCH, SPLUNK, LOKI, OTLP] {
        let (address, sockets) = free_address();
        let mut bench = Bench::start(input(address, dialect.settings, &sockets), 100);
        let client = Client::connect(address).await;
        let mut requests = (dialect.garbage)();
        requests.extend([get("/none"), (dialect.request)(&[1, 2])]);
        for bytes in requests {
            let (copy, client) = (bytes.clone(), client.clone());
            let asking = tokio::spawn(async move {
                let one = exchange(address, &copy).await;
                (one, client.send(request_of_bytes(&copy)).await.unwrap())
            });
            bench.until("both answers", |_| asking.is_finished()).await;
            let (one, two) = asking.await.unwrap();
            let (mut of_one, mut of_two) = (one.headers, two.headers);
            of_one.remove("transfer-encoding");
            of_two.remove("transfer-encoding");
            assert_eq!((one.status, of_one), (two.status, of_two), "{}", dialect.settings);
            assert_eq!(one.body, two.body);
        }
        bench.events(4).await;
        bench.stop().await;
    }
}

fn get(path: &str) -> Vec<u8> {
    bytes_of("GET", path, "", b"")
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_a_connection_do_not_wait_for_each_other() {
    let (address, sockets) = free_address();
    let more = ", include_headers: [cookie]";
    let mut bench = Bench::start(input(address, more, &sockets), 1000);
    bench.is_stuck = true;
    let client = Client::connect(address).await;
    let mut waiting = Vec::new();
    for number in 0..50 {
        let bytes = post("/?wait_for_completion_timeout=30s", &format!("{{\"n\":{number}}}"));
        let mut request = request_of_bytes(&bytes);
        for cookie in ["a=1", "b=2"] {
            request.headers_mut().append("cookie", cookie.parse().unwrap());
        }
        let client = client.clone();
        waiting.push(tokio::spawn(async move { client.send(request).await.unwrap().status }));
    }
    bench.until("all are read", |bench| bench.input.metrics().published.get() == 50).await;
    assert!(waiting.iter().all(|waiting| !waiting.is_finished()), "they have no verdicts");
    let refused = client.send(request_of_bytes(&post("/", "no"))).await.unwrap();
    assert_eq!(refused.status, 400);
    bench.is_stuck = false;
    bench.events(50).await;
    for waiting in waiting {
        assert_eq!(waiting.await.unwrap(), 200);
    }
    let mut numbers: Vec<u64> =
        bench.events.iter().map(|event| event["json"]["n"].as_u64().unwrap()).collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..50));
    assert_eq!(bench.events[0]["headers"]["Cookie"], json!(["a=1; b=2"]), "as with HTTP/1.1");
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_cancels_a_request_gives_up_what_is_not_in_the_queue() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, ELASTICSEARCH.settings, &sockets), 1);
    bench.is_stuck = true;
    let client = Client::connect(address).await;
    for number in 0..2 {
        let request = request_of_bytes(&(ELASTICSEARCH.request)(&[number]));
        let client = client.clone();
        let asking = tokio::spawn(async move { client.send(request).await });
        let read = number as u64 + 1;
        bench.until("it is read", |bench| bench.input.metrics().events.get() == read).await;
        asking.abort();
    }
    bench.until("both are given up", |bench| bench.input.metrics().open.get() == 0).await;
    bench.is_stuck = false;
    bench.events(1).await;
    assert_eq!(bench.events[0]["message"], line(0));
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_announces_itself_and_answers_what_is_open() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, "", &sockets), 100);
    bench.is_stuck = true;
    let client = Client::connect(address).await;
    let request = request_of_bytes(&post("/?wait_for_completion_timeout=1h", "{\"a\":1}"));
    let asking = client.clone();
    let waiting = tokio::spawn(async move { asking.send(request).await });
    bench.until("it is read", |bench| bench.input.metrics().published.get() == 1).await;
    bench.stop_without_taking().await;
    let answered = waiting.await.unwrap().unwrap();
    assert!([503, 504].contains(&answered.status), "{answered:?}");
    while !client.is_closed() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(client.send(request_of_bytes(&post("/", "{}"))).await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_is_too_long_is_refused_and_the_connection_goes_on() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, "", &sockets), 100);
    let client = Client::connect(address).await;
    let mut long = request_of_bytes(&post("/", "{}"));
    for number in 0..30 {
        let name = hyper::header::HeaderName::try_from(format!("x-long-{number}")).unwrap();
        long.headers_mut().insert(name, "x".repeat(3000).parse().unwrap());
    }
    // Its client may refuse to send it, as the server said how much it takes.
    let refused = client.send(long).await;
    assert!(refused.is_none_or(|answered| answered.status == 431));
    let client = Client::connect(address).await;
    let taken = client.send(request_of_bytes(&post("/", "{\"a\":1}"))).await;
    assert_eq!(taken.unwrap().status, 200);
    bench.events(1).await;
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_with_tls_choose_the_version() {
    let certificates = Certificates::new();
    let (address, sockets) = free_address();
    let ssl = format!(
        ", ssl: {{certificate: '{}', key: '{}'}}",
        certificates.path("localhost.pem"),
        certificates.path("localhost.key")
    );
    let mut bench = Bench::start(input(address, &ssl, &sockets), 100);
    let url = format!("https://localhost:{}/", address.port());
    let resolve = format!("localhost:{}:127.0.0.1", address.port());
    for (number, (flag, expected)) in
        [("--http2", "2 200"), ("--http1.1", "1.1 200"), ("--no-alpn", "1.1 200")]
            .into_iter()
            .enumerate()
    {
        let asking = tokio::process::Command::new("curl")
            .args([
                "-s",
                "-S",
                "--insecure",
                "--resolve",
                &resolve,
                "-w",
                "%{http_version} %{http_code}",
            ])
            .args(["-H", "Content-Type: application/json", "-d", "{\"a\":1}", "-o", "/dev/null"])
            .args([flag, &url])
            .output()
            .await
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&asking.stdout), expected, "{asking:?}");
        bench.events(number + 1).await;
    }
    bench.stop().await;
}
