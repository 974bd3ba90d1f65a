//! Events, batches, base layers and the JSON writer: the data that flows through skidder.
//!
//! A [`Batch`] owns the bytes that a reader filled in; an event is a [`Row`] of spans into them over
//! an immutable [`Base`] that all events of a source share. Fields that a processor adds, replaces
//! or removes are nodes in the batch's own arena, so that an event costs no heap allocation and an
//! unchanged event costs nothing but its row. The [`Encoder`] writes the two layers as one
//! JSON document, once, straight into the caller's buffer.
//!
//! This crate does no I/O and knows no other crate of the workspace.

mod base;
mod batch;
mod bind;
mod copy;
mod dotted;
mod edit;
mod encode;
mod escape;
mod event;
mod fields;
mod filter;
mod form;
mod format;
mod grouping;
mod layout;
mod merge;
mod merging;
mod metadata;
mod metrics;
mod path;
mod provenance;
mod shared;
mod short;
mod slots;
mod stored;
mod time;
mod value;
mod whole;

pub use base::{Base, BaseNode, BaseValue};
pub use batch::{Batch, Cell, Mark, Node, NodeId, Parts, Recycle, Row, Text};
pub use bind::{Bind, Bound, Unprocessed};
pub use edit::{EditError, EventMut};
pub use encode::{Encoder, Precision};
pub use escape::{escape_html, write_escaped, write_string};
pub use event::{EventRef, ListRef, MapRef, ValueRef, leaf_value};
pub use fields::{Arena, FieldList};
pub use filter::{KeyBit, KeyFilter};
pub use form::{Form, FormBuilder};
pub use format::{Format, FormatError, FormatParseError};
pub use metrics::{Counter, Gauge, Sample, Summary};
pub use path::{Path, PathError};
pub use provenance::{
    Acknowledge, Acknowledgement, DropCounts, DropReason, FilePart, Progress, Provenance,
    ResumePoint, SourceId, SourcePart, Tail,
};
pub use shared::SharedFields;
pub use slots::NewFields;
pub use stored::{Bases, RestoreError, TAG_NUMBER, TAG_OPAQUE, TAG_TIME};
pub use time::{DateParts, TimeText};
pub use value::{Map, Value};
