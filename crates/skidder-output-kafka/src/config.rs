//! Settings of `output.kafka`, checked.

use crate::lane::Load;
use crate::partition::Partitioning;
use crate::selector::Topics;
use skidder_event::Format;
use skidder_kafka::login::Credentials;
use skidder_kafka::version::Version;
use skidder_outputs::CodecConfig;
use skidder_pipeline::QueueLimits;
use skidder_tls::TlsSettings;
use std::time::Duration;

/// Most records of one batch where `bulk_max_size` sets no bound.
const BATCH_RECORDS_MAX: usize = 1_000_000;

/// `compression`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// `none`, `no`, `off`.
    None,
    /// `gzip`, with `compression_level`.
    Gzip,
    /// `snappy`.
    Snappy,
    /// `lz4`.
    Lz4,
    /// `zstd`.
    Zstd,
}

impl Compression {
    /// The words of the YAML.
    pub(crate) const WORDS: [(&str, Self); 7] = [
        ("none", Self::None),
        ("no", Self::None),
        ("off", Self::None),
        ("gzip", Self::Gzip),
        ("snappy", Self::Snappy),
        ("lz4", Self::Lz4),
        ("zstd", Self::Zstd),
    ];

    /// The word of the YAML, and of Kafka.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

/// `metadata`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetadataConfig {
    /// `refresh_frequency`; zero = never.
    pub refresh_frequency: Duration,
    /// `full`: of all topics, not only of those in use.
    pub full: bool,
    /// `retry.max`: so many times at `retry_backoff`; from then on with `backoff`.
    pub retry_max: u32,
    /// `retry.backoff`.
    pub retry_backoff: Duration,
}

impl MetadataConfig {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        refresh_frequency: Duration::from_mins(10),
        full: false,
        retry_max: 3,
        retry_backoff: Duration::from_millis(250),
    };
}

impl Default for MetadataConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Settings of `output.kafka`. Names are those of the YAML.
#[derive(Clone, Debug)]
pub struct Config {
    /// `hosts`: brokers to ask first, each with its port.
    pub hosts: Vec<String>,
    /// `topic` and `topics`.
    pub topics: Topics,
    /// `key`.
    pub key: Option<Format>,
    /// `partition`.
    pub partitioning: Partitioning,
    /// `headers`, the same for every record.
    pub headers: Vec<(String, String)>,
    /// `client_id`.
    pub client_id: String,
    /// `codec`.
    pub codec: CodecConfig,
    /// `metadata`.
    pub metadata: MetadataConfig,
    /// `version`.
    pub version: Version,
    /// `username`, `password` and `sasl`.
    pub credentials: Option<Credentials>,
    /// `ssl`; off without the section.
    pub tls: Option<TlsSettings>,
    /// `bulk_max_size`: most records of one batch; 0 = no bound but the bytes.
    pub bulk_max_size: usize,
    /// `bulk_flush_frequency`: how long a batch waits for more records.
    pub bulk_flush_frequency: Duration,
    /// `channel_buffer_size`: records under way at once, if more than two batches.
    pub channel_buffer_size: usize,
    /// `keep_alive`: whether the system keeps connections alive.
    pub keep_alive: bool,
    /// `max_message_bytes`: key and value of a record; larger ones are refused.
    pub max_message_bytes: usize,
    /// `compression`.
    pub compression: Compression,
    /// `compression_level`, of gzip; -1 = zlib's own.
    pub compression_level: i32,
    /// `required_acks`: 0 none, 1 the leader, -1 all replicas that are in sync.
    pub required_acks: i8,
    /// `enable_idempotence`, our own: brokers discard what comes twice.
    pub enable_idempotence: bool,
    /// `timeout` of connecting and of an answer.
    pub timeout: Duration,
    /// `broker_timeout`: how long a broker waits for its replicas.
    pub broker_timeout: Duration,
    /// `backoff.init`.
    pub backoff_init: Duration,
    /// `backoff.max`.
    pub backoff_max: Duration,
}

impl Config {
    /// Default of `client_id`.
    pub const CLIENT_ID: &'static str = "beats";
    /// Default of `bulk_max_size`.
    pub const BULK_MAX_SIZE: usize = 2048;
    /// Default of `bulk_flush_frequency`. Filebeat has none; a batch of a few records costs the broker as much
    /// as one of a thousand.
    pub const BULK_FLUSH_FREQUENCY: Duration = Duration::from_millis(5);
    /// Default of `channel_buffer_size`.
    pub const CHANNEL_BUFFER_SIZE: usize = 256;
    /// Default of `max_message_bytes`.
    pub const MAX_MESSAGE_BYTES: usize = 1_000_000;
    /// Default of `compression_level`.
    pub const COMPRESSION_LEVEL: i32 = 4;
    /// Default of `timeout`.
    pub const TIMEOUT: Duration = Duration::from_secs(30);
    /// Default of `broker_timeout`.
    pub const BROKER_TIMEOUT: Duration = Duration::from_secs(10);
    /// Default of `backoff.init`.
    pub const BACKOFF_INIT: Duration = Duration::from_secs(1);
    /// Default of `backoff.max`.
    pub const BACKOFF_MAX: Duration = Duration::from_mins(1);

    /// Whether connections are encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.enabled)
    }

    /// Most records of one batch.
    pub(crate) fn batch_records_max(&self) -> usize {
        if self.bulk_max_size == 0 { BATCH_RECORDS_MAX } else { self.bulk_max_size }
    }

    /// The limit of encoded and unanswered records: their number, and as many bytes as the queue may hold twice, since
    /// events become longer when they are written.
    pub(crate) fn load_max(&self, limits: &QueueLimits) -> Load {
        let records = match self.bulk_max_size {
            0 => usize::MAX,
            size => (2 * size).max(self.channel_buffer_size),
        };
        Load {
            records: records.min(limits.events.max(1)),
            bytes: limits.bytes.max(self.max_message_bytes).saturating_mul(2),
        }
    }
}
