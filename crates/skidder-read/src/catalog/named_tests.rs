//! Files that are known by names, and state that was saved under other keys.

use crate::identity::FileIdentity;
use crate::readers::ReadersLimits;
use crate::settings::{Compression, FilestreamSettings, TakeOver};
use crate::testing::{Input, lines, settings};
use skidder_os::Fs;
use skidder_registry::{Cursor, FileEntry, Meta};
use skidder_testkit::Random;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const A: &str = "/logs/a.log";
const MARKER: &str = "/etc/marker";

fn with(identity: FileIdentity, change: impl FnOnce(&mut FilestreamSettings)) -> Input {
    let mut settings = settings();
    settings.compression = Compression::None;
    settings.fingerprint.enabled = identity.is_content();
    settings.identity = identity;
    change(&mut settings);
    let input = Input::with(settings, ReadersLimits { open_files: 100, decoders: 10 }, 100);
    input.fs.create_dir_as_other("/etc");
    input.fs.write_as_other(MARKER, b"host-7");
    input
}

fn names() -> [FileIdentity; 3] {
    [FileIdentity::Native, FileIdentity::Path, FileIdentity::InodeMarker(PathBuf::from(MARKER))]
}

/// Scans and reads, over more than the grace of vanished files.
fn rounds(input: &mut Input) -> Vec<String> {
    let mut messages = Vec::new();
    for _ in 0..10 {
        messages.extend(input.round());
        input.advance(11);
    }
    messages
}

#[test]
fn each_identity_reads_every_line_once_over_restarts() {
    for identity in names() {
        let mut input = with(identity.clone(), |_| {});
        let mut messages = Vec::new();
        for number in 0..20 {
            input.fs.append_as_other(A, lines("line", number..number + 1).as_bytes());
            messages.extend(input.round());
            if number % 3 == 0 {
                input = input.restarted();
            }
        }
        assert_eq!(messages, lines("line", 0..20).lines().collect::<Vec<_>>(), "{identity:?}");
        let meta = input.fs.metadata(Path::new(A)).expect("it is there");
        let value = identity.name_of(Path::new(A), &meta, "host-7").expect("it has a name");
        assert_eq!(input.saved.keys(), [format!("filestream::test::{}::{value}", identity.name())]);
    }
}

#[test]
fn files_with_the_same_content_are_all_read() {
    for identity in names() {
        let mut input = with(identity, |_| {});
        input.fs.write_as_other(A, lines("same", 0..100).as_bytes());
        input.fs.write_as_other("/logs/b.log", lines("same", 0..100).as_bytes());
        assert_eq!(rounds(&mut input).len(), 200);
    }
}

#[test]
fn an_inode_follows_a_rename_and_a_path_does_not() {
    for (identity, expected) in [
        (FileIdentity::Native, vec!["new", "the last"]),
        (FileIdentity::InodeMarker(PathBuf::from(MARKER)), vec!["new", "the last"]),
        // What was open of the old file comes once more with its new name.
        (FileIdentity::Path, vec!["new", "old", "the last", "the last"]),
    ] {
        let mut input = with(identity.clone(), |_| {});
        input.fs.write_as_other(A, b"old\n");
        assert_eq!(input.round(), ["old"]);
        input.fs.append_as_other(A, b"the last\n");
        input.fs.rename_as_other(A, "/logs/a.log.1");
        input.fs.write_as_other(A, b"new\n");
        let mut messages = rounds(&mut input);
        messages.sort();
        assert_eq!(messages, expected, "{identity:?}");
    }
}

#[test]
fn a_path_that_is_used_again_loses_nothing_of_either_file() {
    for restart in [false, true] {
        // The new file is longer than what was read of the old one.
        let mut input = with(FileIdentity::Path, |_| {});
        input.fs.write_as_other(A, lines("old", 0..50).as_bytes());
        assert_eq!(input.round().len(), 50);
        if restart {
            input = input.restarted();
        } else {
            input.fs.append_as_other(A, b"unread\n");
        }
        input.fs.rename_as_other(A, "/gone");
        input.fs.write_as_other(A, lines("new", 0..200).as_bytes());
        let messages = rounds(&mut input);
        assert_eq!(messages.iter().filter(|message| message.starts_with("new")).count(), 200);
        assert_eq!(messages.iter().any(|message| message == "unread"), !restart);
    }
}

#[test]
fn an_inode_that_is_used_again_skips_no_byte() {
    for identity in [FileIdentity::Native, FileIdentity::InodeMarker(PathBuf::from(MARKER))] {
        for (restart, size) in [(false, 10), (true, 10), (false, 500), (true, 500)] {
            let mut input = with(identity.clone(), |_| {});
            input.fs.write_as_other(A, lines("old", 0..50).as_bytes());
            assert_eq!(input.round().len(), 50);
            if restart {
                input = input.restarted();
            }
            // The same inode with other content is what an inode that is used again looks like.
            input.fs.truncate_as_other(A, 0);
            input.fs.append_as_other(A, lines("new", 0..size).as_bytes());
            input.fs.rename_as_other(A, "/logs/b.log");
            let messages = rounds(&mut input);
            assert_eq!(messages.len(), size, "{identity:?} restart {restart}");
        }
    }
}

#[test]
fn a_cursor_at_the_end_of_a_file_that_was_ignored_is_checked_like_any_other() {
    let mut input = with(FileIdentity::Native, |settings| {
        settings.ignore_older = Some(std::time::Duration::from_hours(1));
    });
    input.fs.write_as_other(A, lines("ignored", 0..50).as_bytes());
    input.advance(7200);
    assert!(input.round().is_empty());
    let mut input = input.restarted();
    input.fs.truncate_as_other(A, 0);
    input.fs.append_as_other(A, lines("another file", 0..500).as_bytes());
    assert_eq!(rounds(&mut input).len(), 500);
}

#[test]
fn links_to_one_file_are_one_source_by_inode_and_two_by_path() {
    for (identity, count) in [(FileIdentity::Native, 30), (FileIdentity::Path, 60)] {
        let mut input = with(identity, |_| {});
        input.fs.write_as_other(A, lines("line", 0..30).as_bytes());
        input.fs.hard_link_as_other(A, "/logs/b.log");
        assert_eq!(rounds(&mut input).len(), count);
        // The other name is where it goes on when the first is gone.
        input.fs.remove_as_other(A);
        input.fs.append_as_other("/logs/b.log", b"more\n");
        // By path both are sources; the one without a name is still open and read to its end.
        let expected = vec!["more"; count / 30];
        assert_eq!(rounds(&mut input), expected);
    }
}

#[test]
fn a_marker_that_changes_makes_other_files_of_all() {
    let mut input = with(FileIdentity::InodeMarker(PathBuf::from(MARKER)), |_| {});
    input.fs.write_as_other(A, b"one\n");
    assert_eq!(input.round(), ["one"]);
    input.advance(1);
    input.fs.write_as_other(MARKER, b"host-8");
    input.fs.append_as_other(A, b"two\n");
    let mut messages = rounds(&mut input);
    // What is still open as the file it was is read to its end as well.
    messages.sort();
    assert_eq!(messages, ["one", "two", "two"]);
}

#[test]
fn no_file_is_read_before_its_marker_is_there() {
    let mut input = with(FileIdentity::InodeMarker(PathBuf::from(MARKER)), |_| {});
    input.fs.remove_as_other(MARKER);
    input.fs.write_as_other(A, b"one\n");
    assert!(input.round().is_empty());
    input.fs.write_as_other(MARKER, b"host-7");
    assert_eq!(input.round(), ["one"]);
    input.fs.remove_as_other(MARKER);
    input.fs.append_as_other(A, b"two\n");
    assert_eq!(input.round(), ["two"], "what it held before counts");
}

#[test]
fn files_that_were_known_by_a_name_go_on_with_their_content() {
    for identity in [FileIdentity::Native, FileIdentity::Path] {
        let mut input = with(identity, |_| {});
        input.fs.write_as_other(A, lines("line", 0..50).as_bytes());
        input.fs.write_as_other("/logs/b.log", b"short\n");
        assert_eq!(input.round().len(), 51);
        let mut settings = input.context.settings.clone();
        settings.identity = FileIdentity::Fingerprint;
        settings.fingerprint.enabled = true;
        let mut input = input.restarted_with(settings);
        input.fs.append_as_other(A, b"one more\n");
        assert_eq!(rounds(&mut input), ["one more"]);
        let keys = input.saved.keys();
        assert_eq!(keys.len(), 2, "{keys:?}");
        assert!(keys.iter().all(|key| key.contains("::fingerprint::")), "{keys:?}");
    }
}

#[test]
fn an_old_key_counts_only_at_its_path_and_with_its_identity() {
    let mut input = with(FileIdentity::Native, |_| {});
    input.fs.write_as_other(A, lines("line", 0..50).as_bytes());
    input.round();
    let mut settings = input.context.settings.clone();
    settings.identity = FileIdentity::Fingerprint;
    settings.fingerprint.enabled = true;
    // Another file is at the path, and the one that was there has moved.
    input.fs.rename_as_other(A, "/logs/b.log");
    input.fs.write_as_other(A, lines("other", 0..70).as_bytes());
    let mut input = input.restarted_with(settings);
    assert_eq!(rounds(&mut input).len(), 120, "both are read from the start, nothing is skipped");
}

fn entry(path: &str, offset: u64) -> FileEntry {
    FileEntry {
        cursor: Cursor { offset, ..Cursor::default() },
        meta: Meta { source: Arc::from(Path::new(path)), ..Meta::default() },
        updated: skidder_os::Timestamp(0),
        ttl: None,
    }
}

#[test]
fn an_input_that_gets_an_id_goes_on_with_its_files() {
    let mut input = with(FileIdentity::Fingerprint, |settings| settings.id = String::new());
    input.fs.write_as_other(A, lines("line", 0..50).as_bytes());
    input.round();
    let mut settings = input.context.settings.clone();
    settings.id = "named".to_owned();
    let mut input = input.restarted_with(settings);
    input.fs.append_as_other(A, b"one more\n");
    assert_eq!(rounds(&mut input), ["one more"]);
    let keys = input.saved.keys();
    assert!(keys.len() == 1 && keys[0].starts_with("filestream::named::"), "{keys:?}");
}

#[test]
fn files_of_log_inputs_are_taken_over_where_they_were_left() {
    for take_over in [true, false] {
        let input = with(FileIdentity::Fingerprint, |settings| {
            if take_over {
                settings.take_over = TakeOver::Logs;
            }
        });
        let text = lines("line", 0..50);
        input.fs.write_as_other(A, text.as_bytes());
        input.fs.write_as_other("/logs/b.log", lines("b", 0..50).as_bytes());
        let inode = |path: &str| input.fs.metadata(Path::new(path)).expect("it is there");
        let (a, b) = (inode(A), inode("/logs/b.log"));
        let half = text.lines().take(25).map(|line| line.len() as u64 + 1).sum();
        let native = format!("filebeat::logs::native::{}-{}", a.inode, a.device);
        let wrong = format!("filebeat::logs::native::{}-{}", b.inode + 77, b.device);
        input.saved.change(|saved| {
            saved.insert(native, entry(A, half));
            saved.insert(wrong, entry("/logs/b.log", 10));
        });
        let mut input = input;
        let messages = rounds(&mut input);
        assert_eq!(messages.len(), if take_over { 75 } else { 100 });
        assert_eq!(messages.iter().filter(|line| line.starts_with("b ")).count(), 50);
    }
}

#[test]
fn files_of_another_id_are_taken_over_once() {
    let mut input = with(FileIdentity::Fingerprint, |settings| settings.id = "old".to_owned());
    input.fs.write_as_other(A, lines("line", 0..50).as_bytes());
    input.round();
    let mut settings = input.context.settings.clone();
    settings.id = "new".to_owned();
    settings.take_over = TakeOver::Inputs(vec!["none".to_owned(), "old".to_owned()]);
    let mut input = input.restarted_with(settings);
    input.fs.append_as_other(A, b"one more\n");
    assert_eq!(rounds(&mut input), ["one more"]);
    let mut input = input.restarted();
    assert!(rounds(&mut input).is_empty());
    let keys = input.saved.keys();
    assert!(keys.len() == 1 && keys[0].starts_with("filestream::new::"), "{keys:?}");
}

#[test]
fn everything_is_forgotten_at_the_start_if_that_is_asked_for() {
    let mut input = with(FileIdentity::Fingerprint, |settings| settings.forget_at_start = true);
    input.fs.write_as_other(A, b"one\n");
    assert_eq!(input.round(), ["one"]);
    let mut input = input.restarted();
    assert_eq!(rounds(&mut input), ["one"]);
}

#[test]
fn whatever_happens_to_files_known_by_names_every_line_is_read() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let identity = names()[random.below(3) as usize].clone();
        let is_path = matches!(identity, FileIdentity::Path);
        let mut input = with(identity.clone(), |settings| {
            settings.close.on_eof = random.one_in(2);
            settings.clean_removed = random.one_in(2);
        });
        let (mut written, mut read) = (Vec::new(), Vec::new());
        for step in 0..60 {
            match random.below(8) {
                0 => {
                    // Rotation: what was rotated longest ago goes, and its inode is free.
                    let is_there = |name: &str| input.fs.peek_metadata(name).is_some();
                    if is_there("/logs/a.log.2") {
                        input.fs.remove_as_other("/logs/a.log.2");
                    }
                    for (from, to) in [("/logs/a.log.1", "/logs/a.log.2"), (A, "/logs/a.log.1")] {
                        if is_there(from) {
                            input.fs.rename_as_other(from, to);
                        }
                    }
                }
                1 if input.fs.peek_metadata(A).is_some() => input.fs.truncate_as_other(A, 0),
                2 => input = input.restarted(),
                3 => input.advance(100),
                4 if input.fs.peek_metadata("/logs/b.log").is_some() => {
                    input.fs.remove_as_other("/logs/b.log");
                }
                _ => {}
            }
            let name = if random.one_in(3) { "/logs/b.log" } else { A };
            for number in 0..=random.below(20) {
                let line = format!("step {step} line {number} of {name}");
                input.fs.append_as_other(name, format!("{line}\n").as_bytes());
                written.push(line);
            }
            read.extend(input.round());
            input.advance(random.below(15));
            // What had to wait for another file comes with a later scan.
            read.extend(input.round());
            read.extend(input.round());
        }
        let count = read.len();
        let seen: std::collections::HashSet<String> = read.into_iter().collect();
        let missing: Vec<&String> = written.iter().filter(|line| !seen.contains(*line)).collect();
        assert!(missing.is_empty(), "seed {seed}, {identity:?}: {missing:?}");
        assert_eq!(seen.len(), written.len(), "seed {seed}: nothing is made up");
        // A renamed file is another one by its path; else nothing comes twice.
        assert!(is_path || count == written.len(), "seed {seed}, {identity:?}: {count}");
    }
}
