//! The segments on the disk and their state: shared by the writer, the reader and the outputs' verdicts.

use super::acks::Acks;
use super::cipher::DiskQueueKey;
use super::format::{Place, QueueId};
use super::metrics::DiskMetrics;
use super::state::{State, StateFile};
use super::survey::{STATE_FILE, Survey, segment_path};
use super::{DiskQueueError, DiskQueueSettings};
use crate::repeats::Repeats;
use skidder_os::{Clock as _, Fs, OpenMode, SystemClock};
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Permissions of the directory and of the files: events can hold anything.
const DIRECTORY_MODE: u32 = 0o700;
pub(super) const FILE_MODE: u32 = 0o600;

/// One file of frames.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) number: u64,
    /// Where its first frame stands.
    pub(super) first: Place,
    /// Behind its last durable frame.
    pub(super) end: Place,
    /// Where the last durable frame ends in the file.
    pub(super) bytes: u64,
    /// What it takes on the disk.
    pub(super) size: u64,
    /// Nothing more is written to it.
    pub(super) sealed: bool,
}

/// What the start found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskQueueOpened {
    /// Events without a verdict.
    pub events: u64,
    /// Segments.
    pub segments: usize,
    /// Bytes behind the last whole frame, of a write that a crash has cut off.
    pub torn_bytes: u64,
    /// Events that were durable behind the last whole frame of the last segment, which was cut or damaged: they are
    /// lost, and no source is read again for them.
    pub cut_events: u64,
    /// It was not known how far the queue was written and delivered: all that is there is delivered again, and events
    /// may be missing in front of the first segment and behind the last frame.
    pub state_is_lost: bool,
}

/// The segments of a queue.
pub(crate) struct Store {
    pub(super) fs: Arc<dyn Fs>,
    pub(super) settings: DiskQueueSettings,
    pub(super) queue: QueueId,
    pub(super) metrics: DiskMetrics,
    shared: Mutex<Shared>,
    /// Notified when there is more to read, or more room, or an end.
    changed: Condvar,
    saved: Mutex<Saved>,
}

pub(super) struct Shared {
    pub(super) segments: VecDeque<Segment>,
    /// Behind the last durable frame.
    pub(super) durable: Place,
    /// Behind the last durable frame that is on the ledger as stored: no other is read before.
    pub(super) released: Place,
    pub(super) acks: Acks,
    pub(super) next_number: u64,
    /// Nothing more is written.
    pub(super) complete: bool,
    /// Nothing more is read.
    pub(super) fed: bool,
    /// Nothing more is written or read.
    pub(super) stopped: bool,
}

struct Saved {
    file: StateFile,
    state: Option<State>,
    clock: SystemClock,
    /// Failures to save, and to remove segments.
    saving: Repeats,
    removing: Repeats,
}

impl Saved {
    fn new(file: StateFile, state: Option<State>) -> Self {
        let (saving, removing) = (Repeats::default(), Repeats::default());
        Self { file, state, clock: SystemClock::new(), saving, removing }
    }
}

impl Shared {
    /// Bytes on the disk.
    pub(super) fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.size).sum()
    }

    /// Events on the disk without a verdict.
    pub(super) fn events(&self) -> u64 {
        self.durable.event.saturating_sub(self.acks.settled().event)
    }
}

impl Store {
    /// Opens the queue of a directory, or makes one; `fresh` names a new one.
    pub(super) fn open(
        fs: Arc<dyn Fs>,
        settings: DiskQueueSettings,
        fresh: QueueId,
    ) -> Result<(Arc<Self>, DiskQueueOpened), DiskQueueError> {
        let directory = settings.path.clone();
        let failed = |source| DiskQueueError::io(&directory, source);
        make_directory(&*fs, &directory).map_err(failed)?;
        let file = fs.open_write(&directory.join(STATE_FILE), OpenMode::Keep, FILE_MODE);
        let file = file.map_err(failed)?;
        if !file.try_lock().map_err(failed)? {
            return Err(DiskQueueError::InUse { directory });
        }
        let survey = Survey::of(&*fs, &directory)?;
        if survey.queue.is_none() && !survey.segments.is_empty() {
            return Err(DiskQueueError::Unknown { directory });
        }
        let mut state = StateFile::new(file);
        let known = state.read().map_err(failed)?;
        let queue = survey.queue.unwrap_or(fresh);
        let (shared, opened) = Shared::of(&survey, &*fs, queue).map_err(failed)?;
        check_key(&survey, &shared, settings.key.as_ref())?;
        let store = Self {
            fs,
            settings,
            queue,
            metrics: DiskMetrics::default(),
            shared: Mutex::new(shared),
            changed: Condvar::new(),
            saved: Mutex::new(Saved::new(state, known)),
        };
        // The name of the queue is durable before the first frame is.
        store.save().map_err(failed)?;
        store.fs.sync_dir(&directory).map_err(failed)?;
        store.metrics.torn_bytes.add(opened.torn_bytes);
        if opened.state_is_lost {
            // A damaged place of which nothing says how many events it held.
            store.metrics.damaged.add(1);
        }
        Ok((Arc::new(store), opened))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes all that wait for a change.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Shared) -> T) -> T {
        let changed = change(&mut self.lock());
        self.changed.notify_all();
        changed
    }

    /// Waits until something was changed, and `until` holds, at most `limit`.
    pub(super) fn wait(&self, limit: Duration, until: impl Fn(&Shared) -> bool) {
        let wait = self.changed.wait_timeout_while(self.lock(), limit, |shared| !until(shared));
        drop(wait.unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits for a change, at most `limit`.
    pub(super) fn wait_for_change(&self, limit: Duration) {
        let wait = self.changed.wait_timeout(self.lock(), limit);
        drop(wait.unwrap_or_else(PoisonError::into_inner));
    }

    /// All events of a frame have their verdict.
    pub(crate) fn end(&self, sequence: u64) {
        let mut shared = self.lock();
        shared.acks.end(sequence);
        let settled = shared.acks.settled();
        let is_free = shared.segments.front().is_some_and(|first| first.end <= settled);
        drop(shared);
        if is_free {
            self.changed.notify_all();
        }
    }

    /// Makes durable how far the queue was delivered, and removes segments of which nothing is needed any more.
    pub(super) fn maintain(&self) {
        if !self.save_state() {
            return;
        }
        let saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        let settled = saved.state.map_or_else(Place::default, |state| state.settled);
        drop(saved);
        let removed = self.remove_before(settled);
        let mut saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        let now = saved.clock.monotonic();
        match removed {
            Ok(()) => {
                if saved.removing.worked(now, false) {
                    tracing::info!("segments of the disk queue can be removed again");
                }
            }
            Err((path, error)) => {
                if let Some(failures) = saved.removing.failed(now, error.kind()) {
                    let path = path.display();
                    tracing::warn!(%error, failures, %path, "cannot remove a segment of the disk queue");
                }
            }
        }
    }

    /// Makes durable how far the queue was written and delivered; returns whether it is, and logs why not.
    pub(super) fn save_state(&self) -> bool {
        let result = self.save();
        let mut saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        let now = saved.clock.monotonic();
        match result {
            Ok(()) => {
                if saved.saving.worked(now, false) {
                    tracing::info!("how far the disk queue was delivered can be saved again");
                }
                true
            }
            Err(error) => {
                if let Some(failures) = saved.saving.failed(now, error.kind()) {
                    let path = self.settings.path.display();
                    tracing::error!(%error, failures, %path, "cannot save how far the disk queue was delivered");
                }
                false
            }
        }
    }

    /// Gives segments a second name in a directory, durably.
    pub(super) fn keep_aside(&self, numbers: &[u64], directory: &Path) -> io::Result<()> {
        make_directory(&*self.fs, directory)?;
        for &number in numbers {
            let from = segment_path(&self.settings.path, number);
            let name = from.file_name().unwrap_or(from.as_os_str());
            match self.fs.hard_link(&from, &directory.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.fs.sync_dir(directory)
    }

    fn save(&self) -> io::Result<()> {
        let mut saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = self.lock();
        let (settled, durable) = (shared.acks.settled(), shared.durable);
        drop(shared);
        let state = State { queue: self.queue, settled, durable };
        saved.file.reserve(&state)?;
        if saved.state != Some(state) {
            saved.file.write(&state)?;
            saved.state = Some(state);
        }
        Ok(())
    }

    /// Removes segments; the error has the one that cannot be removed.
    fn remove_before(&self, settled: Place) -> Result<(), (PathBuf, io::Error)> {
        loop {
            let shared = self.lock();
            let Some(first) = shared.segments.front().copied() else { return Ok(()) };
            drop(shared);
            if !first.sealed || first.end > settled {
                return Ok(());
            }
            let path = segment_path(&self.settings.path, first.number);
            match self.fs.remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err((path, error));
                }
                _ => self.change(|shared| {
                    shared.segments.pop_front();
                }),
            }
        }
    }
}

/// Whether all segments with events that wait can be read.
fn check_key(
    survey: &Survey,
    shared: &Shared,
    key: Option<&DiskQueueKey>,
) -> Result<(), DiskQueueError> {
    let settled = shared.acks.settled();
    for (found, segment) in survey.segments.iter().zip(&shared.segments) {
        let Some(wanted) = found.key.filter(|_| segment.end > settled) else { continue };
        let what = match key {
            None => "has no key",
            Some(key) if key.id() != wanted => "has another key",
            Some(_) => continue,
        };
        return Err(DiskQueueError::Key { path: found.path.clone(), what });
    }
    Ok(())
}

/// Makes a directory, and those around it, so that a power cut does not take it away.
fn make_directory(fs: &dyn Fs, directory: &Path) -> io::Result<()> {
    let is_missing = |path: &Path| matches!(fs.metadata(path), Err(error) if error.kind() == io::ErrorKind::NotFound);
    let missing: Vec<&Path> = directory.ancestors().take_while(|path| is_missing(path)).collect();
    fs.create_dir_all(directory, DIRECTORY_MODE)?;
    for path in missing {
        match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            Some(parent) => fs.sync_dir(parent)?,
            None => fs.sync_dir(Path::new("."))?,
        }
    }
    Ok(())
}

/// Events without a verdict in the queue of a directory, without opening it; `None` if no queue is there. Only the
/// last segment is read.
pub fn waiting_in_disk_queue(fs: &dyn Fs, directory: &Path) -> Result<Option<u64>, DiskQueueError> {
    let survey = Survey::of(fs, directory)?;
    let Some(queue) = survey.queue else { return Ok(None) };
    let found = Shared::of(&survey, fs, queue);
    let (_, opened) = found.map_err(|source| DiskQueueError::io(directory, source))?;
    Ok(Some(opened.events))
}

impl Shared {
    fn of(survey: &Survey, fs: &dyn Fs, queue: QueueId) -> io::Result<(Self, DiskQueueOpened)> {
        let settled = survey.settled();
        let known = survey.state.map_or(settled, |state| state.durable);
        let mut opened = DiskQueueOpened {
            segments: survey.segments.len(),
            state_is_lost: survey.state.is_none() && !survey.segments.is_empty(),
            ..DiskQueueOpened::default()
        };
        let mut segments: VecDeque<Segment> = VecDeque::new();
        let mut end = settled;
        for (at, found) in survey.segments.iter().enumerate() {
            let first = found.first.unwrap_or(end);
            let next = survey.segments[at + 1..].iter().find_map(|next| next.first);
            let (bytes, last) = match next {
                Some(next) => (found.size, next),
                None => {
                    let file = fs.open(&found.path)?;
                    let (bytes, last) = found.end(&*file, queue, known)?;
                    opened.torn_bytes += found.size - bytes;
                    (bytes, last.unwrap_or(first))
                }
            };
            end = last.max(first);
            let (number, size) = (found.number, found.size);
            segments.push_back(Segment { number, first, end, bytes, size, sealed: true });
        }
        // What was durable and is not there any more is missed when the last segment is read.
        let durable = end.max(known);
        opened.cut_events = durable.event.saturating_sub(end.max(settled).event);
        if let Some(last) = segments.back_mut() {
            last.end = durable;
        }
        opened.events = durable.event.saturating_sub(settled.event);
        let shared = Self {
            segments,
            durable,
            released: durable,
            acks: Acks::new(settled),
            next_number: survey.next_number,
            complete: false,
            fed: false,
            stopped: false,
        };
        Ok((shared, opened))
    }
}
