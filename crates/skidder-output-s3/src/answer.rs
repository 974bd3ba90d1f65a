//! Refusals of S3 to an object: what to do next, and the remedy.

use skidder_amazon::Refused;

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

impl Next {
    pub(crate) fn of(refused: &Refused) -> Self {
        match (refused.status, &*refused.code) {
            (_, "EntityTooLarge" | "MaxMessageLengthExceeded") | (413, _) => Self::Smaller,
            (_, "KeyTooLongError" | "XMinioInvalidObjectName" | "XMinioObjectNameTooLong") => {
                Self::Never
            }
            _ if refused.is_throttled() => Self::Slower,
            _ => Self::Again,
        }
    }
}

/// The remedy, in settings of the output; empty, if there is none. `bucket` is the one in the request.
pub(crate) fn advice(refused: &Refused, bucket: &str) -> String {
    let fixed = match &*refused.code {
        "NoSuchBucket" => return format!("make the bucket `{bucket}`, or correct `bucket`"),
        "AccessControlListNotSupported" => "the bucket has no ACLs: leave `acl` out",
        "InvalidStorageClass" => "the server does not know it: see `storage_class`",
        "InvalidTag" => "see `tags`",
        code if code.starts_with("KMS.") => "see `server_side_encryption` and `ssekms_key_id`",
        "AccessDenied" => {
            return format!(
                "whoever has these credentials needs the right `s3:PutObject` on `{bucket}/*` \
                 (with `acl` and `tags` also `s3:PutObjectAcl` and `s3:PutObjectTagging`)"
            );
        }
        _ => "",
    };
    fixed.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: u16, body: &str) -> Refused {
        Refused::read(status, &http::HeaderMap::new(), body.as_bytes())
    }

    fn error(code: &str) -> String {
        format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>no</Message></Error>")
    }

    #[test]
    fn every_refusal_of_s3_says_what_to_do() {
        let table = [
            (404, "NoSuchBucket", "make the bucket `logs`"),
            (403, "AccessDenied", "`s3:PutObject` on `logs/*`"),
            (400, "AccessControlListNotSupported", "leave `acl` out"),
            (400, "InvalidStorageClass", "`storage_class`"),
            (400, "InvalidTag", "see `tags`"),
            (400, "KMS.DisabledException", "`ssekms_key_id`"),
            (403, "InvalidAccessKeyId", "see `access_key_id`"),
        ];
        for (status, code, expected) in table {
            let refused = read(status, &error(code));
            let advice = advice(&refused, "logs");
            let shown = refused.advised(advice);
            assert!(shown.to_string().contains(expected), "{shown}, expected {expected}");
            assert_eq!(Next::of(&shown), Next::Again, "{shown}");
        }
    }

    #[test]
    fn what_is_too_large_or_has_a_wrong_key_is_not_tried_again() {
        let table = [
            (400, error("EntityTooLarge"), Next::Smaller),
            (413, "<html>".to_owned(), Next::Smaller),
            (400, error("KeyTooLongError"), Next::Never),
            (503, error("SlowDown"), Next::Slower),
            (429, String::new(), Next::Slower),
            (500, error("InternalError"), Next::Again),
            (400, error("BadDigest"), Next::Again),
        ];
        for (status, body, next) in table {
            assert_eq!(Next::of(&read(status, &body)), next, "{status} {body}");
        }
    }
}
