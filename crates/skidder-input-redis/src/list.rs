//! A list: its elements are taken into a pending list of this consumer, and removed from there behind their verdicts.
//!
//! One connection does everything: it takes, removes what is settled, and waits for more with `BLMOVE`, which is never
//! given up in the middle, so that no element moves unnoticed.

use crate::events::Texts;
use crate::place::{
    Place, ReadError, Reads, STOP_WAIT, ask, good, read_on, stopping, unproven, waits,
};
use crate::scripts::{self, Keys};
use skidder_event::{Map, Progress};
use skidder_input::{InputError, Settled, Source};
use skidder_os::Monotonic;
use skidder_redis::{Connection, Reply, write_command};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// Elements that are taken at once, at most.
const TAKE_ELEMENTS_MAX: usize = 2048;

/// Bytes that are enough for one answer; one element more may come.
const TAKE_BYTES: usize = 1 << 20;

/// How long the server waits for an element.
const BLOCK: Duration = Duration::from_secs(1);

/// The same while events wait for verdicts, which must be passed on.
const BLOCK_BUSY: Duration = Duration::from_millis(100);

/// A consumer that was not seen for so long, and left nothing, is forgotten.
const FORGET_AFTER: Duration = Duration::from_hours(24);

/// Reads a list until the input ends.
pub(crate) async fn read(place: Place) -> Result<(), InputError> {
    let mut fields = Map::new();
    fields.insert_path("redis.list.key", &*place.key);
    let source = place.intake.open(&place.name, fields);
    let keys = Keys::new(&place.key, &place.settings.consumer);
    let news = Arc::<Notify>::default();
    let reader = Reader {
        token: token(&place),
        settled: Settled::new(0, Arc::clone(&news)),
        place,
        source,
        keys,
        news,
        is_owner: false,
        known: 0,
        removed: 0,
        rescued: None,
        has_blmove: true,
    };
    read_on(reader).await
}

/// A text that no other reader has.
fn token(place: &Place) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let now = place.intake.clock().wall().0;
    format!("{}-{now}-{}-{number}", place.settings.consumer, std::process::id())
}

struct Reader {
    place: Place,
    source: Source,
    keys: Keys,
    /// By it the server knows this reader from another one with the name of the consumer.
    token: String,
    is_owner: bool,
    settled: Arc<Settled>,
    /// Notified with every verdict.
    news: Arc<Notify>,
    /// The number of the next element.
    known: i64,
    /// The number up to which the server has removed what is settled.
    removed: i64,
    /// When other consumers were looked at last.
    rescued: Option<Monotonic>,
    has_blmove: bool,
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
        if !self.is_owner {
            self.claim(&mut connection).await?;
        }
        loop {
            if intake.is_stopped() {
                return self.end(&mut connection).await;
            }
            if self.settled.is_rejected() {
                // What got no verdict is pending still.
                self.begin_at(self.settled.front());
            }
            self.rescue(&mut connection).await?;
            let elements = self.take(&mut connection, TAKE_ELEMENTS_MAX).await?;
            self.place.succeeded();
            if !elements.is_empty() {
                self.send(&mut connection, elements).await?;
                continue;
            }
            // Also if the last verdict came after the step before: it must not wait for the next element.
            let has_pending = self.removed < self.known;
            if intake.is_once() {
                if !has_pending {
                    return self.end(&mut connection).await;
                }
                intake.flush();
            }
            self.wait(&mut connection, has_pending).await?;
        }
    }

    fn session_failed(&mut self, error: &ReadError) {
        if matches!(error, ReadError::Gone | ReadError::Fenced { .. }) {
            self.is_owner = false;
        }
    }
}

impl Reader {
    /// Elements count from here.
    fn begin_at(&mut self, number: i64) {
        self.known = number;
        self.settled = Settled::new(number, Arc::clone(&self.news));
    }

    /// Becomes the consumer. What is pending of the one before comes first.
    async fn claim(&mut self, connection: &mut Connection) -> Result<(), ReadError> {
        let Keys { list, pending, state } = &self.keys;
        let name = self.place.settings.consumer.as_bytes();
        let command: [&[u8]; 8] = [
            b"EVAL",
            scripts::CLAIM.as_bytes(),
            b"3",
            list.as_bytes(),
            pending.as_bytes(),
            state.as_bytes(),
            name,
            self.token.as_bytes(),
        ];
        match ask(connection, "EVAL", &command).await? {
            Reply::Number(pending) => {
                if pending > 0 {
                    let list = &*self.place.name;
                    tracing::info!(list, pending, "elements that were in flight are read again");
                }
            }
            answer => return Err(unproven("EVAL", answer)),
        }
        self.is_owner = true;
        self.begin_at(0);
        self.removed = 0;
        Ok(())
    }

    /// Removes what is settled, and takes at most so many elements.
    async fn take(
        &mut self,
        connection: &mut Connection,
        most: usize,
    ) -> Result<Vec<Vec<u8>>, ReadError> {
        let Keys { list, pending, state } = &self.keys;
        let consumer = &self.place.settings.consumer;
        let front = self.settled.front();
        let numbers = [
            front.to_string(),
            self.known.to_string(),
            most.to_string(),
            TAKE_BYTES.to_string(),
            // One more shows that an element is longer.
            (self.place.settings.max_bytes + 1).to_string(),
        ];
        let mut command: Vec<&[u8]> = vec![b"EVAL", scripts::TAKE.as_bytes(), b"3"];
        command.extend([list, pending, state, consumer, &self.token].map(|text| text.as_bytes()));
        command.extend(numbers.iter().map(String::as_bytes));
        let before = connection.read_bytes;
        let answer = connection.ask(&command).await?;
        self.place.intake.metrics().bytes.add(connection.read_bytes - before);
        match answer {
            Reply::List(items) => {
                self.removed = front;
                let value = |item| match item {
                    Reply::Value(value) => Ok(value),
                    other => Err(unproven("EVAL", other)),
                };
                items.into_iter().map(value).collect()
            }
            Reply::Error(error) if error.starts_with("SKIDDERGONE") => Err(ReadError::Gone),
            Reply::Error(error) if error.starts_with("SKIDDERFENCED") => {
                Err(ReadError::Fenced { consumer: consumer.clone(), key: self.place.key.clone() })
            }
            Reply::Error(error) => Err(ReadError::Refused { command: "EVAL", error }),
            answer => Err(unproven("EVAL", answer)),
        }
    }

    /// Sends elements. While there is no room for them, verdicts of others are passed on, and the server sees that this
    /// consumer lives.
    async fn send(
        &mut self,
        connection: &mut Connection,
        elements: Vec<Vec<u8>>,
    ) -> Result<(), ReadError> {
        let intake = self.place.intake.clone();
        let now = intake.clock().wall().0;
        let mut texts = Texts::default();
        for element in &elements {
            texts.push(element, self.place.settings.max_bytes, now);
        }
        self.known += elements.len() as i64;
        drop(elements);
        let owed = self.settled.batch(self.known);
        let bytes = texts.taken;
        let batch = texts.into_batch(&mut self.source);
        let mut sending = self.source.send(batch, Progress::Acknowledge(owed, bytes));
        let mut failure = None;
        let stopping = stopping(&intake);
        tokio::pin!(stopping);
        let news = Arc::clone(&self.news);
        let pause = self.place.settings.claim_after / 4;
        while waits(&mut sending, &mut stopping, &news, pause, failure.is_some()).await? {
            failure = self.take(connection, 0).await.err();
        }
        failure.map_or(Ok(()), Err)
    }

    /// Waits until there may be something.
    async fn wait(
        &mut self,
        connection: &mut Connection,
        has_pending: bool,
    ) -> Result<(), ReadError> {
        let block = if has_pending { BLOCK_BUSY } else { BLOCK };
        if self.has_blmove {
            let seconds = block.as_secs_f64().to_string();
            let Keys { list, pending, .. } = &self.keys;
            let mut command = Vec::new();
            let arguments =
                [list.as_bytes(), pending.as_bytes(), b"LEFT", b"RIGHT", seconds.as_bytes()];
            write_command(&mut command, &[&[&b"BLMOVE"[..]], &arguments[..]].concat());
            connection.send(&command).await?;
            // The element is pending now, and comes with the next step.
            match connection.reply_within(block + self.place.settings.timeout).await? {
                Reply::Error(error) if error.starts_with("OOM") => {}
                Reply::Error(error) if error.starts_with("NOPERM") || is_unknown(&error) => {
                    self.has_blmove = false;
                }
                answer => return good("BLMOVE", answer).map(drop),
            }
        }
        let intake = &self.place.intake;
        tokio::select! {
            () = intake.stopped() => {}
            () = tokio::time::sleep(BLOCK_BUSY) => {}
        }
        Ok(())
    }

    /// Now and then gives back what consumers left that were not seen for long.
    async fn rescue(&mut self, connection: &mut Connection) -> Result<(), ReadError> {
        let claim_after = self.place.settings.claim_after;
        let now = self.place.intake.clock().monotonic();
        if self.rescued.is_some_and(|last| now.since(last) < claim_after / 2) {
            return Ok(());
        }
        let Keys { list, state, .. } = &self.keys;
        let fields = match ask(connection, "HGETALL", &[b"HGETALL", state.as_bytes()]).await? {
            Reply::List(fields) => fields,
            answer => return Err(unproven("HGETALL", answer)),
        };
        let seconds = match ask(connection, "TIME", &[b"TIME"]).await? {
            Reply::List(time) => time.first().and_then(number),
            answer => return Err(unproven("TIME", answer)),
        };
        let Some(seconds) = seconds else { return Ok(()) };
        for (name, seen) in lost(&fields, seconds * 1000 - claim_after.as_millis() as i64) {
            if name == self.place.settings.consumer {
                continue;
            }
            let keys = Keys::new(list, &name);
            let (seen, forget) = (seen.to_string(), FORGET_AFTER.as_millis().to_string());
            let script = scripts::RESCUE.as_bytes();
            let mut command: Vec<&[u8]> = vec![b"EVAL", script, b"3"];
            let rest = [&keys.list, &keys.pending, &keys.state, &name, &seen, &forget];
            command.extend(rest.map(|text| text.as_bytes()));
            if let Reply::Number(elements @ 1..) = ask(connection, "EVAL", &command).await? {
                let list = &*self.place.name;
                tracing::warn!(
                    list,
                    consumer = name,
                    elements,
                    "a consumer was not seen for `claim_after`: what it had taken is in the list again"
                );
            }
        }
        self.rescued = Some(now);
        Ok(())
    }

    /// Waits for verdicts for a while, passes them on, and is the consumer no more.
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
        self.take(connection, 0).await?;
        let Keys { pending, state, .. } = &self.keys;
        let command: [&[u8]; 7] = [
            b"EVAL",
            scripts::LEAVE.as_bytes(),
            b"2",
            pending.as_bytes(),
            state.as_bytes(),
            self.place.settings.consumer.as_bytes(),
            self.token.as_bytes(),
        ];
        ask(connection, "EVAL", &command).await.map(drop)
    }
}

/// Servers before Redis 6.2 have no `BLMOVE`.
fn is_unknown(error: &str) -> bool {
    error.starts_with("ERR unknown command")
}

fn number(reply: &Reply) -> Option<i64> {
    match reply {
        Reply::Value(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        Reply::Number(number) => Some(*number),
        _ => None,
    }
}

/// Consumers that were seen last before a time, with that of each: milliseconds.
fn lost(fields: &[Reply], before: i64) -> Vec<(String, i64)> {
    let mut lost = Vec::new();
    for pair in fields.chunks_exact(2) {
        let [Reply::Value(field), seen] = pair else { continue };
        let Ok(field) = std::str::from_utf8(field) else { continue };
        if let (Some(name), Some(seen)) = (field.strip_prefix("seen:"), number(seen))
            && seen < before
        {
            lost.push((name.to_owned(), seen));
        }
    }
    lost
}
