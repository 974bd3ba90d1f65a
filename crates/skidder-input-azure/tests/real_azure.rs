//! Containers that are listed, on Azurite, Microsoft's emulator, which checks signatures.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::{Cloud, KEY, gzip, input, lines};
use serde_json::{Value, json};
use skidder_contract::Bench;

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
async fn values_of_json_are_events_in_blobs_that_begin_so() {
    let cloud = Cloud::start().await;
    let directory = tempfile::tempdir().unwrap();
    let values: Vec<String> = (0..2000).map(|number| format!("{{\n\"n\": {number}\n}}")).collect();
    let list = format!("[{}]", values[..1000].join(", "));
    cloud.put_as("logs", "list.json", "application/json", list).await;
    let packed = gzip(&values[1000..].join("\n"));
    cloud.put_as("logs", "values.gz", "application/octet-stream", packed).await;
    let text = lines("line", 100);
    cloud.put_as("logs", "lines", "application/octet-stream", text.clone()).await;
    cloud.put_as("logs", "wrong.json", "application/json", "{\"a\": 1}\n<html>").await;
    let mut bench = Bench::start(cloud.input(&["logs"], "poll: false"), directory.path());
    bench.until("all came", |bench| bench.events.len() == 2101).await;
    bench
        .until("one is no JSON", |bench| {
            let error = bench.input.metrics().last_error();
            error.is_some_and(|error| error.text.contains("at byte 9: no value of JSON begins so"))
        })
        .await;
    let place = bench.events.iter().find(|event| event["message"] == values[1]).unwrap();
    assert_eq!(place["log"]["offset"], values[0].len() + 1, "that of the comma, as in Filebeat");
    let mut all: Vec<String> = values;
    all.extend(text.lines().map(str::to_owned));
    all.push("{\"a\": 1}".to_owned());
    all.sort_unstable();
    assert_eq!(sorted(&bench.stop().await), all);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn containers_are_read_once_and_what_is_new_with_the_next_listing() {
    let cloud = Cloud::start().await;
    let directory = tempfile::tempdir().unwrap();
    let (plain, packed) = (lines("plain", 20_000), lines("packed", 20_000));
    let beside = lines("beside", 10);
    cloud.put("in/a b+ä.log", plain.clone()).await;
    cloud.put_as("logs", "in/b.log.gz", "application/x-gzip", gzip(&packed)).await;
    cloud.put("in/empty", "").await;
    cloud.put("elsewhere/c.log", lines("elsewhere", 10)).await;
    cloud.put_as("other", "in/a b+ä.log", "application/octet-stream", beside.clone()).await;
    let settings = "path_prefix: in/, poll: true, poll_interval: 1s, max_workers: 3, batch_size: 2";
    let both = ["logs", "other"];
    let mut bench = Bench::start(cloud.input(&both, settings), directory.path());
    bench.until("both came", |bench| bench.events.len() == 40_010).await;
    let find = |bench: &Bench, message: &str| {
        bench.events.iter().find(|event| event["message"] == message).unwrap().clone()
    };
    let event = find(&bench, "plain 019999 of 20000");
    let storage = json!({
        "container": {"name": "logs"}, "blob": {"name": "in/a b+ä.log", "content_type": "text/plain"},
    });
    assert_eq!(event["azure"]["storage"], storage);
    assert_eq!(event["cloud"], json!({"provider": "azure"}));
    assert_eq!(event["input"]["type"], "azure-blob-storage");
    assert_eq!(event["log"]["offset"], plain.rfind("plain 019999").unwrap());
    assert_eq!(event["log"]["file"]["path"], format!("{}/logs/in/a b+ä.log", cloud.url()));
    let event = find(&bench, "packed 000001 of 20000");
    assert_eq!(event["azure"]["storage"]["blob"]["content_type"], "application/x-gzip");
    let other = find(&bench, "beside 000000 of 10");
    assert_eq!(other["azure"]["storage"]["container"]["name"], "other");

    let later = lines("later", 100);
    cloud.put("in/later", later.clone()).await;
    // The same name with other content is another blob.
    let again = lines("again", 100);
    cloud.put_as("logs", "in/b.log.gz", "application/x-gzip", gzip(&again)).await;
    bench.until("all came", |bench| bench.events.len() == 40_210).await;
    let all = sorted(&bench.stop().await);
    assert_eq!(all, expected(&[plain, packed, beside, later, again]));

    let mut bench = Bench::start(cloud.input(&both, settings), directory.path());
    let last = lines("last", 10);
    cloud.put("in/last", last.clone()).await;
    bench.until("the new one came", |bench| bench.events.len() >= 10).await;
    assert_eq!(sorted(&bench.stop().await), expected(&[last]), "all others are known");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn without_polling_the_input_ends_behind_one_listing() {
    let cloud = Cloud::start().await;
    let directory = tempfile::tempdir().unwrap();
    let mut texts = Vec::new();
    for number in 0..25 {
        let text = lines(&format!("b{number}"), 100);
        cloud.put(&format!("{number}"), text.clone()).await;
        texts.push(text);
    }
    let mut bench = Bench::start(cloud.input(&["logs"], "batch_size: 4"), directory.path());
    bench.until("all came", |bench| bench.events.len() == 2500).await;
    assert_eq!(sorted(&bench.stop().await), expected(&texts));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_connection_string_with_a_signature_is_enough_and_old_blobs_are_left_out() {
    let cloud = Cloud::start().await;
    let directory = tempfile::tempdir().unwrap();
    let text = lines("text", 10);
    cloud.put("a", text.clone()).await;
    let string = format!(
        "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey={KEY};BlobEndpoint={}/;",
        cloud.url()
    );
    let settings =
        |more: &str| format!("{{auth.connection_string.uri: '{string}', poll: true{more}}}");
    let mut bench = Bench::start(input(&["logs"], &settings("")), directory.path());
    bench.until("it came", |bench| bench.events.len() == 10).await;
    assert_eq!(sorted(&bench.stop().await), expected(&[text]));
    // The year 2999: all blobs are older.
    let directory = tempfile::tempdir().unwrap();
    let settings = settings(", poll_interval: 1s, timestamp_epoch: 32472144000");
    let bench = Bench::start(input(&["logs"], &settings), directory.path());
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    assert_eq!(bench.stop().await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_container_that_cannot_be_listed_is_trouble_with_a_remedy_and_holds_up_no_other() {
    let cloud = Cloud::start().await;
    let directory = tempfile::tempdir().unwrap();
    let text = lines("text", 10);
    cloud.put("a", text.clone()).await;
    let settings = "poll: true, poll_interval: 1s";
    let mut bench = Bench::start(cloud.input(&["nowhere", "logs"], settings), directory.path());
    bench.trouble("there is no container `nowhere`: see `containers`").await;
    bench.until("the other came", |bench| bench.events.len() == 10).await;
    assert_eq!(sorted(&bench.stop().await), expected(&[text]));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_wrong_key_is_trouble_with_a_remedy() {
    let cloud = Cloud::start().await;
    let directory = tempfile::tempdir().unwrap();
    let text = format!(
        "{{account_name: devstoreaccount1, auth.shared_credentials.account_key: d3Jvbmc=, storage_url: '{}', poll: true}}",
        cloud.url()
    );
    let mut bench = Bench::start(input(&["logs"], &text), directory.path());
    bench.trouble("the server answered 403").await;
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_large_blob_goes_on_where_it_was_settled() {
    const LINES: usize = 400_000;
    let cloud = Cloud::start().await;
    let directory = tempfile::tempdir().unwrap();
    let text = lines("large", LINES);
    cloud.put_as("logs", "large.gz", "application/x-gzip", gzip(&text)).await;
    let settings = "poll: true, poll_interval: 1s";
    let mut all = Vec::new();
    let mut bench = Bench::start(cloud.input(&["logs"], settings), directory.path());
    bench.until("a part came", |bench| bench.events.len() >= 20_000).await;
    all.extend(bench.stop().await);
    let before = all.len();
    let left = LINES - before.min(LINES);
    let mut bench = Bench::start(cloud.input(&["logs"], settings), directory.path());
    bench.until("the rest came", |bench| bench.events.len() >= left).await;
    all.extend(bench.stop().await);
    let mut messages = sorted(&all);
    messages.dedup();
    assert_eq!(messages, expected(&[text]), "nothing is missing");
}
