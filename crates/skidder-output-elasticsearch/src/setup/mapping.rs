//! `fields.yml` to the mapping of an index, as libbeat's `template/processor.go`.

use serde_json::{Map, Value, json};
use skidder_config::Node;

/// Longest text that a keyword is searched by, as in libbeat.
const IGNORE_ABOVE: u64 = 1024;
/// Types whose mapping is their name.
const PLAIN: [&str; 21] = [
    "ip",
    "date",
    "date_nanos",
    "boolean",
    "long",
    "integer",
    "short",
    "byte",
    "unsigned_long",
    "double",
    "float",
    "half_float",
    "geo_point",
    "geo_shape",
    "histogram",
    "flattened",
    "nested",
    "binary",
    "match_only_text",
    "ip_range",
    "long_range",
];

/// Fields as an index has them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Mapped {
    pub(crate) properties: Map<String, Value>,
    /// Templates for the fields below an object.
    pub(crate) dynamic: Vec<Value>,
    /// Fields that are searched when a query names none.
    pub(crate) searched: Vec<String>,
}

/// The mapping of a type without more.
pub(crate) fn simple(kind: &str) -> Value {
    match kind {
        "keyword" | "wildcard" => json!({ "type": kind, "ignore_above": IGNORE_ABOVE }),
        "scaled_float" => json!({ "type": kind, "scaling_factor": 1000 }),
        "text" => json!({ "type": kind, "norms": false }),
        _ => json!({ "type": kind }),
    }
}

/// Puts the mapping of a field with a dotted name among the others.
pub(crate) fn put(properties: &mut Map<String, Value>, name: &str, mapping: Value) {
    let Some((first, rest)) = name.split_once('.') else {
        match (properties.get_mut(name), mapping) {
            (Some(Value::Object(old)), Value::Object(new)) => merge(old, &new),
            (Some(old), new) => *old = new,
            (None, new) => drop(properties.insert(name.to_owned(), new)),
        }
        return;
    };
    let group = properties.entry(first).or_insert_with(|| json!({}));
    let Some(group) = group.as_object_mut() else { return };
    let inner = group.entry("properties").or_insert_with(|| json!({}));
    if let Some(inner) = inner.as_object_mut() {
        put(inner, rest, mapping);
    }
}

/// Puts `over` over other properties.
pub(crate) fn merge(properties: &mut Map<String, Value>, over: &Map<String, Value>) {
    for (name, over) in over {
        match (properties.get_mut(name), over) {
            (Some(Value::Object(old)), Value::Object(new)) => merge(old, new),
            (Some(old), new) => *old = new.clone(),
            (None, new) => {
                properties.insert(name.clone(), new.clone());
            }
        }
    }
}

/// A list of fields, each with `name` and `type` or `fields`. With `keyed`, as in a `fields.yml`, of lists of them
/// under `fields`. The error names the wrong field.
pub(crate) fn read(list: &Node, keyed: bool) -> Result<Mapped, String> {
    let mut mapped = Mapped::default();
    let entries = list.as_list().ok_or("expected a list of fields")?;
    for entry in entries {
        if keyed {
            let fields = get(entry, "fields").and_then(Node::as_list).unwrap_or_default();
            read_list(&mut mapped, fields, "")?;
        }
    }
    if !keyed {
        read_list(&mut mapped, entries, "")?;
    }
    Ok(mapped)
}

fn read_list(mapped: &mut Mapped, fields: &[Node], above: &str) -> Result<(), String> {
    for field in fields {
        let name =
            text(field, "name").ok_or_else(|| format!("a field below `{above}` has no `name`"))?;
        let path = if above.is_empty() { name.to_owned() } else { format!("{above}.{name}") };
        read_field(mapped, field, &path)?;
    }
    Ok(())
}

fn read_field(mapped: &mut Mapped, field: &Node, path: &str) -> Result<(), String> {
    let inner = get(field, "fields").and_then(Node::as_list);
    let kind = match text(field, "type") {
        Some(kind) => kind,
        None if inner.is_some() => "group",
        None => "keyword",
    };
    let mapping = match kind {
        "group" | "nested" | "group-nested" => {
            if kind != "group" {
                put(&mut mapped.properties, path, json!({ "type": "nested" }));
            }
            return read_list(mapped, inner.unwrap_or_default(), path);
        }
        "object" => object(mapped, field, path),
        "array" => simple(text(field, "object_type").unwrap_or("keyword")),
        "alias" => {
            let target =
                text(field, "path").ok_or_else(|| format!("alias `{path}` has no `path`"))?;
            json!({ "type": "alias", "path": target })
        }
        "keyword" | "wildcard" | "text" | "scaled_float" | "constant_keyword" => simple(kind),
        kind if PLAIN.contains(&kind) => simple(kind),
        other => return Err(format!("`{path}` has the type `{other}`, which is none")),
    };
    let mut mapping = mapping;
    options(&mut mapping, field);
    if kind != "alias" && kind != "object" && is(field, "default_field") == Some(true) {
        mapped.searched.push(path.to_owned());
    }
    if let Some(multi) = get(field, "multi_fields").and_then(Node::as_list) {
        let mut of = Mapped::default();
        read_list(&mut of, multi, "")?;
        mapping["fields"] = Value::Object(of.properties);
    }
    put(&mut mapped.properties, path, mapping);
    Ok(())
}

/// An object: its `object_type` is the type of the fields below it.
fn object(mapped: &mut Mapped, field: &Node, path: &str) -> Value {
    if let Some(kind) = text(field, "object_type") {
        let below = if path.contains('*') { path.to_owned() } else { format!("{path}.*") };
        let matches = text(field, "object_type_mapping_type").unwrap_or(match kind {
            "keyword" | "text" => "string",
            "long" | "integer" | "short" | "byte" => "long",
            "double" | "float" | "half_float" | "scaled_float" => "*",
            "boolean" => "boolean",
            _ => "*",
        });
        mapped.dynamic.push(json!({ path: {
            "path_match": below, "match_mapping_type": matches, "mapping": simple(kind),
        } }));
    }
    json!({ "type": "object" })
}

/// Options that a mapping of any type may have.
fn options(mapping: &mut Value, field: &Node) {
    for key in ["index", "doc_values", "enabled", "norms"] {
        if let Some(value) = is(field, key) {
            mapping[key] = Value::Bool(value);
        }
    }
    for key in ["analyzer", "search_analyzer", "copy_to", "format", "value", "null_value"] {
        if let Some(value) = text(field, key) {
            mapping[key] = Value::from(value);
        }
    }
    for key in ["ignore_above", "scaling_factor", "depth_limit"] {
        if let Some(value) = text(field, key).and_then(|text| text.parse::<u64>().ok()) {
            mapping[key] = Value::from(value);
        }
    }
    if mapping["ignore_above"] == 0
        && let Some(mapping) = mapping.as_object_mut()
    {
        mapping.remove("ignore_above");
    }
    match text(field, "dynamic") {
        Some("true") => mapping["dynamic"] = Value::Bool(true),
        Some("false") => mapping["dynamic"] = Value::Bool(false),
        Some(other) => mapping["dynamic"] = Value::from(other),
        None => {}
    }
}

fn get<'a>(node: &'a Node, key: &str) -> Option<&'a Node> {
    Some(&node.as_map()?.get(key)?.value)
}

fn text<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    get(node, key)?.text().filter(|text| !text.is_empty())
}

fn is(node: &Node, key: &str) -> Option<bool> {
    text(node, key)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_config::Settings;

    fn mapped(text: &str) -> Result<Mapped, String> {
        read(Settings::parse("fields.yml", text).unwrap().node(), true)
    }

    #[test]
    fn fields_become_a_mapping() {
        let text = "
- key: mine
  fields:
    - name: app
      type: group
      fields:
        - {name: id, default_field: true}
        - {name: user.ip, type: ip}
        - name: text
          type: text
          multi_fields: [{name: raw, type: keyword, ignore_above: 0}]
        - {name: price, type: scaled_float, scaling_factor: 100}
        - {name: hidden, type: keyword, index: false, doc_values: false}
        - {name: labels, type: object, object_type: keyword}
        - {name: raw, type: object, enabled: false, dynamic: strict}
        - {name: old, type: alias, path: app.id}
        - {name: list, type: array, object_type: long}
- key: more
  fields:
    - {name: app.more, type: boolean}
";
        let mapped = mapped(text).unwrap();
        let expected = json!({ "app": { "properties": {
            "id": { "type": "keyword", "ignore_above": 1024 },
            "user": { "properties": { "ip": { "type": "ip" } } },
            "text": { "type": "text", "norms": false, "fields": { "raw": { "type": "keyword" } } },
            "price": { "type": "scaled_float", "scaling_factor": 100 },
            "hidden": { "type": "keyword", "ignore_above": 1024, "index": false, "doc_values": false },
            "labels": { "type": "object" },
            "raw": { "type": "object", "enabled": false, "dynamic": "strict" },
            "old": { "type": "alias", "path": "app.id" },
            "list": { "type": "long" },
            "more": { "type": "boolean" },
        } } });
        assert_eq!(Value::Object(mapped.properties), expected);
        assert_eq!(mapped.searched, ["app.id"]);
        let template = json!([{ "app.labels": {
            "path_match": "app.labels.*", "match_mapping_type": "string",
            "mapping": { "type": "keyword", "ignore_above": 1024 },
        } }]);
        assert_eq!(Value::Array(mapped.dynamic), template);
    }

    #[test]
    fn fields_that_are_none_are_told() {
        for (text, said) in [
            ("a: b", "expected a list"),
            ("- {key: a, fields: [{type: ip}]}", "no `name`"),
            ("- {key: a, fields: [{name: x, type: y}]}", "`x` has the type `y`"),
            ("- {key: a, fields: [{name: x, type: alias}]}", "no `path`"),
        ] {
            let error = mapped(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
