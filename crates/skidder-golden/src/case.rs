//! One case of a golden file, read.

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Map as JsonMap, Value as Json, json};
use skidder_config::{Problems, Section, Value};
use std::collections::BTreeMap;
use std::time::Duration;

/// What a case shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// What the processor is there for.
    Normal,
    /// A field it needs is not there.
    Missing,
    /// A field has a value of a kind that it cannot work on.
    WrongType,
    /// It fails half way, and the event is as it came.
    Failure,
    /// Its `when` does not hold.
    Condition,
    /// Anything else.
    Other,
}

impl Kind {
    /// The kinds that every processor must show, with their names in the files.
    pub const ASKED: [(&'static str, Self); 5] = [
        ("normal", Self::Normal),
        ("missing", Self::Missing),
        ("wrong_type", Self::WrongType),
        ("failure", Self::Failure),
        ("condition", Self::Condition),
    ];
}

/// The expected result of an event.
#[derive(Clone, Debug)]
pub enum Expected {
    /// The document, and fields of it that fit a regular expression.
    Document(Json, BTreeMap<String, String>),
    /// Nothing: the event is dropped.
    Dropped,
}

/// One event that goes through.
#[derive(Clone, Debug)]
pub struct Step {
    /// How long to wait before it.
    pub after: Duration,
    /// The event.
    pub event: Json,
    /// The expected result.
    pub expected: Expected,
}

/// One case: settings, events, results.
#[derive(Clone, Debug)]
pub struct Case {
    /// A description.
    pub name: String,
    /// Which of the kinds it is.
    pub kind: Kind,
    /// Files of the machine.
    pub files: BTreeMap<String, String>,
    /// The events, one after the other; none if the settings are refused.
    pub steps: Vec<Step>,
    /// A part of the problems of the settings.
    pub refused: Option<String>,
    /// Whether the processors of the case are one, without `if`.
    pub single: bool,
}

impl Case {
    /// Reads everything but the processors, which the caller compiles.
    pub(crate) fn read(section: &Section<'_>) -> Result<Self> {
        let name = section.string("name").required();
        let words: Vec<_> = Kind::ASKED.iter().copied().chain([("other", Kind::Other)]).collect();
        let kind = section.one_of("kind", &words).or(Kind::Other);
        let refused = section.string("refused").optional();
        let files = section.string_map("files").or_else(BTreeMap::new);
        let mut steps = Vec::new();
        if refused.is_none() {
            steps.push(read_step(section).with_context(|| format!("case `{name}`"))?);
            for next in section.sections("then") {
                steps.push(read_step(&next).with_context(|| format!("case `{name}`"))?);
            }
        }
        let items = section.items("processors");
        ensure!(!items.is_empty(), "case `{name}` has no `processors`");
        let single =
            items.len() == 1 && items[0].node().as_map().is_some_and(|map| map.get("if").is_none());
        Ok(Self { name, kind, files, steps, refused, single })
    }
}

fn read_step(section: &Section<'_>) -> Result<Step> {
    let event = document_at(section, "in")?.context("`in` is missing")?;
    let after = section.duration("after").or(Duration::ZERO);
    let matches = section.string_map("matches").or_else(BTreeMap::new);
    let dropped = section.bool("dropped").or(false);
    let expected = match (document_at(section, "out")?, dropped) {
        (Some(document), false) => Expected::Document(document, matches),
        (None, true) => Expected::Dropped,
        _ => bail!("exactly one of `out` and `dropped: true` is needed"),
    };
    Ok(Step { after, event, expected })
}

/// The document at `key`, or as JSON text at `key_json`.
fn document_at(section: &Section<'_>, key: &str) -> Result<Option<Json>> {
    if let Some(text) = section.string(&format!("{key}_json")).optional() {
        return Ok(Some(serde_json::from_str(&text).with_context(|| format!("`{key}_json`"))?));
    }
    Ok(section.value(key).optional().map(|value| json_of(&value)))
}

/// A value of a configuration as JSON.
pub(crate) fn json_of(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(truth) => json!(truth),
        Value::Int(number) => json!(number),
        Value::UInt(number) => json!(number),
        Value::Float(number) => json!(number),
        Value::String(text) => json!(text),
        Value::List(items) => items.iter().map(json_of).collect(),
        Value::Map(map) => Json::Object(
            map.iter().map(|(key, value)| (key.clone(), json_of(value))).collect::<JsonMap<_, _>>(),
        ),
    }
}

/// Fails with all problems.
pub(crate) fn no_problems(problems: &Problems, what: &str) -> Result<()> {
    ensure!(problems.is_empty(), "{what}: {problems}");
    Ok(())
}
