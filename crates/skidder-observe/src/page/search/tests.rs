//! The lines found, and where a search ends.

use super::run::Reason;
use super::*;
use flate2::write::GzEncoder;
use skidder_os::Fs;
use skidder_testkit::{SimClock, SimFs};
use std::io::Write as _;

struct World {
    clock: SimClock,
    fs: SimFs,
    files: Vec<Target>,
}

impl World {
    fn new(files: &[(&str, Vec<u8>)]) -> Self {
        let clock = SimClock::new();
        let fs = SimFs::new(&clock);
        for (path, bytes) in files {
            fs.write_as_other(path, bytes);
        }
        let files = files.iter().map(|(path, _)| target(&fs, path));
        let files = files.collect();
        Self { clock, fs, files }
    }

    /// The results of a query, as path, offset and line, and why it ends.
    fn ask(&self, query: &str) -> (Vec<(String, u64, String)>, Option<Reason>) {
        let question = Question::parse(&Query::parse(query)).expect("a question");
        let question = Question { zone: TimeZone::UTC, ..question };
        let mut found = Vec::new();
        let mut search = Search::new(&question, &self.fs, &self.clock, 0);
        let reason = search.all(&self.files, &mut |record| {
            let one = &record["match"];
            if let Some(line) = one["line"].as_str() {
                let path = one["path"].as_str().unwrap_or_default().to_owned();
                found.push((path, one["offset"].as_u64().unwrap_or(u64::MAX), line.to_owned()));
            }
            true
        });
        (found, reason)
    }
}

/// A file as the scanner saw it.
fn target(fs: &dyn Fs, path: impl AsRef<Path>) -> Target {
    let id = fs.metadata(path.as_ref()).expect("a file").id();
    Target { path: path.as_ref().to_owned(), id, modified: 0 }
}

#[test]
fn what_was_swapped_for_a_link_or_another_file_since_the_scan_is_not_read() {
    let world = World::new(&[("/logs/app.log", b"mine: a needle\n".to_vec())]);
    world.fs.write_as_other("/root/secret", b"a needle that only root may see\n");
    assert_eq!(world.ask("q=needle").0.len(), 1);
    // Its inode stays in use.
    world.fs.rename_as_other("/logs/app.log", "/logs/app.log.old");
    world.fs.symlink_as_other("/root/secret", "/logs/app.log");
    assert_eq!(world.ask("q=needle").0, []);
    world.fs.remove_as_other("/logs/app.log");
    world.fs.pipe_as_other("/logs/app.log");
    assert_eq!(world.ask("q=needle").0, []);
    world.fs.remove_as_other("/logs/app.log");
    world.fs.write_as_other("/logs/app.log", b"another needle\n");
    assert_eq!(world.ask("q=needle").0, [], "the next scan tells of it");
}

/// The owner of a directory swaps a log for a link to a file that only root may read, again and again, while searches run.
#[test]
fn a_race_of_links_against_searches_never_shows_another_file() {
    let place = tempfile::tempdir().expect("a directory");
    let (log, link, kept) =
        (place.path().join("app.log"), place.path().join("link"), place.path().join("kept"));
    let secret = place.path().join("secret");
    std::fs::write(&log, "mine: a needle\n").expect("written");
    std::fs::write(&secret, "secret: a needle\n").expect("written");
    let fs = skidder_os::RealFs;
    let files = vec![target(&fs, &log)];
    let stop = std::sync::atomic::AtomicBool::new(false);
    let (mut mine, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                // Each is one step, so that there is a file at the path at each moment.
                std::os::unix::fs::symlink(&secret, &link).expect("a link");
                std::fs::hard_link(&log, &kept).expect("a name");
                std::fs::rename(&link, &log).expect("the link is there");
                std::fs::rename(&kept, &log).expect("the log is back");
            }
        });
        let question = Question::parse(&Query::parse("q=needle")).expect("a question");
        // Until both were met often.
        while mine < 200 || refused < 200 {
            let clock = SimClock::new();
            let mut search = Search::new(&question, &fs, &clock, 0);
            search.all(&files, &mut |record| {
                let line = record["match"]["line"].as_str().unwrap_or_default();
                let is_secret = line.contains("secret");
                if is_secret {
                    stop.store(true, Ordering::Relaxed);
                }
                assert!(!is_secret, "{record}");
                mine += usize::from(line.contains("mine"));
                refused += usize::from(!record["problem"].is_null());
                true
            });
        }
        stop.store(true, Ordering::Relaxed);
    });
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).expect("memory");
    encoder.finish().expect("memory")
}

fn found(path: &str, offset: u64, line: &str) -> (String, u64, String) {
    (path.to_owned(), offset, line.to_owned())
}

#[test]
fn lines_are_found_in_plain_and_compressed_files_with_their_offsets() {
    let mut text = b"first Needle\r\n".to_vec();
    for number in 0..100_000 {
        text.extend_from_slice(format!("line {number} of many\n").as_bytes());
    }
    let offset = text.len() as u64;
    text.extend_from_slice(b"{\"level\":\"error\",\"m\":\"needle\"}\nno end, but a needle");
    let last = offset + 31;
    let world = World::new(&[("/a.log", text.clone()), ("/a.log.1.gz", gzip(&text))]);
    let (all, reason) = world.ask("q=needle");
    assert_eq!(reason, Some(Reason::All));
    let of = |path: &str| {
        [
            found(path, last, "no end, but a needle"),
            found(path, offset, "{\"level\":\"error\",\"m\":\"needle\"}"),
            found(path, 0, "first Needle"),
        ]
    };
    assert_eq!(all, [of("/a.log"), of("/a.log.1.gz")].concat());
    assert_eq!(world.ask("q=level:ERROR").0.len(), 2, "fields of lines that are JSON");
    assert_eq!(world.ask("q=needle+-first").0.len(), 4);
    let (some, reason) = world.ask("q=line&limit=7");
    assert_eq!((some.len(), reason), (7, Some(Reason::Enough)));
    assert_eq!(some[0].2, "line 99999 of many", "the newest of the newest file");
}

#[test]
fn a_time_is_looked_at_line_by_line_and_lines_without_one_have_that_of_the_line_before() {
    let text = b"no time yet x\n2026-11-22T10:00:00Z early x\n2026-11-22T11:00:00Z right x\n\tat continued x\n\
        2026-11-22T12:00:00Z late x\n\tat continued too x\n";
    let world = World::new(&[("/a.log", text.to_vec())]);
    let lines = |query: &str| -> Vec<String> {
        world.ask(query).0.into_iter().map(|(_, _, line)| line).collect()
    };
    let wanted = ["\tat continued x", "2026-11-22T11:00:00Z right x", "no time yet x"];
    assert_eq!(lines("q=x&from=2026-11-22T10:30:00Z&to=2026-11-22T11:30:00Z"), wanted);
    assert_eq!(lines("from=2026-11-22T11:30:00Z").len(), 3);
}

#[test]
fn a_line_beyond_the_bound_is_looked_at_once_and_damage_is_told() {
    let mut text = b"needle ".to_vec();
    text.resize(3 << 20, b'x');
    text.extend_from_slice(b" needle\nneedle behind\n");
    let mut damaged = gzip(b"a needle before\n");
    damaged.extend_from_slice(&gzip(b"another\n")[..14]);
    let length = damaged.len();
    damaged[length - 3] ^= 0xff;
    let world = World::new(&[("/long.log", text), ("/damaged.gz", damaged)]);
    let (all, reason) = world.ask("q=needle");
    assert_eq!(reason, Some(Reason::All));
    let lines: Vec<(&str, usize)> =
        all.iter().map(|(path, _, line)| (&**path, line.len())).collect();
    assert_eq!(lines, [("/long.log", 13), ("/long.log", SHOWN_BYTES), ("/damaged.gz", 15)]);
}

/// The results of a query, in the order of its ranks, with the lines before and behind.
fn ranked(world: &World, query: &str) -> Vec<[String; 3]> {
    let question = Question::parse(&Query::parse(query)).expect("a question");
    let question = Question { zone: TimeZone::UTC, ..question };
    let mut found = Vec::new();
    let mut search = Search::new(&question, &world.fs, &world.clock, 0);
    search.all(&world.files, &mut |record| {
        let one = &record["match"];
        if let Some(rank) = one["rank"].as_i64() {
            let text = |name: &str| one[name].as_str().unwrap_or("-").to_owned();
            found.push((
                rank,
                one["offset"].as_u64(),
                [text("before"), text("line"), text("after")],
            ));
        }
        true
    });
    found.sort_by_key(|(rank, offset, _)| std::cmp::Reverse((*rank, *offset)));
    let limit = question.limit;
    found.into_iter().map(|(_, _, lines)| lines).take(limit).collect()
}

#[test]
fn the_newest_lines_come_first_over_all_files_each_with_the_lines_beside_it() {
    let line = |minute: usize, name: &str| format!("2026-11-22T10:{minute:02}:00Z {name} x\n");
    // Two logs that are written at once, and one of them rotated: no order of whole files is right.
    let even: String = (0..30).map(|number| line(number * 2, "even")).collect();
    let odd: String = (0..30).map(|number| line(number * 2 + 1, "odd")).collect();
    let (old, new) = odd.split_at(odd.len() / 2);
    let files = [
        ("/odd.log", new.as_bytes().to_vec()),
        ("/even.log", even.into_bytes()),
        ("/odd.log.1.gz", gzip(old.as_bytes())),
    ];
    let mut world = World::new(&files);
    // Each was changed last when its last line was written.
    for (file, minute) in world.files.iter_mut().zip([59, 58, 29]) {
        file.modified = (1_795_341_600 + minute * 60) * 1_000_000_000;
    }
    let all = ranked(&world, "q=x");
    assert_eq!(all.len(), 60);
    for (at, [before, found, after]) in all.iter().enumerate() {
        let minute = 59 - at;
        let name = if minute % 2 == 0 { "even" } else { "odd" };
        assert_eq!(*found, line(minute, name).trim_end());
        let beside = |minute: usize| line(minute, name).trim_end().to_owned();
        // The first line of a file has none before it.
        assert!(*before == "-" || *before == beside(minute - 2), "{before}");
        assert!(*after == "-" || *after == beside(minute + 2), "{after}");
    }
    for limit in [1, 7, 31, 45] {
        assert_eq!(ranked(&world, &format!("q=x&limit={limit}")), all[..limit], "{limit}");
    }
    let recent = ranked(&world, "q=x&from=2026-11-22T10:50:00Z");
    assert_eq!(recent, all[..10]);
}

#[test]
fn a_long_plain_file_is_read_from_its_end_as_far_as_is_needed() {
    let mut text = String::new();
    let mut offsets = Vec::new();
    // Over many blocks; every seventh line is a needle, and some lines are as long as a block.
    for number in 0..40_000 {
        offsets.push(text.len());
        let what = if number % 7 == 0 { "needle" } else { "straw" };
        let length = if number % 9_001 == 5 { 3 << 20 } else { number % 200 };
        text.push_str(&format!("{number} {what} {}\n", "y".repeat(length)));
    }
    let world = World::new(&[("/a.log", text.clone().into_bytes())]);
    let (all, reason) = world.ask("q=needle&limit=2000");
    assert_eq!((all.len(), reason), (2000, Some(Reason::Enough)));
    for (at, (_, offset, line)) in all.iter().enumerate() {
        let number = 39_998 - at * 7;
        assert!(line.starts_with(&format!("{number} needle ")), "{at}: {}", &line[..20]);
        assert_eq!(*offset, offsets[number] as u64);
    }
    let straw: Vec<u64> = world.ask("q=5+straw&limit=2000").0.iter().map(|hit| hit.1).collect();
    assert!(straw.windows(2).all(|pair| pair[0] > pair[1]), "each once, the last one first");
    // Far beyond the needed lines nothing is read.
    let question = Question::parse(&Query::parse("q=needle&limit=5")).expect("a question");
    let mut search = Search::new(&question, &world.fs, &world.clock, 0);
    search.all(&world.files, &mut |_| true);
    let bytes = search.summary(Reason::All, 1)["bytes"].as_u64().expect("a number");
    assert!(bytes < 3 << 20, "{bytes} of {}", text.len());
    let first = world.ask("q=0+needle+-1+-2+-3+-4+-5+-6+-7+-8+-9").0;
    assert_eq!(first.last().map(|hit| hit.1), Some(0), "the first line, too");
}

#[test]
fn a_search_ends_with_its_listener() {
    let world = World::new(&[("/a.log", b"x\nx\nx\n".to_vec())]);
    let question = Question::parse(&Query::parse("q=x")).expect("a question");
    let mut search = Search::new(&question, &world.fs, &world.clock, 0);
    let mut taken = 0;
    let reason = search.all(&world.files, &mut |_| {
        taken += 1;
        taken < 2
    });
    assert_eq!((reason, taken), (None, 2));
}

#[test]
fn a_question_without_an_end_of_its_own_is_refused() {
    for (query, part) in
        [("", "`q` has the words"), ("q=x&from=now", "`from` is `now`"), ("q=x&limit=y", "`limit`")]
    {
        let refused = Question::parse(&Query::parse(query)).err().unwrap_or_default();
        assert!(refused.contains(part), "{refused}");
    }
}
