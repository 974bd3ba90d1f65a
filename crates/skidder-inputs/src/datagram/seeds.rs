//! A server of datagrams over a simulated network: they are lost, doubled, reordered and thrown away by a full buffer,
//! while the input is replaced (as in a reload) and stopped, from seeds. The far side knows what arrived.

use super::simulated::{Arrived, Bug, SimDatagrams};
use super::{DatagramAddress, DatagramServer, Settings};
use crate::testing::{Bench, context};
use skidder_event::DropReason;
use skidder_input::{Input, InputFuture, Intake};
use skidder_net::{Family, SocketKey, Sockets, UnixPlace};
use skidder_testkit::Random;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// Seeds of a usual run.
const SEEDS: u64 = 40;

/// Seeds within which a deliberate bug is found.
const SEEDS_OF_BUG: u64 = 10;

/// Actions of a seed.
const ACTIONS: usize = 80;

struct Receives(DatagramServer);

impl Input for Receives {
    fn kind(&self) -> &'static str {
        "udp"
    }

    fn stops_last(&self) -> bool {
        true
    }

    fn run(self: Box<Self>, intake: Intake) -> InputFuture {
        Box::pin(self.0.run(intake))
    }
}

/// The bounds of the inputs of a seed.
#[derive(Clone, Copy)]
struct Bounds {
    message_bytes_max: usize,
    backlog_bytes_max: usize,
}

fn input(network: &SimDatagrams, sockets: &Sockets, bounds: Bounds) -> Box<dyn Input> {
    let (key, address) = if network.is_unix() {
        let path = "/run/sim".to_owned().into();
        let place = UnixPlace { path, mode: None, group: None };
        (SocketKey::UnixDatagram(place.path.clone()), DatagramAddress::Unix(place))
    } else {
        let (host, port, family) = ("192.0.2.2".to_owned(), 514, Family::Any);
        let key = SocketKey::Udp { host: host.clone(), port, family };
        (key, DatagramAddress::Udp { host, port, family })
    };
    let Bounds { message_bytes_max, backlog_bytes_max } = bounds;
    let settings = Settings {
        message_bytes_max,
        read_buffer: 0,
        backlog_bytes_max: if network.is_unix() { usize::MAX } else { backlog_bytes_max },
        device: "sim".to_owned(),
        on_batch: None,
        sink: None,
    };
    let claim = context(sockets).sockets.claim(key);
    Box::new(Receives(DatagramServer {
        address,
        claim,
        settings,
        network: Arc::new(network.clone()),
    }))
}

/// One event, as it must be: sender, text, and whether it was cut.
type Shown = (Option<String>, String, bool);

fn expected(of: &Arrived, bounds: Bounds) -> Shown {
    let cut = &of.bytes[..of.bytes.len().min(bounds.message_bytes_max)];
    let text = String::from_utf8_lossy(cut).into_owned();
    (of.peer.map(|peer| peer.to_string()), text, cut.len() < of.bytes.len())
}

fn shown(event: &serde_json::Value) -> Shown {
    let peer = event["log"]["source"]["address"].as_str().map(str::to_owned);
    let text = event["message"].as_str().unwrap().to_owned();
    (peer, text, event["log"]["flags"] == serde_json::json!(["truncated"]))
}

fn count(all: impl Iterator<Item = Shown>) -> BTreeMap<Shown, u64> {
    let mut counts = BTreeMap::new();
    for one in all {
        *counts.entry(one).or_default() += 1;
    }
    counts
}

/// Sends a burst from some of the peers.
async fn send(random: &mut Random, network: &SimDatagrams, bench: &mut Bench, number: &mut u64) {
    let most = if random.one_in(2) { 3 } else { 40 };
    let peers = 1 + random.below(most);
    for _ in 0..=random.below(120) {
        let peer = SocketAddr::from(([192, 0, 2, 1], 1000 + random.below(peers) as u16));
        let long = if random.one_in(30) { 90 } else { 8 };
        let text = format!("{number} {}", "x".repeat(random.below(long) as usize));
        // One without bytes is no event.
        let bytes = if random.one_in(40) { Vec::new() } else { text.into_bytes() };
        *number += 1;
        while !network.send(peer, bytes.clone()) {
            // A sender waits for room, and the output goes on meanwhile.
            bench.is_stuck = false;
            bench.take();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Compares what came with what arrived.
fn judge(bench: &Bench, network: &SimDatagrams, bounds: Bounds) -> Result<Seen, String> {
    let fate = network.fate();
    let arrived = fate.arrived.iter().filter(|datagram| !datagram.bytes.is_empty());
    let arrived = count(arrived.map(|datagram| expected(datagram, bounds)));
    let total = bench.settle.total();
    let (all, dropped) = (arrived.values().sum::<u64>(), total.dropped().total());
    if total.read() != all {
        return Err(format!("{} of {all} datagrams are on the ledger", total.read()));
    }
    if total.delivered() + dropped + total.in_flight() != all {
        return Err(format!("{all} arrived: {total:?}"));
    }
    let queue_full = total.dropped().get(DropReason::QueueFull);
    let stopped = total.dropped().get(DropReason::Stopped);
    if queue_full + stopped != dropped {
        return Err(format!("a drop has another reason: {total:?}"));
    }
    if network.is_unix() && queue_full > 0 {
        return Err("the sender was not made to wait".to_owned());
    }
    let delivered = bench.events.len() as u64;
    if delivered != total.delivered() {
        return Err(format!("{delivered} came, {} on the ledger", total.delivered()));
    }
    let mut twice = 0;
    for (event, times) in count(bench.events.iter().map(shown)) {
        twice += u64::from(times > 1);
        let most = arrived.get(&event).copied().unwrap_or_default();
        if times > most {
            return Err(format!("{event:?} arrived {most} times and came {times} times"));
        }
    }
    let lost = bench.input.metrics().lost_before.total();
    if lost != u64::from(fate.overflowed) {
        return Err(format!("{lost} lost before, and {} were", fate.overflowed));
    }
    Ok(Seen { overflowed: lost, queue_full, stopped, twice })
}

/// The trouble of a seed.
#[derive(Debug, Default)]
struct Seen {
    overflowed: u64,
    queue_full: u64,
    stopped: u64,
    /// Events that came twice.
    twice: u64,
}

async fn run(seed: u64, bug: Bug) -> Result<Seen, String> {
    let mut random = Random::new(seed);
    let (network, sockets) = (SimDatagrams::new(&mut random, bug), Sockets::default());
    let bounds = Bounds {
        message_bytes_max: [24, 64, 1024][random.below(3) as usize],
        backlog_bytes_max: if random.one_in(2) { 4 << 10 } else { 1 << 20 },
    };
    let room = if random.one_in(2) { 300 } else { 5 };
    let mut bench = Bench::start(input(&network, &sockets, bounds), room);
    let mut number = 0;
    for _ in 0..ACTIONS {
        match random.below(20) {
            0 => {
                let was_stuck = bench.is_stuck;
                for _ in 0..=random.below(2) {
                    bench.replace(input(&network, &sockets, bounds)).await;
                }
                bench.is_stuck = was_stuck;
            }
            1 => bench.is_stuck = random.one_in(2),
            2..8 => bench.take(),
            8..12 => tokio::time::sleep(Duration::from_millis(random.below(6))).await,
            _ => send(&mut random, &network, &mut bench, &mut number).await,
        }
    }
    bench.is_stuck = false;
    if random.one_in(3) {
        bench.stop_without_taking().await;
    } else {
        bench.stop().await;
    }
    judge(&bench, &network, bounds)
}

/// Runs seeds side by side: they sleep most of the time. Returns what each of them said.
async fn run_all(seeds: u64, bug: Bug) -> Vec<(u64, Result<Seen, String>)> {
    let mut running = JoinSet::new();
    for seed in 0..seeds {
        running.spawn(async move { (seed, run(seed, bug).await) });
    }
    running.join_all().await
}

#[tokio::test(flavor = "multi_thread")]
async fn each_datagram_that_arrived_is_delivered_or_dropped_with_a_reason_and_the_others_are_lost_before()
 {
    let mut all = Seen::default();
    for (seed, ended) in run_all(SEEDS, Bug::None).await {
        let seen = ended.unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        all.overflowed += seen.overflowed;
        all.queue_full += seen.queue_full;
        all.stopped += seen.stopped;
        all.twice += seen.twice;
    }
    let happened = [all.overflowed, all.queue_full, all.stopped, all.twice];
    assert!(happened.iter().all(|times| *times > 0), "seeds without trouble: {all:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_deliberate_bug_is_found() {
    let bugs = [
        (Bug::Forgets, "on the ledger"),
        (Bug::Repeats, "on the ledger"),
        (Bug::Blind, "lost before"),
        (Bug::Counts, "lost before"),
        (Bug::Cuts, "came"),
        (Bug::Swaps, "came"),
    ];
    let tries = bugs.map(|(bug, by)| (bug, by, tokio::spawn(run_all(SEEDS_OF_BUG, bug))));
    for (bug, by, tried) in tries {
        let ended = tried.await.unwrap();
        let found: Vec<String> = ended.into_iter().filter_map(|(_, ended)| ended.err()).collect();
        assert!(found.iter().any(|what| what.contains(by)), "{bug:?}: {found:?}");
    }
}
