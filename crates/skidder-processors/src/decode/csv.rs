//! `decode_csv_fields`: takes a line of comma-separated values apart into a list of texts.
//!
//! The rules are those of Go's `encoding/csv` with `LazyQuotes`, which no library in Rust follows:
//! a quote inside of an unquoted value is literal, and so is one inside of a quoted value
//! that is not doubled.

use crate::fields::pairs::{filled_path, run_each};
use crate::plan::{Constants, Failure, Footprint, Outcome, Processor, message_if, rehearse};
use crate::text::{NoText, text_of};
use skidder_config::{Any, Group, Key, Section, settings};
use skidder_event::{Cell, EventMut, Path, Text};
use smallvec::SmallVec;

settings! {
    /// Settings of `decode_csv_fields`.
    pub(crate) static DECODE_CSV_FIELDS = Group::new("processor.decode_csv_fields", "Takes a line of comma-separated values apart into a list of texts.");

    FIELDS: Any = Key::new("fields").map()
        .required()
        .about("a map of fields to targets: `message: csv`; the target may be the field itself");
    SEPARATOR: String = Key::new("separator")
        .default(",")
        .about("the character between values");
    TRIM_LEADING_SPACE: bool = Key::new("trim_leading_space")
        .default(false)
        .about("white space before a value is left out, also when a quote follows");
    IGNORE_MISSING: bool = Key::new("ignore_missing")
        .default(false)
        .about("a missing field is not a failure");
    OVERWRITE_KEYS: bool = Key::new("overwrite_keys")
        .default(false)
        .about("a target that is there already is replaced; otherwise it is a failure");
    FAIL_ON_ERROR: bool = Key::new("fail_on_error")
        .default(true)
        .about("the first field that fails undoes all of them; otherwise it alone is left out");
}

/// Decodes texts of fields.
#[derive(Clone, Debug)]
pub(crate) struct DecodeCsv {
    /// From where to where.
    fields: Vec<(Path, Path)>,
    rules: Rules,
    ignore_missing: bool,
    overwrite_keys: bool,
    fail_on_error: bool,
}

/// How values are found in a text.
#[derive(Clone, Copy, Debug)]
struct Rules {
    separator: char,
    trim_leading_space: bool,
}

/// The values of a record, one behind the other.
#[derive(Debug, Default)]
struct Record {
    bytes: SmallVec<[u8; 512]>,
    ends: SmallVec<[u32; 32]>,
}

impl DecodeCsv {
    /// `fields` (a map), `separator`, `trim_leading_space`, `ignore_missing`, `overwrite_keys`,
    /// `fail_on_error`.
    pub(crate) fn read(settings: &Section<'_>) -> Option<Self> {
        let section = settings.names(&FIELDS);
        let leaves = section.leaves();
        let fields: Vec<_> = leaves
            .iter()
            .map(|(name, item)| {
                let from = Path::parse(name).map_err(|error| {
                    section.problem(name, format!("`{}`: {error}", section.path_of(name)), "");
                });
                from.ok().zip(filled_path(item.string()))
            })
            .collect();
        if fields.is_empty() {
            let message = format!("`{}` names no field", settings.path_of(FIELDS.name()));
            settings.problem(
                FIELDS.name(),
                message,
                "give a map of fields to targets, as in `message: csv`",
            );
        }
        let separator = settings.get(&SEPARATOR).try_map(|text| {
            let mut letters = text.chars();
            match (letters.next(), letters.next()) {
                (Some(letter), None) if !matches!(letter, '\0' | '"' | '\r' | '\n') => Ok(letter),
                _ => Err("expected a single character, and no quote or line break".to_owned()),
            }
        });
        let rules = Rules {
            separator: separator.value(),
            trim_leading_space: settings.get(&TRIM_LEADING_SPACE).value(),
        };
        let ignore_missing = settings.get(&IGNORE_MISSING).value();
        let overwrite_keys = settings.get(&OVERWRITE_KEYS).value();
        let fail_on_error = settings.get(&FAIL_ON_ERROR).value();
        let fields = fields.into_iter().collect::<Option<Vec<_>>>()?;
        if fields.is_empty() {
            return None;
        }
        Some(Self { fields, rules, ignore_missing, overwrite_keys, fail_on_error })
    }

    fn decode(&self, event: &mut EventMut<'_>, from: &Path, to: &Path) -> Result<(), String> {
        let text = match text_of(event, from) {
            Ok(text) => text,
            Err(NoText::Missing) if self.ignore_missing => return Ok(()),
            Err(NoText::Missing) => {
                let why = format_args!("could not fetch value for field {from}: key not found");
                return Err(message_if(self.fail_on_error, why));
            }
            Err(NoText::OtherKind) => {
                let why = format_args!("field {from} is not of string type");
                return Err(message_if(self.fail_on_error, why));
            }
        };
        let mut cells: SmallVec<[Cell; 32]> = SmallVec::new();
        if !self.rules.split(event.text(text), text.start, &mut cells) {
            let Some(record) = self.rules.record(event.text(text)) else {
                let why = format_args!("error decoding CSV from field {from}: EOF");
                return Err(message_if(self.fail_on_error, why));
            };
            let mut start = 0;
            for &end in &record.ends {
                cells.push(Cell::Str(event.store_text(&record.bytes[start..end as usize])));
                start = end as usize;
            }
        }
        if from != to && !self.overwrite_keys && event.as_ref().has(to) {
            let why = format_args!(
                "target field {to} already has a value. Set the overwrite_keys flag or drop/rename the field first"
            );
            return Err(message_if(self.fail_on_error, why));
        }
        let list = event.store_list(&cells);
        event.put_cell(to, list).map_err(|error| {
            message_if(self.fail_on_error, format_args!("failed setting field {to}: {error}"))
        })
    }
}

impl Record {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn end_value(&mut self) {
        self.ends.push(self.bytes.len() as u32);
    }
}

/// A text line by line: the line, and whether a line break ends it. What ends in `\r\n` ends without `\r`.
struct Lines<'a>(&'a [u8]);

impl<'a> Lines<'a> {
    fn next(&mut self) -> Option<(&'a [u8], bool)> {
        if self.0.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', self.0);
        let line = &self.0[..end.unwrap_or(self.0.len())];
        self.0 = end.map_or(&[][..], |end| &self.0[end + 1..]);
        Some((line.strip_suffix(b"\r").unwrap_or(line), end.is_some()))
    }
}

impl Rules {
    /// Adds the values of a record that has nothing but values and separators, as parts of its text, which
    /// begins at `start` of the batch. `false`, and nothing is added, if it has more, or is empty.
    fn split(&self, text: &[u8], start: u32, cells: &mut SmallVec<[Cell; 32]>) -> bool {
        let is_plain = memchr::memchr3(b'"', b'\r', b'\n', text).is_none();
        if text.is_empty() || self.trim_leading_space || !is_plain {
            return false;
        }
        let mut encoded = [0_u8; 4];
        let separator = self.separator.encode_utf8(&mut encoded).as_bytes();
        let mut add = |from: usize, end: usize| {
            cells.push(Cell::Str(Text { start: start + from as u32, len: (end - from) as u32 }));
        };
        let mut from = 0;
        for at in memchr::memmem::find_iter(text, separator) {
            add(from, at);
            from = at + separator.len();
        }
        add(from, text.len());
        true
    }

    /// The first record of a text; `None` if there are only empty lines.
    fn record(&self, text: &[u8]) -> Option<Record> {
        let mut encoded = [0_u8; 4];
        let separator = self.separator.encode_utf8(&mut encoded).as_bytes();
        let mut lines = Lines(text);
        let (mut line, mut broken) = lines.next()?;
        while line.is_empty() {
            (line, broken) = lines.next()?;
        }
        let mut record = Record::default();
        loop {
            if self.trim_leading_space {
                line = trim_start(line);
            }
            let Some(quoted) = line.strip_prefix(b"\"") else {
                let end = memchr::memmem::find(line, separator);
                record.push(&line[..end.unwrap_or(line.len())]);
                record.end_value();
                match end {
                    Some(end) => line = &line[end + separator.len()..],
                    None => return Some(record),
                }
                continue;
            };
            line = quoted;
            match quoted_value(&mut record, &mut lines, (line, broken), separator) {
                Some((rest, rest_broken)) => (line, broken) = (rest, rest_broken),
                None => return Some(record),
            }
        }
    }
}

/// Adds a value that began with a quote, perhaps over several lines. The rest of the line after its
/// separator, or nothing if it is the last of the record.
fn quoted_value<'a>(
    record: &mut Record,
    lines: &mut Lines<'a>,
    (mut line, mut broken): (&'a [u8], bool),
    separator: &[u8],
) -> Option<(&'a [u8], bool)> {
    loop {
        let Some(quote) = memchr::memchr(b'"', line) else {
            record.push(line);
            if broken {
                record.push(b"\n");
            }
            match lines.next() {
                Some(next) => (line, broken) = next,
                None => {
                    record.end_value();
                    return None;
                }
            }
            continue;
        };
        record.push(&line[..quote]);
        line = &line[quote + 1..];
        if let Some(rest) = line.strip_prefix(b"\"") {
            record.push(b"\"");
            line = rest;
        } else if let Some(rest) = line.strip_prefix(separator) {
            record.end_value();
            return Some((rest, broken));
        } else if line.is_empty() {
            record.end_value();
            return None;
        } else {
            record.push(b"\"");
        }
    }
}

/// Without the white space of Unicode that it begins with.
fn trim_start(line: &[u8]) -> &[u8] {
    let known = match std::str::from_utf8(line) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&line[..error.valid_up_to()]).unwrap_or_default(),
    };
    &line[known.len() - known.trim_start().len()..]
}

impl Processor for DecodeCsv {
    fn name(&self) -> &'static str {
        "decode_csv_fields"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        run_each(event, &self.fields, self.fail_on_error, |event, (from, to)| {
            self.decode(event, from, to)
        })
        .map_err(Failure::unnoted)?;
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let reads = self.fields.iter().map(|(from, _)| from.clone()).collect();
        let writes = self.fields.iter().map(|(_, to)| to.clone()).collect();
        Footprint { reads, writes, ..Footprint::default() }
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        let writes: Vec<&Path> = self.fields.iter().map(|(_, to)| to).collect();
        rehearse(self, constants, &writes)
    }

    fn can_fail(&self) -> bool {
        self.fail_on_error
    }

    fn describe(&self) -> String {
        let names: Vec<_> = self.fields.iter().map(|(from, _)| from.as_str()).collect();
        format!("decode_csv_fields {}", names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str, separator: char, trim: bool) -> Option<Vec<String>> {
        let rules = Rules { separator, trim_leading_space: trim };
        let record = rules.record(text.as_bytes())?;
        let mut start = 0;
        let value = |&end: &u32| {
            let value = String::from_utf8_lossy(&record.bytes[start..end as usize]).into_owned();
            start = end as usize;
            value
        };
        let values: Vec<String> = record.ends.iter().map(value).collect();
        let mut cells = SmallVec::new();
        if rules.split(text.as_bytes(), 7, &mut cells) {
            let part = |cell: &Cell| match cell {
                Cell::Str(part) => text[part.start as usize - 7..][..part.len as usize].to_owned(),
                other => format!("{other:?}"),
            };
            assert_eq!(cells.iter().map(part).collect::<Vec<_>>(), values, "{text:?}");
        } else {
            assert!(trim || text.contains(['"', '\r', '\n']), "{text:?}");
        }
        Some(values)
    }

    #[test]
    fn records_are_read_as_go_does() {
        let cases: [(&str, &[&str]); 20] = [
            ("a,b,c", &["a", "b", "c"]),
            ("a,b,c\n", &["a", "b", "c"]),
            ("a,b\r\nnext,line", &["a", "b"]),
            ("a,b\r", &["a", "b"]),
            ("\n\r\n\na,b", &["a", "b"]),
            (",", &["", ""]),
            ("a,", &["a", ""]),
            ("\"a,b\",c", &["a,b", "c"]),
            ("\"say \"\"hi\"\"\",c", &["say \"hi\"", "c"]),
            ("\"\"", &[""]),
            ("\"\",\"\"", &["", ""]),
            ("\"two\nlines\",c", &["two\nlines", "c"]),
            ("\"two\r\nlines\"", &["two\nlines"]),
            ("\"open, b", &["open, b"]),
            ("\"open\n", &["open\n"]),
            ("a \"word\",b", &["a \"word\"", "b"]),
            ("\"a\"b\",c", &["a\"b", "c"]),
            (" \"a\",b", &[" \"a\"", "b"]),
            ("\"a\" ,b", &["a\" ,b"]),
            ("\"a\"\nb", &["a"]),
        ];
        for (text, expected) in cases {
            assert_eq!(values(text, ',', false).unwrap_or_default(), expected, "{text:?}");
        }
        assert_eq!(values("", ',', false), None);
        assert_eq!(values("\n\n", ',', false), None);
    }

    #[test]
    fn white_space_before_values_is_trimmed_if_asked() {
        let cases: [(&str, &[&str]); 4] = [
            (" a, \u{a0}b ,  ", &["a", "b ", ""]),
            (" \"a\", \"b\"", &["a", "b"]),
            ("  ", &[""]),
            ("a,  \n", &["a", ""]),
        ];
        for (text, expected) in cases {
            assert_eq!(values(text, ',', true).unwrap_or_default(), expected, "{text:?}");
        }
    }

    #[test]
    fn separators_may_be_any_character() {
        assert_eq!(
            values("a\u{2192}\"b\u{2192}c\"\u{2192}", '\u{2192}', false).unwrap_or_default(),
            ["a", "b\u{2192}c", ""]
        );
        assert_eq!(values("a\tb,c", '\t', false).unwrap_or_default(), ["a", "b,c"]);
    }
}
