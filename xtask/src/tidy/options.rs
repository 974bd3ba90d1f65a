//! Every option of the file inputs has a test and a line in the documentation.
//!
//! The list here is the one place that says which test covers which option; the table at the end of
//! `docs/filestream.md` is written from it. An option without a test, a test that does not exist, and an
//! option that the page does not explain are offences.

use super::parser_options::PARSERS;
use super::tables::Page;
use crate::repository;
use anyhow::{Context, Result};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

/// The page with the table.
const PAGE: &str = "docs/filestream.md";
const BEGIN: &str =
    "<!-- written by `cargo xtask tidy --update` from xtask/src/tidy/options.rs -->";

/// Options of `filestream` and those that all inputs share, with the tests that cover them: how it is read,
/// and what it does.
const FILESTREAM: &[(&str, &[&str])] = &[
    (
        "type",
        &[
            "the_defaults_are_those_of_filebeat",
            "a_log_input_reads_on_after_a_restart_and_can_be_taken_over",
        ],
    ),
    (
        "id",
        &[
            "an_id_is_asked_for_and_paths_are_required",
            "an_input_that_gets_an_id_goes_on_with_its_files",
        ],
    ),
    (
        "allow_deprecated_id_duplication",
        &["an_id_is_asked_for_and_paths_are_required", "inputs_with_one_id_read_a_file_once"],
    ),
    ("enabled", &["a_disabled_input_is_not_read_whatever_it_holds"]),
    ("paths", &["an_id_is_asked_for_and_paths_are_required", "patterns_find_regular_files_once"]),
    ("prospector.scanner.check_interval", &["the_scanner_is_read"]),
    (
        "prospector.scanner.recursive_glob",
        &["the_scanner_is_read", "only_the_rightmost_double_star_recurses"],
    ),
    (
        "prospector.scanner.include_files",
        &["the_scanner_is_read", "files_are_included_and_excluded_by_their_whole_path"],
    ),
    (
        "prospector.scanner.exclude_files",
        &["the_scanner_is_read", "files_are_included_and_excluded_by_their_whole_path"],
    ),
    (
        "prospector.scanner.symlinks",
        &["the_scanner_is_read", "links_to_files_are_followed_only_if_asked_for"],
    ),
    (
        "prospector.scanner.resend_on_touch",
        &["the_scanner_is_read", "a_touched_file_is_read_again_only_if_asked_for"],
    ),
    (
        "prospector.scanner.fingerprint.enabled",
        &[
            "identities_are_read_with_what_they_need",
            "the_file_is_on_its_events_as_it_is_asked_for",
        ],
    ),
    (
        "prospector.scanner.fingerprint.offset",
        &[
            "fingerprints_have_a_least_and_a_most",
            "files_that_differ_only_before_the_offset_are_all_read",
        ],
    ),
    (
        "prospector.scanner.fingerprint.length",
        &[
            "fingerprints_have_a_least_and_a_most",
            "a_file_that_grows_past_its_fingerprint_keeps_its_cursor",
        ],
    ),
    (
        "file_identity.fingerprint",
        &[
            "identities_are_read_with_what_they_need",
            "files_that_were_known_by_a_name_go_on_with_their_content",
        ],
    ),
    (
        "file_identity.fingerprint.growing",
        &[
            "identities_are_read_with_what_they_need",
            "short_files_wait_for_their_fingerprint_if_it_does_not_grow",
        ],
    ),
    (
        "file_identity.native",
        &[
            "identities_are_read_with_what_they_need",
            "each_identity_reads_every_line_once_over_restarts",
            "an_inode_that_is_used_again_skips_no_byte",
        ],
    ),
    (
        "file_identity.path",
        &[
            "identities_are_read_with_what_they_need",
            "an_inode_follows_a_rename_and_a_path_does_not",
            "a_path_that_is_used_again_loses_nothing_of_either_file",
        ],
    ),
    (
        "file_identity.inode_marker.path",
        &[
            "identities_are_read_with_what_they_need",
            "a_marker_that_changes_makes_other_files_of_all",
            "no_file_is_read_before_its_marker_is_there",
        ],
    ),
    ("ignore_older", &["what_is_ignored_is_read", "old_files_are_ignored_until_they_change"]),
    (
        "ignore_inactive",
        &[
            "what_is_ignored_is_read",
            "files_older_than_a_start_are_left_out_and_read_on_when_they_grow",
            "a_file_that_is_known_is_never_skipped_because_it_is_old",
        ],
    ),
    ("harvester_limit", &["what_is_ignored_is_read", "every_file_is_read_whatever_the_limits"]),
    (
        "take_over",
        &[
            "taking_over_has_filebeats_rules",
            "files_of_log_inputs_are_taken_over_where_they_were_left",
            "an_input_that_takes_over_goes_on_and_says_so",
        ],
    ),
    (
        "take_over.from_ids",
        &["taking_over_has_filebeats_rules", "files_of_another_id_are_taken_over_once"],
    ),
    (
        "rotation.external.strategy.copytruncate.*",
        &[
            "a_rotation_strategy_is_checked_and_needs_content",
            "copytruncate_loses_and_repeats_nothing",
        ],
    ),
    (
        "compression",
        &["compression_needs_content", "a_compressed_file_goes_on_where_the_plain_one_was"],
    ),
    ("gzip_experimental", &["reading_and_fields_are_read"]),
    ("buffer_size", &["reading_and_fields_are_read", "lines_are_the_same_wherever_a_chunk_ends"]),
    (
        "message_max_bytes",
        &[
            "reading_and_fields_are_read",
            "long_lines_are_cut_and_flagged_and_longer_ones_skipped_and_counted",
        ],
    ),
    (
        "include_lines",
        &["reading_and_fields_are_read", "lines_are_filtered_and_empty_ones_counted"],
    ),
    (
        "exclude_lines",
        &["reading_and_fields_are_read", "lines_are_filtered_and_empty_ones_counted"],
    ),
    ("backoff.init", &["closing_is_read", "a_reader_asks_less_and_less_often_while_nothing_comes"]),
    ("backoff.max", &["closing_is_read", "a_reader_asks_less_and_less_often_while_nothing_comes"]),
    ("seek_to_tail", &["reading_and_fields_are_read"]),
    (
        "include_file_owner_name",
        &["reading_and_fields_are_read", "the_file_is_on_its_events_as_it_is_asked_for"],
    ),
    (
        "include_file_owner_group_name",
        &["reading_and_fields_are_read", "the_file_is_on_its_events_as_it_is_asked_for"],
    ),
    (
        "include_file_fingerprint",
        &["reading_and_fields_are_read", "the_file_is_on_its_events_as_it_is_asked_for"],
    ),
    (
        "close.on_state_change.inactive",
        &["closing_is_read", "close_inactive_counts_from_the_last_data"],
    ),
    (
        "close.on_state_change.removed",
        &[
            "closing_is_read",
            "close_removed_and_renamed_close_what_has_lost_its_name",
            "what_comes_before_a_file_is_closed_for_its_name_is_read",
        ],
    ),
    (
        "close.on_state_change.renamed",
        &[
            "closing_is_read",
            "close_removed_and_renamed_close_what_has_lost_its_name",
            "what_comes_before_a_file_is_closed_for_its_name_is_read",
        ],
    ),
    (
        "close.on_state_change.check_interval",
        &["closing_is_read", "what_comes_before_a_file_is_closed_for_its_name_is_read"],
    ),
    ("close.reader.on_eof", &["closing_is_read", "close_on_eof_and_after_interval_lose_nothing"]),
    (
        "close.reader.after_interval",
        &["closing_is_read", "close_on_eof_and_after_interval_lose_nothing"],
    ),
    (
        "read_until_eof.enabled",
        &[
            "deleting_and_the_last_reading_are_read",
            "open_files_are_read_to_their_end_when_the_program_is_asked_to_stop",
            "what_is_open_is_read_to_its_end_at_a_stop",
        ],
    ),
    (
        "read_until_eof.timeout",
        &["deleting_and_the_last_reading_are_read", "reading_until_the_end_has_an_end"],
    ),
    (
        "clean_inactive",
        &[
            "cleaning_has_filebeats_rules",
            "inactive_entries_are_forgotten_and_their_files_go_on_where_they_were",
            "an_inactive_file_with_something_to_read_is_not_forgotten",
        ],
    ),
    (
        "legacy_clean_inactive",
        &[
            "cleaning_has_filebeats_rules",
            "everything_is_forgotten_at_the_start_if_that_is_asked_for",
        ],
    ),
    (
        "clean_removed",
        &["cleaning_has_filebeats_rules", "without_clean_removed_state_outlives_the_file"],
    ),
    (
        "delete.enabled",
        &[
            "deleting_and_the_last_reading_are_read",
            "a_file_is_deleted_when_all_of_it_was_settled_for_the_grace_period",
            "nothing_is_deleted_that_is_unread_unsettled_or_ignored",
            "files_are_deleted_by_a_running_program_and_nothing_of_them_is_lost",
            "whatever_is_deleted_was_read",
            "whatever_is_deleted_was_read_by_all",
            "files_are_deleted_only_when_every_output_has_them",
        ],
    ),
    (
        "delete.grace_period",
        &[
            "deleting_and_the_last_reading_are_read",
            "a_file_that_grows_begins_its_grace_period_again",
            "a_file_that_cannot_be_deleted_is_tried_five_times",
        ],
    ),
    (
        "pin.enabled",
        &[
            "pinning_is_off_and_bounded",
            "a_deleted_file_is_read_to_its_end_by_its_pin",
            "what_is_read_is_not_pinned",
        ],
    ),
    (
        "pin.max_bytes",
        &[
            "pinning_is_off_and_bounded",
            "beyond_the_limit_the_oldest_is_given_up_and_counted",
            "pins_of_other_outputs_are_no_names_that_keep_a_file_for_nothing",
        ],
    ),
    ("tags", &["tags_and_fields_of_an_input_come_over_those_of_all"]),
    ("fields", &["tags_and_fields_of_an_input_come_over_those_of_all"]),
    ("fields_under_root", &["tags_and_fields_of_an_input_come_over_those_of_all"]),
    ("processors", &["processors_of_an_input_run_on_its_events"]),
    ("pipeline", &["pipeline_and_index_go_to_the_metadata"]),
    ("index", &["pipeline_and_index_go_to_the_metadata"]),
    ("keep_null", &["reading_and_fields_are_read", "nulls_stay_if_asked_for"]),
    ("publisher_pipeline.disable_host", &["the_host_can_be_left_out_and_a_service_named"]),
    (
        "outputs",
        &[
            "inputs_choose_outputs_by_conditions_behind_all_processors",
            "mistakes_are_told_with_the_nearest_name",
        ],
    ),
    ("service.type", &["the_host_can_be_left_out_and_a_service_named"]),
];

/// Tests of all options that the deprecated inputs call by other names.
const LOG: &[&str] =
    &["the_options_of_log_inputs_become_those_of_filestream", "bad_options_of_log_inputs_are_told"];

/// Options of `log` and `container` that have a name or meaning of their own.
const LOG_OPTIONS: &[(&str, &[&str])] = &[
    ("allow_deprecated_use", &["a_deprecated_input_runs_with_a_notice_unless_it_is_asked_for"]),
    ("recursive_glob.enabled", LOG),
    ("exclude_files", LOG),
    ("symlinks", LOG),
    ("scan_frequency", LOG),
    ("harvester_buffer_size", LOG),
    ("max_bytes", LOG),
    ("close_inactive", LOG),
    ("close_removed", LOG),
    ("close_renamed", LOG),
    ("close_eof", LOG),
    ("close_timeout", LOG),
    ("backoff", LOG),
    ("max_backoff", LOG),
    ("backoff_factor", LOG),
    ("tail_files", &["tailing_begins_at_the_end_of_what_is_there_at_the_start_only"]),
];

/// Checks the list against the tests and the page; with `update` the page's table is written anew.
pub(super) fn check(
    update: bool,
    tests: &HashSet<String>,
    offences: &mut Vec<String>,
) -> Result<()> {
    let page = Page::read(PAGE, BEGIN)?;
    for (option, covering) in FILESTREAM.iter().chain(PARSERS).chain(LOG_OPTIONS) {
        if !page.before.contains(&format!("`{option}`")) {
            offences.push(format!("{PAGE}: does not explain `{option}`"));
        }
        tell_missing("xtask/src/tidy/options.rs", option, covering, tests, offences);
    }
    page.compare(&table(), update, offences)
}

/// Tells of tests that are to cover an option and are not there. `list` is the file that names them.
pub(super) fn tell_missing(
    list: &str,
    option: &str,
    covering: &[&str],
    tests: &HashSet<String>,
    offences: &mut Vec<String>,
) {
    for test in covering.iter().filter(|test| !tests.contains(**test)) {
        offences.push(format!("{list}: there is no test `{test}` for `{option}`"));
    }
}

fn table() -> String {
    let mut table = String::from("| option | covered by |\n|---|---|\n");
    for (option, tests) in FILESTREAM.iter().chain(PARSERS).chain(LOG_OPTIONS) {
        let tests: Vec<String> = tests.iter().map(|test| format!("`{test}`")).collect();
        writeln!(table, "| `{option}` | {} |", tests.join(", "))
            .expect("a string takes everything");
    }
    table
}

/// The names of all tests.
pub(super) fn tests() -> Result<HashSet<String>> {
    let mut names = HashSet::new();
    for path in repository::tracked(&[".rs"])? {
        let path: PathBuf = repository::root().join(&path);
        let text = fs::read_to_string(&path)
            .with_context(|| format!("cannot read `{}`", path.display()))?;
        let mut is_test = false;
        for line in text.lines().map(str::trim) {
            if line == "#[test]" || line.starts_with("#[tokio::test") {
                is_test = true;
            } else if let Some(name) =
                line.trim_start_matches("async ").strip_prefix("fn ").filter(|_| is_test)
            {
                names.extend(name.split_once('(').map(|(name, _)| name.to_owned()));
                is_test = false;
            }
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_option() {
        assert!(table().contains("| `delete.enabled` |"));
    }
}
