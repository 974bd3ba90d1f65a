//! Tokenizers of `dissect`: text between delimiters, cut into spans without a copy.
//!
//! The grammar is that of Filebeat 9.5 (libbeat `processors/dissect`): delimiters and `%{…}` in
//! turn. What stands before the first key must be what the text begins with; of every other
//! delimiter the first occurrence behind the one before it counts; what is behind the last key's
//! delimiter is of no interest. Inside `%{…}` stand, in this order: a prefix (`?` or `*` = not
//! kept, but may name another; `&` = kept under the name that such a key found; `+` = appended to
//! the key of the same name; nothing at all = skipped), the name, `/n` (order of appending), `#n`
//! (exactly this many bytes), `->` (the delimiter after it may be repeated), `|type`.
//!
//! Unlike Filebeat, `->` also works behind keys that are not kept and as `%{->}`; a name that comes
//! behind the key it names is found as well; a first key of fixed length is not taken for the last
//! one when text follows the last.

mod find;
mod key;
mod trim;

pub use key::{TokenizerError, Type};
pub use trim::Trimmer;

use find::{Firsts, Needle, Places};
use key::{Key, Prefix};
use std::ops::Range;

/// A compiled tokenizer.
#[derive(Clone, Debug)]
pub struct Tokenizer {
    source: Box<str>,
    begin: Box<[u8]>,
    steps: Box<[Step]>,
    firsts: Firsts,
    outputs: Box<[Output]>,
    idle_types: Box<[String]>,
    cuts_characters: bool,
}

/// A key and the delimiter behind it.
#[derive(Clone, Debug)]
struct Step {
    /// Bytes; 0 = up to the delimiter.
    length: usize,
    /// The delimiter may be repeated.
    greedy: bool,
    /// Neither of these.
    is_usual: bool,
    delimiter: Delimiter,
}

/// What is behind a key.
#[derive(Clone, Debug)]
enum Delimiter {
    Text(Needle),
    /// Another key.
    Empty,
    /// Nothing behind the last key.
    End,
}

/// A field that a tokenizer gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Its name.
    pub name: Name,
    /// What it is put together from; never empty.
    pub parts: Box<[Part]>,
    /// The type that it is converted to; unchanged if that fails.
    pub kind: Option<Type>,
}

/// The name of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// Always this one.
    Fixed(Box<str>),
    /// What this key found.
    Of(usize),
}

/// A key that a field is put together from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which of the tokenizer's keys.
    pub key: usize,
    /// What comes between it and the part before; nothing before the first.
    pub joint: Box<[u8]>,
}

/// Why a text does not fit a tokenizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DissectError {
    /// There is not a text.
    #[error("empty string provided")]
    Empty,
    /// It begins with something else.
    #[error("could not find beginning delimiter (offset: 0)")]
    Begin,
    /// The delimiter behind a key is missing.
    #[error("could not find the delimiter behind key {key} (offset: {offset})")]
    Delimiter {
        /// Which key, from 1.
        key: usize,
        /// From where on it was looked for, in bytes.
        offset: usize,
    },
    /// There are not as many bytes as a key takes.
    #[error("key {key} of fixed length does not fit into the rest (offset: {offset})")]
    Length {
        /// Which key, from 1.
        key: usize,
        /// Where it begins, in bytes.
        offset: usize,
    },
}

impl Delimiter {
    fn new(text: Option<&str>, firsts: &mut Firsts) -> Self {
        match text {
            None => Self::End,
            Some("") => Self::Empty,
            Some(text) => Self::Text(Needle::new(text.as_bytes(), firsts)),
        }
    }
}

/// Where the last of several occurrences begins that follow each other from `at` on, each a byte behind
/// the one before it.
#[cold]
fn last_repeat(needle: &[u8], text: &[u8], mut at: usize) -> usize {
    while text.get(at + 1..).is_some_and(|rest| rest.starts_with(needle)) {
        at += 1;
    }
    at
}

impl Tokenizer {
    /// Compiles a tokenizer.
    ///
    /// # Errors
    /// The error, in words for the user.
    pub fn new(source: &str) -> Result<Self, TokenizerError> {
        let (begin, keys) = key::read(source)?;
        let mut steps = Vec::with_capacity(keys.len());
        let mut firsts = Firsts::default();
        for key in &keys {
            if key.greedy && key.delimiter.as_deref() == Some("") {
                return Err(TokenizerError::NothingToRepeat(key.written.clone()));
            }
            let delimiter = Delimiter::new(key.delimiter.as_deref(), &mut firsts);
            let (length, greedy) = (key.length, key.greedy);
            let is_usual = length == 0 && !greedy;
            steps.push(Step { length, greedy, is_usual, delimiter });
        }
        let outputs = outputs(&keys, begin)?;
        let cuts_characters = steps.iter().any(|step| step.length > 0);
        let begin = begin.as_bytes().into();
        let idle = keys.into_iter().filter(|key| key.idle_type).map(|key| key.written);
        let idle_types = idle.collect();
        let (source, steps) = (source.into(), steps.into());
        Ok(Self { source, begin, steps, firsts, outputs, idle_types, cuts_characters })
    }

    /// As it was written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The fields it extracts, in the order in which to set them.
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// Number of keys, and of the spans that [`Tokenizer::split`] finds.
    pub fn keys(&self) -> usize {
        self.steps.len()
    }

    /// Whether a key has a type.
    pub fn is_typed(&self) -> bool {
        self.outputs.iter().any(|output| output.kind.is_some())
    }

    /// The keys that have a type which means nothing: those that are not kept, or appended.
    pub fn idle_types(&self) -> impl Iterator<Item = &str> {
        self.idle_types.iter().map(String::as_str)
    }

    /// Whether a key has a fixed length, so that a span may begin or end within a character.
    pub fn cuts_characters(&self) -> bool {
        self.cuts_characters
    }

    /// Cuts a text: calls `found` with the span of each key in turn.
    ///
    /// # Errors
    /// If the text does not fit; some spans may have been passed on before.
    #[inline]
    pub fn split(
        &self,
        text: &[u8],
        mut found: impl FnMut(Range<usize>),
    ) -> Result<(), DissectError> {
        if text.is_empty() {
            return Err(DissectError::Empty);
        }
        // To compare with nothing costs hundreds of cycles where the C library does it by a masked
        // load from nowhere.
        if !self.begin.is_empty() && !text.starts_with(&self.begin) {
            return Err(DissectError::Begin);
        }
        let mut at = self.begin.len();
        let mut places = Places::new(text, &self.firsts);
        for (place, step) in self.steps.iter().enumerate() {
            let (key, start) = (place + 1, at);
            if let Delimiter::Text(needle) = &step.delimiter
                && step.is_usual
            {
                let Some(end) = places.find(needle, start) else {
                    return Err(DissectError::Delimiter { key, offset: start });
                };
                found(start..end);
                at = end + needle.len();
                continue;
            }
            let end = match &step.delimiter {
                Delimiter::End => {
                    if step.length > 0 && start + step.length != text.len() {
                        return Err(DissectError::Length { key, offset: start });
                    }
                    found(start..text.len());
                    break;
                }
                _ if step.length > 0 => start + step.length,
                Delimiter::Empty => start,
                Delimiter::Text(needle) => match places.find(needle, start) {
                    Some(end) => end,
                    None => return Err(DissectError::Delimiter { key, offset: start }),
                },
            };
            at = end;
            if let Delimiter::Text(needle) = &step.delimiter {
                if step.greedy {
                    at = last_repeat(needle.text(), text, end);
                }
                at += needle.len();
            }
            if at > text.len() {
                return Err(DissectError::Length { key, offset: start });
            }
            found(start..end);
        }
        Ok(())
    }
}

/// The fields that keys give: those that are kept, in the order of their `/n`.
fn outputs(keys: &[Key], begin: &str) -> Result<Box<[Output]>, TokenizerError> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by_key(|&key| keys[key].order);
    let names = |key: &Key| matches!(key.prefix, Prefix::Reference);
    let mut outputs: Vec<Output> = Vec::new();
    for (place, &at) in order.iter().enumerate() {
        let key = &keys[at];
        let part = Part { key: at, joint: Box::default() };
        let named =
            |output: &Output| matches!(&output.name, Name::Fixed(name) if *name == key.name);
        let there = outputs.iter().position(named);
        let name = match key.prefix {
            Prefix::Skip | Prefix::Reference => continue,
            Prefix::Indirect => {
                let same = |&&other: &&usize| names(&keys[other]) && keys[other].name == key.name;
                let before = order[..place].iter().rfind(same);
                let Some(&reference) = before.or_else(|| order[place..].iter().find(same)) else {
                    return Err(TokenizerError::NoReference(key.name.to_string()));
                };
                Name::Of(reference)
            }
            Prefix::Append if let Some(there) = there => {
                let before =
                    if at == 0 { begin } else { keys[at - 1].delimiter.as_deref().unwrap_or("") };
                let joint = if before.is_empty() { " " } else { before };
                let mut parts = outputs[there].parts.to_vec();
                parts.push(Part { joint: joint.as_bytes().into(), ..part });
                outputs[there].parts = parts.into();
                continue;
            }
            Prefix::Append | Prefix::None => {
                // A key that is there twice counts the second time.
                if let Some(there) = there {
                    outputs.remove(there);
                }
                Name::Fixed(key.name.clone())
            }
        };
        outputs.push(Output { name, parts: [part].into(), kind: key.kind });
    }
    // What has the name of a key that is not kept is not kept either.
    outputs.retain(|output| match &output.name {
        Name::Fixed(name) => !keys.iter().any(|key| names(key) && key.name == *name),
        Name::Of(_) => true,
    });
    Ok(outputs.into())
}

#[cfg(test)]
mod tests;
