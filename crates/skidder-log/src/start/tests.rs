//! The whole log, from an event of `tracing` to a file.

use super::*;
use crate::config::{Flags, LogSettings};
use skidder_config::{Problems, Settings};
use skidder_testkit::SimClock;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tracing::dispatcher::{Dispatch, with_default};

/// More than anything here takes.
const LIMIT: Duration = Duration::from_mins(1);

struct Running {
    directory: TempDir,
    clock: SimClock,
    log: Log,
    dispatch: Dispatch,
}

impl Running {
    fn new(text: &str) -> Self {
        Self::with(text, |_| ())
    }

    /// `prepare` gets the directory first.
    fn with(text: &str, prepare: impl FnOnce(&Path)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        prepare(directory.path());
        let settings = Settings::parse("filebeat.yml", text).unwrap();
        let problems = Problems::new();
        let root = settings.root(&problems);
        let settings = LogSettings::read(root.section("logging"), directory.path());
        root.finish();
        assert_eq!(problems.to_string(), "");
        let clock = SimClock::new();
        let syslog = directory.path().join("syslog");
        let (log, subscriber) = Log::new(
            settings.with_flags(&Flags::default()),
            Arc::new(clock.clone()),
            &[syslog.to_str().unwrap()],
        )
        .unwrap();
        Self { directory, clock, log, dispatch: Dispatch::new(subscriber) }
    }

    fn capture(&self, work: impl FnOnce()) {
        with_default(&self.dispatch, work);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The lines of a file, when all are written.
    fn lines(&self, name: &str) -> Vec<serde_json::Value> {
        assert!(self.log.flush(LIMIT));
        let text = std::fs::read_to_string(self.path(name)).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn messages(&self, name: &str) -> Vec<String> {
        let lines = self.lines(name);
        lines.iter().map(|line| line["message"].as_str().unwrap().to_owned()).collect()
    }
}

const FILE: &str = "skidder-20260101.ndjson";
const EVENTS: &str = "skidder-events-data-20260101.ndjson";

#[test]
fn lines_have_their_fields_those_of_their_output_and_those_of_the_configuration() {
    let running = Running::new("logging.with_fields: {site: a, path: theirs}");
    running.capture(|| {
        let _in = tracing::error_span!("output", id = "one").entered();
        let error = std::io::Error::other("no `http://u:p@h/x`");
        tracing::warn!(path = "/a", n = 3, good = true, %error, "it is {}", "so");
    });
    let mut line = running.lines(FILE).remove(0);
    let origin = line["log.origin"].take();
    assert!(origin["file.name"].as_str().unwrap().ends_with("start/tests.rs"), "{origin}");
    assert!(origin["file.line"].as_u64() > Some(0));
    assert_eq!(
        line,
        serde_json::json!({
            "log.level": "warn", "@timestamp": "2026-01-01T00:00:00.000Z",
            "log.logger": "skidder_log.start.tests", "log.origin": null, "message": "it is so",
            "service.name": "skidder", "ecs.version": "1.6.0", "output.id": "one", "path": "/a",
            "n": 3, "good": true, "error.message": "no `http://xxxxx@h/x`", "site": "a",
        })
    );
}

#[test]
fn only_selected_parts_say_their_debug_lines_and_libraries_never_do() {
    let running = Running::new("logging: {level: debug, selectors: [harvester]}");
    running.capture(|| {
        tracing::debug!(target: "skidder_read::reader", "1");
        tracing::debug!(target: "skidder_outputs::redis", "no");
        tracing::info!(target: "skidder_outputs::redis", "2");
        tracing::debug!(target: "hyper::client", "no");
        tracing::info!(target: "hyper::client", "no");
        tracing::warn!(target: "hyper::client", "3");
    });
    assert_eq!(running.messages(FILE), ["1", "2", "3"]);
}

#[test]
fn the_level_holds() {
    let running = Running::new("logging.level: warning");
    running.capture(|| {
        tracing::debug!("no");
        tracing::info!("no");
        tracing::warn!("1");
        tracing::error!("2");
    });
    assert_eq!(running.messages(FILE), ["1", "2"]);
}

#[test]
fn the_content_of_events_goes_to_its_files_and_nowhere_else() {
    let running = Running::new("logging.event_data:");
    let log = || {
        for n in 0..100 {
            // The same a hundred times: none is held back.
            tracing::warn!(target: crate::EVENT_DATA, status = 400, event.original = "secret", "refused");
            assert!(n < 100);
        }
        tracing::warn!("an event was refused");
    };
    running.capture(log);
    assert_eq!(running.messages(FILE), ["an event was refused"]);
    let lines = running.lines(EVENTS);
    assert_eq!(lines.len(), 100);
    assert_eq!(
        (&lines[0]["log.type"], &lines[0]["event.original"]),
        (&"event".into(), &"secret".into())
    );
    // Not enabled.
    let running = Running::new("");
    running.capture(log);
    assert_eq!(running.messages(FILE), ["an event was refused"]);
    assert!(running.lines(EVENTS).is_empty());
}

#[test]
fn lines_that_come_again_and_again_are_counted_and_told_at_the_end() {
    let running = Running::new("");
    running.capture(|| {
        for _ in 0..50 {
            tracing::warn!(path = "/a", "it fails");
        }
        tracing::warn!(path = "/b", "it fails");
        tracing::info!("it works");
    });
    let paths = |lines: &[serde_json::Value]| -> Vec<String> {
        lines.iter().map(|line| line["path"].as_str().unwrap_or("-").to_owned()).collect()
    };
    assert_eq!(paths(&running.lines(FILE)), ["/a", "/a", "/a", "/a", "/a", "/b", "-"]);
    running.log.end(LIMIT);
    let last = running.lines(FILE).pop().unwrap();
    assert_eq!((last["path"].as_str(), last["log.held_back"].as_u64()), (Some("/a"), Some(45)));
}

#[test]
fn a_log_that_cannot_be_written_is_counted_and_goes_on_when_it_can() {
    let block = |directory: &Path| std::fs::write(directory.join("sub"), "in the way").unwrap();
    let text = "logging: {files.path: sub, event_data.files.path: sub}";
    let running = Running::with(text, block);
    running.capture(|| {
        tracing::warn!("one");
        tracing::warn!(target: crate::EVENT_DATA, "secret");
    });
    assert!(running.log.flush(LIMIT));
    // Both lines, and the report about the second.
    let numbers = running.log.numbers();
    assert!((2..=3).contains(&numbers.failed), "{numbers:?}");
    std::fs::remove_file(running.path("sub")).unwrap();
    // Not at once.
    running.capture(|| tracing::warn!("two"));
    assert!(running.log.flush(LIMIT));
    assert!(!running.path("sub").is_dir());
    running.clock.advance(Duration::from_secs(1));
    running.capture(|| {
        tracing::warn!("three");
        tracing::warn!(target: crate::EVENT_DATA, "four");
    });
    let messages = running.messages("sub/skidder-20260101.ndjson");
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(messages[0].starts_with("the log can be written again"), "{messages:?}");
    assert_eq!(messages[1], "three");
    assert_eq!(running.messages("sub/skidder-events-data-20260101.ndjson"), ["four"]);
}

#[test]
fn lines_go_to_syslog() {
    use std::os::unix::net::UnixDatagram;
    let mut server = None;
    let running = Running::with("logging.to_syslog: true", |directory| {
        server = Some(UnixDatagram::bind(directory.join("syslog")).unwrap());
    });
    running.capture(|| tracing::error!(n = 1, "it fails"));
    let mut buffer = [0; 4096];
    let length = server.unwrap().recv(&mut buffer).unwrap();
    let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
    assert!(text.starts_with("<131>"), "{text}");
    assert!(text.contains("ERROR [skidder_log.start.tests] "), "{text}");
    assert!(
        text.ends_with(
            " it fails {\"service.name\":\"skidder\",\"ecs.version\":\"1.6.0\",\"n\":1}"
        ),
        "{text}"
    );
}
