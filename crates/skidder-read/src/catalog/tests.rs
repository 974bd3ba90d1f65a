//! Which file is which source, scan after scan.

use super::*;
use crate::readers::ReadersLimits;
use crate::settings::FilestreamSettings;
use crate::testing::{Input, gzip, lines, settings};
use std::io;
use std::time::Duration;

const A: &str = "/logs/a.log";

fn with(change: impl FnOnce(&mut FilestreamSettings)) -> Input {
    let mut settings = settings();
    change(&mut settings);
    Input::with(settings, ReadersLimits { open_files: 100, decoders: 10 }, 100)
}

/// An input that has read `content` as `a.log`.
fn having_read(content: &str) -> Input {
    let mut input = with(|_| {});
    input.fs.write_as_other(A, content.as_bytes());
    assert_eq!(input.round().len(), content.lines().count());
    input
}

/// Scans and reads, over more than the grace of vanished files.
fn rounds(input: &mut Input) -> Vec<String> {
    let mut messages = Vec::new();
    for _ in 0..10 {
        messages.extend(input.round());
        input.advance(11);
    }
    messages
}

/// Lines that several files begin with, longer than a fingerprint.
fn header() -> String {
    lines("# the same header in every file", 0..60)
}

#[test]
fn a_renamed_file_is_read_on_and_the_new_one_from_the_start() {
    for size in [3, 500] {
        let mut input = having_read(&lines("old", 0..size));
        input.fs.append_as_other(A, b"the last\n");
        input.fs.rename_as_other(A, "/logs/a.log.1");
        input.fs.write_as_other(A, b"new\n");
        let mut messages = rounds(&mut input);
        messages.sort();
        assert_eq!(messages, ["new", "the last"], "{size}");
    }
}

#[test]
fn a_file_that_grows_past_its_fingerprint_keeps_its_cursor() {
    let mut input = with(|_| {});
    let mut messages = Vec::new();
    for number in 0..60 {
        input.fs.append_as_other(A, lines("a line of some length", number..number + 1).as_bytes());
        messages.extend(input.round());
        if number % 7 == 0 {
            input = input.restarted();
        }
        assert_eq!(input.saved.len(), 1, "one entry, whatever its key");
    }
    assert_eq!(messages, lines("a line of some length", 0..60).lines().collect::<Vec<_>>());
}

#[test]
fn a_compressed_file_goes_on_where_the_plain_one_was() {
    for (read, down) in [(true, false), (true, true), (false, false), (false, true)] {
        let content = lines("line", 0..30_000);
        let mut input = with(|_| {});
        input.fs.write_as_other(A, content.as_bytes());
        input.scan();
        let mut count = 0;
        while let Some((batch, _)) = input.turn() {
            count += batch.map_or(0, |batch| batch.len());
            if !read && count > 3000 {
                break;
            }
        }
        if down {
            input = input.restarted();
        }
        input.fs.write_as_other("/logs/a.log.1.gz", &gzip(content.as_bytes()));
        input.fs.remove_as_other(A);
        count += rounds(&mut input).len();
        assert_eq!(count, 30_000, "all read {read}, while down {down}");
    }
}

#[test]
fn a_copy_beside_its_original_is_held_and_takes_over() {
    let content = lines("line", 0..500);
    let mut input = having_read(&content);
    let whole = gzip(content.as_bytes());
    for cut in [15, whole.len() / 2, whole.len()] {
        input.fs.write_as_other("/logs/a.log.1.gz", &whole[..cut]);
        assert!(input.round().is_empty(), "{cut}");
    }
    assert_eq!(input.scan().held, 1);
    input.fs.remove_as_other(A);
    assert!(rounds(&mut input).is_empty());
    assert_eq!(input.scan(), ScanSummary { matched: 1, held: 0, undecided: 0, sources: 1 });
}

#[test]
fn copytruncate_loses_and_repeats_nothing() {
    for scanned_between in [true, false] {
        for size in [3, 500] {
            let mut input = having_read(&lines("old", 0..size));
            input.fs.append_as_other(A, b"unread\n");
            let bytes = input.fs.peek(A).expect("it is there");
            input.fs.write_as_other("/logs/a.log.1", &bytes);
            if scanned_between {
                input.scan();
            }
            input.fs.truncate_as_other(A, 0);
            input.fs.append_as_other(A, lines("new", 0..size * 3).as_bytes());
            let messages = rounds(&mut input);
            assert_eq!(messages.len(), 1 + size * 3, "{scanned_between} {size}: {messages:?}");
            assert!(messages.contains(&"unread".to_owned()));
        }
    }
}

#[test]
fn a_copy_is_read_when_its_original_turns_out_to_be_another() {
    // Nothing but the common header was read, so that the cursor fits the rewritten file too.
    let header = header();
    let mut input = having_read(&header);
    input.fs.append_as_other(A, lines("old", 0..5).as_bytes());
    let bytes = input.fs.peek(A).expect("it is there");
    input.fs.write_as_other("/logs/a.log.1", &bytes);
    input.scan();
    input.fs.write_as_other(A, format!("{header}{}", lines("new", 0..9)).as_bytes());
    let messages = rounds(&mut input);
    for line in lines("old", 0..5).lines().chain(lines("new", 0..9).lines()) {
        assert!(messages.iter().any(|message| message == line), "{line}");
    }
}

#[test]
fn a_file_cut_down_to_the_common_header_is_not_what_it_was() {
    // Found by the simulated world (seed 2107): nothing was read yet of a file with a longer fingerprint
    // when it was copied and truncated; the header alone was taken for it, and the copy never read.
    let mut input = with(|_| {});
    input.fs.write_as_other("/logs/other.log", format!("{}other\n", header()).as_bytes());
    input.round();
    let content = format!("{}{}", header(), lines("line", 0..5));
    input.fs.write_as_other(A, content.as_bytes());
    input.scan();
    input.fs.write_as_other("/logs/a.log.1", content.as_bytes());
    input.fs.write_as_other(A, header().as_bytes());
    let messages = rounds(&mut input);
    for line in content.lines() {
        assert!(messages.iter().any(|message| message == line), "{line}");
    }
}

#[test]
fn a_new_file_does_not_wait_for_the_descriptor_of_a_deleted_one_that_began_alike() {
    // Found by the simulated world (seeds 1882, 2130, 2228).
    let mut input = with(|settings| settings.close.inactive = None);
    input.fs.write_as_other("/logs/other.log", format!("{}other\n", header()).as_bytes());
    input.round();
    // It differs from the other in the line behind the header, and this line is its fingerprint's end.
    let common = format!("{}same line\n", header());
    input.fs.write_as_other(A, format!("{common}{}", lines("old", 0..50)).as_bytes());
    assert_eq!(rounds(&mut input).len(), 111);
    input.fs.remove_as_other(A);
    rounds(&mut input);
    let content = format!("{common}{}", lines("new", 0..3));
    input.fs.write_as_other("/logs/b.log", content.as_bytes());
    assert_eq!(rounds(&mut input), content.lines().collect::<Vec<_>>());
}

#[test]
fn a_truncated_file_is_read_from_the_start_under_a_new_generation() {
    for content in [lines("new", 0..2), lines("new", 0..5000)] {
        let mut input = having_read(&format!("{}{}", header(), lines("old", 0..100)));
        let content = format!("{}{content}", header());
        input.fs.write_as_other(A, content.as_bytes());
        assert_eq!(rounds(&mut input).len(), content.lines().count());
        assert_eq!(input.context.metrics.files_truncated.get(), 1);
    }
}

#[test]
fn files_with_equal_headers_are_all_read_and_keep_their_cursors() {
    let mut input = with(|_| {});
    let name = |file: usize| format!("/logs/{file}.log");
    for file in 0..5 {
        let text = format!("{}{}", header(), lines(&format!("file {file} line"), 0..3));
        input.fs.write_as_other(name(file), text.as_bytes());
    }
    assert_eq!(rounds(&mut input).len(), 5 * 63);
    assert_eq!(input.saved.len(), 5, "each has a key of its own");
    for _ in 0..3 {
        input = input.restarted();
        for file in 0..5 {
            input.fs.append_as_other(name(file), b"more\n");
        }
        assert_eq!(rounds(&mut input), ["more"; 5]);
    }
}

#[test]
fn a_short_file_that_grows_into_the_fingerprint_of_another_keeps_its_own_key() {
    let header = header();
    let mut input = with(|_| {});
    input.fs.write_as_other(A, format!("{header}one\n").as_bytes());
    input.fs.write_as_other("/logs/b.log", &header.as_bytes()[..62]);
    let mut messages = rounds(&mut input);
    input.fs.append_as_other("/logs/b.log", &header.as_bytes()[62..]);
    input.fs.append_as_other("/logs/b.log", b"two\n");
    messages.extend(rounds(&mut input));
    assert!(messages.contains(&"one".to_owned()) && messages.contains(&"two".to_owned()));
    assert_eq!(input.saved.len(), 2);
    let mut input = input.restarted();
    assert!(rounds(&mut input).is_empty());
}

#[test]
fn tiny_files_that_begin_alike_are_told_apart_as_they_grow() {
    let mut input = with(|_| {});
    input.fs.append_as_other(A, b"start\n");
    input.fs.append_as_other("/logs/b.log", b"start\n");
    let mut messages = rounds(&mut input);
    input.fs.append_as_other(A, b"one\n");
    input.fs.append_as_other("/logs/b.log", b"two\n");
    messages.extend(rounds(&mut input));
    messages.sort();
    assert_eq!(messages, ["one", "start", "start", "two"]);
}

#[test]
fn names_of_one_file_are_read_once() {
    let mut input = with(|settings| settings.scan.symlinks = true);
    input.fs.append_as_other(A, b"one\n");
    input.fs.hard_link_as_other(A, "/logs/hard.log");
    input.fs.symlink_as_other(A, "/logs/soft.log");
    assert_eq!(rounds(&mut input), ["one"]);
    input.fs.append_as_other(A, b"two\n");
    assert_eq!(rounds(&mut input), ["two"]);
    input.fs.remove_as_other(A);
    input.fs.append_as_other("/logs/hard.log", b"three\n");
    assert_eq!(rounds(&mut input), ["three"]);
}

#[test]
fn a_reused_inode_is_a_new_file() {
    let mut input = with(|settings| settings.close.on_eof = true);
    input.fs.write_as_other(A, lines("old", 0..100).as_bytes());
    input.round();
    input.fs.remove_as_other(A);
    input.fs.write_as_other("/logs/b.log", lines("new", 0..200).as_bytes());
    assert_eq!(rounds(&mut input).len(), 200);
}

#[test]
fn a_deleted_file_is_read_to_its_end_from_the_open_one() {
    let mut input = with(|_| {});
    input.fs.write_as_other(A, lines("line", 0..5000).as_bytes());
    input.scan();
    let mut count = input.turn().and_then(|(batch, _)| batch).map_or(0, |batch| batch.len());
    input.fs.remove_as_other(A);
    count += rounds(&mut input).len();
    assert_eq!(count, 5000);
    for _ in 0..40 {
        input.round();
        input.advance(11);
    }
    assert_eq!(input.scan().sources, 0, "forgotten after a while");
    assert_eq!((input.saved.len(), input.context.metrics.files_lost.get()), (0, 0));
}

#[test]
fn a_directory_that_cannot_be_listed_has_not_lost_its_files() {
    use skidder_testkit::{Fault, Operation};
    let mut input = having_read(&lines("line", 0..100));
    let fault = Fault::nth(1, io::ErrorKind::PermissionDenied).of(Operation::List).on("/logs");
    input.fs.inject(fault.times(20));
    for _ in 0..20 {
        assert!(input.round().is_empty());
        input.advance(60);
    }
    input.fs.append_as_other(A, b"more\n");
    assert_eq!(rounds(&mut input), ["more"]);
}

#[test]
fn old_files_are_ignored_until_they_change() {
    let day = Duration::from_hours(24);
    let mut input = with(|settings| settings.ignore_older = Some(day));
    input.fs.write_as_other(A, b"old\n");
    input.clock.advance(day * 2);
    assert!(rounds(&mut input).is_empty());
    input.fs.append_as_other(A, b"new\n");
    assert_eq!(rounds(&mut input), ["new"]);
}

#[test]
fn a_touched_file_is_read_again_only_if_asked_for() {
    for asked in [false, true] {
        let mut input = with(|settings| settings.resend_on_touch = asked);
        input.fs.append_as_other(A, b"one\n");
        assert_eq!(input.round(), ["one"]);
        input.advance(5);
        input.fs.set_modified_as_other(A, skidder_os::Clock::wall(&input.clock));
        assert_eq!(rounds(&mut input).len(), usize::from(asked));
    }
}

#[test]
fn vanished_files_are_remembered_as_the_settings_say() {
    let hour = Duration::from_hours(1);
    for (removed, inactive, after_minutes, kept) in [
        (true, None, 2, false),
        (false, None, 600, true),
        (false, Some(hour), 30, true),
        (false, Some(hour), 90, false),
    ] {
        let mut input = with(|settings| {
            settings.clean_removed = removed;
            settings.clean_inactive = inactive;
            settings.close.on_eof = true;
        });
        input.fs.append_as_other(A, b"one\n");
        input.round();
        input.fs.remove_as_other(A);
        input.scan();
        input.advance(after_minutes * 60);
        input.scan();
        assert_eq!(input.saved.len() == 1, kept, "{removed} {inactive:?} {after_minutes}");
    }
}

#[test]
fn rotated_names_are_related_and_others_not() {
    let cases = [
        ("/l/app.log", "/l/app.log.1", true),
        ("/l/app.log.1", "/l/app.log.2.gz", true),
        ("/l/app.log", "/l/app.log-20261121", true),
        ("/l/app.log", "/l/app.log.2026-11-21T10:00", true),
        ("/l/app.log", "/m/app.log.1", false),
        ("/l/app.log", "/l/web.log", false),
        ("/l/app1.log", "/l/app2.log", false),
    ];
    for (one, other, expected) in cases {
        let related = matching::is_related(Path::new(one), Path::new(other));
        assert_eq!(related, expected, "{one} {other}");
    }
}

/// Prints what 100,000 idle files cost: `cargo test --release -p skidder-read idle -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
#[expect(clippy::disallowed_methods, reason = "a measurement for people")]
fn idle_files_are_scanned_in_microseconds_and_kept_in_a_kilobyte() {
    const FILES: usize = 100_000;
    let resident = || {
        let status = std::fs::read_to_string("/proc/self/status").expect("this is Linux");
        let line = status.lines().find(|line| line.starts_with("VmRSS")).expect("it is there");
        line.split_whitespace().nth(1).and_then(|text| text.parse::<usize>().ok()).expect("kB")
    };
    let mut input = with(|settings| settings.close.on_eof = true);
    for file in 0..FILES {
        let text = lines(&format!("a file with the number {file}"), 0..1);
        input.fs.write_as_other(format!("/logs/some-service-{file:06}.log"), text.as_bytes());
    }
    let before = resident();
    for name in ["first scan", "first turns", "second scan", "third scan"] {
        let begin = std::time::Instant::now();
        if name == "first turns" {
            assert_eq!(input.read().len(), FILES);
        } else {
            input.scan();
        }
        let each = begin.elapsed() / FILES as u32;
        eprintln!("{name}: {:?}, {each:?} a file", begin.elapsed());
    }
    eprintln!(
        "{} bytes a file, cursors of the tests included",
        (resident() - before) * 1024 / FILES
    );
}

#[test]
fn a_copy_is_not_another_file_because_its_original_was_truncated_a_moment_ago() {
    // Found by the simulated world: what was seen at first is shared by what was written anew, so that the copy was
    // compared with that, and read from the start.
    let mut input = with(|_| {});
    let mut watcher = input.watcher();
    input.fs.write_as_other(A, b"{\"message\":\"");
    input.scan_watched(&mut watcher, true);
    let old = lines("{\"message\":\"old", 0..50).split_off("{\"message\":\"".len());
    input.fs.append_as_other(A, old.as_bytes());
    input.react(&mut watcher);
    let mut messages = input.read();
    assert_eq!(messages.len(), 50);
    input.fs.copytruncate_as_other(A, "/logs/a.log.1");
    input.fs.append_as_other(A, lines("{\"message\":\"new", 0..5).as_bytes());
    input.react(&mut watcher);
    for _ in 0..10 {
        messages.extend(input.read());
        input.advance(11);
        input.scan_watched(&mut watcher, false);
    }
    assert_eq!(messages.len(), 55);
}

#[test]
fn a_compressed_file_of_which_only_the_first_bytes_are_known_is_looked_into_before_it_is_taken() {
    // Found by the simulated world: two files were written, rotated and compressed under one name and inode between
    // two scans, and both begin with what the first scan saw.
    for size in [20, 400] {
        let mut input = with(|_| {});
        input.fs.write_as_other(A, b"{");
        input.scan();
        let (one, two) = (lines("{one", 0..size), lines("{two", 0..size));
        let inode = input.fs.peek_metadata(A).expect("it is there").inode;
        input.fs.write_as_other("/logs/a.log-20260101.gz", &gzip(one.as_bytes()));
        // The same inode, as after a removal.
        input.fs.truncate_as_other(A, 0);
        input.fs.append_as_other(A, two.as_bytes());
        assert_eq!(input.fs.peek_metadata(A).expect("it is there").inode, inode);
        let mut messages = input.read();
        assert!(!messages.is_empty());
        input.fs.write_as_other("/logs/a.log-20260102.gz", &gzip(two.as_bytes()));
        input.fs.remove_as_other(A);
        messages.extend(rounds(&mut input));
        messages.sort();
        let text = one + &two;
        let mut expected: Vec<_> = text.lines().collect();
        expected.sort_unstable();
        assert_eq!(messages, expected, "{size}");
    }
}

#[test]
fn a_compressed_copy_that_is_told_of_does_not_overtake_a_plain_one() {
    // Found by the simulated world: the plain copy waited for the open file to be read to its end, the compressed one
    // came between two scans, took over, and the plain one was read as a file of its own.
    let mut input = with(|_| {});
    let mut watcher = input.watcher();
    let text = lines("line", 0..400);
    input.fs.write_as_other(A, text.as_bytes());
    input.scan_watched(&mut watcher, true);
    let mut messages = input.read();
    input.fs.write_as_other("/logs/a.log.1", text.as_bytes());
    input.fs.remove_as_other(A);
    input.fs.write_as_other(A, lines("another", 0..3).as_bytes());
    input.react(&mut watcher);
    input.read().drain(..).for_each(|message| messages.push(message));
    input.fs.write_as_other("/logs/a.log.1.gz", &gzip(text.as_bytes()));
    input.react(&mut watcher);
    for _ in 0..10 {
        messages.extend(input.read());
        input.advance(11);
        input.scan_watched(&mut watcher, false);
    }
    assert_eq!(messages.len(), 403);
}

#[test]
fn what_is_moved_out_of_reach_is_read_from_the_open_file_or_counted_as_lost() {
    // As by logrotate with an `olddir` that no pattern matches.
    for open in [true, false] {
        let mut input = with(|_| {});
        input.fs.create_dir_as_other("/old");
        input.fs.write_as_other(A, lines("line", 0..300).as_bytes());
        input.scan();
        let mut messages = Vec::new();
        if open {
            let (batch, _) = input.turn().expect("there is a turn");
            messages.extend(batch.iter().flat_map(crate::testing::messages_of));
            assert!(messages.len() < 300);
        }
        input.fs.rename_as_other(A, "/old/a.log.1");
        input.fs.write_as_other(A, lines("next", 0..3).as_bytes());
        messages.extend(rounds(&mut input));
        let metrics = &input.context.metrics;
        let text = lines("line", 0..300) + &lines("next", 0..3);
        if open {
            messages.sort();
            let mut expected: Vec<_> = text.lines().collect();
            expected.sort_unstable();
            assert_eq!(messages, expected);
            assert_eq!(metrics.files_lost.get(), 0);
        } else {
            assert_eq!(messages, lines("next", 0..3).lines().collect::<Vec<_>>());
            assert_eq!(metrics.files_lost.get(), 1);
            assert_eq!(metrics.bytes_lost.get(), lines("line", 0..300).len() as u64);
        }
    }
}
