//! Records of Kafka through `parsers`, compared with what Filebeat 9.6 made of the same records; and how many there are
//! behind an output that is stuck.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::Place;
use common::lines::lines;
use common::program::patiently;
use common::server::BulkServer;
use serde_json::Value;
use skidder_testkit::kafka::Kafka;
use skidder_testkit::servers::unique_name;
use std::os::unix::net::UnixStream;

/// Filebeat's events by record, without what differs from run to run.
const GOLDEN: &str = include_str!("data/kafka_parsers.json");

fn sender(broker: &str, topic: &str, more: &str) -> Place {
    Place::with_output(&format!(
        "output.kafka: {{hosts: ['{broker}'], topic: {topic}, required_acks: -1, \
         codec.format.string: '%{{[message]}}'{more}}}\n"
    ))
}

/// `place` reads this topic instead.
fn reading(place: &Place, broker: &str, topic: &str, more: &str) {
    let text = place.configuration();
    let (_, rest) = text.split_once("filebeat.registry.flush").unwrap();
    place.configure(&format!(
        "filebeat.inputs:\n- {{type: kafka, id: in, hosts: ['{broker}'], topics: [{topic}], \
         group_id: {topic}{more}}}\nfilebeat.registry.flush{rest}"
    ));
}

/// The events that were written, in the order of their records.
fn events(place: &Place) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for file in std::fs::read_dir(place.path().join("out")).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        all.extend(text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
    }
    all.sort_by_key(|event| event["kafka"]["offset"].as_u64());
    all
}

/// What the golden file keeps of an event.
fn compared(mut event: Value, topic: &str) -> Value {
    let fields = event.as_object_mut().unwrap();
    for own in ["beat", "type", "version"] {
        fields["@metadata"].as_object_mut().unwrap().remove(own);
    }
    for own in ["partition", "offset", "key", "headers"] {
        fields["kafka"].as_object_mut().unwrap().remove(own);
    }
    if fields["kafka"]["topic"] == topic {
        fields.remove("kafka");
    }
    if fields["agent"]["name"] == "n9" {
        fields["agent"] = serde_json::json!({"name": "n9"});
    } else {
        fields.remove("agent");
    }
    fields.retain(|name, value| match name.as_str() {
        "@timestamp" => value.as_str().unwrap().starts_with("2020"),
        "@metadata" => value.as_object().unwrap().contains_key("a"),
        "host" => value["name"] == "h9",
        "ecs" => value["version"] == "1",
        _ => true,
    });
    for place in ["/error/message", "/j/error/message"] {
        if let Some(error) = event.pointer_mut(place)
            && error.as_str().is_some_and(|text| text.starts_with("Error decoding JSON"))
        {
            *error = "Error decoding JSON".into();
        }
    }
    event
}

#[test]
#[ignore = "needs Kafka"]
fn parsers_make_the_events_that_filebeat_makes() {
    let kafka = Kafka::given_or_started().unwrap();
    let broker = format!("127.0.0.1:{}", kafka.ports.plain);
    let golden: Value = serde_json::from_str(GOLDEN).unwrap();
    let mut wrong = Vec::new();
    for case in golden.as_array().unwrap() {
        let topic = unique_name("parsers");
        // One partition, so that they stay in order.
        let from = sender(&broker, &topic, ", key: k");
        let expected = case["events"].as_array().unwrap();
        let records: Vec<&str> =
            expected.iter().map(|one| one["record"].as_str().unwrap()).collect();
        from.write("a", format!("{}\n", records.join("\n")).as_bytes());
        from.once(&[]).succeeded();
        let to = Place::with_output("output.file: {path: out, filename: e}\n");
        let parsers = case["parsers"].as_str().unwrap();
        reading(&to, &broker, &topic, &format!(", parsers: {parsers}"));
        to.once(&[]).succeeded();
        let found = events(&to);
        assert_eq!(found.len(), records.len(), "{parsers}");
        for (event, one) in found.into_iter().zip(expected) {
            let (event, record) = (compared(event, &topic), &one["record"]);
            if event != one["event"] {
                let golden = &one["event"];
                wrong.push(format!("{parsers} {record}\n  filebeat {golden}\n  skidder  {event}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
#[ignore = "needs Kafka"]
fn what_is_behind_a_stuck_output_is_counted_in_all_partitions_and_as_it_grows() {
    const LINES: usize = 9_000;
    let kafka = Kafka::given_or_started().unwrap();
    let (broker, topic) = (format!("127.0.0.1:{}", kafka.ports.plain), unique_name("behind"));
    let from = sender(&broker, &topic, ", partition.random.group_events: 50");
    from.write("a", &lines("a", 0..LINES));
    from.once(&[]).succeeded();
    let server = BulkServer::start();
    let to = Place::new(&server);
    reading(&to, &broker, &topic, ", fetch.default: 50KiB, wait_close: 100ms");
    to.configure(&to.configuration().replace("shutdown_timeout: 20s", "shutdown_timeout: 100ms"));
    to.open_endpoint();
    server.hold();
    let program = to.start(&[]);
    let behind = || {
        UnixStream::connect(to.path().join("s")).ok()?;
        let text = to.get("/metrics");
        text.lines().find_map(|line| {
            let (_, number) =
                line.strip_prefix("skidder_input_behind_events{")?.rsplit_once(' ')?;
            number.parse::<usize>().ok()
        })
    };
    patiently("all records are behind", || (behind() == Some(LINES)).then_some(()));
    from.write("b", &lines("b", 0..LINES));
    from.once(&[]).succeeded();
    patiently("those that come are, too", || (behind() == Some(2 * LINES)).then_some(()));
    server.release();
    program.terminate();
}
