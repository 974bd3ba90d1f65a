//! Which partition a record goes to: `partition.*`, with the meaning that it has in Filebeat.

use crate::hash;
use skidder_config::{Group, Key, Part, Section, settings};
use skidder_event::{EventRef, Path};

mod every {
    use super::*;

    settings! {
        /// Settings of each way to choose a partition.
        pub(super) static EVERY = Group::new("output.kafka.partition.*", "Which partitions are chosen from.");

        pub(super) REACHABLE_ONLY: bool = Key::new("reachable_only")
            .default(false)
            .about("only partitions with a leader; `false`: records wait for theirs");
    }
}

mod in_groups {
    use super::*;

    settings! {
        /// `random` and `round_robin`.
        pub(super) static IN_GROUPS =
            Group::new("output.kafka.partition.group", "Some records in a row to one partition.")
                .include(&[&EVERY])
                .inline();

        pub(super) GROUP_EVENTS: u32 = Key::new("group_events")
            .default(1)
            .at_least(1)
            .noun("a number of events")
            .about("so many records in a row to one partition");
    }
}

mod by_hash {
    use super::*;

    settings! {
        /// `hash`.
        pub(super) static BY_HASH = Group::new("output.kafka.partition.hash", "The partition by a hash.")
            .include(&[&EVERY])
            .inline();

        pub(super) FIELDS: Vec<String> =
            Key::<Vec<String>>::new("hash").default(&[]).noun("a list of fields").about(
                "fields whose hash chooses the partition; without, the key's; by chance for records without a key",
            );
        pub(super) RANDOM: bool = Key::new("random").default(true).about(
            "an event without such a field goes anywhere; `false`: to the dead letters",
        );
    }
}

use by_hash::BY_HASH;
use every::EVERY;
use in_groups::IN_GROUPS;

settings! {
    /// `partition`, which has one of them.
    pub(super) static WAYS =
        Group::new("output.kafka.partition", "Which partition a record goes to: one of these.").inline();

    HASH: Part = Key::part("hash", &BY_HASH).about("by a hash: the default");
    RANDOM: Part = Key::part("random", &IN_GROUPS).about("by chance");
    ROUND_ROBIN: Part = Key::part("round_robin", &IN_GROUPS).about("one after the other");
}

/// How partitions are chosen.
#[derive(Clone, Debug, PartialEq)]
pub enum Strategy {
    /// `partition.random`: by chance, the same for `group_events` records.
    Random {
        /// Records in a row to one partition.
        group_events: u32,
    },
    /// `partition.round_robin`: one after the other, each for `group_events` records.
    RoundRobin {
        /// Records in a row to one partition.
        group_events: u32,
    },
    /// `partition.hash` without fields: by the key; by chance for records without one.
    HashKey,
    /// `partition.hash.hash`: by these fields.
    HashFields {
        /// The fields, in their order.
        fields: Vec<Path>,
        /// `random`: by chance if a field has no hash; otherwise the event is refused.
        random: bool,
    },
}

/// `partition`.
#[derive(Clone, Debug, PartialEq)]
pub struct Partitioning {
    /// How.
    pub strategy: Strategy,
    /// `reachable_only`: among the partitions that have a leader; otherwise a record waits for its leader.
    pub reachable_only: bool,
}

impl Default for Partitioning {
    fn default() -> Self {
        Self { strategy: Strategy::HashKey, reachable_only: false }
    }
}

impl Partitioning {
    /// Reads the section `partition`. Reports mistakes to its problems.
    pub(crate) fn read(section: Section<'_>) -> Self {
        let ways = [&RANDOM, &ROUND_ROBIN, &HASH];
        let set: Vec<&Key<Part>> = ways.into_iter().filter(|way| section.has_key(way)).collect();
        if let [first, second, ..] = set[..] {
            let (first, second) = (first.name(), second.name());
            let message = format!("`{first}` and `{second}` are both set; expected one");
            section.problem(second, message, "");
        }
        // Without anything inside, as in `partition.random:`.
        let keys = section.keys();
        let empty = ways.into_iter().find(|way| keys.contains(&way.name()));
        let chosen = set.first().copied().or(empty).unwrap_or(&HASH);
        let inner = section.part(chosen);
        let reachable_only = inner.get(&every::REACHABLE_ONLY).value();
        let group = || inner.get(&in_groups::GROUP_EVENTS).value();
        let strategy = match chosen.name() {
            "random" => Strategy::Random { group_events: group() },
            "round_robin" => Strategy::RoundRobin { group_events: group() },
            _ => read_hash(&inner),
        };
        inner.finish();
        section.finish();
        Self { strategy, reachable_only }
    }
}

fn read_hash(section: &Section<'_>) -> Strategy {
    let random = section.get(&by_hash::RANDOM).value();
    let parse = |names: Vec<String>| {
        let path = |name: &String| Path::parse(name).map_err(|error| error.to_string());
        names.iter().map(path).collect::<Result<Vec<_>, _>>()
    };
    match section.get(&by_hash::FIELDS).try_map(parse).value() {
        fields if fields.is_empty() => Strategy::HashKey,
        fields => Strategy::HashFields { fields, random },
    }
}

/// Chooses for the records of one topic.
#[derive(Clone, Debug)]
pub(crate) struct Chooser {
    /// Records that went to `current` in a row.
    count: u32,
    /// The place in the list of partitions, not its number.
    current: usize,
    random: u64,
}

impl Chooser {
    /// `seed` should differ between topics and programs.
    pub(crate) fn new(seed: u64) -> Self {
        Self { count: 0, current: usize::MAX, random: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1 }
    }

    /// The place among `count` partitions, which are not none. The error is a field that has no hash.
    pub(crate) fn choose<'p>(
        &mut self,
        strategy: &'p Strategy,
        key: Option<&[u8]>,
        event: EventRef<'_>,
        count: usize,
    ) -> Result<usize, &'p Path> {
        Ok(match strategy {
            Strategy::Random { group_events } => {
                if self.is_new_group(*group_events) {
                    self.current = self.below(count);
                }
                // The list may have become shorter in the middle of a group.
                self.current % count
            }
            Strategy::RoundRobin { group_events } => {
                if self.is_new_group(*group_events) {
                    self.current = self.current.wrapping_add(1);
                }
                if self.current >= count {
                    self.current = 0;
                }
                self.current
            }
            Strategy::HashKey => match key {
                Some(key) => hash::of_key(key).partition(count),
                None => self.below(count),
            },
            Strategy::HashFields { fields, random } => match hash::of_fields(event, fields) {
                Ok(hash) => hash.partition(count),
                Err(_) if *random => self.below(count),
                Err(field) => return Err(field),
            },
        })
    }

    fn is_new_group(&mut self, group: u32) -> bool {
        let is_first = self.current == usize::MAX;
        if is_first || self.count >= group {
            self.count = 1;
            return true;
        }
        self.count += 1;
        false
    }

    fn below(&mut self, count: usize) -> usize {
        // xorshift64 (Marsaglia).
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        ((u128::from(self.random) * count as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::event;
    use skidder_config::{Problems, Settings};

    fn read(settings: &str) -> (Partitioning, String) {
        let problems = Problems::new();
        let settings = Settings::parse("x", settings).expect("YAML");
        let root = settings.root(&problems);
        let section = root.section("partition");
        section.declared_by(&WAYS);
        let read = Partitioning::read(section);
        root.finish();
        (read, problems.to_string())
    }

    #[test]
    fn partition_settings_are_those_of_filebeat() {
        let path = |name: &str| Path::parse(name).expect("a path");
        let fields = |random| Strategy::HashFields { fields: vec![path("a.b"), path("c")], random };
        let table = [
            ("{}", Strategy::HashKey, false),
            ("partition.hash: {}", Strategy::HashKey, false),
            ("partition.hash.reachable_only: true", Strategy::HashKey, true),
            ("partition.hash.hash: []", Strategy::HashKey, false),
            ("partition.hash.hash: [a.b, c]", fields(true), false),
            ("partition.hash: {hash: [a.b, c], random: false}", fields(false), false),
            ("partition.random: {}", Strategy::Random { group_events: 1 }, false),
            (
                "partition.round_robin.group_events: 7",
                Strategy::RoundRobin { group_events: 7 },
                false,
            ),
            (
                "partition.round_robin.reachable_only: true",
                Strategy::RoundRobin { group_events: 1 },
                true,
            ),
        ];
        for (settings, strategy, reachable_only) in table {
            let expected = Partitioning { strategy, reachable_only };
            assert_eq!(read(settings), (expected, String::new()), "{settings}");
        }
        for (settings, part) in [
            ("partition: {random: {}, hash: {}}", "expected one"),
            ("partition.random.group_events: 0", "group_events"),
            ("partition.hash.group_events: 2", "group_events"),
            ("partition.manual: {}", "manual"),
        ] {
            let (_, problems) = read(settings);
            assert!(problems.contains(part), "{settings}: {problems}");
        }
    }

    fn chosen(strategy: &Strategy, counts: &[usize]) -> Vec<usize> {
        let batch = event(&[]);
        let mut chooser = Chooser::new(7);
        let mut choose = |&count: &usize| {
            chooser.choose(strategy, None, batch.event(0), count).expect("nothing is hashed")
        };
        counts.iter().map(&mut choose).collect()
    }

    #[test]
    fn round_robin_goes_on_after_each_group() {
        let one = Strategy::RoundRobin { group_events: 1 };
        assert_eq!(chosen(&one, &[3; 7]), [0, 1, 2, 0, 1, 2, 0]);
        let two = Strategy::RoundRobin { group_events: 2 };
        assert_eq!(chosen(&two, &[3; 7]), [0, 0, 1, 1, 2, 2, 0]);
        // A partition has gone, and one has come.
        assert_eq!(chosen(&one, &[3, 3, 3, 2, 2, 4, 4, 4]), [0, 1, 2, 0, 1, 2, 3, 0]);
    }

    #[test]
    fn random_changes_only_after_each_group_and_reaches_all() {
        let found = chosen(&Strategy::Random { group_events: 3 }, &[5; 3000]);
        assert!(found.chunks(3).all(|group| group.iter().all(|place| *place == group[0])));
        for place in 0..5 {
            let count = found.iter().filter(|found| **found == place).count();
            assert!((450..750).contains(&count), "{place}: {count}");
        }
    }

    #[test]
    fn a_record_without_a_key_goes_anywhere_and_one_with_a_key_to_its_place() {
        let batch = event(&[]);
        let mut chooser = Chooser::new(1);
        let mut choose = |key| {
            chooser.choose(&Strategy::HashKey, key, batch.event(0), 12).expect("a key has a hash")
        };
        let places: std::collections::BTreeSet<usize> = (0..500).map(|_| choose(None)).collect();
        assert_eq!(places.len(), 12);
        assert_eq!(
            [choose(Some(b"foobar")), choose(Some(b"foobar")), choose(Some(b""))],
            [8, 8, 5]
        );
    }

    #[test]
    fn an_event_without_the_field_goes_anywhere_or_is_refused() {
        let batch = event(&[("a", "x")]);
        let fields = vec![Path::parse("a").expect("a path"), Path::parse("b").expect("a path")];
        let mut chooser = Chooser::new(1);
        let any = Strategy::HashFields { fields: fields.clone(), random: true };
        assert!(chooser.choose(&any, None, batch.event(0), 3).is_ok_and(|place| place < 3));
        let none = Strategy::HashFields { fields, random: false };
        let refused = chooser.choose(&none, None, batch.event(0), 3).expect_err("`b` is missing");
        assert_eq!(refused.as_str(), "b");
    }
}
