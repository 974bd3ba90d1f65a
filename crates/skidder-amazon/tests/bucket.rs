//! A client of a bucket, against a scripted server that checks signatures.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::{Act, Counted, KEYS, Scripted, client, keys, refused, service};
use skidder_amazon::{Bucket, Failure, List, ObjectName, Part};
use skidder_os::SystemClock;
use std::sync::Arc;
use std::sync::atomic::Ordering;

async fn bucket(script: impl IntoIterator<Item = Act>) -> (Scripted, Bucket) {
    let server = Scripted::start("s3", script).await;
    let service = service("s3", &server.address, keys(KEYS.0, KEYS.1), Some("logs"));
    (server, Bucket::new(client(&service)))
}

fn named(key: &str) -> ObjectName<'_> {
    ObjectName { key, version: None }
}

/// An object, or a part of it.
fn object(status: u16, range: &str, body: &str) -> Act {
    let mut headers = vec![("etag", "\"0123\"".to_owned())];
    if !range.is_empty() {
        headers.push(("content-range", format!("bytes {range}")));
    }
    Act::Answer(status, headers, body.to_owned())
}

#[tokio::test]
async fn a_listing_is_asked_for_page_by_page() {
    let page = |more: &str| {
        Act::xml(
            200,
            &format!(
                "<ListBucketResult><EncodingType>url</EncodingType>{more}<Contents><Key>a%2Bb+c</Key>\
                 <Size>7</Size></Contents></ListBucketResult>"
            ),
        )
    };
    let next = "<IsTruncated>true</IsTruncated><NextContinuationToken>1+/=</NextContinuationToken>";
    let denied = "<Error><Code>AccessDenied</Code></Error>";
    let script = [page(next), page(""), Act::xml(200, "<html/>"), Act::xml(403, denied)];
    let (server, mut bucket) = bucket(script).await;
    let list = List { prefix: "a/ä +", start_after: "a/b", token: None, objects_max: Some(1) };
    let first = bucket.list(list).await.unwrap();
    assert_eq!((&*first.objects[0].key, first.next.as_deref()), ("a+b c", Some("1+/=")));
    let sent = server.one();
    let query =
        "encoding-type=url&list-type=2&max-keys=1&prefix=a%2F%C3%A4%20%2B&start-after=a%2Fb";
    assert_eq!((sent.path().as_str(), sent.query()), ("/logs", query));
    let list = List { token: first.next.as_deref(), ..list };
    assert_eq!(bucket.list(list).await.unwrap().next, None);
    let query = "continuation-token=1%2B%2F%3D&encoding-type=url&list-type=2&max-keys=1&prefix=a%2F%C3%A4%20%2B";
    assert_eq!(server.one().query(), query);
    let error = bucket.list(List::default()).await.unwrap_err().to_string();
    assert!(error.contains("not as S3 does: the listing"), "{error}");
    assert_eq!(refused(bucket.list(List::default()).await.unwrap_err()).code, "AccessDenied");
}

#[tokio::test]
async fn an_object_is_read_in_pieces_and_its_connection_used_again() {
    let text = "0123456789".repeat(10_000);
    let server =
        Scripted::start("s3", [object(200, "", &text), object(206, "5-9/100000", "56789")]);
    let server = server.await;
    let service = service("s3", &server.address, keys(KEYS.0, KEYS.1), Some("logs"));
    let counted = Arc::new(Counted::default());
    let meter: Arc<dyn skidder_amazon::Meter> = Arc::clone(&counted) as _;
    let mut bucket = Bucket::new(service.client(meter, Arc::new(SystemClock::new())));
    let mut got = bucket.get(named("a/ä b"), Part::default()).await.unwrap();
    assert_eq!((got.head.size, got.head.etag.as_str()), (100_000, "\"0123\""));
    let mut read = Vec::new();
    while let Some(piece) = got.content.piece(777).await.unwrap() {
        assert!((1..=777).contains(&piece.len()));
        read.extend_from_slice(&piece);
    }
    assert!(read == text.as_bytes() && got.content.left() == 0);
    let sent = server.one();
    assert_eq!((sent.path().as_str(), sent.header("range")), ("/logs/a/ä b", ""));
    let part = Part { from: 5, until: Some(10), if_match: Some("\"0123\"") };
    let versioned = ObjectName { key: "a", version: Some("v+1") };
    let mut got = bucket.get(versioned, part).await.unwrap();
    assert_eq!(got.head.size, 100_000);
    assert_eq!(got.content.piece(100).await.unwrap().unwrap(), "56789");
    assert!(got.content.piece(100).await.unwrap().is_none());
    let sent = server.one();
    assert_eq!((sent.header("range"), sent.header("if-match")), ("bytes=5-9", "\"0123\""));
    assert_eq!(sent.query(), "versionId=v%2B1");
    assert_eq!(counted.numbers(), (2, 0, 100_005));
    assert_eq!(server.connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn an_object_that_is_not_what_was_asked_for_is_an_error() {
    let ends = "HTTP/1.1 206 X\r\netag: \"0123\"\r\ncontent-range: bytes 5-9/10\r\n\r\n567";
    let cut = "HTTP/1.1 200 X\r\netag: \"0123\"\r\ncontent-length: 9\r\n\r\n567";
    let from = Part { from: 5, ..Part::default() };
    let table = [
        (from, object(200, "", "0123456789"), "it is another part"),
        (from, object(206, "4-9/10", "456789"), "it is another part"),
        (from, object(206, "5-9/10", "567890"), "more bytes than its size"),
        (from, Act::Raw(ends.to_owned()), "ended 2 bytes early"),
        (Part::default(), Act::Raw(cut.to_owned()), "the connection broke"),
        (Part::default(), Act::xml(200, "0123"), "no `etag`"),
        (
            Part { if_match: Some("\"1\""), ..Part::default() },
            object(200, "", "0"),
            "another object",
        ),
        (from, Act::xml(412, "<Error><Code>PreconditionFailed</Code></Error>"), "412"),
        (from, Act::xml(416, "<Error><Code>InvalidRange</Code></Error>"), "416"),
    ];
    for (part, act, expected) in table {
        let (_server, mut bucket) = bucket([act.clone(), object(200, "", "good")]).await;
        let error = match bucket.get(named("a"), part).await {
            Ok(mut got) => loop {
                match got.content.piece(100).await {
                    Ok(piece) => assert!(piece.is_some(), "{act:?} has an end"),
                    Err(error) => break error,
                }
            },
            Err(error) => error,
        };
        assert!(error.to_string().contains(expected), "{act:?}: {error}");
        if let Failure::Refused(refused) = &error {
            assert_eq!(refused.is_changed(), expected == "412");
            assert_eq!(refused.is_behind_the_end(), expected == "416");
        }
        // What follows is not disturbed.
        let mut got = bucket.get(named("a"), Part::default()).await.unwrap();
        assert_eq!(got.content.piece(100).await.unwrap().unwrap(), "good", "{act:?}");
    }
}

#[tokio::test]
async fn objects_are_looked_at_copied_and_deleted() {
    let head = vec![("etag", "\"1\"".to_owned()), ("content-length", "77".to_owned())];
    let result = "<CopyObjectResult><ETag>&quot;2&quot;</ETag></CopyObjectResult>";
    let copied = vec![("x-amz-version-id", "v2".to_owned())];
    let failed = "<Error><Code>InternalError</Code><Message>too late</Message></Error>";
    let (server, mut bucket) = bucket([
        Act::Answer(200, head, String::new()),
        Act::Answer(404, Vec::new(), String::new()),
        Act::Answer(200, copied, result.to_owned()),
        Act::xml(200, failed),
        Act::xml(200, "<html/>"),
        Act::Raw("HTTP/1.1 204 X\r\n\r\n".to_owned()),
        Act::xml(200, "<html/>"),
    ])
    .await;
    assert_eq!(bucket.head(named("a")).await.unwrap().size, 77);
    assert!(refused(bucket.head(named("b")).await.unwrap_err()).is_missing());
    assert_eq!(server.requests().len(), 2);
    let from = ("other", ObjectName { key: "ä b?", version: Some("v&1") });
    let done = bucket.copy(from, Some("\"0\""), "done/ä b?").await.unwrap();
    assert_eq!((done.etag.as_str(), done.version.as_deref()), ("\"2\"", Some("v2")));
    let sent = server.requests().pop().unwrap();
    assert_eq!(sent.header("x-amz-copy-source"), "/other/%C3%A4%20b%3F?versionId=v%261");
    assert_eq!((sent.method.as_str(), sent.path().as_str()), ("PUT", "/logs/done/ä b?"));
    assert_eq!(sent.header("x-amz-copy-source-if-match"), "\"0\"");
    let error = refused(bucket.copy(from, None, "x").await.unwrap_err());
    assert_eq!(error.code, "InternalError");
    let error = bucket.copy(from, None, "x").await.unwrap_err().to_string();
    assert!(error.contains("there is no `ETag`"), "{error}");
    bucket.delete(ObjectName { key: "a", version: Some("1") }).await.unwrap();
    assert_eq!(server.requests().pop().unwrap().query(), "versionId=1");
    let error = bucket.delete(named("a")).await.unwrap_err().to_string();
    assert!(error.contains("a page behind the headers"), "{error}");
}
