//! `syslog`: a syslog message in a field becomes `@timestamp`, `message` and `log.syslog.*`.
//!
//! The work is done by [`skidder_parse::syslog`], as in the parser of the same name; the field
//! itself stays, but for `message`, which becomes the text of the message.

use crate::plan::{Constants, ERROR_MESSAGE, Failure, Footprint, Outcome, Processor, message_if};
use crate::text::{NoText, text_of};
use jiff::tz::TimeZone;
use skidder_config::{Group, Key, OneOf, Section, settings};
use skidder_event::{Cell, EventMut, Path};
use skidder_os::Clock;
use skidder_parse::syslog::{self, Format, Message};
use std::fmt::Debug;
use std::sync::{Arc, LazyLock};

settings! {
    /// Settings of `syslog`.
    pub(crate) static SYSLOG = Group::new("processor.syslog", "A syslog message (RFC 3164 or RFC 5424) becomes `@timestamp`, \
                               `message` and `log.syslog.*`.");

    FIELD: String = Key::new("field")
        .required()
        .about("the field with the message");
    FORMAT: OneOf<Format> = Key::one_of("format", &[("auto", Format::Auto), ("rfc3164", Format::Rfc3164), ("rfc5424", Format::Rfc5424)])
        .default("auto")
        .about("`rfc3164`, `rfc5424`, or `auto`: what the message begins as");
    TIMEZONE: String = Key::new("timezone")
        .default("Local")
        .about("the zone of times that have none: a name as `Europe/Berlin`, `Local`, or an offset \
                as `+0200`");
    OVERWRITE_KEYS: bool = Key::new("overwrite_keys")
        .default(true)
        .about("existing `message` and fields in `log.syslog` are replaced; `@timestamp` is set in \
                any case");
    IGNORE_MISSING: bool = Key::new("ignore_missing")
        .default(false)
        .about("a missing field is not a failure");
    IGNORE_FAILURE: bool = Key::new("ignore_failure")
        .default(false)
        .about("nothing is a failure; the event stays as it came");
    TAG: String = Key::new("tag")
        .default_words("none")
        .about("a name for this processor, of no effect");
}

static MESSAGE: LazyLock<Path> =
    LazyLock::new(|| Path::parse("message").expect("a constant that is a path"));

/// Reads syslog messages.
#[derive(Clone)]
pub struct Syslog {
    field: Path,
    format: Format,
    timezone: TimeZone,
    overwrite_keys: bool,
    ignore_missing: bool,
    ignore_failure: bool,
    /// For the year of times without one.
    clock: Arc<dyn Clock>,
}

impl Syslog {
    /// `field`, `format`, `timezone`, `overwrite_keys`, `ignore_missing`, `ignore_failure`, `tag`.
    pub(crate) fn read(settings: &Section<'_>, clock: &Arc<dyn Clock>) -> Option<Self> {
        let parse = |text: String| Path::parse(&text).map_err(|error| error.to_string());
        let field = settings.get(&FIELD).try_map(parse).optional();
        if !settings.has_key(&FIELD) {
            let message = format!("`{}` is missing", settings.path_of(FIELD.name()));
            settings.problem(
                FIELD.name(),
                message,
                "name the field with the message: `field: message`",
            );
        }
        let zone = |name: String| syslog::timezone(&name).map_err(|error| error.to_string());
        let format = settings.get(&FORMAT).value();
        let timezone = settings.get(&TIMEZONE).try_map(zone).value();
        let overwrite_keys = settings.get(&OVERWRITE_KEYS).value();
        let ignore_missing = settings.get(&IGNORE_MISSING).value();
        let ignore_failure = settings.get(&IGNORE_FAILURE).value();
        settings.get(&TAG).optional();
        let clock = Arc::clone(clock);
        Some(Self {
            field: field?,
            format,
            timezone,
            overwrite_keys,
            ignore_missing,
            ignore_failure,
            clock,
        })
    }

    #[cold]
    fn failure(&self, why: &dyn std::fmt::Display) -> Failure {
        let reason = format_args!("syslog failed to process field \"{}\": {why}", self.field);
        Failure::behind(message_if(!self.ignore_failure, reason)).ignored(self.ignore_failure)
    }
}

impl Debug for Syslog {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.describe())
    }
}

impl Processor for Syslog {
    fn name(&self) -> &'static str {
        "syslog"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        let text = match text_of(event, &self.field) {
            Ok(text) => text,
            Err(NoText::Missing) if self.ignore_missing => return Ok(Outcome::Done),
            Err(NoText::Missing) => return Err(self.failure(&"key not found")),
            Err(NoText::OtherKind) => {
                let field = &self.field;
                return Err(
                    self.failure(&format_args!("type of field \"{field}\" is not a string"))
                );
            }
        };
        let now = self.clock.wall().0;
        let (message, done) = Message::parse(event.text(text), self.format, &self.timezone, now);
        done.map_err(|error| self.failure(&error))?;
        message.put_header(event, text, self.overwrite_keys);
        if let Some(rest) = message.text(text)
            && (self.overwrite_keys || !event.as_ref().has(&MESSAGE))
        {
            let put = event.put_cell(&MESSAGE, Cell::Str(rest));
            put.map_err(|error| self.failure(&error))?;
        }
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let path = |name| Path::parse(name).expect("a constant that is a path");
        let mut writes: Vec<Path> =
            ["@timestamp", "message", "log.syslog"].into_iter().map(path).collect();
        writes.push(ERROR_MESSAGE.clone());
        Footprint { reads: vec![self.field.clone()], writes, open: true, ..Footprint::default() }
    }

    fn describe(&self) -> String {
        format!("syslog {}", self.field)
    }
}
