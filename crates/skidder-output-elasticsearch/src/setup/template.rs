//! The index template, as JSON.

use super::fields::{DEFAULT_FIELDS, default_properties};
use super::mapping::{Mapped, merge};
use serde_json::{Map, Value, json};
use skidder_outputs::Context;

/// Limits of an index, as in libbeat's `template/template.go`.
const TOTAL_FIELDS_MAX: u32 = 10_000;
const DOCVALUE_FIELDS_MAX: u32 = 200;

/// `setup.template`.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// `name`.
    pub name: String,
    /// `pattern`: of the indices that it is for.
    pub pattern: String,
    /// Whether the user has named it.
    pub is_named: bool,
    /// `overwrite`: also if it is there already.
    pub overwrite: bool,
    /// `priority` over other templates.
    pub priority: u32,
    /// The body, without what depends on the server.
    pub(crate) body: Body,
}

/// The body of a template.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Body {
    /// `setup.template.json.path`, as it is.
    Json(Value),
    /// Fields and settings.
    Made {
        /// Those of `fields`, if they are not the usual ones.
        fields: Option<Mapped>,
        /// `append_fields`.
        appended: Mapped,
        /// `settings.index`.
        index: Value,
        /// `settings._source`.
        source: Value,
    },
}

impl Template {
    /// The template for a server with a policy of this name, or with a lifecycle in the template itself.
    pub(crate) fn render(
        &self,
        context: &Context,
        policy: Option<&str>,
        lifecycle: Option<&Value>,
    ) -> Value {
        let (fields, appended, index, source) = match &self.body {
            Body::Json(body) => return body.clone(),
            Body::Made { fields, appended, index, source } => (fields, appended, index, source),
        };
        let mut mapped = fields.clone().unwrap_or_else(default_properties);
        merge(&mut mapped.properties, &appended.properties);
        mapped.dynamic.extend(appended.dynamic.iter().cloned());
        mapped.searched.extend(appended.searched.iter().cloned());
        mapped.dynamic.push(json!({ "strings_as_keyword": {
            "match_mapping_type": "string",
            "mapping": { "type": "keyword", "ignore_above": 1024 },
        } }));
        let mut searched = if fields.is_none() {
            DEFAULT_FIELDS.iter().map(|field| (*field).to_owned()).collect()
        } else {
            Vec::new()
        };
        searched.append(&mut mapped.searched);
        searched.push("fields.*".to_owned());
        let mut settings = json!({
            "refresh_interval": "5s",
            "mapping": { "total_fields": { "limit": TOTAL_FIELDS_MAX } },
            "max_docvalue_fields_search": DOCVALUE_FIELDS_MAX,
            "query": { "default_field": searched },
        });
        if let Some(policy) = policy {
            merge_value(&mut settings, &json!({ "lifecycle": { "name": policy } }));
        }
        merge_value(&mut settings, index);
        // `json!` copies what stands in it: a megabyte of small blocks, which the allocator keeps.
        let mut mappings = json!({
            "_meta": { "beat": context.beat, "version": context.version },
            "date_detection": false,
        });
        mappings["dynamic_templates"] = Value::Array(mapped.dynamic);
        mappings["properties"] = Value::Object(mapped.properties);
        if !source.is_null() {
            mappings["_source"] = source.clone();
        }
        let mut whole = json!({
            "template": { "settings": { "index": settings } },
            "data_stream": {},
            "priority": self.priority,
            "index_patterns": [self.pattern],
        });
        let template = &mut whole["template"];
        template["mappings"] = mappings;
        if let Some(lifecycle) = lifecycle {
            template["lifecycle"] = lifecycle.clone();
        }
        whole
    }
}

/// Puts `over` over `value`, object by object.
fn merge_value(value: &mut Value, over: &Value) {
    match (value, over) {
        (_, Value::Null) => {}
        (Value::Object(map), Value::Object(over)) => {
            for (key, over) in over {
                merge_value(map.entry(key).or_insert_with(|| Value::Object(Map::new())), over);
            }
        }
        (value, over) => *value = over.clone(),
    }
}
