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

/// A bit for each byte that is this one.
#[inline(always)]
pub(crate) fn same(chunk: &[u8; LANE], byte: u8) -> u32 {
    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "a vector instruction that every x86-64 has")]
    // SAFETY: SSE2 is part of x86-64.
    unsafe {
        same_sse2(chunk, byte)
    }
    #[cfg(not(target_arch = "x86_64"))]
    same_portable(chunk, byte)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
fn same_sse2(chunk: &[u8; LANE], byte: u8) -> u32 {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8};
    let number = u128::from_le_bytes(*chunk);
    let text = _mm_set_epi64x((number >> 64) as i64, number as i64);
    _mm_movemask_epi8(_mm_cmpeq_epi8(text, _mm_set1_epi8(byte as i8))) as u32
}

/// Eight bytes at once, in a register of any machine.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn same_portable(chunk: &[u8; LANE], byte: u8) -> u32 {
    /// A byte of 1 in each place.
    const ONES: u64 = 0x0101_0101_0101_0101;
    /// The highest bit of each byte.
    const HIGHS: u64 = ONES << 7;
    /// Brings these bits together, in the highest byte.
    const GATHER: u64 = 0x0002_0408_1020_4081;
    let mut mask = 0;
    for (half, bytes) in chunk.as_chunks::<8>().0.iter().enumerate() {
        let differs = u64::from_le_bytes(*bytes) ^ (ONES * u64::from(byte));
        let same = !(((differs & !HIGHS) + !HIGHS) | differs | !HIGHS);
        mask |= ((same.wrapping_mul(GATHER) >> 56) as u32) << (half * 8);
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

        #[test]
        fn they_find_the_same_byte(mut chunk in any::<[u8; LANE]>(), byte in any::<u8>(), at in any::<u16>()) {
            for (place, own) in chunk.iter_mut().enumerate() {
                if at >> place & 1 == 1 {
                    *own = byte;
                }
            }
            prop_assert_eq!(same(&chunk, byte), same_portable(&chunk, byte));
            prop_assert!(u32::from(at) & !same(&chunk, byte) == 0);
        }
    }
}
