//! URLs of servers: scheme, host, port, path and credentials, as users write them.
//!
//! The rules are libbeat's `common.MakeURL`: a missing scheme, port and path come from other settings; what the URL has
//! wins. Unlike there, a URL without a host is an error, and not this machine.

use crate::Host;
use crate::address::{read_address, read_credentials, read_host, wrong_scheme};
use skidder_config::Secret;
use std::fmt;

/// One server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostUrl {
    /// Whether the connection is encrypted.
    pub https: bool,
    /// Name or address, IPv6 without brackets.
    pub name: String,
    /// TCP port.
    pub port: u16,
    /// The prefix of every path, without a slash at its end; empty for none.
    pub path: String,
    /// User and password of the URL.
    pub credentials: Option<(String, Secret)>,
}

impl HostUrl {
    /// Reads a URL, or one entry of `hosts`. A missing scheme is `protocol` (empty: `http`), a missing path is `path`,
    /// and a missing port is what `port` returns for a host with TLS (`true`) or without.
    ///
    /// # Errors
    ///
    /// The mistake: the end of the sentence "`hosts` is …; ".
    pub fn parse(
        text: &str,
        protocol: &str,
        path: &str,
        port: impl Fn(bool) -> u16,
    ) -> Result<Self, String> {
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (scheme, rest),
            None => (if protocol.is_empty() { "http" } else { protocol }, text),
        };
        let https = match scheme {
            "http" => false,
            "https" => true,
            _ => return Err(wrong_scheme(scheme, "`http` nor `https`")),
        };
        if rest.contains(['?', '#']) {
            return Err("a host takes no query; use `parameters`".to_owned());
        }
        let (authority, url_path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let (credentials, address) = match authority.rsplit_once('@') {
            Some((user, address)) => (Some(read_credentials(user)?), address),
            None => (None, authority),
        };
        let is_url = text.contains("://") || credentials.is_some();
        let read = if is_url { read_address } else { read_host };
        let (name, port) = read(address, port(https))?;
        let path = if url_path.is_empty() { path } else { url_path };
        let path = path.trim_end_matches('/');
        let path = match path {
            "" => String::new(),
            path if path.starts_with('/') => path.to_owned(),
            path => format!("/{path}"),
        };
        let plain =
            |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'`');
        if !path.bytes().all(plain) {
            return Err(format!("path `{path}` has characters that must be percent-encoded"));
        }
        Ok(Self { https, name, port, path, credentials })
    }

    /// Name and port.
    pub fn address(&self) -> Host {
        Host { name: self.name.clone(), port: self.port }
    }

    /// `name:port` as in the `Host` header, IPv6 in brackets.
    pub fn authority(&self) -> String {
        if self.name.contains(':') {
            format!("[{}]:{}", self.name, self.port)
        } else {
            format!("{}:{}", self.name, self.port)
        }
    }
}

impl fmt::Display for HostUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.https { "https" } else { "http" };
        write!(out, "{scheme}://{}{}", self.authority(), self.path)
    }
}

/// The port of a URL without one, for [`HostUrl::parse`].
pub fn usual_port(https: bool) -> u16 {
    if https { 443 } else { 80 }
}

/// A text for a path or a query, percent-encoded as by [`encode_percent`].
pub fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    encode_percent(&mut out, text);
    out
}

/// Percent-encodes everything but what RFC 3986 calls unreserved, for names and values of queries.
pub fn encode_percent(out: &mut String, text: &str) {
    use fmt::Write as _;
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(byte as char);
        } else {
            write!(out, "%{byte:02X}").expect("writing to a string cannot fail");
        }
    }
}

/// Percent-encodes a path: as [`encode_percent`], without its slashes.
pub fn encode_path(out: &mut String, path: &str) {
    for (number, part) in path.split('/').enumerate() {
        if number > 0 {
            out.push('/');
        }
        encode_percent(out, part);
    }
}

/// Decodes `%XX`. `plus` is what `+` stands for: itself in a URL, a space in a form. `None` if a `%` has no number behind it,
/// or the bytes are not UTF-8.
pub fn percent_decoded(text: &str, plus: u8) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        rest = behind;
        match first {
            b'+' => bytes.push(plus),
            b'%' => {
                let (digits, behind) = behind.split_at_checked(2)?;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return None;
                }
                let digits = std::str::from_utf8(digits).ok()?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
                rest = behind;
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, protocol: &str, path: &str) -> Result<HostUrl, String> {
        HostUrl::parse(text, protocol, path, |_| 9200)
    }

    #[test]
    fn everything_with_a_meaning_in_a_url_is_percent_encoded() {
        let encoded = percent_encoded("a b/{\"c\":[\"ä\"]}");
        assert_eq!(encoded, "a%20b%2F%7B%22c%22%3A%5B%22%C3%A4%22%5D%7D");
        let mut path = String::new();
        encode_path(&mut path, "/test$file.text");
        assert_eq!(path, "/test%24file.text");
    }

    #[test]
    fn names_are_decoded_or_refused() {
        let table = [
            ("", Some(""), Some("")),
            ("a+b%20c%2Bd", Some("a b c+d"), Some("a+b c+d")),
            ("%C3%a4", Some("ä"), Some("ä")),
            ("%", None, None),
            ("%4", None, None),
            ("%+1", None, None),
            ("%ff", None, None),
        ];
        for (text, form, url) in table {
            assert_eq!(percent_decoded(text, b' ').as_deref(), form, "{text}");
            assert_eq!(percent_decoded(text, b'+').as_deref(), url, "{text}");
        }
    }

    #[test]
    fn hosts_are_read_as_filebeat_reads_them() {
        let table = [
            ("localhost", "", "", "http://localhost:9200"),
            ("es:9201", "", "", "http://es:9201"),
            ("es", "https", "", "https://es:9200"),
            ("http://es", "https", "", "http://es:9200"),
            ("https://es:443/", "http", "", "https://es:443"),
            ("es", "", "/base", "http://es:9200/base"),
            ("es", "", "base/", "http://es:9200/base"),
            ("http://es/url/", "", "/base", "http://es:9200/url"),
            ("http://u:p%40x@es/", "", "", "http://es:9200"),
            ("[::1]:9300", "", "", "http://[::1]:9300"),
            ("[::1]", "", "", "http://[::1]:9200"),
            ("fe80::1", "", "", "http://[fe80::1]:9200"),
            (":9500", "", "", "http://localhost:9500"),
        ];
        for (text, protocol, path, expected) in table {
            let host = parse(text, protocol, path).unwrap();
            assert_eq!(host.to_string(), expected, "{text}");
        }
        let host = parse("http://u:p%40x@es/", "", "").unwrap();
        assert_eq!(host.credentials, Some(("u".to_owned(), Secret::new("p@x"))));
        assert!(!format!("{host:?} {host}").contains("p@x"));
    }

    #[test]
    fn wrong_hosts_say_why() {
        for text in
            ["ftp://es", "es:0", "es:x", "http://es/?a=b", "[::1", "[::1]x", "a b", "http://a%x@b"]
        {
            parse(text, "", "").unwrap_err();
        }
        for text in ["", "http://", "https:///path", "http://:9200", "u:p@", "http://u:p@:9200"] {
            assert_eq!(parse(text, "", "").unwrap_err(), "it names no host", "{text}");
        }
    }
}
