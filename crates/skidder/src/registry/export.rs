//! `skidder registry export`: the way back to Filebeat.

use super::{Site, Store, filebeat_runs, files_of, key_parts, read_entries};
use crate::agent::Agent;
use crate::cli::{ExportRegistry, Global};
use crate::inputs::Input;
use crate::load::{load_settings, read_parts};
use crate::plain::shown;
use crate::system::System;
use crate::terminal::{eprint, print};
use anyhow::{Context as _, Result, bail};
use skidder_read::import::WayBack;
use skidder_read::{FilestreamSettings, Fingerprint};
use skidder_registry::FileEntry;
use skidder_registry::filebeat::{FilebeatEntry, Identity, Owner, WriteError, write};
use std::collections::BTreeMap;
use std::process::ExitCode;

pub(super) fn export(what: &ExportRegistry, global: &Global, system: &System) -> Result<ExitCode> {
    let settings = load_settings(global, system)?;
    let parts =
        read_parts(&settings, system, |name| Ok(Agent::temporary(name, system.clock.wall())))?;
    let site = Site::of(global, system)?;
    let Store { registry, output, .. } = site.store(what.output.as_deref(), system)?;
    let _lock = site.lock(system)?;
    let to = system.directory.join(&what.to).join("registry/filebeat");
    if let Some(path) = filebeat_runs(&*system.fs, &to) {
        bail!("Filebeat is running (it holds `{}`); stop it first", path.display());
    }
    let (ours, complete) = read_entries(&registry, system)?;
    let ours = files_of(ours);
    let outputs = parts.outputs.iter().filter(|parts| output.is_none() || parts.id == output);
    let inputs: Vec<&FilestreamSettings> =
        outputs.flat_map(|output| output.inputs.iter().filter_map(Input::files)).collect();
    let default = FilestreamSettings::new("", skidder_read::scan::ScanSettings::default());
    let mut ways: Vec<WayBack<'_>> =
        inputs.iter().map(|input| WayBack::new(&*system.fs, input)).collect();
    let paths = ours.iter().map(|(_, entry)| entry.meta.source.to_path_buf());
    ways.push(WayBack::at(&*system.fs, &default, paths));
    let mut theirs: BTreeMap<String, FilebeatEntry> = BTreeMap::new();
    let (mut gone, mut left_out) = (0, 0);
    for (key, entry) in &ours {
        let path = shown(&entry.meta.source);
        let of_key = inputs.iter().position(|input| input.value_in(key).is_some());
        let settings = of_key.map_or(&default, |at| inputs[at]);
        let way = &mut ways[of_key.unwrap_or(inputs.len())];
        let converted = match convert(key, entry, settings, way, what) {
            Ok(Some(converted)) => converted,
            Ok(None) => {
                gone += 1;
                eprint(&format!("warning: `{path}` is left out: the file is gone\n"));
                continue;
            }
            Err(why) => {
                left_out += 1;
                eprint(&format!(
                    "error: `{path}` is left out, Filebeat will read it from the start: {why}\n"
                ));
                continue;
            }
        };
        if let Some(before) = theirs.get(&converted.key) {
            left_out += 1;
            eprint(&format!(
                "error: `{path}` is left out, Filebeat cannot tell it from `{}`\n",
                shown(&before.source)
            ));
            continue;
        }
        theirs.insert(converted.key.clone(), converted);
    }
    let theirs: Vec<FilebeatEntry> = theirs.into_values().collect();
    match write(&*system.fs, &to, &theirs, what.force) {
        Err(error @ WriteError::Exists { .. }) => {
            return Err(error).context("nothing was written; `--force` replaces it");
        }
        result => result?,
    }
    print(&format!(
        "{} entries written to {}, {left_out} left out, {gone} of files that are gone\n",
        theirs.len(),
        to.display()
    ))?;
    Ok(if left_out == 0 && complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// An entry as Filebeat would have written it; nothing if its file is gone.
fn convert(
    key: &str,
    entry: &FileEntry,
    settings: &FilestreamSettings,
    way: &mut WayBack<'_>,
    options: &ExportRegistry,
) -> Result<Option<FilebeatEntry>, String> {
    let (id, value) = key_parts(key, entry);
    let owner = match key.strip_prefix("filestream::") {
        Some(rest) if rest.starts_with(".global::") => Owner::Filestream { input: String::new() },
        Some(_) => Owner::Filestream { input: id },
        None => Owner::Log,
    };
    let stream = settings.key_suffix;
    let value = if stream.is_empty() { &*value } else { settings.value_in(key).unwrap_or(&value) };
    let known_by = &*entry.meta.identifier_name;
    let print = if known_by == "fingerprint" {
        let len = entry.meta.fingerprint_len.unwrap_or(settings.fingerprint.length);
        Some(Fingerprint::from_hex(value, len).ok_or("its key is no fingerprint")?)
    } else {
        None
    };
    let mut entry = entry.clone();
    if way.locate(&mut entry, print.as_ref()).is_none() {
        return Ok(None);
    }
    let name = options.identity.as_deref().unwrap_or(known_by);
    let source = entry.meta.source.to_string_lossy().into_owned();
    let identity = match (name, &print) {
        ("native", _) => Identity::Native { inode: entry.meta.inode, device: entry.meta.device },
        ("path", _) => Identity::Path(source),
        ("fingerprint", Some(print)) => way.fingerprint(&entry, print)?,
        ("inode_marker", _) => {
            let marker = value.split_once('-').map_or("", |(_, marker)| marker).to_owned();
            Identity::InodeMarker { inode: entry.meta.inode, marker }
        }
        (name, _) => return Err(format!("it is known by `{known_by}`, not `{name}`")),
    };
    if owner == Owner::Log && identity.name() == "fingerprint" {
        return Err("`log` inputs know no fingerprints; use `--identity native`".to_owned());
    }
    Ok(Some(FilebeatEntry {
        key: FilebeatEntry::key_of(&owner, &identity, stream),
        owner,
        identity,
        stream,
        source: entry.meta.source.to_path_buf(),
        offset: Some(entry.cursor.offset),
        eof: entry.cursor.eof,
        updated: Some(entry.updated),
        ttl: -1,
    }))
}
