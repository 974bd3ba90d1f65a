//! Replaces `${...}` in the texts of a tree: other settings, environment, keystore, in this order.
//!
//! Done on the tree, never on the YAML text, so a value cannot change the structure around it. A
//! variable that cannot be replaced is not an error yet: the setting is marked, and reading it
//! reports the problem. So an input that is not read (`enabled: false`) may name a variable that is
//! not set, as in Filebeat, and templates of autodiscover keep their `${data...}` until they are
//! expanded again with values for them.
//!
//! Values from the environment are typed like those of `-E` (a list, a number, …); the original
//! text is kept for settings that want text. Values from the keystore are text, and secret.

use crate::inline;
use crate::node::{Content, Entry, Map, Node, Unresolved, Variables};
use crate::problem::{Position, Problem};
use crate::template::{self, Operator, Piece, Variable};
use crate::tree;

/// Nodes and quarters of a kilobyte that one expansion may produce. Settings that refer to each other could
/// otherwise grow without bound.
const WORK_MAX: usize = 200_000;

/// Settings that refer to settings; longer chains are an error.
const CHAIN_MAX: usize = 50;

/// Where values of variables come from, besides the settings themselves.
#[derive(Clone, Copy)]
pub(crate) struct Lookups<'a> {
    /// Asked before environment and keystore: values known only now, such as `data.host` of a
    /// template. Typed like environment values.
    pub(crate) extra: &'a dyn Fn(&str) -> Option<String>,
    /// Asked before `extra`: values with their types, for the place of the variable.
    pub(crate) values: &'a dyn Fn(&str, &Position) -> Option<Node>,
    /// Secrets by name.
    pub(crate) keystore: &'a dyn Fn(&str) -> Option<String>,
    /// Environment variables by name. An empty one counts as not set, as in Filebeat.
    pub(crate) environment: &'a dyn Fn(&str) -> Option<String>,
    /// Whether values come later for what autodiscover knows: `data.*`, and in its section secrets of Kubernetes. Such a
    /// variable stays, also with a default.
    pub(crate) data_comes_later: bool,
}

/// How the message about a variable without a value begins and ends.
const USES: &str = "uses `${";
const NOT_SET: &str = "}`, which is not set";

/// The names of variables that are not set, in a text of [`Problem`]s: each once, in the order of the text.
pub fn unset_variables(problems: &str) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for (at, _) in problems.match_indices(USES) {
        let rest = &problems[at + USES.len()..];
        let name = rest.split_once(NOT_SET).map(|(name, _)| name);
        let name = name.filter(|name| !name.contains(['`', '\n']) && !names.contains(name));
        names.extend(name);
    }
    names
}

/// What to do about a text whose variables are malformed.
const TO_ESCAPE: &str = "write `$${` for a `${` that is not a variable";

/// What is wrong with the variables of `text`, the setting `path`, whatever their values; `None` for nothing.
pub(crate) fn malformed(text: &str, path: &str, position: &Position) -> Option<Problem> {
    let reason = template::parse(text).err()?;
    Some(Problem::error(position.clone(), format!("`{path}` {reason}")).hint(TO_ESCAPE))
}

/// A copy of `node` with its variables replaced; names of settings are looked up in `root`.
pub(crate) fn expand(node: &Node, root: &Node, lookups: Lookups<'_>) -> Node {
    let mut expander =
        Expander { root, lookups, work_left: WORK_MAX, chain: Vec::new(), in_autodiscover: false };
    expander.node(node)
}

struct Expander<'a> {
    root: &'a Node,
    lookups: Lookups<'a>,
    work_left: usize,
    /// Names of the settings being looked up, outermost first.
    chain: Vec<String>,
    /// In the section of autodiscover, whose templates can name secrets of Kubernetes.
    in_autodiscover: bool,
}

impl Expander<'_> {
    fn node(&mut self, node: &Node) -> Node {
        let text_work = node.text.as_ref().map_or(0, |text| text.len() / 256);
        self.work_left = self.work_left.saturating_sub(1 + text_work);
        let content = match &node.content {
            Content::List(list) => Content::List(list.iter().map(|item| self.node(item)).collect()),
            Content::Map(map) => {
                let mut expanded = Map::default();
                for entry in map.iter() {
                    let outside = self.in_autodiscover;
                    self.in_autodiscover |= entry.key == "autodiscover";
                    let value = self.node(&entry.value);
                    self.in_autodiscover = outside;
                    let (key, key_position) = (entry.key.clone(), entry.key_position.clone());
                    expanded.insert(Entry { key, key_position, value, indexed: entry.indexed });
                }
                Content::Map(expanded)
            }
            Content::String if node.variables != Variables::Expanded => return self.text(node),
            scalar => scalar.clone(),
        };
        Node { content, variables: Variables::Expanded, ..shallow(node) }
    }

    /// A node of text, replaced or marked as unresolved. Its place stays the one of the text.
    fn text(&mut self, node: &Node) -> Node {
        match self.try_text(node.text.as_deref().unwrap_or_default(), node) {
            Ok(mut replaced) => {
                replaced.position = node.position.clone();
                replaced.secret |= node.secret;
                if !replaced.is_unresolved() {
                    replaced.variables = Variables::Expanded;
                }
                replaced
            }
            Err(unresolved) => {
                Node { variables: Variables::Unresolved(Box::new(unresolved)), ..node.clone() }
            }
        }
    }

    fn try_text(&mut self, text: &str, node: &Node) -> Result<Node, Unresolved> {
        if !text.contains('$') {
            return Ok(node.clone());
        }
        let pieces = template::parse(text).map_err(|reason| unresolved(reason, TO_ESCAPE))?;
        match pieces.as_slice() {
            [Piece::Variable(variable)] => self.variable(variable, node),
            [] | [Piece::Text(_)] => {
                let joined = self.join(&pieces, node)?.0;
                Ok(Node::scalar(node.position.clone(), Content::String, joined))
            }
            several => {
                let (joined, secret) = self.join(several, node)?;
                Ok(self.typed(joined, secret, node))
            }
        }
    }

    /// A text made of parts: typed like an environment value, except if a secret is in it.
    fn typed(&self, text: String, secret: bool, node: &Node) -> Node {
        if !secret {
            return inline::parse_or_text(&text, &node.position);
        }
        let mut scalar = Node::scalar(node.position.clone(), Content::String, text);
        scalar.secret = true;
        scalar
    }

    /// Pieces as one text, and whether a secret is in it.
    fn join(&mut self, pieces: &[Piece], node: &Node) -> Result<(String, bool), Unresolved> {
        let mut joined = String::new();
        let mut secret = false;
        for piece in pieces {
            match piece {
                Piece::Text(text) => joined.push_str(text),
                Piece::Variable(variable) => {
                    let value = self.variable(variable, node)?;
                    let Some(text) = &value.text else {
                        let reason = format!("puts {} into a text", value.shown());
                        return Err(unresolved(reason, "refer to a setting with a single value"));
                    };
                    joined.push_str(text);
                    secret |= value.secret;
                }
            }
            self.work_left = self.work_left.saturating_sub(1 + joined.len() / 256);
        }
        Ok((joined, secret))
    }

    /// The value of one variable.
    fn variable(&mut self, variable: &Variable, node: &Node) -> Result<Node, Unresolved> {
        let name = self.join(&variable.name, node)?.0;
        let found = self.look_up(&name, node);
        if let Variable { operator: Operator::Plain, .. } = variable {
            return found;
        }
        if found.is_err() && self.comes_later(&name) {
            return found;
        }
        let filled = found.ok().filter(|value| value.text.as_deref() != Some(""));
        if self.work_left == 0 {
            return Err(too_much());
        }
        match (variable.operator, filled) {
            (Operator::Default | Operator::Message | Operator::Plain, Some(value)) => Ok(value),
            (Operator::Alternative, None) => {
                Ok(Node::scalar(node.position.clone(), Content::String, ""))
            }
            (Operator::Default | Operator::Alternative | Operator::Plain, _) => {
                let (text, secret) = self.join(&variable.rest, node)?;
                Ok(self.typed(text, secret, node))
            }
            (Operator::Message, None) => {
                let (message, secret) = self.join(&variable.rest, node)?;
                let message = if secret { crate::node::MASK.to_owned() } else { message };
                let reason = format!("needs `${{{name}}}`: {message}");
                Err(unresolved(reason, &hint_to_set(&name)))
            }
        }
    }

    /// Whether autodiscover may know the value of a variable.
    fn comes_later(&self, name: &str) -> bool {
        let is_secret = || name.starts_with("kubernetes.") && name.split('.').count() == 4;
        self.lookups.data_comes_later
            && (name.starts_with("data.") || (self.in_autodiscover && is_secret()))
    }

    /// A setting, else an extra value, else an environment variable that is not empty, else a
    /// secret: Filebeat gives its library the keystore and then the environment, and the library
    /// searches the last one first.
    fn look_up(&mut self, name: &str, node: &Node) -> Result<Node, Unresolved> {
        if self.work_left == 0 {
            return Err(too_much());
        }
        let cyclic = self.chain.iter().any(|active| active == name);
        if !cyclic {
            if self.chain.len() >= CHAIN_MAX {
                let reason = format!("refers to settings over more than {CHAIN_MAX} steps");
                return Err(unresolved(reason, ""));
            }
            self.chain.push(name.to_owned());
            let setting = self.setting(name);
            self.chain.pop();
            if let Some(setting) = setting.filter(|setting| !setting.is_null()) {
                if let Variables::Unresolved(reason) = setting.variables {
                    return Err(*reason);
                }
                return Ok(setting);
            }
        }
        if let Some(value) = (self.lookups.values)(name, &node.position) {
            let measure = value.measure();
            self.work_left = self.work_left.saturating_sub(measure.weight);
            return Ok(value);
        }
        if let Some(value) = (self.lookups.extra)(name) {
            return Ok(inline::parse_or_text(&value, &node.position));
        }
        let value = (self.lookups.environment)(name);
        if let Some(value) = value.as_ref().filter(|value| !value.is_empty()) {
            return Ok(inline::parse_or_text(value, &node.position));
        }
        if let Some(secret) = (self.lookups.keystore)(name) {
            return Ok(self.typed(secret, true, node));
        }
        if cyclic {
            let chain = self.chain.join("` → `");
            let reason = format!("refers to itself: `{chain}` → `{name}`");
            return Err(unresolved(reason, ""));
        }
        let end = if value.is_some() { "}`, which is empty" } else { NOT_SET };
        let reason = format!("{USES}{name}{end}");
        Err(unresolved(reason, &hint_to_set(name)))
    }

    /// The expanded setting at a dotted path; the way may lead through settings that are
    /// references themselves.
    fn setting(&mut self, name: &str) -> Option<Node> {
        let root = self.root;
        if let Some(found) = tree::find(root, name) {
            return Some(self.node(found));
        }
        for (dot, _) in name.match_indices('.') {
            let on_the_way = tree::find(root, &name[..dot])?;
            if matches!(on_the_way.content, Content::String) {
                let expanded = self.node(on_the_way);
                return tree::find(&expanded, &name[dot + 1..]).cloned();
            }
        }
        None
    }
}

/// A copy without children.
fn shallow(node: &Node) -> Node {
    Node {
        position: node.position.clone(),
        content: Content::Null,
        text: node.text.clone(),
        secret: node.secret,
        variables: node.variables.clone(),
    }
}

fn unresolved(reason: impl Into<String>, hint: &str) -> Unresolved {
    Unresolved { reason: reason.into(), hint: hint.to_owned() }
}

fn hint_to_set(name: &str) -> String {
    format!(
        "set the environment variable `{name}`, add it to the keystore, or give a default: \
         `${{{name}:default}}`"
    )
}

fn too_much() -> Unresolved {
    unresolved(
        "holds variables that grow without bound",
        "look for settings that repeat each other",
    )
}

#[cfg(test)]
#[path = "vars_tests.rs"]
mod tests;
