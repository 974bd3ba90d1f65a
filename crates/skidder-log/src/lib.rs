//! Our own log: the text of a line, its target, and what happens if the target fails.
//!
//! The settings are those of Filebeat (`logging.*`). Lines are ECS JSON, in files, on stderr, or in
//! the short form for syslog. A thread of its own writes them, so that no other waits for a disk.
//! Promised is: whatever happens to the log, the program goes on; a line that cannot be written
//! where it belongs goes to stderr, or is counted; a repeated line is counted
//! instead of repeated; the content of events is in the files for it and nowhere else; no address
//! keeps its password.

mod calendar;
mod config;
mod declared;
mod files;
mod layer;
mod line;
mod queue;
mod repeats;
mod selectors;
mod sinks;
mod start;
mod text;
mod writer;

pub use config::{Environment, Flags, Format, LogConfig, LogSettings, MetricsConfig, Target};
pub use declared::LOGGING;
pub use files::FilesConfig;
pub use layer::EVENT_DATA;
pub use line::masked;
pub use selectors::Selectors;
pub use sinks::stderr_file;
pub use start::{Log, LogNumbers, StartError};
