//! `output.kafka` from its section of the configuration.

use crate::config::{Compression, Config, MetadataConfig};
use crate::partition::{Partitioning, WAYS};
use crate::selector::{Topics, rule::TOPICS_ITEM};
use skidder_config::{Any, Group, Key, OneOf, Part, Parts, Secret, Section, Size, settings};
use skidder_event::Format;
use skidder_kafka::login::{Credentials, Mechanism, host};
use skidder_kafka::version::Version;
use skidder_outputs::{BACKOFF, CodecConfig, EVERY_OUTPUT, WITH_CODEC, read_backoff};
use skidder_tls::{SSL, TlsSettings};
use std::time::Duration;

/// Most bytes of a record: a request has a length of 31 bits.
const MESSAGE_BYTES_MAX: u64 = 900_000_000;

const MILLISECOND: Duration = Duration::from_millis(1);

/// The hint for `when` of a header.
const NO_CONDITION: &str = "each record has all headers";

mod header {
    use super::*;

    settings! {
        /// An item of `headers`.
        pub(super) static HEADER = Group::new("output.kafka.headers", "A header of each record.")
            .unsupported(&[("when.*", NO_CONDITION)]);

        pub(super) KEY: String = Key::new("key").required().about("its name");
        pub(super) VALUE: String = Key::new("value").default("").about("its value");
    }
}

mod metadata {
    use super::*;

    settings! {
        /// `metadata`.
        pub(super) static METADATA =
            Group::new("output.kafka.metadata", "How topics and their leaders are found.").inline();

        pub(super) REFRESH_FREQUENCY: Duration = Key::new("refresh_frequency")
            .default(MetadataConfig::DEFAULT.refresh_frequency)
            .range(Duration::ZERO, Duration::from_hours(1))
            .about("how often topics in use are refreshed; 0: never");
        pub(super) FULL: bool = Key::new("full")
            .default(MetadataConfig::DEFAULT.full)
            .about("refresh all topics instead of those in use");
        pub(super) RETRY_MAX: u32 = Key::new("retry.max")
            .default(MetadataConfig::DEFAULT.retry_max)
            .noun("a number of tries")
            .about("this many tries at the pace of `retry.backoff`; then as `backoff` says, without end");
        pub(super) RETRY_BACKOFF: Duration = Key::new("retry.backoff")
            .default(MetadataConfig::DEFAULT.retry_backoff)
            .range(Duration::ZERO, Duration::from_mins(1))
            .about("pause between these tries");
    }
}

settings! {
    /// Settings of `output.kafka`.
    pub static KAFKA = Group::new("output.kafka", "Records of topics of Kafka.")
        .include(&[&WITH_CODEC, &BACKOFF, &EVERY_OUTPUT]);

    HOSTS: Vec<String> = Key::new("hosts").filled()
        .required()
        .noun("a list of brokers, as in `[\"localhost:9092\"]`")
        .about("`host[:9092]`, brokers that name the others");
    pub(super) TOPIC: String = Key::new("topic").default_words("required, or `topics`").noun("a format string").about(
        "format string; letters, digits, `.`, `_`, `-`, at most 249",
    );
    pub(super) TOPICS: Parts = Key::parts("topics", &TOPICS_ITEM).about(
        "rules of `topic`, `mappings`, `default`, `when`: the first that gives a name; then `topic`",
    );
    KEY: String = Key::new("key")
        .noun("a format string")
        .about("format string; an event without its field has no key");
    PARTITION: Part = Key::part("partition", &WAYS).about("which partition a record goes to");
    HEADERS: Parts = Key::parts("headers", &header::HEADER).about(
        "list of `key` and `value`, the same for each record; `when` in them is refused",
    );
    CLIENT_ID: String = Key::new("client_id").default(Config::CLIENT_ID).about("how brokers know us, in their logs and quotas");
    VERSION: String = Key::new("version").default("2.1.0").about(
        "from `0.8.2.0` on; brokers are asked for their versions (0.11 or later), this decides what is used: \
         timestamps and LZ4 from 0.10, headers from 0.11, Zstandard from 2.1",
    );
    USERNAME: String = Key::new("username").default("").about("a login by SASL, with `password`");
    PASSWORD: Secret = Key::new("password").about("of `username`");
    MECHANISM: OneOf<Mechanism> = Key::one_of(
        "sasl.mechanism",
        &Mechanism::WORDS,
    )
    .ignore_case()
    .default_words("`PLAIN`")
    .noun("PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")
    .about("also `SCRAM-SHA-256`, `SCRAM-SHA-512`");
    BULK_MAX_SIZE: usize = Key::new("bulk_max_size")
        .default(Config::BULK_MAX_SIZE)
        .range(0, 1_000_000)
        .noun("a number of events")
        .about("events taken at once, records of a batch; 0: no bound but `max_message_bytes`");
    BULK_FLUSH_FREQUENCY: Duration = Key::new("bulk_flush_frequency")
        .default(Config::BULK_FLUSH_FREQUENCY)
        .range(Duration::ZERO, Duration::from_mins(15))
        .about("how long a batch waits for more records, while less than half of what may be encoded is");
    MAX_MESSAGE_BYTES: Size = Key::new("max_message_bytes")
        .default(Config::MAX_MESSAGE_BYTES as u64)
        .range(1, MESSAGE_BYTES_MAX)
        .about(
            "of key and value, uncompressed; larger ones go to the dead letters. Also the bytes of a batch, which has \
             no more than 504 KiB if it is not a single record",
        );
    COMPRESSION: OneOf<Compression> = Key::one_of("compression", &Compression::WORDS)
        .ignore_case()
        .default("gzip")
        .noun("none, gzip, snappy, lz4 or zstd")
        .about("`none`, `gzip`, `snappy`, `lz4`, `zstd`");
    COMPRESSION_LEVEL: i64 = Key::new("compression_level")
        .default(Config::COMPRESSION_LEVEL as i64)
        .noun("a level")
        .about("of gzip, 0 to 9");
    REQUIRED_ACKS: i64 = Key::new("required_acks")
        .default(1)
        .range(-1, 1)
        .noun("a number of acknowledgements")
        .about("0 none (lines can be lost), 1 the leader, -1 all replicas in sync");
    IDEMPOTENCE: bool = Key::new("enable_idempotence")
        .default(false)
        .about("brokers discard duplicates; needs `required_acks: -1`")
        .ours();
    TIMEOUT: Duration = Key::new("timeout")
        .default(Config::TIMEOUT)
        .range(Duration::from_millis(10), Duration::from_mins(5))
        .about("of connecting, of a login, of an answer");
    BROKER_TIMEOUT: Duration = Key::new("broker_timeout")
        .default(Config::BROKER_TIMEOUT)
        .range(MILLISECOND, Duration::from_mins(15))
        .about("how long a broker waits for its replicas");
    KEEP_ALIVE: Duration = Key::new("keep_alive")
        .default(Duration::ZERO)
        .about("more than 0: the system keeps connections alive, at its own pace");
    CHANNEL_BUFFER_SIZE: usize = Key::new("channel_buffer_size")
        .default(Config::CHANNEL_BUFFER_SIZE)
        .range(1, 10_000_000)
        .noun("a number of events")
        .about("records encoded at once, if that is more than two batches");
    METADATA: Part = Key::part("metadata", &metadata::METADATA).about("how topics and their leaders are found");
    WORKERS: usize = Key::new("workers").alias("worker").default(1).noun("a number of workers").about(
        "no effect, with a warning: there is one connection to each broker",
    );
    LOADBALANCE: bool = Key::new("loadbalance").default(true).about(
        "no effect, with a warning: a record goes to the leader of its partition",
    );
    KERBEROS: Any = Key::new("kerberos").about(
        "refused: this output has no such login. Use `username`, or certificates",
    );
    FAST: bool = Key::new("enable_krb5_fast").default(false).about("refused, likewise");
    TLS: Part = Key::part("ssl", &SSL).about("[below](#ssl); TLS is off without a section `ssl`");
}

/// Reads the section; reports mistakes to its problems. `None` if no host is named.
pub(crate) fn read(section: &Section<'_>) -> Option<Config> {
    section.declared_by(&KAFKA);
    refuse(section);
    let hosts = read_hosts(section);
    let version = section.get(&VERSION).try_map(|text| Version::parse(&text)).value();
    let format = |text: String| Format::parse(&text).map_err(|error| error.to_string());
    let (compression, compression_level) = read_compression(section, version);
    let (required_acks, enable_idempotence) = read_acks(section, version);
    let (backoff_init, backoff_max) = read_backoff(section);
    let config = Config {
        topics: Topics::read(section),
        key: section.get(&KEY).try_map(format).optional(),
        partitioning: Partitioning::read(section.part(&PARTITION)),
        headers: read_headers(section, version),
        client_id: section.get(&CLIENT_ID).value(),
        codec: CodecConfig::read(section, false),
        metadata: read_metadata(section),
        version,
        credentials: read_credentials(section),
        // With nothing behind it, it is not there, as in Filebeat.
        tls: section.optional_part(&TLS).filter(|_| section.has_key(&TLS)).map(|ssl| {
            let tls = TlsSettings::read(&ssl);
            ssl.finish();
            tls
        }),
        bulk_max_size: section.get(&BULK_MAX_SIZE).value(),
        bulk_flush_frequency: section.get(&BULK_FLUSH_FREQUENCY).value(),
        channel_buffer_size: section.get(&CHANNEL_BUFFER_SIZE).value(),
        keep_alive: !section.get(&KEEP_ALIVE).value().is_zero(),
        max_message_bytes: section.get(&MAX_MESSAGE_BYTES).value() as usize,
        compression,
        compression_level,
        required_acks,
        enable_idempotence,
        timeout: section.get(&TIMEOUT).value(),
        broker_timeout: section.get(&BROKER_TIMEOUT).value(),
        backoff_init,
        backoff_max,
        hosts: hosts?,
    };
    Some(config)
}

/// Reports settings that are not supported here, and those without effect in Filebeat too.
fn refuse(section: &Section<'_>) {
    let has_kerberos = section.any(&KERBEROS).is_some_and(|kerberos| {
        let kerberos = kerberos.section();
        let enabled = kerberos.bool("enabled").or(true);
        kerberos.skip();
        enabled
    });
    if has_kerberos || section.get(&FAST).value() {
        let message = "Kerberos is not supported by this output";
        section.problem(
            "kerberos",
            message,
            "use `sasl.mechanism: SCRAM-SHA-512` or `ssl.certificate`",
        );
    }
    if section.get(&WORKERS).value() > 1 {
        let key = if section.has_key(&WORKERS) { WORKERS.name() } else { "worker" };
        let message =
            "there is one connection to each broker, and brokers work at the same time anyway";
        section.warning(key, message, "remove it; it does nothing in Filebeat either");
    }
    if !section.get(&LOADBALANCE).value() {
        let message =
            "records go to the leader of their partition; there is nothing to be balanced";
        section.warning("loadbalance", message, "remove it; it does nothing in Filebeat either");
    }
}

fn read_hosts(section: &Section<'_>) -> Option<Vec<String>> {
    let hosts = section.get(&HOSTS).try_each(host).at_least_one("broker").required();
    if hosts.is_empty() { None } else { Some(hosts) }
}

fn read_compression(section: &Section<'_>, version: Version) -> (Compression, i32) {
    let compression = section.get(&COMPRESSION).value();
    let too_old = match compression {
        Compression::Zstd => version < Version::ZSTD,
        Compression::Lz4 => version < Version::TIMESTAMPS,
        Compression::None | Compression::Gzip | Compression::Snappy => false,
    };
    if too_old {
        let message = format!("`{}` needs a later `version` of Kafka", compression.name());
        section.problem("compression", message, "`zstd` is there from 2.1.0 on, `lz4` from 0.10");
    }
    let level = section.get(&COMPRESSION_LEVEL);
    let level = if compression == Compression::Gzip {
        // -1000 is Sarama's word for the default.
        level.check(|level| match level {
            -1000 | -1 | 0..=9 => Ok(()),
            _ => Err("expected 0 to 9".to_owned()),
        })
    } else {
        level
    };
    let level = level.value();
    (compression, if level < 0 { -1 } else { level as i32 })
}

fn read_acks(section: &Section<'_>, version: Version) -> (i8, bool) {
    let acks = section.get(&REQUIRED_ACKS).value() as i8;
    let idempotent = section.get(&IDEMPOTENCE).value();
    if idempotent && acks != -1 {
        let message = "`enable_idempotence` needs the acknowledgement of all replicas";
        section.problem("enable_idempotence", message, "set `required_acks: -1`");
    }
    if idempotent && version < Version::HEADERS {
        let message = "`enable_idempotence` needs `version: 0.11` or later";
        section.problem("enable_idempotence", message, "");
    }
    (acks, idempotent)
}

fn read_headers(section: &Section<'_>, version: Version) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    for (item, header) in section.part_items(&HEADERS) {
        let key = header.get(&header::KEY).required();
        let value = header.get(&header::VALUE).value();
        header.finish();
        if key.contains('\0') {
            item.problem(format!("`{}`: a key has no byte of zero", item.path()), "");
        }
        headers.push((key, value));
    }
    if !headers.is_empty() && version < Version::HEADERS {
        let message = "records have headers only with `version: 0.11` or later";
        section.problem("headers", message, "");
    }
    headers
}

fn read_metadata(section: &Section<'_>) -> MetadataConfig {
    let metadata = section.part(&METADATA);
    let read = MetadataConfig {
        refresh_frequency: metadata.get(&metadata::REFRESH_FREQUENCY).value(),
        full: metadata.get(&metadata::FULL).value(),
        retry_max: metadata.get(&metadata::RETRY_MAX).value(),
        retry_backoff: metadata.get(&metadata::RETRY_BACKOFF).value(),
    };
    metadata.finish();
    read
}

fn read_credentials(section: &Section<'_>) -> Option<Credentials> {
    let username = section.get(&USERNAME).value();
    let password = section.get(&PASSWORD).optional().unwrap_or_default();
    let mechanism = section.get(&MECHANISM).optional();
    if username.is_empty() {
        if mechanism.is_some() {
            let message = "without `username` nobody logs in, whatever `sasl.mechanism` says";
            section.warning("sasl.mechanism", message, "set `username` and `password`");
        } else if !password.is_empty() {
            let message = "without `username` nobody logs in, and `password` does nothing";
            section.warning("password", message, "set `username`");
        }
        return None;
    }
    if password.is_empty() {
        section.problem("username", "`username` needs `password`", "");
    }
    Some(Credentials { username, password, mechanism: mechanism.unwrap_or(Mechanism::Plain) })
}

#[cfg(test)]
mod tests;
