//! Packets of exporters, made here.

/// A packet under construction, big-endian.
#[derive(Clone, Default)]
pub(super) struct Bytes(pub(super) Vec<u8>);

impl Bytes {
    pub(super) fn u8(mut self, value: u8) -> Self {
        self.0.push(value);
        self
    }

    pub(super) fn u16(mut self, value: u16) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub(super) fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub(super) fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub(super) fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }
}

/// When the packets are sent: seconds since 1970.
const NOW: u32 = 1_790_000_000;

/// Milliseconds that the exporter has been running.
const UPTIME: u32 = 600_000;

/// A packet of version 9 with these sets.
pub(super) fn v9(sequence: u32, source: u32, sets: &[Bytes]) -> Bytes {
    let header = Bytes::default().u16(9).u16(sets.len() as u16).u32(UPTIME).u32(NOW);
    sets.iter().fold(header.u32(sequence).u32(source), |packet, set| packet.raw(&set.0))
}

/// A packet of IPFIX with these sets.
pub(super) fn ipfix(sequence: u32, source: u32, sets: &[Bytes]) -> Bytes {
    let len: usize = sets.iter().map(|set| set.0.len()).sum();
    let header = Bytes::default().u16(10).u16(16 + len as u16).u32(NOW);
    sets.iter().fold(header.u32(sequence).u32(source), |packet, set| packet.raw(&set.0))
}

/// A set with this number.
pub(super) fn set(id: u16, body: &Bytes) -> Bytes {
    Bytes::default().u16(id).u16(4 + body.0.len() as u16).raw(&body.0)
}

/// A field of a template: number, length, and the enterprise if there is one.
pub(super) type FieldOf = (u16, u16, u32);

fn columns(bytes: Bytes, fields: &[FieldOf]) -> Bytes {
    fields.iter().fold(bytes, |bytes, (id, length, enterprise)| match enterprise {
        0 => bytes.u16(*id).u16(*length),
        _ => bytes.u16(*id | 0x8000).u16(*length).u32(*enterprise),
    })
}

/// A template.
pub(super) fn template(id: u16, fields: &[FieldOf]) -> Bytes {
    columns(Bytes::default().u16(id).u16(fields.len() as u16), fields)
}

/// A template of options of version 9.
pub(super) fn v9_options(id: u16, scope: &[FieldOf], others: &[FieldOf]) -> Bytes {
    let (scope_len, others_len) = (4 * scope.len() as u16, 4 * others.len() as u16);
    let bytes = Bytes::default().u16(id).u16(scope_len).u16(others_len);
    columns(columns(bytes, scope), others)
}

/// A template of options of IPFIX.
pub(super) fn ipfix_options(id: u16, scope: &[FieldOf], others: &[FieldOf]) -> Bytes {
    let all = (scope.len() + others.len()) as u16;
    let bytes = Bytes::default().u16(id).u16(all).u16(scope.len() as u16);
    columns(columns(bytes, scope), others)
}

/// The header of version 5; with other first bytes that of the others.
fn v5_header(version: u16, count: u16) -> Bytes {
    let header = Bytes::default().u16(version).u16(count).u32(UPTIME).u32(NOW).u32(5_000_000);
    header.u32(77).u8(1).u8(2).u16(0x4064)
}

/// The first 44 bytes of a record of versions 5, 6 and 7.
fn v5_record(number: u8, protocol: u8) -> Bytes {
    let record = Bytes::default().raw(&[10, 0, 0, number]).raw(&[198, 51, 100, number]);
    let record = record.raw(&[192, 0, 2, 254]).u16(3).u16(4).u32(7).u32(7 * 90);
    let record = record.u32(UPTIME - 9000).u32(UPTIME - 1000).u16(40_000).u16(443);
    record.u8(0).u8(0x1b).u8(protocol).u8(4).u16(64_496).u16(64_497).u8(24).u8(16)
}

type Packets = Vec<(&'static str, Bytes)>;

const ROUTER: &str = "192.0.2.1:2055";

/// Versions whose records have one form.
fn fixed() -> Packets {
    let v1_header = Bytes::default().u16(1).u16(1).u32(UPTIME).u32(NOW).u32(1);
    let v1_record = Bytes::default().raw(&[10, 1, 1, 1]).raw(&[10, 2, 2, 2]).raw(&[0; 4]);
    let v1_record = v1_record.u16(1).u16(2).u32(5).u32(600).u32(UPTIME + 1).u32(UPTIME);
    let v1_record = v1_record.u16(53).u16(5353).u16(0).u8(17).u8(0).u8(0).raw(&[0; 7]);
    let mut packets = vec![(ROUTER, v1_header.raw(&v1_record.0))];
    let v5 = [(1, 6), (2, 17), (3, 1), (4, 58), (5, 132), (6, 47)]
        .iter()
        .fold(v5_header(5, 6), |packet, (number, protocol)| {
            packet.raw(&v5_record(*number, *protocol).0).u16(0)
        });
    packets.push((ROUTER, v5.clone()));
    // As many as there is room for.
    let mut without_count = v5;
    without_count.0[3] = 0;
    packets.push((ROUTER, without_count));
    packets.push((ROUTER, v5_header(6, 1).raw(&v5_record(7, 6).0).raw(&[0; 6])));
    let v7 = v5_header(7, 1).raw(&v5_record(8, 6).0).u16(0x1234).raw(&[192, 0, 2, 9]);
    packets.push((ROUTER, v7));
    for aggregation in 1..=14 {
        let header = v5_header(8, 2).raw(&[]);
        let mut header = header.0;
        header.truncate(20);
        let header = Bytes(header).u8(1).u8(2).u8(aggregation).u8(2).u32(0);
        let record: Vec<u8> = (0..88).map(|at| at * 2 + aggregation).collect();
        packets.push((ROUTER, header.raw(&record)));
    }
    packets
}

/// Flows of version 9, with what is made of them.
fn flows() -> Packets {
    let usual = template(
        256,
        &[
            (8, 4, 0),
            (12, 4, 0),
            (7, 2, 0),
            (11, 2, 0),
            (4, 1, 0),
            (1, 4, 0),
            (2, 4, 0),
            (22, 4, 0),
            (21, 4, 0),
            (61, 1, 0),
            (56, 6, 0),
            (80, 6, 0),
            (10, 4, 0),
            (34, 3, 0),
        ],
    );
    let flow = |last: u8, port: u16, protocol: u8, direction: u8| {
        let flow = Bytes::default().raw(&[172, 16, 0, last]).raw(&[203, 0, 113, last]).u16(port);
        let flow = flow.u16(443).u8(protocol).u32(1500).u32(3).u32(UPTIME - 5000).u32(UPTIME - 10);
        let flow = flow.u8(direction).raw(&[2, 0, 0, 0xab, 0xcd, last]).raw(&[6; 6]);
        flow.u32(9).raw(&[0, 1, 0])
    };
    let all = [flow(1, 51_000, 6, 0), flow(2, 443, 17, 1), flow(3, 1, 1, 2)];
    let data = all.iter().fold(Bytes::default(), |data, flow| data.raw(&flow.0));
    let v6 = template(
        257,
        &[
            (27, 16, 0),
            (28, 16, 0),
            (7, 2, 0),
            (11, 2, 0),
            (4, 1, 0),
            (85, 8, 0),
            (86, 8, 0),
            (161, 4, 0),
            (150, 4, 0),
            (152, 8, 0),
            (154, 8, 0),
            (155, 8, 0),
        ],
    );
    let address = |last: u8| Bytes::default().u64(0x2001_0db8 << 32).u64(u64::from(last)).0;
    let mapped = Bytes::default().u64(0).raw(&[0, 0, 0xff, 0xff, 127, 0, 0, 1]).0;
    let v6_flow = |source: &[u8], destination: &[u8]| {
        let flow = Bytes::default().raw(source).raw(destination).u16(5000).u16(5001).u8(17);
        let flow = flow.u64(u64::MAX).u64(1).u32(1500).u32(NOW).u64(1_790_000_000_123);
        flow.u64(0xe8d4_a510_8000_0000).u64(0xe8d4_a510_0000_0001)
    };
    let v6_data = v6_flow(&address(1), &address(2)).raw(&v6_flow(&mapped, &address(9)).0);
    // A station of a wireless network.
    let wireless = template(258, &[(365, 6, 0), (366, 4, 0), (367, 6, 0), (147, 8, 0), (61, 1, 0)]);
    let of_wireless = |direction: u8| {
        let flow = Bytes::default().raw(&[1; 6]).raw(&[10, 9, 8, 7]).raw(&[2; 6]);
        flow.raw(b"guests\0\0").u8(direction)
    };
    let wireless_data = of_wireless(0).raw(&of_wireless(1).0);
    let biflow = template(
        259,
        &[(8, 4, 0), (12, 4, 0), (231, 4, 0), (232, 4, 0), (298, 4, 0), (299, 4, 0), (239, 1, 0)],
    );
    let of_biflow = |direction: u8| {
        let flow = Bytes::default().raw(&[10, 0, 0, 1]).raw(&[8, 8, 8, 8]);
        flow.u32(100).u32(200).u32(3).u32(4).u8(direction)
    };
    let biflow_data = of_biflow(1).raw(&of_biflow(2).0);
    vec![
        (ROUTER, v9(1, 7, &[set(0, &usual.raw(&v6.0)), set(256, &data.u16(0))])),
        (ROUTER, v9(2, 7, &[set(257, &v6_data)])),
        // Another source, and another exporter: their templates are not known.
        (ROUTER, v9(3, 8, &[set(256, &all[0])])),
        ("[2001:db8::9]:4739", v9(3, 7, &[set(256, &all[0])])),
        (ROUTER, v9(4, 7, &[set(0, &wireless), set(258, &wireless_data)])),
        (ROUTER, v9(5, 7, &[set(0, &biflow), set(259, &biflow_data)])),
    ]
}

/// Types, lengths and options.
fn values() -> Packets {
    let odd = template(
        300,
        &[
            // Known names of vendors, an access list, a text, bytes, a truth value, floating-point and signed numbers.
            (33_000, 12, 0),
            (82, 6, 0),
            (313, 4, 0),
            (276, 1, 0),
            (276, 1, 0),
            (320, 8, 0),
            (434, 4, 0),
            (95, 4, 0),
            (40_000, 5, 0),
            // Not known, of a wrong length, without bytes, and there twice.
            (65_000, 3, 0),
            (8, 5, 0),
            (83, 0, 0),
            (10, 2, 0),
            (10, 2, 0),
        ],
    );
    let record = Bytes::default().raw(&[0x0f, 0x8e, 0x7f, 0xf3, 0xfc, 0x1a, 3, 0xf, 0, 0, 0, 1]);
    let record = record.raw(b"e\xfc\"1\0\0").raw(&[1, 0, 255, 7]).u8(1).u8(7);
    let record = record.u64(0x400a_0000_0000_0000).u32(0xffff_fffe).raw(&[3, 0, 0, 80]);
    let record = record.raw(b"admin").raw(&[1, 2, 3]).raw(&[1; 5]).u16(1).u16(2);
    let options = v9_options(301, &[(1, 4, 0), (2, 4, 0)], &[(34, 4, 0), (35, 1, 0), (84, 4, 0)]);
    let of_options = Bytes::default().u32(0).u32(12).u32(100).u8(2).raw(b"s1\0\0").raw(&[0; 3]);
    let without_scope = v9_options(302, &[], &[(41, 8, 0), (56, 6, 0)]);
    let of_without = Bytes::default().u64(5).raw(&[0xde, 0xad, 0xbe, 0xef, 0, 1]);
    vec![
        (ROUTER, v9(1, 0, &[set(0, &odd), set(300, &record)])),
        (ROUTER, v9(2, 0, &[set(1, &options.raw(&without_scope.0).u16(0))])),
        (ROUTER, v9(3, 0, &[set(301, &of_options), set(302, &of_without)])),
    ]
}

/// IPFIX: enterprises, fields of any length, the reverse direction, options.
fn of_ipfix() -> Packets {
    let usual = template(
        400,
        &[
            (8, 4, 0),
            (12, 4, 0),
            (4, 1, 0),
            (7, 2, 0),
            (11, 2, 0),
            (1, 8, 0),
            (1, 8, 29_305),
            (2, 8, 0),
            (2, 8, 29_305),
            (239, 1, 0),
            (161, 4, 0),
            (12_235, 0xffff, 9),
            (96, 0xffff, 0),
            (1, 4, 4242),
        ],
    );
    let flow = |last: u8, application: &[u8], name: &[u8]| {
        let flow = Bytes::default().raw(&[10, 0, 0, last]).raw(&[93, 184, 216, 34]).u8(6);
        let flow = flow.u16(40_000).u16(80).u64(1000).u64(20_000).u64(10).u64(20).u8(1).u32(2500);
        let flow = flow.u8(application.len() as u8).raw(application);
        flow.u8(255).u16(name.len() as u16).raw(name).u32(1)
    };
    let data = flow(1, b"\x03\x00\x00P", "h\u{e4}".as_bytes()).raw(&flow(2, b"", &[b'x'; 300]).0);
    let options = ipfix_options(401, &[(149, 4, 0), (145, 2, 0)], &[(41, 8, 0), (42, 8, 0)]);
    let of_options = Bytes::default().u32(9).u16(400).u64(77).u64(u64::MAX);
    vec![
        (ROUTER, ipfix(100, 9, &[set(2, &usual), set(400, &data.raw(&[0; 3]))])),
        (ROUTER, ipfix(102, 9, &[set(3, &options), set(401, &of_options)])),
        // It begins anew: the template is not known any more.
        (ROUTER, ipfix(5000, 10, &[set(2, &usual)])),
        (ROUTER, ipfix(5001, 10, &[set(400, &flow(3, b"a", b"b"))])),
        (ROUTER, ipfix(0, 10, &[set(400, &flow(4, b"a", b"b"))])),
    ]
}

/// Damaged packets.
fn damaged() -> Packets {
    let good = template(256, &[(8, 4, 0)]);
    let mut packets = vec![
        Bytes::default(),
        Bytes::default().u8(9),
        Bytes::default().u16(4).u32(0),
        Bytes::default().u16(9).u16(1).u32(0),
        v5_header(5, 3).raw(&v5_record(1, 6).0).u16(0),
        v5_header(8, 1),
        v9(1, 1, &[set(0, &template(255, &[(8, 4, 0)]))]),
        v9(1, 1, &[set(1, &Bytes::default().u16(300).u16(3).u16(4).raw(&[0; 8]))]),
        v9(1, 1, &[set(7, &Bytes::default().u32(0))]),
        v9(1, 1, &[set(0, &template(260, &[(83, 0, 0)])), set(260, &Bytes::default().u32(0))]),
        ipfix(1, 1, &[set(3, &Bytes::default().u16(300).u16(1).u16(2).raw(&[0; 8]))]),
        ipfix(1, 1, &[set(3, &Bytes::default().u16(300).u16(1).u16(0).raw(&[0; 8]))]),
        // It has begun anew, and this is in order.
        v9(2, 1, &[set(0, &good), set(256, &Bytes::default().raw(&[10, 0, 0, 1]))]),
    ];
    let mut short = ipfix(1, 1, &[set(2, &good)]);
    short.0[3] += 1;
    packets.push(short);
    packets.into_iter().map(|packet| (ROUTER, packet)).collect()
}

/// Fields of the user's own.
fn custom() -> Packets {
    let fields = template(256, &[(8, 4, 0), (33_000, 12, 0), (60_000, 3, 0), (60_001, 2, 0)]);
    let record = Bytes::default().raw(&[100, 64, 0, 1]).raw(&[1; 12]).raw(&[1, 0, 0]).u16(9);
    vec![(ROUTER, v9(1, 1, &[set(0, &fields), set(256, &record)]))]
}

/// Exporters that share their templates.
fn shared() -> Packets {
    let fields = template(256, &[(8, 4, 0)]);
    let record = Bytes::default().raw(&[100, 64, 0, 1]);
    vec![
        (ROUTER, v9(1, 1, &[set(0, &fields)])),
        ("192.0.2.2:9995", v9(2, 1, &[set(256, &record)])),
        ("192.0.2.2:9996", v9(3, 1, &[set(256, &record)])),
    ]
}

/// All cases: their names, and their packets with the exporter of each.
pub(super) fn cases() -> Vec<(&'static str, Packets)> {
    vec![
        ("fixed", fixed()),
        ("flows", flows()),
        ("values", values()),
        ("ipfix", of_ipfix()),
        ("damaged", damaged()),
        ("custom", custom()),
        ("shared", shared()),
        ("sflow", super::agents::packets()),
    ]
}
