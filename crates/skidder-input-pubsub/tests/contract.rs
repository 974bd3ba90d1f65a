//! The contract of inputs, kept with a small server of Pub/Sub that counts as Google's does.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;
mod fake;

use common::{input_at, input_of};
use fake::Fake;
use skidder_contract::{Authority, Bench, FarSideFuture, InputTrial, Meaning, keep_input, number};
use skidder_input::Input;
use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// A subscription.
struct Subscription(Fake);

impl InputTrial for Subscription {
    fn input(&self) -> Box<dyn Input> {
        input_at(&self.0.address(), "all", "subscription.num_goroutines: 2")
    }

    fn meaning(&self) -> Meaning {
        Meaning::Acknowledgement
    }

    fn send(&self, lines: Range<usize>) -> FarSideFuture<'_> {
        Box::pin(async move { self.0.publish(lines) })
    }

    fn send_garbage(&self) -> Option<FarSideFuture<'_>> {
        Some(Box::pin(async move { self.0.send_garbage().await }))
    }

    fn acknowledged(&self) -> BTreeSet<usize> {
        self.0.acknowledged()
    }

    /// As many as the server sends without an acknowledgement.
    fn on_the_way_max(&self) -> usize {
        2 * 1600
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_keeps_the_contract_of_inputs() {
    keep_input(|| Subscription(Fake::start())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_again_after_a_break_is_no_second_event_while_it_is_held() {
    let fake = Fake::start();
    let directory = tempfile::tempdir().unwrap();
    let input = input_at(&fake.address(), "all", "subscription.max_outstanding_messages: 50");
    let mut bench = Bench::start(input, directory.path());
    for part in 0..5 {
        fake.publish(part * 200..(part + 1) * 200);
        bench.until("some came", |bench| bench.events.len() >= part * 200 + 100).await;
        fake.break_connections();
    }
    let lines =
        |bench: &Bench| -> BTreeSet<usize> { bench.messages().into_iter().map(number).collect() };
    bench.until("all came", |bench| lines(bench).len() == 1000).await;
    bench.until("all are acknowledged", |_| fake.acknowledged().len() == 1000).await;
    // A message whose acknowledgement got lost may be another event; at most those of a break are.
    assert!(bench.events.len() <= 1000 + 5 * 50, "{}", bench.events.len());
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_is_told_of_limits_and_gets_no_more_than_it_must() {
    let fake = Fake::start();
    let directory = tempfile::tempdir().unwrap();
    let input = input_at(&fake.address(), "all", "subscription.max_outstanding_messages: 7");
    let mut bench = Bench::start(input, directory.path());
    bench.is_stuck = true;
    fake.publish(0..100);
    bench.until("it is full", |_| fake.outstanding() == 7).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!((fake.outstanding(), fake.deadlines()), (7, BTreeSet::from([60])));
    bench.is_stuck = false;
    bench.until("all are acknowledged", |_| fake.acknowledged().len() == 100).await;
    assert_eq!(bench.stop().await.len(), 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_busy_server_still_sends_at_a_stop_is_given_back() {
    let fake = Fake::start();
    let directory = tempfile::tempdir().unwrap();
    let input = input_at(&fake.address(), "all", "subscription.num_goroutines: 1");
    let mut bench = Bench::start(input, directory.path());
    fake.publish(0..3);
    bench.until("they are acknowledged", |_| fake.acknowledged().len() == 3).await;
    fake.end_late(Duration::from_millis(400), 3..10);
    let metrics = std::sync::Arc::clone(bench.input.metrics());
    assert_eq!(bench.stop().await.len(), 3);
    assert_eq!((fake.outstanding(), metrics.subscribed().returned.get()), (0, 7));
}

/// Hands out tokens with numbers, over HTTP; returns its address.
async fn token_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        for number in 1.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4096];
            let length = stream.read(&mut request).await.unwrap();
            let request = String::from_utf8_lossy(&request[..length]).into_owned();
            assert!(request.starts_with("POST /token "), "{request}");
            let body = format!(
                r#"{{"access_token":"token-{number}","expires_in":3600,"token_type":"Bearer"}}"#
            );
            let length = body.len();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
            let answer = format!("{head}\r\ncontent-length: {length}\r\n\r\n{body}");
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_log_in_over_tls_and_a_token_that_is_refused_is_replaced() {
    let authority = Authority::new();
    let fake = Fake::start_with(Some(authority.acceptor(&authority.sign("localhost"), false)));
    let tokens = token_server().await;
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("ca.pem");
    std::fs::write(&place, authority.pem()).unwrap();
    let port = fake.address().rsplit_once(':').unwrap().1.to_owned();
    let input = input_of(&format!(
        "subscription.name: all, api_endpoint: 'localhost:{port}', credentials_json: {{type: authorized_user, \
         client_id: a, client_secret: b, refresh_token: c, token_uri: 'http://{tokens}/token'}}, \
         ssl.certificate_authorities: ['{}']",
        place.display()
    ));
    let mut bench = Bench::start(input, directory.path());
    fake.publish(0..100);
    bench.until("all are acknowledged", |_| fake.acknowledged().len() == 100).await;
    assert_eq!(fake.logins(), BTreeSet::from(["Bearer token-1".to_owned()]));
    fake.refuse("Bearer token-1");
    fake.publish(100..200);
    bench.trouble("UNAUTHENTICATED").await;
    bench.until("all are acknowledged", |_| fake.acknowledged().len() == 200).await;
    assert!(fake.logins().contains("Bearer token-2"), "{:?}", fake.logins());
    bench.no_trouble().await;
    assert_eq!(bench.stop().await.len(), 200);
}
