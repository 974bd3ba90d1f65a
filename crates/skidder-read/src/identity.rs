//! `file_identity`: what a file is known by, and the keys of the registry that follow from it.
//!
//! Content is the identity that everything here is built for. The others are names that the system or the
//! user gives; they are trusted, and the bytes before the cursor are still checked, so that a
//! name that is used again never skips a byte.

use crate::settings::{FilestreamSettings, InputKind};
use skidder_os::{Fs, Metadata, Timestamp, read_to_end};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Bytes that a marker file has at most: it becomes a part of every key.
const MARKER_BYTES_MAX: usize = 1024;

/// How a file is recognised.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FileIdentity {
    /// Its first bytes, and all of them where these are not enough.
    #[default]
    Fingerprint,
    /// Inode and device.
    Native,
    /// Its path.
    Path,
    /// Inode, and the content of this file instead of a device number that changes.
    InodeMarker(PathBuf),
}

impl FileIdentity {
    /// The name in the registry and in `file_identity`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Fingerprint => "fingerprint",
            Self::Native => "native",
            Self::Path => "path",
            Self::InodeMarker(_) => "inode_marker",
        }
    }

    /// Whether files are known by what they hold, and not by a name.
    pub fn is_content(&self) -> bool {
        matches!(self, Self::Fingerprint)
    }

    /// The name that identifies a file; `None` if only its content does.
    pub(crate) fn name_of(&self, path: &Path, meta: &Metadata, marker: &str) -> Option<String> {
        match self {
            Self::Fingerprint => None,
            Self::Native => Some(format!("{}-{}", meta.inode, meta.device)),
            Self::Path => Some(text_of(path)),
            Self::InodeMarker(_) => Some(format!("{}-{marker}", meta.inode)),
        }
    }
}

/// A path as a part of a key: as it is, unless it is no UTF-8. Then its other bytes are written as `\xNN`,
/// so that two paths never have one key.
fn text_of(path: &Path) -> String {
    use std::fmt::Write;
    let bytes = path.as_os_str().as_bytes();
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            write!(text, "\\x{byte:02x}").expect("writing to a string cannot fail");
        }
    }
    text
}

/// The marker file of `inode_marker`, read again when it changes.
#[derive(Debug, Default)]
pub(crate) struct Marker {
    text: Option<String>,
    modified: Timestamp,
    failure_logged: bool,
}

impl Marker {
    /// Reads the file again if it has changed. Keeps the last content while the file cannot be read.
    pub(crate) fn refresh(&mut self, fs: &dyn Fs, identity: &FileIdentity) {
        let FileIdentity::InodeMarker(path) = identity else { return };
        match read_marker(fs, path, self.text.as_ref().map(|_| self.modified)) {
            Ok(Some((text, modified))) => {
                if self.text.as_ref().is_some_and(|before| *before != text) {
                    tracing::warn!(path = %path.display(),
                        "the marker file has changed: files are other files now and are read from the start");
                }
                (self.text, self.modified) = (Some(text), modified);
                self.failure_logged = false;
            }
            Ok(None) => self.failure_logged = false,
            Err(error) => {
                if !std::mem::replace(&mut self.failure_logged, true) {
                    tracing::error!(path = %path.display(), %error,
                        "the marker file of `file_identity.inode_marker` cannot be read; what it held before \
                         counts, and without it no file is read");
                }
            }
        }
    }

    /// The content of the file; `None` while it was never read.
    pub(crate) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }
}

/// The content of a marker file and the time of its last change; `None` if that is `known`.
fn read_marker(
    fs: &dyn Fs,
    path: &Path,
    known: Option<Timestamp>,
) -> io::Result<Option<(String, Timestamp)>> {
    let file = fs.open(path)?;
    let modified = file.metadata()?.modified;
    if known == Some(modified) {
        return Ok(None);
    }
    let bytes = read_to_end(&*file, MARKER_BYTES_MAX)?;
    Ok(Some((String::from_utf8_lossy(&bytes).into_owned(), modified)))
}

/// Checks, during validation of the settings, that a marker file can be read.
pub fn check_marker(fs: &dyn Fs, path: &Path) -> io::Result<()> {
    read_marker(fs, path, None).map(drop)
}

/// What the keys of all `log` and `container` inputs begin with.
pub const LOG_PREFIX: &str = "filebeat::logs::";

/// What the keys of a filestream input with this id begin with, whatever its identity.
pub fn filestream_prefix(id: &str) -> String {
    let id = if id.is_empty() { ".global" } else { id };
    format!("filestream::{id}::")
}

impl FilestreamSettings {
    /// What all keys of this input begin with.
    pub fn key_prefix(&self) -> String {
        let kind = match self.kind {
            InputKind::Filestream => filestream_prefix(&self.id),
            InputKind::Log | InputKind::Container => LOG_PREFIX.to_owned(),
            InputKind::Objects(name) => format!("{name}::{}::", self.id),
        };
        format!("{kind}{}::", self.identity.name())
    }

    /// The key in the registry of the file with this identity value.
    pub fn key(&self, value: &str) -> String {
        let mut key = self.key_prefix();
        // There may be very many of them.
        key.reserve_exact(value.len() + self.key_suffix.len() + 1);
        key.push_str(value);
        if !self.key_suffix.is_empty() {
            key.push('-');
            key.push_str(self.key_suffix);
        }
        key
    }

    /// The identity value in a key of this input.
    pub fn value_in<'a>(&self, key: &'a str) -> Option<&'a str> {
        let value = key.strip_prefix(&self.key_prefix())?;
        if self.key_suffix.is_empty() {
            return Some(value);
        }
        value.strip_suffix(self.key_suffix)?.strip_suffix('-')
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::ScanSettings;
    use crate::testing::metadata;

    #[test]
    fn keys_are_those_of_filebeat() {
        let path = Path::new("/var/log/a.log");
        let meta = metadata(2049, 12);
        let key = |id: &str, identity: FileIdentity| {
            let mut settings = FilestreamSettings::new(id, ScanSettings::default());
            let value =
                identity.name_of(path, &meta, "host-7").unwrap_or_else(|| "ab12".to_owned());
            settings.identity = identity;
            let key = settings.key(&value);
            assert_eq!(settings.value_in(&key), Some(&*value));
            key
        };
        assert_eq!(key("my", FileIdentity::Fingerprint), "filestream::my::fingerprint::ab12");
        assert_eq!(key("my", FileIdentity::Native), "filestream::my::native::12-2049");
        assert_eq!(key("", FileIdentity::Path), "filestream::.global::path::/var/log/a.log");
        let marker = FileIdentity::InodeMarker(PathBuf::from("/etc/marker"));
        assert_eq!(key("my", marker), "filestream::my::inode_marker::12-host-7");
    }

    #[test]
    fn a_stream_of_a_container_has_keys_of_its_own() {
        let mut settings = FilestreamSettings::new("my", ScanSettings::default());
        settings.key_suffix = "stdout";
        assert_eq!(settings.key("ab"), "filestream::my::fingerprint::ab-stdout");
        assert_eq!(settings.value_in("filestream::my::fingerprint::ab-stdout"), Some("ab"));
        assert_eq!(settings.value_in("filestream::my::fingerprint::ab-stderr"), None);
    }

    #[test]
    fn paths_that_are_no_text_have_different_keys() {
        use std::ffi::OsStr;
        let of = |bytes: &[u8]| text_of(Path::new(OsStr::from_bytes(bytes)));
        assert_eq!(of(b"/a\xff"), "/a\\xff");
        assert_ne!(of(b"/a\xff"), of(b"/a\xfe"));
    }
}
