//! `monitoring.otlp`: our own numbers for a collector of OpenTelemetry, as OTLP over HTTP.
//!
//! The numbers are cumulative, so that those that could not be sent are in the next ones: an export is retried, as
//! the protocol specifies, until the next one is due, and then dropped. None of it touches the events.

use skidder_config::{Group, Key, Section, settings};
use skidder_net::{POSTER, Posted, Poster, PosterDefaults};
use skidder_observe::{Refused, Sources, otlp, otlp_refused};
use skidder_os::Fs;
use skidder_outputs::Backoff;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// First and longest pause before an export is tried again.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];
/// How long the last export may take, when the program ends.
const LAST_TIME_MAX: Duration = Duration::from_secs(1);
/// Where a collector of the same machine listens.
const DEFAULTS: PosterDefaults =
    PosterDefaults { endpoint: &ENDPOINT, path: "/v1/metrics", port: 4318 };
const CONTENT_TYPE: &str = "application/x-protobuf";
/// Answers after which the same numbers may be taken later.
const PASSING: [u16; 4] = [429, 502, 503, 504];

settings! {
    /// Settings of `monitoring.otlp`.
    pub(super) static OTLP = Group::new("monitoring.otlp", "Our own metrics for a collector of OpenTelemetry.")
        .include(&[&POSTER]);

    ENABLED: bool = Key::new("enabled").default(false).about("export metrics").ours();
    ENDPOINT: String = Key::new("endpoint").default("http://localhost:4318").noun("a URL").about(
        "a URL; `/v1/metrics` is added to its path unless it ends so. Without a port 4318, with `https` 443",
    );
    PROTOCOL: String = Key::new("protocol")
        .default("http/protobuf")
        .about("the only one: for `grpc` and `http/json` it says so");
    PERIOD: Duration = Key::new("period")
        .default(Duration::from_mins(1))
        .range(Duration::from_millis(100), Duration::from_hours(24))
        .about("between two exports, 100 ms to 24 h");
    RESOURCE_ATTRIBUTES: BTreeMap<String, String> = Key::new("resource_attributes")
        .about("further attributes of the resource; they win over ours");
}

/// The metrics to export, and their target.
#[derive(Clone, Debug)]
pub(crate) struct Otlp {
    poster: Poster,
    period: Duration,
    /// Further ones of the resource.
    attributes: Vec<(String, String)>,
}

/// Why an export failed.
enum Failed {
    /// Worth a retry, not before this time if the server gives one.
    Passing(String, Option<Duration>),
    /// It is refused.
    ForGood(String),
}

impl Otlp {
    /// Reads the section. `None` if it is off or invalid; mistakes are reported.
    pub(crate) fn read(section: Section<'_>, fs: &Arc<dyn Fs>) -> Option<Self> {
        section.declared_by(&OTLP);
        if !section.get(&ENABLED).value() {
            section.off();
            return None;
        }
        let known = |protocol: &String| match protocol.as_str() {
            "http/protobuf" => Ok(()),
            "grpc" | "http/json" => {
                Err("only `http/protobuf` is there, which every collector takes \
                                         (receiver `otlp`, protocol `http`, port 4318)"
                    .to_owned())
            }
            _ => Err("expected `http/protobuf`".to_owned()),
        };
        section.get(&PROTOCOL).check(known).value();
        let period = section.get(&PERIOD).value();
        let attributes = section.get(&RESOURCE_ATTRIBUTES).optional().unwrap_or_default();
        let poster = Poster::read(&section, DEFAULTS, CONTENT_TYPE, fs);
        section.finish();
        Some(Self { poster: poster?, period, attributes: attributes.into_iter().collect() })
    }

    /// Exports until `stop`, and then once more.
    pub(crate) async fn ship(self, sources: Arc<Sources>, mut stop: oneshot::Receiver<()>) {
        let mut due = interval_at(Instant::now() + self.period, self.period);
        due.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut works = true;
        loop {
            let stopped = tokio::select! {
                _ = due.tick() => false,
                _ = &mut stop => true,
            };
            let limit = if stopped { LAST_TIME_MAX } else { self.period };
            let export = self.export(&sources, Instant::now() + limit);
            let sent = tokio::select! {
                sent = tokio::time::timeout(limit, export) => sent,
                _ = &mut stop, if !stopped => {
                    let last = self.export(&sources, Instant::now() + LAST_TIME_MAX);
                    drop(tokio::time::timeout(LAST_TIME_MAX, last).await);
                    return;
                }
            };
            let sent = sent.unwrap_or_else(|_| Err("there is no answer in time".to_owned()));
            match (works, &sent) {
                (true, Err(error)) => tracing::warn!(
                    error,
                    "our own numbers cannot be exported and are dropped until they can"
                ),
                (false, Ok(())) => tracing::info!("our own numbers are exported again"),
                _ => {}
            }
            works = sent.is_ok();
            if stopped {
                return;
            }
        }
    }

    /// Exports the numbers of now; tries again until the `deadline` if they may be taken later.
    async fn export(&self, sources: &Arc<Sources>, deadline: Instant) -> Result<(), String> {
        let snapshot = sources.look().await;
        let message = otlp(&snapshot, env!("CARGO_PKG_VERSION"), &self.attributes);
        let [first, longest] = PAUSES;
        let seed = snapshot.uptime.as_nanos() as u64;
        let mut pauses = Backoff::new(first.min(self.period / 4), longest, seed);
        loop {
            let (error, wait) = match self.try_once(&message).await {
                Ok(()) => return Ok(()),
                Err(Failed::ForGood(error)) => return Err(error),
                Err(Failed::Passing(error, wait)) => (error, wait),
            };
            let again = Instant::now() + wait.unwrap_or_default().max(pauses.next_wait());
            if again >= deadline {
                return Err(error);
            }
            tracing::debug!(error, "an export of our own numbers is tried again");
            tokio::time::sleep_until(again).await;
        }
    }

    async fn try_once(&self, message: &[u8]) -> Result<(), Failed> {
        let posted = self.poster.post(message).await;
        let posted = posted.map_err(|error| Failed::Passing(error.to_string(), None))?;
        let Posted { status, retry_after, body } = &posted;
        match status {
            200..300 => {
                if let Some(Refused { points, message: error }) = otlp_refused(body) {
                    tracing::warn!(points, error, "a collector did not take all of our numbers");
                }
                Ok(())
            }
            status if PASSING.contains(status) => {
                Err(Failed::Passing(self.poster.refusal(&posted), *retry_after))
            }
            _ => Err(Failed::ForGood(self.poster.refusal(&posted))),
        }
    }
}
