//! What autodiscover knows about the container or pod of an input, as fields of its events: they may change while the
//! input runs.

use skidder_autodiscover::Fields;
use skidder_event::{EventMut, Map, Value};
use skidder_processors::{
    AddFields, Constants, Failure, Footprint, Outcome, Processor, value_of_json,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The fields of one input. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct MadeFields(Arc<State>);

#[derive(Debug)]
struct State {
    fields: Mutex<Fields>,
    /// Grows with each change.
    epoch: AtomicU64,
}

impl MadeFields {
    /// With these fields at first.
    pub(crate) fn new(fields: &Fields) -> Self {
        Self(Arc::new(State { fields: Mutex::new(fields.clone()), epoch: AtomicU64::new(0) }))
    }

    /// These fields from the next batch on.
    pub(crate) fn set(&self, fields: &Fields) {
        let mut current = self.lock();
        if *current != *fields {
            *current = fields.clone();
            drop(current);
            self.0.epoch.fetch_add(1, Ordering::Release);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Fields> {
        self.0.fields.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What adds them as they are now: some kilobytes, of which a source at rest keeps nothing.
    fn adding(&self) -> AddFields {
        let fields = match value_of_json(self.lock().value()) {
            Value::Map(fields) => fields,
            _ => Map::new(),
        };
        AddFields::new("", &fields)
    }
}

impl Processor for MadeFields {
    fn name(&self) -> &'static str {
        "autodiscover"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        self.adding().run(event)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        Footprint::everything()
    }

    fn can_fail(&self) -> bool {
        false
    }

    fn bound(&self) -> Option<Arc<dyn Processor>> {
        Some(Arc::new(self.adding()))
    }

    fn looks_outside(&self) -> bool {
        true
    }

    fn epoch(&self) -> u64 {
        self.0.epoch.load(Ordering::Acquire)
    }
}
