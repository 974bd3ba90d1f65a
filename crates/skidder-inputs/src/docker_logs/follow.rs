//! One container: its log is read as long as it runs, and to its end.

use super::messages::{BadAnswer, Message, Messages};
use super::place::{Known, Place, VERSION, since};
use super::{Settings, Streams};
use crate::text::{Left, Origin, Text};
use serde_json::Value as Json;
use skidder_event::{Map, Progress, SourcePart};
use skidder_input::{InputError, Intake, Source};
use skidder_net::{AnswerStream, HttpError, HttpRequest, percent_encoded};
use skidder_parse::chain::Ending;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

/// Pauses before the engine is tried again, and between two looks at a container that does not run.
const PAUSES: [Duration; 5] = [
    Duration::from_millis(200),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(10),
];

/// How long messages that follow each other are gathered for one batch.
const GATHER: Duration = Duration::from_millis(5);

/// Bytes that are gathered at most.
const GATHER_BYTES: usize = 256 << 10;

/// Why an answer was not read to its end.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    /// Try again.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// Try again.
    #[error(transparent)]
    Bad(#[from] BadAnswer),
    /// The input must end.
    #[error(transparent)]
    Input(#[from] InputError),
}

/// How the reading of an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// There is no more.
    Read,
    /// Nothing comes any more: request it anew.
    Quiet,
    /// The input must stop.
    Stopped,
}

/// A container as the engine describes it now.
struct Details {
    id: String,
    is_running: bool,
    is_terminal: bool,
    /// When it was started last.
    started: String,
    fields: Map,
}

impl Details {
    fn read(inspected: &Json) -> Self {
        let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
        let (id, name) = (text(&inspected["Id"]), text(&inspected["Name"]));
        let mut fields = Map::new();
        fields.insert_path("container.id", id.clone());
        fields.insert_path("container.name", name.trim_start_matches('/'));
        fields.insert_path("container.image.name", text(&inspected["Config"]["Image"]));
        Self {
            id,
            is_running: inspected["State"]["Running"] == true,
            is_terminal: inspected["Config"]["Tty"] == true,
            started: text(&inspected["State"]["StartedAt"]),
            fields,
        }
    }
}

/// Reads the log of the container of this name or id, until the input must end.
pub(super) async fn follow(
    settings: Arc<Settings>,
    intake: Intake,
    name: String,
) -> Result<(), InputError> {
    let path = format!("/containers/{}/json", percent_encoded(&name));
    let mut reading: Option<Reading> = None;
    let mut quiet = 0;
    let mut failures = 0_usize;
    let mut is_reported = false;
    loop {
        let before = reading.as_ref().map(|reading| reading.offset);
        let details = tokio::select! {
            biased;
            () = intake.stopped() => return Ok(()),
            details = settings.server.json(HttpRequest::get(&path)) => details,
        };
        let result = match details {
            Ok(details) => look(&settings, &intake, &mut reading, &Details::read(&details)).await,
            Err(HttpError::Status { status, .. }) if status.as_u16() == 404 => {
                gone(&name, &intake, &mut reading, quiet).await
            }
            Err(error) => Err(error.into()),
        };
        let pause = match result {
            Ok(Look::End) => return Ok(()),
            Ok(Look::New) => {
                intake.metrics().set_trouble_of(&name, None);
                (failures, quiet, is_reported) = (0, 0, false);
                PAUSES[0]
            }
            Ok(Look::Nothing) => {
                intake.metrics().set_trouble_of(&name, None);
                (failures, is_reported) = (0, false);
                quiet += 1;
                PAUSES[quiet.min(PAUSES.len() - 1)]
            }
            Err(ReadError::Input(error)) => return Err(error),
            Err(error) => {
                intake.metrics().set_trouble_of(&name, Some(&error.to_string()));
                report(reading.as_ref(), &name, &error, std::mem::replace(&mut is_reported, true));
                let has_read = reading.as_ref().map(|reading| reading.offset) != before;
                failures = if has_read { 0 } else { failures + 1 };
                PAUSES[failures.min(PAUSES.len() - 1)]
            }
        };
        let is_ending = intake.is_ending();
        tokio::select! {
            biased;
            () = intake.stopped() => return Ok(()),
            () = intake.ending(), if !is_ending => {}
            () = sleep(pause) => {}
        }
    }
}

/// What a look at a container led to.
enum Look {
    /// Something may have been read.
    New,
    /// All of it is read already, or there is no container.
    Nothing,
    /// The input must end, or there is no more.
    End,
}

/// Reads what there is of a container.
async fn look(
    settings: &Arc<Settings>,
    intake: &Intake,
    reading: &mut Option<Reading>,
    details: &Details,
) -> Result<Look, ReadError> {
    // Another one has the name now.
    if let Some(mut old) = reading.take_if(|reading| reading.id != details.id)
        && old.deliver(Ending::Last).await? == End::Stopped
    {
        return Ok(Look::End);
    }
    let reading = match reading {
        Some(reading) => reading,
        none => none.insert(Reading::open(Arc::clone(settings), intake.clone(), details)?),
    };
    let is_over = (!details.is_running || reading.is_refused)
        && reading.read_of.as_ref() == Some(&details.started);
    if is_over {
        let is_last = intake.is_ending() || intake.is_once();
        return Ok(if is_last { Look::End } else { Look::Nothing });
    }
    let end = match reading.read(details.is_running && !intake.is_once(), details.is_terminal).await
    {
        Ok(end) => end,
        Err(ReadError::Http(HttpError::Status { status, body })) if status.as_u16() == 501 => {
            let error = format!("its log driver cannot be read: {body}");
            reading.source.failed(&error);
            reading.is_refused = true;
            tracing::warn!(container = reading.id, error, "a container cannot be read");
            End::Read
        }
        Err(error) => return Err(error),
    };
    match end {
        End::Stopped => return Ok(Look::End),
        End::Quiet => return Ok(Look::New),
        End::Read => {}
    }
    // Of one that runs, the answer ends when it does: the next look reads what is left without waiting for more.
    if !details.is_running || reading.is_refused || intake.is_once() {
        if reading.deliver(Ending::Last).await? == End::Stopped {
            return Ok(Look::End);
        }
        reading.read_of = Some(details.started.clone());
        if intake.is_once() {
            return Ok(Look::End);
        }
    }
    Ok(Look::New)
}

/// There is no such container.
async fn gone(
    name: &str,
    intake: &Intake,
    reading: &mut Option<Reading>,
    quiet: usize,
) -> Result<Look, ReadError> {
    if let Some(mut old) = reading.take() {
        tracing::info!(container = name, "a container was removed");
        if old.deliver(Ending::Last).await? == End::Stopped {
            return Ok(Look::End);
        }
    } else if quiet == 0 {
        tracing::info!(container = name, "there is no such container; waiting for it");
    }
    Ok(if intake.is_ending() || intake.is_once() { Look::End } else { Look::Nothing })
}

/// Reports the first of several failures, and notes all of them.
fn report(reading: Option<&Reading>, name: &str, error: &ReadError, is_reported: bool) {
    if let Some(reading) = reading {
        reading.source.failed(&error.to_string());
    }
    if !is_reported {
        tracing::warn!(container = name, %error, "the log of a container cannot be read; trying again");
    } else {
        tracing::debug!(container = name, %error, "the log of a container cannot be read still");
    }
}

/// The log of a container, and how far it is read.
struct Reading {
    settings: Arc<Settings>,
    intake: Intake,
    id: String,
    source: Source,
    text: Text,
    /// Behind the last message in `text`.
    place: Place,
    /// The first request of all begins here.
    first: Option<String>,
    /// Bytes of all lines that `text` was given, and of those before them in other runs.
    offset: u64,
    /// Where each message ends that is not in an event yet, and the place there.
    ends: VecDeque<(u64, Place)>,
    /// Where the last message ends that is in an event.
    settled: (u64, Place),
    /// All of it is read, for the run of the container that began then.
    read_of: Option<String>,
    /// The engine cannot read its log driver.
    is_refused: bool,
    /// Answers in a row that brought nothing new until they were given up.
    quiet_answers: u32,
}

impl Reading {
    fn open(
        settings: Arc<Settings>,
        intake: Intake,
        details: &Details,
    ) -> Result<Self, InputError> {
        let name = match settings.streams {
            Streams::All => details.id.clone(),
            Streams::Stdout => format!("{} stdout", details.id),
            Streams::Stderr => format!("{} stderr", details.id),
        };
        let opened = intake.open_at_cursor(&name, details.fields.clone());
        let source = opened.map_err(|error| InputError(error.to_string()))?;
        let (offset, place) = match source.saved().filter(|saved| !saved.text.is_empty()) {
            None => (0, Place::default()),
            Some(saved) => Place::parse(&saved.text)
                .filter(|_| saved.version == VERSION)
                .ok_or_else(|| {
                    InputError(format!(
                        "the cursor `{}` of container `{name}` has version {}, which this skidder cannot read; \
                         run the one that wrote it",
                        saved.text, saved.version
                    ))
                })?,
        };
        let begin = intake.clock().wall().0.saturating_sub(settings.since.as_nanos() as i64);
        let first = (!settings.since.is_zero()).then(|| since(begin));
        let text = Text::new(settings.text.clone(), Origin::Container, Left::read_again(offset));
        Ok(Self {
            settings,
            intake,
            id: details.id.clone(),
            source,
            text,
            place,
            first,
            offset,
            ends: VecDeque::new(),
            settled: (offset, place),
            read_of: None,
            is_refused: false,
            quiet_answers: 0,
        })
    }

    fn path(&self, is_running: bool) -> String {
        let wants = |stream| {
            u8::from(
                matches!(self.settings.streams, Streams::All) || self.settings.streams == stream,
            )
        };
        let since = self.place.since().or_else(|| self.first.clone());
        let since = since.map(|since| format!("&since={since}")).unwrap_or_default();
        format!(
            "/containers/{}/logs?follow={}&timestamps=1&stdout={}&stderr={}{since}",
            percent_encoded(&self.id),
            u8::from(is_running),
            wants(Streams::Stdout),
            wants(Streams::Stderr),
        )
    }

    /// Reads an answer to its end: that of the log, unless the container runs.
    async fn read(&mut self, is_running: bool, is_terminal: bool) -> Result<End, ReadError> {
        self.is_refused = false;
        let path = self.path(is_running);
        let mut answer = tokio::select! {
            biased;
            () = self.intake.stopped() => return Ok(End::Stopped),
            answer = self.settings.server.open(HttpRequest::get(&path)) => answer?,
        };
        let mut messages = Messages::new(is_terminal);
        let mut known = self.place.known();
        let mut bytes = Vec::new();
        let mut quiet_at = is_running.then(|| self.quiet_at(true));
        loop {
            let now = self.intake.clock().monotonic();
            let flush = self.text.flush_at().map(|at| sleep(at.since(now)));
            let flush = async {
                match flush {
                    Some(flush) => flush.await,
                    None => std::future::pending().await,
                }
            };
            let piece = tokio::select! {
                biased;
                () = self.intake.stopped() => return Ok(End::Stopped),
                piece = answer.piece(&mut bytes) => Some(piece),
                () = flush => None,
                () = until(quiet_at) => return Ok(self.give_up()),
            };
            let has_come = piece.is_some();
            let mut ending = self.waiting();
            // What came before a break is read first: a connection that breaks again and again gets on, too.
            let result = match piece {
                None => Ok(true),
                Some(Ok(true)) => gather(&mut answer, &mut bytes).await,
                Some(other) => other,
            };
            if bytes.len() >= GATHER_BYTES {
                ending = Ending::More;
            }
            self.take(&mut messages, &mut known, &mut bytes)?;
            if matches!(result, Ok(false)) {
                let (mut lines, mut ends) = (Vec::new(), VecDeque::new());
                messages.finish(&bytes, |message| {
                    self.add(message, &mut known, &mut lines, &mut ends);
                })?;
                self.add_lines(lines, ends);
            }
            if self.deliver(ending).await? == End::Stopped {
                return Ok(End::Stopped);
            }
            if !result? {
                return Ok(End::Read);
            }
            // After the delivery, which may have waited for room.
            if has_come && is_running {
                quiet_at = Some(self.quiet_at(self.settings.streams != Streams::All));
            }
        }
    }

    /// When an answer that brings nothing from now on is given up.
    fn quiet_at(&self, may_be_busy: bool) -> Instant {
        Instant::now() + self.settings.patience.after(self.quiet_answers, may_be_busy)
    }

    /// Nothing came for long: the container is quiet, or the answer hangs.
    fn give_up(&mut self) -> End {
        self.quiet_answers = self.quiet_answers.saturating_add(1);
        tracing::debug!(container = self.id, "nothing comes any more; requesting the log anew");
        End::Quiet
    }

    /// Nothing more is there for now.
    fn waiting(&self) -> Ending {
        Ending::Waiting(self.intake.clock().monotonic().0)
    }

    /// Turns the messages that are complete into lines for the parsers.
    fn take(
        &mut self,
        messages: &mut Messages,
        known: &mut Known,
        bytes: &mut Vec<u8>,
    ) -> Result<(), BadAnswer> {
        let mut lines = Vec::with_capacity(bytes.len());
        let mut ends = VecDeque::new();
        let taken = messages.take(bytes, |message| self.add(message, known, &mut lines, &mut ends));
        // What is before a mistake is right.
        self.add_lines(lines, ends);
        bytes.drain(..taken?);
        Ok(())
    }

    /// Adds a message that was not read before, as a line.
    fn add(
        &mut self,
        message: Message<'_>,
        known: &mut Known,
        lines: &mut Vec<u8>,
        ends: &mut VecDeque<(u64, Place)>,
    ) {
        if known.has(message.time) {
            return;
        }
        self.place.pass(message.time);
        let stream: &[u8] = if message.is_error { b" stderr " } else { b" stdout " };
        let mut parts = message.text.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = parts.next() {
            let is_partial = parts.peek().is_none() && message.is_piece;
            let kind: &[u8] = if is_partial { b"P " } else { b"F " };
            for piece in [message.time_text, stream, kind, part, b"\n"] {
                lines.extend_from_slice(piece);
            }
        }
        ends.push_back((self.offset + lines.len() as u64, self.place));
    }

    fn add_lines(&mut self, lines: Vec<u8>, mut ends: VecDeque<(u64, Place)>) {
        if lines.is_empty() {
            return;
        }
        self.offset += lines.len() as u64;
        self.quiet_answers = 0;
        self.ends.append(&mut ends);
        self.intake.metrics().bytes.add(lines.len() as u64);
        self.text.add(lines);
    }

    /// Sends the events that are complete.
    async fn deliver(&mut self, ending: Ending) -> Result<End, ReadError> {
        let now = self.intake.clock().wall();
        loop {
            let next = self.text.next(&mut self.source, ending, now);
            let next = next.map_err(|error| InputError(error.to_string()))?;
            let Some((batch, bytes)) = next else { return Ok(End::Read) };
            let behind = self.text.offset();
            while let Some(end) = self.ends.pop_front_if(|(end, _)| *end <= behind) {
                self.settled = end;
            }
            let (offset, place) = self.settled;
            let cursor = place.cursor(offset).into();
            let part = SourcePart { version: VERSION, cursor, bytes };
            let sending = self.source.send(batch, Progress::Cursor(part));
            tokio::select! {
                biased;
                sent = sending => if sent.is_err() { return Ok(End::Stopped) },
                // What no output has taken is read again by the next run.
                () = self.intake.stopped() => return Ok(End::Stopped),
            }
        }
    }
}

/// Waits until then, or for ever.
async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Reads what follows at once; returns whether more may follow.
async fn gather(answer: &mut AnswerStream, bytes: &mut Vec<u8>) -> Result<bool, HttpError> {
    let until = Instant::now() + GATHER;
    while bytes.len() < GATHER_BYTES {
        match timeout_at(until, answer.piece(bytes)).await {
            Ok(Ok(true)) => {}
            Ok(other) => return other,
            Err(_) => break,
        }
    }
    Ok(true)
}
