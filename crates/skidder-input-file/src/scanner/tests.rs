//! When a scanner looks where, on a simulated disk and clock.

use super::*;
use crate::SavedCursors;
use skidder_event::Unprocessed;
use skidder_os::Clock;
use skidder_pipeline::Settle;
use skidder_read::glob::Pattern;
use skidder_read::scan::ScanSettings;
use skidder_read::{BufferPool, DecoderPool, FilestreamSettings, Next, ReadMetrics, ReadersLimits};
use skidder_registry::{Options, Registry};
use skidder_testkit::{Operation, SimClock, SimFs};
use std::path::Path;

struct World {
    fs: SimFs,
    clock: SimClock,
    readers: Arc<Readers>,
    scanner: Scanner,
}

/// An input of `/logs/*` that is scanned every ten seconds.
fn world(notify: bool) -> World {
    let clock = SimClock::new();
    let fs = SimFs::new(&clock);
    fs.create_dir_as_other("/logs");
    let shared: Arc<dyn Fs> = Arc::new(fs.clone());
    let shared_clock: Arc<dyn Clock> = Arc::new(clock.clone());
    let opened =
        Registry::open(Arc::clone(&shared), shared_clock, Path::new("/data/r"), Options::default());
    let registry = Arc::new(opened.expect("an empty disk").0);
    let pattern = Pattern::parse("/logs/*", Path::new("/"), true).expect("a good pattern");
    let scan = ScanSettings { patterns: vec![pattern], ..ScanSettings::default() };
    let mut settings = FilestreamSettings::new("test", scan);
    settings.notify = notify;
    let context = InputContext {
        settings,
        bind: Unprocessed::bind(),
        cursors: Arc::new(SavedCursors::new(Settle::new(), registry)),
        fs: shared,
        metrics: Arc::new(ReadMetrics::default()),
        buffers: Arc::new(BufferPool::default()),
        decoders: DecoderPool::new(1),
        rows_max: 100,
    };
    let readers = Arc::new(Readers::new(ReadersLimits { open_files: 10, decoders: 1 }));
    let input = FileInput::new(Arc::new(context), Arc::clone(&readers), Arc::default());
    let scanner = Scanner::new(vec![input], &fs);
    World { fs, clock, readers, scanner }
}

impl World {
    fn step(&mut self) -> NextStep {
        let clock = &self.clock;
        self.scanner.step(&|| Now { wall: clock.wall(), monotonic: clock.monotonic() })
    }

    fn lists(&self) -> u64 {
        self.fs.operations_of(Operation::List)
    }

    fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// Whether a reader has something to do.
    fn is_woken(&self) -> bool {
        let next = self.readers.next(self.clock.monotonic());
        match next {
            Next::Turn(mut turn) => {
                let (batch, end) =
                    turn.run(&mut skidder_read::Scratch::default(), self.clock.wall());
                self.readers.finish(turn, &end, batch.is_some(), self.clock.monotonic());
                batch.is_some()
            }
            Next::Wait(_) | Next::Stopped => false,
        }
    }
}

#[test]
fn with_notification_everything_is_looked_at_once_a_minute_and_without_by_every_scan() {
    for (notify, expected) in [(true, 2), (false, 7)] {
        let mut world = world(notify);
        let before = world.lists();
        for _ in 0..7 {
            let next = world.step();
            assert_eq!(next.pause, Duration::ZERO);
            assert_eq!(next.until.since(world.clock.monotonic()), Duration::from_secs(10));
            world.advance(10);
        }
        assert_eq!(world.lists() - before, expected, "notify: {notify}");
    }
}

#[test]
fn what_is_told_is_acted_on_at_once_and_then_there_is_a_pause() {
    let mut world = world(true);
    world.step();
    world.fs.write_as_other("/logs/a", b"one\n");
    let next = world.step();
    assert_eq!(next.pause, REACTION_PAUSE);
    assert!(world.is_woken());
    let next = world.step();
    assert_eq!(next.pause, Duration::ZERO, "nothing happened since");
    world.fs.append_as_other("/logs/a", b"two\n");
    world.step();
    assert!(world.is_woken());
}

#[test]
fn what_concerns_no_file_is_heard_together() {
    let mut world = world(true);
    world.step();
    world.fs.create_dir_as_other("/logs/directory");
    assert_eq!(world.step().pause, REACTION_PAUSE);
    assert_eq!(world.step().pause, Duration::ZERO);
}

#[test]
fn the_pause_grows_with_what_there_was_to_do() {
    let mut world = world(true);
    world.step();
    for number in 0..1000 {
        world.fs.write_as_other(format!("/logs/{number}"), b"");
    }
    assert_eq!(world.step().pause, REACTION_PAUSE_EACH * 1000);
}

/// Steps while `/logs/a` is written to before each; the pause behind the last one.
fn pause_behind_writes(world: &mut World, steps: u32) -> Duration {
    (0..steps).fold(Duration::ZERO, |_, _| {
        world.fs.append_as_other("/logs/a", b"line\n");
        world.step().pause
    })
}

#[test]
fn a_steady_trickle_is_read_as_rarely_as_a_queue_that_waits_for_more_allows() {
    for (waits_ms, expected_ms) in [(0, 20), (1_000, 20), (5_000, 50), (10_000, 100), (60_000, 100)]
    {
        let mut world = world(true);
        world.scanner = world.scanner.with_queue_waiting(Duration::from_millis(waits_ms));
        world.step();
        world.fs.write_as_other("/logs/a", b"one\n");
        assert_eq!(world.step().pause, REACTION_PAUSE, "a new file");
        assert_eq!(pause_behind_writes(&mut world, STEADY_AFTER - 1), REACTION_PAUSE);
        let steady = Duration::from_millis(expected_ms);
        assert_eq!(pause_behind_writes(&mut world, 1), steady, "{waits_ms} ms");
        assert_eq!(pause_behind_writes(&mut world, 7), steady, "{waits_ms} ms");
        // Nothing is written for one step: the next line wakes its reader at once, and so does a new name.
        assert_eq!(world.step().pause, Duration::ZERO);
        assert_eq!(pause_behind_writes(&mut world, STEADY_AFTER), steady);
        world.fs.write_as_other("/logs/b", b"two\n");
        assert_eq!(world.step().pause, REACTION_PAUSE, "a new name");
        assert_eq!(pause_behind_writes(&mut world, 1), REACTION_PAUSE, "{waits_ms} ms");
    }
}

#[test]
fn lost_notices_make_a_full_scan_due_but_not_again_and_again() {
    let mut world = world(true);
    world.step();
    world.advance(5);
    let before = world.lists();
    world.fs.overflow_notices();
    world.step();
    assert_eq!(world.lists() - before, 1);
    world.fs.overflow_notices();
    let next = world.step();
    assert_eq!(world.lists() - before, 1);
    assert_eq!(next.until.since(world.clock.monotonic()), LOST_PAUSE_MIN);
    world.advance(1);
    world.step();
    assert_eq!(world.lists() - before, 2);
}
