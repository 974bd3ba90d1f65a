//! Files that are gone when their input ends: their registry entries are forgotten after the same minute as those of
//! an input that goes on.
//!
//! Nobody looks for these files any more, so each is looked for once more at the end of the minute. An entry stays if
//! its file is there after all, if only the file's name has changed, and if another input has saved it for another
//! file.

use super::MISSING_GRACE;
use super::inventory::Inventory;
use super::pins::unread_bytes;
use crate::cursors::Cursors;
use skidder_event::SourceId;
use skidder_os::{FileId, Fs, Monotonic};
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files of inputs that have ended, to be forgotten.
#[derive(Default)]
pub struct GoneFiles(Vec<GoneFile>);

/// A file that was gone when its input ended.
struct GoneFile {
    key: Arc<str>,
    path: Arc<Path>,
    /// Which file it was; `None` if another one has its inode.
    id: Option<FileId>,
    /// Its former content, whose path has other content now.
    former: bool,
    /// When it is looked for once more.
    due: Monotonic,
    fs: Arc<dyn Fs>,
    cursors: Arc<dyn Cursors>,
}

/// What is left of a file.
enum Remains {
    Nothing,
    /// The file, or an entry of another file.
    Something,
    /// The system does not say.
    Unknown,
}

/// The files of directories, once they are listed.
type Listed = HashMap<PathBuf, io::Result<HashSet<FileId>>>;

impl GoneFiles {
    /// The files of an input that ends which are gone, were read to the end or are just being read to it, and whose
    /// state may be forgotten.
    pub(super) fn of(files: &Inventory) -> Self {
        let input = &files.input;
        let copied: HashSet<SourceId> =
            files.places.duplicates().map(|(_, _, duplicate)| duplicate.of).collect();
        let is_read = |id, source| {
            let look = files.readers.look(id);
            look.is_some_and(|it| it.open || it.in_turn || unread_bytes(source, &it) == 0)
        };
        let mut gone = Vec::new();
        for (id, source) in files.sources.iter() {
            let Some(since) = source.missing_since.filter(|_| !source.placed) else { continue };
            let forgettable = input.settings.clean_removed || source.former;
            // A duplicate waits for the reader of its source: the next input reads on in it.
            if !forgettable || copied.contains(&id) || !is_read(id, source) {
                continue;
            }
            gone.push(GoneFile {
                key: Arc::clone(&source.key),
                path: files.followed.saved_path(&source.path),
                id: Some(source.file_id()).filter(|id| id.inode != 0),
                former: source.former,
                due: since + MISSING_GRACE,
                fs: Arc::clone(&input.fs),
                cursors: Arc::clone(&input.cursors),
            });
        }
        // Not in the order of a hash map: the simulated world replays the operations on the disk.
        gone.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        Self(gone)
    }

    /// Takes the files of another input.
    pub fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    /// When the next of them is to be forgotten.
    pub fn due(&self) -> Option<Monotonic> {
        self.0.iter().map(|file| file.due).min()
    }

    /// Forgets those whose time has come, if nothing is left of them.
    pub fn forget(&mut self, now: Monotonic) {
        if self.due().is_none_or(|due| due > now) {
            return;
        }
        let mut listed = Listed::new();
        let mut forgotten = 0;
        self.0.retain_mut(|file| {
            if file.due > now {
                return true;
            }
            match file.remains(&mut listed) {
                Remains::Nothing => {
                    file.cursors.forget_saved(vec![file.key.to_string()]);
                    forgotten += 1;
                    false
                }
                Remains::Something => false,
                Remains::Unknown => {
                    file.due = now + MISSING_GRACE;
                    true
                }
            }
        });
        if forgotten > 0 {
            tracing::info!(
                entries = forgotten,
                "forgetting files that were gone when their inputs ended"
            );
        }
    }
}

impl GoneFile {
    fn remains(&self, listed: &mut Listed) -> Remains {
        match self.cursors.saved(&self.key) {
            Ok(Some(entry)) if entry.meta.source == self.path => {}
            Ok(_) => return Remains::Something,
            Err(_) => return Remains::Unknown,
        }
        if self.former {
            return Remains::Nothing;
        }
        match self.fs.symlink_metadata(&self.path) {
            Ok(_) => return Remains::Something,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => return Remains::Unknown,
        }
        let (Some(directory), Some(id)) = (self.path.parent(), &self.id) else {
            return Remains::Nothing;
        };
        let files = listed.entry(directory.to_path_buf());
        match files.or_insert_with_key(|directory| files_in(&*self.fs, directory)) {
            Ok(files) if files.contains(id) => Remains::Something,
            Err(error) if error.kind() != io::ErrorKind::NotFound => Remains::Unknown,
            _ => Remains::Nothing,
        }
    }
}

/// Which files a directory has.
fn files_in(fs: &dyn Fs, directory: &Path) -> io::Result<HashSet<FileId>> {
    let mut files = HashSet::new();
    fs.scan_dir(directory, &mut |_| true, &mut |_, meta| {
        files.insert(meta.id());
    })?;
    Ok(files)
}
