//! Change notification by inotify(7).
//!
//! Only file systems that are known to report every write are watched. A network file system does
//! not report the writes of other machines, and for one made by a program (FUSE) it is unknown.

use crate::{Bell, Notice, Notifier, WatchError, WatchId};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::fs::{CWD, Mode, OFlags, fstatfs, openat};
use rustix::io::{Errno, read, retry_on_intr, write};
use std::ffi::{CStr, OsStr};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of notices fetched by one system call: about 1,000.
const NOTICES_BYTES: usize = 32 * 1024;

/// A longer wait ends early: the system takes no duration beyond its clock.
const WAIT_MAX: Duration = Duration::from_hours(1);

/// The events to report. Reads, opens and closes are left out: they would be most of them.
const WANTED: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::EXCL_UNLINK)
    .union(WatchFlags::ONLYDIR);

const NAMES: ReadFlags = ReadFlags::CREATE
    .union(ReadFlags::DELETE)
    .union(ReadFlags::MOVED_FROM)
    .union(ReadFlags::MOVED_TO);

const GONE: ReadFlags = ReadFlags::DELETE_SELF
    .union(ReadFlags::MOVE_SELF)
    .union(ReadFlags::UNMOUNT)
    .union(ReadFlags::IGNORED);

/// `f_type` of the file systems whose every write passes through this machine's kernel under the name it
/// was opened by (statfs(2), include/uapi/linux/magic.h). Any other is looked at again and again.
const TELLING: [u64; 16] = [
    0xEF53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683E, // btrfs
    0x0102_1994, // tmpfs
    0x8584_58F6, // ramfs
    0x2FC1_2FC1, // ZFS
    0xF2F5_2010, // F2FS
    0xCA45_1A4E, // bcachefs
    0x794C_7630, // overlayfs: what is written through it, as in a container
    0x3153_464A, // JFS
    0x5265_4973, // ReiserFS
    0x3434,      // NILFS
    0x4D44,      // FAT
    0x2011_BAB0, // exFAT
    0x7366_746E, // NTFS3
    0x2405_1905, // UBIFS
];

/// An inotify instance. Dropping it ends all its watches.
pub(super) struct Inotify {
    descriptor: OwnedFd,
    bell: Arc<EventBell>,
    buffer: Vec<MaybeUninit<u8>>,
}

struct EventBell(OwnedFd);

impl Bell for EventBell {
    fn ring(&self) {
        // It fails only after 2^64 rings without a reader; then it rings anyway.
        if let Err(error) = write(&self.0, &1_u64.to_ne_bytes()) {
            debug_assert_eq!(error, Errno::AGAIN, "an eventfd takes eight bytes");
        }
    }
}

impl Inotify {
    pub(super) fn new() -> io::Result<Self> {
        let descriptor = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let buffer = vec![MaybeUninit::uninit(); NOTICES_BYTES];
        Ok(Self { descriptor, bell: Arc::new(EventBell(bell)), buffer })
    }
}

impl Notifier for Inotify {
    fn watch(&mut self, directory: &Path) -> Result<WatchId, WatchError> {
        let how = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = retry_on_intr(|| openat(CWD, directory, how, Mode::empty()));
        let opened = opened.map_err(io::Error::from)?;
        let kind = fstatfs(&opened).map_err(io::Error::from)?.f_type as u64;
        if !TELLING.contains(&(kind & 0xFFFF_FFFF)) {
            return Err(WatchError::Blind { kind });
        }
        // Through the descriptor: the path may lead elsewhere by now.
        let path = format!("/proc/self/fd/{}", opened.as_raw_fd());
        let added = match inotify::add_watch(&self.descriptor, &*path, WANTED) {
            Err(Errno::NOENT) => inotify::add_watch(&self.descriptor, directory, WANTED),
            other => other,
        };
        match added {
            Ok(watch) => Ok(WatchId(watch)),
            Err(Errno::NOSPC | Errno::NOMEM) => Err(WatchError::Limit),
            Err(error) => Err(WatchError::Io(error.into())),
        }
    }

    fn unwatch(&mut self, watch: WatchId) {
        if let Err(error) = inotify::remove_watch(&self.descriptor, watch.0) {
            // It has ended by itself.
            debug_assert_eq!(error, Errno::INVAL, "the descriptor is an inotify instance");
        }
    }

    fn take(&mut self, each: &mut dyn FnMut(Notice<'_>)) {
        let mut notices = Reader::new(&self.descriptor, &mut self.buffer);
        loop {
            let notice = match notices.next() {
                Ok(notice) => notice,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return,
                // Whatever it is, the directories must be listed.
                Err(_) => return each(Notice::Lost),
            };
            let (watch, what) = (WatchId(notice.wd()), notice.events());
            let name = OsStr::from_bytes(notice.file_name().map_or(&b""[..], CStr::to_bytes));
            if what.contains(ReadFlags::QUEUE_OVERFLOW) {
                each(Notice::Lost);
            } else if what.intersects(GONE) {
                each(Notice::Gone { watch });
            } else if name.is_empty() {
                // The directory's own permissions or times.
            } else if what.intersects(NAMES) {
                let directory = what.contains(ReadFlags::ISDIR);
                each(Notice::Name { watch, name, directory });
            } else {
                each(Notice::Content { watch, name });
            }
        }
    }

    fn wait(&mut self, limit: Duration) {
        let mut sources = [
            PollFd::new(&self.descriptor, PollFlags::IN),
            PollFd::new(&self.bell.0, PollFlags::IN),
        ];
        let limit = limit.min(WAIT_MAX);
        let limit =
            Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() };
        // An interrupted wait returns early, which it may.
        let ready = poll(&mut sources, Some(&limit));
        if ready.is_ok() && sources[1].revents().contains(PollFlags::IN) {
            let rung = read(&self.bell.0, &mut [0; 8]);
            debug_assert!(rung.is_ok(), "the bell was ringing, and only this thread reads it");
        }
    }

    fn bell(&self) -> Arc<dyn Bell> {
        Arc::clone(&self.bell) as Arc<dyn Bell>
    }
}

#[cfg(test)]
mod tests;
