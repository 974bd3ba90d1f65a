//! `lowercase` and `uppercase`: other letters for the names of fields, and for texts.
//!
//! A name is found whatever the case of its letters is in the event; a text only by its exact name.

use super::pairs::{optional_paths, run_each};
use crate::plan::Constants;
use crate::plan::Failure;
use crate::plan::Footprint;
use crate::plan::{Outcome, Processor, message_if};
use skidder_config::{Group, Key, Section, settings};
use skidder_event::{EventMut, Path, ValueRef};

settings! {
    /// What `lowercase` and `uppercase` have.
    static LETTER_CASE = Group::new("processor.letter_case", "Which letters are changed.");

    FIELDS: Vec<String> = Key::new("fields")
        .default_words("required; `[]` for none")
        .about("the fields whose names are changed, found in any case; `type` and `@timestamp` keep \
                theirs; `[]` for none");
    VALUES: Vec<String> = Key::new("values")
        .default_words("none")
        .about("the fields whose texts are changed");
    ALTER_FULL_FIELD: bool = Key::new("alter_full_field")
        .default(true)
        .about("all parts of a name are changed; otherwise only the last");
    IGNORE_MISSING: bool = Key::new("ignore_missing")
        .default(false)
        .about("a missing field is not a failure");
    FAIL_ON_ERROR: bool = Key::new("fail_on_error")
        .default(true)
        .about("the first field that fails undoes all of them; otherwise the field alone is left \
                out");
}

/// Settings of `lowercase`.
pub(crate) static LOWERCASE: Group =
    Group::new("processor.lowercase", "Converts names of fields, and texts, to lower case.")
        .include(&[&LETTER_CASE]);

/// Settings of `uppercase`.
pub(crate) static UPPERCASE: Group =
    Group::new("processor.uppercase", "Converts names of fields, and texts, to upper case.")
        .include(&[&LETTER_CASE]);

/// Which letters are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    Lower,
    Upper,
}

/// Changes the case of names and texts.
#[derive(Clone, Debug)]
pub(crate) struct LetterCase {
    case: Case,
    fields: Vec<Path>,
    values: Vec<Path>,
    ignore_missing: bool,
    fail_on_error: bool,
    /// All parts of a name are changed, otherwise the last alone.
    full: bool,
}

/// Why a name cannot be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NoName {
    Missing,
    /// Two names differ in nothing but their case.
    Collision,
}

impl LetterCase {
    /// `fields`, `values`, `ignore_missing`, `fail_on_error`, `alter_full_field`.
    pub(crate) fn read(settings: &Section<'_>, case: Case) -> Option<Self> {
        let mut fields = optional_paths(settings, &FIELDS);
        let values = optional_paths(settings, &VALUES);
        let ignore_missing = settings.get(&IGNORE_MISSING).value();
        let fail_on_error = settings.get(&FAIL_ON_ERROR).value();
        let full = settings.get(&ALTER_FULL_FIELD).value();
        if !settings.has_key(&FIELDS) {
            let message = format!("`{}` is missing", settings.path_of(FIELDS.name()));
            let hint = "give a list of field names; `[]` if only `values` are to be changed";
            settings.problem(FIELDS.name(), message, hint);
            return None;
        }
        for name in fields.iter().filter(|name| is_kept(name)) {
            let path = settings.path_of(FIELDS.name());
            settings.warning(FIELDS.name(), format!("`{path}`: `{name}` keeps its name"), "");
        }
        fields.retain(|name| !is_kept(name));
        Some(Self { case, fields, values, ignore_missing, fail_on_error, full })
    }

    fn alter(&self, event: &mut EventMut<'_>, field: &Path) -> Result<(), String> {
        let result = self.alter_name(event, field);
        let why = match result {
            Ok(()) => return Ok(()),
            Err(NoName::Missing) if self.ignore_missing => return Ok(()),
            Err(NoName::Missing) => "key not found",
            Err(NoName::Collision) => "key collision",
        };
        let message = format_args!("could not fetch value for key: {field}, Error: {why}");
        Err(message_if(self.fail_on_error, message))
    }

    fn alter_name(&self, event: &mut EventMut<'_>, field: &Path) -> Result<(), NoName> {
        let mut prefix = String::new();
        for (depth, wanted) in field.segments().iter().enumerate() {
            let found = find_key(event, &prefix, wanted)?;
            let last = depth + 1 == field.segments().len();
            let new = if self.full || last { self.case.of(&found) } else { found.clone() };
            let path = |key: &str| Path::parse(&format!("{prefix}{key}")).map(Path::exact);
            if new != found {
                let (Ok(from), Ok(to)) = (path(&found), path(&new)) else {
                    return Err(NoName::Missing);
                };
                let cell = event.take(&from).ok_or(NoName::Missing)?;
                event.put_cell(&to, cell).map_err(|_| NoName::Collision)?;
            }
            prefix = format!("{prefix}{new}.");
        }
        Ok(())
    }

    fn alter_value(&self, event: &mut EventMut<'_>, field: &Path) -> Result<(), String> {
        let new = match event.as_ref().get(field) {
            None if self.ignore_missing => return Ok(()),
            None => {
                let why =
                    format_args!("could not fetch value for key: {field}, Error: key not found");
                return Err(message_if(self.fail_on_error, why));
            }
            Some(ValueRef::Str(text)) if self.case.fits(text) && !event.as_ref().has_dots() => {
                return Ok(());
            }
            Some(ValueRef::Str(text)) => self.case.of(&String::from_utf8_lossy(text)),
            Some(_) => {
                let why = format_args!("value of key \"{field}\" is not a string");
                return Err(message_if(self.fail_on_error, why));
            }
        };
        event.delete_with_dots(field);
        let put = event.put_text(field, new.as_bytes());
        put.map_err(|error| message_if(self.fail_on_error, format_args!("{error}")))
    }
}

/// `type` keeps its name, as do fields inside it, and `@timestamp`.
fn is_kept(name: &Path) -> bool {
    let first = name.segments()[0].to_lowercase();
    !name.is_metadata() && (first == "type" || first == "@timestamp")
}

/// The key of the object at `prefix` that is `wanted` but for its letters.
fn find_key(event: &EventMut<'_>, prefix: &str, wanted: &str) -> Result<String, NoName> {
    let lower = wanted.to_lowercase();
    let mut found: Option<String> = None;
    let mut twice = false;
    let mut look = |key: &[u8]| {
        if key.len() < lower.len() / 2 || key.len() > lower.len() * 2 {
            return;
        }
        if let Ok(key) = std::str::from_utf8(key)
            && key.to_lowercase() == lower
        {
            twice |= found.is_some();
            found = Some(key.to_owned());
        }
    };
    match prefix.strip_suffix('.') {
        None => {
            if event.as_ref().message().is_some() {
                look(b"message");
            }
            let log = Path::parse("log").expect("a constant that is a path");
            let own = event.as_ref().root().get("log").is_none() && event.as_ref().has(&log);
            if own {
                look(b"log");
            }
            event.as_ref().root().for_each(|key, _| look(key));
        }
        Some(object) => {
            let Ok(path) = Path::parse(object).map(Path::exact) else {
                return Err(NoName::Missing);
            };
            if let Some(ValueRef::Map(map)) = event.as_ref().get(&path) {
                map.for_each(|key, _| look(key));
            }
        }
    }
    if twice {
        return Err(NoName::Collision);
    }
    found.ok_or(NoName::Missing)
}

impl Case {
    /// The text with other letters, letter by letter as Go does it: one that would become several stays.
    fn of(self, text: &str) -> String {
        text.chars()
            .map(|letter| match self {
                Self::Lower => single(letter, letter.to_lowercase()),
                Self::Upper => single(letter, letter.to_uppercase()),
            })
            .collect()
    }

    /// Whether a text of ASCII stays as it is.
    fn fits(self, text: &[u8]) -> bool {
        text.iter().all(|byte| match self {
            Self::Lower => byte.is_ascii() && !byte.is_ascii_uppercase(),
            Self::Upper => byte.is_ascii() && !byte.is_ascii_lowercase(),
        })
    }
}

fn single(letter: char, mut other: impl Iterator<Item = char>) -> char {
    match (other.next(), other.next()) {
        (Some(only), None) => only,
        _ => letter,
    }
}

impl Processor for LetterCase {
    fn name(&self) -> &'static str {
        match self.case {
            Case::Lower => "lowercase",
            Case::Upper => "uppercase",
        }
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        run_each(event, &self.fields, self.fail_on_error, |event, field| self.alter(event, field))
            .and_then(|()| {
                run_each(event, &self.values, self.fail_on_error, |event, field| {
                    self.alter_value(event, field)
                })
            })
            .map_err(Failure::new)?;
        Ok(Outcome::Done)
    }

    /// Names are found in any case, so no list of paths covers what it touches.
    fn footprint(&self, _: &Constants) -> Footprint {
        if self.fields.is_empty() {
            return Footprint { writes: self.values.clone(), ..Footprint::default() };
        }
        Footprint::everything()
    }

    fn can_fail(&self) -> bool {
        self.fail_on_error
    }

    fn describe(&self) -> String {
        let all: Vec<_> = self.fields.iter().chain(&self.values).map(Path::as_str).collect();
        format!("{} {}", self.name(), all.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::Case;

    #[test]
    fn letters_change_one_by_one() {
        let cases = [
            (Case::Lower, "AbÄ-1", "abä-1"),
            (Case::Upper, "straße ä", "STRAßE Ä"),
            (Case::Lower, "ΣΑΣ", "σασ"),
            (Case::Upper, "ﬁ", "ﬁ"),
        ];
        for (case, text, expected) in cases {
            assert_eq!(case.of(text), expected);
        }
        assert!(Case::Lower.fits(b"abc 1") && !Case::Lower.fits(b"aBc"));
        assert!(Case::Upper.fits(b"ABC 1") && !Case::Upper.fits("Ä".as_bytes()));
    }
}
