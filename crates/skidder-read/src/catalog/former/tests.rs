//! Files that are rewritten under a beginning that they keep, and what they held before.

use super::*;
use crate::readers::ReadersLimits;
use crate::testing::{Input, gzip, lines, settings};

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
