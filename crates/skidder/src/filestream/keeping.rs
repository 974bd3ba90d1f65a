//! Reading how long things are kept: which files are ignored, when they are closed, when their state is
//! forgotten, when they are deleted.

use super::{ABOVE_ZERO, InputContext, positive, some};
use skidder_config::units::SignedDuration;
use skidder_config::{Group, Key, OneOf, Section, Size, settings};
use skidder_read::{CloseSettings, FilestreamSettings, PinSettings};
use std::time::Duration;

/// Which time a file must not be older than.
#[derive(Clone, Copy)]
enum Since {
    FirstStart,
    LastStart,
}

settings! {
    /// When the state of files is forgotten, of every input that reads files.
    pub(crate) static FORGETTING = Group::new("files.forgetting", "When state is forgotten.");

    pub(super) CLEAN_REMOVED: bool = Key::new("clean_removed").default(true).about(
        "state of files that are gone is forgotten. *Differs*: a minute later, because a compressed copy may turn up",
    );
    CLEAN_INACTIVE: SignedDuration = Key::new("clean_inactive").default_words("`-1`").about(
        "state that nothing updated for so long is forgotten; 0 and less: off. Must be more than `ignore_older` and \
         the interval of scans together. *Cost*: looked at every 5 minutes. *Differs*: while the program runs a file \
         goes on where it was, and one with something to read is not forgotten",
    );
}

settings! {
    /// How long a filestream input keeps things.
    pub(crate) static KEEPING =
        Group::new("filestream.keeping", "Closing, forgetting, deleting.").include(&[&FORGETTING]);

    IGNORE_INACTIVE: OneOf<Since> = Key::one_of(
        "ignore_inactive",
        &[("since_first_start", Since::FirstStart), ("since_last_start", Since::LastStart)],
    )
    .about(
        "`since_first_start`, `since_last_start`: as `ignore_older`, for files not modified since this data directory \
         was first used, or since the program began. *Differs*: as `ignore_older`",
    );
    INACTIVE: Duration = Key::new("close.on_state_change.inactive").default(Duration::from_mins(5)).about(
        "a file from which nothing was read for so long is closed; 0: never. *Cost*: an open file is a descriptor. \
         *Differs*, as the next two: it has a last look whether there is more",
    );
    REMOVED: bool = Key::new("close.on_state_change.removed")
        .default(false)
        .about("close a file that has no name any more. *Cost*: what is written later is not read");
    RENAMED: bool = Key::new("close.on_state_change.renamed")
        .default(false)
        .about("close a file that is no longer at its path");
    CLOSE_CHECK_INTERVAL: Duration = Key::new("close.on_state_change.check_interval")
        .default(Duration::from_secs(5))
        .noun(ABOVE_ZERO)
        .about("how often the two are looked at; above 0");
    ON_EOF: bool = Key::new("close.reader.on_eof").default(false).about("close at the first end");
    AFTER_INTERVAL: Duration = Key::new("close.reader.after_interval").default(Duration::ZERO).about(
        "close after so long, wherever it is; 0: never. The next scan opens it again. With `--once` only at the end \
         of the file. *Cost*: what has no name any more is lost with it",
    );
    BACKOFF_INIT: Duration = Key::new("backoff.init")
        .default(Duration::from_secs(2))
        .noun(ABOVE_ZERO)
        .about("first wait at the end of a file; above 0. *Cost*: one question to the system for each file and wait");
    BACKOFF_MAX: Duration = Key::new("backoff.max")
        .default(Duration::from_secs(10))
        .noun(ABOVE_ZERO)
        .about("each wait is twice the one before, up to this");
    READ_UNTIL_EOF: bool = Key::new("read_until_eof.enabled").default(false).about(
        "when the program stops, open files are read to their end first; the `close` options wait. *Cost*: the stop \
         takes longer",
    );
    READ_UNTIL_EOF_TIMEOUT: Duration = Key::new("read_until_eof.timeout")
        .default(Duration::from_mins(1))
        .noun(ABOVE_ZERO)
        .about("at most so long; above 0. `filebeat.shutdown_timeout` begins behind it");
    LEGACY_CLEAN_INACTIVE: bool = Key::new("legacy_clean_inactive").default(false).about(
        "`clean_inactive` is not compared with other settings; 0 forgets all state at the start",
    );
    DELETE: bool = Key::new("delete.enabled").default(false).about(
        "a file is deleted when its reader has closed it, all its events are settled, and its size has not changed \
         for the grace period; with several outputs, when this is so for each that the input feeds. *Cost*: all files \
         of the input are looked at in each scan. Never deleted: what was ignored, has an unfinished line, is \
         damaged, or failed an integrity check. A link is deleted, not its target",
    );
    GRACE_PERIOD: Duration = Key::new("delete.grace_period").default(Duration::from_mins(30)).about(
        "how long. *Differs*: a refused deletion is tried in five scans, not five times in 10 s. What is written \
         between the last look and the deletion is still read",
    );
    PIN: bool = Key::new("pin.enabled").default(false).ours().about(
        "a file that is not yet delivered gets a second name, a hard link in `path.data`, so that others can delete \
         it and it is still read to its end, also after a restart. Needs `file_identity.fingerprint` and the data \
         directory on the file system of the logs; what is truncated is gone all the same. **logrotate neither \
         rotates nor compresses a file with two names unless `allowhardlink` stands in its configuration**; `gzip` \
         and `xz` want `-f` for such a file, or to be given it as a stream. *Cost*: one link for each file that is \
         behind at the end of a scan; all files of the input are looked at in each scan",
    );
    PIN_MAX_BYTES: Size = Key::new("pin.max_bytes").default(PinSettings::MAX_BYTES).ours().about(
        "room on the disk for files that have no other name (for each of several outputs); beyond it the oldest is \
         given up, with an error in the log that names it, and counted (`pins_given_up`, `bytes_lost`)",
    );
}

/// Reads `close`, `ignore_*`, `clean_*`, `delete`, `pin` and `read_until_eof`.
pub(super) fn read(
    section: &Section<'_>,
    context: &InputContext<'_>,
    into: &mut FilestreamSettings,
) {
    into.close = read_close(section);
    into.ignore_before = section.get(&IGNORE_INACTIVE).optional().map(|since| match since {
        Since::FirstStart => context.first_start,
        Since::LastStart => context.started,
    });
    into.clean_removed = section.get(&CLEAN_REMOVED).value();
    let legacy = section.get(&LEGACY_CLEAN_INACTIVE).value();
    let scan = super::CHECK_INTERVAL.name();
    (into.clean_inactive, into.forget_at_start) =
        read_clean_inactive(section, legacy, scan, into.ignore_older, into.check_interval);
    into.delete = read_delete(section, &into.close);
    into.pin.max_bytes = read_pin(section, into.identity.is_content());
    let enabled = section.get(&READ_UNTIL_EOF).value();
    let timeout = positive(section, &READ_UNTIL_EOF_TIMEOUT);
    into.read_until_eof = enabled.then_some(timeout);
}

fn read_close(section: &Section<'_>) -> CloseSettings {
    let init = positive(section, &BACKOFF_INIT);
    let max = positive(section, &BACKOFF_MAX);
    section.warn_of_longer((BACKOFF_INIT.name(), init), (BACKOFF_MAX.name(), max));
    CloseSettings {
        inactive: some(section.get(&INACTIVE).value()),
        removed: section.get(&REMOVED).value(),
        renamed: section.get(&RENAMED).value(),
        check_interval: positive(section, &CLOSE_CHECK_INTERVAL),
        on_eof: section.get(&ON_EOF).value(),
        after_interval: some(section.get(&AFTER_INTERVAL).value()),
        backoff_init: init,
        backoff_max: max.max(init),
        ..CloseSettings::default()
    }
}

/// How long an entry without updates is kept (`scan` names the interval of scans), and whether all are forgotten at
/// the start.
pub(super) fn read_clean_inactive(
    section: &Section<'_>,
    legacy: bool,
    scan: &str,
    ignore_older: Option<Duration>,
    check_interval: Duration,
) -> (Option<Duration>, bool) {
    let Some(text) = section.get(&CLEAN_INACTIVE).optional() else {
        return (None, false);
    };
    if text.negative {
        return (None, false);
    }
    let limit = text.length;
    if limit.is_zero() {
        return (None, legacy);
    }
    let least = ignore_older.map(|older| older + check_interval);
    let message = match least {
        _ if legacy => return (Some(limit), false),
        Some(least) if limit > least => return (Some(limit), false),
        Some(least) => format!(
            "`clean_inactive` must be more than `ignore_older` and `{scan}` together, {least:?}"
        ),
        None => "`clean_inactive` needs `ignore_older`".to_owned(),
    };
    section.problem(CLEAN_INACTIVE.name(), message, "or files would be read again");
    (None, false)
}

/// Skidder's own: bytes that deleted files may keep until they are read, if they are to be kept.
fn read_pin(section: &Section<'_>, by_content: bool) -> Option<u64> {
    let enabled = section.get(&PIN).value();
    let max_bytes = section.get(&PIN_MAX_BYTES).value();
    if enabled && !by_content {
        section.problem(
            "pin",
            "`pin` finds a deleted file again by its content".to_owned(),
            "use `file_identity.fingerprint`",
        );
    }
    enabled.then_some(max_bytes)
}

fn read_delete(section: &Section<'_>, close: &CloseSettings) -> Option<Duration> {
    let enabled = section.get(&DELETE).value();
    let grace = section.get(&GRACE_PERIOD).value();
    if enabled && close.inactive.is_none() && !close.on_eof {
        let message =
            "`delete.enabled` deletes files that are closed at their end, and none ever is";
        section.warning(
            "delete",
            message,
            "set `close.on_state_change.inactive` or `close.reader.on_eof`",
        );
    }
    enabled.then_some(grace)
}
