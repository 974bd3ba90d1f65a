//! A container: lists, looks at, gets, puts and deletes blobs, and sets their metadata
//! (<https://learn.microsoft.com/rest/api/storageservices/operations-on-blobs>).
//!
//! What a server answers is checked: a part of a blob that is not the one that was asked for, or that ends early, is an
//! error. Conditions and `etag`s are what several processes agree by, as those that share the partitions of an event hub.

use crate::blob::{BlobHead, GotBlob, METADATA, etag_of};
use crate::client::{AZURE, Client, Content, Failure, unexpected};
use crate::listing::{Listing, read_listing};
use crate::time::http_time_of;
use bytes::Bytes;
use http::header::LAST_MODIFIED;
use http::{HeaderMap, Method};
use skidder_net::cloud::{Ask, Opened, Part, first_byte, range, whole_size};
use skidder_os::Timestamp;
use std::collections::BTreeMap;

/// Most blobs of a page of a listing.
pub const PAGE_BLOBS_MAX: u16 = 5000;

/// A client of one container.
#[derive(Debug)]
pub struct Container {
    pub(crate) client: Client,
}

/// Which blobs a listing has, and where it begins.
#[derive(Clone, Copy, Debug, Default)]
pub struct List<'a> {
    /// What names begin with.
    pub prefix: &'a str,
    /// [`Listing::next`] of the page before; `None` for the first page.
    pub marker: Option<&'a str>,
    /// Most blobs of the page, 1 to [`PAGE_BLOBS_MAX`]; `None` for that many.
    pub blobs_max: Option<u16>,
    /// Whether the blobs come with their metadata.
    pub metadata: bool,
}

/// The condition of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Condition<'a> {
    /// None.
    #[default]
    Always,
    /// The blob has this `etag` (without quotes).
    IfMatch(&'a str),
    /// There is no blob of this name.
    IfMissing,
}

impl Condition<'_> {
    /// Its header; `None` without a condition.
    fn header(self) -> Option<(&'static str, String)> {
        match self {
            Self::Always => None,
            Self::IfMatch(etag) => Some(("if-match", quoted(etag))),
            Self::IfMissing => Some(("if-none-match", "*".to_owned())),
        }
    }
}

/// What is put.
#[derive(Clone, Copy, Debug, Default)]
pub struct Put<'a> {
    /// The content in pieces; none for an empty blob.
    pub body: &'a [Bytes],
    /// `content-type`; empty for that of Azure (`application/octet-stream`).
    pub content_type: &'a str,
    /// `content-encoding`; empty for none.
    pub content_encoding: &'a str,
    /// Pairs of a name (letters, digits and `_`) and a value (ASCII).
    pub metadata: &'a [(&'a str, &'a str)],
    /// Else the server refuses with 409 or 412 ([`crate::Refused::is_changed`]).
    pub condition: Condition<'a>,
}

/// A blob behind a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Without quotes.
    pub etag: String,
    /// By the server's clock; whole seconds.
    pub modified: Option<Timestamp>,
}

impl Changed {
    pub(crate) fn read(status: u16, headers: &HeaderMap) -> Result<Self, Failure> {
        let etag = etag_of(headers);
        if etag.is_empty() {
            return Err(unexpected(status, "there is no `etag`"));
        }
        let modified = headers.get(LAST_MODIFIED).and_then(|time| time.to_str().ok());
        Ok(Self { etag, modified: modified.and_then(http_time_of) })
    }
}

impl Container {
    /// A client of the container of its service.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// The client below.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Makes the container. `false`: there is one already.
    ///
    /// # Errors
    ///
    /// As [`Client::ask`].
    pub async fn create(&mut self) -> Result<bool, Failure> {
        let mut ask = Ask::empty(Method::PUT, None);
        ask.query = vec![("restype", "container")];
        match self.client.ask(ask).await {
            Ok(_) => Ok(true),
            Err(Failure::Refused(refused)) if refused.code == "ContainerAlreadyExists" => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// A page of the blobs.
    ///
    /// # Errors
    ///
    /// There is no page; the same request may be repeated.
    pub async fn list(&mut self, list: List<'_>) -> Result<Listing, Failure> {
        let blobs_max = list.blobs_max.map(|number| number.to_string());
        let mut ask = Ask::empty(Method::GET, None);
        ask.query = vec![("restype", "container"), ("comp", "list")];
        if !list.prefix.is_empty() {
            ask.query.push(("prefix", list.prefix));
        }
        ask.query.extend(list.marker.map(|marker| ("marker", marker)));
        ask.query.extend(blobs_max.as_deref().map(|number| ("maxresults", number)));
        if list.metadata {
            ask.query.push(("include", "metadata"));
        }
        let answer = self.client.ask(ask).await?;
        read_listing(answer.body).map_err(|error| unexpected(answer.status, error.to_string()))
    }

    /// What the server says of a blob, with its metadata, and without its content.
    ///
    /// # Errors
    ///
    /// As [`Client::ask`]. A blob that is not there is refused with 404 ([`crate::Refused::is_missing`]).
    pub async fn head(&mut self, blob: &str) -> Result<BlobHead, Failure> {
        let answer = self.client.ask(Ask::empty(Method::HEAD, Some(blob))).await?;
        let size = whole_size(answer.status, &answer.headers);
        BlobHead::read(&answer.headers, size).map_err(|what| unexpected(answer.status, what))
    }

    /// Begins to read a blob, or a part of it.
    ///
    /// # Errors
    ///
    /// As [`Client::open`], or the answer is another part than the one that was asked for.
    ///
    /// # Panics
    ///
    /// If the part is empty (`until` is not behind `from`).
    pub async fn get(&mut self, blob: &str, part: Part<'_>) -> Result<GotBlob<'_>, Failure> {
        let range = range(part.from, part.until);
        let etag = part.if_match.map(quoted);
        let mut ask = Ask::empty(Method::GET, Some(blob));
        ask.headers.extend(range.as_deref().map(|range| ("range", range)));
        ask.headers.extend(etag.as_deref().map(|etag| ("if-match", etag)));
        let Opened { status, headers, body } = self.client.open(ask).await?;
        let size = whole_size(status, &headers);
        let head = BlobHead::read(&headers, size).map_err(|what| unexpected(status, what))?;
        if first_byte(status, &headers) != Some(part.from) {
            return Err(unexpected(status, "it is another part of the blob"));
        }
        if part.if_match.is_some_and(|etag| etag != head.etag) {
            return Err(unexpected(status, "it is another blob than `if-match` names"));
        }
        let content = Content::new(body, part.bytes_of(head.size), (AZURE, "blob"));
        Ok(GotBlob { head, content })
    }

    /// Puts a block blob, at most 5,000 MiB. What has this name is replaced, unless the condition says otherwise.
    ///
    /// # Errors
    ///
    /// As [`Client::ask`].
    pub async fn put(&mut self, blob: &str, put: Put<'_>) -> Result<Changed, Failure> {
        let condition = put.condition.header();
        let names = metadata_names(put.metadata);
        let mut ask = Ask::empty(Method::PUT, Some(blob));
        ask.headers = vec![("x-ms-blob-type", "BlockBlob")];
        if !put.content_type.is_empty() {
            ask.headers.push(("x-ms-blob-content-type", put.content_type));
        }
        if !put.content_encoding.is_empty() {
            ask.headers.push(("x-ms-blob-content-encoding", put.content_encoding));
        }
        ask.headers.extend(with_values(&names, put.metadata));
        ask.headers.extend(condition.iter().map(|(name, value)| (*name, &**value)));
        ask.body = put.body;
        let answer = self.client.ask(ask).await?;
        Changed::read(answer.status, &answer.headers)
    }

    /// Replaces all metadata of a blob. With a lease on it, `lease` is needed.
    ///
    /// # Errors
    ///
    /// As [`Client::ask`]; see [`crate::Refused::is_changed`] and [`crate::Refused::is_leased`].
    pub async fn set_metadata(
        &mut self,
        blob: &str,
        metadata: &[(&str, &str)],
        condition: Condition<'_>,
        lease: Option<&str>,
    ) -> Result<Changed, Failure> {
        let condition = condition.header();
        let names = metadata_names(metadata);
        let mut ask = Ask::empty(Method::PUT, Some(blob));
        ask.query = vec![("comp", "metadata")];
        ask.headers = with_values(&names, metadata).collect();
        ask.headers.extend(condition.iter().map(|(name, value)| (*name, &**value)));
        ask.headers.extend(lease.map(|lease| ("x-ms-lease-id", lease)));
        let answer = self.client.ask(ask).await?;
        Changed::read(answer.status, &answer.headers)
    }

    /// The metadata of a blob, with its `etag`.
    ///
    /// # Errors
    ///
    /// As [`Container::head`].
    pub async fn metadata(
        &mut self,
        blob: &str,
    ) -> Result<(BTreeMap<String, String>, Changed), Failure> {
        let head = self.head(blob).await?;
        Ok((head.metadata, Changed { etag: head.etag, modified: head.modified }))
    }

    /// Deletes a blob. One that is not there is refused with 404.
    ///
    /// # Errors
    ///
    /// As [`Client::ask`].
    pub async fn delete(&mut self, blob: &str) -> Result<(), Failure> {
        self.client.ask(Ask::empty(Method::DELETE, Some(blob))).await?;
        Ok(())
    }
}

/// Azure gives them with quotes, its listings do not.
fn quoted(etag: &str) -> String {
    format!("\"{etag}\"")
}

fn metadata_names(metadata: &[(&str, &str)]) -> Vec<String> {
    metadata.iter().map(|(name, _)| format!("{METADATA}{}", name.to_ascii_lowercase())).collect()
}

fn with_values<'a>(
    names: &'a [String],
    metadata: &'a [(&'a str, &'a str)],
) -> impl Iterator<Item = (&'a str, &'a str)> {
    names.iter().map(String::as_str).zip(metadata.iter().map(|(_, value)| *value))
}

/// Checks the name of a container
/// (<https://learn.microsoft.com/rest/api/storageservices/naming-and-referencing-containers--blobs--and-metadata>). What is
/// checked may stand in a path.
///
/// # Errors
///
/// The mistake.
pub fn check_container_name(name: &str) -> Result<(), String> {
    if matches!(name, "$root" | "$logs" | "$web" | "$blobchangefeed") {
        return Ok(());
    }
    let is_good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let has_lone_hyphens = !name.starts_with('-') && !name.ends_with('-') && !name.contains("--");
    if (3..=63).contains(&name.len()) && name.bytes().all(is_good) && has_lone_hyphens {
        return Ok(());
    }
    Err("the name of a container has 3 to 63 lower-case letters, digits and single `-`, and begins and ends with a letter or \
         digit"
        .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_containers_are_those_that_azure_takes() {
        for name in ["abc", "insights-logs-x", "$logs", "0-9"] {
            assert_eq!(check_container_name(name), Ok(()), "{name}");
        }
        let long = "a".repeat(64);
        for name in ["", "ab", "Logs", "a_b", "a--b", "-ab", "ab-", "a/b", "$other", &long] {
            assert!(check_container_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_condition_is_a_header() {
        assert_eq!(Condition::Always.header(), None);
        let matching = Condition::IfMatch("0x8D").header();
        assert_eq!(matching, Some(("if-match", "\"0x8D\"".to_owned())));
        assert_eq!(Condition::IfMissing.header(), Some(("if-none-match", "*".to_owned())));
    }
}
