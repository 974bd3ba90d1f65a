//! The search against servers in a few numbers.

use super::*;
use std::collections::BTreeMap;

/// A server in a few numbers, and a shipper that always has something to send.
#[derive(Clone, Copy, Debug)]
struct World {
    /// Time of a request, whatever is in it.
    latency: Duration,
    /// Time for each event; requests at the same time share the server.
    event: Duration,
    /// Requests that it takes at once; the next one is answered 429.
    limit: usize,
    /// How much longer compressed bodies take, in events' times.
    level: f64,
}

const BOUNDS: Bounds =
    Bounds { workers: (1, 16), events: (50, 12_800), plain: false, bytes: 1 << 30 };
const START: Sizes = Sizes { workers: 1, events: 400, level: 1 };
const EVENT_BYTES: u64 = 500;

impl World {
    /// Runs `search` from one time to another; the events that were delivered, and the requests that were too many.
    fn run(self, search: &mut Search, began: Duration, until: Duration) -> (u64, u64) {
        let (mut now, mut server_free) = (began, began);
        let (mut delivered, mut refused) = (0, 0);
        // By the time at which they end.
        let mut running: BTreeMap<(Duration, u64), (u64, Ended)> = BTreeMap::new();
        for number in 0.. {
            let sizes = search.sizes();
            if running.len() < sizes.workers {
                if running.len() >= self.limit {
                    running.insert((now + self.latency, number), (0, Ended::TooMany));
                    continue;
                }
                let level = if sizes.level > 0 { self.level } else { 1.0 };
                let work = self.event.mul_f64(level * sizes.events as f64);
                server_free = server_free.max(now) + work;
                let events = sizes.events as u64;
                running.insert((server_free + self.latency, number), (events, Ended::Taken));
                continue;
            }
            let ((at, _), (events, ended)) = running.pop_first().unwrap();
            now = at;
            if now > until {
                break;
            }
            delivered += events;
            refused += u64::from(ended == Ended::TooMany);
            search.report(Report {
                now: Monotonic(now),
                events,
                bytes: events * EVENT_BYTES,
                ended,
                wanted: true,
            });
        }
        (delivered, refused)
    }

    /// The best of a grid of sizes that stay as they are.
    fn best(self, lasts: Duration) -> u64 {
        let mut best = 0;
        for workers in [1, 2, 4, 8, 16] {
            for events in [400, 800, 1600, 3200, 6400, 12_800] {
                let bounds =
                    Bounds { workers: (workers, workers), events: (events, events), ..BOUNDS };
                let mut search = Search::new(bounds, Sizes { workers, events, level: 1 });
                if workers <= self.limit {
                    best = best.max(self.run(&mut search, Duration::ZERO, lasts).0);
                }
            }
        }
        best
    }
}

fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn it_comes_close_to_the_best_of_a_grid_whatever_the_server_is_like() {
    let lasts = Duration::from_mins(1);
    for latency in [micros(200), millis(5), millis(20), millis(200)] {
        for event in [1, 10, 100] {
            for limit in [1, 2, 4, 7, 100] {
                let world = World { latency, event: micros(event), limit, level: 1.0 };
                let mut search = Search::new(BOUNDS, START);
                let (delivered, refused) = world.run(&mut search, Duration::ZERO, lasts);
                let best = world.best(lasts);
                let share = delivered as f64 / best as f64;
                let sizes = search.sizes();
                // A minute has only 300 times 200 ms, and finding takes a few dozens of them.
                let enough = if latency < millis(100) { 0.85 } else { 0.8 };
                assert!(share > enough, "{world:?}: {share}, {sizes:?}");
                assert!(refused < 100, "{world:?}: {refused} refused");
            }
        }
    }
}

#[test]
fn a_server_that_becomes_slower_gets_fewer_requests_and_more_when_it_recovers() {
    let quick = World { latency: millis(100), event: micros(1), limit: 12, level: 1.0 };
    let mut search = Search::new(BOUNDS, START);
    let lasts = Duration::from_mins(1);
    quick.run(&mut search, Duration::ZERO, lasts);
    let before = search.sizes();
    assert!(before.workers > 3, "{before:?}");
    let (_, refused) = World { limit: 2, ..quick }.run(&mut search, lasts, 2 * lasts);
    // It may just be trying one more.
    assert!(search.sizes().workers <= 3 && refused < 60, "{:?}, {refused}", search.sizes());
    let best = quick.best(lasts);
    let (delivered, _) = quick.run(&mut search, 2 * lasts, 3 * lasts);
    assert!(delivered as f64 > 0.7 * best as f64, "{delivered} of {best}");
}

#[test]
fn the_bound_of_memory_holds() {
    let world = World { latency: millis(50), event: micros(1), limit: 100, level: 1.0 };
    let bounds = Bounds { bytes: 4 << 20, ..BOUNDS };
    let mut search = Search::new(bounds, START);
    world.run(&mut search, Duration::ZERO, Duration::from_secs(30));
    let sizes = search.sizes();
    let bytes = 2 * sizes.workers as u64 * sizes.events as u64 * EVENT_BYTES;
    assert!(bytes <= bounds.bytes && bytes > bounds.bytes / 4, "{sizes:?}");
}

#[test]
fn bodies_stay_compressed_unless_that_is_what_takes_the_time() {
    for (level, expected) in [(1.05, 1), (2.0, 0)] {
        let world = World { latency: millis(2), event: micros(5), limit: 8, level };
        let mut search = Search::new(Bounds { plain: true, ..BOUNDS }, START);
        world.run(&mut search, Duration::ZERO, Duration::from_mins(1));
        assert_eq!(search.sizes().level, expected, "{level}");
    }
}

#[test]
fn what_is_given_stays_and_slow_readers_decide_nothing() {
    let world = World { latency: millis(2), event: micros(5), limit: 8, level: 1.0 };
    let bounds = Bounds { workers: (3, 3), events: (700, 700), plain: false, bytes: 0 };
    let sizes = Sizes { workers: 3, events: 700, level: 5 };
    let mut search = Search::new(bounds, sizes);
    world.run(&mut search, Duration::ZERO, Duration::from_secs(5));
    assert_eq!(search.sizes(), sizes);
    let mut search = Search::new(BOUNDS, START);
    for second in 0..100 {
        let now = Monotonic(Duration::from_secs(second));
        let ended = Ended::Taken;
        let report = Report { now, events: 10, bytes: 5000, ended, wanted: false };
        assert_ne!(search.report(report), Told::Changed);
    }
}
