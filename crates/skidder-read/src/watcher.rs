//! The notifier that all inputs share: who looks into which directory.

use skidder_os::{Bell, Notice, Notifier, WatchError, WatchId};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The notifier that all inputs share.
pub struct Watcher {
    notifier: Box<dyn Notifier>,
    /// The inputs that look into each directory.
    users: HashMap<WatchId, Vec<usize>>,
    limit_told: bool,
    blind_told: HashSet<u64>,
}

/// What there was to hear.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// Notices, also those that concern nobody.
    pub notices: usize,
    /// Some were lost.
    pub lost: bool,
}

impl Watcher {
    /// With nothing watched yet.
    pub fn new(notifier: Box<dyn Notifier>) -> Self {
        Self { notifier, users: HashMap::new(), limit_told: false, blind_told: HashSet::new() }
    }

    /// Gives each notice to `each` with the number of every input that it concerns.
    pub fn take(&mut self, each: &mut dyn FnMut(usize, &Notice<'_>)) -> Heard {
        let (mut heard, mut gone) = (Heard::default(), Vec::new());
        let users = &self.users;
        self.notifier.take(&mut |notice| {
            heard.notices += 1;
            let watch = match notice {
                Notice::Lost => {
                    heard.lost = true;
                    return;
                }
                Notice::Content { watch, .. } | Notice::Name { watch, .. } => watch,
                Notice::Gone { watch } => {
                    gone.push(watch);
                    watch
                }
            };
            for &input in users.get(&watch).into_iter().flatten() {
                each(input, &notice);
            }
        });
        for watch in gone {
            if self.users.remove(&watch).is_some() {
                self.notifier.unwatch(watch);
            }
        }
        heard
    }

    /// Waits until there is something to take or the bell rings, at most `limit`.
    pub fn wait(&mut self, limit: Duration) {
        self.notifier.wait(limit);
    }

    /// Ends a wait.
    pub fn bell(&self) -> Arc<dyn Bell> {
        self.notifier.bell()
    }

    pub(crate) fn watch(&mut self, input: usize, directory: &Path) -> Option<WatchId> {
        let watch = match self.notifier.watch(directory) {
            Ok(watch) => watch,
            Err(error) => {
                self.tell(directory, &error);
                return None;
            }
        };
        let users = self.users.entry(watch).or_default();
        if !users.contains(&input) {
            users.push(input);
        }
        Some(watch)
    }

    pub(crate) fn unwatch(&mut self, input: usize, watch: WatchId) {
        let Some(users) = self.users.get_mut(&watch) else { return };
        users.retain(|user| *user != input);
        if users.is_empty() {
            self.users.remove(&watch);
            self.notifier.unwatch(watch);
        }
    }

    /// An input has ended: it looks into no directory any more.
    pub fn forget(&mut self, input: usize) {
        let notifier = &mut self.notifier;
        self.users.retain(|watch, users| {
            users.retain(|user| *user != input);
            if users.is_empty() {
                notifier.unwatch(*watch);
            }
            !users.is_empty()
        });
    }

    fn tell(&mut self, directory: &Path, error: &WatchError) {
        let path = directory.display();
        match error {
            WatchError::Limit if !std::mem::replace(&mut self.limit_told, true) => {
                tracing::warn!(%path, %error, "a directory is not watched, and looked into by every scan");
            }
            WatchError::Blind { kind } if self.blind_told.insert(*kind) => {
                tracing::info!(%path, %error, "a directory is not watched, and looked into by every scan");
            }
            // The scan meets the same error, and tells.
            _ => tracing::debug!(%path, %error, "a directory is not watched"),
        }
    }
}
