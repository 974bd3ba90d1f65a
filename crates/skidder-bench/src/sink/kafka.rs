//! A Kafka broker as it looks to a producer, that only counts: it leads all partitions of every topic, and skips
//! records unread (<https://kafka.apache.org/protocol>).

use super::frames::{invalid, skip};
use std::io::{self, BufRead, Read};

/// Partitions of each topic.
const PARTITIONS: i32 = 3;
/// Longest question that is not about records.
const QUESTION_BYTES_MAX: usize = 64 << 10;
/// Bytes of a batch before its records.
const HEAD_BYTES: usize = 61;

/// Kinds of questions, with the one version of each that is spoken.
const PRODUCE: (i16, i16) = (0, 3);
const METADATA: (i16, i16) = (3, 1);
const API_VERSIONS: (i16, i16) = (18, 0);
const INIT_PRODUCER_ID: (i16, i16) = (22, 0);
/// The code of an answer to another version.
const UNSUPPORTED_VERSION: i16 = 35;

/// Reads a question: how many records it has, and the answer. `port` is where we listen.
pub(super) fn question(input: &mut impl BufRead, port: u16) -> io::Result<(u64, Vec<u8>)> {
    let length = usize::try_from(i32_of(input)?).map_err(io::Error::other)?;
    let mut input = input.take(length as u64);
    let kind = (i16_of(&mut input)?, i16_of(&mut input)?);
    let number = i32_of(&mut input)?;
    // The client's name.
    text_of(&mut input)?;
    let mut answer = Answer(vec![0; 4]);
    answer.i32(number);
    let mut count = 0;
    match kind {
        PRODUCE => count = produced(&mut input, &mut answer)?,
        _ if length > QUESTION_BYTES_MAX => return Err(invalid("a question of this length")),
        METADATA => metadata(&mut input, &mut answer, port)?,
        INIT_PRODUCER_ID => {
            answer.i32(0);
            answer.i16(0);
            answer.0.extend(7_i64.to_be_bytes());
            answer.i16(0);
        }
        (api, version) if api == API_VERSIONS.0 => {
            let kinds = [PRODUCE, METADATA, API_VERSIONS, INIT_PRODUCER_ID];
            answer.i16(if version == API_VERSIONS.1 { 0 } else { UNSUPPORTED_VERSION });
            answer.i32(kinds.len() as i32);
            for (api, version) in kinds {
                answer.i16(api);
                answer.i16(version);
                answer.i16(version);
            }
        }
        _ => return Err(invalid("a question of another kind")),
    }
    let left = input.limit();
    skip(&mut input, left)?;
    Ok((count, answer.whole()))
}

/// Batches: how many records they have.
fn produced(input: &mut impl BufRead, answer: &mut Answer) -> io::Result<u64> {
    // The transaction, then how many replicas are to have it, and how long that may take.
    text_of(input)?;
    i16_of(input)?;
    i32_of(input)?;
    let mut records = 0;
    let topics = i32_of(input)?;
    answer.i32(topics);
    for _ in 0..topics {
        answer.text(&text_of(input)?);
        let partitions = i32_of(input)?;
        answer.i32(partitions);
        for _ in 0..partitions {
            answer.i32(i32_of(input)?);
            records += batch(input)?;
            // No error, the offset, and no time.
            answer.i16(0);
            answer.0.extend(0_i64.to_be_bytes());
            answer.0.extend((-1_i64).to_be_bytes());
        }
    }
    answer.i32(0);
    Ok(records)
}

/// One batch: the record count in its header.
fn batch(input: &mut impl BufRead) -> io::Result<u64> {
    let length = usize::try_from(i32_of(input)?).map_err(io::Error::other)?;
    let rest = length.checked_sub(HEAD_BYTES).ok_or_else(|| invalid("a batch without a head"))?;
    let mut head = [0; HEAD_BYTES];
    input.read_exact(&mut head)?;
    skip(input, rest as u64)?;
    match head {
        [.., a, b, c, d] if head[16] == 2 => Ok(u32::from_be_bytes([a, b, c, d]).into()),
        _ => Err(invalid("a batch of another format")),
    }
}

/// All requested topics are here.
fn metadata(input: &mut impl BufRead, answer: &mut Answer, port: u16) -> io::Result<()> {
    // One broker, without a rack, which is the controller.
    answer.i32(1);
    answer.i32(1);
    answer.text(b"127.0.0.1");
    answer.i32(port.into());
    answer.i16(-1);
    answer.i32(1);
    let topics = i32_of(input)?.max(0);
    answer.i32(topics);
    for _ in 0..topics {
        answer.i16(0);
        answer.text(&text_of(input)?);
        answer.0.push(0);
        answer.i32(PARTITIONS);
        for partition in 0..PARTITIONS {
            answer.i16(0);
            answer.i32(partition);
            // Its leader, its only replica, and that this one is up to date.
            for number in [1, 1, 1, 1, 1] {
                answer.i32(number);
            }
        }
    }
    Ok(())
}

/// An answer, with room for its length.
struct Answer(Vec<u8>);

impl Answer {
    fn i16(&mut self, number: i16) {
        self.0.extend(number.to_be_bytes());
    }

    fn i32(&mut self, number: i32) {
        self.0.extend(number.to_be_bytes());
    }

    fn text(&mut self, text: &[u8]) {
        self.i16(text.len() as i16);
        self.0.extend(text);
    }

    fn whole(mut self) -> Vec<u8> {
        let length = self.0.len() as i32 - 4;
        self.0[..4].copy_from_slice(&length.to_be_bytes());
        self.0
    }
}

fn array<const N: usize>(input: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn i16_of(input: &mut impl Read) -> io::Result<i16> {
    array(input).map(i16::from_be_bytes)
}

fn i32_of(input: &mut impl Read) -> io::Result<i32> {
    array(input).map(i32::from_be_bytes)
}

/// A text; one that is missing is empty.
fn text_of(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut text = vec![0; usize::try_from(i16_of(input)?).unwrap_or(0)];
    input.read_exact(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A question of this kind with this body.
    fn request(kind: (i16, i16), body: &[u8]) -> Vec<u8> {
        let mut request = Answer(vec![0; 4]);
        request.i16(kind.0);
        request.i16(kind.1);
        request.i32(9);
        request.text(b"me");
        request.0.extend(body);
        request.whole()
    }

    #[test]
    fn records_are_counted_by_the_heads_of_their_batches() {
        let mut body = Answer(Vec::new());
        body.i16(-1);
        body.i16(1);
        body.i32(1000);
        body.i32(1);
        body.text(b"t");
        body.i32(2);
        for (partition, count) in [(0, 5), (2, 7)] {
            body.i32(partition);
            body.i32(HEAD_BYTES as i32 + 3);
            let mut head = [0; HEAD_BYTES];
            head[16] = 2;
            head[HEAD_BYTES - 4..].copy_from_slice(&i32::to_be_bytes(count));
            body.0.extend(head);
            body.0.extend(b"abc");
        }
        let both = [request(PRODUCE, &body.0), request(PRODUCE, &body.0)].concat();
        let mut input = &both[..];
        for _ in 0..2 {
            let (count, answer) = question(&mut input, 1).unwrap();
            assert_eq!(count, 12);
            assert_eq!(
                answer.len(),
                4 + i32::from_be_bytes(*answer.first_chunk().unwrap()) as usize
            );
            assert_eq!(answer[4..8], [0, 0, 0, 9]);
        }
        assert!(input.is_empty());
    }

    #[test]
    fn another_version_is_answered_with_those_that_are_spoken() {
        let (count, answer) = question(&mut &*request((18, 3), b"\0\x01\x01\0"), 1).unwrap();
        assert_eq!((count, &answer[8..14]), (0, &[0, 35, 0, 0, 0, 4][..]));
        question(&mut &*request((1, 0), b""), 1).expect_err("nobody fetches");
    }
}
