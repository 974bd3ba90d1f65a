//! What librdkafka is told, from the settings.
//!
//! Its properties: <https://github.com/confluentinc/librdkafka/blob/v2.12.1/CONFIGURATION.md>.

use crate::config::Config;
use skidder_pipeline::QueueLimits;
use skidder_tls::TlsError;
use std::time::Duration;

/// Bytes of a record besides key and value that librdkafka may count, headers apart.
const RECORD_OVERHEAD: usize = 512;
/// How long a message may wait for a leader before it goes to another partition, with `reachable_only`.
const REACHABLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Why the settings cannot be used. All are mistakes of the configuration.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A file or setting of `ssl` is wrong.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// librdkafka says no.
    #[error("librdkafka refuses the settings: {0}")]
    Refused(String),
}

impl SetupError {
    /// The key to complain about, inside `output.kafka`.
    pub fn setting(&self) -> &'static str {
        match self {
            Self::Tls(error) => error.setting(),
            Self::Refused(_) => "",
        }
    }
}

/// Names and values for librdkafka.
pub(crate) type Properties = Vec<(&'static str, String)>;

/// Everything but the brokers and the bounds of the queue.
pub(crate) fn properties(config: &Config) -> Properties {
    let mut properties = Properties::new();
    let mut set = |name: &'static str, value: &str| properties.push((name, value.to_owned()));
    set("log.queue", "true");
    set("client.id", &config.client_id);
    set("client.software.name", "skidder");
    set("socket.keepalive.enable", if config.keep_alive { "true" } else { "false" });
    set("socket.timeout.ms", &milliseconds(config.timeout));
    let setup = config.timeout.max(Duration::from_secs(1));
    set("socket.connection.setup.timeout.ms", &milliseconds(setup));
    set_metadata(config, &mut set);
    set_batches(config, &mut set);
    set_order(config, &mut set);
    properties
}

/// The brokers, and bounds that follow those of the queue.
pub(crate) fn bind(properties: &mut Properties, config: &Config, limits: &QueueLimits) {
    properties.push(("bootstrap.servers", config.hosts.join(",")));
    // Two batches of what the queue may hold: events become longer when they are written.
    let bytes = limits.bytes.max(config.max_message_bytes).saturating_mul(2) / 1024 + 1;
    properties.push(("queue.buffering.max.kbytes", bytes.min(i32::MAX as usize).to_string()));
    let messages = config.in_flight_max().min(limits.events.max(1)).min(i32::MAX as usize);
    properties.push(("queue.buffering.max.messages", messages.to_string()));
}

fn set_metadata(config: &Config, set: &mut impl FnMut(&'static str, &str)) {
    let metadata = &config.metadata;
    let refresh = match metadata.refresh_frequency {
        Duration::ZERO => "-1".to_owned(),
        every => every.as_millis().max(10).to_string(),
    };
    set("topic.metadata.refresh.interval.ms", &refresh);
    set("topic.metadata.refresh.sparse", if metadata.full { "false" } else { "true" });
    let fast = metadata.retry_backoff.max(Duration::from_millis(1));
    set("topic.metadata.refresh.fast.interval.ms", &milliseconds(fast));
}

fn set_batches(config: &Config, set: &mut impl FnMut(&'static str, &str)) {
    set("linger.ms", &milliseconds(config.bulk_flush_frequency));
    let records = if config.bulk_max_size == 0 { 1_000_000 } else { config.bulk_max_size };
    set("batch.num.messages", &records.to_string());
    set("batch.size", &config.max_message_bytes.to_string());
    // Our own check is exact; this one only must not be in its way.
    let headers: usize =
        config.headers.iter().map(|(key, value)| key.len() + value.len() + 20).sum();
    let request = (config.max_message_bytes + headers + RECORD_OVERHEAD).max(1000);
    set("message.max.bytes", &request.to_string());
    set("compression.codec", config.compression.name());
    if config.compression == crate::config::Compression::Gzip {
        set("compression.level", &config.compression_level.to_string());
    }
}

/// Order and retries.
fn set_order(config: &Config, set: &mut impl FnMut(&'static str, &str)) {
    set("request.required.acks", &config.required_acks.to_string());
    set("request.timeout.ms", &milliseconds(config.broker_timeout));
    set("retry.backoff.ms", "100");
    set(
        "retry.backoff.max.ms",
        &milliseconds(config.backoff_max.clamp(Duration::from_millis(100), Duration::from_mins(5))),
    );
    set("reconnect.backoff.ms", &milliseconds(config.backoff_init.min(Duration::from_mins(1))));
    set(
        "reconnect.backoff.max.ms",
        &milliseconds(config.backoff_max.max(config.backoff_init).min(Duration::from_hours(1))),
    );
    if config.enable_idempotence {
        set("enable.idempotence", "true");
    } else {
        // A batch that is sent again must not be overtaken by the next one.
        set("max.in.flight.requests.per.connection", "1");
    }
    // Without end: librdkafka keeps what it could not send, in its order.
    let timeout = if config.partitioning.reachable_only {
        REACHABLE_TIMEOUT.max(config.timeout)
    } else {
        Duration::ZERO
    };
    set("message.timeout.ms", &milliseconds(timeout));
}

fn milliseconds(duration: Duration) -> String {
    // Half a millisecond must not become none.
    let rounded = duration.as_micros().div_ceil(1000);
    rounded.to_string()
}
