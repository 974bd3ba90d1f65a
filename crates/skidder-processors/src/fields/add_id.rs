//! `add_id`: an id for each event, made as Elasticsearch makes its own.
//!
//! 15 bytes as 20 letters of URL-safe base64: a sequence number, milliseconds and six random bytes
//! that stand for the machine, in the order that Lucene compresses well. Source:
//! <https://github.com/elastic/elasticsearch/blob/main/server/src/main/java/org/elasticsearch/common/TimeBasedUUIDGenerator.java>.

use super::pairs::path_at;
use crate::kinds::Context;
use crate::plan::Constants;
use crate::plan::Failure;
use crate::plan::Footprint;
use crate::plan::{Outcome, Processor};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use skidder_config::{Group, Key, OneOf, Section, settings};
use skidder_event::{EventMut, Path};
use skidder_os::Clock;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

settings! {
    /// Settings of `add_id`.
    pub(crate) static ADD_ID = Group::new("processor.add_id", "Gives each event an id of 20 letters, made as Elasticsearch makes \
                               its own.");

    TARGET_FIELD: String = Key::new("target_field")
        .default(AddId::TARGET)
        .about("where the id goes; replaces an existing value");
    TYPE: OneOf<()> = Key::one_of("type", &[("elasticsearch", ())])
        .default("elasticsearch")
        .about("how ids are made; there is no other way yet");
}

/// Bytes of an id.
const ID_BYTES: usize = 15;

/// Letters of an id.
const ID_LETTERS: usize = 20;

/// The sequence number has this many values.
const SEQUENCE_END: u32 = 1 << 24;

/// Adds an id to every event.
pub(crate) struct AddId {
    target: Path,
    clock: Arc<dyn Clock>,
    /// Stands for the machine; random, so that several of these never make the same id.
    node: [u8; 6],
    last: Mutex<Last>,
}

/// What the id before had.
struct Last {
    milliseconds: u64,
    sequence: u32,
}

impl AddId {
    /// Default target field of the id.
    const TARGET: &'static str = "@metadata._id";

    /// `target_field` and `type`.
    pub(crate) fn read(settings: &Section<'_>, context: &Context) -> Option<Self> {
        let target = path_at(settings, &TARGET_FIELD);
        settings.get(&TYPE).value();
        let random = uuid::Uuid::new_v4().into_bytes();
        Some(Self::new(target?, Arc::clone(&context.clock), random))
    }

    fn new(target: Path, clock: Arc<dyn Clock>, random: [u8; 16]) -> Self {
        let [s0, s1, s2, .., n0, n1, n2, n3, n4, n5] = random;
        // As if it were the address of a group: never that of a machine.
        let node = [n0 | 1, n1, n2, n3, n4, n5];
        let last =
            Mutex::new(Last { milliseconds: 0, sequence: u32::from_be_bytes([0, s0, s1, s2]) });
        Self { target, clock, node, last }
    }

    fn next(&self) -> [u8; ID_BYTES] {
        let now = u64::try_from(self.clock.wall().0 / 1_000_000).unwrap_or(0);
        let (time, sequence) = {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            last.sequence = (last.sequence + 1) % SEQUENCE_END;
            // A clock that is set back makes no time go back; each round of the sequence has a time
            // of its own.
            last.milliseconds = last.milliseconds.max(now) + u64::from(last.sequence == 0);
            (last.milliseconds.to_le_bytes(), last.sequence.to_le_bytes())
        };
        let mut id = [0; ID_BYTES];
        id[0] = sequence[0];
        id[1] = sequence[2];
        id[2..6].copy_from_slice(&time[2..6]);
        id[6..12].copy_from_slice(&self.node);
        id[12] = time[1];
        id[13] = sequence[1];
        id[14] = time[0];
        id
    }
}

impl fmt::Debug for AddId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("AddId").field("target", &self.target).finish_non_exhaustive()
    }
}

impl Processor for AddId {
    fn name(&self) -> &'static str {
        "add_id"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        let mut text = [0; ID_LETTERS];
        let written = URL_SAFE_NO_PAD.encode_slice(self.next(), &mut text);
        written.expect("15 bytes are 20 letters");
        event
            .put_text(&self.target, &text)
            .map_err(|error| Failure::new(format!("failed to compute ID: {error}")))?;
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        Footprint { writes: vec![self.target.clone()], ..Footprint::default() }
    }

    fn describe(&self) -> String {
        format!("add_id to {}", self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_os::Timestamp;
    use skidder_testkit::SimClock;
    use std::collections::BTreeSet;
    use std::time::Duration;

    fn ids(random: [u8; 16]) -> (AddId, SimClock) {
        let clock = SimClock::starting_at(Timestamp(1_795_294_377_123_000_000));
        let path = Path::parse("id").unwrap();
        (AddId::new(path, Arc::new(clock.clone()), random), clock)
    }

    #[test]
    fn bytes_stand_where_elasticsearch_has_them() {
        let mut random = [0; 16];
        random[..3].copy_from_slice(&[0x12, 0x34, 0x55]);
        random[10..].copy_from_slice(&[0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5]);
        let (ids, _) = ids(random);
        // 1795294377123 ms are 0x01a1_ffd1_04a3.
        let id = ids.next();
        let time = 1_795_294_377_123_u64.to_be_bytes();
        let expected = [
            0x56, 0x12, time[5], time[4], time[3], time[2], 0xa1, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5,
            time[6], 0x34, time[7],
        ];
        assert_eq!(id, expected);
    }

    #[test]
    fn no_id_comes_twice_when_the_sequence_begins_again() {
        let (ids, clock) = ids([0xff; 16]);
        let mut seen = BTreeSet::new();
        for round in 0..3 {
            for _ in 0..1000 {
                assert!(seen.insert(ids.next()), "round {round}");
            }
            ids.last.lock().unwrap().sequence = SEQUENCE_END - 1;
            if round == 1 {
                clock.advance(Duration::from_millis(1));
            }
        }
    }
}
