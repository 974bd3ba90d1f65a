//! File, console and discard: the same promises as every output, on disks and terminals that fail.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::{Fixture, context, number};
use skidder_event::Format;
use skidder_os::{Fs, OpenMode, RealFs};
use skidder_outputs::{
    CodecConfig, Console, ConsoleConfig, Context, Discard, FileConfig, FileOutput,
};
use skidder_testkit::{Fault, SimClock, SimFs};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

const LINES: usize = 1000;

/// A terminal that is slow, takes little at once, and fails now and then.
#[derive(Clone, Default)]
struct Terminal {
    text: Arc<Mutex<Vec<u8>>>,
    calls: u32,
    /// After this many bytes the reader is gone.
    gone_after: Option<usize>,
}

impl Write for Terminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.calls += 1;
        let mut text = self.text.lock().unwrap();
        if self.gone_after.is_some_and(|most| text.len() >= most) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        match self.calls % 100 {
            7 => Err(io::ErrorKind::Interrupted.into()),
            13 => Err(io::ErrorKind::WouldBlock.into()),
            _ => {
                let count = bytes.len().min(700);
                text.extend_from_slice(&bytes[..count]);
                Ok(count)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How often each line is in a text of documents.
fn count(text: &str, into: &mut BTreeMap<usize, usize>) {
    assert!(text.is_empty() || text.ends_with('\n'));
    for document in text.lines() {
        let document: serde_json::Value = serde_json::from_str(document).unwrap();
        assert_eq!(document["@metadata"]["version"], "9.5.0");
        *into.entry(number(document["message"].as_str().unwrap())).or_default() += 1;
    }
}

#[tokio::test]
async fn the_console_prints_every_event_once_through_any_terminal() {
    let mut fixture = Fixture::new();
    fixture.push(LINES, 100);
    let terminal = Terminal::default();
    let target = Box::new(terminal.clone());
    fixture.run(Console::to(target, ConsoleConfig::default(), context())).await;
    let mut printed = BTreeMap::new();
    count(std::str::from_utf8(&terminal.text.lock().unwrap()).unwrap(), &mut printed);
    fixture.judge(&printed);
    assert!(fixture.feed.metrics.write_errors.get() > 0, "the terminal failed now and then");
}

#[tokio::test]
async fn the_console_prints_events_over_several_lines_if_asked_to() {
    let mut fixture = Fixture::new();
    fixture.push(2, 2);
    let terminal = Terminal::default();
    let codec = CodecConfig::Json { pretty: true, escape_html: false };
    let config = ConsoleConfig { codec, ..ConsoleConfig::default() };
    fixture.run(Console::to(Box::new(terminal.clone()), config, context())).await;
    let printed = String::from_utf8(terminal.text.lock().unwrap().clone()).unwrap();
    let documents = serde_json::Deserializer::from_str(&printed).into_iter::<serde_json::Value>();
    let lines: Vec<usize> =
        documents.map(|document| number(document.unwrap()["message"].as_str().unwrap())).collect();
    assert_eq!(lines, [0, 1]);
    assert!(
        printed.starts_with("{\n  \"@timestamp\": ") && printed.ends_with("\n}\n"),
        "{printed}"
    );
}

#[tokio::test]
async fn the_console_prints_format_strings_and_refuses_events_that_have_none() {
    let mut fixture = Fixture::new();
    fixture.push(3, 3);
    let terminal = Terminal::default();
    let format = Format::parse("%{[message]}!%{[agent.version]}").unwrap();
    let config = ConsoleConfig { codec: CodecConfig::Format(format), ..ConsoleConfig::default() };
    fixture.run(Console::to(Box::new(terminal.clone()), config, context())).await;
    let printed = String::from_utf8(terminal.text.lock().unwrap().clone()).unwrap();
    assert_eq!(printed, "line 0 !9.5.0\nline 1 x!9.5.0\nline 2 xx!9.5.0\n");

    let mut fixture = Fixture::new();
    fixture.push(3, 3);
    let format = Format::parse("%{[nothing]}").unwrap();
    let config = ConsoleConfig { codec: CodecConfig::Format(format), ..ConsoleConfig::default() };
    fixture.run(Console::to(Box::new(Terminal::default()), config, context())).await;
    assert_eq!(fixture.dead_letters().len(), 3);
    fixture.judge(&BTreeMap::new());
}

#[tokio::test]
async fn a_console_without_a_reader_ends_and_settles_nothing_unwritten() {
    let mut fixture = Fixture::new();
    fixture.push(5000, 100);
    let terminal = Terminal { gone_after: Some(10_000), ..Terminal::default() };
    let config = ConsoleConfig { bulk_max_size: 50, ..ConsoleConfig::default() };
    fixture.run(Console::to(Box::new(terminal.clone()), config, context())).await;
    let printed = String::from_utf8(terminal.text.lock().unwrap().clone()).unwrap().lines().count();
    let total = fixture.settle.total();
    assert!(total.adds_up());
    assert!(total.delivered() as usize <= printed && total.in_flight() > 0, "{total:?}");
    assert!(fixture.queue.push(common::batch(0, 1, Arc::new(base()))).is_err(), "it is closed");
}

fn base() -> skidder_event::Base {
    skidder_event::Base::new(&skidder_event::Map::new(), &skidder_event::Map::new())
}

#[tokio::test]
async fn discard_takes_everything() {
    let mut fixture = Fixture::new();
    fixture.push(LINES, 100);
    fixture.run(Discard).await;
    assert_eq!(fixture.settle.total().delivered(), LINES as u64);
    assert_eq!(fixture.feed.metrics.acked.get(), LINES as u64);
}

/// Counts the lines of all files of a directory.
fn read_all(fs: &dyn Fs, directory: &Path) -> BTreeMap<usize, usize> {
    let mut names = Vec::new();
    fs.read_dir(directory, &mut |entry| names.push(entry.name.to_owned())).unwrap();
    let mut found = BTreeMap::new();
    for name in names {
        let file = fs.open(&directory.join(name)).unwrap();
        let text = skidder_os::read_to_end(&*file, 1 << 30).unwrap();
        count(std::str::from_utf8(&text).unwrap(), &mut found);
    }
    found
}

#[tokio::test]
async fn the_file_output_writes_every_event_once_over_many_files() {
    let mut fixture = Fixture::new();
    fixture.push(LINES, 100);
    let directory = tempfile::tempdir().unwrap();
    let mut config = FileConfig::new(directory.path().join("made/below"));
    config.rotate_every_bytes = 20 << 10;
    config.number_of_files = 1000;
    fixture.run(FileOutput::new(config.clone(), context())).await;
    fixture.judge(&read_all(&RealFs, &config.path));
}

/// Writes three hundred lines to a simulated disk.
async fn write_to(fs: &SimFs, fixture: &mut Fixture) {
    fixture.push(300, 100);
    let mut config = FileConfig::new("/data".into());
    config.rotate_every_bytes = 4 << 10;
    config.number_of_files = 1000;
    let context = Context { fs: Arc::new(fs.clone()), ..context() };
    fixture.run(FileOutput::new(config, context)).await;
}

#[tokio::test(start_paused = true)]
async fn whatever_operation_fails_the_file_output_loses_and_repeats_nothing() {
    let mut nth = 1;
    loop {
        let fs = SimFs::new(&SimClock::new());
        fs.short_transfers(Some(nth));
        fs.inject(Fault::nth(nth, io::ErrorKind::StorageFull));
        let mut fixture = Fixture::new();
        fixture.name = format!("operation {nth} fails");
        write_to(&fs, &mut fixture).await;
        let over = fs.operations() < nth;
        fs.clear_faults();
        fixture.judge(&read_all(&fs, Path::new("/data")));
        if over {
            break;
        }
        nth += 1;
    }
    assert!(nth > 20, "only {nth} operations");
}

#[test]
fn the_check_of_the_file_output_tries_to_write_and_leaves_nothing_behind() {
    let check = |fs: &SimFs, path: &str| {
        let context = Context { fs: Arc::new(fs.clone()), ..context() };
        let mut printed = String::new();
        let output = FileOutput::new(FileConfig::new(path.into()), context);
        let good = output.check(&mut |line| printed.push_str(line));
        (good, printed)
    };
    let left = |fs: &SimFs| {
        let mut names = 0;
        fs.read_dir(Path::new("/data"), &mut |_| names += 1).unwrap();
        names
    };
    for (path, directory) in [("/data", "directory... OK"), ("/data/below", "OK will be made")] {
        let mut nth = 1;
        loop {
            let fs = SimFs::new(&SimClock::new());
            fs.create_dir_all(Path::new("/data"), 0o700).unwrap();
            let before = fs.operations();
            fs.inject(Fault::nth(nth, io::ErrorKind::PermissionDenied));
            let (good, printed) = check(&fs, path);
            let over = fs.operations() < before + nth;
            fs.clear_faults();
            assert_eq!(good, over, "operation {nth}: {printed}");
            if over {
                assert!(
                    printed.contains(directory) && printed.contains("permission... OK"),
                    "{printed}"
                );
                assert_eq!(left(&fs), 0);
                break;
            }
            // A file that could not be removed is no trouble for the next one.
            assert!(check(&fs, path).0);
            assert_eq!(left(&fs), 0);
            nth += 1;
        }
        assert!(nth >= 4, "looked, made and removed: {nth}");
    }
    let fs = SimFs::new(&SimClock::new());
    fs.create_dir_all(Path::new("/data"), 0o700).unwrap();
    fs.open_write(Path::new("/data/f"), OpenMode::New, 0o600).unwrap();
    for path in ["/data/f", "/data/f/below/it"] {
        let (good, printed) = check(&fs, path);
        assert!(
            !good && printed.contains("`/data/f` is not a directory: move it away"),
            "{printed}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_is_waited_for() {
    let fs = SimFs::new(&SimClock::new());
    fs.set_capacity(Some(30_000));
    let mut fixture = Fixture::new();
    let room = async {
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
        fs.set_capacity(None);
    };
    tokio::join!(write_to(&fs, &mut fixture), room);
    assert!(fixture.feed.metrics.write_errors.get() > 0);
    fixture.judge(&read_all(&fs, Path::new("/data")));
}
