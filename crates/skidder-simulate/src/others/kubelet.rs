//! The kubelet: rotates `0.log` of a container to a name with the time, and compresses what it rotated
//! before by way of a `.tmp` file.

use super::logrotate::{KEPT, is_gz};
use super::{Others, pick};
use crate::stage::Stage;
use skidder_testkit::Random;
use std::path::PathBuf;

impl Others {
    /// One rotation: the oldest file goes, the others are compressed, the log gets a name with the time.
    pub(super) fn rotate_pod(&mut self, family: usize, stage: &mut Stage, random: &mut Random) {
        let base = PathBuf::from(self.families[family].base);
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
        if random.one_in(2) {
            self.append(family, stage, random);
        }
    }
}
