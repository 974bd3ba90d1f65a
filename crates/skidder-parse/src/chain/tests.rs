//! Chains against golden cases, and against themselves with turns that end anywhere.

use super::*;
use proptest::prelude::*;
use regex::bytes::Regex;
use skidder_event::{
    Base, Batch, DropReason, Encoder, Map, Path, Precision, Provenance, Row, SourceId, Text,
};
use std::sync::Arc;

pub(super) fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a good pattern")
}

pub(super) fn pattern(pattern: &str, negate: bool, side: Match) -> Multiline {
    let flush = None;
    let pattern = Matcher::new(regex(pattern));
    multiline(Rule::Pattern { pattern, negate, side, flush })
}

pub(super) fn multiline(rule: Rule) -> Multiline {
    Multiline {
        rule,
        max_lines: Multiline::MAX_LINES,
        max_bytes: 10 << 20,
        timeout: Some(Multiline::TIMEOUT),
        skip_newline: false,
    }
}

const ALL: Accept<'static> = Accept { message_max_bytes: 10 << 20, include: &[], exclude: &[] };

/// An event as a test sees it: its offset, its document, what it takes of the source.
pub(super) type Event = (u64, serde_json::Value, u64);

/// A reader of a text, in turns.
pub(super) struct Source<'a> {
    chain: &'a Chain,
    accept: Accept<'a>,
    text: &'a [u8],
    pub(super) state: State,
    pub(super) cursor: u64,
    pub(super) events: Vec<Event>,
    pub(super) dropped: [u64; 3],
    pub(super) last: Finish,
}

impl<'a> Source<'a> {
    pub(super) fn new(chain: &'a Chain, text: &'a [u8]) -> Self {
        Self {
            chain,
            accept: ALL,
            text,
            state: State::default(),
            cursor: 0,
            events: Vec::new(),
            dropped: [0; 3],
            last: Finish::default(),
        }
    }

    /// A turn over the whole lines between the cursor and `limit`.
    pub(super) fn turn(&mut self, limit: usize, mut ending: Ending, rows_max: usize) {
        let start = self.cursor as usize;
        let bytes = self.text[start..limit.max(start)].to_vec();
        let provenance = Provenance::new(SourceId(1), 0..0);
        let base = Arc::new(Base::new(&Map::new(), &Map::new()));
        let mut batch = Batch::new(bytes.clone(), true, base, provenance);
        let mut run = Run::new(self.chain, &mut self.state, self.accept, &batch, self.cursor);
        let mut at = 0;
        while let Some(end) = bytes[at..].iter().position(|byte| *byte == b'\n') {
            if run.is_full(&batch, rows_max) {
                ending = Ending::More;
                break;
            }
            let len = end - usize::from(end > 0 && bytes[at + end - 1] == b'\r');
            let text = Text { start: at as u32, len: len as u32 };
            run.line(&mut batch, Row::new((start + at) as u64, end as u32 + 1, text, 7));
            at += end + 1;
        }
        self.last = run.finish(&mut batch, ending);
        assert!((self.cursor..=(start + at) as u64).contains(&self.last.end));
        self.cursor = self.last.end;
        for (row, of) in batch.rows().iter().enumerate() {
            let mut out = Vec::new();
            Encoder::new(Precision::Millisecond).write(&mut out, &batch, row);
            let json = serde_json::from_slice(&out).expect("a document is JSON");
            self.events.push((of.offset, json, u64::from(of.line_bytes)));
        }
        let reasons = [DropReason::Empty, DropReason::LineFilter, DropReason::Parser];
        for (count, reason) in self.dropped.iter_mut().zip(reasons) {
            *count += batch.drops().get(reason);
        }
        assert_eq!(batch.lines(), batch.len() as u64 + batch.drops().total());
    }

    pub(super) fn messages(&self) -> Vec<String> {
        self.events.iter().map(|(_, json, _)| message(json)).collect()
    }
}

fn message(json: &serde_json::Value) -> String {
    json["message"].as_str().unwrap_or("-").to_owned()
}

pub(super) fn chain(parsers: impl Into<Vec<Parser>>) -> Chain {
    Chain::new(parsers.into(), Chain::GROUP_BYTES)
}

/// All events of a text that is at its end.
pub(super) fn all(chain: &Chain, text: &[u8]) -> Vec<Event> {
    let mut source = Source::new(chain, text);
    source.turn(text.len(), Ending::Last, usize::MAX);
    assert_eq!(source.cursor, text.len() as u64);
    source.events
}

pub(super) fn messages(chain: &Chain, text: &str) -> Vec<String> {
    all(chain, text.as_bytes()).iter().map(|(_, json, _)| message(json)).collect()
}

/// The events of a text, read in turns that end where `cuts` says; with a new state before each turn if
/// `restart`.
pub(super) fn in_turns(chain: &Chain, text: &[u8], cuts: &[usize], restart: bool) -> Vec<Event> {
    let mut source = Source::new(chain, text);
    let mut limit = 0;
    for step in cuts.iter().cycle() {
        limit = (limit + step + 1).min(text.len());
        if restart {
            source.state = State::default();
        }
        let ending = if limit == text.len() { Ending::Last } else { Ending::More };
        source.turn(limit, ending, 1 + step % 3);
        if source.cursor == text.len() as u64 {
            return source.events;
        }
    }
    source.events
}

#[test]
fn lines_are_grouped_by_a_pattern_as_filebeat_does() {
    use Match::{After, Before};
    type Case = (&'static str, bool, Match, &'static str, &'static [&'static str]);
    let cases: &[Case] = &[
        ("^[ \t]", false, After, "a\n b\n c\nd\n", &["a\n b\n c", "d"]),
        ("^[ \t]", false, After, " a\n b\nc\n", &[" a\n b", "c"]),
        (r"\\$", false, Before, "a\\\nb\\\nc\nd\n", &["a\\\nb\\\nc", "d"]),
        (r"\\$", false, Before, "a\nb\\\n", &["a", "b\\"]),
        ("^-", true, After, "-a\nb\n\nc\n-d\n", &["-a\nb\n\nc", "-d"]),
        ("^-", true, After, "a\n-b\n", &["a", "-b"]),
        (";$", true, Before, "a\nb;\nc;\nd\n", &["a\nb;", "c;", "d"]),
        // Empty lines before the first text leave no trace, as in Filebeat; the last ones do.
        ("^-", true, After, "\n\na\n\n-b\n", &["a\n", "-b"]),
        ("^-", true, After, "-a\r\nb\r\n-c\r\n", &["-a\nb", "-c"]),
    ];
    for (expression, negate, side, text, expected) in cases {
        let chain = chain([Parser::Multiline(pattern(expression, *negate, *side))]);
        assert_eq!(messages(&chain, text), *expected, "{expression} {negate} {side:?} {text:?}");
    }
}

#[test]
fn a_flush_pattern_ends_an_event_whatever_the_pattern_says() {
    let with_flush = |side, negate, expression| {
        let Rule::Pattern { pattern, negate, side, .. } = pattern(expression, negate, side).rule
        else {
            panic!("it is a pattern")
        };
        let flush = Some(Matcher::new(regex("^end")));
        chain([Parser::Multiline(multiline(Rule::Pattern { pattern, negate, side, flush }))])
    };
    let after = with_flush(Match::After, true, "^begin");
    let text = "begin a\nb\nend\nstray\nstray\nbegin c\nend\nend\nend\n";
    let expected = ["begin a\nb\nend", "stray\nstray", "begin c\nend", "end\nend"];
    assert_eq!(messages(&after, text), expected);
    // Filebeat checks for the end before it checks whether the line belongs to the group at all.
    let before = with_flush(Match::Before, false, "^ ");
    assert_eq!(messages(&before, " a\nb\nend\nc\nd\n"), [" a\nb\nend", "c", "d"]);
}

#[test]
fn lines_are_counted() {
    let chain = chain([Parser::Multiline(multiline(Rule::Count(2)))]);
    assert_eq!(messages(&chain, "a\nb\n\nc\nd\n"), ["a\nb", "c", "d"]);
}

#[test]
fn lines_that_match_in_a_row_are_joined() {
    let rule = |negate| Rule::While { pattern: Matcher::new(regex("^\\{")), negate };
    let by = |negate| chain([Parser::Multiline(multiline(rule(negate)))]);
    assert_eq!(messages(&by(false), "{a\n{b\nc\n{d\ne\nf\n"), ["{a\n{b", "c", "{d", "e", "f"]);
    assert_eq!(messages(&by(true), "a\nb\n{c\n{d\ne\n"), ["a\nb", "{c", "{d", "e"]);
}

#[test]
fn what_is_beyond_the_bounds_is_discarded_and_flagged() {
    let bounded = |max_lines, max_bytes| {
        let multiline = Multiline { max_lines, max_bytes, ..pattern("^ ", false, Match::After) };
        chain([Parser::Multiline(multiline)])
    };
    type Case = (u32, usize, &'static str, &'static str, &'static [&'static str]);
    let cases: &[Case] = &[
        (2, 0, "a\n b\n c\n", "a\n b", &["truncated", "multiline"]),
        (2, 0, "a\n b\n", "a\n b", &["multiline"]),
        (1, 0, "a\n b\n", "a", &["truncated"]),
        (0, 4, "a\n bcd\n e\n", "a\n b", &["truncated", "multiline"]),
        (0, 4, "a\n b\n", "a\n b", &["multiline"]),
        (0, 2, "a\n b\n", "a", &["truncated"]),
        (0, 3, "abcd\n", "abc", &["truncated"]),
        (0, 2, "a\u{e9}\n", "a", &["truncated"]),
    ];
    for (lines, bytes, text, expected, flags) in cases {
        let events = all(&bounded(*lines, *bytes), text.as_bytes());
        assert_eq!(events.len(), 1);
        assert_eq!(message(&events[0].1), *expected, "{text:?}");
        assert_eq!(events[0].1["log"]["flags"], serde_json::json!(flags), "{text:?}");
        assert_eq!((events[0].0, events[0].2), (0, text.len() as u64));
    }
}

#[test]
fn lines_can_be_joined_without_a_line_feed() {
    let multiline = Multiline { skip_newline: true, ..pattern("^ ", false, Match::After) };
    let chain = chain([Parser::Multiline(multiline)]);
    assert_eq!(messages(&chain, "a\n b\n c\nd\n"), ["a b c", "d"]);
}

#[test]
fn messages_are_included_and_filtered_behind_the_parsers() {
    let parsers = [
        Parser::Multiline(pattern("^ ", false, Match::After)),
        Parser::IncludeMessage(vec![regex("^a|x")]),
    ];
    let (chain, exclude) = (chain(parsers), [regex("y")]);
    let mut source = Source::new(&chain, b"a\n x\nb\n y\nb\n x\n\na y\n");
    source.accept = Accept { exclude: &exclude, message_max_bytes: 3, include: &[] };
    source.turn(source.text.len(), Ending::Last, usize::MAX);
    assert_eq!(source.messages(), ["a\n ", "b\n "]);
    assert_eq!(source.dropped, [1, 1, 1]);
    assert_eq!(source.events[0].1["log"]["flags"], serde_json::json!(["truncated", "multiline"]));
}

pub(super) fn container(stream: Option<Stream>, format: Format) -> Parser {
    Parser::Container(Container { stream, format, max_bytes: 10 << 20 })
}

const CRI: &str = "2026-11-21T20:52:57.000000001Z";

#[test]
fn records_of_containers_become_their_text() {
    let chain = chain([container(None, Format::Auto)]);
    let text = format!(
        "{CRI} stdout F one\n\
         {{\"log\":\"two \\\"2\\\"\\n\",\"stream\":\"stderr\",\"time\":\"{CRI}\"}}\n\
         {{\"log\":\"\\n\",\"stream\":\"stderr\",\"time\":\"{CRI}\"}}\n\
         {CRI} stderr F \n\
         {CRI} other F:x three\n\
         nothing of both\n\
         \n"
    );
    let events = all(&chain, text.as_bytes());
    let messages: Vec<String> = events.iter().map(|(_, json, _)| message(json)).collect();
    assert_eq!(messages, ["one", "two \"2\"", "three", "nothing of both"]);
    let streams: Vec<_> = events.iter().map(|(_, json, _)| json["stream"].as_str()).collect();
    assert_eq!(streams, [Some("stdout"), Some("stderr"), Some("other"), None]);
    assert_eq!(events[0].1["@timestamp"], "2026-11-21T20:52:57.000Z");
    let error = events[3].1["error"]["message"].as_str().expect("it says why");
    assert!(error.starts_with("not a CRI record"), "{error}");
}

#[test]
fn one_format_does_not_read_the_other() {
    let docker = format!("{{\"log\":\"a\\n\",\"time\":\"{CRI}\"}}");
    let cri = format!("{CRI} stdout F a");
    for (format, text) in [(Format::Docker, &cri), (Format::Cri, &docker)] {
        let chain = chain([container(None, format)]);
        let text = format!("{text}\n");
        assert_eq!(messages(&chain, &text), [text.trim_end()]);
        let mut source = Source::new(&chain, text.as_bytes());
        source.turn(text.len(), Ending::Last, 10);
        assert_eq!(source.last.errors, 1);
        assert_eq!(source.state.take_failure().map(|failure| failure.parser), Some("container"));
    }
}

#[test]
fn partial_records_of_two_streams_are_joined_apart() {
    let text = format!(
        "{CRI} stdout P a\n{CRI} stderr P x\n{CRI} stdout P b\n{CRI} stderr F y\n\
         {CRI} stderr F z\n{CRI} stdout F c\n{CRI} stdout P last\n"
    );
    let parsers = |stream| chain([container(stream, Format::Cri)]);
    let both = parsers(None);
    assert_eq!(messages(&both, &text), ["xy", "z", "abc", "last"]);
    let flags = &all(&both, text.as_bytes())[3].1["log"]["flags"];
    assert_eq!(*flags, serde_json::json!(["partial"]), "nothing came behind it");
    let one = parsers(Some(Stream::Stderr));
    let mut source = Source::new(&one, text.as_bytes());
    source.turn(text.len(), Ending::Last, 100);
    assert_eq!((source.messages(), source.dropped), (vec!["xy".into(), "z".into()], [0, 0, 4]));
}

#[test]
fn what_is_behind_an_unfinished_record_of_another_stream_is_not_given_out_twice() {
    let chain = chain([container(None, Format::Cri)]);
    let text = format!("{CRI} stdout P a\n{CRI} stderr F x\n{CRI} stdout F b\n");
    let mut source = Source::new(&chain, text.as_bytes());
    let two = text.lines().take(2).map(|line| line.len() + 1).sum();
    source.turn(two, Ending::Waiting(Duration::from_secs(1)), 100);
    assert_eq!((source.events.len(), source.cursor), (0, 0));
    source.turn(text.len(), Ending::Last, 100);
    assert_eq!(source.messages(), ["x", "ab"]);
}

#[test]
fn lines_of_containers_are_joined_within_their_stream() {
    let join = Parser::Multiline(pattern("^ ", false, Match::After));
    let skip = Multiline { skip_newline: true, ..pattern("^ ", false, Match::After) };
    let text = format!(
        "{CRI} stdout F a\n{CRI} stderr F x\n{CRI} stdout F  b\n{CRI} stderr F  y\n\
         {CRI} stdout P  c\n{CRI} stdout F  d\n"
    );
    let lines = chain([container(None, Format::Cri), join.clone()]);
    let mut found = messages(&lines, &text);
    found.sort();
    assert_eq!(found, ["a\n b\n c d", "x\n y"]);
    // The line feed of a Docker record is its own: one stands between lines, whatever the settings.
    let docker = |log: &str| format!("{{\"log\":\"{log}\\n\",\"time\":\"{CRI}\"}}\n");
    let text = docker("a") + &docker(" b");
    for join in [join, Parser::Multiline(skip)] {
        let chain = chain([container(None, Format::Auto), join]);
        assert_eq!(messages(&chain, &text), ["a\n b"]);
    }
}

#[test]
fn a_stream_that_falls_silent_holds_the_other_back_for_so_many_bytes_only() {
    let join = Parser::Multiline(pattern("^ ", false, Match::After));
    let chain = chain([container(None, Format::Cri), join]);
    let mut text = format!("{CRI} stderr F first\n");
    while text.len() < 2 * GAP_BYTES as usize {
        text += &format!("{CRI} stdout F line\n");
    }
    let expected = all(&chain, text.as_bytes());
    let mut source = Source::new(&chain, text.as_bytes());
    source.turn(text.len(), Ending::More, usize::MAX);
    assert!(source.cursor > GAP_BYTES && source.events[..] == expected[..source.events.len()]);
    assert!(in_turns(&chain, text.as_bytes(), &[100_000], true) == expected);
}

#[test]
fn messages_go_from_parser_to_parser() {
    let ndjson = Parser::Ndjson {
        settings: ndjson::Settings {
            target: Some(Path::parse("app").expect("a good path")),
            message_key: Some("msg".into()),
            add_error_key: true,
            ..ndjson::Settings::default()
        },
        log_errors: true,
    };
    let join = Parser::Multiline(pattern("^ ", false, Match::After));
    let chain = chain([container(None, Format::Cri), ndjson, join]);
    let text = format!(
        "{CRI} stdout F {{\"msg\":\"a\",\"n\":1}}\n{CRI} stdout F {{\"msg\":\" b\",\"n\":2}}\n\
         {CRI} stdout F no JSON\n"
    );
    let events = all(&chain, text.as_bytes());
    assert_eq!(events.len(), 2);
    assert_eq!(message(&events[0].1), "a\n b");
    assert_eq!(events[0].1["app"]["n"], 2, "the fields of the last line");
    assert_eq!(events[0].1["stream"], "stdout");
    assert_eq!(message(&events[1].1), "no JSON");
    assert_eq!(events[1].1["app"]["error"]["type"], "json");
    let mut source = Source::new(&chain, text.as_bytes());
    source.turn(text.len(), Ending::Last, 100);
    let failure = source.state.take_failure().expect("one line is no JSON");
    assert_eq!((failure.parser, source.last.errors), ("ndjson", 1));
}

#[test]
fn contiguous_lines_are_joined_without_a_copy() {
    let chain = chain([Parser::Multiline(pattern("^ ", false, Match::After))]);
    let text = b"a\n b\n c\nd\n";
    let mut source = Source::new(&chain, text);
    let base = Arc::new(Base::new(&Map::new(), &Map::new()));
    let provenance = Provenance::new(SourceId(1), 0..0);
    let mut batch = Batch::new(text.to_vec(), true, base, provenance);
    let mut run = Run::new(&chain, &mut source.state, ALL, &batch, 0);
    for (at, len) in [(0, 1), (2, 2), (5, 2), (8, 1)] {
        run.line(&mut batch, Row::new(at, len + 1, Text { start: at as u32, len }, 0));
    }
    run.finish(&mut batch, Ending::Last);
    assert_eq!(batch.rows()[0].message, Text { start: 0, len: 7 });
}

#[test]
fn an_unfinished_group_is_read_again_until_it_has_waited_long_enough() {
    let chain = chain([Parser::Multiline(pattern("^ ", false, Match::After))]);
    let text = b"a\nb\n c\n d\n";
    let mut source = Source::new(&chain, text);
    let at = Duration::from_secs;
    source.turn(7, Ending::Waiting(at(10)), 100);
    assert_eq!(source.messages(), ["a"]);
    assert_eq!((source.cursor, source.last.flush_at), (2, Some(at(15))));
    source.turn(7, Ending::Waiting(at(12)), 100);
    assert_eq!((source.cursor, source.last.flush_at), (2, Some(at(15))));
    // Another line: the wait begins anew.
    source.turn(10, Ending::Waiting(at(14)), 100);
    assert_eq!((source.cursor, source.last.flush_at), (2, Some(at(19))));
    source.turn(10, Ending::Waiting(at(19)), 100);
    assert_eq!(source.messages(), ["a", "b\n c\n d"]);
    assert_eq!((source.cursor, source.last.flush_at), (10, None));
    assert!(!source.state.is_needed());
}

#[test]
fn a_group_that_takes_too_much_of_the_source_is_given_out_and_its_rest_discarded() {
    let mut text = b"first\n".to_vec();
    while text.len() < 3 * CUT_GROUP_BYTES as usize {
        text.extend_from_slice(b" more of it\n");
    }
    text.extend_from_slice(b"second\n x\n");
    let chain = chain([Parser::Multiline(pattern("^ ", false, Match::After))]);
    let expected = all(&chain, &text);
    assert_eq!(expected.len(), 2);
    assert_eq!(message(&expected[0].1).lines().count(), 500);
    assert!(expected[0].2 < CUT_GROUP_BYTES + 100);
    assert_eq!(in_turns(&chain, &text, &[300_000], false), expected);
    assert_eq!(in_turns(&chain, &text, &[40_000, 300_000, 100], false), expected);
}

#[test]
fn characters_are_not_split_by_the_bound_of_a_message() {
    let cases: &[(&str, usize, usize)] =
        &[("aaaa", 2, 2), ("a\u{e9}a", 2, 1), ("\u{20ac}\u{20ac}", 5, 3), ("\u{1f600}a", 4, 4)];
    for (text, max, expected) in cases {
        assert_eq!(character_boundary(text.as_bytes(), *max), *expected, "{text} {max}");
    }
    assert_eq!(character_boundary(&[0x80; 10], 7), 7, "what is no text is cut anywhere");
}

/// Lines of a few kinds, joined to a text.
fn text() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just(String::new()),
        "[ab]{1,3}",
        " [ab]{0,3}",
        "-[ab]{0,3}",
        "end[ab]?",
        "[ab]\\\\",
        "a{20}",
    ];
    let terminator = prop_oneof![4 => Just("\n"), 1 => Just("\r\n")];
    prop::collection::vec((line, terminator), 0..40)
        .prop_map(|lines| lines.iter().flat_map(|(line, end)| [line.as_str(), *end]).collect())
}

fn rule() -> impl Strategy<Value = Rule> {
    let expression = prop_oneof![Just("^ "), Just("^-"), Just(r"\\$"), Just("^[ -]|^$")];
    let flush = prop_oneof![Just(None), Just(Some("^end"))];
    prop_oneof![
        4 => (expression.clone(), any::<bool>(), any::<bool>(), flush).prop_map(
            |(expression, negate, after, flush)| Rule::Pattern {
                pattern: Matcher::new(regex(expression)),
                negate,
                side: if after { Match::After } else { Match::Before },
                flush: flush.map(|flush| Matcher::new(regex(flush))),
            }
        ),
        1 => (1_u32..4).prop_map(Rule::Count),
        1 => (expression, any::<bool>()).prop_map(|(expression, negate)| Rule::While {
            pattern: Matcher::new(regex(expression)),
            negate,
        }),
    ]
}

fn parsers() -> impl Strategy<Value = Chain> {
    let multiline = (rule(), 0_u32..4, prop_oneof![Just(0_usize), 3_usize..20], any::<bool>());
    let parser = prop_oneof![
        3 => multiline.prop_map(|(rule, max_lines, max_bytes, skip_newline)| {
            let timeout = None;
            Parser::Multiline(Multiline { rule, max_lines, max_bytes, timeout, skip_newline })
        }),
        1 => Just(Parser::IncludeMessage(vec![regex("a|^$")])),
    ];
    prop::collection::vec(parser, 0..3).prop_map(chain)
}

proptest! {
    #[test]
    fn events_do_not_depend_on_where_turns_end(
        chain in parsers(),
        text in text(),
        cuts in prop::collection::vec(0_usize..30, 1..5),
    ) {
        let expected = all(&chain, text.as_bytes());
        prop_assert_eq!(&in_turns(&chain, text.as_bytes(), &cuts, false), &expected);
        prop_assert_eq!(&in_turns(&chain, text.as_bytes(), &cuts, true), &expected);
    }
}

/// Records of both streams, whole and partial ones, and lines that are no records.
fn records() -> impl Strategy<Value = String> {
    let record = (prop_oneof![Just("stdout"), Just("stderr")], any::<bool>(), "[ -]?[ab]{0,2}")
        .prop_map(|(stream, partial, text)| {
            format!("{CRI} {stream} {} {text}", if partial { "P" } else { "F" })
        });
    let line = prop_oneof![8 => record, 1 => "[ab]{0,2}"];
    prop::collection::vec(line, 0..30)
        .prop_map(|lines| lines.iter().flat_map(|line| [line, "\n"]).collect())
}

proptest! {
    #[test]
    fn events_of_containers_do_not_depend_on_where_turns_end(
        rule in rule(),
        join in any::<bool>(),
        stream in prop_oneof![Just(None), Just(Some(Stream::Stdout))],
        text in records(),
        cuts in prop::collection::vec(0_usize..300, 1..5),
    ) {
        let mut parsers = vec![container(stream, Format::Auto)];
        if join {
            let joined = Multiline { max_lines: 3, timeout: None, ..multiline(rule) };
            parsers.push(Parser::Multiline(joined));
        }
        let chain = chain(parsers);
        let sorted = |mut events: Vec<Event>| {
            events.sort_by_key(|event| event.0);
            events
        };
        let expected = sorted(all(&chain, text.as_bytes()));
        for restart in [false, true] {
            let events = sorted(in_turns(&chain, text.as_bytes(), &cuts, restart));
            prop_assert_eq!(&events, &expected);
        }
    }
}

#[test]
fn a_chain_says_whether_its_events_have_fields_of_any_name() {
    let grouping = || Parser::IncludeMessage(Vec::new());
    let ndjson = Parser::Ndjson { settings: crate::ndjson::Settings::default(), log_errors: false };
    assert!(!Chain::default().makes_fields());
    assert!(!Chain::new(vec![grouping()], 1).makes_fields());
    assert!(Chain::new(vec![grouping(), ndjson], 1).makes_fields());
}
