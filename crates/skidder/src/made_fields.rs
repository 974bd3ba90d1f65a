//! What autodiscover knows about the container or pod of an input, as fields of its events: they may change while the
//! input runs.

use skidder_autodiscover::Fields;
use skidder_event::{EventMut, Map, Value};
use skidder_processors::{
    AddFields, Constants, Failure, Footprint, Outcome, Processor, value_of_json,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The fields of one input. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct MadeFields(Arc<State>);

#[derive(Debug)]
struct State {
    current: Mutex<Current>,
    /// Grows with each change.
    epoch: AtomicU64,
}

#[derive(Debug)]
struct Current {
    fields: Fields,
    /// What sources hold whose base does not have the fields in it. It is some kilobytes, and most inputs have no such
    /// source.
    adding: Weak<AddFields>,
}

impl MadeFields {
    /// With these fields at first.
    pub(crate) fn new(fields: &Fields) -> Self {
        let current = Current { fields: fields.clone(), adding: Weak::new() };
        Self(Arc::new(State { current: Mutex::new(current), epoch: AtomicU64::new(0) }))
    }

    /// These fields from the next batch on.
    pub(crate) fn set(&self, fields: &Fields) {
        let mut current = self.lock();
        if current.fields != *fields {
            *current = Current { fields: fields.clone(), adding: Weak::new() };
            drop(current);
            self.0.epoch.fetch_add(1, Ordering::Release);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        self.0.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn current(&self) -> Arc<AddFields> {
        let mut current = self.lock();
        current.adding.upgrade().unwrap_or_else(|| {
            let adding = adding(&current.fields);
            current.adding = Arc::downgrade(&adding);
            adding
        })
    }
}

fn adding(fields: &Fields) -> Arc<AddFields> {
    let fields = match value_of_json(fields.value()) {
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

    fn looks_outside(&self) -> bool {
        true
    }

    fn epoch(&self) -> u64 {
        self.0.epoch.load(Ordering::Acquire)
    }
}
