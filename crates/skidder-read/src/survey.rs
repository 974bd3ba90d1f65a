//! What an input finds where it looks, for people: paths without a file, directories, files that cannot be read, compressed
//! files that would be read as text.
//!
//! It walks the directories as a scan does and opens the first files, and keeps nothing.

use crate::glob::Pattern;
use crate::reader::InputContext;
use crate::scan::{Found, ScanSettings, scan};
use crate::settings::{Compression, FilestreamSettings};
use skidder_decode::Codec;
use skidder_os::{FileKind, Fs};
use std::fmt;
use std::path::{Path, PathBuf};

/// Files of an input that are opened to see whether they can be read.
const OPENED_MAX: usize = 1000;

impl AsRef<FilestreamSettings> for InputContext {
    fn as_ref(&self) -> &FilestreamSettings {
        &self.settings
    }
}

/// A finding about an input, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// No file matches a path of the input.
    NoFile {
        /// The path as it is written.
        pattern: String,
        /// Why, if that is known.
        why: Option<String>,
    },
    /// A path is a directory.
    Directory {
        /// The path as it is written.
        pattern: String,
    },
    /// Files or directories cannot be opened.
    Unreadable {
        /// The first of them.
        path: PathBuf,
        /// The system's error.
        error: String,
        /// How many.
        count: usize,
    },
    /// Compressed files match, and the input has no `compression`.
    Compressed {
        /// The first of them.
        path: PathBuf,
        /// How many.
        count: usize,
    },
}

impl Finding {
    /// One word for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NoFile { .. } => "no_file",
            Self::Directory { .. } => "directory",
            Self::Unreadable { .. } => "unreadable",
            Self::Compressed { .. } => "compressed_as_text",
        }
    }

    /// The file or pattern.
    pub fn place(&self) -> String {
        match self {
            Self::NoFile { pattern, .. } | Self::Directory { pattern } => pattern.clone(),
            Self::Unreadable { path, .. } | Self::Compressed { path, .. } => {
                path.to_string_lossy().into_owned()
            }
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> String {
        match self {
            Self::NoFile { .. } => {
                "check the path; it is looked for again with every scan".to_owned()
            }
            Self::Directory { pattern } => {
                format!("did you mean `{}/*.log`?", pattern.trim_end_matches('/'))
            }
            Self::Unreadable { .. } => {
                "give the user of skidder the right to read it, for example by a group".to_owned()
            }
            Self::Compressed { .. } => {
                "set `compression: auto`, or leave them out with `prospector.scanner.exclude_files`"
                    .to_owned()
            }
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFile { pattern, why: None } => write!(out, "no file matches `{pattern}`"),
            Self::NoFile { pattern, why: Some(why) } => {
                write!(out, "no file matches `{pattern}`: {why}")
            }
            Self::Directory { pattern } => {
                write!(out, "`{pattern}` is a directory, and a path must match files")
            }
            Self::Unreadable { path, error, count } => {
                write!(out, "cannot read `{}`: {error}{}", path.display(), And(*count))
            }
            Self::Compressed { path, count } => {
                let path = path.display();
                write!(out, "`{path}` is compressed and would be read as text{}", And(*count))
            }
        }
    }
}

/// ` (and 3 more)`
struct And(usize);

impl fmt::Display for And {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 | 1 => Ok(()),
            count => write!(out, " (and {} more)", count - 1),
        }
    }
}

/// Looks at everything that an input would find now.
pub fn survey(fs: &dyn Fs, settings: &FilestreamSettings) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut unreadable: Vec<(PathBuf, String)> = Vec::new();
    let mut compressed: Vec<PathBuf> = Vec::new();
    let mut opened = 0;
    for pattern in &settings.scan.patterns {
        let only = ScanSettings { patterns: vec![pattern.clone()], ..settings.scan.clone() };
        let (mut found, problems) = scan(fs, &only);
        found.sort_by(|one, other| one.path.cmp(&other.path));
        for problem in &problems {
            unreadable.push((problem.path.clone(), problem.error.to_string()));
        }
        if found.is_empty() && problems.is_empty() {
            findings.extend(why_none(fs, &only, pattern));
        }
        for file in &found {
            if opened == OPENED_MAX {
                break;
            }
            opened += 1;
            look(fs, settings, file, &mut unreadable, &mut compressed);
        }
    }
    unreadable.dedup();
    compressed.dedup();
    if let Some((path, error)) = unreadable.first().cloned() {
        findings.push(Finding::Unreadable { path, error, count: unreadable.len() });
    }
    if let Some(path) = compressed.first().cloned() {
        findings.push(Finding::Compressed { path, count: compressed.len() });
    }
    findings
}

/// Opens a file.
fn look(
    fs: &dyn Fs,
    settings: &FilestreamSettings,
    found: &Found,
    unreadable: &mut Vec<(PathBuf, String)>,
    compressed: &mut Vec<PathBuf>,
) {
    let file = match fs.open(&found.path) {
        Ok(file) => file,
        // It is gone since.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
        Err(error) => return unreadable.push((found.path.clone(), error.to_string())),
    };
    let is_named_so = found
        .path
        .extension()
        .is_some_and(|end| Codec::ALL.iter().any(|codec| end == codec.extension()));
    if settings.compression == Compression::None
        && is_named_so
        && let Ok(Some(_)) = Codec::detect(&*file)
    {
        compressed.push(found.path.clone());
    }
}

/// Why a pattern finds nothing; `None` if it finds something that another rule keeps out on purpose.
fn why_none(fs: &dyn Fs, settings: &ScanSettings, pattern: &Pattern) -> Option<Finding> {
    let written = pattern.as_str().to_owned();
    if let Some(path) = pattern.only_path() {
        match fs.metadata(&path).map(|metadata| metadata.kind) {
            Ok(FileKind::Directory) => return Some(Finding::Directory { pattern: written }),
            Ok(_) => {
                let why = settings.why_not(fs, &path);
                return Some(Finding::NoFile { pattern: written, why });
            }
            Err(_) => {}
        }
    }
    let why = missing(fs, pattern.root()).map(|path| format!("`{}` is not there", path.display()));
    let all = ScanSettings {
        patterns: settings.patterns.clone(),
        symlinks: true,
        ..ScanSettings::default()
    };
    let why = why.or_else(|| {
        let (found, _) = scan(fs, &all);
        settings.why_not(fs, &found.first()?.path)
    });
    Some(Finding::NoFile { pattern: written, why })
}

/// The first directory on the way to `path` that is not there.
fn missing(fs: &dyn Fs, path: &Path) -> Option<PathBuf> {
    let mut ways: Vec<&Path> = path.ancestors().collect();
    ways.reverse();
    let is_missing = |path: &&&Path| {
        fs.metadata(path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    };
    ways.iter().find(is_missing).map(|path| path.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_testkit::{SimClock, SimFs};

    fn findings(fs: &SimFs, paths: &[&str]) -> Vec<String> {
        let pattern = |path: &&str| Pattern::parse(path, Path::new("/"), true).unwrap();
        let patterns = paths.iter().map(pattern).collect();
        let settings =
            FilestreamSettings::new("a", ScanSettings { patterns, ..ScanSettings::default() });
        let found = survey(fs, &settings);
        found
            .iter()
            .map(|finding| format!("{}: {finding}; {}", finding.kind(), finding.remedy()))
            .collect()
    }

    #[test]
    fn what_is_found_without_trouble_is_no_finding_and_the_rest_says_what_to_do() {
        let clock = SimClock::new();
        let fs = SimFs::new(&clock);
        fs.create_dir_as_other("/var/log/dir");
        fs.write_as_other("/var/log/a.log", b"text\n");
        fs.write_as_other("/var/log/b.log.gz", &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        fs.write_as_other("/var/log/c.log.gz", b"text, whatever its name\n");
        assert_eq!(findings(&fs, &["/var/log/*.log", "/var/log/c*"]), [""; 0]);
        let table = [
            (
                "/var/log/dir",
                "directory: `/var/log/dir` is a directory, and a path must match files; did you mean `/var/log/dir/*.log`?",
            ),
            (
                "/var/log/x*",
                "no_file: no file matches `/var/log/x*`; check the path; it is looked for again with every scan",
            ),
            (
                "/srv/a/*.log",
                "no_file: no file matches `/srv/a/*.log`: `/srv` is not there; check the path; it is looked for again with every scan",
            ),
            (
                "/var/log/b*",
                "compressed_as_text: `/var/log/b.log.gz` is compressed and would be read as text; set `compression: auto`, or leave them out with `prospector.scanner.exclude_files`",
            ),
        ];
        for (path, expected) in table {
            assert_eq!(findings(&fs, &[path]), [expected], "{path}");
        }
        assert_eq!(
            findings(&fs, &["/var/log/*"]).len(),
            1,
            "a directory among files is no mistake"
        );
    }

    #[test]
    fn files_that_are_left_out_say_by_which_setting() {
        let clock = SimClock::new();
        let fs = SimFs::new(&clock);
        fs.create_dir_as_other("/var/log");
        fs.write_as_other("/var/log/a.log", b"text\n");
        let scan = ScanSettings {
            patterns: vec![Pattern::parse("/var/log/*.log", Path::new("/"), true).unwrap()],
            exclude_files: vec![regex::bytes::Regex::new("a").unwrap()],
            ..ScanSettings::default()
        };
        let found = survey(&fs, &FilestreamSettings::new("a", scan));
        let why = "no file matches `/var/log/*.log`: excluded by exclude_files: a";
        assert_eq!(found[0].to_string(), why);
    }

    #[test]
    fn files_that_cannot_be_opened_are_counted() {
        let clock = SimClock::new();
        let fs = SimFs::new(&clock);
        fs.create_dir_as_other("/var/log");
        for name in ["a", "b"] {
            fs.write_as_other(format!("/var/log/{name}.log"), b"text\n");
        }
        use skidder_testkit::{Fault, Operation};
        let denied = std::io::ErrorKind::PermissionDenied;
        fs.inject(Fault::nth(1, denied).of(Operation::Open).on("/var/log").forever());
        let found = findings(&fs, &["/var/log/*.log"]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with(
                "unreadable: cannot read `/var/log/a.log`: permission denied (and 1 more); give"
            ),
            "{found:?}"
        );
    }
}
