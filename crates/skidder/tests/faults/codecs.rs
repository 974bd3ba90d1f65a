//! Files compressed with zstd, bzip2, xz and lz4 after their rotation: each is one file with the plain one.

use crate::common::lines::{Log, judge, lines};
use crate::common::server::BulkServer;
use crate::common::{Place, accept};
use skidder_testkit::Random;
use std::fs::OpenOptions;
use std::io::Write as _;

type Compress = fn(&[u8]) -> Vec<u8>;

const CODECS: [(&str, Compress); 4] = [("zst", zstd), ("bz2", bzip2), ("xz", xz), ("lz4", lz4)];

fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(zstd_safe::compress_bound(bytes.len()));
    zstd_safe::compress(&mut packed, bytes, 3).unwrap();
    packed
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let level = bzip2::Compression::new(9);
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), level);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let options = lzma_rust2::XzOptions::with_preset(1);
    let mut writer = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_file_that_is_rotated_and_compressed_while_it_is_read_is_one_file() {
    for (suffix, compress) in CODECS {
        let server = BulkServer::start();
        let place = Place::new(&server);
        let mut log = Log::create(&place.logs(), "a");
        log.append(1500);
        let mut program = place.start(&[]);
        program.await_that("the first lines are there", || server.count() > 0);
        log.append(1500);
        log.rename();
        let plain = log.rotated(1, "");
        let packed = compress(&std::fs::read(&plain).unwrap());
        std::fs::write(log.rotated(1, &format!(".{suffix}")), packed).unwrap();
        std::fs::remove_file(plain).unwrap();
        log.append(1000);
        program.await_that("every line is there", || server.count() >= 4000);
        program.terminate().succeeded();
        let ended = place.once(&[]).succeeded();
        assert_eq!(ended.ledger().read, 0, "{suffix}: read again after a restart");
        accept(
            &format!("rotated and compressed to .{suffix}"),
            judge(&[("a", 4000)], &server.documents()),
            0,
        );
    }
}

#[test]
fn a_plain_file_that_comes_back_compressed_is_read_on_from_its_cursor() {
    for (suffix, compress) in CODECS {
        let server = BulkServer::start();
        let place = Place::new(&server);
        let path = place.write("a", &lines("a", 0..2000));
        assert_eq!(place.once(&[]).succeeded().ledger().read, 2000);
        // What follows was written and compressed while skidder was down.
        std::fs::remove_file(&path).unwrap();
        place.write(&format!("a.1.{suffix}"), &compress(&lines("a", 0..3000)));
        assert_eq!(place.once(&[]).succeeded().ledger().read, 1000, "{suffix}");
        accept(
            &format!("compressed to .{suffix} between two runs"),
            judge(&[("a", 3000)], &server.documents()),
            0,
        );
    }
}

#[test]
fn a_compressed_file_written_in_pieces_is_read_on_with_each_run() {
    let mut random = Random::new(17);
    for (suffix, compress) in CODECS {
        let server = BulkServer::start();
        let place = Place::new(&server);
        // Two frames (streams) one behind the other.
        let packed = [compress(&lines("a", 0..2000)), compress(&lines("a", 2000..3000))].concat();
        let path = place.write(&format!("a.{suffix}"), b"");
        let mut file = OpenOptions::new().append(true).open(path).unwrap();
        let (mut cut, mut unread) = (0, 0);
        while cut < packed.len() {
            let piece = 1 + random.below(packed.len() as u64 / 3) as usize;
            let next = (cut + piece).min(packed.len());
            file.write_all(&packed[cut..next]).unwrap();
            cut = next;
            // Its first bytes may be too few to recognise compression, and it may be cut between two frames.
            let code = place.once(&[]).code();
            assert!(matches!(code, Some(0 | 4)), "{suffix}: {code:?}");
            unread += usize::from(code == Some(4));
        }
        assert!(unread > 0, "{suffix}: it was never cut off");
        assert_eq!(place.once(&[]).succeeded().ledger().read, 0, "{suffix}");
        accept(
            &format!(".{suffix} written in pieces, a run for each"),
            judge(&[("a", 3000)], &server.documents()),
            0,
        );
    }
}

#[test]
fn damage_gives_all_lines_before_it_and_an_error() {
    for (suffix, compress) in CODECS {
        let server = BulkServer::start();
        let place = Place::new(&server);
        let mut packed = compress(&lines("a", 0..1000));
        let begin = packed.len();
        packed.extend_from_slice(&compress(&lines("x", 0..1000)));
        // Headers and what follows them: no decoder goes on behind that.
        packed[begin + 6..begin + 60].fill(0xff);
        place.write(&format!("a.{suffix}"), &packed);
        place.write("b", &lines("b", 0..10));
        let ended = place.once(&[]).left_unread();
        let verdict = judge(&[("a", 1000), ("b", 10)], &server.documents());
        accept(&format!("damaged .{suffix}: lines before the damage"), verdict, 0);
        assert!(ended.log.contains("damaged"), "{suffix}: {}", ended.log);
    }
}
