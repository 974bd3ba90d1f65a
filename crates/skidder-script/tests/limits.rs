//! Limits of a program: time, memory, stack. One that exceeds them is stopped, and the event is unchanged, with a note.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use skidder_config::{Problems, Settings};
use skidder_event::{Base, Map};
use skidder_golden::{batch, document};
use skidder_os::{Clock, Monotonic, Timestamp};
use skidder_processors::{Compiled, Context, Plan, Shape, read_processors};
use skidder_testkit::{SimClock, SimFs};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A clock of which every look takes a millisecond.
#[derive(Default)]
struct Looks(AtomicU64);

impl Clock for Looks {
    fn wall(&self) -> Timestamp {
        Timestamp(0)
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic(Duration::from_millis(self.0.fetch_add(1, Ordering::Relaxed)))
    }
}

fn read(settings: &str) -> Vec<Compiled> {
    let fs = SimFs::new(&SimClock::new());
    let context = Context::new(Arc::new(fs), Arc::new(Looks::default()));
    let context = context.with(skidder_script::KINDS);
    let settings =
        Settings::parse("f.yml", &format!("processors: [{{script: {settings}}}]")).unwrap();
    let problems = Problems::new();
    let root = settings.root(&problems);
    let list = read_processors(root.items("processors"), &context);
    root.finish();
    assert_eq!(problems.to_string(), "");
    list
}

/// The result for each message.
fn run(list: &[Compiled], messages: &[&str]) -> Vec<serde_json::Value> {
    let plan = Plan::compile(list, &Map::new(), &[]);
    let bound = plan.bind(&Map::new(), &Map::new(), Shape::Lines);
    let mut events = batch(messages, bound.input_base());
    bound.run(&mut events);
    let of = |row| {
        let mut document = document(&events, row);
        let object = document.as_object_mut().unwrap();
        object.retain(|key, _| !matches!(key.as_str(), "@timestamp" | "@metadata" | "log"));
        document
    };
    (0..events.len()).map(of).collect()
}

fn failed(message: &str, error: &str) -> serde_json::Value {
    serde_json::json!({"message": message, "tags": ["_js_exception"], "error": {"message": error}})
}

#[test]
fn a_program_is_stopped_when_its_time_is_over_and_the_next_event_is_processed() {
    let source =
        "function process(event) { event.Put('x', 1); while (event.Get('message') === 'slow') {} }";
    let list = read(&format!("{{lang: javascript, timeout: 1s, source: \"{source}\"}}"));
    let error = "javascript processor execution timeout";
    let fast = serde_json::json!({"message": "fast", "x": 1});
    assert_eq!(
        run(&list, &["slow", "fast", "slow"]),
        [failed("slow", error), fast, failed("slow", error)]
    );
}

#[test]
fn a_program_cannot_catch_that_its_time_is_over() {
    let source = "function process(event) { for (;;) { try { for (;;) {} } catch (error) {} } }";
    let list = read(&format!("{{lang: javascript, timeout: 10ms, source: \"{source}\"}}"));
    assert_eq!(run(&list, &["m"]), [failed("m", "javascript processor execution timeout")]);
}

#[test]
fn a_program_is_stopped_when_its_memory_is_full_and_begins_anew() {
    let source = "var all = []; function process(event) { event.Put('x', all.length); while (event.Get('message') === 'large') { all.push('x'.repeat(100000) + all.length); } }";
    let list = read(&format!("{{lang: javascript, source: \"{source}\"}}"));
    let error = "out of memory: a script may take 64 MiB";
    let small = serde_json::json!({"message": "small", "x": 0});
    assert_eq!(
        run(&list, &["large", "small", "large"]),
        [failed("large", error), small, failed("large", error)]
    );
}

#[test]
fn a_program_that_calls_itself_for_ever_gets_an_exception() {
    let source = "function process(event) { process(event); }";
    let list = read(&format!("{{lang: javascript, source: \"{source}\"}}"));
    let got = run(&list, &["m"]);
    let error = got[0]["error"]["message"].as_str().unwrap();
    assert!(
        error.starts_with("RangeError: Maximum call stack size exceeded at process "),
        "{error}"
    );
}

#[test]
fn many_threads_each_have_a_session() {
    let source = "var own = 0; function process(event) { own += 1; event.Put('own', own > 0); }";
    let list = read(&format!("{{lang: javascript, max_cached_sessions: 2, source: \"{source}\"}}"));
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let expected = serde_json::json!({"message": "m", "own": true});
                    assert_eq!(run(&list, &["m"]), [expected]);
                }
            });
        }
    });
}

#[test]
fn a_base_is_not_changed_by_a_program() {
    let source = "function process(event) { event.fields.host.name = event.Get('message'); event.Delete('host.ip'); }";
    let list = read(&format!("{{lang: javascript, source: \"{source}\"}}"));
    let mut fields = Map::new();
    fields.insert_path("host.name", "base");
    fields.insert_path("host.ip", "1.1.1.1");
    let plan = Plan::compile(&list, &Map::new(), &[]);
    let bound = plan.bind(&fields, &Map::new(), Shape::Lines);
    let mut events = batch(&["a", "b"], bound.input_base());
    bound.run(&mut events);
    assert_eq!(document(&events, 0)["host"], serde_json::json!({"name": "a"}));
    assert_eq!(document(&events, 1)["host"], serde_json::json!({"name": "b"}));
    let untouched: &Arc<Base> = bound.input_base();
    assert_eq!(document(&batch(&["c"], untouched), 0)["host"]["name"], "base");
}

#[test]
fn a_program_is_called_by_its_tag_or_else_by_its_id() {
    let described = |more: &str| {
        let source = "function process(event) {}";
        let list = read(&format!("{{lang: javascript, source: '{source}', {more}}}"));
        let Compiled::Run { processor, .. } = &list[0] else { panic!("one processor") };
        processor.describe()
    };
    assert_eq!(described("tag: mine, id: other"), "script mine of inline.js");
    assert_eq!(described("id: other"), "script other of inline.js");
}
