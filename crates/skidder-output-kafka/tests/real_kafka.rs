//! The Kafka output against a real broker.

mod common;

use common::{LINES, assert_order, counted, create, output, read, until};
use skidder_contract::{Fixture, Proxy, Way};
use skidder_testkit::kafka::Kafka;
use skidder_testkit::servers::{free_port, unique_name};
use std::time::Duration;

fn plain(kafka: &Kafka) -> String {
    format!("127.0.0.1:{}", kafka.ports.plain)
}

/// Sends lines and judges them: each once, in order.
async fn delivers(kafka: &Kafka, topic: &str, settings: &str) {
    create(&plain(kafka), topic, 3, &[]);
    let mut fixture = Fixture::new();
    fixture.name = settings.to_owned();
    fixture.push(LINES, 70);
    fixture.run_boxed(output(&format!("topic: {topic}\n{settings}")).output).await;
    let taken = read(&plain(kafka), topic);
    fixture.judge(&counted(&taken));
    assert_eq!(fixture.feed.metrics.acked.get(), LINES as u64, "{settings}");
    assert!(fixture.feed.metrics.write_bytes.get() > 0);
    assert_order(settings, &taken);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Kafka"]
async fn every_way_to_connect_brings_all_lines() {
    let kafka = Kafka::given_or_started().unwrap();
    let ports = kafka.ports;
    let ca = kafka.certificate("ca.crt");
    let ssl = format!("ssl.certificate_authorities: [{}]", ca.display());
    let user = "username: test\npassword: secret";
    let scram = |size| format!("{user}\nsasl.mechanism: SCRAM-SHA-{size}");
    let own = format!(
        "ssl: {{certificate_authorities: [{}], certificate: {}, key: {}}}",
        ca.display(),
        kafka.certificate("client.crt").display(),
        kafka.certificate("client.key").display()
    );
    for (port, settings) in [
        (ports.plain, String::new()),
        (ports.tls, ssl.clone()),
        (ports.tls, own),
        (ports.sasl, user.to_owned()),
        (ports.sasl, scram(256)),
        (ports.sasl, scram(512)),
        (ports.sasl_tls, format!("{ssl}\n{user}")),
        (ports.sasl_tls, format!("{ssl}\n{}", scram(512))),
        (ports.wrong_host, format!("{ssl}\nssl.verification_mode: certificate")),
        (ports.expired, "ssl.verification_mode: none".to_owned()),
    ] {
        let topic = unique_name("connect");
        delivers(&kafka, &topic, &format!("hosts: [\"127.0.0.1:{port}\"]\n{settings}")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Kafka"]
async fn every_way_to_send_brings_all_lines() {
    let kafka = Kafka::given_or_started().unwrap();
    for settings in [
        "compression: none",
        "compression: gzip\ncompression_level: 9",
        "compression: snappy",
        "compression: lz4",
        "compression: zstd",
        "required_acks: -1",
        "required_acks: 0",
        "required_acks: -1\nenable_idempotence: true",
        "bulk_max_size: 7",
        "bulk_max_size: 0",
        "bulk_flush_frequency: 0",
        "bulk_flush_frequency: 1h",
        "metadata.full: true\nmetadata.refresh_frequency: 50ms",
        "partition.round_robin: {group_events: 10, reachable_only: true}",
        "partition.random.group_events: 100",
        "keep_alive: 10s\nclient_id: me\nbroker_timeout: 1s\ntimeout: 5s\nchannel_buffer_size: 3000",
    ] {
        let settings = settings.replace("1h", "900s");
        let hosts = format!("hosts: [\"{}\"]\n{settings}", plain(&kafka));
        delivers(&kafka, &unique_name("send"), &hosts).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Kafka"]
async fn records_have_the_parts_that_were_asked_for() {
    let kafka = Kafka::given_or_started().unwrap();
    let topic = unique_name("parts");
    create(&plain(&kafka), &topic, 12, &[]);
    let mut fixture = Fixture::new();
    fixture.push(100, 7);
    let settings = format!(
        "hosts: [\"{}\"]\ntopic: {topic}\nkey: '%{{[message]}}'\n\
         headers: [{{key: a, value: one}}, {{key: a, value: two}}, {{key: b}}]\n\
         codec.format.string: '%{{[message]}} of %{{[agent.name]}}'",
        plain(&kafka)
    );
    fixture.run_boxed(output(&settings).output).await;
    let taken = read(&plain(&kafka), &topic);
    assert_eq!(taken.len(), 100);
    for record in &taken {
        let message = record.value.strip_suffix(" of here").unwrap();
        assert_eq!(record.key.as_deref(), Some(message.as_bytes()));
        assert_eq!(record.timestamp, 1_767_323_045_000);
        let header = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(record.headers, [header("a", "one"), header("a", "two"), header("b", "")]);
        // FNV-1a, as Filebeat has it.
        let hash = message
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        assert_eq!(record.partition, ((hash & 0x7fff_ffff) % 12) as i32);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Kafka"]
async fn who_cannot_connect_keeps_everything() {
    let kafka = Kafka::given_or_started().unwrap();
    let ports = kafka.ports;
    let ca = kafka.certificate("ca.crt");
    let ssl = format!("ssl.certificate_authorities: [{}]", ca.display());
    let other = kafka.certificate("other-ca.crt");
    let other = format!("ssl.certificate_authorities: [{}]", other.display());
    let wrong = "username: test\npassword: wrong";
    for (name, port, settings, expected) in [
        ("a wrong password", ports.sasl, wrong.to_owned(), "username"),
        (
            "a wrong password, SCRAM",
            ports.sasl,
            format!("{wrong}\nsasl.mechanism: SCRAM-SHA-256"),
            "username",
        ),
        ("no user", ports.sasl, String::new(), "brokers"),
        ("an expired certificate", ports.expired, ssl.clone(), "expired"),
        ("another host's certificate", ports.wrong_host, ssl.clone(), "not valid for name"),
        ("another authority", ports.tls, other, "UnknownIssuer"),
        ("TLS to a port without", ports.plain, ssl.clone(), "does this port speak TLS"),
        ("SASL to a port without", ports.plain, wrong.to_owned(), "SASL"),
        ("nobody there", free_port().unwrap(), String::new(), "refused"),
    ] {
        let topic = unique_name("refused");
        let settings =
            format!("hosts: [\"127.0.0.1:{port}\"]\ntopic: {topic}\ntimeout: 1s\n{settings}");
        let mut fixture = Fixture::new();
        fixture.name = name.to_owned();
        fixture.push(LINES, 70);
        fixture.queue.close();
        let mut running = output(&settings).output.run(fixture.feed.clone());
        tokio::select! {
            () = &mut running => panic!("{name}: it ended"),
            () = until(&fixture, || fixture.feed.metrics.write_errors.get() >= 3) => {}
        }
        drop(running);
        let total = fixture.settle.total();
        assert!(total.adds_up(), "{name}: {total:?}");
        assert_eq!(total.in_flight(), LINES as u64, "{name}: {total:?}");
        let mut lines = Vec::new();
        let built = output(&settings);
        let good = built.output.check(&mut |line| lines.push(line.to_owned())).await;
        let text = lines.join("\n");
        assert!(!good && text.contains(expected), "{name}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Kafka"]
async fn test_output_tells_what_it_finds() {
    let kafka = Kafka::given_or_started().unwrap();
    let topic = unique_name("check");
    create(&plain(&kafka), &topic, 5, &[]);
    let settings = format!(
        "hosts: [\"127.0.0.1:{}\"]\ntopic: {topic}\nusername: test\npassword: secret\n\
         sasl.mechanism: scram-sha-512\nssl.certificate_authorities: [{}]",
        kafka.ports.sasl_tls,
        kafka.certificate("ca.crt").display()
    );
    let built = output(&settings);
    let mut lines = Vec::new();
    let good = built.output.check(&mut |line| lines.push(line.to_owned())).await;
    let text = lines.join("\n");
    assert!(good, "{text}");
    for part in
        ["dial up... OK", "handshake... OK", "SCRAM-SHA-512... OK", "broker 1:", "partitions: 5"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Kafka"]
async fn what_is_too_large_goes_to_the_dead_letters_and_the_rest_arrives() {
    let kafka = Kafka::given_or_started().unwrap();
    // Lines have up to 50 bytes more than the shortest, as documents do.
    for (name, ours, theirs) in [("we", "190", "1000000"), ("the topic", "1000000", "260")] {
        let topic = unique_name("large");
        create(&plain(&kafka), &topic, 1, &[("max.message.bytes", theirs)]);
        let mut fixture = Fixture::new();
        fixture.name = name.to_owned();
        fixture.push(LINES, 70);
        let settings = format!(
            "hosts: [\"{}\"]\ntopic: {topic}\ncompression: none\nmax_message_bytes: {ours}\nbulk_max_size: 200",
            plain(&kafka)
        );
        fixture.run_boxed(output(&settings).output).await;
        let taken = read(&plain(&kafka), &topic);
        fixture.judge(&counted(&taken));
        assert_order(name, &taken);
        let dead = fixture.dead_letters();
        assert!(!dead.is_empty() && dead.len() < LINES / 2, "{name}: {} are dead", dead.len());
        assert!(dead.values().all(|status| *status == 10), "{name}: {dead:?}");
        let longest = taken.iter().map(|record| record.value.len()).max().unwrap();
        let shortest = dead.keys().map(|number| number % 50).min().unwrap();
        let longest_taken = counted(&taken).keys().map(|number| number % 50).max().unwrap();
        assert!(
            shortest + 3 >= longest_taken,
            "{name}: {shortest} is dead, {longest_taken} is not, {longest}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Kafka"]
async fn events_choose_their_topics_and_wrong_names_go_to_the_dead_letters() {
    let kafka = Kafka::given_or_started().unwrap();
    let (good, wrong) = (unique_name("good"), unique_name("wrong name"));
    let mut fixture = Fixture::new();
    fixture.push(LINES, 70);
    let settings = format!(
        "hosts: [\"{}\"]\ntopics: [{{topic: '{wrong}', when.contains.message: '9 '}}]\ntopic: {good}\n\
         compression: none",
        plain(&kafka)
    );
    fixture.run_boxed(output(&settings).output).await;
    let taken = read(&plain(&kafka), &good);
    fixture.judge(&counted(&taken));
    let dead = fixture.dead_letters();
    assert!(dead.keys().all(|number| number % 10 == 9) && dead.len() == LINES / 10, "{dead:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Kafka"]
async fn a_broker_that_is_started_again_gets_all_lines_in_order() {
    let kafka = Kafka::own().unwrap();
    let topic = unique_name("restart");
    create(&plain(&kafka), &topic, 3, &[]);
    let mut fixture = Fixture::new();
    fixture.push(LINES, 70);
    let settings = format!("hosts: [\"{}\"]\ntopic: {topic}\nbulk_max_size: 20", plain(&kafka));
    let running = output(&settings).output.run(fixture.feed.clone());
    let story = async {
        let metrics = std::sync::Arc::clone(&fixture.feed.metrics);
        until(&fixture, || metrics.acked.get() > 0).await;
        tokio::task::block_in_place(|| kafka.stop().unwrap());
        fixture.push(LINES, 70);
        tokio::task::block_in_place(|| kafka.start_again().unwrap());
        fixture.push(LINES, 70);
        until(&fixture, || fixture.settle.total().in_flight() == 0).await;
        fixture.queue.close();
    };
    tokio::join!(running, story);
    let taken = read(&plain(&kafka), &topic);
    fixture.judge_repeated(&counted(&taken));
    assert_order(&fixture.name, &taken);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Kafka"]
async fn a_bad_network_loses_nothing_and_keeps_the_order() {
    for settings in ["", "required_acks: -1\nenable_idempotence: true"] {
        let behind = free_port().unwrap();
        let ways = [1, 100, 1000, 5000, 20_000].map(Way::ResetAfterSent).into_iter();
        let ways = [Way::Refuse; 2].into_iter().chain(ways);
        let ways = ways.chain([Way::ResetInsteadOfAnswer; 2]);
        let ways = ways.chain([100, 500, 1000].map(Way::ResetAfterAnswered));
        let ways = ways.chain([Way::Slow(500, Duration::from_millis(1))]);
        let proxy = Proxy::start(&format!("127.0.0.1:{behind}"), ways).await;
        let port = proxy.address().rsplit_once(':').unwrap().1.parse().unwrap();
        let kafka = Kafka::behind(behind, port).unwrap();
        let topic = unique_name("network");
        create(&plain(&kafka), &topic, 2, &[]);
        let mut fixture = Fixture::new();
        fixture.name = settings.to_owned();
        fixture.push(LINES, 70);
        let settings = format!(
            "hosts: [\"{}\"]\ntopic: {topic}\nbulk_max_size: 50\ntimeout: 2s\n{settings}",
            proxy.address()
        );
        let running = output(&settings).output.run(fixture.feed.clone());
        let story = async {
            until(&fixture, || fixture.settle.total().in_flight() == 0).await;
            for _ in 0..3 {
                proxy.take_down();
                fixture.push(LINES, 70);
                proxy.bring_up();
                until(&fixture, || fixture.settle.total().in_flight() == 0).await;
            }
            fixture.queue.close();
        };
        tokio::join!(running, story);
        let taken = read(&plain(&kafka), &topic);
        if settings.contains("idempotence") {
            fixture.judge(&counted(&taken));
        } else {
            fixture.judge_repeated(&counted(&taken));
        }
        assert_order(&fixture.name, &taken);
    }
}
