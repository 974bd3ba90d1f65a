//! Drives inputs: brings their events to the queue, until the program stops.

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

/// How long processors may continue with their current batch when reading stops.
#[derive(Clone, Copy, Debug)]
pub struct Patience<'a> {
    /// Behind this they are interrupted.
    pub limit: Duration,
    /// Interrupts them.
    pub interrupt: &'a AtomicBool,
}

/// Waits until everything that was there is read, or the driver was stopped; returns whether it is read.
pub type ReadOnce = Box<dyn FnOnce() -> bool + Send>;

/// Drives inputs of one kind for one output: the threads that read files, the tasks that serve sockets.
///
/// All that a pipeline knows of inputs. Its calls come in this order: [`Driver::start`] once, [`Driver::read_once`]
/// at most once, [`Driver::stop`], [`Driver::join`]. The driver itself offers to change its inputs meanwhile.
pub trait Driver: Send {
    /// Begins to read.
    ///
    /// # Errors
    /// Those of the system, when threads cannot be started.
    fn start(&mut self, stage: &Stage) -> io::Result<()>;

    /// Returns a wait until all existing data is read. Only for a driver that reads once, instead of for ever.
    fn read_once(&self) -> ReadOnce;

    /// Stops reading, except for what its inputs must read to an end, as long as their settings allow. Batches being
    /// read may still be pushed.
    fn stop(&mut self);

    /// Waits for the turns under way. The queue is closed by now and takes no batches any more.
    fn join(&mut self);
}
