//! The loaded settings: one tree, variables replaced, ready to be read.

use crate::declare::{Group, Key, OneOf, secrets};
use crate::item::Item;
use crate::node::{Content, Node};
use crate::problem::{Position, Problem, Problems, Source};
use crate::secret::Secret;
use crate::section::Section;
use crate::vars::Lookups;
use crate::{export, read, tree, vars, yaml};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

crate::settings! {
    /// Settings at the root that are read while the configuration is loaded.
    pub static PLACES = Group::new("places", "Where skidder keeps its things, and how strict it is.");

    HOME: PathBuf = Key::new("path.home").default_words("folder of the program").about("where the others begin");
    CONFIG: PathBuf = Key::new("path.config")
        .default_words("`path.home` if that is set, else the folder of the first file of the configuration")
        .differs("Filebeat: `path.home`")
        .about("where relative files of the configuration are; with the flag, relative names of `-c` too");
    DATA: PathBuf = Key::new("path.data")
        .default_words("`${path.home}/data`")
        .about("state; see [operations](operations.md#files)");
    LOGS: PathBuf = Key::new("path.logs")
        .default_words("`${path.home}/logs`")
        .about("files of [the log](#logging)");
    KEYSTORE: PathBuf = Key::new("keystore.path")
        .default_words("`${path.data}/filebeat.keystore`")
        .about("the file of the [keystore](operations.md#the-keystore)");
    COMPAT: OneOf<bool> = Key::one_of("compat", &[("lenient", true), ("strict", false)])
        .default("strict")
        .ours()
        .about("`lenient`: unknown and most unsupported settings are warnings");
}

/// Where Filebeat keeps its things; `path.home`, `path.config`, `path.data`, `path.logs`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    /// Where the program is installed.
    pub home: PathBuf,
    /// Where relative files that the configuration names are.
    pub config: PathBuf,
    /// Where the registry and everything else that must survive is.
    pub data: PathBuf,
    /// Where the program's own log files are.
    pub logs: PathBuf,
}

/// All settings of one start (or of one reloaded file), see [`crate::load`].
#[derive(Clone, Debug)]
pub struct Settings {
    pub(crate) root: Node,
    /// Found while loading; handed over with [`Settings::root`].
    pub(crate) pending: Vec<Problem>,
    /// Shared with all that is made of them, as is the next.
    pub(crate) secrets: Arc<BTreeMap<String, Secret>>,
    pub(crate) paths: Arc<Paths>,
    /// Files with further inputs, and with modules.
    pub(crate) inputs: Vec<Arc<Settings>>,
    pub(crate) modules: Vec<Arc<Settings>>,
}

impl Settings {
    /// Settings from a text, called `name` in messages: no files, no keystore, no environment.
    pub fn parse(name: &str, text: &str) -> Result<Self, Problems> {
        Self::parse_with(name, text, &|_| None)
    }

    /// Like [`Settings::parse`] with environment variables.
    pub fn parse_with(
        name: &str,
        text: &str,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Problems> {
        let problems = Problems::new();
        let Some(mut root) = yaml::parse(&Source::new(0, name), text, &problems) else {
            return Err(problems);
        };
        root = tree::expand_dots(root, &problems);
        tree::settle_lists(&mut root);
        let lookups = Lookups {
            extra: &|_| None,
            values: &|_, _| None,
            keystore: &|_| None,
            environment,
            data_comes_later: true,
        };
        let root = vars::expand(&root, &root, lookups);
        let paths = Paths::default();
        let (secrets, pending) = (Arc::default(), problems.sorted());
        let paths = Arc::new(paths);
        Ok(Self { root, pending, secrets, paths, inputs: Vec::new(), modules: Vec::new() })
    }

    /// The whole tree as a section. Problems found while loading are added to `problems` here, and
    /// `compat: lenient` takes effect on it. `compat`, `path` and `keystore` count as read.
    pub fn root<'a>(&'a self, problems: &'a Problems) -> Section<'a> {
        self.hand_over(problems);
        let section = Section::new(Some(&self.root), String::new(), problems);
        problems.set_lenient(section.get(&COMPAT).value());
        for key in [&HOME, &CONFIG, &DATA, &LOGS, &KEYSTORE] {
            section.accept_key(key);
        }
        section
    }

    /// The items of a file that is a list (a reloaded file of inputs), each as it is.
    pub fn items<'a>(&'a self, problems: &'a Problems) -> Vec<Item<'a>> {
        self.hand_over(problems);
        Item::new(&self.root, String::new(), problems).into_items()
    }

    /// These settings as one item with this path in messages.
    pub fn item_at<'a>(&'a self, path: &str, problems: &'a Problems) -> Item<'a> {
        self.hand_over(problems);
        Item::new(&self.root, path.to_owned(), problems)
    }

    /// Adds what was found while loading, and the secrets that no message may show.
    pub(crate) fn hand_over(&self, problems: &Problems) {
        problems.hide(|veil| veil.add_tree(&self.root, &self.secrets));
        problems.extend(self.pending.iter().cloned());
    }

    /// Whether this is a list of things rather than a map of settings.
    pub fn is_list(&self) -> bool {
        matches!(self.root.content, Content::List(_))
    }

    /// `path.home` and so on after loading.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// Whether a file or the command line sets `path.home`.
    pub fn has_home(&self) -> bool {
        !crate::load::is_default(&self.root, "path.home")
    }

    /// Where the keystore is, or would be: `keystore.path`, by default `filebeat.keystore` in `path.data`.
    pub fn keystore_path(&self) -> PathBuf {
        crate::load::keystore_path(&self.root)
    }

    /// The tree itself.
    pub fn node(&self) -> &Node {
        &self.root
    }

    /// The secret `name` of the keystore.
    pub fn secret(&self, name: &str) -> Option<&Secret> {
        self.secrets.get(name)
    }

    /// Resolves the remaining variables in `node`, a part of these settings that was kept: a
    /// template whose `${data.host}` is known now. `extra` is searched after the settings and
    /// before environment and keystore. A variable that stays unresolved is reported when it is
    /// read.
    pub fn expand(
        &self,
        node: &Node,
        extra: &dyn Fn(&str) -> Option<String>,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Node {
        let keystore = |name: &str| self.secrets.get(name).map(|it| it.reveal().to_owned());
        vars::expand(
            node,
            &self.root,
            Lookups {
                extra,
                values: &|_, _| None,
                keystore: &keystore,
                environment,
                data_comes_later: false,
            },
        )
    }

    /// Settings whose tree is `node` (for instance what [`Settings::expand`] gave), so that it can
    /// be read with [`Settings::root`].
    pub fn with_root(&self, node: Node) -> Self {
        let (secrets, paths) = (Arc::clone(&self.secrets), Arc::clone(&self.paths));
        let (pending, inputs, modules) = (Vec::new(), Vec::new(), Vec::new());
        Self { root: node, pending, secrets, paths, inputs, modules }
    }

    /// The same with files that hold further inputs, and others that hold modules: what
    /// [`crate::load_part`] gave.
    #[must_use]
    pub fn with_files(self, inputs: Vec<Self>, modules: Vec<Self>) -> Self {
        let shared = |files: Vec<Self>| files.into_iter().map(Arc::new).collect();
        Self { inputs: shared(inputs), modules: shared(modules), ..self }
    }

    /// The files with further inputs.
    pub fn input_files(&self) -> &[Arc<Self>] {
        &self.inputs
    }

    /// The files with modules.
    pub fn module_files(&self) -> &[Arc<Self>] {
        &self.modules
    }

    /// The same with the section at `over` upon that at `under` (both with dots): settings of
    /// `over` win. A missing one is empty.
    pub fn layered(&self, under: &str, over: &str) -> Self {
        let mut root = self.root.clone();
        let under = tree::get(&root, under).cloned();
        if let Some(mut merged) = under {
            if let Some(over) = tree::get(&root, over) {
                // Mistakes in either are reported when they are read.
                tree::merge(&mut merged, over.clone(), &Problems::new());
            }
            tree::set(&mut root, over, merged);
        }
        self.with_root(root)
    }

    /// All settings as YAML with secrets replaced by `xxxxx`.
    pub fn export_yaml(&self) -> String {
        export::to_yaml(&self.root)
    }

    /// [`Settings::export_yaml`] for `export config`, of a configuration with the settings of `group`: what that declares
    /// as secret is replaced. So are values below the keys at `unknown`, and the values at `wrong` in outputs: a secret
    /// may stand there by mistake.
    pub fn export_yaml_without(
        &self,
        group: &'static Group,
        unknown: &[Position],
        wrong: &[Position],
    ) -> String {
        let mut root = self.root.clone();
        secrets::mark(&mut root, group);
        export::Doubtful { unknown, wrong }.hide(&mut root, "", false);
        export::to_yaml(&root)
    }

    /// The text at a dotted path, `default` if it is missing or unresolved (reported elsewhere).
    pub(crate) fn text_or(root: &Node, path: &str, default: &str) -> String {
        let found = tree::find(root, path).filter(|node| !node.is_null() && !node.is_unresolved());
        match found.map(read::text) {
            Some(Ok(text)) => text.to_owned(),
            _ => default.to_owned(),
        }
    }
}
