//! The numbers of an input that acknowledges messages of a subscription.

use skidder_event::{Counter, Sample};
use std::fmt;
use std::sync::OnceLock;

/// What such an input reports, with the names of Filebeat's `gcp-pubsub` under `/inputs/`.
#[derive(Debug, Default)]
pub struct Subscribed {
    /// Messages received, those that came again included.
    pub received: Counter,
    /// Of these, second copies of messages whose first copy was under way: they are no events.
    pub again: Counter,
    /// `acked_message_total`: messages whose acknowledgement the server has taken.
    pub acknowledged: Counter,
    /// `failed_acked_message_total`: acknowledgements that came too late; these messages come again.
    pub failed: Counter,
    /// `nacked_message_total`: messages that were given back, so that another process gets them.
    pub returned: Counter,
    /// `bytes_processed_total`: bytes of acknowledged messages.
    pub bytes: Counter,
    /// `processing_time`: nanoseconds from the publication of a message until its acknowledgement was taken.
    pub processing_time: Sample,
    held: OnceLock<Held>,
}

type CountHeld = Box<dyn Fn() -> (u64, Option<i64>) + Send + Sync>;

/// Counts the messages that are held.
struct Held(CountHeld);

impl fmt::Debug for Held {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Held")
    }
}

impl Subscribed {
    /// How [`Subscribed::held`] is found out. The first one stays.
    pub fn set_held(&self, held: impl Fn() -> (u64, Option<i64>) + Send + Sync + 'static) {
        self.held.get_or_init(|| Held(Box::new(held)));
    }

    /// How many messages are held and not acknowledged, and when the oldest of them was published: nanoseconds since
    /// 1970-01-01 UTC.
    pub fn held(&self) -> (u64, Option<i64>) {
        self.held.get().map_or((0, None), |held| (held.0)())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_held_before_the_input_has_begun() {
        let subscribed = Subscribed::default();
        assert_eq!(subscribed.held(), (0, None));
        subscribed.set_held(|| (3, Some(7)));
        subscribed.set_held(|| (4, None));
        assert_eq!(subscribed.held(), (3, Some(7)), "the first one stays");
    }
}
