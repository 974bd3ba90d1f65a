//! The pieces of which Kafka's requests and answers are made (<https://kafka.apache.org/protocol#protocol_types>).
//!
//! Only the versions of messages without "compact" types are spoken, but for the first answer of a connection. What is
//! read comes from the network: every length is checked before it is used, and nothing is allocated for it.

/// Why an answer cannot be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Nonsense(pub &'static str);

/// The rest of an answer.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// The next bytes.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Nonsense> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Nonsense("it ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Nonsense> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N)?);
        Ok(bytes)
    }

    /// A byte that is zero or not.
    pub fn bool(&mut self) -> Result<bool, Nonsense> {
        Ok(self.take(1)?[0] != 0)
    }

    /// A number of two bytes.
    pub fn i16(&mut self) -> Result<i16, Nonsense> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    /// A number of four bytes.
    pub fn i32(&mut self) -> Result<i32, Nonsense> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    /// A number of eight bytes.
    pub fn i64(&mut self) -> Result<i64, Nonsense> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    /// A text that may be missing.
    pub fn text(&mut self) -> Result<Option<String>, Nonsense> {
        let Ok(length) = usize::try_from(self.i16()?) else { return Ok(None) };
        Ok(Some(String::from_utf8_lossy(self.take(length)?).into_owned()))
    }

    /// Bytes with their length; none if they are missing.
    pub fn bytes(&mut self) -> Result<&'a [u8], Nonsense> {
        let length = usize::try_from(self.i32()?).unwrap_or(0);
        self.take(length)
    }

    /// How many items follow; none if the list is missing. Each has a byte at least, so there are not more of them than
    /// bytes.
    pub fn count(&mut self) -> Result<usize, Nonsense> {
        let count = usize::try_from(self.i32()?).unwrap_or(0);
        if count > self.0.len() { Err(Nonsense("a list is longer than it")) } else { Ok(count) }
    }

    /// Skips a list of numbers of 4 bytes.
    pub fn skip_numbers(&mut self) -> Result<(), Nonsense> {
        let count = self.count()?;
        self.take(count.saturating_mul(4)).map(drop)
    }

    /// A number of seven bits a byte, the lowest first.
    pub fn uvarint(&mut self) -> Result<u32, Nonsense> {
        let mut value = 0;
        for shift in (0..35).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u32::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Nonsense("a number has no end"))
    }

    /// Skips tagged fields, which only newer messages have.
    pub fn skip_tags(&mut self) -> Result<(), Nonsense> {
        for _ in 0..self.uvarint()? {
            self.uvarint()?;
            let length = self.uvarint()? as usize;
            self.take(length)?;
        }
        Ok(())
    }
}

/// A text; longer ones than the protocol allows are cut.
pub fn put_text(out: &mut Vec<u8>, text: &str) {
    let text = &text.as_bytes()[..text.len().min(i16::MAX as usize)];
    out.extend_from_slice(&(text.len() as i16).to_be_bytes());
    out.extend_from_slice(text);
}

/// A text as newer messages have it.
pub fn put_compact_text(out: &mut Vec<u8>, text: &str) {
    put_uvarint(out, text.len() as u64 + 1);
    out.extend_from_slice(text.as_bytes());
}

/// Seven bits a byte, the lowest first.
#[inline]
pub fn put_uvarint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Small numbers, positive or negative, become small ones without a sign.
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// A number with a sign, as records have them.
#[inline]
pub fn put_varint(out: &mut Vec<u8>, value: i64) {
    put_uvarint(out, zigzag(value));
}

/// Bytes of a [`put_uvarint`].
pub fn width(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// A kind of request, as the protocol numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i16)]
pub enum Api {
    /// `Produce`.
    Produce = 0,
    /// `Fetch`.
    Fetch = 1,
    /// `ListOffsets`.
    ListOffsets = 2,
    /// `Metadata`.
    Metadata = 3,
    /// `OffsetCommit`.
    OffsetCommit = 8,
    /// `OffsetFetch`.
    OffsetFetch = 9,
    /// `FindCoordinator`.
    FindCoordinator = 10,
    /// `JoinGroup`.
    JoinGroup = 11,
    /// `Heartbeat`.
    Heartbeat = 12,
    /// `LeaveGroup`.
    LeaveGroup = 13,
    /// `SyncGroup`.
    SyncGroup = 14,
    /// `SaslHandshake`.
    SaslHandshake = 17,
    /// `ApiVersions`.
    Versions = 18,
    /// `InitProducerId`.
    InitProducerId = 22,
    /// `SaslAuthenticate`.
    SaslAuthenticate = 36,
}

/// Begins a request in `out`; its body is to follow, and then [`end_request`].
pub fn begin_request(out: &mut Vec<u8>, api: Api, version: i16, number: i32, client_id: &str) {
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&(api as i16).to_be_bytes());
    out.extend_from_slice(&version.to_be_bytes());
    out.extend_from_slice(&number.to_be_bytes());
    put_text(out, client_id);
}

/// Writes the length of a request that is in `out`, with `more` bytes that are elsewhere.
pub fn end_request(out: &mut [u8], more: usize) {
    let length = (out.len() - 4 + more) as u32;
    out[..4].copy_from_slice(&length.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_width_that_they_are_said_to_have() {
        for value in [0, 1, 63, 64, 8191, 8192, i64::from(i32::MAX), i64::MAX, -1, -64, -65] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!(out.len(), width(zigzag(value)), "{value}");
            if out.len() <= 5 {
                let read = u64::from(Reader(&out).uvarint().expect("a number"));
                assert_eq!(read as u32, zigzag(value) as u32, "{value}");
            }
        }
        assert_eq!([zigzag(0), zigzag(-1), zigzag(1), zigzag(-2)], [0, 1, 2, 3]);
        Reader(&[0xff; 5]).uvarint().expect_err("it has no end");
        Reader(&[]).uvarint().expect_err("there is none");
    }

    #[test]
    fn lengths_that_are_wrong_are_told_and_allocate_nothing() {
        let long = [0x7f, 0xff, 0xff, 0xff, 1, 2];
        assert_eq!(Reader(&long).bytes().expect_err("too long"), Nonsense("it ends too early"));
        assert_eq!(Reader(&long).count().expect_err("too many").0, "a list is longer than it");
        Reader(&long).skip_numbers().expect_err("too many");
        Reader(&long).text().expect_err("too long");
        assert_eq!(Reader(&[0xff; 4]).bytes(), Ok(&[][..]));
        assert_eq!(Reader(&[0xff; 2]).text(), Ok(None));
        Reader(&[0xff, 0xff, 0xff, 0xff, 0x0f, 0]).skip_tags().expect_err("there are none");
    }
}
