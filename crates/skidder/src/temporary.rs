//! A temporary directory for state.

use anyhow::{Context as _, Result};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// A directory below that for temporary files, removed at the end.
pub(crate) struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    /// Makes one; `what` is a part of its name.
    pub(crate) fn new(what: &str) -> Result<Self> {
        let name = format!("skidder-{what}-{}", uuid::Uuid::new_v4().simple());
        let path = std::env::temp_dir().join(name);
        DirBuilder::new()
            .mode(skidder_os::PRIVATE_DIRECTORY)
            .create(&path)
            .with_context(|| format!("cannot make the directory `{}`", path.display()))?;
        Ok(Self(path))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(path = %self.0.display(), %error, "a directory for passing state is left");
        }
    }
}
