//! The path of a pinned file, if it does not fit into the name of the pin: a file `4.path` beside the pin `4`
//! has it.
//!
//! The sidecar is on the disk before the pin, and removed after it: a sidecar without a pin means nothing.

use skidder_os::{Fs, OpenMode, read_to_end, write_all_at};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// Extension of a sidecar, after the name of its pin.
const EXTENSION: &str = "path";
/// Longest path that Linux takes, in bytes (`PATH_MAX`).
const PATH_BYTES_MAX: usize = 4096;
/// A path may be confidential: only our user may read it.
const FILE_MODE: u32 = 0o600;

/// The sidecar of a pin.
fn of(pin: &Path) -> PathBuf {
    pin.with_extension(EXTENSION)
}

/// The pin that a sidecar belongs to; `None` if the path is no sidecar.
pub(super) fn pin_of(path: &Path) -> Option<PathBuf> {
    let number = path.file_stem()?.to_str()?;
    let is_one = path.extension()? == EXTENSION && number.parse::<u64>().is_ok();
    is_one.then(|| path.with_extension(""))
}

/// Writes the path of the file of a pin, and syncs it except for its name.
pub(super) fn write(fs: &dyn Fs, pin: &Path, path: &Path) -> io::Result<()> {
    let file = fs.open_write(&of(pin), OpenMode::Truncate, FILE_MODE)?;
    write_all_at(&*file, path.as_os_str().as_bytes(), 0)?;
    file.sync()
}

/// The path that was written for `pin`; `None` if there is none, or it is incomplete.
pub(super) fn read(fs: &dyn Fs, pin: &Path) -> Option<PathBuf> {
    let bytes = fs.open(&of(pin)).and_then(|file| read_to_end(&*file, PATH_BYTES_MAX)).ok()?;
    (!bytes.is_empty()).then(|| OsString::from_vec(bytes).into())
}

/// Removes the sidecar of a pin, if it has one.
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
