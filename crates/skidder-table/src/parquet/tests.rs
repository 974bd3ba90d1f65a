//! Files of pyarrow, against what Filebeat's own reader made of them (`testdata/golden.jsonl`, written by
//! `x-pack/libbeat/reader/parquet` of Filebeat 9 with Arrow 18.4.1 for Go).

use super::*;
use proptest::prelude::*;
use serde_json::Value;
use std::io;
use std::path::Path;

/// Content in memory.
struct Memory(Vec<u8>);

impl Stored for Memory {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, buffer: &mut [u8], place: u64) -> io::Result<usize> {
        let rest = self.0.get(place as usize..).unwrap_or_default();
        // As a file may.
        let count = rest.len().min(buffer.len()).min(1_000);
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

fn content(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    std::fs::read(folder.join(format!("{name}.parquet"))).unwrap()
}

/// The rows from this one on, and the error.
fn read(bytes: Vec<u8>, from: u64, count_max: usize) -> (Vec<String>, Option<RecordError>) {
    let mut rows = match Parquet.open(Arc::new(Memory(bytes)), from, 1 << 20) {
        Ok(rows) => rows,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let mut all = Vec::new();
    loop {
        let mut found = Found::default();
        let more = rows.next(&mut found, count_max);
        assert!(found.records.len() <= count_max);
        for record in &found.records {
            let text = &found.text[record.start as usize..][..record.len as usize];
            assert_eq!((record.offset, record.end), (from + all.len() as u64, record.offset + 1));
            all.push(String::from_utf8(text.to_vec()).unwrap());
        }
        match more {
            Ok(true) => {}
            Ok(false) => return (all, None),
            Err(error) => return (all, Some(error)),
        }
    }
}

fn golden() -> Vec<(String, Vec<String>)> {
    let lines = include_str!("../../testdata/golden.jsonl").lines();
    let case = |line: &str| {
        let case: Value = serde_json::from_str(line).unwrap();
        let texts = case["events"].as_array().unwrap().iter();
        let texts = texts.map(|text| text.as_str().unwrap().to_owned()).collect();
        (case["file"].as_str().unwrap().to_owned(), texts)
    };
    lines.map(case).collect()
}

fn expected(file: &str) -> Vec<String> {
    golden().into_iter().find(|(name, _)| name == file).unwrap().1
}

#[test]
fn rows_are_those_of_filebeat() {
    for (file, mut expected) in golden() {
        // Empty bytes: see below.
        if let "types" | "types_v1" = &*file {
            let third = expected[2].replacen("\"bin\":null", "\"bin\":\"\"", 1);
            expected[2] = third;
        }
        let (rows, error) = read(content(&file), 0, 1000);
        assert_eq!(error, None, "{file}");
        assert_eq!(rows, expected, "{file}");
    }
}

#[test]
fn rows_are_the_same_however_pages_are_written() {
    let expected = expected("c_none");
    for file in ["c_snappy", "c_gzip", "c_zstd", "c_lz4", "v2"] {
        let (rows, error) = read(content(file), 0, 7);
        assert_eq!(error, None, "{file}");
        assert_eq!(rows, expected, "{file}");
    }
    let (rows, error) = read(content("c_brotli"), 0, 7);
    let error = error.unwrap();
    assert!(rows.is_empty() && error.to_string().contains("at row 0"), "{error}");
    assert!(error.message.to_lowercase().contains("brotli"), "{error}");
}

#[test]
fn rows_begin_at_any_of_them() {
    for file in ["c_none", "v2", "encodings"] {
        let expected = self::expected(if file == "v2" { "c_none" } else { file });
        for from in [1, 59, 60, 61, 119, 130, 199, 200, 1000] {
            let (rows, error) = read(content(file), from, 50);
            assert_eq!(error, None, "{file} from {from}");
            assert_eq!(rows, expected[expected.len().min(from as usize)..], "{file} from {from}");
        }
    }
}

#[test]
fn what_is_no_parquet_is_an_error_that_says_so() {
    let whole = content("c_snappy");
    let cut = whole[..whole.len() - 100].to_vec();
    let mut long = whole.clone();
    let place = long.len() - 8;
    long[place..place + 4].fill(0x7f);
    for (bytes, expected) in [
        (b"PAR1".to_vec(), "too few"),
        (b"{\"a\": 1}\n{\"a\": 2}\n".to_vec(), "magic number"),
        (cut, "cut off"),
        (long, "its footer cannot have"),
        (b"PAR1\0\0\0\0\0\0\0\0PAR1".to_vec(), "no Parquet that can be read"),
    ] {
        let (rows, error) = read(bytes, 0, 10);
        let error = error.unwrap().to_string();
        assert!(rows.is_empty() && error.contains(expected), "{error}");
    }
}

#[test]
fn a_row_of_more_than_the_bound_is_an_error() {
    let stored = Arc::new(Memory(content("c_none")));
    let mut rows = Parquet.open(stored, 0, 45).unwrap();
    let mut found = Found::default();
    let error = rows.next(&mut found, 1000).unwrap_err();
    assert!(!found.records.is_empty() && error.offset == found.records.len() as u64);
    assert!(error.message.contains("`max_bytes`"), "{error}");
    assert_eq!(rows.next(&mut found, 1000), Ok(false));
}

#[test]
fn empty_bytes_are_an_empty_text() {
    // Filebeat says `null` with `batch_size: 1`, and this with others.
    let (rows, _) = read(content("types"), 2, 1);
    assert!(rows[0].contains("\"bin\":\"\""), "{rows:?}");
}

proptest! {
    #[test]
    fn damage_is_an_error_or_other_rows_and_never_a_panic(
        file in prop::sample::select(vec!["c_snappy", "c_zstd", "nested", "types", "encodings", "v2"]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = content(file);
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Some(cut) = cut {
            let cut = cut.index(bytes.len());
            let tail = bytes.split_off(bytes.len() - 8);
            bytes.truncate(cut);
            bytes.extend(tail);
        }
        let (rows, _) = read(bytes, 0, 100);
        for row in rows {
            prop_assert!(serde_json::from_str::<Value>(&row).is_ok(), "{}", row);
        }
    }
}
