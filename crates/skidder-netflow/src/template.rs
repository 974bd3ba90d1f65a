//! Templates: what the records of version 9 and of IPFIX are made of.

use crate::cursor::Cursor;
use crate::fields::{Field, Fields};
use crate::protocol::{FlowKind, Protocol};
use crate::value::Value;
use std::collections::HashSet;
use std::sync::Arc;

/// Templates that one exporter can have at the same time.
pub const TEMPLATES_OF_EXPORTER_MAX: usize = 1024;

/// The length of a field whose length is in each record.
const VARIABLE: u16 = u16::MAX;

/// The bit of a field's number that says that an enterprise follows.
const ENTERPRISE: u16 = 1 << 15;

/// The first number of a template.
pub(crate) const FIRST_ID: u16 = 256;

/// What a template takes beside itself and its columns, in bytes: the counters of its `Arc`, a slot of a table that is half
/// full, and what three allocations are rounded up to.
const OVERHEAD_BYTES: usize = 144;

/// A field of a template, as the exporter describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) enterprise: u32,
    pub(crate) id: u16,
    /// In bytes; [`VARIABLE`] if it is in each record.
    pub(crate) length: u16,
}

/// What the records of a set are made of.
#[derive(Debug)]
pub(crate) struct Template {
    pub(crate) id: u16,
    /// For options: how many of the first fields say what a record is about.
    pub(crate) scope: Option<usize>,
    columns: Box<[Column]>,
    /// Of each column; nothing if it is not known or has a wrong length.
    fields: Box<[Option<Arc<Field>>]>,
    /// Bytes of the shortest record.
    pub(crate) length: usize,
    is_variable: bool,
    /// Several fields have one name: of those that can be read the last one counts.
    has_twice: bool,
}

impl Template {
    pub(crate) fn new(
        id: u16,
        scope: Option<usize>,
        columns: Box<[Column]>,
        known: &Fields,
    ) -> Self {
        let find = |column: &Column| {
            let field = known.get(column.enterprise, column.id)?;
            let fits = column.length == VARIABLE || field.kind.fits(column.length);
            fits.then(|| Arc::clone(field))
        };
        let fields: Box<[Option<Arc<Field>>]> = columns.iter().map(find).collect();
        let (of_scope, others) = fields.split_at(scope.unwrap_or(0).min(fields.len()));
        let has_twice = [of_scope, others].into_iter().any(|part| {
            let mut names = HashSet::new();
            !part.iter().flatten().all(|field| names.insert(&*field.name))
        });
        let length = |column: &Column| {
            if column.length == VARIABLE { 1 } else { usize::from(column.length) }
        };
        Self {
            id,
            scope,
            length: columns.iter().map(length).sum(),
            is_variable: columns.iter().any(|column| column.length == VARIABLE),
            has_twice,
            columns,
            fields,
        }
    }

    /// Its columns, and their fields.
    pub(crate) fn columns(&self) -> impl Iterator<Item = (&Column, Option<&Arc<Field>>)> {
        self.columns.iter().zip(self.fields.iter().map(Option::as_ref))
    }

    /// Whether the exporter has described the same.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.scope == other.scope && self.columns == other.columns
    }

    /// The memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        let column = size_of::<Column>() + size_of::<Option<Arc<Field>>>();
        size_of::<Self>() + OVERHEAD_BYTES + self.columns.len() * column
    }

    /// What its records are; the scope counts only values that are there, which [`Template::read`] returns.
    pub(crate) fn kind(&self, scope: usize) -> FlowKind {
        if self.scope.is_some() { FlowKind::Options { scope } } else { FlowKind::Flow }
    }

    /// How many records are in so many bytes; `None` if only their end shows it.
    pub(crate) fn count(&self, len: usize) -> Option<usize> {
        if self.is_variable { None } else { len.checked_div(self.length) }
    }

    /// Reads a record. Returns how many values of the scope it has; `None` if the bytes end before.
    pub(crate) fn read<'a>(
        &'a self,
        cursor: &mut Cursor<'a>,
        values: &mut Vec<(&'a Field, Value<'a>)>,
    ) -> Option<usize> {
        values.clear();
        let (scope_len, mut scope) = (self.scope.unwrap_or(0), 0);
        for (at, (column, field)) in self.columns.iter().zip(&self.fields).enumerate() {
            let length = match column.length {
                VARIABLE => match cursor.u8()? {
                    u8::MAX => usize::from(cursor.u16()?),
                    short => usize::from(short),
                },
                length => usize::from(length),
            };
            let bytes = cursor.take(length)?;
            let Some(field) = field else { continue };
            if let Some(value) = field.kind.read(bytes) {
                values.push((field, value));
                scope += usize::from(at < scope_len);
            }
        }
        if self.has_twice {
            scope = keep_last(values, scope);
        }
        Some(scope)
    }
}

/// Of values with one name only the last one stays, among those of the scope and among the others. Returns how many of the
/// scope stay.
fn keep_last(values: &mut Vec<(&Field, Value<'_>)>, scope: usize) -> usize {
    let others = values.split_off(scope);
    let part = |part: &[_]| {
        let mut names = HashSet::new();
        let last = part.iter().rev().filter(|(field, _): &&(&Field, _)| names.insert(&*field.name));
        let mut last: Vec<_> = last.copied().collect();
        last.reverse();
        last
    };
    let (of_scope, others) = (part(values), part(&others));
    *values = of_scope;
    let scope = values.len();
    values.extend(others);
    scope
}

/// The templates of a set, as far as it is in order, and what is wrong with the rest.
pub(crate) struct ReadTemplates {
    pub(crate) templates: Vec<Template>,
    pub(crate) problem: Option<&'static str>,
}

const CUT: &str = "a template is longer than its set";
const WRONG_ID: &str = "a template has a number below 256";

/// Reads a set of templates of flows.
pub(crate) fn read_templates(protocol: Protocol, body: &[u8], known: &Fields) -> ReadTemplates {
    read_all(
        body,
        8,
        |cursor| {
            let (id, count) = (cursor.u16()?, cursor.u16()?);
            let columns = columns(protocol, cursor, usize::from(count))?;
            Some(Ok((count > 0).then_some((id, None, columns))))
        },
        known,
    )
}

/// Reads a set of templates of options.
pub(crate) fn read_options(protocol: Protocol, body: &[u8], known: &Fields) -> ReadTemplates {
    const WRONG: &str = "a template of options has a wrong number of fields";
    read_all(
        body,
        6,
        |cursor| {
            let (id, one, other) = (cursor.u16()?, cursor.u16()?, cursor.u16()?);
            let (count, scope) = if protocol == Protocol::Ipfix {
                if other == 0 || other > one {
                    return Some(Err(WRONG));
                }
                (usize::from(one), usize::from(other))
            } else {
                // In bytes, of four bytes each.
                let all = usize::from(one) + usize::from(other);
                if all == 0 || (one | other) % 4 != 0 {
                    return Some(Err(WRONG));
                }
                (all / 4, usize::from(one) / 4)
            };
            Some(Ok(Some((id, Some(scope), columns(protocol, cursor, count)?))))
        },
        known,
    )
}

type Described = (u16, Option<usize>, Box<[Column]>);

/// Reads templates until fewer than `least` bytes are left, which are padding.
fn read_all(
    body: &[u8],
    least: usize,
    mut next: impl FnMut(&mut Cursor<'_>) -> Option<Result<Option<Described>, &'static str>>,
    known: &Fields,
) -> ReadTemplates {
    let mut read = ReadTemplates { templates: Vec::new(), problem: None };
    let mut cursor = Cursor(body);
    while cursor.len() >= least {
        // Before anything else of it: what is behind a wrong number is no template.
        if cursor.0[0] == 0 {
            read.problem = Some(WRONG_ID);
            break;
        }
        match next(&mut cursor) {
            Some(Ok(Some((id, scope, columns)))) => {
                read.templates.push(Template::new(id, scope, columns, known));
            }
            // One without fields: over UDP it means nothing.
            Some(Ok(None)) => {}
            Some(Err(problem)) => {
                read.problem = Some(problem);
                break;
            }
            None => {
                read.problem = Some(CUT);
                break;
            }
        }
    }
    read
}

fn columns(protocol: Protocol, cursor: &mut Cursor<'_>, count: usize) -> Option<Box<[Column]>> {
    if cursor.len() < count * 4 {
        return None;
    }
    let mut column = || {
        let (mut id, length) = (cursor.u16()?, cursor.u16()?);
        let mut enterprise = 0;
        if protocol == Protocol::Ipfix && id & ENTERPRISE != 0 {
            id &= !ENTERPRISE;
            enterprise = cursor.u32()?;
        }
        Some(Column { enterprise, id, length })
    };
    (0..count).map(|_| column()).collect()
}
