//! An encrypted queue: nothing of a line is on the disk, and nothing is lost for want of the key.

use super::*;
use crate::disk::format::{FRAME_HEADER, FrameHeader, FrameKey, SEGMENT_HEADER};
use skidder_os::Timestamp;

/// Frames of ten lines, none delivered.
fn filled(key: Option<&DiskQueueKey>) -> SimFs {
    let fs = disk();
    let life = Life::with(&fs, keyed(key)).expect("it can be opened");
    for at in 0..10 {
        life.read(at * 10..at * 10 + 10);
        life.write_all();
    }
    life.queue.maintain();
    drop(life);
    fs.kill();
    fs
}

/// All that is in the directory.
fn contents(fs: &SimFs) -> Vec<(String, Vec<u8>)> {
    let bytes = |name: &str| fs.peek(Path::new(DIRECTORY).join(name)).unwrap_or_default();
    let names =
        fs.peek_names(DIRECTORY).into_iter().map(|name| name.to_string_lossy().into_owned());
    names.map(|name| (name.clone(), bytes(&name))).collect()
}

fn delivers_all(fs: &SimFs, key: Option<&DiskQueueKey>) {
    let mut life = Life::with(fs, keyed(key)).expect("it can be opened");
    life.deliver_all();
    assert_eq!((life.once(), life.lost()), ((0..100).collect::<Vec<_>>(), 0));
}

/// The error of a refused start.
fn refused(fs: &SimFs, key: Option<&DiskQueueKey>) -> String {
    let error = Life::with(fs, keyed(key)).err().expect("it is refused");
    assert!(matches!(error, DiskQueueError::Key { .. }), "{error}");
    error.to_string()
}

#[test]
fn nothing_of_a_line_can_be_read_without_the_key() {
    let says = |fs: &SimFs, what: &[u8]| {
        contents(fs).iter().any(|(_, bytes)| memchr::memmem::find(bytes, what).is_some())
    };
    for what in [&b"of the log"[..], b"/logs/one"] {
        assert!(says(&filled(None), what));
        assert!(!says(&filled(Some(&key(1))), what));
    }
    delivers_all(&filled(Some(&key(1))), Some(&key(1)));
    assert!(!format!("{:?}", key(0x41)).contains("65"));
}

#[test]
fn no_two_frames_are_encrypted_alike() {
    let (fs, again) = (filled(Some(&key(1))), filled(Some(&key(1))));
    for path in segments(&fs) {
        let (bytes, again) =
            (fs.peek(&path).expect("it is there"), again.peek(&path).expect("so is it"));
        assert_eq!(bytes[..SEGMENT_HEADER], again[..SEGMENT_HEADER]);
        let alike = bytes[SEGMENT_HEADER + FRAME_HEADER..]
            .iter()
            .zip(&again[SEGMENT_HEADER + FRAME_HEADER..]);
        let alike = alike.filter(|(one, other)| one == other).count();
        assert!(alike < bytes.len() / 3, "{alike} of {}", bytes.len());
    }
}

#[test]
fn without_the_right_key_nothing_starts_and_nothing_is_changed() {
    let fs = filled(Some(&key(1)));
    let before = contents(&fs);
    assert!(refused(&fs, None).contains("has no key"));
    fs.kill();
    assert!(refused(&fs, Some(&key(2))).contains("has another key"));
    fs.kill();
    let now = Timestamp(0);
    let directory = Path::new(DIRECTORY);
    for wrong in [None, Some(key(2))] {
        let repaired = repair_disk_queue(Arc::new(fs.clone()), directory, wrong, now);
        assert!(matches!(repaired, Err(DiskQueueError::Key { .. })), "{repaired:?}");
        fs.kill();
    }
    assert_eq!(contents(&fs), before);
    delivers_all(&fs, Some(&key(1)));
}

#[test]
fn a_damaged_header_does_not_hide_that_the_key_is_wrong() {
    let fs = filled(Some(&key(1)));
    for path in segments(&fs) {
        let mut bytes = fs.peek(&path).expect("it is there");
        bytes[10] ^= 1;
        fs.write_as_other(&path, &bytes);
    }
    assert!(refused(&fs, Some(&key(2))).contains("has another key"));
    fs.kill();
    delivers_all(&fs, Some(&key(1)));
}

#[test]
fn the_key_can_be_set_changed_and_left_out_when_the_queue_is_empty() {
    // What is not encrypted needs no key, and is read beside what is.
    let fs = filled(None);
    let mut life = Life::with(&fs, keyed(Some(&key(1)))).expect("it can be opened");
    life.read(100..110);
    life.write_all();
    life.deliver_all();
    assert_eq!(life.once(), (0..110).collect::<Vec<_>>());
    let mut next = 110;
    for key in [Some(key(1)), Some(key(2)), None, Some(key(1))] {
        drop(life);
        fs.kill();
        life = Life::with(&fs, keyed(key.as_ref())).expect("nothing in it needs a key");
        life.read(next..next + 10);
        life.write_all();
        life.deliver_all();
        assert_eq!((life.once(), life.lost()), ((next..next + 10).collect::<Vec<_>>(), 0));
        next += 10;
    }
}

#[test]
fn a_frame_does_not_stand_for_another() {
    let fs = filled(Some(&key(1)));
    let path = segments(&fs).remove(1);
    let mut bytes = fs.peek(&path).expect("it is there");
    // An attacker who can write, and has no key: the second payload in place of the first, with checksums that are
    // right.
    let frame = FrameKey { queue: [7; 16], segment: 2 };
    let header = |bytes: &[u8], at: usize| {
        let head = bytes[at..].first_chunk::<FRAME_HEADER>().expect("a header");
        FrameHeader::decode(head, &frame, at as u64).expect("a whole one")
    };
    let first = header(&bytes, SEGMENT_HEADER);
    let at = SEGMENT_HEADER + first.total() as usize;
    let second = header(&bytes, at);
    assert_eq!(first.len, second.len, "lines have the same length here");
    let payload = bytes[at + FRAME_HEADER..at + second.total() as usize].to_vec();
    bytes[SEGMENT_HEADER + FRAME_HEADER..at].copy_from_slice(&payload);
    let forged = FrameHeader { crc: second.crc, ..first }.encode(&frame, SEGMENT_HEADER as u64);
    bytes[SEGMENT_HEADER..SEGMENT_HEADER + FRAME_HEADER].copy_from_slice(&forged);
    fs.write_as_other(&path, &bytes);
    let mut life = Life::with(&fs, keyed(Some(&key(1)))).expect("it can be opened");
    life.deliver_all();
    let from = first.place.event;
    let others: Vec<u64> = (0..from).chain(from + 10..100).collect();
    assert_eq!((life.once(), life.lost()), (others, 10));
}

#[test]
fn without_the_key_a_queue_is_counted_and_with_it_looked_into_and_repaired() {
    let fs = filled(Some(&key(1)));
    let look = |key: Option<&DiskQueueKey>| {
        inspect_disk_queue(&fs, Path::new(DIRECTORY), key).expect("it can be looked at")
    };
    for wrong in [None, Some(&key(2))] {
        let report = look(wrong);
        assert_eq!(
            (report.waiting, report.missing, report.damaged, report.sealed),
            (100, 0, 0, 10)
        );
        assert!(report.segments.iter().all(|segment| segment.newest.is_none()));
    }
    let report = look(Some(&key(1)));
    assert_eq!((report.waiting, report.missing, report.damaged, report.sealed), (100, 0, 0, 0));
    assert_eq!(report.segments.last().and_then(|segment| segment.newest), Some(Timestamp(99)));

    let path = segments(&fs).remove(0);
    let mut bytes = fs.peek(&path).expect("it is there");
    bytes[SEGMENT_HEADER + FRAME_HEADER + 3] ^= 1;
    fs.write_as_other(&path, &bytes);
    assert_eq!((look(None).missing, look(Some(&key(1))).missing), (10, 10));
    let (shared, now) = (Arc::new(fs.clone()), Timestamp(0));
    let done = repair_disk_queue(shared, Path::new(DIRECTORY), Some(key(1)), now);
    let done = done.expect("it can be repaired");
    assert_eq!((done.events, done.missing), (90, 10));
    fs.kill();
    let report = look(None);
    assert_eq!(
        (report.waiting, report.missing, report.sealed),
        (90, 0, 9),
        "it is encrypted again"
    );
}
