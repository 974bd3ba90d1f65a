//! The dead letters: a local NDJSON file of the events that an output can never take, each with the
//! reason, its source and its place there. Bounded, counted, durable before the cursor passes.

mod kept;

pub use kept::{KeptLetters, LetterFate};

use crate::queue::Delivery;
use crate::settle::SourceName;
use skidder_event::{Encoder, Precision, TimeText, write_string};
use skidder_os::{Clock, File, Fs, OpenMode, write_all_at};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Bounds of the dead letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadLettersLimits {
    /// `dead_letters.max_bytes`: size of the file beyond which nothing is added.
    pub bytes: u64,
}

impl DeadLettersLimits {
    /// Default of `dead_letters.max_bytes`.
    pub const BYTES: u64 = 100 << 20;
}

impl Default for DeadLettersLimits {
    fn default() -> Self {
        Self { bytes: Self::BYTES }
    }
}

/// Why an event could not be put into the dead letters.
#[derive(Debug, thiserror::Error)]
pub enum DeadLetterError {
    /// The file has reached its bound: the event is lost unless room is made.
    #[error("the dead letters in `{path}` have reached `dead_letters.max_bytes` ({bytes} bytes)")]
    Full {
        /// The file.
        path: PathBuf,
        /// The bound.
        bytes: u64,
    },
    /// The file cannot be written; the event should be offered again.
    #[error("cannot write the dead letters in `{path}`: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// One refused event.
#[derive(Clone, Copy, Debug)]
pub struct DeadLetter<'a> {
    /// The delivery it came with.
    pub delivery: &'a Delivery,
    /// Its row.
    pub row: u32,
    /// Status that the other side gave, 0 if none.
    pub status: u16,
    /// The reason that the other side gave: JSON, or any text.
    pub reason: &'a [u8],
    /// The `_id` under which it was sent, if it had one.
    pub id: Option<&'a str>,
}

/// The file of dead letters.
pub struct DeadLetters {
    fs: Arc<dyn Fs>,
    clock: Arc<dyn Clock>,
    path: PathBuf,
    limits: DeadLettersLimits,
    state: Mutex<State>,
}

impl std::fmt::Debug for DeadLetters {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("DeadLetters").field("path", &self.path).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct State {
    file: Option<Box<dyn File>>,
    /// Bytes of whole letters; `None` before the file was opened for the first time.
    size: Option<u64>,
}

impl DeadLetters {
    /// Name of the file in the data directory.
    pub const FILE_NAME: &'static str = "dead_letters.ndjson";

    /// Version of the letters that are written. Version 1 had no version number, and knew only files; it can still be
    /// read.
    pub const VERSION: u32 = 2;

    /// Dead letters in `directory`; the file is created with the first of them.
    pub fn new(
        fs: Arc<dyn Fs>,
        clock: Arc<dyn Clock>,
        directory: &Path,
        limits: DeadLettersLimits,
    ) -> Self {
        Self::in_file(fs, clock, directory.join(Self::FILE_NAME), limits)
    }

    /// Dead letters in a file of this name.
    pub fn in_file(
        fs: Arc<dyn Fs>,
        clock: Arc<dyn Clock>,
        path: PathBuf,
        limits: DeadLettersLimits,
    ) -> Self {
        Self { fs, clock, path, limits, state: Mutex::default() }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends refused events, durably, all or none. Returns how many there was room for: the first ones
    /// of `letters` were written, the others met the bound.
    pub fn write(&self, letters: &[DeadLetter<'_>]) -> Result<usize, DeadLetterError> {
        let mut encoder = Encoder::new(Precision::Nanosecond);
        let mut text = Vec::new();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |source| DeadLetterError::Write { path: self.path.clone(), source };
        let size = self.open(&mut state).map_err(failed)?;
        let mut written = 0;
        for letter in letters {
            let before = text.len();
            self.render(&mut text, &mut encoder, letter);
            if size + text.len() as u64 > self.limits.bytes {
                text.truncate(before);
                break;
            }
            written += 1;
        }
        if written == 0 && !letters.is_empty() {
            return Err(DeadLetterError::Full {
                path: self.path.clone(),
                bytes: self.limits.bytes,
            });
        }
        let Some(file) = &state.file else { return Ok(0) };
        if let Err(source) = write_all_at(&**file, &text, size).and_then(|()| file.sync()) {
            // Opening it again cuts off all of what was written now.
            state.file = None;
            return Err(failed(source));
        }
        state.size = Some(size + text.len() as u64);
        Ok(written)
    }

    /// Opens the file if it is not; returns where its whole letters end.
    fn open(&self, state: &mut State) -> io::Result<u64> {
        if let (Some(_), Some(size)) = (&state.file, state.size) {
            return Ok(size);
        }
        if let Some(parent) = self.path.parent() {
            self.fs.create_dir_all(parent, skidder_os::PRIVATE_DIRECTORY)?;
        }
        let file = self.fs.open_write(&self.path, OpenMode::Keep, 0o600)?;
        let whole = whole_lines(&*file)?;
        let size = state.size.map_or(whole, |size| size.min(whole));
        let bytes = file.metadata()?.size.saturating_sub(whole);
        if state.size.is_none() && bytes > 0 {
            tracing::warn!(
                path = %self.path.display(), bytes,
                "the last dead letter is not whole (the program or the machine stopped while it was written) and is cut off; \
                 its event is offered again"
            );
        }
        file.set_len(size)?;
        if let Some(parent) = self.path.parent() {
            self.fs.sync_dir(parent)?;
        }
        state.file = Some(file);
        state.size = Some(size);
        Ok(size)
    }

    fn render(&self, text: &mut Vec<u8>, encoder: &mut Encoder, letter: &DeadLetter<'_>) {
        let batch = &letter.delivery.batch;
        let row = &batch.rows()[letter.row as usize];
        text.extend_from_slice(b"{\"@timestamp\":\"");
        let now = self.clock.wall().0;
        text.extend_from_slice(TimeText::new(Precision::Millisecond).format(now));
        text.extend_from_slice(b"\",\"version\":");
        text.extend_from_slice(Self::VERSION.to_string().as_bytes());
        text.extend_from_slice(b",\"status\":");
        text.extend_from_slice(letter.status.to_string().as_bytes());
        text.extend_from_slice(b",\"reason\":");
        write_string(text, letter.reason, false);
        if let Some(origin) = letter.delivery.ticket.origin() {
            text.extend_from_slice(b",\"source\":");
            write_string(text, origin.name.as_bytes(), false);
            if let SourceName::Source(about) = &origin.name {
                text.extend_from_slice(b",\"input\":");
                write_string(text, about.input.as_bytes(), true);
            }
            text.extend_from_slice(b",\"identity\":");
            write_string(text, origin.key.as_bytes(), true);
        }
        if let Some(part) = batch.provenance().file() {
            text.extend_from_slice(b",\"generation\":");
            text.extend_from_slice(part.generation.to_string().as_bytes());
            text.extend_from_slice(b",\"offset\":");
        } else {
            text.extend_from_slice(b",\"number\":");
        }
        text.extend_from_slice(row.offset.to_string().as_bytes());
        let before = text.len();
        text.extend_from_slice(b",\"metadata\":");
        if !encoder.write_own_metadata(text, batch, letter.row as usize) {
            text.truncate(before);
        }
        if let Some(id) = letter.id {
            text.extend_from_slice(b",\"id\":");
            write_string(text, id.as_bytes(), true);
        }
        text.extend_from_slice(b",\"event\":");
        encoder.write(text, batch, letter.row as usize);
        text.extend_from_slice(b"}\n");
    }
}

/// Size of the file up to its last line feed: a crash can leave half a line behind it.
fn whole_lines(file: &dyn File) -> io::Result<u64> {
    let mut end = file.metadata()?.size;
    let mut piece = [0_u8; 4096];
    while end > 0 {
        let start = end.saturating_sub(piece.len() as u64);
        let count = (end - start) as usize;
        skidder_os::read_exact_at(file, &mut piece[..count], start)?;
        if let Some(at) = piece[..count].iter().rposition(|&byte| byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests;
