//! What changes in a saved object before Kibana gets it: its index pattern, its texts, and parts that are JSON as text.
//!
//! As libbeat's `dashboards/modify_json.go`: a pattern is replaced only where an object has one.

use regex::Regex;
use serde_json::{Map, Value};
use std::sync::LazyLock;

/// Attributes that Kibana keeps as a text with JSON in it; the files have them as objects.
const TEXTS: [&str; 6] =
    ["layerListJSON", "mapStateJSON", "optionsJSON", "panelsJSON", "uiStateJSON", "visState"];

/// The index in an expression of Timelion.
static TIMELION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"index=".*beat-\*""#).expect("a constant pattern is valid"));

/// Puts `index` where a dashboard, visualization, map or search names its index pattern.
pub(crate) fn replace_index(object: &mut Value, index: &str) {
    let attributes = &mut object["attributes"];
    if let Some(saved) = attributes.get_mut("kibanaSavedObjectMeta") {
        replace_in_search(saved, index);
        if let Some(state) = saved.get_mut("visState") {
            replace_in_state(state, index);
        }
    }
    if let Some(state) = attributes.get_mut("visState") {
        replace_in_state(state, index);
    }
    replace_in_layers(attributes, index);
    for filter in list(attributes.get_mut("mapStateJSON"), "filters") {
        set(filter.get_mut("meta"), "index", index);
    }
    for panel in list(Some(attributes), "panelsJSON") {
        let Some(config) = panel.get_mut("embeddableConfig") else { continue };
        if let Some(embedded) = config.get_mut("attributes") {
            replace_in_references(embedded, index);
            replace_in_layers(embedded, index);
        }
        if let Some(parameters) = config.get_mut("savedVis").and_then(|it| it.get_mut("params")) {
            replace_in_controls(parameters, index);
        }
    }
    replace_in_references(object, index);
}

/// Puts `index` into an index pattern.
pub(crate) fn rename_pattern(object: &mut Value, index: &str) {
    if object.is_object() {
        object["id"] = index.into();
    }
    set(object.get_mut("attributes"), "title", index);
}

/// Turns parts of an object into texts with JSON in them, as Kibana expects.
pub(crate) fn encode_texts(object: &mut Value) {
    if let Some(Value::Object(attributes)) = object.get_mut("attributes") {
        encode_attributes(attributes);
    }
}

fn encode_attributes(attributes: &mut Map<String, Value>) {
    if let Some(saved) = attributes.get_mut("kibanaSavedObjectMeta")
        && let Some(source @ Value::Object(_)) = saved.get_mut("searchSourceJSON")
    {
        *source = source.to_string().into();
    }
    if let Some(Value::Array(panels)) = attributes.get_mut("panelsJSON") {
        for panel in panels {
            let config = panel.get_mut("embeddableConfig").and_then(|it| it.get_mut("attributes"));
            if let Some(Value::Object(embedded)) = config {
                encode_attributes(embedded);
            }
        }
    }
    for name in TEXTS {
        if let Some(value @ (Value::Object(_) | Value::Array(_))) = attributes.get_mut(name) {
            *value = value.to_string().into();
        }
    }
}

/// The search source is a text with JSON in it; in files of other tools it is an object.
fn replace_in_search(saved: &mut Value, index: &str) {
    match saved.get_mut("searchSourceJSON") {
        Some(Value::String(text)) => {
            if let Ok(mut source) = serde_json::from_str::<Value>(text)
                && source.get("index").is_some()
            {
                source["index"] = index.into();
                *text = source.to_string();
            }
        }
        source => set(source, "index", index),
    }
}

fn replace_in_state(state: &mut Value, index: &str) {
    let Some(parameters) = state.get_mut("params") else { return };
    if parameters.get("index_pattern").and_then(Value::as_str).is_some_and(|it| !it.is_empty()) {
        parameters["index_pattern"] = index.into();
    }
    for series in list(Some(parameters), "series") {
        set(Some(series), "series_index_pattern", index);
    }
    for annotation in list(Some(parameters), "annotations") {
        set(Some(annotation), "index_pattern", index);
    }
    if let Some(Value::String(expression)) = parameters.get_mut("expression") {
        let with = format!("index=\"{index}\"");
        *expression = TIMELION.replace_all(expression, regex::NoExpand(with.as_str())).into_owned();
    }
    replace_in_controls(parameters, index);
}

fn replace_in_controls(parameters: &mut Value, index: &str) {
    for control in list(Some(parameters), "controls") {
        set(Some(control), "indexPattern", index);
    }
}

fn replace_in_references(object: &mut Value, index: &str) {
    for reference in list(Some(object), "references") {
        if reference.get("type").and_then(Value::as_str) == Some("index-pattern") {
            reference["id"] = index.into();
        }
    }
}

fn replace_in_layers(attributes: &mut Value, index: &str) {
    for layer in list(Some(attributes), "layerListJSON") {
        for join in list(Some(layer), "joins") {
            for (_, side) in join.as_object_mut().into_iter().flatten() {
                set(Some(side), "indexPatternTitle", index);
            }
        }
        set(layer.get_mut("sourceDescriptor"), "indexPatternId", index);
    }
}

/// The elements of a list; none if there is no such list.
fn list<'a>(value: Option<&'a mut Value>, name: &str) -> impl Iterator<Item = &'a mut Value> {
    let list = value.and_then(|value| value.get_mut(name)).and_then(Value::as_array_mut);
    list.into_iter().flatten()
}

/// Replaces a value that is there.
fn set(object: Option<&mut Value>, name: &str, index: &str) {
    if let Some(value) = object.and_then(|object| object.get_mut(name)) {
        *value = index.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_place_of_the_pattern_is_replaced_and_none_is_added() {
        let mut object = json!({
            "attributes": {
                "kibanaSavedObjectMeta": { "searchSourceJSON": "{\"index\":\"filebeat-*\",\"a\":1}" },
                "visState": { "params": {
                    "index_pattern": "filebeat-*", "series": [{ "series_index_pattern": "a" }, {}],
                    "annotations": [{ "index_pattern": "a" }], "controls": [{ "indexPattern": "a" }],
                    "expression": ".es(index=\"filebeat-*\", q=1)",
                } },
                "layerListJSON": [{ "sourceDescriptor": { "indexPatternId": "a" },
                    "joins": [{ "right": { "indexPatternTitle": "a" }, "left": "f" }] }],
                "mapStateJSON": { "filters": [{ "meta": { "index": "a" } }, { "meta": {} }] },
                "panelsJSON": [{ "embeddableConfig": {
                    "attributes": { "references": [{ "type": "index-pattern", "id": "a" }] },
                    "savedVis": { "params": { "controls": [{ "indexPattern": "a" }] } } } }],
            },
            "references": [{ "type": "index-pattern", "id": "a" }, { "type": "search", "id": "b" }],
        });
        replace_index(&mut object, "my-$1-*");
        let attributes = &object["attributes"];
        assert_eq!(
            attributes["kibanaSavedObjectMeta"]["searchSourceJSON"],
            "{\"a\":1,\"index\":\"my-$1-*\"}"
        );
        let parameters = &attributes["visState"]["params"];
        assert_eq!(parameters["index_pattern"], "my-$1-*");
        assert_eq!(parameters["series"], json!([{ "series_index_pattern": "my-$1-*" }, {}]));
        assert_eq!(parameters["annotations"][0]["index_pattern"], "my-$1-*");
        assert_eq!(parameters["controls"][0]["indexPattern"], "my-$1-*");
        assert_eq!(parameters["expression"], ".es(index=\"my-$1-*\", q=1)");
        let layer = &attributes["layerListJSON"][0];
        assert_eq!(layer["sourceDescriptor"]["indexPatternId"], "my-$1-*");
        assert_eq!(
            layer["joins"][0],
            json!({ "right": { "indexPatternTitle": "my-$1-*" }, "left": "f" })
        );
        let filters = &attributes["mapStateJSON"]["filters"];
        assert_eq!(*filters, json!([{ "meta": { "index": "my-$1-*" } }, { "meta": {} }]));
        let config = &attributes["panelsJSON"][0]["embeddableConfig"];
        assert_eq!(config["attributes"]["references"][0]["id"], "my-$1-*");
        assert_eq!(config["savedVis"]["params"]["controls"][0]["indexPattern"], "my-$1-*");
        assert_eq!(
            (&object["references"][0]["id"], &object["references"][1]["id"]),
            (&json!("my-$1-*"), &json!("b"))
        );
        let mut plain = json!({ "attributes": { "title": "a", "visState": { "params": {} } } });
        let before = plain.clone();
        replace_index(&mut plain, "x");
        assert_eq!(plain, before);
    }

    #[test]
    fn objects_become_texts_from_the_inside_out() {
        let mut object = json!({ "attributes": {
            "panelsJSON": [{ "embeddableConfig": { "attributes": { "visState": { "a": 1 } } } }],
            "optionsJSON": "{}",
            "kibanaSavedObjectMeta": { "searchSourceJSON": { "q": "" } },
        } });
        encode_texts(&mut object);
        assert_eq!(
            object,
            json!({ "attributes": {
            "panelsJSON": "[{\"embeddableConfig\":{\"attributes\":{\"visState\":\"{\\\"a\\\":1}\"}}}]",
            "optionsJSON": "{}",
            "kibanaSavedObjectMeta": { "searchSourceJSON": "{\"q\":\"\"}" },
        } })
        );
    }

    #[test]
    fn a_pattern_gets_the_name_and_a_title_only_if_it_has_one() {
        let mut pattern = json!({ "id": "filebeat-*", "attributes": { "title": "filebeat-*" } });
        rename_pattern(&mut pattern, "mine-*");
        assert_eq!(pattern, json!({ "id": "mine-*", "attributes": { "title": "mine-*" } }));
        let mut untitled = json!({ "id": "filebeat-*", "attributes": {} });
        rename_pattern(&mut untitled, "mine-*");
        assert_eq!(untitled, json!({ "id": "mine-*", "attributes": {} }));
    }
}
