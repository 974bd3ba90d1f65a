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
    "*.add_docker_metadata.labels": "see `labels.dedot`",
    "*.allow_auto_create": "whether an index may make itself is a setting of Elasticsearch (`action.auto_create_index`)",
    "*.allow_auto_topic_creation": "whether a topic may make itself is a setting of the broker (`auto.create.topics.enable`)",
    "output.elasticsearch.data_stream": "`output.elasticsearch.index` names the data stream",
    "output.elasticsearch.template.*": "use `setup.template`",
    "output.elasticsearch.ilm.*": "use `setup.ilm`",
    "output.elasticsearch.document_type": "Elasticsearch has no types any more",
    "output.elasticsearch.save_topology": "it went with Filebeat 5",
    "output.elasticsearch.xpack.*": "use `monitoring`",
    "xpack.*": "use `monitoring`",
    "setup.template.versions.*": "it went with Filebeat 7",
    "setup.xpack.*": "what is set up is loaded with the rights of the output",
    "setup.kibana.*": "dashboards are loaded with Filebeat, once",
    "spool_size": "it went with Filebeat 6: `queue.mem.events`",
    "idle_timeout": "it went with Filebeat 6: `queue.mem.flush.timeout`",
    "registry_file": "the registry is a folder since Filebeat 7, `filebeat.registry.path`",
    "filebeat.publish_async": "requests are sent while others are made, always",
    "shipper.*": "it went with Filebeat 5: `name` and `tags`",
    "geoip.*": "it went with Filebeat 5: an ingest pipeline finds places",
    "bulk_queue_size": "it went with Filebeat 5: `queue.mem.events`",
    "queue_size": "it went with Filebeat 5: `queue.mem.events`",
    "ignore_outgoing": "it is a setting of Packetbeat",
    "refresh_topology_freq": "it went with Filebeat 5",
    "topology_expire": "it went with Filebeat 5",
    "apm-server.*": "it is for the APM server",
    "metricbeat.*": "it is for Metricbeat",
    "http.enabled_metrics": "all are there",
};
