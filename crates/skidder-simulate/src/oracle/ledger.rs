//! `read = delivered + dropped(reason) + dead-lettered + in flight`, for each source, for all, and both
//! together, after every action.

use skidder_event::SourceId;
use skidder_pipeline::{Ledger, Settle};
use std::collections::BTreeMap;

/// The last counts of every source of one life, those that were forgotten included.
#[derive(Debug, Default)]
pub(crate) struct Ledgers(BTreeMap<SourceId, Ledger>);

impl Ledgers {
    /// Anything that does not add up is an error. What a queue on the disk `stores` has its verdict in the total only.
    pub(crate) fn check(&mut self, settle: &Settle, stores: bool) -> Result<(), String> {
        let total = settle.total();
        if !total.adds_up() {
            return Err(format!("ledger: the total does not add up: {total:?}"));
        }
        let mut wrong = None;
        settle.for_each(|status| {
            if !status.ledger.adds_up() {
                wrong =
                    Some(format!("ledger: {} does not add up: {:?}", status.key, status.ledger));
            }
            self.0.insert(status.source, status.ledger);
        });
        let sum = |of: fn(&Ledger) -> u64| self.0.values().map(of).sum::<u64>();
        if sum(Ledger::read) != total.read()
            || (!stores && sum(Ledger::delivered) != total.delivered())
            || (!stores && sum(Ledger::dead_lettered) != total.dead_lettered())
            || sum(Ledger::in_flight) != total.in_flight()
            || sum(Ledger::read_bytes) != total.read_bytes()
        {
            wrong = wrong.or(Some("ledger: the sources do not add up to the total".to_owned()));
        }
        wrong.map_or(Ok(()), Err)
    }
}
