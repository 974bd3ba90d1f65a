//! The oracle: knows every line that was written, and says what must not be.
//!
//! - **lost**: a whole line that no output has, no dead letter holds and that is not excused;
//! - **duplicated**: read again although it was neither in flight nor unsaved when the program died, or
//!   delivered more often than it was read or sent again;
//! - **reordered**: read before a line that stands before it in the same file;
//! - **altered**: anything that is not a line that was written, or a group of lines that is not whole.
//!
//! The ledger is in [`ledger`], the rows between reader and saved cursor are in [`way`].

pub(crate) mod ledger;
pub(crate) mod outputs;
pub(crate) mod truth;
pub(crate) mod way;

pub(crate) use ledger::Ledgers;
pub(crate) use outputs::Truth;
pub(crate) use truth::{LineId, named};
pub(crate) use way::Way;
