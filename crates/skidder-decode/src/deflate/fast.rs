//! The inner loop of the decoder: all `unsafe` of this crate's deflate is in this file.
//!
//! Runs while there is input for every load and room for every store of one round, so that it needs no
//! other checks: [`INPUT_MARGIN`] and [`OUTPUT_MARGIN`]. Bits are loaded eight bytes at a time, matches
//! copied 32 bytes at a time and beyond their end, as [`super::Step::produced`] allows.

#![expect(
    unsafe_code,
    reason = "unaligned loads and stores without bounds checks, at 20 cycles a symbol"
)]

use super::table::{DISTANCE_BITS, Distances, Entry, LITERAL_BITS, Literals};
use super::{Bits, Call};

pub(super) const TOO_FAR_BACK: &str = "invalid distance too far back";

/// Most that one round loads: three times eight bytes, each at most eight after the one before; and some more.
const INPUT_MARGIN: usize = 32;
/// Most that one match stores: 258 bytes, rounded up to 32s.
const COPIED_MAX: usize = 288;
/// Most that one round stores: two times two literals and one more, and a match.
const OUTPUT_MARGIN: usize = 5 + COPIED_MAX;

/// What a run reads from.
pub(super) struct Lanes<'a> {
    pub(super) literals: &'a Literals,
    pub(super) distances: &'a Distances,
    /// The output before that of this call.
    pub(super) window: &'a [u8],
}

/// Why a run ended.
pub(super) enum FastEnd {
    /// Input or output comes to its end.
    Margin,
    /// The block is complete.
    BlockEnd,
    /// What follows cannot be decoded.
    Damaged(&'static str),
}

/// Whether there is enough for one round.
pub(super) fn has_margin(call: &Call<'_>) -> bool {
    call.input.len() - call.consumed >= INPUT_MARGIN
        && call.output.len() - call.produced >= OUTPUT_MARGIN
}

/// Decodes symbols as long as there is enough for one more round.
pub(super) fn run(lanes: &Lanes<'_>, bits: &mut Bits, call: &mut Call<'_>) -> FastEnd {
    if !has_margin(call) {
        return FastEnd::Margin;
    }
    let before = call.consumed;
    #[cfg(target_arch = "x86_64")]
    let end = if has_avx2() {
        // SAFETY: the processor has both.
        unsafe { run_avx2(lanes, bits, call) }
    } else {
        rounds(lanes, bits, call)
    };
    #[cfg(not(target_arch = "x86_64"))]
    let end = rounds(lanes, bits, call);
    // Whole bytes that were not used up go back: they may belong to what follows the stream.
    let back = (bits.count / 8).min((call.consumed - before) as u32);
    call.consumed -= back as usize;
    bits.count -= back * 8;
    bits.buffer &= (1 << bits.count) - 1;
    end
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    std::arch::is_x86_feature_detected!("bmi2") && std::arch::is_x86_feature_detected!("avx2")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi2,avx2")]
fn run_avx2(lanes: &Lanes<'_>, bits: &mut Bits, call: &mut Call<'_>) -> FastEnd {
    rounds(lanes, bits, call)
}

/// The state of the loop, in registers.
///
/// Invariants: `input` and `output` lie inside the buffers of the call; the low six bits of `count` are the number
/// of valid low bits of `buffer`. What is above these bits of `buffer` is what follows in the input, what is above
/// the low six bits of `count` is of no meaning: so whole entries can be subtracted from it.
#[derive(Clone, Copy)]
struct Round {
    buffer: u64,
    count: u32,
    input: *const u8,
    output: *mut u8,
}

impl Round {
    /// Fills the buffer up to at least 56 bits.
    ///
    /// # Safety
    /// Eight bytes can be read at `input`.
    #[inline(always)]
    unsafe fn refill(&mut self) {
        // SAFETY: the caller promises eight bytes.
        let word = u64::from_le(unsafe { self.input.cast::<u64>().read_unaligned() });
        self.buffer |= word << (self.count & 63);
        // SAFETY: at most seven of them are skipped.
        self.input = unsafe { self.input.add(7 - ((self.count >> 3) & 7) as usize) };
        self.count |= 0b11_1000;
    }

    #[inline(always)]
    fn use_up(&mut self, entry: Entry) {
        self.buffer >>= entry.0 & 63;
        self.count = self.count.wrapping_sub(entry.0);
    }

    /// Writes one or two literals.
    ///
    /// # Safety
    /// There is room for two bytes at `output`.
    #[inline(always)]
    unsafe fn put(&mut self, entry: Entry) {
        let bytes = entry.literals();
        // SAFETY: the caller promises room.
        unsafe {
            self.output.cast::<[u8; 2]>().write(bytes);
            self.output = self.output.add(1 + entry.second_literals());
        }
    }

    #[inline(always)]
    fn literal(&self, table: &Literals) -> Entry {
        let index = (self.buffer & ((1 << LITERAL_BITS) - 1)) as usize;
        // SAFETY: the table has more than `1 << LITERAL_BITS` entries.
        unsafe { *table.0.get_unchecked(index) }
    }

    #[inline(always)]
    fn distance(&self, table: &Distances) -> Entry {
        let index = (self.buffer & ((1 << DISTANCE_BITS) - 1)) as usize;
        // SAFETY: the table has more than `1 << DISTANCE_BITS` entries.
        unsafe { *table.0.get_unchecked(index) }
    }

    /// The entry in the second table that `entry` points to, whose bits are used up. In bounds by
    /// construction; checked all the same, since it is rare.
    #[inline(always)]
    fn second(&mut self, table: &[Entry], entry: Entry) -> Entry {
        self.use_up(entry);
        table[entry.value() + (self.buffer & ((1 << entry.code_bits()) - 1)) as usize]
    }
}

#[inline(always)]
fn rounds(lanes: &Lanes<'_>, bits: &mut Bits, call: &mut Call<'_>) -> FastEnd {
    let input_start = call.input.as_ptr();
    let output_start = call.output.as_mut_ptr();
    // Up to these, there is enough for a round. The caller has seen to the first.
    let input_end = input_start.wrapping_add(call.input.len() - INPUT_MARGIN);
    let output_end = output_start.wrapping_add(call.output.len() - OUTPUT_MARGIN);
    // SAFETY: both counts are within their buffers.
    let (input, output) =
        unsafe { (input_start.add(call.consumed), output_start.add(call.produced)) };
    let mut round = Round { buffer: bits.buffer, count: bits.count, input, output };
    // SAFETY: there is a margin for the first round, and whenever another one begins: two refills of at most
    // eight bytes each in `symbols`, one here, and what the constants count. `output_start` is the first byte
    // of the output that `round.output` is in.
    let end = unsafe {
        round.refill();
        let mut entry = round.literal(lanes.literals);
        loop {
            match symbols(lanes, &mut round, entry, output_start) {
                Ok(next) => entry = next,
                Err(end) => break end,
            }
            if round.input > input_end || round.output > output_end {
                break FastEnd::Margin;
            }
            round.refill();
        }
    };
    bits.buffer = round.buffer;
    bits.count = round.count & 63;
    call.consumed = round.input as usize - input_start as usize;
    call.produced = round.output as usize - output_start as usize;
    end
}

/// One round: up to three entries of literals, or up to two and a match, which may have one more literal before it; `entry` is the first. Gives the first entry of
/// the next round, whose bits are there and not used up.
///
/// # Safety
/// There are 56 bits in the buffer. Eight bytes can be read at `round.input`, `OUTPUT_MARGIN` bytes written
/// at `round.output`, and everything from `output_start` to there be read.
#[inline(always)]
unsafe fn symbols(
    lanes: &Lanes<'_>,
    round: &mut Round,
    mut entry: Entry,
    output_start: *mut u8,
) -> Result<Entry, FastEnd> {
    if entry.is_literal() {
        round.use_up(entry);
        let next = round.literal(lanes.literals);
        // SAFETY: three entries of literals are part of the margin.
        unsafe { round.put(entry) };
        entry = next;
        if entry.is_literal() {
            round.use_up(entry);
            let next = round.literal(lanes.literals);
            // SAFETY: the second one.
            unsafe { round.put(entry) };
            entry = next;
            if entry.is_literal() {
                round.use_up(entry);
                // SAFETY: the third one.
                unsafe { round.put(entry) };
                return Ok(round.literal(lanes.literals));
            }
        }
    }
    // At most 22 of 56 bits are used up; a length takes at most 20.
    if entry.is_special() {
        if entry.is_second() {
            entry = round.second(&lanes.literals.0, entry);
        }
        if entry.is_literal() {
            round.use_up(entry);
            // SAFETY: the third one at most.
            unsafe { round.put(entry) };
            return Ok(round.literal(lanes.literals));
        }
        if entry.is_special() {
            round.use_up(entry);
            return Err(if entry.is_block_end() {
                FastEnd::BlockEnd
            } else {
                FastEnd::Damaged("invalid literal/length code")
            });
        }
    }
    // SAFETY: this function's own promises; at most four bytes were written.
    unsafe { a_match(lanes, round, entry, output_start) }
}

/// The rest of a round that ends with a match, whose length is in `entry`.
///
/// # Safety
/// As of [`symbols`], with room for the longest match.
#[inline(always)]
unsafe fn a_match(
    lanes: &Lanes<'_>,
    round: &mut Round,
    entry: Entry,
    output_start: *mut u8,
) -> Result<Entry, FastEnd> {
    let length = entry.length_with_extra(round.buffer);
    round.use_up(entry);
    // SAFETY: one more literal is part of the margin; if there is none, the match begins here.
    unsafe {
        round.output.write(entry.leading_literal());
        round.output = round.output.add(entry.leading_literals());
    }
    // At least 14 bits are left: enough to look up, not to use up.
    let mut entry = round.distance(lanes.distances);
    // SAFETY: the caller promises eight bytes.
    unsafe { round.refill() };
    if entry.is_special() {
        if entry.is_second() {
            entry = round.second(&lanes.distances.0, entry);
        }
        if entry.is_special() {
            return Err(FastEnd::Damaged("invalid distance code"));
        }
    }
    let distance = entry.distance_with_extra(round.buffer);
    round.use_up(entry);
    // At least 28 bits are left for what comes next: it is loaded while the match is copied.
    let next = round.literal(lanes.literals);
    let written = round.output as usize - output_start as usize;
    if distance <= written {
        // SAFETY: the source begins inside the output, and the margin has room for the longest match and what is
        // copied beyond it.
        unsafe { copy_match(round.output.sub(distance), round.output, distance, length) };
    } else {
        let back = distance - written;
        if (COPIED_MAX..=lanes.window.len()).contains(&back) {
            // SAFETY: all that is loaded is in the window; the rest as above. The distance is not below 32.
            unsafe {
                let from = lanes.window.as_ptr().add(lanes.window.len() - back);
                copy_match(from, round.output, distance, length);
            }
        } else {
            // SAFETY: the same, but that the source may go on from the window into the output.
            unsafe { copy_old(lanes.window, round.output, written, distance, length)? };
        }
    }
    round.output = round.output.wrapping_add(length);
    Ok(next)
}

/// Copies `length` bytes (3 to 258) from `from`, `distance` back, to `to`, and up to 61 bytes of garbage behind them: 64
/// at once, because few matches are longer, and each guess of how often to go round costs as much as ten copies.
///
/// # Safety
/// `length` rounded up to 32s, and at least 64 ([`COPIED_MAX`] at most), can be written at `to`. As much can be read at
/// `from`; or `distance` bytes, if these are the ones before `to`.
#[inline(always)]
unsafe fn copy_match(from: *const u8, to: *mut u8, distance: usize, length: usize) {
    // SAFETY: all loads are from the bytes before the store that follows them, all stores within the room
    // that the caller promises.
    unsafe {
        if distance >= 32 {
            copy_32(from, to);
            copy_32(from.add(32), to.add(32));
            let mut done = 64;
            while done < length {
                copy_32(from.add(done), to.add(done));
                done += 32;
            }
        } else if distance == 1 {
            std::ptr::write_bytes(to, *from, length);
        } else {
            copy_pattern(from, to, distance, length);
        }
    }
}

/// # Safety
/// 32 bytes can be read at `from` and written at `to`, at least 32 behind it.
#[inline(always)]
unsafe fn copy_32(from: *const u8, to: *mut u8) {
    // SAFETY: as the caller promises.
    unsafe { std::ptr::copy_nonoverlapping(from, to, 32) };
}

/// A match that overlaps itself within 32 bytes: the distance grows with each copy.
///
/// # Safety
/// As of [`copy_match`].
#[inline]
unsafe fn copy_pattern(from: *const u8, to: *mut u8, distance: usize, length: usize) {
    let mut known = distance;
    let mut done = 0;
    while done < length {
        let count = known.min(length - done);
        // SAFETY: `known` bytes from `from` on are written already, and end where `to + done` begins.
        unsafe { std::ptr::copy_nonoverlapping(from, to.add(done), count) };
        done += count;
        known += count;
    }
}

/// A match that begins in the output of earlier calls, and may end in this one's.
///
/// # Safety
/// `length` bytes can be written at `to`, and the `written` bytes before it be read; `distance > written`.
#[cold]
#[inline(never)]
unsafe fn copy_old(
    window: &[u8],
    to: *mut u8,
    written: usize,
    distance: usize,
    length: usize,
) -> Result<(), FastEnd> {
    let back = distance - written;
    let start = window.len().checked_sub(back).ok_or(FastEnd::Damaged(TOO_FAR_BACK))?;
    let old = &window[start..][..back.min(length)];
    // SAFETY: there is room for all of it. What follows the old bytes, if anything does, begins at the first
    // byte of the output, which is `written` before `to`.
    unsafe {
        std::ptr::copy_nonoverlapping(old.as_ptr(), to, old.len());
        let from = to.sub(written);
        for at in 0..length - old.len() {
            to.add(old.len() + at).write(from.add(at).read());
        }
    }
    Ok(())
}
