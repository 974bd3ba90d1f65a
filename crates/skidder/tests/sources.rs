//! Sources that are no files, as the program shows them: `files`, `status`, `explain`, the numbers over a reload, the end.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::Place;
use common::lines::{line, lines};
use common::program::patiently;
use common::server::BulkServer;
use rustix::process::Signal;
use serde_json::Value;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;

/// A place with these inputs instead of its files, and an endpoint.
fn with_inputs(place: &Place, inputs: &str) {
    let text = place.configuration();
    let (_, rest) = text.split_once("filebeat.registry.flush").unwrap();
    place.configure(&format!("filebeat.inputs:\n{inputs}filebeat.registry.flush{rest}"));
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// The open sources that `skidder files` shows as JSON.
fn sources(place: &Place, arguments: &[&str]) -> Vec<Value> {
    let ended = place.run(&[&["files", "--json"], arguments].concat()).succeeded();
    json(&ended.out)["sources"].as_array().unwrap().clone()
}

#[test]
fn inputs_without_files_show_their_sources_instead() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (tcp, path) = (format!("tcp 127.0.0.1:{port}"), place.path().join("in"));
    let inputs = format!(
        "- {{type: tcp, host: '127.0.0.1:{port}'}}\n- {{type: unix, id: local, path: '{}'}}\n",
        path.display()
    );
    with_inputs(&place, &inputs);
    place.open_endpoint();

    // Nothing runs: nothing is open, and no file is expected.
    let ended = place.run(&["files"]).succeeded();
    let said = format!("no open sources of `{tcp}`, `local`: skidder is not running\n");
    assert_eq!(ended.out, said);
    assert_eq!(sources(&place, &[]), [] as [Value; 0]);
    let explained = place.run(&["explain"]).succeeded().out;
    assert!(explained.contains(&format!("input `{tcp}` (tcp)\n")), "{explained}");
    let ended = place.run(&["process"]);
    assert!(
        ended.log.contains(&format!("there are several inputs (`{tcp}`, `local`)")),
        "{}",
        ended.log
    );
    let one = place.run(&["explain", "--input", &tcp]).succeeded().out;
    assert!(!one.contains("local"), "{one}");

    let program = place.start(&[]);
    patiently("a listener that the endpoint knows", || {
        let shown = place.run(&["files", "--input", "local"]).out;
        let listens = "0 sources are open (`local` listens); from the running skidder\n";
        (shown == listens).then_some(())
    });
    let mut client = patiently("a listener", || TcpStream::connect(("127.0.0.1", port)).ok());
    client.write_all(&lines("a", 0..3)).unwrap();
    let mut local = patiently("a listener", || UnixStream::connect(&path).ok());
    local.write_all(&lines("b", 0..2)).unwrap();
    patiently("all lines", || (server.count() == 5).then_some(()));
    let from = client.local_addr().unwrap().to_string();

    let all = sources(&place, &[]);
    assert_eq!(all.len(), 2, "{all:?}");
    let of_tcp = &sources(&place, &["--input", &tcp])[0];
    assert_eq!(
        (&of_tcp["name"], &of_tcp["events"], &of_tcp["input_name"]),
        (&from.as_str().into(), &3.into(), &tcp.as_str().into())
    );
    assert!(of_tcp["open_ms"].is_u64() && of_tcp["silent_ms"].is_u64(), "{of_tcp}");
    let of_local = sources(&place, &["--input", "local"]);
    assert_eq!((of_local.len(), &of_local[0]["events"]), (1, &2.into()));
    assert!(
        place
            .run(&["files", "--input", "none"])
            .log
            .contains("no input that is enabled is called `none`")
    );
    let shown = place.run(&["files"]).succeeded().out;
    assert!(shown.contains(&from) && shown.contains(" ago"), "{shown}");
    assert!(shown.ends_with("2 sources are open; from the running skidder\n"), "{shown}");
    assert!(!shown.contains("files"), "{shown}");

    let status = place.run(&["status", "--seconds", "0.2"]).succeeded().out;
    let row = status.lines().find(|line| line.starts_with(&tcp)).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells[2..4], ["reading", "1"], "{status}");
    assert!(status.contains("2 sources open\n") && !status.contains("files"), "{status}");

    // A source that is closed is not there any more.
    drop(local);
    patiently("one source", || (sources(&place, &[]).len() == 1).then_some(()));
    program.terminate().succeeded();
}

#[test]
fn files_and_sources_are_shown_beside_each_other() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let (path, log) = (place.path().join("in"), place.write("a.log", &lines("a", 0..3)));
    let inputs = format!(
        "- {{type: filestream, id: logs, paths: ['{}']}}\n- {{type: unix, path: '{}'}}\n",
        log.display(),
        path.display()
    );
    with_inputs(&place, &inputs);
    place.open_endpoint();
    let program = place.start(&[]);
    let mut client = patiently("a listener", || UnixStream::connect(&path).ok());
    client.write_all(&lines("b", 0..2)).unwrap();
    patiently("all lines", || (server.count() == 5).then_some(()));
    let files = |arguments: &[&str]| place.run(&[&["files"], arguments].concat()).succeeded().out;
    let all = files(&[]);
    assert!(all.contains("a.log") && all.contains("1 files, "), "{all}");
    assert!(all.ends_with("1 source is open; from the running skidder\n"), "{all}");
    let logs = files(&["--input", "logs"]);
    assert!(logs.contains("a.log") && !logs.contains("source"), "{logs}");
    let unix = files(&["--input", &format!("unix {}", path.display())]);
    assert!(!unix.contains("a.log") && unix.contains("1 source is open"), "{unix}");
    // A path asks for files.
    let one = files(&[&log.display().to_string()]);
    assert!(one.contains("a.log") && !one.contains("open"), "{one}");
    let status = place.run(&["status", "--seconds", "0.2"]).succeeded().out;
    for part in ["\nlogs ", "\nunix /", "1 source open\n", "\n1 files, 0 of them behind"] {
        assert!(status.contains(part), "{part} is not in {status}");
    }
    program.terminate().succeeded();
}

#[test]
fn the_end_of_a_run_says_nothing_of_files_that_no_input_reads() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    with_inputs(&place, "- {type: benchmark, count: 5, message: hello}\n");
    let ended = place.run(&["run", "--once"]).succeeded();
    let said = format!("{}{}", ended.out, ended.log);
    let read =
        said.lines().find(|line| line.starts_with("read ")).unwrap_or_else(|| panic!("{said}"));
    assert!(read.contains("5  lines, ") && !read.contains("file"), "{read}");
}

#[test]
fn a_rate_is_shown_once_a_second_has_passed() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    with_inputs(&place, "- {type: benchmark, id: b, eps: 100, message: hello}\n");
    place.open_endpoint();
    let program = place.start(&[]);
    program.await_log("serving metrics over HTTP");
    patiently("a rate", || {
        let rate = sources(&place, &[]).first()?["events_rate"].as_f64()?;
        (rate > 1.0 && rate < 1000.0).then_some(())
    });
    program.terminate().succeeded();
}

/// The number of a metric of the input `u`.
fn metric(place: &Place, name: &str) -> u64 {
    let metrics = place.get("/metrics");
    let start = format!("{name}{{input=\"u\"}} ");
    let found = metrics.lines().find_map(|line| line.strip_prefix(&start));
    found.unwrap_or_else(|| panic!("{name}: {metrics}")).parse().unwrap()
}

#[test]
fn what_the_system_threw_away_goes_on_counting_over_a_reload_and_is_said_once() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let input = |tag: &str| {
        format!(
            "- {{type: udp, id: u, host: '127.0.0.1:{port}', read_buffer: 4KiB, tags: [{tag}]}}\n"
        )
    };
    with_inputs(&place, &input("one"));
    place.open_endpoint();
    let mut program = place.start(&[]);
    program.await_log("receives datagrams");
    // The endpoint may not be there yet.
    patiently("the endpoint", || place.stat("/skidder/sources/received_events"));
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(("127.0.0.1", port)).unwrap();
    let mut sent = 0;
    let mut lose_more_than = |before: u64| {
        while metric(&place, "skidder_input_lost_before_total") <= before {
            for _ in 0..2000 {
                client.send(line("a", sent).as_bytes()).unwrap();
                sent += 1;
            }
        }
        // What was received and what was lost is all there was.
        let received = || {
            let of = |name: &str| place.stat(&format!("/skidder/sources/{name}"));
            (of("received_events")? + of("lost_before")? == sent as u64).then_some(())
        };
        patiently("all datagrams to be received or lost", received);
        metric(&place, "skidder_input_lost_before_total")
    };
    let before = lose_more_than(0);
    place.configure(&place.configuration().replace(&input("one"), &input("two")));
    program.signal(Signal::HUP);
    program.await_log_times(&["all inputs are as configured".to_owned()], 1);
    assert_eq!(metric(&place, "skidder_input_lost_before_total"), before);
    let after = lose_more_than(before);
    assert_eq!(place.stat("/skidder/sources/lost_before"), Some(after), "the sum has it once");
    // Also over inputs that lose nothing, when those before them are long over.
    for (times, (old, new)) in [("two", "three"), ("three", "four")].into_iter().enumerate() {
        // How far files are behind is then known of the inputs before the reload only.
        place.get("/inputs/");
        place.configure(&place.configuration().replace(&input(old), &input(new)));
        program.signal(Signal::HUP);
        program.await_log_times(&["all inputs are as configured".to_owned()], times + 2);
    }
    let inputs = json(&place.get("/inputs/"));
    assert_eq!(inputs[0]["skidder"]["state"], "reading", "{inputs}");
    assert_eq!(inputs[0]["system_packet_drops"], after);
    let ended = program.terminate().succeeded();
    let said: Vec<&str> = ended
        .log
        .lines()
        .filter(|line| line.starts_with("! input `u`: the system threw away"))
        .collect();
    assert_eq!(said.len(), 1, "{said:?}");
}

#[test]
fn flows_and_what_cannot_be_decoded_are_metrics() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let input = format!(
        "- {{type: netflow, id: u, host: '127.0.0.1:{port}', protocols: [v5, v9, sflow]}}\n"
    );
    with_inputs(&place, &input);
    place.open_endpoint();
    let program = place.start(&[]);
    program.await_log("receives datagrams");
    // The endpoint may not be there yet.
    patiently("the endpoint", || place.stat("/skidder/sources/received_events"));
    let exporter = UdpSocket::bind("127.0.0.1:0").unwrap();
    exporter.connect(("127.0.0.1", port)).unwrap();
    // Two flows of version 5; data of version 9 without its template; a version that is not configured.
    let header = [&[0, 5, 0, 2][..], &[0; 20]].concat();
    exporter.send(&[header, vec![7; 96]].concat()).unwrap();
    let v9 = [&[0, 9, 0, 1][..], &[0; 16], &[1, 0, 0, 8, 1, 2, 3, 4]].concat();
    exporter.send(&v9).unwrap();
    exporter.send(&[0, 1, 0, 0]).unwrap();
    // Datagrams of sFlow with the numbers 1 and 4; in each a sample of a format of another enterprise.
    for number in [1, 4] {
        let words = [5, 1, 0x0a00_0001, 0, number, 1000, 1, 0x1001, 4, 0];
        let datagram: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_be_bytes()).collect();
        exporter.send(&datagram).unwrap();
    }
    let flows = |name: &str| metric(&place, &format!("skidder_input_netflow_{name}"));
    patiently("the first flow", || {
        place.get("/metrics").contains("netflow_packets_total").then_some(())
    });
    patiently("all packets", || (flows("packets_total") == 4).then_some(()));
    for (name, expected) in [
        ("flows_total", 2),
        ("decode_errors_total", 1),
        ("exporters", 1),
        ("sets_without_template_total", 1),
        ("sets_decoded_later_total", 0),
        ("sets_given_up_total", 0),
        ("templates_refused_total", 0),
        ("templates_forgotten_total", 0),
        ("sequence_resets_total", 0),
        ("sflow_formats_skipped_total", 2),
        ("sflow_datagrams_lost_total", 2),
    ] {
        assert_eq!(flows(name), expected, "{name}");
    }
    let shown = &json(&place.get("/inputs/"))[0];
    assert_eq!(shown["flows_total"], 2);
    assert_eq!(shown["skidder"]["netflow"]["sflow_datagrams_lost_total"], 2);
    program.terminate().succeeded();
}
