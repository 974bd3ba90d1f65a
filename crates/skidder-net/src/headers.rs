//! Headers and URIs that all requests of HTTP have in common, and the part of an answer that a message shows.

use crate::HostUrl;
use crate::Proxy;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderValue, Uri};
use skidder_config::Secret;
use std::time::Duration;

/// The value of `user-agent`.
pub const AGENT: &str = concat!("skidder/", env!("CARGO_PKG_VERSION"));

/// A header value that no log shows; `None` if it cannot be sent.
pub fn secret_header(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// `authorization` with a user and a password (RFC 7617).
pub fn basic_login(user: &str, password: &Secret) -> String {
    format!("Basic {}", BASE64.encode(format!("{user}:{}", password.reveal())))
}

/// `authorization` of a URL with a user in it.
pub fn basic_login_of(url: &HostUrl) -> Option<String> {
    let (user, password) = url.credentials.as_ref()?;
    Some(basic_login(user, password))
}

/// `proxy-authorization`, which goes with the request itself if that is not encrypted.
pub fn proxy_login(url: &HostUrl, proxy: Option<&Proxy>) -> Option<String> {
    match proxy.filter(|_| !url.https) {
        Some(Proxy::Http(proxy)) => proxy.authorization(),
        _ => None,
    }
}

/// The target of a request: the URL's path, with `end` appended unless it ends so already. Without TLS a proxy of HTTP
/// gets the whole URL.
pub fn request_uri(url: &HostUrl, end: &str, proxy: Option<&Proxy>) -> Option<Uri> {
    let end = if url.path.ends_with(end) { "" } else { end };
    let is_absolute = matches!(proxy, Some(Proxy::Http(_))) && !url.https;
    let before = if is_absolute { format!("http://{}", url.authority()) } else { String::new() };
    format!("{before}{}{end}", url.path).parse().ok()
}

/// `retry-after`, if it is a number of seconds.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}

/// The excerpt of an answer for a message: the printable characters of its first `bytes_max` bytes.
pub fn excerpt(answer: &[u8], bytes_max: usize) -> String {
    let text = String::from_utf8_lossy(&answer[..answer.len().min(bytes_max)]);
    let printable = |character: &char| !character.is_control() && *character != '\u{fffd}';
    text.chars().filter(printable).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_short_printable_and_never_cuts_a_character_in_two() {
        assert_eq!(excerpt(b" no\r\nentry\x1b[0m ", 512), "noentry[0m");
        assert_eq!(excerpt("aä".as_bytes(), 2), "a");
        assert_eq!(excerpt(b"\xff\xfe", 512), "");
    }

    #[test]
    fn retry_after_is_read_in_seconds_only() {
        let of = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, text.parse().unwrap());
            retry_after(&headers)
        };
        assert_eq!(of(" 7 "), Some(Duration::from_secs(7)));
        assert_eq!(of("Wed, 21 Oct 2026 07:28:00 GMT"), None);
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }
}
