//! The notifier that all inputs share, and which input watches which directory.

use skidder_os::{Bell, Notice, Notifier, WatchError, WatchId};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The notifier that all inputs share.
pub struct Watcher {
    notifier: Box<dyn Notifier>,
    /// The inputs that watch each directory.
    users: HashMap<WatchId, Vec<usize>>,
    limit_logged: bool,
    blind_logged: HashSet<u64>,
}

/// What a [`Watcher::take`] has delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoticeSummary {
    /// Notices, also those that concern no input.
    pub notices: usize,
    /// Some were lost.
    pub lost: bool,
}

impl Watcher {
    /// Without any watch yet.
    pub fn new(notifier: Box<dyn Notifier>) -> Self {
        Self { notifier, users: HashMap::new(), limit_logged: false, blind_logged: HashSet::new() }
    }

    /// Calls `each` with each notice and the number of every input that it concerns.
    pub fn take(&mut self, each: &mut dyn FnMut(usize, &Notice<'_>)) -> NoticeSummary {
        let (mut summary, mut gone) = (NoticeSummary::default(), Vec::new());
        let users = &self.users;
        self.notifier.take(&mut |notice| {
            summary.notices += 1;
            let watch = match notice {
                Notice::Lost => {
                    summary.lost = true;
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
        summary
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
                self.log_unwatched(directory, &error);
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

    /// An input has ended: it watches no directory any more.
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

    fn log_unwatched(&mut self, directory: &Path, error: &WatchError) {
        let path = directory.display();
        match error {
            WatchError::Limit if !std::mem::replace(&mut self.limit_logged, true) => {
                tracing::warn!(%path, %error, "a directory is not watched, and looked into by every scan");
            }
            WatchError::Blind { kind } if self.blind_logged.insert(*kind) => {
                tracing::info!(%path, %error, "a directory is not watched, and looked into by every scan");
            }
            // The scan meets the same error, and logs it.
            _ => tracing::debug!(%path, %error, "a directory is not watched"),
        }
    }
}
