//! Networks of the `network` condition: CIDR or a name. The names mean what Go's `net.IP` says.

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
fn usual_v4(text: &[u8]) -> Option<Ipv4Addr> {
    let mut octets = [0_u8; 4];
    let (mut place, mut number, mut digits) = (0, 0_u32, 0);
    for &byte in text.get(..text.len().min(16))? {
        match byte {
            b'0'..=b'9' if digits < 3 && (digits == 0 || number > 0) => {
                number = number * 10 + u32::from(byte - b'0');
                digits += 1;
            }
            b'.' if digits > 0 && place < 3 => {
                octets[place] = u8::try_from(number).ok()?;
                (place, number, digits) = (place + 1, 0, 0);
            }
            _ => return None,
        }
    }
    octets[3] = u8::try_from(number).ok()?;
    (place == 3 && digits > 0).then_some(Ipv4Addr::from(octets))
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
