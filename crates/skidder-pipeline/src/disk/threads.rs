//! The two threads of a disk queue: one writes new events, the other brings them to the output.

use super::{DiskQueue, DiskStep};
use crate::repeats::Repeats;
use skidder_event::Batch;
use skidder_os::{Clock as _, Monotonic, SystemClock};
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

/// How long the thread waits at most before it checks for room; it is notified earlier.
const FULL_PAUSE: Duration = Duration::from_millis(200);

/// How long the thread waits at most for frames; it is notified earlier.
const IDLE_PAUSE: Duration = Duration::from_mins(1);

impl DiskQueue {
    /// Starts both threads. They end with [`DiskQueue::stop`]; and, after the front was closed, when everything was written
    /// and brought to the output, whose end of the queue is then closed.
    pub fn start(self: &Arc<Self>) -> io::Result<Vec<JoinHandle<()>>> {
        let span = tracing::Span::current();
        let (queue, of) = (Arc::clone(self), span.clone());
        let write = move || of.in_scope(|| queue.write());
        let queue = Arc::clone(self);
        let read = move || span.in_scope(|| queue.read());
        let named = |name: &str| std::thread::Builder::new().name(name.to_owned());
        Ok(vec![
            named("queue-writer").spawn(write)?,
            named("queue-reader").stack_size(Batch::RESTORE_STACK_BYTES).spawn(read)?,
        ])
    }

    fn write(&self) {
        let mut trouble = Trouble::new(self, "write");
        let mut fulls = 0_u64;
        loop {
            if self.store.lock().stopped {
                return;
            }
            match self.write_step() {
                Ok(DiskStep::Full) => {
                    trouble.worked(false);
                    // Also the segment that is written to may be one that is not needed any more.
                    self.maintain();
                    fulls += 1;
                    if fulls > 1 {
                        self.store.wait_for_change(FULL_PAUSE);
                    }
                    continue;
                }
                Ok(DiskStep::Done) => trouble.worked(false),
                Ok(DiskStep::Idle | DiskStep::Closed) => {
                    trouble.worked(true);
                    if !wait_for_work(self) {
                        self.store.change(|shared| shared.complete = true);
                        return;
                    }
                }
                Err(error) => {
                    self.store.metrics.write_errors.add(1);
                    trouble.pause(&error);
                }
            }
            fulls = 0;
        }
    }

    fn read(&self) {
        let mut trouble = Trouble::new(self, "read");
        while self.back.wait_below(self.settings().read_ahead) {
            // Asked before: what was complete then has been read if there is nothing now.
            let complete = self.store.lock().complete;
            match self.read_step() {
                Ok(DiskStep::Idle) if complete => {
                    self.back.close();
                    return;
                }
                Ok(DiskStep::Idle) => {
                    trouble.worked(true);
                    let place = self.reader().place();
                    self.store.wait(IDLE_PAUSE, |shared| {
                        shared.released > place || shared.complete || shared.fed
                    });
                }
                Ok(DiskStep::Closed) => return,
                Ok(DiskStep::Done | DiskStep::Full) => trouble.worked(false),
                Err(error) => {
                    self.store.metrics.read_errors.add(1);
                    trouble.pause(&error);
                }
            }
        }
    }
}

/// Waits until there is something to write; `false` at the end.
fn wait_for_work(queue: &DiskQueue) -> bool {
    let mut coming = std::pin::pin!(queue.front.wait_for_work());
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match coming.as_mut().poll(&mut context) {
            Poll::Ready(more) => return more,
            Poll::Pending => std::thread::park(),
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Failures of the disk, one after the other.
struct Trouble<'a> {
    queue: &'a DiskQueue,
    what: &'static str,
    clock: SystemClock,
    repeats: Repeats,
    pause: Duration,
    is_failing: bool,
}

impl<'a> Trouble<'a> {
    fn new(queue: &'a DiskQueue, what: &'static str) -> Self {
        let pause = queue.settings().retry_interval;
        Self {
            queue,
            what,
            clock: SystemClock::new(),
            repeats: Repeats::default(),
            pause,
            is_failing: false,
        }
    }

    /// Something was done; `all`: nothing is left to do.
    fn worked(&mut self, all: bool) {
        self.pause = self.queue.settings().retry_interval;
        if std::mem::take(&mut self.is_failing) {
            self.queue.store.metrics.failure.worked();
        }
        let now = self.now();
        if self.repeats.worked(now, all) {
            tracing::info!("the disk queue can {} again", self.what);
        }
    }

    fn now(&self) -> Monotonic {
        self.clock.monotonic()
    }

    fn pause(&mut self, error: &io::Error) {
        let settings = self.queue.settings();
        let failure = &self.queue.store.metrics.failure;
        self.is_failing = true;
        failure.failed_on_disk(self.clock.wall(), &settings.path, error);
        if let Some(failures) = self.repeats.failed(self.now(), error.kind()) {
            let path = settings.path.display();
            tracing::error!(
                %error, failures, %path,
                "the disk queue cannot {}; nothing is lost, and it is tried again", self.what
            );
        }
        self.queue
            .store
            .wait(self.pause, |shared| shared.stopped || shared.fed && self.what == "read");
        self.pause = (self.pause * 2).min(settings.max_retry_interval).max(settings.retry_interval);
    }
}
