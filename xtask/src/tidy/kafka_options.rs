//! The options of `output.kafka`, with the tests that cover them: a part of `output_options.rs`.

use super::output_options::Covered;

pub(super) const KAFKA: &[Covered] = &[
    ("hosts", &["kafka_hosts_have_a_port", "every_way_to_connect_brings_all_lines"]),
    (
        "topic",
        &[
            "names_keep_their_case_and_must_be_names",
            "events_choose_their_topics_and_wrong_names_go_to_the_dead_letters",
        ],
    ),
    (
        "topics",
        &[
            "the_first_topic_that_a_rule_gives_wins",
            "events_choose_their_topics_and_wrong_names_go_to_the_dead_letters",
        ],
    ),
    (
        "key",
        &[
            "a_record_without_a_key_goes_anywhere_and_one_with_a_key_to_its_place",
            "records_have_the_parts_that_were_asked_for",
        ],
    ),
    (
        "partition.hash.hash",
        &["partitions_are_those_of_filebeat", "partition_settings_are_those_of_filebeat"],
    ),
    ("partition.hash.random", &["an_event_without_the_field_goes_anywhere_or_is_refused"]),
    (
        "partition.random.group_events",
        &[
            "random_changes_only_after_each_group_and_reaches_all",
            "every_way_to_send_brings_all_lines",
        ],
    ),
    (
        "partition.round_robin.group_events",
        &["round_robin_goes_on_after_each_group", "every_way_to_send_brings_all_lines"],
    ),
    (
        "partition.hash.reachable_only",
        &[
            "partitions_without_a_leader_count_unless_only_reachable_ones_do",
            "every_way_to_send_brings_all_lines",
        ],
    ),
    (
        "partition.random.reachable_only",
        &[
            "partition_settings_are_those_of_filebeat",
            "partitions_without_a_leader_count_unless_only_reachable_ones_do",
        ],
    ),
    (
        "partition.round_robin.reachable_only",
        &[
            "partition_settings_are_those_of_filebeat",
            "only_reachable_partitions_are_used_if_that_is_wanted",
        ],
    ),
    ("worker", &["kafka_mistakes_are_told"]),
    ("loadbalance", &["kafka_mistakes_are_told"]),
    ("kerberos.*", &["kafka_mistakes_are_told"]),
    ("headers", &["kafka_mistakes_are_told", "records_have_the_parts_that_were_asked_for"]),
    ("client_id", &["kafka_settings_are_those_of_filebeat", "every_way_to_send_brings_all_lines"]),
    ("codec", &["records_have_the_parts_that_were_asked_for"]),
    (
        "version",
        &["versions_of_filebeat_are_understood", "brokers_that_are_too_old_are_told_apart"],
    ),
    ("username", &["every_way_to_connect_brings_all_lines", "who_cannot_connect_keeps_everything"]),
    ("password", &["every_way_to_connect_brings_all_lines", "who_cannot_connect_keeps_everything"]),
    (
        "sasl.mechanism",
        &["every_way_to_connect_brings_all_lines", "the_examples_of_the_standards_come_out"],
    ),
    (
        "bulk_max_size",
        &["kafka_settings_are_those_of_filebeat", "every_way_to_send_brings_all_lines"],
    ),
    (
        "bulk_flush_frequency",
        &["kafka_settings_are_those_of_filebeat", "every_way_to_send_brings_all_lines"],
    ),
    ("max_message_bytes", &["what_is_too_large_goes_to_the_dead_letters_and_the_rest_arrives"]),
    (
        "compression",
        &["what_every_codec_packs_comes_out_as_it_went_in", "every_way_to_send_brings_all_lines"],
    ),
    ("compression_level", &["kafka_mistakes_are_told", "every_way_to_send_brings_all_lines"]),
    ("required_acks", &["kafka_mistakes_are_told", "every_way_to_send_brings_all_lines"]),
    (
        "enable_idempotence",
        &[
            "a_bad_network_loses_nothing_and_keeps_the_order",
            "an_idempotent_producer_sends_what_was_cut_off_once_and_in_order",
            "a_producer_that_is_not_known_any_more_begins_anew",
        ],
    ),
    ("timeout", &["kafka_settings_are_those_of_filebeat", "who_cannot_connect_keeps_everything"]),
    (
        "broker_timeout",
        &["kafka_settings_are_those_of_filebeat", "every_way_to_send_brings_all_lines"],
    ),
    (
        "keep_alive",
        &["kafka_words_are_understood_as_in_filebeat", "every_way_to_send_brings_all_lines"],
    ),
    (
        "channel_buffer_size",
        &["kafka_words_are_understood_as_in_filebeat", "every_way_to_send_brings_all_lines"],
    ),
    (
        "metadata.refresh_frequency",
        &["kafka_settings_are_those_of_filebeat", "every_way_to_send_brings_all_lines"],
    ),
    (
        "metadata.full",
        &["kafka_settings_are_those_of_filebeat", "every_way_to_send_brings_all_lines"],
    ),
    (
        "metadata.retry.max",
        &["kafka_settings_are_those_of_filebeat", "a_topic_is_asked_for_until_it_is_there"],
    ),
    (
        "metadata.retry.backoff",
        &["kafka_settings_are_those_of_filebeat", "who_cannot_connect_keeps_everything"],
    ),
    (
        "backoff.init",
        &[
            "kafka_settings_are_those_of_filebeat",
            "a_broker_that_is_started_again_gets_all_lines_in_order",
        ],
    ),
    (
        "backoff.max",
        &[
            "kafka_settings_are_those_of_filebeat",
            "a_broker_that_is_started_again_gets_all_lines_in_order",
        ],
    ),
    ("ssl.*", &["every_way_to_connect_brings_all_lines", "who_cannot_connect_keeps_everything"]),
];
