//! Packets as another implementation writes them, and damaged ones.

use super::*;
use crate::mqtt::broker::{new, no_properties, old};
use rumqttc::mqttbytes as their4;
use rumqttc::v5::mqttbytes as their5;
use skidder_testkit::rounds;

/// Rounds of the ordinary test run.
const ROUNDS: u64 = 5_000;

/// All packets in bytes that come in two parts.
fn decode(
    version: Version,
    bytes: &[u8],
    cut: usize,
    bound: usize,
) -> Result<Vec<String>, BadPacket> {
    let mut decoder = Decoder::new(version, bound);
    let mut packets = Vec::new();
    let mut buffer = Vec::new();
    for part in [&bytes[..cut], &bytes[cut..]] {
        buffer.extend_from_slice(part);
        loop {
            let (used, packet) = decoder.next(&buffer)?;
            let is_last = packet.is_none();
            packets.extend(packet.map(|packet| format!("{packet:?}")));
            buffer.drain(..used);
            if is_last {
                break;
            }
        }
    }
    Ok(packets)
}

fn samples(version: Version) -> Vec<u8> {
    let mut all = Vec::new();
    if version == Version::V311 {
        use their4::v4::*;
        let code = ConnectReturnCode::Success;
        all.extend(old(&Packet::ConnAck(ConnAck { session_present: true, code })));
        let mut publish = Publish::new("a/b", their4::QoS::ExactlyOnce, "text");
        (publish.pkid, publish.dup, publish.retain) = (7, true, true);
        all.extend(old(&Packet::Publish(publish)));
        all.extend(old(&Packet::Publish(Publish::new("a", their4::QoS::AtMostOnce, ""))));
        all.extend(old(&Packet::PubRel(PubRel::new(258))));
        let codes = vec![
            SubscribeReasonCode::Success(their4::QoS::AtLeastOnce),
            SubscribeReasonCode::Failure,
        ];
        all.extend(old(&Packet::SubAck(SubAck::new(1, codes))));
        all.extend([0xd0, 0]);
        return all;
    }
    use their5::v5::*;
    let properties = ConnAckProperties {
        session_expiry_interval: Some(70_000),
        receive_max: Some(3),
        max_qos: Some(1),
        reason_string: Some("line\nbreak".to_owned()),
        user_properties: vec![("a".to_owned(), "b".to_owned())],
        server_keep_alive: Some(300),
        authentication_data: Some(vec![1, 2].into()),
        max_packet_size: Some(1 << 20),
        ..no_properties()
    };
    let code = ConnectReturnCode::Success;
    let properties = Some(properties);
    all.extend(new(&Packet::ConnAck(ConnAck { session_present: true, code, properties })));
    let properties = PublishProperties {
        message_expiry_interval: Some(5),
        subscription_identifiers: vec![300],
        content_type: Some("text".to_owned()),
        ..PublishProperties::default()
    };
    let mut publish = Publish::new("a/b", their5::QoS::ExactlyOnce, "text", Some(properties));
    (publish.pkid, publish.dup, publish.retain) = (7, true, true);
    all.extend(new(&Packet::Publish(publish)));
    all.extend(new(&Packet::Publish(Publish::new("a", their5::QoS::AtMostOnce, "", None))));
    all.extend(new(&Packet::PubRel(PubRel::new(258, None))));
    let properties =
        SubAckProperties { reason_string: Some("no".to_owned()), user_properties: Vec::new() };
    let return_codes = vec![
        SubscribeReasonCode::Success(their5::QoS::AtLeastOnce),
        SubscribeReasonCode::NotAuthorized,
    ];
    all.extend(new(&Packet::SubAck(SubAck {
        pkid: 1,
        return_codes,
        properties: Some(properties),
    })));
    all.extend([0xd0, 0]);
    // As the specification has it: the other implementation writes a wrong length.
    all.extend([0xe0, 1, 0x8e]);
    all.extend([0xe0, 0]);
    all
}

#[test]
fn packets_of_another_implementation_are_read_wherever_they_are_cut() {
    let message = |retained: &str| {
        format!(
            "Message(Message {{ topic: \"a/b\", payload: [116, 101, 120, 116], id: 7, qos: 2, {retained}, is_cut: false }})"
        )
    };
    let empty = "Message(Message { topic: \"a\", payload: [], id: 0, qos: 0, is_duplicate: false, is_retained: false, is_cut: false })";
    let message = message("is_duplicate: true, is_retained: true");
    for (version, expected) in [
        (
            Version::V311,
            vec![
                "Connected(Connected { code: 0, has_session: true, keep_alive: None, session_expiry: None, words: None })",
                &message,
                empty,
                "Release(258)",
                "Subscribed { id: 1, codes: [1, 128], words: None }",
                "Pong",
            ],
        ),
        (
            Version::V5,
            vec![
                "Connected(Connected { code: 0, has_session: true, keep_alive: Some(300), session_expiry: Some(70000), \
                 words: Some(\"line break\") })",
                &message,
                empty,
                "Release(258)",
                "Subscribed { id: 1, codes: [1, 135], words: Some(\"no\") }",
                "Pong",
                "Disconnect { code: 142, words: None }",
                "Disconnect { code: 0, words: None }",
            ],
        ),
    ] {
        let bytes = samples(version);
        for cut in 0..=bytes.len() {
            assert_eq!(decode(version, &bytes, cut, 1000).expect("packets"), expected, "{cut}");
        }
    }
}

/// Whatever the bytes are and however they are cut, the same packets are found. `cargo xtask fuzz` runs more rounds.
#[test]
fn fuzz_damaged_packets_are_the_same_wherever_they_are_cut() {
    rounds(ROUNDS, |seed, random| {
        let version = if random.one_in(2) { Version::V311 } else { Version::V5 };
        let mut bytes = samples(version);
        for _ in 0..=random.below(4) {
            let place = random.below(bytes.len() as u64) as usize;
            bytes[place] = random.below(256) as u8;
        }
        let cut = random.below(bytes.len() as u64 + 1) as usize;
        let whole = decode(version, &bytes, bytes.len(), 8);
        assert_eq!(decode(version, &bytes, cut, 8), whole, "seed {seed}, cut at {cut}");
        assert!(whole.is_err() || whole.is_ok_and(|packets| packets.len() <= bytes.len()));
    });
}

#[test]
fn a_length_that_the_bytes_do_not_have_is_not_waited_for() {
    for version in [Version::V311, Version::V5] {
        // Lengths that the bytes do not have: a message is cut at the bound, anything else is refused.
        let endless = |first: u8| {
            [&[first, 0xff, 0xff, 0xff, 0x7f][..], b"\0\x01a\0\0", &vec![0; 70 << 10]].concat()
        };
        let (used, packet) = Decoder::new(version, 8)
            .next(&endless(0x30))
            .map(|(used, packet)| (used, format!("{packet:?}")))
            .expect("a message");
        assert!(
            used <= 5 + CONTROL_BYTES_MAX + 8 && packet.contains("is_cut: true"),
            "{used} {packet}"
        );
        for first in [0x20, 0x62, 0x90, 0xd0, 0xe0, 0xf0] {
            assert!(Decoder::new(version, 8).next(&endless(first)).is_err(), "{first}");
        }
    }
}
