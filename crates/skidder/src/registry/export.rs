//! `skidder registry export`: the way back to Filebeat.

use super::{Site, Store, entries, filebeat_runs, key_parts};
use crate::agent::Agent;
use crate::cli::{ExportRegistry, Global};
use crate::commands::{World, load_settings, print, read_parts, tell};
use crate::outputs::OutputParts;
use anyhow::{Context as _, Result, bail};
use skidder_read::import::identity_for_filebeat;
use skidder_read::{FilestreamSettings, Fingerprint, InputKind};
use skidder_registry::Entry;
use skidder_registry::filebeat::{FilebeatEntry, Identity, Owner, WriteError, write};
use std::collections::BTreeMap;
use std::process::ExitCode;

pub(super) fn export(options: &ExportRegistry, global: &Global, world: &World) -> Result<ExitCode> {
    let settings = load_settings(global, world)?;
    let parts = read_parts(&settings, world, |name| Ok(Agent::passing(name, world.clock.wall())))?;
    let site = Site::of(global, world)?;
    let Store { registry, output, .. } = site.store(options.output.as_deref(), world)?;
    let _lock = site.lock(world)?;
    let to = world.directory.join(&options.to).join("registry/filebeat");
    if let Some(path) = filebeat_runs(&*world.fs, &to) {
        bail!("Filebeat is running (it holds `{}`); stop it first", path.display());
    }
    let ours = entries(&registry, world)?;
    let of = |parts: &&OutputParts| output.is_none() || parts.id == output;
    let inputs: Vec<&FilestreamSettings> = parts
        .outputs
        .iter()
        .filter(of)
        .flat_map(|output| output.inputs.iter().map(|input| &input.settings))
        .collect();
    let mut theirs: BTreeMap<String, FilebeatEntry> = BTreeMap::new();
    let mut left_out = 0;
    for (key, entry) in &ours {
        let path = entry.meta.source.display();
        let converted = match convert(key, entry, &inputs, options, world) {
            Ok(converted) => converted,
            Err(why) => {
                left_out += 1;
                tell(&format!(
                    "warning: `{path}` is left out, Filebeat will read it anew: {why}\n"
                ));
                continue;
            }
        };
        if let Some(before) = theirs.get(&converted.key) {
            left_out += 1;
            tell(&format!(
                "warning: `{path}` is left out, Filebeat cannot tell it from `{}`\n",
                before.source.display()
            ));
            continue;
        }
        theirs.insert(converted.key.clone(), converted);
    }
    let theirs: Vec<FilebeatEntry> = theirs.into_values().collect();
    match write(&*world.fs, &to, &theirs, options.force) {
        Err(error @ WriteError::Exists { .. }) => {
            return Err(error).context("nothing was written; `--force` replaces it");
        }
        result => result?,
    }
    print(&format!("{} entries written to {}, {left_out} left out\n", theirs.len(), to.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// An entry as Filebeat would have written it.
fn convert(
    key: &str,
    entry: &Entry,
    inputs: &[&FilestreamSettings],
    options: &ExportRegistry,
    world: &World,
) -> Result<FilebeatEntry, String> {
    let (id, value) = key_parts(key, entry);
    let input = inputs.iter().find(|input| input.value_in(key).is_some());
    let owner = match key.strip_prefix("filestream::") {
        Some(rest) if rest.starts_with(".global::") => Owner::Filestream { input: String::new() },
        Some(_) => Owner::Filestream { input: id },
        None => Owner::Log,
    };
    let default = FilestreamSettings::new("", skidder_read::scan::ScanSettings::default());
    let settings = input.copied().unwrap_or(&default);
    let stream = settings.key_suffix;
    if owner == Owner::Log && (!stream.is_empty() || settings.kind == InputKind::Container) {
        return Err("Filebeat's key of a stream of a container cannot be made".to_owned());
    }
    let value = if stream.is_empty() { &*value } else { settings.value_in(key).unwrap_or(&value) };
    let name = options.identity.as_deref().unwrap_or(&entry.meta.identifier_name);
    let native = || Identity::Native { inode: entry.meta.inode, device: entry.meta.device };
    let source = entry.meta.source.to_string_lossy().into_owned();
    let identity = match name {
        "native" => native(),
        "path" => Identity::Path(source),
        "fingerprint" if &*entry.meta.identifier_name == "fingerprint" => {
            let len = entry.meta.fingerprint_len.unwrap_or(settings.fingerprint.length);
            let print = Fingerprint::from_hex(value, len).ok_or("its key is no fingerprint")?;
            identity_for_filebeat(&*world.fs, settings, &entry.meta.source.to_path_buf(), &print)?
        }
        "inode_marker" => {
            let marker = value.split_once('-').map_or("", |(_, marker)| marker).to_owned();
            Identity::InodeMarker { inode: entry.meta.inode, marker }
        }
        name => {
            return Err(format!("it is known by `{}`, not `{name}`", entry.meta.identifier_name));
        }
    };
    if owner == Owner::Log && identity.name() == "fingerprint" {
        return Err("`log` inputs know no fingerprints; use `--identity native`".to_owned());
    }
    Ok(FilebeatEntry {
        key: FilebeatEntry::key_of(&owner, &identity, stream),
        owner,
        identity,
        stream,
        source: entry.meta.source.to_path_buf(),
        offset: Some(entry.cursor.offset),
        eof: entry.cursor.eof,
        updated: Some(entry.updated),
        ttl: -1,
    })
}
