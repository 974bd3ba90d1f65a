//! Lines of a text: which ones match, how old they are, and their context.

use super::time::time_of;
use super::{LINE_BYTES_MAX, Question, SHOWN_BYTES};

/// Shown bytes of the line before and of the one behind.
const CONTEXT_BYTES: usize = 512;

/// A part of a file that begins with a line, unless the line before was too long.
pub(super) struct Piece<'a> {
    pub(super) text: &'a [u8],
    /// Decompressed bytes before it.
    pub(super) at: u64,
    /// A last line without a feed is one.
    pub(super) is_last: bool,
}

/// A line that was found.
#[derive(Debug)]
pub(super) struct Hit {
    pub(super) offset: u64,
    /// Its beginning.
    pub(super) line: String,
    /// Its length.
    pub(super) bytes: usize,
    /// Its time, or that of a line before.
    pub(super) time: Option<i64>,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
    /// Nothing behind it was looked at yet.
    pub(super) is_end: bool,
}

/// The state from the lines before a piece, and from those that were searched.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The last time that was recognised.
    time: Option<i64>,
    /// The line before.
    before: Option<String>,
    /// The piece begins inside of a line that is too long.
    long: bool,
    /// The newest time that was recognised.
    pub(super) newest: Option<i64>,
    /// The first line.
    pub(super) first: Option<String>,
    pub(super) lines: u64,
    pub(super) found: usize,
}

impl Seen {
    /// Time and context from the end of the text before a piece. It may begin inside of a line.
    pub(super) fn before(text: &[u8], question: &Question) -> Self {
        let mut seen = Self::default();
        let mut end = text.len();
        while end > 0 && seen.time.is_none() {
            let begin = memchr::memrchr(b'\n', &text[..end - 1]).map_or(0, |feed| feed + 1);
            let line = of_line(&text[begin..end]);
            seen.before = seen.before.or_else(|| Some(cut(line, CONTEXT_BYTES)));
            seen.time = time_of(line, &question.zone);
            end = begin;
        }
        seen
    }

    /// Searches the whole lines of a piece; returns how many bytes they have.
    pub(super) fn look(
        &mut self,
        piece: &Piece<'_>,
        question: &Question,
        hits: &mut Vec<Hit>,
    ) -> usize {
        let text = piece.text;
        let mut start = 0;
        let mut last: Option<&[u8]> = None;
        while start < text.len() {
            let feed = memchr::memchr(b'\n', &text[start..]);
            let end = feed.map_or(text.len(), |feed| start + feed + 1);
            let is_whole = feed.is_some() || piece.is_last;
            if !is_whole && end - start <= LINE_BYTES_MAX {
                break;
            }
            // A line that begins in the middle is the rest of one that was too long.
            if !std::mem::replace(&mut self.long, !is_whole) {
                let line = of_line(&text[start..end]);
                self.line(line, piece.at + start as u64, last, question, hits);
                last = Some(line);
            }
            start = end;
        }
        if let Some(last) = last {
            self.before = Some(cut(last, CONTEXT_BYTES));
        }
        start
    }

    fn line(
        &mut self,
        line: &[u8],
        offset: u64,
        last: Option<&[u8]>,
        question: &Question,
        hits: &mut Vec<Hit>,
    ) {
        self.lines += 1;
        if self.first.is_none() {
            self.first = Some(cut(line, CONTEXT_BYTES));
        }
        if let Some(hit) = hits.last_mut().filter(|hit| hit.is_end) {
            hit.after = Some(cut(line, CONTEXT_BYTES));
            hit.is_end = false;
        }
        let own = time_of(line, &question.zone);
        self.newest = self.newest.max(own);
        self.time = own.or(self.time);
        let is_out = |time: i64| {
            question.from.is_some_and(|from| time < from) || question.to.is_some_and(|to| time > to)
        };
        if self.time.is_some_and(is_out) || !question.filter.holds_line(line) {
            return;
        }
        self.found += 1;
        hits.push(Hit {
            offset,
            line: cut(line, SHOWN_BYTES),
            bytes: line.len(),
            time: self.time,
            before: last.map(|last| cut(last, CONTEXT_BYTES)).or_else(|| self.before.clone()),
            after: None,
            is_end: true,
        });
    }
}

/// A line without its end.
fn of_line(text: &[u8]) -> &[u8] {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    text.strip_suffix(b"\r").unwrap_or(text)
}

fn cut(line: &[u8], bytes: usize) -> String {
    String::from_utf8_lossy(&line[..line.len().min(bytes)]).into_owned()
}
