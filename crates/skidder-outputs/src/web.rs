//! What requests over HTTP have in common, whatever is asked.

use crate::elasticsearch::HostUrl;
use crate::net::Via;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderValue, Uri};
use std::time::Duration;

/// What `user-agent` says.
pub(crate) const AGENT: &str = concat!("skidder/", env!("CARGO_PKG_VERSION"));

/// A header that no log shows; nothing if it cannot be sent.
pub(crate) fn secret(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// `authorization` of a URL with a user in it.
pub(crate) fn basic(url: &HostUrl) -> Option<String> {
    let (user, password) = url.credentials.as_ref()?;
    Some(format!("Basic {}", BASE64.encode(format!("{user}:{}", password.reveal()))))
}

/// `proxy-authorization`, which goes with the request itself if that is not encrypted.
pub(crate) fn proxy_login(url: &HostUrl, proxy: Option<&Via>) -> Option<String> {
    match proxy.filter(|_| !url.https) {
        Some(Via::Http(proxy)) => proxy.authorization(),
        _ => None,
    }
}

/// What is asked for: the URL's path, which ends with `end` or is given it. A proxy of HTTP is told the whole URL of what
/// is not encrypted.
pub(crate) fn uri(url: &HostUrl, end: &str, proxy: Option<&Via>) -> Option<Uri> {
    let end = if url.path.ends_with(end) { "" } else { end };
    let is_told = matches!(proxy, Some(Via::Http(_))) && !url.https;
    let before = if is_told { format!("http://{}", url.authority()) } else { String::new() };
    format!("{before}{}{end}", url.path).parse().ok()
}

/// `retry-after`, if it is a number of seconds.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}

/// What a message can show of an answer's first `most` bytes.
pub(crate) fn shown(answer: &[u8], most: usize) -> String {
    let text = String::from_utf8_lossy(&answer[..answer.len().min(most)]);
    let printable = |character: &char| !character.is_control() && *character != '\u{fffd}';
    text.chars().filter(printable).collect::<String>().trim().to_owned()
}
