//! Clients of Amazon's services against versitygw (S3, which checks signatures) and moto (all of them, which does not).
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use bytes::Bytes;
use common::{client, keys, refused};
use http::Method;
use serde_json::{Value, json};
use skidder_amazon::{
    Ask, Assume, Bucket, EventFilter, List, LogGroup, LogStreams, Logs, ObjectName, Part, Provider,
    Queue, QueueUrl, Receive, Service, Source,
};
use skidder_net::{HostUrl, ProxyChoice};
use skidder_os::{Clock, RealFs, SystemClock, Timestamp};
use skidder_testkit::servers::Server;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const USER: (&str, &str) = ("test", "secret of tests");
/// moto knows Amazon's regions only.
const REGION: &str = "eu-central-1";
const KEYS: [&str; 6] = ["a/1.gz", "a/2 ä+b&c=%25?", "a/3~(x)'!*", "b/1", "b/\u{1f600}", "c"];

fn named(key: &str) -> ObjectName<'_> {
    ObjectName { key, version: None }
}

fn service(server: &Server, name: &'static str, bucket: Option<&str>) -> Service {
    let address = format!("127.0.0.1:{}", server.port());
    let service = common::service(name, &address, keys(USER.0, USER.1), bucket);
    // The region of s3.sh is that of the scripted server.
    if server.url().starts_with("s3") {
        service
    } else {
        Service { region: REGION.to_owned(), ..service }
    }
}

/// Calls an operation of moto that the clients do not have.
fn call(server: &Server, service: &str, target: &str, body: &Value) -> Value {
    let login = format!(
        "AWS4-HMAC-SHA256 Credential=test/20260101/{REGION}/{service}/aws4_request, SignedHeaders=host, Signature=x"
    );
    let headers = [
        ("authorization", login.as_str()),
        ("x-amz-target", target),
        ("content-type", "application/x-amz-json-1.1"),
    ];
    let (status, answer) = server.text("POST", "/", &headers, &body.to_string()).unwrap();
    assert_eq!(status, 200, "{answer}");
    serde_json::from_str(&answer).unwrap_or_default()
}

async fn put(service: &Service, key: Option<&str>, body: &[u8]) {
    let body = [Bytes::copy_from_slice(body)];
    let mut ask = Ask::empty(Method::PUT, key);
    if key.is_some() {
        ask.headers = vec![
            ("content-encoding", "x-test"),
            ("content-type", "text/x-test"),
            ("x-amz-meta-team", "logs"),
        ];
    } else {
        // moto wants a place for a bucket outside of us-east-1.
        ask.headers = vec![("content-type", "application/xml")];
    }
    ask.body = &body;
    client(service).ask(ask).await.unwrap();
}

/// All that a bucket's client does. moto copies whatever `if-match` says.
async fn try_bucket(service: Service, is_moto: bool) {
    let mut bucket = Bucket::new(client(&service));
    for key in KEYS {
        put(&service, Some(key), key.as_bytes()).await;
    }
    // Page by page, each object once.
    let (mut found, mut token) = (Vec::new(), None);
    loop {
        let list = List { token: token.as_deref(), objects_max: Some(2), ..List::default() };
        let page = bucket.list(list).await.unwrap();
        assert!(page.objects.len() <= 2);
        found.extend(page.objects);
        token = page.next;
        if token.is_none() {
            break;
        }
    }
    let names: Vec<&str> = found.iter().map(|object| object.key.as_str()).collect();
    assert_eq!(names, KEYS);
    assert!(
        found
            .iter()
            .all(|object| object.size == object.key.len() as u64 && !object.etag.is_empty())
    );
    let now = SystemClock::new().wall().0;
    let is_new = |time: Timestamp| (now - time.0).abs() < 60_000_000_000;
    assert!(found.iter().all(|object| object.modified.is_some_and(is_new)), "{found:?}");
    let list = List { prefix: "a/", start_after: KEYS[0], ..List::default() };
    let page = bucket.list(list).await.unwrap();
    assert_eq!(page.objects.iter().map(|object| &*object.key).collect::<Vec<_>>(), KEYS[1..3]);

    for (key, object) in KEYS.iter().zip(&found) {
        let head = bucket.head(named(key)).await.unwrap();
        assert_eq!((&head.etag, head.size), (&object.etag, object.size));
        assert_eq!((&*head.content_type, &*head.content_encoding), ("text/x-test", "x-test"));
        assert_eq!(head.metadata["team"], "logs");
        assert!(head.modified.is_some_and(is_new));
        let part = Part { from: 1, until: None, if_match: Some(&head.etag) };
        let got = bucket.get(named(key), part).await;
        if key.len() == 1 {
            assert!(refused(got.unwrap_err()).is_behind_the_end());
            continue;
        }
        let mut got = got.unwrap();
        let piece = got.content.piece(100).await.unwrap().unwrap();
        assert_eq!(piece, key.as_bytes()[1..]);
        assert!(got.content.piece(100).await.unwrap().is_none());
    }

    let large: Vec<u8> = (0..20_000_000_u32).map(|at| (at % 251) as u8).collect();
    put(&service, Some("large"), &large).await;
    let part = Part { from: 1_000_000, until: Some(19_000_000), if_match: None };
    let mut got = bucket.get(named("large"), part).await.unwrap();
    assert_eq!((got.head.size, got.content.left()), (20_000_000, 18_000_000));
    let mut at = 1_000_000;
    while let Some(piece) = got.content.piece(65_536).await.unwrap() {
        assert!(piece == large[at..at + piece.len()]);
        at += piece.len();
    }
    assert_eq!(at, 19_000_000);
    let old = bucket.head(named("large")).await.unwrap().etag;
    // Dropped in the middle: the next request has another connection.
    let mut got = bucket.get(named("large"), Part::default()).await.unwrap();
    got.content.piece(1000).await.unwrap().unwrap();
    drop(got);
    put(&service, Some("large"), b"changed").await;
    let part = Part { if_match: Some(&old), ..Part::default() };
    assert!(refused(bucket.get(named("large"), part).await.unwrap_err()).is_changed());

    for key in &KEYS[..2] {
        let copy = format!("done/{key}");
        let copied = bucket.copy(("logs", named(key)), None, &copy).await.unwrap();
        let head = bucket.head(named(&copy)).await.unwrap();
        assert_eq!((head.etag, head.metadata["team"].as_str()), (copied.etag, "logs"));
        let copied = bucket.copy(("logs", named(key)), Some(&old), &copy).await;
        assert!(is_moto || refused(copied.unwrap_err()).is_changed());
    }
    for key in KEYS {
        bucket.delete(named(key)).await.unwrap();
        bucket.delete(named(key)).await.unwrap();
        assert!(refused(bucket.head(named(key)).await.unwrap_err()).is_missing());
        let got = bucket.get(named(key), Part::default()).await.unwrap_err();
        assert!(refused(got).is_missing());
    }
    let left = bucket.list(List::default()).await.unwrap();
    assert_eq!(left.objects.len(), 3, "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn versitygw_is_listed_read_and_emptied() {
    let server = Server::own_s3(false).unwrap();
    try_bucket(service(&server, "s3", Some("logs")), false).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn moto_is_listed_read_and_emptied() {
    let server = Server::own_moto().unwrap();
    let service = service(&server, "s3", Some("logs"));
    let place = format!(
        "<CreateBucketConfiguration><LocationConstraint>{REGION}</LocationConstraint></CreateBucketConfiguration>"
    );
    put(&service, None, place.as_bytes()).await;
    try_bucket(service, true).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn messages_of_moto_are_received_hidden_and_deleted() {
    let server = Server::own_moto().unwrap();
    let made = call(&server, "sqs", "AmazonSQS.CreateQueue", &json!({ "QueueName": "logs" }));
    let url = QueueUrl::parse(made["QueueUrl"].as_str().unwrap()).unwrap();
    for number in 0..12 {
        let body = format!("{{\"number\":{number},\"text\":\"ä & <b>\"}}");
        let message = json!({ "QueueUrl": url.text, "MessageBody": body });
        call(&server, "sqs", "AmazonSQS.SendMessage", &message);
    }
    let mut queue = Queue::new(client(&service(&server, "sqs", None)), &url);
    assert_eq!(queue.attributes().await.unwrap().messages, 12);
    let wait = Duration::from_secs(1);
    let receive = Receive { messages_max: 10, wait, visibility: Some(Duration::from_mins(5)) };
    let mut messages = queue.receive(receive).await.unwrap();
    messages.extend(queue.receive(receive).await.unwrap());
    let bodies: BTreeSet<&str> = messages.iter().map(|message| message.body.as_str()).collect();
    assert_eq!((messages.len(), bodies.len()), (12, 12));
    let now = SystemClock::new().wall().0;
    for message in &messages {
        assert_eq!(message.receive_count, 1);
        assert!((now - message.sent.unwrap().0).abs() < 60_000_000_000);
    }
    let attributes = queue.attributes().await.unwrap();
    assert_eq!((attributes.messages, attributes.hidden), (0, 12));
    assert_eq!((attributes.visibility, attributes.receives_max), (Duration::from_secs(30), None));
    assert!(queue.receive(receive).await.unwrap().is_empty());

    queue.change_visibility(&messages[0].receipt, Duration::ZERO).await.unwrap();
    let again = queue.receive(receive).await.unwrap();
    assert_eq!((again.len(), again[0].receive_count), (1, 2));
    assert_eq!((&again[0].id, &again[0].body), (&messages[0].id, &messages[0].body));
    let longer =
        [(&*messages[1].receipt, Duration::from_mins(9)), ("nonsense", Duration::from_mins(9))];
    let results = queue.change_visibility_batch(&longer).await.unwrap();
    assert!(results[0].is_ok() && results[1].is_err(), "{results:?}");
    queue.delete(&again[0].receipt).await.unwrap();
    let receipts: Vec<&str> = messages[2..].iter().map(|message| &*message.receipt).collect();
    let results = queue.delete_batch(&receipts).await.unwrap();
    assert!(results.len() == 10 && results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(queue.attributes().await.unwrap().hidden, 1);

    let missing = QueueUrl { text: url.text.replace("logs", "none"), ..url };
    let mut missing = Queue::new(client(&service(&server, "sqs", None)), &missing);
    let refused = refused(missing.receive(receive).await.unwrap_err());
    assert!(
        refused.code.ends_with("QueueDoesNotExist") || refused.code.ends_with("NonExistentQueue"),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn events_of_moto_are_found_and_read() {
    let server = Server::own_moto().unwrap();
    let call = |operation: &str, body: Value| {
        call(&server, "logs", &format!("Logs_20140328.{operation}"), &body)
    };
    let now = SystemClock::new().wall().0 / 1_000_000;
    for group in ["/app/a", "/app/b", "/other"] {
        call("CreateLogGroup", json!({ "logGroupName": group }));
    }
    for stream in ["s1", "s2", "t"] {
        let place = json!({ "logGroupName": "/app/a", "logStreamName": stream });
        call("CreateLogStream", place.clone());
        let events: Vec<Value> = (0..30)
            .map(|number| json!({ "timestamp": now - 10_000 + number, "message": format!("{stream} {number}") }))
            .collect();
        let mut put = place;
        put["logEvents"] = events.into();
        call("PutLogEvents", put);
    }
    let mut logs = Logs::new(client(&service(&server, "logs", None)));
    let groups = logs.groups("/app/", false, None).await.unwrap();
    let names: Vec<&str> = groups.items.iter().map(|group| group.name.as_str()).collect();
    assert_eq!((names, groups.next), (vec!["/app/a", "/app/b"], None));
    assert!(groups.items[0].arn.ends_with(":log-group:/app/a"), "{:?}", groups.items);
    let group = LogGroup::Name("/app/a");
    let streams = logs.streams(group, "s", None).await.unwrap();
    assert_eq!(streams.items.len(), 2);
    let start = Timestamp((now - 10_000 + 5) * 1_000_000);
    let filter = EventFilter {
        group,
        streams: LogStreams::Named(&["s1", "s2"]),
        pattern: "",
        start: Some(start),
        end: None,
        events_max: 7,
        token: None,
    };
    let (mut ids, mut texts, mut token) = (BTreeSet::new(), BTreeSet::new(), None);
    loop {
        let filter = EventFilter { token: token.as_deref(), ..filter };
        let page = logs.events(filter).await.unwrap();
        for event in page.items {
            assert!(event.time >= start && event.ingested.is_some());
            assert!(event.message.starts_with(&event.stream));
            assert!(ids.insert(event.id) && texts.insert(event.message));
        }
        token = page.next;
        if token.is_none() {
            break;
        }
    }
    assert_eq!(texts.len(), 50, "{texts:?}");
    let missing = EventFilter { group: LogGroup::Name("/none"), ..filter };
    let refused = refused(logs.events(missing).await.unwrap_err());
    assert_eq!(refused.code, "ResourceNotFoundException");
    assert!(!refused.is_throttled(), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_role_of_moto_is_taken() {
    let server = Server::own_moto().unwrap();
    let assume = Assume {
        by: keys(USER.0, USER.1),
        role: "arn:aws:iam::123456789012:role/logs".to_owned(),
        external_id: Some("partner".to_owned()),
        duration: Duration::from_mins(15),
        window: Duration::from_mins(5),
        session: "skidder".to_owned(),
        service: HostUrl::parse(server.url(), "", "", |_| 80).unwrap(),
        region: REGION.to_owned(),
    };
    let source = Source::Assumed(Box::new(assume));
    let provider = Provider::new(source, ProxyChoice::Direct, Arc::new(RealFs)).unwrap();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let credentials = provider.get(&clock).await.unwrap();
    assert!(credentials.id.starts_with("ASIA") && credentials.session.is_some(), "{credentials:?}");
    assert_eq!(provider.get(&clock).await.unwrap(), credentials);
}
