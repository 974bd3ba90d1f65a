//! Requests of single clients, over real sockets.

use super::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixListener};

const TIMEOUT: Duration = Duration::from_secs(10);

#[test]
fn urls_become_clients_or_say_what_is_wrong() {
    let parse = |url| HttpClient::parse(url, None, Duration::from_secs(1));
    for (url, target, base) in [
        ("http://a", "a:80", ""),
        ("http://a:8080/base/", "a:8080", "/base"),
        ("http://[::1]:4646", "[::1]:4646", ""),
        ("tcp://docker", "docker:2375", ""),
        ("unix:///run/a.sock", "/run/a.sock", ""),
    ] {
        let client = parse(url).unwrap();
        let found = match client.target {
            Target::Tcp(route) => route.host.to_string(),
            Target::Unix(path) => path.display().to_string(),
        };
        assert_eq!((found.as_str(), client.base.as_str()), (target, base), "{url}");
    }
    for (url, wrong) in [
        ("a:80", "expected `http://host:port`"),
        ("ftp://a", "`ftp` is none of"),
        ("http://a:b", "its port is no number from 1 to 65535"),
        ("http://", "it names no host"),
        ("unix://a", "expected `unix:///path`"),
        ("https://a", "TLS is turned off"),
    ] {
        let error = parse(url).unwrap_err();
        assert!(error.contains(wrong), "{url}: {error}");
    }
}

/// Reads the head of a request, sends `answer`, and returns the request.
async fn serve(mut stream: impl Stream, answer: &[u8]) -> String {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(stream.read_u8().await.unwrap());
    }
    stream.write_all(answer).await.unwrap();
    String::from_utf8(request).unwrap()
}

#[tokio::test]
async fn chunked_answers_are_read_over_a_unix_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let client = HttpClient::unix(&path, TIMEOUT);
    let answer = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
                   4\r\n{\"a\"\r\n3\r\n:1}\r\n0\r\n\r\n";
    let serving = async { serve(listener.accept().await.unwrap().0, answer).await };
    let (request, answer) = tokio::join!(serving, client.json(HttpRequest::get("/x?y")));
    assert_eq!(answer.unwrap(), serde_json::json!({ "a": 1 }));
    assert!(request.starts_with("GET /x?y HTTP/1.1\r\nhost: localhost\r\n"), "{request}");
}

async fn client() -> (TcpListener, HttpClient) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, HttpClient::tcp(Host { name: "127.0.0.1".to_owned(), port }, None, TIMEOUT))
}

#[tokio::test]
async fn a_refusal_shows_no_credentials() {
    let (listener, client) = client().await;
    let answer = b"HTTP/1.1 403 Forbidden\r\ncontent-length: 24\r\n\r\ntoken geheimnis is wrong";
    for is_stream in [false, true] {
        let request = HttpRequest::get("/").headers(&[("authorization", "Bearer geheimnis")]);
        let asking = async {
            if is_stream {
                client.open(request).await.map(drop).unwrap_err()
            } else {
                client.ask(request).await.unwrap_err()
            }
        };
        let serving = async { serve(listener.accept().await.unwrap().0, answer).await };
        let (_, error) = tokio::join!(serving, asking);
        assert_eq!(error.to_string(), "answered 403 Forbidden: token xxxxxxxxx is wrong");
    }
}

#[tokio::test]
async fn an_answer_that_is_too_long_and_one_that_never_comes_are_errors() {
    let (listener, client) = client().await;
    let client = client.answer_bytes_max(3);
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabcd";
    let serving = async { serve(listener.accept().await.unwrap().0, answer).await };
    let (_, answer) = tokio::join!(serving, client.ask(HttpRequest::get("/")));
    assert_eq!(answer.unwrap_err().to_string(), "the answer is longer than 3 bytes");
    let silent = HttpClient { timeout: Duration::from_millis(50), ..client };
    let answer = silent.ask(HttpRequest::get("/")).await;
    assert_eq!(answer.unwrap_err().to_string(), "no answer within 0.05 s");
}

#[tokio::test]
async fn lines_of_a_stream_arrive_one_by_one() {
    let (listener, client) = client().await;
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\none\n\ntwo";
    let serving = async { serve(listener.accept().await.unwrap().0, answer).await };
    let (_, stream) = tokio::join!(serving, client.open(HttpRequest::get("/")));
    let mut stream = stream.unwrap();
    for line in [Some(&b"one"[..]), Some(b""), Some(b"two"), None] {
        assert_eq!(stream.line().await.unwrap().as_deref(), line);
    }
}
