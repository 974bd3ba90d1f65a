//! Inputs that are not files, in the program: several outputs, reloads in the middle of lines, stops, and what is shown.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::lines::{LINE_BYTES, judge, line, lines};
use common::program::{Ledger, Program, patiently};
use common::server::BulkServer;
use common::{Place, accept};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// A place with these inputs instead of its files.
fn with_inputs(place: &Place, inputs: &str) {
    let text = place.configuration();
    let (_, rest) = text.split_once("filebeat.registry.flush").unwrap();
    place.configure(&format!("filebeat.inputs:\n{inputs}filebeat.registry.flush{rest}"));
}

fn connect(path: &PathBuf) -> UnixStream {
    patiently("somebody who listens", || UnixStream::connect(path).ok())
}

/// Asks for a reload, and waits until it is over.
fn reload(program: &mut Program, times: usize) {
    program.signal(Signal::HUP);
    program.await_log_times(&["all inputs are as configured".to_owned()], times);
}

#[test]
fn an_input_feeds_several_outputs_and_each_gets_every_event_once() {
    let place = Place::with_output(
        "outputs:\n- {id: a, file: {path: a, filename: e}}\n- {id: b, file: {path: b, filename: e}}\n",
    );
    with_inputs(&place, "- {type: benchmark, count: 5000, threads: 2, message: hello}\n");
    let ended = place.once(&[]).succeeded();
    let all = Ledger { read: 10_000, delivered: 10_000, ..Ledger::default() };
    for output in ["a", "b"] {
        assert_eq!(ended.ledger_of(output), all);
        let mut seen = std::collections::BTreeSet::new();
        for file in std::fs::read_dir(place.path().join(output)).unwrap() {
            for text in std::fs::read_to_string(file.unwrap().path()).unwrap().lines() {
                let event: Value = serde_json::from_str(text).unwrap();
                assert_eq!(
                    (&event["message"], &event["input"]["type"]),
                    (&"hello".into(), &"benchmark".into())
                );
                seen.insert((event["thread"].as_u64(), event["line"].as_u64()));
            }
        }
        assert_eq!(seen.len(), 10_000);
    }
}

#[test]
fn what_an_input_of_several_outputs_received_is_counted_once() {
    let place = Place::with_output(
        "outputs:\n- {id: a, file: {path: a, filename: e}}\n- {id: b, file: {path: b, filename: e}}\n",
    );
    let path = place.path().join("in");
    with_inputs(&place, &format!("- {{type: unix, id: x, path: '{}'}}\n", path.display()));
    place.open_endpoint();
    let program = place.start(&[]);
    connect(&path).write_all(&lines("a", 0..100)).unwrap();
    patiently("all lines for both", || {
        place.stat("/skidder/ledger/delivered").filter(|all| *all == 200)
    });
    assert_eq!(place.stat("/skidder/sources/received_events"), Some(100));
    program.terminate().succeeded();
}

#[test]
fn reloads_in_the_middle_of_lines_lose_none_and_repeat_none() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let path = place.path().join("in");
    let input = |tag: usize| {
        format!("- {{type: unix, id: x, path: '{}', tags: [t{tag}]}}\n", path.display())
    };
    with_inputs(&place, &input(0));
    let mut program = place.start(&[]);
    let mut client = connect(&path);
    let mut sent = 0;
    for times in 1..=5 {
        let bytes = lines("a", sent..sent + 500);
        sent += 500;
        // The rest of the line comes to the next input.
        let half = bytes.len() - 7;
        client.write_all(&bytes[..half]).unwrap();
        let text = place.configuration();
        place.configure(&text.replace(&input(times - 1), &input(times)));
        reload(&mut program, times);
        client.write_all(&bytes[half..]).unwrap();
    }
    // What is not ended by a newline is an event at the end.
    client.write_all(line("a", sent).as_bytes()).unwrap();
    sent += 1;
    let ended = program.terminate().succeeded();
    accept("reload in the middle of a line", judge(&[("a", sent)], &server.documents()), 0);
    assert_eq!(ended.ledger(), Ledger { read: sent, delivered: sent, ..Ledger::default() });
}

#[test]
fn a_stuck_output_makes_senders_wait_and_what_was_received_is_delivered_when_it_goes_on() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let path = place.path().join("in");
    with_inputs(&place, &format!("- {{type: unix, path: '{}'}}\n", path.display()));
    server.hold();
    let program = place.start(&[]);
    let mut client = connect(&path);
    let sender = std::thread::spawn(move || client.write_all(&lines("a", 0..20_000)));
    program.await_log("skidder is running");
    patiently("requests that are held", || (server.held() > 0).then_some(()));
    server.release();
    sender.join().unwrap().unwrap();
    patiently("all lines", || (server.count() == 20_000).then_some(()));
    let ended = program.terminate().succeeded();
    accept("a stuck output", judge(&[("a", 20_000)], &server.documents()), 0);
    assert_eq!(ended.ledger().dropped, 0);
}

#[test]
fn datagrams_are_events_and_the_numbers_of_filebeat_are_shown() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let long = "x".repeat(100);
    let inputs = format!(
        "- {{type: udp, id: u, host: 'localhost:{port}', max_message_size: 64, read_buffer: 100KiB}}\n"
    );
    with_inputs(&place, &inputs);
    place.open_endpoint();
    let program = place.start(&[]);
    program.await_log("receives datagrams");
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(("127.0.0.1", port)).unwrap();
    for number in 0..100 {
        client.send(line("a", number).as_bytes()).unwrap();
    }
    client.send(b"").unwrap();
    client.send(long.as_bytes()).unwrap();
    patiently("all datagrams", || (server.count() == 101).then_some(()));
    let all: Value = serde_json::from_str(&place.get("/inputs/")).unwrap();
    let input = &all[0];
    for (name, value) in [
        ("device", Value::from(format!("localhost:{port}"))),
        ("received_events_total", 101.into()),
        ("published_events_total", 101.into()),
        ("system_packet_drops", 0.into()),
    ] {
        assert_eq!(input[name], value, "{name}: {input}");
    }
    assert_eq!(input["skidder"]["state"], "reading", "{input}");
    let open: Value = serde_json::from_str(&place.get("/files?input=0")).unwrap();
    let from = client.local_addr().unwrap().to_string();
    let is_there = |source: &Value| source["name"] == from.as_str();
    assert!(open["sources"].as_array().unwrap().iter().any(is_there), "{open}");
    let metrics = place.get("/metrics");
    assert!(metrics.contains("skidder_input_received_events_total{input=\"u\"} 101"), "{metrics}");
    let ended = program.terminate().succeeded();
    let read = Ledger { read: 101, delivered: 101, ..Ledger::default() };
    assert_eq!(ended.ledger(), read);
    let sent = server.sent();
    let cut = sent.iter().find(|event| event.message.starts_with("xx")).unwrap();
    assert_eq!(cut.message.len(), 64);
}

#[test]
fn events_over_lumberjack_stay_what_they_were_and_the_numbers_of_filebeat_are_shown() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let input = format!("type: lumberjack, listen_address: '127.0.0.1:{port}', target: ''");
    with_inputs(&place, &format!("- {{id: beats, {input}}}\n"));
    place.open_endpoint();
    let program = place.start(&[]);
    program.await_log("\"listening\"");
    let event = r#"{"message":"m","agent":{"type":"filebeat"},"input":{"type":"winlog"}}"#;
    let window =
        [&b"2W\0\0\0\x012J\0\0\0\x01"[..], &(event.len() as u32).to_be_bytes(), event.as_bytes()];
    let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    client.write_all(&window.concat()).unwrap();
    let mut answer = [0; 6];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(answer, *b"2A\0\0\0\x01");
    let mut sent = server.sent().remove(0).json;
    let fields = sent.as_object_mut().unwrap();
    fields.remove("@timestamp").unwrap();
    let from = client.local_addr().unwrap().to_string();
    assert_eq!(fields.remove("source").unwrap()["address"], from.as_str());
    // No `agent.id`, `ecs`, `host` of the program that passes it on.
    assert_eq!(sent, serde_json::from_str::<Value>(event).unwrap());
    let counted = || {
        let all: Value = serde_json::from_str(&place.get("/inputs/")).unwrap();
        (all[0]["batches_acked_total"] == 1).then(|| all[0].clone())
    };
    let input = patiently("the answer to be counted", counted);
    for (name, value) in [
        ("bind_address", Value::from(format!("tcp://127.0.0.1:{port}"))),
        ("batches_received_total", 1.into()),
        ("messages_received_total", 1.into()),
    ] {
        assert_eq!(input[name], value, "{name}: {input}");
    }
    assert_eq!(input["batch_processing_time"]["histogram"]["count"], 1, "{input}");
    assert!(input.get("received_events_total").is_none(), "{input}");
    assert_eq!(input["skidder"]["ledger"]["delivered"], 1, "{input}");
    program.terminate().succeeded();
}

#[test]
fn a_port_in_use_is_a_problem_until_it_is_free() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    with_inputs(&place, &format!("- {{type: udp, id: u, host: '127.0.0.1:{port}'}}\n"));
    place.open_endpoint();
    let program = place.start(&[]);
    // The look at all inputs after the start logs it, too, if it comes after the first attempt.
    program.await_log("cannot listen; trying again");
    program.await_log("another input or another process does already");
    // The endpoint may not be there yet.
    let is_reported = || {
        let status = place.run(&["status"]).out;
        status
            .contains("another input or another process does already; it is tried again")
            .then_some(())
    };
    patiently("the problem in `status`", is_reported);
    drop(taken);
    program.await_log("receives datagrams");
    let ended = program.terminate().succeeded();
    assert!(!ended.log.contains("\"remedy\":\"\""), "{}", ended.log);
}

#[test]
fn what_the_system_threw_away_is_counted_and_said_at_the_end() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    with_inputs(
        &place,
        &format!("- {{type: udp, id: u, host: '127.0.0.1:{port}', read_buffer: 4KiB}}\n"),
    );
    place.open_endpoint();
    let program = place.start(&[]);
    program.await_log("receives datagrams");
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(("127.0.0.1", port)).unwrap();
    let lost = || place.stat("/skidder/sources/lost_before").filter(|lost| *lost > 0);
    let mut sent = 0;
    while lost().is_none() {
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
    let status = place.run(&["status"]);
    assert!(status.out.contains("raise `read_buffer`"), "{}", status.out);
    let ended = program.terminate().succeeded();
    assert!(ended.log.contains("! input `u`: the system threw away"), "{}", ended.log);
    let ledger = ended.ledger();
    assert_eq!(ledger.read, ledger.delivered);
}

#[test]
fn a_restart_with_sockets_of_systemd_loses_nothing() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    with_inputs(&place, &format!("- {{type: tcp, id: t, host: '{address}'}}\n"));
    // The shell gets the socket as its standard output, and passes it on as systemd does.
    let script = "exec 3>&1 >/dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" \"$@\"";
    let start = || {
        let real = place.command(&[]);
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script]);
        command.arg(real.get_program()).args(real.get_args()).current_dir(place.path());
        let socket = OwnedFd::from(listener.try_clone().unwrap());
        let program = Program::start_into(&mut command, socket.into());
        // It keeps its copy of the socket.
        drop(command);
        program.await_log("\"listening\"");
        program
    };
    let mut sent = 0;
    let mut send = || {
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(&lines("a", sent..sent + 100)).unwrap();
        sent += 100;
    };
    for _ in 0..3 {
        let program = start();
        send();
        program.terminate().succeeded();
        // skidder is not running: the system keeps it.
        send();
    }
    let program = start();
    patiently("all lines", || (server.count() == 600).then_some(()));
    program.terminate().succeeded();
    accept("restarts with a socket of systemd", judge(&[("a", 600)], &server.documents()), 0);
}

/// What a stuck output leaves of sources that cannot send again is lost; it must be counted and said.
fn expect_dropped_at_stop(program: Program, server: &BulkServer, sent: usize) {
    let ended = program.terminate();
    server.release();
    let ledger = ended.ledger();
    // On a busy machine the system throws datagrams away.
    let lost = ended.log.rsplit_once("threw away ").and_then(|(_, text)| text.split(' ').next());
    let lost = lost.map_or(0, |lost| lost.replace(',', "").parse::<usize>().unwrap());
    assert_eq!(ledger.read + lost, sent, "{}", ended.log);
    assert_eq!(ledger.delivered + ledger.dropped, ledger.read, "{}", ended.log);
    assert!(ended.log.contains("cannot be read again"), "{}", ended.log);
}

#[test]
fn events_without_room_in_the_queue_are_a_problem_a_warning_and_said_at_the_end() {
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (server, place) = stuck(&format!(
        "- {{type: udp, id: u, host: '127.0.0.1:{port}', max_message_size: 60KiB}}\n"
    ));
    place.open_endpoint();
    let program = place.start(&[]);
    program.await_log("receives datagrams");
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(("127.0.0.1", port)).unwrap();
    patiently("events without room", || {
        for _ in 0..50 {
            client.send(&[b'x'; 50_000]).unwrap();
        }
        place.stat("/skidder/ledger/dropped/queue_full").filter(|dropped| *dropped > 0)
    });
    let status = place.run(&["status", "--seconds", "0.1"]);
    assert!(status.out.contains("- input `u` dropped "), "{}", status.out);
    let cause = "the queue of the output `only` was full, and nothing sends such events again";
    assert!(status.out.contains(cause), "{}", status.out);
    assert!(status.out.contains("  → raise `queue.mem.events`"), "{}", status.out);
    let line = program.await_log("input `u` dropped ");
    assert!(line.contains("\"log.level\":\"warn\"") && line.contains(cause), "{line}");
    let ended = program.terminate();
    server.release();
    let told = ended.log.lines().filter(|line| line.starts_with("! input `u` dropped "));
    assert_eq!(told.count(), 1, "{}", ended.log);
}

#[test]
fn a_trouble_that_comes_after_the_start_is_logged_when_it_begins_and_when_it_is_over() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let path = place.path().join("in");
    let later = place.path().join("later").join("in");
    let input = |path: &PathBuf| format!("- {{type: unix, id: x, path: '{}'}}\n", path.display());
    with_inputs(&place, &input(&path));
    let program = place.start(&[]);
    program.await_log("skidder is running");
    drop(connect(&path));
    place.configure(&place.configuration().replace(&input(&path), &input(&later)));
    program.signal(Signal::HUP);
    let line = program.await_log("\"input `x` cannot receive: ");
    assert!(line.contains("\"log.level\":\"warn\""), "{line}");
    std::fs::create_dir(later.parent().unwrap()).unwrap();
    program.await_log("\"over: input `x` cannot receive");
    program.terminate().succeeded();
}

/// Lets the program not wait for a stuck output at its end.
fn hurry(place: &Place) {
    let text = place.configuration();
    place.configure(&text.replace("shutdown_timeout: 20s", "shutdown_timeout: 100ms"));
}

/// A place whose output is stuck.
fn stuck(inputs: &str) -> (BulkServer, Place) {
    let server = BulkServer::start();
    let place = Place::with_outputs(&[("only", &server)]);
    with_inputs(&place, inputs);
    hurry(&place);
    server.hold();
    (server, place)
}

#[test]
fn a_stop_while_the_output_is_stuck_counts_what_was_received_as_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("in");
    let (server, place) = stuck(&format!("- {{type: unix, path: '{}'}}\n", path.display()));
    let program = place.start(&[]);
    let mut client = connect(&path);
    // As much as the system takes: the rest is not read before the stop.
    client.set_nonblocking(true).unwrap();
    let mut sent = 0;
    patiently("requests that are held", || {
        while matches!(client.write(&lines("a", sent..sent + 1)), Ok(LINE_BYTES)) {
            sent += 1;
        }
        (server.held() > 0).then_some(())
    });
    drop(client);
    expect_dropped_at_stop(program, &server, sent);
}

#[test]
fn a_reload_while_the_output_is_stuck_hands_over_at_once_and_the_stop_counts_everything() {
    let directory = tempfile::tempdir().unwrap();
    let (path, new) = (directory.path().join("in"), directory.path().join("new"));
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let inputs = |tag: &str| {
        format!(
            "- {{type: unix, id: x, path: '{}', tags: [{tag}]}}\n\
             - {{type: udp, id: u, host: '127.0.0.1:{port}', tags: [{tag}]}}\n",
            path.display()
        )
    };
    let (server, place) = stuck(&inputs("before"));
    place.open_endpoint();
    let mut program = place.start(&[]);
    program.await_log("receives datagrams");
    let mut client = connect(&path);
    client.write_all(&lines("a", 0..1000)).unwrap();
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    datagrams.connect(("127.0.0.1", port)).unwrap();
    let send = |range: std::ops::Range<usize>| {
        range.for_each(|number| {
            datagrams.send(line("u", number).as_bytes()).unwrap();
        });
    };
    send(0..1000);
    patiently("requests that are held", || (server.held() > 0).then_some(()));
    for times in 1..=3 {
        // One input is new, and begins although those before wait for the output.
        let text = place.configuration().replace("before", &format!("before{times}"));
        place.configure(&text);
        reload(&mut program, times);
    }
    let text = place.configuration();
    let input = format!("- {{type: unix, id: n, path: '{}'}}\n", new.display());
    place.configure(&text.replace("filebeat.inputs:\n", &format!("filebeat.inputs:\n{input}")));
    reload(&mut program, 4);
    // What comes now waits for the same output, and is read.
    let mut other = connect(&new);
    other.write_all(&lines("n", 0..1000)).unwrap();
    client.write_all(&lines("a", 1000..2000)).unwrap();
    send(1000..2000);
    drop((client, other));
    expect_dropped_at_stop(program, &server, 5000);
}

#[test]
fn a_reload_while_the_output_is_stuck_loses_nothing_when_it_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("in");
    let (server, place) =
        stuck(&format!("- {{type: unix, id: x, path: '{}', tags: [before]}}\n", path.display()));
    let mut program = place.start(&[]);
    let mut client = connect(&path);
    let bytes = lines("a", 0..2000);
    client.write_all(&bytes[..bytes.len() / 2 + 7]).unwrap();
    patiently("requests that are held", || (server.held() > 0).then_some(()));
    for times in 1..=3 {
        place.configure(&place.configuration().replace("before", &format!("before{times}")));
        reload(&mut program, times);
    }
    client.write_all(&bytes[bytes.len() / 2 + 7..]).unwrap();
    server.release();
    patiently("all lines", || (server.count() == 2000).then_some(()));
    let ended = program.terminate().succeeded();
    accept("a stuck output", judge(&[("a", 2000)], &server.documents()), 0);
    assert_eq!(ended.ledger(), Ledger { read: 2000, delivered: 2000, ..Ledger::default() });
}

#[test]
fn a_stop_reads_clients_that_wait_for_a_place() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let path = place.path().join("in");
    with_inputs(
        &place,
        &format!("- {{type: unix, path: '{}', max_connections: 1}}\n", path.display()),
    );
    let program = place.start(&[]);
    let mut first = connect(&path);
    first.write_all(&lines("a", 0..10)).unwrap();
    patiently("the first client", || (server.count() == 10).then_some(()));
    let others: Vec<UnixStream> = (0..300)
        .map(|at| {
            let mut client = UnixStream::connect(&path).unwrap();
            client.write_all(&lines("a", 10 + at * 10..20 + at * 10)).unwrap();
            client
        })
        .collect();
    let ended = program.terminate().succeeded();
    drop((first, others));
    accept("clients that wait", judge(&[("a", 3010)], &server.documents()), 0);
    assert_eq!(ended.ledger(), Ledger { read: 3010, delivered: 3010, ..Ledger::default() });
}

#[test]
fn a_stop_without_descriptors_reads_clients_as_others_end() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let path = place.path().join("in");
    with_inputs(&place, &format!("- {{type: unix, path: '{}'}}\n", path.display()));
    let real = place.command(&[]);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "ulimit -n 64; exec \"$0\" \"$@\""]).arg(real.get_program());
    command.args(real.get_args()).current_dir(place.path());
    let program = Program::start(&mut command);
    drop(connect(&path));
    let clients: Vec<UnixStream> = (0..200)
        .map(|at| {
            let mut client = UnixStream::connect(&path).unwrap();
            client.write_all(&lines("a", at * 10..at * 10 + 10)).unwrap();
            client
        })
        .collect();
    program.await_log("a connection was not accepted");
    let ended = program.terminate().succeeded();
    drop(clients);
    accept("no descriptors", judge(&[("a", 2000)], &server.documents()), 0);
    assert_eq!(ended.ledger(), Ledger { read: 2000, delivered: 2000, ..Ledger::default() });
}

#[test]
fn a_stuck_output_takes_nothing_away_from_another_one_at_a_stop() {
    let (stuck, good) = (BulkServer::start(), BulkServer::start());
    let place = Place::with_outputs(&[("stuck", &stuck), ("good", &good)]);
    // As long as the stop waits for the stuck one, the good one may need on a busy machine.
    let text = place.configuration();
    place.configure(&text.replace("shutdown_timeout: 20s", "shutdown_timeout: 5s"));
    let path = place.path().join("in");
    with_inputs(&place, &format!("- {{type: unix, path: '{}'}}\n", path.display()));
    stuck.hold();
    let program = place.start(&[]);
    drop(connect(&path));
    // More than the queue of the stuck one has room for: it waits in the system until the stop.
    for at in 0..100 {
        let mut client = connect(&path);
        client.write_all(&lines("a", at * 100..at * 100 + 100)).unwrap();
    }
    patiently("requests that are held", || (stuck.held() > 0).then_some(()));
    let ended = program.terminate();
    stuck.release();
    let all = Ledger { read: 10_000, delivered: 10_000, ..Ledger::default() };
    assert_eq!(ended.ledger_of("good"), all, "{}", ended.log);
    accept("beside a stuck output", judge(&[("a", 10_000)], &good.documents()), 0);
    assert_eq!(ended.ledger_of("stuck").dropped, 10_000, "{}", ended.log);
    assert!(ended.log.contains("\"lost\":10000"), "{}", ended.log);
}

#[test]
fn a_program_that_goes_on_after_a_refused_reload_answers_beside_the_mistake() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let path = place.path().join("in");
    with_inputs(&place, &format!("- {{type: unix, path: '{}'}}\n", path.display()));
    place.open_endpoint();
    let program = place.start(&[]);
    drop(connect(&path));
    patiently("the endpoint", || place.stat("/skidder/sources/received_events"));
    let named = format!("input=\"unix {}\"", path.display());
    assert!(place.get("/metrics").contains(&named), "an input without an id");
    place.configure(&place.configuration().replace("type: unix,", "type: unix, framing: bad,"));
    let status = place.run(&["status"]);
    assert!(status.out.contains("unix"), "{status:?}");
    assert!(status.log.contains("what runs is an earlier one"), "{status:?}");
    assert!(status.log.contains("`bad`; expected"), "{status:?}");
    program.terminate().succeeded();
    let status = place.run(&["status"]);
    assert!(status.log.starts_with("error: ") && status.out.is_empty(), "{status:?}");
}

#[test]
fn signals_at_the_same_time_are_one_request_to_stop() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let path = place.path().join("in");
    with_inputs(&place, &format!("- {{type: unix, path: '{}'}}\n", path.display()));
    let text = place.configuration();
    let slow = "flush.min_events: 400, flush.timeout: 1h";
    place.configure(&text.replace("flush.min_events: 50, flush.timeout: 10ms", slow));
    place.open_endpoint();
    let program = place.start(&[]);
    connect(&path).write_all(&lines("a", 0..100)).unwrap();
    let read = || (place.stat("/filebeat/events/added")? == 100).then_some(());
    patiently("all lines in the queue", read);
    program.signal(Signal::TERM);
    program.signal(Signal::INT);
    program.terminate().succeeded();
    accept("three signals at once", judge(&[("a", 100)], &server.documents()), 0);
}

#[test]
fn a_later_signal_ends_at_once_and_the_log_says_how_much_is_lost() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let path = place.path().join("in");
    with_inputs(&place, &format!("- {{type: unix, path: '{}'}}\n", path.display()));
    let text = place.configuration();
    place.configure(&text.replace("shutdown_timeout: 20s", "shutdown_timeout: 1h"));
    place.open_endpoint();
    server.hold();
    let program = place.start(&[]);
    connect(&path).write_all(&lines("a", 0..100)).unwrap();
    let read = || (place.stat("/filebeat/events/added")? == 100).then_some(());
    patiently("all lines in the queue", read);
    let line = program.await_log_while("ended before everything was delivered", || {
        program.signal(Signal::TERM);
    });
    assert!(line.contains("\"lost\":100}"), "{line}");
    assert_eq!(program.end().code(), Some(1));
    server.release();
}

#[test]
fn an_address_that_is_not_there_yet_is_tried_again() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let path = place.path().join("later").join("in");
    with_inputs(&place, &format!("- {{type: unix, id: x, path: '{}'}}\n", path.display()));
    place.open_endpoint();
    let program = place.start(&[]);
    program.await_log("cannot listen");
    patiently("the input to be shown as waiting", || {
        // The endpoint may not be there yet.
        place.stat("/skidder/sources/received_events")?;
        let all: Value = serde_json::from_str(&place.get("/inputs/")).unwrap();
        (all[0]["skidder"]["state"] == "waiting").then_some(())
    });
    std::fs::create_dir(path.parent().unwrap()).unwrap();
    connect(&path).write_all(&lines("a", 0..10)).unwrap();
    patiently("all lines", || (server.count() == 10).then_some(()));
    program.terminate().succeeded();
}

#[test]
fn inputs_with_one_address_are_an_error_that_names_both_lines() {
    let place = Place::with_output("");
    with_inputs(
        &place,
        "- {type: tcp, host: ':9000'}\n- {type: udp, host: ':9000'}\n\
         - {type: syslog, protocol.tcp: {host: ':9000'}}\n- {type: unix, path: /run/s}\n\
         - {type: unix, path: /run/s, enabled: false}\n- {type: unix, path: /run/s, id: b}\n",
    );
    let ended = place.run(&["test", "config"]);
    let said = format!("{}{}", ended.out, ended.log);
    for (expected, place) in [
        ("filebeat.inputs[2].protocol.tcp.host`: the input at", ":2:21 listens there, too"),
        ("filebeat.inputs[5].path`: the input at", ":5:22 listens there, too"),
    ] {
        let line = said.lines().find(|line| line.contains(expected));
        let line = line.unwrap_or_else(|| panic!("no {expected}: {said}"));
        assert!(line.contains(place), "{line}");
    }
    assert_eq!(said.matches("listens there, too").count(), 2, "{said}");
}

#[test]
fn syslog_messages_are_taken_apart_and_say_that_they_are_whole() {
    let place = Place::with_output("output.file: {path: out, filename: e}\n");
    let path = place.path().join("in");
    let inputs =
        format!("- {{type: syslog, format: auto, protocol.unix.path: '{}'}}\n", path.display());
    with_inputs(&place, &inputs);
    let program = place.start(&[]);
    let mut client = connect(&path);
    client.write_all(b"<13>1 2026-10-11T22:14:15Z host app 1 id - hello\nno syslog\n").unwrap();
    program.await_log("messages are not in the `format` of this input");
    drop(client);
    let ended = program.terminate().succeeded();
    assert!(ended.log.contains("\"format\":\"auto\""), "{}", ended.log);
    assert_eq!(ended.ledger(), Ledger { read: 2, delivered: 2, ..Ledger::default() });
    let mut events: Vec<Value> = Vec::new();
    for file in std::fs::read_dir(place.path().join("out")).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        events.extend(text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
    }
    let [message, raw] = &events[..] else { panic!("{events:?}") };
    for event in [message, raw] {
        assert_eq!(event["@metadata"]["truncated"], false, "{event}");
        assert_eq!(event["input"]["type"], "syslog");
    }
    assert_eq!(
        (&message["message"], &message["process"]["name"]),
        (&"hello".into(), &"app".into())
    );
    assert_eq!(message["@timestamp"], "2026-10-11T22:14:15.000Z");
    assert_eq!((&raw["message"], &raw["syslog"]), (&"no syslog".into(), &Value::Null));
}
