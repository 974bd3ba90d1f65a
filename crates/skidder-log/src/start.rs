//! Turning the log on.

use crate::config::{Format, LogConfig, Target};
use crate::files::Files;
use crate::layer::{LineLayer, Out};
use crate::queue::Queue;
use crate::selectors::Selectors;
use crate::sinks::{SYSLOG_PATHS, Stderr, Syslog};
use crate::writer::{Sink, Trouble, Writer};
use jiff::tz::TimeZone;
use skidder_os::{Clock, SystemClock};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tracing::{Level, Subscriber};
use tracing_subscriber::layer::SubscriberExt as _;

/// The log cannot be turned on.
pub type StartError = io::Error;

/// The log of this process, while it runs.
#[derive(Debug)]
pub struct Log {
    queue: Arc<Queue>,
    is_stderr: bool,
}

/// What the log counts of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogNumbers {
    /// Lines that could not be written where they belong: they went to stderr, or were lost if they
    /// had the content of events.
    pub failed: u64,
    /// Lines that came faster than they could be written.
    pub left_out: u64,
}

impl Log {
    /// Turns the log on for all threads of the process. A second call changes nothing.
    pub fn start(config: LogConfig) -> Result<Self, StartError> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let (log, subscriber) = Self::new(config, clock, &SYSLOG_PATHS)?;
        drop(tracing::subscriber::set_global_default(subscriber));
        Ok(log)
    }

    /// Lets lines of this level and above go to stderr at once.
    pub fn to_stderr(level: Level, format: Format) {
        let layer = LineLayer {
            level,
            selectors: Selectors::default(),
            event_data: false,
            clock: Arc::new(SystemClock::new()),
            out: Out::Stderr(Stderr::of_process(format)),
        };
        let subscriber = tracing_subscriber::registry().with(layer);
        // Only a second call can fail, and then the first one holds.
        drop(tracing::subscriber::set_global_default(subscriber));
    }

    /// The log, and the subscriber that receives its events.
    pub(crate) fn new(
        config: LogConfig,
        clock: Arc<dyn Clock>,
        syslog: &[&str],
    ) -> Result<(Self, impl Subscriber + Send + Sync + use<>), StartError> {
        let zone = TimeZone::system();
        let queue = Arc::new(Queue::default());
        let layer = LineLayer {
            level: config.level,
            selectors: config.selectors,
            event_data: config.event_data.is_some(),
            clock: Arc::clone(&clock),
            out: Out::Queue(Arc::clone(&queue)),
        };
        let is_stderr = config.target == Target::Stderr;
        let sink = match config.target {
            Target::Nowhere => Sink::Nowhere,
            Target::Stderr => Sink::Stderr,
            Target::Syslog => Sink::Syslog(Syslog::new(syslog, zone.clone())),
            Target::Files(files) => {
                let mut files = Files::new(files, zone.clone());
                // The first line tries again, and reports the error.
                drop(files.redirect(clock.wall()));
                Sink::Files(files)
            }
        };
        let writer = Writer {
            queue: Arc::clone(&queue),
            clock,
            stderr: Stderr::of_process(config.format),
            sink,
            event_data: config.event_data.map(|files| Files::new(files, zone)),
            with_fields: config.with_fields,
            trouble: Trouble::default(),
            event_trouble: Trouble::default(),
        };
        let thread = std::thread::Builder::new().name("log".to_owned());
        // It ends when the queue has; wait for the queue instead.
        drop(thread.spawn(move || writer.run())?);
        let log = Self { queue, is_stderr };
        Ok((log, tracing_subscriber::registry().with(layer)))
    }

    /// Waits until all lines so far are written, at most `limit`; returns whether they are.
    pub fn flush(&self, limit: Duration) -> bool {
        self.queue.flush(limit)
    }

    /// Writes all waiting lines, also those held back, and ends; waits at most `limit`. Later
    /// lines are lost.
    pub fn end(&self, limit: Duration) {
        self.queue.end();
        self.queue.flush(limit);
    }

    /// Whether lines go to stderr.
    pub fn is_stderr(&self) -> bool {
        self.is_stderr
    }

    /// Its counters.
    pub fn numbers(&self) -> LogNumbers {
        let counters = &self.queue.counters;
        LogNumbers {
            failed: counters.failed.load(Ordering::Relaxed),
            left_out: counters.left_out.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests;
