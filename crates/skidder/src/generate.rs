//! `skidder generate`: the beginnings of a module of one's own, as Filebeat's command of this name makes them, and the
//! fields that its pipeline gives.
//!
//! What is written runs as it is: `modules enable NAME` turns it on. No file that is there is overwritten, but for
//! `_meta/fields.yml`.

use crate::cli::{GenerateCommand, Global};
use crate::config_files::AllConfigFiles;
use crate::load::load_if_there;
use crate::module_files;
use crate::system::System;
use crate::terminal::print;
use anyhow::{Context as _, Result, bail};
use serde_json::Value as Json;
use skidder_config::{Settings, yaml_value};
use skidder_os::{Fs, OpenMode, read_to_end, write_all_at};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// No pipeline is longer.
const PIPELINE_BYTES_MAX: usize = 1 << 20;

/// The type of what a pattern of `grok` finds; all others are keywords.
const TYPES: [(&str, &str); 12] = [
    ("DATA", "text"),
    ("GREEDYDATA", "text"),
    ("GREEDYMULTILINE", "text"),
    ("IP", "ip"),
    ("IPV4", "ip"),
    ("IPV6", "ip"),
    ("NUMBER", "long"),
    ("INT", "long"),
    ("POSINT", "long"),
    ("NONNEGINT", "long"),
    ("TIMESTAMP_ISO8601", "date"),
    ("HTTPDATE", "date"),
];

/// Runs a `generate` command.
pub(crate) fn dispatch(
    what: &GenerateCommand,
    global: &Global,
    system: &System,
) -> Result<ExitCode> {
    let (settings, is_file) = load_if_there(global, system)?;
    let fs = &*system.fs;
    let places = Places { settings: &settings, is_file, directory: &system.directory };
    match what {
        GenerateCommand::Module { name, modules_path } => {
            let folder = places.folder(modules_path.as_deref())?;
            module(fs, &folder, &places.enabling(), name)?;
        }
        GenerateCommand::Fileset { module, fileset: name, modules_path } => {
            let folder = places.folder(modules_path.as_deref())?;
            fileset(fs, &folder, &places.next(&folder), module, name)?;
        }
        GenerateCommand::Fields { module, fileset, without_documentation, modules_path } => {
            let folder = places.folder(modules_path.as_deref())?;
            fields(
                fs,
                &folder.join(checked(module)?).join(checked(fileset)?),
                *without_documentation,
            )?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What decides where a module is written to.
struct Places<'a> {
    settings: &'a Settings,
    /// Whether there is a `filebeat.yml`. Without one, everything is below the current folder.
    is_file: bool,
    /// The current folder.
    directory: &'a Path,
}

/// What is to be done before a generated module runs.
struct Next {
    /// The folder of the files that `modules enable` renames.
    enabling: PathBuf,
    /// What the configuration lacks; empty for nothing.
    lines: String,
}

impl Places<'_> {
    /// The folder of all modules: `module` in the given one, or the person's own where skidder looks for modules.
    fn folder(&self, given: Option<&Path>) -> Result<PathBuf> {
        let own = given.map(|given| self.absolute(&given.join("module")));
        own.or_else(|| self.configured()).with_context(|| {
            "it is not known where the modules are: neither `path.home` nor `filebeat.modules_path` is set\n\
             hint: give `--modules-path DIR` for `DIR/module`, or set `filebeat.modules_path` in `filebeat.yml`"
        })
    }

    /// The folder of the configuration. The default of `path.home` is the folder of the program, which is no place for
    /// modules.
    fn configured(&self) -> Option<PathBuf> {
        let home = &self.settings.paths().home;
        let configured = self.settings.node().at("filebeat.modules_path");
        let has_home = self.settings.has_home() || !self.is_file;
        let path = match configured.and_then(|node| node.text()) {
            Some(path) if has_home || Path::new(path).is_absolute() => home.join(path),
            None if has_home => home.join("module"),
            _ => return None,
        };
        Some(self.absolute(&path))
    }

    fn next(&self, own: &Path) -> Next {
        let enabling = self.enabling();
        let mut lines = String::new();
        // Without a file it is not known what `path.home` will be.
        if !self.is_file || self.configured().as_deref() != Some(own) {
            lines = format!("filebeat.modules_path: {}\n", own.display());
        }
        if AllConfigFiles::of(self.settings).modules_pattern().is_none() {
            lines += &module_files::lines_for(&enabling);
        }
        Next { enabling, lines }
    }

    /// The folder of the files that `modules enable` renames.
    fn enabling(&self) -> PathBuf {
        let files = AllConfigFiles::of(self.settings);
        let configured = files.modules_pattern().and_then(|pattern| pattern.strip_suffix("/*.yml"));
        let default = || self.settings.paths().config.join("modules.d");
        self.absolute(&configured.map_or_else(default, PathBuf::from))
    }

    fn absolute(&self, path: &Path) -> PathBuf {
        // Without `.` among its parts.
        self.directory.join(path).components().collect()
    }
}

/// A name that is a name of a folder, and a part of names of fields.
fn checked(name: &str) -> Result<&str> {
    let is_good = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_';
    if name.is_empty() || !name.chars().all(is_good) {
        bail!("`{name}` cannot be a name: use lower-case letters, digits and `_`");
    }
    Ok(name)
}

fn module(fs: &dyn Fs, folder: &Path, enabling: &Path, name: &str) -> Result<()> {
    let own = folder.join(checked(name)?);
    if fs.metadata(&own).is_ok() {
        bail!("the module `{name}` is there already: `{}`", own.display());
    }
    create(fs, &own.join("module.yml"), "dashboards: []\n")?;
    create(
        fs,
        &own.join("_meta/fields.yml"),
        &format!(
            "- key: {name}\n  title: {name}\n  description: Logs of {name}.\n  fields:\n    - name: {name}\n      type: group\n      fields: []\n"
        ),
    )?;
    create(
        fs,
        &own.join("_meta/docs.md"),
        &format!(
            "# {name}\n\nWhich versions write such logs, and what each variable (`var.*`) means.\n"
        ),
    )?;
    let file = enabling.join(format!("{name}.yml.disabled"));
    create(fs, &file, &format!("- module: {name}\n"))?;
    print(&format!(
        "the next step: skidder generate fileset {name} FILESET, one for each kind of log\n"
    ))
}

fn fileset(fs: &dyn Fs, folder: &Path, next: &Next, module: &str, name: &str) -> Result<()> {
    let parent = folder.join(checked(module)?);
    let own = parent.join(checked(name)?);
    if fs.metadata(&parent).is_err() {
        bail!("there is no module `{module}`: begin with `skidder generate module {module}`");
    }
    if fs.metadata(&own).is_ok() {
        bail!("the fileset `{name}` is there already: `{}`", own.display());
    }
    create(
        fs,
        &own.join("manifest.yml"),
        &format!(
            "module_version: \"1.0\"\n\n\
         # Each can be set in the configuration, as `var.NAME`.\nvar:\n  - name: paths\n    default:\n      \
         - /var/log/{module}/{name}.log*\n\n\
         ingest_pipeline: ingest/pipeline.json\ninput: config/{name}.yml\n"
        ),
    )?;
    create(
        fs,
        &own.join("config").join(format!("{name}.yml")),
        &format!(
            "type: filestream\nid: {module}-{name}\npaths:\n{{{{ range .paths }}}}\n - {{{{ . }}}}\n{{{{ end }}}}\n\
         prospector.scanner.exclude_files: ['\\.gz$']\n"
        ),
    )?;
    let pipeline = serde_json::json!({
        "description": format!("Takes lines of {module}/{name} apart"),
        "processors": [
            {"rename": {"field": "message", "target_field": "event.original"}},
            {"grok": {
                "field": "event.original",
                "patterns": [format!("^(?:%{{LOGLEVEL:log.level}} )?%{{GREEDYDATA:{module}.{name}.text}}")],
            }},
        ],
        "on_failure": [{"set": {"field": "error.message", "value": "{{ _ingest.on_failure_message }}"}}],
    });
    create(fs, &own.join("ingest/pipeline.json"), &format!("{pipeline:#}\n"))?;
    let text =
        format!("  {name}:\n    enabled: true\n    # var.paths: [/var/log/{module}/{name}.log*]\n");
    let Next { enabling, lines } = next;
    let file = enabling.join(format!("{module}.yml.disabled"));
    if fs.metadata(&file).is_ok() {
        append(fs, &file, &text)?;
        if !lines.is_empty() {
            print(&format!("the next step: add these lines to `filebeat.yml`:\n{lines}"))?;
        }
        return print(&format!("the next step: skidder modules enable {module}\n"));
    }
    let on = file.with_extension("");
    print(&format!("add this to `{}`:\n{text}", on.display()))
}

fn fields(fs: &dyn Fs, fileset: &Path, is_bare: bool) -> Result<()> {
    let names = ["ingest/pipeline.json", "ingest/pipeline.yml"];
    let found =
        names.map(|name| fileset.join(name)).into_iter().find(|path| fs.metadata(path).is_ok());
    let Some(path) = found else {
        bail!("there is no `{}`, whose patterns name the fields", fileset.join(names[0]).display());
    };
    let shown = path.display().to_string();
    let read = || format!("cannot read `{shown}`");
    let file = fs.open(&path).with_context(read)?;
    let text = String::from_utf8(read_to_end(&*file, PIPELINE_BYTES_MAX).with_context(read)?)
        .with_context(read)?;
    let pipeline = yaml_value(&shown, &text).map_err(|problems| anyhow::anyhow!("{problems}"))?;
    let found = fields_of(&Json::from(&pipeline));
    if found.is_empty() {
        bail!("`{shown}` has no `grok` with patterns that name fields");
    }
    let target = fileset.join("_meta/fields.yml");
    write(fs, &target, &fields_text(&found, is_bare), OpenMode::Truncate)
}

/// The fields that the patterns of a pipeline give, renamed and without removed ones, with their types.
fn fields_of(pipeline: &Json) -> BTreeMap<String, String> {
    let mut fields = BTreeMap::new();
    let processors = pipeline["processors"].as_array().cloned().unwrap_or_default();
    for processor in &processors {
        let patterns = processor["grok"]["patterns"].as_array().into_iter().flatten();
        for pattern in patterns.filter_map(Json::as_str) {
            fields.extend(fields_of_pattern(pattern));
        }
        let [from, to] = ["field", "target_field"].map(|key| processor["rename"][key].as_str());
        if let (Some(from), Some(to)) = (from, to)
            && let Some(kind) = fields.remove(from)
        {
            fields.insert(to.to_owned(), kind);
        }
        let removed = &processor["remove"]["field"];
        let several = removed.as_array().into_iter().flatten();
        for name in several.chain(std::iter::once(removed)).filter_map(Json::as_str) {
            fields.remove(name);
        }
    }
    fields
}

/// `%{PATTERN:field}` and `%{PATTERN:field:type}`.
fn fields_of_pattern(pattern: &str) -> Vec<(String, String)> {
    let parts = pattern.split("%{").skip(1).filter_map(|part| part.split_once('}'));
    let field = |(inside, _): (&str, &str)| {
        let mut parts = inside.split(':');
        let (pattern, name) = (parts.next()?, parts.next()?);
        let of_pattern = TYPES.iter().find(|(known, _)| *known == pattern);
        let kind = match parts.next() {
            Some("int") => "long",
            Some(kind) => kind,
            None => of_pattern.map_or("keyword", |(_, kind)| kind),
        };
        Some((name.to_owned(), kind.to_owned()))
    };
    parts.filter_map(field).collect()
}

/// As `fields.yml`: the levels of a name are groups.
fn fields_text(fields: &BTreeMap<String, String>, is_bare: bool) -> String {
    let mut text = String::new();
    let mut above: Vec<&str> = Vec::new();
    for (name, kind) in fields {
        let mut levels: Vec<&str> = name.split('.').collect();
        let last = levels.pop().unwrap_or_default();
        let same = above.iter().zip(&levels).take_while(|(one, other)| one == other).count();
        for (depth, level) in levels.iter().enumerate().skip(same) {
            let indent = "    ".repeat(depth);
            // A text that is written to memory cannot fail.
            let _ok =
                write!(text, "{indent}- name: {level}\n{indent}  type: group\n{indent}  fields:\n");
        }
        let indent = "    ".repeat(levels.len());
        let _ok = write!(text, "{indent}- name: {last}\n{indent}  type: {kind}\n");
        if !is_bare {
            let _ok = writeln!(text, "{indent}  description: What it is.");
        }
        above = levels;
    }
    text
}

/// Writes a new file and logs its path.
fn create(fs: &dyn Fs, path: &Path, text: &str) -> Result<()> {
    write(fs, path, text, OpenMode::New)
}

fn write(fs: &dyn Fs, path: &Path, text: &str, mode: OpenMode) -> Result<()> {
    module_files::put(fs, path, text, mode, 0o644)?;
    print(&format!("wrote {}\n", path.display()))
}

fn append(fs: &dyn Fs, path: &Path, text: &str) -> Result<()> {
    let failed = || format!("cannot write `{}`", path.display());
    let file = fs.open_write(path, OpenMode::Keep, 0o644).with_context(failed)?;
    let size = file.metadata().with_context(failed)?.size;
    write_all_at(&*file, text.as_bytes(), size).with_context(failed)?;
    print(&format!("extended {}\n", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_are_those_of_the_patterns_renamed_and_without_removed_ones() {
        let pipeline = json!({"processors": [
            {"grok": {"patterns": ["%{IP:source.ip} %{NUMBER:a.b.bytes} %{WORD} %{INT:n:int} %{DATA:gone}", "%{LOGLEVEL:a.level}"]}},
            {"rename": {"field": "n", "target_field": "a.b.number"}},
            {"remove": {"field": ["gone"]}},
        ]});
        let fields = fields_of(&pipeline);
        let expected = "- name: a
  type: group
  fields:
    - name: b
      type: group
      fields:
        - name: bytes
          type: long
        - name: number
          type: long
    - name: level
      type: keyword
- name: source
  type: group
  fields:
    - name: ip
      type: ip
";
        assert_eq!(fields_text(&fields, true), expected);
        assert!(fields_text(&fields, false).contains("description: "));
        assert!(fields_of(&json!({"processors": [{"set": {"field": "a"}}]})).is_empty());
    }

    #[test]
    fn a_name_is_no_path() {
        assert!(checked("web_2").is_ok());
        for wrong in ["", "../x", "a/b", "A", "a.b"] {
            assert!(checked(wrong).is_err(), "{wrong}");
        }
    }
}
