//! Files that begin as a known source does: copies are held back, others become sources of their own.

use super::{Candidate, Catalog, Differs, Holds, Known, Twin};
use crate::Now;
use crate::compare::{Comparison, Longer, Side, Verdict};
use crate::fingerprint::{Head, read_up_to};
use crate::scan::Found;
use skidder_event::SourceId;
use skidder_os::sabotage::{self, Sabotage};
use skidder_os::{FileId, Monotonic, open_same};
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// Bytes at the end of a copy that are compared each time its original grows.
const END_BYTES: u64 = 512;

impl Catalog {
    /// Copies of a source that has lost its place may be where it goes on.
    pub(super) fn awaken_twins(&mut self, now: Now) -> Vec<Candidate> {
        let mut fresh = Vec::new();
        if self.twins == 0 || self.brief || sabotage::is_on(Sabotage::TwinsForgotten) {
            return Vec::new();
        }
        for (path, place) in &self.places {
            if let Holds::Twin(twin) = &place.holds
                && self.is_loose(twin.of)
            {
                fresh.push(Found { path: path.to_path_buf(), metadata: place.metadata() });
            }
        }
        fresh.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        let fresh = self.displace(fresh);
        self.read_heads(fresh, now)
    }

    /// Files held back, and those of them whose comparison goes on.
    pub(super) fn count_twins(&mut self) -> (usize, usize) {
        let (mut held, mut undecided) = (0, 0);
        if self.brief {
            return (self.twins, 0);
        }
        if self.twins > 0 {
            for place in self.places.values() {
                if let Holds::Twin(twin) = &place.holds {
                    held += 1;
                    undecided += usize::from(twin.comparison.is_some());
                }
            }
            self.twins = held;
        }
        (held, undecided)
    }

    /// Last passes: a copy of what is elsewhere, something the registry knows, or something new.
    pub(super) fn match_others(&mut self, candidate: Candidate, now: Now, budget: &mut u64) {
        if let Some(of) = self.other_name_of(&candidate) {
            // Another name of the same file, unless it is the one it has.
            if self.sources.get(&of).is_some_and(|known| known.path == candidate.path) {
                self.settle(candidate, of, false);
            } else {
                self.hold(candidate.path, &candidate.found, Twin::of(of));
            }
            return;
        }
        let alike = self.alike(&candidate);
        let mut rivals: Vec<SourceId> =
            alike.iter().copied().filter(|&id| !self.is_loose(id)).collect();
        for id in self.rivals(&candidate) {
            if !rivals.contains(&id) {
                rivals.push(id);
            }
        }
        if rivals.is_empty() {
            // One that only begins as this one does keeps its place for what it was.
            let print = candidate.head.print();
            let has_print = |known: &Known| !known.former && known.fingerprint == print;
            let gone = alike.iter().find(|id| self.sources.get(id).is_some_and(has_print));
            match gone {
                // What had this fingerprint is gone, and this is not it.
                Some(&id) => self.start_anew(candidate, id, now),
                None => self.begin(candidate, None, now),
            }
            return;
        }
        rivals.reverse();
        self.compare_next(candidate, rivals, None, now, budget);
    }

    /// Compares a file with the last of `rivals`, and with the others if they differ.
    fn compare_next(
        &mut self,
        candidate: Candidate,
        mut rivals: Vec<SourceId>,
        differs: Differs,
        now: Now,
        budget: &mut u64,
    ) {
        let Some(of) = rivals.pop() else {
            let mut loose = self.alike(&candidate);
            loose.retain(|&id| self.is_loose(id) && self.proves(&candidate, id));
            if let Some(&id) = loose.first() {
                self.take_over(candidate, id);
            } else if let Some(id) = self.rewritten(&candidate) {
                self.start_anew(candidate, id, now);
            } else {
                self.begin(candidate, differs, now);
            }
            return;
        };
        if *budget == 0 {
            // Each comparison has two files open; it begins with a later scan.
            self.put_place(candidate.path, &candidate.found, Holds::Nothing, true);
            self.postponed += 1;
            return;
        }
        match self.compare(&candidate, of) {
            Ok(comparison) => {
                let comparison = Some(comparison);
                let twin = Twin { comparison, rivals, differs, ..Twin::of(of) };
                self.judge(candidate.path, candidate.found, candidate.head, twin, now, budget);
            }
            Err(error) => self.cannot_compare(candidate.path, &candidate.found, &error),
        }
    }

    fn cannot_compare(&mut self, path: Arc<Path>, found: &Found, error: &io::Error) {
        tracing::warn!(path = %path.display(), %error,
            "a file cannot be compared with another that begins alike; trying again");
        self.put_place(path, found, Holds::Nothing, true);
    }

    /// Goes on with a comparison and acts on its outcome.
    pub(super) fn judge(
        &mut self,
        path: Arc<Path>,
        found: Found,
        head: Head,
        mut twin: Twin,
        now: Now,
        budget: &mut u64,
    ) {
        let Some(mut comparison) = twin.comparison.take() else {
            self.hold(path, &found, twin);
            return;
        };
        let differs = match comparison.step(&mut self.scratch, budget) {
            Ok(Verdict::Undecided) => {
                twin.comparison = Some(comparison);
                self.hold(path, &found, twin);
                return;
            }
            Ok(Verdict::Same) => {
                self.name_pin(twin.of, &path);
                self.hold(path, &found, twin);
                return;
            }
            // Shorter than the other: being copied, or compressed just now.
            Ok(Verdict::Differ { longer: Some(Longer::Other), .. }) => {
                self.hold(path, &found, twin);
                return;
            }
            Ok(Verdict::Differ { at, longer }) => (at, longer),
            Err(error) => {
                self.cannot_compare(path, &found, &error);
                return;
            }
        };
        let is_cut = differs.1 == Some(Longer::One) && comparison.is_other_cut();
        drop(comparison);
        let copy_of = None;
        let candidate =
            Candidate { found, path, head, before: None, touched: false, claim: None, copy_of };
        if is_cut && self.is_compressed_to(&candidate, twin.of) {
            self.take_back(candidate, twin.of);
            return;
        }
        if self.is_another_now(twin.of, differs.0) {
            // Both began alike when this scan listed them: the other was rewritten since. This file may
            // be the copy of what it was; the next scan knows.
            self.recheck_source(twin.of);
            self.put_place(candidate.path, &candidate.found, Holds::Nothing, true);
            self.postponed += 1;
            return;
        }
        let differs = match twin.differs {
            Some(before) if before.0 >= differs.0 => before,
            _ => differs,
        };
        self.compare_next(candidate, twin.rivals, Some(differs), now, budget);
    }

    /// Whether the names say that what a source is read from was compressed from a plain file, and whether that has what
    /// was read.
    fn is_compressed_to(&self, candidate: &Candidate, id: SourceId) -> bool {
        let Some(known) = self.sources.get(&id) else { return false };
        let is_named = || {
            let name = known.path.as_os_str().as_bytes();
            let end = name.strip_prefix(candidate.path.as_os_str().as_bytes());
            end.is_some_and(|end| end.starts_with(b".") && !end.contains(&b'/'))
        };
        known.compressed && !candidate.head.compressed && is_named() && self.proves(candidate, id)
    }

    /// A source goes on in the plain file that its compressed one is just being made from, and which has all that is in
    /// that: a reaction between two scans can have seen the compressed one first.
    fn take_back(&mut self, candidate: Candidate, id: SourceId) {
        let compressed = self.sources.get(&id).map(|known| Arc::clone(&known.path));
        self.settle(candidate, id, true);
        if let Some(place) = compressed.and_then(|path| self.places.get_mut(&path)) {
            // It is a copy, as soon as it is complete.
            place.holds = Holds::Twin(Box::new(Twin { told: true, ..Twin::of(id) }));
            place.recheck = true;
            self.twins += 1;
        }
    }

    /// The next scan looks at the file of a source, whether it seems to have changed or not.
    fn recheck_source(&mut self, id: SourceId) {
        if let Some(known) = self.sources.get(&id)
            && let Some(place) = self.places.get_mut(&known.path)
        {
            place.recheck = true;
        }
    }

    /// Whether the file of a source, which differs from another one at `at`, is not any more what it was: it does not
    /// begin as it did, or the bytes before the cursor are others.
    fn is_another_now(&self, id: SourceId, at: u64) -> bool {
        let Some(known) = self.sources.get(&id) else { return false };
        if self.shares(known).contains(&at) {
            return true;
        }
        let Some(look) = self.readers.look(id).filter(|_| !known.compressed) else { return false };
        if look.in_turn && look.offset <= at {
            // What it was when this turn read it is known when that is over.
            return true;
        }
        // An error speaks against nothing.
        let as_read = self.input.fs.metadata(&known.path).and_then(|meta| {
            let same = (meta.device, meta.inode) == (known.device, known.inode);
            Ok(!same || self.is_as_read(&known.path, &meta, look.offset, look.tail)?)
        });
        !as_read.unwrap_or(true)
    }

    /// The bytes that a file must share with a source to be compared with it.
    fn shares(&self, known: &Known) -> Range<u64> {
        let settings = &self.input.settings.fingerprint;
        let len = match &known.fingerprint {
            print if print.whole && known.shared.is_none() => 0,
            print if print.whole => settings.length,
            print => print.len.min(settings.length),
        };
        settings.offset..settings.offset + u64::from(len)
    }

    /// The file of a source has changed: a copy of what it was may be all that is left of that, and is
    /// compared again unless it ends as the file does at its length.
    pub(super) fn doubt_twins_of(&mut self, id: SourceId) {
        if self.twins == 0 {
            return;
        }
        let Some(known) = self.sources.get(&id) else { return };
        let here = FileId { device: known.device, inode: known.inode };
        let mut copies = Vec::new();
        for (path, place) in &self.places {
            if let Holds::Twin(twin) = &place.holds
                && twin.of == id
                && twin.comparison.is_none()
                && place.metadata().id() != here
            {
                copies.push((Arc::clone(path), place.metadata().id(), place.size));
            }
        }
        // Not in the order of a hash map: the simulated world replays what is asked of the disk.
        copies.sort_unstable();
        copies.retain(|(path, id, size)| {
            known.compressed || !self.ends_alike((path, *id), (&known.path, here), *size)
        });
        for (path, ..) in copies {
            if let Some(place) = self.places.get_mut(&path) {
                place.recheck = true;
            }
        }
    }

    /// Whether two plain files have the same bytes before `size`.
    fn ends_alike(&self, one: (&Path, FileId), other: (&Path, FileId), size: u64) -> bool {
        let start = size.saturating_sub(END_BYTES);
        let end = |(path, id): (&Path, FileId)| -> io::Result<Vec<u8>> {
            let mut bytes = vec![0; (size - start) as usize];
            let file = open_same(&*self.input.fs, path, id)?;
            let count = read_up_to(&*file, &mut bytes, start)?;
            bytes.truncate(count);
            Ok(bytes)
        };
        match (end(one), end(other)) {
            (Ok(one), Ok(other)) => one == other,
            _ => false,
        }
    }

    /// Goes on with the comparisons that were not decided in one scan.
    pub(super) fn compare_twins(&mut self, now: Now, budget: &mut u64) {
        if self.twins == 0 || self.brief {
            return;
        }
        let mut undecided: Vec<Arc<Path>> = self
            .places
            .iter()
            .filter(
                |(_, place)| matches!(&place.holds, Holds::Twin(twin) if twin.comparison.is_some()),
            )
            .map(|(path, _)| Arc::clone(path))
            .collect();
        undecided.sort_unstable();
        for path in undecided {
            if *budget == 0 {
                return;
            }
            let Some(place) = self.places.remove(&path) else { continue };
            let metadata = place.metadata();
            let found = Found { path: path.to_path_buf(), metadata };
            let Holds::Twin(twin) = place.holds else { continue };
            match self.head(&found) {
                Ok(Some(head)) => self.judge(path, found, head, *twin, now, budget),
                _ => self.put_place(path, &found, Holds::Nothing, true),
            }
        }
    }

    pub(super) fn compare(&self, candidate: &Candidate, of: SourceId) -> io::Result<Comparison> {
        let known = self.sources.get(&of).ok_or(io::ErrorKind::NotFound)?;
        let other = FileId { device: known.device, inode: known.inode };
        let other = open_same(&*self.input.fs, &known.path, other)?;
        let other = Side::new(other, known.compressed, &self.input.decoders);
        Ok(Comparison::new(self.side_of(candidate)?, other))
    }

    pub(super) fn hold(&mut self, path: Arc<Path>, found: &Found, mut twin: Twin) {
        if twin.comparison.is_none() && !twin.told {
            twin.told = true;
            if let Some(known) = self.sources.get(&twin.of) {
                tracing::info!(path = %path.display(), same_as = %known.path.display(),
                    "a file has the same content as another and is not read twice");
            }
        }
        self.put_place(path, found, Holds::Twin(Box::new(twin)), false);
    }

    /// What was held as a copy is not there any more, or something else is: the source that it is all that was left of is
    /// missing from now on, and not since it lost its own place.
    pub(super) fn lose_twin(&mut self, holds: &Holds, now: Monotonic) {
        if let Holds::Twin(twin) = holds
            && let Some(known) = self.sources.get_mut(&twin.of)
            && !known.placed
        {
            known.missing_since = known.missing_since.map(|_| now);
        }
    }

    /// Copies of a source that is gone are looked at again.
    pub(super) fn release_twins_of(&mut self, id: SourceId) {
        for place in self.places.values_mut() {
            if matches!(&place.holds, Holds::Twin(twin) if twin.of == id) {
                place.recheck = true;
            }
        }
    }
}
