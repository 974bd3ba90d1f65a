//! How readers are given up.

use crate::readers::ReadersLimits;
use crate::testing::{Input, lines, messages_of, multiline, settings};
use crate::{Next, Scratch};
use skidder_os::Clock as _;
use skidder_parse::chain::{Chain, Multiline, Parser};
use std::sync::Arc;
use std::time::Duration;

/// What is read of a file that has lost its name while a group of lines waits for more: if it has its time, some comes.
fn read_of_last_group(timeout: Option<Duration>) -> Vec<String> {
    let mut settings = settings();
    let multiline = Multiline { timeout, ..multiline() };
    settings.parsers = Chain::new(vec![Parser::Multiline(multiline)], 20 << 20);
    let limits = ReadersLimits { open_files: 100, decoders: 10 };
    let mut input = Input::with(settings, limits, 1000);
    input.fs.append_as_other("/logs/a.log", b"one\n 1\ntwo\n");
    let mut read = input.round();
    input.fs.append_as_other("/logs/a.log", b" 2\n");
    input.fs.rename_as_other("/logs/a.log", "/elsewhere.log");
    input.scan();
    let mut leaving = input.leave();
    for look in 0..20 {
        if leaving.is_at_rest() {
            return read;
        }
        while let Some((batch, _)) = input.turn() {
            read.extend(batch.iter().flat_map(messages_of));
        }
        if look == 0 && timeout.is_some() {
            input.advance(1);
            input.fs.append_as_other("/elsewhere.log", b" 3\n");
        }
        input.advance(1);
    }
    panic!("it waits in vain");
}

#[test]
fn the_last_group_of_a_file_without_a_name_has_its_time() {
    // Found by the simulated world (2184 of the theme `reload`): it was given out because its input ended, and the rest
    // of it came as another event.
    assert_eq!(read_of_last_group(Some(Duration::from_secs(5))), ["one\n 1", "two\n 2\n 3"]);
}

#[test]
fn a_last_group_without_a_time_is_not_waited_for() {
    assert_eq!(read_of_last_group(None), ["one\n 1", "two\n 2"]);
}

#[test]
fn a_file_that_has_its_name_is_left_where_it_is() {
    let mut input = Input::new();
    input.fs.append_as_other("/logs/a.log", b"one\n");
    assert_eq!(input.round(), ["one"]);
    input.fs.append_as_other("/logs/a.log", b"two\n");
    let mut leaving = input.leave();
    assert!(leaving.is_at_rest());
    assert!(!leaving.wake_lost());
    assert!(input.turn().is_none(), "its successor reads the rest");
    assert_eq!((input.readers.open_files(), leaving.sources().count()), (1, 1));
    leaving.end();
    assert_eq!(input.readers.open_files(), 0);
}

#[test]
fn a_file_that_is_deleted_before_the_successor_begins_is_read() {
    // Found by the simulated world (7000317 of the theme `reload`).
    let mut input = Input::new();
    input.fs.append_as_other("/logs/a.log", b"one\n");
    assert_eq!(input.round(), ["one"]);
    let mut leaving = input.leave();
    assert!(leaving.is_at_rest());
    input.fs.append_as_other("/logs/a.log", b"two\n");
    input.fs.remove_as_other("/logs/a.log");
    assert!(leaving.wake_lost());
    assert!(!leaving.is_at_rest());
    assert_eq!(input.read(), ["two"]);
    assert!(leaving.is_at_rest());
    assert!(!leaving.wake_lost());
    leaving.end();
    assert_eq!(input.readers.open_files(), 0);
}

#[test]
fn a_reader_in_the_middle_of_a_turn_keeps_its_file_and_has_no_other_turn() {
    let mut input = Input::new();
    let text = lines("line", 0..5000);
    input.fs.append_as_other("/logs/a.log", text.as_bytes());
    input.scan();
    let (readers, clock) = (Arc::clone(&input.readers), input.clock.clone());
    let now = clock.monotonic();
    let Next::Turn(mut turn) = readers.next(now) else { panic!("there is a turn") };
    readers.wake(turn.source());
    let mut leaving = input.leave();
    assert!(!leaving.is_at_rest());
    let (batch, end) = turn.run(&mut Scratch::default(), clock.wall());
    let first = batch.expect("there are lines").len();
    assert!(first < 5000, "there is more to read");
    readers.finish(turn, &end, true, now);
    assert!(leaving.is_at_rest());
    assert!(input.turn().is_none());
    input.fs.remove_as_other("/logs/a.log");
    assert!(leaving.wake_lost());
    assert_eq!(first + input.read().len(), 5000);
}

#[test]
fn a_file_that_has_just_lost_its_name_is_read_though_no_scan_has_seen_it() {
    let mut input = Input::new();
    input.fs.append_as_other("/logs/a.log", b"one\n");
    assert_eq!(input.round(), ["one"]);
    input.fs.append_as_other("/logs/a.log", b"two\n");
    input.fs.rename_as_other("/logs/a.log", "/elsewhere.log");
    let mut leaving = input.leave();
    assert!(!leaving.is_at_rest());
    assert_eq!(input.read(), ["two"]);
    assert!(leaving.is_at_rest());
}
