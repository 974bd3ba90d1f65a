//! The slow log of a real Redis. Expected events are those of Filebeat 9.6 for the same commands.

mod common;

use common::{Redis, input, input_at};
use serde_json::{Value, json};
use skidder_contract::Bench;
use std::ops::Range;

/// All commands of these clients are slow.
const EVERYTHING: &str = "--slowlog-log-slower-than 0 --slowlog-max-len 10000";

/// Runs commands over one connection.
fn echo(redis: &Redis, numbers: Range<usize>) {
    let commands: Vec<String> = numbers.map(|number| number.to_string()).collect();
    // One script is one entry, so each is a call of its own.
    let script = "for place = 1, #ARGV do redis.call('ECHO', ARGV[place]) end";
    for some in commands.chunks(1) {
        redis.cli(&["EVAL", script, "0", &some[0]]);
    }
}

/// The numbers of these commands, in the order in which they came.
fn numbers(events: &[Value]) -> Vec<usize> {
    let of = |event: &Value| {
        let slow = &event["redis"]["slowlog"];
        let is_it = slow["cmd"] == "EVAL" && slow["args"][0] == "0";
        is_it.then(|| slow["args"][1].as_str().expect("a text").parse().expect("a number"))
    };
    events.iter().filter_map(of).collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn events_are_those_of_filebeat() {
    let (redis, directory) = (Redis::start(EVERYTHING), tempfile::tempdir().expect("a folder"));
    redis.cli(&["PING"]);
    redis.cli(&["SET", "long", &"x".repeat(300)]);
    redis.cli(&["CLIENT", "SETNAME", "me"]);
    let numbers: Vec<String> = (1..41).map(|number| number.to_string()).collect();
    let mut command = vec!["RPUSH", "l"];
    command.extend(numbers.iter().map(String::as_str));
    redis.cli(&command);
    let mut bench = Bench::start(input(&redis, "scan_frequency: 50ms"), directory.path());
    let has_it = |bench: &Bench| bench.messages().iter().any(|text| text.starts_with("RPUSH l"));
    bench.until("the last one", has_it).await;
    let events = bench.stop().await;
    let event = |command: &str| {
        let is_it = |event: &&Value| event["redis"]["slowlog"]["cmd"] == command;
        let mut event = events.iter().find(is_it).expect("an event").clone();
        let slow = &mut event["redis"]["slowlog"];
        assert!(slow["id"].is_i64() && slow["duration"]["us"].is_i64());
        assert!(slow["clientAddr"].as_str().expect("a text").starts_with("127.0.0.1:"));
        for name in ["id", "duration", "clientAddr"] {
            slow.as_object_mut().expect("an object").remove(name);
        }
        let all = event.as_object_mut().expect("an object");
        let time = all.remove("@timestamp").expect("a time");
        let is_whole = time.as_str().expect("a text").contains(".000Z");
        assert!(is_whole, "whole seconds: {time}");
        let created = all.remove("event").expect("event.created");
        assert!(created["created"].as_str().expect("a text").starts_with("20"), "{created}");
        all.remove("@metadata");
        event
    };
    let role = "master";
    let input = json!({"type": "redis"});
    assert_eq!(
        event("PING"),
        json!({"message": "PING", "input": input,
            "redis": {"slowlog": {"cmd": "PING", "key": "", "role": role}}})
    );
    let cut = "x".repeat(128) + "... (172 more bytes)";
    assert_eq!(
        event("SET"),
        json!({"message": format!("SET long {cut}"), "input": input,
            "redis": {"slowlog": {"cmd": "SET", "key": "long", "args": [cut], "role": role}}})
    );
    let mut arguments: Vec<String> = (1..30).map(|number| number.to_string()).collect();
    arguments.push("... (11 more arguments)".to_owned());
    assert_eq!(
        event("RPUSH"),
        json!({"message": format!("RPUSH l {}", arguments.join(" ")), "input": input,
            "redis": {"slowlog": {"cmd": "RPUSH", "key": "l", "args": arguments, "role": role}}})
    );
    assert_eq!(
        event("AUTH"),
        json!({"message": "AUTH (redacted)", "input": input,
            "redis": {"slowlog": {"cmd": "AUTH", "key": "(redacted)", "role": role}}})
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn over_restarts_of_the_input_and_the_server_no_entry_is_missing_or_comes_twice() {
    let (redis, directory) = (Redis::start(EVERYTHING), tempfile::tempdir().expect("a folder"));
    // The second user may not ask for the id of the run.
    redis.cli(&["ACL", "SETUSER", "few", "on", ">secret", "+slowlog", "+role", "~*"]);
    for (user, first) in [("", 0), ("username: few,", 1000)] {
        let start = || {
            let settings = format!("{user} password: secret, scan_frequency: 20ms");
            Bench::start(input_at(&redis.host(), &settings), directory.path())
        };
        redis.cli(&["SLOWLOG", "RESET"]);
        let mut all = Vec::new();
        let mut bench = start();
        for part in 0..4 {
            let begin = first + 20 * part;
            echo(&redis, begin..begin + 20);
            let wanted = 20 * (part + 1);
            let base = all.len();
            bench.until("they come", |bench| base + numbers(&bench.events).len() >= wanted).await;
            match part {
                0 | 1 => {
                    all.extend(numbers(&bench.stop().await));
                    bench = start();
                }
                2 if user.is_empty() => {
                    redis.0.stop().expect("it stops");
                    bench.trouble("cannot connect").await;
                    redis.0.start_again().expect("it starts");
                    redis.cli(&[
                        "ACL", "SETUSER", "few", "on", ">secret", "+slowlog", "+role", "~*",
                    ]);
                }
                _ => {}
            }
        }
        all.extend(numbers(&bench.stop().await));
        let expected: Vec<usize> = (first..first + 80).collect();
        assert_eq!(all, expected, "{user}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn what_the_slow_log_has_no_room_for_is_counted_as_lost() {
    let settings = "--slowlog-log-slower-than 0 --slowlog-max-len 50";
    let (redis, directory) = (Redis::start(settings), tempfile::tempdir().expect("a folder"));
    let input = || input(&redis, "scan_frequency: 10m");
    let mut bench = Bench::start(input(), directory.path());
    bench.until("the first scan", |bench| !bench.events.is_empty()).await;
    let before = bench.stop().await;
    let last = before.last().expect("an event")["redis"]["slowlog"]["id"].as_i64();
    echo(&redis, 0..100);
    let mut bench = Bench::start(input(), directory.path());
    bench.until("the second scan", |bench| bench.events.len() >= 50).await;
    let lost = bench.input.metrics().lost_before.get();
    let events = bench.stop().await;
    let next = events[0]["redis"]["slowlog"]["id"].as_i64();
    let gap = next.expect("a number") - last.expect("a number") - 1;
    assert!(gap > 100, "two entries for each call: {gap}");
    assert_eq!(lost, gap as u64);
    // It is not emptied.
    assert_eq!(redis.cli(&["SLOWLOG", "LEN"]).trim(), "50");
}
