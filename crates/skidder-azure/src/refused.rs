//! Answers that are no success: what to do next, and the remedy.
//!
//! Errors are named by the header `x-ms-error-code`, and by `Code` in a body of XML
//! (<https://learn.microsoft.com/rest/api/storageservices/status-and-error-codes2>).

use http::HeaderMap;
use skidder_net::cloud::{Refusal, XmlError, show_refusal, walk};
use skidder_net::excerpt;
use std::fmt;

/// Bytes of an answer that a message shows.
const SHOWN_BYTES_MAX: usize = 300;
/// The header with the name of the error, also without a body.
const CODE: &str = "x-ms-error-code";

/// An answer that is no success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The HTTP status.
    pub status: u16,
    /// The name of the error, as `BlobNotFound`; empty, if the server did not send it.
    pub code: String,
    message: String,
    /// The remedy; empty, if waiting is all.
    advice: String,
}

impl Refused {
    /// Reads an answer.
    pub fn read(status: u16, headers: &HeaderMap, body: &[u8]) -> Self {
        let named = headers.get(CODE).and_then(|code| code.to_str().ok()).map(str::to_owned);
        let code = named.or_else(|| text_of(body, "Code")).unwrap_or_default();
        // The lines behind the first have the number of the request and its time.
        let message = text_of(body, "Message");
        let message = message.map(|text| text.lines().next().unwrap_or_default().to_owned());
        let message = match message {
            Some(message) => message,
            None if code.is_empty() => excerpt(body, SHOWN_BYTES_MAX),
            None => String::new(),
        };
        let advice = advice(status, &code).to_owned();
        Self { status, code, message, advice }
    }

    /// The same with the remedy of a caller that knows more of the request, unless that is empty.
    #[must_use]
    pub fn advised(mut self, advice: String) -> Self {
        if !advice.is_empty() {
            self.advice = advice;
        }
        self
    }

    /// Whether another token would do.
    pub fn is_about_credentials(&self) -> bool {
        self.status == 401 && matches!(&*self.code, "" | "InvalidAuthenticationInfo")
    }

    /// Whether the blob is not there. Also if the server cannot say more, as behind `HEAD`.
    pub fn is_missing(&self) -> bool {
        self.status == 404 && matches!(&*self.code, "" | "BlobNotFound" | "ResourceNotFound")
    }

    /// Whether the condition of the request does not hold: the blob is another one than it had named, or is there already.
    pub fn is_changed(&self) -> bool {
        self.status == 412 && !self.is_leased()
            || matches!(
                &*self.code,
                "ConditionNotMet" | "TargetConditionNotMet" | "BlobAlreadyExists"
            )
    }

    /// Whether another client has a lease, or the lease of this request is not the one that there is.
    pub fn is_leased(&self) -> bool {
        matches!(self.status, 409 | 412) && self.code.starts_with("Lease")
    }

    /// Whether the requested part begins at the end of the blob, or behind it.
    pub fn is_behind_the_end(&self) -> bool {
        self.status == 416
    }

    /// Whether the server wants fewer requests.
    pub fn is_throttled(&self) -> bool {
        matches!(self.status, 429 | 503) || matches!(&*self.code, "ServerBusy" | "TooManyRequests")
    }
}

impl Refusal for Refused {
    fn may_pass(&self) -> bool {
        self.status >= 500
            || self.status == 408
            || self.is_throttled()
            || self.is_about_credentials()
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        show_refusal(out, self.status, &self.code, &self.message, &self.advice)
    }
}

/// The text of an element directly below the root, as `Code` in `<Error>`; `None` if there is none, or no text in it, or
/// the document is not whole.
fn text_of(answer: &[u8], element: &str) -> Option<String> {
    let mut found = None;
    let read = walk::<XmlError>(answer, None, |ended| {
        if let [_, name] = ended.path
            && *name == element
            && found.is_none()
        {
            found = Some(ended.text.to_owned());
        }
        Ok(())
    });
    read.ok()?;
    found.filter(|text| !text.is_empty())
}

fn advice(status: u16, code: &str) -> &'static str {
    match code {
        "AuthenticationFailed" => {
            "see the account's name and key or signature, whether the signature has expired, and the clock of this machine"
        }
        "InvalidAuthenticationInfo" => {
            "see the tenant, the client and its secret, and the clock of this machine"
        }
        "AuthorizationFailure" => {
            "see the key or signature and its rights, and the firewall of the storage account"
        }
        "AuthorizationPermissionMismatch" => {
            "the identity needs the role `Storage Blob Data Reader` on the account or container"
        }
        "InsufficientAccountPermissions" | "AuthorizationProtocolMismatch" => {
            "see the rights of the signature"
        }
        "AuthorizationResourceTypeMismatch" | "AuthorizationServiceMismatch" => {
            "the signature is for something else: it needs the service `Blob`, and the types `Container` and `Object`"
        }
        "KeyBasedAuthenticationNotPermitted" => {
            "the account takes no key: use a client (`oauth2`) or a managed identity"
        }
        "NoAuthenticationInformation" => "the account is not public: set its credentials",
        "AccountIsDisabled" => "the account is disabled",
        "BlobArchived" => "the blob is archived: rehydrate it",
        "OutOfRangeInput" | "InvalidResourceName" => "see the name of the container",
        _ if matches!(status, 301 | 302 | 307 | 308) => "the account is elsewhere: see its URL",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn error(code: &str) -> String {
        format!(
            "\u{feff}<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>no\nRequestId:1\nTime:2</Message></Error>"
        )
    }

    fn read(status: u16, code: &'static str, body: &str) -> Refused {
        let mut headers = HeaderMap::new();
        if !code.is_empty() {
            headers.insert(CODE, HeaderValue::from_static(code));
        }
        Refused::read(status, &headers, body.as_bytes())
    }

    #[test]
    fn the_texts_of_an_error_are_found_whole() {
        let error = "\u{feff}<?xml version=\"1.0\"?>\n<Error><Code>BlobNotFound</Code><Message>It &amp; &#97;ll of it\n\
             RequestId:1</Message><Reason/><Inner><Region>x</Region></Inner></Error>";
        let text = |element| text_of(error.as_bytes(), element);
        assert_eq!(text("Code").as_deref(), Some("BlobNotFound"));
        assert_eq!(text("Message").as_deref(), Some("It & all of it\nRequestId:1"));
        assert_eq!((text("Reason"), text("Region"), text("Missing")), (None, None, None));
        for nonsense in ["", "<html>", "<Error><Code>cut", "\u{fffd}\0<<", "<a><b>&x;</b></a>"] {
            assert_eq!(text_of(nonsense.as_bytes(), "Code"), None, "{nonsense}");
        }
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let table = [
            (
                403,
                "",
                error("AuthenticationFailed"),
                "403 `AuthenticationFailed`: no; see the account's",
            ),
            (403, "AuthorizationPermissionMismatch", String::new(), "`Storage Blob Data Reader`"),
            (403, "", error("KeyBasedAuthenticationNotPermitted"), "takes no key"),
            (409, "", error("BlobArchived"), "rehydrate"),
            (307, "", String::new(), "the account is elsewhere"),
            (502, "", "<html>Bad\n Gateway".to_owned(), "502: <html>Bad Gateway"),
        ];
        for (status, code, body, expected) in table {
            let shown = read(status, code, &body).to_string();
            assert!(shown.contains(expected), "{shown}, expected {expected}");
        }
        let advised = read(404, "ContainerNotFound", "").advised("make it".to_owned());
        assert_eq!(advised.to_string(), "the server answered 404 `ContainerNotFound`; make it");
    }

    #[test]
    fn what_is_missing_changed_leased_or_too_much_is_told_apart() {
        let kinds = |refused: &Refused| {
            let all = [
                (refused.is_missing(), "missing"),
                (refused.is_changed(), "changed"),
                (refused.is_leased(), "leased"),
                (refused.is_throttled(), "throttled"),
                (refused.is_about_credentials(), "credentials"),
                (refused.is_behind_the_end(), "end"),
            ];
            all.iter().filter(|(is, _)| *is).map(|(_, kind)| *kind).collect::<Vec<_>>()
        };
        let table: [(u16, &str, &[&str]); 15] = [
            (404, "BlobNotFound", &["missing"]),
            (404, "", &["missing"]),
            (404, "ContainerNotFound", &[]),
            (412, "ConditionNotMet", &["changed"]),
            (412, "", &["changed"]),
            (409, "BlobAlreadyExists", &["changed"]),
            (412, "LeaseIdMissing", &["leased"]),
            (409, "LeaseAlreadyPresent", &["leased"]),
            (503, "ServerBusy", &["throttled"]),
            (429, "", &["throttled"]),
            (401, "InvalidAuthenticationInfo", &["credentials"]),
            (401, "NoAuthenticationInformation", &[]),
            (403, "AuthenticationFailed", &[]),
            (416, "InvalidRange", &["end"]),
            (500, "InternalError", &[]),
        ];
        for (status, code, expected) in table {
            assert_eq!(kinds(&read(status, "", &error(code))), expected, "{status} {code}");
        }
    }
}
