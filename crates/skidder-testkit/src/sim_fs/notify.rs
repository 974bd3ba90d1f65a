//! Change notification of the simulated disk: honest by default, and as bad as one asks for.

use super::state::{NodeId, State};
use super::{Operation, SimFs};
use crate::Random;
use skidder_os::{Bell, FileKind, Notice, Notifier, WatchError, WatchId};
use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Notices that wait to be taken; beyond that they are lost, as Linux does.
const QUEUE_MAX: usize = 16_384;

/// A notice that owns its name.
#[derive(Clone, Debug)]
enum Told {
    Content(WatchId, Arc<OsStr>),
    Name(WatchId, Arc<OsStr>, bool),
    Gone(WatchId),
    Lost,
}

/// What is watched, and what was told of it.
#[derive(Debug, Default)]
pub(super) struct Notices {
    watched: BTreeMap<NodeId, WatchId>,
    last: i32,
    queue: VecDeque<Told>,
    /// Told only after the next take.
    late: Vec<Told>,
    unreliable: Option<Random>,
    /// Directories whose file system tells nothing.
    blind: Vec<PathBuf>,
    watches_max: Option<usize>,
}

impl Notices {
    /// The program that watched is gone.
    pub(super) fn clear(&mut self) {
        self.watched.clear();
        self.queue.clear();
        self.late.clear();
    }

    pub(super) fn tell_name(&mut self, directory: NodeId, name: &Arc<OsStr>, of_directory: bool) {
        if let Some(&watch) = self.watched.get(&directory) {
            self.tell(Told::Name(watch, Arc::clone(name), of_directory));
        }
    }

    /// A directory, if it is one that is watched, lost its name.
    pub(super) fn tell_gone(&mut self, node: NodeId) {
        if let Some(watch) = self.watched.remove(&node) {
            self.tell(Told::Gone(watch));
        }
    }

    fn tell(&mut self, told: Told) {
        if self.queue.len() >= QUEUE_MAX {
            self.queue.clear();
            self.queue.push_back(Told::Lost);
            return;
        }
        let Some(random) = &mut self.unreliable else { return self.queue.push_back(told) };
        match random.below(16) {
            0..4 => {}
            4..7 => self.late.push(told),
            7 => self.queue.extend([told.clone(), told]),
            8 if random.one_in(8) => {
                self.queue.clear();
                self.queue.push_back(Told::Lost);
            }
            _ => self.queue.push_back(told),
        }
    }
}

impl State {
    /// A file was written to, or cut: told under each of its names, whichever was used.
    pub(super) fn tell_content(&mut self, node: NodeId) {
        let mut told = Vec::new();
        for (&directory, &watch) in &self.notices.watched {
            let Ok(names) = self.names(directory) else { continue };
            let names = names.iter().filter(|(_, target)| **target == node);
            told.extend(names.map(|(name, _)| Told::Content(watch, Arc::clone(name))));
        }
        for told in told {
            self.notices.tell(told);
        }
    }
}

impl SimFs {
    /// From now on about a quarter of all notices is lost without a word, others come late or twice, and now
    /// and then the queue overflows; `None` ends it.
    pub fn unreliable_notices(&self, seed: Option<u64>) {
        self.lock().notices.unreliable = seed.map(Random::new);
    }

    /// From now on nothing is told of what is below `directory`, and whoever asks is told so.
    pub fn blind_below(&self, directory: impl AsRef<Path>) {
        self.lock().notices.blind.push(directory.as_ref().to_owned());
    }

    /// Limits the number of watched directories; `None` lifts the limit.
    pub fn set_watches_max(&self, limit: Option<usize>) {
        self.lock().notices.watches_max = limit;
    }

    /// Nothing of what happened since the last take will be told, and nobody hears of that.
    pub fn forget_notices(&self) {
        let notices = &mut self.lock().notices;
        notices.queue.clear();
        notices.late.clear();
    }

    /// What happened since the last take is told to be lost.
    pub fn overflow_notices(&self) {
        let notices = &mut self.lock().notices;
        notices.queue.clear();
        notices.queue.push_back(Told::Lost);
    }

    /// Directories that are watched now.
    pub fn watched(&self) -> usize {
        self.lock().notices.watched.len()
    }

    pub(super) fn new_notifier(&self) -> Box<dyn Notifier> {
        self.lock().notices.clear();
        Box::new(SimNotifier(self.clone()))
    }
}

/// The notifier of a simulated disk; making another one ends it.
struct SimNotifier(SimFs);

impl Notifier for SimNotifier {
    fn watch(&mut self, directory: &Path) -> Result<WatchId, WatchError> {
        let mut state = self.0.begin(Operation::Stat, directory)?;
        let node = state.find(directory, true)?;
        if state.kind(node) != FileKind::Directory {
            return Err(WatchError::Io(std::io::ErrorKind::NotADirectory.into()));
        }
        let notices = &mut state.notices;
        if notices.blind.iter().any(|blind| directory.starts_with(blind)) {
            return Err(WatchError::Blind { kind: 0x6969 });
        }
        if let Some(&watch) = notices.watched.get(&node) {
            return Ok(watch);
        }
        if notices.watches_max.is_some_and(|limit| notices.watched.len() >= limit) {
            return Err(WatchError::Limit);
        }
        notices.last += 1;
        let watch = WatchId(notices.last);
        notices.watched.insert(node, watch);
        Ok(watch)
    }

    fn unwatch(&mut self, watch: WatchId) {
        self.0.lock().notices.watched.retain(|_, of| *of != watch);
    }

    fn take(&mut self, each: &mut dyn FnMut(Notice<'_>)) {
        let told: Vec<Told> = {
            let notices = &mut self.0.lock().notices;
            let now = notices.queue.drain(..).collect();
            notices.queue.extend(notices.late.drain(..));
            now
        };
        for told in &told {
            each(match told {
                Told::Content(watch, name) => Notice::Content { watch: *watch, name },
                Told::Name(watch, name, directory) => {
                    Notice::Name { watch: *watch, name, directory: *directory }
                }
                Told::Gone(watch) => Notice::Gone { watch: *watch },
                Told::Lost => Notice::Lost,
            });
        }
    }

    /// Simulated time does not pass by waiting.
    fn wait(&mut self, _limit: Duration) {}

    fn bell(&self) -> Arc<dyn Bell> {
        Arc::new(NoBell)
    }
}

/// Nobody waits.
struct NoBell;

impl Bell for NoBell {
    fn ring(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SimClock;
    use skidder_os::Fs;

    fn taken(notifier: &mut dyn Notifier) -> Vec<String> {
        let mut told = Vec::new();
        notifier.take(&mut |notice| {
            told.push(match notice {
                Notice::Content { name, .. } => format!("content {}", name.display()),
                Notice::Name { name, .. } => format!("name {}", name.display()),
                Notice::Gone { .. } => "gone".to_owned(),
                Notice::Lost => "lost".to_owned(),
            });
        });
        told
    }

    #[test]
    fn an_honest_disk_tells_what_happens_in_watched_directories_only() {
        let fs = SimFs::new(&SimClock::new());
        fs.create_dir_as_other("/a");
        let mut notifier = fs.notifier().expect("it has one");
        notifier.watch(Path::new("/a")).expect("it is there");
        fs.append_as_other("/a/x", b"1");
        fs.append_as_other("/b/x", b"1");
        assert_eq!(taken(&mut *notifier), ["name x", "content x"]);
        fs.rename_as_other("/a/x", "/a/y");
        assert_eq!(taken(&mut *notifier), ["name x", "name y"]);
        fs.remove_dir_as_other("/a");
        assert_eq!(taken(&mut *notifier), ["name y", "gone"]);
    }

    #[test]
    fn a_bad_disk_loses_some_and_a_blind_or_full_one_says_so() {
        let fs = SimFs::new(&SimClock::new());
        fs.create_dir_as_other("/a");
        fs.create_dir_as_other("/net/a");
        fs.blind_below("/net");
        let mut notifier = fs.notifier().expect("it has one");
        notifier.watch(Path::new("/a")).expect("it is there");
        let blind = notifier.watch(Path::new("/net/a"));
        assert!(matches!(blind, Err(WatchError::Blind { .. })));
        fs.set_watches_max(Some(1));
        assert!(matches!(notifier.watch(Path::new("/")), Err(WatchError::Limit)));
        fs.unreliable_notices(Some(1));
        for _ in 0..100 {
            fs.append_as_other("/a/x", b"1");
        }
        let told = taken(&mut *notifier).len();
        assert!((20..95).contains(&told), "{told} of 101");
        assert!(!taken(&mut *notifier).is_empty(), "some are late");
        fs.overflow_notices();
        assert_eq!(taken(&mut *notifier), ["lost"]);
    }
}
