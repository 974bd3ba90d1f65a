//! Messages of Protocol Buffers, read where they stand: nothing is allocated for a message, however many a body has.
//!
//! <https://protobuf.dev/programming-guides/encoding/>

/// A body is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed Protocol Buffers")]
pub(super) struct Malformed;

/// Groups inside each other, as in other parsers.
const GROUPS_MAX: u32 = 100;

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Field<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    /// A text, bytes or a message.
    Bytes(&'a [u8]),
}

/// A text; what is not UTF-8 in it is replaced.
pub(super) fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The fields of a message, with their numbers; ends behind an error. Groups, an old form of messages, are
/// skipped: no message that is read here has one.
///
/// As in other parsers, a field in another form than its own is one that is not known: match both.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        for at in 0..10 {
            let (&byte, rest) = self.0.split_first().ok_or(Malformed)?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << (7 * at);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn length(&mut self) -> Result<usize, Malformed> {
        usize::try_from(self.varint()?).map_err(|_| Malformed)
    }

    /// The next field; `None` behind a group.
    fn field(&mut self) -> Result<Option<(u64, Field<'a>)>, Malformed> {
        let tag = self.varint()?;
        let number = tag >> 3;
        let field = match tag & 7 {
            0 => Field::Varint(self.varint()?),
            1 => {
                Field::Fixed64(u64::from_le_bytes(self.take(8)?.try_into().map_err(|_| Malformed)?))
            }
            2 => {
                let length = self.length()?;
                Field::Bytes(self.take(length)?)
            }
            3 => {
                self.skip_group(number, GROUPS_MAX)?;
                return Ok(None);
            }
            5 => {
                Field::Fixed32(u32::from_le_bytes(self.take(4)?.try_into().map_err(|_| Malformed)?))
            }
            _ => return Err(Malformed),
        };
        Ok(Some((number, field)))
    }

    /// Goes on from behind the first tag of a group to behind its last one, which has the same number.
    fn skip_group(&mut self, number: u64, groups: u32) -> Result<(), Malformed> {
        if groups == 0 {
            return Err(Malformed);
        }
        loop {
            let tag = self.varint()?;
            match tag & 7 {
                0 => {
                    self.varint()?;
                }
                1 => {
                    self.take(8)?;
                }
                2 => {
                    let length = self.length()?;
                    self.take(length)?;
                }
                3 => self.skip_group(tag >> 3, groups - 1)?,
                4 if tag >> 3 == number => return Ok(()),
                5 => {
                    self.take(4)?;
                }
                _ => return Err(Malformed),
            }
        }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Field<'a>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.0.is_empty() {
            match self.field() {
                Ok(Some(field)) => return Some(Ok(field)),
                Ok(None) => {}
                Err(Malformed) => {
                    self.0 = b"";
                    return Some(Err(Malformed));
                }
            }
        }
        None
    }
}

/// Appends a number.
pub(super) fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a field that is a text, bytes or a message.
pub(super) fn write_bytes(out: &mut Vec<u8>, number: u64, bytes: &[u8]) {
    write_varint(out, number << 3 | 2);
    write_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
pub(in super::super) mod testing {
    use super::write_varint;

    /// A field with a length.
    pub(crate) fn bytes(number: u64, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        super::write_bytes(&mut out, number, bytes);
        out
    }

    pub(crate) fn varint(number: u64, value: u64) -> Vec<u8> {
        [varint_of(number << 3), varint_of(value)].concat()
    }

    pub(crate) fn fixed64(number: u64, value: u64) -> Vec<u8> {
        [varint_of(number << 3 | 1), value.to_le_bytes().to_vec()].concat()
    }

    fn varint_of(value: u64) -> Vec<u8> {
        let mut out = Vec::new();
        write_varint(&mut out, value);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_and_damage_is_an_error() {
        let whole = [
            testing::varint(1, 300),
            testing::fixed64(2, 7),
            testing::bytes(3, b"abc"),
            vec![4 << 3 | 5, 1, 0, 0, 0],
        ]
        .concat();
        let read: Result<Vec<_>, _> = Fields(&whole).collect();
        let expected = [
            (1, Field::Varint(300)),
            (2, Field::Fixed64(7)),
            (3, Field::Bytes(b"abc")),
            (4, Field::Fixed32(1)),
        ];
        assert_eq!(read.unwrap(), expected);
        for bytes in [
            &b"\x08"[..],
            b"\x1a\x05abc",
            b"\x0b",
            b"\x11\x01",
            &[0xff; 11],
            &[0x1a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
        ] {
            assert_eq!(Fields(bytes).last(), Some(Err(Malformed)), "{bytes:?}");
        }
    }

    #[test]
    fn groups_are_skipped() {
        const FIRST: u8 = 4 << 3 | 3;
        const LAST: u8 = 4 << 3 | 4;
        fn read(bytes: &[u8]) -> Result<Vec<(u64, Field<'_>)>, Malformed> {
            Fields(bytes).collect()
        }
        let inner = [
            testing::varint(1, 300),
            testing::fixed64(2, 7),
            testing::bytes(3, &[LAST]),
            vec![4 << 3 | 5, 1, 0, 0, 0],
            // A group in it, of another number.
            vec![5 << 3 | 3, 5 << 3 | 4],
        ];
        let group = [&[FIRST][..], &inner.concat(), &[LAST]].concat();
        let behind = testing::varint(6, 1);
        assert_eq!(read(&group), Ok(vec![]));
        let all = [&behind, &group, &group, &behind].map(Vec::as_slice).concat();
        assert_eq!(read(&all), Ok(vec![(6, Field::Varint(1)); 2]));
        let nested = |groups: usize| [vec![FIRST; groups], vec![LAST; groups]].concat();
        let most = GROUPS_MAX as usize;
        assert_eq!(read(&nested(most)), Ok(vec![]));
        for bytes in [
            &nested(most + 1)[..],
            &nested(1_000_000),
            // No end, one that is another's, one of nothing, and one behind the bytes.
            &group[..group.len() - 1],
            &[FIRST, 5 << 3 | 4],
            &[LAST],
            &[FIRST, 3 << 3 | 2, 2, LAST],
        ] {
            assert_eq!(read(bytes), Err(Malformed), "{:?}", &bytes[..bytes.len().min(20)]);
        }
    }
}
