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
use skidder_config::{Group, Key, Part, Section, settings};
use skidder_event::{EventMut, EventRef, Path, ValueRef};
use smallvec::SmallVec;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;
use store::{Backend, Rules, Store};

settings! {
    /// Settings of `cache`.
    pub(crate) static CACHE = Group::new("processor.cache", "Stores values of events under a key, and adds them to later events.").deprecated(&[(
        "backend.eviction_effort",
        "everything that has expired is forgotten at each `put`",
    )]);

    MEMORY_ID: String = Key::new("backend.memory.id")
        .default_words("this or `backend.file.id`")
        .about("name of a store in memory, lost when the program ends");
    FILE_ID: String = Key::new("backend.file.id")
        .default_words("this or `backend.memory.id`")
        .about("name of a store in the file `cache_processor/ID` under `path.data`, read at the \
                start and written at the end; its lines are those of Filebeat");
    WRITE_INTERVAL: Duration = Key::new("backend.file.write_interval")
        .default_words("`0s`")
        .about("how often the file is written while events come; 0 is only at the end");
    WRITE_PERIOD: Duration = Key::new("backend.file.write_period")
        .default(Duration::ZERO)
        .about("an older name of `write_interval`");
    CAPACITY: usize = Key::new("backend.capacity")
        .default(0)
        .about("how many entries there are at most; 0 is 1,048,576. The entry that expires first is \
                removed. The setting of the first `put` counts");
    PUT: Part = Key::part("put", &PUT_KEYS)
        .default_words("one of `put`, `get` and `delete`")
        .about("stores a value");
    GET: Part = Key::part("get", &GET_KEYS)
        .default_words("one of `put`, `get` and `delete`")
        .about("looks up a value");
    DELETE: Part = Key::part("delete", &DELETE_KEYS)
        .default_words("one of `put`, `get` and `delete`")
        .about("deletes a value");
    IGNORE_MISSING: bool = Key::new("ignore_missing")
        .default(true)
        .about("a missing key or value is not a failure of `put` and `get`");
    IGNORE_FAILURE: bool = Key::new("ignore_failure")
        .default(false)
        .about("nothing is a failure");
    OVERWRITE_KEYS: bool = Key::new("overwrite_keys")
        .default(false)
        .about("an existing `target_field` is replaced; otherwise it is a failure");
}

settings! {
    /// `put`.
    static PUT_KEYS = Group::new("processor.cache.put", "Stores a value.").inline();

    PUT_KEY: String = Key::new("key_field")
        .default_words("one of `put`, `get` and `delete`")
        .about("stores a value: the field with the key, a text");
    VALUE_FIELD: String = Key::new("value_field")
        .default_words("required with `put`")
        .about("the field with the value, of any kind");
    TTL: Duration = Key::new("ttl")
        .default_words("required with `put`")
        .about("how long it is stored. The setting of the first `put` counts");
}

settings! {
    /// `get`.
    static GET_KEYS = Group::new("processor.cache.get", "Looks up a value.").inline();

    GET_KEY: String = Key::new("key_field")
        .default_words("one of `put`, `get` and `delete`")
        .about("looks up a value: the field with the key");
    TARGET_FIELD: String = Key::new("target_field")
        .default_words("required with `get`")
        .about("where the value goes");
}

settings! {
    /// `delete`.
    static DELETE_KEYS = Group::new("processor.cache.delete", "Deletes a value.").inline();

    DELETE_KEY: String = Key::new("key_field")
        .default_words("one of `put`, `get` and `delete`")
        .about("deletes a value: the field with the key");
}

/// The operation on the store.
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
        let capacity = settings.get(&CAPACITY).value();
        let ignore_missing = settings.get(&IGNORE_MISSING).value();
        let ignore_failure = settings.get(&IGNORE_FAILURE).value();
        let overwrite_keys = settings.get(&OVERWRITE_KEYS).value();
        let (operation, ttl) = read_operation(settings)?;
        let (backend, write_interval) = backend?;
        let store = match context.caches.open(&backend, write_interval, context) {
            Ok(store) => store,
            Err(error) => {
                let message = format!("`{}`: {error}", settings.path_of(FILE_ID.name()));
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
            settings.warning(PUT.name(), message, "give both the same, or another `id`");
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
    let id = |key| settings.get(key).optional().filter(|id: &String| !id.is_empty());
    let memory = id(&MEMORY_ID);
    let file = id(&FILE_ID);
    let period = settings.get(&WRITE_PERIOD).value();
    let interval = settings.get(&WRITE_INTERVAL).optional().unwrap_or(period);
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

/// The operation, and how long its values live.
fn read_operation(settings: &Section<'_>) -> Option<(Operation, Option<Duration>)> {
    let keys = [&PUT, &GET, &DELETE];
    let given: Vec<_> = keys.into_iter().filter(|key| settings.has_key(key)).collect();
    for key in keys {
        // Read, so that the names are known and the problem of a missing operation can list them.
        settings.accept(key.name());
    }
    let [operation] = given[..] else {
        let message =
            format!("`{}` needs exactly one of `put`, `get` and `delete`", settings.path());
        settings.problem("", message, "use a processor for each");
        return None;
    };
    let section = settings.part(operation);
    match operation.name() {
        "put" => {
            let key = required_path(&section, &PUT_KEY);
            let value = required_path(&section, &VALUE_FIELD);
            let ttl = section.get(&TTL);
            if !ttl.is_set() {
                let message = format!("`{}` is missing", section.path_of(TTL.name()));
                section.problem(TTL.name(), message, "give a duration, as in `24h`");
            }
            let ttl = ttl.optional();
            Some((Operation::Put { key: key?, value: value? }, Some(ttl?)))
        }
        "get" => {
            let key = required_path(&section, &GET_KEY);
            let target = required_path(&section, &TARGET_FIELD);
            Some((Operation::Get { key: key?, target: target? }, None))
        }
        _ => {
            let key = required_path(&section, &DELETE_KEY);
            Some((Operation::Delete { key: key? }, None))
        }
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
