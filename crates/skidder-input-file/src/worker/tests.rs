//! One reader thread between files on a simulated disk and a queue that is soon full.

use super::*;
use crate::{FileInput, SavedCursors};
use skidder_event::Unprocessed;
use skidder_os::Fs;
use skidder_pipeline::{Delivery, QueueLimits, Settle, TakeLimits};
use skidder_read::glob::Pattern;
use skidder_read::scan::ScanSettings;
use skidder_read::{
    BufferPool, DecoderPool, FilestreamSettings, InputContext, Now, ReadMetrics, ReadersLimits,
};
use skidder_registry::{Options, Registry};
use skidder_testkit::{SimClock, SimFs};
use std::path::Path;
use std::sync::Arc;
use std::thread;

/// Lines of a batch, and of the queue.
const ROWS: usize = 100;

struct World {
    clock: SimClock,
    readers: Readers,
    queue: Queue,
    metrics: Arc<ReadMetrics>,
}

/// The text of a file of so many lines.
fn text(name: &str, lines: usize) -> String {
    (0..lines).fold(String::new(), |text, number| text + &format!("{name} {number:0>2000}\n"))
}

/// Files that were found, none of which is read yet.
fn world(files: &[(&str, usize)]) -> World {
    let clock = SimClock::new();
    let fs = SimFs::new(&clock);
    fs.create_dir_as_other("/logs");
    for (name, lines) in files {
        fs.write_as_other(format!("/logs/{name}"), text(name, *lines).as_bytes());
    }
    let shared: Arc<dyn Fs> = Arc::new(fs.clone());
    let shared_clock: Arc<dyn Clock> = Arc::new(clock.clone());
    let opened =
        Registry::open(Arc::clone(&shared), shared_clock, Path::new("/data/r"), Options::default());
    let registry = Arc::new(opened.expect("an empty disk").0);
    let pattern = Pattern::parse("/logs/*", Path::new("/"), true).expect("a good pattern");
    let scan = ScanSettings { patterns: vec![pattern], ..ScanSettings::default() };
    let settle = Settle::new();
    let metrics = Arc::new(ReadMetrics::default());
    let context = InputContext {
        settings: FilestreamSettings::new("test", scan),
        bind: Unprocessed::bind(),
        cursors: Arc::new(SavedCursors::new(Arc::clone(&settle), registry)),
        fs: shared,
        metrics: Arc::clone(&metrics),
        buffers: Arc::new(BufferPool::default()),
        decoders: DecoderPool::new(1),
        rows_max: ROWS,
    };
    let readers = Arc::new(Readers::new(ReadersLimits { open_files: 10, decoders: 1 }));
    let mut input = FileInput::new(Arc::new(context), Arc::clone(&readers), Arc::default());
    input.scan(Now { wall: clock.wall(), monotonic: clock.monotonic() });
    drop(input);
    let limits = QueueLimits { events: ROWS, bytes: usize::MAX, ..QueueLimits::default() };
    let readers = Arc::into_inner(readers).expect("nobody else has it");
    World { clock, readers, queue: Queue::new(limits, settle), metrics }
}

impl World {
    /// Runs a worker beside `other`, and ends it when that is over.
    fn run<T>(&self, other: impl FnOnce() -> T) -> T {
        thread::scope(|scope| {
            let worker = scope.spawn(|| Worker::new(&self.readers, &self.queue, &self.clock).run());
            let result = other();
            self.readers.stop();
            self.queue.close();
            worker.join().expect("no panic");
            result
        })
    }

    /// Waits until so many lines were read.
    fn until_read(&self, lines: u64) {
        while self.metrics.lines.get() < lines {
            thread::yield_now();
        }
    }

    /// Waits for something in the queue.
    fn take(&self) -> Vec<Delivery> {
        let mut taken = Vec::new();
        let limits = TakeLimits { events: 0, bytes: usize::MAX };
        while !self.queue.try_take(limits, &mut taken) {
            thread::yield_now();
        }
        taken
    }

    /// Takes and settles `lines` lines; gives their messages.
    fn deliver(&self, lines: usize) -> String {
        let mut messages = String::new();
        let mut delivered = 0;
        while delivered < lines {
            for Delivery { batch, rows, ticket } in self.take() {
                for row in &batch.rows()[rows.start as usize..rows.end as usize] {
                    messages.push_str(&String::from_utf8_lossy(batch.text(row.message)));
                    messages.push('\n');
                }
                delivered += rows.len();
                ticket.delivered(rows.len() as u32);
            }
        }
        messages
    }
}

#[test]
fn the_next_chunk_of_a_file_is_read_while_there_is_no_room_for_the_last_one() {
    let world = world(&[("a", 1000)]);
    world.run(|| {
        // One in the queue, one that waits for room, and one more.
        world.until_read(3 * ROWS as u64);
        assert_eq!(world.queue.settle().total().read(), ROWS as u64);
        assert_eq!(world.deliver(1000), text("a", 1000));
    });
    assert_eq!(world.queue.settle().total().read(), 1000);
}

#[test]
fn another_file_is_read_while_there_is_no_room_for_the_lines_of_one() {
    let world = world(&[("a", 250), ("b", 50), ("c", 1)]);
    let messages = world.run(|| {
        world.until_read(ROWS as u64 + 51);
        world.deliver(301)
    });
    for (name, lines) in [("a", 250), ("b", 50), ("c", 1)] {
        let own: String =
            messages.split_inclusive('\n').filter(|line| line.starts_with(name)).collect();
        assert!(own == text(name, lines), "{name} is complete and in its order");
    }
    let first_of_b = messages.find("b ").expect("it was read");
    assert!(messages.rfind("a ").expect("it was read") > first_of_b, "they take turns");
}

#[test]
fn what_waits_for_room_at_the_end_is_not_on_the_ledger_and_all_turns_are_given_back() {
    for files in [&[("a", 1000)][..], &[("a", 250), ("b", 50)]] {
        let world = world(files);
        world.run(|| world.until_read(ROWS as u64 + 51));
        let total = world.queue.settle().total();
        assert_eq!((total.read(), total.in_flight()), (ROWS as u64, ROWS as u64));
        assert!(total.adds_up());
        assert!(world.readers.wait_quiet(Duration::ZERO), "no source has a turn");
    }
}

#[test]
fn a_worker_makes_room_for_another_one_only_when_it_has_nothing_to_do() {
    let world = world(&[("a", 250)]);
    thread::scope(|scope| {
        let worker = scope.spawn(|| Worker::new(&world.readers, &world.queue, &world.clock).run());
        world.until_read(ROWS as u64);
        world.readers.renew_workers();
        assert_eq!(world.deliver(250), text("a", 250));
        assert_eq!(worker.join().expect("no panic"), Ended::Renewed);
        let next = scope.spawn(|| Worker::new(&world.readers, &world.queue, &world.clock).run());
        world.readers.stop();
        assert_eq!(next.join().expect("no panic"), Ended::Stopped);
    });
}
