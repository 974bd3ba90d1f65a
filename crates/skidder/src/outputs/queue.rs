//! `queue`: in memory or on the disk, at the root or of one output.

use super::Place;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use skidder_config::Section;
use skidder_os::{Fs, read_to_end};
use skidder_outputs::queue::{IN_MEM, ON_DISK, QUEUE, disk as on_disk, encryption, mem as in_mem};
use skidder_pipeline::{DiskQueueKey, DiskQueueSettings, QueueLimits};
use std::path::{Path, PathBuf};

/// Bytes of a file with a key that are read: more is none.
const KEY_FILE_BYTES_MAX: usize = 4096;

/// The queue of an output.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueueSettings {
    /// `queue.mem`.
    pub(crate) limits: QueueLimits,
    /// `queue.disk`, if that is the queue.
    disk: Option<Disk>,
}

/// `queue.disk`, before it is known where.
#[derive(Clone, Debug)]
struct Disk {
    settings: DiskQueueSettings,
    path: Option<PathBuf>,
    /// The path is the one of all outputs.
    path_is_shared: bool,
}

impl QueueSettings {
    /// Reads a section; missing settings are as in `base`. `shared`: it is at the root.
    pub(crate) fn read(section: Section<'_>, base: &Self, shared: bool, fs: &dyn Fs) -> Self {
        section.declared_by(&QUEUE);
        if section.keys().contains(&ON_DISK.name()) && !section.has_key(&ON_DISK) {
            let message = format!(
                "`{}` is empty; expected a map of settings",
                section.path_of(ON_DISK.name())
            );
            let hint = "give it a `max_size`, for example `10GB`; 0 = as much as there is";
            section.problem(ON_DISK.name(), message, hint);
        }
        let (has_disk, has_mem) = (section.has_key(&ON_DISK), section.has_key(&IN_MEM));
        if has_disk && has_mem {
            let message = "`queue.mem` and `queue.disk` are both there";
            section.problem("disk", message, "an output has one queue: leave one of them out");
        }
        let mut settings = base.clone();
        settings.limits = read_mem(section.part(&IN_MEM), base.limits);
        if has_disk {
            settings.disk = read_disk(section.part(&ON_DISK), shared, fs);
        } else if has_mem {
            settings.disk = None;
        }
        section.finish();
        settings
    }

    /// Whether it is on the disk.
    pub(crate) fn is_on_disk(&self) -> bool {
        self.disk.is_some()
    }

    /// The key of the data on disk.
    #[cfg(test)]
    pub(crate) fn key(&self) -> Option<&DiskQueueKey> {
        self.disk.as_ref().and_then(|disk| disk.settings.key.as_ref())
    }

    /// The queue on the disk of the output at a place, if it has one.
    pub(crate) fn disk(&self, place: &Place, id: Option<&str>) -> Option<DiskQueueSettings> {
        let Disk { settings, path, path_is_shared } = self.disk.clone()?;
        let path = match (path, id) {
            (None, _) => place.data.join(DiskQueueSettings::DIRECTORY),
            // Two outputs never share a queue.
            (Some(path), Some(id)) if path_is_shared && !place.is_main => {
                path.join("outputs").join(id)
            }
            (Some(path), _) => path,
        };
        Some(DiskQueueSettings { path, ..settings })
    }
}

fn read_mem(mem: Section<'_>, base: QueueLimits) -> QueueLimits {
    let mut limits = base;
    limits.events = mem.get(&in_mem::EVENTS).or(base.events);
    limits.bytes = mem.get(&in_mem::BYTES).or(base.bytes as u64) as usize;
    let min_events = mem.get(&in_mem::FLUSH_MIN_EVENTS).or(base.flush_min_events);
    limits.flush_min_events = min_events.min(limits.events);
    limits.flush_timeout = mem.get(&in_mem::FLUSH_TIMEOUT).or(base.flush_timeout);
    mem.finish();
    limits
}

/// Nothing if it is turned off.
fn read_disk(disk: Section<'_>, shared: bool, fs: &dyn Fs) -> Option<Disk> {
    type Settings = DiskQueueSettings;
    let enabled = disk.get(&on_disk::ENABLED).value();
    let max_size = disk.get(&on_disk::MAX_SIZE).value();
    if max_size != 0 && max_size < Settings::MAX_SIZE_MIN {
        let message = format!("`max_size` is {max_size} bytes, at least 10 MB are needed");
        disk.problem("max_size", message, "for example `10GB`; 0 = as much as there is");
    }
    let default = match max_size {
        0 => Settings::SEGMENT_SIZE_UNBOUNDED,
        size => (size / 10).max(Settings::SEGMENT_SIZE_MIN),
    };
    let segment_size = disk.get(&on_disk::SEGMENT_SIZE).or(default);
    if segment_size < Settings::SEGMENT_SIZE_MIN {
        let message = format!("`segment_size` is {segment_size} bytes, at least 1 MB is needed");
        disk.problem("segment_size", message, "leave it out: a tenth of `max_size`");
    } else if max_size >= Settings::MAX_SIZE_MIN && segment_size > max_size / 2 {
        let message = "`segment_size` is more than half of `max_size`";
        disk.problem("segment_size", message, "leave it out: a tenth of `max_size`");
    }
    let retry_interval = disk.get(&on_disk::RETRY_INTERVAL).value();
    let default = Settings::MAX_RETRY_INTERVAL.max(retry_interval);
    let max_retry_interval = disk.get(&on_disk::MAX_RETRY_INTERVAL).or(default);
    if retry_interval.is_zero() {
        disk.problem("retry_interval", "`retry_interval` is 0", "for example `1s`");
    }
    if max_retry_interval < retry_interval {
        let message = "`max_retry_interval` is less than `retry_interval`";
        disk.problem("max_retry_interval", message, "for example `30s`");
    }
    let settings = DiskQueueSettings {
        path: PathBuf::new(),
        max_size,
        segment_size,
        read_ahead: disk.get(&on_disk::READ_AHEAD).value(),
        write_ahead: disk.get(&on_disk::WRITE_AHEAD).value(),
        retry_interval,
        max_retry_interval,
        key: read_key(&disk, fs),
    };
    let path = disk.get(&on_disk::PATH).optional();
    disk.finish();
    enabled.then_some(Disk { settings, path, path_is_shared: shared })
}

/// `encryption`: one of `key` and `key_file`.
fn read_key(disk: &Section<'_>, fs: &dyn Fs) -> Option<DiskQueueKey> {
    let section = disk.optional_part(&on_disk::ENCRYPTED)?;
    if !section.get(&encryption::ENABLED).value() {
        section.off();
        return None;
    }
    let said = section.get(&encryption::KEY).try_map(|text| parse_key(text.reveal())).optional();
    let file = section.get(&encryption::KEY_FILE).try_map(|path| key_of_file(fs, &path)).optional();
    match (section.has_key(&encryption::KEY), section.has_key(&encryption::KEY_FILE)) {
        (true, true) => {
            let message = "`key` and `key_file` are both there";
            section.problem("key_file", message, "leave one of them out");
        }
        (false, false) => {
            let message = "`queue.disk.encryption` has no key";
            disk.problem("encryption", message, "set `key_file` or `key`, or leave it out");
        }
        _ => {}
    }
    section.finish();
    said.or(file)
}

/// The key in a file, in base64.
pub(crate) fn key_of_file(fs: &dyn Fs, path: &Path) -> Result<DiskQueueKey, String> {
    let unreadable =
        |error: std::io::Error| format!("`{}` cannot be read: {error}", path.display());
    let text = read_to_end(&*fs.open(path).map_err(unreadable)?, KEY_FILE_BYTES_MAX)
        .map_err(unreadable)?;
    let text = String::from_utf8(text).unwrap_or_default();
    parse_key(&text).map_err(|error| format!("`{}`: {error}", path.display()))
}

fn parse_key(text: &str) -> Result<DiskQueueKey, String> {
    let bytes = BASE64.decode(text.trim()).ok().and_then(|bytes| bytes.try_into().ok());
    let wanted = "expected 32 random bytes in base64, as of `head -c 32 /dev/urandom | base64`";
    bytes.map(DiskQueueKey::new).ok_or_else(|| wanted.to_owned())
}
