//! One record of a container runtime (CRI): `2026-11-21T20:52:57.123456789Z stdout F text`.
//!
//! The format is that of the kubelet's CRI logs (kubernetes `pkg/kubelet/kuberuntime/logs`): a time
//! in RFC 3339, the stream, tags joined with `:` of which the first is `P` (more of this line
//! follows) or `F`, and the text. As Filebeat does, the stream is taken as it stands and a `P`
//! counts wherever it stands among the tags.

use crate::time::TimeReader;
use std::ops::Range;

/// One record, its parts as spans of the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Nanoseconds since 1970-01-01 UTC.
    pub time: i64,
    /// `stdout` or `stderr`, not checked.
    pub stream: Range<usize>,
    /// The text goes on in the next record of the same stream.
    pub partial: bool,
    /// The text.
    pub message: Range<usize>,
}

/// Why a line is not a CRI record; it stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CriError {
    /// Less than a time, a stream, tags and a text, with single spaces between.
    #[error("not a CRI record: `time stream tags text` expected, the line ends at byte {0}")]
    Short(usize),
    /// The first word is no timestamp.
    #[error("not a CRI record: the first {0} bytes are not an RFC 3339 timestamp")]
    Time(usize),
}

/// Reads a line without its terminator. `times` knows the time of the line before.
#[inline]
pub fn parse(line: &[u8], times: &mut TimeReader) -> Result<Record, CriError> {
    match usual(line, times) {
        Some(record) => Ok(record),
        None => by_spaces(line, times),
    }
}

/// Lengths of a time as container runtimes write it: with nine decimals, in UTC or with the zone of the node.
const TIME_BYTES: [usize; 2] =
    ["2026-11-21T20:52:57.123456789Z".len(), "2026-11-21T20:52:57.123456789+01:00".len()];

/// A record as container runtimes write it, its words taken from where they must be.
#[inline]
pub(crate) fn usual(line: &[u8], times: &mut TimeReader) -> Option<Record> {
    let end = TIME_BYTES.into_iter().find(|&end| line.get(end) == Some(&b' '))?;
    let (time, rest) = line.split_at(end);
    let (stream, rest) = rest.split_first_chunk::<8>()?;
    let (tag, _) = rest.split_first_chunk::<2>()?;
    if stream != b" stdout " && stream != b" stderr " {
        return None;
    }
    let partial = match tag {
        b"F " => false,
        b"P " => true,
        _ => return None,
    };
    // What is a time has no space in it.
    let time = times.rfc3339(time)?;
    Some(Record { time, stream: end + 1..end + 7, partial, message: end + 10..line.len() })
}

/// Any record, its words found by the spaces between them.
fn by_spaces(line: &[u8], times: &mut TimeReader) -> Result<Record, CriError> {
    let word = |from: usize| {
        let rest = line.get(from..).unwrap_or_default();
        memchr::memchr(b' ', rest).map(|at| from..from + at).ok_or(CriError::Short(line.len()))
    };
    let time = word(0)?;
    let stream = word(time.end + 1)?;
    let tags = word(stream.end + 1)?;
    let message = tags.end + 1..line.len();
    let time = times.rfc3339(&line[time.clone()]).ok_or(CriError::Time(time.end))?;
    let partial = match &line[tags] {
        b"F" => false,
        b"P" => true,
        tags => tags.split(|&byte| byte == b':').any(|tag| tag == b"P"),
    };
    Ok(Record { time, stream, partial, message })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(line: &[u8]) -> Result<Record, CriError> {
        let record = parse(line, &mut TimeReader::default());
        assert_eq!(record, by_spaces(line, &mut TimeReader::default()), "both ways are one");
        record
    }

    fn parts(line: &str) -> (&str, bool, &str) {
        let record = read(line.as_bytes()).unwrap();
        assert_eq!(record.time, 1_505_255_541_212_861_448);
        (&line[record.stream], record.partial, &line[record.message])
    }

    #[test]
    fn records_are_cut_into_their_parts() {
        let time = "2017-09-12T22:32:21.212861448Z";
        let cases = [
            ("stdout F one two", ("stdout", false, "one two")),
            ("stderr P one", ("stderr", true, "one")),
            ("stdout P:extra a", ("stdout", true, "a")),
            ("stdout F:extra a", ("stdout", false, "a")),
            ("stdout extra:P a", ("stdout", true, "a")),
            ("stdout F ", ("stdout", false, "")),
            ("stdout F   indented", ("stdout", false, "  indented")),
        ];
        for (rest, expected) in cases {
            let line = format!("{time} {rest}");
            assert_eq!(parts(&line), expected);
        }
        let line = "2017-09-13T00:32:21.212861448+02:00 stdout F zone";
        assert_eq!(parts(line), ("stdout", false, "zone"));
    }

    #[test]
    fn other_lines_are_refused() {
        assert_eq!(read(b""), Err(CriError::Short(0)));
        assert_eq!(read(b"2017-09-12T22:32:21Z stdout F"), Err(CriError::Short(29)));
        assert_eq!(read(b"panic: oh no dear"), Err(CriError::Time(6)));
        assert_eq!(read(b"2017-09-12T22:32:21 stdout F text"), Err(CriError::Time(19)));
    }

    #[test]
    fn broken_records_have_spans_inside_the_line() {
        let line = b"2017-09-12T22:32:21.212861448Z stdout F:x one two";
        for broken in crate::testing::Mutations::new(line).take(3000) {
            if let Ok(record) = read(&broken) {
                assert_eq!(record.message.end, broken.len());
            }
        }
    }

    proptest! {
        #[test]
        fn spans_lie_inside_the_line(
            line in prop_oneof![
                "(2017-09-12T22:32:21[.][0-9]{0,9}Z)? ?[a-z]{0,6} ?[PF:]{0,3} ?.{0,20}",
                "2017-09-12T22:32:21[.][0-9]{9}(Z|[+]0[0-9]:00) std(out|err)[ x][PFx][ :]?.{0,9}",
            ]
        ) {
            if let Ok(record) = read(line.as_bytes()) {
                prop_assert!(record.stream.end < record.message.start);
                prop_assert_eq!(record.message.end, line.len());
            }
        }

        #[test]
        fn no_bytes_make_it_panic(line in proptest::collection::vec(
            prop_oneof![3 => Just(b' '), 1 => Just(b':'), 5 => any::<u8>()], 0..60)) {
            drop(read(&line));
        }
    }
}
