//! `filebeat.modules` and the files of `filebeat.config.modules`: the inputs and ingest pipelines of modules.

use crate::config_files;
use crate::outputs::Outputs;
use crate::root_settings::{MODULES, MODULES_PATH};
use skidder_config::{Item, Node, Problem, Problems, Section, Settings, Subject};
use skidder_modules::{Builtins, Fileset, ModulePlace, Modules, Overrides, Version, modules_in};
use skidder_os::{FileKind, Fs};
use skidder_output_elasticsearch::{Pipeline, PipelineGroup, PipelineSource};
use skidder_outputs::Context as OutputContext;
use skidder_pipeline::Need;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

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
    let problem = Problem::error(position.or_else(|| beat.position().cloned()), message)
        .about(Subject::Unsupported)
        .hint(hint);
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
    /// The filesets of the configuration that was started with: events wait for their pipelines.
    filesets: Vec<Fileset>,
    /// Filesets that came later, by the key of the input of autodiscover; those of a reload have [`RELOAD`].
    later: BTreeMap<String, Later>,
}

/// The key of the filesets that a reload brought, and what needs their pipelines.
const RELOAD: &str = "the configuration that was read again";

/// Filesets that came during the run, while something needs them.
#[derive(Debug)]
struct Later {
    filesets: Vec<Fileset>,
    /// What needs them, for people.
    about: String,
    /// The owner of what is lent to those that show a failure.
    alive: Arc<()>,
}

impl State {
    /// All filesets, those of the configuration first, with what needs them if they came later.
    fn all(&self) -> impl Iterator<Item = (&Fileset, Option<&Later>)> {
        let later = self.later.values();
        let later = later.flat_map(|later| later.filesets.iter().map(move |it| (it, Some(later))));
        self.filesets.iter().map(|fileset| (fileset, None)).chain(later)
    }

    /// Counts a change, unless all `filesets` with pipelines are there.
    fn note(&mut self, filesets: &[Fileset]) {
        let has = |fileset: &Fileset| self.all().any(|(other, _)| other.is_same(fileset));
        let is_new = |fileset: &&Fileset| fileset.has_pipelines() && !has(fileset);
        self.revision += u64::from(filesets.iter().any(|fileset| is_new(&fileset)));
    }

    fn put(&mut self, key: &str, about: &str, filesets: Vec<Fileset>) {
        self.note(&filesets);
        let before = self.later.remove(key);
        if !filesets.is_empty() {
            // The same input, read anew.
            let alive = before.map(|before| before.alive).unwrap_or_default();
            self.later.insert(key.to_owned(), Later { filesets, about: about.to_owned(), alive });
        }
    }
}

impl ModulePipelines {
    /// Of the filesets that the program starts with.
    pub(crate) fn new(overwrites: bool) -> Self {
        Self { overwrites, state: RwLock::default() }
    }

    /// The filesets that the program starts with.
    pub(crate) fn start(&self, filesets: Vec<Fileset>) {
        let mut state = self.write();
        state.note(&filesets);
        state.filesets = filesets;
    }

    /// The filesets of the configuration that was read again. Outputs try to load the pipelines of new ones before they
    /// send further events.
    pub(crate) fn reload(&self, filesets: Vec<Fileset>) {
        let mut state = self.write();
        let is_known =
            |fileset: &Fileset| state.filesets.iter().any(|known| known.is_same(fileset));
        let (known, new): (Vec<_>, Vec<_>) = filesets.into_iter().partition(is_known);
        state.put(RELOAD, RELOAD, new);
        state.filesets = known;
    }

    /// The filesets of an input that autodiscover has made; `about` says what it is for.
    pub(crate) fn add(&self, key: &str, about: &str, filesets: Vec<Fileset>) {
        self.write().put(key, about, filesets);
    }

    /// Drops the filesets of made inputs that do not run any more. Their pipelines stay on the server.
    pub(crate) fn retain(&self, runs: impl Fn(&str) -> bool) {
        self.write().later.retain(|key, _| key == RELOAD || runs(key));
    }

    /// The filesets of the configuration.
    pub(crate) fn filesets(&self) -> Vec<Fileset> {
        let state = self.read();
        let of_reload = state.later.get(RELOAD).map_or(&[][..], |later| &later.filesets);
        state.filesets.iter().chain(of_reload).cloned().collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PipelineSource for ModulePipelines {
    fn revision(&self) -> u64 {
        self.read().revision
    }

    fn groups(&self, version: &str) -> Result<Vec<PipelineGroup>, String> {
        let version = Version::parse(version)
            .ok_or_else(|| format!("the server has the version `{version}`, which is none"))?;
        let state = self.read();
        let mut groups: Vec<PipelineGroup> = Vec::new();
        for (fileset, later) in state.all() {
            let need = later.map(|later| Need {
                about: later.about.clone(),
                alive: Arc::downgrade(&later.alive),
            });
            let group = group_of(fileset, version);
            // Many containers have the same.
            if let Some(same) = groups.iter_mut().find(|other| other.is_same(&group)) {
                same.needs.extend(need);
                continue;
            }
            let holds_events = need.is_none();
            groups.push(PipelineGroup { holds_events, needs: need.into_iter().collect(), ..group });
        }
        Ok(groups)
    }

    fn overwrites(&self) -> bool {
        self.overwrites
    }
}

fn group_of(fileset: &Fileset, version: Version) -> PipelineGroup {
    let name = format!("{}/{}", fileset.module(), fileset.name());
    let pipelines = fileset.pipelines(version);
    let pipelines = pipelines.map(|pipelines| {
        let pipeline = |one: skidder_modules::Pipeline| Pipeline { id: one.id, body: one.body };
        pipelines.into_iter().map(pipeline).collect()
    });
    let requires = fileset.requirements().iter();
    PipelineGroup {
        requires: requires.map(|one| (one.processor.clone(), one.plugin.clone())).collect(),
        pipelines: pipelines.map_err(|error| format!("`{name}`: {error}")),
        name,
        holds_events: true,
        needs: Vec::new(),
    }
}
