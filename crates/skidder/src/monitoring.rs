//! `monitoring`: our own numbers for the monitoring cluster, in the documents that Filebeat ships there.
//!
//! A document that cannot be sent is dropped: the next one has newer numbers. None of it touches the events.

mod otlp;

pub(crate) use otlp::Otlp;

use serde_json::{Value, json};
use skidder_config::{Group, Key, Part, Problems, Section, Settings, settings};
use skidder_event::{Precision, TimeText};
use skidder_observe::{Snapshot, Sources, state, stats};
use skidder_os::Timestamp;
use skidder_output_elasticsearch::{AskError, ELASTICSEARCH, Elasticsearch, read};
use skidder_outputs::Context as OutputContext;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// Of the index. Filebeat 8 and 9 write there too.
const INDEX: &str = ".monitoring-beats-7-";
/// Smallest and largest period.
const PERIODS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_hours(24));

mod documents {
    use super::*;

    settings! {
        /// What `monitoring.elasticsearch` has besides.
        pub(super) static DOCUMENTS =
            Group::new("monitoring.elasticsearch.documents", "What is sent, and how often.");

        pub(super) METRICS_PERIOD: Duration = Key::new("metrics.period")
            .default(Duration::from_secs(10))
            .range(PERIODS.0, PERIODS.1)
            .about("between two documents with numbers, 100 ms to 24 h");
        pub(super) STATE_PERIOD: Duration = Key::new("state.period")
            .default(Duration::from_mins(1))
            .range(PERIODS.0, PERIODS.1)
            .about("between two documents with what is configured");
        pub(super) TAGS: Vec<String> =
            Key::<Vec<String>>::new("tags").default(&[]).about("go to both kinds of documents");
    }
}

use documents::DOCUMENTS;

/// `monitoring.elasticsearch`.
static TO_ELASTICSEARCH: Group =
    Group::new("monitoring.elasticsearch", "The servers that take our own numbers.")
        .include(&[&DOCUMENTS, &ELASTICSEARCH]);

settings! {
    /// `monitoring`.
    static MONITORING = Group::new("monitoring", "Our own numbers for the monitoring cluster.")
        .unsupported(&[(
            "cloud.*",
            "set `monitoring.elasticsearch.hosts` and `username`, `password`",
        )]);

    ENABLED: bool = Key::new("enabled").default(false).about("send the documents");
    CLUSTER_UUID: String = Key::new("cluster_uuid")
        .default_words("that of `output.elasticsearch`")
        .about(
            "the cluster under which the numbers are shown. None for other outputs, and with a list of outputs",
        );
    IN_ELASTICSEARCH: Part = Key::part("elasticsearch", &TO_ELASTICSEARCH)
        .default_words("those of `output.elasticsearch`")
        .about(
            "connection and credentials, as in [`output.elasticsearch`](outputs.md). With `hosts` of its own nothing is \
             taken from the output; without, every setting here wins over the output's",
        );
    IN_OTLP: Part = Key::part("otlp", &otlp::OTLP).about("see below").ours();
}

mod at_root {
    use super::*;

    settings! {
        /// Settings at the root.
        pub(crate) static AT_ROOT = Group::new("root.monitoring", "Our own numbers.");

        pub(super) IN_ROOT: Part =
            Key::part("monitoring", &MONITORING).about("our own numbers for a monitoring cluster");
    }
}

pub(crate) use at_root::AT_ROOT;
use at_root::IN_ROOT;

/// The metrics to ship, and their target.
#[derive(Clone, Debug)]
pub(crate) struct Monitoring {
    server: Elasticsearch,
    /// `cluster_uuid`, or how to query it from the cluster of the events.
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
    /// Reads the section, and its part for a collector. `None` for what is off or invalid; mistakes are reported.
    pub(crate) fn read(
        root: &Section<'_>,
        settings: &Settings,
        context: &OutputContext,
        problems: &Problems,
    ) -> (Option<Self>, Option<Otlp>) {
        let section = root.part(&IN_ROOT);
        let otlp = Otlp::read(section.part(&IN_OTLP), &context.fs);
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
        if !section.get(&ENABLED).value() {
            section.off();
            return None;
        }
        let named = section.get(&CLUSTER_UUID).optional();
        let own = section.part(&IN_ELASTICSEARCH);
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
        // Without hosts of its own it uses the server of the events, except for its own settings.
        let settings = if has_hosts {
            settings.with_root(settings.node().clone())
        } else {
            settings.layered("output.elasticsearch", "monitoring.elasticsearch")
        };
        let root = settings.root(problems);
        let section = root.section("monitoring.elasticsearch");
        section.declared_by(&TO_ELASTICSEARCH);
        let metrics_period = section.get(&documents::METRICS_PERIOD).value();
        let state_period = section.get(&documents::STATE_PERIOD).value();
        let tags = section.get(&documents::TAGS).value();
        let server = server(&section, context);
        let of_events = root.section("output.elasticsearch");
        if !has_hosts {
            // Reported at their place.
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

/// The server of a section, which reports mistakes.
fn server(section: &Section<'_>, context: &OutputContext) -> Option<Elasticsearch> {
    let (config, _) = read(section);
    match Elasticsearch::new(config?, context.clone()) {
        Ok(server) => Some(server),
        Err(error) => {
            error.report(section);
            None
        }
    }
}

/// The kinds of documents, in the words of Filebeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// The numbers of `/stats`.
    Stats,
    /// The configured parts, as in `/state`.
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

    /// Queried until it is known.
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
