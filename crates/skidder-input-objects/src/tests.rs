//! Objects of a store in memory, which breaks connections, through a pipeline into an output that takes everything.

use crate::{
    Body, Contexts, Outcome, Range, ReadError, Reading, Store, StoreError, StoreFuture, Turns, read,
};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use skidder_contract::Bench;
use skidder_event::Map;
use skidder_input::{Input, InputFuture, Intake};
use skidder_input_file::SavedCursors;
use skidder_read::scan::ScanSettings;
use skidder_read::{
    BufferPool, DecoderPool, Expand, FilestreamSettings, InputContext, InputKind, Layout,
    ReadMetrics,
};
use skidder_testkit::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;

/// What the tests see of all connections.
#[derive(Default)]
struct Traffic {
    /// Bytes that were sent.
    sent: Mutex<u64>,
    /// Answers of the store, by their kind.
    answers: Mutex<BTreeMap<&'static str, u32>>,
}

/// An object in memory.
#[derive(Clone)]
struct Memory {
    content: Bytes,
    traffic: Arc<Traffic>,
    random: Arc<Mutex<Random>>,
    /// One in so many pieces is the last of its connection; 0 for none.
    breaks: u64,
    is_replaced: bool,
    /// Bytes that it has after the first answer, which breaks behind the half of that.
    shrinks_to: Option<usize>,
}

impl Memory {
    fn note(&self, what: &'static str) {
        *self.traffic.answers.lock().unwrap().entry(what).or_default() += 1;
    }

    fn breaks_now(&self) -> bool {
        self.breaks > 0 && self.random.lock().unwrap().one_in(self.breaks)
    }
}

impl Store for Memory {
    fn get(&self, range: Range) -> StoreFuture<'_, Box<dyn Body>> {
        Box::pin(async move {
            if self.is_replaced {
                return Err(StoreError::Changed);
            }
            if self.breaks_now() {
                self.note("refused");
                return Err(StoreError::Passing("busy".to_owned()));
            }
            self.note("given");
            let size = match self.shrinks_to {
                Some(size) if range.from > 0 => size,
                _ => self.content.len(),
            };
            let to = range.to.map_or(size, |to| (to as usize).min(size));
            let left = self.content.slice((range.from as usize).min(to)..to);
            Ok(Box::new(Answer { left, of: self.clone() }) as Box<dyn Body>)
        })
    }

    fn size(&self) -> Option<u64> {
        Some(self.content.len() as u64)
    }
}

struct Answer {
    left: Bytes,
    of: Memory,
}

impl Body for Answer {
    fn next(&mut self) -> StoreFuture<'_, Option<Bytes>> {
        Box::pin(async move {
            if self.left.is_empty() {
                return Ok(None);
            }
            let has_shrunk = self.of.shrinks_to.is_some_and(|size| self.left.len() <= size / 2);
            if has_shrunk || self.of.breaks_now() {
                self.of.note("broken");
                return Err(StoreError::Passing("the connection broke".to_owned()));
            }
            let count = 1 + self.of.random.lock().unwrap().below(60_000) as usize;
            let piece = self.left.split_to(count.min(self.left.len()));
            *self.of.traffic.sent.lock().unwrap() += piece.len() as u64;
            Ok(Some(piece))
        })
    }
}

/// An input that reads so many objects at once, in their order, and says how each ended.
struct Objects {
    stores: Vec<(String, Memory)>,
    ends: Ends,
    layout: Layout,
    at_once: usize,
}

/// How the objects ended, in the order in which they did.
type Ends = Arc<Mutex<Vec<Result<Outcome, String>>>>;

fn contexts(intake: &Intake) -> Arc<Contexts> {
    let lane = intake.lane().unwrap();
    let metrics = Arc::new(ReadMetrics::default());
    let cursors = SavedCursors::new(Arc::clone(lane.queue.settle()), Arc::clone(&lane.registry));
    let cursors: Arc<dyn skidder_read::Cursors> = Arc::new(cursors);
    let mut arriving = FilestreamSettings::new("test", ScanSettings::default());
    arriving.kind = InputKind::Objects("aws-s3");
    let whole = FilestreamSettings { final_line: true, read_once: true, ..arriving.clone() };
    let context = |settings| InputContext {
        settings,
        bind: Arc::clone(&lane.bind),
        cursors: Arc::clone(&cursors),
        fs: Arc::new(skidder_os::RealFs),
        metrics: Arc::clone(&metrics),
        buffers: Arc::new(BufferPool::default()),
        decoders: DecoderPool::new(2),
        rows_max: 800,
    };
    let turns = Arc::new(Turns::of_runtime());
    Arc::new(Contexts { arriving: context(arriving), whole: context(whole), turns })
}

impl Input for Objects {
    fn kind(&self) -> &'static str {
        "aws-s3"
    }

    fn has_cursors(&self) -> bool {
        true
    }

    fn run(self: Box<Self>, intake: Intake) -> InputFuture {
        Box::pin(async move {
            let contexts = contexts(&intake);
            let (mut reading, mut stores) = (JoinSet::new(), self.stores.into_iter());
            loop {
                while reading.len() < self.at_once
                    && let Some((name, store)) = stores.next()
                {
                    let path = format!("https://bucket.example/{name}");
                    let mut fields = Map::new();
                    fields.insert_path("aws.s3.object.key", &*name);
                    let object = Reading {
                        key: format!("bucket/{name}@etag"),
                        path: Arc::from(Path::new(&path)),
                        fields: Arc::new(fields),
                        store: Box::new(store),
                    };
                    let (intake, contexts) = (intake.clone(), Arc::clone(&contexts));
                    let layout = self.layout.clone();
                    reading.spawn(async move { read(&intake, &contexts, &layout, &object).await });
                }
                let Some(end) = reading.join_next().await else { break };
                let end = end.unwrap();
                if matches!(end, Err(ReadError::Stopped)) {
                    return Ok(());
                }
                self.ends.lock().unwrap().push(end.map_err(|error| error.to_string()));
            }
            intake.stopped().await;
            Ok(())
        })
    }
}

fn gzip(text: &str) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap().into()
}

fn memory(content: Bytes, breaks: u64) -> Memory {
    Memory {
        content,
        traffic: Arc::default(),
        random: Arc::new(Mutex::new(Random::new(7))),
        breaks,
        is_replaced: false,
        shrinks_to: None,
    }
}

fn lines(name: &str, count: usize) -> String {
    (0..count).fold(String::new(), |mut text, number| {
        writeln!(text, "{name} {number:06} {:x}", number * number).unwrap();
        text
    })
}

fn input(stores: Vec<(String, Memory)>) -> (Box<Objects>, Ends) {
    let ends = Ends::default();
    let of = Objects { stores, ends: Arc::clone(&ends), layout: Layout::Lines, at_once: 1 };
    (Box::new(of), ends)
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_read_whole_though_connections_break_and_are_known_later() {
    let directory = tempfile::tempdir().unwrap();
    let texts = [lines("plain", 50_000), lines("packed", 50_000)];
    let stores = || {
        let of = |content| memory(content, 12);
        vec![
            ("a.log".to_owned(), of(Bytes::from(texts[0].clone()))),
            ("b.log.gz".to_owned(), of(gzip(&texts[1]))),
            ("empty".to_owned(), of(Bytes::new())),
        ]
    };
    let all = stores();
    let broken = || {
        let count = |(_, store): &(String, Memory)| {
            store.traffic.answers.lock().unwrap().get("broken").copied().unwrap_or(0)
        };
        all.iter().map(count).sum::<u32>()
    };
    let (objects, ends) = input(all.clone());
    let mut bench = Bench::start(objects, directory.path());
    bench.until("all are read", |_| ends.lock().unwrap().len() == 3).await;
    bench.until("all came", |bench| bench.events.len() == 100_000).await;
    let expected: Vec<&str> = texts.iter().flat_map(|text| text.lines()).collect();
    assert_eq!(bench.messages(), expected);
    assert!(broken() > 0);
    let event = &bench.events[99_999];
    assert_eq!(event["log"]["file"]["path"], "https://bucket.example/b.log.gz");
    assert_eq!(event["aws"]["s3"]["object"]["key"], "b.log.gz");
    assert_eq!(event["input"]["type"], "aws-s3");
    assert_eq!(event["log"]["offset"], texts[1].rfind("packed 049999").unwrap());
    bench.stop().await;
    let (objects, ends) = input(stores());
    let mut bench = Bench::start(objects, directory.path());
    bench.until("all are known", |_| ends.lock().unwrap().len() == 3).await;
    assert_eq!(*ends.lock().unwrap(), [Ok(Outcome::Known), Ok(Outcome::Known), Ok(Outcome::Known)]);
    assert_eq!(bench.stop().await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_goes_on_where_it_was_settled_in_the_run_before() {
    let directory = tempfile::tempdir().unwrap();
    let text = lines("line", 400_000);
    let content = gzip(&text);
    let (mut all, mut sent) = (Vec::new(), 0);
    for run in 0..4 {
        let store = memory(content.clone(), 0);
        let (objects, ends) = input(vec![("a.gz".to_owned(), store.clone())]);
        let mut bench = Bench::start(objects, directory.path());
        let wanted = [90_000, 150_000, 60_000, usize::MAX][run];
        bench
            .until("some came", |bench| {
                bench.events.len() >= wanted || ends.lock().unwrap().len() == 1
            })
            .await;
        for event in bench.stop().await {
            all.push(event["message"].as_str().unwrap().to_owned());
        }
        sent += *store.traffic.sent.lock().unwrap();
    }
    assert_eq!(all.len(), 400_000);
    assert!(all.iter().eq(text.lines()));
    let ratio = sent as f64 / content.len() as f64;
    // What was on its way at a stop, and the way from a checkpoint.
    assert!(ratio < 2.5, "{ratio} of the object were sent");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_objects_at_once_share_what_has_arrived_while_the_output_is_stuck() {
    const OBJECTS: usize = 40;
    let directory = tempfile::tempdir().unwrap();
    const LINES: usize = 4_000;
    let text = |at| lines(&format!("{at:02} {}", "x".repeat(80)), LINES);
    let texts: Vec<String> = (0..OBJECTS).map(text).collect();
    let stores: Vec<(String, Memory)> = texts
        .iter()
        .enumerate()
        .map(|(at, text)| (format!("{at:02}.log"), memory(Bytes::from(text.clone()), 50)))
        .collect();
    let (mut objects, ends) = input(stores.clone());
    objects.at_once = OBJECTS;
    let mut bench = Bench::start(objects, directory.path());
    bench.is_stuck = true;
    let sent = || stores.iter().map(|(_, store)| *store.traffic.sent.lock().unwrap()).sum::<u64>();
    let (mut before, mut is_still) = (0, 0);
    while is_still < 10 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        is_still = if sent() == before && before > 0 { is_still + 1 } else { 0 };
        before = sent();
    }
    // The queue has 10,000 events, and two batches wait for it. An object that has its first share has one piece more.
    let waiting = 12_000 * 110 + OBJECTS as u64 * (60_000 + (4 << 20) / OBJECTS as u64);
    assert!(before <= waiting + waiting / 4, "{before} bytes were sent");
    assert!(ends.lock().unwrap().is_empty());
    bench.is_stuck = false;
    bench.until("all are read", |_| ends.lock().unwrap().len() == OBJECTS).await;
    bench.until("all came", |bench| bench.events.len() == OBJECTS * LINES).await;
    let mut messages = bench.messages();
    // Those of an object are in their order.
    messages.sort_by(|one, other| one[..2].cmp(&other[..2]));
    assert!(messages.iter().copied().eq(texts.iter().flat_map(|text| text.lines())));
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_was_replaced_or_refused_is_an_error_and_stops_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let text = lines("line", 10);
    let replaced = Memory { is_replaced: true, ..memory(Bytes::new(), 0) };
    let damaged = {
        let mut content = gzip(&lines("damaged", 20_000)).to_vec();
        let half = content.len() / 2;
        content[half..].fill(0xff);
        memory(content.into(), 0)
    };
    let (objects, ends) = input(vec![
        ("replaced".to_owned(), replaced),
        ("damaged.gz".to_owned(), damaged),
        ("good".to_owned(), memory(Bytes::from(text.clone()), 0)),
    ]);
    let mut bench = Bench::start(objects, directory.path());
    bench.until("all ended", |_| ends.lock().unwrap().len() == 3).await;
    {
        let ends = ends.lock().unwrap();
        assert_eq!(ends[0], Err("the object was replaced by another one".to_owned()));
        assert!(matches!(ends[1], Ok(Outcome::Damaged(..))), "{ends:?}");
        assert!(matches!(ends[2], Ok(Outcome::Read(_))), "{ends:?}");
    }
    let good = text.lines().count();
    bench
        .until("the good ones came", |bench| {
            bench.messages().iter().filter(|message| message.starts_with("line")).count() == good
        })
        .await;
    let of_damaged = bench.messages().iter().filter(|it| it.starts_with("damaged")).count();
    assert!((1_000..20_000).contains(&of_damaged), "{of_damaged}");
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_is_not_at_its_end_when_a_later_answer_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let text = lines("line", 20_000);
    let shrunk =
        Memory { shrinks_to: Some(text.len() / 3), ..memory(Bytes::from(text.clone()), 0) };
    let (objects, ends) = input(vec![("shrunk".to_owned(), shrunk)]);
    let mut bench = Bench::start(objects, directory.path());
    bench.until("it ended", |_| ends.lock().unwrap().len() == 1).await;
    let end = ends.lock().unwrap().pop();
    let Some(Err(error)) = end else { panic!("{end:?}") };
    assert!(error.contains(&format!("of {} bytes", text.len())), "{error}");
    let whole: BTreeSet<&str> = text.lines().collect();
    assert!(bench.messages().iter().all(|message| whole.contains(message)), "a part of a line");
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn elements_of_a_list_are_events_and_what_is_cut_off_is_damaged() {
    let directory = tempfile::tempdir().unwrap();
    let all: Vec<String> = (0..20_000)
        .map(|number| format!("{{\n  \"n\": {number}, \"of\": [\"]}}\", {{}}]\n}}"))
        .collect();
    let text = format!("{{\"a\": [1], \"Records\": [{}]}}\n", all.join(","));
    let stores = vec![
        ("a.json.gz".to_owned(), memory(gzip(&text), 12)),
        ("b.json".to_owned(), memory(Bytes::from(text[..text.len() - 3].to_owned()), 12)),
    ];
    let (mut objects, ends) = input(stores);
    objects.layout = Layout::Json(Expand::parse("Records"));
    let mut bench = Bench::start(objects, directory.path());
    bench.until("all are read", |_| ends.lock().unwrap().len() == 2).await;
    bench.until("all came", |bench| bench.events.len() == 40_000).await;
    let outcomes = ends.lock().unwrap().clone();
    assert!(
        matches!(&outcomes[..], [Ok(Outcome::Read(_)), Ok(Outcome::Damaged(_, why))] if why.contains("has no end")),
        "{outcomes:?}"
    );
    let events = bench.stop().await;
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event["message"], all[number % 20_000]);
    }
    let list = text.find("[{").unwrap();
    let comma = text.find("},{").unwrap() + 1;
    let (first, second) = (&events[0]["log"]["offset"], &events[1]["log"]["offset"]);
    assert_eq!((first, second), (&1.into(), &(comma - list).into()), "as Filebeat counts them");
}
