//! The proof that folding is right: a plan gives the documents that running the same list step by
//! step on a plain JSON tree gives, whatever the list and the events.

#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::tree::{delete, flatten, get, merge, merge_missing, nested, set};
use common::{batch, describe, document, map, path, value_of};
use proptest::prelude::*;
use serde_json::{Value as Json, json};
use skidder_event::*;
use skidder_processors::*;
use skidder_testkit::{SimClock, SimFs};
use std::sync::Arc;

/// One entry of a list, for the plan and for the plain interpreter.
#[derive(Clone, Debug)]
enum Step {
    AddFields {
        target: &'static str,
        fields: Json,
        when: Option<When>,
    },
    AddTags {
        target: &'static str,
        when: Option<When>,
    },
    DropFields {
        names: Vec<&'static str>,
        pattern: Option<&'static str>,
        ignore_missing: bool,
        when: Option<When>,
    },
    Rename {
        pairs: Vec<(&'static str, &'static str)>,
        fail: bool,
        ignore_missing: bool,
        when: Option<When>,
    },
    Copy {
        pairs: Vec<(&'static str, &'static str)>,
        fail: bool,
        ignore_missing: bool,
        when: Option<When>,
    },
    Include {
        names: Vec<&'static str>,
        when: Option<When>,
    },
    Host {
        replace: bool,
        when: Option<When>,
    },
    DropEvent {
        when: Option<When>,
    },
    Choose {
        when: When,
        then: Vec<Step>,
        otherwise: Vec<Step>,
    },
}

#[derive(Clone, Debug)]
enum When {
    Has(&'static str),
    Equals(&'static str, &'static str),
    Contains(&'static str, &'static str),
    All(Vec<When>),
    One(Vec<When>),
    Not(Box<When>),
}

const PATHS: [&str; 27] = [
    "message",
    "log",
    "log.offset",
    "log.flags",
    "log.file",
    "log.file.path",
    "log.level",
    "agent",
    "agent.name",
    "agent.id",
    "agent.x.y",
    "host",
    "host.name",
    "ecs.version",
    "input.type",
    "fields",
    "fields.a",
    "fields.a.b",
    "fields.c",
    "tags",
    "x",
    "x.y",
    "x.y.z",
    "error",
    "error.message",
    "@metadata.m",
    "@metadata._id",
];
const TEXTS: [&str; 4] = ["one", "two", "on", ""];
const PATTERNS: [&str; 6] = ["^agent", r"log\..*", "a", r"\.name$", "^x", "^nothing"];

impl When {
    fn compile(&self) -> Condition {
        match self {
            Self::Has(name) => Condition::has_field(path(name)),
            Self::Equals(name, text) => {
                Condition::equals(path(name), EqualsValue::Str((*text).into()))
            }
            Self::Contains(name, text) => Condition::contains(path(name), text),
            Self::All(list) => Condition::And(list.iter().map(Self::compile).collect()),
            Self::One(list) => Condition::Or(list.iter().map(Self::compile).collect()),
            Self::Not(inner) => Condition::Not(Box::new(inner.compile())),
        }
    }

    fn holds(&self, tree: &Json) -> bool {
        match self {
            Self::Has(name) => get(tree, name).is_some(),
            Self::Equals(name, text) => get(tree, name).is_some_and(|value| value == text),
            Self::Contains(name, wanted) => {
                let fits = |value: &Json| value.as_str().is_some_and(|text| text.contains(wanted));
                get(tree, name).is_some_and(|value| match value {
                    Json::Array(items) => items.iter().any(fits),
                    value => fits(value),
                })
            }
            Self::All(list) => list.iter().all(|when| when.holds(tree)),
            Self::One(list) => list.iter().any(|when| when.holds(tree)),
            Self::Not(inner) => !inner.holds(tree),
        }
    }
}

impl Step {
    fn compile(&self) -> Compiled {
        let condition = |when: &Option<When>| when.as_ref().map(When::compile);
        match self {
            Self::AddFields { target, fields, when } => {
                Compiled::new(AddFields::new(target, &map(fields)), condition(when))
            }
            Self::AddTags { target, when } => Compiled::new(
                AddTags::new(path(target), &["t".into(), "u".into()]),
                condition(when),
            ),
            Self::DropFields { names, pattern, ignore_missing, when } => {
                let names = names.iter().map(|name| path(name)).collect();
                let patterns = pattern.iter().map(|text| compile_pattern(text).unwrap()).collect();
                Compiled::new(DropFields::new(names, patterns, *ignore_missing), condition(when))
            }
            Self::Rename { pairs, fail, ignore_missing, when } => Compiled::new(
                Pairs {
                    verb: Verb::Rename,
                    list: pairs.iter().map(|(from, to)| (path(from), path(to))).collect(),
                    fail_on_error: *fail,
                    ignore_missing: *ignore_missing,
                },
                condition(when),
            ),
            Self::Copy { pairs, fail, ignore_missing, when } => Compiled::new(
                Pairs {
                    verb: Verb::Copy,
                    list: pairs.iter().map(|(from, to)| (path(from), path(to))).collect(),
                    fail_on_error: *fail,
                    ignore_missing: *ignore_missing,
                },
                condition(when),
            ),
            Self::Include { names, when } => {
                let names = names.iter().map(|name| path(name)).collect();
                Compiled::new(IncludeFields::new(names), condition(when))
            }
            Self::Host { replace, when } => Compiled::new(host_metadata(*replace), condition(when)),
            Self::DropEvent { when } => Compiled::new(DropEvent, condition(when)),
            Self::Choose { when, then, otherwise } => Compiled::choose(
                when.compile(),
                then.iter().map(Self::compile).collect(),
                otherwise.iter().map(Self::compile).collect(),
            ),
        }
    }
}

/// A machine that reports only this.
struct Rack;

impl Machine for Rack {
    fn hostname(&self) -> String {
        "web".to_owned()
    }

    fn kernel(&self) -> String {
        "6".to_owned()
    }

    fn architecture(&self) -> String {
        "x86_64".to_owned()
    }
}

fn host_metadata(replace_fields: bool) -> AddHostMetadata {
    let settings = HostSettings { replace_fields, ..HostSettings::default() };
    let clock = SimClock::new();
    let fs = Arc::new(SimFs::new(&clock));
    AddHostMetadata::new(settings, Arc::new(Rack), fs, Arc::new(clock))
}

/// The data of that machine.
fn host() -> Json {
    json!({
        "name": "web",
        "hostname": "web",
        "architecture": "x86_64",
        "os": {
            "type": "linux", "platform": "", "name": "", "family": "", "version": "",
            "kernel": "6",
        },
    })
}

/// Whether the plain interpreter goes on.
#[derive(PartialEq)]
enum Flow {
    Next,
    Stop,
    Dropped,
}

/// Runs one step on a plain tree.
fn interpret(step: &Step, tree: &mut Json) -> Flow {
    let skipped = |when: &Option<When>| when.as_ref().is_some_and(|when| !when.holds(tree));
    match step {
        Step::AddFields { when, .. }
        | Step::AddTags { when, .. }
        | Step::DropFields { when, .. }
        | Step::Rename { when, .. }
        | Step::Copy { when, .. }
        | Step::Include { when, .. }
        | Step::Host { when, .. }
        | Step::DropEvent { when }
            if skipped(when) =>
        {
            Flow::Next
        }
        Step::AddFields { target, fields, .. } => {
            let mut over = json!({});
            let nested = nested(fields);
            if target.is_empty() {
                over = nested;
            } else {
                set(&mut over, target, nested);
            }
            merge(tree, &over);
            Flow::Next
        }
        Step::AddTags { target, .. } => {
            add_tags(tree, target);
            Flow::Next
        }
        Step::DropFields { names, pattern, ignore_missing, .. } => {
            drop_fields(tree, names, *pattern, *ignore_missing)
        }
        Step::Rename { pairs, fail, ignore_missing, .. } => {
            rename(tree, pairs, *fail, *ignore_missing)
        }
        Step::Copy { pairs, fail, ignore_missing, .. } => {
            copy_fields(tree, pairs, *fail, *ignore_missing)
        }
        Step::Include { names, .. } => {
            include_fields(tree, names);
            Flow::Next
        }
        Step::Host { replace, .. } => {
            let more = match tree.get("host") {
                Some(Json::Object(host)) => !(host.len() == 1 && host.contains_key("name")),
                _ => false,
            };
            if *replace || !more {
                merge(tree, &json!({"host": host()}));
            }
            Flow::Next
        }
        Step::DropEvent { .. } => Flow::Dropped,
        Step::Choose { when, then, otherwise } => {
            for step in if when.holds(tree) { then } else { otherwise } {
                match interpret(step, tree) {
                    Flow::Next => {}
                    end => return end,
                }
            }
            Flow::Next
        }
    }
}

fn interpret_all(steps: &[Step], tree: &mut Json) -> bool {
    steps.iter().all(|step| interpret(step, tree) != Flow::Dropped)
}

fn note(tree: &mut Json, text: String) {
    let mut after = tree.clone();
    if set(&mut after, "error.message", text.into()) {
        *tree = after;
    }
}

fn add_tags(tree: &mut Json, target: &str) {
    let mut list = match get(tree, target) {
        None => Vec::new(),
        Some(Json::Array(items)) => items.clone(),
        Some(_) => return,
    };
    list.extend(["t".into(), "u".into()]);
    let mut after = tree.clone();
    if set(&mut after, target, list.into()) {
        *tree = after;
    }
}

fn drop_fields(
    tree: &mut Json,
    names: &[&str],
    pattern: Option<&str>,
    ignore_missing: bool,
) -> Flow {
    let mut missing = false;
    for name in names {
        missing |= !delete(tree, name);
    }
    if let Some(pattern) = pattern {
        let pattern = compile_pattern(pattern).unwrap();
        let mut all = Vec::new();
        flatten(tree, "", &mut all);
        for name in all {
            if pattern.is_match(name.as_bytes()) && name != "@timestamp" {
                delete(tree, &name);
            }
        }
    }
    if missing && !ignore_missing { Flow::Stop } else { Flow::Next }
}

fn rename(tree: &mut Json, pairs: &[(&str, &str)], fail: bool, ignore_missing: bool) -> Flow {
    let before = tree.clone();
    for (from, to) in pairs {
        let mut after = tree.clone();
        let error = if get(tree, to).is_some() {
            Some(format!("target field {to} already exists, drop or rename this field first"))
        } else if let Some(value) = get(tree, from).cloned() {
            delete(&mut after, from);
            let done = set(&mut after, to, value);
            (!done).then(|| {
                format!("could not put value: {to}: a part of it has a value that is no object")
            })
        } else {
            (!ignore_missing)
                .then(|| format!("could not fetch value for key: {from}, Error: key not found"))
        };
        match error {
            None => *tree = after,
            Some(error) if fail => {
                *tree = before;
                note(tree, format!("Failed to rename fields in processor: {error}"));
                return Flow::Stop;
            }
            Some(_) => {}
        }
    }
    Flow::Next
}

fn copy_fields(tree: &mut Json, pairs: &[(&str, &str)], fail: bool, ignore_missing: bool) -> Flow {
    let before = tree.clone();
    for (from, to) in pairs {
        let mut after = tree.clone();
        let error = if get(tree, to).is_some() {
            Some(format!("target field {to} already exists, drop or rename this field first"))
        } else if let Some(value) = get(tree, from).cloned() {
            let why = "a part of it has a value that is no object";
            (!set(&mut after, to, value)).then(|| format!("could not copy value to {to}: {why}"))
        } else {
            (!ignore_missing)
                .then(|| format!("could not fetch value for key: {from}, Error: key not found"))
        };
        match error {
            None => *tree = after,
            Some(error) if fail => {
                *tree = before;
                note(tree, format!("failed to copy fields in copy_fields processor: {error}"));
                return Flow::Stop;
            }
            Some(_) => {}
        }
    }
    Flow::Next
}

fn include_fields(tree: &mut Json, names: &[&str]) {
    let mut kept = json!({});
    for name in names.iter().chain(&["@timestamp", "@metadata"]) {
        if let Some(value) = get(tree, name).cloned() {
            set(&mut kept, name, value);
        }
    }
    *tree = kept;
}

fn names() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&PATHS[..])
}

fn texts() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&TEXTS[..])
}

fn values() -> impl Strategy<Value = Json> {
    prop_oneof![
        3 => texts().prop_map(Json::from),
        1 => (0..3_i64).prop_map(Json::from),
        1 => Just(json!(["one", "more"])),
        1 => Just(json!({"y": {"z": "deep"}, "name": "two"})),
        1 => Just(json!({})),
    ]
}

fn fields() -> impl Strategy<Value = Json> {
    // `@metadata` has a target of its own.
    let names = prop::sample::select(&PATHS[..PATHS.len() - 2]);
    prop::collection::vec((names, values()), 0..4).prop_map(|pairs| {
        let mut tree = json!({});
        for (name, value) in pairs {
            // A field in the way of a later one is left out.
            let mut after = tree.clone();
            if set(&mut after, name, value) {
                tree = after;
            }
        }
        tree
    })
}

fn whens() -> impl Strategy<Value = When> {
    let leaf = prop_oneof![
        names().prop_map(When::Has),
        (names(), texts()).prop_map(|(name, text)| When::Equals(name, text)),
        (names(), texts()).prop_map(|(name, text)| When::Contains(name, text)),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..3).prop_map(When::All),
            prop::collection::vec(inner.clone(), 1..3).prop_map(When::One),
            inner.prop_map(|when| When::Not(Box::new(when))),
        ]
    })
}

fn steps() -> impl Strategy<Value = Step> {
    let when = || prop::option::weighted(0.4, whens());
    let targets = prop::sample::select(vec!["", "fields", "agent", "x.y", "@metadata"]);
    let pattern = prop::option::weighted(0.3, prop::sample::select(&PATTERNS[..]));
    let leaf = prop_oneof![
        4 => (targets, fields(), when())
            .prop_map(|(target, fields, when)| Step::AddFields { target, fields, when }),
        2 => (prop::sample::select(vec!["tags", "x.y", "agent.id"]), when())
            .prop_map(|(target, when)| Step::AddTags { target, when }),
        3 => (prop::collection::vec(names(), 0..3), pattern, any::<bool>(), when()).prop_map(
            |(names, pattern, ignore_missing, when)| Step::DropFields {
                names, pattern, ignore_missing, when,
            }
        ),
        3 => (prop::collection::vec((names(), names()), 1..3), any::<bool>(), any::<bool>(), when())
            .prop_map(|(pairs, fail, ignore_missing, when)| Step::Rename {
                pairs, fail, ignore_missing, when,
            }),
        2 => (prop::collection::vec((names(), names()), 1..3), any::<bool>(), any::<bool>(), when())
            .prop_map(|(pairs, fail, ignore_missing, when)| Step::Copy {
                pairs, fail, ignore_missing, when,
            }),
        1 => (prop::collection::vec(names(), 0..5), when())
            .prop_map(|(names, when)| Step::Include { names, when }),
        1 => (any::<bool>(), when()).prop_map(|(replace, when)| Step::Host { replace, when }),
        1 => whens().prop_map(|when| Step::DropEvent { when: Some(when) }),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        let list = prop::collection::vec(inner, 0..3);
        (whens(), list.clone(), list).prop_map(|(when, then, otherwise)| Step::Choose {
            when,
            then,
            otherwise,
        })
    })
}

/// Some names, so that steps meet.
fn few() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&["message", "log.offset", "w", "x", "x.y", "error.message"][..])
}

/// Steps that can become one with their neighbour, and some that are folded in between.
fn neighbours() -> impl Strategy<Value = Step> {
    let when = || prop::option::weighted(0.1, whens());
    let fail = || prop::bool::weighted(0.2);
    let pairs = || prop::collection::vec((few(), few()), 1..3);
    let pattern = prop::option::weighted(0.2, prop::sample::select(&PATTERNS[..]));
    let leaf = prop_oneof![
        4 => (prop::collection::vec(few(), 1..3), pattern, any::<bool>(), when()).prop_map(
            |(names, pattern, ignore_missing, when)| Step::DropFields {
                names, pattern, ignore_missing, when,
            }
        ),
        3 => (pairs(), fail(), any::<bool>(), when()).prop_map(
            |(pairs, fail, ignore_missing, when)| Step::Rename { pairs, fail, ignore_missing, when }
        ),
        3 => (pairs(), fail(), any::<bool>(), when()).prop_map(
            |(pairs, fail, ignore_missing, when)| Step::Copy { pairs, fail, ignore_missing, when }
        ),
        2 => (few(), texts()).prop_map(|(name, text)| {
            let mut fields = json!({});
            set(&mut fields, name, text.into());
            Step::AddFields { target: "", fields, when: None }
        }),
    ];
    leaf.prop_recursive(2, 8, 4, |inner| {
        let list = prop::collection::vec(inner, 1..4);
        (whens(), list.clone(), list).prop_map(|(when, then, otherwise)| Step::Choose {
            when,
            then,
            otherwise,
        })
    })
}

/// An event: its message and what a parser put on it.
type Event = (&'static str, Vec<(&'static str, Option<Json>)>);

fn events(shape: Shape) -> BoxedStrategy<Vec<Event>> {
    let edits = match shape {
        Shape::Lines => prop::sample::subsequence(
            vec![
                ("log.flags", Some(json!(["truncated"]))),
                ("@metadata._id", Some(json!("object-000000000000"))),
            ],
            0..=2,
        )
        .boxed(),
        Shape::Any => {
            prop::collection::vec((names(), prop::option::weighted(0.8, values())), 0..4).boxed()
        }
    };
    prop::collection::vec((texts(), edits), 1..4).boxed()
}

type Case = (Shape, Json, Vec<Event>, Vec<Step>, Vec<Step>);

fn cases<S: Strategy<Value = Step> + 'static>(step: fn() -> S) -> impl Strategy<Value = Case> {
    let list = move || prop::collection::vec(step(), 0..5);
    prop::sample::select(vec![Shape::Lines, Shape::Any])
        .prop_flat_map(move |shape| (Just(shape), fields(), events(shape), list(), list()))
}

fn builtin() -> Json {
    json!({
        "agent": {"name": "web", "id": "i", "type": "filebeat"},
        "ecs": {"version": "8.0.0"},
        "host": {"name": "web"},
    })
}

/// Counts what steps drop.
#[derive(Default)]
struct Counted {
    dropped: u64,
}

impl Meter for Counted {
    fn begin(&mut self) {}

    fn end(&mut self, _: usize, counts: StepCounts) {
        self.dropped += counts.dropped;
    }
}

/// A list becomes the same for one file as for another one, with the fields of this file put in,
/// if the plan claims that.
fn check_template(
    plan: &Plan,
    bound: &BoundPlan,
    constants: &Json,
    metadata: &Json,
    shape: Shape,
) -> Result<(), TestCaseError> {
    let mut other = constants.clone();
    other["log"]["file"] = json!({"path": "/of/another.log", "inode": "7"});
    let Some(template) = plan.template(&map(&other), &map(metadata), shape) else { return Ok(()) };
    let Some(same) = template.bind(&map(constants)) else {
        // There is no such object to be put in.
        prop_assert!(!constants["log"]["file"].is_object());
        return Ok(());
    };
    prop_assert!(bound.is_constant(), "{}", describe(plan, &map(constants), &map(metadata), shape));
    for (one, other) in [(bound.base(), same.base()), (bound.input_base(), same.input_base())] {
        prop_assert_eq!(document(&batch(&["m"], one), 0), document(&batch(&["m"], other), 0));
    }
    Ok(())
}

/// Runs a case both ways.
fn check((shape, extra, events, input, global): Case) -> Result<(), TestCaseError> {
    let mut constants = common::source_fields();
    merge(&mut constants, &nested(&extra));
    // These belong to each event, and `log` must stay an object for its offset.
    for own in ["message", "log.offset", "error"] {
        delete(&mut constants, own);
    }
    if !constants["log"].is_object() {
        constants["log"] = json!({"file": {"path": "/p"}});
    }
    let metadata = json!({"pipeline": "p"});

    let compile = |steps: &[Step]| steps.iter().map(Step::compile).collect::<Vec<_>>();
    let plan = Plan::compile(&compile(&input), &map(&builtin()), &compile(&global));
    let bound = plan.bind(&map(&constants), &map(&metadata), shape);
    check_template(&plan, &bound, &constants, &metadata, shape)?;

    let source = Arc::new(Base::new(&map(&constants), &map(&metadata)));
    let messages: Vec<&str> = events.iter().map(|(message, _)| *message).collect();
    let mut plain = batch(&messages, &source);
    for (row, (_, edits)) in events.iter().enumerate() {
        for (name, value) in edits {
            let mut event = plain.event_mut(row, &source);
            match value {
                Some(value) => {
                    let mark = event.mark();
                    if event.put(&path(name), &value_of(value)).is_err() {
                        event.rollback(mark);
                    }
                }
                None => {
                    event.delete(&path(name));
                }
            }
        }
    }
    let mut expected = Vec::new();
    for row in 0..plain.len() {
        let mut tree = document(&plain, row);
        if interpret_all(&input, &mut tree) {
            merge_missing(&mut tree, &builtin());
            if interpret_all(&global, &mut tree) {
                expected.push(tree);
            }
        }
    }
    // Measured or not, it is the same.
    if plain.len().is_multiple_of(2) {
        let mut counted = Counted::default();
        bound.run_measured(&mut plain, &mut counted);
        prop_assert_eq!(counted.dropped, plain.drops().total());
    } else {
        bound.run(&mut plain);
    }
    let seen: Vec<Json> = (0..plain.len()).map(|row| document(&plain, row)).collect();
    prop_assert_eq!(
        &seen,
        &expected,
        "{}",
        describe(&plan, &map(&constants), &map(&metadata), shape)
    );
    prop_assert_eq!(plain.lines(), plain.len() as u64 + plain.drops().total());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(6000)
    ))]

    #[test]
    fn a_plan_gives_what_running_the_list_step_by_step_gives(case in cases(steps)) {
        check(case)?;
    }

    #[test]
    fn steps_that_become_one_give_what_they_give_one_by_one(case in cases(neighbours)) {
        check(case)?;
    }
}
