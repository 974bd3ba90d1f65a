//! Whether the program was started with a closed standard output (`>&-`).
//!
//! Before `main` the runtime of the language opens `/dev/null` for each of the descriptors 0 to 2 that is closed, so that no
//! file of ours gets its number. Events that go there would count as delivered. Afterwards it looks like a
//! `/dev/null` that the user chose, so it is checked before.

#![expect(unsafe_code, reason = "only a constructor of the program runs before the runtime")]

use rustix::io::Errno;
use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: the loader calls the function in this section before `main`, in the one thread that there is. `look` asks
// the system one question and stores a flag: it needs nothing that the runtime of the language prepares.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    let flags = rustix::io::fcntl_getfd(rustix::stdio::stdout());
    WAS_CLOSED.store(flags == Err(Errno::BADF), Ordering::Relaxed);
}

/// Whether the standard output was closed when the program began.
pub(crate) fn stdout_was_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}
