//! Compressed files that begin as others did.

use crate::readers::ReadersLimits;
use crate::testing::{Input, gzip, lines, multiline, settings};
use skidder_os::{Clock, Timestamp};
use skidder_parse::chain::{Chain, Parser};
use std::io::Read;

const GZ: &str = "/logs/a.log.1.gz";

/// A text that begins as others do, for longer than a fingerprint covers.
fn headed(name: &str, count: usize) -> String {
    lines("# the same header in every file", 0..60) + &lines(name, 0..count)
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

fn assert_has_all(messages: &[String], text: &str) {
    for line in text.lines() {
        assert!(messages.iter().any(|message| message == line), "{line} of {messages:?}");
    }
}

#[test]
fn a_compressed_file_is_not_another_that_began_alike_and_had_its_inode() {
    // Found by the simulated world (seed 24433): of a fingerprint that is longer than usual only the usual length was
    // looked at, and not the bytes before the cursor: the source went from file to file, and in the end its
    // cursor was saved as the end of one that was never read.
    let mut input = Input::new();
    input.fs.write_as_other("/logs/b.log", headed("other", 3).as_bytes());
    input.round();
    let (old, new) = (headed("a old", 50), headed("a new", 90));
    input.fs.write_as_other(GZ, &gzip(old.as_bytes()));
    let read = input.round();
    assert_has_all(&read, &old);
    let inode = input.fs.peek_metadata(GZ).expect("it is there").inode;
    input.fs.remove_as_other(GZ);
    input.fs.write_as_other("/logs/c.log.1.gz", &gzip(new.as_bytes()));
    assert_eq!(input.fs.peek_metadata("/logs/c.log.1.gz").expect("it is there").inode, inode);
    input.scan();
    let size = gzip(new.as_bytes()).len() as u64;
    let is_unread = input.looks(10).iter().any(|look| (look.size, look.read) == (size, 0));
    assert!(is_unread, "it is a source of its own");
    assert_has_all(&rounds(&mut input), &new);
}

#[test]
fn a_compressed_file_is_at_its_end_only_once_that_was_read() {
    // The same seed: another file with the same beginning took the place of a finished one, and the program ended before
    // its reader had looked at it.
    let (old, new) = (headed("a old", 50), headed("a new", 90));
    let mut input = Input::new();
    input.fs.write_as_other(GZ, &gzip(old.as_bytes()));
    input.round();
    input.advance(300);
    input.fs.remove_as_other(GZ);
    input.fs.write_as_other("/logs/a.log.2.gz", &gzip(new.as_bytes()));
    input.fs.set_modified_as_other("/logs/a.log.2.gz", Timestamp(0));
    input.scan();
    input.saved.touch(input.clock.wall());
    let mut input = input.restarted();
    assert_has_all(&rounds(&mut input), &new);
}

#[test]
fn two_sources_do_not_change_places_for_ever() {
    // Found by the simulated world (seed 37851): two files began as two others that were gone, and were shorter than what
    // had been read of those. The reader of each source refused each file, and was given the other.
    let mut input = Input::new();
    let gone = [headed("one", 300), headed("other", 200)];
    for (number, text) in gone.iter().enumerate() {
        input.fs.write_as_other(format!("/logs/a.log.{number}.gz"), &gzip(text.as_bytes()));
        assert_has_all(&input.round(), text);
    }
    let new = [headed("other b", 5), headed("other c", 7)];
    for (number, text) in new.iter().enumerate() {
        input.fs.remove_as_other(format!("/logs/a.log.{number}.gz"));
        input.fs.write_as_other(format!("/logs/a.log.{}.gz", number + 5), &gzip(text.as_bytes()));
    }
    let messages = rounds(&mut input);
    for text in &new {
        assert_has_all(&messages, text);
    }
}

#[test]
fn a_compressed_copy_that_got_the_inode_of_the_log_is_a_copy_all_the_same() {
    // Found by the simulated world (seed 204830): the log was copied, rewritten and removed, and the compressed copy, not
    // yet complete, got its inode. It was taken for the log by that, and the plain copy, which is longer, for another file.
    let mut input = Input::new();
    let text = lines("a", 0..200);
    input.fs.write_as_other("/logs/a.log", text.as_bytes());
    let mut read = input.round();
    input.advance(600);
    read.extend(input.round());
    let inode = input.fs.peek_metadata("/logs/a.log").expect("it is there").inode;
    let more = text.clone() + &lines("a", 200..300);
    input.fs.write_as_other("/logs/a.log.1", more.as_bytes());
    input.fs.remove_as_other("/logs/a.log");
    let whole = gzip(more.as_bytes());
    input.fs.write_as_other("/logs/a.log.1.gz", &whole[..whole.len() - 100]);
    assert_eq!(input.fs.peek_metadata("/logs/a.log.1.gz").expect("it is there").inode, inode);
    read.extend(input.round());
    input.fs.write_as_other("/logs/a.log.1.gz", &whole);
    read.extend(input.round());
    input.fs.remove_as_other("/logs/a.log.1");
    read.extend(rounds(&mut input));
    assert_has_all(&read, &more);
    assert_eq!(read.len(), 300, "no line comes twice");
}

#[test]
fn a_plain_file_takes_back_what_its_compressed_copy_was_given_before_it_is_complete() {
    // Found by the simulated world (containers 900905, outputs 801053, pins 200793): a reaction to a notice saw the
    // compressed file before a scan saw the plain one under its new name, which is longer then.
    for (is_known, reads) in [(false, true), (false, false), (true, true), (true, false)] {
        let mut input = Input::new();
        let text = lines("a", 0..300);
        let mut read = Vec::new();
        if is_known {
            input.fs.write_as_other("/logs/a.log", &text.as_bytes()[..1500]);
            read.extend(input.round());
            input.fs.rename_as_other("/logs/a.log", "/away");
        }
        let whole = gzip(text.as_bytes());
        input.fs.write_as_other(GZ, &whole[..whole.len() * 3 / 4]);
        input.scan();
        if reads {
            read.extend(input.read());
            // What vanished is read to its end first.
            read.extend(input.round());
            assert!(read.len() > 150, "the copy has the source");
        }
        input.fs.write_as_other("/logs/a.log.1", text.as_bytes());
        read.extend(input.round());
        input.fs.write_as_other(GZ, &whole);
        read.extend(input.round());
        input.fs.remove_as_other("/logs/a.log.1");
        read.extend(rounds(&mut input));
        assert_has_all(&read, &text);
        assert_eq!(read.len(), 300, "{is_known} {reads}");
        assert_eq!(input.scan().held, 0);
    }
}

#[test]
fn a_plain_file_of_another_name_does_not_take_back_what_only_begins_as_it_does() {
    let mut input = Input::new();
    let (old, new) = (headed("old", 90), headed("new", 90));
    let header = lines("# the same header in every file", 0..60).len();
    let whole = gzip(old.as_bytes());
    // So much of it that the header is there, and not a line more.
    let cut = (1..whole.len()).find(|&len| {
        let mut text = Vec::new();
        let mut decoder = flate2::read::GzDecoder::new(&whole[..len]);
        // It ends before its end.
        decoder.read_to_end(&mut text).unwrap_or_default();
        text.len() > header / 2 + 600
    });
    input.fs.write_as_other("/logs/a.log.2.gz", &whole[..cut.expect("it has a header")]);
    let mut read = input.round();
    input.fs.write_as_other("/logs/a.log.1", new.as_bytes());
    read.extend(input.round());
    input.fs.write_as_other("/logs/a.log.2.gz", &whole);
    read.extend(rounds(&mut input));
    assert_has_all(&read, &old);
    assert_has_all(&read, &new);
}

#[test]
fn what_was_saved_goes_to_the_compressed_file_that_has_the_bytes_before_the_cursor() {
    // Found by the simulated world (containers 301249, 1001862): the program ended while a byte was known of a file of
    // which much was read. Of two compressed files with that byte the first one got its cursor, which is behind its end.
    let mut input = Input::new();
    let text = lines("a", 0..200);
    input.fs.write_as_other("/logs/a.log", &text.as_bytes()[..1]);
    input.scan();
    input.fs.append_as_other("/logs/a.log", &text.as_bytes()[1..]);
    let mut read = input.read();
    assert_eq!(read.len(), 200);
    input.fs.remove_as_other("/logs/a.log");
    let other = lines("another", 0..20);
    input.fs.write_as_other("/logs/a.log.2.gz", &gzip(other.as_bytes()));
    input.fs.write_as_other("/logs/a.log.3.gz", &gzip(text.as_bytes()));
    let mut input = input.restarted();
    read.extend(rounds(&mut input));
    assert_has_all(&read, &other);
    assert_eq!(read.len(), 220, "no line comes twice");
}

#[test]
fn a_log_that_was_compressed_while_the_program_was_down_goes_on_beside_one_that_began_alike() {
    // One of the two is known by the usual fingerprint, the other by a longer one. Of the one with the usual one, nothing
    // was looked at that proves that the compressed file is it, and all its lines came again.
    for compressed in [&["a"][..], &["b"], &["a", "b"]] {
        let mut input = Input::new();
        for name in ["a", "b"] {
            let text = headed(name, 100);
            input.fs.write_as_other(format!("/logs/{name}.log"), text.as_bytes());
        }
        assert_eq!(rounds(&mut input).len(), 320);
        for name in compressed {
            // A file that is made while the log is still there has another inode.
            let text = headed(name, 100);
            input.fs.write_as_other(format!("/logs/{name}.log.gz"), &gzip(text.as_bytes()));
            input.fs.remove_as_other(format!("/logs/{name}.log"));
        }
        let mut input = input.restarted();
        assert_eq!(rounds(&mut input), [""; 0], "{compressed:?}");
        input.fs.write_as_other("/logs/c.log.gz", &gzip(headed("c", 100).as_bytes()));
        assert_has_all(&rounds(&mut input), &headed("c", 100));
    }
}

#[test]
fn a_compressed_file_that_only_began_alike_does_not_take_what_was_saved_of_a_log_that_is_gone() {
    for gone in ["a", "b"] {
        let mut input = Input::new();
        for name in ["a", "b"] {
            let text = headed(name, 100);
            input.fs.write_as_other(format!("/logs/{name}.log"), text.as_bytes());
        }
        rounds(&mut input);
        let text = headed("c", 200);
        input.fs.write_as_other("/logs/c.log.gz", &gzip(text.as_bytes()));
        input.fs.remove_as_other(format!("/logs/{gone}.log"));
        let mut input = input.restarted();
        assert_has_all(&rounds(&mut input), &text);
    }
}

#[test]
fn a_group_in_a_compressed_file_that_is_still_being_written_waits_for_its_lines() {
    // Found by the simulated world (2043235): the part of an event that was compressed so far was given out.
    let mut settings = settings();
    settings.parsers = Chain::new(vec![Parser::Multiline(multiline())], 20 << 20);
    let mut input = Input::with(settings, ReadersLimits { open_files: 100, decoders: 10 }, 100);
    let text = lines("a", 0..300).replace('\n', "\n more\n and more\n");
    let whole = gzip(text.as_bytes());
    let mut read = Vec::new();
    for quarters in 1..=4 {
        input.fs.write_as_other(GZ, &whole[..whole.len() * quarters / 4]);
        for _ in 0..4 {
            read.extend(input.round());
            input.advance(11);
        }
    }
    assert_eq!(read.len(), 300);
    assert!(read.iter().all(|message| message.ends_with("\n more\n and more")));
    // What is cut off for good has its last lines nevertheless.
    let cut = gzip(text.replace("a ", "b ").as_bytes());
    input.fs.write_as_other("/logs/cut.gz", &cut[..cut.len() - 8]);
    assert_eq!(rounds(&mut input).len(), 300);
}

#[test]
fn a_compressed_file_is_not_a_source_of_which_more_was_read_than_it_holds() {
    // Found by the simulated world (pins 2000375): a short file that began as a deleted log got its cursor and its entry, and
    // what was left of that log was read again.
    let mut input = Input::new();
    input.fs.write_as_other("/logs/a.log", b"the same\n");
    input.scan();
    input.fs.append_as_other("/logs/a.log", lines("a", 0..200).as_bytes());
    assert_eq!(input.read().len(), 201);
    input.fs.rename_as_other("/logs/a.log", "/away");
    input.fs.write_as_other(GZ, &gzip(b"the same\nother\n"));
    assert_eq!(input.round(), ["the same", "other"]);
    let mut input = input.restarted();
    input.fs.rename_as_other("/away", "/logs/a.log.2");
    assert_eq!(rounds(&mut input), [""; 0]);
}

#[test]
fn a_compressed_log_is_not_a_short_file_that_had_its_inode() {
    // Found by the simulated world (2026458, 2059293): of that file an empty line was known, with which the log began.
    let mut input = Input::new();
    let text = format!("\n{}", lines("a", 0..200));
    input.fs.write_as_other("/logs/a.log.1.gz", &gzip(b"\n"));
    input.round();
    input.fs.write_as_other("/logs/a.log", text.as_bytes());
    assert_eq!(input.round().len(), 200);
    let inode = input.fs.peek_metadata("/logs/a.log.1.gz").expect("it is there").inode;
    input.fs.remove_as_other("/logs/a.log.1.gz");
    input.fs.write_as_other("/logs/a.log.2.gz", &gzip(text.as_bytes()));
    assert_eq!(input.fs.peek_metadata("/logs/a.log.2.gz").expect("it is there").inode, inode);
    input.fs.remove_as_other("/logs/a.log");
    assert_eq!(rounds(&mut input), [""; 0]);
}

#[test]
fn what_was_saved_of_a_log_is_its_own_though_a_short_file_was_saved_that_it_begins_with() {
    // Found by the simulated world (2055327).
    let mut input = Input::new();
    let text = format!("x\n{}", lines("a", 0..200));
    input.fs.write_as_other("/logs/a.log.1", b"x\n");
    input.fs.write_as_other("/logs/a.log.4", text.as_bytes());
    assert_eq!(input.round().len(), 202);
    input.fs.write_as_other("/logs/a.log.4.gz", &gzip(text.as_bytes()));
    input.fs.remove_as_other("/logs/a.log.1");
    input.fs.remove_as_other("/logs/a.log.4");
    let mut input = input.restarted();
    assert_eq!(rounds(&mut input), [""; 0]);
}
