//! Text to JSON string: the hottest loop of the program, and with `short.rs` the only `unsafe` code of this crate.
//!
//! Bytes that are not UTF-8 become U+FFFD, one for each maximal invalid part, as Go's encoder does.
//! HTML characters are escaped only by [`escape_html`], behind the document.

use std::sync::OnceLock;

/// Longest piece that is escaped at once; bounds the room that must be reserved for the worst case
/// of six bytes for one.
const PIECE_BYTES_MAX: usize = 4096;

/// Appends `text` as a JSON string with its quotes. `known_utf8` skips the check of the encoding:
/// say so only for bytes that were checked, or the document may not be UTF-8.
#[inline]
pub fn write_string(out: &mut Vec<u8>, text: &[u8], known_utf8: bool) {
    out.push(b'"');
    write_escaped(out, text, known_utf8);
    out.push(b'"');
}

/// Whether a text stands in a JSON string as it is: nothing of it is escaped, and it is UTF-8.
pub(crate) fn is_plain(text: &[u8]) -> bool {
    text.iter().all(|&byte| ESCAPES[byte as usize] == 0) && std::str::from_utf8(text).is_ok()
}

/// Appends `text` escaped for the inside of a JSON string.
#[inline]
pub fn write_escaped(out: &mut Vec<u8>, text: &[u8], known_utf8: bool) {
    if known_utf8 || simdutf8::basic::from_utf8(text).is_ok() {
        escape(out, text);
    } else {
        for chunk in text.utf8_chunks() {
            escape(out, chunk.valid().as_bytes());
            if !chunk.invalid().is_empty() {
                out.extend_from_slice("\u{fffd}".as_bytes());
            }
        }
    }
}

/// Escapes `<`, `>` and `&` in the JSON that begins at `from`, as Go's encoder does with `SetEscapeHTML`: outside of
/// its strings JSON has none of them.
pub fn escape_html(out: &mut Vec<u8>, from: usize) {
    let is_html = |byte: &u8| matches!(byte, b'<' | b'>' | b'&');
    let Some(first) = out[from..].iter().position(is_html) else { return };
    let rest = out.split_off(from + first);
    let mut rest = &rest[..];
    while let [byte, behind @ ..] = rest {
        let digits = [HEX[(byte >> 4) as usize], HEX[(byte & 15) as usize]];
        out.extend_from_slice(&[b'\\', b'u', b'0', b'0', digits[0], digits[1]]);
        let next = behind.iter().position(is_html).unwrap_or(behind.len());
        out.extend_from_slice(&behind[..next]);
        rest = &behind[next..];
    }
}

#[inline]
fn escape(out: &mut Vec<u8>, text: &[u8]) {
    static ROUTINE: OnceLock<Routine> = OnceLock::new();
    let routine = ROUTINE.get_or_init(choose);
    if text.len() <= PIECE_BYTES_MAX {
        routine(out, text);
        return;
    }
    for piece in text.chunks(PIECE_BYTES_MAX) {
        routine(out, piece);
    }
}

/// Appends one piece of text, escaped.
type Routine = fn(&mut Vec<u8>, &[u8]);

fn choose() -> Routine {
    #[cfg(target_arch = "x86_64")]
    if avx512::is_there() {
        return avx512::escape;
    } else if std::arch::is_x86_feature_detected!("avx2") {
        return avx2::escape;
    }
    escape_portable
}

/// For each byte, what to write after a backslash; 0 = the byte stands for itself, `u` = `\u00XX`.
const ESCAPES: [u8; 256] = {
    let mut table = [0_u8; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = b'u';
        byte += 1;
    }
    table[b'\n' as usize] = b'n';
    table[b'\r' as usize] = b'r';
    table[b'\t' as usize] = b't';
    table[0x08] = b'b';
    table[0x0c] = b'f';
    table[b'"' as usize] = b'"';
    table[b'\\' as usize] = b'\\';
    table
};

const HEX: &[u8; 16] = b"0123456789abcdef";

fn escape_portable(out: &mut Vec<u8>, text: &[u8]) {
    let mut from = 0;
    for (at, &byte) in text.iter().enumerate() {
        let mark = ESCAPES[byte as usize];
        if mark == 0 {
            continue;
        }
        out.extend_from_slice(&text[from..at]);
        from = at + 1;
        push_escape(out, byte, mark);
    }
    out.extend_from_slice(&text[from..]);
}

#[inline]
fn push_escape(out: &mut Vec<u8>, byte: u8, mark: u8) {
    if mark == b'u' {
        let digits = [HEX[(byte >> 4) as usize], HEX[(byte & 15) as usize]];
        out.extend_from_slice(&[b'\\', b'u', b'0', b'0', digits[0], digits[1]]);
    } else {
        out.extend_from_slice(&[b'\\', mark]);
    }
}

/// With VBMI2 (Ice Lake, Zen 4 and later) backslashes are put in without a branch, however many there are.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "vector stores into reserved memory")]
#[expect(clippy::cast_ptr_alignment, reason = "only unaligned loads and stores are used")]
mod avx512 {
    use super::escape_bytes;
    use std::arch::is_x86_feature_detected;
    use std::arch::x86_64::{
        __m256i, __m512i, _mm256_cmpeq_epi8_mask, _mm256_cmplt_epu8_mask, _mm256_loadu_si256,
        _mm256_maskz_loadu_epi8, _mm256_set1_epi8, _mm512_cvtepu8_epi16,
        _mm512_maskz_compress_epi8, _mm512_or_si512, _mm512_set1_epi16, _mm512_slli_epi16,
        _mm512_storeu_si512, _pdep_u64,
    };

    /// Bytes of text handled at once: twice as many come of them at most, unless there are control characters.
    const LANE: usize = 32;

    /// Whether this machine can run it.
    pub(super) fn is_there() -> bool {
        is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vbmi2")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("popcnt")
    }

    /// Appends `text` escaped. Only returned by `choose` where `is_there`.
    pub(super) fn escape(out: &mut Vec<u8>, text: &[u8]) {
        // At most six bytes for one, and every store writes two lanes.
        out.reserve(text.len() * 6 + 2 * LANE);
        let start = out.len();
        // SAFETY: the caller of `choose` has made sure of the features; the room reserved above is what it requires;
        // `written` bytes from `start` are initialised when the length is set.
        unsafe {
            let written = escape_raw(text, out.as_mut_ptr().add(start));
            out.set_len(start + written);
        }
    }

    /// Writes the escaped text to `to` and returns its length.
    ///
    /// # Safety
    /// `is_there`, and `to` is valid for `6 * text.len() + 64` bytes of writes.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,bmi2,popcnt")]
    unsafe fn escape_raw(text: &[u8], to: *mut u8) -> usize {
        let mut written = 0;
        let mut lanes = text.chunks_exact(LANE);
        // SAFETY: only the bytes of each part are read; two lanes are written from `written`, of which at most six bytes
        // for each byte before the part were written, inside the caller's room.
        unsafe {
            for part in &mut lanes {
                let block = _mm256_loadu_si256(part.as_ptr().cast::<__m256i>());
                written += escape_block(part, block, u32::MAX, to.add(written));
            }
            let rest = lanes.remainder();
            if !rest.is_empty() {
                let all = u32::MAX >> (LANE - rest.len());
                let block = _mm256_maskz_loadu_epi8(all, rest.as_ptr().cast::<i8>());
                written += escape_block(rest, block, all, to.add(written));
            }
        }
        written
    }

    /// Writes the escaped text of `part`, of which `block` holds the bytes and `all` has the bits; returns its length.
    ///
    /// # Safety
    /// `is_there`, and `to` is valid for `6 * part.len()` and for 64 bytes of writes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,bmi2,popcnt")]
    unsafe fn escape_block(part: &[u8], block: __m256i, all: u32, to: *mut u8) -> usize {
        if _mm256_cmplt_epu8_mask(block, _mm256_set1_epi8(b' ' as i8)) & all != 0 {
            // SAFETY: the caller's promise.
            return unsafe { escape_bytes(part, to) };
        }
        let special = _mm256_cmpeq_epi8_mask(block, _mm256_set1_epi8(b'"' as i8))
            | _mm256_cmpeq_epi8_mask(block, _mm256_set1_epi8(b'\\' as i8));
        // Each byte behind a backslash of its own; of these only the wanted ones stay.
        let before = _mm512_set1_epi16(i16::from(b'\\'));
        let pairs = _mm512_or_si512(_mm512_slli_epi16::<8>(_mm512_cvtepu8_epi16(block)), before);
        let kept = _pdep_u64(u64::from(special), 0x5555_5555_5555_5555)
            | _pdep_u64(u64::from(all), 0xaaaa_aaaa_aaaa_aaaa);
        let packed = _mm512_maskz_compress_epi8(kept, pairs);
        // SAFETY: the caller's promise.
        unsafe { _mm512_storeu_si512(to.cast::<__m512i>(), packed) };
        part.len() + special.count_ones() as usize
    }
}

#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "vector stores into reserved memory, measured twice as fast")]
#[expect(clippy::cast_ptr_alignment, reason = "only unaligned loads and stores are used")]
mod avx2 {
    use super::{ESCAPES, escape_bytes, write_escape};
    use std::arch::x86_64::{
        __m128i, __m256i, _mm_loadu_si128, _mm_set_epi64x, _mm_storeu_si128,
        _mm256_castsi256_si128, _mm256_cmpeq_epi8, _mm256_extracti128_si256, _mm256_loadu_si256,
        _mm256_max_epu8, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set_m128i, _mm256_set1_epi8,
        _mm256_storeu_si256, _mm256_testz_si256,
    };

    /// Bytes handled by one vector.
    const LANE: usize = 32;
    /// Bytes of `text` that must remain for the vector loop: re-stores read one lane past the block.
    const AHEAD: usize = 2 * LANE;

    /// Appends `text` escaped. Only returned by `choose` when the machine has AVX2.
    pub(super) fn escape(out: &mut Vec<u8>, text: &[u8]) {
        // At most six bytes for one, and every store writes a whole lane.
        out.reserve(text.len() * 6 + AHEAD);
        let start = out.len();
        // SAFETY: AVX2 was detected by the caller of `choose`; the room reserved above covers the
        // worst case of six bytes a byte plus one lane of overshoot; `written` bytes from `start`
        // are initialised when the length is set.
        unsafe {
            let written = escape_raw(text, out.as_mut_ptr().add(start));
            out.set_len(start + written);
        }
    }

    /// Writes the escaped text to `to` and returns its length.
    ///
    /// # Safety
    /// The machine has AVX2 and `to` is valid for `6 * text.len() + 64` bytes of writes.
    #[target_feature(enable = "avx2")]
    unsafe fn escape_raw(text: &[u8], to: *mut u8) -> usize {
        let quote = _mm256_set1_epi8(b'"' as i8);
        let backslash = _mm256_set1_epi8(b'\\' as i8);
        let control = _mm256_set1_epi8(0x1f);
        let mut read = 0;
        let mut written = 0;
        while text.len() - read >= AHEAD {
            // SAFETY: two lanes remain in `text` from `read`, so this load and each re-store below
            // (at most one lane further) stay inside it; writes stay inside the caller's room.
            unsafe {
                let block = _mm256_loadu_si256(text.as_ptr().add(read).cast::<__m256i>());
                _mm256_storeu_si256(to.add(written).cast::<__m256i>(), block);
                let special = _mm256_or_si256(
                    _mm256_or_si256(
                        _mm256_cmpeq_epi8(block, quote),
                        _mm256_cmpeq_epi8(block, backslash),
                    ),
                    _mm256_cmpeq_epi8(_mm256_max_epu8(block, control), control),
                );
                let mut mask = _mm256_movemask_epi8(special) as u32;
                let mut done = 0;
                while mask != 0 {
                    let at = mask.trailing_zeros() as usize;
                    mask &= mask - 1;
                    written += at - done;
                    written += write_escape(to.add(written), text[read + at]);
                    done = at + 1;
                    let rest = _mm256_loadu_si256(text.as_ptr().add(read + done).cast::<__m256i>());
                    _mm256_storeu_si256(to.add(written).cast::<__m256i>(), rest);
                }
                written += LANE - done;
                read += LANE;
            }
        }
        while read < text.len() {
            // SAFETY: `part` bytes remain from `read`; at most six bytes a byte are written, inside the caller's room.
            unsafe {
                let part = (text.len() - read).min(LANE);
                let (from, to) = (text.as_ptr().add(read), to.add(written));
                written += if copy_plain(from, to, part) {
                    part
                } else {
                    escape_bytes(&text[read..read + part], to)
                };
                read += part;
            }
        }
        written
    }

    /// Copies up to a lane of bytes if none of them is escaped: two loads, which overlap, for each length.
    /// Otherwise what is behind `to` is of no meaning.
    ///
    /// # Safety
    /// The machine has AVX2, `len` is at most a lane, and both pointers are valid for as many bytes.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn copy_plain(from: *const u8, to: *mut u8, len: usize) -> bool {
        // SAFETY: each branch reads and writes the first and the last bytes of `len`, which is at least as many.
        unsafe {
            if len == LANE {
                let block = _mm256_loadu_si256(from.cast::<__m256i>());
                _mm256_storeu_si256(to.cast::<__m256i>(), block);
                let (low, high) =
                    (_mm256_castsi256_si128(block), _mm256_extracti128_si256::<1>(block));
                return is_plain(low, high);
            }
            let (first, last);
            if len >= 16 {
                first = _mm_loadu_si128(from.cast::<__m128i>());
                last = _mm_loadu_si128(from.add(len - 16).cast::<__m128i>());
                _mm_storeu_si128(to.cast::<__m128i>(), first);
                _mm_storeu_si128(to.add(len - 16).cast::<__m128i>(), last);
                return is_plain(first, last);
            }
            let blank = 0x2020_2020_2020_2020_u64 as i64;
            if len >= 8 {
                let (one, two) = (
                    from.cast::<u64>().read_unaligned(),
                    from.add(len - 8).cast::<u64>().read_unaligned(),
                );
                to.cast::<u64>().write_unaligned(one);
                to.add(len - 8).cast::<u64>().write_unaligned(two);
                first = _mm_set_epi64x(two as i64, one as i64);
            } else if len >= 4 {
                let (one, two) = (
                    from.cast::<u32>().read_unaligned(),
                    from.add(len - 4).cast::<u32>().read_unaligned(),
                );
                to.cast::<u32>().write_unaligned(one);
                to.add(len - 4).cast::<u32>().write_unaligned(two);
                first = _mm_set_epi64x(blank, (u64::from(two) << 32 | u64::from(one)) as i64);
            } else {
                let mut all = true;
                for at in 0..len {
                    let byte = *from.add(at);
                    *to.add(at) = byte;
                    all &= ESCAPES[byte as usize] == 0;
                }
                return all;
            }
            is_plain(first, first)
        }
    }

    /// Whether nothing in two vectors is escaped.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn is_plain(one: __m128i, other: __m128i) -> bool {
        let both = _mm256_set_m128i(one, other);
        let control = _mm256_set1_epi8(0x1f);
        let special = _mm256_or_si256(
            _mm256_or_si256(
                _mm256_cmpeq_epi8(both, _mm256_set1_epi8(b'"' as i8)),
                _mm256_cmpeq_epi8(both, _mm256_set1_epi8(b'\\' as i8)),
            ),
            _mm256_cmpeq_epi8(_mm256_max_epu8(both, control), control),
        );
        _mm256_testz_si256(special, special) == 1
    }
}

/// Writes text byte by byte and returns the length of what was written.
///
/// # Safety
/// `to` is valid for `6 * text.len()` bytes of writes.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "for the vector routines, which have reserved the room")]
unsafe fn escape_bytes(text: &[u8], to: *mut u8) -> usize {
    let mut written = 0;
    for &byte in text {
        // SAFETY: at most six bytes a byte of `text`, inside the caller's room.
        unsafe {
            if ESCAPES[byte as usize] == 0 {
                *to.add(written) = byte;
                written += 1;
            } else {
                written += write_escape(to.add(written), byte);
            }
        }
    }
    written
}

/// Writes the escape of one special byte and returns its length, 2 or 6.
///
/// # Safety
/// `to` is valid for six bytes of writes.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "for the vector routines, which have reserved the room")]
#[inline]
unsafe fn write_escape(to: *mut u8, byte: u8) -> usize {
    let mark = ESCAPES[byte as usize];
    // SAFETY: at most six bytes are written, as the caller promised room for.
    unsafe {
        *to = b'\\';
        *to.add(1) = mark;
        if mark != b'u' {
            return 2;
        }
        *to.add(2) = b'0';
        *to.add(3) = b'0';
        *to.add(4) = HEX[(byte >> 4) as usize];
        *to.add(5) = HEX[(byte & 15) as usize];
    }
    6
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn escaped(text: &[u8]) -> String {
        let mut out = Vec::new();
        write_string(&mut out, text, false);
        String::from_utf8(out).expect("the writer always gives UTF-8")
    }

    #[test]
    fn special_bytes_are_escaped() {
        let cases: [(&[u8], &str); 6] = [
            (b"", r#""""#),
            (b"plain", r#""plain""#),
            (b"a\"b\\c", r#""a\"b\\c""#),
            (b"\n\r\t\x08\x0c", r#""\n\r\t\b\f""#),
            (b"\x00\x1f\x7f", "\"\\u0000\\u001f\x7f\""),
            ("grün €".as_bytes(), "\"grün €\""),
        ];
        for (text, expected) in cases {
            assert_eq!(escaped(text), expected);
        }
    }

    #[test]
    fn html_is_escaped_where_it_is_asked_for() {
        let table = [
            ("", ""),
            ("{\"a\":1}", "{\"a\":1}"),
            ("\"<b>&\"", "\"\\u003cb\\u003e\\u0026\""),
            ("\"x>\"", "\"x\\u003e\""),
        ];
        for (json, expected) in table {
            let mut out = b"<".to_vec();
            out.extend_from_slice(json.as_bytes());
            escape_html(&mut out, 1);
            assert_eq!(String::from_utf8_lossy(&out), format!("<{expected}"));
        }
    }

    #[test]
    fn invalid_utf8_becomes_the_replacement_character() {
        assert_eq!(escaped(b"a\xffb"), "\"a\u{fffd}b\"");
        assert_eq!(escaped(b"half \xe2\x82"), "\"half \u{fffd}\"");
        assert_eq!(escaped(b"\xc3(\xa0"), "\"\u{fffd}(\u{fffd}\"");
    }

    /// Every routine that this machine can run.
    fn routines() -> Vec<Routine> {
        let mut routines: Vec<Routine> = vec![escape_portable, choose()];
        #[cfg(target_arch = "x86_64")]
        {
            if std::arch::is_x86_feature_detected!("avx2") {
                routines.push(avx2::escape);
            }
            if avx512::is_there() {
                routines.push(avx512::escape);
            }
        }
        routines
    }

    fn by_all(bytes: &[u8]) -> Vec<Vec<u8>> {
        let by = |routine: Routine| {
            let mut out = b"before".to_vec();
            routine(&mut out, bytes);
            out
        };
        routines().into_iter().map(by).collect()
    }

    proptest! {
        #[test]
        fn every_text_reads_back_as_itself(text in ".{0,300}") {
            let back: String = serde_json::from_str(&escaped(text.as_bytes())).unwrap();
            prop_assert_eq!(back, text);
        }

        #[test]
        fn every_byte_string_reads_back_as_its_lossy_text(
            bytes in proptest::collection::vec(prop_oneof![3 => Just(b'"'), 3 => Just(b'\\'),
                3 => 0_u8..0x20, 5 => any::<u8>(), 20 => 0x20_u8..0x7f], 0..10_000)
        ) {
            let back: String = serde_json::from_str(&escaped(&bytes)).unwrap();
            prop_assert_eq!(back, String::from_utf8_lossy(&bytes));
        }

        #[test]
        fn short_texts_are_the_same_from_all_routines(
            bytes in proptest::collection::vec(prop_oneof![1 => any::<u8>(), 1 => Just(b'\\'),
                60 => 0x20_u8..0x7f], 0..70)
        ) {
            let texts = by_all(&bytes);
            prop_assert!(texts.iter().all(|text| *text == texts[0]));
        }

        #[test]
        fn the_vector_and_the_portable_routines_agree(
            bytes in proptest::collection::vec(prop_oneof![1 => 0_u8..0x20, 1 => Just(b'"'),
                8 => 0x20_u8..0x7f], 0..500)
        ) {
            let texts = by_all(&bytes);
            prop_assert!(texts.iter().all(|text| *text == texts[0]));
        }
    }
}
