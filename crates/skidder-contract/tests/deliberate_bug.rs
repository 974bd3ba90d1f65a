//! The contract is tried on an output of a few lines: it keeps the contract, and with a deliberate bug it does not.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

use skidder_contract::{Manner, Place, Trial, keep, number};
use skidder_event::{Path, ValueRef};
use skidder_pipeline::{Delivery, Feed, Output, OutputFuture, TakeLimits};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// A request is a number of lines, and these; its answer is `taken` and the number.
struct Toy {
    address: String,
    /// Whether any answer is taken for a verdict: the deliberate bug.
    gullible: bool,
}

impl Toy {
    async fn send(&self, delivery: &Delivery) -> io::Result<u64> {
        let path = Path::parse("message").unwrap();
        let mut request = format!("{}\n", delivery.len());
        for row in delivery.rows.clone() {
            let Some(ValueRef::Str(text)) = delivery.batch.event(row as usize).get(&path) else {
                panic!("no message");
            };
            request += &format!("{}\n", String::from_utf8_lossy(text));
        }
        let mut stream = BufReader::new(TcpStream::connect(&self.address).await?);
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_line(&mut answer).await?;
        if answer == format!("taken {}\n", delivery.len())
            || self.gullible && answer.ends_with('\n')
        {
            return Ok(request.len() as u64);
        }
        Err(io::ErrorKind::InvalidData.into())
    }

    async fn work(self, feed: Feed) {
        let mut taken = Vec::new();
        let limits = TakeLimits { events: 100, bytes: usize::MAX };
        while feed.queue.take(limits, &mut taken).await {
            for delivery in taken.drain(..) {
                let bytes = loop {
                    match self.send(&delivery).await {
                        Ok(bytes) => break bytes,
                        Err(error) => feed.metrics.write_error(&self.address, error),
                    }
                    tokio::time::sleep(Duration::from_millis(1)).await;
                };
                feed.metrics.write_bytes.add(bytes);
                feed.metrics.acked.add(delivery.len() as u64);
                delivery.ticket.delivered(delivery.len() as u32);
            }
        }
    }
}

impl Output for Toy {
    fn kind(&self) -> &'static str {
        "toy"
    }

    fn run(self: Box<Self>, feed: Feed) -> OutputFuture {
        Box::pin(self.work(feed))
    }
}

struct Server {
    address: String,
    taken: Arc<Mutex<BTreeMap<usize, usize>>>,
}

impl Place for Server {
    fn address(&self) -> String {
        self.address.clone()
    }

    fn taken(&self) -> BTreeMap<usize, usize> {
        self.taken.lock().unwrap().clone()
    }
}

struct ToyTrial {
    gullible: bool,
}

impl Trial for ToyTrial {
    fn kind(&self) -> &'static str {
        "toy"
    }

    async fn place(&self, manner: Manner) -> Option<Box<dyn Place>> {
        let mut senseless: Vec<&[u8]> = match manner {
            Manner::Good => Vec::new(),
            Manner::ProvesNothing => vec![b"\n", b"welcome\n", b"taken 0\n", b"take"],
            _ => return None,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let taken = Arc::new(Mutex::new(BTreeMap::new()));
        let taking = Arc::clone(&taken);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let senseless = senseless.pop();
                let taking = Arc::clone(&taking);
                tokio::spawn(async move { drop(serve(stream, senseless, &taking).await) });
            }
        });
        Some(Box::new(Server { address, taken }))
    }

    fn output(&self, address: &str, _: Manner) -> Box<dyn Output> {
        Box::new(Toy { address: address.to_owned(), gullible: self.gullible })
    }
}

async fn serve(
    stream: TcpStream,
    senseless: Option<&[u8]>,
    taken: &Mutex<BTreeMap<usize, usize>>,
) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut lines = Vec::new();
    let mut text = String::new();
    stream.read_line(&mut text).await?;
    let Ok(count) = text.trim().parse::<usize>() else { return Ok(()) };
    for _ in 0..count {
        text.clear();
        if stream.read_line(&mut text).await? == 0 {
            return Ok(());
        }
        lines.push(number(&text));
    }
    if let Some(answer) = senseless {
        return stream.write_all(answer).await;
    }
    for line in lines {
        *taken.lock().unwrap().entry(line).or_default() += 1;
    }
    stream.write_all(format!("taken {count}\n").as_bytes()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_careful_output_keeps_the_contract() {
    keep(&ToyTrial { gullible: false }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_output_that_takes_any_answer_for_a_verdict_is_found() {
    let tried = tokio::spawn(async { keep(&ToyTrial { gullible: true }).await }).await;
    let panic = tried.unwrap_err().into_panic();
    let said = panic.downcast_ref::<String>().unwrap();
    assert!(said.contains("toy: ProvesNothing: lost [") && !said.contains("lost []"), "{said}");
}
