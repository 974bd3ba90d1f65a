//! From lines in the bytes of a batch to the parsers, wherever the bytes come from: a file, or the standard input.

use skidder_decode::encoding::FileEncoding;
use skidder_event::{Batch, Row, Text};
use skidder_os::Timestamp;
use skidder_parse::chain::Run;

/// The byte order mark as UTF-8, which belongs to no line.
pub(crate) const UTF8_BOM: &[u8] = b"\xef\xbb\xbf";

/// One line: its first byte, its end, and where the next one begins.
pub type Span = (u32, u32, u32);

/// Lines that stand in the bytes of a batch.
#[derive(Clone, Copy, Debug)]
pub struct GivenLines<'a> {
    /// Where they stand.
    pub spans: &'a [Span],
    /// The encoding of the source.
    pub encoding: FileEncoding,
    /// Where the first byte of the batch stands in the source.
    pub offset: u64,
    /// Raw bytes of a line beyond which it is skipped whole.
    pub line_bytes_max: usize,
    /// Events that are enough for a batch.
    pub rows_max: usize,
    /// When they were read.
    pub now: Timestamp,
    /// Their events have `log.offset`.
    pub has_offset: bool,
}

impl GivenLines<'_> {
    /// Passes them to the parsers. Calls `too_long(offset, bytes)` for each line that is skipped. Returns whether it
    /// stopped because there are events enough.
    pub fn give(
        &self,
        run: &mut Run<'_>,
        batch: &mut Batch,
        mut too_long: impl FnMut(u64, usize),
    ) -> bool {
        for &(start, end, next) in self.spans {
            if run.is_full(batch, self.rows_max) {
                return true;
            }
            let offset = self.offset + u64::from(start);
            if (end - start) as usize > self.line_bytes_max {
                too_long(offset, (next - start) as usize);
                run.skipped_line(batch, offset, self.offset + u64::from(next));
                continue;
            }
            let mut from = start as usize;
            if offset == 0 {
                from += self.encoding.bom_bytes().min((end - start) as usize);
            }
            let mut text = if self.encoding.is_plain() {
                Text { start: from as u32, len: end - from as u32 }
            } else {
                // The line feed lets lines be joined where they stand.
                let text = batch.append_decoded(from..end as usize, |line, out| {
                    self.encoding.decode_line(line, out);
                    out.push(b'\n');
                });
                Text { len: text.len - 1, ..text }
            };
            if offset == 0 && batch.text(text).starts_with(UTF8_BOM) {
                text.start += UTF8_BOM.len() as u32;
                text.len -= UTF8_BOM.len() as u32;
            }
            let row = if self.has_offset { Row::new } else { Row::numbered };
            run.line(batch, row(offset, next - start, text, self.now.0));
        }
        false
    }
}
