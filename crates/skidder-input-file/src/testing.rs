//! Processors that do nothing, for the tests of this crate.

use skidder_event::{Base, Batch, Map};
use skidder_read::{Bind, Bound};
use std::sync::Arc;

/// Processors that do nothing.
#[derive(Debug)]
pub(crate) struct Nothing(Arc<Base>);

impl Nothing {
    /// What an input is given.
    pub(crate) fn bind() -> Arc<dyn Bind> {
        Arc::new(Self(Arc::new(Base::new(&Map::new(), &Map::new()))))
    }
}

impl Bind for Nothing {
    fn bind(&self, fields: &Map) -> Arc<dyn Bound> {
        Arc::new(Self(Arc::new(Base::new(fields, &Map::new()))))
    }

    fn epoch(&self) -> u64 {
        0
    }
}

impl Bound for Nothing {
    fn base(&self) -> &Arc<Base> {
        &self.0
    }

    fn run(&self, _batch: &mut Batch) {}
}
