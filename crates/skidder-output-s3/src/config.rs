//! Settings of `output.s3`, checked.

use skidder_amazon::{Source, Target, bucket_url, service_url};
use skidder_event::Format;
use skidder_net::{HostUrl, ProxyChoice};
use skidder_outputs::CodecConfig;
use skidder_tls::TlsSettings;
use std::time::Duration;

/// `compression`, with its level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// `none`.
    None,
    /// `gzip`, 1 (fast) to 9 (small).
    Gzip(u32),
    /// `zstd`, 1 (fast) to 19 (small).
    Zstd(i32),
}

impl Compression {
    /// The end of objects' names.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Gzip(_) => ".gz",
            Self::Zstd(_) => ".zst",
        }
    }
}

/// `batch`: when an object is closed, and sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// `max_bytes`: about so many, before they are compressed.
    pub bytes: u64,
    /// `max_events`; 0 = no bound.
    pub events: usize,
    /// `timeout`: so long after its first event.
    pub timeout: Duration,
}

/// Settings of `output.s3`. Names are those of the YAML.
#[derive(Clone, Debug)]
pub struct Config {
    /// `bucket`.
    pub bucket: String,
    /// `region`.
    pub region: String,
    /// `endpoint`; nothing for Amazon's own.
    pub endpoint: Option<HostUrl>,
    /// `path_style`: the bucket stands in the path, and not in the name of the host.
    pub path_style: bool,
    /// `key_prefix`: what keys begin with. Events whose text is the same share objects.
    pub key_prefix: Format,
    /// `filename_extension`, with its dot; nothing: what the codec and the compression are.
    pub extension: Option<String>,
    /// The source of the credentials for signing.
    pub credentials: Source,
    /// `codec`.
    pub codec: CodecConfig,
    /// `compression` and `compression_level`.
    pub compression: Compression,
    /// `batch`.
    pub batch: Batch,
    /// `storage_class`, `acl`, `server_side_encryption`, `ssekms_key_id` and `tags`, as headers of each request.
    pub headers: Vec<(&'static str, String)>,
    /// `workers`: objects under way at once.
    pub workers: usize,
    /// `timeout` of connecting, and of a request.
    pub timeout: Duration,
    /// `backoff.init`.
    pub backoff_init: Duration,
    /// `backoff.max`.
    pub backoff_max: Duration,
    /// `proxy_url` and its like.
    pub proxy: ProxyChoice,
    /// `ssl`.
    pub tls: TlsSettings,
}

impl Config {
    /// Default of `key_prefix`.
    pub const KEY_PREFIX: &str = "%{[agent.name]}/%{+yyyy/MM/dd}/";
    /// The region of servers that have none.
    pub const REGION: &str = "us-east-1";
    /// Default of `batch.max_bytes`, as in Vector.
    pub const BATCH_BYTES: u64 = 10_000_000;
    /// Default of `batch.timeout`, as in Vector.
    pub const BATCH_TIMEOUT: Duration = Duration::from_mins(5);
    /// Default of `compression_level` of gzip: zlib's own.
    pub const GZIP_LEVEL: u32 = 6;
    /// Default of `compression_level` of zstd: its own.
    pub const ZSTD_LEVEL: i32 = 3;
    /// Default of `timeout`.
    pub const TIMEOUT: Duration = Duration::from_secs(90);
    /// Default of `backoff.init`.
    pub const BACKOFF_INIT: Duration = Duration::from_secs(1);
    /// Default of `backoff.max`.
    pub const BACKOFF_MAX: Duration = Duration::from_mins(1);

    /// The bucket.
    pub(crate) fn target(&self) -> Target {
        let server = self.endpoint.clone();
        let server = server.unwrap_or_else(|| service_url("s3", &self.region));
        Target::at(bucket_url(server, &self.bucket, self.path_style), &self.proxy)
    }

    /// The end of objects' names.
    pub(crate) fn extension(&self) -> String {
        if let Some(extension) = &self.extension {
            return extension.clone();
        }
        let text = match self.codec {
            CodecConfig::Json { pretty: false, .. } => ".ndjson",
            CodecConfig::Json { pretty: true, .. } => ".json",
            CodecConfig::Format(_) => ".log",
        };
        format!("{text}{}", self.compression.extension())
    }

    /// The type of an object, for its header `content-type`.
    pub(crate) fn content_type(&self) -> &'static str {
        match (self.compression, &self.codec) {
            (Compression::Gzip(_), _) => "application/gzip",
            (Compression::Zstd(_), _) => "application/zstd",
            (Compression::None, CodecConfig::Json { pretty: false, .. }) => "application/x-ndjson",
            (Compression::None, CodecConfig::Json { pretty: true, .. }) => "application/json",
            (Compression::None, CodecConfig::Format(_)) => "text/plain; charset=utf-8",
        }
    }
}
