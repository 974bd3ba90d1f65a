//! The codecs of batches, unpacked up to a bound.

use std::io::{self, Read};

/// Most bytes of the records of one batch, unpacked. Brokers take batches of 1 MiB by default.
pub(crate) const UNPACKED_BYTES_MAX: usize = 256 << 20;

/// Bytes by which the room grows.
const STEP_BYTES: usize = 256 << 10;

/// How snappy-java begins: its name (<https://github.com/xerial/snappy-java>, `SnappyCodec`), then two versions.
const SNAPPY_HEAD: &[u8] = b"\x82SNAPPY\0";
const SNAPPY_HEAD_BYTES: usize = 16;

/// Unpacks `packed` into `out`, which is emptied first.
pub(crate) fn unpack(codec: u8, packed: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    out.clear();
    match codec {
        1 => read_to_end(flate2::read::MultiGzDecoder::new(packed), out),
        2 => snappy(packed, out),
        3 => read_to_end(lz4_flex::frame::FrameDecoder::new(packed), out),
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
                // The end of what is no stream may be taken for an empty one: then records are missing.
                let is_refused = unpack(codec, bytes, &mut out).is_err();
                assert!(is_refused || out.is_empty(), "{codec} {bytes:?}");
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
