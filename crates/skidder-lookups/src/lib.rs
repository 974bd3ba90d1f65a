//! Processors that look up values over the network.
//!
//! A server may be slow or gone: every look-up has a time-out, every result a cache, and the
//! pipeline waits for none longer than configured. Values that are the same for all events of a
//! source are looked up once for it (`bound`, `epoch` and `fold` of [`skidder_processors::Processor`]),
//! so that they cost nothing per event.

pub mod background;
mod cache;
mod cloud;
mod cloudfoundry;
mod dns;
pub mod docker;
mod known;
pub mod kubernetes;
mod labels;
#[cfg(feature = "ldap")]
mod ldap;
pub mod nomad;
mod put;
mod store;
#[cfg(test)]
#[path = "../tests/common/mod.rs"]
mod testing;
mod tls;

use skidder_processors::{Kind, shared};

/// Those that a configuration can name; for [`skidder_processors::Context::with`].
pub const KINDS: &[Kind] = &[
    ("add_cloud_metadata", &cloud::ADD_CLOUD_METADATA, |settings, context| {
        shared(cloud::AddCloudMetadata::read(settings, context))
    }),
    ("add_cloudfoundry_metadata", &cloudfoundry::ADD_CLOUDFOUNDRY_METADATA, |settings, context| {
        shared(cloudfoundry::AddCloudFoundryMetadata::read(settings, context))
    }),
    ("add_docker_metadata", &docker::ADD_DOCKER_METADATA, |settings, context| {
        shared(docker::AddDockerMetadata::read(settings, context))
    }),
    (
        "add_kubernetes_metadata",
        &kubernetes::settings::ADD_KUBERNETES_METADATA,
        |settings, context| shared(kubernetes::AddKubernetesMetadata::read(settings, context)),
    ),
    ("add_nomad_metadata", &nomad::ADD_NOMAD_METADATA, |settings, context| {
        shared(nomad::AddNomadMetadata::read(settings, context))
    }),
    ("dns", &dns::read::DNS, |settings, context| shared(dns::Dns::read(settings, context))),
    #[cfg(feature = "ldap")]
    ("translate_ldap_attribute", &ldap::read::TRANSLATE_LDAP_ATTRIBUTE, |settings, context| {
        shared(ldap::TranslateLdapAttribute::read(settings, context))
    }),
    #[cfg(not(feature = "ldap"))]
    ("translate_ldap_attribute", &NO_LDAP, |settings, _| {
        let message = "`translate_ldap_attribute` is not in this build".to_owned();
        settings.problem("field", message, "build with the feature `ldap`");
        None
    }),
];

/// Settings of `translate_ldap_attribute` in a program without it.
#[cfg(not(feature = "ldap"))]
static NO_LDAP: skidder_config::Group = skidder_config::Group::new(
    "processor.translate_ldap_attribute",
    "Not here: this program was built without LDAP.",
)
.open();
