//! The settings of `logging`.

use crate::config::{Format, LogSettings};
use skidder_config::{Any, Group, Key, OneOf, Part, Permissions, Size, settings};
use std::path::PathBuf;
use std::time::Duration;
use tracing::Level;

const FILES_ONLY: &str = "the content of events goes to files only, with the level of `logging`";
const ALWAYS_JSON: &str =
    "files of the log are always JSON with the names of ECS; for stderr see `logging.format`";

/// The settings of files that are rotated.
pub(crate) struct FileKeys {
    pub(crate) path: &'static Key<PathBuf>,
    pub(crate) name: &'static Key<String>,
    pub(crate) bytes_max: &'static Key<Size>,
    pub(crate) kept: &'static Key<usize>,
    pub(crate) permissions: &'static Key<Permissions>,
    pub(crate) interval: &'static Key<Duration>,
    pub(crate) rotate_on_startup: &'static Key<bool>,
}

/// Declares files that are rotated, in a module of their own: two groups have the same settings with other defaults.
macro_rules! files {
    ($module:ident, $about:literal, $group:expr, $name:expr, $differs:literal, $bytes:expr, $kept:expr, $at_start:expr) => {
        pub(crate) mod $module {
            use super::*;

            settings! {
                #[doc = $about]
                pub(crate) static FILES = $group.inline();

                PATH: PathBuf = Key::new("path")
                    .default_words("`path.logs`")
                    .about("the directory; relative to `path.logs`. Made if it is missing");
                NAME: String = Key::new("name").default($name).differs($differs).about(
                    "files are called `NAME-YYYYMMDD.ndjson`, then `NAME-YYYYMMDD-1.ndjson` … The date is the local \
                     one of their beginning; the newest is written to, none is renamed",
                );
                BYTES_MAX: Size = Key::new("rotateeverybytes")
                    .default($bytes)
                    .at_least(1)
                    .about("when a file would be larger, another is begun");
                KEPT: usize = Key::new("keepfiles")
                    .default($kept)
                    .range(0, 1024)
                    .noun("a number of files")
                    .about("files that are kept besides; at most 1024");
                PERMISSIONS: Permissions = Key::new("permissions").default(LogSettings::PERMISSIONS).about(
                    "of new files, whatever the umask; the directory is `0700`, and open to group and others if the \
                     files are",
                );
                INTERVAL: Duration = Key::new("interval").default(Duration::ZERO).about(
                    "another file is begun by the clock too: `1s`, `1m`, `1h`, `24h`, `168h`, `720h`, `8760h` are the \
                     second to the year of the calendar, all others are counted from 1970. At least `1s`",
                );
                ROTATE_ON_STARTUP: bool =
                    Key::new("rotateonstartup").default($at_start).about("each start begins a file");
            }

            pub(crate) const KEYS: FileKeys = FileKeys {
                path: &PATH,
                name: &NAME,
                bytes_max: &BYTES_MAX,
                kept: &KEPT,
                permissions: &PERMISSIONS,
                interval: &INTERVAL,
                rotate_on_startup: &ROTATE_ON_STARTUP,
            };
        }
    };
}

files!(
    of_log,
    "`logging.files`.",
    Group::new("logging.files", "The files of the log.").include(&[&stderr::OF_STDERR]),
    LogSettings::NAME,
    "Filebeat: `filebeat`",
    LogSettings::BYTES_MAX,
    LogSettings::KEPT,
    true
);
files!(
    of_events,
    "`logging.event_data.files`.",
    Group::new("logging.event_data.files", "The files with events that an output refused.")
        .unsupported(&[("redirect_stderr", "use `logging.files.redirect_stderr`")]),
    LogSettings::EVENT_DATA_NAME,
    "Filebeat: `filebeat-events-data`",
    LogSettings::EVENT_DATA_BYTES_MAX,
    LogSettings::EVENT_DATA_KEPT,
    false
);

pub(crate) mod stderr {
    use super::*;

    settings! {
        /// What only the files of the log have.
        pub(crate) static OF_STDERR = Group::new("logging.files.stderr", "Standard error in the log.");

        pub(crate) REDIRECT_STDERR: bool = Key::new("redirect_stderr")
            .default(false)
            .about("what else the process says on stderr goes to the file too");
    }
}

pub(crate) mod event_data {
    use super::*;

    settings! {
        /// `logging.event_data`.
        pub(crate) static EVENT_DATA = Group::new("logging.event_data", "Events that an output refused, in files.")
            .inline()
            .unsupported(&[
                ("to_stderr", FILES_ONLY),
                ("to_syslog", FILES_ONLY),
                ("to_eventlog", FILES_ONLY),
                ("level", FILES_ONLY),
                ("selectors", FILES_ONLY),
                ("metrics.*", FILES_ONLY),
            ]);

        pub(crate) TO_FILES: bool =
            Key::new("to_files").default(true).about("`false`: as though the section were not there");
        pub(crate) FILES: Part = Key::part("files", &of_events::FILES).about("the files");
    }
}

pub(crate) mod metrics {
    use super::*;

    settings! {
        /// `logging.metrics`.
        pub(crate) static METRICS = Group::new("logging.metrics", "A line with metrics.").inline();

        pub(crate) ENABLED: bool =
            Key::new("enabled").default(true).about("the periodic line with metrics, and the ledger");
        pub(crate) PERIOD: Duration = Key::new("period")
            .default(LogSettings::PERIOD)
            .at_least(Duration::from_millis(100))
            .about("its period, 100 ms at least");
        pub(crate) NAMESPACES: Vec<String> = Key::<Vec<String>>::new("namespaces")
            .default(&["stats"])
            .about("`[]`: only the ledger");
    }
}

settings! {
    /// `logging`.
    pub static LOGGING = Group::new("logging", "The log of the program itself.")
        .deprecated(&[("json", ALWAYS_JSON), ("ecs", ALWAYS_JSON)]);

    pub(crate) LEVEL: OneOf<Level> = Key::one_of(
        "level",
        &[
            ("debug", Level::DEBUG),
            ("info", Level::INFO),
            ("warning", Level::WARN),
            ("warn", Level::WARN),
            ("error", Level::ERROR),
            ("critical", Level::ERROR),
        ],
    )
    .default("info")
    .about(
        "`debug`, `info`, `warning`, `error` (`critical` is the same); `-v` turns at least `info` on, `-d` `debug`",
    );
    pub(crate) SELECTORS: Vec<String> =
        Key::<Vec<String>>::new("selectors").default(&[]).default_words("`[]`, which is `*`").about(
            "of which parts lines for debugging are shown; `-d a,b` adds some. A part is a `log.logger`, the beginning \
             of one (`skidder_read.catalog`), any word between its dots (`elasticsearch`), or a name of Filebeat's: \
             `harvester`, `input`, `publisher`, `registrar`, `processors`, `kafka` …",
        );
    pub(crate) FORMAT: OneOf<Format> = Key::one_of(
        "format",
        &[("auto", Format::Auto), ("json", Format::Json), ("text", Format::Text)],
    )
    .default("auto")
    .ours()
    .about(
        "what lines on stderr look like: `text` (time, level, message, the fields that matter; coloured on a terminal \
         unless `NO_COLOR` is set), `json`, or `auto`: text on a terminal, else JSON. Files are always JSON",
    );
    pub(crate) TO_FILES: bool = Key::new("to_files")
        .default_words("`true`; `false` with `--environment systemd` or `container`")
        .about("to files");
    pub(crate) TO_STDERR: bool = Key::new("to_stderr").default_words("`false`; `true` with those").about(
        "to stderr. If both are on, the one counts that is not the default of the environment",
    );
    pub(crate) TO_SYSLOG: bool = Key::new("to_syslog").default(false).about(
        "to the syslog of the machine (`/dev/log`), facility `local0`, in a short form; before files, behind stderr",
    );
    pub(crate) TO_EVENTLOG: bool =
        Key::new("to_eventlog").default(false).about("refused: the event log is a part of Windows");
    pub(crate) FILES: Part = Key::part("files", &of_log::FILES).about("the files");
    pub(crate) EVENT_DATA: Part = Key::part("event_data", &event_data::EVENT_DATA).about("refused events in files");
    pub(crate) WITH_FIELDS: Any = Key::new("with_fields").map()
        .default_words("`{}`")
        .about("fields of every line, with dotted names; a line's own win");
    pub(crate) METRICS: Part = Key::part("metrics", &metrics::METRICS).about("a line with metrics");
}
