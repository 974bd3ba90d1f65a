//! A client for the tests of the output and of the input: topics, rights, records, and the offsets of groups. Messages by `kafka-protocol`, so that our
//! records are judged by what others understand.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use kafka_protocol::messages::create_acls_request::AclCreation;
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopic;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{
    BrokerId, CreateAclsRequest, CreateTopicsRequest, FetchRequest, ListOffsetsRequest,
    MetadataRequest, OffsetFetchRequest, ProduceRequest, RequestHeader, ResponseHeader, TopicName,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion as _, Request, StrBytes};
use kafka_protocol::records::{
    Compression, Record, RecordBatchEncoder, RecordEncodeOptions, TimestampType,
};
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;
use tokio::time::Instant;

/// A test that waits longer than this has failed.
const PATIENCE: Duration = Duration::from_mins(1);
/// Before a broker is asked again.
const PAUSE: Duration = Duration::from_millis(50);
/// The error for something that a broker has not made yet.
const UNKNOWN_TOPIC: i16 = 3;

/// One record as it was read.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub(crate) partition: i32,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: String,
    pub(crate) timestamp: i64,
    pub(crate) headers: Vec<(String, String)>,
}

/// See the module's text.
pub(crate) struct Client(TcpStream);

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn named(name: &str) -> TopicName {
    TopicName(text(name))
}

impl Client {
    /// To a broker without encryption and users.
    pub(crate) fn new(broker: &str) -> Self {
        let stream = TcpStream::connect(broker).expect("a broker");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        Self(stream)
    }

    fn ask<R: Request>(&mut self, version: i16, request: &R) -> R::Response {
        let header = RequestHeader::default()
            .with_request_api_key(R::KEY)
            .with_request_api_version(version)
            .with_client_id(Some(text("judge")));
        let mut frame = BytesMut::new();
        frame.put_u32(0);
        header.encode(&mut frame, R::header_version(version)).expect("a header");
        request.encode(&mut frame, version).expect("a request");
        let length = (frame.len() - 4) as u32;
        frame[..4].copy_from_slice(&length.to_be_bytes());
        self.0.write_all(&frame).expect("it is sent");
        let mut length = [0; 4];
        self.0.read_exact(&mut length).expect("an answer");
        let mut answer = vec![0; u32::from_be_bytes(length) as usize];
        self.0.read_exact(&mut answer).expect("an answer");
        let mut answer = Bytes::from(answer);
        ResponseHeader::decode(&mut answer, R::Response::header_version(version))
            .expect("a header");
        R::Response::decode(&mut answer, version).expect("an answer")
    }

    /// Makes a topic that takes records; `settings` are the broker's. Brokers unpack what comes compressed, so that what is read here
    /// was understood by theirs, and is not compressed.
    pub(crate) fn create(&mut self, name: &str, partitions: i32, settings: &[(&str, &str)]) {
        let settings = settings.iter().chain(&[("compression.type", "uncompressed")]);
        let configs = settings.map(|(name, value)| {
            CreatableTopicConfig::default().with_name(text(name)).with_value(Some(text(value)))
        });
        let topic = CreatableTopic::default()
            .with_name(named(name))
            .with_num_partitions(partitions)
            .with_replication_factor(1)
            .with_configs(configs.collect());
        let request =
            CreateTopicsRequest::default().with_topics(vec![topic]).with_timeout_ms(30_000);
        let answer = self.ask(5, &request);
        assert_eq!(answer.topics[0].error_code, 0, "{:?}", answer.topics[0].error_message);
        // The metadata of a new topic comes before its partitions.
        let begun = Instant::now();
        while self.try_ends(name).is_none_or(|ends| ends.len() != partitions as usize) {
            assert!(begun.elapsed() < PATIENCE, "{name} is not there");
        }
    }

    /// Lets `user` do something with a resource of this type; both as the protocol numbers them.
    pub(crate) fn allow(&mut self, user: &str, resource: (i8, &str), operation: i8) {
        /// `LITERAL` and `ALLOW`.
        const LITERAL: i8 = 3;
        const ALLOW: i8 = 3;
        let creation = AclCreation::default()
            .with_resource_type(resource.0)
            .with_resource_name(text(resource.1))
            .with_resource_pattern_type(LITERAL)
            .with_principal(text(&format!("User:{user}")))
            .with_host(text("*"))
            .with_operation(operation)
            .with_permission_type(ALLOW);
        let answer = self.ask(1, &CreateAclsRequest::default().with_creations(vec![creation]));
        assert_eq!(answer.results[0].error_code, 0, "{:?}", answer.results[0].error_message);
    }

    /// The partitions of a topic; none if there is no such topic. It is not made by asking.
    pub(crate) fn partitions(&mut self, topic: &str) -> Vec<i32> {
        let wanted = MetadataRequestTopic::default().with_name(Some(named(topic)));
        let request = MetadataRequest::default()
            .with_topics(Some(vec![wanted]))
            .with_allow_auto_topic_creation(false);
        let found = self.ask(8, &request).topics.remove(0);
        if found.error_code == UNKNOWN_TOPIC {
            return Vec::new();
        }
        assert_eq!(found.error_code, 0, "{topic}");
        found.partitions.iter().map(|partition| partition.partition_index).collect()
    }

    /// The offset behind the last record of each partition; nothing if one of them is not there yet.
    fn try_ends(&mut self, topic: &str) -> Option<BTreeMap<i32, i64>> {
        let partitions = self.partitions(topic);
        let wanted = partitions.iter().map(|&number| {
            ListOffsetsPartition::default().with_partition_index(number).with_timestamp(-1)
        });
        let topic =
            ListOffsetsTopic::default().with_name(named(topic)).with_partitions(wanted.collect());
        let request =
            ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![topic]);
        let answer = self.ask(4, &request);
        let partitions = answer.topics.iter().flat_map(|topic| &topic.partitions);
        partitions
            .map(|partition| {
                let place = (partition.partition_index, partition.offset);
                (partition.error_code == 0).then_some(place)
            })
            .collect()
    }

    /// All that is in a topic, each partition in its order. Nothing if there is no such topic.
    pub(crate) fn read(&mut self, topic: &str) -> Vec<Taken> {
        let mut taken = Vec::new();
        for (partition, end) in self.try_ends(topic).expect("all partitions are there") {
            let begun = Instant::now();
            let mut next = 0;
            while next < end {
                assert!(begun.elapsed() < PATIENCE, "{topic}: {next} of {end}");
                next = self.fetch(topic, partition, next, &mut taken);
            }
        }
        taken
    }

    /// Sends records to the first partition of a topic.
    pub(crate) fn produce(&mut self, topic: &str, values: impl Iterator<Item = String>) {
        let record = |(place, value): (usize, String)| Record {
            transactional: false,
            control: false,
            delete_horizon: false,
            partition_leader_epoch: 0,
            producer_id: -1,
            producer_epoch: -1,
            timestamp_type: TimestampType::Creation,
            timestamp: 1_700_000_000_000,
            sequence: place as i32,
            offset: place as i64,
            key: None,
            value: Some(Bytes::from(value)),
            headers: Default::default(),
        };
        let records: Vec<Record> = values.enumerate().map(record).collect();
        let mut bytes = BytesMut::new();
        let options = RecordEncodeOptions { version: 2, compression: Compression::None };
        RecordBatchEncoder::encode(&mut bytes, records.iter(), &options).expect("records");
        let partition =
            PartitionProduceData::default().with_index(0).with_records(Some(bytes.freeze()));
        let topic = TopicProduceData::default()
            .with_name(named(topic))
            .with_partition_data(vec![partition]);
        let request = ProduceRequest::default()
            .with_acks(1)
            .with_timeout_ms(30_000)
            .with_topic_data(vec![topic]);
        let answer = self.ask(8, &request);
        assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
    }

    /// The records of a topic, from the first one that it ever had. Nothing if a partition is not there yet.
    pub(crate) fn records(&mut self, topic: &str) -> Option<usize> {
        let ends = self.try_ends(topic)?;
        ends.values().map(|end| usize::try_from(*end).ok()).sum()
    }

    /// The offsets that a group has committed, of all partitions together. Waits for a broker that has not loaded them.
    pub(crate) fn committed(&mut self, group: &str, topic: &str) -> usize {
        let partitions = self.partitions(topic);
        let wanted = OffsetFetchRequestTopic::default()
            .with_name(named(topic))
            .with_partition_indexes(partitions);
        let request = OffsetFetchRequest::default()
            .with_group_id(text(group).into())
            .with_topics(Some(vec![wanted]));
        let begun = Instant::now();
        let answer = loop {
            let answer = self.ask(5, &request);
            if answer.error_code == 0 {
                break answer;
            }
            assert!(begun.elapsed() < PATIENCE, "{group}: error {}", answer.error_code);
            std::thread::park_timeout(PAUSE);
        };
        let found = answer.topics.iter().flat_map(|topic| &topic.partitions);
        found.map(|found| usize::try_from(found.committed_offset).unwrap_or(0)).sum()
    }

    /// Reads records from this offset on; gives the next one.
    fn fetch(&mut self, topic: &str, partition: i32, from: i64, taken: &mut Vec<Taken>) -> i64 {
        let wanted = FetchPartition::default()
            .with_partition(partition)
            .with_fetch_offset(from)
            .with_partition_max_bytes(8 << 20);
        let topic = FetchTopic::default().with_topic(named(topic)).with_partitions(vec![wanted]);
        let request = FetchRequest::default()
            .with_replica_id(BrokerId(-1))
            .with_max_wait_ms(100)
            .with_min_bytes(1)
            .with_max_bytes(64 << 20)
            .with_session_epoch(-1)
            .with_topics(vec![topic]);
        let answer = self.ask(11, &request);
        let found = &answer.responses[0].partitions[0];
        assert_eq!(found.error_code, 0);
        let mut bytes = found.records.clone().unwrap_or_default();
        let mut next = from;
        while bytes.len() > 12 {
            let first = bytes.get_i64();
            let length = bytes.get_i32() as usize;
            if length > bytes.len() {
                // The rest comes with the next answer.
                break;
            }
            next = read_batch(bytes.split_to(length), partition, (first, from), taken);
        }
        next
    }
}

/// Reads a batch behind its length; gives the offset behind its last record.
fn read_batch(
    mut batch: Bytes,
    partition: i32,
    (first, from): (i64, i64),
    taken: &mut Vec<Taken>,
) -> i64 {
    batch.advance(4);
    assert_eq!(batch.get_u8(), 2, "the format");
    let sum = batch.get_u32();
    assert_eq!(
        sum,
        crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &batch) as u32,
        "the checksum"
    );
    let attributes = batch.get_i16();
    assert_eq!(attributes & 7, 0, "it is not compressed");
    let last = batch.get_i32();
    let time = batch.get_i64();
    batch.advance(8 + 8 + 2 + 4);
    for _ in 0..batch.get_i32() {
        let length = varint(&mut batch) as usize;
        let mut record = batch.split_to(length);
        record.advance(1);
        let timestamp = time + varint(&mut record);
        let offset = first + varint(&mut record);
        let key = bytes(&mut record).map(|key| key.to_vec());
        let value = bytes(&mut record).unwrap_or_default();
        let value = String::from_utf8_lossy(&value).into_owned();
        let mut headers = Vec::new();
        for _ in 0..varint(&mut record) {
            let mut part = || bytes(&mut record).expect("it is there");
            let pair = [part(), part()].map(|part| String::from_utf8_lossy(&part).into_owned());
            headers.push(pair.into());
        }
        assert!(record.is_empty(), "all of it was read");
        if offset >= from {
            taken.push(Taken { partition, key, value, timestamp, headers });
        }
    }
    assert!(batch.is_empty(), "all of it was read");
    first + i64::from(last) + 1
}

fn bytes(from: &mut Bytes) -> Option<Bytes> {
    let length = varint(from);
    usize::try_from(length).ok().map(|length| from.split_to(length))
}

fn varint(from: &mut Bytes) -> i64 {
    let mut value = 0_u64;
    for shift in (0..70).step_by(7) {
        let byte = from.get_u8();
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    (value >> 1) as i64 ^ -((value & 1) as i64)
}
