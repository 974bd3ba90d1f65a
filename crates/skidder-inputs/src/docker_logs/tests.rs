//! The input against an engine of the test's own.

mod engine;

use super::*;
use crate::testing::{Bench, context, read_with};
use engine::{Engine, ID};
use regex::bytes::Regex;
use skidder_contract::{FarSideFuture, InputTrial, Meaning, keep_input, line};
use skidder_decode::encoding::Encoding;
use skidder_decode::lines::LineTerminator;
use skidder_input::InputState;
use skidder_net::Sockets;
use skidder_parse::chain::{Chain, Container, Format, Match, Matcher, Multiline, Parser, Rule};
use skidder_parse::ndjson;
use std::ops::Range;

const MAX_BYTES: usize = 1 << 20;

fn text(more: Vec<Parser>) -> TextSettings {
    let records = Container { stream: None, format: Format::Cri, max_bytes: MAX_BYTES };
    let parsers = [vec![Parser::Container(records)], more].concat();
    TextSettings {
        encoding: Encoding::PLAIN,
        line_terminator: LineTerminator::Auto,
        parsers: Chain::new(parsers, 2 * MAX_BYTES as u64),
        message_max_bytes: MAX_BYTES,
        include_lines: Vec::new(),
        exclude_lines: Vec::new(),
        buffer_size: 16 << 10,
    }
}

fn input_of(engine: &Engine, more: &str, text: TextSettings) -> Box<dyn Input> {
    let settings = format!("{{host: '{}', ids: [web]{more}}}", engine.host());
    let read_it = |section: &Section<'_>| {
        section.declared_by(&CONTAINERS);
        read(section, &context(&Sockets::default()), text)
    };
    let (input, problems) = read_with(&settings, read_it);
    assert_eq!(problems, "");
    input.unwrap()
}

fn input(engine: &Engine) -> Box<dyn Input> {
    input_of(engine, "", text(Vec::new()))
}

impl InputTrial for Engine {
    fn input(&self) -> Box<dyn Input> {
        input(self)
    }

    fn meaning(&self) -> Meaning {
        Meaning::Cursor
    }

    fn send(&self, lines: Range<usize>) -> FarSideFuture<'_> {
        Box::pin(async move {
            for number in lines {
                // Three have the same time.
                self.log(number as i64 / 3, 1, &format!("{}\n", line(number)));
            }
        })
    }

    fn send_garbage(&self) -> Option<FarSideFuture<'_>> {
        Some(Box::pin(async { self.break_with(b"\x09\0\0\0\0\0\0\x01x") }))
    }

    fn on_the_way_max(&self) -> usize {
        // A batch, and what was gathered beside it.
        20_000
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_keeps_the_contract_of_inputs() {
    keep_input(Engine::new).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_those_of_a_container_input_without_a_file() {
    let engine = Engine::new();
    engine.log(1, 1, "out\n");
    engine.log(2, 2, "err\r\n");
    engine.log(3, 1, "\n");
    let mut bench = Bench::start(input(&engine), 100);
    bench.events(2).await;
    let event = |stream: &str, message: &str| {
        serde_json::json!({
            "message": message,
            "stream": stream,
            "input": {"type": "docker_logs"},
            "container": {"id": ID, "name": "web", "image": {"name": "image:1"}},
        })
    };
    bench.stop().await;
    assert_eq!(bench.events, [event("stdout", "out"), event("stderr", "err")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_offset_of_the_line_is_that_of_the_event() {
    let lines = [
        r#"{"log":{"offset":58,"level":"info"}}"#,
        r#"{"log":{"offset":-5}}"#,
        r#"{"log.offset":7}"#,
        r#"{"a":1}"#,
    ];
    for overwrite_keys in [false, true] {
        let settings = ndjson::Settings { overwrite_keys, ..ndjson::Settings::default() };
        let parser = Parser::Ndjson { settings, log_errors: true };
        let engine = Engine::new();
        for (number, line) in lines.iter().enumerate() {
            engine.log(number as i64, 1, &format!("{line}\n"));
        }
        let mut bench = Bench::start(input_of(&engine, "", text(vec![parser])), 100);
        bench.events(lines.len()).await;
        bench.stop().await;
        let logs: Vec<_> =
            bench.events.iter().map(|event| [&event["log"], &event["log.offset"]]).collect();
        assert_eq!(
            serde_json::json!(logs[..lines.len()]),
            serde_json::json!([
                [{"offset": 58, "level": "info"}, null], [{"offset": -5}, null], [null, 7], [null, null],
            ]),
            "{overwrite_keys}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pieces_of_long_lines_are_joined_for_each_stream() {
    let engine = Engine::new();
    let piece = |letter: &str| letter.repeat(16 << 10);
    engine.log(1, 1, &piece("a"));
    engine.log(2, 2, "other\n");
    engine.log(3, 1, &piece("b"));
    // As the driver `local` writes the rest of a line.
    engine.log(4, 1, "end");
    engine.log(5, 1, &piece("c"));
    engine.log(6, 1, "\n");
    engine.log(7, 1, &piece("d"));
    let mut bench = Bench::start(input(&engine), 100);
    bench.events(3).await;
    engine.end();
    bench.events(4).await;
    bench.stop().await;
    let mut messages = bench.messages();
    messages.sort_unstable();
    let joined = format!("{}{}end", piece("a"), piece("b"));
    assert_eq!(messages, [&*joined, &piece("c"), &piece("d"), "other"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_terminal_lines_are_messages() {
    let engine = Engine::new();
    engine.use_terminal();
    for number in 0..3 {
        engine.log(number, 1, &format!("line {number}\r\n"));
    }
    let mut bench = Bench::start(input(&engine), 100);
    bench.events(3).await;
    engine.log(4, 1, "prompt: ");
    engine.end();
    bench.events(4).await;
    bench.stop().await;
    assert_eq!(bench.messages(), ["line 0", "line 1", "line 2", "prompt: "]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_breaks_anywhere_costs_no_line_and_repeats_none() {
    let engine = Engine::new();
    engine.cut_answers(vec![3, 90, 1, 200, 333, 47, 1000]);
    let count = 300;
    for number in 0..count {
        let (time, stream) = (number as i64 / 4, 1 + (number % 2) as u8);
        engine.log(time, stream, &format!("{}\n", line(number)));
    }
    let mut bench = Bench::start(input(&engine), 1000);
    bench.events(count).await;
    engine.log(1000, 1, "last\n");
    bench.events(count + 1).await;
    bench.stop().await;
    let expected: Vec<String> = (0..count).map(line).chain(["last".to_owned()]).collect();
    assert_eq!(bench.messages(), expected);
    assert!(bench.input.metrics().errors.get() >= 3);
    assert!(engine.requests() >= 8, "{}", engine.requests());
}

/// Gives up an answer soon.
fn impatient(engine: &Engine, more: &str) -> Box<dyn Input> {
    let settings = format!("{{host: '{}', ids: [web]{more}}}", engine.host());
    let (input, problems) = read_with(&settings, |section| {
        section.declared_by(&CONTAINERS);
        read_input(section, &context(&Sockets::default()), text(Vec::new()))
    });
    assert_eq!(problems, "");
    let mut input = input.unwrap();
    Arc::get_mut(&mut input.settings).unwrap().patience = Patience {
        first: Duration::from_millis(30),
        most: Duration::from_millis(60),
        most_busy: Duration::from_millis(120),
    };
    Box::new(input)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_hangs_is_requested_anew_and_nothing_is_repeated() {
    let engine = Engine::new();
    // Also before anything was sent, and twice at the same place.
    engine.hang_answers(vec![0, 4, 4, 8]);
    for number in 0..10 {
        let (time, stream) = (number as i64 / 3, 1 + (number % 2) as u8);
        engine.log(time, stream, &format!("{}\n", line(number)));
    }
    let mut bench = Bench::start(impatient(&engine, ""), 100);
    bench.events(10).await;
    let requests = engine.requests();
    assert!(requests >= 5, "{requests}");
    bench.until("it asks a quiet engine", |_| engine.requests() > requests + 2).await;
    engine.log(100, 1, "last\n");
    bench.events(11).await;
    assert_eq!(engine.hanging(), 0, "the connections are closed");
    assert_eq!(bench.input.metrics().errors.get(), 0);
    bench.stop().await;
    let expected: Vec<String> = (0..10).map(line).chain(["last".to_owned()]).collect();
    assert_eq!(bench.messages(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_hangs_keeps_neither_a_change_nor_one_stream_waiting() {
    let engine = Engine::new();
    engine.hang_answers(vec![1, 2, 3]);
    for number in 0..4 {
        engine.log(number, 2, &format!("{}\n", line(number as usize)));
    }
    let mut bench = Bench::start(impatient(&engine, ", stream: stderr"), 100);
    bench.events(1).await;
    bench.replace(impatient(&engine, ", stream: stderr")).await;
    bench.events(4).await;
    // The end of the container comes while the answer hangs.
    engine.hang_answers(vec![4; 3]);
    bench.until("it hangs again", |_| engine.hanging() == 1).await;
    engine.log(9, 2, "last\n");
    engine.end();
    let mut done = bench.end_when_read();
    bench.events(5).await;
    bench.until("it ends", |bench| bench.input.state() == InputState::Ended).await;
    bench.until("the change is over", |_| done.try_recv().is_ok()).await;
    bench.stop().await;
    let expected: Vec<String> = (0..4).map(line).chain(["last".to_owned()]).collect();
    assert_eq!(bench.messages(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_ended_is_read_to_its_end_and_goes_on_when_it_is_started_again() {
    let engine = Engine::new();
    engine.log(1, 1, "first\n");
    engine.end();
    let mut bench = Bench::start(input(&engine), 100);
    bench.events(1).await;
    engine.log(2, 1, "second\n");
    engine.start();
    bench.events(2).await;
    engine.log(3, 1, "third\n");
    bench.events(3).await;
    bench.stop().await;
    assert_eq!(bench.messages(), ["first", "second", "third"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn asked_to_end_when_it_is_read_it_reads_on_until_the_container_has_ended() {
    let engine = Engine::new();
    engine.log(1, 1, "first\n");
    let mut bench = Bench::start(input(&engine), 1);
    bench.events(1).await;
    let mut done = bench.end_when_read();
    bench.is_stuck = true;
    for number in 2..50 {
        engine.log(number, 1, &format!("{}\n", line(number as usize)));
    }
    engine.end();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(done.try_recv().is_err(), "it waits for room");
    bench.is_stuck = false;
    bench.events(49).await;
    bench.until("it ends", |bench| bench.input.state() == InputState::Ended).await;
    bench.until("the change is over", |_| done.try_recv().is_ok()).await;
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_not_there_yet_is_waited_for_and_another_of_the_name_is_read_from_its_start() {
    let engine = Engine::new();
    engine.remove();
    let mut bench = Bench::start(input(&engine), 100);
    bench.until("it looks", |_| engine.looks() > 1).await;
    engine.create('a');
    engine.log(9, 1, "of one\n");
    bench.events(1).await;
    engine.create('b');
    engine.log(1, 1, "of another\n");
    bench.events(2).await;
    bench.stop().await;
    assert_eq!(bench.messages(), ["of one", "of another"]);
    assert_eq!(bench.events[1]["container"]["id"], "b".repeat(64));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_input_goes_on_where_the_lines_of_a_group_begin() {
    let engine = Engine::new();
    let joined = || {
        text(vec![Parser::Multiline(Multiline {
            rule: Rule::Pattern {
                pattern: Matcher::new(Regex::new("^ ").unwrap()),
                negate: false,
                side: Match::After,
                flush: None,
            },
            max_lines: Multiline::MAX_LINES,
            max_bytes: MAX_BYTES,
            timeout: None,
            skip_newline: false,
        })])
    };
    engine.log(1, 1, "a\n");
    engine.log(1, 1, " b\n");
    engine.log(1, 1, "c\n");
    engine.log(1, 1, " d\n");
    let mut bench = Bench::start(input_of(&engine, "", joined()), 100);
    bench.events(1).await;
    bench.replace(input_of(&engine, "", joined())).await;
    engine.log(1, 1, " e\n");
    engine.log(2, 1, "f\n");
    bench.events(2).await;
    engine.end();
    bench.events(3).await;
    bench.stop().await;
    assert_eq!(bench.messages(), ["a\n b", "c\n d\n e", "f"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_can_be_chosen_and_the_past_left_out() {
    let engine = Engine::new();
    engine.log(1, 1, "long ago\n");
    engine.log_now(1, "out\n");
    engine.log_now(2, "err\n");
    let mut bench = Bench::start(input_of(&engine, ", stream: stderr", text(Vec::new())), 100);
    bench.events(1).await;
    bench.stop().await;
    assert_eq!(bench.messages(), ["err"]);
    let mut bench =
        Bench::start(input_of(&engine, ", since: 1h, stream: all", text(Vec::new())), 100);
    bench.events(2).await;
    bench.stop().await;
    assert_eq!(bench.messages(), ["out", "err"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_driver_that_cannot_be_read_is_reported() {
    let engine = Engine::new();
    engine.refuse();
    let mut bench = Bench::start(input(&engine), 100);
    bench.until("it looks again", |_| engine.looks() > 2).await;
    assert_eq!(bench.input.metrics().errors.get(), 1, "once for each start of the container");
    assert_eq!(bench.input.state(), InputState::Running);
    bench.stop().await;
}

#[test]
fn wrong_settings_are_reported() {
    for (settings, expected) in [
        ("{}", "`ids` is missing"),
        ("{ids: []}", "container"),
        ("{ids: ['*']}", "no id and no name"),
        ("{ids: [a], host: 'ftp://x'}", "none of `http`"),
        ("{ids: [a], stream: both}", "`stderr`"),
        ("{ids: [a], host: 'tcp://x', ssl.certificate_authority: /none.pem}", "/none.pem"),
    ] {
        let (input, problems) = read_with(settings, |section| {
            section.declared_by(&CONTAINERS);
            read(section, &context(&Sockets::default()), text(Vec::new()))
        });
        assert!(problems.contains(expected), "{settings}: {problems}");
        assert!(input.is_none() || settings.contains("both"), "{settings}");
    }
}
