//! sFlow: what is in its samples, what is skipped, and what hostile datagrams do.

use super::agents::{
    counters, datagram, ethernet, expanded_flow_sample, flow_sample, header, ipv4, join, opaque,
    packets, udp,
};
use super::packets::{Bytes, v9};
use super::{AT, decode, router, settings};
use crate::*;
use proptest::prelude::*;
use skidder_testkit::{Random, rounds};

const AGENT: &[u8] = &[10, 9, 9, 9];

/// Rounds of the ordinary test run.
const ROUNDS: u64 = 2000;

fn all(decoder: &mut Decoder) -> Vec<Vec<String>> {
    let each =
        |(from, packet): (&str, Bytes)| decode(decoder, &packet, from.parse().unwrap(), AT(1));
    packets().into_iter().map(each).collect()
}

fn assert_has(flow: &str, expected: &[&str]) {
    for expected in expected {
        assert!(format!("{flow} ").contains(&format!(" {expected} ")), "{expected} in {flow}");
    }
}

#[test]
fn first_bytes_of_packets_say_addresses_ports_and_lengths() {
    let flows = &all(&mut Decoder::new(settings()))[0];
    let u = |name: &str, number: u64| format!("{name}=Unsigned({number})");
    for (at, expected) in [
        // TCP
        (0, vec![u("source_transport_port", 443), u("destination_transport_port", 51_000)]),
        (0, vec![u("tcp_control_bits", 0x18), u("octet_delta_count", 1482), u("ip_ttl", 63)]),
        (0, vec![u("ip_class_of_service", 0xb8), u("packet_delta_count", 1)]),
        (0, vec!["source_ipv4_address=Address(10.1.0.1)".into(), u("data_link_frame_size", 1500)]),
        (0, vec!["source_mac_address=Mac([2, 0, 0, 0, 0, 1])".into(), u("flow_direction", 0)]),
        // UDP behind a tag and options
        (
            1,
            vec![u("dot1q_vlan_id", 100), u("dot1q_priority", 5), u("source_transport_port", 5353)],
        ),
        // ICMP behind two tags
        (2, vec![u("dot1q_vlan_id", 1), u("dot1q_customer_vlan_id", 2), u("icmp_type_ipv4", 8)]),
        (3, vec![u("fragment_offset", 5), u("fragment_identification", 77)]),
        (4, vec!["source_ipv6_address=Address(2001:db8::1)".into(), u("octet_delta_count", 1440)]),
        (4, vec![u("flow_label_ipv6", 0x1_2345), u("ip_class_of_service", 0x12), u("ip_ttl", 55)]),
        // UDP behind two headers
        (5, vec![u("protocol_identifier", 17), u("destination_transport_port", 53)]),
        (6, vec![u("protocol_identifier", 58), u("icmp_type_ipv6", 128), u("fragment_offset", 0)]),
        (7, vec![u("protocol_identifier", 17), u("fragment_offset", 100)]),
        // Behind Ethernet and two labels are 1500 - 22 bytes, of which 4 were stripped.
        (8, vec![u("mpls_top_label", 16), u("octet_delta_count", 1474)]),
        (8, vec!["destination_ipv4_address=Address(198.51.100.7)".into()]),
        (9, vec![u("ethernet_type", 0x806), u("octet_delta_count", 1500)]),
        (10, vec![u("source_transport_port", 80), u("destination_transport_port", 90)]),
    ] {
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        assert_has(&flows[at], &expected);
    }
    for (at, missing) in [
        (0, "fragment"),
        (3, "transport_port"),
        (7, "transport_port"),
        (9, "address=Address"),
        (10, "tcp_control_bits"),
    ] {
        assert!(!flows[at].contains(missing), "{missing} in {}", flows[at]);
    }
    assert_eq!(flows.len(), 11);
}

#[test]
fn a_length_of_802_3_is_no_type_and_snap_has_one() {
    let macs = || Bytes::default().raw(&[1, 0x80, 0xc2, 0, 0, 0]).raw(&[2, 0, 0, 0, 0, 1]);
    // The spanning tree protocol; ARP behind SNAP; a frame of Cisco's behind SNAP; cut off in it.
    let stp = macs().u16(38).raw(&[0x42, 0x42, 3]).raw(&[0; 35]);
    let arp = macs().u16(36).raw(&[0xaa, 0xaa, 3, 0, 0, 0]).u16(0x0806).raw(&[0; 28]);
    let cdp = macs().u16(36).raw(&[0xaa, 0xaa, 3, 0, 0, 0xc]).u16(0x2000).raw(&[0; 28]);
    let cut = macs().u16(36).raw(&[0xaa, 0xaa]);
    let samples = [stp, arp, cdp, cut].map(|bytes| flow_sample(1, &[header(1, 64, &bytes)]));
    let body = Bytes::default().u32(64).raw(&[2; 6]).u16(0).raw(&[3; 6]).u16(0).u32(38);
    let decoded = flow_sample(1, &[opaque(2, &body)]);
    let bytes = datagram(AGENT, 0, 1, &[&samples[..], &[decoded]].concat());
    let mut decoder = Decoder::new(settings());
    let flows = decode(&mut decoder, &bytes, router(1), AT(0));
    assert_eq!((flows.len(), decoder.counts().errors), (5, 0));
    for (at, flow) in flows.iter().enumerate() {
        assert_eq!(flow.contains("ethernet_type"), at == 1, "{flow}");
        assert!(
            flow.contains("source_mac_address") && flow.contains("octet_delta_count"),
            "{flow}"
        );
    }
    assert_has(&flows[1], &["ethernet_type=Unsigned(2054)"]);
}

#[test]
fn switches_routers_and_gateways_add_what_they_know() {
    let mut decoder = Decoder::new(settings());
    let flows = all(&mut decoder);
    assert_has(
        &flows[1][0],
        &[
            "vlan_id=Unsigned(10)",
            "post_vlan_id=Unsigned(20)",
            "vlan_priority=Unsigned(3)",
            "ip_next_hop_ipv4_address=Address(192.0.2.254)",
            "source_ipv4_prefix_length=Unsigned(24)",
            "destination_ipv4_prefix_length=Unsigned(16)",
            "bgp_next_hop_ipv4_address=Address(192.0.2.253)",
            "bgp_source_as_number=Unsigned(64497)",
            "bgp_next_adjacent_as_number=Unsigned(64500)",
            "bgp_destination_as_number=Unsigned(64502)",
            "local_preference=Unsigned(100)",
        ],
    );
    let path = "(64500, 4200000001, 64502)";
    assert_eq!(numbers_of(&packets()[1].1, "as_path"), [64_500, 4_200_000_001, 64_502], "{path}");
    assert_eq!(numbers_of(&packets()[1].1, "bgp_community"), [0xfbf0_0064, 0xffff_ff01]);
    let expanded = &flows[2];
    assert_has(&expanded[0], &["egress_interfaces=Unsigned(3)", "octet_delta_count=Unsigned(90)"]);
    assert_has(&expanded[0], &["data_source_index=Unsigned(70000)", "ip_version=Unsigned(6)"]);
    assert_has(&expanded[1], &["discard_reason=Unsigned(256)", "tcp_control_bits=Unsigned(18)"]);
    assert_has(&expanded[1], &["ingress_interface=Unsigned(80000)"]);
    assert_has(
        &expanded[2],
        &["flow_direction=Unsigned(1)", "source_transport_port=Unsigned(5353)"],
    );
    assert_has(
        &expanded[3],
        &["source_mac_address=Mac([2, 0, 0, 0, 0, 3])", "ethernet_type=Unsigned(35020)"],
    );
    assert_eq!((decoder.counts().packets, decoder.counts().errors), (4, 0));
}

#[test]
fn of_two_headers_of_a_sample_the_first_is_its_packet() {
    let first = join(&[ethernet(&[], 0x0800), ipv4(1, 17, 28, 0, 0), udp()]);
    let second = join(&[ipv4(9, 1, 28, 0, 0), Bytes(vec![8, 0, 0, 0])]);
    let sample = flow_sample(1, &[header(1, 90, &first), header(11, 60, &second)]);
    let mut decoder = Decoder::new(settings());
    let flows = decode(&mut decoder, &datagram(AGENT, 0, 1, &[sample]), router(1), AT(0));
    assert_eq!(flows.len(), 1, "{flows:?}");
    assert_has(
        &flows[0],
        &[
            "header_protocol=Unsigned(1)",
            "source_ipv4_address=Address(10.1.0.1)",
            "protocol_identifier=Unsigned(17)",
            "source_transport_port=Unsigned(5353)",
            "data_link_frame_size=Unsigned(90)",
        ],
    );
    assert!(!flows[0].contains("icmp"), "{flows:?}");
    assert_eq!((decoder.counts().skipped, decoder.counts().errors), (1, 0));
}

#[test]
fn what_an_agent_does_not_know_is_no_value() {
    let unknown = Bytes::default().u32(u32::MAX).u32(u32::MAX).u32(7).u32(u32::MAX);
    let sample = flow_sample(1, &[opaque(1001, &unknown)]);
    let body = Bytes::default().u32(3).u32(6).u64(u64::MAX).u32(1).u32(3).raw(&[0xff; 64]);
    let counters = Bytes::default().u32(1).u32(3).u32(1).raw(&opaque(1, &body).0);
    let bytes = datagram(AGENT, 0, 1, &[sample, opaque(2, &counters)]);
    let mut decoder = Decoder::new(settings());
    let flows = decode(&mut decoder, &bytes, router(1), AT(0));
    assert_eq!(flows.len(), 2, "{flows:?}");
    assert_has(&flows[0], &["post_vlan_id=Unsigned(7)"]);
    assert_has(&flows[1], &["if_index=Unsigned(3)", "if_status=Unsigned(3)"]);
    for unknown in ["4294967295", "18446744073709551615"] {
        assert!(!flows.iter().any(|flow| flow.contains(unknown)), "{flows:?}");
    }
}

fn numbers_of(packet: &Bytes, name: &str) -> Vec<u32> {
    let mut all = Vec::new();
    let mut decoder = Decoder::new(settings());
    let decoded = decoder.packet(&packet.0, router(1), AT(0), &mut |flow| {
        for (field, value) in flow.values {
            if let (true, Value::Numbers(numbers)) = (&*field.name == name, value) {
                all.extend(numbers.iter());
            }
        }
    });
    decoded.unwrap();
    all
}

#[test]
fn counters_of_an_interface_are_a_record_and_other_formats_are_counted() {
    let mut decoder = Decoder::new(settings());
    let flows = all(&mut decoder);
    let counters = &flows[3][0];
    assert_has(
        counters,
        &[
            "if_index=Unsigned(3)",
            "if_speed=Unsigned(10000000000)",
            "if_in_octets=Unsigned(1099511627776)",
            "if_in_unknown_protos=Unsigned(6)",
            "if_out_octets=Unsigned(2199023255552)",
            "if_out_errors=Unsigned(15)",
            "if_promiscuous_mode=Unsigned(2)",
        ],
    );
    assert_eq!(flows[3].len(), 2);
    let counts = decoder.counts();
    // The counters of Ethernet; and datagrams 3 and 4.
    assert_eq!((counts.skipped, counts.lost, counts.resets), (1, 2, 0));
    assert_eq!(decoder.sources(), 2, "two agents");
    decode(&mut decoder, &datagram(AGENT, 0, 7000, &[]), "192.0.2.7:50000".parse().unwrap(), AT(2));
    decode(&mut decoder, &datagram(AGENT, 0, 1, &[]), "192.0.2.7:50000".parse().unwrap(), AT(3));
    assert_eq!((decoder.counts().lost, decoder.counts().resets), (2 + 6994, 1));
    let unknown =
        datagram(AGENT, 0, 2, &[opaque(5, &Bytes(vec![1; 9])), opaque(0x1001, &Bytes(vec![]))]);
    assert_eq!(decode(&mut decoder, &unknown, router(1), AT(3)), [""; 0]);
    assert_eq!((decoder.counts().skipped, decoder.counts().errors), (3, 0));
}

fn error(packet: &Bytes) -> (String, usize) {
    let (mut decoder, mut flows) = (Decoder::new(settings()), 0);
    let decoded = decoder.packet(&packet.0, router(1), AT(0), &mut |_| flows += 1);
    (decoded.map_or_else(|error| error.to_string(), |()| String::new()), flows)
}

#[test]
fn a_damaged_sample_costs_itself_and_no_count_is_believed() {
    let good = flow_sample(1, &[header(1, 90, &Bytes(vec![9; 20]))]);
    let cut = |format, body: &Bytes| opaque(format, &Bytes(body.0[8..body.0.len() - 4].to_vec()));
    let many = |at: usize, sample: &Bytes| {
        let mut sample = sample.clone();
        sample.0[at..at + 4].fill(255);
        sample
    };
    let between = |bad: Bytes| datagram(AGENT, 0, 1, &[good.clone(), bad, good.clone()]);
    let cut_sample = "a datagram of sFlow is damaged: a sample is shorter than what it has";
    for (packet, expected, flows) in [
        (between(good.clone()), "", 3),
        (between(cut(1, &good)), cut_sample, 2),
        (between(cut(3, &expanded_flow_sample(1, (0, 1), &[]))), cut_sample, 2),
        // Four billion records.
        (between(many(36, &good)), cut_sample, 2),
        (between(many(16, &counters(1))), cut_sample, 3),
        // Four billion bytes of a sample, of a record, and of a header.
        (
            between(many(4, &good)),
            "a datagram of sFlow is damaged: it has fewer samples than it says",
            1,
        ),
        (between(many(44, &good)), cut_sample, 2),
        (between(many(60, &good)), cut_sample, 2),
        (
            many(24, &datagram(AGENT, 0, 1, std::slice::from_ref(&good))),
            "a datagram of sFlow is damaged: it has fewer samples than it says",
            1,
        ),
        (
            Bytes(datagram(AGENT, 0, 1, &[]).0[..20].to_vec()),
            "a datagram of sFlow is damaged: it is shorter than its header",
            0,
        ),
        (
            many(4, &datagram(AGENT, 0, 1, &[])),
            "a datagram of sFlow is damaged: it is shorter than its header",
            0,
        ),
        (Bytes::default().u32(4).u32(1).u32(0), "version 4 of sFlow, only 5 is decoded", 0),
        (Bytes::default().u32(2), "version 2 of sFlow, only 5 is decoded", 0),
        (
            Bytes::default().u32(6).u32(1),
            "it is no packet of NetFlow, IPFIX or sFlow: it begins with 0x0000",
            0,
        ),
    ] {
        assert_eq!(error(&packet), (expected.to_owned(), flows));
    }
}

#[test]
fn what_follows_the_declared_samples_and_records_is_an_error_unless_it_is_zeros() {
    let says = |at: usize, count: u32, bytes: &Bytes| {
        let mut bytes = bytes.clone();
        bytes.0[at..at + 4].copy_from_slice(&count.to_be_bytes());
        bytes
    };
    let one = |sample: Bytes| datagram(AGENT, 0, 1, &[sample]);
    let two = |sample: Bytes| datagram(AGENT, 0, 1, &[sample.clone(), sample]);
    let record = header(1, 90, &Bytes(vec![9; 20]));
    let good = || flow_sample(1, std::slice::from_ref(&record));
    let both = flow_sample(1, &[record.clone(), record.clone()]);
    let filled = opaque(1, &Bytes(good().0[8..].to_vec()).raw(&[0; 12]));
    // It has three bytes of filling, of which the agent sends one.
    let odd = one(opaque(9, &Bytes(vec![1; 5])));
    let samples = "a datagram of sFlow is damaged: bytes follow its last sample";
    let records = "a datagram of sFlow is damaged: bytes follow the last record of a sample";
    for (number, (packet, expected, flows)) in [
        (says(24, 0, &one(good())), samples, 0),
        (says(24, 1, &two(good())), samples, 1),
        (says(24, 1, &two(counters(1))), samples, 1),
        (one(good()).raw(&[7; 9]), samples, 1),
        (one(good()).raw(&[0, 0, 1]), samples, 1),
        (one(says(36, 0, &good())), records, 1),
        (one(says(36, 1, &both)), records, 1),
        (one(says(16, 0, &counters(1))), records, 0),
        (one(says(16, 1, &counters(1))), records, 1),
        // The sample behind it is delivered as well.
        (two(says(36, 0, &good())), records, 2),
        (one(good()).raw(&[0; 3]), "", 1),
        (one(good()).raw(&[0; 600]), "", 1),
        (one(filled), "", 1),
        (Bytes(odd.0[..odd.0.len() - 2].to_vec()), "", 0),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(error(&packet), (expected.to_owned(), flows), "case {number}");
    }
}

#[test]
fn losses_are_counted_also_if_the_port_of_the_sender_changes() {
    let mut decoder = Decoder::new(settings());
    for (port, sequence) in [(50_000, 1), (50_001, 2), (50_002, 7), (50_003, 6), (50_000, 8)] {
        decode(&mut decoder, &datagram(AGENT, 0, sequence, &[]), router(port), AT(1));
    }
    assert_eq!((decoder.counts().lost, decoder.sources()), (4, 1));
    // Another sender, another agent and another sub-agent have numbers of their own.
    let other = "192.0.2.9:50000".parse().unwrap();
    decode(&mut decoder, &datagram(AGENT, 0, 100, &[]), other, AT(1));
    decode(&mut decoder, &datagram(&[10, 9, 9, 8], 0, 200, &[]), router(50_000), AT(1));
    decode(&mut decoder, &datagram(AGENT, 1, 300, &[]), router(50_000), AT(1));
    assert_eq!((decoder.counts().lost, decoder.sources()), (4, 4));
}

#[test]
fn a_path_with_four_billion_segments_ends_with_the_datagram() {
    for numbers in
        [[u32::MAX, 0, 0, 0], [1, 2, u32::MAX, 0], [0, u32::MAX, 0, 0], [0, 0x4000_0001, 0, 0]]
    {
        let body = Bytes::default().u32(0).u32(1).u32(2).u32(3);
        let body = numbers.iter().fold(body, |body, number| body.u32(*number));
        let packet = datagram(AGENT, 0, 1, &[flow_sample(1, &[opaque(1003, &body)])]);
        assert!(error(&packet).0.contains("a sample is shorter"), "{numbers:?}");
    }
}

#[test]
fn sflow_is_decoded_only_where_it_is_configured() {
    let protocols = vec![Protocol::V5, Protocol::V9];
    let mut decoder = Decoder::new(Settings { protocols, ..settings() });
    let packet = datagram(AGENT, 0, 1, &[]);
    let error = decoder.packet(&packet.0, router(1), AT(0), &mut |_| {}).unwrap_err();
    assert_eq!(error, PacketError::NotConfigured(Protocol::Sflow));
    assert!(error.to_string().contains("add `sflow` to `protocols`"), "{error}");
    // To configure it would not help.
    let old = Bytes::default().u32(4).u32(1);
    let error = decoder.packet(&old.0, router(1), AT(0), &mut |_| {}).unwrap_err();
    assert_eq!(error, PacketError::SflowVersion(4));
    let mut decoder = Decoder::new(Settings { protocols: vec![Protocol::Sflow], ..settings() });
    decoder.packet(&packet.0, router(1), AT(0), &mut |_| {}).unwrap();
    let other = v9(1, 1, &[]);
    let error = decoder.packet(&other.0, router(1), AT(0), &mut |_| {}).unwrap_err();
    assert_eq!(error, PacketError::NotConfigured(Protocol::V9));
}

/// What has to hold of a datagram, whatever is in it.
fn judge(bytes: &[u8]) {
    let (mut decoder, mut flows, mut values) = (Decoder::new(settings()), 0, 0);
    let decoded = decoder.packet(bytes, router(1), AT(0), &mut |flow| {
        flows += 1;
        values += flow.values.len();
        let mut names: Vec<&str> = flow.values.iter().map(|(field, _)| &*field.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|two| two[0] != two[1]), "{names:?}");
        for (_, value) in flow.values {
            if let Value::Numbers(numbers) = value {
                assert!(numbers.iter().count() * 4 <= bytes.len());
            }
        }
    });
    let counts = decoder.counts();
    assert_eq!(
        (counts.packets, counts.errors),
        (u64::from(decoded.is_ok()), u64::from(decoded.is_err()))
    );
    assert_eq!(counts.flows, flows);
    // A sample has 40 bytes and seven values more than its records; these have no more values than bytes.
    assert!(values <= bytes.len() && counts.skipped <= bytes.len() as u64 / 8);
}

/// `SKIDDER_SEED=17 cargo test -p skidder-netflow fuzz` repeats a round; `cargo xtask fuzz` runs more of them.
#[test]
fn fuzz_damaged_datagrams_end_and_are_counted() {
    let whole: Vec<Vec<u8>> = packets().into_iter().map(|(_, packet)| packet.0).collect();
    rounds(ROUNDS, |_, random: &mut Random| {
        let mut bytes = whole[random.below(whole.len() as u64) as usize].clone();
        for _ in 0..=random.below(6) {
            let at = random.below(bytes.len().max(4) as u64 / 4) as usize * 4;
            // A number that promises much, or little.
            if let Some(place) = bytes.get_mut(at..at + 4) {
                let numbers = [0, 1, 3, 8, 0x7fff_ffff, u32::MAX, 0x4000_0000, 1003];
                let number = numbers[random.below(numbers.len() as u64) as usize];
                place.copy_from_slice(&number.to_be_bytes());
            }
            if !random.one_in(3) {
                super::mutate(random, &mut bytes);
            }
        }
        judge(&bytes);
    });
}

proptest! {
    #[test]
    fn any_samples_are_read_within_their_bytes(
        formats in proptest::collection::vec((0_u32..6, proptest::collection::vec(any::<u8>(), 0..120)), 0..6),
        count in any::<u32>(),
    ) {
        let samples: Vec<Bytes> =
            formats.into_iter().map(|(format, body)| opaque(format, &Bytes(body))).collect();
        let mut packet = datagram(AGENT, 0, 1, &samples);
        judge(&packet.0);
        packet.0[24..28].copy_from_slice(&count.to_be_bytes());
        judge(&packet.0);
    }

    #[test]
    fn any_record_is_read_within_its_bytes(
        records in proptest::collection::vec(
            (prop_oneof![1_u32..5, 1001_u32..1004], proptest::collection::vec(any::<u8>(), 0..150)),
            0..5,
        ),
        protocol in prop_oneof![Just(1_u32), 11_u32..14],
        packet in proptest::collection::vec(any::<u8>(), 0..130),
    ) {
        let mut all: Vec<Bytes> =
            records.into_iter().map(|(format, body)| opaque(format, &Bytes(body))).collect();
        all.push(header(protocol, 1500, &Bytes(packet)));
        judge(&datagram(AGENT, 0, 1, &[flow_sample(1, &all)]).0);
    }
}
