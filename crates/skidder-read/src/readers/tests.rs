//! Which sources get a turn and which wait, and that none waits for ever.

use super::*;
use crate::Now;
use crate::reader::Scratch;
use crate::scan::ScanProblem;
use crate::settings::FilestreamSettings;
use crate::testing::{Input, gzip, lines, multiline, settings};
use skidder_os::Clock;
use skidder_parse::chain::{Chain, Parser};
use skidder_testkit::{Fault, Operation, Random};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

fn with(limits: (usize, usize), change: impl FnOnce(&mut FilestreamSettings)) -> Input {
    let mut settings = settings();
    change(&mut settings);
    Input::with(settings, ReadersLimits { open_files: limits.0, decoders: limits.1 }, 100)
}

#[test]
fn every_file_is_read_whatever_the_limits() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let limits = (1 + random.below(4) as usize, 1 + random.below(3) as usize);
        let harvester_limit = random.one_in(2).then(|| 1 + random.below(3) as usize);
        let mut input = with(limits, |settings| settings.harvester_limit = harvester_limit);
        let mut expected = BTreeSet::new();
        let mut read = BTreeSet::new();
        for round in 0..6 {
            for file in 0..12 {
                let text = lines(&format!("{file} in round {round}"), 0..3);
                expected.extend(text.lines().map(str::to_owned));
                let (name, bytes) = match file % 3 {
                    0 => (format!("/logs/{file}.gz"), gzip(text.as_bytes())),
                    _ => (format!("/logs/{file}.log"), text.into_bytes()),
                };
                input.fs.append_as_other(name, &bytes);
            }
            if random.one_in(3) {
                input.fs.remove_as_other("/logs/1.log");
                expected.retain(|line| !line.starts_with(&format!("1 in round {round}")));
            }
            read.extend(input.round());
            assert!(input.readers.open_files() <= limits.0);
            input.advance(random.below(30));
        }
        assert!(input.readers.is_quiet(), "seed {seed}");
        let missing: Vec<_> = expected.difference(&read).collect();
        assert!(missing.is_empty(), "seed {seed}, {limits:?} {harvester_limit:?}: {missing:?}");
    }
}

#[test]
fn a_sleeper_makes_way_for_a_file_with_something_to_read() {
    let mut input = with((100, 10), |settings| settings.harvester_limit = Some(1));
    input.fs.append_as_other("/logs/a.log", b"one\n");
    assert_eq!(input.round(), ["one"]);
    assert_eq!(input.readers.open_files(), 1, "it sleeps with its file open");
    input.fs.append_as_other("/logs/b.log", b"two\n");
    assert_eq!(input.round(), ["two"]);
}

#[test]
fn a_file_without_end_makes_way_for_others_after_a_while() {
    let mut input = with((1, 10), |_| {});
    input.fs.write_as_other("/logs/a.log", lines("a", 0..400_000).as_bytes());
    input.fs.write_as_other("/logs/b.log", b"the other\n");
    input.scan();
    let mut turns = 0;
    loop {
        let (batch, _) = input.turn().expect("there is more to read");
        turns += 1;
        let batch = batch.expect("each turn has lines");
        if crate::testing::messages_of(&batch) == ["the other"] {
            break;
        }
    }
    assert!((TURNS_MAX..TURNS_MAX + 3).contains(&turns), "{turns}");
    assert!(input.read().len() > 300_000, "and comes back");
}

#[test]
fn close_inactive_counts_from_the_last_data() {
    let mut input = with((100, 10), |_| {});
    input.fs.append_as_other("/logs/a.log", b"one\n");
    input.round();
    for _ in 0..29 {
        input.advance(10);
        assert!(input.read().is_empty());
        assert!(input.readers.open_files() <= 1);
    }
    input.advance(10);
    assert!(input.read().is_empty());
    assert_eq!(input.readers.open_files(), 0);
    input.fs.append_as_other("/logs/a.log", b"two\n");
    assert_eq!(input.round(), ["two"]);
}

#[test]
fn a_reader_asks_less_and_less_often_while_nothing_comes() {
    let mut input = with((100, 10), |_| {});
    input.fs.append_as_other("/logs/a.log", b"one\n");
    input.round();
    let mut waits = Vec::new();
    for _ in 0..5 {
        let now = input.clock.monotonic();
        let Next::Wait(Some(at)) = input.readers.next(now) else { panic!("it sleeps") };
        waits.push(at.since(now).as_secs());
        input.clock.advance(at.since(now));
        assert!(input.read().is_empty());
    }
    assert_eq!(waits, [2, 4, 8, 10, 10]);
    input.fs.append_as_other("/logs/a.log", b"two\n");
    input.advance(10);
    assert_eq!(input.read(), ["two"], "without a scan");
    let now = input.clock.monotonic();
    assert!(
        matches!(input.readers.next(now), Next::Wait(Some(at)) if at.since(now).as_secs() == 2)
    );
}

#[test]
fn close_on_eof_and_after_interval_lose_nothing() {
    let mut input = with((100, 10), |settings| settings.close.on_eof = true);
    input.fs.append_as_other("/logs/a.log", b"one\n");
    assert_eq!(input.round(), ["one"]);
    assert_eq!(input.readers.open_files(), 0);
    let interval = Some(Duration::from_secs(5));
    let mut input = with((100, 10), |settings| settings.close.after_interval = interval);
    input.fs.write_as_other("/logs/a.log", lines("a", 0..20_000).as_bytes());
    input.scan();
    input.turn();
    input.advance(5);
    input.turn();
    assert_eq!(input.readers.open_files(), 0, "closed in the middle");
    assert!(input.read().is_empty());
    assert!(input.round().len() > 19_000, "the next scan opens it again");
}

#[test]
fn with_once_a_file_is_read_to_its_end_however_long_that_takes() {
    // It was closed in the middle, for the next scan to open it again, and there is none.
    let mut input = with((100, 10), |settings| {
        settings.close.after_interval = Some(Duration::from_millis(300));
        settings.read_once = true;
    });
    input.fs.write_as_other("/logs/a.log", lines("a", 0..20_000).as_bytes());
    input.scan();
    let mut read = 0;
    while let Some((batch, _)) = input.turn() {
        read += batch.map_or(0, |batch| batch.rows().len());
        input.advance(1);
    }
    assert_eq!(read, 20_000);
    assert_eq!(input.readers.open_files(), 0, "it is closed at its end");
}

#[test]
fn close_removed_and_renamed_close_what_has_lost_its_name() {
    for (removed, renamed, open) in [(false, false, 1), (true, false, 0), (false, true, 0)] {
        let mut input = with((100, 10), |settings| {
            (settings.close.removed, settings.close.renamed) = (removed, renamed);
        });
        input.fs.append_as_other("/logs/a.log", b"one\n");
        input.round();
        if removed {
            input.fs.remove_as_other("/logs/a.log");
        } else {
            input.fs.create_dir_as_other("/away");
            input.fs.rename_as_other("/logs/a.log", "/away/a.log");
        }
        input.advance(6);
        input.read();
        assert_eq!(input.readers.open_files(), open, "removed {removed}, renamed {renamed}");
    }
}

#[test]
fn a_read_error_does_not_let_go_of_a_file_without_a_name() {
    let mut input = with((100, 10), |_| {});
    input.fs.write_as_other("/logs/a.log", lines("a", 0..1000).as_bytes());
    input.scan();
    input.turn();
    input.fs.remove_as_other("/logs/a.log");
    let fault = Fault::nth(1, std::io::ErrorKind::TimedOut).of(Operation::Read);
    input.fs.inject(fault.times(3));
    let mut read = input.read();
    for _ in 0..10 {
        input.advance(10);
        read.extend(input.round());
    }
    assert_eq!(read.len(), 850);
}

#[test]
fn a_source_woken_during_its_turn_gets_another() {
    let mut input = with((100, 10), |settings| settings.close.on_eof = true);
    input.fs.append_as_other("/logs/a.log", b"one\n");
    input.scan();
    let now = input.clock.monotonic();
    let Next::Turn(mut turn) = input.readers.next(now) else { panic!("there is one") };
    let (batch, _) = turn.run(&mut Scratch::default(), input.clock.wall());
    input.fs.append_as_other("/logs/a.log", b"two\n");
    input.scan();
    input.readers.finish(turn, &TurnEnd::Waiting, batch.is_some(), now);
    assert_eq!(input.read(), ["two"]);
}

#[test]
fn what_comes_before_a_file_is_closed_for_its_name_is_read() {
    for (removed, renamed) in [(true, false), (false, true)] {
        let mut input = with((100, 10), |settings| {
            (settings.close.removed, settings.close.renamed) = (removed, renamed);
        });
        input.fs.write_as_other("/logs/a.log", b"one\n");
        assert_eq!(input.round(), ["one"]);
        input.fs.append_as_other("/logs/a.log", b"two\n");
        if removed {
            input.fs.remove_as_other("/logs/a.log");
        } else {
            input.fs.rename_as_other("/logs/a.log", "/elsewhere");
        }
        input.advance(5);
        assert_eq!(input.read(), ["two"]);
        input.advance(20);
        assert!(input.read().is_empty());
        assert_eq!(input.readers.open_files(), 0);
    }
}

#[test]
fn open_files_are_read_to_their_end_when_the_program_is_asked_to_stop() {
    let minute = Duration::from_mins(1);
    for limit in [None, Some(minute)] {
        let mut input = with((100, 10), |settings| settings.read_until_eof = limit);
        input.fs.write_as_other("/logs/a.log", b"one\n");
        assert_eq!(input.round(), ["one"]);
        input.fs.append_as_other("/logs/a.log", lines("a", 0..50_000).as_bytes());
        input.fs.write_as_other("/logs/b.log", b"not open\n");
        input.scan();
        input.fs.remove_as_other("/logs/a.log");
        let waits = input.readers.drain(input.clock.monotonic());
        assert_eq!(waits, limit.unwrap_or_default());
        assert_eq!(input.read().len(), if limit.is_some() { 50_000 } else { 0 });
        assert_eq!(input.readers.open_files(), 0);
        assert!(input.readers.is_quiet());
    }
}

#[test]
fn reading_until_the_end_has_an_end() {
    let mut input =
        with((100, 10), |settings| settings.read_until_eof = Some(Duration::from_secs(5)));
    input.fs.write_as_other("/logs/a.log", lines("a", 0..100_000).as_bytes());
    input.scan();
    input.turn();
    input.readers.drain(input.clock.monotonic());
    assert!(input.turn().is_some());
    input.advance(5);
    assert!(input.turn().is_none());
    assert_eq!(input.readers.open_files(), 0);
}

#[test]
fn a_deleted_file_stays_open_even_if_there_is_no_room() {
    let limits = ReadersLimits { open_files: 1, decoders: 1 };
    let mut input = Input::with(settings(), limits, 100);
    let path = "/logs/a.log";
    input.fs.write_as_other(path, lines("line", 0..200).as_bytes());
    input.scan();
    input.turn();
    let writer = input.fs.open_as_other(path);
    input.fs.remove_as_other(path);
    let mut count = 150 + input.read().len();
    writer.append(lines("line", 200..250).as_bytes());
    for _ in 0..5 {
        input.advance(11);
        count += input.round().len();
    }
    assert_eq!(count, 250);
}

#[test]
fn large_and_small_decoders_share_the_places_and_every_file_gets_one() {
    // Room for one large decoder and a few small ones.
    let mut input = with((100, 10), |_| {});
    let mut expected = Vec::new();
    for file in 0..12 {
        let text = lines(&format!("f{file}"), 0..900);
        expected.extend(text.lines().map(str::to_owned));
        if file % 3 == 0 {
            input.fs.write_as_other(format!("/logs/{file}.gz"), &gzip(text.as_bytes()));
        } else {
            let mut packed = Vec::with_capacity(zstd_safe::compress_bound(text.len()));
            zstd_safe::compress(&mut packed, text.as_bytes(), 3).unwrap();
            input.fs.write_as_other(format!("/logs/{file}.zst"), &packed);
        }
    }
    let mut read = input.round();
    read.sort();
    expected.sort();
    assert_eq!(read, expected);
    assert_eq!(input.readers.open_files(), 0);
}

#[test]
fn a_file_that_waits_for_metadata_holds_up_nobody_and_is_read_then() {
    for open_files in [100, 1] {
        let mut input = with((open_files, 10), |_| {});
        input.holds.store(2, Ordering::Relaxed);
        input.fs.write_as_other("/logs/held.log", b"one\n");
        input.fs.write_as_other("/logs/other.log", b"two\n");
        assert_eq!(input.round(), ["two"]);
        assert!(!input.readers.is_quiet(), "`--once` does not end before it");
        input.fs.append_as_other("/logs/held.log", b"three\n");
        input.advance(3);
        assert!(input.read().is_empty(), "asked once more");
        input.advance(2);
        assert!(input.round().is_empty(), "neither a scan nor a write is an answer");
        input.advance(1);
        assert_eq!(input.read(), ["one", "three"]);
        assert!(input.readers.is_quiet());
    }
}

#[test]
fn a_file_that_waits_for_metadata_does_not_keep_the_program_from_ending() {
    let mut input = with((100, 10), |_| {});
    input.holds.store(1000, Ordering::Relaxed);
    input.fs.write_as_other("/logs/held.log", b"one\n");
    assert!(input.round().is_empty());
    input.readers.drain(input.clock.monotonic());
    assert!(input.readers.is_quiet());
    assert_eq!(input.readers.open_files(), 0);
}

#[test]
fn a_file_without_a_name_that_could_not_be_read_comes_before_one_that_begins_alike() {
    // Found by the simulated world (2003682): another log with the same header took its place while it waited to be tried
    // again, and the rest of it was lost.
    let header = lines("# the same header in every file", 0..60);
    let mut input = with((100, 10), |_| {});
    input.fs.write_as_other("/logs/a.log", header.as_bytes());
    assert_eq!(input.round().len(), 60);
    input.fs.append_as_other("/logs/a.log", b"the rest\n");
    input.fs.remove_as_other("/logs/a.log");
    input.fs.inject(Fault::nth(1, std::io::ErrorKind::TimedOut).of(Operation::Read));
    let mut read = input.round();
    input.fs.write_as_other("/logs/a.log", format!("{header}new\n").as_bytes());
    for _ in 0..10 {
        read.extend(input.round());
        input.advance(10);
    }
    assert!(read.iter().any(|line| line == "the rest"), "{read:?}");
    assert!(read.iter().any(|line| line == "new"), "{read:?}");
}

#[test]
fn lines_that_wait_for_others_keep_a_file_from_being_inactive() {
    // Found by the simulated world (2053922): a group of which the beginning had just come was given out before the file
    // was closed, because no event had come of it for long.
    let mut input = with((100, 10), |settings| {
        settings.close.inactive = Some(Duration::from_secs(5));
        settings.parsers = Chain::new(vec![Parser::Multiline(multiline())], 20 << 20);
    });
    input.fs.append_as_other("/logs/a.log", b"one\n 1\ntwo\n");
    input.scan();
    let mut read = input.read();
    input.advance(3);
    input.fs.append_as_other("/logs/a.log", b" 2\n");
    read.extend(input.round());
    input.advance(3);
    read.extend(input.round());
    input.fs.append_as_other("/logs/a.log", b" and more\n");
    for _ in 0..5 {
        input.advance(3);
        read.extend(input.round());
    }
    assert_eq!(read, ["one\n 1", "two\n 2\n and more"]);
}

#[test]
fn files_that_wait_for_a_turn_are_opened_while_nothing_moves_and_read_after_they_were_deleted() {
    let mut input = with((100, 10), |_| {});
    let mut expected = BTreeSet::new();
    for file in 0..10 {
        let text = lines(&format!("{file}"), 0..3);
        expected.extend(text.lines().map(str::to_owned));
        let (name, bytes) = match file % 2 {
            0 => (format!("/logs/{file}.gz"), gzip(text.as_bytes())),
            _ => (format!("/logs/{file}.log"), text.into_bytes()),
        };
        input.fs.write_as_other(name, &bytes);
    }
    input.scan();
    assert_eq!(input.readers.open_files(), 0);
    assert!(!input.readers.open_waiting(input.clock.monotonic()), "all are open");
    assert_eq!(input.readers.open_files(), 10);
    for file in 0..10 {
        let end = if file % 2 == 0 { "gz" } else { "log" };
        input.fs.remove_as_other(format!("/logs/{file}.{end}"));
    }
    assert_eq!(input.round().into_iter().collect::<BTreeSet<_>>(), expected);
}

#[test]
fn no_more_waiting_files_are_opened_than_the_limits_allow_and_the_oldest_come_first() {
    for (open_files, harvester_limit) in [(3, None), (100, Some(3))] {
        let mut input =
            with((open_files, 10), |settings| settings.harvester_limit = harvester_limit);
        for file in 0..10 {
            let path = format!("/logs/{file}.log");
            input.fs.write_as_other(path, lines(&format!("{file}"), 0..3).as_bytes());
            input.scan();
        }
        assert!(!input.readers.open_waiting(input.clock.monotonic()));
        assert!(!input.readers.open_waiting(input.clock.monotonic()), "again");
        assert_eq!(input.readers.open_files(), 3);
        for file in 0..10 {
            input.fs.remove_as_other(format!("/logs/{file}.log"));
        }
        let read: BTreeSet<String> = input.round().into_iter().collect();
        let expected: BTreeSet<String> =
            (0..3).flat_map(|file| (0..3).map(move |line| format!("{file} {line}"))).collect();
        assert_eq!(read, expected);
    }
}

#[test]
fn a_waiting_file_that_cannot_be_opened_is_reported_by_its_turn() {
    let mut input = with((100, 10), |_| {});
    input.fs.write_as_other("/logs/a.log", b"one\n");
    input.scan();
    input.fs.create_dir_as_other("/other");
    input.fs.write_as_other("/other/b.log", b"another file\n");
    input.fs.rename_as_other("/other/b.log", "/logs/a.log");
    assert!(!input.readers.open_waiting(input.clock.monotonic()));
    assert_eq!(input.readers.open_files(), 0, "another file is at the path");
    assert!(input.read().is_empty());
    assert_eq!(input.round(), ["another file"]);
}

#[test]
fn where_the_system_was_short_of_descriptors_all_files_may_be_open_again_a_minute_later() {
    let mut input = with((8, 10), |_| {});
    let write = |input: &Input, round: usize| {
        for file in 0..8 {
            let path = format!("/logs/{file}.log");
            input.fs.append_as_other(path, lines(&format!("{file} in {round}"), 0..3).as_bytes());
        }
    };
    write(&input, 0);
    assert_eq!(input.round().len(), 24);
    let mut open = input.readers.open_files();
    assert!(open > 1, "{open}");
    while open > 1 {
        assert!(input.readers.give_way(), "{open} are open");
        open -= 1;
        assert_eq!(input.readers.open_files(), open);
    }
    write(&input, 1);
    assert_eq!(input.round().len(), 24, "one after the other");
    assert!(input.readers.open_files() <= 1);
    input.advance(61);
    write(&input, 2);
    input.scan();
    assert!(!input.readers.open_waiting(input.clock.monotonic()));
    assert!(input.readers.open_files() <= 1, "the next turn notices");
    assert_eq!(input.read().len(), 24);
    write(&input, 3);
    input.scan();
    assert!(!input.readers.open_waiting(input.clock.monotonic()));
    assert!(input.readers.open_files() > 4, "{} are open", input.readers.open_files());
}

#[test]
fn a_directory_that_cannot_be_listed_for_want_of_descriptors_closes_a_sleeper() {
    let mut input = with((8, 10), |_| {});
    for file in 0..4 {
        input.fs.write_as_other(format!("/logs/{file}.log"), lines("a", file..file + 3).as_bytes());
    }
    assert_eq!(input.round().len(), 12);
    let open = input.readers.open_files();
    let now = Now { wall: input.clock.wall(), monotonic: input.clock.monotonic() };
    for (code, left) in [(5, open), (24, open - 1), (23, open - 2)] {
        let error = std::io::Error::from_raw_os_error(code);
        let problem = ScanProblem { path: "/logs".into(), error };
        input.catalog().begin_scan(now.monotonic);
        input.catalog().apply(Vec::new(), &[problem], now);
        assert_eq!(input.readers.open_files(), left, "error {code}");
    }
}
