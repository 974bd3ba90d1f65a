//! The signal that takes a sample: of the thread that runs it copies registers and the top of the
//! stack, and nothing else.
//!
//! A handler may interrupt anything, the allocator and the unwinder of panics included. So this one
//! allocates nothing, takes no lock and follows no pointer of the interrupted program: an ordinary
//! thread interprets the stack later. The kernel checks whether each page can be read.

#![expect(
    unsafe_code,
    reason = "a signal handler, and the copy of a stack that others own, cannot be written without"
)]

use std::cell::UnsafeCell;
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering};

/// Bytes of a stack that a sample keeps: callers beyond it are not seen.
pub(super) const STACK_BYTES: usize = 64 << 10;
/// Samples that wait to be processed; more are lost, and counted.
const SLOTS: usize = 64;
/// What the kernel gives rights to.
const PAGE: usize = 4096;

const FREE: u8 = 0;
const WRITTEN: u8 = 1;
const FULL: u8 = 2;

/// Where the handler puts samples; null while no profile is recorded.
static RING: AtomicPtr<Ring> = AtomicPtr::new(ptr::null_mut());
/// Running handlers. Their memory is not freed before all are done.
static AT_WORK: AtomicUsize = AtomicUsize::new(0);
/// The handler stays once it is there: a signal that comes late must not end the program.
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// A sample of a thread.
pub(super) struct Sample {
    pub(super) thread: i32,
    pub(super) instruction: u64,
    pub(super) stack: u64,
    pub(super) frame: u64,
    /// The return address of a leaf, on ARM64.
    pub(super) link: u64,
    length: usize,
    bytes: [u8; STACK_BYTES],
}

impl Sample {
    /// The word at an address of the stack, if it was kept.
    pub(super) fn word(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.stack)?).ok()?;
        let bytes = self.bytes[..self.length].get(at..at.checked_add(8)?)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    }
}

struct Slot {
    state: AtomicU8,
    sample: UnsafeCell<Sample>,
}

// SAFETY: the thread that moved `state` from `FREE` to `WRITTEN`, or the one reader that found it
// `FULL`, has exclusive access to the sample.
unsafe impl Sync for Slot {}

struct Ring {
    slots: Box<[Slot]>,
    next: AtomicUsize,
    lost: AtomicU64,
}

/// The timer while it runs, with the samples. There is one at a time.
pub(super) struct Sampling {
    ring: *mut Ring,
}

// SAFETY: the ring is shared with handlers of all threads anyway, by atomics.
unsafe impl Send for Sampling {}

impl Sampling {
    /// Begins to sample, `rate` times in each second of CPU time of all threads. The caller makes
    /// sure that there is no other.
    pub(super) fn start(rate: u32) -> io::Result<Self> {
        let empty = || Slot {
            state: AtomicU8::new(FREE),
            sample: UnsafeCell::new(Sample {
                thread: 0,
                instruction: 0,
                stack: 0,
                frame: 0,
                link: 0,
                length: 0,
                bytes: [0; STACK_BYTES],
            }),
        };
        let slots: Box<[Slot]> = (0..SLOTS).map(|_| empty()).collect();
        let ring = Ring { slots, next: AtomicUsize::new(0), lost: AtomicU64::new(0) };
        install()?;
        let sampling = Self { ring: Box::into_raw(Box::new(ring)) };
        RING.store(sampling.ring, Ordering::SeqCst);
        set_timer(1_000_000 / rate.max(1))?;
        Ok(sampling)
    }

    /// Gives all samples that have come to `each`.
    pub(super) fn drain(&mut self, each: &mut dyn FnMut(&Sample)) {
        // SAFETY: the ring lives until `self` is dropped.
        let ring = unsafe { &*self.ring };
        for slot in &ring.slots {
            if slot.state.load(Ordering::Acquire) == FULL {
                // SAFETY: no handler touches a slot that is full, and `&mut self` makes this the one reader.
                each(unsafe { &*slot.sample.get() });
                slot.state.store(FREE, Ordering::Release);
            }
        }
    }

    /// Samples for which there was no room.
    pub(super) fn lost(&self) -> u64 {
        // SAFETY: the ring lives until `self` is dropped.
        unsafe { &*self.ring }.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        // It cannot fail with these arguments; if it did, the handler would find no ring.
        drop(set_timer(0));
        RING.store(ptr::null_mut(), Ordering::SeqCst);
        while AT_WORK.load(Ordering::SeqCst) > 0 {
            std::thread::yield_now();
        }
        // SAFETY: it came from a box, and no handler has it: those that begin now find null.
        drop(unsafe { Box::from_raw(self.ring) });
    }
}

/// The timer of the CPU time of all threads.
fn set_timer(microseconds: u32) -> io::Result<()> {
    let span = libc::timeval { tv_sec: 0, tv_usec: libc::suseconds_t::from(microseconds) };
    let timer = libc::itimerval { it_interval: span, it_value: span };
    // SAFETY: the timer is read and nothing is written back.
    if unsafe { libc::setitimer(libc::ITIMER_PROF, &raw const timer, ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn install() -> io::Result<()> {
    if INSTALLED.load(Ordering::Relaxed) {
        return Ok(());
    }
    // SAFETY: all zero is a valid action; the mask is emptied below.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = handle;
    action.sa_sigaction = handler as *const () as usize;
    // System calls go on by themselves, and a thread that is out of stack has another for signals.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: both point to what lives here, and the handler keeps what a handler must.
    let failed = unsafe {
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(libc::SIGPROF, &raw const action, ptr::null_mut()) != 0
    };
    if failed {
        return Err(io::Error::last_os_error());
    }
    INSTALLED.store(true, Ordering::Relaxed);
    Ok(())
}

extern "C" fn handle(_signal: i32, _what: *mut libc::siginfo_t, context: *mut libc::c_void) {
    AT_WORK.fetch_add(1, Ordering::SeqCst);
    let ring = RING.load(Ordering::SeqCst);
    if !ring.is_null() && !context.is_null() {
        // SAFETY: errno is this thread's own; the kernel gives the context; the ring is not freed
        // while a handler is at work.
        unsafe {
            let errno = *libc::__errno_location();
            take(&*ring, &*context.cast::<libc::ucontext_t>());
            *libc::__errno_location() = errno;
        }
    }
    AT_WORK.fetch_sub(1, Ordering::SeqCst);
}

/// Keeps a sample, if there is room.
fn take(ring: &Ring, context: &libc::ucontext_t) {
    let at = ring.next.fetch_add(1, Ordering::Relaxed) % SLOTS;
    let slot = &ring.slots[at];
    let got = slot.state.compare_exchange(FREE, WRITTEN, Ordering::Acquire, Ordering::Relaxed);
    if got.is_err() {
        ring.lost.fetch_add(1, Ordering::Relaxed);
        return;
    }
    // SAFETY: the slot is this handler's until it is full.
    let sample = unsafe { &mut *slot.sample.get() };
    registers(sample, context);
    // SAFETY: the call has no arguments.
    sample.thread = unsafe { libc::syscall(libc::SYS_gettid) } as i32;
    sample.length = 0;
    let mut from = sample.stack as usize;
    while sample.length < STACK_BYTES && is_readable(from) {
        let count = (PAGE - from % PAGE).min(STACK_BYTES - sample.length);
        // SAFETY: the page can be read, and belongs to the stack of this thread, which waits for
        // this handler, or lies behind it.
        unsafe {
            let to = sample.bytes.as_mut_ptr().add(sample.length);
            ptr::copy_nonoverlapping(ptr::with_exposed_provenance(from), to, count);
        }
        sample.length += count;
        from += count;
    }
    slot.state.store(FULL, Ordering::Release);
}

/// Whether the word at an address can be read: the kernel reads a set of signals there, before it
/// refuses the operation.
fn is_readable(address: usize) -> bool {
    const NOTHING_TO_DO: i32 = !0;
    let address = address & !7;
    // SAFETY: nothing is changed, because there is no such thing to do; a bad address is an error.
    let answer = unsafe {
        libc::syscall(libc::SYS_rt_sigprocmask, NOTHING_TO_DO, address, ptr::null_mut::<u8>(), 8)
    };
    // SAFETY: errno is this thread's own.
    answer == -1 && unsafe { *libc::__errno_location() } == libc::EINVAL
}

#[cfg(target_arch = "x86_64")]
fn registers(sample: &mut Sample, context: &libc::ucontext_t) {
    let of = |name: i32| context.uc_mcontext.gregs[name as usize] as u64;
    sample.instruction = of(libc::REG_RIP);
    sample.stack = of(libc::REG_RSP);
    sample.frame = of(libc::REG_RBP);
    sample.link = 0;
}

#[cfg(target_arch = "aarch64")]
fn registers(sample: &mut Sample, context: &libc::ucontext_t) {
    sample.instruction = context.uc_mcontext.pc;
    sample.stack = context.uc_mcontext.sp;
    sample.frame = context.uc_mcontext.regs[29];
    sample.link = context.uc_mcontext.regs[30];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_what_can_be_read() {
        let here = 7_u64;
        assert!(is_readable((&raw const here).addr()));
        assert!(!is_readable(0));
        assert!(!is_readable(0x1000));
    }
}
