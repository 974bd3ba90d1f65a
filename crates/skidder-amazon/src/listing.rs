//! Listings of a bucket
//! (<https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html>).

use skidder_aws::time_of;
use skidder_net::cloud::{Ended, ListingError, walk};
use skidder_net::percent_decoded;
use skidder_os::Timestamp;
use std::mem::take;

/// A page of a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// In the order of the bytes of their keys, in buckets of the usual kind.
    pub objects: Vec<Listed>,
    /// The token for the next page; nothing on the last one.
    pub next: Option<String>,
}

/// An object of a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// Its name, decoded.
    pub key: String,
    /// Bytes of its content.
    pub size: u64,
    /// With its quotes, as `if-match` takes it; empty, if the server has none.
    pub etag: String,
    /// When it was put; whole seconds. Nothing if the server does not say it.
    pub modified: Option<Timestamp>,
    /// As `GLACIER`, whose objects cannot be read; empty, if the server has none.
    pub storage_class: String,
}

/// Reads a page. One that is cut short is an error, and never a shorter page.
pub(crate) fn read_listing(answer: &[u8]) -> Result<Listing, ListingError> {
    let mut page = Page::default();
    walk(answer, Some("ListBucketResult"), |ended| page.end_of(ended))?;
    page.finish()
}

/// What was read of a page so far.
#[derive(Default)]
struct Page {
    objects: Vec<Listed>,
    object: Listed,
    has_size: bool,
    next: Option<String>,
    is_cut: bool,
    is_encoded: bool,
}

impl Page {
    /// Takes the text of the innermost element.
    fn end_of(&mut self, ended: Ended<'_>) -> Result<(), ListingError> {
        let text = ended.text;
        match ended.path {
            [_, "IsTruncated"] => self.is_cut = text.trim() == "true",
            [_, "EncodingType"] => self.is_encoded = text.trim() == "url",
            [_, "NextContinuationToken"] => self.next = Some(text.to_owned()),
            [_, "Contents", "Key"] => text.clone_into(&mut self.object.key),
            [_, "Contents", "ETag"] => text.clone_into(&mut self.object.etag),
            [_, "Contents", "StorageClass"] => text.clone_into(&mut self.object.storage_class),
            [_, "Contents", "LastModified"] => self.object.modified = time_of(text.trim()),
            [_, "Contents", "Size"] => {
                let size = text.trim().parse();
                self.object.size =
                    size.map_err(|_| ListingError::Content("has a size that is none"))?;
                self.has_size = true;
            }
            [_, "Contents"] => {
                if self.object.key.is_empty() || !take(&mut self.has_size) {
                    return Err(ListingError::Content("has an object without a name or size"));
                }
                self.objects.push(take(&mut self.object));
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Listing, ListingError> {
        if self.is_encoded {
            for object in &mut self.objects {
                let key = percent_decoded(&object.key, b' ');
                object.key =
                    key.ok_or(ListingError::Content("has a name that cannot be decoded"))?;
            }
        }
        let next = self.next.filter(|next| self.is_cut && !next.is_empty());
        if self.is_cut && next.is_none() {
            return Err(ListingError::Content("goes on, and does not say where"));
        }
        Ok(Listing { objects: self.objects, next })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(inner: &str) -> String {
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
             <Name>logs</Name><Prefix>a%2F</Prefix>{inner}</ListBucketResult>"
        )
    }

    #[test]
    fn a_page_has_names_as_they_are_and_the_place_of_the_next_one() {
        let text = page(
            "<NextContinuationToken>1/x+y==</NextContinuationToken><IsTruncated>true</IsTruncated>\
             <Contents><Key>a/b+c%2B%C3%A4%26%0A.gz</Key><LastModified>2015-08-30T12:36:00.000Z</LastModified>\
             <ETag>&quot;0123-2&quot;</ETag><Size>434234</Size><Owner><ID>7</ID><DisplayName>x</DisplayName></Owner>\
             <StorageClass>STANDARD</StorageClass></Contents>\n  <Contents><Key>b</Key><Size>0</Size></Contents>\
             <CommonPrefixes><Prefix>c/</Prefix></CommonPrefixes><EncodingType>url</EncodingType>",
        );
        let listing = read_listing(text.as_bytes()).unwrap();
        let first = Listed {
            key: "a/b c+ä&\n.gz".to_owned(),
            size: 434_234,
            etag: "\"0123-2\"".to_owned(),
            modified: Some(Timestamp(1_440_938_160_000_000_000)),
            storage_class: "STANDARD".to_owned(),
        };
        let second = Listed { key: "b".to_owned(), ..Listed::default() };
        assert_eq!(listing.objects, [first, second]);
        assert_eq!(listing.next.as_deref(), Some("1/x+y=="));
    }

    #[test]
    fn a_server_that_does_not_encode_names_is_understood() {
        let text = page(
            "<IsTruncated>false</IsTruncated><NextContinuationToken>old</NextContinuationToken>\
             <Contents><Key>a&amp;b+%20&#x1F600;</Key><ETag>&#34;0&#34;</ETag><Size>1</Size></Contents>",
        );
        let listing = read_listing(text.as_bytes()).unwrap();
        let object = &listing.objects[0];
        assert_eq!((&*object.key, &*object.etag), ("a&b+%20\u{1f600}", "\"0\""));
        assert_eq!(listing.next, None);
        assert_eq!(read_listing(page("").as_bytes()).unwrap(), Listing::default());
    }

    #[test]
    fn what_is_no_whole_page_is_an_error_wherever_it_is_cut() {
        let whole = page(
            "<EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>\
             <Contents><Key>a</Key><Size>1</Size></Contents>",
        );
        read_listing(whole.as_bytes()).unwrap();
        for end in 0..whole.len() {
            let cut = &whole.as_bytes()[..end];
            assert!(read_listing(cut).is_err(), "{}", cut.escape_ascii());
        }
        let table = [
            ("<html><body>hello</body></html>".to_owned(), "is another document"),
            (page("<IsTruncated>true</IsTruncated>"), "does not say where"),
            (page("<Contents><Key>&nothing;</Key><Size>1</Size></Contents>"), "an unknown entity"),
            (page("<Contents><Key>a</Key><Size>-1</Size></Contents>"), "a size that is none"),
            (page("<Contents><Key>a</Key></Contents>"), "without a name or size"),
            (page("<Contents><Size>1</Size></Contents>"), "without a name or size"),
            (
                page(
                    "<EncodingType>url</EncodingType><Contents><Key>%zz</Key><Size>1</Size></Contents>",
                ),
                "cannot be decoded",
            ),
        ];
        for (text, expected) in table {
            let error = read_listing(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
