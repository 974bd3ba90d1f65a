//! Allocations of Nomad: from the API's description to events, one for each task.
//!
//! The names of the fields are those of Filebeat's provider.

use crate::event::Event;
use crate::hints_settings::OUTSIDE;
use crate::json::{get, is_empty, merge, set, text_or_empty, texts, tree};
use crate::kept::{each, some};
use crate::made::Fields;
use crate::provider::NomadProvider;
use serde_json::{Value as Json, json};
use skidder_config::{Node, Position, Problems, Source};
use std::collections::BTreeMap;

/// Whether an allocation has ended, or has not begun.
pub(crate) fn is_over(allocation: &Json) -> bool {
    let status = allocation["ClientStatus"].as_str();
    matches!(status, Some("pending" | "complete" | "failed" | "lost"))
}

/// The name of an allocation, for messages.
pub(crate) fn name(allocation: &Json) -> String {
    format!("allocation {}", allocation["Name"].as_str().unwrap_or_default())
}

/// The events of an allocation: one for each task of its group; the reason if there is none. `prefix` is that of hints,
/// which are no fields.
pub(crate) fn events(
    allocation: &Json,
    own: &NomadProvider,
    prefix: Option<&str>,
) -> Result<Vec<Event>, String> {
    let job = &allocation["Job"];
    let common = json!({
        "allocation": {
            "id": allocation["ID"], "name": allocation["Name"], "status": allocation["ClientStatus"],
        },
        "job": { "name": job["Name"], "type": job["Type"] },
        "namespace": allocation["Namespace"],
        "datacenter": job["Datacenters"],
        "region": job["Region"],
    });
    let mut events = Vec::new();
    for group in groups(allocation) {
        for task in group["Tasks"].as_array().into_iter().flatten() {
            let mut meta: BTreeMap<&str, &str> = texts(&job["Meta"]);
            meta.extend(texts(&group["Meta"]));
            meta.extend(texts(&task["Meta"]));
            events.push(event(allocation, &common, task, &tree(&meta), own, prefix));
        }
    }
    if events.is_empty() { Err("the allocation has no tasks".to_owned()) } else { Ok(events) }
}

/// The task group of an allocation; all of the job if its name is not known.
fn groups(allocation: &Json) -> impl Iterator<Item = &Json> {
    let name = &allocation["TaskGroup"];
    let all = allocation["Job"]["TaskGroups"].as_array().into_iter().flatten();
    all.filter(move |group| !name.is_string() || group["Name"] == *name)
}

fn event(
    allocation: &Json,
    common: &Json,
    task: &Json,
    meta: &Json,
    own: &NomadProvider,
    prefix: Option<&str>,
) -> Event {
    let (id, name) = (text_or_empty(&allocation["ID"]), text_or_empty(&task["Name"]));
    let nomad = |hidden: Option<&str>| {
        let mut nomad = common.clone();
        nomad["task"] = selected(task, meta, own, hidden);
        nomad
    };
    // Hints are no fields of events, but templates see them.
    let hidden = prefix.map(|prefix| prefix.split('.').next().unwrap_or(prefix));
    let (fields, facts) = (nomad(hidden), nomad(None));
    let host = &allocation["NodeName"];
    Event {
        about: format!("task {name} of {}", self::name(allocation)),
        hint_facts: json!({ "host": host, "nomad": facts }),
        facts: json!({
            "id": format!("{id}-{name}"), "host": host, "nomad": facts, "meta": { "nomad": facts },
        }),
        annotations: meta.clone(),
        container: String::new(),
        container_id: format!("{id}/{name}"),
        note: String::new(),
        is_around_containers: false,
        log_driver: String::new(),
        namespace: String::new(),
        fields: Fields::of(&json!({ "nomad": fields })),
    }
}

/// Name, services and metadata of a task, as far as `include_labels` and `exclude_labels` let them through, without the
/// level `hidden`.
fn selected(task: &Json, meta: &Json, own: &NomadProvider, hidden: Option<&str>) -> Json {
    let mut all = json!({});
    let services = services(task);
    if !is_empty(&services) {
        all["service"] = services;
    }
    merge(&mut all, meta.clone());
    if let (Json::Object(all), Some(hidden)) = (&mut all, hidden) {
        all.remove(hidden);
    }
    let mut chosen = json!({});
    if own.include.is_empty() {
        chosen = all;
    } else {
        for label in &own.include {
            if let Some(value) = get(&all, label) {
                set(&mut chosen, label, value.clone());
            }
        }
    }
    for label in &own.exclude {
        remove(&mut chosen, label);
    }
    // Without it, no path of a log could be written.
    chosen["name"] = task["Name"].clone();
    chosen
}

/// Names and tags of the services of a task.
fn services(task: &Json) -> Json {
    let mut services = json!({});
    let lists = [("name", "Name"), ("tags", "Tags"), ("canary_tags", "CanaryTags")];
    for (field, member) in lists {
        let mut values: Vec<Json> = Vec::new();
        for service in task["Services"].as_array().into_iter().flatten() {
            match &service[member] {
                Json::Array(list) => values.extend(list.iter().cloned()),
                Json::Null => {}
                value => values.push(value.clone()),
            }
        }
        if !values.is_empty() {
            services[field] = values.into();
        }
    }
    services
}

/// Removes the value at a dotted path.
fn remove(root: &mut Json, path: &str) {
    let Json::Object(object) = root else { return };
    match path.split_once('.') {
        None => {
            object.remove(path);
        }
        Some((head, rest)) => {
            if let Some(inner) = object.get_mut(head) {
                remove(inner, rest);
            }
        }
    }
}

/// What rules can name; the rest of a job holds secrets.
pub(crate) fn reduced(allocation: &Json) -> Json {
    let names = ["ID", "Name", "Namespace", "NodeName", "ClientStatus", "TaskGroup", "CreateTime"];
    let mut kept = some(allocation, &names);
    let mut job = some(&allocation["Job"], &["Name", "Type", "Region", "Datacenters", "Meta"]);
    let task = |task: &Json| {
        let mut kept = some(task, &["Name", "Meta"]);
        let services = each(&task["Services"], |one| some(one, &["Name", "Tags", "CanaryTags"]));
        if !services.is_null() {
            kept["Services"] = services;
        }
        kept
    };
    let groups = groups(allocation).map(|group| {
        let mut kept = some(group, &["Name", "Meta"]);
        kept["Tasks"] = each(&group["Tasks"], task);
        kept
    });
    job["TaskGroups"] = groups.collect();
    kept["Job"] = job;
    kept
}

/// The input of a task without hints: its logs, in the folders of Nomad's packages and of Filebeat's documentation.
pub(crate) fn built_in() -> Node {
    let folders = ["/opt/nomad/data/alloc", "/var/lib/nomad/alloc"];
    let of_folder = |folder| {
        let logs = format!("{folder}/${{data.nomad.allocation.id}}/alloc/logs");
        ["stdout", "stderr"].map(|kind| format!("{logs}/${{data.nomad.task.name}}.{kind}.[0-9]*"))
    };
    let paths: Vec<String> = folders.into_iter().flat_map(of_folder).collect();
    let value = json!({
        "type": "filestream",
        "id": "nomad-logs-${data.nomad.allocation.id}-${data.nomad.task.name}",
        "prospector.scanner": { "fingerprint.enabled": true },
        "close.on_state_change.removed": false,
        "file_identity.fingerprint": null,
        "paths": paths,
    });
    let source = Source::new(OUTSIDE, "the built-in `hints.default_config` of Nomad");
    let position = Position::whole(&source);
    Node::from_json(&value, &position).with_levels(&Problems::new()).with_variables()
}

#[cfg(test)]
#[path = "nomad_tests.rs"]
mod tests;
