//! Comparing the content of two files that begin alike, in steps, so that a scan is never held up.

use crate::fingerprint::Fingerprint;
use sha2::{Digest, Sha256};
use skidder_decode::{Codec, DecodeError, Decoder, DecoderPool, ReadState};
use skidder_os::File;
use std::io;

/// Bytes of each side that are compared at once.
const PIECE_BYTES: usize = 64 << 10;

/// One side of a comparison.
pub(crate) struct Side {
    file: Box<dyn File>,
    decoder: Decoder,
    piece: Vec<u8>,
    from: usize,
    ended: bool,
    /// If it is compressed: it ends inside of a stream, is still being written or was cut short.
    cut: bool,
    /// If it is compressed: it ends where its last stream does.
    whole: bool,
}

/// The check value of a part of a file, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartCrc {
    Is(u32),
    /// The file ends before the end of the part, and more may come.
    NotYet,
    /// A whole compressed file, shorter than that.
    Shorter,
}

/// The codec of a compressed file. If it cannot be detected any more, decoding fails in the same way.
pub(crate) fn codec_of(file: &dyn File) -> Codec {
    Codec::detect(file).ok().flatten().unwrap_or(Codec::Gzip)
}

/// A comparison in progress.
pub(crate) struct Comparison {
    one: Side,
    other: Side,
    at: u64,
}

/// The result so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The files differ in the byte at this offset, or one is longer there than the other, which ended.
    Differ { at: u64, longer: Option<Longer> },
    /// Equal up to the end of both.
    Same,
    /// Equal so far; more to compare.
    Undecided,
}

/// Which side goes on where the other has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Longer {
    One,
    Other,
}

impl Side {
    pub(crate) fn new(file: Box<dyn File>, compressed: bool, pool: &DecoderPool) -> Self {
        let codec = compressed.then(|| codec_of(&*file));
        let decoder = Decoder::start(codec, pool).without_checkpoints();
        Self { file, decoder, piece: Vec::new(), from: 0, ended: false, cut: false, whole: false }
    }

    /// Bytes not yet compared; none at the end for now.
    fn fill(&mut self, scratch: &mut [u8]) -> io::Result<()> {
        while self.from == self.piece.len() && !self.ended {
            self.piece.resize(PIECE_BYTES, 0);
            self.from = 0;
            match self.decoder.read(&*self.file, scratch, &mut self.piece) {
                Ok(progress) => {
                    self.piece.truncate(progress.produced);
                    self.ended = progress.produced == 0 && progress.state != ReadState::More;
                    self.cut = progress.state == ReadState::Waiting;
                    self.whole = progress.state == ReadState::End;
                }
                Err(DecodeError::Read { source, .. }) => return Err(source),
                // Damaged data ends there, as it does for a reader.
                Err(_) => {
                    self.piece.clear();
                    self.ended = true;
                    self.whole = false;
                }
            }
        }
        Ok(())
    }
}

impl Comparison {
    pub(crate) fn new(one: Side, other: Side) -> Self {
        Self { one, other, at: 0 }
    }

    /// Whether the other side, if it is compressed, ended inside of a stream: it is still being written, or was cut short.
    pub(crate) fn is_other_cut(&self) -> bool {
        self.other.ended && self.other.cut
    }

    /// Compares up to `budget` more bytes.
    pub(crate) fn step(&mut self, scratch: &mut [u8], budget: &mut u64) -> io::Result<Verdict> {
        while *budget > 0 {
            self.one.fill(scratch)?;
            self.other.fill(scratch)?;
            let one = &self.one.piece[self.one.from..];
            let other = &self.other.piece[self.other.from..];
            match (one.is_empty(), other.is_empty()) {
                (true, true) => return Ok(Verdict::Same),
                (false, true) => {
                    return Ok(Verdict::Differ { at: self.at, longer: Some(Longer::One) });
                }
                (true, false) => {
                    return Ok(Verdict::Differ { at: self.at, longer: Some(Longer::Other) });
                }
                (false, false) => {}
            }
            let count = one.len().min(other.len());
            if one[..count] != other[..count] {
                let same = one.iter().zip(other).take_while(|(a, b)| a == b).count();
                return Ok(Verdict::Differ { at: self.at + same as u64, longer: None });
            }
            self.one.from += count;
            self.other.from += count;
            self.at += count as u64;
            *budget = budget.saturating_sub(count as u64);
        }
        Ok(Verdict::Undecided)
    }
}

/// The fingerprint of the first `len` bytes behind `offset` of a file; `None` if it is shorter.
pub(crate) fn fingerprint_of(
    mut side: Side,
    offset: u64,
    len: u32,
    scratch: &mut [u8],
) -> io::Result<Option<Fingerprint>> {
    let mut hash = Sha256::new();
    let (mut skip, mut left) = (offset as usize, len as usize);
    while left > 0 {
        side.fill(scratch)?;
        let piece = &side.piece[side.from..];
        if piece.is_empty() {
            return Ok(None);
        }
        let skipped = skip.min(piece.len());
        let used = left.min(piece.len() - skipped);
        hash.update(&piece[skipped..skipped + used]);
        skip -= skipped;
        left -= used;
        side.from += skipped + used;
    }
    Ok(Some(Fingerprint { hash: hash.finalize().into(), len, whole: false }))
}

/// The check value of `len` bytes from `start` on.
pub(crate) fn crc_of(
    mut side: Side,
    start: u64,
    len: u32,
    scratch: &mut [u8],
) -> io::Result<PartCrc> {
    let mut crc = crc32fast::Hasher::new();
    let (mut skip, mut left) = (start, len as usize);
    while left > 0 {
        side.fill(scratch)?;
        let piece = &side.piece[side.from..];
        if piece.is_empty() {
            return Ok(if side.whole { PartCrc::Shorter } else { PartCrc::NotYet });
        }
        let skipped = usize::try_from(skip).map_or(piece.len(), |skip| skip.min(piece.len()));
        let used = left.min(piece.len() - skipped);
        crc.update(&piece[skipped..skipped + used]);
        skip -= skipped as u64;
        left -= used;
        side.from += skipped + used;
    }
    Ok(PartCrc::Is(crc.finalize()))
}
