//! The first half of the output: takes events and gathers those that share an object, until it is time to close it.
//!
//! Gathered events are not encoded yet: an open object is a list of rows of batches, which are in memory anyway and count against
//! the queue. So an object is closed when it is large or old enough, when objects hold half of what the queue may, and when nothing
//! else would make room.

use super::config::Batch;
use super::key::checked;
use super::ready::{Closed, Ready};
use skidder_event::Format;
use skidder_os::{Clock, Timestamp};
use skidder_outputs::{Codec, Refusal, Refuser};
use skidder_pipeline::{Delivery, Queue, TakeLimits};
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tokio::time::Instant;

/// The limit of one take from the queue.
const TAKE: TakeLimits = TakeLimits { events: 2048, bytes: 8 << 20 };
/// Most objects that are open at once; the oldest is closed for another.
const OPEN_MAX: usize = 1000;

type Taking = Pin<Box<dyn Future<Output = Option<Vec<Delivery>>> + Send>>;

/// An object to which events may still come.
#[derive(Debug)]
struct Open {
    parts: Vec<Delivery>,
    events: usize,
    /// About what it will have, before it is compressed.
    bytes: u64,
    /// The fields of an event besides its message: those of the first one, for all.
    overhead: u64,
    /// Of the queue's memory.
    held: usize,
    /// When the first event came.
    since: Instant,
    time: Timestamp,
}

/// See the module's text.
pub(crate) struct Gatherer {
    queue: Queue,
    ready: Arc<Ready>,
    refuser: Arc<Refuser>,
    clock: Arc<dyn Clock>,
    codec: Codec,
    prefix: Format,
    extension: String,
    batch: Batch,
    open: HashMap<Box<str>, Open>,
    taking: Option<Taking>,
    /// The text of the last event, and an encoded one.
    text: Vec<u8>,
    scratch: Vec<u8>,
}

/// Its further parts.
pub(crate) struct Parts {
    pub(crate) codec: Codec,
    /// `key_prefix`, bound.
    pub(crate) prefix: Format,
    pub(crate) extension: String,
    pub(crate) batch: Batch,
}

impl Gatherer {
    pub(crate) fn new(
        parts: Parts,
        queue: Queue,
        ready: Arc<Ready>,
        refuser: Arc<Refuser>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let Parts { codec, prefix, extension, batch } = parts;
        Self {
            queue,
            ready,
            refuser,
            clock,
            codec,
            prefix,
            extension,
            batch,
            open: HashMap::new(),
            taking: None,
            text: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Until the queue ends.
    pub(crate) async fn run(mut self) {
        loop {
            let is_idle = self.ready.is_idle();
            let has_open = !self.open.is_empty();
            let (queue, ready) = (self.queue.clone(), Arc::clone(&self.ready));
            let timeout = self.batch.timeout;
            let deadline = self.open.values().map(|open| open.since + timeout).min();
            let taking = self.taking.get_or_insert_with(|| Box::pin(take(queue.clone())));
            tokio::select! {
                biased;
                taken = taking => {
                    self.taking = None;
                    let Some(deliveries) = taken else { break };
                    self.add(deliveries).await;
                    self.close_until_half();
                }
                () = sleep_until(deadline) => self.close_old(),
                () = queue.hurried(is_idle), if has_open => self.hurry(),
                () = ready.was_done(), if has_open && !is_idle => {}
            }
        }
        self.close_down_to(0);
        self.ready.end();
    }

    async fn add(&mut self, deliveries: Vec<Delivery>) {
        let mut refusals = Vec::new();
        let is_constant = self.prefix.constant().is_some();
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        for delivery in deliveries {
            let memory = delivery.batch.memory_bytes() / delivery.batch.len().max(1);
            for row in delivery.rows.clone() {
                let mut written = Ok(());
                if text.is_empty() || !is_constant {
                    text.clear();
                    written = self.prefix.write(&mut text, delivery.batch.event(row as usize));
                }
                if let Err(error) = written {
                    refusals.push(Refusal::unsent(&delivery, row, error));
                    continue;
                }
                match checked(&text, &self.extension) {
                    Ok(prefix) => self.add_row(prefix, &delivery, row, memory),
                    Err(error) => refusals.push(Refusal::unsent(&delivery, row, error)),
                }
            }
        }
        self.text = text;
        self.refuser.settle(refusals).await;
    }

    fn add_row(&mut self, prefix: &str, delivery: &Delivery, row: u32, memory: usize) {
        if !self.open.contains_key(prefix) {
            self.begin(prefix, delivery, row);
        }
        let Some(open) = self.open.get_mut(prefix) else { return };
        match open.parts.last_mut() {
            Some(last) if last.rows.end == row && Arc::ptr_eq(&last.batch, &delivery.batch) => {
                last.rows.end += 1;
            }
            _ => open.parts.push(Delivery { rows: row..row + 1, ..delivery.clone() }),
        }
        let message = delivery.batch.rows()[row as usize].message.len;
        open.events += 1;
        open.bytes += u64::from(message) + open.overhead;
        open.held += memory;
        let is_full = open.bytes >= self.batch.bytes || open.events == self.batch.events;
        if is_full {
            self.close(prefix);
        }
    }

    fn begin(&mut self, prefix: &str, delivery: &Delivery, row: u32) {
        if self.open.len() >= OPEN_MAX {
            self.close_oldest();
        }
        self.scratch.clear();
        let written = self.codec.write(&mut self.scratch, &delivery.batch, row as usize);
        let message = delivery.batch.rows()[row as usize].message.len as usize;
        let overhead = match written {
            Ok(()) => (self.scratch.len() + 1).saturating_sub(message),
            // The worker refuses it.
            Err(_) => 1,
        };
        let open = Open {
            parts: Vec::new(),
            events: 0,
            bytes: 0,
            overhead: overhead as u64,
            held: 0,
            since: Instant::now(),
            time: self.clock.wall(),
        };
        self.open.insert(prefix.into(), open);
    }

    fn close(&mut self, prefix: &str) {
        if let Some((prefix, open)) = self.open.remove_entry(prefix) {
            let Open { parts, events, time, .. } = open;
            self.ready.push(Closed { prefix: prefix.into(), parts, events, time });
        }
    }

    fn close_oldest(&mut self) {
        let oldest = self.open.iter().min_by_key(|(_, open)| open.since);
        if let Some(prefix) = oldest.map(|(prefix, _)| prefix.clone()) {
            self.close(&prefix);
        }
    }

    fn close_old(&mut self) {
        let now = Instant::now();
        let timeout = self.batch.timeout;
        let old = self.open.iter().filter(|(_, open)| open.since + timeout <= now);
        let old: Vec<Box<str>> = old.map(|(prefix, _)| prefix.clone()).collect();
        for prefix in old {
            self.close(&prefix);
        }
    }

    /// Half of the queue is for objects on their way, so that neither readers nor workers wait for the other.
    fn close_until_half(&mut self) {
        let limits = *self.queue.limits();
        let held = self.open.values().map(|open| open.held).fold(0, usize::saturating_add);
        let events = self.events();
        if held > limits.bytes / 2 {
            let share = events as u128 * (limits.bytes / 2) as u128 / held as u128;
            self.close_down_to(share as usize);
        }
        self.close_down_to(limits.events / 2);
    }

    /// The queue is full of the events kept here, or there will be no more.
    fn hurry(&mut self) {
        let most = if self.queue.is_draining() { 0 } else { self.events() / 2 };
        self.close_down_to(most);
    }

    fn events(&self) -> usize {
        self.open.values().map(|open| open.events).sum()
    }

    /// Closes the largest objects until the others have at most so many events.
    fn close_down_to(&mut self, most: usize) {
        let mut events = self.events();
        if events <= most {
            return;
        }
        let sizes = self.open.iter().map(|(prefix, open)| (open.events, prefix.clone()));
        let mut sizes: Vec<(usize, Box<str>)> = sizes.collect();
        sizes.sort_unstable_by(|one, other| other.cmp(one));
        for (size, prefix) in sizes {
            if events <= most {
                return;
            }
            self.close(&prefix);
            events -= size;
        }
    }
}

async fn take(queue: Queue) -> Option<Vec<Delivery>> {
    let mut taken = Vec::new();
    queue.take(TAKE, &mut taken).await.then_some(taken)
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
