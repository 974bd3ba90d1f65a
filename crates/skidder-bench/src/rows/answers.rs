//! What the answer to a bulk request costs in memory.
//!
//! It cannot be separated from outside, so the code of the output runs inside of the benchmark.

use super::{Goal, row, rows_or_why};
use crate::heap;
use crate::stage::Stage;
use crate::table::Row;
use anyhow::{Context as _, Result, ensure};
use skidder_contract::batch;
use skidder_event::{Base, Map};
use skidder_output_elasticsearch::{AnswerBench, Config, WaitingRequest, parse_host};
use skidder_outputs::Context;
use skidder_pipeline::{Delivery, Queue, QueueLimits, Settle, TakeLimits};
use std::sync::Arc;

const GOALS: [Goal; 1] = [(
    "u",
    "bytes allocated for the answer to a bulk request, 1,600 items, all 201",
    1024.0,
    0.0,
    "",
)];

/// Items of the answer.
const ITEMS: usize = 1600;
/// Answers after the first one.
const ANSWERS: u64 = 100;

/// The row u: reading the answer and giving each event its verdict, again and again with the same memory.
pub fn answers(_stage: &Stage) -> Vec<Row> {
    let measured = bytes().map(|each| {
        vec![row(&GOALS[0], each, format!("the mean of {ANSWERS} answers, after the first one"))]
    });
    rows_or_why(&GOALS, measured)
}

/// Bytes for one answer.
fn bytes() -> Result<f64> {
    let hosts = parse_host("es", "", "").ok().context("a host")?;
    let config = Config::new(vec![hosts]);
    let item = "{\"create\":{\"status\":201}}";
    let body = format!("{{\"errors\":false,\"items\":[{}]}}", vec![item; ITEMS].join(","));
    let mut bench = AnswerBench::default();
    let mut bytes = 0;
    for answer in 0..=ANSWERS {
        let delivery = delivery()?;
        let request = WaitingRequest::new(&config, &Context::sample(), &delivery);
        let before = heap::bytes();
        let taken = bench.handle(&request, body.as_bytes());
        // The first one makes room for the kept ones.
        if answer > 0 {
            bytes += heap::bytes() - before;
        }
        ensure!(taken == ITEMS as u64, "{taken} items were understood");
    }
    Ok(bytes as f64 / ANSWERS as f64)
}

fn delivery() -> Result<Delivery> {
    let limits = QueueLimits { flush_min_events: 0, ..QueueLimits::default() };
    let queue = Queue::new(limits, Settle::new());
    let base = Arc::new(Base::new(&Map::new(), &Map::new()));
    ensure!(queue.push(batch(0, ITEMS, base)).is_ok(), "the queue takes nothing");
    let mut taken = Vec::new();
    queue.try_take(TakeLimits { events: 0, bytes: usize::MAX }, &mut taken);
    taken.pop().context("the queue gives nothing")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What giving back the batch's room in the queue may take.
    const BYTES_MAX: f64 = 128.0;

    #[test]
    fn an_answer_that_took_everything_allocates_next_to_nothing() {
        let bytes = bytes().unwrap();
        assert!(bytes <= BYTES_MAX, "{bytes}");
    }
}
