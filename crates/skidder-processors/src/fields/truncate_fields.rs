//! `truncate_fields`: cuts texts that are too long, and notes that in `log.flags`.
//!
//! A text becomes shorter where it is; nothing is copied. `max_bytes` never cuts a letter in two.

use super::pairs::{fold_each, required_paths, run_each};
use crate::plan::Constants;
use crate::plan::Failure;
use crate::plan::Footprint;
use crate::plan::{Outcome, Processor, append, message_if};
use crate::text::{NoText, text_of};
use skidder_config::{Group, Key, Section, settings};
use skidder_event::{Cell, EventMut, Path, Text, Value};

settings! {
    /// Settings of `truncate_fields`.
    pub(crate) static TRUNCATE_FIELDS = Group::new("processor.truncate_fields", "Cuts texts that are longer than a limit, and adds `truncated` to \
                               `log.flags` for each.");

    FIELDS: Vec<String> = Key::new("fields")
        .required()
        .about("the fields to look at");
    MAX_BYTES: usize = Key::new("max_bytes")
        .noun("a number of bytes")
        .about("how many bytes of a text may stay; a letter is never cut in two. Exactly one of the \
                two limits is needed");
    MAX_CHARACTERS: usize = Key::new("max_characters")
        .noun("a number of letters")
        .about("how many letters of a text may stay");
    IGNORE_MISSING: bool = Key::new("ignore_missing")
        .default(false)
        .about("a missing field is not a failure");
    FAIL_ON_ERROR: bool = Key::new("fail_on_error")
        .default(false)
        .about("the first field that fails undoes all of them; otherwise the field alone is left \
                out");
}

/// Added to `log.flags` for each text that was cut.
const FLAG: &str = "truncated";

/// Cuts texts.
#[derive(Clone, Debug)]
pub(crate) struct TruncateFields {
    fields: Vec<Path>,
    limit: Limit,
    ignore_missing: bool,
    fail_on_error: bool,
    flags: Path,
    flag: [Value; 1],
}

/// How much of a text may stay.
#[derive(Clone, Copy, Debug)]
enum Limit {
    Bytes(usize),
    Characters(usize),
}

impl TruncateFields {
    /// `fields`, exactly one of `max_bytes` and `max_characters`, `ignore_missing`, `fail_on_error`.
    pub(crate) fn read(settings: &Section<'_>) -> Option<Self> {
        let fields = required_paths(settings, &FIELDS);
        let bytes = settings.get(&MAX_BYTES).optional();
        let characters = settings.get(&MAX_CHARACTERS).optional();
        let ignore_missing = settings.get(&IGNORE_MISSING).value();
        let fail_on_error = settings.get(&FAIL_ON_ERROR).value();
        let limit = match (bytes, characters) {
            // Filebeat takes zero bytes for no limit in bytes, and then has zero letters as the limit.
            (Some(bytes), None) => Limit::Bytes(bytes),
            (None, Some(characters)) => Limit::Characters(characters),
            (both, _) => {
                let what = if both.is_some() { "both" } else { "neither" };
                let message =
                    format!("`{}` has {what} of `max_bytes` and `max_characters`", settings.path());
                settings.problem("", message, "give exactly one of them");
                return None;
            }
        };
        let flags = Path::parse("log.flags").expect("a constant that is a path");
        let flag = [Value::from(FLAG)];
        Some(Self { fields: fields?, limit, ignore_missing, fail_on_error, flags, flag })
    }

    fn truncate(&self, event: &mut EventMut<'_>, field: &Path) -> Result<(), String> {
        let text = match text_of(event, field) {
            Ok(text) => text,
            Err(NoText::Missing) if self.ignore_missing => return Ok(()),
            Err(error) => return Err(self.no_text(field, error)),
        };
        let Some(length) = self.limit.length(event.text(text)) else { return Ok(()) };
        let short = Text { start: text.start, len: length as u32 };
        event
            .put_cell(field, Cell::Str(short))
            .map_err(|error| message_if(self.fail_on_error, format_args!("{error}")))?;
        let mark = event.mark();
        if append(event, &self.flags, &self.flag).is_err() {
            // A value that is not a list stays, as in Filebeat.
            event.rollback(mark);
        }
        Ok(())
    }

    #[cold]
    fn no_text(&self, field: &Path, error: NoText) -> String {
        let message = match error {
            NoText::Missing => {
                format_args!("could not fetch value for key: {field}: key not found")
            }
            NoText::OtherKind => format_args!("value cannot be truncated: {field} is not a text"),
        };
        message_if(self.fail_on_error, message)
    }

    fn truncate_constant(&self, constants: &mut Constants, field: &Path) -> bool {
        let short = match constants.get(field) {
            None => return self.ignore_missing,
            Some(Value::Str(text)) => match self.limit.length(text.as_bytes()) {
                None => return true,
                Some(length) => Value::from(&text[..length]),
            },
            Some(_) => return false,
        };
        constants.set(field, short);
        let mut flags = match constants.get(&self.flags) {
            None => Vec::new(),
            Some(Value::List(flags)) => flags.clone(),
            Some(_) => return true,
        };
        flags.extend_from_slice(&self.flag);
        constants.set(&self.flags, Value::List(flags));
        true
    }
}

impl Limit {
    /// The length in bytes that a text is cut to; `None` if it is short enough.
    fn length(self, text: &[u8]) -> Option<usize> {
        match self {
            Self::Bytes(limit) => {
                let mut length = limit;
                if text.len() <= length {
                    return None;
                }
                // At most three bytes of a letter stand before the limit.
                let least = limit.saturating_sub(3);
                while length > least && is_inside_letter(text[length]) {
                    length -= 1;
                }
                // Without a letter's first byte it is no UTF-8, and cut where the limit is.
                Some(if is_inside_letter(text[length]) { limit } else { length })
            }
            Self::Characters(limit) => {
                if text.len() <= limit {
                    return None;
                }
                let mut letters = 0;
                for (at, byte) in text.iter().enumerate() {
                    if !is_inside_letter(*byte) {
                        if letters == limit {
                            return Some(at);
                        }
                        letters += 1;
                    }
                }
                None
            }
        }
    }
}

/// Whether a byte of UTF-8 is a continuation byte.
fn is_inside_letter(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

impl Processor for TruncateFields {
    fn name(&self) -> &'static str {
        "truncate_fields"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        run_each(event, &self.fields, self.fail_on_error, |event, field| {
            self.truncate(event, field)
        })
        .map_err(Failure::unnoted)?;
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let mut writes = self.fields.clone();
        writes.push(self.flags.clone());
        Footprint { writes, ..Footprint::default() }
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        fold_each(constants, &self.fields, self.fail_on_error, |constants, field| {
            self.truncate_constant(constants, field)
        })
    }

    fn can_fail(&self) -> bool {
        self.fail_on_error
    }

    fn describe(&self) -> String {
        let fields: Vec<_> = self.fields.iter().map(Path::as_str).collect();
        let (limit, unit) = match self.limit {
            Limit::Bytes(limit) => (limit, "bytes"),
            Limit::Characters(limit) => (limit, "characters"),
        };
        format!("truncate_fields {} to {limit} {unit}", fields.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::Limit;

    #[test]
    fn texts_are_cut_between_letters() {
        let cases: [(Limit, &[u8], Option<usize>); 13] = [
            (Limit::Bytes(5), b"hello", None),
            (Limit::Bytes(4), b"hello", Some(4)),
            (Limit::Bytes(0), b"hello", Some(0)),
            (Limit::Bytes(0), b"", None),
            (Limit::Bytes(2), "aäb".as_bytes(), Some(1)),
            (Limit::Bytes(3), "aäb".as_bytes(), Some(3)),
            (Limit::Bytes(3), "𝄞".as_bytes(), Some(0)),
            (Limit::Bytes(5), &[0x80; 9], Some(5)),
            (Limit::Characters(2), "aäb".as_bytes(), Some(3)),
            (Limit::Characters(3), "aäb".as_bytes(), None),
            (Limit::Characters(0), "ä".as_bytes(), Some(0)),
            (Limit::Characters(1), "𝄞𝄞".as_bytes(), Some(4)),
            (Limit::Characters(2), &[b'a', 0xff, b'b'], Some(2)),
        ];
        for (limit, text, expected) in cases {
            assert_eq!(limit.length(text), expected, "{limit:?} of {text:?}");
        }
    }
}
