//! How readers are let go of.

use crate::readers::ReadersLimits;
use crate::testing::{Input, messages_of, multiline, settings};
use skidder_parse::chain::{Chain, Parser};

#[test]
fn lines_that_wait_for_others_in_a_deleted_file_are_given_out() {
    // Found by the simulated world (66 of the theme `reload`): an input waited for ever to end, because nothing more came
    // to the last group of a file that was gone.
    let mut settings = settings();
    settings.parsers = Chain::new(vec![Parser::Multiline(multiline())], 20 << 20);
    let limits = ReadersLimits { open_files: 100, decoders: 10 };
    let mut input = Input::with(settings, limits, 1000);
    input.fs.append_as_other("/logs/a.log", b"one\n 1\ntwo\n");
    let mut read = input.round();
    input.fs.append_as_other("/logs/a.log", b" 2\n");
    input.fs.remove_as_other("/logs/a.log");
    input.scan();
    let mut leaving = input.leave();
    let mut looks = 0;
    while !leaving.is_over() {
        looks += 1;
        assert!(looks < 10, "it waits in vain");
        while let Some((batch, _)) = input.turn() {
            read.extend(batch.iter().flat_map(messages_of));
        }
    }
    assert_eq!(read, ["one\n 1", "two\n 2"]);
}

#[test]
fn a_file_that_has_its_name_is_left_where_it_is() {
    let mut input = Input::new();
    input.fs.append_as_other("/logs/a.log", b"one\n");
    assert_eq!(input.round(), ["one"]);
    input.fs.append_as_other("/logs/a.log", b"two\n");
    let mut leaving = input.leave();
    assert!(leaving.is_over());
    assert!(input.turn().is_none(), "its successor reads the rest");
    assert_eq!((input.readers.open_files(), leaving.sources().count()), (0, 1));
}

#[test]
fn a_file_that_has_just_lost_its_name_is_read_though_no_scan_has_seen_it() {
    let mut input = Input::new();
    input.fs.append_as_other("/logs/a.log", b"one\n");
    assert_eq!(input.round(), ["one"]);
    input.fs.append_as_other("/logs/a.log", b"two\n");
    input.fs.rename_as_other("/logs/a.log", "/elsewhere.log");
    let mut leaving = input.leave();
    assert!(!leaving.is_over());
    assert_eq!(input.read(), ["two"]);
    assert!(leaving.is_over());
}
