//! Containers that write and rotate before an input looks at their log for the first time.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod cluster;
mod common;
mod kubelet;

use cluster::Cluster;
use common::lines::judge;
use common::program::Program;
use common::server::BulkServer;
use common::{Place, accept};
use kubelet::Pod;
use serde_json::json;
use skidder_testkit::servers::Server;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// A cluster, and a place that reads the logs of its pods.
struct World {
    server: BulkServer,
    folder: TempDir,
    cluster: Cluster,
    place: Place,
    pods: Vec<Pod>,
}

/// How a filestream input reads the logs of containers.
const READING: &str = "prospector.scanner: {symlinks: true, check_interval: 50ms}, parsers: [{container: ~}], \
                       backoff: {init: 10ms, max: 50ms}";

/// One input for all containers.
fn one_input(folder: &Path, more: &str) -> String {
    let folder = folder.display();
    format!(
        "filebeat.inputs:\n- {{type: filestream, id: all, paths: ['{folder}/containers/*.log'], {READING}{more}}}\n"
    )
}

/// An input for each container.
fn provider(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "filebeat.autodiscover.providers:\n- type: kubernetes\n  node: node-1\n  \
         kube_config: {folder}/kubeconfig\n  hints.enabled: true\n  hints.default_config: {{type: filestream, \
         id: 'c-${{data.kubernetes.container.id}}', \
         paths: ['{folder}/containers/*-${{data.kubernetes.container.id}}.log'], {READING}}}\n"
    )
}

impl World {
    fn new(inputs: impl FnOnce(&Path) -> String) -> Self {
        let server = BulkServer::start();
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("containers")).unwrap();
        let cluster = Cluster::start(folder.path());
        let place = Place::new(&server);
        let world = Self { server, folder, cluster, place, pods: Vec::new() };
        world.configure(inputs);
        world
    }

    fn configure(&self, inputs: impl FnOnce(&Path) -> String) {
        let text = self.place.configuration();
        let (_, rest) = text.split_once("filebeat.registry.flush").unwrap();
        let inputs = inputs(self.folder.path());
        self.place.configure(&format!("{inputs}filebeat.registry.flush{rest}"));
    }

    /// Pods that have rotated 1 to 3 times before the API server knows of their containers.
    fn add_pods(&mut self, count: usize) {
        for _ in 0..count {
            let number = self.pods.len();
            let label = format!("pod{number}");
            let mut pod = Pod::create(&self.cluster, &label, number as u64, json!({}));
            pod.write(40);
            for _ in 0..=number % 3 {
                pod.rotate();
                pod.write(25);
            }
            pod.run(&self.cluster);
            self.pods.push(pod);
        }
    }

    fn await_all(&self, program: &mut Program) {
        let logs = self.logs();
        program.await_that("all lines", || judge(&logs, &self.server.documents()).missing == 0);
    }

    fn logs(&self) -> Vec<(&str, usize)> {
        self.pods.iter().map(|pod| (&*pod.label, pod.next)).collect()
    }

    fn accept(&self, what: &str, bound: usize) {
        accept(what, judge(&self.logs(), &self.server.documents()), bound);
    }
}

#[test]
fn pods_that_rotate_before_the_first_look_are_read_from_their_first_line() {
    for (what, each) in [("one input", false), ("an input for each", true)] {
        let inputs = |folder: &Path| if each { provider(folder) } else { one_input(folder, "") };
        let mut world = World::new(inputs);
        let mut program = world.place.start(&[]);
        program.await_log("skidder is running");
        world.add_pods(6);
        world.await_all(&mut program);
        for pod in &mut world.pods {
            pod.rotate();
            pod.write(10);
        }
        world.await_all(&mut program);
        program.terminate().succeeded();
        // These come, write and rotate while the program is down; the others go on.
        for pod in &mut world.pods {
            pod.write(10);
            pod.rotate();
            pod.write(10);
        }
        world.add_pods(6);
        let mut program = world.place.start(&[]);
        world.await_all(&mut program);
        program.terminate().succeeded();
        world.accept(&format!("rotated before the first look, {what}"), 0);
        let mut program = world.place.start(&[]);
        world.pods[0].write(1);
        world.await_all(&mut program);
        program.terminate().succeeded();
        world.accept(&format!("the same after a restart, {what}"), 0);
    }
}

#[test]
fn nothing_is_lost_when_the_program_is_killed_while_it_reads_what_was_rotated() {
    for round in 0..4 {
        let inputs = if round % 2 == 0 { |folder: &Path| one_input(folder, "") } else { provider };
        let mut world = World::new(inputs);
        let mut program = world.place.start(&[]);
        program.await_log("skidder is running");
        world.add_pods(8);
        let enough = 100 * (round + 1);
        program.await_that("some lines", || world.server.count() >= enough);
        program.kill();
        let came = world.server.count();
        world.pods[1].rotate();
        world.pods[1].write(5);
        world.add_pods(2);
        let mut program = world.place.start(&[]);
        world.await_all(&mut program);
        program.terminate().succeeded();
        // A crash repeats what was not committed.
        world.accept("killed while rotated files are read", came + 50);
    }
}

#[test]
fn what_was_rotated_before_the_first_start_is_left_counted_and_shown() {
    let mut world = World::new(|folder| one_input(folder, ""));
    world.place.open_endpoint();
    world.add_pods(3);
    let rotated = 1 + 2 + 3;
    // The time of files may lag behind the clock by a tick.
    std::thread::park_timeout(Duration::from_millis(50));
    let mut program = world.place.start(&[]);
    program.await_that("the present logs", || world.server.count() == 3 * 25);
    program.await_that("the count", || {
        world
            .place
            .get("/metrics")
            .contains(&format!("skidder_reader_files_rotated_before_total {rotated}"))
    });
    let files = world.place.run(&["files"]).succeeded().out;
    let reason = "ignored: rotated away before this data directory was first used";
    assert_eq!(files.matches(reason).count(), rotated, "{files}");
    // What is compressed later is known.
    for pod in &mut world.pods {
        pod.rotate();
        pod.write(5);
    }
    program.await_that("the new lines", || world.server.count() == 3 * 30);
    program.terminate().succeeded();
    world.pods[0].rotate();
    world.pods[0].write(5);
    let mut program = world.place.start(&[]);
    program.await_that("the new lines", || world.server.count() == 3 * 30 + 5);
    program.terminate().succeeded();
    assert_eq!(world.server.count(), 3 * 30 + 5);

    // Another input may want all of them, or none.
    for (value, lines) in [("off", 25), ("all", 40 + 3 * 25)] {
        let mut other = World::new(|folder| {
            one_input(folder, &format!(", prospector.scanner.rotated_logs: {value}"))
        });
        other.add_pods(3);
        let pod = other.pods.pop().unwrap();
        let mut program = other.place.start(&[]);
        let count = |server: &BulkServer| {
            let first = format!("{} ", pod.label);
            server.documents().iter().filter(|text| text.starts_with(&first)).count()
        };
        program.await_that("its lines", || count(&other.server) >= lines);
        program.terminate().succeeded();
        assert_eq!(count(&other.server), lines, "{value}");
    }
}

#[test]
#[ignore = "needs a Docker engine"]
fn a_container_of_a_real_engine_that_floods_at_once_is_read_from_its_first_line() {
    let engine = Server::own_docker().unwrap();
    let socket = engine.file("docker.sock");
    let data = engine.file("data");
    for compress in ["false", "true"] {
        let world = World::new(|_| {
            format!(
                "filebeat.autodiscover.providers:\n- type: docker\n  host: unix://{}\n  hints.enabled: true\n  \
                 hints.default_config: {{type: filestream, id: 'c-${{data.container.id}}', \
                 paths: ['{}/containers/${{data.container.id}}/*-json.log'], {READING}}}\n",
                socket.display(),
                data.display()
            )
        });
        let mut program = world.place.start(&[]);
        program.await_log("skidder is running");
        let docker = |arguments: &[&str]| {
            let output = Command::new(engine.file("docker")).args(arguments).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        let flood = |name: &str, lines: usize| {
            // A file of 1 KiB takes about ten lines, and five are kept.
            let text = format!(
                "i=0; while [ $i -lt {lines} ]; do echo {name} $i; i=$((i+1)); done; sleep 1"
            );
            let compress = format!("compress={compress}");
            docker(&[
                "run",
                "-d",
                "--network",
                "none",
                "--log-opt",
                "max-size=1k",
                "--log-opt",
                "max-file=5",
                "--log-opt",
                &compress,
                "busybox:test",
                "sh",
                "-c",
                &text,
            ]);
        };
        let has_all = |server: &BulkServer, name: &str, lines: usize| {
            let documents = server.documents();
            (0..lines).all(|number| documents.contains(&format!("{name} {number}")))
        };
        // Other names than those of the round before, whose containers may still run.
        let running = |number: usize| format!("running{number}-{compress}");
        for number in 0..4 {
            flood(&running(number), 35);
        }
        program.await_that("all lines of those that flood at once", || {
            (0..4).all(|number| has_all(&world.server, &running(number), 35))
        });
        program.terminate().succeeded();
        let down = format!("down-{compress}");
        flood(&down, 35);
        std::thread::park_timeout(Duration::from_millis(500));
        let mut program = world.place.start(&[]);
        program.await_that("all lines of the one that came meanwhile", || {
            has_all(&world.server, &down, 35)
        });
        let log = program.terminate().succeeded().log;
        let mut documents = world.server.documents();
        documents.sort();
        let twice: Vec<&[String]> = documents.windows(2).filter(|two| two[0] == two[1]).collect();
        assert!(twice.is_empty(), "compress={compress}: {twice:?}\n{log}");
    }
}
