//! `cache`: remembers values of events under a key, and gives them to later events.
//!
//! Processors with the same backend and id share one store (`cache/store.rs`), wherever they stand in the
//! configuration. A store in a file is read at the start (`cache/file.rs`).

mod file;
mod store;

pub use store::Caches;

use crate::fields::pairs::required_path;
use crate::go_value::go_type;
use crate::kinds::Context;
use crate::plan::{
    Constants, Failure, Footprint, Outcome, Processor, is_owned_as, message_if, owned,
};
use skidder_config::Section;
use skidder_event::{EventMut, EventRef, Path, ValueRef};
use smallvec::SmallVec;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;
use store::{Backend, Rules, Store};

/// What is done with the store.
#[derive(Clone, Debug)]
enum Operation {
    Put { key: Path, value: Path },
    Get { key: Path, target: Path },
    Delete { key: Path },
}

/// Puts a value of the event into a store, gets one from there, or deletes it there.
#[derive(Debug)]
pub(crate) struct Cache {
    operation: Operation,
    store: Arc<Store>,
    ignore_missing: bool,
    ignore_failure: bool,
    overwrite_keys: bool,
}

impl Cache {
    /// `backend.*`, one of `put`, `get` and `delete`, `ignore_missing`, `ignore_failure`, `overwrite_keys`.
    pub(crate) fn read(settings: &Section<'_>, context: &Context) -> Option<Self> {
        let backend = read_backend(settings, context);
        let capacity = settings.usize("backend.capacity").or(0);
        settings.deprecated(
            &["backend.eviction_effort"],
            "everything that has expired is forgotten at each `put`",
        );
        let ignore_missing = settings.bool("ignore_missing").or(true);
        let ignore_failure = settings.bool("ignore_failure").or(false);
        let overwrite_keys = settings.bool("overwrite_keys").or(false);
        let (operation, ttl) = read_operation(settings)?;
        let (backend, write_interval) = backend?;
        let store = match context.caches.open(&backend, write_interval, context) {
            Ok(store) => store,
            Err(error) => {
                let message = format!("`{}`: {error}", settings.path_of("backend.file.id"));
                let hint = "make the file readable, or remove it and begin with an empty cache";
                settings.problem("backend", message, hint);
                return None;
            }
        };
        if let Some(ttl) = ttl
            && let Some(before) = store.set_rules(Rules { ttl, capacity })
        {
            let message = format!(
                "`{}`: an earlier `put` into {backend} has other settings (`ttl` {:?}, `capacity` {}), which count",
                settings.path(),
                before.ttl,
                before.capacity
            );
            settings.warning("put", message, "give both the same, or another `id`");
        }
        Some(Self { operation, store, ignore_missing, ignore_failure, overwrite_keys })
    }

    /// A message, if it is used.
    fn message(&self, message: impl Display) -> String {
        message_if(!self.ignore_failure, format_args!("{message}"))
    }

    /// The text at the key's path; `None` if there is none.
    fn key<'a>(&self, event: EventRef<'a>, path: &Path) -> Result<Option<&'a str>, String> {
        match event.get(path) {
            None => Ok(None),
            Some(ValueRef::Str(text)) => std::str::from_utf8(text)
                .map(Some)
                .map_err(|_| self.message(format_args!("key field '{path}' is not UTF-8"))),
            Some(value) => {
                let kind = go_type(value);
                Err(self.message(format_args!("key field '{path}' not a string: {kind}")))
            }
        }
    }

    fn put(&self, event: &EventMut<'_>, key: &Path, value: &Path) -> Result<(), String> {
        let event = event.as_ref();
        let found = self.key(event, key)?.zip(event.get(value));
        let Some((key, found)) = found else {
            return if self.ignore_missing { Ok(()) } else { Err(self.message("key not found")) };
        };
        if self.store.put_again(key, |known| is_owned_as(found, known)) {
            return Ok(());
        }
        let found = owned(found).ok_or_else(|| {
            self.message(format_args!("failed to put '{key}' into '{value}': it is not UTF-8"))
        })?;
        self.store.put(key, found);
        Ok(())
    }

    fn get(&self, event: &mut EventMut<'_>, key: &Path, target: &Path) -> Result<(), String> {
        if !self.overwrite_keys && event.as_ref().has(target) {
            return Err(self.message(format_args!(
                "error applying cache get processor: target field '{target}' already exists and overwrite_keys is false"
            )));
        }
        let applying = |error: &dyn Display| {
            self.message(format_args!("error applying cache get processor: {error}"))
        };
        let Some(text) = self.key(event.as_ref(), key).map_err(|error| applying(&error))? else {
            return if self.ignore_missing { Ok(()) } else { Err(applying(&"key not found")) };
        };
        let mut room: SmallVec<[u8; 128]> = SmallVec::new();
        room.extend_from_slice(text.as_bytes());
        let text = str::from_utf8(&room).unwrap_or_default();
        match self.store.get(text, |value| event.put(target, value)) {
            Some(put) => put.map_err(|error| applying(&error)),
            None => Err(self.message(format_args!("metadata not found for '{text}'"))),
        }
    }

    fn delete(&self, event: &EventMut<'_>, key: &Path) -> Result<(), String> {
        let key = self.key(event.as_ref(), key)?.ok_or_else(|| self.message("key not found"))?;
        self.store.delete(key);
        Ok(())
    }
}

/// The backend, and how often its file is written. Returns `None`, and reports the problem, if
/// there is not exactly one.
fn read_backend(settings: &Section<'_>, context: &Context) -> Option<(Backend, Duration)> {
    let id = |key: &str| settings.string(key).optional().filter(|id| !id.is_empty());
    let memory = id("backend.memory.id");
    let file = id("backend.file.id");
    let period = settings.duration("backend.file.write_period").or(Duration::ZERO);
    let interval = settings.duration("backend.file.write_interval").or(period);
    match (memory, file) {
        (Some(id), None) => Some((Backend::Memory(id), interval)),
        (None, Some(id)) => Some((Backend::file(id, &context.data), interval)),
        _ => {
            let message = format!(
                "`{}` needs exactly one of `memory.id` and `file.id`",
                settings.path_of("backend")
            );
            settings.problem("backend", message, "processors with the same id share their entries");
            None
        }
    }
}

/// The operation, and how long that lives what it puts.
fn read_operation(settings: &Section<'_>) -> Option<(Operation, Option<Duration>)> {
    let names = ["put", "get", "delete"];
    let given: Vec<&str> = names.into_iter().filter(|name| settings.has(name)).collect();
    for name in names {
        // Read, so that the names are known and the problem of a missing operation can list them.
        settings.accept(name);
    }
    let [name] = given[..] else {
        let message =
            format!("`{}` needs exactly one of `put`, `get` and `delete`", settings.path());
        settings.problem("", message, "use a processor for each");
        return None;
    };
    let section = settings.section(name);
    let key = required_path(&section, "key_field");
    match name {
        "put" => {
            let value = required_path(&section, "value_field");
            let ttl = section.duration("ttl");
            if !ttl.is_set() {
                let message = format!("`{}` is missing", section.path_of("ttl"));
                section.problem("ttl", message, "give a duration, as in `24h`");
            }
            let ttl = ttl.optional();
            Some((Operation::Put { key: key?, value: value? }, Some(ttl?)))
        }
        "get" => {
            let target = required_path(&section, "target_field");
            Some((Operation::Get { key: key?, target: target? }, None))
        }
        _ => Some((Operation::Delete { key: key? }, None)),
    }
}

impl Processor for Cache {
    fn name(&self) -> &'static str {
        "cache"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        let applying = |verb: &'static str| {
            move |error: String| {
                self.message(format_args!("error applying cache {verb} processor: {error}"))
            }
        };
        let done = match &self.operation {
            Operation::Put { key, value } => self.put(event, key, value).map_err(applying("put")),
            Operation::Get { key, target } => self.get(event, key, target),
            Operation::Delete { key } => self.delete(event, key).map_err(applying("delete")),
        };
        match done {
            Ok(()) => Ok(Outcome::Done),
            Err(reason) => Err(Failure::unnoted(reason).ignored(self.ignore_failure)),
        }
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let (reads, writes) = match &self.operation {
            Operation::Put { key, value } => (vec![key.clone(), value.clone()], Vec::new()),
            Operation::Get { key, target } => {
                (vec![key.clone(), target.clone()], vec![target.clone()])
            }
            Operation::Delete { key } => (vec![key.clone()], Vec::new()),
        };
        Footprint { reads, writes, open: true, ..Footprint::default() }
    }

    fn can_fail(&self) -> bool {
        !self.ignore_failure
    }

    fn describe(&self) -> String {
        match &self.operation {
            Operation::Put { key, value } => format!("cache put {value} by {key}"),
            Operation::Get { key, target } => format!("cache get {target} by {key}"),
            Operation::Delete { key } => format!("cache delete by {key}"),
        }
    }
}

#[cfg(test)]
mod tests;
