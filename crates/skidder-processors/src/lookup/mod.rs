//! Processors that query the machine, or files of it.

mod add_host_metadata;
mod add_locale;
mod add_observer_metadata;
mod add_process_metadata;
mod cache;
mod files;
mod geoip;
#[cfg(test)]
#[path = "../../tests/common/lookup_files.rs"]
mod lookup_files;
mod translate_sid;
mod user_agent;

pub use add_host_metadata::{AddHostMetadata, HostSettings, Machine, ThisMachine};
pub use cache::Caches;
pub use files::SharedFiles;

use crate::kinds::{Kind, shared};

/// Those that a configuration can name.
pub(crate) const KINDS: &[Kind] = &[
    ("add_host_metadata", &add_host_metadata::ADD_HOST_METADATA, |settings, context| {
        shared(Some(AddHostMetadata::read(settings, context)))
    }),
    ("add_locale", &add_locale::ADD_LOCALE, |settings, context| {
        shared(Some(add_locale::AddLocale::read(settings, context)))
    }),
    (
        "add_observer_metadata",
        &add_observer_metadata::ADD_OBSERVER_METADATA,
        |settings, context| {
            shared(Some(add_observer_metadata::AddObserverMetadata::read(settings, context)))
        },
    ),
    ("add_process_metadata", &add_process_metadata::ADD_PROCESS_METADATA, |settings, context| {
        shared(add_process_metadata::AddProcessMetadata::read(settings, context))
    }),
    ("cache", &cache::CACHE, |settings, context| shared(cache::Cache::read(settings, context))),
    ("geoip", &geoip::read::GEOIP, |settings, context| {
        shared(geoip::GeoIp::read(settings, context))
    }),
    ("translate_sid", &translate_sid::TRANSLATE_SID, |settings, _| translate_sid::refuse(settings)),
    ("user_agent", &user_agent::read::USER_AGENT, |settings, context| {
        shared(user_agent::UserAgent::read(settings, context))
    }),
];
