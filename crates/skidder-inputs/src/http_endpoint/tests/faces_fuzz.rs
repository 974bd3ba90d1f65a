//! Bodies of each face with damage, from seeds: each gets an answer, what is refused is no event, and the input goes on.
//! `SKIDDER_SEED=17 cargo test -p skidder-inputs --lib http_endpoint::tests::faces_fuzz` repeats a round; `cargo xtask fuzz`
//! runs more of them.

use super::faces::{ELASTICSEARCH, LOKI, OTLP, SPLUNK};
use super::grpc::GRPC;
use super::*;
use skidder_testkit::{Random, rounds};

/// Rounds of the ordinary test run, for each face.
const ROUNDS: u64 = 300;

/// The body of a request of a few lines, damaged, with its length put right.
fn damaged(dialect: Dialect, random: &mut Random) -> Vec<u8> {
    let lines: Vec<usize> = (0..random.below(5) as usize).collect();
    let request = (dialect.request)(&lines);
    let end = if dialect.is_grpc {
        0
    } else {
        request.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4
    };
    let head = String::from_utf8(request[..end].to_vec()).unwrap();
    let mut body = request[end..].to_vec();
    // Snappy hides what is in it: damage both.
    let is_packed = dialect.settings == LOKI.settings && random.below(2) == 0;
    if is_packed {
        body = snap::raw::Decoder::new().decompress_vec(&body).unwrap();
    }
    for _ in 0..random.below(4) {
        let at = random.below(body.len() as u64 + 1) as usize;
        match random.below(4) {
            0 => body.truncate(at),
            1 => body.insert(at, random.below(256) as u8),
            2 if at < body.len() => body[at] ^= 1 << random.below(8),
            _ => {
                let piece = body[at..].to_vec();
                body.extend(piece);
            }
        }
    }
    if is_packed {
        body = snap::raw::Encoder::new().compress_vec(&body).unwrap();
    }
    if dialect.is_grpc {
        // The length of the frame is right more often than not.
        if body.len() >= 5 && random.below(4) > 0 {
            let length = body.len() as u32 - 5;
            body[1..5].copy_from_slice(&length.to_be_bytes());
        }
        return body;
    }
    let line = head.lines().find(|line| line.starts_with("Content-Length")).unwrap();
    let head = head.replace(line, &format!("Content-Length: {}", body.len()));
    [head.into_bytes(), body].concat()
}

/// Documents of an answer that were taken; `None` if the answer does not say how many.
fn taken(answered: &Answered) -> Option<usize> {
    let answer: Value = serde_json::from_str(&answered.body).ok()?;
    let items = answer["items"].as_array()?;
    let is_taken = |item: &&Value| {
        item.as_object().into_iter().flatten().any(|(_, result)| result["status"] == 201)
    };
    Some(items.iter().filter(is_taken).count())
}

async fn fuzz(dialect: Dialect) {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, dialect.settings, &sockets), 10_000);
    let mut requests = Vec::new();
    rounds(ROUNDS, |seed, random| requests.push((seed, damaged(dialect, random))));
    let (mut accepted, mut refused) = (0, 0);
    for (seed, request) in requests {
        let asking = tokio::spawn(async move { exchange_as(dialect, address, &request).await });
        bench.until("an answer", |_| asking.is_finished()).await;
        let answered = asking.await.unwrap();
        bench.take();
        let came = bench.events.drain(..).count();
        let what = format!("SKIDDER_SEED={seed}: {answered:?}, {came} events");
        match (answered.status, answered.header("grpc-status")) {
            (200 | 204, "" | "0") => accepted += 1,
            (400 | 413, "") | (200, "3") => {
                refused += 1;
                assert_eq!(came, 0, "{what}");
            }
            _ => panic!("{what}"),
        }
        if let Some(taken) = taken(&answered) {
            assert_eq!(came, taken, "{what}");
        }
    }
    let is_single = std::env::var_os("SKIDDER_SEED").is_some();
    assert!(is_single || (accepted > 10 && refused > 10), "{accepted} {refused}");
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_documents_of_elasticsearch_are_refused_one_by_one() {
    fuzz(ELASTICSEARCH).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_events_of_splunk_are_refused() {
    fuzz(SPLUNK).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_pushes_of_loki_are_refused() {
    fuzz(LOKI).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_messages_of_grpc_are_refused() {
    fuzz(GRPC).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_records_of_otlp_are_refused() {
    fuzz(OTLP).await;
}
