//! Adjacent steps that become one, as [`Plan::describe`] shows. That they do the same is shown
//! by `folding.rs`.

#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use serde_json::json;
use skidder_config::{Problems, Settings};
use skidder_event::Map;
use skidder_processors::*;
use skidder_testkit::{SimClock, SimFs};
use std::sync::Arc;

fn steps_left(yaml: &str) -> Vec<String> {
    let clock = SimClock::new();
    let context = Context::new(Arc::new(SimFs::new(&clock)), Arc::new(clock));
    let settings = Settings::parse("f.yml", &format!("processors:\n{yaml}")).unwrap();
    let problems = Problems::new();
    let list = read_processors(settings.root(&problems).items("processors"), &context);
    assert_eq!(problems.to_string(), "");
    let plan = Plan::compile(&list, &Map::new(), &[]);
    let fields = common::map(&json!({"a": 1, "input": {"type": "x"}}));
    let notes = plan.describe(&fields, &Map::new(), Shape::Lines);
    notes.into_iter().filter(|note| note.fate.is_left()).map(|note| note.step).collect()
}

#[test]
fn removals_are_one_step_also_around_what_is_folded() {
    let left = steps_left(
        "- drop_fields: {fields: [message, a, log.offset]}\n- drop_fields: {fields: ['@metadata.m', log]}\n",
    );
    assert_eq!(left, ["drop_fields message, log.offset, log (3 steps in one pass)"]);
}

#[test]
fn a_step_stays_where_what_was_folded_behind_it_is_its_own_field() {
    // `x` is in the layer only behind the first step, which must not see it.
    let left = steps_left(
        "- copy_fields: {fields: [{from: message, to: m}, {from: x, to: y}], fail_on_error: false}\n\
         - add_fields: {target: '', fields: {x: 1}}\n\
         - copy_fields: {fields: [{from: message, to: n}], fail_on_error: false}\n",
    );
    assert_eq!(left, ["copy_fields message to m, x to y", "copy_fields message to n"]);
}

#[test]
fn pairs_that_fail_by_themselves_are_one_step() {
    let left = steps_left(
        "- rename: {fields: [{from: message, to: m}], fail_on_error: false}\n\
         - rename: {fields: [{from: log.offset, to: n}], fail_on_error: false, ignore_missing: true}\n\
         - copy_fields: {fields: [{from: '@timestamp', to: o}], fail_on_error: false}\n\
         - copy_fields: {fields: [{from: '@timestamp', to: p}], fail_on_error: false}\n\
         - copy_fields: {fields: [{from: '@timestamp', to: q}]}\n",
    );
    let expected = [
        "rename message to m, log.offset to n (2 steps in one pass)",
        "copy_fields @timestamp to o, @timestamp to p (2 steps in one pass)",
        "copy_fields @timestamp to q",
    ];
    assert_eq!(left, expected);
}

#[test]
fn in_a_branch_a_name_that_is_missing_ends_it() {
    let list = |ignore: bool| {
        format!(
            "- if.contains.message: x\n  then:\n  - drop_fields: {{fields: [b], ignore_missing: {ignore}}}\n  \
             - drop_fields: {{fields: [c], ignore_missing: true}}\n"
        )
    };
    let one = steps_left(&list(true));
    assert!(one[0].contains("drop_fields b, c (2 steps in one pass)"), "{one:?}");
    let two = steps_left(&list(false));
    assert!(two[0].contains("drop_fields b, drop_fields c"), "{two:?}");
}
