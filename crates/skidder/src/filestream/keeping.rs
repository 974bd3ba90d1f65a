//! Reading how long things are kept: which files are ignored, when they are closed, when their state is
//! forgotten, when they are deleted.

use super::{Surroundings, positive, some};
use skidder_config::Section;
use skidder_os::Timestamp;
use skidder_read::{CloseSettings, FilestreamSettings, PinSettings};
use std::time::Duration;

/// Default of `delete.grace_period`.
const DELETE_GRACE: Duration = Duration::from_mins(30);

/// The interval of scans.
const SCAN: &str = "prospector.scanner.check_interval";

/// Default of `read_until_eof.timeout`.
const READ_UNTIL_EOF: Duration = Duration::from_mins(1);

/// Reads `close`, `ignore_*`, `clean_*`, `delete`, `pin` and `read_until_eof`.
pub(super) fn read(
    section: &Section<'_>,
    outside: &Surroundings<'_>,
    into: &mut FilestreamSettings,
) {
    into.close = read_close(section);
    into.ignore_older = some(section.duration("ignore_older").or(Duration::ZERO));
    into.ignore_before = read_ignore_inactive(section, outside);
    into.clean_removed = section.bool("clean_removed").or(true);
    let legacy = section.bool("legacy_clean_inactive").or(false);
    (into.clean_inactive, into.forget_at_start) =
        read_clean_inactive(section, legacy, SCAN, into.ignore_older, into.check_interval);
    into.delete = read_delete(section, &into.close);
    into.pin.max_bytes = read_pin(section, into.identity.is_content());
    let drain = section.section("read_until_eof");
    let enabled = drain.bool("enabled").or(false);
    let timeout = positive(&drain, "timeout").unwrap_or(READ_UNTIL_EOF);
    into.read_until_eof = enabled.then_some(timeout);
    drain.finish();
}

fn read_close(section: &Section<'_>) -> CloseSettings {
    let defaults = CloseSettings::default();
    let init = positive(section, "backoff.init").unwrap_or(defaults.backoff_init);
    let max = positive(section, "backoff.max").unwrap_or(defaults.backoff_max);
    CloseSettings {
        inactive: some(
            section.duration("close.on_state_change.inactive").or(Duration::from_mins(5)),
        ),
        removed: section.bool("close.on_state_change.removed").or(defaults.removed),
        renamed: section.bool("close.on_state_change.renamed").or(defaults.renamed),
        check_interval: positive(section, "close.on_state_change.check_interval")
            .unwrap_or(defaults.check_interval),
        on_eof: section.bool("close.reader.on_eof").or(defaults.on_eof),
        after_interval: some(section.duration("close.reader.after_interval").or(Duration::ZERO)),
        backoff_init: init,
        backoff_max: max.max(init),
        ..defaults
    }
}

fn read_ignore_inactive(section: &Section<'_>, outside: &Surroundings<'_>) -> Option<Timestamp> {
    section
        .one_of(
            "ignore_inactive",
            &[("since_first_start", outside.first_start), ("since_last_start", outside.started)],
        )
        .optional()
}

/// How long an entry that nobody updates is kept (`scan` names the interval of scans), and whether all are forgotten at the start.
pub(super) fn read_clean_inactive(
    section: &Section<'_>,
    legacy: bool,
    scan: &str,
    ignore_older: Option<Duration>,
    check_interval: Duration,
) -> (Option<Duration>, bool) {
    let Some(text) = section.signed_duration("clean_inactive").optional() else {
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
    section.problem("clean_inactive", message, "or files would be read again");
    (None, false)
}

/// Skidder's own: bytes that deleted files may keep until they are read, if they are to be kept.
fn read_pin(section: &Section<'_>, by_content: bool) -> Option<u64> {
    let settings = section.section("pin");
    let enabled = settings.bool("enabled").or(false);
    let max_bytes = settings.size("max_bytes").or(PinSettings::MAX_BYTES);
    settings.finish();
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
    let settings = section.section("delete");
    let enabled = settings.bool("enabled").or(false);
    let grace = settings.duration("grace_period").or(DELETE_GRACE);
    settings.finish();
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
