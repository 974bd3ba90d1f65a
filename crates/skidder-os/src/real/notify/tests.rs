//! inotify on the real file system: the notifications of a directory.

use super::*;
use std::fs;
use std::io::Write;

/// Longer than any machine takes to notify: a wait that lasts so long has failed.
const LONG: Duration = Duration::from_secs(30);

fn notifier() -> (Inotify, tempfile::TempDir) {
    (Inotify::new().unwrap(), tempfile::tempdir().unwrap())
}

/// Takes notices until `wanted` is among them.
fn until(notifier: &mut Inotify, wanted: &str) -> Vec<String> {
    let mut seen = Vec::new();
    loop {
        notifier.take(&mut |notice| seen.push(format!("{notice:?}")));
        if seen.iter().any(|notice| notice.contains(wanted)) {
            return seen;
        }
        let before = seen.len();
        notifier.wait(LONG);
        notifier.take(&mut |notice| seen.push(format!("{notice:?}")));
        assert!(seen.len() > before, "`{wanted}` was not reported, but {seen:?}");
    }
}

#[test]
fn writes_creations_renames_and_removals_are_told_by_name() {
    let (mut notifier, directory) = notifier();
    let path = directory.path().join("a.log");
    notifier.watch(directory.path()).unwrap();
    let mut file = fs::File::create(&path).unwrap();
    let seen = until(&mut notifier, "a.log");
    assert!(seen[0].starts_with("Name"), "{seen:?}");
    file.write_all(b"x").unwrap();
    let seen = until(&mut notifier, "a.log");
    assert!(seen[0].starts_with("Content"), "{seen:?}");
    file.set_len(0).unwrap();
    let seen = until(&mut notifier, "a.log");
    assert!(seen[0].starts_with("Content"), "{seen:?}");
    fs::rename(&path, directory.path().join("b.log")).unwrap();
    let seen = until(&mut notifier, "b.log");
    assert!(seen[0].contains("a.log"), "the old name is reported too: {seen:?}");
    fs::remove_file(directory.path().join("b.log")).unwrap();
    let seen = until(&mut notifier, "Name");
    assert!(seen.iter().any(|notice| notice.contains("b.log")), "{seen:?}");
}

#[test]
fn watching_again_gives_the_same_watch_as_long_as_it_is_the_same_directory() {
    let (mut notifier, directory) = notifier();
    let path = directory.path().join("logs");
    fs::create_dir(&path).unwrap();
    let first = notifier.watch(&path).unwrap();
    assert_eq!(notifier.watch(&path).unwrap(), first);
    fs::rename(&path, directory.path().join("old")).unwrap();
    fs::create_dir(&path).unwrap();
    let seen = until(&mut notifier, "Gone");
    assert_eq!(seen, [format!("{:?}", Notice::Gone { watch: first })]);
    assert_ne!(notifier.watch(&path).unwrap(), first);
}

#[test]
fn a_removed_directory_is_told_to_be_gone() {
    let (mut notifier, directory) = notifier();
    let path = directory.path().join("logs");
    fs::create_dir(&path).unwrap();
    notifier.watch(&path).unwrap();
    fs::remove_dir(&path).unwrap();
    until(&mut notifier, "Gone");
}

#[test]
fn nothing_is_told_of_what_is_no_longer_watched() {
    let (mut notifier, directory) = notifier();
    let other = tempfile::tempdir().unwrap();
    let watch = notifier.watch(directory.path()).unwrap();
    notifier.watch(other.path()).unwrap();
    notifier.unwatch(watch);
    notifier.unwatch(watch);
    fs::write(directory.path().join("unseen"), b"x").unwrap();
    fs::write(other.path().join("seen"), b"x").unwrap();
    let seen = until(&mut notifier, "\"seen\"");
    assert!(!seen.iter().any(|notice| notice.contains("unseen")), "{seen:?}");
}

#[test]
fn file_systems_made_by_programs_are_not_watched() {
    let mut notifier = Inotify::new().unwrap();
    let error = notifier.watch(Path::new("/proc")).unwrap_err();
    assert!(matches!(error, WatchError::Blind { kind: 0x9FA0 }), "{error}");
    let error = notifier.watch(Path::new("/nowhere")).unwrap_err();
    assert!(matches!(error, WatchError::Io(_)), "{error}");
}

#[test]
fn a_bell_ends_a_wait_even_if_it_rang_before() {
    let (mut notifier, _directory) = notifier();
    let bell = notifier.bell();
    bell.ring();
    bell.ring();
    // Would last for ever.
    notifier.wait(Duration::MAX);
    let ringing = std::thread::spawn(move || bell.ring());
    notifier.wait(Duration::MAX);
    ringing.join().unwrap();
}
