//! One life of the program: everything between its start and its end, put together as the program does.

use super::config::{Config, INPUTS};
use super::looking::Looking;
use super::output::Output;
use super::reading::Worker;
use crate::oracle::Ledgers;
use skidder_event::Unprocessed;
use skidder_input_file::{FileInput, SavedCursors};
use skidder_os::{Clock, Fs, Monotonic};
use skidder_pipeline::{DeadLetters, DiskQueue, Queue, Registrar, Settle};
use skidder_read::{
    BufferPool, DecoderPool, InputContext, Peer, ReadMetrics, Readers, Scratch, SourceIds,
};
use skidder_registry::{Options, Registry};
use skidder_testkit::{SimClock, SimFs};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// Where the program keeps its own files.
pub(super) const DATA: &str = "/data";

/// Where the files of an output are: of the only one, or of one of several, whatever their order.
fn data_of(config: &Config, number: usize) -> PathBuf {
    match config.outputs_max() {
        1 => PathBuf::from(DATA),
        _ => PathBuf::from(format!("{DATA}/outputs/{number}")),
    }
}

/// Where the dead letters of an output are.
pub(crate) fn dead_letters_of(config: &Config, number: usize) -> PathBuf {
    data_of(config, number).join("dead_letters.ndjson")
}

/// Where readers put batches in, and the queue on the disk, if the output has one.
fn queues(
    config: &Config,
    number: usize,
    fs: &Arc<dyn Fs>,
    settle: &Arc<Settle>,
) -> Result<(Queue, Option<Arc<DiskQueue>>), String> {
    let directory = data_of(config, number).join("diskqueue");
    let Some(settings) = config.disk_of(number, directory) else {
        return Ok((Queue::new(config.queue, Arc::clone(settle)), None));
    };
    // No other queue of the run has this name.
    let name = [number as u8 + 1; 16];
    let (disk, _) = DiskQueue::open(Arc::clone(fs), settings, name, settle)
        .map_err(|error| format!("disk queue: {error:?}"))?;
    Ok((disk.front().clone(), Some(disk)))
}

/// The state that the pipelines of one program share.
#[derive(Default)]
pub(super) struct Shares {
    /// For each input, if there are several outputs.
    peers: Vec<Peer>,
}

impl Shares {
    /// For each output.
    pub(super) fn of(config: &Config) -> Vec<Self> {
        let count = config.outputs.len();
        let mut shares: Vec<Self> = (0..count).map(|_| Self::default()).collect();
        if count > 1 {
            for _ in 0..INPUTS.len() {
                for (share, peer) in shares.iter_mut().zip(Peer::seats(count)) {
                    share.peers.push(peer);
                }
            }
        }
        shares
    }
}

/// One life of the program.
pub(super) struct Life {
    pub(super) settle: Arc<Settle>,
    /// Where readers put batches in.
    pub(super) queue: Queue,
    /// `queue.disk`, of which that is one end.
    pub(super) disk: Option<Arc<DiskQueue>>,
    pub(super) registrar: Registrar,
    pub(super) registry: Arc<Registry>,
    pub(super) readers: Arc<Readers>,
    pub(super) ids: Arc<SourceIds>,
    pub(super) metrics: Arc<ReadMetrics>,
    pub(super) looking: Looking,
    pub(super) workers: Vec<Worker>,
    pub(super) output: Output,
    pub(super) scratch: Scratch,
    pub(super) ledgers: Ledgers,
    /// When the registrar is to save.
    pub(super) flush_due: Monotonic,
}

impl Life {
    pub(super) fn new(
        fs: &SimFs,
        clock: &SimClock,
        config: &Config,
        listens: bool,
        number: usize,
        shares: Shares,
    ) -> Result<Self, String> {
        let data = data_of(config, number);
        let shared_fs: Arc<dyn Fs> = Arc::new(fs.clone());
        let shared_clock: Arc<dyn Clock> = Arc::new(clock.clone());
        let (registry, _) = Registry::open(
            Arc::clone(&shared_fs),
            Arc::clone(&shared_clock),
            &data.join("registry"),
            Options { cache_bytes: 1 << 20, ..Options::default() },
        )
        .map_err(|error| format!("registry: cannot be opened: {error:?}"))?;
        let registry = Arc::new(registry);
        let settle = Settle::new();
        let (queue, disk) = queues(config, number, &shared_fs, &settle)?;
        let cursors = Arc::new(SavedCursors::new(Arc::clone(&settle), Arc::clone(&registry)));
        let readers = Arc::new(Readers::new(config.readers));
        let ids = Arc::new(SourceIds::default());
        let metrics = Arc::new(ReadMetrics::default());
        let buffers = Arc::new(BufferPool::default());
        let decoders = DecoderPool::new(2);
        let mut peers = shares.peers.into_iter();
        let mut contexts = Vec::new();
        let inputs = (0..INPUTS.len()).map(|number| {
            let context = InputContext {
                settings: config.settings(number),
                bind: Unprocessed::bind(),
                cursors: cursors.clone(),
                fs: Arc::clone(&shared_fs),
                metrics: Arc::clone(&metrics),
                buffers: Arc::clone(&buffers),
                decoders: decoders.clone(),
                rows_max: config.rows_max,
            };
            let context = Arc::new(context);
            contexts.push(Arc::clone(&context));
            let input = FileInput::new(context, Arc::clone(&readers), Arc::clone(&ids));
            match peers.next() {
                Some(peer) => input.with_peer(peer),
                None => input,
            }
        });
        let inputs = inputs.collect();
        let looking = Looking::new(inputs, contexts, listens, fs);
        let dead_letters = DeadLetters::new(shared_fs, shared_clock, &data, config.dead_letters);
        Ok(Self {
            registrar: Registrar::new(Arc::clone(&settle), Arc::clone(&registry))
                .with_disk(disk.clone()),
            registry,
            settle,
            queue,
            disk,
            readers,
            ids,
            metrics,
            looking,
            workers: (0..config.reader_threads).map(|_| Worker::Free).collect(),
            output: Output::new(config.output_workers, config.take, dead_letters),
            scratch: Scratch::default(),
            ledgers: Ledgers::default(),
            flush_due: Monotonic::default(),
        })
    }

    /// The content of the registry, for the story.
    pub(super) fn saved(&self) -> Vec<String> {
        let mut saved = Vec::new();
        let visited = self.registry.for_each(|key, entry| {
            let Some(entry) = entry.as_file() else { return };
            let (path, cursor) = (entry.meta.source.display(), entry.cursor);
            let key = &key[key.len() - 8..];
            saved.push(format!("saved {path} {key} {:?} {cursor:?}", entry.meta.fingerprint_len));
        });
        if let Err(error) = visited {
            saved.push(format!("the registry cannot be read: {error}"));
        }
        saved
    }

    /// Paths of which the registry has something.
    pub(super) fn saved_paths(&self) -> BTreeSet<PathBuf> {
        let mut paths = BTreeSet::new();
        let visited = self.registry.for_each(|_, entry| {
            paths.extend(entry.as_file().map(|file| file.meta.source.to_path_buf()));
        });
        if visited.is_err() {
            paths.clear();
        }
        paths
    }

    /// All sources, for the story.
    pub(super) fn sources(&self) -> Vec<String> {
        let mut sources = Vec::new();
        self.settle.for_each(|status| {
            let key = &status.key[status.key.len() - 8..];
            let look = self.readers.look(status.source);
            let look = look.map(|look| {
                format!(
                    "{:?}, open {}, generation {}, read {}, finished {}, trouble {:?}",
                    look.state,
                    look.open,
                    look.generation,
                    look.offset,
                    look.finished,
                    look.trouble
                )
            });
            let Some((meta, cursor)) = status.file() else { return };
            sources.push(format!(
                "source {} {key} {} cursor {} in generation {}: {}",
                status.source.0,
                meta.source.display(),
                cursor.offset,
                cursor.generation,
                look.unwrap_or_else(|| "no reader".to_owned()),
            ));
        });
        sources.sort();
        sources
    }
}
