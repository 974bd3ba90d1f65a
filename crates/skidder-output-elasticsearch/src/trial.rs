//! An index for trials: made, filled with other sizes than the configured ones, and removed.

use super::Elasticsearch;
use super::ask::AskError;
use super::config::{Auto, Config, Steering};
use http::Method;
use serde_json::{Value, json};
use skidder_event::Format;
use skidder_outputs::{Rules, Trial, TrialError, TrialFuture, TrialSizes, Tunable, sized};
use skidder_pipeline::Output;
use std::sync::Arc;

impl Tunable for Elasticsearch {
    fn trial(&self, index: &str, pipelines: bool, _: bool) -> Result<Box<dyn Trial>, &'static str> {
        Ok(Box::new(InIndex(self.in_index(index, pipelines))))
    }
}

/// The output in an index of its own.
struct InIndex(Elasticsearch);

impl Trial for InIndex {
    fn output(&self, sizes: TrialSizes) -> Box<dyn Output> {
        Box::new(self.0.sized(sizes))
    }

    fn has_workers(&self) -> bool {
        self.0.config.loadbalance
    }

    fn has_place(&self) -> bool {
        true
    }

    fn prepare(&self) -> TrialFuture<'_> {
        Box::pin(self.0.make_index())
    }

    fn remove(&self) -> TrialFuture<'_> {
        Box::pin(self.0.remove_index())
    }
}

impl Elasticsearch {
    /// The same for one index, whatever index events name, without setting up the server.
    fn in_index(&self, index: &str, pipelines: bool) -> Self {
        let mut config = Config {
            index: Format::parse(index).expect("a name of an index has no `%`"),
            indices: Rules::default(),
            steering: if pipelines { Steering::Pipeline } else { Steering::Nothing },
            exactly_once: false,
            dead_letter_index: None,
            auto: Auto::default(),
            ..Config::clone(&self.config)
        };
        if !pipelines {
            config.pipeline = None;
            config.pipelines = Rules::default();
        }
        Self { config: Arc::new(config), installer: None, pipelines: None, ..self.clone() }
    }

    /// The same with other sizes.
    fn sized(&self, sizes: TrialSizes) -> Self {
        let config = sized(&*self.config, sizes, |config| {
            (&mut config.workers, &mut config.bulk_max_size, &mut config.compression_level)
        });
        Self { config, ..self.clone() }
    }

    /// The name of the index, if it is the same for all events.
    fn index(&self) -> &str {
        self.config.index.constant().unwrap_or_default()
    }

    /// Makes the index. Pipelines of its template do not run, unless they are configured.
    async fn make_index(&self) -> Result<(), TrialError> {
        let none = json!({ "default_pipeline": "_none", "final_pipeline": "_none" });
        let is_asked = self.config.steering == Steering::Pipeline;
        let settings = if is_asked { json!({}) } else { none };
        let body = json!({ "settings": { "index": settings } });
        self.ask_of_index(Method::PUT, Some(&body), &[200]).await
    }

    /// Removes the index if it is there.
    async fn remove_index(&self) -> Result<(), TrialError> {
        self.ask_of_index(Method::DELETE, None, &[200, 404]).await
    }

    /// Sends a request about the index.
    async fn ask_of_index(
        &self,
        method: Method,
        body: Option<&Value>,
        good: &[u16],
    ) -> Result<(), TrialError> {
        let path = format!("/{}", self.index());
        match self.ask_any(method, &path, body, good).await {
            Ok(_) => Ok(()),
            Err(AskError(error)) => Err(TrialError(error)),
        }
    }
}
