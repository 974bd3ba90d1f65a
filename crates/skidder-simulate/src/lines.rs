//! What lines look like: short ones, empty ones, long ones, such that are no text, and such that lack
//! their end for a while.

use crate::oracle::Truth;
use skidder_testkit::Random;

/// Some lines of a content, and whether the last of them has no end yet.
pub(crate) fn some(content: usize, random: &mut Random, truth: &mut Truth) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    for _ in 0..=random.below(6) {
        match random.below(24) {
            0 => bytes.extend_from_slice(b"x\n"),
            1 => bytes.extend_from_slice(b"\n"),
            2 => bytes.extend_from_slice(b"\r\n"),
            kind => {
                let mut padding = padding(random);
                if kind == 3 {
                    padding.fill(0xff);
                }
                bytes.extend(truth.line(content, &padding));
                if random.one_in(12) {
                    return (bytes, true);
                }
                truth.complete(content);
                bytes.extend_from_slice(if kind == 4 { b"\r\n" } else { b"\n" });
            }
        }
    }
    (bytes, false)
}

/// What makes a line longer: no two lines have the same bytes for long.
fn padding(random: &mut Random) -> Vec<u8> {
    let length = match random.below(500) {
        0 => 270_000 + random.below(300_000),
        1..5 => random.below(40_000),
        5..50 => random.below(1200),
        _ => random.below(60),
    };
    let first = random.below(90) as usize;
    (0..length as usize).map(|at| b'!' + ((first + at + at / 90) % 90) as u8).collect()
}

/// A beginning that several files share, longer than a fingerprint.
pub(crate) fn header(random: &mut Random) -> Vec<u8> {
    let mut header = Vec::new();
    let lines = 1 + random.below(4) as usize;
    for _ in 0..lines {
        header.extend_from_slice(b"# header ");
        header.resize(header.len() + 1100 / lines, b'h');
        header.push(b'\n');
    }
    header
}
