//! Values of fields, and how their bytes are read (RFC 7011, section 6.1).

use crate::cursor::Cursor;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Seconds from 1900, where NTP begins, to 1970.
const NTP_TO_UNIX: i64 = 2_208_988_800;

const NANOSECONDS: i64 = 1_000_000_000;

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// An unsigned number.
    Unsigned(u64),
    /// A signed number.
    Signed(i64),
    /// A floating-point number.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// Bytes without a meaning that is known.
    Bytes(&'a [u8]),
    /// Text without the zeros at its end; not necessarily UTF-8.
    Text(&'a [u8]),
    /// A hardware address.
    Mac([u8; 6]),
    /// An address.
    Address(IpAddr),
    /// Nanoseconds since 1970-01-01 UTC.
    Time(i64),
    /// The three numbers of an access list of a Cisco ASA.
    AclId([u8; 12]),
    /// Numbers, as sFlow has them.
    Numbers(Numbers<'a>),
}

/// Numbers of four bytes each, in a datagram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Numbers<'a> {
    bytes: &'a [u8],
    /// Before each part of them there are its type and how many they are.
    has_segments: bool,
}

impl<'a> Numbers<'a> {
    pub(crate) fn plain(bytes: &'a [u8]) -> Self {
        Self { bytes, has_segments: false }
    }

    pub(crate) fn segments(bytes: &'a [u8]) -> Self {
        Self { bytes, has_segments: true }
    }

    /// All of them in their order.
    pub fn iter(self) -> impl Iterator<Item = u32> + 'a {
        let mut cursor = Cursor(self.bytes);
        let mut left = 0;
        std::iter::from_fn(move || {
            while self.has_segments && left == 0 {
                cursor.u32()?;
                left = cursor.u32()?;
            }
            left = left.saturating_sub(1);
            cursor.u32()
        })
    }
}

/// How the bytes of a field are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number in at most so many bytes.
    Unsigned(u8),
    /// A signed number in at most so many bytes.
    Signed(u8),
    /// A floating-point number in 4 bytes, or in 8 if there may be so many.
    Float(u8),
    /// 1 is true and 2 is false.
    Bool,
    /// Any bytes.
    Bytes,
    /// Text.
    Text,
    /// 6 bytes.
    Mac,
    /// Seconds since 1970 in 4 bytes.
    Seconds,
    /// Milliseconds since 1970 in 8 bytes.
    Milliseconds,
    /// A timestamp of NTP: seconds since 1900 and a fraction, in 4 bytes each.
    Ntp,
    /// 4 bytes.
    V4,
    /// 16 bytes.
    V6,
    /// 12 bytes.
    AclId,
    /// Known, and left out: lists of other fields.
    Unsupported,
}

impl Kind {
    /// Whether a template may give a field of this kind so many bytes.
    pub(crate) fn fits(self, len: u16) -> bool {
        match self {
            Self::Unsigned(most) | Self::Signed(most) => (1..=u16::from(most)).contains(&len),
            Self::Float(most) => (4..=u16::from(most)).contains(&len),
            Self::Bool => len == 1,
            Self::Bytes | Self::Text | Self::Unsupported => true,
            Self::Mac => len == 6,
            Self::Seconds | Self::V4 => len == 4,
            Self::Milliseconds | Self::Ntp => len == 8,
            Self::V6 => len == 16,
            Self::AclId => len == 12,
        }
    }

    /// Reads a value. `None` if the bytes are none of this kind.
    pub(crate) fn read(self, bytes: &[u8]) -> Option<Value<'_>> {
        match self {
            Self::Unsigned(most) => number(bytes, most).map(Value::Unsigned),
            Self::Signed(most) => signed(bytes, most).map(Value::Signed),
            Self::Float(most) if bytes.len() <= usize::from(most) => match bytes.len() {
                4 => Some(Value::Float(f32::from_be_bytes(bytes.try_into().ok()?).into())),
                8 => Some(Value::Float(f64::from_be_bytes(bytes.try_into().ok()?))),
                _ => None,
            },
            Self::Float(_) | Self::Unsupported => None,
            Self::Bool => match bytes {
                [1] => Some(Value::Bool(true)),
                [2] => Some(Value::Bool(false)),
                _ => None,
            },
            Self::Bytes => Some(Value::Bytes(bytes)),
            Self::Text => {
                let len = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                Some(Value::Text(&bytes[..len]))
            }
            Self::Mac => bytes.try_into().ok().map(Value::Mac),
            Self::Seconds => {
                let seconds = u32::from_be_bytes(bytes.try_into().ok()?);
                Some(Value::Time(i64::from(seconds) * NANOSECONDS))
            }
            Self::Milliseconds => {
                let milliseconds = u64::from_be_bytes(bytes.try_into().ok()?);
                let time =
                    i64::try_from(milliseconds).ok().and_then(|it| it.checked_mul(1_000_000));
                // After the year 2262; a number is a time to Elasticsearch, too.
                Some(time.map_or(Value::Unsigned(milliseconds), Value::Time))
            }
            Self::Ntp => {
                let both = u64::from_be_bytes(bytes.try_into().ok()?);
                let (seconds, fraction) = ((both >> 32) as i64, (both & 0xffff_ffff) as i64);
                let nanoseconds = (fraction * NANOSECONDS) >> 32;
                Some(Value::Time((seconds - NTP_TO_UNIX) * NANOSECONDS + nanoseconds))
            }
            Self::V4 => {
                let octets: [u8; 4] = bytes.try_into().ok()?;
                Some(Value::Address(Ipv4Addr::from(octets).into()))
            }
            Self::V6 => {
                let octets: [u8; 16] = bytes.try_into().ok()?;
                Some(Value::Address(Ipv6Addr::from(octets).into()))
            }
            Self::AclId => bytes.try_into().ok().map(Value::AclId),
        }
    }
}

/// The last eight bytes count, if there are more.
fn number(bytes: &[u8], most: u8) -> Option<u64> {
    let is_right = (1..=usize::from(most)).contains(&bytes.len());
    is_right.then(|| bytes.iter().fold(0, |value, byte| (value << 8) | u64::from(*byte)))
}

fn signed(bytes: &[u8], most: u8) -> Option<i64> {
    let value = number(bytes, most)?;
    let unused = 64 - 8 * bytes.len().min(8) as u32;
    Some(((value << unused) as i64) >> unused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_as_many_bytes_as_the_template_says() {
        for (kind, bytes, expected) in [
            (Kind::Unsigned(8), &[7][..], Some(Value::Unsigned(7))),
            (Kind::Unsigned(8), &[1, 0, 0], Some(Value::Unsigned(65_536))),
            (Kind::Unsigned(2), &[1, 0, 0], None),
            (Kind::Unsigned(2), &[], None),
            (Kind::Signed(4), &[255, 254], Some(Value::Signed(-2))),
            (Kind::Signed(4), &[255, 255, 0], Some(Value::Signed(-256))),
            (Kind::Signed(4), &[1, 0, 0, 0, 0], None),
            (Kind::Signed(8), &[128, 0, 0, 0, 0, 0, 0, 0], Some(Value::Signed(i64::MIN))),
            (Kind::Float(8), &[0x40, 0x49, 0, 0], Some(Value::Float(3.140_625))),
            (Kind::Float(8), &[0x3f, 0xf8, 0, 0, 0, 0, 0, 0], Some(Value::Float(1.5))),
            (Kind::Float(8), &[0, 0, 0, 0, 0], None),
            (Kind::Float(4), &[0; 8], None),
            (Kind::Bool, &[1], Some(Value::Bool(true))),
            (Kind::Bool, &[2], Some(Value::Bool(false))),
            (Kind::Bool, &[0], None),
            (Kind::Unsupported, &[0], None),
        ] {
            assert_eq!(kind.read(bytes), expected, "{kind:?} {bytes:?}");
        }
    }

    #[test]
    fn times_of_all_three_sorts_are_nanoseconds_since_1970() {
        let half = [0x83, 0xaa, 0x7e, 0x81, 0x80, 0, 0, 0];
        assert_eq!(Kind::Ntp.read(&half), Some(Value::Time(1_500_000_000)));
        assert_eq!(Kind::Ntp.read(&[0; 8]), Some(Value::Time(-2_208_988_800_000_000_000)));
        assert_eq!(Kind::Seconds.read(&[0, 0, 0, 2]), Some(Value::Time(2_000_000_000)));
        let late = [255; 8];
        assert_eq!(
            Kind::Milliseconds.read(&[0, 0, 0, 0, 0, 0, 5, 1]),
            Some(Value::Time(1_281_000_000))
        );
        assert_eq!(Kind::Milliseconds.read(&late), Some(Value::Unsigned(u64::MAX)));
        assert_eq!(Kind::Milliseconds.read(&[0; 4]), None);
    }

    #[test]
    fn texts_end_before_the_zeros_behind_them() {
        assert_eq!(Kind::Text.read(b"eth0\0\0"), Some(Value::Text(b"eth0")));
        assert_eq!(Kind::Text.read(b"\0a\0"), Some(Value::Text(b"\0a")));
        assert_eq!(Kind::Text.read(b""), Some(Value::Text(b"")));
        assert_eq!(Kind::Bytes.read(b"a\0"), Some(Value::Bytes(b"a\0")));
    }
}
