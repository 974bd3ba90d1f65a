//! Lists and streams of a real Redis, with what goes wrong there.

mod common;

use common::{Redis, input, input_at};
use serde_json::json;
use skidder_contract::{Bench, PATIENCE};
use skidder_contract::{Proxy, Way};
use std::collections::BTreeMap;

const CONSUMER: &str = "consumer: c";

fn rpush(redis: &Redis, key: &str, numbers: std::ops::Range<usize>) {
    let values: Vec<String> = numbers.map(|number| format!("line {number}")).collect();
    let mut command = vec!["RPUSH", key];
    command.extend(values.iter().map(String::as_str));
    redis.cli(&command);
}

fn xadd(redis: &Redis, key: &str, numbers: std::ops::Range<usize>) {
    for number in numbers {
        redis.cli(&["XADD", key, "*", "message", &format!("line {number}")]);
    }
}

/// How often each line came.
fn counts(bench: &Bench) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for message in bench.messages() {
        *counts.entry(message.to_owned()).or_default() += 1;
    }
    counts
}

fn left(redis: &Redis) -> String {
    redis.cli(&["KEYS", "*"]).trim().to_owned()
}

#[test]
#[ignore = "needs real servers: cargo xtask test"]
fn what_was_in_flight_comes_first_after_a_restart_and_in_order() {
    let redis = Redis::start("");
    let (one, two) =
        (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    rpush(&redis, "l", 0..10);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let mut bench = Bench::start(input(&redis, "lists: [l], consumer: c"), one.path());
        bench.is_stuck = true;
        bench.until("all are taken", |_| redis.cli(&["LLEN", "l"]).trim() == "0").await;
        rpush(&redis, "l", 10..12);
        let pending = || redis.cli(&["LLEN", "{l}:skidder:pending:c"]);
        bench.until("these too", |_| pending().trim() == "12").await;
    });
    // As with `kill -9`: nothing is passed on to the server.
    runtime.shutdown_timeout(PATIENCE);
    rpush(&redis, "l", 12..15);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let mut bench = Bench::start(input(&redis, "lists: [l], consumer: c"), two.path());
        bench.until("all come", |bench| bench.events.len() >= 15).await;
        let expected: Vec<String> = (0..15).map(|number| format!("line {number}")).collect();
        assert_eq!(bench.messages(), expected);
        assert_eq!(bench.events[0]["redis"], json!({"list": {"key": "l"}}));
        bench.stop().await;
    });
    assert_eq!(left(&redis), "", "the consumer has left nothing");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_bad_network_loses_nothing_of_lists_and_streams() {
    for settings in ["lists: [k]", "streams: [k], group: g"] {
        let (redis, directory) = (Redis::start(""), tempfile::tempdir().expect("a folder"));
        let answered = [0, 1, 5, 30, 100, 500, 2000, 5000, 20_000].map(Way::ResetAfterAnswered);
        let sent = [1, 10, 100, 1000, 3000, 5000].map(Way::ResetAfterSent);
        let proxy = Proxy::start(&redis.host(), answered.into_iter().chain(sent)).await;
        if settings.starts_with("lists") {
            rpush(&redis, "k", 0..3000);
        } else {
            xadd(&redis, "k", 0..1);
            let add = "for number = 1, 2999 do redis.call('XADD', KEYS[1], '*', 'message', 'line ' .. number) end";
            redis.cli(&["EVAL", add, "1", "k"]);
        }
        let settings = format!("password: secret, {CONSUMER}, {settings}");
        let mut bench = Bench::start(input_at(proxy.address(), &settings), directory.path());
        bench.until("all come", |bench| counts(bench).len() == 3000).await;
        bench.no_trouble().await;
        assert!(bench.input.metrics().errors.get() > 5, "{settings}: it was cut");
        assert!(counts(&bench).values().all(|count| *count == 1), "{settings}: the process lives");
        bench.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn what_the_server_refuses_is_named_and_tried_again() {
    let (redis, directory) = (Redis::start(""), tempfile::tempdir().expect("a folder"));
    redis.cli(&["SET", "l", "x"]);
    let mut bench = Bench::start(input(&redis, "lists: [l], consumer: c"), directory.path());
    bench.trouble("WRONGTYPE").await;
    redis.cli(&["DEL", "l"]);
    bench.no_trouble().await;
    let mut sent = 0;
    for (before, text, behind) in [
        (
            vec!["ACL", "SETUSER", "default", "resetpass", ">other"],
            "WRONGPASS",
            vec!["ACL", "SETUSER", "default", "resetpass", ">secret"],
        ),
        (vec!["REPLICAOF", "127.0.0.1", "1"], "READONLY", vec!["REPLICAOF", "NO", "ONE"]),
    ] {
        redis.cli(&before);
        let password = if text == "WRONGPASS" { "other" } else { "secret" };
        // The next connection shows the credentials.
        redis.cli_with(password, &["CLIENT", "KILL", "TYPE", "normal"]);
        bench.trouble(text).await;
        redis.cli_with(password, &behind);
        rpush(&redis, "l", sent..sent + 10);
        sent += 10;
        bench.until(text, |bench| bench.events.len() == sent).await;
        bench.no_trouble().await;
    }
    let errors = bench.input.metrics().errors.get();
    redis.cli(&["CLIENT", "KILL", "TYPE", "normal"]);
    bench.until("its end is seen", |bench| bench.input.metrics().errors.get() > errors).await;
    // Without memory the list can be emptied nevertheless.
    rpush(&redis, "l", sent..sent + 10);
    bench.until("these", |bench| bench.events.len() == sent + 10).await;
    bench.stop().await;
    rpush(&redis, "l", sent..sent + 100);
    redis.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    assert!(redis.cli(&["SET", "x", "y"]).starts_with("OOM"));
    let mut bench = Bench::start(input(&redis, "lists: [l], consumer: c"), directory.path());
    bench.until("without memory", |bench| bench.events.len() == 100).await;
    assert!(counts(&bench).values().all(|count| *count == 1));
    bench.stop().await;
    assert_eq!(left(&redis), "");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_restart_of_the_server_loses_nothing() {
    for settings in ["lists: [k]", "streams: [k], group: g"] {
        let (redis, directory) =
            (Redis::start("--appendfsync always"), tempfile::tempdir().expect("a folder"));
        let add = |numbers| {
            let add = if settings.starts_with("lists") { rpush } else { xadd };
            add(&redis, "k", numbers);
        };
        add(0..20);
        let settings = format!("{settings}, consumer: c");
        let mut bench = Bench::start(input(&redis, &settings), directory.path());
        bench.until("some", |bench| bench.events.len() == 20).await;
        bench.is_stuck = true;
        add(20..40);
        redis.0.stop().expect("it stops");
        bench.trouble("cannot connect").await;
        redis.0.start_again().expect("it starts");
        add(40..60);
        bench.is_stuck = false;
        bench.until("all come", |bench| counts(bench).len() == 60).await;
        bench.no_trouble().await;
        assert!(counts(&bench).values().all(|count| *count == 1), "{settings}");
        bench.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_second_process_with_the_same_name_is_reported_and_nothing_is_lost() {
    let redis = Redis::start("");
    let (one, two) =
        (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let settings = "lists: [l], consumer: c";
    let mut first = Bench::start(input(&redis, settings), one.path());
    first.is_stuck = true;
    rpush(&redis, "l", 0..50);
    first.until("all are taken", |_| redis.cli(&["LLEN", "l"]).trim() == "0").await;
    let mut second = Bench::start(input(&redis, settings), two.path());
    first.trouble("another process is the consumer `c` of the list `l`").await;
    second.until("it takes over", |second| counts(second).len() == 50).await;
    first.stop().await;
    second.until("nothing is pending", |_| !left(&redis).contains("pending")).await;
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn what_a_lost_consumer_had_taken_is_read_by_another_one() {
    let (redis, directory) = (Redis::start(""), tempfile::tempdir().expect("a folder"));
    // It was seen last long ago.
    rpush(&redis, "{l}:skidder:pending:lost", 0..200);
    redis.cli(&[
        "HSET",
        "{l}:skidder:state",
        "owner:lost",
        "t",
        "removed:lost",
        "7",
        "seen:lost",
        "5",
    ]);
    // This one lives.
    let now = redis.cli(&["TIME"]).lines().next().expect("a time").to_owned() + "000";
    rpush(&redis, "{l}:skidder:pending:lives", 900..903);
    redis.cli(&["HSET", "{l}:skidder:state", "owner:lives", "t", "seen:lives", &now]);
    rpush(&redis, "l", 200..210);
    let mut bench = Bench::start(input(&redis, "lists: [l], consumer: c"), directory.path());
    bench.until("all come", |bench| bench.events.len() == 210).await;
    let expected: Vec<String> = (0..210).map(|number| format!("line {number}")).collect();
    assert_eq!(bench.messages(), expected, "in their order");
    bench.stop().await;
    assert_eq!(redis.cli(&["LLEN", "{l}:skidder:pending:lives"]).trim(), "3");
    let state = redis.cli(&["HKEYS", "{l}:skidder:state"]);
    assert!(!state.contains("lost") && state.contains("seen:lives"), "{state}");

    redis.cli(&["XGROUP", "CREATE", "s", "g", "0", "MKSTREAM"]);
    xadd(&redis, "s", 0..20);
    let read = ["XREADGROUP", "GROUP", "g", "lost", "COUNT", "10", "STREAMS", "s", ">"];
    let ids: Vec<String> =
        redis.cli(&read).lines().filter(|line| line.contains('-')).map(str::to_owned).collect();
    assert_eq!(ids.len(), 10);
    for id in &ids {
        redis.cli(&["XCLAIM", "s", "g", "lost", "0", id, "IDLE", "600000", "JUSTID"]);
    }
    // One of them is gone.
    redis.cli(&["XDEL", "s", &ids[3]]);
    let settings = "streams: [s], group: g, consumer: c, claim_after: 5m";
    let mut bench = Bench::start(input(&redis, settings), directory.path());
    bench.until("all come", |bench| counts(bench).len() == 19).await;
    assert_eq!(bench.input.metrics().lost_before.get(), 1, "it is counted");
    bench.stop().await;
    let pending = redis.cli(&["XPENDING", "s", "g"]);
    assert!(pending.starts_with('0'), "{pending}");
}

/// Waits until the group `g` of the stream `s` has so many pending entries.
async fn pending(bench: &mut Bench, redis: &Redis, entries: usize) {
    let is_so = || {
        let answer = redis.cli(&["XPENDING", "s", "g"]);
        answer.lines().next() == Some(entries.to_string().as_str())
    };
    bench.until(&format!("{entries} are pending"), |_| is_so()).await;
}

/// Longer than the input takes to see how far its group is.
const LOOKED: std::time::Duration = std::time::Duration::from_secs(4);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_group_that_is_deleted_goes_on_where_it_was() {
    for offset in ["oldest", "newest"] {
        let (redis, directory) = (Redis::start(""), tempfile::tempdir().expect("a folder"));
        let settings = format!("streams: [s], group: g, {CONSUMER}, initial_offset: {offset}");
        redis.cli(&["XGROUP", "CREATE", "s", "g", "0", "MKSTREAM"]);
        xadd(&redis, "s", 0..20);
        let mut bench = Bench::start(input(&redis, &settings), directory.path());
        bench.until("all come", |bench| bench.events.len() == 20).await;
        pending(&mut bench, &redis, 0).await;
        tokio::time::sleep(LOOKED).await;
        bench.is_stuck = true;
        xadd(&redis, "s", 20..25);
        pending(&mut bench, &redis, 5).await;
        redis.cli(&["XGROUP", "DESTROY", "s", "g"]);
        // They are in flight here, and pending in the new group, too.
        pending(&mut bench, &redis, 5).await;
        bench.is_stuck = false;
        xadd(&redis, "s", 25..30);
        bench.until("all come", |bench| counts(bench).len() == 30).await;
        pending(&mut bench, &redis, 0).await;
        assert!(counts(&bench).values().all(|count| *count == 1), "{:?}", counts(&bench));
        // Another stream with this name, whose ids begin anew.
        let again = "redis.call('DEL', KEYS[1]) \
                     redis.call('XADD', KEYS[1], '1-1', 'message', 'line 30')";
        redis.cli(&["EVAL", again, "1", "s"]);
        bench.until("it comes", |bench| counts(bench).len() == 31).await;
        bench.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn what_another_member_of_a_deleted_group_had_in_flight_is_not_lost() {
    let (redis, directory) = (Redis::start(""), tempfile::tempdir().expect("a folder"));
    redis.cli(&["XGROUP", "CREATE", "s", "g", "0", "MKSTREAM"]);
    xadd(&redis, "s", 0..10);
    let read = ["XREADGROUP", "GROUP", "g", "first", "COUNT", "3", "STREAMS", "s", ">"];
    let ids: Vec<String> =
        redis.cli(&read).lines().filter(|line| line.contains('-')).map(str::to_owned).collect();
    redis.cli(&["XACK", "s", "g", &ids[0], &ids[1], &ids[2]]);
    redis.cli(&["XREADGROUP", "GROUP", "g", "other", "COUNT", "3", "STREAMS", "s", ">"]);
    let settings = format!("streams: [s], group: g, {CONSUMER}");
    let mut bench = Bench::start(input(&redis, &settings), directory.path());
    bench.until("the others come", |bench| bench.events.len() == 4).await;
    pending(&mut bench, &redis, 3).await;
    tokio::time::sleep(LOOKED).await;
    redis.cli(&["XGROUP", "DESTROY", "s", "g"]);
    bench.until("all come", |bench| counts(bench).len() == 7).await;
    pending(&mut bench, &redis, 0).await;
    let expected: BTreeMap<String, usize> =
        (3..10).map(|number| (format!("line {number}"), if number < 6 { 1 } else { 2 })).collect();
    assert_eq!(counts(&bench), expected, "behind the last one before which all were acknowledged");
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn entries_of_a_stream_have_their_id_time_and_fields() {
    let (redis, directory) = (Redis::start(""), tempfile::tempdir().expect("a folder"));
    redis.cli(&["XADD", "s", "1-1", "text", "old", "level", "info"]);
    let settings =
        "streams: [s], group: new, consumer: c, initial_offset: newest, message_field: text";
    let mut bench = Bench::start(input(&redis, settings), directory.path());
    let is_made = || redis.cli(&["XINFO", "GROUPS", "s"]).contains("new");
    bench.until("the group is made", |_| is_made()).await;
    redis.cli(&["XADD", "s", "1700000000123-0", "level", "info", "text", "hello", "a.b", "c"]);
    redis.cli(&["XADD", "s", "1700000000124-5", "other", "only"]);
    redis.cli(&["XADD", "s", "1700000000125-0", "text", "a", "k", "1", "text", "b", "k", "2"]);
    bench.until("they come", |bench| bench.events.len() == 3).await;
    let events = bench.stop().await;
    let fields = |event: &serde_json::Value| {
        let mut event = event.clone();
        let all = event.as_object_mut().expect("an object");
        all.remove("@metadata");
        event
    };
    assert_eq!(
        fields(&events[0]),
        json!({
            "@timestamp": "2023-11-14T22:13:20.123Z",
            "message": "hello",
            "input": {"type": "redis"},
            "redis": {"stream": {"key": "s", "id": "1700000000123-0", "fields": {"level": "info", "a.b": "c"}}},
        })
    );
    assert_eq!(
        fields(&events[1]),
        json!({
            "@timestamp": "2023-11-14T22:13:20.124Z",
            "message": "",
            "input": {"type": "redis"},
            "redis": {"stream": {"key": "s", "id": "1700000000124-5", "fields": {"other": "only"}}},
        })
    );
    assert_eq!(events[2]["message"], "a");
    assert_eq!(events[2]["redis"]["stream"]["fields"], json!({"text": "b", "k": ["1", "2"]}));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_long_element_is_cut_and_flagged_and_does_not_hold_up_the_others() {
    let (redis, directory) = (Redis::start(""), tempfile::tempdir().expect("a folder"));
    // 3 × 2 MiB, of which 1,000 bytes are wanted.
    for number in 0..3 {
        let push = "redis.call('RPUSH', KEYS[1], ARGV[1] .. string.rep('x', 2097152), 'short ' .. ARGV[1])";
        redis.cli(&["EVAL", push, "1", "l", &number.to_string()]);
    }
    let settings = "lists: [l], consumer: c, max_bytes: 1000";
    let mut bench = Bench::start(input(&redis, settings), directory.path());
    bench.until("all come", |bench| bench.events.len() == 6).await;
    assert!(bench.input.metrics().bytes.get() < 20_000, "only what is wanted is sent");
    let events = bench.stop().await;
    for (number, pair) in events.chunks(2).enumerate() {
        let long = pair[0]["message"].as_str().expect("a text");
        assert!(long.len() == 1000 && long.starts_with(&format!("{number}x")), "{}", long.len());
        assert_eq!(pair[0]["log"]["flags"], json!(["truncated"]));
        assert_eq!(pair[1]["message"], format!("short {number}"));
        assert_eq!(pair[1]["log"]["flags"], json!(null));
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_list_is_read_over_tls_and_by_a_socket() {
    let secure = Redis(skidder_testkit::servers::Server::own_redis(true, "").expect("a server"));
    let directory = tempfile::tempdir().expect("a folder");
    rpush(&secure, "l", 0..5);
    let authority = secure.0.certificate("ca.crt").expect("an authority");
    let host = format!("localhost:{}", secure.0.port());
    for network in ["tcp", "tcp4"] {
        rpush(&secure, "l", 5..10);
        let settings = format!(
            "network: {network}, username: test, password: secret, lists: [l], {CONSUMER}, \
             ssl.certificate_authorities: ['{}']",
            authority.display()
        );
        let mut bench = Bench::start(input_at(&host, &settings), directory.path());
        bench.until(network, |bench| bench.events.len() >= 5).await;
        bench.stop().await;
    }
    let socket = directory.path().join("redis.sock");
    let redis = Redis::start(&format!("--unixsocket {}", socket.display()));
    rpush(&redis, "l", 0..5);
    let settings = format!("network: unix, password: secret, lists: [l], {CONSUMER}");
    let mut bench =
        Bench::start(input_at(&socket.display().to_string(), &settings), directory.path());
    bench.until("unix", |bench| bench.events.len() == 5).await;
    bench.stop().await;
    let settings = format!("network: tcp6, password: secret, lists: [l], {CONSUMER}");
    let mut bench = Bench::start(input_at(&redis.host(), &settings), directory.path());
    bench.trouble("IPv6").await;
    bench.stop().await;
}
