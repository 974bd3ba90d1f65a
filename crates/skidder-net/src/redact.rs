//! Removes our credentials from answers: some servers and proxies repeat the request in an error,
//! and errors are shown in the log.
//!
//! Bytes are replaced by as many others, so that lengths inside of an answer stay right.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::header::{AUTHORIZATION, PROXY_AUTHORIZATION};
use http::{HeaderMap, HeaderValue};

/// Replaces each byte, as in other messages.
const HIDDEN: u8 = b'x';
/// Shorter texts are no secrets, and are found in any answer.
const SHORTEST: usize = 4;
/// Words that a credential stands behind, in lower case.
const SCHEMES: [&[u8]; 7] =
    [b"basic", b"bearer", b"apikey", b"negotiate", b"digest", b"splunk", b"aws4-hmac-sha256"];
/// Names of headers that have one, in lower case.
const NAMES: [&[u8]; 3] = [b"authorization", b"x-api-key", b"x-amz-security-token"];

/// The secret values of a request's headers.
#[derive(Clone, Debug, Default)]
pub struct Redactor(Vec<HeaderValue>);

impl Redactor {
    /// Those that are marked as sensitive, and logins.
    pub fn of(headers: &HeaderMap) -> Self {
        let secret = |name, value: &HeaderValue| {
            value.is_sensitive() || name == AUTHORIZATION || name == PROXY_AUTHORIZATION
        };
        let secret = headers.iter().filter(|(name, value)| secret((*name).clone(), value));
        Self(secret.map(|(_, value)| value.clone()).collect())
    }

    /// Hides them in an answer, in every form in which they are known here, and whatever stands where credentials do.
    pub fn hide(&self, answer: &mut [u8]) {
        for value in &self.0 {
            for form in forms(value.as_bytes()) {
                hide_all(answer, &form);
            }
        }
        hide_behind(answer);
    }

    /// The same in a header of an answer.
    pub fn hide_in_header(&self, headers: &mut HeaderMap, name: &str) {
        if let Some(value) = headers.get_mut(name) {
            let mut text = value.as_bytes().to_vec();
            self.hide(&mut text);
            if let Ok(hidden) = HeaderValue::from_bytes(&text) {
                *value = hidden;
            }
        }
    }
}

/// A text with this secret in it, without the secret.
pub fn redact(text: &str, secret: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    hide_all(&mut bytes, secret.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A header's value, the part after its scheme, and user and password that this stands for.
fn forms(value: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = vec![value.to_vec()];
    if let Some(at) = value.iter().position(|byte| *byte == b' ') {
        let credential = value[at + 1..].trim_ascii();
        forms.push(credential.to_vec());
        if let Ok(plain) = BASE64.decode(credential) {
            let password = plain.splitn(2, |byte| *byte == b':').nth(1).map(<[u8]>::to_vec);
            forms.push(plain);
            forms.extend(password);
        }
    }
    forms
}

fn hide_all(answer: &mut [u8], secret: &[u8]) {
    if secret.len() < SHORTEST {
        return;
    }
    let mut at = 0;
    while at + secret.len() <= answer.len() {
        if answer[at..].starts_with(secret) {
            answer[at..at + secret.len()].fill(HIDDEN);
            at += secret.len();
        } else {
            at += 1;
        }
    }
}

/// Hides what stands behind the name of a scheme or of a header, also if it is nothing that we sent: it may be written
/// in another way.
fn hide_behind(answer: &mut [u8]) {
    let mut at = 0;
    while at < answer.len() {
        let begins = at == 0 || !answer[at - 1].is_ascii_alphanumeric();
        let word = |words: &[&'static [u8]]| {
            let rest = &answer[at..];
            let found = |word: &&&[u8]| {
                rest.get(..word.len()).is_some_and(|text| text.eq_ignore_ascii_case(word))
            };
            words.iter().find(found).map(|word| at + word.len()).filter(|_| begins)
        };
        let (from, least) = if let Some(end) = word(&SCHEMES) {
            (skip(answer, end, b" \t"), end + 1)
        } else if let Some(end) = word(&NAMES) {
            (skip(answer, end, b" \t\"'\\:=["), end + 1)
        } else {
            at += 1;
            continue;
        };
        at = least.min(answer.len());
        if from < least {
            continue;
        }
        let ends = |byte: &u8| byte.is_ascii_whitespace() || b"\"'<>,;)]}".contains(byte);
        let length = answer[from..].iter().position(ends).unwrap_or(answer.len() - from);
        let credential = &answer[from..from + length];
        let is_scheme = SCHEMES.iter().any(|scheme| credential.eq_ignore_ascii_case(scheme));
        let is_parameter = credential.starts_with(b"realm=") || credential.starts_with(b"charset=");
        if length >= SHORTEST && !is_scheme && !is_parameter {
            answer[from..from + length].fill(HIDDEN);
            at = from + length;
        }
    }
}

fn skip(answer: &[u8], from: usize, bytes: &[u8]) -> usize {
    let rest = &answer[from..];
    from + rest.iter().position(|byte| !bytes.contains(byte)).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(header: &str, answer: &str) -> String {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, header.parse().unwrap());
        headers.insert("x-mine", HeaderValue::from_static("not secret"));
        let mut answer = answer.as_bytes().to_vec();
        Redactor::of(&headers).hide(&mut answer);
        String::from_utf8(answer).unwrap()
    }

    #[test]
    fn what_was_sent_is_hidden_in_every_form() {
        // `u:geheim`
        let login = "Basic dTpnZWhlaW0=";
        let table = [
            ("who is dTpnZWhlaW0=?", "who is xxxxxxxxxxxx?"),
            (
                "{\"authorization\":\"Basic dTpnZWhlaW0=\"}",
                "{\"authorization\":\"xxxxxxxxxxxxxxxxxx\"}",
            ),
            ("no user u:geheim here", "no user xxxxxxxx here"),
            ("wrong: geheim, geheim.", "wrong: xxxxxx, xxxxxx."),
            ("not secret", "not secret"),
            ("{\"error\":\"scripted\"}", "{\"error\":\"scripted\"}"),
        ];
        for (answer, expected) in table {
            assert_eq!(hidden(login, answer), expected);
        }
    }

    #[test]
    fn what_stands_where_credentials_do_is_hidden() {
        let table = [
            (
                "Authorization: Basic dTpnZWhlaW0\\u003d\r\nHost: a",
                "Authorization: Basic xxxxxxxxxxxxxxxxx\r\nHost: a",
            ),
            ("AUTHORIZATION=ApiKey abc\\/def", "AUTHORIZATION=ApiKey xxxxxxxx"),
            ("x-api-key: [topsecret]", "x-api-key: [xxxxxxxxx]"),
            ("proxy-authorization: bearer a.b.c-d", "proxy-authorization: bearer xxxxxxx"),
            ("Bearer", "Bearer"),
            ("basic ", "basic "),
            (
                "\"WWW-Authenticate\":[\"Basic realm=\\\"security\\\"\",\"ApiKey\"]",
                "\"WWW-Authenticate\":[\"Basic realm=\\\"security\\\"\",\"ApiKey\"]",
            ),
            ("unauthorizations are basically fine", "unauthorizations are basically fine"),
        ];
        for (answer, expected) in table {
            assert_eq!(hidden("Bearer something-else", answer), expected);
        }
    }

    #[test]
    fn any_bytes_are_searched_and_keep_their_length() {
        for text in
            [&b""[..], b"\xff\xfe", b"authorization", b"authorization:", b"Basic \xff\xff\xff\xff"]
        {
            let mut answer = text.to_vec();
            Redactor::default().hide(&mut answer);
            assert_eq!(answer.len(), text.len());
        }
    }
}
