//! `kv`: takes a text like `user=ann action=login` apart into fields.
//!
//! The settings and their meaning are those of the ingest processor of Elasticsearch. Filebeat has no such
//! processor; its module `auditd` uses the one of the server.

mod read;
mod split;
#[cfg(test)]
mod tests;

pub(super) use read::KV;

use super::object::Object;
use crate::plan::{Constants, Failure, Footprint, LOG_FLAGS, Outcome, Processor};
use crate::plan::{message_if, rehearse};
use crate::text::{NoText, is_whole, text_of};
use skidder_event::{Cell, EventMut, Path, Text};
use smallvec::SmallVec;
use split::{Class, Splitter};
use std::ops::Range;

/// Levels that the dots of a name make.
const LEVELS_MAX: usize = 64;

/// Pairs of a text. Keys are compared one by one.
const PAIRS_MAX: usize = 1024;

/// Takes texts of pairs apart.
#[derive(Clone, Debug)]
pub(crate) struct Kv {
    field: Path,
    target: Option<Path>,
    field_split: Splitter,
    value_split: Splitter,
    include_keys: Option<Box<[String]>>,
    exclude_keys: Box<[String]>,
    prefix: String,
    trim_key: Option<Class>,
    trim_value: Option<Class>,
    strip_brackets: bool,
    ignore_missing: bool,
    ignore_failure: bool,
}

/// A key with its values, spans of the text.
struct Pair {
    key: Range<usize>,
    values: SmallVec<[Range<usize>; 1]>,
}

type Pairs = SmallVec<[Pair; 16]>;

impl Kv {
    /// The pairs of a text, each key once.
    fn pairs(&self, text: &[u8]) -> Result<Pairs, String> {
        let mut pairs = Pairs::new();
        let mut parts = self.field_split.parts(text);
        while let Some(part) = parts.next()? {
            let Some(between) = self.value_split.find(&text[part.clone()]) else {
                let shown =
                    String::from_utf8_lossy(&text[part.start..part.end.min(part.start + 64)]);
                return Err(format!("`{shown}` does not contain `value_split`"));
            };
            let mut key = part.start..part.start + between.start;
            if let Some(class) = &self.trim_key {
                key = class.trim(text, key);
            }
            let name = &text[key.clone()];
            let is_in = |names: &[String]| names.iter().any(|known| known.as_bytes() == name);
            if self.include_keys.as_deref().is_some_and(|names| !is_in(names))
                || is_in(&self.exclude_keys)
            {
                continue;
            }
            if name.is_empty() {
                return Err("a key is empty".to_owned());
            }
            let mut value = part.start + between.end..part.end;
            if self.strip_brackets {
                value = without_brackets(text, value);
            }
            if let Some(class) = &self.trim_value {
                value = class.trim(text, value);
            }
            match pairs.iter().position(|pair| text[pair.key.clone()] == *name) {
                Some(there) => pairs[there].values.push(value),
                None if pairs.len() >= PAIRS_MAX => {
                    return Err(format!("the text has more than {PAIRS_MAX} keys"));
                }
                None => pairs.push(Pair { key, values: [value].into_iter().collect() }),
            }
        }
        Ok(pairs)
    }

    /// Puts the pairs into the event as one object, which is much cheaper than one by one.
    fn put_object(
        &self,
        event: &mut EventMut<'_>,
        target: &Path,
        text: Text,
        pairs: &Pairs,
    ) -> Result<(), Failure> {
        let mut object = Object::EMPTY;
        let has_dots = self.prefix.contains('.')
            || pairs.iter().any(|pair| event.text(text)[pair.key.clone()].contains(&b'.'));
        for pair in pairs {
            let cell = self.value(event, text, pair, None);
            let key = if self.prefix.is_empty() {
                span(event, text, &pair.key)
            } else {
                let key = [self.prefix.as_bytes(), &event.text(text)[pair.key.clone()]].concat();
                event.store_text(&key)
            };
            let name = event.text(key).to_vec();
            event.note_key(&name);
            if !has_dots {
                object.push_key(event, key, cell);
            } else if !is_path(&name)
                || object.has_path(event, key)
                || !object.set_path(event, key, cell)
            {
                return Err(self.no_place(&name));
            }
        }
        event.put_cell(target, object.cell()).map_err(|_| self.no_place(target.as_str().as_bytes()))
    }

    /// Puts the pairs into the event one by one, beside what is there.
    fn put_each(&self, event: &mut EventMut<'_>, text: Text, pairs: &Pairs) -> Result<(), Failure> {
        event.settle();
        for pair in pairs {
            let name = String::from_utf8_lossy(&event.text(text)[pair.key.clone()]).into_owned();
            let name = match &self.target {
                Some(target) => format!("{target}.{}{name}", self.prefix),
                None => format!("{}{name}", self.prefix),
            };
            if is_deep(name.as_bytes()) {
                return Err(self.no_place(name.as_bytes()));
            }
            let path = Path::parse(&name).map_err(|error| self.failure(format_args!("{error}")))?;
            let there = if path == self.field { None } else { event.copy(&path) };
            let cell = self.value(event, text, pair, there);
            event.put_cell(&path, cell).map_err(|_| self.no_place(name.as_bytes()))?;
        }
        Ok(())
    }

    /// The value of a pair: a text, or a list of what is there already and all texts.
    fn value(
        &self,
        event: &mut EventMut<'_>,
        text: Text,
        pair: &Pair,
        there: Option<Cell>,
    ) -> Cell {
        let mut cells: SmallVec<[Cell; 16]> = match there {
            None => SmallVec::new(),
            Some(list @ Cell::List(_)) => event.list_cells(list),
            Some(one) => [one].into_iter().collect(),
        };
        for value in &pair.values {
            cells.push(Cell::Str(span(event, text, value)));
        }
        match cells[..] {
            [one] => one,
            _ => event.store_list(&cells),
        }
    }

    #[cold]
    fn failure(&self, why: std::fmt::Arguments<'_>) -> Failure {
        let reason = message_if(!self.ignore_failure, format_args!("kv: {why}"));
        Failure::new(reason).flag("kv_parsing_error").ignored(self.ignore_failure)
    }

    #[cold]
    fn no_place(&self, name: &[u8]) -> Failure {
        let name = String::from_utf8_lossy(&name[..name.len().min(64)]);
        self.failure(format_args!(
            "`{name}` cannot be set: the text names it twice, a part of it is no object, or it has more than \
             {LEVELS_MAX} levels"
        ))
    }
}

/// A part of the text as a text of its own.
fn span(event: &mut EventMut<'_>, text: Text, part: &Range<usize>) -> Text {
    let bytes = event.text(text);
    if is_whole(bytes, part) {
        return Text { start: text.start + part.start as u32, len: part.len() as u32 };
    }
    let half: SmallVec<[u8; 128]> = bytes[part.clone()].into();
    event.store_text(&half)
}

/// Whether all parts of a name are there, and not too many.
fn is_path(name: &[u8]) -> bool {
    name.split(|byte| *byte == b'.').all(|part| !part.is_empty()) && !is_deep(name)
}

/// Whether a name has too many levels: each is one more call when the event is written.
fn is_deep(name: &[u8]) -> bool {
    name.split(|byte| *byte == b'.').nth(LEVELS_MAX).is_some()
}

/// Without a bracket or quote at each end.
fn without_brackets(text: &[u8], mut value: Range<usize>) -> Range<usize> {
    if text[value.clone()].first().is_some_and(|byte| b"([<\"'".contains(byte)) {
        value.start += 1;
    }
    if text[value.clone()].last().is_some_and(|byte| b")]>\"'".contains(byte)) {
        value.end -= 1;
    }
    value
}

impl Processor for Kv {
    fn name(&self) -> &'static str {
        "kv"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        let text = match text_of(event, &self.field) {
            Ok(text) => text,
            Err(NoText::Missing) if self.ignore_missing => return Ok(Outcome::Done),
            Err(NoText::Missing) => {
                return Err(self.failure(format_args!("the field `{}` is missing", self.field)));
            }
            Err(NoText::OtherKind) => {
                return Err(self.failure(format_args!("the field `{}` is not a text", self.field)));
            }
        };
        let pairs = self.pairs(event.text(text));
        let pairs = pairs.map_err(|why| self.failure(format_args!("{why}")))?;
        match &self.target {
            _ if pairs.is_empty() => {}
            Some(target) if *target == self.field || !event.as_ref().has(target) => {
                self.put_object(event, target, text, &pairs)?;
            }
            _ => self.put_each(event, text, &pairs)?,
        }
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let Some(target) = &self.target else { return Footprint::everything() };
        let (reads, writes) = (vec![self.field.clone()], vec![target.clone(), LOG_FLAGS.clone()]);
        Footprint { reads, writes, open: true, ..Footprint::default() }
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        match &self.target {
            Some(target) => rehearse(self, constants, &[target]),
            None => false,
        }
    }

    fn describe(&self) -> String {
        format!("kv {}", self.field)
    }
}
