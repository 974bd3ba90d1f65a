//! One input that feeds two outputs: when its files are deleted, and what pinned ones cost.

use super::Peer;
use crate::readers::ReadersLimits;
use crate::settings::FilestreamSettings;
use crate::testing::{Input, gzip, lines, settings};
use skidder_testkit::Random;
use std::path::PathBuf;
use std::time::Duration;

const A: &str = "/logs/a.log";

/// The catalogs of an input for two outputs.
fn two(change: impl FnOnce(&mut FilestreamSettings)) -> [Input; 2] {
    let mut settings = settings();
    change(&mut settings);
    let one = Input::with(settings, ReadersLimits { open_files: 100, decoders: 10 }, 100);
    let mut both = [one.for_another_output(), one];
    acquaint(&mut both);
    both
}

/// After a start they do not know each other.
fn acquaint(both: &mut [Input; 2]) {
    for (input, peer) in both.iter_mut().zip(Peer::seats(2)) {
        input.catalog().set_peer(peer);
    }
}

/// Both scan and read for so many seconds; what each has read.
fn rounds(both: &mut [Input; 2], seconds: u64) -> [Vec<String>; 2] {
    let mut read = [Vec::new(), Vec::new()];
    for _ in 0..seconds.div_ceil(10) {
        for (input, read) in both.iter_mut().zip(&mut read) {
            read.extend(input.round());
        }
        both[0].advance(10);
    }
    read
}

/// Only one of them does.
fn alone(input: &mut Input, seconds: u64) {
    for _ in 0..seconds.div_ceil(10) {
        input.round();
        input.advance(10);
    }
}

fn scan(both: &mut [Input; 2]) {
    for input in both {
        input.scan();
    }
}

fn deleted(both: &[Input; 2]) -> u64 {
    both.iter().map(|input| input.context.metrics.files_deleted.get()).sum()
}

#[test]
fn a_file_is_deleted_when_every_output_had_it_for_the_grace_period() {
    for (name, bytes) in [("a.log", b"one\n".to_vec()), ("a.gz", gzip(b"one\n"))] {
        for (slow, fast) in [(0, 1), (1, 0)] {
            let mut both = two(|settings| {
                settings.delete = Some(Duration::from_mins(10));
                settings.close.on_eof = true;
            });
            let path = format!("/logs/{name}");
            both[0].fs.write_as_other(&path, &bytes);
            // One of the outputs takes nothing: its catalog scans, and nothing of it is settled.
            both[slow].saved.hold(true);
            rounds(&mut both, 2000);
            alone(&mut both[fast], 2000);
            assert!(both[0].fs.peek(&path).is_some(), "{name}: one of them does not have it");
            both[slow].saved.hold(false);
            rounds(&mut both, 590);
            assert!(both[0].fs.peek(&path).is_some(), "{name}: not for long enough");
            rounds(&mut both, 30);
            assert!(both[0].fs.peek(&path).is_none(), "{name}");
            assert_eq!(deleted(&both), 1, "{name}");
            rounds(&mut both, 120);
            assert_eq!(both.each_ref().map(|input| input.saved.len()), [0, 0], "and forgotten");
        }
    }
}

#[test]
fn what_one_output_has_not_seen_is_not_deleted() {
    let mut both = two(|settings| {
        settings.delete = Some(Duration::ZERO);
        settings.close.on_eof = true;
    });
    both[0].fs.write_as_other(A, b"one\n");
    alone(&mut both[0], 200);
    assert!(both[0].fs.peek(A).is_some(), "the other has not begun");
    // It agrees to what it has read, and then the file is another one of the same size.
    both[0].saved.hold(true);
    alone(&mut both[1], 200);
    both[0].fs.write_as_other(A, b"two\n");
    both[0].saved.hold(false);
    alone(&mut both[0], 200);
    assert!(both[0].fs.peek(A).is_some(), "the other has read something else");
    rounds(&mut both, 200);
    assert!(both[0].fs.peek(A).is_none());
}

#[test]
fn what_is_written_at_the_last_moment_is_read_for_all() {
    let mut both = two(|settings| {
        settings.delete = Some(Duration::ZERO);
        settings.close.on_eof = true;
    });
    both[0].fs.write_as_other(A, b"one\n");
    both[1].saved.hold(true);
    assert_eq!(rounds(&mut both, 30), [["one"], ["one"]]);
    both[1].saved.hold(false);
    let writer = both[0].fs.open_as_other(A);
    // The second one deletes it; before the first one looks, a writer adds a line.
    alone(&mut both[1], 10);
    assert!(both[0].fs.peek(A).is_none());
    writer.append(b"two\n");
    drop(writer);
    assert_eq!(rounds(&mut both, 60)[0], ["two"]);
    assert_eq!(both[0].readers.open_files(), 0);
    rounds(&mut both, 120);
    assert_eq!(both.each_ref().map(|input| input.saved.len()), [0, 0]);
}

#[test]
fn whatever_is_deleted_was_read_by_all() {
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let mut both = two(|settings| {
            settings.delete = Some(Duration::from_secs(random.below(60)));
            settings.close.on_eof = random.one_in(2);
            settings.close.inactive = Some(Duration::from_secs(1 + random.below(60)));
        });
        let (mut written, mut read) = (0, [Vec::new(), Vec::new()]);
        for step in 0..80 {
            let name = format!("/logs/{}.log", random.below(3));
            if random.one_in(2) {
                let lines = lines(&format!("step {step}"), 0..1 + random.below(200) as usize);
                written += lines.lines().count();
                both[0].fs.append_as_other(name, lines.as_bytes());
            }
            for input in &both {
                if random.one_in(10) {
                    input.saved.hold(random.one_in(2));
                }
            }
            if random.one_in(10) {
                both = both.map(Input::restarted);
                acquaint(&mut both);
            }
            for (input, read) in both.iter_mut().zip(&mut read) {
                if !random.one_in(3) {
                    read.extend(input.round());
                }
            }
            both[0].advance(random.below(30));
        }
        for input in &both {
            input.saved.hold(false);
        }
        for (all, more) in read.iter_mut().zip(rounds(&mut both, 400)) {
            all.extend(more);
            assert_eq!(all.len(), written, "seed {seed}");
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), written, "seed {seed}: each line once");
        }
        assert!(both[0].fs.peek_names("/logs").is_empty(), "seed {seed}");
    }
}

#[test]
fn pins_of_other_outputs_are_no_names_that_keep_a_file_for_nothing() {
    let mut both = two(|settings| {
        settings.pin.max_bytes = Some(1000);
        settings.close.on_eof = true;
    });
    let directories = ["/data/pins", "/data/outputs/b/pins"].map(PathBuf::from);
    for (at, directory) in directories.into_iter().enumerate() {
        let mut settings = both[at].context.settings.clone();
        settings.pin.directory = Some(directory);
        let [one, two] = both;
        let (changed, other) = if at == 0 { (one, two) } else { (two, one) };
        let changed = changed.restarted_with(settings);
        both = if at == 0 { [changed, other] } else { [other, changed] };
    }
    acquaint(&mut both);
    for number in 0..4 {
        let name = format!("/logs/{number}.log");
        both[0].fs.write_as_other(&name, lines(&format!("file {number}"), 0..60).as_bytes());
    }
    scan(&mut both);
    for number in 0..4 {
        both[0].fs.remove_as_other(format!("/logs/{number}.log"));
    }
    for _ in 0..3 {
        scan(&mut both);
        both[0].advance(10);
    }
    for input in &both {
        let metrics = &input.context.metrics;
        assert!(metrics.pins_given_up.get() > 0, "beyond `pin.max_bytes` they are given up");
        assert!(metrics.pinned_bytes.get() <= 1000, "{}", metrics.pinned_bytes.get());
    }
}
