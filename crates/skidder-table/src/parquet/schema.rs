//! The tree of a schema, and how a row is put together along it from the levels of its columns (S. Melnik et al., Dremel,
//! 2010).

use super::Wrong;
use super::columns::Column;
use super::values::Scalar;
use parquet::basic::{ConvertedType, LogicalType, Repetition};
use parquet::schema::types::Type;
use skidder_parse::records::{Escapes, push_json_text};

/// Groups inside each other.
const DEPTH_MAX: usize = 64;

/// A field of an object.
pub(super) struct Field {
    /// With its quotes and a colon.
    key: Vec<u8>,
    node: Node,
}

/// What a field has.
struct Node {
    /// Its columns: from here, up to there.
    first: usize,
    end: usize,
    /// It is null as long as less than that is defined; nothing if it cannot be.
    defined_at: Option<i16>,
    kind: Kind,
}

enum Kind {
    Scalar(Scalar),
    Object(Vec<Field>),
    /// Elements are there if so much is defined, and follow while a level repeats that.
    List {
        defined_at: i16,
        repeats: i16,
        element: Box<Node>,
    },
}

/// Levels above a node, and the number of its first column.
#[derive(Clone, Copy)]
struct Above {
    definition: i16,
    repetition: i16,
    depth: usize,
}

/// The fields of a schema.
pub(super) fn fields_of(schema: &Type) -> Result<Vec<Field>, Wrong> {
    let mut column = 0;
    fields(schema, Above { definition: 0, repetition: 0, depth: 0 }, &mut column)
}

/// The fields of a group, by name; of two with one name the last one counts, and both are there for their columns.
fn fields(group: &Type, above: Above, column: &mut usize) -> Result<Vec<Field>, Wrong> {
    if above.depth > DEPTH_MAX {
        return Err(Wrong::new(format!("more than {DEPTH_MAX} groups are inside each other")));
    }
    let mut all: Vec<(&str, Node)> = Vec::new();
    for field in group.get_fields() {
        all.push((field.name(), node(field, above, column)?));
    }
    all.sort_by_key(|(name, _)| *name);
    let field = |(name, node): (&str, Node)| Field { key: key_of(name), node };
    Ok(all.into_iter().map(field).collect())
}

fn key_of(name: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(name.len() + 3);
    push_json_text(name.as_bytes(), Escapes::OfArrow, &mut key);
    key.push(b':');
    key
}

fn is_list(of: &Type) -> bool {
    let info = of.get_basic_info();
    info.converted_type() == ConvertedType::LIST
        || matches!(info.logical_type_ref(), Some(LogicalType::List))
}

fn is_map(of: &Type) -> bool {
    let info = of.get_basic_info();
    matches!(info.converted_type(), ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE)
        || matches!(info.logical_type_ref(), Some(LogicalType::Map))
}

fn repetition_of(of: &Type) -> Repetition {
    let info = of.get_basic_info();
    if info.has_repetition() { info.repetition() } else { Repetition::REQUIRED }
}

fn node(of: &Type, above: Above, column: &mut usize) -> Result<Node, Wrong> {
    let above = Above { depth: above.depth + 1, ..above };
    match repetition_of(of) {
        Repetition::REQUIRED => present(of, above, None, column),
        Repetition::OPTIONAL => {
            let definition = above.definition + 1;
            present(of, Above { definition, ..above }, Some(definition), column)
        }
        // Without a group around it: a list that cannot be null.
        Repetition::REPEATED => {
            let first = *column;
            let inside = repeated(above);
            let element = present(of, inside, None, column)?;
            Ok(list(first, None, inside, element))
        }
    }
}

fn repeated(above: Above) -> Above {
    Above { definition: above.definition + 1, repetition: above.repetition + 1, ..above }
}

fn list(first: usize, defined_at: Option<i16>, inside: Above, element: Node) -> Node {
    let end = element.end;
    let kind = Kind::List {
        defined_at: inside.definition,
        repeats: inside.repetition,
        element: Box::new(element),
    };
    Node { first, end, defined_at, kind }
}

/// What is there if it is not null.
fn present(
    of: &Type,
    above: Above,
    defined_at: Option<i16>,
    column: &mut usize,
) -> Result<Node, Wrong> {
    let first = *column;
    if of.is_primitive() {
        *column += 1;
        let kind = Kind::Scalar(Scalar::of(of));
        return Ok(Node { first, end: *column, defined_at, kind });
    }
    if of.get_fields().is_empty() {
        return Err(Wrong::new(format!("the group `{}` has no fields", of.name())));
    }
    if is_list(of) || is_map(of) {
        let [inner] = of.get_fields() else {
            return Err(Wrong::new(format!("the list `{}` has more than one field", of.name())));
        };
        if repetition_of(inner) != Repetition::REPEATED {
            return Err(Wrong::new(format!("the list `{}` has nothing that repeats", of.name())));
        }
        let inside = repeated(above);
        let element = element_of(of, inner, inside, column)?;
        return Ok(list(first, defined_at, inside, element));
    }
    let kind = Kind::Object(fields(of, above, column)?);
    Ok(Node { first, end: *column, defined_at, kind })
}

/// The element of a list or map; `inner` is what repeats. See "Nested Types" in the format's `LogicalTypes.md`.
fn element_of(of: &Type, inner: &Type, inside: Above, column: &mut usize) -> Result<Node, Wrong> {
    let first = *column;
    if inner.is_primitive() {
        return present(inner, inside, None, column);
    }
    match inner.get_fields() {
        [key, value] if is_map(of) => {
            let key = Field { key: key_of("key"), node: node(key, inside, column)? };
            let value = Field { key: key_of("value"), node: node(value, inside, column)? };
            let kind = Kind::Object(vec![key, value]);
            Ok(Node { first, end: *column, defined_at: None, kind })
        }
        [element] if inner.name() != "array" && inner.name() != format!("{}_tuple", of.name()) => {
            node(element, inside, column)
        }
        _ => {
            let kind = Kind::Object(fields(inner, inside, column)?);
            Ok(Node { first, end: *column, defined_at: None, kind })
        }
    }
}

/// Appends the next row.
pub(super) fn write_object(
    fields: &[Field],
    columns: &mut [Column],
    into: &mut Vec<u8>,
) -> Result<(), Wrong> {
    into.push(b'{');
    let mut is_first = true;
    for (number, field) in fields.iter().enumerate() {
        let start = into.len();
        if !is_first {
            into.push(b',');
        }
        into.extend_from_slice(&field.key);
        field.node.write(columns, into)?;
        // Another one has the same name.
        if fields.get(number + 1).is_some_and(|next| next.key == field.key) {
            into.truncate(start);
        } else {
            is_first = false;
        }
    }
    into.push(b'}');
    Ok(())
}

impl Node {
    fn write(&self, columns: &mut [Column], into: &mut Vec<u8>) -> Result<(), Wrong> {
        let missing = || Wrong::new("a group of rows has fewer columns than the schema");
        let definition = columns.get(self.first).ok_or_else(missing)?.definition()?;
        if self.defined_at.is_some_and(|level| definition < level) {
            into.extend_from_slice(b"null");
            return self.pass(columns);
        }
        match &self.kind {
            Kind::Scalar(scalar) => {
                let (values, place) = columns.get_mut(self.first).ok_or_else(missing)?.take();
                scalar.write(values, place, into)
            }
            Kind::Object(fields) => write_object(fields, columns, into),
            Kind::List { defined_at, .. } if definition < *defined_at => {
                into.extend_from_slice(b"[]");
                self.pass(columns)
            }
            Kind::List { repeats, element, .. } => {
                into.push(b'[');
                loop {
                    element.write(columns, into)?;
                    let next = columns.get(self.first).ok_or_else(missing)?;
                    if next.repetition() != *repeats {
                        break;
                    }
                    into.push(b',');
                }
                into.push(b']');
                Ok(())
            }
        }
    }

    /// Nothing of it is there: each of its columns has one level for that.
    fn pass(&self, columns: &mut [Column]) -> Result<(), Wrong> {
        let own = columns.get_mut(self.first..self.end);
        let own =
            own.ok_or_else(|| Wrong::new("a group of rows has fewer columns than the schema"))?;
        own.iter_mut().for_each(Column::pass);
        Ok(())
    }
}
