//! The settings of the queue before an output, and the output's requirements for it.

use skidder_config::{Group, Key, Part, Secret, Size, settings};
use skidder_pipeline::{DiskQueueSettings, QueueLimits};
use std::path::PathBuf;
use std::time::Duration;

/// Most events of a queue, and most that wait between the disk and the memory.
const EVENTS_MAX: usize = 10_000_000;

pub mod mem {
    //! `queue.mem`.

    use super::*;

    settings! {
        /// The settings.
        pub static MEM = Group::new("queue.mem", "A queue in memory.").unsupported(&[(
            "immediate_shutdown",
            "`filebeat.shutdown_timeout: 0` is close to it",
        )]);

        /// `events`.
        pub EVENTS: usize = Key::new("events")
            .default(QueueLimits::EVENTS)
            .range(1, EVENTS_MAX)
            .noun("a number of events")
            .about("events queued and in flight. A batch has at most a quarter");
        /// `bytes`.
        pub BYTES: Size = Key::new("bytes")
            .default(QueueLimits::BYTES as u64)
            .range(1, 64 << 30)
            .ours()
            .about(
                "bytes of the batches queued and in flight. More: fewer waits with long lines; this is most of the \
                 program's memory",
            );
        /// `flush.min_events`.
        pub FLUSH_MIN_EVENTS: usize = Key::new("flush.min_events")
            .default(QueueLimits::FLUSH_MIN_EVENTS)
            .about("how many an output waits for; 0 or 1: none");
        /// `flush.timeout`.
        pub FLUSH_TIMEOUT: Duration = Key::new("flush.timeout")
            .default(QueueLimits::FLUSH_TIMEOUT)
            .about(
                "how long it waits for them, since the last events were taken; the first ones after such a time go \
                 at once",
            );
    }
}

pub mod encryption {
    //! `queue.disk.encryption`.

    use super::*;

    settings! {
        /// The settings.
        pub static ENCRYPTION = Group::new("queue.disk.encryption", "What is written is encrypted.").inline();

        /// `enabled`.
        pub ENABLED: bool = Key::new("enabled")
            .default(true)
            .default_words("`true` if there is a section")
            .ours()
            .about("[encrypts](operations.md#the-disk-queue) what is written");
        /// `key`.
        pub KEY: Secret = Key::new("key").ours().about(
            "32 random bytes in base64, better from the keystore or the environment (`${…}`) than here",
        );
        /// `key_file`.
        pub KEY_FILE: PathBuf = Key::new("key_file").ours().about("a file with them, instead of `key`");
    }
}

pub mod disk {
    //! `queue.disk`.

    use super::*;

    settings! {
        /// The settings.
        pub static DISK = Group::new("queue.disk", "A queue on the disk.");

        /// `enabled`.
        pub ENABLED: bool = Key::new("enabled").default(true).about("`false`: `queue.mem`");
        /// `path`.
        pub PATH: PathBuf = Key::new("path").default_words("`${path.data}/diskqueue`").about(
            "its directory, for this queue alone. Of several outputs all but the first have \
             `${path.data}/outputs/ID/diskqueue`; of a `path` at the root, `outputs/ID` in it",
        );
        /// `max_size`.
        pub MAX_SIZE: Size = Key::new("max_size").default(DiskQueueSettings::MAX_SIZE).about(
            "most bytes on the disk; readers wait when it is full. At least 10 MB; `0`: as much as there is",
        );
        /// `segment_size`.
        pub SEGMENT_SIZE: Size = Key::new("segment_size")
            .default_words("a tenth of `max_size`; 100 MiB without one")
            .about("bytes of a file; at least 1 MB, at most half of `max_size`");
        /// `read_ahead`.
        pub READ_AHEAD: usize = Key::new("read_ahead")
            .default(DiskQueueSettings::READ_AHEAD)
            .range(1, EVENTS_MAX)
            .about("events read from the disk that wait in memory for the output; a batch more");
        /// `write_ahead`.
        pub WRITE_AHEAD: usize = Key::new("write_ahead")
            .default(DiskQueueSettings::WRITE_AHEAD)
            .range(1, EVENTS_MAX)
            .about(
                "events that wait in memory for the disk, and at most 16 MiB. A batch has at most a quarter",
            );
        /// `retry_interval`.
        pub RETRY_INTERVAL: Duration = Key::new("retry_interval")
            .default(DiskQueueSettings::RETRY_INTERVAL)
            .about("the pause after a failure of the disk, which doubles up to `max_retry_interval`");
        /// `max_retry_interval`.
        pub MAX_RETRY_INTERVAL: Duration = Key::new("max_retry_interval")
            .default(DiskQueueSettings::MAX_RETRY_INTERVAL)
            .about("the longest pause");
        /// `encryption`.
        pub ENCRYPTED: Part = Key::part("encryption", &encryption::ENCRYPTION).about("what is written is encrypted");
    }
}

settings! {
    /// `queue`, at the root or in an output: one of both.
    pub static QUEUE = Group::new("queue", "The queue before an output.")
        .unsupported(&[("slab.*", "use `queue.mem`")]);

    /// `mem`.
    pub IN_MEM: Part = Key::part("mem", &mem::MEM).about("in memory");
    /// `disk`.
    pub ON_DISK: Part = Key::part("disk", &disk::DISK).about("on the disk");
}

/// Settings of the queue that an output implies; `None` leaves the user's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueSettings {
    /// `queue.mem.events`.
    pub events: Option<usize>,
    /// `queue.mem.flush.min_events`.
    pub flush_min_events: Option<usize>,
    /// `queue.mem.flush.timeout`.
    pub flush_timeout: Option<Duration>,
    /// They give way to a `queue` that the user wrote, instead of winning over it.
    pub gives_way: bool,
}

impl QueueSettings {
    /// For sizes that are `auto`: the queue is bounded by its bytes, and not by a number of events that would
    /// bound the sizes too.
    pub fn bounded_in_bytes() -> Self {
        Self {
            events: Some(1 << 20),
            flush_min_events: Some(1 << 20),
            flush_timeout: Some(Duration::from_secs(1)),
            gives_way: true,
        }
    }
}
