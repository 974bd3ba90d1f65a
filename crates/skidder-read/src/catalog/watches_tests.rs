//! Scans and reactions with notification, as it should be and as it may be.

use crate::glob::Pattern;
use crate::readers::ReadersLimits;
use crate::testing::{Input, lines, settings};
use skidder_testkit::{Operation, Random, SimFs};
use std::collections::BTreeSet;
use std::path::Path;

const LIMITS: ReadersLimits = ReadersLimits { open_files: 100, decoders: 10 };

fn input(patterns: &[&str], symlinks: bool) -> Input {
    let mut settings = settings();
    let parse = |text: &&str| Pattern::parse(text, Path::new("/"), true).expect("a good pattern");
    settings.scan.patterns = patterns.iter().map(parse).collect();
    settings.scan.symlinks = symlinks;
    Input::with(settings, LIMITS, 1000)
}

/// Looks at files and directories so far.
fn looks(fs: &SimFs) -> u64 {
    fs.operations_of(Operation::Stat) + fs.operations_of(Operation::List)
}

#[test]
fn a_quiet_directory_costs_a_scan_one_look() {
    let mut input = Input::new();
    for number in 0..50 {
        input.fs.write_as_other(format!("/logs/{number}"), format!("file {number}\n").as_bytes());
    }
    let mut watcher = input.watcher();
    assert_eq!(input.scan_watched(&mut watcher, true).matched, 50);
    assert_eq!(input.read().len(), 50);
    let before = looks(&input.fs);
    assert_eq!(input.scan_watched(&mut watcher, false).matched, 50);
    assert_eq!(looks(&input.fs) - before, 1);
    input.fs.append_as_other("/logs/7", b"more\n");
    input.scan_watched(&mut watcher, false);
    assert!(looks(&input.fs) - before < 10, "one file and its directory are looked at");
    assert_eq!(input.read(), ["more"]);
}

#[test]
fn a_write_wakes_an_idle_and_a_closed_reader_without_a_scan() {
    for closed in [false, true] {
        let mut input = Input::new();
        input.fs.write_as_other("/logs/a", b"one\n");
        let mut watcher = input.watcher();
        input.scan_watched(&mut watcher, true);
        assert_eq!(input.read(), ["one"]);
        if closed {
            input.advance(301);
            assert!(input.read().is_empty());
            assert_eq!(input.readers.open_files(), 0);
        }
        input.fs.append_as_other("/logs/a", b"two\n");
        assert!(input.read().is_empty(), "nobody was told yet");
        input.react(&mut watcher);
        assert_eq!(input.read(), ["two"], "closed: {closed}");
    }
}

#[test]
fn an_idle_reader_of_a_watched_file_does_not_look_by_itself_and_one_of_a_blind_directory_does() {
    for blind in [false, true] {
        let mut input = Input::new();
        if blind {
            input.fs.blind_below("/logs");
        }
        input.fs.write_as_other("/logs/a", b"one\n");
        let mut watcher = input.watcher();
        input.scan_watched(&mut watcher, true);
        assert_eq!(input.read(), ["one"]);
        input.advance(3);
        assert!(input.read().is_empty());
        input.fs.append_as_other("/logs/a", b"two\n");
        input.advance(11);
        assert_eq!(input.read().is_empty(), !blind);
    }
}

#[test]
fn names_that_come_and_go_are_looked_at_at_once() {
    let mut input = Input::new();
    input.fs.write_as_other("/logs/a", b"one\n");
    let mut watcher = input.watcher();
    input.scan_watched(&mut watcher, true);
    input.read();
    input.fs.write_as_other("/logs/b", b"two\n");
    input.react(&mut watcher);
    assert_eq!(input.read(), ["two"]);
    input.fs.write_as_other("/elsewhere/c", b"three\n");
    input.fs.rename_as_other("/elsewhere/c", "/logs/c");
    input.react(&mut watcher);
    assert_eq!(input.read(), ["three"]);
    input.fs.rename_as_other("/logs/a", "/logs/a.1");
    input.fs.append_as_other("/logs/a.1", b"four\n");
    input.fs.write_as_other("/logs/a", b"five\n");
    input.react(&mut watcher);
    assert_eq!(input.read(), ["four", "five"]);
    input.fs.remove_as_other("/logs/b");
    input.react(&mut watcher);
    assert_eq!(input.scan_watched(&mut watcher, false).matched, 3);
    input.fs.truncate_as_other("/logs/a", 0);
    input.fs.append_as_other("/logs/a", b"6\n");
    input.react(&mut watcher);
    assert!(input.read().is_empty(), "the reader finds it rewritten");
    input.react(&mut watcher);
    assert_eq!(input.read(), ["6"]);
}

#[test]
fn a_file_that_leaves_for_a_place_that_is_not_watched_is_polled_again() {
    let mut input = Input::new();
    input.fs.write_as_other("/logs/a", b"one\n");
    let mut watcher = input.watcher();
    input.scan_watched(&mut watcher, true);
    input.read();
    input.fs.rename_as_other("/logs/a", "/old/a");
    input.react(&mut watcher);
    assert!(input.read().is_empty());
    input.fs.append_as_other("/old/a", b"two\n");
    input.advance(11);
    assert_eq!(input.read(), ["two"]);
}

#[test]
fn what_was_not_told_is_found_by_a_full_scan_and_twice_is_once_too_often() {
    let mut input = Input::new();
    input.fs.write_as_other("/logs/a", b"0\n");
    let mut watcher = input.watcher();
    input.scan_watched(&mut watcher, true);
    input.read();
    for number in 1..=2 {
        input.fs.append_as_other("/logs/a", format!("{number}\n").as_bytes());
        input.fs.forget_notices();
        input.scan_watched(&mut watcher, false);
        assert!(input.read().is_empty(), "the directory is quiet");
        input.scan_watched(&mut watcher, true);
        assert_eq!(input.read(), [number.to_string()]);
    }
    input.scan_watched(&mut watcher, false);
    assert_eq!(input.fs.watched(), 0, "it is not believed any more");
    input.fs.append_as_other("/logs/a", b"3\n");
    input.scan_watched(&mut watcher, false);
    assert_eq!(input.read(), ["3"], "every scan looks into it");
    input.fs.append_as_other("/logs/a", b"4\n");
    input.advance(11);
    assert_eq!(input.read(), ["4"], "and its readers look by themselves");
}

#[test]
fn a_late_notice_is_no_lie() {
    let mut input = Input::new();
    input.fs.write_as_other("/logs/a", b"0\n");
    let mut watcher = input.watcher();
    input.scan_watched(&mut watcher, true);
    input.read();
    for number in 1..=4 {
        input.fs.append_as_other("/logs/a", format!("{number}\n").as_bytes());
        // The notice comes only after the scan has seen the change.
        let now = crate::Now {
            wall: skidder_os::Clock::wall(&input.clock),
            monotonic: skidder_os::Clock::monotonic(&input.clock),
        };
        input.catalog().scan(Some(&mut watcher), true, now);
        input.react(&mut watcher);
        assert_eq!(input.read(), [number.to_string()]);
    }
    input.scan_watched(&mut watcher, false);
    assert_eq!(input.fs.watched(), 1);
}

#[test]
fn lost_notices_are_told() {
    let mut input = Input::new();
    let mut watcher = input.watcher();
    input.scan_watched(&mut watcher, true);
    assert!(!input.react(&mut watcher));
    input.fs.overflow_notices();
    assert!(input.react(&mut watcher));
}

#[test]
fn a_new_name_that_was_not_told_shows_in_the_time_of_the_directory() {
    let mut input = Input::new();
    let mut watcher = input.watcher();
    input.scan_watched(&mut watcher, true);
    input.advance(1);
    input.fs.write_as_other("/logs/a", b"one\n");
    input.fs.forget_notices();
    input.scan_watched(&mut watcher, false);
    assert_eq!(input.read(), ["one"]);
}

#[test]
fn beyond_the_limit_on_watches_directories_are_listed_by_every_scan() {
    let mut input = input(&["/logs/*/*.log"], false);
    input.fs.set_watches_max(Some(2));
    for name in ["a", "b", "c"] {
        input.fs.write_as_other(format!("/logs/{name}/{name}.log"), format!("{name}\n").as_bytes());
    }
    let mut watcher = input.watcher();
    input.scan_watched(&mut watcher, true);
    assert_eq!(input.read().len(), 3);
    for name in ["a", "b", "c"] {
        input.fs.append_as_other(format!("/logs/{name}/{name}.log"), b"more\n");
    }
    input.scan_watched(&mut watcher, false);
    assert_eq!(input.read().len(), 3);
    input.fs.set_watches_max(None);
    input.scan_watched(&mut watcher, true);
    assert_eq!(input.fs.watched(), 4, "the parent is watched too");
}

#[test]
fn directories_that_come_ask_for_a_scan_and_those_that_go_are_left() {
    let mut input = input(&["/logs/*/*.log", "/deep/**/*.log"], false);
    input.fs.create_dir_as_other("/deep");
    let mut watcher = input.watcher();
    input.scan_watched(&mut watcher, true);
    assert!(!input.is_restless());
    input.fs.write_as_other("/logs/pod/0.log", b"one\n");
    input.fs.write_as_other("/deep/a/b/c.log", b"two\n");
    input.react(&mut watcher);
    assert!(input.is_restless());
    assert_eq!(input.scan_watched(&mut watcher, false).matched, 2);
    assert_eq!(input.read(), ["two", "one"]);
    input.fs.append_as_other("/deep/a/b/c.log", b"three\n");
    input.react(&mut watcher);
    assert_eq!(input.read(), ["three"]);
    let watched = input.fs.watched();
    input.fs.rename_as_other("/logs/pod", "/gone");
    input.react(&mut watcher);
    assert!(input.is_restless());
    assert_eq!(input.scan_watched(&mut watcher, false).matched, 1);
    assert_eq!(input.fs.watched(), watched - 1);
    input.fs.remove_dir_as_other("/deep/a");
    input.scan_watched(&mut watcher, false);
    assert_eq!(input.scan_watched(&mut watcher, false).matched, 0);
}

#[test]
fn what_a_link_leads_to_is_noticed_there() {
    let mut input = input(&["/logs/*.log"], true);
    input.fs.write_as_other("/pods/x/0.log", b"one\n");
    input.fs.symlink_as_other("/pods/x/0.log", "/logs/x.log");
    let mut watcher = input.watcher();
    input.scan_watched(&mut watcher, true);
    assert_eq!(input.read(), ["one"]);
    input.fs.append_as_other("/pods/x/0.log", b"two\n");
    input.react(&mut watcher);
    assert_eq!(input.read(), ["two"]);
    // Rotated below the link.
    input.fs.rename_as_other("/pods/x/0.log", "/pods/x/0.log.1");
    input.fs.write_as_other("/pods/x/0.log", b"three\n");
    input.react(&mut watcher);
    input.scan_watched(&mut watcher, false);
    assert_eq!(input.read(), ["three"]);
    // And without a word.
    input.fs.append_as_other("/pods/x/0.log", b"four\n");
    input.fs.forget_notices();
    input.scan_watched(&mut watcher, false);
    assert_eq!(input.read(), ["four"], "every scan looks at links");
    input.fs.remove_as_other("/logs/x.log");
    input.scan_watched(&mut watcher, false);
    assert_eq!(input.fs.watched(), 1, "the target's directory is left");
}

#[test]
fn a_file_with_another_name_elsewhere_is_looked_at_by_every_scan() {
    let mut input = Input::new();
    input.fs.write_as_other("/hidden/a", b"one\n");
    input.fs.hard_link_as_other("/hidden/a", "/logs/a");
    let mut watcher = input.watcher();
    input.scan_watched(&mut watcher, true);
    assert_eq!(input.read(), ["one"]);
    input.fs.append_as_other("/hidden/a", b"two\n");
    input.fs.forget_notices();
    input.advance(11);
    assert_eq!(input.read(), ["two"], "its reader looks by itself");
    input.scan_watched(&mut watcher, false);
    let before = looks(&input.fs);
    input.scan_watched(&mut watcher, false);
    assert_eq!(looks(&input.fs) - before, 2);
}

#[test]
fn a_reader_that_sleeps_is_closed_in_time_though_it_is_not_told_anything() {
    let mut input = Input::new();
    input.fs.write_as_other("/logs/a", b"one\n");
    let mut watcher = input.watcher();
    input.scan_watched(&mut watcher, true);
    input.read();
    assert_eq!(input.readers.open_files(), 1);
    input.advance(299);
    input.read();
    assert_eq!(input.readers.open_files(), 1);
    input.advance(2);
    input.read();
    assert_eq!(input.readers.open_files(), 0);
}

/// Writers, renames and notices of a seed; every line must come, once.
fn everything_comes(seed: u64) {
    let mut random = Random::new(seed);
    let mut input = input(&["/logs/*/*.log", "/flat/*"], false);
    let mut watcher = input.watcher();
    input.fs.unreliable_notices(random.one_in(2).then_some(seed));
    input.fs.set_watches_max(random.one_in(4).then_some(2));
    let (mut written, mut came) = (BTreeSet::new(), Vec::new());
    let mut files: Vec<String> = Vec::new();
    for number in 0..300_u64 {
        match random.below(12) {
            0 | 1 if files.len() < 12 => {
                let directory = match random.below(4) {
                    0 => "/flat".to_owned(),
                    other => format!("/logs/{other}"),
                };
                files.push(format!("{directory}/{number}.log"));
                let text = lines(&format!("head {number}"), 0..20);
                written.extend(text.lines().map(str::to_owned));
                input.fs.write_as_other(files.last().expect("just pushed"), text.as_bytes());
            }
            2 if !files.is_empty() => {
                let at = random.below(files.len() as u64) as usize;
                let to = format!("/flat/renamed-{number}");
                input.fs.rename_as_other(&files[at], &to);
                files[at] = to;
            }
            3..6 if !files.is_empty() => {
                let at = random.below(files.len() as u64) as usize;
                let line = format!("line {number}");
                input.fs.append_as_other(&files[at], format!("{line}\n").as_bytes());
                written.insert(line);
            }
            6 => {
                input.scan_watched(&mut watcher, random.one_in(4));
            }
            7 => input.advance(random.below(20)),
            8 => {
                if input.react(&mut watcher) {
                    input.scan_watched(&mut watcher, true);
                }
            }
            _ => came.extend(input.read()),
        }
    }
    for _ in 0..2 {
        input.scan_watched(&mut watcher, true);
        came.extend(input.read());
        assert!(input.readers.is_quiet());
    }
    let set: BTreeSet<String> = came.iter().cloned().collect();
    assert_eq!(set.len(), came.len(), "seed {seed}: a line came twice");
    assert_eq!(set, written, "seed {seed}");
}

#[test]
fn whatever_is_told_every_line_comes_once() {
    for seed in 0..100 {
        everything_comes(seed);
    }
}

#[test]
fn a_look_at_a_reader_in_waiting_is_not_lost() {
    let mut input = Input::with(settings(), ReadersLimits { open_files: 1, decoders: 1 }, 1000);
    input.fs.write_as_other("/logs/a", b"one\n");
    input.fs.write_as_other("/logs/b", b"two\n");
    let mut watcher = input.watcher();
    input.scan_watched(&mut watcher, true);
    assert_eq!(input.read().len(), 2);
    input.fs.append_as_other("/logs/a", b"three\n");
    input.fs.append_as_other("/logs/b", b"four\n");
    input.react(&mut watcher);
    assert_eq!(input.read().len(), 2);
}

#[test]
fn a_link_that_was_told_of_is_looked_at_by_every_scan() {
    // Found by the simulated world: only links that were there when their directory was listed were.
    let mut input = input(&["/logs/*"], true);
    let mut watcher = input.watcher();
    input.scan_watched(&mut watcher, true);
    input.fs.write_as_other("/pods/0", b"one\n");
    input.fs.symlink_as_other("/pods/0", "/logs/link");
    input.react(&mut watcher);
    assert_eq!(input.read(), ["one"]);
    input.fs.remove_as_other("/pods/0");
    input.scan_watched(&mut watcher, false);
    input.fs.write_as_other("/pods/0", b"two\n");
    input.advance(1);
    input.scan_watched(&mut watcher, false);
    assert_eq!(input.read(), ["two"]);
}
