//! Addresses, hosts and URIs.

use super::Pattern;

pub(super) const PATTERNS: &[Pattern] = &[
    ("CISCOMAC", r"(?:[0-9A-Fa-f]{4}\.){2}[0-9A-Fa-f]{4}"),
    ("WINDOWSMAC", r"(?:[0-9A-Fa-f]{2}-){5}[0-9A-Fa-f]{2}"),
    ("COMMONMAC", r"(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}"),
    ("MAC", r"%{CISCOMAC}|%{WINDOWSMAC}|%{COMMONMAC}"),
    (
        "IPV4",
        r"\b(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\.){3}(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\b",
    ),
    ("IP", r"%{IPV6}|%{IPV4}"),
    ("HOSTNAME", r"\b[0-9A-Za-z][0-9A-Za-z-]*(?:\.[0-9A-Za-z][0-9A-Za-z-]*)*\.?"),
    ("HOST", r"%{HOSTNAME}"),
    ("IPORHOST", r"%{IP}|%{HOSTNAME}"),
    ("HOSTPORT", r"%{IPORHOST}:%{POSINT}"),
    ("URIPROTO", r"[A-Za-z][0-9A-Za-z+.-]*"),
    ("URIHOST", r"(?:\[%{IPV6}\]|%{IPORHOST})(?::%{POSINT})?"),
    ("URIPATH", r"(?:/[0-9A-Za-z$.+!*'(){},~:;=@#%&_-]*)+"),
    ("URIQUERY", r"[0-9A-Za-z$.+!*'|(){},~@#%&/=:;_?<>\[\]-]*"),
    ("URIPARAM", r"\?%{URIQUERY}"),
    ("URIPATHPARAM", r"%{URIPATH}(?:\?%{URIQUERY})?"),
    (
        "URI",
        r"%{URIPROTO}://(?:%{USER}(?::[^@\s]*)?@)?(?:%{URIHOST})?(?:%{URIPATH}(?:\?%{URIQUERY})?)?",
    ),
];

/// An address as RFC 4291 writes it: eight numbers, of which one row of zeros may be `::`, the last two perhaps as
/// an address of IPv4, and the zone of RFC 4007.
pub(super) fn ipv6() -> String {
    const NUMBER: &str = "[0-9A-Fa-f]{1,4}";
    let mut text = format!("(?:(?:{NUMBER}:){{7}}{NUMBER}|(?:{NUMBER}:){{6}}%{{IPV4}}");
    // So many numbers before the `::`, with each what may stand behind it, the longest first.
    for before in (0..=7).rev() {
        let most = 7 - before;
        let first = match before {
            0 => ":".to_owned(),
            _ => format!("(?:{NUMBER}:){{{before}}}"),
        };
        text += &format!("|{first}(?:");
        if most >= 2 {
            text += &format!("(?::{NUMBER}){{0,{}}}:%{{IPV4}}|", most - 2);
        }
        if most >= 1 {
            text += &format!("(?::{NUMBER}){{1,{most}}}|");
        }
        text.push_str(":)");
    }
    text.push_str(")(?:%[0-9A-Za-z._~-]+)?");
    text
}
