//! A decoder for raw deflate streams (RFC 1951).
//!
//! Takes input and gives output in pieces of any size, can stop between blocks, and can be set to
//! the middle of a stream, as checkpoints need. Most of the work is done by [`fast`], as long as
//! there is plenty of input and room for output; the careful steps here do the ends of both.
//!
//! Promises: no input whatsoever makes it panic or write outside the given output; output before
//! damage is returned; input after the stream is not consumed.
//!
//! The decoder knows nothing of gzip: headers, checksums and members are the business of `gzip::reader`.

mod fast;
mod header;
mod inside;
mod table;

use fast::{FastEnd, Lanes};
use header::HeaderStep;
pub use inside::Inside;
use std::fmt;
use table::{Distances, Entry, Literals};

/// Bytes of output a deflate stream can refer back to (RFC 1951, section 2).
pub const WINDOW_BYTES: usize = 32 * 1024;

/// A decoder's position cannot be set in the middle of a stream, or to a window above 32 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the deflate decoder refused the saved position")]
pub struct Refused;

/// The result of one call of [`Inflate::inflate`].
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
    /// Between two blocks (only if the caller wants to stop there).
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

/// A decoder for raw deflate streams (RFC 1951): about 46 KiB.
pub struct Inflate {
    bits: Bits,
    mode: Mode,
    /// The block being decoded is the last.
    last: bool,
    tables: Box<Tables>,
    /// The last output, at most [`WINDOW_BYTES`].
    window: Vec<u8>,
    header: header::Lengths,
    /// Nothing was decoded since `new` or `reset`, so that a position may still be set.
    fresh: bool,
}

/// The codes of the block being decoded.
struct Tables {
    literals: Literals,
    distances: Distances,
    /// They are the fixed ones of RFC 1951, section 3.2.6.
    fixed: bool,
}

/// Input that was taken and not used up, the next bit lowest; bits above `count` are zero.
#[derive(Clone, Copy, Default)]
struct Bits {
    buffer: u64,
    count: u32,
}

/// Where the decoder stands in the grammar of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Before the three bits of a block's header.
    Header,
    /// Before the length of a stored block.
    StoredLength,
    /// Inside a stored block.
    Stored { left: usize },
    /// Inside the code lengths of a dynamic block.
    Dynamic,
    /// Before a symbol of a compressed block.
    Symbol,
    /// Before a literal whose code was used up with that of the one before it.
    Literal(u8),
    /// Before the distance of a match.
    Distance { length: usize },
    /// Inside a match.
    Match { length: usize, distance: usize },
    /// Behind a block.
    BlockEnd,
    /// Behind the last block.
    End,
    /// What follows cannot be decoded.
    Damaged(&'static str),
}

/// The buffers of one call.
struct Call<'a> {
    input: &'a [u8],
    consumed: usize,
    output: &'a mut [u8],
    produced: usize,
}

/// Input or output is used up.
struct Exhausted;

impl Bits {
    /// Makes sure of `count` bits (at most 32), byte by byte, so that nothing is taken that may belong to
    /// what follows the stream.
    fn need(&mut self, count: u32, call: &mut Call<'_>) -> Result<(), Exhausted> {
        while self.count < count {
            self.take_byte(call)?;
        }
        Ok(())
    }

    fn take_byte(&mut self, call: &mut Call<'_>) -> Result<(), Exhausted> {
        let &byte = call.input.get(call.consumed).ok_or(Exhausted)?;
        call.consumed += 1;
        self.buffer |= u64::from(byte) << self.count;
        self.count += 8;
        Ok(())
    }

    fn use_up(&mut self, count: u32) -> u64 {
        let value = self.buffer & ((1 << count) - 1);
        self.buffer >>= count;
        self.count -= count;
        value
    }
}

impl Inflate {
    /// A decoder that stands at the start of a stream.
    pub fn new() -> Self {
        let tables =
            Tables { literals: Literals::new(), distances: Distances::new(), fixed: false };
        Self {
            bits: Bits::default(),
            mode: Mode::Header,
            last: false,
            tables: Box::new(tables),
            window: Vec::new(),
            header: header::Lengths::new(),
            fresh: true,
        }
    }

    /// Puts the decoder back to the start of a stream, keeping its memory.
    pub fn reset(&mut self) {
        self.bits = Bits::default();
        self.mode = Mode::Header;
        self.last = false;
        self.window.clear();
        self.fresh = true;
    }

    /// Decodes from `input` into `output` until one of them is used up, the stream ends or is damaged, or
    /// (with `stop_at_block`) a block ends.
    pub fn inflate(&mut self, input: &[u8], output: &mut [u8], stop_at_block: bool) -> Step {
        self.fresh = false;
        let mut call = Call { input, consumed: 0, output, produced: 0 };
        if self.mode == Mode::BlockEnd {
            self.mode = if self.last { Mode::End } else { Mode::Header };
        }
        let stop = loop {
            match self.mode {
                Mode::End => break Stop::End,
                Mode::Damaged(why) => break Stop::Damaged(why),
                Mode::BlockEnd if stop_at_block => {
                    break Stop::Block { bits: self.bits.count as u8, last: self.last };
                }
                _ => {}
            }
            if self.step(&mut call).is_err() {
                break Stop::Exhausted;
            }
        };
        let Call { consumed, produced, output, .. } = call;
        // Nothing refers back behind the end.
        if self.mode != Mode::End {
            self.remember(&output[..produced]);
        }
        Step { consumed, produced, stop }
    }

    /// Goes on to the next mode, or says that this call has to end.
    fn step(&mut self, call: &mut Call<'_>) -> Result<(), Exhausted> {
        match self.mode {
            Mode::Header => self.block_header(call),
            Mode::StoredLength => self.stored_length(call),
            Mode::Stored { left } => self.stored(left, call),
            Mode::Dynamic => self.dynamic_header(call),
            Mode::Symbol => self.symbols(call),
            Mode::Literal(byte) => {
                *call.output.get_mut(call.produced).ok_or(Exhausted)? = byte;
                call.produced += 1;
                self.mode = Mode::Symbol;
                Ok(())
            }
            Mode::Distance { length } => self.distance(length, call),
            Mode::Match { length, distance } => self.copy(length, distance, call),
            Mode::BlockEnd => {
                self.mode = if self.last { Mode::End } else { Mode::Header };
                Ok(())
            }
            Mode::End | Mode::Damaged(_) => Err(Exhausted),
        }
    }

    fn block_header(&mut self, call: &mut Call<'_>) -> Result<(), Exhausted> {
        self.bits.need(3, call)?;
        self.last = self.bits.use_up(1) == 1;
        self.mode = match self.bits.use_up(2) {
            0 => Mode::StoredLength,
            1 => {
                if !self.tables.fixed {
                    self.tables.set_fixed();
                }
                Mode::Symbol
            }
            2 => {
                self.header.begin();
                Mode::Dynamic
            }
            _ => Mode::Damaged("invalid block type"),
        };
        Ok(())
    }

    fn stored_length(&mut self, call: &mut Call<'_>) -> Result<(), Exhausted> {
        // Less than a byte is left of the last one; it is of no meaning.
        let rest = self.bits.count % 8;
        self.bits.use_up(rest);
        self.bits.need(32, call)?;
        let length = self.bits.use_up(16);
        let complement = self.bits.use_up(16);
        self.mode = if length == complement ^ 0xffff {
            Mode::Stored { left: length as usize }
        } else {
            Mode::Damaged("invalid stored block lengths")
        };
        Ok(())
    }

    fn stored(&mut self, left: usize, call: &mut Call<'_>) -> Result<(), Exhausted> {
        debug_assert_eq!(
            self.bits.count, 0,
            "32 bits were needed, taken byte by byte, and used up"
        );
        if left == 0 {
            self.mode = Mode::BlockEnd;
            return Ok(());
        }
        let input = &call.input[call.consumed..];
        let output = &mut call.output[call.produced..];
        let count = left.min(input.len()).min(output.len());
        if count == 0 {
            return Err(Exhausted);
        }
        output[..count].copy_from_slice(&input[..count]);
        call.consumed += count;
        call.produced += count;
        self.mode = Mode::Stored { left: left - count };
        Ok(())
    }

    fn dynamic_header(&mut self, call: &mut Call<'_>) -> Result<(), Exhausted> {
        self.mode = match self.header.read(&mut self.bits, call)? {
            HeaderStep::Damaged(why) => Mode::Damaged(why),
            HeaderStep::Complete => {
                let (literals, distances) = self.header.lengths();
                match self.tables.set(literals, distances) {
                    Ok(()) => Mode::Symbol,
                    Err(why) => Mode::Damaged(why),
                }
            }
        };
        Ok(())
    }

    /// Symbols in the fast way as far as it goes, then one in the careful way.
    fn symbols(&mut self, call: &mut Call<'_>) -> Result<(), Exhausted> {
        if fast::has_margin(call) {
            let Tables { literals, distances, .. } = &*self.tables;
            let lanes = Lanes { literals, distances, window: &self.window };
            match fast::run(&lanes, &mut self.bits, call) {
                FastEnd::Margin => {}
                FastEnd::BlockEnd => {
                    self.mode = Mode::BlockEnd;
                    return Ok(());
                }
                FastEnd::Damaged(why) => {
                    self.mode = Mode::Damaged(why);
                    return Ok(());
                }
            }
        }
        self.symbol(call)
    }

    fn symbol(&mut self, call: &mut Call<'_>) -> Result<(), Exhausted> {
        if call.produced == call.output.len() {
            return Err(Exhausted);
        }
        let literals = &self.tables.literals;
        let entry = find_whole(&mut self.bits, call, |bits| literals.find(bits))?;
        let (entry, found_with) = entry;
        if entry.is_special() {
            self.mode = if entry.is_block_end() {
                Mode::BlockEnd
            } else {
                Mode::Damaged("invalid literal/length code")
            };
            return Ok(());
        }
        let [first, second] = entry.literals();
        if entry.count() > 0 {
            call.output[call.produced] = first;
            call.produced += 1;
        }
        if !entry.is_literal() {
            self.mode = Mode::Distance { length: entry.length_with_extra(found_with) };
        } else if entry.count() > 1 {
            self.mode = Mode::Literal(second);
        }
        Ok(())
    }

    fn distance(&mut self, length: usize, call: &mut Call<'_>) -> Result<(), Exhausted> {
        let distances = &self.tables.distances;
        let (entry, found_with) = find_whole(&mut self.bits, call, |bits| distances.find(bits))?;
        self.mode = if entry.is_special() {
            Mode::Damaged("invalid distance code")
        } else {
            let distance = entry.distance_with_extra(found_with);
            if distance > call.produced + self.window.len() {
                Mode::Damaged(fast::TOO_FAR_BACK)
            } else {
                Mode::Match { length, distance }
            }
        };
        Ok(())
    }

    /// Copies as much of a match as there is room for.
    fn copy(
        &mut self,
        length: usize,
        distance: usize,
        call: &mut Call<'_>,
    ) -> Result<(), Exhausted> {
        let count = length.min(call.output.len() - call.produced);
        for _ in 0..count {
            let byte = match call.produced.checked_sub(distance) {
                Some(at) => call.output[at],
                None => self.window[self.window.len() + call.produced - distance],
            };
            call.output[call.produced] = byte;
            call.produced += 1;
        }
        if count < length {
            self.mode = Mode::Match { length: length - count, distance };
            return Err(Exhausted);
        }
        self.mode = Mode::Symbol;
        Ok(())
    }

    /// Keeps the end of the output: later matches refer to it.
    fn remember(&mut self, output: &[u8]) {
        let tail = &output[output.len().saturating_sub(WINDOW_BYTES)..];
        let keep = WINDOW_BYTES - tail.len();
        if self.window.len() > keep {
            self.window.drain(..self.window.len() - keep);
        }
        if self.window.capacity() < WINDOW_BYTES {
            self.window.reserve_exact(WINDOW_BYTES - self.window.len());
        }
        self.window.extend_from_slice(tail);
    }

    /// Sets the decoder to the middle of a stream: `bits` high bits of `last_byte` are still to be decoded
    /// before the next byte of input, and `window` is the output so far (its last 32 KiB). Only directly
    /// after `new` or `reset`.
    pub fn restore(&mut self, bits: u8, last_byte: u8, window: &[u8]) -> Result<(), Refused> {
        if !self.fresh || bits > 7 || window.len() > WINDOW_BYTES {
            return Err(Refused);
        }
        self.fresh = false;
        if bits > 0 {
            let buffer = u64::from(last_byte >> (8 - bits));
            self.bits = Bits { buffer, count: u32::from(bits) };
        }
        self.remember(window);
        Ok(())
    }

    /// Replaces `window` by the last output, 32 KiB or all there is since the start.
    pub fn copy_window(&self, window: &mut Vec<u8>) {
        window.clear();
        window.reserve_exact(self.window.len());
        window.extend_from_slice(&self.window);
    }
}

/// The entry for the next bits, which are used up once all that belong to it are there; and the bits that it
/// was found with.
fn find_whole(
    bits: &mut Bits,
    call: &mut Call<'_>,
    find: impl Fn(u64) -> (Entry, u32),
) -> Result<(Entry, u64), Exhausted> {
    loop {
        let (entry, before) = find(bits.buffer);
        let found_with = bits.buffer >> before;
        // A pattern that no code has is known as such only when no code could still become of it.
        let whole = if entry.is_special() && !entry.is_block_end() && entry.bits() == 0 {
            table::NO_CODE_BITS
        } else {
            before + entry.bits()
        };
        if whole <= bits.count {
            bits.use_up(whole);
            return Ok((entry, found_with));
        }
        bits.take_byte(call)?;
    }
}

impl Tables {
    fn set_fixed(&mut self) {
        let (literals, distances) = fixed_lengths();
        self.set(&literals, &distances).expect("the fixed codes use up all patterns");
        self.fixed = true;
    }

    fn set(&mut self, literals: &[u8], distances: &[u8]) -> Result<(), &'static str> {
        self.fixed = false;
        if literals.get(256).is_none_or(|&bits| bits == 0) {
            return Err("invalid code -- missing end-of-block");
        }
        self.literals.fill_with_pairs(literals).map_err(|_| "invalid literal/lengths set")?;
        self.distances
            .fill(distances, &table::DISTANCE_SYMBOLS)
            .map_err(|_| "invalid distances set")
    }

    /// The lengths of the codes in use; `header` has them unless they are the fixed ones.
    fn lengths(&self, header: &header::Lengths) -> (Vec<u8>, Vec<u8>) {
        if self.fixed {
            return fixed_lengths();
        }
        let (literals, distances) = header.lengths();
        (literals.to_vec(), distances.to_vec())
    }
}

/// RFC 1951, section 3.2.6.
fn fixed_lengths() -> (Vec<u8>, Vec<u8>) {
    let mut literals = vec![8; table::LITERALS_MAX];
    literals[144..256].fill(9);
    literals[256..280].fill(7);
    (literals, vec![5; table::DISTANCES_MAX])
}

impl Default for Inflate {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Inflate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Inflate").field("mode", &self.mode).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
