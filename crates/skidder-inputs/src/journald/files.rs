//! Which files a journal has: those of a directory as journalctl finds them, or those that a pattern finds.

use skidder_journal::Id;
use skidder_os::{FileKind, Fs};
use skidder_read::glob::{Pattern, PatternError};
use std::io;
use std::path::{Path, PathBuf};

/// Directories of the journal of this machine.
const SYSTEM: [&str; 2] = ["/var/log/journal", "/run/log/journal"];

/// Where the files of an input are.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// The journal of this machine; with `merge` also journals of others that are there.
    System { root: PathBuf, merge: bool },
    /// A file or a directory, or what a pattern finds.
    Path { path: PathBuf, pattern: Option<Pattern> },
}

impl Place {
    /// The journal of the machine whose files are below `root`.
    pub(super) fn system(root: &Path, merge: bool) -> Self {
        Self::System { root: root.to_owned(), merge }
    }

    /// A path below `root`.
    pub(super) fn path(root: &Path, text: &str) -> Result<Self, PatternError> {
        let path = root.join(text.trim_start_matches('/'));
        let has_wildcards = text.contains(['*', '?', '[']);
        let parse = || Pattern::parse(&path.to_string_lossy(), Path::new("/"), false);
        let pattern = has_wildcards.then(parse).transpose()?;
        Ok(Self::Path { path, pattern })
    }

    /// Whether this is the configured path.
    pub(super) fn is_at(&self, at: &Path) -> bool {
        matches!(self, Self::Path { path, .. } if path == at)
    }

    /// The message if there is no file of a journal.
    pub(super) fn no_file(&self) -> String {
        match self {
            Self::System { root, .. } => {
                let [first, second] =
                    SYSTEM.map(|directory| root.join(directory.trim_start_matches('/')));
                format!(
                    "there is no journal of this machine in {} and {}; in a container, mount them, or set `paths`",
                    first.display(),
                    second.display()
                )
            }
            Self::Path { .. } => "there is no file of a journal; see `paths`".to_owned(),
        }
    }

    /// Directories and files that there are now. `problem` gets what cannot be read.
    pub(super) fn list(&self, fs: &dyn Fs, problem: &mut dyn FnMut(&Path, io::Error)) -> Listed {
        let mut listed = Listed::default();
        match self {
            Self::System { root, merge } => {
                let machine = machine_id(fs, root);
                for directory in SYSTEM {
                    let directory = root.join(directory.trim_start_matches('/'));
                    let is_wanted = |id| *merge || Some(id) == machine || machine.is_none();
                    listed.journal(fs, &directory, &is_wanted, false, problem);
                }
            }
            Self::Path { path, pattern: Some(pattern) } => {
                let directory = path.parent().unwrap_or(path);
                listed.matching(fs, pattern.root(), directory, pattern, problem);
            }
            Self::Path { path, .. } => match fs.metadata(path) {
                Ok(metadata) if metadata.kind == FileKind::Directory => {
                    listed.journal(fs, path, &|_| true, true, problem);
                }
                Ok(_) => {
                    listed.directories.extend(path.parent().map(Path::to_owned));
                    listed.files.push(path.clone());
                }
                Err(error) => problem(path, error),
            },
        }
        listed
    }
}

/// The id of the machine.
fn machine_id(fs: &dyn Fs, root: &Path) -> Option<Id> {
    let mut text = [0; 64];
    let file = fs.open(&root.join("etc/machine-id")).ok()?;
    let length = file.read_at(&mut text, 0).ok()?;
    Id::parse(std::str::from_utf8(&text[..length]).ok()?.trim())
}

/// Files, and the directories in which others may appear.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) files: Vec<PathBuf>,
    pub(super) directories: Vec<PathBuf>,
}

impl Listed {
    /// A directory with directories of machines in it; `has_files`: also with files of its own.
    fn journal(
        &mut self,
        fs: &dyn Fs,
        directory: &Path,
        is_wanted: &dyn Fn(Id) -> bool,
        has_files: bool,
        problem: &mut dyn FnMut(&Path, io::Error),
    ) {
        let mut machines = Vec::new();
        let mut files = Vec::new();
        let read = fs.read_dir(directory, &mut |entry| {
            let name = entry.name.to_string_lossy().into_owned();
            if is_journal(&name) {
                files.push(directory.join(name));
            } else if Id::parse(&name).is_some_and(is_wanted) {
                machines.push(directory.join(name));
            }
        });
        match read {
            Ok(()) => self.directories.push(directory.to_owned()),
            // A machine keeps its journal in one of two directories.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !has_files => return,
            Err(error) => return problem(directory, error),
        }
        if has_files {
            self.files.append(&mut files);
        }
        for machine in machines {
            self.journal(fs, &machine, &|_| false, true, problem);
        }
    }

    /// Files below `directory` that a pattern finds.
    fn matching(
        &mut self,
        fs: &dyn Fs,
        directory: &Path,
        last: &Path,
        pattern: &Pattern,
        problem: &mut dyn FnMut(&Path, io::Error),
    ) {
        let mut inner = Vec::new();
        let depth = last.components().count();
        let read = fs.read_dir(directory, &mut |entry| {
            let path = directory.join(entry.name);
            if pattern.covers(&path) {
                self.files.push(path);
            } else if path.components().count() <= depth {
                inner.push(path);
            }
        });
        match read {
            Ok(()) => self.directories.push(directory.to_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => return,
            Err(error) => return problem(directory, error),
        }
        for directory in inner {
            self.matching(fs, &directory, last, pattern, problem);
        }
    }
}

/// Whether a name is that of a file of the journal, in use or archived, or moved aside because it was damaged.
fn is_journal(name: &str) -> bool {
    name.ends_with(".journal") || name.ends_with(".journal~")
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_os::RealFs;

    const HERE: &str = "0123456789abcdef0123456789abcdef";
    const OTHER: &str = "fedcba9876543210fedcba9876543210";

    fn list(place: &Place, root: &Path) -> (Vec<String>, usize) {
        let mut problems = 0;
        let listed = place.list(&RealFs, &mut |_, _| problems += 1);
        let relative = |path: &PathBuf| path.strip_prefix(root).unwrap().display().to_string();
        let mut files: Vec<_> = listed.files.iter().map(relative).collect();
        files.sort();
        (files, problems)
    }

    #[test]
    fn files_are_found_as_journalctl_finds_them() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let here = format!("var/log/journal/{HERE}");
        for file in [
            "etc/machine-id",
            &format!("{here}/system.journal"),
            &format!("{here}/system@1.journal~"),
            &format!("{here}/fss"),
            &format!("var/log/journal/{HERE}.test/system.journal"),
            &format!("var/log/journal/{OTHER}/system.journal"),
            "var/log/journal/remote/remote-a.journal",
            &format!("run/log/journal/{HERE}/user-1.journal"),
        ] {
            std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            std::fs::write(root.join(file), format!("{HERE}\n")).unwrap();
        }
        let own = [
            format!("run/log/journal/{HERE}/user-1.journal"),
            format!("{here}/system.journal"),
            format!("{here}/system@1.journal~"),
        ];
        assert_eq!(list(&Place::system(root, false), root), (own.to_vec(), 0));
        let all = [&own[..], &[format!("var/log/journal/{OTHER}/system.journal")]].concat();
        assert_eq!(list(&Place::system(root, true), root), (all, 0));
        for (path, expected) in [
            ("/var/log/journal/remote", vec!["var/log/journal/remote/remote-a.journal".to_owned()]),
            (
                "/var/log/journal/*/system.journal",
                vec![
                    format!("var/log/journal/{HERE}.test/system.journal"),
                    format!("{here}/system.journal"),
                    format!("var/log/journal/{OTHER}/system.journal"),
                ],
            ),
            (&format!("/{here}/fss"), vec![format!("{here}/fss")]),
        ] {
            let place = Place::path(root, path).unwrap();
            assert_eq!(list(&place, root), (expected, 0), "{path}");
        }
        assert_eq!(list(&Place::path(root, "/none").unwrap(), root), (vec![], 1));
    }
}
