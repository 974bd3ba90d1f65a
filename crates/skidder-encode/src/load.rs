//! Many bytes at once.

/// Eight bytes at `at`, the first in the lowest bits.
#[inline(always)]
pub(crate) fn load(text: &[u8], at: usize) -> u64 {
    let (bytes, _) = text[at..].split_first_chunk::<8>().expect("the caller keeps a margin");
    u64::from_le_bytes(*bytes)
}

/// The 32 bytes at `at`.
#[inline(always)]
pub(crate) fn load32(text: &[u8], at: usize) -> &[u8; 32] {
    text[at..].first_chunk().expect("the caller keeps a margin")
}

/// Which of the 32 bytes at two places are the same, the first in the lowest bit.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "a comparison of sixteen bytes that gives a bit for each")]
#[expect(clippy::cast_ptr_alignment, reason = "the loads need none")]
#[inline(always)]
pub(crate) fn same32(one: &[u8; 32], other: &[u8; 32]) -> u32 {
    use std::arch::x86_64::{__m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8};
    let (one, other) = (one.as_ptr().cast::<__m128i>(), other.as_ptr().cast::<__m128i>());
    // SAFETY: every x86-64 processor has SSE2. Each pointer is to 32 bytes, of which the first and the
    // second 16 are read, and these loads need no alignment.
    unsafe {
        let first = _mm_cmpeq_epi8(_mm_loadu_si128(one), _mm_loadu_si128(other));
        let second = _mm_cmpeq_epi8(_mm_loadu_si128(one.add(1)), _mm_loadu_si128(other.add(1)));
        _mm_movemask_epi8(first) as u32 | (_mm_movemask_epi8(second) as u32) << 16
    }
}

/// Which of the 32 bytes at two places are the same, the first in the lowest bit.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(crate) fn same32(one: &[u8; 32], other: &[u8; 32]) -> u32 {
    same32_in_words(one, other)
}

/// How many bytes at the beginning of `here`, which is not longer than `there`, are the same in both.
#[inline(never)]
pub(crate) fn same_bytes(here: &[u8], there: &[u8]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[expect(unsafe_code, reason = "a function for processors with wider registers")]
        // SAFETY: this processor has AVX2.
        return unsafe { avx2::same_bytes(here, there) };
    }
    same_blocks(here, there, 0)
}

/// The same from `length` on, in blocks of 32.
#[inline]
fn same_blocks(here: &[u8], there: &[u8], mut length: usize) -> usize {
    let (blocks, others) =
        (here[length..].as_chunks::<32>().0, there[length..].as_chunks::<32>().0);
    for (one, other) in blocks.iter().zip(others) {
        let same = same32(one, other);
        if same != u32::MAX {
            return length + same.trailing_ones() as usize;
        }
        length += 32;
    }
    while length < here.len() && here[length] == there[length] {
        length += 1;
    }
    length
}

/// Comparisons of 32 bytes at once.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "comparisons of 32 bytes that give a bit for each")]
#[expect(clippy::cast_ptr_alignment, reason = "the loads need none")]
mod avx2 {
    use super::same_blocks;
    use std::arch::x86_64::{
        __m256i, _mm256_and_si256, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8,
    };

    /// Bytes of a step.
    const STEP: usize = 128;

    /// As the function outside.
    #[target_feature(enable = "avx2")]
    pub(super) fn same_bytes(here: &[u8], there: &[u8]) -> usize {
        let steps = here.as_chunks::<STEP>().0.iter().zip(there.as_chunks::<STEP>().0);
        let mut length = 0;
        for (one, other) in steps {
            let mut same = [_mm256_cmpeq_epi8(load(one, 0), load(other, 0)); 4];
            for (at, same) in same.iter_mut().enumerate().skip(1) {
                *same = _mm256_cmpeq_epi8(load(one, at), load(other, at));
            }
            let all = _mm256_and_si256(
                _mm256_and_si256(same[0], same[1]),
                _mm256_and_si256(same[2], same[3]),
            );
            if _mm256_movemask_epi8(all) != -1 {
                break;
            }
            length += STEP;
        }
        same_blocks(here, there, length)
    }

    /// The 32 bytes at 32 times `at`.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(bytes: &[u8; STEP], at: usize) -> __m256i {
        let bytes = &bytes.as_chunks::<32>().0[at];
        // SAFETY: the pointer is to 32 bytes, and the load needs no alignment.
        unsafe { _mm256_loadu_si256(bytes.as_ptr().cast::<__m256i>()) }
    }
}

/// The same for any processor.
#[cfg_attr(all(target_arch = "x86_64", not(test)), expect(dead_code, reason = "for others"))]
#[inline(always)]
fn same32_in_words(one: &[u8; 32], other: &[u8; 32]) -> u32 {
    let mut same = 0;
    for word in (0..4).rev() {
        same = same << 8 | zeros(load(one, word * 8) ^ load(other, word * 8));
    }
    same
}

/// A bit for each byte that is zero.
#[inline(always)]
fn zeros(differ: u64) -> u32 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let bits = !(((differ & LOW) + LOW) | differ | LOW) >> 7;
    // Gathers the lowest bits of the bytes in the highest byte.
    (bits.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_bytes_are_found_in_words_and_in_wide_registers() {
        let one: [u8; 32] = std::array::from_fn(|at| at as u8 * 7);
        for bits in [0, 1, 0x8000_0000, 0xdead_beef, 0x0101_8080, u32::MAX] {
            let mut other = one;
            for (at, byte) in other.iter_mut().enumerate() {
                *byte ^= if bits >> at & 1 == 1 { 0 } else { 1 << (at % 8) };
            }
            assert_eq!(same32(&one, &other), bits);
            assert_eq!(same32_in_words(&one, &other), bits);
        }
    }
}
