//! Files that are deleted before they are read.

use super::{PinChange, Pins};
use crate::catalog::inventory::Inventory;
use crate::catalog::places::Content;
use crate::catalog::sources::{Identity, Source, SourceFile};
use crate::fingerprint::Fingerprint;
use crate::reader::{Reader, Scratch};
use crate::readers::{Next, ReadersLimits};
use crate::testing::{Input, lines, messages_of, multiline, settings};
use skidder_event::{SourceId, ValueRef};
use skidder_os::Clock;
use skidder_parse::chain::{Chain, Multiline, Parser};
use skidder_testkit::{Fault, Operation};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const A: &str = "/logs/a.log";
const B: &str = "/logs/b.log";

fn pinning(max_bytes: u64) -> Input {
    let mut settings = settings();
    settings.pin.max_bytes = Some(max_bytes);
    settings.pin.directory = Some(PathBuf::from("/data/pins"));
    settings.close.on_eof = true;
    Input::with(settings, ReadersLimits { open_files: 100, decoders: 10 }, 100)
}

/// Links that are there.
fn pins(input: &Input) -> usize {
    let mut folders = input.fs.peek_names("/data/pins");
    folders
        .pop()
        .map_or(0, |name| input.fs.peek_names(PathBuf::from("/data/pins").join(name)).len())
}

/// An input that has pinned a file and saved nothing of it.
fn pinned_and_unsaved(path: &str, text: &str) -> Input {
    let mut input = pinning(1 << 20);
    input.fs.create_dir_as_other("/data");
    input.fs.write_as_other(path, text.as_bytes());
    input.scan();
    input.saved.change(std::collections::BTreeMap::clear);
    input
}

/// The path that the first event of the next turn has, and its messages.
fn first_turn(input: &mut Input) -> (Option<String>, Vec<String>) {
    input.scan();
    let (batch, _) = input.turn().expect("there is a turn");
    let batch = batch.expect("there is a batch");
    let field = skidder_event::Path::parse("log.file.path").expect("a good path");
    let path = batch.event(0).get(&field).and_then(|value| match value {
        ValueRef::Str(path) => Some(String::from_utf8_lossy(path).into_owned()),
        _ => None,
    });
    (path, messages_of(&batch))
}

fn rounds(input: &mut Input) -> Vec<String> {
    let mut messages = Vec::new();
    for _ in 0..20 {
        messages.extend(input.round());
        input.advance(11);
    }
    messages
}

#[test]
fn a_deleted_file_is_read_to_its_end_by_its_pin() {
    for (turns, down, grows) in
        [(0, false, false), (1, false, false), (0, true, false), (2, true, false), (1, false, true)]
    {
        let mut input = pinning(1 << 20);
        input.fs.write_as_other(A, lines("line", 0..500).as_bytes());
        input.scan();
        assert_eq!(pins(&input), 1, "it is behind");
        let mut messages = Vec::new();
        for _ in 0..turns {
            if let Some((Some(batch), _)) = input.turn() {
                messages.extend(crate::testing::messages_of(&batch));
            }
        }
        let writer = input.fs.open_as_other(A);
        input.fs.remove_as_other(A);
        if down {
            input = input.restarted();
        }
        input.scan();
        if grows {
            writer.append(lines("line", 500..510).as_bytes());
        }
        drop(writer);
        messages.extend(rounds(&mut input));
        let end = if grows { 510 } else { 500 };
        let expected = lines("line", 0..end);
        assert_eq!(messages, expected.lines().collect::<Vec<_>>(), "{turns} {down} {grows}");
        assert_eq!(pins(&input), 0, "nothing is kept when it is read");
        assert_eq!((input.scan().sources, input.saved.len()), (0, 0));
        assert_eq!(input.context.metrics.files_lost.get(), 0);
    }
}

#[test]
fn what_is_read_is_not_pinned() {
    let mut input = pinning(1 << 20);
    input.fs.write_as_other(A, lines("line", 0..500).as_bytes());
    input.round();
    assert_eq!(pins(&input), 1);
    input.scan();
    assert_eq!(pins(&input), 0);
    input.fs.append_as_other(A, b"more\n");
    input.scan();
    assert_eq!(pins(&input), 1);
    assert_eq!(input.read(), ["more"]);
    input.fs.rename_as_other(A, "/logs/a.log.1");
    input.scan();
    assert_eq!((pins(&input), input.scan().sources), (0, 1));
}

#[test]
fn beyond_the_limit_the_oldest_is_given_up_and_counted() {
    let mut input = pinning(8000);
    let text = |name: &str| lines(name, 0..600);
    input.fs.write_as_other(A, text("one").as_bytes());
    input.scan();
    input.advance(5);
    input.fs.write_as_other(B, text("two").as_bytes());
    input.scan();
    assert_eq!(pins(&input), 2, "names that others have cost nothing");
    input.fs.remove_as_other(A);
    input.scan();
    assert_eq!(input.context.metrics.pinned_bytes.get(), text("one").len() as u64);
    input.advance(5);
    input.fs.remove_as_other(B);
    input.scan();
    assert_eq!(input.context.metrics.pins_given_up.get(), 1);
    let messages = rounds(&mut input);
    assert_eq!(messages, text("two").lines().collect::<Vec<_>>());
    let metrics = &input.context.metrics;
    assert_eq!(metrics.files_lost.get(), 1);
    assert_eq!(metrics.bytes_lost.get(), text("one").len() as u64);
    assert_eq!((pins(&input), metrics.pinned_bytes.get()), (0, 0));
}

#[test]
fn a_pin_of_a_file_that_is_still_there_is_not_read_beside_it() {
    let mut input = pinning(1 << 20);
    input.fs.write_as_other(A, lines("line", 0..500).as_bytes());
    input.scan();
    let mut input = input.restarted();
    let messages = rounds(&mut input);
    assert_eq!(messages, lines("line", 0..500).lines().collect::<Vec<_>>());
    assert_eq!((pins(&input), input.scan().sources), (0, 1));
    input.fs.append_as_other(A, b"more\n");
    assert_eq!(rounds(&mut input), ["more"]);
}

#[test]
fn a_pin_is_kept_if_the_file_has_grown_since_the_scan_and_is_gone() {
    // Found by the simulated world: what was read was compared with the size that the last scan saw.
    let mut input = pinning(1 << 20);
    input.fs.write_as_other(A, lines("line", 0..500).as_bytes());
    let mut messages = input.round();
    assert_eq!(pins(&input), 1, "the scan was before the turns");
    input.fs.append_as_other(A, lines("line", 500..510).as_bytes());
    input.fs.remove_as_other(A);
    messages.extend(rounds(&mut input));
    assert_eq!(messages, lines("line", 0..510).lines().collect::<Vec<_>>());
    assert_eq!(pins(&input), 0, "nothing is kept when it is read");
}

#[test]
fn what_a_pinned_file_was_compressed_to_is_not_read_again() {
    let mut input = pinning(1 << 20);
    let text = lines("l", 0..160);
    input.fs.write_as_other(A, text.as_bytes());
    input.scan();
    input.turn().expect("there is a turn");
    input.fs.write_as_other("/logs/a.log.gz", &crate::testing::gzip(text.as_bytes()));
    input.fs.remove_as_other(A);
    let mut input = input.restarted();
    let messages = rounds(&mut input);
    assert_eq!(messages, lines("l", 150..160).lines().collect::<Vec<_>>());
}

#[test]
fn a_pin_of_a_short_file_goes_on_at_its_cursor_after_a_restart() {
    // Found by the simulated world: an entry with a short fingerprint was not taken to be of a file of another name.
    let mut input = pinning(1 << 20);
    input.fs.append_as_other(A, lines("l", 0..160).as_bytes());
    input.scan();
    input.turn().expect("there is a turn");
    input.fs.remove_as_other(A);
    let mut input = input.restarted();
    assert_eq!(rounds(&mut input), lines("l", 150..160).lines().collect::<Vec<_>>());
}

#[test]
fn what_a_pinned_file_without_a_saved_name_was_compressed_to_is_not_read_again() {
    // Found by the simulated world: killed before the name of the pinned file was saved.
    let text = lines("l", 0..10);
    let input = pinned_and_unsaved(A, &text);
    input.fs.write_as_other("/logs/a.log.gz", &crate::testing::gzip(text.as_bytes()));
    input.fs.remove_as_other(A);
    let mut input = input.restarted();
    let messages = rounds(&mut input);
    assert_eq!(messages, text.lines().collect::<Vec<_>>());
    assert_eq!((pins(&input), input.context.metrics.files_truncated.get()), (0, 0));
}

#[test]
fn the_name_of_a_pinned_file_is_known_before_it_is_saved() {
    // Found by the simulated world: killed before the name of the pinned file was saved, and its compressed copy came when
    // the pin was read and gone. Events carry the path that the name of the pin holds, too.
    let text = lines("l", 0..10);
    let input = pinned_and_unsaved(A, &text);
    input.fs.create_dir_as_other("/away");
    input.fs.write_as_other("/away/a.log.1.gz", &crate::testing::gzip(text.as_bytes()));
    input.fs.remove_as_other(A);
    let mut input = input.restarted();
    let (path, messages) = first_turn(&mut input);
    assert_eq!(messages, text.lines().collect::<Vec<_>>());
    assert_eq!(input.round(), [""; 0]);
    assert_eq!(pins(&input), 0, "all of it is read");
    input.fs.rename_as_other("/away/a.log.1.gz", "/logs/a.log.1.gz");
    assert_eq!(rounds(&mut input), [""; 0], "it is not read again");
    assert_eq!(input.context.metrics.files_truncated.get(), 0);
    assert_eq!(path.as_deref(), Some(A));
}

/// A path that no name of a pin has room for.
fn long_path() -> String {
    format!("/logs/{}.log", "container".repeat(27))
}

#[test]
fn a_pinned_file_with_a_long_path_has_it_after_a_crash() {
    // Its events had the path of the pin if the program was killed before anything was saved of it.
    for power_cut in [false, true] {
        let path = long_path();
        let input = pinned_and_unsaved(&path, &lines("l", 0..10));
        assert_eq!(pins(&input), 2, "the pin, and the path");
        input.fs.remove_as_other(&path);
        if power_cut {
            input.fs.crash();
        }
        let mut input = input.restarted();
        let (first, _) = first_turn(&mut input);
        assert_eq!(first.as_deref(), Some(path.as_str()), "power cut {power_cut}");
        rounds(&mut input);
        assert_eq!(pins(&input), 0, "neither the pin nor the path stays");
    }
}

#[test]
fn the_path_of_a_pin_that_is_gone_is_removed_by_the_next_start() {
    let path = long_path();
    let input = pinned_and_unsaved(&path, &lines("l", 0..10));
    for folder in input.fs.peek_names("/data/pins") {
        input.fs.remove_as_other(PathBuf::from("/data/pins").join(folder).join("0"));
    }
    assert_eq!(pins(&input), 1);
    input.fs.remove_as_other(&path);
    let mut input = input.restarted();
    input.scan();
    assert_eq!(pins(&input), 0);
}

#[test]
fn a_file_is_pinned_though_its_long_path_cannot_be_kept() {
    let mut input = pinning(1 << 20);
    let path = long_path();
    input.fs.write_as_other(&path, lines("l", 0..10).as_bytes());
    input
        .fs
        .inject(Fault::nth(1, io::ErrorKind::StorageFull).of(Operation::Write).on("/data/pins"));
    input.scan();
    input.fs.remove_as_other(&path);
    let mut input = input.restarted();
    assert_eq!(rounds(&mut input), lines("l", 0..10).lines().collect::<Vec<_>>());
    assert_eq!(pins(&input), 0);
}

#[test]
fn what_was_written_into_a_pinned_file_before_it_was_removed_is_read() {
    // Found by the simulated world: the file was truncated, written anew and removed between two scans, so that only
    // its pin had what came last.
    for copied in [false, true] {
        let mut input = pinning(1 << 20);
        let first = lines("first", 0..300);
        input.fs.write_as_other(A, first.as_bytes());
        let mut messages = input.round();
        assert_eq!(pins(&input), 1);
        if copied {
            input.fs.write_as_other("/logs/a.log.1", first.as_bytes());
        }
        input.fs.truncate_as_other(A, 0);
        input.fs.append_as_other(A, b"the last\n");
        input.fs.remove_as_other(A);
        messages.extend(rounds(&mut input));
        let expected = first + "the last\n";
        assert_eq!(messages, expected.lines().collect::<Vec<_>>(), "copied {copied}");
        assert_eq!(pins(&input), 0, "nothing is kept when it is read");
    }
}

#[test]
fn a_pin_is_kept_while_it_cannot_be_looked_at() {
    let mut input = pinning(1 << 20);
    input.fs.write_as_other(A, lines("line", 0..500).as_bytes());
    let mut messages = input.round();
    input.fs.append_as_other(A, lines("line", 500..510).as_bytes());
    input.fs.remove_as_other(A);
    let fault = Fault::nth(1, io::ErrorKind::TimedOut).of(Operation::Stat).on("/data/pins");
    input.fs.inject(fault.times(2));
    messages.extend(rounds(&mut input));
    assert_eq!(messages, lines("line", 0..510).lines().collect::<Vec<_>>());
}

#[test]
fn a_file_with_its_own_name_is_known_by_that_and_not_by_its_pin() {
    // Found by the simulated world: the place of the source was its pin, so that the copy that the log goes on as was
    // not taken for its file, and read again.
    let mut input = pinning(1 << 20);
    input.fs.write_as_other(A, lines("before", 0..300).as_bytes());
    input.scan();
    input.fs.truncate_as_other(A, 0);
    input.fs.append_as_other(A, lines("l", 0..20).as_bytes());
    let copy = input.fs.peek(A).expect("it is there");
    input.scan();
    input.scan();
    input.fs.write_as_other("/logs/a.log.1", &copy);
    let mut messages = input.round();
    input.fs.truncate_as_other(A, 0);
    input.fs.append_as_other(A, lines("other", 0..30).as_bytes());
    input.fs.append_as_other("/logs/a.log.1", b"more\n");
    input.fs.rename_as_other("/logs/a.log.1", "/logs/a.log.2");
    messages.extend(rounds(&mut input));
    messages.sort();
    let text = lines("l", 0..20) + "more\n" + &lines("other", 0..30);
    let mut expected: Vec<_> = text.lines().collect();
    expected.sort_unstable();
    messages.retain(|message| !message.starts_with("before"));
    assert_eq!(messages, expected);
}

#[test]
fn an_emptied_and_removed_file_leaves_no_pin_behind() {
    let mut input = pinning(1 << 20);
    input.fs.write_as_other(A, lines("line", 0..500).as_bytes());
    input.round();
    input.fs.truncate_as_other(A, 0);
    input.fs.remove_as_other(A);
    assert!(rounds(&mut input).is_empty());
    assert_eq!((pins(&input), input.scan().sources), (0, 0));
}

#[test]
fn the_pin_of_what_was_compressed_and_removed_is_not_read_again() {
    // Found by the simulated world: the pin was looked at when the compressed file was gone as well.
    let mut input = pinning(1 << 20);
    let text = lines("l", 0..20);
    input.fs.write_as_other(A, text.as_bytes());
    let mut messages = input.round();
    input.fs.rename_as_other(A, "/logs/a.log.1");
    input.scan();
    input.fs.write_as_other("/logs/a.log.1.gz", &crate::testing::gzip(text.as_bytes()));
    input.fs.remove_as_other("/logs/a.log.1");
    input.scan();
    input.fs.remove_as_other("/logs/a.log.1.gz");
    messages.extend(rounds(&mut input));
    assert_eq!(messages, text.lines().collect::<Vec<_>>());
    assert_eq!(pins(&input), 0);
}

#[test]
fn pins_are_durable_before_anything_is_forgotten_of_their_files() {
    let mut input = pinning(1 << 20);
    input.fs.create_dir_as_other("/data");
    input.fs.write_as_other(A, lines("line", 0..500).as_bytes());
    input.scan();
    input.fs.crash();
    assert_eq!(pins(&input), 1, "what is removed now is not lost");
    let mut input = input.restarted();
    assert_eq!(rounds(&mut input).len(), 500);
    assert_eq!(pins(&input), 0);
    input.fs.crash();
    assert_eq!(pins(&input), 0, "what is forgotten now is not read again");
}

#[test]
fn a_file_that_was_known_by_its_pin_goes_on_under_its_own_name() {
    let mut input = pinning(1 << 20);
    input.fs.write_as_other(A, lines("line", 0..500).as_bytes());
    input.scan();
    input.fs.rename_as_other(A, "/elsewhere/a.log");
    input.scan();
    input.scan();
    input.fs.rename_as_other("/elsewhere/a.log", A);
    assert_eq!(rounds(&mut input).len(), 500);
    assert_eq!(pins(&input), 0);
    input.fs.append_as_other(A, b"more\n");
    assert_eq!(rounds(&mut input), ["more"]);
}

#[test]
fn a_pin_is_kept_while_a_group_of_lines_in_it_waits() {
    let mut settings = settings();
    settings.pin.max_bytes = Some(1 << 20);
    settings.pin.directory = Some(PathBuf::from("/data/pins"));
    let multiline = Multiline { timeout: Some(Duration::from_mins(5)), ..multiline() };
    settings.parsers = Chain::new(vec![Parser::Multiline(multiline)], 20 << 20);
    settings.close.inactive = None;
    let mut input = Input::with(settings, ReadersLimits { open_files: 100, decoders: 10 }, 100);
    input.fs.write_as_other(A, b"one\n 1\ntwo\n 2\n");
    input.scan();
    input.fs.remove_as_other(A);
    assert_eq!(rounds(&mut input), ["one\n 1"]);
    assert_eq!(pins(&input), 1, "a restart would find the rest by it");
    assert_eq!(rounds(&mut input), ["two\n 2"]);
    assert_eq!(pins(&input), 0);
}

#[test]
fn what_was_known_by_its_pin_only_has_the_name_of_what_it_was_compressed_to() {
    // Found by the simulated world (pins 1634): the program ended before anything was saved of a short file but its pin;
    // when that was given up, nothing showed to which file its saved cursor belonged.
    let text = lines("line", 0..40) + "the last";
    let mut input = pinned_and_unsaved(A, &text);
    input.fs.write_as_other("/logs/a.log.1.gz", &crate::testing::gzip(text.as_bytes()));
    input.fs.remove_as_other(A);
    input = input.restarted();
    let mut messages = input.round();
    messages.extend(input.round());
    for folder in input.fs.peek_names("/data/pins") {
        let folder = PathBuf::from("/data/pins").join(folder);
        for name in input.fs.peek_names(&folder) {
            input.fs.remove_as_other(folder.join(name));
        }
    }
    let mut input = input.restarted();
    messages.extend(rounds(&mut input));
    assert_eq!(messages, text.lines().collect::<Vec<_>>());
}

#[test]
fn the_pin_of_what_waits_for_another_file_to_be_read_is_kept() {
    // Found by the simulated world (pins 104874): a pinned file waited for the one that had taken its source to be read
    // to its end, and its pin was taken for one of a file that is in a place of its own.
    let header = lines("# the same header in every file", 0..60);
    let mut input = pinning(1 << 20);
    input.fs.write_as_other(B, format!("{header}other\n").as_bytes());
    rounds(&mut input);
    input.fs.write_as_other(A, format!("{header}line one\n").as_bytes());
    input.scan();
    input.fs.remove_as_other(A);
    input.fs.write_as_other(A, format!("{header}line two\n").as_bytes());
    input.scan();
    let Next::Turn(mut turn) = input.readers.next(input.clock.monotonic()) else {
        panic!("there is something to read");
    };
    input.fs.remove_as_other(A);
    input.scan();
    let (batch, end) = turn.run(&mut Scratch::default(), input.clock.wall());
    let mut messages: Vec<String> = batch.iter().flat_map(messages_of).collect();
    input.readers.finish(turn, &end, batch.is_some(), input.clock.monotonic());
    messages.extend(rounds(&mut input));
    for line in ["line one", "line two"] {
        assert!(messages.iter().any(|message| message == line), "{line}");
    }
}

#[test]
fn a_source_whose_pin_is_a_spare_name_of_another_one_keeps_its_own() {
    // Found by the simulated world (pins 601322): a file that was read by its pin came back, was copied and truncated. Its
    // pin had the new content, and was removed as a spare name of that; the copy was not known by the name then.
    let mut settings = pinning(1 << 20).context.settings.clone();
    settings.close.on_eof = false;
    let limits = ReadersLimits { open_files: 100, decoders: 10 };
    let mut input = Input::with(settings, limits, 100);
    input.fs.write_as_other(A, lines("line", 0..50).as_bytes());
    input.scan();
    input.fs.rename_as_other(A, "/away");
    input.scan();
    let mut messages = input.round();
    assert_eq!(messages.len(), 50, "by its pin");
    input.fs.rename_as_other("/away", A);
    input.fs.append_as_other(A, lines("line", 50..60).as_bytes());
    let text = input.fs.peek(A).expect("it is there");
    input.fs.write_as_other("/logs/a.log.1", &text);
    input.fs.truncate_as_other(A, 0);
    input.fs.append_as_other(A, b"new\n");
    messages.extend(rounds(&mut input));
    messages.sort_unstable();
    let mut expected: Vec<String> = lines("line", 0..60).lines().map(str::to_owned).collect();
    expected.push("new".to_owned());
    expected.sort_unstable();
    assert_eq!(messages, expected);
}

#[test]
fn a_pin_is_kept_until_all_of_it_has_its_verdict_though_its_source_goes_on_elsewhere() {
    // Found by the simulated world (pins 9201193): its source was thought to go on in the compressed copy of another file.
    let mut input = pinning(1 << 20);
    let text = lines("l", 0..20);
    input.fs.write_as_other(A, text.as_bytes());
    input.saved.hold(true);
    let mut messages = input.round();
    input.scan();
    input.fs.write_as_other("/logs/a.log.1.gz", &crate::testing::gzip(text.as_bytes()));
    input.fs.remove_as_other(A);
    messages.extend(rounds(&mut input));
    let folder = PathBuf::from("/data/pins").join(&input.fs.peek_names("/data/pins")[0]);
    let pin = folder.join("0-%2Flogs%2Fa.log");
    assert_eq!(input.fs.peek(pin).as_deref(), Some(text.as_bytes()));
    input.saved.hold(false);
    messages.extend(rounds(&mut input));
    assert_eq!(pins(&input), 0);
    assert_eq!(messages, text.lines().collect::<Vec<_>>());
}

/// What the catalog knows of one file, of which nothing was read.
fn one_file(input: &Input) -> (Inventory, SourceId) {
    let (context, readers) = (Arc::clone(&input.context), Arc::clone(&input.readers));
    let mut files = Inventory::new(context, readers, Arc::default());
    let metadata = input.context.fs.metadata(Path::new(A)).unwrap();
    let path: Arc<Path> = Arc::from(Path::new(A));
    let file = SourceFile { path: Arc::clone(&path), metadata, compressed: false };
    let (id, key) = (files.sources.next_id(), Arc::from("key"));
    let identity = Identity::new(Fingerprint::of(b"line"), b"line", 1024);
    let source = Source::new(identity, Arc::clone(&key), file, false);
    let reader = Reader::new(id, key, 0, source.target(1024, None), 0, None);
    input.readers.add(&input.context, reader);
    files.sources.add(id, source);
    files.places.put(path, &metadata, Content::Source(id), false);
    (files, id)
}

#[test]
fn a_pin_is_followed_once_its_file_is_deleted_and_given_up_beyond_the_limit() {
    let input = pinning(100);
    input.fs.write_as_other(A, b"line 1\nline 2\n");
    let (mut files, id) = one_file(&input);
    let (mut pins, now) = (Pins::default(), input.clock.monotonic());
    assert_eq!(pins.update(&files, id, now), []);
    assert_eq!((pins.len(), pins.enforce_limit(&files, None, 0)), (1, (0, vec![])));
    input.fs.remove_as_other(A);
    files.lose_place(Path::new(A), now);
    let follow = pins.update(&files, id, now);
    let [PinChange::Follow { pin, of }] = follow.as_slice() else { panic!("{follow:?}") };
    assert_eq!(&**of, Path::new(A));
    let pin = Arc::clone(pin);
    files.apply_pin_changes(follow, now);
    assert_eq!(files.followed.pinned(&pin).map(|of| &**of), Some(Path::new(A)));
    assert_eq!(pins.enforce_limit(&files, None, 14), (14, vec![]));
    let given_up = vec![PinChange::Close(id), PinChange::Removed(Arc::clone(&pin))];
    assert_eq!(pins.enforce_limit(&files, None, 13), (0, given_up));
    assert_eq!(pins.len(), 0);
    assert!(input.context.fs.metadata(&pin).is_err());
}

#[test]
fn a_file_that_may_not_be_pinned_gets_no_pin() {
    let input = pinning(100);
    input.fs.write_as_other(A, b"line 1\n");
    let (mut files, id) = one_file(&input);
    let (mut pins, now) = (Pins::default(), input.clock.monotonic());
    files.lose_place(Path::new(A), now);
    assert_eq!(pins.update(&files, id, now), []);
    assert_eq!(pins.len(), 0, "it has no name");
    assert!(!pins.is_idle(&files), "others may have one");
    let other = Input::new();
    other.fs.write_as_other(A, b"line 1\n");
    let (files, id) = one_file(&other);
    assert_eq!(pins.update(&files, id, now), []);
    assert_eq!((pins.len(), pins.is_idle(&files)), (0, true), "pins are off");
}
