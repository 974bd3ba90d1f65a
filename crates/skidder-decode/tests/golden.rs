//! Checkpoints stored by earlier versions still load and lead to the same output.
//!
//! `UPDATE_GOLDEN=1` writes the files of the current version anew; those of older versions stay.

mod common;

use common::{MemoryFile, Outcome, gzip_with, log_text, pool, read_on};
use skidder_decode::gzip::{Checkpoint, GzipReader};
use std::path::Path;
use zlib_rs::{DeflateFlush, Strategy};

#[test]
fn a_checkpoint_of_version_1_is_still_good() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/v1/partial-flush");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        write(&directory);
    }
    let read = |name: &str| std::fs::read(directory.join(name)).unwrap();
    let file = MemoryFile::new(&read("file.gz"));
    let checkpoint = Checkpoint::from_bytes(&read("checkpoint.bin")).unwrap();
    let mut reader = GzipReader::resume(&checkpoint, &file, &pool()).unwrap();
    let mut rest = Outcome::default();
    read_on(&mut reader, &file, 4096, 4096, &mut rest);
    assert!(rest.is_clean(), "{:?} {:?}", rest.end, rest.notes);
    assert_eq!(rest.output, read("rest.txt"));
}

fn write(directory: &Path) {
    let content = log_text(3_000);
    let flush = DeflateFlush::PartialFlush;
    let bytes = gzip_with(&content, 6, Strategy::Default, flush, 1_000);
    let file = MemoryFile::new(&bytes);
    let mut reader = GzipReader::new(&pool()).with_checkpoint_interval(0);
    let mut outcome = Outcome::default();
    read_on(&mut reader, &file, 4096, 100, &mut outcome);
    let unaligned = |checkpoint: &&Checkpoint| checkpoint.to_bytes()[5] != 0;
    let checkpoint = outcome.checkpoints.iter().rfind(unaligned).expect("a partial flush");
    let rest = &content[checkpoint.decompressed_offset() as usize..];
    for (name, bytes) in
        [("file.gz", &bytes[..]), ("checkpoint.bin", &checkpoint.to_bytes()), ("rest.txt", rest)]
    {
        std::fs::write(directory.join(name), bytes).expect("a writable source tree");
    }
}
