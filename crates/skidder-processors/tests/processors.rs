//! Each processor as the configuration gives it, on single events; and what a failure leaves behind.

#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::{batch, describe, document, map, path, source_fields, value_of};
use proptest::prelude::*;
use serde_json::{Value as Json, json};
use skidder_config::{Problems, Settings};
use skidder_event::*;
use skidder_processors::*;
use skidder_testkit::{SimClock, SimFs};
use std::sync::Arc;

/// The list of a YAML text, and its problems.
fn read(yaml: &str) -> (Vec<Compiled>, String) {
    let settings = Settings::parse("f.yml", yaml).unwrap();
    let problems = Problems::new();
    let clock = SimClock::new();
    let context = Context::new(Arc::new(SimFs::new(&clock)), Arc::new(clock));
    let list = read_processors(settings.root(&problems).items("processors"), &context);
    (list, problems.to_string())
}

/// The document of an event with `message`, after the processors of a YAML list.
fn process(yaml: &str, message: &str) -> Option<Json> {
    let (list, problems) = read(yaml);
    assert_eq!(problems, "", "{yaml}");
    let fields = map(&source_fields());
    let bound = Plan::compile(&list, &Map::new(), &[]).bind(&fields, &Map::new(), Shape::Lines);
    let mut batch = batch(&[message], bound.base());
    bound.run(&mut batch);
    let mut document = (batch.len() == 1).then(|| document(&batch, 0))?;
    // What every event has.
    document.as_object_mut().unwrap().remove("@timestamp");
    Some(document)
}

fn plain(message: &str) -> Json {
    json!({
        "@metadata": {},
        "log": {"file": {"path": "/var/log/a.log"}, "offset": 0},
        "input": {"type": "filestream"},
        "message": message,
    })
}

/// The plain event with fields set, or removed if they are null.
fn with(changes: &[(&str, Json)]) -> Json {
    let mut tree = plain("hello");
    for (name, value) in changes {
        let (parents, last) = name.rsplit_once('.').unwrap_or(("", name));
        let mut at = &mut tree;
        for key in parents.split('.').filter(|key| !key.is_empty()) {
            let object = at.as_object_mut().unwrap();
            at = object.entry(key).or_insert_with(|| json!({}));
        }
        let object = at.as_object_mut().unwrap();
        if value.is_null() {
            object.remove(last);
        } else {
            object.insert(last.to_owned(), value.clone());
        }
    }
    tree
}

#[test]
fn processors_do_what_their_settings_say() {
    let missing = "Failed to rename fields in processor: could not fetch value for key: nope, \
        Error: key not found";
    let there = "Failed to rename fields in processor: target field message already exists, drop \
        or rename this field first";
    let table: &[(&str, Json)] = &[
        (
            "- add_fields: {fields: {a: 1, b.c: x}}",
            with(&[("fields", json!({"a": 1, "b": {"c": "x"}}))]),
        ),
        ("- add_fields: {target: '', fields: {a: [1, x]}}", with(&[("a", json!([1, "x"]))])),
        ("- add_fields: {target: p.q, fields: {a: 1.5}}", with(&[("p.q.a", json!(1.5))])),
        (
            "- add_fields: {target: '@metadata', fields: {pipeline: p}}",
            with(&[("@metadata.pipeline", json!("p"))]),
        ),
        (
            "- add_fields: {target: '', fields: {message: other}}",
            with(&[("message", json!("other"))]),
        ),
        ("- add_tags: {tags: [x, y]}", with(&[("tags", json!(["x", "y"]))])),
        (
            "- add_tags: {tags: x}\n- add_tags: {tags: [x, y], target: tags}",
            with(&[("tags", json!(["x", "x", "y"]))]),
        ),
        ("- add_tags: {tags: [x], target: a.b}", with(&[("a.b", json!(["x"]))])),
        (
            "- drop_fields: {fields: [message, input]}",
            with(&[("message", Json::Null), ("input", Json::Null)]),
        ),
        ("- drop_fields: {fields: [no.such, input]}", with(&[("input", Json::Null)])),
        (
            "- drop_fields: {fields: [log.offset, input.type]}",
            with(&[("log.offset", Json::Null), ("input.type", Json::Null)]),
        ),
        (
            "- drop_fields: {fields: ['/^in/', '/offset$/']}",
            with(&[("input", Json::Null), ("log.offset", Json::Null)]),
        ),
        ("- drop_fields: {fields: ['/nothing/']}", with(&[])),
        (
            "- rename: {fields: [{from: message, to: event.original}]}",
            with(&[("message", Json::Null), ("event.original", json!("hello"))]),
        ),
        (
            "- rename: {fields: [{from: message, to: message.text}]}",
            with(&[("message", json!({"text": "hello"}))]),
        ),
        (
            "- rename: {fields: [{from: input, to: moved.to}]}",
            with(&[("input", Json::Null), ("moved.to.type", json!("filestream"))]),
        ),
        ("- rename: {fields: [{from: nope, to: x}]}", with(&[("error.message", json!(missing))])),
        ("- rename: {ignore_missing: true, fields: [{from: nope, to: x}]}", with(&[])),
        ("- rename: {fail_on_error: false, fields: [{from: nope, to: x}]}", with(&[])),
        (
            "- rename: {fields: [{from: input, to: x}, {from: x, to: message}]}",
            with(&[("error.message", json!(there))]),
        ),
        (
            "- rename: {fail_on_error: false, fields: [{from: input.type, to: message}, {from: message, to: m}]}",
            with(&[("message", Json::Null), ("m", json!("hello"))]),
        ),
        (
            "- rename: {fail_on_error: false, fields: [{from: input.type, to: message.x}]}",
            with(&[]),
        ),
        ("- add_tags: {tags: [x], when.contains.message: hell}", with(&[("tags", json!(["x"]))])),
        ("- add_tags: {tags: [x], when.contains.message: heaven}", with(&[])),
        (
            "- if.contains.message: hello\n  then: [add_tags: {tags: a}, {add_tags: {tags: b}}]\n  else.add_tags: {tags: c}",
            with(&[("tags", json!(["a", "b"]))]),
        ),
        (
            "- if.contains.message: bye\n  then.drop_event:\n  else:\n  - if.has_fields: [input]\n    then.add_tags: {tags: d}",
            with(&[("tags", json!(["d"]))]),
        ),
        // A branch ends at its first failure, the list around it does not.
        (
            "- if.contains.message: hello\n  then:\n  - rename: {fields: [{from: nope, to: x}]}\n  - add_tags: {tags: a}\n- add_tags: {tags: b}",
            with(&[("error.message", json!(missing)), ("tags", json!(["b"]))]),
        ),
        (
            "- if.has_fields: [input]\n  then:\n  - drop_fields: {fields: [nope, input.type]}\n  - add_tags: {tags: a}\n- add_tags: {tags: b}",
            with(&[("input.type", Json::Null), ("tags", json!(["b"]))]),
        ),
        (
            "- if.has_fields: [input]\n  then:\n  - drop_fields: {fields: [nope], ignore_missing: true}\n  - add_tags: {tags: a}",
            with(&[("tags", json!(["a"]))]),
        ),
    ];
    for (list, expected) in table {
        let yaml = format!("processors:\n{list}\n");
        assert_eq!(process(&yaml, "hello").as_ref(), Some(expected), "{list}");
    }
}

/// What `dissect` found hid all that the layer had in objects of the same name, which later steps
/// had put there: `source.port` was missing, and so was the Community ID that is made with it.
#[test]
fn what_a_text_is_cut_into_stands_beside_what_later_steps_add_for_all_events() {
    let cases = [
        (
            "'', tokenizer: 'GET %{x.path} %{x.a.b}'",
            "x",
            json!({"path": "/a", "a": {"b": "200", "c": 2}, "port": 1}),
        ),
        (
            "x, tokenizer: 'GET %{path} %{a.b}'",
            "x",
            json!({"path": "/a", "a": {"b": "200", "c": 2}, "port": 1}),
        ),
    ];
    for (settings, key, expected) in cases {
        let yaml = format!(
            "processors:\n- dissect: {{target_prefix: {settings}}}\n\
             - add_fields: {{target: '', fields: {{x.port: 1, x.a.c: 2}}}}\n"
        );
        let document = process(&yaml, "GET /a 200").unwrap();
        assert_eq!(document[key], expected, "{yaml}");
    }
}

#[test]
fn a_flow_has_the_same_id_whatever_of_it_is_the_same_for_all_events() {
    let names = ["source.ip", "source.port", "destination.ip", "destination.port"];
    let tcp = "1:LQU9qZlK+B5F3KDmev6m5PMibrg=";
    let cases = [
        (["128.232.110.120", "34855", "66.35.250.204", "80"], "network.transport", "tcp", tcp),
        (["66.35.250.204", "80", "128.232.110.120", "34855"], "network.iana_number", "6", tcp),
        // A value that names no protocol counts, whatever the other field has.
        (["66.35.250.204", "80", "128.232.110.120", "34855"], "network.iana_number", "none", ""),
    ];
    for (ends, field, protocol, id) in cases {
        let mut all: Vec<(&str, &str)> = names.into_iter().zip(ends).collect();
        all.extend([(field, protocol), ("network.transport", "tcp")]);
        all.dedup_by_key(|(name, _)| *name);
        for constant in 0..1_u32 << all.len() {
            let (mut fields, mut keys, mut message) = (String::new(), String::new(), String::new());
            for (at, (name, value)) in all.iter().enumerate() {
                if constant >> at & 1 == 1 {
                    fields.push_str(&format!("{name}: \"{value}\", "));
                } else {
                    keys.push_str(&format!("%{{{name}}} "));
                    message.push_str(&format!("{value} "));
                }
            }
            let yaml = format!(
                "processors: [{{dissect: {{target_prefix: \"\", tokenizer: \"{keys}%{{}}\"}}}}, \
                 {{add_fields: {{target: \"\", fields: {{{fields}team: shop}}}}}}, {{community_id: {{}}}}]"
            );
            let document = process(&yaml, &format!("{message}rest")).unwrap();
            let found = document["network"]["community_id"].as_str().unwrap_or_default();
            assert_eq!(found, id, "{yaml}\n{document}");
        }
    }
}

#[test]
fn dropped_events_are_gone_and_counted() {
    let (list, problems) = read("processors:\n- drop_event.when.regexp.message: '^DBG'\n");
    assert_eq!(problems, "");
    let plan = Plan::compile(&list, &Map::new(), &[]);
    let bound = plan.bind(&map(&source_fields()), &Map::new(), Shape::Lines);
    let mut batch = batch(&["DBG one", "two", "DBG three", "four"], bound.base());
    bound.run(&mut batch);
    assert_eq!((batch.len(), batch.lines()), (2, 4));
    assert_eq!(batch.drops().get(DropReason::Processor), 2);
    assert_eq!(document(&batch, 1)["message"], "four");
}

#[test]
fn mistakes_in_a_list_are_all_told() {
    let yaml = "
processors:
  - drop_event:
  - ad_tags: {tags: [x]}
  - add_data_stream: {type: logs}
  - add_tags: {tag: [x]}
    add_fields: {}
  - rename:
      fields: [{from: a..b}]
      ignore_mising: true
  - drop_fields: {fields: ['/(/', '@timestamp'], when.equals.x: [1]}
  - if.equals.x: 1
  - add_host_metadata: {geo.location: here, cache.ttl: soon}
";
    let (list, problems) = read(yaml);
    assert_eq!(list.len(), 3, "drop_event, the choice, add_host_metadata");
    let expected = [
        "warning: f.yml:3:5: `processors[0].drop_event` without a condition drops every event",
        "hint: give it a `when`",
        "error: f.yml:4:5: unknown processor `ad_tags`",
        "hint: did you mean `add_tags`?",
        "error: f.yml:5:5: processor `add_data_stream` is internal to Filebeat, a configuration cannot name it",
        "hint: set `index` of the input or of the output, or `data_stream.*` with `add_fields`",
        "error: f.yml:6:5: `processors[3]` has 2 keys (add_tags, add_fields); expected exactly one, the name of a processor",
        "hint: every processor begins with its own `-`, its settings are indented below",
        "error: f.yml:9:16: `processors[4].rename.fields[0].to` is missing",
        "error: f.yml:9:23: `processors[4].rename.fields[0].from` is `a..b`; field name `a..b` has an empty part between its dots",
        "error: f.yml:10:7: unknown setting `processors[4].rename.ignore_mising`",
        "hint: did you mean `ignore_missing`?",
        "error: f.yml:11:27: `processors[5].drop_fields.fields`: `(` is not a regular expression: unclosed group",
        "warning: f.yml:11:27: `processors[5].drop_fields.fields`: `@timestamp` cannot be dropped, it stays",
        "error: f.yml:11:65: `processors[5].drop_fields.when.equals.x` is a list; expected a whole number, a text or `true` or `false`",
        "error: f.yml:12:5: `processors[6].then` is missing",
        "hint: an `if` needs a `then` with one processor or a list",
        "error: f.yml:13:39: `processors[7].add_host_metadata.geo.location` is `here`; expected `latitude, longitude`",
        "error: f.yml:13:56: `processors[7].add_host_metadata.cache.ttl` is `soon`; expected a duration like `30s`, `5m`, `1h30m`, `100ms`",
    ];
    let seen: Vec<&str> = problems.lines().collect();
    for (at, line) in expected.iter().enumerate() {
        assert_eq!(seen.get(at), Some(line), "line {at} of\n{problems}");
    }
    assert_eq!(seen.len(), expected.len(), "{problems}");
}

#[test]
fn the_default_list_of_a_source_is_folded_away() {
    let builtin = map(&json!({"agent.name": "web", "ecs.version": "8.0.0", "host.name": "web"}));
    let (input, _) = read("processors:\n- add_fields: {target: '', fields: {env: prod}}\n");
    let (global, problems) = read(
        "processors:\n- add_host_metadata.when.not.contains.tags: forwarded\n- add_tags.tags: [x]\n\
         - drop_fields.fields: [agent.ephemeral_id, ecs, '/^input/']\n\
         - drop_event.when.equals.env: test\n",
    );
    assert_eq!(problems, "");
    let plan = Plan::compile(&input, &builtin, &global);
    let fields = map(&source_fields());
    let bound = plan.bind(&fields, &Map::new(), Shape::Lines);
    assert!(bound.is_constant(), "{:?}", plan.describe(&fields, &Map::new(), Shape::Lines));
    let mut events = batch(&["a", "b"], bound.base());
    bound.run(&mut events);
    let seen = document(&events, 1);
    assert_eq!(seen["env"], "prod");
    assert_eq!(seen["tags"], json!(["x"]));
    assert_eq!(seen["agent"], json!({"name": "web"}));
    assert!(seen.get("ecs").is_none() && seen.get("input").is_none());
    assert_eq!(seen["host"]["os"]["type"], "linux");
    // Parsers may find anything: the work is done again where they found the same fields.
    let notes = describe(&plan, &fields, &Map::new(), Shape::Any);
    let expected = "\
once per source, again where an event has its own: add_fields env
once per source, again where an event has its own: agent.name, ecs.version, host.name where missing
once per source, again where an event has its own: add_host_metadata when not(tags contains `forwarded`)
once per source, again where an event has its own: add_tags x to tags
per event: drop_fields agent.ephemeral_id, ecs, /^input/
usually not, again where an event has its own: drop_event when env = `test`";
    assert_eq!(notes, expected);
}

#[test]
fn a_list_that_does_not_look_at_the_file_is_bound_once_for_all_files() {
    let table = [
        ("add_tags.tags: [x]", true),
        ("add_fields: {target: log, fields: {level: info}}", true),
        ("add_host_metadata.when.not.contains.tags: forwarded", true),
        ("drop_event.when.equals.input.type: stdin", true),
        ("copy_fields.fields: [{from: log.file.path, to: file}]", false),
        ("rename.fields: [{from: log, to: old}]", false),
        ("drop_fields.fields: [log.file.inode]", false),
        ("add_fields: {target: log.file, fields: {name: x}}", false),
        ("add_tags: {tags: [x], when.contains.log.file.path: a.log}", false),
        ("drop_event.when.contains.log.file.path: b.log", false),
        ("drop_event.when.contains.message: a", false),
        ("decode_json_fields.fields: [message]", false),
    ];
    let file = |path: &str| json!({"log.file": {"path": path, "inode": path}, "input.type": "log"});
    let nested = |fields: &Json| {
        let mut map = Map::new();
        for (key, value) in fields.as_object().unwrap() {
            map.insert_path(key, value_of(value));
        }
        map
    };
    for (list, expected) in table {
        let (list_read, problems) = read(&format!("processors:\n- {list}\n"));
        assert_eq!(problems, "", "{list}");
        let plan = Plan::compile(&list_read, &map(&json!({"ecs.version": "8.0.0"})), &[]);
        let (one, other) = (nested(&file("/a.log")), nested(&file("/b.log")));
        let template = plan.template(&one, &Map::new(), Shape::Lines);
        assert_eq!(template.is_some(), expected, "{list}");
        let Some(template) = template else { continue };
        let shown = |bound: BoundPlan| document(&batch(&["m"], bound.base()), 0);
        let same = template.bind(&other).unwrap();
        assert_eq!(shown(same), shown(plan.bind(&other, &Map::new(), Shape::Lines)), "{list}");
        let mut more = other.clone();
        more.insert_path("input.id", "x");
        assert!(template.bind(&more).is_none(), "{list}");
    }
}

#[test]
fn failures_are_counted_for_each_processor() {
    let (list, _) = read(
        "processors:\n- rename.fields: [{from: nope, to: x}]\n- add_tags: {tags: [a], target: message}\n",
    );
    let plan = Plan::compile(&list, &Map::new(), &[]);
    let bound = plan.bind(&map(&source_fields()), &Map::new(), Shape::Lines);
    for _ in 0..2 {
        let mut events = batch(&["a", "b", "c"], bound.base());
        bound.run(&mut events);
        assert_eq!(events.len(), 3);
    }
    let counts: Vec<_> =
        plan.failures().iter().map(|failures| (failures.name(), failures.get())).collect();
    assert_eq!(counts, [("rename", 6), ("add_tags", 6)]);
}

/// Does what the processor inside does, and then fails.
#[derive(Debug)]
struct Failing<P>(P);

impl<P: Processor> Processor for Failing<P> {
    fn name(&self) -> &'static str {
        "failing"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        // Whatever the result: a drop or a failure of its own is undone as well.
        drop(self.0.run(event));
        Err(Failure::new("injected"))
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        Footprint::everything()
    }

    fn fold(&self, _: &mut Constants) -> bool {
        false
    }

    fn is_repeatable(&self) -> bool {
        false
    }

    fn can_fail(&self) -> bool {
        true
    }
}

const NAMES: [&str; 14] = [
    "message",
    "log",
    "log.offset",
    "log.file.path",
    "input",
    "input.type",
    "a",
    "a.b",
    "a.b.c",
    "tags",
    "error",
    "error.code",
    "@metadata.m",
    "host",
];

fn names() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&NAMES[..])
}

fn values() -> impl Strategy<Value = Json> {
    prop_oneof![
        Just(json!("text")),
        Just(json!(5)),
        Just(json!(["x", "y"])),
        Just(json!({"b": {"c": 1}})),
        Just(json!({})),
    ]
}

/// Any processor, made to fail at its end.
fn failing() -> impl Strategy<Value = Compiled> {
    let fields = prop::collection::vec((names(), values()), 0..4).prop_map(|pairs| {
        let mut map = Map::new();
        for (name, value) in pairs {
            map.insert_path(name, value_of(&value));
        }
        map
    });
    let host = map(&json!({"host": {"name": "h", "os": {"type": "linux"}}}));
    prop_oneof![
        fields.prop_map(|fields| Compiled::new(Failing(AddFields::new("", &fields)), None)),
        Just(Compiled::new(Failing(AddFields::new("", &host)), None)),
        names().prop_map(|name| {
            Compiled::new(Failing(AddTags::new(path(name), &["t".to_owned()])), None)
        }),
        (prop::collection::vec(names(), 0..4), any::<bool>()).prop_map(|(list, pattern)| {
            let patterns = if pattern { vec![compile_pattern("a").unwrap()] } else { Vec::new() };
            let list = list.into_iter().map(path).collect();
            Compiled::new(Failing(DropFields::new(list, patterns, false)), None)
        }),
        (prop::collection::vec((names(), names()), 1..4), any::<bool>()).prop_map(
            |(list, fail)| {
                let list = list.into_iter().map(|(from, to)| (path(from), path(to))).collect();
                let verb = Verb::Rename;
                let rename = Pairs { verb, list, fail_on_error: fail, ignore_missing: true };
                Compiled::new(Failing(rename), None)
            }
        ),
        Just(Compiled::new(Failing(DropEvent), None)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_processor_that_fails_leaves_the_event_as_it_was_with_a_note(
        edits in prop::collection::vec((names(), values()), 0..5),
        failing in failing(),
    ) {
        let source = Arc::new(Base::new(&map(&source_fields()), &Map::new()));
        let mut events = batch(&["one", "two"], &source);
        for row in 0..2 {
            for (name, value) in &edits {
                let mut event = events.event_mut(row, &source);
                let mark = event.mark();
                if event.put(&path(name), &value_of(value)).is_err() {
                    event.rollback(mark);
                }
            }
        }
        let mut expected: Vec<Json> = (0..2).map(|row| document(&events, row)).collect();
        for tree in &mut expected {
            let root = tree.as_object_mut().unwrap();
            let error = root.entry("error").or_insert_with(|| json!({}));
            if let Some(error) = error.as_object_mut() {
                error.insert("message".to_owned(), json!("injected"));
            }
        }
        let plan = Plan::compile(&[failing], &Map::new(), &[]);
        plan.bind(&map(&source_fields()), &Map::new(), Shape::Any).run(&mut events);
        prop_assert_eq!(events.len(), 2);
        for (row, expected) in expected.iter().enumerate() {
            prop_assert_eq!(&document(&events, row), expected);
        }
        prop_assert!(plan.failures()[0].get() >= 2);
    }
}
