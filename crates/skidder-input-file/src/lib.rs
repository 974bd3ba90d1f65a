//! The file inputs of an output: when their directories are scanned, which thread reads which file, and how one input
//! gives its files to another one.
//!
//! Which file is which source, and reading one, is `skidder-read`; queue and cursors are `skidder-pipeline`. Here is what
//! drives them: [`FileDriver`].

mod change;
mod crew;
mod cursors;
mod driver;
mod looks;
mod scanner;
mod worker;

pub use change::{Commit, Ending, Handover, InputChange};
pub use cursors::SavedCursors;
pub use driver::{FileDriver, FileDriverSettings, FileInputs};
pub use looks::{AskError, Looks};
pub use scanner::{FileInput, NextStep, Scanner};
