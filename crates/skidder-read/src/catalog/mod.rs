//! The catalog: which found file is which source.
//!
//! A name proves nothing. Each scan matches the files that are new or changed with the known sources, best
//! evidence first:
//!
//! 1. same inode, same beginning, same bytes before the cursor: the same file, perhaps renamed;
//! 2. same beginning as a source that lost its place, and the same bytes before its cursor: the file was
//!    copied, moved or compressed, and is read on from the cursor;
//! 3. same inode and beginning, but shorter than what was read or with other bytes before the cursor: it was
//!    rewritten and is read from zero as a new generation; the old content keeps its cursor for a while
//!    (`former.rs`);
//! 4. same beginning as a source in its place: the files are compared to the end. If they are equal, the file
//!    is held back as a duplicate; if not, it becomes a source of its own with a longer fingerprint;
//! 5. none of these: a file that the registry knows, or a new source.
//!
//! With another `file_identity` the name decides, and the content only shows whether a file still has what
//! was read (`named.rs`).
//!
//! [`Catalog`] coordinates: it owns the parts, passes each what it needs, and applies what they return.
//! [`Inventory`] has the facts: [`places`], [`sources`], readers and [`followed`] files. The parts read it
//! and decide: [`matching`] which source is in a file, [`saved`] what the registry has for it, [`watches`]
//! where to look, [`rotated`] which files belong to a link, [`pins`] what to keep, [`deletions`] what to
//! delete, [`sweep`] and [`gone`] what to forget, [`watchdog`] whom to wake.

mod adopt;
mod apply;
mod candidate;
mod deletions;
mod duplicates;
mod followed;
mod forecast;
mod former;
mod gone;
mod ids;
mod index;
mod inventory;
mod leaving;
mod looks;
mod matching;
mod named;
mod peers;
mod pins;
mod places;
mod portions;
mod prefixes;
mod probe;
mod rejected;
mod rotated;
mod saved;
mod saved_prints;
mod sources;
mod sweep;
mod watchdog;
mod watches;

use crate::identity::Marker;
use crate::reader::InputContext;
use crate::readers::Readers;
use crate::scan::{Found, ScanProblem, Scanned, scan_changes};
use crate::watcher::Watcher;
use candidate::Candidate;
use deletions::Deletions;
use forecast::DeletionForecast;
pub use gone::GoneFiles;
pub use ids::SourceIds;
use inventory::Inventory;
pub use leaving::Leaving;
use looks::FileReport;
pub use looks::{FileLook, FilePage, FileQuery, FileState, Reason};
pub(crate) use matching::is_related;
pub use peers::Peer;
use pins::Pins;
use places::{Content, Duplicate, FirstDifference, Place};
pub(crate) use portions::HEADS_BYTES_MAX;
use rotated::{LinkScan, RotatedFiles};
use saved::SavedEntries;
use skidder_event::SourceId;
use skidder_os::{Metadata, Monotonic, Notice, Timestamp, is_out_of_descriptors};
use sources::{Source, SourceFile};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use sweep::{Sweep, Sweeps};
use watchdog::Watchdog;
pub use watches::Reacted;
use watches::Watches;

/// How long the state of a vanished file is kept: its compressed copy may appear a little later.
pub const MISSING_GRACE: Duration = Duration::from_mins(1);

/// Bytes that all comparisons of one scan may read together.
const COMPARE_BYTES_PER_SCAN: u64 = 64 << 20;

/// Number of files from which it is cheaper to look at all sources first than to match each file.
const RESERVE_FILES_MIN: usize = 64;

/// All files of one input.
pub struct Catalog {
    files: Inventory,
    watches: Watches,
    saved: SavedEntries,
    rotated: RotatedFiles,
    pins: Pins,
    forecast: DeletionForecast,
    marker: Marker,
    pass: Pass,
    deletions: Deletions,
    /// The other catalogs of this input, if it feeds several outputs.
    peer: Option<Peer>,
    sweeps: Sweeps,
    watchdog: Watchdog,
}

/// A scan, or a reaction to notifications.
#[derive(Default)]
struct Pass {
    /// When it began.
    now: Monotonic,
    /// Whether it is a reaction: only some paths are looked at, and everything about all files waits for the next scan.
    is_reaction: bool,
    /// Files that it could not process yet.
    postponed: usize,
}

/// The current time, on both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// Wall clock, for `ignore_older`.
    pub wall: Timestamp,
    /// Monotonic clock, for everything else.
    pub monotonic: Monotonic,
}

/// Counts of one scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanSummary {
    /// Files that match.
    pub matched: usize,
    /// Files held back as duplicates of others.
    pub held: usize,
    /// Files whose comparison continues with the next scan, and files that could not be processed yet.
    pub undecided: usize,
    /// Files with a source.
    pub sources: usize,
}

impl Catalog {
    /// An empty catalog.
    pub fn new(input: Arc<InputContext>, readers: Arc<Readers>, ids: Arc<SourceIds>) -> Self {
        Self {
            files: Inventory::new(input, readers, ids),
            watches: Watches::default(),
            saved: SavedEntries::default(),
            rotated: RotatedFiles::default(),
            pins: Pins::default(),
            forecast: DeletionForecast::default(),
            marker: Marker::default(),
            pass: Pass::default(),
            deletions: Deletions::default(),
            peer: None,
            sweeps: Sweeps::default(),
            watchdog: Watchdog::default(),
        }
    }

    /// Sets the other catalogs of the same input, which are for other outputs. Call it before the first scan.
    pub fn set_peer(&mut self, peer: Peer) {
        self.peer = Some(peer);
    }

    /// A scan begins. Until [`Catalog::apply`] it may ask which files have not changed.
    pub fn begin_scan(&mut self, now: Monotonic) {
        self.begin_names();
        self.pass.is_reaction = false;
        self.sweeps.start(now);
        if !self.saved.is_loaded() && self.saved.load(&self.files, &mut self.rotated) {
            self.load_pins(now);
        }
        self.keep_deleted_by_others(now);
        self.marker.refresh(&*self.files.input.fs, &self.files.input.settings.identity);
        self.files.take_troubled();
    }

    /// Whether a path has what it had at the last scan, so that there is nothing to do about it.
    pub fn is_unchanged(&mut self, path: &Path, meta: &Metadata) -> bool {
        self.files.places.is_unchanged(path, meta)
    }

    /// Processes the files that a scan found and that are not [unchanged](Catalog::is_unchanged). Starts,
    /// moves, restarts and removes readers accordingly.
    ///
    /// Files in a directory that could not be listed (`problems`) stay as they were.
    pub fn apply(&mut self, fresh: Vec<Found>, problems: &[ScanProblem], now: Now) -> ScanSummary {
        let all = self.files.add_followed(fresh, now.monotonic);
        if !problems.is_empty() {
            self.files.places.keep_unseen(problems);
            if problems.iter().any(|problem| is_out_of_descriptors(&problem.error)) {
                self.files.readers.give_way();
            }
        }
        let vanished = self.files.places.remove_vanished();
        self.lose_places(vanished, now.monotonic);
        self.process(all, now)
    }

    fn process(&mut self, fresh: Vec<Found>, now: Now) -> ScanSummary {
        self.pass.now = now.monotonic;
        let fresh = if self.saved.is_loaded() { fresh } else { self.postpone(fresh) };
        let (files, saved, is_reaction) = (&mut self.files, &self.saved, self.pass.is_reaction);
        let all = self.rotated.search(&mut LinkScan { files, saved, now, is_reaction }, fresh);
        let fresh = self.vacate(all);
        self.reserve(fresh.len());
        if self.files.input.settings.identity.is_content() {
            self.match_by_content(fresh, now);
        } else {
            self.match_names(fresh, now);
            let awakened = self.reopen_duplicates(now);
            self.match_by_name(awakened, now);
        }
        self.files.readers.call();
        if self.pass.is_reaction {
            for id in self.files.sources.take_displaced() {
                self.files.note_missing(id, now.monotonic);
            }
        } else {
            self.update_pins(now.monotonic);
            for retired in self.files.retire_missing(now) {
                self.forecast.note_deleted(&retired.path, retired.at);
            }
            self.sweep_registry(now);
            self.delete_done(now.monotonic);
            for stalled in self.watchdog.check(&self.files, now) {
                watchdog::rescue(&self.files, &stalled);
            }
        }
        let (held, undecided) = if self.pass.is_reaction {
            (self.files.places.duplicates_max(), 0)
        } else {
            self.files.places.count_duplicates()
        };
        let undecided = undecided + self.pass.postponed;
        let matched = self.files.places.len();
        self.files.input.metrics.set_matched(matched);
        self.files.input.metrics.files_held.set(held as u64);
        ScanSummary { matched, held, undecided, sources: self.files.sources.len() }
    }

    /// Sets which of the inputs of a watcher this is; the first by default.
    pub fn set_input(&mut self, number: usize) {
        self.files.sources.set_input(number);
        self.watches.set_input(number);
    }

    /// Looks for files and acts on what has changed. With a `watcher`, and unless `full`, it does not look into watched
    /// directories without notifications.
    pub fn scan(
        &mut self,
        watcher: Option<&mut Watcher>,
        full: bool,
        now: Now,
    ) -> (ScanSummary, Vec<ScanProblem>) {
        self.begin_scan(now.monotonic);
        let input = Arc::clone(&self.files.input);
        let Some(watcher) = watcher else {
            let mut is_known = |path: &Path, meta: &Metadata| self.is_unchanged(path, meta);
            let (found, problems) = scan_changes(&*input.fs, &input.settings.scan, &mut is_known);
            let summary = self.apply(found, &problems, now);
            return (summary, problems);
        };
        let Scanned { found, problems, gone } =
            self.watches.scan(&input, &mut self.files.places, watcher, full);
        let all = self.files.add_followed(found, now.monotonic);
        if !problems.is_empty() {
            self.files.places.keep_unseen(&problems);
        }
        self.lose_paths(&gone, now.monotonic);
        if self.watches.has_listed() {
            let watches = &self.watches;
            let vanished = self.files.places.remove_unless(|path| watches.is_quiet_beside(path));
            self.lose_places(vanished, now.monotonic);
        }
        (self.process(all, now), problems)
    }

    /// Takes a notification from a watcher.
    pub fn notice(&mut self, notice: &Notice<'_>) {
        self.watches.notice(notice);
    }

    /// Whether a directory came or went, so that the next scan should not wait.
    pub fn is_restless(&self) -> bool {
        self.watches.is_restless()
    }

    /// Wakes the readers of files that were written to, and looks at names that are new.
    pub fn react(&mut self, watcher: &mut Watcher, now: Now) -> Reacted {
        let mut look = self.files.take_troubled();
        let changes = self.watches.take_changes(&self.files);
        for id in changes.wake {
            self.files.readers.wake(id);
        }
        look.extend(changes.look);
        if look.is_empty() {
            return Reacted { paths: changes.paths, looked: false };
        }
        // A file that is found twice would look like two names of it.
        look.sort_unstable();
        look.dedup();
        self.begin_names();
        let input = Arc::clone(&self.files.input);
        // The next scan reports what cannot be looked at now.
        let Scanned { found, gone, .. } =
            self.watches.look_at(&input, &mut self.files.places, watcher, &look);
        let rotated = self.files.followed.rotated_from(&look);
        if !found.is_empty() || !gone.is_empty() || !rotated.is_empty() {
            self.lose_paths(&gone, now.monotonic);
            let found = self.files.add_rotated(rotated, found, now.monotonic);
            self.process(found, now);
        }
        Reacted { paths: changes.paths, looked: true }
    }

    /// A scan, or a reaction, begins.
    fn begin_names(&mut self) {
        self.files.places.begin_scan();
        self.files.sources.begin_scan();
        // Only the first scan may rely on what was saved when it began.
        if self.sweeps.has_started() {
            self.saved.expect_new();
        }
        self.pass.postponed = 0;
        self.pass.is_reaction = true;
    }

    /// There is nothing at these paths any more.
    fn lose_paths(&mut self, gone: &[PathBuf], now: Monotonic) {
        for path in gone {
            if let Some(lost) = self.files.places.remove(path) {
                self.lose_places(vec![lost], now);
            }
        }
    }

    /// Reserves room before very many new files: a table that grows hashes all of its entries again.
    fn reserve(&mut self, files: usize) {
        if files < RESERVE_FILES_MIN || self.files.sources.len() > 0 {
            return;
        }
        self.files.places.reserve(files);
        self.files.sources.reserve(files);
        self.files.readers.reserve(files);
    }

    /// Paths have lost what was at them.
    fn lose_places(&mut self, lost: Vec<(Arc<Path>, Place)>, now: Monotonic) {
        if self.files.follows_rotated() {
            for (path, place) in &lost {
                self.rotated.note_lost(path, place, now);
            }
        }
        let (mut sources, mut others) = (Vec::new(), Vec::new());
        for (_, place) in lost {
            match place.content {
                Content::Source(id) => sources.push(id),
                content => others.push(content),
            }
        }
        // Not in the order of a hash map: the source that was displaced first is tried first.
        sources.sort_unstable();
        for id in sources {
            self.files.sources.displace(id);
        }
        for content in others {
            self.files.forget_duplicate(&content, now);
        }
    }

    /// Follows the pins that an earlier run left.
    fn load_pins(&mut self, now: Monotonic) {
        let pins = self.pins.load(&self.files);
        for path in &pins {
            let pin: Arc<Path> = Arc::from(path.as_path());
            let fs = &*self.files.input.fs;
            let of = self
                .saved
                .saved_path_of(&self.files, path)
                .or_else(|| pins::original_path(fs, path));
            if of.is_none() {
                tracing::warn!(pin = %pin.display(),
                    "nothing says what this pinned file was called: its events have the path of the pin");
            }
            let of = of.unwrap_or_else(|| Arc::clone(&pin));
            self.files.followed.add_pin(pin, of, now);
        }
        if !pins.is_empty() {
            tracing::info!(files = pins.len(), "files that were pinned are read to their end");
        }
    }

    /// A file has the content of a source. If the source is only known by its pin, because the program ended before more
    /// was saved, it is known by the name of this file from now on.
    fn name_pin(&mut self, id: SourceId, name: &Arc<Path>) {
        let Some(pin) = self.files.sources.get(id).map(|source| Arc::clone(&source.path)) else {
            return;
        };
        if self.files.followed.pinned(&pin) != Some(&pin) || self.files.followed.is_pin_path(name) {
            return;
        }
        self.files.followed.rename_pin(&pin, name);
        self.pins.rename(id, name);
        self.files.publish(id, false);
    }

    /// Pins files that are behind, removes the pins of files that are not any more, and enforces the limit.
    fn update_pins(&mut self, now: Monotonic) {
        if self.pins.is_idle(&self.files) {
            return;
        }
        let changes = self.pins.remove_spare(&self.files, now);
        self.files.apply_pin_changes(changes, now);
        for id in self.files.sources.ids_in_order() {
            let changes = self.pins.update(&self.files, id, now);
            self.files.apply_pin_changes(changes, now);
        }
        if let Some(peer) = &self.peer {
            peer.pins(self.pins.files());
        }
        let limit = self.files.input.settings.pin.max_bytes.unwrap_or(u64::MAX);
        let (kept, changes) = self.pins.enforce_limit(&self.files, self.peer.as_ref(), limit);
        self.files.apply_pin_changes(changes, now);
        self.pins.sync(&self.files);
        self.files.input.metrics.pinned_files.set(self.pins.len() as u64);
        self.files.input.metrics.pinned_bytes.set(kept);
    }

    /// Forgets registry entries, if it is time.
    fn sweep_registry(&mut self, now: Now) {
        let Some(sweep) = self.sweeps.due(&self.files.input.settings, now.monotonic) else {
            return;
        };
        if sweep == Sweep::First {
            self.saved.end_adoption();
            self.rotated.clear_saved();
        }
        sweep.run(&self.files, &self.rotated, now);
    }

    /// Some of the files, in the order of their paths. Costs a walk over all names.
    pub fn page(&mut self, query: &FileQuery, now: Now) -> FilePage {
        self.forecast.look(&self.files.places, now.monotonic);
        FileReport { files: &self.files, forecast: &self.forecast, now }.page(query)
    }

    /// Deletes files that have been done for long enough.
    fn delete_done(&mut self, now: Monotonic) {
        let Some(grace) = self.files.input.settings.delete else { return };
        self.deletions.find(&self.files, self.peer.as_ref(), grace, now);
        for id in self.deletions.due(grace, now) {
            if let Some(file) = self.deletions.delete(&self.files, self.peer.as_ref(), id) {
                self.files.keep_if_grown(id, file, now);
            }
        }
        self.deletions.sync(&self.files);
    }

    /// Another catalog has deleted files: what was added to them at the last moment is read here too.
    fn keep_deleted_by_others(&mut self, now: Monotonic) {
        let Some(peer) = &self.peer else { return };
        for (id, file) in peer.take_deleted() {
            self.files.keep_if_grown(id, file, now);
        }
    }

    fn put_place(&mut self, path: Arc<Path>, found: &Found, content: Content, recheck: bool) {
        if let Content::Source(id) = content {
            self.files.readers.set_watched(id, self.watches.watched_flag(&path));
        }
        self.fill_place(path, found, content, recheck);
    }

    /// The same, for a source whose reader knows already whether writes are reported.
    fn fill_place(&mut self, path: Arc<Path>, found: &Found, content: Content, recheck: bool) {
        self.files.places.put(path, &found.metadata, content, recheck);
    }
}

#[cfg(test)]
mod compressed_tests;
#[cfg(test)]
mod keeping_tests;
#[cfg(test)]
mod looks_tests;
#[cfg(test)]
mod named_tests;
#[cfg(test)]
mod replay_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod watches_tests;
