//! Logs of OpenTelemetry in JSON: <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>.

use super::events::{Events, FIELDS_MAX, object_of};
use super::json_tree;
use super::otlp::{self, Common, DEPTH_MAX, Record, SPAN_BYTES, Scope, TRACE_BYTES, id_of_text};
use base64::Engine as _;
use base64::engine::general_purpose::{
    STANDARD, STANDARD_PAD_INDIFFERENT, URL_SAFE_PAD_INDIFFERENT,
};
use serde_json::Value as Json;
use skidder_event::Value;

type Object = serde_json::Map<String, Json>;

/// Levels of JSON: a value inside a list of pairs takes four, and a record stands in some.
const LEVELS_MAX: u32 = 4 * DEPTH_MAX + 16;

/// Numbers of severities with these names, each followed by three with a digit.
const SEVERITIES: [(&str, i64); 6] =
    [("TRACE", 1), ("DEBUG", 5), ("INFO", 9), ("WARN", 13), ("ERROR", 17), ("FATAL", 21)];

/// Members of a value of which one is there.
const KINDS: [&str; 7] = [
    "arrayValue",
    "boolValue",
    "bytesValue",
    "doubleValue",
    "intValue",
    "kvlistValue",
    "stringValue",
];

/// Reads a request. Returns how many records are malformed, which are left out. Members that are not known
/// are ignored, as the specification says.
///
/// # Errors
/// It is malformed around its records: nothing of it is used.
pub(super) fn read(body: &[u8], now: i64, events: &mut Events<'_>) -> Result<u64, String> {
    let body = json_tree::read(body, LEVELS_MAX, name_of)?;
    let body = body.as_object().filter(|body| body.is_empty() || body.contains_key("resourceLogs"));
    let body = body.ok_or("expected an object with `resourceLogs`, and no name twice")?;
    let mut rejected = 0;
    for of_resource in list(body, "resourceLogs")? {
        let of_resource = object(of_resource, "resourceLogs")?;
        let resource = member(of_resource, "resource");
        let resource = resource.map(|json| attributes(object(json, "resource")?)).transpose()?;
        let resource = Common::of_resource(resource.unwrap_or_default());
        for of_scope in first_list(of_resource, ["scopeLogs", "instrumentationLibraryLogs"])? {
            let of_scope = object(of_scope, "scopeLogs")?;
            let scope = member(of_scope, "scope");
            let scope = scope.or_else(|| member(of_scope, "instrumentationLibrary"));
            let scope = scope.map(|json| self::scope(object(json, "scope")?)).transpose()?;
            let records = first_list(of_scope, ["logRecords", "logs"])?;
            // A scope may have no record, and a resource many scopes.
            if records.is_empty() {
                continue;
            }
            let common = resource.clone().with_scope(scope.unwrap_or_default());
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

/// The name of a member in JSON, `lowerCamelCase`. All parsers also take the name of the field itself,
/// `with_underscores`.
fn name_of(written: String) -> String {
    if !written.contains('_') {
        return written;
    }
    let mut parts = written.split('_');
    let mut name = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        name.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        name.push_str(letters.as_str());
    }
    name
}

fn scope(of: &Object) -> Result<Scope, String> {
    Ok(Scope {
        name: text(of, "name")?.to_owned(),
        version: text(of, "version")?.to_owned(),
        attributes: attributes(of)?,
    })
}

/// A member; one that is `null` is not there.
fn member<'a>(of: &'a Object, name: &str) -> Option<&'a Json> {
    of.get(name).filter(|json| !json.is_null())
}

/// An object, which is called `name` or is in a list of this name.
fn object<'a>(json: &'a Json, name: &str) -> Result<&'a Object, String> {
    json.as_object().ok_or_else(|| format!("`{name}` is no object, or has a name twice"))
}

/// A list, which may be missing.
fn list<'a>(of: &'a Object, name: &str) -> Result<&'a [Json], String> {
    match member(of, name) {
        None => Ok(&[]),
        Some(Json::Array(items)) => Ok(items),
        Some(_) => Err(format!("`{name}` is no list")),
    }
}

/// The list with the first of these names, or with the second one, which it had before OTLP 0.15. A sender of
/// both has the same in them.
fn first_list<'a>(of: &'a Object, names: [&str; 2]) -> Result<&'a [Json], String> {
    let found = list(of, names[0])?;
    if found.is_empty() { list(of, names[1]) } else { Ok(found) }
}

/// A text, which may be missing.
fn text<'a>(of: &'a Object, name: &str) -> Result<&'a str, String> {
    match member(of, name) {
        None => Ok(""),
        Some(Json::String(text)) => Ok(text),
        Some(_) => Err(format!("`{name}` is no text")),
    }
}

/// A number of 64 bits, which is a text in this JSON; not all that write it know that.
fn number<T: std::str::FromStr + Default>(of: &Object, name: &str) -> Result<T, String> {
    let wrong = || format!("`{name}` is no number");
    match member(of, name) {
        None => Ok(T::default()),
        Some(Json::String(text)) => text.parse().map_err(|_| wrong()),
        Some(Json::Number(number)) => number.to_string().parse().map_err(|_| wrong()),
        Some(_) => Err(wrong()),
    }
}

fn record(json: &Json) -> Result<Record, String> {
    let of = object(json, "logRecords")?;
    Ok(Record {
        time: number(of, "timeUnixNano")?,
        observed: number(of, "observedTimeUnixNano")?,
        severity: severity(of)?,
        severity_text: text(of, "severityText")?.to_owned(),
        body: member(of, "body").map(|body| value(body, 0)).transpose()?.flatten(),
        attributes: attributes(of)?,
        trace: id_of_text::<TRACE_BYTES>(text(of, "traceId")?),
        span: id_of_text::<SPAN_BYTES>(text(of, "spanId")?),
        event_name: text(of, "eventName")?.to_owned(),
    })
}

/// A number, or the name of one.
fn severity(of: &Object) -> Result<i64, String> {
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

fn attributes(of: &Object) -> Result<Vec<(String, Value)>, String> {
    pairs(of, "attributes", 0)
}

fn pairs(of: &Object, name: &str, depth: u32) -> Result<Vec<(String, Value)>, String> {
    let found = list(of, name)?;
    if found.len() > FIELDS_MAX {
        return Err(format!("`{name}` has more than {FIELDS_MAX} members"));
    }
    let pair = |json: &Json| -> Result<(String, Value), String> {
        let of = object(json, name)?;
        let found = member(of, "value").map(|json| value(json, depth)).transpose()?.flatten();
        Ok((text(of, "key")?.to_owned(), found.unwrap_or(Value::Null)))
    };
    found.iter().map(pair).collect()
}

/// `AnyValue`; `None` if it has none, or one that is not known.
fn value(json: &Json, depth: u32) -> Result<Option<Value>, String> {
    if json.is_null() {
        return Ok(None);
    }
    if depth == DEPTH_MAX {
        return Err(format!("more than {DEPTH_MAX} values inside each other"));
    }
    let members = object(json, "value")?;
    let mut there =
        members.iter().filter(|(kind, inner)| KINDS.contains(&kind.as_str()) && !inner.is_null());
    let Some((kind, inner)) = there.next() else { return Ok(None) };
    if there.next().is_some() {
        return Err("more than one value where one is expected".to_owned());
    }
    let wrong = || format!("`{kind}` has another value");
    Ok(Some(match kind.as_str() {
        "boolValue" => Value::Bool(inner.as_bool().ok_or_else(wrong)?),
        "bytesValue" => Value::from(bytes(inner.as_str().ok_or_else(wrong)?)?),
        "intValue" => Value::Int(number(members, kind)?),
        "doubleValue" => match inner {
            Json::Number(number) => otlp::number(number.as_f64().ok_or_else(wrong)?),
            // `NaN` and `Infinity` are texts.
            Json::String(text) => otlp::number(text.parse().map_err(|_| wrong())?),
            _ => return Err(wrong()),
        },
        "arrayValue" => {
            let items = list(object(inner, kind)?, "values")?.iter();
            let items: Result<Vec<_>, _> = items
                .map(|item| value(item, depth + 1).map(|item| item.unwrap_or(Value::Null)))
                .collect();
            Value::List(items?)
        }
        "kvlistValue" => Value::Map(object_of(pairs(object(inner, kind)?, "values", depth + 1)?)),
        // A text.
        _ => Value::from(inner.as_str().ok_or_else(wrong)?),
    }))
}

/// Bytes in either alphabet of base64, with or without padding, written as those of Protocol Buffers are.
fn bytes(text: &str) -> Result<String, String> {
    let is_of_urls = text.contains(['-', '_']);
    let engine = if is_of_urls { &URL_SAFE_PAD_INDIFFERENT } else { &STANDARD_PAD_INDIFFERENT };
    let bytes = engine.decode(text).map_err(|error| format!("`bytesValue`: {error}"))?;
    Ok(STANDARD.encode(bytes))
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
            let record = json!({"severityNumber": written});
            let found = severity(record.as_object().unwrap()).map_err(|_| ());
            assert_eq!(found, expected, "{written}");
        }
    }

    #[test]
    fn names_of_fields_are_those_of_members() {
        for (written, name) in [
            ("resource_logs", "resourceLogs"),
            ("observed_time_unix_nano", "observedTimeUnixNano"),
            ("traceId", "traceId"),
            ("key", "key"),
            ("_a__é_", "Aé"),
            ("_", ""),
        ] {
            assert_eq!(name_of(written.to_owned()), name);
        }
    }

    #[test]
    fn bytes_are_written_in_one_way() {
        for (written, expected) in [
            ("", Some("")),
            ("aGk=", Some("aGk=")),
            ("aGk", Some("aGk=")),
            ("+/8=", Some("+/8=")),
            ("-_8=", Some("+/8=")),
            ("-_8", Some("+/8=")),
            ("-/8=", None),
            ("no base64", None),
            ("aGk==", None),
            ("a", None),
        ] {
            assert_eq!(bytes(written).ok().as_deref(), expected, "{written}");
        }
    }
}
