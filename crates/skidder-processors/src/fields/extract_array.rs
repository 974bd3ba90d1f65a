//! `extract_array`: elements of a list become fields.

use super::pairs::{fold_each, required_path, run_each};
use crate::plan::Constants;
use crate::plan::Failure;
use crate::plan::Footprint;
use crate::plan::{Outcome, Processor, message_if};
use skidder_config::{Any, Group, Key, Section, Value as Setting, settings};
use skidder_event::{Cell, EventMut, Path, Value, ValueRef};

settings! {
    /// Settings of `extract_array`.
    pub(crate) static EXTRACT_ARRAY = Group::new("processor.extract_array", "Puts elements of a list into fields.");

    FIELD: String = Key::new("field")
        .required()
        .about("the list");
    MAPPINGS: Any = Key::new("mappings")
        .required()
        .about("fields, and the index of the element each of them gets; the first element is 0");
    IGNORE_MISSING: bool = Key::new("ignore_missing")
        .default(false)
        .about("a missing list is not a failure");
    OVERWRITE_KEYS: bool = Key::new("overwrite_keys")
        .default(false)
        .about("an existing field is replaced; otherwise it is a failure");
    FAIL_ON_ERROR: bool = Key::new("fail_on_error")
        .default(true)
        .about("the first field that fails undoes all of them; otherwise the field alone is left \
                out");
    OMIT_EMPTY: bool = Key::new("omit_empty")
        .default(false)
        .about("elements that are null or an empty text, list or object are left out");
}

/// Puts elements of a list into fields.
#[derive(Clone, Debug)]
pub(crate) struct ExtractArray {
    field: Path,
    /// In the order of the elements.
    mappings: Vec<(usize, Path)>,
    ignore_missing: bool,
    omit_empty: bool,
    overwrite_keys: bool,
    fail_on_error: bool,
}

impl ExtractArray {
    /// `field`, `mappings`, `ignore_missing`, `omit_empty`, `overwrite_keys`, `fail_on_error`.
    pub(crate) fn read(settings: &Section<'_>) -> Option<Self> {
        let field = required_path(settings, &FIELD);
        let mappings = read_mappings(settings);
        let ignore_missing = settings.get(&IGNORE_MISSING).value();
        let omit_empty = settings.get(&OMIT_EMPTY).value();
        let overwrite_keys = settings.get(&OVERWRITE_KEYS).value();
        let fail_on_error = settings.get(&FAIL_ON_ERROR).value();
        let (field, mappings) = (field?, mappings?);
        Some(Self { field, mappings, ignore_missing, omit_empty, overwrite_keys, fail_on_error })
    }

    fn extract(
        &self,
        event: &mut EventMut<'_>,
        cells: &[Cell],
        (index, to): &(usize, Path),
    ) -> Result<(), String> {
        let Some(&cell) = cells.get(*index) else {
            let length = cells.len();
            let why = format_args!(
                "index {index} exceeds length of {length} when processing mapping for field {to}"
            );
            return Err(message_if(self.fail_on_error, why));
        };
        if self.omit_empty && event.view(cell).is_none_or(is_empty) {
            return Ok(());
        }
        if !self.overwrite_keys && event.as_ref().has(to) {
            let why = format_args!(
                "target field {to} already has a value. Set the overwrite_keys flag or drop/rename the field first"
            );
            return Err(message_if(self.fail_on_error, why));
        }
        let cell = event.duplicate_cell(cell);
        event.put_cell(to, cell).map_err(|error| {
            message_if(self.fail_on_error, format_args!("failed setting field {to}: {error}"))
        })
    }

    fn extract_constant(
        &self,
        constants: &mut Constants,
        items: &[Value],
        (index, to): &(usize, Path),
    ) -> bool {
        let Some(item) = items.get(*index) else { return false };
        if self.omit_empty && is_empty_value(item) {
            return true;
        }
        (self.overwrite_keys || constants.get(to).is_none()) && constants.set(to, item.clone())
    }
}

/// The fields of `mappings`, nested or with dots, by their index.
fn read_mappings(settings: &Section<'_>) -> Option<Vec<(usize, Path)>> {
    let section = settings.names(&MAPPINGS);
    let mut mappings = Vec::new();
    let mut right = true;
    for (name, item) in section.leaves() {
        let to = Path::parse(&name).map_err(|error| error.to_string());
        let index = match item.value() {
            Setting::Int(index) => usize::try_from(index).ok(),
            Setting::UInt(index) => usize::try_from(index).ok(),
            Setting::String(text) => text.parse().ok(),
            _ => None,
        };
        match (to, index) {
            (Ok(to), Some(index)) => mappings.push((index, to)),
            (Err(error), _) => {
                item.problem(format!("`{}`: {error}", item.path()), "");
                right = false;
            }
            (Ok(_), None) => {
                let message = format!("`{}` is no index", item.path());
                item.problem(message, "give a whole number; the first element is 0");
                right = false;
            }
        }
    }
    if right && mappings.is_empty() {
        let message = format!("`{}` is missing", settings.path_of(MAPPINGS.name()));
        settings.problem(
            MAPPINGS.name(),
            message,
            "give fields and the index of the element each gets",
        );
        return None;
    }
    mappings.sort_by_key(|(index, _)| *index);
    right.then_some(mappings)
}

fn is_empty(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Null => true,
        ValueRef::Str(text) => text.is_empty(),
        ValueRef::List(list) => {
            let mut empty = true;
            list.for_each(|_| {
                empty = false;
                false
            });
            empty
        }
        ValueRef::Map(map) => {
            let mut empty = true;
            map.for_each(|_, _| empty = false);
            empty
        }
        _ => false,
    }
}

fn is_empty_value(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Str(text) => text.is_empty(),
        Value::List(items) => items.is_empty(),
        Value::Map(map) => map.is_empty(),
        _ => false,
    }
}

impl Processor for ExtractArray {
    fn name(&self) -> &'static str {
        "extract_array"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        let list = match event.as_ref().get(&self.field) {
            None if self.ignore_missing => return Ok(Outcome::Done),
            None => {
                let field = &self.field;
                let reason = format!("could not fetch value for field {field}: key not found");
                return Err(Failure::unnoted(reason));
            }
            Some(ValueRef::List(_)) => event.copy(&self.field),
            Some(_) if !self.fail_on_error => return Ok(Outcome::Done),
            Some(_) => {
                let reason = format!("unsupported type for field {}: needed: array", self.field);
                return Err(Failure::unnoted(reason));
            }
        };
        let cells = list.map(|list| event.list_cells(list)).unwrap_or_default();
        run_each(event, &self.mappings, self.fail_on_error, |event, mapping| {
            self.extract(event, &cells, mapping)
        })
        .map_err(Failure::unnoted)?;
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let writes = self.mappings.iter().map(|(_, to)| to.clone()).collect();
        Footprint { reads: vec![self.field.clone()], writes, open: true, ..Footprint::default() }
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        let items = match constants.get(&self.field) {
            None => return self.ignore_missing,
            Some(Value::List(items)) => items.clone(),
            Some(_) => return !self.fail_on_error,
        };
        fold_each(constants, &self.mappings, self.fail_on_error, |constants, mapping| {
            self.extract_constant(constants, &items, mapping)
        })
    }

    fn describe(&self) -> String {
        let all: Vec<_> =
            self.mappings.iter().map(|(index, to)| format!("{index} to {to}")).collect();
        format!("extract_array {}: {}", self.field, all.join(", "))
    }
}
