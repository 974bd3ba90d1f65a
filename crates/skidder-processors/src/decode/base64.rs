//! `decode_base64_field`: decodes a text in Base64, with or without padding.

use super::in_place::{Decoded, Decoder};
use data_encoding::{Encoding, Specification};
use skidder_event::Path;

/// Base64 as Go decodes it.
#[derive(Debug)]
pub(super) struct Base64(Encoding);

impl Base64 {
    pub(super) fn new() -> Self {
        Self(encoding())
    }
}

impl Decoder for Base64 {
    const NAME: &'static str = "decode_base64_field";
    const FAILED: &'static str = "failed to decode base64 fields in processor";
    const NOUN: &'static str = "base64 value";
    type Decoded = Decoded;
    /// The place of the first byte that is no Base64.
    type Refused = usize;

    fn decode(&self, text: &[u8]) -> Result<Decoded, usize> {
        let end = text.iter().rposition(|&byte| byte != b'=').map_or(0, |last| last + 1);
        decode(&self.0, &text[..end])
    }

    fn say(at: &usize, text: &[u8], _: &Path) -> String {
        let text = String::from_utf8_lossy(text);
        format!("error trying to decode {text}: illegal base64 data at input byte {at}")
    }
}

/// As Go's `RawStdEncoding`: line breaks do not count, nor do the bits left over at the end.
fn encoding() -> Encoding {
    let mut specification = Specification::new();
    specification
        .symbols
        .push_str("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
    specification.ignore.push_str("\r\n");
    specification.check_trailing_bits = false;
    specification.encoding().expect("the alphabet of RFC 4648")
}

/// The bytes of a text; the error is the place of the first invalid character.
fn decode(encoding: &Encoding, text: &[u8]) -> Result<Decoded, usize> {
    let bytes_max = encoding.decode_len(text.len()).map_err(|error| error.position)?;
    let mut decoded = Decoded::new();
    decoded.resize(bytes_max, 0);
    let bytes =
        encoding.decode_mut(text, &mut decoded).map_err(|partial| partial.error.position)?;
    decoded.truncate(bytes);
    Ok(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_decoded_as_go_does() {
        let cases = [
            ("Y29ycmVjdCBkYXRh", Ok("correct data")),
            ("QQ", Ok("A")),
            ("QR", Ok("A")),
            ("Y29y\r\ncmVj\ndA", Ok("correct")),
            ("", Ok("")),
            ("\n", Ok("")),
            ("bad data", Err(3)),
            ("QQ=Q", Err(2)),
            ("A", Err(0)),
        ];
        for (text, bytes) in cases {
            let decoded = decode(&encoding(), text.as_bytes());
            let decoded = decoded.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            assert_eq!(decoded.as_deref().map_err(|at| *at), bytes, "{text:?}");
        }
    }
}
