//! `filebeat.modules` and the files of `filebeat.config.modules`: the inputs and ingest pipelines of modules.

use crate::config_files;
use crate::outputs::Outputs;
use crate::root_settings::{MODULES, MODULES_PATH};
use skidder_config::{Item, Node, Problem, Problems, Section, Settings};
use skidder_modules::{Builtins, Fileset, ModulePlace, Modules, Overrides, Version, modules_in};
use skidder_os::{FileKind, Fs};
use skidder_output_elasticsearch::{Pipeline, PipelineGroup, PipelineSource};
use skidder_outputs::Context as OutputContext;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

/// The folder of modules in `path.home`.
const FOLDER: &str = "module";

/// The folder of modules of an installed Filebeat.
const INSTALLED: &str = "/usr/share/filebeat/module";

/// The folder of skidder's own modules, as its package installs it.
const OWN: &str = "/usr/share/skidder/module";

/// What runs of modules.
#[derive(Default)]
pub(crate) struct Started {
    /// The enabled filesets.
    pub(crate) filesets: Vec<Fileset>,
    /// An input for each, as files with inputs.
    pub(crate) inputs: Vec<Arc<Settings>>,
}

/// Reads all modules of the configuration; mistakes go to the problems of the section `filebeat`.
pub(crate) fn start(
    beat: &Section<'_>,
    settings: &Settings,
    context: &OutputContext,
    overrides: &Overrides,
) -> Started {
    let problems = beat.problems();
    let own_path = beat.get(&MODULES_PATH).optional();
    let items = beat.any(&MODULES).map_or_else(Vec::new, Item::into_items);
    let of_files = config_files::items(settings.module_files(), problems);
    let is_named =
        !overrides.settings.is_empty() || overrides.modules.iter().any(|name| !name.is_empty());
    if !is_named && !items.iter().chain(&of_files).any(is_on) && !overrides.force {
        return Started::default();
    }
    let folders = find_folders(&*context.fs, settings, own_path);
    if folders.is_empty() {
        // Where no fileset is on, nothing is missing.
        let first = items.iter().chain(&of_files).find(|item| has_fileset(item));
        if first.is_some() || is_named {
            refuse_without_folder(beat, settings, first);
        }
        return Started::default();
    }
    let renderer = ModuleRenderer::new(context, settings, folders);
    let modules = renderer.modules(problems);
    let mut filesets = modules.of_configuration(items, overrides);
    filesets.extend(modules.of_file(of_files, overrides));
    let inputs = renderer.inputs(&filesets, problems);
    Started { filesets, inputs }
}

/// Renders modules, also while the program runs: hints of containers can name one.
#[derive(Clone)]
pub(crate) struct ModuleRenderer {
    fs: Arc<dyn Fs>,
    folders: Vec<PathBuf>,
    builtins: Builtins,
    settings: Settings,
}

impl ModuleRenderer {
    /// Of the folders of modules; `None` if there is none.
    pub(crate) fn find(
        beat: &Section<'_>,
        settings: &Settings,
        context: &OutputContext,
    ) -> Option<Self> {
        let own_path = beat.get(&MODULES_PATH).optional();
        let folders = find_folders(&*context.fs, settings, own_path);
        (!folders.is_empty()).then(|| Self::new(context, settings, folders))
    }

    fn new(context: &OutputContext, settings: &Settings, folders: Vec<PathBuf>) -> Self {
        let host = crate::agent::hostname();
        let builtins = Builtins::new(&context.beat, &context.version, &host);
        Self { fs: Arc::clone(&context.fs), folders, builtins, settings: settings.clone() }
    }

    fn modules<'a>(&'a self, problems: &'a Problems) -> Modules<'a> {
        let Self { fs, folders, builtins, settings } = self;
        Modules { fs: &**fs, folders, builtins, settings, problems }
    }

    /// The filesets of a module; `None` if there is no such module.
    pub(crate) fn filesets_of(&self, module: &str) -> Option<Vec<String>> {
        let filesets = self.modules(&Problems::new()).filesets_of(module);
        (!filesets.is_empty()).then_some(filesets)
    }

    /// The filesets and inputs of a list of modules, such as a file in `modules.d`.
    pub(crate) fn render(&self, list: &Settings, problems: &Problems) -> Started {
        let items = list.items(problems);
        let filesets = self.modules(problems).of_file(items, &Overrides::default());
        let inputs = self.inputs(&filesets, problems);
        Started { filesets, inputs }
    }

    fn inputs(&self, filesets: &[Fileset], problems: &Problems) -> Vec<Arc<Settings>> {
        let environment = |name: &str| std::env::var(name).ok();
        let mut inputs = Vec::new();
        for fileset in filesets {
            match fileset.input(&self.settings, &environment) {
                Ok(input) => inputs.push(Arc::new(input)),
                Err(error) => {
                    let place =
                        format!("module `{}`, fileset `{}`: ", fileset.module(), fileset.name());
                    self.modules(problems).report(fileset.position(), &place, error);
                }
            }
        }
        inputs
    }
}

/// Whether a module is not turned off.
fn is_on(item: &Item<'_>) -> bool {
    !is_off(item.node())
}

/// Whether a fileset of a module that is on is not turned off.
fn has_fileset(item: &Item<'_>) -> bool {
    let names = ["module", "enabled", "path"];
    let module = item.node().entries();
    let mut filesets = module.iter().filter(|(name, _)| !names.contains(name));
    is_on(item) && filesets.any(|(_, fileset)| !is_off(fileset))
}

fn is_off(node: &Node) -> bool {
    node.entries().get("enabled").is_some_and(|enabled| enabled.text() == Some("false"))
}

/// The folders of modules: the configured one, that in `path.home`, that of an installed Filebeat, and our own; without
/// those that are not there. None if the configured one cannot be read.
fn find_folders(fs: &dyn Fs, settings: &Settings, own: Option<PathBuf>) -> Vec<PathBuf> {
    let home = &settings.paths().home;
    let is_folder = |path: &PathBuf| {
        fs.metadata(path).is_ok_and(|metadata| metadata.kind == FileKind::Directory)
    };
    let own = own.map(|own| home.join(own));
    if own.as_ref().is_some_and(|own| fs.read_dir(own, &mut |_| {}).is_err()) {
        return Vec::new();
    }
    let mut folders: Vec<PathBuf> = own.into_iter().collect();
    for other in [home.join(FOLDER), INSTALLED.into(), OWN.into()] {
        if is_folder(&other) && !folders.contains(&other) {
            folders.push(other);
        }
    }
    folders
}

/// The modules that there are.
pub(crate) fn all(fs: &dyn Fs, settings: &Settings) -> BTreeMap<String, ModulePlace> {
    let problems = Problems::new();
    let root = settings.root(&problems);
    let beat = root.section("filebeat");
    let own = beat.get(&MODULES_PATH).optional();
    beat.skip();
    root.skip();
    modules_in(fs, &find_folders(fs, settings, own))
}

/// Reports that modules are on and there is no folder with them. Filebeat only logs it, and reads nothing.
fn refuse_without_folder(beat: &Section<'_>, settings: &Settings, first: Option<&Item<'_>>) {
    let tried = if beat.has(MODULES_PATH.name()) {
        "`filebeat.modules_path` names no folder that can be read".to_owned()
    } else {
        let home = settings.paths().home.join(FOLDER);
        format!("none of `{}`, `{INSTALLED}` and `{OWN}` is a folder", home.display())
    };
    let message = format!("modules are on, but {tried}");
    let hint =
        "set `filebeat.modules_path` to the folder `module` of a Filebeat, or turn the modules off";
    let position = first.map(|item| item.node().position().clone());
    let problem = Problem::error(position.or_else(|| beat.position().cloned()), message).hint(hint);
    let severity = beat.problems().unknown_severity();
    beat.problems().push(Problem { severity, ..problem });
}

/// Checks the pipelines if an output loads them, and warns if none does.
pub(crate) fn warn_of_pipelines(root: &Section<'_>, filesets: &[Fileset], outputs: &Outputs) {
    let with = || filesets.iter().filter(|fileset| fileset.has_pipelines());
    if with().next().is_none() || outputs.wrong || outputs.built.is_empty() {
        return;
    }
    let loads = |kind: &str| kind == "elasticsearch";
    if outputs.built.iter().any(|(_, one)| loads(one.built.output.kind())) {
        for fileset in with() {
            if let Err(error) = fileset.pipelines(NEWEST) {
                let message =
                    format!("the pipelines of `{}/{}`: {error}", fileset.module(), fileset.name());
                root.problems().push(Problem::error(None, message).hint(error.hint()));
            }
        }
        return;
    }
    let message = "ingest pipelines of modules are not loaded: no output is `elasticsearch`";
    let hint = "if events reach Elasticsearch in another way, load the pipelines once: `skidder setup --pipelines` with \
                that output; else set `setup.pipelines.enabled: false`";
    let setup = root.section("setup");
    if setup.bool("pipelines.enabled").or(true) {
        root.warning("output", message, hint);
    }
    // The rest of it is read elsewhere.
    setup.skip();
}

/// A version that no server has yet: pipelines are as they are written.
const NEWEST: Version = Version::new(999, 0, 0);

/// The ingest pipelines of the filesets that run, for outputs to Elasticsearch.
#[derive(Debug)]
pub(crate) struct ModulePipelines {
    overwrites: bool,
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    /// 0 before there is a pipeline.
    revision: u64,
    filesets: Vec<Fileset>,
}

impl ModulePipelines {
    pub(crate) fn new(overwrites: bool) -> Self {
        Self { overwrites, state: RwLock::default() }
    }

    /// The filesets from now on; outputs load their pipelines before they send further events.
    pub(crate) fn replace(&self, filesets: Vec<Fileset>) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let is_same = state.filesets == filesets;
        let has_pipelines = filesets.iter().any(Fileset::has_pipelines);
        state.filesets = filesets;
        if !is_same && has_pipelines {
            state.revision += 1;
        }
    }

    /// Further filesets, which autodiscover has made.
    pub(crate) fn add(&self, filesets: Vec<Fileset>) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        for fileset in filesets {
            if !state.filesets.contains(&fileset) {
                state.revision += u64::from(fileset.has_pipelines());
                state.filesets.push(fileset);
            }
        }
    }

    /// The filesets.
    pub(crate) fn filesets(&self) -> Vec<Fileset> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).filesets.clone()
    }
}

impl PipelineSource for ModulePipelines {
    fn revision(&self) -> u64 {
        self.state.read().unwrap_or_else(PoisonError::into_inner).revision
    }

    fn groups(&self, version: &str) -> Result<Vec<PipelineGroup>, String> {
        let version = Version::parse(version)
            .ok_or_else(|| format!("the server has the version `{version}`, which is none"))?;
        self.filesets().iter().map(|fileset| group_of(fileset, version)).collect()
    }

    fn overwrites(&self) -> bool {
        self.overwrites
    }
}

fn group_of(fileset: &Fileset, version: Version) -> Result<PipelineGroup, String> {
    let name = format!("{}/{}", fileset.module(), fileset.name());
    let pipelines = fileset.pipelines(version).map_err(|error| format!("`{name}`: {error}"))?;
    let requires = fileset.requirements().iter();
    Ok(PipelineGroup {
        name,
        requires: requires.map(|one| (one.processor.clone(), one.plugin.clone())).collect(),
        pipelines: pipelines
            .into_iter()
            .map(|pipeline| Pipeline { id: pipeline.id, body: pipeline.body })
            .collect(),
    })
}
