//! A reader thread: takes turns and brings what they give to the queue.
//!
//! While there is no room for a batch the next one is made: of another source, or, if no other has something to
//! read, of the same one. So the output never waits for what could have been read while it was busy. A thread
//! holds at most two batches that are not in the queue.

use skidder_event::Batch;
use skidder_os::{Clock, Monotonic};
use skidder_pipeline::Queue;
use skidder_read::{Next, Readers, Scratch, Turn, TurnEnd};
use std::cell::Cell;
use std::time::Duration;

/// How long a worker without work sleeps at least: the sleepers of thousands of idle files are looked at
/// together. Back-off is counted in seconds.
const IDLE_MIN: Duration = Duration::from_millis(50);

/// How long a worker sleeps at most without looking for work; wake-ups come earlier.
const IDLE_MAX: Duration = Duration::from_secs(5);

/// Chunks after which a turn ends even if no other source wants one: requests to its source wait for that.
const CHUNKS_MAX: u32 = 16;

/// How often the files of sources that wait for a turn are opened while the queue is full: a file that is rotated away and
/// deleted within that time after it was found may be lost.
const OPEN_WAITING_EVERY: Duration = Duration::from_millis(100);

/// The state of a reader thread.
pub(crate) struct Worker<'a> {
    readers: &'a Readers,
    queue: &'a Queue,
    clock: &'a dyn Clock,
    scratch: Scratch,
    now: Monotonic,
    /// See [`Readers::renewals`]: how many there were when it began.
    renewals: u64,
    /// When files of waiting sources are opened next, if there is no room in the queue then.
    open_at: Monotonic,
}

/// Why a worker has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// There are no more turns, or the queue is closed.
    Stopped,
    /// It has nothing to do, and another one is to take its place.
    Renewed,
}

/// A turn whose newest chunk was read.
struct Made {
    turn: Turn,
    batch: Option<Batch>,
    end: TurnEnd,
    /// Chunks of the turn so far.
    chunks: u32,
    had_data: bool,
}

/// The next step after a chunk.
#[expect(clippy::large_enum_variant, reason = "one for each thread")]
enum After {
    /// The one that was read meanwhile.
    Made(Made),
    Next(Next),
    /// Nothing: the queue is closed.
    Closed,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(readers: &'a Readers, queue: &'a Queue, clock: &'a dyn Clock) -> Self {
        let now = clock.monotonic();
        let open_at = now + OPEN_WAITING_EVERY;
        let renewals = readers.renewals();
        Self { readers, queue, clock, scratch: Scratch::default(), now, renewals, open_at }
    }

    /// Works until there are no more turns, or there is nothing to do and another worker is wanted in its place.
    pub(crate) fn run(mut self) -> Ended {
        let mut next = self.readers.next(self.now);
        loop {
            match next {
                Next::Stopped => return Ended::Stopped,
                Next::Wait(_) if self.readers.renewals() != self.renewals => return Ended::Renewed,
                Next::Wait(until) => {
                    let idle = until.map_or(IDLE_MAX, |until| until.since(self.now));
                    self.readers.wait(idle.clamp(IDLE_MIN, IDLE_MAX));
                    self.now = self.clock.monotonic();
                    next = self.readers.next(self.now);
                }
                Next::Turn(turn) => {
                    let mut made = self.begin(turn);
                    next = loop {
                        match self.bring(made) {
                            After::Made(ahead) => made = ahead,
                            After::Next(next) => break next,
                            After::Closed => return Ended::Stopped,
                        }
                    }
                }
            }
        }
    }

    /// Reads the first chunk of a turn.
    fn begin(&mut self, mut turn: Turn) -> Made {
        let (batch, end) = turn.run(&mut self.scratch, self.clock.wall());
        Made { turn, batch, end, chunks: 1, had_data: false }
    }

    /// Reads another chunk in the same turn.
    fn go_on(&mut self, mut turn: Turn, chunks: u32) -> Made {
        let now = self.clock.monotonic();
        let (batch, end) = turn.run_again(&mut self.scratch, self.clock.wall(), now);
        Made { turn, batch, end, chunks: chunks + 1, had_data: true }
    }

    /// Brings a batch to the queue, and ends the turn unless it goes on.
    fn bring(&mut self, made: Made) -> After {
        let Made { turn, batch, end, chunks, had_data } = made;
        let Some(batch) = batch else {
            self.now = self.clock.monotonic();
            let next = self.readers.finish_and_next(turn, &end, had_data, self.now);
            return After::Next(next);
        };
        let mut turn = Some(turn);
        let mut ahead = None;
        let queue = self.queue;
        let opening = Opening::new(self.readers, self.clock, self.open_at);
        let pushed = queue.push_meanwhile(
            batch,
            || {
                queue.note_blocked(self.clock.monotonic());
                opening.open_if_due();
                ahead = self.read_ahead(&mut turn, &end, chunks);
            },
            OPEN_WAITING_EVERY,
            || opening.open_if_due(),
        );
        self.open_at = opening.at.get();
        self.now = self.clock.monotonic();
        if pushed.is_err() {
            for (turn, end) in
                turn.map(|turn| (turn, end)).into_iter().chain(ahead.map(Made::unsent))
            {
                self.readers.finish(turn, &end, true, self.now);
            }
            return After::Closed;
        }
        match (turn, ahead) {
            (None, Some(ahead)) => After::Made(ahead),
            (Some(turn), Some(ahead)) => {
                self.readers.finish(turn, &end, true, self.now);
                After::Made(ahead)
            }
            (Some(turn), None) => {
                After::Next(self.readers.finish_and_next(turn, &end, true, self.now))
            }
            (None, None) => After::Next(self.readers.next(self.now)),
        }
    }

    /// Reads what comes next: of another source, or of the same, whose turn is taken for that.
    fn read_ahead(&mut self, turn: &mut Option<Turn>, end: &TurnEnd, chunks: u32) -> Option<Made> {
        match self.readers.next(self.clock.monotonic()) {
            Next::Turn(other) => Some(self.begin(other)),
            Next::Stopped => None,
            Next::Wait(_) => {
                let may = matches!(end, TurnEnd::More) && chunks < CHUNKS_MAX;
                let same = turn.take_if(|turn| may && self.readers.may_go_on(turn))?;
                Some(self.go_on(same, chunks))
            }
        }
    }
}

/// Opens the files of waiting sources, now and then.
struct Opening<'a> {
    readers: &'a Readers,
    clock: &'a dyn Clock,
    at: Cell<Monotonic>,
}

impl<'a> Opening<'a> {
    fn new(readers: &'a Readers, clock: &'a dyn Clock, at: Monotonic) -> Self {
        Self { readers, clock, at: Cell::new(at) }
    }

    fn open_if_due(&self) {
        let now = self.clock.monotonic();
        if now >= self.at.get() {
            let has_more = self.readers.open_waiting(now);
            self.at.set(if has_more { now } else { now + OPEN_WAITING_EVERY });
        }
    }
}

impl Made {
    fn unsent(self) -> (Turn, TurnEnd) {
        (self.turn, self.end)
    }
}

#[cfg(test)]
mod tests;
