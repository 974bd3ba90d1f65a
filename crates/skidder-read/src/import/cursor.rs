//! Whether a cursor of Filebeat can be right for the file that is there.

use super::Restart;
use super::files::Files;
use crate::fingerprint::read_up_to;
use crate::reader::TAIL_BYTES;
use crate::settings::FilestreamSettings;
use skidder_decode::lines::Splitter;
use skidder_registry::filebeat::FilebeatEntry;
use skidder_registry::{Cursor, Tail};

/// Bytes that a byte order mark may have.
const MARK_BYTES: usize = 4;

pub(super) enum Checked {
    Cursor(Cursor),
    Restart(Restart),
}

/// Filebeat keeps nothing of what was before a cursor, so that only two things can be checked of a plain
/// file: it is long enough, and a line ends at the cursor. A compressed file is checked when it is read.
pub(super) fn check(files: &mut Files<'_>, file: usize, entry: &FilebeatEntry) -> Checked {
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
    let mut mark = [0; MARK_BYTES];
    let read = files.open(file).and_then(|open| {
        read_up_to(&*open, &mut mark, 0)?;
        read_up_to(&*open, &mut bytes, offset - length)
    });
    match read {
        Ok(count) if count == bytes.len() => {}
        Ok(_) => return Checked::Restart(Restart::Shorter),
        Err(error) => return Checked::Restart(Restart::Unreadable(error.to_string())),
    }
    // At the end of the file there is nothing to read on, and an ignored file may end anywhere.
    let at_end = offset == found.metadata.size;
    if !at_end && !ends_line(files.settings, &mark, &bytes) {
        return Checked::Restart(Restart::InsideLine);
    }
    let tail = Tail { len: length as u32, crc: crc32fast::hash(&bytes) };
    Checked::Cursor(Cursor { tail: Some(tail), ..cursor })
}

/// Whether a cursor of ours is one of the file that is there: the bytes before it are those that were there. Of a
/// compressed file that shows when it is read.
pub(super) fn stands(files: &mut Files<'_>, file: usize, cursor: &Cursor) -> bool {
    let Some(tail) = cursor.tail else { return true };
    if files.head(file).as_ref().is_ok_and(|head| head.compressed) {
        return true;
    }
    let mut bytes = vec![0; tail.len as usize];
    let read = files.open(file).and_then(|open| {
        read_up_to(&*open, &mut bytes, cursor.offset.saturating_sub(u64::from(tail.len)))
    });
    read.is_ok_and(|count| count == bytes.len() && crc32fast::hash(&bytes) == tail.crc)
}

/// Whether a line ends behind `bytes`, which begin a whole number of characters before.
fn ends_line(settings: &FilestreamSettings, mark: &[u8], bytes: &[u8]) -> bool {
    let Ok(encoding) = settings.encoding.of_file(mark) else { return true };
    let splitter = Splitter::new(settings.line_terminator, encoding);
    splitter.is_none_or(|splitter| splitter.split(bytes, |_, _, _| {}) == bytes.len())
}
