//! The settings of `output.elasticsearch`.

use super::config::Config;
use super::preset::Preset;
use skidder_config::{Any, Group, Key, OneOf, OrAuto, PartOrWord, Parts, Secret, Size, settings};
use skidder_kerberos::WITH_KERBEROS;
use skidder_net::{HTTPS, PROXY};
use skidder_outputs::{BACKOFF, EVERY_OUTPUT, RULE, bulk_max_bytes, loadbalance, timeout};
use std::collections::BTreeMap;
use std::time::Duration;

mod index_rule {
    use super::*;

    settings! {
        /// An item of `indices`.
        pub(super) static INDICES_ITEM =
            Group::new("output.elasticsearch.indices", "A rule that gives an index.").include(&[&RULE]);

        pub(crate) INDEX_OF_RULE: String =
            Key::new("index").required().noun("a format string").about("the index: a format string");
    }
}

mod pipeline_rule {
    use super::*;

    settings! {
        /// An item of `pipelines`.
        pub(super) static PIPELINES_ITEM =
            Group::new("output.elasticsearch.pipelines", "A rule that gives an ingest pipeline.")
                .include(&[&RULE]);

        pub(crate) PIPELINE_OF_RULE: String =
            Key::new("pipeline").required().noun("a format string").about("the pipeline: a format string");
    }
}

mod policy {
    use super::*;

    settings! {
        /// `non_indexable_policy` that is a map.
        pub(super) static POLICY_MAP = Group::new(
            "output.elasticsearch.non_indexable_policy",
            "What is done with events that the server refuses.",
        )
        .inline();

        pub(crate) DROP: Any = Key::new("drop").about("the same as the word `drop`");
        pub(crate) DEAD_LETTER_INDEX: String = Key::new("dead_letter_index.index")
            .noun("the name of an index")
            .about("to this index first, as a text with the error beside it");
    }
}

pub(crate) use index_rule::INDEX_OF_RULE;
pub(crate) use pipeline_rule::PIPELINE_OF_RULE;
pub(crate) use policy::{DEAD_LETTER_INDEX, DROP};

settings! {
    /// Settings of `output.elasticsearch`.
    pub static ELASTICSEARCH =
        Group::new("output.elasticsearch", "Bulk requests to Elasticsearch (7.5 and newer) or OpenSearch.")
            .include(&[&BACKOFF, &PROXY, &HTTPS, &WITH_KERBEROS, &EVERY_OUTPUT])
            // Filebeat takes no notice of these either, and people have them.
            .without_effect(&[
                ("data_stream.*", "`output.elasticsearch.index` names the data stream"),
                ("template.*", "use `setup.template`"),
                ("ilm.*", "use `setup.ilm`"),
                ("document_type", "Elasticsearch has no types any more"),
                ("save_topology", "it went with Filebeat 5"),
                ("xpack.*", "use `monitoring`"),
            ]);

    pub(crate) HOSTS: Vec<String> = Key::new("hosts").filled()
        .default_words("required, or `cloud.id`")
        .noun("a list of hosts, as in `[\"localhost:9200\"]`")
        .about("`[scheme://][user:password@]host[:9200][/path]`; what the URL has wins");
    pub(crate) PROTOCOL: OneOf<&'static str> =
        Key::one_of("protocol", &[("http", "http"), ("https", "https")])
            .default("http")
            .about("for hosts that have none");
    pub(crate) PATH: String = Key::new("path").default("").about("for hosts that have none");
    pub(crate) WORKERS: OrAuto<usize> = Key::<OrAuto<usize>>::new("workers")
        .alias("worker")
        .default(Some(1))
        .range(Some(1), Some(1024))
        .noun("`auto`, or a number of connections")
        .about("connections for each host, 1 to 1024; or `auto` (**ours**)");
    pub(crate) LOADBALANCE: bool = loadbalance(true);
    pub(crate) BULK_MAX_SIZE: OrAuto<i64> = Key::<OrAuto<i64>>::new("bulk_max_size")
        .default(Some(Config::BULK_MAX_SIZE as i64))
        .noun("`auto`, or a number of events")
        .about("events of a request; 0 or less: the queue decides; or `auto` (**ours**)");
    pub(crate) BULK_MAX_BYTES: Size = bulk_max_bytes(Config::BULK_MAX_BYTES).ours().about(
        "uncompressed bytes of a request, 1 KiB to 1 GiB. Up to two requests are in memory for each worker",
    );
    pub(crate) COMPRESSION_LEVEL: OrAuto<u32> = Key::<OrAuto<u32>>::new("compression_level")
        .default(Some(Config::COMPRESSION_LEVEL))
        .range(Some(0), Some(9))
        .noun("`auto`, or a level")
        .about(
            "gzip: 0 off, 1 fast (two to three times the processor time of 0), 9 small; or `auto` (**ours**). There is \
             no zstd: Elasticsearch does not take it",
        );
    pub(crate) EXACTLY_ONCE: OneOf<bool> =
        Key::one_of("exactly_once", &[("false", false), ("true", true), ("on_retry", true)])
            .default("false")
            .ours()
            .about(
                "`true` or `on_retry`: each event has an `_id` made of its place in the file, so that the server \
                 recognises duplicates ([0015](decisions/0015-exactly-once.md))",
            );
    pub(crate) ESCAPE_HTML: bool = Key::new("escape_html")
        .default(false)
        .about("`<`, `>` and `&` as `\\u003c`, `\\u003e`, `\\u0026`");
    pub(crate) USERNAME: String = Key::new("username").default("").about("the user, with `password`");
    pub(crate) PASSWORD: Secret = Key::new("password").about("of `username`");
    pub(crate) API_KEY: Secret =
        Key::new("api_key").about("`id:key`, instead of `username` and `password`");
    pub(crate) PARAMETERS: BTreeMap<String, String> =
        Key::new("parameters").about("of the bulk request's query");
    pub(crate) HEADERS: BTreeMap<String, String> =
        Key::new("headers").secret().about("of every request");
    pub(crate) INDEX: String = Key::new("index")
        .default_words("`filebeat-%{[agent.version]}`")
        .about("format string, lower-cased");
    pub(crate) INDICES: Parts = Key::parts("indices", &index_rule::INDICES_ITEM).about(
        "rules before `index`: items with `index`, and if wanted `when`, `mappings`, `default`; the first that gives \
         a name wins",
    );
    pub(crate) PIPELINE: String =
        Key::new("pipeline").about("format string of the ingest pipeline; `_none` is none");
    pub(crate) PIPELINES: Parts = Key::parts("pipelines", &pipeline_rule::PIPELINES_ITEM)
        .about("rules before `pipeline`, as `indices`");
    pub(crate) TIMEOUT: Duration =
        timeout(Config::TIMEOUT).about("of one request, and of connecting");
    pub(crate) IDLE_CONNECTION_TIMEOUT: Duration = Key::new("idle_connection_timeout")
        .default(Config::IDLE_CONNECTION_TIMEOUT)
        .about("an idle connection is closed");
    pub(crate) ALLOW_OLDER_VERSIONS: bool =
        Key::new("allow_older_versions").default(true).about("servers older than 9.5.3");
    pub(crate) POLICY: PartOrWord =
        Key::part_or_word("non_indexable_policy", &policy::POLICY_MAP, &[("drop", ())])
            .default("drop")
            .about("`drop`: refused events go to the local dead letters; or a map with one of these");
    pub(crate) PRESET: OneOf<Preset> = Key::one_of("preset", &Preset::WORDS).default("custom").about(
        "`balanced`, `throughput`, `scale`, `latency` overwrite the settings of the table below, with a warning",
    );
}
