//! Background work, in a thread of its own.

use std::future::Future;
use std::io;
use tokio::sync::oneshot;

/// A thread that runs a future. It ends with it, or when this is dropped.
#[derive(Debug)]
pub struct Background {
    _alive: oneshot::Sender<()>,
}

impl Background {
    /// Starts the thread. `work` is polled in it alone, with sockets and time-outs.
    pub fn start(name: &str, work: impl Future<Output = ()> + Send + 'static) -> io::Result<Self> {
        let (alive, mut dropped) = oneshot::channel::<()>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            runtime.block_on(async move {
                tokio::select! {
                    // Nothing is ever sent.
                    _ = &mut dropped => {}
                    () = work => {}
                }
            });
            // A name may still be looked up by a helper of the runtime, which cannot be stopped.
            runtime.shutdown_background();
        })?;
        Ok(Self { _alive: alive })
    }
}
