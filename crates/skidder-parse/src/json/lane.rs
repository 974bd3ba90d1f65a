//! Sixteen bytes of text at once: the only `unsafe` code of this crate.

/// Bytes looked at together.
pub(crate) const LANE: usize = 16;

/// A bit for each byte that is a quote, a backslash or a control byte.
#[inline(always)]
pub(crate) fn special(chunk: &[u8; LANE]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "vector instructions that every x86-64 has, measured below")]
    // SAFETY: SSE2 is part of x86-64.
    unsafe {
        sse2(chunk)
    }
    #[cfg(not(target_arch = "x86_64"))]
    portable(chunk)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
fn sse2(chunk: &[u8; LANE]) -> u32 {
    use std::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x,
        _mm_set1_epi8,
    };
    let number = u128::from_le_bytes(*chunk);
    let text = _mm_set_epi64x((number >> 64) as i64, number as i64);
    let quote = _mm_cmpeq_epi8(text, _mm_set1_epi8(b'"' as i8));
    let backslash = _mm_cmpeq_epi8(text, _mm_set1_epi8(b'\\' as i8));
    let control = _mm_cmpeq_epi8(_mm_min_epu8(text, _mm_set1_epi8(0x1f)), text);
    _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, backslash), control)) as u32
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn portable(chunk: &[u8; LANE]) -> u32 {
    let mut mask = 0;
    for (at, byte) in chunk.iter().enumerate() {
        mask |= u32::from(matches!(byte, b'"' | b'\\' | 0..0x20)) << at;
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_vector_and_the_portable_routine_agree(chunk in any::<[u8; LANE]>()) {
            prop_assert_eq!(special(&chunk), portable(&chunk));
        }
    }
}
