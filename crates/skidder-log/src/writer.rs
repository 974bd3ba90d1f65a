//! The thread that writes lines, and its behaviour when they cannot be written.
//!
//! A log that cannot be written stops nothing. Its lines go to stderr then, after a line that says
//! why, and the log is tried again. The content of events never goes to stderr: what cannot be
//! written of it is counted.

use crate::files::Files;
use crate::line::{Line, masked};
use crate::queue::{Entry, Queue};
use crate::sinks::{Stderr, Syslog};
use serde_json::{Map, Value};
use skidder_os::{Clock, Monotonic};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tracing::Level;

/// First and longest pause before a log that could not be written is tried again.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// How often to report that the log still cannot be written.
const REPORT_EVERY: Duration = Duration::from_mins(1);
/// Bytes that are written to a file at once.
const PIECE_BYTES: usize = 256 << 10;

/// Where the lines of the log go.
#[derive(Debug)]
pub(crate) enum Sink {
    Nowhere,
    Stderr,
    Syslog(Syslog),
    Files(Files),
}

/// Writes what the queue has.
pub(crate) struct Writer {
    pub(crate) queue: Arc<Queue>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) stderr: Stderr,
    pub(crate) sink: Sink,
    pub(crate) event_data: Option<Files>,
    /// `logging.with_fields`.
    pub(crate) with_fields: Map<String, Value>,
    pub(crate) trouble: Trouble,
    pub(crate) event_trouble: Trouble,
}

/// A log that cannot be written.
#[derive(Debug, Default)]
pub(crate) struct Trouble {
    /// When it is tried again; `None` if it works.
    again: Option<Monotonic>,
    pause: Duration,
    reported: Option<Monotonic>,
    /// Lines that were not written since it worked.
    lines: u64,
}

impl Writer {
    /// Writes until the queue has ended.
    pub(crate) fn run(mut self) {
        while let Some(entries) = self.queue.take(&self.clock) {
            self.write(entries);
        }
    }

    /// Writes lines in their order.
    pub(crate) fn write(&mut self, entries: Vec<Entry>) {
        let (mut lines, mut events) = (Vec::new(), Vec::new());
        for entry in entries {
            match entry {
                Entry::Line(line) => lines.push(self.complete(line)),
                Entry::EventData(line) => events.push(self.complete(line)),
            }
        }
        if !events.is_empty() {
            lines.extend(self.write_events(&events));
        }
        self.write_lines(lines);
    }

    /// With the fields of `logging.with_fields` that it does not have itself.
    fn complete(&self, mut line: Line) -> Line {
        for (name, value) in &self.with_fields {
            line.fields.entry(name.clone()).or_insert_with(|| value.clone());
        }
        line
    }

    fn write_lines(&mut self, mut lines: Vec<Line>) {
        let now = self.clock.monotonic();
        if self.trouble.is_waiting(now) {
            self.trouble.lines += lines.len() as u64;
            self.fail(&lines);
            return;
        }
        let was_in_trouble = self.trouble.again.is_some();
        if was_in_trouble {
            let text = "the log can be written again; meanwhile its lines went to stderr";
            let line = Line::own(Level::WARN, self.clock.wall(), text);
            let line = self.complete(line.with("lines", self.trouble.lines));
            lines.insert(0, line);
        }
        let wall = self.clock.wall();
        let (written, result) = match &mut self.sink {
            Sink::Nowhere => return,
            Sink::Stderr => return self.stderr.write(&lines),
            Sink::Syslog(syslog) => write_to_syslog(syslog, &lines),
            Sink::Files(files) => write_to_files(files, &lines, wall),
        };
        match result {
            Ok(()) => self.trouble.works(),
            Err(error) => {
                // The line that reported success was wrong.
                let from = if was_in_trouble { written.max(1) } else { written };
                self.trouble.lines += (lines.len() - from.min(lines.len())) as u64;
                if self.trouble.fails(now) {
                    let text = "the log cannot be written; its lines go to stderr until it can";
                    let line = failure(text, self.sink.place().as_deref(), &error, wall);
                    self.stderr.write(&[self.complete(line)]);
                }
                self.fail(&lines[from.min(lines.len())..]);
            }
        }
        self.report_stuck(wall);
    }

    /// Lines that cannot go where they belong.
    fn fail(&self, lines: &[Line]) {
        self.queue.counters.failed.fetch_add(lines.len() as u64, Ordering::Relaxed);
        self.stderr.write(lines);
    }

    /// Old files that cannot be removed.
    fn report_stuck(&mut self, wall: skidder_os::Timestamp) {
        let Sink::Files(files) = &mut self.sink else { return };
        let stuck = files.take_stuck();
        for (path, error) in stuck {
            let line =
                failure("an old file of the log cannot be removed", Some(&path), &error, wall);
            self.stderr.write(&[self.complete(line)]);
        }
    }

    /// Writes the content of events; gives a line about it if that fails.
    fn write_events(&mut self, lines: &[Line]) -> Option<Line> {
        let files = self.event_data.as_mut()?;
        let (now, wall) = (self.clock.monotonic(), self.clock.wall());
        let (written, result) = if self.event_trouble.is_waiting(now) {
            (0, Ok(()))
        } else {
            write_to_files(files, lines, wall)
        };
        let failed = (lines.len() - written) as u64;
        self.queue.counters.failed.fetch_add(failed, Ordering::Relaxed);
        let Err(error) = result else {
            if written == lines.len() {
                self.event_trouble.works();
            }
            return None;
        };
        let place = files.place();
        self.event_trouble.fails(now).then(|| {
            let text =
                "the content of events cannot be written to the files of `logging.event_data`";
            let line = failure(text, Some(&place), &error, wall).with("events", failed);
            self.complete(line)
        })
    }
}

impl Sink {
    fn place(&self) -> Option<std::path::PathBuf> {
        match self {
            Self::Files(files) => Some(files.place()),
            Self::Nowhere | Self::Stderr | Self::Syslog(_) => None,
        }
    }
}

impl Trouble {
    /// Whether it is too early to try again.
    fn is_waiting(&self, now: Monotonic) -> bool {
        self.again.is_some_and(|again| now < again)
    }

    /// It works. Keeps the time of the last report, for a log that works and fails by turns.
    fn works(&mut self) {
        (self.again, self.pause, self.lines) = (None, Duration::ZERO, 0);
    }

    /// It has failed; returns whether to report that.
    fn fails(&mut self, now: Monotonic) -> bool {
        self.pause = (self.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX);
        self.again = Some(now + self.pause);
        let is_news = self.reported.is_none_or(|last| now.since(last) >= REPORT_EVERY);
        if is_news {
            self.reported = Some(now);
        }
        is_news
    }
}

fn failure(
    text: &str,
    path: Option<&Path>,
    error: &io::Error,
    wall: skidder_os::Timestamp,
) -> Line {
    let mut line = Line::own(Level::ERROR, wall, text)
        .with("error.message", masked(&error.to_string()).into_owned());
    if let Some(path) = path {
        line = line.with("path", path.display().to_string());
    }
    line
}

/// Says how many lines were written.
fn write_to_syslog(syslog: &mut Syslog, lines: &[Line]) -> (usize, io::Result<()>) {
    for (at, line) in lines.iter().enumerate() {
        if let Err(error) = syslog.write(line) {
            return (at, Err(error));
        }
    }
    (lines.len(), Ok(()))
}

/// Says how many lines were written.
fn write_to_files(
    files: &mut Files,
    lines: &[Line],
    now: skidder_os::Timestamp,
) -> (usize, io::Result<()>) {
    let mut written = 0;
    while written < lines.len() {
        let mut text = lines[written].json();
        let mut end = written + 1;
        while end < lines.len() && text.len() < PIECE_BYTES {
            let next = lines[end].json();
            if (text.len() + next.len()) as u64 > files.room() {
                break;
            }
            text.push_str(&next);
            end += 1;
        }
        if let Err(error) = files.write(text.as_bytes(), now) {
            return (written, Err(error));
        }
        written = end;
    }
    (written, Ok(()))
}
