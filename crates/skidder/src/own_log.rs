//! Our own log among the files of an input: left out, so that a line of the log is not the reason for another one.

use regex::bytes::Regex;
use skidder_config::Section;
use skidder_log::{LogSettings, stderr_file};
use skidder_read::FilestreamSettings;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;

/// Which files are our own log.
#[derive(Clone)]
pub(crate) struct OwnLog {
    files: Arc<[Regex]>,
    /// Files as they may be called.
    examples: Vec<PathBuf>,
}

impl OwnLog {
    /// The files of the log, whether it goes there or not, and the file that stderr was redirected to.
    pub(crate) fn of(log: &LogSettings) -> Self {
        let mut patterns = log.own_files();
        let mut examples = log.examples();
        if let Some(path) = stderr_file() {
            patterns.push(format!("^{}$", regex::escape(&path.to_string_lossy())));
            examples.push(path);
        }
        // Names that no expression can be made of are no names that a log can have.
        let files = patterns.iter().filter_map(|pattern| Regex::new(pattern).ok()).collect();
        Self { files, examples }
    }

    /// Excludes these files from an input; warns if its paths match them.
    pub(crate) fn leave_out(&self, section: &Section<'_>, settings: &mut FilestreamSettings) {
        let scan = &mut settings.scan;
        for path in &self.examples {
            let matches = |regex: &Regex| regex.is_match(path.as_os_str().as_bytes());
            let found = scan.patterns.iter().any(|pattern| pattern.covers(path))
                && !scan.exclude_files.iter().any(matches)
                && (scan.include_files.is_empty() || scan.include_files.iter().any(matches));
            if found {
                let message = format!(
                    "`{}` finds the log of skidder itself, `{}`, which is left out",
                    section.path_of("paths"),
                    path.display()
                );
                let advice = "to ship it, let it go to syslog or the journal, or let another skidder read it";
                section.warning("paths", message, advice);
            }
        }
        scan.left_out = Arc::clone(&self.files);
    }
}
