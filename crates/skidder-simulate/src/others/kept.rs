//! What the program under test does to the files of others: names of its own by which it keeps them, and
//! deletions.

use super::{Held, Others};
use crate::stage::Stage;
use crate::themes::Special;
use std::path::{Path, PathBuf};

impl Others {
    /// Whether a file has a name that the others did not give it: a pin.
    pub(super) fn is_pinned(&self, path: &Path, stage: &Stage) -> bool {
        let names = 1 + self.links.values().filter(|of| *of == path).count();
        matches!(self.special, Special::Pins(_))
            && stage.fs.peek_metadata(path).is_some_and(|meta| meta.links as usize > names)
    }

    /// The program gave up what it had pinned, and logged that.
    pub(crate) fn give_up_pins(&mut self, stage: &mut Stage) {
        for content in std::mem::take(&mut self.pinned) {
            stage.truth.excuse_unread(content);
        }
    }

    /// The power went: a name that the program gave just now may be lost with it.
    pub(crate) fn lose_pins(&mut self) {
        self.pinned.clear();
    }

    /// Files that the program deleted: nothing of them may be without a verdict.
    pub(crate) fn find_deleted(&mut self, stage: &mut Stage) -> Result<(), String> {
        if !matches!(self.special, Special::Deletion | Special::Outputs { deletes: true, .. }) {
            return Ok(());
        }
        let gone = |(path, _): &(&PathBuf, &Held)| stage.fs.peek_metadata(path).is_none();
        let gone: Vec<PathBuf> =
            self.files.iter().filter(gone).map(|(path, _)| path.clone()).collect();
        for path in gone {
            let Some(held) = self.files.remove(&path) else { continue };
            stage
                .story
                .log(|| format!("the program deleted {} (c{})", path.display(), held.content));
            // What a program goes on with in a file that is gone is lost to it. Events that it has not begun are not owed.
            let begun = self.begun.remove(&held.content);
            if held.half || begun.is_some_and(|begun| begun.is_midway()) {
                return Err(format!("deleted: the last line of {} has no end yet", path.display()));
            }
            stage.truth.check_deleted(held.content)?;
        }
        Ok(())
    }
}
