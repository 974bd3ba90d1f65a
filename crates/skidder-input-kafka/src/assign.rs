//! Which member of the group reads which partition: the strategies `range` and `roundrobin`, as Kafka's own clients
//! have them, and the messages in which members exchange them
//! (<https://kafka.apache.org/protocol#The_Messages_ConsumerProtocolSubscription>).

use skidder_kafka::wire::{Nonsense, Reader, put_text};
use std::collections::{BTreeMap, BTreeSet};

/// `rebalance.strategy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strategy {
    /// Of each topic, each member has partitions with numbers that follow each other.
    Range,
    /// Partitions of all topics are dealt out one by one.
    RoundRobin,
}

impl Strategy {
    pub(crate) const WORDS: [(&str, Self); 2] =
        [("range", Self::Range), ("roundrobin", Self::RoundRobin)];

    /// The word of the YAML, and of the protocol.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Range => "range",
            Self::RoundRobin => "roundrobin",
        }
    }
}

/// Partitions by topic.
pub(crate) type Assignment = BTreeMap<String, Vec<i32>>;

/// The topics that a member wants, as the protocol has them.
pub(crate) fn subscription(topics: &[String]) -> Vec<u8> {
    let mut out = vec![0, 0];
    out.extend_from_slice(&(topics.len() as i32).to_be_bytes());
    for topic in topics {
        put_text(&mut out, topic);
    }
    out.extend_from_slice(&(-1_i32).to_be_bytes());
    out
}

/// The topics of a [`subscription`].
pub(crate) fn read_subscription(bytes: &[u8]) -> Result<Vec<String>, Nonsense> {
    let mut reader = Reader(bytes);
    reader.i16()?;
    let mut topics = Vec::new();
    for _ in 0..reader.count()? {
        topics.push(reader.text()?.unwrap_or_default());
    }
    Ok(topics)
}

/// The partitions of a member, as the protocol has them.
pub(crate) fn write_assignment(assignment: &Assignment) -> Vec<u8> {
    let mut out = vec![0, 0];
    out.extend_from_slice(&(assignment.len() as i32).to_be_bytes());
    for (topic, partitions) in assignment {
        put_text(&mut out, topic);
        out.extend_from_slice(&(partitions.len() as i32).to_be_bytes());
        for partition in partitions {
            out.extend_from_slice(&partition.to_be_bytes());
        }
    }
    out.extend_from_slice(&(-1_i32).to_be_bytes());
    out
}

/// The partitions in [`write_assignment`]; none if there are no bytes.
pub(crate) fn read_assignment(bytes: &[u8]) -> Result<Assignment, Nonsense> {
    let mut assignment = Assignment::new();
    if bytes.is_empty() {
        return Ok(assignment);
    }
    let mut reader = Reader(bytes);
    reader.i16()?;
    for _ in 0..reader.count()? {
        let topic = reader.text()?.unwrap_or_default();
        let mut partitions = Vec::new();
        for _ in 0..reader.count()? {
            partitions.push(reader.i32()?);
        }
        assignment.insert(topic, partitions);
    }
    Ok(assignment)
}

/// Gives each partition to one of the members that want its topic. `members` are their ids with the topics they want,
/// `topics` the partitions that there are.
pub(crate) fn assign(
    strategy: Strategy,
    members: &BTreeMap<String, Vec<String>>,
    topics: &Assignment,
) -> BTreeMap<String, Assignment> {
    let mut plan: BTreeMap<String, Assignment> =
        members.keys().map(|member| (member.clone(), Assignment::new())).collect();
    let mut give = |member: &str, topic: &str, partitions: &[i32]| {
        if let Some(assignment) = plan.get_mut(member).filter(|_| !partitions.is_empty()) {
            assignment.entry(topic.to_owned()).or_default().extend_from_slice(partitions);
        }
    };
    let wants = |member: &str, topic: &str| members[member].iter().any(|wanted| wanted == topic);
    match strategy {
        Strategy::Range => {
            for (topic, partitions) in topics {
                let takers: Vec<&String> =
                    members.keys().filter(|member| wants(member, topic)).collect();
                let mut rest = &partitions[..];
                for (place, member) in takers.iter().enumerate() {
                    let share = rest.len().div_ceil(takers.len() - place);
                    let (own, behind) = rest.split_at(share);
                    give(member, topic, own);
                    rest = behind;
                }
            }
        }
        Strategy::RoundRobin => {
            let mut circle = members.keys().cycle();
            let wanted: BTreeSet<&String> = members.values().flatten().collect();
            for (topic, partitions) in topics.iter().filter(|(topic, _)| wanted.contains(topic)) {
                for partition in partitions {
                    if let Some(member) = circle.find(|member| wants(member, topic)) {
                        give(member, topic, &[*partition]);
                    }
                }
            }
        }
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(of: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
        let owned = |topics: &[&str]| topics.iter().map(|topic| (*topic).to_owned()).collect();
        of.iter().map(|(member, topics)| ((*member).to_owned(), owned(topics))).collect()
    }

    fn topics(of: &[(&str, i32)]) -> Assignment {
        of.iter().map(|(topic, count)| ((*topic).to_owned(), (0..*count).collect())).collect()
    }

    fn shown(plan: &BTreeMap<String, Assignment>) -> String {
        let topic = |(topic, partitions): (&String, &Vec<i32>)| format!("{topic}{partitions:?}");
        let one = |(member, of): (&String, &Assignment)| {
            format!("{member}: {}", of.iter().map(topic).collect::<Vec<_>>().join(" "))
        };
        plan.iter().map(one).collect::<Vec<_>>().join("; ")
    }

    /// The examples of Kafka's documentation of `RangeAssignor` and `RoundRobinAssignor`.
    #[test]
    fn partitions_are_dealt_out_as_by_kafkas_own_clients() {
        let both = members(&[("c0", &["t0", "t1"]), ("c1", &["t0", "t1"])]);
        let three = topics(&[("t0", 3), ("t1", 3)]);
        let plan = assign(Strategy::Range, &both, &three);
        assert_eq!(shown(&plan), "c0: t0[0, 1] t1[0, 1]; c1: t0[2] t1[2]");
        let plan = assign(Strategy::RoundRobin, &both, &three);
        assert_eq!(shown(&plan), "c0: t0[0, 2] t1[1]; c1: t0[1] t1[0, 2]");
        let uneven =
            members(&[("c0", &["t0"]), ("c1", &["t0", "t1"]), ("c2", &["t0", "t1", "t2"])]);
        let plan =
            assign(Strategy::RoundRobin, &uneven, &topics(&[("t0", 1), ("t1", 2), ("t2", 3)]));
        assert_eq!(shown(&plan), "c0: t0[0]; c1: t1[0]; c2: t1[1] t2[0, 1, 2]");
    }

    #[test]
    fn every_partition_has_one_member_if_any_wants_it() {
        let some = members(&[("a", &["x"]), ("b", &["x", "y"]), ("c", &["nothing"])]);
        for strategy in [Strategy::Range, Strategy::RoundRobin] {
            for count in 0..12 {
                let plan = assign(strategy, &some, &topics(&[("x", count), ("y", 2), ("z", 5)]));
                let mut given: Vec<(String, i32)> = Vec::new();
                for (topic, partitions) in plan.values().flatten() {
                    given.extend(partitions.iter().map(|partition| (topic.clone(), *partition)));
                }
                given.sort();
                let mut expected: Vec<_> =
                    (0..count).map(|number| ("x".to_owned(), number)).collect();
                expected.extend((0..2).map(|number| ("y".to_owned(), number)));
                assert_eq!(given, expected, "{strategy:?} {count}");
            }
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let wanted = ["a".to_owned(), "bc".to_owned()];
        assert_eq!(read_subscription(&subscription(&wanted)), Ok(wanted.to_vec()));
        let assignment = topics(&[("a", 2), ("bc", 1)]);
        assert_eq!(read_assignment(&write_assignment(&assignment)), Ok(assignment));
        assert_eq!(read_assignment(&[]), Ok(Assignment::new()));
        read_assignment(&[0, 0, 0x7f, 0xff, 0xff, 0xff]).expect_err("it is cut off");
    }
}
