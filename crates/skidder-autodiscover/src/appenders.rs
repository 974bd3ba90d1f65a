//! `appenders`: settings that are added to the inputs of containers that meet a condition.

use crate::fact_names;
use crate::settings::common as keys;
use skidder_config::{Node, Section};
use skidder_processors::Condition;

/// An item of `appenders`.
#[derive(Debug)]
pub(crate) struct Appender {
    pub(crate) condition: Option<Condition>,
    /// The path of its `config`.
    pub(crate) path: String,
    /// What is laid upon a configuration.
    pub(crate) config: Node,
}

impl Appender {
    /// Reads all appenders of a provider of the type `of`.
    pub(crate) fn read_all(provider: &Section<'_>, of: &str) -> Vec<Self> {
        let mut all = Vec::new();
        for (item, section) in provider.part_items(&keys::APPENDERS) {
            let kind = section.get(&keys::APPENDER_TYPE).required();
            if !kind.is_empty() && kind != "config" {
                let message = format!("`{}`: unknown appender `{kind}`", item.path());
                section.problem(keys::APPENDER_TYPE.name(), message, "the only one is `config`");
            }
            let condition = section.item_of(&keys::APPENDER_CONDITION);
            let condition = condition.and_then(|condition| Condition::read(&condition));
            if let Some(condition) = &condition {
                fact_names::check(of, &section, keys::APPENDER_CONDITION.name(), condition);
            }
            let Some(config) = section.any(&keys::APPENDED).filter(|config| config.is_map()) else {
                let message = format!("`{}` has no map `config`", item.path());
                section.problem(
                    keys::APPENDED.name(),
                    message,
                    "write the settings to add under `config`",
                );
                continue;
            };
            config.node().report_malformed(config.path(), section.problems());
            let path = config.path().to_owned();
            all.push(Self { condition, path, config: config.node().clone() });
        }
        all
    }
}
