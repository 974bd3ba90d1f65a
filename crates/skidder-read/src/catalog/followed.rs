//! Files that are read although no pattern matches them: files that were rotated away from what a link led to, and pins.

use crate::fingerprint::Fingerprint;
use crate::settings::FilestreamSettings;
use skidder_os::Monotonic;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The followed files of an input, and the paths that their events carry.
pub(super) struct FollowedFiles {
    all: HashMap<Arc<Path>, Followed>,
    /// Where the pins of this input are; `None` if it can have none.
    pin_directory: Option<PathBuf>,
}

/// A file that is followed.
pub(super) struct Followed {
    /// The path that its events carry.
    pub(super) shown: Arc<Path>,
    pub(super) since: Monotonic,
    /// It is a pin: its registry entry names the file that it was.
    pub(super) is_pin: bool,
    /// Nothing but the first look at its log leads to it: no file that was rotated away with it is known.
    pub(super) is_first_look: bool,
}

impl FollowedFiles {
    pub(super) fn new(settings: &FilestreamSettings) -> Self {
        let base = settings.pin.directory.as_ref().filter(|_| settings.identity.is_content());
        let pin_directory = base.map(|base| {
            // An id may be longer than a file name, or contain a slash.
            let input = Fingerprint::of(settings.key_prefix().as_bytes()).hex();
            base.join(&input[..16])
        });
        Self { all: HashMap::new(), pin_directory }
    }

    /// Where the pins of this input are; `None` if it can have none.
    pub(super) fn pin_directory(&self) -> Option<&Path> {
        self.pin_directory.as_deref()
    }

    /// Whether a path is in the directory of the pins.
    pub(super) fn is_pin_path(&self, path: &Path) -> bool {
        self.pin_directory.as_ref().is_some_and(|directory| path.starts_with(directory))
    }

    /// All followed paths, in order: the simulated world replays the operations on the disk.
    pub(super) fn paths(&self) -> Vec<Arc<Path>> {
        let mut paths: Vec<Arc<Path>> = self.all.keys().map(Arc::clone).collect();
        paths.sort_unstable();
        paths
    }

    /// Files that were rotated away from one of these paths, which are in order, or are one of them, in order.
    pub(super) fn rotated_from(&self, looked: &[PathBuf]) -> Vec<Arc<Path>> {
        let is_looked = |path: &Path| looked.binary_search_by(|at| (**at).cmp(path)).is_ok();
        let all = self.all.iter().filter(|(path, followed)| {
            !followed.is_pin && (is_looked(&followed.shown) || is_looked(path))
        });
        let mut paths: Vec<Arc<Path>> = all.map(|(path, _)| Arc::clone(path)).collect();
        paths.sort_unstable();
        paths
    }

    pub(super) fn has(&self, path: &Path) -> bool {
        self.all.contains_key(path)
    }

    /// Whether a file was rotated away from the target of a link.
    pub(super) fn is_rotated(&self, path: &Path) -> bool {
        self.all.get(path).is_some_and(|followed| !followed.is_pin)
    }

    /// The path of the file that a pin keeps; `None` for a path that is no followed pin.
    pub(super) fn pinned(&self, path: &Path) -> Option<&Arc<Path>> {
        self.all.get(path).filter(|followed| followed.is_pin).map(|followed| &followed.shown)
    }

    /// The path that events of a file carry, if it is not its own.
    pub(super) fn shown(&self, path: &Path) -> Option<Arc<Path>> {
        self.all.get(path).map(|followed| Arc::clone(&followed.shown))
    }

    /// The same, or its own.
    pub(super) fn shown_or_own(&self, path: &Arc<Path>) -> Arc<Path> {
        self.shown(path).unwrap_or_else(|| Arc::clone(path))
    }

    /// The path that the registry entry of a file names.
    pub(super) fn saved_path(&self, path: &Arc<Path>) -> Arc<Path> {
        Arc::clone(self.pinned(path).unwrap_or(path))
    }

    /// Followed files whose events carry this path.
    pub(super) fn shown_as(&self, shown: &Path) -> impl Iterator<Item = &Arc<Path>> {
        let all = self.all.iter().filter(move |(_, followed)| &*followed.shown == shown);
        all.map(|(path, _)| path)
    }

    /// All followed pins, and since when, in order.
    pub(super) fn pins(&self) -> Vec<(Arc<Path>, Monotonic)> {
        let pins = self.all.iter().filter(|(_, followed)| followed.is_pin);
        let mut pins: Vec<_> =
            pins.map(|(path, followed)| (Arc::clone(path), followed.since)).collect();
        pins.sort_unstable();
        pins
    }

    /// From now on, a file that was rotated away from what `link` led to is followed.
    pub(super) fn add_rotated(&mut self, path: &Path, link: &Arc<Path>, since: Monotonic) {
        let shown = Arc::clone(link);
        let followed = Followed { shown, since, is_pin: false, is_first_look: false };
        self.all.insert(Arc::from(path), followed);
    }

    /// Nothing but the first look at its log leads to this file.
    pub(super) fn mark_first_look(&mut self, path: &Path) {
        if let Some(followed) = self.all.get_mut(path) {
            followed.is_first_look = true;
        }
    }

    /// Whether that is so.
    pub(super) fn is_first_look(&self, path: &Path) -> bool {
        self.all.get(path).is_some_and(|followed| followed.is_first_look)
    }

    /// From now on, the pin of a file that is gone is followed.
    pub(super) fn add_pin(&mut self, pin: Arc<Path>, of: Arc<Path>, since: Monotonic) {
        let followed = Followed { shown: of, since, is_pin: true, is_first_look: false };
        self.all.entry(pin).or_insert(followed);
    }

    /// The file that a pin keeps has this name.
    pub(super) fn rename_pin(&mut self, pin: &Path, name: &Arc<Path>) {
        if let Some(followed) = self.all.get_mut(pin) {
            followed.shown = Arc::clone(name);
        }
    }

    /// A file is not followed any more.
    pub(super) fn remove(&mut self, path: &Path) -> Option<Followed> {
        self.all.remove(path)
    }

    /// A file that was removed is followed again.
    pub(super) fn put_back(&mut self, path: &Arc<Path>, followed: Followed) {
        self.all.insert(Arc::clone(path), followed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileIdentity;
    use crate::testing::settings;

    fn path(path: &str) -> Arc<Path> {
        Arc::from(Path::new(path))
    }

    fn followed() -> FollowedFiles {
        let mut settings = settings();
        settings.pin.directory = Some(PathBuf::from("/data/pins"));
        FollowedFiles::new(&settings)
    }

    #[test]
    fn events_of_a_rotated_file_carry_the_link_and_its_entry_its_own_path() {
        let (mut followed, file, link) = (followed(), path("/pods/0.log.1"), path("/logs/a.log"));
        followed.add_rotated(&file, &link, Monotonic::default());
        assert!(followed.has(&file) && followed.is_rotated(&file));
        assert_eq!(followed.shown(&file), Some(Arc::clone(&link)));
        assert_eq!((followed.pinned(&file), followed.saved_path(&file)), (None, file.clone()));
        assert_eq!(followed.shown_as(&link).collect::<Vec<_>>(), [&file]);
        assert_eq!((followed.shown(&link), followed.shown_or_own(&link)), (None, link.clone()));
        let removed = followed.remove(&file).unwrap();
        assert!(!followed.has(&file));
        followed.put_back(&file, removed);
        assert_eq!(followed.paths(), [file]);
    }

    #[test]
    fn the_entry_of_a_pin_names_the_file_that_it_keeps() {
        let mut followed = followed();
        let pin: Arc<Path> = Arc::from(followed.pin_directory().unwrap().join("4"));
        assert!(followed.is_pin_path(&pin) && !followed.is_pin_path(Path::new("/data/pins")));
        followed.add_pin(Arc::clone(&pin), path("/logs/a"), Monotonic::default());
        followed.add_pin(Arc::clone(&pin), path("/logs/b"), Monotonic::default());
        assert_eq!(followed.saved_path(&pin), path("/logs/a"), "the first name is kept");
        followed.rename_pin(&pin, &path("/logs/c"));
        assert_eq!(followed.pinned(&pin), Some(&path("/logs/c")));
        assert!(!followed.is_rotated(&pin));
        assert_eq!(followed.pins(), [(pin, Monotonic::default())]);
    }

    #[test]
    fn files_that_are_identified_by_name_have_no_pins() {
        let mut settings = settings();
        settings.pin.directory = Some(PathBuf::from("/data/pins"));
        settings.identity = FileIdentity::Native;
        let followed = FollowedFiles::new(&settings);
        assert!(followed.pin_directory().is_none() && !followed.is_pin_path(Path::new("/data")));
    }
}
