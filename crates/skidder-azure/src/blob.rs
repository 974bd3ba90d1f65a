//! What the headers of an answer say of a blob, and its content
//! (<https://learn.microsoft.com/rest/api/storageservices/get-blob>).

use crate::client::{Body, Failure};
use crate::time::http_time_of;
use bytes::Bytes;
use http::HeaderMap;
use http::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderName, LAST_MODIFIED,
};
use skidder_os::Timestamp;
use std::collections::BTreeMap;

/// What the names of metadata begin with in headers.
pub(crate) const METADATA: &str = "x-ms-meta-";

/// A blob, without its content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobHead {
    /// Bytes of the whole content.
    pub size: u64,
    /// Without quotes. Another content, or other metadata, has another one.
    pub etag: String,
    /// When it was changed last; whole seconds.
    pub modified: Option<Timestamp>,
    /// As `BlockBlob` or `AppendBlob`.
    pub kind: String,
    /// As it was put; empty for none.
    pub content_type: String,
    /// As it was put; empty for none.
    pub content_encoding: String,
    /// Names in lower case.
    pub metadata: BTreeMap<String, String>,
}

/// Which bytes of a blob, and under which condition.
#[derive(Clone, Copy, Debug, Default)]
pub struct Part<'a> {
    /// Bytes that are left out at its beginning. A part that would begin at the end of the blob or behind it is refused with
    /// 416 ([`crate::Refused::is_behind_the_end`]).
    pub from: u64,
    /// The offset behind the last byte, larger than `from`; `None` for all.
    pub until: Option<u64>,
    /// The blob must have this `etag` (without quotes), else the server refuses with 412 ([`crate::Refused::is_changed`]).
    pub if_match: Option<&'a str>,
}

impl Part<'_> {
    /// The header `range`; `None` for a whole blob.
    pub(crate) fn range(&self) -> Option<String> {
        match (self.from, self.until) {
            (0, None) => None,
            (from, None) => Some(format!("bytes={from}-")),
            (from, Some(until)) => {
                assert!(from < until, "a part has at least one byte");
                Some(format!("bytes={from}-{}", until - 1))
            }
        }
    }
}

/// A blob whose content is on its way.
#[derive(Debug)]
pub struct GotBlob<'a> {
    /// What the server says of it; its size is that of the whole blob.
    pub head: BlobHead,
    /// The content, or the part of it that was asked for.
    pub content: Content<'a>,
}

/// The content of a blob, in pieces.
#[derive(Debug)]
pub struct Content<'a> {
    pub(crate) body: Body<'a>,
    /// Bytes to come.
    pub(crate) left: u64,
}

impl Content<'_> {
    /// Bytes that are to come.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// The next piece: 1 to `bytes_max` bytes; `None` when all have come. Loses nothing if it is cancelled.
    ///
    /// # Errors
    ///
    /// As [`Body::piece`], or there are fewer or more bytes than the server had announced.
    pub async fn piece(&mut self, bytes_max: usize) -> Result<Option<Bytes>, Failure> {
        let Some(piece) = self.body.piece(bytes_max).await? else {
            if self.left > 0 {
                let what = format!("the blob ended {} bytes early", self.left);
                return Err(Failure::unexpected(200, what));
            }
            return Ok(None);
        };
        let Some(left) = self.left.checked_sub(piece.len() as u64) else {
            return Err(Failure::unexpected(200, "the blob has more bytes than its size"));
        };
        self.left = left;
        Ok(Some(piece))
    }
}

impl BlobHead {
    /// Reads headers. The error describes what is missing.
    pub(crate) fn read(headers: &HeaderMap, size: Option<u64>) -> Result<Self, &'static str> {
        let text = |name: HeaderName| {
            let value = headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
            value.unwrap_or_default().into_owned()
        };
        let metadata = headers.iter().filter_map(|(name, value)| {
            let name = name.as_str().strip_prefix(METADATA)?;
            Some((name.to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        });
        let head = Self {
            size: size.ok_or("it does not say how large the blob is")?,
            etag: etag_of(headers),
            modified: http_time_of(&text(LAST_MODIFIED)),
            kind: text(HeaderName::from_static("x-ms-blob-type")),
            content_type: text(CONTENT_TYPE),
            content_encoding: text(CONTENT_ENCODING),
            metadata: metadata.collect(),
        };
        if head.etag.is_empty() {
            return Err("there is no `etag`");
        }
        Ok(head)
    }
}

/// Without its quotes; empty if there is none.
pub(crate) fn etag_of(headers: &HeaderMap) -> String {
    let etag = headers.get(ETAG).and_then(|etag| etag.to_str().ok());
    etag.unwrap_or_default().trim_matches('"').to_owned()
}

/// The size of the whole blob, in an answer with it or a part of it.
pub(crate) fn whole_size(status: u16, headers: &HeaderMap) -> Option<u64> {
    if status != 206 {
        return headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok();
    }
    content_range(headers)?.rsplit_once('/')?.1.parse().ok()
}

/// The offset of the first byte of an answer.
pub(crate) fn first_byte(status: u16, headers: &HeaderMap) -> Option<u64> {
    if status != 206 {
        return Some(0);
    }
    content_range(headers)?.split_once('-')?.0.parse().ok()
}

/// As `0-9/443` (RFC 9110, section 14.4).
fn content_range(headers: &HeaderMap) -> Option<&str> {
    headers.get(CONTENT_RANGE)?.to_str().ok()?.strip_prefix("bytes ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), http::HeaderValue::from_static(value))
        };
        all.iter().map(pair).collect()
    }

    #[test]
    fn a_blob_is_known_by_its_headers() {
        let all = headers(&[
            ("etag", "\"0x8D\""),
            ("content-length", "7"),
            ("last-modified", "Sun, 30 Aug 2015 12:36:00 GMT"),
            ("content-type", "application/json"),
            ("content-encoding", "gzip"),
            ("x-ms-blob-type", "AppendBlob"),
            ("x-ms-meta-team", "a"),
        ]);
        let head = BlobHead::read(&all, whole_size(200, &all)).unwrap();
        let expected = BlobHead {
            size: 7,
            etag: "0x8D".to_owned(),
            modified: Some(Timestamp(1_440_938_160_000_000_000)),
            kind: "AppendBlob".to_owned(),
            content_type: "application/json".to_owned(),
            content_encoding: "gzip".to_owned(),
            metadata: BTreeMap::from([("team".to_owned(), "a".to_owned())]),
        };
        assert_eq!(head, expected);
        assert!(BlobHead::read(&headers(&[("etag", "x")]), None).is_err());
        assert!(BlobHead::read(&headers(&[("content-length", "7")]), Some(7)).is_err());
    }

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
            let all = headers(&[(name, value)]);
            let found = (whole_size(status, &all), first_byte(status, &all));
            assert_eq!(found, (size, first), "{status} {name}: {value}");
        }
    }

    #[test]
    fn a_part_is_a_range() {
        let range = |from, until| Part { from, until, if_match: None }.range();
        assert_eq!(range(0, None), None);
        assert_eq!(range(5, None).as_deref(), Some("bytes=5-"));
        assert_eq!(range(0, Some(8)).as_deref(), Some("bytes=0-7"));
    }
}
