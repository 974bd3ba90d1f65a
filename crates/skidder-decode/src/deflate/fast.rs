//! The inner loop of the decoder: all `unsafe` of this crate's deflate is in this file.
//!
//! Runs while there is input for every load and room for every store of one round, so that it needs no
//! other checks: [`INPUT_MARGIN`] and [`OUTPUT_MARGIN`]. Bits are loaded eight bytes at a time, matches
//! copied 32 bytes at a time and beyond their end, as [`super::Step::produced`] allows.
//!
//! Whether a literal or a match comes next cannot be guessed, and a wrong guess costs as much as
//! decoding a match (27 cycles on a Zen 5). So a round does not branch on it: it takes literals and
//! then a match as if both were always there, and a missing one has no bits and no length.

#![expect(
    unsafe_code,
    reason = "unaligned loads and stores without bounds checks, at 30 cycles a match"
)]

use super::table::{DISTANCE_BITS, Distances, Entry, LITERAL_BITS, Literals};
use super::{Bits, Call};
use std::hint::select_unpredictable;

pub(super) const TOO_FAR_BACK: &str = "invalid distance too far back";

/// Most that one round loads: three times eight bytes, each at most eight after the one before; and
/// some more.
const INPUT_MARGIN: usize = 32;
/// Most that one match stores: 258 bytes, rounded up to 32s.
const COPIED_MAX: usize = 288;
/// Most that one round stores: two times two literals, and a match.
const OUTPUT_MARGIN: usize = 4 + COPIED_MAX;

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

/// The state of the loop, in registers: nothing takes a reference to it that outlives inlining.
///
/// Invariants: `input` and `output` lie inside the buffers of the call; the low six bits of `count`
/// are the number of valid low bits of `buffer`. What is above these bits of `buffer` is what
/// follows in the input, up to 64 bits since the last refill; what is above the low six bits of
/// `count` is of no meaning: so whole entries can be subtracted from it.
#[derive(Clone, Copy)]
struct Round {
    buffer: u64,
    count: u32,
    input: *const u8,
    output: *mut u8,
}

impl Round {
    /// Fills the buffer: all 64 bits are what follows in the input, at least 56 of them are counted.
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

    /// The entry in the second table that `entry` points to, and the remaining bits. Rare.
    ///
    /// # Safety
    /// Eight bytes can be read at `input`.
    #[cold]
    #[inline(never)]
    unsafe fn second(mut self, table: &[Entry], entry: Entry) -> (Entry, Self) {
        if !entry.is_second() {
            return (entry, self);
        }
        self.use_up(entry);
        let index = (self.buffer & ((1 << entry.code_bits()) - 1)) as usize;
        // SAFETY: as the caller promises.
        unsafe { self.refill() };
        // In bounds by construction; checked all the same.
        (table[entry.value() + index], self)
    }
}

#[inline(always)]
fn literal(table: &Literals, buffer: u64) -> Entry {
    let index = (buffer & ((1 << LITERAL_BITS) - 1)) as usize;
    // SAFETY: the table has more than `1 << LITERAL_BITS` entries.
    unsafe { *table.0.get_unchecked(index) }
}

#[inline(always)]
fn distance(table: &Distances, buffer: u64) -> Entry {
    let index = (buffer & ((1 << DISTANCE_BITS) - 1)) as usize;
    // SAFETY: the table has more than `1 << DISTANCE_BITS` entries.
    unsafe { *table.0.get_unchecked(index) }
}

/// Writes the literals of an entry, or garbage instead of those that it does not have.
///
/// # Safety
/// There is room for two bytes at `output`.
#[inline(always)]
unsafe fn put(output: *mut u8, entry: Entry) {
    // SAFETY: the caller promises room.
    unsafe { output.cast::<[u8; 2]>().write(entry.literals()) };
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
    // SAFETY: there is a margin for the first round, and whenever another one begins: at most three
    // refills of at most eight bytes each, one before the first round, and what the constants
    // count. `output_start` is the first byte of the output that `round.output` is in.
    let end = unsafe {
        round.refill();
        let mut entry = literal(lanes.literals, round.buffer);
        loop {
            match symbols(lanes, &mut round, entry, output_start) {
                Ok(next) => entry = next,
                Err(end) => break end,
            }
            if round.input > input_end || round.output > output_end {
                break FastEnd::Margin;
            }
        }
    };
    bits.buffer = round.buffer;
    bits.count = round.count & 63;
    call.consumed = round.input as usize - input_start as usize;
    call.produced = round.output as usize - output_start as usize;
    end
}

/// One round: up to two literals, and then as many again or a match, which may have one more
/// literal before it. `first` is the first entry. Returns the first entry of the next round, whose
/// bits are there and not used up.
///
/// Bits, with entries of the main tables: 42 are there at the start; `first` takes 11, and the
/// entry behind it 16, if there are both; 15 are left to find a distance with 9 of them. It is
/// found while the buffer is filled, and takes 22 of 64. Whatever goes through a second table fills
/// the buffer.
///
/// # Safety
/// 24 bytes can be read at `round.input`, `OUTPUT_MARGIN` bytes written at `round.output`, and
/// everything from `output_start` to there be read.
#[inline(always)]
unsafe fn symbols(
    lanes: &Lanes<'_>,
    round: &mut Round,
    mut first: Entry,
    output_start: *mut u8,
) -> Result<Entry, FastEnd> {
    if first.is_special() {
        // SAFETY: the first refill.
        (first, *round) = unsafe { round.second(&lanes.literals.0, first) };
        if first.is_special() {
            round.use_up(first);
            return Err(if first.is_block_end() {
                FastEnd::BlockEnd
            } else {
                FastEnd::Damaged("invalid literal/length code")
            });
        }
    }
    // SAFETY: the first two literals of the margin.
    unsafe { put(round.output, first) };
    let is_literal = first.is_literal();
    let behind = round.buffer >> (first.0 & 63);
    let entry = select_unpredictable(is_literal, literal(lanes.literals, behind), first);
    // Everything below is about `entry`, which is the first one if that is a length.
    let buffer = select_unpredictable(is_literal, behind, round.buffer);
    let passed = select_unpredictable(is_literal, first.count(), 0);
    round.output = round.output.wrapping_add(passed);
    if entry.is_special() {
        round.use_up(first);
        // SAFETY: the second refill.
        unsafe { round.refill() };
        return Ok(entry);
    }
    let used = select_unpredictable(is_literal, first.0, 0);
    // SAFETY: at most two literals were written before.
    unsafe { put(round.output, entry) };
    round.output = round.output.wrapping_add(entry.count());
    let length = entry.length_with_extra(buffer);
    round.buffer = buffer >> (entry.0 & 63);
    round.count = round.count.wrapping_sub(entry.0).wrapping_sub(used);
    let far = distance(lanes.distances, round.buffer);
    // SAFETY: the second refill.
    unsafe { round.refill() };
    let is_match = !entry.is_literal();
    let length = select_unpredictable(is_match, length, 0);
    let far = select_unpredictable(is_match, far, Entry::FAR);
    // SAFETY: this function's own promises; at most four bytes were written.
    unsafe { a_match(lanes, round, length, far, output_start) }
}

/// The rest of a round: a match of this length, which may be 0, whose distance is in `far`.
///
/// # Safety
/// As of [`symbols`], with eight bytes to read and room for the longest match.
#[inline(always)]
unsafe fn a_match(
    lanes: &Lanes<'_>,
    round: &mut Round,
    length: usize,
    mut far: Entry,
    output_start: *mut u8,
) -> Result<Entry, FastEnd> {
    if far.is_special() {
        // SAFETY: the caller promises eight bytes.
        (far, *round) = unsafe { round.second(&lanes.distances.0, far) };
        if far.is_special() {
            return Err(FastEnd::Damaged("invalid distance code"));
        }
    }
    let distance = far.distance_with_extra(round.buffer);
    round.use_up(far);
    // What comes next is loaded while the match is copied.
    let next = literal(lanes.literals, round.buffer);
    let output = round.output;
    let written = output as usize - output_start as usize;
    if distance >= 32 && distance <= written {
        // SAFETY: the source begins inside the output, and the margin has room for the longest
        // match and what is copied beyond it.
        unsafe {
            let from = output.sub(distance);
            copy_32(from, output);
            copy_32(from.add(32), output.add(32));
            if length > 64 {
                copy_rest(from, output, length);
            }
        }
    } else if length > 0 {
        // SAFETY: the same.
        unsafe { copy_rare(lanes.window, output, written, distance, length)? };
    }
    round.output = output.wrapping_add(length);
    Ok(next)
}

/// A match that begins before this call's output, or overlaps itself within 32 bytes.
///
/// # Safety
/// `COPIED_MAX` bytes can be written at `output`, and the `written` bytes before it be read.
#[cold]
#[inline(never)]
unsafe fn copy_rare(
    window: &[u8],
    output: *mut u8,
    written: usize,
    distance: usize,
    length: usize,
) -> Result<(), FastEnd> {
    if distance <= written {
        // SAFETY: the source begins inside the output.
        unsafe { copy_match(output.sub(distance), output, distance, length) };
        return Ok(());
    }
    let back = distance - written;
    if (COPIED_MAX..=window.len()).contains(&back) {
        // SAFETY: all that is loaded is in the window. The distance is not below 32.
        unsafe { copy_match(window.as_ptr().add(window.len() - back), output, distance, length) };
        return Ok(());
    }
    // SAFETY: the same, but that the source may go on from the window into the output.
    unsafe { copy_old(window, output, written, distance, length) }
}

/// Copies `length` bytes (3 to 258) from `from`, `distance` back, to `to`, and up to 61 bytes of
/// garbage behind them: 64 at once, because few matches are longer, and each guess of how often to
/// go round costs as much as ten copies.
///
/// # Safety
/// `length` rounded up to 32s, and at least 64 ([`COPIED_MAX`] at most), can be written at `to`. As
/// much can be read at `from`; or `distance` bytes, if these are the ones before `to`.
#[inline(always)]
unsafe fn copy_match(from: *const u8, to: *mut u8, distance: usize, length: usize) {
    // SAFETY: all loads are from the bytes before the store that follows them, all stores within the room
    // that the caller promises.
    unsafe {
        if distance >= 32 {
            copy_32(from, to);
            copy_32(from.add(32), to.add(32));
            copy_rest(from, to, length);
        } else if distance == 1 {
            std::ptr::write_bytes(to, *from, length);
        } else {
            copy_pattern(from, to, distance, length);
        }
    }
}

/// The rest of a match of more than 64 bytes.
///
/// # Safety
/// As of [`copy_match`]; the distance is not below 32.
#[inline(never)]
unsafe fn copy_rest(from: *const u8, to: *mut u8, length: usize) {
    let mut done = 64;
    while done < length {
        // SAFETY: as the caller promises.
        unsafe { copy_32(from.add(done), to.add(done)) };
        done += 32;
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
