//! Commits that fail, and what is kept of them.

use super::*;
use crate::testing::{at_zero, batch, meta};
use skidder_event::SourceId;
use skidder_os::Timestamp;
use skidder_registry::{Checkpoint, Options};
use skidder_testkit::{Fault, SimClock, SimFs};
use std::path::Path;

fn open(fs: &SimFs, clock: &SimClock) -> Arc<Registry> {
    let shared = (Arc::new(fs.clone()), Arc::new(clock.clone()));
    let opened = Registry::open(shared.0, shared.1, Path::new("/data"), Options::default());
    Arc::new(opened.expect("it opens").0)
}

#[test]
fn a_failed_commit_keeps_its_changes_for_the_next() {
    let clock = SimClock::new();
    let fs = SimFs::new(&clock);
    let settle = Settle::new();
    let mut registrar = Registrar::new(Arc::clone(&settle), open(&fs, &clock));
    assert!(registrar.flush(&clock), "nothing to do is done");
    for source in 1..=2 {
        settle.begin(SourceId(source), source.to_string(), meta("/one"), at_zero(), true);
    }
    settle.admit(&batch(1, 0, 0, 1), None).delivered(1);
    fs.inject(Fault::nth(1, std::io::ErrorKind::StorageFull).on("/data").forever());
    assert!(!registrar.flush(&clock));
    settle.admit(&batch(1, 0, 10, 1), None).delivered(1);
    assert!(!registrar.flush(&clock));
    fs.clear_faults();
    assert!(registrar.flush(&clock));
    drop(registrar);
    fs.crash();
    let registry = open(&fs, &clock);
    let offset = |key| registry.get(key).expect("it reads").expect("it is there").cursor.offset;
    assert_eq!((offset("1"), offset("2")), (20, 0));
}

#[test]
fn newer_changes_win_and_an_unsaved_checkpoint_is_kept() {
    let put = |key: &str, offset, checkpoint| Change::Put {
        key: key.into(),
        entry: skidder_registry::Entry {
            cursor: skidder_registry::Cursor { offset, ..at_zero() },
            meta: meta("/one"),
            updated: Timestamp(0),
            ttl: None,
        },
        checkpoint,
    };
    let remove = |key: &str| Change::Remove { key: key.into() };
    let point = || Checkpoint::Set(vec![1]);
    let merged = merge(
        vec![put("a", 1, point()), put("b", 1, Checkpoint::Keep), remove("c")],
        vec![put("a", 2, Checkpoint::Keep), remove("b"), put("c", 3, Checkpoint::Keep)],
    );
    // What is kept of a removed key would be the checkpoint of another file.
    let expected = vec![put("a", 2, point()), remove("b"), put("c", 3, Checkpoint::Clear)];
    assert_eq!(merged, expected);
}
