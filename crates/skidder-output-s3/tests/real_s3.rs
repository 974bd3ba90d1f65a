//! The S3 output against versitygw.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::s3::{lines_of, text_of};
use common::{Fixture, check_report, context};
use skidder_config::{Problems, Settings};
use skidder_contract::{Proxy, Way};
use skidder_output_s3::{Config, S3};
use skidder_pipeline::Output as _;
use skidder_testkit::servers::Server;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

const LINES: usize = 5000;
const USER: &str = "access_key_id: test\nsecret_access_key: secret of tests";
const READER: &str = "access_key_id: reader\nsecret_access_key: secret of readers";

/// The output for the bucket `logs`, unless `more` has another.
fn output(endpoint: &str, user: &str, more: &str) -> S3 {
    let bucket = if more.contains("bucket:") { "" } else { "bucket: logs\n" };
    let text = format!(
        "endpoint: '{endpoint}'\nregion: eu-test-1\n{bucket}{user}\nbatch: {{max_events: 300, timeout: 20ms}}\n\
         backoff: {{init: 10ms, max: 50ms}}\n{more}"
    );
    let settings = Settings::parse("x", &text).unwrap();
    let problems = Problems::new();
    let section = settings.root(&problems);
    let config = Config::read(&section, &context(), |_| None);
    section.finish();
    assert_eq!(problems.to_string(), "");
    S3::new(config.unwrap(), context()).unwrap()
}

fn endpoint(server: &Server) -> String {
    format!("http://127.0.0.1:{}", server.port())
}

/// Paths of the objects of a bucket.
fn objects(server: &Server, bucket: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![server.file("data").join(bucket)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is_hidden = path.file_name().unwrap().to_string_lossy().starts_with('.');
            if path.is_dir() {
                if !is_hidden {
                    folders.push(path);
                }
            } else {
                found.push(path);
            }
        }
    }
    found
}

/// How often each line is in a bucket.
fn taken(server: &Server, bucket: &str) -> BTreeMap<usize, usize> {
    let mut taken = BTreeMap::new();
    for path in objects(server, bucket) {
        for line in lines_of(&path.to_string_lossy(), &std::fs::read(&path).unwrap()) {
            *taken.entry(line).or_default() += 1;
        }
    }
    taken
}

fn empty(server: &Server, bucket: &str) {
    for path in objects(server, bucket) {
        std::fs::remove_file(path).unwrap();
    }
}

/// Runs `admin`, which the script of the server left.
fn admin(server: &Server, arguments: &[&str]) {
    let done = Command::new(server.file("admin")).args(arguments).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn versitygw_takes_every_event_once_in_every_form() {
    let server = Server::own_s3(false).unwrap();
    for more in [
        "",
        "compression: zstd\nworker: 3\ntags: {team: a b}\nkey_prefix: 'ä $&+,:;=@é/%{+yyyy}/'",
        "compression: none\nworker: 2\nsession_token: ''\nfilename_extension: json",
        "compression_level: 1\nkey_prefix: ''\ncodec.format.string: '%{[message]}'",
    ] {
        let mut fixture = Fixture::new();
        fixture.name = more.to_owned();
        fixture.push(LINES, 700);
        fixture.run(output(&endpoint(&server), USER, more)).await;
        fixture.judge(&taken(&server, "logs"));
        assert_eq!(fixture.feed.metrics.write_errors.get(), 0, "{more}");
        let objects = objects(&server, "logs");
        assert_eq!(objects.len(), LINES.div_ceil(300), "{more}");
        let is_in = |path: &Path, part: &str| path.to_string_lossy().contains(part);
        if more.contains("zstd") {
            assert!(
                objects.iter().all(|path| is_in(path, "/logs/ä $&+,:;=@é/2026/")),
                "{objects:?}"
            );
        }
        let first = std::fs::read(&objects[0]).unwrap();
        assert!(text_of(&objects[0].to_string_lossy(), &first).ends_with('\n'));
        empty(&server, "logs");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_bad_network_before_versitygw_loses_and_doubles_nothing() {
    let server = Server::own_s3(false).unwrap();
    let address = format!("127.0.0.1:{}", server.port());
    let mut ways: Vec<Way> = [0, 1, 500, 1000, 3000].map(Way::ResetAfterSent).to_vec();
    // The request was read, and its answer is lost.
    ways.extend([Way::ResetInsteadOfAnswer; 4]);
    ways.extend([1, 20, 100].map(Way::ResetAfterAnswered));
    let proxy = Proxy::start(&address, ways).await;
    let mut fixture = Fixture::new();
    fixture.push(LINES, 700);
    fixture.run(output(&format!("http://{}", proxy.address()), USER, "worker: 2")).await;
    fixture.judge(&taken(&server, "logs"));
    assert!(fixture.feed.metrics.write_errors.get() >= 8);
    assert_eq!(objects(&server, "logs").len(), LINES.div_ceil(300));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn versitygw_that_is_killed_and_started_again_gets_every_event_once() {
    let server = Server::own_s3(false).unwrap();
    let mut fixture = Fixture::new();
    let metrics = Arc::clone(&fixture.feed.metrics);
    let running = Box::new(output(&endpoint(&server), USER, "worker: 2")).run(fixture.feed.clone());
    let story = async {
        for _ in 0..3 {
            let acked = metrics.acked.get();
            fixture.push(LINES, 700);
            until(|| metrics.acked.get() > acked).await;
            let pid = std::fs::read_to_string(server.file("pid")).unwrap();
            let pid = pid.split(' ').next().unwrap().to_owned();
            assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
            fixture.push(LINES, 700);
            let failures = metrics.write_errors.get();
            until(|| metrics.write_errors.get() >= failures + 2).await;
            tokio::task::block_in_place(|| {
                server.stop().unwrap();
                server.start_again().unwrap();
            });
            until(|| fixture.settle.total().in_flight() == 0).await;
        }
        fixture.queue.close();
    };
    tokio::join!(running, story);
    fixture.judge(&taken(&server, "logs"));
}

/// Waits until something is so.
async fn until(is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), wait).await.expect("it takes too long");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn versitygw_over_tls_knows_its_name_and_authority() {
    let server = Server::own_s3(true).unwrap();
    let at = format!("https://localhost:{}", server.port());
    let authority = server.certificate("ca.crt").unwrap();
    let trusting = format!("ssl.certificate_authorities: ['{}']", authority.display());
    let mut fixture = Fixture::new();
    fixture.push(LINES, 700);
    fixture.run(output(&at, USER, &trusting)).await;
    fixture.judge(&taken(&server, "logs"));
    let (good, said) =
        check_report(async |report| output(&at, USER, &trusting).check(report).await).await;
    assert!(good && said.contains("handshake... OK"), "{said}");
    let other = server.certificate("other-ca.crt").unwrap();
    let other = format!("ssl.certificate_authorities: ['{}']", other.display());
    let (good, said) =
        check_report(async |report| output(&at, USER, &other).check(report).await).await;
    assert!(!good && said.contains("ssl.certificate_authorities"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn versitygw_that_refuses_is_told_and_gets_every_event_later() {
    let server = Server::own_s3(false).unwrap();
    let at = endpoint(&server);
    let wrong = "access_key_id: test\nsecret_access_key: wrong";
    for (user, more, expected) in [
        (wrong, "", "see `access_key_id` and `secret_access_key`"),
        (USER, "bucket: missing", "make it, or correct `bucket`"),
        (READER, "bucket: closed", "needs the right `s3:PutObject`"),
    ] {
        let output = output(&at, user, more);
        let (good, said) = check_report(async |report| output.check(report).await).await;
        assert!(!good && said.contains(expected), "{said}");
    }
    let (good, said) = check_report(async |report| output(&at, USER, "").check(report).await).await;
    assert!(good && said.contains("delete it... OK"), "{said}");
    assert!(objects(&server, "logs").is_empty(), "nothing is left behind");

    for (user, bucket) in [(USER, "late"), (READER, "closed")] {
        let mut fixture = Fixture::new();
        fixture.name = bucket.to_owned();
        fixture.push(LINES, 700);
        let metrics = Arc::clone(&fixture.feed.metrics);
        let helper = async {
            until(|| metrics.write_errors.get() >= 3).await;
            assert_eq!(fixture.settle.total().in_flight(), LINES as u64, "{bucket}");
            tokio::task::block_in_place(|| match bucket {
                "late" => std::fs::create_dir(server.file("data").join(bucket)).unwrap(),
                _ => admin(
                    &server,
                    &["change-bucket-owner", "--bucket", bucket, "--owner", "reader"],
                ),
            });
        };
        let output = output(&at, user, &format!("bucket: {bucket}"));
        tokio::join!(fixture.run(output), helper);
        fixture.judge(&taken(&server, bucket));
    }
}
