//! The sink as a client sees it.

use super::*;
use flate2::{Compression, write::GzEncoder};
use std::io::{Read, Write};
use std::net::TcpStream;

const BULK: &str = "{\"create\":{}}\n{\"message\":\"seq=0000000000\"}\n\
                    {\"create\":{}}\n{\"message\":\"seq=0000000001\"}\n";

fn send(sink: &Sink, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(sink.address).unwrap();
    stream.write_all(request).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn post(path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut request =
        format!("POST {path} HTTP/1.1\r\n{headers}content-length: {}\r\n\r\n", body.len())
            .into_bytes();
    request.extend_from_slice(body);
    request
}

fn checking() -> Sink {
    Sink::start(Behaviour { check: true, ..Behaviour::default() }).unwrap()
}

#[test]
fn the_first_answer_looks_like_elasticsearch() {
    let answer = send(&checking(), b"GET / HTTP/1.1\r\n\r\n");
    assert!(answer.contains("X-elastic-product: Elasticsearch"), "{answer}");
    assert!(answer.contains("\"number\":\"9.5.3\""), "{answer}");
}

#[test]
fn every_way_to_send_a_bulk_counts_the_same() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(BULK.as_bytes()).unwrap();
    let packed = encoder.finish().unwrap();
    let (first, second) = BULK.split_at(20);
    let chunked = format!(
        "POST /_bulk HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{first}\r\n{:X};x=y\r\n{second}\r\n0\r\n\r\n",
        first.len(),
        second.len()
    );
    let requests = [
        post("/_bulk", "", BULK.as_bytes()),
        post("/prefix/_bulk?filter_path=errors", "content-encoding: gzip\r\n", &packed),
        chunked.into_bytes(),
    ];
    for check in [false, true] {
        for request in &requests {
            let sink = Sink::start(Behaviour { check, ..Behaviour::default() }).unwrap();
            let answer = send(&sink, request);
            let expected = "{\"errors\":false,\"items\":[{\"create\":{\"status\":201}},{\"create\":{\"status\":201}}]}";
            assert!(answer.ends_with(expected), "{answer}");
            let count = sink.count();
            assert_eq!((count.requests, count.documents), (1, 2));
            assert_eq!(count.distinct, if check { 2 } else { 0 });
        }
    }
}

#[test]
fn requests_on_one_connection_are_answered_in_turn() {
    let sink = checking();
    let mut requests = post("/_bulk", "", BULK.as_bytes());
    requests.extend_from_slice(&post("/_bulk", "", BULK.as_bytes()));
    requests.extend_from_slice(b"GET /__count?lines=3 HTTP/1.1\r\n\r\n");
    let answer = send(&sink, &requests);
    assert!(answer.contains("\"duplicates\":2"), "{answer}");
    assert!(answer.contains("\"missing\":1"), "{answer}");
}

#[test]
fn a_stalled_sink_answers_only_after_its_release() {
    let sink = Sink::start(Behaviour { stall_after: Some(2), ..Behaviour::default() }).unwrap();
    std::thread::scope(|scope| {
        let answer = scope.spawn(|| send(&sink, &post("/_bulk", "", BULK.as_bytes())));
        assert_eq!(sink.wait_for(2, Duration::from_secs(20)).documents, 2);
        assert!(!answer.is_finished());
        sink.release();
        assert!(answer.join().unwrap().contains("\"errors\":false"));
    });
}

#[test]
fn the_first_bodies_are_kept_as_text_with_their_length_as_sent() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(BULK.as_bytes()).unwrap();
    let packed = encoder.finish().unwrap();
    let sink = Sink::start(Behaviour { keep_bodies: 2, ..Behaviour::default() }).unwrap();
    send(&sink, &post("/_bulk", "content-encoding: gzip\r\n", &packed));
    send(&sink, &post("/_bulk", "", BULK.as_bytes()));
    send(&sink, &post("/_bulk", "", BULK.as_bytes()));
    let kept = sink.take_bodies();
    let text = BULK.as_bytes().to_vec();
    assert_eq!(kept.len(), 2);
    assert_eq!(kept[0], Kept { sent: packed.len() as u64, text: text.clone() });
    assert_eq!(kept[1], Kept { sent: text.len() as u64, text });
    assert_eq!(sink.take_bodies(), []);
}

#[test]
fn lines_of_json_are_counted_as_victorialogs_takes_them() {
    let lines = b"{\"_msg\":\"seq=0000000000\"}\n{\"_msg\":\"seq=0000000001\"}\n";
    let mut packed = vec![0; 1 << 10];
    let length = zstd_safe::compress(packed.as_mut_slice(), lines, 1).unwrap();
    let sink = checking();
    for (headers, body) in [("", &lines[..]), ("content-encoding: zstd\r\n", &packed[..length])] {
        let answer = send(&sink, &post("/insert/jsonline", headers, body));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let count = sink.count();
    assert_eq!((count.documents, count.distinct, count.repeated), (4, 2, 2));
    assert_eq!(count.bytes, (lines.len() + length) as u64);
}

#[test]
fn each_fault_takes_what_it_says_and_only_when_its_turn_comes() {
    let cases = [
        (Fault::Status(503), "HTTP/1.1 503", 0),
        (Fault::Refused, "", 0),
        (Fault::Unanswered, "", 2),
        (Fault::SomeBusy, "HTTP/1.1 200", 1),
    ];
    for (fault, expected, taken) in cases {
        let trouble = Some(Trouble { fault, every: 2 });
        let sink = Sink::start(Behaviour { check: true, trouble, ..Behaviour::default() }).unwrap();
        let request = post("/_bulk", "", BULK.as_bytes());
        assert!(send(&sink, &request).contains("\"errors\":false"), "{fault:?}");
        assert_eq!(sink.count().distinct, 2, "{fault:?}");
        sink.reset();
        let mut stream = TcpStream::connect(sink.address).unwrap();
        stream.write_all(&request).unwrap();
        let mut answer = vec![0; 20];
        let length = stream.read(&mut answer).unwrap_or(0);
        let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
        assert!(
            answer.starts_with(expected) && answer.is_empty() == expected.is_empty(),
            "{answer}"
        );
        let count = sink.count();
        assert_eq!((count.documents, count.distinct), (taken, taken), "{fault:?}");
    }
}

#[test]
fn an_answer_to_a_part_names_each_document() {
    let trouble = Some(Trouble { fault: Fault::SomeBusy, every: 1 });
    let three = format!("{BULK}{{\"create\":{{}}}}\n{{\"message\":\"seq=0000000002\"}}\n");
    let sink = Sink::start(Behaviour { check: true, trouble, ..Behaviour::default() }).unwrap();
    let answer = send(&sink, &post("/_bulk", "", three.as_bytes()));
    let text = answer.split_once("\r\n\r\n").unwrap().1;
    let parsed: serde_json::Value = serde_json::from_str(text).unwrap();
    let statuses: Vec<&serde_json::Value> =
        parsed["items"].as_array().unwrap().iter().map(|item| &item["create"]["status"]).collect();
    assert_eq!(statuses, [201, 429, 201]);
    assert_eq!(parsed["errors"], true);
    assert_eq!(sink.count().distinct, 2);
}
