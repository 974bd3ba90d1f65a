//! Clients of SQS and CloudWatch Logs, against a scripted server that checks signatures.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::{Act, KEYS, Scripted, client, keys, refused, service};
use serde_json::json;
use skidder_amazon::{
    EntryError, EventFilter, LogGroup, LogStreams, Logs, Queue, QueueUrl, Receive,
};
use skidder_os::Timestamp;
use std::time::Duration;

const SOON: Duration = Duration::from_millis(300);

async fn queue(script: impl IntoIterator<Item = Act>) -> (Scripted, Queue) {
    let server = Scripted::start("sqs", script).await;
    let service = service("sqs", &server.address, keys(KEYS.0, KEYS.1), None);
    let url = QueueUrl::parse(&format!("http://{}/0/logs", server.address)).unwrap();
    (server, Queue::new(client(&service), &url))
}

#[tokio::test]
async fn messages_are_received_with_their_count_and_time() {
    let (server, mut queue) = queue([
        Act::json(
            200,
            json!({ "Messages": [
                { "MessageId": "1", "ReceiptHandle": "r1", "Body": "{}", "MD5OfBody": "x",
                  "Attributes": { "ApproximateReceiveCount": "3", "SentTimestamp": "1440938160123" } },
                { "MessageId": "2", "ReceiptHandle": "r2", "Body": "" },
            ]}),
        ),
        Act::json(200, json!({})),
        Act::xml(200, "<html>hello</html>"),
    ])
    .await;
    let wait = Duration::from_secs(20);
    let visibility = Some(Duration::from_mins(5));
    let receive = Receive { messages_max: 10, wait, visibility };
    let messages = queue.receive(receive).await.unwrap();
    assert_eq!((messages.len(), messages[0].receive_count, messages[1].receive_count), (2, 3, 0));
    assert_eq!(messages[0].sent, Some(Timestamp(1_440_938_160_123_000_000)));
    assert_eq!((messages[0].receipt.as_str(), messages[1].sent), ("r1", None));
    let sent = server.one();
    assert_eq!(sent.header("x-amz-target"), "AmazonSQS.ReceiveMessage");
    assert_eq!(sent.header("content-type"), "application/x-amz-json-1.0");
    let body: serde_json::Value = serde_json::from_slice(&sent.body).unwrap();
    let expected = json!({
        "QueueUrl": format!("http://{}/0/logs", server.address), "MaxNumberOfMessages": 10,
        "WaitTimeSeconds": 20, "VisibilityTimeout": 300,
        "MessageSystemAttributeNames": ["ApproximateReceiveCount", "SentTimestamp"],
    });
    assert_eq!(body, expected);
    assert!(queue.receive(receive).await.unwrap().is_empty());
    let error = queue.receive(receive).await.unwrap_err().to_string();
    assert!(error.contains("not as SQS does"), "{error}");
}

#[tokio::test]
async fn a_batch_may_fail_in_part_and_its_request_is_repeated_over_a_new_connection() {
    let failed = json!({ "Id": "1", "Code": "ReceiptHandleIsInvalid", "Message": "no", "SenderFault": true });
    let (server, mut queue) = queue([
        Act::OkAndClose,
        Act::json(200, json!({ "Successful": [{ "Id": "0" }], "Failed": [failed] })),
        Act::json(200, json!({ "Successful": [{ "Id": "1" }, { "Id": "0" }] })),
    ])
    .await;
    queue.change_visibility("r", Duration::ZERO).await.unwrap();
    let results = queue.delete_batch(&["a", "b"]).await.unwrap();
    let is_ours =
        |result: &Result<(), EntryError>| result.as_ref().is_err_and(|error| error.is_ours);
    assert!(results[0].is_ok() && is_ours(&results[1]), "{results:?}");
    let hidden = [("a", Duration::from_mins(1)), ("b", Duration::from_mins(2))];
    let results = queue.change_visibility_batch(&hidden).await.unwrap();
    assert!(results.len() == 2 && results.iter().all(Result::is_ok), "{results:?}");
    assert!(queue.delete_batch(&[]).await.unwrap().is_empty());
    let sent: Vec<String> = server
        .requests()
        .iter()
        .map(|sent| sent.header("x-amz-target").trim_start_matches("AmazonSQS.").to_owned())
        .collect();
    let operations =
        ["ChangeMessageVisibility", "DeleteMessageBatch", "ChangeMessageVisibilityBatch"];
    assert_eq!(sent, operations);
}

#[tokio::test]
async fn refusals_in_json_are_told_apart() {
    let of = |kind: &str| json!({ "__type": kind, "message": "no" });
    let table = [
        ("com.amazonaws.sqs#QueueDoesNotExist", "QueueDoesNotExist", (false, false)),
        ("ThrottlingException:http://internal/x", "ThrottlingException", (true, false)),
        ("com.amazonaws.sqs#RequestThrottled", "RequestThrottled", (true, false)),
        ("UnrecognizedClientException", "UnrecognizedClientException", (false, true)),
        ("ExpiredTokenException", "ExpiredTokenException", (false, true)),
        ("AccessDeniedException", "AccessDeniedException", (false, false)),
    ];
    for (kind, code, (throttled, credentials)) in table {
        let (_server, mut queue) = queue([Act::json(400, of(kind))]).await;
        let refused = refused(queue.delete("r").await.unwrap_err());
        assert_eq!((refused.code.as_str(), refused.is_throttled()), (code, throttled), "{kind}");
        assert_eq!(refused.is_about_credentials(), credentials, "{kind}");
        assert!(refused.to_string().contains(": no"), "{refused}");
    }
}

#[tokio::test]
async fn a_request_that_the_server_holds_back_has_a_longer_time_limit() {
    let server = Scripted::start("sqs", [Act::Silence, Act::Silence]).await;
    let mut service = service("sqs", &server.address, keys(KEYS.0, KEYS.1), None);
    service.timeout = SOON;
    let url = QueueUrl::parse(&format!("http://{}/0/logs", server.address)).unwrap();
    let mut queue = Queue::new(client(&service), &url);
    for (wait, seconds) in [(Duration::ZERO, 0.3), (Duration::from_secs(1), 1.3)] {
        let receive = Receive { messages_max: 1, wait, visibility: None };
        let error = queue.receive(receive).await.unwrap_err().to_string();
        assert_eq!(error, format!("nothing came within `timeout` ({seconds} s)"));
    }
}

#[tokio::test]
async fn events_of_logs_are_read_page_by_page() {
    let server = Scripted::start(
        "logs",
        [
            Act::json(
                200,
                json!({ "nextToken": "t", "searchedLogStreams": [], "events": [
                    { "eventId": "1", "logStreamName": "s", "message": "m", "timestamp": 1_440_938_160_123_i64,
                      "ingestionTime": 1_440_938_161_000_i64 },
                ]}),
            ),
            Act::json(200, json!({ "events": [] })),
            Act::json(400, json!({ "__type": "ThrottlingException", "message": "Rate exceeded" })),
            Act::json(200, json!({})),
            Act::json(
                200,
                json!({ "logGroups": [{ "logGroupName": "/g", "arn": "arn:aws:logs:x:1:log-group:/g:*" }] }),
            ),
            Act::json(
                200,
                json!({ "logStreams": [{ "logStreamName": "s", "lastEventTimestamp": 1 }], "nextToken": "n" }),
            ),
        ],
    )
    .await;
    let service = service("logs", &server.address, keys(KEYS.0, KEYS.1), None);
    let mut logs = Logs::new(client(&service));
    let group = LogGroup::Arn("arn:aws:logs:x:1:log-group:/g:*");
    let filter = EventFilter {
        group,
        streams: LogStreams::Named(&["s", "t"]),
        pattern: "ERROR",
        start: Some(Timestamp(1_500_000)),
        end: Some(Timestamp(2_000_000)),
        events_max: 100,
        token: None,
    };
    let page = logs.events(filter).await.unwrap();
    assert_eq!(page.items[0].time, Timestamp(1_440_938_160_123_000_000));
    assert_eq!(page.items[0].ingested, Some(Timestamp(1_440_938_161_000_000_000)));
    let sent = server.one();
    assert_eq!(sent.header("x-amz-target"), "Logs_20140328.FilterLogEvents");
    assert_eq!(sent.header("content-type"), "application/x-amz-json-1.1");
    let expected = json!({
        "logGroupIdentifier": "arn:aws:logs:x:1:log-group:/g", "logStreamNames": ["s", "t"],
        "filterPattern": "ERROR", "startTime": 1, "endTime": 2, "limit": 100, "interleaved": true,
    });
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&sent.body).unwrap(), expected);
    let filter = EventFilter {
        group: LogGroup::Name("/g"),
        streams: LogStreams::Prefix("s"),
        token: page.next.as_deref(),
        ..filter
    };
    let page = logs.events(filter).await.unwrap();
    assert!(page.items.is_empty() && page.next.is_none());
    let body: serde_json::Value = serde_json::from_slice(&server.one().body).unwrap();
    assert_eq!((&body["nextToken"], &body["logStreamNamePrefix"]), (&json!("t"), &json!("s")));
    assert!(refused(logs.events(filter).await.unwrap_err()).is_throttled());
    let error = logs.events(filter).await.unwrap_err().to_string();
    assert!(error.contains("not as CloudWatch Logs does: missing field `events`"), "{error}");
    let groups = logs.groups("/", true, None).await.unwrap();
    assert_eq!(groups.items[0].arn, "arn:aws:logs:x:1:log-group:/g");
    let streams = logs.streams(group, "", None).await.unwrap();
    assert_eq!((streams.items[0].last, streams.items[0].first), (Some(Timestamp(1_000_000)), None));
    assert_eq!(streams.next.as_deref(), Some("n"));
}
