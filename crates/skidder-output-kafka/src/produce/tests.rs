//! Requests and answers against those of another implementation.

use super::*;
use crate::config::Compression;
use bytes::{Buf as _, Bytes, BytesMut};
use kafka_protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, PartitionProduceResponse, TopicProduceResponse,
};
use kafka_protocol::messages::{ProduceRequest, ProduceResponse, RequestHeader, TopicName};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use kafka_protocol::records::RecordBatchDecoder;

fn records(count: usize, size: usize) -> Records {
    let mut records = Records::default();
    for number in 0..count {
        let pushed = records.push(number as i64, None, &[0], |out| {
            out.resize(out.len() + size, b'x');
            Ok::<(), ()>(())
        });
        pushed.expect("it has a value");
    }
    records
}

fn parcel(topic: &str, partition: i32, records: Records) -> Parcel {
    Parcel { topic: topic.into(), partition, records, sequence: None }
}

/// Writes a frame in pieces of at most so many bytes.
fn written(mut frame: Frame, most: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while !frame.is_written() {
        let before = out.len();
        for piece in frame.rest() {
            let room = most - (out.len() - before);
            out.extend_from_slice(&piece[..piece.len().min(room)]);
        }
        frame.advance(out.len() - before);
    }
    assert_eq!(out.len(), frame.len());
    out
}

#[test]
fn another_implementation_understands_requests() {
    for version in 3..=8 {
        for most in [1000, 100_000, usize::MAX] {
            let terms = Terms { version, client_id: "me", acks: -1, timeout: 1234 };
            let parcels = vec![
                parcel("a", 0, records(3, 10)),
                parcel("a", 7, records(100, 1000)),
                parcel("b", 1, records(1, 20_000)),
                parcel("b", 2, records(1, 1)),
            ];
            let mut compressor = Compressor::new(Compression::None, 0);
            let mut freed = 0;
            let frame = Frame::new(42, parcels, &terms, &mut compressor, |_| freed += 1);
            assert_eq!(freed, 2, "small ones are copied");
            let mut bytes = Bytes::from(written(frame, most));
            assert_eq!(bytes.get_u32() as usize, bytes.len());
            let header = RequestHeader::decode(&mut bytes, 1).expect("a header");
            assert_eq!((header.request_api_key, header.request_api_version), (0, version));
            assert_eq!((header.correlation_id, header.client_id.as_deref()), (42, Some("me")));
            let request = ProduceRequest::decode(&mut bytes, version).expect("a request");
            assert!(bytes.is_empty(), "all of it was read");
            assert_eq!((request.acks, request.timeout_ms), (-1, 1234));
            let mut found = Vec::new();
            for topic in request.topic_data {
                for partition in topic.partition_data {
                    let mut bytes = partition.records.expect("records");
                    let batch = RecordBatchDecoder::decode(&mut bytes).expect("a batch");
                    found.push((topic.name.to_string(), partition.index, batch.records.len()));
                }
            }
            let expected = [("a", 0, 3), ("a", 7, 100), ("b", 1, 1), ("b", 2, 1)];
            assert_eq!(found, expected.map(|(name, index, count)| (name.to_owned(), index, count)));
        }
    }
}

#[test]
fn a_compressed_batch_has_its_codec_and_its_checksum() {
    for (_, compression) in Compression::WORDS {
        let mut compressor = Compressor::new(compression, 4);
        let terms = Terms { version: 7, client_id: "", acks: 1, timeout: 1 };
        let parcels = vec![parcel("a", 0, records(50, 1000))];
        let number = compressor.number();
        let frame = Frame::new(1, parcels, &terms, &mut compressor, drop);
        let mut bytes = Bytes::from(written(frame, usize::MAX));
        bytes.advance(4);
        RequestHeader::decode(&mut bytes, 1).expect("a header");
        let request = ProduceRequest::decode(&mut bytes, 7).expect("a request");
        let mut bytes = request.topic_data[0].partition_data[0].records.clone().expect("records");
        let unpack = |packed: &mut Bytes, codec: kafka_protocol::records::Compression| {
            assert_eq!(codec as i16, number);
            assert!(number == 0 || packed.len() < 10_000);
            Ok(Bytes::from(records(50, 1000).bytes))
        };
        let batch = RecordBatchDecoder::decode_with_custom_compression(&mut bytes, Some(unpack));
        assert_eq!(batch.expect("a batch").records.len(), 50, "{compression:?}");
    }
}

fn addresses() -> Vec<(Arc<str>, i32)> {
    [("a", 0), ("a", 7), ("b", 1)].map(|(topic, number)| (topic.into(), number)).to_vec()
}

/// The answer to [`addresses`], in another order, with one error.
fn answer(version: i16) -> Vec<u8> {
    let text = StrBytes::from_static_str;
    let partition = |index: i32, code: i16| {
        let error = BatchIndexAndErrorMessage::default()
            .with_batch_index(3)
            .with_batch_index_error_message(Some(text("no key")));
        PartitionProduceResponse::default()
            .with_index(index)
            .with_error_code(code)
            .with_base_offset(5)
            .with_record_errors(if code == 0 || version < 8 { vec![] } else { vec![error] })
    };
    let topic = |name: &'static str, partitions| {
        TopicProduceResponse::default()
            .with_name(TopicName(text(name)))
            .with_partition_responses(partitions)
    };
    let answer = ProduceResponse::default().with_responses(vec![
        topic("b", vec![partition(1, 0)]),
        topic("a", vec![partition(7, 87), partition(0, 0)]),
    ]);
    let mut bytes = BytesMut::new();
    answer.encode(&mut bytes, version).expect("it can be encoded");
    bytes.to_vec()
}

#[test]
fn answers_are_understood_in_every_version_and_order() {
    for version in 3..=8 {
        let found = read_answer(&answer(version), version, &addresses()).expect("an answer");
        let codes: Vec<i16> = found.iter().map(|outcome| outcome.code.0).collect();
        assert_eq!(codes, [0, 87, 0], "{version}");
        if version >= 8 {
            assert_eq!((&found[1].rows[..], found[1].text.as_deref()), (&[3][..], Some("no key")));
        }
    }
}

#[test]
fn an_answer_that_is_cut_or_about_something_else_is_told() {
    for version in 3..=8 {
        let whole = answer(version);
        for end in 0..whole.len() - 4 {
            read_answer(&whole[..end], version, &addresses()).expect_err("it is cut");
        }
        for place in 0..whole.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut wrong = whole.clone();
                wrong[place] = byte;
                // For any such bytes there is an outcome for each batch, or an error.
                if let Ok(outcomes) = read_answer(&wrong, version, &addresses()) {
                    assert_eq!(outcomes.len(), 3);
                }
            }
        }
        let fewer = &addresses()[..2];
        read_answer(&whole, version, fewer).expect_err("one was not sent");
        let mut more = addresses();
        more.push(("c".into(), 0));
        read_answer(&whole, version, &more).expect_err("one is missing");
    }
}
