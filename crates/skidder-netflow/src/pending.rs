//! Data that came before its template, within bounds: it waits for the template.

use crate::protocol::Header;
use crate::sessions::SessionKey;
use foldhash::fast::RandomState;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// Bytes of data of all exporters that wait.
pub const PENDING_BYTES_MAX: usize = 8 << 20;

/// Bytes of data of one exporter that wait.
pub const PENDING_OF_EXPORTER_MAX: usize = 1 << 20;

/// How long data waits. Exporters send their templates every 1 to 30 minutes.
const PENDING_AGE: Duration = Duration::from_mins(30);

/// Memory that a set takes besides its bytes.
const OVERHEAD: usize = 128;

/// A set of data without a template.
#[derive(Debug)]
pub(crate) struct Pended {
    pub(crate) header: Header,
    /// The address of the exporter, which is not in the key if exporters share their templates.
    pub(crate) from: std::net::SocketAddr,
    pub(crate) body: Box<[u8]>,
    since: Duration,
}

/// The sets that wait.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// By source and template.
    sets: HashMap<(SessionKey, u16), VecDeque<Pended>, RandomState>,
    /// Of each source.
    of_source: HashMap<SessionKey, usize, RandomState>,
    bytes: usize,
}

impl Pending {
    /// Lets a set wait; returns whether there is room.
    pub(crate) fn put(
        &mut self,
        key: SessionKey,
        id: u16,
        (header, from): (&Header, std::net::SocketAddr),
        body: &[u8],
        now: Duration,
    ) -> bool {
        let bytes = body.len() + OVERHEAD;
        let of_source = self.of_source.get(&key).copied().unwrap_or(0);
        if self.bytes + bytes > PENDING_BYTES_MAX || of_source + bytes > PENDING_OF_EXPORTER_MAX {
            return false;
        }
        self.bytes += bytes;
        self.of_source.insert(key, of_source + bytes);
        let pended = Pended { header: *header, from, body: body.into(), since: now };
        self.sets.entry((key, id)).or_default().push_back(pended);
        true
    }

    /// What waits for a template, in the order in which it came.
    pub(crate) fn take(&mut self, key: SessionKey, id: u16) -> VecDeque<Pended> {
        if self.sets.is_empty() {
            return VecDeque::new();
        }
        let sets = self.sets.remove(&(key, id)).unwrap_or_default();
        for set in &sets {
            self.count_out(key, set.body.len());
        }
        sets
    }

    /// Gives up what has waited for too long; returns how many sets.
    pub(crate) fn expire(&mut self, now: Duration) -> u64 {
        let mut given_up = 0;
        let mut out = Vec::new();
        self.sets.retain(|(key, _), sets| {
            while let Some(set) = sets.front()
                && now.saturating_sub(set.since) >= PENDING_AGE
            {
                out.push((*key, set.body.len()));
                sets.pop_front();
                given_up += 1;
            }
            !sets.is_empty()
        });
        for (key, len) in out {
            self.count_out(key, len);
        }
        given_up
    }

    fn count_out(&mut self, key: SessionKey, len: usize) {
        self.bytes -= len + OVERHEAD;
        if let Some(of_source) = self.of_source.get_mut(&key) {
            *of_source -= len + OVERHEAD;
            if *of_source == 0 {
                self.of_source.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Extra, Protocol};
    use std::net::SocketAddr;

    #[test]
    fn sets_wait_within_bounds_and_not_for_ever() {
        let from = SocketAddr::from(([192, 0, 2, 1], 1));
        let extra = Extra::Source(0);
        let header = Header { protocol: Protocol::V9, time: None, uptime: 0, extra };
        let key = |source| SessionKey { protocol: Protocol::V9, from: Some(from), source };
        let mut pending = Pending::default();
        let mut put = |source, id, at| {
            pending.put(key(source), id, (&header, from), &[7; 1000], Duration::from_secs(at))
        };
        let of_one = (0..2000).filter(|number| put(1, 256 + (number % 7) as u16, 5)).count();
        assert_eq!(of_one, PENDING_OF_EXPORTER_MAX / (1000 + OVERHEAD));
        let of_others = (0..20_000).filter(|number| put(2 + number % 100, 256, 5)).count();
        assert_eq!(of_one + of_others, PENDING_BYTES_MAX / (1000 + OVERHEAD));
        let taken = pending.take(key(1), 256).len();
        assert!(taken >= of_one / 7);
        assert!(pending.put(key(1), 300, (&header, from), &[7; 1000], Duration::from_secs(9)));
        let late = Duration::from_secs(5) + PENDING_AGE;
        assert_eq!(pending.expire(late) as usize, of_one + of_others - taken);
        assert_eq!(pending.take(key(1), 300).len(), 1);
        assert_eq!((pending.bytes, pending.of_source.len(), pending.sets.len()), (0, 0, 0));
    }
}
