//! Streams written by hand, and random ones against another decoder.

use super::*;

/// One stored block holding `abc`, marked as the last.
const STORED: &[u8] = &[0x01, 0x03, 0x00, 0xfc, 0xff, b'a', b'b', b'c'];

#[test]
fn a_stored_block_is_decoded_and_the_rest_left_alone() {
    let mut inflate = Inflate::new();
    let mut output = [0; 16];
    let step = inflate.inflate(&[STORED, b"rest"].concat(), &mut output, false);
    assert_eq!(step, Step { consumed: 8, produced: 3, stop: Stop::End });
    assert_eq!(&output[..3], b"abc");
}

#[test]
fn a_reset_decoder_starts_again_also_after_damage() {
    let mut inflate = Inflate::new();
    let mut output = [0; 16];
    let step = inflate.inflate(&[0xff; 4], &mut output, false);
    assert_eq!(step.stop, Stop::Damaged("invalid block type"));
    inflate.reset();
    let step = inflate.inflate(STORED, &mut output, false);
    assert_eq!((step.produced, step.stop), (3, Stop::End));
}

#[test]
fn calls_without_input_or_output_are_harmless() {
    let mut inflate = Inflate::new();
    let nothing = Step { consumed: 0, produced: 0, stop: Stop::Exhausted };
    assert_eq!(inflate.inflate(&[], &mut [], true), nothing);
    assert_eq!(inflate.inflate(&[], &mut [0; 4], false), nothing);
    let step = inflate.inflate(STORED, &mut [], false);
    assert_eq!((step.produced, step.stop), (0, Stop::Exhausted));
}

#[test]
fn a_position_is_refused_once_decoding_has_begun() {
    let mut inflate = Inflate::new();
    assert_eq!(inflate.restore(8, 0, &[]), Err(Refused));
    assert_eq!(inflate.restore(0, 0, &[0; WINDOW_BYTES + 1]), Err(Refused));
    assert_eq!(inflate.restore(3, 0xff, &[7; 10]), Ok(()));
    assert_eq!(inflate.restore(3, 0xff, &[7; 10]), Err(Refused));
    let mut window = Vec::new();
    inflate.copy_window(&mut window);
    assert_eq!(window, [7; 10]);
}

#[test]
fn a_block_boundary_says_whether_it_is_the_last() {
    let first = [0x00, 0x03, 0x00, 0xfc, 0xff, b'a', b'b', b'c'];
    let input = [&first[..], STORED].concat();
    let mut inflate = Inflate::new();
    let mut output = [0; 16];
    let step = inflate.inflate(&input, &mut output, true);
    assert_eq!(step, Step { consumed: 8, produced: 3, stop: Stop::Block { bits: 0, last: false } });
    let step = inflate.inflate(&input[8..], &mut output[3..], true);
    assert_eq!(step, Step { consumed: 8, produced: 3, stop: Stop::Block { bits: 0, last: true } });
    let step = inflate.inflate(&[], &mut output[6..], true);
    assert_eq!(step, Step { consumed: 0, produced: 0, stop: Stop::End });
    assert_eq!(&output[..6], b"abcabc");
}

/// A generator that needs no more than to differ from round to round (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// Text with matches of all lengths and distances, runs, and noise.
fn content(random: &mut Random) -> Vec<u8> {
    let mut content = Vec::new();
    let length = 1 << random.below(18);
    while content.len() < length {
        match random.below(5) {
            0 => content.extend((0..random.below(50)).map(|_| random.next() as u8)),
            1 => content.extend(std::iter::repeat_n(b'=', random.below(600))),
            2 => content.extend_from_slice(format!("{} GET /a/b\n", random.below(900)).as_bytes()),
            _ if content.is_empty() => {}
            _ => {
                let distance = 1 + random.below(content.len().min(40_000));
                let from = content.len() - distance;
                for at in 0..random.below(400) {
                    content.push(content[from + at]);
                }
            }
        }
    }
    content
}

fn deflated(content: &[u8], random: &mut Random) -> Vec<u8> {
    use flate2::{Compress, Compression, FlushCompress};
    let mut compress = Compress::new(Compression::new(random.below(10) as u32), false);
    let mut out = Vec::with_capacity(content.len() * 2 + 1_000);
    let (first, second) = content.split_at(random.below(content.len() + 1));
    for (part, flush) in [(first, FlushCompress::Sync), (second, FlushCompress::Finish)] {
        out.reserve(part.len() * 2 + 1_000);
        compress.compress_vec(part, &mut out, flush).unwrap();
    }
    out
}

/// All output in pieces, and how it ended. Stops between blocks now and then, and may go on with another
/// decoder there, restored.
fn in_pieces(input: &[u8], random: &mut Random) -> (Vec<u8>, Stop, usize) {
    let mut inflate = Inflate::new();
    let (mut out, mut at) = (Vec::new(), 0);
    let (input_max, output_max) = (1 + random.below(9_000), 1 + random.below(90_000));
    loop {
        let end = input.len().min(at + 1 + random.below(input_max));
        let mut piece = vec![0; 1 + random.below(output_max)];
        let step = inflate.inflate(&input[at..end], &mut piece, random.below(4) == 0);
        at += step.consumed;
        out.extend_from_slice(&piece[..step.produced]);
        match step.stop {
            Stop::Block { bits, last: false } if random.below(2) == 0 => {
                let mut window = Vec::new();
                inflate.copy_window(&mut window);
                assert_eq!(window, out[out.len().saturating_sub(WINDOW_BYTES)..]);
                inflate = Inflate::new();
                inflate.restore(bits, input[at - 1], &window).unwrap();
            }
            Stop::Block { .. } => {}
            Stop::Exhausted if at < input.len() || step.produced == piece.len() => {
                if random.below(4) == 0
                    && let Some(inside) = inflate.inside()
                {
                    let stored = inside.to_bytes();
                    assert_eq!(Inside::from_bytes(&stored), Some(inside.clone()));
                    assert_eq!(Inside::from_bytes(&stored[..stored.len() - 1]), None);
                    let mut window = Vec::new();
                    inflate.copy_window(&mut window);
                    inflate = Inflate::new();
                    inflate.restore_inside(&inside, &window).unwrap();
                    assert_eq!(inflate.inside(), Some(inside));
                }
            }
            stop => return (out, stop, at),
        }
    }
}

#[test]
fn streams_decode_to_their_content_in_pieces_of_any_size() {
    for seed in 1..=150 {
        let mut random = Random(seed * 0x9e37_79b9);
        let content = content(&mut random);
        let mut input = deflated(&content, &mut random);
        let length = input.len();
        input.extend_from_slice(b"what follows the stream");
        let (out, stop, consumed) = in_pieces(&input, &mut random);
        assert_eq!((stop, consumed), (Stop::End, length), "seed {seed}");
        assert!(out == content, "seed {seed}");
    }
}

#[test]
fn damaged_streams_are_told_and_decode_as_by_another_decoder() {
    use flate2::{Decompress, FlushDecompress, Status};
    let (mut damaged, mut complete) = (0, 0);
    for seed in 1..=1_500 {
        let mut random = Random(seed * 0x9e37_79b9_7f4a);
        let content = content(&mut random);
        let mut input = deflated(&content, &mut random);
        for _ in 0..=random.below(3) {
            let at = random.below(input.len());
            input[at] ^= 1 << random.below(8);
        }
        let mut reference = Decompress::new(false);
        let mut expected = Vec::with_capacity(content.len() * 300 + 100_000);
        let status = reference.decompress_vec(&input, &mut expected, FlushDecompress::None);
        let (out, stop, _) = in_pieces(&input, &mut random);
        match status {
            Err(_) => {
                assert!(matches!(stop, Stop::Damaged(_)), "seed {seed}: {stop:?}");
                damaged += 1;
            }
            Ok(Status::StreamEnd) => {
                assert_eq!(stop, Stop::End, "seed {seed}");
                assert!(out == expected, "seed {seed}");
                complete += 1;
            }
            // The other one notices the lack of any code only when it needs one.
            Ok(_) if stop == Stop::Damaged("invalid code lengths set") => {}
            Ok(_) => {
                assert_eq!(stop, Stop::Exhausted, "seed {seed}");
                assert!(out == expected, "seed {seed}");
            }
        }
        let common = out.len().min(expected.len());
        assert!(out[..common] == expected[..common], "seed {seed}");
    }
    assert!(damaged > 100 && complete > 100, "{damaged} {complete}");
}

#[test]
fn a_position_inside_a_block_that_contradicts_itself_is_refused() {
    let mut inflate = Inflate::new();
    // A fixed block: `a` ten times over, the match cut short by the room.
    let input = [0x4b, 0x84, 0x03, 0x00];
    let step = inflate.inflate(&input, &mut [0; 4], false);
    assert_eq!(step.stop, Stop::Exhausted);
    let inside = inflate.inside().unwrap();
    assert_eq!(Inflate::new().restore_inside(&inside, b"aaaa"), Ok(()));
    // The match reaches behind the window.
    assert_eq!(Inflate::new().restore_inside(&inside, b""), Err(Refused));
    let stored = inside.to_bytes();
    // Number of bits, last, kind, length, codes beyond their number, distances beyond theirs.
    for (at, value) in [(8, 64), (9, 2), (10, 9), (12, 9), (16, 9), (17, 40)] {
        let mut changed = stored.clone();
        changed[at] = value;
        assert_eq!(Inside::from_bytes(&changed), None, "byte {at}");
    }
    // Codes that do not use up all patterns.
    let mut changed = stored;
    changed[30] = 0x11;
    let loaded = Inside::from_bytes(&changed).unwrap();
    assert_eq!(Inflate::new().restore_inside(&loaded, b"aaaa"), Err(Refused));
}
