//! The processors of our own modules make of lines what their golden files say.

#[path = "common/lookup_files.rs"]
mod lookup_files;
#[path = "common/modules.rs"]
mod modules;

use lookup_files::write_lookup_files;
use modules::{Fileset, West, folder};
use serde_json::Value as Json;
use skidder_os::Timestamp;
use skidder_processors::Context;
use skidder_testkit::{SimClock, SimFs};
use std::fs;
use std::path::Path;
use std::sync::Arc;

fn context() -> Context {
    let clock = SimClock::starting_at(Timestamp(skidder_golden::TIME));
    let fs = SimFs::new(&clock);
    write_lookup_files(&fs);
    let context = Context::new(Arc::new(fs), Arc::new(clock));
    Context { machine: Arc::new(West), ..context }
}

/// All variables that name a file, and the zone of the machine.
fn variables(name: &str) -> Vec<(&'static str, &'static str)> {
    let manifest =
        fs::read_to_string(folder().join(name).join("manifest.yml")).expect("a manifest");
    let all = [
        ("regex_file", "/etc/regexes.yaml"),
        ("geoip_database", "/etc/geo/city.mmdb"),
        ("geoip_asn_database", "/etc/geo/asn.mmdb"),
        ("timezone", "-0200"),
    ];
    all.into_iter().filter(|(key, _)| manifest.contains(&format!("name: {key}\n"))).collect()
}

/// `module/fileset` of every fileset.
fn names() -> Vec<String> {
    let mut names = Vec::new();
    for module in fs::read_dir(folder()).expect("a folder") {
        let module = module.expect("an entry").path();
        for fileset in fs::read_dir(&module).expect("a folder") {
            let fileset = fileset.expect("an entry").path();
            if fileset.is_dir() {
                let part = |path: &Path| {
                    let name = path.file_name().and_then(|name| name.to_str());
                    name.expect("a name of letters").to_owned()
                };
                names.push(format!("{}/{}", part(&module), part(&fileset)));
            }
        }
    }
    names.sort();
    names
}

#[test]
fn every_fileset_makes_of_its_lines_what_its_golden_file_says() {
    let names = names();
    assert!(!names.is_empty());
    let context = context();
    let mut wrong = Vec::new();
    for name in &names {
        let place = folder().join("../tests/own").join(name.replace('/', "-"));
        let lines = fs::read_to_string(place.with_extension("log"))
            .unwrap_or_else(|error| panic!("{name} needs lines: {}: {error}", place.display()));
        let fileset = Fileset::new(name, &variables(name), &context);
        let events = Json::Array(fileset.events(&lines));
        let golden = place.with_extension("json");
        if std::env::var_os("SKIDDER_UPDATE").is_some() {
            fs::write(&golden, format!("{events:#}\n")).unwrap();
            continue;
        }
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        let expected: Json = serde_json::from_str(&expected).unwrap_or_default();
        if expected != events {
            wrong.push(format!("{name}: expected {expected:#}\ngot {events:#}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn every_fileset_reads_its_settings_without_databases_and_expressions() {
    for name in names() {
        let event = Fileset::new(&name, &[], &context()).events("what is this").remove(0);
        let kept =
            event["event"]["original"] == "what is this" || event["message"] == "what is this";
        assert!(kept, "{name} loses a line that it does not know: {event:#}");
    }
}
