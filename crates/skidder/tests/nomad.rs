//! Inputs for the tasks of Nomad, whose allocations come and go while the program runs.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;
#[path = "../../skidder-lookups/tests/common/mod.rs"]
mod http_api;
#[path = "../../skidder-lookups/tests/nomad_agent/mod.rs"]
mod nomad_agent;

use common::lines::{Log, judge};
use common::server::BulkServer;
use common::{Place, accept};
use nomad_agent::Agent;
use serde_json::{Value as Json, json};
use std::path::PathBuf;
use tempfile::TempDir;

/// An agent, the folder of its allocations, and a place that reads the logs of its tasks.
struct World {
    server: BulkServer,
    agent: Agent,
    folder: TempDir,
    place: Place,
}

impl World {
    /// `more` are settings of the provider.
    fn new(server: BulkServer, more: &str) -> Self {
        let (agent, folder) = (Agent::start(), tempfile::tempdir().unwrap());
        let place = Place::new(&server);
        let text = place.configuration();
        let (_, rest) = text.split_once("filebeat.registry.flush").unwrap();
        let path = folder.path().display();
        place.configure(&format!(
            "filebeat.autodiscover.providers:\n- type: nomad\n  address: {}\n  \
             secret_id: hunter2\n  wait_time: 2s\n  cleanup_timeout: 300ms\n  {more}\n  \
             hints.enabled: true\n  hints.default_config:\n    type: filestream\n    \
             id: task-${{data.nomad.allocation.id}}-${{data.nomad.task.name}}\n    \
             prospector.scanner.check_interval: 50ms\n    backoff: {{init: 10ms, max: 50ms}}\n    \
             paths: ['{path}/${{data.nomad.allocation.id}}/alloc/logs/\
             ${{data.nomad.task.name}}.stdout.[0-9]*']\nfilebeat.registry.flush{rest}",
            agent.address()
        ));
        place.open_endpoint();
        Self { server, agent, folder, place }
    }

    /// The log of an allocation, which does not run yet.
    fn log(&self, id: &str) -> Task {
        let logs = self.folder.path().join(id).join("alloc/logs");
        std::fs::create_dir_all(&logs).unwrap();
        let link = logs.join("web.stdout.0");
        let log = Log::create(&logs, id);
        std::fs::rename(&log.path, &link).unwrap();
        Task { log, logs }
    }

    fn events(&self) -> Vec<Json> {
        self.server.sent().into_iter().map(|document| document.json).collect()
    }
}

/// The task `web` of an allocation; lines are numbered and begin with its id.
struct Task {
    log: Log,
    logs: PathBuf,
}

impl Task {
    /// Nomad goes on in the next file, and keeps the old one.
    fn rotate(&mut self, number: usize) {
        let next = self.logs.join("new");
        self.log.path.clone_from(&next);
        self.log.reopen();
        std::fs::rename(&next, self.logs.join(format!("web.stdout.{number}"))).unwrap();
    }
}

fn expected(tasks: &[Task]) -> Vec<(&str, usize)> {
    tasks.iter().map(|task| (&*task.log.label, task.log.next)).collect()
}

fn total(tasks: &[Task]) -> usize {
    tasks.iter().map(|task| task.log.next).sum()
}

#[test]
fn allocations_come_and_go_and_all_of_their_lines_arrive_with_their_metadata() {
    let world = World::new(BulkServer::start(), "node: node-1");
    let World { server, agent, place, .. } = &world;
    let mut program = place.start(&[]);
    program.await_log("skidder is running");
    let mut tasks: Vec<Task> = Vec::new();
    for number in 0..20 {
        let mut task = world.log(&format!("a{number}"));
        task.log.append(3);
        let meta = json!({ "owner": "team", "co.elastic.logs/exclude_lines": "^never" });
        if number % 5 == 3 {
            // It is over before its start is seen.
            agent.put(&task.log.label, "complete", meta);
        } else {
            agent.put(&task.log.label, "pending", meta.clone());
            agent.put(&task.log.label, "running", meta);
            task.log.append(5);
            task.rotate(1);
            task.log.append(5);
        }
        tasks.push(task);
        if number % 7 == 2 {
            agent.break_queries();
        }
        let newest = format!("a{number} ");
        program.await_that("the newest allocation is read", || {
            server.documents().iter().any(|message| message.starts_with(&newest))
        });
        // The ones that have ended write no more.
        if number % 4 == 3 && number % 5 != 1 {
            let ended = &mut tasks[number - 3].log;
            ended.append(100);
            agent.put(&ended.label, "complete", json!({}));
        }
    }
    program.await_that("all lines", || server.count() >= total(&tasks));
    accept("allocations that come and go", judge(&expected(&tasks), &server.documents()), 0);
    for event in world.events() {
        let nomad = &event["nomad"];
        let id = nomad["allocation"]["id"].as_str().unwrap();
        assert!(event["message"].as_str().unwrap().starts_with(&format!("{id} ")));
        assert_eq!(nomad["allocation"]["status"], "running");
        assert_eq!(nomad["task"], json!({ "name": "web", "owner": "team" }));
        assert_eq!(nomad["job"], json!({ "name": "shop", "type": "service" }));
    }
    for task in &tasks {
        agent.remove(&task.log.label);
    }
    program.await_that("all inputs end", || place.get("/inputs/").matches("\"id\"").count() == 0);
    assert!(!program.log().contains("hunter2"), "the token is in the log");
    let ended = program.terminate().succeeded();
    assert_eq!(ended.ledger().read, ended.ledger().delivered);
}

#[test]
fn an_allocation_that_ends_while_the_output_hangs_loses_nothing() {
    let world = World::new(BulkServer::start(), "scope: cluster");
    let World { server, agent, place, .. } = &world;
    let mut program = place.start(&[]);
    program.await_log("skidder is running");
    server.hold();
    let mut tasks = vec![world.log("old"), world.log("new")];
    tasks[0].log.append(2000);
    agent.put("old", "running", json!({}));
    program.await_that("a request is held", || server.held() > 0);
    agent.put("old", "failed", json!({}));
    agent.remove("old");
    std::fs::remove_dir_all(&tasks[0].logs).unwrap();
    tasks[1].log.append(10);
    agent.put("new", "running", json!({}));
    program.await_log("an input ends");
    server.release();
    program.await_that("all lines", || server.count() >= total(&tasks));
    accept("an output that hangs", judge(&expected(&tasks), &server.documents()), 0);
    program.terminate().succeeded();
}

#[test]
fn a_restart_reads_what_was_written_and_ended_meanwhile_also_while_nomad_is_away() {
    let world = World::new(BulkServer::start(), "region: global");
    let World { server, agent, place, .. } = &world;
    let mut tasks: Vec<Task> = ["stays", "ends", "vanishes"].map(|id| world.log(id)).into();
    for task in &mut tasks {
        task.log.append(20);
        agent.put(&task.log.label, "running", json!({}));
    }
    let mut program = place.start(&[]);
    program.await_that("the first lines", || server.count() >= 60);
    program.terminate().succeeded();
    for task in &mut tasks {
        task.log.append(30);
    }
    let far_future = i64::MAX;
    agent.put_at("ends", "complete", far_future);
    agent.remove("vanishes");
    agent.refuse(true);
    let mut program = place.start(&[]);
    program.await_log("Nomad cannot be followed; trying again");
    agent.refuse(false);
    program.await_that("all lines", || server.count() >= total(&tasks));
    program.await_log("Nomad is followed again");
    tasks[0].log.append(5);
    program.await_that("lines of the one that stays", || server.count() >= total(&tasks));
    accept("a restart", judge(&expected(&tasks), &server.documents()), 0);
    let explained = place.get("/autodiscover");
    assert!(explained.contains("allocation shop.web[stays]"), "{explained}");
    assert!(!program.log().contains("hunter2") && !explained.contains("hunter2"));
    program.terminate().succeeded();
}

#[test]
fn an_address_that_is_wrong_is_an_error_at_the_start() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let text = place.configuration();
    place.configure(&format!(
        "filebeat.autodiscover.providers: [{{type: nomad, address: 'ftp://x', hints.enabled: true}}]\n{text}"
    ));
    let ended = place.start(&[]).end();
    assert_ne!(ended.code(), Some(0));
    let log = ended.log;
    assert!(log.contains("`address` of the provider `nomad` is `ftp://x`"), "{log}");
}
