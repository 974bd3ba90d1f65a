//! What other programs do to the files: writers, log rotation, the kubelet, compressors, an operator.
//!
//! They know nothing of the program under test. Where POSIX lets a race lose lines whatever a log shipper
//! does (a file removed or emptied before it was read) they make the oracle excuse them.

mod compressor;
mod family;
mod kept;
mod kubelet;
mod logrotate;
mod operator;
mod speakers;
mod writers;

use crate::oracle::Truth;
use crate::records::Dialect;
use crate::scenario::Habits;
use crate::stage::Stage;
use crate::themes::{Special, Themes};
use compressor::Job;
use family::{Family, Manner};
use operator::Away;
use skidder_os::Monotonic;
use skidder_testkit::{Random, SimFs};
use speakers::Begun;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A file in `/logs` or away from it.
#[derive(Clone, Debug)]
struct Held {
    content: usize,
    compressed: bool,
    /// The last line has no end yet.
    half: bool,
    dialect: Dialect,
    /// The file was never emptied: this is all it ever held.
    first: bool,
    /// When it went away and came back for the last time.
    was_away: Option<(Monotonic, Monotonic)>,
}

/// A compressed file beside its original, which will be removed.
struct Doubled {
    original: PathBuf,
    target: PathBuf,
}

/// All files of the other programs.
pub(crate) struct Others {
    families: Vec<Family>,
    habits: Habits,
    files: BTreeMap<PathBuf, Held>,
    /// Compressed files that are being written.
    jobs: Vec<Job>,
    doubled: Vec<Doubled>,
    away: Vec<Away>,
    /// Contents of deleted files that the program keeps by a name of its own.
    pinned: Vec<usize>,
    special: Special,
    /// Events that are half written, by their content.
    begun: BTreeMap<usize, Begun>,
    links: BTreeMap<PathBuf, PathBuf>,
    /// Makes names that were never used before.
    names: u32,
    /// The program looks at plain files only: what is compressed meanwhile is forgotten.
    plain_only: bool,
}

/// What the other programs can see of the one under test: which unread file it must have to the end,
/// because it has it open and nothing makes it close it.
pub(crate) trait Watched {
    /// Whether the file at a path is open, and stays open until it is read.
    fn keeps_open(&self, fs: &SimFs, path: &Path) -> bool;

    /// Whether the registry has something of what a link leads to.
    fn has_saved(&self, link: &Path) -> bool;
}

impl Others {
    pub(crate) fn new(habits: Habits, themes: &Themes, random: &mut Random) -> Self {
        Self {
            families: family::some(&habits, themes, random),
            habits,
            files: BTreeMap::new(),
            jobs: Vec::new(),
            doubled: Vec::new(),
            away: Vec::new(),
            pinned: Vec::new(),
            special: themes.special,
            begun: BTreeMap::new(),
            links: BTreeMap::new(),
            names: 0,
            plain_only: false,
        }
    }

    /// One action.
    pub(crate) fn act(&mut self, stage: &mut Stage, random: &mut Random, watched: &dyn Watched) {
        self.compressors_live(stage);
        let family = self.pick_family(random);
        let rotates = self.habits.rotation;
        match random.below(100) {
            0..8 => self.rotate(family, stage, random),
            8..12 if rotates >= 2 => self.rotate(family, stage, random),
            12..16 => self.compress_some(family, stage, random),
            16..28 => self.go_on(stage, random),
            28..31 if self.habits.rewrites => self.rewrite(family, stage, random),
            31..35 => self.delete(stage, random),
            35..38 if self.habits.deletes_unread => self.delete_unread(stage, random, watched),
            38..42 if self.habits.moves => self.rename_away(stage, random),
            42..46 => self.come_back(stage, random),
            46..48 => self.touch(stage, random),
            48..50 if self.habits.links => self.link(stage, random),
            50..52 => self.append_rotated(stage, random),
            52..54 if self.families[family].link.is_some() => {
                self.restart_container(family, stage, watched);
            }
            _ => self.append(family, stage, random),
        }
    }

    fn pick_family(&self, random: &mut Random) -> usize {
        let total: u64 = self.families.iter().map(|family| family.pace).sum();
        let mut at = random.below(total);
        for (number, family) in self.families.iter().enumerate() {
            if at < family.pace {
                return number;
            }
            at -= family.pace;
        }
        0
    }

    fn rename(&mut self, from: &Path, to: &Path, stage: &Stage) {
        if let Some(held) = self.files.remove(from) {
            stage.fs.rename_as_other(from, to);
            let content = held.content;
            stage
                .story
                .log(|| format!("rename {} to {} (c{content})", from.display(), to.display()));
            self.files.insert(to.to_owned(), held);
            for of in self.links.values_mut() {
                if *of == from {
                    to.clone_into(of);
                }
            }
        }
    }

    fn remove(&mut self, path: &Path, stage: &mut Stage) {
        self.speak_out_at(path, stage);
        if let Some(held) = self.files.remove(path) {
            stage.fs.remove_as_other(path);
            self.unlink(path, stage);
            stage.story.log(|| format!("remove {} (c{})", path.display(), held.content));
        }
    }

    fn is_busy(&self, path: &Path) -> bool {
        self.jobs.iter().any(|job| job.original == *path || job.target == *path)
            || self.doubled.iter().any(|pair| pair.original == path || pair.target == path)
    }

    fn family_is_busy(&self, family: usize) -> bool {
        let family = &self.families[family];
        family.truncating
            || self.jobs.iter().any(|job| family.owns(&job.original))
            || self.doubled.iter().any(|pair| family.owns(&pair.original))
            || self.away.iter().any(|away| family.owns(&away.from))
    }

    fn any_truncating(&self) -> bool {
        self.families.iter().any(|family| family.truncating)
    }

    /// Paths of files that are neither compressed nor part of a compression.
    fn plain(&self) -> Vec<PathBuf> {
        let plain = |(path, held): &(&PathBuf, &Held)| !held.compressed && !self.is_busy(path);
        self.files.iter().filter(plain).map(|(path, _)| path.clone()).collect()
    }

    /// From now on the program looks at plain files only, or at all.
    pub(crate) fn set_plain_only(&mut self, plain_only: bool, truth: &mut Truth) {
        self.plain_only = plain_only;
        if plain_only {
            for held in self.files.values().chain(self.away.iter().map(|away| &away.held)) {
                if held.compressed {
                    truth.forget(held.content);
                }
            }
        }
    }

    /// Contents that no file in reach of the program holds.
    pub(crate) fn gone(&self, contents: usize) -> Vec<usize> {
        let mut here = vec![false; contents];
        for held in self.files.values().chain(self.away.iter().map(|away| &away.held)) {
            here[held.content] = true;
        }
        for content in &self.pinned {
            here[*content] = true;
        }
        (0..contents).filter(|content| !here[*content]).collect()
    }

    /// Where a content is, for people.
    pub(crate) fn places(&self, content: usize) -> Vec<String> {
        let here = self.files.iter().filter(|(_, held)| held.content == content);
        let here = here.map(|(path, _)| path.display().to_string());
        let away = self.away.iter().filter(|away| away.held.content == content);
        here.chain(away.map(|away| format!("{} (away)", away.at.display()))).collect()
    }

    /// Brings everything that was begun to its end.
    pub(crate) fn finish(&mut self, stage: &mut Stage, random: &mut Random) {
        self.go_on_in_containers(stage, random);
        self.all_speak_out(stage);
        while !self.jobs.is_empty() || !self.doubled.is_empty() || self.any_truncating() {
            self.go_on(stage, random);
        }
        self.all_come_back(stage, random);
    }
}

fn pick(paths: &[PathBuf], random: &mut Random) -> Option<PathBuf> {
    paths.get(random.below(paths.len() as u64) as usize).cloned()
}
