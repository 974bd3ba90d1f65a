//! Why a fileset cannot be used.

use crate::version::Version;
use skidder_config::Problems;
use std::path::PathBuf;

/// Why a fileset cannot be used, or a pipeline of it.
#[derive(Debug, thiserror::Error)]
pub enum ModuleError {
    /// There is no folder of this name.
    #[error("there is no module `{module}` in {}", list(.folders))]
    NoModule {
        /// The module.
        module: String,
        /// The folders of modules.
        folders: Vec<PathBuf>,
    },
    /// The module has no such fileset.
    #[error("the module `{module}` has no fileset `{fileset}`")]
    NoFileset {
        /// The module.
        module: String,
        /// The fileset.
        fileset: String,
        /// The filesets that it has.
        known: Vec<String>,
    },
    /// The module is on, and none of its filesets is.
    #[error("the module `{module}` is on, but none of its filesets")]
    NoneEnabled {
        /// The module.
        module: String,
        /// The filesets that it has.
        known: Vec<String>,
    },
    /// A file of the module cannot be read.
    #[error("`{}` cannot be read: {error}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// A template cannot be executed.
    #[error("the template `{name}` fails: {error}")]
    Template {
        /// The file, or where in the manifest it is.
        name: String,
        /// The error of the template engine, with the line.
        error: String,
    },
    /// A file, or what a template made of it, is no YAML.
    #[error("{0}")]
    Text(Problems),
    /// The server is too old for a fileset with several pipelines.
    #[error(
        "the fileset `{fileset}` has several pipelines, which need Elasticsearch {least}; the server has {version}"
    )]
    TooOld {
        /// Module and fileset.
        fileset: String,
        /// The version of the server.
        version: Version,
        /// The first version that can have them.
        least: Version,
    },
    /// A file says something that makes no sense.
    #[error("`{}`: {what}", .path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
}

fn list(folders: &[PathBuf]) -> String {
    let names: Vec<String> = folders.iter().map(|one| format!("`{}`", one.display())).collect();
    names.join(", ")
}

impl ModuleError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        let known = |filesets: &[String]| match filesets {
            [] => "it has none: a fileset is a folder with a `manifest.yml`".to_owned(),
            filesets => format!("it has `{}`", filesets.join("`, `")),
        };
        match self {
            Self::NoModule { .. } => {
                "look for the name in the folders, or set `filebeat.modules_path` to the folder \
                                      `module` of an installed Filebeat"
                    .to_owned()
            }
            Self::NoFileset { known: filesets, .. } => known(filesets),
            Self::NoneEnabled { known: filesets, .. } => {
                let advice = "set `enabled: true` in at least one fileset, or `enabled: false` in the module";
                format!("{advice}; {}", known(filesets))
            }
            Self::Template { error, .. } if error.contains("no entry for key") => {
                "set the variable as `var.NAME` of the fileset, or declare it in the manifest"
                    .to_owned()
            }
            Self::Template { .. } => {
                "check the values of `var` of the fileset: a list may be expected".to_owned()
            }
            Self::TooOld { .. } | Self::Unreadable { .. } | Self::Text(_) | Self::Wrong { .. } => {
                String::new()
            }
        }
    }
}
