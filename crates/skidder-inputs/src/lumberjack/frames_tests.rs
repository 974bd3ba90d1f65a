//! Windows that are made, cut, compressed and damaged.

use super::*;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use skidder_testkit::Random;
use std::io::Write as _;

pub(in super::super) fn json_frame(number: u32, text: &[u8]) -> Vec<u8> {
    let mut out = b"2J".to_vec();
    out.extend(number.to_be_bytes());
    out.extend((text.len() as u32).to_be_bytes());
    out.extend(text);
    out
}

pub(in super::super) fn window_frame(version: u8, events: u32) -> Vec<u8> {
    let mut out = vec![version, b'W'];
    out.extend(events.to_be_bytes());
    out
}

pub(in super::super) fn compressed_frame(version: u8, plain: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(plain).unwrap();
    let bytes = encoder.finish().unwrap();
    let mut out = vec![version, b'C'];
    out.extend((bytes.len() as u32).to_be_bytes());
    out.extend(bytes);
    out
}

pub(in super::super) fn pairs_frame(number: u32, pairs: &[(&str, &str)]) -> Vec<u8> {
    let mut out = b"1D".to_vec();
    out.extend(number.to_be_bytes());
    out.extend((pairs.len() as u32).to_be_bytes());
    for text in pairs.iter().flat_map(|(name, text)| [name, text]) {
        out.extend((text.len() as u32).to_be_bytes());
        out.extend(text.as_bytes());
    }
    out
}

/// Reads bytes that come in pieces; returns the texts of each window and the number of its last event.
fn read(pieces: &[&[u8]], limit: usize) -> Result<Vec<(Vec<String>, u32)>, FrameError> {
    let mut frames = Frames::new(&[Version::One, Version::Two], limit);
    let mut events = Events::default();
    let (mut windows, mut texts, mut buffer) = (Vec::new(), Vec::new(), Vec::new());
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            let (used, step) = frames.read(&buffer, &mut events)?;
            buffer.drain(..used);
            if matches!(step, Step::Full | Step::End(_)) {
                let Events { bytes, rows } = std::mem::take(&mut events);
                let text = |row: &Row| {
                    let start = row.message.start as usize;
                    let text = bytes[start..start + row.message.len as usize].to_vec();
                    String::from_utf8(text).unwrap()
                };
                texts.extend(rows.iter().map(text));
            }
            match step {
                Step::More => break,
                Step::Begin => assert!(texts.is_empty()),
                Step::Full => {}
                Step::End(number) => windows.push((std::mem::take(&mut texts), number)),
            }
        }
    }
    assert!(buffer.is_empty() && !frames.is_in_window(), "all was read");
    Ok(windows)
}

#[test]
fn windows_come_out_as_they_went_in_however_their_bytes_are_cut_and_compressed() {
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let version = if random.one_in(2) { b'1' } else { b'2' };
        let mut expected = Vec::new();
        let mut bytes = Vec::new();
        for _ in 0..=random.below(3) {
            let most = if random.one_in(10) { 5000 } else { 40 };
            let count = 1 + random.below(most) as u32;
            bytes.extend(window_frame(version, count));
            let mut texts = Vec::new();
            let mut group = Vec::new();
            for number in 1..=count {
                let long = if random.one_in(500) { random.below(100_000) } else { 0 };
                let text = format!("{number} {}", "é".repeat(long as usize));
                if version == b'2' {
                    group.extend(json_frame(number, text.as_bytes()));
                    texts.push(text);
                } else {
                    group.extend(pairs_frame(
                        number,
                        &[("line", "x"), ("a\"", &text), ("line", &text)],
                    ));
                    texts.push(format!("{{\"line\":\"{text}\",\"a\\\"\":\"{text}\"}}"));
                }
                if random.one_in(30) || number == count {
                    let group = std::mem::take(&mut group);
                    bytes.extend(if random.one_in(2) {
                        group
                    } else {
                        compressed_frame(version, &group)
                    });
                }
            }
            expected.push((texts, count));
            if random.one_in(5) {
                // Nothing in it: no answer, as in go-lumber.
                bytes.extend(window_frame(version, 0));
            }
        }
        let mut pieces = Vec::new();
        let mut rest = &bytes[..];
        let most = if random.one_in(3) { 7 } else { 50_000 };
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(rest.len().min(1 + random.below(most) as usize));
            pieces.push(piece);
            rest = behind;
        }
        assert_eq!(read(&pieces, 1 << 20).unwrap(), expected, "seed {seed}");
    }
}

#[test]
fn a_client_that_does_not_number_its_events_gets_their_count() {
    let bytes = [window_frame(b'2', 2), json_frame(0, b"{}"), json_frame(0, b"{}")].concat();
    assert_eq!(read(&[&bytes], 100).unwrap()[0].1, 2);
    // Those of the library of logstash-forwarder go on from window to window.
    let bytes = [window_frame(b'1', 1), pairs_frame(77, &[])].concat();
    assert_eq!(read(&[&bytes], 100).unwrap(), [(vec!["{}".to_owned()], 77)]);
}

#[test]
fn the_client_of_logstash_sends_json_in_version_1() {
    let mut event = json_frame(8, b"{\"a\":1}");
    event[0] = b'1';
    let bytes = [window_frame(b'1', 1), compressed_frame(b'1', &event)].concat();
    assert_eq!(read(&[&bytes], 100).unwrap(), [(vec!["{\"a\":1}".to_owned()], 8)]);
}

#[test]
fn what_is_wrong_is_named() {
    let window = window_frame(b'2', 2);
    let event = json_frame(1, b"{}");
    let compressed = compressed_frame(b'2', &[&event[..], &event].concat());
    let mut damaged = compressed.clone();
    *damaged.last_mut().unwrap() ^= 1;
    let mut cut = compressed_frame(b'2', &[&event[..], &event].concat());
    let length = cut.len() as u32 - 6 - 5;
    cut[2..6].copy_from_slice(&length.to_be_bytes());
    let three = compressed_frame(b'2', &event.repeat(3));
    let within = compressed_frame(b'2', &event[..7]);
    let nested = compressed_frame(b'2', &compressed);
    for (bytes, expected) in [
        (b"GET / HTTP/1.1\r\n".to_vec(), "it begins with `G`, which is no version of Lumberjack"),
        (b"\x16\x03\x01".to_vec(), "it begins with the byte 0x16"),
        (b"2J".to_vec(), "a frame of the type `J` where `W`, the begin of a window, was expected"),
        ([&window[..], b"1D"].concat(), "a frame begins with `1` where version 2 is spoken"),
        ([&window[..], b"2D"].concat(), "type `D` where `J`"),
        ([&window[..], b"2W"].concat(), "type `W` where `J`"),
        (
            [&window[..], &json_frame(1, &[b'x'; 200])].concat(),
            "an event of 200 bytes; `max_message_size` is 100",
        ),
        ([&window[..], &damaged].concat(), "a compressed frame is damaged"),
        ([&window[..], &cut, b"2J"].concat(), "a compressed frame is damaged"),
        ([&window[..], &three].concat(), "more than the events of its window"),
        ([&window[..], &within].concat(), "it ends within an event"),
        ([&window[..], &nested].concat(), "type `C` where `J`"),
    ] {
        let error = read(&[&bytes], 100).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
    let mut frames = Frames::new(&[Version::Two], 100);
    let error = frames.read(&window_frame(b'1', 1), &mut Events::default()).unwrap_err();
    assert!(error.to_string().contains("not among `versions`"), "{error}");
}

#[test]
fn pairs_that_never_end_are_refused_and_looked_at_once() {
    let mut bytes = [window_frame(b'1', 1), b"1D\0\0\0\x01\xff\xff\xff\xff".to_vec()].concat();
    bytes.resize(1 << 20, 0);
    let mut frames = Frames::new(&[Version::One], 1 << 19);
    let mut events = Events::default();
    let (used, _) = frames.read(&bytes[..6], &mut events).unwrap();
    let mut end = used;
    let error = loop {
        end += 64;
        match frames.read(&bytes[used..end], &mut events) {
            Ok(found) => assert_eq!(found, (0, Step::More)),
            Err(error) => break error,
        }
        assert!(frames.pairs.at + 8 > end - used - 8, "it goes on where it was");
    };
    assert!(matches!(error, FrameError::TooLong(..)), "{error}");
}

#[test]
fn any_bytes_are_taken_or_refused() {
    for seed in 0..3000 {
        let mut random = Random::new(seed);
        let mut bytes = [
            window_frame(b'2', 3),
            json_frame(1, b"{\"a\":1}"),
            compressed_frame(b'2', &json_frame(2, b"{}")),
        ]
        .concat();
        bytes.extend(json_frame(3, b"{}"));
        for _ in 0..=random.below(4) {
            let place = random.below(bytes.len() as u64) as usize;
            bytes[place] = random.number() as u8;
        }
        let mut frames = Frames::new(&[Version::One, Version::Two], 1 << 16);
        let mut events = Events::default();
        let mut used = 0;
        while let Ok((read, step)) = frames.read(&bytes[used..], &mut events) {
            used += read;
            if step == Step::More {
                break;
            }
        }
        assert!(used <= bytes.len() && events.bytes.len() <= 1 << 17);
    }
}
