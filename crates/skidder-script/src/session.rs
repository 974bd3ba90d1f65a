//! One runtime with a program loaded.

use crate::{convert, current, native};
use rquickjs::context::EvalOptions;
use rquickjs::{
    CatchResultExt, CaughtError, Coerced, Context as JsContext, Ctx, Error, Function, Runtime,
    Value,
};
use skidder_config::Value as Setting;
use skidder_event::EventMut;
use skidder_os::Clock;
use skidder_processors::Context;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// What a program works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Events, with its function `process`.
    Events,
    /// Messages of a queue, with its function `parse`.
    Notifications,
}

/// The common part of all sessions of a program.
pub(crate) struct Program {
    /// What it works on.
    pub(crate) purpose: Purpose,
    /// Its origin, for messages.
    pub(crate) name: String,
    /// Its text.
    pub(crate) text: String,
    /// The argument of `register`.
    pub(crate) params: Option<Setting>,
    /// How long `process` may take for one event; no bound if nothing.
    pub(crate) timeout: Option<Duration>,
    /// The files and processors that it may use.
    pub(crate) context: Context,
}

/// Why a program did not get to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct ScriptError {
    /// In words, as the program would see it.
    pub(crate) message: String,
    /// It was stopped: its state is unknown.
    pub(crate) stopped: bool,
}

/// Heap limit of one session. A program that exceeds it is stopped, and its session thrown away.
const MEMORY_BYTES_MAX: usize = 64 << 20;

/// Stack of a program; deeper calls are an exception that it can catch. Well below the stack of a thread.
const STACK_BYTES_MAX: usize = 512 << 10;

/// The error when the time is over, as in Filebeat.
const TIMEOUT: &str = "javascript processor execution timeout";

/// The same for messages.
const PARSER_TIMEOUT: &str = "javascript parser execution timeout";

/// The message if skidder stops meanwhile. The event is not sent: the next start reads it again.
const INTERRUPTED: &str = "skidder ends, and the script did not";

const PRELUDE: &str = include_str!("prelude.js");
const NOTIFICATIONS_PRELUDE: &str = include_str!("notifications.js");

/// A program, loaded.
pub(crate) struct Session {
    context: JsContext,
    deadline: Arc<Deadline>,
    timeout: Option<Duration>,
    purpose: Purpose,
}

/// When the program is to be stopped.
struct Deadline {
    clock: Arc<dyn Clock>,
    /// Nanoseconds of the monotonic clock; `NEVER` while there is no bound.
    at: AtomicU64,
    /// The program ends.
    interrupt: Arc<AtomicBool>,
}

const NEVER: u64 = u64::MAX;

impl Deadline {
    fn now(&self) -> u64 {
        u64::try_from(self.clock.monotonic().0.as_nanos()).unwrap_or(NEVER - 1)
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    fn is_over(&self) -> bool {
        let at = self.at.load(Ordering::Relaxed);
        self.is_interrupted() || at != NEVER && self.now() >= at
    }
}

impl Session {
    /// Loads the program: runs its text, `register` if there are parameters, and `test` if it has one.
    pub(crate) fn load(program: &Program) -> Result<Self, ScriptError> {
        let clock = Arc::clone(&program.context.clock);
        let interrupt = Arc::clone(&program.context.interrupt);
        let deadline = Arc::new(Deadline { clock, at: AtomicU64::new(NEVER), interrupt });
        let context = runtime(&deadline).map_err(|error| no_room(&error))?;
        let Program { timeout, purpose, .. } = *program;
        let session = Self { context, deadline, timeout, purpose };
        current::without(|| {
            session.context.with(|ctx| {
                let loaded = session.load_into(&ctx, program).catch(&ctx);
                loaded.map_err(|error| session.error(error))
            })
        })?;
        Ok(session)
    }

    fn load_into<'js>(&self, ctx: &Ctx<'js>, program: &Program) -> rquickjs::Result<()> {
        let mut options = EvalOptions::default();
        options.filename = Some("prelude.js".to_owned());
        match self.purpose {
            Purpose::Events => {
                let prelude: Function<'js> = ctx.eval_with_options(PRELUDE, options)?;
                prelude.call::<_, ()>((native::functions(ctx, &program.context)?,))?;
            }
            Purpose::Notifications => {
                let prelude: Function<'js> =
                    ctx.eval_with_options(NOTIFICATIONS_PRELUDE, options)?;
                prelude.call::<_, ()>(())?;
            }
        }
        let mut options = EvalOptions::default();
        options.filename = Some(program.name.clone());
        ctx.eval_with_options::<Value<'js>, _>(program.text.as_str(), options)?;
        let start: Function<'js> = ctx.globals().get("__start")?;
        match &program.params {
            Some(params) => start.call((convert::setting_to_js(ctx, params)?,)),
            None => start.call(()),
        }
    }

    /// Runs `process` on an event; returns whether that cancelled it. After an error the event may be
    /// half changed.
    pub(crate) fn run(&self, event: &mut EventMut<'_>) -> Result<bool, ScriptError> {
        self.begin();
        let (result, cancelled) = current::lend(event, || {
            self.context.with(|ctx| {
                let run: Function<'_> =
                    ctx.globals().get("__run").map_err(|error| no_room(&error))?;
                run.call::<_, ()>(()).catch(&ctx).map_err(|error| self.error(error))
            })
        });
        self.deadline.at.store(NEVER, Ordering::Relaxed);
        result.map(|()| cancelled)
    }

    /// Runs `parse` on a message; returns the objects that it names, as JSON.
    pub(crate) fn parse(&self, message: &str) -> Result<String, ScriptError> {
        self.begin();
        let result = self.context.with(|ctx| {
            let parse: Function<'_> =
                ctx.globals().get("__parse").map_err(|error| no_room(&error))?;
            parse.call::<_, String>((message,)).catch(&ctx).map_err(|error| self.error(error))
        });
        self.deadline.at.store(NEVER, Ordering::Relaxed);
        result
    }

    /// The time of one call begins.
    fn begin(&self) {
        if let Some(timeout) = self.timeout {
            let span = u64::try_from(timeout.as_nanos()).unwrap_or(NEVER);
            let at = self.deadline.now().saturating_add(span).min(NEVER - 1);
            self.deadline.at.store(at, Ordering::Relaxed);
        }
    }

    /// An exception in words, with where it was thrown.
    fn error(&self, error: CaughtError<'_>) -> ScriptError {
        if self.deadline.is_interrupted() {
            return ScriptError { message: INTERRUPTED.to_owned(), stopped: true };
        }
        if self.deadline.is_over() {
            let message = match self.purpose {
                Purpose::Events => TIMEOUT,
                Purpose::Notifications => PARSER_TIMEOUT,
            };
            return ScriptError { message: message.to_owned(), stopped: true };
        }
        let thrown = match error {
            CaughtError::Error(error) => return no_room(&error),
            CaughtError::Exception(exception) => exception.into_object().into_value(),
            CaughtError::Value(value) => value,
        };
        let words = thrown.get::<Coerced<String>>().map(|text| text.0);
        let Ok(mut message) = words else { return no_room(&Error::Allocation) };
        // The exception for want of memory may be nothing at all, because there was none left for it.
        let stopped = thrown.is_null() || message.contains("out of memory");
        let stack = thrown.as_object().and_then(|thrown| thrown.get::<_, String>("stack").ok());
        if let Some(place) = stack.as_deref().and_then(|stack| stack.lines().next()) {
            message.push(' ');
            message.push_str(place.trim());
        }
        if stopped {
            return no_room(&Error::Allocation);
        }
        ScriptError { message, stopped }
    }
}

fn no_room(error: &Error) -> ScriptError {
    let message = match error {
        Error::Allocation | Error::Exception => {
            format!("out of memory: a script may take {} MiB", MEMORY_BYTES_MAX >> 20)
        }
        error => error.to_string(),
    };
    ScriptError { message, stopped: true }
}

fn runtime(deadline: &Arc<Deadline>) -> rquickjs::Result<JsContext> {
    let runtime = Runtime::new()?;
    runtime.set_memory_limit(MEMORY_BYTES_MAX);
    runtime.set_max_stack_size(STACK_BYTES_MAX);
    let deadline = Arc::clone(deadline);
    runtime.set_interrupt_handler(Some(Box::new(move || deadline.is_over())));
    JsContext::full(&runtime)
}
