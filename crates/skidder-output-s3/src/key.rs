//! Keys of objects: a prefix from the events, and a unique name.

use skidder_aws::time_text;
use skidder_os::Timestamp;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Longest key, in bytes (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html>).
const KEY_BYTES_MAX: usize = 1024;
/// Room in it for the name: time, run, number.
const NAME_BYTES_MAX: usize = 64;

/// Why a text is no beginning of a key. An event with such a text can never be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KeyError {
    #[error("`key_prefix` gives a text for it that is not UTF-8")]
    NotUtf8,
    #[error("`key_prefix` gives a text for it with a control character, which no listing can show")]
    Control,
    #[error("`key_prefix` gives a text for it with an empty part, `.` or `..` between slashes")]
    Part,
    #[error(
        "`key_prefix` gives a text for it that is longer than a key can be ({KEY_BYTES_MAX} bytes with the name)"
    )]
    Long,
}

/// What a key begins with, without slashes at its own beginning. Parts that some servers take for directories, as `..`, are
/// refused: they may come from a log.
pub(crate) fn checked<'a>(prefix: &'a [u8], extension: &str) -> Result<&'a str, KeyError> {
    let text = std::str::from_utf8(prefix).map_err(|_| KeyError::NotUtf8)?;
    let text = text.trim_start_matches('/');
    if text.chars().any(char::is_control) {
        return Err(KeyError::Control);
    }
    if let Some((folders, _)) = text.rsplit_once('/')
        && folders.split('/').any(|part| matches!(part, "" | "." | ".."))
    {
        return Err(KeyError::Part);
    }
    if text.len() + NAME_BYTES_MAX + extension.len() > KEY_BYTES_MAX {
        return Err(KeyError::Long);
    }
    Ok(text)
}

/// Names objects: the time of their first event's coming, this run of the output, and a number. Cloning gives another handle.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    run: u64,
    next: Arc<AtomicU64>,
    extension: Arc<str>,
}

impl Names {
    pub(crate) fn new(extension: &str) -> Self {
        // Its keys are random.
        let run = RandomState::new().hash_one(std::process::id());
        Self { run, next: Arc::default(), extension: extension.into() }
    }

    /// A key that no other object has, also none of another run or machine.
    pub(crate) fn key(&self, prefix: &str, time: Timestamp) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (time, run, extension) = (time_text(time), self.run, &self.extension);
        format!("{prefix}{time}-{run:016x}-{number}{extension}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_no_parts_that_a_server_could_take_for_something_else() {
        let long = "x".repeat(KEY_BYTES_MAX - NAME_BYTES_MAX - 3);
        let longer = format!("{long}x");
        let table: [(&[u8], _); 12] = [
            (b"", Ok("")),
            (b"web/2026/", Ok("web/2026/")),
            (b"//web/x-", Ok("web/x-")),
            ("ä b/".as_bytes(), Ok("ä b/")),
            (b"..", Ok("..")),
            (long.as_bytes(), Ok(&long)),
            (longer.as_bytes(), Err(KeyError::Long)),
            (b"a//b", Err(KeyError::Part)),
            (b"a/../b", Err(KeyError::Part)),
            (b"./b", Err(KeyError::Part)),
            (b"a\nb", Err(KeyError::Control)),
            (b"a\xff", Err(KeyError::NotUtf8)),
        ];
        for (prefix, expected) in table {
            assert_eq!(checked(prefix, ".gz"), expected, "{}", prefix.escape_ascii());
        }
    }

    #[test]
    fn no_two_objects_have_the_same_name() {
        let time = Timestamp(1_767_323_045_000_000_000);
        let (one, other) = (Names::new(".ndjson.gz"), Names::new(".ndjson.gz"));
        let key = one.key("web/", time);
        let end = key.strip_prefix("web/20260102T030405Z-").unwrap();
        assert!(end.ends_with("-0.ndjson.gz") && end.len() == 16 + "-0.ndjson.gz".len(), "{key}");
        assert!(one.clone().key("web/", time) > key);
        assert_ne!(other.key("web/", time), key);
        let longest = Names { next: Arc::new(AtomicU64::new(u64::MAX)), ..one }.key("", time);
        assert!(longest.len() <= NAME_BYTES_MAX + ".ndjson.gz".len(), "{longest}");
    }
}
