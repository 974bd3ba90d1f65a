//! A lease, which one of several programs holds: <https://kubernetes.io/docs/concepts/architecture/leases/>.
//!
//! As in client-go, no clock of another machine is trusted: a lease is over when it was not renewed for its duration by
//! the time of this machine. A holder that cannot renew it in time gives it up before that.

use super::objects::{Api, ReportError};
use serde_json::{Value as Json, json};
use skidder_net::{HttpError, percent_encoded};
use skidder_os::Clock;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A lease to compete for.
#[derive(Clone, Debug)]
pub struct LeaseSettings {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Who this is: no other program has the same.
    pub identity: String,
    /// How long it holds without renewal.
    pub duration: Duration,
    /// How long a holder tries to renew it.
    pub renew_deadline: Duration,
    /// The pause between two attempts.
    pub retry_period: Duration,
}

/// Competes for a lease.
pub struct Lease {
    api: Api,
    settings: LeaseSettings,
    /// For the times that people read.
    clock: Arc<dyn Clock>,
    /// The spec of another holder, since when it is the same.
    seen: Option<(Json, Instant)>,
    /// When this program renewed it last; `None` if it does not hold it.
    renewed: Option<Instant>,
    report: ReportError,
}

impl std::fmt::Debug for Lease {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Lease").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Lease {
    /// Not held. `report` is called after each attempt, with its error if it has one.
    pub fn new(
        api: Api,
        settings: LeaseSettings,
        clock: Arc<dyn Clock>,
        report: ReportError,
    ) -> Self {
        Self { api, settings, clock, seen: None, renewed: None, report }
    }

    /// Waits until it is held, or is held no longer; returns which.
    pub async fn changed(&mut self) -> bool {
        loop {
            let was_held = self.renewed.is_some();
            let attempt = self.attempt().await;
            (self.report)(attempt.as_ref().err());
            match attempt {
                Ok(true) => self.renewed = Some(Instant::now()),
                Ok(false) => self.renewed = None,
                Err(error) => {
                    let name = &self.settings.name;
                    tracing::warn!(lease = name, %error, "the lease cannot be read or renewed; trying again");
                    let deadline = self.settings.renew_deadline;
                    self.renewed = self.renewed.filter(|at| at.elapsed() < deadline);
                }
            }
            let is_held = self.renewed.is_some();
            if is_held != was_held {
                return is_held;
            }
            tokio::time::sleep(self.settings.retry_period).await;
        }
    }

    /// Renews it, or takes it if it is free; returns whether it is held.
    async fn attempt(&mut self) -> Result<bool, HttpError> {
        let limit = self.settings.renew_deadline;
        let attempt = tokio::time::timeout(limit, self.try_attempt()).await;
        attempt.unwrap_or(Err(HttpError::Timeout(limit)))
    }

    async fn try_attempt(&mut self) -> Result<bool, HttpError> {
        let (list, path) = self.paths();
        let has_status = |error: &HttpError, code: u16| matches!(error, HttpError::Status { status, .. } if status.as_u16() == code);
        let mut lease = match self.api.json(&path).await {
            Ok(lease) => lease,
            Err(error) if has_status(&error, 404) => {
                let lease = json!({
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": {"name": self.settings.name, "namespace": self.settings.namespace},
                    "spec": self.spec(&Json::Null),
                });
                return match self.api.create(&list, &lease).await {
                    Ok(_) => Ok(true),
                    Err(error) if has_status(&error, 409) => Ok(false),
                    Err(error) => Err(error),
                };
            }
            Err(error) => return Err(error),
        };
        let spec = &lease["spec"];
        let holder = spec["holderIdentity"].as_str().unwrap_or_default();
        if holder != self.settings.identity && !holder.is_empty() && !self.is_over(spec) {
            return Ok(false);
        }
        lease["spec"] = self.spec(spec);
        match self.api.replace(&path, &lease).await {
            Ok(_) => Ok(true),
            // Another was faster.
            Err(error) if has_status(&error, 409) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Gives it up if it is held, so that another program takes it at once.
    ///
    /// # Errors
    /// If the API does not take it in time; then the lease is over when its duration is.
    pub async fn release(&mut self) -> Result<(), HttpError> {
        if self.renewed.take().is_none() {
            return Ok(());
        }
        let limit = self.settings.renew_deadline;
        let release = tokio::time::timeout(limit, self.try_release()).await;
        release.unwrap_or(Err(HttpError::Timeout(limit)))
    }

    async fn try_release(&self) -> Result<(), HttpError> {
        let (_, path) = self.paths();
        let mut lease = self.api.json(&path).await?;
        if lease["spec"]["holderIdentity"] != self.settings.identity.as_str() {
            return Ok(());
        }
        let now = self.now();
        lease["spec"] = json!({
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": lease["spec"]["leaseTransitions"].as_u64().unwrap_or(0),
        });
        self.api.replace(&path, &lease).await.map(drop)
    }

    /// The paths of all leases of the namespace, and of this one.
    fn paths(&self) -> (String, String) {
        let namespace = percent_encoded(&self.settings.namespace);
        let list = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
        let path = format!("{list}/{}", percent_encoded(&self.settings.name));
        (list, path)
    }

    fn now(&self) -> String {
        let now = jiff::Timestamp::from_nanosecond(i128::from(self.clock.wall().0));
        now.unwrap_or_default().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
    }

    /// Whether another holder has not renewed it for its duration.
    fn is_over(&mut self, spec: &Json) -> bool {
        match &self.seen {
            Some((seen, since)) if seen == spec => {
                let seconds = spec["leaseDurationSeconds"].as_u64();
                let duration = seconds.map_or(self.settings.duration, Duration::from_secs);
                since.elapsed() >= duration
            }
            _ => {
                self.seen = Some((spec.clone(), Instant::now()));
                false
            }
        }
    }

    /// The spec with this program as the holder.
    fn spec(&self, before: &Json) -> Json {
        let now = self.now();
        let is_ours = before["holderIdentity"] == self.settings.identity.as_str();
        let transitions = before["leaseTransitions"].as_u64().unwrap_or(0);
        json!({
            "holderIdentity": self.settings.identity,
            "leaseDurationSeconds": self.settings.duration.as_secs().max(1),
            "acquireTime": if is_ours { before["acquireTime"].clone() } else { now.clone().into() },
            "renewTime": now,
            "leaseTransitions": if is_ours || before.is_null() { transitions } else { transitions + 1 },
        })
    }
}
