//! Loads a folder: index patterns first, then dashboards, each with the objects that it refers to.

use crate::client::{Client, KibanaError};
use crate::settings::Dashboards;
use crate::{folder, rewrite};
use serde_json::Value;
use skidder_os::Fs;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why dashboards are not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Kibana cannot be used.
    #[error("dashboards are not loaded: {0}")]
    Kibana(#[from] KibanaError),
    /// There is no Kibana.
    #[error("dashboards are not loaded: `setup.kibana.enabled` is false, or its `host` is wrong")]
    NoKibana,
    /// There is nothing to load.
    #[error(
        "no dashboards: `{path}` {what}; skidder has none of its own: copy the folder `kibana` of a Filebeat to `path.home`, \
         or set `setup.dashboards.directory`"
    )]
    Nothing {
        /// The folder.
        path: PathBuf,
        /// What it lacks.
        what: String,
    },
    /// Some files are not loaded; the others are.
    #[error("{loaded} files are loaded, {} are not:\n{}", .failed.len(), .failed.join("\n"))]
    Files {
        /// Number of files in Kibana.
        loaded: usize,
        /// The others, with the reason.
        failed: Vec<String>,
    },
}

/// Files with the kind of what is in them.
type Files = Vec<(&'static str, PathBuf)>;

impl Dashboards {
    /// Loads all; `report` gets a line for each step. Gives the number of files.
    ///
    /// # Errors
    ///
    /// The first problem with Kibana or the folder, or all problems with files.
    pub async fn load(
        &self,
        fs: &Arc<dyn Fs>,
        report: &mut (dyn FnMut(&str) + Send),
    ) -> Result<usize, LoadError> {
        let kibana = self.kibana.as_ref().ok_or(LoadError::NoKibana)?;
        let (directory, files) = self.files(&**fs)?;
        let mut client = Client::new(kibana, fs)?;
        let version = self.greet(&mut client).await?;
        report(&format!("Kibana {version} at {}", kibana.url));
        let mut loading = Loading { dashboards: self, fs: &**fs, directory, seen: BTreeSet::new() };
        let (mut loaded, mut failed) = (0, Vec::new());
        for (kind, path) in files {
            if loading.seen.contains(&path) {
                loaded += 1;
                continue;
            }
            match loading.file(&client, kind, &path).await {
                Ok(()) => {
                    loaded += 1;
                    report(&format!("{kind}: loaded `{}`", path.display()));
                }
                Err(error) => failed.push(format!("`{}`: {error}", path.display())),
            }
        }
        if failed.is_empty() { Ok(loaded) } else { Err(LoadError::Files { loaded, failed }) }
    }

    /// The folder, and its files with their kind.
    fn files(&self, fs: &dyn Fs) -> Result<(PathBuf, Files), LoadError> {
        let nothing = |path: &Path, what: String| LoadError::Nothing { path: path.into(), what };
        let unreadable =
            |error: std::io::Error| nothing(&self.directory, format!("cannot be read: {error}"));
        let directory = folder::of_version(fs, &self.directory).map_err(unreadable)?;
        let mut files = Vec::new();
        for (kind, off) in
            [("index-pattern", self.no_index_patterns), ("dashboard", self.only_index)]
        {
            if off {
                continue;
            }
            let found = folder::files(fs, &directory, kind).map_err(unreadable)?;
            let found = found.unwrap_or_default();
            // Index patterns may be missing: a dashboard can bring its own.
            if found.is_empty() && (kind == "dashboard" || self.only_index) {
                return Err(nothing(&directory, format!("has no files in `{kind}`")));
            }
            files.extend(found.into_iter().map(|path| (kind, path)));
        }
        Ok((directory, files))
    }

    /// Waits for a Kibana that can be used, as `retry` says.
    async fn greet(&self, client: &mut Client<'_>) -> Result<String, KibanaError> {
        let mut attempts = 0_u32;
        loop {
            let error = match client.greet().await {
                Ok(version) => return Ok(version),
                Err(error) => error,
            };
            let Some(retry) = self.retry else { return Err(error) };
            if retry.maximum > 0 && attempts >= retry.maximum {
                return Err(error);
            }
            attempts = attempts.saturating_add(1);
            tracing::warn!(%error, attempts, "Kibana is not ready for dashboards; trying again");
            tokio::time::sleep(retry.interval).await;
        }
    }
}

/// Files of a folder on their way.
struct Loading<'a> {
    dashboards: &'a Dashboards,
    fs: &'a dyn Fs,
    directory: PathBuf,
    /// Files that Kibana has.
    seen: BTreeSet<PathBuf>,
}

impl Loading<'_> {
    /// Loads a file with what it refers to; the error is text for a message.
    async fn file(&mut self, client: &Client<'_>, kind: &str, path: &Path) -> Result<(), String> {
        let mut taken = BTreeSet::new();
        let mut text = String::new();
        self.gather(kind, path, &mut taken, &mut text)?;
        let name = path.with_extension("ndjson");
        let name = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
        client.import(&name, &text).await.map_err(|error| error.to_string())?;
        self.seen.append(&mut taken);
        Ok(())
    }

    /// Appends the objects of a file, each behind those that it refers to.
    fn gather(
        &self,
        kind: &str,
        path: &Path,
        taken: &mut BTreeSet<PathBuf>,
        text: &mut String,
    ) -> Result<(), String> {
        if self.seen.contains(path) || !taken.insert(path.to_owned()) {
            return Ok(());
        }
        let objects = folder::objects(self.fs, path)?;
        let is_bundle = path.extension().is_some_and(|end| end == "ndjson");
        for mut object in objects {
            for (kind, id) in references(&object) {
                let other = self.directory.join(&kind).join(format!("{id}.json"));
                // An export (`ndjson`) has what it refers to.
                if is_bundle && self.fs.metadata(&other).is_err() {
                    continue;
                }
                self.gather(&kind, &other, taken, text)
                    .map_err(|error| format!("it needs {kind} `{id}`: {error}"))?;
            }
            self.rewrite(kind, &mut object);
            let mut line = object.to_string();
            for (from, to) in
                self.dashboards.replacements.iter().filter(|(from, _)| !from.is_empty())
            {
                line = line.replace(from, to);
            }
            writeln!(text, "{line}").expect("a string takes everything");
        }
        Ok(())
    }

    fn rewrite(&self, kind: &str, object: &mut Value) {
        let index = self.dashboards.index.as_str();
        let is_pattern = kind == "index-pattern" || object["type"] == "index-pattern";
        if !index.is_empty() {
            if is_pattern {
                rewrite::rename_pattern(object, index);
            } else {
                rewrite::replace_index(object, index);
            }
        }
        rewrite::encode_texts(object);
    }
}

/// Kind and id of what an object refers to, without index patterns and names that lead out of the folder.
fn references(object: &Value) -> Vec<(String, String)> {
    let list = object["references"].as_array();
    let is_name = |text: &str| !text.is_empty() && !text.contains(['/', '\\']) && text != "..";
    let each = list.into_iter().flatten().filter_map(|reference| {
        let (kind, id) = (reference["type"].as_str()?, reference["id"].as_str()?);
        let is_file = kind != "index-pattern" && is_name(kind) && is_name(id);
        is_file.then(|| (kind.to_owned(), id.to_owned()))
    });
    each.collect()
}
