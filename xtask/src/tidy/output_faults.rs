//! The contract of outputs, output by output and case by case: each pair has tests, or a reason why there is nothing
//! to test. The page of outputs shows them.

use super::tables::Page;
use crate::repository;
use anyhow::{Context, Result};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

/// The page with the table.
const PAGE: &str = "docs/outputs.md";
/// Where this list is, for messages and the page.
const LIST: &str = "xtask/src/tidy/output_faults.rs";
const BEGIN: &str =
    "<!-- written by `cargo xtask tidy --update` from xtask/src/tidy/output_faults.rs -->";

/// What may happen to any output.
const CASES: [&str; 12] = [
    "it takes everything",
    "it refuses a whole request",
    "it refuses some events",
    "an event or a request is too large for it",
    "it answers what proves nothing",
    "it is slow",
    "the connection breaks before the request was read",
    "the connection breaks after the request was read",
    "it is started again in the middle",
    "the credentials are wrong",
    "the certificate has expired",
    "the certificate has another name",
];

/// How a case of an output is covered.
#[derive(Clone, Copy)]
enum Cell {
    /// These tests try it.
    Tested(&'static [&'static str]),
    /// It cannot happen.
    Never(&'static str),
}

use Cell::{Never, Tested};

/// The case that only its contract with our own server tries.
const ELASTICSEARCH: Cell = Tested(&["elasticsearch_keeps_the_contract_of_outputs"]);
/// The case that its contract tries, with our own server and with real ones.
const ELASTICSEARCH_BOTH: Cell = Tested(&[
    "elasticsearch_keeps_the_contract_of_outputs",
    "the_contract_is_kept_with_elasticsearch_itself",
    "the_contract_is_kept_with_opensearch_itself",
]);
const LOGSTASH: Cell = Tested(&["logstash_keeps_the_contract_of_outputs"]);
const LOGSTASH_NETWORK: Cell = Tested(&[
    "logstash_keeps_the_contract_of_outputs",
    "a_bad_network_before_a_lumberjack_server_loses_nothing",
]);
const REDIS: Cell = Tested(&["redis_keeps_the_contract_of_outputs"]);
const REDIS_NETWORK: Cell = Tested(&[
    "redis_keeps_the_contract_of_outputs",
    "a_bad_network_and_a_restart_of_redis_lose_nothing",
]);
const REDIS_DENIED: Cell = Tested(&[
    "redis_keeps_the_contract_of_outputs",
    "redis_itself_without_memory_or_rights_gets_everything_later",
]);
const OTLP: Cell = Tested(&[
    "otlp_over_grpc_keeps_the_contract_of_outputs",
    "otlp_over_http_keeps_the_contract_of_outputs",
]);
const OTLP_NETWORK: Cell = Tested(&[
    "otlp_over_grpc_keeps_the_contract_of_outputs",
    "otlp_over_http_keeps_the_contract_of_outputs",
    "a_bad_network_before_a_collector_and_its_restart_lose_nothing",
]);
const KAFKA_NETWORK: Cell = Tested(&[
    "kafka_keeps_the_contract_of_outputs",
    "a_bad_network_loses_nothing_and_keeps_the_order",
]);
const KAFKA_DENIED: Cell =
    Tested(&["kafka_keeps_the_contract_of_outputs", "who_cannot_connect_keeps_everything"]);
const S3: Cell = Tested(&["s3_keeps_the_contract_of_outputs"]);
const S3_NETWORK: Cell = Tested(&[
    "s3_keeps_the_contract_of_outputs",
    "a_connection_that_is_cut_anywhere_doubles_nothing",
    "a_bad_network_before_versitygw_loses_and_doubles_nothing",
]);
const S3_DENIED: Cell = Tested(&[
    "s3_keeps_the_contract_of_outputs",
    "versitygw_that_refuses_is_told_and_gets_every_event_later",
]);
const TERMINAL: Cell = Tested(&["the_console_prints_every_event_once_through_any_terminal"]);
const NO_ANSWER: Cell = Never("the system takes bytes, and nobody answers");
const NO_CONNECTION: Cell = Never("there is no connection");
const NO_CERTIFICATE: Cell = Never("there is no certificate");

const OUTPUTS: [(&str, [Cell; CASES.len()]); 8] = [
    (
        "elasticsearch",
        [
            ELASTICSEARCH_BOTH,
            Tested(&[
                "elasticsearch_keeps_the_contract_of_outputs",
                "elasticsearch_with_a_full_disk_gets_everything_later",
                "opensearch_with_a_full_disk_gets_everything_later",
            ]),
            ELASTICSEARCH_BOTH,
            Tested(&[
                "elasticsearch_keeps_the_contract_of_outputs",
                "too_large_requests_are_halved_until_they_fit",
                "a_server_that_takes_only_small_requests_and_goes_away_gets_everything",
            ]),
            ELASTICSEARCH,
            ELASTICSEARCH_BOTH,
            ELASTICSEARCH_BOTH,
            ELASTICSEARCH_BOTH,
            Tested(&[
                "elasticsearch_keeps_the_contract_of_outputs",
                "a_server_that_takes_only_small_requests_and_goes_away_gets_everything",
            ]),
            Tested(&[
                "elasticsearch_keeps_the_contract_of_outputs",
                "a_wrong_password_is_told_and_nothing_is_lost",
            ]),
            ELASTICSEARCH,
            ELASTICSEARCH,
        ],
    ),
    (
        "logstash",
        [
            Tested(&[
                "logstash_keeps_the_contract_of_outputs",
                "elastics_own_lumberjack_server_takes_every_event_once",
            ]),
            LOGSTASH,
            Tested(&[
                "logstash_keeps_the_contract_of_outputs",
                "partial_acknowledgements_settle_a_beginning_and_the_rest_comes_again",
            ]),
            Never("a server has no way to say so"),
            Tested(&[
                "logstash_keeps_the_contract_of_outputs",
                "an_acknowledgement_of_what_was_not_sent_yet_is_none",
            ]),
            Tested(&[
                "logstash_keeps_the_contract_of_outputs",
                "a_slow_lumberjack_server_keeps_the_connection_alive",
            ]),
            LOGSTASH_NETWORK,
            LOGSTASH_NETWORK,
            LOGSTASH,
            LOGSTASH,
            LOGSTASH,
            LOGSTASH,
        ],
    ),
    (
        "kafka",
        [
            Tested(&["kafka_keeps_the_contract_of_outputs", "every_way_to_send_brings_all_lines"]),
            Tested(&[
                "a_topic_that_the_user_may_not_write_to_waits_and_holds_no_other_up",
                "who_may_not_write_idempotently_waits_until_it_may",
            ]),
            Tested(&[
                "kafka_keeps_the_contract_of_outputs",
                "a_topic_that_the_user_may_not_write_to_waits_and_holds_no_other_up",
                "a_record_that_is_refused_does_not_hold_up_those_behind_it",
            ]),
            Tested(&[
                "kafka_keeps_the_contract_of_outputs",
                "what_is_too_large_goes_to_the_dead_letters_and_the_rest_arrives",
            ]),
            Tested(&[
                "what_no_answer_is_about_is_sent_again",
                "answers_that_make_no_sense_are_told_and_asked_for_again",
            ]),
            KAFKA_NETWORK,
            KAFKA_NETWORK,
            KAFKA_NETWORK,
            Tested(&[
                "kafka_keeps_the_contract_of_outputs",
                "a_broker_that_is_started_again_gets_all_lines_in_order",
            ]),
            KAFKA_DENIED,
            KAFKA_DENIED,
            KAFKA_DENIED,
        ],
    ),
    (
        "redis",
        [
            Tested(&["redis_keeps_the_contract_of_outputs", "redis_itself_takes_every_event_once"]),
            REDIS_DENIED,
            Tested(&[
                "redis_keeps_the_contract_of_outputs",
                "what_a_command_failed_on_is_sent_again_and_nothing_else",
            ]),
            Tested(&[
                "redis_keeps_the_contract_of_outputs",
                "redis_itself_refuses_what_is_too_large_and_who_may_not",
            ]),
            REDIS,
            REDIS,
            REDIS_NETWORK,
            REDIS_NETWORK,
            REDIS_NETWORK,
            REDIS_DENIED,
            REDIS,
            REDIS,
        ],
    ),
    (
        "otlp",
        [
            Tested(&[
                "otlp_over_grpc_keeps_the_contract_of_outputs",
                "otlp_over_http_keeps_the_contract_of_outputs",
                "the_collector_itself_takes_every_event_once",
            ]),
            Tested(&[
                "a_request_that_can_never_be_taken_goes_to_the_dead_letters",
                "a_collector_that_refuses_for_now_gets_everything_and_one_that_refuses_for_good_does_not",
            ]),
            Tested(&[
                "what_is_refused_of_a_request_is_dropped_and_counted_and_does_not_come_again",
            ]),
            Tested(&[
                "requests_that_are_too_large_become_smaller_and_a_single_event_is_refused",
                "a_collector_that_takes_only_small_requests_gets_everything",
            ]),
            OTLP,
            OTLP,
            OTLP_NETWORK,
            OTLP_NETWORK,
            OTLP_NETWORK,
            OTLP,
            OTLP,
            OTLP,
        ],
    ),
    (
        "s3",
        [
            Tested(&[
                "s3_keeps_the_contract_of_outputs",
                "versitygw_takes_every_event_once_in_every_form",
            ]),
            S3_DENIED,
            Never("an object is taken whole"),
            Tested(&[
                "s3_keeps_the_contract_of_outputs",
                "an_object_that_is_too_large_is_halved_until_it_fits",
            ]),
            S3,
            S3,
            S3_NETWORK,
            Tested(&[
                "an_object_whose_answer_was_lost_is_replaced_by_the_same",
                "a_connection_that_is_cut_anywhere_doubles_nothing",
                "a_bad_network_before_versitygw_loses_and_doubles_nothing",
            ]),
            Tested(&[
                "s3_keeps_the_contract_of_outputs",
                "versitygw_that_is_killed_and_started_again_gets_every_event_once",
            ]),
            S3_DENIED,
            S3,
            S3,
        ],
    ),
    (
        "file",
        [
            Tested(&["the_file_output_writes_every_event_once_over_many_files"]),
            Tested(&[
                "a_full_disk_is_waited_for",
                "whatever_operation_fails_the_file_output_loses_and_repeats_nothing",
            ]),
            Tested(&["a_line_longer_than_a_file_is_refused_and_the_others_are_written"]),
            Tested(&["a_line_longer_than_a_file_is_refused_and_the_others_are_written"]),
            NO_ANSWER,
            Never("a write is waited for as long as it takes"),
            NO_CONNECTION,
            NO_CONNECTION,
            Tested(&["half_a_line_of_a_crash_and_a_link_are_left_alone"]),
            Tested(&["the_check_of_the_file_output_tries_to_write_and_leaves_nothing_behind"]),
            NO_CERTIFICATE,
            NO_CERTIFICATE,
        ],
    ),
    (
        "console",
        [
            TERMINAL,
            TERMINAL,
            Tested(&["the_console_prints_format_strings_and_refuses_events_that_have_none"]),
            Never("a terminal takes lines of any length"),
            NO_ANSWER,
            TERMINAL,
            Tested(&["a_console_without_a_reader_ends_and_settles_nothing_unwritten"]),
            NO_CONNECTION,
            Never("without a reader the output ends"),
            Never("there are none"),
            NO_CERTIFICATE,
            NO_CERTIFICATE,
        ],
    ),
];

/// Checks the list against the tests and the page; with `update` writes the page's table.
pub(super) fn check(update: bool, offences: &mut Vec<String>) -> Result<()> {
    let page = Page::read(PAGE, BEGIN)?;
    let tests = tests()?;
    for (output, cells) in &OUTPUTS {
        for (case, cell) in CASES.iter().zip(cells) {
            if let Tested(covering) = cell {
                report_missing(&format!("{output}: {case}"), covering, &tests, offences);
            }
        }
    }
    page.compare(&table(), update, offences)
}

/// Reports tests of a cell that are not there.
fn report_missing(
    cell: &str,
    covering: &[&str],
    tests: &HashSet<String>,
    offences: &mut Vec<String>,
) {
    for test in covering.iter().filter(|test| !tests.contains(**test)) {
        offences.push(format!("{LIST}: there is no test `{test}` for `{cell}`"));
    }
}

fn table() -> String {
    let mut table = String::from("| output | what happens | covered by |\n|---|---|---|\n");
    for (output, cells) in &OUTPUTS {
        for (case, cell) in CASES.iter().zip(cells) {
            let shown = match cell {
                Tested(tests) => {
                    let tests: Vec<String> = tests.iter().map(|test| format!("`{test}`")).collect();
                    tests.join(", ")
                }
                Never(why) => format!("– {why}"),
            };
            writeln!(table, "| `output.{output}` | {case} | {shown} |")
                .expect("a string takes everything");
        }
    }
    table
}

/// The names of all tests.
fn tests() -> Result<HashSet<String>> {
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
    fn a_case_has_its_tests_or_a_reason() {
        let table = table();
        assert_eq!(table.lines().count(), 2 + OUTPUTS.len() * CASES.len());
        assert!(table.contains(
            "| `output.logstash` | an event or a request is too large for it | – a server has no way to say so |"
        ));
        assert!(table.contains("| `output.file` | it is slow | – "), "{table}");
    }
}
