//! From events of `tracing` to lines.

use crate::line::{Line, masked};
use crate::queue::Queue;
use crate::selectors::Selectors;
use crate::sinks::Stderr;
use serde_json::{Map, Value};
use skidder_os::Clock;
use std::fmt::{self, Write as _};
use std::sync::Arc;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

/// Lines with this target hold the content of events. They go to the files of `logging.event_data`,
/// and nowhere else.
pub const EVENT_DATA: &str = "skidder::event_data";

/// Makes a line of each event of our own crates, and of warnings and errors of libraries.
pub(crate) struct LineLayer {
    pub(crate) level: Level,
    pub(crate) selectors: Selectors,
    /// There is a place for the content of events.
    pub(crate) event_data: bool,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) out: Out,
}

/// Where lines go from here.
pub(crate) enum Out {
    /// To the thread that writes them.
    Queue(Arc<Queue>),
    /// To stderr at once, for commands that end soon.
    Stderr(Stderr),
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for LineLayer {
    fn enabled(&self, metadata: &tracing::Metadata<'_>, _: Context<'_, S>) -> bool {
        if metadata.is_span() {
            return true;
        }
        let level = *metadata.level();
        if metadata.target() == EVENT_DATA {
            return self.event_data && level <= self.level;
        }
        // Debug lines of libraries may hold anything, passwords too.
        if !metadata.target().starts_with("skidder") {
            return level <= Level::WARN.min(self.level);
        }
        level <= self.level && (level < Level::DEBUG || self.selectors.select(&logger_of(metadata)))
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::from_level(self.level))
    }

    fn on_new_span(&self, span: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(kept) = context.span(id) else { return };
        let mut fields = Fields::default();
        span.record(&mut fields);
        // The span of an output: log lines inside it carry its id.
        let named = fields.map.remove("id").map(|id| (format!("{}.id", kept.name()), id));
        kept.extensions_mut().insert(OfSpan(named));
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
        let is_event_data = metadata.target() == EVENT_DATA;
        let mut fields = Fields { verbatim: is_event_data, ..Fields::default() };
        event.record(&mut fields);
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(OfSpan(Some((name, id)))) = span.extensions().get::<OfSpan>() {
                fields.map.insert(name.clone(), id.clone());
            }
        }
        let line = Line {
            level: *metadata.level(),
            time: self.clock.wall(),
            logger: logger_of(metadata),
            origin: metadata.file().zip(metadata.line()),
            message: fields.message,
            fields: fields.map,
        };
        match &self.out {
            Out::Stderr(stderr) => stderr.write(&[line]),
            Out::Queue(queue) if is_event_data => {
                queue.push_event_data(line.with("log.type", "event"));
            }
            Out::Queue(queue) => queue.push(metadata.callsite(), line, self.clock.monotonic()),
        }
    }
}

fn logger_of(metadata: &tracing::Metadata<'_>) -> String {
    metadata.target().replace("::", ".")
}

/// The field of every log line inside a span: a name and a value.
struct OfSpan(Option<(String, Value)>);

/// Collects the fields of one event.
#[derive(Default)]
struct Fields {
    message: String,
    map: Map<String, Value>,
    /// What events hold is theirs: nothing is masked.
    verbatim: bool,
}

impl Fields {
    fn set(&mut self, field: &Field, value: Value) {
        let name = match field.name() {
            "error" => "error.message",
            name => name,
        };
        self.map.insert(name.to_owned(), value);
    }

    fn set_text(&mut self, field: &Field, text: &str) {
        let text = if self.verbatim { text.into() } else { masked(text).into() };
        self.set(field, text);
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        match field.name() {
            "message" => self.message = masked(&text).into_owned(),
            // The metrics of the periodic line are JSON, and are shown as such.
            "monitoring" => {
                let value = serde_json::from_str(&text).unwrap_or(Value::from(text));
                self.set(field, value);
            }
            _ => self.set_text(field, &text),
        }
    }

    /// With all its causes, unless the text has them already.
    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        let mut text = value.to_string();
        let mut cause = value.source();
        while let Some(error) = cause {
            let more = error.to_string();
            if !text.ends_with(&more) {
                write!(text, ": {more}").expect("writing to a string cannot fail");
            }
            cause = error.source();
        }
        self.set_text(field, &text);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.message = masked(value).into_owned(),
            _ => self.set_text(field, value),
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value.into());
    }
}
