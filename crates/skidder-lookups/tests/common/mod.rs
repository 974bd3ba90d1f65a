//! Servers for tests: HTTP/1.1 on a TCP port or a unix socket, answers made by a closure.
#![allow(dead_code, reason = "not every test uses all of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot serve has failed")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) target: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }
}

/// The answers.
pub(crate) enum Answer {
    /// All at once.
    Now(u16, String),
    /// All at once, with a header more.
    With(Option<(&'static str, String)>, String),
    /// The connection ends without one.
    Broken,
    /// In chunks, until the other side of the channel is dropped.
    Chunks(Receiver<String>),
    /// Never.
    Silence,
}

impl Answer {
    pub(crate) fn ok(body: impl Into<String>) -> Self {
        Self::Now(200, body.into())
    }

    pub(crate) fn not_found() -> Self {
        Self::Now(404, "not found".to_owned())
    }
}

/// Requests that came, in their order: `GET /path`.
pub(crate) type Requests = Arc<Mutex<Vec<String>>>;

type Make = Arc<dyn Fn(&Request) -> Answer + Send + Sync>;

/// Serves on a port of the loopback for the rest of the test; gives `127.0.0.1:port`.
pub(crate) fn serve(
    make: impl Fn(&Request) -> Answer + Send + Sync + 'static,
) -> (String, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let requests = Requests::default();
    let (seen, make): (_, Make) = (Arc::clone(&requests), Arc::new(make));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (seen, make) = (Arc::clone(&seen), Arc::clone(&make));
            std::thread::spawn(move || answer(stream.unwrap(), &seen, &*make));
        }
    });
    (address, requests)
}

/// Serves on a unix socket for the rest of the test.
pub(crate) fn serve_unix(
    path: &Path,
    make: impl Fn(&Request) -> Answer + Send + Sync + 'static,
) -> Requests {
    let listener = UnixListener::bind(path).unwrap();
    let requests = Requests::default();
    let (seen, make): (_, Make) = (Arc::clone(&requests), Arc::new(make));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (seen, make) = (Arc::clone(&seen), Arc::clone(&make));
            std::thread::spawn(move || answer(stream.unwrap(), &seen, &*make));
        }
    });
    requests
}

/// One request and its answer. A client that goes away ends it.
fn answer(stream: impl Read + Write, seen: &Requests, make: &dyn Fn(&Request) -> Answer) {
    let mut reader = BufReader::new(stream);
    let Some(request) = read(&mut reader) else { return };
    seen.lock().unwrap().push(format!("{} {}", request.method, request.target));
    let mut stream = reader.into_inner();
    match make(&request) {
        Answer::Now(status, body) => {
            let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n", body.len());
            drop(stream.write_all(format!("{head}{body}").as_bytes()));
        }
        Answer::With(header, body) => {
            let header = header.map(|(name, value)| format!("{name}: {value}\r\n"));
            let header = header.unwrap_or_default();
            let head = format!("HTTP/1.1 200 X\r\n{header}content-length: {}\r\n\r\n", body.len());
            drop(stream.write_all(format!("{head}{body}").as_bytes()));
        }
        Answer::Broken => {}
        Answer::Chunks(chunks) => {
            let head = "HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n";
            let mut open = stream.write_all(head.as_bytes()).is_ok();
            while open && let Ok(chunk) = chunks.recv() {
                let chunk = format!("{:x}\r\n{chunk}\r\n", chunk.len());
                open = stream.write_all(chunk.as_bytes()).is_ok();
            }
            drop(stream.write_all(b"0\r\n\r\n"));
        }
        // Until the client gives up.
        Answer::Silence => drop(stream.read(&mut [0])),
    }
}

fn read(reader: &mut impl BufRead) -> Option<Request> {
    let line = |reader: &mut dyn BufRead| {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
        Some(line.trim_end().to_owned())
    };
    let first = line(reader)?;
    let mut words = first.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    while let Some(text) = line(reader)?.split_once(':') {
        headers.push((text.0.to_ascii_lowercase(), text.1.trim().to_owned()));
    }
    let request = Request { method, target, headers, body: String::new() };
    let length: u64 = request.header("content-length").parse().unwrap_or(0);
    let mut body = String::new();
    reader.take(length).read_to_string(&mut body).ok()?;
    Some(Request { body, ..request })
}
