//! Compressors: some finish before the program looks, others leave a half-written file for long.

use super::logrotate::is_gz;
use super::{Doubled, Held, Manner, Others, pick};
use crate::stage::Stage;
use flate2::Compression;
use flate2::write::GzEncoder;
use skidder_os::Clock;
use skidder_testkit::Random;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Files below this are never seen half compressed: what is written of them at first looks like the whole
/// of a shorter one.
const SLOW_BYTES_MIN: usize = 2048;

/// A compressed file that is being written.
pub(super) struct Job {
    pub(super) original: PathBuf,
    /// Where it is written; `target` in the end.
    pub(super) writing: PathBuf,
    pub(super) target: PathBuf,
    rest: Vec<u8>,
}

impl Others {
    /// A writer that is not done never rests for long.
    pub(super) fn compressors_live(&self, stage: &Stage) {
        for job in &self.jobs {
            stage.fs.set_modified_as_other(&job.writing, stage.clock.wall());
        }
    }

    /// Compresses a rotated file.
    pub(super) fn compress_some(&mut self, family: usize, stage: &mut Stage, random: &mut Random) {
        let of = &self.families[family];
        if !self.habits.compression
            || of.manner == Manner::Kubelet
            || of.compresses != super::family::Compresses::Sometimes
            || self.family_is_busy(family)
        {
            return;
        }
        let mut plain = self.rotated(family);
        plain.retain(|path| !is_gz(path) && !self.is_busy(path));
        if let Some(original) = pick(&plain, random) {
            self.compress(&original, None, stage, random);
        }
    }

    /// Begins to compress a file, if there is something to compress; returns whether it did.
    pub(super) fn compress(
        &mut self,
        original: &Path,
        temporary: Option<PathBuf>,
        stage: &mut Stage,
        random: &mut Random,
    ) -> bool {
        let target = PathBuf::from(format!("{}.gz", original.display()));
        self.speak_out_at(original, stage);
        let Some(held) = self.files.get_mut(original) else { return false };
        let bytes = stage.fs.peek(original).unwrap_or_default();
        if bytes.is_empty() || stage.fs.peek(&target).is_some() {
            return false;
        }
        let rest = compressed(&bytes, random);
        // What a line lacks at the end of a compressed file will never come.
        stage.truth.complete(held.content);
        held.half = false;
        let content = held.content;
        let way = random.below(if bytes.len() < SLOW_BYTES_MIN { 2 } else { 4 });
        stage.story.log(|| format!("compress {} (c{content}) way {way}", original.display()));
        let original = original.to_owned();
        if way < 2 {
            stage.fs.write_as_other(&target, &rest);
            self.doubled.push(Doubled { original, target });
            if way == 0 {
                // The original is gone before the program looks.
                self.remove_original(stage);
            }
        } else {
            let writing = temporary.unwrap_or_else(|| target.clone());
            stage.fs.write_as_other(&writing, &[]);
            self.jobs.push(Job { original, writing, target, rest });
        }
        true
    }

    /// Something that was begun goes on.
    pub(super) fn go_on(&mut self, stage: &mut Stage, random: &mut Random) {
        let at = random.below(self.jobs.len() as u64) as usize;
        if let Some(job) = self.jobs.get_mut(at) {
            let count = (1 + random.below(job.rest.len() as u64)) as usize;
            let rest = job.rest.split_off(count);
            stage.fs.append_as_other(&job.writing, &job.rest);
            job.rest = rest;
            stage
                .story
                .log(|| format!("{} grows, {} bytes to go", job.writing.display(), job.rest.len()));
            if job.rest.is_empty() {
                let Job { original, writing, target, .. } = self.jobs.swap_remove(at);
                if writing != target {
                    stage.fs.rename_as_other(&writing, &target);
                }
                self.doubled.push(Doubled { original, target });
            }
        } else if !self.doubled.is_empty() {
            self.remove_original(stage);
        }
        for family in 0..self.families.len() {
            if self.families[family].truncating {
                self.truncate_copied(family, stage, random);
            }
        }
    }

    /// The compressor is done with the file that it began last, and removes the original.
    fn remove_original(&mut self, stage: &mut Stage) {
        let Some(Doubled { original, target }) = self.doubled.pop() else { return };
        let Some(held) = self.files.get(&original) else { return };
        if self.plain_only {
            stage.truth.forget(held.content);
        }
        let held = Held { compressed: true, half: false, ..held.clone() };
        self.files.insert(target, held);
        self.remove(&original, stage);
    }
}

/// The bytes of a compressed file, in one member or several.
fn compressed(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut out = Vec::new();
    // The first members of a file that is being written look like the whole of a short one.
    let members = if bytes.len() < 4096 { 1 } else { 1 + random.below(3) as usize };
    for piece in bytes.chunks(bytes.len().div_ceil(members).max(1)) {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(piece).expect("memory takes everything");
        out.extend(encoder.finish().expect("memory takes everything"));
    }
    out
}
