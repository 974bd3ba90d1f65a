//! The output, ready to run.

use crate::config::Config;
use crate::connect::{Dialer, Relay};
use crate::native::{Connect, Producer};
use crate::properties::{self, Properties, SetupError};
use crate::read::read;
use crate::version::Version;
use crate::work::{Work, Writer};
use skidder_config::Section;
use skidder_os::Timestamp;
use skidder_outputs::elasticsearch::QueueSettings;
use skidder_outputs::{Built, Check, Codec, Context};
use skidder_pipeline::{Feed, Output, OutputFuture, QueueLimits};
use skidder_tls::TlsClient;
use std::fmt;
use std::sync::Arc;
use tokio::sync::Notify;

/// What a producer is made of.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) config: Arc<Config>,
    pub(crate) context: Context,
    properties: Properties,
    /// For encryption and logins.
    pub(crate) dialer: Arc<Dialer>,
    /// Whether records have the time of their event.
    pub(crate) timestamps: bool,
}

impl Setup {
    /// A producer whose bounds follow those of the queue. Connects in the background.
    pub(crate) fn producer(
        &self,
        limits: &QueueLimits,
        ring: &Arc<Notify>,
    ) -> Result<Producer, String> {
        let mut properties = self.properties.clone();
        properties::bind(&mut properties, &self.config, limits);
        // A pair of sockets has no such option; where it ends, TCP has it.
        let nagle = if self.dialer.is_needed() { "false" } else { "true" };
        properties.push(("socket.nagle.disable", nagle.to_owned()));
        Producer::new(&properties, &self.config.headers, self.connect(), Arc::clone(ring))
    }

    /// Must be called within a runtime.
    fn connect(&self) -> Option<Arc<dyn Connect>> {
        let runtime = tokio::runtime::Handle::current();
        let relay = || Arc::new(Relay::new(Arc::clone(&self.dialer), runtime)) as Arc<dyn Connect>;
        self.dialer.is_needed().then(relay)
    }

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
            topic_text: Vec::new(),
            key_text: Vec::new(),
            value: Vec::new(),
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
    /// Reads certificates and tries the settings on librdkafka; connects to nothing.
    pub fn new(config: Config, context: Context) -> Result<Self, SetupError> {
        let properties = properties::properties(&config);
        let timestamps = config.version >= Version::TIMESTAMPS;
        let tls = match &config.tls {
            Some(tls) if tls.enabled => Some(TlsClient::new(tls, Arc::clone(&context.fs))?),
            Some(_) | None => None,
        };
        let dialer = Arc::new(Dialer::new(&config, tls));
        let setup = Setup { config: Arc::new(config), context, properties, dialer, timestamps };
        // Without brokers: it only reads its settings.
        Producer::new(&setup.properties, &setup.config.headers, None, Arc::default())
            .map_err(SetupError::Refused)?;
        Ok(Self(setup))
    }
}

/// `output.kafka` from its section. Mistakes are told to the section's problems.
pub fn build(section: &Section<'_>, context: &Context, _: Timestamp) -> Option<Built> {
    let config = read(section)?;
    let output = match Kafka::new(config, context.clone()) {
        Ok(output) => output,
        Err(error) => {
            section.problem(error.setting(), error.to_string(), "");
            return None;
        }
    };
    let check = Check::Other(Box::new(output.clone()));
    Some(Built { output: Box::new(output), check, queue: QueueSettings::default() })
}

impl Output for Kafka {
    fn kind(&self) -> &'static str {
        "kafka"
    }

    fn run(self: Box<Self>, feed: Feed) -> OutputFuture {
        Box::pin(async move {
            match Work::new(self.0, feed) {
                Ok(work) => work.run().await,
                // The same settings were tried at the start; the system has no more threads or memory.
                Err(error) => tracing::error!(error, "cannot set librdkafka up"),
            }
        })
    }
}
