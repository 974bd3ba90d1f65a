//! The ledger: `read + recovered = delivered + dropped(reason) + dead-lettered + stored + in flight`, per source and in total,
//! at every instant. Without a disk queue nothing is recovered or stored.

use skidder_event::{DropCounts, DropReason};

/// The counts of one source, or of everything. Lines, but for `read_bytes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    read: u64,
    read_bytes: u64,
    delivered: u64,
    dead_lettered: u64,
    in_flight: u64,
    recovered: u64,
    stored: u64,
    dropped: DropCounts,
}

/// A consistent view of a ledger.
pub type LedgerSnapshot = Ledger;

impl Ledger {
    /// Lines that readers took from sources.
    pub fn read(&self) -> u64 {
        self.read
    }

    /// Decompressed bytes of those lines with their terminators.
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// Lines that the output accepted.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Lines that are in the dead letters.
    pub fn dead_lettered(&self) -> u64 {
        self.dead_lettered
    }

    /// Lines between reader and verdict, or the disk queue.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Lines that an earlier life of the program has read, and this one has found in the disk queue.
    pub fn recovered(&self) -> u64 {
        self.recovered
    }

    /// Of all sources together: lines that are durable in the disk queue and have no verdict yet. Of one source: lines that
    /// went to the disk queue, whose verdicts are counted in the total only.
    pub fn stored(&self) -> u64 {
        self.stored
    }

    /// Lines dropped, by reason.
    pub fn dropped(&self) -> &DropCounts {
        &self.dropped
    }

    /// Whether the counts add up.
    pub fn adds_up(&self) -> bool {
        self.read + self.recovered
            == self.delivered
                + self.dropped.total()
                + self.dead_lettered
                + self.stored
                + self.in_flight
    }

    /// Adds all counts of another.
    pub fn add(&mut self, other: &Self) {
        let Self {
            read,
            read_bytes,
            delivered,
            dead_lettered,
            in_flight,
            recovered,
            stored,
            dropped,
        } = other;
        self.read += read;
        self.read_bytes += read_bytes;
        self.delivered += delivered;
        self.dead_lettered += dead_lettered;
        self.in_flight += in_flight;
        self.recovered += recovered;
        self.stored += stored;
        self.dropped.add_all(dropped);
    }

    /// A batch came in: `lines` read, of which some were dropped on the way and `rows` are in flight.
    pub(crate) fn admit(&mut self, lines: u64, bytes: u64, drops: &DropCounts, rows: u64) {
        debug_assert_eq!(lines, drops.total() + rows, "a batch whose lines do not add up");
        self.read += lines;
        self.read_bytes += bytes;
        self.dropped.add_all(drops);
        self.in_flight += rows;
    }

    /// `rows` have their verdict.
    pub(crate) fn settle(&mut self, verdict: Verdict, rows: u64) {
        self.in_flight -= rows;
        self.count(verdict, rows);
    }

    /// `rows` were found in the disk queue at the start.
    pub(crate) fn recover(&mut self, rows: u64) {
        self.recovered += rows;
        self.stored += rows;
    }

    /// `rows` of the disk queue have their verdict.
    pub(crate) fn settle_stored(&mut self, verdict: Verdict, rows: u64) {
        self.stored -= rows;
        self.count(verdict, rows);
    }

    fn count(&mut self, verdict: Verdict, rows: u64) {
        match verdict {
            Verdict::Delivered => self.delivered += rows,
            Verdict::DeadLettered => self.dead_lettered += rows,
            Verdict::Dropped(reason) => self.dropped.add(reason, rows),
            Verdict::Stored => self.stored += rows,
        }
    }
}

/// What became of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Verdict {
    Delivered,
    DeadLettered,
    Dropped(DropReason),
    /// It is durable in the disk queue: its cursor passes, and its verdict comes from there.
    Stored,
}

/// The ledger of one source. There may be very many of them, and most of them count delivered lines only.
#[derive(Debug, Default)]
pub(crate) struct SourceLedger {
    read: u64,
    read_bytes: u64,
    delivered: u64,
    in_flight: u64,
    /// The counts of everything else.
    others: Option<Box<Ledger>>,
}

impl SourceLedger {
    /// All counts.
    pub(crate) fn total(&self) -> Ledger {
        let mut total = self.others.as_deref().copied().unwrap_or_default();
        total.read += self.read;
        total.read_bytes += self.read_bytes;
        total.delivered += self.delivered;
        total.in_flight += self.in_flight;
        total
    }

    /// Lines between their reader and their verdict.
    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    pub(crate) fn admit(&mut self, lines: u64, bytes: u64, drops: &DropCounts, rows: u64) {
        debug_assert_eq!(lines, drops.total() + rows, "a batch whose lines do not add up");
        self.read += lines;
        self.read_bytes += bytes;
        self.in_flight += rows;
        if drops.total() > 0 {
            self.others.get_or_insert_default().dropped.add_all(drops);
        }
    }

    pub(crate) fn settle(&mut self, verdict: Verdict, rows: u64) {
        self.in_flight -= rows;
        match verdict {
            Verdict::Delivered => self.delivered += rows,
            others => self.others.get_or_insert_default().count(others, rows),
        }
    }
}
