//! What the tests of the program share: a scripted server, numbered lines and their judge, and the
//! program itself.
#![allow(dead_code, reason = "each test program uses a part of it")]

pub(crate) mod lines;
pub(crate) mod program;
pub(crate) mod server;

use lines::Verdict;
use program::{Ended, Program, command};
use serde_json::Value;
use server::BulkServer;
use skidder_os::{RealFs, SystemClock};
use skidder_registry::{Options, Registry};
use std::ffi::OsStr;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Once};

/// Most events between the files and the server, in the configuration of [`Place`].
pub(crate) const QUEUE_EVENTS: usize = 400;

/// A directory with logs, a configuration and the program's data.
pub(crate) struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    /// All files under `logs/` go to the server; short intervals, a small queue.
    pub(crate) fn new(server: &BulkServer) -> Self {
        Self::with_output(&format!(
            "output.elasticsearch:\n  hosts: ['{}']\n  bulk_max_size: 50\n  compression_level: 0\n  \
             timeout: 5s\n  backoff: {{init: 5ms, max: 20ms}}\n",
            server.url
        ))
    }

    /// As [`Place::new`], for several outputs, each with its id.
    pub(crate) fn with_outputs(outputs: &[(&str, &BulkServer)]) -> Self {
        let mut text = "outputs:\n".to_owned();
        for (id, server) in outputs {
            text.push_str(&Self::output(id, server));
        }
        Self::with_output(&text)
    }

    /// An item of `outputs`. An answer that is held is waited for.
    pub(crate) fn output(id: &str, server: &BulkServer) -> String {
        format!(
            "- id: {id}\n  elasticsearch: {{hosts: ['{}'], bulk_max_size: 50, compression_level: 0, \
             timeout: 10m, backoff: {{init: 5ms, max: 20ms}}}}\n",
            server.url
        )
    }

    /// The configuration, to be changed.
    pub(crate) fn configuration(&self) -> String {
        std::fs::read_to_string(self.path().join("filebeat.yml")).unwrap()
    }

    /// As [`Place::new`], for another output.
    pub(crate) fn with_output(output: &str) -> Self {
        let place = Self { directory: tempfile::tempdir().unwrap() };
        std::fs::create_dir(place.logs()).unwrap();
        place.configure(&format!(
            "filebeat.inputs:\n- type: filestream\n  id: test\n  paths: ['{}/*']\n  \
             compression: auto\n  prospector.scanner.check_interval: 20ms\n  \
             backoff: {{init: 10ms, max: 20ms}}\n\
             filebeat.registry.flush: 20ms\nfilebeat.shutdown_timeout: 20s\n\
             queue.mem: {{events: {QUEUE_EVENTS}, flush.min_events: 50, flush.timeout: 10ms}}\n\
             logging.metrics.enabled: false\n{output}",
            place.logs().display()
        ));
        place
    }

    /// As [`Place::new`], for other inputs: YAML from its first key on, with a line's end. Writes files, of which each start
    /// begins one.
    pub(crate) fn receiving(inputs: &str) -> Self {
        let place = Self::with_output(
            "output.file: {path: out, filename: e, rotate_every_kb: 1000000, number_of_files: 100}\n",
        );
        let text = place.configuration();
        let (_, rest) = text.split_once("filebeat.registry.flush").unwrap();
        place.configure(&format!("{inputs}filebeat.registry.flush{rest}"));
        place
    }

    /// Replaces the configuration.
    pub(crate) fn configure(&self, text: &str) {
        std::fs::write(self.path().join("filebeat.yml"), text).unwrap();
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The directory that is read.
    pub(crate) fn logs(&self) -> PathBuf {
        self.path().join("logs")
    }

    /// The directory of the program's state.
    pub(crate) fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    /// The directory of the registry.
    pub(crate) fn registry(&self) -> PathBuf {
        self.data().join("registry/filebeat")
    }

    /// A file to be read.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.logs().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// The queue of 400 events would take windows and answers in small pieces.
    pub(crate) fn roomy(&self) {
        let text = self.configuration();
        let queue = text.lines().find(|line| line.starts_with("queue.mem")).unwrap();
        let larger = "queue.mem: {events: 3200, flush.min_events: 1600, flush.timeout: 50ms}";
        self.configure(&text.replace(queue, larger));
    }

    /// The files of the output `out`; none before it has written.
    fn out(&self) -> impl Iterator<Item = std::fs::DirEntry> {
        std::fs::read_dir(self.path().join("out")).into_iter().flatten().map(Result::unwrap)
    }

    /// The events in the files of `out`. A line without an end is of a program that was killed.
    pub(crate) fn events(&self) -> Vec<Value> {
        let texts = self.out().map(|file| std::fs::read_to_string(file.path()).unwrap());
        let events = |text: String| -> Vec<Value> {
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
        };
        texts.flat_map(events).collect()
    }

    /// Their messages.
    pub(crate) fn messages(&self) -> Vec<String> {
        let text = |event: &Value| event["message"].as_str().unwrap().to_owned();
        self.events().iter().map(text).collect()
    }

    /// Bytes in the files of `out`.
    pub(crate) fn written(&self) -> u64 {
        self.out().map(|file| file.metadata().map_or(0, |of| of.len())).sum()
    }

    /// Starts the program with the configuration and more arguments.
    pub(crate) fn start(&self, arguments: &[&str]) -> Program {
        Program::start(&mut self.command(arguments))
    }

    /// The program with this configuration, not yet started.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let config = self.path().join("filebeat.yml");
        let data = self.data();
        let mut command = command([OsStr::new("-e"), OsStr::new("-c"), config.as_os_str()]);
        command.arg("--path.data").arg(data).args(arguments).current_dir(self.path());
        command
    }

    /// Reads everything that is there and ends.
    pub(crate) fn once(&self, arguments: &[&str]) -> Ended {
        let arguments: Vec<&str> = ["--once"].iter().chain(arguments).copied().collect();
        self.start(&arguments).end()
    }

    /// Runs a command with the configuration to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        let config = self.path().join("filebeat.yml");
        let mut command = command([OsStr::new("-c"), config.as_os_str()]);
        command.arg("--path.data").arg(self.data()).args(arguments).current_dir(self.path());
        Program::run(&mut command)
    }

    /// The program that is started next answers at the socket `s`.
    pub(crate) fn open_endpoint(&self) {
        let (text, socket) = (self.configuration(), self.path().join("s"));
        let socket = socket.display();
        self.configure(&format!("{text}http: {{enabled: true, host: 'unix://{socket}'}}\n"));
    }

    /// The body of what the endpoint answers.
    pub(crate) fn get(&self, target: &str) -> String {
        let mut stream = UnixStream::connect(self.path().join("s")).unwrap();
        write!(stream, "GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    /// A number of `/stats`, by its path; `None` while the endpoint does not answer yet.
    pub(crate) fn stat(&self, pointer: &str) -> Option<u64> {
        UnixStream::connect(self.path().join("s")).ok()?;
        let stats: serde_json::Value = serde_json::from_str(&self.get("/stats")).unwrap();
        stats.pointer(pointer)?.as_u64()
    }

    /// Bytes that the registry on disk says are done, of all files together. Only while the program is
    /// not running; a copy is opened, so that the program finds the registry as it left it.
    pub(crate) fn durable_bytes(&self) -> u64 {
        let copy = tempfile::tempdir().unwrap();
        let listed = match std::fs::read_dir(self.registry()) {
            Ok(listed) => listed,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return 0,
            Err(error) => panic!("{error}"),
        };
        for entry in listed {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
        }
        let clock = Arc::new(SystemClock::new());
        let opened = Registry::open(Arc::new(RealFs), clock, copy.path(), Options::default());
        let (registry, _) = opened.unwrap();
        let mut bytes = 0;
        registry
            .for_each(|_, entry| bytes += entry.as_file().map_or(0, |file| file.cursor.offset))
            .unwrap();
        bytes
    }
}

/// Prints a line, which `--nocapture` shows.
#[expect(clippy::print_stdout, reason = "the table of faults is for people")]
pub(crate) fn print(text: &str) {
    println!("{text}");
}

/// Prints a row of the table of faults.
pub(crate) fn row(fault: &str, verdict: Verdict, bound: usize) {
    static HEAD: Once = Once::new();
    HEAD.call_once(|| {
        print(&format!("{:<58} | {:>7} | missing | duplicates | bound", "fault", "lines"));
    });
    let Verdict { lines, missing, duplicates, .. } = verdict;
    print(&format!("{fault:<58} | {lines:>7} | {missing:>7} | {duplicates:>10} | {bound:>5}"));
}

/// Prints the row and asserts that nothing is missing or altered and that repetitions are bounded.
pub(crate) fn accept(fault: &str, verdict: Verdict, bound: usize) {
    row(fault, verdict, bound);
    let good = verdict.missing == 0 && verdict.altered == 0 && verdict.duplicates <= bound;
    assert!(good, "{fault}: {verdict:?}, bound {bound}");
}

/// The seeds of a test: one of its own, or `SKIDDER_TEST_SEEDS` many, for a longer search.
pub(crate) fn seeds(first: u64) -> std::ops::Range<u64> {
    let count = std::env::var("SKIDDER_TEST_SEEDS").map_or(1, |count| count.parse().unwrap());
    // Far apart, so that a longer search of one test is none of another's.
    first * 1_000_000..first * 1_000_000 + count
}
