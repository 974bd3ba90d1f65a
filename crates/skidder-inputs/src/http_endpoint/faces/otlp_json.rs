//! Logs of OpenTelemetry in JSON: <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>.

use super::events::{Events, FIELDS_MAX};
use super::json_tree;
use super::otlp::{Common, DEPTH_MAX, Record, SPAN_BYTES, Scope, TRACE_BYTES, id_of_text};
use serde_json::Value as Json;
use skidder_event::{Map, Value};

/// Levels of JSON: a value inside a list of pairs takes four, and a record stands in some.
const LEVELS_MAX: u32 = 4 * DEPTH_MAX + 16;

/// Numbers of severities with these names, each followed by three with a digit.
const SEVERITIES: [(&str, i64); 6] =
    [("TRACE", 1), ("DEBUG", 5), ("INFO", 9), ("WARN", 13), ("ERROR", 17), ("FATAL", 21)];

/// Reads a request. Returns how many records are malformed, which are left out.
///
/// # Errors
/// It is malformed around its records: nothing of it is used.
pub(super) fn read(body: &[u8], now: i64, events: &mut Events<'_>) -> Result<u64, String> {
    let body = json_tree::read(body, LEVELS_MAX)?;
    if !body.is_object() {
        return Err("expected an object with `resourceLogs`".to_owned());
    }
    let mut rejected = 0;
    for of_resource in list(&body, "resourceLogs")? {
        let attributes = of_resource.get("resource").map_or(Ok(Vec::new()), attributes)?;
        let resource = Common::of_resource(attributes);
        for of_scope in list(of_resource, "scopeLogs")? {
            let records = list(of_scope, "logRecords")?;
            let scope = of_scope.get("scope").map(scope).transpose()?.unwrap_or_default();
            // A scope may have no record, and a resource many scopes.
            if records.is_empty() {
                continue;
            }
            let common = resource.clone().with_scope(scope);
            for json in records {
                if events.is_beyond() {
                    break;
                }
                match record(json) {
                    Ok(record) => record.add(&common, now, events),
                    Err(_) => rejected += 1,
                }
            }
        }
    }
    Ok(rejected)
}

fn scope(of: &Json) -> Result<Scope, String> {
    Ok(Scope {
        name: text(of, "name").to_owned(),
        version: text(of, "version").to_owned(),
        attributes: attributes(of)?,
    })
}

/// A list, which may be missing.
fn list<'a>(of: &'a Json, name: &str) -> Result<&'a [Json], String> {
    match of.get(name) {
        None | Some(Json::Null) => Ok(&[]),
        Some(Json::Array(items)) => Ok(items),
        Some(_) => Err(format!("`{name}` is no list")),
    }
}

fn text<'a>(of: &'a Json, name: &str) -> &'a str {
    of.get(name).and_then(Json::as_str).unwrap_or_default()
}

/// A number of 64 bits, which is a text in this JSON; not all that write it know that.
fn number<T: std::str::FromStr + Default>(of: &Json, name: &str) -> Result<T, String> {
    let wrong = || format!("`{name}` is no number");
    match of.get(name) {
        None | Some(Json::Null) => Ok(T::default()),
        Some(Json::String(text)) => text.parse().map_err(|_| wrong()),
        Some(Json::Number(number)) => number.to_string().parse().map_err(|_| wrong()),
        Some(_) => Err(wrong()),
    }
}

fn record(json: &Json) -> Result<Record, String> {
    if !json.is_object() {
        return Err("a record is no object".to_owned());
    }
    Ok(Record {
        time: number(json, "timeUnixNano")?,
        observed: number(json, "observedTimeUnixNano")?,
        severity: severity(json)?,
        severity_text: text(json, "severityText").to_owned(),
        body: json.get("body").map(|body| value(body, 0)).transpose()?.flatten(),
        attributes: attributes(json)?,
        trace: id_of_text::<TRACE_BYTES>(text(json, "traceId")),
        span: id_of_text::<SPAN_BYTES>(text(json, "spanId")),
        event_name: text(json, "eventName").to_owned(),
    })
}

/// A number, or the name of one.
fn severity(of: &Json) -> Result<i64, String> {
    const NAME: &str = "severityNumber";
    let name = of.get(NAME).and_then(Json::as_str);
    let Some(name) = name.and_then(|name| name.strip_prefix("SEVERITY_NUMBER_")) else {
        return number(of, NAME);
    };
    let level = name.trim_end_matches(['2', '3', '4']);
    let more = match &name[level.len()..] {
        "" => 0,
        "2" => 1,
        "3" => 2,
        "4" => 3,
        _ => return Err(format!("`{NAME}` has another name")),
    };
    if name == "UNSPECIFIED" {
        return Ok(0);
    }
    let known = SEVERITIES.iter().find(|(known, _)| *known == level);
    known.map(|(_, first)| first + more).ok_or_else(|| format!("`{NAME}` has another name"))
}

fn attributes(of: &Json) -> Result<Vec<(String, Value)>, String> {
    let found = list(of, "attributes")?;
    if found.len() > FIELDS_MAX {
        return Err(format!("more than {FIELDS_MAX} attributes"));
    }
    found.iter().map(|json| pair(json, 0)).collect()
}

fn pair(json: &Json, depth: u32) -> Result<(String, Value), String> {
    let found = json.get("value").map(|json| value(json, depth)).transpose()?.flatten();
    Ok((text(json, "key").to_owned(), found.unwrap_or(Value::Null)))
}

/// `AnyValue`; `None` if it has none: a member that is `null` is not there.
fn value(json: &Json, depth: u32) -> Result<Option<Value>, String> {
    if json.is_null() {
        return Ok(None);
    }
    if depth == DEPTH_MAX {
        return Err(format!("more than {DEPTH_MAX} values inside each other"));
    }
    let members = json.as_object().ok_or("a value is no object")?;
    let there = members.iter().find(|(_, inner)| !inner.is_null());
    let Some((kind, inner)) = there else { return Ok(None) };
    let wrong = || format!("`{kind}` has another value");
    Ok(Some(match &**kind {
        "stringValue" | "bytesValue" => Value::from(inner.as_str().ok_or_else(wrong)?),
        "boolValue" => Value::Bool(inner.as_bool().ok_or_else(wrong)?),
        "intValue" => Value::Int(number(json, "intValue")?),
        "doubleValue" => match inner {
            Json::Number(number) => Value::Float(number.as_f64().ok_or_else(wrong)?),
            // `NaN` and `Infinity` are texts.
            Json::String(text) => Value::Float(text.parse().map_err(|_| wrong())?),
            _ => return Err(wrong()),
        },
        "arrayValue" => {
            let items = list(inner, "values")?.iter().map(|item| value(item, depth + 1));
            let items: Result<Vec<_>, _> =
                items.map(|item| item.map(|item| item.unwrap_or(Value::Null))).collect();
            Value::List(items?)
        }
        "kvlistValue" => {
            let mut found = Map::new();
            for item in list(inner, "values")? {
                let (name, value) = pair(item, depth + 1)?;
                found.insert(&name, value);
                if found.len() > FIELDS_MAX {
                    return Err(format!("more than {FIELDS_MAX} members"));
                }
            }
            Value::Map(found)
        }
        _ => return Err(format!("`{kind}` is no kind of value")),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn severities_have_numbers_or_names() {
        for (written, expected) in [
            (json!(null), Ok(0)),
            (json!(17), Ok(17)),
            (json!("17"), Ok(17)),
            (json!("SEVERITY_NUMBER_UNSPECIFIED"), Ok(0)),
            (json!("SEVERITY_NUMBER_TRACE"), Ok(1)),
            (json!("SEVERITY_NUMBER_INFO2"), Ok(10)),
            (json!("SEVERITY_NUMBER_FATAL4"), Ok(24)),
            (json!("SEVERITY_NUMBER_FATAL5"), Err(())),
            (json!("SEVERITY_NUMBER_FATAL22"), Err(())),
            (json!("SEVERITY_NUMBER_"), Err(())),
            (json!("ERROR"), Err(())),
        ] {
            let found = severity(&json!({"severityNumber": written})).map_err(|_| ());
            assert_eq!(found, expected, "{written}");
        }
    }
}
