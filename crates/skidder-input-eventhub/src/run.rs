//! One run of the input: who reads which partition, checkpoints, tokens, and the end.

mod processor;

use crate::events::Place;
use crate::hub::Hub;
use crate::partition::Shared;
use crate::settings::Settings;
use crate::store::{Checkpoint, Store};
use processor::Processor;
use skidder_azure::Container;
use skidder_input::{HubCounts, InputError, Intake};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::Instrument as _;

/// Pause between two checkpoints of a partition.
const WRITE_EVERY: Duration = Duration::from_secs(1);
/// Pause between two looks at tokens that expire.
const RENEW_EVERY: Duration = Duration::from_secs(30);
/// How long a stop waits for verdicts. The program leaves an input alone that takes more than three seconds in all, while an
/// output is stuck.
const STOP_WAIT: Duration = Duration::from_millis(1200);
/// How long a stop takes besides, to write checkpoints and give partitions back.
const STOP_WRITES: Duration = Duration::from_millis(1200);
/// Pause between two looks at what is left, at a stop.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// What trouble with the blobs is called.
pub(crate) const CHECKPOINTS: &str = "checkpoints";
/// What trouble with tokens is called.
const TOKENS: &str = "tokens";

/// What the tasks of the input share.
pub(crate) struct Run {
    pub(crate) intake: Intake,
    pub(crate) settings: Arc<Settings>,
    pub(crate) counts: Arc<HubCounts>,
    /// Notified with verdicts.
    pub(crate) news: Arc<Notify>,
    /// The partitions that are read.
    owned: Mutex<BTreeMap<String, Arc<Shared>>>,
}

impl Run {
    fn owned(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Shared>>> {
        self.owned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all_owned(&self) -> Vec<Arc<Shared>> {
        self.owned().values().cloned().collect()
    }

    fn is_waiting(&self) -> bool {
        self.owned().values().any(|shared| shared.is_waiting())
    }

    /// A way to the blobs of its own.
    fn store(&self) -> Store {
        let clock = self.intake.clock();
        let client = self.settings.blobs.client(Arc::new(()), Arc::clone(clock));
        Store::new(Container::new(client), self.settings.names.clone(), Arc::clone(clock))
    }
}

/// Runs until the input ends.
pub(crate) async fn run(intake: Intake, settings: Arc<Settings>) -> Result<(), InputError> {
    let owner = processor::owner_id().map_err(|error| InputError(error.to_owned()))?;
    let counts = intake.metrics().hub();
    let clock = Arc::clone(intake.clock());
    let run = Arc::new(Run {
        settings: Arc::clone(&settings),
        counts,
        news: Arc::default(),
        owned: Mutex::default(),
        intake,
    });
    let hub = Arc::new(Hub::new(settings, clock, format!("skidder-{owner}")));
    let mut keeping = JoinSet::new();
    keeping.spawn(write_checkpoints(Arc::clone(&run)).in_current_span());
    keeping.spawn(renew_tokens(Arc::clone(&run), Arc::clone(&hub)).in_current_span());
    let mut processor = Processor::new(Arc::clone(&run), Arc::clone(&hub), owner);
    processor.work().await;
    run.intake.set_finishing();
    processor.stop_reading().await;
    // What is read once is waited for.
    while run.intake.is_once() && !run.intake.is_stopped() && run.is_waiting() {
        run.intake.flush();
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    run.intake.flush();
    let limit = Instant::now() + STOP_WAIT;
    while run.is_waiting() && Instant::now() < limit {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    keeping.shutdown().await;
    let ending = async {
        let mut store = run.store();
        write(&run, &mut store).await;
        processor.give_back(&mut store).await;
        hub.close().await;
    };
    if tokio::time::timeout(STOP_WRITES, ending).await.is_err() {
        tracing::warn!(
            "the last checkpoints could not be written, or partitions not given back: events may come again, and other \
             processes wait a minute for the partitions"
        );
    }
    Ok(())
}

/// Works until it is dropped.
async fn write_checkpoints(run: Arc<Run>) {
    let mut store = run.store();
    loop {
        run.news.notified().await;
        tokio::time::sleep(WRITE_EVERY).await;
        if !write(&run, &mut store).await {
            // It is tried again, with or without news.
            run.news.notify_one();
        }
    }
}

/// A place that is being written; it is given back if that does not succeed, or is cancelled.
struct Unwritten<'a> {
    shared: &'a Shared,
    place: Option<Place>,
}

impl Drop for Unwritten<'_> {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            self.shared.give_back(place);
        }
    }
}

/// Writes what is settled. Returns whether all of it is written.
async fn write(run: &Run, store: &mut Store) -> bool {
    let mut is_written = true;
    for shared in run.all_owned() {
        let Some(place) = shared.take_unwritten() else { continue };
        let checkpoint =
            Checkpoint { sequence: Some(place.sequence), offset: place.offset.clone() };
        let mut unwritten = Unwritten { shared: &shared, place: Some(place) };
        match store.set_checkpoint(&shared.id, &checkpoint).await {
            Ok(()) => {
                unwritten.place = None;
                run.intake.metrics().set_trouble_of(CHECKPOINTS, None);
            }
            Err(error) => {
                is_written = false;
                let text =
                    format!("cannot write the checkpoint of partition {}: {error}", shared.id);
                run.intake.metrics().failed(&shared.id, &text);
                run.intake.metrics().set_trouble_of(CHECKPOINTS, Some(&text));
            }
        }
    }
    is_written
}

/// Works until it is dropped.
async fn renew_tokens(run: Arc<Run>, hub: Arc<Hub>) {
    loop {
        tokio::time::sleep(RENEW_EVERY).await;
        match hub.renew().await {
            Ok(()) => run.intake.metrics().set_trouble_of(TOKENS, None),
            Err(error) => {
                let text = format!("cannot renew the right to read: {error}");
                run.intake.metrics().failed("", &text);
                run.intake.metrics().set_trouble_of(TOKENS, Some(&text));
                hub.note(&error).await;
            }
        }
    }
}
