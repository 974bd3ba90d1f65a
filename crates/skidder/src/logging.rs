//! Our own log: ECS JSON, one object a line, on stderr.

use skidder_event::{Precision, TimeText};
use skidder_os::{Clock, SystemClock};
use std::fmt::{self, Write as _};
use std::io::Write as _;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// What the path of the store's source contains.
const STORE: &str = "/redb-";

/// Turns the log on. Called once; a second call changes nothing.
pub(crate) fn start(level: Level) {
    let subscriber =
        tracing_subscriber::registry().with(EcsLayer { level, clock: SystemClock::new() });
    // Only a second call can fail, and then the first one holds.
    drop(tracing::subscriber::set_global_default(subscriber));
    std::panic::set_hook(Box::new(log_panic));
}

/// A panic is a bug and goes to the log like everything else, with what is needed to find it.
fn log_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let what = panic.payload_as_str().unwrap_or("no message");
    if place.contains(STORE) {
        // How the store says that its file is damaged; the registry catches it and tells.
        tracing::debug!(place, what, "the store of the registry gave up");
        return;
    }
    let backtrace = std::backtrace::Backtrace::force_capture();
    tracing::error!(place, what, %backtrace, "a bug in skidder: a thread has panicked");
}

/// Writes each event of our own crates as one line.
struct EcsLayer {
    level: Level,
    clock: SystemClock,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for EcsLayer {
    fn enabled(&self, metadata: &tracing::Metadata<'_>, _: Context<'_, S>) -> bool {
        // Libraries speak only when something is wrong.
        let ours = metadata.target().starts_with("skidder");
        *metadata.level() <= if ours { self.level } else { Level::WARN.min(self.level) }
    }

    fn on_new_span(&self, span: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(kept) = context.span(id) else { return };
        let mut fields = Line::default();
        span.record(&mut fields);
        // Of one output: what happens in it is told with its id.
        let named = fields.fields.remove("id").map(|id| (format!("{}.id", kept.name()), id));
        kept.extensions_mut().insert(OfSpan(named));
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut line = Line::default();
        event.record(&mut line);
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(OfSpan(Some((name, id)))) = span.extensions().get::<OfSpan>() {
                line.fields.insert(name.clone(), id.clone());
            }
        }
        let mut time = TimeText::new(Precision::Millisecond);
        let time = String::from_utf8_lossy(time.format(self.clock.wall().0)).into_owned();
        let level = match *event.metadata().level() {
            Level::ERROR => "error",
            Level::WARN => "warn",
            Level::INFO => "info",
            Level::DEBUG | Level::TRACE => "debug",
        };
        let mut object = serde_json::Map::new();
        object.insert("log.level".to_owned(), level.into());
        object.insert("@timestamp".to_owned(), time.into());
        object.insert("log.logger".to_owned(), event.metadata().target().replace("::", ".").into());
        object.insert("message".to_owned(), line.message.into());
        object.insert("service.name".to_owned(), "skidder".into());
        object.insert("ecs.version".to_owned(), "1.6.0".into());
        object.extend(line.fields);
        let mut text = serde_json::Value::Object(object).to_string();
        text.push('\n');
        // There is nowhere to tell that stderr is closed.
        drop(std::io::stderr().lock().write_all(text.as_bytes()));
    }
}

/// What is told of everything that happens in a span: a name and a value.
struct OfSpan(Option<(String, serde_json::Value)>);

/// Collects the fields of one event.
#[derive(Default)]
struct Line {
    message: String,
    fields: serde_json::Map<String, serde_json::Value>,
}

impl Line {
    fn set(&mut self, field: &Field, value: serde_json::Value) {
        let name = match field.name() {
            "error" => "error.message",
            name => name,
        };
        self.fields.insert(name.to_owned(), value);
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            write!(self.message, "{value:?}").expect("writing to a string cannot fail");
            return;
        }
        let text = format!("{value:?}");
        // A value that is JSON is shown as such: the metrics of the periodic line.
        let value = if field.name() == "monitoring" {
            serde_json::from_str(&text).unwrap_or(text.into())
        } else {
            text.into()
        };
        self.set(field, value);
    }

    /// With everything that caused it, unless the text says that already.
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
        self.set(field, text.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, value.into());
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
