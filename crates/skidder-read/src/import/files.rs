//! The files of an input, found by what Filebeat knew of them.

use crate::catalog::is_related;
use crate::compare::{Side, fingerprint_of};
use crate::fingerprint::{Fingerprint, Head, read_head};
use crate::identity::{FileIdentity, Marker};
use crate::scan::{Found, scan};
use crate::settings::FilestreamSettings;
use skidder_decode::DecoderPool;
use skidder_os::{File, FileKind, Fs, open_same};
use skidder_registry::Meta;
use skidder_registry::filebeat::{FilebeatEntry, Identity, fingerprint_key};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Decoders kept for reuse.
const DECODERS_IDLE_MAX: usize = 1;

/// The files that are there, with their beginnings as far as they were read.
pub(super) struct Files<'a> {
    pub(super) fs: &'a dyn Fs,
    pub(super) settings: &'a FilestreamSettings,
    pub(super) decoders: DecoderPool,
    pub(super) scratch: Vec<u8>,
    found: Vec<Found>,
    heads: HashMap<usize, Result<Head, String>>,
    by_path: HashMap<String, usize>,
    by_inode: HashMap<(u64, u64), usize>,
    marker: Marker,
    /// Complete fingerprints of all files, made when the first one is looked for.
    by_print: Option<HashMap<String, usize>>,
}

/// The result of looking for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Matched {
    /// It is this one.
    File {
        /// Its number.
        file: usize,
        /// All but the number of its device is the same.
        other_device: bool,
    },
    /// The file at its path does not begin with what was seen of it.
    Other,
    /// Another file is at its path, and nowhere is one with its inode.
    Replaced,
    /// A file with its inode is at a path that has nothing to do with it.
    Elsewhere,
    /// Unknown, with such an identity.
    Foreign,
    /// Nothing is there.
    Nothing,
}

impl<'a> Files<'a> {
    /// All files that an input reads.
    pub(super) fn scan(fs: &'a dyn Fs, settings: &'a FilestreamSettings) -> Self {
        let (mut found, problems) = scan(fs, &settings.scan);
        for problem in problems {
            tracing::warn!(path = %problem.path.display(), error = %problem.error,
                "cannot list a directory");
        }
        found.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        Self::new(fs, settings, found)
    }

    /// Those of these paths that are files.
    pub(super) fn at<'p>(
        fs: &'a dyn Fs,
        settings: &'a FilestreamSettings,
        paths: impl Iterator<Item = &'p PathBuf>,
    ) -> Self {
        let mut found = Vec::new();
        for path in paths {
            match fs.metadata(path) {
                Ok(metadata) if metadata.kind == FileKind::Regular => {
                    found.push(Found { path: path.clone(), metadata });
                }
                _ => {}
            }
        }
        found.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        found.dedup_by(|one, other| one.path == other.path);
        Self::new(fs, settings, found)
    }

    fn new(fs: &'a dyn Fs, settings: &'a FilestreamSettings, found: Vec<Found>) -> Self {
        let (mut by_path, mut by_inode) = (HashMap::new(), HashMap::new());
        for (at, Found { path, metadata }) in found.iter().enumerate() {
            // Filebeat's paths are text.
            by_path.insert(path.to_string_lossy().into_owned(), at);
            by_inode.entry((metadata.device, metadata.inode)).or_insert(at);
        }
        let mut marker = Marker::default();
        marker.refresh(fs, &settings.identity);
        Self {
            fs,
            settings,
            marker,
            decoders: DecoderPool::new(DECODERS_IDLE_MAX),
            scratch: vec![0; 64 << 10],
            found,
            heads: HashMap::new(),
            by_path,
            by_inode,
            by_print: None,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.found.len()
    }

    pub(super) fn with_path(&self, path: &Path) -> Option<usize> {
        self.by_path.get(&*path.to_string_lossy()).copied()
    }

    pub(super) fn with_inode(&self, device: u64, inode: u64) -> Option<usize> {
        self.by_inode.get(&(device, inode)).copied()
    }

    /// Whether a file may be the one that our registry knows by this fingerprint.
    pub(super) fn is_of_print(&mut self, file: usize, print: &Fingerprint) -> bool {
        let offset = self.settings.fingerprint.offset;
        let Ok(head) = self.head(file) else { return false };
        if head.matches(print) {
            return true;
        }
        let is_longer = print.whole || print.len as usize > head.bytes.len();
        let compressed = head.compressed;
        is_longer
            && self.open(file).is_ok_and(|open| {
                let side = Side::new(open, compressed, &self.decoders);
                let offset = if print.whole { 0 } else { offset };
                let found = fingerprint_of(side, offset, print.len, &mut self.scratch);
                found.is_ok_and(|found| found.is_some_and(|found| found.hash == print.hash))
            })
    }

    pub(super) fn found(&self, file: usize) -> &Found {
        &self.found[file]
    }

    /// What names a file, where `file_identity` needs a name.
    pub(super) fn name(&self, file: usize) -> Option<String> {
        let Found { path, metadata } = &self.found[file];
        let marker = match &self.settings.identity {
            FileIdentity::InodeMarker(_) => self.marker.text()?,
            _ => "",
        };
        self.settings.identity.name_of(path, metadata, marker)
    }

    /// Our registry's entry for a file; `print` if it is known by that.
    pub(super) fn meta(&self, file: usize, print: Option<Fingerprint>) -> Meta {
        let Found { path, metadata } = &self.found[file];
        let usual = self.settings.fingerprint.length;
        Meta {
            source: Arc::from(path.as_path()),
            identifier_name: Arc::from(self.settings.identity.name()),
            fingerprint_len: print.filter(|print| print.len != usual).map(|print| print.len),
            device: metadata.device,
            inode: metadata.inode,
        }
    }

    /// The beginning of a file.
    pub(super) fn head(&mut self, file: usize) -> &Result<Head, String> {
        if !self.heads.contains_key(&file) {
            let head = self.read_head(file);
            self.heads.insert(file, head.map_err(|error| error.to_string()));
        }
        &self.heads[&file]
    }

    /// Opens a file, if it is the one that was found.
    pub(super) fn open(&self, file: usize) -> io::Result<Box<dyn File>> {
        let Found { path, metadata } = &self.found[file];
        open_same(self.fs, path, metadata.id())
    }

    fn read_head(&mut self, file: usize) -> io::Result<Head> {
        let file = self.open(file)?;
        let FilestreamSettings { compression, fingerprint, .. } = self.settings;
        let length = fingerprint.length as usize;
        read_head(&*file, *compression, fingerprint, length, &self.decoders, &mut self.scratch)
            .map_err(io::Error::other)
    }

    /// The file that an entry is of.
    pub(super) fn find(&mut self, entry: &FilebeatEntry) -> Matched {
        let at_path = self.with_path(&entry.source);
        let found = match &entry.identity {
            Identity::Path(path) => self.by_path.get(path).copied(),
            Identity::Native { inode, device } => {
                if let Some(file) = self.with_inode(*device, *inode) {
                    // Inodes are used again. Filebeat notes a rename, so that one it did not see is rare.
                    let path = &self.found[file].path;
                    if at_path == Some(file) || is_related(&entry.source, path) {
                        return Matched::File { file, other_device: false };
                    }
                    return Matched::Elsewhere;
                }
                // Devices are numbered anew at a start of the machine.
                let same = at_path.filter(|&file| self.found[file].metadata.inode == *inode);
                if let Some(file) = same {
                    return Matched::File { file, other_device: true };
                }
                None
            }
            Identity::InodeMarker { inode, .. } => {
                at_path.filter(|&file| self.found[file].metadata.inode == *inode)
            }
            Identity::Fingerprint { hex, len: None } => match at_path {
                Some(file) if self.has_print(file, hex) => Some(file),
                _ => self.with_print(hex),
            },
            Identity::Fingerprint { hex, len: Some(len) } => {
                at_path.filter(|&file| self.begins_with(file, hex, *len))
            }
            Identity::Other { .. } => return Matched::Foreign,
        };
        let by_inode =
            matches!(entry.identity, Identity::Native { .. } | Identity::InodeMarker { .. });
        match (found, at_path) {
            (Some(file), _) => Matched::File { file, other_device: false },
            (None, Some(_)) if by_inode => Matched::Replaced,
            (None, Some(_)) => Matched::Other,
            (None, None) => Matched::Nothing,
        }
    }

    /// The file that an entry of a short file is of, if it has another name now. The few bytes that are known of it
    /// may be those of many files, so its name must be that of a rotated one, or (as Filebeat has it) all of it is as
    /// it was, or it has grown to a whole fingerprint and nothing is at its path. Only if there is just one.
    pub(super) fn find_moved(
        &mut self,
        entry: &FilebeatEntry,
        is_free: &dyn Fn(&usize) -> bool,
    ) -> Option<usize> {
        let Identity::Fingerprint { hex, len: Some(len) } = &entry.identity else { return None };
        let usual = self.settings.fingerprint.length as usize;
        let is_gone = self.fs.metadata(&entry.source).is_err();
        let mut found = None;
        for file in (0..self.found.len()).filter(is_free) {
            let path = self.found[file].path.clone();
            if path == entry.source || !self.begins_with(file, hex, *len) {
                continue;
            }
            let bytes = self.head(file).as_ref().map_or(0, |head| head.bytes.len());
            let is_it = is_related(&entry.source, &path)
                || bytes == *len as usize
                || (is_gone && bytes >= usual);
            if is_it && found.replace(file).is_some() {
                return None;
            }
        }
        found
    }

    fn has_print(&mut self, file: usize, hex: &str) -> bool {
        let usual = self.settings.fingerprint.length as usize;
        let head = self.head(file).as_ref();
        head.is_ok_and(|head| {
            head.bytes.len() == usual && Fingerprint::of(&head.bytes).hex() == hex
        })
    }

    fn with_print(&mut self, hex: &str) -> Option<usize> {
        if self.by_print.is_none() {
            let usual = self.settings.fingerprint.length as usize;
            let mut prints = HashMap::new();
            for file in 0..self.found.len() {
                if let Ok(head) = self.head(file)
                    && head.bytes.len() == usual
                {
                    prints.entry(Fingerprint::of(&head.bytes).hex()).or_insert(file);
                }
            }
            self.by_print = Some(prints);
        }
        self.by_print.as_ref().and_then(|prints| prints.get(hex).copied())
    }

    /// Whether a file begins with what an entry of a short file saw of it.
    fn begins_with(&mut self, file: usize, hex: &str, len: u32) -> bool {
        let head = self.head(file);
        let seen = head.as_ref().ok().and_then(|head| head.bytes.get(..len as usize));
        seen.is_some_and(|seen| fingerprint_key(seen) == hex)
    }
}
