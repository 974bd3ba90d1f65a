//! Reading what a file is known by: `file_identity`, `prospector.scanner.fingerprint`, `compression`.

use super::InputContext;
use skidder_config::{Group, Key, OneOf, Part, Section, Switch, settings};
use skidder_read::{
    Codec, Compression, FileIdentity, FilestreamSettings, FingerprintSettings, check_marker,
};

mod kinds {
    use skidder_config::{Group, Key, Kinds, settings};
    use std::path::PathBuf;

    settings! {
        /// `file_identity.fingerprint`.
        static FINGERPRINT = Group::new(
            "file_identity.fingerprint",
            "the default of `filestream`: SHA-256 over the first decompressed bytes. Follows renames, copies and \
             compression. *Cost*: a read of the first bytes of each new or changed file. *Differs*: files that begin \
             alike are compared to their end, and all that differ are read",
        );

        pub(super) GROWING: bool = Key::new("growing")
            .default(true)
            .about("shorter files are read too. `false`: they wait until they are that long");
    }

    /// `file_identity.native`.
    static NATIVE: Group = Group::new(
        "file_identity.native",
        "inode and device. Follows renames on the same disk. Nothing is read to recognise a file. *Differs*: an inode \
         that is used again is noticed",
    );

    /// `file_identity.path`.
    static PATH: Group = Group::new(
        "file_identity.path",
        "the path. A renamed file is read again from the start. *Differs*: what is unread of the file before, if it \
         is open, comes first",
    );

    settings! {
        /// `file_identity.inode_marker`.
        static INODE_MARKER = Group::new(
            "file_identity.inode_marker",
            "inode, and the content (at most 1 KiB) of a file instead of the device, for network disks whose number \
             changes. When the content changes all files are others",
        );

        pub(super) MARKER: PathBuf = Key::new("path").required().about(
            "that file. Must be readable at the start; if it cannot be read later, what it held counts",
        );
    }

    /// `file_identity`.
    pub(super) static FILE_IDENTITY: Group =
        Group::new("file_identity", "What a file is known by.").kinds(Kinds::by_name(list));

    pub(super) fn list() -> Vec<(&'static str, &'static Group)> {
        vec![
            ("fingerprint", &FINGERPRINT),
            ("native", &NATIVE),
            ("path", &PATH),
            ("inode_marker", &INODE_MARKER),
        ]
    }
}

settings! {
    /// What a file is known by, of every input that reads files.
    pub(crate) static KNOWN_BY = Group::new("files.identity", "What files are known by.");

    FILE_IDENTITY: Part = Key::part("file_identity", &kinds::FILE_IDENTITY).about("one of those below");
}

mod copytruncate {
    use skidder_config::{Group, Key, settings};

    settings! {
        /// `rotation.external.strategy.copytruncate`.
        pub(super) static COPYTRUNCATE = Group::new("filestream.copytruncate", "How copies are called.");

        pub(super) SUFFIX_REGEX: String = Key::new("suffix_regex").required().about("the end of their names");
        pub(super) DATEFORMAT: String = Key::new("dateformat")
            .about("no effect: copies need no order, each is found to be what it is");
    }
}

mod taking_over {
    use skidder_config::{Group, Key, settings};

    settings! {
        /// `take_over`.
        pub(super) static TAKE_OVER = Group::new("filestream.take_over", "Which files of other inputs go on.");

        pub(super) ENABLED: bool = Key::new("enabled").default(false).about("the same as `take_over: true`");
        pub(super) FROM_IDS: Vec<String> = Key::<Vec<String>>::new("from_ids")
            .default(&[])
            .about("from these filestream inputs instead");
    }
}

settings! {
    /// The work of the scanner for it, and related settings.
    static CONTENT = Group::new("filestream.content", "How files are known by their content.");

    OFFSET: u64 = Key::new("prospector.scanner.fingerprint.offset")
        .default(0)
        .range(0, FingerprintSettings::OFFSET_MAX)
        .noun("a number of bytes")
        .about(
            "first byte of the fingerprint; at most 64 MiB. *Differs*: files that differ only before it are read all \
             the same",
        );
    LENGTH: u32 = Key::new("prospector.scanner.fingerprint.length")
        .default(FingerprintSettings::LENGTH)
        .at_least(FingerprintSettings::LENGTH_MIN)
        .noun("a number of bytes")
        .about(
            "bytes of the fingerprint, at least 64; more than 1 MiB is reduced to that with a warning. Changing it \
             reads all files again. *Cost*: is read with every change of a file that is shorter",
        );
    ENABLED: bool = Key::new("prospector.scanner.fingerprint.enabled")
        .default_words("`true`, or `false` with another identity")
        .about("with another identity: `log.file.fingerprint` is on events all the same");
    COMPRESSION: OneOf<Compression> = Key::one_of(
        "compression",
        &[
            ("", Compression::None),
            ("auto", Compression::Auto),
            ("gzip", Compression::Only(Codec::Gzip)),
            ("zstd", Compression::Only(Codec::Zstd)),
            ("bzip2", Compression::Only(Codec::Bzip2)),
            ("xz", Compression::Only(Codec::Xz)),
            ("lz4", Compression::Only(Codec::Lz4)),
        ],
    )
    .default("")
    .default_words("`\"\"`")
    .about(
        "`\"\"`: all files are plain. `auto`: the first bytes distinguish gzip, zstd, bzip2, xz and lz4 frames. \
         `gzip`, `zstd`, `bzip2`, `xz`, `lz4`: others are an error. Needs `file_identity.fingerprint`. *Cost*: memory \
         for each file being read, see [compressed files](#compressed-files). *Differs*: Filebeat only knows gzip; a \
         cursor in a compressed file is reached from a saved checkpoint",
    );
    COPYTRUNCATE: Part = Key::part("rotation.external.strategy.copytruncate", &copytruncate::COPYTRUNCATE).about(
        "accepted with its `suffix_regex` (required) and `dateformat`, and checked. Needs \
         `file_identity.fingerprint`. *Differs*: copies are found by their content, with this setting or without, \
         whatever their names and order",
    );
    TAKE_OVER: Switch = Key::switch("take_over", &taking_over::TAKE_OVER).default_words("`false`").about(
        "`true`: files that `log` inputs left in the registry go on where they were, if they are at the same path \
         with the same identity. Every event has the tag `take_over`. Needs an `id`",
    );
}

/// How a filestream input knows its files.
pub(crate) static IDENTITY: Group =
    Group::new("filestream.identity", "How files are known.").include(&[&KNOWN_BY, &CONTENT]);

/// Reads `file_identity`, what the scanner does for it, and `compression`, which needs it.
pub(super) fn read(
    section: &Section<'_>,
    context: &InputContext<'_>,
    into: &mut FilestreamSettings,
) {
    let growing;
    (into.identity, growing) = read_identity(section, context, FileIdentity::Fingerprint);
    into.fingerprint = read_fingerprint(section, into.identity.is_content(), growing);
    into.compression = read_compression(section, &into.identity);
}

/// `file_identity`, and whether its fingerprints grow.
pub(super) fn read_identity(
    section: &Section<'_>,
    context: &InputContext<'_>,
    default: FileIdentity,
) -> (FileIdentity, bool) {
    let settings = section.part(&FILE_IDENTITY);
    let (mut identity, mut growing) = (default, true);
    let names = settings.keys();
    if names.len() > 1 {
        let message = format!("`{}` has {} names", settings.path(), names.len());
        section.problem(FILE_IDENTITY.name(), message, "a file is known by one of them");
    }
    for name in names {
        let Some(kind) = settings.kind(name, &kinds::FILE_IDENTITY) else {
            let names = kinds::list();
            let known: Vec<String> = names.iter().map(|(name, _)| format!("`{name}`")).collect();
            let message = format!("`{}`: there is no file identity `{name}`", settings.path());
            settings.problem(name, message, format!("there are {}", known.join(", ")));
            settings.accept(name);
            continue;
        };
        identity = match name {
            "fingerprint" => {
                growing = kind.get(&kinds::GROWING).value();
                FileIdentity::Fingerprint
            }
            "native" => FileIdentity::Native,
            "path" => FileIdentity::Path,
            _ => read_marker(&kind, context),
        };
    }
    settings.finish();
    (identity, growing)
}

fn read_marker(section: &Section<'_>, context: &InputContext<'_>) -> FileIdentity {
    let path = context.directory.join(section.get(&kinds::MARKER).required());
    if section.has_key(&kinds::MARKER)
        && let Err(error) = check_marker(context.fs, &path)
    {
        let (key, path) = (section.path_of(kinds::MARKER.name()), path.display());
        let message = format!("`{key}`: the marker file `{path}` cannot be read: {error}");
        section.problem(
            kinds::MARKER.name(),
            message,
            "its content stands for the device: make it once, for example with a UUID",
        );
    }
    FileIdentity::InodeMarker(path)
}

fn read_fingerprint(section: &Section<'_>, by_content: bool, growing: bool) -> FingerprintSettings {
    let enabled = section.get(&ENABLED).optional().unwrap_or(by_content);
    if by_content && !enabled {
        section.problem(
            ENABLED.name(),
            "`file_identity.fingerprint` needs fingerprints",
            "leave it out, or choose `file_identity.native`",
        );
    }
    let mut length = section.get(&LENGTH).value();
    if length > FingerprintSettings::LENGTH_MAX {
        let message = format!(
            "`{}` is reduced to {}: so much is read again with every change of a file",
            section.path_of(LENGTH.name()),
            FingerprintSettings::LENGTH_MAX
        );
        section.warning(
            LENGTH.name(),
            message,
            "files that begin alike are compared to their end anyway",
        );
        length = FingerprintSettings::LENGTH_MAX;
    }
    let offset = section.get(&OFFSET).value();
    FingerprintSettings { enabled, offset, length, growing }
}

fn read_compression(section: &Section<'_>, identity: &FileIdentity) -> Compression {
    let compression = section.get(&COMPRESSION).value();
    if compression != Compression::None && !identity.is_content() {
        let message = format!(
            "`compression` needs files to be known by their content, and `file_identity` is `{}`",
            identity.name()
        );
        section.problem(COMPRESSION.name(), message, "leave `file_identity` out");
    }
    compression
}

/// `rotation`: only how to recognise copies, which here is by content.
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
            let settings = section.part(&COPYTRUNCATE);
            let suffix = settings.get(&copytruncate::SUFFIX_REGEX).required();
            if let Err(error) = skidder_processors::compile_pattern(&suffix) {
                let key = copytruncate::SUFFIX_REGEX.name();
                let message = format!("`{}`: {error}", settings.path_of(key));
                settings.problem(key, message, "the syntax is that of RE2");
            }
            settings.get(&copytruncate::DATEFORMAT).optional();
            settings.finish();
            strategies.accept(strategy);
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
    let (enabled, ids) = match section.switch(&TAKE_OVER) {
        None => return TakeOver::Off,
        Some(Ok(enabled)) => (enabled, Vec::new()),
        Some(Err(settings)) => (
            settings.get(&taking_over::ENABLED).value(),
            settings.get(&taking_over::FROM_IDS).value(),
        ),
    };
    if !enabled {
        return TakeOver::Off;
    }
    if id.is_empty() {
        section.problem(
            TAKE_OVER.name(),
            "`take_over` needs the input to have an `id`",
            "give it one",
        );
    }
    if shares_keys {
        let message = "`take_over` and `allow_deprecated_id_duplication` exclude each other";
        section.problem(TAKE_OVER.name(), message, "give each input an `id` of its own");
    }
    if ids.iter().any(|from| from == id) {
        let key = section.path_of("take_over.from_ids");
        let message = format!("`{key}` names the input's own id `{id}`");
        section.problem(TAKE_OVER.name(), message, "an input goes on with its own files anyway");
    }
    if ids.is_empty() { TakeOver::Logs } else { TakeOver::Inputs(ids) }
}
