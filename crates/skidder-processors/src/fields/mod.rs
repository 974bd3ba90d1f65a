//! Processors that work on the fields of the event with what the configuration gives.

mod add_agent_metadata;
mod add_fields;
mod add_id;
mod add_labels;
mod add_network_direction;
mod add_tags;
mod append;
mod community_id;
mod convert;
mod detect_mime_type;
mod drop_event;
mod drop_fields;
mod extract_array;
mod fingerprint;
mod include_fields;
mod letter_case;
mod move_fields;
mod now;
pub(crate) mod pairs;
mod rate_limit;
mod raw_index;
mod registered_domain;
mod rename;
mod replace;
mod truncate_fields;

pub use add_fields::{AddFields, fields_of};
pub use add_tags::AddTags;
pub use community_id::community_id;
pub use drop_event::DropEvent;
pub use drop_fields::DropFields;
pub use include_fields::IncludeFields;
pub use raw_index::RawIndex;
pub use rename::{Pairs, Verb};

use crate::kinds::{Kind, shared};
use add_labels::AddLabels;
use append::Append;
use convert::Convert;
use extract_array::ExtractArray;
use letter_case::{Case, LetterCase};
use now::Now;
use replace::Replace;
use truncate_fields::TruncateFields;

/// Those that a configuration can name.
pub(crate) const KINDS: &[Kind] = &[
    ("add_agent_metadata", &add_agent_metadata::ADD_AGENT_METADATA, |settings, _| {
        shared(add_agent_metadata::AddAgentMetadata::read(settings))
    }),
    ("add_fields", &add_fields::ADD_FIELDS, |settings, _| shared(AddFields::read(settings))),
    ("add_formatted_index", &raw_index::ADD_FORMATTED_INDEX, |settings, _| {
        shared(RawIndex::read(settings))
    }),
    ("add_id", &add_id::ADD_ID, |settings, context| shared(add_id::AddId::read(settings, context))),
    ("add_labels", &add_labels::ADD_LABELS, |settings, _| shared(AddLabels::read(settings))),
    ("add_network_direction", &add_network_direction::ADD_NETWORK_DIRECTION, |settings, _| {
        shared(add_network_direction::AddNetworkDirection::read(settings))
    }),
    ("add_tags", &add_tags::ADD_TAGS, |settings, _| shared(AddTags::read(settings))),
    ("append", &append::APPEND, |settings, _| shared(Append::read(settings))),
    ("community_id", &community_id::COMMUNITY_ID, |settings, _| {
        shared(community_id::CommunityId::read(settings))
    }),
    ("convert", &convert::CONVERT, |settings, _| shared(Convert::read(settings))),
    ("copy_fields", &rename::COPY_FIELDS, |settings, _| shared(Pairs::read(settings, Verb::Copy))),
    ("detect_mime_type", &detect_mime_type::DETECT_MIME_TYPE, |settings, _| {
        shared(detect_mime_type::DetectMimeType::read(settings))
    }),
    ("drop_event", &drop_event::DROP_EVENT, |_, _| shared(Some(DropEvent))),
    ("drop_fields", &drop_fields::DROP_FIELDS, |settings, _| shared(DropFields::read(settings))),
    ("extract_array", &extract_array::EXTRACT_ARRAY, |settings, _| {
        shared(ExtractArray::read(settings))
    }),
    ("fingerprint", &fingerprint::FINGERPRINT, |settings, _| {
        shared(fingerprint::Fingerprint::read(settings))
    }),
    ("include_fields", &include_fields::INCLUDE_FIELDS, |settings, _| {
        shared(IncludeFields::read(settings))
    }),
    ("lowercase", &letter_case::LOWERCASE, |settings, _| {
        shared(LetterCase::read(settings, Case::Lower))
    }),
    ("move_fields", &move_fields::MOVE_FIELDS, |settings, _| {
        shared(move_fields::MoveFields::read(settings))
    }),
    ("now", &now::NOW, |settings, context| shared(Now::read(settings, context))),
    ("rate_limit", &rate_limit::RATE_LIMIT, |settings, context| {
        shared(rate_limit::RateLimit::read(settings, &context.clock))
    }),
    ("registered_domain", &registered_domain::REGISTERED_DOMAIN, |settings, _| {
        shared(registered_domain::RegisteredDomain::read(settings))
    }),
    ("rename", &rename::RENAME, |settings, _| shared(Pairs::read(settings, Verb::Rename))),
    ("replace", &replace::REPLACE, |settings, _| shared(Replace::read(settings))),
    ("truncate_fields", &truncate_fields::TRUNCATE_FIELDS, |settings, _| {
        shared(TruncateFields::read(settings))
    }),
    ("uppercase", &letter_case::UPPERCASE, |settings, _| {
        shared(LetterCase::read(settings, Case::Upper))
    }),
];
