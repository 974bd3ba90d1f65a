//! The container of a process, by its control groups (cgroups(7), `/proc/PID/cgroup`).

use skidder_os::{Clock, Fs, Monotonic, read_to_end};
use skidder_processors::Context;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long the container of a process is believed, as in Filebeat.
const TIME: Duration = Duration::from_mins(5);
/// Processes that are remembered; full, all that are too old are forgotten, or else all.
const PROCESSES_MAX: usize = 10_000;
/// Largest file that is read: a line for each of a dozen controllers.
const FILE_BYTES_MAX: usize = 1 << 20;
/// Letters, digits and `_` in a row that are the id of a container.
const ID_LENGTH: usize = 64;

/// Containers by process.
pub(super) struct Cgroups {
    /// Where the root of the host's file system is.
    hostfs: PathBuf,
    fs: Arc<dyn Fs>,
    clock: Arc<dyn Clock>,
    known: Mutex<HashMap<i64, (Arc<str>, Monotonic)>>,
}

impl Cgroups {
    pub(super) fn new(hostfs: PathBuf, context: &Context) -> Self {
        let (fs, clock) = (Arc::clone(&context.fs), Arc::clone(&context.clock));
        Self { hostfs, fs, clock, known: Mutex::default() }
    }

    /// The id of the container of a process, empty if it is in none; nothing if there is no such process.
    pub(super) fn container(&self, pid: i64) -> Option<Arc<str>> {
        let now = self.clock.monotonic();
        let lock = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((id, until)) = lock().get(&pid)
            && now < *until
        {
            return Some(Arc::clone(id));
        }
        let file = self.fs.open(&self.hostfs.join(format!("proc/{pid}/cgroup"))).ok()?;
        let bytes = read_to_end(&*file, FILE_BYTES_MAX).ok()?;
        let id: Arc<str> =
            String::from_utf8_lossy(&bytes).lines().find_map(id_in).unwrap_or_default().into();
        let mut known = lock();
        if known.len() >= PROCESSES_MAX {
            known.retain(|_, (_, until)| now < *until);
            if known.len() >= PROCESSES_MAX {
                known.clear();
            }
        }
        known.insert(pid, (Arc::clone(&id), now + TIME));
        Some(id)
    }
}

/// The id in a line `hierarchy:controllers:path`: 64 word characters in a row.
fn id_in(line: &str) -> Option<String> {
    let path = line.splitn(3, ':').nth(2)?;
    let mut words = path.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    words.find(|word| word.len() >= ID_LENGTH).map(|word| word[..ID_LENGTH].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_64_word_characters_of_the_path() {
        let id = "0f".repeat(32);
        for (line, found) in [
            (format!("1:name=systemd:/docker/{id}"), true),
            (format!("0::/system.slice/docker-{id}.scope"), true),
            (format!("0::/kubepods/besteffort/pod1/cri-containerd-{id}.scope"), true),
            (format!("1:{id}:/user.slice"), false),
            ("0::/".to_owned(), false),
            ("nonsense".to_owned(), false),
        ] {
            assert_eq!(id_in(&line), found.then(|| id.clone()), "{line}");
        }
    }
}
