//! Runtimes of tokio.

use anyhow::{Context as _, Result};
use tokio::runtime::Runtime;

/// A runtime whose threads have this name.
pub(crate) fn runtime(name: &'static str, threads: usize) -> Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads.max(1))
        .thread_name(name)
        .enable_all()
        .build()
        .with_context(|| format!("cannot start the threads for {name}"))
}
