//! Rotations between any two looks of a scan, and a header that is read while journald writes it.

use super::entries::{Entries, Start};
use super::fields::put_message;
use super::files;
use super::matches::Matches;
use super::place::Place;
use skidder_os::{DirEntry, File, Fs, Metadata, OpenMode, RealFs};
use skidder_testkit::journal::{JournalOptions, JournalWriter};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The file system of the machine; before one of its operations the journal is rotated.
struct Rotated {
    directory: PathBuf,
    /// Operations until the rotation, the writer, and the number of entries.
    state: Mutex<(u64, JournalWriter, u64)>,
}

impl Rotated {
    fn new(directory: &Path, after: u64) -> Self {
        let system = directory.join("system.journal");
        let mut writer = JournalWriter::create(&system, JournalOptions::default());
        writer.entry(1, 1, &[b"MESSAGE=1"]);
        Self { directory: directory.to_owned(), state: Mutex::new((after, writer, 1)) }
    }

    fn step(&self) {
        let mut state = self.state.lock().unwrap();
        let (left, writer, count) = &mut *state;
        *left = left.wrapping_sub(1);
        if *left != 0 {
            return;
        }
        let mut put = |writer: &mut JournalWriter| {
            *count += 1;
            writer.entry(*count, *count, &[format!("MESSAGE={count}").as_bytes()]);
        };
        put(writer);
        writer.set_state(2);
        let system = self.directory.join("system.journal");
        std::fs::rename(&system, self.directory.join("system@1.journal")).unwrap();
        *writer = JournalWriter::create(&system, JournalOptions::default());
        put(writer);
    }
}

impl Fs for Rotated {
    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.step();
        RealFs.open(path)
    }

    fn open_write(
        &self,
        path: &Path,
        mode: OpenMode,
        permissions: u32,
    ) -> io::Result<Box<dyn File>> {
        RealFs.open_write(path, mode, permissions)
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.step();
        RealFs.metadata(path)
    }

    fn symlink_metadata(&self, path: &Path) -> io::Result<Metadata> {
        RealFs.symlink_metadata(path)
    }

    fn read_dir(&self, directory: &Path, each: &mut dyn FnMut(DirEntry<'_>)) -> io::Result<()> {
        self.step();
        RealFs.read_dir(directory, each)
    }

    fn scan_dir(
        &self,
        directory: &Path,
        wanted: &mut dyn FnMut(&OsStr) -> bool,
        each: &mut dyn FnMut(&OsStr, Metadata),
    ) -> io::Result<()> {
        RealFs.scan_dir(directory, wanted, each)
    }

    fn canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        RealFs.canonicalize(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealFs.rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealFs.hard_link(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        RealFs.remove_file(path)
    }

    fn create_dir_all(&self, path: &Path, permissions: u32) -> io::Result<()> {
        RealFs.create_dir_all(path, permissions)
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        RealFs.sync_dir(directory)
    }
}

#[test]
fn a_rotation_between_any_two_looks_loses_and_repeats_nothing() {
    for after in 1..16 {
        let directory = tempfile::tempdir().unwrap();
        let fs = Arc::new(Rotated::new(directory.path(), after));
        let place = files::Place::path(Path::new("/"), &directory.path().to_string_lossy());
        let mut entries = Entries::new(
            fs,
            place.unwrap(),
            Arc::new(Matches::default()),
            Start::Head,
            Place::default(),
        );
        let mut problem = |path: &Path, error: &str| panic!("{}: {error}", path.display());
        let mut messages = Vec::new();
        for _ in 0..4 {
            entries.scan(&mut problem);
            entries.refresh(&mut problem);
            let mut items = Vec::new();
            while entries.next(&mut items, &mut problem).is_some() {
                put_message(&items, &mut messages);
                items.clear();
            }
        }
        assert_eq!(String::from_utf8(messages).unwrap(), "123", "after {after} operations");
    }
}

#[test]
fn an_entry_whose_header_was_read_while_it_was_written_is_not_lost() {
    let directory = tempfile::tempdir().unwrap();
    let system = directory.path().join("system.journal");
    let mut writer = JournalWriter::create(&system, JournalOptions::default());
    writer.entry(1, 1, &[b"MESSAGE=1"]);
    let bytes_of_arena = || std::fs::read(&system).unwrap()[96..104].to_vec();
    let before = bytes_of_arena();
    writer.entry(2, 2, &[b"MESSAGE=2"]);
    let after = bytes_of_arena();
    // The end of before the second entry, and the number of entries of after it.
    writer.put(96, &before);
    let place = files::Place::path(Path::new("/"), &directory.path().to_string_lossy());
    let fs = Arc::new(RealFs);
    let matches = Arc::new(Matches::default());
    let mut entries = Entries::new(fs, place.unwrap(), matches, Start::Head, Place::default());
    let mut problem = |path: &Path, error: &str| panic!("{}: {error}", path.display());
    entries.scan(&mut problem);
    writer.put(96, &after);
    let (mut messages, mut items) = (Vec::new(), Vec::new());
    while entries.next(&mut items, &mut problem).is_some() {
        put_message(&items, &mut messages);
        items.clear();
    }
    assert_eq!(String::from_utf8(messages).unwrap(), "12");
}
