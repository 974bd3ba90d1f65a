//! The settings of the provider `nomad`.

use crate::provider::{NomadProvider, Scope};
use crate::state::Environment;
use skidder_config::{Group, Key, OneOf, Part, Secret, Section, settings};
use skidder_tls::TlsSettings;
use std::time::Duration;

settings! {
    /// The provider `nomad`.
    pub(crate) static NOMAD = Group::new("autodiscover.nomad", "Allocations of Nomad.").without_effect(&[
        ("labels.dedot", "dots in names of metadata are always levels, as in Filebeat"),
        ("sync_period", "a change is reported when it happens"),
    ]);

    ADDRESS: String = Key::new("address")
        .default("http://127.0.0.1:4646")
        .about("the API of an agent");
    SSL: Part = Key::part("ssl", &skidder_tls::SSL)
        .ours()
        .about("[TLS](outputs.md#ssl) of an `address` with `https`, as in outputs");
    REGION: String = Key::new("region")
        .default_words("`NOMAD_REGION`, or that of the agent")
        .about("the region that is followed");
    NAMESPACE: String = Key::new("namespace")
        .default_words("`NOMAD_NAMESPACE`, or `default`")
        .about("the namespace that is followed; `*` for all");
    SECRET_ID: Secret = Key::new("secret_id")
        .default_words("`NOMAD_TOKEN`, or none")
        .about("the token for the API; it needs `read` for namespace, node and agent");
    NODE: String = Key::new("node")
        .default_words("the node of the agent")
        .about("the name of the node whose allocations are followed");
    SCOPE: OneOf<Scope> = Key::one_of("scope", &[("node", Scope::Node), ("cluster", Scope::Cluster)])
        .default("node")
        .about("whether one node is followed, or all; logs can only be read on their own node");
    WAIT_TIME: Duration = Key::new("wait_time")
        .default(Duration::from_secs(15))
        .range(Duration::ZERO, Duration::from_mins(10))
        .about("how long a request waits for a change; with `0`, as long as the agent likes");
    ALLOW_STALE: bool = Key::new("allow_stale")
        .default(true)
        .about("any server of Nomad may answer, not only the leader");
    INCLUDE_LABELS: Vec<String> = Key::new("include_labels")
        .default_words("all")
        .about("fields of `nomad.task` that events carry; they always carry the `name`");
    EXCLUDE_LABELS: Vec<String> = Key::new("exclude_labels")
        .default_words("none")
        .about("fields of `nomad.task` that events do not carry");
}

/// Reads the settings. What is missing can be in the environment, as for Nomad's own commands.
pub(crate) fn read(section: &Section<'_>, environment: &Environment) -> NomadProvider {
    let of = |value: Option<String>, variable: &str| {
        let value = value.filter(|text| !text.is_empty());
        value.or_else(|| environment(variable)).filter(|text| !text.is_empty())
    };
    let token = section.get(&SECRET_ID).optional().filter(|token| !token.reveal().is_empty());
    let from_environment = || of(None, "NOMAD_TOKEN").map(Secret::new);
    let tls = section.optional_part(&SSL).map(|ssl| TlsSettings::read(&ssl));
    let scope = section.get(&SCOPE).value();
    NomadProvider {
        address: section.get(&ADDRESS).value(),
        tls: tls.filter(|tls| tls.enabled),
        region: of(section.get(&REGION).optional(), "NOMAD_REGION"),
        namespace: of(section.get(&NAMESPACE).optional(), "NOMAD_NAMESPACE"),
        token: token.or_else(from_environment),
        node: section.get(&NODE).optional().filter(|node| !node.is_empty() && scope == Scope::Node),
        scope,
        wait: section.get(&WAIT_TIME).value(),
        allows_stale: section.get(&ALLOW_STALE).value(),
        include: section.get(&INCLUDE_LABELS).optional().unwrap_or_default(),
        exclude: section.get(&EXCLUDE_LABELS).optional().unwrap_or_default(),
    }
}
