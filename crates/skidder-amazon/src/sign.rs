//! The URL and the headers of a signed request.

use crate::client::Service;
use http::header::AUTHORIZATION;
use http::{HeaderMap, Uri};
use skidder_aws::{Credentials, Request, Scope, time_text};
use skidder_net::cloud::{Ask, HeaderError, insert_secret};
use skidder_net::percent_encoded;
use skidder_os::Timestamp;

/// The header with the SHA-256 of a body, as [`skidder_aws::digest`] writes it. It is calculated for a request without it.
pub const DIGEST: &str = "x-amz-content-sha256";

pub(crate) fn signed(
    service: &Service,
    ask: &Ask<'_>,
    credentials: &Credentials,
    now: Timestamp,
) -> Result<(Uri, HeaderMap), HeaderError> {
    let Service { name, region, target, .. } = service;
    let (path, query) = (target.path(ask.key), query(&ask.query));
    let time = time_text(now);
    let mut headers = ask.headers.clone();
    let calculated;
    let digest = match headers.iter().find(|(name, _)| *name == DIGEST) {
        Some((_, digest)) => *digest,
        None => {
            calculated = skidder_aws::digest(ask.body.iter().map(|piece| &piece[..]));
            headers.push((DIGEST, &calculated));
            &calculated
        }
    };
    headers.push(("host", &target.authority));
    headers.push(("x-amz-date", &time));
    if let Some(session) = &credentials.session {
        headers.push(("x-amz-security-token", session.reveal()));
    }
    headers.sort_unstable();
    let scope = Scope { time: &time, region, service: name };
    let request = Request {
        method: ask.method.as_str(),
        path: &path,
        query: &query,
        headers: &headers,
        body: digest,
    };
    let key = service.provider.signing_key(credentials, scope);
    let authorization = key.authorization(&time, &request);
    let mut headers = target.headers(&headers)?;
    insert_secret(&mut headers, AUTHORIZATION, &authorization)?;
    Ok((target.uri(&path, &query)?, headers))
}

/// The escaped parameters in the order in which they are signed.
fn query(parameters: &[(&str, &str)]) -> String {
    let escaped = |(name, value): &(&str, &str)| (percent_encoded(name), percent_encoded(value));
    let mut pairs: Vec<(String, String)> = parameters.iter().map(escaped).collect();
    pairs.sort_unstable();
    let pairs = pairs.into_iter().map(|(name, value)| format!("{name}={value}"));
    pairs.collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_sorted_and_escaped_as_they_are_signed() {
        let table: [(&[(&str, &str)], &str); 4] = [
            (&[], ""),
            (&[("uploads", "")], "uploads="),
            (&[("prefix", "a/ä +~"), ("list-type", "2")], "list-type=2&prefix=a%2F%C3%A4%20%2B~"),
            (&[("b", "2"), ("B", "1"), ("b", "1")], "B=1&b=1&b=2"),
        ];
        for (parameters, expected) in table {
            assert_eq!(query(parameters), expected);
        }
    }
}
