//! Searching the files, one after the other.
//!
//! The newest lines come first: files are ordered by the time of their last change, the newest first, and a plain file is
//! read from its end, block by block. Compressed files can only be read from their beginning; the last lines that were
//! found are returned when their end is reached. The time of a line is the one that it begins with, or that of the line
//! before it, or else its file's last change.

use super::text::{Hit, Piece, Seen};
use super::{
    BYTES_MAX, CHUNK_BYTES, LINE_BYTES_MAX, PROBLEMS_MAX, PROGRESS_EVERY, Question, TIME_MAX,
    Target,
};
use crate::files::millis;
use serde_json::{Value as Json, json};
use skidder_decode::{Codec, DecodeError, Decoder, DecoderPool, ReadState};
use skidder_os::{Clock, File, Fs, Monotonic, open_same, read_exact_at};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::path::Path;

/// Bytes of a plain file that are looked at together.
const BLOCK_BYTES: u64 = 1 << 20;
/// Bytes before them in which the line before is looked for, and the last time.
const LOOKBACK_BYTES: u64 = 64 << 10;
/// Lines of a log are in the order of their times but for so much, in nanoseconds.
const DISORDER: i64 = 3_600_000_000_000;

/// A search under way.
pub(super) struct Search<'a> {
    question: &'a Question,
    fs: &'a dyn Fs,
    clock: &'a dyn Clock,
    pool: DecoderPool,
    stored: Vec<u8>,
    text: Vec<u8>,
    start: Monotonic,
    progress_at: Monotonic,
    bytes: u64,
    lines: u64,
    found: usize,
    /// How new the lines are that were sent and are among the newest, the oldest on top.
    newest: BinaryHeap<Reverse<i64>>,
    /// There are more than were sent.
    more: bool,
    done: usize,
    skipped: usize,
    problems: usize,
}

/// Why a search ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// All files are looked through.
    All,
    /// There are older lines than the newest that are shown.
    Enough,
    Bytes,
    Time,
}

/// Why one file ends.
enum Stop {
    Search(Reason),
    /// The client is gone.
    Alone,
}

type Send<'a> = &'a mut dyn FnMut(Json) -> bool;

impl<'a> Search<'a> {
    pub(super) fn new(
        question: &'a Question,
        fs: &'a dyn Fs,
        clock: &'a dyn Clock,
        skipped: usize,
    ) -> Self {
        let now = clock.monotonic();
        Self {
            question,
            fs,
            clock,
            pool: DecoderPool::new(1),
            stored: vec![0; CHUNK_BYTES],
            text: Vec::new(),
            start: now,
            progress_at: now,
            bytes: 0,
            lines: 0,
            found: 0,
            newest: BinaryHeap::new(),
            more: false,
            done: 0,
            skipped,
            problems: 0,
        }
    }

    /// Searches the files; nothing if the client is gone.
    pub(super) fn all(&mut self, files: &[Target], send: Send<'_>) -> Option<Reason> {
        for file in files {
            if self.is_too_old(file.modified) {
                // All that follow are older.
                self.more = true;
                break;
            }
            match self.file(file, files.len(), send) {
                Ok(()) => {}
                Err(Stop::Search(reason)) => return Some(reason),
                Err(Stop::Alone) => return None,
            }
            self.done += 1;
        }
        Some(if self.more { Reason::Enough } else { Reason::All })
    }

    pub(super) fn summary(&self, reason: Reason, files: usize) -> Json {
        let reason = match reason {
            Reason::All => "all",
            Reason::Enough => "enough",
            Reason::Bytes => "bytes",
            Reason::Time => "time",
        };
        let mut summary = self.progress(files);
        summary["reason"] = reason.into();
        summary["took_ms"] = millis(self.clock.monotonic().since(self.start)).into();
        summary
    }

    fn progress(&self, files: usize) -> Json {
        json!({
            "files": files,
            "done": self.done,
            "skipped": self.skipped,
            "problems": self.problems,
            "bytes": self.bytes,
            "lines": self.lines,
            "found": self.found,
        })
    }

    fn problem(&mut self, path: &Path, message: &str, send: Send<'_>) -> Result<(), Stop> {
        self.problems += 1;
        if self.problems > PROBLEMS_MAX {
            return Ok(());
        }
        let record = json!({ "problem": { "path": path.to_string_lossy(), "message": message } });
        if send(record) { Ok(()) } else { Err(Stop::Alone) }
    }

    /// Whether nothing that is so old would be among the newest lines. Of lines of the same age those that came first stay.
    fn is_too_old(&self, time: i64) -> bool {
        self.newest.len() >= self.question.limit
            && self.newest.peek().is_some_and(|Reverse(oldest)| time <= *oldest)
    }

    /// Sends lines of one piece, the last one first, as far as they are among the newest.
    fn offer(&mut self, file: &Target, hits: Vec<Hit>, send: Send<'_>) -> Result<(), Stop> {
        for hit in hits.into_iter().rev() {
            let rank = hit.time.unwrap_or(file.modified);
            if self.newest.len() >= self.question.limit {
                self.more = true;
                if self.is_too_old(rank) {
                    continue;
                }
                self.newest.pop();
            }
            self.newest.push(Reverse(rank));
            let found = json!({ "match": {
                "path": file.path.to_string_lossy(),
                "offset": hit.offset,
                "line": hit.line,
                "bytes": hit.bytes,
                "time_ms": hit.time.map(|time| time / 1_000_000),
                // As exact as a number of JavaScript can be.
                "rank": rank / 1_000,
                "before": hit.before,
                "after": hit.after,
            }});
            if !send(found) {
                return Err(Stop::Alone);
            }
        }
        Ok(())
    }

    fn file(&mut self, file: &Target, files: usize, send: Send<'_>) -> Result<(), Stop> {
        let opened = open_same(self.fs, &file.path, file.id);
        let opened = opened.map_err(|error| error.to_string()).and_then(|open| {
            let codec = Codec::detect(&*open).map_err(|error| error.to_string())?;
            Ok((open, codec))
        });
        match opened {
            Ok((open, None)) => self.plain(file, &*open, files, send),
            Ok((open, codec)) => self.compressed(file, &*open, codec, files, send),
            Err(message) => self.problem(&file.path, &message, send),
        }
    }

    /// Looks through a plain file from its end.
    fn plain(
        &mut self,
        file: &Target,
        open: &dyn File,
        files: usize,
        send: Send<'_>,
    ) -> Result<(), Stop> {
        let mut text = std::mem::take(&mut self.text);
        let mut end = match open.metadata() {
            Ok(metadata) => metadata.size,
            Err(error) => return self.problem(&file.path, &error.to_string(), send),
        };
        let mut behind = None;
        let result = loop {
            if end == 0 {
                break Ok(());
            }
            let block = match Block::read(open, end, &mut text) {
                Ok(block) => block,
                Err(error) => break self.problem(&file.path, &error.to_string(), send),
            };
            let mut seen = Seen::before(&text[..block.first], self.question);
            let piece = Piece { text: &text[block.first..block.end], at: block.at, is_last: true };
            let mut hits = Vec::new();
            seen.look(&piece, self.question, &mut hits);
            if let (Some(hit), Some(first)) = (hits.last_mut(), behind)
                && hit.is_end
            {
                hit.after = Some(first);
            }
            self.count(block.bytes, &mut seen);
            if let Err(stop) = self.offer(file, hits, send) {
                break Err(stop);
            }
            behind = seen.first.take();
            end = block.at;
            if let Err(stop) = self.go_on(&file.path, files, send) {
                break Err(stop);
            }
            let is_before = |from: i64| seen.newest.is_some_and(|time| time < from - DISORDER);
            if self.question.from.is_some_and(is_before) {
                break Ok(());
            }
            if end > 0 && self.is_too_old(seen.newest.unwrap_or(file.modified)) {
                self.more = true;
                break Ok(());
            }
        };
        text.clear();
        self.text = text;
        result
    }

    /// Looks through a compressed file, decoded chunk by chunk.
    fn compressed(
        &mut self,
        file: &Target,
        open: &dyn File,
        codec: Option<Codec>,
        files: usize,
        send: Send<'_>,
    ) -> Result<(), Stop> {
        let mut decoder = Decoder::start(codec, &self.pool).without_checkpoints();
        let mut text = std::mem::take(&mut self.text);
        let (mut filled, mut end, mut at) = (0, false, 0);
        let mut seen = Seen::default();
        let mut hits = Vec::new();
        let result = loop {
            text.resize(filled + CHUNK_BYTES, 0);
            match decoder.read(open, &mut self.stored, &mut text[filled..]) {
                Ok(progress) => {
                    filled += progress.produced;
                    self.bytes += progress.produced as u64;
                    end |= progress.state != ReadState::More;
                }
                Err(error) => break self.problem(&file.path, &said(&error), send),
            }
            let piece = Piece { text: &text[..filled], at, is_last: end };
            let used = seen.look(&piece, self.question, &mut hits);
            self.count(0, &mut seen);
            // Only the newest can be needed.
            let beyond = hits.len().saturating_sub(2 * self.question.limit);
            if beyond > 0 {
                hits.drain(..beyond);
                self.more = true;
            }
            text.copy_within(used..filled, 0);
            filled -= used;
            at += used as u64;
            if let Err(stop) = self.go_on(&file.path, files, send) {
                break Err(stop);
            }
            if end {
                break Ok(());
            }
        };
        text.clear();
        self.text = text;
        // Lines found before damage, or before a bound was reached, count as well.
        match result {
            Err(Stop::Alone) => result,
            _ => self.offer(file, hits, send).and(result),
        }
    }

    fn count(&mut self, bytes: u64, seen: &mut Seen) {
        self.bytes += bytes;
        self.lines += std::mem::take(&mut seen.lines);
        self.found += std::mem::take(&mut seen.found);
    }

    /// Whether the bounds allow more; reports the progress.
    fn go_on(&mut self, path: &Path, files: usize, send: Send<'_>) -> Result<(), Stop> {
        let now = self.clock.monotonic();
        if now.since(self.progress_at) >= PROGRESS_EVERY {
            self.progress_at = now;
            let mut progress = self.progress(files);
            progress["path"] = path.to_string_lossy().into();
            if !send(json!({ "progress": progress })) {
                return Err(Stop::Alone);
            }
        }
        if self.bytes >= BYTES_MAX {
            return Err(Stop::Search(Reason::Bytes));
        }
        if now.since(self.start) >= TIME_MAX {
            return Err(Stop::Search(Reason::Time));
        }
        Ok(())
    }
}

/// Whole lines of a plain file, in a buffer that has some of the text before them, too.
struct Block {
    /// Where the first of them begins in the file.
    at: u64,
    /// The same in the buffer.
    first: usize,
    /// Where the last one ends in the buffer.
    end: usize,
    /// Bytes of the file that were looked at.
    bytes: u64,
}

impl Block {
    /// Reads the lines before `end`, where a line ends; at least one.
    fn read(file: &dyn File, end: u64, text: &mut Vec<u8>) -> io::Result<Self> {
        let from = end.saturating_sub(BLOCK_BYTES);
        let base = from.saturating_sub(LOOKBACK_BYTES);
        text.resize((end - base) as usize, 0);
        read_exact_at(file, text, base)?;
        let (begin, whole) = ((from - base) as usize, text.len());
        // The line that goes on into this block begins in the one before. The feed at the end is of the last line.
        let first = match from {
            0 => Some(0),
            _ => memchr::memchr(b'\n', &text[begin - 1..whole - 1]).map(|feed| begin + feed),
        };
        if let Some(first) = first {
            let at = base + first as u64;
            return Ok(Self { at, first, end: whole, bytes: end - at });
        }
        // One line is longer than a block: only its beginning is looked at.
        let at = begin_of_line(file, from, text)?;
        let length = (end - at).min(LINE_BYTES_MAX as u64);
        let base = at.saturating_sub(LOOKBACK_BYTES);
        text.resize((at + length - base) as usize, 0);
        read_exact_at(file, text, base)?;
        Ok(Self { at, first: (at - base) as usize, end: text.len(), bytes: end - at })
    }
}

/// Where the line begins that goes on at `before`.
fn begin_of_line(file: &dyn File, mut before: u64, text: &mut Vec<u8>) -> io::Result<u64> {
    while before > 0 {
        let from = before.saturating_sub(BLOCK_BYTES);
        text.resize((before - from) as usize, 0);
        read_exact_at(file, text, from)?;
        if let Some(feed) = memchr::memrchr(b'\n', text) {
            return Ok(from + feed as u64 + 1);
        }
        before = from;
    }
    Ok(0)
}

fn said(error: &DecodeError) -> String {
    format!("{error}; what is before it was looked through")
}
