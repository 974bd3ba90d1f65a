//! Every option of an output has a test and a line in the documentation, as in `options.rs`.

use super::elasticsearch_options::{ELASTICSEARCH, SETUP, SSL};
use super::kafka_options::KAFKA;
use super::options::tell_missing;
use super::otlp_options::OTLP;
use super::s3_options::S3;
use super::tables::Page;
use anyhow::Result;
use std::collections::HashSet;
use std::fmt::Write as _;

/// The page with the table.
const PAGE: &str = "docs/outputs.md";
const BEGIN: &str =
    "<!-- written by `cargo xtask tidy --update` from xtask/src/tidy/output_options.rs -->";

/// An option and the tests that cover it: how it is read, and what it does.
pub(super) type Covered = (&'static str, &'static [&'static str]);

/// Stands for every output; its options are explained before the first section.
const ALL: &str = "output.*";

/// Heads of the sections of the page, with the options that each explains.
const OUTPUTS: &[(&str, &[Covered])] = &[
    (ALL, COMMON),
    ("output.elasticsearch", ELASTICSEARCH),
    ("output.logstash", LOGSTASH),
    ("output.kafka", KAFKA),
    ("output.otlp", OTLP),
    ("output.redis", REDIS),
    ("output.s3", S3),
    ("output.file", FILE),
    ("output.console", CONSOLE),
    (
        "output.discard",
        &[("enabled", &["the_enabled_output_is_built", "discard_takes_everything"])],
    ),
    ("setup", SETUP),
    ("ssl", SSL),
    ("codec", CODEC),
];

const LOGSTASH: &[Covered] = &[
    ("hosts", &["logstash_settings_are_read", "logstash_keeps_the_contract_of_outputs"]),
    ("workers", &["logstash_settings_are_read", "load_is_balanced_over_all_hosts_that_are_up"]),
    ("worker", &["logstash_settings_are_read"]),
    (
        "loadbalance",
        &[
            "logstash_settings_are_read",
            "load_is_balanced_over_all_hosts_that_are_up",
            "without_load_balancing_another_host_takes_over_after_a_failure",
        ],
    ),
    (
        "bulk_max_size",
        &[
            "logstash_settings_are_read",
            "a_good_lumberjack_server_gets_everything_once_and_in_order",
            "slow_start_begins_with_small_windows",
        ],
    ),
    (
        "slow_start",
        &[
            "logstash_settings_are_read",
            "slow_start_begins_with_small_windows",
            "windows_grow_by_half_and_shrink_to_half",
        ],
    ),
    (
        "pipelining",
        &[
            "logstash_settings_are_read",
            "as_many_windows_as_pipelining_says_are_under_way",
            "partial_acknowledgements_settle_a_beginning_and_the_rest_comes_again",
        ],
    ),
    ("compression_level", &["logstash_settings_are_read", "a_window_is_what_the_protocol_says"]),
    (
        "escape_html",
        &["logstash_settings_are_read", "lumberjack_documents_have_the_metadata_of_filebeat"],
    ),
    (
        "index",
        &["logstash_settings_are_read", "lumberjack_documents_have_the_metadata_of_filebeat"],
    ),
    (
        "timeout",
        &[
            "logstash_settings_have_filebeats_defaults",
            "keep_alives_are_waited_with_and_silence_is_not",
        ],
    ),
    (
        "ttl",
        &[
            "logstash_settings_are_read",
            "a_connection_that_outlives_its_ttl_is_replaced_between_windows",
        ],
    ),
    (
        "backoff.init",
        &[
            "logstash_settings_are_read",
            "waits_double_up_to_the_bound_and_start_again_after_success",
        ],
    ),
    (
        "backoff.max",
        &[
            "logstash_settings_are_read",
            "waits_double_up_to_the_bound_and_start_again_after_success",
        ],
    ),
    (
        "proxy_url",
        &[
            "proxies_are_read_and_others_than_socks5_refused",
            "the_proxy_is_asked_as_the_standard_says",
            "lumberjack_over_tls_and_through_a_proxy_of_socks",
        ],
    ),
    (
        "proxy_use_local_resolver",
        &[
            "the_proxy_is_asked_as_the_standard_says",
            "lumberjack_over_tls_and_through_a_proxy_of_socks",
        ],
    ),
    (
        "ssl.*",
        &[
            "windows_go_through_tls_with_a_client_certificate",
            "logstash_keeps_the_contract_of_outputs",
        ],
    ),
];

/// Those that stand at the head of the page.
const COMMON: &[Covered] = &[
    ("enabled", &["the_enabled_output_is_built", "anything_but_one_output_is_a_mistake"]),
    (
        "queue",
        &[
            "the_enabled_output_is_built",
            "a_list_has_ids_and_each_its_own_queue_and_dead_letters",
            "what_is_wrong_with_a_list_is_told",
        ],
    ),
    (
        "max_retries",
        &[
            "mistakes_are_told_with_their_place",
            "logstash_settings_are_read",
            "kafka_mistakes_are_told",
            "redis_settings_are_read",
        ],
    ),
];

const REDIS: &[Covered] = &[
    (
        "hosts",
        &["redis_settings_are_read", "credentials_and_the_database_are_told_before_anything_else"],
    ),
    (
        "index",
        &[
            "redis_settings_are_read",
            "one_list_gets_one_command_and_everything_else_one_for_each_event",
        ],
    ),
    (
        "key",
        &[
            "redis_settings_are_read",
            "events_go_to_the_lists_and_channels_that_the_rules_say",
            "events_without_a_key_or_a_text_go_to_the_dead_letters",
        ],
    ),
    (
        "keys",
        &[
            "the_first_rule_that_gives_a_name_wins",
            "events_go_to_the_lists_and_channels_that_the_rules_say",
        ],
    ),
    (
        "datatype",
        &["redis_settings_are_read", "events_go_to_the_lists_and_channels_that_the_rules_say"],
    ),
    (
        "codec.*",
        &["redis_settings_are_read", "events_go_to_the_lists_and_channels_that_the_rules_say"],
    ),
    ("username", &["credentials_and_the_database_are_told_before_anything_else"]),
    (
        "password",
        &[
            "credentials_and_the_database_are_told_before_anything_else",
            "redis_keeps_the_contract_of_outputs",
        ],
    ),
    ("db", &["credentials_and_the_database_are_told_before_anything_else"]),
    ("workers", &["redis_settings_are_read", "redis_load_is_balanced_or_another_host_takes_over"]),
    ("worker", &["redis_settings_are_read"]),
    (
        "loadbalance",
        &["redis_settings_are_read", "redis_load_is_balanced_or_another_host_takes_over"],
    ),
    (
        "bulk_max_size",
        &[
            "redis_settings_are_read",
            "a_list_gets_all_events_of_a_request_in_one_command_and_in_order",
        ],
    ),
    ("timeout", &["redis_settings_are_read", "silence_is_not_waited_with_for_ever"]),
    (
        "backoff.init",
        &["redis_settings_are_read", "waits_double_up_to_the_bound_and_start_again_after_success"],
    ),
    (
        "backoff.max",
        &["redis_settings_are_read", "waits_double_up_to_the_bound_and_start_again_after_success"],
    ),
    ("proxy_url", &["redis_settings_are_read", "redis_over_tls_and_through_a_proxy_of_socks"]),
    ("proxy_use_local_resolver", &["the_proxy_is_asked_as_the_standard_says"]),
    (
        "ssl.*",
        &["redis_keeps_the_contract_of_outputs", "redis_over_tls_and_through_a_proxy_of_socks"],
    ),
];

const FILE: &[Covered] = &[
    ("path", &["the_directory_has_the_date_of_the_start", "anything_but_one_output_is_a_mistake"]),
    ("filename", &["the_file_output_is_read", "only_our_own_names_are_ours"]),
    (
        "rotate_every_kb",
        &[
            "the_file_output_is_read",
            "one_batch_fills_as_many_files_as_it_needs_and_no_line_is_cut",
            "a_line_longer_than_a_file_is_refused_and_the_others_are_written",
        ],
    ),
    (
        "number_of_files",
        &[
            "the_file_output_is_read",
            "names_carry_the_date_and_a_number_and_old_files_go",
            "old_files_go_at_a_start_too",
        ],
    ),
    (
        "permissions",
        &[
            "the_file_output_is_read",
            "directories_are_open_to_those_who_may_read_the_files",
            "new_files_have_the_permissions_that_are_asked_for",
        ],
    ),
    (
        "rotate_on_startup",
        &[
            "the_file_output_is_read",
            "a_start_rotates_or_continues_as_set",
            "half_a_line_of_a_crash_and_a_link_are_left_alone",
        ],
    ),
    (
        "codec.*",
        &["the_file_output_is_read", "the_file_output_writes_every_event_once_over_many_files"],
    ),
];

const CONSOLE: &[Covered] = &[
    (
        "pretty",
        &["the_console_is_read", "the_console_prints_events_over_several_lines_if_asked_to"],
    ),
    (
        "codec.*",
        &[
            "the_console_is_read",
            "the_console_prints_format_strings_and_refuses_events_that_have_none",
        ],
    ),
    (
        "bulk_max_size",
        &["the_console_is_read", "a_console_without_a_reader_ends_and_settles_nothing_unwritten"],
    ),
];

const CODEC: &[Covered] = &[
    (
        "codec.json.pretty",
        &[
            "the_document_has_metadata_and_html_only_if_it_may",
            "pretty_json_is_indented_and_texts_are_left_alone",
        ],
    ),
    ("codec.json.escape_html", &["the_document_has_metadata_and_html_only_if_it_may"]),
    ("codec.format.string", &["a_format_string_makes_a_line_or_says_what_is_missing"]),
];

/// Checks the list against the tests and the page; with `update` the page's table is written anew.
pub(super) fn check(
    update: bool,
    tests: &HashSet<String>,
    offences: &mut Vec<String>,
) -> Result<()> {
    let page = Page::read(PAGE, BEGIN)?;
    for (output, options) in OUTPUTS {
        let explained = section(&page.before, output);
        for (option, covering) in *options {
            if !explained.contains(&format!("`{option}`")) {
                offences.push(format!("{PAGE}: does not explain `{option}` of `{output}`"));
            }
            tell_missing("xtask/src/tidy/output_options.rs", option, covering, tests, offences);
        }
    }
    page.compare(&table(), update, offences)
}

/// What stands under the head of an output.
fn section<'a>(page: &'a str, output: &str) -> &'a str {
    if output == ALL {
        return page.split_once("\n## ").map_or(page, |(head, _)| head);
    }
    let head = format!("\n## `{output}`\n");
    let Some((_, behind)) = page.split_once(&head) else { return "" };
    behind.split_once("\n## ").map_or(behind, |(section, _)| section)
}

fn table() -> String {
    let mut table = String::from("| output | option | covered by |\n|---|---|---|\n");
    for (output, options) in OUTPUTS {
        for (option, tests) in *options {
            let tests: Vec<String> = tests.iter().map(|test| format!("`{test}`")).collect();
            writeln!(table, "| `{output}` | `{option}` | {} |", tests.join(", "))
                .expect("a string takes everything");
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_ends_where_the_next_one_begins() {
        let page = "a\n## `b`\nof b\n\n## `c`\nof c\n";
        assert_eq!((section(page, "b"), section(page, "c")), ("of b\n", "of c\n"));
        assert_eq!((section(page, "d"), section(page, ALL)), ("", "a"));
        assert!(table().contains("| `output.redis` | `keys` |"));
    }
}
