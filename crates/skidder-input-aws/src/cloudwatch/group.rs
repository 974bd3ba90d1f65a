//! One log group: where it was read, and the scan that is under way.

use super::calls::{CallError, Calls, Shared};
use super::events::{batch_of, fields};
use super::settings::{Groups, Streams};
use super::slice::{Shown, Slice};
use super::window::{LOOK_BACK, Milliseconds, VERSION, Window, milliseconds};
use skidder_amazon::{EVENTS_MAX, EventFilter, LogEvent, LogGroup, LogStreams};
use skidder_event::{Batch, Progress, SourcePart};
use skidder_input::Source;
use skidder_os::{Monotonic, Timestamp};
use std::sync::Arc;
use std::time::Duration;

/// Pages of a turn: then other groups are read that wait for a worker.
const PAGES_OF_TURN: usize = 20;
/// Events of a batch, at most.
const BATCH_EVENTS_MAX: usize = 1_024;
/// A batch with so many bytes of messages is sent.
const BATCH_BYTES: usize = 256 << 10;
/// The cursor of a group without events is saved so often: a restart looks for events from there on.
const SAVE_EVERY: Milliseconds = 10 * 60 * 1000;
/// How long a group that is gone stays.
const GONE_AFTER: Duration = Duration::from_mins(10);
/// A cursor may be so far ahead of the clock.
const AHEAD_MAX: Milliseconds = 60 * 1000;

/// See the module's text.
pub(crate) struct Group {
    /// As requests name it and events show it: an ARN, or a name.
    id: String,
    /// Of its source.
    name: String,
    reading: Option<Reading>,
    /// Scans in a row that failed.
    failures: u32,
    /// The last listing did not have it, nor others since this time.
    gone_since: Option<Monotonic>,
}

/// What became of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// There are more pages.
    More,
    /// The scan has ended, or has failed.
    Done,
    /// The group is gone.
    Gone,
    /// The input ends.
    Stopped,
}

struct Reading {
    source: Source,
    window: Window,
    /// The front of the cursor that was sent last.
    saved: Option<Milliseconds>,
    scan: Option<Scan>,
    /// How long the next slice is; nothing for one that is as long as the scan.
    span: Option<Milliseconds>,
    /// A warning of events that come late was written.
    has_warned: bool,
}

/// A scan under way.
struct Scan {
    end: Milliseconds,
    slice: Slice,
    /// Of the next page; nothing for the first one of the slice.
    token: Option<String>,
    /// What the service showed of the slice so far.
    shown: Shown,
    /// Some of that was sent.
    has_sent: bool,
}

impl Scan {
    /// Begins at the first slice.
    fn new(slice: Slice, end: Milliseconds) -> Self {
        Self { end, slice, token: None, shown: Shown::default(), has_sent: false }
    }
}

impl Group {
    pub(crate) fn new(id: String, shared: &Shared) -> Self {
        let name = shared.settings.source_name(&id);
        Self { id, name, reading: None, failures: 0, gone_since: None }
    }

    /// Whether it is to be read.
    pub(crate) fn is_there(&self) -> bool {
        self.gone_since.is_none()
    }

    /// It is there, or there again.
    pub(crate) fn set_found(&mut self) {
        self.gone_since = None;
    }

    /// It is not there. It stays for some time: of one that comes back, events may be on their way.
    pub(crate) fn set_gone(&mut self, shared: &Shared) {
        if self.gone_since.is_none() {
            self.gone_since = Some(shared.intake.clock().monotonic());
            self.failures = 0;
            if let Some(reading) = &mut self.reading {
                reading.scan = None;
            }
            tracing::info!(group = self.name, "a log group is gone");
            shared.intake.metrics().set_trouble_of(&self.name, None);
        }
    }

    /// Whether it was not there for so long that it is forgotten.
    pub(crate) fn is_over(&self, now: Monotonic) -> bool {
        self.gone_since.is_some_and(|since| now.since(since) >= GONE_AFTER)
    }

    /// Reads some pages.
    pub(crate) async fn turn(&mut self, calls: &mut Calls) -> Turn {
        let shared = Arc::clone(&calls.shared);
        match self.pages(calls).await {
            Ok(is_done) => {
                self.succeeded(&shared);
                if is_done { Turn::Done } else { Turn::More }
            }
            Err(CallError::Stopped) => Turn::Stopped,
            Err(CallError::Missing(_))
                if matches!(shared.settings.groups, Groups::Prefix { .. })
                    && shared.settings.streams.is_open() =>
            {
                Turn::Gone
            }
            Err(error @ (CallError::Missing(_) | CallError::Failed(_))) => {
                self.failed(&shared, &error.to_string());
                Turn::Done
            }
        }
    }

    fn succeeded(&mut self, shared: &Shared) {
        if self.failures > 0 {
            tracing::info!(
                group = self.name,
                failures = self.failures,
                "the log group is read again"
            );
            self.failures = 0;
            shared.intake.metrics().set_trouble_of(&self.name, None);
        }
    }

    fn failed(&mut self, shared: &Shared, error: &str) {
        self.failures = self.failures.saturating_add(1);
        let metrics = shared.intake.metrics();
        metrics.set_trouble_of(&self.name, Some(error));
        match &mut self.reading {
            Some(reading) => {
                // The next scan begins where this one was.
                reading.scan = None;
                reading.source.failed(error);
            }
            None => metrics.failed(&self.name, error),
        }
        if self.failures.is_power_of_two() {
            let failures = self.failures;
            tracing::error!(
                group = self.name,
                error,
                failures,
                "cannot read a log group; the next scan tries again"
            );
        }
    }

    /// Reads some pages. Returns whether the scan has ended.
    async fn pages(&mut self, calls: &mut Calls) -> Result<bool, CallError> {
        if self.reading.is_none() {
            self.reading = Some(Reading::open(&self.id, &self.name, &calls.shared)?);
        }
        let Some(reading) = &mut self.reading else { return Ok(true) };
        for _ in 0..PAGES_OF_TURN {
            if !reading.begin(&calls.shared)? {
                return Ok(true);
            }
            if reading.page((&self.id, &self.name), calls).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Streams {
    /// Whether they are not named, so that none of them can be missing.
    fn is_open(&self) -> bool {
        !matches!(self, Self::Named(_))
    }

    fn names(&self) -> Vec<&str> {
        match self {
            Self::Named(names) => names.iter().map(String::as_str).collect(),
            Self::All | Self::Prefix(_) => Vec::new(),
        }
    }
}

/// Events of the next slice, about.
fn wanted(window: &Window) -> usize {
    window.room() / 5 * 4
}

impl Reading {
    /// Where an earlier run was settled, or at the start.
    fn open(id: &str, name: &str, shared: &Shared) -> Result<Self, CallError> {
        let fields = fields(id, &shared.settings.servers.region);
        let opened = shared.intake.open_at_cursor(name, fields);
        let source = opened.map_err(|error| CallError::Failed(error.to_string()))?;
        let saved = source.saved().filter(|saved| !saved.text.is_empty());
        let (window, saved) = match saved {
            None => (Window::starting_at(shared.start), None),
            Some(saved) => {
                let window = Window::parse(&saved.text).filter(|_| saved.version == VERSION);
                let window = window.ok_or_else(|| {
                    CallError::Failed(format!(
                        "the cursor of `{name}` has version {}, which this skidder cannot read; run the one that wrote it",
                        saved.version
                    ))
                })?;
                let front = window.front();
                (window, Some(front))
            }
        };
        Ok(Self { source, window, saved, scan: None, span: None, has_warned: false })
    }

    /// Begins a scan if none is under way. Returns whether there is anything to read.
    fn begin(&mut self, shared: &Shared) -> Result<bool, CallError> {
        if self.scan.is_some() {
            return Ok(true);
        }
        let now = shared.intake.clock().wall();
        let (end, front) =
            (milliseconds(now.earlier_by(shared.settings.latency)), self.window.front());
        let ahead = front - milliseconds(now);
        if ahead > AHEAD_MAX {
            return Err(CallError::Failed(format!(
                "the group was read until {} s ahead of this machine's clock: correct the clock; if it is right now, forget \
                 the entry of `{}` in the registry",
                ahead / 1000,
                self.source.about().name
            )));
        }
        if front > end {
            return Ok(false);
        }
        let slice = Slice::new(self.window.low(), front, end, self.span);
        self.scan = Some(Scan::new(slice, end));
        Ok(true)
    }

    /// Reads a page, and sends what is new in it. Returns whether it was the last one of the scan.
    async fn page(
        &mut self,
        (id, name): (&str, &str),
        calls: &mut Calls,
    ) -> Result<bool, CallError> {
        let shared = Arc::clone(&calls.shared);
        let Some(scan) = &self.scan else { return Ok(true) };
        let names = shared.settings.streams.names();
        let time = |milliseconds: Milliseconds| Timestamp(milliseconds.saturating_mul(1_000_000));
        let filter = EventFilter {
            group: if id.starts_with("arn:") { LogGroup::Arn(id) } else { LogGroup::Name(id) },
            streams: match &shared.settings.streams {
                Streams::All => LogStreams::All,
                Streams::Named(_) => LogStreams::Named(&names),
                Streams::Prefix(prefix) => LogStreams::Prefix(prefix),
            },
            pattern: "",
            start: Some(time(scan.slice.start)),
            end: Some(time(scan.slice.end)),
            events_max: EVENTS_MAX,
            token: scan.token.as_deref(),
        };
        let source = &self.source;
        let page = calls.events(name, filter, &|| source.requested()).await?;
        shared.numbers.received.add(page.items.len() as u64);
        let Some(scan) = &mut self.scan else { return Ok(true) };
        for event in &page.items {
            scan.shown.add(milliseconds(event.time), event.message.len());
        }
        let wanted = wanted(&self.window);
        if page.next.is_some()
            && let Some(shorter) = scan.shown.shorter(scan.slice, self.window.front(), wanted)
        {
            // What was sent of it is known.
            let has_sent = scan.has_sent;
            *scan = Scan { has_sent, ..Scan::new(shorter, scan.end) };
            return Ok(false);
        }
        scan.token = page.next;
        let is_last = scan.token.is_none();
        self.send_new(page.items, id, &shared).await?;
        if is_last { self.end_slice(&shared).await } else { Ok(false) }
    }

    /// The last page of a slice was sent. Returns whether it was the last slice of the scan.
    async fn end_slice(&mut self, shared: &Shared) -> Result<bool, CallError> {
        let Some(Scan { end, slice, shown, has_sent, .. }) = self.scan.take() else {
            return Ok(true);
        };
        self.window.complete(slice.end, end);
        self.span = Some(slice.next_span(shown.count(), wanted(&self.window)));
        let is_last = slice.end >= end;
        if !is_last {
            let next = slice.end + 1;
            self.scan = Some(Scan::new(Slice::new(next, next, end, self.span), end));
        }
        let is_due = self.saved.is_none_or(|saved| self.window.front() - saved >= SAVE_EVERY);
        if has_sent || is_due {
            let batch = self.source.batch(Vec::new(), 0);
            self.send(batch, 0, shared).await?;
        }
        Ok(is_last)
    }

    /// Sends the events of a page that were not sent before.
    async fn send_new(
        &mut self,
        events: Vec<LogEvent>,
        id: &str,
        shared: &Shared,
    ) -> Result<(), CallError> {
        let (mut new, mut bytes) = (Vec::new(), 0);
        for event in events {
            if self.window.knows(&event) {
                continue;
            }
            self.check_delay(&event, shared);
            self.window.add(&event);
            bytes += event.message.len();
            new.push(event);
            if new.len() == BATCH_EVENTS_MAX || bytes >= BATCH_BYTES {
                self.send_events(&new, id, shared).await?;
                new.clear();
                bytes = 0;
            }
        }
        if new.is_empty() {
            return Ok(());
        }
        self.send_events(&new, id, shared).await
    }

    /// Sends some events, in the order in which they came.
    async fn send_events(
        &mut self,
        events: &[LogEvent],
        id: &str,
        shared: &Shared,
    ) -> Result<(), CallError> {
        if let Some(scan) = &mut self.scan {
            scan.has_sent = true;
        }
        let now = shared.intake.clock().wall();
        let (batch, bytes) = batch_of(&mut self.source, events, (id, now));
        shared.intake.metrics().bytes.add(bytes);
        shared.numbers.created.add(events.len() as u64);
        if let Some(newest) = events.iter().map(|event| event.time).max() {
            self.source.read_until(newest);
        }
        self.send(batch, bytes, shared).await
    }

    /// Sends a batch with the cursor behind it.
    async fn send(&mut self, batch: Batch, bytes: u64, shared: &Shared) -> Result<(), CallError> {
        self.saved = Some(self.window.front());
        let part = SourcePart { version: VERSION, cursor: self.window.cursor().into(), bytes };
        let sending = self.source.send(batch, Progress::Cursor(part));
        tokio::select! {
            biased;
            sent = sending => sent.map_err(|_| CallError::Stopped),
            // What no output has taken is read again by the next run.
            () = shared.intake.stopped() => Err(CallError::Stopped),
        }
    }

    /// Warns once of events that appear nearly as late as they may.
    fn check_delay(&mut self, event: &LogEvent, shared: &Shared) {
        let received = milliseconds(event.ingested.unwrap_or(event.time));
        let delay = received - milliseconds(event.time);
        let usual = (shared.settings.latency + LOOK_BACK / 2).as_millis() as Milliseconds;
        if received < shared.started || delay <= usual || self.has_warned {
            return;
        }
        self.has_warned = true;
        let most = shared.settings.latency + LOOK_BACK;
        let group = &*self.source.about().name;
        tracing::warn!(
            group,
            delay_seconds = delay / 1000,
            ?most,
            "events come late to CloudWatch; those that come later than the sum of `latency` and five minutes are missed: \
             raise `latency`"
        );
    }
}
