//! As much of SQS and S3 as a shipper needs to read objects that messages tell of: a queue, and a bucket with small objects.
//!
//! A look-alike, so that what is measured is the shipper: moto looks through the whole queue for each message.

use anyhow::{Context as _, Result};
use md5::{Digest as _, Md5};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Error, ErrorKind, Read as _, Result as IoResult, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Lines of an object, 200 bytes each.
pub const LINES: u64 = 10;
/// Bytes of a line, with its end.
const LINE_BYTES: usize = 200;
/// Messages of an answer, at most.
const MESSAGES_MAX: u64 = 10;
/// How long a request for messages waits for one, at most.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// A running queue. Its threads end with the process.
#[derive(Debug)]
pub struct Queue {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Notified when there is a first request.
    asked: Condvar,
}

#[derive(Debug)]
struct State {
    waiting: VecDeque<u64>,
    deleted: u64,
    asked: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// A queue with a message for each of so many objects.
    pub fn start(objects: u64) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen")?;
        let address = listener.local_addr()?;
        let state = State { waiting: (0..objects).collect(), deleted: 0, asked: false };
        let shared = Arc::new(Shared { state: Mutex::new(state), asked: Condvar::new() });
        let for_thread = Arc::clone(&shared);
        std::thread::Builder::new().name("queue".to_owned()).spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&for_thread);
                let serve = move || {
                    // A client that goes away is part of the experiments.
                    let _gone = serve(&stream, address, &shared);
                };
                if std::thread::Builder::new().spawn(serve).is_err() {
                    crate::measure::note("queue: no thread for a connection");
                }
            }
        })?;
        Ok(Self { address, shared })
    }

    /// Settings of an input of `aws-s3` that takes them.
    pub fn input(&self) -> String {
        let url = format!("http://{}", self.address);
        format!(
            "type: aws-s3, id: bench, queue_url: '{url}/123456789012/news', endpoint: '{url}', region: us-east-1, \
             path_style: true, access_key_id: test, secret_access_key: test"
        )
    }

    /// Waits for the first request for messages.
    pub fn wait_for_request(&self, limit: Duration) -> bool {
        let state = self.shared.state();
        let waited = self.shared.asked.wait_timeout_while(state, limit, |state| !state.asked);
        waited.is_ok_and(|(state, _)| state.asked)
    }

    /// Messages that were deleted.
    pub fn deleted(&self) -> u64 {
        self.shared.state().deleted
    }
}

/// A request: its method, path, operation of SQS, and body.
struct Request {
    path: String,
    operation: String,
    body: Vec<u8>,
}

fn serve(stream: &TcpStream, address: SocketAddr, shared: &Shared) -> IoResult<()> {
    stream.set_nodelay(true)?;
    let mut from = BufReader::new(stream.try_clone()?);
    while let Some(request) = read(&mut from)? {
        let (kind, body) = if request.operation.is_empty() {
            ("binary/octet-stream", object(&request.path))
        } else {
            let body: Value = serde_json::from_slice(&request.body)?;
            let answer = answer(&request.operation, &body, shared);
            ("application/x-amz-json-1.0", answer.to_string().into_bytes())
        };
        let mut answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nETag: \"e\"\r\n\
             Last-Modified: Wed, 25 Nov 2026 12:00:00 GMT\r\nx-amzn-RequestId: {address}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        answer.extend_from_slice(&body);
        (&*stream).write_all(&answer)?;
    }
    Ok(())
}

/// The next request, unless the client has gone.
fn read(from: &mut BufReader<TcpStream>) -> IoResult<Option<Request>> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let (mut operation, mut length) = (String::new(), 0);
    loop {
        line.clear();
        from.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        if name.eq_ignore_ascii_case("x-amz-target") {
            value.trim().rsplit('.').next().unwrap_or_default().clone_into(&mut operation);
        } else if name.eq_ignore_ascii_case("content-length") {
            length =
                value.trim().parse().map_err(|error| Error::new(ErrorKind::InvalidData, error))?;
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    Ok(Some(Request { path, operation, body }))
}

/// What SQS answers to an operation (its API in JSON, `AmazonSQS.NAME`).
fn answer(operation: &str, body: &Value, shared: &Shared) -> Value {
    match operation {
        "ReceiveMessage" => {
            let wanted = body["MaxNumberOfMessages"].as_u64().unwrap_or(1).min(MESSAGES_MAX);
            let mut state = shared.state();
            state.asked = true;
            shared.asked.notify_all();
            let count = state.waiting.len().min(usize::try_from(wanted).unwrap_or(1));
            let taken: Vec<u64> = state.waiting.drain(..count).collect();
            drop(state);
            if taken.is_empty() {
                let wait = body["WaitTimeSeconds"].as_u64().unwrap_or(0);
                crate::measure::pause(Duration::from_secs(wait).min(WAIT_MAX));
                return json!({});
            }
            json!({ "Messages": taken.into_iter().map(message).collect::<Vec<Value>>() })
        }
        "DeleteMessage" => {
            shared.state().deleted += 1;
            json!({})
        }
        "DeleteMessageBatch" | "ChangeMessageVisibilityBatch" => {
            let ids: Vec<&Value> = body["Entries"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|entry| &entry["Id"])
                .collect();
            if operation == "DeleteMessageBatch" {
                shared.state().deleted += ids.len() as u64;
            }
            let done: Vec<Value> = ids.into_iter().map(|id| json!({ "Id": id })).collect();
            json!({ "Successful": done, "Failed": [] })
        }
        "GetQueueAttributes" => {
            let waiting = shared.state().waiting.len().to_string();
            json!({ "Attributes": {
                "ApproximateNumberOfMessages": waiting, "ApproximateNumberOfMessagesNotVisible": "0",
                "VisibilityTimeout": "300",
            }})
        }
        _ => json!({}),
    }
}

fn message(number: u64) -> Value {
    let news = json!({ "Records": [{
        "eventVersion": "2.1", "eventSource": "aws:s3", "awsRegion": "us-east-1",
        "eventTime": "2026-11-25T12:00:00.000Z", "eventName": "ObjectCreated:Put",
        "s3": {
            "bucket": { "name": "logs", "arn": "arn:aws:s3:::logs" },
            "object": { "key": format!("o/{number:08}.log"), "size": LINES * LINE_BYTES as u64 },
        },
    }]})
    .to_string();
    let sum = Md5::digest(&news).iter().fold(String::new(), |mut text, byte| {
        // Writing into text does not fail.
        let _written = write!(text, "{byte:02x}");
        text
    });
    json!({
        "MessageId": format!("m-{number}"), "ReceiptHandle": format!("r-{number}"), "MD5OfBody": sum, "Body": news,
        "Attributes": { "ApproximateReceiveCount": "1", "SentTimestamp": "1795608000000" },
    })
}

/// The lines of the object of this path.
fn object(path: &str) -> Vec<u8> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let mut text = Vec::new();
    for line in 0..LINES {
        let begin = text.len();
        text.extend_from_slice(
            format!("2026-11-25T12:00:00Z host app: object {name} line {line} ").as_bytes(),
        );
        text.resize(begin + LINE_BYTES - 1, b'x');
        text.push(b'\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_comes_once_and_what_is_deleted_is_counted() {
        let queue = Queue::start(12).unwrap();
        let shared = &queue.shared;
        assert!(!queue.wait_for_request(Duration::ZERO));
        let receive = || {
            let got = answer("ReceiveMessage", &json!({ "MaxNumberOfMessages": 10 }), shared);
            got["Messages"].as_array().map_or(0, Vec::len)
        };
        assert_eq!([receive(), receive(), receive()], [10, 2, 0]);
        assert!(queue.wait_for_request(Duration::ZERO));
        let entries = json!({ "Entries": [{ "Id": "a" }, { "Id": "b" }] });
        answer("DeleteMessage", &json!({}), shared);
        answer("DeleteMessageBatch", &entries, shared);
        answer("ChangeMessageVisibilityBatch", &entries, shared);
        assert_eq!(queue.deleted(), 3);
        let text = object("/logs/o/00000001.log");
        assert_eq!(text.len(), LINES as usize * LINE_BYTES);
        assert_eq!(memchr::memchr_iter(b'\n', &text).count() as u64, LINES);
    }
}
