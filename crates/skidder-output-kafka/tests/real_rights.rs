//! The Kafka output against a real broker that does not let its user do everything.

mod common;

use common::{Client, LINES, counted, create, output, read, until};
use skidder_contract::Fixture;
use skidder_testkit::kafka::Kafka;
use skidder_testkit::servers::unique_name;

fn plain(kafka: &Kafka) -> String {
    format!("127.0.0.1:{}", kafka.ports.plain)
}

/// Resources and operations, as the protocol numbers them.
const TOPIC: i8 = 2;
const CLUSTER: i8 = 4;
const WRITE: i8 = 4;
const DESCRIBE: i8 = 8;
const IDEMPOTENT_WRITE: i8 = 12;

/// Lets `user` do something. From the first right on, users without one may do nothing with the resource.
fn allow(kafka: &Kafka, user: &str, resource: (i8, &str), operation: i8) {
    Client::new(&plain(kafka)).allow(user, resource, operation);
}

/// Settings of the user `test`.
fn of_user(kafka: &Kafka, topic: &str) -> String {
    let port = kafka.ports.sasl;
    format!(
        "hosts: [\"127.0.0.1:{port}\"]\ntopic: {topic}\nusername: test\npassword: secret\ntimeout: 5s\n"
    )
}

/// The output of `test output`, and whether it succeeds.
async fn check(settings: &str) -> (bool, String) {
    let mut lines = Vec::new();
    let good = output(settings).output.check(&mut |line| lines.push(line.to_owned())).await;
    (good, lines.join("\n"))
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Kafka"]
async fn a_topic_that_the_user_may_not_write_to_waits_and_holds_no_other_up() {
    let kafka = Kafka::given_or_started().unwrap();
    // Without the right Describe the brokers do not return where it is; with it each record comes back.
    for (name, may_describe) in [("nothing", false), ("no writing", true)] {
        let (open, closed) = (unique_name("open"), unique_name("closed"));
        for topic in [&open, &closed] {
            create(&plain(&kafka), topic, 2, &[]);
        }
        let on = (TOPIC, &*closed);
        allow(&kafka, "somebody", on, WRITE);
        if may_describe {
            allow(&kafka, "test", on, DESCRIBE);
        }
        let (good, said) = check(&of_user(&kafka, &closed)).await;
        assert!(!good && said.contains("give the user the right"), "{name}: {said}");
        assert_eq!(said.contains("it has partitions... OK"), may_describe, "{name}: {said}");
        let (good, said) = check(&of_user(&kafka, &open)).await;
        assert!(good && said.contains("the user has the right Write... OK"), "{name}: {said}");

        let mut fixture = Fixture::new();
        fixture.name = name.to_owned();
        fixture.push(LINES, 70);
        let rule = format!("topics: [{{topic: {closed}, when.contains.message: '9 '}}]\n");
        let settings = format!("{}{rule}", of_user(&kafka, &open));
        let running = output(&settings).output.run(fixture.feed.clone());
        let story = async {
            let metrics = std::sync::Arc::clone(&fixture.feed.metrics);
            let failures = || metrics.failed.get() + metrics.write_errors.get();
            let (closed_lines, open_lines) = (LINES / 10, LINES - LINES / 10);
            until(&fixture, || metrics.acked.get() == open_lines as u64 && failures() >= 3).await;
            assert_eq!(fixture.settle.total().in_flight(), closed_lines as u64, "{name}");
            assert!(read(&plain(&kafka), &closed).is_empty(), "{name}");
            tokio::task::block_in_place(|| {
                allow(&kafka, "test", on, WRITE);
            });
            until(&fixture, || fixture.settle.total().in_flight() == 0).await;
            fixture.queue.close();
        };
        tokio::join!(running, story);
        let mut taken = read(&plain(&kafka), &open);
        assert_eq!(taken.len(), LINES - LINES / 10, "{name}");
        taken.extend(read(&plain(&kafka), &closed));
        fixture.judge(&counted(&taken));
        assert!(fixture.dead_letters().is_empty(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Kafka"]
async fn who_may_not_write_idempotently_waits_until_it_may() {
    let kafka = Kafka::own().unwrap();
    let topic = unique_name("idempotent");
    create(&plain(&kafka), &topic, 2, &[]);
    let cluster = (CLUSTER, "kafka-cluster");
    let on = (TOPIC, &*topic);
    let (idempotent, write) = (IDEMPOTENT_WRITE, WRITE);
    allow(&kafka, "somebody", cluster, idempotent);
    allow(&kafka, "somebody", on, write);
    let mut fixture = Fixture::new();
    fixture.push(LINES, 70);
    let settings =
        format!("{}required_acks: -1\nenable_idempotence: true\n", of_user(&kafka, &topic));
    let running = output(&settings).output.run(fixture.feed.clone());
    let story = async {
        until(&fixture, || fixture.feed.metrics.write_errors.get() >= 3).await;
        assert_eq!(fixture.settle.total().in_flight(), LINES as u64);
        tokio::task::block_in_place(|| {
            allow(&kafka, "test", on, write);
            allow(&kafka, "test", cluster, idempotent);
        });
        until(&fixture, || fixture.settle.total().in_flight() == 0).await;
        fixture.queue.close();
    };
    tokio::join!(running, story);
    fixture.judge(&counted(&read(&plain(&kafka), &topic)));
}
