//! The input over pipes.

use super::*;
use crate::testing::Bench;
use regex::bytes::Regex;
use skidder_contract::{FarSideFuture, InputTrial, Meaning, keep_input, line};
use skidder_decode::encoding::Encoding;
use skidder_decode::lines::LineTerminator;
use skidder_input::InputState;
use skidder_parse::chain::{Chain, Match, Matcher, Multiline, Parser, Rule};
use std::io::Write as _;
use std::ops::Range;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe;

fn settings() -> TextSettings {
    TextSettings {
        encoding: Encoding::PLAIN,
        line_terminator: LineTerminator::Auto,
        parsers: Chain::default(),
        message_max_bytes: 1 << 20,
        include_lines: Vec::new(),
        exclude_lines: Vec::new(),
        buffer_size: 16 << 10,
    }
}

/// Lines that begin with a blank belong to the one before.
fn joined(timeout: Duration) -> TextSettings {
    let multiline = Multiline {
        rule: Rule::Pattern {
            pattern: Matcher::new(Regex::new("^ ").unwrap()),
            negate: false,
            side: Match::After,
            flush: None,
        },
        max_lines: Multiline::MAX_LINES,
        max_bytes: 1 << 20,
        timeout: Some(timeout),
        skip_newline: false,
    };
    let parsers = Chain::new(vec![Parser::Multiline(multiline)], 2 << 20);
    TextSettings { parsers, ..settings() }
}

/// A pipe, and what inputs over it share.
struct Far {
    sockets: Sockets,
    descriptor: Descriptor,
    writer: Option<io::PipeWriter>,
}

impl Far {
    fn new() -> Self {
        let (reader, writer) = io::pipe().unwrap();
        let descriptor = Arc::new(reader);
        Self { sockets: Sockets::default(), descriptor, writer: Some(writer) }
    }

    fn input(&self, settings: TextSettings) -> Box<dyn Input> {
        Box::new(Stdin::of(settings, &self.sockets, Arc::clone(&self.descriptor)))
    }

    fn write(&mut self, bytes: &[u8]) {
        self.writer.as_mut().unwrap().write_all(bytes).unwrap();
    }

    fn close(&mut self) {
        self.writer = None;
    }
}

/// A pipe for the contract.
struct Lines {
    sockets: Sockets,
    descriptor: Descriptor,
    writer: tokio::sync::Mutex<pipe::Sender>,
}

impl Lines {
    fn new() -> Self {
        let (reader, writer) = io::pipe().unwrap();
        let writer = pipe::Sender::from_owned_fd(writer.into()).unwrap();
        let (sockets, descriptor) = (Sockets::default(), Arc::new(reader));
        Self { sockets, descriptor, writer: tokio::sync::Mutex::new(writer) }
    }
}

impl InputTrial for Lines {
    fn input(&self) -> Box<dyn Input> {
        let settings = TextSettings { message_max_bytes: 64, ..settings() };
        Box::new(Stdin::of(settings, &self.sockets, Arc::clone(&self.descriptor)))
    }

    fn meaning(&self) -> Meaning {
        Meaning::Nothing
    }

    fn send(&self, lines: Range<usize>) -> FarSideFuture<'_> {
        Box::pin(async move {
            let text: String = lines.map(|number| line(number) + "\n").collect();
            self.writer.lock().await.write_all(text.as_bytes()).await.unwrap();
        })
    }

    fn send_garbage(&self) -> Option<FarSideFuture<'_>> {
        Some(Box::pin(async {
            let line = "x".repeat(64 * 4 + 1) + "\n";
            self.writer.lock().await.write_all(line.as_bytes()).await.unwrap();
        }))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_keeps_the_contract_of_inputs() {
    keep_input(Lines::new).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_those_of_filebeat_and_the_last_line_needs_no_end() {
    let mut far = Far::new();
    let mut bench = Bench::start(far.input(settings()), 100);
    far.write(b"a\r\n\nb");
    bench.events(1).await;
    far.close();
    bench.events(2).await;
    bench.until("it ends", |bench| bench.input.state() == InputState::Ended).await;
    let event = |message: &str| {
        serde_json::json!({
            "message": message,
            "input": {"type": "stdin"},
            "log": {"offset": 0, "file": {"path": ""}},
        })
    };
    assert_eq!(bench.events, [event("a"), event("b")]);
    assert_eq!(bench.settle.total().dropped().get(skidder_event::DropReason::Empty), 1);
    assert_eq!(bench.input.metrics().bytes.get(), 5);
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_delivers_what_was_begun() {
    let mut far = Far::new();
    let mut bench = Bench::start(far.input(joined(Duration::from_hours(1))), 100);
    far.write(b"a\n b\nc\n d\n e");
    bench.events(1).await;
    assert_eq!(bench.messages(), ["a\n b"]);
    bench.stop().await;
    assert_eq!(bench.messages(), ["a\n b", "c\n d\n e"]);
}

/// Waits until so many bytes are read, while nothing is taken.
async fn read_without_taking(bench: &Bench, bytes: usize) {
    let waiting = async {
        while bench.input.metrics().bytes.get() < bytes as u64 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::testing::PATIENCE, waiting).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_delivers_what_the_system_has() {
    let mut far = Far::new();
    // The first batch has more events than there is room for: the input waits, and reads nothing more.
    let mut bench = Bench::start(far.input(settings()), 1);
    let text = "x\n".repeat(5000);
    far.write(text.as_bytes());
    read_without_taking(&bench, text.len()).await;
    far.write(b"in the pipe\nbegun");
    bench.stop().await;
    assert_eq!(bench.events.len(), 5002);
    assert_eq!(bench.messages()[5000..], ["in the pipe", "begun"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_comes_in_pieces_is_sent_at_its_end() {
    let mut far = Far::new();
    let mut bench = Bench::start(far.input(settings()), 100);
    for (at, piece) in ["li", "ne", "\n"].iter().enumerate() {
        far.write(piece.as_bytes());
        let read = 2 * at as u64 + piece.len() as u64;
        bench.until("a piece is read", |of| of.input.metrics().bytes.get() == read).await;
    }
    bench.events(1).await;
    assert_eq!(bench.messages(), ["line"]);
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_of_lines_is_complete_when_nothing_came_for_its_timeout() {
    let mut far = Far::new();
    let mut bench = Bench::start(far.input(joined(Duration::from_millis(20))), 100);
    far.write(b"a\n b\n");
    bench.events(1).await;
    far.write(b" c\nd\n");
    bench.events(3).await;
    assert_eq!(bench.messages(), ["a\n b", " c", "d"]);
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_input_goes_on_within_lines_groups_and_skipped_lines() {
    let mut far = Far::new();
    let cut = || TextSettings { message_max_bytes: 8, ..joined(Duration::from_hours(1)) };
    let mut bench = Bench::start(far.input(cut()), 100);
    far.write(b"a\nb\n c\n d");
    bench.events(1).await;
    bench.replace(far.input(cut())).await;
    far.write(b"d\ne\n");
    bench.events(2).await;
    assert_eq!(bench.messages(), ["a", "b\n c\n dd"]);
    // Of this line no end is there when it is known to be too long.
    far.write(&[b'x'; 100]);
    bench.events(3).await;
    let is_read = |bench: &Bench| bench.input.metrics().bytes.get() == 4 + 100;
    bench.until("the long line is read", is_read).await;
    bench.replace(far.input(cut())).await;
    far.write(b"xxx\nf\n");
    far.close();
    bench.events(4).await;
    assert_eq!(bench.messages()[2..], ["e", "f"]);
    bench.stop().await;
    let dropped = *bench.settle.total().dropped();
    assert_eq!(dropped.get(skidder_event::DropReason::LineTooLong), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stuck_output_stops_the_reading_and_what_was_read_counts_as_dropped_at_a_stop() {
    let mut far = Far::new();
    let mut bench = Bench::start(far.input(settings()), 2);
    // Several batches, which the pipe has room for.
    let text = "x\n".repeat(20_000);
    far.write(text.as_bytes());
    read_without_taking(&bench, text.len()).await;
    // The input has these in hand and waits; what comes now stays in the pipe until the stop.
    far.write(b"in the pipe\n");
    bench.stop_without_taking().await;
    let total = bench.settle.total();
    assert!(total.adds_up());
    let dropped = total.dropped().get(skidder_event::DropReason::Stopped);
    assert_eq!(dropped + bench.take_unseen() as u64, 20_001);
    assert!(dropped > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_byte_order_mark_that_the_encoding_needs_it_fails_and_counts() {
    let mut far = Far::new();
    let encoding = Encoding::find("utf-16-bom").unwrap();
    let mut bench = Bench::start(far.input(TextSettings { encoding, ..settings() }), 100);
    far.write(b"ab");
    bench.until("it fails", |bench| matches!(bench.input.state(), InputState::Failed(_))).await;
    let InputState::Failed(error) = bench.input.state() else { unreachable!() };
    assert!(error.to_string().contains("byte order mark"), "{error}");
    assert_eq!(bench.settle.total().dropped().get(skidder_event::DropReason::Parser), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_an_error() {
    let directory = std::fs::File::open("/").unwrap();
    let input = Stdin::of(settings(), &Sockets::default(), Arc::new(directory));
    let mut bench = Bench::start(Box::new(input), 100);
    bench.until("it fails", |bench| matches!(bench.input.state(), InputState::Failed(_))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_do_not_depend_on_where_the_bytes_are_cut() {
    let text = "a\u{e4}\r\n b\nc\n\n d\n\u{20ac}\n e\nlast";
    let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let encoding = Encoding::find("utf-16le").unwrap();
    for piece in [1, 2, 3, 5, 7, 100] {
        let mut far = Far::new();
        let settings = TextSettings { encoding, ..joined(Duration::from_hours(1)) };
        let mut bench = Bench::start(far.input(settings), 100);
        let mut written = 0;
        for part in bytes.chunks(piece) {
            far.write(part);
            written += part.len() as u64;
            bench.until("a piece is read", |of| of.input.metrics().bytes.get() == written).await;
        }
        far.close();
        bench.until("it ends", |bench| bench.input.state() == InputState::Ended).await;
        bench.stop().await;
        let expected = ["a\u{e4}\n b", "c", " d", "\u{20ac}\n e", "last"];
        assert_eq!(bench.messages(), expected, "pieces of {piece}");
    }
}
