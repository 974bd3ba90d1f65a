//! An index for trials: made, filled with other sizes than the configured ones, and removed.

use super::Elasticsearch;
use super::client::Failure;
use super::config::{Auto, Config, Steering};
use super::connection::{Connection, ConnectionError};
use super::manage::Asking;
use super::server::Target;
use crate::selector::Rules;
use crate::trial::{TrialError, TrialSizes, sized};
use http::Method;
use serde_json::{Value, json};
use skidder_event::Format;
use std::sync::Arc;

impl Elasticsearch {
    /// The same for one index, whatever events say, without setting up the server.
    pub(crate) fn in_index(&self, index: &str, pipelines: bool) -> Self {
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
        Self { config: Arc::new(config), installer: None, ..self.clone() }
    }

    /// The same with other sizes.
    pub(crate) fn sized(&self, sizes: TrialSizes) -> Self {
        let config = sized(&*self.config, sizes, |config| {
            (&mut config.workers, &mut config.bulk_max_size, &mut config.compression_level)
        });
        Self { config, ..self.clone() }
    }

    /// Whether all hosts get requests, and more than one at once.
    pub(crate) fn is_balanced(&self) -> bool {
        self.config.loadbalance
    }

    /// The name of the index, if it is the same for all events.
    fn index(&self) -> &str {
        self.config.index.constant().unwrap_or_default()
    }

    /// Makes the index. Pipelines that a template gives to it do not run, unless they were asked for.
    pub(crate) async fn make_index(&self) -> Result<(), TrialError> {
        let none = json!({ "default_pipeline": "_none", "final_pipeline": "_none" });
        let is_asked = self.config.steering == Steering::Pipeline;
        let settings = if is_asked { json!({}) } else { none };
        let body = json!({ "settings": { "index": settings } });
        self.ask_any(Method::PUT, Some(&body), &[200]).await
    }

    /// Removes the index if it is there.
    pub(crate) async fn remove_index(&self) -> Result<(), TrialError> {
        self.ask_any(Method::DELETE, None, &[200, 404]).await
    }

    /// Asks for something about the index, of one host after the other until one answers.
    async fn ask_any(
        &self,
        method: Method,
        body: Option<&Value>,
        good: &[u16],
    ) -> Result<(), TrialError> {
        let path = format!("/{}", self.index());
        let mut failed = Vec::new();
        for target in &self.targets {
            let (status, answer) = match self.ask_one(target, &method, &path, body).await {
                Ok(answered) => answered,
                Err(error) => {
                    failed.push(format!("{}: {error}", target.host));
                    continue;
                }
            };
            if good.contains(&status) {
                return Ok(());
            }
            let failure = Failure::status(status, &answer);
            return Err(TrialError(format!("{}: {method} `{path}`: {failure}", target.host)));
        }
        Err(TrialError(failed.join("; ")))
    }

    async fn ask_one(
        &self,
        target: &Target,
        method: &Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(u16, Vec<u8>), ConnectionError> {
        use super::setup::Ask as _;
        let timeout = self.config.timeout;
        let login = target.login.clone();
        let mut connection = Connection::open(&self.route(target), login, timeout).await?;
        let mut asking = Asking { connection: &mut connection, target, timeout };
        asking.ask(method.clone(), path, body).await
    }
}
