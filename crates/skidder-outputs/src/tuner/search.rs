//! The search for the best sizes, without sockets and clocks: what was taken goes in, sizes come out.
//!
//! Time is cut into *epochs*. In each the rate of delivered events is measured. Now and then one size is moved
//! for an epoch, the *trial*: it stays if the rate says so, and is taken back otherwise. A server that has too
//! much says so by itself (429): that ends a trial at once, and otherwise takes requests away.
//! Epochs in which there was not enough to send say nothing about the output and are not counted.

use skidder_os::Monotonic;
use std::time::Duration;

/// Shortest epoch.
const EPOCH: Duration = Duration::from_millis(100);
/// Fewest requests of an epoch, for each that is under way at once.
const EPOCH_ROUNDS: u64 = 4;
/// An epoch that takes so long has enough with half of them.
const EPOCH_LONG: Duration = Duration::from_millis(300);
/// A larger size must bring so much.
const GAIN: f64 = 1.04;
/// A smaller one may cost so much.
const LOSS: f64 = 0.99;
/// Bodies that are not compressed must bring so much: they are longer, which costs others.
const PLAIN_GAIN: f64 = 1.15;
/// Time between trials, once one was taken back. It doubles with each round of trials that brought nothing.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// Longest time between trials: a server changes over the day.
const PAUSE_MAX: Duration = Duration::from_secs(8);
/// How long a number of requests that was too much is not tried again.
const CEILING: Duration = Duration::from_secs(10);

/// What the search decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Requests under way at once, to each host.
    pub(crate) workers: usize,
    /// Most events of a request; 0 = the queue decides.
    pub(crate) events: usize,
    /// `compression_level`.
    pub(crate) level: u32,
}

/// Within which bounds. A size with one value is not tuned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) workers: (usize, usize),
    pub(crate) events: (usize, usize),
    /// Whether bodies may be sent as they are instead of at level 1.
    pub(crate) plain: bool,
    /// Most uncompressed bytes of requests under way and of those that are ready, together.
    pub(crate) bytes: u64,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The server took it, or all that it will ever take of it.
    Taken,
    /// The server has too much to do: 429 for all or a part of it.
    TooMany,
}

/// What is known of a request that ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    pub(crate) now: Monotonic,
    /// Events that are delivered by it.
    pub(crate) events: u64,
    /// Its uncompressed bytes.
    pub(crate) bytes: u64,
    pub(crate) ended: Ended,
    /// There is more to send than was taken so far.
    pub(crate) wanted: bool,
}

/// What a report led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// The sizes are others now.
    Changed,
    /// They are others since the request began.
    Known,
    /// Nothing.
    Nothing,
}

impl Told {
    fn of(before: Sizes, now: Sizes) -> Self {
        if before == now { Self::Nothing } else { Self::Changed }
    }
}

/// One step on one of the sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    MoreEvents,
    MoreWorkers,
    OtherLevel,
    FewerWorkers,
    FewerEvents,
}

const MOVES: [Move; 5] =
    [Move::MoreEvents, Move::MoreWorkers, Move::OtherLevel, Move::FewerWorkers, Move::FewerEvents];

#[derive(Clone, Copy, Debug)]
struct Trial {
    before: Sizes,
    step: Move,
}

/// An epoch as far as it has come.
#[derive(Clone, Copy, Debug, Default)]
struct Epoch {
    began: Monotonic,
    events: u64,
    requests: u64,
    wanted: u64,
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Search {
    bounds: Bounds,
    sizes: Sizes,
    trial: Option<Trial>,
    /// Requests that began before the last change: they say nothing of it.
    stale: u64,
    /// None until the first request after the stale ones.
    epoch: Option<Epoch>,
    /// Events a second with the sizes that are not on trial.
    rate: f64,
    /// The next move, and how many in a row were taken back.
    next: usize,
    failed: usize,
    /// When the next trial may begin, and how long it is between two.
    next_trial: Monotonic,
    pause: Duration,
    /// No trial was taken back so far: steps are longer.
    eager: bool,
    /// So many requests were too much, and how long that is held against them.
    ceiling: Option<(usize, Monotonic)>,
    /// Usual uncompressed bytes of an event in a request.
    event_bytes: f64,
}

impl Search {
    /// Begins with `sizes`, which must lie within the bounds.
    pub(crate) fn new(bounds: Bounds, sizes: Sizes) -> Self {
        Self {
            bounds,
            sizes,
            trial: None,
            stale: 0,
            epoch: None,
            rate: 0.0,
            next: 0,
            failed: 0,
            next_trial: Monotonic::default(),
            pause: Duration::ZERO,
            eager: true,
            ceiling: None,
            event_bytes: 0.0,
        }
    }

    /// The sizes now.
    pub(crate) fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// A request ended.
    pub(crate) fn report(&mut self, report: Report) -> Told {
        let before = self.sizes;
        if report.events > 0 {
            let bytes = report.bytes as f64 / report.events as f64;
            let known = self.event_bytes > 0.0;
            self.event_bytes = if known { 0.9 * self.event_bytes + 0.1 * bytes } else { bytes };
        }
        if self.stale > 0 {
            // Also a 429: it was answered to what is no longer done.
            self.stale -= 1;
            return Told::Known;
        }
        if report.ended == Ended::TooMany {
            self.yield_to_server(report.now);
            return Told::of(before, self.sizes);
        }
        let Some(epoch) = &mut self.epoch else {
            self.epoch = Some(Epoch { began: report.now, ..Epoch::default() });
            return Told::Nothing;
        };
        epoch.events += report.events;
        epoch.requests += 1;
        epoch.wanted += u64::from(report.wanted);
        let lasted = report.now.since(epoch.began);
        let rounds = if lasted >= EPOCH_LONG { EPOCH_ROUNDS / 2 } else { EPOCH_ROUNDS };
        if lasted >= EPOCH && epoch.requests >= rounds * self.sizes.workers as u64 {
            let epoch = *epoch;
            self.epoch = Some(Epoch { began: report.now, ..Epoch::default() });
            self.judge(epoch, report.now);
        }
        Told::of(before, self.sizes)
    }

    /// The server has too much.
    fn yield_to_server(&mut self, now: Monotonic) {
        self.eager = false;
        let tried = self.trial.take();
        let sizes = self.sizes;
        if sizes.workers > 1 {
            self.ceiling = Some((sizes.workers, now + CEILING));
        }
        if let Some(trial) = tried {
            self.change(trial.before);
            self.refuse_trial(now);
            return;
        }
        let (workers_min, events_min) = (self.bounds.workers.0, self.bounds.events.0);
        if sizes.workers > workers_min {
            let fewer = (sizes.workers - sizes.workers.div_ceil(4)).max(workers_min);
            self.change(Sizes { workers: fewer, ..sizes });
        } else if sizes.events > events_min {
            self.change(Sizes { events: (sizes.events / 2).max(events_min), ..sizes });
        }
        self.rate = 0.0;
        self.next_trial = now + self.pause;
    }

    /// An epoch is over.
    fn judge(&mut self, epoch: Epoch, now: Monotonic) {
        self.ceiling = self.ceiling.filter(|(_, until)| now < *until);
        let rate = epoch.events as f64 / now.since(epoch.began).as_secs_f64();
        // Else there was not enough to send, and the server could have taken more than this rate.
        let wanted = epoch.wanted * 2 >= epoch.requests;
        let Some(trial) = self.trial.take() else {
            if !wanted {
                return;
            }
            self.rate = if self.rate > 0.0 { f64::midpoint(self.rate, rate) } else { rate };
            if now >= self.next_trial {
                self.try_next(now);
            }
            return;
        };
        if rate < self.rate * self.needed(trial) {
            self.change(trial.before);
            if wanted {
                self.refuse_trial(now);
            } else {
                self.next_trial = now + self.pause;
            }
            return;
        }
        self.rate = rate;
        self.failed = 0;
        self.pause = Duration::ZERO;
        // What helped once may help again.
        if trial.step == Move::OtherLevel || !self.try_step(trial.step) {
            self.next += 1;
        }
    }

    /// The rate that a trial must reach, over the one before.
    fn needed(&self, trial: Trial) -> f64 {
        match trial.step {
            Move::MoreEvents | Move::MoreWorkers => GAIN,
            Move::FewerWorkers | Move::FewerEvents => LOSS,
            Move::OtherLevel if self.sizes.level == 0 => PLAIN_GAIN,
            Move::OtherLevel => 1.0 / PLAIN_GAIN,
        }
    }

    /// A trial brought nothing.
    fn refuse_trial(&mut self, now: Monotonic) {
        self.eager = false;
        self.pause = self.pause.max(PAUSE_MIN);
        self.next += 1;
        self.failed += 1;
        if self.failed >= MOVES.len() {
            self.failed = 0;
            self.pause = (self.pause * 2).min(PAUSE_MAX);
        }
        self.next_trial = now + self.pause;
    }

    /// Begins the next trial that changes something.
    fn try_next(&mut self, now: Monotonic) {
        for _ in MOVES {
            let step = MOVES[self.next % MOVES.len()];
            if self.try_step(step) {
                return;
            }
            self.next += 1;
            self.failed += 1;
        }
        self.pause = (self.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX);
        self.next_trial = now + self.pause;
    }

    /// Begins a trial, if the step leads anywhere.
    fn try_step(&mut self, step: Move) -> bool {
        let now = self.sizes;
        let (workers, events) = (self.bounds.workers, self.bounds.events);
        let top = self.ceiling.map_or(workers.1, |(at, _)| workers.1.min(at - 1));
        let mut then = now;
        match step {
            Move::MoreEvents => {
                let factor = if self.eager { 4 } else { 2 };
                then.events = (now.events * factor).min(events.1);
            }
            Move::FewerEvents => then.events = (now.events * 3 / 4).max(events.0),
            Move::MoreWorkers => {
                let more = if self.eager { now.workers } else { now.workers.div_ceil(2) };
                then.workers = (now.workers + more).min(top).max(now.workers);
            }
            Move::FewerWorkers => {
                then.workers = (now.workers - now.workers.div_ceil(4)).max(workers.0);
            }
            Move::OtherLevel if self.bounds.plain => then.level = u32::from(now.level == 0),
            Move::OtherLevel => {}
        }
        if then == now || !self.fits(then, step) {
            return false;
        }
        self.trial = Some(Trial { before: now, step });
        self.change(then);
        true
    }

    /// Whether there is memory for it.
    fn fits(&self, sizes: Sizes, step: Move) -> bool {
        // One request under way and one ready, for each worker.
        let bytes = 2.0 * sizes.workers as f64 * sizes.events as f64 * self.event_bytes;
        !matches!(step, Move::MoreEvents | Move::MoreWorkers) || bytes <= self.bounds.bytes as f64
    }

    fn change(&mut self, sizes: Sizes) {
        self.epoch = None;
        if sizes == self.sizes {
            return;
        }
        // Those under way, and those that are ready.
        self.stale = 2 * self.sizes.workers as u64;
        self.sizes = sizes;
    }
}

#[cfg(test)]
mod tests;
