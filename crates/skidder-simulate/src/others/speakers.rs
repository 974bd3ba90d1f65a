//! Programs whose events are several lines: they write one piece by piece, and each is whole before it would
//! be taken for done.

use super::{Held, Others};
use crate::records::{Records, TIMEOUT};
use crate::stage::Stage;
use skidder_os::{Clock, Monotonic};
use skidder_testkit::Random;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An event that was begun must go on after this: no step of the world takes longer than what is left of
/// the time after which it counts as complete.
const PATIENCE: Duration = Duration::from_millis(2500);

/// The longest step.
const STEP_MAX: Duration = Duration::from_secs(2);

const _: () = assert!(PATIENCE.as_millis() + STEP_MAX.as_millis() < TIMEOUT.as_millis());

/// Events of which only a part is in the file.
pub(super) struct Begun {
    records: Records,
    written: usize,
    since: Monotonic,
}

impl Others {
    /// Some events, or the next part of one.
    pub(super) fn speak(&mut self, path: &Path, stage: &mut Stage, random: &mut Random) {
        let Some(Held { content, dialect, .. }) = self.files.get(path).cloned() else { return };
        let mut begun = self.begun.remove(&content).unwrap_or_else(|| {
            let records = dialect.some(content, random, &mut stage.truth);
            Begun { records, written: 0, since: stage.clock.monotonic() }
        });
        let left = begun.records.bytes.len() - begun.written;
        let count = if random.one_in(2) { left } else { 1 + random.below(left as u64) as usize };
        begun.write(path, count, stage);
        if begun.written < begun.records.bytes.len() {
            self.begun.insert(content, begun);
        }
    }

    /// Events that were begun in a content are written to their end.
    pub(super) fn speak_out(&mut self, content: usize, stage: &mut Stage) {
        let Some(mut begun) = self.begun.remove(&content) else { return };
        // The writer has the file open, wherever it is.
        let here = self.files.iter().filter(|(_, held)| !held.compressed);
        let here = here.map(|(path, held)| (path.clone(), held.content));
        let away = self.away.iter().map(|away| (away.at.clone(), away.held.content));
        let place = here.chain(away).find(|(_, of)| *of == content);
        if let Some((path, _)) = place {
            begun.write(&path, usize::MAX, stage);
        }
    }

    /// The same, of the file at a path.
    pub(super) fn speak_out_at(&mut self, path: &Path, stage: &mut Stage) {
        if let Some(content) = self.files.get(path).map(|held| held.content) {
            self.speak_out(content, stage);
        }
    }

    /// Time has passed: no sender leaves an event unfinished for long.
    pub(crate) fn hurry(&mut self, stage: &mut Stage) {
        let now = stage.clock.monotonic();
        let late = self.begun.iter().filter(|(_, begun)| now.since(begun.since) >= PATIENCE);
        let late: Vec<usize> = late.map(|(content, _)| *content).collect();
        for content in late {
            self.speak_out(content, stage);
        }
    }

    /// Everything that was begun is finished.
    pub(super) fn all_speak_out(&mut self, stage: &mut Stage) {
        let begun: Vec<usize> = self.begun.keys().copied().collect();
        for content in begun {
            self.speak_out(content, stage);
        }
    }
}

impl Begun {
    /// Whether a part of an event stands in the file.
    pub(super) fn is_midway(&self) -> bool {
        self.written > 0 && !self.records.ends.iter().any(|(at, _)| *at == self.written)
    }

    fn write(&mut self, path: &Path, count: usize, stage: &mut Stage) {
        let end = self.written.saturating_add(count).min(self.records.bytes.len());
        stage.fs.append_as_other(PathBuf::from(path), &self.records.bytes[self.written..end]);
        let (from, to) = (self.written, end);
        for (_, event) in self.records.ends.iter().filter(|(at, _)| (from + 1..=to).contains(at)) {
            stage.truth.complete_event(*event);
        }
        self.written = end;
        let left = self.records.bytes.len() - end;
        stage.story.log(|| {
            let first = self.records.ends.first().map(|(_, event)| *event);
            format!(
                "{} bytes to {}, of {first:?} and so on, {left} to go",
                to - from,
                path.display()
            )
        });
    }
}
