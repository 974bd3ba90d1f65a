//! State that was saved under another key: by this input when it had another file identity or no id, or by an
//! input that it takes over from.
//!
//! Such an entry belongs to a file if it names the path of the file, and the file still has the old identity.
//! The file continues from the entry's cursor under its new key, and the old entry is forgotten.

use super::Candidate;
use super::inventory::Inventory;
use super::saved::{SavedState, entry, proven_cursor};
use crate::cursors::CursorsError;
use crate::fingerprint::Fingerprint;
use crate::identity::{FileIdentity, LOG_PREFIX, filestream_prefix};
use crate::settings::{FilestreamSettings, InputKind, TakeOver};
use skidder_registry::FileEntry;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// Keys that a file of this input may be saved under, by the path in their entries.
#[derive(Default)]
pub(super) struct Adoptable(HashMap<Arc<Path>, Vec<Box<str>>>);

impl Adoptable {
    /// Remembers an entry if a file of the input may adopt it.
    pub(super) fn consider(&mut self, settings: &FilestreamSettings, key: &str, entry: &FileEntry) {
        if is_adoptable(settings, key) {
            self.0.entry(Arc::clone(&entry.meta.source)).or_default().push(key.into());
        }
    }

    /// The start is over: entries that no file has adopted stay where they are.
    pub(super) fn clear(&mut self) {
        self.0 = HashMap::new();
    }

    /// The state of a file under another key, with a cursor that the file still has the bytes before.
    pub(super) fn adopt(
        &mut self,
        files: &Inventory,
        candidate: &Candidate,
    ) -> Result<Option<SavedState>, CursorsError> {
        let Some(keys) = self.0.get(&*candidate.path).cloned() else { return Ok(None) };
        for key in keys {
            let Some(entry) = entry(files, &key)? else { continue };
            if !has_identity_of(files, candidate, &key, &entry) {
                continue;
            }
            let cursor = proven_cursor(files, candidate, &entry);
            tracing::info!(path = %candidate.path.display(), from = &*key, offset = cursor.offset,
                "a file goes on where another key of the registry left it");
            self.0.remove(&*candidate.path);
            return Ok(Some(SavedState { key: key.into(), fingerprint: None, cursor }));
        }
        Ok(None)
    }
}

/// Whether an input may adopt entries with this key.
fn is_adoptable(settings: &FilestreamSettings, key: &str) -> bool {
    let of = |prefix: &str| key.strip_prefix(prefix).and_then(identity_in).map(|(name, _)| name);
    match &settings.take_over {
        TakeOver::Logs if of(LOG_PREFIX).is_some() => return true,
        TakeOver::Inputs(ids) if ids.iter().any(|id| of(&filestream_prefix(id)).is_some()) => {
            return true;
        }
        _ => {}
    }
    if settings.kind != InputKind::Filestream {
        return false;
    }
    let own = settings.identity.name();
    // Files that were identified by name are identified by content now; the other direction is impossible.
    let renamed = settings.identity.is_content()
        && of(&filestream_prefix(&settings.id)).is_some_and(|name| name != own);
    // The input had no id.
    renamed || (!settings.id.is_empty() && of(&filestream_prefix("")) == Some(own))
}

/// The identity and its value, from the end of a key.
fn identity_in(rest: &str) -> Option<(&str, &str)> {
    let (name, value) = rest.split_once("::")?;
    ["fingerprint", "native", "path"].contains(&name).then_some((name, value))
}

/// Whether a key belongs to a filestream input with this id, with any identity.
pub(super) fn is_of_input(settings: &FilestreamSettings, key: &str) -> bool {
    if settings.kind != InputKind::Filestream {
        return key.starts_with(&settings.key_prefix());
    }
    let rest = key.strip_prefix(&filestream_prefix(&settings.id)).unwrap_or_default();
    rest.split_once("::")
        .is_some_and(|(name, _)| name == settings.identity.name() || identity_in(rest).is_some())
}

/// Whether a file has the identity that a key names.
fn has_identity_of(files: &Inventory, candidate: &Candidate, key: &str, entry: &FileEntry) -> bool {
    let Some((name, value)) = key
        .split_once("::")
        .and_then(|(_, rest)| rest.split_once("::"))
        .and_then(|(_, rest)| identity_in(rest))
    else {
        return false;
    };
    let path: &Path = &candidate.path;
    let meta = &candidate.found.metadata;
    let expected = match name {
        "native" => FileIdentity::Native.name_of(path, meta, ""),
        "path" => FileIdentity::Path.name_of(path, meta, ""),
        _ => {
            let usual = files.input.settings.fingerprint.length;
            let len = entry.meta.fingerprint_len.unwrap_or(usual);
            let print: Option<Fingerprint> = files.probe.print_of(candidate, len).ok().flatten();
            print.map(|print| print.hex())
        }
    };
    expected.is_some_and(|expected| {
        let rest = value.strip_prefix(&*expected);
        // The key names the stream of a container if only that was read.
        rest.is_some_and(|rest| {
            rest.is_empty() || rest.strip_prefix('-') == Some(files.input.settings.key_suffix)
        })
    })
}
