//! The contract of inputs, kept with a real broker.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopic;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{
    CreateTopicsRequest, MetadataRequest, OffsetFetchRequest, ProduceRequest, RequestHeader,
    ResponseHeader, TopicName,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion as _, Request, StrBytes};
use kafka_protocol::records::{
    Compression, Record, RecordBatchEncoder, RecordEncodeOptions, TimestampType,
};
use skidder_config::{Problems, Settings};
use skidder_contract::line;
use skidder_contract::{FarSideFuture, InputTrial, Meaning, keep_input};
use skidder_input::Input;
use skidder_os::{Fs, RealFs};
use skidder_testkit::kafka::Kafka;
use skidder_testkit::servers::unique_name;
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

/// A test that waits longer than this has failed.
const PATIENCE: Duration = Duration::from_mins(1);

/// A client for tests, whose messages are those of another implementation.
struct Client(TcpStream);

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

impl Client {
    fn new(broker: &str) -> Self {
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
        let decoded = R::Response::decode(&mut answer, version).expect("an answer");
        assert!(!answer.has_remaining(), "all of it was read");
        decoded
    }

    /// Makes a topic of one partition.
    fn create(&mut self, name: &str) {
        let topic = CreatableTopic::default()
            .with_name(TopicName(text(name)))
            .with_num_partitions(1)
            .with_replication_factor(1);
        let request =
            CreateTopicsRequest::default().with_topics(vec![topic]).with_timeout_ms(30_000);
        let answer = self.ask(5, &request);
        assert_eq!(answer.topics[0].error_code, 0, "{:?}", answer.topics[0].error_message);
        let wanted = MetadataRequestTopic::default().with_name(Some(TopicName(text(name))));
        let request = MetadataRequest::default().with_topics(Some(vec![wanted]));
        let begun = Instant::now();
        loop {
            let found = self.ask(8, &request);
            let partitions = &found.topics[0].partitions;
            if partitions.iter().any(|partition| partition.leader_id.0 >= 0) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{name} is not there");
        }
    }

    fn produce(&mut self, topic: &str, values: impl Iterator<Item = String>) {
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
            .with_name(TopicName(text(topic)))
            .with_partition_data(vec![partition]);
        let request = ProduceRequest::default()
            .with_acks(1)
            .with_timeout_ms(30_000)
            .with_topic_data(vec![topic]);
        let answer = self.ask(8, &request);
        assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
    }

    /// The offset that a group has committed.
    fn committed(&mut self, group: &str, topic: &str) -> usize {
        let topic = OffsetFetchRequestTopic::default()
            .with_name(TopicName(text(topic)))
            .with_partition_indexes(vec![0]);
        let request = OffsetFetchRequest::default()
            .with_group_id(text(group).into())
            .with_topics(Some(vec![topic]));
        let answer = self.ask(5, &request);
        let found = answer.topics.first().and_then(|topic| topic.partitions.first());
        found.map_or(0, |found| usize::try_from(found.committed_offset).unwrap_or(0))
    }
}

/// The input of these settings.
fn input(settings: &str) -> Box<dyn Input> {
    let problems = Problems::new();
    let settings = Settings::parse("x", settings).expect("YAML");
    let section = settings.root(&problems);
    section.declared_by(&skidder_input_kafka::KAFKA_INPUT);
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let read = skidder_input_kafka::read(&section, &fs, (Default::default(), 10 << 20));
    section.finish();
    Box::new(read.unwrap_or_else(|| panic!("{problems}")))
}

struct Trial {
    broker: String,
    topic: String,
    /// What was sent, in the order of its offsets.
    sent: Mutex<Vec<usize>>,
    settings: &'static str,
}

impl InputTrial for Trial {
    fn input(&self) -> Box<dyn Input> {
        let Self { broker, topic, settings, .. } = self;
        input(&format!(
            "{{hosts: ['{broker}'], topics: [{topic}], group_id: {topic}, wait_close: 500ms, \
             heartbeat_interval: 50ms, rebalance.retry_backoff: 50ms, {settings}}}"
        ))
    }

    fn meaning(&self) -> Meaning {
        Meaning::Acknowledgement
    }

    fn send(&self, lines: Range<usize>) -> FarSideFuture<'_> {
        Box::pin(async move {
            let mut client = Client::new(&self.broker);
            let lines: Vec<usize> = lines.collect();
            for some in lines.chunks(500) {
                self.sent.lock().expect("no panic").extend_from_slice(some);
                client.produce(&self.topic, some.iter().map(|number| line(*number)));
            }
        })
    }

    fn acknowledged(&self) -> BTreeSet<usize> {
        let committed = Client::new(&self.broker).committed(&self.topic, &self.topic);
        self.sent.lock().expect("no panic").iter().take(committed).copied().collect()
    }

    /// One batch, which is larger than the queue.
    fn on_the_way_max(&self) -> usize {
        2048
    }
}

async fn keep(settings: &'static str) {
    let kafka = Kafka::given_or_started().expect("a broker");
    let broker = format!("127.0.0.1:{}", kafka.ports.plain);
    keep_input(|| {
        let topic = unique_name("contract");
        Client::new(&broker).create(&topic);
        Trial { broker: broker.clone(), topic, sent: Mutex::default(), settings }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Kafka"]
async fn the_contract_of_inputs_is_kept() {
    keep("rebalance.strategy: range").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Kafka"]
async fn the_contract_is_kept_with_other_settings() {
    keep(
        "rebalance.strategy: roundrobin, isolation_level: read_committed, version: 2.3.0, fetch.default: 20KiB, \
         fetch.max: 10KiB, fetch.min: 100, max_wait_time: 20ms, consume_backoff: 50ms, connect_backoff: 50ms, \
         client_id: judge, keep_alive: 1s, timeout: 10s, session_timeout: 6s, rebalance.timeout: 10s, \
         rebalance.max_retries: 7",
    )
    .await;
}
