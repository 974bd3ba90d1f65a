//! `skidder tune`: an output with other sizes than the configured ones, at a place where that does no harm.

use crate::check::Check;
use crate::elasticsearch::Elasticsearch;
use crate::logstash::Logstash;
use skidder_pipeline::Output;
use std::sync::Arc;

/// Sizes that are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrialSizes {
    /// `worker`: requests under way at once, to each host.
    pub workers: usize,
    /// `bulk_max_size`: most events of a request.
    pub events: usize,
    /// `compression_level`.
    pub level: u32,
}

/// Settings with these sizes; `places` says where they stand in them.
pub(crate) fn sized<C: Clone>(
    config: &C,
    sizes: TrialSizes,
    places: fn(&mut C) -> (&mut usize, &mut usize, &mut u32),
) -> Arc<C> {
    let mut config = config.clone();
    let (workers, events, level) = places(&mut config);
    (*workers, *events, *level) = (sizes.workers, sizes.events, sizes.level);
    Arc::new(config)
}

/// What is tried, and where.
#[derive(Debug)]
pub enum Trial {
    /// In an index of its own.
    Elasticsearch(Box<Elasticsearch>),
    /// Where Logstash sends it: it has no place for trials.
    Logstash(Box<Logstash>),
}

/// The server does not make or remove the place of a trial.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TrialError(pub(crate) String);

impl Check {
    /// A trial of this output in the index with this name, which must not be there; with or without the ingest
    /// pipelines of the configuration. `really_send`: also if the events go where all events go. The error says why
    /// there is no trial of it.
    pub fn trial(
        &self,
        index: &str,
        pipelines: bool,
        really_send: bool,
    ) -> Result<Trial, &'static str> {
        match self {
            Self::Elasticsearch(output) => {
                Ok(Trial::Elasticsearch(Box::new(output.in_index(index, pipelines))))
            }
            Self::Logstash(output) if really_send => Ok(Trial::Logstash(output.clone())),
            Self::Logstash(_) => Err("Logstash has no place for trials: what it is sent goes the \
                 way of all events. `--really-send` does that, again and again; take a pipeline of Logstash \
                 that throws events away"),
            Self::Otlp(_) => {
                Err("a collector has no place for trials: what it is sent goes the way of all logs")
            }
            Self::Redis(_) => {
                Err("a list for trials would fill the memory of the Redis server, which \
                 takes what it is sent faster than anybody reads it")
            }
            Self::S3(_) => Err(
                "what costs is an object, whatever is in it: `batch.max_bytes` and the queue say how large it \
                 becomes",
            ),
            Self::File(_) => Err("`output.file` has no sizes to choose"),
            Self::Nothing(_) => Err("this output has no sizes to choose"),
            Self::Other(_) => {
                Err("`output.kafka` has no trial: a request takes what there is when \
                 the one before is answered (`bulk_flush_frequency` says how long it waits for more), and a topic for \
                 trials would be kept by the brokers for days")
            }
        }
    }
}

impl Trial {
    /// The output with these sizes.
    pub fn output(&self, sizes: TrialSizes) -> Box<dyn Output> {
        match self {
            Self::Elasticsearch(output) => Box::new(output.sized(sizes)),
            Self::Logstash(output) => Box::new(output.sized(sizes)),
        }
    }

    /// Whether more than one worker can be at work.
    pub fn has_workers(&self) -> bool {
        match self {
            Self::Elasticsearch(output) => output.is_balanced(),
            Self::Logstash(output) => output.is_balanced(),
        }
    }

    /// Makes the place of the trial, empty, inside a tokio runtime.
    pub async fn prepare(&self) -> Result<(), TrialError> {
        match self {
            Self::Elasticsearch(output) => output.make_index().await,
            Self::Logstash(_) => Ok(()),
        }
    }

    /// Removes the place of the trial with all that is in it, if it is there, inside a tokio runtime.
    pub async fn remove(&self) -> Result<(), TrialError> {
        match self {
            Self::Elasticsearch(output) => output.remove_index().await,
            Self::Logstash(_) => Ok(()),
        }
    }
}
