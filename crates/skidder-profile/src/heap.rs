//! Heap: which functions allocated the memory in use, from samples.
//!
//! One allocation is sampled in [`start`]'s `every` bytes on average, so that each byte has the
//! same chance, and counted as many as it stands for, as Go does. The allocator calls
//! [`allocated`], [`freeing`] and [`not_freed`] if [`is_on`]; until then it costs it one look at a
//! flag. On, an allocation costs a subtraction, and freeing one look into a table; a sample some
//! microseconds.

#![expect(unsafe_code, reason = "the unwinder that panics use is a function of C")]

use crate::Period;
use crate::encode::{Profile, Stack};
use crate::objects::Objects;
use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Callers that are kept of an allocation.
const FRAMES_MAX: usize = 64;
/// Different stacks; what more allocate is counted without one.
const STACKS_MAX: usize = 16_384;
/// Of the table of addresses that may have been sampled.
const FILTER: usize = 8192;

/// Bytes between two samples, on average; 0: off.
static EVERY: AtomicU64 = AtomicU64::new(0);
/// How many living samples have an address that falls here.
static MAYBE: [AtomicU32; FILTER] = [const { AtomicU32::new(0) }; FILTER];
static TABLE: Mutex<Option<Table>> = Mutex::new(None);

thread_local! {
    /// Bytes until the next sample. None have been drawn yet: see `IS_NEW`.
    static LEFT: Cell<i64> = const { Cell::new(0) };
    static RANDOM: Cell<u64> = const { Cell::new(0) };
    /// This thread works on the table: its allocations there are ignored.
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

#[derive(Default)]
struct Table {
    stacks: HashMap<Box<[u64]>, Sums>,
    living: HashMap<usize, Living>,
}

/// What a stack has allocated, and what of it is there.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    made: (f64, f64),
    there: (f64, f64),
}

/// A sampled allocation, with its weight.
pub struct Living {
    stack: Box<[u64]>,
    objects: f64,
    bytes: f64,
}

/// From now on allocations are sampled, one in `every` bytes.
pub fn start(every: u64) {
    EVERY.store(every, Ordering::Relaxed);
}

/// Whether the allocator must report to this module.
#[inline(always)]
pub fn is_on() -> bool {
    EVERY.load(Ordering::Relaxed) != 0
}

/// Something was allocated.
#[cold]
pub fn allocated(at: *mut u8, size: usize) {
    if at.is_null() || IS_INSIDE.get() {
        return;
    }
    let left = LEFT.get() - i64::try_from(size).unwrap_or(i64::MAX);
    if left > 0 {
        LEFT.set(left);
        return;
    }
    let every = EVERY.load(Ordering::Relaxed) as f64;
    let is_first = RANDOM.get() == 0;
    LEFT.set(interval(every));
    // A thread begins somewhere between two samples.
    if !is_first {
        sample(at.addr(), size as f64, every);
    }
}

/// An allocation is about to be freed, or moved. Returns its sample.
#[cold]
pub fn freeing(at: *mut u8) -> Option<Living> {
    let address = at.addr();
    if MAYBE[slot(address)].load(Ordering::Relaxed) == 0 || IS_INSIDE.get() {
        return None;
    }
    inside(|table| {
        let living = table.living.remove(&address)?;
        MAYBE[slot(address)].fetch_sub(1, Ordering::Relaxed);
        if let Some(sums) = table.stacks.get_mut(&living.stack) {
            sums.there = (sums.there.0 - living.objects, sums.there.1 - living.bytes);
        }
        Some(living)
    })
}

/// It could not be moved, and is still there.
#[cold]
pub fn not_freed(at: *mut u8, living: Option<Living>) {
    if let Some(living) = living {
        inside(|table| table.keep(at.addr(), living));
    }
}

impl Table {
    fn keep(&mut self, address: usize, living: Living) {
        let sums = self.stacks.entry(living.stack.clone()).or_default();
        sums.there = (sums.there.0 + living.objects, sums.there.1 + living.bytes);
        MAYBE[slot(address)].fetch_add(1, Ordering::Relaxed);
        self.living.insert(address, living);
    }
}

fn sample(address: usize, size: f64, every: f64) {
    // The chance that an allocation of this size is sampled.
    let chance = 1.0 - (-size.max(1.0) / every).exp();
    let objects = 1.0 / chance;
    inside(|table| {
        let mut stack = own_stack();
        if table.stacks.len() >= STACKS_MAX && !table.stacks.contains_key(&stack) {
            stack = Box::default();
        }
        let sums = table.stacks.entry(stack.clone()).or_default();
        sums.made = (sums.made.0 + objects, sums.made.1 + objects * size);
        table.keep(address, Living { stack, objects, bytes: objects * size });
    });
}

/// Works on the table. Allocations meanwhile are not sampled.
fn inside<T>(work: impl FnOnce(&mut Table) -> T) -> T {
    IS_INSIDE.set(true);
    let mut table: MutexGuard<'_, Option<Table>> =
        TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    let answer = work(table.get_or_insert_default());
    drop(table);
    IS_INSIDE.set(false);
    answer
}

fn slot(address: usize) -> usize {
    // Allocations are aligned; the upper bits of the product depend on all of the address.
    ((address >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 51) % FILTER
}

/// Draws how many bytes the next sample is away: so that each byte has the same chance.
fn interval(every: f64) -> i64 {
    let mut random = RANDOM.get();
    if random == 0 {
        // Each thread has this at another address.
        random = RANDOM.with(|place| std::ptr::from_ref(place).addr() as u64) | 1;
    }
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    RANDOM.set(random);
    let uniform = ((random >> 11) as f64 + 1.0) / (1_u64 << 53) as f64;
    (-uniform.ln() * every) as i64 + 1
}

type Callback = extern "C" fn(*mut c_void, *mut c_void) -> c_int;

unsafe extern "C" {
    // Of the library that panics are unwound with, which is part of every Rust program.
    fn _Unwind_Backtrace(each: Callback, argument: *mut c_void) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

struct Walk {
    frames: [u64; FRAMES_MAX],
    count: usize,
}

extern "C" fn step(context: *mut c_void, walk: *mut c_void) -> c_int {
    const GO_ON: c_int = 0;
    const END: c_int = 5;
    // SAFETY: `own_stack` passes its own `Walk`, which is not shared meanwhile; the context is the
    // unwinder's.
    let (walk, address) = unsafe { (&mut *walk.cast::<Walk>(), _Unwind_GetIP(context)) };
    if walk.count == FRAMES_MAX || address == 0 {
        return END;
    }
    // The call is before the address to which it returns.
    walk.frames[walk.count] = address as u64 - 1;
    walk.count += 1;
    GO_ON
}

/// The callers of this function, the innermost first.
fn own_stack() -> Box<[u64]> {
    let mut walk = Walk { frames: [0; FRAMES_MAX], count: 0 };
    // SAFETY: `step` keeps what a callback must, and `walk` outlives the call.
    unsafe { _Unwind_Backtrace(step, (&raw mut walk).cast()) };
    walk.frames[..walk.count].into()
}

/// The profile of memory in use now, and of all allocated since [`start`], compressed, as
/// pprof reads it. `shown` is `inuse_space` or `alloc_space`.
pub fn profile(now: i64, span: Duration, shown: &'static str) -> io::Result<Vec<u8>> {
    let stacks: Vec<(Box<[u64]>, Sums)> =
        inside(|table| table.stacks.iter().map(|(stack, sums)| (stack.clone(), *sums)).collect());
    let names = [
        ("alloc_objects", "count"),
        ("alloc_space", "bytes"),
        ("inuse_objects", "count"),
        ("inuse_space", "bytes"),
    ];
    let every = EVERY.load(Ordering::Relaxed);
    let mut profile = Profile::new(&names, Period { kind: "space", unit: "bytes", value: every });
    profile.time(now, span);
    profile.shown(shown);
    // The callers of the allocator are of interest, not the allocator.
    profile.without("skidder_profile::heap::.*|__rustc::.*");
    for (stack, sums) in &stacks {
        let values = [sums.made.0, sums.made.1, sums.there.0, sums.there.1];
        let values = values.map(|value| value.round().max(0.0) as u64);
        profile.add(&Stack { frames: stack, values: &values, label: None });
    }
    Ok(profile.encode(&Objects::of_this_process()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sampled_stands_for_what_was_allocated_and_leaves_when_it_is_freed() {
        const SIZE: usize = 1000;
        const COUNT: usize = 20_000;
        start(10_000);
        // Addresses of nothing: the table does not look at them.
        let places: Vec<*mut u8> = (0..COUNT)
            .map(|number| std::ptr::without_provenance_mut(0x10_0000 + number * 1008))
            .collect();
        for place in &places {
            allocated(*place, SIZE);
        }
        let there = |place: usize| {
            inside(|table| {
                let sums = table.stacks.values();
                sums.map(|sums| [sums.there.0, sums.there.1, sums.made.1][place]).sum::<f64>()
            })
        };
        // Some 2000 samples: the sum is within a tenth, but once in a hundred thousand.
        let bytes = (SIZE * COUNT) as f64;
        assert!((there(1) / bytes - 1.0).abs() < 0.1, "{} of {bytes}", there(1));
        assert!((there(0) / COUNT as f64 - 1.0).abs() < 0.1, "{} of {COUNT}", there(0));
        let known = places.iter().find_map(|place| freeing(*place).map(|known| (*place, known)));
        let (place, known) = known.unwrap();
        let before = there(1);
        not_freed(place, Some(known));
        assert!(there(1) > before);
        for place in &places {
            drop(freeing(*place));
        }
        assert!(there(1).abs() < 1.0, "{}", there(1));
        assert!((there(2) / bytes - 1.0).abs() < 0.1, "what was made stays");
        assert!(MAYBE.iter().all(|maybe| maybe.load(Ordering::Relaxed) == 0));
        let profile = profile(0, Duration::from_secs(1), "inuse_space").unwrap();
        assert_eq!(profile[..2], [0x1f, 0x8b]);
        start(0);
        assert!(!is_on());
    }
}
