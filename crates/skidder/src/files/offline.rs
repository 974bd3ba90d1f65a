//! Without a running skidder: what the next start would find.
//!
//! The catalog is the one of a run, over cursors that are only read, and readers that never get
//! a turn. Nothing is locked, written or deleted.

use crate::assemble::Parts;
use crate::outputs::OutputParts;
use crate::registry;
use crate::system::System;
use anyhow::Result;
use serde_json::Value;
use skidder_event::SourceId;
use skidder_input_file::FileInput;
use skidder_observe::file_json;
use skidder_read::{
    BufferPool, Cursors, CursorsError, DecoderPool, FileLook, FileQuery, FileState, InputContext,
    Now, PinSettings, ReadMetrics, Readers, ReadersLimits, SourceIds,
};
use skidder_registry::{Cursor, FileEntry, Meta};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Scans at most, as long as files are compared with each other.
const SCANS_MAX: usize = 100;

/// Files per batch.
const PAGE: usize = 5000;

/// Passes all files to `each`; with `output` only those of it.
pub(super) fn files(
    parts: &Parts,
    paths: &[PathBuf],
    output: Option<&str>,
    system: &System,
    running: bool,
    each: &mut dyn FnMut(&Value),
) -> Result<()> {
    let several = parts.running().count() > 1;
    for of in parts.running().filter(|of| output.is_none() || of.id.as_deref() == output) {
        let id = of.id.as_deref().filter(|_| several);
        files_of(of, id, paths, system, running, each)?;
    }
    Ok(())
}

/// Passes all files of one output to `each`.
fn files_of(
    parts: &OutputParts,
    output: Option<&str>,
    paths: &[PathBuf],
    system: &System,
    running: bool,
    each: &mut dyn FnMut(&Value),
) -> Result<()> {
    let saved = registry::file_entries(&parts.place.registry, system)?.into_iter().collect();
    let cursors = Arc::new(Seen { saved, begun: Mutex::default() });
    let readers =
        Arc::new(Readers::new(ReadersLimits { open_files: 1, decoders: ReadersLimits::DECODERS }));
    let ids = Arc::new(SourceIds::default());
    let buffers = Arc::new(BufferPool::default());
    for input in &parts.inputs {
        let Some(mut settings) = input.files().cloned() else { continue };
        // Looking changes nothing: no file is deleted or linked, and no link of a run is taken away.
        settings.delete = None;
        settings.pin = PinSettings::default();
        let id = settings.id.clone();
        let context = InputContext {
            settings,
            bind: Arc::clone(&input.bind),
            cursors: Arc::clone(&cursors) as Arc<dyn Cursors>,
            fs: Arc::clone(&system.fs),
            metrics: Arc::new(ReadMetrics::default()),
            buffers: Arc::clone(&buffers),
            decoders: DecoderPool::new(1),
            rows_max: 1,
        };
        let mut files = FileInput::new(Arc::new(context), Arc::clone(&readers), Arc::clone(&ids));
        let now = || Now { wall: system.clock.wall(), monotonic: system.clock.monotonic() };
        let mut scans = 1;
        while files.scan(now()).undecided > 0 && scans < SCANS_MAX {
            scans += 1;
        }
        let mut query = FileQuery { after: None, limit: PAGE, paths: paths.to_owned() };
        loop {
            let page = files.page(&query, now());
            for file in &page.files {
                let mut json = file_json(&id, output, file, false);
                if cursors.has_finished(file) {
                    json["state"] = "finished".into();
                    json["reason"] = "finished".into();
                    json["behind"] = 0.into();
                } else if matches!(
                    file.state,
                    FileState::Reading | FileState::Waiting | FileState::Closed
                ) {
                    stopped(&mut json, file.state == FileState::Closed, running);
                }
                each(&json);
            }
            match page.files.last().filter(|_| page.more) {
                Some(last) => query.after = Some(last.path.to_path_buf()),
                None => break,
            }
        }
    }
    Ok(())
}

/// No reader runs here.
fn stopped(file: &mut Value, at_end: bool, running: bool) {
    file["state"] = if running { "unknown" } else { "stopped" }.into();
    file["reason"] = if at_end {
        "at its end".into()
    } else if running {
        "skidder is running; with `http.enabled` it says more".into()
    } else {
        "skidder is not running".into()
    };
}

/// The registry as it was read; nothing changes it.
struct Seen {
    saved: HashMap<String, FileEntry>,
    begun: Mutex<BTreeMap<SourceId, Cursor>>,
}

impl Seen {
    /// Whether a compressed file was read to its end and has not changed since. A run looks at it once more while its
    /// last change is young.
    fn has_finished(&self, file: &FileLook) -> bool {
        let saved = file.key.as_ref().and_then(|key| self.saved.get(key));
        file.compressed
            && matches!(file.state, FileState::Reading | FileState::Waiting | FileState::Closed)
            && saved.is_some_and(|saved| {
                let Cursor { offset, generation, eof, .. } = saved.cursor;
                eof && (offset, generation) == (file.cursor, file.generation)
                    && file.modified <= saved.updated
            })
    }

    fn begun(&self) -> std::sync::MutexGuard<'_, BTreeMap<SourceId, Cursor>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cursors for Seen {
    fn saved(&self, key: &str) -> Result<Option<FileEntry>, CursorsError> {
        Ok(self.saved.get(key).cloned())
    }

    fn checkpoint(&self, _: &str) -> Result<Option<Vec<u8>>, CursorsError> {
        Ok(None)
    }

    fn for_each_saved(&self, each: &mut dyn FnMut(&str, &FileEntry)) -> Result<(), CursorsError> {
        for (key, entry) in &self.saved {
            each(key, entry);
        }
        Ok(())
    }

    fn forget_saved(&self, _: Vec<String>) {}

    fn begin(&self, source: SourceId, _: &Arc<str>, _: Meta, cursor: Cursor, _: bool) {
        self.begun().insert(source, cursor);
    }

    fn update(&self, _: SourceId, _: &Arc<str>, _: Meta) {}

    fn doubt_end(&self, _: SourceId) {}

    fn restart(&self, source: SourceId, generation: u32) {
        self.begun().insert(source, Cursor { generation, ..Cursor::default() });
    }

    fn unsave(&self, _: SourceId) {}

    fn cursor(&self, source: SourceId) -> Option<Cursor> {
        self.begun().get(&source).copied()
    }

    fn is_settled(&self, _: SourceId) -> bool {
        true
    }

    fn remove(&self, source: SourceId) {
        self.begun().remove(&source);
    }
}
