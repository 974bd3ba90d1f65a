//! `hints` of a provider, and the input that hints add to.

use crate::settings::common as keys;
use serde_json::json;
use skidder_config::{Node, Position, Problems, Section, Source};

/// Sorts positions of what is in no file behind those of files.
pub(crate) const OUTSIDE: u32 = 1 << 20;

/// `hints`, turned on.
#[derive(Debug)]
pub(crate) struct HintSettings {
    /// `co.elastic`.
    pub(crate) prefix: String,
    /// `logs`.
    pub(crate) key: String,
    /// The input that hints add to, with variables.
    pub(crate) default_config: Node,
    /// The path of `default_config`; `None` if it is the built-in one.
    pub(crate) default_path: Option<String>,
    /// Instead of the built-in one, for a container of Docker whose log driver writes no file.
    pub(crate) api_config: Option<Node>,
    /// Containers without hints are read, too.
    pub(crate) reads_all: bool,
    pub(crate) allow_list: Option<AllowList>,
}

/// `hints.input_allow_list`.
#[derive(Debug)]
pub(crate) struct AllowList {
    pub(crate) types: Vec<String>,
    /// Folders of `default_config.paths`.
    pub(crate) folders: Vec<String>,
}

impl HintSettings {
    /// Reads `hints` and `prefix` of a provider of this type. `None` without hints.
    pub(crate) fn read(provider: &Section<'_>, kind: &str) -> Option<Self> {
        let prefix = provider.get(&keys::PREFIX).value();
        let section = provider.optional_part(&keys::HINTS)?;
        if !section.get(&keys::ENABLED).value() {
            section.off();
            return None;
        }
        let key = section.get(&keys::KEY).value();
        let own = section.any(&keys::DEFAULT_CONFIG);
        if let Some(item) = own.as_ref().filter(|item| !item.is_map()) {
            let message = format!("`{}` is no map", item.path());
            item.problem(message, "write the settings of one input");
        }
        let own = own.filter(skidder_config::Item::is_map);
        if let Some(item) = &own {
            item.node().report_malformed(item.path(), section.problems());
        }
        let path = own.as_ref().map(|item| item.path().to_owned());
        let own = own.map(|item| item.node().clone());
        let enabled = own.as_ref().and_then(|node| node.at("enabled")).and_then(Node::scalar_text);
        let reads_all = enabled.is_none_or(|text| !matches!(text, "false" | "off" | "no"));
        let rest = own.map(|node| node.without("enabled"));
        let own = rest.filter(|node| node.as_map().is_some_and(|map| !map.is_empty()));
        let is_docker = kind == "docker";
        let api_config = (is_docker && own.is_none()).then(|| built_in_api(provider));
        let default_path = path.filter(|_| own.is_some());
        let default_config = own.unwrap_or_else(|| built_in_of(kind));
        let types = section.get(&keys::ALLOWED_TYPES).value();
        let folders = folders(&default_config);
        let allow_list = section.get(&keys::ALLOWS).value().then_some(AllowList { types, folders });
        let prefix = prefix.trim_end_matches('.').to_owned();
        Some(Self { prefix, key, default_config, default_path, api_config, reads_all, allow_list })
    }

    /// The input that hints add to for a container with this log driver, and what there is to say about it.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn default_of(&self, driver: &str) -> Result<(&Node, Option<String>), String> {
        if FILE_DRIVERS.contains(&driver) {
            return Ok((&self.default_config, None));
        }
        if driver == "none" {
            return Err("the log driver of the container is `none`: there is no log".to_owned());
        }
        let writes = format!("the log driver of the container is `{driver}`, which writes no file");
        if let Some(config) = &self.api_config {
            return Ok((config, Some(format!("{writes}: its log is read through Docker's API"))));
        }
        let reads_api = self.default_config.at("type").and_then(Node::text) == Some("docker_logs");
        let hint = "leave `hints.default_config` out, and such a log is read through Docker's API";
        let note = (!reads_api)
            .then(|| format!("{writes} that `hints.default_config` could read; {hint}"));
        Ok((&self.default_config, note))
    }
}

fn built_in_of(kind: &str) -> Node {
    if kind == "nomad" { crate::nomad::built_in() } else { built_in() }
}

/// The input of a container without hints: its log, as the kubelet and as Docker name it. `close.on_state_change.removed`
/// is off because a log may be removed before it is read to its end.
fn built_in() -> Node {
    let value = json!({
        "type": "filestream",
        "id": "container-logs-${data.container.id}",
        "prospector.scanner": { "fingerprint.enabled": true, "symlinks": true },
        "close.on_state_change.removed": false,
        "file_identity.fingerprint": null,
        "take_over": {
            "enabled": true,
            "from_ids": ["kubernetes-container-logs-${data.container.id}"],
        },
        "parsers": [{ "container": { "stream": "all", "format": "auto" } }],
        "paths": [
            "/var/log/containers/*-${data.container.id}.log",
            "/var/lib/docker/containers/${data.container.id}/*-json.log",
        ],
    });
    let position = Position::whole(&Source::new(OUTSIDE, "the built-in `hints.default_config`"));
    Node::from_json(&value, &position).with_levels(&Problems::new()).with_variables()
}

/// Log drivers that write files that can be read; a driver that is not known counts as the default one.
const FILE_DRIVERS: [&str; 2] = ["", "json-file"];

/// The input of a container without hints whose log driver writes no file: through the API that the provider uses.
fn built_in_api(provider: &Section<'_>) -> Node {
    let value = json!({
        "type": "docker_logs",
        "id": "container-logs-${data.container.id}",
        "ids": ["${data.container.id}"],
    });
    let position = Position::whole(&Source::new(OUTSIDE, "the built-in input for Docker's API"));
    let config = Node::from_json(&value, &position).with_levels(&Problems::new());
    let mut config = config.with_variables();
    for key in ["host", "ssl"] {
        if let Some(item) = provider.item(key) {
            config.set_at(key, item.node().clone());
        }
    }
    config
}

/// The folders above the first variable or pattern of each path.
fn folders(config: &Node) -> Vec<String> {
    let Some(paths) = config.at("paths") else { return Vec::new() };
    let texts = paths.as_list().map_or_else(
        || paths.text().into_iter().collect::<Vec<&str>>(),
        |list| list.iter().filter_map(Node::text).collect(),
    );
    let folder = |text: &str| {
        let end = text.find(['*', '?', '[', '{', '$']).unwrap_or(text.len());
        text[..end].rfind('/').map(|slash| text[..=slash].to_owned())
    };
    texts.into_iter().filter_map(folder).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_end_before_patterns_and_variables() {
        assert_eq!(folders(&built_in()), ["/var/log/containers/", "/var/lib/docker/containers/"]);
    }
}
