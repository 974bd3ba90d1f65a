//! Settings of a filestream input, validated: nothing after this can fail on configuration.

use crate::catalog::HEADS_BYTES_MAX;
use crate::identity::FileIdentity;
use crate::scan::ScanSettings;
use regex::bytes::Regex;
use skidder_decode::Codec;
use skidder_decode::encoding::Encoding;
use skidder_decode::lines::LineTerminator;
use skidder_os::Timestamp;
use skidder_parse::chain::Chain;
use std::path::PathBuf;
use std::time::Duration;

/// `compression`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// `""`: every file is plain.
    #[default]
    None,
    /// `auto`: detected from the first bytes of each file.
    Auto,
    /// `gzip`, `zstd`, `bzip2`, `xz`, `lz4`: a file that is not of this codec is an error.
    Only(Codec),
}

/// `type` of an input of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InputKind {
    /// `filestream`.
    #[default]
    Filestream,
    /// `log`, deprecated.
    Log,
    /// `container`, deprecated.
    Container,
    /// Objects of a store, of an input of this type.
    Objects(&'static str),
}

impl InputKind {
    /// The name in `type` and in `input.type`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Filestream => "filestream",
            Self::Log => "log",
            Self::Container => "container",
            Self::Objects(name) => name,
        }
    }
}

/// `take_over`: whose files an input goes on with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TakeOver {
    /// Only its own.
    #[default]
    Off,
    /// Those of `log` inputs too.
    Logs,
    /// Those of filestream inputs with these ids too.
    Inputs(Vec<String>),
}

/// `prospector.scanner.fingerprint`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FingerprintSettings {
    /// Whether files have one; those that are known by their content always have.
    pub enabled: bool,
    /// First byte that is looked at.
    pub offset: u64,
    /// Number of bytes.
    pub length: u32,
    /// `file_identity.fingerprint.growing`: shorter files are read too.
    pub growing: bool,
}

impl FingerprintSettings {
    /// Default of `prospector.scanner.fingerprint.length`.
    pub const LENGTH: u32 = 1024;
    /// The least that Filebeat takes: one block of SHA-256.
    pub const LENGTH_MIN: u32 = 64;
    /// The most that `prospector.scanner.fingerprint.offset` may be: of a compressed file all before it is
    /// decompressed for nothing.
    pub const OFFSET_MAX: u64 = 64 << 20;
    /// The most that is taken: it is read again with every change of a file.
    pub const LENGTH_MAX: u32 = 1 << 20;
}

impl Default for FingerprintSettings {
    fn default() -> Self {
        Self { enabled: true, offset: 0, length: Self::LENGTH, growing: true }
    }
}

/// `close.*` and `backoff.*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseSettings {
    /// `close.on_state_change.inactive`; nothing = never.
    pub inactive: Option<Duration>,
    /// `close.on_state_change.removed`.
    pub removed: bool,
    /// `close.on_state_change.renamed`.
    pub renamed: bool,
    /// `close.on_state_change.check_interval`.
    pub check_interval: Duration,
    /// `close.reader.on_eof`.
    pub on_eof: bool,
    /// `close.reader.after_interval`; nothing = never.
    pub after_interval: Option<Duration>,
    /// `backoff.init`.
    pub backoff_init: Duration,
    /// `backoff.max`.
    pub backoff_max: Duration,
    /// `backoff_factor` of `log` inputs: how many times as long each wait is as the one before.
    pub backoff_factor: u32,
}

impl Default for CloseSettings {
    fn default() -> Self {
        Self {
            inactive: Some(Duration::from_mins(5)),
            removed: false,
            renamed: false,
            check_interval: Duration::from_secs(5),
            on_eof: false,
            after_interval: None,
            backoff_init: Duration::from_secs(2),
            backoff_max: Duration::from_secs(10),
            backoff_factor: 2,
        }
    }
}

/// `pin`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PinSettings {
    /// Bytes that deleted files may keep on the disk until they are read; nothing = no file is pinned.
    pub max_bytes: Option<u64>,
    /// Where the links are: in the data directory. What an earlier run left there is read in any case.
    pub directory: Option<PathBuf>,
}

impl PinSettings {
    /// Default of `pin.max_bytes`.
    pub const MAX_BYTES: u64 = 1 << 30;
}

/// A filestream input.
#[derive(Clone, Debug)]
pub struct FilestreamSettings {
    /// `type`.
    pub kind: InputKind,
    /// `id`; part of every key in the registry.
    pub id: String,
    /// Other inputs may have the same keys: a file belongs to the first of them that finds it.
    pub shares_keys: bool,
    /// `file_identity`.
    pub identity: FileIdentity,
    /// Put behind each key with a dash: the stream of a container that is read, if it is not all.
    pub key_suffix: &'static str,
    /// `paths` and `prospector.scanner.*`.
    pub scan: ScanSettings,
    /// Files that were rotated away before the first look at their log, for links and the logs of containers,
    /// are read if they were changed at this time or later; those that are older are known, and skipped.
    /// Nothing = none of them is looked for.
    pub rotated_since: Option<Timestamp>,
    /// `prospector.scanner.check_interval`.
    pub check_interval: Duration,
    /// `prospector.scanner.notify`: directories are watched where the file system supports it.
    pub notify: bool,
    /// `prospector.scanner.resend_on_touch`.
    pub resend_on_touch: bool,
    /// Not a user's: bytes of the beginnings of new files that are held at once. One file's are, whatever it is.
    pub heads_bytes_max: usize,
    /// How files are recognised.
    pub fingerprint: FingerprintSettings,
    /// `include_file_fingerprint`: whether events carry it.
    pub include_file_fingerprint: bool,
    /// `compression`.
    pub compression: Compression,
    /// `buffer_size`: the least that is read at once, in bytes.
    pub buffer_size: usize,
    /// `message_max_bytes`: longer messages are cut.
    pub message_max_bytes: usize,
    /// `include_lines`: if there are any, a message must match one.
    pub include_lines: Vec<Regex>,
    /// `exclude_lines`: no message may match one.
    pub exclude_lines: Vec<Regex>,
    /// `close.*` and `backoff.*`.
    pub close: CloseSettings,
    /// `harvester_limit`; nothing = no limit.
    pub harvester_limit: Option<usize>,
    /// `ignore_older`; nothing = off.
    pub ignore_older: Option<Duration>,
    /// `ignore_inactive`: files not modified after this time are ignored.
    pub ignore_before: Option<Timestamp>,
    /// `tail_files`: files that are there at the start are read from their end.
    pub start_at_end: bool,
    /// `clean_inactive`; nothing = off.
    pub clean_inactive: Option<Duration>,
    /// `clean_inactive: 0` with `legacy_clean_inactive`: everything is forgotten at the start.
    pub forget_at_start: bool,
    /// `clean_removed`.
    pub clean_removed: bool,
    /// `delete`: how long after all of it was settled a closed file is deleted; nothing = never.
    pub delete: Option<Duration>,
    /// `pin`: unread files are kept by a hard link when they are deleted.
    pub pin: PinSettings,
    /// `read_until_eof`: how long open files are read on during shutdown.
    pub read_until_eof: Option<Duration>,
    /// `keep_null`: members of events that are null stay.
    pub keep_null: bool,
    /// `include_file_owner_name`.
    pub include_owner: bool,
    /// `include_file_owner_group_name`.
    pub include_group: bool,
    /// `take_over`.
    pub take_over: TakeOver,
    /// `parsers`.
    pub parsers: Chain,
    /// `encoding`; UTF-8 counts as plain.
    pub encoding: Encoding,
    /// `line_terminator`.
    pub line_terminator: LineTerminator,
    /// Files are read to their end once (`--once`): groups of lines do not wait for more.
    pub read_once: bool,
    /// Whether what follows the last line feed of a plain file is a line: only where the file is read
    /// once and no cursor is kept.
    pub final_line: bool,
}

impl AsRef<Self> for FilestreamSettings {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl FilestreamSettings {
    /// Default of `prospector.scanner.check_interval`.
    pub const CHECK_INTERVAL: Duration = Duration::from_secs(10);
    /// Default of `buffer_size`.
    pub const BUFFER_SIZE: usize = 16 << 10;
    /// Default of `message_max_bytes`.
    pub const MESSAGE_MAX_BYTES: usize = 10 << 20;
    /// The most that `message_max_bytes` may be: a raw line is bounded by four times as much.
    pub const MESSAGE_MAX_BYTES_MAX: usize = 128 << 20;

    /// An input with Filebeat's defaults.
    pub fn new(id: &str, scan: ScanSettings) -> Self {
        Self {
            kind: InputKind::Filestream,
            id: id.to_owned(),
            shares_keys: false,
            identity: FileIdentity::Fingerprint,
            key_suffix: "",
            scan,
            rotated_since: None,
            check_interval: Self::CHECK_INTERVAL,
            notify: true,
            resend_on_touch: false,
            heads_bytes_max: HEADS_BYTES_MAX,
            fingerprint: FingerprintSettings::default(),
            include_file_fingerprint: true,
            compression: Compression::None,
            buffer_size: Self::BUFFER_SIZE,
            message_max_bytes: Self::MESSAGE_MAX_BYTES,
            include_lines: Vec::new(),
            exclude_lines: Vec::new(),
            close: CloseSettings::default(),
            harvester_limit: None,
            ignore_older: None,
            ignore_before: None,
            start_at_end: false,
            clean_inactive: None,
            forget_at_start: false,
            clean_removed: true,
            delete: None,
            pin: PinSettings::default(),
            read_until_eof: None,
            keep_null: false,
            include_owner: false,
            include_group: false,
            take_over: TakeOver::Off,
            parsers: Chain::default(),
            encoding: Encoding::PLAIN,
            line_terminator: LineTerminator::Auto,
            read_once: false,
            final_line: false,
        }
    }

    /// Whether files that were rotated away from what a link leads to, or from the log of a container, are
    /// looked for.
    pub fn follows_rotated(&self) -> bool {
        (self.scan.symlinks || self.follows_containers()) && self.identity.is_content()
    }

    /// Whether this is so for logs of containers that are no links, as those of Docker.
    pub fn follows_containers(&self) -> bool {
        self.rotated_since.is_some() && self.parsers.reads_containers()
    }

    /// Whether lines need no more than to be cut out of the bytes: no parser, no encoding, no other
    /// terminator.
    pub fn is_direct(&self) -> bool {
        self.parsers.is_empty()
            && self.encoding.is_plain()
            && self.line_terminator == LineTerminator::Auto
    }

    /// Raw bytes of a line beyond which it is skipped whole and counted.
    pub fn line_bytes_max(&self) -> usize {
        self.message_max_bytes * 4
    }
}
