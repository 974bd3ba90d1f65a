//! Commits that fail, and what is kept of them.

use super::*;
use crate::testing::{at_zero, batch, meta};
use skidder_event::SourceId;
use skidder_os::Timestamp;
use skidder_registry::Entry;
use skidder_registry::{Checkpoint, Options};
use skidder_testkit::{Fault, SimClock, SimFs};
use std::path::Path;

fn open(fs: &SimFs, clock: &SimClock) -> Arc<Registry> {
    let shared = (Arc::new(fs.clone()), Arc::new(clock.clone()));
    let opened = Registry::open(shared.0, shared.1, Path::new("/data"), Options::default());
    Arc::new(opened.expect("it opens").0)
}

/// A registrar of an empty registry on a simulated disk.
fn begin() -> (SimClock, SimFs, Arc<Settle>, Registrar) {
    let clock = SimClock::new();
    let fs = SimFs::new(&clock);
    let settle = Settle::new();
    let registrar = Registrar::new(Arc::clone(&settle), open(&fs, &clock));
    (clock, fs, settle, registrar)
}

#[test]
fn a_failed_commit_keeps_its_changes_for_the_next() {
    let (clock, fs, settle, mut registrar) = begin();
    assert!(registrar.flush(&clock), "nothing to do is done");
    for source in 1..=2 {
        settle.begin(SourceId(source), source.to_string(), meta("/one"), at_zero(), true);
    }
    settle.admit(&mut batch(1, 0, 0, 1), None).delivered(1);
    fs.inject(Fault::nth(1, std::io::ErrorKind::StorageFull).on("/data").forever());
    assert!(!registrar.flush(&clock));
    settle.admit(&mut batch(1, 0, 10, 1), None).delivered(1);
    assert!(!registrar.flush(&clock));
    fs.clear_faults();
    assert!(registrar.flush(&clock));
    drop(registrar);
    fs.crash();
    let registry = open(&fs, &clock);
    let entry = |key| registry.get(key).expect("it reads").and_then(Entry::into_file);
    let offset = |key| entry(key).expect("it is there").cursor.offset;
    assert_eq!((offset("1"), offset("2")), (20, 0));
}

#[test]
fn newer_changes_win_and_an_unsaved_checkpoint_is_kept() {
    let put = |key: &str, offset, checkpoint| Change::Put {
        key: key.into(),
        entry: Entry::File(skidder_registry::FileEntry {
            cursor: skidder_registry::Cursor { offset, ..at_zero() },
            meta: meta("/one"),
            updated: Timestamp(0),
            ttl: None,
        }),
        checkpoint,
    };
    let remove = |key: &str| Change::Remove { key: key.into() };
    let point = || Checkpoint::Set(vec![1]);
    let merged = merge(
        vec![put("a", 1, point()), put("b", 1, Checkpoint::Keep), remove("c")],
        vec![put("a", 2, Checkpoint::Keep), remove("b"), put("c", 3, Checkpoint::Keep)],
    );
    // The state of a removed key would be the checkpoint of another source.
    let expected = vec![put("a", 2, point()), remove("b"), put("c", 3, Checkpoint::Clear)];
    assert_eq!(merged, expected);
}

/// Collects the texts of log lines.
#[derive(Clone, Default)]
struct LogLines(Arc<std::sync::Mutex<Vec<String>>>);

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for LogLines {
    fn on_event(&self, event: &tracing::Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
        struct Text<'a>(&'a mut String);
        impl tracing::field::Visit for Text<'_> {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                if field.name() == "message" {
                    *self.0 = format!("{value:?}");
                }
            }
        }
        let mut text = String::new();
        event.record(&mut Text(&mut text));
        self.0.lock().expect("no test panics in it").push(text);
    }
}

#[test]
fn a_disk_that_takes_and_refuses_by_turns_is_told_of_once_a_minute() {
    use tracing_subscriber::layer::SubscriberExt as _;
    let (clock, fs, settle, mut registrar) = begin();
    settle.begin(SourceId(1), "1".to_owned(), meta("/one"), at_zero(), true);
    let log = LogLines::default();
    let subscriber = tracing_subscriber::registry().with(log.clone());
    tracing::subscriber::with_default(subscriber, || {
        for second in 0..120 {
            let offset = second * 10;
            settle.admit(&mut batch(1, 0, offset, 1), None).delivered(1);
            if second % 2 == 0 {
                fs.inject(Fault::nth(1, std::io::ErrorKind::StorageFull).on("/data").forever());
            }
            assert_eq!(registrar.flush(&clock), second % 2 == 1);
            fs.clear_faults();
            clock.advance(std::time::Duration::from_secs(1));
        }
        // It has worked since a while.
        for _ in 0..20 {
            clock.advance(std::time::Duration::from_secs(1));
            assert!(registrar.flush(&clock));
        }
    });
    let lines = log.0.lock().expect("no test panics in it");
    let count = |text: &str| lines.iter().filter(|line| line.contains(text)).count();
    assert_eq!((count("cannot save cursors"), count("takes cursors again")), (2, 1), "{lines:?}");
}
