//! `filebeat.config.inputs` and `filebeat.config.modules`: files beside the configuration with further inputs, which
//! may be reloaded.

use skidder_config::{
    Group, Item, Key, LoadOptions, Part, Problems, Section, Settings, load_part, settings,
};
use skidder_os::{Fs, Timestamp};
use skidder_read::glob::Pattern;
use skidder_read::scan::{ScanSettings, scan};
use std::path::{Path, PathBuf};
use std::time::Duration;

mod one {
    use super::*;

    settings! {
        /// `inputs` and `modules`.
        pub(super) static CONFIG_FILES =
            Group::new("filebeat.config.files", "Files beside the configuration.").inline();

        pub(super) ENABLED: bool = Key::new("enabled")
            .default(true)
            .default_words("`true`, if the section is there")
            .about("whether the files are read");
        pub(super) PATH: String = Key::new("path").about(
            "a pattern, such as `${path.config}/inputs.d/*.yml`; relative to `path.config`. Links are followed. No \
             file need match; without `reload.enabled` there must be an input somewhere",
        );
        pub(super) RELOADS: bool =
            Key::new("reload.enabled").default(false).about("they are looked at again and again");
        pub(super) PERIOD: Duration = Key::new("reload.period")
            .default(Duration::from_secs(10))
            .at_least(Duration::from_millis(10))
            .about("how often; at least 10 ms");
    }
}

settings! {
    /// `filebeat.config`.
    static CONFIG = Group::new("filebeat.config", "Files with further inputs.")
        .unsupported(&[("prospectors.*", OLDER)]);

    INPUTS: Part = Key::part("inputs", &one::CONFIG_FILES).about("files with inputs");
    MODULES: Part = Key::part("modules", &one::CONFIG_FILES).about("files of modules");
}

mod at_filebeat {
    use super::*;

    settings! {
        /// Settings in `filebeat`.
        pub(crate) static AT_FILEBEAT = Group::new("filebeat.beside", "Files with further inputs.");

        pub(super) IN_CONFIG: Part = Key::part("config", &CONFIG)
            .about("[files with further inputs](#files-with-further-inputs-filebeatconfig)");
    }
}

pub(crate) use at_filebeat::AT_FILEBEAT;
use at_filebeat::IN_CONFIG;

/// What to do about settings of older versions.
pub(crate) const OLDER: &str =
    "it is of an older Filebeat: `skidder migrate --print --from FILE` writes the file anew";

/// Changes if the file does: its path, size, last change, device and inode.
pub(crate) type Stamp = (PathBuf, u64, Timestamp, u64, u64);

/// One of the two sections.
#[derive(Clone, Debug)]
pub(crate) struct ConfigFiles {
    pattern: Option<Pattern>,
    /// The section is there and not turned off.
    is_on: bool,
    /// How often to check them for changes; `None` for never.
    pub(crate) period: Option<Duration>,
}

/// Both of them.
#[derive(Clone, Debug)]
pub(crate) struct AllConfigFiles {
    pub(crate) inputs: ConfigFiles,
    pub(crate) modules: ConfigFiles,
}

impl AllConfigFiles {
    /// Reads `config` of the section `filebeat`.
    pub(crate) fn read(beat: &Section<'_>, config: &Path) -> Self {
        let section = beat.part(&IN_CONFIG);
        let all = Self {
            inputs: ConfigFiles::read(&section, &INPUTS, config),
            modules: ConfigFiles::read(&section, &MODULES, config),
        };
        section.finish();
        all
    }

    /// The same, of settings that are read and checked elsewhere.
    pub(crate) fn of(settings: &Settings) -> Self {
        let problems = Problems::new();
        let root = settings.root(&problems);
        let beat = root.section("filebeat");
        let all = Self::read(&beat, &settings.paths().config);
        beat.skip();
        root.skip();
        all
    }

    /// The path of the files of modules.
    pub(crate) fn modules_pattern(&self) -> Option<&str> {
        self.modules.pattern.as_ref().map(Pattern::as_str)
    }

    /// Whether there may be such files, now or later.
    pub(crate) fn is_any(&self) -> bool {
        self.inputs.is_on || self.modules.is_on
    }

    /// The shortest of these periods.
    pub(crate) fn period(&self) -> Option<Duration> {
        self.inputs.period.into_iter().chain(self.modules.period).min()
    }

    /// The current stamps of the files that are reloaded.
    pub(crate) fn stamps(&self, fs: &dyn Fs) -> Vec<Stamp> {
        let again =
            [&self.inputs, &self.modules].into_iter().filter(|files| files.period.is_some());
        again.flat_map(|files| files.list(fs)).collect()
    }
}

impl ConfigFiles {
    fn read(section: &Section<'_>, key: &Key<Part>, config: &Path) -> Self {
        let none = Self { pattern: None, is_on: false, period: None };
        let Some(own) = section.optional_part(key) else { return none };
        let enabled = own.get(&one::ENABLED).value();
        let parse =
            |text: String| Pattern::parse(&text, config, true).map_err(|error| error.to_string());
        let pattern = own.get(&one::PATH).try_map(parse).optional();
        if enabled && !own.has_key(&one::PATH) {
            let message = format!("`{}` says not where the files are", own.path());
            own.problem("path", message, "for example `path: ${path.config}/inputs.d/*.yml`");
        }
        let reloads = own.get(&one::RELOADS).value();
        let period = own.get(&one::PERIOD).value();
        own.finish();
        if !enabled {
            return none;
        }
        Self { pattern, is_on: true, period: reloads.then_some(period) }
    }

    /// The files there are, in the order of their paths. Links are followed, as a ConfigMap is made of them.
    fn list(&self, fs: &dyn Fs) -> Vec<Stamp> {
        let Some(pattern) = &self.pattern else { return Vec::new() };
        let settings = ScanSettings {
            patterns: vec![pattern.clone()],
            symlinks: true,
            ..ScanSettings::default()
        };
        let (found, problems) = scan(fs, &settings);
        for problem in problems {
            let path = problem.path.display();
            tracing::warn!(%path, error = %problem.error, "cannot list a directory of configuration files");
        }
        let stamp = |found: skidder_read::scan::Found| {
            let meta = found.metadata;
            (found.path, meta.size, meta.modified, meta.device, meta.inode)
        };
        let mut list: Vec<Stamp> = found.into_iter().map(stamp).collect();
        list.sort();
        list
    }

    fn load(&self, options: LoadOptions<'_>, main: &Settings) -> Result<Vec<Settings>, Problems> {
        let mut files = Vec::new();
        let wrong = Problems::new();
        for (path, ..) in self.list(options.fs) {
            match load_part(options, &path, main) {
                Ok(file) => files.push(file),
                Err(problems) => wrong.extend(problems.sorted()),
            }
        }
        if files.is_empty()
            && wrong.is_empty()
            && let Some(pattern) = &self.pattern
        {
            tracing::debug!(pattern = pattern.as_str(), "no configuration file matches");
        }
        if wrong.has_errors() { Err(wrong) } else { Ok(files) }
    }
}

/// The settings with the files that they name.
pub(crate) fn with_files(
    options: LoadOptions<'_>,
    settings: Settings,
) -> Result<Settings, Problems> {
    let all = AllConfigFiles::of(&settings);
    match (all.inputs.load(options, &settings), all.modules.load(options, &settings)) {
        (Ok(inputs), Ok(modules)) => Ok(settings.with_files(inputs, modules)),
        (inputs, modules) => {
            let wrong = Problems::new();
            for problems in [inputs.err(), modules.err()].into_iter().flatten() {
                wrong.extend(problems.sorted());
            }
            Err(wrong)
        }
    }
}

/// The inputs of the files beside the configuration.
pub(crate) fn items<'a>(
    files: &'a [std::sync::Arc<Settings>],
    problems: &'a Problems,
) -> Vec<Item<'a>> {
    let mut all = Vec::new();
    for file in files {
        let items = file.items(problems);
        if !file.is_list()
            && let Some(first) = items.first()
        {
            let hint = "begin each with `- `; there is no `filebeat.inputs:` in such a file";
            first.problem("the file is no list", hint);
            continue;
        }
        all.extend(items);
    }
    all
}
