//! Packets that are in order, that are not, and very many of them.

mod agents;
mod packets;
mod sampled;
mod sflow;

use crate::*;
use packets::{Bytes, cases, ipfix, set, template, v9};
use skidder_testkit::{Random, rounds};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

const AT: fn(u64) -> Duration = Duration::from_secs;

fn settings() -> Settings {
    Settings {
        protocols: Protocol::WORDS.iter().map(|(_, protocol)| *protocol).collect(),
        fields: Fields::known(),
        expiration: AT(1800),
        detect_reset: true,
        share_templates: false,
    }
}

fn router(port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], port))
}

/// The flows of a packet, as text.
fn decode(decoder: &mut Decoder, packet: &Bytes, from: SocketAddr, now: Duration) -> Vec<String> {
    let mut flows = Vec::new();
    let _damage = decoder.packet(&packet.0, from, now, &mut |flow| {
        let values = flow.values.iter().map(|(field, value)| format!("{}={value:?}", field.name));
        flows.push(format!("{} {}", flow.from, values.collect::<Vec<_>>().join(" ")));
    });
    flows
}

/// The packets for the comparison with Filebeat are those that are made here.
#[test]
fn packets_of_the_golden_files_are_made_here() {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata");
    for (name, packets) in cases() {
        let mut text = String::new();
        for (source, packet) in packets {
            write!(text, "{{\"source\": \"{source}\", \"hex\": \"").unwrap();
            for byte in packet.0 {
                write!(text, "{byte:02x}").unwrap();
            }
            text.push_str("\"}\n");
        }
        let path = directory.join(format!("{name}.packets.jsonl"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let stored = std::fs::read_to_string(&path).unwrap();
        assert_eq!(stored, text, "{name}: run with UPDATE_GOLDEN=1, and Filebeat over it");
    }
}

fn one_field() -> Bytes {
    set(0, &template(256, &[(8, 4, 0)]))
}

fn one_flow(last: u8) -> Bytes {
    set(256, &Bytes::default().raw(&[10, 0, 0, last]))
}

#[test]
fn data_waits_for_its_template_and_comes_in_its_order() {
    let mut decoder = Decoder::new(settings());
    for number in 1..=3 {
        let packet = v9(number, 5, &[one_flow(number as u8)]);
        assert!(decode(&mut decoder, &packet, router(1), AT(1)).is_empty());
    }
    assert!(decode(&mut decoder, &v9(4, 6, &[one_field()]), router(1), AT(2)).is_empty());
    assert!(decode(&mut decoder, &v9(4, 5, &[one_field()]), router(2), AT(2)).is_empty());
    let flows = decode(&mut decoder, &v9(4, 5, &[one_field(), one_flow(4)]), router(1), AT(2));
    let expected: Vec<String> = (1..=4)
        .map(|last| format!("192.0.2.1:1 source_ipv4_address=Address(10.0.0.{last})"))
        .collect();
    assert_eq!(flows, expected);
    let counts = decoder.counts();
    assert_eq!((counts.without_template, counts.decoded_later, counts.given_up), (3, 3, 0));
    assert_eq!((counts.flows, counts.packets, counts.errors), (4, 6, 0));
    decode(&mut decoder, &v9(5, 9, &[one_flow(5)]), router(1), AT(3));
    decoder.expire(AT(3000));
    assert_eq!(decoder.counts().given_up, 1);
}

#[test]
fn sets_beyond_the_number_of_the_header_are_read() {
    // softflowd 1.0 counts the flows of the first template only.
    for count in [0, 1, 2, 9] {
        let mut packet = v9(1, 5, &[one_field(), one_flow(1)]);
        packet.0[2..4].copy_from_slice(&u16::to_be_bytes(count));
        let mut decoder = Decoder::new(settings());
        assert_eq!(decode(&mut decoder, &packet, router(1), AT(0)).len(), 1, "{count}");
    }
}

#[test]
fn unused_templates_are_forgotten_and_used_ones_stay() {
    let mut decoder = Decoder::new(settings());
    decode(&mut decoder, &v9(1, 1, &[one_field()]), router(1), AT(0));
    decode(&mut decoder, &v9(1, 2, &[one_field()]), router(1), AT(0));
    decoder.expire(AT(1799));
    assert_eq!((decoder.sources(), decoder.templates()), (2, 2));
    assert_eq!(decode(&mut decoder, &v9(2, 1, &[one_flow(1)]), router(1), AT(1799)).len(), 1);
    decoder.expire(AT(1800));
    assert_eq!((decoder.sources(), decoder.templates()), (1, 1));
    assert_eq!(decoder.counts().templates_forgotten, 1);
    decoder.set(Settings { expiration: Duration::ZERO, ..settings() }, AT(1800));
    decoder.expire(AT(1_000_000));
    assert_eq!(decoder.templates(), 1, "it has no limit");
}

#[test]
fn an_exporter_that_begins_anew_loses_its_templates_and_one_that_lost_packets_does_not() {
    for (detect_reset, expected) in [(true, 0), (false, 1)] {
        let mut decoder = Decoder::new(Settings { detect_reset, ..settings() });
        decode(&mut decoder, &v9(5000, 1, &[one_field()]), router(1), AT(0));
        let flows = decode(&mut decoder, &v9(900_000, 1, &[one_flow(1)]), router(1), AT(1));
        assert_eq!(flows.len(), 1, "packets were lost");
        let flows = decode(&mut decoder, &v9(3, 1, &[one_flow(2)]), router(1), AT(2));
        assert_eq!(flows.len(), expected);
        assert_eq!(decoder.counts().resets, u64::from(detect_reset));
    }
}

#[test]
fn templates_survive_as_text_and_are_not_checked_against_the_old_sequence() {
    let mut decoder = Decoder::new(settings());
    for (_, packets) in cases() {
        for (source, packet) in packets {
            decode(&mut decoder, &packet, source.parse().unwrap(), AT(0));
        }
    }
    assert!(decoder.take_changed());
    let saved = decoder.save();
    let mut next = Decoder::new(settings());
    assert_eq!(next.restore(&saved, AT(0)), Ok(decoder.templates()));
    assert!(decoder.templates() > 8);
    assert!(!next.take_changed());
    assert_eq!(next.save(), saved);
    let from = "192.0.2.1:2055".parse().unwrap();
    let flow = decode(&mut next, &v9(0, 1, &[one_flow(9)]), from, AT(1));
    assert_eq!(flow, ["192.0.2.1:2055 source_ipv4_address=Address(10.0.0.9)"]);
    let mut shared = Decoder::new(Settings { share_templates: true, ..settings() });
    assert_eq!(shared.restore(&saved, AT(0)), Ok(0), "they were of single exporters");
    decode(&mut shared, &v9(1, 1, &[one_field()]), from, AT(0));
    assert!(shared.save().contains("9 - 1 256 - 0.8:4\n"), "{}", shared.save());
}

#[test]
fn damaged_text_restores_nothing() {
    for (text, expected) in [
        ("", RestoreError::Version),
        ("skidder-netflow 2\nend 0\n", RestoreError::Version),
        ("skidder-netflow 1\n", RestoreError::Cut),
        ("skidder-netflow 1\nend 1\n", RestoreError::Cut),
        ("skidder-netflow 1\nend 0", RestoreError::Cut),
        ("skidder-netflow 1\n9 - 0 256 - 0.8:4\n9 - 0 256 -\nend 2\n", RestoreError::Line(3)),
        ("skidder-netflow 1\n5 - 0 256 - 0.8:4\nend 1\n", RestoreError::Line(2)),
        ("skidder-netflow 1\n9 - 0 255 - 0.8:4\nend 1\n", RestoreError::Line(2)),
        ("skidder-netflow 1\n9 - 0 256 2 0.8:4\nend 1\n", RestoreError::Line(2)),
        ("skidder-netflow 1\n9 here 0 256 - 0.8:4\nend 1\n", RestoreError::Line(2)),
        ("skidder-netflow 1\n9 - 0 256 - 0.8:70000\nend 1\n", RestoreError::Line(2)),
    ] {
        let mut decoder = Decoder::new(Settings { share_templates: true, ..settings() });
        assert_eq!(decoder.restore(text, AT(0)), Err(expected), "{text}");
        assert_eq!(decoder.templates(), 0);
    }
}

#[test]
fn what_comes_before_the_damage_is_decoded() {
    let mut decoder = Decoder::new(settings());
    let packet = v9(1, 1, &[one_field(), one_flow(1), set(9, &Bytes::default())]);
    assert_eq!(decode(&mut decoder, &packet, router(1), AT(0)).len(), 1);
    assert_eq!((decoder.counts().errors, decoder.counts().packets), (1, 0));
    let mut each = |_: &Flow<'_>| {};
    for (packet, expected) in [
        (&[0][..], "too short for a version"),
        (&[0, 4, 0, 0], "no packet of NetFlow, IPFIX or sFlow: it begins with 0x0004"),
        (b"hello world", "no packet of NetFlow, IPFIX or sFlow: it begins with 0x6865"),
        (&[0, 9, 0, 0], "version 9 is damaged: it is shorter than its header"),
    ] {
        let error = decoder.packet(packet, router(1), AT(0), &mut each).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    let mut decoder = Decoder::new(Settings { protocols: vec![Protocol::V5], ..settings() });
    let error = decoder.packet(&v9(1, 1, &[]).0, router(1), AT(0), &mut each).unwrap_err();
    assert_eq!(error, PacketError::NotConfigured(Protocol::V9));
    assert_eq!(error.to_string(), "packets of `v9` are not decoded: add `v9` to `protocols`");
}

#[test]
fn fields_without_bytes_do_not_make_a_packet_larger_than_it_is() {
    let mut fields = vec![(83, 0, 0); 400];
    for (at, field) in fields.iter_mut().enumerate() {
        // Texts and bytes, each with a name of its own.
        let id = [82, 83, 84, 90, 94, 96, 100, 103, 104, 147, 194, 197, 198][at % 13];
        *field = (id, 0, 0);
    }
    fields.push((4, 1, 0));
    let mut decoder = Decoder::new(settings());
    let bomb = ipfix(1, 1, &[set(2, &template(256, &fields)), set(256, &Bytes(vec![6; 60_000]))]);
    let mut values = 0;
    let decoded =
        decoder.packet(&bomb.0, router(1), AT(0), &mut |flow| values += flow.values.len());
    assert!(decoded.unwrap_err().to_string().contains("more fields than bytes"));
    assert!((60_000..=1 << 16).contains(&values), "{values}");
}

/// Changes some bytes of a packet, or its length.
fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len().max(1) as u64) as usize;
        match random.below(6) {
            0 => bytes.truncate(at),
            1 => bytes.extend((0..random.below(40)).map(|byte| byte as u8)),
            2 if !bytes.is_empty() => drop(bytes.remove(at)),
            3 => bytes.insert(at, random.below(256) as u8),
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = [0, 1, 255, random.below(256) as u8][random.below(4) as usize];
                }
            }
        }
    }
}

/// Rounds of the ordinary test run: decoders.
const ROUNDS: u64 = 80;

/// Packets of a round.
const PACKETS: u64 = 150;

/// Random and changed packets of many exporters of all protocols: no packet ends the decoder, all of them are counted, and
/// what is kept is bounded.
#[test]
fn fuzz_whatever_comes_the_decoder_goes_on_and_counts() {
    let packets: Vec<Vec<u8>> = cases()
        .into_iter()
        .flat_map(|(_, packets)| packets.into_iter().map(|(_, packet)| packet.0))
        .collect();
    let (mut decoded_flows, mut decoders) = (0, 0);
    rounds(ROUNDS, |_, random| {
        let mut decoder = Decoder::new(Settings {
            share_templates: random.one_in(4),
            detect_reset: random.one_in(2),
            ..settings()
        });
        let (mut sent, mut seen) = (0, 0);
        for step in 0..PACKETS {
            let mut packet = if random.one_in(10) {
                let len = random.below(200);
                let version = [0, 5, 0, 9, 0, 10][random.below(3) as usize * 2 + 1];
                [0, version].into_iter().chain((0..len).map(|_| random.below(256) as u8)).collect()
            } else {
                packets[random.below(packets.len() as u64) as usize].clone()
            };
            if !random.one_in(3) {
                mutate(random, &mut packet);
            }
            let from = router(random.below(50) as u16);
            let now = AT(step);
            sent += 1;
            let _damage = decoder.packet(&packet, from, now, &mut |flow| {
                seen += 1;
                let scope = match flow.kind {
                    FlowKind::Options { scope } => scope,
                    FlowKind::Flow => 0,
                };
                assert!(scope <= flow.values.len());
                for values in [&flow.values[..scope], &flow.values[scope..]] {
                    let mut names: Vec<&str> =
                        values.iter().map(|(field, _)| &*field.name).collect();
                    names.sort_unstable();
                    assert!(names.windows(2).all(|two| two[0] != two[1]), "{names:?}");
                }
            });
            if random.one_in(50) {
                decoder.expire(now);
            }
            if random.one_in(500) {
                let saved = decoder.save();
                let shares = decoder.settings().share_templates;
                let mut other = Decoder::new(Settings { share_templates: shares, ..settings() });
                assert_eq!(other.restore(&saved, now), Ok(decoder.templates()));
                assert_eq!(other.save(), saved);
            }
        }
        let counts = decoder.counts();
        assert_eq!(counts.packets + counts.errors, sent);
        assert_eq!(counts.flows, seen);
        assert!(counts.decoded_later + counts.given_up <= counts.without_template);
        decoded_flows += counts.flows;
        decoders += 1;
    });
    assert!(
        decoded_flows > decoders * 30,
        "the packets are not only refused: {decoded_flows} of {decoders} decoders"
    );
}
