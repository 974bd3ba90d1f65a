//! Short pieces of a document, written inline: a call would cost more than the copy.

use crate::escape::write_string;
use std::ops::Range;

/// Bytes of no meaning behind a text that is copied by [`copy_padded`].
pub(crate) const PADDING: usize = 32;

/// Appends the part `range` of a text that has [`PADDING`] behind what is copied of it: short pieces, for which a call
/// costs more than the copy.
///
/// # Panics
/// If the part is not in the text, with its padding.
#[inline]
pub(crate) fn copy_padded(out: &mut Vec<u8>, text: &[u8], range: Range<usize>) {
    let len = range.len();
    let from = &text[range.start..range.end + PADDING];
    raw::copy_padded(out, from, len);
}

/// Appends the `len` bytes at `start` of `bytes`, which are known to be UTF-8, as a JSON string with its quotes.
///
/// # Panics
/// If the text is not in `bytes`.
#[inline]
pub(crate) fn write_span(out: &mut Vec<u8>, bytes: &[u8], start: usize, len: usize) {
    let rest = &bytes[start..];
    if len <= raw::SHORT && rest.len() >= raw::SHORT && raw::write_plain(out, rest, len) {
        return;
    }
    write_string(out, &rest[..len], true);
}

/// Short texts, written inline with more stores than they have bytes for.
#[expect(unsafe_code, reason = "stores into reserved memory, behind what is kept of them")]
mod raw {
    use super::PADDING;
    #[cfg(target_arch = "x86_64")]
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_max_epu8, _mm_movemask_epi8, _mm_or_si128,
        _mm_set1_epi8, _mm_storeu_si128,
    };

    /// Longest text of [`write_plain`].
    pub(super) const SHORT: usize = 64;

    /// Appends `len` bytes of a text with [`PADDING`] behind them.
    #[inline]
    pub(super) fn copy_padded(out: &mut Vec<u8>, text: &[u8], len: usize) {
        assert!(text.len() >= len + PADDING);
        out.reserve(len + PADDING);
        let mut at = 0;
        // SAFETY: the last block begins before `len` and ends before `len + PADDING`, which both the text and the
        // room have; `len` bytes are initialised when the length is set.
        unsafe {
            let to = out.as_mut_ptr().add(out.len());
            while at < len {
                to.add(at).copy_from_nonoverlapping(text.as_ptr().add(at), PADDING);
                at += PADDING;
            }
            out.set_len(out.len() + len);
        }
    }

    /// Bytes of a vector.
    #[cfg(target_arch = "x86_64")]
    const LANE: usize = 16;

    /// Appends the first `len` bytes of a text between quotes if nothing of them is escaped, else nothing; `false` then.
    /// `len` is at most [`SHORT`], and the text has as many bytes.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub(super) fn write_plain(out: &mut Vec<u8>, text: &[u8], len: usize) -> bool {
        assert!(text.len() >= SHORT && len <= SHORT);
        out.reserve(SHORT + 2);
        // SAFETY: a lane begins before `len`, which is at most `SHORT`, a multiple of the lane, so that it ends within
        // `SHORT` bytes, which both the text and the room behind the quote have. (So does the first one of nothing.)
        // All bytes up to the second quote are initialised when the length is set.
        unsafe {
            let start = out.as_mut_ptr().add(out.len());
            start.write(b'"');
            let (from, to) = (text.as_ptr(), start.add(1));
            // One after the other and in no loop, which the compiler would take for a call to copy all at once.
            let mut special = copy_lane(from, to);
            if len > LANE {
                special |= copy_lane(from.add(LANE), to.add(LANE)) << LANE;
                if len > 2 * LANE {
                    special |= copy_lane(from.add(2 * LANE), to.add(2 * LANE)) << (2 * LANE);
                }
                if len > 3 * LANE {
                    special |= copy_lane(from.add(3 * LANE), to.add(3 * LANE)) << (3 * LANE);
                }
            }
            let own = u64::MAX.checked_shr((SHORT - len) as u32).unwrap_or(0);
            if special & own != 0 {
                return false;
            }
            to.add(len).write(b'"');
            out.set_len(out.len() + len + 2);
        }
        true
    }

    /// Copies a lane, and gives a bit for each byte of it that is escaped.
    ///
    /// # Safety
    /// Both have so many bytes.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    #[expect(clippy::cast_ptr_alignment, reason = "only unaligned loads and stores are used")]
    unsafe fn copy_lane(from: *const u8, to: *mut u8) -> u64 {
        // SAFETY: SSE2 is part of x86_64, and the caller promises the rest.
        unsafe {
            let block = _mm_loadu_si128(from.cast::<__m128i>());
            _mm_storeu_si128(to.cast::<__m128i>(), block);
            let control = _mm_set1_epi8(0x1f);
            let found = _mm_or_si128(
                _mm_or_si128(
                    _mm_cmpeq_epi8(block, _mm_set1_epi8(b'"' as i8)),
                    _mm_cmpeq_epi8(block, _mm_set1_epi8(b'\\' as i8)),
                ),
                _mm_cmpeq_epi8(_mm_max_epu8(block, control), control),
            );
            u64::from(_mm_movemask_epi8(found) as u32)
        }
    }

    /// Nothing is written inline on other machines.
    #[cfg(not(target_arch = "x86_64"))]
    #[inline]
    pub(super) fn write_plain(_: &mut Vec<u8>, _: &[u8], _: usize) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn spans_are_written_as_texts_are(
            bytes in proptest::collection::vec(prop_oneof![1 => Just(b'"'), 1 => 0_u8..0x20,
                120 => 0x20_u8..0x7f], 0..200),
            start in 0..200_usize, len in 0..100_usize
        ) {
            let start = start.min(bytes.len());
            let len = len.min(bytes.len() - start);
            let mut out = b"x".to_vec();
            write_span(&mut out, &bytes, start, len);
            let mut expected = b"x".to_vec();
            write_string(&mut expected, &bytes[start..start + len], true);
            prop_assert_eq!(out, expected);
        }

        #[test]
        fn padded_texts_are_copied(text in proptest::collection::vec(any::<u8>(), 32..200), at in 0..200_usize) {
            let end = text.len() - PADDING;
            let start = at.min(end);
            let mut out = b"x".to_vec();
            copy_padded(&mut out, &text, start..end);
            prop_assert_eq!(&out[1..], &text[start..end]);
        }
    }
}
