//! HZ-GB-2312 (RFC 1843): GB 2312 in seven bits, between `~{` and `~}`.

use encoding_rs::GBK;

/// Appends a line as UTF-8 to `out`. A `~` at its end continues the line in the next one by the
/// standard; here lines end where they end, and it is left out.
pub(super) fn decode(line: &[u8], out: &mut Vec<u8>) {
    let mut rest = line;
    let mut chinese = false;
    while let [first, tail @ ..] = rest {
        rest = tail;
        match (*first, tail.first().copied()) {
            (b'~', None) => {}
            (b'~', Some(second)) => {
                rest = &tail[1..];
                match second {
                    b'{' => chinese = true,
                    b'}' => chinese = false,
                    b'~' => out.push(b'~'),
                    _ => {
                        replace(out);
                        rest = tail;
                    }
                }
            }
            (0x21..=0x7d, Some(second @ 0x21..=0x7e)) if chinese => {
                rest = &tail[1..];
                push_pair(*first | 0x80, second | 0x80, out);
            }
            (ascii @ 0..=0x7f, _) if !chinese => out.push(ascii),
            (_, _) => replace(out),
        }
    }
}

/// One character of EUC-CN, of which GBK is a superset.
fn push_pair(first: u8, second: u8, out: &mut Vec<u8>) {
    let pair = [first, second];
    let (text, _) = GBK.decode_without_bom_handling(&pair);
    out.extend_from_slice(text.as_bytes());
}

fn replace(out: &mut Vec<u8>) {
    out.extend_from_slice(super::REPLACEMENT.as_bytes());
}
