//! The catalog: which found file is which source.
//!
//! A name proves nothing. Each scan matches the files that are new or changed against the known sources,
//! best evidence first:
//!
//! 1. same inode, same beginning, same bytes before the cursor: the file it was, perhaps renamed;
//! 2. same beginning as a source whose file is gone from its place, and the same bytes before its cursor:
//!    the file was copied, moved or compressed, and is read on from the cursor;
//! 3. same inode and beginning, but shorter than what was read or with other bytes before the cursor: it
//!    was rewritten, a new generation from zero; what it was keeps its cursor for a while (`former.rs`);
//! 4. same beginning as a source that is still in its place: compared to the end. What is the same is held
//!    back as a copy; what differs is a source of its own with a longer fingerprint;
//! 5. nothing of the kind: what the registry knows of it, or a new source.
//!
//! Where `file_identity` asks for names instead, these decide, and the content only says whether a file still
//! holds what was read (`named.rs`).

mod adopt;
mod beside;
mod delete;
mod former;
mod heads;
mod ids;
mod index;
mod leaving;
mod looks;
mod matching;
mod named;
mod peers;
mod pins;
mod place;
mod portions;
mod prefixes;
mod rotation;
mod saved;
mod saved_prints;
mod sources;
mod sweep;
mod troubled;
mod twins;
mod watchdog;
mod watched;
mod weak;

use crate::compare::{Comparison, Longer};
use crate::fingerprint::{Fingerprint, Head};
use crate::identity::Marker;
use crate::reader::InputContext;
use crate::readers::Readers;
use crate::scan::{Found, ScanProblem};
use crate::watch::Directories;
use adopt::Adoptable;
use beside::Beside;
use delete::Deletion;
use foldhash::HashMap;
pub use ids::SourceIds;
use index::Index;
pub use leaving::Leaving;
pub use looks::{FileLook, FilePage, FileQuery, FileState, Reason};
pub(crate) use matching::is_related;
pub use peers::Peer;
use pins::Pins;
pub(crate) use portions::HEADS_BYTES_MAX;
use rotation::Rotations;
use saved::Claim;
use saved_prints::SavedPrints;
use skidder_event::SourceId;
use skidder_os::{Metadata, Monotonic, Timestamp, is_out_of_descriptors};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use troubled::Refused;
use watchdog::Watchdog;
pub use watched::Reacted;

/// How long the state of a vanished file is kept: its compressed copy may appear a little later.
pub const MISSING_GRACE: Duration = Duration::from_mins(1);

/// Bytes that all comparisons of one scan may take together.
const COMPARE_BYTES_PER_SCAN: u64 = 64 << 20;

/// So many files that looking at all sources first costs less than matching each of them.
const MANY: usize = 64;

/// All files of one input.
pub struct Catalog {
    input: Arc<InputContext>,
    /// The number of the input.
    number: usize,
    readers: Arc<Readers>,
    ids: Arc<SourceIds>,
    /// Where the files are, and what is told of them.
    directories: Directories,
    places: HashMap<Arc<Path>, Place>,
    sources: HashMap<SourceId, Known>,
    index: Index,
    /// Saved entries whose fingerprints are shorter or longer than usual and that no source has yet.
    saved: SavedPrints,
    /// Whether the registry had entries of this input at the start, or it may have had some.
    has_saved: bool,
    /// Saved entries under other keys that files may go on with.
    adoptable: Adoptable,
    beside: Beside,
    pins: Pins,
    rotations: Rotations,
    /// Sources by their keys, where files are known by names.
    names: HashMap<Arc<str>, SourceId>,
    /// The name of what files are known by, for their entries.
    identity: Arc<str>,
    marker: Marker,
    scans: u64,
    /// Files that are held back, at most: exact after a scan, counted up during it.
    twins: usize,
    /// Places that this scan has found again.
    found_again: usize,
    /// Comparisons that this scan had no room for.
    postponed: usize,
    /// Sources that lost their places in this scan, or reaction.
    lost: Vec<SourceId>,
    /// Only some names are looked at: what concerns all files waits for the next scan.
    brief: bool,
    started: Option<Monotonic>,
    /// When the scan, or reaction, began.
    now: Monotonic,
    /// Files that are to be deleted.
    deletions: std::collections::HashMap<SourceId, Deletion>,
    /// Directories in which files were deleted, until that is durable.
    deleted_in: BTreeSet<PathBuf>,
    /// The other catalogs of this input, if it feeds several outputs.
    peer: Option<Peer>,
    /// When the registry was looked through for what can be forgotten.
    swept: Option<Monotonic>,
    watchdog: Watchdog,
    scratch: Vec<u8>,
}

/// A path as the last scan saw it.
struct Place {
    device: u64,
    inode: u64,
    size: u64,
    modified: Timestamp,
    scan: u64,
    holds: Holds,
    /// To be looked at again although it did not change.
    recheck: bool,
}

/// What is at a path.
enum Holds {
    Source(SourceId),
    /// The same content as another source, as far as is known.
    Twin(Box<Twin>),
    /// Nothing that can be read yet: too short, damaged, not permitted.
    Nothing,
}

struct Twin {
    of: SourceId,
    comparison: Option<Comparison>,
    /// Sources to compare with after this one.
    rivals: Vec<SourceId>,
    /// The first byte in which it differs from all it was compared with.
    differs: Differs,
    told: bool,
}

/// Where two files differ, and which one goes on if the other has ended there.
type Differs = Option<(u64, Option<Longer>)>;

impl Twin {
    fn of(of: SourceId) -> Self {
        Self { of, comparison: None, rivals: Vec::new(), differs: None, told: false }
    }
}

struct Known {
    fingerprint: Fingerprint,
    /// Of a fingerprint that is longer than usual: the hash of the usual length, which another source
    /// shares.
    shared: Option<Box<[u8; 32]>>,
    /// The cheap number of the bytes of a fingerprint that is not longer than usual, if it is known.
    trace: Option<u64>,
    /// In the registry; shared with all who know the source.
    key: Arc<str>,
    path: Arc<Path>,
    device: u64,
    inode: u64,
    size: u64,
    compressed: bool,
    /// Its file was rewritten: it has lost its place, and its key to what is there now.
    former: bool,
    /// Where it ended when it was saved, if it is looked at once more nevertheless: a compressed file.
    ended_at: Option<u64>,
    /// Compressed files that its reader found to hold something else.
    refused: Refused,
    /// Its reader was not told of `path`.
    untold: bool,
    placed: bool,
    /// Something of it was left out because the file was ignored when it was found.
    skipped: bool,
    missing_since: Option<Monotonic>,
}

/// A found file that must be matched, with its beginning.
struct Candidate {
    found: Found,
    path: Arc<Path>,
    head: Head,
    /// What the place held before.
    before: Option<Holds>,
    /// The file was touched, and `resend_on_touch` asks for it to be read again.
    touched: bool,
    /// What the registry knows of it, if that was asked already.
    claim: Option<Box<Claim>>,
    /// It was compared with this source, is a copy of it, and has not changed since.
    copy_of: Option<SourceId>,
}

/// Time as a scan needs it.
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
    /// Files held back as copies of others.
    pub held: usize,
    /// Of those, files whose comparison goes on with the next scan.
    pub undecided: usize,
    /// Files with a source.
    pub sources: usize,
}

impl Catalog {
    /// An empty catalog.
    pub fn new(input: Arc<InputContext>, readers: Arc<Readers>, ids: Arc<SourceIds>) -> Self {
        let identity = Arc::from(input.settings.identity.name());
        Self {
            input,
            number: 0,
            readers,
            ids,
            directories: Directories::default(),
            places: HashMap::default(),
            sources: HashMap::default(),
            index: Index::default(),
            saved: SavedPrints::default(),
            has_saved: true,
            adoptable: Adoptable::default(),
            beside: Beside::default(),
            pins: Pins::default(),
            rotations: Rotations::default(),
            names: HashMap::default(),
            identity,
            marker: Marker::default(),
            scans: 0,
            twins: 0,
            found_again: 0,
            postponed: 0,
            lost: Vec::new(),
            brief: false,
            started: None,
            now: Monotonic::default(),
            deletions: std::collections::HashMap::default(),
            deleted_in: BTreeSet::new(),
            peer: None,
            swept: None,
            watchdog: Watchdog::default(),
            scratch: vec![0; 64 << 10],
        }
    }

    /// Others have catalogs of the same input, for other outputs. Said before the first scan.
    pub fn set_peer(&mut self, peer: Peer) {
        self.peer = Some(peer);
    }

    /// A scan begins: until [`Catalog::apply`] it may ask which files have not changed.
    pub fn begin_scan(&mut self, now: Monotonic) {
        self.begin_names();
        self.brief = false;
        self.started.get_or_insert(now);
        if !self.saved.is_loaded() {
            self.load_saved(now);
        }
        self.keep_what_others_deleted(now);
        self.marker.refresh(&*self.input.fs, &self.input.settings.identity);
        self.take_troubled();
    }

    /// Whether a path holds what it held at the last scan, so that there is nothing to do about it.
    pub fn is_unchanged(&mut self, path: &Path, meta: &Metadata) -> bool {
        let Some(place) = self.places.get_mut(path) else { return false };
        if place.scan != self.scans {
            place.scan = self.scans;
            self.found_again += 1;
        }
        place.is_as_seen(meta) && !place.recheck
    }

    /// Takes in what a scan found and [`Catalog::is_unchanged`] did not know. Starts, moves, restarts and
    /// forgets readers accordingly.
    ///
    /// What is in a directory that could not be listed (`problems`) is taken to be as it was.
    pub fn apply(&mut self, fresh: Vec<Found>, problems: &[ScanProblem], now: Now) -> ScanSummary {
        let all = self.add_beside(fresh, now.monotonic);
        if !problems.is_empty() {
            self.found_again += self.keep_unseen(problems);
            if problems.iter().any(|problem| is_out_of_descriptors(&problem.error)) {
                self.readers.give_way();
            }
        }
        if self.found_again < self.places.len() {
            self.drop_vanished(now.monotonic);
        }
        self.take_in(all, now)
    }

    fn take_in(&mut self, fresh: Vec<Found>, now: Now) -> ScanSummary {
        self.now = now.monotonic;
        let fresh = if self.saved.is_loaded() { fresh } else { self.put_off(fresh) };
        let all = self.add_rotated(fresh, now);
        let fresh = self.displace(all);
        self.reserve(fresh.len());
        if self.input.settings.identity.is_content() {
            self.match_by_content(fresh, now);
        } else {
            self.match_names(fresh, now);
            let awakened = self.awaken_twins(now);
            self.match_by_name(awakened, now);
        }
        self.readers.call();
        if self.brief {
            for id in std::mem::take(&mut self.lost) {
                self.note_missing(id, now.monotonic);
            }
        } else {
            self.keep_pins(now.monotonic);
            self.retire_missing(now);
            self.sweep_registry(now);
            self.delete_done(now);
            self.find_stalled(now);
        }
        let (held, undecided) = self.count_twins();
        let undecided = undecided + self.postponed;
        let matched = self.places.len();
        self.input.metrics.files_matched.set(matched as u64);
        self.input.metrics.files_held.set(held as u64);
        ScanSummary { matched, held, undecided, sources: self.sources.len() }
    }

    /// Makes room for what is known of so many files, if there may be so many new ones: a table that grows hashes all
    /// that is in it again.
    fn reserve(&mut self, files: usize) {
        if files < MANY || !self.sources.is_empty() {
            return;
        }
        self.places.reserve(files);
        self.sources.reserve(files);
        self.index.reserve(files);
        self.readers.reserve(files);
    }

    /// Matches changed files by what they hold, all of them in each pass.
    fn match_together(&mut self, candidates: Vec<Candidate>, now: Now) {
        let mut candidates = self.match_inodes(candidates);
        let rotated = self.add_rotated_late(&candidates, now);
        candidates.extend(self.match_inodes(rotated));
        let awakened = self.awaken_twins(now);
        candidates.extend(self.match_inodes(awakened));
        // A plain copy proves what it is at once; a compressed one may still be growing.
        candidates.sort_by_key(|candidate| candidate.head.compressed);
        // These are about sources that lost their places. At a start there are none, and very many files.
        if candidates.len() < MANY || self.sources.values().any(|known| !known.placed) {
            candidates = self.match_content(candidates);
            candidates = self.match_rewritten(candidates, now);
        }
        self.order_by_proof(&mut candidates);
        let mut budget = COMPARE_BYTES_PER_SCAN;
        for candidate in candidates {
            self.match_others(candidate, now, &mut budget);
        }
        self.compare_twins(now, &mut budget);
    }

    /// Keeps places that the scan had no chance to see; says how many.
    fn keep_unseen(&mut self, problems: &[ScanProblem]) -> usize {
        let mut kept = 0;
        for (path, place) in &mut self.places {
            let unseen = problems.iter().any(|problem| path.starts_with(&problem.path));
            if place.scan != self.scans && unseen {
                place.scan = self.scans;
                kept += 1;
            }
        }
        kept
    }

    /// Sources whose paths are gone lose their place.
    fn drop_vanished(&mut self, now: Monotonic) {
        let scan = self.scans;
        self.drop_places(|_, place| place.scan == scan, now);
    }

    /// Paths lose what was at them, but for those that are kept.
    fn drop_places(&mut self, keep: impl Fn(&Path, &Place) -> bool, now: Monotonic) {
        let follows = self.follows_links();
        let (beside, mut lost, mut twins) = (&mut self.beside, Vec::new(), Vec::new());
        self.places.retain(|path, place| {
            let kept = keep(path, place);
            if !kept && follows {
                beside.lose(path, place, now);
            }
            match &place.holds {
                Holds::Source(id) if !kept => lost.push(*id),
                Holds::Twin(_) if !kept => {
                    twins.push(std::mem::replace(&mut place.holds, Holds::Nothing));
                }
                _ => {}
            }
            kept
        });
        // Not in the order of a hash map: what lost its place first is asked first who it may be.
        lost.sort_unstable();
        for id in lost {
            self.unplace(id);
        }
        for holds in twins {
            self.lose_twin(&holds, now);
        }
    }

    /// Whether what was rotated away from the target of a link is looked for.
    fn follows_links(&self) -> bool {
        self.input.settings.scan.symlinks && self.input.settings.identity.is_content()
    }

    fn put_place(&mut self, path: Arc<Path>, found: &Found, holds: Holds, recheck: bool) {
        if let Holds::Source(id) = holds {
            self.readers.set_teller(id, self.directories.tells_of(&path));
        }
        self.fill_place(path, found, holds, recheck);
    }

    /// The same, for a source that knows already who tells of writes to it.
    fn fill_place(&mut self, path: Arc<Path>, found: &Found, holds: Holds, recheck: bool) {
        let meta = &found.metadata;
        self.twins += usize::from(matches!(holds, Holds::Twin(_)));
        let place = Place {
            device: meta.device,
            inode: meta.inode,
            size: meta.size,
            modified: meta.modified,
            scan: self.scans,
            holds,
            recheck,
        };
        self.places.insert(path, place);
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
mod watched_tests;
