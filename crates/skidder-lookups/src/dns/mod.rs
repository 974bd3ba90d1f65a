//! `dns`: names of addresses, addresses of names, texts, from a DNS server.
//!
//! Answers are cached, failures too, each for its time and up to a number. Only for a value that is not
//! in the cache the event waits: at most `timeout` for each server. So a server that is gone
//! holds up a value once in the time of a failure, and not every event that has it.

mod ask;
mod message;
pub(super) mod read;

pub(crate) use ask::{Resolver, Transport};
pub(crate) use message::Question;
pub(crate) use read::{SYSTEM_SERVERS, server_of, system_servers};

use crate::cache::Cache;
use skidder_event::{Cell, EditError, EventMut, Path, ValueRef};
use skidder_os::Clock;
use skidder_processors::{Constants, Failure, Footprint, Outcome, Processor};
use smallvec::{SmallVec, smallvec};
use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

static TAGS: LazyLock<Path> = LazyLock::new(|| Path::parse("tags").expect("a constant path"));

/// The action if the target exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Append,
    Replace,
}

/// The texts of an answer, or why there are none.
type Result = std::result::Result<Arc<[Box<str>]>, Arc<str>>;

/// Looks up fields.
pub(crate) struct Dns {
    question: Question,
    action: Action,
    fields: Vec<(Path, Path)>,
    tag_on_failure: Vec<String>,
    resolver: Resolver,
    /// Longest and shortest are in seconds; a server's own time counts between them.
    success: Option<Cache<Arc<[Box<str>]>>>,
    success_min: Duration,
    failure: Option<Cache<Arc<str>>>,
    failure_time: Duration,
    clock: Arc<dyn Clock>,
}

impl Dns {
    fn look_up(&self, text: &str) -> Result {
        let now = self.clock.monotonic();
        if let Some(found) = self.success.as_ref().and_then(|cache| cache.get(text, now)) {
            return Ok(found);
        }
        if let Some(reason) = self.failure.as_ref().and_then(|cache| cache.get(text, now)) {
            return Err(reason);
        }
        match self.resolver.ask(self.question, text) {
            Ok(answer) => {
                let texts: Arc<[Box<str>]> = answer.texts.into();
                if let Some(cache) = &self.success {
                    let until = self.clock.monotonic() + answer.time.max(self.success_min);
                    cache.put(text, Arc::clone(&texts), until);
                }
                Ok(texts)
            }
            Err(error) => {
                tracing::debug!(value = text, %error, "a look-up failed");
                let reason: Arc<str> = error.to_string().into();
                if let Some(cache) = &self.failure {
                    let until = self.clock.monotonic() + self.failure_time;
                    cache.put(text, Arc::clone(&reason), until);
                }
                Err(reason)
            }
        }
    }

    /// One field; `false` if it failed, and the event is as it was then.
    fn field(&self, event: &mut EventMut<'_>, source: &Path, target: &Path) -> bool {
        let found = match event.as_ref().get(source) {
            Some(ValueRef::Str(text)) => match std::str::from_utf8(text) {
                Ok(text) => self.look_up(text),
                Err(_) => Err("it is no text".into()),
            },
            _ => return true,
        };
        let Ok(texts) = found else { return false };
        let mark = event.mark();
        let written = self.write(event, target, &texts);
        if written.is_err() {
            event.rollback(mark);
        }
        written.is_ok()
    }

    fn write(
        &self,
        event: &mut EventMut<'_>,
        target: &Path,
        texts: &[Box<str>],
    ) -> std::result::Result<(), EditError> {
        let mut cells: SmallVec<[Cell; 16]> = match self.action {
            Action::Replace => SmallVec::new(),
            Action::Append => match event.copy(target) {
                Some(text @ Cell::Str(_)) => smallvec![text],
                Some(list @ Cell::List(_)) => event.list_cells(list),
                _ => SmallVec::new(),
            },
        };
        let alone = cells.is_empty() && self.question == Question::Ptr;
        for text in texts {
            cells.push(Cell::Str(event.store_text(text.as_bytes())));
        }
        match cells[..] {
            [text] if alone => event.put_cell(target, text),
            _ => {
                let list = event.store_list(&cells);
                event.put_cell(target, list)
            }
        }
    }

    /// Adds the tags to those that are there. A `tags` that is a text becomes a list.
    fn tag(&self, event: &mut EventMut<'_>) {
        if self.tag_on_failure.is_empty() {
            return;
        }
        let mut cells: SmallVec<[Cell; 16]> = match event.copy(&TAGS) {
            Some(text @ Cell::Str(_)) => smallvec![text],
            Some(list @ Cell::List(_)) => event.list_cells(list),
            _ => SmallVec::new(),
        };
        for tag in &self.tag_on_failure {
            cells.push(Cell::Str(event.store_text(tag.as_bytes())));
        }
        let list = event.store_list(&cells);
        event.put_cell(&TAGS, list).expect("a field of the top can always be set");
    }
}

impl fmt::Debug for Dns {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Dns").field("fields", &self.fields).finish_non_exhaustive()
    }
}

impl Processor for Dns {
    fn name(&self) -> &'static str {
        "dns"
    }

    fn run(&self, event: &mut EventMut<'_>) -> std::result::Result<Outcome, Failure> {
        let mut failed = false;
        for (source, target) in &self.fields {
            failed |= !self.field(event, source, target);
        }
        if failed {
            self.tag(event);
        }
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let reads = self.fields.iter().map(|(source, _)| source.clone()).collect();
        let mut writes: Vec<Path> = self.fields.iter().map(|(_, target)| target.clone()).collect();
        if !self.tag_on_failure.is_empty() {
            writes.push(TAGS.clone());
        }
        Footprint { reads, writes, ..Footprint::default() }
    }

    fn can_fail(&self) -> bool {
        false
    }

    fn describe(&self) -> String {
        let pair = |(source, target): &(Path, Path)| format!("{source} to {target}");
        let fields: Vec<_> = self.fields.iter().map(pair).collect();
        format!("dns {}", fields.join(", "))
    }
}
