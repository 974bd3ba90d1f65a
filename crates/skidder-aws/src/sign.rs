//! Signature Version 4
//! (<https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html>).
//!
//! Tried with the examples that Amazon publishes: those of its test suite, and those of S3.

use crate::Credentials;
use jiff::Timestamp as Moment;
use ring::digest::{Context, SHA256};
use ring::hmac::{HMAC_SHA256, Key, sign};
use skidder_config::Secret;
use skidder_os::Timestamp;
use std::fmt::{self, Write as _};

/// The digest of a request without a body.
pub const EMPTY_DIGEST: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Place and time of a request.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// Year to second in UTC, as [`time_text`] writes it. Servers refuse a time that is 15 minutes off.
    pub time: &'a str,
    /// As `eu-central-1`.
    pub region: &'a str,
    /// As `s3`.
    pub service: &'a str,
}

/// The signed parts of a request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// As `PUT`.
    pub method: &'a str,
    /// Escaped, as it is sent; at least `/`.
    pub path: &'a str,
    /// Escaped parameters in the order of their names, without `?`.
    pub query: &'a str,
    /// Names in lower case, in their order, with their values. `host` must be there.
    pub headers: &'a [(&'a str, &'a str)],
    /// SHA-256 of the body, as [`digest`] writes it.
    pub body: &'a str,
}

/// A time as signed requests have it: `20150830T123600Z`.
pub fn time_text(time: Timestamp) -> String {
    let moment = Moment::from_nanosecond(i128::from(time.0)).unwrap_or_default();
    moment.strftime("%Y%m%dT%H%M%SZ").to_string()
}

/// The time of a text as `2015-08-30T12:36:00Z`, which answers have; nothing if it is none.
pub fn time_of(text: &str) -> Option<Timestamp> {
    let moment: Moment = text.parse().ok()?;
    i64::try_from(moment.as_nanosecond()).ok().map(Timestamp)
}

/// The time of a header as `last-modified`: `Sun, 30 Aug 2015 12:36:00 GMT` (RFC 9110, section 5.6.7); nothing if it is none.
pub fn http_time_of(text: &str) -> Option<Timestamp> {
    let moment = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    i64::try_from(moment.as_nanosecond()).ok().map(Timestamp)
}

/// SHA-256 of pieces, in hexadecimal.
pub fn digest<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut context = Context::new(&SHA256);
    for piece in pieces {
        context.update(piece);
    }
    hex(context.finish().as_ref())
}

/// The header `authorization` of a request. All of its `headers` are signed. Who has many requests keeps the
/// [`SigningKey`].
pub fn authorization(credentials: &Credentials, scope: Scope<'_>, request: &Request<'_>) -> String {
    SigningKey::new(credentials, scope).authorization(scope.time, request)
}

/// What the requests of a day to a service in a region are signed with. Making one takes as long as signing with it.
pub struct SigningKey {
    id: String,
    secret: Secret,
    /// Day, region, service, and what ends all of these.
    place: String,
    key: Key,
}

impl SigningKey {
    /// For the day of the scope.
    pub fn new(credentials: &Credentials, scope: Scope<'_>) -> Self {
        let parts = scope.parts();
        let start = format!("AWS4{}", credentials.secret.reveal()).into_bytes();
        let key = parts.iter().fold(start, |key, part| {
            sign(&Key::new(HMAC_SHA256, &key), part.as_bytes()).as_ref().to_vec()
        });
        Self {
            id: credentials.id.clone(),
            secret: credentials.secret.clone(),
            place: parts.join("/"),
            key: Key::new(HMAC_SHA256, &key),
        }
    }

    /// Whether [`SigningKey::new`] would make the same one.
    pub fn is_for(&self, credentials: &Credentials, scope: Scope<'_>) -> bool {
        self.place.split('/').eq(scope.parts())
            && self.id == credentials.id
            && self.secret == credentials.secret
    }

    /// The header `authorization` of a request. `time` is of the day that the key is for.
    pub fn authorization(&self, time: &str, request: &Request<'_>) -> String {
        let Self { id, place, key, .. } = self;
        let names: Vec<&str> = request.headers.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let canonical = digest([canonical(request, &names).as_bytes()]);
        let text = format!("AWS4-HMAC-SHA256\n{time}\n{place}\n{canonical}");
        let signature = hex(sign(key, text.as_bytes()).as_ref());
        format!(
            "AWS4-HMAC-SHA256 Credential={id}/{place}, SignedHeaders={names}, Signature={signature}"
        )
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SigningKey").field("place", &self.place).finish_non_exhaustive()
    }
}

impl<'a> Scope<'a> {
    /// What a key is made for.
    fn parts(&self) -> [&'a str; 4] {
        [self.time.get(..8).unwrap_or_default(), self.region, self.service, "aws4_request"]
    }
}

fn canonical(request: &Request<'_>, names: &str) -> String {
    let Request { method, path, query, headers, body } = request;
    let mut text = format!("{method}\n{path}\n{query}\n");
    for (name, value) in *headers {
        text.push_str(name);
        text.push(':');
        for (at, word) in value.split(' ').filter(|word| !word.is_empty()).enumerate() {
            if at > 0 {
                text.push(' ');
            }
            text.push_str(word);
        }
        text.push('\n');
    }
    write!(text, "\n{names}\n{body}").expect("a string takes everything");
    text
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Example {
        name: &'static str,
        request: Request<'static>,
        signature: &'static str,
    }

    fn credentials(id: &str, secret: &str) -> Credentials {
        Credentials { id: id.to_owned(), secret: Secret::new(secret), session: None }
    }

    fn check(credentials: &Credentials, scope: Scope<'_>, examples: &[Example]) {
        for Example { name, request, signature } in examples {
            let text = authorization(credentials, scope, request);
            let expected = format!("Signature={signature}");
            assert!(text.ends_with(&expected), "{name}: {text}, expected {expected}");
        }
    }

    /// Of `aws-sig-v4-test-suite`.
    #[test]
    fn amazons_test_suite_is_signed_as_it_says() {
        const TIME: &str = "20150830T123600Z";
        const HEADERS: &[(&str, &str)] = &[("host", "example.amazonaws.com"), ("x-amz-date", TIME)];
        const GET: Request<'_> =
            Request { method: "GET", path: "/", query: "", headers: HEADERS, body: EMPTY_DIGEST };
        let key = credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY");
        let scope = Scope { time: TIME, region: "us-east-1", service: "service" };
        let examples = [
            Example {
                name: "get-vanilla",
                request: GET,
                signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
            },
            Example {
                name: "post-vanilla",
                request: Request { method: "POST", ..GET },
                signature: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
            },
            Example {
                name: "get-utf8",
                request: Request { path: "/%E1%88%B4", ..GET },
                signature: "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85",
            },
            Example {
                name: "get-vanilla-query-order-key-case",
                request: Request { query: "Param1=value1&Param2=value2", ..GET },
                signature: "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
            },
            Example {
                name: "get-header-value-trim",
                request: Request {
                    headers: &[
                        ("host", "example.amazonaws.com"),
                        ("my-header1", " value1"),
                        ("my-header2", " \"a   b   c\""),
                        ("x-amz-date", TIME),
                    ],
                    ..GET
                },
                signature: "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
            },
        ];
        check(&key, scope, &examples);
    }

    #[test]
    fn a_key_is_for_one_day_place_and_secret() {
        let scope = Scope { time: "20150830T123600Z", region: "us-east-1", service: "s3" };
        let one = credentials("AKID", "secret");
        let key = SigningKey::new(&one, scope);
        let later = Scope { time: "20150830T235959Z", ..scope };
        assert!(key.is_for(&one, later));
        let request = Request {
            method: "GET",
            path: "/",
            query: "",
            headers: &[("host", "example.com")],
            body: EMPTY_DIGEST,
        };
        assert_eq!(key.authorization(later.time, &request), authorization(&one, later, &request));
        let others = [
            (&one, Scope { time: "20150831T000000Z", ..scope }),
            (&one, Scope { region: "us-east-2", ..scope }),
            (&one, Scope { service: "sqs", ..scope }),
            (&one, Scope { region: "us-east-1/s3", service: "", ..scope }),
            (&credentials("OTHER", "secret"), scope),
            (&credentials("AKID", "other"), scope),
        ];
        for (credentials, scope) in others {
            assert!(!key.is_for(credentials, scope), "{scope:?}");
        }
        assert!(!format!("{key:?}").contains("secret"));
    }

    /// Of "Examples: Signature Calculations" in the reference of S3
    /// (<https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html>).
    #[test]
    fn the_examples_of_s3_are_signed_as_it_says() {
        const TIME: &str = "20130524T000000Z";
        const HOST: (&str, &str) = ("host", "examplebucket.s3.amazonaws.com");
        const PLAIN: &[(&str, &str)] =
            &[HOST, ("x-amz-content-sha256", EMPTY_DIGEST), ("x-amz-date", TIME)];
        const GET: Request<'_> =
            Request { method: "GET", path: "/", query: "", headers: PLAIN, body: EMPTY_DIGEST };
        let body = digest([&b"Welcome to "[..], b"Amazon S3."]);
        assert_eq!(body, "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072");
        let key = credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
        let scope = Scope { time: TIME, region: "us-east-1", service: "s3" };
        let examples = [
            Example {
                name: "PUT Object",
                request: Request {
                    method: "PUT",
                    path: "/test%24file.text",
                    headers: &[
                        ("date", "Fri, 24 May 2013 00:00:00 GMT"),
                        HOST,
                        (
                            "x-amz-content-sha256",
                            "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
                        ),
                        ("x-amz-date", TIME),
                        ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
                    ],
                    body: "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
                    ..GET
                },
                signature: "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
            },
            Example {
                name: "GET Object",
                request: Request {
                    path: "/test.txt",
                    headers: &[
                        HOST,
                        ("range", "bytes=0-9"),
                        ("x-amz-content-sha256", EMPTY_DIGEST),
                        ("x-amz-date", TIME),
                    ],
                    ..GET
                },
                signature: "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
            },
            Example {
                name: "GET Bucket Lifecycle",
                request: Request { query: "lifecycle=", ..GET },
                signature: "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
            },
            Example {
                name: "Get Bucket (List Objects)",
                request: Request { query: "max-keys=2&prefix=J", ..GET },
                signature: "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
            },
        ];
        check(&key, scope, &examples);
    }

    #[test]
    fn times_are_written_without_a_fraction_and_read() {
        assert_eq!(time_text(Timestamp(1_440_938_160_999_999_999)), "20150830T123600Z");
        let time = Timestamp(1_440_938_160_000_000_000);
        assert_eq!(time_of("2015-08-30T12:36:00Z"), Some(time));
        assert_eq!(time_of("soon"), None);
        assert_eq!(http_time_of("Sun, 30 Aug 2015 12:36:00 GMT"), Some(time));
        assert_eq!(http_time_of("2015-08-30"), None);
    }
}
