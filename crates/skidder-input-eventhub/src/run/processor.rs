//! Claims partitions, and has those read that are claimed.

use super::{CHECKPOINTS, Run};
use crate::balance::{Ownership, Strategy, Wanted, decide};
use crate::hub::{Hub, HubError};
use crate::migrate::migrate;
use crate::partition::{Reader, Shared};
use crate::store::{Checkpoint, Store};
use ring::rand::{SecureRandom as _, SystemRandom};
use skidder_azure::Failure;
use skidder_input::Source;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tracing::Instrument as _;

/// How long the names of the partitions hold.
const PARTITIONS_KEPT: Duration = Duration::from_mins(5);
/// First pause after a failure; doubled with each that follows.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// The longest of these.
const PAUSE_MAX: Duration = Duration::from_mins(1);
/// Pause between two looks at whether all is read, if it is read once.
const LOOK_ONCE: Duration = Duration::from_millis(100);

/// Why partitions cannot be claimed.
#[derive(Debug, thiserror::Error)]
enum LookError {
    #[error("cannot use the blobs with the checkpoints: {0}")]
    Blobs(#[from] Failure),
    #[error("cannot ask the event hub: {0}")]
    Hub(#[from] HubError),
}

/// A partition that is claimed.
struct Owned {
    ownership: Ownership,
    shared: Arc<Shared>,
    reading: JoinHandle<Source>,
}

/// See the module's text.
pub(super) struct Processor {
    run: Arc<Run>,
    hub: Arc<Hub>,
    store: Store,
    /// The name of this run in claims.
    owner: String,
    /// The names of the partitions, and until when they hold.
    partitions: Option<(Vec<String>, Instant)>,
    /// The container is there, and checkpoints of v1 are taken over.
    is_prepared: bool,
    owned: BTreeMap<String, Owned>,
    /// Sources of partitions that are not read any more, whose events wait for verdicts.
    leaving: Vec<(Arc<Shared>, JoinHandle<Source>)>,
    /// How many partitions nobody has read, at the last look.
    free: usize,
    /// It was said that all partitions are claimed by others.
    has_said: bool,
    chance: u64,
}

/// A name that no other process has.
pub(super) fn owner_id() -> Result<String, &'static str> {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).map_err(|_| "the system has no random numbers")?;
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(text, "{byte:02x}").map_err(|_| "a text takes everything")?;
    }
    Ok(text)
}

impl Processor {
    pub(super) fn new(run: Arc<Run>, hub: Arc<Hub>, owner: String) -> Self {
        let store = run.store();
        let chance = u64::from_str_radix(&owner[..16], 16).unwrap_or(1) | 1;
        Self {
            run,
            hub,
            store,
            owner,
            partitions: None,
            is_prepared: false,
            owned: BTreeMap::new(),
            leaving: Vec::new(),
            free: usize::MAX,
            has_said: false,
            chance,
        }
    }

    /// A number below `below`.
    fn pick(chance: &mut u64, below: usize) -> usize {
        *chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let number = *chance >> 33;
        usize::try_from(number % below.max(1) as u64).unwrap_or(0)
    }

    /// Claims partitions until the input must stop, or all is read that is read once.
    pub(super) async fn work(&mut self) {
        let mut failures = 0_u32;
        loop {
            let pause = match self.look().await {
                Ok(()) => {
                    if failures > 0 {
                        tracing::info!(failures, "partitions can be claimed");
                        self.run.intake.metrics().set_trouble_of(CHECKPOINTS, None);
                        self.run.intake.metrics().set_trouble(None);
                        failures = 0;
                    }
                    // From 0.8 to 1.3 of it, so that processes do not look at the same time.
                    let part = 80 + Self::pick(&mut self.chance, 51);
                    self.run.settings.update_interval * u32::try_from(part).unwrap_or(100) / 100
                }
                Err(error) => {
                    failures = failures.saturating_add(1);
                    self.failed(&error, failures).await;
                    let factor = 2_u32.saturating_pow(failures.saturating_sub(1).min(30));
                    PAUSE_FIRST.saturating_mul(factor).min(PAUSE_MAX)
                }
            };
            let is_fine = failures == 0;
            tokio::select! {
                biased;
                () = self.run.intake.stopped() => return,
                () = all_read(&self.run, self.free), if is_fine && self.run.intake.is_once() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    async fn failed(&mut self, error: &LookError, failures: u32) {
        let text = error.to_string();
        let metrics = self.run.intake.metrics();
        metrics.failed("", &text);
        metrics.set_trouble(Some(&text));
        self.run.counts.restarts.add(1);
        if failures.is_power_of_two() {
            tracing::error!(error = text, failures, "partitions cannot be claimed; trying again");
        }
        if let LookError::Hub(error) = error {
            self.hub.note(error).await;
        }
    }

    /// One look at what all processes have claimed.
    async fn look(&mut self) -> Result<(), LookError> {
        if !self.is_prepared {
            self.store.create().await?;
        }
        let partitions = self.partitions().await?;
        if !self.is_prepared {
            if self.run.settings.migrates {
                let mut checkpoints = self.store.checkpoints().await?;
                migrate(&mut self.store, &partitions, &mut checkpoints).await?;
            }
            self.is_prepared = true;
        }
        let ownerships = self.store.ownerships().await?;
        let is_once = self.run.intake.is_once();
        let strategy = if is_once { Strategy::Greedy } else { self.run.settings.strategy };
        let now = self.run.intake.clock().wall();
        let chance = &mut self.chance;
        let pick = |below: usize| Self::pick(chance, below);
        let Wanted { own, more, free } =
            decide(&self.owner, &partitions, ownerships, (strategy, now), pick);
        self.free = free.saturating_sub(more.len());
        self.renew(own).await?;
        let mut claimed = Vec::with_capacity(more.len());
        for wanted in more {
            claimed.extend(self.store.claim(&wanted, &self.owner).await?);
        }
        self.begin(claimed).await?;
        self.say_if_idle(partitions.len());
        self.forget_settled().await;
        Ok(())
    }

    /// Says once when there is nothing for this process to read: after `kill -9` it waits for its own old claims.
    fn say_if_idle(&mut self, partitions: usize) {
        let is_idle = self.owned.is_empty() && partitions > 0;
        if is_idle && !self.has_said {
            tracing::info!(
                partitions,
                "all partitions are claimed by other processes, or by one that has died: claims that are not renewed for a \
                 minute are over"
            );
        }
        self.has_said = is_idle;
    }

    async fn partitions(&mut self) -> Result<Vec<String>, HubError> {
        if let Some((partitions, until)) = &self.partitions
            && Instant::now() < *until
        {
            return Ok(partitions.clone());
        }
        let partitions = self.hub.partitions().await?;
        self.partitions = Some((partitions.clone(), Instant::now() + PARTITIONS_KEPT));
        Ok(partitions)
    }

    /// Renews claims; what other processes have claimed meanwhile is not read any more.
    async fn renew(&mut self, own: Vec<Ownership>) -> Result<(), LookError> {
        let lost: Vec<String> = self
            .owned
            .keys()
            .filter(|id| !own.iter().any(|ownership| ownership.partition == **id))
            .cloned()
            .collect();
        for id in lost {
            self.lose(&id);
        }
        for ownership in own {
            let id = ownership.partition.clone();
            match self.store.claim(&ownership, &self.owner).await? {
                Some(renewed) => match self.owned.get_mut(&id) {
                    Some(owned) if !owned.reading.is_finished() => owned.ownership = renewed,
                    // Its link was taken away, and the claim was not: it is read again.
                    _ => {
                        self.lose(&id);
                        self.begin(vec![renewed]).await?;
                    }
                },
                None => self.lose(&id),
            }
        }
        Ok(())
    }

    /// Ends the reading of a partition.
    fn lose(&mut self, id: &str) {
        self.run.owned().remove(id);
        let Some(owned) = self.owned.remove(id) else { return };
        if !owned.shared.is_stopped() {
            tracing::info!(partition = id, "another process has claimed the partition");
        }
        owned.shared.stop();
        self.leaving.push((owned.shared, owned.reading));
    }

    /// Begins to read partitions that were claimed.
    async fn begin(&mut self, claimed: Vec<Ownership>) -> Result<(), LookError> {
        if claimed.is_empty() {
            return Ok(());
        }
        // Behind the claims: the owners before wrote until then.
        let mut checkpoints = self.store.checkpoints().await?;
        for ownership in claimed {
            let id = ownership.partition.clone();
            let checkpoint: Option<Checkpoint> = checkpoints.remove(&id);
            let sequence = checkpoint.as_ref().and_then(|checkpoint| checkpoint.sequence);
            tracing::info!(partition = id, checkpoint = sequence, "the partition is claimed");
            let shared = Shared::new(id.clone(), &self.run, checkpoint.as_ref());
            let (run, hub) = (Arc::clone(&self.run), Arc::clone(&self.hub));
            let reader = Reader::new(run, hub, Arc::clone(&shared), checkpoint);
            let reading = tokio::spawn(reader.read().in_current_span());
            self.run.owned().insert(id.clone(), Arc::clone(&shared));
            self.owned.insert(id, Owned { ownership, shared, reading });
        }
        Ok(())
    }

    /// Closes sources whose events have all verdicts.
    async fn forget_settled(&mut self) {
        let mut kept = Vec::new();
        for (shared, reading) in std::mem::take(&mut self.leaving) {
            if shared.is_waiting() || !reading.is_finished() {
                kept.push((shared, reading));
                continue;
            }
            drop(reading.await);
        }
        self.leaving = kept;
    }

    /// Reads nothing more. Sources stay open.
    pub(super) async fn stop_reading(&mut self) {
        for owned in self.owned.values() {
            owned.shared.stop();
        }
        for owned in self.owned.values_mut() {
            while !owned.reading.is_finished() {
                tokio::time::sleep(super::LOOK_AGAIN).await;
            }
        }
    }

    /// Gives partitions back, so that other processes take them at once.
    pub(super) async fn give_back(&mut self, store: &mut Store) {
        for (partition, owned) in std::mem::take(&mut self.owned) {
            match store.claim(&owned.ownership, "").await {
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(
                        partition,
                        %error,
                        "a partition is not given back: other processes wait a minute for it"
                    );
                }
            }
            self.leaving.push((owned.shared, owned.reading));
        }
    }
}

/// Resolves when all is read and has its verdict, if nobody has to claim anything any more.
async fn all_read(run: &Run, free: usize) {
    loop {
        let is_read = |shared: &Arc<Shared>| {
            shared.is_at_end.load(Ordering::Relaxed) && !shared.is_waiting() || shared.is_stopped()
        };
        if free == 0 && run.all_owned().iter().all(is_read) {
            return;
        }
        run.intake.flush();
        tokio::time::sleep(LOOK_ONCE).await;
    }
}
