//! `append`: a field becomes a list of its own value, the values of other fields, and constants.

use super::add_fields::value_of;
use super::pairs::{optional_paths, required_path};
use crate::plan::Constants;
use crate::plan::Failure;
use crate::plan::Footprint;
use crate::plan::{Outcome, Processor, message_if};
use skidder_config::{Any, Group, Key, Section, settings};
use skidder_event::{Cell, EventMut, Path, Value, ValueRef};
use smallvec::SmallVec;

settings! {
    /// Settings of `append`.
    pub(crate) static APPEND = Group::new("processor.append", "Makes a field a list of its own value, the values of other fields, \
                               and constants.");

    TARGET_FIELD: String = Key::new("target_field")
        .required()
        .about("the field that becomes a list; it may be missing");
    FIELDS: Vec<String> = Key::new("fields")
        .default_words("none")
        .about("fields whose values are appended");
    VALUES: Any = Key::new("values")
        .default_words("none")
        .about("constants that are appended");
    IGNORE_MISSING: bool = Key::new("ignore_missing")
        .default(false)
        .about("a missing field is not a failure");
    IGNORE_EMPTY_VALUES: bool = Key::new("ignore_empty_values")
        .default(false)
        .about("null and empty texts are left out, also existing ones");
    ALLOW_DUPLICATE: bool = Key::new("allow_duplicate")
        .default(true)
        .about("otherwise only the first of equal elements stays; lists and objects never count as \
                equal");
    FAIL_ON_ERROR: bool = Key::new("fail_on_error")
        .default(true)
        .about("a failure is noted on the event; otherwise the event just stays as it was");
}

/// Elements of the list that is made, without the heap for this many.
type Cells = SmallVec<[Cell; 16]>;

/// Appends values to a field.
#[derive(Clone, Debug)]
pub(crate) struct Append {
    target: Path,
    fields: Vec<Path>,
    values: Vec<Value>,
    ignore_missing: bool,
    ignore_empty_values: bool,
    allow_duplicate: bool,
    fail_on_error: bool,
}

impl Append {
    /// `target_field`, `fields`, `values`, `ignore_missing`, `ignore_empty_values`, `allow_duplicate`,
    /// `fail_on_error`.
    pub(crate) fn read(settings: &Section<'_>) -> Option<Self> {
        let target = required_path(settings, &TARGET_FIELD);
        let fields = optional_paths(settings, &FIELDS);
        let items = settings.items_of(&VALUES);
        let values = items.iter().map(|item| value_of(&item.value()).unwrap_or(Value::Null));
        let values = values.collect();
        let ignore_missing = settings.get(&IGNORE_MISSING).value();
        let ignore_empty_values = settings.get(&IGNORE_EMPTY_VALUES).value();
        let allow_duplicate = settings.get(&ALLOW_DUPLICATE).value();
        let fail_on_error = settings.get(&FAIL_ON_ERROR).value();
        Some(Self {
            target: target?,
            fields,
            values,
            ignore_missing,
            ignore_empty_values,
            allow_duplicate,
            fail_on_error,
        })
    }

    fn append(&self, event: &mut EventMut<'_>) -> Result<(), String> {
        let mut cells = Cells::new();
        gather(event, &self.target, &mut cells);
        for field in &self.fields {
            if !gather(event, field, &mut cells) && !self.ignore_missing {
                let why =
                    format_args!("could not fetch value for key: {field}, Error: key not found");
                return Err(message_if(self.fail_on_error, why));
            }
        }
        for value in &self.values {
            cells.push(event.store(value));
        }
        if self.ignore_empty_values {
            cells.retain(|cell| event.view(*cell).is_some_and(|value| !is_empty(value)));
        }
        if !self.allow_duplicate && cells.len() > 1 {
            remove_duplicates(event, &mut cells);
        }
        let list = event.store_list(&cells);
        event.delete_with_dots(&self.target);
        event.put_cell(&self.target, list).map_err(|error| {
            let target = &self.target;
            let why = format_args!(
                "unable to put values in the target field {target} due to error: {error}"
            );
            message_if(self.fail_on_error, why)
        })
    }
}

/// Adds the value of a field to `cells`, a list element by element. `false` if there is none.
fn gather(event: &mut EventMut<'_>, field: &Path, cells: &mut Cells) -> bool {
    match event.duplicate(field) {
        None => return false,
        Some(list @ Cell::List(_)) => cells.extend(event.list_cells(list)),
        Some(cell) => cells.push(cell),
    }
    true
}

fn is_empty(value: ValueRef<'_>) -> bool {
    matches!(value, ValueRef::Null | ValueRef::Str(b""))
}

/// Leaves the first of equal scalars. Lists and objects are never taken for equal.
fn remove_duplicates(event: &EventMut<'_>, cells: &mut Cells) {
    let mut kept = Cells::new();
    for &cell in &*cells {
        if !kept.iter().any(|&other| is_same(event, cell, other)) {
            kept.push(cell);
        }
    }
    *cells = kept;
}

fn is_same(event: &EventMut<'_>, one: Cell, other: Cell) -> bool {
    let (Some(one), Some(other)) = (event.view(one), event.view(other)) else { return false };
    match (one, other) {
        (ValueRef::Null, ValueRef::Null) => true,
        (ValueRef::Bool(one), ValueRef::Bool(other)) => one == other,
        (ValueRef::Int(one), ValueRef::Int(other))
        | (ValueRef::Time(one), ValueRef::Time(other)) => one == other,
        (ValueRef::UInt(one), ValueRef::UInt(other)) => one == other,
        (ValueRef::Float(one), ValueRef::Float(other)) => one.to_bits() == other.to_bits(),
        (ValueRef::Str(one), ValueRef::Str(other)) => one == other,
        _ => false,
    }
}

fn is_same_value(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::List(_) | Value::Map(_), _) => false,
        (Value::Float(one), Value::Float(other)) => one.to_bits() == other.to_bits(),
        (one, other) => one == other,
    }
}

impl Processor for Append {
    fn name(&self) -> &'static str {
        "append"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        let mark = event.mark();
        if let Err(error) = self.append(event) {
            if self.fail_on_error {
                let reason = format!("failed to append fields in append processor: {error}");
                return Err(Failure::new(reason));
            }
            event.rollback(mark);
        }
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let writes = vec![self.target.clone()];
        Footprint { reads: self.fields.clone(), writes, ..Footprint::default() }
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        let mut values = Vec::new();
        let mut gather = |path: &Path| match constants.get(path) {
            None => false,
            Some(Value::List(items)) => {
                values.extend_from_slice(items);
                true
            }
            Some(value) => {
                values.push(value.clone());
                true
            }
        };
        gather(&self.target);
        for field in &self.fields {
            if !gather(field) && !self.ignore_missing {
                return !self.fail_on_error;
            }
        }
        values.extend_from_slice(&self.values);
        if self.ignore_empty_values {
            values.retain(|value| *value != Value::Null && *value != Value::from(""));
        }
        if !self.allow_duplicate {
            let mut kept: Vec<Value> = Vec::new();
            for value in values {
                if !kept.iter().any(|other| is_same_value(&value, other)) {
                    kept.push(value);
                }
            }
            values = kept;
        }
        // A value under a key with dots moves into objects.
        let mut changed = constants.clone();
        changed.remove(&self.target);
        if !changed.set(&self.target, Value::List(values)) {
            return !self.fail_on_error;
        }
        *constants = changed;
        true
    }

    fn can_fail(&self) -> bool {
        self.fail_on_error
    }

    fn describe(&self) -> String {
        let fields: Vec<_> = self.fields.iter().map(Path::as_str).collect();
        let and = if self.values.is_empty() { "" } else { " and constants" };
        format!("append {}{and} to {}", fields.join(", "), self.target)
    }
}
