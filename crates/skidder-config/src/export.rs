//! The effective settings as YAML, without secrets.
//!
//! Reading the output again gives the same settings (but for the masked ones).

use crate::node::{Content, MASK, Map, Node};
use crate::scalar;
use std::fmt::Write as _;
use std::net::Ipv6Addr;

/// Key endings that tell of a secret; compared in lower case with `-` as `_`.
const SECRET_ENDINGS: &[&str] = &[
    "password",
    "passphrase",
    "pass",
    "secret",
    "token",
    "api_key",
    "apikey",
    "access_key",
    "secret_key",
    "account_key",
    "private_key",
    "authorization",
    "cookie",
    "credentials_json",
    "connection_string",
    "secret_access_key",
];

/// `node` as YAML with secrets replaced by `xxxxx`: values from the keystore, values of keys that
/// name a secret (`password`, `api_key`, `token`, `cloud.auth`, …), private keys wherever they are,
/// and passwords in URLs.
pub(crate) fn to_yaml(node: &Node) -> String {
    let mut out = String::new();
    match &node.content {
        Content::Map(map) if !map.is_empty() => write_map(map, "", 0, false, &mut out),
        Content::List(list) if !list.is_empty() => write_list(list, "", 0, &mut out),
        _ => {
            out.push_str(&scalar_text(node, false));
            out.push('\n');
        }
    }
    out
}

/// Whether the value at the dotted `path` is a secret by its name.
pub(crate) fn is_secret(path: &str) -> bool {
    let path = path.to_ascii_lowercase().replace('-', "_");
    let key = path.rsplit('.').next().unwrap_or_default();
    let named = SECRET_ENDINGS.iter().any(|ending| {
        let start = key.strip_suffix(ending);
        start.is_some_and(|start| start.is_empty() || start.ends_with('_'))
    });
    named
        || key.contains("password")
        || key.contains("passphrase") && !key.ends_with("_path")
        || path == "cloud.auth"
        || path.ends_with(".cloud.auth")
        || path.ends_with("encryption.key")
}

/// A URL's password replaced by the mask; other texts as they are.
pub(crate) fn mask_url(text: &str) -> String {
    let Some(scheme_end) = text.find("://") else { return text.to_owned() };
    let start = scheme_end + 3;
    let length = text[start..]
        .find(|found: char| matches!(found, '/' | '?' | '#') || found.is_whitespace())
        .unwrap_or(text.len() - start);
    let authority = &text[start..start + length];
    let Some((user, host)) = authority.rsplit_once('@') else { return text.to_owned() };
    let Some((name, _)) = user.split_once(':') else { return text.to_owned() };
    format!("{}{name}:{MASK}@{host}{}", &text[..start], &text[start + length..])
}

/// For messages, which show what is wrong: as [`mask_url`], and what may be a password in a URL without a scheme
/// (`user:password@host`), without a host (`http://user:password`), or with a slash in it.
pub(crate) fn mask_login(text: &str) -> String {
    let start = text.find("://").map_or(0, |scheme_end| scheme_end + 3);
    let end = text[start..].find(char::is_whitespace).map_or(text.len(), |length| start + length);
    let word = &text[start..end];
    let authority = word.split(['/', '?', '#']).next().unwrap_or_default();
    let is_address = |text: &str| text.starts_with('[') || text.parse::<Ipv6Addr>().is_ok();
    let Some((user, behind)) = authority.split_once(':').filter(|_| !is_address(authority)) else {
        return text.to_owned();
    };
    let is_port = behind.bytes().all(|byte| byte.is_ascii_digit());
    let host = match word.rfind('@') {
        Some(at) if at > user.len() => at,
        None if start > 0 && !is_port => authority.len(),
        _ => return text.to_owned(),
    };
    format!("{}{user}:{MASK}{}{}", &text[..start], &word[host..], &text[end..])
}

/// Writes the keys of `map`. With `inline` the first one continues a line (after `- `).
fn write_map(map: &Map, path: &str, indent: usize, inline: bool, out: &mut String) {
    for (number, entry) in map.iter().enumerate() {
        if number > 0 || !inline {
            out.push_str(&"  ".repeat(indent));
        }
        out.push_str(&word(&entry.key));
        out.push(':');
        let path = crate::tree::join(path, &entry.key);
        write_value(&entry.value, &path, indent, out);
    }
}

fn write_value(node: &Node, path: &str, indent: usize, out: &mut String) {
    let masked = node.secret || is_secret(path) && node.text.is_some();
    match &node.content {
        _ if masked && !node.is_null() => writeln_to(out, &format!(" {MASK}")),
        Content::Map(map) if !map.is_empty() => {
            out.push('\n');
            write_map(map, path, indent + 1, false, out);
        }
        Content::List(list) if !list.is_empty() => {
            out.push('\n');
            write_list(list, path, indent + 1, out);
        }
        Content::Null => out.push('\n'),
        _ => writeln_to(out, &format!(" {}", scalar_text(node, false))),
    }
}

fn write_list(list: &[Node], path: &str, indent: usize, out: &mut String) {
    let masked = is_secret(path);
    for item in list {
        out.push_str(&"  ".repeat(indent));
        out.push_str("- ");
        match &item.content {
            Content::Map(map) if !map.is_empty() => write_map(map, "", indent + 1, true, out),
            Content::List(inner) if !inner.is_empty() => {
                out.pop();
                out.push('\n');
                write_list(inner, path, indent + 1, out);
            }
            _ => writeln_to(out, &scalar_text(item, masked)),
        }
    }
}

fn writeln_to(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}

fn scalar_text(node: &Node, masked: bool) -> String {
    if node.secret || masked && !node.is_null() {
        return MASK.to_owned();
    }
    let text = node.text.as_deref().unwrap_or_default();
    // Numbers stay as written, `0644` for instance, if YAML reads the same from it.
    let same = scalar::resolve(text) == node.content;
    match &node.content {
        Content::Null => "null".to_owned(),
        Content::Bool(value) => value.to_string(),
        Content::Int(_) | Content::UInt(_) | Content::Float(_) if same => text.to_owned(),
        Content::Int(value) => value.to_string(),
        Content::UInt(value) => value.to_string(),
        Content::Float(value) if value.is_nan() => ".nan".to_owned(),
        Content::Float(value) if value.is_infinite() && *value > 0.0 => ".inf".to_owned(),
        Content::Float(value) if value.is_infinite() => "-.inf".to_owned(),
        Content::Float(value) => format!("{value:?}"),
        Content::List(_) => "[]".to_owned(),
        Content::Map(_) => "{}".to_owned(),
        Content::String if text.contains("PRIVATE KEY-----") => MASK.to_owned(),
        Content::String if node.is_unresolved() => word(text),
        Content::String => word(&mask_url(text).replace('$', "$$")),
    }
}

/// A text as YAML: plain where nobody could read it otherwise, else in double quotes.
fn word(text: &str) -> String {
    let mut bytes = text.bytes();
    let begins_plain =
        bytes.next().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'/');
    let plain = bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_-./@*$%".contains(&byte));
    let is_text = scalar::resolve(text) == Content::String;
    if begins_plain && plain && is_text {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            other
                if other.is_control() || matches!(other, '\u{2028}' | '\u{2029}' | '\u{feff}') =>
            {
                let written = write!(quoted, "\\u{:04x}", u32::from(other));
                debug_assert!(written.is_ok(), "writing to a string cannot fail");
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Problems, Source};

    #[test]
    fn secrets_are_masked_and_the_rest_is_kept() {
        let text = r#"
output.elasticsearch:
  hosts: ["https://elastic:changeme@es:9200/path", "http://other:9200"]
  password: hunter2
  api_key: "id:key"
  ssl.key_passphrase: x
  ssl.key: |
    -----BEGIN PRIVATE KEY-----
    abc
  ssl.certificate: /etc/cert.pem
  bearer_token_file: /var/run/token
  headers: {Authorization: Basic abc, X-Other: "1"}
cloud.auth: elastic:changeme
queue.disk.encryption: {key: aaaa, key_file: /etc/key}
filebeat.inputs:
  - id: one
    paths: [/var/log/*.log, "a b: c"]
    permissions: 0640
    empty:
    nested: [[1, "2"], [], {}]
    token: [a, b]
"#;
        let problems = Problems::new();
        let source = Source::new(0, "a.yml");
        let node = crate::yaml::parse(&source, text, &problems).unwrap();
        let yaml = to_yaml(&crate::tree::expand_dots(node, &problems));
        assert_eq!(
            yaml,
            r#"output:
  elasticsearch:
    hosts:
      - "https://elastic:xxxxx@es:9200/path"
      - "http://other:9200"
    password: xxxxx
    api_key: xxxxx
    ssl:
      key_passphrase: xxxxx
      key: xxxxx
      certificate: /etc/cert.pem
    bearer_token_file: /var/run/token
    headers:
      Authorization: xxxxx
      X-Other: "1"
cloud:
  auth: xxxxx
queue:
  disk:
    encryption:
      key: xxxxx
      key_file: /etc/key
filebeat:
  inputs:
    - id: one
      paths:
        - /var/log/*.log
        - "a b: c"
      permissions: 0640
      empty:
      nested:
        -
          - 1
          - "2"
        - []
        - {}
      token:
        - xxxxx
        - xxxxx
"#
        );
    }

    #[test]
    fn only_the_password_of_a_url_is_masked() {
        let table = [
            ("http://host", "http://host"),
            ("http://user@host/", "http://user@host/"),
            ("http://user:p@ss@host/a", "http://user:xxxxx@host/a"),
            ("http://host/a:b@c", "http://host/a:b@c"),
            ("plain:text@x", "plain:text@x"),
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
        ];
        for (text, expected) in table {
            assert_eq!(mask_login(text), expected);
        }
    }
}
