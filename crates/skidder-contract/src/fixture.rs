//! A source of numbered lines, and the check of where each one ended.

use skidder_event::{Base, Batch, Map, Provenance, Row, SourceId, Text};
use skidder_os::{Clock, RealFs, SystemClock};
use skidder_pipeline::{
    DeadLetters, DeadLettersLimits, Feed, Output, OutputMetrics, Queue, QueueLimits, Settle,
};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// A test that takes longer than this has failed.
const PATIENCE: Duration = Duration::from_mins(1);

/// The text of a line by its number.
pub fn line(number: usize) -> String {
    format!("line {number} {}", "x".repeat(number % 50))
}

/// Lines of an object of [`objects`].
pub const OBJECT_LINES: usize = 700;

/// What says that it is gzip, and is not.
pub const NO_GZIP: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xffno gzip at all";

/// The objects of a store that hold these lines: name and content.
pub fn objects(lines: Range<usize>) -> Vec<(String, String)> {
    let starts = lines.clone().step_by(OBJECT_LINES);
    let object = |start: usize| {
        let end = lines.end.min(start + OBJECT_LINES);
        let text = (start..end).fold(String::new(), |mut text, number| {
            writeln!(text, "{}", line(number)).unwrap();
            text
        });
        (format!("{start:08}"), text)
    };
    starts.map(object).collect()
}

/// The number of a line.
pub fn number(text: &str) -> usize {
    text.split(' ').nth(1).unwrap().parse().unwrap()
}

/// Runs the check of an output (`test output`): whether it is content, and its lines.
pub async fn check_report(
    check: impl AsyncFnOnce(&mut (dyn FnMut(&str) + Send)) -> bool,
) -> (bool, String) {
    let mut lines = String::new();
    let good = check(&mut |line| {
        lines.push_str(line);
        lines.push('\n');
    })
    .await;
    (good, lines)
}

/// Everything around one output.
pub struct Fixture {
    /// Where the lines are put in.
    pub queue: Queue,
    /// The ledger.
    pub settle: Arc<Settle>,
    /// What the output gets.
    pub feed: Feed,
    /// Where the dead letters are.
    pub directory: tempfile::TempDir,
    /// Lines put in so far.
    pub lines: usize,
    /// Of the case, for messages.
    pub name: String,
}

impl Default for Fixture {
    fn default() -> Self {
        Self::new()
    }
}

impl Fixture {
    /// Dead letters as usual.
    pub fn new() -> Self {
        Self::with_dead_letters(DeadLettersLimits::BYTES)
    }

    /// With dead letters of at most this size; 0 turns them off.
    pub fn with_dead_letters(bytes: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let settle = Settle::new();
        let limits = QueueLimits {
            events: usize::MAX,
            bytes: usize::MAX,
            flush_min_events: 0,
            flush_timeout: Duration::from_millis(10),
        };
        let queue = Queue::new(limits, Arc::clone(&settle));
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let dead_letters = (bytes > 0).then(|| {
            let limits = DeadLettersLimits { bytes };
            let clock = Arc::clone(&clock);
            Arc::new(DeadLetters::new(Arc::new(RealFs), clock, directory.path(), limits))
        });
        let feed = Feed {
            queue: queue.clone(),
            dead_letters,
            metrics: Arc::new(OutputMetrics::default()),
            clock,
        };
        Self { queue, settle, feed, directory, lines: 0, name: String::new() }
    }

    /// Puts `count` more numbered lines into the queue, `size` in a batch.
    pub fn push(&mut self, count: usize, size: usize) {
        let base = Arc::new(Base::new(&Map::new(), &Map::new()));
        let end = self.lines + count;
        while self.lines < end {
            let size = size.min(end - self.lines);
            let batch = batch(self.lines, size, Arc::clone(&base));
            self.queue.push(batch).expect("the queue is open");
            self.lines += size;
        }
    }

    /// Closes the queue and runs the output until it ends.
    pub async fn run(&self, output: impl Output + 'static) {
        self.run_boxed(Box::new(output)).await;
    }

    /// The same with an output of any kind.
    pub async fn run_boxed(&self, output: Box<dyn Output>) {
        self.queue.close();
        let running = output.run(self.feed.clone());
        let watched = async {
            tokio::pin!(running);
            loop {
                let pause = tokio::time::sleep(Duration::from_millis(1));
                tokio::select! {
                    () = &mut running => return,
                    () = pause => assert!(self.settle.total().adds_up(), "{:?}", self.settle.total()),
                }
            }
        };
        tokio::time::timeout(PATIENCE, watched)
            .await
            .unwrap_or_else(|_| panic!("{}: the output does not end", self.name));
    }

    /// Numbers of the lines in the dead letters with the status of each.
    pub fn dead_letters(&self) -> BTreeMap<usize, u64> {
        let path = self.directory.path().join(DeadLetters::FILE_NAME);
        let Ok(text) = std::fs::read_to_string(path) else { return BTreeMap::new() };
        let mut found = BTreeMap::new();
        for letter in text.lines() {
            let letter: serde_json::Value = serde_json::from_str(letter).unwrap();
            let message = letter["event"]["message"].as_str().unwrap();
            let before = found.insert(number(message), letter["status"].as_u64().unwrap());
            assert!(before.is_none(), "a line is in the dead letters twice");
        }
        found
    }

    /// The same for a far side that may have taken lines whose verdict was lost on the way: these come again.
    pub fn judge_repeated(&self, taken: &BTreeMap<usize, usize>) {
        self.judge(&taken.keys().map(|&number| (number, 1)).collect());
    }

    /// Checks that each line is in exactly one place, and that the ledger says the same.
    pub fn judge(&self, delivered: &BTreeMap<usize, usize>) {
        let dead = self.dead_letters();
        let total = self.settle.total();
        assert!(total.adds_up() && total.in_flight() == 0, "{total:?}");
        let dropped = total.dropped().total();
        let (mut lost, mut twice) = (Vec::new(), Vec::new());
        for number in 0..self.lines {
            match delivered.get(&number).copied().unwrap_or(0)
                + usize::from(dead.contains_key(&number))
            {
                0 => lost.push(number),
                1 => {}
                _ => twice.push(number),
            }
        }
        assert!(
            lost.len() as u64 == dropped && twice.is_empty(),
            "{}: lost {lost:?}, twice {twice:?}",
            self.name
        );
        assert!(delivered.keys().all(|&number| number < self.lines), "lines from nowhere");
        assert_eq!(total.delivered(), delivered.len() as u64);
        assert_eq!(total.dead_lettered(), dead.len() as u64);
        assert_eq!(total.read(), self.lines as u64);
        assert_eq!(self.feed.metrics.active.get(), 0);
    }
}

/// `count` lines from number `first` on.
pub fn batch(first: usize, count: usize, base: Arc<Base>) -> Batch {
    let mut bytes = Vec::new();
    let mut rows = Vec::new();
    for number in first..first + count {
        let line = line(number);
        let text = Text { start: bytes.len() as u32, len: line.len() as u32 };
        rows.push(Row::new(bytes.len() as u64, text.len + 1, text, 1_767_323_045_000_000_000));
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
    }
    let provenance = Provenance::new(SourceId(1), 0..bytes.len() as u64);
    let mut batch = Batch::new(bytes, true, base, provenance);
    for row in rows {
        batch.push(row);
    }
    batch
}
