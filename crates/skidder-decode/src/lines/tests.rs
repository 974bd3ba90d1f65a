//! Every terminator in every encoding, whole and in pieces.

use super::*;
use LineTerminator::{
    Auto, CarriageReturnLineFeed, LineFeed, LineSeparator, NextLine, ParagraphSeparator,
};

fn splitter(terminator: LineTerminator, encoding: &str) -> Splitter {
    let encoding = Encoding::find(encoding).unwrap().fixed().unwrap();
    Splitter::new(terminator, encoding).unwrap()
}

fn split(bytes: &[u8], splitter: Splitter) -> (Vec<&[u8]>, usize) {
    let mut lines = Vec::new();
    let mut expected_start = 0;
    let consumed = splitter.split(bytes, |start, end, next| {
        assert_eq!(start, expected_start);
        expected_start = next;
        lines.push(&bytes[start..end]);
    });
    assert_eq!(consumed, expected_start);
    (lines, consumed)
}

/// The text in an encoding.
fn encoded(text: &str, encoding: &str) -> Vec<u8> {
    let encoding = Encoding::find(encoding).unwrap().fixed().unwrap();
    text.chars().flat_map(|character| encoding.encode(character).unwrap()).collect()
}

#[test]
fn lines_end_at_line_feeds() {
    type Case = (&'static [u8], &'static [&'static [u8]], usize);
    let cases: &[Case] = &[
        (b"one\ntwo\n", &[b"one", b"two"], 8),
        (b"one\r\ntwo\r\n", &[b"one", b"two"], 10),
        (b"\n\r\n\n", &[b"", b"", b""], 4),
        (b"a\rb\r\r\n", &[b"a\rb\r"], 6),
        (b"one\ntwo", &[b"one"], 4),
        (b"one\r", &[], 0),
        (b"\r", &[], 0),
        (b"", &[], 0),
    ];
    for (bytes, expected, consumed) in cases {
        assert_eq!(split(bytes, Splitter::default()), (expected.to_vec(), *consumed));
    }
}

#[test]
fn a_carriage_return_stays_if_only_line_feeds_are_asked_for() {
    let found = split(b"one\r\n\r\n", splitter(LineFeed, "plain")).0;
    assert_eq!(found, [&b"one\r"[..], b"\r"]);
}

#[test]
fn every_terminator_ends_lines_in_every_encoding_that_has_it() {
    for encoding in Encoding::names() {
        let Some(fixed) = Encoding::find(encoding).unwrap().fixed() else { continue };
        for name in LineTerminator::names() {
            let terminator = LineTerminator::find(name).unwrap();
            assert_eq!(terminator.name(), name);
            let Some(splitter) = Splitter::new(terminator, fixed) else {
                assert!(matches!(name, "next_line" | "line_separator" | "paragraph_separator"));
                continue;
            };
            let (one, two) = (encoded("(one  two) 3", encoding), encoded("four", encoding));
            let end = encoded(terminator.characters(), encoding);
            let bytes = [&one[..], &end, &two, &end, &end, &one].concat();
            let (lines, consumed) = split(&bytes, splitter);
            assert_eq!(lines, [&one[..], &two, b""], "{encoding} {name}");
            assert_eq!(consumed, bytes.len() - one.len(), "{encoding} {name}");
            for from in 0..bytes.len() {
                let first = [one.len() + end.len(), bytes.len() - one.len() - end.len()];
                let all = [first[0], first[1], bytes.len() - one.len()];
                let expected = all.into_iter().find(|next| *next > from);
                assert_eq!(splitter.find(&bytes, from), expected, "{encoding} {name} from {from}");
            }
        }
    }
}

#[test]
fn a_terminator_that_an_encoding_does_not_have_is_refused() {
    let exists = |terminator: LineTerminator, encoding: &str| {
        terminator.exists_in(Encoding::find(encoding).unwrap())
    };
    assert!(!exists(NextLine, "windows1252") && exists(NextLine, "iso8859-1"));
    assert!(exists(NextLine, "ebcdic-1047") && !exists(LineSeparator, "ebcdic-1047"));
    assert!(exists(ParagraphSeparator, "utf-16-bom") && exists(LineSeparator, "gb18030"));
    assert!(!exists(LineSeparator, "gbk") && !exists(LineSeparator, "iso-2022-jp"));
}

#[test]
fn terminators_of_utf_16_are_found_only_where_a_unit_begins() {
    // U+0A0D, U+0D00 and U+000A next to each other, in both orders.
    let text = "\u{a0d}\u{d00}\u{a00}\u{100a}\r\nx\u{a}";
    for encoding in ["utf-16le", "utf-16be"] {
        let bytes = encoded(text, encoding);
        let expected = [encoded("\u{a0d}\u{d00}\u{a00}\u{100a}", encoding), encoded("x", encoding)];
        assert_eq!(split(&bytes, splitter(Auto, encoding)).0, expected, "{encoding}");
    }
}

#[test]
fn terminators_of_gb18030_are_found_only_where_a_character_begins() {
    let separator = encoded("\u{2028}", "gb18030");
    // The second byte of a character and the digit behind it look like the beginning of the separator.
    let hidden = [&[0xb0, separator[0]][..], &separator[1..2], &[separator[2], separator[3]]];
    let bytes = [&hidden.concat()[..], b"2345", &separator].concat();
    let (lines, consumed) = split(&bytes, splitter(LineSeparator, "gb18030"));
    assert_eq!((lines.len(), consumed), (1, bytes.len()));
}

#[test]
fn pieces_give_the_same_lines_as_the_whole() {
    let text = "first line\r\n\n\r\n\rthird\nlast\r\nrest";
    for encoding in ["plain", "utf-16le", "utf-16be", "ebcdic-037"] {
        let bytes = encoded(text, encoding);
        let splitter = splitter(Auto, encoding);
        let whole = split(&bytes, splitter).0;
        for cut in 0..=bytes.len() {
            let (mut found, consumed) = split(&bytes[..cut], splitter);
            found.extend(split(&bytes[consumed..], splitter).0);
            assert_eq!(found, whole, "cut at {cut}");
        }
    }
}

#[test]
fn what_may_be_thrown_away_hides_no_terminator() {
    for (terminator, encoding) in
        [(Auto, "plain"), (CarriageReturnLineFeed, "utf-16le"), (NextLine, "utf-8")]
    {
        let splitter = splitter(terminator, encoding);
        let end = encoded(terminator.characters(), encoding);
        let bytes = [encoded("long line", encoding), end].concat();
        for cut in 0..bytes.len() {
            if splitter.find(&bytes[..cut], 0).is_some() {
                continue;
            }
            let away = splitter.discardable(cut);
            assert!(away <= cut && cut - away <= TERMINATOR_BYTES_MAX);
            assert_eq!(splitter.find(&bytes[away..], 0), Some(bytes.len() - away), "{encoding}");
        }
    }
}
