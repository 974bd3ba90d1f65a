//! `custom_definitions`: files with fields of the user's own, in the format of Logstash's codec for NetFlow.
//!
//! A file for NetFlow 9 maps numbers of fields to `[TYPE, NAME]`; one for IPFIX maps numbers of enterprises to such maps.
//! A type is a name as `:uint32`, or a number of bytes; `[:skip]` leaves a field out.

use skidder_config::{Value, yaml_value};
use skidder_netflow::{CustomField, Kind};
use std::collections::BTreeMap;

/// The types of a definition, with the names that Logstash has for them.
const TYPES: [(&str, Kind); 27] = [
    ("uint8", Kind::Unsigned(1)),
    ("uint15", Kind::Unsigned(15)),
    ("uint16", Kind::Unsigned(2)),
    ("uint24", Kind::Unsigned(24)),
    ("uint32", Kind::Unsigned(4)),
    ("uint64", Kind::Unsigned(8)),
    ("int8", Kind::Signed(1)),
    ("int15", Kind::Signed(15)),
    ("int16", Kind::Signed(2)),
    ("int24", Kind::Signed(24)),
    ("int32", Kind::Signed(4)),
    ("int64", Kind::Signed(8)),
    ("float", Kind::Float(4)),
    ("double", Kind::Float(8)),
    ("ip4_addr", Kind::V4),
    ("ip4addr", Kind::V4),
    ("ip6_addr", Kind::V6),
    ("ip6addr", Kind::V6),
    ("mac_addr", Kind::Mac),
    ("macaddr", Kind::Mac),
    ("string", Kind::Text),
    ("octet_array", Kind::Bytes),
    ("octetarray", Kind::Bytes),
    ("acl_id_asa", Kind::AclId),
    // What these mean is in no standard: they are read over, as in Filebeat.
    ("mpls_label_stack_octets", Kind::Unsupported),
    ("application_id", Kind::Unsupported),
    ("forwarding_status", Kind::Unsupported),
];

const EXPECTED: &str = "expected a number of a field with `[TYPE, NAME]`, as in `2: [:uint32, :packetDeltaCount]`, or a \
                        number of an enterprise with a map of these";

/// Reads a file, which is called `name` in messages. The error is a sentence without the name.
pub(super) fn read(name: &str, text: &str) -> Result<Vec<CustomField>, String> {
    let value = yaml_value(name, text).map_err(|problems| problems.to_string())?;
    let map = match value {
        Value::Map(map) => map,
        Value::Null => return Ok(Vec::new()),
        _ => return Err(EXPECTED.to_owned()),
    };
    let is_list = |value: &Value| matches!(value, Value::List(_));
    let is_map = |value: &Value| matches!(value, Value::Map(_));
    let mut fields = Vec::new();
    if map.values().all(is_list) {
        add(&mut fields, 0, &map)?;
    } else if map.values().all(is_map) {
        for (enterprise, of_enterprise) in &map {
            let number = number(enterprise).and_then(|it| u32::try_from(it).ok());
            let number =
                number.ok_or_else(|| format!("`{enterprise}` is no number of an enterprise"))?;
            if let Value::Map(of_enterprise) = of_enterprise {
                add(&mut fields, number, of_enterprise)
                    .map_err(|error| format!("enterprise {number}: {error}"))?;
            }
        }
    } else {
        return Err(EXPECTED.to_owned());
    }
    Ok(fields)
}

fn add(
    fields: &mut Vec<CustomField>,
    enterprise: u32,
    map: &BTreeMap<String, Value>,
) -> Result<(), String> {
    let first = fields.len();
    for (key, value) in map {
        let id = number(key).and_then(|it| u16::try_from(it).ok());
        let id = id.ok_or_else(|| format!("`{key}` is no number of a field from 0 to 65535"))?;
        let Some((kind, name)) = field(value).map_err(|error| format!("field {key}: {error}"))?
        else {
            continue;
        };
        if fields[first..].iter().any(|field| field.id == id) {
            return Err(format!("field {id} is there twice"));
        }
        fields.push(CustomField { enterprise, id, name, kind });
    }
    Ok(())
}

/// The type and the name of a field; nothing for one that is to be left out.
fn field(value: &Value) -> Result<Option<(Kind, String)>, String> {
    const WRONG: &str = "expected `[TYPE, NAME]` or `[:skip]`";
    let Value::List(items) = value else { return Err(WRONG.to_owned()) };
    let (of_type, name) = match &items[..] {
        [Value::String(skip)] if symbol(skip) == "skip" => return Ok(None),
        [of_type, Value::String(name)] if !symbol(name).is_empty() => (of_type, symbol(name)),
        _ => return Err(WRONG.to_owned()),
    };
    let of_type = match of_type {
        Value::String(name) => symbol(name).to_owned(),
        // So many bytes, or four.
        Value::Int(0) => "uint32".to_owned(),
        Value::Int(bytes) => format!("uint{}", bytes.wrapping_mul(8)),
        _ => return Err(WRONG.to_owned()),
    };
    let kind = TYPES.iter().find(|(known, _)| *known == of_type);
    let (_, kind) = kind.ok_or_else(|| format!("`{of_type}` is no type"))?;
    Ok(Some((*kind, name.to_owned())))
}

/// A symbol of Ruby without its colon.
fn symbol(text: &str) -> &str {
    text.strip_prefix(':').unwrap_or(text)
}

/// A whole number as Go writes it in a program.
fn number(text: &str) -> Option<i64> {
    let (digits, radix) = match text.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => (&text[2..], 16),
        Some("0o") => (&text[2..], 8),
        Some("0b") => (&text[2..], 2),
        _ => match text.strip_prefix('0').filter(|rest| !rest.is_empty()) {
            Some(rest) => (rest, 8),
            None => (text, 10),
        },
    };
    i64::from_str_radix(digits, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Result<Vec<String>, String> {
        let fields = read("f.yml", text)?;
        let show = |field: CustomField| {
            format!("{}.{} {} {:?}", field.enterprise, field.id, field.name, field.kind)
        };
        Ok(fields.into_iter().map(show).collect())
    }

    #[test]
    fn fields_of_netflow_and_of_ipfix_are_read() {
        let of_netflow = "2:\n- 4\n- :packetDeltaCount\n0x10:\n- :ip4_addr\n- address\n7: [':skip']\n8: [0, x]\n";
        assert_eq!(
            names(of_netflow).unwrap(),
            ["0.16 address V4", "0.2 packetDeltaCount Unsigned(4)", "0.8 x Unsigned(4)"]
        );
        let of_ipfix = "9:\n  12235:\n  - :string\n  - :app\n0:\n  1:\n  - :uint64\n  - :octets\n";
        assert_eq!(names(of_ipfix).unwrap(), ["0.1 octets Unsigned(8)", "9.12235 app Text"]);
        assert_eq!(names("").unwrap(), [""; 0]);
    }

    #[test]
    fn a_wrong_file_is_refused_with_the_place() {
        for (text, expected) in [
            ("- 1", "expected a number of a field"),
            ("a: b", "expected a number of a field"),
            ("1: [:uint8, a]\n2: {1: [:uint8, a]}", "expected a number of a field"),
            ("70000: [:uint8, a]", "`70000` is no number of a field"),
            ("-1: {1: [:uint8, a]}", "`-1` is no number of an enterprise"),
            ("9: {1: [:uint7, a]}", "enterprise 9: field 1: `uint7` is no type"),
            ("1: [:uint8]", "field 1: expected `[TYPE, NAME]`"),
            ("1: [:uint8, ':']", "field 1: expected"),
            ("1: [:uint8, a]\n0x1: [:uint8, b]", "field 1 is there twice"),
            ("{", "f.yml"),
        ] {
            let error = names(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
