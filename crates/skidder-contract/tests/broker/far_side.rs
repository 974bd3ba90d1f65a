//! A simulated broker of messages: it keeps each until it is acknowledged, sends again what was rejected or took too long,
//! and has one consumer at a time. One that joins takes over; what the one before says counts no more.

use skidder_testkit::Random;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::Notify;

/// Outputs that the consumer feeds.
pub(crate) const OUTPUTS: usize = 2;

/// Lines of a message.
const LINES_MAX: u64 = 4;

/// A message as a consumer gets it. Each time that it is handed over it has another tag.
#[derive(Clone, Debug)]
pub(crate) struct Handed {
    pub(crate) tag: u64,
    pub(crate) message: usize,
    pub(crate) lines: Vec<u64>,
}

/// Where a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Waiting,
    /// With the consumer, under this tag.
    Handed(u64),
    Acknowledged,
}

#[derive(Debug, Default)]
struct State {
    /// The lines of each message.
    messages: Vec<(Vec<u64>, Status)>,
    waiting: VecDeque<usize>,
    lines: u64,
    tag: u64,
    /// Which consumer it is that counts.
    epoch: u64,
    /// The message of each tag.
    handed: BTreeMap<u64, usize>,
    /// Lines of a tag that have a verdict, for each output.
    settled: [BTreeSet<(u64, u64)>; OUTPUTS],
    seen: Seen,
    broken: Option<String>,
}

/// What happened in a seed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// Messages handed over once more.
    pub(crate) again: u64,
    /// Answers that did not count: of a consumer that was fenced, or too late.
    pub(crate) refused: u64,
    pub(crate) rejected: u64,
    /// Messages that another program has taken.
    pub(crate) elsewhere: u64,
}

/// Cloning gives another handle to the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Broker(Arc<(Mutex<State>, Notify)>);

impl Broker {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap()
    }

    /// A producer sends some messages.
    pub(crate) fn produce(&self, random: &mut Random) {
        let mut state = self.lock();
        for _ in 0..=random.below(8) {
            let first = state.lines;
            state.lines += 1 + random.below(LINES_MAX);
            let (number, lines) = (state.messages.len(), (first..state.lines).collect());
            state.messages.push((lines, Status::Waiting));
            state.waiting.push_back(number);
        }
        drop(state);
        self.0.1.notify_waiters();
    }

    /// A consumer joins: the one before is fenced, and what it has is handed over again. Returns its epoch.
    pub(crate) fn join(&self) -> u64 {
        let mut state = self.lock();
        state.epoch += 1;
        let epoch = state.epoch;
        let handed: Vec<usize> = std::mem::take(&mut state.handed).into_values().collect();
        for message in handed {
            state.wait_again(message);
        }
        drop(state);
        self.0.1.notify_waiters();
        epoch
    }

    /// Another program joins, takes some messages, and has its own outputs for them.
    pub(crate) fn take_elsewhere(&self, random: &mut Random) {
        self.join();
        let mut state = self.lock();
        for _ in 0..random.below(4) {
            let Some(message) = state.waiting.pop_front() else { break };
            state.messages[message].1 = Status::Acknowledged;
            state.seen.elsewhere += 1;
        }
    }

    /// A message that was not acknowledged for too long is handed over again.
    pub(crate) fn expire(&self, random: &mut Random) {
        let mut state = self.lock();
        let count = state.handed.len() as u64;
        if count == 0 {
            return;
        }
        let at = random.below(count) as usize;
        let tag = *state.handed.keys().nth(at).unwrap();
        let message = state.handed.remove(&tag).unwrap();
        state.wait_again(message);
        drop(state);
        self.0.1.notify_waiters();
    }

    /// The next message for the consumer of an epoch; `None` if it is fenced.
    pub(crate) async fn fetch(&self, epoch: u64) -> Option<Handed> {
        loop {
            let more = self.0.1.notified();
            tokio::pin!(more);
            more.as_mut().enable();
            {
                let mut state = self.lock();
                if state.epoch != epoch {
                    return None;
                }
                if let Some(message) = state.waiting.pop_front() {
                    state.tag += 1;
                    let tag = state.tag;
                    state.handed.insert(tag, message);
                    state.messages[message].1 = Status::Handed(tag);
                    let lines = state.messages[message].0.clone();
                    return Some(Handed { tag, message, lines });
                }
            }
            more.await;
        }
    }

    /// The epoch and the tag under which a message is handed over now.
    pub(crate) fn now(&self, message: usize) -> Option<(u64, u64)> {
        let state = self.lock();
        match state.messages[message].1 {
            Status::Handed(tag) => Some((state.epoch, tag)),
            _ => None,
        }
    }

    /// Acknowledges what was handed over.
    pub(crate) fn acknowledge(&self, epoch: u64, tag: u64) {
        let mut state = self.lock();
        let Some(message) = state.answered(epoch, tag) else { return };
        let State { settled, messages, broken, .. } = &mut *state;
        messages[message].1 = Status::Acknowledged;
        for (output, settled) in settled.iter().enumerate() {
            let open = messages[message].0.iter().find(|line| !settled.contains(&(tag, **line)));
            if let Some(line) = open {
                *broken = Some(format!(
                    "{tag} is acknowledged, output {output} has no verdict for {line}"
                ));
            }
        }
    }

    /// Rejects what was handed over.
    pub(crate) fn reject(&self, epoch: u64, tag: u64) {
        let mut state = self.lock();
        let Some(message) = state.answered(epoch, tag) else { return };
        state.seen.rejected += 1;
        state.wait_again(message);
        drop(state);
        self.0.1.notify_waiters();
    }

    /// A line gets its verdict from an output.
    pub(crate) fn settle(&self, output: usize, tag: u64, line: u64) {
        let mut state = self.lock();
        if !state.settled[output].insert((tag, line)) {
            state.broken = Some(format!("line {line} of {tag} came twice to output {output}"));
        }
    }

    /// What is wrong so far.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.lock().broken.take().map_or(Ok(()), Err)
    }

    /// A message that is not acknowledged.
    pub(crate) fn open(&self) -> Option<usize> {
        let state = self.lock();
        state.messages.iter().position(|(_, status)| *status != Status::Acknowledged)
    }

    /// How far everything is: changes whenever something happens.
    pub(crate) fn progress(&self) -> (u64, usize) {
        let state = self.lock();
        (state.tag, state.settled.iter().map(BTreeSet::len).sum())
    }

    pub(crate) fn seen(&self) -> Seen {
        self.lock().seen
    }
}

impl State {
    fn wait_again(&mut self, message: usize) {
        self.messages[message].1 = Status::Waiting;
        self.waiting.push_front(message);
        self.seen.again += 1;
    }

    /// The message that an answer is about; `None` if it does not count.
    fn answered(&mut self, epoch: u64, tag: u64) -> Option<usize> {
        let message = self.handed.remove(&tag).filter(|_| epoch == self.epoch);
        self.seen.refused += u64::from(message.is_none());
        message
    }
}
