//! Shared Key: each request is signed with the key of the account
//! (<https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key>).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::hmac::{HMAC_SHA256, Key, sign};
use skidder_config::Secret;
use std::fmt;
use std::fmt::Write as _;

/// Headers of the protocol whose values are signed, each in a line of its own, in this order. `date` stays empty, since
/// requests have `x-ms-date`.
const PLACES: [&str; 11] = [
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
];

/// The name and the key of a storage account.
#[derive(Clone)]
pub struct AccountKey {
    account: String,
    key: Key,
}

/// Why a key is not one. Ends the sentence "the key …".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// It is encoded in another way.
    #[error("is not in base64: copy it whole from the page `Access keys` of the storage account")]
    Base64,
    /// There is nothing in it.
    #[error("is empty")]
    Empty,
}

impl fmt::Debug for AccountKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("AccountKey").field("account", &self.account).finish_non_exhaustive()
    }
}

/// The parts of a request that are signed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToSign<'a> {
    /// As `PUT`.
    pub(crate) method: &'a str,
    /// Escaped, as it is sent, without the query.
    pub(crate) path: &'a str,
    /// Not escaped, in any order.
    pub(crate) query: &'a [(&'a str, &'a str)],
    /// Names in lower case, in any order. Those that are neither in [`PLACES`] nor begin with `x-ms-` are not signed.
    pub(crate) headers: &'a [(&'a str, &'a str)],
}

impl AccountKey {
    /// Decodes a key.
    ///
    /// # Errors
    ///
    /// It is not in base64, or empty.
    pub fn new(account: &str, key: &Secret) -> Result<Self, KeyError> {
        let bytes = BASE64.decode(key.reveal().trim()).map_err(|_| KeyError::Base64)?;
        if bytes.is_empty() {
            return Err(KeyError::Empty);
        }
        Ok(Self { account: account.to_owned(), key: Key::new(HMAC_SHA256, &bytes) })
    }

    /// The name of the account.
    pub fn account(&self) -> &str {
        &self.account
    }

    /// The header `authorization` of a request.
    pub(crate) fn authorization(&self, request: &ToSign<'_>) -> String {
        let signature = sign(&self.key, request.text(&self.account).as_bytes());
        format!("SharedKey {}:{}", self.account, BASE64.encode(signature.as_ref()))
    }
}

impl ToSign<'_> {
    /// The text that is signed.
    fn text(&self, account: &str) -> String {
        let mut text = format!("{}\n", self.method);
        for place in PLACES {
            let value = self.headers.iter().find(|(name, _)| *name == place);
            let value = value.map_or("", |(_, value)| value.trim());
            // An empty body has no length, since version 2015-02-21.
            if place != "content-length" || value != "0" {
                text.push_str(value);
            }
            text.push('\n');
        }
        let mut own: Vec<_> =
            self.headers.iter().filter(|(name, _)| name.starts_with("x-ms-")).collect();
        own.sort_unstable();
        for (name, value) in own {
            writeln!(text, "{name}:{}", value.trim()).expect("a string takes everything");
        }
        write!(text, "/{account}{}", self.path).expect("a string takes everything");
        self.push_query(&mut text);
        text
    }

    /// Each name once, with all its values.
    fn push_query(&self, text: &mut String) {
        let pairs = self.query.iter().map(|(name, value)| (name.to_lowercase(), *value));
        let mut pairs: Vec<(String, &str)> = pairs.collect();
        pairs.sort_unstable();
        let mut before = None;
        for (name, value) in &pairs {
            if before == Some(name) {
                write!(text, ",{value}").expect("a string takes everything");
            } else {
                write!(text, "\n{name}:{value}").expect("a string takes everything");
            }
            before = Some(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of "Blob, Queue, and File Services (Shared Key authorization)" and "Constructing the canonicalized resource
    /// string" in Microsoft's text, which have no signatures; those are checked by Azurite (`tests/real_azure.rs`).
    #[test]
    fn the_signed_text_is_that_of_microsofts_examples() {
        let dated =
            [("x-ms-date", "Fri, 26 Jun 2015 23:39:12 GMT"), ("x-ms-version", "2015-02-21")];
        let table: [(ToSign<'_>, &str, &str); 3] = [
            (
                ToSign {
                    method: "GET",
                    path: "/mycontainer",
                    query: &[("restype", "container"), ("timeout", "20"), ("comp", "metadata")],
                    headers: &dated,
                },
                "myaccount",
                "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2015-02-21\n\
                 /myaccount/mycontainer\ncomp:metadata\nrestype:container\ntimeout:20",
            ),
            (
                ToSign {
                    method: "GET",
                    path: "/mycontainer",
                    query: &[
                        ("restype", "container"),
                        ("comp", "list"),
                        ("include", "snapshots"),
                        ("include", "metadata"),
                        ("include", "uncommittedblobs"),
                    ],
                    headers: &[],
                },
                "myaccount",
                "GET\n\n\n\n\n\n\n\n\n\n\n\n/myaccount/mycontainer\ncomp:list\n\
                 include:metadata,snapshots,uncommittedblobs\nrestype:container",
            ),
            (
                ToSign {
                    method: "PUT",
                    path: "/devstoreaccount1/c/a%20b",
                    query: &[],
                    headers: &[
                        ("x-ms-meta-b", " 2 "),
                        ("if-none-match", "*"),
                        ("content-length", "0"),
                        ("x-ms-meta-a", "1"),
                        ("content-type", "text/plain"),
                        ("user-agent", "not signed"),
                    ],
                },
                "devstoreaccount1",
                "PUT\n\n\n\n\ntext/plain\n\n\n\n*\n\n\nx-ms-meta-a:1\nx-ms-meta-b:2\n\
                 /devstoreaccount1/devstoreaccount1/c/a%20b",
            ),
        ];
        for (request, account, expected) in table {
            assert_eq!(request.text(account), expected);
        }
    }

    /// HMAC-SHA256 of the text above, calculated with another program (`openssl dgst -sha256 -mac HMAC`).
    #[test]
    fn a_request_is_signed_with_the_decoded_key() {
        let key = AccountKey::new("myaccount", &Secret::new("c2VjcmV0IG9mIHRlc3Rz\n")).unwrap();
        let request = ToSign {
            method: "GET",
            path: "/mycontainer",
            query: &[("restype", "container"), ("timeout", "20"), ("comp", "metadata")],
            headers: &[
                ("x-ms-version", "2015-02-21"),
                ("x-ms-date", "Fri, 26 Jun 2015 23:39:12 GMT"),
            ],
        };
        let expected = "SharedKey myaccount:m3jP7b9B0vIyGMf20zHaDAgKfkZa2juoV2kSJLL51jE=";
        assert_eq!(key.authorization(&request), expected);
        assert!(!format!("{key:?}").contains("secret"));
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let error = |text: &str| AccountKey::new("a", &Secret::new(text)).unwrap_err();
        assert_eq!(error("not base64!"), KeyError::Base64);
        assert_eq!(error(" "), KeyError::Empty);
    }
}
