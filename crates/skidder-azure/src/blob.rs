//! What the headers of an answer say of a blob, and its content
//! (<https://learn.microsoft.com/rest/api/storageservices/get-blob>).

use crate::client::Content;
use crate::time::http_time_of;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderName, LAST_MODIFIED};
use skidder_net::cloud::{header_text, metadata};
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

/// A blob whose content is on its way.
#[derive(Debug)]
pub struct GotBlob<'a> {
    /// What the server says of it; its size is that of the whole blob.
    pub head: BlobHead,
    /// The content, or the part of it that was asked for.
    pub content: Content<'a>,
}

impl BlobHead {
    /// Reads headers. The error describes what is missing.
    pub(crate) fn read(headers: &HeaderMap, size: Option<u64>) -> Result<Self, &'static str> {
        let text = |name| header_text(headers, name);
        let head = Self {
            size: size.ok_or("it does not say how large the blob is")?,
            etag: etag_of(headers),
            modified: http_time_of(&text(LAST_MODIFIED)),
            kind: text(HeaderName::from_static("x-ms-blob-type")),
            content_type: text(CONTENT_TYPE),
            content_encoding: text(CONTENT_ENCODING),
            metadata: metadata(headers, METADATA),
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

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_net::cloud::whole_size;

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
}
