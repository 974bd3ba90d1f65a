//! Buckets that are listed and queues with messages, on versitygw (S3, which checks signatures) and moto.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::{Cloud, gzip, lines, news};
use serde_json::{Value, json};
use skidder_contract::Bench;
use std::time::Duration;

/// The messages in order, each as often as it came.
fn sorted(events: &[Value]) -> Vec<String> {
    let text = |event: &Value| event["message"].as_str().unwrap().to_owned();
    let mut all: Vec<String> = events.iter().map(text).collect();
    all.sort_unstable();
    all
}

/// The lines of texts in order.
fn expected(texts: &[String]) -> Vec<String> {
    let mut all: Vec<String> =
        texts.iter().flat_map(|text| text.lines()).map(str::to_owned).collect();
    all.sort_unstable();
    all
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_bucket_is_read_once_and_what_is_new_with_the_next_listing() {
    let cloud = Cloud::versitygw();
    let directory = tempfile::tempdir().unwrap();
    let plain = lines("plain", 20_000);
    let packed = lines("packed", 20_000);
    cloud.put("in/a b+ä.log", plain.clone()).await;
    cloud.put("in/b.log.gz", gzip(&packed)).await;
    cloud.put("in/empty", "").await;
    cloud.put("other/c.log", lines("other", 10)).await;
    let settings = "non_aws_bucket_name: logs, bucket_list_prefix: in/, bucket_list_interval: 1s, number_of_workers: 3, \
                    include_s3_metadata: [x-amz-meta-team, content-length]";
    let mut bench = Bench::start(cloud.input(settings), directory.path());
    bench.until("both came", |bench| bench.events.len() == 40_000).await;
    let named = |name: &str| format!("{name} 019999 of 20000");
    let event = bench.events.iter().find(|event| event["message"] == named("plain")).unwrap();
    assert_eq!(event["aws"]["s3"]["bucket"], json!({"name": "logs", "arn": "logs"}));
    assert_eq!(event["aws"]["s3"]["object"]["key"], "in/a b+ä.log");
    let metadata = json!({"x-amz-meta-team": "a", "content-length": plain.len()});
    assert_eq!(event["aws"]["s3"]["metadata"], metadata);
    assert_eq!(event["cloud"], json!({"provider": "unknown", "region": "eu-test-1"}));
    assert_eq!(event["input"]["type"], "aws-s3");
    assert_eq!(event["log"]["offset"], plain.rfind("plain 019999").unwrap());
    let url = format!("http://127.0.0.1:{}/logs/in/a%20b%2B%C3%A4.log", cloud.server.port());
    assert_eq!(event["log"]["file"]["path"], url);

    let later = lines("later", 100);
    cloud.put("in/later", later.clone()).await;
    // The same name with other content is another object.
    let again = lines("again", 100);
    cloud.put("in/b.log.gz", gzip(&again)).await;
    bench.until("all came", |bench| bench.events.len() == 40_200).await;
    let all = bench.stop().await;
    assert_eq!(sorted(&all), expected(&[plain, packed, later, again]));

    let mut bench = Bench::start(cloud.input(settings), directory.path());
    let last = lines("last", 10);
    cloud.put("in/last", last.clone()).await;
    bench.until("the new one came", |bench| bench.events.len() >= 10).await;
    assert_eq!(sorted(&bench.stop().await), expected(&[last]), "all others are known");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_bucket_that_cannot_be_listed_is_trouble_with_a_remedy() {
    let cloud = Cloud::versitygw();
    let directory = tempfile::tempdir().unwrap();
    let input = cloud.input("non_aws_bucket_name: nowhere, bucket_list_interval: 1s");
    let mut bench = Bench::start(input, directory.path());
    bench.trouble("see `bucket_arn` or `non_aws_bucket_name`").await;
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn messages_in_each_form_are_deleted_behind_their_lines() {
    const OBJECTS: usize = 60;
    let cloud = Cloud::moto().await;
    let directory = tempfile::tempdir().unwrap();
    let queue = cloud.queue("news", json!({}));
    let mut texts = Vec::new();
    for number in 0..OBJECTS {
        let (key, text) = (format!("in/{number}"), lines(&format!("o{number}"), 50));
        cloud
            .put(&key, if number % 2 == 0 { gzip(&text) } else { text.clone().into_bytes() })
            .await;
        texts.push(text);
        let body = match number % 3 {
            0 => news(&key.replace('/', "%2F")),
            1 => json!({
                "source": "aws.s3", "detail-type": "Object Created", "region": "eu-central-1",
                "detail": { "bucket": { "name": "logs" }, "object": { "key": key } },
            }),
            _ => json!({ "TopicArn": "arn:aws:sns:x:1:t", "Message": news(&key).to_string() }),
        };
        cloud.tell(&queue, &body);
    }
    cloud.tell(&queue, &json!({ "Event": "s3:TestEvent", "Bucket": "logs" }));
    let settings = format!("queue_url: '{queue}', sqs.wait_time: 1s");
    let mut bench = Bench::start(cloud.input(&settings), directory.path());
    bench.until("all came", |bench| bench.events.len() == OBJECTS * 50).await;
    cloud.await_count(&queue, (0, 0)).await;
    // One that comes twice is read once.
    cloud.tell(&queue, &news("in/0"));
    cloud.await_count(&queue, (0, 0)).await;
    let event = &bench.events[0];
    assert_eq!(event["aws"]["s3"]["bucket"], json!({"name": "logs", "arn": "arn:aws:s3:::logs"}));
    assert_eq!(event["cloud"], json!({"provider": "aws", "region": "eu-central-1"}));
    assert_eq!(sorted(&bench.stop().await), expected(&texts));

    // Nor after a restart. In a queue of its own: moto gives a message to the request of the run before, which nobody waits
    // for any more.
    let queue = cloud.queue("again", json!({}));
    let settings = format!("queue_url: '{queue}', sqs.wait_time: 1s");
    cloud.tell(&queue, &news("in/1"));
    let bench = Bench::start(cloud.input(&settings), directory.path());
    cloud.await_count(&queue, (0, 0)).await;
    assert_eq!(bench.stop().await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn elements_of_a_list_are_events_and_what_is_no_json_fails() {
    let cloud = Cloud::versitygw();
    let directory = tempfile::tempdir().unwrap();
    let records: Vec<String> =
        (0..3000).map(|number| format!("{{\n \"eventName\": \"Get{number}\"\n}}")).collect();
    let trail = format!("{{\"Records\": [{}]}}", records.join(", "));
    cloud.put("trail/1.json.gz", gzip(&trail)).await;
    cloud.put("trail/2.json", "{\"Records\": [{\"last\": 1}], <html>").await;
    cloud.put("trail/3.json", "{\"Digest\": []}").await;
    let settings = "non_aws_bucket_name: logs, bucket_list_interval: 1s, content_type: application/json, \
                    expand_event_list_from_field: Records";
    let mut bench = Bench::start(cloud.input(settings), directory.path());
    bench.until("all came", |bench| bench.events.len() == 3001).await;
    let mut expected: Vec<&str> = records.iter().map(|text| &**text).collect();
    expected.push("{\"last\": 1}");
    expected.sort_unstable();
    let mut messages = bench.messages();
    messages.sort_unstable();
    assert_eq!(messages, expected);
    bench.stop().await;
    for (key, wanted) in [
        ("trail/2", "at byte 27: the name of a field must stand here"),
        ("trail/3", "an object has no field `Records`"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let settings = format!("{settings}, bucket_list_prefix: {key}");
        let mut bench = Bench::start(cloud.input(&settings), directory.path());
        bench
            .until("it has failed", |bench| {
                let error = bench.input.metrics().last_error();
                error.is_some_and(|error| error.text.contains(wanted))
            })
            .await;
        bench.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn rows_are_events_also_behind_a_stop_and_a_row_that_is_wrong_fails() {
    let cloud = Cloud::versitygw();
    let directory = tempfile::tempdir().unwrap();
    let mut text = "time,text\n".to_owned();
    let mut rows = Vec::new();
    for number in 0..100_000 {
        rows.push((text.len(), format!("{{\"text\":\"a\\nb\",\"time\":\"{number}\"}}")));
        text.push_str(&format!("{number},\"a\nb\"\n"));
    }
    cloud.put("csv/1.csv.gz", gzip(&text)).await;
    let settings = "non_aws_bucket_name: logs, bucket_list_interval: 1s, bucket_list_prefix: csv/, \
                    decoding.codec.csv.enabled: true";
    let mut all = Vec::new();
    for wanted in [20_000, usize::MAX] {
        let mut bench = Bench::start(cloud.input(settings), directory.path());
        let before = all.len();
        bench
            .until("some came", |bench| {
                bench.events.len() >= wanted || before + bench.events.len() >= rows.len()
            })
            .await;
        all.extend(bench.stop().await);
    }
    assert_eq!(all.len(), rows.len());
    for (event, (offset, message)) in all.iter().zip(&rows) {
        assert_eq!(event["message"], *message);
        assert_eq!(event["log"]["offset"], *offset);
    }
    cloud.put("wrong.csv", "a,b\n1,2\n3\n4,5\n").await;
    let settings = settings.replace("csv/", "wrong");
    let mut bench = Bench::start(cloud.input(&settings), directory.path());
    let wanted = "at byte 8: the row in line 3 has 1 values, and there are 2 names";
    bench
        .until("it has failed", |bench| {
            let error = bench.input.metrics().last_error();
            error.is_some_and(|error| error.text.contains(wanted))
        })
        .await;
    assert_eq!(sorted(&bench.stop().await), ["{\"a\":\"1\",\"b\":\"2\"}"]);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn rows_of_tables_are_events_once_and_what_is_no_table_fails() {
    let cloud = Cloud::versitygw();
    let directory = tempfile::tempdir().unwrap();
    let content = include_bytes!("../../skidder-table/testdata/c_zstd.parquet");
    cloud.put("table/1.parquet", &content[..]).await;
    cloud.put("wrong/cut", &content[..content.len() / 2]).await;
    cloud.put("wrong/lines", "a\nb\n".repeat(10)).await;
    let settings = "non_aws_bucket_name: logs, bucket_list_interval: 1s, bucket_list_prefix: table/, \
                    decoding.codec.parquet.enabled: true";
    let mut bench = Bench::start(cloud.input(settings), directory.path());
    bench.until("all came", |bench| bench.events.len() == 200).await;
    for (number, event) in bench.stop().await.iter().enumerate() {
        let row: Value = serde_json::from_str(event["message"].as_str().unwrap()).unwrap();
        assert_eq!((&row["n"], &event["log"]["offset"]), (&number.into(), &number.into()));
        assert_eq!(event["aws"]["s3"]["object"]["key"], "table/1.parquet");
    }
    let mut bench = Bench::start(cloud.input(settings), directory.path());
    cloud.put("table/2.parquet", &content[..]).await;
    bench.until("the new one came", |bench| bench.events.len() >= 200).await;
    assert_eq!(bench.stop().await.len(), 200, "the first one is known");
    for (key, wanted) in [
        (
            "wrong/cut",
            "at row 0: this is no Parquet that can be read: it does not end with the magic number",
        ),
        ("wrong/lines", "magic number `PAR1`"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let settings = settings.replace("table/", key);
        let mut bench = Bench::start(cloud.input(&settings), directory.path());
        bench
            .until("it has failed", |bench| {
                let error = bench.input.metrics().last_error();
                error.is_some_and(|error| error.text.contains(wanted))
            })
            .await;
        assert_eq!(bench.stop().await.len(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_message_stays_hidden_while_an_output_is_stuck() {
    let cloud = Cloud::moto().await;
    let directory = tempfile::tempdir().unwrap();
    let queue = cloud.queue("news", json!({}));
    cloud.put("a", lines("a", 100)).await;
    cloud.tell(&queue, &news("a"));
    let settings = format!("queue_url: '{queue}', sqs.wait_time: 1s, visibility_timeout: 2s");
    let mut bench = Bench::start(cloud.input(&settings), directory.path());
    bench.is_stuck = true;
    cloud.await_count(&queue, (0, 1)).await;
    for _ in 0..60 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(cloud.count(&queue).await, (0, 1));
    }
    bench.is_stuck = false;
    bench.until("it came", |bench| bench.events.len() == 100).await;
    bench.take();
    cloud.await_count(&queue, (0, 0)).await;
    assert_eq!(bench.stop().await.len(), 100);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_message_that_fails_goes_to_the_dead_letters_or_is_deleted() {
    let cloud = Cloud::moto().await;
    let directory = tempfile::tempdir().unwrap();
    let dead = cloud.queue("dead", json!({}));
    let policy = json!({
        "deadLetterTargetArn": "arn:aws:sqs:eu-central-1:123456789012:dead", "maxReceiveCount": 2,
    });
    let queues = [
        cloud.queue("with", json!({ "RedrivePolicy": policy.to_string() })),
        cloud.queue("without", json!({})),
    ];
    cloud.put("good", lines("good", 10)).await;
    cloud.put("damaged.gz", gzip(&lines("damaged", 1000))[..2000].to_vec()).await;
    for (number, queue) in queues.iter().enumerate() {
        for body in [news("missing"), news("damaged.gz"), json!("hello"), news("good")] {
            cloud.tell(queue, &body);
        }
        let settings = format!(
            "queue_url: '{queue}', sqs: {{wait_time: 1s, max_receive_count: 2}}, visibility_timeout: 1s"
        );
        let place = directory.path().join(number.to_string());
        std::fs::create_dir(&place).unwrap();
        let mut bench = Bench::start(cloud.input(&settings), &place);
        let is_good = |event: &Value| event["message"].as_str().unwrap().starts_with("good");
        let good = |bench: &Bench| bench.events.iter().filter(|event| is_good(event)).count();
        bench.until("the good one came", |bench| good(bench) == 10).await;
        for _ in 0..200 {
            bench.take();
            if cloud.count(queue).await == (0, 0) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(cloud.count(queue).await, (0, 0));
        // The damaged one, the missing one and what is none.
        assert_eq!(cloud.count(&dead).await, (3, 0), "only of the queue that has one for them");
        assert!(bench.input.metrics().errors.get() >= 4);
        let all = bench.stop().await;
        let mut damaged: Vec<&str> = all
            .iter()
            .map(|event| event["message"].as_str().unwrap())
            .filter(|message| message.starts_with("damaged"))
            .collect();
        let count = damaged.len();
        damaged.dedup();
        assert!(count > 0 && damaged.len() == count, "what was read goes on where it was settled");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn objects_are_copied_and_deleted_behind_their_lines() {
    let cloud = Cloud::moto().await;
    let directory = tempfile::tempdir().unwrap();
    let queue = cloud.queue("news", json!({}));
    for number in 0..5 {
        cloud.put(&format!("in/{number}"), lines(&number.to_string(), 10)).await;
        cloud.tell(&queue, &news(&format!("in/{number}")));
    }
    let backup = "backup_to_bucket_prefix: old/, delete_after_backup: true";
    let settings = format!(
        "queue_url: '{queue}', sqs.wait_time: 1s, backup_to_bucket_arn: 'arn:aws:s3:::kept', {backup}"
    );
    let mut bench = Bench::start(cloud.input(&settings), directory.path());
    bench.until("all came", |bench| bench.events.len() == 50).await;
    cloud.await_count(&queue, (0, 0)).await;
    assert_eq!(cloud.keys("logs").await.len(), 0);
    assert_eq!(
        cloud.keys("kept").await,
        ["old/in/0", "old/in/1", "old/in/2", "old/in/3", "old/in/4"]
    );
    bench.stop().await;

    let place = directory.path().join("listed");
    std::fs::create_dir(&place).unwrap();
    for number in 0..5 {
        cloud.put(&format!("in/{number}"), lines(&number.to_string(), 10)).await;
    }
    let settings =
        format!("non_aws_bucket_name: logs, non_aws_backup_to_bucket_name: kept, {backup}");
    let mut bench = Bench::start(cloud.input(&settings), &place);
    bench.until("all came", |bench| bench.events.len() == 50).await;
    for _ in 0..100 {
        bench.take();
        if cloud.keys("logs").await.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(cloud.keys("logs").await.len(), 0);
    bench.stop().await;
}
