//! `dissect`: cuts a text at delimiters into fields.
//!
//! The grammar is in [`skidder_parse::dissect`]. A value is a span of the text it was found in;
//! only values that are put together from several, and the names of fields, are written into the
//! batch. Where Filebeat leaves out a value whose place is taken by a value that is not an object,
//! this is a failure.

pub(super) mod read;
mod tree;

use crate::go_number;
use crate::plan::{Constants, Failure, Footprint, LOG_FLAGS, Outcome, Processor, message_if};
use crate::text::{NoText, is_whole, text_of};
use skidder_event::{Cell, EventMut, Path, Text, Value};
use skidder_parse::dissect::{DissectError, Name, Output, Tokenizer, Trimmer, Type};
use smallvec::SmallVec;
use std::net::IpAddr;
use std::ops::Range;
use tree::Tree;

type Spans = SmallVec<[Range<usize>; 16]>;
type Cells = SmallVec<[Cell; 16]>;
type Named = SmallVec<[Path; 2]>;

/// Cuts a text into fields.
#[derive(Clone, Debug)]
pub struct Dissect {
    tokenizer: Tokenizer,
    field: Path,
    /// Prefix of the names of fields; may be empty.
    prefix: String,
    /// Where each field of the tokenizer goes; `None` if the text names it.
    paths: Box<[Option<Path>]>,
    /// If the values are spans as they stand, in the order of the keys, and all their fields are
    /// known: which keys are kept.
    kept: Option<Box<[bool]>>,
    /// The fields as one object, if their target is empty.
    tree: Option<Tree>,
    trimmer: Option<Trimmer>,
    overwrite_keys: bool,
    ignore_failure: bool,
}

/// A value that was found.
enum Found {
    Span(Range<usize>),
    Copy(SmallVec<[u8; 128]>),
    Int(i64),
    Float(f64),
    Bool(bool),
}

impl Dissect {
    /// The spans of all keys.
    fn split(&self, text: &[u8]) -> Result<Spans, Failure> {
        let mut spans = Spans::new();
        let typed = self.tokenizer.is_typed();
        let trimmer = self.trimmer.as_ref().filter(|_| !typed);
        let done = self.tokenizer.split(text, |span| {
            spans.push(match trimmer {
                Some(trimmer) => trimmer.trim(text, span),
                None => span,
            });
        });
        done.map_err(|error| self.unfit(error))?;
        Ok(spans)
    }

    #[cold]
    fn unfit(&self, error: DissectError) -> Failure {
        Failure::unnoted(message_if(!self.ignore_failure, format_args!("{error}")))
            .flag("dissect_parsing_error")
            .ignored(self.ignore_failure)
    }

    /// Puts the spans of the keys that are kept right into the event, if nothing is where they go.
    fn put_spans(
        &self,
        event: &mut EventMut<'_>,
        text: Text,
        kept: &[bool],
    ) -> Result<bool, Failure> {
        let mut kept = kept.iter();
        let put = event.put_new(&self.paths, text, |text, fields| {
            self.tokenizer.split(text, |span| {
                if kept.next() == Some(&true) {
                    fields.put(span);
                }
            })
        });
        put.map_err(|error| self.unfit(error))
    }

    /// The values of a text, and where those go that the text names.
    fn assemble(&self, event: &mut EventMut<'_>, text: Text) -> Result<(Cells, Named), Failure> {
        let bytes = event.text(text);
        let spans = self.split(bytes)?;
        let named = self.named(bytes, &spans)?;
        let mut cells = Cells::new();
        for output in self.tokenizer.outputs() {
            let cell = match self.find(output, event.text(text), &spans) {
                Found::Span(span) => {
                    let start = text.start + span.start as u32;
                    Cell::Str(Text { start, len: span.len() as u32 })
                }
                Found::Copy(copy) => Cell::Str(event.store_text(&copy)),
                Found::Int(number) => Cell::Int(number),
                Found::Float(number) => Cell::Float(number),
                Found::Bool(truth) => Cell::Bool(truth),
            };
            cells.push(cell);
        }
        Ok((cells, named))
    }

    /// The value of a field.
    fn find(&self, output: &Output, text: &[u8], spans: &[Range<usize>]) -> Found {
        let first = spans[output.parts[0].key].clone();
        if output.parts.len() == 1 && output.kind.is_none() {
            if !is_whole(text, &first) {
                return Found::Copy(text[first].into());
            }
            return Found::Span(first);
        }
        let mut copy = SmallVec::new();
        if output.parts.len() > 1 {
            for part in &output.parts {
                copy.extend_from_slice(&part.joint);
                copy.extend_from_slice(&text[spans[part.key].clone()]);
            }
            return Found::Copy(copy);
        }
        convert(output.kind.unwrap_or(Type::String), text, first)
    }

    /// Where the fields go that the text names.
    fn named(&self, text: &[u8], spans: &[Range<usize>]) -> Result<Named, Failure> {
        let mut paths = Named::new();
        if self.paths.iter().all(Option::is_some) {
            return Ok(paths);
        }
        for output in self.tokenizer.outputs() {
            let Name::Of(key) = output.name else { continue };
            let name = String::from_utf8_lossy(&text[spans[key].clone()]);
            let path = Path::parse(&format!("{}{name}", self.prefix));
            paths.push(path.map_err(|error| Failure::unnoted(error.to_string()))?);
        }
        Ok(paths)
    }

    /// Puts the fields into the event.
    fn put(&self, event: &mut EventMut<'_>, cells: &[Cell], named: &[Path]) -> Result<(), Failure> {
        if !named.is_empty() {
            event.settle();
        }
        if !self.overwrite_keys
            && let Some(there) = named.iter().find(|path| event.as_ref().has(path))
        {
            return Err(taken(there));
        }
        if let Some(tree) = &self.tree
            && !event.has_slots()
            && !event.as_ref().has_dots()
            && tree.is_free(event)
        {
            tree.put(event, cells)?;
        } else {
            let fixed = self.paths.iter().flatten();
            if !self.overwrite_keys
                && let Some(there) = fixed.clone().find(|path| event.as_ref().has(path))
            {
                return Err(taken(there));
            }
            for (path, cell) in self.paths.iter().zip(cells) {
                let Some(path) = path else { continue };
                event.put_cell(path, *cell).map_err(|_| taken(path))?;
            }
        }
        let values = self.paths.iter().zip(cells).filter(|(path, _)| path.is_none());
        for (path, (_, cell)) in named.iter().zip(values) {
            event.put_cell(path, *cell).map_err(|_| taken(path))?;
        }
        Ok(())
    }
}

fn taken(path: &Path) -> Failure {
    Failure::unnoted(format!("cannot override existing key with `{path}`"))
}

/// A value converted to its type; unchanged if that fails.
fn convert(kind: Type, text: &[u8], span: Range<usize>) -> Found {
    let whole = &text[span.clone()];
    let value = whole.strip_suffix(b" ").map_or(whole, |_| {
        let len = whole.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
        &whole[..len]
    });
    let kept = span.start..span.start + value.len();
    let address = || std::str::from_utf8(value).is_ok_and(|text| text.parse::<IpAddr>().is_ok());
    let converted = match kind {
        Type::Integer => go_number::integer(value, 32).map(Found::Int),
        Type::Long => go_number::integer(value, 64).map(Found::Int),
        Type::Float => go_number::float(value).map(Found::Float),
        Type::Double => go_number::double(value).map(Found::Float),
        Type::Boolean => go_number::truth(value).map(Found::Bool),
        Type::String => Some(Found::Span(kept)),
        Type::Ip => address().then_some(Found::Span(kept)),
    };
    match converted.unwrap_or(Found::Span(span)) {
        Found::Span(span) if !is_whole(text, &span) => Found::Copy(text[span].into()),
        found => found,
    }
}

impl Processor for Dissect {
    fn name(&self) -> &'static str {
        "dissect"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        let text = text_of(event, &self.field).map_err(|error| match error {
            NoText::Missing => Failure::unnoted(format!("key not found: `{}`", self.field)),
            NoText::OtherKind => {
                Failure::unnoted(format!("field is not a string, field: `{}`", self.field))
            }
        })?;
        if let Some(kept) = &self.kept
            && self.put_spans(event, text, kept)?
        {
            return Ok(Outcome::Done);
        }
        let (cells, named) = self.assemble(event, text)?;
        self.put(event, &cells, &named)?;
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let reads = vec![self.field.clone()];
        let mut writes: Vec<Path> = self.paths.iter().flatten().cloned().collect();
        writes.push(LOG_FLAGS.clone());
        if self.paths.iter().all(Option::is_some) {
            return Footprint { reads, writes, ..Footprint::default() };
        }
        // A text that names fields can name any below the prefix.
        match Path::parse(self.prefix.trim_end_matches('.')) {
            Ok(target) => {
                writes.push(target);
                Footprint { reads, writes, open: true, ..Footprint::default() }
            }
            Err(_) => Footprint::everything(),
        }
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        let Some(Value::Str(text)) = constants.get(&self.field) else { return false };
        let text = text.clone();
        let text = text.as_bytes();
        let Ok(spans) = self.split(text) else { return false };
        let Ok(named) = self.named(text, &spans) else { return false };
        let mut named = named.into_iter();
        let mut after = constants.clone();
        for (output, path) in self.tokenizer.outputs().iter().zip(&self.paths) {
            let Some(path) = path.clone().or_else(|| named.next()) else { return false };
            let value = match self.find(output, text, &spans) {
                Found::Span(span) => Value::from(&*String::from_utf8_lossy(&text[span])),
                Found::Copy(copy) => Value::from(&*String::from_utf8_lossy(&copy)),
                Found::Int(number) => Value::Int(number),
                Found::Float(number) => Value::Float(number),
                Found::Bool(truth) => Value::Bool(truth),
            };
            let there = constants.get(&path).is_some() && !self.overwrite_keys;
            if there || !after.set(&path, value) {
                return false;
            }
        }
        *constants = after;
        true
    }

    fn describe(&self) -> String {
        format!("dissect {} by `{}`", self.field, self.tokenizer.source())
    }
}
