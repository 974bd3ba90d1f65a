//! Settings that several outputs have.

use skidder_config::{Any, Group, Key, Section, Setting, settings};
use std::time::Duration;

mod every {
    use super::*;

    settings! {
        /// What every output has.
        pub static EVERY_OUTPUT = Group::new("output.*", "What every output has.")
            .common()
            .deprecated(&[("max_retries", "events are sent until they are accepted, as in Filebeat")]);

        pub(crate) ENABLED: bool = Key::new("enabled").default(true).about("send events to this output");
        pub(crate) QUEUE: Any = Key::new("queue").about("the queue before this output, instead of the one at the root");
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
pub use every::EVERY_OUTPUT;
pub(crate) use every::{ENABLED, QUEUE};

/// `backoff.init` and `backoff.max`.
pub fn read_backoff(section: &Section<'_>) -> (Duration, Duration) {
    (section.get(&backoff::INIT).value(), section.get(&backoff::MAX).value())
}

/// A number of events. Zero and less leave it to the queue, as in Filebeat.
pub fn events<'a>(setting: Setting<'a, i64>) -> Setting<'a, usize> {
    setting.map(|events| usize::try_from(events).unwrap_or(0))
}

/// `workers`, or `worker`, of which there is 1 if nothing is said and `most` at most. `noun` is what they are, for
/// messages: `a number of connections`.
pub fn read_workers(section: &Section<'_>, noun: &str, most: usize) -> usize {
    let workers = |key| section.usize(key).named(noun).range(1..=most);
    let worker = workers("worker").optional();
    workers("workers").optional().or(worker).unwrap_or(1)
}

/// `bulk_max_size`. Zero and less leave the size to the queue, as in Filebeat.
pub fn read_bulk_max_size(section: &Section<'_>, default: usize) -> usize {
    events(section.i64("bulk_max_size").named("a number of events")).or(default)
}
