//! `add_locale`: the time zone of the machine, as `event.timezone`.
//!
//! It changes twice a year at most; the plan's epoch grows then, so that sources bind again.

use super::Machine;
use crate::kinds::Context;
use crate::plan::Constants;
use crate::plan::Failure;
use crate::plan::Footprint;
use crate::plan::{Outcome, Processor};
use skidder_config::{Group, Key, Section, settings};
use skidder_event::{EventMut, Path, Value};
use skidder_os::Clock;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

settings! {
    /// Settings of `add_locale`.
    pub(crate) static ADD_LOCALE = Group::new("processor.add_locale", "Adds the time zone of the machine as `event.timezone`.");

    FORMAT: String = Key::new("format")
        .default("offset")
        .about("`offset` (`+02:00`) or `abbreviation` (`CEST`)");
}

/// How the time zone is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `+02:00`.
    Offset,
    /// `CEST`.
    Abbreviation,
}

/// Adds the time zone to every event.
pub(crate) struct AddLocale {
    form: Form,
    target: Path,
    machine: Arc<dyn Machine>,
    clock: Arc<dyn Clock>,
    last: Mutex<Last>,
}

/// The last result, and how often it changed.
struct Last {
    zone: String,
    epoch: u64,
}

impl AddLocale {
    /// `format`.
    pub(crate) fn read(settings: &Section<'_>, context: &Context) -> Self {
        let form = settings.get(&FORMAT).try_map(|word| match word.to_lowercase().as_str() {
            "offset" => Ok(Form::Offset),
            "abbreviation" => Ok(Form::Abbreviation),
            _ => Err("expected `offset` or `abbreviation`".to_owned()),
        });
        let form = form.value();
        let (machine, clock) = (Arc::clone(&context.machine), Arc::clone(&context.clock));
        let zone = zone(form, &*machine, &*clock);
        let target = Path::parse("event.timezone").expect("a constant that is a path");
        Self { form, target, machine, clock, last: Mutex::new(Last { zone, epoch: 0 }) }
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fixed(&self) -> Fixed {
        Fixed { target: self.target.clone(), zone: self.last().zone.clone() }
    }
}

/// The time zone as it is now.
fn zone(form: Form, machine: &dyn Machine, clock: &dyn Clock) -> String {
    let now = jiff::Timestamp::from_nanosecond(i128::from(clock.wall().0));
    let now = now.expect("every i64 of nanoseconds lies between the years 1678 and 2262");
    let zone = machine.time_zone();
    let info = zone.to_offset_info(now);
    match form {
        Form::Abbreviation => info.abbreviation().to_owned(),
        Form::Offset => {
            let seconds = info.offset().seconds();
            let minutes = seconds.abs() / 60;
            let sign = if seconds < 0 { '-' } else { '+' };
            format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
        }
    }
}

impl fmt::Debug for AddLocale {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("AddLocale").field("form", &self.form).finish_non_exhaustive()
    }
}

impl Processor for AddLocale {
    fn name(&self) -> &'static str {
        "add_locale"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        self.fixed().run(event)
    }

    fn footprint(&self, constants: &Constants) -> Footprint {
        self.fixed().footprint(constants)
    }

    fn can_fail(&self) -> bool {
        false
    }

    fn bound(&self) -> Option<Arc<dyn Processor>> {
        Some(Arc::new(self.fixed()))
    }

    fn epoch(&self) -> u64 {
        let zone = zone(self.form, &*self.machine, &*self.clock);
        let mut last = self.last();
        if zone != last.zone {
            last.zone = zone;
            last.epoch += 1;
        }
        last.epoch
    }
}

/// The time zone as it was when the plan was bound.
#[derive(Debug)]
struct Fixed {
    target: Path,
    zone: String,
}

impl Processor for Fixed {
    fn name(&self) -> &'static str {
        "add_locale"
    }

    /// A value that is not an object stays, without a failure, as in Filebeat.
    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        let mark = event.mark();
        if event.put_text(&self.target, self.zone.as_bytes()).is_err() {
            event.rollback(mark);
        }
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        Footprint { writes: vec![self.target.clone()], ..Footprint::default() }
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        constants.set(&self.target, Value::from(self.zone.as_str()));
        true
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn can_fail(&self) -> bool {
        false
    }

    fn describe(&self) -> String {
        format!("add_locale {} to {}", self.zone, self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::TimeZone;
    use skidder_config::{Problems, Settings};
    use skidder_os::Timestamp;
    use skidder_testkit::{SimClock, SimFs};
    use std::time::Duration;

    struct InNepal;

    impl Machine for InNepal {
        fn hostname(&self) -> String {
            String::new()
        }

        fn kernel(&self) -> String {
            String::new()
        }

        fn architecture(&self) -> String {
            String::new()
        }

        fn time_zone(&self) -> TimeZone {
            TimeZone::posix("<-0445>4:45CEST,M3.5.0,M10.5.0/3").unwrap()
        }
    }

    #[test]
    fn a_change_of_the_time_zone_is_a_new_epoch() {
        let clock = SimClock::starting_at(Timestamp(1_795_294_377_123_000_000));
        let fs = Arc::new(SimFs::new(&clock));
        let mut context = Context::new(fs, Arc::new(clock.clone()));
        context.machine = Arc::new(InNepal);
        let settings = Settings::parse("test.yml", "a: {}").unwrap();
        let problems = Problems::new();
        let locale = AddLocale::read(&settings.root(&problems).section("a"), &context);
        assert_eq!((locale.epoch(), locale.fixed().zone.as_str()), (0, "-04:45"));
        // From November to July.
        clock.advance(Duration::from_hours(24 * 240));
        assert_eq!((locale.epoch(), locale.fixed().zone.as_str()), (1, "-03:45"));
        assert_eq!(locale.epoch(), 1);
    }
}
