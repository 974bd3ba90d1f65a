//! Settings of Filebeat, of its older versions and of its neighbours that people have in their files, and that do
//! nothing here: each with the reason. A setting in no list is a typo, and an error.

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
};
