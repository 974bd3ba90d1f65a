//! The context of every output: facts about the program that it runs in.

use skidder_event::{Base, Batch, Format, Map, Precision, Provenance, Row, SourceId, Text};
use skidder_os::{Fs, RealFs};
use std::fmt;
use std::sync::Arc;

/// The context of every output: facts about the program that it runs in.
#[derive(Clone)]
pub struct Context {
    /// Name of the beat that we stand in for, lower case: `filebeat`.
    pub beat: String,
    /// Compatible version, as in `agent.version`.
    pub version: String,
    /// `name` of the configuration, as in `agent.name`.
    pub agent_name: String,
    /// `agent.id`: of this installation, kept in its data directory.
    pub agent_id: String,
    /// Decimals of `@timestamp`.
    pub precision: Precision,
    /// Where the file output writes and certificates are read.
    pub fs: Arc<dyn Fs>,
}

impl Context {
    /// The context of tests and benchmarks.
    #[doc(hidden)]
    pub fn sample() -> Self {
        Self {
            beat: "filebeat".to_owned(),
            version: "9.5.0".to_owned(),
            agent_name: "here".to_owned(),
            agent_id: "id".to_owned(),
            precision: Precision::Millisecond,
            fs: Arc::new(RealFs),
        }
    }

    /// The text of a field that is the same for the whole process, for format strings.
    pub fn process_field(&self, path: &str) -> Option<String> {
        match path {
            "agent.version" | "beat.version" => Some(self.version.clone()),
            "agent.name" | "beat.name" => Some(self.agent_name.clone()),
            "agent.type" => Some(self.beat.clone()),
            _ => None,
        }
    }

    /// Puts the constants of the process into a format string.
    pub fn bind(&self, format: &mut Format) {
        format.bind(|path| self.process_field(path));
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Context")
            .field("beat", &self.beat)
            .field("version", &self.version)
            .field("agent_name", &self.agent_name)
            .finish_non_exhaustive()
    }
}

/// One event without anything but a time: for format strings that have only dates.
pub fn moment(time: i64) -> Batch {
    let provenance = Provenance::new(SourceId(0), 0..0);
    let base = Arc::new(Base::new(&Map::new(), &Map::new()));
    let mut batch = Batch::new(Vec::new(), true, base, provenance);
    batch.push(Row::new(0, 0, Text::default(), time));
    batch
}
