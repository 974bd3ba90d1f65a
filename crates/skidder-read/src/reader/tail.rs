//! The check value over the bytes before a cursor.

use super::{Reader, TAIL_BYTES, TAIL_BYTES_MAX};
use crate::fingerprint::read_up_to;
use crc32fast::Hasher;
use skidder_event::Tail;

impl Reader {
    /// The check value for a cursor behind `bytes`, which begin at `start` in the file.
    ///
    /// A few bytes prove little: an empty line at the same place in another log with the same header would do. So a short
    /// batch has those before it covered as well: by going on with the value of the cursor, or, if that has become too
    /// long for it, by reading them again. In a compressed file, which is seldom read in small pieces, that is left out.
    pub(super) fn tail_behind(&self, bytes: &[u8], start: u64) -> Tail {
        let new = &bytes[bytes.len().saturating_sub(TAIL_BYTES)..];
        let (mut hasher, mut len) = (Hasher::new(), 0);
        if new.len() < TAIL_BYTES && start > 0 {
            let before = self.tail.filter(|before| {
                start == self.offset && before.len as usize + new.len() <= TAIL_BYTES_MAX
            });
            if let Some(before) = before {
                (hasher, len) = (Hasher::new_with_initial(before.crc), before.len);
            } else if let Some(file) = self.file.as_ref().filter(|_| !self.target.compressed) {
                let mut again = [0; TAIL_BYTES];
                let wanted =
                    (TAIL_BYTES - new.len()).min(usize::try_from(start).unwrap_or(TAIL_BYTES));
                let again = &mut again[..wanted];
                if read_up_to(&**file, again, start - wanted as u64)
                    .is_ok_and(|count| count == wanted)
                {
                    hasher.update(again);
                    len = wanted as u32;
                }
            }
        }
        hasher.update(new);
        Tail { len: len + new.len() as u32, crc: hasher.finalize() }
    }
}
