//! From the settings of modules to enabled filesets.

use crate::error::ModuleError;
use crate::fileset::{Configured, Fileset, read};
use crate::settings::{ENABLED, FILESET_ENABLED, INPUT, NAME, PATH, VAR};
use crate::template::{Builtins, Scope};
use skidder_config::{
    Item, Lists, Node, Position, Problem, Problems, Section, Settings, Severity, Value, yaml_value,
};
use skidder_os::{FileKind, Fs};
use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The name that stands for any module or fileset in `-M`.
const ANY: &str = "*";

/// What the command line says of modules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `--modules`: names of modules that run beside those of the configuration.
    pub modules: Vec<String>,
    /// `-M`, in order: `module.fileset.setting=value`.
    pub settings: Vec<String>,
    /// Filesets that the configuration turns off run too.
    pub enable_all: bool,
    /// All filesets of the modules run, also those that the configuration does not name.
    pub force: bool,
}

/// The modules of some folders.
pub struct Modules<'a> {
    /// The file system with the folders.
    pub fs: &'a dyn Fs,
    /// The folders of modules. A module that is in several counts in the first.
    pub folders: &'a [PathBuf],
    /// What every template knows.
    pub builtins: &'a Builtins,
    /// The settings of the program, for `${...}`.
    pub settings: &'a Settings,
    /// Where mistakes go.
    pub problems: &'a Problems,
}

/// A module that is on, and the filesets that its settings name.
struct Named {
    name: String,
    position: Option<Position>,
    /// The path in messages.
    path: String,
    filesets: Vec<(String, Option<Node>)>,
}

/// The settings of `-M`.
struct Over(Settings);

impl Over {
    /// Settings for a fileset, the most general first.
    fn of(&self, module: &str, fileset: &str) -> Vec<&Node> {
        let find = |module: &str, fileset: &str| {
            let of_module = self.0.node().entries().remove(module)?;
            of_module.entries().remove(fileset)
        };
        [find(ANY, ANY), find(module, ANY), find(module, fileset)].into_iter().flatten().collect()
    }

    /// Entries that are for no fileset, each as `module.fileset` or `module` and with a hint. `modules` are those that are
    /// on, `running` the filesets that run, each with its module.
    fn without_effect(
        &self,
        modules: &[String],
        running: &[(&str, &str)],
    ) -> Vec<(String, String)> {
        let full = |(module, fileset): &(&str, &str)| format!("{module}.{fileset}");
        let list = |some: Vec<String>| match some.as_slice() {
            [] => "none runs".to_owned(),
            some => format!("those that run: `{}`", some.join("`, `")),
        };
        let all = || list(running.iter().map(full).collect());
        let mut found = Vec::new();
        for (module, filesets) in self.0.node().entries() {
            if module != ANY && !modules.iter().any(|one| one == module) {
                let hint = "the module does not run: `-M` is for modules of `filebeat.modules` and `--modules`, not for \
                            those of `filebeat.config.modules`";
                found.push((module.to_owned(), format!("{hint}; {}", all())));
                continue;
            }
            for fileset in filesets.entries().into_keys() {
                let of = full(&(module, fileset));
                let same = || running.iter().filter(|(_, name)| *name == fileset);
                if module == ANY && fileset != ANY {
                    let hint = "as in Filebeat, `*` for the module is only for all filesets, as `*.*`; name the module";
                    let others = same().map(full).collect::<Vec<_>>();
                    let others = if others.is_empty() { all() } else { list(others) };
                    found.push((of, format!("{hint}: {others}")));
                } else if !running.iter().any(|(one, other)| {
                    (module == ANY || *one == module) && (fileset == ANY || *other == fileset)
                }) {
                    found.push((of, format!("the fileset is turned off; {}", all())));
                }
            }
        }
        found
    }

    /// Refuses entries that name no setting of a fileset, as Filebeat does.
    fn check(&self, problems: &Problems) {
        let modules = self.0.node().entries();
        let filesets = modules.values().flat_map(|module| module.entries().into_values());
        for node in modules.values().copied().chain(filesets) {
            if node.as_map().is_none() {
                let message = "the name of a fileset or of its setting is missing";
                let hint = "write `-M MODULE.FILESET.SETTING=VALUE`, for example `-M nginx.access.enabled=true`";
                problems.push(Problem::error(node.position().clone(), message).hint(hint));
            }
        }
    }

    /// The filesets of a module that it names.
    fn filesets(&self, module: &str) -> Vec<String> {
        let of_module = self.0.node().entries().remove(module);
        let names = of_module.map(Node::entries).unwrap_or_default();
        names.into_keys().filter(|name| *name != ANY).map(str::to_owned).collect()
    }
}

/// A module in one of the folders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModulePlace {
    /// The folder of modules that it is in.
    pub folder: PathBuf,
    /// Its filesets.
    pub filesets: Vec<String>,
}

/// The modules in some folders by their names. A module that is in several folders counts in the first.
pub fn modules_in(fs: &dyn Fs, folders: &[PathBuf]) -> BTreeMap<String, ModulePlace> {
    let mut modules = BTreeMap::new();
    for folder in folders {
        for name in folders_in(fs, folder) {
            let filesets = filesets_in(fs, &folder.join(&name));
            modules.entry(name).or_insert_with(|| ModulePlace { folder: folder.clone(), filesets });
        }
    }
    // One without filesets hides others of its name, too.
    modules.retain(|_, place| !place.filesets.is_empty());
    modules
}

/// The filesets in the folder of a module.
fn filesets_in(fs: &dyn Fs, module: &Path) -> Vec<String> {
    let mut found = folders_in(fs, module);
    found.retain(|name| fs.metadata(&module.join(name).join("manifest.yml")).is_ok());
    found
}

/// Whether there is a folder, or something that cannot be looked at.
fn is_there(fs: &dyn Fs, path: &Path) -> bool {
    match fs.metadata(path) {
        Ok(metadata) => metadata.kind == FileKind::Directory,
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// The folders in a folder, sorted; none if there is none.
fn folders_in(fs: &dyn Fs, folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let listed = fs.read_dir(folder, &mut |entry| {
        if entry.kind != FileKind::Regular
            && let Some(name) = entry.name.to_str()
        {
            found.push(name.to_owned());
        }
    });
    if listed.is_err() {
        return Vec::new();
    }
    found.sort();
    found
}

impl Modules<'_> {
    /// The enabled filesets of `filebeat.modules`, with what the command line adds.
    pub fn of_configuration(&self, items: Vec<Item<'_>>, overrides: &Overrides) -> Vec<Fileset> {
        let over = Over(self.settings.of_overrides(&overrides.settings, self.problems));
        over.check(self.problems);
        let mut named = self.named(items, overrides);
        for module in overrides.modules.iter().filter(|name| !name.is_empty()) {
            if !named.iter().any(|one| one.name == *module) {
                let (name, path) = (module.clone(), format!("--modules {module}"));
                named.push(Named { name, position: None, path, filesets: Vec::new() });
            }
        }
        for module in &mut named {
            for fileset in over.filesets(&module.name) {
                if !module.filesets.iter().any(|(name, _)| *name == fileset) {
                    module.filesets.push((fileset, None));
                }
            }
        }
        let errors = || {
            let all = self.problems.sorted();
            all.iter().filter(|problem| problem.severity == Severity::Error).count()
        };
        let before = errors();
        let running: Vec<String> = named.iter().map(|module| module.name.clone()).collect();
        let filesets = self.load_all(named, Some(&over), overrides);
        // A mistake can be the reason why a fileset does not run.
        if errors() == before {
            let filesets: Vec<(&str, &str)> =
                filesets.iter().map(|fileset| (fileset.module(), fileset.name())).collect();
            for (of, hint) in over.without_effect(&running, &filesets) {
                let message = format!("`-M {of}.…` has no effect");
                self.problems.push(Problem::warning(None, message).hint(hint));
            }
        }
        filesets
    }

    /// The enabled filesets of a file in `modules.d`. Of the command line, only `enable_all` and `force` count.
    pub fn of_file(&self, items: Vec<Item<'_>>, overrides: &Overrides) -> Vec<Fileset> {
        let named = self.named(items, overrides);
        self.load_all(named, None, overrides)
    }

    /// The filesets that a module has.
    pub fn filesets_of(&self, module: &str) -> Vec<String> {
        self.folder_of(module).map(|folder| filesets_in(self.fs, &folder)).unwrap_or_default()
    }

    /// The first folder of this name, also if it cannot be read: a module that the person has written is never replaced
    /// by another one of its name.
    fn folder_of(&self, module: &str) -> Option<PathBuf> {
        // A name is one level of a path.
        let is_name = matches!(
            Path::new(module).components().collect::<Vec<_>>()[..],
            [Component::Normal(level)] if level == module
        );
        if !is_name || module.starts_with('.') {
            return None;
        }
        let mut all = self.folders.iter().map(|folder| folder.join(module));
        all.find(|path| is_there(self.fs, path))
    }

    /// The folder of a module that has something in it.
    fn usable_folder_of(&self, module: &str) -> Result<PathBuf, ModuleError> {
        let Some(folder) = self.folder_of(module) else {
            let folders = self.folders.to_vec();
            return Err(ModuleError::NoModule { module: module.to_owned(), folders });
        };
        if let Err(error) = self.fs.read_dir(&folder, &mut |_| {}) {
            return Err(ModuleError::Unreadable { path: folder, error });
        }
        let has_name = self.fs.metadata(&folder.join("module.yml")).is_ok();
        if !has_name && filesets_in(self.fs, &folder).is_empty() {
            let what =
                "it has no fileset, which is a folder with a `manifest.yml` that can be read"
                    .to_owned();
            return Err(ModuleError::Wrong { path: folder, what });
        }
        Ok(folder)
    }

    /// The modules that are on.
    fn named(&self, items: Vec<Item<'_>>, overrides: &Overrides) -> Vec<Named> {
        let mut named = Vec::new();
        for item in items {
            if !item.is_map() {
                item.problem("a module is a map", "for example `- module: nginx`");
                continue;
            }
            let section = item.section();
            section.accept_key(&PATH);
            let is_on = section.get(&ENABLED).value() || overrides.enable_all || overrides.force;
            if !is_on {
                section.skip();
                continue;
            }
            let name = section.get(&NAME).required();
            if let Some(given) = section.item(NAME.name())
                && given.node().text() == Some("")
            {
                given.problem("a module has a name", "write that of its folder, such as `nginx`");
            }
            let mut filesets = Vec::new();
            for key in section.keys() {
                if [NAME.name(), ENABLED.name(), PATH.name()].contains(&key) {
                    continue;
                }
                section.accept(key);
                filesets.push((key.to_owned(), section.item(key).map(|item| item.node().clone())));
            }
            let position = Some(item.node().position().clone());
            let path = item.path().to_owned();
            if !name.is_empty() {
                named.push(Named { name, position, path, filesets });
            }
        }
        named
    }

    fn load_all(
        &self,
        named: Vec<Named>,
        over: Option<&Over>,
        overrides: &Overrides,
    ) -> Vec<Fileset> {
        let mut all = Vec::new();
        for module in named {
            let before = self.problems.sorted().len();
            match self.load_module(&module, over, overrides) {
                Ok(filesets) if filesets.is_empty() && self.problems.sorted().len() == before => {
                    let known = self.filesets_of(&module.name);
                    let error = ModuleError::NoneEnabled { module: module.name.clone(), known };
                    self.report(module.position.as_ref(), "", error);
                }
                Ok(filesets) => all.extend(filesets),
                Err(error) => self.report(module.position.as_ref(), "", error),
            }
        }
        all
    }

    fn load_module(
        &self,
        named: &Named,
        over: Option<&Over>,
        overrides: &Overrides,
    ) -> Result<Vec<Fileset>, ModuleError> {
        let module = self.current_name(named)?;
        let known = self.filesets_of(&module);
        let mut filesets = named.filesets.clone();
        if overrides.force {
            for name in &known {
                if !filesets.iter().any(|(other, _)| other == name) {
                    filesets.push((name.clone(), None));
                }
            }
        }
        let mut loaded = Vec::new();
        for (fileset, node) in filesets {
            let position = node.as_ref().map(Node::position).or(named.position.as_ref());
            let of = over.map(|over| over.of(&module, &fileset)).unwrap_or_default();
            let path = format!("{}.{fileset}", named.path);
            let Some(own) = self.configured(node.as_ref(), &of, &path, overrides) else { continue };
            let place = format!("module `{module}`, fileset `{fileset}`: ");
            if !known.contains(&fileset) {
                let (module, known) = (module.clone(), known.clone());
                self.report(position, "", ModuleError::NoFileset { module, fileset, known });
                continue;
            }
            let builtins = self.builtins.clone();
            let scope = Scope { builtins, module: module.clone(), fileset };
            let Some(folder) = self.folder_of(&module) else { continue };
            match Fileset::load(self.fs, self.settings, &folder, scope, own) {
                Ok(mut fileset) => {
                    fileset.position = position.cloned();
                    for unused in &fileset.unused {
                        let message = format!("{place}`var.{unused}` has no effect");
                        let hint = "neither the manifest nor a template of the fileset knows it";
                        self.problems.push(Problem::warning(position.cloned(), message).hint(hint));
                    }
                    loaded.push(fileset);
                }
                Err(error) => self.report(position, &place, error),
            }
        }
        Ok(loaded)
    }

    /// Adds a mistake in a module to the problems.
    pub fn report(&self, position: Option<&Position>, place: &str, error: ModuleError) {
        match error {
            ModuleError::Text(problems) => self.problems.extend(problems.sorted()),
            error => {
                let message = format!("{place}{error}");
                self.problems.push(Problem::error(position.cloned(), message).hint(error.hint()));
            }
        }
    }

    /// The settings of a fileset with those of the command line over them; `None` if it is off.
    fn configured(
        &self,
        node: Option<&Node>,
        over: &[&Node],
        path: &str,
        overrides: &Overrides,
    ) -> Option<Configured> {
        let empty = || self.settings.of_overrides(&[], self.problems);
        let mut settings = node.map_or_else(empty, |node| self.settings.with_root(node.clone()));
        for over in over {
            settings = settings.overlaid(over, &|_| Lists::Mixed);
        }
        let section = settings.section_at(path, self.problems);
        let is_on =
            section.get(&FILESET_ENABLED).value() || overrides.enable_all || overrides.force;
        if !is_on {
            section.skip();
            return None;
        }
        let own = Configured {
            variables: variables(&section),
            input: section.any(&INPUT).map(|item| item.node().clone()),
            secrets: settings.node().secret_texts(),
        };
        section.finish();
        Some(own)
    }

    /// The name of a module: one that has moved names its new one.
    fn current_name(&self, named: &Named) -> Result<String, ModuleError> {
        let name = &named.name;
        let folder = self.usable_folder_of(name)?;
        let path = folder.join("module.yml");
        let Ok(text) = read(self.fs, &path) else { return Ok(name.clone()) };
        let Ok(Value::Map(map)) = yaml_value(&path.display().to_string(), &text) else {
            return Ok(name.clone());
        };
        let Some(Value::String(moved)) =
            map.get("movedTo").filter(|moved| **moved != Value::String(String::new()))
        else {
            return Ok(name.clone());
        };
        let message = format!("the module `{name}` is called `{moved}` now");
        let hint = format!("write `module: {moved}`");
        self.problems.push(Problem::warning(named.position.clone(), message).hint(hint));
        Ok(moved.clone())
    }
}

/// `var` of a fileset, without what is empty.
fn variables(section: &Section<'_>) -> crate::template::Variables {
    match section.get(&VAR).optional() {
        Some(Value::Map(map)) => {
            map.into_iter().filter(|(_, value)| *value != Value::Null).collect()
        }
        None => crate::template::Variables::new(),
        Some(_) => {
            let message = format!("`{}` is no map of variables", section.path_of(VAR.name()));
            section.problem(VAR.name(), message, "for example `var.paths: [/var/log/x.log]`");
            crate::template::Variables::new()
        }
    }
}
