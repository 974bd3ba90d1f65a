//! Payloads of data objects, which may be compressed.

use std::io::Read;

/// Bytes of a field beyond which it is not read: a damaged size costs no more memory than that.
pub const PAYLOAD_BYTES_MAX: usize = 64 << 20;

/// How a payload is compressed, by the flags of its object.
const XZ: u8 = 1;
const LZ4: u8 = 2;
const ZSTD: u8 = 4;

pub(crate) const FLAGS: u8 = XZ | LZ4 | ZSTD;

const BAD: &str = "a compressed field cannot be decompressed";
pub(crate) const LONG: &str = "a field is longer than 64 MiB";

/// Adds the payload to `out` as it was before its compression.
pub(crate) fn unpack(flags: u8, packed: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
    match flags & FLAGS {
        0 => {
            out.extend_from_slice(packed);
            Ok(())
        }
        XZ => {
            let start = out.len();
            let reader = lzma_rust2::XzReader::new(packed, false);
            let read = reader.take(PAYLOAD_BYTES_MAX as u64 + 1).read_to_end(out);
            let read = read.map_err(|_| BAD)?;
            if read > PAYLOAD_BYTES_MAX {
                out.truncate(start);
                return Err(LONG);
            }
            Ok(())
        }
        LZ4 => {
            let (size, packed) = packed.split_first_chunk().ok_or(BAD)?;
            let size = bounded(u64::from_le_bytes(*size))?;
            let start = out.len();
            out.resize(start + size, 0);
            match lz4_flex::block::decompress_into(packed, &mut out[start..]) {
                Ok(count) if count == size => Ok(()),
                _ => Err(BAD),
            }
        }
        ZSTD => {
            let size = zstd_safe::get_frame_content_size(packed).ok().flatten().ok_or(BAD)?;
            let size = bounded(size)?;
            let start = out.len();
            out.resize(start + size, 0);
            match zstd_safe::decompress(&mut out[start..], packed) {
                Ok(count) if count == size => Ok(()),
                _ => Err(BAD),
            }
        }
        _ => Err("a field has two compressions"),
    }
}

fn bounded(size: u64) -> Result<usize, &'static str> {
    usize::try_from(size).ok().filter(|size| *size <= PAYLOAD_BYTES_MAX).ok_or(LONG)
}
