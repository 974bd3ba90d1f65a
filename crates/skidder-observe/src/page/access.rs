//! Who may see the page. It shows events, so it is closed to all whom the listener does not prove to be of this machine.
//!
//! On the loopback and on a Unix socket nobody is asked, unless `http.auth` is set. A browser on this machine may be led
//! there by a foreign page: by a name that its owner points to the loopback (DNS rebinding), which the `Host` of the request
//! gives away, or by a request across sites, which `Sec-Fetch-Site` does. No answer allows another origin (CORS) to read it.

use crate::http::{BoundAddress, HttpAuth};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{AUTHORIZATION, HOST};
use hyper::{HeaderMap, StatusCode};
use std::net::IpAddr;
use subtle::ConstantTimeEq as _;

/// What is asked of whom.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    auth: HttpAuth,
    listener: Listener,
    /// `http.host`, as it may be called by.
    host: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listener {
    Socket,
    Loopback,
    Others,
}

/// Why a request gets nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The page itself, to which a link may lead.
    Page,
    /// What it shows.
    Data,
}

impl Access {
    /// Of a listener at `address`, which was configured as `host`.
    pub(crate) fn new(address: &BoundAddress, host: Option<&str>, auth: HttpAuth) -> Self {
        let listener = match address {
            BoundAddress::Unix(_) => Listener::Socket,
            BoundAddress::Tcp(address) if address.ip().is_loopback() => Listener::Loopback,
            BoundAddress::Tcp(_) => Listener::Others,
        };
        Self { auth, listener, host: host.map(str::to_ascii_lowercase) }
    }

    /// Whether a request may see what it wants.
    pub(crate) fn check(&self, headers: &HeaderMap, wanted: Wanted) -> Result<(), Refusal> {
        let refuse = |status, message: &str| Err(Refusal { status, message: message.to_owned() });
        let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
        if wanted == Wanted::Data && matches!(site, Some(b"cross-site" | b"same-site")) {
            return refuse(StatusCode::FORBIDDEN, "another site's page may not read this");
        }
        if self.auth.is_set() {
            if self.is_known(headers) {
                return Ok(());
            }
            let message = "this needs the user and the password of `http.auth`, or its token as \
                           `Authorization: Bearer TOKEN` or as the password of any user";
            return refuse(StatusCode::UNAUTHORIZED, message);
        }
        match self.listener {
            Listener::Socket => Ok(()),
            Listener::Loopback if self.is_called_right(headers) => Ok(()),
            Listener::Loopback => refuse(
                StatusCode::FORBIDDEN,
                "the page is served under `localhost`, a loopback address or `http.host` only; with \
                 `http.auth.token` under any name",
            ),
            Listener::Others => refuse(
                StatusCode::FORBIDDEN,
                "`http.host` is not the loopback: set `http.auth.token`, or `http.auth.username` and \
                 `http.auth.password`, to see the page from elsewhere",
            ),
        }
    }

    /// Whether the client sends what `http.auth` asks for. Takes the same time however much of it is right.
    fn is_known(&self, headers: &HeaderMap) -> bool {
        let sent = headers.get(AUTHORIZATION).map_or(&b""[..], |sent| sent.as_bytes());
        let (scheme, rest) = match sent.iter().position(|&byte| byte == b' ') {
            Some(at) => (&sent[..at], sent[at..].trim_ascii()),
            None => (sent, &b""[..]),
        };
        let same = |one: &[u8], other: &[u8]| bool::from(one.ct_eq(other));
        let is_token = |sent: &[u8]| {
            self.auth.token.as_ref().is_some_and(|token| same(token.reveal().as_bytes(), sent))
        };
        if scheme.eq_ignore_ascii_case(b"bearer") {
            return is_token(rest);
        }
        if !scheme.eq_ignore_ascii_case(b"basic") {
            return false;
        }
        let Ok(pair) = STANDARD.decode(rest) else { return false };
        let Some(colon) = pair.iter().position(|&byte| byte == b':') else { return false };
        let (name, password) = (&pair[..colon], &pair[colon + 1..]);
        let is_user = self.auth.user.as_ref().is_some_and(|(user, secret)| {
            same(user.as_bytes(), name) & same(secret.reveal().as_bytes(), password)
        });
        is_token(password) | is_user
    }

    /// Whether the request names a host that can only be this machine.
    fn is_called_right(&self, headers: &HeaderMap) -> bool {
        let Some(Ok(host)) = headers.get(HOST).map(|host| host.to_str()) else { return false };
        let name = host_name(host).to_ascii_lowercase();
        let is_loopback = name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        is_loopback || name == "localhost" || self.host.as_ref().is_some_and(|own| *own == name)
    }
}

/// The host of `host`, `host:port`, `[::1]` and `[::1]:port`.
fn host_name(text: &str) -> &str {
    if let Some(rest) = text.strip_prefix('[') {
        return rest.split_once(']').map_or("", |(address, _)| address);
    }
    text.split_once(':').map_or(text, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;
    use skidder_config::Secret;

    fn tcp(address: &str) -> BoundAddress {
        BoundAddress::Tcp(address.parse().expect("an address"))
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (
                hyper::header::HeaderName::from_static(name),
                HeaderValue::from_str(value).expect("a value"),
            )
        };
        pairs.iter().map(pair).collect()
    }

    fn status(access: &Access, pairs: &[(&'static str, &str)]) -> u16 {
        access
            .check(&headers(pairs), Wanted::Data)
            .map_or_else(|refusal| refusal.status.as_u16(), |()| 200)
    }

    #[test]
    fn on_the_loopback_only_its_own_names_are_served() {
        let access =
            Access::new(&tcp("127.0.0.1:5066"), Some("Logs.Internal"), HttpAuth::default());
        let good = ["localhost", "LOCALHOST:5066", "127.0.0.1:5066", "127.9.9.9", "[::1]:5066"];
        for host in good.into_iter().chain(["logs.internal:1"]) {
            assert_eq!(status(&access, &[("host", host)]), 200, "{host}");
        }
        for host in ["evil.example:5066", "localhost.evil.example", "", "10.0.0.1", "[::1", "[::2]"]
        {
            assert_eq!(status(&access, &[("host", host)]), 403, "{host}");
        }
        assert_eq!(status(&access, &[]), 403, "without a host");
    }

    #[test]
    fn elsewhere_the_page_is_closed_until_somebody_can_be_asked() {
        let closed = Access::new(&tcp("0.0.0.0:5066"), Some("0.0.0.0"), HttpAuth::default());
        let refusal = closed.check(&headers(&[("host", "localhost")]), Wanted::Page);
        assert!(refusal.expect_err("closed").message.contains("`http.auth.token`"));
        let socket = Access::new(&BoundAddress::Unix("/s".into()), None, HttpAuth::default());
        assert_eq!(status(&socket, &[]), 200);
    }

    #[test]
    fn a_token_and_a_user_open_it_and_nothing_else_does() {
        let auth = HttpAuth {
            token: Some(Secret::new("long-token")),
            user: Some(("me".to_owned(), Secret::new("pass:word"))),
        };
        for address in ["0.0.0.0:1", "127.0.0.1:1"] {
            let access = Access::new(&tcp(address), None, auth.clone());
            let basic = |pair: &str| format!("Basic {}", STANDARD.encode(pair));
            let good =
                ["Bearer long-token".to_owned(), basic("me:pass:word"), basic("any:long-token")];
            for sent in &good {
                assert_eq!(status(&access, &[("authorization", sent)]), 200, "{sent}");
            }
            let bad = ["Bearer long-toke".to_owned(), "Bearer ".to_owned(), basic("me:pass")];
            for sent in bad.iter().chain(&[basic("you:pass:word"), basic("me"), "x".to_owned()]) {
                assert_eq!(status(&access, &[("authorization", sent)]), 401, "{sent}");
            }
            assert_eq!(status(&access, &[("host", "localhost")]), 401, "nothing is sent");
        }
    }

    #[test]
    fn another_site_may_link_to_the_page_and_not_read_what_it_shows() {
        let access = Access::new(&tcp("127.0.0.1:1"), None, HttpAuth::default());
        let foreign = headers(&[("host", "localhost"), ("sec-fetch-site", "cross-site")]);
        assert!(access.check(&foreign, Wanted::Page).is_ok());
        assert!(access.check(&foreign, Wanted::Data).is_err());
        let own = headers(&[("host", "localhost"), ("sec-fetch-site", "same-origin")]);
        assert!(access.check(&own, Wanted::Data).is_ok());
    }
}
