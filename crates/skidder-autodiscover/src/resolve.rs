//! Replaces the variables of a configuration when the facts of a container are known.

use crate::hint_places::hint_at;
use crate::json::get;
use crate::secrets::{NoValue, SecretLookup};
use crate::state::Context;
use serde_json::Value as Json;
use skidder_config::{Node, VariableScope, VariableValue};
use std::cell::RefCell;

/// Beginnings of variables for facts of one container.
const OF_CONTAINER: [&str; 2] = ["${data.container.", "${data.kubernetes.container."];

/// Whether a configuration has a variable for a fact of one container.
pub(crate) fn names_container(config: &Node) -> bool {
    let is_named = |text: &str| OF_CONTAINER.iter().any(|variable| text.contains(variable));
    config.text().is_some_and(is_named)
        || config.as_list().unwrap_or_default().iter().any(names_container)
        || config.entries().into_values().any(names_container)
}

/// Why a configuration cannot be used.
pub(crate) struct Unresolved {
    /// With the setting that has no value.
    pub(crate) reason: String,
    /// A secret that it names is still looked up.
    pub(crate) waits: bool,
}

/// What variables stand for.
pub(crate) struct Resolver<'a> {
    pub(crate) context: &'a Context,
    pub(crate) secrets: SecretLookup<'a>,
    /// `${data.…}`.
    pub(crate) facts: &'a Json,
}

impl Resolver<'_> {
    /// A configuration of the user: it may name the environment, other settings, and the keystore, too.
    pub(crate) fn trusted(&self, node: &Node) -> Result<Node, Unresolved> {
        self.expand(node, true).map_err(|(path, NoValue { reason, waits })| Unresolved {
            reason: format!("`{path}` {reason}"),
            waits,
        })
    }

    /// A map that the owner of a container wrote, as hints.
    pub(crate) fn distrusted(&self, node: &Node) -> Result<Node, String> {
        self.expand(node, false).map_err(|(path, NoValue { reason, .. })| {
            let name = hint_at(node, &path).unwrap_or(path);
            format!("`{name}` {reason}; a hint can use `${{data.…}}` and secrets of its namespace")
        })
    }

    /// The error is the path of a value, or a variable, and what is wrong with it. While a secret is looked up, the
    /// default of its variable is not used.
    fn expand(&self, node: &Node, trusts: bool) -> Result<Node, (String, NoValue)> {
        let (of_secrets, waiting) = (RefCell::new(None), RefCell::new(None));
        let values = |name: &str| {
            if let Some(path) = name.strip_prefix("data.") {
                let value = get(self.facts, path).filter(|value| !value.is_null());
                return value.cloned().map(VariableValue::Known);
            }
            match self.secrets.find(name)? {
                Ok(value) => Some(value),
                Err(NoValue { reason, waits }) => {
                    if waits {
                        waiting.borrow_mut().get_or_insert((name.to_owned(), reason.clone()));
                    }
                    of_secrets.borrow_mut().get_or_insert(reason);
                    None
                }
            }
        };
        let environment = |name: &str| (self.context.environment)(name).filter(|_| trusts);
        let scope = VariableScope { values: &values, environment: &environment, trusts };
        let expanded = self.context.settings.expand_in(node, scope);
        match (expanded.missing(), waiting.into_inner()) {
            (None, None) => Ok(expanded),
            (None, Some((name, reason))) => {
                Err((format!("${{{name}}}"), NoValue { reason, waits: true }))
            }
            (Some((path, reason)), waiting) => {
                let reason = of_secrets.into_inner().unwrap_or(reason);
                Err((path, NoValue { reason, waits: waiting.is_some() }))
            }
        }
    }
}
