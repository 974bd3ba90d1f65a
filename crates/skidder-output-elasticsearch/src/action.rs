//! The action line before each document: `{"create":{"_index":"…"}}`, built once where it is the
//! same for a whole source.
//!
//! The keys of `@metadata` that steer it, their order, and what is lower-cased follow libbeat's
//! `idxmgmt/index_support.go` and `outputs/elasticsearch/client.go`. Two differences: Filebeat skips
//! the output's `pipeline` for an event that has any `@metadata`, here it holds as documented; and
//! `@metadata.alias`, which older ones took as a name, still is one.

use super::config::{Config, Steering};
use super::ids::Ids;
use skidder_event::{Base, Batch, EventRef, Format, Path, ValueRef, write_string};
use skidder_outputs::{Context, Rules, moment};
use skidder_pipeline::Delivery;
use std::sync::Arc;

/// The operation on a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Index,
    /// No document follows.
    Delete,
}

/// Why an event has no action line. It can never be sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ActionError {
    #[error("cannot make the index name: {0}")]
    Index(String),
    #[error("the index name is empty")]
    NoIndex,
    #[error("cannot make the pipeline name: {0}")]
    Pipeline(String),
    #[error("`@metadata.op_type` is `delete`, which needs `@metadata._id`")]
    NoId,
}

/// For which events a line holds. The later ones include the earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Holds {
    /// All untouched events of a base.
    Base,
    /// Those of the same second.
    Second,
    /// This event.
    Event,
}

impl Holds {
    /// For which events a format string gives the same text.
    fn of(format: &Format) -> Self {
        if format.constant().is_some() {
            return Self::Base;
        }
        if !format.is_dated_only() {
            return Self::Event;
        }
        // Dates can have fractions of a second; index names do not use them.
        let text = |nanoseconds: i64| {
            let mut text = Vec::new();
            let batch = moment(nanoseconds);
            format.write(&mut text, batch.event(0)).map(|()| text)
        };
        if text(0) == text(123_456_789) { Self::Second } else { Self::Event }
    }
}

/// Writes action lines. One for each encoder.
#[derive(Debug)]
pub(crate) struct Actions {
    indices: Rules,
    index: Format,
    index_holds: Holds,
    pipelines: Rules,
    pipeline: Option<Format>,
    pipeline_holds: Holds,
    steering: Steering,
    keys: Keys,
    /// The base whose untouched events have `line`.
    base: Option<Arc<Base>>,
    /// The second for which it holds; `None` for ever.
    second: Option<i64>,
    line: Vec<u8>,
    /// Where in `line` the id of an event is put in, if it has none of its own.
    id_at: Option<usize>,
    ids: Option<Ids>,
    operation: Operation,
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct Keys {
    alias: Path,
    index: Path,
    raw_index: Path,
    pipeline: Path,
    id: Path,
    op_type: Path,
}

impl Actions {
    pub(crate) fn new(config: &Config, context: &Context) -> Self {
        let key = |name: &str| {
            Path::parse(&format!("@metadata.{name}")).expect("the names below are paths")
        };
        let bound = |format: &Format| {
            let mut format = format.clone();
            context.bind(&mut format);
            format
        };
        let rules = |rules: &Rules| {
            let mut rules = rules.clone();
            rules.bind(context);
            rules
        };
        let index = bound(&config.index);
        let pipeline = config.pipeline.as_ref().map(bound);
        let keys = Keys {
            alias: key("alias"),
            index: key("index"),
            raw_index: key("raw_index"),
            pipeline: key("pipeline"),
            id: key("_id"),
            op_type: key("op_type"),
        };
        Self {
            indices: rules(&config.indices),
            index_holds: Holds::of(&index),
            index,
            pipelines: rules(&config.pipelines),
            pipeline_holds: pipeline.as_ref().map_or(Holds::Base, Holds::of),
            pipeline,
            steering: config.steering,
            keys,
            base: None,
            second: None,
            line: Vec::new(),
            id_at: None,
            ids: config.exactly_once.then(|| Ids::new(context)),
            operation: Operation::Create,
            scratch: Vec::new(),
        }
    }

    /// The next events are of this delivery.
    pub(crate) fn begin(&mut self, delivery: &Delivery) {
        if let Some(ids) = &mut self.ids {
            ids.begin(delivery);
        }
    }

    /// Appends `line`, with the id of an event if it is to have one.
    #[inline]
    fn append(&self, out: &mut Vec<u8>, batch: &Batch, row: usize) {
        let (Some(at), Some(ids)) = (self.id_at, &self.ids) else {
            out.extend_from_slice(&self.line);
            return;
        };
        out.extend_from_slice(&self.line[..at]);
        out.extend_from_slice(b",\"_id\":\"");
        ids.write(out, batch, row);
        out.push(b'"');
        out.extend_from_slice(&self.line[at..]);
    }

    /// Appends the action line of one event. Nothing is appended on an error.
    #[inline]
    pub(crate) fn write(
        &mut self,
        out: &mut Vec<u8>,
        batch: &Batch,
        row: usize,
    ) -> Result<Operation, ActionError> {
        let event = batch.event(row);
        let own = event.has_own_metadata();
        if !own
            && self.base.as_ref().is_some_and(|base| Arc::ptr_eq(base, batch.base()))
            && self.second.is_none_or(|second| second == second_of(event))
        {
            self.append(out, batch, row);
            return Ok(self.operation);
        }
        // A failure leaves half a line behind.
        self.base = None;
        let (operation, holds) = self.build(event)?;
        self.append(out, batch, row);
        if !own && holds < Holds::Event {
            self.base = Some(Arc::clone(batch.base()));
            self.second = (holds == Holds::Second).then(|| second_of(event));
        }
        self.operation = operation;
        Ok(operation)
    }

    /// Builds `line`; returns also for which events it holds.
    fn build(&mut self, event: EventRef<'_>) -> Result<(Operation, Holds), ActionError> {
        let (index, index_holds) = self.index_name(event)?;
        let (pipeline, pipeline_holds) = self.pipeline_name(event)?;
        let steers = self.steering == Steering::All;
        let id = text(event, &self.keys.id).filter(|id| !id.is_empty() && steers);
        let operation = match text(event, &self.keys.op_type).filter(|_| steers) {
            Some(b"index") => Operation::Index,
            Some(b"delete") if id.is_none() => return Err(ActionError::NoId),
            Some(b"delete") => Operation::Delete,
            _ => Operation::Create,
        };
        let line = &mut self.line;
        line.clear();
        line.extend_from_slice(match operation {
            Operation::Create => b"{\"create\":{\"_index\":",
            Operation::Index => b"{\"index\":{\"_index\":",
            Operation::Delete => b"{\"delete\":{\"_index\":",
        });
        write_string(line, index.as_bytes(), true);
        self.id_at = id.is_none().then_some(line.len());
        if let Some(id) = id {
            line.extend_from_slice(b",\"_id\":");
            write_string(line, id, false);
        }
        if !pipeline.is_empty() && operation != Operation::Delete {
            line.extend_from_slice(b",\"pipeline\":");
            write_string(line, pipeline.as_bytes(), true);
        }
        line.extend_from_slice(b"}}\n");
        Ok((operation, index_holds.max(pipeline_holds)))
    }

    fn index_name(&mut self, event: EventRef<'_>) -> Result<(String, Holds), ActionError> {
        for key in [&self.keys.alias, &self.keys.index, &self.keys.raw_index] {
            if let Some(index) = text(event, key).filter(|_| self.steering == Steering::All) {
                return named(lower(index), Holds::Base);
            }
        }
        // The fields of a rule may be different in each event.
        let mut holds = Holds::Base;
        if !self.indices.is_empty() {
            if self.indices.select(event, &mut self.scratch) {
                return named(lower(&self.scratch), Holds::Event);
            }
            holds = Holds::Event;
        }
        if let Some(constant) = self.index.constant() {
            return named(constant.to_lowercase(), holds);
        }
        self.scratch.clear();
        self.index
            .write(&mut self.scratch, event)
            .map_err(|error| ActionError::Index(error.to_string()))?;
        named(lower(&self.scratch), self.index_holds.max(holds))
    }

    fn pipeline_name(&mut self, event: EventRef<'_>) -> Result<(String, Holds), ActionError> {
        let own = text(event, &self.keys.pipeline).filter(|_| self.steering != Steering::Nothing);
        let (name, holds) = match own {
            Some(name) => (lower(name), Holds::Base),
            None => self.pipeline_of_settings(event)?,
        };
        // Elasticsearch's own name for "none".
        Ok((if name == "_none" { String::new() } else { name }, holds))
    }

    fn pipeline_of_settings(
        &mut self,
        event: EventRef<'_>,
    ) -> Result<(String, Holds), ActionError> {
        let mut holds = Holds::Base;
        if !self.pipelines.is_empty() {
            if self.pipelines.select(event, &mut self.scratch) {
                return Ok((lower(&self.scratch), Holds::Event));
            }
            holds = Holds::Event;
        }
        let Some(format) = &self.pipeline else { return Ok((String::new(), holds)) };
        if let Some(constant) = format.constant() {
            return Ok((constant.to_lowercase(), holds));
        }
        self.scratch.clear();
        format
            .write(&mut self.scratch, event)
            .map_err(|error| ActionError::Pipeline(error.to_string()))?;
        Ok((lower(&self.scratch), self.pipeline_holds.max(holds)))
    }
}

fn named(name: String, holds: Holds) -> Result<(String, Holds), ActionError> {
    if name.is_empty() { Err(ActionError::NoIndex) } else { Ok((name, holds)) }
}

/// Seconds since 1970-01-01 UTC.
fn second_of(event: EventRef<'_>) -> i64 {
    event.row().time.div_euclid(1_000_000_000)
}

fn lower(text: &[u8]) -> String {
    String::from_utf8_lossy(text).to_lowercase()
}

fn text<'a>(event: EventRef<'a>, key: &Path) -> Option<&'a [u8]> {
    match event.get(key) {
        Some(ValueRef::Str(text)) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
