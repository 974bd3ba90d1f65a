//! Settings that several outputs have.

use crate::queue::QUEUE;
use skidder_config::{Group, Key, Part, Section, Setting, Size, settings};
use std::time::Duration;

mod every {
    use super::*;

    settings! {
        /// The settings of every output.
        pub static EVERY_OUTPUT = Group::new("output.*", "What every output has.")
            .common()
            .deprecated(&[("max_retries", "events are sent until they are accepted, as in Filebeat")]);

        pub(crate) ENABLED: bool = Key::new("enabled").default(true).about("send events to this output");
        /// `queue`.
        pub OWN_QUEUE: Part = Key::part("queue", &QUEUE).about("the queue before this output, instead of the one at the root");
    }
}

mod backoff {
    use super::*;

    settings! {
        /// Waits after a failure.
        pub static BACKOFF = Group::new("backoff", "Waits between attempts.");

        pub(crate) INIT: Duration = Key::new("backoff.init")
            .default(Duration::from_secs(1))
            .at_least(Duration::from_millis(1))
            .about("first wait after a failure; half of each wait is random");
        pub(crate) MAX: Duration = Key::new("backoff.max")
            .default(Duration::from_mins(1))
            .at_least(Duration::from_millis(1))
            .about("waits double up to this one");
    }
}

pub use backoff::BACKOFF;
pub(crate) use every::ENABLED;
pub use every::EVERY_OUTPUT;
pub use every::OWN_QUEUE;

/// `backoff.init` and `backoff.max`.
pub fn read_backoff(section: &Section<'_>) -> (Duration, Duration) {
    let (init, max) = (section.get(&backoff::INIT).value(), section.get(&backoff::MAX).value());
    section.warn_of_longer((backoff::INIT.name(), init), (backoff::MAX.name(), max));
    (init, max)
}

/// A number of events. Zero and less leave it to the queue, as in Filebeat.
pub fn events<'a>(setting: Setting<'a, i64>) -> Setting<'a, usize> {
    setting.map(|events| usize::try_from(events).unwrap_or(0))
}

/// `workers`, or `worker`: what an output does at once, of which there is one by default and `most` at most. `noun` is
/// what they are, for messages: `a number of connections`.
pub const fn workers(noun: &'static str, most: usize) -> Key<usize> {
    Key::new("workers").alias("worker").default(1).range(1, most).noun(noun)
}

/// `loadbalance`.
pub const fn loadbalance(default: bool) -> Key<bool> {
    Key::new("loadbalance")
        .default(default)
        .about("all hosts at once; `false`: one at random, until it fails")
}

/// `bulk_max_size`, which [`events`] turns into a number of events.
pub const fn bulk_max_size(default: usize) -> Key<i64> {
    Key::new("bulk_max_size")
        .default(default as i64)
        .noun("a number of events")
        .about("events of a request; 0 or less: the queue decides")
}

/// `bulk_max_bytes`.
pub const fn bulk_max_bytes(default: usize) -> Key<Size> {
    Key::new("bulk_max_bytes").default(default as u64).range(1 << 10, 1 << 30).noun("a size")
}

/// `timeout`.
pub const fn timeout(default: Duration) -> Key<Duration> {
    Key::new("timeout").default(default).at_least(Duration::from_millis(1))
}
