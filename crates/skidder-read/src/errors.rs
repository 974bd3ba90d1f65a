//! The last errors that were met with the files of an input, for people.
//!
//! The newest of each file, of [`FILES_MAX`] files at most: nothing is kept of files that are well.

use skidder_event::SourceId;
use skidder_os::Timestamp;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Files whose errors are kept; of more the oldest is forgotten.
const FILES_MAX: usize = 256;

/// Bytes of a text that are kept.
const TEXT_BYTES_MAX: usize = 512;

/// An error of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// When.
    pub at: Timestamp,
    /// Where the file was then.
    pub path: Arc<Path>,
    /// What.
    pub text: String,
}

/// The last errors of the files of an input.
#[derive(Debug, Default)]
pub struct LastErrors(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    last: Option<FileError>,
    of_files: HashMap<SourceId, FileError>,
}

impl LastErrors {
    /// The newest of all files.
    pub fn last(&self) -> Option<FileError> {
        self.lock().last.clone()
    }

    /// The newest of a file.
    pub fn of(&self, source: SourceId) -> Option<FileError> {
        self.lock().of_files.get(&source).cloned()
    }

    /// Takes note of an error; of one with a file that nothing is known of yet without a `source`.
    pub(crate) fn note(
        &self,
        source: Option<SourceId>,
        path: &Arc<Path>,
        mut text: String,
        at: Timestamp,
    ) {
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        let error = FileError { at, path: Arc::clone(path), text };
        let mut kept = self.lock();
        if let Some(source) = source {
            if kept.of_files.len() >= FILES_MAX && !kept.of_files.contains_key(&source) {
                let oldest = kept.of_files.iter().min_by_key(|(id, error)| (error.at, **id));
                let oldest = oldest.map(|(id, _)| *id);
                kept.of_files.retain(|id, _| Some(*id) != oldest);
            }
            kept.of_files.insert(source, error.clone());
        }
        kept.last = Some(error);
    }

    /// Forgets those of a file that is forgotten.
    pub(crate) fn forget(&self, source: SourceId) {
        self.lock().of_files.remove(&source);
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_error_of_each_file_is_kept_of_so_many_files() {
        let errors = LastErrors::default();
        let path: Arc<Path> = Arc::from(Path::new("/a"));
        for number in 0..=FILES_MAX as u64 {
            errors.note(
                Some(SourceId(number)),
                &path,
                number.to_string(),
                Timestamp(number as i64),
            );
        }
        assert_eq!(errors.of(SourceId(0)), None, "the oldest");
        assert_eq!(errors.of(SourceId(1)).unwrap().text, "1");
        errors.note(Some(SourceId(1)), &path, "é".repeat(300), Timestamp(1));
        assert_eq!(errors.of(SourceId(1)).unwrap().text, "é".repeat(TEXT_BYTES_MAX / 2));
        assert_eq!(errors.last(), errors.of(SourceId(1)));
        errors.forget(SourceId(1));
        assert_eq!(errors.of(SourceId(1)), None);
        errors.note(None, &path, "no source".to_owned(), Timestamp(5));
        assert_eq!(errors.last().unwrap().text, "no source");
    }
}
