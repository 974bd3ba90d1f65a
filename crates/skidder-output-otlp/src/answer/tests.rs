//! Answers of HTTP and gRPC with their verdicts.

use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use http::HeaderMap;
use http::HeaderName;
use skidder_grpc::{Delay, Detail, RetryInfo, RpcStatus as Status};

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let header = |(name, value): &(&str, &str)| {
        (name.parse::<HeaderName>().unwrap(), value.parse().unwrap())
    };
    pairs.iter().map(header).collect()
}

/// A word for a verdict.
fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Taken { .. } => "taken",
        Verdict::Partly { .. } => "partly",
        Verdict::TooLarge { sure: true, .. } => "large",
        Verdict::TooLarge { .. } => "large?",
        Verdict::Refused { .. } => "refused",
        Verdict::Later { wait: Some(_), .. } => "wait",
        Verdict::Later { .. } => "later",
        Verdict::Unreadable { .. } => "unreadable",
    }
}

const PROTOBUF: &[(&str, &str)] = &[("content-type", "application/x-protobuf")];
const JSON: &[(&str, &str)] = &[("content-type", "application/json; charset=utf-8")];

fn http(status: u16, pairs: &[(&str, &str)], body: &[u8]) -> Verdict {
    let (headers, body) = (headers(pairs), body.to_vec());
    of_http(&Http2Answer { status, headers, body, ..Http2Answer::default() })
}

/// Status, headers, body, and the word for the verdict.
type Case<'a> = (u16, &'a [(&'a str, &'a str)], &'a [u8], &'a str);

#[test]
fn statuses_of_http_mean_what_otlp_says() {
    let table: &[Case<'_>] = &[
        (200, PROTOBUF, b"", "taken"),
        (204, &[], b"", "taken"),
        (200, PROTOBUF, b"\x0a\x00", "taken"),
        (200, PROTOBUF, b"\x0a\x02\x08\x03", "partly"),
        (200, PROTOBUF, b"\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "unreadable"),
        (200, PROTOBUF, b"<html>", "unreadable"),
        (200, PROTOBUF, b"\x0a\x05\x08", "unreadable"),
        (200, &[("content-type", "text/html")], b"", "unreadable"),
        (200, &[("content-type", "text/plain")], b"", "taken"),
        (200, &[("content-type", "text/html")], b"\x0a\x00", "unreadable"),
        (200, &[], b"OK", "unreadable"),
        (200, JSON, b"{}", "taken"),
        (200, JSON, b"{\"partialSuccess\":{}}", "taken"),
        (200, JSON, b"{\"partialSuccess\":{\"rejectedLogRecords\":\"2\"}}", "partly"),
        (200, JSON, b"{\"partialSuccess\":{\"rejectedLogRecords\":2}}", "partly"),
        (200, JSON, b"{\"partialSuccess\":{\"rejectedLogRecords\":\"x\"}}", "unreadable"),
        (200, JSON, b"{\"partial", "unreadable"),
        (200, JSON, b"{\"status\":\"ok\"}", "unreadable"),
        (200, JSON, b"{\"partial_success\":{\"rejected_log_records\":2}}", "partly"),
        (302, &[], b"", "later"),
        (400, PROTOBUF, b"", "refused"),
        (400, &[], b"http: request body too large", "large"),
        (401, &[], b"", "later"),
        (403, &[], b"", "later"),
        (404, &[], b"", "later"),
        (413, &[], b"", "large"),
        (415, &[], b"", "later"),
        (429, &[], b"", "later"),
        (429, &[("retry-after", "7")], b"", "wait"),
        (500, &[], b"", "refused"),
        (501, &[], b"", "refused"),
        (502, &[], b"", "later"),
        (503, &[("retry-after", "0")], b"", "wait"),
        (503, &[("retry-after", "Fri, 07 Nov 2014 23:59:59 GMT")], b"", "later"),
        (504, &[], b"", "later"),
    ];
    for (status, pairs, body, expected) in table {
        let verdict = http(*status, pairs, body);
        assert_eq!(word(&verdict), *expected, "{status} {pairs:?} {body:?}: {verdict:?}");
    }
}

#[test]
fn what_a_server_says_is_kept() {
    let partly = Verdict::Partly { refused: 3, why: "no".to_owned() };
    assert_eq!(http(200, PROTOBUF, b"\x0a\x06\x08\x03\x12\x02no"), partly);
    assert_eq!(
        http(200, PROTOBUF, b"\x0a\x04\x12\x02hm"),
        Verdict::Taken { remark: "hm".to_owned() }
    );
    let status = Status { code: 3, message: "bad".to_owned(), details: Vec::new() };
    let refused =
        Verdict::Refused { status: 400, kind: "400 Bad Request".to_owned(), why: "bad".to_owned() };
    assert_eq!(http(400, PROTOBUF, &status.encode_to_vec()), refused);
    assert_eq!(http(400, &[("content-type", "text/plain")], b"bad\n"), refused);
    let Verdict::Later { wait, too_many, .. } = http(429, &[("retry-after", "99999999")], b"")
    else {
        panic!("it may be taken later")
    };
    assert_eq!((wait, too_many), (Some(WAIT_MAX), true));
}

fn grpc(code: &str, message: &str, details: Option<&Status>) -> Verdict {
    let mut trailers = headers(&[("grpc-status", code), ("grpc-message", message)]);
    if let Some(details) = details {
        let text = STANDARD_NO_PAD.encode(details.encode_to_vec());
        trailers.insert("grpc-status-details-bin", text.parse().unwrap());
    }
    of_grpc(&Http2Answer { status: 200, trailers, ..Http2Answer::default() })
}

fn retry_info(seconds: i64, nanos: i32) -> Status {
    let info = RetryInfo { retry_delay: Some(Delay { seconds, nanos }) };
    let type_url = "type.googleapis.com/google.rpc.RetryInfo".to_owned();
    let detail = Detail { type_url, value: info.encode_to_vec() };
    Status { code: 8, message: String::new(), details: vec![detail] }
}

#[test]
fn codes_of_grpc_mean_what_otlp_says() {
    let later = ["1", "4", "5", "7", "10", "11", "12", "14", "15", "16"];
    let refused = ["2", "3", "6", "9", "13", "17", "99"];
    for code in later {
        assert_eq!(word(&grpc(code, "", None)), "later", "{code}");
    }
    for code in refused {
        assert_eq!(word(&grpc(code, "", None)), "refused", "{code}");
    }
    assert_eq!(word(&grpc("8", "quota", None)), "large?");
    // Go, C, Java, .NET, tonic.
    for said in [
        "grpc: received message larger than max (4194305 vs. 4194304)",
        "CLIENT: Received message larger than max (5 vs. 4)",
        "gRPC message exceeds maximum size 4194304: 4194305",
        "Received message exceeds the maximum configured message size.",
    ] {
        assert_eq!(word(&grpc("8", said, None)), "large", "{said}");
    }
    let said = "Error, decoded message length too large: found 5 bytes, the limit is: 4 bytes";
    assert_eq!(word(&grpc("11", said, None)), "large");
    for code in ["8", "14"] {
        let Verdict::Later { wait, too_many, .. } =
            grpc(code, "", Some(&retry_info(2, 500_000_000)))
        else {
            panic!("it may be taken later")
        };
        assert_eq!((wait, too_many), (Some(Duration::from_millis(2500)), code == "8"));
    }
    assert_eq!(word(&grpc("3", "", Some(&retry_info(1, 0)))), "refused");
    let negative = grpc("14", "", Some(&retry_info(-1, -1)));
    assert_eq!(word(&negative), "wait");
}

#[test]
fn an_answer_of_grpc_is_one_whole_message() {
    let trailers = headers(&[("grpc-status", "0")]);
    let answer = |body: &[u8]| {
        let (body, trailers) = (body.to_vec(), trailers.clone());
        of_grpc(&Http2Answer { status: 200, trailers, body, ..Http2Answer::default() })
    };
    assert_eq!(word(&answer(b"\0\0\0\0\0")), "taken");
    assert_eq!(word(&answer(b"\0\0\0\0\x04\x0a\x02\x08\x03")), "partly");
    for body in [
        &b""[..],
        b"\0\0\0\0",
        b"\0\0\0\0\x01",
        b"\x01\0\0\0\0",
        b"\0\0\0\0\0\0",
        b"\0\0\0\0\x01\x0a",
    ] {
        assert_eq!(word(&answer(body)), "unreadable", "{body:?}");
    }
    // Without a body the trailers come as headers.
    let headers = headers(&[("grpc-status", "3"), ("grpc-message", "not%20this%E2%82%AC%")]);
    let verdict = of_grpc(&Http2Answer { status: 200, headers, ..Http2Answer::default() });
    let kind = "INVALID_ARGUMENT".to_owned();
    assert_eq!(verdict, Verdict::Refused { status: 3, kind, why: "not this\u{20ac}%".to_owned() });
}

#[test]
fn an_answer_of_grpc_may_be_compressed() {
    let plain = ExportResponse { partial_success: None }.encode_to_vec();
    let long = vec![0; 1 << 20];
    for (text, expected) in [(&plain, "taken"), (&long, "unreadable")] {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut gzip, text).unwrap();
        let mut zstd = Vec::with_capacity(zstd_safe::compress_bound(text.len()));
        zstd_safe::compress(&mut zstd, text, 1).unwrap();
        for (name, packed) in [("gzip", gzip.finish().unwrap()), ("zstd", zstd)] {
            let mut body = vec![1];
            body.extend_from_slice(&(packed.len() as u32).to_be_bytes());
            body.extend_from_slice(&packed);
            let (headers, trailers) =
                (headers(&[("grpc-encoding", name)]), headers(&[("grpc-status", "0")]));
            let mut answer = Http2Answer { status: 200, headers, trailers, body };
            assert_eq!(word(&of_grpc(&answer)), expected, "{name}");
            answer.body.pop();
            assert_eq!(word(&of_grpc(&answer)), "unreadable", "{name}");
            answer.headers.clear();
            assert_eq!(word(&of_grpc(&answer)), "unreadable", "{name}");
        }
    }
}

#[test]
fn whoever_does_not_speak_grpc_is_asked_again() {
    for (status, expected) in
        [(200, "unreadable"), (401, "later"), (404, "later"), (413, "large"), (503, "later")]
    {
        let answer = Http2Answer { status, body: b"<html>".to_vec(), ..Http2Answer::default() };
        assert_eq!(word(&of_grpc(&answer)), expected, "{status}");
    }
}
