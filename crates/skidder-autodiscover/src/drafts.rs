//! The inputs of templates, `hints.default_config` and appenders before there is a container, so that their mistakes are
//! found at the start.
//!
//! What only a container knows (`${data.…}`, secrets of its namespace) gets a stand-in. A mistake that depends on one is
//! none: see [`Draft::sure`].

use crate::appenders::Appender;
use crate::provider::Provider;
use crate::state::{Autodiscover, Context};
use serde_json::json;
use skidder_config::{
    Item, Lists, Node, Position, Problem, Problems, Settings, Subject, VariableScope, VariableValue,
};
use std::collections::BTreeSet;

/// Beginnings of variables whose values come with a container.
const LATER: [&str; 2] = ["data.", "kubernetes."];

/// A configuration of an input with stand-ins.
#[derive(Debug)]
pub struct Draft {
    /// `filebeat.autodiscover.providers[0].templates[0].config[0]`.
    path: String,
    settings: Settings,
    /// It names a module.
    pub is_module: bool,
    /// Its type is known, so that it can be read.
    pub is_readable: bool,
    /// Where a stand-in is.
    unknown: BTreeSet<Position>,
    /// Of an appender: only what it added is judged.
    only: Option<BTreeSet<Position>>,
}

impl Draft {
    /// The configuration, to be read like an item of `filebeat.inputs`.
    pub fn item<'a>(&'a self, problems: &'a Problems) -> Item<'a> {
        self.settings.item_at(&self.path, problems)
    }

    /// The same as a list of one item, as a file with inputs has it.
    pub fn list(&self) -> Settings {
        self.settings.as_item()
    }

    /// The problems that no value of a container can mend, of all that were found in it.
    pub fn sure(&self, found: Vec<Problem>) -> Vec<Problem> {
        let is_at = |problem: &Problem, places: &BTreeSet<Position>| {
            problem.position.as_ref().is_some_and(|position| places.contains(position))
        };
        // Settings are checked against each other, too: with a stand-in among them that means little.
        let is_doubtful = found.iter().any(|problem| is_at(problem, &self.unknown));
        let is_sure = |problem: &Problem| {
            let is_own = self.only.as_ref().is_none_or(|only| is_at(problem, only));
            let is_name = matches!(problem.subject, Subject::Unknown | Subject::Unsupported);
            is_own && !is_at(problem, &self.unknown) && (is_name || !is_doubtful)
        };
        found.into_iter().filter(is_sure).collect()
    }
}

impl Autodiscover {
    /// The inputs of all templates and of `hints.default_config`, without those of appenders.
    pub fn drafts(&self) -> Vec<Draft> {
        self.providers().iter().flat_map(|provider| self.bases(provider)).collect()
    }

    /// For each appender, the inputs that it can be added to, with its settings. A mistake that is in all of them is
    /// one of the appender.
    pub fn appended_drafts(&self) -> Vec<Vec<Draft>> {
        let of_provider = |provider: &Provider| {
            let bases = self.bases(provider);
            let of_appender = |appender: &Appender| {
                let over = expanded(&self.context, &appender.config);
                bases.iter().map(|base| base.with(appender, &over)).collect()
            };
            provider.appenders.iter().map(of_appender).collect::<Vec<Vec<Draft>>>()
        };
        self.providers().iter().flat_map(of_provider).collect()
    }

    fn bases(&self, provider: &Provider) -> Vec<Draft> {
        let of_templates = provider.templates.iter().flat_map(|template| &template.configs);
        let of_hints = provider.hints.iter().filter_map(|hints| {
            let path = hints.default_path.as_ref()?;
            Some((path, &hints.default_config))
        });
        of_templates
            .map(|(path, config)| (path, config))
            .chain(of_hints)
            .filter(|(_, config)| config.as_map().is_some())
            .map(|(path, config)| Draft::new(&self.context, path, config))
            .collect()
    }
}

impl Draft {
    fn new(context: &Context, path: &str, config: &Node) -> Self {
        let expanded = expanded(context, config);
        let is_known = |key: &str| config.at(key).is_none_or(|node| !comes_later(node));
        Self {
            path: path.to_owned(),
            is_module: config.at("module").is_some(),
            is_readable: is_known("type") && is_known("module"),
            settings: context.settings.with_root(expanded),
            unknown: unknown(config),
            only: None,
        }
    }

    /// The same with the settings `over` of an appender.
    fn with(&self, appender: &Appender, over: &Node) -> Self {
        let config = &appender.config;
        let mut node = self.settings.node().clone();
        node.overlay(over, Lists::Mixed);
        let mut only = BTreeSet::new();
        collect(config, &mut |_, positions| only.extend(positions));
        Self {
            path: appender.path.clone(),
            settings: self.settings.with_root(node),
            is_module: self.is_module,
            is_readable: self.is_readable && !config.at("type").is_some_and(comes_later),
            unknown: self.unknown.iter().cloned().chain(unknown(config)).collect(),
            only: Some(only),
        }
    }
}

/// A configuration with its variables replaced, by stand-ins where their values come later.
fn expanded(context: &Context, config: &Node) -> Node {
    let values = |name: &str| {
        let is_later = LATER.iter().any(|start| name.starts_with(start));
        is_later.then(|| VariableValue::Known(json!("x")))
    };
    let environment = |name: &str| (context.environment)(name);
    let scope = VariableScope { values: &values, environment: &environment, trusts: true };
    context.settings.expand_in(config, scope)
}

/// Whether a value depends on a container.
fn comes_later(node: &Node) -> bool {
    let is_later = |text: &str| LATER.iter().any(|start| text.contains(&format!("${{{start}")));
    node.text().is_some_and(is_later)
}

/// The places of values that depend on a container, and of their names and lists.
fn unknown(config: &Node) -> BTreeSet<Position> {
    let mut places = BTreeSet::new();
    collect(config, &mut |node, positions| {
        let items = node.as_list().unwrap_or_default();
        if comes_later(node) || items.iter().any(comes_later) {
            places.extend(positions);
        }
    });
    places
}

/// Calls `add` with each value below this and its places: its own, and that of its name.
fn collect(node: &Node, add: &mut dyn FnMut(&Node, Vec<Position>)) {
    for entry in node.as_map().into_iter().flat_map(skidder_config::Map::iter) {
        let value = &entry.value;
        add(value, vec![entry.key_position.clone(), value.position().clone()]);
        collect(value, add);
    }
    for item in node.as_list().unwrap_or_default() {
        add(item, vec![item.position().clone()]);
        collect(item, add);
    }
}
