//! The S3 output against a scripted bucket that checks what it receives.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::s3::{Act, BUCKET, FakeBucket, KEYS, REGION, State, text_of};
use common::{Fixture, check_report, context, trusting};
use skidder_config::{Problems, Settings};
use skidder_contract::{Authority, FakeHttpProxy, Manner, Place, Proxy, Trial, Way, keep};
use skidder_output_s3::{Config, S3};
use skidder_pipeline::{Output, Queue, QueueLimits};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const LINES: usize = 1000;

/// The settings of the bucket behind an endpoint, with waits of milliseconds; `more` wins.
fn config_at(endpoint: &str, more: &str) -> Config {
    let (id, secret) = KEYS;
    let mut text = format!("endpoint: '{endpoint}'\nbucket: {BUCKET}\nregion: {REGION}\n");
    for (name, value) in [
        ("access_key_id", id),
        ("secret_access_key", secret),
        ("batch", "{max_events: 100, timeout: 20ms}"),
        ("backoff", "{init: 1ms, max: 5ms}"),
        ("timeout", "20s"),
    ] {
        if !more.contains(name) {
            text += &format!("{name}: {value}\n");
        }
    }
    let settings = Settings::parse("x", &format!("{text}{more}")).unwrap();
    let problems = Problems::new();
    let section = settings.root(&problems);
    let config = Config::read(&section, &context(), |_| None);
    section.finish();
    assert_eq!(problems.to_string(), "");
    config.unwrap()
}

fn output_at(address: &str, more: &str) -> S3 {
    S3::new(config_at(&format!("http://{address}"), more), context()).unwrap()
}

/// Answers that look like success and are none.
const PROVE_NOTHING: [Act; 6] = [
    Act::Portal,
    Act::Reply("HTTP/1.1 202 Accepted\r\netag: \"0123\"\r\ncontent-length: 0\r\n\r\n"),
    Act::Reply("HTTP/1.1 204 No Content\r\netag: \"0123\"\r\n\r\n"),
    Act::Reply("HTTP/1.1 200 OK\r\netag: \"0123\"\r\ncontent-length: 6\r\n\r\n<html>"),
    Act::Reply(
        "HTTP/1.1 200 OK\r\netag: \"0123\"\r\nx-amz-checksum-crc32: AAAAAA==\r\ncontent-length: 0\r\n\r\n",
    ),
    Act::Reply("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
];

/// Sends a thousand lines to a bucket with a script and judges: nothing is there twice.
async fn sent(name: &str, script: &[Act], more: &str) -> (Fixture, FakeBucket) {
    let mut fixture = Fixture::new();
    fixture.name = name.to_owned();
    fixture.push(LINES, 70);
    let bucket = FakeBucket::start(script.iter().copied()).await;
    fixture.run(output_at(&bucket.address, more)).await;
    fixture.judge(&bucket.taken());
    (fixture, bucket)
}

impl Place for FakeBucket {
    fn address(&self) -> String {
        self.address.clone()
    }

    fn taken(&self) -> BTreeMap<usize, usize> {
        self.taken()
    }
}

/// The subject of the contract.
struct S3Trial {
    authority: Authority,
}

impl Trial for S3Trial {
    fn kind(&self) -> &'static str {
        "s3"
    }

    async fn place(&self, manner: Manner) -> Option<Box<dyn Place>> {
        let expired = self.authority.sign_expired("localhost");
        let elsewhere = self.authority.sign("elsewhere");
        let acceptor = |certificate| Some(self.authority.acceptor(certificate, false));
        let (script, tls): (&[Act], _) = match manner {
            Manner::Good | Manner::WrongCredentials => (&[], None),
            Manner::RefusesWhole => (
                &[
                    Act::Error(503, "SlowDown"),
                    Act::Ok,
                    Act::Error(404, "NoSuchBucket"),
                    Act::Error(403, "AccessDenied"),
                    Act::Error(500, "InternalError"),
                ],
                None,
            ),
            // An object is taken whole.
            Manner::RefusesSome => return None,
            Manner::RefusesLarge => (&[Act::NeverLine(500)], None),
            Manner::Confused => (&[Act::Nonsense, Act::Portal, Act::Silence, Act::Half], None),
            Manner::ProvesNothing => (&PROVE_NOTHING, None),
            Manner::CertificateExpired => (&[], acceptor(&expired)),
            Manner::WrongName => (&[], acceptor(&elsewhere)),
        };
        Some(Box::new(FakeBucket::start_with(script.iter().copied(), tls).await))
    }

    fn output(&self, address: &str, manner: Manner) -> Box<dyn Output> {
        let mut endpoint = format!("http://{address}");
        let mut more = "";
        match manner {
            // One of its answers is silence.
            Manner::Confused => more = "timeout: 500ms",
            Manner::WrongCredentials => more = "secret_access_key: another",
            Manner::CertificateExpired | Manner::WrongName => {
                endpoint = address.replace("127.0.0.1", "https://localhost");
            }
            _ => {}
        }
        let config = Config { tls: trusting(&self.authority), ..config_at(&endpoint, more) };
        Box::new(S3::new(config, context()).unwrap())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_keeps_the_contract_of_outputs() {
    keep(&S3Trial { authority: Authority::new() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_whose_answer_was_lost_is_replaced_by_the_same() {
    let script = [Act::KeepAndClose, Act::Ok, Act::KeepAndClose, Act::KeepAndClose];
    for compression in ["gzip", "zstd", "none"] {
        let more = format!("compression: {compression}");
        let (fixture, bucket) = sent(&more, &script, &more).await;
        let state = bucket.state.lock().unwrap();
        assert_eq!((state.objects.len(), state.puts.len()), (10, 13), "{compression}");
        assert_eq!(fixture.feed.metrics.acked.get(), LINES as u64);
        assert!(fixture.feed.metrics.write_errors.get() + state.puts.len() as u64 >= 13);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_cut_anywhere_doubles_nothing() {
    let mut ways: Vec<Way> = [1, 200, 700, 900, 2000].map(Way::ResetAfterSent).to_vec();
    ways.extend([Way::ResetInsteadOfAnswer; 3]);
    ways.extend([1, 10, 30].map(Way::ResetAfterAnswered));
    let mut fixture = Fixture::new();
    fixture.push(LINES, 70);
    let bucket = FakeBucket::start([]).await;
    let proxy = Proxy::start(&bucket.address, ways).await;
    fixture.run(output_at(proxy.address(), "worker: 2")).await;
    fixture.judge(&bucket.taken());
    assert!(bucket.state.lock().unwrap().puts.len() > 10, "something was put twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_is_closed_by_events_bytes_or_age() {
    let (fixture, bucket) = sent("events", &[], "batch.max_events: 300").await;
    let sizes = |bucket: &FakeBucket| -> Vec<usize> {
        let mut sizes: Vec<usize> = bucket.objects().values().map(Vec::len).collect();
        sizes.sort_unstable();
        sizes
    };
    assert_eq!(sizes(&bucket), [100, 300, 300, 300]);
    assert_eq!(fixture.feed.metrics.batches.get(), 4);

    let (_, bucket) = sent("bytes", &[], "batch.max_bytes: 20KB\ncompression: none").await;
    let bytes = |state: &State| state.objects.values().map(Vec::len).collect::<Vec<usize>>();
    let bytes = bytes(&bucket.state.lock().unwrap());
    assert!(bytes.len() > 5, "{bytes:?}");
    let small = bytes.iter().filter(|bytes| !(18_000..=23_000).contains(*bytes)).count();
    assert!(small <= 1, "all but the last are of that size: {bytes:?}");

    // The queue stays open: nothing but its age closes the object.
    let mut fixture = Fixture::new();
    fixture.push(50, 50);
    let bucket = FakeBucket::start([]).await;
    let output = output_at(&bucket.address, "batch: {timeout: 50ms}");
    let running = Box::new(output).run(fixture.feed.clone());
    let waiting = async {
        while fixture.settle.total().in_flight() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        fixture.queue.close();
    };
    tokio::join!(running, waiting);
    assert_eq!(sizes(&bucket), [50]);
}

/// A fixture whose queue has these bounds.
fn bounded(events: usize, bytes: usize) -> Fixture {
    let mut fixture = Fixture::new();
    let limits = QueueLimits { events, bytes, flush_min_events: 0, ..QueueLimits::default() };
    fixture.queue = Queue::new(limits, Arc::clone(&fixture.settle));
    fixture.feed.queue = fixture.queue.clone();
    fixture
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_closes_objects_so_that_nothing_waits_for_ever() {
    // One object, many, and batches that are larger than half of the queue or than all of it.
    for (events, bytes, size, prefix) in [
        (200, usize::MAX, 50, "x/"),
        (usize::MAX, 40_000, 50, "x/"),
        (200, usize::MAX, 50, "%{[log.offset]}/"),
        (100, usize::MAX, 70, "x/"),
        (100, usize::MAX, 300, "%{[log.offset]}/"),
    ] {
        let mut fixture = bounded(events, bytes);
        fixture.name = format!("{events} events, {bytes} bytes, {size}, {prefix}");
        let bucket = FakeBucket::start([]).await;
        let more = format!("key_prefix: '{prefix}'\nbatch: {{timeout: 1h}}\nworker: 4");
        let output = output_at(&bucket.address, &more);
        let feed = fixture.feed.clone();
        let running = tokio::spawn(async move { Box::new(output).run(feed).await });
        let pushing = tokio::task::spawn_blocking(move || {
            fixture.push(LINES, size);
            fixture.queue.close();
            fixture
        });
        let both = async { (pushing.await.unwrap(), running.await.unwrap()).0 };
        let patience = tokio::time::timeout(Duration::from_mins(1), both).await;
        let fixture = patience.expect("an object was closed each time");
        fixture.judge(&bucket.taken());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_with_the_same_prefix_share_objects_in_their_order() {
    let codec = "codec.format.string: '%{[message]}'";
    let more = format!("key_prefix: '/%{{[agent.name]}}/%{{+yyyy/MM/dd}}/'\n{codec}");
    let (_, bucket) = sent("dates", &[], &more).await;
    let objects = bucket.objects();
    assert_eq!(objects.len(), 10);
    for (number, (key, lines)) in objects.iter().enumerate() {
        let name = key.strip_prefix("here/2026/01/02/").expect(key);
        assert!(name.ends_with(&format!("-{number}.log.gz")), "{key}");
        assert_eq!(*lines, (number * 100..number * 100 + 100).collect::<Vec<_>>(), "{key}");
    }
    // An object for each event: more than may be open at once.
    let mut fixture = Fixture::new();
    fixture.push(1200, 1200);
    let bucket = FakeBucket::start([]).await;
    let more = "key_prefix: 'by/%{[log.offset]}/'\nworker: 4\ncompression: none\nbatch.timeout: 1h";
    fixture.run(output_at(&bucket.address, more)).await;
    fixture.judge(&bucket.taken());
    let objects = bucket.objects();
    assert!(objects.values().all(|lines| lines.len() == 1));
    assert!(objects.keys().all(|key| key.starts_with("by/") && key.ends_with(".ndjson")));
}

#[tokio::test(flavor = "multi_thread")]
async fn events_without_a_key_or_a_text_go_to_the_dead_letters_alone() {
    for more in [
        "key_prefix: '%{[nothing]}/'",
        "key_prefix: 'x/../y'",
        "codec.format.string: '%{[nothing]}'",
    ] {
        let mut fixture = Fixture::new();
        fixture.push(10, 10);
        let bucket = FakeBucket::start([]).await;
        fixture.run(output_at(&bucket.address, more)).await;
        assert_eq!(fixture.dead_letters().len(), 10, "{more}");
        fixture.judge(&BTreeMap::new());
        assert!(bucket.state.lock().unwrap().requests.is_empty(), "{more}");
    }
    // A key that the server does not take is nothing that waiting helps against.
    let (fixture, _) = sent("key", &[Act::Error(400, "KeyTooLongError")], "").await;
    assert_eq!(fixture.dead_letters().into_values().collect::<Vec<_>>(), [400; 100]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_too_large_is_halved_until_it_fits() {
    let (fixture, bucket) = sent("at most 30", &[Act::AtMost(30)], "").await;
    assert!(bucket.objects().values().all(|lines| lines.len() <= 30));
    assert_eq!(fixture.feed.metrics.split.get(), 30);
    assert!(fixture.dead_letters().is_empty());
    let (fixture, _) = sent("never 500", &[Act::NeverLine(500)], "").await;
    assert_eq!(fixture.dead_letters(), BTreeMap::from([(500, 400)]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_has_what_the_settings_say_of_its_object() {
    let more = "storage_class: STANDARD_IA\nacl: bucket-owner-full-control\n\
                server_side_encryption: 'aws:kms'\nssekms_key_id: 'arn:aws:kms:x:1:key/2'\n\
                tags: {team: a b, 'k&': ''}\ncompression: zstd\ncompression_level: 7\n\
                session_token: to+ken=\nfilename_extension: jsonl.zst";
    let (_, bucket) = sent("headers", &[], more).await;
    let state = bucket.state.lock().unwrap();
    for request in &state.requests {
        for (name, value) in [
            ("content-type", "application/zstd"),
            ("x-amz-storage-class", "STANDARD_IA"),
            ("x-amz-acl", "bucket-owner-full-control"),
            ("x-amz-server-side-encryption", "aws:kms"),
            ("x-amz-server-side-encryption-aws-kms-key-id", "arn:aws:kms:x:1:key/2"),
            ("x-amz-tagging", "k%26=&team=a%20b"),
            ("x-amz-security-token", "to+ken="),
            ("host", &bucket.address),
        ] {
            assert_eq!(request.header(name), value, "{name}");
        }
        assert!(request.path().ends_with(".jsonl.zst"), "{}", request.path());
    }
    let (key, body) = state.objects.iter().next().unwrap();
    let first: serde_json::Value =
        serde_json::from_str(text_of(key, body).lines().next().unwrap()).unwrap();
    assert_eq!(first["@metadata"]["beat"], "filebeat");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_with_credentials_is_read_again_for_each_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("credentials");
    let write = |secret: &str| {
        let id = KEYS.0;
        let text = format!("[logs]\naws_access_key_id = {id}\naws_secret_access_key = {secret}\n");
        std::fs::write(&path, text).unwrap();
    };
    write("old");
    let more = format!(
        "shared_credential_file: '{}'\ncredential_profile_name: logs\n# access_key_id secret_access_key",
        path.display()
    );
    let mut fixture = Fixture::new();
    fixture.push(LINES, 70);
    let bucket = FakeBucket::start([]).await;
    bucket.state.lock().unwrap().secret = Some("new".to_owned());
    let output = output_at(&bucket.address, &more);
    let metrics = Arc::clone(&fixture.feed.metrics);
    let helper = async {
        while metrics.write_errors.get() < 3 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(bucket.taken().is_empty());
        write("new");
    };
    tokio::join!(fixture.run(output), helper);
    fixture.judge(&bucket.taken());
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_go_through_a_proxy_with_and_without_tls() {
    let authority = Authority::new();
    for secure in [false, true] {
        let certificate = authority.sign("localhost");
        let tls = secure.then(|| authority.acceptor(&certificate, false));
        let bucket = FakeBucket::start_with([], tls).await;
        let proxy = FakeHttpProxy::start(&bucket.address, "Basic bWU6c2VjcmV0").await;
        let port = bucket.address.rsplit_once(':').unwrap().1;
        let scheme = if secure { "https" } else { "http" };
        let more = format!("proxy_url: 'http://me:secret@{}'", proxy.address);
        let config = config_at(&format!("{scheme}://localhost:{port}"), &more);
        let config = Config { tls: trusting(&authority), ..config };
        let mut fixture = Fixture::new();
        fixture.push(LINES, 70);
        fixture.run(S3::new(config, context()).unwrap()).await;
        fixture.judge(&bucket.taken());
        let heads = proxy.heads();
        assert_eq!(heads.iter().any(|head| head.starts_with("CONNECT ")), secure);
        assert_eq!(heads.iter().any(|head| head.starts_with("PUT http://localhost")), !secure);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_check_of_s3_puts_an_object_removes_it_and_says_what_is_missing() {
    async fn checked(bucket: &FakeBucket, more: &str) -> (bool, String) {
        let output = output_at(&bucket.address, more);
        check_report(async |report| output.check(report).await).await
    }
    let bucket = FakeBucket::start([]).await;
    let (good, said) = checked(&bucket, "key_prefix: 'a/%{+yyyy}/%{[x]}/'").await;
    assert!(good && said.contains("bucket `logs`... OK"), "{said}");
    assert!(said.contains("delete it... OK") && said.contains("depends on the events"), "{said}");
    let left = bucket.objects();
    let puts = bucket.state.lock().unwrap().puts.clone();
    assert!(left.is_empty() && puts.len() == 1);
    assert!(puts[0].starts_with("a/20") && puts[0].contains("-test-output"));

    for (method, status, code, is_good, expected) in [
        ("HEAD", 404, "NoSuchBucket", false, "make it, or correct `bucket`"),
        ("HEAD", 403, "AccessDenied", true, "`s3:ListBucket` is missing"),
        ("PUT", 403, "AccessDenied", false, "needs the right `s3:PutObject`"),
        ("DELETE", 403, "AccessDenied", true, "it is left there"),
    ] {
        bucket.state.lock().unwrap().forbidden = BTreeMap::from([(method, (status, code))]);
        let (good, said) = checked(&bucket, "").await;
        assert!(good == is_good && said.contains(expected), "{method} {status}: {said}");
    }
    bucket.state.lock().unwrap().forbidden.clear();
    let (good, said) = checked(&bucket, "secret_access_key: another").await;
    assert!(!good && said.contains("see `access_key_id` and `secret_access_key`"), "{said}");
    let (good, said) =
        checked(&FakeBucket { address: "127.0.0.1:1".to_owned(), ..bucket }, "").await;
    assert!(!good && said.contains("dial up... ERROR"), "{said}");
}
