//! What is compressed comes out as it went in, whatever it is, and however it is cut into pieces.

use proptest::prelude::*;
use skidder_encode::{Encoder, Framing, WINDOW_BYTES};
use std::io::{Read, Write};
use std::process::{Command, Stdio};

/// Some numbers, the same each time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn noise(&mut self, length: usize) -> Vec<u8> {
        std::iter::repeat_with(|| self.next() as u8).take(length).collect()
    }
}

fn packed(encoder: &mut Encoder, text: &[u8], piece: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for piece in text.chunks(piece.max(1)) {
        encoder.add(piece, &mut out);
    }
    encoder.finish(&mut out);
    out
}

/// The same, each piece with up to `known` bytes of those before in front.
fn packed_behind(encoder: &mut Encoder, text: &[u8], piece: usize, known: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let end = text.len().min(at + piece.max(1));
        let from = at.saturating_sub(known);
        // Nothing but what is given may be looked at.
        let given = text[from..end].to_vec();
        encoder.add_behind(&given, at - from, &mut out);
        at = end;
    }
    encoder.finish(&mut out);
    out
}

fn unpacked(gzip: &[u8], what: &str) -> Vec<u8> {
    let mut back = Vec::new();
    let mut decoder = flate2::read::GzDecoder::new(gzip);
    decoder.read_to_end(&mut back).unwrap_or_else(|error| panic!("{what}: {error}"));
    back
}

/// One encoder for all texts: what it remembers of one must not show in the next.
struct Pair(Encoder, Encoder);

impl Pair {
    fn new() -> Self {
        Self(Encoder::new(Framing::Gzip), Encoder::new(Framing::Zlib))
    }

    fn check(&mut self, text: &[u8], piece: usize, what: &str) -> usize {
        for known in [1_000, WINDOW_BYTES] {
            let gzip = packed_behind(&mut self.0, text, piece, known);
            let back = unpacked(&gzip, what);
            assert!(
                back == text,
                "{what}: {} bytes in pieces of {piece} behind {known}",
                text.len()
            );
        }
        let gzip = packed(&mut self.0, text, piece);
        let mut back = unpacked(&gzip, what);
        assert!(back == text, "{what}: gzip of {} bytes in pieces of {piece}", text.len());
        let zlib = packed(&mut self.1, text, piece);
        back.clear();
        let mut decoder = flate2::read::ZlibDecoder::new(&zlib[..]);
        decoder.read_to_end(&mut back).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(back == text, "{what}: zlib of {} bytes in pieces of {piece}", text.len());
        gzip.len()
    }
}

/// Bodies as they are sent: documents that differ in a few places.
fn bulk(documents: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut body = Vec::new();
    let words = ["GET", "/index.html", "timed out", "accepted", "customer", "\\\"guest\\\"", "é🦀"];
    for number in 0..documents {
        write!(
            body,
            "{{\"create\":{{\"_index\":\"logs\"}}}}\n{{\"@timestamp\":\"2026-11-22T07:05:{:02}.{:03}Z\",\"host\":{{\"name\":\
             \"web-03.example.org\"}},\"log\":{{\"file\":{{\"path\":\"/var/log/app.log\"}},\"offset\":{}}},\"message\":\"",
            number / 1000 % 60,
            number % 1000,
            number * 241
        )
        .expect("a vector takes everything");
        for _ in 0..random.below(30) {
            body.extend_from_slice(words[random.below(words.len())].as_bytes());
            write!(body, " {:x} ", random.next() >> random.below(64))
                .expect("a vector takes everything");
        }
        body.extend_from_slice(b"\"}\n");
    }
    body
}

#[test]
fn hard_texts_come_out_as_they_went_in() {
    let mut pair = Pair::new();
    let mut random = Random(1);
    for length in [0, 1, 2, 3, 7, 8, 9, 31, 32, 33, 258, 259, 260, 261, 262, 4_095, 4_097] {
        for byte in [0, b'a', 255] {
            pair.check(&vec![byte; length], length, "a run");
        }
        pair.check(&random.noise(length), length, "noise");
    }
    // Around the sizes of stored blocks, segments and positions of the table.
    for near in [65_535, 65_536, 2 * 65_536, 3 * 65_536] {
        for length in near - 9..near + 9 {
            pair.check(&vec![7; length], length, "a run");
        }
        for length in [near - 1, near, near + 1, near + 33] {
            pair.check(&random.noise(length), length, "noise");
        }
    }
    pair.check(&vec![0; 3 << 20], 3 << 20, "a long run");
    let fibonacci: Vec<u8> = (0..28_u8)
        .scan((1_usize, 1_usize), |pair, byte| {
            *pair = (pair.1, pair.0 + pair.1);
            Some(vec![byte * 9; pair.0.min(40_000)])
        })
        .flatten()
        .collect();
    pair.check(&fibonacci, fibonacci.len(), "counts that ask for long codes");
    let every: Vec<u8> = (0..=255_u8).cycle().take(300_000).collect();
    pair.check(&every, every.len(), "every byte in turn");
}

#[test]
fn copies_are_found_as_far_as_the_window_goes_and_no_farther() {
    let mut pair = Pair::new();
    let mut random = Random(2);
    for start in [0, 1, 40_000, 70_000, 140_000] {
        for gap in [1, 2, 8, 32_760, 32_767, 32_768, 32_769, 65_528, 65_536, 65_537, 131_072] {
            let mut text = random.noise(start);
            let word = random.noise(gap.min(300));
            text.extend_from_slice(&word);
            text.extend(random.noise(gap - word.len()));
            text.extend_from_slice(&word);
            text.extend(random.noise(40));
            pair.check(&text, text.len(), &format!("a copy from {gap} before, at {start}"));
        }
    }
}

#[test]
fn pieces_behind_others_shrink_as_if_they_were_one() {
    let mut encoder = Encoder::new(Framing::Gzip);
    let body = bulk(3_000, 8);
    let whole = packed(&mut encoder, &body, body.len()).len();
    let behind = packed_behind(&mut encoder, &body, 40_000, WINDOW_BYTES).len();
    let alone = packed(&mut encoder, &body, 40_000).len();
    assert!(behind < whole + whole / 100, "{behind} for {whole}");
    assert!(behind < alone, "{behind}, alone {alone}");
}

#[test]
fn a_copy_goes_on_where_a_segment_ends() {
    let mut encoder = Encoder::new(Framing::Gzip);
    let mut random = Random(9);
    for before in [131_072 - 3_000, 131_072 - 500, 131_072 - 32] {
        let mut text = random.noise(before - 1_000);
        let word = random.noise(1_000);
        for _ in 0..60 {
            text.extend_from_slice(&word);
        }
        text.extend(random.noise(100));
        let sent = packed(&mut encoder, &text, text.len());
        assert!(unpacked(&sent, "words") == text);
        // All but the first word is one copy.
        assert!(sent.len() < before + 2_500, "{} for {}", sent.len(), before);
    }
    // Farther than a copy may cross the end.
    let text = vec![b'a'; 3 << 20];
    let sent = packed(&mut encoder, &text, text.len());
    assert!(unpacked(&sent, "a run") == text && sent.len() < 30_000, "{}", sent.len());
}

#[test]
#[should_panic(expected = "added before")]
fn what_was_not_added_is_not_known() {
    let mut encoder = Encoder::new(Framing::Gzip);
    encoder.add(b"twelve bytes", &mut Vec::new());
    encoder.add_behind(b"thirteen bytes and more", 13, &mut Vec::new());
}

#[test]
fn what_does_not_shrink_grows_little() {
    let mut pair = Pair::new();
    let mut random = Random(3);
    for length in [1_000, 70_000, 262_144, 1_000_000] {
        let sent = pair.check(&random.noise(length), 262_144, "noise");
        assert!(sent <= length + length / 4096 + 64, "{sent} for {length}");
    }
    // The counts are taken from a sample: the rest may be quite different.
    let mut text = Vec::new();
    for part in 0..400 {
        text.extend(if part % 8 < 2 { bulk(3, part + 1) } else { random.noise(3_000) });
    }
    let sent = pair.check(&text, 262_144, "noise between documents");
    assert!(sent <= text.len(), "{sent} for {}", text.len());
}

#[test]
fn bodies_shrink_as_they_should_and_codes_follow_what_comes() {
    let mut pair = Pair::new();
    for documents in [1, 2, 10, 100, 5_000, 20_000] {
        let body = bulk(documents, 5);
        for piece in [body.len(), 262_144, 65_536, 1_000] {
            let sent = pair.check(&body, piece, "documents");
            if piece >= 65_536 {
                let mut usual =
                    flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(1));
                usual.write_all(&body).unwrap();
                let usual = usual.finish().unwrap().len();
                assert!(sent <= usual * 11 / 10, "{sent} for {documents}, usually {usual}");
            }
        }
        let digits: Vec<u8> = body.iter().filter(|byte| byte.is_ascii_digit()).copied().collect();
        pair.check(&digits, 262_144, "digits");
    }
}

#[test]
fn the_gzip_of_this_machine_reads_it() {
    let mut encoder = Encoder::new(Framing::Gzip);
    let mut random = Random(4);
    for text in [Vec::new(), b"x".to_vec(), random.noise(200_000), bulk(20_000, 6)] {
        let body = packed(&mut encoder, &text, 262_144);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("body.gz");
        std::fs::write(&path, &body).unwrap();
        let unpacked =
            Command::new("gzip").arg("-dc").arg(&path).stderr(Stdio::inherit()).output().unwrap();
        assert!(unpacked.status.success());
        assert!(unpacked.stdout == text, "{} bytes", text.len());
    }
}

#[test]
fn a_text_that_is_given_up_leaves_nothing_behind() {
    let mut encoder = Encoder::new(Framing::Gzip);
    let body = bulk(300, 7);
    let whole = packed(&mut encoder, &body, body.len());
    encoder.add(&body[..1000], &mut Vec::new());
    encoder.reset();
    let again = packed(&mut encoder, &body, body.len());
    let mut back = Vec::new();
    flate2::read::GzDecoder::new(&again[..]).read_to_end(&mut back).unwrap();
    assert!(back == body && again.len() < whole.len() + 100);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_mixtures_come_out_as_they_went_in(
        seed in 1_u64..,
        parts in prop::collection::vec((0_u8..5, 0_usize..12_000), 0..16),
        piece in 1_usize..300_000,
        known in 0_usize..40_000,
    ) {
        let mut random = Random(seed);
        let mut text: Vec<u8> = Vec::new();
        for (kind, length) in parts {
            match kind {
                0 => text.extend(random.noise(length)),
                1 => text.extend(std::iter::repeat_n(random.next() as u8, length)),
                2 => text.extend(bulk(length / 300, random.next() | 1)),
                // A copy of anything before.
                3 if !text.is_empty() => {
                    let from = random.below(text.len());
                    let to = text.len().min(from + length);
                    text.extend_from_within(from..to);
                }
                // Few different bytes: many short copies.
                _ => text.extend(random.noise(length).iter().map(|byte| byte & 3)),
            }
        }
        let mut pair = Pair::new();
        pair.check(&text, piece, "a mixture");
        pair.check(&text, text.len(), "a mixture again");
        let behind = packed_behind(&mut pair.0, &text, piece, known);
        prop_assert!(unpacked(&behind, "a mixture behind") == text, "{known} known");
    }
}
