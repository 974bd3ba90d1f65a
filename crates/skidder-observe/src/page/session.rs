//! A browser's session instead of the token: a cookie, and a key that goes with it.
//!
//! A cookie is sent to every port of a host, so to a server of another user of this machine, too, if a page of it is ever
//! opened. Therefore it opens nothing alone: the page keeps the key in the storage of its origin, to which the port belongs,
//! and sends it in a header. Both are made from the token and the time of their end; nothing is remembered here, they outlive
//! a restart, and another token ends them.

use hyper::HeaderMap;
use hyper::header::COOKIE;
use ring::hmac;
use skidder_os::Timestamp;
use std::fmt::Write as _;
use std::time::Duration;
use subtle::ConstantTimeEq as _;

/// How long a session lasts behind the last time that the page was opened.
const LASTS: Duration = Duration::from_hours(7 * 24);
/// The header with the key.
const KEY: &str = "x-skidder-key";

/// Makes and checks sessions.
#[derive(Clone, Debug)]
pub(super) struct Sessions {
    key: hmac::Key,
    /// Of the cookie: several skidders on one host have several.
    name: String,
    over_tls: bool,
}

/// The parts of a session for the browser.
#[derive(Debug)]
pub(crate) struct Session {
    /// For `Set-Cookie`.
    pub(crate) cookie: String,
    /// For the storage of the page.
    pub(crate) key: String,
}

impl Sessions {
    /// Of a token, at a port.
    pub(super) fn new(token: &[u8], port: u16) -> Self {
        let (key, name) =
            (hmac::Key::new(hmac::HMAC_SHA256, token), format!("skidder-page-{port}"));
        Self { key, name, over_tls: false }
    }

    /// The same for a server with TLS.
    pub(super) fn over_tls(self) -> Self {
        Self { over_tls: true, ..self }
    }

    /// A new one.
    pub(super) fn begin(&self, now: Timestamp) -> Session {
        let ends = seconds(now) + LASTS.as_secs();
        let (name, mark, seconds) = (&self.name, self.mark("cookie", ends), LASTS.as_secs());
        let secure = if self.over_tls { "; Secure" } else { "" };
        Session {
            cookie: format!(
                "{name}={ends}-{mark}; Path=/ui/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
            ),
            key: self.mark("key", ends),
        }
    }

    /// Whether a request has both parts of one that has not ended. Takes the same time however much of them is right.
    pub(super) fn has(&self, headers: &HeaderMap, now: Timestamp) -> bool {
        let Some(key) = headers.get(KEY) else { return false };
        let Some((ends, mark)) = self.cookie(headers).and_then(|value| value.split_once('-'))
        else {
            return false;
        };
        let Ok(ends) = ends.parse::<u64>() else { return false };
        let is = |what, sent: &[u8]| bool::from(self.mark(what, ends).as_bytes().ct_eq(sent));
        let is_right = is("cookie", mark.as_bytes()) & is("key", key.as_bytes());
        is_right && seconds(now) < ends
    }

    fn cookie<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
        let mut pairs =
            lines.flat_map(|line| line.split(';')).filter_map(|it| it.trim().split_once('='));
        pairs.find(|(name, _)| *name == self.name).map(|(_, value)| value)
    }

    fn mark(&self, what: &str, ends: u64) -> String {
        let mark = hmac::sign(&self.key, format!("skidder page {what} {ends}").as_bytes());
        mark.as_ref().iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("a string takes everything");
            text
        })
    }
}

fn seconds(at: Timestamp) -> u64 {
    u64::try_from(at.0 / 1_000_000_000).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::{HeaderName, HeaderValue};

    fn headers(cookie: &str, key: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(COOKIE, HeaderValue::from_str(cookie).expect("a value"));
        let key = HeaderValue::from_str(key).expect("a value");
        headers.insert(HeaderName::from_static(KEY), key);
        headers
    }

    #[test]
    fn a_session_needs_both_parts_and_ends_and_another_token_ends_it() {
        let now = Timestamp(1_767_225_600_000_000_000);
        let later = |span: Duration| Timestamp(now.0 + i64::try_from(span.as_nanos()).unwrap_or(0));
        let sessions = Sessions::new(b"a token", 5066);
        let Session { cookie, key } = sessions.begin(now);
        assert!(cookie.ends_with("; HttpOnly; SameSite=Strict"), "{cookie}");
        let over_tls = Sessions::new(b"a token", 5066).over_tls().begin(now).cookie;
        assert_eq!(over_tls, format!("{cookie}; Secure"));
        let cookie = cookie.split(';').next().expect("a pair");
        let both = headers(&format!("other=1; {cookie}; more=2"), &key);
        assert!(sessions.has(&both, now));
        assert!(sessions.has(&both, later(LASTS.saturating_sub(Duration::from_secs(1)))));
        assert!(!sessions.has(&both, later(LASTS)));
        assert!(!Sessions::new(b"another", 5066).has(&both, now));
        assert!(!Sessions::new(b"a token", 5067).has(&both, now));
        let mut alone = both.clone();
        alone.remove(KEY);
        assert!(!sessions.has(&alone, now), "a cookie is sent to other ports, too");
        alone = both.clone();
        alone.remove(COOKIE);
        assert!(!sessions.has(&alone, now));
        let longer = cookie.replacen("=1767", "=9767", 1);
        assert!(!sessions.has(&headers(&longer, &key), now), "its end is part of it");
        let swapped = format!("{}{}", &cookie[..cookie.len() - 64], key);
        assert!(!sessions.has(&headers(&swapped, &key), now));
    }
}
