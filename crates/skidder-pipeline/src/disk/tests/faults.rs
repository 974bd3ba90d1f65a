//! Disks that are full, fail, or lose what was not synced.

use super::*;
use skidder_testkit::{Fault, Operation, Random};

#[test]
fn a_full_disk_holds_events_up_and_loses_none() {
    for room in 0..6 {
        let fs = disk();
        let mut life = Life::new(&fs);
        life.read(0..20);
        life.write_all();
        fs.set_capacity(Some(fs.used() + room * 4096));
        let mut next = 20;
        while life.write().is_ok() {
            life.read(next..next + 50);
            next += 50;
        }
        assert!(life.write().is_err(), "the disk is still full");
        assert!(life.cursor() < next, "no cursor passes");
        assert_eq!(life.queue.filled().events, life.cursor(), "all of what it passed is there");
        fs.set_capacity(None);
        life.write_all();
        assert_eq!(life.cursor(), next);
        life.deliver_all();
        assert_eq!(life.once(), (0..next).collect::<Vec<_>>());
    }
}

#[test]
fn whatever_fails_is_done_again_and_nothing_comes_twice() {
    for operation in [Operation::Open, Operation::Write, Operation::Sync, Operation::SetLen] {
        for nth in 1..12 {
            let fs = disk();
            let mut life = Life::new(&fs);
            life.read(0..20);
            life.write_all();
            // A write that fails leaves something to be cut off.
            fs.inject(Fault::nth(4, io::ErrorKind::Other).of(Operation::Sync).on(DIRECTORY));
            fs.inject(Fault::nth(nth, io::ErrorKind::Other).of(operation).on(DIRECTORY).times(2));
            for at in 0..12 {
                life.read(20 + at * 10..30 + at * 10);
                while life.write().is_err() {}
            }
            fs.clear_faults();
            life.deliver_all();
            assert_eq!(life.once(), (0..140).collect::<Vec<_>>(), "{operation:?} {nth}");
            assert_eq!(life.lost(), 0, "{operation:?} {nth}");
        }
    }
}

#[test]
fn a_disk_that_cannot_be_read_for_a_while_loses_nothing() {
    for operation in [Operation::Open, Operation::Read] {
        for nth in 1..20 {
            let fs = disk();
            let mut life = Life::new(&fs);
            for at in 0..8 {
                life.read(at * 10..at * 10 + 10);
                life.write_all();
            }
            fs.inject(Fault::nth(nth, io::ErrorKind::Other).of(operation).on(DIRECTORY).times(3));
            while life.deliver().is_err() {}
            assert_eq!(life.once(), (0..80).collect::<Vec<_>>(), "{operation:?} {nth}");
        }
    }
}

#[test]
fn a_segment_that_cannot_be_removed_is_removed_later() {
    let fs = disk();
    let mut life = Life::new(&fs);
    life.read(0..20);
    life.write_all();
    for at in 2..10 {
        life.read(at * 10..at * 10 + 10);
        life.write_all();
    }
    fs.inject(Fault::nth(1, io::ErrorKind::Other).of(Operation::Remove).times(2));
    life.deliver_all();
    life.queue.maintain();
    assert!(segments(&fs).len() > 1);
    life.queue.maintain();
    assert_eq!(segments(&fs).len(), 1);
}

#[test]
fn where_there_is_room_for_little_it_goes_on_in_small_steps() {
    let fs = disk();
    let mut life = Life::with(&fs, DiskQueueSettings { segment_size: 1 << 20, ..settings() })
        .expect("the queue can be opened");
    fs.set_capacity(Some(fs.used() + 6 * 4096));
    for at in 0..100 {
        life.read(at * 10..at * 10 + 10);
    }
    let mut failures = 0;
    while life.cursor() < 1000 {
        failures += u32::from(life.write().is_err());
        life.deliver_all();
        assert!(failures < 50, "it does not go on: {}", life.cursor());
    }
    assert!(failures > 0, "there was room for all");
    assert_eq!(life.once(), (0..1000).collect::<Vec<_>>());
}

/// A life that ends at an operation of its disk: what it made durable, and what it delivered before.
fn live_until(fs: &SimFs, nth: u64, random: &mut Random) -> (u64, Life) {
    let mut life = Life::new(fs);
    fs.halt_at(nth);
    let mut next = 0;
    while !fs.halted() && next < 200 {
        let lines = 1 + random.below(12);
        life.read(next..next + lines);
        next += lines;
        // Errors are the end that is on its way.
        let written = life.write();
        if random.one_in(3) && written.is_ok() {
            let delivered = life.deliver();
            if delivered.is_ok() && random.one_in(2) {
                life.queue.maintain();
            }
        }
    }
    (life.cursor(), life)
}

#[test]
fn no_event_behind_a_cursor_is_lost_by_a_power_cut_at_any_operation() {
    let mut cuts = 0;
    for nth in 1..400 {
        let fs = disk();
        let mut random = Random::new(nth);
        let (durable, first) = live_until(&fs, nth, &mut random);
        let Life { delivered: before, .. } = &first;
        let mut all = before.clone();
        drop(first);
        if !fs.halted() {
            break;
        }
        cuts += 1;
        match nth % 3 {
            0 => fs.kill(),
            1 => fs.crash(),
            _ => fs.crash_torn(random.number()),
        }
        fs.clear_faults();
        let mut second = Life::new(&fs);
        second.read(1000..1010);
        second.write_all();
        second.deliver_all();
        assert_eq!(second.lost(), 0, "cut at {nth}: {:?}", second.opened);
        second.once();
        for number in second.delivered.keys() {
            *all.entry(*number).or_default() += 1;
        }
        let missed: Vec<u64> =
            (0..durable).chain(1000..1010).filter(|number| !all.contains_key(number)).collect();
        assert!(missed.is_empty(), "cut at {nth}: {missed:?} are behind the cursor and lost");
        drop(second);
        fs.kill();
        assert_eq!(Life::new(&fs).opened.events, 0, "cut at {nth}");
    }
    assert!(cuts > 100, "{cuts}");
}
