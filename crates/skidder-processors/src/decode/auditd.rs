//! `decode_auditd`: makes the values of an audit record readable, and a list of the arguments of a command.
//!
//! With `log_format = ENRICHED` the daemon appends the names of numbers in further pairs, in capital letters, behind a
//! byte 0x1d; they are added.
//!
//! The kernel writes a text with a space, a quote or a control character in it as hexadecimal digits, and all
//! others between quotes. The pairs of the record were taken apart by `kv`. The result is that of Filebeat's
//! module `auditd`, which does this in a script of its ingest pipeline.

use super::object::Object;
use crate::fields::pairs::filled_path;
use crate::plan::{Constants, Failure, Footprint, LOG_FLAGS, Outcome, Processor};
use crate::plan::{message_if, rehearse};
use skidder_config::{Group, Key, Section, settings};
use skidder_event::{Cell, EventMut, Path, Text};
use smallvec::SmallVec;

settings! {
    /// Settings of `decode_auditd`.
    pub(crate) static DECODE_AUDITD = Group::new("processor.decode_auditd", "Makes the values of an audit record readable.");

    FIELD: String = Key::new("field")
        .default("auditd.log")
        .about("the object with the pairs of the record");
    ARGUMENTS_FIELD: String = Key::new("arguments_field")
        .default_words("none")
        .about("a list that takes the arguments `a0`, `a1` and so on of a record `EXECVE`");
    IGNORE_MISSING: bool = Key::new("ignore_missing")
        .default(false)
        .about("a missing field is not a failure");
    IGNORE_FAILURE: bool = Key::new("ignore_failure")
        .default(false)
        .about("a failure is not noted, and only flagged");
}

/// Keys whose values may be hexadecimal.
const TEXTS: [&str; 37] = [
    "acct",
    "apparmor",
    "cgroup",
    "cmd",
    "comm",
    "cwd",
    "data",
    "denied_mask",
    "device",
    "dir",
    "exe",
    "file",
    "grp",
    "info",
    "invalid_context",
    "name",
    "new-chardev",
    "new-disk",
    "new-fs",
    "new-net",
    "new-rng",
    "new_group",
    "ocomm",
    "old-chardev",
    "old-disk",
    "old-fs",
    "old-net",
    "old-rng",
    "operation",
    "path",
    "proctitle",
    "profile",
    "requested_mask",
    "root_dir",
    "sw",
    "vm",
    "watch",
];

/// Makes audit records readable.
#[derive(Clone, Debug)]
pub(crate) struct DecodeAuditd {
    field: Path,
    arguments: Option<Path>,
    ignore_missing: bool,
    ignore_failure: bool,
}

/// An argument of a command: its number, that of its part, and its value.
type Argument = (u64, u64, Cell);

/// What the name of a field of a command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    /// That of an argument, or of a part of one.
    Argument(u64, u64),
    /// That of the length of an argument, which is not kept.
    Length,
    Other,
}

impl DecodeAuditd {
    /// `field`, `arguments_field`, `ignore_missing`, `ignore_failure`.
    pub(crate) fn read(settings: &Section<'_>) -> Option<Self> {
        let parse = |text: String| Path::parse(&text).map_err(|error| error.to_string());
        Some(Self {
            field: settings.get(&FIELD).try_map(parse).value(),
            arguments: filled_path(settings.get(&ARGUMENTS_FIELD)),
            ignore_missing: settings.get(&IGNORE_MISSING).value(),
            ignore_failure: settings.get(&IGNORE_FAILURE).value(),
        })
    }

    #[cold]
    fn failure(&self, why: std::fmt::Arguments<'_>) -> Failure {
        let reason = message_if(!self.ignore_failure, format_args!("decode_auditd: {why}"));
        Failure::new(reason).flag("auditd_parsing_error").ignored(self.ignore_failure)
    }

    /// Puts the arguments of a command into their list, and says if the first ones are missing.
    fn put_arguments(
        event: &mut EventMut<'_>,
        path: &Path,
        mut arguments: Vec<Argument>,
    ) -> Result<(), skidder_event::EditError> {
        arguments.sort_by_key(|(number, part, _)| (*number, *part));
        let Some(&(first, ..)) = arguments.first() else { return Ok(()) };
        let mut cells: Vec<Cell> = Vec::with_capacity(arguments.len() + 1);
        if first > 0 {
            let missing = format!("[... {first} truncated arguments ...]");
            cells.push(Cell::Str(event.store_text(missing.as_bytes())));
        }
        cells.extend(arguments.iter().map(|(.., value)| *value));
        let list = event.store_list(&cells);
        event.put_cell(path, list)
    }
}

/// What `log_format = ENRICHED` of the daemon puts between the record and the pairs that interpret its numbers.
const INTERPRETATION: u8 = 0x1d;

/// A value up to the interpretation of its record, and the first pair of that, which `kv` takes for a part of it.
fn split_off(event: &EventMut<'_>, value: Text) -> (Text, Option<(Text, Text)>) {
    let bytes = event.text(value);
    let Some(at) = memchr::memchr(INTERPRETATION, bytes) else { return (value, None) };
    let span =
        |from: usize, to: usize| Text { start: value.start + from as u32, len: (to - from) as u32 };
    let key = at + 1;
    let pair = memchr::memchr(b'=', &bytes[key..])
        .map(|len| (span(key, key + len), span(key + len + 1, bytes.len())));
    (span(0, at), pair)
}

/// A value without its quotes or digits; `None` if the record says that there is none.
fn readable(event: &mut EventMut<'_>, key: Text, value: Text) -> Option<Text> {
    let bytes = event.text(value);
    if matches!(bytes, b"" | b"?" | b"(null)") {
        return None;
    }
    let is_text = || TEXTS.binary_search_by(|name| name.as_bytes().cmp(event.text(key))).is_ok();
    if bytes.len().is_multiple_of(2)
        && bytes.iter().all(u8::is_ascii_hexdigit)
        && is_text()
        && let Some(text) = from_digits(bytes)
    {
        return Some(event.store_text(text.as_bytes()));
    }
    let is_quote = |byte: Option<&u8>| matches!(byte, Some(b'\'' | b'"'));
    let mut value = value;
    if is_quote(bytes.first()) {
        value = Text { start: value.start + 1, len: value.len - 1 };
    }
    if value.len > 0 && is_quote(bytes.last()) {
        value.len -= 1;
    }
    if event.text(value) == b"c000003e" && event.text(key) == b"arch" {
        return Some(event.store_text(b"x86_64"));
    }
    Some(value)
}

/// The text of hexadecimal digits, control characters as `^X`. `None` if the kernel would not have written it
/// like that: it is a word of these letters, or a number.
fn from_digits(digits: &[u8]) -> Option<String> {
    let nibble = |digit: u8| char::from(digit).to_digit(16).map_or(0, |value| value as u8);
    let bytes: SmallVec<[u8; 256]> =
        digits.chunks_exact(2).map(|pair| nibble(pair[0]) << 4 | nibble(pair[1])).collect();
    if !bytes.iter().any(|byte| matches!(byte, 0..=32 | b'"' | 127..)) {
        return None;
    }
    let mut text = String::with_capacity(bytes.len() + 8);
    for letter in std::str::from_utf8(&bytes).ok()?.chars() {
        match letter {
            '\0'..='\x1f' | '\x7f' => text.extend(['^', char::from(letter as u8 ^ 64)]),
            letter => text.push(letter),
        }
    }
    Some(text)
}

/// What `a12`, `a12[3]`, `a12_len` and other names are.
fn name_of(key: &[u8]) -> Name {
    let numbers = || {
        let rest = std::str::from_utf8(key).ok()?.strip_prefix('a')?;
        let len = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number = rest[..len].parse().ok()?;
        Some(match &rest[len..] {
            "" => Name::Argument(number, 0),
            "_len" => Name::Length,
            part => {
                let part = part.strip_prefix('[')?.strip_suffix(']')?;
                Name::Argument(number, part.parse().ok()?)
            }
        })
    };
    numbers().unwrap_or(Name::Other)
}

impl Processor for DecodeAuditd {
    fn name(&self) -> &'static str {
        "decode_auditd"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        let object = match event.copy(&self.field) {
            Some(object @ Cell::Map { .. }) => object,
            None if self.ignore_missing => return Ok(Outcome::Done),
            None => return Err(self.failure(format_args!("the field `{}` is missing", self.field))),
            Some(_) => {
                return Err(
                    self.failure(format_args!("the field `{}` is not an object", self.field))
                );
            }
        };
        let fields = event.object_cells(object);
        let is_execve = |(key, cell): &(Text, Cell)| match cell {
            Cell::Str(value) => {
                event.text(*key) == b"record_type" && event.text(*value) == b"EXECVE"
            }
            _ => false,
        };
        let list = self.arguments.as_ref().filter(|_| fields.iter().any(is_execve));
        let mut arguments = Vec::new();
        let mut readable_fields = Object::EMPTY;
        for (key, cell) in fields {
            let cell = match cell {
                Cell::Str(value) => {
                    let (value, interpreted) = split_off(event, value);
                    if let Some((key, value)) = interpreted
                        // A list of further pairs begins.
                        && event.text(value) != b"{"
                        && let Some(value) = readable(event, key, value)
                    {
                        readable_fields.push_key(event, key, Cell::Str(value));
                    }
                    match readable(event, key, value) {
                        Some(value) => Cell::Str(value),
                        None => continue,
                    }
                }
                other => other,
            };
            match list.map_or(Name::Other, |_| name_of(event.text(key))) {
                Name::Argument(number, part) => arguments.push((number, part, cell)),
                Name::Length => {}
                Name::Other => readable_fields.push_key(event, key, cell),
            }
        }
        let put = event.put_cell(&self.field, readable_fields.cell()).and_then(|()| match list {
            Some(path) => Self::put_arguments(event, path, arguments),
            None => Ok(()),
        });
        put.map_err(|error| self.failure(format_args!("{error}")))?;
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let mut writes = vec![self.field.clone(), LOG_FLAGS.clone()];
        writes.extend(self.arguments.clone());
        Footprint { reads: vec![self.field.clone()], writes, open: true, ..Footprint::default() }
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        let mut writes = vec![&self.field];
        writes.extend(&self.arguments);
        rehearse(self, constants, &writes)
    }

    fn describe(&self) -> String {
        format!("decode_auditd {}", self.field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_with_texts_are_sorted_for_the_search() {
        assert!(TEXTS.is_sorted());
    }

    #[test]
    fn digits_become_text_only_if_the_kernel_writes_it_so() {
        for (digits, expected) in [
            ("2F62696E2F6120622063", Some("/bin/a b c")),
            ("2f7661722fc3a4", Some("/var/\u{e4}")),
            ("6C73002D6C", Some("ls^@-l")),
            ("0D7F", Some("^M^?")),
            ("62617368", None),
            ("FADE", None),
            ("", None),
        ] {
            assert_eq!(from_digits(digits.as_bytes()).as_deref(), expected, "{digits}");
        }
    }

    #[test]
    fn names_of_arguments_are_told_from_other_names() {
        for (key, expected) in [
            ("a0", Name::Argument(0, 0)),
            ("a12[3]", Name::Argument(12, 3)),
            ("a1_len", Name::Length),
            ("argc", Name::Other),
            ("a", Name::Other),
            ("a1x", Name::Other),
            ("a99999999999999999999", Name::Other),
        ] {
            assert_eq!(name_of(key.as_bytes()), expected, "{key}");
        }
    }
}
