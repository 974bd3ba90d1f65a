//! Labels and annotations that the owners of containers write: bounded, and no harm to other inputs.

mod common;

use common::{at, autodiscover, config, container, pod};
use serde_json::{Value as Json, json};
use skidder_autodiscover::limits::{HINT_BYTES_MAX, HINT_INPUTS_MAX, PORTS_MAX};
use skidder_autodiscover::{Autodiscover, Fact, with_hints};
use skidder_config::{Problem, Problems};

const HINTS: &str = "
filebeat.autodiscover.providers:
- type: docker
  hints.enabled: true
  hints.default_config: {type: container, paths: ['/var/log/${data.container.id}/*.log']}
";

const ALLOW_LIST: &str = "
filebeat.autodiscover.providers:
- type: docker
  hints:
    input_allow_list.enabled: true
    default_config: {type: container, paths: ['/var/log/${data.container.id}/*.log']}
";

/// The configurations of a container with these labels, beside one without labels.
fn made(text: &str, labels: Json) -> (Vec<Json>, Autodiscover) {
    let mut all = autodiscover(text);
    all.seen(0, Fact::Docker(container("bad", 1, labels)), at(1));
    all.seen(0, Fact::Docker(container("good", 2, json!({}))), at(1));
    let mut made: Vec<Json> = all.decide(at(1)).iter().map(|made| config(made)).collect();
    assert_eq!(made.pop().expect("the good container")["paths"], json!(["/var/log/good/*.log"]));
    (made, all)
}

#[test]
fn hints_of_many_bytes_are_refused() {
    let huge = "x".repeat(HINT_BYTES_MAX + 1);
    let (made, all) = made(HINTS, json!({ "co.elastic.logs/include_lines": huge }));
    assert!(made.is_empty());
    assert!(all.explain().to_string().contains("at most 65536 are read"));
}

#[test]
fn a_deep_hint_is_refused() {
    let deep = format!("{}1{}", "{\"a\":".repeat(100), "}".repeat(100));
    let (none, all) = made(HINTS, json!({ "co.elastic.logs/raw": deep }));
    assert!(none.is_empty());
    assert!(all.explain().to_string().contains("more than 20 levels"));
    let dots = format!("{{\"{}\": 1}}", "a.".repeat(5000));
    assert!(made(HINTS, json!({ "co.elastic.logs/raw": dots })).0.is_empty());
    // Deeper than the reader of JSON goes: the hint is no JSON to it, and the rest counts, as in Filebeat.
    let deeper = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    assert_eq!(made(HINTS, json!({ "co.elastic.logs/raw": deeper })).0.len(), 1);
    let name = format!("co.elastic.logs/multiline.{}", "a.".repeat(10_000));
    made(HINTS, json!({ name: "1" }));
}

#[test]
fn many_inputs_are_bounded() {
    let list: Vec<Json> =
        (0..1000).map(|number| json!({ "type": "log", "paths": [number] })).collect();
    let (all, _) = made(HINTS, json!({ "co.elastic.logs/raw": Json::Array(list).to_string() }));
    assert_eq!(all.len(), HINT_INPUTS_MAX);
    let sets: serde_json::Map<String, Json> = (0..100)
        .map(|number| (format!("co.elastic.logs/{number}.pipeline"), json!(format!("p{number}"))))
        .collect();
    let (_, all) = made(HINTS, Json::Object(sets));
    // Those of one type `container` do not run, and are counted as well.
    let explained = all.explain();
    let inputs = explained.providers[0].objects.iter().map(|object| object.inputs.len());
    assert_eq!(inputs.max(), Some(HINT_INPUTS_MAX));
}

#[test]
fn values_of_a_wrong_type_leave_the_rest() {
    let labels = json!({
        "co.elastic.logs/multiline": "x", "co.elastic.logs/json": "x", "co.elastic.logs/processors": "x",
        "co.elastic.logs/include_lines.a": "x", "co.elastic.logs/enabled.a": "x", "co.elastic.logs/module.a": "x",
        "co.elastic": "x",
    });
    let (made, _) = made(HINTS, labels);
    assert_eq!(made, [json!({ "type": "container", "paths": ["/var/log/bad/*.log"] })]);
}

#[test]
fn the_allow_list_refuses_types_paths_and_scripts() {
    let table = [
        (r#"{"type": "tcp", "host": ":1"}"#, "does not have the type `tcp`"),
        (
            r#"{"type": "log", "paths": ["/etc/shadow"]}"#,
            "`/etc/shadow` of the hint `raw` is not below /var/log/",
        ),
        (r#"{"type": "log", "paths": "/var/log/../../etc/shadow"}"#, "is not below /var/log/"),
        (
            r#"{"paths": ["/var/log/x"], "processors": [{"script": {"source": "x"}}]}"#,
            "processor `script`",
        ),
    ];
    for (raw, reason) in table {
        let labels = json!({ "co.elastic.logs/raw": raw });
        let (none, all) = made(ALLOW_LIST, labels.clone());
        assert!(none.is_empty(), "{raw}");
        assert!(all.explain().to_string().contains(reason), "{}", all.explain());
        assert_eq!(made(HINTS, labels).0.len(), 1, "{raw} is allowed without the list");
    }
    let allowed = r#"{"type": "filestream", "id": "x", "paths": ["/var/log/x"]}"#;
    assert_eq!(made(ALLOW_LIST, json!({ "co.elastic.logs/raw": allowed })).0.len(), 1);
    let script = r#"{"if": {"has_fields": ["a"]}, "then": [{"script": {}}]}"#;
    let nested = json!({ "co.elastic.logs/processors.1.if": script });
    assert!(made(ALLOW_LIST, nested).0.is_empty());
}

#[test]
fn a_variable_in_a_path_cannot_leave_the_allowed_folders() {
    let labels = json!({
        "dir": "../../etc",
        "co.elastic.logs/raw": r#"{"type": "log", "paths": ["/var/log/${data.container.labels.dir}/x"]}"#,
    });
    assert!(made(ALLOW_LIST, labels).0.is_empty());
}

#[test]
fn a_mistake_in_a_hint_names_it() {
    let mut all = autodiscover(HINTS);
    let labels = json!({ "co.elastic.logs/multiline.match": "never" });
    all.seen(0, Fact::Docker(container("bad", 1, labels)), at(1));
    let made = all.decide(at(1));
    let problems = Problems::new();
    let settings = made[0].settings.settings();
    let items = settings.items(&problems);
    let section = items[0].section();
    section.section("multiline").one_of("match", &[("after", 1), ("before", 2)]).or(1);
    section.skip();
    let expected = "error: hint co.elastic.logs/multiline.match of container name-bad: `[0].multiline.match` is `never`; \
                    expected `after` or `before`";
    assert!(problems.to_string().starts_with(expected), "{problems}");
    let named = with_hints(&settings, problems.sorted().remove(0)).to_string();
    assert!(
        named.contains("`co.elastic.logs/multiline.match` is `never`; expected `after`"),
        "{named}"
    );
    assert_eq!(items[0].node().at("paths").unwrap().position().to_string(), "filebeat.yml:5:50");
}

#[test]
fn each_setting_from_a_hint_has_the_name_of_its_label() {
    let annotations = json!({
        "co.elastic.logs/json.keys_under_root": "true",
        "co.elastic.logs/include_lines": "a, b",
        "co.elastic.logs/processors.3.rename.fields.0.from": "x",
        "co.elastic.logs/processors.4.dissect": "{\"tokenizer\": \"%{a}\"}",
        "co.elastic.logs/processors.drop_fields.fields": "y",
        "co.elastic.logs.web/pipeline": "p",
    });
    let mut all =
        autodiscover("filebeat.autodiscover.providers: [{type: kubernetes, hints.enabled: true}]");
    all.seen(0, Fact::Pod(pod("1", 1, annotations)), at(1));
    let made = all.decide(at(1));
    let settings = made[0].settings.settings();
    let table = [
        ("[0].parsers[1].ndjson.keys_under_root", "/json.keys_under_root"),
        ("[0].parsers[1].ndjson.target", "/json.target"),
        ("[0].include_lines[1]", "/include_lines[1]"),
        ("[0].processors[0].rename.fields[0].from", "/processors.3.rename.fields.0.from"),
        ("[0].processors[0].rename.fields[0].to", "/processors.3.rename.fields.0.to"),
        ("[0].processors[0].rename.to", "/processors.3.rename.to"),
        ("[0].processors[1].dissect.tokenizer", "/processors.4.dissect.tokenizer"),
        ("[0].processors[2].drop_fields.fields", "/processors.drop_fields.fields"),
        ("[0].pipeline", ".web/pipeline"),
    ];
    for (path, hint) in table {
        let problem = Problem::error(None, format!("`{path}` is `{path}x`"));
        let named = with_hints(&settings, problem).message;
        let expected = format!("`co.elastic.logs{hint}` is `");
        assert!(named.starts_with(&expected), "{path}: {named}");
    }
    let other = Problem::error(None, "`[0].paths[0]` is `x`");
    assert_eq!(with_hints(&settings, other.clone()), other, "it is no hint");
    let missing = json!({ "co.elastic.logs/json.message_key": "${data.nothing}" });
    all.seen(0, Fact::Pod(pod("2", 1, missing)), at(2));
    all.decide(at(2));
    let explanation = all.explain().to_string();
    let expected = "`co.elastic.logs/json.message_key` uses `${data.nothing}`, which is not set";
    assert!(explanation.contains(expected), "{explanation}");
}

#[test]
fn many_ports_are_bounded() {
    let mut bad = container("bad", 1, json!({}));
    for port in 1..=65_535 {
        bad["Config"]["ExposedPorts"][format!("{port}/tcp")] = json!({});
    }
    let mut all = autodiscover(HINTS);
    all.seen(0, Fact::Docker(bad), at(1));
    assert_eq!(all.decide(at(1)).len(), 1);
    let explanation = all.explain();
    assert_eq!(explanation.providers[0].objects[0].events.len(), PORTS_MAX);
    assert!(explanation.to_string().contains("only the first 64 of 65535 ports are looked at"));
}
