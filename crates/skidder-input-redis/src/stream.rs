//! A stream, read as a member of a consumer group: an entry is acknowledged behind its verdict.
//!
//! What this consumer had in flight when it ended comes first. What another consumer has had for longer than `claim_after`
//! is claimed; a consumer keeps what it has by claiming it from itself now and then.

use crate::entries::{self, Entry, Number};
use crate::events::{Texts, edit, path};
use crate::group::Group;
use crate::place::{Place, ReadError, Reads, STOP_WAIT, ask, read_on, stopping, unproven, waits};
use crate::scripts;
use crate::settings::Streams;
use skidder_event::{EventMut, Map, Path, Progress, Value};
use skidder_input::{InputError, Settled, Source};
use skidder_os::Monotonic;
use skidder_redis::{Connection, RespError, write_command};
use std::borrow::Cow;
use std::collections::btree_map::Entry as Entries;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::sync::Notify;

/// Entries that are read at once, at most.
const READ_ENTRIES_MAX: usize = 1000;

/// Ids of one command.
const IDS_MAX: usize = 1000;

/// How long the server waits for an entry.
const BLOCK: Duration = Duration::from_secs(1);

/// The same while events wait for verdicts, which must be passed on.
const BLOCK_BUSY: Duration = Duration::from_millis(100);

static ID: LazyLock<Path> = LazyLock::new(|| path("redis.stream.id"));
static FIELDS: LazyLock<Path> = LazyLock::new(|| path("redis.stream.fields"));

/// Reads a stream until the input ends.
pub(crate) async fn read(place: Place, streams: Streams) -> Result<(), InputError> {
    let mut fields = Map::new();
    fields.insert_path("redis.stream.key", &*place.key);
    let source = place.intake.open(&place.name, fields);
    let news = Arc::<Notify>::default();
    let reader = Reader {
        settled: Settled::new(0, Arc::clone(&news)),
        group: Group::new(&place, &streams),
        place,
        streams,
        source,
        news,
        in_flight: VecDeque::new(),
        ids: HashSet::new(),
        first: 0,
        last: None,
        count: READ_ENTRIES_MAX,
        claimed: None,
        kept: None,
    };
    read_on(reader).await
}

fn is_too_long(error: &ReadError) -> bool {
    let ReadError::Server(skidder_redis::Failure::Connection(error)) = error else { return false };
    matches!(error, RespError::TooLong(_))
}

struct Reader {
    place: Place,
    streams: Streams,
    group: Group,
    source: Source,
    settled: Arc<Settled>,
    /// Notified with every verdict.
    news: Arc<Notify>,
    /// Ids of entries that were sent on and are not acknowledged; `first` is how many were before the first one.
    in_flight: VecDeque<(String, Number)>,
    /// The same ids.
    ids: HashSet<Number>,
    first: i64,
    /// The last new entry.
    last: Option<String>,
    /// Entries that are read at once.
    count: usize,
    /// When entries of others were claimed last.
    claimed: Option<Monotonic>,
    /// When the entries in flight were kept last.
    kept: Option<Monotonic>,
}

impl Reads for Reader {
    fn place(&mut self) -> (&mut Place, &Source) {
        (&mut self.place, &self.source)
    }

    async fn session(&mut self) -> Result<(), ReadError> {
        let intake = self.place.intake.clone();
        let mut connection = tokio::select! {
            biased;
            () = intake.stopped() => return Ok(()),
            opened = self.place.open() => opened?,
        };
        self.group.join(&mut connection, self.last.as_deref()).await?;
        self.take_own(&mut connection).await?;
        loop {
            self.acknowledge(&mut connection).await?;
            if intake.is_stopped() {
                return self.end(&mut connection).await;
            }
            if self.settled.is_rejected() {
                self.begin_again();
                self.take_own(&mut connection).await?;
            }
            self.group.look(&mut connection, intake.clock().monotonic()).await?;
            self.keep(&mut connection).await?;
            self.claim(&mut connection).await?;
            let is_waiting = !self.in_flight.is_empty();
            let entries = self.read_new(&mut connection, is_waiting).await?;
            self.place.succeeded();
            self.count = (2 * self.count).min(READ_ENTRIES_MAX);
            if let Some(last) = entries.last() {
                self.last = Some(last.id.clone());
                self.send(&mut connection, entries).await?;
            } else if intake.is_once() {
                if !is_waiting {
                    return self.end(&mut connection).await;
                }
                intake.flush();
            }
        }
    }

    fn session_failed(&mut self, error: &ReadError) {
        if is_too_long(error) {
            // One that is too long alone stays pending, and is reported again and again.
            self.count = (self.count / 4).max(1);
        }
    }
}

impl Reader {
    /// What was read and got no verdict is in flight no more: it is pending, and read again.
    fn begin_again(&mut self) {
        self.in_flight.clear();
        self.ids.clear();
        self.first = 0;
        self.settled = Settled::new(0, Arc::clone(&self.news));
    }

    /// Reads what this consumer has in flight by the account of the server, and not by its own.
    async fn take_own(&mut self, connection: &mut Connection) -> Result<(), ReadError> {
        let mut from = "0".to_owned();
        loop {
            let own = self.read_group(connection, &from, None).await?;
            let Some(last) = own.last() else { return Ok(()) };
            from = last.id.clone();
            self.send(connection, own).await?;
            if self.place.intake.is_stopped() {
                return Ok(());
            }
        }
    }

    /// Reads new entries, and waits for them.
    async fn read_new(
        &mut self,
        connection: &mut Connection,
        is_waiting: bool,
    ) -> Result<Vec<Entry>, ReadError> {
        let block = if is_waiting { BLOCK_BUSY } else { BLOCK };
        self.read_group(connection, ">", Some(block)).await
    }

    async fn read_group(
        &mut self,
        connection: &mut Connection,
        from: &str,
        block: Option<Duration>,
    ) -> Result<Vec<Entry>, ReadError> {
        let count = self.count.to_string();
        let milliseconds = block.map(|block| block.as_millis().to_string());
        let mut arguments: Vec<&str> = vec!["XREADGROUP", "GROUP", &self.streams.group];
        arguments.extend([&*self.place.settings.consumer, "COUNT", &count]);
        if let Some(milliseconds) = &milliseconds {
            arguments.extend(["BLOCK", milliseconds]);
        }
        arguments.extend(["STREAMS", &self.place.key, from]);
        let arguments: Vec<&[u8]> = arguments.into_iter().map(str::as_bytes).collect();
        let mut command = Vec::new();
        write_command(&mut command, &arguments);
        connection.send(&command).await?;
        let before = connection.read_bytes;
        let patience = block.unwrap_or_default() + self.place.settings.timeout;
        let answer = connection.reply_within(patience).await?;
        self.place.intake.metrics().bytes.add(connection.read_bytes - before);
        let answer = crate::place::good("XREADGROUP", answer)?;
        let outline = answer.outline();
        entries::entries_of_group(answer).ok_or_else(|| unproven("XREADGROUP", outline))
    }

    /// Sends entries. While there is no room for them, verdicts of others are passed on, and what is in flight is kept.
    async fn send(
        &mut self,
        connection: &mut Connection,
        entries: Vec<Entry>,
    ) -> Result<(), ReadError> {
        let entries = self.take_deleted(connection, entries).await?;
        if entries.is_empty() {
            return Ok(());
        }
        let intake = self.place.intake.clone();
        let now = intake.clock().wall().0;
        let mut texts = Texts::default();
        for entry in &entries {
            let message = self.message(entry).unwrap_or_default();
            texts.push(message, self.place.settings.max_bytes, entry.time(now));
        }
        let bytes = texts.taken;
        let mut batch = texts.into_batch(&mut self.source);
        for (row, entry) in entries.iter().enumerate() {
            edit(&mut batch, row, |event| self.put(entry, event));
        }
        batch.forget_changes();
        for entry in entries {
            self.ids.insert(entry.number);
            self.in_flight.push_back((entry.id, entry.number));
        }
        let owed = self.settled.batch(self.first + self.in_flight.len() as i64);
        let mut sending = self.source.send(batch, Progress::Acknowledge(owed, bytes));
        let mut failure = None;
        let stopping = stopping(&intake);
        tokio::pin!(stopping);
        let news = Arc::clone(&self.news);
        let pause = self.place.settings.claim_after / 4;
        while waits(&mut sending, &mut stopping, &news, pause, failure.is_some()).await? {
            failure = match self.acknowledge(connection).await {
                Ok(()) => self.keep(connection).await.err(),
                Err(error) => Some(error),
            };
        }
        failure.map_or(Ok(()), Err)
    }

    /// Takes out what is in flight already, and what was deleted before it was read, which is counted.
    async fn take_deleted(
        &mut self,
        connection: &mut Connection,
        entries: Vec<Entry>,
    ) -> Result<Vec<Entry>, ReadError> {
        let entries = entries.into_iter().filter(|entry| !self.ids.contains(&entry.number));
        let (there, deleted): (Vec<Entry>, Vec<Entry>) =
            entries.partition(|entry| entry.fields.is_some());
        let ids: Vec<&str> = deleted.iter().map(|entry| &*entry.id).collect();
        if !ids.is_empty() {
            self.report_deleted(ids.len());
            self.with_ids(connection, "XACK", &[], &ids, &[]).await?;
        }
        Ok(there)
    }

    fn report_deleted(&self, entries: usize) {
        self.place.intake.metrics().lost_before.add(entries as u64);
        let error = "entries were deleted from the stream before they were delivered: see `MAXLEN` and `XTRIM` of what \
                     writes it";
        self.source.failed(error);
        tracing::error!(stream = &*self.place.name, entries, "{error}");
    }

    fn message<'a>(&self, entry: &'a Entry) -> Option<&'a [u8]> {
        let field = self.streams.message_field.as_bytes();
        let mut fields = entry.fields.iter().flatten();
        fields.find(|(name, _)| name == field).map(|(_, value)| &value[..])
    }

    /// Puts its id, and what is not its message, into its event. Fields with one name become a list.
    fn put(&self, entry: &Entry, event: &mut EventMut<'_>) -> bool {
        let mut is_put = event.put_text(&ID, entry.id.as_bytes()).is_ok();
        let field = self.streams.message_field.as_bytes();
        let fields = || entry.fields.iter().flatten();
        // Of several messages the first one is that of the event.
        let message = fields().position(|(name, _)| name == field);
        let mut others = BTreeMap::<Cow<'_, str>, Value>::new();
        for (at, (name, value)) in fields().enumerate() {
            if message == Some(at) {
                continue;
            }
            let value = Value::from(String::from_utf8_lossy(value).into_owned());
            match others.entry(String::from_utf8_lossy(name)) {
                Entries::Vacant(place) => {
                    place.insert(value);
                }
                Entries::Occupied(place) => match place.into_mut() {
                    Value::List(values) => values.push(value),
                    first => {
                        *first = Value::List(vec![std::mem::replace(first, Value::Null), value]);
                    }
                },
            }
        }
        if !others.is_empty() {
            let mut map = Map::new();
            for (name, value) in others {
                map.insert(&name, value);
            }
            is_put &= event.put(&FIELDS, &Value::Map(map)).is_ok();
        }
        is_put
    }

    /// Acknowledges what has its verdict.
    async fn acknowledge(&mut self, connection: &mut Connection) -> Result<(), ReadError> {
        let settled = (self.settled.front() - self.first).max(0) as usize;
        if settled == 0 {
            return Ok(());
        }
        let ids: Vec<&str> = self.in_flight.iter().take(settled).map(|(id, _)| &**id).collect();
        self.with_ids(connection, "XACK", &[], &ids, &[]).await?;
        for (_, number) in self.in_flight.drain(..settled) {
            self.ids.remove(&number);
        }
        self.first += settled as i64;
        Ok(())
    }

    /// Shows the server now and then that what is in flight is not lost.
    async fn keep(&mut self, connection: &mut Connection) -> Result<(), ReadError> {
        let now = self.place.intake.clock().monotonic();
        let span = self.place.settings.claim_after / 4;
        if self.in_flight.is_empty() || self.kept.is_some_and(|last| now.since(last) < span) {
            return Ok(());
        }
        let is_first = self.kept.replace(now).is_none();
        if is_first {
            return Ok(());
        }
        let ids: Vec<&str> = self.in_flight.iter().map(|(id, _)| &**id).collect();
        let consumer = &*self.place.settings.consumer;
        self.with_ids(connection, "XCLAIM", &[consumer, "0"], &ids, &["JUSTID"]).await
    }

    /// A command for entries of the group, some at a time.
    async fn with_ids(
        &self,
        connection: &mut Connection,
        command: &'static str,
        before: &[&str],
        ids: &[&str],
        behind: &[&str],
    ) -> Result<(), ReadError> {
        for some in ids.chunks(IDS_MAX) {
            let mut arguments = vec![command, &*self.place.key, &*self.streams.group];
            arguments.extend(before);
            arguments.extend(some);
            arguments.extend(behind);
            let arguments: Vec<&[u8]> = arguments.into_iter().map(str::as_bytes).collect();
            ask(connection, command, &arguments).await?;
        }
        Ok(())
    }

    /// Now and then takes over what other consumers have had for long.
    async fn claim(&mut self, connection: &mut Connection) -> Result<(), ReadError> {
        let claim_after = self.place.settings.claim_after;
        let now = self.place.intake.clock().monotonic();
        if self.claimed.is_some_and(|last| now.since(last) < claim_after / 2) {
            return Ok(());
        }
        let mut from = "0-0".to_owned();
        loop {
            let (idle, count) = (claim_after.as_millis().to_string(), self.count.to_string());
            let (key, group) = (&*self.place.key, &*self.streams.group);
            let consumer = &*self.place.settings.consumer;
            let arguments = ["XAUTOCLAIM", key, group, consumer, &idle, &from, "COUNT", &count];
            let answer = match ask(connection, "XAUTOCLAIM", &arguments.map(str::as_bytes)).await {
                // Servers before Redis 6.2 have none.
                Err(ReadError::Refused { error, .. }) if error.starts_with("ERR unknown") => break,
                answer => answer?,
            };
            let outline = answer.outline();
            let claimed = entries::claimed(answer);
            let claimed = claimed.ok_or_else(|| unproven("XAUTOCLAIM", outline))?;
            if claimed.deleted > 0 {
                self.report_deleted(claimed.deleted);
            }
            let is_other = |entry: &&Entry| !self.ids.contains(&entry.number);
            let entries = claimed.entries.iter().filter(is_other).count();
            if entries > 0 {
                let stream = &*self.place.name;
                tracing::warn!(
                    stream,
                    entries,
                    "entries of a consumer that was lost are taken over"
                );
            }
            self.send(connection, claimed.entries).await?;
            if claimed.next == "0-0" || self.place.intake.is_stopped() {
                break;
            }
            from = claimed.next;
        }
        self.claimed = Some(now);
        Ok(())
    }

    /// Waits for verdicts for a while, passes them on, and leaves the group.
    async fn end(&mut self, connection: &mut Connection) -> Result<(), ReadError> {
        self.place.intake.flush();
        let late = tokio::time::sleep(STOP_WAIT);
        tokio::pin!(late);
        let news = Arc::clone(&self.news);
        while self.settled.is_waiting() {
            tokio::select! {
                biased;
                () = news.notified() => {}
                () = &mut late => break,
            }
        }
        self.acknowledge(connection).await?;
        let consumer = &self.place.settings.consumer;
        let script = scripts::LEAVE_GROUP;
        let arguments = ["EVAL", script, "1", &self.place.key, &self.streams.group, consumer];
        match ask(connection, "EVAL", &arguments.map(str::as_bytes)).await {
            // A consumer without entries is no harm.
            Err(ReadError::Refused { .. }) => Ok(()),
            left => left.map(drop),
        }
    }
}
