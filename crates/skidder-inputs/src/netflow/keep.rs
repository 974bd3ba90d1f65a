//! Templates on the disk: exporters send them only every few minutes, and what comes before is lost without them.

use skidder_netflow::Decoder;
use skidder_os::{Clock, Fs, read_to_end, replace_file};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long after a change of templates they are saved.
const SAVE_DELAY: Duration = Duration::from_secs(10);

/// Of the time of the thread at most one part of so many goes into saving.
const SHARE: u32 = 100;

/// Bytes of the file: templates of more memory than the bound cannot be in it.
const FILE_BYTES_MAX: usize = 256 << 20;

/// Permissions of the file.
const PERMISSIONS: u32 = 0o600;

/// Where templates are saved.
pub(super) struct Place {
    pub(super) fs: Arc<dyn Fs>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) path: PathBuf,
}

impl std::fmt::Debug for Place {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("Place").field(&self.path).finish()
    }
}

/// Saves templates of a decoder.
pub(super) struct Keep {
    place: Option<Arc<Place>>,
    /// Something is not saved yet, and when it is to be saved.
    due: Option<Duration>,
    /// Not before that.
    pause: Duration,
    has_failed: bool,
}

impl Keep {
    pub(super) fn new(place: Option<Arc<Place>>) -> Self {
        Self { place, due: None, pause: Duration::ZERO, has_failed: false }
    }

    /// Reads what was saved.
    pub(super) fn load(&mut self, decoder: &mut Decoder, now: Duration) {
        let Some(place) = &self.place else { return };
        let read = || read_to_end(&*place.fs.open(&place.path)?, FILE_BYTES_MAX);
        let error = match read() {
            Ok(bytes) => match decoder.restore(&String::from_utf8_lossy(&bytes), now) {
                Ok(templates) => {
                    tracing::info!(templates, "templates of the last run are known");
                    return;
                }
                Err(error) => error.to_string(),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => error.to_string(),
        };
        tracing::warn!(
            path = %place.path.display(), error,
            "templates of the last run cannot be read: data waits until exporters send theirs again"
        );
    }

    /// Saves templates some time after they have changed; returns how long until then.
    pub(super) fn save_if_due(&mut self, decoder: &mut Decoder, now: Duration) -> Option<Duration> {
        if decoder.take_changed() && self.due.is_none() {
            self.due = Some(now + SAVE_DELAY.max(self.pause));
        }
        let due = self.due?;
        let left = due.saturating_sub(now);
        if left > Duration::ZERO {
            return Some(left);
        }
        self.write(decoder);
        self.due.map(|due| due.saturating_sub(now))
    }

    /// Saves what is not saved yet.
    pub(super) fn save(&mut self, decoder: &mut Decoder) {
        if decoder.take_changed() || self.due.is_some() {
            self.write(decoder);
        }
    }

    fn write(&mut self, decoder: &Decoder) {
        self.due = None;
        let Some(place) = &self.place else { return };
        let start = place.clock.monotonic();
        let written = replace_file(&*place.fs, &place.path, decoder.save().as_bytes(), PERMISSIONS);
        let end = place.clock.monotonic();
        self.pause = end.since(start) * SHARE;
        if let Err(error) = &written {
            if !self.has_failed {
                tracing::warn!(
                    path = %place.path.display(), %error,
                    "templates cannot be saved: after a restart data waits until exporters send theirs; tried again"
                );
            }
            self.due = Some(end.0 + SAVE_DELAY.max(self.pause));
        }
        self.has_failed = written.is_err();
    }
}
