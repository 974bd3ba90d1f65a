//! What an input counts, whatever its type.

use skidder_event::{Counter, Gauge};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Counters of one input.
#[derive(Debug, Default)]
pub struct InputMetrics {
    /// Sources opened so far.
    pub opened: Counter,
    /// Sources open now.
    pub open: Gauge,
    /// Bytes received, as the far side sent them.
    pub bytes: Counter,
    /// Events received.
    pub events: Counter,
    /// Events that were offered and for which there was no room in some queue.
    pub refused: Counter,
    /// Events that the far side sent and that were lost before this program saw them, as far as the system counts them.
    pub lost_before: Counter,
    /// What the input could not read or take, and the network's errors.
    pub errors: Counter,
    /// Of an input that listens, from the moment on at which it does.
    pub network: OnceLock<NetworkMetrics>,
}

/// What Filebeat shows of an input that listens, beside the counters of all inputs.
#[derive(Debug, Default)]
pub struct NetworkMetrics {
    /// `device`: where it listens, as configured.
    pub device: String,
    /// `udp_read_buffer_length_gauge`: bytes of the socket's receive buffer that were asked for; 0 = the system's default.
    pub read_buffer: u64,
    /// Bytes of it that the system granted. Payload and the system's own part share them.
    pub read_buffer_granted: u64,
    /// `receive_queue_length`: bytes that wait in the socket's receive buffer, the system's own part included.
    pub receive_queue: Gauge,
    /// `arrival_period`: nanoseconds between two events.
    pub arrival_period: Histogram,
    /// `processing_time`: nanoseconds from the receipt of an event until it was published.
    pub processing_time: Histogram,
}

/// Values of which Filebeat keeps a uniform sample of 1024: minimum, mean, quantiles are taken from it.
#[derive(Debug, Default)]
pub struct Histogram(Mutex<Sample>);

#[derive(Debug, Default)]
struct Sample {
    count: u64,
    values: Vec<u64>,
    random: u64,
}

/// Values of a sample.
const SAMPLE_MAX: usize = 1024;

impl Histogram {
    fn lock(&self) -> MutexGuard<'_, Sample> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a value. Each value ever added has the same chance to be in the sample.
    pub fn add(&self, value: u64) {
        let mut sample = self.lock();
        sample.count += 1;
        if sample.values.len() < SAMPLE_MAX {
            sample.values.push(value);
            return;
        }
        // SplitMix64: the sample must be fair, not unpredictable.
        sample.random = sample.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = sample.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let at = ((bits ^ (bits >> 31)) % sample.count) as usize;
        if let Some(place) = sample.values.get_mut(at) {
            *place = value;
        }
    }

    /// How many values were added, and a sample of them, sorted.
    pub fn sample(&self) -> (u64, Vec<u64>) {
        let sample = self.lock();
        let mut values = sample.values.clone();
        let count = sample.count;
        drop(sample);
        values.sort_unstable();
        (count, values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_of_all_values_and_has_a_bound() {
        let histogram = Histogram::default();
        for value in 0..100_000 {
            histogram.add(value);
        }
        let (count, values) = histogram.sample();
        assert_eq!((count, values.len()), (100_000, SAMPLE_MAX));
        let mean = values.iter().sum::<u64>() / SAMPLE_MAX as u64;
        assert!((45_000..55_000).contains(&mean), "{mean}");
    }
}
