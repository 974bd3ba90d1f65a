//! Where an installation of Filebeat has its things, and how they come to where ours are.

use crate::cli::{Global, Migrate};
use crate::load::load_files;
use crate::system::System;
use anyhow::{Context as _, Result, bail};
use skidder_config::{Node, Settings};
use skidder_registry::filebeat::find;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Name of the configuration in its folder.
pub(super) const CONFIGURATION: &str = "filebeat.yml";
/// Where packages keep Filebeat's data.
const PACKAGED_DATA: &str = "/var/lib/filebeat";

/// An installation of Filebeat.
pub(super) struct Theirs {
    /// The configuration file.
    pub(super) configuration: PathBuf,
    /// Its folder, which is `path.config`.
    pub(super) folder: PathBuf,
    /// Its content.
    pub(super) settings: Settings,
    /// `path.data`.
    pub(super) data: PathBuf,
    /// The keystore, if there is one.
    pub(super) keystore: Option<PathBuf>,
    /// Folders below `folder` whose files belong to the configuration.
    pub(super) beside: Vec<PathBuf>,
}

impl Theirs {
    /// Finds it by `--from` and by its configuration.
    pub(super) fn find(options: &Migrate, global: &Global, system: &System) -> Result<Self> {
        let from = system.directory.join(&options.from);
        let is_folder = fs::metadata(&from)
            .with_context(|| {
                format!(
                    "there is no Filebeat at `{}`; say where its configuration is with `--from`",
                    from.display()
                )
            })?
            .is_dir();
        let configuration = if is_folder { from.join(CONFIGURATION) } else { from };
        let folder = configuration.parent().map(Path::to_path_buf).unwrap_or_default();
        let read = Global {
            config: Vec::new(),
            overrides: Vec::new(),
            stderr: false,
            verbose: false,
            debug: None,
            environment: global.environment,
            path_home: Some(folder.clone()),
            path_config: Some(folder.clone()),
            path_data: None,
            path_logs: None,
            strict_permissions: global.strict_permissions,
            once: false,
            fail_on: Vec::new(),
            trace_startup: false,
            modules: Vec::new(),
            module_settings: Vec::new(),
        };
        let settings = load_files(&read, std::slice::from_ref(&configuration), system)?;
        let data = data_of(options, &settings, &folder, system)?;
        let keystore = text(settings.node(), &["keystore", "path"])
            .map_or_else(|| data.join("filebeat.keystore"), PathBuf::from);
        let keystore = match fs::metadata(&keystore) {
            Ok(_) => Some(keystore),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("cannot look at `{}`", keystore.display()));
            }
        };
        let beside = beside(&settings, &folder);
        Ok(Self { configuration, folder, settings, data, keystore, beside })
    }
}

/// Filebeat's `path.data`: from the command line, from the configuration, else the first usual place that has a
/// registry.
fn data_of(
    options: &Migrate,
    settings: &Settings,
    folder: &Path,
    system: &System,
) -> Result<PathBuf> {
    if let Some(data) = &options.from_data {
        let data = system.directory.join(data);
        find(&*system.fs, &data)?;
        return Ok(data);
    }
    let own = settings.paths().data.clone();
    let usual = folder.join("data");
    if own != usual {
        return Ok(own);
    }
    let places = [PathBuf::from(PACKAGED_DATA), usual.clone()];
    Ok(places.into_iter().find(|place| find(&*system.fs, place).is_ok()).unwrap_or(usual))
}

/// The text at a place of the tree.
fn text<'a>(node: &'a Node, path: &[&str]) -> Option<&'a str> {
    let [first, rest @ ..] = path else { return node.text() };
    text(&node.as_map()?.get(first)?.value, rest)
}

/// The folders of `filebeat.config.*.path` that lie below the configuration's own.
fn beside(settings: &Settings, folder: &Path) -> Vec<PathBuf> {
    let patterns = ["inputs", "modules"]
        .map(|part| text(settings.node(), &["filebeat", "config", part, "path"]));
    let folders = patterns.into_iter().flatten().filter_map(|pattern| {
        let found = folder.join(pattern).parent()?.to_path_buf();
        (found != folder && found.starts_with(folder) && found.is_dir()).then_some(found)
    });
    folders.collect()
}

/// Refuses to replace a configuration with other content.
pub(super) fn refuse_other(target: &Path, source: &Path, force: bool) -> Result<()> {
    let Ok(there) = fs::read(target) else { return Ok(()) };
    if force || fs::read(source).is_ok_and(|bytes| bytes == there) {
        return Ok(());
    }
    bail!(
        "`{}` is there already and says something else; replace it with `--force` (it is kept beside, as \
         `.before`), or choose another folder with `--to`",
        target.display()
    )
}

/// Copies the configuration unchanged; a lenient one gets one more line.
pub(super) fn write_configuration(source: &Path, target: &Path, lenient: bool) -> Result<()> {
    let folder = target.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).with_context(|| format!("cannot make `{}`", folder.display()))?;
    let there = fs::read(target).ok();
    if there.is_some() && there != fs::read(source).ok() {
        let mut kept = target.as_os_str().to_owned();
        kept.push(".before");
        fs::rename(target, &kept)
            .with_context(|| format!("cannot rename `{}`", target.display()))?;
    }
    copy(source, target)?;
    if !lenient {
        return Ok(());
    }
    let mut bytes = fs::read(target)?;
    if !bytes.ends_with(b"\n") {
        bytes.push(b'\n');
    }
    bytes.extend_from_slice(
        b"\n# by `skidder migrate --lenient`: unknown and unsupported settings are without effect\n\
          compat: lenient\n",
    );
    fs::write(target, bytes).with_context(|| format!("cannot write `{}`", target.display()))
}

/// Copies a file with its permissions.
pub(super) fn copy(source: &Path, target: &Path) -> Result<()> {
    let failed = || format!("cannot copy `{}` to `{}`", source.display(), target.display());
    let mode = fs::metadata(source).with_context(failed)?.permissions().mode() & 0o777;
    let mut read = fs::File::open(source).with_context(failed)?;
    // Created for its owner alone; the other permissions follow when it is complete.
    let mut open = fs::OpenOptions::new();
    open.write(true).create(true).truncate(true).mode(mode & 0o600);
    let mut write = open.open(target).with_context(failed)?;
    std::io::copy(&mut read, &mut write).with_context(failed)?;
    write.set_permissions(fs::Permissions::from_mode(mode)).with_context(failed)?;
    write.sync_all().with_context(failed)
}

/// Copies the `.yml` files of a folder below `from` to the same place below `to`.
pub(super) fn copy_folder(folder: &Path, from: &Path, to: &Path) -> Result<()> {
    let Ok(below) = folder.strip_prefix(from) else { return Ok(()) };
    let target = to.join(below);
    fs::create_dir_all(&target).with_context(|| format!("cannot make `{}`", target.display()))?;
    let listed =
        fs::read_dir(folder).with_context(|| format!("cannot list `{}`", folder.display()))?;
    for entry in listed {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "yml")
            && let Some(name) = path.file_name()
        {
            copy(&path, &target.join(name))?;
        }
    }
    Ok(())
}
