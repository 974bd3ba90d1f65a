//! Files that the test's own writer makes: both layouts, all compressions, damage, and growth while they are read.

use crate::{Cursor, Entry, Id, JournalError, JournalFile, PAYLOAD_BYTES_MAX};
use skidder_os::{Fs, RealFs};
use skidder_testkit::journal::{Compression, JournalOptions, JournalWriter};
use std::io::Write;
use std::path::{Path, PathBuf};

fn xz(field: &[u8]) -> Vec<u8> {
    let options = lzma_rust2::XzOptions::with_preset(0);
    let mut xz = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    xz.write_all(field).unwrap();
    xz.finish().unwrap()
}

fn lz4(field: &[u8]) -> Vec<u8> {
    let length = (field.len() as u64).to_le_bytes();
    [&length[..], &lz4_flex::block::compress(field)].concat()
}

fn zstd(field: &[u8]) -> Vec<u8> {
    let mut out = vec![0; zstd_safe::compress_bound(field.len())];
    let length = zstd_safe::compress(&mut out[..], field, 1).unwrap();
    out.truncate(length);
    out
}

pub(crate) const COMPRESSIONS: [Option<Compression>; 4] = [
    None,
    Some(Compression { object: 1, file: 1, pack: xz }),
    Some(Compression { object: 2, file: 2, pack: lz4 }),
    Some(Compression { object: 4, file: 8, pack: zstd }),
];

pub(crate) fn place() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("system.journal");
    (directory, path)
}

pub(crate) fn open(path: &Path) -> JournalFile {
    JournalFile::open(RealFs.open(path).unwrap()).unwrap()
}

fn text(number: u64) -> String {
    format!("MESSAGE={number} {}", "long ".repeat(number as usize % 40))
}

/// Writes entries with these numbers.
fn fill(writer: &mut JournalWriter, numbers: std::ops::Range<u64>) -> Vec<u64> {
    let write = |number| {
        let message = text(number);
        writer.entry(number, number * 10, &[message.as_bytes(), b"_PID=1", b"_COMM=init"])
    };
    numbers.map(write).collect()
}

/// The messages from an index on, and the places of damage.
fn messages(file: &mut JournalFile, first: u64) -> (Vec<String>, Vec<u64>) {
    let (mut all, mut damage, mut items) = (Vec::new(), Vec::new(), Vec::new());
    for index in first..file.len() {
        let mut field = Vec::new();
        let entry = file.entry(index, &mut items);
        match entry.and_then(|_| file.data(items[0], &mut field)) {
            Ok(()) => all.push(String::from_utf8(field).unwrap()),
            Err(JournalError::Damaged { offset, .. }) => damage.push(offset),
            Err(error) => panic!("{error}"),
        }
    }
    (all, damage)
}

#[test]
fn entries_are_read_in_both_layouts_and_with_each_compression() {
    for compact in [false, true] {
        for compression in COMPRESSIONS {
            let (_directory, path) = place();
            let options =
                JournalOptions { compact, compression, seqnum_id: 7, boot_id: 8, machine_id: 9 };
            let mut writer = JournalWriter::create(&path, options);
            fill(&mut writer, 1..500);
            let mut file = open(&path);
            let header = file.header();
            assert_eq!((header.head_seqnum, header.tail_seqnum, header.entries), (1, 499, 499));
            assert_eq!((header.seqnum_id, header.machine_id), (Id([7; 16]), Id([9; 16])));
            let (all, damage) = messages(&mut file, 0);
            assert_eq!(all, (1..500).map(text).collect::<Vec<_>>());
            assert_eq!(damage, [0; 0]);
            let mut items = Vec::new();
            let entry = file.entry(41, &mut items).unwrap();
            assert_eq!(
                (entry.seqnum, entry.realtime, entry.monotonic, entry.boot_id, items.len()),
                (42, 420, 420, Id([8; 16]), 3)
            );
        }
    }
}

#[test]
fn a_file_that_grows_is_read_on_where_it_ended() {
    for compact in [false, true] {
        let (_directory, path) = place();
        let options = JournalOptions { compact, ..JournalOptions::default() };
        let mut writer = JournalWriter::create(&path, options);
        let mut file = open(&path);
        assert!(file.is_empty() && !file.refresh().unwrap());
        let mut next = 1;
        for count in [1, 2, 3, 50, 1, 1000] {
            fill(&mut writer, next..next + count);
            let had = file.len();
            assert!(file.refresh().unwrap());
            let (all, _) = messages(&mut file, had);
            assert_eq!(all, (next..next + count).map(text).collect::<Vec<_>>());
            next += count;
            if count == 3 {
                file.release();
            }
        }
    }
}

#[test]
fn the_first_entry_behind_a_place_is_found() {
    let (_directory, path) = place();
    let mut writer = JournalWriter::create(&path, JournalOptions::default());
    let entries = fill(&mut writer, 1..200);
    let mut file = open(&path);
    let after = |file: &mut JournalFile, seqnum| {
        file.first_not(|entry: &Entry| entry.seqnum <= seqnum).unwrap()
    };
    assert_eq!(
        [0, 1, 100, 198, 199, 500].map(|at| after(&mut file, at)),
        [0, 1, 100, 198, 199, 199]
    );
    // An entry that is damaged is passed over.
    for at in [50, 99, 100, 198] {
        writer.put(entries[at], &[0]);
    }
    let mut file = open(&path);
    assert_eq!(after(&mut file, 97), 97);
    assert_eq!(file.first_not(|entry: &Entry| entry.realtime < 1990).unwrap(), 198);
}

#[test]
fn damage_costs_what_is_damaged_and_says_where() {
    for compact in [false, true] {
        let (_directory, path) = place();
        let options = JournalOptions { compact, ..JournalOptions::default() };
        let mut writer = JournalWriter::create(&path, options);
        let entries = fill(&mut writer, 1..100);
        writer.put(entries[10], &[9]);
        writer.put(entries[20] + 8, &u64::MAX.to_le_bytes());
        let field = writer.offset_of(text(40).as_bytes());
        writer.put(field + 8, &3_u64.to_le_bytes());
        let (all, damage) = messages(&mut open(&path), 0);
        assert_eq!(all.len(), 96);
        assert_eq!(damage, [entries[10], entries[20], field]);
    }
}

#[test]
fn a_broken_chain_of_arrays_costs_no_entry() {
    for compact in [false, true] {
        let (_directory, path) = place();
        let options = JournalOptions { compact, ..JournalOptions::default() };
        let mut writer = JournalWriter::create(&path, options);
        fill(&mut writer, 1..100);
        writer.put(writer.last_array(), &[2]);
        let mut file = open(&path);
        let (all, damage) = messages(&mut file, 0);
        assert_eq!((all, damage), ((1..100).map(text).collect(), vec![]));
        // What comes later is found, too.
        fill(&mut writer, 100..110);
        file.refresh().unwrap();
        let (all, _) = messages(&mut file, 99);
        assert_eq!(all, (100..110).map(text).collect::<Vec<_>>());
    }
}

#[test]
fn a_compressed_field_that_is_damaged_or_too_long_is_refused() {
    for compression in COMPRESSIONS.into_iter().flatten() {
        let (_directory, path) = place();
        let options =
            JournalOptions { compression: Some(compression), ..JournalOptions::default() };
        let mut writer = JournalWriter::create(&path, options);
        let field = [b"MESSAGE=".to_vec(), vec![b'x'; 300]].concat();
        writer.entry(1, 1, &[&field]);
        let offset = writer.offset_of(&field);
        let mut out = b"before".to_vec();
        open(&path).data(offset, &mut out).unwrap();
        assert_eq!(out.len(), field.len() + 6);
        writer.put(offset + 64, &[0x5a; 12]);
        assert!(open(&path).data(offset, &mut out).is_err());
        assert_eq!(out.len(), field.len() + 6, "what was there stays");
    }
    let (_directory, path) = place();
    let mut writer = JournalWriter::create(
        &path,
        JournalOptions { compression: COMPRESSIONS[2], ..JournalOptions::default() },
    );
    let field = vec![b'A'; 300];
    writer.entry(1, 1, &[&field]);
    let offset = writer.offset_of(&field);
    writer.put(offset + 64, &(PAYLOAD_BYTES_MAX as u64 + 1).to_le_bytes());
    let error = open(&path).data(offset, &mut Vec::new()).unwrap_err().to_string();
    assert_eq!(error, format!("damaged at byte {offset}: a field is longer than 64 MiB"));
}

#[test]
fn what_is_no_journal_is_refused() {
    let (_directory, path) = place();
    let mut writer = JournalWriter::create(&path, JournalOptions::default());
    writer.put(12, &64_u32.to_le_bytes());
    let error = JournalFile::open(RealFs.open(&path).unwrap()).unwrap_err();
    assert!(matches!(error, JournalError::Unsupported(64)), "{error}");
    for bytes in [&b""[..], &[b'x'; 300]] {
        std::fs::write(&path, bytes).unwrap();
        let error = JournalFile::open(RealFs.open(&path).unwrap()).unwrap_err();
        assert!(matches!(error, JournalError::NoJournal), "{error}");
    }
}

#[test]
fn any_byte_may_be_wrong() {
    let (_directory, path) = place();
    let mut writer = JournalWriter::create(&path, JournalOptions::default());
    fill(&mut writer, 1..10);
    let whole = std::fs::read(&path).unwrap();
    let mut lost = 0;
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        std::fs::write(&path, &bytes).unwrap();
        let Ok(mut file) = JournalFile::open(RealFs.open(&path).unwrap()) else { continue };
        let (mut field, mut items) = (Vec::new(), Vec::new());
        // A number of entries that is too high is not believed for ever.
        for index in 0..file.len().min(100) {
            if file.entry(index, &mut items).is_err() {
                lost += 1;
                continue;
            }
            for item in &items {
                field.clear();
                drop(file.data(*item, &mut field));
            }
        }
        file.first_not(|entry| entry.seqnum < 5).unwrap();
    }
    assert!(lost > 0);
}

#[test]
fn a_cursor_is_written_as_journalctl_does() {
    let text = "s=000102030405060708090a0b0c0d0e0f;i=1f;b=ffffffffffffffffffffffffffffffff;m=0;t=5d0a1b2c3d4e5;x=0";
    let cursor = Cursor::parse(text).unwrap();
    assert_eq!(cursor.to_string(), text);
    assert_eq!((cursor.seqnum, cursor.seqnum_id.0[15]), (31, 15));
    for wrong in ["", "s=1", &text.replace("i=1f", "i=xyz"), &text.replace(";x=0", "")] {
        let error = Cursor::parse(wrong).unwrap_err();
        assert!(error.to_string().contains("is no cursor"), "{wrong}");
    }
    assert_eq!(Id::parse("0123"), None);
    assert_eq!(Id::parse(&"0".repeat(33)), None);
}
