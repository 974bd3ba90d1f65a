//! Entries of every kind against files of every kind.

use super::*;
use crate::fingerprint::Fingerprint;
use crate::glob::Pattern;
use crate::identity::FileIdentity;
use crate::scan::ScanSettings;
use flate2::Compression as Level;
use flate2::write::GzEncoder;
use skidder_os::{OpenMode, write_all_at};
use skidder_registry::filebeat::{Identity, fingerprint_key};
use skidder_testkit::{SimClock, SimFs};
use std::io::Write as _;
use std::path::Path;

/// Long enough for a whole fingerprint, of lines of ten bytes.
fn lines(count: usize, salt: char) -> Vec<u8> {
    (0..count).flat_map(|number| format!("{salt}{number:08}\n").into_bytes()).collect()
}

/// When our own entries were written.
const KNOWN_AT: i64 = 500;

struct World {
    fs: SimFs,
    inputs: Vec<FilestreamSettings>,
    entries: Vec<FilebeatEntry>,
    known: Vec<String>,
    /// Of the known ones.
    meta: skidder_registry::Meta,
    tail: Option<skidder_registry::Tail>,
}

impl World {
    fn new() -> Self {
        let fs = SimFs::new(&SimClock::new());
        fs.create_dir_all(Path::new("/logs/other"), 0o755).unwrap();
        let mut world = Self {
            fs,
            inputs: Vec::new(),
            entries: Vec::new(),
            known: Vec::new(),
            meta: skidder_registry::Meta::default(),
            tail: None,
        };
        world.input("app", "/logs/*");
        world
    }

    fn input(&mut self, id: &str, pattern: &str) {
        let pattern = Pattern::parse(pattern, Path::new("/"), true).unwrap();
        let scan = ScanSettings { patterns: vec![pattern], ..ScanSettings::default() };
        let mut settings = FilestreamSettings::new(id, scan);
        settings.compression = Compression::Auto;
        self.inputs.push(settings);
    }

    fn write(&self, path: &str, bytes: &[u8]) -> Identity {
        let file = self.fs.open_write(Path::new(path), OpenMode::Truncate, 0o644).unwrap();
        write_all_at(&*file, bytes, 0).unwrap();
        let metadata = file.metadata().unwrap();
        Identity::Native { inode: metadata.inode, device: metadata.device }
    }

    fn entry(&mut self, owner: &str, identity: Identity, source: &str, offset: u64) {
        let owner = match owner {
            "log" => Owner::Log,
            id => Owner::Filestream { input: id.to_owned() },
        };
        self.entries.push(FilebeatEntry {
            key: FilebeatEntry::key_of(&owner, &identity, ""),
            owner,
            identity,
            stream: "",
            source: source.into(),
            offset: Some(offset),
            eof: false,
            updated: Some(Timestamp(self.entries.len() as i64)),
            ttl: -1,
        });
    }

    fn plan(&self) -> Vec<Adopted> {
        let inputs: Vec<&FilestreamSettings> = self.inputs.iter().collect();
        let known = |key: &String| {
            let tail = self.tail;
            let cursor = skidder_registry::Cursor { offset: 77, tail, ..Default::default() };
            let meta = self.meta.clone();
            let updated = Timestamp(KNOWN_AT);
            (key.clone(), FileEntry { cursor, meta, updated, ttl: None })
        };
        let known = self.known.iter().map(known).collect();
        plan(&self.fs, &inputs, &self.entries, &known, Timestamp(1000))
    }

    /// FileEntry, input and outcome, one a line.
    fn outcomes(&self) -> Vec<String> {
        let plan = self.plan();
        let mut rows: Vec<String> = plan
            .iter()
            .map(|row| {
                let kept = if row.absent_input { ", kept" } else { "" };
                let device = if row.other_device { ", other device" } else { "" };
                let input = row.input.as_deref().unwrap_or("-");
                let put = if row.put.is_some() { ", put" } else { "" };
                format!(
                    "{} {} {input}: {}{put}{kept}{device}",
                    row.entry,
                    row.path.display(),
                    row.adoption
                )
            })
            .collect();
        rows.sort();
        rows
    }
}

fn complete(bytes: &[u8]) -> Identity {
    Identity::Fingerprint { hex: Fingerprint::of(&bytes[..1024]).hex(), len: None }
}

#[test]
fn each_kind_of_identity_finds_its_file_and_goes_on_at_the_cursor() {
    let mut world = World::new();
    let native = world.write("/logs/native.log", &lines(200, 'n'));
    world.write("/logs/path.log", &lines(200, 'p'));
    let print = lines(200, 'f');
    world.write("/logs/renamed.log.1", &print);
    let marked = world.write("/logs/marked.log", &lines(200, 'm'));
    world.write("/logs/short.log", b"line one\nline two\n");
    let log = world.write("/logs/log.log", &lines(200, 'l'));
    world.entry("app", native, "/logs/native.log", 500);
    world.entry("app", Identity::Path("/logs/path.log".into()), "/logs/path.log", 510);
    world.entry("app", complete(&print), "/logs/renamed.log", 520);
    let Identity::Native { inode, .. } = marked else { panic!() };
    let marked = Identity::InodeMarker { inode, marker: "red".into() };
    world.entry("app", marked, "/logs/marked.log", 530);
    let short = Identity::Fingerprint { hex: fingerprint_key(b"line one\n"), len: Some(9) };
    world.entry("app", short, "/logs/short.log", 9);
    world.entry("log", log, "/logs/log.log", 540);
    assert_eq!(
        world.outcomes(),
        [
            "0 /logs/native.log app: continue at byte 500, put",
            "1 /logs/path.log app: continue at byte 510, put",
            "2 /logs/renamed.log.1 app: continue at byte 520, put",
            "3 /logs/marked.log app: continue at byte 530, put",
            "4 /logs/short.log app: continue at byte 9, put",
            "5 /logs/log.log app: continue at byte 540, put",
        ]
    );
    let rows = world.plan();
    let (key, entry) = rows.iter().find(|row| row.entry == 2).unwrap().put.clone().unwrap();
    assert_eq!(key, format!("filestream::app::{}", complete_key(&print)));
    assert_eq!(*entry.meta.source, *Path::new("/logs/renamed.log.1"));
    let tail = entry.cursor.tail.unwrap();
    assert_eq!((tail.len, tail.crc), (256, crc32fast::hash(&print[520 - 256..520])));
    let (key, entry) = rows.iter().find(|row| row.entry == 4).unwrap().put.clone().unwrap();
    // Ours is known by all that it has now.
    let whole = Fingerprint::of(b"line one\nline two\n").hex();
    assert_eq!(key, format!("filestream::app::fingerprint::{whole}"));
    assert_eq!(entry.meta.fingerprint_len, Some(18));
}

#[test]
fn inputs_that_know_files_by_names_get_keys_with_names() {
    let mut world = World::new();
    world.inputs.clear();
    world.input("native", "/logs/n*");
    world.inputs[0].identity = FileIdentity::Native;
    world.input("path", "/logs/p*");
    world.inputs[1].identity = FileIdentity::Path;
    world.input("first-log", "/logs/l*");
    world.input("second-log", "/logs/l*");
    for input in &mut world.inputs[2..] {
        input.kind = InputKind::Log;
        input.identity = FileIdentity::Native;
        input.shares_keys = true;
    }
    let bytes = lines(200, 'n');
    let native = world.write("/logs/native.log", &bytes);
    let Identity::Native { inode, device } = native else { panic!() };
    world.write("/logs/path.log", &lines(3, 'p'));
    let log = world.write("/logs/log.log", &lines(3, 'l'));
    world.entry("native", complete(&bytes), "/logs/native.log", 10);
    world.entry("path", Identity::Path("/logs/path.log".into()), "/logs/path.log", 10);
    world.entry("log", log.clone(), "/logs/log.log", 10);
    let mut keys: Vec<_> =
        world.plan().into_iter().filter_map(|row| row.put).map(|(key, _)| key).collect();
    keys.sort();
    let Identity::Native { inode: log, .. } = log else { panic!() };
    assert_eq!(
        keys,
        [
            format!("filebeat::logs::native::{log}-{device}"),
            format!("filestream::native::native::{inode}-{device}"),
            "filestream::path::path::/logs/path.log".to_owned(),
        ]
    );
}

#[test]
fn a_stream_of_a_container_goes_to_the_input_that_reads_that_stream() {
    let mut world = World::new();
    world.input("err", "/logs/*");
    world.inputs[1].key_suffix = "stderr";
    let file = world.write("/logs/c.log", &lines(200, 'c'));
    world.entry("err", file.clone(), "/logs/c.log", 10);
    world.entries[0].stream = "stderr";
    world.entry("app", file, "/logs/c.log", 20);
    let rows = world.plan();
    let mut keys: Vec<_> =
        rows.iter().filter_map(|row| row.put.as_ref()).map(|(key, _)| key.as_str()).collect();
    keys.sort_unstable();
    assert_eq!(keys.len(), 2);
    assert!(keys[0].starts_with("filestream::app::") && !keys[0].ends_with("-stderr"), "{keys:?}");
    assert!(keys[1].starts_with("filestream::err::") && keys[1].ends_with("-stderr"), "{keys:?}");
}

fn complete_key(bytes: &[u8]) -> String {
    format!("fingerprint::{}", Fingerprint::of(&bytes[..1024]).hex())
}

#[test]
fn a_cursor_that_cannot_be_right_means_from_the_start() {
    let mut world = World::new();
    let shorter = world.write("/logs/shorter.log", &lines(200, 's'));
    let inside = world.write("/logs/inside.log", &lines(200, 'i'));
    let mut open_end = lines(200, 'o');
    open_end.extend(b"no end");
    let ended = world.write("/logs/ended.log", &open_end);
    let unread = world.write("/logs/unread.log", &lines(200, 'u'));
    world.entry("app", shorter, "/logs/shorter.log", 2001);
    world.entry("app", inside, "/logs/inside.log", 505);
    world.entry("app", ended, "/logs/ended.log", open_end.len() as u64);
    world.entry("app", unread, "/logs/unread.log", 0);
    assert_eq!(
        world.outcomes(),
        [
            "0 /logs/shorter.log app: from the start: it is shorter than what was read of it",
            "1 /logs/inside.log app: from the start: the cursor is inside a line, so the file was \
             written anew since",
            "2 /logs/ended.log app: continue at byte 2006, put",
            "3 /logs/unread.log app: from the start: nothing was delivered of it",
        ]
    );
}

#[test]
fn what_is_not_the_same_file_is_left_out_with_the_reason() {
    let mut world = World::new();
    world.write("/logs/replaced.log", &lines(200, 'r'));
    let reused = world.write("/logs/reused.log", &lines(200, 'x'));
    world.write("/logs/other/elsewhere.log", &lines(200, 'e'));
    let gone = Identity::Native { inode: 999_999, device: 1 };
    world.entry("app", gone.clone(), "/logs/replaced.log", 10);
    world.entry("app", gone.clone(), "/logs/gone.log", 10);
    world.entry("app", reused, "/logs/something.else", 10);
    world.entry("log", gone.clone(), "/logs/other/elsewhere.log", 10);
    world.entry("app", gone, "/logs/removed.log", 10);
    world.entries[4].ttl = 0;
    let unknown = Identity::Other { name: "color".into(), value: "red".into() };
    world.entry("app", unknown, "/logs/replaced.log", 10);
    assert_eq!(
        world.outcomes(),
        [
            "0 /logs/replaced.log app: left out: the file is gone, and another one is at its path",
            "1 /logs/gone.log app: left out: the file is not there",
            "2 /logs/something.else app: left out: its inode is that of a file with an unrelated name",
            "3 /logs/other/elsewhere.log -: left out: the file is there, and no input of the configuration \
             reads it",
            "4 /logs/removed.log app: left out: marked for removal",
            "5 /logs/replaced.log app: left out: not of an input that reads files, or recognised by \
             something unknown",
        ]
    );
}

#[test]
fn a_device_with_another_number_is_the_same_if_path_and_inode_are() {
    let mut world = World::new();
    let Identity::Native { inode, .. } = world.write("/logs/a.log", &lines(200, 'a')) else {
        panic!()
    };
    world.entry("app", Identity::Native { inode, device: 4242 }, "/logs/a.log", 100);
    assert_eq!(world.outcomes(), ["0 /logs/a.log app: continue at byte 100, put, other device"]);
}

#[test]
fn an_entry_of_log_inputs_goes_to_every_input_that_reads_the_file() {
    let mut world = World::new();
    world.input("second", "/logs/a*");
    let file = world.write("/logs/a.log", &lines(200, 'a'));
    world.entry("log", file.clone(), "/logs/a.log", 100);
    // The entry of the input itself says more.
    world.entry("second", file, "/logs/a.log", 200);
    assert_eq!(
        world.outcomes(),
        [
            "0 /logs/a.log app: continue at byte 100, put",
            "0 /logs/a.log second: left out: a newer entry is of the same file",
            "1 /logs/a.log second: continue at byte 200, put",
        ]
    );
}

#[test]
fn entries_of_inputs_that_are_not_configured_are_kept_for_them() {
    let mut world = World::new();
    let file = world.write("/logs/other/b.log", &lines(200, 'b'));
    world.entry("later", file, "/logs/other/b.log", 100);
    let gone = Identity::Native { inode: 999_999, device: 1 };
    world.entry("later", gone, "/logs/other/gone.log", 100);
    assert_eq!(
        world.outcomes(),
        [
            "0 /logs/other/b.log later: continue at byte 100, put, kept",
            "1 /logs/other/gone.log later: left out: the file is not there",
        ]
    );
    let rows = world.plan();
    assert!(rows[0].put.as_ref().unwrap().0.starts_with("filestream::later::fingerprint::"));
}

#[test]
fn an_input_that_has_an_id_now_takes_over_what_it_had_without() {
    let mut world = World::new();
    let file = world.write("/logs/a.log", &lines(200, 'a'));
    world.entry("", file, "/logs/a.log", 100);
    assert_eq!(world.outcomes(), ["0 /logs/a.log app: continue at byte 100, put"]);
}

#[test]
fn what_our_own_registry_knows_stays() {
    let mut world = World::new();
    let bytes = lines(200, 'a');
    let file = world.write("/logs/a.log", &bytes);
    world.entry("app", file, "/logs/a.log", 100);
    world.known.push(format!("filestream::app::{}", complete_key(&bytes)));
    assert_eq!(world.outcomes(), ["0 /logs/a.log app: known already, at byte 77"]);
}

#[test]
fn what_filebeat_read_behind_us_is_taken_and_what_it_read_before_us_is_not() {
    let bytes = lines(200, 'a');
    let outcome = |updated: i64, offset: u64| {
        let mut world = World::new();
        let file = world.write("/logs/a.log", &bytes);
        world.entry("app", file, "/logs/a.log", offset);
        world.entries[0].updated = Some(Timestamp(updated));
        world.known.push(format!("filestream::app::{}", complete_key(&bytes)));
        world.outcomes().concat()
    };
    assert_eq!(outcome(KNOWN_AT + 1, 100), "0 /logs/a.log app: continue at byte 100, put");
    // We stood further before Filebeat ran, or it ran before us.
    assert_eq!(outcome(KNOWN_AT + 1, 70), "0 /logs/a.log app: known already, at byte 77");
    assert_eq!(outcome(KNOWN_AT, 100), "0 /logs/a.log app: known already, at byte 77");
}

#[test]
fn a_cursor_of_ours_in_a_file_that_was_written_anew_gives_way_to_a_later_one() {
    let mut world = World::new();
    let bytes = lines(200, 'a');
    let file = world.write("/logs/a.log", &bytes);
    world.entry("app", file, "/logs/a.log", 70);
    world.entries[0].updated = Some(Timestamp(KNOWN_AT + 1));
    world.known.push(format!("filestream::app::{}", complete_key(&bytes)));
    world.tail = Some(skidder_registry::Tail { len: 10, crc: 0 });
    assert_eq!(world.outcomes(), ["0 /logs/a.log app: continue at byte 70, put"]);
    world.entries[0].updated = Some(Timestamp(KNOWN_AT));
    assert_eq!(world.outcomes(), ["0 /logs/a.log app: known already, at byte 77"]);
}

#[test]
fn an_entry_of_ours_from_when_the_file_was_shorter_gives_way_to_a_later_one() {
    let mut world = World::new();
    let seen = b"line one\nline two\n";
    world.write("/logs/a.log", b"line one\nline two\nline three\nline four\n");
    let short = Identity::Fingerprint { hex: fingerprint_key(seen), len: Some(18) };
    world.entry("app", short, "/logs/a.log", 29);
    let key = format!("filestream::app::fingerprint::{}", Fingerprint::of(seen).hex());
    world.known.push(key.clone());
    world.meta.source = Path::new("/logs/a.log").into();
    world.meta.fingerprint_len = Some(18);
    assert_eq!(world.outcomes(), ["0 /logs/a.log app: known already, at byte 77"]);
    world.entries[0].updated = Some(Timestamp(KNOWN_AT + 1));
    world.tail = Some(skidder_registry::Tail { len: 10, crc: 0 });
    assert_eq!(world.outcomes(), ["0 /logs/a.log app: continue at byte 29, put"]);
    assert_eq!(world.plan()[0].remove, Some(key));
}

#[test]
fn a_short_file_with_another_name_is_found_if_only_one_can_be_meant() {
    let seen = b"line one\nline two\n";
    let short = || Identity::Fingerprint { hex: fingerprint_key(seen), len: Some(18) };
    let outcome = |files: &[(&str, Vec<u8>)]| {
        let mut world = World::new();
        for (path, bytes) in files {
            world.write(path, bytes);
        }
        world.entry("app", short(), "/logs/a.log", 18);
        world.outcomes().concat()
    };
    let grown = [seen.as_slice(), b"line three\n"].concat();
    let long = [seen.to_vec(), lines(200, 'l')].concat();
    let found = "continue at byte 18, put";
    // Rotated, and grown.
    assert_eq!(
        outcome(&[("/logs/a.log.1", grown.clone())]),
        format!("0 /logs/a.log.1 app: {found}")
    );
    // As it was; and grown to a whole fingerprint, as Filebeat finds it.
    assert_eq!(outcome(&[("/logs/b.log", seen.to_vec())]), format!("0 /logs/b.log app: {found}"));
    assert_eq!(outcome(&[("/logs/b.log", long.clone())]), format!("0 /logs/b.log app: {found}"));
    // Many files may begin so.
    let gone = "0 /logs/a.log app: left out: the file is not there";
    assert_eq!(outcome(&[("/logs/b.log", grown.clone())]), gone);
    assert_eq!(outcome(&[("/logs/a.log.1", grown.clone()), ("/logs/a.log.2", grown)]), gone);
    let other = "0 /logs/a.log app: left out: the file at its path does not begin with what Filebeat \
                 saw, so it is read from the start";
    assert_eq!(outcome(&[("/logs/a.log", lines(3, 'o')), ("/logs/b.log", long)]), other);
}

#[test]
fn files_that_begin_alike_get_fingerprints_that_tell_them_apart() {
    let mut world = World::new();
    let header = lines(150, 'h');
    let with = |end: &str| [&header, end.as_bytes()].concat();
    let one = world.write("/logs/one.log", &with("first\n"));
    let two = world.write("/logs/two.log", &with("second\n"));
    let longer = world.write("/logs/longer.log", &with("first\nand more\n"));
    let copy = world.write("/logs/copy.log", &with("second\n"));
    for (file, name) in [(one, "one"), (two, "two"), (longer, "longer"), (copy, "copy")] {
        world.entry("app", file, &format!("/logs/{name}.log"), 1500);
    }
    assert_eq!(
        world.outcomes(),
        [
            "0 /logs/one.log app: continue at byte 1500, put",
            "1 /logs/two.log app: left out: it has the content of `/logs/copy.log`",
            "2 /logs/longer.log app: continue at byte 1500, put",
            "3 /logs/copy.log app: continue at byte 1500, put",
        ]
    );
    let mut keys: Vec<_> =
        world.plan().into_iter().filter_map(|row| row.put).map(|(key, _)| key).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 3);
}

#[test]
fn compressed_files_keep_their_decompressed_cursor_and_that_they_are_finished() {
    let mut world = World::new();
    let (half, done) = (lines(500, 'h'), lines(500, 'd'));
    for (path, bytes) in [("/logs/half.gz", &half), ("/logs/done.gz", &done)] {
        let mut gzip = GzEncoder::new(Vec::new(), Level::default());
        gzip.write_all(bytes).unwrap();
        world.write(path, &gzip.finish().unwrap());
    }
    world.entry("app", complete(&half), "/logs/half", 2500);
    world.entry("app", complete(&done), "/logs/done.gz", 5000);
    world.entries[1].eof = true;
    assert_eq!(
        world.outcomes(),
        [
            "0 /logs/half.gz app: continue at byte 2500, put",
            "1 /logs/done.gz app: finished: read to its end, put",
        ]
    );
    let rows = world.plan();
    let (_, entry) = rows.iter().find(|row| row.entry == 1).unwrap().put.clone().unwrap();
    assert_eq!((entry.cursor.offset, entry.cursor.eof), (5000, true));
}

#[test]
fn a_file_too_short_for_a_static_fingerprint_is_read_from_the_start() {
    let mut world = World::new();
    world.inputs[0].fingerprint.growing = false;
    let file = world.write("/logs/short.log", b"line one\n");
    world.entry("app", file, "/logs/short.log", 9);
    let outcome = "0 /logs/short.log app: from the start: it is too short to be recognised again";
    assert_eq!(world.outcomes(), [outcome]);
}
