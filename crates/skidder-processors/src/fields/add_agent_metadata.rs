//! `add_agent_metadata`: what Elastic Agent says about the events of an input.

use super::add_fields::AddFields;
use crate::plan::Constants;
use crate::plan::Failure;
use crate::plan::Footprint;
use crate::plan::{Outcome, Processor};
use skidder_config::Section;
use skidder_event::{EventMut, Map};

/// Adds constant fields under fixed names.
#[derive(Clone, Debug)]
pub(crate) struct AddAgentMetadata {
    add: AddFields,
}

impl AddAgentMetadata {
    /// `data_stream`, `elastic_agent`, `input_id`, `stream_id`.
    pub(crate) fn read(settings: &Section<'_>) -> Option<Self> {
        let mut fields = Map::new();
        let mut set = |key: &str, name: &str| {
            let text = settings.string(key).optional().filter(|text| !text.is_empty());
            if let Some(text) = &text {
                fields.insert_path(name, text.as_str());
            }
        };
        set("data_stream.dataset", "data_stream.dataset");
        set("data_stream.dataset", "event.dataset");
        set("data_stream.namespace", "data_stream.namespace");
        set("data_stream.type", "data_stream.type");
        set("elastic_agent.id", "elastic_agent.id");
        set("elastic_agent.id", "agent.id");
        set("elastic_agent.version", "elastic_agent.version");
        set("input_id", "@metadata.input_id");
        set("stream_id", "@metadata.stream_id");
        fields.insert_path(
            "elastic_agent.snapshot",
            settings.bool("elastic_agent.snapshot").or(false),
        );
        let mut right = true;
        for key in ["data_stream", "elastic_agent"] {
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
