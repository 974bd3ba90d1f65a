//! Many bytes of text at once: the only `unsafe` code of this crate.

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

/// Bytes of a block: a bit of a mask for each.
pub(crate) const BLOCK: usize = 64;

/// For each of `bytes` the masks from `first` on: a bit for each byte of a block that is this one,
/// the lowest for the first.
#[inline]
pub(crate) fn same_each<const N: usize>(
    blocks: &[[u8; BLOCK]],
    bytes: &[u8],
    masks: &mut [[u64; N]],
    first: usize,
) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[expect(unsafe_code, reason = "a function for processors with wider registers")]
        // SAFETY: this processor has AVX2.
        return unsafe { avx2::same_each(blocks, bytes, masks, first) };
    }
    for (byte, masks) in bytes.iter().zip(masks) {
        for (block, mask) in blocks.iter().zip(&mut masks[first..]) {
            *mask = same_in_block(block, *byte);
        }
    }
}

/// The mask of one block.
#[inline]
fn same_in_block(block: &[u8; BLOCK], byte: u8) -> u64 {
    let lanes = block.as_chunks::<LANE>().0.iter().zip([0, LANE, 2 * LANE, 3 * LANE]);
    lanes.fold(0, |mask, (bytes, at)| mask | u64::from(same(bytes, byte)) << at)
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::BLOCK;
    use std::arch::x86_64::{
        __m256i, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_set1_epi8,
    };

    /// As the function outside.
    #[target_feature(enable = "avx2")]
    pub(super) fn same_each<const N: usize>(
        blocks: &[[u8; BLOCK]],
        bytes: &[u8],
        masks: &mut [[u64; N]],
        first: usize,
    ) {
        for (byte, masks) in bytes.iter().zip(masks) {
            let wanted = _mm256_set1_epi8(*byte as i8);
            for (block, mask) in blocks.iter().zip(&mut masks[first..]) {
                let [low, high] = halves(block).map(|half| {
                    u64::from(_mm256_movemask_epi8(_mm256_cmpeq_epi8(half, wanted)) as u32)
                });
                *mask = low | high << 32;
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    #[expect(unsafe_code, reason = "a load of 32 bytes")]
    #[expect(clippy::cast_ptr_alignment, reason = "the loads need none")]
    fn halves(block: &[u8; BLOCK]) -> [__m256i; 2] {
        let (halves, _) = block.as_chunks::<32>();
        // SAFETY: each pointer is to 32 bytes, and the loads need no alignment.
        [0, 1].map(|at| unsafe { _mm256_loadu_si256(halves[at].as_ptr().cast::<__m256i>()) })
    }
}

/// A bit for each byte that is this one.
#[inline(always)]
fn same(chunk: &[u8; LANE], byte: u8) -> u32 {
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

        #[test]
        fn blocks_are_looked_at_for_each_byte(
            text in proptest::collection::vec(b'a'..=b'e', 3 * BLOCK..4 * BLOCK), first in 0..4_usize
        ) {
            let blocks = text.as_chunks::<BLOCK>().0;
            let mut masks = [[7_u64; 4]; 3];
            same_each(blocks, b"ac", &mut masks, first);
            for (byte, masks) in b"ac".iter().zip(&masks) {
                for (place, mask) in masks.iter().enumerate() {
                    let block = place.checked_sub(first).and_then(|at| blocks.get(at));
                    let expected = block.map_or(7, |block| same_in_block(block, *byte));
                    let bits = block.map_or(7, |block| {
                        block.iter().rev().fold(0, |all, own| all << 1 | u64::from(own == byte))
                    });
                    prop_assert_eq!((*mask, *mask), (expected, bits));
                }
            }
            prop_assert_eq!(masks[2], [7; 4]);
        }
    }
}
