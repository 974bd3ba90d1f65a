//! Processors, conditions and the compiled plan.
//!
//! A configuration's `processors:` become [`Compiled`] steps (`kinds.rs` knows their names), and those
//! a [`Plan`]. For each source the plan is bound: every step whose effect is the same for all events
//! of the source is folded into the source's base layer, and only the rest runs over the batch, in
//! place, with undo notes instead of copies.

mod add_fields;
mod add_host_metadata;
mod add_tags;
mod bind;
mod bound;
mod compiled;
mod condition;
mod constants;
mod drop_event;
mod drop_fields;
mod footprint;
mod kinds;
mod pattern;
mod plan;
mod processor;
mod raw_index;
mod rename;

pub use add_fields::{AddFields, fields_of};
pub use add_host_metadata::{AddHostMetadata, HostSettings, Machine, ThisMachine};
pub use add_tags::AddTags;
pub use bound::BoundPlan;
pub use compiled::{Compiled, FailureCount};
pub use condition::{Bounds, Condition, EqualsValue, Network, NetworkError};
pub use constants::Constants;
pub use drop_event::DropEvent;
pub use drop_fields::DropFields;
pub use footprint::Footprint;
pub use kinds::{Context, read_processors};
pub use pattern::{PatternError, compile_pattern};
pub use plan::{Plan, Shape};
pub use processor::{Failure, Outcome, Processor};
pub use raw_index::RawIndex;
pub use rename::Rename;
