//! The one task of the output: takes events, hands them to librdkafka as records, and gives each its verdict
//! when librdkafka reports it.
//!
//! Nothing here waits for a broker but a pause. What librdkafka takes it sends until it has an answer, keeping
//! the order of a partition; what it gives back waits at its topic (`hold.rs`) until all that is under way
//! there has come back too, and goes again in the order in which it was read.

use crate::codes::{self, Meaning};
use crate::config::Config;
use crate::flights::{Flights, Item, number_of, parts_of};
use crate::native::{Code, Metadata, Producer, Report};
use crate::partition::Strategy;
use crate::setup::Setup;
use crate::topics::{Hold, Topics};
use skidder_event::Format;
use skidder_outputs::{Codec, Failures, Refusal, Refuser};
use skidder_pipeline::{Delivery, Feed, Queue, TakeLimits};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Most bytes of messages that are taken from the queue at once.
const TAKE_BYTES_MAX: usize = 8 << 20;
/// Events that are encoded before others may run.
const STEP: usize = 512;
/// How long librdkafka is asked to hurry at once, in the end.
const FLUSH: Duration = Duration::from_millis(100);

/// What an event becomes.
pub(crate) struct Writer {
    pub(crate) codec: Codec,
    pub(crate) key: Option<Format>,
    /// `topic` and `topics`, bound.
    pub(crate) selector: crate::selector::Topics,
    pub(crate) topic_text: Vec<u8>,
    pub(crate) key_text: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

type Taking = Pin<Box<dyn Future<Output = Option<Vec<Delivery>>> + Send>>;
/// The topic, and what the brokers said.
type Asked = (u16, Result<Metadata, Code>);

/// The state of the task.
pub(crate) struct Work {
    pub(crate) config: Arc<Config>,
    pub(crate) setup: Setup,
    pub(crate) feed: Feed,
    pub(crate) refuser: Refuser,
    pub(crate) producer: Producer,
    pub(crate) ring: Arc<Notify>,
    pub(crate) writer: Writer,
    pub(crate) flights: Flights,
    pub(crate) topics: Topics,
    /// Flights with rows that nobody has seen yet, and the first of these.
    pub(crate) waiting: VecDeque<(u32, u32, u32)>,
    /// Records in librdkafka.
    pub(crate) under_way: usize,
    pub(crate) in_flight_max: usize,
    /// librdkafka has no room until it reports something.
    pub(crate) is_full: bool,
    /// The producer is of no use any more.
    pub(crate) is_broken: bool,
    pub(crate) refusals: Vec<Refusal>,
    pub(crate) asking: Option<JoinHandle<Asked>>,
    pub(crate) to_ask: VecDeque<u16>,
    pub(crate) refresh_at: Option<Instant>,
    /// Failures of brokers since something was delivered.
    pub(crate) failures: Failures,
    pub(crate) failing: bool,
    pub(crate) seed: u64,
    taking: Option<Taking>,
    ended: bool,
}

/// What there was to do.
enum Woken {
    Reports,
    Answer(Box<Asked>),
    Time,
    Taken(Option<Vec<Delivery>>),
    Flushed,
}

impl Work {
    pub(crate) fn new(setup: Setup, feed: Feed) -> Result<Self, String> {
        let config = Arc::clone(&setup.config);
        let limits = *feed.queue.limits();
        let ring = Arc::new(Notify::new());
        let producer = setup.producer(&limits, &ring)?;
        let refresh = config.metadata.refresh_frequency;
        Ok(Self {
            refuser: Refuser::new("kafka", &feed),
            writer: setup.writer(),
            seed: feed.clock.wall().0 as u64,
            producer,
            ring,
            flights: Flights::default(),
            topics: Topics::default(),
            waiting: VecDeque::new(),
            under_way: 0,
            in_flight_max: config.in_flight_max(),
            is_full: false,
            is_broken: false,
            refusals: Vec::new(),
            asking: None,
            to_ask: VecDeque::new(),
            refresh_at: (!refresh.is_zero()).then(|| Instant::now() + refresh),
            failures: Failures::default(),
            failing: false,
            taking: None,
            ended: false,
            config,
            setup,
            feed,
        })
    }

    /// Until the queue ends and everything has its verdict.
    pub(crate) async fn run(mut self) {
        loop {
            self.reports();
            self.mend();
            let has_more = self.advance();
            if !self.refusals.is_empty() {
                let refusals = std::mem::take(&mut self.refusals);
                self.refuser.settle(refusals).await;
                continue;
            }
            if self.ended && self.flights.is_empty() {
                return;
            }
            if has_more {
                // There was a step's worth of events; others want to run too.
                tokio::task::yield_now().await;
                continue;
            }
            match self.wait().await {
                Woken::Reports | Woken::Time | Woken::Flushed => {}
                Woken::Answer(answer) => {
                    self.asking = None;
                    self.answered(answer.0, answer.1);
                }
                Woken::Taken(Some(deliveries)) => {
                    self.taking = None;
                    self.feed.metrics.batches.add(1);
                    for delivery in deliveries {
                        let waiting = &mut self.waiting;
                        self.flights.add(delivery, &mut |flight, rows| {
                            waiting.push_back((flight, 0, rows));
                        });
                    }
                }
                Woken::Taken(None) => {
                    self.taking = None;
                    self.ended = true;
                }
            }
        }
    }

    pub(crate) fn has_room(&self) -> bool {
        !self.is_full && !self.is_broken && self.under_way < self.in_flight_max
    }

    async fn wait(&mut self) -> Woken {
        let deadline = self.deadline();
        let wants_more = !self.ended && self.waiting.is_empty() && self.has_room();
        if wants_more && self.taking.is_none() {
            let limits = TakeLimits { events: self.config.bulk_max_size, bytes: TAKE_BYTES_MAX };
            self.taking = Some(Box::pin(take(self.feed.queue.clone(), limits)));
        }
        let producer = &self.producer;
        let flush = async {
            let producer = producer.clone();
            // A panic there is one of librdkafka's and ends the program anyway.
            drop(tokio::task::spawn_blocking(move || producer.flush(FLUSH)).await);
        };
        tokio::select! {
            biased;
            () = self.ring.notified() => Woken::Reports,
            answer = wait_for(&mut self.asking) => Woken::Answer(Box::new(answer)),
            () = sleep_until(deadline) => Woken::Time,
            taken = wait_for_more(&mut self.taking), if wants_more => Woken::Taken(taken),
            () = flush, if self.ended && self.under_way > 0 => Woken::Flushed,
        }
    }

    /// Takes what librdkafka has to tell, and gives what was delivered its verdict.
    pub(crate) fn reports(&mut self) {
        let producer = self.producer.clone();
        let mut lost = Vec::new();
        let before = self.under_way;
        producer.poll(&mut |report| match report {
            Report::Delivered(number) => {
                let (flight, topic, _) = parts_of(number);
                self.flights.delivered(flight);
                self.landed(topic);
            }
            Report::Failed { number, code, partition } => lost.push((number, code, partition)),
            Report::Error(code, text) => self.tell_error(code, text),
            Report::Log(level, about, text) => tell_log(level, about, text),
        });
        if before == self.under_way && lost.is_empty() {
            return;
        }
        self.is_full = false;
        let count = self.flights.settle();
        self.feed.metrics.acked.add(count);
        if count > 0 && self.failing {
            self.failing = false;
            let failures = self.failures.clear();
            if failures > 0 {
                tracing::info!(failures, "events are delivered to Kafka again");
            }
        }
        for (number, code, partition) in lost {
            self.came_back(number, code, partition);
        }
    }

    /// A record is not in librdkafka any more.
    #[inline]
    fn landed(&mut self, number: u16) {
        self.under_way -= 1;
        self.feed.metrics.active.sub(1);
        let topic = self.topics.get(number);
        topic.under_way -= 1;
    }

    fn came_back(&mut self, number: u64, code: Code, partition: i32) {
        let (flight, topic, row) = parts_of(number);
        self.landed(topic);
        self.feed.metrics.failed.add(1);
        let item = Item { flight, row, partition, group: 0 };
        self.failed(topic, item, code);
    }

    /// A record that was not delivered: it waits at its topic, or is refused.
    pub(crate) fn failed(&mut self, number: u16, mut item: Item, code: Code) {
        let meaning = codes::meaning(code);
        let topic = self.topics.get(number);
        item.group = 0;
        match meaning {
            Meaning::Refused => return self.refuse(item, code),
            Meaning::Suspect if topic.probing == 1 => return self.refuse(item, code),
            Meaning::Suspect if topic.probing > 1 => item.group = topic.probing / 2,
            Meaning::Suspect => item.group = u32::MAX,
            Meaning::Again => topic.wants_pause = true,
            Meaning::Broken => {
                topic.wants_pause = true;
                self.is_broken = true;
            }
            Meaning::AtOnce => {}
        }
        topic.hold = Hold::Draining;
        topic.parked.push_back(item);
        if let Some(times) = topic.failures.add() {
            let (topic, advice) = (&*topic.name, codes::advice(code));
            tracing::warn!(topic, error = %code, times, advice, "events came back; sending them again");
        }
        self.topics.busy.insert(number);
    }

    pub(crate) fn refuse(&mut self, item: Item, code: Code) {
        let refusal = self.flights.refuse(item, code.0, code.to_string());
        self.refusals.push(refusal);
    }

    /// Hands a record over; says whether librdkafka had room for it.
    pub(crate) fn send(&mut self, number: u16, item: Item) -> bool {
        let (delivery, row) = self.flights.origin(item);
        let event = delivery.batch.event(row as usize);
        let Writer { codec, key, key_text, value, .. } = &mut self.writer;
        value.clear();
        if let Err(error) = codec.write(value, &delivery.batch, row as usize) {
            self.refusals.push(self.flights.refuse(item, 0, error.to_string()));
            return true;
        }
        key_text.clear();
        // As in Filebeat, a key whose field is missing is no key.
        let has_key = key.as_ref().is_some_and(|key| key.write(key_text, event).is_ok());
        let key = has_key.then_some(&key_text[..]);
        let size = value.len() + key.map_or(0, <[u8]>::len);
        if size > self.config.max_message_bytes {
            let limit = self.config.max_message_bytes;
            let reason = format!("it has {size} bytes, and `max_message_bytes` is {limit}");
            self.refusals.push(self.flights.refuse(item, codes::MESSAGE_TOO_LARGE.0, reason));
            return true;
        }
        let topic = self.topics.get(number);
        let partition = if topic.partitions.binary_search(&item.partition).is_ok() {
            item.partition
        } else {
            let strategy: &Strategy = &self.config.partitioning.strategy;
            match topic.chooser.choose(strategy, key, event, topic.partitions.len()) {
                Ok(place) => topic.partitions[place],
                Err(field) => {
                    let reason = format!("the field `{field}` of `partition.hash` has no hash");
                    self.refusals.push(self.flights.refuse(item, 0, reason));
                    return true;
                }
            }
        };
        let timestamp = if self.setup.timestamps { event.row().time.max(0) / 1_000_000 } else { 0 };
        let record = crate::native::Record {
            partition,
            key,
            value,
            timestamp,
            number: number_of(item, number),
        };
        match self.producer.send(&topic.native, record) {
            Ok(()) => {
                topic.used = true;
                topic.under_way += 1;
                self.under_way += 1;
                self.feed.metrics.total.add(1);
                // Before they are compressed: librdkafka has no count at hand.
                self.feed.metrics.write_bytes.add(size as u64);
                self.feed.metrics.active.add(1);
                true
            }
            Err(codes::QUEUE_FULL) => {
                self.is_full = true;
                false
            }
            Err(code) => {
                self.failed(number, Item { partition, ..item }, code);
                true
            }
        }
    }

    /// The rows that nobody has seen yet, a step's worth; says whether there may be more.
    pub(crate) fn begin_rows(&mut self) -> bool {
        let mut step = STEP;
        while step > 0 && self.has_room() {
            let Some(&mut (flight, ref mut next, rows)) = self.waiting.front_mut() else {
                return false;
            };
            let item = Item { flight, row: *next as u16, partition: -1, group: 0 };
            *next += 1;
            let is_last = *next == rows;
            step -= 1;
            if !self.begin(item) {
                // Another time.
                if let Some((_, next, _)) = self.waiting.front_mut() {
                    *next -= 1;
                }
                return false;
            }
            if is_last {
                self.waiting.pop_front();
            }
        }
        step == 0
    }

    /// Finds an item's topic and sends it, or lets it wait there. `false`: there is no room.
    fn begin(&mut self, item: Item) -> bool {
        let (delivery, row) = self.flights.origin(item);
        let event = delivery.batch.event(row as usize);
        let Writer { selector, topic_text, .. } = &mut self.writer;
        if let Err(error) = selector.select(event, topic_text) {
            self.refusals.push(self.flights.refuse(item, 0, error.to_string()));
            return true;
        }
        let name = std::str::from_utf8(topic_text).expect("names of topics are ASCII");
        let number = match self.topics.find(name) {
            Some(number) => number,
            None => {
                let name = name.to_owned();
                let Some(number) = self.add_topic(&name) else { return false };
                number
            }
        };
        let topic = self.topics.get(number);
        if topic.hold == Hold::No && topic.parked.is_empty() {
            return self.send(number, item);
        }
        topic.parked.push_back(item);
        true
    }

    fn tell_error(&mut self, code: Code, text: &str) {
        self.feed.metrics.write_errors.add(1);
        self.failing = true;
        if let Some(failures) = self.failures.add() {
            let advice = codes::advice(code);
            tracing::error!(error = %code, text, failures, advice, "trouble with Kafka; trying again");
        }
    }

    /// With another producer, if this one is of no use and has given everything back.
    fn mend(&mut self) {
        if !self.is_broken || self.under_way > 0 || self.asking.is_some() {
            return;
        }
        match self.setup.producer(self.feed.queue.limits(), &self.ring) {
            Ok(producer) => {
                self.producer = producer;
                self.is_broken = false;
                let producer = &self.producer;
                for (_, topic) in self.topics.iter() {
                    if let Some(native) = producer.topic(&topic.name) {
                        topic.native = native;
                    }
                }
                tracing::warn!("began anew with Kafka; events may come twice");
            }
            Err(error) => tracing::error!(error, "cannot begin anew with Kafka"),
        }
    }
}

async fn take(queue: Queue, limits: TakeLimits) -> Option<Vec<Delivery>> {
    let mut taken = Vec::new();
    queue.take(limits, &mut taken).await.then_some(taken)
}

async fn wait_for(asking: &mut Option<JoinHandle<Asked>>) -> Asked {
    match asking {
        Some(answer) => match answer.await {
            Ok(answer) => answer,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            // The runtime ends.
            Err(_) => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}

async fn wait_for_more(taking: &mut Option<Taking>) -> Option<Vec<Delivery>> {
    match taking {
        Some(taking) => taking.await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// librdkafka's words, at the level of syslog that it gives them. What goes wrong comes as an error too.
fn tell_log(level: i32, about: &str, text: &str) {
    match level {
        0..=3 => tracing::warn!(about, text, "librdkafka"),
        4 | 5 => tracing::info!(about, text, "librdkafka"),
        _ => tracing::debug!(about, text, "librdkafka"),
    }
}
