//! What the headers of an answer say of an object
//! (<https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html>).

use crate::bucket::version_of;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderName, LAST_MODIFIED};
use skidder_aws::http_time_of;
use skidder_net::cloud::{header_text, metadata};
use skidder_os::Timestamp;
use std::collections::BTreeMap;

/// What user metadata begin with.
const METADATA: &str = "x-amz-meta-";

/// An object, without its content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectHead {
    /// Bytes of the whole content.
    pub size: u64,
    /// With its quotes, as `if-match` takes it. Another content has another one.
    pub etag: String,
    /// In a bucket with versions.
    pub version: Option<String>,
    /// When it was put; whole seconds.
    pub modified: Option<Timestamp>,
    /// `content-type`, as it was put; empty for none.
    pub content_type: String,
    /// `content-encoding`, as it was put: perhaps `gzip`, or `aws-chunked`, which some programs leave there. Empty for none.
    pub content_encoding: String,
    /// User metadata, without `x-amz-meta-`; names in lower case. Values that are not ASCII are encoded by RFC 2047.
    pub metadata: BTreeMap<String, String>,
    /// As `GLACIER`; empty for `STANDARD`.
    pub storage_class: String,
}

impl ObjectHead {
    /// Reads headers. The error describes what is missing.
    pub(crate) fn read(headers: &HeaderMap, size: Option<u64>) -> Result<Self, &'static str> {
        let text = |name| header_text(headers, name);
        let head = Self {
            size: size.ok_or("it does not say how large the object is")?,
            etag: text(ETAG),
            version: version_of(headers),
            modified: http_time_of(&text(LAST_MODIFIED)),
            content_type: text(CONTENT_TYPE),
            content_encoding: text(CONTENT_ENCODING),
            metadata: metadata(headers, METADATA),
            storage_class: text(HeaderName::from_static("x-amz-storage-class")),
        };
        if head.etag.is_empty() {
            return Err("there is no `etag`");
        }
        Ok(head)
    }
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
    fn an_object_is_known_by_its_headers() {
        let all = headers(&[
            ("etag", "\"0123\""),
            ("content-length", "7"),
            ("last-modified", "Sun, 30 Aug 2015 12:36:00 GMT"),
            ("content-type", "application/json"),
            ("content-encoding", "gzip"),
            ("x-amz-version-id", "v1"),
            ("x-amz-meta-team", "a"),
            ("x-amz-meta-x", "=?UTF-8?B?w6Q=?="),
            ("x-amz-storage-class", "GLACIER"),
        ]);
        let head = ObjectHead::read(&all, whole_size(200, &all)).unwrap();
        let metadata = [("team", "a"), ("x", "=?UTF-8?B?w6Q=?=")];
        let metadata = metadata.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let expected = ObjectHead {
            size: 7,
            etag: "\"0123\"".to_owned(),
            version: Some("v1".to_owned()),
            modified: Some(Timestamp(1_440_938_160_000_000_000)),
            content_type: "application/json".to_owned(),
            content_encoding: "gzip".to_owned(),
            metadata: BTreeMap::from(metadata),
            storage_class: "GLACIER".to_owned(),
        };
        assert_eq!(head, expected);
        assert!(ObjectHead::read(&headers(&[("etag", "x")]), None).is_err());
        assert!(ObjectHead::read(&headers(&[("content-length", "7")]), Some(7)).is_err());
    }
}
