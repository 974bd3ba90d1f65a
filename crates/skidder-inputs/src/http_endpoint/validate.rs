//! What a request needs before its body is used: login, secret, method, content type, signature.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use ring::hmac;
use skidder_config::Secret;
use subtle::ConstantTimeEq as _;

/// The hash of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HmacKind {
    Sha1,
    Sha256,
}

/// The signature that requests need.
#[derive(Debug)]
pub(super) struct Hmac {
    pub(super) header: HeaderName,
    pub(super) key: Secret,
    pub(super) kind: HmacKind,
    pub(super) prefix: String,
}

/// Checks requests.
#[derive(Debug)]
pub(super) struct Validator {
    pub(super) method: &'static str,
    /// Empty: any.
    pub(super) content_type: String,
    pub(super) user: Option<(String, Secret)>,
    pub(super) secret: Option<(HeaderName, Secret)>,
    pub(super) hmac: Option<Hmac>,
    /// Of the answer to `OPTIONS`, if that is allowed.
    pub(super) options: Option<Vec<(HeaderName, HeaderValue)>>,
    pub(super) options_status: StatusCode,
}

/// A request is refused: the status and the message of the answer.
pub(super) type Refused = (StatusCode, String);

impl Validator {
    /// Checks login and secret, in Filebeat's order and with its messages.
    pub(super) fn check_login(&self, headers: &HeaderMap) -> Result<(), Refused> {
        if let Some(user) = &self.user
            && !skidder_net::is_authorized(headers, None, Some(user))
        {
            return refuse(StatusCode::UNAUTHORIZED, "incorrect username or password");
        }
        if let Some((name, secret)) = &self.secret {
            let sent = headers.get(name).map_or(&b""[..], |value| value.as_bytes());
            if !bool::from(sent.ct_eq(secret.reveal().as_bytes())) {
                return refuse(StatusCode::UNAUTHORIZED, "incorrect header or header secret");
            }
        }
        Ok(())
    }

    /// Checks method and content type, likewise.
    pub(super) fn check_form(&self, method: &Method, headers: &HeaderMap) -> Result<(), Refused> {
        let is_options = *method == Method::OPTIONS;
        if is_options && self.options.is_none() {
            let message = "OPTIONS requests are only allowed with options_headers set";
            return refuse(StatusCode::BAD_REQUEST, message);
        }
        if !is_options && method.as_str() != self.method {
            let message = format!("only {} requests are allowed", self.method);
            return refuse(StatusCode::METHOD_NOT_ALLOWED, message);
        }
        let sent = headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
        if !self.content_type.is_empty() && sent != self.content_type.as_bytes() {
            let message = format!("wrong Content-Type header, expecting {}", self.content_type);
            return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, message);
        }
        Ok(())
    }
}

fn refuse<T>(status: StatusCode, message: impl Into<String>) -> Result<T, Refused> {
    Err((status, message.into()))
}

impl Hmac {
    /// The signature of the request.
    pub(super) fn sent(&self, headers: &HeaderMap) -> Result<Vec<u8>, Refused> {
        let Some(value) = headers.get(&self.header) else {
            return refuse(StatusCode::UNAUTHORIZED, "missing HMAC header");
        };
        let value = value.as_bytes();
        let value = value.strip_prefix(self.prefix.as_bytes()).unwrap_or(value);
        decode(value).map_err(|why| {
            (StatusCode::UNAUTHORIZED, format!("invalid HMAC signature encoding: {why}"))
        })
    }

    /// Checks the signature of a body as it was sent.
    pub(super) fn check(&self, signature: &[u8], body: &[u8]) -> Result<(), Refused> {
        let algorithm = match self.kind {
            HmacKind::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            HmacKind::Sha256 => hmac::HMAC_SHA256,
        };
        let key = hmac::Key::new(algorithm, self.key.reveal().as_bytes());
        hmac::verify(&key, body, signature)
            .or_else(|_| refuse(StatusCode::UNAUTHORIZED, "invalid HMAC signature"))
    }
}

/// Hexadecimal, or base64 with or without padding.
fn decode(text: &[u8]) -> Result<Vec<u8>, &'static str> {
    if text.is_empty() {
        return Err("unexpected empty header value");
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let pair = |pair: &[u8]| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?);
    if let Some(bytes) = text.chunks(2).map(pair).collect() {
        return Ok(bytes);
    }
    STANDARD_NO_PAD
        .decode(text)
        .or_else(|_| STANDARD.decode(text))
        .map_err(|_| "neither hexadecimal nor base64")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_hexadecimal_or_base64() {
        assert_eq!(decode(b"0aFF"), Ok(vec![0x0a, 0xff]));
        assert_eq!(decode(b"0aFx"), Ok(STANDARD.decode("0aFx").unwrap()));
        assert_eq!(decode(b"+/8="), Ok(vec![0xfb, 0xff]));
        assert_eq!(decode(b"+/8"), Ok(vec![0xfb, 0xff]));
        assert!(decode(b"").is_err());
        assert!(decode(b"!").is_err());
    }
}
