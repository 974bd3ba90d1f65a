//! The scan: from patterns to the regular files that are there now.
//!
//! Costs one directory read a directory and one `stat` a matching name; nothing is opened. Where directories
//! are watched (`watch.rs`), only one `stat` a directory and one a changed name.

use crate::glob::{Part, Pattern, Wildcard};
use crate::watch::Directories;
use crate::watcher::Watcher;
use regex::bytes::Regex;
use skidder_os::{FileKind, Fs, Metadata, is_link_loop};
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The settings of a scan.
#[derive(Clone, Debug, Default)]
pub struct ScanSettings {
    /// `paths`.
    pub patterns: Vec<Pattern>,
    /// `prospector.scanner.include_files`: if there are any, a path must match one.
    pub include_files: Vec<Regex>,
    /// `prospector.scanner.exclude_files`: no path may match one.
    pub exclude_files: Vec<Regex>,
    /// Our own log: no path may match one. All inputs share these, as a compiled pattern takes memory to match.
    pub left_out: Arc<[Regex]>,
    /// `prospector.scanner.symlinks`: links to files are followed.
    pub symlinks: bool,
}

impl ScanSettings {
    /// Whether a path may be one that a scan finds.
    pub(crate) fn covers(&self, path: &Path) -> bool {
        self.patterns.iter().any(|pattern| pattern.covers(path))
    }
}

impl ScanSettings {
    /// All patterns that keep a path out.
    fn kept_out(&self) -> impl Iterator<Item = &Regex> {
        self.exclude_files.iter().chain(&*self.left_out)
    }

    /// Whether `prospector.scanner.exclude_files` keeps a path out.
    pub(crate) fn excludes(&self, path: &Path) -> bool {
        let path = path.as_os_str().as_bytes();
        self.kept_out().any(|regex| regex.is_match(path))
    }
}

impl ScanSettings {
    /// Why a scan does not find what is at a path, although the path matches a pattern; `None` if no
    /// pattern matches it.
    pub fn why_not(&self, fs: &dyn Fs, path: &Path) -> Option<String> {
        if !self.covers(path) {
            return None;
        }
        let matches = |regex: &&Regex| regex.is_match(path.as_os_str().as_bytes());
        if let Some(regex) = self.kept_out().find(matches) {
            return Some(format!("excluded by exclude_files: {regex}"));
        }
        if !self.include_files.is_empty() && !self.include_files.iter().any(|one| matches(&one)) {
            return Some("excluded: no pattern of include_files matches".to_owned());
        }
        Some(match fs.symlink_metadata(path).map(|metadata| metadata.kind) {
            Ok(FileKind::Symlink) if !self.symlinks => {
                "excluded: a symbolic link, and prospector.scanner.symlinks is off".to_owned()
            }
            Ok(FileKind::Regular | FileKind::Symlink) => "not seen by a scan yet".to_owned(),
            Ok(_) => "excluded: not a regular file".to_owned(),
            Err(error) => error.to_string(),
        })
    }
}

/// A file that a scan found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Its path, that of the link for a link.
    pub path: PathBuf,
    /// Its metadata, those of the target for a link.
    pub metadata: Metadata,
}

/// A directory that could not be listed, or a link that could not be followed.
#[derive(Debug)]
pub struct ScanProblem {
    /// The directory or link.
    pub path: PathBuf,
    /// The system's error.
    pub error: io::Error,
}

/// Finds all regular files that match, each path once, in no particular order.
pub fn scan(fs: &dyn Fs, settings: &ScanSettings) -> (Vec<Found>, Vec<ScanProblem>) {
    scan_changes(fs, settings, &mut |_, _| false)
}

/// Like [`scan`], without the files that `known` says have not changed: nothing is kept of those, so that
/// the cost of a scan over many idle files is that of its system calls. A file that several patterns match
/// may be passed to `known` several times.
pub fn scan_changes(
    fs: &dyn Fs,
    settings: &ScanSettings,
    known: &mut dyn FnMut(&Path, &Metadata) -> bool,
) -> (Vec<Found>, Vec<ScanProblem>) {
    let mut walk = Walk::new(fs, settings, known, None);
    walk.all();
    let Walk { found, problems, .. } = walk;
    (found, problems)
}

/// The result of a scan with watched directories.
#[derive(Default)]
pub(crate) struct Scanned {
    pub(crate) found: Vec<Found>,
    pub(crate) problems: Vec<ScanProblem>,
    /// Paths that were looked at one by one and are no file that matches.
    pub(crate) gone: Vec<PathBuf>,
}

/// The watched directories, and the watcher that creates watches.
pub(crate) struct Watching<'a> {
    pub(crate) directories: &'a mut Directories,
    pub(crate) watcher: &'a mut Watcher,
}

impl Watching<'_> {
    /// Whether what is at a name may change without a notification of its directory: a link, a file that has
    /// other names or is mounted there.
    fn may_miss(&self, directory: &Path, metadata: &Metadata) -> bool {
        metadata.kind != FileKind::Regular
            || metadata.links > 1
            || self.directories.is_mounted(directory, metadata.device)
    }
}

/// Like [`scan_changes`], but looks only into directories without a watch, and at names with a
/// notification; with `full` at everything.
pub(crate) fn scan_watched(
    fs: &dyn Fs,
    settings: &ScanSettings,
    watching: Watching<'_>,
    full: bool,
    known: &mut dyn FnMut(&Path, &Metadata) -> bool,
) -> Scanned {
    let mut walk = Walk::new(fs, settings, known, Some(watching));
    if let Some(watching) = &mut walk.watching {
        watching.directories.begin(full);
    }
    walk.all();
    let Walk { found, problems, gone, .. } = walk;
    Scanned { found, problems, gone }
}

/// Looks at these paths only, which match a pattern.
pub(crate) fn look_at(
    fs: &dyn Fs,
    settings: &ScanSettings,
    watching: Watching<'_>,
    paths: &[PathBuf],
    known: &mut dyn FnMut(&Path, &Metadata) -> bool,
) -> Scanned {
    let mut walk = Walk::new(fs, settings, known, Some(watching));
    for path in paths {
        walk.look(path);
    }
    if let Some(Watching { directories, watcher }) = &mut walk.watching {
        directories.add_targets(watcher);
    }
    let Walk { found, problems, gone, .. } = walk;
    Scanned { found, problems, gone }
}

fn recursive(settings: &ScanSettings) -> bool {
    settings.patterns.iter().any(|pattern| pattern.parts().contains(&Part::Recursive))
}

struct Walk<'a> {
    fs: &'a dyn Fs,
    settings: &'a ScanSettings,
    known: &'a mut dyn FnMut(&Path, &Metadata) -> bool,
    watching: Option<Watching<'a>>,
    found: Vec<Found>,
    problems: Vec<ScanProblem>,
    gone: Vec<PathBuf>,
}

impl<'a> Walk<'a> {
    fn new(
        fs: &'a dyn Fs,
        settings: &'a ScanSettings,
        known: &'a mut dyn FnMut(&Path, &Metadata) -> bool,
        watching: Option<Watching<'a>>,
    ) -> Self {
        let (found, problems, gone) = (Vec::new(), Vec::new(), Vec::new());
        Self { fs, settings, known, watching, found, problems, gone }
    }

    /// Follows all patterns; each path is found once.
    fn all(&mut self) {
        for pattern in &self.settings.patterns {
            self.enter(pattern.root(), pattern.parts());
        }
        if self.settings.patterns.len() > 1 || recursive(self.settings) {
            self.found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
            self.found.dedup_by(|a, b| a.path == b.path);
        }
    }

    /// Whether the names in a directory must be listed, because changes to them are not notified.
    fn must_list(&mut self, directory: &Path) -> bool {
        let Some(Watching { directories, watcher }) = &mut self.watching else { return true };
        directories.visit(self.fs, watcher, directory)
    }

    fn enter(&mut self, directory: &Path, parts: &[Part]) {
        match parts {
            [] => {}
            [Part::Recursive, rest @ ..] => self.descend(directory, rest, 0),
            [last] => self.files(directory, last),
            [Part::Name(name), rest @ ..] => self.enter(&directory.join(name), rest),
            [Part::Wild(wildcard), rest @ ..] => {
                for child in self.directories(directory, |name| wildcard.matches(name)) {
                    self.enter(&child, rest);
                }
            }
        }
    }

    fn descend(&mut self, directory: &Path, rest: &[Part], level: usize) {
        self.enter(directory, rest);
        if level < crate::glob::RECURSIVE_LEVELS_MAX {
            for child in self.directories(directory, |_| true) {
                self.descend(&child, rest, level + 1);
            }
        }
    }

    /// Directories in `directory`, links to directories included.
    fn directories(&mut self, directory: &Path, wanted: impl Fn(&OsStr) -> bool) -> Vec<PathBuf> {
        let list = self.must_list(directory);
        let remembered = if list { None } else { self.remembered_children(directory) };
        let names = match remembered {
            Some(names) => names,
            None => self.list_children(directory),
        };
        let mut names: Vec<(OsString, FileKind)> =
            names.into_iter().filter(|(name, _)| wanted(name)).collect();
        names.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let mut directories = Vec::with_capacity(names.len());
        for (name, kind) in names {
            let path = directory.join(name);
            if kind == FileKind::Directory {
                directories.push(path);
                continue;
            }
            match self.fs.metadata(&path) {
                Ok(meta) if meta.kind == FileKind::Directory => directories.push(path),
                Ok(_) => {}
                Err(error) => self.note_link(&path, error),
            }
        }
        directories
    }

    fn list_children(&mut self, directory: &Path) -> Vec<(OsString, FileKind)> {
        let mut names = Vec::new();
        let listed = self.fs.read_dir(directory, &mut |entry| {
            if matches!(entry.kind, FileKind::Directory | FileKind::Symlink) {
                names.push((entry.name.to_owned(), entry.kind));
            }
        });
        if let (Some(watching), Ok(())) = (&mut self.watching, &listed) {
            let names: HashSet<OsString> = names.iter().map(|(name, _)| name.clone()).collect();
            watching.directories.set_children(directory, names);
        }
        self.note(directory, listed);
        names
    }

    /// What was in a quiet directory when it was listed, and what came since; of which kind it is must be
    /// looked at, which for a directory its own visit does.
    fn remembered_children(&mut self, directory: &Path) -> Option<Vec<(OsString, FileKind)>> {
        let directories = &mut *self.watching.as_mut()?.directories;
        let restless = directories.restless_names(directory);
        let children = directories.children(directory)?;
        for name in restless {
            match self.fs.symlink_metadata(&directory.join(&name)) {
                Ok(meta) if matches!(meta.kind, FileKind::Directory | FileKind::Symlink) => {
                    children.insert(name);
                }
                _ => {
                    children.remove(&name);
                }
            }
        }
        Some(children.iter().map(|name| (name.clone(), FileKind::Symlink)).collect())
    }

    fn files(&mut self, directory: &Path, part: &Part) {
        let list = self.must_list(directory);
        if let Some(watching) = &mut self.watching {
            watching.directories.finds(directory, part);
            if !list {
                for name in watching.directories.restless_names(directory) {
                    if part.matches(&name) {
                        self.look(&directory.join(name));
                    }
                }
                return;
            }
        }
        let mut candidates = Vec::new();
        let listed = match part {
            Part::Name(name) => match self.fs.symlink_metadata(&directory.join(name)) {
                Ok(metadata) => {
                    candidates.push((directory.join(name), metadata));
                    Ok(())
                }
                Err(error) => Err(error),
            },
            Part::Wild(wildcard) => self.list_files(directory, wildcard, &mut candidates),
            Part::Recursive => Ok(()),
        };
        self.note(directory, listed);
        for (path, metadata) in candidates {
            self.consider(path, metadata);
        }
    }

    fn list_files(
        &mut self,
        directory: &Path,
        wildcard: &Wildcard,
        candidates: &mut Vec<(PathBuf, Metadata)>,
    ) -> io::Result<()> {
        let mut path = directory.to_path_buf();
        let known = &mut *self.known;
        let mut doubtful = Vec::new();
        let watching = self.watching.as_ref();
        let may_change_unseen =
            |metadata: &Metadata| watching.is_some_and(|of| of.may_miss(directory, metadata));
        let listed = self.fs.scan_dir(
            directory,
            &mut |name| wildcard.matches(name),
            &mut |name, metadata| {
                path.push(name);
                let regular = metadata.kind == FileKind::Regular;
                if !regular || !known(&path, &metadata) {
                    candidates.push((path.clone(), metadata));
                }
                path.pop();
                if may_change_unseen(&metadata) {
                    doubtful.push(name.to_owned());
                }
            },
        );
        if let Some(watching) = &mut self.watching {
            for name in doubtful {
                watching.directories.doubt(directory, &name);
            }
        }
        listed
    }

    /// Looks at one path.
    fn look(&mut self, path: &Path) {
        match self.fs.symlink_metadata(path) {
            Ok(metadata) => {
                // It may have come since its directory was listed.
                if let (Some(watching), Some(parent), Some(name)) =
                    (&mut self.watching, path.parent(), path.file_name())
                    && watching.may_miss(parent, &metadata)
                {
                    watching.directories.doubt(parent, name);
                }
                let regular = metadata.kind == FileKind::Regular;
                let unchanged = regular && (self.known)(path, &metadata);
                if !unchanged && !self.consider(path.to_owned(), metadata) {
                    self.gone.push(path.to_owned());
                }
            }
            Err(error) => {
                if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) {
                    self.gone.push(path.to_owned());
                }
                self.note(path, Err(error));
            }
        }
    }

    /// Takes what is a file, or a link to one; returns whether it is.
    fn consider(&mut self, path: PathBuf, metadata: Metadata) -> bool {
        if !self.is_wanted(&path) {
            return false;
        }
        let metadata = match metadata.kind {
            FileKind::Regular => metadata,
            FileKind::Symlink if self.settings.symlinks => {
                let looked = self
                    .fs
                    .metadata(&path)
                    .and_then(|target| Ok((target, self.fs.canonicalize(&path)?)));
                let (target, real) = match looked {
                    Ok(looked) => looked,
                    // A link that leads nowhere is no file.
                    Err(error) => {
                        self.note_link(&path, error);
                        return false;
                    }
                };
                if target.kind != FileKind::Regular || !self.is_wanted(&real) {
                    return false;
                }
                if let Some(watching) = &mut self.watching {
                    watching.directories.link(&path, real);
                }
                if (self.known)(&path, &target) {
                    return true;
                }
                target
            }
            _ => return false,
        };
        self.found.push(Found { path, metadata });
        true
    }

    fn is_wanted(&self, path: &Path) -> bool {
        let matches =
            |list: &[Regex]| list.iter().any(|regex| regex.is_match(path.as_os_str().as_bytes()));
        !self.settings.excludes(path)
            && (self.settings.include_files.is_empty() || matches(&self.settings.include_files))
    }

    /// A link among the names of a directory that cannot be followed. One that leads to itself has no file, like one that
    /// leads nowhere.
    fn note_link(&mut self, path: &Path, error: io::Error) {
        if !is_link_loop(&error) {
            self.note(path, Err(error));
        }
    }

    /// A directory that is not there is no problem: files come and go.
    fn note(&mut self, directory: &Path, result: io::Result<()>) {
        if let Err(error) = result
            && !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        {
            if let Some(watching) = &mut self.watching {
                watching.directories.set_stale(directory);
            }
            self.problems.push(ScanProblem { path: directory.to_owned(), error });
        }
    }
}

#[cfg(test)]
mod tests;
