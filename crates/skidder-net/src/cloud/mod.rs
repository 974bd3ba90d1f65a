//! What the clients of clouds share: where requests go, how they are sent over kept connections, and how objects are read.
//!
//! ```text
//! Target ─▶ Signer ─▶ Sender ─▶ Client (one for each worker) ─▶ one answer whole, or in pieces
//! ```
//!
//! A cloud brings its [`Signer`]: the signature or token of a request, and what a refusal means.

mod failure;
mod part;
mod sender;
mod target;
mod temporary;
mod xml;

pub use failure::{Failure, HeaderError, Refusal, show_refusal};
pub use part::{
    Content, Part, content_length, first_byte, header_text, metadata, range, whole_size,
};
pub use sender::{Answer, Body, Client, Meter, Opened, Sender};
pub use target::{Target, insert_secret};
pub use temporary::Temporary;
pub use xml::{Ended, ListingError, XmlError, text_of, walk};

use crate::encode_percent;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Uri};
use skidder_os::Clock;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// A future of a [`Signer`].
pub type SignerFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A failure of the requests of a [`Signer`].
pub type FailureOf<S> = Failure<<S as Signer>::Credentials, <S as Signer>::Refused>;

/// A service of a cloud: signs requests, and reads refusals.
pub trait Signer: fmt::Debug + Send + Sync + 'static {
    /// Why there are no credentials.
    type Credentials: std::error::Error + Send + Sync + 'static;
    /// An answer that is no success.
    type Refused: Refusal;

    /// The time limit of connecting, and of a request with its answer, or of each piece of that.
    fn timeout(&self) -> Duration;

    /// Where a request goes, and all of its headers. May request credentials first.
    ///
    /// # Errors
    ///
    /// There are no credentials, or the request has characters that cannot be sent.
    fn sign<'a>(
        &'a self,
        ask: &'a Ask<'a>,
        clock: &'a Arc<dyn Clock>,
    ) -> SignerFuture<'a, Result<(Uri, HeaderMap), FailureOf<Self>>>
    where
        Self: Sized;

    /// What a refusal means. Forgets credentials that the server does not accept any more.
    fn refused<'a>(&'a self, answer: RefusedAnswer<'a>) -> SignerFuture<'a, Self::Refused>;
}

/// An answer that is no success, as it came.
#[derive(Clone, Copy, Debug)]
pub struct RefusedAnswer<'a> {
    /// The HTTP status.
    pub status: u16,
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// The whole body, without the secrets in headers of the request.
    pub body: &'a [u8],
    /// `authorization` of the request.
    pub login: Option<&'a HeaderValue>,
}

/// A request.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// `GET`, `PUT`, ….
    pub method: Method,
    /// What it is about, as the name of an object; the signer makes the path of it. `None` for the target itself.
    pub key: Option<&'a str>,
    /// Parameters, not escaped.
    pub query: Vec<(&'a str, &'a str)>,
    /// Names in lower case.
    pub headers: Vec<(&'a str, &'a str)>,
    /// The body in pieces.
    pub body: &'a [Bytes],
    /// Added to the time limit of the service, for a request whose answer the server holds back on purpose.
    pub patience: Duration,
}

impl<'a> Ask<'a> {
    /// Without a body.
    pub fn empty(method: Method, key: Option<&'a str>) -> Self {
        let (query, headers, patience) = (Vec::new(), Vec::new(), Duration::ZERO);
        Self { method, key, query, headers, body: &[], patience }
    }

    /// Bytes of the body.
    pub fn body_bytes(&self) -> u64 {
        self.body.iter().map(|piece| piece.len() as u64).sum()
    }

    /// The escaped parameters, in their order.
    pub fn escaped_query(&self) -> String {
        let mut text = String::new();
        for (name, value) in &self.query {
            if !text.is_empty() {
                text.push('&');
            }
            encode_percent(&mut text, name);
            text.push('=');
            encode_percent(&mut text, value);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_escaped() {
        let mut ask = Ask::empty(Method::GET, None);
        assert_eq!(ask.escaped_query(), "");
        ask.query = vec![("comp", "list"), ("prefix", "a/ä +~"), ("marker", "2!x==")];
        let expected = "comp=list&prefix=a%2F%C3%A4%20%2B~&marker=2%21x%3D%3D";
        assert_eq!(ask.escaped_query(), expected);
    }
}
