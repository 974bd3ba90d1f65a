//! `setup`: requests of the Elasticsearch output to a server other than events.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::server::FakeServer;
use common::{Fixture, context};
use skidder_config::{Problems, Settings};
use skidder_output_elasticsearch::{Config, Elasticsearch, Setup, parse_host};
use skidder_outputs::Discard;
use skidder_pipeline::{Output, SetUp};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const POLICY: [&str; 2] = ["get /_ilm/policy/filebeat", "put /_ilm/policy/filebeat"];
const TEMPLATE: [&str; 2] =
    ["get /_index_template/filebeat-9.5.0", "put /_index_template/filebeat-9.5.0"];

fn with_setup(text: &str) -> Option<Arc<Setup>> {
    let problems = Problems::new();
    let settings = Settings::parse("x", text).unwrap();
    let root = settings.root(&problems);
    let setup = Setup::read(&root.section("setup"), &context(), Path::new("/"));
    assert_eq!(problems.to_string(), "");
    Some(Arc::new(setup))
}

fn output(server: &FakeServer, setup: Option<Arc<Setup>>) -> Elasticsearch {
    let config = Config {
        backoff_init: Duration::from_millis(1),
        backoff_max: Duration::from_millis(5),
        bulk_max_size: 100,
        workers: 3,
        setup,
        ..Config::new(vec![parse_host(&server.address, "http", "").unwrap()])
    };
    Elasticsearch::new(config, context()).unwrap()
}

/// A server that has neither, and takes both.
async fn empty() -> FakeServer {
    let server = FakeServer::start([]).await;
    let has = [
        (POLICY[0], (404, "{}")),
        (POLICY[1], (200, "{\"acknowledged\":true}")),
        (TEMPLATE[0], (404, "{}")),
        (TEMPLATE[1], (200, "{\"acknowledged\":true}")),
    ];
    server.state.lock().unwrap().has.extend(has);
    server
}

fn requests(server: &FakeServer) -> Vec<String> {
    server.state.lock().unwrap().requests.iter().map(|(what, _)| what.clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_set_up_once_before_the_first_event() {
    let server = empty().await;
    let mut fixture = Fixture::new();
    fixture.push(1000, 70);
    fixture.run(output(&server, with_setup("{}"))).await;
    fixture.judge(&server.taken());
    assert_eq!(requests(&server), [POLICY[0], POLICY[1], TEMPLATE[1]], "three workers, once");
    let state = server.state.lock().unwrap();
    let policy: serde_json::Value = serde_json::from_str(&state.requests[1].1).unwrap();
    assert!(policy["policy"]["phases"]["hot"]["actions"]["rollover"].is_object());
    let template: serde_json::Value = serde_json::from_str(&state.requests[2].1).unwrap();
    assert_eq!(template["template"]["settings"]["index"]["lifecycle"]["name"], "filebeat");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_refuses_the_template_gets_no_events_until_it_takes_it() {
    let server = empty().await;
    server.state.lock().unwrap().has.insert(TEMPLATE[1], (403, "{}"));
    let mut fixture = Fixture::new();
    fixture.push(100, 100);
    let waiting = async {
        while fixture.feed.metrics.write_errors.get() < 5 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(server.bulks().is_empty());
        server.state.lock().unwrap().has.insert(TEMPLATE[1], (200, "{}"));
    };
    tokio::join!(fixture.run(output(&server, with_setup("{}"))), waiting);
    fixture.judge(&server.taken());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_loads_the_template_whatever_is_there() {
    let server = empty().await;
    server.state.lock().unwrap().has.extend([(POLICY[0], (200, "{}")), (TEMPLATE[0], (200, "{}"))]);
    let output: Box<dyn Output> = Box::new(output(&server, with_setup("{}")));
    let mut printed = String::new();
    let mut report = |line: &str| printed.push_str(&format!("{line}\n"));
    assert!(output.set_up(SetUp::ALL, &mut report).unwrap().await);
    assert!(printed.contains("`filebeat`: it is there already\n"), "{printed}");
    assert!(printed.contains("`filebeat-9.5.0`: loaded\n"), "{printed}");
    assert_eq!(requests(&server), [POLICY[0], TEMPLATE[1]]);
    server.state.lock().unwrap().has.insert(TEMPLATE[1], (403, "{}"));
    let mut printed = String::new();
    let mut report = |line: &str| printed.push_str(line);
    assert!(!output.set_up(SetUp::ALL, &mut report).unwrap().await);
    assert!(printed.contains("manage_index_templates"), "{printed}");
    assert!(Discard.set_up(SetUp::ALL, &mut |_| {}).is_none(), "it has nothing to set up");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_check_says_who_we_are_and_what_we_lack() {
    let table = [
        ("true", "true", true, "may write to `filebeat-9.5.0`... OK"),
        (
            "true",
            "false",
            false,
            "ERROR give the role of the user, or the API key, `auto_configure`",
        ),
        ("false", "false", false, "`create_doc` and `auto_configure`"),
    ];
    for (create, configure, good, said) in table {
        let server = FakeServer::start([]).await;
        let may = format!(
            "{{\"index\":{{\"filebeat-9.5.0\":{{\"create_doc\":{create},\"auto_configure\":{configure}}}}}}}"
        );
        server.state.lock().unwrap().has.extend([
            ("get /_security/_authenticate", (200, "{\"username\":\"me\"}")),
            ("post /_security/user/_has_privileges", (200, &*may.leak())),
        ]);
        let output: Box<dyn Output> = Box::new(output(&server, None));
        let mut printed = String::new();
        let result = output.check(&mut |line| printed.push_str(&format!("{line}\n"))).await;
        assert_eq!(result, good, "{printed}");
        assert!(printed.contains("credentials: me\n") && printed.contains(said), "{printed}");
    }
}
