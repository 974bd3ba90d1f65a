//! `add_agent_metadata`: what Elastic Agent adds to the events of an input.

use super::add_fields::AddFields;
use crate::plan::Constants;
use crate::plan::Failure;
use crate::plan::Footprint;
use crate::plan::{Outcome, Processor};
use skidder_config::{Group, Key, Part, Section, settings};
use skidder_event::{EventMut, Map};

settings! {
    /// Settings of `add_agent_metadata`.
    pub(crate) static ADD_AGENT_METADATA = Group::new("processor.add_agent_metadata", "Adds what Elastic Agent says about an input to its events.");

    DATA_STREAM: Part = Key::part("data_stream", &DATA_STREAM_KEYS)
        .required()
        .about("`dataset` (also as `event.dataset`), `namespace` and `type` of `data_stream`; empty \
                ones are left out");
    ELASTIC_AGENT: Part = Key::part("elastic_agent", &ELASTIC_AGENT_KEYS)
        .required()
        .about("`id` (also as `agent.id`), `version` and `snapshot` (default `false`) of \
                `elastic_agent`");
    INPUT_ID: String = Key::new("input_id")
        .about("`@metadata.input_id`");
    STREAM_ID: String = Key::new("stream_id")
        .about("`@metadata.stream_id`");
}

settings! {
    /// Settings of `data_stream`.
    static DATA_STREAM_KEYS = Group::new("processor.data_stream", "The data stream of an input.");

    DATASET: String = Key::new("dataset")
        .about("`data_stream.dataset` and `event.dataset`");
    NAMESPACE: String = Key::new("namespace")
        .about("`data_stream.namespace`");
    TYPE: String = Key::new("type")
        .about("`data_stream.type`");
}

settings! {
    /// Settings of `elastic_agent`.
    static ELASTIC_AGENT_KEYS = Group::new("processor.elastic_agent", "The Elastic Agent.");

    ID: String = Key::new("id")
        .about("`elastic_agent.id` and `agent.id`");
    VERSION: String = Key::new("version")
        .about("`elastic_agent.version`");
    SNAPSHOT: bool = Key::new("snapshot")
        .default(false)
        .about("`elastic_agent.snapshot`");
}

/// Adds constant fields under fixed names.
#[derive(Clone, Debug)]
pub(crate) struct AddAgentMetadata {
    add: AddFields,
}

impl AddAgentMetadata {
    /// `data_stream`, `elastic_agent`, `input_id`, `stream_id`.
    pub(crate) fn read(settings: &Section<'_>) -> Option<Self> {
        let mut fields = Map::new();
        let stream = settings.part(&DATA_STREAM);
        let agent = settings.part(&ELASTIC_AGENT);
        let mut set = |section: &Section<'_>, key: &Key<String>, names: &[&str]| {
            let text = section.get(key).optional().filter(|text| !text.is_empty());
            for name in names.iter().filter(|_| text.is_some()) {
                fields.insert_path(name, text.as_deref().unwrap_or_default());
            }
        };
        set(&stream, &DATASET, &["data_stream.dataset", "event.dataset"]);
        set(&stream, &NAMESPACE, &["data_stream.namespace"]);
        set(&stream, &TYPE, &["data_stream.type"]);
        set(&agent, &ID, &["elastic_agent.id", "agent.id"]);
        set(&agent, &VERSION, &["elastic_agent.version"]);
        set(settings, &INPUT_ID, &["@metadata.input_id"]);
        set(settings, &STREAM_ID, &["@metadata.stream_id"]);
        fields.insert_path("elastic_agent.snapshot", agent.get(&SNAPSHOT).value());
        let mut right = true;
        for key in [DATA_STREAM.name(), ELASTIC_AGENT.name()] {
            if !settings.has(key) {
                settings.problem(key, format!("`{}` is missing", settings.path_of(key)), "");
                right = false;
            }
        }
        right.then(|| Self { add: AddFields::new("", &fields) })
    }
}

impl Processor for AddAgentMetadata {
    fn name(&self) -> &'static str {
        "add_agent_metadata"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        self.add.run(event)
    }

    fn footprint(&self, constants: &Constants) -> Footprint {
        self.add.footprint(constants)
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        self.add.fold(constants)
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn can_fail(&self) -> bool {
        false
    }
}
