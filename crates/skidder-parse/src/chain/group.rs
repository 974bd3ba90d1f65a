//! One group of lines on its way to an event: spans of its text, joined when it is complete.

use super::run::{Item, character_boundary};
use skidder_event::{Batch, Row, Text};

/// Bounds of a joined message, and what stands between its lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Bytes of the message; 0 = none.
    pub(super) bytes: usize,
    /// Lines of the message; 0 = none.
    pub(super) lines: u32,
    pub(super) separator: &'static [u8],
}

/// Lines that belong together. Empty if it has no first line.
#[derive(Debug, Default)]
pub(super) struct Group {
    first: Option<Item>,
    /// The message so far.
    parts: Vec<Text>,
    bytes: usize,
    /// Lines of the message.
    lines: u32,
    /// Lines that belong to it, in the message or not.
    seen: u32,
    truncated: bool,
    /// Whether the line that follows belongs to it, where that line has no say.
    open: bool,
    /// Where its last line ends in the source.
    end: u64,
}

impl Group {
    pub(super) fn clear(&mut self) {
        self.first = None;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(super) fn first(&self) -> Option<&Item> {
        self.first.as_ref()
    }

    /// Offset of its first line.
    pub(super) fn start(&self) -> Option<u64> {
        self.first.as_ref().map(|first| first.row.offset)
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    pub(super) fn seen(&self) -> u32 {
        self.seen
    }

    pub(super) fn is_truncated(&self) -> bool {
        self.truncated
    }

    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    pub(super) fn set_open(&mut self, open: bool) {
        self.open = open;
    }

    pub(super) fn set_truncated(&mut self) {
        self.truncated = true;
    }

    /// Bytes of the source from its first line to the end of its last.
    pub(super) fn extent(&self) -> u64 {
        self.start().map_or(0, |start| self.end - start)
    }

    /// Adds a line; the first of an empty group.
    pub(super) fn add(&mut self, batch: &mut Batch, item: &Item, bounds: Bounds) {
        let row = &item.row;
        let end = row.offset + u64::from(row.line_bytes);
        // Events of a grouping parser before this one may lie across each other.
        self.end = if self.first.is_some() { self.end.max(end) } else { end };
        match &mut self.first {
            None => {
                self.first = Some(*item);
                self.parts.clear();
                (self.bytes, self.lines, self.seen, self.truncated) = (0, 0, 0, false);
            }
            Some(first) => {
                batch.absorb(&mut first.row, row);
                first.row.offset = first.row.offset.min(row.offset);
                first.has_fields |= item.has_fields;
                first.flags |= item.flags;
            }
        }
        self.seen += 1;
        self.add_text(batch, row, bounds);
    }

    /// As Filebeat's message buffer does it: no separator before the first text, and lines beyond a bound
    /// count only if they have text.
    fn add_text(&mut self, batch: &Batch, row: &Row, bounds: Bounds) {
        let mut text = row.text().unwrap_or_default();
        let separator = if self.bytes > 0 { bounds.separator.len() } else { 0 };
        let full = bounds.bytes > 0 && self.bytes + separator >= bounds.bytes;
        if full || (bounds.lines > 0 && self.lines >= bounds.lines) {
            self.truncated |= text.len > 0;
            return;
        }
        let room =
            if bounds.bytes > 0 { bounds.bytes - self.bytes - separator } else { usize::MAX };
        if text.len as usize > room {
            text.len = character_boundary(batch.text(text), room) as u32;
            self.truncated = true;
        }
        if self.bytes == 0 {
            self.parts.clear();
        }
        self.bytes += separator + text.len as usize;
        self.lines += 1;
        if let Some(last) = self.parts.last_mut()
            && follows(batch, *last, text, &bounds.separator[..separator])
        {
            last.len += separator as u32 + text.len;
        } else {
            self.parts.push(text);
        }
    }

    /// Takes the event out; the group is empty then.
    pub(super) fn take(&mut self, batch: &mut Batch, separator: &[u8]) -> Option<Done> {
        let mut item = self.first.take()?;
        let text = match *self.parts {
            [] => Text::default(),
            [one] => one,
            _ => batch.append_joined(&self.parts, separator),
        };
        if text.len > 0 || item.row.text().is_some() {
            batch.set_text(&mut item.row, text);
        }
        item.row.line_bytes = (self.end - item.row.offset) as u32;
        Some(Done { item, lines: self.lines, truncated: self.truncated })
    }
}

/// A complete group.
pub(super) struct Done {
    pub(super) item: Item,
    pub(super) lines: u32,
    pub(super) truncated: bool,
}

/// Whether `text` stands behind `last` with nothing but the separator between them.
fn follows(batch: &Batch, last: Text, text: Text, separator: &[u8]) -> bool {
    let end = (last.start + last.len) as usize;
    let start = text.start as usize;
    start == end + separator.len() && batch.bytes()[end..start] == *separator
}
