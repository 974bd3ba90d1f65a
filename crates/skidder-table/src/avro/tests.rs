//! Files of fastavro (Python). Filebeat reads no Avro: what is expected is written here.

use super::*;
use proptest::prelude::*;
use serde_json::Value;
use std::io;
use std::path::Path;

struct Memory(Vec<u8>);

impl Stored for Memory {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, buffer: &mut [u8], place: u64) -> io::Result<usize> {
        let rest = self.0.get(place as usize..).unwrap_or_default();
        let count = rest.len().min(buffer.len()).min(1_000);
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

fn content(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    std::fs::read(folder.join(format!("{name}.avro"))).unwrap()
}

fn read_bounded(
    bytes: Vec<u8>,
    from: u64,
    count_max: usize,
    bytes_max: usize,
) -> (Vec<String>, Option<RecordError>) {
    let mut rows = match Avro.open(Arc::new(Memory(bytes)), from, bytes_max) {
        Ok(rows) => rows,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let mut all = Vec::new();
    loop {
        let mut found = Found::default();
        let more = rows.next(&mut found, count_max);
        for record in &found.records {
            let text = &found.text[record.start as usize..][..record.len as usize];
            assert_eq!((record.offset, record.end), (from + all.len() as u64, record.offset + 1));
            all.push(String::from_utf8(text.to_vec()).unwrap());
        }
        match more {
            Ok(true) if all.len() < 10_000 => {}
            Ok(_) => return (all, None),
            Err(error) => {
                assert_eq!(error.offset, from + all.len() as u64);
                return (all, Some(error));
            }
        }
    }
}

fn read(bytes: Vec<u8>, from: u64, count_max: usize) -> (Vec<String>, Option<RecordError>) {
    read_bounded(bytes, from, count_max, 1 << 20)
}

fn expected() -> Vec<String> {
    let row = |n: u32| match n % 3 {
        0 => format!("{{\"n\":{n},\"s\":null}}"),
        _ => format!("{{\"n\":{n},\"s\":\"text {n}\"}}"),
    };
    (0..200).map(row).collect()
}

#[test]
fn values_of_all_types_are_written_as_those_of_parquet() {
    let (rows, error) = read(content("types"), 0, 10);
    assert_eq!(error, None);
    let first = r#"{"z":1,"null":null,"bool":true,"long":-9223372036854775808,"float":1.5,"double":1e-07,"bytes":"AP8=","text":"\u003ca\u003e\"é","enum":"RED","again":"BLUE","fixed":"YWJj","list":[1,null,-64],"map":{"k":"v"},"dec":"-123.4","date":"2024-02-29","tms":"01:02:03.004","tus":"23:59:59.000005","ms":"2024-01-02T03:04:05.678Z","us":"1969-12-31T23:59:59.000001Z","uuid":"00000000-0000-0000-0000-000000000007","tree":{"v":1,"next":{"v":2,"next":null}}}"#;
    let second = r#"{"z":-2147483648,"null":null,"bool":false,"long":9223372036854775807,"float":0,"double":-2.5,"bytes":"","text":"","enum":"BLUE","again":null,"fixed":"AAEC","list":[],"map":{},"dec":"0","date":"1970-01-01","tms":"00:00:00","tus":"00:00:00","ms":"1970-01-01T00:00:00Z","us":"2100-01-01T00:00:00Z","uuid":"00000000-0000-0000-0000-000000000007","tree":null}"#;
    assert_eq!(rows, [first, second]);
}

#[test]
fn rows_are_the_same_with_each_codec_and_begin_at_any_of_them() {
    let expected = expected();
    for codec in ["null", "deflate", "snappy", "zstandard"] {
        for from in [0, 1, 57, 100, 199, 200, 1000] {
            let (rows, error) = read(content(&format!("c_{codec}")), from, 7);
            assert_eq!(error, None, "{codec} from {from}");
            assert_eq!(rows, expected[expected.len().min(from as usize)..], "{codec} from {from}");
        }
    }
}

#[test]
fn mistakes_name_the_row() {
    let whole = content("c_snappy");
    let cut = whole[..whole.len() - 30].to_vec();
    let mut damaged = whole.clone();
    let place = damaged.len() - 40;
    damaged[place] ^= 0xff;
    for (bytes, expected) in [
        (b"Obj\x01".to_vec(), "a value goes on behind the end"),
        (b"{\"a\": 1}\n".to_vec(), "magic number `Obj`"),
        (content("c_bzip2"), "its codec is `bzip2`"),
        (cut, "cut off"),
        (damaged, "a block "),
    ] {
        let (_, error) = read(bytes, 0, 1000);
        let error = error.unwrap().to_string();
        assert!(error.starts_with("at row ") && error.contains(expected), "{error}");
    }
    let (rows, error) = read_bounded(content("types"), 0, 10, 100);
    assert!(rows.is_empty() && error.unwrap().message.contains("`max_bytes`"));
}

proptest! {
    #[test]
    fn damage_is_an_error_or_other_rows_and_never_a_panic(
        file in prop::sample::select(vec!["types", "c_null", "c_deflate", "c_snappy", "c_zstandard"]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = content(file);
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let (rows, _) = read(bytes, 0, 100);
        for row in rows {
            prop_assert!(serde_json::from_str::<Value>(&row).is_ok(), "{}", row);
        }
    }
}

#[test]
fn rows_without_bytes_are_an_error() {
    let mark = [7; 16];
    let mut file = b"Obj\x01\x02\x16avro.schema\x0c\"null\"\0".to_vec();
    file.extend(mark);
    // 2,000,000,000 rows in no bytes, as numbers of Avro.
    file.extend([0x80, 0xd0, 0xac, 0xf3, 0x0e, 0]);
    file.extend(mark);
    let (rows, error) = read(file, 0, 10);
    assert!(rows.is_empty(), "{} rows", rows.len());
    let error = error.unwrap().to_string();
    assert!(error.contains("2000000000 rows in 0 bytes"), "{error}");
}
