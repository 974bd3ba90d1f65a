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

/// What the API server answers about a secret.
#[derive(Clone, PartialEq, Eq)]
pub enum SecretAnswer {
    /// Its values by their keys, decoded.
    Values(BTreeMap<String, String>),
    /// There is no such secret.
    Missing,
    /// The right to read it is missing.
    Refused,
}

/// The answers about secrets; none for those that are still looked up.
#[derive(Default)]
pub(crate) struct Secrets(BTreeMap<WantedSecret, SecretAnswer>);

impl std::fmt::Debug for Secrets {
    /// Without the values.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_set().entries(self.0.keys()).finish()
    }
}

impl Secrets {
    /// `true` if that changes something.
    pub(crate) fn set(&mut self, secret: WantedSecret, answer: SecretAnswer) -> bool {
        let before = self.0.insert(secret, answer.clone());
        before != Some(answer)
    }

    pub(crate) fn knows(&self, secret: &WantedSecret) -> bool {
        self.0.contains_key(secret)
    }
}

/// Why a variable that names a secret has no value.
pub(crate) struct NoValue {
    pub(crate) reason: String,
    /// The secret is still looked up.
    pub(crate) waits: bool,
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
    pub(crate) fn find(&self, variable: &str) -> Option<Result<VariableValue, NoValue>> {
        let parts: Vec<&str> = variable.split('.').collect();
        let ["kubernetes", namespace, name, key] = parts[..] else { return None };
        if self.namespace.is_empty() {
            return None;
        }
        if namespace != self.namespace {
            let own = self.namespace;
            let reason = format!(
                "names a secret of the namespace `{namespace}`; a pod can use only those of its own, `{own}`"
            );
            return Some(Err(NoValue { reason, waits: false }));
        }
        let wanted = WantedSecret {
            provider: self.provider,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        self.named.borrow_mut().insert(wanted.clone());
        let answer = self.secrets.0.get(&wanted);
        let reason = match answer {
            None => format!("waits for the secret `{name}` of the namespace `{namespace}`"),
            Some(SecretAnswer::Missing) => {
                format!("there is no secret `{name}` in the namespace `{namespace}`")
            }
            Some(SecretAnswer::Refused) => format!(
                "skidder has no right to read the secret `{name}` of the namespace `{namespace}`"
            ),
            Some(SecretAnswer::Values(values)) => match values.get(key) {
                Some(value) => return Some(Ok(VariableValue::Secret(value.clone()))),
                None => {
                    format!("the secret `{name}` of the namespace `{namespace}` has no key `{key}`")
                }
            },
        };
        Some(Err(NoValue { reason, waits: answer.is_none() }))
    }
}
