//! The entry of a file in our own registry.

use super::files::Files;
use crate::fingerprint::Fingerprint;
use skidder_registry::FileEntry;
use std::collections::HashMap;
use std::path::Path;

/// All entries of our own registry.
pub(super) struct Own<'a> {
    entries: &'a HashMap<String, FileEntry>,
    by_path: HashMap<&'a Path, Vec<&'a str>>,
}

impl<'a> Own<'a> {
    pub(super) fn new(entries: &'a HashMap<String, FileEntry>) -> Self {
        let mut by_path: HashMap<&Path, Vec<&str>> = HashMap::new();
        for (key, entry) in entries {
            by_path.entry(&*entry.meta.source).or_default().push(key);
        }
        Self { entries, by_path }
    }

    /// The entry of a file: under its key, or under the key that it had when it was shorter.
    pub(super) fn of(
        &self,
        files: &mut Files<'_>,
        file: usize,
        key: &str,
    ) -> Option<(&'a str, &'a FileEntry)> {
        if let Some((key, entry)) = self.entries.get_key_value(key) {
            return Some((key, entry));
        }
        if !files.settings.identity.is_content() {
            return None;
        }
        let settings = files.settings;
        let keys = self.by_path.get(&*files.found(file).path.clone())?;
        keys.iter().find_map(|key| {
            let entry = &self.entries[*key];
            let len = entry.meta.fingerprint_len.unwrap_or(settings.fingerprint.length);
            let print = Fingerprint::from_hex(settings.value_in(key)?, len)?;
            let head = files.head(file).as_ref().ok()?;
            head.matches(&print).then_some((*key, entry))
        })
    }
}
