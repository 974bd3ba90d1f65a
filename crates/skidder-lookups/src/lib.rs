//! Processors that ask somebody over the network.
//!
//! Whoever is asked may be slow or gone: every look-up has a time-out, every result a cache, and the
//! pipeline waits for none longer than its configuration says. What is the same for all events of a
//! source is looked up once for it (`bound`, `epoch` and `fold` of [`skidder_processors::Processor`]),
//! so that it costs nothing per event.

mod background;
mod cache;
mod cloud;
mod cloudfoundry;
mod dns;
mod docker;
mod known;
mod kubernetes;
mod labels;
#[cfg(feature = "ldap")]
mod ldap;
mod nomad;
mod put;
mod store;
#[cfg(test)]
#[path = "../tests/common/mod.rs"]
mod testing;
mod tls;

use skidder_processors::{Kind, shared};

/// Those that a configuration can name; for [`skidder_processors::Context::with`].
pub const KINDS: &[Kind] = &[
    ("add_cloud_metadata", |settings, context| {
        shared(cloud::AddCloudMetadata::read(settings, context))
    }),
    ("add_cloudfoundry_metadata", |settings, context| {
        shared(cloudfoundry::AddCloudFoundryMetadata::read(settings, context))
    }),
    ("add_docker_metadata", |settings, context| {
        shared(docker::AddDockerMetadata::read(settings, context))
    }),
    ("add_kubernetes_metadata", |settings, context| {
        shared(kubernetes::AddKubernetesMetadata::read(settings, context))
    }),
    ("add_nomad_metadata", |settings, context| {
        shared(nomad::AddNomadMetadata::read(settings, context))
    }),
    ("dns", |settings, context| shared(dns::Dns::read(settings, context))),
    #[cfg(feature = "ldap")]
    ("translate_ldap_attribute", |settings, context| {
        shared(ldap::TranslateLdapAttribute::read(settings, context))
    }),
    #[cfg(not(feature = "ldap"))]
    ("translate_ldap_attribute", |settings, _| {
        let message = "`translate_ldap_attribute` is not in this build".to_owned();
        settings.problem("field", message, "build with the feature `ldap`");
        None
    }),
];
