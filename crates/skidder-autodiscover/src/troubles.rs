//! Why a provider learns of no changes now, or not of all: its API cannot be reached, or refuses.

use crate::provider::Provider;
use crate::state::Autodiscover;
use std::collections::BTreeMap;

/// An error of a provider, which it goes on trying.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The last error, with what it is about.
    pub error: String,
    /// What to do; empty if there is nothing to advise.
    pub remedy: String,
    /// New containers are not seen; otherwise their events only lack metadata.
    pub blocks: bool,
}

/// The troubles of one provider, by what has them: a list of the API, an engine, a lease.
pub(crate) type Troubles = BTreeMap<String, Trouble>;

impl Autodiscover {
    /// Sets or ends the trouble that a provider has with `about`.
    pub fn set_trouble(&mut self, provider: usize, about: &str, trouble: Option<Trouble>) {
        let Some(troubles) = self.troubles.get_mut(provider) else { return };
        match trouble {
            Some(trouble) => troubles.insert(about.to_owned(), trouble),
            None => troubles.remove(about),
        };
    }

    /// The worst trouble of each provider that has one, with the name of the provider and its place.
    pub fn troubles(&self) -> Vec<(String, Trouble)> {
        let name = |of: &Provider| format!("provider `{}` ({})", of.kind.name(), of.position);
        let all = self.providers.iter().zip(&self.troubles);
        all.filter_map(|(provider, troubles)| {
            let worst =
                troubles.values().find(|it| it.blocks).or_else(|| troubles.values().next())?;
            Some((name(provider), worst.clone()))
        })
        .collect()
    }
}
