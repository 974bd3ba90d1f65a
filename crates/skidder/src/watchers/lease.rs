//! The lease of a provider with `unique`: one of several programs holds it, and releases it when it ends.

use super::{Report, What, trouble};
use skidder_autodiscover::{Fact, LeaderLease, WantedSecret};
use skidder_lookups::kubernetes::lease::{Lease, LeaseSettings};
use skidder_lookups::kubernetes::objects::Api;
use skidder_os::Clock;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;

/// How long the end waits until a lease is released.
const RELEASE_WAIT: Duration = Duration::from_secs(2);

/// The lease of a provider, as the main thread sees it: it is released at the end.
pub(super) struct HeldLease {
    is_held: Arc<AtomicBool>,
    /// Disconnected when it is released.
    released: Receiver<()>,
}

/// The same for its thread; dropped when it is released.
pub(super) struct Holding {
    is_held: Arc<AtomicBool>,
    _alive: Sender<()>,
}

impl HeldLease {
    pub(super) fn new() -> (Self, Holding) {
        let (alive, released) = channel();
        let is_held = Arc::new(AtomicBool::new(false));
        let holding = Holding { is_held: Arc::clone(&is_held), _alive: alive };
        (Self { is_held, released }, holding)
    }

    /// Waits until it is released, if it is held.
    pub(super) fn await_release(&self) {
        if self.is_held.load(Ordering::Relaxed)
            && self.released.recv_timeout(RELEASE_WAIT) == Err(RecvTimeoutError::Timeout)
        {
            tracing::warn!("the lease of autodiscover was not released in time; it ends by itself");
        }
    }
}

/// Reports that the lease is held, and that it is not. Releases it when `end`, where nothing comes, is closed.
pub(super) async fn follow_lease(
    api: Api,
    lease: LeaderLease,
    clock: Arc<dyn Clock>,
    report: &Report,
    mut end: UnboundedReceiver<WantedSecret>,
    holding: &Holding,
) {
    let host = crate::agent::hostname();
    let identity = format!("skidder-{host}-{:016x}", RandomState::new().hash_one(&lease.name));
    let namespace = api.access().own_namespace.clone().unwrap_or_else(|| "default".to_owned());
    let settings = LeaseSettings {
        name: lease.name,
        namespace,
        identity: identity.clone(),
        duration: lease.duration,
        renew_deadline: lease.renew_deadline,
        retry_period: lease.retry_period,
    };
    let about = format!("the lease `{}`", settings.name);
    let trouble =
        trouble::of_kubernetes(about, "create, get and update leases", true, report.clone());
    let mut lease = Lease::new(api, settings, clock, trouble);
    // An id is not used again.
    let (mut term, mut id) = (0_u64, String::new());
    loop {
        let holds = tokio::select! {
            holds = lease.changed() => holds,
            secret = end.recv() => match secret {
                // A template with `unique` sees no pods, and a secret belongs to the namespace of one.
                Some(_) => continue,
                None => break,
            },
        };
        holding.is_held.store(holds, Ordering::Relaxed);
        if holds {
            term += 1;
            id = format!("{identity}-{term}");
            tracing::info!(identity, "this skidder holds the lease of autodiscover");
            report.report(What::Seen(Fact::Leader(id.clone()).into()));
        } else {
            tracing::warn!(identity, "the lease of autodiscover is lost");
            report.report(What::Gone(std::mem::take(&mut id), None));
        }
    }
    if let Err(error) = lease.release().await {
        tracing::warn!(identity, %error, "the lease of autodiscover cannot be released; it ends by itself");
    }
}
