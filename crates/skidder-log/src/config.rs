//! The settings `logging.*`, and what the flags of the command line make of them.

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

/// Where the program runs (`--environment`): says where the log goes by default.
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

/// What the command line says of the log.
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
    /// For a person: time, level, message and the fields that matter.
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

/// The log as it is to be.
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
        let levels = [
            ("debug", Level::DEBUG),
            ("info", Level::INFO),
            ("warning", Level::WARN),
            ("warn", Level::WARN),
            ("error", Level::ERROR),
            ("critical", Level::ERROR),
        ];
        let settings = Self {
            level: logging.one_of("level", &levels).or(Level::INFO),
            selectors: logging.strings("selectors").or(Vec::new()),
            format: logging
                .one_of(
                    "format",
                    &[("auto", Format::Auto), ("json", Format::Json), ("text", Format::Text)],
                )
                .or(Format::Auto),
            to_files: logging.bool("to_files").optional(),
            to_stderr: logging.bool("to_stderr").optional(),
            to_syslog: logging.bool("to_syslog").or(false),
            files: read_files(logging.section("files"), logs),
            event_data: read_event_data(&logging, logs),
            with_fields: read_fields(&logging),
            metrics: read_metrics(logging.section("metrics")),
        };
        if logging.bool("to_eventlog").or(false) {
            let message = "the event log is a part of Windows; skidder runs on Linux";
            logging.problem("to_eventlog", message, "use `to_files`, `to_stderr` or `to_syslog`");
        }
        let advice = "files of the log are always JSON with the names of ECS; for stderr see `logging.format`";
        logging.deprecated(&["json", "ecs"], advice);
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
        redirect_stderr: files.bool("redirect_stderr").or(false),
        ..read_rotation(
            &files,
            logs,
            FilesConfig {
                path: PathBuf::new(),
                name: LogSettings::NAME.to_owned(),
                bytes_max: LogSettings::BYTES_MAX,
                kept: LogSettings::KEPT,
                permissions: LogSettings::PERMISSIONS,
                interval: Duration::ZERO,
                rotate_on_startup: true,
                redirect_stderr: false,
            },
        )
    };
    files.finish();
    config
}

/// Only if the section is there: dead letters have the same events, and only their owner can read them.
fn read_event_data(logging: &Section<'_>, logs: &Path) -> Option<FilesConfig> {
    let event_data = logging.optional_section("event_data")?;
    let is_on = event_data.bool("to_files").or(true);
    event_data.unsupported(
        &["to_stderr", "to_syslog", "to_eventlog", "level", "selectors", "metrics.*"],
        "the content of events goes to files only, with the level of `logging`",
    );
    let files = event_data.section("files");
    files.unsupported(&["redirect_stderr"], "use `logging.files.redirect_stderr`");
    let config = read_rotation(
        &files,
        logs,
        FilesConfig {
            path: PathBuf::new(),
            name: LogSettings::EVENT_DATA_NAME.to_owned(),
            bytes_max: LogSettings::EVENT_DATA_BYTES_MAX,
            kept: LogSettings::EVENT_DATA_KEPT,
            permissions: LogSettings::PERMISSIONS,
            interval: Duration::ZERO,
            rotate_on_startup: false,
            redirect_stderr: false,
        },
    );
    files.finish();
    event_data.finish();
    is_on.then_some(config)
}

fn read_rotation(files: &Section<'_>, logs: &Path, default: FilesConfig) -> FilesConfig {
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
        path: logs.join(files.path_buf("path").or("")),
        name: files.string("name").check(is_name).or_else(|| default.name),
        bytes_max: files.size("rotateeverybytes").range(1..).or(default.bytes_max),
        kept: files.usize("keepfiles").named("a number of files").range(0..=1024).or(default.kept),
        permissions: files.permissions("permissions").or(default.permissions),
        interval: files.duration("interval").check(is_interval).or(default.interval),
        rotate_on_startup: files.bool("rotateonstartup").or(default.rotate_on_startup),
        redirect_stderr: default.redirect_stderr,
    }
}

fn read_fields(logging: &Section<'_>) -> Map<String, Json> {
    let section = logging.section("with_fields");
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
    let all = vec!["stats".to_owned()];
    let namespaces = metrics.strings("namespaces").or_else(|| all);
    for name in namespaces.iter().filter(|name| *name != "stats") {
        let message = format!("`{}`: there is no `{name}`", metrics.path_of("namespaces"));
        metrics.problem(
            "namespaces",
            message,
            "`stats` is all that skidder logs; the HTTP endpoint has the others",
        );
    }
    let config = MetricsConfig {
        enabled: metrics.bool("enabled").or(true),
        period: metrics
            .duration("period")
            .range(Duration::from_millis(100)..)
            .or(LogSettings::PERIOD),
        stats: !namespaces.is_empty(),
    };
    metrics.finish();
    config
}

#[cfg(test)]
mod tests;
