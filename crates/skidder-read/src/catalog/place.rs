//! What the last scan saw at a path, beside what is seen now.

use super::{Content, Place};
use skidder_event::SourceId;
use skidder_os::{FileKind, Metadata};

impl Place {
    /// Whether nothing tells that the file has changed since the last look.
    pub(super) fn is_as_seen(&self, now: &Metadata) -> bool {
        (self.device, self.inode, self.size, self.modified)
            == (now.device, now.inode, now.size, now.modified)
    }

    /// Whether only the time of the last change is another.
    pub(super) fn is_touched(&self, now: &Metadata) -> bool {
        (self.device, self.inode, self.size) == (now.device, now.inode, now.size)
            && self.modified != now.modified
    }

    /// The source that a file was found to be a copy of, if it did not change since.
    pub(super) fn duplicate_of(&self, now: &Metadata) -> Option<SourceId> {
        match &self.content {
            Content::Duplicate(duplicate)
                if self.is_as_seen(now) && !self.recheck && duplicate.comparison.is_none() =>
            {
                Some(duplicate.of)
            }
            _ => None,
        }
    }

    /// As much of the metadata as is remembered.
    pub(super) fn metadata(&self) -> Metadata {
        Metadata {
            kind: FileKind::Regular,
            size: self.size,
            modified: self.modified,
            device: self.device,
            inode: self.inode,
            links: 1,
            mode: 0,
            uid: 0,
            gid: 0,
        }
    }
}
