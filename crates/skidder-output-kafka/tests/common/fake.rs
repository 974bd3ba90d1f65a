//! Scripted brokers of one cluster: messages by `kafka-protocol`, records in memory.
//!
//! They know leaders and the numbers of idempotent producers as real ones do: another broker's partition, a batch that
//! is there already, a batch before which one is missing.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::produce_request::PartitionProduceData;
use kafka_protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, PartitionProduceResponse, TopicProduceResponse,
};
use kafka_protocol::messages::{
    ApiVersionsResponse, BrokerId, InitProducerIdResponse, MetadataRequest, MetadataResponse,
    ProduceRequest, ProduceResponse, RequestHeader, TopicName,
};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use kafka_protocol::records::{Record, RecordBatchDecoder};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const PRODUCE: i16 = 0;
const METADATA: i16 = 3;
const API_VERSIONS: i16 = 18;
const INIT_PRODUCER_ID: i16 = 22;

const NOT_LEADER: i16 = 6;
const OUT_OF_ORDER: i16 = 45;

/// A broker's reaction to a request.
#[derive(Clone, Debug)]
pub(crate) enum Trick {
    /// A correct answer.
    Good,
    /// It hangs up before it does anything.
    Cut,
    /// It writes the batch and hangs up instead of an answer.
    DoAndCut,
    /// It does nothing and answers this, in every partition.
    Code(i16),
    /// It answers so many bytes of a correct answer, and hangs up.
    Short(usize),
    /// It answers these bytes.
    Nonsense(Vec<u8>),
    /// It writes nothing and answers about a partition that is so many further.
    Elsewhere(i32),
    /// It writes nothing and answers about another topic.
    OtherTopic,
    /// It writes nothing and answers about no topic.
    Nothing,
    /// The partition has another leader from now on.
    Move(i32, i32),
    /// Every record whose value has this is refused, by its index.
    Refuse(&'static str),
}

/// All that the brokers know.
#[derive(Default)]
pub(crate) struct State {
    ports: Vec<u16>,
    /// The leader of each partition, of every topic; from 1 on, and below zero if there is none.
    pub(crate) leaders: BTreeMap<i32, i32>,
    /// For the next requests of a kind.
    pub(crate) tricks: BTreeMap<i16, VecDeque<Trick>>,
    /// All written records, in order.
    pub(crate) log: BTreeMap<(String, i32), Vec<Record>>,
    /// The next sequence number that each partition expects of each producer.
    expected: BTreeMap<(i32, i64), i32>,
    pub(crate) identities: i64,
    /// Requests of each kind that came.
    pub(crate) requests: BTreeMap<i16, usize>,
    /// The newest version of `Produce` that is spoken.
    pub(crate) produce_max: i16,
}

/// See the module's text.
#[derive(Clone)]
pub(crate) struct Fake(Arc<Mutex<State>>);

impl Fake {
    /// So many brokers, of which the first leads so many partitions.
    pub(crate) async fn start(brokers: usize, partitions: i32) -> Self {
        let leaders = (0..partitions).map(|partition| (partition, 1)).collect();
        let state = State { leaders, produce_max: 13, ..State::default() };
        let fake = Self(Arc::new(Mutex::new(state)));
        for id in 1..=brokers as i32 {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let port = listener.local_addr().expect("an address").port();
            fake.state().ports.push(port);
            let fake = fake.clone();
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let fake = fake.clone();
                    tokio::spawn(async move { fake.serve(id, stream).await });
                }
            });
        }
        fake
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no test fails with it")
    }

    /// The first broker.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.state().ports[0])
    }

    /// For the next requests to send records.
    pub(crate) fn on_produce(&self, tricks: impl IntoIterator<Item = Trick>) {
        self.state().tricks.entry(PRODUCE).or_default().extend(tricks);
    }

    /// For the next questions for topics.
    pub(crate) fn on_metadata(&self, tricks: impl IntoIterator<Item = Trick>) {
        self.state().tricks.entry(METADATA).or_default().extend(tricks);
    }

    /// For the next requests for versions.
    pub(crate) fn on_versions(&self, tricks: impl IntoIterator<Item = Trick>) {
        self.state().tricks.entry(API_VERSIONS).or_default().extend(tricks);
    }

    async fn serve(&self, broker: i32, mut stream: TcpStream) -> Option<()> {
        loop {
            let length = stream.read_u32().await.ok()?;
            let mut request = vec![0; length as usize];
            stream.read_exact(&mut request).await.ok()?;
            let mut request = Bytes::from(request);
            let (api, version) = ((&request[..]).get_i16(), (&request[2..]).get_i16());
            let header_version = if api == API_VERSIONS && version >= 3 { 2 } else { 1 };
            let header = RequestHeader::decode(&mut request, header_version).expect("a header");
            let (trick, answer) = self.answer(broker, &header, request);
            let mut frame = BytesMut::new();
            frame.put_u32(answer.len() as u32 + 4);
            frame.put_i32(header.correlation_id);
            frame.extend_from_slice(&answer);
            match trick {
                Trick::Cut | Trick::DoAndCut => return None,
                Trick::Short(count) => {
                    stream.write_all(&frame[..count.min(frame.len())]).await.ok()?;
                    return None;
                }
                Trick::Nonsense(bytes) => stream.write_all(&bytes).await.ok()?,
                _ => stream.write_all(&frame).await.ok()?,
            }
        }
    }

    fn answer(&self, broker: i32, header: &RequestHeader, mut body: Bytes) -> (Trick, BytesMut) {
        let mut state = self.state();
        let (api, version) = (header.request_api_key, header.request_api_version);
        *state.requests.entry(api).or_default() += 1;
        let trick = state.tricks.get_mut(&api).and_then(VecDeque::pop_front);
        let trick = trick.unwrap_or(Trick::Good);
        if let Trick::Move(partition, leader) = trick {
            state.leaders.insert(partition, leader);
        }
        let mut answer = BytesMut::new();
        let encoded = match api {
            PRODUCE => {
                let request = ProduceRequest::decode(&mut body, version).expect("a request");
                state.produce(broker, request, version, &trick).encode(&mut answer, version)
            }
            METADATA => {
                let request = MetadataRequest::decode(&mut body, version).expect("a request");
                state.metadata(&request, &trick).encode(&mut answer, version)
            }
            INIT_PRODUCER_ID => {
                state.identities += 1;
                let identity = state.identities.into();
                let answered = InitProducerIdResponse::default().with_producer_id(identity);
                answered.encode(&mut answer, version)
            }
            API_VERSIONS => versions(state.produce_max, &trick).encode(&mut answer, version),
            _ => panic!("nobody asks {api}"),
        };
        encoded.expect("an answer");
        assert!(body.is_empty() || api == API_VERSIONS || api == INIT_PRODUCER_ID);
        (trick, answer)
    }
}

fn versions(produce_max: i16, trick: &Trick) -> ApiVersionsResponse {
    let ranges = [(PRODUCE, 3, produce_max), (METADATA, 0, 13), (INIT_PRODUCER_ID, 0, 5)];
    let ranges = ranges.map(|(api, min, max)| {
        ApiVersion::default().with_api_key(api).with_min_version(min).with_max_version(max)
    });
    let code = if let Trick::Code(code) = trick { *code } else { 0 };
    ApiVersionsResponse::default().with_error_code(code).with_api_keys(ranges.to_vec())
}

impl State {
    fn metadata(&self, request: &MetadataRequest, trick: &Trick) -> MetadataResponse {
        let brokers = self.ports.iter().enumerate().map(|(place, port)| {
            MetadataResponseBroker::default()
                .with_node_id(BrokerId(place as i32 + 1))
                .with_host(StrBytes::from_static_str("127.0.0.1"))
                .with_port(i32::from(*port))
        });
        let partitions = self.leaders.iter().map(|(partition, leader)| {
            MetadataResponsePartition::default()
                .with_partition_index(*partition)
                .with_leader_id(BrokerId(*leader))
        });
        let partitions: Vec<MetadataResponsePartition> = partitions.collect();
        let code = if let Trick::Code(code) = trick { *code } else { 0 };
        let found = request.topics.iter().flatten().map(|topic| {
            MetadataResponseTopic::default()
                .with_name(topic.name.clone())
                .with_error_code(code)
                .with_partitions(partitions.clone())
        });
        MetadataResponse::default().with_brokers(brokers.collect()).with_topics(found.collect())
    }

    fn produce(
        &mut self,
        broker: i32,
        request: ProduceRequest,
        version: i16,
        trick: &Trick,
    ) -> ProduceResponse {
        let mut topics = Vec::new();
        for topic in request.topic_data {
            let mut partitions = Vec::new();
            for data in topic.partition_data {
                partitions.push(self.write(broker, &topic.name, data, version, trick));
            }
            let mut name = topic.name.clone();
            match trick {
                Trick::Nothing => continue,
                Trick::OtherTopic => name = TopicName(StrBytes::from_static_str("another")),
                _ => {}
            }
            topics.push(
                TopicProduceResponse::default()
                    .with_name(name)
                    .with_partition_responses(partitions),
            );
        }
        ProduceResponse::default().with_responses(topics)
    }

    fn write(
        &mut self,
        broker: i32,
        topic: &TopicName,
        data: PartitionProduceData,
        version: i16,
        trick: &Trick,
    ) -> PartitionProduceResponse {
        let mut bytes = data.records.expect("records");
        let records = RecordBatchDecoder::decode(&mut bytes).expect("a batch").records;
        assert!(bytes.is_empty(), "one batch");
        let mut answer = PartitionProduceResponse::default().with_index(data.index);
        answer.error_code = match trick {
            _ if self.leaders.get(&data.index) != Some(&broker) => NOT_LEADER,
            Trick::Cut | Trick::OtherTopic | Trick::Nothing => return answer,
            Trick::Elsewhere(further) => return answer.with_index(data.index + further),
            Trick::Code(code) => *code,
            _ => self.check_number(data.index, &records),
        };
        if let Trick::Refuse(part) = trick {
            let is_bad = |record: &Record| {
                let value = record.value.as_deref().unwrap_or_default();
                String::from_utf8_lossy(value).contains(part)
            };
            for (row, _) in records.iter().enumerate().filter(|(_, record)| is_bad(record)) {
                answer.error_code = 87;
                let error = BatchIndexAndErrorMessage::default().with_batch_index(row as i32);
                if version >= 8 {
                    answer.record_errors.push(error);
                }
            }
        }
        if answer.error_code != 0 {
            return answer;
        }
        let (producer, first) = (records[0].producer_id, records[0].sequence);
        if producer >= 0 {
            let next = self.expected.entry((data.index, producer)).or_insert(0);
            if first < *next {
                // It is there already.
                return answer;
            }
            *next = first + records.len() as i32;
        }
        self.log.entry((topic.to_string(), data.index)).or_default().extend(records);
        answer
    }

    fn check_number(&self, partition: i32, records: &[Record]) -> i16 {
        let (producer, first) = (records[0].producer_id, records[0].sequence);
        let expected = self.expected.get(&(partition, producer)).copied().unwrap_or(0);
        if producer >= 0 && first > expected { OUT_OF_ORDER } else { 0 }
    }

    /// The values of all records, those of each partition in their order, with its number.
    pub(crate) fn values(&self) -> Vec<(i32, String)> {
        let value = |record: &Record| {
            String::from_utf8_lossy(record.value.as_deref().unwrap_or_default()).into_owned()
        };
        self.log
            .iter()
            .flat_map(|((_, partition), records)| {
                records.iter().map(move |record| (*partition, value(record)))
            })
            .collect()
    }

    pub(crate) fn produced(&self) -> usize {
        self.requests.get(&PRODUCE).copied().unwrap_or(0)
    }
}
