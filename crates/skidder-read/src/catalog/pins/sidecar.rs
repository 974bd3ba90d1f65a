//! The path of a pinned file whose pin has no room for it in its name: `4.path` beside the pin `4`, with nothing but the
//! path in it.
//!
//! It is on the disk before there is a pin, and goes behind it: one without a pin means nothing.

use skidder_os::{Fs, OpenMode, read_to_end, write_all_at};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// What its name ends with, behind that of its pin.
const EXTENSION: &str = "path";
/// Longest path that Linux takes, in bytes (`PATH_MAX`).
const PATH_BYTES_MAX: usize = 4096;
/// A path may tell more than its file: only we may read it.
const FILE_MODE: u32 = 0o600;

/// Where the path of the file of `pin` is kept.
fn of(pin: &Path) -> PathBuf {
    pin.with_extension(EXTENSION)
}

/// The pin that a file of this path is for; nothing if it is no sidecar.
pub(super) fn pin_of(path: &Path) -> Option<PathBuf> {
    let number = path.file_stem()?.to_str()?;
    let is_one = path.extension()? == EXTENSION && number.parse::<u64>().is_ok();
    is_one.then(|| path.with_extension(""))
}

/// Keeps `path` for `pin`, durable but for its name.
pub(super) fn write(fs: &dyn Fs, pin: &Path, path: &Path) -> io::Result<()> {
    let file = fs.open_write(&of(pin), OpenMode::Truncate, FILE_MODE)?;
    write_all_at(&*file, path.as_os_str().as_bytes(), 0)?;
    file.sync()
}

/// The path that is kept for `pin`; nothing if there is none, or not all of it.
pub(super) fn read(fs: &dyn Fs, pin: &Path) -> Option<PathBuf> {
    let bytes = fs.open(&of(pin)).and_then(|file| read_to_end(&*file, PATH_BYTES_MAX)).ok()?;
    (!bytes.is_empty()).then(|| OsString::from_vec(bytes).into())
}

/// Removes what is kept for `pin`, if there is something.
pub(super) fn remove(fs: &dyn Fs, pin: &Path) -> io::Result<()> {
    match fs.remove_file(&of(pin)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sidecar_is_known_by_its_name() {
        assert_eq!(pin_of(Path::new("/p/4.path")), Some(PathBuf::from("/p/4")));
        for path in ["/p/4", "/p/4-a.path", "/p/a.path", "/p/.path", "/p/4.paths"] {
            assert_eq!(pin_of(Path::new(path)), None, "{path}");
        }
    }
}
