//! Both ends of a flow, and the ID that both directions share.

use super::roles::Roles;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use skidder_event::Text;
use skidder_netflow::Role;
use std::net::{IpAddr, Ipv4Addr};
use twox_hash::XxHash64;

/// The value of `flowDirection` of a flow that leaves.
const OUTBOUND: u64 = 1;

/// One end of a flow.
#[derive(Clone, Copy, Default)]
pub(super) struct End {
    pub(super) address: Option<(IpAddr, Text)>,
    pub(super) port: Option<u64>,
    pub(super) mac: Option<Text>,
    pub(super) bytes: Option<u64>,
    pub(super) packets: Option<u64>,
}

impl End {
    pub(super) fn is_empty(&self) -> bool {
        self.address.is_none()
            && self.port.is_none()
            && self.mac.is_none()
            && self.bytes.is_none()
            && self.packets.is_none()
    }

    pub(super) fn ip(&self) -> IpAddr {
        self.address.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |(address, _)| address)
    }
}

/// What a flow is to the Elastic Common Schema.
pub(super) struct Ends {
    pub(super) source: End,
    pub(super) destination: End,
    pub(super) related: Vec<(IpAddr, Text)>,
}

/// Both ends of a flow.
pub(super) fn ends_of(roles: &Roles) -> Ends {
    use Role::{
        DestinationIpv4Address, DestinationIpv6Address, DestinationMacAddress,
        DestinationTransportPort, FlowDirection, SourceIpv4Address, SourceIpv6Address,
        SourceMacAddress, SourceTransportPort, StaIpv4Address, StaMacAddress, WtpMacAddress,
    };
    let (mut source, mut destination) = (End::default(), End::default());
    // A station of a wireless network and its access point.
    if let Some(direction) = roles.number(FlowDirection)
        && let (Some(station), Some(point)) = (roles.text(StaMacAddress), roles.text(WtpMacAddress))
    {
        source = End { address: roles.address(StaIpv4Address), mac: Some(station), ..source };
        destination.mac = Some(point);
        if direction as u8 == OUTBOUND as u8 {
            std::mem::swap(&mut source, &mut destination);
        }
    }
    let mut related = Vec::new();
    for (end, v4, v6, port, mac) in [
        (&mut source, SourceIpv4Address, SourceIpv6Address, SourceTransportPort, SourceMacAddress),
        (
            &mut destination,
            DestinationIpv4Address,
            DestinationIpv6Address,
            DestinationTransportPort,
            DestinationMacAddress,
        ),
    ] {
        if let Some(address) = roles.address(v4).or_else(|| roles.address(v6)) {
            end.address = Some(address);
            related.push(address);
        }
        end.port = roles.number(port);
        end.mac = roles.text(mac).or(end.mac);
    }
    Ends { source, destination, related }
}

/// Type and code of ICMP. Filebeat has none in a Community ID of NetFlow.
pub(super) fn icmp_of(roles: &Roles) -> (u8, u8) {
    use Role::{IcmpCodeIpv4, IcmpCodeIpv6, IcmpTypeIpv4, IcmpTypeIpv6};
    let number = |v4, v6| roles.number(v4).or_else(|| roles.number(v6)).unwrap_or(0) as u8;
    (number(IcmpTypeIpv4, IcmpTypeIpv6), number(IcmpCodeIpv4, IcmpCodeIpv6))
}

/// Letters of the ID of a flow.
const ID_BYTES: usize = 11;

/// The same for both directions of a flow.
pub(super) fn flow_id(
    source: (IpAddr, u16),
    destination: (IpAddr, u16),
    protocol: u8,
) -> [u8; ID_BYTES] {
    let (first, second) =
        if source.1 >= destination.1 { (source, destination) } else { (destination, source) };
    let (mut bytes, mut len) = ([0; 37], 0);
    let mut add = |part: &[u8]| {
        bytes[len..len + part.len()].copy_from_slice(part);
        len += part.len();
    };
    for (address, port) in [first, second] {
        match address {
            IpAddr::V4(address) => add(&address.octets()),
            IpAddr::V6(address) => add(&address.octets()),
        }
        add(&port.to_be_bytes());
    }
    add(&[protocol]);
    let hash = XxHash64::oneshot(0, &bytes[..len]).to_be_bytes();
    let mut id = [0; ID_BYTES];
    URL_SAFE_NO_PAD.encode_slice(hash, &mut id).expect("eight bytes are eleven letters");
    id
}
