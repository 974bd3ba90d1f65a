//! What autodiscover knows about the container or pod of an input, as fields of its events: they may change while the
//! input runs.

use serde_json::Value as Json;
use skidder_event::{EventMut, Map, Value};
use skidder_processors::{
    AddFields, Constants, Failure, Footprint, Outcome, Processor, value_of_json,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// The fields of one input. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct MadeFields(Arc<State>);

#[derive(Debug)]
struct State {
    current: RwLock<Arc<AddFields>>,
    /// Grows with each change.
    epoch: AtomicU64,
}

impl MadeFields {
    /// With these fields at first.
    pub(crate) fn new(fields: &Json) -> Self {
        let current = RwLock::new(adding(fields));
        Self(Arc::new(State { current, epoch: AtomicU64::new(0) }))
    }

    /// Other fields from the next batch on.
    pub(crate) fn set(&self, fields: &Json) {
        *self.0.current.write().unwrap_or_else(PoisonError::into_inner) = adding(fields);
        self.0.epoch.fetch_add(1, Ordering::Release);
    }

    fn current(&self) -> Arc<AddFields> {
        Arc::clone(&self.0.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

fn adding(fields: &Json) -> Arc<AddFields> {
    let fields = match value_of_json(fields.clone()) {
        Value::Map(fields) => fields,
        _ => Map::new(),
    };
    Arc::new(AddFields::new("", &fields))
}

impl Processor for MadeFields {
    fn name(&self) -> &'static str {
        "autodiscover"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        self.current().run(event)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        Footprint::everything()
    }

    fn can_fail(&self) -> bool {
        false
    }

    fn bound(&self) -> Option<Arc<dyn Processor>> {
        Some(self.current())
    }

    fn epoch(&self) -> u64 {
        self.0.epoch.load(Ordering::Acquire)
    }
}
