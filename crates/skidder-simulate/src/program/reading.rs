//! The reader threads, one of their steps at a time.

use super::pipeline::Pipeline;
use crate::oracle::Way;
use crate::stage::Stage;
use skidder_event::Batch;
use skidder_os::{Clock, Monotonic};
use skidder_pipeline::Queue;
use skidder_read::{Fingerprint, Next, Target, Turn, TurnEnd};
use skidder_testkit::Random;
use std::time::Duration;

/// How often the files of waiting sources are opened while there is no room, as the product's reader threads do it.
const OPEN_WAITING_EVERY: Duration = Duration::from_millis(100);

/// A thread that reads, between two of its steps.
#[expect(clippy::large_enum_variant, reason = "there are few of them")]
pub(super) enum Worker {
    Free,
    Has(Turn),
    /// The batch to push, and whether something of this turn was before.
    Ran(Turn, TurnEnd, Option<Batch>, bool),
    /// There was no room for the first one, so another was made.
    Ahead(Turn, Batch, TurnEnd, Option<Batch>),
    Pushed(Turn, TurnEnd, bool),
}

impl Worker {
    pub(super) fn is_free(&self) -> bool {
        matches!(self, Self::Free)
    }
}

impl Pipeline {
    /// A step of one reader thread.
    pub(super) fn read(&mut self, stage: &mut Stage, random: &mut Random) -> Result<(), String> {
        let (monotonic, wall) = (stage.clock.monotonic(), stage.clock.wall());
        let life = &mut self.life;
        let count = life.workers.len() as u64;
        let mut is_blocked = false;
        let worker = &mut life.workers[random.below(count) as usize];
        *worker = match std::mem::replace(worker, Worker::Free) {
            Worker::Free => match life.readers.next(monotonic) {
                Next::Turn(turn) => Worker::Has(turn),
                Next::Wait(_) => Worker::Free,
                Next::Stopped => return Err("the readers stopped by themselves".to_owned()),
            },
            Worker::Has(mut turn) => {
                let (batch, end) = turn.run(&mut life.scratch, wall);
                Worker::Ran(turn, end, batch, false)
            }
            Worker::Ran(turn, end, None, had_data) => Worker::Pushed(turn, end, had_data),
            Worker::Ran(mut turn, end, Some(batch), had_data) => {
                if has_room(&life.queue, &batch) {
                    push(&life.queue, &mut self.way, stage, batch)?;
                    Worker::Pushed(turn, end, true)
                } else if matches!(end, TurnEnd::More) && life.readers.may_go_on(&turn) {
                    let (next, end) = turn.run_again(&mut life.scratch, wall, monotonic);
                    Worker::Ahead(turn, batch, end, next)
                } else {
                    is_blocked = true;
                    Worker::Ran(turn, end, Some(batch), had_data)
                }
            }
            Worker::Ahead(turn, batch, end, next) => {
                if has_room(&life.queue, &batch) {
                    push(&life.queue, &mut self.way, stage, batch)?;
                    Worker::Ran(turn, end, next, true)
                } else {
                    is_blocked = true;
                    Worker::Ahead(turn, batch, end, next)
                }
            }
            Worker::Pushed(turn, end, had_data) => {
                self.promised.remove(&turn.source());
                life.readers.finish(turn, &end, had_data, monotonic);
                Worker::Free
            }
        };
        if is_blocked {
            self.open_waiting(stage, monotonic);
        }
        Ok(())
    }

    /// There is no room in the queue: files of sources that wait for a turn are opened. From now on they are kept,
    /// whatever happens to their names.
    fn open_waiting(&mut self, stage: &Stage, now: Monotonic) {
        if now < self.open_waiting_at {
            return;
        }
        self.open_waiting_at = now + OPEN_WAITING_EVERY;
        if self.life.readers.open_waiting(now) || !self.config.is_patient() {
            return;
        }
        for (id, target) in self.life.readers.in_line() {
            if is_at_its_path(&target, stage) {
                self.promised.insert(id, (target.device, target.inode));
            }
        }
    }
}

/// Whether the path of a plain file leads to it. An inode that is used again is another file, which no scan has found
/// yet.
fn is_at_its_path(target: &Target, stage: &Stage) -> bool {
    let (print, at_path) = (&target.print, stage.fs.peek_metadata(&target.path));
    let bytes = stage.fs.peek(&target.path).unwrap_or_default();
    let head = bytes.get(..print.len as usize);
    !target.compressed
        && at_path.is_some_and(|at| (at.device, at.inode) == (target.device, target.inode))
        && head.is_some_and(|head| Fingerprint::of(head).hash == print.hash)
}

/// Pushes a batch for which there is room.
fn push(queue: &Queue, way: &mut Way, stage: &mut Stage, batch: Batch) -> Result<(), String> {
    stage.story.log(|| describe(&batch));
    way.read(&batch, &mut stage.truth)?;
    queue.try_push(batch).map_err(|_| "queue: there was room and then not".to_owned())
}

/// Whether the queue takes a batch now, by its documented rule.
fn has_room(queue: &Queue, batch: &Batch) -> bool {
    let (events, bytes) = queue.filled();
    let limits = queue.limits();
    events == 0
        || (events + batch.len() <= limits.events && bytes + batch.memory_bytes() <= limits.bytes)
}

impl Pipeline {
    /// The threads end after the turns that they have; what was read in those goes nowhere.
    pub(super) fn finish_turns(&mut self, stage: &Stage) {
        let life = &mut self.life;
        for worker in std::mem::take(&mut life.workers) {
            let (turn, end) = match worker {
                Worker::Free => continue,
                Worker::Has(mut turn) => {
                    let (_, end) = turn.run(&mut life.scratch, stage.clock.wall());
                    (turn, end)
                }
                Worker::Ran(turn, end, ..)
                | Worker::Ahead(turn, _, end, _)
                | Worker::Pushed(turn, end, _) => (turn, end),
            };
            life.readers.finish(turn, &end, false, stage.clock.monotonic());
        }
    }
}

/// A batch, for the story.
fn describe(batch: &Batch) -> String {
    let provenance = batch.provenance();
    let first = batch.rows().first().map(|row| batch.text(row.message)).unwrap_or_default();
    format!(
        "source {} in generation {}: {} rows of {:?}, from {:?}",
        provenance.source.0,
        provenance.generation(),
        batch.len(),
        provenance.file().map_or(0..0, |part| part.range.clone()),
        String::from_utf8_lossy(&first[..first.len().min(12)]),
    )
}
