//! An input that consumes from the broker, and what may be wrong with it.

use crate::far_side::{Broker, Handed};
use skidder_event::{Acknowledge, Acknowledgement, Batch, Map, Progress};
use skidder_input::{Input, InputFuture, Intake, Source};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// A bug of the consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    None,
    /// It acknowledges what it has read.
    Early,
    /// It acknowledges what its outputs cannot take.
    Polite,
    /// It passes over a message that it has had before.
    Forgets,
    /// It acknowledges under the epoch and the tag of now, also what an earlier one was handed.
    Reborn,
    /// It sends a message twice.
    Twice,
    /// It leaves out a line.
    Partial,
}

#[derive(Clone, Debug)]
pub(crate) struct Consumer {
    pub(crate) broker: Broker,
    pub(crate) bug: Bug,
    /// Messages that it has had, in any run.
    pub(crate) had: Arc<Mutex<BTreeSet<usize>>>,
}

#[derive(Debug)]
struct Receipt {
    of: Consumer,
    epoch: u64,
    tag: u64,
    message: usize,
}

impl Acknowledge for Receipt {
    fn accept(self: Box<Self>) {
        let Self { of, epoch, tag, message } = *self;
        let (epoch, tag) = match of.bug {
            Bug::Reborn => of.broker.now(message).unwrap_or((epoch, tag)),
            _ => (epoch, tag),
        };
        of.broker.acknowledge(epoch, tag);
    }

    fn reject(self: Box<Self>) {
        let Self { of, epoch, tag, .. } = *self;
        if of.bug == Bug::Polite {
            of.broker.acknowledge(epoch, tag);
        } else {
            of.broker.reject(epoch, tag);
        }
    }
}

impl Consumer {
    fn batch_of(&self, source: &mut Source, handed: &Handed) -> Batch {
        let mut batch = source.batch(Vec::new(), 0);
        let count = if self.bug == Bug::Partial { 3 } else { usize::MAX };
        for line in handed.lines.iter().take(count) {
            let text = batch.append(format!("{} {line}", handed.tag).as_bytes());
            source.push(&mut batch, text, 1, 0);
        }
        batch
    }
}

impl Input for Consumer {
    fn kind(&self) -> &'static str {
        "broker"
    }

    fn run(self: Box<Self>, intake: Intake) -> InputFuture {
        Box::pin(async move {
            let mut source = intake.open("queue", Map::new());
            let mut epoch = self.broker.join();
            loop {
                let handed = tokio::select! {
                    biased;
                    () = intake.stopped() => return Ok(()),
                    handed = self.broker.fetch(epoch) => handed,
                };
                let Some(handed) = handed else {
                    // Another consumer took over; this one joins again.
                    epoch = self.broker.join();
                    continue;
                };
                let is_new = self.had.lock().unwrap().insert(handed.message);
                if self.bug == Bug::Forgets && !is_new {
                    continue;
                }
                let (tag, message) = (handed.tag, handed.message);
                let receipt = Receipt { of: (*self).clone(), epoch, tag, message };
                let owed = Acknowledgement::new(receipt);
                if self.bug == Bug::Early {
                    self.broker.acknowledge(epoch, tag);
                }
                let bytes = handed.lines.len() as u64;
                let batch = self.batch_of(&mut source, &handed);
                if source.send(batch, Progress::Acknowledge(owed, bytes)).await.is_err() {
                    return Ok(());
                }
                if self.bug == Bug::Twice {
                    let batch = self.batch_of(&mut source, &handed);
                    if source.send(batch, Progress::Nothing(bytes)).await.is_err() {
                        return Ok(());
                    }
                }
            }
        })
    }
}
