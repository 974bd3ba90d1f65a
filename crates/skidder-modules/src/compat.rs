//! Rewrites an ingest pipeline for a server that is too old for some of its processors and options, as Filebeat does.

use crate::version::Version;
use serde_json::{Map, Value, json};

/// What is wrong with a pipeline: a part of a sentence.
pub(crate) type Wrong = String;

type Settings = Map<String, Value>;

/// What is left of a processor: nothing, or its type and settings.
type Adapted = Result<Option<(String, Settings)>, Wrong>;

/// A change for servers before a version: of processors of this type, `*` for all.
struct Change {
    kind: &'static str,
    before: Version,
    adapt: fn(String, Settings) -> Adapted,
}

const fn change(kind: &'static str, minor: u32, adapt: fn(String, Settings) -> Adapted) -> Change {
    Change { kind, before: Version::new(7, minor, 0), adapt }
}

/// In the order in which they are made.
const CHANGES: [Change; 9] = [
    change("append", 10, without_allow_duplicates),
    change("community_id", 12, remove),
    change("set", 9, without_ignore_empty_value),
    change("uri_parts", 12, remove),
    change("user_agent", 0, with_ecs),
    change("convert", 13, without_ip),
    change("network_direction", 13, remove),
    change("registered_domain", 13, remove),
    change("*", 9, without_description),
];

/// The first version whose `user_agent` makes fields of ECS.
const USER_AGENT_MIN: Version = Version::new(6, 7, 0);

/// Rewrites a pipeline for a server of this version.
pub(crate) fn adapt(pipeline: &mut Value, version: Version) -> Result<(), Wrong> {
    let Some(content) = pipeline.as_object_mut() else {
        return Err("a pipeline is a map with `processors`".to_owned());
    };
    if !content.contains_key("processors") {
        return Err("`processors` is missing".to_owned());
    }
    adapt_list(content, "processors", version)?;
    adapt_list(content, "on_failure", version)
}

/// Rewrites the processors at `section`, if it is there.
fn adapt_list(content: &mut Settings, section: &str, version: Version) -> Result<(), Wrong> {
    let Some(list) = content.get_mut(section) else { return Ok(()) };
    let Some(list) = list.as_array_mut() else {
        return Err(format!("`{section}` is no list of processors"));
    };
    let mut kept = Vec::with_capacity(list.len());
    for (number, processor) in std::mem::take(list).into_iter().enumerate() {
        let place = |wrong: Wrong| format!("`{section}[{number}]`: {wrong}");
        kept.extend(adapt_one(processor, version).map_err(place)?);
    }
    *list = kept;
    Ok(())
}

/// Rewrites one processor; `None` if it is removed.
fn adapt_one(processor: Value, version: Version) -> Result<Option<Value>, Wrong> {
    let Value::Object(map) = processor else {
        return Err("a processor is a map with one key".to_owned());
    };
    let mut entries = map.into_iter();
    let (Some((kind, settings)), None) = (entries.next(), entries.next()) else {
        return Err("a processor has exactly one key, its type".to_owned());
    };
    let Value::Object(mut settings) = settings else {
        return Err(format!("the settings of `{kind}` are no map"));
    };
    let is_list = |settings: &Settings| {
        settings.get("on_failure").and_then(Value::as_array).is_some_and(|list| !list.is_empty())
    };
    let had = is_list(&settings);
    adapt_list(&mut settings, "on_failure", version)?;
    if had && !is_list(&settings) {
        settings.remove("on_failure");
    }
    if kind == "foreach"
        && let Some(inner) = settings.remove("processor")
    {
        let Some(inner) = adapt_one(inner, version)? else { return Ok(None) };
        settings.insert("processor".to_owned(), inner);
    }
    let mut adapted = (kind, settings);
    for change in CHANGES {
        let (kind, settings) = adapted;
        if version >= change.before || !(change.kind == "*" || change.kind == kind) {
            adapted = (kind, settings);
            continue;
        }
        if kind == "user_agent" && version < USER_AGENT_MIN {
            return Err(format!("`user_agent` needs Elasticsearch {USER_AGENT_MIN} or newer"));
        }
        match (change.adapt)(kind, settings)? {
            Some(changed) => adapted = changed,
            None => return Ok(None),
        }
    }
    let (kind, settings) = adapted;
    Ok(Some(json!({ kind: settings })))
}

#[expect(clippy::unnecessary_wraps, reason = "one of several changes, some of which fail")]
fn remove(_: String, _: Settings) -> Adapted {
    Ok(None)
}

#[expect(clippy::unnecessary_wraps, reason = "one of several changes, some of which fail")]
fn without_description(kind: String, mut settings: Settings) -> Adapted {
    if settings.get("description").is_some_and(Value::is_string) {
        settings.remove("description");
    }
    Ok(Some((kind, settings)))
}

#[expect(clippy::unnecessary_wraps, reason = "one of several changes, some of which fail")]
fn with_ecs(kind: String, mut settings: Settings) -> Adapted {
    settings.insert("ecs".to_owned(), Value::Bool(true));
    Ok(Some((kind, settings)))
}

/// The field in `{{field}}`, as a script may look for it when parts of it are missing.
fn field_of(template: &str) -> String {
    template.trim_start_matches(['{', ' ']).trim_end_matches(['}', ' ']).replace('.', "?.")
}

fn text<'a>(settings: &'a Settings, key: &str) -> Option<&'a str> {
    settings.get(key)?.as_str()
}

/// A condition says the same as `ignore_empty_value`.
#[expect(clippy::unnecessary_wraps, reason = "one of several changes, some of which fail")]
fn without_ignore_empty_value(kind: String, mut settings: Settings) -> Adapted {
    if settings.get("ignore_empty_value").is_some_and(Value::is_boolean) {
        settings.remove("ignore_empty_value");
        if text(&settings, "if").is_none()
            && let Some(value) = text(&settings, "value")
        {
            let condition = format!("ctx?.{} != null", field_of(value));
            settings.insert("if".to_owned(), condition.into());
        }
    }
    Ok(Some((kind, settings)))
}

/// A condition says the same as `allow_duplicates: false`.
#[expect(clippy::unnecessary_wraps, reason = "one of several changes, some of which fail")]
fn without_allow_duplicates(kind: String, mut settings: Settings) -> Adapted {
    let Some(allows) = settings.get("allow_duplicates").and_then(Value::as_bool) else {
        return Ok(Some((kind, settings)));
    };
    settings.remove("allow_duplicates");
    let condition = text(&settings, "if").unwrap_or_default();
    // A condition with `contains` already looks for duplicates.
    if !allows
        && !condition.to_lowercase().contains("contains")
        && let (Some(field), Some(value)) = (text(&settings, "field"), text(&settings, "value"))
    {
        let (field, value) = (field.replace('.', "?."), field_of(value));
        let first = match condition {
            "" => format!("ctx?.{value} != null"),
            condition => condition.to_owned(),
        };
        let is_new = format!(
            "(ctx?.{field} instanceof List && !ctx?.{field}.contains(ctx?.{value})) || ctx?.{field} != ctx?.{value}"
        );
        settings.insert("if".to_owned(), format!("{first} && ({is_new})").into());
    }
    Ok(Some((kind, settings)))
}

/// A pattern finds addresses for servers whose `convert` does not know them.
fn without_ip(kind: String, mut settings: Settings) -> Adapted {
    if text(&settings, "type") != Some("ip") {
        return Ok(Some((kind, settings)));
    }
    settings.remove("type");
    let target = settings.remove("target_field");
    let Some(target) = target.or_else(|| settings.get("field").cloned()) else {
        return Err("`convert` has no `field`".to_owned());
    };
    if !settings.contains_key("field") {
        return Err("`convert` has no `field`".to_owned());
    }
    let target = target.as_str().map_or_else(|| target.to_string(), str::to_owned);
    settings.insert("patterns".to_owned(), json!([format!("^%{{IP:{target}}}$")]));
    Ok(Some(("grok".to_owned(), settings)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adapted(processors: Value, version: &str) -> Result<Value, Wrong> {
        let mut pipeline = json!({ "processors": processors });
        adapt(&mut pipeline, Version::parse(version).unwrap())?;
        Ok(pipeline["processors"].take())
    }

    #[test]
    fn a_server_gets_what_it_knows() {
        let set =
            json!({ "set": { "field": "a", "value": "{{b.c}}", "ignore_empty_value": true } });
        let append = json!({ "append": { "field": "r.ip", "value": "{{{s.ip}}}", "allow_duplicates": false } });
        let ip = json!({ "convert": { "field": "a", "target_field": "b", "type": "ip" } });
        for (processor, version, expected) in [
            (set.clone(), "7.9.0", json!([set])),
            (
                set,
                "7.8.9",
                json!([{ "set": { "field": "a", "value": "{{b.c}}", "if": "ctx?.b?.c != null" } }]),
            ),
            (append.clone(), "7.10.0", json!([append])),
            (
                append,
                "7.9.3",
                json!([{ "append": { "field": "r.ip", "value": "{{{s.ip}}}", "if": "ctx?.s?.ip != null && \
                    ((ctx?.r?.ip instanceof List && !ctx?.r?.ip.contains(ctx?.s?.ip)) || ctx?.r?.ip != ctx?.s?.ip)" } }]),
            ),
            (ip.clone(), "7.13.0", json!([ip])),
            (ip, "7.12.1", json!([{ "grok": { "field": "a", "patterns": ["^%{IP:b}$"] } }])),
            (json!({ "community_id": {} }), "7.11.0", json!([])),
            (
                json!({ "foreach": { "field": "a", "processor": { "uri_parts": {} } } }),
                "7.11.0",
                json!([]),
            ),
            (
                json!({ "foreach": { "field": "a", "processor": { "set": { "description": "d", "field": "x" } } } }),
                "7.8.0",
                json!([{ "foreach": { "field": "a", "processor": { "set": { "field": "x" } } } }]),
            ),
            (
                json!({ "date": { "field": "a", "on_failure": [{ "registered_domain": {} }] } }),
                "7.12.0",
                json!([{ "date": { "field": "a" } }]),
            ),
            (
                json!({ "user_agent": { "field": "a" } }),
                "6.8.0",
                json!([{ "user_agent": { "field": "a", "ecs": true } }]),
            ),
        ] {
            assert_eq!(adapted(json!([processor]), version).unwrap(), expected);
        }
    }

    #[test]
    fn what_is_no_pipeline_is_an_error() {
        for (pipeline, why) in [
            (json!([]), "a pipeline is a map"),
            (json!({}), "`processors` is missing"),
            (json!({ "processors": {} }), "no list"),
            (
                json!({ "processors": [{ "a": {}, "b": {} }] }),
                "`processors[0]`: a processor has exactly one key",
            ),
            (json!({ "processors": [{ "a": 1 }] }), "no map"),
            (json!({ "processors": [], "on_failure": 1 }), "`on_failure` is no list"),
        ] {
            let error = adapt(&mut pipeline.clone(), Version::new(9, 0, 0)).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        let old = adapted(json!([{ "user_agent": {} }]), "6.6.0").unwrap_err();
        assert!(old.contains("6.7.0"), "{old}");
    }
}
