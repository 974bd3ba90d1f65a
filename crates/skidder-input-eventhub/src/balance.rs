//! Who reads which partition: each process looks at what all of them have claimed, and takes its share.
//!
//! The rules are those of Azure's processor for Go, which Filebeat has (`processor_load_balancer.go`), so that both can share
//! the partitions of a hub.

use skidder_os::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// A claim that was not renewed for so long is over.
pub(crate) const EXPIRED_AFTER: Duration = Duration::from_mins(1);

/// How fast a process takes its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strategy {
    /// One partition at each look.
    Balanced,
    /// The whole share at once.
    Greedy,
}

impl Strategy {
    pub(crate) const WORDS: [(&'static str, Self); 2] =
        [("balanced", Self::Balanced), ("greedy", Self::Greedy)];
}

/// The claim on a partition, as its blob has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ownership {
    pub(crate) partition: String,
    /// Empty for one that was given back.
    pub(crate) owner: String,
    /// Empty if there is no blob.
    pub(crate) etag: String,
    pub(crate) modified: Timestamp,
}

/// What to claim.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// What this process has, which is renewed.
    pub(crate) own: Vec<Ownership>,
    /// What it takes besides.
    pub(crate) more: Vec<Ownership>,
    /// How many nobody has.
    pub(crate) free: usize,
}

/// Decides what a process claims. `pick` returns a number below its argument, by chance.
pub(crate) fn decide(
    own: &str,
    partitions: &[String],
    ownerships: Vec<Ownership>,
    (strategy, now): (Strategy, Timestamp),
    mut pick: impl FnMut(usize) -> usize,
) -> Wanted {
    let mut owners: BTreeMap<String, Vec<Ownership>> = BTreeMap::new();
    owners.insert(own.to_owned(), Vec::new());
    let mut free = Vec::new();
    let mut known: Vec<String> = Vec::with_capacity(ownerships.len());
    for ownership in ownerships {
        if !partitions.contains(&ownership.partition) {
            // Of a hub that was made anew with fewer.
            continue;
        }
        known.push(ownership.partition.clone());
        let is_over = now.since(ownership.modified) > EXPIRED_AFTER;
        if ownership.owner.is_empty() || is_over && ownership.owner != own {
            free.push(ownership);
        } else {
            owners.entry(ownership.owner.clone()).or_default().push(ownership);
        }
    }
    let unknown = partitions.iter().filter(|id| !known.contains(id));
    free.extend(unknown.map(|id| Ownership {
        partition: id.clone(),
        owner: String::new(),
        etag: String::new(),
        modified: Timestamp(0),
    }));
    let own_ones = owners.remove(own).unwrap_or_default();
    let count = owners.len() + 1;
    let least = partitions.len() / count;
    // Some processes have one more: this one too, if it has its minimum.
    let is_uneven = !partitions.len().is_multiple_of(count);
    let most = least + usize::from(is_uneven && own_ones.len() >= least);
    let mut above: Vec<Ownership> =
        owners.into_values().filter(|all| all.len() > most).flatten().collect();
    let mut wanted = Wanted { free: free.len(), own: own_ones, more: Vec::new() };
    let missing = most.saturating_sub(wanted.own.len());
    let limit = if strategy == Strategy::Greedy { missing } else { missing.min(1) };
    while wanted.more.len() < limit {
        let from = if free.is_empty() { &mut above } else { &mut free };
        if from.is_empty() {
            break;
        }
        let place = pick(from.len()) % from.len();
        wanted.more.push(from.swap_remove(place));
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000_000_000);

    fn ids(count: usize) -> Vec<String> {
        (0..count).map(|id| id.to_string()).collect()
    }

    fn claim(partition: usize, owner: &str, age: u64) -> Ownership {
        Ownership {
            partition: partition.to_string(),
            owner: owner.to_owned(),
            etag: "e".to_owned(),
            modified: NOW.earlier_by(Duration::from_secs(age)),
        }
    }

    fn names(all: &[Ownership]) -> Vec<&str> {
        all.iter().map(|one| &*one.partition).collect()
    }

    #[test]
    fn a_process_alone_takes_all_one_by_one_or_at_once() {
        let balanced = decide("a", &ids(4), Vec::new(), (Strategy::Balanced, NOW), |_| 0);
        assert_eq!((names(&balanced.more), balanced.free), (vec!["0"], 4));
        let greedy = decide("a", &ids(4), Vec::new(), (Strategy::Greedy, NOW), |_| 0);
        assert_eq!(greedy.more.len(), 4);
    }

    #[test]
    fn claims_that_are_over_or_given_back_are_free() {
        let all = vec![claim(0, "b", 61), claim(1, "", 1), claim(2, "b", 10), claim(9, "b", 1)];
        let wanted = decide("a", &ids(3), all, (Strategy::Greedy, NOW), |_| 0);
        assert_eq!((names(&wanted.more), wanted.free), (vec!["0"], 2));
        // Its own is renewed, however late.
        let late = decide("a", &ids(1), vec![claim(0, "a", 600)], (Strategy::Greedy, NOW), |_| 0);
        assert_eq!((names(&late.own), late.more.len()), (vec!["0"], 0));
    }

    #[test]
    fn who_has_too_little_takes_from_who_has_too_much() {
        let all: Vec<Ownership> = (0..4).map(|id| claim(id, "b", 1)).collect();
        let wanted = decide("a", &ids(4), all, (Strategy::Greedy, NOW), |_| 0);
        assert_eq!(wanted.more.len(), 2);
        let shared = vec![claim(0, "b", 1), claim(1, "b", 1), claim(2, "a", 1)];
        let wanted = decide("a", &ids(3), shared, (Strategy::Greedy, NOW), |_| 0);
        assert_eq!((wanted.own.len(), wanted.more.len()), (1, 0), "one of them has one more");
    }

    #[test]
    fn however_many_come_and_go_all_partitions_are_read_and_nobody_has_two_more_than_another() {
        let mut state = 7_u64;
        let mut pick = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        for (partitions, processes) in [(1, 1), (4, 3), (32, 5), (7, 7), (5, 8)] {
            let ids = ids(partitions);
            let mut blobs: BTreeMap<String, Ownership> = BTreeMap::new();
            for round in 0..200 {
                for process in 0..processes {
                    let own = format!("p{process}");
                    let all = blobs.values().cloned().collect();
                    let wanted = decide(&own, &ids, all, (Strategy::Balanced, NOW), &mut pick);
                    for claimed in wanted.own.into_iter().chain(wanted.more) {
                        let claimed = Ownership { owner: own.clone(), modified: NOW, ..claimed };
                        blobs.insert(claimed.partition.clone(), claimed);
                    }
                }
                if round < 150 {
                    continue;
                }
                assert_eq!(blobs.len(), partitions);
                let count = |process: usize| {
                    let own = format!("p{process}");
                    blobs.values().filter(|blob| blob.owner == own).count()
                };
                let counts: Vec<usize> = (0..processes).map(count).collect();
                let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
                assert!(most - least <= 1, "{partitions} {processes} {counts:?}");
            }
        }
    }
}
