//! The command line of `skidder deadletters`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `skidder deadletters …`.
#[derive(Debug, Subcommand)]
pub(crate) enum DeadLettersCommand {
    /// Counts them by status and reason, newest first; works beside a running skidder
    List {
        #[command(flatten)]
        which: WhichLetters,
        /// One row a letter instead of one a reason
        #[arg(long)]
        each: bool,
        /// With `--each`: so many, the newest
        #[arg(long, value_name = "N", default_value_t = 50, requires = "each")]
        limit: usize,
        /// One JSON object instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Shows all of one letter; works beside a running skidder
    Show {
        /// Its number as `list` says it, or the `_id` under which it was sent
        #[arg(value_name = "N|ID")]
        wanted: String,
        /// The output whose letters are meant; must be said if there are several
        #[arg(long, value_name = "ID")]
        output: Option<String>,
        /// The line as it stands in the file
        #[arg(long)]
        json: bool,
    },
    /// Sends letters again through the configured output; what is delivered goes from the file
    Redrive {
        #[command(flatten)]
        which: WhichLetters,
        /// Only says how many would be sent
        #[arg(long)]
        dry_run: bool,
    },
    /// Throws letters away
    Drop {
        #[command(flatten)]
        which: WhichLetters,
        /// Without any other choice: all of them
        #[arg(long)]
        all: bool,
        /// Only says how many would be thrown away
        #[arg(long)]
        dry_run: bool,
    },
}

/// Which letters are meant: those for which all that is said holds.
#[derive(Args, Clone, Debug)]
pub(crate) struct WhichLetters {
    /// Of this output, if there are several; by default of all
    #[arg(long, value_name = "ID")]
    pub(crate) output: Option<String>,
    /// With this status of the server; 0 if it was not asked
    #[arg(long, value_name = "N")]
    pub(crate) status: Option<u16>,
    /// With this text in their reason
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// From this file, or from below this directory
    #[arg(long, value_name = "PATH")]
    pub(crate) source: Option<PathBuf>,
    /// Refused at this time or later, such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<jiff::Timestamp>,
    /// Refused before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<jiff::Timestamp>,
}

impl WhichLetters {
    /// Whether anything but the output is said.
    pub(crate) fn chooses(&self) -> bool {
        self.status.is_some()
            || self.reason.is_some()
            || self.source.is_some()
            || self.since.is_some()
            || self.until.is_some()
    }
}
