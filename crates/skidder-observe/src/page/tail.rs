//! Watching events as they pass.
//!
//! A viewer opens the taps of the queues (`skidder-pipeline` `queue/tap.rs`). A thread of its own, of low priority, empties
//! them ten times a second, writes the events as JSON, keeps the newest ([`RECENT_MAX`], [`RECENT_BYTES_MAX`]) and gives each
//! viewer what passes its filter. It has bounds everywhere and never waits; what goes beyond them is counted, and shown as
//! a number. A minute after the last request it closes the taps and ends.

use super::filter::{Candidate, Filter};
use super::query::Query;
use crate::snapshot::{OutputSource, Sources};
use serde_json::json;
use skidder_event::{Batch, Encoder, Precision};
use skidder_os::Monotonic;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Viewers at once; more are refused.
const VIEWERS_MAX: usize = 4;
/// A viewer without a request for so long is gone.
const VIEWER_KEPT: Duration = Duration::from_secs(10);
/// Events that are kept for new and returning viewers.
const RECENT_MAX: usize = 2000;
/// And their bytes.
const RECENT_BYTES_MAX: usize = 4 << 20;
/// Events that wait for one viewer.
const WAITING_MAX: usize = 500;
/// And their bytes.
const WAITING_BYTES_MAX: usize = 1 << 20;
/// The longest event that is shown whole.
const EVENT_BYTES_MAX: usize = 64 << 10;
/// Shown bytes of the message of a longer one.
const CUT_BYTES: usize = 4 << 10;
/// How often the taps are emptied.
const PAUSE: Duration = Duration::from_millis(100);
/// Events that are looked at each time, of each output: 25,000 a second.
const EVENTS_A_ROUND: usize = 2500;
/// The taps are closed so long after the last question.
const KEPT: Duration = Duration::from_mins(1);
/// How nice the thread is to the others.
const NICE: i32 = 15;

/// Shown events, and their viewers.
#[derive(Default)]
pub(crate) struct Tail {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    viewers: Vec<Viewer>,
    recent: Shelf,
    /// The number of the newest event.
    last: u64,
    last_request: Monotonic,
    works: bool,
}

struct Viewer {
    id: String,
    filter: Filter,
    waiting: Shelf,
    /// Events that were not looked at, or had no room.
    missed: u64,
    last_request: Monotonic,
}

/// Events, bounded.
#[derive(Default)]
struct Shelf {
    events: VecDeque<Arc<Shown>>,
    bytes: usize,
}

struct Shown {
    number: u64,
    /// JSON, with `number`, `output`, `source`, `offset` and `event`.
    text: String,
    /// Where the event stands in it.
    event: std::ops::Range<usize>,
    source: Arc<str>,
    output: Option<Arc<str>>,
}

impl Shown {
    fn candidate(&self) -> Candidate<'_> {
        Candidate {
            document: &self.text.as_bytes()[self.event.clone()],
            source: &self.source,
            output: self.output.as_deref(),
        }
    }
}

impl Shelf {
    fn push(&mut self, event: Arc<Shown>) {
        self.bytes += event.text.len();
        self.events.push_back(event);
    }

    fn drop_beyond(&mut self, events: usize, bytes: usize) {
        while self.events.len() > events || self.bytes > bytes {
            let Some(oldest) = self.events.pop_front() else { return };
            self.bytes -= oldest.text.len();
        }
    }
}

impl Tail {
    /// Answers `?viewer=ID&q=TERMS&source=PATH&level=LEVEL&output=ID&after=NUMBER`: what has come since the last question of this
    /// viewer, or, for a new one or another filter, the kept ones.
    pub(crate) fn answer(
        self: &Arc<Self>,
        sources: &Arc<Sources>,
        query: &Query,
    ) -> Result<String, String> {
        let id = query.get("viewer").filter(|id| id.len() <= 64);
        let id =
            id.ok_or("`viewer` is missing; any text of up to 64 bytes that no other viewer has")?;
        let after = query.number("after")?;
        let filter = Filter::parse(query);
        let now = sources.clock.monotonic();
        let mut state = self.lock();
        state.last_request = now;
        state.viewers.retain(|viewer| now.since(viewer.last_request) < VIEWER_KEPT);
        if !state.works {
            state.works = true;
            for output in &sources.outputs {
                output.queue.tap().open();
            }
            let (tail, sources) = (Arc::clone(self), Arc::clone(sources));
            let thread = std::thread::Builder::new().name("page-tail".to_owned());
            if let Err(error) = thread.spawn(move || tail.work(&sources)) {
                state.works = false;
                return Err(format!("cannot start a thread: {error}"));
            }
        }
        let at = state.viewers.iter().position(|viewer| viewer.id == id && viewer.filter == filter);
        let (events, missed) = match at {
            Some(at) => {
                let viewer = &mut state.viewers[at];
                viewer.last_request = now;
                let waiting = std::mem::take(&mut viewer.waiting);
                (waiting.events.into(), std::mem::take(&mut viewer.missed))
            }
            None => (state.begin(id, filter, after, now)?, 0),
        };
        let last = state.last;
        drop(state);
        Ok(document(&events, missed, last))
    }

    /// Empties the taps until there was no request for long.
    fn work(&self, sources: &Sources) {
        let thread = rustix::thread::gettid();
        if let Err(error) = rustix::process::setpriority_process(Some(thread), NICE) {
            tracing::debug!(%error, "the thread of the page has the priority of the others");
        }
        let mut encoder = Encoder::new(Precision::Millisecond);
        let mut batches = Vec::new();
        loop {
            std::thread::park_timeout(PAUSE);
            let now = sources.clock.monotonic();
            for output in &sources.outputs {
                let mut missed = output.queue.tap().take(&mut batches);
                let mut left = EVENTS_A_ROUND;
                for batch in batches.drain(..) {
                    let count = batch.len().min(left);
                    left -= count;
                    missed += (batch.len() - count) as u64;
                    self.take(output, &batch, count, &mut encoder);
                }
                if missed > 0 {
                    self.lock().viewers.iter_mut().for_each(|viewer| viewer.missed += missed);
                }
            }
            let mut state = self.lock();
            if now.since(state.last_request) >= KEPT {
                for output in &sources.outputs {
                    output.queue.tap().close();
                }
                *state = State { last: state.last, ..State::default() };
                return;
            }
        }
    }

    /// Shows the first events of a batch.
    fn take(&self, output: &OutputSource, batch: &Batch, count: usize, encoder: &mut Encoder) {
        let status = output.settle.status(batch.provenance().source);
        let source: Arc<str> =
            status.map_or_else(|| "".into(), |status| status.name().to_string().into());
        let id: Option<Arc<str>> = output.id.as_deref().map(Into::into);
        for row in 0..count {
            let number = {
                let mut state = self.lock();
                state.last += 1;
                state.last
            };
            let event = Arc::new(shown(number, &source, id.clone(), batch, row, encoder));
            self.lock().show(&event);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// A new viewer, or another filter of one; returns the kept events.
    fn begin(
        &mut self,
        id: &str,
        filter: Filter,
        after: Option<u64>,
        now: Monotonic,
    ) -> Result<Vec<Arc<Shown>>, String> {
        self.viewers.retain(|viewer| viewer.id != id);
        if self.viewers.len() >= VIEWERS_MAX {
            return Err(format!("{VIEWERS_MAX} others watch already; close one of them"));
        }
        let after = after.unwrap_or(0);
        let wanted = |event: &&Arc<Shown>| event.number > after && filter.holds(event.candidate());
        let newest = self.recent.events.iter().rev().filter(wanted).take(WAITING_MAX);
        let mut events: Vec<Arc<Shown>> = newest.cloned().collect();
        events.reverse();
        let waiting = Shelf::default();
        self.viewers.push(Viewer {
            id: id.to_owned(),
            filter,
            waiting,
            missed: 0,
            last_request: now,
        });
        Ok(events)
    }

    fn show(&mut self, event: &Arc<Shown>) {
        for viewer in &mut self.viewers {
            if !viewer.filter.holds(event.candidate()) {
                continue;
            }
            viewer.waiting.push(Arc::clone(event));
            let before = viewer.waiting.events.len();
            viewer.waiting.drop_beyond(WAITING_MAX, WAITING_BYTES_MAX);
            viewer.missed += (before - viewer.waiting.events.len()) as u64;
        }
        self.recent.push(Arc::clone(event));
        self.recent.drop_beyond(RECENT_MAX, RECENT_BYTES_MAX);
    }
}

fn shown(
    number: u64,
    source: &Arc<str>,
    output: Option<Arc<str>>,
    batch: &Batch,
    row: usize,
    encoder: &mut Encoder,
) -> Shown {
    let offset = batch.rows()[row].offset;
    let head = json!({ "number": number, "output": output.as_deref(), "source": &**source, "offset": offset });
    let mut text = head.to_string();
    text.pop();
    text.push_str(",\"event\":");
    let start = text.len();
    let mut event = Vec::new();
    encoder.write(&mut event, batch, row);
    let size = event.len();
    let event = String::from_utf8(event).ok().filter(|_| size <= EVENT_BYTES_MAX);
    match event {
        Some(event) => text.push_str(&event),
        None => {
            let message = batch.event(row).message().unwrap_or_default();
            let part = String::from_utf8_lossy(&message[..message.len().min(CUT_BYTES)]);
            let part = json!({ "message": part, "skidder": { "event_bytes": size, "cut": true } });
            text.push_str(&part.to_string());
        }
    }
    let event = start..text.len();
    text.push('}');
    Shown { number, text, event, source: Arc::clone(source), output }
}

fn document(events: &[Arc<Shown>], missed: u64, last: u64) -> String {
    let bytes: usize = events.iter().map(|event| event.text.len() + 1).sum();
    let mut text = String::with_capacity(bytes + 64);
    text.push_str("{\"events\":[");
    for (at, event) in events.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        text.push_str(&event.text);
    }
    write!(text, "],\"missed\":{missed},\"last\":{last}}}")
        .expect("writing to a string cannot fail");
    text
}
