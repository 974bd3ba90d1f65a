//! Secrets, which are never shown: by the names of keys, and by the place in a text.

use crate::node::MASK;
use crate::suggest::distance_between;
use std::net::Ipv6Addr;
use std::ops::Range;

/// Key endings that mark a secret; compared in lower case with `-` as `_`.
const SECRET_ENDINGS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pass",
    "pwd",
    "secret",
    "token",
    "api_key",
    "apikey",
    "access_key",
    "secret_key",
    "account_key",
    "private_key",
    "authorization",
    "credential",
    "cookie",
    "credentials_json",
    "connection_string",
    "secret_access_key",
];

/// Shortest ending that is known with one edit, as `pasword`; with two edits it has two letters more.
const EDITED_MIN: usize = 6;

/// Whether the value at the dotted `path` is a secret: its key, or a key above it, names one, or nearly so as unknown
/// keys may; or it is a header or a parameter of requests, whatever its name.
pub(crate) fn is_secret(path: &str) -> bool {
    let path = path.to_ascii_lowercase().replace('-', "_");
    let keys: Vec<&str> = path.split('.').map(without_index).collect();
    keys.iter().any(|key| names_secret(key))
        || keys.ends_with(&["cloud", "auth"])
        || keys.ends_with(&["encryption", "key"])
        || keys.contains(&"parameters")
        || keys.contains(&"headers") && !is_name_of_kafka_header(&keys)
}

/// The key of a list for one of its items: `hosts` for `hosts[0]`.
fn without_index(key: &str) -> &str {
    key.find('[').map_or(key, |index| &key[..index])
}

/// Kafka's headers are a list of names and values; the names are no secrets.
fn is_name_of_kafka_header(keys: &[&str]) -> bool {
    keys.contains(&"kafka") && keys.last() == Some(&"key")
}

/// Whether a key, in lower case and with `_`, names a secret.
fn names_secret(key: &str) -> bool {
    if key.contains("password") || key.contains("passphrase") && !key.ends_with("_path") {
        return true;
    }
    SECRET_ENDINGS.iter().any(|ending| {
        let words = ending.matches('_').count() + 1;
        let start = key.rmatch_indices('_').nth(words - 1).map_or(0, |(at, _)| at + 1);
        let last = &key[start..];
        let edits_max = match ending.len() {
            ..EDITED_MIN => 0,
            length => 1 + usize::from(length >= EDITED_MIN + 2),
        };
        // The plural of a short one, too.
        last == *ending
            || last.strip_suffix('s') == Some(ending)
            || edits_max > 0 && distance_between(last, ending) <= edits_max
    })
}

/// Whether the value at `path` is where something is, with a scheme or without.
pub(crate) fn is_address(path: &str) -> bool {
    let key = path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let key = without_index(&key);
    matches!(key, "host" | "hosts" | "url" | "urls" | "endpoint" | "endpoints")
        || key.ends_with("_url")
        || key.ends_with("_host")
}

/// A URL without password, query and fragment; other texts as they are.
pub(crate) fn mask_url(text: &str) -> String {
    match text.find("://") {
        Some(scheme_end) => mask(text, scheme_end + 3, true),
        None => text.to_owned(),
    }
}

/// The same for a text that is surely an address, also without a scheme, or with one that has too few slashes. For messages
/// that quote an address.
pub fn mask_address(text: &str) -> String {
    // What has an `@` in it is no scheme.
    let scheme = text.find("://").filter(|end| !text[..*end].contains('@'));
    let start = scheme.map_or(0, |scheme_end| scheme_end + 3);
    mask(text, start, start > 0)
}

/// For messages, which show the wrong value: as [`mask_url`], and what may be a password in a text
/// without a scheme (`user:password@host`).
pub(crate) fn mask_login(text: &str) -> String {
    if text.contains("://") {
        return mask_url(text);
    }
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    match login(&text[..end], false) {
        Some(password) => replaced(text, password),
        None => text.to_owned(),
    }
}

fn mask(text: &str, start: usize, has_scheme: bool) -> String {
    let without_scheme = |text| if has_scheme { None } else { login_of_last_part(text) };
    let rest = &text[start..];
    let mut masked = match login(rest, has_scheme).or_else(|| without_scheme(rest)) {
        Some(password) => replaced(text, start + password.start..start + password.end),
        None => text.to_owned(),
    };
    let Some(query) = masked[start..].find(['?', '#']).map(|at| start + at) else { return masked };
    let end = masked[query..].find([' ', '\t', '\n', '\r']);
    let end = end.map_or(masked.len(), |length| query + length);
    let fragment = masked[query..end].find('#').map_or(end, |length| query + length);
    if fragment + 1 < end {
        masked.replace_range(fragment + 1..end, MASK);
    }
    if query == fragment {
        return masked;
    }
    let (query, end) = (query + 1, fragment);
    let parameters: Vec<String> = masked[query..end]
        .split('&')
        .map(|parameter| match parameter.split_once('=') {
            Some((name, _)) => format!("{name}={MASK}"),
            None if parameter.is_empty() => String::new(),
            None => MASK.to_owned(),
        })
        .collect();
    masked.replace_range(query..end, &parameters.join("&"));
    masked
}

fn replaced(text: &str, range: Range<usize>) -> String {
    format!("{}{MASK}{}", &text[..range.start], &text[range.end..])
}

/// Where in the text behind a scheme the password is, or may be: without a host (`user:password`),
/// or with a slash in it.
fn login(text: &str, has_scheme: bool) -> Option<Range<usize>> {
    let slashes = text.len() - text.trim_start_matches('/').len();
    if has_scheme && slashes > 0 {
        return Some(moved(login(&text[slashes..], false)?, slashes));
    }
    let authority = text.split(['/', '?', '#']).next().unwrap_or_default();
    if let Some(at) = authority.rfind('@') {
        let colon = authority[..at].find(':')?;
        return Some(colon + 1..at);
    }
    if authority.starts_with('[') || authority.parse::<Ipv6Addr>().is_ok() {
        return None;
    }
    let (user, behind) = authority.split_once(':')?;
    let password = user.len() + 1;
    if !has_scheme && behind.is_empty() && text[password..].starts_with('/') {
        // A scheme with too few slashes.
        let start = password + 1;
        return Some(moved(login(&text[start..], false)?, start));
    }
    match text.rfind('@').filter(|at| *at > password) {
        Some(at) if !is_port(behind) => Some(password..at),
        None if has_scheme && !is_port(behind) => Some(password..authority.len()),
        _ => None,
    }
}

/// The same for an address without a scheme that has another mistake: the last part of it with an `@`.
fn login_of_last_part(text: &str) -> Option<Range<usize>> {
    let at = text.rfind('@')?;
    let part = text[..at].rfind('/').map_or(0, |slash| slash + 1);
    let colon = text[part..at].find(':')?;
    Some(part + colon + 1..at)
}

fn moved(range: Range<usize>, by: usize) -> Range<usize> {
    range.start + by..range.end + by
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_password_of_a_url_is_masked() {
        let table = [
            ("http://host", "http://host"),
            ("http://user@host/", "http://user@host/"),
            ("http://user:p@ss@host/a", "http://user:xxxxx@host/a"),
            ("http://host/a:b@c", "http://host/a:b@c"),
            ("plain:text@x", "plain:text@x"),
            ("http://us er:PW@h", "http://us er:xxxxx@h"),
            ("http://user:pa/ss@host/", "http://user:xxxxx@host/"),
            ("http://h:9200/?token=a&b=c&d#e", "http://h:9200/?token=xxxxx&b=xxxxx&xxxxx#xxxxx"),
            ("http://a:x@h:9200#e and more", "http://a:xxxxx@h:9200#xxxxx and more"),
            ("http://h#e?f=g", "http://h#xxxxx"),
            ("/var/log/a?.log", "/var/log/a?.log"),
        ];
        for (text, expected) in table {
            assert_eq!(mask_url(text), expected);
        }
    }

    #[test]
    fn messages_mask_what_may_be_a_password() {
        let table = [
            ("http://user:p@ss@host/a", "http://user:xxxxx@host/a"),
            ("http://user:12@host:x", "http://user:xxxxx@host:x"),
            ("http://user:pass", "http://user:xxxxx"),
            ("http://user:pa/ss@host/", "http://user:xxxxx@host/"),
            ("http://user:pass/ and more", "http://user:xxxxx/ and more"),
            ("user:pass@host:1", "user:xxxxx@host:1"),
            ("socks5://:pass@", "socks5://:xxxxx@"),
            ("http://host:9200/a", "http://host:9200/a"),
            ("http://[::1]:x", "http://[::1]:x"),
            ("http://fe80::1", "http://fe80::1"),
            ("host:port", "host:port"),
            ("/a:b/c@d", "/a:b/c@d"),
            ("a@b:c", "a@b:c"),
            ("redis:/u:pw@h", "redis:/u:xxxxx@h"),
            ("redis:u:pw@h", "redis:xxxxx@h"),
            ("redis:///u:pw@h", "redis:///u:xxxxx@h"),
            ("http:/host/a", "http:/host/a"),
            ("file:///var/a:b", "file:///var/a:b"),
        ];
        for (text, expected) in table {
            assert_eq!(mask_login(text), expected);
        }
    }

    #[test]
    fn keys_that_name_a_secret_or_nearly_so_hide_all_below_them() {
        for path in [
            "output.elasticsearch.password",
            "output.elasticsearch.pasword",
            "output.elasticsearch.passwrod",
            "output.elasticsearch.api-key",
            "output.elasticsearch.api_kye",
            "a.tokens",
            "a.secrets.one.two",
            "my_credentials",
            "ssl.key_pasphrase",
            "db_pwd",
            "headers.Authorisation",
            "cloud.auth",
            "output.elasticsearch.headers.X-Other",
            "monitoring.elasticsearch.headers.x",
            "output.elasticsearch.headers",
            "output.elasticsearch.headers[0]",
            "output.elasticsearch.parameters.tok",
            "output.elasticsearch.parameters",
            "output.kafka.headers.value",
            "output.kafka.headers[0].value",
            "a.tokens[1]",
        ] {
            assert!(is_secret(path), "{path}");
        }
        for path in [
            "paths",
            "processors.dissect.tokenizer",
            "ssl.key",
            "bearer_token_file",
            "ssl.key_passphrase_path",
            "queue.mem.events",
            "a.section",
            "a.select",
            "a.key",
            "keep_null",
            "max_cached_sessions",
            "fields.author",
            "pattern",
            "output.kafka.headers.0.key",
        ] {
            assert!(!is_secret(path), "{path}");
        }
    }

    #[test]
    fn an_address_needs_no_scheme() {
        let table = [
            ("u:geheim@h:1", "u:xxxxx@h:1"),
            ("us er:geheim@h", "us er:xxxxx@h"),
            ("redis:/u:geheim@h", "redis:/u:xxxxx@h"),
            ("redis:/u:ge/heim@h:1/2", "redis:/u:xxxxx@h:1/2"),
            ("redis:u:geheim@h", "redis:xxxxx@h"),
            ("redis//u:geheim@h", "redis//u:xxxxx@h"),
            ("redis;//u:geheim@h", "redis;//u:xxxxx@h"),
            ("u:geheim@h://x", "u:xxxxx@h://x"),
            ("redis:////u:geheim@h", "redis:////u:xxxxx@h"),
            ("h:9200/?token=a", "h:9200/?token=xxxxx"),
            ("h:9200#a", "h:9200#xxxxx"),
            ("h:9200", "h:9200"),
            ("[::1]:9200", "[::1]:9200"),
        ];
        for (text, expected) in table {
            assert_eq!(mask_address(text), expected);
        }
        assert!(
            is_address("output.redis.hosts")
                && is_address("output.redis.hosts[10]")
                && is_address("proxy_url")
                && !is_address("paths")
        );
    }
}
