//! The Logstash output against a scripted Lumberjack server.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::lumberjack::{Act, FakeLumberjack};
use common::{Fixture, check_report, context, line, trusting};
use skidder_contract::{Authority, Certificate, Manner, Place, Proxy, Trial, Way, keep};
use skidder_net::Host;
use skidder_outputs::Logstash;
use skidder_outputs::logstash::Config;
use skidder_pipeline::Output;
use skidder_tls::{Pem, TlsSettings};
use std::collections::BTreeMap;
use std::time::Duration;

const LINES: usize = 1000;

/// Answers that look like an acknowledgement and are none.
const PROVE_NOTHING: [Act; 6] = [
    Act::Reply(b"2A\0\0\0\0"),
    Act::Reply(b"1A\0\0\0\x01"),
    Act::Reply(b"2W\0\0\0\x01"),
    Act::Reply(b"2J\0\0\0\x01"),
    Act::Reply(b"2A\xff\xff\xff\xff"),
    Act::Reply(b"2A\0\0\0"),
];

fn host(name: &str, address: &str) -> Host {
    let port = address.rsplit_once(':').unwrap().1.parse().unwrap();
    Host { name: name.to_owned(), port }
}

fn config(addresses: &[&str]) -> Config {
    Config {
        backoff_init: Duration::from_millis(1),
        backoff_max: Duration::from_millis(5),
        bulk_max_size: 100,
        ..Config::new(addresses.iter().map(|address| host("127.0.0.1", address)).collect())
    }
}

fn output(config: Config) -> Logstash {
    Logstash::new(config, context()).unwrap()
}

/// How windows are sent: compression, pipelining and slow start.
const WAYS: [(u32, usize, bool); 5] =
    [(3, 2, false), (0, 2, false), (3, 0, false), (0, 5, true), (1, 1, true)];

/// Sends a thousand lines past a script and judges; for all ways to send.
async fn survives(name: &str, script: &[Act]) {
    survives_within(name, script, Config::TIMEOUT, &WAYS).await;
}

async fn survives_within(
    name: &str,
    script: &[Act],
    timeout: Duration,
    ways: &[(u32, usize, bool)],
) {
    for &(compression_level, pipelining, slow_start) in ways {
        let mut fixture = Fixture::new();
        fixture.name = format!("{name}, {compression_level}, {pipelining}, {slow_start}");
        fixture.push(LINES, 70);
        let server = FakeLumberjack::start(script.iter().copied()).await;
        let config = Config {
            compression_level,
            pipelining,
            slow_start,
            timeout,
            ..config(&[&server.address])
        };
        fixture.run(output(config)).await;
        fixture.judge(&server.taken());
        assert_eq!(server.state.lock().unwrap().compressed, compression_level > 0);
    }
}

impl Place for FakeLumberjack {
    fn address(&self) -> String {
        self.address.clone()
    }

    fn taken(&self) -> BTreeMap<usize, usize> {
        self.taken()
    }
}

/// The subject of the contract.
struct LogstashTrial {
    authority: Authority,
    good: Certificate,
}

impl Trial for LogstashTrial {
    fn kind(&self) -> &'static str {
        "logstash"
    }

    async fn place(&self, manner: Manner) -> Option<Box<dyn Place>> {
        let expired = self.authority.sign_expired("localhost");
        let elsewhere = self.authority.sign("elsewhere");
        let acceptor = |certificate, clients| Some(self.authority.acceptor(certificate, clients));
        let (script, tls): (&[Act], _) = match manner {
            Manner::Good => (&[], None),
            Manner::RefusesWhole => (&[Act::CloseAfter, Act::Ok, Act::CloseBefore], None),
            Manner::RefusesSome => (&[Act::Part(7), Act::InTwo(10), Act::Part(0)], None),
            // The protocol has no error for something too large.
            Manner::RefusesLarge => return None,
            Manner::Confused => (&[Act::Nonsense, Act::TooMuch, Act::Silence], None),
            Manner::ProvesNothing => (&PROVE_NOTHING, None),
            Manner::WrongCredentials => (&[], acceptor(&self.good, true)),
            Manner::CertificateExpired => (&[], acceptor(&expired, false)),
            Manner::WrongName => (&[], acceptor(&elsewhere, false)),
        };
        Some(Box::new(FakeLumberjack::start_with(script.iter().copied(), tls).await))
    }

    fn output(&self, address: &str, manner: Manner) -> Box<dyn Output> {
        let mut config = config(&[address]);
        if matches!(manner, Manner::Confused | Manner::ProvesNothing) {
            // Some of its answers are silence.
            config.timeout = Duration::from_millis(500);
        }
        if matches!(
            manner,
            Manner::WrongCredentials | Manner::CertificateExpired | Manner::WrongName
        ) {
            config.hosts = vec![host("localhost", address)];
            config.tls = Some(trusting(&self.authority));
        }
        Box::new(output(config))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn logstash_keeps_the_contract_of_outputs() {
    let authority = Authority::new();
    let good = authority.sign("localhost");
    keep(&LogstashTrial { authority, good }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_good_lumberjack_server_gets_everything_once_and_in_order() {
    survives("good", &[]).await;
    let mut fixture = Fixture::new();
    fixture.push(LINES, 70);
    let server = FakeLumberjack::start([]).await;
    fixture.run(output(config(&[&server.address]))).await;
    let state = server.state.lock().unwrap();
    let messages: Vec<&str> =
        state.documents.iter().map(|document| document["message"].as_str().unwrap()).collect();
    assert_eq!(messages, (0..LINES).map(line).collect::<Vec<_>>());
    assert_eq!(state.windows, [100; 10]);
    let metrics = &fixture.feed.metrics;
    assert_eq!((metrics.total.get(), metrics.acked.get()), (LINES as u64, LINES as u64));
    assert_eq!((metrics.batches.get(), metrics.failed.get()), (10, 0));
    assert_eq!(metrics.read_bytes.get(), 60);
    assert!(metrics.write_bytes.get() > 0 && metrics.latency_ns.get() > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn lumberjack_documents_have_the_metadata_of_filebeat() {
    for (index, escape_html, beat) in [(None, false, "filebeat"), (Some("mine"), true, "mine")] {
        let mut fixture = Fixture::new();
        fixture.push(1, 1);
        let server = FakeLumberjack::start([]).await;
        let index = index.map(str::to_owned);
        fixture.run(output(Config { index, escape_html, ..config(&[&server.address]) })).await;
        let metadata = server.state.lock().unwrap().documents[0]["@metadata"].clone();
        let expected = serde_json::json!({ "beat": beat, "type": "_doc", "version": "9.5.0" });
        assert_eq!(metadata, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn partial_acknowledgements_settle_a_beginning_and_the_rest_comes_again() {
    survives("a part each time", &[Act::Part(1), Act::Part(99), Act::Part(0), Act::Part(50)]).await;
    survives("in two", &[Act::InTwo(30), Act::InTwo(0), Act::InTwo(100)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keep_alives_are_waited_with_and_silence_is_not() {
    // Together longer than the timeout.
    let timeout = Duration::from_secs(2);
    survives_within("keep-alives", &[Act::KeepAlive(9, 300)], timeout, &WAYS[..1]).await;
    let timeout = Duration::from_millis(200);
    survives_within("silence", &[Act::Silence, Act::Ok, Act::Silence], timeout, &WAYS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nonsense_ends_the_connection_and_loses_nothing() {
    survives("nonsense", &[Act::Nonsense, Act::Ok, Act::TooMuch, Act::Nonsense]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_the_server_closed_while_it_was_idle_is_no_failure() {
    let mut fixture = Fixture::new();
    fixture.push(100, 100);
    let server = FakeLumberjack::start([Act::OkAndClose; 5]).await;
    let running = Box::new(output(config(&[&server.address]))).run(fixture.feed.clone());
    let metrics = std::sync::Arc::clone(&fixture.feed.metrics);
    let story = async {
        for round in 1..=5_u64 {
            while server.state.lock().unwrap().closed < round as usize {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            assert_eq!(metrics.acked.get(), 100 * round);
            // Another connection is made only when there is something to send.
            assert_eq!(server.state.lock().unwrap().connections, round as usize);
            fixture.push(100, 100);
        }
        fixture.queue.close();
    };
    tokio::join!(running, story);
    fixture.judge(&server.taken());
    assert_eq!(metrics.write_errors.get(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn as_many_windows_as_pipelining_says_are_under_way() {
    // The server answers the first window only when the second is there.
    let mut fixture = Fixture::new();
    fixture.push(LINES, 100);
    let server = FakeLumberjack::start([Act::AfterNext; 5]).await;
    fixture.run(output(config(&[&server.address]))).await;
    fixture.judge(&server.taken());
    assert_eq!(fixture.feed.metrics.write_errors.get(), 0);
    // With one at a time it would wait for ever.
    let mut fixture = Fixture::new();
    fixture.push(200, 100);
    let server = FakeLumberjack::start([Act::AfterNext]).await;
    let timeout = Duration::from_millis(500);
    fixture.run(output(Config { pipelining: 0, timeout, ..config(&[&server.address]) })).await;
    fixture.judge(&server.taken());
    assert!(fixture.feed.metrics.write_errors.get() > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_start_begins_with_small_windows() {
    let mut fixture = Fixture::new();
    fixture.push(LINES, LINES);
    let server = FakeLumberjack::start([]).await;
    let config =
        Config { slow_start: true, pipelining: 0, bulk_max_size: 0, ..config(&[&server.address]) };
    fixture.run(output(config)).await;
    fixture.judge(&server.taken());
    assert_eq!(server.state.lock().unwrap().windows[..5], [10, 15, 23, 35, 53]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_outlives_its_ttl_is_replaced_between_windows() {
    for pipelining in [0, 2] {
        let mut fixture = Fixture::new();
        fixture.push(LINES, 70);
        let server = FakeLumberjack::start([Act::KeepAlive(1, 5); 10]).await;
        let ttl = Duration::from_millis(1);
        fixture.run(output(Config { ttl, pipelining, ..config(&[&server.address]) })).await;
        fixture.judge(&server.taken());
        assert!(server.state.lock().unwrap().connections >= 4);
        assert_eq!(fixture.feed.metrics.write_errors.get(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn load_is_balanced_over_all_hosts_that_are_up() {
    // Slow enough that one alone cannot have taken all before the other is reached.
    let slow = [Act::KeepAlive(1, 20); 50];
    let servers = [FakeLumberjack::start(slow).await, FakeLumberjack::start(slow).await];
    let mut fixture = Fixture::new();
    fixture.push(5000, 100);
    let addresses = [servers[0].address.as_str(), "127.0.0.1:1", servers[1].address.as_str()];
    let config = Config { loadbalance: true, workers: 2, ..config(&addresses) };
    fixture.run(output(config)).await;
    let mut taken = servers[0].taken();
    taken.extend(servers[1].taken());
    fixture.judge(&taken);
    for server in servers {
        let state = server.state.lock().unwrap();
        assert!(state.connections <= 2 && !state.taken.is_empty(), "{}", state.connections);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_load_balancing_another_host_takes_over_after_a_failure() {
    let servers = [FakeLumberjack::start([]).await, FakeLumberjack::start([]).await];
    let down = Proxy::start(&servers[0].address, [Way::ResetAfterAnswered(6)]).await;
    let mut fixture = Fixture::new();
    fixture.push(LINES, 100);
    fixture.run(output(config(&[down.address(), &servers[1].address]))).await;
    let mut taken = servers[0].taken();
    for (line, times) in servers[1].taken() {
        *taken.entry(line).or_default() += times;
    }
    fixture.judge_repeated(&taken);
}

#[tokio::test(flavor = "multi_thread")]
async fn windows_go_through_tls_with_a_client_certificate() {
    let authority = Authority::new();
    let good = authority.sign("localhost");
    let server = FakeLumberjack::start_with([], Some(authority.acceptor(&good, true))).await;
    let client = authority.sign("client");
    let identity = Some((Pem::of(&client.pem()), Pem::of(&client.key_pem())));
    let tls = Some(TlsSettings { identity, ..trusting(&authority) });
    let mut fixture = Fixture::new();
    fixture.push(LINES, 100);
    let hosts = vec![host("localhost", &server.address)];
    fixture.run(output(Config { hosts, tls, ..config(&[]) })).await;
    fixture.judge(&server.taken());
    assert_eq!(fixture.feed.metrics.write_errors.get(), 0);
}

async fn check(config: Config) -> (bool, String) {
    check_report(async |report| output(config).check(report).await).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_check_of_logstash_tells_each_step_and_what_to_do() {
    let server = FakeLumberjack::start([]).await;
    let port = server.address.rsplit_once(':').unwrap().1;
    let (good, printed) = check(config(&[&server.address])).await;
    assert!(good, "{printed}");
    let expected = format!(
        "logstash: 127.0.0.1:{port}...
  connection...
    parse host... OK
    dns lookup... OK
    addresses: 127.0.0.1
    dial up... OK
  TLS... WARN secure connection disabled
  talk to server... OK
"
    );
    assert_eq!(printed, expected);
    let (good, printed) = check(config(&["127.0.0.1:1"])).await;
    assert!(
        !good && printed.contains("dial up... ERROR cannot connect to 127.0.0.1:1"),
        "{printed}"
    );
    let closing = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = closing.local_addr().unwrap().to_string();
    tokio::spawn(async move { drop(closing.accept().await.unwrap()) });
    let patient = |config| Config { timeout: Duration::from_mins(10), ..config };
    let (good, printed) = check(patient(config(&[&address]))).await;
    assert!(!good && printed.contains("talk to server... ERROR it closed"), "{printed}");

    let authority = Authority::new();
    let (good_name, expired) = (authority.sign("localhost"), authority.sign_expired("localhost"));
    let table = [
        (authority.acceptor(&good_name, false), "localhost", true, "TLS version: TLSv1_3"),
        (authority.acceptor(&good_name, false), "127.0.0.1", false, "handshake... ERROR"),
        (authority.acceptor(&expired, false), "localhost", false, "xpired"),
        (authority.acceptor(&good_name, true), "localhost", false, "ssl.certificate"),
    ];
    for (acceptor, name, expected, words) in table {
        let server = FakeLumberjack::start_with([], Some(acceptor)).await;
        let hosts = vec![host(name, &server.address)];
        let tls = Some(trusting(&authority));
        let config = Config { hosts, tls, ..config(&[]) };
        let (good, printed) = check(if expected { config } else { patient(config) }).await;
        assert!(good == expected && printed.contains(words), "{name}: {printed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_with_tls_is_known_without_it_by_the_check_and_in_the_log() {
    let authority = Authority::new();
    let acceptor = authority.acceptor(&authority.sign("localhost"), false);
    let server = FakeLumberjack::start_with([], Some(acceptor)).await;
    let expected = "this port speaks TLS: set `ssl.enabled: true`";
    let patient = Config { timeout: Duration::from_mins(10), ..config(&[&server.address]) };
    let (good, printed) = check(patient.clone()).await;
    assert!(!good && printed.contains(expected), "{printed}");
    let mut fixture = Fixture::new();
    fixture.push(1, 1);
    let metrics = std::sync::Arc::clone(&fixture.feed.metrics);
    let running = Box::new(output(patient)).run(fixture.feed.clone());
    let failed = async {
        while metrics.last_failure().is_none() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = running => panic!("it ended"),
        () = failed => {}
    }
    let said = format!("{:?}", metrics.last_failure());
    assert!(said.contains(expected), "{said}");
}
