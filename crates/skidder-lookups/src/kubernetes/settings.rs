//! The settings of `add_kubernetes_metadata`.

use super::matchers::{LOGS_PATH, Matcher};
use super::path::{CONTAINERS, PODS, VOLUMES};
use crate::labels::put;
use regex::bytes::Regex;
use skidder_config::{Group, Item, Key, OneOf, Part, Parts, Section, settings};
use skidder_event::{Format, Map, Path, PathError};
use skidder_processors::compile_pattern;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

mod kinds {
    use skidder_config::{Group, Key, Kinds, OneOf, settings};

    static CONTAINER: Group = Group::new(
        "kubernetes.container",
        "The ids of containers, and `UID/CONTAINER`, `UID/CONTAINER/RESTARTS`.",
    );

    static POD_NAME: Group = Group::new("kubernetes.pod_name", "`NAMESPACE/NAME`.");

    static POD_UID: Group = Group::new("kubernetes.pod_uid", "The uid.");

    static IP_PORT: Group = Group::new("kubernetes.ip_port", "The address, and it with each port.");

    /// An item of `indexers`.
    pub(super) static INDEXER: Group =
        Group::new("kubernetes.indexer", "Under which keys pods are known.").kinds(Kinds::by_name(
            || {
                vec![
                    ("container", &CONTAINER),
                    ("pod_name", &POD_NAME),
                    ("pod_uid", &POD_UID),
                    ("ip_port", &IP_PORT),
                ]
            },
        ));

    settings! {
        static FIELDS = Group::new("kubernetes.fields", "Fields that have the key.");

        pub(super) LOOKUP_FIELDS: Vec<String> =
            Key::new("lookup_fields").required().about("fields, of which the first that is there counts");
        pub(super) REGEX_PATTERN: String =
            Key::new("regex_pattern").about("a regular expression with a group `key`");
    }

    settings! {
        static FIELD_FORMAT = Group::new("kubernetes.field_format", "A text made of fields.");

        pub(super) FORMAT: String =
            Key::new("format").required().about("a text with fields: `%{[destination.ip]}`");
    }

    settings! {
        static IN_PATH = Group::new("kubernetes.logs_path", "The path of a file.");

        pub(super) PATH: String =
            Key::new("logs_path").default(super::LOGS_PATH).about("the folder of the files");
        pub(super) RESOURCE_TYPE: OneOf<bool> =
            Key::one_of("resource_type", &[("container", false), ("pod", true)])
                .default("container")
                .about("what the path names: a `container` or a `pod`");
    }

    /// An item of `matchers`.
    pub(super) static MATCHER: Group =
        Group::new("kubernetes.matcher", "What gives the key of an event.").kinds(Kinds::by_name(
            || vec![("fields", &FIELDS), ("field_format", &FIELD_FORMAT), ("logs_path", &IN_PATH)],
        ));
}

settings! {
    /// Settings of `add_kubernetes_metadata`.
    pub(crate) static ADD_KUBERNETES_METADATA = Group::new("processor.add_kubernetes_metadata", "Adds the pod that a line comes from.")
    .include(&[&SELECTION])
    .without_effect(&[
        ("in_cluster", "whether skidder runs in a pod is found without it; outside of one, `kube_config` is read"),
    ]);

    NODE: String = Key::new("node")
        .default_words("`NODE_NAME`, the node of the pod that skidder runs in, or the name of the \
                         host")
        .about("the node whose pods are followed");
    HOST: String = Key::new("host")
        .default_words("`node`")
        .about("of an older Filebeat, where it named the node: has no effect, with a warning if it is another one");
    SCOPE: OneOf<bool> = Key::one_of("scope", &[("node", false), ("cluster", true)])
        .default("node")
        .about("`cluster` follows the pods of all nodes");
    NAMESPACE: String = Key::new("namespace")
        .default_words("all")
        .about("only the pods of this namespace");
    pub(super) KUBE_CONFIG: String = Key::new("kube_config")
        .default_words("that of a pod in the cluster")
        .about("a kubeconfig file; its current context is used");
    USE_KUBEADM: bool = Key::new("use_kubeadm")
        .default(true)
        .about("the name of the cluster is taken from what kubeadm has written down");
    QPS: f64 = Key::new("kube_client_options.qps")
        .default(5.0)
        .range(0.1, 1000.0)
        .about("requests to the API a second");
    BURST: u32 = Key::new("kube_client_options.burst")
        .default(10)
        .range(1, 10_000)
        .about("requests at once");
    CLEANUP_TIMEOUT: Duration = Key::new("cleanup_timeout")
        .default(Duration::from_mins(1))
        .about("how long a pod is known after it is gone");
    SYNC_PERIOD: Duration = Key::new("sync_period")
        .default(Duration::from_mins(10))
        .about("how long listing all pods may take");
    ADD_RESOURCE_METADATA: Part = Key::part("add_resource_metadata", &RESOURCES)
        .about("what is around a pod");
    LABELS_DEDOT: bool = Key::new("labels.dedot")
        .default(true)
        .about("dots in names of labels become underscores");
    ANNOTATIONS_DEDOT: bool = Key::new("annotations.dedot")
        .default(true)
        .about("the same for annotations");
    DEFAULT_INDEXERS: bool = Key::new("default_indexers.enabled")
        .default(true)
        .about("pods are known by the ids of their containers and by their uid");
    INDEXERS: Parts = Key::parts("indexers", &kinds::INDEXER)
        .default_words("none")
        .about("further ones: `container`, `pod_name`, `pod_uid`, `ip_port`");
    DEFAULT_MATCHERS: bool = Key::new("default_matchers.enabled")
        .default(true)
        .about("paths of the kubelet's and of Docker are understood");
    MATCHERS: Parts = Key::parts("matchers", &kinds::MATCHER)
        .default_words("none")
        .about("further ones, asked before those: `fields` (`lookup_fields`, `regex_pattern` with a \
                group `key`), `field_format` (`format`), `logs_path` (`logs_path`, `resource_type`)");
    WAIT_FOR_METADATA: bool = Key::new("wait_for_metadata")
        .default(false)
        .about("a new file is not read before its pod is known");
    WAIT_FOR_METADATA_TIMEOUT: Duration = Key::new("wait_for_metadata_timeout")
        .default(Duration::from_secs(30))
        .about("but at most so long");
    WAIT_FOR_METADATA_RETRY_PERIOD: Duration = Key::new("wait_for_metadata_retry_period")
        .default(Duration::from_secs(3))
        .at_least(Duration::from_millis(10))
        .about("how often a waiting file looks");
}

settings! {
    /// `add_resource_metadata`.
    static RESOURCES = Group::new("kubernetes.resources", "What is around a pod.").inline();

    NAMESPACES: Part = Key::part("namespace", &AROUND)
        .default_words("`enabled: true`")
        .about("`namespace_uid`, `namespace_labels`, `namespace_annotations`; with `enabled`, \
                `include_labels`, `exclude_labels`, `include_annotations`");
    NODES: Part = Key::part("node", &AROUND)
        .default_words("`enabled: true`")
        .about("`node.name`, `.uid`, `.hostname`, `.labels`, `.annotations`; with the same settings");
    DEPLOYMENT: bool = Key::new("deployment")
        .default(false)
        .about("the deployment above a replica set is looked up");
    CRONJOB: bool = Key::new("cronjob")
        .default(false)
        .about("the cron job above a job is looked up");
}

settings! {
    /// The objects around a pod.
    static AROUND = Group::new("kubernetes.resource", "Labels and annotations of what is around a pod.").include(&[&SELECTION]);

    ENABLED: bool = Key::new("enabled")
        .default(true)
        .about("look at them at all");
}

settings! {
    /// Which labels and annotations of a kind of object events carry.
    static SELECTION = Group::new("kubernetes.selection", "Which labels and annotations events carry.");

    INCLUDE_LABELS: Vec<String> = Key::new("include_labels")
        .default_words("all")
        .about("regular expressions for the names of labels of pods");
    EXCLUDE_LABELS: Vec<String> = Key::new("exclude_labels")
        .default_words("none")
        .about("names of labels that are left out");
    INCLUDE_ANNOTATIONS: Vec<String> = Key::new("include_annotations")
        .default_words("none")
        .about("regular expressions for the names of annotations");
}

/// How pods become known under keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Indexer {
    /// The ids of their containers, and `UID/CONTAINER`, `UID/CONTAINER/RESTARTS`.
    Container,
    /// `NAMESPACE/NAME`.
    PodName,
    /// Their uid.
    PodUid,
    /// Their address, and it with each port of a container.
    IpPort,
}

/// Which labels and annotations of a kind of object events carry.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    enabled: bool,
    include_labels: Vec<Regex>,
    exclude_labels: Vec<String>,
    include_annotations: Vec<Regex>,
    labels_dedot: bool,
    annotations_dedot: bool,
}

/// The same for pods and the objects around them.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) pod: Selection,
    pub(super) namespace: Selection,
    pub(super) node: Selection,
    pub(super) deployment: bool,
    pub(super) cronjob: bool,
}

/// All of it.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) node: Option<String>,
    /// All pods of the cluster, not only those of the node.
    pub(super) cluster: bool,
    pub(super) namespace: Option<String>,
    pub(super) wanted: Wanted,
    pub(super) kube_config: Option<String>,
    pub(super) use_kubeadm: bool,
    /// Requests a second, and how many at once.
    pub(super) qps: f64,
    pub(super) burst: u32,
    pub(super) cleanup_timeout: Duration,
    pub(super) sync_period: Duration,
    pub(super) indexers: Vec<Indexer>,
    pub(super) matchers: Vec<Matcher>,
    /// How long a file waits for its pod to be known; nothing = it does not.
    pub(super) wait: Option<Duration>,
    pub(super) wait_retry: Duration,
}

impl Selection {
    fn read(section: &Section<'_>, dedot: (bool, bool)) -> Self {
        Self {
            enabled: true,
            include_labels: patterns(section, &INCLUDE_LABELS),
            exclude_labels: section.get(&EXCLUDE_LABELS).optional().unwrap_or_default(),
            include_annotations: patterns(section, &INCLUDE_ANNOTATIONS),
            labels_dedot: dedot.0,
            annotations_dedot: dedot.1,
        }
    }

    /// Whether objects of this kind are requested.
    pub(super) fn is_wanted(&self) -> bool {
        self.enabled
    }

    /// All labels, or those that an `include_labels` fits, without the excluded ones.
    pub(super) fn labels(&self, labels: &BTreeMap<String, String>) -> Map {
        let mut fields = Map::new();
        for (name, text) in labels {
            let included = self.include_labels.is_empty() || fits(&self.include_labels, name);
            if included && !self.exclude_labels.contains(name) {
                put(&mut fields, name, text, self.labels_dedot);
            }
        }
        fields
    }

    /// The annotations that an `include_annotations` fits.
    pub(super) fn annotations(&self, annotations: &BTreeMap<String, String>) -> Map {
        let mut fields = Map::new();
        for (name, text) in annotations {
            if fits(&self.include_annotations, name) {
                put(&mut fields, name, text, self.annotations_dedot);
            }
        }
        fields
    }
}

fn fits(patterns: &[Regex], name: &str) -> bool {
    patterns.iter().any(|pattern| pattern.is_match(name.as_bytes()))
}

fn patterns(section: &Section<'_>, key: &Key<Vec<String>>) -> Vec<Regex> {
    let mut all = Vec::new();
    for text in section.get(key).optional().unwrap_or_default() {
        match compile_pattern(&text) {
            Ok(pattern) => all.push(pattern),
            Err(error) => {
                let message = format!("`{}`: {error}", section.path_of(key.name()));
                section.problem(key.name(), message, "");
            }
        }
    }
    all
}

impl Settings {
    pub(super) fn read(section: &Section<'_>) -> Option<Self> {
        let dedot = (section.get(&LABELS_DEDOT).value(), section.get(&ANNOTATIONS_DEDOT).value());
        let around = section.part(&ADD_RESOURCE_METADATA);
        let of = |key| {
            let inner = around.part(key);
            let enabled = inner.get(&ENABLED).value();
            Selection { enabled, ..Selection::read(&inner, dedot) }
        };
        let wanted = Wanted {
            pod: Selection::read(section, dedot),
            namespace: of(&NAMESPACES),
            node: of(&NODES),
            deployment: around.get(&DEPLOYMENT).value(),
            cronjob: around.get(&CRONJOB).value(),
        };
        drop(around);
        let scope = section.get(&SCOPE).value();
        let waits = section.get(&WAIT_FOR_METADATA).value();
        let wait = section.get(&WAIT_FOR_METADATA_TIMEOUT).value();
        let node = section.get(&NODE).optional();
        let found = std::env::var("NODE_NAME").ok();
        let holds = node.as_deref().or(found.as_deref());
        section.without_effect_unless(
            &HOST,
            holds,
            "`node` names the node; without it, it is found",
        );
        let settings = Self {
            node,
            cluster: scope,
            namespace: section.get(&NAMESPACE).optional(),
            wanted,
            kube_config: section.get(&KUBE_CONFIG).optional(),
            use_kubeadm: section.get(&USE_KUBEADM).value(),
            qps: section.get(&QPS).value(),
            burst: section.get(&BURST).value(),
            cleanup_timeout: section.get(&CLEANUP_TIMEOUT).value(),
            sync_period: section.get(&SYNC_PERIOD).value(),
            indexers: read_indexers(section),
            matchers: read_matchers(section)?,
            wait: waits.then_some(wait),
            wait_retry: section.get(&WAIT_FOR_METADATA_RETRY_PERIOD).value(),
        };
        Some(settings)
    }
}

fn read_indexers(section: &Section<'_>) -> Vec<Indexer> {
    let mut all = Vec::new();
    for item in section.items_of(&INDEXERS) {
        let entry = item.section();
        for name in entry.keys() {
            entry.kind(name, &kinds::INDEXER);
            entry.accept(name);
            all.push(match name {
                "container" => Indexer::Container,
                "pod_name" => Indexer::PodName,
                "pod_uid" => Indexer::PodUid,
                "ip_port" => Indexer::IpPort,
                _ => {
                    let message = format!("`{}`: unknown indexer `{name}`", item.path());
                    let hint = "there are `container`, `pod_name`, `pod_uid` and `ip_port`";
                    entry.problem(name, message, hint);
                    continue;
                }
            });
        }
    }
    if section.get(&DEFAULT_INDEXERS).value() {
        all.extend([Indexer::Container, Indexer::PodUid]);
    }
    all
}

fn read_matchers(section: &Section<'_>) -> Option<Vec<Matcher>> {
    let mut all = Vec::new();
    let mut right = true;
    for item in section.items_of(&MATCHERS) {
        let entry = item.section();
        for name in entry.keys() {
            match read_matcher(&entry, name, &item) {
                Some(matcher) => all.push(matcher),
                None => right = false,
            }
        }
    }
    if section.get(&DEFAULT_MATCHERS).value() {
        all.push(Matcher::LogsPath { below: None, pod: false });
        all.push(Matcher::LogsPath { below: Some(LOGS_PATH.to_owned()), pod: false });
    }
    if all.is_empty() && right {
        let message = format!("`{}` has no matcher", section.path());
        section.problem(MATCHERS.name(), message, "add one, or leave `default_matchers` on");
        return None;
    }
    right.then_some(all)
}

/// Whether the folder of a matcher with a `resource_type` is one of those that have such logs; reports one that has not, as
/// Filebeat does.
fn has_such_logs(pod: bool, below: &str, settings: &Section<'_>) -> bool {
    let folders: &[&str] = if pod { &[VOLUMES, PODS] } else { &[CONTAINERS] };
    let is_known = settings.has_key(&kinds::PATH) && folders.contains(&below);
    if !is_known {
        let kind = if pod { "pod" } else { "container" };
        let path = settings.path_of(kinds::PATH.name());
        let message =
            format!("`{path}` is `{below}`, which does not go with `resource_type: {kind}`");
        settings.problem(kinds::PATH.name(), message, format!("use {}", folders.join(" or ")));
    }
    is_known
}

fn read_matcher(entry: &Section<'_>, name: &str, item: &Item<'_>) -> Option<Matcher> {
    let Some(settings) = entry.kind(name, &kinds::MATCHER) else {
        entry.accept(name);
        let hint = "there are `fields`, `field_format` and `logs_path`";
        item.problem(format!("`{}`: unknown matcher `{name}`", item.path()), hint);
        return None;
    };
    match name {
        "fields" => {
            let paths = |names: Vec<String>| {
                let paths: Result<Vec<Path>, PathError> =
                    names.iter().map(|name| Path::parse(name)).collect();
                paths.map_err(|error| error.to_string())
            };
            let fields: Vec<Path> = settings.get(&kinds::LOOKUP_FIELDS).try_map(paths).required();
            let pattern = settings.get(&kinds::REGEX_PATTERN);
            let pattern = pattern.try_map(|text| {
                let pattern = compile_pattern(&text).map_err(|error| error.to_string())?;
                let has_key = pattern.capture_names().flatten().any(|name| name == "key");
                if has_key { Ok(pattern) } else { Err("it has no group `key`".to_owned()) }
            });
            Some(Matcher::Fields { fields, pattern: pattern.optional() })
        }
        "field_format" => {
            let format = settings
                .get(&kinds::FORMAT)
                .try_map(|text| Format::parse(&text).map_err(|error| error.to_string()))
                .optional();
            if !settings.has_key(&kinds::FORMAT) {
                let message = format!("`{}` is missing", settings.path_of(kinds::FORMAT.name()));
                settings.problem(
                    kinds::FORMAT.name(),
                    message,
                    "for example '%{[destination.ip]}'",
                );
            }
            let format = format?;
            let names = RefCell::new(Vec::new());
            format.clone().bind(|name| {
                names.borrow_mut().extend(Path::parse(name));
                None
            });
            Some(Matcher::FieldFormat { format, fields: names.into_inner() })
        }
        _ => {
            let mut below = settings.get(&kinds::PATH).value();
            if !below.ends_with('/') {
                below.push('/');
            }
            let pod = settings.get(&kinds::RESOURCE_TYPE).value();
            if settings.has_key(&kinds::RESOURCE_TYPE) && !has_such_logs(pod, &below, &settings) {
                return None;
            }
            Some(Matcher::LogsPath { below: Some(below), pod })
        }
    }
}
