//! The seams to the operating system: [`Fs`] with [`Notifier`], and [`Clock`], and
//! their real versions.
//!
//! Everything that thinks (scanner, reader, registry, dead letters) takes these traits, so that the
//! testkit can run it on a simulated file system and clock from a seed. Nothing outside this crate
//! calls `std::fs` for data that must survive, or reads the time from the operating system.

mod boxes;
mod capabilities;
mod clock;
mod dated;
mod fs;
mod notify;
mod owner;
mod real;
pub mod sabotage;

pub use boxes::Boxes;
pub use capabilities::capability_name;
pub use clock::{Clock, Monotonic, SystemClock, Timestamp};
pub use dated::{DATED_EXTENSION, DatedName, directory_permissions};
pub use fs::{
    DirEntry, File, FileId, FileKind, Fs, Metadata, OpenMode, PRIVATE_DIRECTORY, open_same,
    read_exact_at, read_to_end, replace_file, write_all_at,
};
pub use notify::{Bell, Notice, Notifier, WatchError, WatchId};
pub use owner::{group_name, user_name};
pub use real::{RealFs, is_link_loop, is_out_of_descriptors, prepare_files};
