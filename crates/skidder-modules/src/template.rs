//! Go's `text/template` with the functions that Filebeat adds for modules.

use crate::error::ModuleError;
use gotmpl::{MissingKey, Template, TemplateError, Value as Go};
use serde_json::Value as Json;
use skidder_config::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most iterations of the loops of a template, so that a hostile one ends.
const ITERATIONS_MAX: u64 = 1_000_000;

/// Variables of a fileset, by name.
pub(crate) type Variables = BTreeMap<String, Value>;

/// The name below which templates find [`Builtins`].
const BUILTIN: &str = "builtin";

/// What every template knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Builtins {
    /// First part of the names of pipelines, `filebeat`.
    pub prefix: String,
    /// The version in the names of pipelines.
    pub version: String,
    /// The name of the host, up to its first dot.
    pub hostname: String,
    /// What follows that dot.
    pub domain: String,
}

impl Builtins {
    /// With the name of the host split at its first dot.
    pub fn new(prefix: &str, version: &str, host: &str) -> Self {
        let (hostname, domain) = host.split_once('.').unwrap_or((host, ""));
        Self {
            prefix: prefix.to_owned(),
            version: version.to_owned(),
            hostname: hostname.to_owned(),
            domain: domain.to_owned(),
        }
    }
}

/// A fileset, for its templates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scope {
    pub(crate) builtins: Builtins,
    pub(crate) module: String,
    pub(crate) fileset: String,
}

impl Scope {
    /// The variable `builtin`.
    pub(crate) fn variables(&self) -> Variables {
        let text = |name: &str, value: &str| (name.to_owned(), Value::String(value.to_owned()));
        let Builtins { prefix, version, hostname, domain } = &self.builtins;
        let map = [
            text("prefix", prefix),
            text("hostname", hostname),
            text("domain", domain),
            text("module", &self.module),
            text("fileset", &self.fileset),
            text("beatVersion", version),
        ];
        BTreeMap::from([(BUILTIN.to_owned(), Value::Map(map.into()))])
    }

    /// The name of a pipeline on the server, from the path of its file.
    pub(crate) fn pipeline_id(&self, path: &str) -> String {
        let base = path.rsplit('/').next().unwrap_or(path);
        let stem = base.rsplit_once('.').map_or(base, |(stem, _)| stem);
        let Builtins { prefix, version, .. } = &self.builtins;
        format!("{prefix}-{version}-{}-{}-{stem}", self.module, self.fileset)
    }

    /// Executes a template, called `name` in errors, whose actions stand between `{{` and `}}`.
    pub(crate) fn render(
        &self,
        name: &str,
        text: &str,
        variables: &Variables,
    ) -> Result<String, ModuleError> {
        self.execute(name, text, variables, ("{{", "}}"))
    }

    /// The same for a pipeline, in which they stand between `{<` and `>}`.
    pub(crate) fn render_pipeline(
        &self,
        name: &str,
        text: &str,
        variables: &Variables,
    ) -> Result<String, ModuleError> {
        self.execute(name, text, variables, ("{<", ">}"))
    }

    fn execute(
        &self,
        name: &str,
        text: &str,
        variables: &Variables,
        (left, right): (&str, &str),
    ) -> Result<String, ModuleError> {
        // Most texts are no templates.
        if !text.contains(left) {
            return Ok(text.to_owned());
        }
        let scope = self.clone();
        let mut template = Template::new("text");
        if text.contains("%T") {
            template = template.func("printf", printf);
        }
        let rendered = template
            .delims(left, right)
            .missing_key(MissingKey::Error)
            .max_range_iters(ITERATIONS_MAX)
            .func("inList", in_list)
            .func("tojson", to_json_text)
            .func("IngestPipeline", move |arguments| match arguments {
                [Go::String(path)] => Ok(Go::String(scope.pipeline_id(path).into())),
                _ => Err(expects("IngestPipeline", "the name of a pipeline")),
            })
            .parse(text)
            .and_then(|template| template.execute_to_string(&of_variables(variables)));
        rendered.map_err(|error| ModuleError::Template {
            name: name.to_owned(),
            error: error.to_string(),
        })
    }
}

fn expects(function: &str, what: &str) -> TemplateError {
    TemplateError::Exec(format!("`{function}` expects {what}"))
}

/// Whether a list has an item, which is a text.
fn in_list(arguments: &[Go]) -> Result<Go, TemplateError> {
    match arguments {
        [Go::List(list), Go::String(item)] => {
            let is_it = |one: &Go| matches!(one, Go::String(text) if text == item);
            Ok(Go::Bool(list.iter().any(is_it)))
        }
        _ => Err(expects("inList", "a list and a text")),
    }
}

/// A value as JSON with a line feed behind it.
fn to_json_text(arguments: &[Go]) -> Result<Go, TemplateError> {
    let [value] = arguments else { return Err(expects("tojson", "one value")) };
    let mut text = to_json(value).to_string();
    // As Go's encoder, for readers that take JSON for JavaScript.
    for (separator, escaped) in [('\u{2028}', "\\u2028"), ('\u{2029}', "\\u2029")] {
        text = text.replace(separator, escaped);
    }
    text.push('\n');
    Ok(Go::String(text.into()))
}

fn to_json(value: &Go) -> Json {
    match value {
        Go::Bool(value) => Json::from(*value),
        Go::Int(value) => Json::from(*value),
        Go::Uint(value) => Json::from(*value),
        // Go writes a whole number without a point.
        Go::Float(value) if value.fract() == 0.0 && value.abs() < 1e15 => Json::from(*value as i64),
        Go::Float(value) => Json::from(*value),
        Go::String(text) => Json::from(&**text),
        Go::List(list) => list.iter().map(to_json).collect(),
        Go::Map(map) => map.iter().map(|(key, value)| (key.to_string(), to_json(value))).collect(),
        Go::Nil | Go::Function(_) => Json::Null,
    }
}

fn of_variables(variables: &Variables) -> Go {
    let of = |(name, value): (&String, &Value)| (Arc::from(name.as_str()), to_go(value));
    Go::from(variables.iter().map(of).collect::<BTreeMap<Arc<str>, Go>>())
}

fn to_go(value: &Value) -> Go {
    match value {
        Value::Null => Go::Nil,
        Value::Bool(value) => Go::Bool(*value),
        Value::Int(value) => Go::Int(*value),
        Value::UInt(value) => Go::Uint(*value),
        Value::Float(value) => Go::Float(*value),
        Value::String(text) => Go::String(text.as_str().into()),
        Value::List(list) => Go::from(list.iter().map(to_go).collect::<Vec<Go>>()),
        // Filebeat's library makes nothing of an empty map.
        Value::Map(map) if map.is_empty() => Go::Nil,
        Value::Map(map) => of_variables(map),
    }
}

/// `printf` with the verb `%T`, which gotmpl does not know, where it is the whole format.
fn printf(arguments: &[Go]) -> Result<Go, TemplateError> {
    if let [Go::String(format), value] = arguments
        && &**format == "%T"
    {
        return Ok(Go::String(type_name(value).into()));
    }
    let items = (0..arguments.len()).map(|number| format!(" (index . {number})"));
    let call = format!("{{{{ printf{} }}}}", items.collect::<String>());
    let text = Template::new("printf").parse(&call)?;
    Ok(Go::String(text.execute_to_string(&Go::from(arguments.to_vec()))?.into()))
}

/// The name of a type in Go.
fn type_name(value: &Go) -> &'static str {
    match value {
        Go::Nil | Go::Function(_) => "<nil>",
        Go::Bool(_) => "bool",
        Go::Int(_) => "int64",
        Go::Uint(_) => "uint64",
        Go::Float(_) => "float64",
        Go::String(_) => "string",
        Go::List(_) => "[]interface {}",
        Go::Map(_) => "map[string]interface {}",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope() -> Scope {
        let builtins = Builtins::new("filebeat", "9.5.3", "web1.example.org");
        Scope { builtins, module: "nginx".into(), fileset: "access".into() }
    }

    fn rendered(text: &str, variables: &str) -> Result<String, String> {
        let scope = scope();
        let mut all = scope.variables();
        let Value::Map(own) = skidder_config::yaml_value("v", variables).unwrap() else { panic!() };
        all.extend(own);
        scope.render("t", text, &all).map_err(|error| error.to_string())
    }

    #[test]
    fn the_functions_of_modules_are_there() {
        for (text, expected) in [
            ("{{ .tags | tojson }}|", "[\"a\",\"forwarded\"]\n|"),
            ("{{ tojson .map }}", "{\"a\":\"<b>\",\"n\":1.5,\"w\":2}\n"),
            ("{{ inList .tags \"forwarded\" }} {{ inList .tags \"x\" }}", "true false"),
            ("{{ IngestPipeline \"json\" }}", "filebeat-9.5.3-nginx-access-json"),
            ("{{.builtin.hostname}} {{.builtin.domain}}", "web1 example.org"),
            (
                "{{.builtin.module}}/{{.builtin.fileset}} {{.builtin.beatVersion}}",
                "nginx/access 9.5.3",
            ),
            ("{{ range $i, $tag := .tags }}\n - {{$tag}}{{ end }}", "\n - a\n - forwarded"),
            ("{{ if .none }}x{{ else if eq .kind \"file\" }}y{{ end }}", "y"),
            ("{{ .kind | printf \"%q\" }}", "\"file\""),
            ("{{ printf \"%T\" .kind }} {{ printf \"%T\" .tags }}", "string []interface {}"),
            ("{{ printf \"%T\" 1 }} {{ printf \"%s-%03d\" .kind 7 }}", "int64 file-007"),
            ("no template", "no template"),
        ] {
            let variables =
                "{tags: [a, forwarded], map: {a: <b>, n: 1.5, w: 2.0}, none: ~, kind: file}";
            assert_eq!(rendered(text, variables).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_missing_variable_and_a_wrong_value_are_errors() {
        for (text, why) in [
            ("\n{{ .paths }}", "no entry for key"),
            ("{{ inList .kind \"x\" }}", "expects a list"),
            ("{{ range .kind", "t"),
            ("{{ unknown .kind }}", "unknown"),
        ] {
            let error = rendered(text, "{kind: file}").unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_pipeline_has_delimiters_of_its_own() {
        let scope = scope();
        let text = "{{ kept }} {< IngestPipeline \"b\" >}";
        assert_eq!(
            scope.render_pipeline("t", text, &scope.variables()).unwrap(),
            "{{ kept }} filebeat-9.5.3-nginx-access-b"
        );
        assert_eq!(
            scope.pipeline_id("../ingest/common.v1.yml"),
            "filebeat-9.5.3-nginx-access-common.v1"
        );
    }
}
