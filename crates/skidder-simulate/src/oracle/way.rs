//! Rows between a reader and a saved cursor: what may come again after a death, and what no cursor may
//! pass.

use super::{LineId, Truth};
use skidder_event::Batch;
use skidder_pipeline::Delivery;
use std::collections::BTreeMap;

/// Rows that were read and are not behind a durable cursor, by source.
#[derive(Debug, Default)]
pub(crate) struct Way {
    rows: BTreeMap<u64, Vec<OnTheWay>>,
}

/// One row between file and registry.
#[derive(Clone, Debug)]
struct OnTheWay {
    generation: u32,
    offset: u64,
    line: Option<LineId>,
    settled: bool,
}

impl Way {
    /// A batch is about to be admitted: its lines are judged.
    pub(crate) fn read(&mut self, batch: &Batch, truth: &mut Truth) -> Result<(), String> {
        let provenance = batch.provenance();
        let rows = self.rows.entry(provenance.source.0).or_default();
        for row in batch.rows() {
            rows.push(OnTheWay {
                generation: provenance.generation(),
                offset: row.offset,
                line: truth.read(batch.text(row.message))?,
                settled: false,
            });
        }
        Ok(())
    }

    /// A row of a delivery is about to get its verdict.
    pub(crate) fn settle(&mut self, delivery: &Delivery, row: u32) {
        let provenance = delivery.batch.provenance();
        let offset = delivery.batch.rows()[row as usize].offset;
        let rows = self.rows.get_mut(&provenance.source.0).into_iter().flatten();
        let mut same = rows.filter(|row| {
            row.generation == provenance.generation() && row.offset == offset && !row.settled
        });
        if let Some(row) = same.next() {
            row.settled = true;
        }
    }

    /// A cursor is about to be saved: no row before it may be without a verdict.
    pub(crate) fn check(&self, source: u64, generation: u32, offset: u64) -> Result<(), String> {
        for row in self.rows.get(&source).into_iter().flatten() {
            if row.generation == generation && row.offset < offset && !row.settled {
                return Err(format!(
                    "cursor: {offset} of source {source} passed a row without a verdict: {row:?}"
                ));
            }
        }
        Ok(())
    }

    /// With a disk queue a cursor passes what that has: gives the lines that this one passes now.
    pub(crate) fn pass(&mut self, source: u64, generation: u32, offset: u64) -> Vec<LineId> {
        let mut passed = Vec::new();
        for row in self.rows.get_mut(&source).into_iter().flatten() {
            if row.generation == generation && row.offset < offset && !row.settled {
                row.settled = true;
                passed.extend(row.line);
            }
        }
        passed
    }

    /// A cursor is durable.
    pub(crate) fn durable(&mut self, source: u64, generation: u32, offset: u64) {
        if let Some(rows) = self.rows.get_mut(&source) {
            rows.retain(|row| row.generation != generation || row.offset >= offset);
        }
    }

    /// The program ended: all of these may come again.
    pub(crate) fn end(&mut self) -> Vec<LineId> {
        let rows = std::mem::take(&mut self.rows);
        rows.into_values().flatten().filter_map(|row| row.line).collect()
    }
}
