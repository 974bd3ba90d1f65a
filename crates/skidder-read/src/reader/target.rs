//! The file that a reader expects at its path.

use super::Reader;
use crate::fingerprint::Fingerprint;
use std::path::Path;
use std::sync::Arc;

/// The identity of the file that a reader expects at its path.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Where to open it.
    pub path: Arc<Path>,
    /// The path that its events carry, if it is another: that of the link it was rotated away from.
    pub shown: Option<Arc<Path>>,
    /// Its device when the scan saw it.
    pub device: u64,
    /// Its inode when the scan saw it.
    pub inode: u64,
    /// Whether it is stored compressed.
    pub compressed: bool,
    /// What its content begins with.
    pub print: Fingerprint,
    /// Which fingerprint its events carry.
    pub shown_print: ShownPrint,
}

/// The fingerprint that events carry.
#[derive(Clone, Debug, PartialEq)]
pub enum ShownPrint {
    /// None: it is growing.
    None,
    /// That of the target.
    OfTarget,
    /// One that was longer by the time the file was looked at again, while it was open.
    Later(Box<Fingerprint>),
}

impl Target {
    /// The complete fingerprint in hexadecimal, for the events; `None` while it is growing.
    pub fn shown_print(&self) -> Option<String> {
        match &self.shown_print {
            ShownPrint::None => None,
            ShownPrint::OfTarget => Some(self.print.hex()),
            ShownPrint::Later(print) => Some(print.hex()),
        }
    }
}

impl Reader {
    /// Events of the open file carry the fingerprint of `target` from now on. If it is of the same file, that must begin
    /// so: it may have been written anew under the few bytes that were known of it before.
    pub(crate) fn show_print(&mut self, target: &Target) {
        if (self.target.device, self.target.inode) == (target.device, target.inode) {
            self.target.print = target.print;
        }
        self.target.shown_print = match &target.shown_print {
            ShownPrint::OfTarget if target.print != self.target.print => {
                ShownPrint::Later(Box::new(target.print))
            }
            other => other.clone(),
        };
        self.rebind();
    }
}
