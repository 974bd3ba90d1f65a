//! Helpers of this crate's unit tests.

pub(crate) use skidder_contract::{batch_with, deliveries};

use skidder_outputs::Context;

pub(crate) fn context() -> Context {
    Context::sample()
}
