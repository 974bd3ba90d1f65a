//! The steps between the lines of a batch and the queue, as far as an input knows them.
//!
//! The compiled plan of processors stands behind these traits; an input only binds it to the fields of
//! a source and runs it.

use crate::base::Base;
use crate::batch::Batch;
use crate::value::Map;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

/// Makes the base and the steps for one source.
pub trait Bind: Send + Sync + Debug {
    /// Binds to the constant fields of a source (`log.file.*`, `input.type`).
    fn bind(&self, fields: &Map) -> Arc<dyn Bound>;

    /// Whether [`Bind::hold`] is worth the fields that it wants to see.
    fn can_hold(&self) -> bool {
        false
    }

    /// How long to wait before the next call, if something about this source has to be known before its
    /// lines are read. It must come to an end. Only called while [`Bind::can_hold`].
    fn hold(&self, fields: &Map) -> Option<Duration> {
        let _ = fields;
        None
    }

    /// Changes when what was bound before is out of date.
    fn epoch(&self) -> u64;
}

/// The processors of one source.
pub trait Bound: Send + Sync + Debug {
    /// The base that a fresh batch begins with.
    fn base(&self) -> &Arc<Base>;

    /// Runs all steps; dropped events are taken out and counted.
    fn run(&self, batch: &mut Batch);
}

/// No processors: batches stay as they are, over the fields of their source. What tests of inputs bind.
#[derive(Debug)]
pub struct Unprocessed(Arc<Base>);

impl Unprocessed {
    /// Binds to nothing yet.
    pub fn bind() -> Arc<dyn Bind> {
        Arc::new(Self(Arc::new(Base::new(&Map::new(), &Map::new()))))
    }
}

impl Bind for Unprocessed {
    fn bind(&self, fields: &Map) -> Arc<dyn Bound> {
        Arc::new(Self(Arc::new(Base::new(fields, &Map::new()))))
    }

    fn epoch(&self) -> u64 {
        0
    }
}

impl Bound for Unprocessed {
    fn base(&self) -> &Arc<Base> {
        &self.0
    }

    fn run(&self, _batch: &mut Batch) {}
}
