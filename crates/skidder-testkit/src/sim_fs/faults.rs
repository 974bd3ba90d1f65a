//! Which operation fails, and how.

use crate::Random;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The kinds of operations that are counted and can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Opening, for reading or writing; also creating.
    Open,
    /// Reading from an open file.
    Read,
    /// Writing to an open file.
    Write,
    /// Cutting or extending an open file.
    SetLen,
    /// Making data or names durable.
    Sync,
    /// Renaming, or giving a second name.
    Rename,
    /// Removing a name.
    Remove,
    /// Creating directories.
    CreateDir,
    /// Asking for metadata, by path or of an open file; also resolving a path.
    Stat,
    /// Listing or scanning a directory.
    List,
    /// Taking a lock.
    Lock,
}

/// A planned failure: by default of one operation of any kind on any path.
#[derive(Clone, Debug)]
pub struct Fault {
    kind: io::ErrorKind,
    /// Matching operations that still succeed before.
    after: u64,
    times: u64,
    operation: Option<Operation>,
    path: Option<PathBuf>,
}

impl Fault {
    /// The `nth` matching operation from now (the next one is 1) fails with `kind`.
    pub fn nth(nth: u64, kind: io::ErrorKind) -> Self {
        Self { kind, after: nth.saturating_sub(1), times: 1, operation: None, path: None }
    }

    /// Only operations of this kind match.
    #[must_use]
    pub fn of(mut self, operation: Operation) -> Self {
        self.operation = Some(operation);
        self
    }

    /// Only operations on this path, as it was spelled when the file was opened, or below it match.
    #[must_use]
    pub fn on(mut self, path: impl Into<PathBuf>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// So many matching operations fail in a row.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = times;
        self
    }

    /// All matching operations fail from then on.
    #[must_use]
    pub fn forever(self) -> Self {
        self.times(u64::MAX)
    }
}

/// Counters and plans. Lean, because every operation goes through it.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// Operations so far, also failed ones.
    pub(super) count: u64,
    /// The same by kind.
    pub(super) counts: [u64; Operation::Lock as usize + 1],
    /// A number made of all of them, with their paths, in their order.
    pub(super) trace: u64,
    /// Called for each operation.
    pub(super) listener: Option<fn(Operation, &Path)>,
    /// The count at which everything stops.
    pub(super) halt_at: Option<u64>,
    pub(super) planned: Vec<Fault>,
    /// Syncs do nothing and say that they did.
    pub(super) lying: bool,
    /// Present: reads and writes are shortened now and then.
    pub(super) short: Option<Random>,
}

impl Faults {
    /// Counts an operation and says whether it goes ahead.
    pub(super) fn begin(&mut self, operation: Operation, path: &Path) -> io::Result<()> {
        self.count += 1;
        self.counts[operation as usize] += 1;
        self.note(operation as u64);
        for &byte in path.as_os_str().as_bytes() {
            self.note(byte.into());
        }
        if let Some(listener) = self.listener {
            listener(operation, path);
        }
        if self.halted() {
            return Err(io::Error::other("the simulated machine has halted"));
        }
        if self.planned.is_empty() {
            return Ok(());
        }
        let mut failure = None;
        for fault in &mut self.planned {
            if fault.operation.is_some_and(|wanted| wanted != operation)
                || fault.path.as_ref().is_some_and(|wanted| !path.starts_with(wanted))
            {
                continue;
            }
            if fault.after > 0 {
                fault.after -= 1;
            } else if failure.is_none() {
                failure = Some(fault.kind);
                fault.times -= 1;
            }
        }
        self.planned.retain(|fault| fault.times > 0);
        failure.map_or(Ok(()), |kind| Err(kind.into()))
    }

    /// Adds a number to the trace (FNV-1a, of numbers instead of bytes).
    pub(super) fn note(&mut self, number: u64) {
        self.trace = (self.trace ^ number).wrapping_mul(0x0000_0100_0000_01b3);
    }

    pub(super) fn halted(&self) -> bool {
        self.halt_at.is_some_and(|halt| self.count >= halt)
    }

    /// How much of a transfer of `length` bytes goes through: at least one byte.
    pub(super) fn shorten(&mut self, length: usize) -> usize {
        let Some(random) = &mut self.short else { return length };
        if length < 2 || random.one_in(2) {
            return length;
        }
        1 + random.below(length as u64 - 1) as usize
    }
}
