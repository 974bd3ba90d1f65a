//! What waits: topics whose partitions are not known, and records that came back.

use crate::codes;
use crate::flights::Item;
use crate::native::{Code, Metadata};
use crate::partition::Chooser;
use crate::topics::{self, Hold, Topic};
use crate::work::Work;
use skidder_outputs::{Backoff, Failures};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

impl Work {
    /// Does what can be done without waiting; says whether there is more.
    pub(crate) fn advance(&mut self) -> bool {
        let now = Instant::now();
        self.refresh(now);
        let busy: Vec<u16> = self.topics.busy.iter().copied().collect();
        for number in busy {
            self.advance_topic(number, now);
        }
        self.ask();
        self.begin_rows()
    }

    /// The next time at which there is something to do.
    pub(crate) fn deadline(&mut self) -> Option<Instant> {
        let mut next = self.refresh_at;
        let busy: Vec<u16> = self.topics.busy.iter().copied().collect();
        for number in busy {
            if let Hold::Until(at) = self.topics.get(number).hold {
                next = Some(next.map_or(at, |next| next.min(at)));
            }
        }
        next
    }

    fn advance_topic(&mut self, number: u16, now: Instant) {
        if self.topics.get(number).hold == Hold::Draining && self.topics.get(number).under_way == 0
        {
            self.drained(number, now);
        }
        let topic = self.topics.get(number);
        if let Hold::Until(at) = topic.hold
            && at <= now
        {
            topic.hold = Hold::Asking;
            self.to_ask.push_back(number);
        }
        if self.topics.get(number).hold == Hold::No {
            self.send_parked(number);
        }
        let topic = self.topics.get(number);
        if topic.hold == Hold::No && topic.parked.is_empty() {
            self.topics.busy.remove(&number);
        }
    }

    /// All that was under way at a topic has come back, some of it in vain.
    fn drained(&mut self, number: u16, now: Instant) {
        let topic = self.topics.get(number);
        topic.probing = 0;
        let mut parked = std::mem::take(&mut topic.parked);
        let wants_pause = std::mem::take(&mut topic.wants_pause);
        parked.make_contiguous().sort_by_key(|item| self.flights.order(*item));
        // Those of a batch came back together: half as many at once from now on.
        let new = parked.iter().filter(|item| item.group == u32::MAX).count() as u32;
        if new > 1 {
            self.feed.metrics.split.add(1);
        }
        for item in &mut parked {
            if item.group == u32::MAX {
                item.group = (new / 2).max(1);
            }
        }
        let topic = self.topics.get(number);
        topic.parked = parked;
        topic.hold =
            if wants_pause { Hold::Until(now + topic.backoff.next_wait()) } else { Hold::No };
    }

    /// Sends what waits at a topic, suspects in groups that go alone.
    fn send_parked(&mut self, number: u16) {
        while self.has_room() {
            let topic = self.topics.get(number);
            if topic.hold != Hold::No {
                return;
            }
            let Some(&first) = topic.parked.front() else { return };
            if first.group > 0 {
                if topic.under_way == 0 {
                    self.send_group(number, first.group);
                }
                // Otherwise when all is back.
                self.topics.get(number).hold = Hold::Draining;
                return;
            }
            topic.parked.pop_front();
            if !self.send(number, first) {
                self.topics.get(number).parked.push_front(first);
                return;
            }
        }
    }

    /// Sends the first suspects, at most so many as `group` says.
    fn send_group(&mut self, number: u16, group: u32) {
        let topic = self.topics.get(number);
        let count =
            topic.parked.iter().take(group as usize).take_while(|item| item.group > 0).count();
        let items: Vec<Item> = topic.parked.drain(..count).collect();
        topic.probing = count as u32;
        for (place, item) in items.iter().enumerate() {
            if !self.send(number, *item) {
                // The rest is a group of its own.
                let topic = self.topics.get(number);
                for item in items[place..].iter().rev() {
                    topic.parked.push_front(*item);
                }
                return;
            }
        }
    }

    /// A topic that was not used before. `None`: too many are in use.
    pub(crate) fn add_topic(&mut self, name: &str) -> Option<u16> {
        let native = self.producer.topic(name)?;
        self.seed = self.seed.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        let (init, max) = (self.config.backoff_init, self.config.backoff_max);
        self.topics.add(Topic {
            name: name.into(),
            native,
            partitions: Vec::new(),
            chooser: Chooser::new(self.seed),
            hold: Hold::Until(Instant::now()),
            parked: VecDeque::new(),
            under_way: 0,
            probing: 0,
            wants_pause: false,
            tries: 0,
            backoff: Backoff::new(init, max, self.seed),
            failures: Failures::default(),
            used: true,
        })
    }

    /// Asks the brokers about the next topic, one at a time.
    fn ask(&mut self) {
        if self.asking.is_some() || self.is_broken {
            return;
        }
        let (number, name) = loop {
            let Some(number) = self.to_ask.pop_front() else { return };
            if let Some(topic) = self.topics.try_get(number) {
                break (number, topic.name.clone());
            }
        };
        let (producer, config) = (self.producer.clone(), &self.config);
        let (full, timeout) = (config.metadata.full, config.timeout);
        self.asking = Some(tokio::task::spawn_blocking(move || {
            let topic = producer.topic(&name);
            let about = if full { None } else { topic.as_ref() };
            let mut answer = producer.metadata(about, timeout);
            let is_there = |found: &Metadata| found.topics.contains_key(&*name);
            if full && answer.as_ref().is_ok_and(|found| !is_there(found)) {
                // Nobody creates it when all are asked for.
                answer = producer.metadata(topic.as_ref(), timeout);
            }
            (number, answer)
        }));
    }

    /// What the brokers said about a topic.
    pub(crate) fn answered(&mut self, number: u16, answer: Result<Metadata, Code>) {
        let reachable_only = self.config.partitioning.reachable_only;
        let Some(topic) = self.topics.try_get(number) else { return };
        let name = topic.name.clone();
        let found = answer.and_then(|mut found| {
            let asked = found.topics.remove(&*name).ok_or(codes::UNKNOWN_TOPIC);
            for (name, state) in found.topics {
                if let Some(other) = self.topics.find(&name)
                    && let Ok(partitions) = topics::usable(&state, reachable_only)
                {
                    self.topics.get(other).partitions = partitions;
                }
            }
            topics::usable(&asked?, reachable_only)
        });
        match found {
            Ok(partitions) => {
                let topic = self.topics.get(number);
                topic.partitions = partitions;
                topic.tries = 0;
                if topic.hold == Hold::Asking {
                    topic.hold = Hold::No;
                    topic.failures.clear();
                }
            }
            Err(codes::INVALID_TOPIC) => {
                let parked = std::mem::take(&mut self.topics.get(number).parked);
                for item in parked {
                    self.refuse(item, codes::INVALID_TOPIC);
                }
                self.topics.get(number).hold =
                    Hold::Until(Instant::now() + self.config.backoff_max);
            }
            Err(code) => self.not_known(number, code),
        }
    }

    fn not_known(&mut self, number: u16, code: Code) {
        let metadata = self.config.metadata;
        self.feed.metrics.write_errors.add(1);
        let topic = self.topics.get(number);
        if topic.hold != Hold::Asking {
            // A refresh: what was known still holds.
            tracing::debug!(topic = &*topic.name, error = %code, "cannot refresh what is known of a topic");
            return;
        }
        topic.tries += 1;
        let wait = if topic.tries <= metadata.retry_max {
            metadata.retry_backoff.max(Duration::from_millis(1))
        } else {
            topic.backoff.next_wait()
        };
        topic.hold = Hold::Until(Instant::now() + wait);
        // A topic that is being created has no leader for a moment.
        if topic.tries > metadata.retry_max
            && let Some(times) = topic.failures.add()
        {
            let (name, waiting, advice) = (&*topic.name, topic.parked.len(), codes::advice(code));
            tracing::error!(
                topic = name, error = %code, times, waiting, advice,
                "cannot learn where events of a topic go; trying again"
            );
        }
    }

    /// Asks again about topics that are in use, as often as is wanted; forgets those that are not.
    fn refresh(&mut self, now: Instant) {
        if self.refresh_at.is_none_or(|at| at > now) {
            return;
        }
        self.refresh_at = Some(now + self.config.metadata.refresh_frequency);
        // Those that wait for the answer are not forgotten.
        let topics = &mut self.topics;
        self.to_ask.retain(|number| {
            topics.try_get(*number).is_some_and(|topic| topic.hold == Hold::Asking)
        });
        self.topics.forget(|topic| !topic.used);
        for (number, topic) in self.topics.iter() {
            topic.used = false;
            if topic.hold == Hold::No {
                self.to_ask.push_back(number);
            }
        }
    }
}
