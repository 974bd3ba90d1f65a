//! Parts of URLs, as users write them.

use crate::url::percent_decoded;
use skidder_config::Secret;
use std::net::Ipv6Addr;

/// `user[:password]` of a URL, percent-encoded.
pub fn read_credentials(text: &str) -> Result<(String, Secret), String> {
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    Ok((decode_percent(user)?, Secret::new(decode_percent(password)?)))
}

/// The mistake of a URL with another scheme; `expected` ends "is neither …". It is not shown if a password may be in it.
pub fn wrong_scheme(scheme: &str, expected: &str) -> String {
    if scheme.contains(['@', ':', '/']) {
        "what is before its `://` is no scheme".to_owned()
    } else {
        format!("scheme `{scheme}` is neither {expected}")
    }
}

/// The hint for a mistake in the address of a proxy.
pub(crate) const PROXY_HINT: &str = "a proxy is `scheme://[user:password@]host[:port]`; what is special in a user or \
                                     password is percent-encoded: `/` is `%2F`, `@` is `%40`";

/// One entry of `hosts`: as [`read_address`]; a port alone (`:9200`) is one of this machine, as in Filebeat.
pub fn read_host(text: &str, default_port: u16) -> Result<(String, u16), String> {
    match text.strip_prefix(':') {
        Some(port) if !port.contains(':') => Ok(("localhost".to_owned(), read_port(port)?)),
        _ => read_address(text, default_port),
    }
}

/// `name[:port]`, with IPv6 addresses in brackets if they have a port. The error ends the sentence
/// "`proxy_url` is …; ". It shows nothing of the text: where a port is expected may stand a password whose host was
/// forgotten.
pub fn read_address(text: &str, default_port: u16) -> Result<(String, u16), String> {
    if let Some(inner) = text.strip_prefix('[') {
        let (name, behind) = inner.split_once(']').ok_or("its `[` is not closed by `]`")?;
        let name = read_ipv6(name)?;
        return match behind.strip_prefix(':') {
            Some(port) => Ok((name, read_port(port)?)),
            None if behind.is_empty() => Ok((name, default_port)),
            None => Err("behind its `]` is no port".to_owned()),
        };
    }
    // An IPv6 address without brackets has no port.
    if text.matches(':').count() > 1 {
        return Ok((read_ipv6(text)?, default_port));
    }
    let (name, port) = match text.split_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (text, None),
    };
    if name.is_empty() {
        return Err("it names no host".to_owned());
    }
    if name.bytes().any(|byte| byte.is_ascii_whitespace() || byte.is_ascii_control()) {
        return Err("no name of a host has a space in it".to_owned());
    }
    Ok((name.to_owned(), port.map_or(Ok(default_port), read_port)?))
}

/// An address, perhaps with its zone (`fe80::1%eth0`).
fn read_ipv6(text: &str) -> Result<String, String> {
    let address = text.split('%').next().unwrap_or_default();
    match address.parse::<Ipv6Addr>() {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err("what looks like an IPv6 address is none".to_owned()),
    }
}

fn read_port(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err("its port is no number from 1 to 65535".to_owned()),
    }
}

fn decode_percent(text: &str) -> Result<String, String> {
    let wrong = || "the user or password is not percent-encoded correctly".to_owned();
    percent_decoded(text, b'+').ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_before_a_scheme_is_not_shown() {
        let expected = "`a` nor `b`";
        assert_eq!(wrong_scheme("ftp", expected), "scheme `ftp` is neither `a` nor `b`");
        for scheme in ["user:secret@host", "redis:/user:secret@host"] {
            let error = wrong_scheme(scheme, expected);
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
