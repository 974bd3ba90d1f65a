//! Action lines, and which metadata they take.

use super::*;
use crate::testing::{batch_with, context};
use skidder_event::{Map, Value};

/// Keys and values of `@metadata`.
type Metadata<'a> = &'a [(&'a str, &'a str)];

fn config(index: &str, pipeline: Option<&str>) -> Config {
    Config {
        index: Format::parse(index).unwrap(),
        pipeline: pipeline.map(|text| Format::parse(text).unwrap()),
        ..Config::new(Vec::new())
    }
}

fn action(
    index: &str,
    pipeline: Option<&str>,
    base_metadata: Metadata<'_>,
    own_metadata: Metadata<'_>,
) -> Result<(Operation, String), ActionError> {
    let mut metadata = Map::new();
    for (key, value) in base_metadata {
        metadata.insert(key, *value);
    }
    let mut batch = batch_with(&["hello"], &Map::new(), &metadata);
    let base = Arc::clone(batch.base());
    for (key, value) in own_metadata {
        let path = Path::parse(&format!("@metadata.{key}")).unwrap();
        batch.event_mut(0, &base).put(&path, &Value::from(*value)).unwrap();
    }
    let mut actions = Actions::new(&config(index, pipeline), &context());
    let mut out = Vec::new();
    let first = actions.write(&mut out, &batch, 0)?;
    // The second time it may come from memory.
    let mut again = Vec::new();
    assert_eq!(actions.write(&mut again, &batch, 0).unwrap(), first);
    assert_eq!(out, again);
    Ok((first, String::from_utf8(out).unwrap()))
}

#[test]
fn the_index_comes_from_metadata_before_the_setting_and_is_lower_cased() {
    let default = "filebeat-%{[agent.version]}";
    let table: &[(&str, Metadata<'_>, &str)] = &[
        (default, &[], "filebeat-9.5.0"),
        ("Logs", &[], "logs"),
        ("logs-%{+yyyy.MM.dd}", &[], "logs-2026.01.02"),
        ("logs-%{[nothing]:none}", &[], "logs-none"),
        (default, &[("raw_index", "Raw")], "raw"),
        (default, &[("raw_index", "raw"), ("index", "Logs-x-Y")], "logs-x-y"),
        (default, &[("raw_index", "raw"), ("index", "other"), ("alias", "Alias")], "alias"),
        (default, &[("unrelated", "x")], "filebeat-9.5.0"),
        ("quote\"d", &[], "quote\\\"d"),
    ];
    for (index, metadata, name) in table {
        let expected = format!("{{\"create\":{{\"_index\":\"{name}\"}}}}\n");
        let own = action(index, None, &[], metadata).unwrap();
        assert_eq!(own, (Operation::Create, expected.clone()), "{index} {metadata:?}");
        let base = action(index, None, metadata, &[]).unwrap();
        assert_eq!(base, (Operation::Create, expected), "{index} {metadata:?}");
    }
}

#[test]
fn pipeline_id_and_operation_are_written() {
    let table: &[(Option<&str>, Metadata<'_>, &str)] = &[
        (Some("Geo"), &[], "{\"create\":{\"_index\":\"i\",\"pipeline\":\"geo\"}}\n"),
        (Some("geo"), &[("pipeline", "_none")], "{\"create\":{\"_index\":\"i\"}}\n"),
        (
            Some("geo"),
            &[("pipeline", "Mine")],
            "{\"create\":{\"_index\":\"i\",\"pipeline\":\"mine\"}}\n",
        ),
        (Some("geo"), &[("other", "x")], "{\"create\":{\"_index\":\"i\",\"pipeline\":\"geo\"}}\n"),
        (Some("%{[nothing]:}"), &[], "{\"create\":{\"_index\":\"i\"}}\n"),
        (None, &[("_id", "A\"b")], "{\"create\":{\"_index\":\"i\",\"_id\":\"A\\\"b\"}}\n"),
        (None, &[("op_type", "index")], "{\"index\":{\"_index\":\"i\"}}\n"),
        (None, &[("op_type", "strange")], "{\"create\":{\"_index\":\"i\"}}\n"),
        (
            Some("geo"),
            &[("op_type", "delete"), ("_id", "7")],
            "{\"delete\":{\"_index\":\"i\",\"_id\":\"7\"}}\n",
        ),
    ];
    for (pipeline, metadata, expected) in table {
        let (_, line) = action("i", *pipeline, &[], metadata).unwrap();
        assert_eq!(line, *expected, "{pipeline:?} {metadata:?}");
    }
}

/// Index and pipeline of a line, under these settings.
fn ruled(settings: &str, line: &str) -> Result<String, ActionError> {
    use skidder_config::{Problems, Settings};
    let problems = Problems::new();
    let settings = Settings::parse("x", settings).unwrap();
    let (read, _) = crate::read(&settings.root(&problems));
    assert_eq!(problems.to_string(), "");
    let mut actions = Actions::new(&read.unwrap(), &context());
    let batch = batch_with(&["usual", line], &Map::new(), &Map::new());
    // A decision for the line before must not hold for this one.
    let mut out = Vec::new();
    actions.write(&mut out, &batch, 0)?;
    out.clear();
    actions.write(&mut out, &batch, 1)?;
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn rules_choose_index_and_pipeline_before_the_single_settings() {
    let table = [
        (
            "indices: [{index: 'Critical-%{[agent.version]}', when.contains.message: bad}]",
            "{\"create\":{\"_index\":\"critical-9.5.0\"}}\n",
            "{\"create\":{\"_index\":\"rest\"}}\n",
        ),
        (
            "indices: [{index: '%{[message]}', mappings: {bad: Mapped}, default: Other}]",
            "{\"create\":{\"_index\":\"mapped\"}}\n",
            "{\"create\":{\"_index\":\"other\"}}\n",
        ),
        (
            "pipelines: [{pipeline: Fix, when.equals.message: bad}], pipeline: usual",
            "{\"create\":{\"_index\":\"rest\",\"pipeline\":\"fix\"}}\n",
            "{\"create\":{\"_index\":\"rest\",\"pipeline\":\"usual\"}}\n",
        ),
        (
            "pipelines: [{pipeline: _none, when.equals.message: bad}], pipeline: '%{[message]}-x'",
            "{\"create\":{\"_index\":\"rest\"}}\n",
            "{\"create\":{\"_index\":\"rest\",\"pipeline\":\"good-x\"}}\n",
        ),
    ];
    for (rules, bad, good) in table {
        let settings = format!("{{hosts: es, index: rest, {rules}}}");
        assert_eq!(ruled(&settings, "bad").unwrap(), bad, "{settings}");
        assert_eq!(ruled(&settings, "good").unwrap(), good, "{settings}");
    }
    let nothing =
        "{hosts: es, index: '%{[nothing]}', indices: [{index: i, when.equals.message: usual}]}";
    assert!(matches!(ruled(nothing, "other"), Err(ActionError::Index(_))));
}

#[test]
fn events_without_an_action_say_why() {
    let refused = action("%{[nothing]}", None, &[], &[]).unwrap_err();
    assert!(refused.to_string().contains("nothing"), "{refused}");
    assert!(matches!(action("%{[nothing]:}", None, &[], &[]), Err(ActionError::NoIndex)));
    assert!(matches!(action("i", Some("%{[nothing]}"), &[], &[]), Err(ActionError::Pipeline(_))));
    assert!(matches!(action("i", None, &[], &[("op_type", "delete")]), Err(ActionError::NoId)));
}

#[test]
fn an_event_with_metadata_of_its_own_does_not_change_the_line_of_the_others() {
    let mut batch = batch_with(&["a", "b", "c"], &Map::new(), &Map::new());
    let base = Arc::clone(batch.base());
    let path = Path::parse("@metadata.raw_index").unwrap();
    batch.event_mut(1, &base).put(&path, &Value::from("other")).unwrap();
    let mut actions = Actions::new(&config("usual", None), &context());
    let mut out = Vec::new();
    for row in 0..3 {
        actions.write(&mut out, &batch, row).unwrap();
    }
    let line = |name: &str| format!("{{\"create\":{{\"_index\":\"{name}\"}}}}\n");
    let expected = [line("usual"), line("other"), line("usual")].concat();
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn dates_follow_the_events_also_inside_a_batch() {
    let day = 86_400_000_000_000;
    for (format, count) in [("i-%{+yyyy.MM.dd}", 2), ("i-%{+ss.SSS}", 3)] {
        let mut batch = batch_with(&["a", "b", "c"], &Map::new(), &Map::new());
        let base = Arc::clone(batch.base());
        for (row, time) in [7, 500_000_007, day + 7].into_iter().enumerate() {
            batch.event_mut(row, &base).set_time(time);
        }
        let mut actions = Actions::new(&config(format, None), &context());
        let mut out = Vec::new();
        for row in 0..3 {
            actions.write(&mut out, &batch, row).unwrap();
        }
        let mut lines: Vec<&str> = std::str::from_utf8(&out).unwrap().lines().collect();
        assert_eq!(lines.len(), 3);
        lines.dedup();
        assert_eq!(lines.len(), count, "{lines:?}");
    }
}
