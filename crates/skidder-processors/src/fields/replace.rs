//! `replace`: replaces what a regular expression finds in texts.
//!
//! A text without a match stays as it is, without a copy. Texts without groups in the replacement are put
//! together in a buffer of the thread.

use super::pairs::{required_path, run_each};
use crate::go_value::{go_type, write_value};
use crate::pattern::compile_pattern;
use crate::plan::Constants;
use crate::plan::Failure;
use crate::plan::Footprint;
use crate::plan::{Outcome, Processor, message_if};
use regex::bytes::Regex;
use skidder_config::{Group, Key, Parts, Section, settings};
use skidder_event::{EventMut, Path, Value, ValueRef};
use std::cell::RefCell;

settings! {
    /// Settings of `replace`.
    pub(crate) static REPLACE = Group::new("processor.replace", "Replaces everything that a regular expression finds in texts.");

    FIELDS: Parts = Key::parts("fields", &REPLACEMENT_KEYS)
        .required()
        .about("a list, worked through in its order");
    IGNORE_MISSING: bool = Key::new("ignore_missing")
        .default(false)
        .about("a missing field is not a failure");
    FAIL_ON_ERROR: bool = Key::new("fail_on_error")
        .default(true)
        .about("the first field that fails undoes all of them; otherwise the field alone is left \
                out");
}

settings! {
    /// An item of `fields` of `replace`.
    static REPLACEMENT_KEYS = Group::new("processor.replacement", "What is replaced by what.").inline();

    FIELD: String = Key::new("field")
        .required()
        .about("the field");
    PATTERN: String = Key::new("pattern")
        .required()
        .about("a regular expression");
    REPLACEMENT: String = Key::new("replacement")
        .required()
        .about("what goes in its place, in which `$1` and `$name` stand for groups of the pattern");
}

/// Largest buffer that is kept for the next event, in bytes.
const BUFFER_BYTES_MAX: usize = 1 << 20;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Replaces parts of texts.
#[derive(Clone, Debug)]
pub(crate) struct Replace {
    fields: Vec<Replacement>,
    ignore_missing: bool,
    fail_on_error: bool,
}

/// A replacement in one field.
#[derive(Clone, Debug)]
struct Replacement {
    field: Path,
    pattern: Regex,
    with: String,
    /// Whether `with` names groups.
    groups: bool,
}

impl Replace {
    /// `fields` (a list of `field`, `pattern`, `replacement`), `ignore_missing`, `fail_on_error`.
    pub(crate) fn read(settings: &Section<'_>) -> Option<Self> {
        let sections = settings.parts(&FIELDS);
        if sections.is_empty() {
            let message = format!("`{}` is missing", settings.path_of(FIELDS.name()));
            let hint = "give a list of `field: name` with `pattern: text` and `replacement: text`";
            settings.problem(FIELDS.name(), message, hint);
            return None;
        }
        let fields: Vec<_> = sections.iter().map(Replacement::read).collect();
        let ignore_missing = settings.get(&IGNORE_MISSING).value();
        let fail_on_error = settings.get(&FAIL_ON_ERROR).value();
        let fields = fields.into_iter().collect::<Option<Vec<_>>>()?;
        Some(Self { fields, ignore_missing, fail_on_error })
    }

    fn replace(&self, event: &mut EventMut<'_>, one: &Replacement) -> Result<(), String> {
        BUFFER.with_borrow_mut(|buffer| {
            let field = &one.field;
            let changed = match event.as_ref().get(field) {
                None if self.ignore_missing => return Ok(()),
                None => {
                    let why = format_args!(
                        "could not fetch value for key: {field}, Error: key not found"
                    );
                    return Err(message_if(self.fail_on_error, why));
                }
                Some(ValueRef::Str(text)) => one.write(text, buffer),
                Some(_) if !self.fail_on_error => return Err(String::new()),
                Some(other) => return Err(not_a_text(field, other)),
            };
            let put = if changed { event.put_text(field, buffer) } else { Ok(()) };
            if buffer.capacity() > BUFFER_BYTES_MAX {
                *buffer = Vec::new();
            }
            put.map_err(|error| {
                message_if(self.fail_on_error, format_args!("could not put value: {error}"))
            })
        })
    }
}

fn not_a_text(field: &Path, value: ValueRef<'_>) -> String {
    let mut shown = Vec::new();
    write_value(&mut shown, value);
    let shown = String::from_utf8_lossy(&shown);
    format!("key '{field}' expected type string, but got {} with value '{shown}'", go_type(value))
}

impl Replacement {
    fn read(section: &Section<'_>) -> Option<Self> {
        let field = required_path(section, &FIELD);
        let pattern = section.get(&PATTERN);
        if !section.has_key(&PATTERN) {
            section.problem(
                PATTERN.name(),
                format!("`{}` is missing", section.path_of(PATTERN.name())),
                "",
            );
        }
        let compile = |text: String| compile_pattern(&text).map_err(|error| error.to_string());
        let pattern = pattern.try_map(compile).optional();
        let with = section.get(&REPLACEMENT);
        if !section.has_key(&REPLACEMENT) {
            let message = format!("`{}` is missing", section.path_of(REPLACEMENT.name()));
            section.problem(REPLACEMENT.name(), message, "give `\"\"` to remove the matches");
        }
        let with = with.optional()?;
        let groups = with.contains('$');
        Some(Self { field: field?, pattern: pattern?, with, groups })
    }

    /// Writes the text with everything replaced; `false` if nothing is found in it.
    fn write(&self, text: &[u8], out: &mut Vec<u8>) -> bool {
        out.clear();
        let mut end = 0;
        let mut found = false;
        if self.groups {
            for groups in self.pattern.captures_iter(text) {
                let Some(all) = groups.get(0) else { continue };
                if splits_a_letter(text, all.range()) {
                    continue;
                }
                found = true;
                out.extend_from_slice(&text[end..all.start()]);
                groups.expand(self.with.as_bytes(), out);
                end = all.end();
            }
        } else {
            for all in self.pattern.find_iter(text) {
                if splits_a_letter(text, all.range()) {
                    continue;
                }
                found = true;
                out.extend_from_slice(&text[end..all.start()]);
                out.extend_from_slice(self.with.as_bytes());
                end = all.end();
            }
        }
        out.extend_from_slice(&text[end..]);
        found
    }
}

/// Whether something empty was found inside a letter, where Go does not look.
fn splits_a_letter(text: &[u8], found: std::ops::Range<usize>) -> bool {
    found.is_empty() && text.get(found.start).is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000)
}

impl Processor for Replace {
    fn name(&self) -> &'static str {
        "replace"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        run_each(event, &self.fields, self.fail_on_error, |event, one| self.replace(event, one))
            .map_err(|error| {
                Failure::new(format!("Failed to replace fields in processor: {error}"))
            })?;
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let writes = self.fields.iter().map(|one| one.field.clone()).collect();
        Footprint { writes, ..Footprint::default() }
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        super::pairs::fold_each(constants, &self.fields, self.fail_on_error, |constants, one| {
            let mut out = Vec::new();
            match constants.get(&one.field) {
                None => return self.ignore_missing,
                Some(Value::Str(text)) if !one.write(text.as_bytes(), &mut out) => return true,
                Some(Value::Str(_)) => {}
                Some(_) => return false,
            }
            constants.set(&one.field, Value::from(String::from_utf8_lossy(&out).as_ref()))
        })
    }

    fn can_fail(&self) -> bool {
        self.fail_on_error
    }

    fn describe(&self) -> String {
        let fields: Vec<_> = self.fields.iter().map(|one| one.field.as_str()).collect();
        format!("replace in {}", fields.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_replaced_as_go_does() {
        let cases = [
            ("a*", "x", "baaac", Some("xbxcx")),
            ("x*", "-", "äb", Some("-ä-b-")),
            ("(?P<n>b+)", "[$n]", "abbc", Some("a[bb]c")),
            ("(b)", "${1}0 $10 $$", "abc", Some("ab0  $c")),
            ("b", "$", "abc", Some("a$c")),
            ("z", "y", "abc", None),
            ("^a", "", "aab", Some("ab")),
            ("(?i)PASS=\\S+", "pass=xxx", "pass=1 Pass=2", Some("pass=xxx pass=xxx")),
        ];
        for (pattern, with, text, expected) in cases {
            let one = Replacement {
                field: Path::parse("a").unwrap(),
                pattern: compile_pattern(pattern).unwrap(),
                with: with.to_owned(),
                groups: with.contains('$'),
            };
            let mut out = Vec::new();
            let found = one.write(text.as_bytes(), &mut out);
            assert_eq!(found.then(|| String::from_utf8(out).unwrap()).as_deref(), expected);
        }
    }
}
