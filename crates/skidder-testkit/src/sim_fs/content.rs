//! The bytes of one simulated file: what readers see, and what a power cut may leave of it.
//!
//! A disk writes sectors whole and in any order it likes until a sync. So for every sector
//! changed since the last sync the contents it had before each change are kept, numbered by step, and a
//! power cut leaves any one of them or the newest. The size has a history of the same form.

use crate::Random;
use std::collections::BTreeMap;
use std::ops::Range;

/// The unit that a power cut cannot tear.
pub(super) const SECTOR: usize = 512;
/// The unit of allocation, against which the size of the disk is counted.
pub(super) const BLOCK: usize = 4096;

/// One sector's bytes; `None` stands for zeros (also those beyond the end of the file).
type Sector = Option<Box<[u8; SECTOR]>>;

#[derive(Debug, Default)]
struct History {
    /// Step of a change and the bytes before it, oldest first. The first are those on disk.
    before: Vec<(u64, Sector)>,
    /// A sync failed: the system takes the newest bytes for written, the disk still has the oldest, and
    /// no later sync mends it; only another write does.
    lost: bool,
}

/// The bytes of a file.
#[derive(Debug, Default)]
pub(super) struct Content {
    bytes: Vec<u8>,
    /// Which blocks take space on the disk; the others are holes.
    allocated: Vec<bool>,
    sectors: BTreeMap<u64, History>,
    /// Step of a change of the size and the size before it.
    sizes: Vec<(u64, usize)>,
    /// Number of changes so far, and how many of them the last sync covered.
    step: u64,
    synced: u64,
}

impl Content {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Number of blocks that take space.
    pub(super) fn blocks(&self) -> u64 {
        self.allocated.iter().filter(|allocated| **allocated).count() as u64
    }

    /// Writes as much as `free` further blocks allow; returns the bytes written and blocks taken.
    pub(super) fn write(&mut self, offset: usize, bytes: &[u8], free: u64) -> (usize, u64) {
        let (fitting, taken) = self.allocate(offset, bytes.len(), free);
        if fitting == 0 {
            return (0, taken);
        }
        let end = offset + fitting;
        self.remember(offset, end);
        self.resize(end.max(self.bytes.len()));
        self.bytes[offset..end].copy_from_slice(&bytes[..fitting]);
        self.step += 1;
        (fitting, taken)
    }

    /// Cuts or extends with a hole; returns the number of blocks set free.
    pub(super) fn set_len(&mut self, size: usize) -> u64 {
        let before = self.blocks();
        if size < self.bytes.len() {
            self.remember(size, self.bytes.len());
            self.allocated.truncate(size.div_ceil(BLOCK));
        }
        self.resize(size);
        self.step += 1;
        before - self.blocks()
    }

    /// Everything is on disk, but for what an earlier failed sync has lost.
    pub(super) fn sync(&mut self) {
        self.sectors.retain(|_, history| history.lost);
        self.sizes.clear();
        self.synced = self.step;
    }

    /// Everything is on disk, without exception.
    pub(super) fn settle(&mut self) {
        self.sectors.clear();
        self.sizes.clear();
        self.synced = self.step;
    }

    /// A sync failed: what was not on disk before will stay missing there, although it can be read.
    pub(super) fn lose(&mut self) {
        for history in self.sectors.values_mut() {
            history.before.truncate(1);
            history.lost = true;
        }
    }

    /// Leaves what a power cut leaves: what was synced, and with `random` any mix of newer sectors.
    pub(super) fn crash(&mut self, random: Option<&mut Random>) {
        let sectors = std::mem::take(&mut self.sectors);
        let mut cuts = Cuts::new(random, self.synced..self.step + 1);
        let moment = cuts.next();
        let earlier = self.sizes.iter().find(|(step, _)| *step >= moment);
        let size = earlier.map_or(self.bytes.len(), |(_, size)| *size);
        self.bytes.resize(size.max(self.bytes.len()), 0);
        for (sector, history) in sectors {
            let moment = if history.lost { 0 } else { cuts.next() };
            let Some((_, left)) = history.before.iter().find(|(step, _)| *step >= moment) else {
                continue;
            };
            let start = sector as usize * SECTOR;
            if start < self.bytes.len() {
                let end = (start + SECTOR).min(self.bytes.len());
                match left {
                    Some(left) => self.bytes[start..end].copy_from_slice(&left[..end - start]),
                    None => self.bytes[start..end].fill(0),
                }
            }
        }
        self.bytes.truncate(size);
        self.sizes.clear();
        (self.step, self.synced) = (0, 0);
        self.allocated =
            self.bytes.chunks(BLOCK).map(|block| block.iter().any(|b| *b != 0)).collect();
    }

    /// Takes blocks for a write; returns the bytes that fit and the number of blocks taken.
    fn allocate(&mut self, offset: usize, length: usize, free: u64) -> (usize, u64) {
        let end = offset + length;
        let mut taken = 0;
        for block in offset / BLOCK..end.div_ceil(BLOCK) {
            if self.allocated.get(block).copied().unwrap_or(false) {
                continue;
            }
            if taken == free {
                return ((block * BLOCK).saturating_sub(offset), taken);
            }
            if self.allocated.len() <= block {
                self.allocated.resize(block + 1, false);
            }
            self.allocated[block] = true;
            taken += 1;
        }
        (length, taken)
    }

    fn resize(&mut self, size: usize) {
        if size != self.bytes.len() {
            self.sizes.push((self.step, self.bytes.len()));
            self.bytes.resize(size, 0);
        }
    }

    /// Keeps what the sectors of `from..to` hold now.
    fn remember(&mut self, from: usize, to: usize) {
        for sector in from / SECTOR..to.div_ceil(SECTOR) {
            let start = sector * SECTOR;
            let now = self.bytes.get(start..).filter(|rest| !rest.is_empty()).map(|rest| {
                let mut copy = Box::new([0; SECTOR]);
                let length = rest.len().min(SECTOR);
                copy[..length].copy_from_slice(&rest[..length]);
                copy
            });
            let history = self.sectors.entry(sector as u64).or_default();
            history.lost = false;
            history.before.push((self.step, now));
        }
    }
}

/// The moments up to which changes have reached the disk.
enum Cuts<'a> {
    /// One moment for everything.
    Same(u64),
    /// A moment of its own for every sector.
    Each { random: &'a mut Random, moments: Range<u64> },
}

impl<'a> Cuts<'a> {
    fn new(random: Option<&'a mut Random>, moments: Range<u64>) -> Self {
        match random {
            None => Self::Same(moments.start),
            Some(random) => {
                if random.one_in(3) {
                    return Self::Same(pick(random, &moments));
                }
                Self::Each { random, moments }
            }
        }
    }

    fn next(&mut self) -> u64 {
        match self {
            Self::Same(moment) => *moment,
            Self::Each { random, moments } => pick(random, moments),
        }
    }
}

fn pick(random: &mut Random, moments: &Range<u64>) -> u64 {
    moments.start + random.below(moments.end - moments.start)
}
