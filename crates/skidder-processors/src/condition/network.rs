//! Networks of the `network` condition: CIDR or a name. The names mean the same as in Go's `net.IP`.

use ipnet::IpNet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network that an address can be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// An address with a prefix length.
    Cidr(IpNet),
    /// One of [`Network::NAMES`].
    Named(&'static str),
}

/// Why a text names no network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no network; use an address with a prefix length as in `192.0.2.0/24` or \
     `2001:db8::/32`, or one of {names}", names = Network::NAMES.join(", ")
)]
pub struct NetworkError {
    /// The text.
    pub text: String,
}

impl Network {
    /// The names that can stand for networks.
    pub const NAMES: [&'static str; 10] = [
        "loopback",
        "global_unicast",
        "unicast",
        "link_local_unicast",
        "interface_local_multicast",
        "link_local_multicast",
        "multicast",
        "unspecified",
        "private",
        "public",
    ];

    /// Reads a name or a CIDR; bits behind the prefix do not matter.
    pub fn parse(text: &str) -> Result<Self, NetworkError> {
        if let Some(name) = Self::NAMES.iter().find(|name| **name == text) {
            return Ok(Self::Named(name));
        }
        let network: IpNet = text.parse().map_err(|_| NetworkError { text: text.to_owned() })?;
        Ok(Self::Cidr(network.trunc()))
    }

    /// Whether the address is in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        match self {
            Self::Cidr(network) => network.contains(&address),
            Self::Named("loopback") => address.is_loopback(),
            Self::Named("global_unicast" | "unicast") => is_global_unicast(address),
            Self::Named("link_local_unicast") => is_link_local_unicast(address),
            Self::Named("interface_local_multicast") => multicast_scope(address) == Some(1),
            Self::Named("link_local_multicast") => is_link_local_multicast(address),
            Self::Named("multicast") => address.is_multicast(),
            Self::Named("unspecified") => address.is_unspecified(),
            Self::Named("private") => is_private(address),
            Self::Named("public") => is_public(address),
            Self::Named(_) => false,
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cidr(network) => write!(out, "{network}"),
            Self::Named(name) => out.write_str(name),
        }
    }
}

/// The address in a text; an IPv4 address written as IPv6 (`::ffff:10.0.0.1`) is an IPv4 address.
pub(crate) fn address(text: &[u8]) -> Option<IpAddr> {
    if let Some(address) = usual_v4(text) {
        return Some(IpAddr::V4(address));
    }
    let address: IpAddr = std::str::from_utf8(text).ok()?.parse().ok()?;
    Some(address.to_canonical())
}

/// An IPv4 address, as the standard library reads it; nothing also if it is worth another look.
///
/// No branch depends on where the dots are: addresses of all lengths, in turn, cost the same.
fn usual_v4(text: &[u8]) -> Option<Ipv4Addr> {
    const ONE: u128 = u128::MAX / 0xff;
    const LOW: u128 = ONE * 0x7f;
    const HIGH: u128 = ONE * 0x80;
    const DOT: u128 = ONE * b'.' as u128;
    if text.len() > 15 {
        return None;
    }
    let letters = match (text.first_chunk::<8>(), text.last_chunk::<8>()) {
        (Some(first), Some(last)) => {
            let last = u128::from(u64::from_le_bytes(*last));
            u128::from(u64::from_le_bytes(*first)) | last << (8 * (text.len() - 8))
        }
        _ => {
            let mut letters = [0; 16];
            letters[..text.len()].copy_from_slice(text);
            u128::from_le_bytes(letters)
        }
    };
    // The highest bit of each byte that is a dot; letters are below 0x80, or the text is none of these.
    let other = letters ^ DOT;
    let dots = !(((other & LOW) + LOW) | other) & HIGH;
    if dots.count_ones() != 3 {
        return None;
    }
    let first = dots.trailing_zeros() / 8;
    let third = 15 - dots.leading_zeros() / 8;
    let second = (dots & (dots - 1)).trailing_zeros() / 8;
    let len = u32::try_from(text.len()).ok()?;
    let parts = [(0, first), (first + 1, second), (second + 1, third), (third + 1, len)];
    let (mut number, mut is_right) = (0, true);
    for (start, end) in parts {
        let (octet, is_octet) = octet(letters, start, end);
        number = (number << 8) | octet;
        is_right &= is_octet;
    }
    is_right.then_some(Ipv4Addr::from_bits(number))
}

/// The number in the letters from `start` to `end`, and whether it is one from 0 to 255 without
/// zeros before it.
#[inline]
fn octet(letters: u128, start: u32, end: u32) -> (u32, bool) {
    let digits = end - start;
    let has_len = digits.wrapping_sub(1) < 3;
    // The last digit comes highest; bytes before this number become zero.
    let [.., one, two, three, four] = (letters << (8 * (16 - end.max(1)))).to_le_bytes();
    let last_four = u32::from_le_bytes([one, two, three, four]);
    let values = (last_four ^ 0x3030_3030) & (u32::MAX << (8 * (4 - digits.clamp(1, 4))));
    let are_digits = (values.wrapping_add(0x7676_7676) | values) & 0x8080_8080 == 0;
    let [_, hundreds, tens, ones] = values.to_le_bytes().map(u32::from);
    let number = hundreds * 100 + tens * 10 + ones;
    let least = [0, 0, 10, 100][digits.min(3) as usize];
    let is_octet = (least..256).contains(&number);
    (number, has_len & are_digits & is_octet)
}

fn is_global_unicast(address: IpAddr) -> bool {
    address != IpAddr::V4(Ipv4Addr::BROADCAST)
        && !address.is_unspecified()
        && !address.is_loopback()
        && !address.is_multicast()
        && !is_link_local_unicast(address)
}

fn is_link_local_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

fn is_link_local_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(_) => multicast_scope(address) == Some(2),
    }
}

/// The scope of an IPv6 multicast address (RFC 4291, 2.7).
fn multicast_scope(address: IpAddr) -> Option<u8> {
    match address {
        IpAddr::V6(address) if address.is_multicast() => Some(address.octets()[1] & 0x0f),
        _ => None,
    }
}

/// RFC 1918, and the half of RFC 4193 that is in use (`fd00::/8`).
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_private(),
        IpAddr::V6(address) => Ipv6Addr::octets(&address)[0] == 0xfd,
    }
}

fn is_public(address: IpAddr) -> bool {
    let local = is_private(address)
        || address.is_loopback()
        || address.is_unspecified()
        || address == IpAddr::V4(Ipv4Addr::BROADCAST)
        || is_link_local_unicast(address)
        || is_link_local_multicast(address)
        || multicast_scope(address) == Some(1);
    !local
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn addresses_are_those_of_the_standard_library(
            text in r"[0-9]{0,4}\.[0-9]{0,3}\.[0-9]{0,3}(\.[0-9]{0,3}){0,2}[.0a]?"
        ) {
            let parsed = text.parse::<Ipv4Addr>().ok();
            prop_assert_eq!(usual_v4(text.as_bytes()), parsed);
        }
    }
}
