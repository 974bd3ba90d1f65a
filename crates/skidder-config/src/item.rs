//! A value as it is: for settings that may have several shapes, and for items of lists.

use crate::node::{Content, Node, Value};
use crate::problem::{Problem, Problems};
use crate::read;
use crate::section::Section;
use crate::setting::{Place, Setting};

/// A value as it is, with its path: for settings that may have several shapes, and for lists.
#[derive(Clone, Debug)]
pub struct Item<'a> {
    node: &'a Node,
    path: String,
    problems: &'a Problems,
}

impl<'a> Item<'a> {
    pub(crate) fn new(node: &'a Node, path: String, problems: &'a Problems) -> Self {
        Self { node, path, problems }
    }

    /// The value itself, to look at its shape or to keep a copy.
    pub fn node(&self) -> &'a Node {
        self.node
    }

    /// Full path, as in messages.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether it is a map.
    pub fn is_map(&self) -> bool {
        matches!(self.node.content, Content::Map(_))
    }

    /// Whether it is a list.
    pub fn is_list(&self) -> bool {
        matches!(self.node.content, Content::List(_))
    }

    /// The map as a section; reports anything else and returns an empty section.
    pub fn section(&self) -> Section<'a> {
        Section::new(Some(self.node), self.path.clone(), self.problems)
    }

    /// The items of the list; a single value is a list of one, nothing is none.
    pub fn into_items(self) -> Vec<Self> {
        let item = |(index, node): (usize, &'a Node)| Self {
            node,
            path: format!("{}[{index}]", self.path),
            problems: self.problems,
        };
        match &self.node.content {
            Content::List(list) => list.iter().enumerate().map(item).collect(),
            Content::Null => Vec::new(),
            _ => vec![self],
        }
    }

    /// The text as written; reports a list or map.
    pub fn string(&self) -> Setting<'a, String> {
        Setting::read(self.place(), read::TEXT, |node, _| read::text(node).map(str::to_owned))
    }

    /// The value without places; reports unresolved variables in it.
    pub fn value(&self) -> Value {
        read::report_unresolved(self.node, &self.place());
        self.node.to_value()
    }

    /// Reports a mistake of the caller's own at this place. An empty `hint` is left out.
    pub fn problem(&self, message: impl Into<String>, hint: impl Into<String>) {
        let position = self.node.position.clone();
        self.problems.push(Problem::error(position, message).hint(hint));
    }

    fn place(&self) -> Place<'a> {
        Place {
            problems: self.problems,
            path: self.path.clone(),
            node: if self.node.is_null() { None } else { Some(self.node) },
            section: Some(self.node.position.clone()),
            hidden: false,
            is_reported: false,
        }
    }
}
