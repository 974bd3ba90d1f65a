//! `setup.ilm` and `setup.template` at Elasticsearch itself. Policies are read and checked by its own classes, and an
//! index names its own; none is run (`tests/servers/elasticsearch/LifecyclePlugin.java` says what stands in).
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::{Fixture, context};
use serde_json::{Value, json};
use skidder_config::{Problems, Settings};
use skidder_event::Format;
use skidder_output_elasticsearch::{Config, Elasticsearch, Setup, parse_host};
use skidder_pipeline::SetUp;
use skidder_testkit::servers::{Server, unique_name};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const LINES: usize = 500;

/// A name for policy, template and data stream, and requests to a server about them.
struct Names {
    server: Server,
    name: String,
}

impl Names {
    fn new() -> Self {
        Self { server: Server::elasticsearch().unwrap(), name: unique_name("lifecycle") }
    }

    /// An output that sets this up; `ilm` are more settings of it, and `folder` is where its files are.
    fn output(&self, ilm: &str, folder: &Path) -> Elasticsearch {
        let name = &self.name;
        let text = format!(
            "{{template: {{name: {name}, pattern: {name}}}, ilm: {{policy_name: {name}, {ilm}}}}}"
        );
        let settings = Settings::parse("x", &text).unwrap();
        let problems = Problems::new();
        let setup = Setup::read(&settings.root(&problems), &context(), folder);
        assert_eq!(problems.to_string(), "");
        let config = Config {
            index: Format::parse(name).unwrap(),
            backoff_init: Duration::from_millis(10),
            workers: 2,
            setup: Some(Arc::new(setup)),
            ..Config::new(vec![parse_host(self.server.url(), "http", "").unwrap()])
        };
        Elasticsearch::new(config, context()).unwrap()
    }

    /// Ships lines to a new start of this output.
    async fn ship(&self, ilm: &str) {
        let mut fixture = Fixture::new();
        fixture.push(LINES, 100);
        fixture.run(self.output(ilm, Path::new("/"))).await;
        assert_eq!(fixture.settle.total().delivered(), LINES as u64);
        assert_eq!(fixture.feed.metrics.write_errors.get(), 0);
    }

    /// The output of `skidder setup`, and whether it succeeds.
    async fn set_up(&self, ilm: &str, folder: &Path) -> (bool, String) {
        let output = self.output(ilm, folder);
        common::check_report(async |report| output.set_up(SetUp::ALL, report).await).await
    }

    /// How often the policy was put there, and its phases.
    fn policy(&self) -> (u64, Value) {
        let answer = self.server.get(&format!("/_ilm/policy/{}", self.name)).unwrap();
        let policy = &answer[&self.name];
        (policy["version"].as_u64().unwrap(), policy["policy"]["phases"].clone())
    }

    fn put(&self, policy: &Value) {
        self.server.put(&format!("/_ilm/policy/{}", self.name), policy).unwrap();
    }

    /// The lifecycle of the one index behind the data stream, as the server explains it.
    fn explained(&self) -> Value {
        let answer = self.server.get(&format!("/{}/_ilm/explain", self.name)).unwrap();
        let indices = answer["indices"].as_object().unwrap();
        assert_eq!(indices.len(), 1, "{answer}");
        let (index, lifecycle) = indices.iter().next().unwrap();
        assert!(index.starts_with(&format!(".ds-{}-", self.name)), "{index}");
        lifecycle.clone()
    }
}

/// A policy that is not ours.
fn of_another() -> Value {
    json!({ "policy": { "phases": { "delete": { "min_age": "7d", "actions": { "delete": {} } } } } })
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn the_first_event_goes_to_a_data_stream_with_the_policy() {
    let names = Names::new();
    names.ship("").await;
    let (version, phases) = names.policy();
    let rollover = &phases["hot"]["actions"]["rollover"];
    assert_eq!(*rollover, json!({ "max_age": "30d", "max_primary_shard_size": "50gb" }));
    assert_eq!((version, phases.as_object().unwrap().len()), (1, 1));
    assert_eq!(names.server.count(&names.name).unwrap(), LINES as u64);
    let lifecycle = names.explained();
    assert_eq!((&lifecycle["managed"], &lifecycle["policy"]), (&json!(true), &json!(names.name)));
    assert_eq!(lifecycle["step"], "complete", "{lifecycle}");
    // The next start finds it all.
    names.ship("").await;
    assert_eq!(names.policy().0, 1);
    let (good, printed) = names.set_up("", Path::new("/")).await;
    assert!(
        good && printed.contains(&format!("`{}`: it is there already\n", names.name)),
        "{printed}"
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_policy_that_is_there_is_replaced_only_if_that_is_asked_for() {
    let names = Names::new();
    names.put(&of_another());
    let theirs = names.policy();
    for ilm in ["", "check_exists: false"] {
        names.ship(ilm).await;
        assert_eq!(names.policy(), theirs, "{ilm}");
        let lifecycle = names.explained();
        assert_eq!(
            (&lifecycle["managed"], &lifecycle["policy"]),
            (&json!(true), &json!(names.name))
        );
    }
    for (version, ilm) in [(2, "overwrite: true"), (3, "overwrite: true, check_exists: false")] {
        names.ship(ilm).await;
        let (now, phases) = names.policy();
        assert_eq!((now, phases["delete"].is_null()), (version, true), "{ilm}: {phases}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn without_lifecycles_the_index_has_none() {
    let names = Names::new();
    names.ship("enabled: false").await;
    let path = format!("/_ilm/policy/{}", names.name);
    assert_eq!(names.server.request("GET", &path, None).unwrap().status, 404);
    assert_eq!(names.explained()["managed"], false);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_policy_of_a_file_is_loaded_or_what_is_wrong_with_it_is_told() {
    let names = Names::new();
    let folder = tempfile::tempdir().unwrap();
    let write = |policy: &Value| {
        std::fs::write(folder.path().join("policy.json"), policy.to_string()).unwrap();
    };
    // Elasticsearch deletes in a phase of its own.
    write(&json!({ "policy": { "phases": { "hot": { "actions": { "delete": {} } } } } }));
    let (good, printed) = names.set_up("policy_file: policy.json", folder.path()).await;
    assert!(!good && printed.contains("the server answered 400"), "{printed}");
    assert!(printed.contains("invalid action [delete] defined in phase [hot]"), "{printed}");
    let template = format!("/_index_template/{}", names.name);
    assert_eq!(names.server.request("GET", &template, None).unwrap().status, 404);

    write(&of_another());
    let (good, printed) = names.set_up("policy_file: policy.json", folder.path()).await;
    assert!(good && printed.contains(&format!("policy `{}`: loaded\n", names.name)), "{printed}");
    let (version, phases) = names.policy();
    assert_eq!((version, &phases["delete"]["min_age"]), (1, &json!("7d")));
    names.ship("").await;
    assert_eq!(names.explained()["policy"], json!(names.name));
    assert_eq!(names.policy(), (version, phases));
}
