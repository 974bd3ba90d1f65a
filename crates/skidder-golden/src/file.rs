//! A golden file, read, and what must be in it.

use crate::case::{Case, Kind, no_problems};
use anyhow::{Context as _, Result, ensure};
use skidder_config::{Problems, Settings};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A golden file.
#[derive(Debug)]
pub struct GoldenFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its text, with the variables of the caller replaced.
    pub text: String,
    /// The processor it is about.
    pub processor: String,
    /// What that does.
    pub summary: String,
    /// Its failures.
    pub fails: String,
    /// Where it is not as in Filebeat.
    pub differs: Option<String>,
    /// Kinds of cases that cannot be, and why.
    pub none: BTreeMap<String, String>,
    /// The cases, in the order of the file.
    pub cases: Vec<Case>,
}

/// All golden files of a folder for the documentation: `${NAME}` is `NAME`.
pub fn read_folder_for_page(folder: &Path) -> Result<Vec<GoldenFile>> {
    paths_in(folder)?
        .into_iter()
        .map(|path| GoldenFile::parse(&path, named(&read(&path)?)))
        .collect()
}

/// `${NAME}`, which only a test knows, becomes `NAME`.
fn named(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("${") {
        let Some((name, after)) = behind.split_once('}') else { break };
        out.push_str(before);
        if name
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
        {
            out.push_str(name);
        } else {
            out.push_str(&format!("${{{name}}}"));
        }
        rest = after;
    }
    out + rest
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}

/// All golden files of a folder, by name. `${NAME}` is replaced by the variables of that name.
pub fn read_folder(folder: &Path, variables: &[(&str, String)]) -> Result<Vec<GoldenFile>> {
    paths_in(folder)?.into_iter().map(|path| GoldenFile::read(&path, variables)).collect()
}

fn paths_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "yml") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

impl GoldenFile {
    /// Reads the file.
    pub fn read(path: &Path, variables: &[(&str, String)]) -> Result<Self> {
        let mut text = read(path)?;
        for (variable, value) in variables {
            text = text.replace(&format!("${{{variable}}}"), value);
        }
        Self::parse(path, text)
    }

    fn parse(path: &Path, text: String) -> Result<Self> {
        let name = path.display().to_string();
        let settings = Settings::parse(&name, &text)?;
        let problems = Problems::new();
        let root = settings.root(&problems);
        let mut cases = Vec::new();
        for section in root.sections("cases") {
            cases.push(Case::read(&section).with_context(|| name.clone())?);
            section.accept("processors");
        }
        let file = Self {
            path: path.to_owned(),
            processor: root.string("processor").required(),
            summary: root.string("summary").required(),
            fails: root.string("fails").required(),
            differs: root.string("differs").optional(),
            none: root.string_map("none").or_else(BTreeMap::new),
            cases,
            text: text.clone(),
        };
        drop(root);
        no_problems(&problems, &name)?;
        file.check()?;
        Ok(file)
    }

    /// The file has the processor's name, and a case of every kind or a reason.
    fn check(&self) -> Result<()> {
        let name = self.path.display();
        let stem = self.path.file_stem().unwrap_or_default();
        ensure!(*stem == *self.processor, "{name} is about `{}`", self.processor);
        for (word, kind) in Kind::ASKED {
            let there = self.cases.iter().any(|case| case.kind == kind);
            ensure!(
                there != self.none.contains_key(word),
                "{name} needs a case of kind `{word}`, or a reason why there is none under `none`"
            );
        }
        for word in self.none.keys() {
            let known = Kind::ASKED.iter().any(|(known, _)| known == word);
            ensure!(known, "{name}: `none` names `{word}`, which is no kind of case");
        }
        Ok(())
    }
}
