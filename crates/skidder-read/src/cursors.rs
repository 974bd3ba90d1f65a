//! How the readers load and report cursors: the settle and the registry behind a trait.

use skidder_event::SourceId;
use skidder_registry::{Cursor, FileEntry, Meta};
use std::sync::Arc;

/// Why saved state cannot be had. The file is left alone until the next scan.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the registry: {0}")]
pub struct CursorsError(pub String);

/// Keeps the cursors of sources; implemented over the settle and the registry.
pub trait Cursors: Send + Sync {
    /// The entry saved under a key.
    fn saved(&self, key: &str) -> Result<Option<FileEntry>, CursorsError>;

    /// The decoder checkpoint saved under a key.
    fn checkpoint(&self, key: &str) -> Result<Option<Vec<u8>>, CursorsError>;

    /// Calls `each` for every saved key of this kind, in no particular order.
    fn for_each_saved(&self, each: &mut dyn FnMut(&str, &FileEntry)) -> Result<(), CursorsError>;

    /// Forgets saved keys that no source of this run has.
    fn forget_saved(&self, keys: Vec<String>);

    /// A source is read from `cursor` on; `save` it at once although nothing was read yet, and not only a little later.
    fn begin(&self, source: SourceId, key: &Arc<str>, meta: Meta, cursor: Cursor, save: bool);

    /// A source was seen elsewhere, or has a longer fingerprint and so another key.
    fn update(&self, source: SourceId, key: &Arc<str>, meta: Meta);

    /// The file of a source has changed: what was the verified end of it need not be the end any more.
    fn doubt_end(&self, source: SourceId);

    /// A source starts again from zero under a new generation.
    fn restart(&self, source: SourceId, generation: u32);

    /// Where the next start would continue a source.
    fn cursor(&self, source: SourceId) -> Option<Cursor>;

    /// Whether nothing of a source is between its reader and its cursor.
    fn is_settled(&self, source: SourceId) -> bool;

    /// Forgets the saved state of a source; it is saved again when it changes.
    fn unsave(&self, source: SourceId);

    /// A source is gone for good.
    fn remove(&self, source: SourceId);
}
