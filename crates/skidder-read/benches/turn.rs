//! One reader's turns over a file in memory: bytes of log text per second and allocations per batch.

use divan::counter::{BytesCount, ItemsCount};
use skidder_event::{Base, Batch, Map, SourceId};
use skidder_os::{Clock, Fs};
use skidder_read::scan::ScanSettings;
use skidder_read::{
    Bind, Bound, BufferPool, Cursors, CursorsError, DecoderPool, FilestreamSettings, Fingerprint,
    InputContext, ReadMetrics, Reader, Scratch, ShownPrint, Target, TurnEnd,
};
use skidder_registry::{Cursor, FileEntry, Meta};
use skidder_testkit::{SimClock, SimFs};
use std::path::Path;
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: divan::AllocProfiler = divan::AllocProfiler::system();

const LINES: usize = 100_000;

fn main() {
    divan::main();
}

/// A plan without processors.
#[derive(Debug)]
struct Nothing(Arc<Base>);

impl Bind for Nothing {
    fn bind(&self, _: &Map) -> Arc<dyn Bound> {
        Arc::new(Self(Arc::clone(&self.0)))
    }

    fn epoch(&self) -> u64 {
        0
    }
}

impl Bound for Nothing {
    fn base(&self) -> &Arc<Base> {
        &self.0
    }

    fn run(&self, _: &mut Batch) {}
}

/// No saved state.
struct Forgetful;

impl Cursors for Forgetful {
    fn saved(&self, _: &str) -> Result<Option<FileEntry>, CursorsError> {
        Ok(None)
    }

    fn checkpoint(&self, _: &str) -> Result<Option<Vec<u8>>, CursorsError> {
        Ok(None)
    }

    fn for_each_saved(&self, _: &mut dyn FnMut(&str, &FileEntry)) -> Result<(), CursorsError> {
        Ok(())
    }

    fn forget_saved(&self, _: Vec<String>) {}

    fn begin(&self, _: SourceId, _: &Arc<str>, _: Meta, _: Cursor, _: bool) {}

    fn update(&self, _: SourceId, _: &Arc<str>, _: Meta) {}

    fn doubt_end(&self, _: SourceId) {}

    fn restart(&self, _: SourceId, _: u32) {}

    fn unsave(&self, _: SourceId) {}

    fn cursor(&self, _: SourceId) -> Option<Cursor> {
        None
    }

    fn is_settled(&self, _: SourceId) -> bool {
        true
    }

    fn remove(&self, _: SourceId) {}
}

fn text() -> Vec<u8> {
    let mut text = Vec::new();
    for number in 0..LINES {
        let line = format!(
            "10.1.{}.7 - - [21/Nov/2026:20:52:57 +0000] \"GET /shop/item/{number}?ref=home HTTP/1.1\" \
             200 {} \"https://example.org/shop\" \"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101\"\n",
            number % 250,
            number * 37
        );
        text.extend_from_slice(line.as_bytes());
    }
    text
}

fn gzip(text: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(text).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}

fn read_all(bencher: divan::Bencher, stored: &[u8], bytes: usize, compressed: bool) {
    let clock = SimClock::new();
    let fs = SimFs::new(&clock);
    let path: Arc<Path> = Arc::from(Path::new("/app.log"));
    fs.write_as_other(&path, stored);
    let metadata = fs.metadata(&path).expect("it was just written");
    let context = InputContext {
        settings: FilestreamSettings::new("bench", ScanSettings::default()),
        bind: Arc::new(Nothing(Arc::new(Base::new(&Map::new(), &Map::new())))),
        cursors: Arc::new(Forgetful),
        fs: Arc::new(fs),
        metrics: Arc::new(ReadMetrics::default()),
        buffers: Arc::new(BufferPool::default()),
        decoders: DecoderPool::new(1),
        rows_max: 800,
    };
    let target = Target {
        path,
        shown: None,
        device: metadata.device,
        inode: metadata.inode,
        compressed,
        print: Fingerprint::of(&[]),
        shown_print: ShownPrint::None,
    };
    let mut scratch = Scratch::default();
    bencher.counter(BytesCount::new(bytes)).counter(ItemsCount::new(LINES)).bench_local(|| {
        let mut reader = Reader::new(SourceId(1), "key".into(), 0, target.clone(), 0, None);
        let mut lines = 0;
        loop {
            let (batch, end) = reader.turn(&context, &mut scratch, clock.wall());
            lines += batch.map_or(0, |batch| batch.lines());
            if !matches!(end, TurnEnd::More) {
                break;
            }
        }
        assert_eq!(lines, LINES as u64);
        reader.close(&context);
    });
}

#[divan::bench]
fn plain(bencher: divan::Bencher) {
    let text = text();
    read_all(bencher, &text, text.len(), false);
}

#[divan::bench]
fn compressed(bencher: divan::Bencher) {
    let text = text();
    read_all(bencher, &gzip(&text), text.len(), true);
}
