//! `monitoring`: our own numbers for the monitoring cluster, in the documents that Filebeat ships there.
//!
//! A document that cannot be sent is dropped: the next one has newer numbers. None of it touches the events.

mod otlp;

pub(crate) use otlp::Otlp;

use serde_json::{Value, json};
use skidder_config::{Problems, Section, Settings};
use skidder_event::{Precision, TimeText};
use skidder_observe::{Snapshot, Sources, state, stats};
use skidder_os::Timestamp;
use skidder_output_elasticsearch::{AskError, Elasticsearch, read};
use skidder_outputs::Context as OutputContext;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// Of the index. Filebeat 8 and 9 write there too.
const INDEX: &str = ".monitoring-beats-7-";
/// Default of `metrics.period`.
const METRICS_PERIOD: Duration = Duration::from_secs(10);
/// Default of `state.period`.
const STATE_PERIOD: Duration = Duration::from_mins(1);
/// Smallest period.
const PERIOD_MIN: Duration = Duration::from_millis(100);

/// What is shipped, and where to.
#[derive(Clone, Debug)]
pub(crate) struct Monitoring {
    server: Elasticsearch,
    /// `cluster_uuid`, or who is asked for it: the cluster of the events.
    cluster: Cluster,
    metrics_period: Duration,
    state_period: Duration,
    tags: Vec<String>,
}

/// The cluster that the documents are about.
#[derive(Clone, Debug)]
enum Cluster {
    Named(String),
    Of(Box<Elasticsearch>),
    /// Events go somewhere else.
    None,
}

impl Monitoring {
    /// Reads the section, and what of it is for a collector; mistakes are told to `problems`. Nothing of what is off, or wrong.
    pub(crate) fn read(
        root: &Section<'_>,
        settings: &Settings,
        context: &OutputContext,
        problems: &Problems,
    ) -> (Option<Self>, Option<Otlp>) {
        let section = root.section("monitoring");
        let otlp = Otlp::read(section.section("otlp"), &context.fs);
        let events_have_hosts = root.has("output.elasticsearch.hosts");
        (Self::read_rest(section, events_have_hosts, settings, context, problems), otlp)
    }

    fn read_rest(
        section: Section<'_>,
        events_have_hosts: bool,
        settings: &Settings,
        context: &OutputContext,
        problems: &Problems,
    ) -> Option<Self> {
        if !section.bool("enabled").or(false) {
            section.skip();
            return None;
        }
        let named = section.string("cluster_uuid").optional();
        section.unsupported(
            &["cloud.*"],
            "set `monitoring.elasticsearch.hosts` and `username`, `password`",
        );
        let own = section.section("elasticsearch");
        let has_hosts = own.has("hosts");
        let own_keys = own.keys();
        own.skip();
        if !has_hosts && !events_have_hosts {
            let message = "`monitoring.elasticsearch.hosts` is missing, and so is `output.elasticsearch.hosts`, which \
                           would stand for it";
            let hint = "say there which servers take our own numbers, as in `[\"localhost:9200\"]`";
            section.problem("enabled", message, hint);
            section.finish();
            return None;
        }
        section.finish();
        // Without hosts of its own it is the server of the events, as far as nothing else is said.
        let settings = if has_hosts {
            settings.with_root(settings.node().clone())
        } else {
            settings.layered("output.elasticsearch", "monitoring.elasticsearch")
        };
        let root = settings.root(problems);
        let section = root.section("monitoring.elasticsearch");
        let period = |key, default| {
            section.duration(key).range(PERIOD_MIN..=Duration::from_hours(24)).or(default)
        };
        let metrics_period = period("metrics.period", METRICS_PERIOD);
        let state_period = period("state.period", STATE_PERIOD);
        let tags = section.strings("tags").or([]);
        let server = server(&section, context);
        let of_events = root.section("output.elasticsearch");
        if !has_hosts {
            // Told where they stand.
            let theirs = of_events.keys();
            theirs.iter().filter(|key| !own_keys.contains(key)).for_each(|key| section.accept(key));
        }
        section.finish();
        let cluster = match (named, has_hosts) {
            (Some(uuid), _) => Cluster::Named(uuid),
            (None, false) => server.clone().map_or(Cluster::None, |it| Cluster::Of(Box::new(it))),
            (None, true) if of_events.has("hosts") => self::server(&of_events, context)
                .map_or(Cluster::None, |it| Cluster::Of(Box::new(it))),
            (None, true) => Cluster::None,
        };
        of_events.skip();
        root.skip();
        Some(Self { server: server?, cluster, metrics_period, state_period, tags })
    }
}

/// The server of a section; mistakes are told there.
fn server(section: &Section<'_>, context: &OutputContext) -> Option<Elasticsearch> {
    let (config, _) = read(section);
    match Elasticsearch::new(config?, context.clone()) {
        Ok(server) => Some(server),
        Err(error) => {
            section.problem(error.setting(), error.to_string(), "");
            None
        }
    }
}

/// What is sent, in the words of Filebeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// The numbers of `/stats`.
    Stats,
    /// What is configured, as in `/state`.
    State,
}

impl What {
    fn type_name(self) -> &'static str {
        match self {
            Self::Stats => "beats_stats",
            Self::State => "beats_state",
        }
    }

    /// The name of the numbers in the document.
    fn part(self) -> &'static str {
        match self {
            Self::Stats => "metrics",
            Self::State => "state",
        }
    }
}

impl Monitoring {
    /// Ships until it is dropped.
    pub(crate) async fn ship(mut self, sources: Arc<Sources>) {
        let every = |period| {
            let mut ticks = interval_at(Instant::now() + period, period);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
            ticks
        };
        let (mut stats_due, mut state_due) = (every(self.metrics_period), every(self.state_period));
        let mut works = true;
        loop {
            let (what, period) = tokio::select! {
                _ = stats_due.tick() => (What::Stats, self.metrics_period),
                _ = state_due.tick() => (What::State, self.state_period),
            };
            let sent = self.send(what, period, &sources).await;
            match (works, &sent) {
                (true, Err(error)) => {
                    tracing::warn!(%error, "monitoring data cannot be sent and is dropped until it can");
                }
                (false, Ok(())) => tracing::info!("monitoring data is sent again"),
                _ => {}
            }
            works = sent.is_ok();
        }
    }

    async fn send(
        &mut self,
        what: What,
        period: Duration,
        sources: &Arc<Sources>,
    ) -> Result<(), AskError> {
        let uuid = self.cluster_uuid().await;
        let now = sources.clock.wall();
        let snapshot = sources.look().await;
        let document = document(what, period, uuid.as_deref(), &self.tags, now, &snapshot);
        let index = index_of(now);
        self.server.create(&index, &uuid::Uuid::new_v4().simple().to_string(), &document).await
    }

    /// Asked until it is known.
    async fn cluster_uuid(&mut self) -> Option<String> {
        if let Cluster::Of(server) = &self.cluster {
            match server.cluster_uuid().await {
                Ok(Some(uuid)) => self.cluster = Cluster::Named(uuid),
                Ok(None) => self.cluster = Cluster::None,
                Err(error) => {
                    tracing::debug!(%error, "the cluster of the events does not say who it is");
                }
            }
        }
        match &self.cluster {
            Cluster::Named(uuid) => Some(uuid.clone()),
            Cluster::Of(_) | Cluster::None => None,
        }
    }
}

fn document(
    what: What,
    period: Duration,
    cluster_uuid: Option<&str>,
    tags: &[String],
    now: Timestamp,
    snapshot: &Snapshot,
) -> Value {
    let numbers = match what {
        What::Stats => stats(snapshot),
        What::State => state(snapshot),
    };
    let program = &snapshot.program;
    let time = time(now);
    let mut inner = json!({
        "timestamp": time,
        "beat": {
            "type": program.beat,
            "version": program.version,
            "name": program.name,
            "host": program.hostname,
            "uuid": program.uuid,
        },
        (what.part()): numbers,
    });
    if !tags.is_empty() {
        inner["tags"] = json!(tags);
    }
    let mut document = json!({
        "timestamp": time,
        "type": what.type_name(),
        "interval_ms": u64::try_from(period.as_millis()).unwrap_or(u64::MAX),
        (what.type_name()): inner,
    });
    if let Some(uuid) = cluster_uuid {
        document["cluster_uuid"] = uuid.into();
    }
    document
}

/// The index of the day.
fn index_of(now: Timestamp) -> String {
    let time = time(now);
    format!("{INDEX}{}", time[..10].replace('-', "."))
}

fn time(at: Timestamp) -> String {
    let mut text = TimeText::new(Precision::Millisecond);
    String::from_utf8_lossy(text.format(at.0)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_is_of_the_day() {
        assert_eq!(
            index_of(Timestamp(1_700_000_000_000_000_000)),
            ".monitoring-beats-7-2023.11.14"
        );
    }
}
