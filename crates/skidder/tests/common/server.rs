//! A server that answers bulk requests as scripted and remembers every document that it took.

use super::program::patiently;
use flate2::read::GzDecoder;
use skidder_os::{Clock as _, Monotonic, SystemClock};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// What to do with one bulk request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// Take everything and say so.
    Take,
    /// Answer each document by its message; 2xx and 409 are taken.
    Items(fn(&str) -> u16),
    /// Answer with this status and take nothing.
    Status(u16),
    /// Close the connection without reading the body.
    DropBefore,
    /// Take everything and close the connection without an answer.
    TakeAndDrop,
    /// Take everything and say nothing until the other side gives up.
    TakeAndStall,
    /// Take everything and close the connection in the middle of the answer.
    TakeAndHalf,
    /// Take everything and answer with status 200 and this body.
    TakeAndSay(&'static str),
}

/// Decides on requests by their number, counted from 0.
type Script = Box<dyn FnMut(usize) -> Act + Send>;

struct State {
    script: Script,
    requests: usize,
    documents: Vec<String>,
    /// All that is known of each of them.
    sent: Vec<Document>,
    /// When how many documents had been taken.
    times: Vec<(Monotonic, usize)>,
    /// Answers wait.
    held: bool,
    /// How many do.
    waiting: usize,
    /// Connections that are open.
    connections: usize,
    puts: Vec<Put>,
    /// Ingest pipelines whose paths contain this are refused, and documents that name one of them.
    refuses: Option<(&'static str, u16)>,
    /// Pipelines that were refused.
    refused: usize,
}

/// A PUT request.
#[derive(Clone, Debug)]
pub(crate) struct Put {
    pub(crate) path: String,
    pub(crate) body: serde_json::Value,
    /// How many documents had been taken before.
    pub(crate) behind: usize,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    clock: SystemClock,
    /// Every request takes at least so long.
    pace: Duration,
}

/// See the module's text. It lives as long as the test.
pub(crate) struct BulkServer {
    /// `http://127.0.0.1:PORT`
    pub(crate) url: String,
    shared: Arc<Shared>,
}

impl BulkServer {
    /// A server that takes everything.
    pub(crate) fn start() -> Self {
        Self::scripted(|_| Act::Take)
    }

    pub(crate) fn scripted(script: impl FnMut(usize) -> Act + Send + 'static) -> Self {
        Self::new(Box::new(script), Duration::ZERO)
    }

    /// A server that takes everything and needs at least this time for a request.
    pub(crate) fn paced(pace: Duration) -> Self {
        Self::new(Box::new(|_| Act::Take), pace)
    }

    fn new(script: Script, pace: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = State {
            script,
            requests: 0,
            documents: Vec::new(),
            sent: Vec::new(),
            times: Vec::new(),
            held: false,
            waiting: 0,
            connections: 0,
            puts: Vec::new(),
            refuses: None,
            refused: 0,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            changed: Condvar::new(),
            clock: SystemClock::new(),
            pace,
        });
        let serving = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, shared) = (stream.unwrap(), Arc::clone(&serving));
                shared.lock().connections += 1;
                std::thread::spawn(move || {
                    // A connection that breaks is the other side's affair, or the script's.
                    drop(shared.serve(&stream));
                    shared.lock().connections -= 1;
                });
            }
        });
        Self { url, shared }
    }

    /// The messages of all documents that were taken, in that order.
    pub(crate) fn documents(&self) -> Vec<String> {
        self.shared.lock().documents.clone()
    }

    /// All documents that were taken.
    pub(crate) fn sent(&self) -> Vec<Document> {
        self.shared.lock().sent.clone()
    }

    /// How many documents were taken.
    pub(crate) fn count(&self) -> usize {
        self.shared.lock().documents.len()
    }

    /// All PUT requests.
    pub(crate) fn puts(&self) -> Vec<Put> {
        self.shared.lock().puts.clone()
    }

    /// From now on ingest pipelines whose names contain `part` are answered with `status`, and documents that name
    /// one of them with 400, as a server does that lacks it. `None`: all are taken again.
    pub(crate) fn refuse_pipelines(&self, refused: Option<(&'static str, u16)>) {
        self.shared.lock().refuses = refused;
    }

    /// How many pipelines were refused.
    pub(crate) fn refused_pipelines(&self) -> usize {
        self.shared.lock().refused
    }

    /// How many bulk requests came.
    pub(crate) fn requests(&self) -> usize {
        self.shared.lock().requests
    }

    /// How many documents were taken in the time just before now.
    pub(crate) fn count_in_last(&self, span: Duration) -> usize {
        let state = self.shared.lock();
        let now = self.shared.clock.monotonic();
        let before = state.times.iter().rev().find(|(at, _)| now.since(*at) > span);
        state.documents.len() - before.map_or(0, |(_, count)| *count)
    }

    /// Waits until everything that a dead program had sent is read.
    pub(crate) fn await_silence(&self) {
        patiently("no connection is open", || (self.shared.lock().connections == 0).then_some(()));
    }

    /// From now on documents are taken, but no answer is given until [`BulkServer::release`].
    pub(crate) fn hold(&self) {
        self.shared.lock().held = true;
    }

    /// How many answers wait.
    pub(crate) fn held(&self) -> usize {
        self.shared.lock().waiting
    }

    /// Gives the answers that were held.
    pub(crate) fn release(&self) {
        self.shared.lock().held = false;
        self.shared.changed.notify_all();
    }

    /// Replaces the script.
    pub(crate) fn follow(&self, script: impl FnMut(usize) -> Act + Send + 'static) {
        self.shared.lock().script = Box::new(script);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn serve(&self, stream: &TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream);
        loop {
            let head = read_head(&mut reader)?;
            let mut words = head[0].split(' ');
            let (method, path) =
                (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            if method == "GET" && path.starts_with("/_ingest/pipeline/") {
                let is_there = self.lock().puts.iter().any(|put| put.path == path);
                answer(stream, if is_there { 200 } else { 404 }, "{}")?;
                continue;
            }
            if method == "GET" || method == "HEAD" {
                let body = r#"{"version":{"number":"9.5.3"}}"#;
                answer(stream, 200, if method == "GET" { body } else { "" })?;
                continue;
            }
            if method == "PUT" {
                let body = serde_json::from_slice(&read_body(&mut reader, &head)?)?;
                let mut state = self.lock();
                if let Some((part, status)) = state.refuses
                    && path.contains("pipeline")
                    && path.contains(part)
                {
                    state.refused += 1;
                    drop(state);
                    answer(stream, status, r#"{"error":"refused by the test"}"#)?;
                    continue;
                }
                let behind = state.documents.len();
                state.puts.push(Put { path: path.to_owned(), body, behind });
                drop(state);
                answer(stream, 200, "{\"acknowledged\":true}")?;
                continue;
            }
            let act = {
                let mut state = self.lock();
                let number = state.requests;
                state.requests += 1;
                (state.script)(number)
            };
            if matches!(act, Act::DropBefore) {
                return Ok(());
            }
            let sent = documents(&read_body(&mut reader, &head)?);
            self.perform(stream, act, &sent)?;
        }
    }

    fn perform(&self, stream: &TcpStream, act: Act, sent: &[Document]) -> io::Result<()> {
        let statuses: Vec<u16> = match act {
            Act::Items(status) => sent.iter().map(|document| status(&document.message)).collect(),
            Act::Status(_) => vec![500; sent.len()],
            _ => {
                let refuses = self.lock().refuses.map(|(part, _)| part);
                let lacks = |document: &Document| {
                    let name = document.pipeline.as_deref();
                    refuses.is_some_and(|part| name.is_some_and(|name| name.contains(part)))
                };
                sent.iter().map(|document| if lacks(document) { 400 } else { 201 }).collect()
            }
        };
        self.take(sent, &statuses);
        let body = bulk_answer(&statuses);
        match act {
            Act::Take | Act::Items(_) => answer(stream, 200, &body),
            Act::Status(status) => answer(stream, status, r#"{"error":"scripted"}"#),
            Act::TakeAndSay(body) => answer(stream, 200, body),
            Act::DropBefore | Act::TakeAndDrop => Err(io::ErrorKind::ConnectionAborted.into()),
            Act::TakeAndStall => {
                // Ends when the other side closes the connection.
                let mut stream = stream;
                stream.read_exact(&mut [0])?;
                Err(io::ErrorKind::ConnectionAborted.into())
            }
            Act::TakeAndHalf => {
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
                let mut stream = stream;
                stream.write_all(head.as_bytes())?;
                stream.write_all(&body.as_bytes()[..body.len() / 2])?;
                Err(io::ErrorKind::ConnectionAborted.into())
            }
        }
    }

    fn take(&self, sent: &[Document], statuses: &[u16]) {
        let start = self.clock.monotonic();
        let mut state = self.lock();
        for (document, _) in sent.iter().zip(statuses).filter(|(_, status)| **status < 300) {
            state.documents.push(document.message.clone());
            state.sent.push(document.clone());
        }
        let count = state.documents.len();
        state.times.push((start, count));
        // A slow server: other connections go on meanwhile.
        loop {
            let left = self.pace.saturating_sub(self.clock.monotonic().since(start));
            if !state.held && left.is_zero() {
                return;
            }
            state = if state.held {
                state.waiting += 1;
                let mut state = self.changed.wait(state).unwrap();
                state.waiting -= 1;
                state
            } else {
                self.changed.wait_timeout(state, left).unwrap().0
            };
        }
    }
}

fn read_head(reader: &mut impl BufRead) -> io::Result<Vec<String>> {
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end();
        if line.is_empty() {
            return Ok(head);
        }
        head.push(line.to_owned());
    }
}

fn read_body(reader: &mut impl Read, head: &[String]) -> io::Result<Vec<u8>> {
    let header = |name: &str| {
        let mut headers = head.iter().filter_map(|line| line.split_once(": "));
        headers.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
    };
    let length = header("content-length").expect("the program tells the length of its bodies");
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body)?;
    if header("content-encoding").as_deref() == Some("gzip") {
        let mut plain = Vec::new();
        GzDecoder::new(&*body).read_to_end(&mut plain)?;
        return Ok(plain);
    }
    Ok(body)
}

/// A document of a bulk request, with its action.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    pub(crate) message: String,
    pub(crate) id: Option<String>,
    pub(crate) index: Option<String>,
    pub(crate) pipeline: Option<String>,
    /// All of it.
    pub(crate) json: serde_json::Value,
}

/// The documents of a bulk request.
fn documents(body: &[u8]) -> Vec<Document> {
    let mut lines = body.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let mut documents = Vec::new();
    while let (Some(action), Some(text)) = (lines.next(), lines.next()) {
        let action: serde_json::Value = serde_json::from_slice(action).unwrap();
        assert!(action["create"].is_object(), "{action}");
        let document: serde_json::Value = serde_json::from_slice(text).unwrap();
        documents.push(Document {
            message: document["message"].as_str().unwrap().to_owned(),
            id: action["create"]["_id"].as_str().map(str::to_owned),
            index: action["create"]["_index"].as_str().map(str::to_owned),
            pipeline: action["create"]["pipeline"].as_str().map(str::to_owned),
            json: document,
        });
    }
    documents
}

fn bulk_answer(statuses: &[u16]) -> String {
    let item = |status: &u16| match status {
        200..300 => format!(r#"{{"create":{{"status":{status}}}}}"#),
        _ => format!(
            r#"{{"create":{{"status":{status},"error":{{"type":"scripted","reason":"told to"}}}}}}"#
        ),
    };
    let items: Vec<String> = statuses.iter().map(item).collect();
    let errors = statuses.iter().any(|status| *status >= 300);
    format!(r#"{{"errors":{errors},"items":[{}]}}"#, items.join(","))
}

fn answer(mut stream: &TcpStream, status: u16, body: &str) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status} scripted\r\nx-elastic-product: Elasticsearch\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes())
}
