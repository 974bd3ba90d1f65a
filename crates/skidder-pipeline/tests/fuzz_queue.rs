//! Random damage to the files of a disk queue, from a seed: it opens or says why not, every event that is whole comes
//! once, and all others are counted.
//!
//! A longer run: `cargo xtask fuzz --seconds 600`; one round:
//! `SKIDDER_SEED=17 cargo test -p skidder-pipeline --test fuzz_queue`.

use skidder_event::{Base, Batch, DropReason, Map, Provenance, Row, SourceId, Text};
use skidder_os::Timestamp;
use skidder_pipeline::{
    DiskQueue, DiskQueueError, DiskQueueKey, DiskQueueSettings, DiskStep, Settle, TakeLimits,
    inspect_disk_queue, repair_disk_queue,
};
use skidder_testkit::{Random, SimClock, SimFs};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const ROUNDS: u64 = 150;
const DIRECTORY: &str = "/queue";

fn rounds(mut round: impl FnMut(&str, &mut Random)) {
    skidder_testkit::rounds(ROUNDS, |seed, random| round(&format!("SKIDDER_SEED={seed}"), random));
}

fn key() -> DiskQueueKey {
    DiskQueueKey::new([7; 32])
}

/// Some queues are encrypted.
fn settings(random: &mut Random) -> DiskQueueSettings {
    DiskQueueSettings {
        path: DIRECTORY.into(),
        max_size: 0,
        segment_size: 300 + random.below(4000),
        read_ahead: 1 + random.below(50) as usize,
        write_ahead: 1000,
        retry_interval: DiskQueueSettings::RETRY_INTERVAL,
        max_retry_interval: DiskQueueSettings::MAX_RETRY_INTERVAL,
        key: Some(key()).filter(|_| random.one_in(2)),
    }
}

/// Lines with their numbers; some hold bytes of a frame.
fn batch(first: u64, lines: u64, like: &[u8], random: &mut Random) -> Batch {
    let (mut bytes, mut rows) = (Vec::new(), Vec::new());
    for number in first..first + lines {
        let start = bytes.len() as u32;
        bytes.extend_from_slice(format!("line {number} ").as_bytes());
        if random.one_in(4) && !like.is_empty() {
            let from = random.below(like.len() as u64) as usize;
            bytes.extend_from_slice(&like[from..like.len().min(from + 200)]);
        }
        let len = bytes.len() as u32 - start;
        rows.push(Row::new(number, len, Text { start, len }, number as i64));
    }
    let provenance = Provenance::new(SourceId(1), first..first + lines);
    let base = Arc::new(Base::new(&Map::new(), &Map::new()));
    let mut batch = Batch::new(bytes, false, base, provenance);
    for row in rows {
        batch.push(row);
    }
    batch
}

fn write(queue: &DiskQueue) {
    while queue.write_step().expect("the disk works") == DiskStep::Done {}
}

fn segments(fs: &SimFs) -> Vec<PathBuf> {
    let names = fs.peek_names(DIRECTORY).into_iter();
    let paths = names.map(|name| Path::new(DIRECTORY).join(name));
    let mut paths: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|of| of == "skq")).collect();
    paths.sort();
    paths
}

/// A queue on a disk, and how many lines it holds.
fn filled(random: &mut Random) -> (SimFs, u64) {
    let fs = SimFs::new(&SimClock::default());
    let settle = Settle::new();
    let opened = DiskQueue::open(Arc::new(fs.clone()), settings(random), [1; 16], &settle);
    let (queue, _) = opened.expect("it can be opened");
    let (mut next, mut like) = (0, Vec::new());
    for _ in 0..=random.below(30) {
        let lines = 1 + random.below(8);
        queue.front().push(batch(next, lines, &like, random)).expect("it is open");
        next += lines;
        if random.one_in(2) {
            write(&queue);
            like = segments(&fs).pop().and_then(|path| fs.peek(path)).unwrap_or_default();
        }
    }
    write(&queue);
    queue.maintain();
    drop(queue);
    fs.kill();
    (fs, next)
}

fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len() as u64) as usize;
        let end = bytes.len().min(at + random.below(300) as usize);
        match random.below(7) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.number() as u8,
            2 => drop(bytes.drain(at..end)),
            3 => bytes.extend_from_within(at..end),
            4 => bytes.insert(at, random.number() as u8),
            5 => bytes[at..end].fill(0),
            _ => bytes.truncate(end.max(1)),
        }
        if bytes.is_empty() {
            return;
        }
    }
}

/// Delivers all that is there; the lines, and how many were counted as missing.
fn deliver(
    fs: &SimFs,
    random: &mut Random,
    what: &str,
) -> Result<(BTreeSet<u64>, u64), DiskQueueError> {
    let settle = Settle::new();
    let settings = DiskQueueSettings { key: Some(key()), ..settings(random) };
    let opened = DiskQueue::open(Arc::new(fs.clone()), settings, [1; 16], &settle);
    let (queue, found) = opened?;
    let mut lines = BTreeSet::new();
    let mut taken = Vec::new();
    loop {
        let step = queue.read_step().expect("the disk works");
        while queue.back().try_take(TakeLimits { events: 5, bytes: 1 << 20 }, &mut taken) {}
        for delivery in taken.drain(..) {
            for row in delivery.rows.clone() {
                let text = delivery.batch.text(delivery.batch.rows()[row as usize].message);
                let text = String::from_utf8_lossy(text);
                let number = text.split(' ').nth(1).and_then(|number| number.parse().ok());
                let new = lines.insert(number.expect("a whole line"));
                assert!(new, "{what}: {number:?} comes twice");
            }
            delivery.ticket.delivered(delivery.len() as u32);
        }
        let total = settle.total();
        assert!(total.adds_up(), "{what}: {total:?}");
        if step == DiskStep::Idle {
            break;
        }
    }
    let total = settle.total();
    assert_eq!((total.stored(), total.recovered()), (0, found.events), "{what}");
    let missing = total.dropped().get(DropReason::QueueDamaged);
    assert_eq!(total.delivered(), lines.len() as u64, "{what}");
    Ok((lines, missing))
}

#[test]
fn damaged_segments_cost_what_is_damaged_and_that_is_counted() {
    rounds(|what, random| {
        let (fs, all) = filled(random);
        for path in segments(&fs) {
            if random.one_in(3) {
                let mut bytes = fs.peek(&path).expect("it is there");
                damage(&mut bytes, random);
                fs.write_as_other(&path, &bytes);
            }
        }
        let report = inspect_disk_queue(&fs, Path::new(DIRECTORY), Some(&key()));
        let report = report.expect("it can be looked at");
        if random.one_in(3) {
            let shared = Arc::new(fs.clone());
            let done = repair_disk_queue(shared, Path::new(DIRECTORY), Some(key()), Timestamp(0));
            let done = done.expect("it can be repaired");
            assert_eq!((done.events, done.missing), (report.waiting, report.missing), "{what}");
            fs.kill();
            let (lines, missing) = deliver(&fs, random, what).expect("it can be opened");
            assert_eq!((lines.len() as u64, missing), (done.events, 0), "{what}: repaired");
            return;
        }
        let (lines, missing) = deliver(&fs, random, what).expect("the state is whole");
        assert_eq!(lines.len() as u64 + missing, all, "{what}");
        assert_eq!((report.waiting, report.missing), (lines.len() as u64, missing), "{what}");
        assert!(lines.iter().all(|line| *line < all), "{what}");
    });
}

#[test]
fn whatever_stands_in_the_files_it_opens_or_says_why_not() {
    rounds(|what, random| {
        let (fs, all) = filled(random);
        for name in fs.peek_names(DIRECTORY) {
            let path = Path::new(DIRECTORY).join(name);
            let mut bytes = fs.peek(&path).expect("it is there");
            match random.below(4) {
                0 => damage(&mut bytes, random),
                1 => random.fill(&mut bytes),
                _ => continue,
            }
            fs.write_as_other(&path, &bytes);
        }
        let looked = inspect_disk_queue(&fs, Path::new(DIRECTORY), None);
        match deliver(&fs, random, what) {
            Ok((lines, _)) => {
                assert!(lines.iter().all(|line| *line < all), "{what}");
                assert!(looked.is_ok(), "{what}: {looked:?}");
            }
            Err(DiskQueueError::Unknown { .. }) => assert!(looked.is_err(), "{what}"),
            Err(error) => panic!("{what}: {error}"),
        }
    });
}
