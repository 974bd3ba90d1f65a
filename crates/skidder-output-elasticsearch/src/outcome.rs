//! The answer to a request, sorted by what to do next.

use super::answer::{self, Answer, Did, ItemAnswer, Verdict};
use super::request::{Item, Request};
use super::{Config, dead_index, encode::BulkEncoder};
use skidder_outputs::{Context, Refusal};
use skidder_pipeline::{Delivery, Ticket};
use std::collections::VecDeque;

/// An event of a request that is refused, with the `_id` of its action line.
pub(crate) fn refusal(request: &Request, item: &Item, status: u16, reason: &[u8]) -> Refusal {
    Refusal {
        delivery: request.delivery(item).clone(),
        row: item.row,
        status,
        reason: reason.to_vec(),
        id: dead_index::action_of(request, item).and_then(dead_index::id_of),
    }
}

/// An answer, sorted by what to do next.
pub(crate) struct Outcome {
    /// Rows of each delivery that are done, duplicates included.
    pub(crate) delivered: Vec<u32>,
    pub(crate) duplicates: u64,
    pub(crate) too_many: u64,
    pub(crate) again: Vec<Item>,
    /// Status of the first of them.
    pub(crate) again_status: u16,
    /// Of them, those without a verdict in the answer.
    pub(crate) unproven: usize,
    pub(crate) refused: Vec<(Item, Refusal)>,
}

impl Outcome {
    /// `delivered` is a list to reuse; its content is cleared.
    pub(crate) fn new(request: &Request, answer: &Answer<'_>, mut delivered: Vec<u32>) -> Self {
        delivered.clear();
        delivered.resize(request.deliveries.len(), 0);
        let mut outcome = Self {
            delivered,
            duplicates: 0,
            too_many: 0,
            again: Vec::new(),
            again_status: 0,
            unproven: 0,
            refused: Vec::new(),
        };
        let created = ItemAnswer { status: 201, did: Did::Write, error: "" };
        let answers: &mut dyn Iterator<Item = &ItemAnswer<'_>> = match answer {
            Answer::AllCreated if !request.deletes => {
                for item in &request.items {
                    outcome.delivered[item.delivery as usize] += 1;
                }
                return outcome;
            }
            Answer::AllCreated => &mut std::iter::repeat(&created),
            Answer::Items(answers) => &mut answers.iter(),
        };
        for (item, answer) in request.items.iter().zip(answers) {
            let verdict = answer.verdict(dead_index::operation_of(request, item));
            match verdict {
                Verdict::Delivered | Verdict::Duplicate => {
                    outcome.delivered[item.delivery as usize] += 1;
                    outcome.duplicates += u64::from(verdict == Verdict::Duplicate);
                }
                Verdict::TooMany | Verdict::Failed | Verdict::Unproven => {
                    outcome.too_many += u64::from(verdict == Verdict::TooMany);
                    outcome.unproven += usize::from(verdict == Verdict::Unproven);
                    if outcome.again.is_empty() {
                        outcome.again_status = answer.status;
                    }
                    outcome.again.push(*item);
                }
                Verdict::Rejected => {
                    let reason = answer.error.as_bytes();
                    let refusal = refusal(request, item, answer.status, reason);
                    outcome.refused.push((*item, refusal));
                }
            }
        }
        outcome
    }
}

/// The handling of answers by itself, for tests and benchmarks.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct AnswerBench(Vec<u32>);

/// A request that waits for its answer.
#[doc(hidden)]
#[derive(Debug)]
pub struct WaitingRequest(Request);

impl WaitingRequest {
    /// The request of one delivery.
    pub fn new(config: &Config, context: &Context, delivery: &Delivery) -> Self {
        let mut encoder = BulkEncoder::new(config, context, super::Buffers::default());
        let mut request = Request::default();
        let mut waiting = VecDeque::from([delivery.clone()]);
        while !encoder.fill(&mut request, &mut waiting) {}
        Self(request)
    }
}

impl AnswerBench {
    /// Gives each event of a request the verdict of an answer that took all of them; returns their number.
    pub fn handle(&mut self, request: &WaitingRequest, body: &[u8]) -> u64 {
        let request = &request.0;
        let Ok(answer) = answer::read(body, request.items.len()) else { return 0 };
        let outcome = Outcome::new(request, &answer, std::mem::take(&mut self.0));
        let verdicts = request.deliveries.iter().zip(&outcome.delivered);
        Ticket::deliver_all(verdicts.map(|(delivery, &rows)| (&*delivery.ticket, rows)));
        let taken = outcome.delivered.iter().map(|&rows| u64::from(rows)).sum();
        self.0 = outcome.delivered;
        taken
    }
}
