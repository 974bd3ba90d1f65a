//! Buckets that are listed, on fake-gcs-server.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::{Cloud, expected, gzip, lines, sorted};
use serde_json::json;
use skidder_contract::Bench;
use skidder_input::InputState;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn buckets_are_read_once_and_what_is_new_with_the_next_listing() {
    let cloud = Cloud::new().await;
    let directory = tempfile::tempdir().unwrap();
    let plain = lines("plain", 20_000);
    let packed = lines("packed", 20_000);
    let other = lines("other", 10);
    cloud.put("in/a b+ä?.log", plain.clone()).await;
    cloud.put_as(("logs", "in/b.gz"), ("application/x-gzip", ""), gzip(&packed)).await;
    cloud.put("in/empty", "").await;
    cloud.put("in/folder/", "").await;
    cloud.put_as(("other", "c"), ("text/plain", ""), other.clone()).await;
    // More pages than one.
    let settings = "poll_interval: 1s, max_workers: 3, batch_size: 2";
    let buckets = ["logs", "other"];
    let mut bench = Bench::start(cloud.input(settings, &buckets), directory.path());
    bench.until("all came", |bench| bench.events.len() == 40_010).await;
    let named = |name: &str| format!("{name} 019999 of 20000");
    let event = bench.events.iter().find(|event| event["message"] == named("plain")).unwrap();
    let storage = json!({
        "bucket": { "name": "logs" },
        "object": { "name": "in/a b+ä?.log", "content_type": "text/plain", "json_data": [] },
    });
    assert_eq!(event["gcs"], json!({ "storage": storage }));
    assert_eq!(event["cloud"], json!({ "provider": "google cloud" }));
    assert_eq!(event["input"]["type"], "gcs");
    assert_eq!(event["log"]["offset"], plain.rfind("plain 019999").unwrap());
    assert_eq!(event["log"]["file"]["path"], "gs://logs/in/a b+ä?.log");

    let later = lines("later", 100);
    cloud.put("in/later", later.clone()).await;
    // The same name with other content is another object.
    let again = lines("again", 100);
    cloud.put("in/b.gz", gzip(&again)).await;
    bench.until("the new ones came", |bench| bench.events.len() == 40_210).await;
    let all = bench.stop().await;
    assert_eq!(sorted(&all), expected(&[plain, packed, other, later, again]));

    let mut bench = Bench::start(cloud.input(settings, &buckets), directory.path());
    let last = lines("last", 10);
    cloud.put("in/last", last.clone()).await;
    bench.until("the new one came", |bench| bench.events.len() >= 10).await;
    assert_eq!(sorted(&bench.stop().await), expected(&[last]), "all others are known");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn an_object_that_is_stored_with_gzip_goes_on_where_it_was_settled() {
    let cloud = Cloud::new().await;
    let directory = tempfile::tempdir().unwrap();
    let text = lines("line", 300_000);
    // A server decodes it unless it is asked not to, and ignores a range then.
    let content = gzip(&text);
    cloud.put_as(("logs", "a.log"), ("text/plain", "gzip"), content).await;
    let mut all = Vec::new();
    for wanted in [70_000, 90_000, usize::MAX] {
        let input = cloud.input("poll_interval: 1s", &["logs"]);
        let mut bench = Bench::start(input, directory.path());
        let before = all.len();
        bench
            .until("some came", |bench| {
                bench.events.len() >= wanted || before + bench.events.len() >= 300_000
            })
            .await;
        for event in bench.stop().await {
            all.push(event["message"].as_str().unwrap().to_owned());
        }
    }
    assert!(all.iter().eq(text.lines()), "{} lines", all.len());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_bucket_is_listed_once_without_poll_and_its_lines_are_parsed() {
    let cloud = Cloud::new().await;
    let directory = tempfile::tempdir().unwrap();
    let text = "{\"a\": {\"b\": 1}}\nplain\n";
    cloud.put_as(("logs", "a"), ("application/json", ""), text).await;
    let settings = "poll: false, parse_json: true, content_type: x/y, override_content_type: true";
    let mut bench = Bench::start(cloud.input(settings, &["logs"]), directory.path());
    bench.until("it ends", |bench| bench.input.state() == InputState::Ended).await;
    let events = bench.stop().await;
    assert_eq!(sorted(&events), ["plain", "{\"a\": {\"b\": 1}}"]);
    let object = |at: usize| &events[at]["gcs"]["storage"]["object"];
    assert_eq!(object(0)["json_data"], json!([{ "a": { "b": 1 } }]));
    assert_eq!(object(1)["json_data"], json!([]));
    assert_eq!(object(0)["content_type"], "x/y");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn values_of_json_are_events_in_objects_that_begin_so() {
    let cloud = Cloud::new().await;
    let directory = tempfile::tempdir().unwrap();
    let values: Vec<String> = (0..2000).map(|number| format!("{{\n\"n\": {number}\n}}")).collect();
    let list = format!("[{}]", values[..1000].join(", "));
    cloud.put_as(("logs", "list.json"), ("application/json", ""), list).await;
    let packed = gzip(&values[1000..].join("\n"));
    cloud.put_as(("logs", "values.gz"), ("application/octet-stream", ""), packed).await;
    let text = lines("line", 100);
    cloud.put_as(("logs", "lines"), ("application/octet-stream", ""), text.clone()).await;
    let wrong = "{\"a\": 1}\n<html>";
    cloud.put_as(("logs", "wrong.json"), ("application/json", ""), wrong).await;
    let settings = "poll: false, parse_json: true";
    let mut bench = Bench::start(cloud.input(settings, &["logs"]), directory.path());
    bench.until("all came", |bench| bench.events.len() == 2101).await;
    bench
        .until("one is no JSON", |bench| {
            let error = bench.input.metrics().last_error();
            error.is_some_and(|error| error.text.contains("at byte 9: no value of JSON begins so"))
        })
        .await;
    let event = bench.events.iter().find(|event| event["message"] == values[1]).unwrap();
    assert_eq!(event["log"]["offset"], values[0].len() + 1, "that of the comma, as in Filebeat");
    assert_eq!(event["gcs"]["storage"]["object"]["json_data"], json!([{ "n": 1 }]));
    let mut all: Vec<String> = values;
    all.extend(text.lines().map(str::to_owned));
    all.push("{\"a\": 1}".to_owned());
    all.sort_unstable();
    assert_eq!(sorted(&bench.stop().await), all);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn rows_are_events_with_the_order_of_filebeat() {
    let cloud = Cloud::new().await;
    let text = "b;a\n1;\"2\n3\"\n# no row\n4;5\n";
    cloud.put_as(("logs", "a.csv"), ("text/csv", "gzip"), gzip(text)).await;
    for (settings, wanted) in [
        ("poll: false", [r#"{"b":"1","a":"2\n3"}"#, r#"{"b":"4","a":"5"}"#]),
        ("poll: false, parse_json: true", [r#"{"a":"2\n3","b":"1"}"#, r#"{"a":"5","b":"4"}"#]),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let settings = format!("{settings}, decoding.codec.csv: {{comma: ';', comment: '#'}}");
        let mut bench = Bench::start(cloud.input(&settings, &["logs"]), directory.path());
        bench.until("it ends", |bench| bench.input.state() == InputState::Ended).await;
        let events = bench.stop().await;
        let messages: Vec<&str> =
            events.iter().map(|event| event["message"].as_str().unwrap()).collect();
        assert_eq!(messages, wanted);
        assert_eq!(
            (&events[0]["log"]["offset"], &events[1]["log"]["offset"]),
            (&4.into(), &12.into())
        );
        let data = &events[1]["gcs"]["storage"]["object"]["json_data"];
        let is_parsed = settings.contains("parse_json");
        assert_eq!(*data, if is_parsed { json!([{ "a": "5", "b": "4" }]) } else { json!([]) });
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn rows_of_tables_are_events() {
    let cloud = Cloud::new().await;
    let directory = tempfile::tempdir().unwrap();
    let content = include_bytes!("../../skidder-table/testdata/v2.parquet");
    cloud.put_as(("logs", "a.parquet"), ("application/octet-stream", ""), &content[..]).await;
    let settings = "poll: false, parse_json: true, decoding.codec.parquet.enabled: true";
    let mut bench = Bench::start(cloud.input(settings, &["logs"]), directory.path());
    bench.until("it ends", |bench| bench.input.state() == InputState::Ended).await;
    let events = bench.stop().await;
    assert_eq!(events.len(), 200);
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event["log"]["offset"], number);
        assert_eq!(event["gcs"]["storage"]["object"]["json_data"][0]["n"], number);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn elements_of_a_list_in_a_field_are_events() {
    let cloud = Cloud::new().await;
    let directory = tempfile::tempdir().unwrap();
    let text = "{\"Records\": [{\"n\": 1}, {\"n\":\n2}]}\n{\"Records\": [{\"n\": 3}]}";
    cloud.put_as(("logs", "a"), ("application/json", ""), text).await;
    let settings = "poll: false, expand_event_list_from_field: Records, parse_json: true";
    let mut bench = Bench::start(cloud.input(settings, &["logs"]), directory.path());
    bench.until("it ends", |bench| bench.input.state() == InputState::Ended).await;
    let events = bench.stop().await;
    assert_eq!(sorted(&events), ["{\"n\":\n2}", "{\"n\": 1}", "{\"n\": 3}"]);
    let data = |at: usize| &events[at]["gcs"]["storage"]["object"]["json_data"];
    assert!((0..3).all(|at| *data(at) == json!([{ "n": at + 1 }])), "{events:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_bucket_that_is_not_there_is_trouble_with_a_remedy_and_stops_no_other() {
    let cloud = Cloud::new().await;
    let directory = tempfile::tempdir().unwrap();
    let text = lines("a", 10);
    cloud.put("a", text.clone()).await;
    let input = cloud.input("poll_interval: 1s", &["nowhere", "logs"]);
    let mut bench = Bench::start(input, directory.path());
    bench.trouble("see `buckets`").await;
    bench.until("the others came", |bench| bench.events.len() == 10).await;
    assert_eq!(sorted(&bench.stop().await), expected(&[text]));
}
