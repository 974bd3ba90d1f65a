//! Cloud Storage by its JSON API: lists the objects of a bucket, and reads them
//! (<https://cloud.google.com/storage/docs/json_api/v1/objects>).
//!
//! What a server answers is checked: another object than the one that was asked for, another part of it, or one that ends
//! early, are errors.

use crate::client::{Client, Failure, Opened, PIECE_BYTES, Service};
use crate::refused::Refused;
use bytes::Bytes;
use http::{HeaderMap, Method};
use serde_json::Value;
use skidder_net::cloud::{self, Ask, Sender, content_length, first_byte, range};
use skidder_net::percent_encoded;
use skidder_os::Timestamp;
use std::sync::Arc;

/// The server, with the path of its API.
pub const STORAGE_URL: &str = "https://storage.googleapis.com/storage/v1";
/// The right to read objects.
pub const SCOPE_READ_ONLY: &str = "https://www.googleapis.com/auth/devstorage.read_only";
/// How messages call the service.
const GOOGLE: &str = "Google";
/// Most objects of a page of a listing.
pub const PAGE_OBJECTS_MAX: u16 = 1000;

/// Longest page of a listing that is read. 1000 objects with names of 1024 bytes have some 2 MiB.
const PAGE_BYTES_MAX: usize = 64 << 20;
/// What a page says of each object.
const FIELDS: &str =
    "kind,nextPageToken,items(name,generation,size,updated,contentType,contentEncoding)";
/// The header with the generation of an object.
const GENERATION: &str = "x-goog-generation";
/// The header with the encoding that an object is stored in.
const STORED_ENCODING: &str = "x-goog-stored-content-encoding";

/// Objects of buckets.
#[derive(Clone, Debug)]
pub struct Storage {
    client: Client,
}

/// Which objects a page has.
#[derive(Clone, Copy, Debug, Default)]
pub struct List<'a> {
    /// The bucket.
    pub bucket: &'a str,
    /// What names begin with.
    pub prefix: &'a str,
    /// [`Listing::next`] of the page before; nothing for the first page.
    pub token: Option<&'a str>,
    /// Most objects of the page, 1 to [`PAGE_OBJECTS_MAX`].
    pub objects_max: u16,
}

/// A page of a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// In the order of the bytes of their names.
    pub objects: Vec<Listed>,
    /// The token for the next page; nothing on the last one.
    pub next: Option<String>,
}

/// An object of a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Another content under this name has another one.
    pub generation: u64,
    /// Bytes of its content, as it is stored.
    pub size: u64,
    /// When it, or what is known of it, was changed.
    pub updated: Option<Timestamp>,
    /// `contentType`, as it was put; empty for none.
    pub content_type: String,
    /// `contentEncoding`, as it was put: perhaps `gzip`; empty for none.
    pub content_encoding: String,
}

/// One object, in one of its generations.
#[derive(Clone, Copy, Debug)]
pub struct ObjectName<'a> {
    /// Its bucket.
    pub bucket: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Of the content that is meant.
    pub generation: u64,
    /// The size of that.
    pub size: u64,
}

/// Which bytes of an object.
#[derive(Clone, Copy, Debug, Default)]
pub struct Part {
    /// Bytes that are left out at its beginning; fewer than it has, unless it is empty.
    pub from: u64,
    /// The offset behind the last byte, larger than `from`; nothing for all.
    pub until: Option<u64>,
}

/// An object whose content is on its way.
#[derive(Debug)]
pub struct GotObject {
    /// All headers.
    pub headers: HeaderMap,
    /// The content, or the part of it that was asked for, as it is stored.
    pub content: Content,
}

/// The content of an object, in pieces.
#[derive(Debug)]
pub struct Content {
    body: cloud::Content<Arc<Sender<Service>>>,
}

impl Storage {
    /// By a client whose URL is like [`STORAGE_URL`].
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// A page of the objects of a bucket.
    ///
    /// # Errors
    ///
    /// There is no page; the same request may be repeated.
    pub async fn list(&self, list: List<'_>) -> Result<Listing, Failure> {
        let path = format!("/b/{}/o", percent_encoded(list.bucket));
        let objects_max = list.objects_max.to_string();
        let mut ask = Ask::empty(Method::GET, Some(&path));
        ask.query = vec![("maxResults", &*objects_max), ("fields", FIELDS)];
        ask.query.push(("prettyPrint", "false"));
        if !list.prefix.is_empty() {
            ask.query.push(("prefix", list.prefix));
        }
        ask.query.extend(list.token.map(|token| ("pageToken", token)));
        let (status, body) = self.client.ask(ask, PAGE_BYTES_MAX).await?;
        read_listing(&body).map_err(|what| unexpected(status, what))
    }

    /// Begins to read an object, or a part of it, as it is stored.
    ///
    /// # Errors
    ///
    /// There is no answer, or it is no success, also after the tries that are allowed; or the answer is another part than the
    /// one that was asked for. An object that is not there is refused with 404 ([`Refused::is_missing`]), one with another
    /// content with 412 ([`Refused::is_changed`]).
    ///
    /// # Panics
    ///
    /// If the part is empty (`until` is not behind `from`).
    pub async fn get(&self, object: ObjectName<'_>, part: Part) -> Result<GotObject, Failure> {
        let path = path_of(object);
        let generation = object.generation.to_string();
        let range = range(part.from, part.until);
        let mut ask = Ask::empty(Method::GET, Some(&path));
        ask.query = vec![("alt", "media"), ("ifGenerationMatch", &*generation)];
        // Else an object that is stored with gzip is sent without it, and a range is ignored
        // (<https://cloud.google.com/storage/docs/transcoding>).
        ask.headers = vec![("accept-encoding", "gzip")];
        ask.headers.extend(range.as_deref().map(|range| ("range", range)));
        let Opened { status, headers, body } = self.client.open(ask).await?;
        // Servers that are not Google's may not know the condition.
        if text(&headers, GENERATION).is_some_and(|found| found != generation) {
            let message = "the object was replaced by another one";
            let refused = Refused::read(412, &HeaderMap::new(), message.as_bytes());
            return Err(Failure::Refused(Box::new(refused)));
        }
        let left = check(status, &headers, object, part);
        let left = left.map_err(|what| unexpected(status, what))?;
        let body = cloud::Content::new(body, left, (GOOGLE, "object"));
        Ok(GotObject { headers, content: Content { body } })
    }
}

impl Content {
    /// Bytes that are to come.
    pub fn left(&self) -> u64 {
        self.body.left()
    }

    /// The next piece; `None` when all have come. Loses nothing if it is cancelled.
    ///
    /// # Errors
    ///
    /// The connection broke, nothing came in time, or there are fewer or more bytes than the object has.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, Failure> {
        self.body.piece(PIECE_BYTES).await
    }
}

/// The path of an object, behind that of the API.
fn path_of(object: ObjectName<'_>) -> String {
    let (bucket, name) = (percent_encoded(object.bucket), percent_encoded(object.name));
    format!("/b/{bucket}/o/{name}")
}

/// Whether an answer is the part that was asked for. Returns how many bytes it has; the error says what it is instead.
fn check(
    status: u16,
    headers: &HeaderMap,
    object: ObjectName<'_>,
    part: Part,
) -> Result<u64, String> {
    let end = part.until.unwrap_or(u64::MAX).min(object.size);
    let expected = end.saturating_sub(part.from);
    let is_encoded = text(headers, "content-encoding") == Some("gzip");
    if is_encoded && text(headers, STORED_ENCODING) == Some("identity") {
        return Err("the object is sent with gzip, and not stored so".to_owned());
    }
    let is_part = part.from > 0 || part.until.is_some();
    if status == 206 {
        if first_byte(status, headers) != Some(part.from) {
            return Err("it is another part of the object".to_owned());
        }
    } else if is_part && expected < object.size {
        return Err("it is the whole object, and not the part that was asked for".to_owned());
    }
    match content_length(headers) {
        Some(length) if length != expected => {
            Err(format!("there are {length} bytes of the object instead of {expected}"))
        }
        _ => Ok(expected),
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Reads a page. The error describes what it is instead.
fn read_listing(body: &[u8]) -> Result<Listing, String> {
    let page: Value =
        serde_json::from_slice(body).map_err(|error| format!("the listing is no JSON: {error}"))?;
    if page.get("kind").and_then(Value::as_str) != Some("storage#objects") {
        return Err("it is no listing".to_owned());
    }
    let items = page.get("items").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let objects = items.iter().map(read_object).collect::<Result<Vec<_>, String>>()?;
    let next = page.get("nextPageToken").and_then(Value::as_str).filter(|token| !token.is_empty());
    Ok(Listing { objects, next: next.map(str::to_owned) })
}

fn read_object(item: &Value) -> Result<Listed, String> {
    let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
    // Numbers of 64 bits are texts in JSON of Google's.
    let number = |name: &str| {
        let value = item.get(name).unwrap_or(&Value::Null);
        value.as_u64().or_else(|| value.as_str()?.parse().ok())
    };
    let missing = |name: &str| format!("an object of the listing has no `{name}`");
    let name = text("name");
    if name.is_empty() {
        return Err(missing("name"));
    }
    Ok(Listed {
        name: name.to_owned(),
        generation: number("generation").ok_or_else(|| missing("generation"))?,
        size: number("size").ok_or_else(|| missing("size"))?,
        updated: time_of(text("updated")),
        content_type: text("contentType").to_owned(),
        content_encoding: text("contentEncoding").to_owned(),
    })
}

/// The time of a text as `2015-08-30T12:36:00.123Z` (RFC 3339); nothing if it is none.
fn time_of(text: &str) -> Option<Timestamp> {
    let moment: jiff::Timestamp = text.parse().ok()?;
    i64::try_from(moment.as_nanosecond()).ok().map(Timestamp)
}

fn unexpected(status: u16, what: String) -> Failure {
    Failure::Unexpected { service: GOOGLE, status, what }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_its_objects_and_the_token_of_the_next() {
        let page = r#"{"kind": "storage#objects", "nextPageToken": "t", "items": [
            {"name": "a/b", "generation": "1440938160123456", "size": "7", "updated": "2015-08-30T12:36:00.123Z",
             "contentType": "text/plain", "contentEncoding": "gzip"},
            {"name": "c", "generation": "2", "size": 0}]}"#;
        let listing = read_listing(page.as_bytes()).unwrap();
        assert_eq!(listing.next.as_deref(), Some("t"));
        let first = Listed {
            name: "a/b".to_owned(),
            generation: 1_440_938_160_123_456,
            size: 7,
            updated: Some(Timestamp(1_440_938_160_123_000_000)),
            content_type: "text/plain".to_owned(),
            content_encoding: "gzip".to_owned(),
        };
        let second = Listed { name: "c".to_owned(), generation: 2, ..Listed::default() };
        assert_eq!(listing.objects, [first, second]);
        let empty = read_listing(br#"{"kind": "storage#objects"}"#).unwrap();
        assert_eq!(empty, Listing::default());
        let table = [
            ("<html>", "the listing is no JSON"),
            ("{\"kind\": \"storage#bucket\"}", "it is no listing"),
            ("{\"kind\": \"storage#objects\", \"items\": [{\"size\": \"1\"}]}", "no `name`"),
            ("{\"kind\": \"storage#objects\", \"items\": [{\"name\": \"a\"}]}", "no `generation`"),
        ];
        for (text, expected) in table {
            let error = read_listing(text.as_bytes()).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    /// Status and headers of an answer, the part that was asked for, and the bytes to come or the mistake.
    type Case = (u16, &'static [(&'static str, &'static str)], Part, Result<u64, &'static str>);

    #[test]
    fn an_answer_must_be_the_part_that_was_asked_for() {
        let object = ObjectName { bucket: "b", name: "a b/ä", generation: 1, size: 9 };
        assert_eq!(path_of(object), "/b/b/o/a%20b%2F%C3%A4");
        let part = |from, until| Part { from, until };
        let table: [Case; 9] = [
            (200, &[("content-length", "9")], part(0, None), Ok(9)),
            (200, &[], part(0, None), Ok(9)),
            (200, &[("content-length", "8")], part(0, None), Err("8 bytes of the object instead")),
            (206, &[("content-range", "bytes 5-8/9")], part(5, None), Ok(4)),
            (206, &[("content-range", "bytes 0-3/9")], part(0, Some(4)), Ok(4)),
            (206, &[("content-range", "bytes 4-8/9")], part(5, None), Err("another part")),
            (206, &[], part(5, None), Err("another part")),
            (200, &[("content-length", "9")], part(5, None), Err("the whole object")),
            (200, &[("content-length", "9")], part(0, Some(4096)), Ok(9)),
        ];
        for (status, headers, part, expected) in table {
            let pair = |(name, value): &(&'static str, &str)| {
                let value = http::HeaderValue::from_str(value).unwrap();
                (http::HeaderName::from_static(name), value)
            };
            let headers: HeaderMap = headers.iter().map(pair).collect();
            match (check(status, &headers, object, part), expected) {
                (Ok(left), Ok(expected)) => assert_eq!(left, expected),
                (Err(error), Err(expected)) => assert!(error.contains(expected), "{error}"),
                (found, expected) => panic!("{found:?}, expected {expected:?}"),
            }
        }
    }
}
