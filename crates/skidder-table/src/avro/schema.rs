//! The schema of a file, which is JSON.

use super::block::Wrong;
use serde_json::Value;
use skidder_parse::records::{Escapes, push_json_text};
use std::collections::HashMap;

/// Types inside each other.
const DEPTH_MAX: usize = 64;

/// A schema: its types, of which the last one is the whole.
#[derive(Debug)]
pub(super) struct Schema {
    /// Those that have names.
    pub(super) named: Vec<Type>,
    pub(super) root: Type,
}

/// What a value is.
#[derive(Clone, Debug)]
pub(super) enum Type {
    Null,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    Text,
    /// The keys, with their quotes and a colon.
    Record(Vec<(Vec<u8>, Self)>),
    /// The symbols, with their quotes.
    Enum(Vec<Vec<u8>>),
    List(Box<Self>),
    Map(Box<Self>),
    Union(Vec<Self>),
    Fixed(usize),
    /// The one that has this number.
    Named(usize),
    /// Digits behind the point, of bytes or of this many.
    Decimal(i32, Option<usize>),
    Date,
    /// Since midnight, in so many nanoseconds.
    Time(i64),
    /// Since 1970, in so many nanoseconds.
    Timestamp(i64),
    Uuid,
}

/// Types that have names so far.
#[derive(Default)]
struct Names {
    numbers: HashMap<String, usize>,
    types: Vec<Option<Type>>,
}

impl Schema {
    pub(super) fn parse(text: &str) -> Result<Self, Wrong> {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| Wrong::new(format!("its schema is no JSON: {error}")))?;
        let mut names = Names::default();
        let root = names.parse(&value, "", 0)?;
        let named: Option<Vec<Type>> = names.types.into_iter().collect();
        let named = named.ok_or_else(|| Wrong::new("a type of its schema has no end"))?;
        Ok(Self { named, root })
    }
}

fn quoted(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() + 3);
    push_json_text(text.as_bytes(), Escapes::OfArrow, &mut bytes);
    bytes
}

fn text_of<'a>(value: &'a Value, name: &str) -> Result<&'a str, Wrong> {
    let missing = || Wrong::new(format!("a type of its schema has no `{name}`"));
    value[name].as_str().ok_or_else(missing)
}

fn list_of<'a>(value: &'a Value, name: &str) -> Result<&'a [Value], Wrong> {
    let missing = || Wrong::new(format!("a type of its schema has no list `{name}`"));
    value[name].as_array().map(Vec::as_slice).ok_or_else(missing)
}

impl Names {
    fn parse(&mut self, value: &Value, space: &str, depth: usize) -> Result<Type, Wrong> {
        if depth > DEPTH_MAX {
            return Err(Wrong::new("more than 64 types of its schema are inside each other"));
        }
        match value {
            Value::String(name) => self.by_name(name, space),
            Value::Array(types) => {
                let types = types.iter().map(|of| self.parse(of, space, depth + 1));
                Ok(Type::Union(types.collect::<Result<_, _>>()?))
            }
            Value::Object(_) => self.complex(value, space, depth),
            _ => Err(Wrong::new("a type of its schema is neither a text nor an object nor a list")),
        }
    }

    fn by_name(&self, name: &str, space: &str) -> Result<Type, Wrong> {
        let known = match name {
            "null" => Type::Null,
            "boolean" => Type::Boolean,
            "int" => Type::Int,
            "long" => Type::Long,
            "float" => Type::Float,
            "double" => Type::Double,
            "bytes" => Type::Bytes,
            "string" => Type::Text,
            name => {
                let full = full_name(name, space);
                let number = self.numbers.get(&full).or_else(|| self.numbers.get(name));
                let missing = || Wrong::new(format!("its schema has no type `{name}`"));
                return number.copied().map(Type::Named).ok_or_else(missing);
            }
        };
        Ok(known)
    }

    fn complex(&mut self, value: &Value, space: &str, depth: usize) -> Result<Type, Wrong> {
        let kind = match &value["type"] {
            Value::String(kind) => kind.as_str(),
            // A type around another one.
            inner => return self.parse(inner, space, depth + 1),
        };
        let plain = match kind {
            "array" => {
                return Ok(Type::List(Box::new(self.parse(&value["items"], space, depth + 1)?)));
            }
            "map" => {
                return Ok(Type::Map(Box::new(self.parse(&value["values"], space, depth + 1)?)));
            }
            "record" | "error" | "enum" | "fixed" => return self.named(value, kind, space, depth),
            kind => self.by_name(kind, space)?,
        };
        Ok(logical(value, plain))
    }

    /// A type that others can name, itself included.
    fn named(
        &mut self,
        value: &Value,
        kind: &str,
        space: &str,
        depth: usize,
    ) -> Result<Type, Wrong> {
        let space = value["namespace"].as_str().unwrap_or(space);
        let full = full_name(text_of(value, "name")?, space);
        let space = full.rsplit_once('.').map_or("", |(space, _)| space).to_owned();
        let number = self.types.len();
        self.types.push(None);
        self.numbers.insert(full, number);
        let of = match kind {
            "enum" => {
                let symbols = list_of(value, "symbols")?.iter();
                Type::Enum(symbols.map(|name| quoted(name.as_str().unwrap_or_default())).collect())
            }
            "fixed" => {
                let size = value["size"].as_u64().and_then(|size| usize::try_from(size).ok());
                let size = size.ok_or_else(|| Wrong::new("a type `fixed` has no `size`"))?;
                logical(value, Type::Fixed(size))
            }
            _ => {
                let mut fields = Vec::new();
                for field in list_of(value, "fields")? {
                    let mut key = quoted(text_of(field, "name")?);
                    key.push(b':');
                    fields.push((key, self.parse(&field["type"], &space, depth + 1)?));
                }
                Type::Record(fields)
            }
        };
        self.types[number] = Some(of);
        Ok(Type::Named(number))
    }
}

fn full_name(name: &str, space: &str) -> String {
    if space.is_empty() || name.contains('.') { name.to_owned() } else { format!("{space}.{name}") }
}

/// What a type is by its `logicalType`; one that does not fit is passed over, as the specification says.
fn logical(value: &Value, plain: Type) -> Type {
    let scale = || value["scale"].as_i64().and_then(|scale| i32::try_from(scale).ok()).unwrap_or(0);
    match (value["logicalType"].as_str().unwrap_or_default(), plain) {
        ("decimal", Type::Bytes) => Type::Decimal(scale(), None),
        ("decimal", Type::Fixed(size)) => Type::Decimal(scale(), Some(size)),
        ("date", Type::Int) => Type::Date,
        ("time-millis", Type::Int) => Type::Time(1_000_000),
        ("time-micros", Type::Long) => Type::Time(1_000),
        ("timestamp-millis" | "local-timestamp-millis", Type::Long) => Type::Timestamp(1_000_000),
        ("timestamp-micros" | "local-timestamp-micros", Type::Long) => Type::Timestamp(1_000),
        ("timestamp-nanos" | "local-timestamp-nanos", Type::Long) => Type::Timestamp(1),
        ("uuid", Type::Fixed(16)) => Type::Uuid,
        (_, plain) => plain,
    }
}
