//! Secrets of Kubernetes that templates and hints name: `${kubernetes.NAMESPACE.SECRET.KEY}`.
//!
//! Only those of the pod's own namespace can be used. The watcher fetches what is wanted.

use skidder_config::VariableValue;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// A secret that a configuration names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WantedSecret {
    /// Which provider's cluster it is in.
    pub provider: usize,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Values of secrets by their keys; `None` if there is no such secret.
#[derive(Default)]
pub(crate) struct Secrets(BTreeMap<WantedSecret, Option<BTreeMap<String, String>>>);

impl std::fmt::Debug for Secrets {
    /// Without the values.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_set().entries(self.0.keys()).finish()
    }
}

impl Secrets {
    /// `true` if that changes something.
    pub(crate) fn set(
        &mut self,
        secret: WantedSecret,
        values: Option<BTreeMap<String, String>>,
    ) -> bool {
        let before = self.0.insert(secret, values.clone());
        before != Some(values)
    }

    pub(crate) fn knows(&self, secret: &WantedSecret) -> bool {
        self.0.contains_key(secret)
    }
}

/// Looks up secrets for one object, and keeps the reasons for what it does not find.
pub(crate) struct SecretLookup<'a> {
    pub(crate) secrets: &'a Secrets,
    pub(crate) provider: usize,
    /// The namespace whose secrets can be used; empty for none.
    pub(crate) namespace: &'a str,
    /// All secrets that were named.
    pub(crate) named: &'a RefCell<BTreeSet<WantedSecret>>,
}

impl SecretLookup<'_> {
    /// The value of a variable, or why it has none. `None` if it names no secret.
    pub(crate) fn find(&self, variable: &str) -> Option<Result<VariableValue, String>> {
        let parts: Vec<&str> = variable.split('.').collect();
        let ["kubernetes", namespace, name, key] = parts[..] else { return None };
        if self.namespace.is_empty() {
            return None;
        }
        if namespace != self.namespace {
            let own = self.namespace;
            return Some(Err(format!(
                "names a secret of the namespace `{namespace}`; a pod can use only those of its own, `{own}`"
            )));
        }
        let wanted = WantedSecret {
            provider: self.provider,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        self.named.borrow_mut().insert(wanted.clone());
        Some(match self.secrets.0.get(&wanted) {
            None => Err(format!("waits for the secret `{name}` of the namespace `{namespace}`")),
            Some(None) => {
                Err(format!("there is no secret `{name}` in the namespace `{namespace}`"))
            }
            Some(Some(values)) => match values.get(key) {
                Some(value) => Ok(VariableValue::Secret(value.clone())),
                None => Err(format!(
                    "the secret `{name}` of the namespace `{namespace}` has no key `{key}`"
                )),
            },
        })
    }
}
