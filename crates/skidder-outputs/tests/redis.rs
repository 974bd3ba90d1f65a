//! The Redis output against a scripted server.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::redis::{Act, FakeRedis};
use common::{Fixture, check_report, context, trusting};
use skidder_config::Secret;
use skidder_contract::{Authority, Manner, Place, Proxy, Trial, Way, keep};
use skidder_event::Format;
use skidder_outputs::redis::{Config, DataType, Server};
use skidder_outputs::{CodecConfig, Redis};
use skidder_pipeline::Output;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const LINES: usize = 1000;
const LOADING: Act = Act::Error("-LOADING Redis is loading the dataset in memory\r\n");
const MEMORY: Act = Act::Error("-OOM command not allowed when used memory > 'maxmemory'.\r\n");
/// A key for each event, so that each has a command of its own.
const MANY: &str = "logs-%{[log.offset]}";

/// Answers that look like success and are none.
const PROVE_NOTHING: [Act; 8] = [
    Act::Reply("$-1\r\n"),
    Act::Reply(":0\r\n"),
    Act::Reply(":-5\r\n"),
    Act::Reply("+OK\r\n"),
    Act::Reply("+QUEUED\r\n"),
    Act::Reply("$3\r\n100\r\n"),
    // A list in which a hundred values were put is longer.
    Act::Reply(":99\r\n"),
    Act::Reply(":x\r\n"),
];

fn format(text: &str) -> Format {
    Format::parse(text).unwrap()
}

fn config(addresses: &[&str], key: &str) -> Config {
    let server = |address: &&str| Server::parse(address).unwrap();
    Config {
        backoff_init: Duration::from_millis(1),
        backoff_max: Duration::from_millis(5),
        timeout: Duration::from_secs(20),
        bulk_max_size: 100,
        ..Config::new(addresses.iter().map(server).collect(), format(key))
    }
}

fn output(config: Config) -> Redis {
    Redis::new(config, context()).unwrap()
}

/// Sends a thousand lines past a script and judges; as one command for all, as many, and to channels.
async fn survives(name: &str, script: &[Act]) {
    for (key, datatype) in
        [("logs", DataType::List), (MANY, DataType::List), ("logs", DataType::Channel)]
    {
        let mut fixture = Fixture::new();
        fixture.name = format!("{name}, {key}, {datatype:?}");
        fixture.push(LINES, 70);
        let server = FakeRedis::start(script.iter().copied()).await;
        fixture.run(output(Config { datatype, ..config(&[&server.address], key) })).await;
        fixture.judge(&server.taken());
    }
}

impl Place for FakeRedis {
    fn address(&self) -> String {
        self.address.clone()
    }

    fn taken(&self) -> BTreeMap<usize, usize> {
        self.taken()
    }
}

/// The subject of the contract.
struct RedisTrial {
    authority: Authority,
}

impl Trial for RedisTrial {
    fn kind(&self) -> &'static str {
        "redis"
    }

    async fn place(&self, manner: Manner) -> Option<Box<dyn Place>> {
        let expired = self.authority.sign_expired("localhost");
        let elsewhere = self.authority.sign("elsewhere");
        let acceptor = |certificate| Some(self.authority.acceptor(certificate, false));
        let (script, password, tls): (&[Act], _, _) = match manner {
            Manner::Good => (&[], None, None),
            Manner::RefusesWhole => (&[LOADING, Act::Ok, LOADING, LOADING], None, None),
            Manner::RefusesSome => (&[Act::Ok, MEMORY, Act::Ok, Act::Ok, MEMORY], None, None),
            Manner::RefusesLarge => (&[Act::NeverLine(500)], None, None),
            Manner::Confused => (&[Act::Nonsense, Act::Silence, Act::Half], None, None),
            Manner::ProvesNothing => (&PROVE_NOTHING, None, None),
            Manner::WrongCredentials => (&[], Some("another"), None),
            Manner::CertificateExpired => (&[], None, acceptor(&expired)),
            Manner::WrongName => (&[], None, acceptor(&elsewhere)),
        };
        Some(Box::new(FakeRedis::start_with(script.iter().copied(), password, tls).await))
    }

    fn output(&self, address: &str, manner: Manner) -> Box<dyn Output> {
        let key = if manner == Manner::RefusesSome { MANY } else { "logs" };
        let mut config = config(&[address], key);
        match manner {
            // One of its answers is silence.
            Manner::Confused => config.timeout = Duration::from_millis(500),
            Manner::WrongCredentials => config.password = Some(Secret::new("secret")),
            Manner::CertificateExpired | Manner::WrongName => {
                "localhost".clone_into(&mut config.servers[0].host.name);
                config.tls = Some(trusting(&self.authority));
            }
            _ => {}
        }
        Box::new(output(config))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_keeps_the_contract_of_outputs() {
    keep(&RedisTrial { authority: Authority::new() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_gets_all_events_of_a_request_in_one_command_and_in_order() {
    survives("good", &[]).await;
    let mut fixture = Fixture::new();
    fixture.push(LINES, 70);
    let server = FakeRedis::start([]).await;
    fixture.run(output(config(&[&server.address], "logs"))).await;
    let state = server.state.lock().unwrap();
    assert_eq!(state.commands, vec![("RPUSH".to_owned(), 100); 10]);
    assert_eq!(state.lists["logs"], (0..LINES).collect::<Vec<_>>());
    assert_eq!(state.other_commands, ["PING"]);
    let metrics = &fixture.feed.metrics;
    assert_eq!((metrics.batches.get(), metrics.acked.get()), (10, LINES as u64));
    assert_eq!((metrics.failed.get(), metrics.read_bytes.get()), (0, 61));
}

#[tokio::test(flavor = "multi_thread")]
async fn events_go_to_the_lists_and_channels_that_the_rules_say() {
    let settings = "keys: [{key: 'third-%{[agent.version]}', when.regexp.message: '^line [0-9]*[369] '}]\n\
                    key: others\nhosts: x";
    for (datatype, command) in [(DataType::List, "RPUSH"), (DataType::Channel, "PUBLISH")] {
        let settings = skidder_config::Settings::parse("x", settings).unwrap();
        let problems = skidder_config::Problems::new();
        let key = Config::read(&settings.root(&problems), "x").unwrap().key;
        assert_eq!(problems.to_string(), "");
        let mut fixture = Fixture::new();
        fixture.push(100, 7);
        let server = FakeRedis::start([]).await;
        let codec = CodecConfig::Format(format("%{[message]}"));
        let config = Config { key, datatype, codec, ..config(&[&server.address], "x") };
        fixture.run(output(config)).await;
        fixture.judge(&server.taken());
        let state = server.state.lock().unwrap();
        let is_third = |line: &usize| [3, 6, 9].contains(&(line % 10));
        let (thirds, others): (Vec<usize>, Vec<usize>) = (0..100).partition(is_third);
        assert_eq!((&state.lists["third-9.5.0"], &state.lists["others"]), (&thirds, &others));
        assert!(state.commands.iter().all(|(name, values)| name == command && *values == 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_without_a_key_or_a_text_go_to_the_dead_letters() {
    for (key, codec) in [
        ("%{[nothing]}", CodecConfig::default()),
        ("logs", CodecConfig::Format(format("%{[nothing]}"))),
    ] {
        let mut fixture = Fixture::new();
        fixture.push(10, 10);
        let server = FakeRedis::start([]).await;
        fixture.run(output(Config { codec, ..config(&[&server.address], key) })).await;
        assert_eq!(fixture.dead_letters().len(), 10);
        fixture.judge(&BTreeMap::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_failed_on_is_sent_again_and_nothing_else() {
    survives("errors", &[Act::Ok, MEMORY, LOADING, Act::Ok, MEMORY]).await;
    let mut fixture = Fixture::new();
    fixture.push(100, 100);
    let server = FakeRedis::start([Act::Ok, MEMORY, Act::Ok, MEMORY]).await;
    fixture.run(output(config(&[&server.address], MANY))).await;
    fixture.judge(&server.taken());
    assert_eq!(fixture.feed.metrics.total.get(), 102);
    assert_eq!(fixture.feed.metrics.failed.get(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_answers_and_connections_are_survived() {
    for act in [Act::Close, Act::Nonsense, Act::Half, Act::OkAndClose] {
        survives(&format!("{act:?}"), &[act, Act::Ok, act, act]).await;
    }
    // Events that were taken and not answered come again.
    let mut fixture = Fixture::new();
    fixture.push(LINES, 70);
    let server = FakeRedis::start([Act::TakeAndClose, Act::Ok, Act::TakeAndClose]).await;
    fixture.run(output(config(&[&server.address], "logs"))).await;
    fixture.judge_repeated(&server.taken());
    assert_eq!(server.taken().values().filter(|&&times| times == 2).count(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_is_not_waited_with_for_ever() {
    let mut fixture = Fixture::new();
    fixture.push(LINES, 70);
    let server = FakeRedis::start([Act::Silence, Act::Ok, Act::Silence]).await;
    let timeout = Duration::from_millis(200);
    fixture.run(output(Config { timeout, ..config(&[&server.address], "logs") })).await;
    fixture.judge(&server.taken());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_an_event_that_is_too_large_is_halved_until_that_event_is_found() {
    let mut fixture = Fixture::new();
    fixture.push(LINES, 70);
    let server = FakeRedis::start([Act::AtMost(13)]).await;
    fixture.run(output(config(&[&server.address], "logs"))).await;
    fixture.judge(&server.taken());
    let mut fixture = Fixture::new();
    fixture.push(LINES, 70);
    let server = FakeRedis::start([Act::NeverLine(333)]).await;
    fixture.run(output(config(&[&server.address], "logs"))).await;
    assert_eq!(fixture.dead_letters().into_keys().collect::<Vec<_>>(), [333]);
    fixture.judge(&server.taken());
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_and_the_database_are_told_before_anything_else() {
    let table = [
        ("", "", Some("secret"), 0, vec!["AUTH secret", "PING"]),
        ("", "me", Some("secret"), 3, vec!["AUTH me secret", "PING", "SELECT 3"]),
        ("redis://u:secret@", "me", None, 3, vec!["AUTH u secret", "PING", "SELECT 3"]),
        ("redis://:secret@", "", None, 0, vec!["AUTH secret", "PING"]),
    ];
    for (before, username, password, db, expected) in table {
        let mut fixture = Fixture::new();
        fixture.push(10, 10);
        let server = FakeRedis::start_with([], Some("secret"), None).await;
        let config = Config {
            username: username.to_owned(),
            password: password.map(Secret::new),
            db,
            ..config(&[&format!("{before}{}", server.address)], "logs")
        };
        fixture.run(output(config)).await;
        fixture.judge(&server.taken());
        assert_eq!(server.state.lock().unwrap().other_commands, expected);
    }
    let mut fixture = Fixture::new();
    fixture.push(10, 10);
    let server = FakeRedis::start([]).await;
    let address = format!("redis://{}/5", server.address);
    fixture.run(output(Config { db: 3, ..config(&[&address], "logs") })).await;
    assert_eq!(server.state.lock().unwrap().other_commands, ["PING", "SELECT 5"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_load_is_balanced_or_another_host_takes_over() {
    let servers = [FakeRedis::start([]).await, FakeRedis::start([]).await];
    let mut fixture = Fixture::new();
    fixture.push(20_000, 100);
    let addresses = [servers[0].address.as_str(), "127.0.0.1:1", &servers[1].address];
    fixture.run(output(Config { workers: 2, ..config(&addresses, "logs") })).await;
    let mut taken = servers[0].taken();
    taken.extend(servers[1].taken());
    fixture.judge(&taken);
    let servers = [FakeRedis::start([]).await, FakeRedis::start([]).await];
    let down = Proxy::start(&servers[0].address, [Way::ResetAfterAnswered(8)]).await;
    let mut fixture = Fixture::new();
    fixture.push(LINES, 100);
    let config =
        Config { loadbalance: false, ..config(&[down.address(), &servers[1].address], "logs") };
    fixture.run(output(config)).await;
    let mut taken = servers[0].taken();
    for (line, times) in servers[1].taken() {
        *taken.entry(line).or_default() += times;
    }
    fixture.judge_repeated(&taken);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_redis_connection_that_is_closed_is_made_again_without_a_failure() {
    let mut fixture = Fixture::new();
    fixture.push(100, 100);
    let server = FakeRedis::start([Act::OkAndClose; 3]).await;
    let running = Box::new(output(config(&[&server.address], "logs"))).run(fixture.feed.clone());
    let metrics = std::sync::Arc::clone(&fixture.feed.metrics);
    let story = async {
        for round in 1..=3_u64 {
            while server.state.lock().unwrap().closed < round as usize {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            assert_eq!(metrics.acked.get(), 100 * round);
            assert_eq!(server.state.lock().unwrap().connections, round as usize);
            fixture.push(100, 100);
        }
        fixture.queue.close();
    };
    tokio::join!(running, story);
    fixture.judge(&server.taken());
    assert_eq!(metrics.write_errors.get(), 0);
}

async fn check(config: Config) -> (bool, String) {
    check_report(async |report| output(config).check(report).await).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_check_of_redis_tells_each_step_and_what_to_do() {
    let server = FakeRedis::start_with([], Some("secret"), None).await;
    let good = |address: &str| Config {
        password: Some(Secret::new("secret")),
        db: 2,
        ..config(&[address], "logs")
    };
    let (is_good, printed) = check(good(&server.address)).await;
    let expected = format!(
        "redis: {}...
  connection...
    parse host... OK
    dns lookup... OK
    addresses: 127.0.0.1
    dial up... OK
  TLS... WARN secure connection disabled
  credentials... OK
  talk to server... OK
  database 2... OK
  version: 7.0.15
  permission... OK
",
        server.address
    );
    assert_eq!((is_good, printed), (true, expected));
    let wrong = Config { password: Some(Secret::new("x")), ..good(&server.address) };
    let (is_good, printed) = check(wrong).await;
    assert!(!is_good && printed.contains("see `username` and `password`"), "{printed}");
    let (is_good, printed) = check(config(&[&server.address], "logs")).await;
    assert!(!is_good && printed.contains("see `username` and `password`"), "{printed}");
    let (is_good, printed) = check(good("127.0.0.1:1")).await;
    assert!(!is_good && printed.contains("dial up... ERROR"), "{printed}");
    assert!(server.taken().is_empty());
    // A server of TLS answers what it cannot read with an alert.
    let alarmed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = alarmed.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let (mut stream, _) = alarmed.accept().await.unwrap();
        drop(stream.write_all(&[0x15, 3, 3, 0, 2, 2, 70]).await);
        drop(stream.read_to_end(&mut Vec::new()).await);
    });
    let (is_good, printed) = check(config(&[&address], "logs")).await;
    assert!(!is_good && printed.contains("this port speaks TLS: use `rediss://`"), "{printed}");
}
