//! What `dns` remembers, and for how long.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod names;

use serde_json::{Value as Json, json};
use skidder_config::{Problems, Settings};
use skidder_event::{Base, Map};
use skidder_golden::{batch, document, map};
use skidder_processors::{Context, Plan, Shape, read_processors};
use skidder_testkit::{SimClock, SimFs, wait_until};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The plan of one processor.
fn plan(yaml: &str, clock: &SimClock) -> Plan {
    let context = Context::new(Arc::new(SimFs::new(clock)), Arc::new(clock.clone()))
        .with(skidder_lookups::KINDS);
    let settings = Settings::parse("test.yml", yaml).unwrap();
    let problems = Problems::new();
    let list = read_processors(&settings.root(&problems), "processors", &context);
    assert!(problems.is_empty(), "{problems}");
    Plan::compile(&list, &Map::new(), &[])
}

/// What becomes of an event with these fields of its own.
fn run(plan: &Plan, fields: &Json) -> Json {
    let bound = plan.bind(&Map::new(), &Map::new(), Shape::Any);
    let base: Arc<Base> = Arc::clone(bound.input_base());
    let mut events = batch(&["hello"], &base);
    events.event_mut(0, &base).merge(&map(fields));
    bound.run(&mut events);
    document(&events, 0)
}

#[test]
fn answers_are_remembered_for_the_time_of_the_server_or_longer_and_failures_for_theirs() {
    let (server, asked) = names::serve();
    let clock = SimClock::new();
    let plan = plan(
        &format!(
            "processors:\n- dns:\n    {{type: A, nameservers: ['{server}'], fields: {{a: b}},\n    \
             success_cache.min_ttl: 10s, failure_cache.ttl: 5s, tag_on_failure: [failed]}}"
        ),
        &clock,
    );
    let mut expected = 0;
    for (after, name, is_asked) in [
        (0, "short.test", true),
        (9, "short.test", false),
        (1, "short.test", true),
        (0, "long.test", true),
        (3599, "long.test", false),
        (1, "long.test", true),
        (0, "nobody.test", true),
        (4, "nobody.test", false),
        (1, "nobody.test", true),
    ] {
        clock.advance(Duration::from_secs(after));
        let document = run(&plan, &json!({ "a": name }));
        let found = document["b"].is_array();
        assert!(found != (document["tags"] == json!(["failed"])), "{document}");
        assert_eq!(found, name != "nobody.test", "{document}");
        expected += u32::from(is_asked);
        assert_eq!(asked.load(Ordering::SeqCst), expected, "{name} after {after} s");
    }
}

#[test]
fn a_server_that_does_not_answer_is_asked_once_for_a_value() {
    let clock = SimClock::new();
    let (server, asked) = names::silent();
    let settings = format!("type: A, nameservers: ['{server}'], timeout: 50ms, fields: {{a: b}}");
    let plan = plan(&format!("processors: [{{dns: {{{settings}}}}}]"), &clock);
    for _ in 0..100 {
        assert_eq!(run(&plan, &json!({ "a": "host.test" }))["b"], Json::Null);
    }
    let limit = Duration::from_secs(10);
    wait_until("the server has seen the question", limit, || asked.load(Ordering::SeqCst) > 0);
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}
