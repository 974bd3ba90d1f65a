//! The readers' view of cursors: the settle for what is read now, the registry for what was.

use skidder_event::SourceId;
use skidder_pipeline::Settle;
use skidder_read::{Cursors, CursorsError};
use skidder_registry::{Cursor, Entry, FileEntry, Meta, Registry};
use std::sync::Arc;

/// Settle and registry behind [`Cursors`].
#[derive(Clone)]
pub struct SavedCursors {
    settle: Arc<Settle>,
    registry: Arc<Registry>,
}

impl SavedCursors {
    /// Over both.
    pub fn new(settle: Arc<Settle>, registry: Arc<Registry>) -> Self {
        Self { settle, registry }
    }
}

impl Cursors for SavedCursors {
    fn saved(&self, key: &str) -> Result<Option<FileEntry>, CursorsError> {
        let entry = self.registry.get(key).map_err(|error| CursorsError(error.to_string()))?;
        Ok(entry.and_then(Entry::into_file))
    }

    fn checkpoint(&self, key: &str) -> Result<Option<Vec<u8>>, CursorsError> {
        self.registry.checkpoint(key).map_err(|error| CursorsError(error.to_string()))
    }

    fn for_each_saved(&self, each: &mut dyn FnMut(&str, &FileEntry)) -> Result<(), CursorsError> {
        let mut file = |key: &str, entry: &Entry| {
            if let Entry::File(file) = entry {
                each(key, file);
            }
        };
        self.registry
            .for_each(|key, entry| file(key, &entry))
            .map_err(|error| CursorsError(error.to_string()))
    }

    fn forget_saved(&self, keys: Vec<String>) {
        self.settle.forget_keys(keys);
    }

    fn begin(&self, source: SourceId, key: &Arc<str>, meta: Meta, cursor: Cursor, save: bool) {
        self.settle.begin(source, Arc::clone(key), meta, cursor, save);
    }

    fn update(&self, source: SourceId, key: &Arc<str>, meta: Meta) {
        self.settle.update(source, key, meta);
    }

    fn doubt_end(&self, source: SourceId) {
        self.settle.doubt_end(source);
    }

    fn restart(&self, source: SourceId, generation: u32) {
        self.settle.restart(source, generation);
    }

    fn unsave(&self, source: SourceId) {
        self.settle.unsave(source);
    }

    fn cursor(&self, source: SourceId) -> Option<Cursor> {
        self.settle.cursor(source)
    }

    fn is_settled(&self, source: SourceId) -> bool {
        self.settle.is_settled(source)
    }

    fn remove(&self, source: SourceId) {
        self.settle.remove(source);
    }
}
