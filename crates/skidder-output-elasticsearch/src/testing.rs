//! What the unit tests of this crate share.

pub(crate) use skidder_contract::{batch_with, deliveries};

use skidder_outputs::Context;

pub(crate) fn context() -> Context {
    Context::sample()
}
