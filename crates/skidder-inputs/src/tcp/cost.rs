//! What connections and lines cost. Not a test: `SKIDDER_COST=1 cargo test --release -p skidder-inputs --lib cost -- --ignored --nocapture
//! --test-threads 1` prints the numbers.

use super::tests::read_text;
use crate::testing::Bench;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use skidder_net::Sockets;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};

fn is_wanted() -> bool {
    std::env::var_os("SKIDDER_COST").is_some()
}

fn start(settings: &str) -> (Bench, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let sockets = Sockets::default();
    sockets.adopt(listener.into(), "").unwrap();
    let (read, problems) = read_text(&format!("{{host: '{address}'{settings}}}"), &sockets);
    assert_eq!(problems, "");
    (Bench::start(Box::new(read.unwrap()), 3200), address)
}

/// Resident bytes of this process.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn cost_of_connections() {
    if !is_wanted() {
        return;
    }
    let most = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).unwrap();
    let (idle, active) = (5000, 500);
    let (mut bench, address) = start("");
    let before = resident();
    let mut clients = Vec::new();
    for count in 1..=idle + active {
        clients.push(TcpStream::connect(address).unwrap());
        let open = || bench.input.metrics().open.get();
        while open() + 100 < count as u64 {
            tokio::task::yield_now().await;
        }
    }
    let all = (idle + active) as u64;
    bench.until("all are open", |bench| bench.input.metrics().open.get() == all).await;
    let opened = resident();
    let line = "x".repeat(239) + "\n";
    let mut received = 0;
    for round in 0..20 {
        for client in &mut clients[idle..] {
            client.write_all(line.as_bytes()).unwrap();
        }
        while received < active * (round + 1) {
            received += bench.take_unseen();
            tokio::task::yield_now().await;
        }
    }
    let after = resident();
    let each = |bytes: u64| (bytes.saturating_sub(before)) / all;
    println!("{idle} idle and {active} active connections, RSS a connection:");
    println!(
        "open: {} bytes; after 20 lines on each active one: {} bytes",
        each(opened),
        each(after)
    );
    drop(clients);
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn cost_of_lines() {
    if !is_wanted() {
        return;
    }
    for settings in ["", ", framing: rfc6587"] {
        const LINES: usize = 4_000_000;
        let (mut bench, address) = start(settings);
        let begun = seconds(ClockId::ProcessCPUTime);
        let is_counted = !settings.is_empty();
        let client = std::thread::spawn(move || {
            let line = "x".repeat(239);
            let line = if is_counted { format!("239 {line}") } else { format!("{line}\n") };
            let lines = line.repeat(1000);
            let mut stream = TcpStream::connect(address).unwrap();
            let begun = seconds(ClockId::ThreadCPUTime);
            for _ in 0..LINES / 1000 {
                stream.write_all(lines.as_bytes()).unwrap();
            }
            seconds(ClockId::ThreadCPUTime) - begun
        });
        let mut received = 0;
        while received < LINES {
            received += bench.take_unseen();
            tokio::time::sleep(std::time::Duration::from_micros(200)).await;
        }
        let client = client.join().unwrap();
        let all = seconds(ClockId::ProcessCPUTime) - begun;
        let each = (all - client) / LINES as f64 * 1e9;
        println!(
            "{LINES} lines of 240 bytes{settings}: {each:.0} ns CPU a line, the client's {client:.2} s not counted"
        );
        bench.stop().await;
    }
}
