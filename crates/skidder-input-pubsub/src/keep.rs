//! Tells the server what became of messages: acknowledges them, gives them back, and extends the deadlines of the others.

use crate::answers::{Fate, Meaning, meaning};
use crate::client::{AskError, Link};
use crate::leases::Named;
use crate::messages::{
    ACKNOWLEDGE, AcknowledgeRequest, Empty, MODIFY_ACK_DEADLINE, ModifyAckDeadlineRequest,
};
use crate::remedy::{Asked, text};
use crate::run::{DEADLINE, Run};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Messages of one call: the server takes 512 KiB, and an id has up to 176 bytes.
const CALL_MESSAGES_MAX: usize = 2500;
/// How long acknowledgements are gathered for one call.
const GATHER: Duration = Duration::from_millis(50);
/// Pause between two looks at what is to be said later, and at deadlines.
const TICK: Duration = Duration::from_millis(500);
/// When a deadline is extended: three times before it ends.
pub(crate) const EXTEND_AFTER: Duration = Duration::from_secs(DEADLINE.as_secs() / 3);
/// Pause after a deadline that was not extended.
const EXTEND_PAUSE: Duration = Duration::from_secs(3);
/// First pause after a call that failed; doubled with each that follows.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// The longest of these.
const PAUSE_MAX: Duration = Duration::from_mins(1);

/// What a call is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Acknowledge,
    Return,
    Extend,
}

/// See the module's text.
pub(crate) struct Keeper {
    run: Arc<Run>,
    link: Arc<Link>,
    call: Call,
    failures: u32,
}

/// Works until it is dropped: acknowledges messages, and gives them back.
pub(crate) async fn answer(run: Arc<Run>, link: Arc<Link>) {
    let mut acknowledging = Keeper {
        run: Arc::clone(&run),
        link: Arc::clone(&link),
        call: Call::Acknowledge,
        failures: 0,
    };
    let mut returning = Keeper { run: Arc::clone(&run), link, call: Call::Return, failures: 0 };
    loop {
        tokio::select! {
            () = run.leases.news.notified() => tokio::time::sleep(GATHER).await,
            () = tokio::time::sleep(TICK) => {}
        }
        returning.say().await;
        acknowledging.say().await;
    }
}

/// Works until it is dropped: extends deadlines.
pub(crate) async fn extend(run: Arc<Run>, link: Arc<Link>) {
    let mut extending = Keeper { run, link, call: Call::Extend, failures: 0 };
    loop {
        tokio::time::sleep(TICK).await;
        extending.say().await;
    }
}

/// Extends the deadlines of messages that were just received, which the server may refuse with exactly-once delivery: such
/// a message comes again, and may be with somebody else now. Returns the fate of each.
pub(crate) async fn confirm(run: &Arc<Run>, link: &Arc<Link>, named: &[Named]) -> Vec<Fate> {
    let keeper =
        Keeper { run: Arc::clone(run), link: Arc::clone(link), call: Call::Extend, failures: 0 };
    let mut fates = Vec::with_capacity(named.len());
    for some in named.chunks(CALL_MESSAGES_MAX) {
        let (told, error) = keeper.tell(some).await;
        if let Some(error) = error {
            tracing::debug!(subscription = run.name(), error, "receipts are not confirmed");
        }
        fates.extend(told);
    }
    fates
}

impl Keeper {
    /// Says what there is to say now.
    async fn say(&mut self) {
        let run = Arc::clone(&self.run);
        let clock = run.intake.clock();
        loop {
            let now = clock.monotonic();
            let named = match self.call {
                Call::Acknowledge => run.leases.take_settled(CALL_MESSAGES_MAX, now),
                Call::Return => run.leases.take_returned(CALL_MESSAGES_MAX, now),
                Call::Extend => run.leases.take_due(CALL_MESSAGES_MAX, now, EXTEND_AFTER),
            };
            if named.is_empty() {
                return;
            }
            let (fates, error) = self.tell(&named).await;
            let pause = self.note(error);
            let again = clock.monotonic() + pause.unwrap_or(PAUSE_FIRST);
            for (named, fate) in named.iter().zip(fates) {
                self.decide(named, fate, again);
            }
            if pause.is_some() {
                return;
            }
        }
    }

    /// Asks the server; returns the fate of each message, and an error if it could not be asked about all of them.
    async fn tell(&self, named: &[Named]) -> (Vec<Fate>, Option<String>) {
        let mut fates = vec![Fate::Again; named.len()];
        let mut left: Vec<Range<usize>> = std::iter::once(0..named.len()).collect();
        while let Some(range) = left.pop() {
            let some = &named[range.clone()];
            let error = match self.ask(some).await {
                Ok(()) => {
                    fates[range].fill(Fate::Done);
                    continue;
                }
                Err(AskError::Token(error)) => {
                    return (fates, Some(format!("there is no access token: {error}")));
                }
                Err(AskError::Call(error)) => error,
            };
            match meaning(&error, some) {
                Meaning::Each(each) => fates[range].copy_from_slice(&each),
                Meaning::Fewer => {
                    let middle = range.start + range.len() / 2;
                    left.extend([middle..range.end, range.start..middle]);
                }
                Meaning::Later => {
                    let error = text(&Asked::Answer, &error, &self.run.settings.names);
                    return (fates, Some(error));
                }
            }
        }
        (fates, None)
    }

    async fn ask(&self, named: &[Named]) -> Result<(), AskError> {
        let subscription = self.run.settings.names.subscription.clone();
        let about = ("subscription", &*subscription.clone());
        let ack_ids: Vec<String> = named.iter().map(|named| named.ack_id.to_string()).collect();
        let Empty {} = if self.call == Call::Acknowledge {
            let request = AcknowledgeRequest { subscription, ack_ids };
            self.link.call(ACKNOWLEDGE, about, &request).await?
        } else {
            let ack_deadline_seconds =
                if self.call == Call::Extend { DEADLINE.as_secs() as i32 } else { 0 };
            let request = ModifyAckDeadlineRequest { subscription, ack_deadline_seconds, ack_ids };
            self.link.call(MODIFY_ACK_DEADLINE, about, &request).await?
        };
        Ok(())
    }

    /// Takes note of what went wrong; returns how long to wait until the next call.
    fn note(&mut self, error: Option<String>) -> Option<Duration> {
        let metrics = self.run.intake.metrics();
        let (name, part) = (self.run.name(), self.part());
        let Some(error) = error else {
            if self.failures > 0 {
                metrics.set_trouble_of(&part, None);
                tracing::info!(
                    subscription = name,
                    failures = self.failures,
                    "the server can be told again what became of messages"
                );
                self.failures = 0;
            }
            return None;
        };
        self.failures = self.failures.saturating_add(1);
        metrics.failed(name, &error);
        metrics.set_trouble_of(&part, Some(&error));
        if self.failures.is_power_of_two() {
            tracing::warn!(
                subscription = name,
                error,
                failures = self.failures,
                "the server could not be told what became of messages; trying again"
            );
        }
        if self.call == Call::Extend {
            return Some(EXTEND_PAUSE);
        }
        let factor = 2_u32.saturating_pow(self.failures.saturating_sub(1).min(30));
        Some(PAUSE_FIRST.saturating_mul(factor).min(PAUSE_MAX))
    }

    /// The part of the input that has the trouble.
    fn part(&self) -> String {
        let what = match self.call {
            Call::Acknowledge => "acknowledgements",
            Call::Return => "messages that are given back",
            Call::Extend => "deadlines",
        };
        format!("{} {what}", self.run.name())
    }

    fn decide(&self, named: &Named, fate: Fate, again: skidder_os::Monotonic) {
        let run = &self.run;
        let counts = &run.counts;
        match (self.call, fate) {
            (Call::Extend, Fate::Done) => {}
            (Call::Extend, Fate::Again) => run.leases.extend_again(named, Some(again)),
            // Its verdict is told to the server all the same.
            (Call::Extend, Fate::Lost) => run.leases.extend_again(named, None),
            (_, Fate::Again) => run.leases.say_again(named, again),
            (Call::Acknowledge, Fate::Done) => {
                if let Some((published, bytes)) = run.leases.done(named) {
                    counts.acknowledged.add(1);
                    counts.bytes.add(bytes);
                    let since = run.intake.clock().wall().0.saturating_sub(published);
                    counts.processing_time.add(u64::try_from(since).unwrap_or(0), 1);
                }
            }
            (Call::Acknowledge, Fate::Lost) => {
                if run.leases.done(named).is_some() {
                    counts.failed.add(1);
                    tracing::debug!(
                        subscription = run.name(),
                        "a message was delivered, and its acknowledgement came too late: it comes again"
                    );
                }
            }
            (Call::Return, _) => {
                if run.leases.done(named).is_some() {
                    counts.returned.add(1);
                }
            }
        }
    }
}
