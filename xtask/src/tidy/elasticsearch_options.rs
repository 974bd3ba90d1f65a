//! The options of `output.elasticsearch` and of `ssl`, with the tests that cover them: a part of `output_options.rs`.

use super::output_options::Covered;

pub(super) const ELASTICSEARCH: &[Covered] = &[
    (
        "hosts",
        &["hosts_are_read_as_filebeat_reads_them", "elasticsearch_keeps_the_contract_of_outputs"],
    ),
    ("protocol", &["hosts_are_read_as_filebeat_reads_them", "settings_are_read"]),
    ("path", &["hosts_are_read_as_filebeat_reads_them", "requests_look_like_filebeats"]),
    ("cloud.id", &["a_cloud_id_names_elasticsearch", "a_cloud_id_stands_over_the_output"]),
    ("cloud.auth", &["a_cloud_id_stands_over_the_output"]),
    ("worker", &["settings_are_read", "auto_begins_small_and_bounds_the_queue_in_bytes"]),
    ("workers", &["settings_are_read", "several_hosts_and_workers_share_the_work"]),
    ("loadbalance", &["settings_are_read", "a_dead_host_holds_nothing_back"]),
    ("bulk_max_size", &["settings_are_read", "a_good_server_gets_everything_once_and_in_order"]),
    (
        "kerberos.*",
        &[
            "kerberos_is_a_feature_of_the_build",
            "every_request_shows_a_ticket_of_its_own",
            "elasticsearch_knows_its_user_by_keys_and_by_password",
        ],
    ),
    (
        "exactly_once",
        &[
            "an_id_is_the_same_for_the_same_line_at_the_same_place_only",
            "a_request_whose_answer_is_lost_is_taken_exactly_once",
        ],
    ),
    ("bulk_max_bytes", &["settings_are_read", "an_answer_before_the_body_was_read_is_heard"]),
    ("compression_level", &["settings_are_read", "bodies_of_every_size_come_out_as_they_went_in"]),
    ("escape_html", &["settings_are_read", "documents_have_html_escaped_only_if_it_is_asked_for"]),
    ("username", &["the_credentials_of_a_url_win", "elasticsearch_keeps_the_contract_of_outputs"]),
    (
        "password",
        &["the_credentials_of_a_url_win", "the_secure_server_knows_us_by_password_and_by_api_key"],
    ),
    (
        "api_key",
        &["the_credentials_of_a_url_win", "the_secure_server_knows_us_by_password_and_by_api_key"],
    ),
    ("parameters", &["settings_are_read", "requests_look_like_filebeats"]),
    ("headers", &["settings_are_read", "requests_look_like_filebeats"]),
    ("index", &["the_index_comes_from_metadata_before_the_setting_and_is_lower_cased"]),
    (
        "indices",
        &["settings_are_read", "rules_choose_index_and_pipeline_before_the_single_settings"],
    ),
    ("pipeline", &["pipeline_id_and_operation_are_written"]),
    (
        "pipelines",
        &["settings_are_read", "rules_choose_index_and_pipeline_before_the_single_settings"],
    ),
    ("timeout", &["settings_are_read", "broken_connections_and_answers_are_survived"]),
    (
        "backoff.init",
        &["settings_are_read", "waits_double_up_to_the_bound_and_start_again_after_success"],
    ),
    (
        "backoff.max",
        &["settings_are_read", "waits_double_up_to_the_bound_and_start_again_after_success"],
    ),
    ("idle_connection_timeout", &["an_idle_connection_is_closed_and_opened_again"]),
    (
        "allow_older_versions",
        &["settings_are_read", "a_server_that_does_not_greet_gets_nothing_until_it_does"],
    ),
    (
        "non_indexable_policy",
        &[
            "settings_are_read",
            "refused_events_go_to_the_index_for_them_once",
            "full_or_missing_dead_letters_drop_and_count",
        ],
    ),
    ("preset", &["a_preset_wins_and_says_over_what"]),
    (
        "proxy_url",
        &[
            "the_settings_win_over_the_environment",
            "events_go_through_a_proxy_with_and_without_tls",
        ],
    ),
    ("proxy_headers", &["events_go_through_a_proxy_with_and_without_tls"]),
    ("proxy_disable", &["the_settings_win_over_the_environment"]),
    ("ssl.*", &["events_go_through_tls", "elasticsearch_keeps_the_contract_of_outputs"]),
];

pub(super) const SSL: &[Covered] = &[
    ("ssl.enabled", &["anything_but_one_output_is_a_mistake"]),
    (
        "ssl.verification_mode",
        &["settings_are_read", "each_verification_mode_accepts_what_it_should"],
    ),
    (
        "ssl.certificate_authorities",
        &[
            "each_verification_mode_accepts_what_it_should",
            "certificates_are_read_again_when_they_change",
        ],
    ),
    (
        "ssl.ca_trusted_fingerprint",
        &["settings_are_read", "pins_and_fingerprints_are_checked_on_what_the_server_shows"],
    ),
    (
        "ssl.ca_sha256",
        &["settings_are_read", "pins_and_fingerprints_are_checked_on_what_the_server_shows"],
    ),
    ("ssl.certificate", &["a_client_certificate_is_shown_when_asked_for"]),
    ("ssl.key", &["a_client_certificate_is_shown_when_asked_for"]),
    (
        "ssl.key_passphrase",
        &[
            "keys_are_decrypted_whatever_encrypted_them",
            "a_client_certificate_is_shown_when_asked_for",
        ],
    ),
    ("ssl.key_passphrase_path", &["a_client_certificate_is_shown_when_asked_for"]),
    ("ssl.supported_protocols", &["settings_are_read", "only_the_allowed_protocols_are_spoken"]),
    (
        "ssl.cipher_suites",
        &["mistakes_are_told_with_their_place", "only_the_allowed_suites_and_curves_are_spoken"],
    ),
    (
        "ssl.curve_types",
        &["mistakes_are_told_with_their_place", "only_the_allowed_suites_and_curves_are_spoken"],
    ),
    ("ssl.renegotiation", &["mistakes_are_told_with_their_place"]),
];

pub(super) const SETUP: &[Covered] = &[
    (
        "setup.template.enabled",
        &[
            "files_replace_fields_templates_and_policies",
            "what_is_missing_is_loaded_and_what_is_there_stays",
        ],
    ),
    (
        "setup.template.name",
        &["without_settings_the_template_is_filebeats", "settings_of_the_template_stand_over_ours"],
    ),
    (
        "setup.template.pattern",
        &["without_settings_the_template_is_filebeats", "settings_of_the_template_stand_over_ours"],
    ),
    (
        "setup.template.overwrite",
        &[
            "settings_of_the_template_stand_over_ours",
            "what_is_missing_is_loaded_and_what_is_there_stays",
        ],
    ),
    (
        "setup.template.priority",
        &["without_settings_the_template_is_filebeats", "settings_of_the_template_stand_over_ours"],
    ),
    ("setup.template.type", &["mistakes_in_setup_are_told"]),
    (
        "setup.template.fields",
        &["files_replace_fields_templates_and_policies", "fields_become_a_mapping"],
    ),
    (
        "setup.template.append_fields",
        &["settings_of_the_template_stand_over_ours", "mistakes_in_setup_are_told"],
    ),
    ("setup.template.settings.index", &["settings_of_the_template_stand_over_ours"]),
    ("setup.template.settings._source", &["settings_of_the_template_stand_over_ours"]),
    (
        "setup.template.json.enabled",
        &["files_replace_fields_templates_and_policies", "mistakes_in_setup_are_told"],
    ),
    (
        "setup.template.json.path",
        &["files_replace_fields_templates_and_policies", "mistakes_in_setup_are_told"],
    ),
    ("setup.template.json.name", &["files_replace_fields_templates_and_policies"]),
    ("setup.template.json.data_stream", &["mistakes_in_setup_are_told"]),
    (
        "setup.ilm.enabled",
        &[
            "what_is_missing_is_loaded_and_what_is_there_stays",
            "each_kind_of_server_gets_what_it_can_have",
            "without_lifecycles_the_index_has_none",
        ],
    ),
    (
        "setup.ilm.policy_name",
        &[
            "without_settings_the_template_is_filebeats",
            "settings_of_the_template_stand_over_ours",
            "the_first_event_goes_to_a_data_stream_with_the_policy",
        ],
    ),
    (
        "setup.ilm.policy_file",
        &[
            "files_replace_fields_templates_and_policies",
            "mistakes_in_setup_are_told",
            "a_policy_of_a_file_is_loaded_or_what_is_wrong_with_it_is_told",
        ],
    ),
    (
        "setup.ilm.check_exists",
        &[
            "settings_of_the_template_stand_over_ours",
            "a_server_that_refuses_says_what_is_needed",
            "a_policy_that_is_there_is_replaced_only_if_that_is_asked_for",
        ],
    ),
    (
        "setup.ilm.overwrite",
        &[
            "settings_of_the_template_stand_over_ours",
            "what_is_missing_is_loaded_and_what_is_there_stays",
            "a_policy_that_is_there_is_replaced_only_if_that_is_asked_for",
        ],
    ),
    ("setup.dsl.data_stream_pattern", &["mistakes_in_setup_are_told"]),
    ("setup.dsl.check_exists", &["mistakes_in_setup_are_told"]),
    (
        "setup.dsl.enabled",
        &["settings_of_the_template_stand_over_ours", "each_kind_of_server_gets_what_it_can_have"],
    ),
    ("setup.dsl.policy_file", &["each_kind_of_server_gets_what_it_can_have"]),
    ("setup.dsl.overwrite", &["settings_of_the_template_stand_over_ours"]),
];
