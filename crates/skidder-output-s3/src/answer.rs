//! Answers of S3: what to do next, and the remedy.
//!
//! Errors are named by `Code` in a body of XML
//! (<https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>).

use http::HeaderMap;
use skidder_aws::text_of;
use skidder_net::excerpt;
use std::fmt;

/// Bytes of an answer that a message shows.
const SHOWN_BYTES_MAX: usize = 300;
/// The header with the region of a bucket, also without a body.
const REGION: &str = "x-amz-bucket-region";

/// An answer that is no success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) status: u16,
    /// Of the error; empty, if the server did not send it.
    pub(crate) code: String,
    message: String,
    /// The remedy; empty, if waiting is all.
    advice: String,
}

/// The next step after a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The same again.
    Again,
    /// The same again; the server wants fewer requests.
    Slower,
    /// Smaller objects.
    Smaller,
    /// No try will do: the key is the trouble.
    Never,
}

impl Refused {
    /// Reads an answer; `bucket` is the one in the request.
    pub(crate) fn read(status: u16, headers: &HeaderMap, body: &[u8], bucket: &str) -> Self {
        let text = |element| text_of(body, element).unwrap_or_default();
        let code = text("Code");
        let message = match text("Message") {
            message if !message.is_empty() => message,
            _ if code.is_empty() => excerpt(body, SHOWN_BYTES_MAX),
            _ => String::new(),
        };
        let region = headers.get(REGION).and_then(|region| region.to_str().ok());
        let region = region.map_or_else(|| text("Region"), str::to_owned);
        let hints = Hints { region, endpoint: text("Endpoint"), time: text("ServerTime") };
        let advice = advice(status, &code, &hints, bucket);
        Self { status, code, message, advice }
    }

    /// Whether other credentials would do.
    pub(crate) fn is_about_credentials(&self) -> bool {
        matches!(
            &*self.code,
            "ExpiredToken" | "TokenRefreshRequired" | "InvalidToken" | "InvalidAccessKeyId"
        )
    }

    pub(crate) fn next(&self) -> Next {
        match (self.status, &*self.code) {
            (_, "EntityTooLarge" | "MaxMessageLengthExceeded") | (413, _) => Next::Smaller,
            (_, "KeyTooLongError" | "XMinioInvalidObjectName" | "XMinioObjectNameTooLong") => {
                Next::Never
            }
            (429 | 503, _) | (_, "SlowDown") => Next::Slower,
            _ => Next::Again,
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the server answered {}", self.status)?;
        if !self.code.is_empty() {
            write!(out, " `{}`", self.code)?;
        }
        if !self.message.is_empty() {
            write!(out, ": {}", self.message)?;
        }
        if !self.advice.is_empty() {
            write!(out, "; {}", self.advice)?;
        }
        Ok(())
    }
}

/// Details of an error, for the advice.
struct Hints {
    region: String,
    endpoint: String,
    time: String,
}

fn advice(status: u16, code: &str, hints: &Hints, bucket: &str) -> String {
    let fixed = match code {
        "NoSuchBucket" => return format!("make the bucket `{bucket}`, or correct `bucket`"),
        "InvalidAccessKeyId" | "SignatureDoesNotMatch" | "AuthFailure" => {
            "see `access_key_id` and `secret_access_key`"
        }
        "ExpiredToken" | "TokenRefreshRequired" | "InvalidToken" => {
            "the credentials have run out: they are used until there are new ones"
        }
        "RequestTimeTooSkewed" => {
            let theirs = if hints.time.is_empty() {
                String::new()
            } else {
                format!(" (there it is {})", hints.time)
            };
            return format!(
                "the clock of this machine or of the server is wrong{theirs}; correct it"
            );
        }
        "AccessControlListNotSupported" => "the bucket has no ACLs: leave `acl` out",
        "InvalidStorageClass" => "the server does not know it: see `storage_class`",
        "InvalidTag" => "see `tags`",
        _ if code.starts_with("KMS.") => "see `server_side_encryption` and `ssekms_key_id`",
        "AccessDenied" => {
            return format!(
                "whoever has these credentials needs the right `s3:PutObject` on `{bucket}/*` \
                 (with `acl` and `tags` also `s3:PutObjectAcl` and `s3:PutObjectTagging`)"
            );
        }
        "PermanentRedirect"
        | "TemporaryRedirect"
        | "AuthorizationHeaderMalformed"
        | "IllegalLocationConstraintException" => "",
        _ if matches!(status, 301 | 302 | 307 | 308) => "",
        _ => return String::new(),
    };
    if !fixed.is_empty() {
        return fixed.to_owned();
    }
    if !hints.region.is_empty() {
        return format!("the bucket is in another region: set `region: {}`", hints.region);
    }
    if !hints.endpoint.is_empty() {
        return format!("the bucket is at `{}`: set `region` or `endpoint`", hints.endpoint);
    }
    "the bucket is elsewhere: see `region` and `endpoint`".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: &str, more: &str) -> String {
        format!(
            "<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>no</Message>{more}</Error>"
        )
    }

    fn read(status: u16, region: Option<&'static str>, body: &str) -> Refused {
        let mut headers = HeaderMap::new();
        if let Some(region) = region {
            headers.insert(REGION, http::HeaderValue::from_static(region));
        }
        Refused::read(status, &headers, body.as_bytes(), "logs")
    }

    #[test]
    fn every_refusal_of_s3_says_what_to_do() {
        let skewed = "<RequestTime>x</RequestTime><ServerTime>2026-01-02T03:04:05Z</ServerTime>";
        let table = [
            (404, None, error("NoSuchBucket", ""), "make the bucket `logs`"),
            (403, None, error("InvalidAccessKeyId", ""), "see `access_key_id`"),
            (403, None, error("SignatureDoesNotMatch", ""), "`secret_access_key`"),
            (403, None, error("AccessDenied", ""), "`s3:PutObject` on `logs/*`"),
            (400, None, error("ExpiredToken", ""), "the credentials have run out"),
            (403, None, error("RequestTimeTooSkewed", skewed), "there it is 2026-01-02T03:04:05Z"),
            (301, Some("eu-west-1"), error("PermanentRedirect", ""), "set `region: eu-west-1`"),
            (
                307,
                None,
                error("TemporaryRedirect", "<Endpoint>b.s3-x.aws</Endpoint>"),
                "`b.s3-x.aws`",
            ),
            (301, Some("eu-west-1"), String::new(), "set `region: eu-west-1`"),
            (
                400,
                None,
                error("AuthorizationHeaderMalformed", "<Region>eu-central-1</Region>"),
                "set `region: eu-central-1`",
            ),
            (400, None, error("AccessControlListNotSupported", ""), "leave `acl` out"),
            (400, None, error("InvalidStorageClass", ""), "`storage_class`"),
            (400, None, error("KMS.DisabledException", ""), "`ssekms_key_id`"),
            (502, None, "<html>Bad\n Gateway".to_owned(), "502: <html>Bad Gateway"),
        ];
        for (status, region, body, expected) in table {
            let refused = read(status, region, &body);
            let shown = refused.to_string();
            assert!(shown.contains(expected), "{shown}, expected {expected}");
            assert_eq!(refused.next(), Next::Again, "{shown}");
        }
    }

    #[test]
    fn what_is_too_large_or_has_a_wrong_key_is_not_tried_again() {
        let table = [
            (400, error("EntityTooLarge", ""), Next::Smaller),
            (413, "<html>".to_owned(), Next::Smaller),
            (400, error("KeyTooLongError", ""), Next::Never),
            (503, error("SlowDown", ""), Next::Slower),
            (429, String::new(), Next::Slower),
            (500, error("InternalError", ""), Next::Again),
            (400, error("BadDigest", ""), Next::Again),
        ];
        for (status, body, next) in table {
            assert_eq!(read(status, None, &body).next(), next, "{status} {body}");
        }
    }
}
