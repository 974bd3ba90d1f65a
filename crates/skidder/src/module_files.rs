//! `skidder modules`: the files in `modules.d`, which are on as `NAME.yml` and off as `NAME.yml.disabled`. A module without
//! a file is off, and gets one when it is turned on.

use crate::cli::{Global, ModulesCommand};
use crate::config_files::AllConfigFiles;
use crate::load::load_without_secrets;
use crate::modules;
use crate::system::System;
use crate::terminal::{eprint, print};
use anyhow::{Context as _, Result, bail};
use skidder_modules::ModulePlace;
use skidder_os::{FileKind, Fs, OpenMode, write_all_at};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const ON: &str = ".yml";
const OFF: &str = ".yml.disabled";

/// Permissions of a new file: only its owner may change it, which is checked when it is read.
const PERMISSIONS: u32 = 0o600;

/// The file of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ModuleFile {
    name: String,
    path: PathBuf,
    is_on: bool,
    /// The folder of modules that has the module; `None` if none has.
    folder: Option<PathBuf>,
    /// It is not there yet: the filesets that it is to name.
    to_write: Option<Vec<String>>,
}

/// Runs a `modules` command.
pub(crate) fn dispatch(
    what: &ModulesCommand,
    global: &Global,
    system: &System,
) -> Result<ExitCode> {
    let settings = load_without_secrets(global, system)?;
    let files = AllConfigFiles::of(&settings);
    let Some(pattern) = files.modules_pattern() else {
        bail!(
            "`modules` needs the setting `filebeat.config.modules.path`\nhint: add it to `filebeat.yml`:\n{}",
            lines_for(Path::new("${path.config}/modules.d"))
        );
    };
    let Some(directory) = pattern.strip_suffix("/*.yml") else {
        bail!(
            "`filebeat.config.modules.path` is `{pattern}`; for `modules` it must end with `/*.yml`"
        );
    };
    let fs = &*system.fs;
    let modules = modules::all(fs, &settings);
    let files = list(fs, Path::new(directory), modules).context(
        "hint: copy the folder `modules.d` of a Filebeat, write `- module: NAME` into a file `NAME.yml` in it, or \
         begin a module of your own with `skidder generate module NAME`",
    )?;
    match what {
        ModulesCommand::List => print(&shown(&files)).map(|()| ExitCode::SUCCESS),
        ModulesCommand::Enable { names } => {
            for name in names {
                match find(&files, name) {
                    None => {
                        print(&format!("Module {name} doesn't exist!\n"))?;
                        return Ok(ExitCode::FAILURE);
                    }
                    Some(file) if file.is_on => {
                        print(&format!("Module {name} is already enabled\n"))?;
                    }
                    Some(ModuleFile { path, to_write: Some(filesets), .. }) => {
                        write_new(fs, path, name, filesets)?;
                    }
                    Some(file) => {
                        turn(fs, file, true)?;
                        print(&format!("Enabled {name}\n"))?;
                    }
                }
            }
            Ok(ExitCode::SUCCESS)
        }
        ModulesCommand::Disable { names } => {
            for name in names {
                match find(&files, name) {
                    None => {
                        eprint(&format!("Module {name} doesn't exist!\n"));
                        return Ok(ExitCode::FAILURE);
                    }
                    Some(file) if !file.is_on => {
                        eprint(&format!("Module {name} is already disabled\n"));
                    }
                    Some(file) => {
                        turn(fs, file, false)?;
                        print(&format!("Disabled {name}\n"))?;
                    }
                }
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// What names the files of modules in `folder` in a configuration.
pub(crate) fn lines_for(folder: &Path) -> String {
    format!("filebeat.config.modules:\n  path: {}/*{ON}\n", folder.display())
}

/// As Filebeat shows them, each with the folder that it is in.
fn shown(files: &[ModuleFile]) -> String {
    let width = files.iter().map(|file| file.name.chars().count()).max().unwrap_or(0);
    let line = |file: &ModuleFile| match &file.folder {
        Some(folder) => format!("{:width$}  {}\n", file.name, folder.display()),
        None => format!("{}\n", file.name),
    };
    let lines = |is_on: bool| {
        let some = files.iter().filter(move |file| file.is_on == is_on);
        some.map(line).collect::<String>()
    };
    format!("Enabled:\n{}\nDisabled:\n{}", lines(true), lines(false))
}

/// A file that is on wins over one of the same name that is off.
fn find<'a>(files: &'a [ModuleFile], name: &str) -> Option<&'a ModuleFile> {
    files.iter().find(|file| file.name == name)
}

/// The files, those that are on first, in the order in which Filebeat shows them. `modules` without a file are off.
///
/// # Errors
/// The folder cannot be read; one that is missing is empty as long as there are modules.
fn list(
    fs: &dyn Fs,
    directory: &Path,
    modules: BTreeMap<String, ModulePlace>,
) -> Result<Vec<ModuleFile>> {
    let mut files: Vec<ModuleFile> = Vec::new();
    let listed = fs.read_dir(directory, &mut |entry| {
        let Some(file) = entry.name.to_str() else { return };
        let name = file.strip_suffix(OFF).map(|name| (name, false));
        let Some((name, is_on)) = name.or_else(|| file.strip_suffix(ON).map(|name| (name, true)))
        else {
            return;
        };
        if entry.kind != FileKind::Directory {
            let (name, path) = (name.to_owned(), directory.join(file));
            let folder = modules.get(&name).map(|module| module.folder.clone());
            files.push(ModuleFile { name, path, is_on, folder, to_write: None });
        }
    });
    match listed {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !modules.is_empty() => {}
        listed => listed.with_context(|| format!("cannot list `{}`", directory.display()))?,
    }
    for (name, ModulePlace { folder, filesets }) in modules {
        if !files.iter().any(|file| file.name == name) {
            let path = directory.join(format!("{name}{ON}"));
            let (folder, to_write) = (Some(folder), Some(filesets));
            files.push(ModuleFile { name, path, is_on: false, folder, to_write });
        }
    }
    files.sort_by(|one, other| (other.is_on, &one.name).cmp(&(one.is_on, &other.name)));
    Ok(files)
}

/// Writes the file of a module, with all filesets off, as in the files of a Filebeat.
fn write_new(fs: &dyn Fs, path: &Path, name: &str, filesets: &[String]) -> Result<()> {
    let mut text = format!("- module: {name}\n");
    for fileset in filesets {
        text += &format!(
            "  {fileset}:\n    enabled: false\n    # Without it, the usual paths of the system:\n    #var.paths: []\n"
        );
    }
    put(fs, path, &text, OpenMode::New, PERMISSIONS)
        .with_context(|| format!("There was an error enabling module {name}"))?;
    let path = path.display();
    print(&format!(
        "Enabled {name}\nthe next step: set `enabled: true` for the filesets that you want in `{path}`\n"
    ))
}

/// Writes a file of people, and makes its folder if there is none.
pub(crate) fn put(
    fs: &dyn Fs,
    path: &Path,
    text: &str,
    mode: OpenMode,
    permissions: u32,
) -> Result<()> {
    let failed = || format!("cannot write `{}`", path.display());
    if let Some(folder) = path.parent() {
        fs.create_dir_all(folder, 0o755).with_context(failed)?;
    }
    let file = fs.open_write(path, mode, permissions).with_context(failed)?;
    write_all_at(&*file, text.as_bytes(), 0).with_context(failed)
}

fn turn(fs: &dyn Fs, file: &ModuleFile, on: bool) -> Result<()> {
    let path = file.path.with_file_name(format!("{}{}", file.name, if on { ON } else { OFF }));
    let what = if on { "enabling" } else { "disabling" };
    fs.rename(&file.path, &path).with_context(|| {
        format!(
            "There was an error {what} module {}: cannot rename `{}`",
            file.name,
            file.path.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_os::RealFs;

    #[test]
    fn files_are_listed_and_renamed() {
        let place = tempfile::tempdir().unwrap();
        for name in ["b.yml", "a.yml.disabled", "a-x.yml", "a.yml", "c.txt", "d.yml.disabled"] {
            std::fs::write(place.path().join(name), "").unwrap();
        }
        let names = || {
            let files = list(&RealFs, place.path(), BTreeMap::new()).unwrap();
            files.iter().map(|file| (file.name.clone(), file.is_on)).collect::<Vec<_>>()
        };
        let expected = [("a", true), ("a-x", true), ("b", true), ("a", false), ("d", false)];
        assert_eq!(names(), expected.map(|(name, is_on)| (name.to_owned(), is_on)));
        let files = list(&RealFs, place.path(), BTreeMap::new()).unwrap();
        turn(&RealFs, find(&files, "d").unwrap(), true).unwrap();
        turn(&RealFs, find(&files, "b").unwrap(), false).unwrap();
        assert!(
            place.path().join("d.yml").is_file() && place.path().join("b.yml.disabled").is_file()
        );
        assert!(find(&files, "c").is_none());
    }

    #[test]
    fn a_module_without_a_file_is_off_and_gets_one() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("modules.d");
        let filesets = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let modules = || {
            let all = [("nginx", filesets(&["access", "error"])), ("redis", filesets(&["log"]))];
            let folder = Path::new("/m");
            let place = |filesets| ModulePlace { folder: folder.to_owned(), filesets };
            BTreeMap::from(all.map(|(name, of): (&str, Vec<String>)| (name.to_owned(), place(of))))
        };
        let names = || {
            let files = list(&RealFs, &folder, modules()).unwrap();
            files.iter().map(|file| (file.name.clone(), file.is_on)).collect::<Vec<_>>()
        };
        assert_eq!(names(), [("nginx".to_owned(), false), ("redis".to_owned(), false)]);
        let files = list(&RealFs, &folder, modules()).unwrap();
        let file = find(&files, "nginx").unwrap();
        write_new(&RealFs, &file.path, "nginx", file.to_write.as_deref().unwrap()).unwrap();
        assert_eq!(names(), [("nginx".to_owned(), true), ("redis".to_owned(), false)]);
        let text = std::fs::read_to_string(folder.join("nginx.yml")).unwrap();
        assert!(text.starts_with("- module: nginx\n  access:\n    enabled: false\n"), "{text}");
        assert!(list(&RealFs, Path::new("/nowhere"), BTreeMap::new()).is_err());
    }
}
