//! The promises of the workload: length, ratio, numbers, determinism.

use super::*;
use std::io::Read;

fn lines(seed: u64, first: u64, count: usize) -> Vec<u8> {
    let mut workload = Workload::new(seed, first);
    let mut out = Vec::new();
    for _ in 0..count {
        workload.line(&mut out);
    }
    out
}

#[test]
fn every_line_carries_its_number() {
    let text = lines(1, 9_000, 3_000);
    let mut expected = 9_000;
    for line in text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        assert_eq!(sequence_of(line), Some(expected), "{}", String::from_utf8_lossy(line));
        expected += 1;
    }
    assert_eq!(expected, 12_000);
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    assert_eq!(lines(5, 0, 1_000), lines(5, 0, 1_000));
    assert_ne!(lines(5, 0, 1_000), lines(6, 0, 1_000));
}

#[test]
fn a_line_is_about_240_bytes_and_gzip_shrinks_it_more_than_five_times() {
    let count = 50_000;
    let mean = lines(3, 0, count).len() as f64 / count as f64;
    assert!((235.0..250.0).contains(&mean), "mean length {mean}");
    let ratio = sample_ratio(3, 0, count as u64).unwrap();
    assert!((5.6..5.9).contains(&ratio), "gzip ratio {ratio}");
}

#[test]
fn a_third_of_the_lines_is_json_that_parses() {
    let text = lines(8, 0, 9_000);
    let mut documents = 0;
    for line in text.split(|&byte| byte == b'\n') {
        if line.starts_with(b"{") {
            serde_json::from_slice::<serde_json::Value>(line).unwrap();
            documents += 1;
        }
    }
    assert!((2_700..3_300).contains(&documents), "{documents}");
}

#[test]
fn members_together_hold_the_same_lines_as_the_plain_file() {
    let directory = tempfile::tempdir().unwrap();
    let plan = Plan { kind: Kind::Mixed, lines: 1_001, seed: 4, first: 0, members: 0 };
    let plain = directory.path().join("app.log");
    let packed = directory.path().join("app.log.gz");
    let written = generate(&plan, &plain).unwrap();
    let compressed = generate(&Plan { members: 3, ..plan }, &packed).unwrap();
    assert_eq!(written.text_bytes, compressed.text_bytes);
    assert!(compressed.file_bytes < written.file_bytes / 3);
    let mut text = Vec::new();
    let file = std::fs::File::open(&packed).unwrap();
    flate2::read::MultiGzDecoder::new(file).read_to_end(&mut text).unwrap();
    assert!(text == std::fs::read(&plain).unwrap());
}

#[test]
fn a_line_without_a_whole_number_has_none() {
    for line in ["", "seq=", "seq=123", "seq=12345678x0", "sequence=0000000001"] {
        assert_eq!(sequence_of(line.as_bytes()), None, "{line}");
    }
    assert_eq!(sequence_of(b"a seq=0000000042"), Some(42));
}

#[test]
fn every_record_of_a_kind_carries_its_number() {
    for kind in [Kind::Apache, Kind::Json, Kind::Container, Kind::ContainerJson, Kind::Trace] {
        let mut workload = Workload::of(kind, 3, 40);
        let mut lines_in_all = 0;
        for number in 40..140 {
            let mut record = Vec::new();
            let lines = workload.line(&mut record);
            assert_eq!(sequence_of(&record), Some(number), "{kind:?}");
            assert_eq!(memchr::memchr_iter(b'\n', &record).count() as u64, lines, "{kind:?}");
            lines_in_all += lines;
        }
        assert_eq!(lines_in_all > 100, kind == Kind::Trace);
    }
}
