//! The chain of parsers of an input (`parsers:`): from lines to events.
//!
//! Each line becomes a row of the batch and passes the parsers in their order. One that groups lines
//! (`multiline`, and `container` for partial records) takes rows out of the batch until their group is
//! complete. What belongs to an unfinished group is given back at the end of a turn and read again in the
//! next: the chain keeps no text between turns, so that a cursor before the first line of a group is all
//! the state there is.
//!
//! Promises: the events do not depend on where a turn ends, timeouts apart; every line before the
//! end that [`Run::finish`] returns belongs to an event of the batch, or was dropped and counted,
//! or belongs to a group that was cut and is counted as discarded; streams (stdout, stderr) are
//! never joined.
//!
//! Leaves to the reader: reading far enough, time, and moving cursors.

mod container;
mod group;
mod leaf;
mod matcher;
mod multiline;
mod run;
#[cfg(test)]
mod tests;
mod usual;

pub use container::{Container, Format, Stream};
pub use leaf::Failure;
pub use matcher::Matcher;
pub use multiline::{Match, Multiline, Rule};
pub use run::{Accept, Ending, Finish, Run, character_boundary};

use crate::{auditd, ndjson, syslog};
use group::Group;
use leaf::Leaf;
use regex::bytes::Regex;
use run::{Dropped, Hold, Wait};
use std::time::Duration;

/// Streams that are kept apart: none or an unknown one, stdout, stderr.
const STREAMS: usize = 3;

/// Bytes of the source after which a group whose message is full is finished; what follows of it
/// is discarded as it comes. Below, a group that is cut stays whole across a restart.
const CUT_GROUP_BYTES: u64 = 256 << 10;

/// Bytes of the source without a line of a group after which it is complete: bounds what is read again
/// and again while another stream goes on.
const GAP_BYTES: u64 = 256 << 10;

/// One parser of a chain.
#[derive(Clone, Debug)]
pub enum Parser {
    /// `multiline`.
    Multiline(Multiline),
    /// `include_message`: the message must match one of the patterns.
    IncludeMessage(Vec<Regex>),
    /// `container`.
    Container(Container),
    /// `ndjson`.
    Ndjson {
        /// Its settings.
        settings: ndjson::Settings,
        /// Not `ignore_decoding_error`: lines that cannot be decoded are logged.
        log_errors: bool,
    },
    /// `syslog`.
    Syslog {
        /// Its settings.
        settings: syslog::Settings,
        /// `log_errors`.
        log_errors: bool,
    },
    /// `auditd`.
    Auditd {
        /// Its settings.
        settings: auditd::Settings,
        /// `log_errors`.
        log_errors: bool,
    },
}

impl Parser {
    /// How long a group of it waits for its next line.
    fn timeout(&self) -> Option<Duration> {
        match self {
            Self::Multiline(multiline) => multiline.timeout,
            Self::Container(_) => Some(Container::TIMEOUT),
            Self::IncludeMessage(_)
            | Self::Ndjson { .. }
            | Self::Syslog { .. }
            | Self::Auditd { .. } => None,
        }
    }

    /// Its name, if lines that it cannot read are logged.
    fn logged_as(&self) -> Option<&'static str> {
        match self {
            Self::Multiline(_) | Self::IncludeMessage(_) => None,
            Self::Container(_) => Some("container"),
            Self::Ndjson { log_errors, .. } => log_errors.then_some("ndjson"),
            Self::Syslog { log_errors, .. } => log_errors.then_some("syslog"),
            Self::Auditd { log_errors, .. } => log_errors.then_some("auditd"),
        }
    }
}

/// The parsers of an input, in their order.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    parsers: Box<[Parser]>,
    group_bytes_max: u64,
}

impl Chain {
    /// Bytes of the source that a group never exceeds by more than a line, for messages of the usual bound.
    pub const GROUP_BYTES: u64 = 20 << 20;

    /// A chain of these parsers. A group is cut when it takes more than `group_bytes_max` bytes of the
    /// source (and a line): bounds the reader's buffer.
    pub fn new(parsers: Vec<Parser>, group_bytes_max: u64) -> Self {
        Self { parsers: parsers.into(), group_bytes_max }
    }

    /// The same chain. If its last parser is `ndjson`, that keeps the message beside the fields that it finds
    /// ([`ndjson::Settings::keep_message`]).
    pub fn keeping_message(mut self) -> Self {
        if let Some(Parser::Ndjson { settings, .. }) = self.parsers.last_mut() {
            settings.keep_message = true;
        }
        self
    }

    /// Whether the files are logs of containers.
    pub fn reads_containers(&self) -> bool {
        self.parsers.iter().any(|parser| matches!(parser, Parser::Container(_)))
    }

    /// The parsers.
    pub fn parsers(&self) -> &[Parser] {
        &self.parsers
    }

    /// Whether events may have fields from their lines, of any name.
    pub fn makes_fields(&self) -> bool {
        let groups =
            |parser: &Parser| matches!(parser, Parser::Multiline(_) | Parser::IncludeMessage(_));
        !self.parsers.iter().all(groups)
    }

    /// Whether a [`State`] without memories can serve another source, of any chain: its parsers keep no settings in it.
    pub fn can_lend(&self) -> bool {
        let has_none = |parser: &Parser| {
            matches!(
                parser,
                Parser::Multiline(_) | Parser::IncludeMessage(_) | Parser::Container(_)
            )
        };
        self.parsers.iter().all(has_none)
    }

    /// Whether there is no parser.
    pub fn is_empty(&self) -> bool {
        self.parsers.is_empty()
    }

    /// Bytes of the source beyond which a group is cut.
    pub fn group_bytes_max(&self) -> u64 {
        self.group_bytes_max
    }
}

/// What a chain keeps for one source: memory that is used again, how long groups have been waiting, and
/// whether lines are being discarded that belong to a group that was cut.
#[derive(Debug, Default)]
pub struct State {
    /// For each parser and stream.
    groups: Vec<Group>,
    /// As of the line that is looked at.
    holds: Vec<Hold>,
    /// As of the end of the last turn.
    saved_holds: Vec<Hold>,
    /// Changes of `holds`: the line, its place, the new value.
    changes: Vec<(u64, usize, Hold)>,
    waits: Vec<Wait>,
    dropped: Vec<Dropped>,
    /// Offsets of events whose message was cut.
    cut: Vec<u64>,
    /// Offsets of lines that a parser could not read.
    errors: Vec<u64>,
    failure: Option<Failure>,
    leaves: Vec<Leaf>,
}

impl State {
    /// What was read by a turn that began at `began` was there at its end, `now`: groups that were
    /// seen for the first time wait from then on.
    pub fn end_turn(&mut self, began: Duration, now: Duration) {
        for wait in &mut self.waits {
            if wait.since == began {
                wait.since = now;
            }
        }
    }

    /// Whether anything is remembered that a new state would not know.
    pub fn is_needed(&self) -> bool {
        !self.waits.is_empty() || self.saved_holds.iter().any(|hold| *hold != Hold::No)
    }

    /// The first line of the last turn that a parser could not read, if that parser logs it.
    pub fn take_failure(&mut self) -> Option<Failure> {
        self.failure.take()
    }

    fn begin(&mut self, parsers: &[Parser]) {
        let slots = parsers.len() * STREAMS;
        let fits = self.leaves.len() == parsers.len()
            && parsers.iter().zip(&self.leaves).all(|(parser, leaf)| leaf.fits(parser));
        if !fits {
            self.leaves = parsers.iter().map(Leaf::of).collect();
        }
        for leaf in &mut self.leaves {
            if let Leaf::Container(leaf) = leaf {
                leaf.begin();
            }
        }
        self.errors.clear();
        self.failure = None;
        self.groups.resize_with(slots, Group::default);
        for group in &mut self.groups {
            group.clear();
        }
        self.saved_holds.resize(slots, Hold::No);
        self.holds.clone_from(&self.saved_holds);
        self.changes.clear();
        self.dropped.clear();
        self.cut.clear();
    }
}
