//! The reported states of files, and the watchdog.

use super::*;
use crate::readers::ReadersLimits;
use crate::settings::FilestreamSettings;
use crate::testing::{Input, bzip2, gzip, lines, settings};

const A: &str = "/logs/a.log";

fn with(limits: ReadersLimits, change: impl FnOnce(&mut FilestreamSettings)) -> Input {
    let mut settings = settings();
    change(&mut settings);
    Input::with(settings, limits, 100)
}

const ROOM: ReadersLimits = ReadersLimits { open_files: 100, decoders: 10 };

/// Path, state and reason of each file.
fn described(input: &mut Input) -> Vec<String> {
    let describe = |look: FileLook| {
        let reason = look.reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        let behind = look.behind.map_or_else(|| "?".to_owned(), |behind| behind.to_string());
        format!("{} {} ({behind}){reason}", look.path.display(), look.state.name())
    };
    input.looks(1000).into_iter().map(describe).collect()
}

#[test]
fn a_compressed_file_that_is_read_is_behind_until_its_lines_have_their_verdict() {
    // The report was `finished` with nothing behind, while all of its lines were on their way.
    let mut input = with(ROOM, |_| ());
    let text = lines("packed", 0..300);
    input.fs.write_as_other("/logs/packed.gz", &gzip(text.as_bytes()));
    input.round();
    assert_eq!(described(&mut input), ["/logs/packed.gz finished (0): finished"]);
    let rest = text.len() - 100;
    input.saved.change(|saved| saved.values_mut().for_each(|entry| entry.cursor.offset = 100));
    assert_eq!(
        described(&mut input),
        [format!(
            "/logs/packed.gz finished ({rest}): read to its end; some lines are on their way"
        )]
    );
}

#[test]
fn a_block_format_that_is_cut_off_waits_for_its_end_and_is_not_stalled() {
    // `none is known; the watchdog wakes it`, and after a minute an error that called it a bug.
    let mut input = with(ROOM, |_| ());
    let mut text = String::new();
    let mut random = 1_u64;
    while text.len() < 2_000_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        text.push_str(&format!("line {random:x}\n"));
    }
    let whole = bzip2(text.as_bytes());
    input.fs.write_as_other("/logs/late.bz2", &whole[..whole.len() * 2 / 3]);
    input.fs.write_as_other("/logs/early.bz2", &bzip2(lines("early", 0..300).as_bytes())[..200]);
    input.round();
    assert_eq!(
        described(&mut input),
        [
            "/logs/early.bz2 held (?): a compressed file that has no end yet",
            "/logs/late.bz2 idle (?): a compressed file that has no end yet",
        ]
    );
}

#[test]
fn each_file_says_what_it_does_and_why() {
    let mut input = with(ROOM, |settings| settings.fingerprint.growing = false);
    let long = |name: &str| lines(name, 0..300);
    input.fs.write_as_other("/logs/copy.log", long("same").as_bytes());
    input.fs.write_as_other("/logs/original.log", long("same").as_bytes());
    input.fs.write_as_other("/logs/half.log", (long("half") + "no end").as_bytes());
    input.fs.write_as_other("/logs/packed.gz", &gzip(long("packed").as_bytes()));
    input.fs.write_as_other("/logs/short.log", b"short\n");
    input.fs.write_as_other("/logs/empty.log", b"");
    let mut damaged = gzip(long("damaged").as_bytes());
    let middle = damaged.len() / 2;
    damaged[3..middle].fill(0xff);
    input.fs.write_as_other("/logs/damaged.gz", &damaged);
    input.scan();
    let looks = described(&mut input);
    assert!(looks.contains(&"/logs/half.log reading (2596)".to_owned()), "{looks:#?}");
    input.read();
    input.scan();
    input.read();
    let looks = described(&mut input);
    let damage = &looks[1];
    assert!(damage.starts_with("/logs/damaged.gz unreadable"), "{damage}");
    assert!(damage.contains(": damaged: "), "{damage}");
    let others: Vec<&str> = looks
        .iter()
        .filter(|look| !look.starts_with("/logs/damaged.gz"))
        .map(String::as_str)
        .collect();
    assert_eq!(
        others,
        [
            "/logs/copy.log idle (0): at its end",
            "/logs/empty.log empty (0): empty",
            "/logs/half.log idle (6): the last line or event has no end yet",
            "/logs/original.log held (?): identity equals /logs/copy.log",
            "/logs/packed.gz finished (0): finished",
            "/logs/short.log unreadable (6): too short for a fingerprint",
        ]
    );
}

#[test]
fn pages_hold_every_file_once_whatever_their_size() {
    let mut input = with(ROOM, |_| {});
    for number in 0..23 {
        let name = format!("/logs/{number:02}.log");
        input.fs.write_as_other(&name, lines(&name, 0..100).as_bytes());
    }
    input.round();
    input.fs.remove_as_other("/logs/07.log");
    input.scan();
    let all: Vec<_> = input.looks(0).iter().map(|look| look.path.to_path_buf()).collect();
    assert_eq!(all.len(), 23);
    assert!(all.is_sorted());
    for limit in 1..30 {
        let paged: Vec<_> = input.looks(limit).iter().map(|look| look.path.to_path_buf()).collect();
        assert_eq!(paged, all, "{limit}");
    }
}

#[test]
fn what_waits_says_for_what() {
    let limits = ReadersLimits { open_files: 2, decoders: 1 };
    let mut input = with(limits, |settings| settings.close.inactive = None);
    for name in ["a", "b", "c"] {
        let path = format!("/logs/{name}.log");
        input.fs.write_as_other(&path, lines(&path, 0..50_000).as_bytes());
    }
    input.scan();
    // Each of the two that are open has had a turn, and there is more in them.
    input.turn();
    input.turn();
    input.turn();
    let looks = described(&mut input);
    let waiting: Vec<_> = looks.iter().filter(|look| look.contains(" waiting ")).collect();
    assert_eq!(waiting.len(), 1, "{looks:#?}");
    assert!(waiting[0].ends_with(": waiting for a place: open files"), "{waiting:?}");

    let mut input = with(ROOM, |settings| settings.harvester_limit = Some(1));
    for name in ["a", "b"] {
        let path = format!("/logs/{name}.log");
        input.fs.write_as_other(&path, lines(&path, 0..50_000).as_bytes());
    }
    input.scan();
    input.turn();
    input.turn();
    let looks = described(&mut input);
    let waits = |look: &&String| look.ends_with(": waiting for a slot of harvester_limit");
    assert_eq!(looks.iter().filter(waits).count(), 1, "{looks:#?}");
}

#[test]
fn an_old_file_is_ignored_and_a_gone_one_is_said_to_be() {
    let mut input = with(ROOM, |settings| {
        settings.ignore_older = Some(Duration::from_hours(24));
        settings.close.on_eof = true;
    });
    input.fs.write_as_other(A, lines("a", 0..300).as_bytes());
    input.fs.write_as_other("/logs/b.log", lines("b", 0..300).as_bytes());
    input.round();
    input.advance(25 * 3600);
    input.fs.remove_as_other("/logs/b.log");
    input.scan();
    assert_eq!(
        described(&mut input),
        [
            "/logs/a.log ignored (0): ignored: older than 24h",
            "/logs/b.log gone (0): no longer at its path; forgotten after a minute",
        ]
    );
}

#[test]
fn a_file_that_is_gone_says_whether_it_was_read() {
    let mut input = with(ROOM, |_| ());
    for name in ["/logs/read.log", "/logs/unread.log"] {
        input.fs.write_as_other(name, lines(name, 0..300).as_bytes());
        input.scan();
        if name == "/logs/read.log" {
            input.read();
        }
    }
    for name in ["/logs/read.log", "/logs/unread.log"] {
        input.fs.remove_as_other(name);
    }
    input.scan();
    input.read();
    let looks = input.looks(10);
    let unread: Vec<_> = looks.iter().map(|look| (&*look.path, look.why_unread())).collect();
    let unread_log = Path::new("/logs/unread.log");
    assert_eq!(
        unread,
        [(Path::new("/logs/read.log"), None), (unread_log, Some(&Reason::GoneUnread))]
    );
}

#[test]
fn a_compressed_file_without_an_end_is_unread_also_while_it_has_a_turn() {
    // A run with `--once` that looked in the moment of a turn ended as if everything had been read.
    let mut input = with(ROOM, |_| ());
    let whole = gzip(lines("late", 0..300).as_bytes());
    input.fs.write_as_other("/logs/late.gz", &whole[..whole.len() / 2]);
    input.fs.write_as_other(A, lines("a", 0..300).as_bytes());
    input.scan();
    let looks = input.looks(10);
    assert!(looks.iter().all(|look| look.state == FileState::Reading && look.reason.is_none()));
    let unread: Vec<_> = looks.iter().map(|look| (&*look.path, look.why_unread())).collect();
    let late = (Path::new("/logs/late.gz"), Some(&Reason::BeingWritten));
    assert_eq!(unread, [(Path::new(A), None), late]);
}

#[test]
fn a_file_is_as_large_as_what_was_read_of_it() {
    let mut input = with(ROOM, |_| ());
    let (first, second) = (lines("a", 0..300), lines("a", 300..400));
    input.fs.write_as_other(A, first.as_bytes());
    input.scan();
    // Since the scan.
    input.fs.append_as_other(A, second.as_bytes());
    assert_eq!(input.read().len(), 400);
    let look = input.looks(10).remove(0);
    let size = (first.len() + second.len()) as u64;
    assert_eq!((look.size, look.read), (size, size));
}

#[test]
fn a_file_that_nobody_reads_is_found_told_and_read() {
    for in_line in [false, true] {
        let mut input = with(ROOM, |settings| settings.close.on_eof = true);
        input.fs.write_as_other(A, lines("a", 0..300).as_bytes());
        input.round();
        let id = *input.readers.ids().first().unwrap();
        input.fs.append_as_other(A, b"more\n");
        input.scan();
        // The bug: the source is woken, and lost on its way.
        if in_line {
            input.readers.lose_in_line(id);
        } else {
            input.readers.lose(id);
        }
        let mut found = Vec::new();
        for _ in 0..20 {
            input.advance(11);
            found.extend(input.round());
            if !found.is_empty() {
                break;
            }
            if !in_line {
                assert!(described(&mut input)[0].ends_with("the watchdog wakes it"));
            }
        }
        assert_eq!(found, ["more"]);
        assert_eq!(input.context.metrics.files_stalled.get(), 1);
    }
}

#[test]
fn the_watchdog_leaves_files_alone_that_have_a_reason() {
    let mut input = with(ROOM, |settings| {
        settings.close.on_eof = true;
        settings.ignore_older = Some(Duration::from_mins(10));
    });
    input.fs.write_as_other(A, (lines("a", 0..300) + "half a line").as_bytes());
    input.fs.write_as_other("/logs/b.gz", &gzip(lines("b", 0..300).as_bytes())[..200]);
    let mut rotted = gzip(lines("c", 0..30_000).as_bytes());
    let middle = rotted.len() / 2;
    rotted[middle..middle + 100].fill(0xff);
    input.fs.write_as_other("/logs/c.gz", &rotted);
    input.round();
    for _ in 0..200 {
        input.advance(11);
        input.round();
    }
    assert_eq!(input.context.metrics.files_stalled.get(), 0);
}

/// Rotates `/logs/a.log` as logrotate does, keeping three rotated files.
fn rotate(input: &mut Input, round: usize) {
    let name = |number: usize| if number == 0 { A.to_owned() } else { format!("{A}.{number}") };
    if round > 0 {
        input.fs.append_as_other(A, b"the last line\n");
    }
    for number in (0..=3).rev().filter(|number| *number < round) {
        if number == 3 {
            input.fs.remove_as_other(name(number));
        } else {
            input.fs.rename_as_other(name(number), name(number + 1));
        }
    }
    input.fs.write_as_other(A, lines(&format!("round {round}"), 0..100).as_bytes());
    for _ in 0..3 {
        input.round();
        input.advance(100);
    }
}

#[test]
fn when_rotation_deletes_a_file_is_told_once_it_was_seen_to_delete_one() {
    let mut input = with(ROOM, |settings| {
        settings.fingerprint.growing = false;
        settings.close.inactive = Some(Duration::from_mins(1));
    });
    let deletions = |input: &mut Input| -> Vec<Option<u64>> {
        let looks = input.looks(1000).into_iter();
        looks.map(|look| look.deleted_in.map(|span| span.as_secs())).collect()
    };
    for round in 0..4 {
        rotate(&mut input, round);
        assert_eq!(deletions(&mut input), vec![None; round + 1], "none was ever deleted");
        input.advance(3300);
    }
    rotate(&mut input, 4);
    let hours = [14_100, 10_500, 6_900, 3_300].map(Some);
    assert_eq!(
        deletions(&mut input),
        hours,
        "the newest is deleted with the fourth rotation from now"
    );
    input.advance(3600);
    let overdue = [3 * 3600, 2 * 3600, 3600, 0].map(Some);
    assert_eq!(deletions(&mut input), overdue, "the rotation that is due may come at once");
    input.advance(3 * 3600);
    assert_eq!(deletions(&mut input), [None; 4], "nobody rotates any more");
    rotate(&mut input, 5);
    assert!(deletions(&mut input).iter().all(Option::is_some));
    // A file deleted by hand does not show what rotation does.
    input.fs.remove_as_other(format!("{A}.1"));
    for _ in 0..3 {
        input.round();
        input.advance(100);
    }
    assert_eq!(deletions(&mut input), [None; 3]);
}

#[test]
fn the_last_error_of_a_file_is_told_with_its_text() {
    let mut input = with(ROOM, |_| {});
    let mut torn = gzip(lines("torn", 0..2000).as_bytes());
    let end = torn.len();
    torn[end - 8..].fill(0xff);
    input.fs.write_as_other("/logs/torn.gz", &torn);
    input.fs.write_as_other(A, lines("a", 0..200).as_bytes());
    input.round();
    let looks = input.looks(10);
    assert_eq!((&*looks[0].path, &looks[0].error), (Path::new(A), &None));
    let error = looks[1].error.clone().expect("it is torn");
    assert!(error.text.starts_with("it fails its integrity check at byte "), "{error:?}");
    assert_eq!(&*error.path, Path::new("/logs/torn.gz"));
    assert!(error.at > Timestamp(0), "{error:?}");
}
