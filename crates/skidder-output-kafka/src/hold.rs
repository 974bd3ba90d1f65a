//! Waiting: topics whose partitions are not known, and lanes whose batches came back.

use crate::codes::Code;
use crate::flights::Item;
use crate::lane::Hold;
use crate::messages::{Metadata, TopicState};
use crate::partition::Chooser;
use crate::send::Broker;
use crate::topics::{self, Topic};
use crate::work::Work;
use skidder_outputs::Failures;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use tokio::time::Instant;

/// Topics in one request.
const TOPICS_PER_REQUEST: usize = 1000;

impl Work {
    /// Does what can be done without waiting.
    pub(crate) fn advance(&mut self, now: Instant) {
        if let Some((numbers, answer)) = self.asking.found.take() {
            match answer {
                Ok(found) => self.learn(&numbers, found),
                Err(error) => {
                    let hosts = self.config.hosts.join(", ");
                    self.report_trouble(&hosts, &error);
                    for number in numbers {
                        self.not_known(number, None);
                    }
                }
            }
        }
        self.know_myself(now);
        self.refresh(now);
        for number in self.topics.busy.iter().copied().collect::<Vec<u16>>() {
            self.advance_topic(number, now);
        }
        for slot in self.active.iter().copied().collect::<Vec<u32>>() {
            self.advance_lane(slot, now);
        }
        self.ask();
    }

    /// The next time at which there is something to do.
    pub(crate) fn deadline(&mut self, now: Instant) -> Option<Instant> {
        let mut next = self.refresh_at;
        let mut add = |at: Instant| next = Some(next.map_or(at, |next: Instant| next.min(at)));
        for number in &self.topics.busy {
            if let Some(Hold::Until(at)) = self.topics.peek(*number).map(|topic| topic.hold) {
                add(at);
            }
        }
        for slot in &self.active {
            let Some(lane) = &self.lanes[*slot as usize] else { continue };
            match (lane.hold, lane.since) {
                (Hold::Until(at), _) => add(at),
                (Hold::No, Some(since)) => {
                    // A due batch that cannot be sent waits for an event of a link.
                    let at = since + self.config.bulk_flush_frequency;
                    if at > now {
                        add(at);
                    }
                }
                _ => {}
            }
        }
        if let Some(at) = self.producer.as_ref().and_then(|producer| producer.ask_at) {
            add(at);
        }
        next
    }

    fn advance_topic(&mut self, number: u16, now: Instant) {
        let topic = self.topics.get(number);
        if let Hold::Until(at) = topic.hold
            && at <= now
        {
            topic.hold = Hold::Asking;
            self.to_ask.insert(number);
        }
        while self.has_room() {
            let topic = self.topics.get(number);
            if topic.hold != Hold::No {
                return;
            }
            let Some(item) = topic.parked.pop_front() else {
                self.topics.busy.remove(&number);
                return;
            };
            let row = u32::from(item.row);
            self.place(number, item.flight, row..row + 1, now);
        }
    }

    fn advance_lane(&mut self, slot: u32, now: Instant) {
        let lane = self.lane(slot);
        if let Hold::Until(at) = lane.hold
            && at <= now
        {
            lane.hold = Hold::Asking;
            let topic = lane.topic;
            self.to_ask.insert(topic);
        }
        let lane = self.lane(slot);
        if lane.hold == Hold::No && lane.has_waiting() {
            self.unpark(slot, now);
        }
        if self.lane(slot).is_idle() {
            self.active.remove(&slot);
        }
    }

    /// A topic that was not used before. `None`: too many are in use.
    pub(crate) fn add_topic(&mut self, name: &str) -> Option<u16> {
        if self.topics.is_full() {
            self.forget(|_| true);
        }
        let backoff = self.backoff();
        self.topics.add(Topic {
            name: name.into(),
            lanes: BTreeMap::new(),
            usable: Vec::new(),
            chooser: Chooser::new(self.seed),
            hold: Hold::Until(Instant::now()),
            parked: VecDeque::new(),
            tries: 0,
            backoff,
            failures: Failures::default(),
            used: true,
        })
    }

    /// Forgets topics that have nothing and that are meant.
    fn forget(&mut self, meant: impl Fn(&Topic) -> bool) {
        let (lanes, to_ask) = (&self.lanes, &self.to_ask);
        let is_idle = |slot: &u32| {
            let lane = lanes[*slot as usize].as_ref();
            lane.is_none_or(|lane| lane.is_idle()) && !self.active.contains(slot)
        };
        let gone = self.topics.iter().filter(|(number, topic)| {
            let rests = topic.hold != Hold::Asking && topic.parked.is_empty();
            rests && !to_ask.contains(number) && meant(topic) && topic.lanes.values().all(is_idle)
        });
        for number in gone.map(|(number, _)| number).collect::<Vec<u16>>() {
            self.last_topic.take_if(|last| *last == number);
            for slot in self.topics.remove(number).into_iter().flat_map(|topic| topic.lanes) {
                self.lanes[slot.1 as usize] = None;
                self.free_lanes.push(slot.1);
            }
        }
    }

    /// Asks the brokers about topics, some at a time.
    fn ask(&mut self) {
        if self.asking.is_about_topics() {
            return;
        }
        let mut names = Vec::new();
        while let Some(number) = self.to_ask.pop_first() {
            if let Some(topic) = self.topics.peek(number) {
                names.push((number, topic.name.to_string()));
            }
            if names.len() == TOPICS_PER_REQUEST {
                break;
            }
        }
        if !names.is_empty() {
            let (nodes, full) = (self.nodes(), self.config.metadata.full);
            self.asking.ask_topics(&self.links.dialer, nodes, names, full);
        }
    }

    /// Nodes to ask, in this order: connected brokers, those of `hosts`, other known brokers.
    fn nodes(&mut self) -> Vec<String> {
        let seed = self.next_seed();
        let hosts = &self.config.hosts;
        let first = (seed >> 33) as usize % hosts.len();
        let hosts = hosts[first..].iter().chain(&hosts[..first]);
        let known = |up: bool| {
            let brokers = self.brokers.values().filter(move |broker| broker.is_up() == up);
            brokers.map(|broker| &broker.node)
        };
        let mut nodes: Vec<String> = Vec::new();
        for node in known(true).chain(hosts).chain(known(false)) {
            if !nodes.contains(node) {
                nodes.push(node.clone());
            }
        }
        nodes
    }

    /// Applies the brokers' metadata.
    fn learn(&mut self, numbers: &[u16], mut found: Metadata) {
        for (id, node) in &found.brokers {
            if let Some(broker) = self.brokers.get_mut(id) {
                broker.node.clone_from(node);
            } else {
                let backoff = self.backoff();
                self.brokers.insert(*id, Broker::new(node.clone(), backoff));
            }
        }
        self.brokers.retain(|id, broker| found.brokers.contains_key(id) || broker.has_link());
        for number in numbers {
            let Some(topic) = self.topics.peek(*number) else { continue };
            let state = found.topics.remove(&*topic.name);
            match state.ok_or(Code::UNKNOWN_TOPIC).and_then(|state| self.apply(*number, state)) {
                Ok(()) => {}
                Err(Code::INVALID_TOPIC) => self.is_invalid(*number),
                Err(code) => self.not_known(*number, Some(code)),
            }
        }
        for (name, state) in found.topics {
            if let Some(number) = self.topics.find(&name) {
                // The request was not about this one: its known state still holds.
                if let Err(error) = self.apply(number, state) {
                    tracing::debug!(topic = name, %error, "a topic that nobody asked about");
                }
            }
        }
    }

    /// The partitions of a topic are these.
    fn apply(&mut self, number: u16, state: TopicState) -> Result<(), Code> {
        let usable = topics::usable(&state, self.config.partitioning.reachable_only)?;
        let now = Instant::now();
        for partition in &state.partitions {
            let known = self.topics.get(number).lanes.get(&partition.id).copied();
            let slot = known.unwrap_or_else(|| self.add_lane(number, partition.id));
            self.topics.get(number).lanes.insert(partition.id, slot);
            let lane = self.lane(slot);
            lane.leader = partition.leader;
            if lane.hold == Hold::Asking {
                lane.hold = if partition.leader >= 0 {
                    Hold::No
                } else {
                    Hold::Until(now + lane.backoff.next_wait())
                };
            }
        }
        let topic = self.topics.get(number);
        topic.usable = usable.iter().map(|partition| topic.lanes[partition]).collect();
        topic.tries = 0;
        if topic.hold != Hold::No {
            topic.hold = Hold::No;
            topic.failures.clear();
            topic.backoff.reset();
        }
        let exists = |id: &i32| state.partitions.iter().any(|partition| partition.id == *id);
        let gone: Vec<(u32, bool)> = topic
            .lanes
            .iter()
            .filter(|(partition, _)| usable.binary_search(partition).is_err())
            .map(|(partition, slot)| (*slot, exists(partition)))
            .collect();
        self.evacuate(number, &gone);
        Ok(())
    }

    /// Events that wait for partitions which are not to be used choose again. With each lane comes whether its partition
    /// is still there.
    fn evacuate(&mut self, number: u16, gone: &[(u32, bool)]) {
        let buffers = self.links.buffers.clone();
        let mut items: Vec<Item> = Vec::new();
        for (slot, exists) in gone {
            let lane = self.lanes[*slot as usize].as_mut().expect("its topic has it");
            if lane.hold == Hold::Asking {
                // It was not among the answers, and may come back.
                lane.hold = Hold::Until(Instant::now() + lane.backoff.next_wait());
            }
            if let Some((moved, load)) = lane.evacuate(*exists, &mut |buffer| buffers.put(buffer)) {
                items.extend(moved);
                self.load.records -= load.records;
                self.load.bytes -= load.bytes;
            }
        }
        if items.is_empty() {
            return;
        }
        let topic = self.topics.get(number);
        items.extend(topic.parked.drain(..));
        items.sort_by_key(|item| self.flights.order(*item));
        self.topics.get(number).parked = items.into();
        self.topics.busy.insert(number);
    }

    /// No broker will ever take this topic's name.
    fn is_invalid(&mut self, number: u16) {
        let at = Instant::now() + self.config.backoff_max;
        self.hold_asking(number, at);
        self.topics.busy.insert(number);
        for item in std::mem::take(&mut self.topics.get(number).parked) {
            self.refuse(item, Code::INVALID_TOPIC, Code::INVALID_TOPIC.to_string());
        }
    }

    /// Makes everything that waits for this topic's metadata retry at this time; returns how many events that are.
    fn hold_asking(&mut self, number: u16, at: Instant) -> usize {
        let topic = self.topics.get(number);
        if topic.hold == Hold::Asking {
            topic.hold = Hold::Until(at);
        }
        let mut waiting = topic.parked.len();
        for slot in topic.lanes.values() {
            let Some(lane) = self.lanes[*slot as usize].as_mut() else { continue };
            if lane.hold == Hold::Asking {
                lane.hold = Hold::Until(at);
                waiting += lane.waiting();
            }
        }
        waiting
    }

    /// The brokers did not return where a topic is; `code` is their error.
    fn not_known(&mut self, number: u16, code: Option<Code>) {
        let metadata = self.config.metadata;
        let Some(topic) = self.topics.try_get(number) else { return };
        if let Some(code) = &code {
            let place = format_args!("topic `{}`", topic.name);
            self.feed.metrics.write_error_with(place, code, Some(code.advice()));
        }
        topic.tries += 1;
        let wait = if topic.tries <= metadata.retry_max {
            metadata.retry_backoff.max(Duration::from_millis(1))
        } else {
            topic.backoff.next_wait()
        };
        let waiting = self.hold_asking(number, Instant::now() + wait);
        let topic = self.topics.get(number);
        // A topic that is being created has no leader for a moment.
        if let Some(code) = code
            && topic.tries > metadata.retry_max
            && let Some(times) = topic.failures.add()
        {
            let (name, advice) = (&*topic.name, code.advice());
            tracing::error!(
                topic = name, error = %code, times, waiting, advice,
                "cannot learn where events of a topic go; trying again"
            );
        }
    }

    /// Asks again about topics that are in use, as often as configured; forgets the others.
    fn refresh(&mut self, now: Instant) {
        if self.refresh_at.is_none_or(|at| at > now) {
            return;
        }
        self.refresh_at = Some(now + self.config.metadata.refresh_frequency);
        self.forget(|topic| !topic.used);
        for (number, topic) in self.topics.iter_mut() {
            topic.used = !topic.parked.is_empty();
            if topic.hold == Hold::No {
                self.to_ask.insert(number);
            }
        }
    }

    /// Gets an identity, if one is needed.
    fn know_myself(&mut self, now: Instant) {
        let known = self.asking.known.take();
        match known {
            Some(Ok(identity)) => {
                if let Some(producer) = &mut self.producer {
                    producer.identity = Some(identity);
                    producer.backoff.reset();
                }
            }
            Some(Err(error)) => {
                let hosts = self.config.hosts.join(", ");
                self.report_trouble(&hosts, &error);
                if let Some(producer) = &mut self.producer {
                    producer.ask_at = Some(now + producer.backoff.next_wait());
                }
            }
            None => {}
        }
        let is_asking = self.asking.is_about_identity();
        let Some(producer) = &mut self.producer else { return };
        if producer.ask_at.is_some_and(|at| at <= now) && !is_asking {
            producer.ask_at = None;
            let nodes = self.nodes();
            self.asking.ask_identity(&self.links.dialer, nodes);
        }
    }
}
