//! Events that an output can never deliver: into the dead letters, or dropped and counted.

use crate::backoff::{Backoff, Failures};
use skidder_event::{DropReason, Encoder, Precision};
use skidder_pipeline::{
    DeadLetter, DeadLetterError, DeadLetters, Delivery, Feed, OutputMetrics, disk_remedy,
};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// First and longest wait between attempts to write the dead letters.
const WAIT_MIN: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_mins(1);
/// The target of what our log keeps apart, as it has the content of events (`skidder_log::EVENT_DATA`).
const EVENT_DATA: &str = "skidder::event_data";
/// Bytes of the reason that a log line shows.
const SHOWN_BYTES_MAX: usize = 512;

/// One event that can never be delivered.
#[derive(Debug)]
pub struct Refusal {
    /// Where it came from.
    pub delivery: Delivery,
    /// Its row in the batch of the delivery.
    pub row: u32,
    /// The server's status, 0 if it was not asked.
    pub status: u16,
    /// Why, as JSON or text.
    pub reason: Vec<u8>,
    /// The `_id` under which it was sent, if it had one.
    pub id: Option<String>,
}

impl Refusal {
    /// An event that was refused before it was sent.
    pub fn unsent(delivery: &Delivery, row: u32, reason: impl ToString) -> Self {
        let reason = reason.to_string().into_bytes();
        Self { delivery: delivery.clone(), row, status: 0, reason, id: None }
    }
}

/// Gives refused events their verdict. Shared by the workers of an output.
#[derive(Debug)]
pub struct Refuser {
    output: &'static str,
    dead_letters: Option<Arc<DeadLetters>>,
    metrics: Arc<OutputMetrics>,
    /// Refusals logged so far.
    logged: Mutex<Failures>,
    /// Drops logged so far.
    dropped: Mutex<Failures>,
}

impl Refuser {
    /// `output` is the kind, for messages.
    pub fn new(output: &'static str, feed: &Feed) -> Self {
        Self {
            output,
            dead_letters: feed.dead_letters.clone(),
            metrics: Arc::clone(&feed.metrics),
            logged: Mutex::default(),
            dropped: Mutex::default(),
        }
    }

    /// Gives every one of them its verdict; waits as long as the dead letters cannot be written.
    pub async fn settle(&self, mut refusals: Vec<Refusal>) {
        if refusals.is_empty() {
            return;
        }
        self.report(&refusals);
        write_event_data(self.output, &refusals);
        let Some(dead_letters) = &self.dead_letters else {
            self.drop_all(&refusals, "dead letters are off");
            return;
        };
        let mut backoff = Backoff::new(WAIT_MIN, WAIT_MAX, refusals.len() as u64);
        let mut failures = Failures::default();
        loop {
            let target = Arc::clone(dead_letters);
            let written = tokio::task::spawn_blocking(move || {
                let written = target.write(&letters(&refusals));
                (written, refusals)
            });
            let (written, back) = match written.await {
                Ok(done) => done,
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                // The runtime ends: nothing gets a verdict any more.
                Err(_) => return std::future::pending().await,
            };
            refusals = back;
            match written {
                Ok(count) => {
                    let (kept, rest) = refusals.split_at(count.min(refusals.len()));
                    for refusal in kept {
                        refusal.delivery.ticket.dead_lettered(1);
                    }
                    self.metrics.dead_letter.add(kept.len() as u64);
                    self.drop_all(rest, "the dead letters are full");
                    return;
                }
                Err(error @ DeadLetterError::Full { .. }) => {
                    self.drop_all(&refusals, &error.to_string());
                    return;
                }
                Err(error @ DeadLetterError::Write { .. }) => {
                    if let DeadLetterError::Write { path, source } = &error {
                        let why = format_args!("the dead letters cannot be written: {source}");
                        self.metrics.note_failure(path.display(), why, disk_remedy(source));
                    }
                    let wait = backoff.next_wait();
                    if let Some(failures) = failures.add() {
                        tracing::error!(
                            output = self.output, %error, failures, events = refusals.len(),
                            "cannot write dead letters; trying again"
                        );
                    }
                    tokio::time::sleep(wait).await;
                }
            }
        }
    }

    fn report(&self, refusals: &[Refusal]) {
        let first = &refusals[0];
        let reason = match first.status {
            0 => shown(first),
            status => format!("{} ({status})", shown(first)),
        };
        self.metrics.note_refused(refusals.len() as u64, reason);
        if let Some(times) = count(&self.logged) {
            tracing::warn!(
                output = self.output,
                events = refusals.len(),
                status = first.status,
                reason = shown(first),
                times,
                "events can never be delivered"
            );
        }
    }

    fn drop_all(&self, refusals: &[Refusal], why: &str) {
        if refusals.is_empty() {
            return;
        }
        for refusal in refusals {
            refusal.delivery.ticket.dropped(DropReason::Rejected, 1);
        }
        self.metrics.dropped.add(refusals.len() as u64);
        if let Some(times) = count(&self.dropped) {
            tracing::error!(
                output = self.output,
                events = refusals.len(),
                why,
                times,
                "refused events are lost"
            );
        }
    }
}

/// Writes the events to our own log for them, if `logging.event_data` enables it.
fn write_event_data(output: &str, refusals: &[Refusal]) {
    if !tracing::enabled!(target: EVENT_DATA, tracing::Level::WARN) {
        return;
    }
    let mut encoder = Encoder::new(Precision::Nanosecond);
    let mut event = Vec::new();
    for refusal in refusals {
        event.clear();
        encoder.write(&mut event, &refusal.delivery.batch, refusal.row as usize);
        tracing::warn!(
            target: EVENT_DATA,
            output,
            status = refusal.status,
            reason = &*String::from_utf8_lossy(&refusal.reason),
            event.original = &*String::from_utf8_lossy(&event),
            "an event can never be delivered"
        );
    }
}

fn letters(refusals: &[Refusal]) -> Vec<DeadLetter<'_>> {
    refusals
        .iter()
        .map(|refusal| DeadLetter {
            delivery: &refusal.delivery,
            row: refusal.row,
            status: refusal.status,
            reason: &refusal.reason,
            id: refusal.id.as_deref(),
        })
        .collect()
}

/// The reason as it may be logged. That of a server can quote the event, which does not belong into
/// our log: only the type of the error is shown. The dead letters have all of it.
fn shown(refusal: &Refusal) -> String {
    #[derive(serde::Deserialize)]
    struct Error {
        r#type: String,
    }
    if refusal.status > 0 {
        let error = serde_json::from_slice::<Error>(&refusal.reason);
        return error.map_or_else(|_| "see the dead letters".to_owned(), |error| error.r#type);
    }
    let text = &refusal.reason[..refusal.reason.len().min(SHOWN_BYTES_MAX)];
    String::from_utf8_lossy(text).into_owned()
}

fn count(failures: &Mutex<Failures>) -> Option<u64> {
    failures.lock().unwrap_or_else(PoisonError::into_inner).add()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{batch_with, deliveries};
    use skidder_event::Map;

    #[test]
    fn logs_name_the_error_and_never_quote_the_event() {
        let delivery = deliveries(vec![batch_with(&["x"], &Map::new(), &Map::new())]).remove(0);
        let table = [
            (400, "{\"type\":\"parsing\",\"reason\":\"Preview: 'secret'\"}", "parsing"),
            (400, "secret", "see the dead letters"),
            (413, "<html>secret", "see the dead letters"),
            (0, "the index name is empty", "the index name is empty"),
        ];
        for (status, reason, expected) in table {
            let delivery = delivery.clone();
            let reason = reason.as_bytes().to_vec();
            assert_eq!(shown(&Refusal { delivery, row: 0, status, reason, id: None }), expected);
        }
    }
}
