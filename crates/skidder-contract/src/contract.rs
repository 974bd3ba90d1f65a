//! The contract itself: one case after the other.

use crate::fixture::Fixture;
use crate::proxy::{Proxy, Way};
use skidder_pipeline::Output;
use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

/// Lines of one case.
const LINES: usize = 1000;
/// A test that waits longer than this has failed.
const PATIENCE: Duration = Duration::from_mins(1);

/// How the server is to behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// It takes everything.
    Good,
    /// It takes nothing of some requests, and all of them later.
    RefusesWhole,
    /// It takes a part of some requests; what may pass is taken later, the rest never.
    RefusesSome,
    /// Some requests, or a single event, are larger than it takes.
    RefusesLarge,
    /// It answers nonsense, or nothing, before it takes what it is sent.
    Confused,
    /// It takes nothing of some requests, and gives answers that look like success but are no verdict of what it was
    /// sent; it takes what comes again.
    ProvesNothing,
    /// The output shows credentials that it does not know.
    WrongCredentials,
    /// Its certificate is not valid any more.
    CertificateExpired,
    /// Its certificate is of another name.
    WrongName,
}

/// The far side.
pub trait Place: Send + Sync {
    /// `host:port` where it listens.
    fn address(&self) -> String;

    /// How often each line was taken, by number.
    fn taken(&self) -> BTreeMap<usize, usize>;
}

/// What an output's tests provide.
pub trait Trial: Sync {
    /// Its kind, for messages.
    fn kind(&self) -> &'static str;

    /// A server that behaves like this; `None` if the protocol has no way to.
    fn place(&self, manner: Manner) -> impl Future<Output = Option<Box<dyn Place>>> + Send;

    /// Where a proxy before a server listens (0: anywhere), and what it stands before.
    fn front(&self, place: &dyn Place) -> (u16, String) {
        (0, place.address())
    }

    /// The output, sending to `host:port`, with waits of milliseconds between attempts. The name of the host is
    /// `localhost` where certificates are concerned.
    fn output(&self, address: &str, manner: Manner) -> Box<dyn Output>;
}

/// Tries all of the contract.
pub async fn keep(trial: &impl Trial) {
    takes_all_once(trial).await;
    for manner in [
        Manner::RefusesWhole,
        Manner::RefusesSome,
        Manner::RefusesLarge,
        Manner::Confused,
        Manner::ProvesNothing,
    ] {
        survives_refusals(trial, manner).await;
    }
    survives_the_network(trial).await;
    survives_a_restart(trial).await;
    for manner in [Manner::WrongCredentials, Manner::CertificateExpired, Manner::WrongName] {
        keeps_what_it_cannot_deliver(trial, manner).await;
    }
}

fn fixture(trial: &impl Trial, case: &str) -> Fixture {
    let mut fixture = Fixture::new();
    fixture.name = format!("{}: {case}", trial.kind());
    fixture.push(LINES, 70);
    fixture
}

async fn takes_all_once(trial: &impl Trial) {
    let place = trial.place(Manner::Good).await.expect("every server can be good");
    let fixture = fixture(trial, "a good server");
    fixture.run_boxed(trial.output(&place.address(), Manner::Good)).await;
    fixture.judge(&place.taken());
    let metrics = &fixture.feed.metrics;
    assert_eq!(metrics.acked.get(), LINES as u64, "{}", fixture.name);
    assert_eq!(metrics.write_errors.get(), 0, "{}", fixture.name);
    assert!(metrics.write_bytes.get() > 0, "{}", fixture.name);
}

async fn survives_refusals(trial: &impl Trial, manner: Manner) {
    let Some(place) = trial.place(manner).await else { return };
    let fixture = fixture(trial, &format!("{manner:?}"));
    fixture.run_boxed(trial.output(&place.address(), manner)).await;
    fixture.judge(&place.taken());
}

/// Events that were taken and not answered come again; nothing is lost.
async fn survives_the_network(trial: &impl Trial) {
    let table: [(&str, Vec<Way>); 5] = [
        ("connections are reset at once", vec![Way::Refuse; 3]),
        (
            "connections are reset before the request was read",
            [1, 100, 1000, 5000, 20_000].map(Way::ResetAfterSent).to_vec(),
        ),
        ("connections are reset before the answer", vec![Way::ResetInsteadOfAnswer; 3]),
        (
            "connections are reset in the answer",
            [1, 5, 6, 7, 20, 100].map(Way::ResetAfterAnswered).to_vec(),
        ),
        ("the network is slow", vec![Way::Slow(1000, Duration::from_millis(1))]),
    ];
    for (name, ways) in table {
        let place = trial.place(Manner::Good).await.expect("every server can be good");
        let proxy = proxy_before(trial, &*place, ways).await;
        let fixture = fixture(trial, name);
        fixture.run_boxed(trial.output(proxy.address(), Manner::Good)).await;
        proxy.stop().await;
        fixture.judge_repeated(&place.taken());
    }
}

async fn proxy_before(trial: &impl Trial, place: &dyn Place, ways: Vec<Way>) -> Proxy {
    let (port, server) = trial.front(place);
    Proxy::start_at(port, &server, ways).await
}

async fn survives_a_restart(trial: &impl Trial) {
    let place = trial.place(Manner::Good).await.expect("every server can be good");
    let proxy = proxy_before(trial, &*place, Vec::new()).await;
    let mut fixture = Fixture::new();
    fixture.name = format!("{}: a restart", trial.kind());
    fixture.push(LINES, 70);
    let running = trial.output(proxy.address(), Manner::Good).run(fixture.feed.clone());
    let story = async {
        let metrics = std::sync::Arc::clone(&fixture.feed.metrics);
        until(&fixture, || metrics.acked.get() > 0).await;
        proxy.take_down();
        fixture.push(LINES, 70);
        let failures = metrics.write_errors.get();
        until(&fixture, || metrics.write_errors.get() >= failures + 2).await;
        proxy.bring_up();
        until(&fixture, || fixture.settle.total().in_flight() == 0).await;
        fixture.queue.close();
    };
    let both = async { tokio::join!(running, story) };
    let in_time = tokio::time::timeout(PATIENCE, both).await.is_ok();
    assert!(in_time, "{}: it takes too long: {:?}", fixture.name, fixture.settle.total());
    proxy.stop().await;
    fixture.judge_repeated(&place.taken());
}

/// A mistake in the configuration: the output retries for ever, and loses nothing.
async fn keeps_what_it_cannot_deliver(trial: &impl Trial, manner: Manner) {
    let Some(place) = trial.place(manner).await else { return };
    let fixture = fixture(trial, &format!("{manner:?}"));
    fixture.queue.close();
    let mut running = trial.output(&place.address(), manner).run(fixture.feed.clone());
    tokio::select! {
        () = &mut running => panic!("{}: it ended", fixture.name),
        () = until(&fixture, || fixture.feed.metrics.write_errors.get() >= 3) => {}
    }
    drop(running);
    let total = fixture.settle.total();
    assert!(total.adds_up(), "{}: {total:?}", fixture.name);
    assert_eq!(total.in_flight(), LINES as u64, "{}: {total:?}", fixture.name);
    assert!(place.taken().is_empty(), "{}", fixture.name);
}

/// Waits until something is so; the ledger adds up at every look.
async fn until(fixture: &Fixture, is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            assert!(fixture.settle.total().adds_up(), "{:?}", fixture.settle.total());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait)
        .await
        .unwrap_or_else(|_| panic!("{}: {:?}", fixture.name, fixture.settle.total()));
}
