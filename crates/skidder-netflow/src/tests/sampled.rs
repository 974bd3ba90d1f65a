//! What flow samples say of interfaces, lengths, and packets that are not decoded.

use super::agents::{datagram, ethernet, flow_sample, header, ipv4, ipv6, join, opaque, udp};
use super::packets::Bytes;
use super::{AT, decode, router, settings};
use crate::*;

/// The only flow of a datagram with this sample, and how much was skipped in it.
fn flow(sample: Bytes) -> (String, u64) {
    let mut decoder = Decoder::new(settings());
    let bytes = datagram(&[10, 9, 9, 9], 0, 1, &[sample]);
    let mut flows = decode(&mut decoder, &bytes, router(1), AT(0));
    assert_eq!((flows.len(), decoder.counts().errors), (1, 0));
    (flows.remove(0), decoder.counts().skipped)
}

#[test]
fn a_packet_without_its_own_length_has_what_the_frame_has_without_what_was_stripped() {
    let sample = |frame: u32, stripped: u32, packet: &Bytes| {
        let len = packet.0.len() as u32;
        let body = Bytes::default().u32(1).u32(frame).u32(stripped).u32(len).raw(&packet.0);
        flow_sample(1, &[opaque(1, &body)])
    };
    let v4 = |len: u16| join(&[ethernet(&[], 0x0800), ipv4(1, 17, len, 0, 0), udp()]);
    let v6 = join(&[ethernet(&[], 0x86dd), ipv6(17, 0), udp()]);
    for (frame, stripped, packet, expected) in [
        (1518, 4, v4(0), 1500),
        // The tag of a VLAN is stripped as well.
        (1522, 8, v4(0), 1500),
        (3018, 4, v6, 3000),
        (1518, 4, v4(600), 600),
        // Numbers of a hostile agent.
        (60, 100, v4(0), 0),
        (60, u32::MAX, v4(0), 0),
    ] {
        let (found, _) = flow(sample(frame, stripped, &packet));
        let bytes = format!(" octet_delta_count=Unsigned({expected}) ");
        assert!(found.contains(&bytes), "{frame} {stripped}: {found}");
    }
}

/// The values of a flow that are about interfaces.
fn interfaces(sample: Bytes) -> String {
    let (flow, _) = flow(sample);
    let names = ["ingress_interface=", "egress_interface", "discard_reason=", "flow_direction="];
    let is_one = |value: &&str| names.iter().any(|name| value.starts_with(name));
    let short = |value: &str| value.replace("=Unsigned", "");
    flow.split(' ').filter(is_one).map(short).collect::<Vec<_>>().join(" ")
}

#[test]
fn interfaces_that_are_not_known_or_not_there_are_no_fields_and_no_direction() {
    for (source, input, output, expected) in [
        (0, 0, 0, ""),
        (0, 0, 5, "egress_interface(5)"),
        (0, 5, 0, "ingress_interface(5)"),
        (3, 3, 0, "ingress_interface(3) flow_direction(0)"),
        // The device itself takes it, and sends it.
        (3, 3, 0x3fff_ffff, "ingress_interface(3) flow_direction(0)"),
        (3, 0x3fff_ffff, 3, "egress_interface(3) flow_direction(1)"),
        (3, 0, 0x4000_0001, "discard_reason(1)"),
        (3, 3, 0x8000_0007, "ingress_interface(3) egress_interfaces(7) flow_direction(0)"),
        // More than one.
        (3, 3, 0x8000_0000, "ingress_interface(3) flow_direction(0)"),
    ] {
        let body = Bytes::default().u32(1).u32(source).u32(400).u32(9).u32(0);
        let sample = opaque(1, &body.u32(input).u32(output).u32(0));
        assert_eq!(interfaces(sample), expected, "{source:#x} {input:#x} {output:#x}");
    }
    let none = 0x3fff_ffff;
    for (source, input, output, expected) in [
        (0, (0, 0), (0, 0), ""),
        (none, (0, none), (0, u32::MAX), ""),
        (7, (0, none), (0, 7), "egress_interface(7) flow_direction(1)"),
        (7, (0, 7), (2, 0), "ingress_interface(7) flow_direction(0)"),
        (7, (0, 0x4000_0000), (0, none), "ingress_interface(1073741824)"),
    ] {
        let body = Bytes::default().u32(1).u32(0).u32(source).u32(400).u32(9).u32(0);
        let body = body.u32(input.0).u32(input.1).u32(output.0).u32(output.1);
        let sample = opaque(3, &body.u32(0));
        assert_eq!(interfaces(sample), expected, "{source:#x} {input:x?} {output:x?}");
    }
}

#[test]
fn packets_that_are_not_decoded_are_counted() {
    let v4 = || join(&[ipv4(1, 17, 60, 0, 0), udp()]);
    let v6 = || join(&[ipv6(17, 8), udp()]);
    let cut = |bytes: Bytes, len: usize| Bytes(bytes.0[..len].to_vec());
    let mut short = v4();
    short.0[0] = 0x44;
    let label = |inside: &[u8]| Bytes::default().u32(0x0001_0140).raw(inside);
    for (number, (protocol, packet, skipped)) in [
        // PPP, none that there is, and the two that are alike.
        (7, v4(), 1),
        (99, v4(), 1),
        (11, v6(), 1),
        (12, v4(), 1),
        (11, short, 1),
        (11, cut(v4(), 19), 1),
        (12, cut(v6(), 39), 1),
        (11, Bytes::default(), 1),
        (1, join(&[ethernet(&[], 0x0800), v6()]), 1),
        // Cut behind the header of IP; ARP, and labels before no IP, are what they are.
        (11, cut(v4(), 20), 0),
        (12, cut(v6(), 40), 0),
        (11, v4(), 0),
        (12, v6(), 0),
        (1, join(&[ethernet(&[], 0x0806)]).raw(&[0; 28]), 0),
        (13, label(&[0; 20]), 0),
        (13, label(&v4().0), 0),
    ]
    .into_iter()
    .enumerate()
    {
        let (found, counted) = flow(flow_sample(1, &[header(protocol, 100, &packet)]));
        assert_eq!(counted, skipped, "case {number}: {found}");
        if skipped == 1 {
            assert!(!found.contains("ip_version"), "case {number}: {found}");
        }
    }
}
