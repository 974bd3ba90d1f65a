//! Where the state of each output is.
//!
//! One output has what a single one of `output` has: `registry/filebeat`, and dead letters and pins directly in the
//! data directory. The first configuration with a list gives it to the first output, so that a change from `output`
//! to `outputs` continues there; then its id is stored, so that another order of the list does not
//! mix up cursors. All others have directories named by their ids.
//!
//! ```text
//! path.data/registry/filebeat/               registry of the holder
//! path.data/registry/filebeat-outputs/.holder   the id of the holder, and a line feed
//! path.data/registry/filebeat-outputs/ID/    registry of another output
//! path.data/outputs/ID/                      its dead letters, pins and caches
//! ```

use crate::agent::BEAT;
use anyhow::{Context as _, Result, bail};
use skidder_os::{Fs, OpenMode, read_to_end, write_all_at};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// The file with the id of the output that has the registry of a single one. No id begins with a dot.
const HOLDER_FILE: &str = ".holder";

/// Far above the longest id.
const HOLDER_BYTES_MAX: usize = 4096;

/// Permissions of directories that are created here: for their owner only.
const DIRECTORY_MODE: u32 = 0o700;

/// Where the state of one output is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The directory of its registry.
    pub(crate) registry: PathBuf,
    /// The directory of everything else.
    pub(crate) data: PathBuf,
    /// Whether this is where a single output has its state.
    pub(crate) is_main: bool,
}

/// Where the state of all outputs is.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    data: PathBuf,
    /// `filebeat.registry.path`.
    registries: PathBuf,
    holder: Option<String>,
}

impl Places {
    /// Looks which output has the state of a single one.
    pub(crate) fn find(fs: &dyn Fs, data: &Path, registries: PathBuf) -> Result<Self> {
        let mut places = Self { data: data.to_path_buf(), registries, holder: None };
        let path = places.holder_file();
        let text = match fs.open(&path) {
            Ok(file) => read_to_end(&*file, HOLDER_BYTES_MAX),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(places),
            Err(error) => Err(error),
        };
        let text = text.with_context(|| format!("cannot read `{}`", path.display()))?;
        let id = String::from_utf8_lossy(&text).trim_end().to_owned();
        if id.is_empty() {
            bail!("`{}` does not say whose registry `{BEAT}` is", path.display());
        }
        places.holder = Some(id);
        Ok(places)
    }

    /// The place of an output; nothing for its id is the one of `output`. `ids` are all of the list.
    pub(crate) fn of(&self, id: Option<&str>, ids: &[String]) -> Place {
        let holder = self.holder.as_ref().or(ids.first());
        match id {
            Some(id) if holder.is_none_or(|holder| holder != id) => Place {
                registry: self.others().join(id),
                data: self.data.join("outputs").join(id),
                is_main: false,
            },
            _ => Place {
                registry: self.registries.join(BEAT),
                data: self.data.clone(),
                is_main: true,
            },
        }
    }

    /// Writes down, durably, which output has the state of a single one, and makes the directories of the others.
    /// Says which outputs have state here and are not in the list.
    pub(crate) fn claim(&mut self, fs: &dyn Fs, ids: &[String]) -> Result<Vec<String>> {
        let Some(first) = ids.first() else { return Ok(Vec::new()) };
        self.claim_for(fs, first, ids)
            .with_context(|| format!("cannot make room for outputs in `{}`", self.data.display()))
    }

    fn claim_for(&mut self, fs: &dyn Fs, first: &str, ids: &[String]) -> io::Result<Vec<String>> {
        make_dir(fs, &self.registries)?;
        make_dir(fs, &self.others())?;
        make_dir(fs, &self.data.join("outputs"))?;
        if self.holder.is_none() {
            let (path, unfinished) = (self.holder_file(), self.others().join(".holder.tmp"));
            let file = fs.open_write(&unfinished, OpenMode::Truncate, 0o600)?;
            write_all_at(&*file, format!("{first}\n").as_bytes(), 0)?;
            file.sync()?;
            fs.rename(&unfinished, &path)?;
            fs.sync_dir(&self.others())?;
            self.holder = Some(first.to_owned());
        }
        for id in ids {
            let place = self.of(Some(id), ids);
            if !place.is_main {
                make_dir(fs, &place.data)?;
            }
        }
        let mut unlisted = self.with_state(fs)?;
        unlisted.retain(|id| !ids.contains(id));
        Ok(unlisted)
    }

    /// The ids of outputs that have a registry here, in order.
    pub(crate) fn with_state(&self, fs: &dyn Fs) -> io::Result<Vec<String>> {
        let mut ids: BTreeSet<String> = self.holder.iter().cloned().collect();
        let listed = fs.read_dir(&self.others(), &mut |entry| {
            let name = entry.name.to_string_lossy();
            if !name.starts_with('.') {
                ids.insert(name.into_owned());
            }
        });
        match listed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(ids.into_iter().collect()),
        }
    }

    fn others(&self) -> PathBuf {
        self.registries.join(format!("{BEAT}-outputs"))
    }

    fn holder_file(&self) -> PathBuf {
        self.others().join(HOLDER_FILE)
    }
}

/// Makes a directory whose name survives a power cut.
fn make_dir(fs: &dyn Fs, path: &Path) -> io::Result<()> {
    fs.create_dir_all(path, DIRECTORY_MODE)?;
    path.parent().map_or(Ok(()), |parent| fs.sync_dir(parent))
}
