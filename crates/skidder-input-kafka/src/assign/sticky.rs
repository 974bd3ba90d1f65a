//! The strategy `sticky`: shares are even, and each member keeps of what it had as much as that allows.

use super::{Assignment, Subscription};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A partition that members want.
struct Part<'a> {
    topic: &'a str,
    number: i32,
    /// The members that may have it, by their places.
    takers: &'a [usize],
}

/// Partitions on their way to members, which are places in a list.
struct Shares<'a> {
    parts: Vec<Part<'a>>,
    /// The parts of each member.
    of: Vec<BTreeSet<usize>>,
}

impl Shares<'_> {
    /// Who of them has the least, and may have this part.
    fn lightest(&self, part: usize) -> Option<usize> {
        let takers = self.parts[part].takers.iter().copied();
        takers.min_by_key(|&member| self.of[member].len())
    }

    /// The next step to even shares: from whom, which part, to whom. The one who has most gives first.
    fn step(&self) -> Option<(usize, usize, usize)> {
        let mut order: Vec<usize> = (0..self.of.len()).collect();
        order.sort_by_key(|&member| Reverse(self.of[member].len()));
        order.into_iter().find_map(|from| {
            let has = self.of[from].len();
            self.of[from].iter().rev().find_map(|&part| {
                let to = self.lightest(part)?;
                (self.of[to].len() + 1 < has).then_some((from, part, to))
            })
        })
    }
}

/// Gives each partition of `topics` to one of the members that want its topic: to the one that had it in the latest
/// generation, but for those that must go elsewhere so that nobody could give one to a member that has two less.
pub(super) fn assign(
    members: &BTreeMap<String, Subscription>,
    topics: &Assignment,
) -> BTreeMap<String, Assignment> {
    let ids: Vec<&String> = members.keys().collect();
    let mut takers: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, member) in members.values().enumerate() {
        let wanted: BTreeSet<&String> = member.topics.iter().collect();
        for topic in wanted {
            takers.entry(topic).or_default().push(place);
        }
    }
    let had = owners(members);
    let mut parts = Vec::new();
    for (topic, numbers) in topics {
        let Some(takers) = takers.get(&**topic) else { continue };
        parts.extend(numbers.iter().map(|&number| Part { topic, number, takers }));
    }
    let mut shares = Shares { parts, of: vec![BTreeSet::new(); ids.len()] };
    let mut free = Vec::new();
    for (at, part) in shares.parts.iter().enumerate() {
        match had.get(&(part.topic, part.number)).filter(|owner| part.takers.contains(owner)) {
            Some(&owner) => drop(shares.of[owner].insert(at)),
            None => free.push(at),
        }
    }
    // Those that few may have first, so that the others can make up for them.
    free.sort_by_key(|&part| shares.parts[part].takers.len());
    for part in free {
        if let Some(member) = shares.lightest(part) {
            shares.of[member].insert(part);
        }
    }
    while let Some((from, part, to)) = shares.step() {
        shares.of[from].remove(&part);
        shares.of[to].insert(part);
    }
    let assignment = |own: &BTreeSet<usize>| {
        let mut assignment = Assignment::new();
        for part in own.iter().map(|&part| &shares.parts[part]) {
            assignment.entry(part.topic.to_owned()).or_default().push(part.number);
        }
        assignment
    };
    ids.into_iter().cloned().zip(shares.of.iter().map(assignment)).collect()
}

/// The member, by its place, that had each partition last. Of several that say so, the one of the latest generation.
fn owners(members: &BTreeMap<String, Subscription>) -> BTreeMap<(&str, i32), usize> {
    let mut owners: BTreeMap<(&str, i32), (i32, usize)> = BTreeMap::new();
    for (place, member) in members.values().enumerate() {
        for (topic, numbers) in &member.had {
            for &number in numbers {
                let owner = owners.entry((topic, number)).or_insert((member.generation, place));
                if owner.0 < member.generation {
                    *owner = (member.generation, place);
                }
            }
        }
    }
    owners.into_iter().map(|(part, (_, place))| (part, place)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{members, shown, topics};
    use super::*;

    /// The next rebalance: each member has what it was given, in this generation; `topics_of` as [`members`].
    fn next(
        plan: &BTreeMap<String, Assignment>,
        generation: i32,
        of: &[(&str, &[&str])],
    ) -> BTreeMap<String, Subscription> {
        let mut members = members(of);
        for (id, member) in &mut members {
            if let Some(had) = plan.get(id) {
                (member.had, member.generation) = (had.clone(), generation);
            }
        }
        members
    }

    /// Partitions that another member has than before.
    fn moved(before: &BTreeMap<String, Assignment>, after: &BTreeMap<String, Assignment>) -> usize {
        let has = |plan: &BTreeMap<String, Assignment>, id: &str, topic: &str, number: i32| {
            plan.get(id).and_then(|of| of.get(topic)).is_some_and(|of| of.contains(&number))
        };
        let mut count = 0;
        for (id, of) in after {
            for (topic, numbers) in of {
                count += numbers.iter().filter(|&&number| !has(before, id, topic, number)).count();
            }
        }
        count
    }

    /// The examples of Kafka's documentation of `StickyAssignor`.
    #[test]
    fn partitions_stay_as_with_kafkas_own_clients() {
        let all: &[&str] = &["t0", "t1", "t2", "t3"];
        let two = topics(&[("t0", 2), ("t1", 2), ("t2", 2), ("t3", 2)]);
        let first = assign(&members(&[("c0", all), ("c1", all), ("c2", all)]), &two);
        assert_eq!(shown(&first), "c0: t0[0] t1[1] t3[0]; c1: t0[1] t2[0] t3[1]; c2: t1[0] t2[1]");
        let second = assign(&next(&first, 1, &[("c0", all), ("c2", all)]), &two);
        assert_eq!(shown(&second), "c0: t0[0] t1[1] t2[0] t3[0]; c2: t0[1] t1[0] t2[1] t3[1]");
        let uneven: &[(&str, &[&str])] =
            &[("c0", &["t0"]), ("c1", &["t0", "t1"]), ("c2", &["t0", "t1", "t2"])];
        let six = topics(&[("t0", 1), ("t1", 2), ("t2", 3)]);
        let first = assign(&members(uneven), &six);
        assert_eq!(shown(&first), "c0: t0[0]; c1: t1[0, 1]; c2: t2[0, 1, 2]");
        let second = assign(&next(&first, 1, &uneven[1..]), &six);
        assert_eq!(shown(&second), "c1: t0[0] t1[0, 1]; c2: t2[0, 1, 2]");
    }

    #[test]
    fn a_new_member_gets_its_share_and_no_other_partition_moves() {
        let all: &[&str] = &["x", "y"];
        let names: Vec<String> = (0..20).map(|number| format!("m{number:02}")).collect();
        let of = |count: usize| -> Vec<(&str, &[&str])> {
            names[..count].iter().map(|name| (&**name, all)).collect()
        };
        let there = topics(&[("x", 60), ("y", 37)]);
        let mut plan = assign(&members(&of(1)), &there);
        for count in 2..20 {
            let after = assign(&next(&plan, count as i32, &of(count)), &there);
            assert_eq!(moved(&plan, &after), 97 / count, "of {count} members");
            plan = after;
        }
        // One after the other leaves: only its own partitions move.
        for count in (1..19).rev() {
            let left = plan[&names[count]].values().map(Vec::len).sum::<usize>();
            let after = assign(&next(&plan, 99, &of(count)), &there);
            assert_eq!(moved(&plan, &after), left, "{count} members stay");
            plan = after;
        }
    }

    #[test]
    fn what_two_members_say_they_had_is_of_the_later_generation() {
        let mut both = members(&[("a", &["x"]), ("b", &["x"])]);
        for (id, generation) in [("a", 7), ("b", 8)] {
            let member = both.get_mut(id).unwrap();
            (member.had, member.generation) = (topics(&[("x", 2), ("gone", 3)]), generation);
        }
        let plan = assign(&both, &topics(&[("x", 4)]));
        assert_eq!(shown(&plan), "a: x[2, 3]; b: x[0, 1]");
        both.get_mut("a").unwrap().generation = 9;
        let plan = assign(&both, &topics(&[("x", 4)]));
        assert_eq!(shown(&plan), "a: x[0, 1]; b: x[2, 3]");
    }

    #[test]
    fn shares_are_as_even_as_the_topics_allow_whatever_members_had() {
        let wanted: [&[&str]; 5] = [&["x"], &["x", "y"], &["y", "z"], &["x", "y", "z"], &[]];
        let mut seed = 1_u64;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % below
        };
        for _ in 0..300 {
            let names: Vec<String> = (0..=random(7)).map(|number| number.to_string()).collect();
            let of: Vec<(&str, &[&str])> =
                names.iter().map(|name| (&**name, wanted[random(5)])).collect();
            let counts = [random(9) as i32, random(9) as i32, random(9) as i32];
            let there = topics(&[("x", counts[0]), ("y", counts[1]), ("z", counts[2])]);
            let mut all = members(&of);
            for member in all.values_mut() {
                member.generation = random(3) as i32;
                for (topic, count) in [("x", counts[0]), ("w", 3), ("z", counts[2])] {
                    let had = (0..count + 2).filter(|_| random(2) == 0).collect();
                    member.had.insert(topic.to_owned(), had);
                }
            }
            let plan = assign(&all, &there);
            let size = |id: &String| plan[id].values().map(Vec::len).sum::<usize>();
            for (topic, numbers) in &there {
                let takers: Vec<&String> = all
                    .iter()
                    .filter(|(_, of)| of.topics.contains(topic))
                    .map(|(id, _)| id)
                    .collect();
                for number in numbers {
                    let has =
                        |id: &&&String| plan[**id].get(topic).is_some_and(|of| of.contains(number));
                    let owners: Vec<_> = takers.iter().filter(has).collect();
                    assert_eq!(owners.len(), usize::from(!takers.is_empty()), "{topic} {number}");
                    for (owner, taker) in owners
                        .iter()
                        .flat_map(|owner| takers.iter().map(move |taker| (owner, taker)))
                    {
                        assert!(size(owner) <= size(taker) + 1, "{}", shown(&plan));
                    }
                }
            }
            let given: usize = names.iter().map(size).sum();
            let wanted =
                there.iter().filter(|(topic, _)| all.values().any(|of| of.topics.contains(topic)));
            assert_eq!(given, wanted.map(|(_, numbers)| numbers.len()).sum::<usize>());
        }
    }
}
