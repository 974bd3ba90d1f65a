//! The content of a damaged block before the damage.
//!
//! The library decodes a piece of its input at a time, and keeps what a piece gave when the piece
//! turns out to be damaged. So the block is decoded again from its start through another interface
//! of the library, which stops exactly where the caller wants: first to where the output ended,
//! then byte by byte up to the damage. Only a damaged block costs that.

use super::super::Stop;
use super::super::input::Input;
use lzma_rust2::Lzma2Reader;
use std::io::{self, Read};

/// A block that has given more than this is not decoded again: it would take seconds. Up to a piece
/// of its input is lost.
pub(super) const AGAIN_BYTES_MAX: u64 = 512 << 20;

/// What comes of one piece of input, at most: far more than LZMA can make of one.
const RESCUED_BYTES_MAX: usize = 16 << 20;

/// Zeros behind the end of a file that is still being written: a chunk is read whole.
const PADDING_BYTES: usize = 64 << 10;

/// No byte of UTF-8.
const NO_BYTE: u8 = 0xff;

/// What the block gives whose data begin at `start`, behind the first `given` bytes.
pub(super) fn rescue(input: &mut Input<'_>, start: u64, dictionary: u32, given: u64) -> Vec<u8> {
    let mut rescued = Vec::new();
    let data = Data { input, at: start, padding: PADDING_BYTES };
    let mut reader = Lzma2Reader::new(data, dictionary, None);
    let mut again = reader.by_ref().take(given);
    if io::copy(&mut again, &mut io::sink()).is_err() || again.limit() > 0 {
        return rescued;
    }
    while rescued.len() < RESCUED_BYTES_MAX {
        let mut byte = [NO_BYTE];
        match reader.read(&mut byte) {
            Ok(1) => rescued.extend_from_slice(&byte),
            Ok(_) => break,
            Err(_) => {
                // At the end of a chunk the last byte comes together with the error.
                rescued.extend(byte.iter().filter(|byte| **byte != NO_BYTE));
                break;
            }
        }
    }
    rescued
}

/// The data of a block.
struct Data<'a, 'b> {
    input: &'a mut Input<'b>,
    at: u64,
    padding: usize,
}

impl Read for Data<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let piece = self.input.piece_at(self.at).map_err(|stop| match stop {
            Stop::Read(error) => io::Error::other(error),
            _ => io::ErrorKind::InvalidData.into(),
        })?;
        let count = piece.len().min(buffer.len());
        buffer[..count].copy_from_slice(&piece[..count]);
        self.at += count as u64;
        if !piece.is_empty() {
            return Ok(count);
        }
        let zeros = self.padding.min(buffer.len());
        buffer[..zeros].fill(0);
        self.padding -= zeros;
        Ok(zeros)
    }
}
