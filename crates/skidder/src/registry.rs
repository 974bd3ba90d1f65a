//! `skidder registry`: shows and changes the state of files. Showing works while skidder is running,
//! changing does not.

mod export;
pub(crate) mod import;

use crate::agent;
use crate::assemble::registries_directory;
use crate::cli::{Global, RegistryCommand};
use crate::load::load_settings;
use crate::logging;
use crate::outputs::{Place, Places, quoted};
use crate::plain::{plain, shown};
use crate::system::System;
use crate::table::{or_dash, short, table};
use crate::terminal::{eprint, print};
use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use skidder_config::Problems;
use skidder_event::{Precision, TimeText};
use skidder_os::{File, Fs, Timestamp};
use skidder_read::Fingerprint;
use skidder_registry::{
    Change, Entry, FileEntry, Inspected, Opened, Options, Origin, Registry, SourceAbout,
    SourceEntry, filebeat, inspect, is_there,
};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use tracing::Level;

/// Runs the subcommand.
pub(crate) fn dispatch(
    what: &RegistryCommand,
    global: &Global,
    system: &System,
) -> Result<ExitCode> {
    // Damage is reported on stderr, as everywhere.
    logging::start(if global.debug.is_some() { Level::DEBUG } else { Level::WARN });
    match what {
        RegistryCommand::List { output, json } => {
            list(*json, output.as_deref(), &Site::of(global, system)?, system)
        }
        RegistryCommand::Show { wanted, output, json } => {
            show(wanted, *json, output.as_deref(), &Site::of(global, system)?, system)
        }
        RegistryCommand::Forget { wanted, output, dry_run } => {
            forget(wanted, *dry_run, output.as_deref(), &Site::of(global, system)?, system)
        }
        RegistryCommand::Import(options) => import::import(options, global, system),
        RegistryCommand::Export(options) => export::export(options, global, system),
    }
}

/// Refuses to start from scratch in silence where Filebeat has left its state.
pub(crate) fn refuse_unadopted(system: &System, registry: &Path) -> Result<()> {
    let fs = &*system.fs;
    let look = |result: std::io::Result<bool>| {
        result.with_context(|| format!("cannot look into `{}`", registry.display()))
    };
    if look(is_there(fs, registry))? || !look(filebeat::holds_registry(fs, registry))? {
        return Ok(());
    }
    bail!(
        "`{}` holds the registry of Filebeat, which was not taken over; without it all files would be \
         read from the start\nhint: `skidder registry import` takes it over, and shows with `--dry-run` \
         what it would do; to begin anew, use another directory with `--path.data`",
        registry.display()
    )
}

/// Where state is kept.
pub(crate) struct Site {
    data: PathBuf,
    places: Places,
    /// Of the outputs; none if there is only `output`.
    ids: Vec<String>,
}

/// The state of one output.
pub(crate) struct Store {
    /// The id of the output, if there are several.
    pub(crate) output: Option<String>,
    /// Where its registry is.
    registry: PathBuf,
    /// Where its dead letters are.
    pub(crate) data: PathBuf,
}

impl Store {
    fn new(output: Option<String>, place: Place) -> Self {
        Self { output, registry: place.registry, data: place.data }
    }
}

impl Site {
    /// As configured.
    pub(crate) fn of(global: &Global, system: &System) -> Result<Self> {
        let settings = load_settings(global, system)?;
        let problems = Problems::new();
        let data = settings.paths().data.clone();
        let root = settings.root(&problems);
        let beat = root.section("filebeat");
        let section = beat.part(&crate::root_settings::IN_REGISTRY);
        let registries = registries_directory(&data, &section);
        let mut ids = Vec::new();
        for output in root.parts(&crate::outputs::OUTPUTS) {
            ids.extend(output.get(&crate::outputs::ID).optional());
            output.skip();
        }
        // The other settings are for `run`.
        section.skip();
        beat.skip();
        root.skip();
        if problems.has_errors() {
            bail!("{problems}");
        }
        let places = Places::find(&*system.fs, &data, registries)?;
        Ok(Self { data, places, ids })
    }

    /// The state of all outputs, or of one: one that is configured, or of which something is left.
    pub(crate) fn stores(&self, wanted: Option<&str>, system: &System) -> Result<Vec<Store>> {
        let store = |id: &String| Store::new(Some(id.clone()), self.places.of(Some(id), &self.ids));
        let Some(wanted) = wanted else {
            if self.ids.is_empty() {
                return Ok(vec![Store::new(None, self.places.of(None, &self.ids))]);
            }
            return Ok(self.ids.iter().map(store).collect());
        };
        let mut known = self.places.with_state(&*system.fs)?;
        known.extend(self.ids.iter().filter(|id| !known.contains(id)).cloned().collect::<Vec<_>>());
        match known.iter().find(|id| *id == wanted) {
            Some(id) => Ok(vec![store(id)]),
            None if known.is_empty() => {
                bail!("there is no output `{wanted}`: the configuration has no list of `outputs`")
            }
            None => bail!("there is no output `{wanted}`; there is {}", quoted(&known)),
        }
    }

    /// The selected one.
    pub(crate) fn store(&self, wanted: Option<&str>, system: &System) -> Result<Store> {
        let mut stores = self.stores(wanted, system)?;
        if stores.len() > 1 {
            let ids = quoted(&self.ids);
            bail!("there are several outputs ({ids}); choose one with `--output ID`");
        }
        stores.pop().context("there is no output")
    }

    /// Keeps everybody else out of the directory. Only if it is there.
    pub(crate) fn lock(&self, system: &System) -> Result<Option<Box<dyn File>>> {
        match system.fs.metadata(&self.data) {
            Ok(_) => agent::lock_data(&*system.fs, &self.data).map(Some),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => {
                Err(error).with_context(|| format!("cannot look into `{}`", self.data.display()))
            }
        }
    }
}

/// All entries; reports where they come from if that is not the store.
pub(crate) fn entries(registry: &Path, system: &System) -> Result<Vec<(String, Entry)>> {
    Ok(read_entries(registry, system)?.0)
}

/// The same, and whether all of them could be read.
fn read_entries(registry: &Path, system: &System) -> Result<(Vec<(String, Entry)>, bool)> {
    let Some(Inspected { entries, origin, incomplete }) =
        inspect(&system.fs, &system.clock, registry)?
    else {
        return Ok((Vec::new(), true));
    };
    if let Origin::Snapshot { written } = origin {
        eprint(&format!(
            "warning: the store cannot be read; this is its snapshot of {}, and cursors may be further\n",
            time(written)
        ));
    }
    if incomplete {
        eprint("warning: some entries are damaged and left out\n");
    }
    Ok((entries, !incomplete))
}

/// The entries of files.
pub(crate) fn file_entries(registry: &Path, system: &System) -> Result<Vec<(String, FileEntry)>> {
    Ok(files_of(entries(registry, system)?))
}

/// Entries of files, without those of objects of a store, which only we know.
fn files_of(entries: Vec<(String, Entry)>) -> Vec<(String, FileEntry)> {
    let of_file = |(key, entry): (String, Entry)| Some((key, entry.into_file()?));
    let all = entries.into_iter().filter_map(of_file);
    all.filter(|(key, entry)| value_of_file(key, entry).is_some()).collect()
}

fn list(as_json: bool, output: Option<&str>, site: &Site, system: &System) -> Result<ExitCode> {
    let mut documents: Vec<Value> = Vec::new();
    let mut complete = true;
    for Store { output, registry, .. } in site.stores(output, system)? {
        let (entries, all) = read_entries(&registry, system)?;
        complete &= all;
        if as_json {
            let entry = |(key, entry): &(String, Entry)| entry_json(key, entry, output.as_deref());
            documents.extend(entries.iter().map(entry));
            continue;
        }
        if let Some(id) = output {
            print(&format!("output `{id}`\n"))?;
        }
        let rows: Vec<[String; 6]> =
            entries.iter().map(|(key, entry)| row_of(key, entry)).collect();
        print(&table(["SOURCE", "INPUT", "IDENTITY", "GENERATION", "CURSOR", "UPDATED"], &rows))?;
        print(&format!("{} entries in {}\n", rows.len(), registry.display()))?;
    }
    if as_json {
        print(&format!("{:#}\n", json!({"entries": documents})))?;
    }
    Ok(if complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn row_of(key: &str, entry: &Entry) -> [String; 6] {
    let entry = match entry {
        Entry::File(entry) => entry,
        Entry::Source(SourceEntry { cursor, about, updated }) => {
            let dash = || "-".to_owned();
            let cursor = short(&cursor.text);
            return [
                about.name.to_string(),
                source_input(key, about),
                about.input.to_string(),
                dash(),
                cursor,
                time(*updated),
            ];
        }
    };
    let (owner, value) = key_parts(key, entry);
    let cursor = entry.cursor;
    let state = if cursor.eof { " finished" } else { "" };
    [
        entry.meta.source.display().to_string(),
        owner,
        format!("{} {}", entry.meta.identifier_name, short(&value)),
        cursor.generation.to_string(),
        format!("{}{state}", cursor.offset),
        time(entry.updated),
    ]
}

fn show(
    wanted: &str,
    as_json: bool,
    output: Option<&str>,
    site: &Site,
    system: &System,
) -> Result<ExitCode> {
    let mut found = Vec::new();
    for Store { output, registry, .. } in site.stores(output, system)? {
        let entries = entries(&registry, system)?;
        for (key, entry) in matching(&entries, wanted, system) {
            found.push((output.clone(), key.clone(), entry.clone()));
        }
    }
    if found.is_empty() {
        let wanted = plain(wanted);
        bail!("the registry has no entry `{wanted}`, neither as a key nor as a path");
    }
    if as_json {
        let found: Vec<Value> = found
            .iter()
            .map(|(output, key, entry)| entry_json(key, entry, output.as_deref()))
            .collect();
        print(&format!("{:#}\n", json!({"entries": found})))?;
        return Ok(ExitCode::SUCCESS);
    }
    for (output, key, entry) in &found {
        show_entry(output.as_deref(), key, entry, system)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show_entry(output: Option<&str>, key: &str, entry: &Entry, system: &System) -> Result<()> {
    let mut rows = match entry {
        Entry::File(file) => file_rows(file, system),
        Entry::Source(source) => source_rows(key, source),
    };
    if let Some(output) = output {
        rows.insert(0, ["output".to_owned(), output.to_owned()]);
    }
    print(&table(["key", key], &rows))
}

fn source_rows(key: &str, entry: &SourceEntry) -> Vec<[String; 2]> {
    let SourceEntry { cursor, about, updated } = entry;
    vec![
        ["source".to_owned(), about.name.to_string()],
        ["input".to_owned(), source_input(key, about)],
        ["type".to_owned(), about.input.to_string()],
        ["cursor".to_owned(), cursor.text.to_string()],
        ["version of the cursor".to_owned(), cursor.version.to_string()],
        ["updated".to_owned(), time(*updated)],
    ]
}

fn file_rows(entry: &FileEntry, system: &System) -> Vec<[String; 2]> {
    let tail = entry.cursor.tail.map(|tail| format!("{} bytes, crc {:08x}", tail.len, tail.crc));
    let size = system.fs.metadata(&entry.meta.source).map(|meta| meta.size);
    let size = size.map_or_else(|error| format!("unknown: {error}"), |size| size.to_string());
    vec![
        ["path".to_owned(), entry.meta.source.display().to_string()],
        ["cursor".to_owned(), entry.cursor.offset.to_string()],
        ["size now".to_owned(), size],
        ["finished".to_owned(), entry.cursor.eof.to_string()],
        ["generation".to_owned(), entry.cursor.generation.to_string()],
        ["identity".to_owned(), entry.meta.identifier_name.to_string()],
        [
            "fingerprint of bytes".to_owned(),
            or_dash(entry.meta.fingerprint_len.map(Fingerprint::bytes_of_saved)),
        ],
        ["before the cursor".to_owned(), or_dash(tail)],
        ["device, inode".to_owned(), format!("{}, {}", entry.meta.device, entry.meta.inode)],
        ["updated".to_owned(), time(entry.updated)],
    ]
}

fn forget(
    wanted: &[String],
    dry_run: bool,
    output: Option<&str>,
    site: &Site,
    system: &System,
) -> Result<ExitCode> {
    let _lock = site.lock(system)?;
    let Store { registry, .. } = site.store(output, system)?;
    let entries = entries(&registry, system)?;
    let mut keys: Vec<&String> = Vec::new();
    let mut text = String::new();
    for wanted in wanted {
        let found = matching(&entries, wanted, system);
        if found.is_empty() {
            let wanted = plain(wanted);
            bail!(
                "the registry has no entry `{wanted}`, neither as a key nor as a path; nothing was \
                 forgotten"
            );
        }
        for (key, entry) in found {
            if !keys.contains(&key) {
                keys.push(key);
                let place = match entry {
                    Entry::File(FileEntry { meta, cursor, .. }) => {
                        format!("{}, at byte {}", shown(&meta.source), cursor.offset)
                    }
                    Entry::Source(SourceEntry { about, cursor, .. }) => {
                        format!("{}, at {}", plain(&about.name), plain(&short(&cursor.text)))
                    }
                };
                let verb = if dry_run { "would forget" } else { "forgot" };
                text.push_str(&format!("{verb} {} ({place})\n", plain(key)));
            }
        }
    }
    if !dry_run {
        let changes: Vec<Change> =
            keys.into_iter().map(|key| Change::Remove { key: key.as_str().into() }).collect();
        commit(&registry, &changes, system)?;
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Entries with this key, or of a file at this path, or of another source with this name.
fn matching<'a>(
    entries: &'a [(String, Entry)],
    wanted: &str,
    system: &System,
) -> Vec<(&'a String, &'a Entry)> {
    let path = system.directory.join(wanted);
    let is = |(key, entry): &(&String, &Entry)| {
        *key == wanted
            || match entry {
                Entry::File(file) => *file.meta.source == *path,
                Entry::Source(source) => *source.about.name == *wanted,
            }
    };
    entries.iter().map(|(key, entry)| (key, entry)).filter(is).collect()
}

/// Changes the registry, all at once.
fn commit(registry: &Path, changes: &[Change], system: &System) -> Result<()> {
    let (fs, clock) = (Arc::clone(&system.fs), Arc::clone(&system.clock));
    let opened = Registry::open(fs, clock, registry, Options::default());
    let (store, opened) =
        opened.with_context(|| format!("cannot open the registry in `{}`", registry.display()))?;
    if let Opened::Damaged { set_aside, .. } = opened {
        eprint(&format!("warning: the registry was damaged and is set aside: {set_aside:?}\n"));
    }
    store.commit(changes)?;
    store.close()?;
    Ok(())
}

/// Whose an entry is, and what the file or the object is known by.
fn key_parts(key: &str, entry: &FileEntry) -> (String, String) {
    let or_none = |id: &str| if id.is_empty() { "(no id)".to_owned() } else { id.to_owned() };
    let Some((owner, value)) = value_of_file(key, entry) else {
        // Of an object: `TYPE::ID::NAME`.
        let mut parts = key.splitn(3, "::").skip(1);
        let (id, value) = (parts.next().unwrap_or_default(), parts.next().unwrap_or(key));
        return (or_none(id), value.to_owned());
    };
    let owner = match owner.strip_prefix("filestream::") {
        Some(".global") => "(no id)".to_owned(),
        Some(id) => id.to_owned(),
        None => "(log inputs)".to_owned(),
    };
    (owner, value.to_owned())
}

/// What stands before and behind the way in which a file is known; nothing if it is no file.
fn value_of_file<'a>(key: &'a str, entry: &FileEntry) -> Option<(&'a str, &'a str)> {
    key.split_once(&format!("::{}::", entry.meta.identifier_name))
}

/// The id of the input that has a source: keys are `TYPE::ID::NAME`.
fn source_input(key: &str, about: &SourceAbout) -> String {
    let rest = key.strip_prefix(&*about.input).and_then(|rest| rest.strip_prefix("::"));
    rest.and_then(|rest| rest.split_once("::")).map_or("", |(id, _)| id).to_owned()
}

fn entry_json(key: &str, entry: &Entry, output: Option<&str>) -> Value {
    let mut shown = match entry {
        Entry::File(file) => file_json(key, file),
        Entry::Source(SourceEntry { cursor, about, updated }) => json!({
            "key": key,
            "source": &*about.name,
            "input": source_input(key, about),
            "type": &*about.input,
            "cursor": &*cursor.text,
            "cursor_version": cursor.version,
            "updated": time(*updated),
        }),
    };
    if let Some(output) = output {
        shown["output"] = output.into();
    }
    shown
}

fn file_json(key: &str, entry: &FileEntry) -> Value {
    let (input, _) = key_parts(key, entry);
    json!({
        "key": key,
        "path": entry.meta.source.to_string_lossy(),
        "input": input,
        "identity": &*entry.meta.identifier_name,
        "fingerprint_len": entry.meta.fingerprint_len.map(Fingerprint::bytes_of_saved),
        "device": entry.meta.device,
        "inode": entry.meta.inode,
        "offset": entry.cursor.offset,
        "generation": entry.cursor.generation,
        "finished": entry.cursor.eof,
        "updated": time(entry.updated),
    })
}

fn time(at: Timestamp) -> String {
    let mut text = TimeText::new(Precision::Millisecond);
    String::from_utf8_lossy(text.format(at.0)).into_owned()
}

/// Warns of entries of Filebeat's registry that could not be read.
fn warn_of_problems(problems: &[String]) {
    for problem in problems {
        eprint(&format!("warning: {}\n", plain(problem)));
    }
}

/// Whether a running Filebeat holds the lock of its data path, which is at or above `directory`.
fn filebeat_runs(fs: &dyn Fs, directory: &Path) -> Option<PathBuf> {
    let lock = directory.ancestors().take(3).map(|above| above.join("filebeat.lock"));
    lock.into_iter().find(|path| {
        let Ok(file) = fs.open(path) else { return false };
        // Given up again when the file is closed.
        file.try_lock().is_ok_and(|free| !free)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_registry::{Cursor, Meta};

    #[test]
    fn an_object_is_of_its_input_and_is_no_file() {
        let entry = |known_by: &str| {
            let meta = Meta { identifier_name: known_by.into(), ..Meta::default() };
            FileEntry { cursor: Cursor::default(), meta, updated: Timestamp(0), ttl: None }
        };
        let table = [
            ("aws-s3::trail::logs/a::b.gz@e@1@", "gzip", "trail", "logs/a::b.gz@e@1@"),
            ("aws-s3::::logs/a@e@1@", "json", "(no id)", "logs/a@e@1@"),
            ("filestream::app::fingerprint::0123", "fingerprint", "app", "0123"),
            ("filestream::.global::native::1-2", "native", "(no id)", "1-2"),
        ];
        for (key, known_by, owner, value) in table {
            assert_eq!(key_parts(key, &entry(known_by)), (owner.to_owned(), value.to_owned()), "{key}");
        }
        let all = table.map(|(key, known_by, ..)| (key.to_owned(), Entry::File(entry(known_by))));
        let files = files_of(all.to_vec());
        assert!(files.iter().all(|(key, _)| key.starts_with("filestream")) && files.len() == 2);
    }
}
