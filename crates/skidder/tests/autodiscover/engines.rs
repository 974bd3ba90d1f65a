//! A real Docker engine, and an agent of Jolokia on the loopback interface.

use super::common::server::BulkServer;
use super::{events, place};
use rustix::net::{AddressFamily, SocketType, bind, socket, sockopt};
use serde_json::json;
use skidder_testkit::servers::Server;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::process::Command;
use std::time::Duration;

#[test]
#[ignore = "needs a Docker engine"]
fn containers_of_a_real_engine_are_read_also_those_that_live_shortly() {
    let engine = Server::own_docker().unwrap();
    let server = BulkServer::start();
    let data = engine.file("data");
    let provider = format!(
        "- type: docker\n  host: unix://{}\n  hints.enabled: true\n  cleanup_timeout: 1s\n  \
         hints.default_config:\n    type: container\n    \
         paths: ['{}/containers/${{data.container.id}}/*-json.log']\n",
        engine.file("docker.sock").display(),
        data.display()
    );
    let place = place(&server, &provider);
    let mut program = place.start(&[]);
    program.await_log("skidder is running");
    let docker = |arguments: &[&str]| {
        let output = Command::new(engine.file("docker")).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    docker(&[
        "run",
        "-d",
        "--name",
        "long",
        "--label",
        "app.kubernetes.io/name=x",
        "--network",
        "none",
        "busybox:test",
        "sh",
        "-c",
        "while true; do echo long; sleep 0.1; done",
    ]);
    program.await_that("a line of the container", || server.count() > 0);
    for number in 0..10 {
        let text = format!("echo short{number}; echo more{number}");
        docker(&["run", "-d", "--network", "none", "busybox:test", "sh", "-c", &text]);
    }
    let off = "co.elastic.logs/enabled=false";
    docker(&["run", "-d", "--label", off, "--network", "none", "busybox:test", "echo", "secret"]);
    let lines = ["co.elastic.logs/exclude_lines=^no", "--network"];
    docker(&[
        "run",
        "-d",
        "--label",
        lines[0],
        lines[1],
        "none",
        "busybox:test",
        "sh",
        "-c",
        "echo no; echo yes",
    ]);
    program.await_that("all lines of those that live shortly", || {
        let all = server.documents();
        let have = |line: String| all.contains(&line);
        (0..10).all(|number| have(format!("short{number}")) && have(format!("more{number}")))
            && have("yes".to_owned())
    });
    let all = server.documents();
    assert!(!all.iter().any(|message| message == "secret" || message == "no"), "{all:?}");
    let first = events(&server).into_iter().find(|one| one["message"] == "long").unwrap();
    assert_eq!(first["container"]["name"], "long");
    assert_eq!(first["container"]["image"]["name"], "busybox:test");
    assert_eq!(first["docker"]["container"]["labels"]["app_kubernetes_io/name"], "x");
    docker(&["rm", "-f", "long"]);
    program.terminate().succeeded();
    // What ends while skidder does not run is read at the next start, and nothing else again.
    let before = server.count();
    docker(&["run", "--network", "none", "busybox:test", "sh", "-c", "echo unseen; echo unheard"]);
    let mut program = place.start(&[]);
    program.await_that("its lines", || {
        let all = server.documents();
        ["unseen", "unheard"].iter().all(|line| all.iter().any(|message| message == line))
    });
    program.terminate().succeeded();
    assert_eq!(server.count(), before + 2);
}

/// Where agents of Jolokia receive queries.
const JOLOKIA: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 192, 48, 84), 24884);

/// A socket that receives queries for agents on the loopback interface, as other programs may do, too. `None` if
/// multicast does not work there.
fn jolokia_socket() -> Option<UdpSocket> {
    let agent = socket(AddressFamily::INET, SocketType::DGRAM, None).unwrap();
    sockopt::set_socket_reuseaddr(&agent, true).unwrap();
    bind(&agent, &JOLOKIA).unwrap();
    let agent = UdpSocket::from(agent);
    agent.join_multicast_v4(JOLOKIA.ip(), &Ipv4Addr::LOCALHOST).ok()?;
    agent.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let probe = UdpSocket::bind("127.0.0.1:0").unwrap();
    probe.send_to(b"probe", JOLOKIA).ok()?;
    agent.recv_from(&mut [0; 100]).ok()?;
    Some(agent)
}

/// Answers the next queries as an agent with this id.
fn answer_as(socket: &UdpSocket, id: &str) {
    let answer = json!({
        "type": "response", "agent_id": id, "agent_version": "1.7.2", "server_product": "tomcat",
        "server_vendor": "Apache", "secured": false, "url": "http://127.0.0.1:8778/jolokia",
    });
    let mut query = [0; 100];
    // Other tests may send queries, too.
    if let Ok((length, from)) = socket.recv_from(&mut query)
        && &query[..length] == br#"{"type":"query"}"#
    {
        socket.send_to(answer.to_string().as_bytes(), from).unwrap();
        socket.send_to(b"no answer", from).unwrap();
    }
}

#[test]
fn a_jvm_with_an_agent_of_jolokia_is_read_until_the_agent_is_silent() {
    let Some(agent) = jolokia_socket() else {
        eprintln!("not tried: multicast does not work on the loopback interface here");
        return;
    };
    let server = BulkServer::paced(Duration::ZERO);
    let folder = tempfile::tempdir().unwrap();
    let id = format!("127.0.0.1-{}-servlet", std::process::id());
    let path = folder.path().join("tomcat.log");
    std::fs::write(&path, "one\ntwo\n").unwrap();
    let provider = format!(
        "- type: jolokia\n  interfaces: [{{name: lo, interval: 200ms, probe_timeout: 100ms, grace_period: 1s}}]\n  \
         templates:\n  - condition.equals.jolokia.agent.id: {id}\n    config:\n    - type: filestream\n      \
         id: 'i-${{data.jolokia.agent.id}}'\n      prospector.scanner.check_interval: 50ms\n      \
         paths: ['{}/${{data.jolokia.server.product}}.log']\n",
        folder.path().display()
    );
    let place = place(&server, &provider);
    let mut program = place.start(&[]);
    program.await_log("skidder is running");
    program.await_that("the lines of the server", || {
        answer_as(&agent, &id);
        server.count() >= 2
    });
    let jolokia = json!({
        "agent": { "id": id, "version": "1.7.2" }, "server": { "product": "tomcat", "vendor": "Apache" },
        "secured": false, "url": "http://127.0.0.1:8778/jolokia",
    });
    for event in events(&server) {
        assert_eq!(event["jolokia"], jolokia);
    }
    let explained = place.get("/autodiscover");
    assert!(explained.contains(&format!("Jolokia agent {id}")), "{explained}");
    program.await_that("the input ends", || !place.get("/inputs/").contains(&id));
    std::fs::write(&path, "one\ntwo\nlate\n").unwrap();
    // It is back.
    program.await_that("the line that was written meanwhile", || {
        answer_as(&agent, &id);
        server.count() >= 3
    });
    let ledger = program.terminate().succeeded().ledger();
    assert_eq!((ledger.read, ledger.delivered), (3, 3));
}
