//! Listings of a container (<https://learn.microsoft.com/rest/api/storageservices/list-blobs>).

use crate::time::http_time_of;
use skidder_net::cloud::{Ended, ListingError, walk};
use skidder_net::percent_decoded;
use skidder_os::Timestamp;
use std::collections::BTreeMap;
use std::mem::take;

/// A page of a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// In the order of their names.
    pub blobs: Vec<Listed>,
    /// The marker of the next page; `None` on the last one.
    pub next: Option<String>,
}

/// A blob of a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// Its name, decoded.
    pub name: String,
    /// Bytes of its content.
    pub size: u64,
    /// Without quotes. Another content, or other metadata, has another one.
    pub etag: String,
    /// When it was changed last; whole seconds. `None` if the server does not say it.
    pub modified: Option<Timestamp>,
    /// As `BlockBlob` or `AppendBlob`; empty, if the server does not say it.
    pub kind: String,
    /// Empty for none.
    pub content_type: String,
    /// Empty for none.
    pub content_encoding: String,
    /// As `Archive`, whose blobs cannot be read; empty, if the server does not say it.
    pub tier: String,
    /// Whether it is a directory of an account with a hierarchy of names, and has no content.
    pub is_directory: bool,
    /// Only in a listing with metadata; the names in lower case.
    pub metadata: BTreeMap<String, String>,
}

/// Reads a page. One that is cut short is an error, and never a shorter page.
pub(crate) fn read_listing(answer: &[u8]) -> Result<Listing, ListingError> {
    let mut page = Page::default();
    walk(answer, Some("EnumerationResults"), |ended| page.end_of(ended))?;
    Ok(Listing { blobs: page.blobs, next: page.next.filter(|next| !next.is_empty()) })
}

/// What was read of a page so far.
#[derive(Default)]
struct Page {
    blobs: Vec<Listed>,
    blob: Listed,
    has_size: bool,
    next: Option<String>,
}

impl Page {
    fn end_of(&mut self, ended: Ended<'_>) -> Result<(), ListingError> {
        let Ended { path, text, is_encoded } = ended;
        match path {
            [_, "NextMarker"] => self.next = Some(text.to_owned()),
            [_, "Blobs", "Blob", "Name"] => {
                let name =
                    if is_encoded { percent_decoded(text, b'+') } else { Some(text.to_owned()) };
                self.blob.name =
                    name.ok_or(ListingError::Content("has a name that cannot be decoded"))?;
            }
            [_, "Blobs", "Blob", "Properties", property] => self.property(property, text)?,
            [_, "Blobs", "Blob", "Metadata", name] => {
                // A directory without `ResourceType`, in a listing of an older server.
                self.blob.is_directory |=
                    name.eq_ignore_ascii_case("hdi_isfolder") && text.eq_ignore_ascii_case("true");
                self.blob.metadata.insert(name.to_ascii_lowercase(), text.to_owned());
            }
            [_, "Blobs", "Blob"] => {
                let has_size = take(&mut self.has_size) || self.blob.is_directory;
                if self.blob.name.is_empty() || !has_size {
                    return Err(ListingError::Content("has a blob without a name or size"));
                }
                self.blobs.push(take(&mut self.blob));
            }
            // The end of the document.
            [_] if self.next.is_none() => {
                return Err(ListingError::Content("does not say whether it goes on"));
            }
            _ => {}
        }
        Ok(())
    }

    fn property(&mut self, name: &str, text: &str) -> Result<(), ListingError> {
        let blob = &mut self.blob;
        match name {
            "Content-Length" => {
                let size = text.trim().parse();
                blob.size = size.map_err(|_| ListingError::Content("has a size that is none"))?;
                self.has_size = true;
            }
            "Etag" => text.trim().trim_matches('"').clone_into(&mut blob.etag),
            "Last-Modified" => blob.modified = http_time_of(text),
            "Content-Type" => text.clone_into(&mut blob.content_type),
            "Content-Encoding" => text.clone_into(&mut blob.content_encoding),
            "BlobType" => text.clone_into(&mut blob.kind),
            "AccessTier" => text.clone_into(&mut blob.tier),
            "ResourceType" => blob.is_directory |= text == "directory",
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(blobs: &str, next: &str) -> String {
        format!(
            "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults \
             ServiceEndpoint=\"http://myaccount.blob.core.windows.net/\" ContainerName=\"in\"><Prefix>a</Prefix>\
             <MaxResults>2</MaxResults><Blobs>{blobs}</Blobs>{next}</EnumerationResults>"
        )
    }

    #[test]
    fn a_page_has_blobs_and_the_place_of_the_next_one() {
        let blobs = "<Blob><Name>a/b &amp; ä.gz</Name><Properties><Creation-Time>x</Creation-Time>\
             <Last-Modified>Sun, 30 Aug 2015 12:36:00 GMT</Last-Modified><Etag>0x8D</Etag>\
             <Content-Length>434234</Content-Length><Content-Type>application/json</Content-Type>\
             <Content-Encoding>gzip</Content-Encoding><Content-MD5/><BlobType>BlockBlob</BlobType>\
             <AccessTier>Archive</AccessTier></Properties><Metadata><ownerId>x</ownerId></Metadata><OrMetadata /></Blob>\n\
             <Blob><Name Encoded=\"true\">x%EF%BF%BF%25</Name><Properties><Content-Length>0</Content-Length>\
             <Etag>\"0x9\"</Etag></Properties></Blob>\
             <Blob><Name>dir</Name><Properties><ResourceType>directory</ResourceType></Properties></Blob>\
             <Blob><Name>old</Name><Properties><Content-Length>0</Content-Length></Properties>\
             <Metadata><hdi_isfolder>true</hdi_isfolder></Metadata></Blob>";
        let listing =
            read_listing(page(blobs, "<NextMarker>2!92!x==</NextMarker>").as_bytes()).unwrap();
        let first = Listed {
            name: "a/b & ä.gz".to_owned(),
            size: 434_234,
            etag: "0x8D".to_owned(),
            modified: Some(Timestamp(1_440_938_160_000_000_000)),
            kind: "BlockBlob".to_owned(),
            content_type: "application/json".to_owned(),
            content_encoding: "gzip".to_owned(),
            tier: "Archive".to_owned(),
            is_directory: false,
            metadata: BTreeMap::from([("ownerid".to_owned(), "x".to_owned())]),
        };
        assert_eq!(listing.blobs[0], first);
        let second = &listing.blobs[1];
        assert_eq!((&*second.name, &*second.etag), ("x\u{ffff}%", "0x9"));
        assert!(listing.blobs[2].is_directory && listing.blobs[3].is_directory);
        assert_eq!(listing.next.as_deref(), Some("2!92!x=="));
        let last = read_listing(page("", "<NextMarker />").as_bytes()).unwrap();
        assert_eq!(last, Listing::default());
    }

    #[test]
    fn what_is_no_whole_page_is_an_error_wherever_it_is_cut() {
        let blob = "<Blob><Name>a</Name><Properties><Content-Length>1</Content-Length></Properties></Blob>";
        let whole = page(blob, "<NextMarker/>");
        read_listing(whole.as_bytes()).unwrap();
        for end in 0..whole.len() {
            let cut = &whole.as_bytes()[..end];
            assert!(read_listing(cut).is_err(), "{}", cut.escape_ascii());
        }
        let name = |name: &str| blob.replace("<Name>a</Name>", name);
        let table = [
            ("<html><body>hello</body></html>".to_owned(), "is another document"),
            (page(blob, ""), "whether it goes on"),
            (page(&name("<Name>&nothing;</Name>"), "<NextMarker/>"), "an unknown entity"),
            (page(&blob.replace(">1<", ">-1<"), "<NextMarker/>"), "a size that is none"),
            (page(&name(""), "<NextMarker/>"), "without a name or size"),
            (page("<Blob><Name>a</Name></Blob>", "<NextMarker/>"), "without a name or size"),
            (
                page(&name("<Name Encoded=\"true\">%zz</Name>"), "<NextMarker/>"),
                "cannot be decoded",
            ),
        ];
        for (text, expected) in table {
            let error = read_listing(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
