//! The wire format against damage, from seeds: whatever the bytes are and however they are cut, the reader finds the
//! windows that a second, simple reader finds in the whole of them, and keeps its bounds.
//! `SKIDDER_SEED=17 cargo test -p skidder-inputs --lib lumberjack::frames::fuzz` repeats a round; `cargo xtask fuzz`
//! runs more of them.

use super::tests::{compressed_frame, json_frame, pairs_frame, window_frame};
use super::*;
use flate2::read::ZlibDecoder;
use serde_json::{Map, Value};
use skidder_testkit::{Random, rounds};
use std::io::Read as _;

/// Rounds of the ordinary test run.
const ROUNDS: u64 = 3_000;

/// The texts of a window, and the number that answers it.
type Window = (Vec<Vec<u8>>, u32);

/// How the bytes of a connection end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// At the end of a window.
    Whole,
    /// Within a window or a frame.
    Within,
    /// The reader refuses them.
    Refused,
}

/// Reads all bytes at once: no state, no bounds but that of an event.
struct Model<'a> {
    rest: &'a [u8],
    version: Option<u8>,
    limit: usize,
}

impl Model<'_> {
    fn windows(&mut self) -> (Vec<Window>, Ending) {
        let mut windows = Vec::new();
        loop {
            if self.rest.is_empty() {
                return (windows, Ending::Whole);
            }
            match self.window() {
                Ok(None) => {}
                Ok(Some(window)) => windows.push(window),
                Err(ending) => return (windows, ending),
            }
        }
    }

    fn window(&mut self) -> Result<Option<Window>, Ending> {
        if self.kind()? != b'W' {
            return Err(Ending::Refused);
        }
        let count = self.number()?;
        let (mut texts, mut last) = (Vec::new(), 0);
        while texts.len() < count as usize {
            let kind = self.kind()?;
            if kind == b'C' {
                let length = self.number()? as usize;
                let payload = self.take(length)?;
                let mut plain = Vec::new();
                let read = ZlibDecoder::new(payload).read_to_end(&mut plain);
                read.map_err(|_| Ending::Refused)?;
                let mut inside = Model { rest: &plain, version: self.version, limit: self.limit };
                while !inside.rest.is_empty() {
                    let kind = inside.kind().map_err(|_| Ending::Refused)?;
                    let (number, text) = inside.event(kind).map_err(|_| Ending::Refused)?;
                    last = number;
                    texts.push(text);
                }
                if texts.len() > count as usize {
                    return Err(Ending::Refused);
                }
            } else {
                let (number, text) = self.event(kind)?;
                last = number;
                texts.push(text);
            }
        }
        let answer = if last == 0 { count } else { last };
        Ok((count > 0).then_some((texts, answer)))
    }

    /// The type of the frame that follows.
    fn kind(&mut self) -> Result<u8, Ending> {
        let version = self.take(1)?[0];
        if !matches!(version, b'1' | b'2') || self.version.is_some_and(|known| known != version) {
            return Err(Ending::Refused);
        }
        self.version = Some(version);
        Ok(self.take(1)?[0])
    }

    fn event(&mut self, kind: u8) -> Result<(u32, Vec<u8>), Ending> {
        if !matches!((kind, self.version), (b'J', _) | (b'D', Some(b'1'))) {
            return Err(Ending::Refused);
        }
        let (number, length) = (self.number()?, self.number()?);
        if kind == b'J' {
            if length as usize > self.limit {
                return Err(Ending::Refused);
            }
            return Ok((number, self.take(length as usize)?.to_vec()));
        }
        let mut pairs: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        let mut bytes = 0;
        for _ in 0..length {
            let (name, text) = (self.text()?, self.text()?);
            bytes += 8 + name.len() + text.len();
            if bytes > self.limit {
                return Err(Ending::Refused);
            }
            match pairs.iter_mut().find(|pair| pair.0 == name) {
                Some(pair) => pair.1 = text,
                None => pairs.push((name, text)),
            }
        }
        let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let fields: Map<String, Value> =
            pairs.iter().map(|(name, text)| (lossy(name), lossy(text).into())).collect();
        Ok((number, Value::from(fields).to_string().into_bytes()))
    }

    fn text(&mut self) -> Result<Vec<u8>, Ending> {
        let length = self.number()? as usize;
        Ok(self.take(length)?.to_vec())
    }

    fn number(&mut self) -> Result<u32, Ending> {
        let bytes = self.take(4)?;
        Ok(u32::from_be_bytes(*bytes.first_chunk().expect("four were taken")))
    }
}

impl<'a> Model<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], Ending> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Ending::Within)?;
        self.rest = rest;
        Ok(taken)
    }
}

/// The reader over bytes that come in pieces of at most `most`.
fn read_in_pieces(
    bytes: &[u8],
    limit: usize,
    most: u64,
    random: &mut Random,
) -> (Vec<Window>, Ending) {
    let mut frames = Frames::new(&[Version::One, Version::Two], limit);
    let mut events = Events::default();
    let (mut windows, mut texts) = (Vec::new(), Vec::new());
    let (mut used, mut end) = (0, 0);
    loop {
        let Ok((read, step)) = frames.read(&bytes[used..end], &mut events) else {
            return (windows, Ending::Refused);
        };
        used += read;
        assert!(used <= end, "only what is there is used");
        // Control characters in a text of version 1 become six bytes.
        assert!(events.bytes.len() <= BATCH_BYTES + 6 * limit + 2, "{}", events.bytes.len());
        assert!(events.rows.len() <= BATCH_EVENTS);
        if let Some(compressed) = &frames.compressed {
            let kept = compressed.plain.capacity();
            assert!(kept <= 4 * (limit + INFLATED_BYTES), "{kept} bytes are kept");
        }
        if matches!(step, Step::Full | Step::End(_)) {
            let Events { bytes, rows } = std::mem::take(&mut events);
            texts.extend(rows.iter().map(|row| {
                let start = row.message.start as usize;
                bytes[start..start + row.message.len as usize].to_vec()
            }));
        }
        match step {
            Step::More if end == bytes.len() => break,
            Step::More => end = bytes.len().min(end + 1 + random.below(most) as usize),
            Step::Begin => texts.clear(),
            Step::Full => {}
            Step::End(number) => windows.push((std::mem::take(&mut texts), number)),
        }
    }
    let is_within = used < bytes.len() || frames.is_in_window();
    (windows, if is_within { Ending::Within } else { Ending::Whole })
}

/// Some windows as clients send them.
fn stream(random: &mut Random) -> Vec<u8> {
    let version = if random.one_in(2) { b'1' } else { b'2' };
    let mut bytes = Vec::new();
    for _ in 0..=random.below(3) {
        let count = if random.one_in(20) { random.below(5_000) } else { random.below(12) } as u32;
        bytes.extend(window_frame(version, count));
        let mut group = Vec::new();
        for number in 1..=count {
            let long = if random.one_in(20) { random.below(1_500) as usize } else { 3 };
            let text = format!("{{\"n\":{number},\"t\":\"{}\"}}", "x\u{1}".repeat(long));
            group.extend(match version {
                b'2' => json_frame(number, text.as_bytes()),
                _ => pairs_frame(number, &[("line", &text), ("f", "x"), ("line", &text[1..])]),
            });
            if number == count || random.one_in(40) {
                let group = std::mem::take(&mut group);
                let is_compressed = random.one_in(2);
                bytes.extend(if is_compressed { compressed_frame(version, &group) } else { group });
            }
        }
    }
    bytes
}

fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..random.below(4) {
        if bytes.is_empty() {
            return;
        }
        let at = random.below(bytes.len() as u64) as usize;
        let end = bytes.len().min(at + random.below(40) as usize);
        match random.below(8) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = *b"12WJDCA\0".get(random.below(8) as usize).expect("one of eight"),
            2 => drop(bytes.drain(at..end)),
            3 => bytes.extend_from_within(at..end),
            4 => bytes.insert(at, random.number() as u8),
            5 => bytes.truncate(at),
            // A length or a count that promises much, or nothing.
            6 => {
                let numbers = [0, 1, 100, 0xffff, 0x7fff_ffff, u32::MAX];
                let number = numbers[random.below(6) as usize].to_be_bytes();
                let kept = (bytes.len() - at).min(4);
                bytes[at..at + kept].copy_from_slice(&number[..kept]);
            }
            // The number of a frame, which is right behind its type.
            _ => {
                let frame = |pair: &[u8]| matches!(pair, [b'1' | b'2', b'W' | b'J' | b'D' | b'C']);
                let Some(found) = bytes[at..].windows(2).position(frame) else { continue };
                let place = at + found + 2;
                let kept = (bytes.len() - place).min(4);
                let number = (random.below(40) as u32).to_be_bytes();
                bytes[place..place + kept].copy_from_slice(&number[..kept]);
            }
        }
    }
}

/// Texts of version 1 are compared as JSON: which characters are escaped does not matter.
fn same(one: &[Window], other: &[Window]) -> bool {
    let same_text = |(one, other): (&Vec<u8>, &Vec<u8>)| {
        let parsed = |text| serde_json::from_slice::<Value>(text).ok();
        one == other || parsed(one).is_some_and(|value| parsed(other) == Some(value))
    };
    one.len() == other.len()
        && one.iter().zip(other).all(|(one, other)| {
            one.1 == other.1
                && one.0.len() == other.0.len()
                && one.0.iter().zip(&other.0).all(same_text)
        })
}

#[test]
fn damaged_streams_give_the_windows_of_a_simple_reader_however_they_are_cut() {
    let (mut whole, mut refused) = (0, 0);
    let mut count = 0;
    rounds(ROUNDS, |seed, random| {
        let mut bytes = stream(random);
        damage(&mut bytes, random);
        let limit = 50 + random.below(6_000) as usize;
        let (expected, end) = Model { rest: &bytes, version: None, limit }.windows();
        for most in [1 + random.below(9), 70_000] {
            let (windows, ending) = read_in_pieces(&bytes, limit, most, random);
            let what =
                format!("SKIDDER_SEED={seed}: {ending:?} instead of {end:?}, pieces of {most}");
            assert!(same(&windows, &expected), "{what}: {} windows", windows.len());
            // What a frame promises may be refused before all of it is there.
            let is_early = end == Ending::Within && ending == Ending::Refused;
            assert!(ending == end || is_early, "{what}");
        }
        count += 1;
        whole += u32::from(end == Ending::Whole && !expected.is_empty());
        refused += u32::from(end == Ending::Refused);
    });
    assert!(count < 100 || whole > count / 20 && refused > count / 20, "{whole} {refused} {count}");
}
