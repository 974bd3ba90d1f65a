//! How a run with `--once`, or `ship`, ends: with 0 only if everything was read and everything was accepted.

use super::output::{RunningInput, RunningOutput};
use crate::cli::FailOn;
use crate::plain::{plain, shown};
use crate::terminal::eprint;
use skidder_event::DropReason;
use skidder_input_file::AskError;
use skidder_observe::grouped;
use skidder_pipeline::Ledger;
use skidder_read::FileQuery;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Files per query to the scanner.
const FILES_AT_ONCE: usize = 5000;

/// How long the scanner may take to answer a query.
const ANSWER_WAIT: Duration = Duration::from_secs(30);

/// Maximum files listed at the end; of more only the number.
const FILES_NAMED: usize = 20;

impl FailOn {
    /// The exit code.
    fn code(self) -> u8 {
        match self {
            Self::Unread => 4,
            Self::Refused => 5,
            Self::Left => 8,
            Self::Nothing => 7,
            Self::Never => 0,
        }
    }
}

/// The state of the files when everything readable was read, for one output or several.
#[derive(Debug, Default)]
pub(crate) struct Files {
    /// There is an input that reads files.
    expected: bool,
    found: usize,
    /// Everything was read before a request to stop.
    looked: bool,
    /// Those that were not read to their end, and why.
    unread: BTreeMap<PathBuf, String>,
    /// The scanner gave no answer.
    unknown: bool,
}

impl Files {
    /// Before the first query.
    pub(crate) fn of(outputs: &[RunningOutput]) -> Self {
        let mut inputs = outputs.iter().flat_map(|output| &output.inputs);
        Self { expected: inputs.any(RunningInput::reads_files), ..Self::default() }
    }

    /// Asks the scanner of an output that has read everything.
    pub(crate) fn look(&mut self, output: &RunningOutput) {
        self.looked = true;
        let looks = output.looks();
        for input in output.inputs.iter().filter(|input| input.reads_files()) {
            self.expected = true;
            let mut after = None;
            loop {
                let query = FileQuery { after, limit: FILES_AT_ONCE, paths: Vec::new() };
                let page = match looks.page(input.slot, query, ANSWER_WAIT) {
                    Ok(page) => page,
                    Err(AskError::Busy | AskError::Ended | AskError::NoInput(_)) => {
                        self.unknown = true;
                        break;
                    }
                };
                self.found += page.files.len();
                for (path, error) in page.unlisted {
                    self.unread.insert(path, format!("the directory cannot be listed: {error}"));
                }
                for file in &page.files {
                    if let Some(reason) = file.why_unread() {
                        self.unread.insert(file.path.to_path_buf(), reason.to_string());
                    }
                }
                after = page.files.last().map(|file| file.path.to_path_buf()).filter(|_| page.more);
                if after.is_none() {
                    break;
                }
            }
        }
    }
}

/// What a run did not do.
#[derive(Debug, Default)]
pub(crate) struct Shortfall {
    files: Files,
    /// Lines that were read, or were in a disk queue.
    lines: u64,
    /// Compressed files that are damaged or fail their check, and files that vanished unread.
    spoiled: u64,
    refused: u64,
    too_long: u64,
    /// Events in disk queues that the configuration no longer has.
    pub(crate) left: u64,
    /// A line about each disk queue with undelivered events.
    pub(crate) queues: Vec<String>,
}

impl Shortfall {
    pub(crate) fn of_files(files: Files) -> Self {
        Self { files, ..Self::default() }
    }

    /// Adds the lines of an output.
    pub(crate) fn add(&mut self, ledger: &Ledger, spoiled: u64) {
        self.spoiled += spoiled;
        self.lines += ledger.read() + ledger.recovered();
        self.refused += ledger.dead_lettered() + ledger.dropped().get(DropReason::Rejected);
        self.too_long += ledger.dropped().get(DropReason::LineTooLong);
    }

    /// All kinds that occurred, the most serious first.
    fn all(&self) -> Vec<FailOn> {
        let Files { looked, expected, unknown, unread, .. } = &self.files;
        let unread = !looked || !unread.is_empty() || self.spoiled > 0 || *unknown;
        let refused = self.refused + self.too_long > 0;
        let nothing = *looked && *expected && self.files.found == 0 && self.lines == 0 && !unknown;
        let all = [
            (unread, FailOn::Unread),
            (refused, FailOn::Refused),
            (self.left > 0, FailOn::Left),
            (nothing, FailOn::Nothing),
        ];
        all.into_iter().filter_map(|(is_so, what)| is_so.then_some(what)).collect()
    }

    /// The exit code; `fail_on` is what counts, everything if it is empty.
    pub(crate) fn code(&self, fail_on: &[FailOn]) -> ExitCode {
        let counts = |what: &FailOn| fail_on.is_empty() || fail_on.contains(what);
        ExitCode::from(self.all().into_iter().find(counts).map_or(0, FailOn::code))
    }

    /// Prints losses of disk queues and, at the end of a run with `--once`, unread files and refused events, to
    /// stderr.
    pub(crate) fn report(&self, once: bool) {
        let text = if once { self.text() } else { String::new() };
        eprint(&(text + &self.queues.concat()));
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let unread = &self.files.unread;
        for (path, reason) in unread.iter().take(FILES_NAMED) {
            let (path, reason) = (shown(path), plain(reason));
            text.push_str(&format!("! not read to its end: {path}: {reason}\n"));
        }
        if unread.len() > FILES_NAMED {
            text.push_str(&format!("! {} more files\n", unread.len() - FILES_NAMED));
        }
        if unread.is_empty() && self.spoiled > 0 {
            text.push_str(&format!(
                "! {} damaged or vanished before that was read; the log names it\n",
                if self.spoiled == 1 {
                    "1 file is".to_owned()
                } else {
                    format!("{} files are", grouped(self.spoiled))
                }
            ));
        }
        if !self.files.looked {
            text.push_str(if self.files.expected {
                "! stopped before everything was read; the next run goes on from here in files\n"
            } else {
                "! stopped before all inputs had ended\n"
            });
        }
        if self.files.unknown {
            text.push_str("! which files were not read is not known: the scanner did not answer\n");
        }
        if self.refused > 0 {
            text.push_str(&format!(
                "! {} {} refused; `skidder deadletters list` shows those that were kept\n",
                grouped(self.refused),
                if self.refused == 1 { "event was" } else { "events were" }
            ));
        }
        if self.too_long > 0 {
            text.push_str(&format!(
                "! {} lines are longer than four times `message_max_bytes` and were skipped\n",
                grouped(self.too_long)
            ));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shortfall(unread: &[&str], refused: u64, found: usize) -> Shortfall {
        let unread =
            unread.iter().map(|path| (PathBuf::from(path), "damaged: x".to_owned())).collect();
        Shortfall {
            files: Files { expected: true, found, looked: true, unread, unknown: false },
            refused,
            ..Shortfall::default()
        }
    }

    fn code(shortfall: &Shortfall, fail_on: &[FailOn]) -> u8 {
        (0..=9).find(|code| ExitCode::from(*code) == shortfall.code(fail_on)).unwrap_or(255)
    }

    #[test]
    fn the_most_serious_that_counts_is_the_exit_code() {
        let both = shortfall(&["/a"], 3, 7);
        assert_eq!(code(&both, &[]), 4);
        assert_eq!(code(&both, &[FailOn::Refused, FailOn::Nothing]), 5);
        assert_eq!(code(&both, &[FailOn::Never]), 0);
        assert_eq!(code(&shortfall(&[], 0, 0), &[]), 7);
        assert_eq!(code(&shortfall(&[], 0, 1), &[]), 0);
        let looked = Files { looked: true, ..Files::default() };
        assert_eq!(code(&Shortfall::of_files(looked), &[]), 0, "no input reads files");
        assert_eq!(code(&Shortfall { left: 1, ..shortfall(&[], 0, 0) }, &[]), 8);
        assert_eq!(code(&Shortfall { left: 1, ..shortfall(&[], 1, 0) }, &[]), 5);
        let many = shortfall(&[], 2000, 7).text();
        assert!(many.starts_with("! 2,000 events were refused; "), "{many}");
        assert!(shortfall(&[], 1, 7).text().starts_with("! 1 event was refused; "));
        assert_eq!(
            both.text(),
            "! not read to its end: /a: damaged: x\n! 3 events were refused; `skidder deadletters list` \
             shows those that were kept\n"
        );
    }

    #[test]
    fn a_stop_speaks_of_files_only_if_an_input_reads_some() {
        let stopped = |expected| {
            Shortfall::of_files(Files { expected, looked: false, ..Files::default() }).text()
        };
        assert!(stopped(true).ends_with("; the next run goes on from here in files\n"));
        assert_eq!(stopped(false), "! stopped before all inputs had ended\n");
    }

    #[test]
    fn of_many_files_the_first_are_named() {
        let paths: Vec<String> = (0..25).map(|number| format!("/{number:02}")).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let text = shortfall(&paths, 0, 25).text();
        assert_eq!(text.lines().count(), FILES_NAMED + 1);
        assert!(text.ends_with("! 5 more files\n"), "{text}");
    }
}
