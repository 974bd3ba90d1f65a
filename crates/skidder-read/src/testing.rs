//! One input over a simulated file system, for the tests of this crate.

use crate::glob::Pattern;
use crate::scan::{ScanSettings, scan};
use crate::{
    Bind, Bound, BufferPool, Catalog, Compression, Cursors, CursorsError, FileLook, FileQuery,
    FilestreamSettings, InputContext, Leaving, Next, Now, ReadMetrics, Readers, ReadersLimits,
    ScanSummary, Scratch, SourceIds, TurnEnd, Watcher,
};
use flate2::write::GzEncoder;
use regex::bytes::Regex;
use skidder_decode::DecoderPool;
use skidder_event::{Base, Batch, Map, SourceId, Value};
use skidder_os::{Clock, Fs, Timestamp};
use skidder_parse::chain::{Match, Matcher, Multiline, Rule};
use skidder_registry::{Cursor, FileEntry, Meta};
use skidder_testkit::{SimClock, SimFs};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Processors that do nothing, but may have to know something first.
#[derive(Debug)]
struct Nothing {
    base: Arc<Base>,
    /// How often the sources of files called `/logs/held…` are still to wait.
    holds: Arc<AtomicU32>,
}

impl Bind for Nothing {
    fn bind(&self, fields: &Map) -> Arc<dyn Bound> {
        let base = Arc::new(Base::new(fields, &Map::new()));
        Arc::new(Self { base, holds: Arc::clone(&self.holds) })
    }

    fn can_hold(&self) -> bool {
        true
    }

    fn hold(&self, fields: &Map) -> Option<Duration> {
        let Some(Value::Str(path)) = fields.get_path("log.file.path") else { return None };
        let left = self.holds.load(Ordering::Relaxed);
        if !path.starts_with("/logs/held") || left == 0 {
            return None;
        }
        self.holds.store(left - 1, Ordering::Relaxed);
        Some(Duration::from_secs(3))
    }

    fn epoch(&self) -> u64 {
        0
    }
}

impl Bound for Nothing {
    fn base(&self) -> &Arc<Base> {
        &self.base
    }

    fn run(&self, _batch: &mut Batch) {}
}

/// Cursors in memory: everything that is read counts as settled and saved at once.
#[derive(Default)]
pub(crate) struct Memory {
    saved: Mutex<BTreeMap<String, FileEntry>>,
    keys: Mutex<BTreeMap<SourceId, String>>,
    checkpoints: Mutex<BTreeMap<String, Vec<u8>>>,
    /// Entries that were forgotten while their sources go on.
    unsaved: Mutex<BTreeMap<String, FileEntry>>,
    /// Pretends that something is under way.
    held: AtomicBool,
    /// So often the entries cannot be had all together.
    failures: AtomicU32,
}

impl Memory {
    fn put(&self, key: &str, meta: Meta, cursor: Cursor) {
        let entry = FileEntry { cursor, meta, updated: Timestamp(0), ttl: None };
        self.saved.lock().expect("no panic").insert(key.to_owned(), entry);
    }

    /// Pretends that something of every source is under way, or not any more.
    pub(crate) fn hold(&self, held: bool) {
        self.held.store(held, Ordering::Relaxed);
    }

    /// The next so many looks at all entries fail.
    pub(crate) fn fail(&self, times: u32) {
        self.failures.store(times, Ordering::Relaxed);
    }

    /// All entries were updated now.
    pub(crate) fn touch(&self, now: Timestamp) {
        self.change(|saved| saved.values_mut().for_each(|entry| entry.updated = now));
    }

    /// The saved keys, in order.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.saved.lock().expect("no panic").keys().cloned().collect()
    }

    /// Changes what is saved, as another program or an earlier version might have left it.
    pub(crate) fn change(&self, change: impl FnOnce(&mut BTreeMap<String, FileEntry>)) {
        change(&mut self.saved.lock().expect("no panic"));
    }

    pub(crate) fn len(&self) -> usize {
        self.saved.lock().expect("no panic").len()
    }

    pub(crate) fn settle(&self, batch: &Batch) {
        let provenance = batch.provenance();
        let keys = self.keys.lock().expect("no panic");
        let Some(key) = keys.get(&provenance.source) else { return };
        let part = provenance.file().expect("it is of a file");
        let tail = part.tail;
        if let Some(point) = &part.resume {
            let mut checkpoints = self.checkpoints.lock().expect("no panic");
            checkpoints.insert(key.clone(), point.to_bytes());
        }
        let cursor = Cursor {
            offset: part.range.end,
            generation: part.generation,
            eof: part.end_of_file,
            tail: tail.map(|tail| skidder_registry::Tail { len: tail.len, crc: tail.crc }),
        };
        let mut saved = self.saved.lock().expect("no panic");
        let mut unsaved = self.unsaved.lock().expect("no panic");
        if let Some(mut entry) = saved.remove(key).or_else(|| unsaved.remove(key)) {
            entry.cursor = cursor;
            saved.insert(key.clone(), entry);
        }
    }
}

impl Cursors for Memory {
    fn saved(&self, key: &str) -> Result<Option<FileEntry>, CursorsError> {
        Ok(self.saved.lock().expect("no panic").get(key).cloned())
    }

    fn checkpoint(&self, key: &str) -> Result<Option<Vec<u8>>, CursorsError> {
        Ok(self.checkpoints.lock().expect("no panic").get(key).cloned())
    }

    fn for_each_saved(&self, each: &mut dyn FnMut(&str, &FileEntry)) -> Result<(), CursorsError> {
        let left = self.failures.load(Ordering::Relaxed);
        if left > 0 {
            self.failures.store(left - 1, Ordering::Relaxed);
            return Err(CursorsError("not now".to_owned()));
        }
        for (key, entry) in &*self.saved.lock().expect("no panic") {
            each(key, entry);
        }
        Ok(())
    }

    fn forget_saved(&self, keys: Vec<String>) {
        for key in keys {
            self.saved.lock().expect("no panic").remove(&key);
        }
    }

    fn begin(&self, source: SourceId, key: &Arc<str>, meta: Meta, cursor: Cursor, _save: bool) {
        self.put(key, meta, cursor);
        self.keys.lock().expect("no panic").insert(source, key.to_string());
    }

    fn update(&self, source: SourceId, key: &Arc<str>, meta: Meta) {
        let old = self.keys.lock().expect("no panic").insert(source, key.to_string());
        let mut saved = self.saved.lock().expect("no panic");
        let mut unsaved = self.unsaved.lock().expect("no panic");
        let entry = old.and_then(|old| saved.remove(&old).or_else(|| unsaved.remove(&old)));
        if let Some(mut entry) = entry {
            entry.meta = meta;
            saved.insert(key.to_string(), entry);
        }
    }

    fn doubt_end(&self, source: SourceId) {
        let keys = self.keys.lock().expect("no panic");
        let mut saved = self.saved.lock().expect("no panic");
        if let Some(entry) = keys.get(&source).and_then(|key| saved.get_mut(key)) {
            entry.cursor.eof = false;
        }
    }

    fn restart(&self, source: SourceId, generation: u32) {
        let keys = self.keys.lock().expect("no panic");
        let mut saved = self.saved.lock().expect("no panic");
        if let Some(entry) = keys.get(&source).and_then(|key| saved.get_mut(key)) {
            entry.cursor = Cursor { generation, ..Cursor::default() };
        }
    }

    fn unsave(&self, source: SourceId) {
        let keys = self.keys.lock().expect("no panic");
        if let Some(key) = keys.get(&source)
            && let Some(entry) = self.saved.lock().expect("no panic").remove(key)
        {
            self.unsaved.lock().expect("no panic").insert(key.clone(), entry);
        }
    }

    fn cursor(&self, source: SourceId) -> Option<Cursor> {
        let key = self.keys.lock().expect("no panic").get(&source)?.clone();
        self.saved.lock().expect("no panic").get(&key).map(|entry| entry.cursor)
    }

    fn is_settled(&self, _source: SourceId) -> bool {
        !self.held.load(Ordering::Relaxed)
    }

    fn remove(&self, source: SourceId) {
        if let Some(key) = self.keys.lock().expect("no panic").remove(&source) {
            self.saved.lock().expect("no panic").remove(&key);
        }
    }
}

/// An input of `/logs/*` with all that it needs.
pub(crate) struct Input {
    pub(crate) fs: SimFs,
    pub(crate) clock: SimClock,
    pub(crate) saved: Arc<Memory>,
    pub(crate) context: Arc<InputContext>,
    pub(crate) readers: Arc<Readers>,
    /// How often the sources of files called `/logs/held…` are still to wait for metadata.
    pub(crate) holds: Arc<AtomicU32>,
    catalog: Catalog,
    scratch: Scratch,
}

/// Settings of the tests: compressed files are found by their content.
pub(crate) fn settings() -> FilestreamSettings {
    let pattern = Pattern::parse("/logs/*", Path::new("/"), true).expect("a good pattern");
    let scan = ScanSettings { patterns: vec![pattern], ..ScanSettings::default() };
    let mut settings = FilestreamSettings::new("test", scan);
    settings.compression = Compression::Auto;
    settings
}

impl Input {
    pub(crate) fn new() -> Self {
        Self::with(settings(), ReadersLimits { open_files: 100, decoders: 10 }, 1000)
    }

    pub(crate) fn with(
        settings: FilestreamSettings,
        limits: ReadersLimits,
        rows_max: usize,
    ) -> Self {
        let clock = SimClock::new();
        let fs = SimFs::new(&clock);
        fs.create_dir_as_other("/logs");
        let saved = Arc::new(Memory::default());
        Self::over(fs, clock, saved, settings, limits, rows_max)
    }

    fn over(
        fs: SimFs,
        clock: SimClock,
        saved: Arc<Memory>,
        settings: FilestreamSettings,
        limits: ReadersLimits,
        rows_max: usize,
    ) -> Self {
        let shared: Arc<dyn Fs> = Arc::new(fs.clone());
        let holds = Arc::new(AtomicU32::new(0));
        let context = Arc::new(InputContext {
            settings,
            bind: Arc::new(Nothing {
                base: Arc::new(Base::new(&Map::new(), &Map::new())),
                holds: Arc::clone(&holds),
            }),
            cursors: saved.clone(),
            fs: shared,
            metrics: Arc::new(ReadMetrics::default()),
            buffers: Arc::new(BufferPool::default()),
            decoders: DecoderPool::new(2),
            rows_max,
        });
        let readers = Arc::new(Readers::new(limits));
        let ids = Arc::new(SourceIds::default());
        let catalog = Catalog::new(Arc::clone(&context), Arc::clone(&readers), ids);
        Self { holds, fs, clock, saved, context, readers, catalog, scratch: Scratch::default() }
    }

    /// The same input for another output: the same files, everything else its own.
    pub(crate) fn for_another_output(&self) -> Self {
        let settings = self.context.settings.clone();
        let limits = ReadersLimits { open_files: 100, decoders: 10 };
        let (fs, clock) = (self.fs.clone(), self.clock.clone());
        Self::over(fs, clock, Arc::default(), settings, limits, self.context.rows_max)
    }

    /// The same files and saved cursors in another life of the program.
    pub(crate) fn restarted(self) -> Self {
        let settings = self.context.settings.clone();
        self.restarted_with(settings)
    }

    /// As [`Input::restarted`], with another configuration.
    pub(crate) fn restarted_with(self, settings: FilestreamSettings) -> Self {
        let limits = ReadersLimits { open_files: 100, decoders: 10 };
        drop(self.readers);
        self.fs.kill();
        Self::over(self.fs, self.clock, self.saved, settings, limits, self.context.rows_max)
    }

    pub(crate) fn scan(&mut self) -> ScanSummary {
        let now = Now { wall: self.clock.wall(), monotonic: self.clock.monotonic() };
        self.catalog.begin_scan(now.monotonic);
        let (found, problems) = scan(&*self.context.fs, &self.context.settings.scan);
        let catalog = &mut self.catalog;
        let fresh = found
            .into_iter()
            .filter(|file| !catalog.is_unchanged(&file.path, &file.metadata))
            .collect();
        self.catalog.apply(fresh, &problems, now)
    }

    /// The states of all files, some at a time: path, state and reason.
    pub(crate) fn looks(&mut self, limit: usize) -> Vec<FileLook> {
        let now = Now { wall: self.clock.wall(), monotonic: self.clock.monotonic() };
        let mut query = FileQuery { limit, ..FileQuery::default() };
        let mut looks: Vec<FileLook> = Vec::new();
        loop {
            let page = self.catalog.page(&query, now);
            looks.extend(page.files);
            if !page.more {
                return looks;
            }
            query.after = looks.last().map(|look| look.path.to_path_buf());
        }
    }

    /// Something that watches the directories of this input.
    pub(crate) fn watcher(&self) -> Watcher {
        Watcher::new(self.fs.notifier().expect("a simulated disk has one"))
    }

    /// A scan that looks where something was notified, or everywhere.
    pub(crate) fn scan_watched(&mut self, watcher: &mut Watcher, full: bool) -> ScanSummary {
        let now = Now { wall: self.clock.wall(), monotonic: self.clock.monotonic() };
        self.take_notices(watcher);
        self.catalog.scan(Some(watcher), full, now).0
    }

    /// What happens between two scans; returns whether notices were lost.
    pub(crate) fn react(&mut self, watcher: &mut Watcher) -> bool {
        let now = Now { wall: self.clock.wall(), monotonic: self.clock.monotonic() };
        let lost = self.take_notices(watcher);
        self.catalog.react(watcher, now);
        lost
    }

    fn take_notices(&mut self, watcher: &mut Watcher) -> bool {
        watcher.take(&mut |_, notice| self.catalog.notice(notice)).lost
    }

    pub(crate) fn catalog(&mut self) -> &mut Catalog {
        &mut self.catalog
    }

    pub(crate) fn is_restless(&self) -> bool {
        self.catalog.is_restless()
    }

    /// One turn, if there is one to take.
    pub(crate) fn turn(&mut self) -> Option<(Option<Batch>, TurnEnd)> {
        let Next::Turn(mut turn) = self.readers.next(self.clock.monotonic()) else { return None };
        let (batch, end) = turn.run(&mut self.scratch, self.clock.wall());
        if let Some(batch) = &batch {
            self.saved.settle(batch);
        }
        self.readers.finish(turn, &end, batch.is_some(), self.clock.monotonic());
        Some((batch, end))
    }

    /// The messages of all turns until none is left.
    pub(crate) fn read(&mut self) -> Vec<String> {
        let mut messages = Vec::new();
        for _ in 0..1_000_000 {
            let Some((batch, _)) = self.turn() else { return messages };
            messages.extend(batch.iter().flat_map(messages_of));
        }
        panic!("the turns have no end");
    }

    /// Drops all readers; the catalog is a new one.
    pub(crate) fn leave(&mut self) -> Leaving {
        let (context, readers) = (Arc::clone(&self.context), Arc::clone(&self.readers));
        let next = Catalog::new(context, readers, Arc::default());
        std::mem::replace(&mut self.catalog, next).leave()
    }

    /// A scan, and what is read after it.
    pub(crate) fn round(&mut self) -> Vec<String> {
        self.scan();
        self.read()
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }
}

/// The messages of a batch.
pub(crate) fn messages_of(batch: &Batch) -> Vec<String> {
    let text =
        |row: &skidder_event::Row| String::from_utf8_lossy(batch.text(row.message)).into_owned();
    batch.rows().iter().map(text).collect()
}

/// Lines that begin with a blank belong to the one before.
pub(crate) fn multiline() -> Multiline {
    let pattern = Matcher::new(Regex::new("^[ \t]").expect("a good pattern"));
    Multiline {
        rule: Rule::Pattern { pattern, negate: false, side: Match::After, flush: None },
        max_lines: Multiline::MAX_LINES,
        max_bytes: 10 << 20,
        timeout: Some(Multiline::TIMEOUT),
        skip_newline: false,
    }
}

/// `bytes` as one gzip member.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}

/// `bytes` in blocks of 100 kB.
pub(crate) fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::new(1));
    encoder.write_all(bytes).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}

/// So many numbered lines, `name` in each, from `first` on.
pub(crate) fn lines(name: &str, numbers: std::ops::Range<usize>) -> String {
    numbers.fold(String::new(), |text, number| text + &format!("{name} {number}\n"))
}

/// Metadata of a regular file.
pub(crate) fn metadata(device: u64, inode: u64) -> skidder_os::Metadata {
    skidder_os::Metadata {
        kind: skidder_os::FileKind::Regular,
        size: 0,
        modified: Timestamp(0),
        device,
        inode,
        links: 1,
        mode: 0,
        uid: 0,
        gid: 0,
    }
}
