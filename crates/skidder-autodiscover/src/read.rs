//! From the section `filebeat.autodiscover` to providers.

use crate::appenders::Appender;
use crate::hints_settings::HintSettings;
use crate::jolokia::{JolokiaInterface, JolokiaProvider};
use crate::kubernetes::{Metadata, Selection};
use crate::provider::{
    DockerProvider, KubernetesProvider, LeaderLease, Provider, ProviderKind, Resource, Scope,
};
use crate::settings::{
    AUTODISCOVER, PROVIDERS, common, docker, jolokia, kubernetes as keys, nomad, provider,
};
use crate::state::{Autodiscover, Context};
use crate::templates::Template;
use skidder_config::{Item, Key, Part, Problem, Section, Severity, Subject};
use skidder_tls::{Pem, TlsSettings};
use std::path::PathBuf;

/// Providers of Filebeat that are not here.
const UNSUPPORTED: [&str; 2] = ["aws_ec2", "aws_elb"];

impl Autodiscover {
    /// Reads and checks the section `filebeat.autodiscover`. Returns `None`, and reports the problems, if it has no
    /// provider or an invalid one.
    pub fn read(section: &Section<'_>, context: Context) -> Option<Self> {
        section.declared_by(&AUTODISCOVER);
        let before = errors(section);
        let mut providers = Vec::new();
        for (item, section) in section.part_items(&PROVIDERS) {
            providers.extend(read_provider(&item, &section, &context));
        }
        (errors(section) == before && !providers.is_empty()).then(|| Self::new(context, providers))
    }
}

fn errors(section: &Section<'_>) -> usize {
    let problems = section.problems().sorted();
    problems.iter().filter(|problem| problem.severity == Severity::Error).count()
}

fn read_provider(item: &Item<'_>, section: &Section<'_>, context: &Context) -> Option<Provider> {
    section.declared_by(&provider::OF_TYPE);
    let name = section.get(&provider::TYPE).required();
    match name.as_str() {
        "docker" => section.declared_by(&docker::DOCKER),
        "kubernetes" => section.declared_by(&keys::KUBERNETES),
        "nomad" => section.declared_by(&nomad::NOMAD),
        "jolokia" => section.declared_by(&jolokia::JOLOKIA),
        _ => {
            report_type(item, section, &name);
            section.off();
            return None;
        }
    }
    section.declared_by(&common::COMMON);
    let templates = Template::read_all(section, &name);
    // Agents of Jolokia have no labels, and end for good after their grace period.
    let is_jolokia = name == "jolokia";
    let hints = if is_jolokia { None } else { HintSettings::read(section, &name) };
    let appenders = Appender::read_all(section, &name);
    let cleanup = section.get(&common::CLEANUP_TIMEOUT);
    let cleanup_timeout =
        if is_jolokia { cleanup.optional().unwrap_or_default() } else { cleanup.value() };
    if templates.is_empty() && hints.is_none() {
        let (message, hint) = if is_jolokia {
            ("no `templates`", "write `templates`")
        } else {
            ("neither `templates` nor `hints`", "set `hints.enabled: true`, or write `templates`")
        };
        item.problem(format!("`{}` has {message}", item.path()), hint);
    }
    let kind = match name.as_str() {
        "docker" => ProviderKind::Docker(Box::new(read_docker(section))),
        "nomad" => ProviderKind::Nomad(Box::new(nomad::read(section, &context.environment))),
        "jolokia" => ProviderKind::Jolokia(read_jolokia(section)),
        _ => ProviderKind::Kubernetes(Box::new(read_kubernetes(section, hints.is_some(), context))),
    };
    let position = item.node().position().clone();
    Some(Provider { kind, cleanup_timeout, position, templates, hints, appenders })
}

fn report_type(item: &Item<'_>, section: &Section<'_>, name: &str) {
    if name.is_empty() {
        return;
    }
    if UNSUPPORTED.contains(&name) {
        let problems = section.problems();
        let message = format!(
            "the autodiscover provider `{name}` is known to Filebeat, but not supported by skidder yet"
        );
        let problem = Problem::error(item.node().position().clone(), message)
            .hint("leave it out; an input can read the same files");
        let severity = problems.unknown_severity();
        problems.push(Problem { severity, ..problem.about(Subject::Unsupported) });
        return;
    }
    let message = format!("`{}`: unknown autodiscover provider `{name}`", item.path());
    let hint = "use `docker`, `kubernetes`, `nomad` or `jolokia`";
    section.problem(provider::TYPE.name(), message, hint);
}

fn read_docker(section: &Section<'_>) -> DockerProvider {
    let tls = section.optional_part(&docker::SSL).map(|ssl| {
        let mut tls = TlsSettings::read(&ssl);
        if let Some(authority) = ssl.get(&docker::CERTIFICATE_AUTHORITY).optional() {
            tls.certificate_authorities.push(Pem::of(&authority));
        }
        tls
    });
    DockerProvider {
        host: section.get(&docker::HOST).value(),
        tls: tls.filter(|tls| tls.enabled),
        dedot: section.get(&docker::DEDOT).value(),
    }
}

fn read_jolokia(section: &Section<'_>) -> JolokiaProvider {
    let items = section.parts(&jolokia::INTERFACES);
    let mut interfaces: Vec<JolokiaInterface> = items.iter().map(read_interface).collect();
    if interfaces.is_empty() && section.item_of(&jolokia::INTERFACES).is_some() {
        let message = format!("`{}` is empty", section.path_of(jolokia::INTERFACES.name()));
        section.problem(jolokia::INTERFACES.name(), message, "leave it out to search on all");
    } else if interfaces.is_empty() {
        interfaces.push(JolokiaInterface::any());
    }
    JolokiaProvider { interfaces }
}

fn read_interface(section: &Section<'_>) -> JolokiaInterface {
    let interface = JolokiaInterface {
        name: section.get(&jolokia::NAME).required(),
        interval: section.get(&jolokia::INTERVAL).value(),
        probe_timeout: section.get(&jolokia::PROBE_TIMEOUT).value(),
        grace_period: section.get(&jolokia::GRACE_PERIOD).value(),
    };
    if interface.grace_period <= interface.interval {
        let path = section.path_of(jolokia::GRACE_PERIOD.name());
        section.warning(
            jolokia::GRACE_PERIOD.name(),
            format!("`{path}` is not longer than `interval`: agents are gone between two queries"),
            "make it some times as long as `interval`",
        );
    }
    interface
}

fn read_kubernetes(
    section: &Section<'_>,
    has_hints: bool,
    context: &Context,
) -> KubernetesProvider {
    let resource = section.get(&keys::RESOURCE).value();
    let metadata = read_metadata(section);
    let is_pod = resource == Resource::Pod;
    let unique = section.get(&keys::UNIQUE).value();
    let lease = LeaderLease {
        name: section.get(&keys::LEASE).value(),
        duration: section.get(&keys::LEASE_DURATION).value(),
        renew_deadline: section.get(&keys::RENEW_DEADLINE).value(),
        retry_period: section.get(&keys::RETRY_PERIOD).value(),
    };
    let scope = read_scope(section, resource);
    let node = section.get(&keys::NODE).optional();
    let found = (context.environment)("NODE_NAME");
    let holds = node.as_deref().or(found.as_deref());
    let advice = "it is of an older Filebeat; `node` names the node";
    section.without_effect_unless(&keys::NODE_BEFORE, holds, advice);
    if unique && scope != Scope::Cluster {
        let message = format!("`{}` needs `scope: cluster`", section.path_of(keys::UNIQUE.name()));
        section.warning(keys::UNIQUE.name(), message, "set `scope: cluster`");
    }
    KubernetesProvider {
        kube_config: section.get(&keys::KUBE_CONFIG).optional().map(PathBuf::from),
        qps: section.get(&keys::QPS).value(),
        burst: section.get(&keys::BURST).value(),
        node: node.filter(|_| scope == Scope::Node),
        scope,
        namespace: section.get(&keys::NAMESPACE).optional(),
        resource,
        sync_period: section.get(&keys::SYNC_PERIOD).value(),
        use_kubeadm: section.get(&keys::USE_KUBEADM).value(),
        wants_nodes: is_pod && metadata.node.is_some(),
        wants_namespaces: resource != Resource::Node && (has_hints || metadata.namespace.is_some()),
        wants_replica_sets: is_pod && metadata.deployment,
        wants_jobs: is_pod && metadata.cronjob,
        unique: unique.then_some(lease),
        metadata,
    }
}

/// Services are never on one node.
fn read_scope(section: &Section<'_>, resource: Resource) -> Scope {
    let scope = section.get(&keys::SCOPE).optional();
    if resource != Resource::Service {
        return scope.unwrap_or(Scope::Node);
    }
    if scope == Some(Scope::Node) {
        let path = section.path_of(keys::SCOPE.name());
        section.warning(
            keys::SCOPE.name(),
            format!("`{path}` is `node`, but services are on no node"),
            "use `cluster`",
        );
    }
    Scope::Cluster
}

fn read_metadata(section: &Section<'_>) -> Metadata {
    let dedot =
        (section.get(&keys::LABELS_DEDOT).value(), section.get(&keys::ANNOTATIONS_DEDOT).value());
    let around = section.part(&keys::ADD_RESOURCE_METADATA);
    let of = |key: &Key<Part>| {
        let inner = around.part(key);
        let enabled = inner.get(&keys::ENABLED).value();
        let dedot = (
            inner.get(&keys::AROUND_LABELS_DEDOT).value(),
            inner.get(&keys::AROUND_ANNOTATIONS_DEDOT).value(),
        );
        let selection = Selection::read(&inner, dedot);
        enabled.then_some(selection)
    };
    Metadata {
        own: Selection::read(section, dedot),
        namespace: of(&keys::NAMESPACES),
        node: of(&keys::NODES),
        deployment: around.get(&keys::DEPLOYMENT).value(),
        cronjob: around.get(&keys::CRONJOB).value(),
    }
}
