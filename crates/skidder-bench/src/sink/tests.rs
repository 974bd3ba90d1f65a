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
