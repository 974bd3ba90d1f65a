//! What the faces of `http_endpoint` cost: the same lines in the bodies of each protocol, 1,000 a request, over a file of
//! them with the parser `ndjson`. Both end in `output.discard`. There are no goals.

use super::encoded::ship_events;
use super::{Goal, row, rows_or_why, spread};
use crate::measure::{self, Running, pause};
use crate::stage::{Home, Stage};
use crate::statistics::summarize;
use crate::table::{NO_GOAL, Row};
use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Uri};
use serde_json::Value;
use skidder_net::{Http2, Pieces};
use skidder_os::{Clock, SystemClock};
use skidder_workload::Kind;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// Events of a request.
const REQUEST_EVENTS: usize = 1000;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// The path of OTLP over gRPC.
const EXPORT: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";

/// A face, and how its clients send lines.
struct Face {
    goal: Goal,
    accept: &'static str,
    path: &'static str,
    kind: &'static str,
    body: fn(&[&[u8]]) -> Result<Vec<u8>>,
}

const fn goal(letter: &'static str, what: &'static str) -> Goal {
    (letter, what, NO_GOAL, NO_GOAL, "")
}

const FACES: [Face; 5] = [
    Face {
        goal: goal("x16", "CPU of documents over `_bulk`, over the same lines from a file"),
        accept: "elasticsearch",
        path: "/_bulk",
        kind: "application/x-ndjson",
        body: bulk,
    },
    Face {
        goal: goal("x17", "CPU of objects over HEC, likewise"),
        accept: "splunk_hec, prefix: '.'",
        path: "/services/collector",
        kind: "application/json",
        body: hec,
    },
    Face {
        goal: goal("x18", "CPU of lines over Loki's push, which are not parsed, likewise"),
        accept: "loki",
        path: "/loki/api/v1/push",
        kind: "application/x-protobuf",
        body: loki,
    },
    Face {
        goal: goal("x19", "CPU of lines over OTLP and HTTP, which are not parsed, likewise"),
        accept: "otlp",
        path: "/v1/logs",
        kind: "application/x-protobuf",
        body: otlp,
    },
    Face {
        goal: goal("x20", "CPU of lines over OTLP and gRPC, which are not parsed, likewise"),
        accept: "otlp",
        path: EXPORT,
        kind: "application/grpc",
        body: grpc,
    },
];

/// The rows x16 to x20.
pub fn faces(stage: &Stage) -> Vec<Row> {
    let goals = FACES.map(|face| face.goal);
    rows_or_why(&goals, measure_all(stage))
}

fn measure_all(stage: &Stage) -> Result<Vec<Row>> {
    let (file, events) = stage.of_kind(Kind::Json, stage.lines)?;
    let text = std::fs::read(&file)?;
    let lines: Vec<&[u8]> =
        text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    let path = Value::from(file.to_string_lossy());
    let from_file = format!(
        "type: filestream, id: bench, paths: [{path}], parsers: [{{ndjson: {{target: \"\", overwrite_keys: true}}}}]"
    );
    let mut base = Vec::new();
    // A program of before a face was there has no number for it.
    let mut costs: [Result<Vec<f64>>; FACES.len()] = std::array::from_fn(|_| Ok(Vec::new()));
    for run in 0..stage.runs {
        let cost = ship_events(stage, &from_file, "output.discard: {}\n", events)?;
        base.push(cost.cpu.as_secs_f64());
        for (face, costs) in FACES.iter().zip(&mut costs) {
            if let Ok(known) = costs {
                match face.cost(stage, &lines) {
                    Ok(cost) => known.push(cost),
                    Err(error) => *costs = Err(error),
                }
            }
        }
        measure::note(&format!("faces {}: {costs:?} over {base:?}", run + 1));
    }
    let base = summarize(&base).context("no run was made")?;
    let mut rows = Vec::new();
    for (face, costs) in FACES.iter().zip(costs) {
        let costs = match costs {
            Ok(costs) => costs,
            Err(error) => {
                rows.extend(rows_or_why(&[face.goal], Err(error)));
                continue;
            }
        };
        let cost = summarize(&costs).context("no run was made")?;
        let each = |seconds: f64| seconds / events as f64 * 1e6;
        let detail = format!(
            "{events} events, {:.2} µs each over {:.2}; {}; {}",
            each(cost.median),
            each(base.median),
            spread("s:", cost),
            spread("from a file s:", base)
        );
        rows.push(row(&face.goal, cost.median / base.median, detail));
    }
    Ok(rows)
}

impl Face {
    /// Seconds of CPU of the program for these lines.
    fn cost(&self, stage: &Stage, lines: &[&[u8]]) -> Result<f64> {
        // A port that was just given back stays free.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let accept = self.accept;
        let home = stage.home_of(&format!(
            "filebeat.inputs:\n  - {{type: http_endpoint, id: bench, listen_port: {port}, accept: {accept}}}\n\
             queue.mem.flush.timeout: 0s\noutput.discard: {{}}\n"
        ))?;
        let log = std::fs::File::create(home.log())?;
        let program = Running::start(home.command(&stage.skidder).stderr(log))?;
        wait_until_it_listens(&home)?;
        let bodies: Vec<Vec<u8>> =
            lines.chunks(REQUEST_EVENTS).map(self.body).collect::<Result<_>>()?;
        if self.kind == "application/grpc" {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(self.send_grpc(port, bodies))?;
        } else {
            self.send(port, &bodies)?;
        }
        Ok(program.end(PATIENCE)?.cpu.as_secs_f64())
    }

    /// Sends requests one after the other, each behind the answer to the one before.
    fn send(&self, port: u16, bodies: &[Vec<u8>]) -> Result<()> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        for body in bodies {
            let (path, kind, length) = (self.path, self.kind, body.len());
            let head = format!(
                "POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
            );
            stream.write_all(head.as_bytes())?;
            stream.write_all(body)?;
            let (status, answer) = read_answer(&mut stream)?;
            let is_taken = (200..300).contains(&status) && !answer.contains("\"errors\":true");
            ensure!(is_taken, "{} answered {status}: {answer}", self.accept);
        }
        Ok(())
    }

    async fn send_grpc(&self, port: u16, bodies: Vec<Vec<u8>>) -> Result<()> {
        let stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await?;
        let mut client = Http2::over(Box::new(stream)).await?;
        let uri: Uri = format!("http://127.0.0.1:{port}{}", self.path).parse()?;
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static(self.kind));
        headers.insert("te", HeaderValue::from_static("trailers"));
        for body in bodies {
            let body = Pieces::new(&[Bytes::from(body)]);
            let answer = client.exchange(uri.clone(), headers.clone(), body, PATIENCE).await?;
            let is_taken = answer.trailers.get("grpc-status").is_some_and(|code| code == "0");
            ensure!(is_taken, "OTLP over gRPC answered {answer:?}");
        }
        Ok(())
    }
}

fn wait_until_it_listens(home: &Home) -> Result<()> {
    let clock = SystemClock::new();
    while !std::fs::read_to_string(home.log())?.contains("\"listening\"") {
        ensure!(clock.monotonic().0 < PATIENCE, "the program does not listen");
        pause(Duration::from_millis(5));
    }
    Ok(())
}

/// The status and the body of an answer of HTTP/1.1.
fn read_answer(stream: &mut TcpStream) -> Result<(u16, String)> {
    let (mut bytes, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    let mut whole = None;
    while whole.is_none_or(|whole| bytes.len() < whole) {
        let read = stream.read(&mut piece)?;
        ensure!(read > 0, "the connection ended before the answer");
        bytes.extend_from_slice(&piece[..read]);
        let end = memchr::memmem::find(&bytes, b"\r\n\r\n");
        if let (None, Some(end)) = (whole, end) {
            let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.map_or(Ok(0), str::parse)?;
            whole = Some(end + 4 + length);
        }
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let Some(status) = text.split(' ').nth(1).and_then(|status| status.parse().ok()) else {
        bail!("an answer without a status: {text}");
    };
    Ok((status, text))
}

fn bulk(lines: &[&[u8]]) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    for line in lines {
        body.extend_from_slice(b"{\"create\":{\"_index\":\"bench\"}}\n");
        body.extend_from_slice(line);
        body.push(b'\n');
    }
    Ok(body)
}

fn hec(lines: &[&[u8]]) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    for line in lines {
        body.extend_from_slice(b"{\"event\":");
        body.extend_from_slice(line);
        body.push(b'}');
    }
    Ok(body)
}

/// A field of Protocol Buffers that is a text or a message.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(bytes);
    out
}

fn loki(lines: &[&[u8]]) -> Result<Vec<u8>> {
    let mut stream = field(1, b"{app=\"bench\", host=\"web-1\"}");
    for line in lines {
        // A second behind 1970.
        stream.extend(field(2, &[field(1, &[1 << 3, 1]), field(2, line)].concat()));
    }
    Ok(snap::raw::Encoder::new().compress_vec(&field(1, &stream))?)
}

fn otlp(lines: &[&[u8]]) -> Result<Vec<u8>> {
    let name = [field(1, b"service.name"), field(2, &field(1, b"bench"))].concat();
    let mut records = field(1, &field(1, b"bench"));
    for line in lines {
        let time = [&[1 << 3 | 1][..], &1_000_000_000_u64.to_le_bytes()].concat();
        let level = field(3, b"INFO");
        records.extend(field(2, &[time, level, field(5, &field(1, line))].concat()));
    }
    Ok(field(1, &[field(1, &field(1, &name)), field(2, &records)].concat()))
}

fn grpc(lines: &[&[u8]]) -> Result<Vec<u8>> {
    let message = otlp(lines)?;
    let mut body = vec![0];
    body.extend_from_slice(&(message.len() as u32).to_be_bytes());
    body.extend(message);
    Ok(body)
}
