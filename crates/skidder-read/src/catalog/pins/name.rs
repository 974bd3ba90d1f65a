//! The name of a pin: a number, and the path of its file, which identifies the file until something of it is
//! saved.
//!
//! `4-%2Flogs%2Fa.log`: a name cannot have a slash, so a slash is written as `%2F`, and the percent sign as
//! `%25`. If that is too long, the name is only the number, and the path is in a file beside it
//! (`sidecar.rs`).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Longest name that Linux takes, in bytes (`NAME_MAX`); eCryptfs takes less.
const NAME_BYTES_MAX: usize = 255;

/// Only the number.
pub(super) fn short(number: u64) -> OsString {
    number.to_string().into()
}

/// The number and the path, if they fit.
pub(super) fn long(number: u64, path: &Path) -> Option<OsString> {
    let mut name = format!("{number}-").into_bytes();
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' => name.extend_from_slice(b"%2F"),
            b'%' => name.extend_from_slice(b"%25"),
            _ => name.push(byte),
        }
    }
    (name.len() <= NAME_BYTES_MAX).then(|| OsString::from_vec(name))
}

/// The number in a name; `None` if it is no name of a pin.
pub(super) fn number(name: &OsStr) -> Option<u64> {
    let number = name.as_bytes().split(|byte| *byte == b'-').next()?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// The path in a name, if there is one.
pub(super) fn path(name: &OsStr) -> Option<PathBuf> {
    number(name)?;
    let at = name.as_bytes().iter().position(|byte| *byte == b'-')?;
    let mut path = Vec::new();
    let mut rest = &name.as_bytes()[at + 1..];
    while let Some((&byte, behind)) = rest.split_first() {
        let (byte, behind) = match byte {
            b'%' => match behind.split_at_checked(2)? {
                (b"2F", behind) => (b'/', behind),
                (b"25", behind) => (b'%', behind),
                _ => return None,
            },
            _ => (byte, behind),
        };
        path.push(byte);
        rest = behind;
    }
    (!path.is_empty()).then(|| OsString::from_vec(path).into())
}

#[cfg(test)]
mod tests {
    //! There and back.

    use super::*;

    #[test]
    fn a_path_is_what_it_was() {
        let strange = OsString::from_vec(b"/l/\xff%2F 1-\n%".to_vec());
        for of in ["/logs/a.log", "7-logs/a", "/a%2Fb/%25/c d"].map(OsString::from) {
            assert_eq!(path(&long(4, Path::new(&of)).unwrap()).unwrap(), of);
        }
        let name = long(12, Path::new(&strange)).unwrap();
        assert_eq!((number(&name), path(&name)), (Some(12), Some(strange.into())));
    }

    #[test]
    fn a_long_path_is_left_out_and_a_number_alone_is_a_name() {
        let fits = "x".repeat(NAME_BYTES_MAX - "4-".len());
        assert!(long(4, Path::new(&fits)).is_some());
        assert_eq!(long(10, Path::new(&fits)), None);
        assert_eq!(long(4, Path::new(&format!("/{fits}"))), None);
        assert_eq!((number(&short(7)), path(&short(7))), (Some(7), None));
    }

    #[test]
    fn what_is_no_name_of_a_pin_says_nothing() {
        for name in ["", "a", "-", "a-b", "4-", "4-%", "4-%2", "4-%20", "4-a%2f"] {
            assert_eq!(path(OsStr::new(name)), None, "{name}");
        }
        for name in ["", "a", "-", "a-4"] {
            assert_eq!(number(OsStr::new(name)), None, "{name}");
        }
    }
}
