//! An operator: deletes, moves away and back, touches, links, empties and writes anew.

use super::{Held, Others, Watched, pick};
use crate::stage::Stage;
use skidder_os::{Clock, Monotonic};
use skidder_testkit::Random;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longer than the program promises to remember a file that is not there.
const FORGETFUL: Duration = Duration::from_mins(1);

/// A file outside of all patterns.
pub(super) struct Away {
    pub(super) from: PathBuf,
    pub(super) at: PathBuf,
    pub(super) held: Held,
    since: Monotonic,
}

impl Others {
    /// Destroys what is in a file, and perhaps has something else written there.
    pub(super) fn rewrite(&mut self, family: usize, stage: &mut Stage, random: &mut Random) {
        let base = PathBuf::from(&self.families[family].base);
        if self.family_is_busy(family) || self.links.values().any(|of| *of == base) {
            return;
        }
        self.speak_out_at(&base, stage);
        let Some(held) = self.files.remove(&base) else { return };
        stage.truth.excuse_unread(held.content);
        stage.fs.truncate_as_other(&base, 0);
        stage.story.log(|| format!("destroy {} (c{})", base.display(), held.content));
        for _ in 0..random.below(4) {
            self.append(family, stage, random);
        }
    }

    /// Removes a file that the program has read.
    pub(super) fn delete(&mut self, stage: &mut Stage, random: &mut Random) {
        let read = |(path, _): &(&PathBuf, &Held)| self.is_read(path, stage) && !self.is_busy(path);
        let read: Vec<PathBuf> =
            self.files.iter().filter(read).map(|(path, _)| path.clone()).collect();
        if let Some(path) = pick(&read, random)
            && !self.any_truncating()
        {
            self.remove(&path, stage);
        }
    }

    /// Removes a file that the program has not read to its end. If it has it open it must go on.
    pub(super) fn delete_unread(
        &mut self,
        stage: &mut Stage,
        random: &mut Random,
        watched: &dyn Watched,
    ) {
        let Some(path) = pick(&self.plain(), random) else { return };
        self.speak_out_at(&path, stage);
        let Some(held) = self.files.get(&path).cloned() else { return };
        let elsewhere =
            self.files.iter().filter(|(_, other)| other.content == held.content).count();
        if self.any_truncating() || elsewhere > 1 {
            return;
        }
        let kept = held.first && watched.keeps_open(&stage.fs, &path);
        let pinned = self.is_pinned(&path, stage);
        stage.story.log(|| format!("removed unread, kept open: {kept}, pinned: {pinned}"));
        if pinned {
            self.pinned.push(held.content);
        } else if !kept {
            stage.truth.excuse_unread(held.content);
        }
        self.remove(&path, stage);
    }

    pub(super) fn rename_away(&mut self, stage: &mut Stage, random: &mut Random) {
        let names: Vec<PathBuf> =
            self.files.keys().filter(|path| !self.is_busy(path)).cloned().collect();
        let Some(from) = pick(&names, random) else { return };
        if self.links.values().any(|of| *of == from) || self.any_truncating() {
            return;
        }
        self.names += 1;
        let at = PathBuf::from(format!("/away/{}", self.names));
        stage.fs.rename_as_other(&from, &at);
        stage.story.log(|| format!("{} goes away", from.display()));
        let Some(held) = self.files.remove(&from) else { return };
        let now = stage.clock.monotonic();
        // The program may not have looked while it was there for a moment.
        let before = held.was_away.filter(|(_, back)| now.since(*back) < FORGETFUL);
        let since = before.map_or(now, |(since, _)| since);
        self.away.push(Away { from, at, held, since });
    }

    pub(super) fn come_back(&mut self, stage: &mut Stage, random: &mut Random) {
        let at = random.below(self.away.len() as u64) as usize;
        let Some(away) = self.away.get(at) else { return };
        if stage.fs.peek(&away.from).is_some() {
            return;
        }
        let mut away = self.away.swap_remove(at);
        away.held.was_away = Some((away.since, stage.clock.monotonic()));
        stage.fs.rename_as_other(&away.at, &away.from);
        stage.story.log(|| format!("{} comes back", away.from.display()));
        if stage.clock.monotonic().since(away.since) >= FORGETFUL {
            stage.truth.forget(away.held.content);
        }
        self.files.insert(away.from, away.held);
    }

    /// What found its place taken comes back under another name.
    pub(super) fn all_come_back(&mut self, stage: &mut Stage, random: &mut Random) {
        for _ in 0..100 {
            self.come_back(stage, random);
        }
        for away in std::mem::take(&mut self.away) {
            self.names += 1;
            let end = if away.held.compressed { ".gz" } else { "" };
            let name = format!("{}.{}{end}", away.from.display(), 100 + self.names);
            stage.fs.rename_as_other(&away.at, &name);
            stage.story.log(|| format!("{} comes back as {name}", away.from.display()));
            stage.truth.forget(away.held.content);
            self.files.insert(PathBuf::from(name), away.held);
        }
    }

    pub(super) fn touch(&mut self, stage: &mut Stage, random: &mut Random) {
        let names: Vec<PathBuf> = self.files.keys().cloned().collect();
        let Some(path) = pick(&names, random) else { return };
        stage.fs.set_modified_as_other(&path, stage.clock.wall());
        stage.story.log(|| format!("touch {}", path.display()));
    }

    /// A second name for a file, or the end of one.
    pub(super) fn link(&mut self, stage: &mut Stage, random: &mut Random) {
        if let Some(link) = self.links.keys().next().cloned() {
            stage.fs.remove_as_other(&link);
            self.links.remove(&link);
            stage.story.log(|| format!("unlink {}", link.display()));
            return;
        }
        if let Some(of) = pick(&self.plain(), random) {
            self.names += 1;
            // In the reach of the same input, and with a name that looks like one of the same log.
            let link = PathBuf::from(format!("{}.9{}", of.display(), self.names));
            stage.fs.hard_link_as_other(&of, &link);
            stage.story.log(|| format!("link {} to {}", link.display(), of.display()));
            self.links.insert(link, of);
        }
    }

    pub(super) fn unlink(&mut self, of: &Path, stage: &Stage) {
        let link = self.links.iter().find(|(_, path)| *path == of).map(|(link, _)| link.clone());
        if let Some(link) = link {
            stage.fs.remove_as_other(&link);
            self.links.remove(&link);
        }
    }
}
