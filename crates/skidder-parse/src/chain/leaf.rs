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

#[cfg(test)]
mod tests {
    use super::super::tests::{Event, Source, all, chain, container, pattern, regex};
    use super::super::{Chain, Ending, Format, Match, Parser, State, Stream};
    use super::Leaf;
    use crate::{auditd, ndjson, syslog};
    use jiff::tz::TimeZone;

    fn groups() -> [Parser; 2] {
        let multiline = Parser::Multiline(pattern("^ ", false, Match::After));
        [multiline, Parser::IncludeMessage(vec![regex("a")])]
    }

    fn others() -> [Parser; 4] {
        let syslog = syslog::Settings::local(TimeZone::UTC);
        [
            container(None, Format::Auto),
            Parser::Ndjson { settings: ndjson::Settings::default(), log_errors: false },
            Parser::Syslog { settings: syslog, log_errors: false },
            Parser::Auditd { settings: auditd::Settings::default(), log_errors: false },
        ]
    }

    #[test]
    fn a_leaf_fits_parsers_of_its_kind_and_no_others() {
        for (at, parser) in others().iter().enumerate() {
            let leaf = Leaf::of(parser);
            for (of, other) in others().iter().enumerate() {
                assert_eq!(leaf.fits(other), at == of, "{parser:?} and {other:?}");
            }
            for group in &groups() {
                assert!(!leaf.fits(group), "{parser:?} and {group:?}");
                assert!(!Leaf::of(group).fits(parser), "{group:?} and {parser:?}");
            }
        }
        // Those that only group lines have none.
        let [multiline, include] = groups();
        assert!(Leaf::of(&multiline).fits(&include) && Leaf::of(&include).fits(&multiline));
    }

    #[test]
    fn a_state_is_lent_unless_a_parser_keeps_settings_in_it() {
        assert!(Chain::default().can_lend());
        assert!(chain(groups()).can_lend());
        let [container, keepers @ ..] = others();
        assert!(chain([container.clone()]).can_lend());
        for keeper in keepers {
            assert!(!chain([keeper.clone()]).can_lend(), "{keeper:?}");
            assert!(!chain([container.clone(), keeper.clone()]).can_lend(), "{keeper:?}");
        }
    }

    /// The events of a text in one turn, with this state, which comes back.
    fn with_state(chain: &Chain, text: &str, state: State) -> (Vec<Event>, State) {
        let mut source = Source::new(chain, text.as_bytes());
        source.state = state;
        source.turn(text.len(), Ending::Last, usize::MAX);
        (source.events, source.state)
    }

    #[test]
    fn a_lent_state_serves_any_chain_as_a_new_one_does() {
        let docker = "{\"log\":\"a\\n\",\"stream\":\"stdout\",\"time\":\"2026-01-02T03:04:05Z\"}\n\
                      {\"log\":\"b\\n\",\"stream\":\"stderr\",\"time\":\"2026-01-02T03:04:06Z\"}\n";
        let cri = "2026-01-02T03:04:05Z stdout P a\n2026-01-02T03:04:06Z stdout F b\n\
                   2026-01-02T03:04:07Z stderr F c\n";
        let [multiline, include] = groups();
        let cases = [
            (chain([container(None, Format::Auto)]), docker),
            (chain([container(Some(Stream::Stderr), Format::Cri)]), cri),
            (chain([container(None, Format::Auto), multiline.clone()]), cri),
            (chain([multiline, container(Some(Stream::Stdout), Format::Docker)]), docker),
            (chain([include]), "a\nb\nba\n"),
            (Chain::default(), "a\nb\n"),
        ];
        for (lender, before) in &cases {
            for (chain, text) in &cases {
                let (events, state) = with_state(lender, before, State::default());
                assert!(!events.is_empty() && !state.is_needed(), "{lender:?}");
                let (lent, _) = with_state(chain, text, state);
                assert_eq!(lent, all(chain, text.as_bytes()), "{lender:?}, then {chain:?}");
            }
        }
    }
}
