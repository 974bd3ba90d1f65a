//! Changes for the registry: sources that have changed, new ones that are due, keys that are gone.

use super::{Settle, State};
use skidder_event::{ResumePoint, SourceId};
use skidder_os::Timestamp;
use skidder_registry::{Change, Checkpoint};
use std::collections::HashSet;
use std::sync::Arc;

/// Sources that one commit of the registry saves at most: bounds its memory when many sources appear at
/// once, to about 20 MiB. A commit of so many keys, which are hashes, writes nearly every page there is, so the fewer commits
/// the better.
pub(crate) const CHANGES_MAX: usize = 131_072;

/// The change of a source's checkpoint in the registry.
#[derive(Debug, Default)]
pub(super) enum Resume {
    #[default]
    Keep,
    Set(Arc<dyn ResumePoint>),
    Clear,
}

impl Settle {
    /// Changes for the registry, to be committed as one, of a bounded number of sources. The caller keeps
    /// them until they are durable, and calls again until there are none.
    pub fn take_changes(&self, now: Timestamp) -> Vec<Change> {
        let mut state = self.lock();
        for source in state.newcomers.take_due(now) {
            if state.sources.get(&source).is_some_and(|entry| entry.new) {
                state.mark_dirty(source);
            }
        }
        state.unsaved_rows = 0;
        let mut dirty = std::mem::take(&mut state.dirty);
        if dirty.len() > CHANGES_MAX {
            state.dirty = dirty.split_off(CHANGES_MAX);
        }
        // Keys go with the last of them: a source that has a new key must have it before it loses the old.
        let last = state.dirty.is_empty();
        let removed = if last { std::mem::take(&mut state.removed) } else { Vec::new() };
        let mut removed: HashSet<Arc<str>> = removed.into_iter().collect();
        if !removed.is_empty() {
            // A key that another source has taken meanwhile stays, but the checkpoint was the other's.
            for entry in state.sources.values_mut() {
                if entry.unsaved && !entry.dirty {
                    continue;
                }
                if removed.remove(&entry.key) && entry.dirty && matches!(entry.resume, Resume::Keep)
                {
                    entry.resume = Resume::Clear;
                }
            }
        }
        let mut removed: Vec<Arc<str>> = removed.into_iter().collect();
        removed.sort_unstable();
        let mut changes = Vec::with_capacity(removed.len() + dirty.len());
        changes.extend(removed.into_iter().map(|key| Change::Remove { key }));
        for source in dirty {
            let Some(entry) = state.sources.get_mut(&source) else { continue };
            (entry.dirty, entry.new) = (false, false);
            let checkpoint = match std::mem::take(&mut entry.resume) {
                Resume::Keep => Checkpoint::Keep,
                Resume::Set(point) => Checkpoint::Set(point.to_bytes()),
                Resume::Clear => Checkpoint::Clear,
            };
            let Some(saved) = entry.entry(now) else { continue };
            changes.push(Change::Put { key: entry.key.clone(), entry: saved, checkpoint });
            if entry.is_over() {
                state.sources.remove(&source);
            }
        }
        changes
    }

    /// New sources are saved with the next commit from now on: it is the last one.
    pub fn save_newcomers(&self) {
        self.lock().newcomers.hurry();
    }

    /// Forgets saved keys that no source has.
    pub fn forget_keys(&self, keys: Vec<String>) {
        self.lock().removed.extend(keys.into_iter().map(Arc::from));
    }

    /// Forgets the saved state of a source that goes on: it is saved again when it changes.
    pub fn unsave(&self, source: SourceId) {
        let mut state = self.lock();
        let Some(entry) = state.sources.get_mut(&source) else { return };
        if !entry.dirty {
            entry.unsaved = true;
            let key = entry.key.clone();
            state.removed.push(key);
        }
    }
}

impl State {
    /// Marks a source to be saved.
    pub(super) fn mark_dirty(&mut self, source: SourceId) {
        if let Some(entry) = self.sources.get_mut(&source)
            && !entry.dirty
        {
            entry.dirty = true;
            entry.unsaved = false;
            self.dirty.push(source);
        }
    }
}
