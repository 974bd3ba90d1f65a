//! Which hint a value of a made input came from, so that messages name the label or annotation instead of a place in
//! the generated input.

use skidder_config::{Node, Position, Problem, Settings, Source, Subject};
use std::sync::Arc;

/// How the place of a hint begins, before its name.
const BEGINNING: &str = "hint ";

/// What is between the name of a hint and the container.
const OF: &str = " of ";

/// The place of the hint called `name`, of the container `about`.
pub(crate) fn position(order: u32, name: &str, about: &str) -> Position {
    place(order, format!("{BEGINNING}{name}{OF}{about}"))
}

/// The place of what stands for several hints of the container `about`.
pub(crate) fn position_of_several(order: u32, about: &str) -> Position {
    place(order, format!("hints{OF}{about}"))
}

fn place(order: u32, name: String) -> Position {
    let source: Arc<Source> = Source::new(order, name);
    Position::whole(&source)
}

/// The name of the hint at a place.
fn name_of(position: &Position) -> Option<&str> {
    let (name, _) = position.source().name().strip_prefix(BEGINNING)?.split_once(OF)?;
    Some(name)
}

/// The hint that gave the value at `path` below `root`, with the levels below the hint; `None` if no hint did.
pub(crate) fn hint_at(root: &Node, path: &str) -> Option<String> {
    let levels = levels(path);
    let mut hint = name_of(root.position()).map(|name| (name, 0));
    let mut node = root;
    for (index, level) in levels.iter().enumerate() {
        let Some(child) = child(node, level) else { break };
        node = child;
        let name = name_of(node.position());
        hint = match (name, hint) {
            (Some(name), Some((before, since))) if name == before => Some((name, since)),
            (Some(name), _) => Some((name, index + 1)),
            (None, hint) => hint,
        };
    }
    let (name, since) = hint?;
    let below = levels[since..].iter().map(|level| match level {
        Level::Key(key) => format!(".{key}"),
        Level::Item(index) => format!("[{index}]"),
    });
    Some(format!("{name}{}", below.collect::<String>()))
}

/// A part of a path.
enum Level<'a> {
    Key(&'a str),
    Item(usize),
}

/// The parts of `[0].parsers[1].ndjson`.
fn levels(path: &str) -> Vec<Level<'_>> {
    let mut all = Vec::new();
    for part in path.split('.') {
        let (key, items) = part.split_once('[').unwrap_or((part, ""));
        if !key.is_empty() {
            all.push(Level::Key(key));
        }
        let items = items.split('[').filter_map(|item| item.strip_suffix(']')?.parse().ok());
        all.extend(items.map(Level::Item));
    }
    all
}

fn child<'a>(node: &'a Node, level: &Level<'_>) -> Option<&'a Node> {
    match level {
        Level::Key(key) => node.entries().remove(*key),
        Level::Item(index) => node.as_list()?.get(*index),
    }
}

/// Whether a problem is about the value of a hint.
pub fn is_of_hint(problem: &Problem) -> bool {
    problem.position.as_ref().is_some_and(|position| name_of(position).is_some())
}

/// Whether a problem is an unknown setting that a hint gives. It costs the container nothing but that setting, as in
/// Filebeat; an unknown processor is none, as one that is left out could be the one that removes secrets.
pub fn is_unknown_hint(problem: &Problem) -> bool {
    let is_setting = problem.message.starts_with("unknown setting ");
    problem.subject == Subject::Unknown && is_setting && is_of_hint(problem)
}

/// The problem of a made input, with the names of hints instead of their places in `made`, a list of inputs.
pub fn with_hints(made: &Settings, mut problem: Problem) -> Problem {
    let parts = problem.message.split('`').enumerate().map(|(index, part)| {
        let is_path = index % 2 == 1 && part.starts_with('[');
        is_path.then(|| hint_at(made.node(), part)).flatten().unwrap_or_else(|| part.to_owned())
    });
    problem.message = parts.collect::<Vec<_>>().join("`");
    problem
}
