//! From the documents of clouds to fields.

use serde_json::Value as Json;
use skidder_config::{Problems, Settings};
use skidder_event::Map;

/// Sets a field unless the text is empty.
pub(super) fn set(fields: &mut Map, field: &str, text: &str) {
    if !text.is_empty() {
        fields.insert_path(field, text);
    }
}

/// Sets a field to a text or a number, as text.
fn take(fields: &mut Map, field: &str, value: &Json) {
    match value {
        Json::String(text) => set(fields, field, text),
        Json::Number(number) => set(fields, field, &number.to_string()),
        _ => {}
    }
}

pub(super) fn azure(compute: &Json) -> Map {
    let mut fields = Map::new();
    take(&mut fields, "cloud.account.id", &compute["subscriptionId"]);
    take(&mut fields, "cloud.instance.id", &compute["vmId"]);
    take(&mut fields, "cloud.instance.name", &compute["name"]);
    take(&mut fields, "cloud.machine.type", &compute["vmSize"]);
    take(&mut fields, "cloud.region", &compute["location"]);
    take(&mut fields, "cloud.availability_zone", &compute["zone"]);
    set(&mut fields, "cloud.service.name", "Virtual Machines");
    fields
}

pub(super) fn digital_ocean(droplet: &Json) -> Map {
    let mut fields = Map::new();
    take(&mut fields, "cloud.instance.id", &droplet["droplet_id"]);
    take(&mut fields, "cloud.region", &droplet["region"]);
    set(&mut fields, "cloud.service.name", "Droplets");
    fields
}

pub(super) fn gcp(all: &Json) -> Map {
    let mut fields = Map::new();
    let instance = &all["instance"];
    // `projects/1/zones/us-east1-b` is `us-east1-b`, in `us-east1`.
    let last = |value: &Json| {
        let text = value.as_str().unwrap_or_default();
        text.rsplit('/').next().unwrap_or_default().to_owned()
    };
    let zone = last(&instance["zone"]);
    take(&mut fields, "cloud.instance.id", &instance["id"]);
    take(&mut fields, "cloud.instance.name", &instance["name"]);
    set(&mut fields, "cloud.machine.type", &last(&instance["machineType"]));
    set(&mut fields, "cloud.availability_zone", &zone);
    if let Some((region, _)) = zone.rsplit_once('-') {
        set(&mut fields, "cloud.region", region);
    }
    take(&mut fields, "cloud.project.id", &all["project"]["projectId"]);
    take(&mut fields, "cloud.account.id", &all["project"]["projectId"]);
    set(&mut fields, "cloud.service.name", "GCE");
    let attributes = &instance["attributes"];
    if let Some(name) = attributes["cluster-name"].as_str().filter(|name| !name.is_empty()) {
        set(&mut fields, "orchestrator.cluster.name", name);
        let config = attributes["kubeconfig"].as_str().unwrap_or_default();
        set(&mut fields, "orchestrator.cluster.url", &first_cluster(config).unwrap_or_default());
    }
    fields
}

/// The server of the first cluster of a kubeconfig.
fn first_cluster(config: &str) -> Option<String> {
    let settings = Settings::parse("kubeconfig", config).ok()?;
    let problems = Problems::new();
    let root = settings.root(&problems);
    let mut clusters = root.sections("clusters").into_iter();
    let server = clusters.next().and_then(|cluster| cluster.string("cluster.server").optional());
    clusters.for_each(skidder_config::Section::skip);
    root.skip();
    server
}
