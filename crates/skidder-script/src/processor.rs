//! The processor: its settings, its sessions, one event through one of them.

use crate::session::{Program, Purpose, ScriptError, Session};
use crate::sources;
use skidder_config::{Any, Group, Key, Section, settings};
use skidder_event::{EventMut, Path};
use skidder_processors::{Constants, Context, Failure, Footprint, Outcome, Processor};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

settings! {
    /// Settings of `script`.
    pub(crate) static SCRIPT = Group::new("processor.script", "Runs a program in JavaScript on each event.")
        .include(&[&sources::SOURCES]);

    LANG: String = Key::new("lang")
        .required()
        .about("`javascript`");
    PARAMS: Any = Key::new("params")
        .default_words("none")
        .about("the argument of the program's function `register(params)`, which is called at the \
                start");
    TAG: String = Key::new("tag")
        .default("")
        .default_words("none")
        .about("a name for this processor, used in messages about it");
    ID: String = Key::new("id")
        .default("")
        .default_words("none")
        .about("the same, if there is no `tag`");
    TAG_ON_EXCEPTION: String = Key::new("tag_on_exception")
        .default(Script::TAG_ON_EXCEPTION)
        .about("the tag for an event on which the program throws; \"\" adds none");
    TIMEOUT: Duration = Key::new("timeout")
        .default_words("none")
        .about("how long `process` may take for one event; then the program is stopped, which is an \
                exception");
    MAX_CACHED_SESSIONS: usize = Key::new("max_cached_sessions")
        .default(Script::MAX_CACHED_SESSIONS)
        .about("how many runtimes with the program loaded are kept; as many as there are threads \
                that run it at the same time are best");
}

/// Runs a program in JavaScript on each event.
pub(crate) struct Script {
    program: Program,
    /// Idle sessions.
    sessions: Mutex<Vec<Session>>,
    sessions_max: usize,
    tag: String,
    /// Tags added after a failure; nothing if empty.
    tag_on_exception: String,
    tags: Path,
}

impl std::fmt::Debug for Script {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.describe())
    }
}

impl Script {
    /// Tags added after a failure by default.
    const TAG_ON_EXCEPTION: &'static str = "_js_exception";
    /// Sessions that are kept if nothing is said.
    const MAX_CACHED_SESSIONS: usize = 4;

    /// All settings of the processor. The program is loaded once to see that it can be.
    pub(crate) fn read(settings: &Section<'_>, context: &Context) -> Option<Self> {
        let lang = settings.get(&LANG).check(|lang| match lang.as_str() {
            "javascript" | "js" => Ok(()),
            _ => Err("`javascript` is the only language".to_owned()),
        });
        let lang = lang.required();
        let tag = settings.get(&TAG).value();
        let id = settings.get(&ID).value();
        let tag = if tag.is_empty() { id } else { tag };
        let params = settings.get(&PARAMS).optional();
        let timeout = settings.get(&TIMEOUT).optional().filter(|timeout| !timeout.is_zero());
        let tag_on_exception = settings.get(&TAG_ON_EXCEPTION).value();
        let sessions_max = settings.get(&MAX_CACHED_SESSIONS).value();
        let (key, name, text) = sources::read(settings, &*context.fs)?;
        if lang.is_empty() {
            return None;
        }
        let params = params.filter(|params| match params {
            skidder_config::Value::Map(map) => !map.is_empty(),
            _ => true,
        });
        let purpose = Purpose::Events;
        let program = Program { purpose, name, text, params, timeout, context: context.clone() };
        let session = match Session::load(&program) {
            Ok(session) => session,
            Err(ScriptError { message, .. }) => {
                let path = settings.path_of(key);
                settings.problem(key, format!("`{path}` cannot be loaded: {message}"), "");
                return None;
            }
        };
        let sessions = if sessions_max > 0 { vec![session] } else { Vec::new() };
        Some(Self {
            program,
            sessions: Mutex::new(sessions),
            sessions_max,
            tag,
            tag_on_exception,
            tags: Path::parse("tags").expect("a constant that is a path"),
        })
    }

    /// An idle session, or a new one.
    fn take(&self) -> Result<Session, ScriptError> {
        let kept = self.sessions.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match kept {
            Some(session) => Ok(session),
            None => Session::load(&self.program),
        }
    }

    fn put_back(&self, session: Session) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() < self.sessions_max {
            sessions.push(session);
        }
    }

    fn failure(&self, error: &ScriptError) -> Failure {
        let failure = Failure::new(error.message.clone());
        if self.tag_on_exception.is_empty() {
            return failure;
        }
        failure.append(self.tags.clone(), &self.tag_on_exception)
    }
}

impl Processor for Script {
    fn name(&self) -> &'static str {
        "script"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        let session = self.take().map_err(|error| self.failure(&error))?;
        let result = session.run(event);
        let stopped = result.as_ref().is_err_and(|error| error.stopped);
        if !stopped {
            self.put_back(session);
        }
        match result {
            Ok(true) => Ok(Outcome::Dropped),
            Ok(false) => Ok(Outcome::Done),
            Err(error) => Err(self.failure(&error)),
        }
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        Footprint::everything()
    }

    fn describe(&self) -> String {
        let tag = if self.tag.is_empty() { String::new() } else { format!(" {}", self.tag) };
        format!("script{tag} of {}", self.program.name)
    }
}
