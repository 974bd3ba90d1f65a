//! One journal: its entries are read, and new ones as they come.

use super::entries::Entries;
use super::place::{Place, VERSION};
use super::reading::Reading;
use super::{Settings, files};
use skidder_event::Progress;
use skidder_input::{InputError, Intake, Source};
use skidder_os::{Bell, Fs, Notifier};
use skidder_parse::chain::Ending;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;

/// How often files are looked for, and entries, although nothing was reported.
const POLL: Duration = Duration::from_secs(5);

/// The same where changes are not reported.
const POLL_BLIND: Duration = Duration::from_millis(250);

/// Reports of changes in the directories of a journal.
struct Watch {
    notifier: Option<Box<dyn Notifier>>,
    directories: Vec<PathBuf>,
    /// Every directory is watched.
    sees_all: bool,
}

impl Watch {
    fn new(fs: &dyn Fs) -> Self {
        let notifier = fs.notifier().ok();
        Self { notifier, directories: Vec::new(), sees_all: false }
    }

    /// Watches these directories.
    fn set(&mut self, directories: &[PathBuf]) {
        let Some(notifier) = &mut self.notifier else { return };
        self.sees_all = !directories.is_empty();
        for directory in directories {
            self.sees_all &= notifier.watch(directory).is_ok();
        }
        directories.clone_into(&mut self.directories);
    }

    /// Waits for a change, at most so long.
    fn wait(&mut self, limit: Duration) {
        let limit = limit.min(if self.sees_all { POLL } else { POLL_BLIND });
        match &mut self.notifier {
            Some(notifier) => {
                notifier.wait(limit);
                notifier.take(&mut |_| {});
            }
            // May return early, which costs a look.
            None => std::thread::park_timeout(limit),
        }
    }

    fn bell(&self) -> Option<Arc<dyn Bell>> {
        self.notifier.as_ref().map(|notifier| notifier.bell())
    }
}

/// Where the run before ended.
fn saved_place(source: &Source, name: &str) -> Result<Place, InputError> {
    let Some(saved) = source.saved().filter(|saved| !saved.text.is_empty()) else {
        return Ok(Place::default());
    };
    let place = Place::parse(&saved.text).filter(|_| saved.version == VERSION);
    place.ok_or_else(|| {
        InputError(format!(
            "the saved cursor of `{name}` cannot be read (`{}`, version {}); remove it with `skidder registry`, or use \
             the version of skidder that wrote it",
            saved.text, saved.version
        ))
    })
}

/// Runs a step of reading, which may wait for the disk.
async fn blocking<T: Send + 'static>(
    step: impl FnOnce() -> T + Send + 'static,
) -> Result<T, InputError> {
    spawn_blocking(step).await.map_err(|error| InputError(error.to_string()))
}

/// How a run with `once` ends for a journal: with an error if there was nothing to read from.
fn read_once(name: &str, reading: &Reading) -> Result<(), InputError> {
    let trouble = reading.trouble();
    trouble.map_or(Ok(()), |trouble| Err(InputError(format!("{name}: {trouble}"))))
}

/// Reads the journal until the input must end.
pub(super) async fn follow(
    settings: Arc<Settings>,
    intake: Intake,
    name: String,
    place: files::Place,
) -> Result<(), InputError> {
    let source = intake
        .open_at_cursor(&name, skidder_event::Map::new())
        .map_err(|error| InputError(error.to_string()))?;
    let resume = saved_place(&source, &name)?;
    let start = settings.start(intake.clock().wall().0);
    let fs = Arc::clone(&settings.fs);
    let matches = Arc::clone(&settings.matches);
    let entries = Entries::new(Arc::clone(&fs), place, matches, start, resume.clone());
    let mut reading = Reading::new(settings, source, entries, resume);
    let mut watch = Watch::new(&*fs);
    let bell = watch.bell();
    while !intake.is_stopped() {
        let (wall, now) = (intake.clock().wall(), intake.clock().monotonic());
        let ending = if intake.is_once() { Ending::Last } else { Ending::Waiting(now.0) };
        let mut made;
        (reading, watch, made) = blocking(move || {
            watch.set(reading.scan());
            reading.refresh();
            let made = reading.next(ending, wall);
            (reading, watch, made)
        })
        .await?;
        intake.metrics().set_trouble_of(&name, reading.trouble());
        while let Some((batch, part)) = made {
            intake.metrics().bytes.add(part.bytes);
            let sending = reading.source.send(batch, Progress::Cursor(part));
            tokio::select! {
                biased;
                sent = sending => if sent.is_err() { return Ok(()) },
                // What no output has taken is read again by the next run.
                () = intake.stopped() => return Ok(()),
            }
            let wall = intake.clock().wall();
            (reading, made) = blocking(move || {
                let made = reading.next(ending, wall);
                (reading, made)
            })
            .await?;
        }
        if intake.is_once() {
            return read_once(&name, &reading);
        }
        let limit = reading.flush_at.map_or(POLL, |at| at.saturating_sub(now.0));
        let waiting = blocking(move || {
            reading.release();
            watch.wait(limit);
            (reading, watch)
        });
        tokio::pin!(waiting);
        (reading, watch) = tokio::select! {
            biased;
            () = intake.stopped() => {
                if let Some(bell) = &bell {
                    bell.ring();
                }
                // The source must be closed before another input opens it.
                drop(waiting.await);
                return Ok(());
            }
            waited = &mut waiting => waited?,
        };
    }
    Ok(())
}
