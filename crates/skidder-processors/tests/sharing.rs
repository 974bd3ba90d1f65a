//! Steps on events that share their fields give what they give on events with the same fields of their own.

#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

use serde_json::{Value as Json, json};
use skidder_config::{Problems, Settings};
use skidder_event::{Base, Batch, Map, Provenance, Row, SourceId, Text};
use skidder_golden::{document, map};
use skidder_processors::{Context, Plan, Shape, read_processors};
use skidder_testkit::{SimClock, SimFs};
use std::sync::Arc;

/// Two kinds of events in turns, each with fields that they share if `shares`.
fn events(plan: &Plan, shares: bool) -> (Batch, usize) {
    let bound = plan.bind(&map(&json!({"input": {"type": "journald"}})), &Map::new(), Shape::Any);
    let provenance = Provenance::new(SourceId(1), 0..8);
    let bytes = b"abcdefgh".to_vec();
    let mut batch = Batch::new(bytes, true, Arc::clone(bound.input_base()), provenance);
    for at in 0..8_u32 {
        let text = Text { start: at, len: 1 };
        batch.push(Row::numbered(u64::from(at), 1, text, i64::from(at)));
    }
    let base: Arc<Base> = Arc::clone(batch.base());
    let fields = [
        map(&json!({"host": {"hostname": "web-1"}, "a": {"b": 1}, "agent": "none"})),
        map(&json!({"host": "text", "a": {"b": 2}, "tags": ["x"]})),
    ];
    let mut put = |row: usize| batch.event_mut(row, &base).merge(&fields[row % 2]);
    if shares {
        put(0);
        put(1);
        let shared = [batch.share(0), batch.share(1)];
        for row in 2..8 {
            assert!(batch.put_shared(row, shared[row % 2]));
        }
    } else {
        (0..8).for_each(put);
    }
    bound.run(&mut batch);
    let nodes = (0..batch.len()).filter(|row| batch.shared(*row).is_some()).count();
    (batch, nodes)
}

fn check(processors: &str, is_shared: bool) {
    let clock = SimClock::new();
    let context = Context::new(Arc::new(SimFs::new(&clock)), Arc::new(clock));
    let settings = Settings::parse("f.yml", &format!("processors:\n{processors}")).unwrap();
    let problems = Problems::new();
    let global = read_processors(settings.root(&problems).items("processors"), &context);
    assert_eq!(problems.to_string(), "");
    let builtin = json!({"agent": {"name": "h"}, "host": {"name": "h"}, "ecs": {"version": "8"}});
    let plan = Plan::compile(&[], &map(&builtin), &global);
    let failures = || plan.failures().iter().map(|failures| failures.get()).sum::<u64>();
    let (alone, _) = events(&plan, false);
    let failed_alone = failures();
    let (together, shared) = events(&plan, true);
    assert_eq!(failures(), 2 * failed_alone, "{processors}");
    let documents =
        |batch: &Batch| -> Vec<Json> { (0..batch.len()).map(|row| document(batch, row)).collect() };
    assert_eq!(documents(&together), documents(&alone), "{processors}");
    assert_eq!(shared == together.len(), is_shared, "{processors}");
}

#[test]
fn steps_are_done_once_for_fields_that_are_shared() {
    check("", true);
    check("- add_fields: {target: a, fields: {c: 1}}\n", true);
    check("- add_tags: {tags: [y]}\n- add_fields: {target: '', fields: {host: 1}}\n", true);
    check("- add_fields: {target: a, fields: {c: 1}, when.equals: {a.b: 2}}\n", true);
    check("- drop_event: {when.equals: {a.b: 2}}\n", true);
    check("- drop_fields: {fields: [a.b, host.name], ignore_missing: true}\n", true);
}

#[test]
fn steps_that_look_at_an_event_alone_are_done_for_each() {
    check("- add_fields: {target: a, fields: {c: 1}, when.contains: {message: c}}\n", false);
    check("- copy_fields: {fields: [{from: message, to: a.m}], fail_on_error: false}\n", false);
    // In one of the kinds `host` is a text: each failure is counted.
    check("- add_tags: {tags: [y], target: host.tags}\n", false);
    check("- add_fields: {target: '@metadata', fields: {c: 1}, when.has_fields: [a.b]}\n", false);
}
