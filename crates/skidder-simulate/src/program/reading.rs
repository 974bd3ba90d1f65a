//! The reader threads, one of their steps at a time.

use super::pipeline::Pipeline;
use crate::oracle::Way;
use crate::stage::Stage;
use skidder_event::Batch;
use skidder_os::Clock;
use skidder_pipeline::Queue;
use skidder_read::{Next, Turn, TurnEnd};
use skidder_testkit::Random;

/// A thread that reads, between two of its steps.
#[expect(clippy::large_enum_variant, reason = "there are few of them")]
pub(super) enum Worker {
    Free,
    Has(Turn),
    /// What is to be pushed, and whether something of this turn was before.
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
                    Worker::Ran(turn, end, Some(batch), had_data)
                }
            }
            Worker::Ahead(turn, batch, end, next) => {
                if has_room(&life.queue, &batch) {
                    push(&life.queue, &mut self.way, stage, batch)?;
                    Worker::Ran(turn, end, next, true)
                } else {
                    Worker::Ahead(turn, batch, end, next)
                }
            }
            Worker::Pushed(turn, end, had_data) => {
                life.readers.finish(turn, &end, had_data, monotonic);
                Worker::Free
            }
        };
        Ok(())
    }
}

/// Pushes a batch for which there is room.
fn push(queue: &Queue, way: &mut Way, stage: &mut Stage, batch: Batch) -> Result<(), String> {
    stage.story.tell(|| told(&batch));
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
fn told(batch: &Batch) -> String {
    let provenance = batch.provenance();
    let first = batch.rows().first().map(|row| batch.text(row.message)).unwrap_or_default();
    format!(
        "source {} in generation {}: {} rows of {:?}, from {:?}",
        provenance.source.0,
        provenance.generation,
        batch.len(),
        provenance.range,
        String::from_utf8_lossy(&first[..first.len().min(12)]),
    )
}
