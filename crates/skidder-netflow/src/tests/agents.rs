//! Datagrams of agents of sFlow, made here by the specification (<https://sflow.org/sflow_version_5.txt>).

use super::packets::Bytes;

/// Milliseconds that the agent has been running.
const UPTIME: u32 = 600_000;

/// A datagram with these samples; the agent's address has four or sixteen bytes, or none.
pub(super) fn datagram(agent: &[u8], sub_agent: u32, sequence: u32, samples: &[Bytes]) -> Bytes {
    let kind = match agent.len() {
        4 => 1,
        16 => 2,
        _ => 0,
    };
    let header = Bytes::default().u32(5).u32(kind).raw(agent).u32(sub_agent).u32(sequence);
    let header = header.u32(UPTIME).u32(samples.len() as u32);
    samples.iter().fold(header, |all, sample| all.raw(&sample.0))
}

/// A sample or a record: its format, its length, and zeros up to four bytes.
pub(super) fn opaque(format: u32, body: &Bytes) -> Bytes {
    let mut bytes = Bytes::default().u32(format).u32(body.0.len() as u32).raw(&body.0);
    bytes.0.resize(bytes.0.len().next_multiple_of(4), 0);
    bytes
}

fn records(body: Bytes, records: &[Bytes]) -> Bytes {
    records.iter().fold(body.u32(records.len() as u32), |all, record| all.raw(&record.0))
}

/// A flow sample of interface 3: one packet of 400, from interface 3 to interface 4.
pub(super) fn flow_sample(sequence: u32, with: &[Bytes]) -> Bytes {
    let body = Bytes::default().u32(sequence).u32(3).u32(400).u32(400 * sequence).u32(2);
    opaque(1, &records(body.u32(3).u32(4), with))
}

/// The same, with numbers of any size: of interface 70,000, to several interfaces or to none.
pub(super) fn expanded_flow_sample(sequence: u32, output: (u32, u32), with: &[Bytes]) -> Bytes {
    let body = Bytes::default().u32(sequence).u32(0).u32(70_000).u32(1000).u32(9).u32(0);
    let body = body.u32(0).u32(80_000).u32(output.0).u32(output.1);
    opaque(3, &records(body, with))
}

/// A record with the first bytes of a packet.
pub(super) fn header(protocol: u32, frame_len: u32, bytes: &Bytes) -> Bytes {
    let mut body = Bytes::default().u32(protocol).u32(frame_len).u32(4);
    body = body.u32(bytes.0.len() as u32).raw(&bytes.0);
    body.0.resize(body.0.len().next_multiple_of(4), 0);
    opaque(1, &body)
}

/// Ethernet: to, from, tags of VLANs, type.
pub(super) fn ethernet(tags: &[(u16, u16)], kind: u16) -> Bytes {
    let bytes = Bytes::default().raw(&[2, 0, 0, 0, 0, 2]).raw(&[2, 0, 0, 0, 0, 1]);
    let tagged = tags.iter().fold(bytes, |all, (tag, control)| all.u16(*tag).u16(*control));
    tagged.u16(kind)
}

/// IPv4 (RFC 791): from 10.1.0.LAST to 198.51.100.7; `options` are words of four bytes.
pub(super) fn ipv4(last: u8, protocol: u8, len: u16, fragment: u16, options: u8) -> Bytes {
    let bytes = Bytes::default().u8(0x45 + options).u8(0xb8).u16(len).u16(77).u16(fragment);
    let bytes = bytes.u8(63).u8(protocol).u16(0).raw(&[10, 1, 0, last]).raw(&[198, 51, 100, 7]);
    bytes.raw(&vec![1; 4 * usize::from(options)])
}

/// IPv6 (RFC 8200): from 2001:db8::1 to 2001:db8::2.
pub(super) fn ipv6(next: u8, len: u16) -> Bytes {
    let bytes = Bytes::default().u32(0x6121_2345).u16(len).u8(next).u8(55);
    let address = |bytes: Bytes, last| bytes.u64(0x2001_0db8 << 32).u64(last);
    address(address(bytes, 1), 2)
}

/// TCP (RFC 9293) with the flags PSH and ACK.
fn tcp() -> Bytes {
    let bytes = Bytes::default().u16(443).u16(51_000).u32(1).u32(2).u8(0x50).u8(0x18);
    bytes.u16(1000).u32(0)
}

pub(super) fn udp() -> Bytes {
    Bytes::default().u16(5353).u16(53).u16(40).u16(0)
}

/// Headers, one in the other.
pub(super) fn join(all: &[Bytes]) -> Bytes {
    all.iter().fold(Bytes::default(), |bytes, next| bytes.raw(&next.0))
}

fn switch() -> Bytes {
    opaque(1001, &Bytes::default().u32(10).u32(3).u32(20).u32(5))
}

fn router() -> Bytes {
    opaque(1002, &Bytes::default().u32(1).raw(&[192, 0, 2, 254]).u32(24).u32(16))
}

fn gateway() -> Bytes {
    let body = Bytes::default().u32(1).raw(&[192, 0, 2, 253]).u32(64_496).u32(64_497).u32(64_498);
    // A sequence of two and a set of one; two communities; the local preference.
    let body = body.u32(2).u32(2).u32(2).u32(64_500).u32(4_200_000_001).u32(1).u32(1).u32(64_502);
    opaque(1003, &body.u32(2).u32(0xfbf0_0064).u32(0xffff_ff01).u32(100))
}

/// A counter sample of interface 3: the counters of each interface, and a record of Ethernet.
pub(super) fn counters(sequence: u32) -> Bytes {
    opaque(2, &records(Bytes::default().u32(sequence).u32(3), &[generic(3), ethernet_counters()]))
}

fn generic(index: u32) -> Bytes {
    let body = Bytes::default().u32(index).u32(6).u64(10_000_000_000).u32(1).u32(3);
    let body = body.u64(1 << 40).u32(1).u32(2).u32(3).u32(4).u32(5).u32(6);
    opaque(1, &body.u64(1 << 41).u32(11).u32(12).u32(13).u32(14).u32(15).u32(2))
}

fn ethernet_counters() -> Bytes {
    opaque(2, &Bytes(vec![0; 52]))
}

type Packets = Vec<(&'static str, Bytes)>;

const SWITCH: &str = "192.0.2.7:50000";
const AGENT: &[u8] = &[10, 9, 9, 9];

/// Packets of Ethernet with all transports, cut and whole.
fn headers() -> Vec<Bytes> {
    let eth4 = ethernet(&[], 0x0800);
    let eth6 = ethernet(&[], 0x86dd);
    let hop_by_hop = Bytes::default().u8(43).u8(0).raw(&[0; 6]);
    let routing = Bytes::default().u8(17).u8(1).raw(&[0; 14]);
    let fragment = |next: u8, offset: u16| Bytes::default().u8(next).u8(0).u16(offset << 3).u32(9);
    vec![
        join(&[eth4.clone(), ipv4(1, 6, 1482, 0x4000, 0), tcp()]),
        join(&[ethernet(&[(0x8100, 0xa064)], 0x0800), ipv4(2, 17, 60, 0, 2), udp()]),
        join(&[ethernet(&[(0x88a8, 0x2001), (0x8100, 0x4002)], 0x0800), ipv4(3, 1, 84, 0, 0)])
            .raw(&[8, 0, 0, 0]),
        // The second fragment has no ports.
        join(&[eth4.clone(), ipv4(4, 17, 500, 0x2005, 0), udp()]),
        join(&[eth6.clone(), ipv6(6, 1400), tcp()]),
        join(&[eth6.clone(), ipv6(0, 64), hop_by_hop, routing, udp()]),
        join(&[eth6.clone(), ipv6(44, 200), fragment(58, 0)]).raw(&[128, 0, 0, 0]),
        join(&[eth6, ipv6(44, 200), fragment(17, 100), udp()]),
        // Two labels, and a packet without its own length.
        join(&[ethernet(&[], 0x8847), Bytes::default().u32(0x0001_0040).u32(0x0001_1140)])
            .raw(&join(&[ipv4(5, 47, 0, 0, 0)]).0),
        // ARP, and a packet that is cut in the header of TCP.
        join(&[ethernet(&[], 0x0806)]).raw(&[0; 28]),
        join(&[eth4, ipv4(6, 6, 60, 0, 0)]).raw(&[0, 80, 0, 90, 0, 0]),
    ]
}

/// All datagrams: with the sender of each.
pub(super) fn packets() -> Packets {
    let samples: Vec<Bytes> = headers()
        .iter()
        .enumerate()
        .map(|(at, bytes)| flow_sample(at as u32 + 1, &[header(1, 1500, bytes)]))
        .collect();
    let sampled_v4 = Bytes::default().u32(1400).u32(6).raw(&[10, 1, 0, 9]).raw(&[203, 0, 113, 9]);
    let sampled_v4 = opaque(3, &sampled_v4.u32(40_000).u32(22).u32(0x12).u32(0x10));
    let sampled_v6 = Bytes::default().u32(90).u32(58).u64(0x2001_0db8 << 32).u64(5);
    let sampled_v6 = sampled_v6.u64(0x2001_0db8 << 32).u64(6).u32(0).u32(0).u32(0).u32(0);
    let sampled_ethernet = Bytes::default().u32(64).raw(&[2, 0, 0, 0, 0, 3, 0, 0]);
    let sampled_ethernet = sampled_ethernet.raw(&[2, 0, 0, 0, 0, 4, 0, 0]).u32(0x88cc);
    let raw_ipv6 = header(12, 300, &join(&[ipv6(17, 100), udp()]));
    let extended = [header(1, 1500, &headers()[0]), switch(), router(), gateway()];
    let agent_v6 = Bytes::default().u64(0x2001_0db8 << 32).u64(0x99).0;
    vec![
        (SWITCH, datagram(AGENT, 0, 1, &samples)),
        (SWITCH, datagram(AGENT, 0, 2, &[flow_sample(12, &extended)])),
        (
            SWITCH,
            datagram(
                &agent_v6,
                1,
                1,
                &[
                    expanded_flow_sample(1, (2, 3), &[opaque(4, &sampled_v6)]),
                    expanded_flow_sample(2, (1, 256), &[sampled_v4]),
                    expanded_flow_sample(3, (0, 70_000), &[raw_ipv6, switch()]),
                    expanded_flow_sample(4, (0, 1), &[opaque(2, &sampled_ethernet)]),
                ],
            ),
        ),
        (SWITCH, datagram(AGENT, 0, 5, &[counters(1), flow_sample(13, &[])])),
    ]
}
