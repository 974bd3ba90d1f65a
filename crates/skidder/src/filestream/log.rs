//! Reading the settings of the deprecated inputs `log` and `container`, which run as filestream does.
//!
//! Every option becomes the one of filestream that means the same. What differs is the identity of files,
//! which is `native` by default, and the keys in the registry, which all `log` inputs share.

use super::parsers::{self, kinds};
use super::{
    ABOVE_ZERO, BUFFER_SIZE_MAX, EXCLUDE_LINES, HARVESTER_LIMIT, IGNORE_OLDER, INCLUDE_LINES,
    InputContext, KEEP_NULL, LINES, PATHS, WHICH, identity, keeping, patterns, positive,
    read_paths, some,
};
use crate::input_settings::{ID, TYPE};
use skidder_config::{Any, Group, Key, Part, Problem, Section, Size, Value, settings};
use skidder_modules::MODULE_NAME;
use skidder_read::glob::Pattern;
use skidder_read::scan::ScanSettings;
use skidder_read::{CloseSettings, FileIdentity, FilestreamSettings, InputKind};
use std::time::Duration;

/// What to do about `scan.sort` and `scan.order`.
const ALL_AT_ONCE: &str =
    "all files get their turns at the same time, whatever their order; leave it out";

/// Why `combine_partial` and `cri` have no effect.
const ALWAYS_JOINED: &str =
    "records that were cut are joined, and both kinds of records are known, always";

settings! {
    /// What these inputs call otherwise than `filestream`, of lines.
    pub(super) static OF_LINES = Group::new("log.lines", "What is called otherwise than in `filestream`, of lines.");

    HARVESTER_BUFFER_SIZE: usize = Key::new("harvester_buffer_size")
        .default(FilestreamSettings::BUFFER_SIZE)
        .range(1, BUFFER_SIZE_MAX)
        .noun("a number of bytes")
        .about("`buffer_size`");
    pub(super) MAX_BYTES: Size = Key::new("max_bytes")
        .default(FilestreamSettings::MESSAGE_MAX_BYTES as u64)
        .range(1, FilestreamSettings::MESSAGE_MAX_BYTES_MAX as u64)
        .about("`message_max_bytes`");
    pub(super) JSON: Part = Key::part("json", &json::JSON).about(
        "a parser `ndjson` with these settings; its `target` is `json`, or the root with `json.keys_under_root`",
    );
    pub(super) MULTILINE: Part =
        Key::part("multiline", &kinds::MULTILINE).about("a parser `multiline`, behind `json`");
}

settings! {
    /// What the deprecated inputs call otherwise than `filestream`.
    pub(crate) static OWN = Group::new("log.own", "What `log` and `container` call otherwise than `filestream`.")
        .include(&[&OF_LINES])
        .unsupported(&[("scan.*", ALL_AT_ONCE), ("docker-json", "use `type: container`")])
        .deprecated(&[
            ("combine_partial", ALWAYS_JOINED),
            ("cri", ALWAYS_JOINED),
            ("seek_to_tail", "use `tail_files`"),
        ]);

    ALLOW_DEPRECATED_USE: bool = Key::new("allow_deprecated_use").default(false).about("no notice");
    RECURSIVE_GLOB: Any = Key::new("recursive_glob").about("of Filebeat 6: no effect");
    RECURSIVE_GLOB_ENABLED: bool = Key::new("recursive_glob.enabled")
        .default(true)
        .about("`prospector.scanner.recursive_glob`");
    EXCLUDE_FILES: Vec<String> = Key::<Vec<String>>::new("exclude_files")
        .default(&[])
        .about("`prospector.scanner.exclude_files`");
    SYMLINKS: bool = Key::new("symlinks").default(false).about("`prospector.scanner.symlinks`");
    SCAN_FREQUENCY: Duration = Key::new("scan_frequency")
        .default(FilestreamSettings::CHECK_INTERVAL)
        .noun(ABOVE_ZERO)
        .about("`prospector.scanner.check_interval`");
    CLOSE_INACTIVE: Duration = Key::new("close_inactive")
        .default(Duration::from_mins(5))
        .about("`close.on_state_change.inactive`");
    CLOSE_REMOVED: bool =
        Key::new("close_removed").default(true).about("`close.on_state_change.removed`");
    CLOSE_RENAMED: bool =
        Key::new("close_renamed").default(false).about("`close.on_state_change.renamed`");
    CLOSE_EOF: bool = Key::new("close_eof").default(false).about("`close.reader.on_eof`");
    CLOSE_TIMEOUT: Duration =
        Key::new("close_timeout").default(Duration::ZERO).about("`close.reader.after_interval`");
    BACKOFF: Duration = Key::new("backoff")
        .default(Duration::from_secs(1))
        .noun(ABOVE_ZERO)
        .about("`backoff.init`");
    MAX_BACKOFF: Duration = Key::new("max_backoff")
        .default(Duration::from_secs(10))
        .noun(ABOVE_ZERO)
        .about("`backoff.max`");
    BACKOFF_FACTOR: u32 = Key::new("backoff_factor")
        .default(2)
        .range(1, 1000)
        .about("how many times as long each wait is as the one before; 1 to 1000");
    TAIL_FILES: bool = Key::new("tail_files").default(false).about(
        "files that are there at the start and have no state are read from their end. *Differs*: files that appear \
         later are read from their start",
    );
}

mod json {
    use super::kinds;
    use skidder_config::{Group, Key, settings};

    settings! {
        /// `json`.
        pub(super) static JSON =
            Group::new("log.json", "Lines that are JSON objects.").include(&[&kinds::JSON]);

        pub(in crate::filestream) KEYS_UNDER_ROOT: bool =
            Key::new("keys_under_root").default(false).about("the keys go to the root");
    }
}

mod containers {
    use super::kinds::STREAMS;
    use skidder_config::{Group, Key, OneOf, settings};
    use skidder_parse::chain::Stream;

    settings! {
        /// `containers`.
        pub(super) static CONTAINERS = Group::new("log.containers", "Which containers.");

        pub(super) PATH: String = Key::new("path")
            .default("/var/lib/docker/containers")
            .about("the folder of the folders of containers");
        pub(super) IDS: Vec<String> =
            Key::new("ids").required().about("ids of containers, `*` for all");
        pub(in crate::filestream) CONTAINERS_STREAM: OneOf<Option<Stream>> =
            Key::one_of("stream", &STREAMS).default("all").about("`stream`");
    }
}

pub(super) use containers::CONTAINERS_STREAM;
pub(super) use json::KEYS_UNDER_ROOT;

settings! {
    /// What `docker` of Filebeat 6 has, which is `container`.
    static DOCKER = Group::new("container.docker", "Which containers, as in Filebeat 6.");

    pub(super) CONTAINERS: Part = Key::part("containers", &containers::CONTAINERS)
        .about("`ids`, `path` and `stream`, for `paths` and `stream`");
}

/// Settings of a `log` input.
pub(crate) static LOG: Group = Group::new("input.log", "Deprecated: runs as `filestream`.")
    .include(&[&OWN, &WHICH, &LINES, &identity::KNOWN_BY, &keeping::FORGETTING]);

/// Settings of a `container` input.
pub(crate) static CONTAINER: Group =
    Group::new("input.container", "Deprecated: runs as `filestream`.").include(&[
        &LOG,
        &DOCKER,
        &kinds::CONTAINER,
    ]);

/// Reads one input; the section reports mistakes.
pub(crate) fn read(
    section: &Section<'_>,
    context: &InputContext<'_>,
    kind: InputKind,
) -> FilestreamSettings {
    section.declared_by(if kind == InputKind::Container { &CONTAINER } else { &LOG });
    warn_of_deprecated(section, kind);
    let id = section.get(&ID).value();
    let mut settings = FilestreamSettings::new(&id, read_scan(section, context, kind));
    settings.kind = kind;
    settings.shares_keys = true;
    settings.check_interval = positive(section, &SCAN_FREQUENCY);
    (settings.identity, _) = identity::read_identity(section, context, FileIdentity::Native);
    settings.fingerprint.enabled = settings.identity.is_content();
    read_lines(section, &mut settings);
    settings.harvester_limit =
        Some(section.get(&HARVESTER_LIMIT).value()).filter(|limit| *limit > 0);
    settings.ignore_older = some(section.get(&IGNORE_OLDER).value());
    settings.start_at_end = section.get(&TAIL_FILES).value();
    settings.clean_removed = section.get(&keeping::CLEAN_REMOVED).value();
    (settings.clean_inactive, _) = keeping::read_clean_inactive(
        section,
        false,
        SCAN_FREQUENCY.name(),
        settings.ignore_older,
        settings.check_interval,
    );
    settings.close = read_close(section);
    parsers::read_deprecated(section, &mut settings, kind);
    settings
}

/// The line settings of these inputs and `stdin`, except parsers and encoding.
pub(super) fn read_lines(section: &Section<'_>, settings: &mut FilestreamSettings) {
    settings.buffer_size = section.get(&HARVESTER_BUFFER_SIZE).value();
    settings.message_max_bytes = section.get(&MAX_BYTES).value() as usize;
    settings.include_lines = patterns(section, &INCLUDE_LINES);
    settings.exclude_lines = patterns(section, &EXCLUDE_LINES);
    settings.keep_null = section.get(&KEEP_NULL).value();
}

fn read_scan(section: &Section<'_>, context: &InputContext<'_>, kind: InputKind) -> ScanSettings {
    let recursive = match section.get(&RECURSIVE_GLOB).optional() {
        // Of Filebeat 6; later ones read over it.
        Some(Value::String(_) | Value::Bool(_)) => {
            let key = RECURSIVE_GLOB.name();
            let message = format!("`{}` has no effect", section.path_of(key));
            section.warning(key, message, "it is `recursive_glob.enabled: false` today");
            true
        }
        _ => section.get(&RECURSIVE_GLOB_ENABLED).value(),
    };
    let containers = match kind {
        InputKind::Container => section.optional_part(&CONTAINERS),
        _ => None,
    };
    let containers = match containers {
        Some(containers) if section.has_key(&PATHS) => {
            let message = format!("`{}` is beside `paths`", containers.path());
            section.problem(CONTAINERS.name(), message, "leave one of the two out");
            containers.skip();
            None
        }
        containers => containers,
    };
    ScanSettings {
        include_files: Vec::new(),
        exclude_files: patterns(section, &EXCLUDE_FILES),
        left_out: std::sync::Arc::default(),
        // The logs of containers are often links, and Filebeat follows them whatever the setting says.
        symlinks: section.get(&SYMLINKS).value() || kind == InputKind::Container,
        patterns: match containers {
            Some(containers) => read_containers(&containers, context),
            None => read_paths(section, context.directory, recursive),
        },
    }
}

/// The files of a `docker` input: those of containers with these ids, `*` for all.
fn read_containers(section: &Section<'_>, context: &InputContext<'_>) -> Vec<Pattern> {
    let folder = section.get(&containers::PATH).value();
    let ids = section.get(&containers::IDS).at_least_one("id of a container, or `*`").required();
    let parse = |id: String| {
        let path = format!("{}/{id}/*.log", folder.trim_end_matches('/'));
        let parsed = Pattern::parse(&path, context.directory, false);
        let report =
            |error| section.problem(containers::IDS.name(), format!("`{path}`: {error}"), "");
        parsed.map_err(report).ok()
    };
    let patterns = ids.into_iter().filter_map(parse).collect();
    // Read with the records.
    section.accept(CONTAINERS_STREAM.name());
    patterns
}

fn read_close(section: &Section<'_>) -> CloseSettings {
    let init = positive(section, &BACKOFF);
    let max = positive(section, &MAX_BACKOFF);
    section.warn_of_longer((BACKOFF.name(), init), (MAX_BACKOFF.name(), max));
    CloseSettings {
        inactive: some(section.get(&CLOSE_INACTIVE).value()),
        removed: section.get(&CLOSE_REMOVED).value(),
        renamed: section.get(&CLOSE_RENAMED).value(),
        on_eof: section.get(&CLOSE_EOF).value(),
        after_interval: some(section.get(&CLOSE_TIMEOUT).value()),
        backoff_init: init,
        backoff_max: max.max(init),
        backoff_factor: section.get(&BACKOFF_FACTOR).value(),
        ..CloseSettings::default()
    }
}

/// Warns that the deprecated types of inputs run as `filestream` does, once for all of them.
fn warn_of_deprecated(section: &Section<'_>, kind: InputKind) {
    // As it is written: a `docker` input is one of the kind `container`.
    let written = section.get(&TYPE).optional().unwrap_or_else(|| kind.name().to_owned());
    if section.get(&ALLOW_DEPRECATED_USE).value() || section.has(MODULE_NAME.name()) {
        return;
    }
    let message = format!(
        "inputs of type `{written}` run as `filestream` does; Filebeat 9 refuses them without \
         `allow_deprecated_use: true`"
    );
    let hint = "`skidder migrate` writes the modern form, which takes their files over";
    section.problems().push_once(Problem::warning(section.position().cloned(), message).hint(hint));
}
