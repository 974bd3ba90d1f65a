//! Containers of Docker: from the API's description to events.

use crate::event::{Event, note_of_ports};
use crate::json::{dedotted, text, text_or_empty, texts, tree};
use crate::limits::PORTS_MAX;
use crate::made::Fields;
use serde_json::{Map as Object, Value as Json, json};
use std::collections::BTreeMap;

/// What counts of a description.
#[derive(Debug)]
struct Container<'a> {
    id: String,
    name: String,
    image: String,
    labels: BTreeMap<&'a str, &'a str>,
    host: String,
    /// Ports of the container, and where they are on the host; 0 for nowhere.
    ports: BTreeMap<u64, u64>,
    log_driver: String,
}

impl<'a> Container<'a> {
    /// Of `inspect`, or of an item of a list.
    fn read(object: &'a Json) -> Self {
        let config = &object["Config"];
        let names = object["Names"].as_array().and_then(|names| names.first()?.as_str());
        let name = names.or_else(|| text(&object["Name"])).unwrap_or_default();
        let labels = if config.is_object() { &config["Labels"] } else { &object["Labels"] };
        let image = if config.is_object() { &config["Image"] } else { &object["Image"] };
        let networks = object["NetworkSettings"]["Networks"].as_object();
        let networks: BTreeMap<&String, &Json> = networks.into_iter().flatten().collect();
        let address = networks.values().find_map(|network| text(&network["IPAddress"]));
        // A container without an own address is in the network of the host.
        let name_of_host = || text(&config["Hostname"]).or_else(|| text(&object["Hostname"]));
        let host = address.or_else(name_of_host).unwrap_or_default();
        Self {
            id: text_or_empty(&object["Id"]),
            name: name.strip_prefix('/').unwrap_or(name).to_owned(),
            image: text_or_empty(image),
            labels: texts(labels),
            host: host.to_owned(),
            ports: ports(object),
            // Only an inspection has it, or an item to which the watcher has added it.
            log_driver: text_or_empty(&object["HostConfig"]["LogConfig"]["Type"]),
        }
    }
}

/// Ports of a list are objects in `Ports`; those of `inspect` are keys like `80/tcp`.
fn ports(object: &Json) -> BTreeMap<u64, u64> {
    let mut ports = BTreeMap::new();
    let mut add = |private: u64, public: u64| {
        let known = ports.entry(private).or_insert(public);
        if *known == 0 {
            *known = public;
        }
    };
    for port in object["Ports"].as_array().into_iter().flatten() {
        if let Some(private) = port["PrivatePort"].as_u64() {
            add(private, port["PublicPort"].as_u64().unwrap_or(0));
        }
    }
    let number = |key: &str| key.split('/').next().and_then(|number| number.parse::<u64>().ok());
    for (key, bindings) in object["NetworkSettings"]["Ports"].as_object().into_iter().flatten() {
        let binding = bindings.as_array().and_then(|bindings| bindings.first());
        let public = binding.and_then(|binding| binding["HostPort"].as_str()?.parse().ok());
        if let Some(private) = number(key) {
            add(private, public.unwrap_or(0));
        }
    }
    for key in
        object["Config"]["ExposedPorts"].as_object().into_iter().flatten().map(|(key, _)| key)
    {
        if let Some(private) = number(key) {
            add(private, 0);
        }
    }
    ports
}

/// The events of a container: one for each port, one without a port if it has none.
pub(crate) fn events(object: &Json, dedot: bool) -> Vec<Event> {
    let mut container = Container::read(object);
    let note = note_of_ports(container.ports.len());
    container.ports = container.ports.into_iter().take(PORTS_MAX).collect();
    let labels = tree(&container.labels);
    let own = json!({
        "id": container.id, "name": container.name, "image": container.image, "labels": labels,
    });
    let ecs = json!({
        "id": container.id,
        "name": container.name,
        "image": { "name": container.image },
        "labels": labels,
    });
    let shown = if dedot { dedotted(&container.labels) } else { labels.clone() };
    let fields = Fields::of(&json!({
        "container": {
            "id": container.id, "name": container.name, "image": { "name": container.image },
        },
        "docker": { "container": { "labels": shown } },
    }));
    let numbers: Object<String, Json> = container
        .ports
        .iter()
        .map(|(private, public)| (private.to_string(), Json::from(*public)))
        .collect();
    let event = |port: Option<u64>| {
        let mut facts = json!({
            "id": container.id, "host": container.host, "docker": { "container": own }, "container": ecs,
        });
        let mut hint_facts = json!({ "host": container.host, "container": own });
        let mut about = format!("container {}", container.name);
        if let Some(port) = port {
            for facts in [&mut facts, &mut hint_facts] {
                facts["port"] = port.into();
                facts["ports"] = Json::Object(numbers.clone());
            }
            about = format!("{about}, port {port}");
        }
        Event {
            about,
            facts,
            hint_facts,
            annotations: labels.clone(),
            container: String::new(),
            container_id: container.id.clone(),
            note: note.clone(),
            is_around_containers: false,
            log_driver: container.log_driver.clone(),
            namespace: String::new(),
            fields: fields.clone(),
        }
    };
    if container.ports.is_empty() {
        return vec![event(None)];
    }
    container.ports.keys().map(|port| event(Some(*port))).collect()
}

/// The name of a container, for messages.
pub(crate) fn name(object: &Json) -> String {
    Container::read(object).name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inspected() -> Json {
        json!({
            "Id": "c1", "Name": "/web", "Image": "sha256:1",
            "Config": {
                "Image": "nginx:1.27", "Hostname": "h", "Labels": { "a.b": "1", "app": "x" },
                "ExposedPorts": { "80/tcp": {}, "443/tcp": {} },
            },
            "State": { "Running": true, "StartedAt": "2026-01-02T03:04:05.1Z" },
            "NetworkSettings": {
                "Networks": { "bridge": { "IPAddress": "172.17.0.2" } },
                "Ports": { "80/tcp": [{ "HostIp": "0.0.0.0", "HostPort": "8080" }], "443/tcp": null },
            },
        })
    }

    #[test]
    fn a_container_has_an_event_for_each_port() {
        let events = events(&inspected(), true);
        let expected = json!({
            "id": "c1",
            "host": "172.17.0.2",
            "port": 80,
            "ports": { "80": 8080, "443": 0 },
            "docker": { "container": {
                "id": "c1", "name": "web", "image": "nginx:1.27", "labels": { "a": { "b": "1" }, "app": "x" },
            } },
            "container": {
                "id": "c1", "name": "web", "image": { "name": "nginx:1.27" },
                "labels": { "a": { "b": "1" }, "app": "x" },
            },
        });
        assert_eq!(events.len(), 2);
        assert_eq!(events[0].facts, expected);
        assert_eq!(events[1].facts["port"], 443);
        assert_eq!(events[0].hint_facts["container"]["image"], "nginx:1.27");
        let fields = json!({
            "container": { "id": "c1", "name": "web", "image": { "name": "nginx:1.27" } },
            "docker": { "container": { "labels": { "a_b": "1", "app": "x" } } },
        });
        assert_eq!(events[0].fields.value(), fields);
    }

    #[test]
    fn a_list_and_an_inspection_give_the_same() {
        let listed = json!({
            "Id": "c1", "Names": ["/web"], "Image": "nginx:1.27", "State": "running",
            "Labels": { "a.b": "1", "app": "x" },
            "Ports": [
                { "PrivatePort": 80, "PublicPort": 8080, "Type": "tcp", "IP": "0.0.0.0" },
                { "PrivatePort": 80, "PublicPort": 8080, "Type": "tcp", "IP": "::" },
                { "PrivatePort": 443, "Type": "tcp" },
            ],
            "NetworkSettings": { "Networks": { "bridge": { "IPAddress": "172.17.0.2" } } },
        });
        let facts = |object: &Json| -> Vec<Json> {
            events(object, true).into_iter().map(|event| event.facts).collect()
        };
        assert_eq!(facts(&listed), facts(&inspected()));
    }

    #[test]
    fn a_container_without_ports_has_one_event_and_the_name_of_its_host() {
        let object =
            json!({ "Id": "c2", "Name": "/job", "Config": { "Hostname": "node7", "Image": "i" } });
        let events = events(&object, false);
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].facts["host"], "node7");
        // The watcher adds it to an item of a list.
        let listed = json!({ "Id": "c2", "Names": ["/job"], "Image": "i", "Hostname": "node7" });
        let listed = super::events(&listed, false);
        assert_eq!(listed[0].facts, events[0].facts);
        assert_eq!(events[0].facts.get("port"), None);
        assert_eq!(events[0].fields.value()["docker"]["container"]["labels"], json!({}));
    }
}
