//! The settings `logging.*`, and what the flags of the command line make of them.

use crate::declared::{
    self, FileKeys, LOGGING, event_data, metrics as in_metrics, of_events, of_log, stderr,
};
use crate::files::FilesConfig;
use crate::line::FIXED;
use crate::selectors::Selectors;
use serde_json::{Map, Value as Json};
use skidder_config::Section;
use skidder_os::DATED_EXTENSION;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;
use tracing::Level;

/// Where the program runs (`--environment`), which sets the default target of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Environment {
    /// Not known: files.
    #[default]
    Default,
    /// A service of systemd: stderr, which is the journal.
    Systemd,
    /// A container: stderr, which its runtime keeps.
    Container,
}

impl FromStr for Environment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.to_lowercase().as_str() {
            "default" => Ok(Self::Default),
            "systemd" => Ok(Self::Systemd),
            "container" => Ok(Self::Container),
            "macos_service" | "windows_service" => {
                Err("skidder runs on Linux: `default`, `systemd` or `container`".to_owned())
            }
            _ => Err("expected `default`, `systemd` or `container`".to_owned()),
        }
    }
}

impl Environment {
    fn is_stderr(self) -> bool {
        matches!(self, Self::Systemd | Self::Container)
    }
}

/// The options of the command line for the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `-e`.
    pub stderr: bool,
    /// `-v`.
    pub verbose: bool,
    /// `-d`: selectors with commas between them.
    pub debug: Option<String>,
    /// `--environment`.
    pub environment: Environment,
}

/// `logging.format`: what a line on stderr looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Text on a terminal, else JSON.
    #[default]
    Auto,
    /// ECS JSON.
    Json,
    /// Text for a terminal: time, level, message and the fields that matter.
    Text,
}

/// The settings as they are written.
#[derive(Clone, Debug, PartialEq)]
pub struct LogSettings {
    level: Level,
    selectors: Vec<String>,
    format: Format,
    to_files: Option<bool>,
    to_stderr: Option<bool>,
    to_syslog: bool,
    files: FilesConfig,
    event_data: Option<FilesConfig>,
    with_fields: Map<String, Json>,
    /// `logging.metrics`.
    pub metrics: MetricsConfig,
}

/// `logging.metrics`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricsConfig {
    /// `enabled`.
    pub enabled: bool,
    /// `period` of the line.
    pub period: Duration,
    /// `stats` is one of the `namespaces`: the numbers are in the line.
    pub stats: bool,
}

/// Where lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// There is no log.
    Nowhere,
    /// Standard error.
    Stderr,
    /// The syslog of this machine.
    Syslog,
    /// Files.
    Files(FilesConfig),
}

/// The validated configuration of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogConfig {
    /// Lines of this level and above.
    pub level: Level,
    /// What lines on stderr look like; in files they are JSON.
    pub format: Format,
    /// Whose lines for debugging.
    pub selectors: Selectors,
    /// Where lines go.
    pub target: Target,
    /// Where the content of events goes that an output refused.
    pub event_data: Option<FilesConfig>,
    /// Fields of every line.
    pub with_fields: Map<String, Json>,
}

impl LogSettings {
    /// Default of `files.name`.
    pub const NAME: &str = "skidder";
    /// Default of `event_data.files.name`.
    pub const EVENT_DATA_NAME: &str = "skidder-events-data";
    /// Default of `files.rotateeverybytes`.
    pub const BYTES_MAX: u64 = 10 << 20;
    /// Default of `event_data.files.rotateeverybytes`.
    pub const EVENT_DATA_BYTES_MAX: u64 = 5 << 20;
    /// Default of `files.keepfiles`.
    pub const KEPT: usize = 7;
    /// Default of `event_data.files.keepfiles`.
    pub const EVENT_DATA_KEPT: usize = 2;
    /// Default of `permissions`.
    pub const PERMISSIONS: u32 = 0o600;
    /// Default of `metrics.period`.
    pub const PERIOD: Duration = Duration::from_secs(30);

    /// Reads `logging`; `logs` is `path.logs`, as an absolute path. Mistakes are added to the
    /// section's problems.
    pub fn read(logging: Section<'_>, logs: &Path) -> Self {
        logging.declared_by(&LOGGING);
        let settings = Self {
            level: logging.get(&declared::LEVEL).value(),
            selectors: logging.get(&declared::SELECTORS).value(),
            format: logging.get(&declared::FORMAT).value(),
            to_files: logging.get(&declared::TO_FILES).optional(),
            to_stderr: logging.get(&declared::TO_STDERR).optional(),
            to_syslog: logging.get(&declared::TO_SYSLOG).value(),
            files: read_files(logging.part(&declared::FILES), logs),
            event_data: read_event_data(&logging, logs),
            with_fields: read_fields(&logging),
            metrics: read_metrics(logging.part(&declared::METRICS)),
        };
        if logging.get(&declared::TO_EVENTLOG).value() {
            let message = "the event log is a part of Windows; skidder runs on Linux";
            logging.problem("to_eventlog", message, "use `to_files`, `to_stderr` or `to_syslog`");
        }
        logging.finish();
        settings
    }

    /// The log with the flags of the command line. If several places are set, lines go to one of
    /// them, as in Filebeat: between files and stderr to the one that the environment would not
    /// choose, else to stderr before syslog before files.
    pub fn with_flags(&self, flags: &Flags) -> LogConfig {
        let by_default = flags.environment.is_stderr();
        let mut to_stderr = flags.stderr || self.to_stderr.unwrap_or(by_default);
        let to_files = self.to_files.unwrap_or(!by_default);
        if to_files && to_stderr {
            to_stderr = !by_default;
        }
        let target = if to_stderr {
            Target::Stderr
        } else if self.to_syslog {
            Target::Syslog
        } else if to_files {
            Target::Files(self.files.clone())
        } else if by_default {
            Target::Stderr
        } else {
            Target::Nowhere
        };
        let debug = flags.debug.as_deref();
        let mut level = self.level;
        if flags.verbose {
            level = level.max(Level::INFO);
        }
        if debug.is_some() {
            level = Level::DEBUG;
        }
        let named = self.selectors.iter().map(String::as_str);
        LogConfig {
            level,
            format: self.format,
            selectors: Selectors::new(named.chain(debug.unwrap_or_default().split(','))),
            target,
            event_data: self.event_data.clone(),
            with_fields: self.with_fields.clone(),
        }
    }

    /// Regular expressions for the paths of our own files, also of those that another program has
    /// compressed or renamed.
    pub fn own_files(&self) -> Vec<String> {
        let mut own = Vec::new();
        for files in std::iter::once(&self.files).chain(&self.event_data) {
            let mut places = vec![files.path.clone()];
            places.extend(without_links(&files.path));
            places.dedup();
            let extension = escape(DATED_EXTENSION);
            for place in places {
                let start = escape(&place.join(&files.name).to_string_lossy());
                own.push(format!(r"^{start}-[0-9]{{8}}(-[0-9]+)?{extension}([.~-].*)?$"));
            }
        }
        own
    }

    /// Names that our own log files can have, to check whether a glob would match them.
    pub fn examples(&self) -> Vec<PathBuf> {
        let all = std::iter::once(&self.files).chain(&self.event_data);
        all.map(|files| files.path.join(format!("{}-20260131{DATED_EXTENSION}", files.name)))
            .collect()
    }
}

/// A path without links, as far as it is there.
fn without_links(path: &Path) -> Option<PathBuf> {
    path.ancestors().find_map(|above| {
        let real = std::fs::canonicalize(above).ok()?;
        Some(real.join(path.strip_prefix(above).ok()?))
    })
}

/// A text as a regular expression that only it matches.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii_punctuation() && !"/_-".contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

fn read_files(files: Section<'_>, logs: &Path) -> FilesConfig {
    let config = FilesConfig {
        redirect_stderr: files.get(&stderr::REDIRECT_STDERR).value(),
        ..read_rotation(&files, logs, &of_log::KEYS)
    };
    files.finish();
    config
}

/// Only if the section is there: dead letters have the same events, and only their owner can read them.
fn read_event_data(logging: &Section<'_>, logs: &Path) -> Option<FilesConfig> {
    let section = logging.optional_part(&declared::EVENT_DATA)?;
    let is_on = section.get(&event_data::TO_FILES).value();
    let files = section.part(&event_data::FILES);
    let config = read_rotation(&files, logs, &of_events::KEYS);
    files.finish();
    section.finish();
    is_on.then_some(config)
}

fn read_rotation(files: &Section<'_>, logs: &Path, keys: &FileKeys) -> FilesConfig {
    let is_name = |name: &String| {
        if name.contains('/') || name.is_empty() {
            return Err("expected a name without `/`; the directory is `path`".to_owned());
        }
        Ok(())
    };
    let is_interval = |interval: &Duration| {
        if interval.is_zero() || *interval >= Duration::from_secs(1) {
            return Ok(());
        }
        Err("expected `0` for none, or at least `1s`".to_owned())
    };
    FilesConfig {
        path: logs.join(files.get(keys.path).or("")),
        name: files.get(keys.name).check(is_name).value(),
        bytes_max: files.get(keys.bytes_max).value(),
        kept: files.get(keys.kept).value(),
        permissions: files.get(keys.permissions).value(),
        interval: files.get(keys.interval).check(is_interval).value(),
        rotate_on_startup: files.get(keys.rotate_on_startup).value(),
        redirect_stderr: false,
    }
}

fn read_fields(logging: &Section<'_>) -> Map<String, Json> {
    logging.accept_key(&declared::WITH_FIELDS);
    let section = logging.section(declared::WITH_FIELDS.name());
    let mut fields = Map::new();
    for (name, item) in section.leaves() {
        if FIXED.contains(&name.as_str()) {
            let message = format!("`{}`: every line has a `{name}` of its own", item.path());
            item.problem(message, "choose another name");
        }
        fields.insert(name, Json::from(&item.value()));
    }
    section.finish();
    fields
}

fn read_metrics(metrics: Section<'_>) -> MetricsConfig {
    let namespaces = metrics.get(&in_metrics::NAMESPACES).value();
    for name in namespaces.iter().filter(|name| *name != "stats") {
        let message = format!("`{}`: there is no `{name}`", metrics.path_of("namespaces"));
        metrics.problem(
            "namespaces",
            message,
            "`stats` is all that skidder logs; the HTTP endpoint has the others",
        );
    }
    let config = MetricsConfig {
        enabled: metrics.get(&in_metrics::ENABLED).value(),
        period: metrics.get(&in_metrics::PERIOD).value(),
        stats: !namespaces.is_empty(),
    };
    metrics.finish();
    config
}

#[cfg(test)]
mod tests;
