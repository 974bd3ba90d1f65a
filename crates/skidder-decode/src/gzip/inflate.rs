//! A safe face for the raw inflate of `libz-rs-sys`: all `unsafe` of this crate is in this file.
//!
//! Promises: whatever safe code does with an [`Inflate`], no pointer outlives the call it was lent
//! for, nothing is freed twice, and no return code is lost. The decoder knows nothing of gzip:
//! headers, checksums and members are the business of `reader`.

#![expect(
    unsafe_code,
    reason = "the C-shaped API is the only one with block boundaries and windows"
)]

use libz_rs_sys::{
    Z_BLOCK, Z_BUF_ERROR, Z_DATA_ERROR, Z_NO_FLUSH, Z_OK, Z_STREAM_END, inflate, inflateEnd,
    inflateGetDictionary, inflateInit2_, inflatePrime, inflateReset, inflateSetDictionary,
    z_stream, zlibVersion,
};
use std::ffi::{CStr, c_int};
use std::fmt;

/// Bytes of output a deflate stream can refer back to (RFC 1951, section 2).
pub const WINDOW_BYTES: usize = 32 * 1024;

/// Negative: raw deflate, without zlib's or gzip's wrapping; 15: the largest window.
const RAW_WINDOW_BITS: c_int = -15;
/// `data_type`: unused bits of the last byte consumed; between two blocks at most 7.
const UNUSED_BITS: c_int = 63;
/// `data_type`: the block being decoded, or just finished, is the last of the stream.
const LAST_BLOCK: c_int = 64;
/// `data_type`: the decoder stands between two blocks.
const BLOCK_END: c_int = 128;

/// There is no memory for a decoder (about 47 KiB).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no memory for a deflate decoder")]
pub struct OutOfMemory;

/// A decoder's position cannot be set in the middle of a stream, or to a window above 32 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the deflate decoder refused the saved position")]
pub struct Refused;

/// What one call of [`Inflate::inflate`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Bytes of input used up.
    pub consumed: usize,
    /// Bytes of output written. Output beyond them may have been overwritten with garbage.
    pub produced: usize,
    /// Why the call returned.
    pub stop: Stop,
}

/// Why [`Inflate::inflate`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Input or output is used up.
    Exhausted,
    /// Between two blocks (only if asked to stop there).
    Block {
        /// High bits of the last byte consumed that belong to the next block, 0 to 7.
        bits: u8,
        /// The block that ended was the last: the end of the stream follows.
        last: bool,
    },
    /// The stream is complete; input beyond `consumed` does not belong to it.
    End,
    /// The input is not a deflate stream. Output before the damage has been produced.
    Damaged(&'static str),
}

/// A decoder for raw deflate streams (RFC 1951).
pub struct Inflate {
    /// Boxed, because C zlib wants its stream to stay where it was initialised. Between calls it
    /// holds no pointer to a caller's buffer.
    stream: Box<z_stream>,
    /// Nothing was decoded since `new` or `reset`, so that a position may still be set.
    fresh: bool,
}

// SAFETY: the stream owns its allocation alone, has no thread-local or shared state, and its
// pointers into callers' buffers are never followed between calls.
unsafe impl Send for Inflate {}

impl Inflate {
    /// Allocates a decoder that stands at the start of a stream.
    pub fn new() -> Result<Self, OutOfMemory> {
        let mut stream = Box::new(z_stream::default());
        // SAFETY: `stream` is valid with its default allocator set, and has the size we state.
        let code = unsafe {
            inflateInit2_(
                &raw mut *stream,
                RAW_WINDOW_BITS,
                zlibVersion(),
                size_of::<z_stream>() as c_int,
            )
        };
        // Version, size and window bits are constants that fit, so that only memory can be short.
        // On failure nothing stays allocated and there is nothing to end.
        if code == Z_OK { Ok(Self { stream, fresh: true }) } else { Err(OutOfMemory) }
    }

    /// Puts the decoder back to the start of a stream, keeping its memory.
    pub fn reset(&mut self) {
        // SAFETY: the stream was initialised by `new` and not ended.
        let code = unsafe { inflateReset(&raw mut *self.stream) };
        assert_eq!(code, Z_OK, "resetting an initialised stream cannot fail");
        self.fresh = true;
    }

    /// Decodes from `input` into `output` until one of them is used up, the stream ends or is
    /// damaged, or (with `stop_at_block`) a block ends.
    ///
    /// Stopping at every block costs about 10 % of the speed. Of very long slices the first 4 GiB
    /// are used.
    pub fn inflate(&mut self, input: &[u8], output: &mut [u8], stop_at_block: bool) -> Step {
        let input_bytes = u32::try_from(input.len()).unwrap_or(u32::MAX);
        let output_bytes = u32::try_from(output.len()).unwrap_or(u32::MAX);
        let stream = &mut *self.stream;
        stream.next_in = input.as_ptr();
        stream.avail_in = input_bytes;
        stream.next_out = output.as_mut_ptr();
        stream.avail_out = output_bytes;
        self.fresh = false;
        let flush = if stop_at_block { Z_BLOCK } else { Z_NO_FLUSH };
        // SAFETY: the stream was initialised by `new` and not ended; the two pointers are valid
        // for the stated lengths during the call, and the output is exclusively ours.
        let code = unsafe { inflate(&raw mut *stream, flush) };
        let consumed = (input_bytes - stream.avail_in) as usize;
        let produced = (output_bytes - stream.avail_out) as usize;
        stream.next_in = std::ptr::null();
        stream.avail_in = 0;
        stream.next_out = std::ptr::null_mut();
        stream.avail_out = 0;
        let data_type = stream.data_type;
        let stop = match code {
            Z_STREAM_END => Stop::End,
            Z_OK | Z_BUF_ERROR if stop_at_block && data_type & BLOCK_END != 0 => Stop::Block {
                bits: (data_type & UNUSED_BITS) as u8,
                last: data_type & LAST_BLOCK != 0,
            },
            // `Z_BUF_ERROR` is zlib's word for "no progress possible": not an error here.
            Z_OK | Z_BUF_ERROR => Stop::Exhausted,
            Z_DATA_ERROR => Stop::Damaged(self.message()),
            // A preset dictionary exists in zlib's wrapping only, and our calls are well-formed.
            _ => Stop::Damaged("unexpected answer of the deflate decoder"),
        };
        Step { consumed, produced, stop }
    }

    /// Sets the decoder to the middle of a stream: `bits` high bits of `last_byte` are still to be
    /// decoded before the next byte of input, and `window` is the output so far (its last
    /// 32 KiB). Only directly after `new` or `reset`.
    pub fn restore(&mut self, bits: u8, last_byte: u8, window: &[u8]) -> Result<(), Refused> {
        if !self.fresh || bits > 7 || window.len() > WINDOW_BYTES {
            return Err(Refused);
        }
        self.fresh = false;
        if bits > 0 {
            let value = c_int::from(last_byte >> (8 - bits));
            // SAFETY: the stream was initialised by `new` and not ended.
            let code = unsafe { inflatePrime(&raw mut *self.stream, c_int::from(bits), value) };
            if code != Z_OK {
                return Err(Refused);
            }
        }
        // SAFETY: as above; `window` is valid for its length, which fits, and is copied.
        let code = unsafe {
            inflateSetDictionary(&raw mut *self.stream, window.as_ptr(), window.len() as u32)
        };
        if code == Z_OK { Ok(()) } else { Err(Refused) }
    }

    /// Replaces `window` by the last output, 32 KiB or all there is since the start.
    pub fn copy_window(&self, window: &mut Vec<u8>) {
        window.resize(WINDOW_BYTES, 0);
        let mut bytes = 0;
        // SAFETY: the stream was initialised by `new` and not ended; `window` has room for
        // `WINDOW_BYTES`, the most that is ever written.
        let code = unsafe {
            inflateGetDictionary(&raw const *self.stream, window.as_mut_ptr(), &raw mut bytes)
        };
        assert!(
            code == Z_OK && bytes as usize <= WINDOW_BYTES,
            "an initialised stream has a window"
        );
        window.truncate(bytes as usize);
    }

    /// What the decoder says about the damage it has just reported.
    fn message(&self) -> &'static str {
        const UNKNOWN: &str = "invalid deflate data";
        if self.stream.msg.is_null() {
            return UNKNOWN;
        }
        // SAFETY: zlib-rs sets `msg` only from string literals that end with a zero byte.
        let message: &'static CStr = unsafe { CStr::from_ptr(self.stream.msg) };
        match message.to_str() {
            // zlib-rs 0.6 replaces the true reason by this one if its fast loop found the damage.
            Ok("repeated call with bad state") | Err(_) => UNKNOWN,
            Ok(message) => message,
        }
    }
}

impl fmt::Debug for Inflate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Inflate").field("fresh", &self.fresh).finish_non_exhaustive()
    }
}

impl Drop for Inflate {
    fn drop(&mut self) {
        // SAFETY: initialised by `new`, ended here only.
        let code = unsafe { inflateEnd(&raw mut *self.stream) };
        debug_assert_eq!(code, Z_OK, "ending an initialised stream cannot fail");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One stored block holding `abc`, marked as the last.
    const STORED: &[u8] = &[0x01, 0x03, 0x00, 0xfc, 0xff, b'a', b'b', b'c'];

    #[test]
    fn a_stored_block_is_decoded_and_the_rest_left_alone() {
        let mut inflate = Inflate::new().unwrap();
        let mut output = [0; 16];
        let step = inflate.inflate(&[STORED, b"rest"].concat(), &mut output, false);
        assert_eq!(step, Step { consumed: 8, produced: 3, stop: Stop::End });
        assert_eq!(&output[..3], b"abc");
    }

    #[test]
    fn a_reset_decoder_starts_again_also_after_damage() {
        let mut inflate = Inflate::new().unwrap();
        let mut output = [0; 16];
        let step = inflate.inflate(&[0xff; 4], &mut output, false);
        assert_eq!(step.stop, Stop::Damaged("invalid block type"));
        inflate.reset();
        let step = inflate.inflate(STORED, &mut output, false);
        assert_eq!((step.produced, step.stop), (3, Stop::End));
    }

    #[test]
    fn calls_without_input_or_output_are_harmless() {
        let mut inflate = Inflate::new().unwrap();
        let nothing = Step { consumed: 0, produced: 0, stop: Stop::Exhausted };
        assert_eq!(inflate.inflate(&[], &mut [], true), nothing);
        assert_eq!(inflate.inflate(&[], &mut [0; 4], false), nothing);
        let step = inflate.inflate(STORED, &mut [], false);
        assert_eq!((step.produced, step.stop), (0, Stop::Exhausted));
    }

    #[test]
    fn a_position_is_refused_once_decoding_has_begun() {
        let mut inflate = Inflate::new().unwrap();
        assert_eq!(inflate.restore(8, 0, &[]), Err(Refused));
        assert_eq!(inflate.restore(0, 0, &[0; WINDOW_BYTES + 1]), Err(Refused));
        assert_eq!(inflate.restore(3, 0xff, &[7; 10]), Ok(()));
        assert_eq!(inflate.restore(3, 0xff, &[7; 10]), Err(Refused));
        let mut window = Vec::new();
        inflate.copy_window(&mut window);
        assert_eq!(window, [7; 10]);
    }

    #[test]
    fn a_block_boundary_says_whether_it_is_the_last() {
        let first = [0x00, 0x03, 0x00, 0xfc, 0xff, b'a', b'b', b'c'];
        let input = [&first[..], STORED].concat();
        let mut inflate = Inflate::new().unwrap();
        let mut output = [0; 16];
        let step = inflate.inflate(&input, &mut output, true);
        assert_eq!(
            step,
            Step { consumed: 8, produced: 3, stop: Stop::Block { bits: 0, last: false } }
        );
        let step = inflate.inflate(&input[8..], &mut output[3..], true);
        assert_eq!(
            step,
            Step { consumed: 8, produced: 3, stop: Stop::Block { bits: 0, last: true } }
        );
        let step = inflate.inflate(&[], &mut output[6..], true);
        assert_eq!(step, Step { consumed: 0, produced: 0, stop: Stop::End });
        assert_eq!(&output[..6], b"abcabc");
    }
}
