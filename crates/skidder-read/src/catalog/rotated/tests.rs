//! A kubelet that rotates what links lead to.

mod first_look;
mod rested;

use super::*;
use crate::readers::ReadersLimits;
use crate::testing::{Input, gzip, lines, settings};
use skidder_os::{Clock, Fs};
use skidder_testkit::{Fault, Operation};

const LINK: &str = "/logs/pod_ns_app-0123.log";
const DIRECTORY: &str = "/pods/ns_pod_uid/app";
const LOG: &str = "/pods/ns_pod_uid/app/0.log";

/// Writes, rotates and compresses as a container runtime and the kubelet do.
struct Kubelet {
    input: Input,
    /// Number of the next line.
    next: usize,
    /// Rotations so far; the newest rotated file stays plain until the next.
    rotations: usize,
    messages: Vec<String>,
}

impl Kubelet {
    fn new(on_eof: bool, compressed: bool) -> Self {
        let mut settings = settings();
        settings.scan.symlinks = true;
        settings.close.on_eof = on_eof;
        if !compressed {
            settings.compression = Compression::None;
        }
        let limits = ReadersLimits { open_files: 100, decoders: 10 };
        let input = Input::with(settings, limits, 50);
        input.fs.create_dir_as_other(DIRECTORY);
        input.fs.append_as_other(LOG, b"");
        input.fs.symlink_as_other(LOG, LINK);
        Self { input, next: 0, rotations: 0, messages: Vec::new() }
    }

    fn write(&mut self, count: usize) {
        let text = lines("a line of the container", self.next..self.next + count);
        self.input.fs.append_as_other(LOG, text.as_bytes());
        self.next += count;
    }

    fn rotated(number: usize) -> String {
        format!("{LOG}.20261121-10{number:04}")
    }

    fn rotate(&mut self) {
        self.compress();
        self.input.fs.rename_as_other(LOG, Self::rotated(self.rotations));
        self.rotations += 1;
        self.input.advance(1);
        self.input.fs.append_as_other(LOG, b"");
    }

    /// The newest rotated file is compressed, if it is not yet.
    fn compress(&mut self) {
        let Some(newest) = self.rotations.checked_sub(1) else { return };
        let plain = Self::rotated(newest);
        if let Some(bytes) = self.input.fs.peek(&plain) {
            self.input.fs.write_as_other(format!("{plain}.tmp"), &gzip(&bytes));
            self.input.fs.rename_as_other(format!("{plain}.tmp"), format!("{plain}.gz"));
            self.input.fs.remove_as_other(&plain);
        }
    }

    fn read(&mut self) {
        let messages = self.input.round();
        self.messages.extend(messages);
    }

    /// One turn, so that files stay partly read.
    fn turn(&mut self) {
        if let Some((Some(batch), _)) = self.input.turn() {
            self.messages.extend(crate::testing::messages_of(&batch));
        }
    }

    fn restart(self) -> Self {
        Self { input: self.input.restarted(), ..self }
    }

    /// Reads to the end; each line must have come once.
    fn finish(mut self, what: &str) {
        for _ in 0..30 {
            self.read();
            self.input.advance(11);
        }
        let expected = lines("a line of the container", 0..self.next);
        let mut messages = std::mem::take(&mut self.messages);
        let numbers: std::collections::BTreeSet<usize> =
            messages.iter().filter_map(|text| text.rsplit(' ').next()?.parse().ok()).collect();
        let lost: Vec<usize> = (0..self.next).filter(|number| !numbers.contains(number)).collect();
        assert!(lost.is_empty(), "{what}: lost {:?} to {:?}", lost.first(), lost.last());
        messages.sort();
        let mut expected: Vec<_> = expected.lines().collect();
        expected.sort_unstable();
        assert_eq!(messages, expected, "{what}: repeated");
        // What is gone is let go of.
        let fs = &self.input.fs;
        let target = fs.canonicalize(Path::new(LINK)).expect("it leads somewhere");
        for name in fs.peek_names(DIRECTORY) {
            let path = Path::new(DIRECTORY).join(name);
            if path != target {
                fs.remove_as_other(path);
            }
        }
        for _ in 0..3 {
            assert!(self.input.round().is_empty(), "{what}: repeated");
            self.input.advance(100);
        }
        assert_eq!(self.input.scan().sources, 1, "{what}: what is gone is let go of");
    }
}

#[test]
fn what_a_link_led_to_before_is_read_to_its_end_and_nothing_twice() {
    for case in 0..64 {
        let bit = |at: usize| case & 1 << at > 0;
        let (on_eof, compressed, down, partly) = (bit(0), bit(1), bit(2), bit(3));
        let rotations = 1 + (case >> 4);
        let mut kubelet = Kubelet::new(on_eof, compressed);
        kubelet.write(300);
        if partly {
            kubelet.input.scan();
            kubelet.turn();
            kubelet.turn();
        } else {
            kubelet.read();
        }
        kubelet.write(100);
        for _ in 0..rotations {
            kubelet.rotate();
            kubelet.write(200);
        }
        if down {
            kubelet = kubelet.restart();
        }
        kubelet.input.scan();
        kubelet.turn();
        kubelet.turn();
        // It is compressed while it is read, and the program dies then.
        kubelet.compress();
        if down {
            kubelet = kubelet.restart();
        }
        kubelet.write(100);
        kubelet.finish(&format!(
            "on_eof {on_eof} compressed {compressed} down {down} partly {partly} {rotations}"
        ));
    }
}

#[test]
fn a_log_is_followed_through_many_rotations() {
    for every in [1, 2, 5] {
        let mut kubelet = Kubelet::new(false, true);
        kubelet.write(10);
        kubelet.read();
        for rotation in 0..20 {
            kubelet.write(60);
            kubelet.rotate();
            kubelet.write(60);
            if rotation % every == 0 {
                kubelet.input.advance(7);
                kubelet.read();
            }
            if rotation % 7 == 3 {
                kubelet = kubelet.restart();
            }
        }
        kubelet.finish(&format!("a look every {every} rotations"));
    }
}

#[test]
fn what_was_rotated_before_the_first_look_is_not_read() {
    let mut kubelet = Kubelet::new(false, true);
    kubelet.write(100);
    kubelet.rotate();
    kubelet.write(100);
    kubelet.input.advance(60);
    kubelet.read();
    assert_eq!(kubelet.messages.len(), 100);
    kubelet.rotate();
    kubelet.write(50);
    kubelet.read();
    assert_eq!(kubelet.messages.len(), 150, "and not later either");
}

#[test]
fn a_container_that_rotates_before_it_is_seen_is_read_from_its_first_line() {
    let mut kubelet = Kubelet::new(false, true);
    kubelet.input.fs.remove_as_other(LINK);
    kubelet.read();
    kubelet.input.advance(5);
    kubelet.write(100);
    kubelet.rotate();
    kubelet.write(100);
    kubelet.input.fs.symlink_as_other(LOG, LINK);
    kubelet.finish("new link");
}

#[test]
fn names_tell_what_was_rotated_after_a_file_of_the_same_log() {
    let is_after = |one: &str, other: &str| {
        let path = |name: &str| Path::new("/pods").join(name);
        age::is_rotated_after(&path(one), &path(other))
    };
    assert!(is_after("0.log.20261121-100001", "0.log.20261121-100000.gz"));
    assert!(is_after("1.log.20261121-100000", "0.log.20261121-100001"));
    assert!(is_after("id-json.log.1", "id-json.log.2.gz"));
    assert!(!is_after("0.log.20261121-100000", "0.log.20261121-100000.gz"), "the same");
    assert!(!is_after("0.log.20261121-100000.gz", "0.log.20261121-100001"), "before");
    assert!(!is_after("id-json.log.2", "id-json.log.1"), "before");
    assert!(!is_after("0.log.20261121-100001", "0.log"), "that was not rotated away");
    assert!(!is_after("other.log.20261121-100001", "0.log.20261121-100000"), "another log");
}

#[test]
fn numbers_grow_with_age_and_dates_with_youth() {
    let sorted = |names: &[&str]| {
        let mut paths: Vec<PathBuf> = names.iter().map(|name| Path::new("/l").join(name)).collect();
        paths.sort_by_cached_key(|path| age(path));
        paths
            .iter()
            .filter_map(|path| path.to_str()?.strip_prefix("/l/").map(str::to_owned))
            .collect::<Vec<_>>()
    };
    assert_eq!(sorted(&["a.1", "a.10.gz", "a.2.gz"]), ["a.10.gz", "a.2.gz", "a.1"]);
    assert_eq!(
        sorted(&["0.log.20261122-000000", "0.log.20261121-101112.gz"]),
        ["0.log.20261121-101112.gz", "0.log.20261122-000000"]
    );
}

#[test]
fn a_link_that_leads_to_the_next_log_of_a_container_leaves_nothing_of_the_one_before() {
    // Found by the simulated world: `1.log` was not taken to come after `0.log`.
    for (down, rotated) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut kubelet = Kubelet::new(true, true);
        kubelet.write(300);
        kubelet.input.scan();
        kubelet.turn();
        kubelet.turn();
        if rotated {
            kubelet.rotate();
            kubelet.write(200);
        }
        if down {
            kubelet = kubelet.restart();
        }
        let next = format!("{DIRECTORY}/1.log");
        kubelet.input.advance(1);
        kubelet.input.fs.append_as_other(&next, lines("of the next one", 0..20).as_bytes());
        kubelet.input.fs.symlink_as_other(&next, LINK);
        let mut messages = std::mem::take(&mut kubelet.messages);
        for _ in 0..30 {
            messages.extend(kubelet.input.round());
            kubelet.input.advance(11);
        }
        messages.sort();
        let text =
            lines("a line of the container", 0..kubelet.next) + &lines("of the next one", 0..20);
        let mut expected: Vec<_> = text.lines().collect();
        expected.sort_unstable();
        assert_eq!(messages, expected, "down {down}, rotated {rotated}");
    }
}

#[test]
fn a_short_log_that_was_rotated_while_the_program_was_down_goes_on_at_its_cursor() {
    // Found by the simulated world: the saved entry names the link, and few bytes prove nothing of another path.
    for compressed in [false, true] {
        let mut kubelet = Kubelet::new(true, true);
        kubelet.write(10);
        kubelet.read();
        kubelet.write(5);
        kubelet.rotate();
        if compressed {
            kubelet.compress();
        }
        kubelet = kubelet.restart();
        kubelet.write(5);
        kubelet.finish(&format!("compressed {compressed}"));
    }
}

/// The next listing of the directory of the logs fails.
fn fail_to_list(kubelet: &Kubelet) {
    let fault = Fault::nth(1, io::ErrorKind::TimedOut).of(Operation::List).on("/pods");
    kubelet.input.fs.inject(fault);
}

#[test]
fn a_directory_that_cannot_be_listed_is_looked_through_by_the_next_scan() {
    for down in [false, true] {
        let mut kubelet = Kubelet::new(true, true);
        kubelet.write(200);
        kubelet.read();
        // No scan sees the second of these files where the link leads.
        for _ in 0..2 {
            kubelet.write(100);
            kubelet.rotate();
        }
        if down {
            kubelet = kubelet.restart();
        }
        fail_to_list(&kubelet);
        kubelet.write(1);
        kubelet.finish(&format!("a failed listing, down: {down}"));
    }
}

#[test]
fn what_a_rotated_file_was_compressed_to_is_looked_for_again() {
    let mut kubelet = Kubelet::new(true, true);
    kubelet.write(200);
    kubelet.input.scan();
    kubelet.rotate();
    kubelet.input.scan();
    kubelet.turn();
    kubelet.compress();
    fail_to_list(&kubelet);
    kubelet.write(1);
    kubelet.finish("a failed listing after the compression");
}

#[test]
fn a_short_log_that_was_rotated_and_compressed_is_known_by_its_link() {
    // Found by the simulated world: the name of a link says nothing of where it leads.
    let mut kubelet = Kubelet::new(true, true);
    kubelet.write(3);
    kubelet.read();
    kubelet.read();
    kubelet.rotate();
    kubelet.compress();
    kubelet.write(1);
    kubelet.finish("a short log");
}

/// The program ends some time after the last rotation, and what it has saved last was saved then.
fn down_for_long(kubelet: Kubelet) -> Kubelet {
    kubelet.input.advance(3600);
    kubelet.input.saved.touch(kubelet.input.clock.wall());
    kubelet.restart()
}

#[test]
fn a_short_log_is_known_by_its_link_however_late_its_entry_was_saved() {
    // Found by the simulated world: a file that is not known was taken to be older than the entry of its link.
    for compressed in [false, true] {
        let mut kubelet = Kubelet::new(true, true);
        kubelet.write(3);
        kubelet.read();
        kubelet.write(5);
        kubelet.rotate();
        if compressed {
            kubelet.compress();
        }
        kubelet.write(1);
        down_for_long(kubelet).finish(&format!("compressed {compressed}"));
    }
}

#[test]
fn what_was_written_anew_before_it_was_rotated_is_read() {
    // Found by the simulated world: the entry of the link is of the same inode, and of another content.
    let mut kubelet = Kubelet::new(true, true);
    kubelet.write(200);
    kubelet.read();
    kubelet.input.fs.truncate_as_other(LOG, 0);
    kubelet.write(100);
    kubelet.rotate();
    kubelet.write(1);
    down_for_long(kubelet).finish("written anew");
}

#[test]
fn a_log_that_was_rotated_before_the_last_save_is_read_though_the_one_before_is_gone() {
    // Found by the simulated world: cursors move on after the last scan.
    let mut kubelet = Kubelet::new(true, true);
    kubelet.write(200);
    kubelet.read();
    kubelet.rotate();
    kubelet.write(100);
    kubelet.rotate();
    kubelet.input.fs.remove_as_other(format!("{}.gz", Kubelet::rotated(0)));
    kubelet.write(1);
    kubelet.input.advance(5);
    kubelet.input.saved.touch(kubelet.input.clock.wall());
    kubelet.restart().finish("the one before is gone");
}

#[test]
fn what_a_rotated_file_was_compressed_to_is_followed_though_a_reader_has_missed_it_first() {
    // Found by the simulated world: a file without a place was taken for one that is read.
    let mut kubelet = Kubelet::new(true, true);
    let mut watcher = kubelet.input.watcher();
    kubelet.write(300);
    kubelet.input.scan_watched(&mut watcher, true);
    kubelet.turn();
    kubelet.rotate();
    kubelet.input.scan_watched(&mut watcher, true);
    kubelet.input.advance(120);
    kubelet.compress();
    // Its file is not where it was.
    kubelet.turn();
    kubelet.input.react(&mut watcher);
    for _ in 0..10 {
        kubelet.input.scan_watched(&mut watcher, true);
        let messages = kubelet.input.read();
        kubelet.messages.extend(messages);
        kubelet.input.advance(11);
    }
    kubelet.messages.sort();
    kubelet.messages.dedup();
    assert_eq!(kubelet.messages.len(), 300);
}

#[test]
fn a_look_that_failed_is_no_answer() {
    // Each operation of the scan after two rotations fails in turn, once or twice.
    let operations = [Operation::Stat, Operation::Open, Operation::Read, Operation::List];
    for (operation, nth, down) in operations.into_iter().flat_map(|operation| {
        (1..8).flat_map(move |nth| [(operation, nth, false), (operation, nth, true)])
    }) {
        for directory in ["/logs", "/pods"] {
            let mut kubelet = Kubelet::new(true, true);
            kubelet.write(20);
            kubelet.read();
            for _ in 0..2 {
                kubelet.write(100);
                kubelet.rotate();
            }
            kubelet.write(1);
            if down {
                kubelet = kubelet.restart();
            }
            let fault = Fault::nth(nth, io::ErrorKind::TimedOut).of(operation).on(directory);
            kubelet.input.fs.inject(fault);
            kubelet.finish(&format!("{operation:?} {nth} in {directory}, down: {down}"));
        }
    }
}

#[test]
fn what_a_link_led_to_is_followed_though_all_it_led_to_had_one_inode() {
    // Found by the simulated world (seeds 20441 and 10283): the inode of what the link had led to was that of a saved
    // entry before, and is that of what it leads to now. Only the content shows that, and it was not compared any
    // more.
    let mut kubelet = Kubelet::new(true, true);
    kubelet.write(200);
    kubelet.read();
    let inode = kubelet.input.fs.peek_metadata(LOG).expect("it is there").inode;
    kubelet.write(100);
    kubelet.rotate();
    kubelet.compress();
    kubelet.write(100);
    kubelet.input.advance(1);
    let rotated = Kubelet::rotated(kubelet.rotations);
    kubelet.rotations += 1;
    kubelet.input.fs.rename_as_other(LOG, &rotated);
    kubelet.input.fs.append_as_other(LOG, b"");
    kubelet.write(1);
    assert_eq!(kubelet.input.fs.peek_metadata(LOG).expect("it is there").inode, inode);
    // Another log in the directory of a saved entry that no pattern matches.
    kubelet.input.saved.change(|saved| {
        let mut entry = saved.values().next().expect("there is one").clone();
        entry.meta.source = Arc::from(Path::new("/pods/another/app/0.log.20261121-100000"));
        saved.insert(format!("filestream::test::fingerprint::{}", "a".repeat(64)), entry);
    });
    down_for_long(kubelet).finish("the same inode");
}

#[test]
fn what_a_rotated_file_was_compressed_to_is_known_by_its_name() {
    // Found by the simulated world (seed 11709): nothing was read yet of a line whose beginning was rotated away, and the
    // file that the link led to then began alike. What was saved of the one says nothing of what it holds.
    let mut kubelet = Kubelet::new(false, true);
    let text = lines("a line of the container", 0..1);
    kubelet.next = 1;
    let (begun, rest) = text.as_bytes().split_at(5);
    kubelet.input.fs.append_as_other(LOG, begun);
    kubelet.read();
    kubelet.rotate();
    kubelet.input.fs.append_as_other(LOG, lines("another", 0..300).as_bytes());
    kubelet.input.scan();
    kubelet.input.fs.append_as_other(Kubelet::rotated(0), rest);
    kubelet.rotate();
    kubelet.write(100);
    kubelet.input.scan();
    kubelet = kubelet.restart();
    for _ in 0..10 {
        kubelet.read();
        kubelet.input.advance(11);
    }
    assert_eq!(kubelet.messages.len(), 401);
}

#[test]
fn what_an_empty_log_has_the_inode_of_was_rotated_away_before() {
    // Found by the simulated world (seeds 110226 and 102727): the inode of what the link had led to was that of an empty
    // file when the program started, of which there is no content to ask.
    let mut kubelet = Kubelet::new(true, true);
    kubelet.write(20);
    kubelet.read();
    let inode = kubelet.input.fs.peek_metadata(LOG).expect("it is there").inode;
    let between = format!("{DIRECTORY}/another");
    kubelet.input.fs.remove_as_other(LOG);
    kubelet.input.fs.write_as_other(&between, b"");
    kubelet.write(100);
    kubelet.input.fs.remove_as_other(&between);
    kubelet.rotate();
    assert_eq!(kubelet.input.fs.peek_metadata(LOG).expect("it is there").inode, inode);
    kubelet = kubelet.restart();
    kubelet.read();
    kubelet.write(1);
    kubelet.finish("an empty log");
}

#[test]
fn what_was_rotated_before_a_link_led_nowhere_is_read() {
    // Found by the simulated world (seed 114531): the time of what the link had led to was that of the last scan, which
    // had found the link to lead nowhere.
    let mut kubelet = Kubelet::new(true, true);
    kubelet.write(20);
    kubelet.read();
    kubelet.rotate();
    kubelet.write(30);
    kubelet.rotate();
    kubelet.input.fs.remove_as_other(format!("{}.gz", Kubelet::rotated(0)));
    kubelet.input.fs.remove_as_other(LOG);
    for _ in 0..3 {
        kubelet.input.advance(5);
        kubelet.read();
    }
    kubelet.write(1);
    kubelet.finish("led nowhere");
}

#[test]
fn what_begins_as_a_short_log_did_does_not_end_the_search() {
    // Found by the simulated world (seed 217346): of what the link had led to a few bytes were known, with which a newer
    // file began as well; what was rotated in between was taken for older than what was known.
    let mut kubelet = Kubelet::new(true, true);
    kubelet.input.fs.append_as_other(LOG, b"a lin");
    kubelet.read();
    kubelet.input.fs.append_as_other(LOG, b"e\n");
    kubelet.rotate();
    kubelet.input.fs.append_as_other(LOG, lines("other", 0..3).as_bytes());
    kubelet.rotate();
    kubelet.write(2);
    kubelet.rotate();
    kubelet.write(1);
    kubelet = kubelet.restart();
    for _ in 0..10 {
        kubelet.read();
        kubelet.input.advance(11);
    }
    assert_eq!(kubelet.messages.len(), 1 + 3 + 2 + 1);
}

#[test]
fn an_empty_log_is_another_one_if_it_was_written_to_since() {
    // Found by the simulated world: the link led to an empty file before and after, and both had one inode.
    for restarts in [false, true] {
        let mut kubelet = Kubelet::new(true, true);
        kubelet.read();
        let inode =
            |kubelet: &Kubelet| kubelet.input.fs.peek_metadata(LOG).expect("it is there").inode;
        let before = inode(&kubelet);
        for _ in 0..2 {
            kubelet.input.advance(1);
            kubelet.write(5);
            kubelet.rotate();
        }
        assert_eq!(inode(&kubelet), before, "what was compressed left its inode to the new log");
        kubelet.read();
        if restarts {
            kubelet = kubelet.restart();
        }
        for _ in 0..3 {
            kubelet.read();
            kubelet.input.advance(11);
        }
        assert_eq!(kubelet.messages.len(), 10, "{restarts}");
    }
}

#[test]
fn a_log_of_which_a_few_bytes_were_known_may_be_another_one_with_its_inode() {
    // Found by the simulated world (containers 9100161): it and the one after it were lost.
    let mut kubelet = Kubelet::new(true, true);
    kubelet.input.fs.append_as_other(LOG, b"a li");
    kubelet.read();
    let inode = |kubelet: &Kubelet| kubelet.input.fs.peek_metadata(LOG).expect("it is there").inode;
    let before = inode(&kubelet);
    kubelet.input.advance(1);
    kubelet.input.fs.append_as_other(LOG, b"ne of the container 0\n");
    kubelet.next = 1;
    kubelet.rotate();
    kubelet.write(5);
    kubelet.rotate();
    assert_eq!(inode(&kubelet), before, "what was compressed left its inode to the new log");
    kubelet.write(5);
    kubelet.finish("a few bytes");
}

#[test]
fn what_was_rotated_does_not_wait_for_the_reader_of_a_deleted_file() {
    // Found by the simulated world: it had the inode of that file, and the program ended while it waited.
    let mut kubelet = Kubelet::new(true, true);
    kubelet.write(5);
    kubelet.read();
    let fs = kubelet.input.fs.clone();
    let deleted = "/logs/deleted.log";
    fs.write_as_other(deleted, lines("deleted", 0..5).as_bytes());
    let inode = |path: &str| fs.peek_metadata(path).expect("it is there").inode;
    let freed = inode(deleted);
    kubelet.input.scan();
    let turn = kubelet.input.readers.next(kubelet.input.clock.monotonic());
    assert!(matches!(&turn, crate::readers::Next::Turn(_)));
    fs.remove_as_other(deleted);
    for number in 0..3 {
        kubelet.input.advance(1);
        fs.rename_as_other(LOG, Kubelet::rotated(number));
        fs.append_as_other(LOG, b"");
        kubelet.write(5);
    }
    assert_eq!(inode(&Kubelet::rotated(1)), freed);
    kubelet.input.scan();
    drop(turn);
    kubelet = kubelet.restart();
    kubelet.finish("after the end");
}
