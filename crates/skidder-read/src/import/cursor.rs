//! Whether a cursor of Filebeat can be right for the file that is there.

use super::Restart;
use super::files::Files;
use crate::fingerprint::read_up_to;
use crate::reader::TAIL_BYTES;
use skidder_os::Fs;
use skidder_registry::filebeat::FilebeatEntry;
use skidder_registry::{Cursor, Tail};

/// The last bytes of all line terminators that there are, in ASCII, UTF-8 and UTF-16.
const LINE_ENDS: [u8; 8] = [b'\n', b'\r', 0x0b, 0x0c, 0, 0x85, 0xa8, 0xa9];

pub(super) enum Checked {
    Cursor(Cursor),
    Restart(Restart),
}

/// Filebeat keeps nothing of what was before a cursor, so that only two things can be checked of a plain
/// file: it is long enough, and a line ends at the cursor. A compressed file is checked when it is read.
pub(super) fn check(
    fs: &dyn Fs,
    files: &mut Files<'_>,
    file: usize,
    entry: &FilebeatEntry,
) -> Checked {
    let compressed = files.head(file).as_ref().is_ok_and(|head| head.compressed);
    let found = files.found(file);
    let offset = entry.offset.unwrap_or(0);
    let eof = entry.eof && compressed;
    if offset == 0 && !eof {
        return Checked::Restart(Restart::Unread);
    }
    let cursor = Cursor { offset, generation: 0, eof, tail: None };
    if compressed {
        return Checked::Cursor(cursor);
    }
    if offset > found.metadata.size {
        return Checked::Restart(Restart::Shorter);
    }
    let length = (TAIL_BYTES as u64).min(offset);
    let mut bytes = vec![0; length as usize];
    let read =
        fs.open(&found.path).and_then(|open| read_up_to(&*open, &mut bytes, offset - length));
    match read {
        Ok(count) if count == bytes.len() => {}
        Ok(_) => return Checked::Restart(Restart::Shorter),
        Err(error) => return Checked::Restart(Restart::Unreadable(error.to_string())),
    }
    // At the end of the file there is nothing to read on, and an ignored file may end anywhere.
    let at_end = offset == found.metadata.size;
    let line_ends = bytes.last().is_some_and(|byte| LINE_ENDS.contains(byte));
    if !at_end && !line_ends {
        return Checked::Restart(Restart::InsideLine);
    }
    let tail = Tail { len: length as u32, crc: crc32fast::hash(&bytes) };
    Checked::Cursor(Cursor { tail: Some(tail), ..cursor })
}
