//! The sink's counts of the documents it took.

use serde_json::{Value, json};
use skidder_workload::sequence_of;

/// Largest line number the check keeps: a bitmap of 125 MB.
const SEQUENCE_CHECKED_MAX: u64 = 1_000_000_000;

/// The counters at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Bulk requests.
    pub requests: u64,
    /// Documents in them.
    pub documents: u64,
    /// Bytes of their bodies as sent (compressed, if they were).
    pub bytes: u64,
    /// Different line numbers; only with the check.
    pub distinct: u64,
    /// Documents whose number had come before; only with the check.
    pub repeated: u64,
    /// Documents without a number, or with one out of range; only with the check.
    pub unnumbered: u64,
    /// Largest number that came, plus one; only with the check.
    pub sequence_end: u64,
}

impl Count {
    /// As JSON. `lines` is how many were sent, numbered from 0, if known.
    pub(super) fn to_json(self, lines: Option<u64>) -> Value {
        json!({
            "requests": self.requests,
            "documents": self.documents,
            "bytes": self.bytes,
            "distinct": self.distinct,
            "duplicates": self.repeated,
            "unnumbered": self.unnumbered,
            "missing": self.missing(lines.unwrap_or(self.sequence_end)),
            "out_of_range": self.sequence_end.saturating_sub(lines.unwrap_or(self.sequence_end)),
        })
    }

    /// How many of the numbers 0 to `lines` did not come, if none beyond came.
    pub fn missing(self, lines: u64) -> u64 {
        lines.saturating_sub(self.distinct)
    }
}

/// The counters with the bitmap of seen numbers.
#[derive(Debug)]
pub(super) struct Counters {
    count: Count,
    seen: Option<Vec<u64>>,
    released: bool,
}

impl Counters {
    pub(super) fn new(check: bool) -> Self {
        Self { count: Count::default(), seen: check.then(Vec::new), released: false }
    }

    pub(super) fn count(&self) -> Count {
        self.count
    }

    pub(super) fn reset(&mut self) {
        self.count = Count::default();
        if let Some(seen) = &mut self.seen {
            seen.clear();
        }
    }

    pub(super) fn release(&mut self) {
        self.released = true;
    }

    pub(super) fn is_released(&self) -> bool {
        self.released
    }

    pub(super) fn add_bulk(&mut self, documents: u64, bytes: u64) {
        self.count.requests += 1;
        self.count.documents += documents;
        self.count.bytes += bytes;
    }

    /// Reads the numbers of documents.
    pub(super) fn check<'a>(&mut self, documents: impl Iterator<Item = &'a [u8]>) {
        for document in documents {
            match sequence_of(document) {
                Some(number) if number < SEQUENCE_CHECKED_MAX => self.see(number),
                _ => self.count.unnumbered += 1,
            }
        }
    }

    fn see(&mut self, number: u64) {
        let Some(seen) = &mut self.seen else { return };
        let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
        if seen.len() <= word {
            seen.resize(word + 1, 0);
        }
        if seen[word] & bit == 0 {
            seen[word] |= bit;
            self.count.distinct += 1;
        } else {
            self.count.repeated += 1;
        }
        self.count.sequence_end = self.count.sequence_end.max(number + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(counters: &mut Counters, numbers: &[u64]) {
        let texts: Vec<String> =
            numbers.iter().map(|number| format!("{{\"message\":\"seq={number:010}\"}}")).collect();
        counters.check(texts.iter().map(String::as_bytes));
    }

    #[test]
    fn lost_repeated_and_unnumbered_lines_are_told_apart() {
        let mut counters = Counters::new(true);
        check(&mut counters, &[0, 1, 3, 1]);
        counters.check(std::iter::once(&b"{\"message\":\"no number\"}"[..]));
        let count = counters.count();
        assert_eq!((count.distinct, count.repeated, count.unnumbered), (3, 1, 1));
        assert_eq!(count.missing(5), 2);
        assert_eq!(count.to_json(Some(3))["out_of_range"], 1);
    }

    #[test]
    fn a_reset_forgets_the_numbers() {
        let mut counters = Counters::new(true);
        check(&mut counters, &[7]);
        counters.reset();
        check(&mut counters, &[7]);
        assert_eq!(counters.count().repeated, 0);
    }
}
