//! Files that are rewritten under a beginning that they keep, and what they held before.

use super::*;
use crate::catalog::FileState;
use crate::reader::Scratch;
use crate::readers::{Next, ReadersLimits};
use crate::testing::{Input, gzip, lines, messages_of, multiline, settings};
use skidder_os::Clock;
use skidder_parse::chain::{Chain, Parser};

const A: &str = "/logs/a.log";

/// Lines that every content of a log begins with, longer than a fingerprint.
fn header() -> String {
    lines("# the same header in every file", 0..60)
}

fn with_header(name: &str, count: usize) -> String {
    format!("{}{}", header(), lines(name, 0..count))
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

/// Lines that are none of a header, sorted.
fn own(messages: Vec<String>) -> Vec<String> {
    let mut own: Vec<_> = messages.into_iter().filter(|line| !line.starts_with('#')).collect();
    own.sort();
    own
}

fn sorted(text: &str) -> Vec<String> {
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn the_key_of_a_former_source_tells_what_it_was() {
    let cases = [
        ("filestream::id::fingerprint::00ff.former.3", Some("filestream::id::fingerprint::00ff")),
        ("filestream::id::fingerprint::00ff", None),
        ("filestream::a.former.b::fingerprint::00ff", None),
    ];
    for (key, expected) in cases {
        assert_eq!(of_former(key), expected, "{key}");
    }
}

#[test]
fn a_file_compressed_after_its_name_was_taken_is_read_on() {
    // The scan sees the new file while the compressed one is not yet complete, and only a part was read.
    for case in 0..8 {
        let (in_place, down, open) = (case & 1 > 0, case & 2 > 0, case & 4 > 0);
        let mut settings = settings();
        settings.close.on_eof = !open;
        let limits = ReadersLimits { open_files: 100, decoders: 10 };
        let mut input = Input::with(settings, limits, 100);
        let old = with_header("old", 500);
        let cut = old.find("old 300").expect("it is a line");
        input.fs.write_as_other(A, &old.as_bytes()[..cut]);
        let mut messages = input.round();
        input.fs.append_as_other(A, &old.as_bytes()[cut..]);
        let packed = gzip(old.as_bytes());
        input.fs.write_as_other("/logs/a.log.1.gz", &packed[..12]);
        if in_place {
            input.fs.truncate_as_other(A, 0);
        } else {
            input.fs.remove_as_other(A);
        }
        input.fs.append_as_other(A, with_header("new", 50).as_bytes());
        messages.extend(input.round());
        if down {
            input = input.restarted();
        }
        input.fs.write_as_other("/logs/a.log.1.gz", &packed);
        messages.extend(rounds(&mut input));
        let expected = format!("{}{}", lines("old", 0..500), lines("new", 0..50));
        assert_eq!(own(messages), sorted(&expected), "in place {in_place} down {down} open {open}");
        assert_eq!(input.saved.len(), 2);
        let mut input = input.restarted();
        assert!(rounds(&mut input).is_empty(), "each has a key of its own");
    }
}

#[test]
fn a_copy_of_what_was_truncated_is_read_on() {
    for seen_before in [false, true] {
        let mut input = Input::new();
        let old = with_header("old", 300);
        let cut = old.find("old 100").expect("it is a line");
        input.fs.write_as_other(A, &old.as_bytes()[..cut]);
        let mut messages = input.round();
        input.fs.append_as_other(A, &old.as_bytes()[cut..]);
        if seen_before {
            input.fs.write_as_other("/logs/a.log.1", old.as_bytes());
            input.scan();
        }
        // Longer than before by the next look.
        input.fs.write_as_other(A, with_header("new", 900).as_bytes());
        messages.extend(input.round());
        input.fs.write_as_other("/logs/a.log.1", old.as_bytes());
        messages.extend(rounds(&mut input));
        let expected = format!("{}{}", lines("old", 0..300), lines("new", 0..900));
        assert_eq!(own(messages), sorted(&expected), "seen before: {seen_before}");
    }
}

#[test]
fn a_file_rewritten_again_and_again_is_never_taken_for_what_it_was() {
    // With nothing but the common header read, the bytes before the cursor fit every content.
    let mut input = Input::new();
    let mut messages = Vec::new();
    for round in 0..8 {
        input.fs.write_as_other(A, header().as_bytes());
        messages.extend(input.round());
        input.fs.truncate_as_other(A, 0);
        let name = format!("content {round}");
        input.fs.append_as_other(A, with_header(&name, 3).as_bytes());
        messages.extend(input.round());
    }
    let count = own(messages).len();
    assert_eq!(count, 8 * 3);
    input.fs.remove_as_other(A);
    for _ in 0..40 {
        input.round();
        input.advance(11);
    }
    assert_eq!((input.scan().sources, input.saved.len()), (0, 0), "nothing is kept for ever");
}

#[test]
fn a_source_does_not_read_on_in_what_was_written_over_it_and_is_too_short_to_tell() {
    // Found by the simulated world (seed 20047): a short file was written anew, and shorter; it was a new source, and the
    // reader of the one before had the same file open and read the same lines.
    for in_turn in [false, true] {
        let mut input = Input::new();
        input.fs.write_as_other(A, b"the same beginning");
        input.scan();
        let mut turn = None;
        if in_turn {
            let Next::Turn(begun) = input.readers.next(input.clock.monotonic()) else {
                panic!("there is something to read");
            };
            turn = Some(begun);
        } else {
            assert!(input.read().is_empty());
        }
        input.fs.truncate_as_other(A, 0);
        input.fs.append_as_other(A, b"the same");
        input.scan();
        input.fs.append_as_other(A, b" beginning of a line\n");
        let mut messages = Vec::new();
        if let Some(mut turn) = turn {
            let (batch, end) = turn.run(&mut Scratch::default(), input.clock.wall());
            messages.extend(batch.iter().flat_map(messages_of));
            input.readers.finish(turn, &end, batch.is_some(), input.clock.monotonic());
        }
        for _ in 0..10 {
            messages.extend(input.round());
            input.advance(11);
        }
        assert_eq!(messages, ["the same beginning of a line"], "{in_turn}");
    }
}

#[test]
fn a_group_of_a_deleted_file_is_given_out_before_another_takes_its_place() {
    // Found by the simulated world (containers 101376): of a deleted file with a fingerprint of one byte all was read, and
    // its last line waited for others; a new file that began with this byte took over, and the line was gone.
    let mut settings = settings();
    settings.parsers = Chain::new(vec![Parser::Multiline(multiline())], 20 << 20);
    let mut input = Input::with(settings, ReadersLimits { open_files: 100, decoders: 10 }, 100);
    input.fs.write_as_other(A, b"o");
    let mut messages = input.round();
    input.fs.append_as_other(A, b"ne\n");
    input.fs.remove_as_other(A);
    messages.extend(input.round());
    input.fs.write_as_other(A, b"other\n");
    messages.extend(rounds(&mut input));
    assert_eq!(messages, ["one", "other"]);
}

#[test]
fn an_open_file_that_is_written_anew_under_its_first_bytes_is_not_what_it_grew_to() {
    // Found by the simulated world (pins 6015): its reader knew the first bytes only, and read on in what was written
    // anew; the copy of that was then not known, because the source had the longer fingerprint of what was before.
    let mut input = Input::new();
    input.fs.write_as_other(A, b"begin");
    assert!(input.round().is_empty());
    input.fs.append_as_other(A, b" one\n");
    input.scan();
    input.fs.truncate_as_other(A, 0);
    let two = format!("begin {}", lines("two", 0..5));
    input.fs.append_as_other(A, two.as_bytes());
    let mut messages = input.read();
    input.fs.write_as_other("/logs/a.log.1.gz", &gzip(two.as_bytes()));
    input.fs.truncate_as_other(A, 0);
    let three = format!("begin {}", lines("three", 0..5));
    input.fs.append_as_other(A, three.as_bytes());
    messages.extend(rounds(&mut input));
    messages.sort();
    let text = two + &three;
    let mut expected: Vec<_> = text.lines().collect();
    expected.sort_unstable();
    assert_eq!(messages, expected);
}

#[test]
fn two_names_of_one_file_are_not_two_sources() {
    // Found by the simulated world (seed 218201): one name was known as the copy of what had been there, the other as that
    // of a source with a few bytes of the same beginning.
    let mut input = Input::new();
    let old = format!("the same beginning {}", lines("old", 0..9));
    input.fs.write_as_other(A, old.as_bytes());
    let mut messages = input.round();
    input.fs.write_as_other("/logs/a.log-20260001", old.as_bytes());
    input.fs.truncate_as_other(A, 0);
    input.fs.append_as_other(A, b"the same beginning");
    input.advance(1);
    messages.extend(input.round());
    input.fs.hard_link_as_other("/logs/a.log-20260001", "/logs/a.log-20260001.91");
    input.fs.truncate_as_other(A, 0);
    messages.extend(rounds(&mut input));
    assert_eq!(messages, old.lines().collect::<Vec<_>>());
}

#[test]
fn a_new_file_that_only_begins_as_one_that_is_gone_leaves_it_what_it_was() {
    // Found by the simulated world (pins 1000582): what was known of a removed log was given up for a file that began with
    // the few bytes of it, and its copy, which came a little later, was read again.
    let mut input = Input::new();
    input.fs.write_as_other(A, b"the same line\n");
    let mut messages = input.round();
    input.fs.write_as_other("/elsewhere", b"keeps the inode\n");
    input.fs.rename_as_other(A, "/away");
    input.fs.write_as_other("/logs/b.log", b"the same line\nand another\n");
    messages.extend(input.round());
    assert_eq!(messages, ["the same line", "the same line", "and another"]);
    input.fs.write_as_other("/logs/a.log.1", b"the same line\n");
    assert_eq!(rounds(&mut input), [""; 0]);
}

#[test]
fn a_file_that_the_registry_proves_is_not_one_that_began_with_a_few_bytes_of_it() {
    // Found by the simulated world (disk 220): a log went away and came back after the program had met another one at its
    // path, with the same first bytes, and nothing of that was read.
    let text = lines("the same beginning", 0..100);
    let mut input = Input::new();
    input.fs.write_as_other(A, text.as_bytes());
    let mut messages = input.round();
    input.fs.rename_as_other(A, "/away");
    let mut input = input.restarted();
    input.fs.write_as_other(A, &text.as_bytes()[..20]);
    input.scan();
    input.fs.remove_as_other(A);
    input.scan();
    input.fs.rename_as_other("/away", A);
    messages.extend(rounds(&mut input));
    assert_eq!(messages, text.lines().collect::<Vec<_>>());
}

#[test]
fn what_was_saved_of_a_short_file_is_not_given_to_another_that_only_begins_as_it_does() {
    // Found by the simulated world (2010620): the log was away at the start of the program, and the one at its path was taken
    // for it, rewritten.
    let mut input = Input::new();
    input.fs.write_as_other(A, b"the same line\n");
    input.scan();
    input.fs.append_as_other(A, b"and more\n");
    assert_eq!(input.read(), ["the same line", "and more"]);
    input.fs.rename_as_other(A, "/away");
    input.fs.write_as_other(A, b"the same line\nnew\n");
    let mut input = input.restarted();
    assert_eq!(input.round(), ["the same line", "new"]);
    input.fs.rename_as_other("/away", "/logs/a.log.1");
    assert_eq!(rounds(&mut input), [""; 0]);
}

#[test]
fn another_name_of_a_file_is_not_what_was_at_that_name_before() {
    // Found by the simulated world (pins 9100808): the pinned file came back where another one had been, of which a few
    // bytes were known, with which it began as well.
    let mut input = Input::new();
    input.fs.write_as_other(A, b"the same beg");
    let mut messages = input.round();
    let text = lines("the same beginning", 0..5);
    input.fs.write_as_other("/logs/b.log", text.as_bytes());
    messages.extend(input.round());
    input.fs.remove_as_other(A);
    input.fs.hard_link_as_other("/logs/b.log", A);
    messages.extend(rounds(&mut input));
    assert_eq!(messages, text.lines().collect::<Vec<_>>());
}

#[test]
fn a_whole_compressed_file_is_not_one_of_which_more_was_read_than_it_holds() {
    // Found by the simulated world (pins 9201193): two contents of a log began alike, and the compressed copy of the later
    // one was taken for the one before.
    let mut input = Input::new();
    let [old, new] = [with_header("old", 40), with_header("new", 5)];
    input.fs.write_as_other(A, old.as_bytes());
    assert_eq!(input.round().len(), 100);
    for text in [&new, ""] {
        input.fs.truncate_as_other(A, 0);
        input.fs.append_as_other(A, text.as_bytes());
        if !text.is_empty() {
            assert_eq!(input.round().len(), 65);
        }
    }
    let copy = "/logs/a.log.1.gz";
    input.fs.write_as_other(copy, &gzip(new.as_bytes()));
    input.scan();
    let looks = input.looks(10);
    let look = looks.iter().find(|look| *look.path == *Path::new(copy)).expect("it is there");
    assert_eq!(look.state, FileState::Held, "it waits for the source that is read to its end");
    assert_eq!(rounds(&mut input), [""; 0]);
}
