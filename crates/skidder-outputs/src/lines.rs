//! The common part of file and console: batches become lines, lines go to a place that can fail,
//! and only lines that are there get their verdict.

use crate::backoff::{Backoff, Failures};
use crate::codec::Codec;
use crate::refusal::{Refusal, Refuser};
use skidder_pipeline::{Delivery, Feed, TakeLimits, Ticket, disk_remedy};
use std::io;
use std::time::Duration;

/// First and longest wait between attempts to write.
const WAIT_MIN: Duration = Duration::from_millis(500);
const WAIT_MAX: Duration = Duration::from_secs(30);

/// Lines of one batch, each with its line feed, and how far they were written.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    text: Vec<u8>,
    /// Where each line ends.
    ends: Vec<usize>,
    /// The event of each line: index of its delivery, and row.
    origins: Vec<(u32, u32)>,
    /// Bytes that are written.
    written: usize,
    /// Lines that the place can never take, by index: they are skipped.
    refused: Vec<(usize, String)>,
}

impl Lines {
    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
        self.origins.clear();
        self.refused.clear();
        self.written = 0;
    }

    /// Writes the events of `deliveries`; gives those that have no text.
    fn render(&mut self, deliveries: &[Delivery], codec: &mut Codec) -> Vec<Refusal> {
        self.clear();
        let mut refusals = Vec::new();
        for (index, delivery) in deliveries.iter().enumerate() {
            for row in delivery.rows.clone() {
                match codec.write(&mut self.text, &delivery.batch, row as usize) {
                    Ok(()) => {
                        self.text.push(b'\n');
                        self.ends.push(self.text.len());
                        self.origins.push((index as u32, row));
                    }
                    Err(error) => refusals.push(Refusal::unsent(delivery, row, error)),
                }
            }
        }
        refusals
    }

    /// The unwritten rest.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.text[self.written..]
    }

    /// The longest run of whole lines not written yet that has at most `bytes_max` bytes.
    pub(crate) fn next_lines(&self, bytes_max: u64) -> &[u8] {
        let first = self.ends.partition_point(|&end| end <= self.written);
        let fitting =
            self.ends[first..].partition_point(|&end| (end - self.written) as u64 <= bytes_max);
        match fitting {
            0 => &[],
            count => &self.text[self.written..self.ends[first + count - 1]],
        }
    }

    /// `bytes` more are written.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.written += bytes;
    }

    /// The next line can never be written: it is skipped.
    pub(crate) fn refuse_next(&mut self, reason: String) {
        let line = self.ends.partition_point(|&end| end <= self.written);
        if let Some(&end) = self.ends.get(line) {
            self.refused.push((line, reason));
            self.written = end;
        }
    }

    #[cfg(test)]
    pub(crate) fn of(lines: &[&str]) -> Self {
        let mut made = Self::default();
        for (row, line) in lines.iter().enumerate() {
            made.text.extend_from_slice(line.as_bytes());
            made.text.push(b'\n');
            made.ends.push(made.text.len());
            made.origins.push((0, row as u32));
        }
        made
    }

    #[cfg(test)]
    pub(crate) fn refused(&self) -> &[(usize, String)] {
        &self.refused
    }
}

/// Where lines go.
pub(crate) trait LineSink: Send + 'static {
    /// Name of the output, for messages.
    const KIND: &'static str;

    /// Where it writes to, for people.
    fn place(&self) -> String;

    /// Writes the rest of `lines`, advancing it. After an error it is called again with the rest.
    fn write(&mut self, lines: &mut Lines) -> io::Result<()>;

    /// Whether the error will last for ever, so that the output must end.
    fn is_final(&self, error: &io::Error) -> bool;

    /// Nothing more comes.
    fn finish(&mut self) -> io::Result<()>;
}

/// Takes events until the queue ends, and writes them as lines.
pub(crate) async fn run<S: LineSink>(sink: S, mut codec: Codec, limits: TakeLimits, feed: Feed) {
    let refuser = Refuser::new(S::KIND, &feed);
    let mut backoff = Backoff::new(WAIT_MIN, WAIT_MAX, feed.clock.wall().0 as u64);
    let mut failures = Failures::default();
    let mut deliveries = Vec::new();
    let mut work = Box::new((sink, Lines::default()));
    while feed.queue.take(limits, &mut deliveries).await {
        let mut refusals = work.1.render(&deliveries, &mut codec);
        let events = work.1.ends.len() as u64;
        feed.metrics.total.add(events + refusals.len() as u64);
        feed.metrics.batches.add(1);
        feed.metrics.active.add(events);
        let started = feed.clock.monotonic();
        loop {
            let (back, result) = blocking(work, |(sink, lines)| sink.write(lines)).await;
            work = back;
            let Err(error) = result else { break };
            feed.metrics.write_error_with(work.0.place(), &error, disk_remedy(&error));
            if work.0.is_final(&error) {
                feed.metrics.active.sub(events);
                // `| head` has read enough: that is no error here, and the program reports how it ends.
                tracing::info!(output = S::KIND, %error, "nobody reads the output any more; it ends");
                // Unsettled events are read again by the next start.
                feed.queue.abort();
                return;
            }
            if let Some(failures) = failures.add() {
                tracing::error!(output = S::KIND, %error, failures, "cannot write events; trying again");
            }
            tokio::time::sleep(backoff.next_wait()).await;
        }
        backoff.reset();
        let failed = failures.clear();
        if failed > 0 {
            tracing::info!(output = S::KIND, failures = failed, "events are written again");
        }
        let lines = &mut work.1;
        feed.metrics.active.sub(events);
        feed.metrics.write_bytes.add(lines.text.len() as u64);
        feed.metrics.latency_ns.add(feed.clock.monotonic().since(started).as_nanos() as u64);
        feed.metrics.acked.add(events - lines.refused.len() as u64);
        settle(lines, &deliveries, &mut refusals);
        deliveries.clear();
        refuser.settle(refusals).await;
    }
    let (_, result) = blocking(work, |(sink, _)| sink.finish()).await;
    if let Err(error) = result {
        tracing::error!(output = S::KIND, %error, "cannot end the output cleanly");
    }
}

/// Gives the written lines their verdict and adds the others to `refusals`.
fn settle(lines: &mut Lines, deliveries: &[Delivery], refusals: &mut Vec<Refusal>) {
    let mut rows = vec![0_u32; deliveries.len()];
    for &(delivery, _) in &lines.origins {
        rows[delivery as usize] += 1;
    }
    for (line, reason) in lines.refused.drain(..) {
        let (delivery, row) = lines.origins[line];
        rows[delivery as usize] -= 1;
        refusals.push(Refusal::unsent(&deliveries[delivery as usize], row, reason));
    }
    let verdicts = deliveries.iter().zip(&rows);
    Ticket::deliver_all(verdicts.map(|(delivery, &count)| (&*delivery.ticket, count)));
}

/// Runs `work` where blocking is allowed, and gives its state back.
async fn blocking<T: Send + 'static, R: Send + 'static>(
    mut state: Box<T>,
    work: impl FnOnce(&mut T) -> R + Send + 'static,
) -> (Box<T>, R) {
    let task = tokio::task::spawn_blocking(move || {
        let result = work(&mut state);
        (state, result)
    });
    match task.await {
        Ok(done) => done,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The runtime ends: nothing gets a verdict any more.
        Err(_) => std::future::pending().await,
    }
}
