//! An enabled fileset: its input and its pipelines.

use crate::compat;
use crate::error::ModuleError;
pub use crate::manifest::Requirement;
use crate::manifest::{Manifest, OldValue};
use crate::settings::{FILESET_NAME, MODULE_NAME};
use crate::template::{Scope, Variables};
use crate::version::Version;
use serde_json::Value as Json;
use skidder_config::{Lists, Node, Position, Settings, yaml_value};
use skidder_os::{Fs, read_to_end};
use std::path::{Path, PathBuf};

/// Largest file of a module, in bytes.
const FILE_BYTES_MAX: usize = 16 << 20;

/// The first version with pipelines that call others.
const SEVERAL_MIN: Version = Version::new(6, 5, 0);

/// The setting whose value is the folder above that of the modules, for templates that name files of a module.
const HOME: &str = "path.home";

/// The setting of an input that names a pipeline.
const PIPELINE: &str = "pipeline";

/// The settings of a fileset.
#[derive(Clone, Debug, Default)]
pub(crate) struct Configured {
    /// `var`.
    pub(crate) variables: Variables,
    /// `input`.
    pub(crate) input: Option<Node>,
    /// Texts in them that came from the keystore.
    pub(crate) secrets: Vec<String>,
}

/// A fileset with the values of its variables.
#[derive(Clone, Debug, PartialEq)]
pub struct Fileset {
    scope: Scope,
    /// The folder above that of the modules.
    home: String,
    variables: Variables,
    old_values: Vec<OldValue>,
    /// What the input's template is called in messages, and its text.
    input: (String, String),
    over: Option<Node>,
    secrets: Vec<String>,
    pipelines: Vec<PipelineFile>,
    requirements: Vec<Requirement>,
    /// Where its settings are.
    pub(crate) position: Option<Position>,
    /// Variables of the user that nothing uses.
    pub(crate) unused: Vec<String>,
}

/// The template of a pipeline.
#[derive(Clone, Debug, PartialEq)]
struct PipelineFile {
    id: String,
    path: PathBuf,
    text: String,
}

/// An ingest pipeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Pipeline {
    /// Its name on the server.
    pub id: String,
    /// What it does.
    pub body: Json,
}

impl Fileset {
    /// Whether another one is the same, wherever its settings are.
    pub fn is_same(&self, other: &Self) -> bool {
        Self { position: None, ..self.clone() } == Self { position: None, ..other.clone() }
    }

    /// Reads the fileset in the folder of its module; `settings` are those of the program.
    pub(crate) fn load(
        fs: &dyn Fs,
        settings: &Settings,
        module: &Path,
        scope: Scope,
        own: Configured,
    ) -> Result<Self, ModuleError> {
        let folder = module.join(&scope.fileset);
        let path = folder.join("manifest.yml");
        let manifest = Manifest::read(settings, &path, &read(fs, &path)?)?;
        let variables = manifest.variables(&scope, &path, &own.variables)?;
        let place = path.display().to_string();
        let input_path = folder.join(scope.render(&place, &manifest.input, &variables)?);
        let input = (
            format!("{} (rendered for {}/{})", input_path.display(), scope.module, scope.fileset),
            read(fs, &input_path)?,
        );
        let mut pipelines = Vec::new();
        for file in &manifest.pipelines {
            let file = scope.render(&place, file, &variables)?;
            let path = folder.join(&file);
            let text = read(fs, &path)?;
            pipelines.push(PipelineFile { id: scope.pipeline_id(&file), path, text });
        }
        let texts = || pipelines.iter().map(|file| &file.text).chain([&input.1]);
        let is_unused = |name: &&String| {
            !manifest.names().any(|declared| declared == name.as_str())
                && !texts().any(|text| names_variable(text, name))
        };
        let unused = own.variables.keys().filter(is_unused).cloned().collect();
        let home = module.parent().and_then(Path::parent).unwrap_or(module);
        Ok(Self {
            home: home.to_string_lossy().into_owned(),
            scope,
            variables,
            old_values: manifest.old_values,
            input,
            over: own.input,
            secrets: own.secrets,
            pipelines,
            requirements: manifest.requirements,
            position: None,
            unused,
        })
    }

    /// The name of its module.
    pub fn module(&self) -> &str {
        &self.scope.module
    }

    /// Its own name.
    pub fn name(&self) -> &str {
        &self.scope.fileset
    }

    /// Where its settings are.
    pub fn position(&self) -> Option<&Position> {
        self.position.as_ref()
    }

    /// The processors that its pipelines need.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether it has pipelines.
    pub fn has_pipelines(&self) -> bool {
        !self.pipelines.is_empty()
    }

    /// Its input: a list of one, as in a file with inputs. Variables are replaced by `settings`, those of the
    /// program, and by the environment; `path.home` is the folder above that of the modules.
    pub fn input(
        &self,
        settings: &Settings,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Settings, ModuleError> {
        let (name, text) = &self.input;
        let text = self.scope.render(name, text, &self.variables)?;
        let mut input =
            settings.part_of_text(name, &text, &self.secrets).map_err(ModuleError::Text)?;
        if input.node().as_map().is_none() {
            let what = "the template made no map of settings".to_owned();
            return Err(ModuleError::Wrong { path: PathBuf::from(name), what });
        }
        if let Some(over) = &self.over {
            input = input.overlaid(over, &|name| match name {
                "paths" => Lists::Replaced,
                "processors" => Lists::Appended,
                _ => Lists::Mixed,
            });
        }
        if let Some(first) = self.pipelines.first()
            && !input.node().entries().contains_key(PIPELINE)
        {
            input = input.with_text(PIPELINE, &first.id);
        }
        let input = input
            .with_text(MODULE_NAME.name(), &self.scope.module)
            .with_text(FILESET_NAME.name(), &self.scope.fileset);
        let settings = settings.with_text(HOME, &self.home);
        Ok(settings.expanded_part(&input, environment).as_item())
    }

    /// Its pipelines for a server of this version.
    pub fn pipelines(&self, version: Version) -> Result<Vec<Pipeline>, ModuleError> {
        if self.pipelines.len() > 1 && version < SEVERAL_MIN {
            return Err(ModuleError::TooOld {
                fileset: format!("{}/{}", self.module(), self.name()),
                version,
                least: SEVERAL_MIN,
            });
        }
        let mut variables = self.variables.clone();
        for old in self.old_values.iter().filter(|old| version < old.before) {
            variables.insert(old.variable.clone(), old.value.clone());
        }
        self.pipelines.iter().map(|file| self.pipeline(file, &variables, version)).collect()
    }

    fn pipeline(
        &self,
        file: &PipelineFile,
        variables: &Variables,
        version: Version,
    ) -> Result<Pipeline, ModuleError> {
        let wrong = |what| ModuleError::Wrong { path: file.path.clone(), what };
        let name = file.path.display().to_string();
        let text = self.scope.render_pipeline(&name, &file.text, variables)?;
        let extension = file.path.extension().and_then(|extension| extension.to_str());
        let mut body = match extension.map(str::to_ascii_lowercase).as_deref() {
            Some("json") => {
                serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?
            }
            Some("yml" | "yaml") => {
                let name = format!("{name} (rendered for {}/{})", self.module(), self.name());
                Json::from(&yaml_value(&name, &text).map_err(ModuleError::Text)?)
            }
            _ => return Err(wrong("a pipeline is a `.yml` or `.json` file".to_owned())),
        };
        compat::adapt(&mut body, version).map_err(wrong)?;
        Ok(Pipeline { id: file.id.clone(), body })
    }
}

/// The text of a file of a module.
pub(crate) fn read(fs: &dyn Fs, path: &Path) -> Result<String, ModuleError> {
    let text =
        fs.open(path).and_then(|file| read_to_end(&*file, FILE_BYTES_MAX)).and_then(|bytes| {
            String::from_utf8(bytes)
                .map_err(|error| std::io::Error::new(std::io::ErrorKind::InvalidData, error))
        });
    text.map_err(|error| ModuleError::Unreadable { path: path.to_owned(), error })
}

/// Whether a template has `.name`, and not only the beginning of a longer name.
fn names_variable(template: &str, name: &str) -> bool {
    let used = format!(".{name}");
    let mut found = template.match_indices(&used).map(|(at, used)| &template[at + used.len()..]);
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    found.any(|behind| !behind.as_bytes().first().is_some_and(is_of_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_name_is_not_the_name() {
        let template = "{{ range .paths }}{{ .timezone }}";
        assert!(names_variable(template, "paths") && names_variable(template, "timezone"));
        assert!(!names_variable(template, "path") && !names_variable(template, "timezon"));
        assert!(names_variable(".paths_x .paths", "paths"));
    }
}
