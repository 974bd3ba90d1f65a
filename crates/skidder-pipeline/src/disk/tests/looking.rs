//! Looking at a queue, and repairing it.

use super::*;
use skidder_os::Timestamp;
use skidder_testkit::{Fault, Operation};

fn inspect(fs: &SimFs) -> DiskQueueReport {
    inspect_disk_queue(fs, Path::new(DIRECTORY), None).expect("it can be looked at")
}

fn repair(fs: &SimFs) -> DiskQueueRepaired {
    let now = Timestamp(1_700_000_000_000_000_000);
    repair_disk_queue(Arc::new(fs.clone()), Path::new(DIRECTORY), None, now)
        .expect("it can be repaired")
}

/// Lines in frames of ten, some of the first of them delivered.
fn filled(delivered: u64) -> SimFs {
    let fs = disk();
    let mut life = Life::new(&fs);
    let read = |life: &Life, from: u64, to: u64| {
        for at in from..to {
            life.read(at * 10..at * 10 + 10);
            life.write_all();
        }
    };
    read(&life, 0, delivered);
    life.deliver_all();
    read(&life, delivered, 10);
    life.queue.maintain();
    drop(life);
    fs.kill();
    fs
}

#[test]
fn a_queue_is_shown_as_it_is() {
    assert_eq!(inspect(&disk()), DiskQueueReport::default());
    assert_eq!(waiting_in_disk_queue(&disk(), Path::new(DIRECTORY)).expect("no queue"), None);
    for delivered in [0, 1, 4, 10] {
        let fs = filled(delivered);
        let report = inspect(&fs);
        assert_eq!((report.waiting, report.missing), (100 - delivered * 10, 0), "{delivered}");
        assert_eq!((report.damaged, report.has_state), (0, true));
        let waiting = waiting_in_disk_queue(&fs, Path::new(DIRECTORY)).expect("it can be read");
        assert_eq!(waiting, Some(report.waiting));
        let paths: Vec<_> = report.segments.iter().map(|segment| segment.path.clone()).collect();
        assert_eq!(paths, segments(&fs));
        let events: u64 = report.segments.iter().map(|segment| segment.events).sum();
        assert!(events >= report.waiting);
        if delivered < 10 {
            let newest = report.segments.last().and_then(|segment| segment.newest);
            assert_eq!(newest, Some(Timestamp(99)));
        }
        let sizes: usize = paths.iter().map(|path| fs.peek(path).map_or(0, |of| of.len())).sum();
        assert_eq!(report.segments.iter().map(|segment| segment.bytes).sum::<u64>(), sizes as u64);
    }
}

#[test]
fn it_is_shown_beside_the_program_that_uses_it() {
    let fs = disk();
    let life = Life::new(&fs);
    life.read(0..10);
    life.write_all();
    assert_eq!(inspect(&fs).waiting, 10);
}

#[test]
fn damage_is_shown_counted_and_repaired() {
    for segment in 0..2 {
        let fs = filled(0);
        let path = segments(&fs).remove(segment);
        let mut bytes = fs.peek(&path).expect("it is there");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs.write_as_other(&path, &bytes);
        let report = inspect(&fs);
        assert_eq!((report.waiting, report.missing, report.damaged), (90, 10, 1));
        assert_eq!(report.segments[segment].damaged, 1);
        let before = segments(&fs);
        let done = repair(&fs);
        assert_eq!((done.frames, done.events, done.missing, done.damaged), (9, 90, 10, 1));
        assert_eq!(fs.peek_names(&done.aside).len(), before.len());
        let kept = done.aside.join(path.file_name().expect("it has a name"));
        assert_eq!(fs.peek(kept), Some(bytes));
        fs.kill();
        let report = inspect(&fs);
        assert_eq!((report.waiting, report.missing, report.damaged), (90, 0, 0));
        let mut life = Life::new(&fs);
        assert_eq!(life.opened.events, 90);
        life.deliver_all();
        assert_eq!((life.once().len(), life.lost()), (90, 0));
    }
}

#[test]
fn a_place_that_the_disk_does_not_give_is_given_up() {
    let fs = filled(0);
    let path = segments(&fs).remove(0);
    fs.inject(Fault::nth(6, io::ErrorKind::Other).of(Operation::Read).on(&path).forever());
    let done = repair(&fs);
    assert!(done.missing > 0 && done.events > 0, "{done:?}");
    assert_eq!(done.missing + done.events, 100);
}

#[test]
fn a_repair_that_is_cut_off_loses_nothing() {
    for nth in 1..200 {
        let fs = filled(3);
        fs.halt_at(nth);
        let now = Timestamp(0);
        let done = repair_disk_queue(Arc::new(fs.clone()), Path::new(DIRECTORY), None, now);
        let halted = fs.halted();
        fs.crash_torn(nth);
        fs.clear_faults();
        let mut life = Life::new(&fs);
        life.deliver_all();
        let came: Vec<u64> = life.delivered.keys().copied().filter(|line| *line >= 30).collect();
        assert_eq!(came, (30..100).collect::<Vec<_>>(), "cut at {nth}");
        assert_eq!(life.lost(), 0, "cut at {nth}");
        if !halted {
            assert!(done.is_ok() && nth > 20);
            return;
        }
    }
    panic!("a repair takes fewer operations");
}
