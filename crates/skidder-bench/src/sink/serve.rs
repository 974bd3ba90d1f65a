//! The threads of the sink: accepting, routing, answering.

use super::body;
use super::http::{Coding, Connection, Head};
use super::trouble::{self, Fault, Trouble};
use super::{Kept, Shared};
use std::io::{self, IoSlice, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// The answer to `GET /` of Elasticsearch 9.5.3, as far as clients look.
const ROOT: &str = r#"{"name":"sink","cluster_name":"skidder-bench","cluster_uuid":"c2lua3Npbmtzaw","version":{"number":"9.5.3","build_flavor":"default","build_type":"tar","build_snapshot":false,"lucene_version":"10.3.1","minimum_wire_compatibility_version":"8.19.0","minimum_index_compatibility_version":"8.0.0"},"tagline":"You Know, for Search"}"#;
const LICENSE: &str =
    r#"{"license":{"status":"active","uid":"sink","type":"basic","mode":"basic"}}"#;
const ITEM_CREATE: &[u8] = br#"{"create":{"status":201}},"#;
const ITEM_INDEX: &[u8] = br#"{"index":{"status":201}},"#;
/// Two documents of which the second one is to be sent again.
const ITEMS_SOME_BUSY: &str = r#"{"create":{"status":201}},{"create":{"status":429,"error":{"type":"es_rejected_execution_exception","reason":"busy"}}},"#;

/// How documents stand in a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// An action before each, as for Elasticsearch.
    Bulk,
    /// One a line.
    Lines,
}

impl Shape {
    /// Lines of a document.
    fn lines(self) -> u64 {
        match self {
            Self::Bulk => 2,
            Self::Lines => 1,
        }
    }
}

/// A body that was read.
#[derive(Clone, Copy, Debug)]
struct Taken {
    documents: u64,
    /// As sent.
    bytes: u64,
    packed: bool,
    shape: Shape,
    /// Every second document is refused.
    some_busy: bool,
}

/// Takes connections until the process ends.
pub(super) fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        let shared = Arc::clone(shared);
        let served = stream.and_then(|stream| {
            stream.set_nodelay(true)?;
            std::thread::Builder::new()
                .name("sink-connection".to_owned())
                .spawn(move || serve(stream, &shared))
        });
        if let Err(error) = served {
            report(&error);
        }
    }
}

/// A client that goes away in the middle is part of the experiments; anything else is worth a line.
fn report(error: &io::Error) {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    if !matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof) {
        crate::measure::note(&format!("sink: a connection ended: {error}"));
    }
}

fn serve(stream: TcpStream, shared: &Shared) {
    let mut session = Session {
        connection: Connection::new(stream),
        shared,
        kept: Vec::new(),
        inflated: Vec::new(),
        items: Vec::new(),
    };
    loop {
        match session.request() {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => return report(&error),
        }
    }
}

/// One connection and its buffers.
struct Session<'a> {
    connection: Connection,
    shared: &'a Shared,
    /// The body, when counting its newlines on the way is not enough.
    kept: Vec<u8>,
    inflated: Vec<u8>,
    /// Answers to items, repeated often enough for the largest bulk so far.
    items: Vec<u8>,
}

impl Session<'_> {
    /// Serves one request; `false` when there will be no other.
    fn request(&mut self) -> io::Result<bool> {
        let Some(head) = self.connection.head()? else { return Ok(false) };
        if head.expects_continue {
            self.connection.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let shape = match head.path.as_str() {
            path if path.ends_with("/_bulk") => Some(Shape::Bulk),
            path if path.ends_with("/insert/jsonline") => Some(Shape::Lines),
            _ => None,
        };
        if let Some(shape) = shape.filter(|_| matches!(head.method.as_str(), "POST" | "PUT")) {
            return Ok(self.bulk(&head, shape)? && !head.close);
        }
        body::read(&mut self.connection, head.framing, &mut |_| {})?;
        self.other(&head)?;
        Ok(!head.close)
    }

    /// A request with documents, unless there are too many at once.
    fn bulk(&mut self, head: &Head, shape: Shape) -> io::Result<bool> {
        let number = self.shared.came.fetch_add(1, Ordering::Relaxed) + 1;
        let trouble = self.shared.behaviour.trouble.filter(|trouble| trouble.hits(number));
        if let Some(Trouble { fault: Fault::Refused, .. }) = trouble {
            trouble::hang_up(&self.connection.stream)?;
            return Ok(false);
        }
        if let Some(Trouble { fault: Fault::Status(status), .. }) = trouble {
            body::read(&mut self.connection, head.framing, &mut |_| {})?;
            trouble::refuse(&mut self.connection.stream, status)?;
            return Ok(true);
        }
        let fault = trouble.map(|trouble| trouble.fault);
        let Some(limit) = self.shared.behaviour.limit else {
            return self.take_bulk(head, shape, fault);
        };
        let running = self.shared.running.fetch_add(1, Ordering::Relaxed);
        if running < limit {
            return self.take_bulk(head, shape, fault);
        }
        let read = body::read(&mut self.connection, head.framing, &mut |_| {});
        self.shared.running.fetch_sub(1, Ordering::Relaxed);
        read.and_then(|_| trouble::refuse(&mut self.connection.stream, 429))?;
        Ok(true)
    }

    /// Reads, counts and answers; `false` when it hung up instead.
    fn take_bulk(&mut self, head: &Head, shape: Shape, fault: Option<Fault>) -> io::Result<bool> {
        let behaviour = self.shared.behaviour;
        let packed = head.coding != Coding::Identity;
        let keep = packed || behaviour.check || behaviour.keep_bodies > 0;
        let kept = &mut self.kept;
        kept.clear();
        let mut newlines = 0;
        let mut item = None;
        let bytes = body::read(&mut self.connection, head.framing, &mut |piece| {
            item.get_or_insert_with(|| item_for(piece));
            if keep {
                kept.extend_from_slice(piece);
            } else {
                newlines += memchr::memchr_iter(b'\n', piece).count() as u64;
            }
        })?;
        let mut body = self.kept.as_slice();
        if packed {
            self.inflated.clear();
            body::decompress(head.coding, body, &mut self.inflated)?;
            body = &self.inflated;
            item = Some(item_for(body));
        }
        if keep {
            newlines = memchr::memchr_iter(b'\n', body).count() as u64;
        }
        let documents = newlines / shape.lines();
        if behaviour.keep_bodies > 0 {
            let mut kept = self.shared.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.len() < behaviour.keep_bodies {
                kept.push(Kept { sent: bytes, text: body.to_vec() });
            }
        }
        let some_busy = shape == Shape::Bulk && fault == Some(Fault::SomeBusy);
        self.take(Taken { documents, bytes, packed, shape, some_busy });
        if behaviour.limit.is_some() {
            // The client may send the next request after the answer.
            self.shared.running.fetch_sub(1, Ordering::Relaxed);
        }
        if fault == Some(Fault::Unanswered) {
            trouble::hang_up(&self.connection.stream)?;
            return Ok(false);
        }
        match shape {
            Shape::Bulk if some_busy => self.answer_some_busy(documents),
            Shape::Bulk => self.answer_bulk(documents, item.unwrap_or(ITEM_CREATE)),
            Shape::Lines => self.answer("{}", "{}"),
        }?;
        Ok(true)
    }

    /// Counts what came, then waits as long as configured in the behaviour.
    fn take(&self, taken: Taken) {
        let behaviour = self.shared.behaviour;
        let mut counters = self.shared.counters();
        // Of documents in turn, the second ones are refused.
        let each = if taken.some_busy { 2 } else { 1 };
        counters.add_bulk(taken.documents.div_ceil(each), taken.bytes);
        if behaviour.check {
            let body = if taken.packed { &self.inflated } else { &self.kept };
            let lines = body.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
            let (first, step) = (taken.shape.lines() as usize - 1, taken.shape.lines() * each);
            counters.check(lines.skip(first).step_by(step as usize));
        }
        self.shared.changed.notify_all();
        let limit = behaviour.stall_after.unwrap_or(u64::MAX);
        while counters.count().documents >= limit && !counters.is_released() {
            counters = self.shared.changed.wait(counters).unwrap_or_else(PoisonError::into_inner);
        }
        drop(counters);
        if !behaviour.delay.is_zero() {
            crate::measure::pause(behaviour.delay);
        }
    }

    fn answer_bulk(&mut self, documents: u64, item: &[u8]) -> io::Result<()> {
        let length = item.len() * documents as usize;
        if self.items.len() < length || !self.items.starts_with(item) {
            self.items = item.repeat(documents as usize);
        }
        let items = &self.items[..length.saturating_sub(1)];
        let (before, after) = (&b"{\"errors\":false,\"items\":["[..], &b"]}"[..]);
        let total = before.len() + items.len() + after.len();
        let head = format!(
            "HTTP/1.1 200 OK\r\nX-elastic-product: Elasticsearch\r\n\
             content-type: application/json\r\ncontent-length: {total}\r\n\r\n"
        );
        let mut parts = [head.as_bytes(), before, items, after].map(IoSlice::new);
        let mut left = parts.as_mut_slice();
        while !left.is_empty() {
            let written = self.connection.stream.write_vectored(left)?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            IoSlice::advance_slices(&mut left, written);
        }
        Ok(())
    }

    fn other(&mut self, head: &Head) -> io::Result<()> {
        let text = match (head.method.as_str(), head.path.as_str()) {
            (_, "/__count") => {
                let lines = head.query.strip_prefix("lines=").and_then(|text| text.parse().ok());
                self.shared.counters().count().to_json(lines).to_string()
            }
            ("POST", "/__reset") => {
                self.shared.counters().reset();
                "{}".to_owned()
            }
            ("POST", "/__release") => {
                self.shared.counters().release();
                self.shared.changed.notify_all();
                "{}".to_owned()
            }
            ("GET" | "HEAD", "/") => ROOT.to_owned(),
            (_, "/_license") => LICENSE.to_owned(),
            _ => "{}".to_owned(),
        };
        let body = if head.method == "HEAD" { "" } else { text.as_str() };
        self.answer(&text, body)
    }

    /// The answer to two documents of which one is refused, over and over.
    fn answer_some_busy(&mut self, documents: u64) -> io::Result<()> {
        let mut items = ITEMS_SOME_BUSY.repeat(documents.div_ceil(2) as usize);
        if documents % 2 == 1 {
            let last = ITEMS_SOME_BUSY.len() - ITEM_CREATE.len();
            items.truncate(items.len() - last);
        }
        let text =
            format!("{{\"errors\":{},\"items\":[{}]}}", documents > 1, items.trim_end_matches(','));
        self.answer(&text, &text)
    }

    /// An answer of JSON; its declared length is that of `length_of`, which a `HEAD` does not get.
    fn answer(&mut self, length_of: &str, body: &str) -> io::Result<()> {
        let answer = format!(
            "HTTP/1.1 200 OK\r\nX-elastic-product: Elasticsearch\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            length_of.len()
        );
        self.connection.stream.write_all(answer.as_bytes())
    }
}

/// What an item of the answer looks like, by the first action of the bulk.
fn item_for(body: &[u8]) -> &'static [u8] {
    if body.starts_with(b"{\"index\"") { ITEM_INDEX } else { ITEM_CREATE }
}
