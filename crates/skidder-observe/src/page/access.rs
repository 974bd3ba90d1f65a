//! Access to the page, and to what shows files or problems.
//!
//! Numbers are shown to everyone on this machine, unless `http.auth` is set. Events are not: logs may be for root alone, and the
//! loopback is open to all users, so they need the token that skidder writes into its data directory. A Unix socket lets in
//! clients by its mode, without a login. A browser on this machine may be led there by a foreign page: by a name that its owner points to the loopback (DNS rebinding), which the `Host` of the request
//! gives away, or by a request across sites, which `Sec-Fetch-Site` does. No answer allows another origin (CORS) to read it.

use super::session::{Session, Sessions};
use crate::http::HttpAuth;
use hyper::header::HOST;
use hyper::{HeaderMap, StatusCode};
use skidder_net::{BoundAddress, is_authorized};
use skidder_os::Timestamp;
use std::net::IpAddr;

/// Which requests need which credentials.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    auth: HttpAuth,
    listener: Listener,
    /// `http.host`, as it may be called by.
    host: Option<String>,
    /// For browsers that have shown the token of the data directory.
    sessions: Option<Sessions>,
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

/// What a request shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The page itself, to which a link may lead.
    Page,
    /// Numbers, names of files, and problems.
    Numbers,
    /// Events and lines of files, or what may hold some of them.
    Events,
}

/// The client of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client<'a> {
    pub(crate) headers: &'a HeaderMap,
    /// It is on this machine.
    pub(crate) is_here: bool,
    pub(crate) now: Timestamp,
}

impl Access {
    /// Of a listener at `address`, which was configured as `host`.
    pub(crate) fn new(address: &BoundAddress, host: Option<&str>, auth: HttpAuth) -> Self {
        let listener = match address {
            BoundAddress::Unix(_) => Listener::Socket,
            BoundAddress::Tcp(address) if address.ip().is_loopback() => Listener::Loopback,
            BoundAddress::Tcp(_) => Listener::Others,
        };
        let port = match address {
            BoundAddress::Tcp(address) => address.port(),
            BoundAddress::Unix(_) => 0,
        };
        let sessions = auth.own.as_ref().map(|own| Sessions::new(own.reveal().as_bytes(), port));
        Self { auth, listener, host: host.map(str::to_ascii_lowercase), sessions }
    }

    /// The same behind TLS: cookies are for encrypted connections alone.
    #[must_use]
    pub(crate) fn over_tls(self) -> Self {
        Self { sessions: self.sessions.map(Sessions::over_tls), ..self }
    }

    /// Whether a request may see `wanted`.
    pub(crate) fn check(&self, client: Client<'_>, wanted: Wanted) -> Result<(), Refusal> {
        let headers = client.headers;
        let refuse = |status, message: &str| Err(Refusal { status, message: message.to_owned() });
        let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
        if wanted != Wanted::Page && matches!(site, Some(b"cross-site" | b"same-site")) {
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
        if self.listener == Listener::Socket {
            return Ok(());
        }
        if self.listener == Listener::Others && !client.is_here {
            return refuse(
                StatusCode::FORBIDDEN,
                "`http.host` is not the loopback: set `http.auth.token`, or `http.auth.username` and \
                 `http.auth.password`, to see this from elsewhere",
            );
        }
        if !self.is_called_right(headers) {
            return refuse(
                StatusCode::FORBIDDEN,
                "this is served under `localhost`, a loopback address or `http.host` only; with \
                 `http.auth.token` under any name",
            );
        }
        if wanted != Wanted::Events || self.is_of_owner(client) {
            return Ok(());
        }
        if self.auth.own.is_none() {
            return refuse(
                StatusCode::FORBIDDEN,
                "this shows events, and no token for it could be written into the data directory (the log says why): \
                 set `http.auth.token`",
            );
        }
        refuse(
            StatusCode::UNAUTHORIZED,
            "this shows events: open the page with `skidder page`, or send what is in `page.token` in the data \
             directory as `Authorization: Bearer TOKEN`",
        )
    }

    /// Whether every request needs credentials.
    pub(crate) fn requires_login(&self) -> bool {
        self.auth.is_set()
    }

    /// A session for a browser that may see events; nothing where the token of the data directory is not required.
    pub(crate) fn session(&self, now: Timestamp) -> Option<Session> {
        let needs_token = !self.auth.is_set() && self.listener != Listener::Socket;
        self.sessions.as_ref().filter(|_| needs_token).map(|sessions| sessions.begin(now))
    }

    /// Whether the client has the token of the data directory, or a session that began with it.
    fn is_of_owner(&self, client: Client<'_>) -> bool {
        let (own, sessions) = (self.auth.own.as_ref(), self.sessions.as_ref());
        let knows = own.is_some_and(|own| is_authorized(client.headers, Some(own), None));
        knows || sessions.is_some_and(|sessions| sessions.has(client.headers, client.now))
    }

    /// Whether the client sends the credentials of `http.auth`.
    fn is_known(&self, headers: &HeaderMap) -> bool {
        is_authorized(headers, self.auth.token.as_ref(), self.auth.user.as_ref())
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
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
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

    fn here(headers: &HeaderMap) -> Client<'_> {
        Client { headers, is_here: true, now: Timestamp(0) }
    }

    fn status(access: &Access, pairs: &[(&'static str, &str)]) -> u16 {
        access
            .check(here(&headers(pairs)), Wanted::Numbers)
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
        let known = headers(&[("host", "localhost")]);
        let elsewhere = Client { is_here: false, ..here(&known) };
        let refusal = closed.check(elsewhere, Wanted::Page);
        assert_eq!(status(&closed, &[("host", "localhost")]), 200, "from this machine");
        assert!(refusal.expect_err("closed").message.contains("`http.auth.token`"));
        let socket = Access::new(&BoundAddress::Unix("/s".into()), None, HttpAuth::default());
        assert_eq!(status(&socket, &[]), 200);
    }

    #[test]
    fn a_token_and_a_user_open_it_and_nothing_else_does() {
        let auth = HttpAuth {
            token: Some(Secret::new("long-token")),
            user: Some(("me".to_owned(), Secret::new("pass:word"))),
            own: Some(Secret::new("own-token")),
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
            let own = "Bearer own-token".to_owned();
            for sent in
                bad.iter().chain(&[own, basic("you:pass:word"), basic("me"), "x".to_owned()])
            {
                assert_eq!(status(&access, &[("authorization", sent)]), 401, "{sent}");
            }
            assert_eq!(status(&access, &[("host", "localhost")]), 401, "nothing is sent");
        }
    }

    #[test]
    fn another_site_may_link_to_the_page_and_not_read_what_it_shows() {
        let access = Access::new(&tcp("127.0.0.1:1"), None, HttpAuth::default());
        let foreign = headers(&[("host", "localhost"), ("sec-fetch-site", "cross-site")]);
        assert!(access.check(here(&foreign), Wanted::Page).is_ok());
        assert!(access.check(here(&foreign), Wanted::Numbers).is_err());
        let own = headers(&[("host", "localhost"), ("sec-fetch-site", "same-origin")]);
        assert!(access.check(here(&own), Wanted::Numbers).is_ok());
    }

    #[test]
    fn events_need_the_token_of_the_data_directory_and_numbers_do_not() {
        let auth = HttpAuth { own: Some(Secret::new("own-token")), ..HttpAuth::default() };
        let events = |access: &Access, pairs: &[(&'static str, &str)]| {
            let headers = headers(pairs);
            let checked = access.check(here(&headers), Wanted::Events);
            checked.map_or_else(|refusal| refusal.status.as_u16(), |()| 200)
        };
        for address in ["127.0.0.1:1", "0.0.0.0:1"] {
            let access = Access::new(&tcp(address), None, auth.clone());
            let host = ("host", "localhost");
            assert_eq!((status(&access, &[host]), events(&access, &[host])), (200, 401));
            let basic = format!("Basic {}", STANDARD.encode("any:own-token"));
            for sent in ["Bearer own-token", &basic] {
                assert_eq!(events(&access, &[host, ("authorization", sent)]), 200, "{sent}");
            }
            for sent in ["Bearer own-toke", "Bearer ", "own-token"] {
                assert_eq!(events(&access, &[host, ("authorization", sent)]), 401, "{sent}");
            }
            let foreign = [("host", "evil.example"), ("authorization", "Bearer own-token")];
            assert_eq!(events(&access, &foreign), 403);
        }
        let without = Access::new(&tcp("127.0.0.1:1"), None, HttpAuth::default());
        assert_eq!(events(&without, &[("host", "localhost")]), 403, "no token could be written");
        let socket = Access::new(&BoundAddress::Unix("/s".into()), None, auth);
        assert_eq!(events(&socket, &[]), 200, "its mode lets in whom it lets in");
    }
}
