//! Every metric: its name in `/stats`, its Prometheus name and labels, and where its value comes from.
//!
//! Filebeat's dotted names are kept where the number means the same; what Filebeat does not have is
//! under `skidder.`. Prometheus names follow <https://prometheus.io/docs/practices/naming/>: base
//! units, `_total` for what only grows. A number that has no meaning on one side has no name there.
//!
//! Labels are bounded by the program and the configuration, never by the data: no label holds a path or a host.

mod input;
mod lag;
mod ledger;
mod output;
mod process;
mod read;

use crate::snapshot::Snapshot;
pub(crate) use input::METRICS as INPUT_METRICS;
use skidder_event::DropReason;

/// Where a line ended; see [`OUTCOMES`].
pub const LABEL_OUTCOME: &str = "outcome";
/// Why a line was dropped, [`DropReason::name`]; empty for other outcomes.
pub const LABEL_REASON: &str = "reason";
/// The outcome of an event that an output had: `acked`, `failed`, `dropped`, `duplicate`, `dead_letter`.
pub const LABEL_RESULT: &str = "result";
/// The id of an output, if there are several.
pub const LABEL_OUTPUT: &str = "output";
/// The id of an input.
pub const LABEL_INPUT: &str = "input";
/// A source of an input: a partition.
pub const LABEL_SOURCE: &str = "source";
/// The state of an input or output.
pub const LABEL_STATE: &str = "state";
/// The values of [`LABEL_OUTCOME`].
pub const OUTCOMES: [&str; 3] = ["delivered", "dropped", "dead_lettered"];

/// How a number behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows; the periodic line shows by how much.
    Counter,
    /// It goes up and down; the periodic line shows it as it is.
    Gauge,
    /// A text; never in Prometheus.
    Text,
}

/// A value of a metric.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Count(u64),
    /// Any other number.
    Real(f64),
    /// A text.
    Text(String),
}

/// One line of the Prometheus exposition, without its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series {
    /// Name of the family.
    pub name: &'static str,
    /// The labels that distinguish it within its family.
    pub labels: &'static [(&'static str, &'static str)],
}

/// One number of the program.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its dotted name in `/stats`, if it has one there.
    pub stats: Option<&'static str>,
    /// Its line in `/metrics`, if it has one there.
    pub series: Option<Series>,
    /// How it behaves.
    pub kind: Kind,
    /// Its help text for Prometheus; the first of a family counts.
    pub help: &'static str,
    read: fn(&Snapshot) -> Option<Value>,
}

impl Metric {
    /// Its value; `None` if it is not known, and then it is left out.
    pub fn value(&self, snapshot: &Snapshot) -> Option<Value> {
        (self.read)(snapshot)
    }

    const fn new(
        kind: Kind,
        names: (&'static str, &'static str),
        help: &'static str,
        read: fn(&Snapshot) -> Option<Value>,
    ) -> Self {
        let (stats, prometheus) = names;
        Self {
            stats: if stats.is_empty() { None } else { Some(stats) },
            series: if prometheus.is_empty() {
                None
            } else {
                Some(Series { name: prometheus, labels: &[] })
            },
            kind,
            help,
            read,
        }
    }

    const fn labels(mut self, labels: &'static [(&'static str, &'static str)]) -> Self {
        if let Some(series) = &mut self.series {
            series.labels = labels;
        }
        self
    }
}

/// All metrics. Those of a Prometheus family follow each other.
pub fn metrics() -> impl Iterator<Item = &'static Metric> {
    [ledger::METRICS, lag::METRICS, read::METRICS, output::METRICS, process::METRICS]
        .into_iter()
        .flatten()
}

/// Those of them that each output has for itself.
pub fn output_metrics() -> impl Iterator<Item = &'static Metric> {
    [ledger::METRICS, lag::METRICS, read::METRICS, output::METRICS].into_iter().flatten()
}

/// Those of them that are of the whole process.
pub(crate) fn process_metrics() -> impl Iterator<Item = &'static Metric> {
    process::METRICS.iter()
}

/// Something that only grows: names in `/stats` and Prometheus ("" for none), help, value.
const fn counter(
    stats: &'static str,
    prometheus: &'static str,
    help: &'static str,
    read: fn(&Snapshot) -> Option<Value>,
) -> Metric {
    Metric::new(Kind::Counter, (stats, prometheus), help, read)
}

/// Something that goes up and down.
const fn gauge(
    stats: &'static str,
    prometheus: &'static str,
    help: &'static str,
    read: fn(&Snapshot) -> Option<Value>,
) -> Metric {
    Metric::new(Kind::Gauge, (stats, prometheus), help, read)
}

/// A text, for `/stats` only.
const fn text(stats: &'static str, read: fn(&Snapshot) -> Option<Value>) -> Metric {
    Metric::new(Kind::Text, (stats, ""), "", read)
}

/// A whole number that is always known.
#[expect(clippy::unnecessary_wraps, reason = "what the table's functions return")]
fn count(number: u64) -> Option<Value> {
    Some(Value::Count(number))
}

/// Lines dropped for one reason.
fn dropped(snapshot: &Snapshot, reason: DropReason) -> Option<Value> {
    count(snapshot.ledger.dropped().get(reason))
}

#[cfg(test)]
mod tests;
