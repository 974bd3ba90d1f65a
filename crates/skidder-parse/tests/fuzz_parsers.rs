//! Parsers against damaged lines, from seeds: they never panic, and every line is in an event,
//! dropped with a reason, or discarded and counted; also when turns end anywhere.
//! `cargo xtask fuzz` runs more of it.

#![expect(clippy::unwrap_used, reason = "tests")]

use regex::bytes::Regex;
use skidder_event::{Base, Batch, Map, Provenance, Row, SourceId, Text};
use skidder_parse::chain::{
    Accept, Chain, Container, Ending, Format, Match, Matcher, Multiline, Parser, Rule, Run, State,
};
use skidder_parse::{auditd, ndjson, syslog};
use skidder_testkit::Random;
use std::ops::Range;
use std::sync::Arc;

/// Rounds of the ordinary test run.
const ROUNDS: u64 = 1_500;

/// Bytes of a message.
const MESSAGE_BYTES_MAX: usize = 200;

/// Lines as each parser likes them.
const LINES: [&str; 12] = [
    "2026-01-01T00:00:00.123456789Z stdout P part ",
    "2026-01-01T00:00:00.123456789+02:00 stderr F and the rest",
    r#"{"log":"a line \"quoted\" \u00e4\n","stream":"stdout","attrs":{"a":"b"},"time":"2026-01-01T00:00:00Z"}"#,
    r#"{"log":"a part","stream":"stderr","time":"2026-01-01T00:00:00Z"}"#,
    r#"{"message":"m","@timestamp":"2026-01-01T00:00:00Z","a.b":{"c":[1,2.5e300,null,true]},"a":1}"#,
    r#"{"error":{"message":7},"message":["no text"],"type":""}"#,
    "<34>1 2026-01-01T00:00:00.003Z host app 123 ID47 [a@1 b=\"c\\\"d\"][e f=\"g\"] text",
    "<13>Jan  1 00:00:00 host app[12]: text",
    "type=SYSCALL msg=audit(1490137971.011:50406): arch=c000003e syscall=42 success=yes a0=15 exe=2F62696E",
    "type=EXECVE msg=audit(1490137971.011:50406): argc=3 a0=\"a\" a1=62 a2='c d'",
    " continued",
    "2026 something begins",
];

fn multiline(rule: Rule) -> Parser {
    Parser::Multiline(Multiline {
        rule,
        max_lines: 4,
        max_bytes: MESSAGE_BYTES_MAX,
        timeout: None,
        skip_newline: false,
    })
}

fn parser(random: &mut Random) -> Parser {
    let matcher = |pattern: &str| Matcher::new(Regex::new(pattern).unwrap());
    match random.below(8) {
        0 => multiline(Rule::Pattern {
            pattern: matcher("^[0-9{<t]"),
            negate: random.one_in(2),
            side: if random.one_in(2) { Match::After } else { Match::Before },
            flush: random.one_in(3).then(|| matcher("rest|begins")),
        }),
        1 => multiline(Rule::Count(1 + random.below(4) as u32)),
        2 => multiline(Rule::While { pattern: matcher("^[ {]"), negate: random.one_in(2) }),
        3 | 4 => {
            let format = [Format::Auto, Format::Docker, Format::Cri][random.below(3) as usize];
            Parser::Container(Container { stream: None, format, max_bytes: MESSAGE_BYTES_MAX })
        }
        5 => Parser::Ndjson {
            settings: ndjson::Settings {
                overwrite_keys: random.one_in(2),
                expand_keys: random.one_in(2),
                add_error_key: random.one_in(2),
                message_key: random.one_in(2).then(|| "message".into()),
                ..ndjson::Settings::default()
            },
            log_errors: true,
        },
        6 => Parser::Syslog {
            settings: syslog::Settings::local(jiff::tz::TimeZone::UTC),
            log_errors: true,
        },
        _ => Parser::Auditd { settings: auditd::Settings::default(), log_errors: true },
    }
}

/// Lines, some of them damaged; no line feed comes into one by damage.
fn lines(random: &mut Random) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for _ in 0..=random.below(30) {
        let mut line = LINES[random.below(LINES.len() as u64) as usize].as_bytes().to_vec();
        for _ in 0..[0, 0, 1, 4][random.below(4) as usize] {
            let at = random.below(line.len() as u64) as usize;
            match random.below(4) {
                0 => line.truncate(at),
                1 => line.insert(at, random.number() as u8),
                2 if !line.is_empty() => line[at] = random.number() as u8,
                _ => line.extend_from_within(..at),
            }
        }
        line.retain(|byte| *byte != b'\n');
        all.push(line);
    }
    all
}

/// What came of the lines of a source so far.
#[derive(Default)]
struct Seen {
    state: State,
    cursor: usize,
    /// What events say that they take of the source.
    events: Vec<Range<usize>>,
    /// What was dropped or discarded, and counted: a line, or an event of several.
    left_out: u64,
}

impl Seen {
    /// One turn over the lines between the cursor and the end of `text`.
    fn turn(&mut self, chain: &Chain, text: &[u8], ending: Ending) {
        let cursor = self.cursor;
        let provenance = Provenance::new(SourceId(1), 0..0);
        let base = Arc::new(Base::new(&Map::new(), &Map::new()));
        let bytes = text[cursor..].to_vec();
        let is_utf8 = std::str::from_utf8(&bytes).is_ok();
        let mut batch = Batch::new(bytes.clone(), is_utf8, base, provenance);
        let accept = Accept { message_max_bytes: MESSAGE_BYTES_MAX, include: &[], exclude: &[] };
        let mut run = Run::new(chain, &mut self.state, accept, &batch, cursor as u64);
        let mut start = 0;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let text = Text { start: start as u32, len: line.len() as u32 - 1 };
            run.line(&mut batch, Row::new((cursor + start) as u64, line.len() as u32, text, 0));
            start += line.len();
        }
        let finish = run.finish(&mut batch, ending);
        self.cursor = usize::try_from(finish.end).unwrap();
        assert!((cursor..=text.len()).contains(&self.cursor), "the end of a turn is in it");
        for row in batch.rows() {
            let start = row.offset as usize;
            self.events.push(start..start + row.line_bytes as usize);
        }
        self.left_out += batch.lines() - batch.len() as u64 + finish.discarded;
    }
}

#[test]
fn damaged_lines_are_all_accounted_for() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let from = number("SKIDDER_FUZZ_FROM").unwrap_or(1);
    let rounds = number("SKIDDER_FUZZ_ROUNDS").unwrap_or(ROUNDS);
    for seed in from..from + rounds {
        let mut random = Random::new(seed);
        let parsers = (0..=random.below(3)).map(|_| parser(&mut random)).collect();
        let chain = Chain::new(parsers, 2_000);
        let lines = lines(&mut random);
        let mut places = Vec::new();
        let mut text = Vec::new();
        for line in &lines {
            places.push(text.len()..text.len() + line.len() + 1);
            text.extend_from_slice(line);
            text.push(b'\n');
        }
        let mut seen = Seen::default();
        for _ in 0..random.below(3) {
            let limit = places[random.below(places.len() as u64) as usize].end;
            if limit > seen.cursor {
                seen.turn(&chain, &text[..limit], Ending::More);
            }
        }
        seen.turn(&chain, &text, Ending::Last);
        assert_eq!(seen.cursor, text.len(), "SKIDDER_SEED={seed}: all is complete at the end");
        let covered = |place: &Range<usize>| {
            seen.events.iter().any(|event| event.start <= place.start && place.end <= event.end)
        };
        let missing = places.iter().filter(|place| !covered(place)).count() as u64;
        assert!(
            missing == 0 || seen.left_out > 0,
            "SKIDDER_SEED={seed}: {missing} lines are in no event, and none was counted; {chain:?}"
        );
    }
}
