//! The output, ready to run.

use crate::config::{Compression, Config};
use crate::connect::{DialSettings, Dialer};
use crate::read::read;
use crate::record;
use crate::work::{Work, Writer};
use skidder_config::Section;
use skidder_kafka::version::Version;
use skidder_outputs::{Built, Codec, Context, QueueSettings};
use skidder_pipeline::{Feed, Output, OutputFuture};
use skidder_tls::{TlsClient, TlsError};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

/// Why the settings cannot be used. All are mistakes of the configuration.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A file or setting of `ssl` is wrong.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl SetupError {
    /// The key to complain about, inside `output.kafka`.
    pub fn setting(&self) -> &'static str {
        match self {
            Self::Tls(error) => error.setting(),
        }
    }

    /// Reports it to the section of the output.
    pub fn report(&self, section: &Section<'_>) {
        match self {
            Self::Tls(error) => error.report(section),
        }
    }
}

/// Why `skidder tune` does not try it.
const NO_TRIAL: &str = "`output.kafka` has no trial: a request takes what there is when the one before is answered \
                        (`bulk_flush_frequency` says how long it waits for more), and a topic for trials would be kept \
                        by the brokers for days";

/// The parts of a producer.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) config: Arc<Config>,
    pub(crate) context: Context,
    pub(crate) dialer: Arc<Dialer>,
}

impl Setup {
    pub(crate) fn writer(&self) -> Writer {
        let mut selector = self.config.topics.clone();
        selector.bind(&self.context);
        let mut key = self.config.key.clone();
        if let Some(key) = &mut key {
            self.context.bind(key);
        }
        Writer {
            codec: Codec::new(&self.config.codec, &self.context, &self.context.beat),
            key,
            selector,
            timestamps: self.config.version >= Version::TIMESTAMPS,
            headers: record::headers(&self.config.headers),
            topic_text: Vec::new(),
            key_text: Vec::new(),
            has_key: false,
        }
    }
}

/// The output, ready to run on a tokio runtime with time and I/O enabled.
#[derive(Clone)]
pub struct Kafka(pub(crate) Setup);

impl fmt::Debug for Kafka {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Kafka").field(&self.0.config).finish()
    }
}

impl Kafka {
    /// Reads certificates; connects to nothing.
    pub fn new(config: Config, context: Context) -> Result<Self, SetupError> {
        let tls = match &config.tls {
            Some(tls) if tls.enabled => Some(TlsClient::new(tls, Arc::clone(&context.fs))?),
            Some(_) | None => None,
        };
        let of = DialSettings {
            client_id: config.client_id.clone(),
            timeout: config.timeout,
            keep_alive: config.keep_alive,
        };
        let dialer = Arc::new(Dialer::new(tls, config.credentials.clone(), of));
        Ok(Self(Setup { config: Arc::new(config), context, dialer }))
    }
}

/// `output.kafka` from its section. Reports mistakes to the section's problems.
pub fn build(section: &Section<'_>, context: &Context) -> Option<Built> {
    let config = read(section)?;
    let output = match Kafka::new(config, context.clone()) {
        Ok(output) => output,
        Err(error) => {
            error.report(section);
            return None;
        }
    };
    Some(Built { output: Box::new(output), tuning: Err(NO_TRIAL), queue: QueueSettings::default() })
}

impl Output for Kafka {
    fn kind(&self) -> &'static str {
        "kafka"
    }

    /// A batch is compressed while the next one is written.
    fn parallelism(&self) -> usize {
        if self.0.config.compression == Compression::None {
            1
        } else {
            1 + self.0.config.hosts.len()
        }
    }

    fn check<'a>(
        &'a self,
        report: &'a mut (dyn FnMut(&str) + Send),
    ) -> Pin<Box<dyn Future<Output = bool> + 'a>> {
        Box::pin(self.check_all(report))
    }

    fn run(self: Box<Self>, feed: Feed) -> OutputFuture {
        Box::pin(async move { Work::new(self.0, feed).run().await })
    }
}
