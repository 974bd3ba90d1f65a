//! Settings of Filebeat, of its older versions and of its neighbours that people have in their files, and that do
//! nothing here: each with the reason. What is in no list is a typo, and an error.

use skidder_config::Idle;

/// Where the modern form of an option of `log` inputs is.
macro_rules! idle {
    ($($pattern:literal: $why:literal),* $(,)?) => {
        &[$(Idle { pattern: $pattern, why: $why }),*]
    };
}

/// The list.
pub(crate) const IDLE: &[Idle] = idle! {
    // Filebeat takes no notice of these either, and people have them.
    "*.add_kubernetes_metadata.host": "`node` names the node; without it, it is found",
    "*.add_kubernetes_metadata.in_cluster": "whether skidder runs in a pod is found without it; outside of one, `kube_config` is read",
    "*.add_docker_metadata.labels": "see `labels.dedot`",
    "*.dissect.fail_on_error": "see `ignore_failure`",
    "*.script.id": "`tag` names a script",
    "*.allow_auto_create": "whether an index may make itself is a setting of Elasticsearch (`action.auto_create_index`)",
    "*.allow_auto_topic_creation": "whether a topic may make itself is a setting of the broker (`auto.create.topics.enable`)",
    // Options of the `log` input where a `filestream` input is: Filebeat takes no notice of them, so what they say is
    // not done. `skidder migrate` writes the modern form.
    "filebeat.inputs.json": "of a `log` input; a `filestream` input has `parsers: [{ndjson: {…}}]`",
    "filebeat.inputs.docker-json": "of a `log` input; a `filestream` input has `parsers: [{container: {}}]`",
    "filebeat.inputs.include_files": "a `filestream` input has `prospector.scanner.include_files`",
    "filebeat.inputs.multiline": "of a `log` input; a `filestream` input has `parsers: [{multiline: {…}}]`",
    "filebeat.inputs.scan_frequency": "of a `log` input; a `filestream` input has `prospector.scanner.check_interval`",
    "filebeat.inputs.exclude_files": "of a `log` input; a `filestream` input has `prospector.scanner.exclude_files`",
    "filebeat.inputs.symlinks": "of a `log` input; a `filestream` input has `prospector.scanner.symlinks`",
    "filebeat.inputs.recursive_glob": "of a `log` input; a `filestream` input has `prospector.scanner.recursive_glob`",
    "filebeat.inputs.tail_files": "of a `log` input; a `filestream` input has `ignore_inactive: since_first_start`",
    "filebeat.inputs.harvester_buffer_size": "of a `log` input; a `filestream` input has `buffer_size`",
    "filebeat.inputs.max_bytes": "of a `log` input; a `filestream` input has `message_max_bytes`",
    "filebeat.inputs.backoff_factor": "of a `log` input; a `filestream` input doubles the pause",
    "filebeat.inputs.max_backoff": "of a `log` input; a `filestream` input has `backoff.max`",
    "filebeat.inputs.close_inactive": "of a `log` input; a `filestream` input has `close.on_state_change.inactive`",
    "filebeat.inputs.close_renamed": "of a `log` input; a `filestream` input has `close.on_state_change.renamed`",
    "filebeat.inputs.close_removed": "of a `log` input; a `filestream` input has `close.on_state_change.removed`",
    "filebeat.inputs.close_eof": "of a `log` input; a `filestream` input has `close.reader.on_eof`",
    "filebeat.inputs.close_timeout": "of a `log` input; a `filestream` input has `close.reader.after_interval`",
    "filebeat.inputs.force_close_files": "it went with Filebeat 5: see `close`",
    "filebeat.inputs.close_older": "it went with Filebeat 5: see `close`",
    "filebeat.inputs.document_type": "it went with Filebeat 6: use `fields` or `tags`",
    "filebeat.inputs.input_type": "it went with Filebeat 6: use `type`",
    "filebeat.inputs.allow_deprecated_use": "it is for `log` and `container` inputs",
    "filebeat.inputs.ignore_decoding_error": "it belongs below `ndjson` in `parsers`",
    "filebeat.inputs.stream": "it is for `container` inputs; the parser `container` has it too",
    "filebeat.inputs.format": "it is for `container` inputs; the parser `container` has it too",
};
