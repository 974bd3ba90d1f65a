//! Inputs that come and go while the threads run, on a real disk.

use super::*;
use crate::{Ending, SavedCursors};
use skidder_event::Unprocessed;
use skidder_os::{RealFs, SystemClock};
use skidder_pipeline::{Commits, Delivery, Queue, QueueLimits, Settle, TakeLimits};
use skidder_read::glob::Pattern;
use skidder_read::scan::ScanSettings;
use skidder_read::{
    BufferPool, DecoderPool, FilestreamSettings, InputContext, ReadMetrics, ReadersLimits,
};
use skidder_registry::{Options, Registry};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use tempfile::TempDir;

/// A test that waits for longer has failed.
const LONG: Duration = Duration::from_secs(20);

struct World {
    directory: TempDir,
    readers: Arc<Readers>,
    registry: Arc<Registry>,
    settle: Arc<Settle>,
    stage: Stage,
    driver: FileDriver,
}

impl World {
    /// Without any input.
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let path = directory.path().join("registry");
        let options = Options::default();
        let opened = Registry::open(Arc::new(RealFs), Arc::clone(&clock), &path, options);
        let registry = Arc::new(opened.expect("an empty registry").0);
        let settle = Settle::new();
        let limits = QueueLimits { flush_timeout: Duration::ZERO, ..QueueLimits::default() };
        let queue = Queue::new(limits, Arc::clone(&settle));
        let stage = Stage { queue, commits: Commits::default(), clock };
        let readers = Arc::new(Readers::new(ReadersLimits { open_files: 10, decoders: 1 }));
        let settings = FileDriverSettings { workers: 1, once: false };
        let scanner = Scanner::new(Vec::new(), &RealFs);
        let driver = FileDriver::new(settings, scanner, Arc::clone(&readers));
        Self { directory, readers, registry, settle, stage, driver }
    }

    /// An input of one file with a line, which is scanned when there is a notice, and else once an hour.
    fn input(&self, file: &str) -> FileInput {
        // In a folder of its own, which gives no notice to other inputs.
        let folder = self.directory.path().join(file);
        std::fs::create_dir(&folder).expect("a folder");
        let path = folder.join("log");
        std::fs::write(&path, "a line\n").expect("a file");
        let pattern = Pattern::parse(path.to_str().expect("text"), Path::new("/"), true);
        let patterns = vec![pattern.expect("a good pattern")];
        let scan = ScanSettings { patterns, ..ScanSettings::default() };
        let mut settings = FilestreamSettings::new(file, scan);
        settings.check_interval = Duration::from_hours(1);
        settings.notify = true;
        let cursors = SavedCursors::new(Arc::clone(&self.settle), Arc::clone(&self.registry));
        let context = InputContext {
            settings,
            bind: Unprocessed::bind(),
            cursors: Arc::new(cursors),
            fs: Arc::new(RealFs),
            metrics: Arc::new(ReadMetrics::default()),
            buffers: Arc::new(BufferPool::default()),
            decoders: DecoderPool::new(1),
            rows_max: 100,
        };
        FileInput::new(Arc::new(context), Arc::clone(&self.readers), Arc::default())
    }

    /// Requests a change as of autodiscover. A message comes when it is done.
    fn change(&self, remove: Vec<usize>, add: Vec<(usize, FileInput)>) -> Receiver<()> {
        let (send, receive) = channel();
        let done = Box::new(move || send.send(()).expect("it is waited for"));
        let (ending, beside) = (Ending::WhenRead, true);
        self.driver.inputs().change(InputChange { remove, ending, beside, add, done });
        receive
    }

    fn start(&mut self) {
        self.driver.start(&self.stage).expect("threads");
    }

    /// Takes so many lines from the queue and delivers them.
    fn deliver(&self, wanted: usize) {
        let since = self.stage.clock.monotonic();
        let mut lines = 0;
        while lines < wanted {
            assert!(self.stage.clock.monotonic().since(since) < LONG, "{lines} of {wanted} lines");
            let mut taken = Vec::new();
            let limits = TakeLimits { events: 0, bytes: usize::MAX };
            if !self.stage.queue.try_take(limits, &mut taken) {
                std::thread::yield_now();
            }
            for Delivery { rows, ticket, .. } in taken {
                lines += rows.len();
                ticket.delivered(u32::try_from(rows.len()).expect("a few"));
            }
        }
    }

    /// Waits for the end of a change, for which commits are made.
    fn until(&self, done: &Receiver<()>) {
        let since = self.stage.clock.monotonic();
        while done.recv_timeout(Duration::from_millis(10)).is_err() {
            assert!(self.stage.clock.monotonic().since(since) < LONG, "the change is not done");
            self.stage.commits.done(self.stage.commits.requested());
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.driver.stop();
        self.stage.queue.close();
        self.driver.join();
    }
}

#[test]
fn an_input_that_ends_before_it_has_begun_is_read_to_its_end() {
    let mut world = World::new();
    // The scanner may be busy for so long that it sees both at once.
    let begun = world.change(Vec::new(), vec![(0, world.input("a"))]);
    let ended = world.change(vec![0], Vec::new());
    world.start();
    world.until(&begun);
    world.deliver(1);
    world.until(&ended);
    assert_eq!(world.settle.total().delivered(), 1);
}

#[test]
fn the_first_input_does_not_let_the_next_one_wait_for_its_scan() {
    let mut world = World::new();
    world.start();
    let first = world.change(Vec::new(), vec![(0, world.input("a"))]);
    world.until(&first);
    world.deliver(1);
    let second = world.change(Vec::new(), vec![(1, world.input("b"))]);
    world.until(&second);
    world.deliver(1);
}
