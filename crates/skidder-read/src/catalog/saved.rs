//! What the registry knows from an earlier run.

use super::matching::is_related;
use super::{Candidate, Catalog};
use crate::compare::{Side, fingerprint_of};
use crate::fingerprint::Fingerprint;
use skidder_event::Tail;
use skidder_registry::Cursor;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

pub(super) struct SavedPrint {
    fingerprint: Fingerprint,
    key: String,
    path: PathBuf,
}

impl Catalog {
    /// Remembers saved entries that cannot be found by the usual key.
    pub(super) fn load_saved(&mut self) {
        let prefix = self.input.settings.key_prefix();
        let mut saved = Vec::new();
        let loaded = self.input.cursors.for_each_saved(&mut |key, entry| {
            if let Some(len) = entry.meta.fingerprint_len
                && let Some(hex) = key.strip_prefix(&prefix)
                && let Some(fingerprint) = Fingerprint::from_hex(hex, len)
            {
                let path = entry.meta.source.clone();
                saved.push(SavedPrint { fingerprint, key: key.to_owned(), path });
            }
        });
        if let Err(error) = loaded {
            tracing::error!(%error, "files that were short when they were saved are read from the start");
        }
        self.saved = saved;
    }

    /// The key under which a file was saved, and its cursor if it still proves right.
    pub(super) fn saved_state(
        &mut self,
        candidate: &Candidate,
        fingerprint: &Fingerprint,
        prefix: &str,
    ) -> Result<(Option<String>, Option<Cursor>), crate::cursors::CursorsError> {
        let mut key = format!("{prefix}{}", fingerprint.hex());
        let odd = self.saved_print(candidate);
        if let Some(at) = odd {
            key = self.saved.swap_remove(at).key;
        }
        let Some(entry) = self.input.cursors.saved(&key)? else { return Ok((None, None)) };
        let mut cursor = entry.cursor;
        let meta = &candidate.found.metadata;
        let same_file = (entry.meta.device, entry.meta.inode) == (meta.device, meta.inode);
        let short = entry
            .meta
            .fingerprint_len
            .is_some_and(|len| len < self.input.settings.fingerprint.length);
        if short && !same_file && !is_related(&entry.meta.source, &candidate.path) {
            // Another file with the same few bytes.
            let generation = cursor.generation + 1;
            let cursor = Cursor { generation, ..Cursor::default() };
            return Ok((Some(key), Some(cursor)));
        }
        let size = candidate.found.metadata.size;
        let tail = cursor.tail.map(|tail| Tail { len: tail.len, crc: tail.crc });
        if !candidate.head.compressed && !self.tail_fits(&candidate.path, size, cursor.offset, tail)
        {
            tracing::info!(path = %candidate.path.display(), read = cursor.offset, size,
                "a file was truncated or rewritten while skidder was not running; reading it from \
                 the start");
            cursor =
                Cursor { offset: 0, generation: cursor.generation + 1, eof: false, tail: None };
        }
        // A cursor at the verified end of a compressed file says nothing about a plain one, and a file
        // that was found compressed only now must be looked at to its end once.
        cursor.eof &= candidate.head.compressed && same_file;
        Ok((Some(key), Some(cursor)))
    }

    /// The saved entry with an unusual fingerprint that fits, the longest one.
    pub(super) fn saved_print(&mut self, candidate: &Candidate) -> Option<usize> {
        let mut best: Option<(u32, usize)> = None;
        // Prefixes of the beginning are hashed once for each length.
        let mut hashes: HashMap<u32, Option<Fingerprint>> = HashMap::new();
        for at in 0..self.saved.len() {
            let print = self.saved[at].fingerprint;
            let same_path = self.saved[at].path == *candidate.path;
            let short = print.len as usize <= candidate.head.bytes.len();
            let usual = self.input.settings.fingerprint.length;
            if print.len < usual && !same_path && !is_related(&self.saved[at].path, &candidate.path)
            {
                continue;
            }
            let of_file = match hashes.get(&print.len) {
                Some(hash) => *hash,
                None => {
                    let hash = if short {
                        let len = print.len as usize;
                        Some(Fingerprint::of(&candidate.head.bytes[..len]))
                    } else {
                        self.print_of(&candidate.path, candidate.head.compressed, print.len)
                            .ok()
                            .flatten()
                    };
                    hashes.insert(print.len, hash);
                    hash
                }
            };
            if of_file == Some(print) && best.is_none_or(|(len, _)| print.len > len) {
                best = Some((print.len, at));
            }
        }
        best.map(|(_, at)| at)
    }

    pub(super) fn print_of(
        &mut self,
        path: &Path,
        compressed: bool,
        len: u32,
    ) -> io::Result<Option<Fingerprint>> {
        let file = self.input.fs.open(path)?;
        let side = Side::new(file, compressed, &self.input.inflates);
        fingerprint_of(side, self.input.settings.fingerprint.offset, len, &mut self.scratch)
    }
}
