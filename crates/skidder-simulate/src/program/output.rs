//! The output and the other side of it: workers with a request each, that fails, stalls, is answered in
//! part, late and out of order, or is stored without an answer.

use crate::oracle::{LineId, Way, named};
use crate::scenario::Weather;
use crate::stage::Stage;
use skidder_event::DropReason;
use skidder_pipeline::{DeadLetter, DeadLetterError, DeadLetters, Delivery, Queue, TakeLimits};
use skidder_testkit::Random;

/// Steps that a stalled request takes.
const STALL_STEPS: u64 = 400;

/// The workers of the output.
pub(super) struct Output {
    workers: Vec<Option<Request>>,
    take: TakeLimits,
    dead_letters: DeadLetters,
}

/// Where a verdict is reported.
pub(super) enum Behind<'a> {
    /// The rows between files and cursors.
    Way(&'a mut Way),
    /// The lines that the disk queue may bring again, because it is not saved that they were delivered.
    Disk(&'a mut Vec<LineId>),
}

/// A request under way, or one that waits to be sent again.
struct Request {
    rows: Vec<Row>,
    fate: Fate,
    /// Looks of the worker until the fate is known.
    patience: u64,
}

/// A row without a verdict.
#[derive(Clone)]
struct Row {
    delivery: Delivery,
    at: u32,
    /// The other side refused it.
    refused: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Answered,
    Partial,
    Failed,
    Unreported,
}

impl Row {
    fn message(&self) -> &[u8] {
        let batch = &self.delivery.batch;
        batch.text(batch.rows()[self.at as usize].message)
    }
}

impl Output {
    pub(super) fn new(workers: usize, take: TakeLimits, dead_letters: DeadLetters) -> Self {
        Self { workers: (0..workers).map(|_| None).collect(), take, dead_letters }
    }

    /// Whether no worker has anything.
    pub(super) fn is_idle(&self) -> bool {
        self.workers.iter().all(Option::is_none)
    }

    /// A step of one worker.
    pub(super) fn act(
        &mut self,
        queue: &Queue,
        weather: &Weather,
        behind: &mut Behind<'_>,
        stage: &mut Stage,
        random: &mut Random,
    ) -> Result<(), String> {
        let number = random.below(self.workers.len() as u64) as usize;
        let Some(mut request) = self.workers[number].take() else {
            self.workers[number] = take(queue, self.take, weather, random);
            return Ok(());
        };
        if request.patience > 0 {
            request.patience -= 1;
        } else {
            stage.story.log(|| {
                format!(
                    "request of {} rows of worker {number}: {:?}",
                    request.rows.len(),
                    request.fate
                )
            });
            self.answer(&mut request, behind, stage, random)?;
            request.draw(weather, random);
        }
        if !request.rows.is_empty() {
            self.workers[number] = Some(request);
        }
        Ok(())
    }

    /// The fate of a request is known; rows with a verdict leave it.
    fn answer(
        &mut self,
        request: &mut Request,
        behind: &mut Behind<'_>,
        stage: &mut Stage,
        random: &mut Random,
    ) -> Result<(), String> {
        let rows = std::mem::take(&mut request.rows);
        match request.fate {
            Fate::Failed => request.rows = rows,
            Fate::Unreported => {
                for row in &rows {
                    stage.truth.resend(row.message());
                    stage.truth.store(row.message())?;
                }
                request.rows = rows;
            }
            Fate::Answered | Fate::Partial => {
                let partial = request.fate == Fate::Partial;
                let mut refused = Vec::new();
                for mut row in rows {
                    row.refused |= partial && random.one_in(4);
                    if row.refused {
                        refused.push(row);
                    } else if partial && random.one_in(3) {
                        request.rows.push(row);
                    } else {
                        stage.truth.store(row.message())?;
                        settle(&row, behind, stage);
                        row.delivery.ticket.delivered(1);
                    }
                }
                request.rows.extend(self.bury(refused, behind, stage));
            }
        }
        Ok(())
    }

    /// Refused rows go to the dead letters, or are dropped if these are full; gives back those that could
    /// not be written.
    fn bury(&self, refused: Vec<Row>, behind: &mut Behind<'_>, stage: &mut Stage) -> Vec<Row> {
        let letters: Vec<DeadLetter<'_>> = refused
            .iter()
            .map(|row| DeadLetter {
                delivery: &row.delivery,
                row: row.at,
                status: 400,
                reason: b"refused",
                id: None,
            })
            .collect();
        let written = match self.dead_letters.write(&letters) {
            Ok(written) => written,
            Err(DeadLetterError::Full { .. }) => 0,
            Err(DeadLetterError::Write { .. }) => return refused,
        };
        for (at, row) in refused.iter().enumerate() {
            settle(row, behind, stage);
            if at < written {
                stage.truth.bury(row.message());
                row.delivery.ticket.dead_lettered(1);
            } else {
                stage.truth.drop_line(row.message());
                row.delivery.ticket.dropped(DropReason::Rejected, 1);
            }
        }
        Vec::new()
    }
}

fn settle(row: &Row, behind: &mut Behind<'_>, stage: &mut Stage) {
    match behind {
        Behind::Way(way) => way.settle(&row.delivery, row.at),
        Behind::Disk(unsaved) => unsaved.extend(named(row.message())),
    }
    stage.truth.settle(row.message());
}

/// Takes what is there for one request.
fn take(
    queue: &Queue,
    limits: TakeLimits,
    weather: &Weather,
    random: &mut Random,
) -> Option<Request> {
    let mut out = Vec::new();
    queue.try_take(limits, &mut out);
    let mut rows = Vec::new();
    for delivery in out {
        for row in delivery.rows.clone() {
            rows.push(Row { delivery: delivery.clone(), at: row, refused: false });
        }
    }
    if rows.is_empty() {
        return None;
    }
    let mut request = Request { rows, fate: Fate::Answered, patience: 0 };
    request.draw(weather, random);
    Some(request)
}

impl Request {
    /// Draws its outcome, and when it comes.
    fn draw(&mut self, weather: &Weather, random: &mut Random) {
        let mut at = random.below(100);
        let mut falls = |percent: u64| {
            let hit = at < percent;
            at = at.saturating_sub(percent);
            hit
        };
        self.fate = if falls(weather.failed) {
            Fate::Failed
        } else if falls(weather.unreported) {
            Fate::Unreported
        } else if falls(weather.partial) {
            Fate::Partial
        } else {
            Fate::Answered
        };
        self.patience = random.below(6);
        if random.below(100) < weather.stalled {
            self.patience = random.below(STALL_STEPS);
        }
    }
}
