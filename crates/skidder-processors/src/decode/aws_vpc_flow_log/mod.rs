//! `parse_aws_vpc_flow_log`: columns of a flow log of Amazon VPC become fields, and those of ECS.
//!
//! The number of columns of a line selects its `format`. Text of columns is not copied: it
//! stays in its place in the batch. Where an ECS field that is derived from another value has no
//! place on the event it is left out, as in Filebeat.

mod fields;

use super::object::Object;
use crate::plan::Constants;
use crate::plan::Failure;
use crate::plan::Footprint;
use crate::plan::{Outcome, Processor, message_if};
use fields::{FIELDS, FLAG_NAMES, Field, How, TCP_FLAGS, TCP_FLAGS_ARRAY, Type, transport};
use skidder_config::{Group, Key, Section, settings};
use skidder_event::{Cell, EditError, EventMut, Path, Text};
use smallvec::SmallVec;
use std::net::IpAddr;

settings! {
    /// Settings of `parse_aws_vpc_flow_log`.
    pub(crate) static PARSE_AWS_VPC_FLOW_LOG = Group::new("processor.parse_aws_vpc_flow_log", "Cuts a line of a flow log of Amazon VPC (versions 2 to 8) into \
                               fields, those of ECS where it has them.");

    FORMAT: Vec<String> = Key::new("format")
        .required()
        .about("the fields of a line in their order, as in the settings of the flow log (`version \
                account-id …`); or a list of such formats, each with another number of fields");
    MODE: String = Key::new("mode")
        .default("ecs")
        .about("`original`: the fields of the format under `target_field`; `ecs`: those of ECS, and \
                under `target_field` what ECS has no name for; `ecs_and_original`: both in full");
    FIELD: String = Key::new("field")
        .default(ParseAwsVpcFlowLog::FIELD)
        .about("the field with the line");
    TARGET_FIELD: String = Key::new("target_field")
        .default(ParseAwsVpcFlowLog::TARGET_FIELD)
        .about("the field that gets the fields of the format, in place of what it was");
    IGNORE_MISSING: bool = Key::new("ignore_missing")
        .default(false)
        .about("a missing line is not a failure");
    IGNORE_FAILURE: bool = Key::new("ignore_failure")
        .default(false)
        .about("a line that cannot be parsed leaves the event as it came, without a note");
    ID: String = Key::new("id")
        .default("")
        .default_words("none")
        .about("a name for this processor, used in messages about it");
}

/// Which fields are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Those of the format.
    Original,
    /// Those of ECS, and of the format what ECS has no name for.
    Ecs,
    /// Those of ECS and all of the format.
    Both,
}

const MODES: [(&str, Mode); 3] =
    [("original", Mode::Original), ("ecs", Mode::Ecs), ("ecs_and_original", Mode::Both)];

/// Cuts flow logs into fields.
#[derive(Clone, Debug)]
pub struct ParseAwsVpcFlowLog {
    formats: Vec<Vec<Column>>,
    columns_max: usize,
    ecs: bool,
    field: Path,
    target: Path,
    event_type: Path,
    related_ip: Path,
    ignore_missing: bool,
    ignore_failure: bool,
    id: String,
}

/// One column of a format.
#[derive(Clone, Debug)]
struct Column {
    field: &'static Field,
    /// It is put into the target field.
    original: bool,
    ecs: Vec<(Path, How)>,
}

impl ParseAwsVpcFlowLog {
    /// Default source field.
    pub const FIELD: &'static str = "message";
    /// Default target of the fields of the format.
    pub const TARGET_FIELD: &'static str = "aws.vpcflow";

    /// All settings of the processor.
    pub(crate) fn read(settings: &Section<'_>) -> Option<Self> {
        let mode = settings.get(&MODE).try_map(|text| mode_of(&text)).value();
        let formats = settings.get(&FORMAT).try_map(|texts| formats_of(&texts, mode));
        let formats = formats.required();
        let path = |key: &Key<String>| settings.get(key).try_map(|text| parse_path(&text)).value();
        let read = Self {
            columns_max: formats.iter().map(Vec::len).max()?,
            formats,
            ecs: mode != Mode::Original,
            field: path(&FIELD),
            target: path(&TARGET_FIELD),
            event_type: constant("event.type"),
            related_ip: constant("related.ip"),
            ignore_missing: settings.get(&IGNORE_MISSING).value(),
            ignore_failure: settings.get(&IGNORE_FAILURE).value(),
            id: settings.get(&ID).value(),
        };
        Some(read)
    }

    fn failure(&self, why: impl std::fmt::Display) -> Failure {
        let why = format_args!("failed to parse `{}` as a VPC flow log: {why}", self.field);
        Failure::unnoted(message_if(!self.ignore_failure, why)).ignored(self.ignore_failure)
    }

    fn parse(&self, event: &mut EventMut<'_>, text: Text) -> Result<(), String> {
        const NO_FORMAT: &str = "log did not match the specified format";
        let words = self.words(event.text(text), text.start).ok_or(NO_FORMAT)?;
        let format = self.formats.iter().find(|format| format.len() == words.len());
        let mut original = Object::EMPTY;
        let mut types: SmallVec<[&str; 2]> = SmallVec::from_slice(&["connection"]);
        let mut addresses: SmallVec<[Text; 4]> = SmallVec::new();
        for (column, word) in format.ok_or(NO_FORMAT)?.iter().zip(words) {
            if event.text(word) == b"-" {
                continue;
            }
            let name = column.field.name;
            let cell = cell_of(event.text(word), word, column.field.kind)
                .map_err(|why| format!("failed to parse \"{name}\": {why}"))?;
            if column.original {
                original.push(event, name, cell);
                if let (TCP_FLAGS, Cell::Int(flags)) = (name, cell) {
                    push_flags(event, &mut original, flags);
                }
            }
            for (path, how) in &column.ecs {
                put_ecs(event, path, *how, cell, &mut types).map_err(|error| error.to_string())?;
            }
            let known = |other: &Text| event.text(*other) == event.text(word);
            if self.ecs && column.field.kind == Type::Ip && !addresses.iter().any(known) {
                addresses.push(word);
            }
        }
        if self.ecs {
            let cells: SmallVec<[Cell; 2]> =
                types.iter().map(|text| Cell::Str(event.store_text(text.as_bytes()))).collect();
            self.put_list(event, &self.event_type, &cells)?;
        }
        event.put_cell(&self.target, original.cell()).map_err(|error| error.to_string())?;
        if !addresses.is_empty() {
            let cells: SmallVec<[Cell; 4]> = addresses.iter().copied().map(Cell::Str).collect();
            self.put_list(event, &self.related_ip, &cells)?;
        }
        Ok(())
    }

    fn put_list(
        &self,
        event: &mut EventMut<'_>,
        path: &Path,
        cells: &[Cell],
    ) -> Result<(), String> {
        let list = event.store_list(cells);
        event.put_cell(path, list).map_err(|error| error.to_string())
    }

    /// The columns of a line that begins at byte `start` of the batch; `None` if they are more
    /// than any format has.
    fn words(&self, line: &[u8], start: u32) -> Option<SmallVec<[Text; 32]>> {
        let mut words = SmallVec::new();
        let mut push = |word: &[u8]| {
            let offset = word.as_ptr() as usize - line.as_ptr() as usize;
            words.push(Text { start: start + offset as u32, len: word.len() as u32 });
            words.len() <= self.columns_max
        };
        let all = match std::str::from_utf8(line) {
            Ok(line) => line.split_whitespace().all(|word| push(word.as_bytes())),
            Err(_) => {
                let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
                line.split(is_space).filter(|word| !word.is_empty()).all(push)
            }
        };
        all.then_some(words)
    }
}

fn push_flags(event: &mut EventMut<'_>, original: &mut Object, flags: i64) {
    let mut cells: SmallVec<[Cell; 6]> = SmallVec::new();
    for (bit, name) in FLAG_NAMES.iter().enumerate() {
        if flags & (1 << bit) != 0 {
            cells.push(Cell::Str(event.store_text(name.as_bytes())));
        }
    }
    if !cells.is_empty() {
        let list = event.store_list(&cells);
        original.push(event, TCP_FLAGS_ARRAY, list);
    }
}

/// Writes one field of ECS. A derived value is left out if it has no place.
fn put_ecs(
    event: &mut EventMut<'_>,
    path: &Path,
    how: How,
    cell: Cell,
    types: &mut SmallVec<[&str; 2]>,
) -> Result<(), EditError> {
    let word = match cell {
        Cell::Str(word) => event.text(word),
        _ => b"",
    };
    let by_action = |accept, reject| match word {
        b"ACCEPT" => Some(accept),
        b"REJECT" => Some(reject),
        _ => None,
    };
    let text = match how {
        How::Same => return event.put_cell(path, cell),
        How::EventType => {
            types.extend(by_action("allowed", "denied"));
            return Ok(());
        }
        How::NetworkType => Some(if word.contains(&b'.') { "ipv4" } else { "ipv6" }),
        How::Outcome => by_action("success", "failure"),
        How::Constant(text) => Some(text),
        How::Transport => match cell {
            Cell::Int(number) => transport(number),
            _ => None,
        },
        How::Lowercase => {
            let lowercase: SmallVec<[u8; 16]> = word.iter().map(u8::to_ascii_lowercase).collect();
            put_if_possible(event, path, &lowercase);
            return Ok(());
        }
        How::NumberText => {
            if let Cell::Int(number) = cell {
                put_if_possible(event, path, itoa::Buffer::new().format(number).as_bytes());
            }
            return Ok(());
        }
    };
    if let Some(text) = text {
        put_if_possible(event, path, text.as_bytes());
    }
    Ok(())
}

fn put_if_possible(event: &mut EventMut<'_>, path: &Path, text: &[u8]) {
    let mark = event.mark();
    if event.put_text(path, text).is_err() {
        event.rollback(mark);
    }
}

/// The value of a column that is the span `text` of the batch, or its error.
fn cell_of(word: &[u8], text: Text, kind: Type) -> Result<Cell, String> {
    if kind == Type::Text {
        return Ok(Cell::Str(text));
    }
    let shown = String::from_utf8_lossy;
    let Ok(word) = std::str::from_utf8(word) else {
        return Err(format!("`{}` is no text", shown(word)));
    };
    let number = || {
        let refuse = |_| format!("`{word}` is not a whole number of 64 bits");
        word.parse::<i64>().map_err(refuse)
    };
    match kind {
        Type::Text => Ok(Cell::Str(text)),
        Type::Long => Ok(Cell::Int(number()?)),
        Type::Integer => match word.parse::<i32>() {
            Ok(number) => Ok(Cell::Int(number.into())),
            Err(_) => Err(format!("`{word}` is not a whole number of 32 bits")),
        },
        Type::Ip => match word.parse::<IpAddr>() {
            Ok(_) => Ok(Cell::Str(text)),
            Err(_) => Err(format!("`{word}`: value is not a valid IP address")),
        },
        Type::Time => {
            let nanoseconds = number()?.checked_mul(1_000_000_000);
            let time = nanoseconds.ok_or_else(|| format!("`{word}` is after the year 2262"))?;
            Ok(Cell::Time(time))
        }
    }
}

fn mode_of(text: &str) -> Result<Mode, String> {
    let known = MODES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
    let (_, mode) = known.ok_or("expected `original`, `ecs` or `ecs_and_original`")?;
    Ok(*mode)
}

fn formats_of(texts: &[String], mode: Mode) -> Result<Vec<Vec<Column>>, String> {
    let mut formats: Vec<Vec<Column>> = Vec::new();
    for text in texts {
        let mut columns: Vec<Column> = Vec::new();
        for name in text.split_whitespace() {
            let field = field_of(name)?;
            if columns.iter().any(|column| std::ptr::eq(column.field, field)) {
                return Err(format!("field `{name}` is there twice in one format"));
            }
            columns.push(column_of(field, mode));
        }
        if columns.is_empty() {
            return Err("a format needs at least one field".to_owned());
        }
        if formats.iter().any(|format| format.len() == columns.len()) {
            let count = columns.len();
            return Err(format!(
                "two formats have {count} fields; each must have another number, because the number tells them apart"
            ));
        }
        formats.push(columns);
    }
    if formats.is_empty() {
        return Err("at least one format is needed".to_owned());
    }
    Ok(formats)
}

fn field_of(name: &str) -> Result<&'static Field, String> {
    let wanted = name.replace('-', "_");
    let known = FIELDS.iter().find(|field| field.name == wanted);
    known.ok_or_else(|| {
        let near = skidder_config::nearest(&wanted, FIELDS.iter().map(|field| field.name));
        let hint = near.map(|near| format!("; did you mean `{}`?", near.replace('_', "-")));
        format!("unknown field `{name}`{}", hint.unwrap_or_default())
    })
}

fn column_of(field: &'static Field, mode: Mode) -> Column {
    let ecs: &[_] = if mode == Mode::Original { &[] } else { field.ecs };
    Column {
        field,
        original: mode != Mode::Ecs || field.ecs.is_empty(),
        ecs: ecs.iter().map(|(name, how)| (constant(name), *how)).collect(),
    }
}

fn parse_path(text: &str) -> Result<Path, String> {
    Path::parse(text).map_err(|error| error.to_string())
}

fn constant(name: &str) -> Path {
    Path::parse(name).expect("a constant that is a path")
}

impl Processor for ParseAwsVpcFlowLog {
    fn name(&self) -> &'static str {
        "parse_aws_vpc_flow_log"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        match event.copy(&self.field) {
            Some(Cell::Str(text)) => {
                self.parse(event, text).map_err(|why| self.failure(why))?;
                Ok(Outcome::Done)
            }
            Some(_) => Err(self.failure("field must be a string")),
            None if self.ignore_missing => Ok(Outcome::Done),
            None => Err(self.failure("key not found")),
        }
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let mut writes = vec![self.target.clone()];
        if self.ecs {
            writes.extend([self.event_type.clone(), self.related_ip.clone()]);
        }
        for (path, _) in self.formats.iter().flatten().flat_map(|column| &column.ecs) {
            if !writes.contains(path) {
                writes.push(path.clone());
            }
        }
        Footprint { reads: vec![self.field.clone()], writes, open: true, everything: false }
    }

    fn describe(&self) -> String {
        let id = if self.id.is_empty() { String::new() } else { format!(" {}", self.id) };
        format!("parse_aws_vpc_flow_log{id} of {} to {}", self.field, self.target)
    }
}
