//! `listen_address`: a host alone. A port or a URL is an error that says what to write.

use std::net::Ipv6Addr;

/// The host, without the brackets of an IPv6 address. The error ends the sentence "`listen_address` is …; ".
pub(super) fn host_of(text: &str) -> Result<String, String> {
    let (scheme, rest) = text.split_once("://").map_or((None, text), |(it, rest)| (Some(it), rest));
    let (authority, path) =
        rest.split_once('/').map_or((rest, None), |(it, path)| (it, Some(path)));
    let (host, port) = split(authority);
    let has_more =
        host.contains([':', '@', '[', ']', '?', '#']) || host.contains(char::is_whitespace);
    if has_more && !is_v6(host) {
        return Err("expected a name or an address of this machine, as in `0.0.0.0`".to_owned());
    }
    let is_url = scheme.is_some() || path.is_some();
    if !is_url && port.is_none() && host != "*" {
        return Ok(host.to_owned());
    }
    let reason = if is_url {
        "expected a host, and no URL"
    } else if port.is_some() {
        "the port is a setting of its own"
    } else {
        "`*` is no address"
    };
    let host = if host.is_empty() || host == "*" { "0.0.0.0" } else { host };
    let port = port.and_then(|port| port.parse::<u16>().ok());
    let port = port.map(|port| format!(" and `listen_port: {port}`")).unwrap_or_default();
    Err(format!("{reason}: write `listen_address: {host}`{port}"))
}

/// Host and port. An IPv6 address without brackets has no port.
fn split(authority: &str) -> (&str, Option<&str>) {
    if is_v6(authority) {
        return (authority, None);
    }
    let bracketed = authority.strip_prefix('[').and_then(|inner| inner.split_once(']'));
    if let Some((host, behind)) = bracketed.filter(|(host, _)| is_v6(host)) {
        return match behind.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None if behind.is_empty() => (host, None),
            None => (authority, None),
        };
    }
    authority.rsplit_once(':').map_or((authority, None), |(host, port)| (host, Some(port)))
}

/// Whether it is an IPv6 address, perhaps with its zone.
fn is_v6(text: &str) -> bool {
    text.split('%').next().is_some_and(|address| address.parse::<Ipv6Addr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_alone_is_taken() {
        for (text, host) in [
            ("", ""),
            ("127.0.0.1", "127.0.0.1"),
            ("a.example", "a.example"),
            ("::", "::"),
            ("::1", "::1"),
            ("[::1]", "::1"),
            ("fe80::1%eth0", "fe80::1%eth0"),
        ] {
            assert_eq!(host_of(text).as_deref(), Ok(host), "{text}");
        }
    }

    #[test]
    fn a_port_or_a_url_is_refused_with_what_to_write() {
        for (text, expected) in [
            ("0.0.0.0:46001", "own: write `listen_address: 0.0.0.0` and `listen_port: 46001`"),
            (":46001", "own: write `listen_address: 0.0.0.0` and `listen_port: 46001`"),
            ("*:46001", "write `listen_address: 0.0.0.0` and `listen_port: 46001`"),
            (
                "localhost:http",
                "the port is a setting of its own: write `listen_address: localhost`",
            ),
            ("[::1]:46001", "write `listen_address: ::1` and `listen_port: 46001`"),
            ("http://0.0.0.0", "no URL: write `listen_address: 0.0.0.0`"),
            ("http://h:8080/hook", "write `listen_address: h` and `listen_port: 8080`"),
            ("h/hook", "no URL: write `listen_address: h`"),
            ("*", "`*` is no address: write `listen_address: 0.0.0.0`"),
            ("a b", "expected a name or an address"),
            ("1:2:3:4", "expected a name or an address"),
            ("[::1]x", "expected a name or an address"),
        ] {
            let error = host_of(text).expect_err(text);
            assert!(error.ends_with(expected) || error.starts_with(expected), "{text}: {error}");
        }
    }
}
