//! `preset`: named bundles of settings that overwrite what the user wrote.
//!
//! The table is libbeat's `outputs/elasticsearch/config_presets.go`.

use skidder_outputs::QueueSettings;
use std::time::Duration;

/// `preset`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preset {
    /// Nothing is overwritten.
    #[default]
    Custom,
    /// Good for most.
    Balanced,
    /// Many events, more memory and processor.
    Throughput,
    /// Many shippers for one cluster.
    Scale,
    /// Few events, soon.
    Latency,
}

/// One column of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) bulk_max_size: usize,
    pub(crate) worker: usize,
    pub(crate) queue_events: usize,
    pub(crate) flush_min_events: usize,
    pub(crate) flush_timeout: Duration,
    pub(crate) compression_level: u32,
    pub(crate) idle_connection_timeout: Duration,
    /// `backoff.init` and `backoff.max`.
    pub(crate) backoff: Option<(Duration, Duration)>,
}

impl Preset {
    /// The words of the YAML.
    pub(crate) const WORDS: [(&'static str, Self); 5] = [
        ("balanced", Self::Balanced),
        ("throughput", Self::Throughput),
        ("scale", Self::Scale),
        ("latency", Self::Latency),
        ("custom", Self::Custom),
    ];

    pub(crate) fn column(self) -> Option<Column> {
        let seconds = Duration::from_secs;
        let balanced = Column {
            bulk_max_size: 1600,
            worker: 1,
            queue_events: 3200,
            flush_min_events: 1600,
            flush_timeout: seconds(10),
            compression_level: 1,
            idle_connection_timeout: seconds(3),
            backoff: None,
        };
        Some(match self {
            Self::Custom => return None,
            Self::Balanced => balanced,
            Self::Throughput => Column {
                worker: 4,
                queue_events: 12_800,
                flush_timeout: seconds(5),
                idle_connection_timeout: seconds(15),
                ..balanced
            },
            Self::Scale => Column {
                flush_timeout: seconds(20),
                idle_connection_timeout: seconds(1),
                backoff: Some((seconds(5), seconds(300))),
                ..balanced
            },
            Self::Latency => Column {
                bulk_max_size: 50,
                queue_events: 4100,
                flush_min_events: 2050,
                flush_timeout: seconds(1),
                idle_connection_timeout: seconds(60),
                ..balanced
            },
        })
    }
}

impl Column {
    /// The keys that it overwrites.
    pub(crate) fn keys(&self) -> Vec<&'static str> {
        let mut keys = vec![
            "bulk_max_size",
            "worker",
            "workers",
            "queue.mem.events",
            "queue.mem.flush.min_events",
            "queue.mem.flush.timeout",
            "compression_level",
            "idle_connection_timeout",
        ];
        if self.backoff.is_some() {
            keys.extend(["backoff.init", "backoff.max"]);
        }
        keys
    }

    pub(crate) fn queue(&self) -> QueueSettings {
        QueueSettings {
            events: Some(self.queue_events),
            flush_min_events: Some(self.flush_min_events),
            flush_timeout: Some(self.flush_timeout),
            gives_way: false,
        }
    }
}
