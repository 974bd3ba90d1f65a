//! The search against servers in a few numbers.

mod world;

use super::*;
use world::{EVENT_BYTES, World};

const BOUNDS: Bounds = Bounds {
    workers: (1, 16),
    events: (50, 25_600),
    plain: true,
    hosts: 1,
    request_bytes: 8 << 20,
    bytes: 64 << 20,
};
const COMPRESSED: Bounds = Bounds { plain: false, ..BOUNDS };
const START: Sizes = Sizes { workers: 1, events: 400, level: 1 };
const LASTS: Duration = Duration::from_mins(1);

fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The delivered events from the first one on, over those of the best of a grid in the same time; how often the
/// server had too much; and when 90 % of the last speed was reached.
fn share(world: World, bounds: Bounds) -> (f64, u64, Duration) {
    let mut search = Search::new(bounds, START);
    let came = world.run(&mut search, Duration::ZERO, LASTS);
    let (best, _) = world.best(bounds, LASTS);
    (came.delivered as f64 / best as f64, came.refused, came.ramp(0.9, LASTS))
}

#[test]
fn it_comes_close_to_the_best_of_a_grid_whatever_the_server_is_like() {
    for latency in [micros(200), millis(5), millis(20), millis(200)] {
        for event in [1, 10, 100] {
            for limit in [1, 2, 4, 7, 100] {
                let world = World { latency, index: micros(event), limit, ..World::default() };
                let (share, refused, ramp) = share(world, COMPRESSED);
                // A minute has only 300 times 200 ms, and finding takes a few dozens of them.
                let enough = if latency < millis(100) { 0.85 } else { 0.8 };
                assert!(share > enough, "{world:?}: {share}");
                assert!(refused < 100, "{world:?}: {refused} refused");
                assert!(ramp < millis(500) + 30 * latency, "{world:?}: {ramp:?}");
            }
        }
    }
}

/// The sink of the benchmark: it answers late and takes four requests at once, on the cores of the shipper. Bodies
/// that are compressed are what takes the time.
#[test]
fn a_server_on_the_same_machine_with_latency_and_a_limit_gets_large_plain_requests() {
    let nanos = Duration::from_nanos;
    let world = World {
        latency: millis(20),
        limit: 4,
        index: nanos(300),
        cores: 2,
        own_cores: 0,
        encode: nanos(700),
        compress: nanos(1500),
        ..World::default()
    };
    let (share, refused, ramp) = share(world, BOUNDS);
    assert!(share > 0.9 && refused < 50 && ramp < millis(4000), "{share}, {refused}, {ramp:?}");
    let mut search = Search::new(BOUNDS, START);
    world.run(&mut search, Duration::ZERO, LASTS);
    let sizes = search.sizes();
    assert!(sizes.level == 0 && sizes.workers.abs_diff(4) <= 1 && sizes.events > 5000, "{sizes:?}");
}

/// Times of requests vary, and the server is slow for half a second now and then, as one that merges.
#[test]
fn servers_that_are_busy_with_other_things_are_no_riddle() {
    let usual = World { encode: micros(1), compress: micros(2), noise: 0.3, ..World::default() };
    // One that shares two cores with the shipper; one with eight of its own; one that is far away.
    let here = World { latency: millis(2), index: micros(60), cores: 2, own_cores: 0, ..usual };
    let large = World { latency: millis(5), index: micros(60), cores: 8, own_cores: 2, ..usual };
    let far = World { latency: millis(200), index: micros(5), cores: 4, own_cores: 2, ..usual };
    for world in [here, World { noise: 0.5, ..large }, far] {
        let mut all = 0.0;
        for seed in 1..=5 {
            let world = World { seed, ..world };
            let (share, _, ramp) = share(world, BOUNDS);
            assert!(share > 0.6 && ramp < millis(10_000), "{world:?}: {share}, {ramp:?}");
            all += share;
        }
        assert!(all / 5.0 > 0.8, "{world:?}: {}", all / 5.0);
    }
}

#[test]
fn more_requests_than_the_server_has_cores_are_not_kept() {
    for cores in [1, 2, 4] {
        let world = World { latency: millis(1), index: micros(60), cores, ..World::default() };
        let mut search = Search::new(COMPRESSED, START);
        world.run(&mut search, Duration::ZERO, LASTS);
        let sizes = search.sizes();
        let expected = cores..=2 * cores;
        assert!(expected.contains(&sizes.workers), "{cores}: {sizes:?}");
    }
}

#[test]
fn a_server_that_becomes_slower_gets_fewer_requests_and_more_when_it_recovers() {
    let quick = World { latency: millis(100), limit: 12, ..World::default() };
    let bounds = Bounds { events: (50, 12_800), ..COMPRESSED };
    let bounds = Bounds { bytes: 1 << 30, ..bounds };
    let mut search = Search::new(bounds, START);
    quick.run(&mut search, Duration::ZERO, LASTS);
    let before = search.sizes();
    assert!(before.workers > 3, "{before:?}");
    let slow = World { limit: 2, ..quick };
    let refused = slow.run(&mut search, LASTS, 2 * LASTS).refused;
    // It may just be trying one more.
    assert!(search.sizes().workers <= 3 && refused < 80, "{:?}, {refused}", search.sizes());
    let (best, _) = quick.best(bounds, LASTS);
    let delivered = quick.run(&mut search, 2 * LASTS, 3 * LASTS).delivered;
    assert!(delivered as f64 > 0.7 * best as f64, "{delivered} of {best}");
}

#[test]
fn the_bounds_of_memory_hold() {
    let world = World { latency: millis(50), ..World::default() };
    for hosts in [1, 2] {
        let bounds = Bounds { bytes: 4 << 20, request_bytes: 1 << 20, hosts, ..COMPRESSED };
        let mut search = Search::new(bounds, START);
        world.run(&mut search, Duration::ZERO, Duration::from_secs(30));
        let sizes = search.sizes();
        let bytes = sizes.events as u64 * EVENT_BYTES;
        let all = (2 * sizes.workers * hosts) as u64 * bytes;
        assert!(bytes <= bounds.request_bytes && all <= bounds.bytes, "{sizes:?}");
        assert!(all > bounds.bytes / 4, "{sizes:?}");
    }
}

#[test]
fn bodies_stay_compressed_unless_that_is_what_takes_the_time() {
    let slow = World { latency: millis(2), index: micros(5), limit: 8, ..World::default() };
    for (compress, expected) in [(micros(0), 1), (micros(5), 0)] {
        let world = World { compress, ..slow };
        let mut search = Search::new(BOUNDS, START);
        world.run(&mut search, Duration::ZERO, LASTS);
        assert_eq!(search.sizes().level, expected, "{compress:?}");
    }
}

#[test]
fn what_is_given_stays_and_slow_readers_decide_nothing() {
    let world = World { latency: millis(2), index: micros(5), limit: 8, ..World::default() };
    let bounds = Bounds { workers: (3, 3), events: (700, 700), bytes: 0, ..COMPRESSED };
    let sizes = Sizes { workers: 3, events: 700, level: 5 };
    let mut search = Search::new(bounds, sizes);
    world.run(&mut search, Duration::ZERO, Duration::from_secs(5));
    assert_eq!(search.sizes(), sizes);
    let mut search = Search::new(BOUNDS, START);
    for second in 0..100 {
        let now = Monotonic(Duration::from_secs(second));
        let ended = Ended::Taken;
        let report = Report { now, events: 10, bytes: 5000, ended, wanted: false };
        assert_ne!(search.report(report), Effect::Changed);
    }
}
