//! Files of Filebeat's own disk queue in the directory. They are not read: Filebeat must deliver them.

use super::DiskQueueError;
use super::format::{u32_at, u64_at};
use skidder_os::{FileKind, Fs, read_to_end};
use std::io;
use std::path::Path;

/// Name of Filebeat's state file.
const STATE_FILE: &str = "state.dat";

/// Bytes of the longest header of a segment of Filebeat (version 2).
const HEADER_MAX: u64 = 12;

/// Refuses a directory in which segments of Filebeat have events that were not delivered.
///
/// Filebeat names segments `N.seg`, and its state says in which of them, and at which byte, it goes on
/// (elastic/beats, `libbeat/publisher/queue/diskqueue/docs/on-disk-structures.md`, `state_file.go`).
pub(super) fn check(fs: &dyn Fs, directory: &Path) -> Result<(), DiskQueueError> {
    let failed = |source| DiskQueueError::io(directory, source);
    let mut numbers = Vec::new();
    let listed = fs.read_dir(directory, &mut |entry| {
        let name = entry.name.to_string_lossy();
        let number: Option<u64> = name.strip_suffix(".seg").and_then(|name| name.parse().ok());
        if entry.kind == FileKind::Regular {
            numbers.extend(number);
        }
    });
    match listed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(failed)?,
    }
    if numbers.is_empty() {
        return Ok(());
    }
    let (segment, byte) = read_state(fs, &directory.join(STATE_FILE)).map_err(failed)?;
    for number in numbers {
        let path = directory.join(format!("{number}.seg"));
        let size = fs.metadata(&path).map_err(|source| DiskQueueError::io(&path, source))?.size;
        let read = match number.cmp(&segment) {
            std::cmp::Ordering::Less => size,
            std::cmp::Ordering::Equal => byte.max(HEADER_MAX),
            std::cmp::Ordering::Greater => HEADER_MAX,
        };
        if size > read {
            return Err(DiskQueueError::Filebeat { directory: directory.to_path_buf() });
        }
    }
    Ok(())
}

/// The segment and the byte in it where Filebeat goes on: the beginning, if nothing says it.
fn read_state(fs: &dyn Fs, path: &Path) -> io::Result<(u64, u64)> {
    let file = match fs.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((0, 0)),
        Err(error) => return Err(error),
    };
    let bytes = read_to_end(&*file, 4096)?;
    if bytes.len() < 20 || u32_at(&bytes, 0) > 1 {
        return Ok((0, 0));
    }
    Ok((u64_at(&bytes, 4), u64_at(&bytes, 12)))
}
