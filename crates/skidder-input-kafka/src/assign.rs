//! Which member of the group reads which partition: the strategies `range`, `roundrobin` and `sticky`, as Kafka's own
//! clients have them, and the messages in which members exchange them
//! (<https://kafka.apache.org/protocol#The_Messages_ConsumerProtocolSubscription>; what members of `sticky` had is that of
//! `StickyAssignor` of the Java client).

mod sticky;

use skidder_kafka::wire::{Nonsense, Reader, put_text};
use std::collections::{BTreeMap, BTreeSet};

/// `rebalance.strategy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strategy {
    /// Of each topic, each member has partitions with numbers that follow each other.
    Range,
    /// Partitions of all topics are dealt out one by one.
    RoundRobin,
    /// Shares are even, and members keep of what they had as much as that allows.
    Sticky,
}

impl Strategy {
    pub(crate) const WORDS: [(&str, Self); 3] =
        [("range", Self::Range), ("roundrobin", Self::RoundRobin), ("sticky", Self::Sticky)];

    /// The word of the YAML, and of the protocol.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Range => "range",
            Self::RoundRobin => "roundrobin",
            Self::Sticky => "sticky",
        }
    }
}

/// Partitions by topic.
pub(crate) type Assignment = BTreeMap<String, Vec<i32>>;

/// What a member tells the one that assigns partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Subscription {
    /// The topics that it wants.
    pub(crate) topics: Vec<String>,
    /// What it had before; empty with other strategies than `sticky`.
    pub(crate) had: Assignment,
    /// Of the group, when it had that; -1 if it is not known.
    pub(crate) generation: i32,
}

fn put_assignment(out: &mut Vec<u8>, assignment: &Assignment) {
    out.extend_from_slice(&(assignment.len() as i32).to_be_bytes());
    for (topic, partitions) in assignment {
        put_text(out, topic);
        out.extend_from_slice(&(partitions.len() as i32).to_be_bytes());
        for partition in partitions {
            out.extend_from_slice(&partition.to_be_bytes());
        }
    }
}

fn take_assignment(reader: &mut Reader<'_>) -> Result<Assignment, Nonsense> {
    let mut assignment = Assignment::new();
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

impl Subscription {
    /// As the protocol has it. What the member had is only in it if there is anything.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![0, 0];
        out.extend_from_slice(&(self.topics.len() as i32).to_be_bytes());
        for topic in &self.topics {
            put_text(&mut out, topic);
        }
        if self.had.is_empty() {
            out.extend_from_slice(&(-1_i32).to_be_bytes());
            return out;
        }
        let mut data = Vec::new();
        put_assignment(&mut data, &self.had);
        data.extend_from_slice(&self.generation.to_be_bytes());
        out.extend_from_slice(&(data.len() as i32).to_be_bytes());
        out.extend_from_slice(&data);
        out
    }

    /// Reads one; what a member of another `strategy` than `sticky` had is not looked at.
    ///
    /// # Errors
    ///
    /// The bytes end too early. What a member had is taken to be nothing if it makes no sense: it is only a wish.
    pub(crate) fn read(bytes: &[u8], strategy: Strategy) -> Result<Self, Nonsense> {
        let mut reader = Reader(bytes);
        reader.i16()?;
        let mut topics = Vec::new();
        for _ in 0..reader.count()? {
            topics.push(reader.text()?.unwrap_or_default());
        }
        let data = if strategy == Strategy::Sticky { reader.bytes()? } else { &[] };
        let mut reader = Reader(data);
        let had = if data.is_empty() { None } else { take_assignment(&mut reader).ok() };
        // Members of older versions say no generation.
        let generation = reader.i32().ok().filter(|_| had.is_some());
        let generation = generation.unwrap_or(-1);
        Ok(Self { topics, had: had.unwrap_or_default(), generation })
    }
}

/// The partitions of a member, as the protocol has them.
pub(crate) fn write_assignment(assignment: &Assignment) -> Vec<u8> {
    let mut out = vec![0, 0];
    put_assignment(&mut out, assignment);
    out.extend_from_slice(&(-1_i32).to_be_bytes());
    out
}

/// The partitions in [`write_assignment`]; none if there are no bytes.
pub(crate) fn read_assignment(bytes: &[u8]) -> Result<Assignment, Nonsense> {
    if bytes.is_empty() {
        return Ok(Assignment::new());
    }
    let mut reader = Reader(bytes);
    reader.i16()?;
    take_assignment(&mut reader)
}

/// Gives each partition to one of the members that want its topic. `members` are their ids with what they want, `topics`
/// the partitions that there are.
pub(crate) fn assign(
    strategy: Strategy,
    members: &BTreeMap<String, Subscription>,
    topics: &Assignment,
) -> BTreeMap<String, Assignment> {
    let mut plan: BTreeMap<String, Assignment> =
        members.keys().map(|member| (member.clone(), Assignment::new())).collect();
    let mut give = |member: &str, topic: &str, partitions: &[i32]| {
        if let Some(assignment) = plan.get_mut(member).filter(|_| !partitions.is_empty()) {
            assignment.entry(topic.to_owned()).or_default().extend_from_slice(partitions);
        }
    };
    let wants =
        |member: &str, topic: &str| members[member].topics.iter().any(|wanted| wanted == topic);
    match strategy {
        Strategy::Sticky => return sticky::assign(members, topics),
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
            let wanted: BTreeSet<&String> =
                members.values().flat_map(|member| &member.topics).collect();
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

    /// Members that had nothing before.
    pub(super) fn members(of: &[(&str, &[&str])]) -> BTreeMap<String, Subscription> {
        let owned = |topics: &[&str]| Subscription {
            topics: topics.iter().map(|topic| (*topic).to_owned()).collect(),
            had: Assignment::new(),
            generation: -1,
        };
        of.iter().map(|(member, topics)| ((*member).to_owned(), owned(topics))).collect()
    }

    pub(super) fn topics(of: &[(&str, i32)]) -> Assignment {
        of.iter().map(|(topic, count)| ((*topic).to_owned(), (0..*count).collect())).collect()
    }

    pub(super) fn shown(plan: &BTreeMap<String, Assignment>) -> String {
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
        for (_, strategy) in Strategy::WORDS {
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
        let had = topics(&[("a", 2), ("x", 1)]);
        let sticky = Subscription { topics: wanted.to_vec(), had, generation: 5 };
        assert_eq!(Subscription::read(&sticky.to_bytes(), Strategy::Sticky), Ok(sticky.clone()));
        let other =
            Subscription { topics: wanted.to_vec(), had: Assignment::new(), generation: -1 };
        assert_eq!(Subscription::read(&sticky.to_bytes(), Strategy::Range), Ok(other.clone()));
        assert_eq!(Subscription::read(&other.to_bytes(), Strategy::Sticky), Ok(other));
        let assignment = topics(&[("a", 2), ("bc", 1)]);
        assert_eq!(read_assignment(&write_assignment(&assignment)), Ok(assignment));
        assert_eq!(read_assignment(&[]), Ok(Assignment::new()));
        read_assignment(&[0, 0, 0x7f, 0xff, 0xff, 0xff]).expect_err("it is cut off");
    }

    /// `StickyAssignorUserData` of the Java client: version 1, and version 0 without the generation.
    #[test]
    fn what_a_member_had_is_written_as_by_the_java_client() {
        let mut bytes = b"\0\0\0\0\0\x01\0\x01t\0\0\0\x17\0\0\0\x01\0\x01t\0\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\x09".to_vec();
        let had = Assignment::from([("t".to_owned(), vec![0, 3])]);
        let member = Subscription { topics: vec!["t".to_owned()], had, generation: 9 };
        assert_eq!(member.to_bytes(), bytes);
        bytes.truncate(bytes.len() - 4);
        bytes[12] -= 4;
        let older = Subscription { generation: -1, ..member.clone() };
        assert_eq!(Subscription::read(&bytes, Strategy::Sticky), Ok(older));
        // Nonsense is no claim, and no reason to give nobody anything.
        bytes[16] = 9;
        let none = Subscription { had: Assignment::new(), generation: -1, ..member };
        assert_eq!(Subscription::read(&bytes, Strategy::Sticky), Ok(none));
    }
}
