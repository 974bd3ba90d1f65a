//! The options of `output.s3`, with the tests that cover them: a part of `output_options.rs`.

use super::output_options::Covered;

pub(super) const S3: &[Covered] = &[
    ("bucket", &["s3_mistakes_are_told", "a_bucket_has_its_host_or_its_path"]),
    (
        "region",
        &[
            "credentials_and_region_of_the_environment_hold_where_nothing_is_set",
            "the_examples_of_s3_are_signed_as_it_says",
        ],
    ),
    ("endpoint", &["s3_mistakes_are_told", "a_bucket_has_its_host_or_its_path"]),
    ("path_style", &["a_bucket_has_its_host_or_its_path"]),
    (
        "key_prefix",
        &[
            "events_with_the_same_prefix_share_objects_in_their_order",
            "keys_have_no_parts_that_a_server_could_take_for_something_else",
            "events_without_a_key_or_a_text_go_to_the_dead_letters_alone",
        ],
    ),
    (
        "filename_extension",
        &["s3_settings_are_read", "a_request_has_what_the_settings_say_of_its_object"],
    ),
    (
        "access_key_id",
        &[
            "a_role_is_found_in_the_environment_behind_what_is_set",
            "a_role_signs_with_what_is_given_out_until_it_runs_out",
            "credentials_and_region_of_the_environment_hold_where_nothing_is_set",
            "s3_keeps_the_contract_of_outputs",
        ],
    ),
    ("secret_access_key", &["s3_mistakes_are_told", "s3_keeps_the_contract_of_outputs"]),
    (
        "session_token",
        &[
            "s3_mistakes_are_told",
            "a_request_has_what_the_settings_say_of_its_object",
            "what_the_server_does_not_know_any_more_is_asked_for_again",
        ],
    ),
    (
        "shared_credential_file",
        &[
            "credentials_and_region_of_the_environment_hold_where_nothing_is_set",
            "a_file_with_credentials_is_read_again_for_each_request",
        ],
    ),
    (
        "credential_profile_name",
        &[
            "a_profile_of_a_shared_file_is_found_or_told_why_not",
            "a_file_with_credentials_is_read_again_for_each_request",
        ],
    ),
    (
        "codec",
        &[
            "s3_settings_are_read",
            "events_with_the_same_prefix_share_objects_in_their_order",
            "versitygw_takes_every_event_once_in_every_form",
        ],
    ),
    (
        "compression",
        &[
            "s3_settings_are_read",
            "objects_of_every_codec_come_out_as_they_went_in",
            "versitygw_takes_every_event_once_in_every_form",
        ],
    ),
    (
        "compression_level",
        &["s3_mistakes_are_told", "objects_of_every_codec_come_out_as_they_went_in"],
    ),
    ("batch.max_bytes", &["s3_settings_are_read", "an_object_is_closed_by_events_bytes_or_age"]),
    ("batch.max_events", &["s3_settings_are_read", "an_object_is_closed_by_events_bytes_or_age"]),
    (
        "batch.timeout",
        &[
            "an_object_is_closed_by_events_bytes_or_age",
            "a_full_queue_closes_objects_so_that_nothing_waits_for_ever",
            "who_keeps_events_is_hurried_by_a_full_queue_and_by_the_end",
        ],
    ),
    (
        "storage_class",
        &["s3_mistakes_are_told", "a_request_has_what_the_settings_say_of_its_object"],
    ),
    ("acl", &["s3_mistakes_are_told", "a_request_has_what_the_settings_say_of_its_object"]),
    (
        "server_side_encryption",
        &["s3_mistakes_are_told", "a_request_has_what_the_settings_say_of_its_object"],
    ),
    (
        "ssekms_key_id",
        &["s3_mistakes_are_told", "a_request_has_what_the_settings_say_of_its_object"],
    ),
    ("tags", &["s3_mistakes_are_told", "a_request_has_what_the_settings_say_of_its_object"]),
    ("workers", &["s3_settings_are_read", "versitygw_takes_every_event_once_in_every_form"]),
    ("worker", &["s3_settings_are_read", "a_connection_that_is_cut_anywhere_doubles_nothing"]),
    ("timeout", &["s3_settings_have_the_defaults_of_the_page", "s3_keeps_the_contract_of_outputs"]),
    (
        "backoff.init",
        &["s3_settings_are_read", "waits_double_up_to_the_bound_and_start_again_after_success"],
    ),
    (
        "backoff.max",
        &["s3_settings_are_read", "waits_double_up_to_the_bound_and_start_again_after_success"],
    ),
    (
        "proxy_url",
        &[
            "the_settings_win_over_the_environment",
            "objects_go_through_a_proxy_with_and_without_tls",
        ],
    ),
    ("proxy_headers", &["events_go_through_a_proxy_with_and_without_tls"]),
    ("proxy_disable", &["the_settings_win_over_the_environment"]),
    ("ssl.*", &["s3_mistakes_are_told", "versitygw_over_tls_knows_its_name_and_authority"]),
];
