//! Parsers that look at one message at a time, and lines that a parser could not read.

use super::Parser;
use super::container::ContainerLeaf;
use super::run::{Item, Run};
use crate::auditd::Auditd;
use crate::ndjson::Ndjson;
use crate::syslog::{Syslog, append_text};
use skidder_event::{Base, Batch, EventMut};

/// A line that a parser could not read, to be logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The parser.
    pub parser: &'static str,
    /// Offset of the line, or of the first of its event.
    pub offset: u64,
    /// Its error.
    pub error: String,
}

/// The state of a parser from line to line.
#[derive(Debug)]
pub(super) enum Leaf {
    None,
    Container(Box<ContainerLeaf>),
    Ndjson(Box<Ndjson>),
    Syslog(Syslog),
    Auditd(Box<Auditd>),
}

impl Leaf {
    /// Whether it is of the kind of a parser. One with settings is never of another parser of its kind, see
    /// [`Chain::can_lend`](super::Chain::can_lend).
    pub(super) fn fits(&self, parser: &Parser) -> bool {
        match parser {
            Parser::Multiline(_) | Parser::IncludeMessage(_) => matches!(self, Self::None),
            Parser::Container(_) => matches!(self, Self::Container(_)),
            Parser::Ndjson { .. } => matches!(self, Self::Ndjson(_)),
            Parser::Syslog { .. } => matches!(self, Self::Syslog(_)),
            Parser::Auditd { .. } => matches!(self, Self::Auditd(_)),
        }
    }

    pub(super) fn of(parser: &Parser) -> Self {
        match parser {
            Parser::Multiline(_) | Parser::IncludeMessage(_) => Self::None,
            Parser::Container(_) => Self::Container(Box::new(ContainerLeaf::new())),
            Parser::Ndjson { settings, .. } => {
                Self::Ndjson(Box::new(Ndjson::new(settings.clone())))
            }
            Parser::Syslog { settings, .. } => Self::Syslog(Syslog::new(settings.clone())),
            Parser::Auditd { settings, .. } => Self::Auditd(Box::new(Auditd::new(*settings))),
        }
    }
}

impl Run<'_> {
    /// A parser that looks at one message.
    pub(super) fn leaf(&mut self, batch: &mut Batch, at: usize, item: &mut Item) {
        if item.row.text().is_none_or(|text| text.len == 0) {
            return;
        }
        let (leaf, now) = (&mut self.state.leaves[at], self.now);
        // Only the first of a turn is logged: the others need no text.
        let is_logged = self.state.failure.is_none();
        let mut failed = false;
        let mut failure = None;
        edit(batch, &self.base, item, |event| {
            let done = match leaf {
                Leaf::Ndjson(ndjson) => {
                    ndjson.apply(event).map_err(|error| text_if(is_logged, &error))
                }
                Leaf::Syslog(syslog) => {
                    syslog.apply(event, now).map_err(|error| text_if(is_logged, &error))
                }
                Leaf::Auditd(auditd) => {
                    auditd.apply(event).map_err(|error| text_if(is_logged, &error))
                }
                Leaf::None | Leaf::Container(_) => Ok(()),
            };
            if let Err(error) = done {
                failed = true;
                failure = error;
            }
        });
        item.has_fields = true;
        if failed {
            self.fail(at, item.row.offset, failure);
        }
    }

    /// A line that is not what `container` reads: it stays as it is, and says why.
    pub(super) fn note_error(
        &mut self,
        batch: &mut Batch,
        at: usize,
        item: &mut Item,
        error: &str,
    ) {
        let path = &self.error_path;
        edit(batch, &self.base, item, |event| append_text(event, path, error));
        item.has_fields = true;
        self.fail(at, item.row.offset, Some(error.to_owned()));
    }

    fn fail(&mut self, at: usize, offset: u64, error: Option<String>) {
        self.state.errors.push(offset);
        let Some(parser) = self.chain.parsers[at].logged_as() else { return };
        if let Some(error) = error {
            self.state.failure.get_or_insert(Failure { parser, offset, error });
        }
    }

    /// Changes the event of an item.
    pub(super) fn edit(
        &self,
        batch: &mut Batch,
        item: &mut Item,
        change: impl FnOnce(&mut EventMut<'_>),
    ) {
        edit(batch, &self.base, item, change);
    }
}

/// Changes the event of an item: in the batch, as its newest event.
pub(super) fn edit(
    batch: &mut Batch,
    base: &Base,
    item: &mut Item,
    change: impl FnOnce(&mut EventMut<'_>),
) {
    batch.push(item.row);
    let row = batch.len() - 1;
    change(&mut batch.event_mut(row, base));
    item.row = batch.pop().expect("it was pushed above");
}

fn text_if(is_logged: bool, error: &impl std::error::Error) -> Option<String> {
    is_logged.then(|| error.to_string())
}
