//! The scan: from patterns to the regular files that are there now.
//!
//! Costs one directory read a directory and one `stat` a matching name; nothing is opened.

use crate::glob::{Part, Pattern};
use regex::bytes::Regex;
use skidder_os::{FileKind, Fs, Metadata};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What a scan looks for.
#[derive(Clone, Debug, Default)]
pub struct ScanSettings {
    /// `paths`.
    pub patterns: Vec<Pattern>,
    /// `prospector.scanner.include_files`: if there are any, a path must match one.
    pub include_files: Vec<Regex>,
    /// `prospector.scanner.exclude_files`: no path may match one.
    pub exclude_files: Vec<Regex>,
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
    /// Whether `prospector.scanner.exclude_files` keeps a path out.
    pub(crate) fn excludes(&self, path: &Path) -> bool {
        let path = path.as_os_str().as_bytes();
        self.exclude_files.iter().any(|regex| regex.is_match(path))
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
    /// What the system said.
    pub error: io::Error,
}

/// Finds all regular files that match, each path once, in no particular order.
pub fn scan(fs: &dyn Fs, settings: &ScanSettings) -> (Vec<Found>, Vec<ScanProblem>) {
    scan_changes(fs, settings, &mut |_, _| false)
}

/// Like [`scan`], without the files that `known` says have not changed: nothing is kept of those, so that
/// the cost of a scan over many idle files is that of its system calls. A file that several patterns match
/// may be asked about several times.
pub fn scan_changes(
    fs: &dyn Fs,
    settings: &ScanSettings,
    known: &mut dyn FnMut(&Path, &Metadata) -> bool,
) -> (Vec<Found>, Vec<ScanProblem>) {
    let mut walk = Walk { fs, settings, known, found: Vec::new(), problems: Vec::new() };
    for pattern in &settings.patterns {
        walk.enter(pattern.root(), pattern.parts());
    }
    let Walk { mut found, problems, .. } = walk;
    if settings.patterns.len() > 1 || recursive(settings) {
        found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        found.dedup_by(|a, b| a.path == b.path);
    }
    (found, problems)
}

fn recursive(settings: &ScanSettings) -> bool {
    settings.patterns.iter().any(|pattern| pattern.parts().contains(&Part::Recursive))
}

struct Walk<'a> {
    fs: &'a dyn Fs,
    settings: &'a ScanSettings,
    known: &'a mut dyn FnMut(&Path, &Metadata) -> bool,
    found: Vec<Found>,
    problems: Vec<ScanProblem>,
}

impl Walk<'_> {
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
        let mut names = Vec::new();
        let listed = self.fs.read_dir(directory, &mut |entry| {
            let maybe = matches!(entry.kind, FileKind::Directory | FileKind::Symlink);
            if maybe && wanted(entry.name) {
                names.push((directory.join(entry.name), entry.kind));
            }
        });
        self.note(directory, listed);
        let mut directories = Vec::with_capacity(names.len());
        for (path, kind) in names {
            if kind == FileKind::Directory {
                directories.push(path);
                continue;
            }
            match self.fs.metadata(&path) {
                Ok(meta) if meta.kind == FileKind::Directory => directories.push(path),
                Ok(_) => {}
                Err(error) => self.note(&path, Err(error)),
            }
        }
        directories
    }

    fn files(&mut self, directory: &Path, part: &Part) {
        let mut candidates = Vec::new();
        let listed = match part {
            Part::Name(name) => match self.fs.symlink_metadata(&directory.join(name)) {
                Ok(metadata) => {
                    candidates.push((directory.join(name), metadata));
                    Ok(())
                }
                Err(error) => Err(error),
            },
            Part::Wild(wildcard) => {
                let mut path = directory.to_path_buf();
                let known = &mut *self.known;
                self.fs.scan_dir(
                    directory,
                    &mut |name| wildcard.matches(name),
                    &mut |name, metadata| {
                        path.push(name);
                        if metadata.kind != FileKind::Regular || !known(&path, &metadata) {
                            candidates.push((path.clone(), metadata));
                        }
                        path.pop();
                    },
                )
            }
            Part::Recursive => Ok(()),
        };
        self.note(directory, listed);
        for (path, metadata) in candidates {
            self.consider(path, metadata);
        }
    }

    fn consider(&mut self, path: PathBuf, metadata: Metadata) {
        if !self.is_wanted(&path) {
            return;
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
                    Err(error) => return self.note(&path, Err(error)),
                };
                if target.kind != FileKind::Regular || !self.is_wanted(&real) {
                    return;
                }
                if (self.known)(&path, &target) {
                    return;
                }
                target
            }
            _ => return,
        };
        self.found.push(Found { path, metadata });
    }

    fn is_wanted(&self, path: &Path) -> bool {
        let matches =
            |list: &[Regex]| list.iter().any(|regex| regex.is_match(path.as_os_str().as_bytes()));
        !matches(&self.settings.exclude_files)
            && (self.settings.include_files.is_empty() || matches(&self.settings.include_files))
    }

    /// A directory that is not there is no problem: files come and go.
    fn note(&mut self, directory: &Path, result: io::Result<()>) {
        if let Err(error) = result
            && !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        {
            self.problems.push(ScanProblem { path: directory.to_owned(), error });
        }
    }
}

#[cfg(test)]
mod tests;
