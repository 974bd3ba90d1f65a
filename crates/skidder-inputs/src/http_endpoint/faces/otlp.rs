//! Logs of OpenTelemetry: resources, scopes and records, in Protocol Buffers or JSON.
//!
//! <https://opentelemetry.io/docs/specs/otlp/#otlphttp>. Fields are those of ECS, as the collector's exporter for
//! Elasticsearch names them with `mapping: ecs`; an attribute that ECS has under another name gets that.

use super::events::{Chosen, Events, FIELDS_MAX, object_of};
use super::wire::{Field, Fields, Malformed, text_of};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;
use skidder_event::Value;

/// Values inside each other.
pub(super) const DEPTH_MAX: u32 = 64;

/// The length of the id of a trace, and of a span.
pub(super) const TRACE_BYTES: usize = 16;
pub(super) const SPAN_BYTES: usize = 8;

/// Attributes that have another name in ECS, sorted.
const NAMES: [(&str, &str); 27] = [
    ("deployment.environment", "service.environment"),
    ("deployment.environment.name", "service.environment"),
    ("exception.message", "error.message"),
    ("exception.stacktrace", "error.stack_trace"),
    ("exception.type", "error.type"),
    ("host.arch", "host.architecture"),
    ("k8s.container.name", "kubernetes.container.name"),
    ("k8s.cronjob.name", "kubernetes.cronjob.name"),
    ("k8s.daemonset.name", "kubernetes.daemonset.name"),
    ("k8s.deployment.name", "kubernetes.deployment.name"),
    ("k8s.job.name", "kubernetes.job.name"),
    ("k8s.namespace.name", "kubernetes.namespace"),
    ("k8s.node.name", "kubernetes.node.name"),
    ("k8s.node.uid", "kubernetes.node.uid"),
    ("k8s.pod.ip", "kubernetes.pod.ip"),
    ("k8s.pod.name", "kubernetes.pod.name"),
    ("k8s.pod.uid", "kubernetes.pod.uid"),
    ("k8s.replicaset.name", "kubernetes.replicaset.name"),
    ("k8s.replicationcontroller.name", "kubernetes.replicationcontroller.name"),
    ("k8s.statefulset.name", "kubernetes.statefulset.name"),
    ("os.description", "host.os.full"),
    ("os.name", "host.os.name"),
    ("os.type", "host.os.type"),
    ("os.version", "host.os.version"),
    ("service.instance.id", "service.node.name"),
    ("service.name", "service.name"),
    ("service.version", "service.version"),
];

/// The field of the text of a record.
const MESSAGE: &str = "message";

/// A record, whatever it was written in.
#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) time: u64,
    pub(super) observed: u64,
    pub(super) severity: i64,
    pub(super) severity_text: String,
    pub(super) body: Option<Value>,
    pub(super) attributes: Vec<(String, Value)>,
    pub(super) trace: String,
    pub(super) span: String,
    pub(super) event_name: String,
}

/// The library that wrote records.
#[derive(Debug, Default)]
pub(super) struct Scope {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) attributes: Vec<(String, Value)>,
}

/// What all records of a scope have.
#[derive(Clone, Debug, Default)]
pub(super) struct Common(Chosen);

impl Common {
    /// The attributes of a resource.
    pub(super) fn of_resource(attributes: Vec<(String, Value)>) -> Self {
        let mut fields = Chosen::default();
        for (name, value) in attributes {
            fields.insert(ecs(&name), value);
        }
        Self(fields)
    }

    /// With a scope.
    pub(super) fn with_scope(mut self, scope: Scope) -> Self {
        let Scope { name, version, attributes } = scope;
        for (field, text) in [("otlp.scope.name", name), ("otlp.scope.version", version)] {
            if !text.is_empty() {
                self.0.insert(field, Value::from(text));
            }
        }
        if !attributes.is_empty() {
            let mut members = Chosen::default();
            for (name, value) in attributes {
                members.insert(&name, value);
            }
            self.0.insert("otlp.scope.attributes", Value::Map(members.into_map()));
        }
        self
    }
}

fn ecs(name: &str) -> &str {
    NAMES.binary_search_by(|(known, _)| (*known).cmp(name)).map_or(name, |at| NAMES[at].1)
}

impl Record {
    /// Makes an event.
    pub(super) fn add(self, common: &Common, now: i64, events: &mut Events<'_>) {
        let mut fields = common.0.clone();
        let texts = [
            ("log.level", self.severity_text),
            ("trace.id", self.trace),
            ("span.id", self.span),
            ("otlp.event_name", self.event_name),
        ];
        for (name, text) in texts {
            if !text.is_empty() {
                fields.insert(name, Value::from(text));
            }
        }
        if self.severity != 0 {
            fields.insert("event.severity", Value::Int(self.severity));
        }
        let message = match self.body {
            // Only what is an object anyway: one index has one type for a field.
            Some(Value::Map(body)) => {
                fields.insert("otlp.body", Value::Map(body));
                None
            }
            body => body.map(message_of),
        };
        if message.is_some() {
            fields.reserve(MESSAGE);
        }
        for (name, value) in self.attributes {
            fields.insert(ecs(&name), value);
        }
        let mut fields = fields.into_map();
        if message.is_some() {
            fields.remove_path(MESSAGE);
        }
        let time = if self.time != 0 { self.time } else { self.observed };
        let time = if time == 0 { now } else { i64::try_from(time).unwrap_or(i64::MAX) };
        let text = message.as_deref().unwrap_or_default();
        events.add(text.as_bytes(), time, |event, _| {
            if message.is_none() {
                event.clear_message();
            }
            event.merge(&fields);
        });
    }
}

/// A body that is no map as text, as the collector's exporter for Elasticsearch writes it.
fn message_of(body: Value) -> Box<str> {
    match body {
        Value::Str(text) => text,
        Value::Float(number) => text_of_float(number).into(),
        body => json_of(&body).to_string().into(),
    }
}

fn text_of_float(number: f64) -> String {
    let size = number.abs();
    if number.is_infinite() {
        return format!("{}Infinity", if number > 0.0 { "" } else { "-" });
    }
    // Without an exponent it could be hundreds of digits.
    let is_plain = number.is_nan() || size == 0.0 || (1e-6..1e21).contains(&size);
    if is_plain { number.to_string() } else { format!("{number:e}") }
}

/// A number, or the text that stands for it in JSON of Protocol Buffers: that of an event could only be `null`.
pub(super) fn number(number: f64) -> Value {
    if number.is_finite() { Value::Float(number) } else { Value::from(text_of_float(number)) }
}

fn json_of(value: &Value) -> Json {
    match value {
        Value::Null | Value::Time(_) => Json::Null,
        Value::Bool(truth) => Json::from(*truth),
        Value::Int(number) => Json::from(*number),
        Value::UInt(number) => Json::from(*number),
        Value::Float(number) if number.is_finite() => Json::from(*number),
        // JSON has no such number.
        Value::Float(number) => Json::from(text_of_float(*number)),
        Value::Str(text) => Json::from(&**text),
        Value::List(items) => items.iter().map(json_of).collect(),
        Value::Map(map) => {
            map.iter().map(|(name, item)| (name.to_owned(), json_of(item))).collect()
        }
    }
}

/// Reads a request in Protocol Buffers. Returns how many records are malformed, which are left out.
///
/// # Errors
/// It is malformed around its records: nothing of it is used.
pub(super) fn protobuf(body: &[u8], now: i64, events: &mut Events<'_>) -> Result<u64, Malformed> {
    let mut rejected = 0;
    for field in Fields(body) {
        let (1, Field::Bytes(of_resource)) = field? else { continue };
        let mut attributes = Vec::new();
        for field in Fields(of_resource) {
            let (1, Field::Bytes(resource)) = field? else { continue };
            for field in Fields(resource) {
                if let (1, Field::Bytes(pair)) = field? {
                    attributes.push(attribute(pair, 0)?);
                    bounded(attributes.len())?;
                }
            }
        }
        let resource = Common::of_resource(attributes);
        for field in Fields(of_resource) {
            let (2, Field::Bytes(of_scope)) = field? else { continue };
            rejected += scope_logs(of_scope, &resource, now, events)?;
        }
    }
    Ok(rejected)
}

fn scope_logs(
    bytes: &[u8],
    resource: &Common,
    now: i64,
    events: &mut Events<'_>,
) -> Result<u64, Malformed> {
    let mut scope = Scope::default();
    for field in Fields(bytes) {
        let (1, Field::Bytes(of_scope)) = field? else { continue };
        for field in Fields(of_scope) {
            match field? {
                (1, Field::Bytes(name)) => scope.name = text_of(name),
                (2, Field::Bytes(version)) => scope.version = text_of(version),
                (3, Field::Bytes(pair)) => {
                    scope.attributes.push(attribute(pair, 0)?);
                    bounded(scope.attributes.len())?;
                }
                _ => {}
            }
        }
    }
    // A scope may have no record, and a resource many scopes.
    let mut common = None;
    let mut rejected = 0;
    for field in Fields(bytes) {
        let (2, Field::Bytes(bytes)) = field? else { continue };
        if events.is_beyond() {
            break;
        }
        let common =
            common.get_or_insert_with(|| resource.clone().with_scope(std::mem::take(&mut scope)));
        match record(bytes) {
            Ok(record) => record.add(common, now, events),
            Err(Malformed) => rejected += 1,
        }
    }
    Ok(rejected)
}

fn record(bytes: &[u8]) -> Result<Record, Malformed> {
    let mut record = Record::default();
    for field in Fields(bytes) {
        match field? {
            (1, Field::Fixed64(time)) => record.time = time,
            (2, Field::Varint(number)) => record.severity = number.cast_signed(),
            (3, Field::Bytes(text)) => record.severity_text = text_of(text),
            (5, Field::Bytes(body)) => record.body = value(body, 0)?,
            (6, Field::Bytes(pair)) => {
                record.attributes.push(attribute(pair, 0)?);
                bounded(record.attributes.len())?;
            }
            (9, Field::Bytes(trace)) => record.trace = id::<TRACE_BYTES>(trace),
            (10, Field::Bytes(span)) => record.span = id::<SPAN_BYTES>(span),
            (11, Field::Fixed64(time)) => record.observed = time,
            (12, Field::Bytes(name)) => record.event_name = text_of(name),
            _ => {}
        }
    }
    Ok(record)
}

fn attribute(pair: &[u8], depth: u32) -> Result<(String, Value), Malformed> {
    let (mut name, mut found) = (String::new(), None);
    for field in Fields(pair) {
        match field? {
            (1, Field::Bytes(key)) => name = text_of(key),
            (2, Field::Bytes(bytes)) => found = value(bytes, depth)?,
            _ => {}
        }
    }
    Ok((name, found.unwrap_or(Value::Null)))
}

/// Fails if there are more fields than an event may have.
fn bounded(fields: usize) -> Result<(), Malformed> {
    if fields > FIELDS_MAX { Err(Malformed) } else { Ok(()) }
}

/// `AnyValue`; `None` if it has none.
fn value(bytes: &[u8], depth: u32) -> Result<Option<Value>, Malformed> {
    if depth == DEPTH_MAX {
        return Err(Malformed);
    }
    let mut found = None;
    for field in Fields(bytes) {
        found = Some(match field? {
            (1, Field::Bytes(text)) => Value::from(text_of(text)),
            (2, Field::Varint(number)) => Value::Bool(number != 0),
            (3, Field::Varint(number)) => Value::Int(number.cast_signed()),
            (4, Field::Fixed64(bits)) => number(f64::from_bits(bits)),
            (5, Field::Bytes(list)) => {
                let mut items = Vec::new();
                for field in Fields(list) {
                    if let (1, Field::Bytes(item)) = field? {
                        items.push(value(item, depth + 1)?.unwrap_or(Value::Null));
                    }
                }
                Value::List(items)
            }
            (6, Field::Bytes(map)) => {
                let mut members = Vec::new();
                for field in Fields(map) {
                    if let (1, Field::Bytes(pair)) = field? {
                        members.push(attribute(pair, depth + 1)?);
                        bounded(members.len())?;
                    }
                }
                Value::Map(object_of(members))
            }
            (7, Field::Bytes(bytes)) => Value::from(STANDARD.encode(bytes)),
            _ => continue,
        });
    }
    Ok(found)
}

/// An id in hexadecimal; nothing if it has another length, or only zeros, which both mean that there is none.
fn id<const LENGTH: usize>(bytes: &[u8]) -> String {
    if bytes.len() != LENGTH || bytes.iter().all(|&byte| byte == 0) {
        return String::new();
    }
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |half: u8| char::from(DIGITS[usize::from(half)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The same of an id that is written in hexadecimal.
pub(super) fn id_of_text<const LENGTH: usize>(text: &str) -> String {
    let is_one = text.len() == 2 * LENGTH
        && text.bytes().all(|byte| byte.is_ascii_hexdigit())
        && text.bytes().any(|byte| byte != b'0');
    if is_one { text.to_ascii_lowercase() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_event::Map;

    #[test]
    fn names_are_sorted() {
        assert!(NAMES.is_sorted_by(|(one, _), (other, _)| one < other));
        assert_eq!(ecs("k8s.pod.name"), "kubernetes.pod.name");
        assert_eq!(ecs("http.route"), "http.route");
    }

    #[test]
    fn attributes_have_a_limit() {
        use super::super::wire::testing::bytes;
        let one = bytes(6, &bytes(1, b"a"));
        assert_eq!(record(&one.repeat(FIELDS_MAX)).unwrap().attributes.len(), FIELDS_MAX);
        assert!(record(&one.repeat(FIELDS_MAX + 1)).is_err());
    }

    #[test]
    fn values_inside_each_other_have_a_limit() {
        use super::super::wire::testing::bytes;
        let mut nested = bytes(1, b"x");
        for _ in 0..DEPTH_MAX - 1 {
            nested = bytes(5, &bytes(1, &nested));
        }
        assert!(value(&nested, 0).is_ok());
        assert_eq!(value(&bytes(5, &bytes(1, &nested)), 0), Err(Malformed));
    }

    #[test]
    fn a_number_that_json_does_not_have_is_a_text() {
        use super::super::wire::testing::fixed64;
        for (written, expected) in [
            (1.5_f64, Value::Float(1.5)),
            (f64::NAN, Value::from("NaN")),
            (f64::INFINITY, Value::from("Infinity")),
            (f64::NEG_INFINITY, Value::from("-Infinity")),
        ] {
            assert_eq!(value(&fixed64(4, written.to_bits()), 0), Ok(Some(expected)));
        }
    }

    #[test]
    fn a_body_that_is_no_map_has_a_text() {
        let list = vec![Value::Null, Value::Int(1), Value::Float(0.5), Value::from("a\"")];
        let mut map = Map::new();
        map.insert("k", Value::Float(f64::NAN));
        for (body, expected) in [
            (Value::from("a"), "a"),
            (Value::Bool(true), "true"),
            (Value::Int(-7), "-7"),
            (Value::Float(2.0), "2"),
            (Value::Float(0.0), "0"),
            (Value::Float(-0.000_25), "-0.00025"),
            (Value::Float(1e300), "1e300"),
            (Value::Float(-1.5e-9), "-1.5e-9"),
            (Value::Float(f64::NAN), "NaN"),
            (Value::Float(f64::NEG_INFINITY), "-Infinity"),
            (Value::List(list), r#"[null,1,0.5,"a\""]"#),
            (Value::List(vec![Value::Map(map), Value::List(vec![])]), r#"[{"k":"NaN"},[]]"#),
        ] {
            assert_eq!(&*message_of(body), expected);
        }
    }

    #[test]
    fn a_field_in_another_form_is_as_one_that_is_not_known() {
        use super::super::wire::testing::{bytes, fixed64, varint};
        let all = [
            varint(1, 5),
            fixed64(2, 5),
            varint(3, 5),
            varint(5, 5),
            fixed64(6, 5),
            varint(9, 5),
            bytes(11, b"a"),
            varint(12, 5),
            // A group, and then the text.
            vec![5 << 3 | 3, 5 << 3 | 4],
            bytes(5, &[varint(1, 5), bytes(2, b"a"), bytes(1, b"text"), varint(7, 5)].concat()),
        ];
        let read = record(&all.concat()).unwrap();
        assert_eq!(read.body, Some("text".into()));
        let times = (read.time, read.observed, read.severity, read.attributes.len());
        assert_eq!(times, (0, 0, 0, 0));
        let texts = [read.severity_text, read.trace, read.event_name];
        assert_eq!(texts, [""; 3]);
        assert_eq!(value(&varint(5, 5), 0), Ok(None));
    }
}
