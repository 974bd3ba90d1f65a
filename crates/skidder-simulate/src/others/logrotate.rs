//! `logrotate`: numbered or dated names, renaming or `copytruncate`, compression at once or later.

use super::family::Compresses;
use super::{Manner, Others};
use crate::stage::Stage;
use skidder_testkit::Random;
use std::path::{Path, PathBuf};

/// Rotated files that are kept.
pub(super) const KEPT: u32 = 4;

impl Others {
    /// One rotation of a log, if nothing else is being done to it.
    pub(super) fn rotate(&mut self, family: usize, stage: &mut Stage, random: &mut Random) {
        let base = PathBuf::from(&self.families[family].base);
        if self.family_is_busy(family) || !self.files.contains_key(&base) {
            return;
        }
        if self.families[family].manner == Manner::Kubelet {
            self.rotate_pod(family, stage, random);
            return;
        }
        if self.families[family].compresses == Compresses::Later
            && let Some(last) = self.rotated(family).into_iter().find(|path| !is_gz(path))
            && self.compress(&last, None, stage, random)
        {
            // The rotation goes on when that is done.
            return;
        }
        let copies = self.families[family].copies && !self.links.values().any(|of| *of == base);
        let Some(first) = self.make_room(family, stage) else { return };
        if copies {
            self.copytruncate(family, &base, &first, stage, random);
        } else {
            self.rename(&base, &first, stage);
            if self.families[family].creates {
                stage.fs.write_as_other(&base, &[]);
            }
            if self.families[family].compresses == Compresses::AtOnce {
                self.compress(&first, None, stage, random);
            }
        }
        if random.one_in(2) {
            self.append(family, stage, random);
        }
    }

    /// Rotated files of a log, the newest first.
    pub(super) fn rotated(&self, family: usize) -> Vec<PathBuf> {
        let family = &self.families[family];
        let of_family = |path: &&PathBuf| {
            family.owns(path)
                && **path != Path::new(&family.base)
                && !self.links.contains_key(*path)
        };
        let mut paths: Vec<PathBuf> = self.files.keys().filter(of_family).cloned().collect();
        if family.manner != Manner::Numbered {
            paths.reverse();
        }
        paths
    }

    /// Makes room for one more rotated file and names it; `None` if the oldest was not read yet.
    fn make_room(&mut self, family: usize, stage: &mut Stage) -> Option<PathBuf> {
        let base = self.families[family].base.clone();
        if self.families[family].manner == Manner::Dated {
            let oldest = self.rotated(family).get(KEPT as usize - 1).cloned();
            if let Some(oldest) = oldest {
                if !self.is_read(&oldest, stage) {
                    return None;
                }
                self.remove(&oldest, stage);
            }
            self.names += 1;
            return Some(PathBuf::from(format!("{base}-2026{:04}", self.names)));
        }
        let names = |number: u32| {
            [format!("{base}.{number}"), format!("{base}.{number}.gz")].map(PathBuf::from)
        };
        for oldest in names(KEPT) {
            if self.files.contains_key(&oldest) {
                if !self.is_read(&oldest, stage) {
                    return None;
                }
                self.remove(&oldest, stage);
            }
        }
        for number in (1..KEPT).rev() {
            for (from, to) in names(number).into_iter().zip(names(number + 1)) {
                self.rename(&from, &to, stage);
            }
        }
        Some(PathBuf::from(format!("{base}.1")))
    }

    /// Whether the program has all of a file.
    pub(super) fn is_read(&self, path: &Path, stage: &Stage) -> bool {
        self.files.get(path).is_none_or(|held| {
            stage.truth.is_read(held.content) && !self.begun.contains_key(&held.content)
        })
    }

    fn copytruncate(
        &mut self,
        family: usize,
        base: &Path,
        copy: &Path,
        stage: &mut Stage,
        random: &mut Random,
    ) {
        self.speak_out_at(base, stage);
        let Some(held) = self.files.get(base).cloned() else { return };
        let bytes = stage.fs.peek(base).unwrap_or_default();
        stage.fs.write_as_other(copy, &bytes);
        let content = held.content;
        stage.story.log(|| format!("copy {} to {} (c{content})", base.display(), copy.display()));
        self.files.insert(copy.to_owned(), held);
        if random.one_in(2) {
            self.families[family].truncating = true;
        } else {
            self.truncate_copied(family, stage, random);
        }
    }

    /// The second half of `copytruncate`.
    pub(super) fn truncate_copied(
        &mut self,
        family: usize,
        stage: &mut Stage,
        random: &mut Random,
    ) {
        self.families[family].truncating = false;
        let base = PathBuf::from(&self.families[family].base);
        if self.files.remove(&base).is_some() {
            stage.fs.truncate_as_other(&base, 0);
            stage.story.log(|| format!("truncate {}", base.display()));
        }
        if self.families[family].compresses == Compresses::AtOnce
            && let Some(copy) = self.rotated(family).into_iter().find(|path| !is_gz(path))
        {
            self.compress(&copy, None, stage, random);
        }
    }
}

pub(super) fn is_gz(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "gz")
}
