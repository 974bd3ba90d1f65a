//! Acknowledgements of Splunk's HEC: a request gets a number, and its client asks later whether it has its verdicts.
//!
//! <https://help.splunk.com/en/splunk-enterprise/get-data-in/about-http-event-collector-indexer-acknowledgment>. What was
//! acknowledged is forgotten as soon as the client knows. A number that is not known is not acknowledged: the client sends
//! its events again, which repeats them and loses nothing. So no number may ever stand for two requests, not of the run
//! before either: the first one is the time of the start.

use super::super::answer::Verdicts;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Channels of an input, at most.
const CHANNELS_MAX: usize = 1000;

/// Requests of all channels that clients have not asked for yet, at most.
const REQUESTS_MAX: usize = 100_000;

/// A channel that was not used for so long may be forgotten for another one.
const IDLE: Duration = Duration::from_mins(10);

/// Bytes of the name of a channel, which is a GUID.
const CHANNEL_BYTES_MAX: usize = 128;

#[derive(Debug)]
struct Channel {
    requests: BTreeMap<u64, Arc<Verdicts>>,
    used: Instant,
}

/// The channels of an input.
#[derive(Debug)]
pub(in super::super) struct Acks(Mutex<State>);

#[derive(Debug)]
struct State {
    /// The number of the next request.
    next: u64,
    channels: HashMap<String, Channel>,
}

impl Acks {
    /// Of an input that starts at this time, in nanoseconds since 1970. Its numbers begin with the microseconds: an input
    /// does not give a number each microsecond, so that those of earlier ones are lower, and a JSON reader with numbers of
    /// 53 bits can read them for 200 years.
    pub(super) fn new(start: i64) -> Self {
        let next = u64::try_from(start / 1000).unwrap_or_default();
        Self(Mutex::new(State { next, channels: HashMap::new() }))
    }

    /// A number for a request whose verdicts these are. `None` if there are too many.
    pub(super) fn begin(&self, channel: &str, verdicts: &Arc<Verdicts>) -> Option<u64> {
        if channel.len() > CHANNEL_BYTES_MAX {
            return None;
        }
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let State { next, channels } = &mut *state;
        let now = Instant::now();
        let requests: usize = channels.values().map(|channel| channel.requests.len()).sum();
        let is_new = !channels.contains_key(channel);
        if requests >= REQUESTS_MAX || (is_new && channels.len() >= CHANNELS_MAX) {
            let idle = channels.iter().filter(|(_, of)| now - of.used >= IDLE);
            let oldest = idle.min_by_key(|(_, of)| of.used).map(|(name, _)| name.clone())?;
            channels.remove(&oldest);
        }
        let of = channels
            .entry(channel.to_owned())
            .or_insert_with(|| Channel { requests: BTreeMap::new(), used: now });
        of.used = now;
        let id = *next;
        *next += 1;
        of.requests.insert(id, Arc::clone(verdicts));
        Some(id)
    }

    /// Forgets a request that is refused.
    pub(super) fn cancel(&self, channel: &str, id: u64) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(of) = state.channels.get_mut(channel) {
            of.requests.remove(&id);
        }
    }

    /// Whether a request has its verdicts.
    pub(super) fn take(&self, channel: &str, id: u64) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(of) = state.channels.get_mut(channel) else { return false };
        of.used = Instant::now();
        let is_accepted = of.requests.get(&id).is_some_and(|verdicts| verdicts.are_accepted());
        if is_accepted {
            of.requests.remove(&id);
        }
        is_accepted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http_endpoint::answer::OfRequest;
    use skidder_event::Acknowledge as _;

    #[tokio::test(start_paused = true)]
    async fn a_request_is_acknowledged_once_behind_its_verdicts() {
        let acks = Acks::new(7_999);
        let verdicts = Arc::new(Verdicts::of(2));
        assert_eq!(acks.begin("c", &verdicts), Some(7));
        assert_eq!(acks.begin("other", &verdicts), Some(8));
        assert!(!acks.take("c", 7));
        Box::new(OfRequest(Arc::clone(&verdicts))).accept();
        assert!(!acks.take("c", 7), "one of two");
        Box::new(OfRequest(Arc::clone(&verdicts))).accept();
        assert!(acks.take("c", 7));
        assert!(!acks.take("c", 7), "the client knows");
        assert!(!acks.take("c", 8) && !acks.take("unknown", 7));
        let rejected = Arc::new(Verdicts::of(1));
        assert_eq!(acks.begin("c", &rejected), Some(9));
        Box::new(OfRequest(Arc::clone(&rejected))).reject();
        assert!(!acks.take("c", 9));
        assert_eq!(acks.begin(&"x".repeat(200), &rejected), None);
    }

    #[tokio::test(start_paused = true)]
    async fn too_many_channels_replace_only_idle_ones() {
        let (acks, verdicts) = (Acks::new(0), Arc::new(Verdicts::of(1)));
        for number in 0..CHANNELS_MAX as u64 {
            assert_eq!(acks.begin(&number.to_string(), &verdicts), Some(number));
        }
        assert_eq!(acks.begin("new", &verdicts), None);
        assert!(acks.begin("0", &verdicts).is_some(), "a known one");
        tokio::time::advance(IDLE).await;
        assert!(acks.begin("new", &verdicts).is_some());
    }
}
