//! Filebeat's hash for a partition: FNV-1a of 32 bits over the key, or over fields.
//!
//! Follows libbeat's `outputs/kafka/partition.go`, so that the same key goes to the same partition when
//! Filebeat and skidder write into one topic. `testdata/partitions.go` makes the vectors.

use skidder_event::{EventRef, Path, ValueRef};
use std::fmt::Write as _;

const OFFSET_BASIS: u32 = 0x811c_9dc5;
const PRIME: u32 = 0x0100_0193;

/// FNV-1a, 32 bits (<http://www.isthe.com/chongo/tech/comp/fnv/>).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fnv(u32);

impl Default for Fnv {
    fn default() -> Self {
        Self(OFFSET_BASIS)
    }
}

impl Fnv {
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u32::from(byte)).wrapping_mul(PRIME);
        }
    }

    /// The partition, of `count`: the sign bit of the hash does not count.
    pub(crate) fn partition(self, count: usize) -> usize {
        (self.0 & 0x7fff_ffff) as usize % count
    }

    /// Adds a value; `false`: it is of a kind that has no hash.
    fn write_value(&mut self, value: ValueRef<'_>) -> bool {
        match value {
            ValueRef::Str(text) => self.write(text),
            ValueRef::Bool(truth) => self.write(&[u8::from(truth)]),
            ValueRef::Int(number) => self.write(&number.to_le_bytes()),
            ValueRef::UInt(number) => self.write(&number.to_le_bytes()),
            ValueRef::Float(number) => self.write(float_text(number).as_bytes()),
            ValueRef::Null | ValueRef::Time(_) | ValueRef::List(_) | ValueRef::Map(_) => {
                return false;
            }
        }
        true
    }
}

/// The hash of a key.
pub(crate) fn of_key(key: &[u8]) -> Fnv {
    let mut hash = Fnv::default();
    hash.write(key);
    hash
}

/// The hash of fields, in their order. The error is the first field that has none: it is missing, or it is
/// neither text nor number nor boolean.
pub(crate) fn of_fields<'p>(event: EventRef<'_>, paths: &'p [Path]) -> Result<Fnv, &'p Path> {
    let mut hash = Fnv::default();
    for path in paths {
        // In Filebeat neither is a field.
        let field = if path.is_timestamp() || path.is_metadata() { None } else { event.get(path) };
        if !field.is_some_and(|value| hash.write_value(value)) {
            return Err(path);
        }
    }
    Ok(hash)
}

/// As Go's `strconv.FormatFloat(number, 'g', -1, 32)`: shortest digits of the number with 32 bits; an
/// exponent, of at least two digits, below -4 and from 6 on.
fn float_text(number: f64) -> String {
    let number = number as f32;
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let shortest = format!("{number:e}");
    let (digits, exponent) = shortest.split_once('e').expect("`e` writes an exponent");
    let exponent: i32 = exponent.parse().expect("`e` writes a number");
    if (-4..6).contains(&exponent) {
        return format!("{number}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    let mut text = digits.to_owned();
    write!(text, "e{sign}{:02}", exponent.abs()).expect("a string takes everything");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_event::{Base, Batch, Map, Provenance, Row, SourceId, Text, Value};
    use std::sync::Arc;

    const VECTORS: &str = include_str!("../testdata/partitions.tsv");
    const COUNTS: [usize; 7] = [1, 2, 3, 7, 12, 100, 4096];

    fn event_with(fields: &Map) -> Batch {
        let provenance = Provenance::new(SourceId(1), 0..1);
        let base = Arc::new(Base::new(fields, &Map::new()));
        let mut batch = Batch::new(Vec::new(), true, base, provenance);
        batch.push(Row::new(0, 0, Text::default(), 0));
        batch
    }

    fn bytes_of(hex: &str) -> Vec<u8> {
        let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
        (0..hex.len()).step_by(2).map(digit).collect()
    }

    /// Keys that are text, and whether a map can hold them.
    fn value_of(kind: u8, text: &str) -> Option<Value> {
        Some(match kind {
            b's' => Value::from(String::from_utf8(bytes_of(text)).ok()?.as_str()),
            b'i' => Value::Int(text.parse().expect("an integer")),
            b'u' => Value::UInt(text.parse().expect("an integer")),
            b'b' => Value::Bool(text == "true"),
            b'f' => Value::Float(f64::from_bits(text.parse().expect("bits"))),
            _ => panic!("no such kind"),
        })
    }

    #[test]
    fn partitions_are_those_of_filebeat() {
        let mut keys = 0;
        for line in VECTORS.lines() {
            let columns: Vec<&str> = line.split('\t').collect();
            let texts: Vec<String> = serde_json::from_str(columns[1]).expect("a list");
            let expected: Vec<usize> =
                columns[3..].iter().map(|text| text.parse().expect("a partition")).collect();
            let check = |hash: Fnv| {
                assert_eq!(hash.0.to_string(), columns[2], "{line}");
                assert_eq!(COUNTS.map(|count| hash.partition(count)).to_vec(), expected, "{line}");
            };
            if columns[0] == "s" {
                keys += 1;
                check(of_key(&bytes_of(&texts[0])));
            }
            let values: Option<Vec<Value>> =
                columns[0].bytes().zip(&texts).map(|(kind, text)| value_of(kind, text)).collect();
            let Some(values) = values else { continue };
            let mut fields = Map::new();
            let mut paths = Vec::new();
            for (number, value) in values.into_iter().enumerate() {
                let name = format!("f{number}");
                fields.insert(&name, value);
                paths.push(Path::parse(&name).expect("a path"));
            }
            let batch = event_with(&fields);
            check(of_fields(batch.event(0), &paths).expect("all can be hashed"));
        }
        assert!(keys > 40, "{keys}");
    }

    #[test]
    fn what_has_no_hash_is_named() {
        let mut fields = Map::new();
        fields.insert("text", Value::from("x"));
        fields.insert("nothing", Value::Null);
        fields.insert("object", Value::Map(Map::new()));
        let batch = event_with(&fields);
        for name in ["missing", "nothing", "object", "@timestamp", "@metadata.x"] {
            let paths = ["text", name].map(|name| Path::parse(name).expect("a path"));
            let failed = of_fields(batch.event(0), &paths).expect_err("it has no hash");
            assert_eq!(failed.as_str(), name);
        }
    }
}
