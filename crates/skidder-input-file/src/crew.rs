//! The threads that read, each of which may make room for a successor.
//!
//! The allocator keeps some freed blocks for each thread and size. After a burst they lie between pages that are free
//! otherwise, and only the end of the thread gives them back: of 20 MB that 500 idle inputs take, they were 2 MB.

use crate::worker::{Ended, Worker};
use skidder_pipeline::{Stage, join};
use skidder_read::Readers;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tracing::Span;

/// The reader threads of an output.
pub(crate) struct Crew {
    readers: Arc<Readers>,
    stage: Stage,
    /// Of the caller: it names the output.
    span: Span,
    /// Those that run, and perhaps some that have just ended.
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Crew {
    /// No threads yet.
    pub(crate) fn new(readers: Arc<Readers>, stage: Stage) -> Arc<Self> {
        Arc::new(Self { readers, stage, span: Span::current(), threads: Mutex::default() })
    }

    /// Starts the thread of a number.
    ///
    /// # Errors
    ///
    /// The system allows no more threads.
    pub(crate) fn add(self: &Arc<Self>, number: usize) -> io::Result<()> {
        let crew = Arc::clone(self);
        let work = move || crew.span.in_scope(|| crew.work(number));
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let thread = std::thread::Builder::new().name(format!("reader-{number}")).spawn(work)?;
        threads.push(thread);
        for ended in threads.extract_if(.., |thread| thread.is_finished()) {
            join(ended);
        }
        Ok(())
    }

    /// Works until there are no more turns, or a successor does.
    fn work(self: &Arc<Self>, number: usize) {
        loop {
            let worker = Worker::new(&self.readers, &self.stage.queue, &*self.stage.clock);
            match worker.run() {
                Ended::Stopped => return,
                Ended::Renewed => match self.add(number) {
                    Ok(()) => return,
                    Err(error) => tracing::debug!(%error, "a reader thread goes on as it is"),
                },
            }
        }
    }

    /// Waits for the end of all threads. The readers must be stopped, or the queue closed.
    pub(crate) fn join(&self) {
        loop {
            // A thread adds its successor before it ends.
            let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(thread) = threads.pop() else { return };
            drop(threads);
            join(thread);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_os::{Clock, SystemClock};
    use skidder_pipeline::{Commits, Queue, QueueLimits, Settle};
    use skidder_read::ReadersLimits;
    use std::thread::ThreadId;
    use std::time::Duration;

    fn ids(crew: &Crew) -> Vec<ThreadId> {
        let threads = crew.threads.lock().unwrap();
        threads.iter().map(|thread| thread.thread().id()).collect()
    }

    #[test]
    fn idle_threads_are_replaced_and_all_of_them_end() {
        let readers = Arc::new(Readers::new(ReadersLimits { open_files: 10, decoders: 1 }));
        let clock = Arc::new(SystemClock::new());
        let queue = Queue::new(QueueLimits::default(), Settle::new());
        let stage =
            Stage { queue, commits: Commits::default(), clock: Arc::<SystemClock>::clone(&clock) };
        let crew = Crew::new(Arc::clone(&readers), stage);
        for number in 0..2 {
            crew.add(number).unwrap();
        }
        let since = clock.monotonic();
        let before = ids(&crew);
        while ids(&crew).iter().any(|id| before.contains(id)) {
            // A thread that had not begun yet was not asked.
            readers.renew_workers();
            assert!(clock.monotonic().since(since) < Duration::from_mins(1), "{before:?} stay");
            std::thread::yield_now();
        }
        readers.stop();
        crew.join();
        assert!(ids(&crew).is_empty());
        assert_eq!(Arc::strong_count(&crew), 1, "no thread has it any more");
    }
}
