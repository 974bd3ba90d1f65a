//! What inputs of brokers cost, Redis and MQTT, over the same lines from a file; and the servers for that.

use super::encoded::ship_events;
use super::{Goal, row, rows_or_why, spread};
use crate::measure::{self, Running, pause};
use crate::stage::Stage;
use crate::statistics::summarize;
use crate::table::Row;
use anyhow::{Context, Result, ensure};
use skidder_os::{Clock, SystemClock};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

const LIST: Goal = (
    "x11",
    "CPU of a list of Redis (lines of 240 bytes) to `output.discard`, over the same lines from a file",
    3.0,
    1.5,
    "",
);

const STREAM: Goal = (
    "x12",
    "CPU of a stream of Redis to `output.discard`, over the same lines from a file",
    4.0,
    2.0,
    "",
);

const MQTT: Goal = (
    "x13",
    "CPU of MQTT with QoS 1 to `output.discard`, over the same lines from a file",
    8.0,
    4.0,
    "",
);

/// Messages of a run, at most: a broker has all of them in memory.
const MESSAGES_MAX: u64 = 500_000;

/// Bytes of a message, with the line feed that it has in a file.
const LINE_BYTES: usize = 240;

/// Messages of one piece that is written to Redis.
const PIECE: usize = 1_000;

/// After this time a server listens, or never.
const PATIENCE: Duration = Duration::from_secs(20);

/// The rows x11 to x13.
pub fn brokers(stage: &Stage) -> Vec<Row> {
    let mut rows = rows_or_why(&[LIST], redis(stage, &LIST, false));
    rows.extend(rows_or_why(&[STREAM], redis(stage, &STREAM, true)));
    rows.extend(rows_or_why(&[MQTT], mqtt(stage)));
    rows
}

/// A server on the loopback interface, without users, that keeps nothing on disk.
pub(super) struct Server {
    pub(super) port: u16,
    _program: Running,
    _directory: TempDir,
}

impl Server {
    pub(super) fn redis() -> Result<Self> {
        Self::start("redis-server", |port, _| {
            Ok(vec!["--port".to_owned(), port.to_string(), "--save".to_owned(), String::new()])
        })
    }

    pub(super) fn mosquitto() -> Result<Self> {
        Self::start("mosquitto", |port, directory| {
            let file = directory.path().join("mosquitto.conf");
            let text = format!(
                "listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\n\
                 max_queued_bytes 0\n"
            );
            std::fs::write(&file, text)?;
            Ok(vec!["-c".to_owned(), file.display().to_string()])
        })
    }

    fn start(
        program: &str,
        arguments: impl FnOnce(u16, &TempDir) -> Result<Vec<String>>,
    ) -> Result<Self> {
        // A port that was just given back stays free.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let directory = tempfile::tempdir()?;
        let mut command = Command::new(program);
        command.args(arguments(port, &directory)?).current_dir(&directory);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let running = Running::start(&mut command)
            .with_context(|| format!("`{program}` is in the Debian package of that name"))?;
        let clock = SystemClock::new();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            ensure!(clock.monotonic().0 < PATIENCE, "`{program}` does not listen");
            pause(Duration::from_millis(20));
        }
        Ok(Self { port, _program: running, _directory: directory })
    }
}

/// Measures an input in turns with the same lines from a file. `fill` puts them where the input finds them.
fn over_file(
    stage: &Stage,
    goal: &Goal,
    input: &str,
    mut fill: impl FnMut(&[u8]) -> Result<()>,
) -> Result<Vec<Row>> {
    let lines = stage.lines.min(MESSAGES_MAX);
    let file = stage.cut(LINE_BYTES, lines as usize)?;
    let text = std::fs::read(&file)?;
    let path = serde_json::Value::from(file.to_string_lossy());
    let plain = format!("type: filestream, id: bench, paths: [{path}]");
    let (mut cost, mut base) = (Vec::new(), Vec::new());
    for run in 0..stage.runs {
        base.push(ship_events(stage, &plain, "output.discard: {}\n", lines)?.cpu.as_secs_f64());
        fill(&text)?;
        cost.push(ship_events(stage, input, "output.discard: {}\n", lines)?.cpu.as_secs_f64());
        measure::note(&format!("{} {}: {cost:?} over {base:?}", goal.0, run + 1));
    }
    let cost = summarize(&cost).context("no run was made")?;
    let base = summarize(&base).context("no run was made")?;
    let each = |seconds: f64| seconds / lines as f64 * 1e6;
    let detail = format!(
        "{lines} messages, {:.2} µs each over {:.2}; {}; {}",
        each(cost.median),
        each(base.median),
        spread("s:", cost),
        spread("file s:", base)
    );
    Ok(vec![row(goal, cost.median / base.median, detail)])
}

fn redis(stage: &Stage, goal: &Goal, is_stream: bool) -> Result<Vec<Row>> {
    let server = Server::redis()?;
    let port = server.port;
    let what = if is_stream { "streams: [bench], group: bench" } else { "lists: [bench]" };
    let input = format!("type: redis, id: bench, hosts: ['127.0.0.1:{port}'], {what}");
    over_file(stage, goal, &input, |text| {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        let mut answers = BufReader::new(stream.try_clone()?).lines();
        let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
        // What an earlier run has left in the stream is settled.
        let delete: [&[u8]; 2] = [b"DEL", b"bench"];
        fill(&stream, &mut answers, &command(&delete), 1)?;
        for piece in lines.strip_suffix(&[&b""[..]]).unwrap_or(&lines).chunks(PIECE) {
            if is_stream {
                let add = |line: &&[u8]| command(&[b"XADD", b"bench", b"*", b"message", line]);
                let all: Vec<u8> = piece.iter().flat_map(add).collect();
                // The id, behind its length.
                fill(&stream, &mut answers, &all, 2 * piece.len())?;
            } else {
                let words = [&[&b"RPUSH"[..], b"bench"], piece].concat();
                fill(&stream, &mut answers, &command(&words), 1)?;
            }
        }
        Ok(())
    })
}

/// A command of Redis.
fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut text = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        text.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        text.extend_from_slice(word);
        text.extend_from_slice(b"\r\n");
    }
    text
}

/// Sends commands, and reads so many lines of answers.
fn fill(
    mut stream: &TcpStream,
    answers: &mut impl Iterator<Item = std::io::Result<String>>,
    commands: &[u8],
    lines: usize,
) -> Result<()> {
    stream.write_all(commands)?;
    for answer in answers.take(lines) {
        let answer = answer?;
        ensure!(!answer.starts_with('-'), "Redis refuses: {answer}");
    }
    Ok(())
}

fn mqtt(stage: &Stage) -> Result<Vec<Row>> {
    let server = Server::mosquitto()?;
    let port = server.port;
    let input = format!(
        "type: mqtt, id: bench, hosts: ['tcp://127.0.0.1:{port}'], topics: [bench], qos: 1, \
         client_id: bench, clean_session: false"
    );
    // The broker keeps messages for a session that there was before.
    ship_events(stage, &input, "output.discard: {}\n", 0)?;
    over_file(stage, &MQTT, &input, |text| publish(port, text))
}

/// Publishes lines with QoS 1. `mosquitto_pub -l` ends before it has sent them all.
fn publish(port: u16, text: &[u8]) -> Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    // A clean session of MQTT 3.1.1 without pings, by the name of `fill`.
    stream.write_all(b"\x10\x10\x00\x04MQTT\x04\x02\x00\x00\x00\x04fill")?;
    let mut accepted = [0; 4];
    stream.read_exact(&mut accepted)?;
    ensure!(accepted == [0x20, 2, 0, 0], "the broker refuses: {accepted:?}");
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    let mut answers = vec![0; 4 * PIECE];
    for piece in lines.strip_suffix(&[&b""[..]]).unwrap_or(&lines).chunks(PIECE) {
        let all: Vec<u8> = piece.iter().flat_map(|line| packet(b"bench", line)).collect();
        stream.write_all(&all)?;
        // Each PUBACK has four bytes.
        stream.read_exact(&mut answers[..4 * piece.len()])?;
    }
    Ok(())
}

/// A packet that publishes with QoS 1. All have the same identifier, which is free when the packets are answered one
/// after the other, as Mosquitto does it.
fn packet(topic: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut length = 2 + topic.len() + 2 + payload.len();
    let mut packet = vec![0x32];
    while length >= 0x80 {
        packet.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    packet.push(length as u8);
    packet.extend_from_slice(&(topic.len() as u16).to_be_bytes());
    packet.extend_from_slice(topic);
    packet.extend_from_slice(&[0, 1]);
    packet.extend_from_slice(payload);
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_the_lengths_of_their_words() {
        assert_eq!(command(&[b"DEL", b"\xc3\xa4"]), b"*2\r\n$3\r\nDEL\r\n$2\r\n\xc3\xa4\r\n");
    }

    #[test]
    fn packets_have_their_length_in_seven_bits_a_byte() {
        assert_eq!(packet(b"t", b"ab"), b"\x32\x07\x00\x01t\x00\x01ab");
        assert_eq!(packet(b"t", &[b'x'; 240])[..4], *b"\x32\xf5\x01\x00");
    }

    #[test]
    fn a_refused_command_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut good = [":1", "$3"].map(|line| Ok(line.to_owned())).into_iter();
        fill(&stream, &mut good, b"x", 2).unwrap();
        let mut bad = std::iter::once(Ok("-ERR no".to_owned()));
        let error = fill(&stream, &mut bad, b"x", 1).unwrap_err();
        assert_eq!(error.to_string(), "Redis refuses: -ERR no");
    }
}
