//! Answers against damage, from seeds: nothing panics, nothing is larger than what came allows, and an answer does not depend
//! on the pieces in which it comes.
//! `SKIDDER_SEED=17 cargo test -p skidder-redis --lib fuzz` repeats a round; `cargo xtask fuzz` runs more of them.

use super::{DEPTH_MAX, Parser, Reply, RespError, Scan};
use skidder_testkit::{Random, rounds};

/// Rounds of the ordinary test run.
const ROUNDS: u64 = 3_000;

const BYTES_MAX: usize = 10_000;

/// An answer as a server may give it.
fn answer(random: &mut Random, depth: usize) -> Reply {
    match random.below(if depth < DEPTH_MAX { 7 } else { 4 }) {
        0 => Reply::Number(random.number().cast_signed()),
        1 => Reply::Null,
        2 => Reply::Error(format!("ERR {}", random.below(1000))),
        3 => {
            let len = random.below(30);
            Reply::Value((0..len).map(|_| b"a\r\n$*:-+1\xff"[random.below(10) as usize]).collect())
        }
        _ => {
            let len = random.below(4);
            Reply::List((0..len).map(|_| answer(random, depth + 1)).collect())
        }
    }
}

fn write(reply: &Reply, out: &mut Vec<u8>) {
    match reply {
        Reply::Number(number) => out.extend_from_slice(format!(":{number}\r\n").as_bytes()),
        Reply::Null => out.extend_from_slice(b"$-1\r\n"),
        Reply::Error(error) => out.extend_from_slice(format!("-{error}\r\n").as_bytes()),
        Reply::Value(text) => {
            out.extend_from_slice(format!("${}\r\n", text.len()).as_bytes());
            out.extend_from_slice(text);
            out.extend_from_slice(b"\r\n");
        }
        Reply::List(items) => {
            out.extend_from_slice(format!("*{}\r\n", items.len()).as_bytes());
            for item in items {
                write(item, out);
            }
        }
    }
}

fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..random.below(4) {
        if bytes.is_empty() {
            return;
        }
        let at = random.below(bytes.len() as u64) as usize;
        let end = bytes.len().min(at + random.below(20) as usize);
        match random.below(6) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => drop(bytes.drain(at..end)),
            2 => bytes.extend_from_within(at..end),
            3 => bytes.insert(at, b"$*:+-\r\n09"[random.below(9) as usize]),
            4 => bytes.truncate(at),
            // A length that promises much, or nothing.
            _ => {
                let head: &[u8] =
                    [&b"$-2\r\n"[..], b"*9999\r\n", b"*9223372036854775807\r\n", b"$3333\r\n"]
                        [random.below(4) as usize];
                bytes.splice(at..at, head.iter().copied());
            }
        }
    }
}

/// What is read of bytes that come in pieces: the answers, and how it ended.
fn read(bytes: &[u8], mut piece: impl FnMut() -> usize) -> (Vec<Reply>, Result<usize, String>) {
    let (mut replies, mut start, mut come) = (Vec::new(), 0, 0);
    let mut scan = Scan::default();
    loop {
        let rest = &bytes[start..come];
        let found = scan.end(rest, BYTES_MAX).and_then(|end| {
            let Some(end) = end else { return Ok(None) };
            Ok(Some((Parser { rest: &rest[..end], depth: 0 }.reply()?, end)))
        });
        match found {
            Ok(Some((reply, end))) => {
                replies.push(reply);
                scan = Scan::default();
                start += end;
            }
            Ok(None) if come < bytes.len() => come = bytes.len().min(come + piece()),
            Ok(None) => return (replies, Ok(bytes.len() - start)),
            // How much of nonsense an error shows depends on how much there was.
            Err(RespError::Protocol(_)) => return (replies, Err("protocol".to_owned())),
            Err(error) => return (replies, Err(error.to_string())),
        }
    }
}

fn values(reply: &Reply) -> usize {
    match reply {
        Reply::List(items) => 1 + items.iter().map(values).sum::<usize>(),
        _ => 1,
    }
}

#[test]
fn answers_are_whole_or_refused_in_whatever_pieces_they_come() {
    let (mut whole, mut refused, mut count) = (0, 0, 0_u64);
    rounds(ROUNDS, |seed, random| {
        let sent: Vec<Reply> = (0..=random.below(3)).map(|_| answer(random, 0)).collect();
        let mut bytes = Vec::new();
        for reply in &sent {
            write(reply, &mut bytes);
        }
        let came = read(&bytes, || 1 + random.below(9) as usize);
        assert_eq!(came, (sent, Ok(0)), "SKIDDER_SEED={seed}");
        damage(&mut bytes, random);
        let at_once = read(&bytes, || bytes.len());
        let by_byte = read(&bytes, || 1);
        let in_pieces = read(&bytes, || 1 + random.below(9) as usize);
        assert_eq!(at_once, by_byte, "SKIDDER_SEED={seed}: {:?}", bytes.escape_ascii().to_string());
        assert_eq!(at_once, in_pieces, "SKIDDER_SEED={seed}");
        let found: usize = at_once.0.iter().map(values).sum();
        assert!(found <= bytes.len() / 3 + 1, "SKIDDER_SEED={seed}: {found} values");
        match at_once.1 {
            Ok(_) => whole += 1,
            Err(_) => refused += 1,
        }
        count += 1;
    });
    assert!(
        count < 100 || (whole > 50 && refused > 50),
        "{count}: {whole} whole, {refused} refused"
    );
}
