//! A seeded workload, and the truth it must leave behind.

use skidder_os::{Clock, Fs};
use skidder_registry::{
    Change, Checkpoint, Cursor, Entry, FileEntry, Meta, Opened, Options, Registry, SourceAbout,
    SourceCursor, SourceEntry, Tail,
};
use skidder_testkit::{Random, SimClock, SimFs};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub(crate) const DIRECTORY: &str = "/data/registry";

/// Small, so that snapshots are written often.
pub(crate) const OPTIONS: Options = Options { cache_bytes: 1 << 20, snapshot_bytes: 3_000 };

/// The expected content of a registry.
pub(crate) type Truth = BTreeMap<String, (Entry, Option<Vec<u8>>)>;

/// Seeds to run: so many, or as many as the environment variable `SKIDDER_SEEDS` says for a long run.
pub(crate) fn seeds(usual: u64) -> std::ops::Range<u64> {
    let asked = std::env::var("SKIDDER_SEEDS").ok();
    0..asked.map_or(usual, |number| number.parse().expect("`SKIDDER_SEEDS` is a number"))
}

pub(crate) fn key(number: u64) -> String {
    format!("filestream::my-id::fingerprint::{number:064x}")
}

/// An entry of a file, or now and then of another source.
pub(crate) fn entry(random: &mut Random, clock: &SimClock) -> Entry {
    if !random.one_in(4) {
        return file_entry(random, clock).into();
    }
    let text = format!("s={};i={}", random.number(), random.below(9)).into();
    let about = SourceAbout { input: "journald".into(), name: "/run/log/journal".into() };
    let cursor = SourceCursor { version: 1, text };
    SourceEntry { cursor, about, updated: clock.wall() }.into()
}

pub(crate) fn file_entry(random: &mut Random, clock: &SimClock) -> FileEntry {
    let optional = random.one_in(2);
    FileEntry {
        cursor: Cursor {
            offset: random.number() >> 20,
            generation: random.below(3) as u32,
            eof: random.one_in(4),
            tail: optional.then(|| Tail { len: 64, crc: random.number() as u32 }),
        },
        meta: Meta {
            source: Path::new(&format!("/var/log/pods/{}/app.log", random.below(1000))).into(),
            identifier_name: "fingerprint".into(),
            fingerprint_len: random.one_in(3).then_some(100),
            device: 1,
            inode: random.below(100_000),
        },
        updated: clock.wall(),
        ttl: (!optional).then(|| Duration::from_secs(random.below(100_000))),
    }
}

/// One to five changes of a few keys; now and then a checkpoint of the usual size.
pub(crate) fn changes(random: &mut Random, clock: &SimClock) -> Vec<Change> {
    clock.advance(Duration::from_secs(1));
    (0..=random.below(5))
        .map(|_| {
            let key = key(random.below(12)).into();
            if random.one_in(6) {
                return Change::Remove { key };
            }
            let checkpoint = match random.below(6) {
                0 => {
                    let mut bytes = vec![0; 13_000];
                    random.fill(&mut bytes);
                    Checkpoint::Set(bytes)
                }
                1 => Checkpoint::Clear,
                _ => Checkpoint::Keep,
            };
            Change::Put { key, entry: entry(random, clock), checkpoint }
        })
        .collect()
}

/// What `truth` becomes by `changes`.
pub(crate) fn after(truth: &Truth, changes: &[Change]) -> Truth {
    let mut truth = truth.clone();
    for change in changes {
        match change {
            Change::Remove { key } => {
                truth.remove(&**key);
            }
            Change::Put { key, entry, checkpoint } => {
                let old = truth.remove(&**key).and_then(|(_, checkpoint)| checkpoint);
                let new = match checkpoint {
                    Checkpoint::Keep => old,
                    Checkpoint::Set(bytes) => Some(bytes.clone()),
                    Checkpoint::Clear => None,
                };
                truth.insert(key.to_string(), (entry.clone(), new));
            }
        }
    }
    truth
}

/// The content of a registry, read in every way there is.
pub(crate) fn content(registry: &Registry) -> Truth {
    let mut entries = Vec::new();
    registry.for_each(|key, entry| entries.push((key.to_owned(), entry))).unwrap();
    assert_eq!(entries.len() as u64, registry.len().unwrap());
    entries
        .into_iter()
        .map(|(key, entry)| {
            assert_eq!(registry.get(&key).unwrap().as_ref(), Some(&entry));
            let checkpoint = registry.checkpoint(&key).unwrap();
            (key, (entry, checkpoint))
        })
        .collect()
}

/// Opens the registry of a simulated machine.
pub(crate) fn try_open(
    fs: &SimFs,
    clock: &SimClock,
) -> Result<(Registry, Opened), skidder_registry::OpenError> {
    let fs: Arc<dyn Fs> = Arc::new(fs.clone());
    Registry::open(fs, Arc::new(clock.clone()), Path::new(DIRECTORY), OPTIONS)
}

/// Opens the registry of a simulated machine that has no fault.
#[track_caller]
pub(crate) fn open(fs: &SimFs, clock: &SimClock) -> (Registry, Opened) {
    try_open(fs, clock).unwrap()
}

pub(crate) fn machine() -> (SimFs, SimClock) {
    let clock = SimClock::new();
    (SimFs::new(&clock), clock)
}
