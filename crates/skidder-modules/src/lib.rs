//! Filebeat's modules: from a module folder and the settings of a module to input configurations and ingest pipelines.
//!
//! A module is a folder with a folder for each fileset: `manifest.yml` declares variables and names a template of an
//! input (`config/*.yml`, Go's `text/template`) and ingest pipelines (`ingest/*.yml` or `*.json`). [`Modules`] reads
//! `filebeat.modules` and the files of `filebeat.config.modules`, and returns the enabled filesets. A [`Fileset`]
//! makes its input ([`Fileset::input`]), which is read like any other, and its pipelines ([`Fileset::pipelines`]),
//! which are adapted to the version of the server.
//!
//! This crate starts no input and sends no request.

mod compat;
mod error;
mod fileset;
mod manifest;
mod modules;
mod settings;
mod template;
mod version;

pub use error::ModuleError;
pub use fileset::{Fileset, Pipeline, Requirement};
pub use modules::{ModulePlace, Modules, Overrides, modules_in};
pub use settings::{FILESET, FILESET_NAME, MODULE, MODULE_NAME, MODULE_SETTINGS};
pub use template::Builtins;
pub use version::Version;
