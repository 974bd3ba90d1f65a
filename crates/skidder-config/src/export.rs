//! The effective settings as YAML, without secrets.
//!
//! Reading the output again gives the same settings (but for the masked ones).

use crate::mask::{is_address, is_secret, mask_address, mask_url};
use crate::node::{Content, MASK, Map, Node};
use crate::problem::Position;
use crate::scalar;
use std::fmt::Write as _;

/// `node` as YAML with secrets replaced by `xxxxx`: values from the keystore, values of keys that
/// name a secret, or nearly so, and all that is below them (`password`, `api_key`, `token`,
/// `cloud.auth`, `pasword`, …), private keys wherever they are, and passwords and queries in URLs.
pub(crate) fn to_yaml(node: &Node) -> String {
    let mut out = String::new();
    match &node.content {
        Content::Map(map) if !map.is_empty() => write_map(map, "", 0, false, &mut out),
        Content::List(list) if !list.is_empty() => write_list(list, "", 0, &mut out),
        _ => {
            out.push_str(&scalar_text(node, ""));
            out.push('\n');
        }
    }
    out
}

/// Places of values that are hidden because a secret may stand there by mistake.
pub(crate) struct Doubtful<'a> {
    /// Keys without a meaning: all values below them are hidden.
    pub(crate) unknown: &'a [Position],
    /// Values that were rejected: hidden in outputs, where secrets are.
    pub(crate) wrong: &'a [Position],
}

impl Doubtful<'_> {
    /// Hides the values at these places in `node`, which is at `path`.
    pub(crate) fn hide(&self, node: &mut Node, path: &str, is_hidden: bool) {
        // An address shows which of them is wrong, and is masked by itself.
        let is_wrong = is_of_output(path) && !is_address(path);
        let is_hidden = is_hidden || is_wrong && self.wrong.contains(&node.position);
        match &mut node.content {
            Content::Map(map) => {
                for entry in map.iter_mut() {
                    let path = crate::tree::join(path, &entry.key);
                    let is_unknown = self.unknown.contains(&entry.key_position);
                    self.hide(&mut entry.value, &path, is_hidden || is_unknown);
                }
            }
            Content::List(list) => {
                for item in list {
                    self.hide(item, path, is_hidden);
                }
            }
            _ => node.secret |= is_hidden,
        }
    }
}

/// Whether `path` is inside of an output, that of the monitoring among them.
fn is_of_output(path: &str) -> bool {
    ["output.", "outputs.", "monitoring."].iter().any(|start| path.starts_with(start))
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
        _ => writeln_to(out, &format!(" {}", scalar_text(node, path))),
    }
}

fn write_list(list: &[Node], path: &str, indent: usize, out: &mut String) {
    for item in list {
        out.push_str(&"  ".repeat(indent));
        out.push_str("- ");
        match &item.content {
            Content::Map(map) if !map.is_empty() => write_map(map, path, indent + 1, true, out),
            Content::List(inner) if !inner.is_empty() => {
                out.pop();
                out.push('\n');
                write_list(inner, path, indent + 1, out);
            }
            _ => writeln_to(out, &scalar_text(item, path)),
        }
    }
}

fn writeln_to(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}

fn scalar_text(node: &Node, path: &str) -> String {
    if node.secret || is_secret(path) && !node.is_null() {
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
        Content::String if is_address(path) => word(&mask_address(text).replace('$', "$$")),
        Content::String => word(&mask_url(text).replace('$', "$$")),
    }
}

/// A text as YAML: plain where every reader gets the same text, else in double quotes.
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
  pasword: typo
  secrets: {one: {two: [hidden]}}
  proxy_url: http://us er:PW@h/?key=abc&x
output.redis.hosts: ["u:geheim@h:1"]
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
      X-Other: xxxxx
    pasword: xxxxx
    secrets:
      one:
        two:
          - xxxxx
    proxy_url: "http://us er:xxxxx@h/?key=xxxxx&xxxxx"
  redis:
    hosts:
      - "u:xxxxx@h:1"
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
}
