//! `manifest.yml` of a fileset: its variables, its input, its pipelines.

use crate::error::ModuleError;
use crate::template::{Scope, Variables};
use crate::version::Version;
use skidder_config::{Node, Settings, Value};
use std::path::Path;

/// The name of the operating system in a manifest.
const OS: &str = match std::env::consts::OS.as_bytes() {
    b"macos" => "darwin",
    _ => std::env::consts::OS,
};

/// A value for servers before a version.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OldValue {
    pub(crate) variable: String,
    pub(crate) before: Version,
    pub(crate) value: Value,
}

/// A processor of ingest pipelines that the server must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The type of the processor.
    pub processor: String,
    /// The plugin of Elasticsearch that has it.
    pub plugin: String,
}

/// A manifest, read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Manifest {
    /// Names and defaults for this operating system, in the order of the file.
    defaults: Vec<(String, Value)>,
    pub(crate) old_values: Vec<OldValue>,
    /// A template of the path of a template, relative to the folder of the fileset.
    pub(crate) input: String,
    /// The same of pipelines; the first one is that of the input.
    pub(crate) pipelines: Vec<String>,
    pub(crate) requirements: Vec<Requirement>,
}

impl Manifest {
    /// Reads the text of the file at `path`; `settings` are those of the program.
    pub(crate) fn read(settings: &Settings, path: &Path, text: &str) -> Result<Self, ModuleError> {
        let wrong =
            |what: &str| ModuleError::Wrong { path: path.to_owned(), what: what.to_owned() };
        let name = path.display().to_string();
        let tree = settings.part_of_text(&name, text, &[]).map_err(ModuleError::Text)?;
        let root = tree.node().entries();
        let mut defaults = Vec::new();
        let mut old_values = Vec::new();
        for variable in root.get("var").and_then(|node| node.as_list()).unwrap_or_default() {
            let of = variable.entries();
            let Some(name) = of.get("name").and_then(|node| node.text()) else {
                return Err(wrong("a variable has no `name`"));
            };
            let of_os = of.get("os").and_then(|node| node.entries().remove(OS));
            let default = of_os.or_else(|| of.get("default").copied());
            defaults.push((name.to_owned(), default.map_or(Value::Null, Node::to_value)));
            let Some(least) = of.get("min_elasticsearch_version") else { continue };
            let least = least.entries();
            let Some(text) = least.get("version").and_then(|node| node.text()) else { continue };
            let before = Version::parse(text)
                .ok_or_else(|| wrong(&format!("`{text}` is no version, as `7.10.0` is one")))?;
            let value = least.get("value").map_or(Value::Null, |node| node.to_value());
            old_values.push(OldValue { variable: name.to_owned(), before, value });
        }
        let input = root.get("input").and_then(|node| node.text());
        let input = input.ok_or_else(|| wrong("`input` is missing"))?.to_owned();
        let required = root.get("requires").and_then(|node| node.entries().remove("processors"));
        Ok(Self {
            defaults,
            old_values,
            input,
            pipelines: root.get("ingest_pipeline").map_or_else(Vec::new, |node| texts(node)),
            requirements: required
                .and_then(Node::as_list)
                .unwrap_or_default()
                .iter()
                .map(|one| Requirement {
                    processor: text_at(one, "name"),
                    plugin: text_at(one, "plugin"),
                })
                .collect(),
        })
    }

    /// The names of its variables.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.defaults.iter().map(|(name, _)| name.as_str())
    }

    /// The values of all variables: defaults, which may be templates of variables before them, and `own` over them.
    pub(crate) fn variables(
        &self,
        scope: &Scope,
        path: &Path,
        own: &Variables,
    ) -> Result<Variables, ModuleError> {
        let mut variables = scope.variables();
        for (name, value) in &self.defaults {
            let place = format!("{}, variable {name}", path.display());
            let render = |text: &str| scope.render(&place, text, &variables).map(Value::String);
            let value = match value {
                Value::String(text) => render(text)?,
                Value::List(list) => {
                    let resolve = |item: &Value| match item {
                        Value::String(text) => render(text),
                        other => Ok(other.clone()),
                    };
                    Value::List(list.iter().map(resolve).collect::<Result<_, _>>()?)
                }
                other => other.clone(),
            };
            variables.insert(name.clone(), value);
        }
        variables.extend(own.iter().map(|(name, value)| (name.clone(), value.clone())));
        Ok(variables)
    }
}

/// A list of texts; a single one is a list of one.
fn texts(node: &Node) -> Vec<String> {
    let text = |node: &Node| node.text().filter(|text| !text.is_empty()).map(str::to_owned);
    match node.as_list() {
        Some(list) => list.iter().filter_map(text).collect(),
        None => text(node).into_iter().collect(),
    }
}

fn text_at(node: &Node, key: &str) -> String {
    node.entries().get(key).and_then(|node| node.text()).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::Builtins;

    fn scope() -> Scope {
        Scope {
            builtins: Builtins::new("filebeat", "9.5.3", "h"),
            module: "m".into(),
            fileset: "f".into(),
        }
    }

    fn manifest(text: &str) -> Result<Manifest, ModuleError> {
        Manifest::read(&Settings::parse("a.yml", "").unwrap(), Path::new("/m/manifest.yml"), text)
    }

    #[test]
    fn a_default_may_use_variables_before_it_and_depend_on_the_system() {
        let text = "
var:
  - {name: format, default: json}
  - name: paths
    default: ['/x/{{.format}}', 7]
    os.linux: ['/linux/{{.format}}.log', 7]
    os.darwin: [/mac]
  - {name: empty}
  - {name: feature, default: true, min_elasticsearch_version: {version: 7.10.0, value: false}}
ingest_pipeline: ingest/p.yml
input: config/i.yml
requires.processors: [{name: geoip, plugin: ingest-geoip}]
";
        let manifest = manifest(text).unwrap();
        let own = [("format".to_owned(), Value::String("own".to_owned()))].into();
        let variables = manifest.variables(&scope(), Path::new("m"), &own).unwrap();
        let text = |text: &str| Value::String(text.to_owned());
        // As in Filebeat, what the user sets has no effect on defaults.
        assert_eq!(variables["paths"], Value::List(vec![text("/linux/json.log"), Value::Int(7)]));
        assert_eq!(variables["format"], text("own"));
        assert_eq!(variables["empty"], Value::Null);
        assert_eq!(manifest.pipelines, ["ingest/p.yml"]);
        assert_eq!(manifest.old_values[0].before, Version::new(7, 10, 0));
        assert_eq!(manifest.requirements[0].plugin, "ingest-geoip");
    }

    #[test]
    fn a_wrong_manifest_is_an_error_with_its_path() {
        for (text, why) in [
            ("var: [{default: 1}]\ninput: i.yml", "has no `name`"),
            ("var: []", "`input` is missing"),
            ("var: [{name: a, min_elasticsearch_version.version: x}]\ninput: i", "no version"),
            ("var: [", "manifest.yml:2"),
        ] {
            let error = manifest(text).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("/m/manifest.yml"), "{error}");
        }
        let manifest = manifest("var: [{name: a, default: '{{.b}}'}]\ninput: i").unwrap();
        let error =
            manifest.variables(&scope(), Path::new("m.yml"), &Variables::new()).unwrap_err();
        assert!(error.to_string().contains("m.yml, variable a"), "{error}");
    }
}
