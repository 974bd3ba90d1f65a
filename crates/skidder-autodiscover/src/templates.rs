//! `templates`: inputs for the containers that meet a condition.

use crate::fact_names;
use crate::settings::common as keys;
use skidder_config::{Node, Position, Section};
use skidder_processors::Condition;

/// An item of `templates`.
#[derive(Debug)]
pub(crate) struct Template {
    pub(crate) condition: Option<Condition>,
    /// Configurations with variables, each with its path.
    pub(crate) configs: Vec<(String, Node)>,
    pub(crate) position: Position,
}

impl Template {
    /// Reads all templates of a provider of the type `kind`.
    pub(crate) fn read_all(provider: &Section<'_>, kind: &str) -> Vec<Self> {
        let mut all = Vec::new();
        for (item, section) in provider.part_items(&keys::TEMPLATES) {
            let configs = section.items_of(&keys::CONFIG);
            if configs.is_empty() {
                let message = format!("`{}` has no `config`", item.path());
                section.problem(
                    keys::CONFIG.name(),
                    message,
                    "list the inputs that it makes under `config`",
                );
            }
            for config in configs.iter().filter(|config| !config.is_map()) {
                let message = format!("`{}` is no input", config.path());
                config.problem(message, "write a map with `type` and the settings of the input");
            }
            for config in &configs {
                config.node().report_malformed(config.path(), section.problems());
            }
            let condition = section.item_of(&keys::CONDITION_OF);
            let condition = condition.and_then(|condition| Condition::read(&condition));
            if let Some(condition) = &condition {
                fact_names::check(kind, &section, keys::CONDITION_OF.name(), condition);
            }
            all.push(Self {
                condition,
                configs: configs
                    .iter()
                    .map(|config| (config.path().to_owned(), config.node().clone()))
                    .collect(),
                position: item.node().position().clone(),
            });
        }
        all
    }
}
