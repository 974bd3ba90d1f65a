//! Which files a scan finds.

use super::*;
use skidder_testkit::{Fault, Operation, SimClock, SimFs};

fn disk(files: &[&str]) -> SimFs {
    let fs = SimFs::new(&SimClock::new());
    for file in files {
        fs.write_as_other(file, b"x");
    }
    fs
}

fn settings(patterns: &[&str]) -> ScanSettings {
    let parse = |text: &&str| Pattern::parse(text, Path::new("/"), true).expect("a good pattern");
    ScanSettings { patterns: patterns.iter().map(parse).collect(), ..ScanSettings::default() }
}

fn found(fs: &SimFs, settings: &ScanSettings) -> Vec<String> {
    let (files, problems) = scan(fs, settings);
    assert!(problems.is_empty(), "{problems:?}");
    let mut paths: Vec<String> =
        files.iter().map(|file| file.path.to_string_lossy().into_owned()).collect();
    paths.sort();
    paths
}

fn regex(text: &str) -> Vec<Regex> {
    vec![Regex::new(text).expect("a good pattern")]
}

#[test]
fn patterns_find_regular_files_once() {
    let fs = disk(&["/l/a.log", "/l/.b.log", "/l/c.txt", "/l/d/e.log", "/l/d/f/g.log", "/m/h.log"]);
    fs.create_dir_as_other("/l/dir.log");
    fs.pipe_as_other("/l/pipe.log");
    type Case = (&'static [&'static str], &'static [&'static str]);
    let cases: &[Case] = &[
        (&["/l/*.log"], &["/l/.b.log", "/l/a.log"]),
        (&["/l/a.log"], &["/l/a.log"]),
        (&["/l/a.log", "/l/a*", "/l/*"], &["/l/.b.log", "/l/a.log", "/l/c.txt"]),
        (&["/l/*/*.log"], &["/l/d/e.log"]),
        (&["/l/**/*.log"], &["/l/.b.log", "/l/a.log", "/l/d/e.log", "/l/d/f/g.log"]),
        (&["/?/[ah].log"], &["/l/a.log", "/m/h.log"]),
        (&["/nowhere/*.log", "/l/c.txt/*"], &[]),
    ];
    for (patterns, expected) in cases {
        assert_eq!(found(&fs, &settings(patterns)), *expected, "{patterns:?}");
    }
}

#[test]
fn files_are_included_and_excluded_by_their_whole_path() {
    let fs = disk(&["/l/a.log", "/l/a.log.gz", "/l/b.log"]);
    let mut settings = settings(&["/l/*"]);
    settings.exclude_files = regex(r"\.gz$");
    assert_eq!(found(&fs, &settings), ["/l/a.log", "/l/b.log"]);
    settings.include_files = regex("^/l/a");
    assert_eq!(found(&fs, &settings), ["/l/a.log"], "what is excluded stays so");
}

#[test]
fn links_to_files_are_followed_only_if_asked_for() {
    let fs = disk(&["/real/a.log", "/real/b.txt"]);
    fs.create_dir_as_other("/l");
    fs.symlink_as_other("/real/a.log", "/l/link.log");
    fs.symlink_as_other("/real/b.txt", "/l/other.log");
    fs.symlink_as_other("/real/gone.log", "/l/gone.log");
    let mut settings = settings(&["/l/*.log"]);
    assert!(found(&fs, &settings).is_empty());
    settings.symlinks = true;
    assert_eq!(found(&fs, &settings), ["/l/link.log", "/l/other.log"]);
    settings.include_files = regex(r"\.log$");
    assert_eq!(found(&fs, &settings), ["/l/link.log"], "the target counts too");
    let (files, _) = scan(&fs, &settings);
    let target = fs.peek_metadata("/real/a.log").expect("it is there");
    assert_eq!(files[0].metadata.inode, target.inode);
}

#[test]
fn links_to_directories_are_entered() {
    let fs = disk(&["/real/a.log"]);
    fs.create_dir_as_other("/l");
    fs.symlink_as_other("/real", "/l/d");
    assert_eq!(found(&fs, &settings(&["/l/*/*.log"])), ["/l/d/a.log"]);
}

#[test]
fn links_that_lead_to_themselves_are_no_files_and_no_problem() {
    let fs = disk(&["/l/a.log", "/l/d/b.log"]);
    fs.symlink_as_other("/l/self.log", "/l/self.log");
    fs.symlink_as_other("/l/two.log", "/l/one.log");
    fs.symlink_as_other("/l/one.log", "/l/two.log");
    fs.symlink_as_other("/l/loop", "/l/loop");
    let patterns = ["/l/*.log", "/l/*/*.log", "/l/**/*.log", "/l/self.log"];
    let with_links = |patterns| ScanSettings { symlinks: true, ..settings(patterns) };
    assert_eq!(found(&fs, &with_links(&patterns)), ["/l/a.log", "/l/d/b.log"]);
    // A directory that the configuration names cannot be listed.
    let (_, problems) = scan(&fs, &with_links(&["/l/loop/*.log"]));
    assert_eq!(problems[0].path, Path::new("/l/loop"));
}

#[test]
fn directories_that_cannot_be_listed_are_told_and_missing_ones_are_not() {
    let fs = disk(&["/l/a.log", "/m/b.log"]);
    let fault = Fault::nth(1, io::ErrorKind::PermissionDenied).of(Operation::List).on("/l");
    fs.inject(fault);
    let (files, problems) = scan(&fs, &settings(&["/l/*", "/m/*", "/n/*"]));
    assert_eq!(files.len(), 1);
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].path, Path::new("/l"));
}
