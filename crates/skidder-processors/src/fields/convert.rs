//! `convert`: fields get another type, a copy with it, or another name with it.
//!
//! All values are converted before any is written, so that one conversion does not see what another wrote.

mod data_type;

use super::pairs::{optional_path, required_path};
use crate::go_number;
use crate::plan::Constants;
use crate::plan::Failure;
use crate::plan::Footprint;
use crate::plan::{Outcome, Processor};
use data_type::{Converted, DataType};
use skidder_config::{Group, Key, Parts, Section, settings};
use skidder_event::{Cell, EventMut, Path, Value, ValueRef};
use smallvec::SmallVec;

settings! {
    /// Settings of `convert`.
    pub(crate) static CONVERT = Group::new("processor.convert", "Gives fields another type, a copy with it, or another name with it.");

    FIELDS: Parts = Key::parts("fields", &CONVERSION)
        .required()
        .about("a list of `from` with `to`, `type`, or both");
    MODE: String = Key::new("mode")
        .default("copy")
        .about("what becomes of `from` when there is a `to`: it stays (`copy`) or goes (`rename`)");
    IGNORE_MISSING: bool = Key::new("ignore_missing")
        .default(false)
        .about("a missing `from` is not a failure");
    FAIL_ON_ERROR: bool = Key::new("fail_on_error")
        .default(true)
        .about("the first field that fails undoes all of them; otherwise the field alone is left \
                out");
    TAG: String = Key::new("tag")
        .default("")
        .default_words("none")
        .about("a name for failures in the log");
}

settings! {
    /// An item of `fields` of `convert`.
    static CONVERSION = Group::new("processor.conversion", "What becomes of a field.").inline();

    FROM: String = Key::new("from")
        .required()
        .about("the field");
    TO: String = Key::new("to")
        .about("where the value goes; without it, it stays where it is");
    TYPE: String = Key::new("type")
        .about("one of `integer` (32 bits), `long` (64 bits), `float` (32 bits), `double` (64 \
                bits), `string`, `boolean`, `ip`; without it the value goes as it is");
}

/// Converts fields.
#[derive(Clone, Debug)]
pub(crate) struct Convert {
    fields: Vec<Conversion>,
    mode: Mode,
    ignore_missing: bool,
    fail_on_error: bool,
    tag: String,
    /// No conversion reads or writes what another writes, so that each can be written at once.
    apart: bool,
}

/// One field.
#[derive(Clone, Debug)]
struct Conversion {
    from: Path,
    /// Where the result goes, if not to `from`.
    to: Option<Path>,
    kind: Option<DataType>,
}

/// What becomes of `from` when there is a `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Copy,
    Rename,
}

impl Convert {
    /// `fields` (a list of `from`, `to`, `type`), `mode`, `ignore_missing`, `fail_on_error`, `tag`.
    pub(crate) fn read(settings: &Section<'_>) -> Option<Self> {
        let sections = settings.parts(&FIELDS);
        if sections.is_empty() {
            let message = format!("`{}` is missing", settings.path_of(FIELDS.name()));
            settings.problem(
                FIELDS.name(),
                message,
                "give a list of `from: name` with `type: long`",
            );
        }
        let fields: Vec<_> = sections.iter().map(Conversion::read).collect();
        let mode = settings.get(&MODE).try_map(|word| match word.to_lowercase().as_str() {
            "copy" => Ok(Mode::Copy),
            "rename" => Ok(Mode::Rename),
            _ => Err("expected `copy` or `rename`".to_owned()),
        });
        let mode = mode.value();
        let ignore_missing = settings.get(&IGNORE_MISSING).value();
        let fail_on_error = settings.get(&FAIL_ON_ERROR).value();
        let tag = settings.get(&TAG).value();
        let fields = fields.into_iter().collect::<Option<Vec<_>>>()?;
        let apart = are_apart(&fields);
        let convert = Self { fields, mode, ignore_missing, fail_on_error, tag, apart };
        (!convert.fields.is_empty()).then_some(convert)
    }

    /// The value that a conversion gives; `None` if it is left out.
    fn value(&self, event: &mut EventMut<'_>, field: &Conversion) -> Result<Option<Cell>, String> {
        let value = event.as_ref().get(&field.from);
        if let (Some(DataType::Long), Some(ValueRef::Str(text))) = (field.kind, value)
            && let Some(number) = go_number::integer(text, 64)
        {
            return Ok(Some(Cell::Int(number)));
        }
        let converted = match value {
            None if self.ignore_missing => return Ok(None),
            None => {
                let from = &field.from;
                let missing = format_args!("field [{from}] is missing: key not found");
                return Err(self.failed(field, missing));
            }
            Some(value) => match field.kind {
                None => Converted::Same,
                Some(kind) => kind.convert(value).map_err(|why| {
                    self.failed(field, format_args!("unable to convert value: {why}"))
                })?,
            },
        };
        Ok(match converted {
            Converted::Same => event.duplicate(&field.from),
            Converted::Int(number) => Some(Cell::Int(number)),
            Converted::Float(number) => Some(Cell::Float(number)),
            Converted::Bool(truth) => Some(Cell::Bool(truth)),
            Converted::Text(text) => Some(Cell::Str(event.store_text(&text))),
        })
    }

    /// Converts and writes one field after the other.
    fn run_apart(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        for field in &self.fields {
            match self.value(event, field) {
                Ok(Some(cell)) => self.write_or_not(event, field, cell)?,
                Ok(None) => {}
                Err(_) if !self.fail_on_error => {}
                Err(reason) => return Err(Failure::unnoted(reason)),
            }
        }
        Ok(Outcome::Done)
    }

    /// Writes a value. If that is impossible, fails or leaves the event unchanged.
    #[inline]
    fn write_or_not(
        &self,
        event: &mut EventMut<'_>,
        field: &Conversion,
        cell: Cell,
    ) -> Result<(), Failure> {
        if self.fail_on_error {
            return self.write(event, field, cell).map_err(Failure::unnoted);
        }
        let mark = event.mark();
        if self.write(event, field, cell).is_err() {
            event.rollback(mark);
        }
        Ok(())
    }

    fn write(
        &self,
        event: &mut EventMut<'_>,
        field: &Conversion,
        cell: Cell,
    ) -> Result<(), String> {
        let Some(to) = &field.to else {
            // Only `@timestamp` refuses, and that was reported when the settings were read.
            event.put_cell(&field.from, cell).unwrap_or_default();
            return Ok(());
        };
        if self.mode == Mode::Rename {
            event.delete(&field.from);
        }
        event.put_cell(to, cell).map_err(|error| {
            self.failed(field, format_args!("failed to put field [{to}]: {error}"))
        })
    }

    /// The message of Filebeat; empty where it is not used.
    fn failed(&self, field: &Conversion, why: std::fmt::Arguments<'_>) -> String {
        if !self.fail_on_error {
            return String::new();
        }
        let instance = match self.tag.as_str() {
            "" => String::new(),
            tag => format!(" with instance_id={tag}"),
        };
        let target = match &field.to {
            Some(to) => format!(" with target field [{to}]"),
            None => String::new(),
        };
        let (from, kind) = (&field.from, field.kind.map_or("[unset]", DataType::name));
        format!(
            "failed in processor.convert{instance}: conversion of field [{from}] to type [{kind}]{target} failed: {why}"
        )
    }

    fn fold_value(&self, constants: &Constants, field: &Conversion) -> Result<Option<Value>, ()> {
        let value = match constants.get(&field.from) {
            None if self.ignore_missing => return Ok(None),
            None => return Err(()),
            Some(value) => value,
        };
        let Some(kind) = field.kind else { return Ok(Some(value.clone())) };
        let seen = match value {
            Value::Null => ValueRef::Null,
            Value::Bool(truth) => ValueRef::Bool(*truth),
            Value::Int(number) => ValueRef::Int(*number),
            Value::UInt(number) => ValueRef::UInt(*number),
            Value::Float(number) => ValueRef::Float(*number),
            Value::Str(text) => ValueRef::Str(text.as_bytes()),
            Value::Time(time) => ValueRef::Time(*time),
            // Only ever converted to text; left to the events.
            Value::List(_) | Value::Map(_) => return Err(()),
        };
        Ok(Some(match kind.convert(seen).map_err(|_| ())? {
            Converted::Same => value.clone(),
            Converted::Int(number) => Value::Int(number),
            Converted::Float(number) => Value::Float(number),
            Converted::Bool(truth) => Value::Bool(truth),
            Converted::Text(text) => Value::from(String::from_utf8_lossy(&text).as_ref()),
        }))
    }
}

/// Whether no field is read or written by two of these.
fn are_apart(fields: &[Conversion]) -> bool {
    let paths = |field: &Conversion| -> Vec<Path> {
        [Some(field.from.clone()), field.to.clone()].into_iter().flatten().collect()
    };
    fields.iter().enumerate().all(|(at, field)| {
        let others: Vec<Path> = fields[..at].iter().flat_map(paths).collect();
        !paths(field).iter().any(|path| others.iter().any(|other| other.overlaps(path)))
    })
}

impl Conversion {
    fn read(section: &Section<'_>) -> Option<Self> {
        let from = required_path(section, &FROM);
        let to = optional_path(section, &TO);
        let kind = section.get(&TYPE).try_map(|word| DataType::named(&word)).optional();
        if !section.has_key(&TO) && !section.has_key(&TYPE) {
            let message = format!("`{}` has neither `to` nor `type`", section.path());
            section.problem("", message, "each field needs one of them, or both");
            return None;
        }
        let from = from?;
        let to = to.filter(|to| *to != from);
        if from.is_timestamp() && to.is_none() {
            let message = format!("`{}` has no effect", section.path());
            section.warning(FROM.name(), message, "`@timestamp` is always a time; give a `to`");
        }
        Some(Self { from, to, kind })
    }
}

impl Processor for Convert {
    fn name(&self) -> &'static str {
        "convert"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        if self.apart {
            return self.run_apart(event);
        }
        let mut cells: SmallVec<[Option<Cell>; 8]> = SmallVec::new();
        for field in &self.fields {
            cells.push(match self.value(event, field) {
                Ok(cell) => cell,
                Err(_) if !self.fail_on_error => None,
                Err(reason) => return Err(Failure::unnoted(reason)),
            });
        }
        for (field, cell) in self.fields.iter().zip(cells) {
            let Some(cell) = cell else { continue };
            self.write_or_not(event, field, cell)?;
        }
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let mut footprint = Footprint::default();
        for field in &self.fields {
            footprint.reads.push(field.from.clone());
            footprint.writes.push(field.to.as_ref().unwrap_or(&field.from).clone());
            if self.mode == Mode::Rename {
                footprint.writes.push(field.from.clone());
            }
            footprint.open |= field.kind.is_none();
        }
        footprint
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        let mut values = Vec::new();
        for field in &self.fields {
            match self.fold_value(constants, field) {
                Ok(value) => values.push(value),
                // What would be left out, too: an event may be able to do what constants are not.
                Err(()) => return false,
            }
        }
        let mut after = constants.clone();
        for (field, value) in self.fields.iter().zip(values) {
            let Some(value) = value else { continue };
            if let Some(to) = &field.to
                && self.mode == Mode::Rename
            {
                after.remove(&field.from);
                if !after.set(to, value) {
                    return false;
                }
            } else if !after.set(field.to.as_ref().unwrap_or(&field.from), value) {
                return false;
            }
        }
        *constants = after;
        true
    }

    fn can_fail(&self) -> bool {
        self.fail_on_error
    }

    fn describe(&self) -> String {
        let all = self.fields.iter().map(|field| {
            let to = field.to.as_ref().map_or_else(String::new, |to| format!(" to {to}"));
            let kind = field.kind.map_or_else(String::new, |kind| format!(" as {}", kind.name()));
            format!("{}{to}{kind}", field.from)
        });
        format!("convert {}", all.collect::<Vec<_>>().join(", "))
    }
}
