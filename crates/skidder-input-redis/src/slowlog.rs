//! The slow log: events as in Filebeat, but the log is not emptied.
//!
//! The server numbers the commands in its slow log, from its start on; it forgets the log and the numbers when it ends.
//! The cursor is the number behind which nothing was read yet, for each run of a server that was seen lately. So nothing
//! comes twice, nothing that is added during a scan is lost, and what the log had no room for is counted.

use crate::events::{Texts, edit, path};
use crate::place::{Place, ReadError, ask, unproven};
use skidder_event::{Cell, EventMut, Map, Path, Progress, SourcePart};
use skidder_input::{InputError, Intake, Source};
use skidder_redis::{Connection, Reply};
use std::fmt::Write as _;
use std::sync::LazyLock;

/// Entries of an answer, at most; older ones that were not read are counted as lost. A server keeps 128 by default.
const ENTRIES_MAX: i64 = 10_000;

/// More entries than seem to be new, which may come between two commands.
const ENTRIES_SPARE: i64 = 16;

/// Events of a batch, at most.
const BATCH_EVENTS_MAX: usize = 2048;

/// Runs of servers in a cursor: an address may lead to one server and then to the other.
const RUNS_MAX: usize = 8;

/// The version of the text of a cursor.
const VERSION: u32 = 1;

/// In place of the id of a run, for a user without the right to know it.
const UNKNOWN_RUN: &str = "-";

const NANOSECONDS: i64 = 1_000_000_000;

static ID: LazyLock<Path> = LazyLock::new(|| path("redis.slowlog.id"));
static COMMAND: LazyLock<Path> = LazyLock::new(|| path("redis.slowlog.cmd"));
static KEY: LazyLock<Path> = LazyLock::new(|| path("redis.slowlog.key"));
static ARGUMENTS: LazyLock<Path> = LazyLock::new(|| path("redis.slowlog.args"));
static DURATION: LazyLock<Path> = LazyLock::new(|| path("redis.slowlog.duration.us"));
static ROLE: LazyLock<Path> = LazyLock::new(|| path("redis.slowlog.role"));
static CLIENT_ADDRESS: LazyLock<Path> = LazyLock::new(|| path("redis.slowlog.clientAddr"));
static CLIENT_NAME: LazyLock<Path> = LazyLock::new(|| path("redis.slowlog.clientName"));
static CREATED: LazyLock<Path> = LazyLock::new(|| path("event.created"));

/// One entry of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Entry {
    id: i64,
    /// Seconds since 1970, by the server's clock.
    time: i64,
    /// Microseconds.
    duration: i64,
    arguments: Vec<Vec<u8>>,
    client_address: Vec<u8>,
    client_name: Vec<u8>,
}

impl Entry {
    /// Reads an entry; servers before Redis 4 leave out the client.
    fn read(reply: Reply) -> Option<Self> {
        let Reply::List(items) = reply else { return None };
        let mut items = items.into_iter();
        let mut number = || match items.next()? {
            Reply::Number(number) => Some(number),
            _ => None,
        };
        let (id, time, duration) = (number()?, number()?, number()?);
        let Reply::List(arguments) = items.next()? else { return None };
        let arguments = arguments.into_iter().map(text).collect::<Option<_>>()?;
        let client_address = items.next().and_then(text).unwrap_or_default();
        let client_name = items.next().and_then(text).unwrap_or_default();
        Some(Self { id, time, duration, arguments, client_address, client_name })
    }

    /// Puts its fields into its event.
    fn put(&self, event: &mut EventMut<'_>, role: &[u8], now: i64) -> bool {
        let [command, key] =
            [0, 1].map(|place| self.arguments.get(place).map(Vec::as_slice).unwrap_or_default());
        let mut is_put = event.put_cell(&ID, Cell::Int(self.id)).is_ok();
        is_put &= event.put_cell(&DURATION, Cell::Int(self.duration)).is_ok();
        is_put &= event.put_cell(&CREATED, Cell::Time(now)).is_ok();
        for (path, text) in [(&COMMAND, command), (&KEY, key), (&ROLE, role)] {
            is_put &= event.put_text(path, text).is_ok();
        }
        for (path, text) in
            [(&CLIENT_ADDRESS, &self.client_address), (&CLIENT_NAME, &self.client_name)]
        {
            if !text.is_empty() {
                is_put &= event.put_text(path, text).is_ok();
            }
        }
        if let Some(arguments @ [_, ..]) = self.arguments.get(2..) {
            let cells: Vec<Cell> =
                arguments.iter().map(|text| Cell::Str(event.store_text(text))).collect();
            let list = event.store_list(&cells);
            is_put &= event.put_cell(&ARGUMENTS, list).is_ok();
        }
        is_put
    }
}

fn text(reply: Reply) -> Option<Vec<u8>> {
    match reply {
        Reply::Value(text) => Some(text),
        _ => None,
    }
}

/// How far the log of one run of a server is read.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    /// The id of the run, by the server.
    of: String,
    /// The last entry that was read.
    id: i64,
    /// The latest time of an entry that was read, in seconds.
    time: i64,
}

impl Run {
    /// Whether an entry was not read yet. `newest` is the highest number in the log.
    fn is_new(&self, entry: &Entry, newest: i64) -> bool {
        // Without the id of a run, a restart shows in numbers that are lower, of later commands.
        let is_other = self.of == UNKNOWN_RUN && (newest < self.id || entry.time > self.time);
        entry.id > self.id || is_other
    }
}

/// The runs that were seen, the latest one first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Runs(Vec<Run>);

impl Runs {
    fn get(&self, run: &str) -> Option<&Run> {
        self.0.iter().find(|known| known.of == run)
    }

    /// Notes that a run was read up to here.
    fn set(&mut self, run: Run) {
        self.0.retain(|known| known.of != run.of);
        self.0.insert(0, run);
        self.0.truncate(RUNS_MAX);
    }

    fn cursor(&self) -> String {
        let mut text = String::new();
        for Run { of: run, id, time } in &self.0 {
            let gap = if text.is_empty() { "" } else { "," };
            // Writing to a text cannot fail.
            write!(text, "{gap}{run} {id} {time}").expect("a text has room");
        }
        text
    }

    fn parse(text: &str) -> Option<Self> {
        let run = |text: &str| {
            let mut parts = text.split(' ');
            let (run, id, time) = (parts.next()?, parts.next()?, parts.next()?);
            let (id, time) = (id.parse().ok()?, time.parse().ok()?);
            parts.next().is_none().then(|| Run { of: run.to_owned(), id, time })
        };
        text.split(',').filter(|run| !run.is_empty()).map(run).collect::<Option<_>>().map(Self)
    }
}

/// Reads the slow log of a server until the input ends.
pub(crate) async fn read(mut place: Place) -> Result<(), InputError> {
    let opened = place.intake.open_at_cursor(&place.name, Map::new());
    let mut source = opened.map_err(|error| InputError(error.to_string()))?;
    let mut runs = match source.saved().filter(|saved| !saved.text.is_empty()) {
        None => Runs::default(),
        Some(saved) => {
            let runs = Runs::parse(&saved.text).filter(|_| saved.version == VERSION);
            runs.ok_or_else(|| {
                InputError(format!(
                    "the cursor `{}` of the slow log of `{}` has version {}, which this skidder cannot read; run the one \
                     that wrote it",
                    saved.text, place.name, saved.version
                ))
            })?
        }
    };
    let intake = place.intake.clone();
    loop {
        let scanned = tokio::select! {
            biased;
            () = intake.stopped() => return Ok(()),
            scanned = scan(&place, &runs) => scanned,
        };
        match scanned {
            Ok(scan) => {
                place.succeeded();
                if !send(&intake, &mut source, &mut runs, scan).await {
                    return Ok(());
                }
            }
            Err(error) => {
                if !place.failed(&source, &error).await {
                    return Ok(());
                }
                continue;
            }
        }
        if intake.is_once() {
            return Ok(());
        }
        tokio::select! {
            biased;
            () = intake.stopped() => return Ok(()),
            () = tokio::time::sleep(place.settings.scan_frequency) => {}
        }
    }
}

/// What a scan found.
#[derive(Debug, Default)]
struct Scan {
    run: String,
    role: Vec<u8>,
    /// What is new, in order.
    entries: Vec<Entry>,
    /// Entries that are no such thing.
    malformed: usize,
    /// Entries that left the log before they were read.
    lost: u64,
}

async fn scan(place: &Place, runs: &Runs) -> Result<Scan, ReadError> {
    let mut connection = place.open().await?;
    let run = run_id(&mut connection).await?;
    let known = runs.get(&run);
    let (newest, _) = entries(&mut connection, 1).await?;
    let mut scan = Scan { run, ..Scan::default() };
    let Some(newest) = newest.first().map(|entry| entry.id) else { return Ok(scan) };
    let last = known.filter(|known| known.of != UNKNOWN_RUN).map(|known| known.id);
    if last.is_some_and(|last| newest <= last) {
        return Ok(scan);
    }
    let length = match ask(&mut connection, "SLOWLOG LEN", &[b"SLOWLOG", b"LEN"]).await? {
        Reply::Number(length) => length,
        answer => return Err(unproven("SLOWLOG LEN", answer)),
    };
    let wanted = last.map_or(length, |last| (newest - last).min(length));
    let mut count = wanted.saturating_add(ENTRIES_SPARE).min(ENTRIES_MAX);
    let (all, malformed) = loop {
        let (all, malformed) = entries(&mut connection, count).await?;
        let reaches = match (last, all.iter().map(|entry| entry.id).min()) {
            (Some(last), Some(oldest)) => oldest <= last + 1,
            _ => false,
        };
        let is_all = ((all.len() + malformed) as i64) < count;
        if reaches || is_all || count == ENTRIES_MAX {
            break (all, malformed);
        }
        count = (2 * count).min(ENTRIES_MAX);
    };
    let role = match ask(&mut connection, "ROLE", &[b"ROLE"]).await? {
        Reply::List(items) => items.into_iter().next().and_then(text),
        answer => return Err(unproven("ROLE", answer)),
    };
    scan.role = role.unwrap_or_default();
    scan.malformed = malformed;
    scan.take_new(all, known, length);
    Ok(scan)
}

impl Scan {
    fn take_new(&mut self, mut all: Vec<Entry>, known: Option<&Run>, length: i64) {
        let newest = all.iter().map(|entry| entry.id).max().unwrap_or(-1);
        if let Some(known) = known {
            all.retain(|entry| known.is_new(entry, newest));
        }
        all.sort_by_key(|entry| entry.id);
        let lost = match (known, all.first()) {
            (Some(known), Some(first)) if known.of != UNKNOWN_RUN => first.id - (known.id + 1),
            (None, Some(_)) => length - ENTRIES_MAX,
            _ => 0,
        };
        self.lost = u64::try_from(lost).unwrap_or(0).saturating_sub(self.malformed as u64);
        self.entries = all;
    }
}

/// Which run of the server this is.
async fn run_id(connection: &mut Connection) -> Result<String, ReadError> {
    let info = match connection.ask(&[b"INFO", b"server"]).await? {
        Reply::Value(info) => info,
        // A user without the right: numbers and times must do.
        Reply::Error(error) if error.starts_with("NOPERM") => return Ok(UNKNOWN_RUN.to_owned()),
        Reply::Error(error) => return Err(ReadError::Refused { command: "INFO", error }),
        answer => return Err(unproven("INFO", answer)),
    };
    let info = String::from_utf8_lossy(&info);
    let run = info.lines().find_map(|line| line.strip_prefix("run_id:")).map(str::trim);
    let is_id = |run: &&str| !run.is_empty() && run.bytes().all(|b| b.is_ascii_alphanumeric());
    Ok(run.filter(is_id).unwrap_or(UNKNOWN_RUN).to_owned())
}

/// The newest entries, and how many could not be read.
async fn entries(
    connection: &mut Connection,
    count: i64,
) -> Result<(Vec<Entry>, usize), ReadError> {
    let count = count.to_string();
    match ask(connection, "SLOWLOG GET", &[b"SLOWLOG", b"GET", count.as_bytes()]).await? {
        Reply::List(items) => {
            let all = items.len();
            let read: Vec<Entry> = items.into_iter().filter_map(Entry::read).collect();
            let malformed = all - read.len();
            Ok((read, malformed))
        }
        answer => Err(unproven("SLOWLOG GET", answer)),
    }
}

/// Sends what a scan found; returns whether the input goes on.
async fn send(intake: &Intake, source: &mut Source, runs: &mut Runs, scan: Scan) -> bool {
    let name = std::sync::Arc::clone(&source.about().name);
    if scan.malformed > 0 {
        let error =
            "entries of the slow log have another form than Redis documents, and are left out";
        source.failed(error);
        tracing::error!(source = &*name, entries = scan.malformed, "{error}");
    }
    if scan.lost > 0 {
        intake.metrics().lost_before.add(scan.lost);
        let error = "entries left the slow log before they were read: raise `slowlog-max-len` of the server, or lower \
                     `scan_frequency`; or another program emptied it";
        source.failed(error);
        tracing::error!(source = &*name, entries = scan.lost, "{error}");
    }
    let now = intake.clock().wall().0;
    for entries in scan.entries.chunks(BATCH_EVENTS_MAX) {
        let mut texts = Texts::default();
        for entry in entries {
            let message = entry.arguments.join(&b' ');
            let time = entry.time.saturating_mul(NANOSECONDS);
            texts.push(&message, usize::MAX, time);
        }
        let bytes = texts.taken;
        intake.metrics().bytes.add(bytes);
        let mut batch = texts.into_batch(source);
        for (row, entry) in entries.iter().enumerate() {
            edit(&mut batch, row, |event| entry.put(event, &scan.role, now));
        }
        batch.forget_changes();
        let last = entries.last().map_or(-1, |entry| entry.id);
        let time = entries.iter().map(|entry| entry.time).max().unwrap_or(0);
        runs.set(Run { of: scan.run.clone(), id: last, time });
        let part = SourcePart { version: VERSION, cursor: runs.cursor().into(), bytes };
        let sending = source.send(batch, Progress::Cursor(part));
        tokio::select! {
            biased;
            sent = sending => if sent.is_err() { return false },
            () = intake.stopped() => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests;
