//! Chains of programs: what one delivers the next one receives, whichever of them is killed, and their ledgers agree.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::lines::{judge, lines};
use common::program::Ledger;
use common::{Place, accept};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// The most events that a program has read and not settled.
const IN_FLIGHT_MAX: usize = 3200 + 2 * 2048;

/// A port that nothing listens on.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Files to Lumberjack.
fn sender(port: u16) -> Place {
    let place = Place::with_output(&format!(
        "output.logstash: {{hosts: ['127.0.0.1:{port}'], backoff: {{init: 10ms, max: 50ms}}}}\n"
    ));
    with_larger_queue(&place);
    place
}

/// Lumberjack to a file.
fn receiver(port: u16) -> Place {
    receiver_with(&format!(
        "{{type: lumberjack, id: in, listen_address: '127.0.0.1:{port}', target: ''}}"
    ))
}

/// An input to a file.
fn receiver_with(input: &str) -> Place {
    let place = Place::with_output(
        // Each start begins a file.
        "output.file: {path: out, filename: e, rotate_every_kb: 1000000, number_of_files: 100}\n",
    );
    let text = place.configuration();
    let (_, rest) = text.split_once("filebeat.registry.flush").unwrap();
    place.configure(&format!("filebeat.inputs:\n- {input}\nfilebeat.registry.flush{rest}"));
    with_larger_queue(&place);
    place
}

/// The queue of 400 events would take windows one by one.
fn with_larger_queue(place: &Place) {
    let text = place.configuration();
    let queue = text.lines().find(|line| line.starts_with("queue.mem")).unwrap();
    place.configure(
        &text.replace(
            queue,
            "queue.mem: {events: 3200, flush.min_events: 1600, flush.timeout: 50ms}",
        ),
    );
}
#[test]
fn ledgers_of_both_ends_of_lumberjack_agree() {
    const LINES: usize = 20_000;
    let port = free_port();
    let (from, to) = (sender(port), receiver(port));
    from.write("a", &lines("a", 0..LINES));
    let receiving = to.start(&[]);
    let sent = from.once(&[]).succeeded().ledger();
    let received = receiving.terminate().succeeded().ledger();
    let all = Ledger { read: LINES, delivered: LINES, ..Ledger::default() };
    assert_eq!((sent, received), (all, all));
    accept("files to Lumberjack to a file", judge(&[("a", LINES)], &to.messages()), 0);
    let out = std::fs::read_dir(to.path().join("out")).unwrap().next().unwrap().unwrap();
    let event = std::fs::read_to_string(out.path()).unwrap();
    let event: serde_json::Value = serde_json::from_str(event.lines().next().unwrap()).unwrap();
    assert_eq!(event["input"]["type"], "filestream", "the event is the one that was sent");
    assert_eq!(event["log"]["offset"], 0);
}

#[test]
fn ledgers_of_both_ends_of_bulk_agree() {
    const LINES: usize = 20_000;
    let port = free_port();
    let from = Place::with_output(&format!(
        "output.elasticsearch: {{hosts: ['http://127.0.0.1:{port}'], backoff: {{init: 10ms, max: 50ms}}}}\n"
    ));
    with_larger_queue(&from);
    let to = receiver_with(&format!(
        "{{type: http_endpoint, id: in, listen_port: {port}, accept: elasticsearch}}"
    ));
    from.write("a", &lines("a", 0..LINES));
    let receiving = to.start(&[]);
    let sent = from.once(&[]).succeeded().ledger();
    let received = receiving.terminate().succeeded().ledger();
    let all = Ledger { read: LINES, delivered: LINES, ..Ledger::default() };
    assert_eq!((sent, received), (all, all));
    accept("files to _bulk to a file", judge(&[("a", LINES)], &to.messages()), 0);
}

#[test]
fn ledgers_of_both_ends_of_otlp_over_grpc_agree() {
    const LINES: usize = 20_000;
    for compression in ["none", "gzip", "zstd"] {
        let port = free_port();
        let from = Place::with_output(&format!(
            "output.otlp: {{hosts: ['http://127.0.0.1:{port}'], protocol: grpc, compression: {compression}, \
             backoff: {{init: 10ms, max: 50ms}}}}\n"
        ));
        with_larger_queue(&from);
        let to = receiver_with(&format!(
            "{{type: http_endpoint, id: in, listen_port: {port}, accept: otlp}}"
        ));
        from.write("a", &lines("a", 0..LINES));
        let receiving = to.start(&[]);
        let sent = from.once(&[]).succeeded().ledger();
        let received = receiving.terminate().succeeded().ledger();
        let all = Ledger { read: LINES, delivered: LINES, ..Ledger::default() };
        assert_eq!((sent, received), (all, all), "{compression}");
        let verdict = judge(&[("a", LINES)], &to.messages());
        accept("files over OTLP and gRPC to a file", verdict, 0);
    }
}

#[test]
fn a_million_lines_go_through_two_programs_whichever_is_killed() {
    const LINES: usize = 1_000_000;
    const KILLS: usize = 10;
    let port = free_port();
    let (from, to) = (sender(port), receiver(port));
    from.write("a", &lines("a", 0..LINES));
    // Who sends, and who receives.
    let mut programs = [from.start(&["--once"]), to.start(&[])].map(Some);
    // An event has some 500 bytes.
    let step = (LINES * 400 / (KILLS + 1)) as u64;
    for kill in 0..KILLS {
        let before = to.written();
        let victim = &mut programs[kill % 2];
        let mut running = victim.take().unwrap();
        running.await_that("more is written", || to.written() > before + step);
        assert!(running.kill().was_killed());
        *victim = Some(if kill % 2 == 0 { from.start(&["--once"]) } else { to.start(&[]) });
    }
    let [sending, receiving] = programs.map(Option::unwrap);
    sending.end().succeeded();
    receiving.terminate().succeeded();
    let verdict = judge(&[("a", LINES)], &to.messages());
    accept("two programs, ten times `kill -9`", verdict, KILLS * IN_FLIGHT_MAX);
}

/// Sends a request over a connection; returns the status of its answer, or nothing if it has none.
fn ask(stream: &TcpStream, body: &str) -> Option<u16> {
    let length = body.len();
    let head = format!(
        "POST /?wait_for_completion_timeout=1m HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n"
    );
    let mut writer = stream;
    writer.write_all((head + body).as_bytes()).ok()?;
    let mut reader = BufReader::new(stream);
    let (mut status, mut answer) = (None, 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
        let line = line.trim_end().to_ascii_lowercase();
        if status.is_none() {
            status = line.split(' ').nth(1)?.parse().ok();
        }
        if let Some(length) = line.strip_prefix("content-length: ") {
            answer = length.parse().ok()?;
        }
        if line.is_empty() {
            break;
        }
    }
    reader.read_exact(&mut vec![0; answer]).ok()?;
    status
}

/// Posts lines of a file, 1,000 a request, each again until it is answered with 200.
#[expect(clippy::disallowed_methods, reason = "a client that pauses before it connects again")]
fn post_all(port: u16, name: &'static str, count: usize) {
    let mut stream = None;
    let all = String::from_utf8(lines(name, 0..count)).unwrap();
    let all: Vec<&str> = all.lines().collect();
    for chunk in all.chunks(1000) {
        let objects = chunk.iter().map(|line| serde_json::json!({ "message": line }).to_string());
        let body = objects.collect::<Vec<_>>().join("\n");
        loop {
            let connected = stream.take().or_else(|| TcpStream::connect(("127.0.0.1", port)).ok());
            if let Some(connected) = connected
                && ask(&connected, &body) == Some(200)
            {
                stream = Some(connected);
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn what_an_http_client_has_an_answer_for_is_there_however_often_the_program_is_killed() {
    const LINES: usize = 200_000;
    const KILLS: usize = 10;
    let port = free_port();
    let to = receiver_with(&format!(
        "{{type: http_endpoint, id: in, listen_port: {port}, prefix: '.'}}"
    ));
    let mut program = to.start(&[]);
    // Four clients; each waits for its answer.
    let names = ["a", "b", "c", "d"];
    let clients = names.map(|name| std::thread::spawn(move || post_all(port, name, LINES / 4)));
    let step = (LINES * 150 / (KILLS + 1)) as u64;
    for _ in 0..KILLS {
        let before = to.written();
        program.await_that("more is written", || to.written() > before + step);
        assert!(program.kill().was_killed());
        program = to.start(&[]);
    }
    for client in clients {
        client.join().unwrap();
    }
    let ledger = program.terminate().succeeded().ledger();
    assert_eq!(ledger.read, ledger.delivered, "{ledger:?}");
    let files = names.map(|name| (name, LINES / 4));
    // A request without an answer comes again, as a whole.
    let verdict = judge(&files, &to.messages());
    accept("clients of HTTP, ten times `kill -9`", verdict, KILLS * names.len() * 1000);
}
