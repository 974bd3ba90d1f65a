//! A disk queue on a simulated disk, with numbered lines and the ledger as judges.

mod damage;
mod encrypted;
mod faults;
mod looking;
mod versions;
mod ways;

use super::*;
use crate::testing;
use skidder_event::{Base, Batch, Map, Provenance, Row, SourceId, Text};
use skidder_testkit::{SimClock, SimFs};
use std::collections::BTreeMap;

const DIRECTORY: &str = "/data/diskqueue";
const ONE: SourceId = SourceId(1);

fn settings() -> DiskQueueSettings {
    DiskQueueSettings {
        path: DIRECTORY.into(),
        max_size: 0,
        segment_size: 1500,
        read_ahead: 1000,
        write_ahead: 1000,
        retry_interval: DiskQueueSettings::RETRY_INTERVAL,
        max_retry_interval: DiskQueueSettings::MAX_RETRY_INTERVAL,
        key: None,
    }
}

/// The same, encrypted if there is a key.
fn keyed(key: Option<&DiskQueueKey>) -> DiskQueueSettings {
    DiskQueueSettings { key: key.cloned(), ..settings() }
}

fn key(number: u8) -> DiskQueueKey {
    DiskQueueKey::new([number; 32])
}

/// One life of a program with a queue.
struct Life {
    settle: Arc<Settle>,
    queue: Arc<DiskQueue>,
    opened: DiskQueueOpened,
    /// How often each line was delivered.
    delivered: BTreeMap<u64, u64>,
}

impl Life {
    fn new(fs: &SimFs) -> Self {
        Self::with(fs, settings()).expect("the queue can be opened")
    }

    fn with(fs: &SimFs, settings: DiskQueueSettings) -> Result<Self, DiskQueueError> {
        let settle = Settle::new();
        settle.begin(ONE, "key", testing::meta("/logs/one"), testing::at_zero(), false);
        let (queue, opened) = DiskQueue::open(Arc::new(fs.clone()), settings, [7; 16], &settle)?;
        Ok(Self { settle, queue, opened, delivered: BTreeMap::new() })
    }

    /// Reads so many lines from a number on; the ledger is right before and after.
    fn read(&self, lines: std::ops::Range<u64>) {
        self.queue.front().push(numbered(lines)).expect("the queue is open");
        self.check();
    }

    /// Makes all durable that was read; returns whether the disk took it.
    fn write(&self) -> io::Result<DiskStep> {
        let mut last = DiskStep::Idle;
        loop {
            let step = self.queue.write_step();
            self.check();
            match step? {
                DiskStep::Done => last = DiskStep::Done,
                DiskStep::Full => return Ok(DiskStep::Full),
                _ => return Ok(last),
            }
        }
    }

    fn write_all(&self) {
        assert!(matches!(self.write(), Ok(DiskStep::Done)), "the disk takes it");
    }

    /// Brings everything to the output, which takes it.
    fn deliver(&mut self) -> io::Result<()> {
        let mut taken = Vec::new();
        loop {
            let step = self.queue.read_step()?;
            self.check();
            while self.queue.back().try_take(TakeLimits { events: 3, bytes: 1 << 20 }, &mut taken) {
            }
            for delivery in taken.drain(..) {
                self.take(&delivery);
                delivery.ticket.delivered(delivery.len() as u32);
            }
            self.check();
            if step == DiskStep::Idle {
                return Ok(());
            }
        }
    }

    fn deliver_all(&mut self) {
        self.deliver().expect("the disk can be read");
        self.queue.maintain();
    }

    fn take(&mut self, delivery: &Delivery) {
        for row in &delivery.batch.rows()[delivery.rows.start as usize..delivery.rows.end as usize]
        {
            let text = String::from_utf8_lossy(delivery.batch.text(row.message)).into_owned();
            let number = text.split(' ').nth(1).and_then(|number| number.parse().ok());
            *self.delivered.entry(number.expect("a numbered line")).or_default() += 1;
        }
    }

    fn check(&self) {
        let total = self.settle.total();
        assert!(total.adds_up(), "{total:?}");
        let one = self.settle.status(ONE).expect("it is known").ledger;
        assert!(one.adds_up(), "{one:?}");
    }

    /// Up to which line the cursor stands.
    fn cursor(&self) -> u64 {
        self.settle.cursor(ONE).expect("it is known").offset
    }

    fn lost(&self) -> u64 {
        self.settle.total().dropped().get(skidder_event::DropReason::QueueDamaged)
    }

    /// The numbers of lines that were delivered, each once.
    fn once(&self) -> Vec<u64> {
        assert!(self.delivered.values().all(|&times| times == 1), "{:?}", self.delivered);
        self.delivered.keys().copied().collect()
    }
}

/// Lines with their numbers; offsets count lines.
fn numbered(lines: std::ops::Range<u64>) -> Batch {
    let mut bytes = Vec::new();
    let mut rows = Vec::new();
    for number in lines.clone() {
        let line = format!("line {number} of the log");
        let text = Text { start: bytes.len() as u32, len: line.len() as u32 };
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
        rows.push(Row::new(number, text.len + 1, text, number as i64));
    }
    let provenance = Provenance::new(ONE, lines);
    let base = Arc::new(Base::new(&Map::new(), &Map::new()));
    let mut batch = Batch::new(bytes, true, base, provenance);
    for row in rows {
        batch.push(row);
    }
    batch
}

fn disk() -> SimFs {
    SimFs::new(&SimClock::default())
}

/// The segments that are there, in order.
fn segments(fs: &SimFs) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs
        .peek_names(DIRECTORY)
        .into_iter()
        .map(|name| Path::new(DIRECTORY).join(name))
        .filter(|path| path.extension().is_some_and(|ending| ending == "skq"))
        .collect();
    paths.sort();
    paths
}
