//! Events, fields and kept facts of allocations.

use super::*;
use crate::provider::Scope;
use std::time::Duration;

fn provider(include: &[&str], exclude: &[&str]) -> NomadProvider {
    let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
    NomadProvider {
        address: String::new(),
        tls: None,
        region: None,
        namespace: None,
        token: None,
        node: None,
        scope: Scope::Node,
        wait: Duration::ZERO,
        allows_stale: true,
        include: texts(include),
        exclude: texts(exclude),
    }
}

fn allocation() -> Json {
    json!({
        "ID": "a1", "Name": "shop.web[0]", "Namespace": "default", "NodeName": "n1",
        "ClientStatus": "running", "TaskGroup": "web", "ModifyIndex": 7, "CreateTime": 1,
        "Job": {
            "Name": "shop", "Type": "service", "Region": "global", "Datacenters": ["dc1", "dc2"],
            "Meta": { "owner": "team-a", "level": "job" },
            "TaskGroups": [
                {
                    "Name": "web",
                    "Meta": { "level": "group", "co.elastic.logs/enabled": "true" },
                    "Tasks": [
                        {
                            "Name": "api", "Env": { "PASSWORD": "secret" },
                            "Meta": {
                                "level": "task", "a.b": "1",
                                "co.elastic.logs/multiline.pattern": "^x",
                            },
                            "Services": [
                                { "Name": "api", "Tags": ["t1", "t2"], "CanaryTags": ["c"] },
                                { "Name": "api2", "Tags": ["t3"], "CanaryTags": null },
                            ],
                        },
                        { "Name": "side", "Meta": null, "Services": null },
                    ],
                },
                { "Name": "db", "Tasks": [{ "Name": "postgres" }] },
            ],
        },
    })
}

/// `nomad` without its task, as Filebeat 9.6 makes it of the same allocation.
fn common() -> Json {
    json!({
        "allocation": { "id": "a1", "name": "shop.web[0]", "status": "running" },
        "datacenter": ["dc1", "dc2"],
        "job": { "name": "shop", "type": "service" },
        "namespace": "default",
        "region": "global",
    })
}

#[test]
fn each_task_of_the_group_has_an_event_with_the_fields_of_filebeat() {
    let events = events(&allocation(), &provider(&[], &[]), Some("co.elastic")).unwrap();
    let [api, side] = &events[..] else { panic!("two tasks: {events:?}") };
    let mut nomad = common();
    nomad["task"] = json!({
        "name": "api", "owner": "team-a", "level": "task", "a": { "b": "1" },
        "service": {
            "name": ["api", "api2"], "tags": ["t1", "t2", "t3"], "canary_tags": ["c"],
        },
    });
    assert_eq!(api.fields.value(), json!({ "nomad": nomad }));
    let hints =
        json!({ "elastic": { "logs/enabled": "true", "logs/multiline": { "pattern": "^x" } } });
    nomad["task"]["co"] = hints.clone();
    assert_eq!(
        api.facts,
        json!({ "id": "a1-api", "host": "n1", "nomad": nomad, "meta": { "nomad": nomad } })
    );
    assert_eq!(api.hint_facts, json!({ "host": "n1", "nomad": nomad }));
    assert_eq!(api.annotations["co"], hints);
    assert_eq!(api.about, "task api of allocation shop.web[0]");
    let mut nomad = common();
    nomad["task"] = json!({ "name": "side", "owner": "team-a", "level": "group" });
    assert_eq!(side.fields.value(), json!({ "nomad": nomad }));
}

#[test]
fn labels_are_chosen_and_the_name_of_a_task_is_always_there() {
    let task = |include: &[&str], exclude: &[&str]| {
        let events = events(&allocation(), &provider(include, exclude), None).unwrap();
        events[0].fields.value()["nomad"]["task"].clone()
    };
    let chosen = task(&["level", "a", "nothing"], &["a"]);
    assert_eq!(chosen, json!({ "name": "api", "level": "task" }));
    assert_eq!(task(&["a.b"], &[]), json!({ "name": "api", "a": { "b": "1" } }));
    let rest = task(&[], &["service.tags", "owner", "name", "co", "a"]);
    let expected = json!({
        "name": "api", "level": "task",
        "service": { "name": ["api", "api2"], "canary_tags": ["c"] },
    });
    assert_eq!(rest, expected);
}

#[test]
fn metadata_called_name_does_not_rename_a_task() {
    let mut allocation = allocation();
    allocation["Job"]["Meta"]["name"] = "other".into();
    let events = events(&allocation, &provider(&[], &[]), None).unwrap();
    assert_eq!(events[1].facts["nomad"]["task"]["name"], "side");
}

#[test]
fn an_allocation_without_tasks_says_so() {
    let mut allocation = allocation();
    allocation["Job"]["TaskGroups"] = Json::Null;
    let reason = events(&allocation, &provider(&[], &[]), None).unwrap_err();
    assert_eq!(reason, "the allocation has no tasks");
}

#[test]
fn of_an_allocation_is_kept_what_its_events_are_made_of() {
    let short = reduced(&allocation());
    let of = |object: &Json| format!("{:?}", events(object, &provider(&[], &[]), None));
    assert_eq!(of(&short), of(&allocation()));
    let text = short.to_string();
    assert!(!text.contains("secret") && !text.contains("postgres"), "{text}");
}

#[test]
fn an_allocation_is_over_when_it_has_ended() {
    let is_over = |status: &str| super::is_over(&json!({ "ClientStatus": status }));
    assert!(["pending", "complete", "failed", "lost"].into_iter().all(is_over));
    assert!(!["running", "unknown"].into_iter().any(is_over));
}
