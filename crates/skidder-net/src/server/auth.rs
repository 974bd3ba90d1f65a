//! Credentials of clients of HTTP.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use skidder_config::Secret;
use subtle::ConstantTimeEq as _;

/// Whether `Authorization` has the token (as a bearer token, or as the password of any user), or the user with the
/// password. Takes the same time however much of it is right.
pub fn is_authorized(
    headers: &HeaderMap,
    token: Option<&Secret>,
    user: Option<&(String, Secret)>,
) -> bool {
    let sent = headers.get(AUTHORIZATION).map_or(&b""[..], |sent| sent.as_bytes());
    let (scheme, rest) = match sent.iter().position(|&byte| byte == b' ') {
        Some(at) => (&sent[..at], sent[at..].trim_ascii()),
        None => (sent, &b""[..]),
    };
    let same = |one: &[u8], other: &[u8]| bool::from(one.ct_eq(other));
    let is_token = |sent: &[u8]| token.is_some_and(|token| same(token.reveal().as_bytes(), sent));
    if scheme.eq_ignore_ascii_case(b"bearer") {
        return is_token(rest);
    }
    if !scheme.eq_ignore_ascii_case(b"basic") {
        return false;
    }
    let Ok(pair) = BASE64.decode(rest) else { return false };
    let Some(colon) = pair.iter().position(|&byte| byte == b':') else { return false };
    let (name, password) = (&pair[..colon], &pair[colon + 1..]);
    let is_user = user.is_some_and(|(user, secret)| {
        same(user.as_bytes(), name) & same(secret.reveal().as_bytes(), password)
    });
    is_token(password) | is_user
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::basic_login;

    #[test]
    fn a_token_or_a_user_with_a_password_is_enough_and_nothing_else() {
        let token = Secret::new("the-token");
        let user = ("me".to_owned(), Secret::new("a:password"));
        let ok = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, value.parse().unwrap());
            is_authorized(&headers, Some(&token), Some(&user))
        };
        let basic = |name: &str, password: &str| basic_login(name, &Secret::new(password));
        for good in [
            "Bearer the-token".to_owned(),
            "bearer  the-token ".to_owned(),
            basic("me", "a:password"),
            basic("anyone", "the-token"),
        ] {
            assert!(ok(&good), "{good}");
        }
        for bad in [
            "Bearer a:password".to_owned(),
            "Bearer".to_owned(),
            "Basic !".to_owned(),
            "Digest the-token".to_owned(),
            basic("you", "a:password"),
            basic("me", ""),
        ] {
            assert!(!ok(&bad), "{bad}");
        }
        assert!(!is_authorized(&HeaderMap::new(), Some(&token), Some(&user)));
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, "Bearer ".parse().unwrap());
        assert!(!is_authorized(&headers, None, None));
    }
}
