//! `benchmark`: events that cost nothing to get, to measure what comes behind.
//!
//! Settings and fields are Filebeat's (x-pack/filebeat/input/benchmark). Where Filebeat publishes one event at a time, a
//! batch goes at once: the numbers are the same, and the input is not what is measured.

#[cfg(test)]
mod tests;

use skidder_config::{Group, Key, Section, settings};
use skidder_event::{Cell, Map, Path, Progress, Text};
use skidder_input::{Input, InputError, InputFuture, Intake, Stopped};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::task::JoinSet;

use crate::Context;
use crate::common::{EVERY_INPUT, begin};

/// The name of the type.
const KIND: &str = "benchmark";

/// Events of a batch, at most.
const BATCH_EVENTS: u64 = 1024;

/// How often `eps` events become due.
const SECOND: Duration = Duration::from_secs(1);

/// The text of the message, unless the settings have one.
const MESSAGE: &str = "generic benchmark message";

static LINE: LazyLock<Path> =
    LazyLock::new(|| Path::parse("line").expect("a constant that is a path"));

settings! {
    /// Settings of `benchmark`.
    pub static BENCHMARK =
        Group::new("input.benchmark", "Events that cost nothing to get.")
            .include(&[&EVERY_INPUT])
            .without_effect(&[("status", "it is for tests of the Elastic Agent")]);

    TEXT: String = Key::new("message").default(MESSAGE).about("the text of each");
    THREADS: u64 = Key::new("threads")
        .default(1)
        .range(1, u8::MAX as u64)
        .noun("a number of tasks")
        .about("tasks that make events, at most 255");
    COUNT: u64 = Key::new("count")
        .default(0)
        .noun("a number of events")
        .about("events of each; 0 is without end");
    EPS: u64 = Key::new("eps")
        .default(0)
        .noun("a number of events")
        .about("events a second of each; 0 is as many as go through. Not with `count`");
}

/// Makes events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Benchmark {
    /// The text of each message.
    message: Arc<str>,
    /// How many tasks make events at the same time.
    threads: u8,
    /// How many events each of them makes; `None`: no limit.
    count: Option<u64>,
    /// How many events each of them makes in a second; `None`: no limit.
    eps: Option<u64>,
}

/// Reads its settings.
pub fn read(section: &Section<'_>, _: &Context) -> Option<Box<dyn Input>> {
    Benchmark::read(section).map(|input| Box::new(input) as _)
}

impl Benchmark {
    fn read(section: &Section<'_>) -> Option<Self> {
        begin(section, &BENCHMARK);
        let message = section.get(&TEXT).value();
        let threads = section.get(&THREADS).value();
        let count = Some(section.get(&COUNT).value()).filter(|count| *count > 0);
        let eps = Some(section.get(&EPS).value()).filter(|eps| *eps > 0);
        if count.is_some() && eps.is_some() {
            section.problem("eps", "`count` and `eps` cannot both be set", "remove one of them");
            return None;
        }
        let threads = u8::try_from(threads).ok()?;
        Some(Self { message: message.into(), threads, count, eps })
    }
}

impl Input for Benchmark {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn run(self: Box<Self>, intake: Intake) -> InputFuture {
        Box::pin(async move {
            let mut threads = JoinSet::new();
            for thread in 0..self.threads {
                let (settings, intake) = (Self::clone(&self), intake.clone());
                threads.spawn(async move { settings.make(thread, &intake).await });
            }
            while let Some(ended) = threads.join_next().await {
                // `Stopped`: the program ends, which is no failure.
                let _ended: Result<(), Stopped> =
                    ended.map_err(|error| InputError(error.to_string()))?;
            }
            Ok(())
        })
    }
}

impl Benchmark {
    /// Makes the events of one task.
    async fn make(&self, thread: u8, intake: &Intake) -> Result<(), Stopped> {
        let mut fields = Map::new();
        fields.insert_path("thread", i64::from(thread));
        // Filebeat counts how often the number of lines has begun anew, after 2⁶⁴ of them.
        fields.insert_path("filename", 0_i64);
        let mut source = intake.open(&format!("thread {thread}"), fields);
        let mut made = 0;
        loop {
            let due = match (self.count, self.eps) {
                (Some(count), _) => count - made,
                (None, Some(eps)) => {
                    tokio::select! {
                        () = intake.stopped() => return Ok(()),
                        () = tokio::time::sleep(SECOND) => {}
                    }
                    eps
                }
                (None, None) => BATCH_EVENTS,
            };
            if due == 0 {
                return Ok(());
            }
            let end = made + due;
            while made < end {
                if intake.is_stopped() {
                    return Ok(());
                }
                let events = (end - made).min(BATCH_EVENTS);
                let mut batch = source.batch(self.message.as_bytes().to_vec(), self.message.len());
                let text = Text { start: 0, len: self.message.len() as u32 };
                let base = Arc::clone(batch.base());
                let time = intake.clock().wall().0;
                for line in made..made + events {
                    let row = source.push(&mut batch, text, 0, time);
                    let mut event = batch.event_mut(row, &base);
                    let put = event.put_cell(&LINE, Cell::Int(line as i64));
                    debug_assert!(put.is_ok(), "no field of the source has this name");
                }
                source.send(batch, Progress::Nothing(0)).await?;
                made += events;
            }
        }
    }
}
