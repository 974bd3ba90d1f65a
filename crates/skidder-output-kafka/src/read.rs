//! `output.kafka` from its section of the configuration.

use crate::config::{Compression, Config, Credentials, Mechanism, MetadataConfig};
use crate::partition::Partitioning;
use crate::selector::Topics;
use crate::version::Version;
use skidder_config::Section;
use skidder_event::Format;
use skidder_outputs::CodecConfig;
use skidder_tls::TlsSettings;
use std::num::NonZeroU16;
use std::time::Duration;

/// The port of a host that names none, as in Sarama's documentation.
const PORT: u16 = 9092;

/// Bounds of a record, in bytes: a request has a length of 31 bits.
const MESSAGE_BYTES: std::ops::RangeInclusive<u64> = 1..=900_000_000;

/// Reads the section; mistakes are told to its problems. `None` if no host is named.
pub(crate) fn read(section: &Section<'_>) -> Option<Config> {
    refuse(section);
    let hosts = read_hosts(section);
    let version = section.string("version").try_map(|text| Version::parse(&text));
    let version = version.or(Version::DEFAULT);
    let format = |text: String| Format::parse(&text).map_err(|error| error.to_string());
    let (compression, compression_level) = read_compression(section, version);
    let (required_acks, enable_idempotence) = read_acks(section, version);
    let positive = Duration::from_millis(1)..;
    let short = Duration::from_millis(1)..=Duration::from_mins(15);
    let config = Config {
        topics: Topics::read(section),
        key: section.string("key").named("a format string").try_map(format).optional(),
        partitioning: Partitioning::read(section),
        headers: read_headers(section, version),
        client_id: section.string("client_id").or(Config::CLIENT_ID),
        codec: CodecConfig::read(section, false),
        metadata: read_metadata(section),
        version,
        credentials: read_credentials(section),
        tls: section.optional_section("ssl").map(|ssl| {
            let tls = TlsSettings::read(&ssl);
            ssl.finish();
            tls
        }),
        bulk_max_size: section
            .usize("bulk_max_size")
            .named("a number of events")
            .range(0..=1_000_000)
            .or(Config::BULK_MAX_SIZE),
        bulk_flush_frequency: section
            .duration("bulk_flush_frequency")
            .range(..=Duration::from_mins(15))
            .or(Config::BULK_FLUSH_FREQUENCY),
        channel_buffer_size: section
            .usize("channel_buffer_size")
            .named("a number of events")
            .range(1..=10_000_000)
            .or(Config::CHANNEL_BUFFER_SIZE),
        keep_alive: !section.duration("keep_alive").or(Duration::ZERO).is_zero(),
        max_message_bytes: section
            .size("max_message_bytes")
            .range(MESSAGE_BYTES)
            .map(|bytes| bytes as usize)
            .or(Config::MAX_MESSAGE_BYTES),
        compression,
        compression_level,
        required_acks,
        enable_idempotence,
        timeout: section
            .duration("timeout")
            .range(Duration::from_millis(10)..=Duration::from_mins(5))
            .or(Config::TIMEOUT),
        broker_timeout: section.duration("broker_timeout").range(short).or(Config::BROKER_TIMEOUT),
        backoff_init: section
            .duration("backoff.init")
            .range(positive.clone())
            .or(Config::BACKOFF_INIT),
        backoff_max: section.duration("backoff.max").range(positive).or(Config::BACKOFF_MAX),
        hosts: hosts?,
    };
    Some(config)
}

/// What cannot be done here, and what does nothing in Filebeat either.
fn refuse(section: &Section<'_>) {
    section.deprecated(&["max_retries"], "events are sent until they are accepted, as in Filebeat");
    let has_kerberos = section.optional_section("kerberos").is_some_and(|kerberos| {
        let enabled = kerberos.bool("enabled").or(true);
        kerberos.skip();
        enabled
    });
    if has_kerberos || section.bool("enable_krb5_fast").or(false) {
        let message = "Kerberos is not supported by this output";
        section.problem(
            "kerberos",
            message,
            "use `sasl.mechanism: SCRAM-SHA-512` or `ssl.certificate`",
        );
    }
    let has_workers = ["worker", "workers"]
        .into_iter()
        .any(|key| section.usize(key).named("a number of workers").or(1_usize) > 1);
    if has_workers {
        let message =
            "there is one connection to each broker, and brokers work at the same time anyway";
        section.warning("worker", message, "remove it; it does nothing in Filebeat either");
    }
    if !section.bool("loadbalance").or(true) {
        let message =
            "records go to the leader of their partition; there is nothing to be balanced";
        section.warning("loadbalance", message, "remove it; it does nothing in Filebeat either");
    }
}

fn read_hosts(section: &Section<'_>) -> Option<Vec<String>> {
    let hosts = section.strings("hosts").named("a list of brokers, as in `[\"localhost:9092\"]`");
    let hosts = hosts.try_each(host).at_least_one("broker").required();
    if hosts.is_empty() { None } else { Some(hosts) }
}

/// A broker's name or address with its port.
fn host(text: &str) -> Result<String, String> {
    let wrong = || "expected `host:port`".to_owned();
    if text.is_empty() || text.contains([',', '/', ' ', '@']) {
        return Err(wrong());
    }
    let is_v6 = text.starts_with('[');
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !is_v6 || name.ends_with(']') => (name, Some(port)),
        _ => (text, None),
    };
    if name.is_empty() || (!is_v6 && name.contains(':')) || (is_v6 && !name.ends_with(']')) {
        return Err(wrong());
    }
    match port {
        None => Ok(format!("{name}:{PORT}")),
        Some(port) => {
            let port: NonZeroU16 = port.parse().map_err(|_| wrong())?;
            Ok(format!("{name}:{port}"))
        }
    }
}

fn read_compression(section: &Section<'_>, version: Version) -> (Compression, i32) {
    let words = Compression::WORDS;
    let lower = section.string("compression").try_map(|text| {
        let found = words.iter().find(|(word, _)| text.eq_ignore_ascii_case(word));
        let expected = "expected none, gzip, snappy, lz4 or zstd";
        found.map(|(_, codec)| *codec).ok_or_else(|| format!("`{text}`: {expected}"))
    });
    let compression = lower.or(Compression::Gzip);
    let too_old = match compression {
        Compression::Zstd => version < Version::ZSTD,
        Compression::Lz4 => version < Version::TIMESTAMPS,
        Compression::None | Compression::Gzip | Compression::Snappy => false,
    };
    if too_old {
        let message = format!("`{}` needs a later `version` of Kafka", compression.name());
        section.problem("compression", message, "`zstd` is there from 2.1.0 on, `lz4` from 0.10");
    }
    let level = section.i64("compression_level").named("a level");
    let level = if compression == Compression::Gzip {
        // -1000 is Sarama's word for the default.
        level.check(|level| match level {
            -1000 | -1 | 0..=9 => Ok(()),
            _ => Err("expected 0 to 9".to_owned()),
        })
    } else {
        level
    };
    let level = level.or(i64::from(Config::COMPRESSION_LEVEL));
    (compression, if level < 0 { -1 } else { level as i32 })
}

fn read_acks(section: &Section<'_>, version: Version) -> (i8, bool) {
    let acks = section.i64("required_acks").named("a number of acknowledgements").range(-1..=1);
    let acks = acks.or(1_i64) as i8;
    let idempotent = section.bool("enable_idempotence").or(false);
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
    for item in section.items("headers") {
        let header = item.section();
        let key = header.string("key").required();
        let value = header.string("value").or("");
        header.unsupported(&["when"], "each record has all headers");
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
    let metadata = section.section("metadata");
    let default = MetadataConfig::default();
    let read = MetadataConfig {
        refresh_frequency: metadata
            .duration("refresh_frequency")
            .range(..=Duration::from_hours(1))
            .or(default.refresh_frequency),
        full: metadata.bool("full").or(default.full),
        retry_max: metadata.u32("retry.max").named("a number of tries").or(default.retry_max),
        retry_backoff: metadata
            .duration("retry.backoff")
            .range(..=Duration::from_mins(1))
            .or(default.retry_backoff),
    };
    metadata.finish();
    read
}

fn read_credentials(section: &Section<'_>) -> Option<Credentials> {
    let username = section.string("username").or("");
    let password = section.secret("password").optional().unwrap_or_default();
    let mechanism = section.string("sasl.mechanism").try_map(|text| {
        let known = [Mechanism::Plain, Mechanism::ScramSha256, Mechanism::ScramSha512];
        let found = known.into_iter().find(|known| text.eq_ignore_ascii_case(known.name()));
        let expected = "expected PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512";
        found.ok_or_else(|| format!("`{text}` is not supported; {expected}"))
    });
    let mechanism = mechanism.optional();
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
