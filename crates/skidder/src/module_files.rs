//! `skidder modules`: the files in `modules.d`, which are on as `NAME.yml` and off as `NAME.yml.disabled`.

use crate::cli::{Global, ModulesCommand};
use crate::config_files::AllConfigFiles;
use crate::load::load_without_secrets;
use crate::system::System;
use crate::terminal::{eprint, print};
use anyhow::{Context as _, Result, bail};
use skidder_os::{FileKind, Fs};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const ON: &str = ".yml";
const OFF: &str = ".yml.disabled";

/// The file of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ModuleFile {
    name: String,
    path: PathBuf,
    is_on: bool,
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
    let files = list(fs, Path::new(directory)).context(
        "hint: copy the folder `modules.d` of a Filebeat, write `- module: NAME` into a file `NAME.yml` in it, or \
         begin a module of your own with `skidder generate module NAME`",
    );
    let files = files?;
    match what {
        ModulesCommand::List => show(&files),
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

fn show(files: &[ModuleFile]) -> Result<ExitCode> {
    let names = |is_on: bool| {
        let some = files.iter().filter(move |file| file.is_on == is_on);
        some.flat_map(|file| [file.name.as_str(), "\n"]).collect::<String>()
    };
    print(&format!("Enabled:\n{}\nDisabled:\n{}", names(true), names(false)))?;
    Ok(ExitCode::SUCCESS)
}

/// A file that is on wins over one of the same name that is off.
fn find<'a>(files: &'a [ModuleFile], name: &str) -> Option<&'a ModuleFile> {
    files.iter().find(|file| file.name == name)
}

/// The files, those that are on first, in the order in which Filebeat shows them.
fn list(fs: &dyn Fs, directory: &Path) -> Result<Vec<ModuleFile>> {
    let mut files = Vec::new();
    fs.read_dir(directory, &mut |entry| {
        let Some(file) = entry.name.to_str() else { return };
        let name = file.strip_suffix(OFF).map(|name| (name, false));
        let Some((name, is_on)) = name.or_else(|| file.strip_suffix(ON).map(|name| (name, true)))
        else {
            return;
        };
        if entry.kind != FileKind::Directory {
            files.push(ModuleFile { name: name.to_owned(), path: directory.join(file), is_on });
        }
    })
    .with_context(|| format!("cannot list `{}`", directory.display()))?;
    files.sort_by(|one, other| (other.is_on, &one.name).cmp(&(one.is_on, &other.name)));
    Ok(files)
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
            let files = list(&RealFs, place.path()).unwrap();
            files.iter().map(|file| (file.name.clone(), file.is_on)).collect::<Vec<_>>()
        };
        let expected = [("a", true), ("a-x", true), ("b", true), ("a", false), ("d", false)];
        assert_eq!(names(), expected.map(|(name, is_on)| (name.to_owned(), is_on)));
        let files = list(&RealFs, place.path()).unwrap();
        turn(&RealFs, find(&files, "d").unwrap(), true).unwrap();
        turn(&RealFs, find(&files, "b").unwrap(), false).unwrap();
        assert!(
            place.path().join("d.yml").is_file() && place.path().join("b.yml.disabled").is_file()
        );
        assert!(find(&files, "c").is_none());
    }
}
