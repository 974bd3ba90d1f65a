//! A scripted server for bulk requests.

use skidder_contract::{listen, serve_all};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::io::Read as _;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;

/// What to do with one bulk request.
#[derive(Clone)]
pub(crate) enum Act {
    /// Take everything.
    Ok,
    /// Answer each line by its number; 2xx and 409 are taken.
    Items(fn(usize) -> u16),
    /// Answer with a status and take nothing.
    Status(u16),
    /// 413 if there are more items than this, else take everything. Stays in the script.
    AtMost(usize),
    /// Close the connection if there are more items than this, else take everything. Stays.
    BreakAbove(usize),
    /// 413 before the body was read; the connection is closed when it was.
    EarlyTooLarge,
    /// Close the connection without reading the body.
    DropBefore,
    /// Read everything, take nothing, close the connection.
    DropAfter,
    /// Answer 200 with this body.
    Body(&'static str),
    /// Begin a good answer and close the connection in its middle.
    Half,
    /// Send nothing until the other side gives up.
    Silence,
    /// Answer one item less than was sent.
    OneLess,
    /// Answer one item more than was sent.
    OneMore,
    /// Take nothing, and answer that this was done with each line, with this status.
    Did(&'static str, u16),
    /// Take every second line, and answer nothing about the others.
    HalfDid,
    /// Take everything, answer with much more than was requested.
    Verbose,
    /// Take everything, answer, and close the connection without a word.
    OkAndClose,
}

/// One request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) head: String,
    /// Numbers of the lines.
    pub(crate) lines: Vec<usize>,
    /// The received body, decompressed.
    pub(crate) body: String,
}

#[derive(Default)]
pub(crate) struct State {
    script: VecDeque<Act>,
    /// How often each line was taken.
    pub(crate) taken: BTreeMap<usize, usize>,
    pub(crate) bulks: Vec<Seen>,
    pub(crate) greetings: usize,
    /// Answers to `GET /`, by default 200 and a version.
    pub(crate) greeting: VecDeque<(u16, &'static str)>,
    /// Which requests are allowed, by the header `authorization`; all if there is none.
    pub(crate) allows: Option<Allows>,
    /// Other existing documents by their paths, in lower case. Other paths are unknown to it.
    pub(crate) has: BTreeMap<&'static str, (u16, &'static str)>,
    /// Other requests that came: method and path in lower case, body.
    pub(crate) requests: Vec<(String, String)>,
    /// Ids of documents that are there: another one with the same id is a conflict.
    ids: HashSet<String>,
}

pub(crate) const VERSION: &str = "{\"version\":{\"number\":\"9.5.0\"}}";

/// Whether a value of the header `authorization` will do.
pub(crate) type Allows = Arc<dyn Fn(&str) -> bool + Send + Sync>;

#[derive(Clone)]
pub(crate) struct FakeServer {
    pub(crate) address: String,
    pub(crate) state: Arc<Mutex<State>>,
}

impl FakeServer {
    pub(crate) async fn start(script: impl IntoIterator<Item = Act>) -> Self {
        Self::start_with(script, None).await
    }

    pub(crate) async fn start_with(
        script: impl IntoIterator<Item = Act>,
        tls: Option<TlsAcceptor>,
    ) -> Self {
        let (listener, address) = listen().await;
        let state = State { script: script.into_iter().collect(), ..State::default() };
        let server = Self { address: address.to_string(), state: Arc::new(Mutex::new(state)) };
        let serving = server.clone();
        let accepted = || {};
        serve_all(listener, tls, accepted, move |stream| {
            let server = serving.clone();
            async move { server.serve(stream).await }
        });
        server
    }

    pub(crate) fn taken(&self) -> BTreeMap<usize, usize> {
        self.state.lock().unwrap().taken.clone()
    }

    pub(crate) fn bulks(&self) -> Vec<Seen> {
        self.state.lock().unwrap().bulks.clone()
    }

    async fn serve(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
        let mut buffered = Vec::new();
        while let Some(head) = read_head(&mut stream, &mut buffered).await {
            let allows = self.state.lock().unwrap().allows.clone();
            let sender = header(&head, "authorization").unwrap_or_default();
            if allows.is_some_and(|allows| !allows(sender)) {
                if header(&head, "content-length").is_some() {
                    drop(read_body(&mut stream, &head, &mut buffered).await);
                }
                answer(&mut stream, 401, "{\"error\":\"who are you\"}").await;
                continue;
            }
            // `GET /`, below the path of the host.
            let is_greeting =
                head.starts_with("GET ") && head.split(' ').nth(1).unwrap().ends_with('/');
            if !is_greeting && !head.contains("/_bulk?") {
                let body = match header(&head, "content-length") {
                    Some(_) => read_body(&mut stream, &head, &mut buffered).await.unwrap(),
                    None => Vec::new(),
                };
                let what = head.lines().next().unwrap().trim_end_matches(" http/1.1");
                let what = what.to_ascii_lowercase();
                let (status, text) = {
                    let mut state = self.state.lock().unwrap();
                    let unknown = (400, "{\"error\":\"no handler found for uri\"}");
                    let known = state.has.get(what.as_str()).copied().unwrap_or(unknown);
                    state.requests.push((what, String::from_utf8(body).unwrap()));
                    known
                };
                answer(&mut stream, status, text).await;
                continue;
            }
            if head.starts_with("GET ") {
                let (status, body) = {
                    let mut state = self.state.lock().unwrap();
                    state.greetings += 1;
                    state.greeting.pop_front().unwrap_or((200, VERSION))
                };
                answer(&mut stream, status, body).await;
                continue;
            }
            if !self.bulk(&mut stream, head, &mut buffered).await {
                return;
            }
        }
    }

    /// Handles a bulk request; returns whether the connection lives on.
    async fn bulk(
        &self,
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
        head: String,
        buffered: &mut Vec<u8>,
    ) -> bool {
        let act = {
            let mut state = self.state.lock().unwrap();
            match state.script.front() {
                Some(act @ (Act::AtMost(_) | Act::BreakAbove(_))) => act.clone(),
                _ => state.script.pop_front().unwrap_or(Act::Ok),
            }
        };
        if matches!(act, Act::DropBefore) {
            return false;
        }
        if matches!(act, Act::EarlyTooLarge) {
            answer(stream, 413, "too large").await;
            drop(read_body(stream, &head, buffered).await);
            return false;
        }
        let Some(body) = read_body(stream, &head, buffered).await else { return false };
        let lines = lines_of(&body);
        let text = String::from_utf8(body).unwrap();
        let seen = Seen { head, lines: lines.clone(), body: text };
        self.state.lock().unwrap().bulks.push(seen.clone());
        let created = |count: usize| {
            let items = vec!["{\"create\":{\"status\":201}}"; count].join(",");
            format!("{{\"errors\":false,\"items\":[{items}]}}")
        };
        match act {
            Act::Ok | Act::OkAndClose => {
                let known = self.known(&seen.body);
                let new = |(line, known): (&usize, &bool)| (!known).then_some(*line);
                self.take(&lines.iter().zip(&known).filter_map(new).collect::<Vec<_>>());
                if known.contains(&true) {
                    let statuses = known.iter().map(|known| if *known { 409 } else { 201 });
                    answer(stream, 200, &items(&statuses.collect::<Vec<_>>())).await;
                } else {
                    answer(stream, 200, &created(lines.len())).await;
                }
                matches!(act, Act::Ok)
            }
            Act::Items(status_of) => {
                let statuses: Vec<u16> = lines.iter().map(|&line| status_of(line)).collect();
                let taken: Vec<usize> = lines
                    .iter()
                    .zip(&statuses)
                    .filter(|(_, status)| **status < 300 || **status == 409)
                    .map(|(line, _)| *line)
                    .collect();
                self.take(&taken);
                answer(stream, 200, &items(&statuses)).await;
                true
            }
            Act::Status(status) => {
                answer(stream, status, "{\"error\":\"scripted\"}").await;
                true
            }
            Act::AtMost(most) => {
                if lines.len() > most {
                    answer(stream, 413, "too large").await;
                } else {
                    self.take(&lines);
                    answer(stream, 200, &created(lines.len())).await;
                }
                true
            }
            Act::BreakAbove(most) if lines.len() > most => false,
            Act::BreakAbove(_) => {
                self.take(&lines);
                answer(stream, 200, &created(lines.len())).await;
                true
            }
            Act::DropBefore | Act::EarlyTooLarge | Act::DropAfter => false,
            Act::Body(body) => {
                answer(stream, 200, body).await;
                true
            }
            Act::Half => {
                let body = created(lines.len());
                let text = format!(
                    "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{}",
                    body.len(),
                    &body[..body.len() / 2]
                );
                stream.write_all(text.as_bytes()).await.unwrap();
                stream.flush().await.unwrap();
                false
            }
            Act::Silence => {
                // Ends when the other side closes.
                drop(stream.read(&mut [0; 16]).await);
                false
            }
            Act::OneLess => {
                answer(stream, 200, &created(lines.len() - 1)).await;
                true
            }
            Act::OneMore => {
                answer(stream, 200, &created(lines.len() + 1)).await;
                true
            }
            Act::Did(operation, status) => {
                let item = format!("{{\"{operation}\":{{\"status\":{status}}}}}");
                let items = vec![item; lines.len()].join(",");
                answer(stream, 200, &format!("{{\"errors\":false,\"items\":[{items}]}}")).await;
                true
            }
            Act::HalfDid => {
                let taken: Vec<usize> = lines.iter().copied().step_by(2).collect();
                self.take(&taken);
                let item = |at| match at % 2 {
                    0 => "{\"create\":{\"status\":201}}",
                    _ => "{\"delete\":{\"status\":404,\"result\":\"not_found\"}}",
                };
                let items: Vec<&str> = (0..lines.len()).map(item).collect();
                let body = format!("{{\"errors\":false,\"items\":[{}]}}", items.join(","));
                answer(stream, 200, &body).await;
                true
            }
            Act::Verbose => {
                self.take(&lines);
                let item = "{\"create\":{\"_index\":\"x\",\"_id\":\"y\",\"_shards\":{\"total\":2,\"failed\":0},\"status\":201}}";
                let items = vec![item; lines.len()].join(", ");
                let body = format!(
                    "{{\"took\":5,\"ingest_took\":1,\"errors\":false,\"items\":[{items}]}}"
                );
                answer(stream, 200, &body).await;
                true
            }
        }
    }

    /// Which documents are there already, by their ids; the others are from now on.
    fn known(&self, body: &str) -> Vec<bool> {
        let mut state = self.state.lock().unwrap();
        let known = |action: &str| {
            let action: serde_json::Value = serde_json::from_str(action).unwrap();
            action["create"]["_id"].as_str().is_some_and(|id| !state.ids.insert(id.to_owned()))
        };
        body.lines().step_by(2).map(known).collect()
    }

    fn take(&self, lines: &[usize]) {
        let mut state = self.state.lock().unwrap();
        for &line in lines {
            *state.taken.entry(line).or_default() += 1;
        }
    }
}

fn items(statuses: &[u16]) -> String {
    let item = |status: &u16| match status {
        200..300 => format!("{{\"create\":{{\"status\":{status}}}}}"),
        _ => format!(
            "{{\"create\":{{\"status\":{status},\"error\":{{\"type\":\"scripted\",\"reason\":\"says {status}\"}}}}}}"
        ),
    };
    let errors = statuses.iter().any(|status| *status >= 300);
    let items: Vec<String> = statuses.iter().map(item).collect();
    format!("{{\"errors\":{errors},\"items\":[{}]}}", items.join(","))
}

async fn answer(stream: &mut (impl AsyncWrite + Unpin), status: u16, body: &str) {
    let text = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    // The other side may have gone.
    drop(stream.write_all(text.as_bytes()).await);
    drop(stream.flush().await);
}

async fn read_head(
    stream: &mut (impl AsyncRead + Unpin),
    buffered: &mut Vec<u8>,
) -> Option<String> {
    loop {
        if let Some(end) = buffered.windows(4).position(|window| window == b"\r\n\r\n") {
            let rest = buffered.split_off(end + 4);
            let head = std::mem::replace(buffered, rest);
            return Some(with_plain_names(&String::from_utf8(head).unwrap()));
        }
        let mut piece = vec![0; 65536];
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => buffered.extend_from_slice(&piece[..count]),
        }
    }
}

/// The request line, but for `GET`, and the names of the headers in lower case.
fn with_plain_names(head: &str) -> String {
    let lines = head.lines().map(|line| match line.split_once(": ") {
        Some((name, value)) => format!("{}: {value}\r\n", name.to_ascii_lowercase()),
        None => format!("{}\r\n", line.to_ascii_lowercase().replacen("get ", "GET ", 1)),
    });
    lines.collect()
}

async fn read_body(
    stream: &mut (impl AsyncRead + Unpin),
    head: &str,
    buffered: &mut Vec<u8>,
) -> Option<Vec<u8>> {
    let length: usize = header(head, "content-length").unwrap().parse().unwrap();
    while buffered.len() < length {
        let mut piece = vec![0; 65536];
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => buffered.extend_from_slice(&piece[..count]),
        }
    }
    let rest = buffered.split_off(length);
    let body = std::mem::replace(buffered, rest);
    if header(head, "content-encoding") == Some("gzip") {
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&body[..]).read_to_end(&mut plain).unwrap();
        let length = header(head, "x-elastic-uncompressed-request-length").unwrap();
        assert_eq!(length, plain.len().to_string());
        return Some(plain);
    }
    Some(body)
}

/// A header's value, names in lower case.
pub(crate) fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

fn lines_of(body: &[u8]) -> Vec<usize> {
    let text = std::str::from_utf8(body).unwrap();
    assert!(text.ends_with('\n'));
    let lines: Vec<&str> = text.lines().collect();
    lines
        .chunks(2)
        .map(|pair| {
            assert!(pair[0].starts_with("{\"create\":{\"_index\":"), "{}", pair[0]);
            let document: serde_json::Value = serde_json::from_str(pair[1]).unwrap();
            let message = document["message"].as_str().unwrap();
            // A refused event is in the message as a whole.
            let refused = serde_json::from_str::<serde_json::Value>(message).ok();
            let message =
                refused.as_ref().map_or(message, |event| event["message"].as_str().unwrap());
            super::number(message)
        })
        .collect()
}
