//! What the names of files show about rotation.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Whether two paths look like the same file before and after a rotation: the same directory, and the same name except
/// for numbers, dates and `.gz` at the end.
pub(crate) fn is_related(one: &Path, other: &Path) -> bool {
    one.parent() == other.parent() && stem(one) == stem(other)
}

/// What rotation has appended to the name of a file, without `.gz`.
pub(in crate::catalog) fn rotated_suffix(path: &Path) -> &[u8] {
    let name = path.file_name().map_or(&b""[..], OsStr::as_bytes);
    let name = name.strip_suffix(b".gz").unwrap_or(name);
    let suffix = name.strip_prefix(stem(path)).unwrap_or_default();
    suffix.strip_prefix(b".").or(suffix.strip_prefix(b"-")).unwrap_or(suffix)
}

/// The name of a file without what rotation appends to it.
pub(in crate::catalog) fn stem(path: &Path) -> &[u8] {
    let mut name = path.file_name().map_or(&b""[..], OsStr::as_bytes);
    name = name.strip_suffix(b".gz").unwrap_or(name);
    loop {
        let digits = name
            .iter()
            .rev()
            .take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'T' | b':' | b'-' | b'_'))
            .count();
        let rest = &name[..name.len() - digits];
        match rest.strip_suffix(b".") {
            Some(rest) if digits > 0 => name = rest,
            _ if digits > 0 && !rest.is_empty() => return rest,
            _ => return name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotation_appends_numbers_dates_and_gz() {
        let cases: [(&str, &[u8], &[u8]); 7] = [
            ("/l/a.log", b"a.log", b""),
            ("/l/a.log.1", b"a.log", b"1"),
            ("/l/a.log.12.gz", b"a.log", b"12"),
            ("/l/a.log-20261121", b"a.log", b"20261121"),
            ("/l/0.log.20261121-101112", b"0.log", b"20261121-101112"),
            ("/l/a.log.gz", b"a.log", b""),
            ("/l/2026", b"2026", b""),
        ];
        for (path, name, suffix) in cases {
            let path = Path::new(path);
            assert_eq!((stem(path), rotated_suffix(path)), (name, suffix), "{}", path.display());
        }
    }

    #[test]
    fn only_files_in_one_directory_are_related() {
        let related = |one: &str, other: &str| is_related(Path::new(one), Path::new(other));
        assert!(related("/l/a.log", "/l/a.log.1") && related("/l/a.log.2.gz", "/l/a.log.1"));
        assert!(!related("/l/a.log", "/l/b.log.1") && !related("/l/a.log", "/m/a.log.1"));
    }
}
