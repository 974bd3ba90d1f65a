//! The blocks of a file, and how they are compressed.

use super::decode::Bytes;
use flate2::read::DeflateDecoder;
use skidder_parse::records::Stored;
use std::io::{self, Read};
use std::sync::Arc;

/// What a file begins with.
const MAGIC: &[u8; 4] = b"Obj\x01";
/// Bytes of the mark behind each block.
const MARK_BYTES: usize = 16;
/// Bytes of what stands before the first block, the schema above all.
const HEADER_BYTES_MAX: usize = 16 << 20;
/// Bytes of a block, as it is stored, and decompressed.
const BLOCK_BYTES_MAX: usize = 64 << 20;
/// Bytes of the numbers before a block.
const NUMBERS_BYTES: usize = 20;

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Wrong(String);

impl Wrong {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl From<io::Error> for Wrong {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Codec {
    Null,
    Deflate,
    Snappy,
    Zstandard,
}

/// The blocks of a file, one after the other.
pub(super) struct Blocks {
    stored: Arc<dyn Stored>,
    codec: Codec,
    mark: [u8; MARK_BYTES],
    /// Where the next block begins.
    place: u64,
    /// Place and bytes of the content of the block before it.
    content: (u64, usize),
}

impl Blocks {
    /// The blocks, and the text of the schema.
    pub(super) fn open(stored: Arc<dyn Stored>) -> Result<(Self, String), Wrong> {
        let size = usize::try_from(stored.size()).unwrap_or(usize::MAX);
        let mut bytes = 4 << 10;
        loop {
            let head = read_at(&*stored, 0, bytes.min(size))?;
            match read_header(&head) {
                Ok((codec, schema, mark, place)) => {
                    let place = place as u64;
                    return Ok((Self { stored, codec, mark, place, content: (0, 0) }, schema));
                }
                Err(wrong) if bytes >= size || !head.starts_with(MAGIC) => return Err(wrong),
                Err(_) if bytes >= HEADER_BYTES_MAX => {
                    return Err(Wrong::new("its schema has more than 16 MiB"));
                }
                // It may be longer.
                Err(_) => bytes *= 4,
            }
        }
    }

    /// Rows of the next block; nothing at the end.
    pub(super) fn next(&mut self) -> Result<Option<u64>, Wrong> {
        let left = self.stored.size().saturating_sub(self.place);
        if left == 0 {
            return Ok(None);
        }
        let count = NUMBERS_BYTES.min(usize::try_from(left).unwrap_or(NUMBERS_BYTES));
        let numbers = read_at(&*self.stored, self.place, count)?;
        let mut rest = Bytes(&numbers);
        let (rows, size) = (rest.size()?, rest.size()?);
        let start = self.place + (numbers.len() - rest.0.len()) as u64;
        let end = start + size as u64;
        if size > BLOCK_BYTES_MAX || end + MARK_BYTES as u64 > self.stored.size() {
            return Err(Wrong::new(format!("a block of {size} bytes is cut off, or too long")));
        }
        if read_at(&*self.stored, end, MARK_BYTES)? != self.mark {
            return Err(Wrong::new("a block has not the mark of this file behind it"));
        }
        self.content = (start, size);
        self.place = end + MARK_BYTES as u64;
        Ok(Some(rows as u64))
    }

    /// The content of that block.
    pub(super) fn content(&self) -> Result<Vec<u8>, Wrong> {
        let (place, size) = self.content;
        let packed = read_at(&*self.stored, place, size)?;
        match self.codec {
            Codec::Null => Ok(packed),
            Codec::Deflate => bounded(DeflateDecoder::new(&packed[..])),
            Codec::Snappy => snappy(&packed),
            Codec::Zstandard => zstandard(&packed),
        }
    }
}

/// Codec, schema, mark, and where the first block begins.
fn read_header(head: &[u8]) -> Result<(Codec, String, [u8; MARK_BYTES], usize), Wrong> {
    let Some(rest) = head.strip_prefix(MAGIC) else {
        return Err(Wrong::new("it does not begin with the magic number `Obj`"));
    };
    let mut rest = Bytes(rest);
    let (mut codec, mut schema) = (Codec::Null, None);
    while let Some(count) = rest.block()? {
        for _ in 0..count {
            let (key, value) = (rest.text()?, rest.text()?);
            match key {
                b"avro.codec" => codec = codec_of(value)?,
                b"avro.schema" => schema = Some(String::from_utf8_lossy(value).into_owned()),
                _ => {}
            }
        }
    }
    let mark = rest.take(MARK_BYTES)?.try_into().map_err(|_| Wrong::new("it has no mark"))?;
    let schema = schema.ok_or_else(|| Wrong::new("it has no schema"))?;
    Ok((codec, schema, mark, head.len() - rest.0.len()))
}

fn codec_of(name: &[u8]) -> Result<Codec, Wrong> {
    match name {
        b"null" | b"" => Ok(Codec::Null),
        b"deflate" => Ok(Codec::Deflate),
        b"snappy" => Ok(Codec::Snappy),
        b"zstandard" => Ok(Codec::Zstandard),
        other => {
            let name = String::from_utf8_lossy(other);
            let known = "`null`, `deflate`, `snappy` and `zstandard` are read";
            Err(Wrong::new(format!("its codec is `{name}`; {known}")))
        }
    }
}

fn read_at(stored: &dyn Stored, place: u64, count: usize) -> Result<Vec<u8>, Wrong> {
    let mut bytes = vec![0; count];
    let mut filled = 0;
    while filled < count {
        match stored.read_at(&mut bytes[filled..], place + filled as u64)? {
            0 => return Err(Wrong::new("it is cut off")),
            more => filled += more,
        }
    }
    Ok(bytes)
}

fn too_long() -> Wrong {
    Wrong::new("a block has more than 64 MiB, decompressed")
}

fn bounded(content: impl Read) -> Result<Vec<u8>, Wrong> {
    let mut bytes = Vec::new();
    content.take(BLOCK_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > BLOCK_BYTES_MAX { Err(too_long()) } else { Ok(bytes) }
}

/// With a CRC of the content behind it.
fn snappy(packed: &[u8]) -> Result<Vec<u8>, Wrong> {
    let Some((packed, crc)) = packed.split_last_chunk::<4>() else {
        return Err(Wrong::new("a block of Snappy has no CRC"));
    };
    let failed = |error: snap::Error| Wrong::new(error.to_string());
    if snap::raw::decompress_len(packed).map_err(failed)? > BLOCK_BYTES_MAX {
        return Err(too_long());
    }
    let bytes = snap::raw::Decoder::new().decompress_vec(packed).map_err(failed)?;
    if crc32fast::hash(&bytes) != u32::from_be_bytes(*crc) {
        return Err(Wrong::new("a block fails its CRC"));
    }
    Ok(bytes)
}

/// Bytes that are made room for at once.
const STEP_BYTES: usize = 128 << 10;

fn zstandard(packed: &[u8]) -> Result<Vec<u8>, Wrong> {
    let failed = |code| Wrong::new(zstd_safe::get_error_name(code));
    let mut context = zstd_safe::DCtx::create();
    let mut input = zstd_safe::InBuffer::around(packed);
    let mut out = Vec::new();
    loop {
        if out.len() > BLOCK_BYTES_MAX {
            return Err(too_long());
        }
        out.reserve(STEP_BYTES);
        let before = out.len();
        let mut output = zstd_safe::OutBuffer::around_pos(&mut out, before);
        let missing = context.decompress_stream(&mut output, &mut input).map_err(failed)?;
        let is_read = input.pos() == packed.len();
        if is_read && missing == 0 {
            return Ok(out);
        }
        if is_read && out.len() == before {
            return Err(Wrong::new("a block of Zstandard is cut off"));
        }
    }
}
