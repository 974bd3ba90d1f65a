//! A bucket in memory, listed in pages of two objects.

use super::*;
use crate::{
    AfterFirst, Body, First, Range, Reading, Selector, Sent, Store, StoreError, StoreFuture,
    registry_name, registry_prefix,
};
use bytes::Bytes;
use regex::bytes::Regex;
use skidder_contract::Bench;
use skidder_event::Map;
use skidder_input::{Input, InputFuture, InputState};
use skidder_os::RealFs;
use skidder_read::scan::ScanSettings;
use skidder_read::{FilestreamSettings, InputKind};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

const SECOND: i64 = 1_000_000_000;

#[derive(Clone, Default)]
struct Put {
    version: u64,
    seconds: i64,
    content: Bytes,
}

/// What there is, and what was asked.
#[derive(Default)]
struct Shelf {
    objects: Mutex<BTreeMap<String, Put>>,
    /// Objects that may not be read.
    locked: Mutex<BTreeSet<String>>,
    /// The next pages fail.
    failures: Mutex<Vec<PageError>>,
    begun: Mutex<Vec<String>>,
    copied: Mutex<Vec<String>>,
    has_backup: bool,
    /// A page behind the first one names itself as the next one.
    repeats_pages: AtomicBool,
}

impl Shelf {
    fn put(&self, key: &str, seconds: i64, content: &str) {
        let mut objects = self.objects.lock().unwrap();
        let put = objects.entry(key.to_owned()).or_default();
        let content = Bytes::copy_from_slice(content.as_bytes());
        *put = Put { version: put.version + 1, seconds, content };
    }

    fn begun(&self) -> Vec<String> {
        let mut begun = std::mem::take(&mut *self.begun.lock().unwrap());
        begun.sort();
        begun
    }
}

#[derive(Clone)]
struct Named(String);

impl Wanted for Named {
    fn key(&self) -> &str {
        &self.0
    }

    fn bucket(&self) -> String {
        "shelf".to_owned()
    }
}

struct Whole(Bytes);

impl Body for Whole {
    fn next(&mut self) -> StoreFuture<'_, Option<Bytes>> {
        let all = std::mem::take(&mut self.0);
        Box::pin(async move { Ok((!all.is_empty()).then_some(all)) })
    }
}

impl Store for Bytes {
    fn get(&self, range: Range) -> StoreFuture<'_, Box<dyn Body>> {
        let to = range.to.map_or(self.len(), |to| (to as usize).min(self.len()));
        let part = self.slice(range.from as usize..to);
        Box::pin(async move { Ok(Box::new(Whole(part)) as Box<dyn Body>) })
    }
}

impl Cloud for Shelf {
    type Wanted = Named;

    fn begin<'a>(&'a self, wanted: &'a Named, selector: usize) -> StoreFuture<'a, First> {
        Box::pin(async move {
            let key = &wanted.0;
            self.begun.lock().unwrap().push(key.clone());
            if self.locked.lock().unwrap().contains(key) {
                return Err(StoreError::Refused("locked".to_owned()));
            }
            let found = self.objects.lock().unwrap().get(key).cloned();
            let put = found.ok_or(StoreError::Gone)?;
            let version = put.version.to_string();
            let mut fields = Map::new();
            fields.insert_path("shelf.selector", selector.to_string());
            let first = Box::new(Whole(put.content.clone()));
            let store = AfterFirst::new(put.content.len() as u64, first, put.content);
            let reading = Reading {
                key: registry_name("shelf", key, &version),
                path: Arc::from(Path::new(key)),
                fields: Arc::new(fields),
                store: Box::new(store),
            };
            Ok(First { reading, version, content_type: String::new() })
        })
    }

    fn has_backup(&self) -> bool {
        self.has_backup
    }

    fn back_up<'a>(
        &'a self,
        sent: &'a Sent<Named>,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>> {
        Box::pin(async {
            self.copied.lock().unwrap().push(format!("{}@{}", sent.wanted.0, sent.version));
            Ok(())
        })
    }
}

struct Pages(Arc<Shelf>);

impl Bucket for Pages {
    type Cloud = Shelf;

    fn name(&self) -> String {
        "shelf".to_owned()
    }

    fn registry_prefix(&self) -> String {
        registry_prefix("shelf", "")
    }

    fn page<'a>(&'a mut self, token: Option<&'a str>) -> PageFuture<'a, Named> {
        Box::pin(async move {
            if let Some(failure) = self.0.failures.lock().unwrap().pop() {
                return Err(failure);
            }
            let all = self.0.objects.lock().unwrap();
            let behind = |key: &str| token.is_none_or(|token| key > token);
            let mut left = all.iter().filter(|(key, _)| behind(key));
            let listed = |(key, put): (&String, &Put)| Listed {
                name: registry_name("shelf", key, &put.version.to_string()),
                modified: Some(Timestamp(put.seconds * SECOND)),
                wanted: Named(key.clone()),
            };
            let objects: Vec<_> = left.by_ref().take(2).map(listed).collect();
            let mut next = left.next().and(objects.last()).map(|last| last.wanted.0.clone());
            if self.0.repeats_pages.load(Ordering::Relaxed) {
                next = token.map(str::to_owned).or(next);
            }
            Ok(Page { objects, next })
        })
    }
}

/// An input that lists one shelf.
struct Lister {
    shelf: Arc<Shelf>,
    settings: PollSettings,
    patterns: Vec<&'static str>,
}

impl Input for Lister {
    fn kind(&self) -> &'static str {
        "shelf"
    }

    fn has_cursors(&self) -> bool {
        true
    }

    fn run(self: Box<Self>, intake: Intake) -> InputFuture {
        Box::pin(async move {
            let mut reading = FilestreamSettings::new("", ScanSettings::default());
            reading.kind = InputKind::Objects("shelf");
            let selector = |patterns| Selector {
                patterns,
                content_type: None,
                json_types: &[],
                maybe_json_types: &[],
                expand: skidder_read::Expand::default(),
                decoding: None,
                reading: reading.clone(),
            };
            let pattern = |text: &&str| selector(vec![Regex::new(text).unwrap()]);
            let selectors: Vec<Selector> = match &self.patterns[..] {
                [] => vec![selector(Vec::new())],
                some => some.iter().map(pattern).collect(),
            };
            let fs = Arc::new(RealFs);
            let shelf = Arc::clone(&self.shelf);
            let objects = Objects::new(intake.clone(), shelf, selectors, fs)?;
            let poller = Poller::new(objects, Pages(self.shelf), self.settings);
            poll(&intake, vec![poller]).await;
            Ok(())
        })
    }
}

fn settings() -> PollSettings {
    PollSettings {
        interval: Duration::from_millis(20),
        repeats: true,
        start: None,
        ignore_older: None,
        workers: 3,
    }
}

#[expect(clippy::unnecessary_box_returns, reason = "as inputs are started")]
fn lister(shelf: &Arc<Shelf>, settings: PollSettings) -> Box<Lister> {
    Box::new(Lister { shelf: Arc::clone(shelf), settings, patterns: Vec::new() })
}

fn sorted(bench: &Bench) -> Vec<String> {
    let mut all: Vec<String> = bench.messages().into_iter().map(str::to_owned).collect();
    all.sort();
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn each_object_of_all_pages_is_read_once_in_all_runs() {
    let directory = tempfile::tempdir().unwrap();
    let shelf = Arc::new(Shelf::default());
    for number in 0..5 {
        shelf.put(&format!("o{number}"), 1, &format!("line {number}\n"));
    }
    let mut bench = Bench::start(lister(&shelf, settings()), directory.path());
    bench.until("all came", |bench| bench.events.len() == 5).await;
    // Another content under the same name is another object.
    shelf.put("o1", 2, "line 5\n");
    bench.until("the new one came", |bench| bench.events.len() == 6).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let lines = ["line 0", "line 1", "line 2", "line 3", "line 4", "line 5"];
    assert_eq!(sorted(&bench), lines);
    assert_eq!(shelf.begun(), ["o0", "o1", "o1", "o2", "o3", "o4"]);
    bench.stop().await;
    let mut bench = Bench::start(lister(&shelf, settings()), directory.path());
    shelf.put("o9", 3, "line 9\n");
    bench.until("the new one came", |bench| bench.events.len() == 1).await;
    bench.stop().await;
    assert_eq!(shelf.begun(), ["o9"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn old_objects_and_those_that_no_selector_finds_are_not_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let shelf = Arc::new(Shelf::default());
    for (key, seconds) in [("a.log", 10), ("b.log", 11), ("c.txt", 12), ("d.gif", 12)] {
        shelf.put(key, seconds, &format!("{key}\n"));
    }
    let settings = PollSettings { start: Some(Timestamp(10 * SECOND)), ..settings() };
    let mut input = lister(&shelf, settings);
    input.patterns = vec!["log$", "txt$"];
    let mut bench = Bench::start(input, directory.path());
    bench.until("both came", |bench| bench.events.len() == 2).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(sorted(&bench), ["b.log", "c.txt"]);
    let selectors = bench.events.iter().map(|event| event["shelf"]["selector"].clone());
    let mut selectors: Vec<_> = selectors.collect();
    selectors.sort_by_key(ToString::to_string);
    assert_eq!(selectors, ["0", "1"]);
    bench.stop().await;
    assert_eq!(shelf.begun(), ["b.log", "c.txt"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_fails_holds_up_no_other_and_is_tried_again() {
    let directory = tempfile::tempdir().unwrap();
    let shelf = Arc::new(Shelf::default());
    for key in ["a", "b", "c"] {
        shelf.put(key, 1, &format!("{key}\n"));
    }
    shelf.locked.lock().unwrap().insert("b".to_owned());
    let mut bench = Bench::start(lister(&shelf, settings()), directory.path());
    bench.until("the others came", |bench| bench.events.len() == 2).await;
    bench.until("it was tried again", |bench| bench.input.metrics().errors.get() >= 2).await;
    shelf.locked.lock().unwrap().clear();
    bench.until("it came", |bench| bench.events.len() == 3).await;
    assert_eq!(sorted(&bench), ["a", "b", "c"]);
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_fails_is_trouble_until_it_comes() {
    let directory = tempfile::tempdir().unwrap();
    let shelf = Arc::new(Shelf::default());
    shelf.put("a", 1, "a\n");
    let failed = PageError::Failed("no right to list".to_owned());
    *shelf.failures.lock().unwrap() = vec![failed, PageError::Elsewhere];
    let mut bench = Bench::start(lister(&shelf, settings()), directory.path());
    bench.trouble("no right to list").await;
    bench.until("it came", |bench| bench.events.len() == 1).await;
    bench.no_trouble().await;
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_is_listed_once_ends_the_input_behind_its_copies() {
    let directory = tempfile::tempdir().unwrap();
    let shelf = Arc::new(Shelf { has_backup: true, ..Shelf::default() });
    for key in ["a", "b", "c"] {
        shelf.put(key, 1, &format!("{key}\n"));
    }
    let settings = PollSettings { repeats: false, ..settings() };
    let mut bench = Bench::start(lister(&shelf, settings), directory.path());
    bench.is_stuck = true;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(shelf.copied.lock().unwrap().is_empty(), "nothing is settled");
    bench.is_stuck = false;
    bench.until("it ends", |bench| bench.input.state() == InputState::Ended).await;
    let mut copied = shelf.copied.lock().unwrap().clone();
    copied.sort();
    assert_eq!(copied, ["a@1", "b@1", "c@1"]);
    assert_eq!(sorted(&bench), ["a", "b", "c"]);
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn users_see_the_bucket_and_the_objects_that_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let shelf = Arc::new(Shelf::default());
    // More lines than the queue has room for.
    let big = "line\n".repeat(30_000);
    for (key, seconds, text) in [("a", 7, &*big), ("b", 5, &*big), ("c", 9, "c\n")] {
        shelf.put(key, seconds, text);
    }
    shelf.locked.lock().unwrap().insert("c".to_owned());
    let mut bench = Bench::start(lister(&shelf, settings()), directory.path());
    bench.is_stuck = true;
    let rows = |bench: &Bench| bench.input.metrics().sources.all(Monotonic::default());
    bench
        .until("both are being read", |bench| {
            let rows = rows(bench);
            rows.len() == 3 && rows.iter().all(|row| row.bytes > 0)
        })
        .await;
    bench.until("one failed", |bench| rows(bench)[0].last_error.is_some()).await;
    let all = rows(&bench);
    let shelf_row = &all[0];
    assert_eq!((&*shelf_row.name, shelf_row.position, shelf_row.size), ("shelf", None, None));
    assert_eq!(shelf_row.last_error.as_deref(), Some("c: locked"));
    assert_eq!(shelf_row.newest, Some(Timestamp(9 * SECOND)));
    assert_eq!(shelf_row.oldest, Some(Timestamp(5 * SECOND)));
    assert!(shelf_row.requests.is_some());
    for row in &all[1..] {
        assert!(["shelf/a", "shelf/b"].contains(&&*row.name), "{}", row.name);
        let size = big.len() as u64;
        assert_eq!(row.size, Some(size));
        assert!(row.position.is_some_and(|position| position > 0 && position <= size));
    }
    let metrics = Arc::clone(bench.input.metrics());
    let numbers = metrics.objects();
    assert_eq!((numbers.in_flight.get(), numbers.sent.get(), numbers.acknowledged()), (2, 0, 0));
    bench.is_stuck = false;
    bench.until("all came", |bench| bench.events.len() == 60_000).await;
    shelf.locked.lock().unwrap().clear();
    bench.until("it came", |bench| bench.events.len() == 60_001).await;
    bench.until("all are settled", |_| numbers.acknowledged() == 3).await;
    bench.until("none is being read", |bench| rows(bench).len() == 1).await;
    let row = &rows(&bench)[0];
    assert_eq!((row.events, row.bytes, row.oldest), (60_001, 2 * big.len() as u64 + 2, None));
    assert_eq!(
        (numbers.sent.get(), numbers.events.get(), numbers.bytes.get()),
        (3, 60_001, row.bytes)
    );
    assert!(numbers.failed.get() >= 1 && numbers.listed.get() >= 3 && numbers.damaged.get() == 0);
    assert_eq!(numbers.size.summary().max, big.len() as u64);
    assert_eq!(
        (numbers.events_per_object.summary().count, numbers.processing_time.summary().count),
        (3, 3)
    );
    bench.until("it is listed again", |_| numbers.tracked.get() == 3).await;
    assert!(numbers.scheduled.summary().max >= 1 && numbers.lag.summary().min > 0);
    bench.stop().await;
    assert_eq!(metrics.open.get(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_names_itself_as_the_next_one_ends_the_listing() {
    let directory = tempfile::tempdir().unwrap();
    let shelf = Arc::new(Shelf::default());
    shelf.repeats_pages.store(true, Ordering::Relaxed);
    for key in ["a", "b", "c", "d", "e"] {
        shelf.put(key, 1, &format!("{key}\n"));
    }
    let mut bench = Bench::start(lister(&shelf, settings()), directory.path());
    bench.until("it is told", |bench| bench.input.metrics().trouble().is_some()).await;
    shelf.repeats_pages.store(false, Ordering::Relaxed);
    bench.until("all came", |bench| bench.events.len() == 5).await;
    bench.no_trouble().await;
    bench.stop().await;
}
