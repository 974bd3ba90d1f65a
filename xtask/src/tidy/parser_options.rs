//! Which test covers which option of the parsers of file inputs, and of how their bytes become lines.

/// The options by their parser.
pub(super) const PARSERS: &[(&str, &[&str])] = &[
    ("encoding", &["encodings_and_terminators_are_read", "lines_are_read_in_other_encodings"]),
    ("line_terminator", &["encodings_and_terminators_are_read", "lines_end_at_other_terminators"]),
    (
        "parsers",
        &[
            "parsers_keep_their_order_and_unknown_ones_are_told",
            "messages_go_from_parser_to_parser",
        ],
    ),
    (
        "multiline.type",
        &[
            "multiline_is_read_with_filebeats_defaults",
            "mistakes_in_multiline_are_told",
            "lines_that_match_in_a_row_are_joined",
        ],
    ),
    (
        "multiline.pattern",
        &[
            "multiline_is_read_with_filebeats_defaults",
            "lines_are_grouped_by_a_pattern_as_filebeat_does",
        ],
    ),
    (
        "multiline.negate",
        &[
            "multiline_is_read_with_filebeats_defaults",
            "lines_are_grouped_by_a_pattern_as_filebeat_does",
        ],
    ),
    (
        "multiline.match",
        &[
            "multiline_is_read_with_filebeats_defaults",
            "lines_are_grouped_by_a_pattern_as_filebeat_does",
        ],
    ),
    (
        "multiline.flush_pattern",
        &[
            "multiline_is_read_with_filebeats_defaults",
            "a_flush_pattern_ends_an_event_whatever_the_pattern_says",
        ],
    ),
    ("multiline.count_lines", &["multiline_is_read_with_filebeats_defaults", "lines_are_counted"]),
    (
        "multiline.max_lines",
        &[
            "multiline_is_read_with_filebeats_defaults",
            "what_is_beyond_the_bounds_is_discarded_and_flagged",
        ],
    ),
    (
        "multiline.timeout",
        &[
            "multiline_is_read_with_filebeats_defaults",
            "a_group_is_given_out_when_nothing_has_come_for_as_long_as_the_timeout",
        ],
    ),
    (
        "multiline.skip_newline",
        &["multiline_is_read_with_filebeats_defaults", "lines_can_be_joined_without_a_line_feed"],
    ),
    (
        "container.stream",
        &[
            "container_is_read_and_a_stream_has_keys_of_its_own",
            "partial_records_of_two_streams_are_joined_apart",
        ],
    ),
    (
        "container.format",
        &[
            "container_is_read_and_a_stream_has_keys_of_its_own",
            "one_format_does_not_read_the_other",
            "records_of_containers_become_their_text",
        ],
    ),
    (
        "include_message.patterns",
        &["the_other_parsers_are_read", "messages_are_included_and_filtered_behind_the_parsers"],
    ),
    ("ndjson.target", &["the_other_parsers_are_read", "fields_go_to_the_root_or_to_the_target"]),
    (
        "ndjson.overwrite_keys",
        &["the_other_parsers_are_read", "what_the_event_has_stays_unless_keys_overwrite_it"],
    ),
    ("ndjson.expand_keys", &["the_other_parsers_are_read", "keys_with_dots_become_objects"]),
    (
        "ndjson.add_error_key",
        &["the_other_parsers_are_read", "lines_that_are_no_object_stay_as_they_are"],
    ),
    ("ndjson.message_key", &["the_other_parsers_are_read", "the_message_key_becomes_the_message"]),
    ("ndjson.document_id", &["the_other_parsers_are_read", "the_document_id_is_moved"]),
    (
        "ndjson.ignore_decoding_error",
        &["the_other_parsers_are_read", "messages_go_from_parser_to_parser"],
    ),
    (
        "syslog.format",
        &["the_other_parsers_are_read", "bsd_messages_are_read", "ietf_messages_are_read"],
    ),
    (
        "syslog.timezone",
        &["the_other_parsers_are_read", "times_are_of_the_zone_and_of_the_year_of_the_clock"],
    ),
    ("syslog.log_errors", &["the_other_parsers_are_read"]),
    (
        "syslog.add_error_key",
        &["the_other_parsers_are_read", "what_is_no_message_stays_as_it_is_with_a_note"],
    ),
    ("auditd.mode", &["the_other_parsers_are_read"]),
    ("auditd.log_errors", &["the_other_parsers_are_read"]),
    ("auditd.add_error_key", &["the_other_parsers_are_read", "what_is_no_record_is_noted"]),
    ("json.*", &["deprecated_inputs_have_the_same_under_other_names"]),
    ("multiline.*", &["deprecated_inputs_have_the_same_under_other_names"]),
];
