//! What drives inputs: brings their events to the queue, until it must stop.

use crate::commits::Commits;
use crate::queue::Queue;
use skidder_os::Clock;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Everything that a driver gets when it starts.
#[derive(Clone)]
pub struct Stage {
    /// Where batches go in.
    pub queue: Queue,
    /// Requests a commit of cursors, before another input may read the same sources.
    pub commits: Commits,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

/// How long processors may go on with what they are at when reading stops.
#[derive(Clone, Copy, Debug)]
pub struct Patience<'a> {
    /// Behind this they are interrupted.
    pub limit: Duration,
    /// What interrupts them.
    pub interrupt: &'a AtomicBool,
}

/// Waits until everything that was there is read, or the driver was stopped; returns whether it is read.
pub type ReadOnce = Box<dyn FnOnce() -> bool + Send>;

/// Drives inputs of one kind for one output: the threads that read files, the tasks that serve sockets.
///
/// A pipeline knows nothing of inputs but this. Its calls come in this order: [`Driver::start`] once, [`Driver::read_once`]
/// at most once, [`Driver::stop`], [`Driver::join`]. The driver itself offers to change its inputs meanwhile.
pub trait Driver: Send {
    /// Begins to read.
    ///
    /// # Errors
    /// Those of the system, when threads cannot be started.
    fn start(&mut self, stage: &Stage) -> io::Result<()>;

    /// What waits until everything that was there is read. Only if the driver reads what is there once, instead of for ever.
    fn read_once(&self) -> ReadOnce;

    /// Reads no more, but what its inputs owe to be read to an end; takes as long as their settings allow for that. What
    /// is being read may still be pushed.
    fn stop(&mut self);

    /// Waits for what is being read. The queue is closed by now: what comes is not taken any more.
    fn join(&mut self);
}
