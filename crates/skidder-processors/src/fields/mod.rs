//! Processors that work on the fields of the event with what the configuration gives.

mod add_fields;
mod add_tags;
mod copy_fields;
mod drop_event;
mod drop_fields;
pub(crate) mod pairs;
mod raw_index;
mod rename;

pub use add_fields::{AddFields, fields_of};
pub use add_tags::AddTags;
pub use copy_fields::CopyFields;
pub use drop_event::DropEvent;
pub use drop_fields::DropFields;
pub use raw_index::RawIndex;
pub use rename::Rename;

use crate::kinds::{Kind, shared};

/// Those that a configuration can name.
pub(crate) const KINDS: &[Kind] = &[
    ("add_fields", |settings, _| shared(AddFields::read(settings))),
    ("add_tags", |settings, _| shared(AddTags::read(settings))),
    ("copy_fields", |settings, _| shared(CopyFields::read(settings))),
    ("drop_event", |_, _| shared(Some(DropEvent))),
    ("drop_fields", |settings, _| shared(DropFields::read(settings))),
    ("rename", |settings, _| shared(Rename::read(settings))),
];
