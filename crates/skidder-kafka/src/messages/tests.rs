//! Requests and answers against those of another implementation.

use super::*;
use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::{
    ApiVersionsRequest, ApiVersionsResponse, BrokerId, InitProducerIdRequest,
    InitProducerIdResponse, MetadataRequest, MetadataResponse, TopicName,
};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};

fn decoded<T: Decodable>(body: Vec<u8>, version: i16) -> T {
    let mut body = Bytes::from(body);
    let message = T::decode(&mut body, version).expect("a message");
    assert!(body.is_empty(), "all of it was read");
    message
}

fn encoded(message: &impl Encodable, version: i16) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    message.encode(&mut bytes, version).expect("it can be encoded");
    bytes.to_vec()
}

#[test]
fn questions_are_understood() {
    let body = Versions::question(API_VERSIONS);
    let request: ApiVersionsRequest = decoded(body[1..].to_vec(), API_VERSIONS);
    assert_eq!(&*request.client_software_name, "skidder");
    assert!(Versions::question(0).is_empty());
    let names = ["a".to_owned(), "b".to_owned()];
    for version in METADATA.0..=METADATA.1 {
        for (topics, rights) in [(None, false), (Some(&names[..]), true), (Some(&[][..]), false)] {
            let body = Metadata::question(version, topics, rights);
            let request: MetadataRequest = decoded(body, version);
            let found = request.topics.map(|topics| {
                let name =
                    |topic: &kafka_protocol::messages::metadata_request::MetadataRequestTopic| {
                        topic.name.as_ref().map(|name| name.to_string()).unwrap_or_default()
                    };
                topics.iter().map(name).collect::<Vec<_>>()
            });
            assert_eq!(found.as_deref(), topics, "{version}");
            let says = version >= METADATA_WITH_RIGHTS && rights;
            assert_eq!(request.include_topic_authorized_operations, says, "{version}");
            assert!(request.allow_auto_topic_creation);
        }
    }
    for version in INIT_PRODUCER_ID.0..=INIT_PRODUCER_ID.1 {
        let request: InitProducerIdRequest = decoded(Identity::question(), version);
        assert_eq!(request.transactional_id, None);
    }
}

fn metadata(version: i16) -> Vec<u8> {
    let text = StrBytes::from_static_str;
    let broker = |id: i32, host: &'static str| {
        MetadataResponseBroker::default()
            .with_node_id(BrokerId(id))
            .with_host(text(host))
            .with_port(9092)
            .with_rack(Some(text("rack")))
    };
    let partition = |id: i32, leader: i32| {
        MetadataResponsePartition::default()
            .with_partition_index(id)
            .with_leader_id(BrokerId(leader))
            .with_replica_nodes(vec![BrokerId(1), BrokerId(2)])
            .with_isr_nodes(vec![BrokerId(1)])
    };
    let topic = |name: &'static str, code: i16, rights: i32| {
        MetadataResponseTopic::default()
            .with_name(Some(TopicName(text(name))))
            .with_error_code(code)
            .with_topic_authorized_operations(rights)
            .with_partitions(vec![partition(1, 2), partition(0, -1)])
    };
    let answer = MetadataResponse::default()
        .with_brokers(vec![broker(1, "one"), broker(2, "::1")])
        .with_cluster_id(Some(text("cluster")))
        .with_topics(vec![
            topic("a", 0, 1 << WRITE),
            topic("b", 3, i32::MIN),
            topic("c", 0, 1 << 3),
        ]);
    let rights = |topic: &mut MetadataResponseTopic| {
        if version < METADATA_WITH_RIGHTS {
            topic.topic_authorized_operations = i32::MIN;
        }
    };
    let mut answer = answer;
    answer.topics.iter_mut().for_each(rights);
    if version < 2 {
        answer.cluster_id = None;
    }
    encoded(&answer, version)
}

#[test]
fn answers_are_understood_in_every_version() {
    for version in METADATA.0..=METADATA.1 {
        let found = Metadata::read(&metadata(version), version).expect("metadata");
        let brokers = [(1, "one:9092".to_owned()), (2, "[::1]:9092".to_owned())];
        assert_eq!(found.brokers, brokers.into(), "{version}");
        let partitions = [(0, -1), (1, 2)].map(|(id, leader)| PartitionState { id, leader });
        let may = |name: &str| found.topics[name].may_write;
        for (name, code) in [("a", 0), ("b", 3), ("c", 0)] {
            assert_eq!(found.topics[name].code, Code(code), "{version}");
            assert_eq!(found.topics[name].partitions, partitions, "{version}");
        }
        let has_rights = version >= METADATA_WITH_RIGHTS;
        let expected = [has_rights.then_some(true), None, has_rights.then_some(false)];
        assert_eq!([may("a"), may("b"), may("c")], expected, "{version}");
    }
    for version in INIT_PRODUCER_ID.0..=INIT_PRODUCER_ID.1 {
        let good =
            InitProducerIdResponse::default().with_producer_id(7.into()).with_producer_epoch(2);
        let read = |answer: &InitProducerIdResponse| Identity::read(&encoded(answer, version));
        assert_eq!(read(&good), Ok(Ok(Identity { id: 7, epoch: 2 })));
        assert_eq!(read(&good.with_error_code(31)), Ok(Err(Code(31))));
    }
}

#[test]
fn the_newest_versions_that_both_speak_are_taken() {
    let range = |api: i16, min: i16, max: i16| {
        ApiVersion::default().with_api_key(api).with_min_version(min).with_max_version(max)
    };
    for version in [0, API_VERSIONS] {
        let read = |ranges: Vec<ApiVersion>| {
            let answer = ApiVersionsResponse::default().with_api_keys(ranges);
            Versions::read(&encoded(&answer, version), version).expect("an answer")
        };
        let new = read(vec![range(0, 3, 13), range(3, 0, 13), range(1, 0, 17), range(22, 0, 6)]);
        let expected = Versions {
            produce: Some(8),
            metadata: Some(8),
            init_producer_id: Some(1),
            fetch: Some(11),
            ..Versions::default()
        };
        assert_eq!(new, Ok(expected));
        let old = read(vec![range(0, 0, 5), range(3, 0, 2)]);
        let expected = Versions {
            produce: Some(5),
            metadata: Some(2),
            init_producer_id: None,
            ..Versions::default()
        };
        assert_eq!(old, Ok(expected));
        let strange = read(vec![range(0, 9, 13), range(3, 0, 0), range(22, 2, 6)]);
        assert_eq!(strange, Ok(Versions::default()));
        let strange = read(vec![range(0, 0, 2)]);
        assert_eq!(strange, Ok(Versions::default()));
    }
    assert_eq!(Versions::read(&[0, 35, 0, 0, 0, 0], API_VERSIONS), Ok(Err(Code(35))));
}

#[test]
fn no_answer_that_is_cut_or_wrong_ends_the_program() {
    for version in METADATA.0..=METADATA.1 {
        let whole = metadata(version);
        // The user's rights on the cluster are not read.
        let read = whole.len() - if version >= METADATA_WITH_RIGHTS { 4 } else { 0 };
        for end in 0..read {
            Metadata::read(&whole[..end], version).expect_err("it is cut");
        }
        // Whatever a byte of it becomes, there is an answer or an error.
        for place in 0..whole.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut wrong = whole.clone();
                wrong[place] = byte;
                let found = Metadata::read(&wrong, version).map(|found| found.topics.len());
                assert!(found.is_err() || found.is_ok_and(|topics| topics < 256));
                Versions::read(&wrong, API_VERSIONS).ok();
            }
        }
    }
    for end in 0..16 {
        Identity::read(&[0; 16][..end]).expect_err("it is cut");
    }
}
