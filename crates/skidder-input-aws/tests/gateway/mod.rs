//! CloudWatch Logs for tests: moto, behind a gateway that adds what moto lacks of Amazon's service, and trouble.
//!
//! moto knows a group only by its name and streams only by theirs. The gateway looks up what an ARN, a prefix of streams and
//! a name of a stream that is missing stand for. It can refuse requests, and make pages small.
#![allow(dead_code, reason = "not every test program needs all of it")]

use serde_json::{Value, json};
use skidder_config::{Problems, Settings};
use skidder_contract::{ReceivedRequest, listen, serve_all};
use skidder_input::Input;
use skidder_input_aws::cloudwatch::{AWS_CLOUDWATCH_INPUT, read};
use skidder_os::{Clock as _, Fs, RealFs, SystemClock};
use skidder_testkit::servers::Server;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};

pub(crate) const REGION: &str = "eu-central-1";

/// A request that is refused.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    /// As `FilterLogEvents`.
    pub(crate) operation: &'static str,
    /// Only requests that name this.
    pub(crate) about: String,
    /// As `ThrottlingException`.
    pub(crate) code: &'static str,
    /// How often; nothing for always.
    pub(crate) times: Option<usize>,
}

/// See the module's text.
#[derive(Clone)]
pub(crate) struct Gateway {
    server: Arc<Server>,
    port: u16,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    refusals: Vec<Refusal>,
    /// Events of a page.
    page: Option<u64>,
    /// Operations, with what was asked.
    requests: VecDeque<(String, Value)>,
}

/// The time, in milliseconds.
pub(crate) fn now() -> i64 {
    SystemClock::new().wall().0 / 1_000_000
}

/// The ARN that moto gives a group.
pub(crate) fn arn(group: &str) -> String {
    format!("arn:aws:logs:{REGION}:123456789012:log-group:{group}")
}

impl Gateway {
    pub(crate) async fn start() -> Self {
        let server = Arc::new(Server::own_moto().unwrap());
        let (listener, address) = listen().await;
        let gateway = Self { server, port: address.port(), state: Arc::default() };
        let serving = gateway.clone();
        serve_all(
            listener,
            None,
            || {},
            move |stream| {
                let gateway = serving.clone();
                async move { drop(gateway.serve(stream).await) }
            },
        );
        gateway
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Refuses requests from now on.
    pub(crate) fn refuse(&self, refusal: Refusal) {
        self.lock().refusals.push(refusal);
    }

    /// Refuses none any more.
    pub(crate) fn allow_all(&self) {
        self.lock().refusals.clear();
    }

    /// Pages have so many events at most.
    pub(crate) fn small_pages(&self, events: u64) {
        self.lock().page = Some(events);
    }

    /// The requests so far, of one operation.
    pub(crate) fn requests(&self, operation: &str) -> Vec<Value> {
        let state = self.lock();
        let of = state.requests.iter().filter(|(name, _)| name == operation);
        of.map(|(_, body)| body.clone()).collect()
    }

    async fn serve(&self, stream: impl AsyncRead + AsyncWrite + Unpin) -> std::io::Result<()> {
        let mut stream = BufReader::new(stream);
        while let Some(request) = ReceivedRequest::read(&mut stream).await? {
            let operation = request.headers["x-amz-target"].rsplit('.').next().unwrap().to_owned();
            let body: Value = serde_json::from_slice(&request.body).unwrap();
            let gateway = self.clone();
            let answer = tokio::task::spawn_blocking(move || gateway.answer(&operation, body));
            let (status, body) = answer.await.unwrap();
            let length = body.len();
            let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n\r\n");
            stream.write_all(format!("{head}{body}").as_bytes()).await?;
        }
        Ok(())
    }

    /// Answers a request of the input.
    fn answer(&self, operation: &str, mut body: Value) -> (u16, String) {
        let mut state = self.lock();
        state.requests.push_back((operation.to_owned(), body.clone()));
        let text = body.to_string();
        let is_meant = |refusal: &Refusal| {
            refusal.operation == operation
                && text.contains(&refusal.about)
                && refusal.times != Some(0)
        };
        if let Some(refusal) = state.refusals.iter_mut().find(|refusal| is_meant(refusal)) {
            refusal.times = refusal.times.map(|times| times - 1);
            return refused(refusal.code, "this is a test");
        }
        if let Some(page) = state.page.filter(|_| operation == "FilterLogEvents") {
            body["limit"] = page.into();
        }
        drop(state);
        if let Some(arn) = body.get("logGroupIdentifier").and_then(Value::as_str) {
            assert!(!arn.ends_with(":*"), "{arn}");
            let name = arn.split(":log-group:").nth(1).unwrap().to_owned();
            body["logGroupName"] = name.into();
        }
        if operation == "FilterLogEvents" && body["logStreamNamePrefix"].is_string() {
            let names = self.streams(&body);
            if names.is_empty() {
                return (200, json!({ "events": [] }).to_string());
            }
            body["logStreamNames"] = names.into();
        } else if operation == "FilterLogEvents"
            && let Some(names) = body["logStreamNames"].as_array()
        {
            let there = self.streams(&body);
            if !names.iter().all(|name| there.iter().any(|it| name == it)) {
                let message = "The specified log stream does not exist.";
                return refused("ResourceNotFoundException", message);
            }
        }
        self.moto(operation, &body)
    }

    /// The streams of a group that begin so.
    fn streams(&self, body: &Value) -> Vec<String> {
        let mut ask = json!({ "logGroupName": body["logGroupName"] });
        if body["logStreamNamePrefix"].is_string() {
            ask["logStreamNamePrefix"] = body["logStreamNamePrefix"].clone();
        }
        let (_, answer) = self.moto("DescribeLogStreams", &ask);
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let all = answer["logStreams"].as_array().cloned().unwrap_or_default();
        all.iter().map(|one| one["logStreamName"].as_str().unwrap().to_owned()).collect()
    }

    fn moto(&self, operation: &str, body: &Value) -> (u16, String) {
        let login = format!(
            "AWS4-HMAC-SHA256 Credential=test/20260101/{REGION}/logs/aws4_request, SignedHeaders=host, Signature=x"
        );
        let target = format!("Logs_20140328.{operation}");
        let headers = [
            ("authorization", login.as_str()),
            ("x-amz-target", target.as_str()),
            ("content-type", "application/x-amz-json-1.1"),
        ];
        self.server.text("POST", "/", &headers, &body.to_string()).unwrap()
    }

    /// Calls an operation, which must succeed.
    pub(crate) fn call(&self, operation: &str, body: &Value) {
        let (status, answer) = self.moto(operation, body);
        assert_eq!(status, 200, "{operation}: {answer}");
    }

    /// Makes a group with streams.
    pub(crate) fn make(&self, group: &str, streams: &[&str]) {
        self.call("CreateLogGroup", &json!({ "logGroupName": group }));
        for stream in streams {
            let place = json!({ "logGroupName": group, "logStreamName": stream });
            self.call("CreateLogStream", &place);
        }
    }

    pub(crate) fn delete(&self, group: &str) {
        self.call("DeleteLogGroup", &json!({ "logGroupName": group }));
    }

    /// Puts events with these times and texts, which must be in order.
    pub(crate) fn put(&self, group: &str, stream: &str, events: &[(i64, String)]) {
        let event = |(time, text): &(i64, String)| json!({ "timestamp": time, "message": text });
        for events in events.chunks(5_000) {
            let events: Vec<Value> = events.iter().map(event).collect();
            let body =
                json!({ "logGroupName": group, "logStreamName": stream, "logEvents": events });
            self.call("PutLogEvents", &body);
        }
    }

    /// Puts one event.
    pub(crate) fn put_one(&self, group: &str, stream: &str, time: i64, text: &str) {
        self.put(group, stream, &[(time, text.to_owned())]);
    }

    /// The input of these settings.
    pub(crate) fn input(&self, settings: &str) -> Box<dyn Input> {
        let text = format!(
            "{{endpoint: 'http://127.0.0.1:{}', access_key_id: test, secret_access_key: secret, scan_frequency: 100ms, \
             api_sleep: 1ms, {settings}}}",
            self.port
        );
        let problems = Problems::new();
        let yaml = Settings::parse("x", &text).expect("YAML");
        let section = yaml.root(&problems);
        section.declared_by(&AWS_CLOUDWATCH_INPUT);
        let fs: Arc<dyn Fs> = Arc::new(RealFs);
        let read = read(&section, &fs, |_| None);
        section.finish();
        Box::new(read.unwrap_or_else(|| panic!("{problems}")))
    }
}

fn refused(code: &str, message: &str) -> (u16, String) {
    (400, json!({ "__type": code, "message": message }).to_string())
}

/// Waits some scans.
pub(crate) async fn some_scans() {
    tokio::time::sleep(Duration::from_millis(500)).await;
}
