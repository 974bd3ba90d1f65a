//! The search for the best sizes, without sockets and clocks: what was taken goes in, sizes come out.
//!
//! The rate of delivery is measured in *samples*, each of at least one answer for every request under way. Now and then
//! one size is moved, the *trial*, until its samples show whether that helps, against how much samples differ without
//! any reason ([`measured`]): a large gain is seen after one round of answers, a small one takes up to eight.
//! At first trials follow each other and steps are long: sizes grow fourfold or twofold with every round or two
//! of answers, as long as that pays. When nothing does any more there are pauses, and trials of smaller sizes too.
//! An overloaded server reports it (429): that ends a trial at once, and otherwise takes requests away.
//! Samples in which there was not enough to send show nothing about the output and are not counted.

mod measured;

use measured::{Measured, Noise, Sample};
use skidder_os::Monotonic;
use std::time::Duration;

/// Samples of a trial that is not clear.
const SAMPLES_MAX: f64 = 8.0;
/// The same, at first, or if that lasts long.
const SAMPLES_FEW: f64 = 3.0;
const TRIAL_LONG: Duration = Duration::from_millis(1500);
/// Samples before a trial, once trials have pauses.
const SAMPLES_BEFORE: f64 = 4.0;
/// A size twice as large must bring so much.
const GAIN: f64 = 1.04;
/// At first, if larger requests bring less, still larger ones wait for the other moves: they bring less still.
const GAIN_LARGE: f64 = 2.0;
/// A smaller one may cost so much.
const LOSS: f64 = 0.99;
/// Bodies that are not compressed must bring so much: they are longer, which costs others.
const PLAIN_GAIN: f64 = 1.1;
/// Shortest pause between two trials. It doubles with each round of trials that brought nothing.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// Longest one, unless trials take long: a server changes over the day.
const PAUSE_MAX: Duration = Duration::from_secs(8);
/// A pause is so many times as long as the trial before it, or longer.
const PAUSE_TRIALS: u32 = 3;
/// The cost of a refused trial is so small a part of the time until the same move is tried again, or this long.
const COST: f64 = 0.01;
const REST_MAX: Duration = Duration::from_secs(10);
/// Requests that take longer do not become longer.
const ANSWER_LONG: f64 = 0.5;
/// How long a number of requests that was too much is not tried again.
const CEILING: Duration = Duration::from_secs(10);

/// The sizes under search.
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
    /// How many hosts have workers.
    pub(crate) hosts: usize,
    /// Most uncompressed bytes of a request.
    pub(crate) request_bytes: u64,
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

/// The report of a request that ended.
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

/// The effect of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The sizes have changed.
    Changed,
    /// They have changed since the request began.
    Known,
    /// Nothing.
    Nothing,
}

impl Effect {
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
/// So many of them are tried at first.
const GROWING: usize = 3;

#[derive(Clone, Copy, Debug)]
struct Trial {
    before: Sizes,
    step: Move,
    began: Monotonic,
    measured: Measured,
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Search {
    bounds: Bounds,
    sizes: Sizes,
    trial: Option<Trial>,
    /// Requests that began before the last change: they do not count for it.
    stale: u64,
    /// None until the first request.
    sample: Option<Sample>,
    /// With the sizes that are not on trial.
    base: Measured,
    noise: Noise,
    /// Until nothing helps any more: trials follow each other, and steps are long.
    growing: bool,
    /// The next move, and how many in a row were taken back.
    next: usize,
    failed: usize,
    /// Rounds of moves in a row that brought nothing.
    rounds: u32,
    /// When the next trial may begin, and when each move may be tried again.
    next_trial: Monotonic,
    rests: [Monotonic; MOVES.len()],
    /// So many requests were too much, and how long that is held against them.
    ceiling: Option<(usize, Monotonic)>,
    /// Usual events of a request, and uncompressed bytes of each.
    request_events: f64,
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
            sample: None,
            base: Measured::default(),
            noise: Noise::default(),
            growing: true,
            next: 0,
            failed: 0,
            rounds: 0,
            next_trial: Monotonic::default(),
            rests: [Monotonic::default(); MOVES.len()],
            ceiling: None,
            request_events: 0.0,
            event_bytes: 0.0,
        }
    }

    /// The sizes now.
    pub(crate) fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// A request ended.
    pub(crate) fn report(&mut self, report: Report) -> Effect {
        let before = self.sizes;
        if report.events > 0 {
            let events = report.events as f64;
            learn(&mut self.event_bytes, report.bytes as f64 / events);
            learn(&mut self.request_events, events);
        }
        if self.stale > 0 {
            // Also a 429: it is about the sizes before.
            self.stale -= 1;
            if self.stale == 0 {
                self.request_events = 0.0;
                self.sample = Some(Sample::new(report.now));
            }
            return Effect::Known;
        }
        if report.ended == Ended::TooMany {
            self.yield_to_server(report.now);
            return Effect::of(before, self.sizes);
        }
        let Some(sample) = &mut self.sample else {
            self.sample = Some(Sample::new(report.now));
            return Effect::Nothing;
        };
        sample.add(&report);
        if sample.is_complete(report.now, (self.sizes.workers * self.bounds.hosts) as u64) {
            let sample = *sample;
            self.sample = Some(Sample::new(report.now));
            self.judge(sample, report.now);
        }
        Effect::of(before, self.sizes)
    }

    /// The server has too much.
    fn yield_to_server(&mut self, now: Monotonic) {
        let tried = self.trial.take();
        let sizes = self.sizes;
        if sizes.workers > 1 {
            self.ceiling = Some((sizes.workers, now + CEILING));
        }
        if let Some(trial) = tried {
            self.change(trial.before);
            // The sizes in between can be compared as quickly.
            let again = trial.step == Move::MoreWorkers && self.try_step(trial.step, now);
            if !again {
                self.refuse(trial, now);
            }
            return;
        }
        let (workers_min, events_min) = (self.bounds.workers.0, self.bounds.events.0);
        if sizes.workers > workers_min {
            let fewer = (sizes.workers - sizes.workers.div_ceil(4)).max(workers_min);
            self.change(Sizes { workers: fewer, ..sizes });
        } else if sizes.events > events_min {
            self.change(Sizes { events: (sizes.events / 2).max(events_min), ..sizes });
        }
        self.growing = false;
        self.base = Measured::default();
        self.next_trial = now + PAUSE_MIN;
    }

    /// A sample is complete.
    fn judge(&mut self, sample: Sample, now: Monotonic) {
        self.ceiling = self.ceiling.filter(|(_, until)| now < *until);
        // Else there was not enough to send, and the server could have taken more than this.
        let wanted = sample.is_wanted();
        let Some(mut trial) = self.trial.take() else {
            if !wanted {
                return;
            }
            self.base.add(&sample, now, &mut self.noise);
            if now >= self.next_trial && self.is_known() {
                self.try_next(now);
            }
            return;
        };
        trial.measured.add(&sample, now, &mut self.noise);
        let over = trial.measured.over(&self.base, self.needed(trial));
        let margin = self.noise.margin(&self.base, &trial.measured);
        let is_short = self.growing && self.noise.is_usual();
        let is_long = now.since(trial.began) >= TRIAL_LONG;
        let most = if is_short || is_long { SAMPLES_FEW } else { SAMPLES_MAX };
        let is_over = !wanted || over.abs() > margin || trial.measured.samples() >= most;
        if !is_over {
            self.trial = Some(trial);
        } else if over >= 0.0 {
            self.accept(trial, now);
        } else if wanted {
            self.change(trial.before);
            self.refuse(trial, now);
        } else {
            self.change(trial.before);
            self.next_trial = now + PAUSE_MIN;
        }
    }

    /// The rate that a trial must reach, over the one before.
    fn needed(&self, trial: Trial) -> f64 {
        match trial.step {
            Move::MoreEvents | Move::MoreWorkers => {
                let larger = |now: usize, before: usize| now as f64 / before.max(1) as f64;
                let events = larger(self.sizes.events, trial.before.events);
                let workers = larger(self.sizes.workers, trial.before.workers);
                GAIN.powf(events.max(workers).log2())
            }
            Move::FewerWorkers | Move::FewerEvents => LOSS,
            Move::OtherLevel if self.sizes.level == 0 => PLAIN_GAIN,
            Move::OtherLevel => 1.0 / PLAIN_GAIN,
        }
    }

    /// A trial helped.
    fn accept(&mut self, trial: Trial, now: Monotonic) {
        let is_small = trial.measured.over(&self.base, GAIN_LARGE) < 0.0;
        self.base = trial.measured;
        self.failed = 0;
        self.rounds = 0;
        self.next_trial = now;
        // A move that helped once may help again, unless it helped little; another level may change everything.
        if trial.step == Move::OtherLevel {
            self.next = 0;
            self.growing |= self.sizes.level == 0;
        } else {
            let waits = self.growing && is_small && trial.step == Move::MoreEvents;
            if waits || (self.is_known() && !self.try_step(trial.step, now)) {
                self.next += 1;
            }
        }
    }

    /// Whether there are enough samples to compare a trial with.
    fn is_known(&self) -> bool {
        let quick = self.growing && self.noise.is_usual();
        self.base.samples() >= if quick { 1.0 } else { SAMPLES_BEFORE }
    }

    /// A trial brought nothing.
    fn refuse(&mut self, trial: Trial, now: Monotonic) {
        let cost = 1.0 - trial.measured.over(&self.base, 1.0).exp();
        let rest = now.since(trial.began).mul_f64(cost.clamp(0.0, 1.0) / COST).min(REST_MAX);
        self.rests[trial.step as usize] = now + rest;
        self.base.is_older();
        self.skip();
        let took = now.since(trial.began) * PAUSE_TRIALS;
        let pause = (PAUSE_MIN * (1 << self.rounds.min(8))).min(PAUSE_MAX).max(took);
        self.next_trial = if self.growing { now } else { now + pause };
    }

    /// The next move brings nothing, or leads nowhere.
    fn skip(&mut self) {
        self.next += 1;
        self.failed += 1;
        if self.growing && self.failed >= GROWING {
            self.growing = false;
            self.failed = 0;
            self.next = GROWING;
        }
        if self.failed >= MOVES.len() {
            self.failed = 0;
            self.rounds += 1;
        }
    }

    /// Begins the next trial that changes something.
    fn try_next(&mut self, now: Monotonic) {
        for _ in 0..MOVES.len() + GROWING {
            let moves = if self.growing { GROWING } else { MOVES.len() };
            if self.try_step(MOVES[self.next % moves], now) {
                return;
            }
            self.skip();
        }
        self.next_trial = now + PAUSE_MAX;
    }

    /// Begins a trial, if the step leads anywhere.
    fn try_step(&mut self, step: Move, now: Monotonic) -> bool {
        let then = self.after(step);
        let rests = !self.growing && now < self.rests[step as usize];
        if then == self.sizes || rests {
            return false;
        }
        let (before, measured) = (self.sizes, Measured::default());
        self.trial = Some(Trial { before, step, began: now, measured });
        self.change(then);
        true
    }

    /// The sizes after a step.
    fn after(&self, step: Move) -> Sizes {
        let now = self.sizes;
        let (workers, events) = (self.bounds.workers, self.bounds.events);
        match step {
            Move::MoreEvents => {
                let factor = if self.growing { 4 } else { 2 };
                let most = (now.events * factor).min(self.events_max(now.workers));
                // Smaller steps are not worth it; and no step is, if requests are not even full now.
                let is_step = most * 4 >= now.events * 5;
                let is_full = self.request_events >= 0.8 * now.events as f64;
                let takes = (now.workers * self.bounds.hosts) as f64 * self.request_events;
                let is_long = takes > ANSWER_LONG * self.base.rate();
                if is_step && is_full && !is_long { Sizes { events: most, ..now } } else { now }
            }
            Move::FewerEvents => {
                let usual = (self.request_events as usize).min(now.events);
                let fewer = (usual * 3 / 4).max(events.0);
                Sizes { events: fewer.min(now.events), ..now }
            }
            Move::MoreWorkers => {
                let more = match self.ceiling {
                    Some((at, _)) => (at - now.workers.min(at)) / 2,
                    None if self.growing => now.workers,
                    None => now.workers.div_ceil(2),
                };
                let more = (now.workers + more).min(workers.1);
                // More and smaller ones, if there is no memory for more of this size.
                let fewer = now.events.min(self.events_max(more)).max(events.0);
                let fits = fewer == now.events || fewer * more > now.events * now.workers / 2;
                if more > now.workers && fits {
                    Sizes { workers: more, events: fewer, ..now }
                } else {
                    now
                }
            }
            Move::FewerWorkers => {
                let fewer = (now.workers - now.workers.div_ceil(4)).max(workers.0);
                Sizes { workers: fewer, ..now }
            }
            Move::OtherLevel if self.bounds.plain => {
                Sizes { level: u32::from(now.level == 0), ..now }
            }
            Move::OtherLevel => now,
        }
    }

    /// Most events of a request with so many workers: within the bounds of a request, and of the memory for all.
    fn events_max(&self, workers: usize) -> usize {
        let (least, most) = self.bounds.events;
        if self.event_bytes == 0.0 || least == most {
            return most;
        }
        // One request under way and one ready, for each worker.
        let share = self.bounds.bytes / (2 * workers * self.bounds.hosts) as u64;
        let bytes = share.min(self.bounds.request_bytes) as f64;
        ((bytes / self.event_bytes) as usize).clamp(least, most)
    }

    fn change(&mut self, sizes: Sizes) {
        self.sample = None;
        let before = self.sizes;
        if sizes == before {
            return;
        }
        // Those under way; and those that are ready, if they are of other sizes.
        let is_other = sizes.events != before.events || sizes.level != before.level;
        let each = if is_other { 2 } else { 1 };
        self.stale = self.stale.max(each * (before.workers * self.bounds.hosts) as u64);
        self.sizes = sizes;
    }
}

/// Takes one more value into the average.
fn learn(usual: &mut f64, value: f64) {
    *usual = if *usual > 0.0 { 0.9 * *usual + 0.1 * value } else { value };
}

#[cfg(test)]
mod tests;
