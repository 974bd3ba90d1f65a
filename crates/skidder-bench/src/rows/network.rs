//! What inputs from the network cost and lose: lines over TCP against the same lines from a file, a flood of datagrams,
//! and thousands of connections.

use super::flows::flows_alone;
use super::{
    Goal, brokers, faces, idle_inputs, row, rows_or_why, ship_once, ship_with, sources, spread,
};
use crate::drain::READY;
use crate::measure::{self, Running, pause};
use crate::sink::{Behaviour, Sink};
use crate::stage::{Home, Settings, Stage};
use crate::statistics::summarize;
use crate::table::Row;
use anyhow::{Context, Result, ensure};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde_json::Value;
use skidder_os::{Clock, SystemClock};
use skidder_workload::Kind;
use std::io::Write as _;
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const TCP: Goal = ("x1", "CPU of lines over tcp, over the same lines from a file", 1.7, 1.3, "");
const UDP: Goal =
    ("x2", "datagrams lost of 2,000,000 of 240 bytes, 200,000 a second", 0.1, 0.0, " %");
const CONNECTIONS: Goal =
    ("x3", "memory of a tcp connection, 5,000 idle and 500 active", 24.0, 8.0, " KB");

const SYSLOG: Goal =
    ("x4", "CPU of syslog (RFC 5424) over tcp, over the same bytes with tcp", 1.8, 1.3, "");

const DATAGRAM: Goal =
    ("x5", "CPU of a datagram with udp, over `recvmmsg` alone into a buffer", 2.0, 1.3, "");

const LUMBERJACK: Goal =
    ("x6", "CPU of JSON events over Lumberjack, over the same lines from a file", 1.6, 1.2, "");

const HTTP: Goal = (
    "x7",
    "CPU of NDJSON over http_endpoint, 1,000 events a body, over the same lines from a file",
    1.5,
    1.15,
    "",
);

/// Events of a request of the row about HTTP.
const REQUEST_EVENTS: usize = 1000;

/// Events of a window, as Beats have them by default.
const WINDOW_EVENTS: usize = 2048;

/// What stands before the text of a message of the row about syslog: six programs of one machine, of which two write
/// structured data.
const SYSLOG_HEADERS: [&str; 6] = [
    "<165>1 TIME web-1.example.com nginx 8710 ID47 [origin ip=\"192.0.2.1\" software=\"nginx\"] ",
    "<30>1 TIME web-1.example.com systemd 1 - - ",
    "<86>1 TIME web-1.example.com sshd 20411 - - ",
    "<134>1 TIME web-1.example.com haproxy 977 - - ",
    "<78>1 TIME web-1.example.com CRON 31177 - - ",
    "<165>1 TIME web-1.example.com payments 4120 order [app@32473 version=\"1.14.2\" zone=\"eu-1\" tier=\"gold\"] ",
];

/// Settings of an input of lines over TCP.
const PLAIN: &str = "type: tcp, host: ADDRESS";

/// How long nothing may come before an experiment is given up.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often it is looked what has come.
const LOOK: Duration = Duration::from_millis(5);

/// Datagrams a second, for [`FLOOD`].
const RATE: u64 = 200_000;

/// How long they come.
const FLOOD: u64 = 10;

/// Bytes of a datagram.
const DATAGRAM_BYTES: usize = 240;

/// Connections that send nothing.
const IDLE: usize = 5_000;

/// Connections that send.
const ACTIVE: usize = 500;

/// Lines of each of these.
const ACTIVE_LINES: usize = 100;

/// The rows x1 to x8 and x10 to x20, and with a broker x9, too.
pub fn network(stage: &Stage) -> Vec<Row> {
    let mut rows = rows_or_why(&[TCP], tcp(stage));
    rows.extend(rows_or_why(&[UDP, DATAGRAM], udp(stage)));
    rows.extend(rows_or_why(&[CONNECTIONS], connections(stage)));
    rows.extend(rows_or_why(&[SYSLOG], syslog(stage)));
    rows.extend(rows_or_why(&[LUMBERJACK], lumberjack(stage)));
    rows.extend(rows_or_why(&[HTTP], http(stage)));
    rows.extend(sources(stage));
    rows.extend(idle_inputs(stage));
    rows.extend(brokers(stage));
    rows.extend(flows_alone(stage));
    rows.extend(faces(stage));
    rows
}

/// A program with one input that listens.
struct Listening {
    program: Running,
    sink: Sink,
    /// Holds the state of the program.
    home: Home,
    port: u16,
}

impl Listening {
    /// Starts it with an input that has these settings; `ADDRESS` or `PORT` in them is where it listens.
    fn start(stage: &Stage, input: &str) -> Result<Self> {
        // A port that was just given back stays free.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let sink = Sink::start(Behaviour::default())?;
        let url = Value::from(sink.url());
        let input = input.replace("ADDRESS", &format!("'127.0.0.1:{port}'"));
        let input = input.replace("PORT", &format!("listen_port: {port}"));
        let home = stage.home_of(&format!(
            "filebeat.inputs:\n  - {{id: bench, {input}}}\n\
             output.elasticsearch:\n  hosts: [{url}]\n  compression_level: 0\n"
        ))?;
        let log = std::fs::File::create(home.log())?;
        let program = Running::start(home.command(&stage.skidder).stderr(log))?;
        let listening = Self { program, sink, home, port };
        listening.until("the program to listen", || {
            let log = std::fs::read_to_string(listening.home.log())?;
            Ok(log.contains("\"listening\"") || log.contains("receives datagrams"))
        })?;
        Ok(listening)
    }

    /// Waits until something holds.
    fn until(&self, what: &str, holds: impl Fn() -> Result<bool>) -> Result<()> {
        let clock = SystemClock::new();
        while !holds()? {
            let came = self.sink.count().documents;
            ensure!(clock.monotonic().0 < PATIENCE, "waited for {what}; {came} events came");
            pause(LOOK);
        }
        Ok(())
    }

    /// Waits until so many events came.
    fn events(&self, count: u64) -> Result<()> {
        self.until("all events", || Ok(self.sink.count().documents >= count))
    }

    fn connect(&self) -> Result<TcpStream> {
        TcpStream::connect(("127.0.0.1", self.port)).context("cannot connect to the program")
    }
}

/// The rows x7 and x16 to x20: requests of HTTP.
pub fn requests_of_http(stage: &Stage) -> Vec<Row> {
    let mut rows = rows_or_why(&[HTTP], http(stage));
    rows.extend(faces(stage));
    rows
}

fn tcp(stage: &Stage) -> Result<Vec<Row>> {
    let file = stage.plain(stage.lines)?;
    let bytes = std::fs::read(&file)?;
    let (mut from_file, mut over_tcp) = (Vec::new(), Vec::new());
    for run in 0..stage.runs {
        from_file.push(file_cost(stage, &file)?);
        over_tcp.push(tcp_cost(stage, PLAIN, &bytes, stage.lines)?);
        measure::note(&format!("tcp {}: {from_file:?} {over_tcp:?}", run + 1));
    }
    let from_file = summarize(&from_file).context("no run was made")?;
    let over_tcp = summarize(&over_tcp).context("no run was made")?;
    let each = over_tcp.median / stage.lines as f64 * 1e6;
    let detail = format!(
        "{} lines, {each:.2} µs a line; {}; {}",
        stage.lines,
        spread("s:", over_tcp),
        spread("from a file s:", from_file)
    );
    Ok(vec![row(&TCP, over_tcp.median / from_file.median, detail)])
}

fn file_cost(stage: &Stage, file: &Path) -> Result<f64> {
    let paths = file.to_string_lossy();
    let (cost, _) = ship_once(stage, &stage.skidder, &paths, false, stage.lines)?;
    Ok(cost.cpu.as_secs_f64())
}

/// Seconds of CPU for an input with these settings.
fn tcp_cost(stage: &Stage, input: &str, bytes: &[u8], events: u64) -> Result<f64> {
    let listening = Listening::start(stage, input)?;
    let mut stream = listening.connect()?;
    stream.write_all(bytes)?;
    // A request without an answer counts only as long as its connection is open. Closing with answers that were not read
    // would reset the connection, and what was not received is lost.
    if !input.contains("http_endpoint") {
        stream.shutdown(Shutdown::Write)?;
    }
    listening.events(events)?;
    drop(stream);
    let came = listening.sink.count().documents;
    ensure!(came == events, "{came} of {events} events came");
    Ok(listening.program.end(PATIENCE)?.cpu.as_secs_f64())
}

fn syslog(stage: &Stage) -> Result<Vec<Row>> {
    let file = std::fs::read(stage.plain(stage.lines)?)?;
    let bytes = messages(&file, false);
    let unlike = messages(&file, true);
    let parsed = "type: syslog, format: rfc5424, protocol.tcp.host: ADDRESS";
    let (mut plain, mut over, mut over_unlike) = (Vec::new(), Vec::new(), Vec::new());
    for run in 0..stage.runs {
        plain.push(tcp_cost(stage, PLAIN, &bytes, stage.lines)?);
        over.push(tcp_cost(stage, parsed, &bytes, stage.lines)?);
        over_unlike.push(tcp_cost(stage, parsed, &unlike, stage.lines)?);
        measure::note(&format!("syslog {}: {plain:?} {over:?} {over_unlike:?}", run + 1));
    }
    let plain = summarize(&plain).context("no run was made")?;
    let over = summarize(&over).context("no run was made")?;
    let unlike = summarize(&over_unlike).context("no run was made")?;
    let each = over.median / stage.lines as f64 * 1e6;
    let detail = format!(
        "{} messages, {each:.2} µs each; {}; {}; {:.2} if no two headers are the same",
        stage.lines,
        spread("s:", over),
        spread("with tcp s:", plain),
        unlike.median / plain.median
    );
    Ok(vec![row(&SYSLOG, over.median / plain.median, detail)])
}

fn lumberjack(stage: &Stage) -> Result<Vec<Row>> {
    let (file, events) = stage.of_kind(Kind::Json, stage.lines)?;
    let lines = std::fs::read(&file)?;
    let plain = windows(&lines, false)?;
    let packed = windows(&lines, true)?;
    let input = "type: lumberjack, listen_address: ADDRESS, target: ''";
    let parsers = "[{ndjson: {target: \"\", overwrite_keys: true}}]";
    let settings = Settings { parsers, ..Settings::default() };
    let (mut from_file, mut over, mut over_packed) = (Vec::new(), Vec::new(), Vec::new());
    for run in 0..stage.runs {
        let paths = file.to_string_lossy();
        let (cost, _) = ship_with(stage, &stage.skidder, &paths, settings, events)?;
        from_file.push(cost.cpu.as_secs_f64());
        over.push(tcp_cost(stage, input, &plain, events)?);
        over_packed.push(tcp_cost(stage, input, &packed, events)?);
        measure::note(&format!("lumberjack {}: {from_file:?} {over:?} {over_packed:?}", run + 1));
    }
    let from_file = summarize(&from_file).context("no run was made")?;
    let over = summarize(&over).context("no run was made")?;
    let packed = summarize(&over_packed).context("no run was made")?;
    let each = over.median / events as f64 * 1e6;
    let detail = format!(
        "{events} events, {each:.2} µs each; {}; {}; {:.2} if windows are compressed at level 3",
        spread("s:", over),
        spread("from a file s:", from_file),
        packed.median / from_file.median
    );
    Ok(vec![row(&LUMBERJACK, over.median / from_file.median, detail)])
}

fn http(stage: &Stage) -> Result<Vec<Row>> {
    let (file, events) = stage.of_kind(Kind::Json, stage.lines)?;
    let bytes = requests(&std::fs::read(&file)?);
    let input = "type: http_endpoint, PORT, prefix: '.'";
    let parsers = "[{ndjson: {target: \"\", overwrite_keys: true}}]";
    let settings = Settings { parsers, ..Settings::default() };
    let (mut from_file, mut over) = (Vec::new(), Vec::new());
    for run in 0..stage.runs {
        let paths = file.to_string_lossy();
        let (cost, _) = ship_with(stage, &stage.skidder, &paths, settings, events)?;
        from_file.push(cost.cpu.as_secs_f64());
        over.push(tcp_cost(stage, input, &bytes, events)?);
        measure::note(&format!("http_endpoint {}: {from_file:?} {over:?}", run + 1));
    }
    let from_file = summarize(&from_file).context("no run was made")?;
    let over = summarize(&over).context("no run was made")?;
    let each = over.median / events as f64 * 1e6;
    let detail = format!(
        "{events} events, {each:.2} µs each; {}; {}",
        spread("s:", over),
        spread("from a file s:", from_file)
    );
    Ok(vec![row(&HTTP, over.median / from_file.median, detail)])
}

/// Lines of JSON as requests of HTTP, one behind the other.
fn requests(lines: &[u8]) -> Vec<u8> {
    let lines: Vec<&[u8]> =
        lines.split_inclusive(|byte| *byte == b'\n').filter(|line| line.len() > 1).collect();
    let mut bytes = Vec::new();
    for events in lines.chunks(REQUEST_EVENTS) {
        let body = events.concat();
        let length = body.len();
        let head = format!(
            "POST / HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        bytes.extend_from_slice(head.as_bytes());
        bytes.extend_from_slice(&body);
    }
    bytes
}

/// Lines of JSON as windows of Lumberjack.
fn windows(lines: &[u8], are_packed: bool) -> Result<Vec<u8>> {
    let lines: Vec<&[u8]> =
        lines.split(|byte| *byte == b'\n').filter(|it| !it.is_empty()).collect();
    let mut bytes = Vec::new();
    for window in lines.chunks(WINDOW_EVENTS) {
        bytes.extend_from_slice(b"2W");
        bytes.extend_from_slice(&(window.len() as u32).to_be_bytes());
        let mut frames = Vec::new();
        for (number, line) in (1_u32..).zip(window) {
            frames.extend_from_slice(b"2J");
            frames.extend_from_slice(&number.to_be_bytes());
            frames.extend_from_slice(&(line.len() as u32).to_be_bytes());
            frames.extend_from_slice(line);
        }
        if are_packed {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(3));
            encoder.write_all(&frames)?;
            frames = encoder.finish()?;
            bytes.extend_from_slice(b"2C");
            bytes.extend_from_slice(&(frames.len() as u32).to_be_bytes());
        }
        bytes.extend_from_slice(&frames);
    }
    Ok(bytes)
}

/// The lines of a file as messages, each a millisecond later than the one before. `unlike`: each is of a process of its own.
fn messages(file: &[u8], unlike: bool) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(file.len() * 2);
    let lines = file.split_inclusive(|byte| *byte == b'\n');
    for (number, line) in lines.enumerate() {
        let seconds = number / 1000;
        let time = format!(
            "2026-10-11T22:{:02}:{:02}.{:03}Z",
            seconds / 60 % 60,
            seconds % 60,
            number % 1000
        );
        // Programs write in bursts of different lengths.
        let mut header =
            SYSLOG_HEADERS[number / (1 + number % 3) % SYSLOG_HEADERS.len()].replace("TIME", &time);
        if unlike {
            header = header.replace("example", &format!("h{number}"));
        }
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(line);
    }
    bytes
}

fn udp(stage: &Stage) -> Result<Vec<Row>> {
    let (mut lost, mut costs, mut alone) = (Vec::new(), Vec::new(), Vec::new());
    for run in 0..stage.runs {
        let listening = Listening::start(stage, "type: udp, host: ADDRESS")?;
        let sent = flood(listening.port)?;
        // What does not come any more is lost.
        let mut before = u64::MAX;
        loop {
            pause(Duration::from_secs(1));
            let came = listening.sink.count().documents;
            if came == before {
                break;
            }
            before = came;
        }
        lost.push((sent - before) as f64 / sent as f64 * 100.0);
        costs.push(listening.program.end(PATIENCE)?.cpu.as_secs_f64() / sent as f64 * 1e6);
        alone.push(drain_cost(stage)?);
        measure::note(&format!(
            "udp {}: {lost:?} % lost, {costs:?} µs a datagram, {alone:?} alone",
            run + 1
        ));
    }
    let lost = summarize(&lost).context("no run was made")?;
    let costs = summarize(&costs).context("no run was made")?;
    let alone = summarize(&alone).context("no run was made")?;
    let each = spread("CPU µs a datagram:", costs);
    let loss = format!("{}; {each}", spread("% lost:", lost));
    let over = format!("{each}; {}", spread("alone µs:", alone));
    Ok(vec![row(&UDP, lost.median, loss), row(&DATAGRAM, costs.median / alone.median, over)])
}

/// CPU of a datagram, in microseconds, of a process that receives the same flood into a buffer.
fn drain_cost(stage: &Stage) -> Result<f64> {
    let port = UdpSocket::bind("127.0.0.1:0")?.local_addr()?.port();
    let home = stage.home_of("")?;
    let log = std::fs::File::create(home.log())?;
    let mut command = Command::new(std::env::current_exe()?);
    let program = Running::start(command.args(["drain", &port.to_string()]).stderr(log))?;
    let clock = SystemClock::new();
    while !std::fs::read_to_string(home.log())?.contains(READY) {
        ensure!(clock.monotonic().0 < PATIENCE, "`skidder-bench drain` does not receive");
        pause(LOOK);
    }
    let sent = flood(port)?;
    Ok(program.end(PATIENCE)?.cpu.as_secs_f64() / sent as f64 * 1e6)
}

/// Sends datagrams at a steady rate; returns how many.
fn flood(port: u16) -> Result<u64> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(("127.0.0.1", port))?;
    let datagram = [b'x'; DATAGRAM_BYTES];
    let clock = SystemClock::new();
    let mut sent = 0;
    while sent < RATE * FLOOD {
        let due = (clock.monotonic().0.as_secs_f64() * RATE as f64) as u64;
        if sent >= due {
            pause(Duration::from_micros(200));
        }
        while sent < due.min(RATE * FLOOD) {
            socket.send(&datagram)?;
            sent += 1;
        }
    }
    Ok(sent)
}

fn connections(stage: &Stage) -> Result<Vec<Row>> {
    crate::stage::allow_many_open_files()?;
    let mut each = Vec::new();
    for run in 0..stage.runs {
        let listening = Listening::start(stage, PLAIN)?;
        // Buffers and the connection to the sink are there before it is measured.
        let mut first = listening.connect()?;
        first.write_all(&b"a line\n".repeat(10_000))?;
        listening.events(10_000)?;
        let before = listening.program.memory()?;
        let idle: Vec<TcpStream> = (0..IDLE).map(|_| listening.connect()).collect::<Result<_>>()?;
        let mut active: Vec<TcpStream> =
            (0..ACTIVE).map(|_| listening.connect()).collect::<Result<_>>()?;
        for connection in &mut active {
            connection.write_all(&b"a line\n".repeat(ACTIVE_LINES))?;
        }
        listening.events((10_000 + ACTIVE * ACTIVE_LINES) as u64)?;
        let after = listening.program.memory()?;
        each.push(after.saturating_sub(before) as f64 / (IDLE + ACTIVE) as f64 / 1e3);
        measure::note(&format!("connections {}: {each:?} KB", run + 1));
        drop((idle, active, first));
        listening.program.end(PATIENCE)?;
    }
    let each = summarize(&each).context("no run was made")?;
    Ok(vec![row(&CONNECTIONS, each.median, spread("KB:", each))])
}
