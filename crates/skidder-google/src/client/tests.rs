//! Requests to a server of the test's own.

use super::*;
use crate::source::Source;
use crate::storage::{List, ObjectName, Part, Storage};
use skidder_net::{HostUrl, ProxyChoice, usual_port};
use skidder_os::{RealFs, SystemClock};
use std::collections::VecDeque;
use std::sync::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// Heads of requests.
type Heads = Arc<Mutex<Vec<String>>>;

/// A server that answers the requests of all connections with these answers, one after the other.
async fn serve(answers: Vec<String>) -> (u16, Heads) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let heads = Heads::default();
    let (seen, answers) = (Arc::clone(&heads), Arc::new(Mutex::new(VecDeque::from(answers))));
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (seen, answers) = (Arc::clone(&seen), Arc::clone(&answers));
            tokio::spawn(async move {
                let mut head = Vec::new();
                while let Ok(byte) = stream.read_u8().await {
                    head.push(byte);
                    if !head.ends_with(b"\r\n\r\n") {
                        continue;
                    }
                    seen.lock()
                        .unwrap()
                        .push(String::from_utf8(std::mem::take(&mut head)).unwrap());
                    let answer = answers.lock().unwrap().pop_front().unwrap();
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
            });
        }
    });
    (port, heads)
}

fn answer(status: u16, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n{headers}\r\n{body}")
}

fn storage(port: u16, source: Source, attempts: u32) -> Storage {
    let fs = Arc::new(RealFs);
    let tokens = Tokens::new(source, "read", ProxyChoice::Direct, fs).unwrap();
    let url = format!("http://127.0.0.1:{port}/storage/v1");
    let url = HostUrl::parse(&url, "", "", usual_port).unwrap();
    let service = Service {
        target: Arc::new(Target::at(url, &ProxyChoice::Direct)),
        tls: None,
        tokens: Arc::new(tokens),
        timeout: Duration::from_secs(5),
        retry: Retry {
            attempts,
            first: Duration::from_millis(1),
            longest: Duration::from_millis(5),
            factor: 2.0,
        },
    };
    Storage::new(service.client(Arc::new(()), Arc::new(SystemClock::new()), 2))
}

const PAGE: &str =
    r#"{"kind": "storage#objects", "items": [{"name": "a", "generation": "7", "size": "4"}]}"#;

#[tokio::test]
async fn a_refused_token_is_replaced_once_and_what_may_pass_is_tried_again() {
    let token = |name: &str| {
        answer(200, "", &format!("{{\"access_token\": \"{name}\", \"expires_in\": 3600}}"))
    };
    let answers = vec![
        token("t1"),
        answer(401, "", "{\"error\": {\"message\": \"expired\"}}"),
        token("t2"),
        answer(503, "retry-after: 1\r\n", ""),
        answer(429, "", ""),
        answer(200, "", PAGE),
    ];
    let (port, heads) = serve(answers).await;
    let machine = HostUrl::parse(&format!("http://127.0.0.1:{port}"), "", "", usual_port).unwrap();
    let storage = storage(port, Source::Machine(machine), 3);
    let list = List { bucket: "logs", prefix: "a/", token: Some("t&"), objects_max: 10 };
    let page = storage.list(list).await.unwrap();
    assert_eq!((page.objects.len(), page.objects[0].generation), (1, 7));
    let heads = heads.lock().unwrap().clone();
    assert_eq!(heads.len(), 6);
    let query = "GET /storage/v1/b/logs/o?maxResults=10&fields=kind%2CnextPageToken";
    assert!(heads[1].starts_with(query), "{}", heads[1]);
    assert!(heads[1].contains("&prefix=a%2F&pageToken=t%26 HTTP/1.1\r\n"), "{}", heads[1]);
    assert!(heads[1].contains("authorization: Bearer t1\r\n"), "{}", heads[1]);
    for head in &heads[3..] {
        assert!(head.contains("authorization: Bearer t2\r\n"), "{head}");
        assert!(head.contains(&format!("host: 127.0.0.1:{port}\r\n")), "{head}");
    }
}

#[tokio::test]
async fn tries_are_counted_and_what_does_not_pass_has_one() {
    let busy = || answer(503, "", "busy");
    let denied = answer(
        403,
        "",
        "{\"error\": {\"message\": \"no\", \"errors\": [{\"reason\": \"forbidden\"}]}}",
    );
    let (port, heads) = serve(vec![busy(), busy(), denied, answer(200, "", "<html>")]).await;
    let storage = storage(port, Source::None, 2);
    let list = || storage.list(List { bucket: "logs", objects_max: 1, ..List::default() });
    let error = list().await.unwrap_err();
    assert!(error.may_pass(), "{error}");
    let error = list().await.unwrap_err();
    assert_eq!(error.to_string(), "the server answered 403 `forbidden`: no");
    assert!(!error.may_pass());
    let error = list().await.unwrap_err().to_string();
    assert!(error.contains("is there a proxy or a portal"), "{error}");
    let heads = heads.lock().unwrap().clone();
    assert_eq!(heads.len(), 4);
    assert!(heads.iter().all(|head| !head.contains("authorization")), "{heads:?}");
}

#[tokio::test]
async fn an_object_is_taken_in_pieces_and_must_be_the_one_that_is_meant() {
    let cut = "HTTP/1.1 206 X\r\ncontent-range: bytes 2-3/4\r\ntransfer-encoding: chunked\r\n\r\n1\r\nc\r\n0\r\n\r\n";
    let answers = vec![
        answer(200, "x-goog-generation: 7\r\n", "abcd"),
        answer(206, "content-range: bytes 2-3/4\r\n", "cd"),
        cut.to_owned(),
        answer(200, "x-goog-generation: 8\r\n", "abcd"),
        answer(412, "", "{\"error\": {\"message\": \"no\"}}"),
        answer(404, "", "No such object: logs/a"),
    ];
    let (port, heads) = serve(answers).await;
    let storage = storage(port, Source::None, 1);
    let object = ObjectName { bucket: "logs", name: "a/ b", generation: 7, size: 4 };
    let read = async |part| {
        let mut content = storage.get(object, part).await?.content;
        let mut all = Vec::new();
        while let Some(piece) = content.piece().await? {
            all.extend_from_slice(&piece);
        }
        Ok::<_, Failure>(String::from_utf8(all).unwrap())
    };
    assert_eq!(read(Part::default()).await.unwrap(), "abcd");
    let half = Part { from: 2, until: None };
    assert_eq!(read(half).await.unwrap(), "cd");
    let error = read(half).await.unwrap_err().to_string();
    assert!(error.contains("ended 1 bytes early"), "{error}");
    for _ in 0..2 {
        let Failure::Refused(refused) = read(Part::default()).await.unwrap_err() else {
            panic!("it was replaced")
        };
        assert!(refused.is_changed(), "{refused}");
    }
    let Failure::Refused(refused) = read(half).await.unwrap_err() else { panic!("it is gone") };
    assert!(refused.is_missing(), "{refused}");
    let heads = heads.lock().unwrap().clone();
    let path = "GET /storage/v1/b/logs/o/a%2F%20b?alt=media&ifGenerationMatch=7 HTTP/1.1\r\n";
    assert!(
        heads[0].starts_with(path) && heads[0].contains("accept-encoding: gzip\r\n"),
        "{heads:?}"
    );
    assert!(!heads[0].contains("range:") && heads[1].contains("range: bytes=2-\r\n"), "{heads:?}");
}

#[test]
fn pauses_grow_to_the_longest() {
    let second = Duration::from_secs(1);
    let retry = Retry { attempts: 5, first: second, longest: 30 * second, factor: 2.5 };
    let pauses: Vec<f64> = (1..=5).map(|number| retry.pause(number, None).as_secs_f64()).collect();
    assert_eq!(pauses, [1.0, 2.5, 6.25, 15.625, 30.0]);
    assert_eq!(retry.pause(1, Some(20 * second)), 20 * second);
    assert_eq!(retry.pause(1, Some(90 * second)), 30 * second);
    assert_eq!(retry.pause(u32::MAX, None), 30 * second);
}
