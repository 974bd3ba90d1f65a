//! Reading a bucket: lists, looks at, gets, copies and deletes objects
//! (<https://docs.aws.amazon.com/AmazonS3/latest/API/API_Operations_Amazon_Simple_Storage_Service.html>).
//!
//! What a server answers is checked: a part of an object that is not the one that was asked for, or that ends early, and
//! a copy that failed after its answer had begun, are errors.

use crate::client::{Client, Content, Failure};
use crate::listing::{Listing, read_listing};
use crate::object::ObjectHead;
use crate::refused::Refused;
use http::{HeaderMap, Method};
use skidder_net::cloud::{Ask, Opened, Part, first_byte, range, text_of, whole_size};
use skidder_net::{encode_path, encode_percent};

/// How messages call the service.
const S3: &str = "S3";
/// Most objects of a page of a listing; larger numbers mean this one.
pub const PAGE_OBJECTS_MAX: u16 = 1000;

/// A client of one bucket.
#[derive(Debug)]
pub struct Bucket {
    client: Client,
}

/// Which objects a listing has, and where it begins.
#[derive(Clone, Copy, Debug, Default)]
pub struct List<'a> {
    /// What keys begin with.
    pub prefix: &'a str,
    /// Only keys behind this one; it need not be there. Without effect with `token`.
    pub start_after: &'a str,
    /// [`Listing::next`] of the page before; nothing for the first page.
    pub token: Option<&'a str>,
    /// Most objects of the page, 1 to [`PAGE_OBJECTS_MAX`]; nothing for that many.
    pub objects_max: Option<u16>,
}

/// One object, in one of its versions.
#[derive(Clone, Copy, Debug)]
pub struct ObjectName<'a> {
    /// Its name, not escaped.
    pub key: &'a str,
    /// The version, in a bucket with versions; nothing for the current one.
    pub version: Option<&'a str>,
}

/// An object whose content is on its way.
#[derive(Debug)]
pub struct GotObject<'a> {
    /// What the server says of it; its size is that of the whole object.
    pub head: ObjectHead,
    /// All headers.
    pub headers: HeaderMap,
    /// The content, or the part of it that was asked for.
    pub content: Content<'a>,
}

/// A copy that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Of the copy; another one than that of the original, if one of them is encrypted or was put in parts.
    pub etag: String,
    /// Of the copy, if the bucket has versions.
    pub version: Option<String>,
}

impl Bucket {
    /// The client must be one of S3 with a target at [`crate::bucket_url`].
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// A page of the objects.
    ///
    /// # Errors
    ///
    /// There is no page; the same request may be repeated.
    pub async fn list(&mut self, list: List<'_>) -> Result<Listing, Failure> {
        let objects_max = list.objects_max.map(|number| number.to_string());
        let mut ask = Ask::empty(Method::GET, None);
        ask.query = vec![("list-type", "2"), ("encoding-type", "url")];
        if !list.prefix.is_empty() {
            ask.query.push(("prefix", list.prefix));
        }
        match list.token {
            Some(token) => ask.query.push(("continuation-token", token)),
            None if !list.start_after.is_empty() => {
                ask.query.push(("start-after", list.start_after));
            }
            None => {}
        }
        ask.query.extend(objects_max.as_deref().map(|number| ("max-keys", number)));
        let answer = self.client.ask(ask).await?;
        read_listing(answer.body).map_err(|error| unexpected(answer.status, error.to_string()))
    }

    /// What the server says of an object, without its content.
    ///
    /// # Errors
    ///
    /// As [`Client::ask`]. An object that is not there is refused with 404 ([`Refused::is_missing`]), and with 403 if the
    /// right to list the bucket is missing.
    pub async fn head(&mut self, object: ObjectName<'_>) -> Result<ObjectHead, Failure> {
        let answer = self.client.ask(ask(Method::HEAD, object)).await?;
        let size = whole_size(answer.status, &answer.headers);
        ObjectHead::read(&answer.headers, size)
            .map_err(|what| unexpected(answer.status, what.to_owned()))
    }

    /// Begins to read an object, or a part of it.
    ///
    /// # Errors
    ///
    /// As [`Client::open`], or the answer is another part than the one that was asked for.
    ///
    /// # Panics
    ///
    /// If the part is empty (`until` is not behind `from`).
    pub async fn get(
        &mut self,
        object: ObjectName<'_>,
        part: Part<'_>,
    ) -> Result<GotObject<'_>, Failure> {
        let range = range(part.from, part.until);
        let mut ask = ask(Method::GET, object);
        ask.headers.extend(range.as_deref().map(|range| ("range", range)));
        ask.headers.extend(part.if_match.map(|etag| ("if-match", etag)));
        let Opened { status, headers, body } = self.client.open(ask).await?;
        let size = whole_size(status, &headers);
        let head =
            ObjectHead::read(&headers, size).map_err(|what| unexpected(status, what.to_owned()))?;
        if first_byte(status, &headers) != Some(part.from) {
            return Err(unexpected(status, "it is another part of the object".to_owned()));
        }
        if part.if_match.is_some_and(|etag| etag != head.etag) {
            return Err(unexpected(
                status,
                "it is another object than `if-match` names".to_owned(),
            ));
        }
        let content = Content::new(body, part.bytes_of(head.size), (S3, "object"));
        Ok(GotObject { head, headers, content })
    }

    /// Copies an object of the bucket `from`, at most 5 GB, into this one under the name `key`, with its type and metadata.
    /// What has this name is replaced. With `if_match` the server refuses with 412 if the original has another `etag`.
    ///
    /// # Errors
    ///
    /// As [`Client::ask`], or the copy failed after the answer had begun.
    pub async fn copy(
        &mut self,
        (from, object): (&str, ObjectName<'_>),
        if_match: Option<&str>,
        key: &str,
    ) -> Result<Copied, Failure> {
        let mut source = format!("/{from}/");
        encode_path(&mut source, object.key);
        if let Some(version) = object.version {
            source.push_str("?versionId=");
            encode_percent(&mut source, version);
        }
        let mut ask = Ask::empty(Method::PUT, Some(key));
        ask.headers = vec![("x-amz-copy-source", &source)];
        ask.headers.extend(if_match.map(|etag| ("x-amz-copy-source-if-match", etag)));
        let answer = self.client.ask(ask).await?;
        if text_of(answer.body, "Code").is_some() {
            // The status was sent before the copy was made.
            let refused = Refused::read(500, &answer.headers, answer.body);
            return Err(Failure::Refused(Box::new(refused)));
        }
        let etag = text_of(answer.body, "ETag");
        let etag =
            etag.ok_or_else(|| unexpected(answer.status, "there is no `ETag`".to_owned()))?;
        Ok(Copied { etag, version: version_of(&answer.headers) })
    }

    /// Deletes an object; one that is not there is deleted too. In a bucket with versions, without naming one, the versions
    /// stay, and the name is marked as deleted.
    ///
    /// # Errors
    ///
    /// As [`Client::ask`].
    pub async fn delete(&mut self, object: ObjectName<'_>) -> Result<(), Failure> {
        let answer = self.client.ask(ask(Method::DELETE, object)).await?;
        // A captive portal answers with a page.
        if !answer.body.trim_ascii().is_empty() {
            let what = "there is a page behind the headers".to_owned();
            return Err(unexpected(answer.status, what));
        }
        Ok(())
    }
}

/// A request about an object.
fn ask<'a>(method: Method, object: ObjectName<'a>) -> Ask<'a> {
    let mut ask = Ask::empty(method, Some(object.key));
    ask.query.extend(object.version.map(|version| ("versionId", version)));
    ask
}

/// `x-amz-version-id`; objects of before the bucket had versions have `null`.
pub(crate) fn version_of(headers: &HeaderMap) -> Option<String> {
    let version = headers.get("x-amz-version-id")?.to_str().ok()?;
    Some(version.to_owned())
}

fn unexpected(status: u16, what: String) -> Failure {
    Failure::Unexpected { service: S3, status, what }
}
