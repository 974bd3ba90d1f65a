//! Inputs and pipelines are those that Filebeat makes of the same modules and settings.
//!
//! `golden/cases.jsonl` has settings of modules, `golden/expected.jsonl` what Filebeat 9.6's own code makes of them:
//! inputs, pipelines, and errors, of which only the presence is compared.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

use serde_json::{Map, Value, json};
use skidder_config::{Problems, Settings};
use skidder_modules::{Builtins, Modules, Overrides, Version};
use skidder_os::RealFs;
use std::collections::BTreeMap;
use std::path::Path;

/// The folder above the module folder in expectations.
const HOME: &str = "HOME";

/// What becomes of a case.
#[derive(Debug, PartialEq)]
enum Outcome {
    Refused,
    Made { inputs: BTreeMap<String, Value>, pipelines: Option<BTreeMap<String, Value>> },
}

/// Without what is empty (Filebeat sends `null` for a list of no processors), numbers as JavaScript has them.
fn plain(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let is_filled = |(key, value): &(&String, &Value)| {
                !value.is_null() && (key.as_str(), *value) != ("processors", &json!([]))
            };
            let filled = map.iter().filter(is_filled);
            Value::Object(filled.map(|(key, value)| (key.clone(), plain(value))).collect())
        }
        Value::Array(list) => list.iter().map(plain).collect(),
        Value::Number(number) => json!(number.as_f64()),
        other => other.clone(),
    }
}

fn input_key(input: &Map<String, Value>, number: usize) -> String {
    // Filebeat's order of filesets is random.
    format!("{} {} {}", input["_module_name"], input["_fileset_name"], number)
}

fn keyed(inputs: Vec<Value>) -> BTreeMap<String, Value> {
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let mut all = BTreeMap::new();
    for input in inputs {
        let mut input = plain(&input);
        let map = input.as_object_mut().unwrap();
        if map.get("pipeline") == Some(&json!("")) {
            map.remove("pipeline");
        }
        let number = numbers.entry(input_key(map, 0)).or_default();
        let key = input_key(map, *number);
        *number += 1;
        all.insert(key, input);
    }
    all
}

fn expected(case: &Value) -> Outcome {
    if case.get("error").is_some() {
        return Outcome::Refused;
    }
    let inputs = keyed(case["inputs"].as_array().cloned().unwrap_or_default());
    let pipelines = case.get("pipeline_error").is_none().then(|| {
        let all = case["pipelines"].as_object().unwrap().iter();
        all.map(|(path, body)| {
            (path.trim_start_matches("/_ingest/pipeline/").to_owned(), plain(body))
        })
        .collect()
    });
    Outcome::Made { inputs, pipelines }
}

fn ours(home: &Path, case: &Value) -> (Outcome, String) {
    let text = case["config"].as_str().unwrap();
    let main = Settings::parse("filebeat.yml", "path.home: /elsewhere").unwrap();
    let file = Settings::parse("modules.yml", text).unwrap();
    let problems = Problems::new();
    let builtins = Builtins::new("filebeat", "9.5.3", "vm");
    let modules = Modules {
        fs: &RealFs,
        folders: &[home.join("module")],
        builtins: &builtins,
        settings: &main,
        problems: &problems,
    };
    let filesets = modules.of_configuration(file.items(&problems), &Overrides::default());
    let version = Version::parse(case["es"].as_str().unwrap()).unwrap();
    let mut inputs = Vec::new();
    let mut pipelines = Some(BTreeMap::new());
    let mut why = String::new();
    for fileset in filesets {
        match fileset.input(&main, &|_| None) {
            Ok(input) => {
                let list = input.node().as_list().unwrap();
                // The home in the expectations is not where this test runs.
                let made = Value::from(&list[0].to_value()).to_string();
                let made = made.replace(home.to_str().unwrap(), HOME);
                inputs.push(serde_json::from_str(&made).unwrap());
            }
            Err(error) => modules.report(None, "", error),
        }
        match (fileset.pipelines(version), &mut pipelines) {
            (Ok(found), Some(all)) => {
                all.extend(found.into_iter().map(|one| (one.id, plain(&one.body))));
            }
            (Err(error), _) => {
                why.push_str(&error.to_string());
                pipelines = None;
            }
            _ => {}
        }
    }
    let outcome = if problems.has_errors() {
        Outcome::Refused
    } else {
        Outcome::Made { inputs: keyed(inputs), pipelines }
    };
    (outcome, format!("{problems}{why}"))
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Compares all cases; returns how many filesets and pipelines there were, and what differs.
fn compare(home: &Path, cases: &Path, expectations: &Path) -> ((usize, usize, usize), Vec<String>) {
    let (cases, expectations) = (lines(cases), lines(expectations));
    assert_eq!(cases.len(), expectations.len());
    let (mut inputs_seen, mut pipelines_seen, mut refused) = (0, 0, 0);
    let mut wrong = Vec::new();
    for (case, expectation) in cases.iter().zip(&expectations) {
        assert_eq!(case["name"], expectation["name"]);
        let expected = expected(expectation);
        let (ours, problems) = ours(home, case);
        match &expected {
            Outcome::Refused => refused += 1,
            Outcome::Made { inputs, pipelines } => {
                inputs_seen += inputs.len();
                pipelines_seen += pipelines.as_ref().map_or(0, BTreeMap::len);
            }
        }
        if ours != expected {
            wrong.push(format!(
                "{}\n  filebeat {expected:?}\n  ours     {ours:?}\n  {problems}",
                case["name"]
            ));
        }
    }
    ((inputs_seen, pipelines_seen, refused), wrong)
}

#[test]
fn inputs_and_pipelines_are_those_of_filebeat() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let (counts, wrong) = compare(&home, &home.join("cases.jsonl"), &home.join("expected.jsonl"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let (inputs, pipelines, refused) = counts;
    assert!(inputs >= 30 && pipelines >= 30 && refused >= 5, "{counts:?}");
}
