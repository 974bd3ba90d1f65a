//! The codecs of batches, unpacked up to a bound.

use std::io::{self, Read};

/// Most bytes of the records of one batch, unpacked. Brokers take batches of 1 MiB by default.
pub(crate) const UNPACKED_BYTES_MAX: usize = 256 << 20;

/// Bytes by which the room grows.
const STEP_BYTES: usize = 256 << 10;

/// How snappy-java begins: its name (<https://github.com/xerial/snappy-java>, `SnappyCodec`), then two versions.
const SNAPPY_HEAD: &[u8] = b"\x82SNAPPY\0";
const SNAPPY_HEAD_BYTES: usize = 16;

/// Unpacks `packed` into `out`, which then has nothing else; after an error what is in it is of no meaning.
pub(crate) fn unpack(codec: u8, packed: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    if codec == 3 {
        return lz4(packed, out);
    }
    out.clear();
    match codec {
        1 => read_to_end(flate2::read::MultiGzDecoder::new(packed), out),
        2 => snappy(packed, out),
        4 => zstd(packed, out),
        _ => Err(io::Error::other(format!("there is no codec {codec}"))),
    }
}

fn too_long() -> io::Error {
    io::Error::other(format!("it has more than {UNPACKED_BYTES_MAX} bytes unpacked"))
}

fn read_to_end(reader: impl Read, out: &mut Vec<u8>) -> io::Result<()> {
    let most = UNPACKED_BYTES_MAX as u64 + 1;
    reader.take(most).read_to_end(out)?;
    if out.len() > UNPACKED_BYTES_MAX { Err(too_long()) } else { Ok(()) }
}

/// Blocks with their length behind a head, or one block without either.
fn snappy(packed: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    if !packed.starts_with(SNAPPY_HEAD) {
        return snappy_block(packed, out);
    }
    let short = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let mut rest = packed.get(SNAPPY_HEAD_BYTES..).ok_or_else(short)?;
    while !rest.is_empty() {
        let (length, behind) = rest.split_first_chunk().ok_or_else(short)?;
        let length = u32::from_be_bytes(*length) as usize;
        let (block, behind) = behind.split_at_checked(length).ok_or_else(short)?;
        snappy_block(block, out)?;
        rest = behind;
    }
    Ok(())
}

fn snappy_block(block: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    let length = snap::raw::decompress_len(block)?;
    let start = out.len();
    // No block of Snappy is longer than 2³² bytes, and 3 bytes give at most 64.
    if length > UNPACKED_BYTES_MAX - start || length > block.len().saturating_mul(64) {
        return Err(too_long());
    }
    out.resize(start + length, 0);
    let written = snap::raw::Decoder::new().decompress(block, &mut out[start..])?;
    out.truncate(start + written);
    Ok(())
}

/// The first bytes of a frame of LZ4 (<https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md>).
const LZ4_MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];

/// How far back a block may refer to those before it.
const LZ4_WINDOW: usize = 64 << 10;

/// One frame, whose blocks are unpacked where they are needed: `out` is not emptied first, so that room that was used
/// before is not zeroed again.
///
/// Checksums of the frame are not looked at: that of the batch is right, and clients before 0.10 made wrong ones
/// (<https://issues.apache.org/jira/browse/KAFKA-3160>).
fn lz4(packed: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    let failed = |what: &str| io::Error::other(format!("LZ4: {what}"));
    let short = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let rest = packed.strip_prefix(&LZ4_MAGIC).ok_or_else(|| failed("no frame"))?;
    let (&[flags, sizes], rest) = rest.split_first_chunk().ok_or_else(short)?;
    if flags >> 6 != 1 || flags & 1 != 0 {
        return Err(failed("another version, or a dictionary"));
    }
    let (is_alone, has_sum, has_size) = (flags & 32 != 0, flags & 16 != 0, flags & 8 != 0);
    let block_max = match sizes >> 4 & 7 {
        size @ 4..=7 => 1_usize << (8 + 2 * size),
        _ => return Err(failed("blocks of no size")),
    };
    // The size of the content, and the checksum of the head.
    let mut rest = rest.get(if has_size { 9 } else { 1 }..).ok_or_else(short)?;
    let mut end = 0;
    while let Some((length, behind)) = rest.split_first_chunk() {
        let length = u32::from_le_bytes(*length);
        if length == 0 {
            break;
        }
        let (is_plain, length) = (length >> 31 == 1, (length & 0x7fff_ffff) as usize);
        let (block, behind) = behind.split_at_checked(length).ok_or_else(short)?;
        rest = behind.get(if has_sum { 4 } else { 0 }..).ok_or_else(short)?;
        // A byte of a block stands for 255 at most.
        let most = if is_plain { length } else { block_max.min(length.saturating_mul(255)) };
        if length > block_max {
            return Err(failed("a block is too long"));
        }
        if end + most > UNPACKED_BYTES_MAX {
            return Err(too_long());
        }
        if out.len() < end + most {
            out.resize(end + most, 0);
        }
        let (before, after) = out.split_at_mut(end);
        end += if is_plain {
            after[..length].copy_from_slice(block);
            length
        } else {
            let window = if is_alone { end } else { end.saturating_sub(LZ4_WINDOW) };
            let into = &mut after[..most];
            lz4_flex::block::decompress_into_with_dict(block, into, &before[window..])
                .map_err(io::Error::other)?
        };
    }
    out.truncate(end);
    Ok(())
}

fn zstd(packed: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    let failed = |code| io::Error::other(zstd_safe::get_error_name(code));
    let mut context = zstd_safe::DCtx::create();
    let mut input = zstd_safe::InBuffer::around(packed);
    loop {
        if out.len() > UNPACKED_BYTES_MAX {
            return Err(too_long());
        }
        out.reserve(STEP_BYTES);
        let before = out.len();
        let mut output = zstd_safe::OutBuffer::around_pos(out, before);
        let missing = context.decompress_stream(&mut output, &mut input).map_err(failed)?;
        let has_grown = out.len() > before;
        let is_read = input.pos() == packed.len();
        if is_read && missing == 0 {
            return Ok(());
        }
        if is_read && !has_grown {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_stream_of_a_codec_gives_nothing_and_takes_no_memory() {
        let mut out = Vec::new();
        let long = [&[0xff, 0xff, 0xff, 0xff, 0x0f][..], b"x"].concat();
        for codec in 0..=7 {
            for bytes in
                [&b"nonsense of some length"[..], b"\x82SNAPPY\0", b"\x28\xb5\x2f\xfd", &long]
            {
                out.clear();
                // The end of what is no stream may be taken for an empty one: then records are missing.
                let is_refused = unpack(codec, bytes, &mut out).is_err();
                assert!(is_refused || out.is_empty(), "{codec} {bytes:?}");
            }
        }
    }

    #[test]
    fn frames_of_lz4_are_read_whatever_their_blocks_and_wherever_they_are_cut() {
        use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
        use std::io::Write as _;
        let mut text = Vec::new();
        for number in 0..30_000_u32 {
            text.extend_from_slice(format!("{} of {number} ", number % 77).as_bytes());
        }
        // Bytes that cannot be packed.
        let mut state = 1_u32;
        text.extend(
            std::iter::repeat_with(|| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            })
            .take(200_000),
        );
        let mut out = Vec::new();
        for mode in [BlockMode::Independent, BlockMode::Linked] {
            for size in [BlockSize::Max64KB, BlockSize::Max256KB, BlockSize::Max4MB] {
                for (text, sums) in [(&text[..], true), (&text[..300], false), (&[], true)] {
                    let info = FrameInfo::new().block_mode(mode).block_size(size);
                    let info = info.block_checksums(sums).content_checksum(sums);
                    let info = info.content_size(sums.then_some(text.len() as u64));
                    let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
                    encoder.write_all(text).expect("packed");
                    let packed = encoder.finish().expect("packed");
                    unpack(3, &packed, &mut out).expect("a frame");
                    assert!(out == text, "{mode:?} {size:?} {}", text.len());
                    let every = packed.len() / 300 + 1;
                    for cut in (0..packed.len()).step_by(every) {
                        let is_read = unpack(3, &packed[..cut], &mut out).is_ok();
                        assert!(!is_read || text.starts_with(&out), "cut at {cut}");
                    }
                }
            }
        }
    }

    #[test]
    fn both_forms_of_snappy_are_read() {
        let text = b"to be or not to be or to be".repeat(100);
        let block = snap::raw::Encoder::new().compress_vec(&text).expect("packed");
        let mut out = Vec::new();
        unpack(2, &block, &mut out).expect("a block");
        assert_eq!(out, text);
        let length = (block.len() as u32).to_be_bytes();
        let framed =
            [SNAPPY_HEAD, &[0, 0, 0, 1, 0, 0, 0, 1], &length, &block, &length, &block].concat();
        unpack(2, &framed, &mut out).expect("two blocks");
        assert_eq!(out, text.repeat(2));
    }
}
