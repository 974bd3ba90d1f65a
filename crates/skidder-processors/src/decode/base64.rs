//! `decode_base64_field`: decodes a text in Base64, with or without padding.

use super::in_place::{Decoded, FromTo};
use crate::plan::{Constants, ERROR_MESSAGE, Failure, Footprint, Outcome, Processor, rehearse};
use data_encoding::{Encoding, Specification};
use skidder_config::Section;
use skidder_event::EventMut;

/// Decodes the text of a field.
#[derive(Clone, Debug)]
pub(crate) struct DecodeBase64 {
    field: FromTo,
    ignore_missing: bool,
    fail_on_error: bool,
    encoding: Encoding,
}

impl DecodeBase64 {
    /// `field.from`, `field.to`, `ignore_missing`, `fail_on_error`.
    pub(crate) fn read(settings: &Section<'_>) -> Option<Self> {
        let field = FromTo::read(&settings.section("field"));
        let ignore_missing = settings.bool("ignore_missing").or(false);
        let fail_on_error = settings.bool("fail_on_error").or(true);
        Some(Self { field: field?, ignore_missing, fail_on_error, encoding: encoding() })
    }

    fn decode(&self, event: &mut EventMut<'_>) -> Result<(), String> {
        let Some(text) = self.field.text(event.as_ref(), self.ignore_missing, "base64 value")?
        else {
            return Ok(());
        };
        let end = text.iter().rposition(|&byte| byte != b'=').map_or(0, |last| last + 1);
        let decoded = decode(&self.encoding, &text[..end]).map_err(|at| {
            let text = String::from_utf8_lossy(text);
            format!("error trying to decode {text}: illegal base64 data at input byte {at}")
        })?;
        self.field.put(event, &decoded)
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

/// The bytes of a text; the error is the place of what is none.
fn decode(encoding: &Encoding, text: &[u8]) -> Result<Decoded, usize> {
    let bytes_max = encoding.decode_len(text.len()).map_err(|error| error.position)?;
    let mut decoded = Decoded::new();
    decoded.resize(bytes_max, 0);
    let bytes =
        encoding.decode_mut(text, &mut decoded).map_err(|partial| partial.error.position)?;
    decoded.truncate(bytes);
    Ok(decoded)
}

impl Processor for DecodeBase64 {
    fn name(&self) -> &'static str {
        "decode_base64_field"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        let mark = event.mark();
        if let Err(reason) = self.decode(event) {
            if self.fail_on_error {
                let reason = format!("failed to decode base64 fields in processor: {reason}");
                return Err(Failure::new(reason));
            }
            event.rollback(mark);
        }
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let writes = vec![self.field.to.clone(), ERROR_MESSAGE.clone()];
        Footprint { reads: vec![self.field.from.clone()], writes, ..Footprint::default() }
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        rehearse(self, constants, &[&self.field.to])
    }

    fn can_fail(&self) -> bool {
        self.fail_on_error
    }

    fn describe(&self) -> String {
        format!("decode_base64_field {}", self.field.from)
    }
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
