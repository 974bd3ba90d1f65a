//! Logs of OpenTelemetry in JSON: <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>.

use super::events::{Events, FIELDS_MAX};
use super::otlp::{Common, Record};
use serde_json::Value as Json;
use skidder_event::{Map, Value};

/// Reads a request. Returns how many records are malformed, which are left out.
///
/// # Errors
/// It is malformed around its records: nothing of it is used.
pub(super) fn read(body: &[u8], now: i64, events: &mut Events<'_>) -> Result<u64, String> {
    let body: Json = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    if !body.is_object() {
        return Err("expected an object with `resourceLogs`".to_owned());
    }
    let mut rejected = 0;
    for of_resource in list(&body, "resourceLogs")? {
        let attributes = of_resource.get("resource").map_or(Ok(Vec::new()), attributes)?;
        let resource = Common::of_resource(attributes);
        for of_scope in list(of_resource, "scopeLogs")? {
            let scope =
                |name| of_scope.get("scope").map_or("", |scope| text(scope, name)).to_owned();
            let common = resource.clone().with_scope(scope("name"), scope("version"));
            for json in list(of_scope, "logRecords")? {
                match record(json) {
                    Ok(record) => record.add(&common, now, events),
                    Err(_) => rejected += 1,
                }
            }
        }
    }
    Ok(rejected)
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
        severity: number(json, "severityNumber")?,
        severity_text: text(json, "severityText").to_owned(),
        body: json.get("body").map(value).transpose()?.flatten(),
        attributes: attributes(json)?,
        trace: text(json, "traceId").to_ascii_lowercase(),
        span: text(json, "spanId").to_ascii_lowercase(),
        event_name: text(json, "eventName").to_owned(),
    })
}

fn attributes(of: &Json) -> Result<Vec<(String, Value)>, String> {
    let found = list(of, "attributes")?;
    if found.len() > FIELDS_MAX {
        return Err(format!("more than {FIELDS_MAX} attributes"));
    }
    found.iter().map(pair).collect()
}

fn pair(json: &Json) -> Result<(String, Value), String> {
    let found = json.get("value").map(value).transpose()?.flatten();
    Ok((text(json, "key").to_owned(), found.unwrap_or(Value::Null)))
}

/// `AnyValue`; `None` if it has none. Its depth is bounded by the reader of JSON.
fn value(json: &Json) -> Result<Option<Value>, String> {
    let members = json.as_object().ok_or("a value is no object")?;
    let Some((kind, inner)) = members.iter().next() else { return Ok(None) };
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
            let items = list(inner, "values")?.iter().map(value);
            let items: Result<Vec<_>, _> =
                items.map(|item| item.map(|item| item.unwrap_or(Value::Null))).collect();
            Value::List(items?)
        }
        "kvlistValue" => {
            let mut found = Map::new();
            for item in list(inner, "values")? {
                let (name, value) = pair(item)?;
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
