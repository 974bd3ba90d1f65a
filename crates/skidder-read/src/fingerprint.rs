//! Identity by content: SHA-256 over the first decompressed bytes of a file.
//!
//! A fingerprint says how many bytes it covers. Normally that is
//! `prospector.scanner.fingerprint.length`; a file that is shorter has a shorter one, which grows with
//! it; a file that shares the normal one with another, different file has a longer one, up to the first
//! byte in which they differ.

use crate::settings::{Compression, FingerprintSettings};
use sha2::{Digest, Sha256};
use skidder_decode::{Codec, DecodeError, DecoderPool};
use skidder_os::File;
use std::cell::OnceCell;
use std::io;

/// A fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    /// SHA-256 of the bytes.
    pub hash: [u8; 32],
    /// Number of bytes it covers.
    pub len: u32,
    /// It covers them from the first byte of the file on, not from `fingerprint.offset`: the file differs
    /// from another only before that.
    pub whole: bool,
}

/// Set in the length that is saved of a fingerprint that begins with the first byte.
const WHOLE: u32 = 1 << 31;

impl Fingerprint {
    /// The fingerprint of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self { hash: Sha256::digest(bytes).into(), len: bytes.len() as u32, whole: false }
    }

    /// Lower-case hexadecimal, as Filebeat shows it.
    pub fn hex(&self) -> String {
        let digit = |bits: u8| char::from(b"0123456789abcdef"[usize::from(bits)]);
        let mut text = String::with_capacity(64);
        for byte in self.hash {
            text.push(digit(byte >> 4));
            text.push(digit(byte & 15));
        }
        text
    }

    /// What the registry keeps besides the hash: the length, and whether it begins with the first byte.
    pub fn saved_len(&self) -> u32 {
        self.len | if self.whole { WHOLE } else { 0 }
    }

    /// The number of bytes in what [`Fingerprint::saved_len`] gave.
    pub fn bytes_of_saved(saved_len: u32) -> u32 {
        saved_len & !WHOLE
    }

    /// Reads what [`Fingerprint::hex`] and [`Fingerprint::saved_len`] wrote.
    pub fn from_hex(hex: &str, saved_len: u32) -> Option<Self> {
        if hex.len() != 64 || !hex.is_ascii() {
            return None;
        }
        let mut hash = [0; 32];
        for (at, byte) in hash.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).ok()?;
        }
        Some(Self { hash, len: Self::bytes_of_saved(saved_len), whole: saved_len & WHOLE != 0 })
    }
}

/// All there is of a file that may become a gzip file: its kind is not known yet.
const GZIP_BEGUN: [u8; 1] = [0x1f];

/// The beginning of a file.
#[derive(Clone, Debug)]
pub struct Head {
    /// Decompressed bytes from `fingerprint.offset` on, at most the requested number.
    pub bytes: Vec<u8>,
    /// Whether the file is stored compressed.
    pub compressed: bool,
    /// Whether a compressed file, or one that may become one, is too short, for now, and still being
    /// written.
    pub growing: bool,
    /// The fingerprint of `bytes`, computed on first use.
    pub(crate) print: OnceCell<Fingerprint>,
}

impl Head {
    /// The fingerprint of all of `bytes`.
    pub fn print(&self) -> Fingerprint {
        *self.print.get_or_init(|| Fingerprint::of(&self.bytes))
    }

    /// The fingerprint of the first `len` bytes; `None` if there are fewer.
    pub(crate) fn print_of_first(&self, len: u32) -> Option<Fingerprint> {
        match self.bytes.get(..len as usize)? {
            all if all.len() == self.bytes.len() => Some(self.print()),
            first => Some(Fingerprint::of(first)),
        }
    }

    /// Whether the file begins with what a fingerprint covers.
    pub fn matches(&self, fingerprint: &Fingerprint) -> bool {
        let len = fingerprint.len as usize;
        !fingerprint.whole
            && len <= self.bytes.len()
            && Fingerprint::of(&self.bytes[..len]) == *fingerprint
    }
}

/// Why the beginning of a file cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum HeadError {
    /// The system did not give it; it is tried again with the next scan.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// `compression` names a codec, and it is not of that.
    #[error("not a file of {0}; with `compression: auto` plain and compressed files may be mixed")]
    NotOf(Codec),
    /// It is compressed and its beginning is damaged.
    #[error("{0}")]
    Damaged(String),
}

/// Reads the first `len` decompressed bytes behind `fingerprint.offset`, or as many as there are.
pub(crate) fn read_head(
    file: &dyn File,
    compression: Compression,
    settings: &FingerprintSettings,
    len: usize,
    pool: &DecoderPool,
    scratch: &mut [u8],
) -> Result<Head, HeadError> {
    let found = match compression {
        Compression::None => None,
        Compression::Auto | Compression::Only(_) => Codec::detect(file).map_err(head_error)?,
    };
    if let Compression::Only(codec) = compression
        && found != Some(codec)
    {
        return Err(HeadError::NotOf(codec));
    }
    let skip = settings.offset as usize;
    let compressed = found.is_some();
    let Some(codec) = found else {
        let mut bytes = vec![0; len];
        let count = read_up_to(file, &mut bytes, settings.offset)?;
        bytes.truncate(count);
        let begun = compression != Compression::None && settings.offset == 0 && bytes == GZIP_BEGUN;
        return Ok(Head { bytes, compressed, growing: begun, print: OnceCell::new() });
    };
    let mut bytes = vec![0; skip + len];
    let (count, growing) =
        skidder_decode::head(file, codec, scratch, &mut bytes, pool).map_err(head_error)?;
    bytes.truncate(count);
    bytes.drain(..skip.min(count));
    Ok(Head { bytes, compressed, growing, print: OnceCell::new() })
}

fn head_error(error: DecodeError) -> HeadError {
    match error {
        DecodeError::Read { source, .. } => HeadError::Io(source),
        other => HeadError::Damaged(other.to_string()),
    }
}

/// Fills `out` from `offset`, or as much of it as the file has.
pub(crate) fn read_up_to(file: &dyn File, out: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < out.len() {
        match file.read_at(&mut out[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_reads_back_from_its_hex() {
        let print = Fingerprint::of(b"abc");
        assert_eq!(print.hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(Fingerprint::from_hex(&print.hex(), 3), Some(print));
        assert_eq!(Fingerprint::from_hex("zz", 3), None);
        let whole = Fingerprint { whole: true, ..print };
        assert_eq!(Fingerprint::from_hex(&whole.hex(), whole.saved_len()), Some(whole));
    }

    #[test]
    fn a_head_matches_what_its_first_bytes_gave() {
        let head = Head {
            bytes: b"hello world".to_vec(),
            compressed: false,
            growing: false,
            print: OnceCell::new(),
        };
        assert!(head.matches(&Fingerprint::of(b"hello")));
        assert!(!head.matches(&Fingerprint::of(b"hellO")));
        assert!(!head.matches(&Fingerprint::of(b"hello world and more")));
    }
}
