//! The counters of the readers, under Filebeat's names (`filebeat.harvester.*`, `/inputs/`).

use crate::errors::LastErrors;
use skidder_event::{Counter, Gauge};
use std::sync::atomic::{AtomicBool, Ordering};

/// Counters of all readers.
#[derive(Debug, Default)]
pub struct ReadMetrics {
    /// Readers started: `files_opened_total`.
    pub opened: Counter,
    /// Readers ended: `files_closed_total`.
    pub closed: Counter,
    /// Files open now: `files_active`.
    pub open: Gauge,
    /// Of those opened, compressed ones: `gzip_files_opened_total`.
    pub gzip_opened: Counter,
    /// Decompressed bytes taken from files, skipped ones of a resume not counted.
    pub bytes: Counter,
    /// Bytes taken from files as they are stored: for the progress through compressed files.
    pub stored_bytes: Counter,
    /// Lines taken from files: `messages_read_total`.
    pub lines: Counter,
    /// Lines as they stand in the files, of inputs with `parsers`, `encoding` or `line_terminator`: of
    /// those that were joined each counts.
    pub raw_lines: Counter,
    /// Lines discarded because the event they belong to was full: `multiline.max_lines`, `max_bytes`.
    pub lines_discarded: Counter,
    /// Lines that a parser could not read, and that went on as they are.
    pub parse_errors: Counter,
    /// Messages cut to `message_max_bytes`: `messages_truncated_total`.
    pub truncated: Counter,
    /// Files that could not be opened, read or decoded: `processing_errors_total`.
    pub errors: Counter,
    /// The last of them, and the last reports of damaged files.
    pub last_errors: LastErrors,
    /// Of those, compressed files that are damaged: `gzip_processing_errors_total`.
    pub gzip_errors: Counter,
    /// Truncated files: `filebeat.input.log.files.truncated`.
    pub files_truncated: Counter,
    /// Renamed files: `filebeat.input.log.files.renamed`.
    pub files_renamed: Counter,
    /// Decompressed bytes skipped to reach a cursor in a compressed file.
    pub resume_skipped_bytes: Counter,
    /// Files that match now, and those of them that are not read because another has their content.
    pub files_matched: Gauge,
    /// Whether any file ever matched.
    has_matched: AtomicBool,
    /// Files held back for another with the same content.
    pub files_held: Gauge,
    /// Files deleted because all of them was delivered.
    pub files_deleted: Counter,
    /// Files that were behind and had no reader for no known reason: the watchdog found and woke them.
    pub files_stalled: Counter,
    /// Files that were rotated away from their log before the time from which such files are read, and were
    /// skipped.
    pub files_rotated_before: Counter,
    /// Logs of containers that were gone before any file of them was found.
    pub logs_unseen: Counter,
    /// Files that vanished before they were read to the end, as far as was known.
    pub files_lost: Counter,
    /// Of those, bytes that were not read, as stored: all of a compressed file.
    pub bytes_lost: Counter,
    /// Files with a link in the data directory now.
    pub pinned_files: Gauge,
    /// Bytes of those of them that have no other name.
    pub pinned_bytes: Gauge,
    /// Deleted files that were given up because of `pin.max_bytes`.
    pub pins_given_up: Counter,
}

impl ReadMetrics {
    /// So many files match now.
    pub fn set_matched(&self, files: usize) {
        self.files_matched.set(files as u64);
        if files > 0 {
            self.has_matched.store(true, Ordering::Relaxed);
        }
    }

    /// Whether any file ever matched.
    pub fn has_matched(&self) -> bool {
        self.has_matched.load(Ordering::Relaxed)
    }
}
