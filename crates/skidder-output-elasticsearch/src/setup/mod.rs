//! `setup.*`: the index template and the lifecycle policy that the server should have before events come.
//!
//! As libbeat's `idxmgmt` and `template`: at the first connection of a run, what is missing is put there; what is
//! there is left alone, unless `overwrite` is set. Elasticsearch has lifecycle policies (ILM), its serverless
//! kind a lifecycle in the template (DSL), OpenSearch neither.

mod declared;
#[cfg(test)]
mod fake;
mod fields;
mod install;
mod late;
mod mapping;
mod pipelines;
mod read;
mod template;

pub use declared::{SETUP, SETUP_DASHBOARDS, SETUP_KIBANA};
pub(crate) use install::{Ask, Installer, SetupError, Step};
pub(crate) use pipelines::PipelineLoader;
pub use pipelines::{Pipeline, PipelineGroup, PipelineSource, Pipelines};
pub use template::Template;

use serde_json::Value;

/// Whether lifecycles are set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enabled {
    /// Yes; a server that has none is a mistake.
    Yes,
    /// Where the server has them.
    Auto,
    /// No.
    No,
}

/// A lifecycle: `setup.ilm` or `setup.dsl`.
#[derive(Clone, Debug, PartialEq)]
pub struct Lifecycle {
    /// `enabled`.
    pub enabled: Enabled,
    /// `policy_name`; nothing for `setup.dsl`.
    pub name: String,
    /// The policy to install: the text of `policy_file`, or the default.
    pub policy: Value,
    /// `check_exists`: whether to ask the server what it has.
    pub check_exists: bool,
    /// `overwrite`: replaces existing ones too.
    pub overwrite: bool,
}

/// `setup`, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// `setup.template`, if it is enabled.
    pub template: Option<Template>,
    /// `setup.ilm`.
    pub ilm: Lifecycle,
    /// `setup.dsl`.
    pub dsl: Lifecycle,
    /// `setup.pipelines.enabled`: pipelines are loaded during a run.
    pub loads_pipelines: bool,
    /// The ingest pipelines to load.
    pub pipelines: Pipelines,
}

impl Setup {
    /// Whether there is anything to do.
    pub(crate) fn is_needed(&self) -> bool {
        self.template.is_some() || self.ilm.enabled != Enabled::No
    }
}
