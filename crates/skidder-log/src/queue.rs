//! Lines on their way from the threads of the program to the one that writes them.
//!
//! A thread that logs never waits: not for a disk, not for a terminal that has stopped, not for the
//! reader of a pipe. Lines without room are dropped, and their number is a line of the log.

use crate::line::Line;
use crate::repeats::Repeats;
use skidder_os::{Clock, Monotonic};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tracing::Level;
use tracing::callsite::Identifier;

/// Lines that wait to be written, in bytes of their texts as they were counted.
const BYTES_MAX: usize = 4 << 20;
/// Additional bytes for warnings and errors.
const RESERVE_BYTES: usize = 1 << 20;
/// What a line costs besides its message.
const LINE_BYTES: usize = 512;

/// A line, and its destination.
#[derive(Debug)]
pub(crate) enum Entry {
    /// For the log.
    Line(Line),
    /// For the files with the content of events.
    EventData(Line),
}

/// Lines that wait.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    pub(crate) counters: Counters,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<Entry>,
    bytes: usize,
    repeats: Repeats,
    /// Lines dropped for lack of room, not reported yet.
    left_out: u64,
    /// Lines that were taken are not written yet.
    busy: bool,
    ended: bool,
    /// All was taken after the end, and written.
    finished: bool,
}

/// What the log counts of itself.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Lines that could not be written where they belong.
    pub(crate) failed: AtomicU64,
    /// Lines dropped for lack of room.
    pub(crate) left_out: AtomicU64,
}

impl Queue {
    /// A line of this place in the source.
    pub(crate) fn push(&self, place: Identifier, line: Line, now: Monotonic) {
        let mut state = self.lock();
        if let Some(line) = state.repeats.pass(place, line, now) {
            self.add(&mut state, Entry::Line(line));
        } else {
            // The thread needs to know when the line is due.
            self.changed.notify_all();
        }
    }

    /// A line with the content of an event.
    pub(crate) fn push_event_data(&self, line: Line) {
        self.add(&mut self.lock(), Entry::EventData(line));
    }

    fn add(&self, state: &mut State, entry: Entry) {
        let (Entry::Line(line) | Entry::EventData(line)) = &entry;
        let reserve = if line.level <= Level::WARN { RESERVE_BYTES } else { 0 };
        let text = |value: &serde_json::Value| value.as_str().map_or(0, str::len);
        let fields: usize = line.fields.values().map(text).sum();
        let bytes = LINE_BYTES + line.message.len() + fields;
        // The first line finds room, however long it is.
        if state.bytes > 0 && state.bytes + bytes > BYTES_MAX + reserve {
            state.left_out += 1;
            self.counters.left_out.fetch_add(1, Ordering::Relaxed);
            return;
        }
        state.bytes += bytes;
        state.waiting.push(entry);
        self.changed.notify_all();
    }

    /// Waits for lines and takes them; nothing when all was taken and no more will come.
    pub(crate) fn take(&self, clock: &Arc<dyn Clock>) -> Option<Vec<Entry>> {
        let mut state = self.lock();
        state.busy = false;
        self.changed.notify_all();
        loop {
            let now = clock.monotonic();
            let ended = state.ended;
            let due = state.repeats.take(now, ended);
            state.waiting.extend(due.into_iter().map(Entry::Line));
            let left_out = std::mem::take(&mut state.left_out);
            if left_out > 0 {
                let text =
                    "lines of the log were left out: they came faster than they could be written";
                let line = Line::own(Level::WARN, clock.wall(), text).with("lines", left_out);
                state.waiting.push(Entry::Line(line));
            }
            if !state.waiting.is_empty() {
                state.busy = true;
                state.bytes = 0;
                return Some(std::mem::take(&mut state.waiting));
            }
            if ended {
                state.finished = true;
                self.changed.notify_all();
                return None;
            }
            state = match state.repeats.due() {
                Some(due) => {
                    let wait = self.changed.wait_timeout(state, due.since(now));
                    wait.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Waits until all lines are written, at most `limit`; returns whether they are.
    pub(crate) fn flush(&self, limit: Duration) -> bool {
        let wait = self.changed.wait_timeout_while(self.lock(), limit, |state| {
            state.busy || !state.waiting.is_empty() || (state.ended && !state.finished)
        });
        !wait.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// No more lines will come.
    pub(crate) fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_os::Timestamp;
    use skidder_testkit::SimClock;

    fn line(level: Level, bytes: usize) -> Line {
        Line::own(level, Timestamp(0), &"x".repeat(bytes))
    }

    fn texts(entries: Vec<Entry>) -> Vec<String> {
        let text = |entry| match entry {
            Entry::Line(line) | Entry::EventData(line) => line.message,
        };
        entries.into_iter().map(text).collect()
    }

    #[test]
    fn logging_does_not_wait_and_dropped_lines_are_reported() {
        let queue = Queue::default();
        let clock: Arc<dyn Clock> = Arc::new(SimClock::new());
        for _ in 0..10 {
            queue.push_event_data(line(Level::INFO, 1 << 20));
        }
        // Warnings have more room.
        queue.push_event_data(line(Level::WARN, 1 << 19));
        let mut taken = texts(queue.take(&clock).expect("lines wait"));
        let line = taken.pop().expect("a line");
        assert!(line.starts_with("lines of the log were left out"), "{line}");
        let sizes: Vec<usize> = taken.iter().map(|text| text.len() >> 19).collect();
        assert_eq!(sizes, [2, 2, 2, 1], "three of the ten, and the warning");
        assert_eq!(queue.counters.left_out.load(Ordering::Relaxed), 7);
        queue.end();
        assert!(queue.take(&clock).is_none());
    }

    #[test]
    fn a_flush_waits_until_what_was_taken_is_written() {
        let queue = Queue::default();
        let clock: Arc<dyn Clock> = Arc::new(SimClock::new());
        queue.push_event_data(line(Level::INFO, 1));
        assert!(!queue.flush(Duration::ZERO));
        assert_eq!(queue.take(&clock).map(|taken| taken.len()), Some(1));
        assert!(!queue.flush(Duration::ZERO), "taken, and not written");
        queue.end();
        assert!(queue.take(&clock).is_none());
        assert!(queue.flush(Duration::ZERO));
    }
}
