//! One entry: its key and its value, of the `filestream` and of the `log` input.
//!
//! Keys and values are those of `filebeat/input/filestream` (`registry_key.go`, `input.go`) and
//! `filebeat/input/file/state.go`; times are pairs of numbers (`libbeat/common/transform/typeconv`).

use super::memlog::{field, unsigned};
use super::{LOG_PREFIX, NO_ID, SEPARATOR};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use skidder_os::Timestamp;
use std::fmt::Write as _;
use std::path::PathBuf;

/// In the first number of a time, behind its nanoseconds: the zone, here UTC.
const UTC: u64 = 0xffff << 32;

/// What Filebeat puts before the identity, in keys of `container` inputs that read one stream only: a hash
/// (`hashstructure`) of the map that names the stream. As its 9.6 writes them.
const STREAM_HASHES: [(&str, &str); 2] =
    [("stdout", "1b59052b95e61943"), ("stderr", "d35e05a633229937")];

/// Whose entry it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A `filestream` input.
    Filestream {
        /// Its `id`; empty if it has none.
        input: String,
    },
    /// All `log` (and `container`) inputs together.
    Log,
    /// An input that reads no files.
    Other,
}

/// How the file was recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// By inode and device.
    Native {
        /// Inode number.
        inode: u64,
        /// Device number.
        device: u64,
    },
    /// By its path.
    Path(String),
    /// By inode and the content of a marker file.
    InodeMarker {
        /// Inode number.
        inode: u64,
        /// The marker.
        marker: String,
    },
    /// By its first bytes.
    Fingerprint {
        /// In hexadecimal. Of a file that is too short for it, see [`fingerprint_key`].
        hex: String,
        /// Number of bytes that it covers, if the file is too short for all.
        len: Option<u32>,
    },
    /// Something else.
    Other {
        /// Name of the identity.
        name: String,
        /// Its value.
        value: String,
    },
}

/// An entry.
#[derive(Clone, Debug, PartialEq)]
pub struct FilebeatEntry {
    /// Its whole key.
    pub key: String,
    /// Whose it is.
    pub owner: Owner,
    /// How the file is recognised.
    pub identity: Identity,
    /// The stream of a container, `stdout` or `stderr`, if only that one was read; else empty.
    pub stream: &'static str,
    /// The path where it was seen last.
    pub source: PathBuf,
    /// Byte just past the last line that was delivered; decompressed bytes of a `.gz`. Nothing: none was.
    pub offset: Option<u64>,
    /// A compressed file was read to its end.
    pub eof: bool,
    /// When it was changed last, if that was noted.
    pub updated: Option<Timestamp>,
    /// Nanoseconds after which it may be forgotten; negative is never, 0 is as good as forgotten.
    pub ttl: i64,
}

impl FilebeatEntry {
    /// Reads a key with its value; the error says what is wrong.
    pub(super) fn read(key: &str, value: &Map<String, Value>) -> Result<Self, String> {
        let value = &Value::Object(value.clone());
        let entry = if key.starts_with(LOG_PREFIX) {
            Self::read_log(key, value)?
        } else if let Some(rest) = key.strip_prefix("filestream::") {
            Self::read_filestream(key, rest, value)?
        } else {
            Self::of(key, Owner::Other, other("", ""), value)
        };
        Ok(entry)
    }

    fn of(key: &str, owner: Owner, identity: Identity, value: &Value) -> Self {
        let ttl = field(value, "ttl").and_then(signed).unwrap_or(-1);
        Self {
            key: key.to_owned(),
            owner,
            identity,
            stream: "",
            source: PathBuf::new(),
            offset: None,
            eof: false,
            updated: None,
            ttl,
        }
    }

    fn read_filestream(key: &str, rest: &str, value: &Value) -> Result<Self, String> {
        let mut parts = rest.splitn(3, SEPARATOR);
        let (Some(input), Some(name), Some(id)) = (parts.next(), parts.next(), parts.next()) else {
            return Err("the key has not four parts".to_owned());
        };
        let input = if input == NO_ID { "" } else { input }.to_owned();
        let meta = field(value, "meta").unwrap_or(&Value::Null);
        // Of a file that is long enough for all of it, Filebeat 9.6 writes 0.
        let len = field(meta, "fingerprint_len").and_then(unsigned).filter(|len| *len > 0);
        // The first builds with it kept the bytes themselves.
        let raw =
            field(meta, "fingerprint").and_then(Value::as_str).map(|hex| hex.len() as u64 / 2);
        let raw = raw.filter(|len| *len > 0);
        let (identity, stream) = identity(name, id, len.or(raw))?;
        let cursor = field(value, "cursor").unwrap_or(&Value::Null);
        let offset = match field(cursor, "offset") {
            None => None,
            Some(offset) => Some(unsigned(offset).ok_or("the offset is no number of bytes")?),
        };
        Ok(Self {
            stream,
            source: field(meta, "source").and_then(Value::as_str).unwrap_or_default().into(),
            offset,
            eof: field(cursor, "eof").and_then(Value::as_bool).unwrap_or(false),
            updated: field(value, "updated").and_then(time),
            ..Self::of(key, Owner::Filestream { input }, identity, value)
        })
    }

    fn read_log(key: &str, value: &Value) -> Result<Self, String> {
        let os = field(value, "FileStateOS").unwrap_or(&Value::Null);
        let number = |name: &str| field(os, name).and_then(unsigned);
        let source = field(value, "source").and_then(Value::as_str).unwrap_or_default();
        let name = field(value, "identifier_name").and_then(Value::as_str).unwrap_or("native");
        let identity = match (name, number("inode"), number("device")) {
            ("path", ..) => Identity::Path(source.to_owned()),
            ("native", Some(inode), Some(device)) => Identity::Native { inode, device },
            ("inode_marker", Some(inode), _) => {
                let value = key.split_once("inode_marker::").map_or("", |(_, value)| value);
                let marker = value.split_once('-').map_or("", |(_, marker)| marker);
                Identity::InodeMarker { inode, marker: marker.to_owned() }
            }
            (name, ..) => other(name, key.strip_prefix(LOG_PREFIX).unwrap_or(key)),
        };
        let offset = field(value, "offset").ok_or("there is no offset")?;
        let stream = field(value, "meta").and_then(|meta| field(meta, "stream"));
        Ok(Self {
            stream: stream_named(stream.and_then(Value::as_str).unwrap_or_default()),
            source: source.into(),
            offset: Some(unsigned(offset).ok_or("the offset is no number of bytes")?),
            updated: field(value, "timestamp").and_then(time),
            ..Self::of(key, Owner::Log, identity, value)
        })
    }

    /// The value as Filebeat writes it.
    pub(super) fn value(&self) -> Value {
        let source = self.source.to_string_lossy();
        let name = self.identity.name();
        let updated = pair(self.updated.unwrap_or_default());
        if self.owner == Owner::Log {
            let id = self.key.strip_prefix(LOG_PREFIX).unwrap_or(&self.key);
            let os = match &self.identity {
                Identity::Native { inode, device } => json!({"inode": inode, "device": device}),
                Identity::InodeMarker { inode, .. } => json!({"inode": inode, "device": 0}),
                _ => json!({"inode": 0, "device": 0}),
            };
            let mut value = json!({
                "id": id, "prev_id": "", "source": source, "offset": self.offset.unwrap_or(0),
                "timestamp": updated, "ttl": self.ttl, "type": "log", "FileStateOS": os,
                "identifier_name": name,
            });
            if !self.stream.is_empty() {
                value["meta"] = json!({"stream": self.stream});
            }
            return value;
        }
        let mut meta = json!({"source": source, "identifier_name": name});
        if let Identity::Fingerprint { len: Some(len), .. } = self.identity {
            meta["fingerprint_len"] = len.into();
        }
        let mut cursor = json!({"offset": self.offset.unwrap_or(0)});
        if self.eof {
            cursor["eof"] = true.into();
        }
        json!({"ttl": self.ttl, "updated": updated, "cursor": cursor, "meta": meta})
    }

    /// The key that an owner, an identity and a stream make.
    pub fn key_of(owner: &Owner, identity: &Identity, stream: &str) -> String {
        let end = format!("{}{SEPARATOR}{}", identity.name(), identity.value());
        match owner {
            Owner::Filestream { input } => {
                let input = if input.is_empty() { NO_ID } else { input };
                let dash = if stream.is_empty() { "" } else { "-" };
                format!("filestream{SEPARATOR}{input}{SEPARATOR}{end}{dash}{stream}")
            }
            Owner::Log | Owner::Other => {
                let hash = STREAM_HASHES.iter().find(|(name, _)| *name == stream);
                let (hash, dash) = hash.map_or(("", ""), |(_, hash)| (*hash, "-"));
                format!("{LOG_PREFIX}{hash}{dash}{end}")
            }
        }
    }
}

impl Identity {
    /// Its name in Filebeat's settings.
    pub fn name(&self) -> &str {
        match self {
            Self::Native { .. } => "native",
            Self::Path(_) => "path",
            Self::InodeMarker { .. } => "inode_marker",
            Self::Fingerprint { .. } => "fingerprint",
            Self::Other { name, .. } => name,
        }
    }

    /// Its value as it stands in a key.
    pub fn value(&self) -> String {
        match self {
            Self::Native { inode, device } => format!("{inode}-{device}"),
            Self::Path(path) => path.clone(),
            Self::InodeMarker { inode, marker } => format!("{inode}-{marker}"),
            Self::Fingerprint { hex, .. } => hex.clone(),
            Self::Other { value, .. } => value.clone(),
        }
    }
}

/// What stands in the key of a file that is too short for a whole fingerprint: the SHA-256 of its first
/// bytes in hexadecimal, and not of the bytes themselves (`HashRawFingerprint` in
/// `filebeat/input/filestream/internal/input-logfile`).
pub fn fingerprint_key(bytes: &[u8]) -> String {
    hex(&Sha256::digest(hex(bytes)))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
        text
    })
}

/// The last part of a key. An input that reads one of two streams of a container has the stream's name
/// behind it.
fn identity(name: &str, value: &str, len: Option<u64>) -> Result<(Identity, &'static str), String> {
    let stream = value.rsplit_once('-').map_or("", |(_, end)| stream_named(end));
    let value = if stream.is_empty() { value } else { &value[..value.len() - stream.len() - 1] };
    let numbers = || {
        let (inode, rest) = value.split_once('-')?;
        Some((inode.parse::<u64>().ok()?, rest))
    };
    let identity = match name {
        "fingerprint" => {
            let len = match len {
                None => None,
                Some(len) => Some(u32::try_from(len).map_err(|_| "the fingerprint is too long")?),
            };
            Identity::Fingerprint { hex: value.to_owned(), len }
        }
        "path" => Identity::Path(value.to_owned()),
        "native" => {
            let (inode, device) = numbers().ok_or("the key has no inode")?;
            let device = device.parse().map_err(|_| "the key has no device")?;
            Identity::Native { inode, device }
        }
        "inode_marker" => {
            let (inode, marker) = numbers().ok_or("the key has no inode")?;
            Identity::InodeMarker { inode, marker: marker.to_owned() }
        }
        name => other(name, value),
    };
    Ok((identity, stream))
}

fn stream_named(name: &str) -> &'static str {
    match name {
        "stdout" => "stdout",
        "stderr" => "stderr",
        _ => "",
    }
}

fn other(name: &str, value: &str) -> Identity {
    Identity::Other { name: name.to_owned(), value: value.to_owned() }
}

fn signed(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_f64().map(|number| number as i64))
}

/// A time: nanoseconds in the low half of the first number, seconds in the second. That it was never set
/// shows as a time before 1970.
fn time(value: &Value) -> Option<Timestamp> {
    let [extra, seconds] = value.as_array()?.as_slice() else { return None };
    let extra = unsigned(extra)?;
    let seconds = i64::try_from(unsigned(seconds)?).ok()?;
    let nanoseconds = i64::from(extra as u32);
    seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds).map(Timestamp)
}

fn pair(time: Timestamp) -> Value {
    let nanoseconds = time.0.rem_euclid(1_000_000_000) as u64;
    json!([UTC | nanoseconds, time.seconds() as u64])
}
