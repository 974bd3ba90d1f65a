//! Programs that write logs, each with its own pace.

use super::{Held, Others, pick};
use crate::lines;
use crate::records::Dialect;
use crate::stage::Stage;
use crate::themes::Special;
use skidder_testkit::Random;
use std::path::{Path, PathBuf};

impl Others {
    /// A writer appends to its log, which may be new.
    pub(super) fn append(&mut self, family: usize, stage: &mut Stage, random: &mut Random) {
        let of = &self.families[family];
        if of.truncating {
            return;
        }
        let path = PathBuf::from(&of.base);
        if !self.files.contains_key(&path) {
            // Something else may have come to be here.
            let there = stage.fs.peek_metadata(&path);
            if there.is_some_and(|there| there.size > 0) {
                return;
            }
            let content = stage.truth.content();
            let held = Held {
                content,
                compressed: false,
                half: false,
                dialect: of.dialect,
                first: there.is_none(),
                was_away: None,
            };
            self.files.insert(path.clone(), held);
            self.make_link(family, &path, stage);
            let of = &self.families[family];
            if !of.header.is_empty() {
                // Files of one beginning may be taken for each other where nothing else was read of them.
                stage.truth.forget(content);
                stage.fs.append_as_other(&path, &of.header);
                if random.one_in(2) {
                    stage.story.log(|| format!("new {} (c{content}), a header", path.display()));
                    return;
                }
            }
        }
        self.append_to(&path, stage, random);
    }

    fn append_to(&mut self, path: &Path, stage: &mut Stage, random: &mut Random) {
        let Some(held) = self.files.get_mut(path) else { return };
        if held.dialect != Dialect::Plain {
            self.speak(path, stage, random);
            return;
        }
        let mut bytes = Vec::new();
        if held.half {
            bytes.push(b'\n');
            stage.truth.complete(held.content);
        }
        let (more, half) = lines::some(held.content, random, &mut stage.truth);
        bytes.extend(more);
        held.half = half;
        let content = held.content;
        stage.fs.append_as_other(path, &bytes);
        stage
            .story
            .log(|| format!("append {} bytes to {} (c{content})", bytes.len(), path.display()));
    }

    /// A writer that still has a rotated file open.
    pub(super) fn append_rotated(&mut self, stage: &mut Stage, random: &mut Random) {
        // A copy that is about to become the only one is not written to before.
        if self.any_truncating() {
            return;
        }
        if self.special != Special::Containers
            && let Some(path) = pick(&self.plain(), random)
        {
            self.append_to(&path, stage, random);
        }
    }
}
