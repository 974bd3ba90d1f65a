//! Messages of Protocol Buffers, written straight into a buffer.
//!
//! <https://protobuf.dev/programming-guides/encoding/>. What is in a message has to be known for its length, which
//! stands before it. Where it is not, five bytes are left for it: a varint may be longer than it must be, and what
//! comes behind need not be moved.

/// Bytes of a length that is filled in later: enough for 32 GiB.
const HELD_BYTES: usize = 5;

/// A tag of a field of 8 bytes.
pub(crate) const fn fixed64(field: u8) -> u8 {
    field << 3 | 1
}

/// A tag of a field with a length: a text, bytes or a message.
pub(crate) const fn delimited(field: u8) -> u8 {
    field << 3 | 2
}

/// A tag of a field that is a varint.
pub(crate) const fn varint(field: u8) -> u8 {
    field << 3
}

/// Appends a varint.
#[inline]
pub(crate) fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Bytes of a varint.
#[inline]
pub(crate) fn varint_bytes(value: usize) -> usize {
    ((value | 1).ilog2() as usize + 7) / 7
}

/// Bytes of a field with a tag of one byte, a length, and so much behind it.
#[inline]
pub(crate) fn delimited_bytes(len: usize) -> usize {
    1 + varint_bytes(len) + len
}

/// Appends a field of 8 bytes.
#[inline]
pub(crate) fn write_fixed64(out: &mut Vec<u8>, field: u8, value: u64) {
    out.push(fixed64(field));
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends the head of a field whose bytes come behind it.
#[inline]
pub(crate) fn write_head(out: &mut Vec<u8>, field: u8, len: usize) {
    out.push(delimited(field));
    write_varint(out, len as u64);
}

/// Appends a field with these bytes.
#[inline]
pub(crate) fn write_bytes(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    write_head(out, field, bytes.len());
    out.extend_from_slice(bytes);
}

/// A message whose length is not known yet.
#[derive(Clone, Copy, Debug)]
#[must_use = "its length must be filled in"]
pub(crate) struct Open(usize);

/// Begins a message, to be ended by [`Open::close`].
#[inline]
pub(crate) fn open(out: &mut Vec<u8>, field: u8) -> Open {
    out.push(delimited(field));
    out.extend_from_slice(&[0; HELD_BYTES]);
    Open(out.len())
}

impl Open {
    /// Whether it began in the first `len` bytes.
    pub(crate) fn is_before(self, len: usize) -> bool {
        self.0 <= len
    }

    /// The bytes written since are the message.
    #[inline]
    pub(crate) fn close(self, out: &mut [u8]) {
        let mut len = out.len() - self.0;
        let held = &mut out[self.0 - HELD_BYTES..self.0];
        for byte in held.iter_mut() {
            *byte = len as u8 | 0x80;
            len >>= 7;
        }
        held[HELD_BYTES - 1] &= 0x7f;
        debug_assert!(len == 0, "a message beyond what its length can say");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::encoding::{decode_varint, encode_varint, encoded_len_varint};

    #[test]
    fn numbers_and_lengths_are_those_of_another_implementation() {
        let edges = (0..63).map(|bit| 1_u64 << bit);
        for value in edges.flat_map(|edge| [edge - 1, edge, edge + 1]).chain([u64::MAX]) {
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            write_varint(&mut ours, value);
            encode_varint(value, &mut theirs);
            assert_eq!(ours, theirs);
            assert_eq!(varint_bytes(value as usize), encoded_len_varint(value));
        }
    }

    #[test]
    fn a_length_that_was_held_is_what_came_behind_it() {
        for len in [0, 1, 127, 128, 300, 70_000] {
            let mut out = b"before".to_vec();
            let message = open(&mut out, 3);
            out.resize(out.len() + len, b'x');
            message.close(&mut out);
            assert_eq!(out[..7], *b"before\x1a");
            let mut rest = &out[7..];
            assert_eq!(decode_varint(&mut rest).unwrap(), len as u64);
            assert_eq!(rest.len(), len);
        }
    }
}
