//! `setup` of the configuration. Files that it names are read at once.

use super::declared::{
    self, IN_DSL, IN_ILM, IN_TEMPLATE, NAME, PIPELINES_ENABLED, SETUP, SETUP_DASHBOARDS,
    SETUP_KIBANA, dsl, ilm,
};
use super::mapping::{self, Mapped};
use super::template::{Body, Template};
use super::{Lifecycle, Setup};
use serde_json::{Value, json};
use skidder_config::{Key, Section, Settings};
use skidder_event::Format;
use skidder_os::read_to_end;
use skidder_outputs::Context;
use std::path::{Path, PathBuf};

/// Largest file that is read.
const FILE_BYTES_MAX: usize = 16 << 20;
/// Over the templates that Elasticsearch brings itself, as in libbeat's `template/config.go`.
pub(super) const PRIORITY: u32 = 150;
/// Name of the file with fields that comes with Filebeat.
const STOCK_FIELDS: &str = "fields.yml";

impl Setup {
    /// Reads the section; reports mistakes there. `directory` is where relative paths begin (`path.config`).
    pub fn read(section: &Section<'_>, context: &Context, directory: &Path) -> Self {
        section.declared_by(&SETUP);
        let files = Files { context, directory };
        let setup = Self {
            template: files.template(&section.part(&IN_TEMPLATE)),
            ilm: files.ilm(&section.part(&IN_ILM)),
            dsl: files.dsl(&section.part(&IN_DSL)),
            loads_pipelines: section.get(&PIPELINES_ENABLED).value(),
            pipelines: super::Pipelines::default(),
        };
        // The program reads them.
        section.accept_key(&SETUP_DASHBOARDS);
        section.accept_key(&SETUP_KIBANA);
        setup
    }
}

struct Files<'a> {
    context: &'a Context,
    directory: &'a Path,
}

impl Files<'_> {
    fn template(&self, section: &Section<'_>) -> Option<Template> {
        use declared::{json as own, template as key};
        let enabled = section.get(&key::ENABLED).value();
        let is_named = section.has_key(&key::NAME) && section.has_key(&key::PATTERN);
        let name = self.name(section, &key::NAME, NAME);
        let pattern = self.name(section, &key::PATTERN, NAME);
        let pattern = if pattern.is_empty() { format!("{name}*") } else { pattern };
        section.get(&key::TYPE).value();
        let json = section.part(&key::OWN);
        let own = json.get(&own::ENABLED).value().then(|| {
            let body = json.get(&own::PATH).try_map(|path| self.json(&path)).required();
            (json.get(&own::NAME).required(), body)
        });
        for key in [own::PATH.name(), own::NAME.name()] {
            json.accept(key);
        }
        json.finish();
        let fields = section.get(&key::FIELDS).optional();
        let fields = fields.filter(|path| !self.is_stock(section, path));
        let fields = fields.and_then(|path| {
            let message =
                |error| format!("`{}` is `{}`; {error}", section.path_of("fields"), path.display());
            self.fields(&path).map_err(|error| section.problem("fields", message(error), "")).ok()
        });
        let appended = section.any(&key::APPEND_FIELDS).and_then(|item| {
            match mapping::read(item.node(), false) {
                Ok(mapped) => Some(mapped),
                Err(error) => {
                    item.problem(format!("`{}`: {error}", item.path()), "");
                    None
                }
            }
        });
        let part = |key| section.get(key).optional().map_or(Value::Null, |it| Value::from(&it));
        let made = Body::Made {
            fields,
            appended: appended.unwrap_or_default(),
            index: part(&key::INDEX),
            source: part(&key::SOURCE),
        };
        let template = Template {
            name,
            pattern,
            is_named,
            overwrite: section.get(&key::OVERWRITE).value(),
            priority: section.get(&key::PRIORITY).value(),
            body: made,
        };
        let template = match own {
            Some((name, body)) => {
                Template { name, body: Body::Json(body), is_named: true, ..template }
            }
            None => template,
        };
        enabled.then_some(template)
    }

    fn ilm(&self, section: &Section<'_>) -> Lifecycle {
        let policy = json!({ "policy": { "phases": { "hot": { "actions": {
            "rollover": { "max_primary_shard_size": "50gb", "max_age": "30d" },
        } } } } });
        let enabled = section.get(&ilm::ENABLED).value();
        let name = self.name(
            section,
            &ilm::POLICY_NAME,
            ilm::POLICY_NAME.default_value().unwrap_or_default(),
        );
        let check_exists = section.get(&ilm::CHECK_EXISTS).value();
        let overwrite = section.get(&ilm::OVERWRITE).value();
        let policy = self.policy(section, &ilm::POLICY_FILE, policy);
        Lifecycle { enabled, name, policy, check_exists, overwrite }
    }

    fn dsl(&self, section: &Section<'_>) -> Lifecycle {
        let enabled = section.get(&dsl::ENABLED).value();
        let default = json!({ "data_retention": "7d" });
        Lifecycle {
            enabled,
            name: String::new(),
            policy: self.policy(section, &dsl::POLICY_FILE, default),
            check_exists: true,
            overwrite: section.get(&dsl::OVERWRITE).value(),
        }
    }

    /// The policy in a file, or the default.
    fn policy(&self, section: &Section<'_>, key: &Key<PathBuf>, default: Value) -> Value {
        let policy = section.get(key).try_map(|path| self.json(&path)).optional();
        policy.unwrap_or(default)
    }

    /// A name in which only the beat and its version vary, as in libbeat's `template.New`.
    fn name(&self, section: &Section<'_>, key: &Key<String>, default: &str) -> String {
        let bound = |text: String| {
            let mut format = Format::parse(&text).map_err(|error| error.to_string())?;
            format.bind(|path| match path {
                "agent.version" | "beat.version" | "observer.version" => {
                    Some(self.context.version.clone())
                }
                "agent.name" | "beat.name" | "observer.name" => Some(self.context.beat.clone()),
                _ => None,
            });
            let name = format.constant().map(str::to_lowercase);
            name.ok_or_else(|| "only `agent.name` and `agent.version` vary here".to_owned())
        };
        let setting = section.get(key).try_map(bound);
        setting.optional().unwrap_or_else(|| bound(default.to_owned()).unwrap_or_default())
    }

    fn read(&self, path: &Path) -> Result<String, String> {
        let path = self.directory.join(path);
        let unreadable =
            |error: std::io::Error| format!("`{}` cannot be read: {error}", path.display());
        let file = self.context.fs.open(&path).map_err(unreadable)?;
        let text = read_to_end(&*file, FILE_BYTES_MAX).map_err(unreadable)?;
        String::from_utf8(text).map_err(|_| format!("`{}` is not in UTF-8", path.display()))
    }

    fn json(&self, path: &Path) -> Result<Value, String> {
        let text = self.read(path)?;
        let value: Result<Value, _> = serde_json::from_str(&text);
        value.map_err(|error| format!("`{}` is not JSON: {error}", path.display()))
    }

    /// A `fields.yml`.
    /// Whether it is the file that comes with Filebeat, and is not there: its fields are ours.
    fn is_stock(&self, section: &Section<'_>, path: &Path) -> bool {
        let there = self.context.fs.metadata(&self.directory.join(path)).is_ok();
        if there || path.file_name().is_none_or(|name| name != STOCK_FIELDS) {
            return false;
        }
        let message =
            format!("`{}` is `{}`, which is not there", section.path_of("fields"), path.display());
        section.warning("fields", message, "leave it out: the fields of this file are built in");
        true
    }

    fn fields(&self, path: &Path) -> Result<Mapped, String> {
        let text = self.read(path)?;
        let name = path.display().to_string();
        let settings = Settings::parse(&name, &text).map_err(|problems| problems.to_string())?;
        mapping::read(settings.node(), true).map_err(|error| format!("`{name}`: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Enabled;
    use super::*;
    use crate::testing::context;
    use skidder_config::Problems;

    fn setup(text: &str) -> (Setup, String) {
        let problems = Problems::new();
        let settings = Settings::parse("x", text).unwrap();
        let root = settings.root(&problems);
        let section = root.section("setup");
        let setup = Setup::read(&section, &context(), Path::new(env!("CARGO_MANIFEST_DIR")));
        section.finish();
        root.finish();
        (setup, problems.to_string())
    }

    #[test]
    fn without_settings_the_template_is_filebeats() {
        let (setup, problems) = setup("{}");
        assert_eq!(problems, "");
        let template = setup.template.unwrap();
        assert_eq!(
            (template.name.as_str(), template.pattern.as_str()),
            ("filebeat-9.5.0", "filebeat-9.5.0")
        );
        assert_eq!((template.priority, template.overwrite, template.is_named), (150, false, false));
        assert_eq!((setup.ilm.enabled, setup.ilm.name.as_str()), (Enabled::Auto, "filebeat"));
        let rollover = &setup.ilm.policy["policy"]["phases"]["hot"]["actions"]["rollover"];
        assert_eq!(*rollover, json!({ "max_primary_shard_size": "50gb", "max_age": "30d" }));
        assert!(setup.ilm.check_exists && !setup.ilm.overwrite);
        let body = template.render(&context(), Some("filebeat"), None);
        assert_eq!(body["index_patterns"], json!(["filebeat-9.5.0"]));
        assert_eq!((&body["priority"], &body["data_stream"]), (&json!(150), &json!({})));
        let index = &body["template"]["settings"]["index"];
        assert_eq!(index["lifecycle"]["name"], "filebeat");
        assert_eq!(
            (&index["refresh_interval"], &index["mapping"]["total_fields"]["limit"]),
            (&json!("5s"), &json!(10_000))
        );
        let mappings = &body["template"]["mappings"];
        assert_eq!(mappings["_meta"], json!({ "beat": "filebeat", "version": "9.5.0" }));
        assert_eq!(mappings["properties"]["message"]["type"], "match_only_text");
        assert_eq!(mappings["properties"]["log"]["properties"]["offset"]["type"], "long");
        assert_eq!(mappings["properties"]["host"]["properties"]["ip"]["type"], "ip");
        let templates = mappings["dynamic_templates"].as_array().unwrap();
        assert!(templates.last().unwrap().get("strings_as_keyword").is_some());
    }

    #[test]
    fn a_name_alone_leaves_the_pattern_as_it_is() {
        let (setup, _) = setup("setup.template.name: mine");
        let template = setup.template.unwrap();
        assert_eq!((template.name.as_str(), template.pattern.as_str()), ("mine", "filebeat-9.5.0"));
    }

    #[test]
    fn settings_of_the_template_stand_over_ours() {
        let (setup, problems) = setup(
            "setup:
  template:
    name: mine-%{[agent.version]}
    pattern: mine-%{[agent.version]}-*
    overwrite: true
    priority: 200
    append_fields: [{name: app.id, type: long}]
    settings:
      index: {number_of_shards: 1, refresh_interval: 30s, lifecycle.name: other}
      _source.enabled: true
  ilm: {enabled: true, policy_name: own, check_exists: false, overwrite: true}
  dsl: {enabled: false, overwrite: true}",
        );
        assert_eq!(problems, "");
        let template = setup.template.unwrap();
        assert!(template.is_named && template.overwrite);
        let body =
            template.render(&context(), Some("own"), Some(&json!({ "data_retention": "7d" })));
        assert_eq!(
            (&body["priority"], &body["index_patterns"][0]),
            (&json!(200), &json!("mine-9.5.0-*"))
        );
        let index = &body["template"]["settings"]["index"];
        assert_eq!(
            (&index["number_of_shards"], &index["refresh_interval"]),
            (&json!(1), &json!("30s"))
        );
        assert_eq!(index["lifecycle"]["name"], "other");
        assert_eq!(body["template"]["mappings"]["_source"], json!({ "enabled": true }));
        assert_eq!(body["template"]["lifecycle"], json!({ "data_retention": "7d" }));
        let app = &body["template"]["mappings"]["properties"]["app"]["properties"]["id"];
        assert_eq!(*app, json!({ "type": "long" }));
        assert_eq!((setup.ilm.enabled, setup.ilm.name.as_str()), (Enabled::Yes, "own"));
        assert!(!setup.ilm.check_exists && setup.ilm.overwrite);
        assert_eq!((setup.dsl.enabled, setup.dsl.overwrite), (Enabled::No, true));
    }

    #[test]
    fn files_replace_fields_templates_and_policies() {
        let (setup, problems) = setup(
            "setup:
  template.fields: testdata/setup/fields.yml
  ilm.policy_file: testdata/setup/policy.json
  dsl.policy_file: testdata/setup/policy.json",
        );
        assert_eq!(problems, "");
        let body = setup.template.unwrap().render(&context(), None, None);
        let properties = &body["template"]["mappings"]["properties"];
        assert_eq!(*properties, json!({ "mine": { "type": "long" } }));
        assert_eq!(setup.ilm.policy, json!({ "policy": { "phases": {} } }));
        assert_eq!(setup.dsl.policy, setup.ilm.policy);
        let (setup, problems) = self::setup(
            "setup.template: {json: {enabled: true, name: given, path: testdata/setup/policy.json}}",
        );
        assert_eq!(problems, "");
        let template = setup.template.unwrap();
        assert_eq!(template.name, "given");
        assert_eq!(
            template.render(&context(), Some("x"), None),
            json!({ "policy": { "phases": {} } })
        );
        assert_eq!(self::setup("setup.template.enabled: false").0.template, None);
    }

    #[test]
    fn mistakes_in_setup_are_told() {
        for (text, said) in [
            ("setup.template.name: '%{[message]}'", "only `agent.name`"),
            ("setup.template.fields: nothing.yml", "cannot be read"),
            ("setup.ilm.policy_file: testdata/setup/fields.yml", "is not JSON"),
            ("setup.template.append_fields: [{type: ip}]", "no `name`"),
            ("setup.template.type: legacy", "setup.template.type"),
            ("setup.ilm.enabled: perhaps", "setup.ilm.enabled"),
            ("setup.template.fields: /none/fields.yml", "the fields of this file are built in"),
            ("setup.template.fields: /none/mine.yml", "cannot be read"),
            ("setup.template.json.enabled: true", "`setup.template.json.path` is missing"),
            ("setup.dsl.data_stream_pattern: x", "setup.dsl.data_stream_pattern"),
            ("setup.dsl.check_exists: true", "setup.dsl.check_exists"),
            ("setup.template.json.data_stream: x", "the first event makes the data stream"),
            ("setup.templat.enabled: true", "did you mean `template`"),
        ] {
            let problems = setup(text).1;
            assert!(problems.contains(said), "{text}: {problems}");
        }
    }
}
