//! Turns of one reader over files of all kinds.

use super::*;
use crate::readers::ReadersLimits;
use crate::testing::{Input, gzip, lines, messages_of, multiline, settings};
use regex::bytes::Regex;
use skidder_event::DropReason;
use skidder_parse::chain::{Chain, Parser};
use std::io::Write as _;

fn with(change: impl FnOnce(&mut FilestreamSettings), rows_max: usize) -> Input {
    let mut settings = settings();
    change(&mut settings);
    Input::with(settings, ReadersLimits { open_files: 10, decoders: 10 }, rows_max)
}

/// A plain and a compressed file must give the same lines.
fn both(content: &[u8], change: impl Fn(&mut FilestreamSettings), rows_max: usize) -> Vec<String> {
    let mut plain = with(&change, rows_max);
    plain.fs.write_as_other("/logs/a.log", content);
    let messages = plain.round();
    let mut compressed = with(&change, rows_max);
    compressed.fs.write_as_other("/logs/a.gz", &gzip(content));
    assert_eq!(compressed.round(), messages);
    messages
}

#[test]
fn lines_are_the_same_wherever_a_chunk_ends() {
    // Lines that straddle the ends of chunks at every offset around them, with both terminators.
    for shift in [0, 1, 5, 10, 11] {
        let mut content = vec![b'.'; shift];
        content.push(b'\n');
        while content.len() < CHUNK_BYTES + 20_000 {
            content.extend_from_slice(b"0123456789\r\n");
        }
        let expected = content.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let expected: Vec<String> = expected
            .map(|line| String::from_utf8_lossy(line).trim_end_matches('\r').to_owned())
            .collect();
        assert_eq!(both(&content, |_| {}, 3000), expected);
    }
}

#[test]
fn any_number_of_rows_a_batch_gives_the_same_lines() {
    let content = lines("line", 0..50);
    let expected: Vec<&str> = content.lines().collect();
    for rows_max in [1, 2, 3, 7, 49, 50, 51] {
        assert_eq!(both(content.as_bytes(), |_| {}, rows_max), expected, "{rows_max}");
    }
}

#[test]
fn a_short_rest_at_the_end_of_a_file_takes_no_turn_of_its_own() {
    for (count, expected) in [(12, vec![12]), (13, vec![12, 1])] {
        let content = lines("line", 0..count);
        for (path, bytes) in [
            ("/logs/a.log", content.clone().into_bytes()),
            ("/logs/a.gz", gzip(content.as_bytes())),
        ] {
            let mut input = with(|_| {}, 8);
            input.fs.write_as_other(path, &bytes);
            input.scan();
            let mut sizes = Vec::new();
            while let Some((batch, _)) = input.turn() {
                sizes.extend(batch.map(|batch| batch.len()));
            }
            assert_eq!(sizes, expected, "{path}");
        }
    }
}

#[test]
fn long_lines_are_cut_and_flagged_and_longer_ones_skipped_and_counted() {
    let mut input = with(|settings| settings.message_max_bytes = 100, 10);
    let content = format!("{}\u{e9}b\n{}\nlast\n", "a".repeat(99), "c".repeat(300_000));
    input.fs.write_as_other("/logs/a.log", content.as_bytes());
    input.scan();
    let (mut messages, mut dropped, mut bytes) = (Vec::new(), 0, 0);
    while let Some((batch, _)) = input.turn() {
        if let Some(batch) = batch {
            messages.extend(messages_of(&batch));
            dropped += batch.drops().get(DropReason::LineTooLong);
            let part = batch.provenance().file().expect("it is of a file");
            assert_eq!(part.range.start, bytes, "ranges follow each other");
            bytes = part.range.end;
        }
    }
    assert_eq!(messages, ["a".repeat(99), "last".to_owned()], "no half character");
    assert_eq!((dropped, bytes), (1, content.len() as u64));
    assert_eq!(input.context.metrics.truncated.get(), 1);
}

#[test]
fn a_line_of_exactly_the_bound_is_cut_and_one_byte_more_skipped() {
    for (length, expected) in [(400, 2), (401, 1), (300_000, 1)] {
        let content = format!("{}\nend\n", "x".repeat(length));
        let messages = both(content.as_bytes(), |settings| settings.message_max_bytes = 100, 10);
        assert_eq!(messages.len(), expected, "{length}");
    }
}

#[test]
fn lines_left_over_from_a_batch_survive_a_long_line_behind_them() {
    // Found by the simulated world: in a compressed file they were skipped together with it.
    let content = format!("{}{}\nlast\n", lines("line", 0..5), "x".repeat(400_000));
    let messages = both(content.as_bytes(), |settings| settings.message_max_bytes = 100, 1);
    assert_eq!(messages, ["line 0", "line 1", "line 2", "line 3", "line 4", "last"]);
}

#[test]
fn lines_behind_a_skipped_one_are_read_at_once() {
    let content = format!("{}\none\ntwo\n", "x".repeat(300_000));
    let close = |settings: &mut FilestreamSettings| {
        settings.message_max_bytes = 100;
        settings.close.on_eof = true;
    };
    assert_eq!(both(content.as_bytes(), close, 10), ["one", "two"]);
}

#[test]
fn lines_are_filtered_and_empty_ones_counted() {
    let regex = |text: &str| Regex::new(text).expect("a good pattern");
    let mut input = with(
        |settings| {
            settings.include_lines = vec![regex("^a"), regex("^b")];
            settings.exclude_lines = vec![regex("x$")];
        },
        10,
    );
    input.fs.write_as_other("/logs/a.log", b"a1\n\nax\nb1\r\n\r\nc1\n");
    input.scan();
    let (batch, _) = input.turn().expect("there is a turn");
    let batch = batch.expect("there are lines");
    assert_eq!(messages_of(&batch), ["a1", "b1"]);
    assert_eq!(batch.drops().get(DropReason::Empty), 2);
    assert_eq!(batch.drops().get(DropReason::LineFilter), 2);
    assert_eq!(batch.lines(), 6);
}

#[test]
fn half_a_line_waits_for_its_end() {
    let mut input = Input::new();
    input.fs.append_as_other("/logs/a.log", b"one\nha");
    assert_eq!(input.round(), ["one"]);
    input.fs.append_as_other("/logs/a.log", b"lf");
    assert!(input.round().is_empty());
    input.fs.append_as_other("/logs/a.log", b"\ntwo\n");
    assert_eq!(input.round(), ["half", "two"]);
}

#[test]
fn the_last_line_of_a_finished_compressed_file_needs_no_line_feed() {
    let mut input = Input::new();
    input.fs.write_as_other("/logs/a.gz", &gzip(b"one\ntwo"));
    input.scan();
    let mut eof = false;
    let mut messages = Vec::new();
    while let Some((batch, _)) = input.turn() {
        if let Some(batch) = batch {
            eof = batch.provenance().file().is_some_and(|part| part.end_of_file);
            messages.extend(messages_of(&batch));
        }
    }
    assert_eq!(messages, ["one", "two"]);
    assert!(eof);
    assert!(input.restarted().round().is_empty());
}

#[test]
fn a_growing_compressed_file_is_read_as_far_as_it_goes() {
    let mut input = Input::new();
    let content = (0..60_000_u32).fold(String::new(), |mut text, number| {
        text += &format!("{} {number}\n", number.wrapping_mul(2_654_435_761));
        text
    });
    let whole = gzip(content.as_bytes());
    let mut messages = Vec::new();
    for piece in whole.chunks(whole.len() / 7 + 1) {
        input.fs.append_as_other("/logs/a.gz", piece);
        input.advance(61);
        messages.extend(input.round());
    }
    assert!(messages.iter().map(String::as_str).eq(content.lines()));
}

#[test]
fn everything_before_the_damage_is_read_and_the_damage_told_once() {
    let content = lines("some line with a number", 0..40_000);
    let mut bytes = gzip(content.as_bytes());
    let half = bytes.len() / 2;
    bytes[half..half + 64].fill(0xff);
    let mut input = with(|_| {}, 10);
    input.fs.write_as_other("/logs/a.gz", &bytes);
    let messages = input.round();
    // Damage may look like data for a while.
    let good = messages.iter().zip(content.lines()).take_while(|(read, line)| read == line);
    assert!(good.count() > 15_000, "{} lines", messages.len());
    assert_eq!(input.context.metrics.gzip_errors.get(), 1);
    assert!(input.round().is_empty());
    assert_eq!(input.context.metrics.gzip_errors.get(), 1);
}

#[test]
fn a_file_rewritten_between_two_turns_is_not_mixed_up() {
    let mut input = with(|_| {}, 100);
    input.fs.write_as_other("/logs/a.log", lines("old", 0..90_000).as_bytes());
    input.scan();
    input.turn().expect("there is a turn");
    input.fs.write_as_other("/logs/a.log", lines("new", 0..200_000).as_bytes());
    let (batch, end) = input.turn().expect("there is another");
    assert!(batch.is_none() && matches!(end, TurnEnd::Rewritten), "{end:?}");
    let messages = input.round();
    assert_eq!(messages.len(), 200_000);
    assert_eq!(messages[0], "new 0");
}

#[test]
fn a_compressed_file_with_other_bytes_before_the_cursor_is_read_anew() {
    let head = lines("the same beginning of both files", 0..60);
    let one = format!("{head}{}", lines("one", 0..2000));
    let other = format!("{head}{}", lines("other", 0..5000));
    let mut input = Input::new();
    input.fs.write_as_other("/logs/a.log", one.as_bytes());
    assert_eq!(input.round().len(), 2060);
    let mut input = input.restarted();
    // Another file was compressed over the name.
    input.fs.remove_as_other("/logs/a.log");
    input.fs.write_as_other("/logs/a.log.1.gz", &gzip(other.as_bytes()));
    let mut messages = input.round();
    messages.extend(input.round());
    assert_eq!(messages.len(), 5060);
    assert_eq!(messages.last().map(String::as_str), Some("other 4999"));
}

#[test]
fn another_compressed_file_with_the_inode_of_one_that_was_not_read_yet_is_not_read_in_its_place() {
    // Found by the simulated world (seed 3382): names and inodes are used again while a file waits for its
    // first turn, and of a compressed file nothing else was looked at.
    let mut input = with(|_| {}, 10);
    input.fs.write_as_other("/logs/a.log.gz", &gzip(lines("old", 0..5).as_bytes()));
    input.scan();
    input.fs.remove_as_other("/logs/a.log.gz");
    input.fs.write_as_other("/logs/a.log.gz", &gzip(lines("new", 0..7).as_bytes()));
    let (batch, end) = input.turn().unwrap();
    assert!(matches!(end, TurnEnd::Rewritten), "{end:?}");
    assert!(batch.is_none());
    let new = lines("new", 0..7);
    assert_eq!(input.round(), new.lines().collect::<Vec<_>>());
}

#[test]
fn the_first_byte_of_a_compressed_file_is_not_text() {
    // Found by the simulated world (seed 4249): one byte is too little to be known as gzip; a plain source
    // was made of it, which gave out compressed bytes when there were more of them.
    let mut input = with(|_| {}, 10);
    let whole = gzip(lines("line", 0..5).as_bytes());
    for begun in 1..3 {
        input.fs.write_as_other("/logs/a.log.gz", &whole[..begun]);
        input.scan();
        input.fs.write_as_other("/logs/a.log.gz", &whole);
        assert!(input.turn().is_none(), "{begun}");
    }
    assert_eq!(input.round(), lines("line", 0..5).lines().collect::<Vec<_>>());
}

#[test]
fn a_short_batch_proves_as_much_as_a_long_one() {
    // Found by the simulated world: the cursor stood behind an empty line, which another log with the same header had as
    // well, and that was read on from there.
    let header = format!("# {}\n", "h".repeat(1200));
    for more in [0, 10, 100] {
        let mut input = with(|settings| settings.close.on_eof = true, 10);
        let first = |name: &str| format!("{header}{}", lines(name, 0..1));
        input.fs.write_as_other("/logs/a.log", first("one").as_bytes());
        input.round();
        for number in 0..more {
            input.fs.append_as_other("/logs/a.log", lines("one", number..number + 1).as_bytes());
            assert_eq!(input.round().len(), 1);
        }
        for _ in 0..200 {
            input.fs.append_as_other("/logs/a.log", b"\n");
            assert!(input.round().is_empty());
        }
        input.fs.remove_as_other("/logs/a.log");
        let other = format!("{}{}{}end\n", first("two"), lines("two", 0..more), "\n".repeat(200));
        input.fs.write_as_other("/logs/b.log", other.as_bytes());
        let messages = input.round();
        let expected = other.lines().filter(|line| !line.is_empty()).collect::<Vec<_>>();
        assert!(messages == expected, "{more}: {} of {} lines", messages.len(), expected.len());
    }
}

/// Bytes that a carry may hold: what one turn decodes at most, and a line behind it.
const CARRY_BYTES_MAX: usize = CHUNK_BYTES + 5000;

/// A file of every codec, and the plain one.
fn packed(text: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let mut zstd = Vec::with_capacity(zstd_safe::compress_bound(text.len()));
    zstd_safe::compress(&mut zstd, text, 1).unwrap();
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::new(1));
    bzip2.write_all(text).unwrap();
    let options = lzma_rust2::XzOptions::with_preset(0);
    let mut xz = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    xz.write_all(text).unwrap();
    let mut lz4 = lz4_flex::frame::FrameEncoder::new(Vec::new());
    lz4.write_all(text).unwrap();
    vec![
        ("log", text.to_vec()),
        ("gz", gzip(text)),
        ("zst", zstd),
        ("bz2", bzip2.finish().unwrap()),
        ("xz", xz.finish().unwrap()),
        ("lz4", lz4.finish().unwrap()),
    ]
}

#[test]
fn lines_of_every_length_are_read_copied_and_kept_in_proportion_in_every_codec() {
    use super::carry::watched;
    for bytes in [1, 11, 40, 240, 4000] {
        let line = format!("{}\n", "x".repeat(bytes));
        let lines = (600_000 / line.len()).min(60_000);
        let text = line.repeat(lines);
        for (end, file) in packed(text.as_bytes()) {
            // Queues of 256 and 3200 events.
            for (rows_max, parsed) in [(64, false), (64, true), (800, false), (800, true)] {
                let mut input = with(
                    |settings| {
                        if parsed {
                            settings.parsers =
                                Chain::new(vec![Parser::Multiline(multiline())], 20 << 20);
                        }
                    },
                    rows_max,
                );
                input.fs.write_as_other(format!("/logs/a.{end}"), &file);
                watched::take();
                let case = format!("{end}, {bytes} bytes, {rows_max} rows, parsers: {parsed}");
                // The last group of a plain file waits: it may go on.
                let waiting = usize::from(end == "log" && parsed);
                assert_eq!(input.round().len(), lines - waiting, "{case}");
                let (read, copied, held) = watched::take();
                let of = text.len();
                // Of a plain file what no batch has room for is read again.
                let read_max = if end == "log" {
                    2 * of + (lines / rows_max + 1) * PLAIN_BYTES_MIN + CHUNK_BYTES
                } else {
                    of
                };
                assert!(read <= read_max, "{case}: {read} of {of} read");
                assert!(copied <= 4 * of, "{case}: {copied} of {of} copied");
                assert!(held <= CARRY_BYTES_MAX, "{case}: {held} bytes held");
            }
        }
    }
}
