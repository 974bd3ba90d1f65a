//! The registry in fair weather, and what it costs.

use crate::common::*;
use skidder_os::{Clock, Fs, RealFs, SystemClock};
use skidder_registry::{
    CURSOR_BYTES_MAX, Change, Checkpoint, CommitError, Entry, KEY_BYTES_MAX, OpenError, Opened,
    Options, Registry, SourceAbout, SourceCursor, SourceEntry,
};
use skidder_testkit::{Operation, Random, SimClock};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

#[test]
fn entries_and_checkpoints_come_back_after_a_close() {
    let (fs, clock) = machine();
    let mut random = Random::new(1);
    let (registry, opened) = open(&fs, &clock);
    assert_eq!(opened, Opened::New);
    assert!(registry.is_empty().unwrap());
    let mut truth = Truth::new();
    for _ in 0..50 {
        let changes = changes(&mut random, &clock);
        registry.commit(&changes).unwrap();
        truth = after(&truth, &changes);
    }
    assert_eq!(content(&registry), truth);
    registry.close().unwrap();
    let (registry, opened) = open(&fs, &clock);
    assert_eq!((opened, content(&registry)), (Opened::Clean, truth));
    assert_eq!(registry.get("unknown").unwrap(), None);
    assert_eq!(registry.checkpoint("unknown").unwrap(), None);
}

#[test]
fn names_that_are_not_utf8_are_kept() {
    let (fs, clock) = machine();
    let (registry, _) = open(&fs, &clock);
    let mut entry = file_entry(&mut Random::new(1), &clock);
    entry.meta.source = Path::new(std::ffi::OsStr::from_bytes(b"/var/log/\xff\xfe.log")).into();
    let entry = Entry::from(entry);
    let change =
        Change::Put { key: key(1).into(), entry: entry.clone(), checkpoint: Checkpoint::Keep };
    registry.commit(&[change]).unwrap();
    assert_eq!(registry.get(&key(1)).unwrap(), Some(entry));
}

#[test]
fn a_key_that_is_too_long_refuses_the_whole_commit() {
    let (fs, clock) = machine();
    let (registry, _) = open(&fs, &clock);
    let entry = entry(&mut Random::new(1), &clock);
    let put = |key: String| Change::Put {
        key: key.into(),
        entry: entry.clone(),
        checkpoint: Checkpoint::Keep,
    };
    registry.commit(&[put("k".repeat(KEY_BYTES_MAX))]).unwrap();
    for bad in ["k".repeat(KEY_BYTES_MAX + 1), String::new()] {
        let error = registry.commit(&[put(key(1)), put(bad)]).unwrap_err();
        assert!(matches!(error, CommitError::Refused { .. }), "{error}");
    }
    assert_eq!(registry.len().unwrap(), 1);
}

#[test]
fn a_cursor_of_an_input_that_is_too_long_refuses_the_whole_commit() {
    let (fs, clock) = machine();
    let (registry, _) = open(&fs, &clock);
    let put = |length: usize| {
        let cursor = SourceCursor { version: 1, text: "c".repeat(length).into() };
        let (about, updated) = (SourceAbout::default(), clock.wall());
        let entry = SourceEntry { cursor, about, updated }.into();
        Change::Put { key: key(length as u64).into(), entry, checkpoint: Checkpoint::Keep }
    };
    registry.commit(&[put(CURSOR_BYTES_MAX)]).unwrap();
    let error = registry.commit(&[put(1), put(CURSOR_BYTES_MAX + 1)]).unwrap_err();
    assert!(matches!(error, CommitError::LongCursor { .. }), "{error}");
    assert_eq!(registry.len().unwrap(), 1);
}

#[test]
fn second_process_is_refused_until_the_first_is_gone() {
    let (fs, clock) = machine();
    let (registry, _) = open(&fs, &clock);
    let error = try_open(&fs, &clock).unwrap_err();
    assert!(matches!(&error, OpenError::Locked { path } if path.ends_with("registry.lock")));
    drop(registry);
    assert_eq!(open(&fs, &clock).1, Opened::Clean);
    fs.kill();
    open(&fs, &clock);
}

#[test]
fn a_commit_of_any_size_is_one_sync() {
    let (fs, clock) = machine();
    let fs_dyn: Arc<dyn Fs> = Arc::new(fs.clone());
    let (registry, _) =
        Registry::open(fs_dyn, Arc::new(clock.clone()), Path::new("/r"), Options::default())
            .unwrap();
    let mut random = Random::new(1);
    for count in [1, 10, 1000, 1000] {
        let changes: Vec<Change> = (0..count)
            .map(|number| Change::Put {
                key: key(number).into(),
                entry: entry(&mut random, &clock),
                checkpoint: Checkpoint::Keep,
            })
            .collect();
        let before = fs.operations_of(Operation::Sync);
        registry.commit(&changes).unwrap();
        assert_eq!(fs.operations_of(Operation::Sync) - before, 1, "{count} changes");
    }
}

#[test]
fn files_and_their_directory_are_for_the_owner() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("data/registry");
    let clock = Arc::new(SystemClock::new());
    let (registry, opened) =
        Registry::open(Arc::new(RealFs), clock, &directory, Options::default()).unwrap();
    assert_eq!(opened, Opened::New);
    registry.close().unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    let mut names = Vec::new();
    for file in std::fs::read_dir(&directory).unwrap() {
        let path = file.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        names.push(path.file_name().unwrap().to_string_lossy().into_owned());
    }
    names.sort();
    assert_eq!(names, ["registry.lock", "registry.redb", "registry.snapshot"]);
}

#[test]
fn registry_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Registry>();
}

#[test]
fn a_panic_of_a_callback_is_the_callers_and_leaves_the_registry_usable() {
    let (fs, clock) = machine();
    let (registry, _) = open(&fs, &clock);
    let change = Change::Put {
        key: key(1).into(),
        entry: entry(&mut Random::new(1), &clock),
        checkpoint: Checkpoint::Keep,
    };
    registry.commit(std::slice::from_ref(&change)).unwrap();
    let call = std::panic::AssertUnwindSafe(|| registry.for_each(|_, _| panic!("mine")));
    let panic = std::panic::catch_unwind(call).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"mine"));
    assert_eq!(registry.len().unwrap(), 1);
    registry.commit(&[change]).unwrap();
}

/// The files of every version of the format stay loadable for ever; `README.md` says what is in them.
#[test]
fn files_of_every_version_are_read() {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    for version in ["v1", "v2"] {
        let expected =
            std::fs::read_to_string(testdata.join(version).join("expected.txt")).unwrap();
        for damaged in [false, true] {
            let temporary = tempfile::tempdir().unwrap();
            for name in ["registry.redb", "registry.snapshot"] {
                std::fs::copy(testdata.join(version).join(name), temporary.path().join(name))
                    .unwrap();
            }
            if damaged {
                std::fs::write(temporary.path().join("registry.redb"), "garbage").unwrap();
            }
            let (registry, opened) = open_real(temporary.path());
            assert_eq!(
                matches!(opened, Opened::Damaged { recovered, .. } if recovered >= 3),
                damaged
            );
            // Snapshots have no checkpoints.
            let kept = if damaged { "checkpoint: []" } else { "checkpoint: [1, 2, 3]" };
            let expected = expected.replace("checkpoint: [1, 2, 3]", kept);
            assert_eq!(show(&content(&registry)), expected, "{version}");
            // It goes on in the newest version.
            let forget = Change::Remove { key: key(0).into() };
            registry.commit(&[forget]).unwrap();
            let rest = content(&registry);
            registry.close().unwrap();
            let (registry, _) = open_real(temporary.path());
            assert_eq!(content(&registry), rest, "{version}");
        }
    }
}

/// What `testdata/v2` was made of. With `SKIDDER_UPDATE=1` it is written anew: after the format has got a new version
/// and a new folder.
#[test]
fn the_files_of_the_newest_version_have_what_is_put_into_them() {
    let temporary = tempfile::tempdir().unwrap();
    let (registry, _) = open_real(temporary.path());
    let clock = SimClock::new();
    let mut random = Random::new(1);
    let mut changes: Vec<Change> = (0..3)
        .map(|number| Change::Put {
            key: key(number).into(),
            entry: file_entry(&mut random, &clock).into(),
            checkpoint: Checkpoint::Keep,
        })
        .collect();
    let Change::Put { entry: Entry::File(file), checkpoint, .. } = &mut changes[0] else {
        panic!("it is a put of a file")
    };
    file.meta.source = Path::new(std::ffi::OsStr::from_bytes(b"/var/log/caf\xe9.log.gz")).into();
    *checkpoint = Checkpoint::Set(vec![1, 2, 3]);
    let about = SourceAbout { input: "journald".into(), name: "/run/log/journal".into() };
    let cursor = SourceCursor { version: 1, text: "s=1;i=2;b=3".into() };
    let entry = SourceEntry { cursor, about, updated: clock.wall() }.into();
    let key = "journald::j::/run/log/journal".into();
    changes.push(Change::Put { key, entry, checkpoint: Checkpoint::Keep });
    registry.commit(&changes).unwrap();
    let expected = show(&content(&registry));
    registry.close().unwrap();
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/v2");
    if std::env::var_os("SKIDDER_UPDATE").is_none() {
        assert_eq!(std::fs::read_to_string(target.join("expected.txt")).unwrap(), expected);
        return;
    }
    std::fs::create_dir_all(&target).unwrap();
    for name in ["registry.redb", "registry.snapshot"] {
        std::fs::copy(temporary.path().join(name), target.join(name)).unwrap();
    }
    std::fs::write(target.join("expected.txt"), expected).unwrap();
}

fn open_real(directory: &Path) -> (Registry, Opened) {
    let clock = Arc::new(SystemClock::new());
    Registry::open(Arc::new(RealFs), clock, directory, Options::default()).unwrap()
}

/// One line for each entry, for a person to compare.
fn show(content: &Truth) -> String {
    let lines = content.iter().map(|(key, (entry, checkpoint))| {
        let checkpoint = checkpoint.as_deref().unwrap_or(&[]);
        match entry {
            Entry::File(file) => format!("{key} {file:?} checkpoint: {checkpoint:?}\n"),
            Entry::Source(source) => format!("{key} {source:?} checkpoint: {checkpoint:?}\n"),
        }
    });
    lines.collect()
}
