//! Files that processors look values up in: found beside the configuration, read once for all processors of a
//! configuration that name the same one.

use skidder_config::Section;
use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A name in a setting as a path: a relative one is relative to the folder of the configuration's file.
pub(super) fn beside(settings: &Section<'_>, name: &Path) -> PathBuf {
    let file = settings.position().map(|position| PathBuf::from(position.source().name()));
    file.as_deref().and_then(Path::parent).unwrap_or(Path::new("")).join(name)
}

/// A path, and how its file is read.
type Name = (PathBuf, &'static str);

/// What was read from files, shared by path for as long as a processor uses it.
#[derive(Default)]
pub struct SharedFiles(Mutex<HashMap<Name, Weak<dyn Any + Send + Sync>>>);

impl SharedFiles {
    /// What was read from a file as `kind`, or what `read` makes of it now.
    pub(super) fn get<T: Any + Send + Sync, E>(
        &self,
        path: &Path,
        kind: &'static str,
        read: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name = (path.to_owned(), kind);
        let known = files.get(&name).and_then(Weak::upgrade);
        if let Some(known) = known.and_then(|known| known.downcast().ok()) {
            return Ok(known);
        }
        let new = Arc::new(read()?);
        files.retain(|_, known| known.strong_count() > 0);
        let shared: Arc<dyn Any + Send + Sync> = new.clone();
        files.insert(name, Arc::downgrade(&shared));
        Ok(new)
    }
}

impl fmt::Debug for SharedFiles {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        out.debug_set().entries(files.keys()).finish()
    }
}
