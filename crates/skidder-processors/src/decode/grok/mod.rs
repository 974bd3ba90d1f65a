//! `grok`: finds fields in a text by named patterns.
//!
//! A pattern is expanded to one regular expression (`expand.rs`) and compiled (`engine.rs`) when the
//! configuration is read. The values are spans of the text in which they were found, as those of `dissect`.
//! What the names mean follows the processor of Elasticsearch: patterns are searched for anywhere in
//! the text, the first of the list that is found wins, and a field that several parts of a pattern name
//! becomes a list if more than one of them took part.

mod engine;
mod expand;
mod library;
mod name;
pub(super) mod read;
mod steps;
#[cfg(test)]
mod tests;

use crate::plan::{
    Constants, Failure, Footprint, LOG_FLAGS, Outcome, Processor, message_if, rehearse,
};
use crate::text::{NoText, is_whole, text_of};
use engine::{Engine, Slots, group};
use name::Type;
use skidder_event::{Cell, EventMut, Path, Text};
use smallvec::SmallVec;

/// Finds fields by patterns.
#[derive(Clone, Debug)]
pub struct Grok {
    field: Path,
    patterns: Box<[Pattern]>,
    overwrite_keys: bool,
    ignore_missing: bool,
    ignore_failure: bool,
    tags: Box<[String]>,
    tags_path: Path,
}

/// A compiled pattern and its fields.
#[derive(Clone, Debug)]
struct Pattern {
    engine: Engine,
    fields: Box<[Field]>,
    /// Where the fields go, in the same order.
    paths: Box<[Option<Path>]>,
    /// Whether each field is one part of the text, and none replaces the text.
    is_plain: bool,
}

/// A field of a pattern.
#[derive(Clone, Debug)]
struct Field {
    path: Path,
    /// The groups with its values.
    groups: SmallVec<[(usize, Type); 1]>,
}

impl Grok {
    /// Puts parts of the text, and the numbers that they are, right into the event, if nothing is where they go.
    fn put_spans(event: &mut EventMut<'_>, text: Text, pattern: &Pattern, slots: &Slots) -> bool {
        if !pattern.is_plain {
            return false;
        }
        let put = event.put_new(&pattern.paths, text, |text, fields| {
            for field in &pattern.fields {
                let (number, kind) = field.groups[0];
                let Some(span) = group(slots, number) else {
                    fields.skip();
                    continue;
                };
                if kind != Type::Text {
                    fields.put_cell(kind.convert(&text[span]).ok_or(())?.into());
                } else if is_whole(text, &span) {
                    fields.put(span);
                } else {
                    return Err(());
                }
            }
            Ok(())
        });
        put == Ok(true)
    }

    /// Puts the fields into the event.
    fn put(
        &self,
        event: &mut EventMut<'_>,
        text: Text,
        pattern: &Pattern,
        slots: &Slots,
    ) -> Result<(), Failure> {
        let mut cells: SmallVec<[(&Path, Cell); 16]> = SmallVec::new();
        for field in &pattern.fields {
            if let Some(cell) = self.value(event, text, field, slots)? {
                cells.push((&field.path, cell));
            }
        }
        if !self.overwrite_keys {
            let is_taken = |path: &Path| *path != self.field && event.as_ref().has(path);
            if let Some((path, _)) = cells.iter().find(|(path, _)| is_taken(path)) {
                let why = format_args!("the field `{path}` exists already");
                return Err(self.failure(why));
            }
        }
        for (path, cell) in cells {
            if event.put_cell(path, cell).is_err() {
                let why = format_args!("something around `{path}` is not an object");
                return Err(self.failure(why));
            }
        }
        Ok(())
    }

    /// The value of a field: one, or a list of several.
    fn value(
        &self,
        event: &mut EventMut<'_>,
        text: Text,
        field: &Field,
        slots: &Slots,
    ) -> Result<Option<Cell>, Failure> {
        let mut values: SmallVec<[Cell; 4]> = SmallVec::new();
        for (number, kind) in &field.groups {
            let Some(span) = group(slots, *number) else { continue };
            let bytes = event.text(text);
            let whole = &bytes[span.clone()];
            values.push(match kind.convert(whole) {
                Some(typed) => typed.into(),
                None if *kind != Type::Text => {
                    let (word, path) = (kind.word(), &field.path);
                    let shown = String::from_utf8_lossy(&whole[..whole.len().min(SHOWN_BYTES_MAX)]);
                    return Err(
                        self.failure(format_args!("`{path}`: `{shown}` is not of type {word}"))
                    );
                }
                None if is_whole(bytes, &span) => {
                    let start = text.start + span.start as u32;
                    Cell::Str(Text { start, len: span.len() as u32 })
                }
                None => {
                    let half: SmallVec<[u8; 128]> = whole.into();
                    Cell::Str(event.store_text(&half))
                }
            });
        }
        Ok(match values[..] {
            [] => None,
            [one] => Some(one),
            _ => Some(event.store_list(&values)),
        })
    }

    #[cold]
    fn failure(&self, why: std::fmt::Arguments<'_>) -> Failure {
        let reason = message_if(!self.ignore_failure, format_args!("grok: {why}"));
        let flagged = Failure::new(reason).flag("grok_parsing_error");
        let tagged = self
            .tags
            .iter()
            .fold(flagged, |failure, tag| failure.append(self.tags_path.clone(), tag));
        tagged.ignored(self.ignore_failure)
    }

    fn fields(&self) -> impl Iterator<Item = &Path> {
        self.patterns.iter().flat_map(|pattern| &pattern.fields).map(|field| &field.path)
    }
}

/// Bytes of a value that a message shows.
const SHOWN_BYTES_MAX: usize = 64;

impl Processor for Grok {
    fn name(&self) -> &'static str {
        "grok"
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
        let mut slots = Slots::new();
        let bytes = event.text(text);
        let found = self.patterns.iter().find(|pattern| pattern.engine.find(bytes, &mut slots));
        let Some(pattern) = found else {
            return Err(self.failure(format_args!("no pattern matches the field `{}`", self.field)));
        };
        if !Self::put_spans(event, text, pattern, &slots) {
            self.put(event, text, pattern, &slots)?;
        }
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let mut writes: Vec<Path> = self.fields().cloned().collect();
        writes.push(LOG_FLAGS.clone());
        if !self.tags.is_empty() {
            writes.push(self.tags_path.clone());
        }
        Footprint { reads: vec![self.field.clone()], writes, ..Footprint::default() }
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        let writes: Vec<&Path> = self.fields().collect();
        rehearse(self, constants, &writes)
    }

    fn describe(&self) -> String {
        let count = self.patterns.len();
        format!("grok {} by {count} pattern{}", self.field, if count == 1 { "" } else { "s" })
    }
}
