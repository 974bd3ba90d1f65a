//! Challenges of providers: a request that asks whether this is the right receiver, and is no event.

use ring::hmac;
use serde_json::{Value, json};
use skidder_config::Secret;

/// Who sends challenges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Provider {
    /// <https://developers.zoom.us/docs/api/webhooks/#validate-your-webhook-endpoint>
    Zoom,
}

/// The answer to challenges.
#[derive(Debug)]
pub(super) struct Crc {
    pub(super) provider: Provider,
    pub(super) secret: Secret,
}

impl Crc {
    /// The body of the answer, if the object is a challenge.
    ///
    /// # Errors
    /// It is a challenge without a token.
    pub(super) fn answer(&self, object: &Value) -> Option<Result<String, &'static str>> {
        let Provider::Zoom = self.provider;
        if object.get("event")?.as_str()? != "endpoint.url_validation" {
            return None;
        }
        let token = object.get("payload")?.as_object()?.get("plainToken")?.as_str()?;
        if token.is_empty() {
            return Some(Err(r#"failed decoding "payload.plainToken" from CRC request"#));
        }
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.secret.reveal().as_bytes());
        let hash = hex(hmac::sign(&key, token.as_bytes()).as_ref());
        Some(Ok(json!({"encryptedToken": hash, "plainToken": token}).to_string()))
    }
}

/// Hexadecimal, in lower case.
fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |half: u8| char::from(DIGITS[usize::from(half)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
