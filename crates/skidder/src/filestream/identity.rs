//! Reading what a file is known by: `file_identity`, `prospector.scanner.fingerprint`, `compression`.

use super::Surroundings;
use skidder_config::Section;
use skidder_read::{
    Codec, Compression, FileIdentity, FilestreamSettings, FingerprintSettings, check_marker,
};

const IDENTITIES: [&str; 4] = ["fingerprint", "native", "path", "inode_marker"];

/// Reads `file_identity`, what the scanner does for it, and `compression`, which needs it.
pub(super) fn read(
    section: &Section<'_>,
    outside: &Surroundings<'_>,
    into: &mut FilestreamSettings,
) {
    let growing;
    (into.identity, growing) = read_identity(section, outside, FileIdentity::Fingerprint);
    into.fingerprint = read_fingerprint(section, into.identity.is_content(), growing);
    into.compression = read_compression(section, &into.identity);
}

/// `file_identity`, and whether its fingerprints grow.
pub(super) fn read_identity(
    section: &Section<'_>,
    outside: &Surroundings<'_>,
    default: FileIdentity,
) -> (FileIdentity, bool) {
    let settings = section.section("file_identity");
    let (mut identity, mut growing) = (default, true);
    let names = settings.keys();
    if names.len() > 1 {
        let message = format!("`{}` has {} names", settings.path(), names.len());
        section.problem("file_identity", message, "a file is known by one of them");
    }
    for name in names {
        identity = match name {
            "fingerprint" => {
                let fingerprint = settings.section(name);
                growing = fingerprint.bool("growing").or(true);
                FileIdentity::Fingerprint
            }
            "native" => {
                settings.section(name).finish();
                FileIdentity::Native
            }
            "path" => {
                settings.section(name).finish();
                FileIdentity::Path
            }
            "inode_marker" => read_marker(&settings.section(name), outside),
            other => {
                let known = IDENTITIES.map(|name| format!("`{name}`")).join(", ");
                let message = format!("there is no file identity `{other}`");
                settings.problem(other, message, format!("there are {known}"));
                settings.accept(other);
                identity
            }
        };
    }
    settings.finish();
    (identity, growing)
}

fn read_marker(section: &Section<'_>, outside: &Surroundings<'_>) -> FileIdentity {
    let path = outside.directory.join(section.path_buf("path").required());
    if section.has("path")
        && let Err(error) = check_marker(outside.fs, &path)
    {
        let (key, path) = (section.path_of("path"), path.display());
        let message = format!("`{key}`: the marker file `{path}` cannot be read: {error}");
        section.problem(
            "path",
            message,
            "its content stands for the device: make it once, for example with a UUID",
        );
    }
    FileIdentity::InodeMarker(path)
}

fn read_fingerprint(section: &Section<'_>, by_content: bool, growing: bool) -> FingerprintSettings {
    let key = "prospector.scanner.fingerprint.enabled";
    let enabled = section.bool(key).or(by_content);
    if by_content && !enabled {
        section.problem(
            key,
            "`file_identity.fingerprint` needs fingerprints",
            "leave it out, or choose `file_identity.native`",
        );
    }
    let key = "prospector.scanner.fingerprint.length";
    let mut length = section
        .u32(key)
        .named("a number of bytes")
        .range(FingerprintSettings::LENGTH_MIN..)
        .or(FingerprintSettings::LENGTH);
    if length > FingerprintSettings::LENGTH_MAX {
        let message = format!(
            "`{}` is reduced to {}: so much is read again with every change of a file",
            section.path_of(key),
            FingerprintSettings::LENGTH_MAX
        );
        section.warning(key, message, "files that begin alike are compared to their end anyway");
        length = FingerprintSettings::LENGTH_MAX;
    }
    let offset = section
        .u64("prospector.scanner.fingerprint.offset")
        .named("a number of bytes")
        .range(0..=FingerprintSettings::OFFSET_MAX)
        .or(0_u64);
    FingerprintSettings { enabled, offset, length, growing }
}

fn read_compression(section: &Section<'_>, identity: &FileIdentity) -> Compression {
    let mut values = vec![("", Compression::None), ("auto", Compression::Auto)];
    values.extend(Codec::ALL.map(|codec| (codec.name(), Compression::Only(codec))));
    let compression = section.one_of("compression", &values).or(Compression::None);
    if compression != Compression::None && !identity.is_content() {
        let message = format!(
            "`compression` needs files to be known by their content, and `file_identity` is `{}`",
            identity.name()
        );
        section.problem("compression", message, "leave `file_identity` out");
    }
    compression
}

/// `rotation`: only what copies are to be recognised by, which the content tells here.
pub(super) fn read_rotation(section: &Section<'_>, identity: &FileIdentity) {
    let rotation = section.section("rotation");
    for name in rotation.keys() {
        if name != "external" {
            let message = format!("there is no rotation method `{name}`");
            rotation.problem(name, message, "`external.strategy.copytruncate` is the only one");
            rotation.accept(name);
            continue;
        }
        let strategies = rotation.section("external").section("strategy");
        rotation.accept("external");
        if strategies.keys().is_empty() {
            let message = format!("`{}` names no strategy", strategies.path());
            rotation.problem(name, message, "`copytruncate` is the only one");
        }
        for strategy in strategies.keys() {
            if strategy != "copytruncate" {
                let message = format!("there is no rotation strategy `{strategy}`");
                strategies.problem(strategy, message, "`copytruncate` is the only one");
                strategies.accept(strategy);
                continue;
            }
            let settings = strategies.section(strategy);
            let suffix = settings.string("suffix_regex").required();
            if let Err(error) = skidder_processors::compile_pattern(&suffix) {
                let message = format!("`{}`: {error}", settings.path_of("suffix_regex"));
                settings.problem("suffix_regex", message, "the syntax is that of RE2");
            }
            // Copies need no order: each is found to be what it is.
            settings.accept("dateformat");
            settings.finish();
            if !identity.is_content() {
                let message = format!(
                    "copies are recognised by their content, and `file_identity` is `{}`",
                    identity.name()
                );
                strategies.problem(strategy, message, "leave `file_identity` out");
            }
        }
        strategies.finish();
    }
    rotation.finish();
}

/// `take_over`: a bare `true`, or a section.
pub(super) fn read_take_over(
    section: &Section<'_>,
    id: &str,
    shares_keys: bool,
) -> skidder_read::TakeOver {
    use skidder_read::TakeOver;
    let is_section = section.item("take_over").is_some_and(|item| item.is_map());
    let (enabled, ids) = if is_section {
        let settings = section.section("take_over");
        let enabled = settings.bool("enabled").or(false);
        let ids = settings.strings("from_ids").or(Vec::new());
        settings.finish();
        (enabled, ids)
    } else {
        (section.bool("take_over").or(false), Vec::new())
    };
    if !enabled {
        return TakeOver::Off;
    }
    if id.is_empty() {
        section.problem("take_over", "`take_over` needs the input to have an `id`", "give it one");
    }
    if shares_keys {
        let message = "`take_over` and `allow_deprecated_id_duplication` exclude each other";
        section.problem("take_over", message, "give each input an `id` of its own");
    }
    if ids.iter().any(|from| from == id) {
        let key = section.path_of("take_over.from_ids");
        let message = format!("`{key}` names the input's own id `{id}`");
        section.problem("take_over", message, "an input goes on with its own files anyway");
    }
    if ids.is_empty() { TakeOver::Logs } else { TakeOver::Inputs(ids) }
}
