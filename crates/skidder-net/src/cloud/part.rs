//! Objects and parts of them: how they are requested, what the headers of an answer say (RFC 9110, section 14), and the
//! content.

use super::{Body, Failure, FailureOf, Sender, Signer};
use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, CONTENT_RANGE, HeaderName};
use std::collections::BTreeMap;
use std::ops::Deref;

/// Which bytes of an object, and under which condition.
#[derive(Clone, Copy, Debug, Default)]
pub struct Part<'a> {
    /// Bytes that are left out at its beginning. A part that would begin at the end of the object or behind it is refused
    /// with 416.
    pub from: u64,
    /// The offset behind the last byte, larger than `from`; `None` for all.
    pub until: Option<u64>,
    /// The object must have this `etag`, with quotes only if the client of the cloud gives it so; else the server refuses with
    /// 412.
    pub if_match: Option<&'a str>,
}

impl Part<'_> {
    /// How many bytes it has of an object of `size` bytes.
    pub fn bytes_of(&self, size: u64) -> u64 {
        self.until.unwrap_or(u64::MAX).min(size).saturating_sub(self.from)
    }
}

/// The content of an object, in pieces.
#[derive(Debug)]
pub struct Content<K> {
    body: Body<K>,
    /// Bytes to come.
    left: u64,
    /// How messages call the service, and the object.
    names: (&'static str, &'static str),
}

impl<S: Signer, K: Deref<Target = Sender<S>>> Content<K> {
    /// A body of `left` bytes. `names` are those of the service and of what the body is, as `S3` and `object`.
    pub fn new(body: Body<K>, left: u64, names: (&'static str, &'static str)) -> Self {
        Self { body, left, names }
    }

    /// Bytes that are to come.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// The next piece: 1 to `bytes_max` bytes; `None` when all have come. Loses nothing if it is cancelled.
    ///
    /// # Errors
    ///
    /// As [`Body::piece`], or there are fewer or more bytes than the server had announced.
    pub async fn piece(&mut self, bytes_max: usize) -> Result<Option<Bytes>, FailureOf<S>> {
        let (service, noun) = self.names;
        let unexpected = |what| Failure::Unexpected { service, status: 200, what };
        let Some(piece) = self.body.piece(bytes_max).await? else {
            if self.left > 0 {
                return Err(unexpected(format!("the {noun} ended {} bytes early", self.left)));
            }
            return Ok(None);
        };
        let Some(left) = self.left.checked_sub(piece.len() as u64) else {
            return Err(unexpected(format!("the {noun} has more bytes than its size")));
        };
        self.left = left;
        Ok(Some(piece))
    }
}

/// The header `range` for the bytes from `from` to before `until`; `None` for a whole object.
///
/// # Panics
///
/// If the part is empty (`until` is not behind `from`).
pub fn range(from: u64, until: Option<u64>) -> Option<String> {
    match (from, until) {
        (0, None) => None,
        (from, None) => Some(format!("bytes={from}-")),
        (from, Some(until)) => {
            assert!(from < until, "a part has at least one byte");
            Some(format!("bytes={from}-{}", until - 1))
        }
    }
}

/// The size of the whole object, in an answer with it or a part of it.
pub fn whole_size(status: u16, headers: &HeaderMap) -> Option<u64> {
    if status != 206 {
        return content_length(headers);
    }
    content_range(headers)?.rsplit_once('/')?.1.parse().ok()
}

/// The offset of the first byte of an answer.
pub fn first_byte(status: u16, headers: &HeaderMap) -> Option<u64> {
    if status != 206 {
        return Some(0);
    }
    content_range(headers)?.split_once('-')?.0.parse().ok()
}

/// Bytes of an answer, if the server announces them.
pub fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// A header of an answer; empty if there is none.
pub fn header_text(headers: &HeaderMap, name: HeaderName) -> String {
    let value = headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
    value.unwrap_or_default().into_owned()
}

/// The headers whose names begin with `prefix`, without that.
pub fn metadata(headers: &HeaderMap, prefix: &str) -> BTreeMap<String, String> {
    let pairs = headers.iter().filter_map(|(name, value)| {
        let name = name.as_str().strip_prefix(prefix)?;
        Some((name.to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
    });
    pairs.collect()
}

/// As `0-9/443` (section 14.4).
fn content_range(headers: &HeaderMap) -> Option<&str> {
    headers.get(CONTENT_RANGE)?.to_str().ok()?.strip_prefix("bytes ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn a_part_says_where_it_is() {
        let table = [
            (200, "content-length", "9", Some(9), Some(0)),
            (206, "content-range", "bytes 5-8/9", Some(9), Some(5)),
            (206, "content-range", "bytes 5-8/*", None, Some(5)),
            (206, "content-range", "lines 5-8/9", None, None),
            (206, "content-length", "4", None, None),
            (200, "content-length", "x", None, Some(0)),
        ];
        for (status, name, value, size, first) in table {
            let pair = (HeaderName::from_static(name), HeaderValue::from_static(value));
            let all = HeaderMap::from_iter([pair]);
            let found = (whole_size(status, &all), first_byte(status, &all));
            assert_eq!(found, (size, first), "{status} {name}: {value}");
        }
    }

    #[test]
    fn a_part_is_a_range() {
        assert_eq!(range(0, None), None);
        assert_eq!(range(5, None).as_deref(), Some("bytes=5-"));
        assert_eq!(range(0, Some(8)).as_deref(), Some("bytes=0-7"));
        assert_eq!(range(5, Some(9)).as_deref(), Some("bytes=5-8"));
    }
}
