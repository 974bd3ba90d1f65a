//! The options of `output.otlp`, with their tests.

use super::output_options::Covered;

const WAITS: &str = "waits_double_up_to_the_bound_and_start_again_after_success";
const PROXIES: &str = "otlp_goes_through_tls_with_a_client_certificate_and_through_proxies";

/// Each option with the tests that cover it: how it is read, and what it does.
pub(super) const OTLP: &[Covered] = &[
    (
        "hosts",
        &[
            "hosts_are_urls_or_names_with_the_ports_of_the_protocol",
            "otlp_over_grpc_keeps_the_contract_of_outputs",
            "otlp_over_http_keeps_the_contract_of_outputs",
        ],
    ),
    ("protocol", &["otlp_settings_are_read", "requests_are_what_receivers_expect_in_every_codec"]),
    ("workers", &["otlp_settings_are_read", "logs_are_balanced_over_all_collectors_that_are_up"]),
    ("worker", &["otlp_settings_are_read"]),
    (
        "loadbalance",
        &["otlp_settings_are_read", "logs_are_balanced_over_all_collectors_that_are_up"],
    ),
    (
        "bulk_max_size",
        &[
            "otlp_settings_are_read",
            "requests_end_at_their_bounds_and_together_hold_every_event",
            "requests_are_what_receivers_expect_in_every_codec",
        ],
    ),
    (
        "bulk_max_bytes",
        &[
            "otlp_settings_are_read",
            "requests_end_at_their_bounds_and_together_hold_every_event",
            "a_collector_that_takes_only_small_requests_gets_everything",
        ],
    ),
    (
        "compression",
        &[
            "otlp_settings_are_read",
            "requests_are_what_receivers_expect_in_every_codec",
            "the_collector_itself_takes_every_event_once",
        ],
    ),
    ("headers", &["otlp_settings_are_read", "requests_are_what_receivers_expect_in_every_codec"]),
    ("resource_fields", &["otlp_settings_are_read", "attributes_of_the_settings_win_over_fields"]),
    (
        "resource_attributes",
        &[
            "otlp_settings_are_read",
            "attributes_of_the_settings_win_over_fields",
            "the_collector_itself_understands_fields_levels_and_ids",
        ],
    ),
    (
        "timeout",
        &["otlp_settings_have_their_defaults", "otlp_over_grpc_keeps_the_contract_of_outputs"],
    ),
    ("backoff.init", &["otlp_settings_are_read", WAITS]),
    ("backoff.max", &["otlp_settings_are_read", WAITS]),
    (
        "proxy_url",
        &[
            "otlp_settings_are_read",
            PROXIES,
            "a_collector_is_reached_over_tls_and_through_a_proxy_of_socks",
        ],
    ),
    ("proxy_headers", &["otlp_settings_are_read", PROXIES]),
    (
        "proxy_disable",
        &["otlp_settings_have_their_defaults", "the_settings_win_over_the_environment"],
    ),
    (
        "ssl.*",
        &[
            PROXIES,
            "otlp_over_grpc_keeps_the_contract_of_outputs",
            "a_collector_is_reached_over_tls_and_through_a_proxy_of_socks",
        ],
    ),
];
