//! Sending batches to the brokers that lead their partitions, and what comes back.

use crate::codes::{Code, Meaning};
use crate::connection::AskError;
use crate::flights::Item;
use crate::lane::{Batch, Flying, Group, Hold, Lane, Mark};
use crate::link::{Link, LinkEvent, LinkMessage};
use crate::produce::{Outcome, Parcel};
use crate::record::Sequence;
use crate::work::Work;
use skidder_outputs::Backoff;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Most bytes of records in one request, if it is not a single batch: brokers take 100 MB.
const REQUEST_BYTES_MAX: usize = 64 << 20;
/// Requests under way to a broker with idempotence: brokers know the last five of a producer.
const IN_FLIGHT_MAX: usize = 5;

/// The batches of one request to a broker.
#[derive(Default)]
struct Order {
    lanes: Vec<u32>,
    /// Of their records.
    bytes: usize,
    is_full: bool,
}

/// A broker that leads partitions.
pub(crate) struct Broker {
    /// `host:port`.
    pub(crate) node: String,
    link: Option<Link>,
    /// The number of the link.
    number: u64,
    is_up: bool,
    /// The lanes of each order that was not answered.
    orders: VecDeque<Vec<u32>>,
    /// It is not tried again before.
    not_before: Option<Instant>,
    backoff: Backoff,
}

impl Broker {
    pub(crate) fn new(node: String, backoff: Backoff) -> Self {
        Self {
            node,
            link: None,
            number: 0,
            is_up: false,
            orders: VecDeque::new(),
            not_before: None,
            backoff,
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.is_up
    }

    pub(crate) fn has_link(&self) -> bool {
        self.link.is_some()
    }
}

impl Work {
    /// Sends every batch that is due and can be sent.
    pub(crate) fn send_all(&mut self, now: Instant) {
        let Some(generation) = self.generation() else { return };
        let is_urgent = self.is_urgent();
        let after = self.active.range(self.turn..).copied();
        let slots: Vec<u32> = after.chain(self.active.range(..self.turn).copied()).collect();
        let mut orders: BTreeMap<i32, Order> = BTreeMap::new();
        for slot in slots {
            let linger = self.config.bulk_flush_frequency;
            let lane = self.lane(slot);
            let leader = lane.leader;
            let is_due = lane.hold == Hold::No && lane.is_due(now, is_urgent, linger);
            if !is_due || !self.can_send(slot, generation, now) {
                continue;
            }
            let lane = self.lane(slot);
            let bytes = lane.sealed.front().unwrap_or(&lane.open).records.bytes.len();
            let order = orders.entry(leader).or_default();
            if !order.is_full
                && (order.lanes.is_empty() || order.bytes + bytes <= REQUEST_BYTES_MAX)
            {
                order.lanes.push(slot);
                order.bytes += bytes;
            } else if !std::mem::replace(&mut order.is_full, true) {
                self.turn = slot;
            }
        }
        for (broker, order) in orders {
            self.send_order(broker, order.lanes, generation);
        }
    }

    /// Ends all links. Where brokers do not acknowledge anything, they are to have read what was sent.
    pub(crate) async fn close(self) {
        if self.config.required_acks == 0 {
            for link in self.brokers.into_values().filter_map(|broker| broker.link) {
                link.close().await;
            }
        }
    }

    /// Whether batches need not wait for others to come: there is no room for more, or none will come.
    fn is_urgent(&self) -> bool {
        let (load, max) = (&self.load, &self.load_max);
        self.ended || load.records >= max.records / 2 || load.bytes >= max.bytes / 2
    }

    /// Which identity batches are numbered for; `None`: one is needed first.
    fn generation(&self) -> Option<u32> {
        match &self.producer {
            None => Some(0),
            Some(producer) => producer.identity.map(|_| producer.generation),
        }
    }

    /// Whether a lane that has something can send it now. If it has to wait for long, it is held.
    fn can_send(&mut self, slot: u32, generation: u32, now: Instant) -> bool {
        let in_flight_max = if self.producer.is_some() { IN_FLIGHT_MAX } else { 1 };
        let lane = self.lanes[slot as usize].as_mut().expect("it is active");
        let Some(broker) = self.brokers.get_mut(&lane.leader) else {
            let pause = lane.backoff.next_wait();
            return self.hold_until(slot, now + pause);
        };
        if let Some(at) = broker.not_before.filter(|at| *at > now) {
            return self.hold_until(slot, at);
        }
        if broker.link.is_none() {
            self.links_made += 1;
            broker.number = self.links_made;
            broker.link = Some(Link::new(&self.links, &broker.node, broker.number));
            broker.is_up = false;
        }
        // All that flies of a partition has one link, and numbers of one identity.
        let is_alone = lane.flying.back().is_none_or(|last| {
            let is_same = last.group.mark.is_some_and(|mark| mark.generation == generation);
            last.link == broker.number && is_same && lane.flying.len() < IN_FLIGHT_MAX
        });
        broker.is_up && broker.orders.len() < in_flight_max && is_alone
    }

    /// Holds a lane, which has landed or not, until this time.
    fn hold_until(&mut self, slot: u32, at: Instant) -> bool {
        let lane = self.lane(slot);
        if lane.flying.is_empty() {
            lane.hold = Hold::Until(at);
            self.settle_down(slot);
        }
        false
    }

    fn send_order(&mut self, id: i32, mut order: Vec<u32>, generation: u32) {
        let identity = self.producer.as_ref().and_then(|producer| producer.identity);
        let broker = self.brokers.get_mut(&id).expect("it can take orders");
        // Those of a topic stand together.
        order.sort_by_key(|slot| self.lanes[*slot as usize].as_ref().map(|lane| lane.topic));
        let mut parcels = Vec::with_capacity(order.len());
        let mut count = 0;
        for slot in &order {
            let lane = self.lanes[*slot as usize].as_mut().expect("it is active");
            let Batch { items, records, mark } = lane.take().expect("it has a batch");
            let mark = identity.map(|_| lane.number(generation, mark, items.len()));
            let sequence = mark.zip(identity).map(|(mark, identity)| Sequence {
                id: identity.id,
                epoch: identity.epoch,
                first: mark.first,
            });
            count += items.len() as u64;
            let group = Group { items, mark };
            let bytes = records.bytes.len();
            lane.flying.push_back(Flying { group, bytes, link: broker.number });
            let topic = Arc::clone(&self.topics.get(lane.topic).name);
            parcels.push(Parcel { topic, partition: lane.partition, records, sequence });
        }
        self.feed.metrics.total.add(count);
        self.feed.metrics.active.add(count);
        self.feed.metrics.batches.add(1);
        if let Some(link) = &broker.link {
            link.send(parcels);
        }
        broker.orders.push_back(order);
    }

    /// Handles an event of a link.
    pub(crate) fn on_link_message(&mut self, (number, event): LinkMessage) {
        let mut brokers = self.brokers.iter_mut();
        let found = brokers.find(|(_, broker)| broker.number == number && broker.link.is_some());
        // A broker that is forgotten has landed everything.
        let Some((&id, broker)) = found else { return };
        match event {
            LinkEvent::Up => broker.is_up = true,
            LinkEvent::Done { outcomes, sent_bytes, read_bytes, took } => {
                broker.backoff.reset();
                let order = broker.orders.pop_front().expect("only orders are answered");
                let metrics = &self.feed.metrics;
                metrics.write_bytes.add(sent_bytes);
                metrics.read_bytes.add(read_bytes);
                metrics.latency_ns.add(took.as_nanos() as u64);
                for (slot, outcome) in order.into_iter().zip(outcomes) {
                    self.landed(slot, outcome);
                }
            }
            LinkEvent::Down(error) => self.lost(id, &error),
        }
    }

    /// A link has ended; what was under way may have been written or not.
    fn lost(&mut self, id: i32, error: &AskError) {
        let broker = self.brokers.get_mut(&id).expect("it had a link");
        broker.link = None;
        let was_up = std::mem::take(&mut broker.is_up);
        let orders = std::mem::take(&mut broker.orders);
        if was_up && orders.is_empty() {
            // Brokers end connections that were not used for long.
            tracing::debug!(broker = broker.node, %error, "a connection to Kafka ended");
            return;
        }
        let pause = broker.backoff.next_wait();
        broker.not_before = Some(Instant::now() + pause);
        let node = broker.node.clone();
        self.report_trouble(&node, error);
        for slot in orders.into_iter().flatten() {
            let group = self.land(slot);
            self.feed.metrics.failed.add(group.items.len() as u64);
            let lane = self.lane(slot);
            lane.want_pause(pause);
            lane.give_back(group);
            self.drain(slot);
        }
    }

    pub(crate) fn report_trouble(&mut self, node: &str, error: &AskError) {
        self.feed.metrics.write_error_with(node, error, Some(error.advice()));
        if let Some(failures) = self.failures.add() {
            let advice = error.advice();
            tracing::error!(broker = node, %error, failures, advice, "trouble with Kafka; trying again");
        }
    }

    /// The oldest batch of a lane that flies does not any more.
    fn land(&mut self, slot: u32) -> Group {
        let lane =
            self.lanes[slot as usize].as_mut().expect("a lane with records is not forgotten");
        let flying = lane.flying.pop_front().expect("only what was sent comes back");
        self.load.records -= flying.group.items.len();
        self.load.bytes -= flying.bytes;
        self.feed.metrics.active.sub(flying.group.items.len() as u64);
        flying.group
    }

    /// A batch was answered.
    fn landed(&mut self, slot: u32, outcome: Outcome) {
        let group = self.land(slot);
        let lane = self.lanes[slot as usize].as_mut().expect("it was found just now");
        match outcome.code.meaning() {
            Meaning::Taken => {
                self.flights.delivered(&group.items);
                if lane.tries > 0 {
                    lane.tries = 0;
                    lane.backoff.reset();
                    self.topics.get(lane.topic).failures.clear();
                }
            }
            Meaning::Suspect => self.suspect(slot, group, outcome),
            Meaning::Refused => {
                lane.refused(group.mark);
                for item in group.items {
                    self.refuse(item, outcome.code, reason(&outcome));
                }
            }
            Meaning::Early if !lane.returned.is_empty() => {
                // The one before it is missing because it came back too.
                self.feed.metrics.failed.add(group.items.len() as u64);
                lane.give_back(group);
            }
            Meaning::Early | Meaning::Stranger => {
                self.begin_anew(group.mark, outcome.code);
                self.came_back(slot, group, &outcome);
            }
            Meaning::Again | Meaning::Moved => self.came_back(slot, group, &outcome),
        }
        self.drain(slot);
    }

    /// A batch was not written, and goes again after a pause.
    fn came_back(&mut self, slot: u32, group: Group, outcome: &Outcome) {
        self.feed.metrics.failed.add(group.items.len() as u64);
        let metadata = self.config.metadata;
        let lane = self.lanes[slot as usize].as_mut().expect("it was found just now");
        lane.tries += 1;
        let has_moved = outcome.code.meaning() == Meaning::Moved;
        let pause = if has_moved && lane.tries <= metadata.retry_max {
            metadata.retry_backoff.max(Duration::from_millis(1))
        } else {
            lane.backoff.next_wait()
        };
        lane.want_pause(pause);
        lane.give_back(group);
        let topic = self.topics.get(lane.topic);
        if let Some(times) = topic.failures.add() {
            let (topic, advice) = (&*topic.name, outcome.code.advice());
            let error = reason(outcome);
            tracing::warn!(topic, error, times, advice, "events came back; sending them again");
        }
    }

    /// A batch is not taken as it is: rows at fault are refused, and the rest goes again; in halves, if the broker
    /// does not name them.
    fn suspect(&mut self, slot: u32, group: Group, outcome: Outcome) {
        let lane = self.lanes[slot as usize].as_mut().expect("it was found just now");
        lane.refused(group.mark);
        let mut items = group.items;
        let mut bad = outcome.rows.clone();
        bad.retain(|row| *row < items.len());
        bad.sort_unstable();
        if items.len() == 1 {
            bad = vec![0];
        }
        if bad.is_empty() {
            let rest = items.split_off(items.len() / 2);
            for items in [items, rest] {
                lane.give_back(Group { items, mark: None });
            }
            self.feed.metrics.split.add(1);
            return;
        }
        let (mut refused, mut kept) = (Vec::new(), Vec::new());
        for (row, item) in items.into_iter().enumerate() {
            if bad.binary_search(&row).is_ok() { refused.push(item) } else { kept.push(item) }
        }
        lane.give_back(Group { items: kept, mark: None });
        for item in refused {
            self.refuse(item, outcome.code, reason(&outcome));
        }
    }

    /// Puts waiting batches in order, once nothing flies any more.
    fn drain(&mut self, slot: u32) {
        let lane = self.lane(slot);
        if lane.hold != Hold::Draining || !lane.flying.is_empty() {
            return;
        }
        lane.hold = match lane.pause.take() {
            Some(pause) => Hold::Until(Instant::now() + pause),
            None => Hold::No,
        };
        self.settle_down(slot);
    }

    fn settle_down(&mut self, slot: u32) {
        let buffers = self.links.buffers.clone();
        let load = self.lane(slot).settle_down(&mut |buffer| buffers.put(buffer));
        self.load.records -= load.records;
        self.load.bytes -= load.bytes;
    }

    /// Another identity: this one is of no use.
    fn begin_anew(&mut self, mark: Option<Mark>, code: Code) {
        let Some(producer) = &mut self.producer else { return };
        if mark.is_none_or(|mark| mark.generation != producer.generation) {
            return;
        }
        producer.identity = None;
        producer.generation += 1;
        producer.ask_at = Some(Instant::now());
        tracing::warn!(error = %code, "begins anew with Kafka; events may come twice");
    }

    /// Writes what waits at a lane, as there is room.
    pub(crate) fn unpark(&mut self, slot: u32, now: Instant) {
        while self.has_room() {
            let lane = self.lane(slot);
            if let Some(group) = lane.groups.pop_front() {
                self.pack(slot, group);
            } else if let Some(item) = lane.parked.pop_front() {
                self.write(slot, item, now);
            } else {
                return;
            }
        }
    }

    fn make_key(&mut self, item: Item) {
        let (delivery, row) = self.flights.origin(item);
        self.writer.make_key(delivery.batch.event(row as usize));
    }

    /// Writes a batch that came back once more.
    fn pack(&mut self, slot: u32, group: Group) {
        let usual = self.lane(slot).usual;
        let memory = self.links.buffers.take(usual.bytes);
        let mut batch = Batch { mark: group.mark, ..Batch::default() };
        batch.records = crate::record::Records::within(memory);
        for item in group.items {
            self.make_key(item);
            let (delivery, row) = self.flights.origin(item);
            match self.writer.write(&mut batch.records, delivery, row, &*self.feed.clock) {
                Ok(_) => batch.items.push(item),
                // It could be written before.
                Err(error) => self.refuse(item, Code::NONE, error.to_string()),
            }
        }
        self.load.records += batch.items.len();
        self.load.bytes += batch.records.bytes.len();
        if !batch.items.is_empty() {
            self.lane(slot).sealed.push_back(batch);
        }
    }

    /// Makes a lane for a partition.
    pub(crate) fn add_lane(&mut self, topic: u16, partition: i32) -> u32 {
        let backoff = self.backoff();
        let lane = Lane::new(topic, partition, backoff);
        match self.free_lanes.pop() {
            Some(slot) => {
                self.lanes[slot as usize] = Some(lane);
                slot
            }
            None => {
                self.lanes.push(Some(lane));
                (self.lanes.len() - 1) as u32
            }
        }
    }

    pub(crate) fn backoff(&mut self) -> Backoff {
        let seed = self.next_seed();
        Backoff::new(self.config.backoff_init, self.config.backoff_max, seed)
    }

    /// Another number than all before it; its high bits are the good ones.
    pub(crate) fn next_seed(&mut self) -> u64 {
        self.seed = self.seed.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        self.seed
    }
}

/// The reason in an answer, in the broker's words if it has some.
fn reason(outcome: &Outcome) -> String {
    match &outcome.text {
        Some(text) => format!("{}: {text}", outcome.code),
        None => outcome.code.to_string(),
    }
}
