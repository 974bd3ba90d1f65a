//! The machine's own file system.

/// The machine's own file system.
#[derive(Debug, Default, Clone, Copy)]
pub struct RealFs;
