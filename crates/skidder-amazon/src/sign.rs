//! The headers of a signed request.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use skidder_aws::{Credentials, Request, Scope, authorization, time_text};
use skidder_net::secret_header;
use skidder_os::Timestamp;

/// A header has characters that cannot be sent; this is its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a header of the request cannot be sent: `{0}`")]
pub struct HeaderError(pub &'static str);

/// What is signed.
pub(crate) struct ToSign<'a> {
    pub(crate) service: &'static str,
    pub(crate) region: &'a str,
    pub(crate) method: &'a str,
    /// Escaped.
    pub(crate) path: &'a str,
    /// Escaped, in the order of the names.
    pub(crate) query: &'a str,
    /// Name and port of the server, as they are sent.
    pub(crate) authority: &'a str,
    /// Others, with names in lower case.
    pub(crate) headers: &'a [(&'static str, &'a str)],
    /// SHA-256 of the body.
    pub(crate) digest: &'a str,
}

impl ToSign<'_> {
    /// All headers, with the signature.
    pub(crate) fn sign(
        &self,
        credentials: &Credentials,
        now: Timestamp,
    ) -> Result<HeaderMap, HeaderError> {
        let time = time_text(now);
        let mut signed: Vec<(&'static str, &str)> = self.headers.to_vec();
        signed.push(("host", self.authority));
        signed.push(("x-amz-content-sha256", self.digest));
        signed.push(("x-amz-date", &time));
        if let Some(session) = &credentials.session {
            signed.push(("x-amz-security-token", session.reveal()));
        }
        signed.sort_unstable();
        let scope = Scope { time: &time, region: self.region, service: self.service };
        let request = Request {
            method: self.method,
            path: self.path,
            query: self.query,
            headers: &signed,
            body: self.digest,
        };
        let authorization = authorization(credentials, scope, &request);
        let mut headers = HeaderMap::new();
        for (name, value) in signed {
            let value = HeaderValue::from_str(value).map_err(|_| HeaderError(name))?;
            headers.insert(HeaderName::from_static(name), value);
        }
        let value = secret_header(&authorization).ok_or(HeaderError("authorization"))?;
        headers.insert(AUTHORIZATION, value);
        Ok(headers)
    }
}
