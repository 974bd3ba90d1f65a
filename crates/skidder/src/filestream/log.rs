//! Reading the settings of the deprecated inputs `log` and `container`, which run as filestream does.
//!
//! Every option becomes the one of filestream that means the same. What differs is the identity of files,
//! which is `native` if nothing is said, and the keys in the registry, which all `log` inputs share.

use super::{Surroundings, identity, keeping, parsers, patterns, positive, read_paths, some};
use skidder_config::{Problem, Section, Value};
use skidder_read::glob::Pattern;
use skidder_read::scan::ScanSettings;
use skidder_read::{CloseSettings, FileIdentity, FilestreamSettings, InputKind};
use std::time::Duration;

/// Default of `backoff`.
const BACKOFF: Duration = Duration::from_secs(1);

/// Default of `max_backoff`.
const BACKOFF_MAX: Duration = Duration::from_secs(10);

/// Reads one input; what is wrong is told to the section.
pub(crate) fn read(
    section: &Section<'_>,
    outside: &Surroundings<'_>,
    kind: InputKind,
) -> FilestreamSettings {
    tell_deprecated(section, kind);
    let id = section.string("id").or("");
    let mut settings = FilestreamSettings::new(&id, read_scan(section, outside));
    settings.kind = kind;
    settings.shares_keys = true;
    settings.check_interval =
        positive(section, "scan_frequency").unwrap_or(FilestreamSettings::CHECK_INTERVAL);
    (settings.identity, _) = identity::read_identity(section, outside, FileIdentity::Native);
    settings.fingerprint.enabled = settings.identity.is_content();
    read_lines(section, &mut settings);
    settings.harvester_limit =
        Some(section.usize("harvester_limit").or(0_usize)).filter(|limit| *limit > 0);
    settings.ignore_older = some(section.duration("ignore_older").or(Duration::ZERO));
    settings.start_at_end = section.bool("tail_files").or(false);
    settings.clean_removed = section.bool("clean_removed").or(true);
    (settings.clean_inactive, _) = keeping::read_clean_inactive(
        section,
        false,
        "scan_frequency",
        settings.ignore_older,
        settings.check_interval,
    );
    settings.close = read_close(section);
    parsers::read_deprecated(section, &mut settings, kind);
    refuse(section);
    settings
}

/// What these inputs and `stdin` have in common, but for parsers and encoding.
pub(super) fn read_lines(section: &Section<'_>, settings: &mut FilestreamSettings) {
    settings.buffer_size = section
        .usize("harvester_buffer_size")
        .named("a number of bytes")
        .range(1..=(16 << 20))
        .or(FilestreamSettings::BUFFER_SIZE);
    settings.message_max_bytes = section
        .size("max_bytes")
        .range(1..=FilestreamSettings::MESSAGE_MAX_BYTES_MAX as u64)
        .or(FilestreamSettings::MESSAGE_MAX_BYTES as u64) as usize;
    settings.include_lines = patterns(section, "include_lines");
    settings.exclude_lines = patterns(section, "exclude_lines");
    settings.keep_null = section.bool("keep_null").or(false);
}

fn read_scan(section: &Section<'_>, outside: &Surroundings<'_>) -> ScanSettings {
    let recursive = match section.value("recursive_glob").optional() {
        // Of Filebeat 6; later ones read over it.
        Some(Value::String(_) | Value::Bool(_)) => {
            let message = format!("`{}` has no effect", section.path_of("recursive_glob"));
            section.warning(
                "recursive_glob",
                message,
                "it is `recursive_glob.enabled: false` today",
            );
            true
        }
        _ => section.bool("recursive_glob.enabled").or(true),
    };
    ScanSettings {
        include_files: Vec::new(),
        exclude_files: patterns(section, "exclude_files"),
        symlinks: section.bool("symlinks").or(false),
        patterns: match section.optional_section("containers") {
            Some(containers) if !section.has("paths") => read_containers(&containers, outside),
            _ => read_paths(section, outside.directory, recursive),
        },
    }
}

/// Default of `containers.path`.
const CONTAINERS: &str = "/var/lib/docker/containers";

/// The files of a `docker` input: those of containers with these ids, `*` for all.
fn read_containers(section: &Section<'_>, outside: &Surroundings<'_>) -> Vec<Pattern> {
    let folder = section.string("path").or(CONTAINERS);
    let ids = section.strings("ids").at_least_one("id of a container, or `*`").required();
    let parse = |id: String| {
        let path = format!("{}/{id}/*.log", folder.trim_end_matches('/'));
        let parsed = Pattern::parse(&path, outside.directory, false);
        parsed.map_err(|error| section.problem("ids", format!("`{path}`: {error}"), "")).ok()
    };
    let patterns = ids.into_iter().filter_map(parse).collect();
    // Read with the records.
    section.accept("stream");
    patterns
}

fn read_close(section: &Section<'_>) -> CloseSettings {
    let init = positive(section, "backoff").unwrap_or(BACKOFF);
    let max = positive(section, "max_backoff").unwrap_or(BACKOFF_MAX);
    CloseSettings {
        inactive: some(section.duration("close_inactive").or(Duration::from_mins(5))),
        removed: section.bool("close_removed").or(true),
        renamed: section.bool("close_renamed").or(false),
        on_eof: section.bool("close_eof").or(false),
        after_interval: some(section.duration("close_timeout").or(Duration::ZERO)),
        backoff_init: init,
        backoff_max: max.max(init),
        backoff_factor: section.u32("backoff_factor").range(1..=1000).or(2_u32),
        ..CloseSettings::default()
    }
}

/// Says that the deprecated types of inputs run as `filestream` does, once for all of them.
fn tell_deprecated(section: &Section<'_>, kind: InputKind) {
    // As it is written: a `docker` input is one of the kind `container`.
    let written = section.string("type").or(kind.name());
    if section.bool("allow_deprecated_use").or(false) {
        return;
    }
    let message = format!(
        "inputs of type `{written}` run as `filestream` does; Filebeat 9 refuses them without \
         `allow_deprecated_use: true`"
    );
    let hint = "`skidder migrate` writes the modern form, which takes their files over";
    section.problems().push_once(Problem::warning(section.position().cloned(), message).hint(hint));
}

/// What these inputs have in Filebeat and not here.
fn refuse(section: &Section<'_>) {
    section.unsupported(
        &["scan.*"],
        "all files get their turns at the same time, whatever their order; leave it out",
    );
    section.unsupported(&["docker-json"], "use `type: container`");
    section.deprecated(
        &["combine_partial", "cri"],
        "records that were cut are joined, and both kinds of records are known, always",
    );
    section.deprecated(&["seek_to_tail"], "use `tail_files`");
}
