//! Files of zstd, bzip2, xz and lz4 of every kind, and ways to read them.

use super::MemoryFile;
use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
use lzma_rust2::{CheckType, XzOptions, XzWriter};
use skidder_decode::{Checkpoint, Codec, DecodeError, Decoder, DecoderPool, Note, ReadState};
use std::io::Write;
use std::num::NonZeroU64;
use std::process::{Command, Stdio};

/// A file of some kind.
pub(crate) struct Sample {
    pub(crate) kind: String,
    pub(crate) codec: Codec,
    pub(crate) bytes: Vec<u8>,
    /// Whether all its content is under checksums.
    pub(crate) checked: bool,
}

pub(crate) fn zstd(text: &[u8], level: i32, checksum: bool) -> Vec<u8> {
    let mut context = zstd_safe::CCtx::create();
    context.set_parameter(zstd_safe::CParameter::CompressionLevel(level)).unwrap();
    context.set_parameter(zstd_safe::CParameter::ChecksumFlag(checksum)).unwrap();
    let mut bytes = Vec::with_capacity(zstd_safe::compress_bound(text.len()));
    context.compress2(&mut bytes, text).unwrap();
    bytes
}

/// As `zstd` does it with input of unknown size: no size in the header, a window of its own.
pub(crate) fn zstd_stream(text: &[u8]) -> Vec<u8> {
    let mut context = zstd_safe::CCtx::create();
    context.set_parameter(zstd_safe::CParameter::ChecksumFlag(true)).unwrap();
    let mut bytes = vec![0; zstd_safe::compress_bound(text.len()) + 1000];
    let mut target = zstd_safe::OutBuffer::around(&mut bytes[..]);
    for piece in text.chunks(10_000) {
        let mut source = zstd_safe::InBuffer::around(piece);
        while source.pos() < piece.len() {
            context.compress_stream(&mut target, &mut source).unwrap();
        }
        // A block of its own.
        while context.flush_stream(&mut target).unwrap() > 0 {}
    }
    while context.end_stream(&mut target).unwrap() > 0 {}
    let written = target.pos();
    bytes.truncate(written);
    bytes
}

/// The seekable format: frames, and their sizes in a skippable frame.
pub(crate) fn zstd_seekable(text: &[u8], frame_bytes: usize) -> Vec<u8> {
    let (mut bytes, mut table) = (Vec::new(), Vec::new());
    let mut frames = 0_u32;
    for piece in text.chunks(frame_bytes) {
        let frame = zstd(piece, 3, true);
        table.extend_from_slice(&(frame.len() as u32).to_le_bytes());
        table.extend_from_slice(&(piece.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&frame);
        frames += 1;
    }
    bytes.extend_from_slice(&0x184d_2a5e_u32.to_le_bytes());
    bytes.extend_from_slice(&(table.len() as u32 + 9).to_le_bytes());
    bytes.extend_from_slice(&table);
    bytes.extend_from_slice(&frames.to_le_bytes());
    bytes.push(0);
    bytes.extend_from_slice(&0x8f92_eab1_u32.to_le_bytes());
    bytes
}

pub(crate) fn bzip2(text: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::new(level));
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn xz(text: &[u8], check: CheckType, block_bytes: Option<u64>) -> Vec<u8> {
    let mut options = XzOptions::with_preset(1);
    options.set_check_sum_type(check);
    options.set_block_size(block_bytes.and_then(NonZeroU64::new));
    let mut writer = XzWriter::new(Vec::new(), options).unwrap();
    writer.write_all(text).unwrap();
    writer.finish().unwrap()
}

pub(crate) fn lz4(text: &[u8], independent: bool, checksums: bool) -> Vec<u8> {
    let mode = if independent { BlockMode::Independent } else { BlockMode::Linked };
    let info = FrameInfo::new()
        .block_size(BlockSize::Max64KB)
        .block_mode(mode)
        .block_checksums(checksums && independent)
        .content_checksum(checksums);
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// `text` in one file of each kind.
pub(crate) fn samples(text: &[u8]) -> Vec<Sample> {
    let sample = |kind: &str, codec, checked, bytes| Sample {
        kind: format!("{codec} {kind}"),
        codec,
        bytes,
        checked,
    };
    let skippable = [&0x184d_2a50_u32.to_le_bytes()[..], &3_u32.to_le_bytes(), b"any"].concat();
    let (one, two) = text.split_at(text.len() / 3);
    vec![
        sample("level 3", Codec::Zstd, true, zstd(text, 3, true)),
        sample("level 19", Codec::Zstd, true, zstd(text, 19, true)),
        sample("without checksum", Codec::Zstd, false, zstd(text, 1, false)),
        sample("stream", Codec::Zstd, true, zstd_stream(text)),
        sample("seekable", Codec::Zstd, true, zstd_seekable(text, text.len() / 5 + 1)),
        sample(
            "skippable first",
            Codec::Zstd,
            true,
            [&skippable[..], &zstd(one, 3, true), &skippable, &zstd(two, 3, true)].concat(),
        ),
        sample("level 1", Codec::Bzip2, true, bzip2(text, 1)),
        sample("level 9", Codec::Bzip2, true, bzip2(text, 9)),
        sample("two streams", Codec::Bzip2, true, [bzip2(one, 1), bzip2(two, 9)].concat()),
        sample("crc64", Codec::Xz, true, xz(text, CheckType::Crc64, None)),
        sample("crc32 in blocks", Codec::Xz, true, xz(text, CheckType::Crc32, Some(40_000))),
        sample("sha256 in blocks", Codec::Xz, true, xz(text, CheckType::Sha256, Some(70_000))),
        sample("unchecked", Codec::Xz, false, xz(text, CheckType::None, None)),
        sample(
            "two streams, padded",
            Codec::Xz,
            true,
            [
                xz(one, CheckType::Crc64, Some(30_000)),
                vec![0; 8],
                xz(two, CheckType::Crc32, Some(30_000)),
            ]
            .concat(),
        ),
        sample("independent", Codec::Lz4, true, lz4(text, true, true)),
        sample("linked", Codec::Lz4, true, lz4(text, false, true)),
        sample("without checksums", Codec::Lz4, false, lz4(text, true, false)),
        sample(
            "skippable between",
            Codec::Lz4,
            true,
            [lz4(one, true, true), skippable, lz4(two, false, true)].concat(),
        ),
    ]
}

/// What a tool of this machine makes of `text`; `None` if it is not installed.
pub(crate) fn by_tool(command: &[&str], text: &[u8]) -> Option<Vec<u8>> {
    let (program, arguments) = command.split_first()?;
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut child = child.ok()?;
    let mut input = child.stdin.take().unwrap();
    let text = text.to_vec();
    let writer = std::thread::spawn(move || input.write_all(&text));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "{command:?}");
    Some(output.stdout)
}

pub(crate) fn pool() -> DecoderPool {
    DecoderPool::new(2)
}

/// The output for a file.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) output: Vec<u8>,
    pub(crate) notes: Vec<Note>,
    pub(crate) checkpoints: Vec<Checkpoint>,
    pub(crate) end: Option<Result<ReadState, DecodeError>>,
}

/// Reads on to the end of the file, whatever it is.
pub(crate) fn read_on(
    decoder: &mut Decoder,
    file: &MemoryFile,
    (scratch, out): (usize, usize),
    outcome: &mut Outcome,
) {
    let (mut scratch, mut out) = (vec![0xaa; scratch], vec![0xbb; out]);
    let mut idle = 0;
    loop {
        let before = (decoder.offset(), decoder.stored_offset());
        match decoder.read(file, &mut scratch, &mut out) {
            Ok(progress) => {
                outcome.output.extend_from_slice(&out[..progress.produced]);
                outcome.notes.extend(progress.note);
                assert_eq!(decoder.offset() - before.0, progress.produced as u64);
                if progress.state != ReadState::More {
                    outcome.end = Some(Ok(progress.state));
                }
                idle = if (decoder.offset(), decoder.stored_offset()) == before {
                    idle + 1
                } else {
                    0
                };
                assert!(idle < 10, "no progress at {before:?}");
            }
            Err(error) => {
                assert_eq!(decoder.offset(), before.0);
                outcome.end = Some(Err(error));
            }
        }
        outcome.checkpoints.extend(decoder.take_checkpoint());
        if outcome.end.is_some() {
            return;
        }
    }
}

/// Reads a file from its start, with a checkpoint wherever there can be one.
pub(crate) fn read_all(sample: &Sample, buffers: (usize, usize)) -> Outcome {
    let file = MemoryFile::new(&sample.bytes);
    let mut decoder = Decoder::start(Some(sample.codec), &pool()).with_checkpoint_interval(0);
    let mut outcome = Outcome::default();
    read_on(&mut decoder, &file, buffers, &mut outcome);
    outcome
}

impl Outcome {
    /// Whether the file ended as a complete one, and nothing was wrong with it.
    pub(crate) fn is_complete(&self) -> bool {
        matches!(self.end, Some(Ok(ReadState::End))) && self.notes.is_empty()
    }
}
