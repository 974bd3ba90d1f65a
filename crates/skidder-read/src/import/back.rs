//! The way back: where the files of our entries are now, and how Filebeat knows them.

use super::files::Files;
use crate::fingerprint::Fingerprint;
use crate::settings::FilestreamSettings;
use skidder_os::Fs;
use skidder_registry::FileEntry;
use skidder_registry::filebeat::{Identity, fingerprint_key};
use std::path::PathBuf;

/// The files of an input, for entries that leave us.
pub struct WayBack<'a> {
    files: Files<'a>,
}

impl<'a> WayBack<'a> {
    /// Looks for the files of an input.
    pub fn new(fs: &'a dyn Fs, input: &'a FilestreamSettings) -> Self {
        Self { files: Files::scan(fs, input) }
    }

    /// The same for entries of no input: only the paths that they name are looked at.
    pub fn at(
        fs: &'a dyn Fs,
        input: &'a FilestreamSettings,
        paths: impl Iterator<Item = PathBuf>,
    ) -> Self {
        let paths: Vec<PathBuf> = paths.collect();
        Self { files: Files::at(fs, input, paths.iter()) }
    }

    /// Corrects the path, device and inode of an entry whose file was renamed in the meantime. `print` is what the
    /// file is known by, if that is its content. `None` if the file is gone.
    pub fn locate(&mut self, entry: &mut FileEntry, print: Option<&Fingerprint>) -> Option<()> {
        let meta = &mut entry.meta;
        let at_path = self.files.with_path(&meta.source);
        let by_inode = self.files.with_inode(meta.device, meta.inode);
        let found = match print {
            Some(print) => {
                let all = 0..self.files.count();
                let mut likely = by_inode.into_iter().chain(at_path).chain(all);
                likely.find(|&file| self.files.is_of_print(file, print))
            }
            None if &*meta.identifier_name == "path" => at_path,
            // Devices are numbered anew at a start of the machine.
            None => by_inode.or_else(|| {
                at_path.filter(|&file| self.files.found(file).metadata.inode == meta.inode)
            }),
        }?;
        let found = self.files.found(found);
        meta.source = found.path.as_path().into();
        (meta.device, meta.inode) = (found.metadata.device, found.metadata.inode);
        Some(())
    }

    /// How Filebeat knows a file that is where its entry says and that we know by `print`; or why it cannot.
    pub fn fingerprint(
        &mut self,
        entry: &FileEntry,
        print: &Fingerprint,
    ) -> Result<Identity, String> {
        let usual = self.files.settings.fingerprint.length;
        if print.len == usual && !print.whole {
            return Ok(Identity::Fingerprint { hex: print.hex(), len: None });
        }
        // Its own kind of hash, or a shorter one than ours, can only be made of the bytes.
        let file = self.files.with_path(&entry.meta.source).ok_or("the file is not there")?;
        let head = self.files.head(file).clone()?;
        if print.len > usual || print.whole {
            return Ok(Identity::Fingerprint {
                hex: Fingerprint::of(&head.bytes).hex(),
                len: None,
            });
        }
        match head.bytes.get(..print.len as usize) {
            Some(seen) if Fingerprint::of(seen) == *print => {
                Ok(Identity::Fingerprint { hex: fingerprint_key(seen), len: Some(print.len) })
            }
            _ => Err("another file is at its path".to_owned()),
        }
    }
}
