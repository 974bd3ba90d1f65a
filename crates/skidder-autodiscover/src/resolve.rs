//! Replaces the variables of a configuration when the facts of a container are known.

use crate::json::get;
use crate::secrets::SecretLookup;
use crate::state::Context;
use serde_json::Value as Json;
use skidder_config::{Node, VariableScope, VariableValue};
use std::cell::RefCell;

/// What variables stand for.
pub(crate) struct Resolver<'a> {
    pub(crate) context: &'a Context,
    pub(crate) secrets: SecretLookup<'a>,
    /// `${data.…}`.
    pub(crate) facts: &'a Json,
}

impl Resolver<'_> {
    /// A configuration of the user: it may name the environment, other settings, and the keystore, too.
    pub(crate) fn trusted(&self, node: &Node) -> Result<Node, String> {
        self.expand(node, "", true)
    }

    /// What the owner of a container wrote, as the hint `name`.
    pub(crate) fn distrusted(&self, name: &str, node: &Node) -> Result<Node, String> {
        let expanded = self.expand(node, name, false);
        expanded.map_err(|reason| {
            format!("{reason}; a hint can use `${{data.…}}` and secrets of its namespace")
        })
    }

    fn expand(&self, node: &Node, above: &str, trusts: bool) -> Result<Node, String> {
        let of_secrets = RefCell::new(None);
        let values = |name: &str| {
            if let Some(path) = name.strip_prefix("data.") {
                let value = get(self.facts, path).filter(|value| !value.is_null());
                return value.cloned().map(VariableValue::Known);
            }
            match self.secrets.find(name)? {
                Ok(value) => Some(value),
                Err(reason) => {
                    of_secrets.borrow_mut().get_or_insert(reason);
                    None
                }
            }
        };
        let environment = |name: &str| (self.context.environment)(name).filter(|_| trusts);
        let scope = VariableScope { values: &values, environment: &environment, trusts };
        let expanded = self.context.settings.expand_in(node, scope);
        let Some((path, reason)) = expanded.missing() else { return Ok(expanded) };
        let reason = of_secrets.into_inner().unwrap_or(reason);
        let dot =
            if above.is_empty() || path.is_empty() || path.starts_with('[') { "" } else { "." };
        Err(format!("`{above}{dot}{path}` {reason}"))
    }
}
