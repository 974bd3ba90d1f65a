//! Logs of OpenTelemetry: resources, scopes and records, in Protocol Buffers or JSON.
//!
//! <https://opentelemetry.io/docs/specs/otlp/#otlphttp>. Fields are those of ECS, as the collector's exporter for
//! Elasticsearch names them with `mapping: ecs`; an attribute that ECS has under another name gets that.

use super::events::{Events, FIELDS_MAX, insert};
use super::wire::{Field, Fields, Malformed};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use skidder_event::{Map, Value};

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
pub(super) struct Common(pub(super) Map);

impl Common {
    /// The attributes of a resource.
    pub(super) fn of_resource(attributes: Vec<(String, Value)>) -> Self {
        let mut fields = Map::new();
        for (name, value) in attributes {
            insert(&mut fields, ecs(&name), value);
        }
        Self(fields)
    }

    /// With a scope.
    pub(super) fn with_scope(mut self, scope: Scope) -> Self {
        let Scope { name, version, attributes } = scope;
        for (field, text) in [("otlp.scope.name", name), ("otlp.scope.version", version)] {
            if !text.is_empty() {
                insert(&mut self.0, field, Value::from(text));
            }
        }
        if !attributes.is_empty() {
            let mut members = Map::new();
            for (name, value) in attributes {
                insert(&mut members, &name, value);
            }
            insert(&mut self.0, "otlp.scope.attributes", Value::Map(members));
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
                insert(&mut fields, name, Value::from(text));
            }
        }
        if self.severity != 0 {
            insert(&mut fields, "event.severity", Value::Int(self.severity));
        }
        let message = match self.body {
            Some(Value::Str(text)) => Some(text),
            Some(body) => {
                insert(&mut fields, "otlp.body", body);
                None
            }
            None => None,
        };
        for (name, value) in self.attributes {
            let name = ecs(&name);
            if name == "message" && message.is_some() {
                super::events::insert_label(&mut fields, name, value);
            } else {
                insert(&mut fields, name, value);
            }
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

/// Reads a request in Protocol Buffers. Returns how many records are malformed, which are left out.
///
/// # Errors
/// It is malformed around its records: nothing of it is used.
pub(super) fn protobuf(body: &[u8], now: i64, events: &mut Events<'_>) -> Result<u64, Malformed> {
    let mut rejected = 0;
    for field in Fields(body) {
        let (1, field) = field? else { continue };
        let of_resource = field.bytes()?;
        let mut attributes = Vec::new();
        for field in Fields(of_resource) {
            let (1, field) = field? else { continue };
            for field in Fields(field.bytes()?) {
                if let (1, field) = field? {
                    attributes.push(attribute(field, 0)?);
                    bounded(attributes.len())?;
                }
            }
        }
        let resource = Common::of_resource(attributes);
        for field in Fields(of_resource) {
            let (2, field) = field? else { continue };
            rejected += scope_logs(field.bytes()?, &resource, now, events)?;
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
        let (1, field) = field? else { continue };
        for field in Fields(field.bytes()?) {
            match field? {
                (1, field) => scope.name = field.text()?,
                (2, field) => scope.version = field.text()?,
                (3, field) => {
                    scope.attributes.push(attribute(field, 0)?);
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
        let (2, field) = field? else { continue };
        if events.is_beyond() {
            break;
        }
        let common =
            common.get_or_insert_with(|| resource.clone().with_scope(std::mem::take(&mut scope)));
        match record(field.bytes()?) {
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
            (1, field) => record.time = field.fixed64()?,
            (2, field) => record.severity = field.varint()?.cast_signed(),
            (3, field) => record.severity_text = field.text()?,
            (5, field) => record.body = value(field.bytes()?, 0)?,
            (6, field) => {
                record.attributes.push(attribute(field, 0)?);
                bounded(record.attributes.len())?;
            }
            (9, field) => record.trace = id::<TRACE_BYTES>(field.bytes()?),
            (10, field) => record.span = id::<SPAN_BYTES>(field.bytes()?),
            (11, field) => record.observed = field.fixed64()?,
            (12, field) => record.event_name = field.text()?,
            _ => {}
        }
    }
    Ok(record)
}

fn attribute(field: Field<'_>, depth: u32) -> Result<(String, Value), Malformed> {
    let (mut name, mut found) = (String::new(), None);
    for field in Fields(field.bytes()?) {
        match field? {
            (1, field) => name = field.text()?,
            (2, field) => found = value(field.bytes()?, depth)?,
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
            (1, field) => Value::from(field.text()?),
            (2, field) => Value::Bool(field.varint()? != 0),
            (3, field) => Value::Int(field.varint()?.cast_signed()),
            (4, field) => Value::Float(f64::from_bits(field.fixed64()?)),
            (5, field) => {
                let mut items = Vec::new();
                for field in Fields(field.bytes()?) {
                    if let (1, field) = field? {
                        items.push(value(field.bytes()?, depth + 1)?.unwrap_or(Value::Null));
                    }
                }
                Value::List(items)
            }
            (6, field) => {
                let mut members = Map::new();
                for field in Fields(field.bytes()?) {
                    if let (1, field) = field? {
                        let (name, value) = attribute(field, depth + 1)?;
                        members.insert(&name, value);
                        bounded(members.len())?;
                    }
                }
                Value::Map(members)
            }
            (7, field) => Value::from(STANDARD.encode(field.bytes()?)),
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
}
