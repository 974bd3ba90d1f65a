//! The kubelet: rotates `0.log` of a container to a name with the time, and compresses what it rotated
//! before by way of a `.tmp` file. A link leads to the log of the container that runs, which is `1.log` after a
//! restart.

use super::logrotate::{KEPT, is_gz};
use super::{Others, Watched, pick};
use crate::stage::Stage;
use skidder_testkit::Random;
use std::path::{Path, PathBuf};

impl Others {
    /// One rotation: the oldest file goes, the others are compressed, the log gets a name with the time.
    pub(super) fn rotate_pod(&mut self, family: usize, stage: &mut Stage, random: &mut Random) {
        let base = PathBuf::from(&self.families[family].base);
        let rotated = self.rotated(family);
        if let Some(oldest) = rotated.get(KEPT as usize - 1) {
            if !self.is_read(oldest, stage) {
                return;
            }
            self.remove(oldest, stage);
        }
        let plain: Vec<PathBuf> = rotated.into_iter().filter(|path| !is_gz(path)).collect();
        if self.habits.compression
            && let Some(path) = pick(&plain, random)
        {
            let temporary = PathBuf::from(format!("{}.tmp", path.display()));
            if self.compress(&path, Some(temporary), stage, random) {
                // The rotation goes on when that is done.
                return;
            }
        }
        self.names += 1;
        let name = format!("{}.20260101-{:06}", base.display(), self.names);
        self.rename(&base, &PathBuf::from(name), stage);
        if self.families[family].link.is_some() {
            // The runtime begins a new file at once.
            stage.fs.write_as_other(&base, &[]);
        }
        if random.one_in(2) {
            self.append(family, stage, random);
        }
    }

    /// The container starts again: its log is `1.log`, `2.log` and so on, and the link leads there.
    pub(super) fn restart_container(
        &mut self,
        family: usize,
        stage: &mut Stage,
        watched: &dyn Watched,
    ) {
        let base = PathBuf::from(&self.families[family].base);
        let Some(link) = self.families[family].link.clone() else { return };
        if self.family_is_busy(family)
            || !self.files.contains_key(&base)
            || !watched.has_saved(&link)
        {
            return;
        }
        self.speak_out_at(&base, stage);
        let name = base.file_stem().and_then(|name| name.to_str()?.parse::<u32>().ok());
        let next = base.with_file_name(format!("{}.log", name.unwrap_or_default() + 1));
        stage.story.log(|| format!("{} leads to {}", link.display(), next.display()));
        stage.fs.write_as_other(&next, &[]);
        stage.fs.symlink_as_other(&next, &link);
        self.families[family].base = next.display().to_string();
    }

    /// Links lead somewhere again whose logs an operator has removed: what was rotated away from a link that leads
    /// nowhere belongs to no source after a restart, as long as that lasts.
    pub(super) fn go_on_in_containers(&mut self, stage: &mut Stage, random: &mut Random) {
        for family in 0..self.families.len() {
            let of = &self.families[family];
            if of.link.is_some() && stage.fs.peek_metadata(&of.base).is_none() {
                self.append(family, stage, random);
            }
        }
    }

    /// A log that is found by a link has one.
    pub(super) fn make_link(&self, family: usize, base: &Path, stage: &Stage) {
        if let Some(link) = &self.families[family].link
            && stage.fs.peek_metadata(link).is_none()
        {
            stage.fs.symlink_as_other(base, link);
        }
    }
}
