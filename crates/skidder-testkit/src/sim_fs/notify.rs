//! Change notification of the simulated disk: honest by default, and unreliable on request.

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
enum OwnedNotice {
    Content(WatchId, Arc<OsStr>),
    Name(WatchId, Arc<OsStr>, bool),
    Gone(WatchId),
    Lost,
}

/// The watches of one notifier, and its pending notices.
#[derive(Debug)]
struct Listener {
    number: u64,
    watched: BTreeMap<NodeId, WatchId>,
    queue: VecDeque<OwnedNotice>,
    /// Delivered only after the next take.
    late: Vec<OwnedNotice>,
}

/// All notifiers, and how honest the disk is.
#[derive(Debug, Default)]
pub(super) struct Notices {
    listeners: Vec<Listener>,
    numbers: u64,
    last: i32,
    unreliable: Option<Random>,
    /// Directories whose file system has no notification.
    blind: Vec<PathBuf>,
    watches_max: Option<usize>,
}

impl Notices {
    /// The programs that watched are gone.
    pub(super) fn clear(&mut self) {
        self.listeners.clear();
    }

    pub(super) fn notify_name(&mut self, directory: NodeId, name: &Arc<OsStr>, of_directory: bool) {
        let Self { listeners, unreliable, .. } = self;
        for listener in listeners {
            if let Some(&watch) = listener.watched.get(&directory) {
                listener.send(OwnedNotice::Name(watch, Arc::clone(name), of_directory), unreliable);
            }
        }
    }

    /// A directory, if it is one that is watched, lost its name.
    pub(super) fn notify_gone(&mut self, node: NodeId) {
        let Self { listeners, unreliable, .. } = self;
        for listener in listeners {
            if let Some(watch) = listener.watched.remove(&node) {
                listener.send(OwnedNotice::Gone(watch), unreliable);
            }
        }
    }

    fn listener(&mut self, number: u64) -> Option<&mut Listener> {
        self.listeners.iter_mut().find(|listener| listener.number == number)
    }

    fn watched(&self) -> usize {
        self.listeners.iter().map(|listener| listener.watched.len()).sum()
    }
}

impl Listener {
    fn send(&mut self, notice: OwnedNotice, unreliable: &mut Option<Random>) {
        if self.queue.len() >= QUEUE_MAX {
            self.queue.clear();
            self.queue.push_back(OwnedNotice::Lost);
            return;
        }
        let Some(random) = unreliable else { return self.queue.push_back(notice) };
        match random.below(16) {
            0..4 => {}
            4..7 => self.late.push(notice),
            7 => self.queue.extend([notice.clone(), notice]),
            8 if random.one_in(8) => {
                self.queue.clear();
                self.queue.push_back(OwnedNotice::Lost);
            }
            _ => self.queue.push_back(notice),
        }
    }
}

impl State {
    /// A file was written to, or cut: notified under each of its names, whichever was used.
    pub(super) fn notify_content(&mut self, node: NodeId) {
        let mut notices = Vec::new();
        for (at, listener) in self.notices.listeners.iter().enumerate() {
            for (&directory, &watch) in &listener.watched {
                let Ok(names) = self.names(directory) else { continue };
                let names = names.iter().filter(|(_, target)| **target == node);
                notices.extend(
                    names.map(|(name, _)| (at, OwnedNotice::Content(watch, Arc::clone(name)))),
                );
            }
        }
        let Notices { listeners, unreliable, .. } = &mut self.notices;
        for (at, notice) in notices {
            listeners[at].send(notice, unreliable);
        }
    }
}

impl SimFs {
    /// From now on about a quarter of all notices is lost silently, others come late or twice, and now
    /// and then the queue overflows; `None` ends it.
    pub fn unreliable_notices(&self, seed: Option<u64>) {
        self.lock().notices.unreliable = seed.map(Random::new);
    }

    /// From now on nothing below `directory` can be watched: [`Notifier::watch`] fails with `Blind`.
    pub fn blind_below(&self, directory: impl AsRef<Path>) {
        self.lock().notices.blind.push(directory.as_ref().to_owned());
    }

    /// Limits the number of watched directories; `None` lifts the limit.
    pub fn set_watches_max(&self, limit: Option<usize>) {
        self.lock().notices.watches_max = limit;
    }

    /// Loses all notices since the last take, silently.
    pub fn forget_notices(&self) {
        for listener in &mut self.lock().notices.listeners {
            listener.queue.clear();
            listener.late.clear();
        }
    }

    /// Loses all notices since the last take, and reports the loss.
    pub fn overflow_notices(&self) {
        for listener in &mut self.lock().notices.listeners {
            listener.queue.clear();
            listener.queue.push_back(OwnedNotice::Lost);
        }
    }

    /// Directories that are watched now, by all notifiers together.
    pub fn watched(&self) -> usize {
        self.lock().notices.watched()
    }

    pub(super) fn new_notifier(&self) -> Box<dyn Notifier> {
        let notices = &mut self.lock().notices;
        notices.numbers += 1;
        let number = notices.numbers;
        notices.listeners.push(Listener {
            number,
            watched: BTreeMap::new(),
            queue: VecDeque::new(),
            late: Vec::new(),
        });
        Box::new(SimNotifier { fs: self.clone(), number })
    }
}

/// A notifier of a simulated disk: each gets the notices of all that it watches.
struct SimNotifier {
    fs: SimFs,
    number: u64,
}

impl Drop for SimNotifier {
    fn drop(&mut self) {
        self.fs.lock().notices.listeners.retain(|listener| listener.number != self.number);
    }
}

impl Notifier for SimNotifier {
    fn watch(&mut self, directory: &Path) -> Result<WatchId, WatchError> {
        let mut state = self.fs.begin(Operation::Stat, directory)?;
        let node = state.find(directory, true)?;
        if state.kind(node) != FileKind::Directory {
            return Err(WatchError::Io(std::io::ErrorKind::NotADirectory.into()));
        }
        let notices = &mut state.notices;
        if notices.blind.iter().any(|blind| directory.starts_with(blind)) {
            return Err(WatchError::Blind { kind: 0x6969 });
        }
        let (watched, next) = (notices.watched(), notices.last + 1);
        let is_full = notices.watches_max.is_some_and(|limit| watched >= limit);
        let Some(listener) = notices.listener(self.number) else {
            return Err(WatchError::Io(std::io::ErrorKind::NotFound.into()));
        };
        if let Some(&watch) = listener.watched.get(&node) {
            return Ok(watch);
        }
        if is_full {
            return Err(WatchError::Limit);
        }
        listener.watched.insert(node, WatchId(next));
        notices.last = next;
        Ok(WatchId(next))
    }

    fn unwatch(&mut self, watch: WatchId) {
        if let Some(listener) = self.fs.lock().notices.listener(self.number) {
            listener.watched.retain(|_, of| *of != watch);
        }
    }

    fn take(&mut self, each: &mut dyn FnMut(Notice<'_>)) {
        let notices: Vec<OwnedNotice> = match self.fs.lock().notices.listener(self.number) {
            Some(listener) => {
                let now = listener.queue.drain(..).collect();
                listener.queue.extend(listener.late.drain(..));
                now
            }
            None => Vec::new(),
        };
        for notice in &notices {
            each(match notice {
                OwnedNotice::Content(watch, name) => Notice::Content { watch: *watch, name },
                OwnedNotice::Name(watch, name, directory) => {
                    Notice::Name { watch: *watch, name, directory: *directory }
                }
                OwnedNotice::Gone(watch) => Notice::Gone { watch: *watch },
                OwnedNotice::Lost => Notice::Lost,
            });
        }
    }

    /// Simulated time does not pass by waiting.
    fn wait(&mut self, _limit: Duration) {}

    fn bell(&self) -> Arc<dyn Bell> {
        Arc::new(NoBell)
    }
}

/// Nothing waits for it.
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
        let mut notices = Vec::new();
        notifier.take(&mut |notice| {
            notices.push(match notice {
                Notice::Content { name, .. } => format!("content {}", name.display()),
                Notice::Name { name, .. } => format!("name {}", name.display()),
                Notice::Gone { .. } => "gone".to_owned(),
                Notice::Lost => "lost".to_owned(),
            });
        });
        notices
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
    fn each_notifier_is_told_what_it_watches() {
        let fs = SimFs::new(&SimClock::new());
        fs.create_dir_as_other("/a");
        fs.create_dir_as_other("/b");
        let [mut one, mut other] = [(); 2].map(|()| fs.notifier().expect("there is no limit"));
        one.watch(Path::new("/a")).expect("it is there");
        other.watch(Path::new("/a")).expect("it is there");
        other.watch(Path::new("/b")).expect("it is there");
        assert_eq!(fs.watched(), 3);
        fs.append_as_other("/a/x", b"1");
        fs.append_as_other("/b/y", b"1");
        assert_eq!(taken(&mut *one), ["name x", "content x"]);
        assert_eq!(taken(&mut *other), ["name x", "content x", "name y", "content y"]);
        drop(one);
        assert_eq!(fs.watched(), 2);
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
        let count = taken(&mut *notifier).len();
        assert!((20..95).contains(&count), "{count} of 101");
        assert!(!taken(&mut *notifier).is_empty(), "some are late");
        fs.overflow_notices();
        assert_eq!(taken(&mut *notifier), ["lost"]);
    }
}
