//! From the bytes of a connection to the events in them.
//!
//! Lumberjack has no registered standard; version 1 is described in logstash-forwarder's PROTOCOL.md, version 2 by Elastic's
//! go-lumber. A client sends a *window*: `W` with the number of events, then so many events, each as a frame `J` with JSON
//! (version 2, and Logstash's client of version 1) or `D` with pairs of texts (version 1). A frame `C` has such frames,
//! compressed with zlib. Numbers have 32 bits, the most significant byte first. The answer to a window is `A` with the
//! number of its last event.

use flate2::{Decompress, FlushDecompress, Status};
use skidder_event::{Row, Text, write_string};
use std::collections::HashMap;
use std::fmt;

/// Events of a batch, at most.
const BATCH_EVENTS: usize = 2048;

/// Bytes of a batch from which on it is sent.
const BATCH_BYTES: usize = 256 << 10;

/// Bytes that are decompressed at once.
const INFLATED_BYTES: usize = 64 << 10;

/// Bytes of a frame before its content: the version and the type.
const HEADER: usize = 2;

/// Bytes of a number.
const NUMBER: usize = 4;

/// Bytes of the frame of an event before its content.
const CONTENT: usize = HEADER + 2 * NUMBER;

/// A version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    One,
    Two,
}

impl Version {
    pub(super) const WORDS: [(&str, Self); 2] = [("v1", Self::One), ("v2", Self::Two)];

    /// The byte that each frame begins with.
    pub(super) fn byte(self) -> u8 {
        match self {
            Self::One => b'1',
            Self::Two => b'2',
        }
    }
}

/// The bytes of a connection make no sense, or are too many: it is closed. The client sends again what has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FrameError {
    #[error("it begins with {}, which is no version of Lumberjack; is it meant for another port, or is TLS on at one side only?", Byte(*.0))]
    NotLumberjack(u8),
    #[error("it speaks version {} of Lumberjack, which is not among `versions`", *.0 as char)]
    VersionIsOff(u8),
    #[error("a frame begins with {} where version {} is spoken", Byte(*.0), *.1 as char)]
    OtherVersion(u8, u8),
    #[error("a frame of the type {} where {expected} was expected", Byte(*.found))]
    Type { found: u8, expected: &'static str },
    #[error("an event of {0} bytes; `max_message_size` is {1}")]
    TooLong(u64, usize),
    #[error("a compressed frame is damaged: {0}")]
    Compressed(String),
    #[error("a compressed frame has more than the events of its window")]
    Behind,
}

/// A byte for people.
struct Byte(u8);

impl fmt::Display for Byte {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_ascii_graphic() {
            write!(out, "`{}`", self.0 as char)
        } else {
            write!(out, "the byte {:#04x}", self.0)
        }
    }
}

/// Events that were read and not sent yet: texts of JSON, one behind the other.
#[derive(Debug, Default)]
pub(super) struct Events {
    pub(super) bytes: Vec<u8>,
    pub(super) rows: Vec<Row>,
}

impl Events {
    fn is_full(&self) -> bool {
        self.rows.len() >= BATCH_EVENTS || self.bytes.len() >= BATCH_BYTES
    }

    /// Adds an event whose text is at the end of the bytes, from `start` on.
    fn add(&mut self, start: usize, frame: usize) {
        let text = Text { start: start as u32, len: (self.bytes.len() - start) as u32 };
        // The time is set when the batch is sent.
        self.rows.push(Row::numbered(0, frame as u32, text, 0));
    }
}

/// What was found in the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Not enough bytes.
    More,
    /// A window begins.
    Begin,
    /// There are enough events for a batch, and the window goes on.
    Full,
    /// A window ends; its last event has this number.
    End(u32),
}

/// Reads frames.
#[derive(Debug)]
pub(super) struct Frames {
    allowed: [bool; 2],
    event_bytes_max: usize,
    version: Option<Version>,
    /// Events of the window that are still to come.
    left: u32,
    /// Events of the window.
    count: u32,
    /// The number of the event before.
    last: u32,
    compressed: Option<Box<Compressed>>,
    pairs: Pairs,
}

/// A compressed frame that is read.
#[derive(Debug)]
struct Compressed {
    inflate: Decompress,
    /// Bytes that it still has.
    left: usize,
    /// What was decompressed.
    plain: Vec<u8>,
    /// So many bytes of it were read.
    read: usize,
    is_at_end: bool,
}

/// How far the pairs of an incomplete frame were looked at, so that they are looked at once.
#[derive(Clone, Copy, Debug, Default)]
struct Pairs {
    done: u32,
    at: usize,
}

/// The first frame of some bytes.
enum Frame {
    Incomplete,
    Event { bytes: usize },
    Compressed { content: usize },
}

impl Frames {
    /// For a connection; events may have so many bytes.
    pub(super) fn new(versions: &[Version], event_bytes_max: usize) -> Self {
        Self {
            allowed: [Version::One, Version::Two].map(|version| versions.contains(&version)),
            event_bytes_max,
            version: None,
            left: 0,
            count: 0,
            last: 0,
            compressed: None,
            pairs: Pairs::default(),
        }
    }

    /// The version that the client speaks, as soon as it is known.
    pub(super) fn version(&self) -> Option<Version> {
        self.version
    }

    /// Events of the window that was begun last.
    pub(super) fn window_events(&self) -> u32 {
        self.count
    }

    /// Whether a window has begun and not ended. It ends with its last event, and not before the end of the compressed
    /// frame that has this event.
    pub(super) fn is_in_window(&self) -> bool {
        self.left > 0 || self.compressed.is_some()
    }

    /// Reads until something is to be done; returns how many of the bytes were used.
    ///
    /// # Errors
    /// The rest of the connection is of no use.
    pub(super) fn read(
        &mut self,
        bytes: &[u8],
        events: &mut Events,
    ) -> Result<(usize, Step), FrameError> {
        let mut used = 0;
        loop {
            if let Some(mut compressed) = self.compressed.take() {
                let (taken, step) =
                    self.read_compressed(&mut compressed, &bytes[used..], events)?;
                used += taken;
                if let Some(step) = step {
                    self.compressed = Some(compressed);
                    return Ok((used, step));
                }
                if self.left == 0 {
                    return Ok((used, self.end()));
                }
                continue;
            }
            let rest = &bytes[used..];
            if self.left == 0 {
                let Some(count) = self.window(rest)? else { return Ok((used, Step::More)) };
                used += HEADER + NUMBER;
                if count == 0 {
                    continue;
                }
                (self.left, self.count, self.last) = (count, count, 0);
                return Ok((used, Step::Begin));
            }
            match self.frame(rest, events, true)? {
                Frame::Incomplete => return Ok((used, Step::More)),
                Frame::Compressed { content } => {
                    used += HEADER + NUMBER;
                    self.compressed = Some(Box::new(Compressed::new(content)));
                }
                Frame::Event { bytes } => {
                    used += bytes;
                    if let Some(step) = self.event_was_read(events) {
                        return Ok((used, step));
                    }
                }
            }
        }
    }

    /// What follows from another event.
    fn event_was_read(&mut self, events: &Events) -> Option<Step> {
        self.left -= 1;
        if self.left == 0 {
            return Some(self.end());
        }
        events.is_full().then_some(Step::Full)
    }

    /// The end of the window. Clients that do not number their events get their count, as all do from go-lumber.
    fn end(&self) -> Step {
        Step::End(if self.last == 0 { self.count } else { self.last })
    }

    /// Reads events of a compressed frame; returns how many bytes of it were used, and no step if it is over.
    fn read_compressed(
        &mut self,
        frame: &mut Compressed,
        bytes: &[u8],
        events: &mut Events,
    ) -> Result<(usize, Option<Step>), FrameError> {
        let mut used = 0;
        loop {
            let unread = &frame.plain[frame.read..];
            if self.left == 0 {
                if !unread.is_empty() {
                    return Err(FrameError::Behind);
                }
            } else if let Frame::Event { bytes } = self.frame(unread, events, false)? {
                frame.read += bytes;
                // Behind the last event of the window, the end of the frame is still to be read.
                if let Some(Step::Full) = self.event_was_read(events) {
                    return Ok((used, Some(Step::Full)));
                }
                continue;
            }
            frame.forget_read();
            if frame.is_over() {
                if !frame.plain.is_empty() {
                    return Err(FrameError::Compressed("it ends within an event".to_owned()));
                }
                return Ok((used, None));
            }
            let rest = &bytes[used..];
            let (taken, made) = frame.inflate(&rest[..rest.len().min(frame.left)])?;
            used += taken;
            if taken == 0 && made == 0 {
                return Ok((used, Some(Step::More)));
            }
        }
    }

    /// The number of events of a window that begins; `None` as long as its frame is not complete.
    fn window(&mut self, bytes: &[u8]) -> Result<Option<u32>, FrameError> {
        let Some(&first) = bytes.first() else { return Ok(None) };
        self.check_version(first)?;
        match bytes.get(1) {
            None => Ok(None),
            Some(b'W') => Ok(number_at(bytes, HEADER)),
            Some(&found) => {
                Err(FrameError::Type { found, expected: "`W`, the begin of a window," })
            }
        }
    }

    fn check_version(&mut self, byte: u8) -> Result<(), FrameError> {
        if let Some(version) = self.version {
            return if version.byte() == byte {
                Ok(())
            } else {
                Err(FrameError::OtherVersion(byte, version.byte()))
            };
        }
        let all = [Version::One, Version::Two];
        let found = all.into_iter().zip(self.allowed).find(|(version, _)| version.byte() == byte);
        match found {
            None => Err(FrameError::NotLumberjack(byte)),
            Some((_, false)) => Err(FrameError::VersionIsOff(byte)),
            Some((version, true)) => {
                self.version = Some(version);
                Ok(())
            }
        }
    }

    /// The first frame within a window. The text of an event is added to `events`.
    fn frame(
        &mut self,
        bytes: &[u8],
        events: &mut Events,
        may_be_compressed: bool,
    ) -> Result<Frame, FrameError> {
        let Some(&first) = bytes.first() else { return Ok(Frame::Incomplete) };
        self.check_version(first)?;
        let Some(&kind) = bytes.get(1) else { return Ok(Frame::Incomplete) };
        match (kind, self.version) {
            // The client of Logstash writes JSON in frames of version 1, too.
            (b'J', _) => self.json(bytes, events),
            (b'D', Some(Version::One)) => self.pairs(bytes, events),
            (b'C', _) if may_be_compressed => Ok(match number_at(bytes, HEADER) {
                Some(content) => Frame::Compressed { content: content as usize },
                None => Frame::Incomplete,
            }),
            (found, version) => {
                let expected = match version {
                    Some(Version::Two) => "`J`, an event as JSON,",
                    _ => "`D` or `J`, an event,",
                };
                Err(FrameError::Type { found, expected })
            }
        }
    }

    fn json(&mut self, bytes: &[u8], events: &mut Events) -> Result<Frame, FrameError> {
        let Some((number, length)) = head_of_event(bytes) else { return Ok(Frame::Incomplete) };
        self.check_length(u64::from(length))?;
        let end = CONTENT + length as usize;
        let Some(text) = bytes.get(CONTENT..end) else { return Ok(Frame::Incomplete) };
        let start = events.bytes.len();
        events.bytes.extend_from_slice(text);
        events.add(start, end);
        self.last = number;
        Ok(Frame::Event { bytes: end })
    }

    fn check_length(&self, length: u64) -> Result<(), FrameError> {
        if length > self.event_bytes_max as u64 {
            return Err(FrameError::TooLong(length, self.event_bytes_max));
        }
        Ok(())
    }

    /// Pairs of a name and a text become an object of JSON.
    fn pairs(&mut self, bytes: &[u8], events: &mut Events) -> Result<Frame, FrameError> {
        let Some((number, pairs)) = head_of_event(bytes) else { return Ok(Frame::Incomplete) };
        let Pairs { mut done, mut at } = self.pairs;
        at = at.max(CONTENT);
        while done < pairs {
            let value = at + NUMBER + number_at(bytes, at).unwrap_or(0) as usize;
            let end = value + NUMBER + number_at(bytes, value).unwrap_or(0) as usize;
            self.check_length((end - CONTENT) as u64)?;
            if number_at(bytes, value).is_none() || bytes.len() < end {
                self.pairs = Pairs { done, at };
                return Ok(Frame::Incomplete);
            }
            (done, at) = (done + 1, end);
        }
        self.pairs = Pairs::default();
        let start = events.bytes.len();
        write_pairs(&mut events.bytes, &bytes[CONTENT..at]);
        events.add(start, at);
        self.last = number;
        Ok(Frame::Event { bytes: at })
    }
}

/// Writes complete pairs as JSON. Of pairs with one name, the last one stays, as in a map of Go.
fn write_pairs(out: &mut Vec<u8>, mut pairs: &[u8]) {
    let mut take = || {
        let length = number_at(pairs, 0)? as usize;
        let text = &pairs[NUMBER..NUMBER + length];
        pairs = &pairs[NUMBER + length..];
        Some(text)
    };
    let mut all: Vec<(&[u8], &[u8])> = Vec::new();
    let mut places: HashMap<&[u8], usize> = HashMap::new();
    while let (Some(name), Some(text)) = (take(), take()) {
        let place = *places.entry(name).or_insert(all.len());
        match all.get_mut(place) {
            Some(of) => of.1 = text,
            None => all.push((name, text)),
        }
    }
    out.push(b'{');
    for (number, (name, text)) in all.into_iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        write_string(out, name, false);
        out.push(b':');
        write_string(out, text, false);
    }
    out.push(b'}');
}

/// The two numbers that the frame of an event begins with: its own, and the length of its text or how many pairs it has.
fn head_of_event(bytes: &[u8]) -> Option<(u32, u32)> {
    Some((number_at(bytes, HEADER)?, number_at(bytes, HEADER + NUMBER)?))
}

fn number_at(bytes: &[u8], at: usize) -> Option<u32> {
    let number = bytes.get(at..)?.first_chunk::<NUMBER>()?;
    Some(u32::from_be_bytes(*number))
}

impl Compressed {
    fn new(content: usize) -> Self {
        Self {
            inflate: Decompress::new(true),
            left: content,
            plain: Vec::new(),
            read: 0,
            is_at_end: false,
        }
    }

    /// All of it was decompressed.
    fn is_over(&self) -> bool {
        self.left == 0 && self.is_at_end
    }

    fn forget_read(&mut self) {
        self.plain.drain(..self.read);
        self.read = 0;
    }

    /// Decompresses some of its bytes; returns how many were used, and how many came out.
    fn inflate(&mut self, bytes: &[u8]) -> Result<(usize, usize), FrameError> {
        if self.is_at_end {
            // What follows the end of the stream has no meaning, as in go-lumber.
            self.left -= bytes.len();
            return Ok((bytes.len(), 0));
        }
        self.plain.reserve(INFLATED_BYTES);
        let before = (self.inflate.total_in(), self.inflate.total_out());
        let status = self
            .inflate
            .decompress_vec(bytes, &mut self.plain, FlushDecompress::None)
            .map_err(|error| FrameError::Compressed(error.to_string()))?;
        let used = (self.inflate.total_in() - before.0) as usize;
        let made = (self.inflate.total_out() - before.1) as usize;
        self.left -= used;
        self.is_at_end = status == Status::StreamEnd;
        if self.left == 0 && !self.is_at_end && used == 0 && made == 0 {
            return Err(FrameError::Compressed("it is cut".to_owned()));
        }
        Ok((used, made))
    }
}

#[cfg(test)]
#[path = "frames_tests.rs"]
pub(super) mod tests;

#[cfg(test)]
#[path = "frames_fuzz.rs"]
mod fuzz;
