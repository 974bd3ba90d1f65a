//! The one task of the output: takes events, writes each as a record into the batch of its partition, and gives it its
//! verdict when the brokers have answered.
//!
//! Writing is in `fill.rs`, sending in `send.rs`, waiting in `hold.rs`, requests for metadata in `ask.rs`.

use crate::ask::Asking;
use crate::buffers::Buffers;
use crate::codes::Code;
use crate::config::Config;
use crate::flights::{Flights, Item};
use crate::lane::{Lane, Load};
use crate::link::{LinkMessage, Links};
use crate::messages::Identity;
use crate::record::Records;
use crate::send::Broker;
use crate::setup::Setup;
use crate::topics::Topics;
use skidder_event::{EventRef, Format, FormatError};
use skidder_os::Clock;
use skidder_outputs::{Backoff, Codec, Failures, Refusal, Refuser};
use skidder_pipeline::{Delivery, Feed, Queue, TakeLimits};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::Instant;

/// Most bytes of messages that are taken from the queue at once.
const TAKE_BYTES_MAX: usize = 8 << 20;
/// Encodes events as records.
pub(crate) struct Writer {
    pub(crate) codec: Codec,
    pub(crate) key: Option<Format>,
    /// `topic` and `topics`, bound.
    pub(crate) selector: crate::selector::Topics,
    /// Whether records have the time of their event.
    pub(crate) timestamps: bool,
    /// The end of each record.
    pub(crate) headers: Vec<u8>,
    pub(crate) topic_text: Vec<u8>,
    pub(crate) key_text: Vec<u8>,
    pub(crate) has_key: bool,
}

impl Writer {
    /// Makes the key of an event. As in Filebeat, one whose field is missing is no key.
    #[inline]
    pub(crate) fn make_key(&mut self, event: EventRef<'_>) {
        let Some(key) = &self.key else { return };
        self.key_text.clear();
        self.has_key = key.write(&mut self.key_text, event).is_ok();
    }

    pub(crate) fn key(&self) -> Option<&[u8]> {
        self.has_key.then_some(&self.key_text[..])
    }

    /// Appends an event, whose key was made; gives the size of key and value.
    #[inline]
    pub(crate) fn write(
        &mut self,
        records: &mut Records,
        delivery: &Delivery,
        row: u32,
        clock: &dyn Clock,
    ) -> Result<usize, FormatError> {
        let time = delivery.batch.event(row as usize).row().time;
        // Without a time of its own, it has that of its sending.
        let time = if self.timestamps && time > 0 { time } else { clock.wall().0 } / 1_000_000;
        let key = self.has_key.then_some(&self.key_text[..]);
        let codec = &mut self.codec;
        records
            .push(time, key, &self.headers, |out| codec.write(out, &delivery.batch, row as usize))
    }
}

type Taking = Pin<Box<dyn Future<Output = Option<Vec<Delivery>>> + Send>>;

/// The identity of this producer, with idempotence.
pub(crate) struct Producer {
    pub(crate) identity: Option<Identity>,
    /// Grows with each identity.
    pub(crate) generation: u32,
    /// When to ask again.
    pub(crate) ask_at: Option<Instant>,
    pub(crate) backoff: Backoff,
}

/// The state of the task.
pub(crate) struct Work {
    pub(crate) config: Arc<Config>,
    pub(crate) feed: Feed,
    pub(crate) refuser: Refuser,
    pub(crate) links: Links,
    pub(crate) link_messages: UnboundedReceiver<LinkMessage>,
    pub(crate) writer: Writer,
    pub(crate) flights: Flights,
    pub(crate) topics: Topics,
    /// The topic of the last event.
    pub(crate) last_topic: Option<u16>,
    /// Whether that is the one of all events.
    pub(crate) has_one_topic: bool,
    pub(crate) lanes: Vec<Option<Lane>>,
    pub(crate) free_lanes: Vec<u32>,
    /// Lanes that are not idle.
    pub(crate) active: BTreeSet<u32>,
    pub(crate) brokers: BTreeMap<i32, Broker>,
    /// Links that were made.
    pub(crate) links_made: u64,
    /// The lane that the next request begins with.
    pub(crate) turn: u32,
    /// Flights with rows that are still untouched, and the first of these.
    pub(crate) waiting: VecDeque<(u32, u32, u32)>,
    pub(crate) load: Load,
    pub(crate) load_max: Load,
    pub(crate) refusals: Vec<Refusal>,
    pub(crate) producer: Option<Producer>,
    pub(crate) asking: Asking,
    /// Topics to request metadata of.
    pub(crate) to_ask: BTreeSet<u16>,
    pub(crate) refresh_at: Option<Instant>,
    /// Failures of brokers since something was delivered.
    pub(crate) failures: Failures,
    pub(crate) seed: u64,
    taking: Option<Taking>,
    pub(crate) ended: bool,
}

/// The reason for waking up.
enum Woken {
    LinkMessage(LinkMessage),
    Answered,
    Time,
    Taken(Option<Vec<Delivery>>),
}

impl Work {
    /// Must be called within a runtime.
    pub(crate) fn new(setup: Setup, feed: Feed) -> Self {
        let config = Arc::clone(&setup.config);
        let limits = *feed.queue.limits();
        let (sender, link_messages) = unbounded_channel();
        let refresh = config.metadata.refresh_frequency;
        let seed = feed.clock.wall().0 as u64;
        let producer = config.enable_idempotence.then(|| Producer {
            identity: None,
            generation: 0,
            ask_at: Some(Instant::now()),
            backoff: Backoff::new(config.backoff_init, config.backoff_max, seed),
        });
        let links = Links {
            dialer: Arc::clone(&setup.dialer),
            config: Arc::clone(&config),
            buffers: Buffers::default(),
            link_messages: sender,
        };
        Self {
            refuser: Refuser::new("kafka", &feed),
            writer: setup.writer(),
            links,
            link_messages,
            flights: Flights::default(),
            topics: Topics::default(),
            last_topic: None,
            has_one_topic: config.topics.constant().is_some(),
            lanes: Vec::new(),
            free_lanes: Vec::new(),
            active: BTreeSet::new(),
            brokers: BTreeMap::new(),
            links_made: 0,
            turn: 0,
            waiting: VecDeque::new(),
            load: Load::default(),
            load_max: config.load_max(&limits),
            refusals: Vec::new(),
            producer,
            asking: Asking::default(),
            to_ask: BTreeSet::new(),
            refresh_at: (!refresh.is_zero()).then(|| Instant::now() + refresh),
            failures: Failures::default(),
            seed,
            taking: None,
            ended: false,
            config,
            feed,
        }
    }

    /// Until the queue ends and everything has its verdict.
    pub(crate) async fn run(mut self) {
        loop {
            while let Ok(message) = self.link_messages.try_recv() {
                self.on_link_message(message);
            }
            self.give_verdicts();
            let now = Instant::now();
            self.advance(now);
            let has_more = self.begin_rows(now);
            self.send_all(now);
            if !self.refusals.is_empty() {
                let refusals = std::mem::take(&mut self.refusals);
                self.refuser.settle(refusals).await;
                continue;
            }
            if self.ended && self.flights.is_empty() {
                return self.close().await;
            }
            if has_more {
                // There was a step's worth of events; others want to run too.
                tokio::task::yield_now().await;
                continue;
            }
            match self.wait(now).await {
                Woken::LinkMessage(message) => self.on_link_message(message),
                Woken::Answered | Woken::Time => {}
                Woken::Taken(Some(deliveries)) => {
                    self.taking = None;
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
        self.load.is_within(&self.load_max)
    }

    async fn wait(&mut self, now: Instant) -> Woken {
        let deadline = self.deadline(now);
        let wants_more = !self.ended && self.waiting.is_empty() && self.has_room();
        if wants_more && self.taking.is_none() {
            let limits = TakeLimits { events: self.config.bulk_max_size, bytes: TAKE_BYTES_MAX };
            self.taking = Some(Box::pin(take(self.feed.queue.clone(), limits)));
        }
        let message = async {
            match self.link_messages.recv().await {
                Some(message) => message,
                // We hold a sender ourselves.
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            message = message => Woken::LinkMessage(message),
            () = self.asking.answered() => Woken::Answered,
            () = sleep_until(deadline) => Woken::Time,
            taken = wait_for_more(&mut self.taking), if wants_more => Woken::Taken(taken),
        }
    }

    /// Reports delivered rows to the queue.
    fn give_verdicts(&mut self) {
        let count = self.flights.settle();
        self.feed.metrics.acked.add(count);
        if count > 0 {
            let failures = self.failures.clear();
            if failures > 0 {
                tracing::info!(failures, "events are delivered to Kafka again");
            }
        }
    }

    pub(crate) fn refuse(&mut self, item: Item, code: Code, reason: String) {
        let refusal = self.flights.refuse(item, code.0, reason);
        self.refusals.push(refusal);
    }

    pub(crate) fn lane(&mut self, slot: u32) -> &mut Lane {
        self.lanes[slot as usize].as_mut().expect("a lane with records is not forgotten")
    }
}

async fn take(queue: Queue, limits: TakeLimits) -> Option<Vec<Delivery>> {
    let mut taken = Vec::new();
    queue.take(limits, &mut taken).await.then_some(taken)
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
