//! What inputs and queues do with a batch as a whole: copy it for another output, give all of it up, take out what is owed
//! for it.

use crate::base::Base;
use crate::batch::{Batch, Parts};
use crate::provenance::{Acknowledgement, DropReason, Progress, Provenance};
use std::sync::Arc;

impl Batch {
    /// Another batch of the same events, over the base of another plan. Only before processors ran over it.
    ///
    /// # Panics
    /// If processors ran: what they did belongs to their plan.
    pub fn copy_over(&self, base: Arc<Base>, provenance: Provenance) -> Self {
        assert!(self.layouts.is_empty(), "processors ran over the batch");
        let parts =
            Parts { bytes: self.bytes.clone(), rows: self.rows.clone(), ..Parts::default() };
        let mut copy = Self::with_lines(parts, self.utf8_bytes as usize, base, provenance);
        copy.nodes.clone_from(&self.nodes);
        copy.utf8_appended = self.utf8_appended.clone();
        (copy.lines, copy.drops, copy.dotted) = (self.lines, self.drops, self.dotted);
        copy
    }

    /// Takes all events out and counts them as dropped.
    pub fn drop_all(&mut self, reason: DropReason) {
        self.drops.add(reason, self.rows.len() as u64);
        self.rows.clear();
    }

    /// Takes out the acknowledgement that is owed to the far side of the source, if it is owed one. The caller
    /// accepts it when all events have their verdict.
    pub fn take_acknowledgement(&mut self) -> Option<Acknowledgement> {
        let Progress::Acknowledge(_, bytes) = &self.provenance.progress else { return None };
        let nothing = Progress::Nothing(*bytes);
        match std::mem::replace(&mut self.provenance.progress, nothing) {
            Progress::Acknowledge(owed, _) => Some(owed),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Row, Text};
    use crate::encode::{Encoder, Precision};
    use crate::path::Path;
    use crate::provenance::SourceId;
    use crate::value::Map;

    fn base(name: &str) -> Arc<Base> {
        let mut fields = Map::new();
        fields.insert_path("agent.name", name);
        fields.insert_path("log.source.port", 514);
        Arc::new(Base::new(&fields, &Map::new()))
    }

    fn document(batch: &Batch) -> serde_json::Value {
        let mut out = Vec::new();
        Encoder::new(Precision::Millisecond).write(&mut out, batch, 0);
        serde_json::from_slice(&out).expect("it is JSON")
    }

    #[test]
    fn a_copy_has_the_events_of_the_batch_over_another_base() {
        let provenance =
            |source| Provenance { source: SourceId(source), progress: Progress::Nothing(5) };
        let base_of_one = base("one");
        let mut one = Batch::new(b"line\n".to_vec(), true, Arc::clone(&base_of_one), provenance(1));
        one.push(Row::numbered(7, 5, Text { start: 0, len: 4 }, 0));
        let path = Path::parse("log.source.address").expect("it is a path");
        one.event_mut(0, &base_of_one).put(&path, &"10.0.0.7".into()).expect("an object");
        let two = one.copy_over(base("two"), provenance(2));
        // What is done to one of them is not done to the other.
        one.event_mut(0, &base_of_one).clear_message();
        let seen = document(&two);
        assert_eq!(seen["message"], "line");
        assert_eq!(seen["agent"]["name"], "two");
        let source = serde_json::json!({"address": "10.0.0.7", "port": 514});
        assert_eq!(seen["log"], serde_json::json!({ "source": source }), "and no offset");
        assert_eq!((two.lines(), two.rows()[0].offset, two.provenance().source.0), (1, 7, 2));
        assert!(document(&one).get("message").is_none());
    }

    #[test]
    fn what_is_given_up_is_counted() {
        let provenance = Provenance { source: SourceId(1), progress: Progress::Nothing(5) };
        let mut batch = Batch::new(b"line\n".to_vec(), true, base("one"), provenance);
        batch.push(Row::numbered(0, 5, Text { start: 0, len: 4 }, 0));
        batch.drop_all(DropReason::Stopped);
        assert!(batch.is_empty());
        assert_eq!((batch.lines(), batch.drops().get(DropReason::Stopped)), (1, 1));
    }
}
