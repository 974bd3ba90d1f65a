//! Events into batches: the topic of each, its partition, and its record.

use crate::buffers::{Buffers, ROOM_BYTES_MAX};
use crate::codes::Code;
use crate::config::Config;
use crate::flights::Item;
use crate::lane::{Hold, Lane, Load};
use crate::record::Records;
use crate::selector::TopicError;
use crate::work::{Work, Writer};
use skidder_os::Clock;
use skidder_pipeline::Delivery;
use std::collections::BTreeSet;
use std::ops::Range;
use tokio::time::Instant;

/// Events that are encoded before others may run.
const STEP: u32 = 1024;

/// A batch with so many bytes takes no more, so that its memory (`buffers.rs`) need not grow for another record of
/// usual length.
const BATCH_BYTES: usize = ROOM_BYTES_MAX - (8 << 10);

/// Why an event is in no batch.
type Unfit = (Code, String);

/// Writes records into the open batches of lanes.
struct Pen<'a> {
    writer: &'a mut Writer,
    load: &'a mut Load,
    active: &'a mut BTreeSet<u32>,
    buffers: &'a Buffers,
    config: &'a Config,
    clock: &'a dyn Clock,
    now: Instant,
}

impl Pen<'_> {
    /// Writes an event, whose key was made. Nothing is left of one that does not fit.
    #[inline]
    fn write(
        &mut self,
        slot: u32,
        lane: &mut Lane,
        delivery: &Delivery,
        row: u32,
        item: Item,
    ) -> Result<(), Unfit> {
        let open = &mut lane.open;
        if open.records.bytes.capacity() == 0 {
            open.records = Records::within(self.buffers.take(lane.usual.bytes));
            open.items.reserve(lane.usual.records);
        }
        let before = open.records.bytes.len();
        let size = match self.writer.write(&mut open.records, delivery, row, self.clock) {
            Ok(size) => size,
            Err(error) => return Err((Code::NONE, error.to_string())),
        };
        let limit = self.config.max_message_bytes;
        if open.records.bytes.len() > limit {
            if size > limit {
                open.records.undo();
                let reason = format!("it has {size} bytes, and `max_message_bytes` is {limit}");
                return Err((Code::MESSAGE_TOO_LARGE, reason));
            }
            if open.records.count > 1 {
                open.records.undo();
                lane.seal();
                return self.write(slot, lane, delivery, row, item);
            }
        }
        self.load.records += 1;
        self.load.bytes += open.records.bytes.len() - before;
        open.items.push(item);
        let count = open.items.len();
        if count == 1 {
            lane.since = Some(self.now);
            self.active.insert(slot);
        }
        if open.records.bytes.len() >= BATCH_BYTES || count >= self.config.batch_records_max() {
            lane.seal();
        }
        Ok(())
    }
}

impl Work {
    /// Starts the rows that are still untouched, a step's worth; returns whether there may be more.
    pub(crate) fn begin_rows(&mut self, now: Instant) -> bool {
        let mut step = STEP;
        while step > 0 && self.has_room() {
            let Some(&(flight, next, rows)) = self.waiting.front() else { return false };
            let taken = self.begin(flight, next..rows.min(next + step), now);
            if taken == 0 {
                // Another time.
                return false;
            }
            step -= taken;
            if next + taken == rows {
                self.waiting.pop_front();
            } else if let Some((_, next, _)) = self.waiting.front_mut() {
                *next += taken;
            }
        }
        step == 0
    }

    /// Finds the topic and the places of a flight's next rows; returns the number of these rows. None: there are
    /// too many topics.
    fn begin(&mut self, flight: u32, rows: Range<u32>, now: Instant) -> u32 {
        let item = Item { flight, row: rows.start as u16 };
        let mut rows = rows;
        let last = if self.has_one_topic { self.last_topic } else { None };
        let number = match last {
            Some(number) => number,
            None => {
                // The next one may have another.
                rows.end = rows.start + 1;
                match self.topic_of(item) {
                    Ok(Some(number)) => number,
                    Ok(None) => return 0,
                    Err(error) => {
                        self.refuse(item, Code::NONE, error.to_string());
                        return 1;
                    }
                }
            }
        };
        let topic = self.topics.get(number);
        if topic.hold == Hold::No && topic.parked.is_empty() {
            return self.place(number, flight, rows, now);
        }
        topic.parked.push_back(item);
        self.topics.busy.insert(number);
        1
    }

    /// The number of an event's topic; nothing if there are too many.
    fn topic_of(&mut self, item: Item) -> Result<Option<u16>, TopicError> {
        let (delivery, row) = self.flights.origin(item);
        let Writer { selector, topic_text, .. } = &mut self.writer;
        selector.select(delivery.batch.event(row as usize), topic_text)?;
        let last = self.last_topic.filter(|number| {
            let last = self.topics.peek(*number);
            last.is_some_and(|topic| topic.name.as_bytes() == topic_text)
        });
        if last.is_some() {
            return Ok(last);
        }
        let name = std::str::from_utf8(topic_text).expect("names of topics are ASCII").to_owned();
        let found = self.topics.find(&name);
        let number = found.or_else(|| self.add_topic(&name));
        self.last_topic = number;
        Ok(number)
    }

    /// Brings rows to partitions of their topic, which is known, as long as there is room, which there must be for the
    /// first; returns how many.
    pub(crate) fn place(
        &mut self,
        number: u16,
        flight: u32,
        rows: Range<u32>,
        now: Instant,
    ) -> u32 {
        let Self { flights, topics, lanes, writer, load, active, .. } = self;
        let (config, buffers, clock) = (&*self.config, &self.links.buffers, &*self.feed.clock);
        let (delivery, first) = flights.origin(Item { flight, row: 0 });
        let topic = topics.get(number);
        topic.used = true;
        let mut pen = Pen { writer, load, active, buffers, config, clock, now };
        let mut count = 0;
        for row in rows {
            if count > 0 && !pen.load.is_within(&self.load_max) {
                break;
            }
            count += 1;
            let item = Item { flight, row: row as u16 };
            let event = delivery.batch.event((first + row) as usize);
            pen.writer.make_key(event);
            let (strategy, key) = (&config.partitioning.strategy, pen.writer.key());
            let unfit = match topic.chooser.choose(strategy, key, event, topic.usable.len()) {
                Err(field) => {
                    (Code::NONE, format!("the field `{field}` of `partition.hash` has no hash"))
                }
                Ok(place) => {
                    let slot = topic.usable[place];
                    let lane = &mut lanes[slot as usize];
                    let lane = lane.as_mut().expect("a usable partition has a lane");
                    if lane.hold != Hold::No || lane.has_waiting() {
                        lane.parked.push_back(item);
                        pen.active.insert(slot);
                        continue;
                    }
                    match pen.write(slot, lane, delivery, first + row, item) {
                        Ok(()) => continue,
                        Err(unfit) => unfit,
                    }
                }
            };
            self.refuse(item, unfit.0, unfit.1);
            break;
        }
        count
    }

    /// Writes an event into the open batch of a lane.
    pub(crate) fn write(&mut self, slot: u32, item: Item, now: Instant) {
        let Self { flights, lanes, writer, load, active, .. } = self;
        let (config, buffers, clock) = (&*self.config, &self.links.buffers, &*self.feed.clock);
        let (delivery, row) = flights.origin(item);
        writer.make_key(delivery.batch.event(row as usize));
        let lane = lanes[slot as usize].as_mut().expect("whoever writes has a lane");
        let mut pen = Pen { writer, load, active, buffers, config, clock, now };
        if let Err((code, reason)) = pen.write(slot, lane, delivery, row, item) {
            self.refuse(item, code, reason);
        }
    }
}
