//! Bits that change and bytes that go: the events there are missed and counted, and no others.

use super::*;
use crate::disk::format::{FRAME_HEADER, SEGMENT_HEADER};

/// Frames of four lines, several in each segment; with everything about them durable.
const FRAMES: u64 = 20;
const LINES: u64 = 4;

/// With a key the queue is encrypted.
fn filled(key: Option<&DiskQueueKey>) -> SimFs {
    let fs = disk();
    let life = of(&fs, key);
    for frame in 0..FRAMES {
        life.read(frame * LINES..frame * LINES + LINES);
        life.write_all();
    }
    life.queue.maintain();
    drop(life);
    fs.kill();
    fs
}

fn of(fs: &SimFs, key: Option<&DiskQueueKey>) -> Life {
    Life::with(fs, keyed(key)).expect("the queue can be opened")
}

/// Delivers what is there, and returns the lines that did not come; each of them is counted.
fn missed(fs: &SimFs, key: Option<&DiskQueueKey>, what: &str) -> Vec<u64> {
    let mut life = of(fs, key);
    life.read(900..901);
    life.write_all();
    life.deliver_all();
    life.check();
    let came = life.once();
    let missed: Vec<u64> = (0..FRAMES * LINES).filter(|number| !came.contains(number)).collect();
    assert!(came.contains(&900), "{what}: what is new comes");
    assert_eq!(life.lost(), missed.len() as u64, "{what}: {missed:?}");
    assert_eq!(life.settle.total().stored(), 0, "{what}");
    missed
}

/// A disk with the same files.
fn copy(fs: &SimFs) -> SimFs {
    let new = disk();
    for name in fs.peek_names(DIRECTORY) {
        let path = Path::new(DIRECTORY).join(name);
        new.write_as_other(&path, &fs.peek(&path).expect("it is there"));
    }
    new
}

#[test]
fn a_bit_that_changes_anywhere_costs_the_events_of_its_frame() {
    for key in [None, Some(&key(1))] {
        every_bit(key);
    }
}

fn every_bit(key: Option<&DiskQueueKey>) {
    let fs = filled(key);
    let paths = segments(&fs);
    assert!(paths.len() > 2, "{paths:?}");
    for path in &paths {
        let bytes = fs.peek(path).expect("it is there");
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            let fs = copy(&fs);
            fs.write_as_other(path, &damaged);
            let what = format!("{}:{at}", path.display());
            let missed = missed(&fs, key, &what);
            if at < SEGMENT_HEADER {
                assert!(missed.is_empty(), "{what}: the rest is found without the header");
            } else {
                assert_eq!(missed.len() as u64, LINES, "{what}: {missed:?}");
                let first = missed[0];
                assert_eq!(missed, (first..first + LINES).collect::<Vec<_>>(), "{what}");
            }
        }
    }
}

#[test]
fn a_bit_that_changes_in_the_state_loses_nothing() {
    let fs = filled(None);
    let path = Path::new(DIRECTORY).join("queue.state");
    let bytes = fs.peek(&path).expect("it is there");
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        let fs = copy(&fs);
        fs.write_as_other(&path, &damaged);
        assert!(missed(&fs, None, &at.to_string()).is_empty());
    }
    fs.remove_as_other(&path);
    assert!(missed(&fs, None, "no state").is_empty());
}

#[test]
fn segments_without_a_state_are_damage() {
    let inspect = |fs: &SimFs| {
        inspect_disk_queue(fs, Path::new(DIRECTORY), None).expect("it can be looked at")
    };
    let fs = filled(None);
    assert!(inspect(&fs).is_whole());
    fs.remove_as_other(Path::new(DIRECTORY).join("queue.state"));
    let paths = segments(&fs);
    for gone in [None, paths.first(), paths.last()] {
        let fs = copy(&fs);
        if let Some(gone) = gone {
            fs.remove_as_other(gone);
        }
        let report = inspect(&fs);
        assert!(report.state_is_lost() && !report.is_whole(), "{gone:?}");
        assert_eq!((report.missing, report.damaged), (0, 0), "{gone:?}: it cannot be seen");
        let mut life = Life::new(&fs);
        assert!(life.opened.state_is_lost && life.queue.state_was_lost());
        assert_eq!(life.queue.metrics().damaged.get(), 1);
        life.deliver_all();
        assert_eq!(life.once().len() as u64, life.opened.events, "all that is there comes");
        drop(life);
        fs.kill();
        let life = Life::new(&fs);
        assert!(!life.queue.state_was_lost(), "it is written again");
    }
    for path in paths {
        fs.remove_as_other(path);
    }
    assert!(inspect(&fs).is_whole(), "a queue that was never written to");
    assert!(!Life::new(&fs).queue.state_was_lost());
}

#[test]
fn a_file_that_was_cut_anywhere_costs_what_was_cut_off() {
    let fs = filled(None);
    for path in &segments(&fs) {
        let bytes = fs.peek(path).expect("it is there");
        let mut before = u64::MAX;
        for end in 0..bytes.len() {
            let fs = copy(&fs);
            fs.write_as_other(path, &bytes[..end]);
            let missed = missed(&fs, None, &format!("{}, {end} bytes", path.display()));
            let count = missed.len() as u64;
            assert!(count <= before && count.is_multiple_of(LINES) && count >= LINES);
            assert_eq!(missed, (missed[0]..missed[0] + count).collect::<Vec<_>>());
            before = count;
        }
        assert_eq!(before, LINES, "only the last frame is cut in the end");
    }
}

#[test]
fn a_file_that_is_gone_costs_its_events() {
    let fs = filled(None);
    for path in &segments(&fs) {
        let fs = copy(&fs);
        fs.remove_as_other(path);
        let missed = missed(&fs, None, &path.display().to_string());
        assert_eq!(missed, (missed[0]..=missed[missed.len() - 1]).collect::<Vec<_>>());
    }
    for path in segments(&fs) {
        fs.remove_as_other(path);
    }
    assert_eq!(missed(&fs, None, "all files").len() as u64, FRAMES * LINES);
}

#[test]
fn the_last_frame_may_be_torn_anywhere_if_it_was_never_durable() {
    for key in [None, Some(&key(1))] {
        every_tear(key);
    }
}

fn every_tear(key: Option<&DiskQueueKey>) {
    let fs = filled(key);
    let life = of(&fs, key);
    let state = Path::new(DIRECTORY).join("queue.state");
    let before = fs.peek(&state).expect("it is there");
    let last = FRAMES * LINES;
    life.read(last..last + LINES);
    life.write_all();
    life.read(last + LINES..last + LINES + 1);
    life.write_all();
    drop(life);
    fs.kill();
    fs.write_as_other(&state, &before);
    let path = segments(&fs).pop().expect("a segment");
    let bytes = fs.peek(&path).expect("it is there");
    let torn = bytes.len() - SEGMENT_HEADER;
    assert!(torn > 2 * FRAME_HEADER);
    let mut whole = 0;
    for end in 0..bytes.len() {
        for zeros in [false, true] {
            let fs = copy(&fs);
            let mut left = bytes.clone();
            if zeros {
                left[end..].fill(0);
            } else {
                left.truncate(end);
            }
            // The last bytes of a frame may be zeros themselves.
            if left == bytes {
                continue;
            }
            fs.write_as_other(&path, &left);
            let mut life = of(&fs, key);
            life.deliver_all();
            assert_eq!(life.lost(), 0, "{end} bytes, {zeros}: {:?}", life.opened);
            let came = life.once();
            let all = [last, last + LINES].iter().any(|&all| came == (0..all).collect::<Vec<_>>());
            assert!(all, "{end} bytes, {zeros}: {came:?}");
            whole = whole.max(came.len());
            assert!(zeros || life.opened.torn_bytes < torn as u64);
        }
    }
    assert_eq!(whole as u64, last + LINES, "the frame before the last one is whole");
}

#[test]
fn frames_of_a_frame_are_none() {
    let fs = filled(None);
    let path = segments(&fs).remove(0);
    let bytes = fs.peek(&path).expect("it is there");
    let life = Life::new(&fs);
    // A log that holds a segment: a reader that loses its place in it must not take it for frames.
    let inner = String::from_utf8_lossy(&bytes).into_owned();
    assert!(inner.contains("sKq"));
    drop(life);
    fs.kill();
    let mut damaged = bytes.clone();
    let copied = bytes[SEGMENT_HEADER..].to_vec();
    damaged.extend_from_slice(&copied);
    fs.write_as_other(&path, &damaged);
    assert!(missed(&fs, None, "a frame that was copied").is_empty());
}

#[test]
fn segments_of_a_later_program_and_of_another_queue_are_refused() {
    let fs = filled(None);
    let path = segments(&fs).remove(0);
    let bytes = fs.peek(&path).expect("it is there");
    let mut newer = bytes.clone();
    newer[8] = 5;
    let crc = crc32fast::hash(&newer[..60]).to_le_bytes();
    newer[60..64].copy_from_slice(&crc);
    fs.write_as_other(&path, &newer);
    let error = Life::with(&fs, settings()).err();
    assert!(matches!(error, Some(DiskQueueError::Newer { version: 5, known: 4, .. })));
    let mut another = bytes.clone();
    another[16] ^= 1;
    let crc = crc32fast::hash(&another[..60]).to_le_bytes();
    another[60..64].copy_from_slice(&crc);
    fs.write_as_other(&path, &another);
    fs.kill();
    let error = Life::with(&fs, settings()).err();
    assert!(matches!(error, Some(DiskQueueError::Another { .. })));
}

#[test]
fn what_a_saved_cursor_has_passed_is_counted_as_lost_when_it_is_cut_off() {
    for saves in [false, true] {
        let fs = filled(None);
        let life = Life::new(&fs);
        let last = FRAMES * LINES;
        life.read(last..last + LINES);
        life.write_all();
        if saves {
            let clock = SimClock::new();
            let shared = (Arc::new(fs.clone()), Arc::new(clock.clone()));
            let options = skidder_registry::Options::default();
            let path = Path::new("/registry");
            let registry = skidder_registry::Registry::open(shared.0, shared.1, path, options);
            let registry = Arc::new(registry.expect("it opens").0);
            let mut registrar = crate::Registrar::new(Arc::clone(&life.settle), registry)
                .with_disk(Some(Arc::clone(&life.queue)));
            assert!(registrar.flush(&clock));
        }
        drop(life);
        fs.kill();
        let path = segments(&fs).pop().expect("a segment");
        let bytes = fs.peek(&path).expect("it is there");
        fs.write_as_other(&path, &bytes[..bytes.len() - 1]);
        let mut life = Life::new(&fs);
        let lost = if saves { LINES } else { 0 };
        assert_eq!(life.opened.cut_events, lost, "{:?}", life.opened);
        assert!(life.opened.torn_bytes > 0);
        life.deliver_all();
        assert_eq!((life.lost(), life.once().len() as u64), (lost, last));
    }
}
