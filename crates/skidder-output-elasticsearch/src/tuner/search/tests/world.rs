//! A shipper that always has something to send, and a server, in a few numbers.

use super::super::*;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Uncompressed bytes of an event in a request.
pub(super) const EVENT_BYTES: u64 = 500;

/// Times are for one event, where nothing else is said.
#[derive(Clone, Copy, Debug)]
pub(super) struct World {
    /// Time of a request, whatever is in it.
    pub(super) latency: Duration,
    /// Requests that the server takes at once; the next one is answered 429.
    pub(super) limit: usize,
    /// The server's time for an event, on one of its cores; a request is served by one core.
    pub(super) index: Duration,
    pub(super) cores: usize,
    /// How the shipper encodes it, and what it costs both of them if it is compressed.
    pub(super) encode: Duration,
    pub(super) compress: Duration,
    /// The shipper has cores of its own, or those of the server.
    pub(super) own_cores: usize,
    /// How much the times of requests vary: from 1 − this to 1 + this, and three times as long in a tenth of the time.
    pub(super) noise: f64,
    pub(super) seed: u64,
}

impl Default for World {
    fn default() -> Self {
        Self {
            latency: Duration::from_millis(1),
            limit: 100,
            index: Duration::from_micros(1),
            cores: 1,
            encode: Duration::ZERO,
            compress: Duration::ZERO,
            own_cores: 1,
            noise: 0.0,
            seed: 1,
        }
    }
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    pub(super) delivered: u64,
    pub(super) refused: u64,
    /// Time and events of each answer.
    pub(super) answers: Vec<(Duration, u64)>,
}

impl Outcome {
    /// Events a second between two times.
    pub(super) fn rate(&self, from: Duration, to: Duration) -> f64 {
        let within = self.answers.iter().filter(|(at, _)| (from..to).contains(at));
        within.map(|(_, events)| events).sum::<u64>() as f64 / to.abs_diff(from).as_secs_f64()
    }

    /// When the rate of half a second first was so much of that of the last third.
    pub(super) fn ramp(&self, share: f64, lasts: Duration) -> Duration {
        let end = self.rate(lasts * 2 / 3, lasts);
        let window = Duration::from_millis(500);
        let mut at = Duration::ZERO;
        while at < lasts && self.rate(at, at + window) < share * end {
            at += window / 10;
        }
        at
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Encoded {
        events: usize,
        level: u32,
    },
    /// Taken or not.
    Answered {
        events: usize,
        level: u32,
        is_taken: bool,
    },
    /// Events that were not taken are ready again.
    Rested {
        events: usize,
        level: u32,
    },
}

/// A run in progress.
struct Run {
    world: World,
    now: Duration,
    events: BinaryHeap<Reverse<(Duration, u64, Event)>>,
    number: u64,
    random: u64,
    ready: VecDeque<(usize, u32)>,
    encoding: usize,
    under_way: usize,
    /// Requests that count for the limit.
    taken: usize,
    /// When each core is free.
    server: Vec<Duration>,
    shipper: Vec<Duration>,
}

impl World {
    /// Runs `search` from one time to another.
    pub(super) fn run(self, search: &mut Search, began: Duration, until: Duration) -> Outcome {
        let mut run = Run {
            world: self,
            now: began,
            events: BinaryHeap::new(),
            number: 0,
            random: self.seed,
            ready: VecDeque::new(),
            encoding: 0,
            under_way: 0,
            taken: 0,
            server: vec![began; self.cores],
            shipper: vec![began; self.own_cores],
        };
        let mut outcome = Outcome::default();
        while run.now < until {
            run.begin(search.sizes());
            let Some(Reverse((at, _, event))) = run.events.pop() else { break };
            run.now = at;
            run.end(event, search, &mut outcome);
        }
        outcome
    }

    /// The most that a grid of sizes that stay as they are delivers.
    pub(super) fn best(self, bounds: Bounds, lasts: Duration) -> (u64, Sizes) {
        let mut best = (0, Sizes { workers: 0, events: 0, level: 0 });
        for workers in [1, 2, 4, 8, 16] {
            for events in [400, 1600, 6400, 25_600] {
                for level in [0, 1] {
                    if workers > self.limit || (level == 0 && !bounds.plain) {
                        continue;
                    }
                    let share = bounds.bytes / (2 * workers as u64);
                    let bytes = bounds.request_bytes.min(share);
                    let events = events.min((bytes / EVENT_BYTES) as usize);
                    let sizes = Sizes { workers, events, level };
                    let fixed = Bounds {
                        workers: (workers, workers),
                        events: (events, events),
                        plain: false,
                        ..bounds
                    };
                    let mut search = Search::new(fixed, sizes);
                    let delivered = self.run(&mut search, Duration::ZERO, lasts).delivered;
                    if delivered > best.0 {
                        best = (delivered, sizes);
                    }
                }
            }
        }
        best
    }
}

impl Run {
    /// Begins what may be begun.
    fn begin(&mut self, sizes: Sizes) {
        while self.encoding + self.ready.len() < sizes.workers {
            self.encoding += 1;
            let each = self.world.encode + self.compress(sizes.level);
            let work = each * sizes.events as u32;
            let now = self.now;
            let shares = self.shipper.is_empty();
            let cores = if shares { &mut self.server } else { &mut self.shipper };
            let at = occupy(cores, now, work);
            self.later(at, Event::Encoded { events: sizes.events, level: sizes.level });
        }
        while self.under_way < sizes.workers
            && let Some((events, level)) = self.ready.pop_front()
        {
            self.under_way += 1;
            let is_taken = self.taken < self.world.limit;
            let mut at = self.now;
            if is_taken {
                self.taken += 1;
                let each = self.world.index + self.compress(level);
                let work = (each * events as u32).mul_f64(self.varied());
                at = occupy(&mut self.server, self.now, work);
            }
            let latency = self.world.latency.mul_f64(self.varied());
            self.later(at + latency, Event::Answered { events, level, is_taken });
        }
    }

    fn end(&mut self, event: Event, search: &mut Search, outcome: &mut Outcome) {
        match event {
            Event::Encoded { events, level } => {
                self.encoding -= 1;
                self.ready.push_back((events, level));
            }
            Event::Rested { events, level } => {
                self.under_way -= 1;
                self.ready.push_front((events, level));
            }
            Event::Answered { events, level, is_taken } => {
                let delivered = if is_taken { events as u64 } else { 0 };
                if is_taken {
                    self.under_way -= 1;
                    self.taken -= 1;
                    outcome.delivered += delivered;
                    outcome.answers.push((self.now, delivered));
                } else {
                    outcome.refused += 1;
                    let rested = self.now + Duration::from_millis(20);
                    self.later(rested, Event::Rested { events, level });
                }
                search.report(Report {
                    now: Monotonic(self.now),
                    events: delivered,
                    bytes: delivered * EVENT_BYTES,
                    ended: if is_taken { Ended::Taken } else { Ended::TooMany },
                    wanted: true,
                });
            }
        }
    }

    fn compress(&self, level: u32) -> Duration {
        if level > 0 { self.world.compress } else { Duration::ZERO }
    }

    /// By how much the next time is longer.
    fn varied(&mut self) -> f64 {
        if self.world.noise == 0.0 {
            return 1.0;
        }
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let part = (self.random >> 11) as f64 / (1_u64 << 53) as f64;
        // Half a second of each five is slow, as while a server merges.
        let is_slow = (self.now.as_millis() + 2000) % 5000 < 500;
        (1.0 + self.world.noise * (2.0 * part - 1.0)) * if is_slow { 3.0 } else { 1.0 }
    }

    fn later(&mut self, at: Duration, event: Event) {
        self.number += 1;
        self.events.push(Reverse((at, self.number, event)));
    }
}

/// When work ends that is begun now, on the core that is free first.
fn occupy(cores: &mut [Duration], now: Duration, work: Duration) -> Duration {
    let core = cores.iter_mut().min().expect("there is a core");
    *core = (*core).max(now) + work;
    *core
}
