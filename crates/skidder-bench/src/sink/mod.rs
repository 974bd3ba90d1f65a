//! A server on the loopback interface that looks like Elasticsearch to a shipper and only counts.
//!
//! It has to be cheap, since it shares the machine with the measured program: one blocking thread for a
//! connection, no parsing of documents (a bulk of creates has two lines for each document), answers
//! from a prepared text. With `check` it reads the number of every line and remembers it in a
//! bitmap, which costs more; runs that measure CPU do without.
//!
//! It takes JSON lines too, as VictoriaLogs does at `/insert/jsonline`, for shippers that speak nothing else.

mod body;
mod count;
pub mod frames;
mod http;
mod kafka;
mod serve;
mod trouble;
mod wake;

pub use count::Count;
pub use trouble::{Fault, Trouble};

use anyhow::{Context, Result};
use count::Counters;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How the sink behaves.
#[derive(Clone, Copy, Debug, Default)]
pub struct Behaviour {
    /// Port on 127.0.0.1; 0 takes a free one.
    pub port: u16,
    /// Pause before each answer to a bulk request.
    pub delay: Duration,
    /// Read the lines' numbers and report missing, repeated and unknown ones.
    pub check: bool,
    /// Keep so many of the first bulk bodies.
    pub keep_bodies: usize,
    /// Give no answer to any bulk request once this many documents came.
    pub stall_after: Option<u64>,
    /// Answer 429 to bulk requests beyond so many at once.
    pub limit: Option<usize>,
    /// Do something wrong now and then.
    pub trouble: Option<Trouble>,
}

/// A running sink. Its threads end with the process.
#[derive(Debug)]
pub struct Sink {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// A bulk body that was kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Its length as sent.
    pub sent: u64,
    /// Its text, uncompressed.
    pub text: Vec<u8>,
}

/// State shared by all connections.
#[derive(Debug)]
struct Shared {
    behaviour: Behaviour,
    counters: Mutex<Counters>,
    /// Bulk requests that are being answered.
    running: AtomicUsize,
    /// Bulk requests that came, those that met trouble included.
    came: AtomicU64,
    kept: Mutex<Vec<Kept>>,
    /// Notified after each counted bulk request and when a stall ends.
    changed: Condvar,
}

impl Shared {
    /// A panic elsewhere leaves whole numbers behind, so the lock's poison means nothing here.
    fn counters(&self) -> MutexGuard<'_, Counters> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink {
    /// Listens and serves in threads of its own.
    pub fn start(behaviour: Behaviour) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, behaviour.port))
            .with_context(|| format!("cannot listen on 127.0.0.1:{}", behaviour.port))?;
        let address = listener.local_addr()?;
        let counters = Mutex::new(Counters::new(behaviour.check));
        let shared = Arc::new(Shared {
            behaviour,
            counters,
            running: AtomicUsize::new(0),
            came: AtomicU64::new(0),
            kept: Mutex::default(),
            changed: Condvar::new(),
        });
        let for_thread = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("sink".to_owned())
            .spawn(move || serve::accept(&listener, &for_thread))
            .context("cannot start the thread of the sink")?;
        Ok(Self { address, shared })
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The counts so far.
    pub fn count(&self) -> Count {
        self.shared.counters().count()
    }

    /// The bodies that were kept; none of them is kept any longer.
    pub fn take_bodies(&self) -> Vec<Kept> {
        std::mem::take(&mut *self.shared.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Forgets what came.
    pub fn reset(&self) {
        self.shared.counters().reset();
    }

    /// Waits until at least `documents` have come, or `limit` has passed without any.
    pub fn wait_for(&self, documents: u64, limit: Duration) -> Count {
        let mut counters = self.shared.counters();
        while counters.count().documents < documents {
            let waited = self.shared.changed.wait_timeout(counters, limit);
            let (guard, outcome) = waited.unwrap_or_else(PoisonError::into_inner);
            counters = guard;
            if outcome.timed_out() {
                break;
            }
        }
        counters.count()
    }

    /// Answers again, also the requests that were left waiting.
    pub fn release(&self) {
        self.shared.counters().release();
        self.shared.changed.notify_all();
    }
}

#[cfg(test)]
mod tests;
