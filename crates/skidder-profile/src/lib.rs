//! Profiles of the running program, in the format that pprof, speedscope and others open.
//!
//! [`cpu`] samples the running functions, [`heap`] memory that is allocated and not freed. Neither
//! costs anything before it is started: there is no signal handler, and the allocator only checks a
//! flag. The names of functions come from the symbol table of the program ([`objects`](Objects));
//! without one a profile has addresses and the program's build id, and pprof finds the names in a
//! copy that has them. For Linux on x86-64 and ARM64.

pub mod cpu;
mod encode;
pub mod heap;
mod objects;

pub use objects::Objects;

/// The unit and the number of what a profile is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Period {
    pub(crate) kind: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) value: u64,
}
