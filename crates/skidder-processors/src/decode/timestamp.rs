//! `timestamp`: a text or number becomes a time, by default that of the event.
//!
//! Layouts are tried in their order. They are those of Go ([`skidder_parse::go_time`]), `UNIX`
//! (seconds) and `UNIX_MS` (milliseconds). A value that is a time is taken unchanged.

use crate::plan::{Constants, Failure, Footprint, Outcome, Processor, message_if};
use jiff::tz::TimeZone;
use skidder_config::{Group, Key, Section, settings};
use skidder_event::{Cell as EventCell, EventMut, Path, ValueRef};
use skidder_os::Clock;
use skidder_parse::{go_time, syslog};
use std::cell::{Cell, RefCell};
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

settings! {
    /// Settings of `timestamp`.
    pub(crate) static TIMESTAMP = Group::new("processor.timestamp", "Sets `@timestamp`, or another field, to the time in a text or \
                               number.").deprecated(&[("tests", "put times that must be readable into `test`")]);

    FIELD: String = Key::new("field")
        .required()
        .about("the field with the time");
    LAYOUTS: Vec<String> = Key::new("layouts")
        .required()
        .about("layouts of the time, tried in this order: layouts of Go (`2006-01-02 15:04:05.000 \
                -0700`), `UNIX` (seconds since 1970, also with a fraction) or `UNIX_MS` \
                (milliseconds)");
    TARGET_FIELD: String = Key::new("target_field")
        .default(Timestamp::TARGET_FIELD)
        .about("the field that is set");
    TIMEZONE: String = Key::new("timezone")
        .default("UTC")
        .about("the zone of times that have none: a name as `Europe/Berlin`, `Local`, or an offset \
                as `+0200`");
    TEST: Vec<String> = Key::new("test")
        .default_words("none")
        .about("texts that must be read, else the program does not start");
    IGNORE_MISSING: bool = Key::new("ignore_missing")
        .default(false)
        .about("a missing `field` is not a failure");
    IGNORE_FAILURE: bool = Key::new("ignore_failure")
        .default(false)
        .about("nothing is a failure; the event stays as it came");
    ID: String = Key::new("id")
        .default_words("none")
        .about("a name for this processor, of no effect");
}

/// Longest text that is remembered.
const LAST_BYTES_MAX: usize = 40;

/// Texts that a thread remembers.
const LASTS_MAX: usize = 4;

thread_local! {
    /// What each processor read last, by the last bits of its number: lines of one second have the same text.
    static LASTS: RefCell<[Last; LASTS_MAX]> = const { RefCell::new([Last::NONE; LASTS_MAX]) };
}

/// Numbers of processors, from 1.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// A text and the time that it is.
#[derive(Clone, Copy)]
struct Last {
    of: u64,
    text: [u8; LAST_BYTES_MAX],
    len: usize,
    time: i64,
}

impl Last {
    const NONE: Self = Self { of: 0, text: [0; LAST_BYTES_MAX], len: 0, time: 0 };
}

/// Sets a time from another field.
#[derive(Clone)]
pub struct Timestamp {
    number: u64,
    field: Path,
    target_field: Path,
    layouts: Box<[Layout]>,
    timezone: TimeZone,
    ignore_missing: bool,
    ignore_failure: bool,
    /// For the year of times without one.
    clock: Arc<dyn Clock>,
}

/// What a value may look like.
#[derive(Clone, Debug)]
enum Layout {
    /// A number of units of this many nanoseconds since 1970-01-01 UTC.
    Unix(i64),
    Go(go_time::Layout),
}

impl Layout {
    fn new(text: &str) -> Self {
        match text {
            "UNIX" => Self::Unix(1_000_000_000),
            "UNIX_MS" => Self::Unix(1_000_000),
            text => Self::Go(go_time::Layout::new(text)),
        }
    }
}

impl Timestamp {
    /// Default target field.
    pub const TARGET_FIELD: &'static str = "@timestamp";

    /// `field`, `target_field`, `layouts`, `timezone`, `test`, `ignore_missing`, `ignore_failure`, `id`.
    pub(crate) fn read(settings: &Section<'_>, clock: &Arc<dyn Clock>) -> Option<Self> {
        let parse = |text: String| Path::parse(&text).map_err(|error| error.to_string());
        let field = settings.get(&FIELD).try_map(parse).optional();
        if !settings.has_key(&FIELD) {
            let message = format!("`{}` is missing", settings.path_of(FIELD.name()));
            settings.problem(FIELD.name(), message, "name the field with the time");
        }
        let target_field = settings.get(&TARGET_FIELD).try_map(parse).value();
        let layouts = settings.get(&LAYOUTS).required();
        if layouts.is_empty() && settings.has_key(&LAYOUTS) {
            let message = format!(
                "`{}` names no layout: no time can be read",
                settings.path_of(LAYOUTS.name())
            );
            settings.problem(
                LAYOUTS.name(),
                message,
                "give the time 2006-01-02 15:04:05 as your lines would write it",
            );
        }
        let zone = |name: String| syslog::timezone(&name).map_err(|error| error.to_string());
        let timezone = settings.get(&TIMEZONE).try_map(zone).value();
        let tests = settings.get(&TEST).optional().unwrap_or_default();
        let ignore_missing = settings.get(&IGNORE_MISSING).value();
        let ignore_failure = settings.get(&IGNORE_FAILURE).value();
        settings.get(&ID).optional();
        let layouts: Box<[Layout]> = layouts.iter().map(|text| Layout::new(text)).collect();
        for layout in &layouts {
            if let Layout::Go(layout) = layout
                && layout.is_constant()
            {
                let path = settings.path_of(LAYOUTS.name());
                let message = format!("`{path}`: nothing is read by `{}`", layout.source());
                let hint = "layouts are examples of the time of Go: `2006-01-02 15:04:05`";
                settings.warning(LAYOUTS.name(), message, hint);
            }
        }
        let clock = Arc::clone(clock);
        let processor = Self {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            field: field?,
            target_field,
            layouts,
            timezone,
            ignore_missing,
            ignore_failure,
            clock,
        };
        processor.test(settings, &tests).then_some(processor)
    }

    /// Whether the texts of `test` can be read; reports those that cannot.
    fn test(&self, settings: &Section<'_>, tests: &[String]) -> bool {
        let mut right = true;
        for test in tests.iter().filter(|test| self.parse(ValueRef::Str(test.as_bytes())).is_none())
        {
            let path = settings.path_of(TEST.name());
            let mut why = String::new();
            for layout in &self.layouts {
                let Layout::Go(layout) = layout else { continue };
                if let Err(error) = layout.parse(test.as_bytes(), &self.timezone, || self.now()) {
                    why.push_str(&format!("; `{}`: {error}", layout.source()));
                }
            }
            let message = format!("`{path}`: failed to parse test timestamp `{test}`{why}");
            settings.problem(TEST.name(), message, "");
            right = false;
        }
        right
    }

    fn now(&self) -> i64 {
        self.clock.wall().0
    }

    /// The time that a value is.
    fn parse(&self, value: ValueRef<'_>) -> Option<i64> {
        match value {
            ValueRef::Time(time) => return Some(time),
            ValueRef::Str(text) if text.len() <= LAST_BYTES_MAX => return self.parse_again(text),
            _ => {}
        }
        self.parse_by_layouts(value, || self.now())
    }

    #[cold]
    fn failed(&self, why: std::fmt::Arguments<'_>) -> Failure {
        Failure::unnoted(message_if(!self.ignore_failure, why)).ignored(self.ignore_failure)
    }

    #[cold]
    fn unfit(&self, value: ValueRef<'_>) -> Failure {
        let field = &self.field;
        match value {
            ValueRef::Str(text) => {
                let text = String::from_utf8_lossy(text);
                self.failed(format_args!("failed parsing time field {field}='{text}'"))
            }
            _ => self.failed(format_args!("failed parsing time field {field}: unexpected type")),
        }
    }

    /// The time of a short text, which is remembered unless it depends on the current year.
    fn parse_again(&self, text: &[u8]) -> Option<i64> {
        let place = self.number as usize % LASTS_MAX;
        let known = LASTS.with_borrow(|lasts| {
            let last = &lasts[place];
            (last.of == self.number && last.text[..last.len] == *text).then_some(last.time)
        });
        if known.is_some() {
            return known;
        }
        let asked = Cell::new(false);
        let now = || {
            asked.set(true);
            self.now()
        };
        let time = self.parse_by_layouts(ValueRef::Str(text), now)?;
        if !asked.get() {
            LASTS.with_borrow_mut(|lasts| {
                let last = &mut lasts[place];
                (last.of, last.len, last.time) = (self.number, text.len(), time);
                last.text[..text.len()].copy_from_slice(text);
            });
        }
        Some(time)
    }

    fn parse_by_layouts(&self, value: ValueRef<'_>, now: impl Fn() -> i64) -> Option<i64> {
        self.layouts.iter().find_map(|layout| match layout {
            Layout::Unix(unit) => unix(value, *unit),
            Layout::Go(layout) => match value {
                ValueRef::Str(text) => layout.parse(text, &self.timezone, &now).ok(),
                _ => None,
            },
        })
    }
}

/// A number of units of `unit` nanoseconds: an integer, or a floating-point number, also as text.
fn unix(value: ValueRef<'_>, unit: i64) -> Option<i64> {
    let from_float = |number: f64| {
        let time = number * unit as f64;
        // 2^63: from here on no `i64` has the value.
        (time.abs() < 9_223_372_036_854_775_808.0).then_some(time as i64)
    };
    match value {
        ValueRef::Int(number) => number.checked_mul(unit),
        ValueRef::UInt(number) => i64::try_from(number).ok()?.checked_mul(unit),
        ValueRef::Float(number) => from_float(number),
        ValueRef::Str(text) => {
            let text = std::str::from_utf8(text).ok()?;
            match text.parse::<i64>() {
                Ok(number) => number.checked_mul(unit),
                Err(_) => from_float(text.parse().ok()?),
            }
        }
        _ => None,
    }
}

impl Debug for Timestamp {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.describe())
    }
}

impl Processor for Timestamp {
    fn name(&self) -> &'static str {
        "timestamp"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        let time = match event.as_ref().get(&self.field) {
            None if self.ignore_missing => return Ok(Outcome::Done),
            None => {
                let field = &self.field;
                return Err(
                    self.failed(format_args!("failed to get time field {field}: key not found"))
                );
            }
            Some(value) => self.parse(value).ok_or_else(|| self.unfit(value))?,
        };
        event.put_cell(&self.target_field, EventCell::Time(time)).map_err(|_| {
            let target = &self.target_field;
            self.failed(format_args!(
                "could not put value: {target}: a part of it is not an object"
            ))
        })?;
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        Footprint {
            reads: vec![self.field.clone()],
            writes: vec![self.target_field.clone()],
            ..Footprint::default()
        }
    }

    fn describe(&self) -> String {
        let layouts: Vec<_> = self
            .layouts
            .iter()
            .map(|layout| match layout {
                Layout::Unix(1_000_000) => "UNIX_MS",
                Layout::Unix(_) => "UNIX",
                Layout::Go(layout) => layout.source(),
            })
            .collect();
        format!("timestamp {} from {} by {}", self.target_field, self.field, layouts.join(", "))
    }
}
