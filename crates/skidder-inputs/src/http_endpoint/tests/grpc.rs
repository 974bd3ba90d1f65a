//! Clients of OTLP over gRPC.

use super::faces::plain;
use super::http2::Client;
use super::*;
use crate::http_endpoint::faces::testing::bytes;
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use std::io::Write as _;

const EXPORT: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";

fn frame(is_packed: bool, message: &[u8]) -> Vec<u8> {
    let mut out = vec![u8::from(is_packed)];
    out.extend((message.len() as u32).to_be_bytes());
    out.extend(message);
    out
}

/// A message with records that have these texts.
fn message(texts: &[String]) -> Vec<u8> {
    let record = |text: &String| bytes(2, &bytes(5, &bytes(1, text.as_bytes())));
    let records: Vec<u8> = texts.iter().flat_map(record).collect();
    bytes(1, &bytes(2, &records))
}

/// A request with this body, and headers that replace the usual ones.
pub(super) fn request(headers: &[(&'static str, &str)], body: &[u8]) -> Request<Full<Bytes>> {
    let mut request = Request::post(format!("http://h{EXPORT}"))
        .header("te", "trailers")
        .header("content-type", "application/grpc")
        .body(Full::from(body.to_vec()))
        .unwrap();
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    request
}

pub(super) const GRPC: Dialect = Dialect {
    settings: ", accept: [otlp]",
    is_grpc: true,
    request: |lines| {
        let lines: Vec<String> = lines.iter().map(|&number| line(number)).collect();
        frame(false, &message(&lines))
    },
    is_taken: |answered| answered.status == 200 && answered.header("grpc-status") == "0",
    garbage: || {
        let whole = message(&["line 0".to_owned()]);
        let broken = [&whole[..], &[0x0a, 0x7f]].concat();
        let right = frame(false, &whole);
        vec![
            frame(false, &broken),
            frame(true, &whole),
            right[..right.len() - 1].to_vec(),
            right.repeat(2),
            b"line 0".to_vec(),
            Vec::new(),
        ]
    },
};

#[tokio::test(flavor = "multi_thread")]
async fn otlp_over_grpc_keeps_the_contract_of_inputs() {
    keep_input(|| super::Client::new(GRPC)).await;
}

fn texts(numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(line).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_taken_plain_and_packed_and_damaged_records_are_counted() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, GRPC.settings, &sockets), 100);
    let client = Client::connect(address).await;
    let whole = message(&texts(0..1));
    let partial = bytes(
        1,
        &bytes(
            2,
            &[bytes(2, &bytes(5, &bytes(1, line(0).as_bytes()))), bytes(2, b"\x0b")].concat(),
        ),
    );
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&whole).unwrap();
    let packed = packed.finish().unwrap();
    let taken = "\0\0\0\0\0";
    let left_out =
        bytes(1, &[b"\x08\x01".to_vec(), bytes(2, b"malformed records are left out")].concat());
    let left_out = String::from_utf8(frame(false, &left_out)).unwrap();
    for (headers, body, expected) in [
        (&[][..], frame(false, &whole), taken),
        (&[("grpc-encoding", "gzip")], frame(true, &packed), taken),
        (&[("grpc-encoding", "zstd")], frame(true, &zstd(&whole)), taken),
        (&[("grpc-encoding", "gzip")], frame(false, &whole), taken),
        (&[("content-type", "application/grpc+proto")], frame(false, &whole), taken),
        (&[], frame(false, &partial), &*left_out),
    ] {
        let (client, request) = (client.clone(), request(headers, &body));
        let asking = tokio::spawn(async move { client.send(request).await.unwrap() });
        bench.events(1).await;
        let answered = asking.await.unwrap();
        assert_eq!((answered.status, answered.header("grpc-status")), (200, "0"), "{answered:?}");
        assert_eq!(answered.header("content-type"), "application/grpc");
        assert_eq!(answered.body, expected);
        let events = plain(&mut bench);
        assert!(events[0]["message"].as_str().unwrap().starts_with("line 0"), "{events:?}");
    }
    let empty = client.send(request(&[], &frame(false, b""))).await.unwrap();
    assert_eq!(
        (empty.header("grpc-status"), &*empty.body),
        ("0", taken),
        "a test of the connection"
    );
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_has_its_status() {
    let (address, sockets) = free_address();
    let settings =
        ", accept: otlp, basic_auth: true, username: u, password: p, max_body_bytes: 1KiB";
    let mut bench = Bench::start(input(address, settings, &sockets), 100);
    let client = Client::connect(address).await;
    let login = ("authorization", "Basic dTpw");
    let whole = frame(false, &message(&texts(0..1)));
    let long = frame(false, &message(&texts(0..1000)));
    for (headers, body, code, words) in [
        (&[][..], &whole, "16", "incorrect username or password"),
        (&[("authorization", "Basic eDp5")], &whole, "16", "incorrect username or password"),
        (&[login, ("grpc-encoding", "br")], &whole, "12", "grpc-encoding \"br\" is not supported"),
        (&[login], &long, "8", "longer than max_body_bytes, 1024 bytes"),
        (&[login], &b"nonsense".to_vec(), "3", "malformed frame of gRPC"),
        (&[login], &frame(false, b"\x0a\x7f"), "3", "malformed Protocol Buffers"),
        (&[login], &frame(true, b"no gzip"), "13", "grpc-encoding names no compression"),
        (
            &[login, ("grpc-encoding", "gzip")],
            &frame(true, b"no gzip"),
            "3",
            "gzip: invalid header",
        ),
    ] {
        let answered = client.send(request(headers, body)).await.unwrap();
        assert_eq!((answered.status, answered.header("grpc-status")), (200, code), "{answered:?}");
        assert_eq!(answered.header("content-type"), "application/grpc");
        assert!(answered.header("grpc-message").contains(words), "{answered:?}");
        assert_eq!(answered.header("grpc-status-details-bin"), "", "it is not to be sent again");
        let codings = if code == "12" { "identity,gzip,zstd" } else { "" };
        assert_eq!(answered.header("grpc-accept-encoding"), codings);
    }
    for (path, method, kind, status, code) in [
        (
            "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
            "POST",
            "application/grpc",
            200,
            "12",
        ),
        (EXPORT, "GET", "application/grpc", 405, ""),
        (EXPORT, "POST", "application/json", 415, ""),
        (EXPORT, "POST", "application/grpc+json", 415, ""),
        ("/v1/logs", "POST", "application/grpc", 200, "12"),
    ] {
        let mut other = request(&[login, ("content-type", kind)], &whole);
        *other.uri_mut() = format!("http://h{path}").parse().unwrap();
        *other.method_mut() = method.parse().unwrap();
        let answered = client.send(other).await.unwrap();
        assert_eq!(
            (answered.status, answered.header("grpc-status")),
            (status, code),
            "{answered:?}"
        );
    }
    let headers = "Authorization: Basic dTpw\r\nContent-Type: application/grpc\r\n";
    let old = exchange(address, &bytes_of("POST", EXPORT, headers, &whole)).await;
    assert_eq!(old.status, 505, "HTTP/1.1 has no trailers that clients read");
    bench.take();
    assert!(bench.events.is_empty(), "what was refused is no event: {:?}", bench.events);
    bench.stop().await;
}

fn zstd(plain: &[u8]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(zstd_safe::compress_bound(plain.len()));
    zstd_safe::compress(&mut packed, plain, 3).unwrap();
    packed
}

#[tokio::test(flavor = "multi_thread")]
async fn faces_take_zstd_within_limits_and_plain_json_does_not() {
    let (address, sockets) = free_address();
    let settings = ", accept: elasticsearch, max_body_bytes: 1MiB";
    let mut bench = Bench::start(input(address, settings, &sockets), 100);
    let body = b"{\"create\":{}}\n{\"message\":\"a\"}\n";
    let ask = async |packed: &[u8]| {
        let headers = "Content-Type: application/json\r\nContent-Encoding: zstd\r\n";
        exchange(address, &bytes_of("POST", "/_bulk", headers, packed)).await
    };
    let packed = zstd(body);
    let mut wide = packed.clone();
    // A window of 16 MiB: RFC 9659 allows 8.
    wide.splice(4..6, [0b0000_0000, 14 << 3]);
    for (wrong, status) in [
        (b"nonsense".to_vec(), 400),
        (Vec::new(), 400),
        (packed[..packed.len() - 1].to_vec(), 400),
        (wide, 400),
        (zstd(&vec![b' '; 64 << 20]), 413),
    ] {
        assert_eq!(ask(&wrong).await.status, status, "{} bytes", wrong.len());
    }
    // Several frames are one body.
    let (one, other) = body.split_at(20);
    let frames = [zstd(one), zstd(other)].concat();
    let asking = tokio::spawn(async move {
        let headers = "Content-Type: application/json\r\nContent-Encoding: zstd\r\n";
        exchange(address, &bytes_of("POST", "/_bulk", headers, &frames)).await.status
    });
    bench.events(1).await;
    assert_eq!(asking.await.unwrap(), 200);
    bench.stop().await;
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, "", &sockets), 100);
    let headers = format!("{JSON}Content-Encoding: zstd\r\n");
    let plain = exchange(address, &bytes_of("POST", "/", &headers, &zstd(b"{}"))).await;
    assert_eq!(plain.status, 415, "as Filebeat");
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bomb_of_gzip_in_a_frame_is_refused_at_the_limit() {
    let (address, sockets) = free_address();
    let settings = ", accept: otlp, max_body_bytes: 1MiB";
    let mut bench = Bench::start(input(address, settings, &sockets), 100);
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    bomb.write_all(&vec![0; 64 << 20]).unwrap();
    let bomb = request(&[("grpc-encoding", "gzip")], &frame(true, &bomb.finish().unwrap()));
    let answered = Client::connect(address).await.send(bomb).await.unwrap();
    assert_eq!(answered.header("grpc-status"), "8", "{answered:?}");
    bench.stop().await;
}

/// `google.rpc.Status` with the code 14, the message, and a `RetryInfo` of 3 s, as the Python package
/// `googleapis-common-protos` writes it.
const FULL: &str = "CA4SEXRoZSBxdWV1ZSBpcyBmdWxsGjAKKHR5cGUuZ29vZ2xlYXBpcy5jb20vZ29vZ2xlLnJwYy5SZXRyeUluZm8SBAoCCAM";

#[tokio::test(flavor = "multi_thread")]
async fn without_room_or_verdict_the_client_is_to_send_again_later() {
    let (address, sockets) = free_address();
    let settings = ", accept: otlp, completion_timeout: 100ms, retry_after: 3";
    let mut bench = Bench::start(input(address, settings, &sockets), 1);
    bench.is_stuck = true;
    let client = Client::connect(address).await;
    let one = || request(&[], &frame(false, &message(&texts(0..1))));
    for words in ["no verdict within completion_timeout", "the queue is full"] {
        let answered = client.send(one()).await.unwrap();
        assert_eq!((answered.status, answered.header("grpc-status")), (200, "14"), "{answered:?}");
        assert_eq!(answered.header("grpc-message"), words);
        let details = answered.header("grpc-status-details-bin");
        assert!(words != "the queue is full" || details == FULL, "{details}");
    }
    bench.is_stuck = false;
    bench.events(1).await;
    let asking = tokio::spawn(async move { client.send(one()).await.unwrap() });
    bench.events(2).await;
    assert_eq!(asking.await.unwrap().header("grpc-status"), "0");
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_much_in_flight_is_to_come_again_later_but_not_what_alone_is_too_much() {
    let (address, sockets) = free_address();
    let limits = "max_in_flight_bytes: 1000, high_water_in_flight_bytes: 999, retry_after: 0";
    let settings = format!(", accept: otlp, {limits}");
    let mut bench = Bench::start(input(address, &settings, &sockets), 100);
    bench.is_stuck = true;
    let client = Client::connect(address).await;
    let of_bytes = |bytes| request(&[], &frame(false, &message(&["x".repeat(bytes)])));
    let (other, one) = (client.clone(), of_bytes(600));
    let first = tokio::spawn(async move { other.send(one).await.unwrap() });
    bench.until("it is read", |bench| bench.input.metrics().published.get() == 1).await;
    let answered = client.send(of_bytes(600)).await.unwrap();
    assert_eq!(answered.header("grpc-status"), "14", "{answered:?}");
    assert!(
        answered.header("grpc-message").contains("max_in_flight_bytes is 1000"),
        "{answered:?}"
    );
    assert!(!answered.header("grpc-status-details-bin").is_empty());
    let answered = client.send(of_bytes(1001)).await.unwrap();
    assert_eq!(answered.header("grpc-status"), "8", "{answered:?}");
    assert_eq!(
        answered.header("grpc-message"),
        "the body is longer than max_in_flight_bytes, 1000 bytes"
    );
    bench.is_stuck = false;
    bench.events(1).await;
    assert_eq!(first.await.unwrap().header("grpc-status"), "0");
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_a_stop_a_request_without_its_verdicts_is_to_come_again() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, ", accept: otlp, retry_after: 3", &sockets), 100);
    bench.is_stuck = true;
    let client = Client::connect(address).await;
    let other = client.clone();
    let one = request(&[], &frame(false, &message(&texts(0..1))));
    let grpc = tokio::spawn(async move { other.send(one).await.unwrap() });
    let body = message(&texts(1..2));
    let http = bytes_of("POST", "/v1/logs", "Content-Type: Application/X-Protobuf\r\n", &body);
    let http = tokio::spawn(async move { exchange(address, &http).await });
    bench.until("they are read", |bench| bench.input.metrics().published.get() == 2).await;
    bench.stop_without_taking().await;
    let answered = grpc.await.unwrap();
    assert_eq!((answered.status, answered.header("grpc-status")), (200, "14"), "{answered:?}");
    assert!(!answered.header("grpc-status-details-bin").is_empty(), "{answered:?}");
    let answered = http.await.unwrap();
    assert_eq!((answered.status, answered.header("retry-after")), (429, "3"), "{answered:?}");
    assert_eq!(answered.header("content-type"), "application/x-protobuf");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_not_packed_as_it_says_is_called_damaged() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, ", accept: otlp", &sockets), 100);
    let client = Client::connect(address).await;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(&message(&texts(0..100))).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd(&message(&texts(0..100)));
    for (coding, packed) in [("gzip", gzip), ("zstd", zstd)] {
        let cut = frame(true, &packed[..packed.len() / 2]);
        let answered = client.send(request(&[("grpc-encoding", coding)], &cut)).await.unwrap();
        assert_eq!(answered.header("grpc-status"), "3", "{answered:?}");
        let words = answered.header("grpc-message");
        assert!(words.starts_with("the body is damaged behind"), "{words}");
    }
    bench.stop().await;
}

/// Sends lines through a client that forwards them; returns its answers.
async fn forward(
    client: &skidder_testkit::servers::Server,
    lines: std::ops::Range<usize>,
) -> Vec<String> {
    let stream = TcpStream::connect(("127.0.0.1", client.port())).await.unwrap();
    let (mut reader, mut writer) = stream.into_split();
    let all: String = texts(lines).join("\n") + "\n";
    let sending = async {
        writer.write_all(all.as_bytes()).await.unwrap();
        writer.shutdown().await.unwrap();
    };
    let mut answers = String::new();
    let ((), read) = tokio::join!(sending, reader.read_to_string(&mut answers));
    read.unwrap();
    answers.lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "builds a client in Go"]
async fn the_library_of_go_sends_everything_once_and_gives_up_what_is_refused() {
    const LINES: usize = 5000;
    let certificates = Certificates::new();
    let (pem, key) = (certificates.path("localhost.pem"), certificates.path("localhost.key"));
    let ssl = format!(", ssl: {{certificate: '{pem}', key: '{key}'}}");
    let login = ", basic_auth: true, username: u, password: p";
    for (options, more, expected) in [
        ("", "", "taken"),
        ("-compression gzip", ", completion_timeout: 20s", "taken"),
        ("-tls", &*ssl, "taken"),
        ("-login Basic/dTpw", login, "taken"),
        ("", login, "Unauthenticated"),
        ("", ", max_body_bytes: 10", "ResourceExhausted"),
        ("", ", url: /x/", "Unimplemented"),
    ] {
        let (address, sockets) = free_address();
        // Less room than the requests under way need.
        let mut bench =
            Bench::start(input(address, &format!(", accept: otlp{more}"), &sockets), 150);
        let (target, options_of_client) = (address.to_string(), options.to_owned());
        let starting = tokio::task::spawn_blocking(move || {
            skidder_testkit::servers::Server::own_otlp_client(&target, &options_of_client)
        });
        let client = starting.await.unwrap().unwrap();
        let taken = if expected == "taken" { LINES } else { 0 };
        let (answers, ()) = tokio::join!(forward(&client, 0..LINES), bench.events(taken));
        assert_eq!(answers.len(), LINES, "{options}{more}");
        assert!(answers.iter().all(|answer| answer == expected), "{options}{more}: {}", answers[0]);
        bench.take();
        let came: BTreeSet<&str> = bench.messages().into_iter().collect();
        assert_eq!((came.len(), bench.events.len()), (taken, taken), "{options}{more}");
        bench.stop().await;
    }
}
