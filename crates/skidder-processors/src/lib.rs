//! Processors, conditions and the compiled plan.
//!
//! A configuration's `processors:` become [`Compiled`] steps (`kinds.rs` knows their names), and those
//! a [`Plan`]. For each source the plan is bound: every step whose effect is the same for all events
//! of the source is folded into the source's base layer, and only the rest runs over the batch, in
//! place, with undo notes instead of copies.

mod condition;
mod decode;
mod fields;
mod go_number;
mod go_value;
mod json_value;
mod kinds;
mod lookup;
mod pattern;
mod plan;
mod text;

pub use condition::{Bounds, CONDITION, Condition, EqualsValue, Network, NetworkError};
pub use decode::{
    DecodeCef, DecodeJsonFields, Dissect, Grok, ParseAwsVpcFlowLog, Syslog, Timestamp,
};
pub use fields::{
    AddFields, AddTags, DropEvent, DropFields, IncludeFields, Pairs, RawIndex, Verb, community_id,
    fields_of,
};
pub use json_value::value_of_json;
pub use kinds::choice::CHOICE;
pub use kinds::{Context, EVERY_PROCESSOR, Kind, Read, own_kinds, read_processors, shared};
pub use lookup::{AddHostMetadata, Caches, HostSettings, Machine, SharedFiles, ThisMachine};
pub use pattern::{PatternError, compile_pattern};
pub use plan::{
    BoundPlan, Compiled, Constants, Failure, FailureCount, Fate, Footprint, Meter, Outcome, Plan,
    Processor, Shape, StepCounts, StepNote, Template, Watch,
};
