//! Hints and templates make the same configurations as Filebeat 9.6.

mod common;

use common::{at, autodiscover, config};
use serde_json::{Value as Json, json};
use skidder_autodiscover::Fact;

const CASES: &str = include_str!("golden/filebeat-9.6.json");
const METADATA: &str = include_str!("golden/metadata-9.6.json");

/// Cases in which we differ on purpose.
const DIFFERENT: [&str; 5] = [
    // Only one input of type `container` can read a log: the first set runs, the others are explained.
    "docker: numbered sets",
    "docker: numbered sets and others",
    "docker: numbered set with enabled",
    // An input without a type cannot run: an empty map counts as none.
    "docker: empty default config",
    // Filebeat adds a `deployment.name` that is `null`.
    "a replica set without a deployment",
];

/// From the description of an object to a fact.
type MakeFact = fn(Json) -> Fact;

fn is_different(case: &Json) -> bool {
    DIFFERENT.iter().any(|name| case["name"] == *name)
}

/// The configuration of the provider of a case.
fn settings(case: &Json) -> String {
    let mut provider = json!({ "type": case["provider"] });
    if let Some(prefix) = case.get("prefix") {
        provider["prefix"] = prefix.clone();
    }
    if let Some(templates) = case.get("templates") {
        provider["templates"] = templates.clone();
    } else {
        let hints = case.get("hints").cloned();
        provider["hints"] = hints.unwrap_or_else(|| json!({ "enabled": true }));
    }
    json!({ "filebeat": { "autodiscover": { "providers": [provider] } } }).to_string()
}

/// The facts of a case: first what is around the container.
fn facts(case: &Json) -> Vec<Fact> {
    let own = &case["container"];
    let port = case["port"].as_u64().filter(|port| *port != 0);
    if case["provider"] == "docker" {
        let mut object = json!({
            "Id": own["id"],
            "Name": format!("/{}", own["name"].as_str().unwrap_or_default()),
            "Config": { "Image": own["image"], "Labels": case["labels"], "ExposedPorts": {} },
            "NetworkSettings": { "Networks": { "n": { "IPAddress": case["host"] } } },
        });
        if let Some(port) = port {
            object["Config"]["ExposedPorts"][format!("{port}/tcp")] = json!({});
        }
        return vec![Fact::Docker(object)];
    }
    let meta = &case["kubernetes"];
    let mut pod = json!({
        "metadata": {
            "uid": meta["pod"]["uid"], "name": meta["pod"]["name"], "namespace": meta["namespace"],
            "annotations": case["labels"],
        },
        "spec": { "nodeName": meta["node"]["name"], "containers": [] },
        "status": { "podIP": case["host"] },
    });
    if own.is_object() {
        pod["spec"]["containers"] = json!([{ "name": own["name"], "image": own["image"] }]);
        let id = format!(
            "{}://{}",
            own["runtime"].as_str().unwrap_or_default(),
            own["id"].as_str().unwrap_or_default()
        );
        pod["status"]["containerStatuses"] =
            json!([{ "name": own["name"], "containerID": id, "state": { "running": {} } }]);
    }
    let namespace = json!({ "metadata": {
        "uid": "ns-1", "name": meta["namespace"], "annotations": case["namespace_annotations"],
    } });
    vec![Fact::Namespace(namespace), Fact::Pod(pod)]
}

#[test]
fn configurations_are_those_of_filebeat() {
    let cases: Vec<Json> = serde_json::from_str(CASES).unwrap();
    assert!(cases.len() > 90, "{}", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        let mut ours = autodiscover(&settings(case));
        for fact in facts(case) {
            ours.seen(0, fact, at(0));
        }
        let made: Vec<Json> = ours.decide(at(0)).iter().map(|made| config(made)).collect();
        let is_same = Json::Array(made.clone()) == case["configs"];
        if is_same == is_different(case) {
            let why = ours.explain();
            wrong.push(format!(
                "{}\nFilebeat: {}\nskidder:  {}\n{why}",
                case["name"],
                case["configs"],
                Json::Array(made)
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} cases differ:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n\n")
    );
}

#[test]
fn fields_of_kubernetes_are_those_of_filebeat() {
    let cases: Vec<Json> = serde_json::from_str(METADATA).unwrap();
    assert!(cases.len() > 20, "{}", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        let mut provider =
            json!({ "type": "kubernetes", "templates": { "config": { "type": "tcp" } } });
        for (key, value) in case["settings"].as_object().unwrap() {
            provider[key] = value.clone();
        }
        let main = match (case.get("service"), case.get("pod")) {
            (Some(service), _) => ("service", Fact::Service(service.clone())),
            (None, Some(pod)) => ("pod", Fact::Pod(pod.clone())),
            (None, None) => ("node", Fact::Node(case["node"].clone())),
        };
        provider["resource"] = main.0.into();
        let text = json!({ "filebeat": { "autodiscover": { "providers": [provider] } } });
        let mut ours = autodiscover(&text.to_string());
        let around: [(&str, MakeFact); 4] = [
            ("namespace", Fact::Namespace),
            ("node", Fact::Node),
            ("replica_set", Fact::ReplicaSet),
            ("job", Fact::Job),
        ];
        for (key, fact) in around {
            if let Some(object) = case.get(key) {
                ours.seen(0, fact(object.clone()), at(0));
            }
        }
        ours.seen(0, main.1, at(0));
        let made = ours.decide(at(0));
        let mut fields = made[0].fields.value();
        // Of the container, which Filebeat's provider adds.
        fields.as_object_mut().unwrap().remove("container");
        let is_same = fields == case["fields"];
        if is_same == is_different(case) {
            wrong.push(format!(
                "{}\nFilebeat: {}\nskidder:  {fields}",
                case["name"], case["fields"]
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} cases differ:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n\n")
    );
}
