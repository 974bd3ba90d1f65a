//! What lines look like in a file whose input has parsers: groups of lines, records of containers, JSON. Each
//! event has one name, at the beginning of its first line; all else of it must come with it.

use crate::oracle::truth::MESSAGE_BYTES_MAX;
use crate::oracle::{LineId, Truth};
use regex::bytes::Regex;
use skidder_parse::chain::{Chain, Container, Format, Match, Matcher, Multiline, Parser, Rule};
use skidder_parse::ndjson;
use skidder_testkit::Random;
use std::time::Duration;

/// What a group waits for its next line.
pub(crate) const TIMEOUT: Duration = Container::TIMEOUT;

/// Lines of a group of which the number says where it ends.
const COUNT: u32 = 3;

/// `multiline.max_lines`.
const LINES_MAX: usize = 3;

/// How the events of an input are written, and which parsers read them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// One line, one event; no parsers.
    #[default]
    Plain,
    /// `multiline.type: pattern`: what does not begin with a name belongs to the line before.
    Pattern,
    /// `multiline.type: count`.
    Count,
    /// `multiline.type: while_pattern`, with another line between two groups.
    While,
    /// `container`, records of CRI, partial ones among them, of two streams.
    Cri,
    /// The same with `multiline` behind it.
    CriPattern,
    /// `container`, records of Docker's `json-file` driver.
    Docker,
    /// `ndjson` with a `message_key`.
    Ndjson,
}

/// Bytes for a file, and where in them which event is whole.
#[derive(Debug, Default)]
pub(crate) struct Records {
    pub(crate) bytes: Vec<u8>,
    pub(crate) ends: Vec<(usize, LineId)>,
}

impl Dialect {
    pub(crate) fn of_log(random: &mut Random) -> Self {
        use Dialect::{Count, Ndjson, Pattern, Plain, While};
        [Plain, Pattern, Pattern, Count, While, Ndjson][random.below(6) as usize]
    }

    pub(crate) fn of_container(random: &mut Random) -> Self {
        use Dialect::{Cri, CriPattern, Docker};
        [Cri, CriPattern, Docker][random.below(3) as usize]
    }

    /// `parsers` of the input.
    pub(crate) fn parsers(self) -> Chain {
        let parsers = match self {
            Self::Plain => return Chain::default(),
            Self::Pattern => vec![begins_with_name()],
            Self::Count => vec![multiline(Rule::Count(COUNT))],
            Self::While => {
                vec![multiline(Rule::While { pattern: matcher("^[c ]"), negate: false })]
            }
            Self::Cri => vec![container(Format::Cri)],
            Self::CriPattern => vec![container(Format::Auto), begins_with_name()],
            Self::Docker => vec![container(Format::Auto)],
            Self::Ndjson => vec![Parser::Ndjson {
                settings: ndjson::Settings {
                    message_key: Some("message".into()),
                    ..ndjson::Settings::default()
                },
                log_errors: true,
            }],
        };
        Chain::new(parsers, 2 * MESSAGE_BYTES_MAX as u64 * 1000)
    }

    /// Some events of a content.
    pub(crate) fn some(self, content: usize, random: &mut Random, truth: &mut Truth) -> Records {
        let mut records = Records::default();
        for _ in 0..=random.below(4) {
            match self {
                Self::Cri | Self::CriPattern | Self::Docker => {
                    self.containers(content, random, truth, &mut records);
                }
                _ => self.group(content, random, truth, &mut records),
            }
        }
        records
    }

    fn group(self, content: usize, random: &mut Random, truth: &mut Truth, out: &mut Records) {
        let lines = match self {
            Self::Count => COUNT as usize,
            Self::Ndjson => 1,
            _ => 1 + random.below(5) as usize,
        };
        let lines = lines_of(&truth.name(content), lines, random);
        let lines_max = if self == Self::Count { lines.len() } else { LINES_MAX };
        let id = truth.event(content, 0, joined(&lines, lines_max));
        for line in &lines {
            if self == Self::Ndjson {
                out.bytes.extend_from_slice(b"{\"level\":\"info\",\"message\":\"");
                escape(line, &mut out.bytes);
                out.bytes.extend_from_slice(b"\"}\n");
            } else {
                out.bytes.extend_from_slice(line);
                out.bytes.push(b'\n');
            }
        }
        if self == Self::While {
            out.bytes.extend_from_slice(b"x\n");
        }
        out.ends.push((out.bytes.len(), id));
    }

    /// One event of a stream, or one of each, their records among each other.
    fn containers(self, content: usize, random: &mut Random, truth: &mut Truth, out: &mut Records) {
        let streams = if random.one_in(3) { 2 } else { 1 };
        let first = random.below(2) as usize;
        let mut waiting = Vec::new();
        for stream in 0..streams {
            let stream = (first + stream) % 2;
            let lines = if self == Self::CriPattern { 1 + random.below(4) as usize } else { 1 };
            let lines = lines_of(&truth.name(content), lines, random);
            let id = truth.event(content, stream, joined(&lines, LINES_MAX));
            let mut records: Vec<Vec<u8>> =
                lines.iter().flat_map(|line| self.records(stream, line, random)).collect();
            records.reverse();
            waiting.push((id, records));
        }
        while !waiting.is_empty() {
            let at = random.below(waiting.len() as u64) as usize;
            let (id, records) = &mut waiting[at];
            out.bytes.extend(records.pop().unwrap_or_default());
            if records.is_empty() {
                out.ends.push((out.bytes.len(), *id));
                waiting.swap_remove(at);
            }
        }
    }

    /// The records of one line, the parts of it before the last one partial.
    fn records(self, stream: usize, line: &[u8], random: &mut Random) -> Vec<Vec<u8>> {
        let parts = if random.one_in(2) { 1 } else { 2 + random.below(3) as usize };
        let pieces: Vec<&[u8]> = line.chunks(line.len().div_ceil(parts).max(1)).collect();
        let name = ["stdout", "stderr"][stream];
        let mut records = Vec::new();
        for (at, piece) in pieces.iter().enumerate() {
            let last = at + 1 == pieces.len();
            let mut record = Vec::new();
            if self == Self::Docker {
                record.extend_from_slice(b"{\"log\":\"");
                escape(piece, &mut record);
                record.extend_from_slice(if last { b"\\n" } else { b"" });
                let rest =
                    format!("\",\"stream\":\"{name}\",\"time\":\"2026-01-01T00:00:00Z\"}}\n");
                record.extend_from_slice(rest.as_bytes());
            } else {
                let kind = if last { 'F' } else { 'P' };
                let head = format!("2026-01-01T00:00:00.123456789Z {name} {kind} ");
                record.extend_from_slice(head.as_bytes());
                record.extend_from_slice(piece);
                record.push(b'\n');
            }
            records.push(record);
        }
        records
    }
}

/// So many lines, the first with a name.
fn lines_of(name: &str, count: usize, random: &mut Random) -> Vec<Vec<u8>> {
    let mut lines = Vec::new();
    for number in 0..count {
        let mut line = if number == 0 { name.as_bytes().to_vec() } else { b" ".to_vec() };
        let length = if random.one_in(8) { random.below(500) } else { random.below(40) };
        let first = random.below(90) as usize;
        line.extend((0..length as usize).map(|at| b'!' + ((first + at) % 90) as u8));
        lines.push(line);
    }
    lines
}

/// The message that must come of some lines: what is beyond a bound is cut, between two lines rather than
/// behind a line feed.
fn joined(lines: &[Vec<u8>], lines_max: usize) -> Vec<u8> {
    let mut text = lines[..lines.len().min(lines_max)].join(&b'\n');
    text.truncate(MESSAGE_BYTES_MAX);
    if text.len() == MESSAGE_BYTES_MAX && text.ends_with(b"\n") {
        text.pop();
    }
    text
}

fn escape(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(*byte);
    }
}

fn matcher(pattern: &str) -> Matcher {
    Matcher::new(Regex::new(pattern).expect("a good pattern"))
}

fn multiline(rule: Rule) -> Parser {
    Parser::Multiline(Multiline {
        rule,
        max_lines: LINES_MAX as u32,
        max_bytes: MESSAGE_BYTES_MAX,
        timeout: Some(TIMEOUT),
        skip_newline: false,
    })
}

fn begins_with_name() -> Parser {
    multiline(Rule::Pattern {
        pattern: matcher(r"^c\d+n\d+;"),
        negate: true,
        side: Match::After,
        flush: None,
    })
}

fn container(format: Format) -> Parser {
    Parser::Container(Container { stream: None, format, max_bytes: MESSAGE_BYTES_MAX })
}
