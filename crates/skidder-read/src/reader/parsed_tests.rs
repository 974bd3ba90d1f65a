//! Turns of a reader whose lines go through parsers, or come from another encoding.

use super::*;
use crate::readers::{Next, ReadersLimits};
use crate::testing::{Input, gzip, lines, messages_of, multiline, settings};
use skidder_decode::encoding::Encoding;
use skidder_decode::lines::LineTerminator;
use skidder_event::DropReason;
use skidder_os::Clock;
use skidder_parse::chain::{Chain, Multiline, Parser};

fn joined(change: impl FnOnce(&mut FilestreamSettings), rows_max: usize) -> Input {
    let mut settings = settings();
    settings.parsers = Chain::new(vec![Parser::Multiline(multiline())], 20 << 20);
    change(&mut settings);
    Input::with(settings, ReadersLimits { open_files: 10, decoders: 10 }, rows_max)
}

fn traces(count: usize) -> (String, Vec<String>) {
    let mut expected = Vec::new();
    for number in 0..count {
        let mut event = format!("Exception {number}");
        for line in 0..number % 7 {
            event += &format!("\n\tat frame {line} of {number}");
        }
        expected.push(event);
    }
    (expected.join("\n") + "\n", expected)
}

#[test]
fn groups_are_the_same_wherever_a_chunk_ends() {
    let (text, expected) = traces(20_000);
    assert!(text.len() > 3 * CHUNK_BYTES);
    for rows_max in [77, 1000, 100_000] {
        let mut plain = joined(|settings| settings.read_once = true, rows_max);
        plain.fs.write_as_other("/logs/a.log", text.as_bytes());
        assert!(plain.round() == expected, "{rows_max}");
        let mut compressed = joined(|_| {}, rows_max);
        compressed.fs.write_as_other("/logs/a.gz", &gzip(text.as_bytes()));
        assert!(compressed.round() == expected, "{rows_max}");
    }
}

#[test]
fn a_group_longer_than_a_chunk_is_read_whole() {
    let long = format!("first\n{}last\n", lines(" of it", 0..100_000));
    let mut input = joined(
        |settings| {
            settings.parsers = Chain::new(
                vec![Parser::Multiline(Multiline { max_lines: 0, ..multiline() })],
                20 << 20,
            );
            settings.read_once = true;
        },
        10,
    );
    input.fs.write_as_other("/logs/a.log", long.as_bytes());
    let messages = input.round();
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0].lines().count(), 100_001);
    assert_eq!(messages[1], "last");
}

#[test]
fn the_cursor_stays_before_an_unfinished_group() {
    let mut input = joined(|_| {}, 10);
    input.fs.append_as_other("/logs/a.log", b"one\n 1\ntwo\n 2\n");
    assert_eq!(input.round(), ["one\n 1"]);
    input.fs.append_as_other("/logs/a.log", b" 3\n");
    let mut input = input.restarted();
    assert!(input.round().is_empty());
    input.fs.append_as_other("/logs/a.log", b" 4\nthree\n");
    assert_eq!(input.round(), ["two\n 2\n 3\n 4"]);
}

#[test]
fn a_group_is_given_out_when_nothing_has_come_for_as_long_as_the_timeout() {
    let mut input = joined(|_| {}, 10);
    input.fs.append_as_other("/logs/a.log", b"one\n 1\n");
    assert!(input.round().is_empty());
    input.advance(4);
    assert!(input.read().is_empty());
    input.fs.append_as_other("/logs/a.log", b" 2\n");
    assert!(input.round().is_empty());
    input.advance(4);
    assert!(input.read().is_empty(), "the wait began anew");
    let now = input.clock.monotonic();
    let wait = input.readers.next(now);
    assert!(
        matches!(wait, crate::Next::Wait(Some(at)) if at.since(now).as_secs() <= 1),
        "the workers know when to look again"
    );
    input.advance(1);
    assert_eq!(input.read(), ["one\n 1\n 2"]);
    assert!(input.restarted().round().is_empty(), "the cursor is behind it");
}

#[test]
fn a_group_waits_since_it_was_read_and_not_since_the_turn_began() {
    let mut input = joined(|_| {}, 10);
    input.fs.append_as_other("/logs/a.log", b"one\n");
    input.scan();
    let Next::Turn(mut turn) = input.readers.next(input.clock.monotonic()) else {
        panic!("a new file has a turn")
    };
    // The turn has begun, and is slow.
    input.advance(4);
    input.fs.append_as_other("/logs/a.log", b" 1\n");
    let (batch, end) = turn.run(&mut Scratch::default(), input.clock.wall());
    input.readers.finish(turn, &end, batch.is_some(), input.clock.monotonic());
    input.advance(4);
    assert!(input.read().is_empty(), "four seconds after it was written");
    input.fs.append_as_other("/logs/a.log", b" 2\n");
    assert!(input.round().is_empty());
    input.advance(5);
    assert_eq!(input.read(), ["one\n 1\n 2"]);
}

#[test]
fn a_closed_file_is_opened_again_for_a_group_that_has_waited_long_enough() {
    let mut settings = settings();
    settings.parsers = Chain::new(vec![Parser::Multiline(multiline())], 20 << 20);
    let mut input = Input::with(settings, ReadersLimits { open_files: 1, decoders: 1 }, 10);
    input.fs.append_as_other("/logs/a.log", b"one\n 1\n");
    input.fs.append_as_other("/logs/b.log", b"two\n 2\n");
    assert!(input.round().is_empty());
    input.advance(5);
    let mut messages = input.read();
    messages.sort();
    assert_eq!(messages, ["one\n 1", "two\n 2"]);
}

#[test]
fn a_group_is_given_out_before_its_file_is_closed_for_good() {
    let never = |settings: &mut FilestreamSettings| {
        let multiline = Multiline { timeout: None, ..multiline() };
        settings.parsers = Chain::new(vec![Parser::Multiline(multiline)], 20 << 20);
    };
    let mut input = joined(never, 10);
    input.fs.append_as_other("/logs/a.log", b"one\n 1\n");
    assert!(input.round().is_empty());
    input.advance(299);
    assert!(input.read().is_empty());
    input.advance(1);
    assert_eq!(input.read(), ["one\n 1"], "close.on_state_change.inactive");

    let mut input = joined(never, 10);
    input.fs.append_as_other("/logs/a.log", b"one\n 1\n");
    input.round();
    input.fs.remove_as_other("/logs/a.log");
    let mut messages = Vec::new();
    for _ in 0..31 {
        messages.extend(input.round());
        input.advance(10);
    }
    assert_eq!(messages, ["one\n 1"], "the file is gone");

    let mut input = joined(
        |settings| {
            never(settings);
            settings.close.on_eof = true;
        },
        10,
    );
    input.fs.append_as_other("/logs/a.log", b"one\n 1\n");
    assert_eq!(input.round(), ["one\n 1"], "close.reader.on_eof");
}

#[test]
fn a_group_goes_on_in_the_file_under_its_new_name() {
    let mut input = joined(|_| {}, 10);
    let head = lines("line", 0..200);
    input.fs.append_as_other("/logs/a.log", format!("{head}one\n 1\n").as_bytes());
    assert_eq!(input.round().len(), 200);
    input.fs.rename_as_other("/logs/a.log", "/logs/a.log.1");
    input.fs.append_as_other("/logs/a.log.1", b" 2\nlast\n");
    input.fs.append_as_other("/logs/a.log", b"new\nnewer\n");
    let mut messages = input.round();
    messages.sort();
    assert_eq!(messages, ["new", "one\n 1\n 2"]);
    // And on in the compressed copy.
    let whole = format!("{head}one\n 1\n 2\nlast\n 3\n");
    input.fs.write_as_other("/logs/a.log.1.gz", &gzip(whole.as_bytes()));
    input.fs.remove_as_other("/logs/a.log.1");
    let mut messages = input.round();
    messages.extend(input.round());
    messages.sort();
    assert_eq!(messages, ["last\n 3"]);
}

#[test]
fn lines_are_counted_as_they_stand_in_the_file() {
    let mut input = joined(|settings| settings.read_once = true, 100);
    input.fs.write_as_other("/logs/a.log", b"one\n 1\n\ntwo\n 2\n");
    input.scan();
    let (batch, _) = input.turn().expect("there is a turn");
    let batch = batch.expect("there are lines");
    assert_eq!(messages_of(&batch), ["one\n 1", "two\n 2"]);
    assert_eq!(batch.drops().get(DropReason::Empty), 1, "a group of one empty line");
    assert_eq!((batch.lines(), input.context.metrics.raw_lines.get()), (3, 5));
    assert_eq!(batch.provenance().file().map(|part| part.range.clone()), Some(0..15));
}

#[test]
fn a_line_that_is_too_long_ends_a_group_and_is_skipped() {
    for length in [401, 300_000] {
        let content = format!("one\n 1\n {}\n 2\ntwo\n", "x".repeat(length));
        let small = |settings: &mut FilestreamSettings| {
            settings.message_max_bytes = 100;
            settings.read_once = true;
        };
        let mut plain = joined(small, 10);
        plain.fs.write_as_other("/logs/a.log", content.as_bytes());
        assert_eq!(plain.round(), ["one\n 1", " 2", "two"], "{length}");
        let mut compressed = joined(small, 10);
        compressed.fs.write_as_other("/logs/a.gz", &gzip(content.as_bytes()));
        assert_eq!(compressed.round(), ["one\n 1", " 2", "two"], "{length}");
    }
}

fn encoded(name: &str, terminator: LineTerminator, content: &[u8]) -> Vec<String> {
    let mut read = Vec::new();
    for compressed in [false, true] {
        let mut settings = settings();
        settings.encoding = Encoding::find(name).expect("a known name");
        settings.line_terminator = terminator;
        let mut input = Input::with(settings, ReadersLimits { open_files: 10, decoders: 10 }, 2);
        if compressed {
            input.fs.write_as_other("/logs/a.gz", &gzip(content));
        } else {
            input.fs.write_as_other("/logs/a.log", content);
        }
        read.push(input.round());
        let mut input = input.restarted();
        assert!(input.round().is_empty(), "the cursor is at the end");
    }
    assert_eq!(read[0], read[1]);
    read.swap_remove(0)
}

#[test]
fn lines_are_read_in_other_encodings() {
    let utf16 =
        |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    // U+0A0A, U+0D0A and U+0A00 hold the byte of a line feed.
    let text = "\u{feff}one \u{a0a}\u{d0a}\u{a00}\r\ntwo\n\nthree\u{1f600}\n4\n5\n";
    let expected = ["one \u{a0a}\u{d0a}\u{a00}", "two", "three\u{1f600}", "4", "5"];
    assert_eq!(encoded("utf-16-bom", LineTerminator::Auto, &utf16(text)), expected);
    assert_eq!(encoded("utf-16le", LineTerminator::Auto, &utf16(text)), expected);
    let latin = b"caf\xe9\nna\xefve\r\n";
    assert_eq!(encoded("iso8859-1", LineTerminator::Auto, latin), ["caf\u{e9}", "na\u{ef}ve"]);
    for name in ["utf-8", "plain"] {
        assert_eq!(encoded(name, LineTerminator::Auto, b"\xef\xbb\xbfa\nb\n"), ["a", "b"]);
        assert_eq!(encoded(name, LineTerminator::Auto, b"\xef\xbb\xbf\r\nb\n"), ["b"]);
    }
}

#[test]
fn lines_end_at_other_terminators() {
    let null = encoded("plain", LineTerminator::NullTerminator, b"one\nmore\0\0two\0");
    assert_eq!(null, ["one\nmore", "two"]);
    let feed = encoded("plain", LineTerminator::LineFeed, b"one\r\ntwo\n");
    assert_eq!(feed, ["one\r", "two"]);
    let separator =
        encoded("plain", LineTerminator::LineSeparator, "a\nb\u{2028}c\u{2028}".as_bytes());
    assert_eq!(separator, ["a\nb", "c"]);
}

#[test]
fn a_long_line_is_skipped_up_to_its_terminator_in_any_encoding() {
    let mut settings = settings();
    settings.encoding = Encoding::find("utf-16le").expect("a known name");
    settings.line_terminator = LineTerminator::CarriageReturnLineFeed;
    settings.message_max_bytes = 100;
    let text = format!("one\r\n{}\u{d0a}\r\ntwo\r\n", "\u{a0d}".repeat(300_001));
    let content: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (path, bytes) in [("/logs/a.log", content.clone()), ("/logs/a.gz", gzip(&content))] {
        let mut input =
            Input::with(settings.clone(), ReadersLimits { open_files: 10, decoders: 10 }, 10);
        input.fs.write_as_other(path, &bytes);
        assert_eq!(input.round(), ["one", "two"]);
    }
}

#[test]
fn a_file_too_short_for_its_byte_order_mark_waits() {
    let mut settings = settings();
    settings.encoding = Encoding::find("utf-16-bom").expect("a known name");
    let mut input = Input::with(settings, ReadersLimits { open_files: 10, decoders: 10 }, 10);
    input.fs.append_as_other("/logs/a.log", b"\xfe");
    assert!(input.round().is_empty());
    input.fs.append_as_other("/logs/a.log", b"\xff\0a\0\n");
    assert_eq!(input.round(), ["a"]);
}

#[test]
fn a_file_rewritten_between_two_turns_is_not_mixed_up_with_what_parsers_have_read_of_it() {
    // Found by the simulated world: only the way without parsers looked at the bytes before the cursor.
    let mut input = joined(|_| {}, 100);
    input.fs.write_as_other("/logs/a.log", lines("old", 0..90_000).as_bytes());
    input.scan();
    input.turn().expect("there is a turn");
    input.fs.write_as_other("/logs/a.log", lines("new", 0..200_000).as_bytes());
    let (batch, end) = input.turn().expect("there is another");
    assert!(batch.is_none() && matches!(end, TurnEnd::Rewritten), "{end:?}");
}

#[test]
fn a_compressed_file_that_takes_the_place_of_another_is_not_read_by_parsers_in_its_stead() {
    let mut input = joined(|_| {}, 10);
    input.fs.write_as_other("/logs/a.log.gz", &gzip(lines("old", 0..5).as_bytes()));
    input.scan();
    input.fs.remove_as_other("/logs/a.log.gz");
    input.fs.write_as_other("/logs/a.log.gz", &gzip(lines("new", 0..7).as_bytes()));
    let (batch, end) = input.turn().unwrap();
    assert!(batch.is_none() && matches!(end, TurnEnd::Rewritten), "{end:?}");
}

#[test]
fn a_group_that_has_waited_long_enough_in_a_file_that_was_rewritten_asks_for_no_turn_after_turn() {
    let mut input = joined(|_| {}, 10);
    input.fs.write_as_other("/logs/a.log", lines("old", 0..9).as_bytes());
    assert_eq!(input.round().len(), 8, "the last one may go on");
    input.fs.write_as_other("/logs/a.log", lines("new", 0..90).as_bytes());
    input.advance(60);
    let (_, end) = input.turn().expect("its time is over");
    assert!(matches!(end, TurnEnd::Rewritten), "{end:?}");
    assert!(input.turn().is_none(), "the scan has to look first");
    assert_eq!(input.round().len(), 89);
}

#[test]
fn what_is_written_while_a_file_is_about_to_be_closed_has_time_to_be_complete() {
    // Found by the simulated world (seed 116717): the groups of a file that had been idle for long were given out before
    // it was closed, and with them one that had begun a moment ago.
    let idle = Duration::from_secs(3);
    let mut input = joined(|settings| settings.close.inactive = Some(idle), 100);
    input.fs.write_as_other("/logs/a.log", b"one\n 1\n");
    assert!(input.round().is_empty());
    input.fs.append_as_other("/logs/a.log", b"two\n 2");
    input.advance(4);
    assert_eq!(input.read(), ["one\n 1"]);
    input.fs.append_as_other("/logs/a.log", b"\n");
    input.advance(1);
    let mut messages = input.round();
    for _ in 0..4 {
        input.advance(4);
        messages.extend(input.round());
    }
    assert_eq!(messages, ["two\n 2"]);
}
