//! The settings of `add_kubernetes_metadata`.

use super::matchers::{LOGS_PATH, Matcher};
use super::path::{CONTAINERS, PODS, VOLUMES};
use crate::labels::put;
use regex::bytes::Regex;
use skidder_config::{Item, Section};
use skidder_event::{Format, Map, Path, PathError};
use skidder_processors::compile_pattern;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

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

/// The same for pods and what is around them.
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
            include_labels: patterns(section, "include_labels"),
            exclude_labels: section.strings("exclude_labels").or(Vec::new()),
            include_annotations: patterns(section, "include_annotations"),
            labels_dedot: dedot.0,
            annotations_dedot: dedot.1,
        }
    }

    /// Whether objects of this kind are asked for.
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

fn patterns(section: &Section<'_>, key: &str) -> Vec<Regex> {
    let mut all = Vec::new();
    for text in section.strings(key).or(Vec::new()) {
        match compile_pattern(&text) {
            Ok(pattern) => all.push(pattern),
            Err(error) => {
                section.problem(key, format!("`{}`: {error}", section.path_of(key)), "");
            }
        }
    }
    all
}

impl Settings {
    /// Default of `cleanup_timeout`.
    const CLEANUP_TIMEOUT: Duration = Duration::from_mins(1);
    /// Default of `sync_period`.
    const SYNC_PERIOD: Duration = Duration::from_mins(10);
    /// Default of `wait_for_metadata_timeout`.
    const WAIT_TIMEOUT: Duration = Duration::from_secs(30);
    /// Default of `wait_for_metadata_retry_period`.
    const WAIT_RETRY: Duration = Duration::from_secs(3);

    pub(super) fn read(section: &Section<'_>) -> Option<Self> {
        let dedot =
            (section.bool("labels.dedot").or(true), section.bool("annotations.dedot").or(true));
        let beside = section.section("add_resource_metadata");
        let of = |key: &str| {
            let inner = beside.section(key);
            let enabled = inner.bool("enabled").or(true);
            Selection { enabled, ..Selection::read(&inner, dedot) }
        };
        let wanted = Wanted {
            pod: Selection::read(section, dedot),
            namespace: of("namespace"),
            node: of("node"),
            deployment: beside.bool("deployment").or(false),
            cronjob: beside.bool("cronjob").or(false),
        };
        drop(beside);
        let scope = section.one_of("scope", &[("node", false), ("cluster", true)]).or(false);
        let waits = section.bool("wait_for_metadata").or(false);
        let wait = section.duration("wait_for_metadata_timeout").or(Self::WAIT_TIMEOUT);
        let settings = Self {
            node: section.string("node").optional(),
            cluster: scope,
            namespace: section.string("namespace").optional(),
            wanted,
            kube_config: section.string("kube_config").optional(),
            use_kubeadm: section.bool("use_kubeadm").or(true),
            qps: section.f64("kube_client_options.qps").range(0.1..=1000.0).or(5.0),
            burst: section.u32("kube_client_options.burst").range(1..=10_000).or(10_u32),
            cleanup_timeout: section.duration("cleanup_timeout").or(Self::CLEANUP_TIMEOUT),
            sync_period: section.duration("sync_period").or(Self::SYNC_PERIOD),
            indexers: read_indexers(section),
            matchers: read_matchers(section)?,
            wait: waits.then_some(wait),
            wait_retry: section
                .duration("wait_for_metadata_retry_period")
                .range(Duration::from_millis(10)..)
                .or(Self::WAIT_RETRY),
        };
        Some(settings)
    }
}

fn read_indexers(section: &Section<'_>) -> Vec<Indexer> {
    let mut all = Vec::new();
    for item in section.items("indexers") {
        let entry = item.section();
        for name in entry.keys() {
            entry.accept(name);
            all.push(match name {
                "container" => Indexer::Container,
                "pod_name" => Indexer::PodName,
                "pod_uid" => Indexer::PodUid,
                "ip_port" => Indexer::IpPort,
                _ => {
                    let message = format!("unknown indexer `{name}`");
                    let hint = "there are `container`, `pod_name`, `pod_uid` and `ip_port`";
                    entry.problem(name, message, hint);
                    continue;
                }
            });
        }
    }
    if section.bool("default_indexers.enabled").or(true) {
        all.extend([Indexer::Container, Indexer::PodUid]);
    }
    all
}

fn read_matchers(section: &Section<'_>) -> Option<Vec<Matcher>> {
    let mut all = Vec::new();
    let mut right = true;
    for item in section.items("matchers") {
        let entry = item.section();
        for name in entry.keys() {
            match read_matcher(&entry, name, &item) {
                Some(matcher) => all.push(matcher),
                None => right = false,
            }
        }
    }
    if section.bool("default_matchers.enabled").or(true) {
        all.push(Matcher::LogsPath { below: None, pod: false });
        all.push(Matcher::LogsPath { below: Some(LOGS_PATH.to_owned()), pod: false });
    }
    if all.is_empty() && right {
        let message = format!("`{}` has no matcher", section.path());
        section.problem("matchers", message, "add one, or leave `default_matchers` on");
        return None;
    }
    right.then_some(all)
}

/// Whether the folder of a matcher with a `resource_type` is one of those that have such logs; one that has not is told, as
/// Filebeat refuses it.
fn has_such_logs(pod: bool, below: &str, settings: &Section<'_>) -> bool {
    let folders: &[&str] = if pod { &[VOLUMES, PODS] } else { &[CONTAINERS] };
    let is_known = settings.has("logs_path") && folders.contains(&below);
    if !is_known {
        let kind = if pod { "pod" } else { "container" };
        let path = settings.path_of("logs_path");
        let message =
            format!("`{path}` is `{below}`, which does not go with `resource_type: {kind}`");
        settings.problem("logs_path", message, format!("use {}", folders.join(" or ")));
    }
    is_known
}

fn read_matcher(entry: &Section<'_>, name: &str, item: &Item<'_>) -> Option<Matcher> {
    match name {
        "fields" => {
            let settings = entry.section(name);
            let paths = |names: Vec<String>| {
                let paths: Result<Vec<Path>, PathError> =
                    names.iter().map(|name| Path::parse(name)).collect();
                paths.map_err(|error| error.to_string())
            };
            let fields: Vec<Path> = settings.strings("lookup_fields").try_map(paths).required();
            let pattern = settings.string("regex_pattern");
            let pattern = pattern.try_map(|text| {
                let pattern = compile_pattern(&text).map_err(|error| error.to_string())?;
                let has_key = pattern.capture_names().flatten().any(|name| name == "key");
                if has_key { Ok(pattern) } else { Err("it has no group `key`".to_owned()) }
            });
            Some(Matcher::Fields { fields, pattern: pattern.optional() })
        }
        "field_format" => {
            let settings = entry.section(name);
            let format = settings
                .string("format")
                .try_map(|text| Format::parse(&text).map_err(|error| error.to_string()))
                .optional();
            if !settings.has("format") {
                let message = format!("`{}` is missing", settings.path_of("format"));
                settings.problem("format", message, "for example '%{[destination.ip]}'");
            }
            let format = format?;
            let names = RefCell::new(Vec::new());
            format.clone().bind(|name| {
                names.borrow_mut().extend(Path::parse(name));
                None
            });
            Some(Matcher::FieldFormat { format, fields: names.into_inner() })
        }
        "logs_path" => {
            let settings = entry.section(name);
            let mut below = settings.string("logs_path").or(LOGS_PATH);
            if !below.ends_with('/') {
                below.push('/');
            }
            let kinds = [("container", false), ("pod", true)];
            let pod = settings.one_of("resource_type", &kinds).or(false);
            if settings.has("resource_type") && !has_such_logs(pod, &below, &settings) {
                return None;
            }
            Some(Matcher::LogsPath { below: Some(below), pod })
        }
        _ => {
            entry.accept(name);
            let hint = "there are `fields`, `field_format` and `logs_path`";
            item.problem(format!("unknown matcher `{name}`"), hint);
            None
        }
    }
}
