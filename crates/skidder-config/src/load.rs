//! From the command line's files and overrides to [`Settings`].
//!
//! Order, later wins: built-in `path.*`, the files as given, `--path.*`, `-E`. See [`crate::tree`]
//! for what "wins" means. If none of them sets `path.config` or `path.home`, `path.config` is the folder of the
//! first file. Everything outside (files, environment, keystore) comes as an argument.

use crate::node::{Content, Node};
use crate::pipes::Pipes;
use crate::problem::{Position, Problem, Problems, Source};
use crate::secret::Secret;
use crate::settings::{Paths, Settings};
use crate::vars::Lookups;
use crate::{tree, vars, yaml};
use skidder_os::{FileKind, Fs, Metadata, read_to_end};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Largest configuration file, in bytes; a larger one is refused.
pub const FILE_BYTES_MAX: usize = 16 << 20;

/// Name of the keystore in `path.data` unless `keystore.path` is set.
const KEYSTORE_NAME: &str = "filebeat.keystore";

/// Reads the keystore at a path: names and secrets, empty if there is no such file. The error is
/// shown to the user.
pub type OpenKeystore<'a> = dyn Fn(&Path) -> Result<BTreeMap<String, Secret>, String> + 'a;

/// What [`load`] needs to know.
#[derive(Clone, Copy)]
pub struct LoadOptions<'a> {
    /// `-c`, in order. A relative name is resolved in `path.config`, then in the working directory unless
    /// `--path.home` or `--path.config` is set.
    pub files: &'a [PathBuf],
    /// `-E`, in order: `key=value`, or `key` for true.
    pub overrides: &'a [String],
    /// The working directory: a relative `path.home`, `path.config`, `path.data` or `path.logs` is below it.
    pub directory: &'a Path,
    /// The default of `path.home`: the folder of the program.
    pub home: &'a Path,
    /// `--path.home`.
    pub path_home: Option<&'a Path>,
    /// `--path.config`; default `path.home` if that is set, else the folder of the first file.
    pub path_config: Option<&'a Path>,
    /// `--path.data`; default `data` in `path.home`.
    pub path_data: Option<&'a Path>,
    /// `--path.logs`; default `logs` in `path.home`.
    pub path_logs: Option<&'a Path>,
    /// `--strict.perms`; `BEAT_STRICT_PERMS=false` in the environment turns it off as well.
    pub strict_permissions: bool,
    /// Effective user of this process. Files must be owned by this user or by root.
    pub user_id: u32,
    /// The file system.
    pub fs: &'a dyn Fs,
    /// What main files that are pipes hold.
    pub pipes: &'a Pipes,
    /// Environment variables.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// The keystore, opened once its path is known; `None` means there is none.
    pub keystore: Option<&'a OpenKeystore<'a>>,
}

/// Loads all files and overrides into one tree: maps of several files are merged, any other value
/// (lists too, as a whole) is the one of the last file that has it. `a.0.b` names a list item.
///
/// An error means there is no tree to read: a file is
/// missing, not safe, or not YAML. All other mistakes stay with the settings and are reported by
/// [`Settings::root`], together with those of the readers.
pub fn load(options: LoadOptions<'_>) -> Result<Settings, Problems> {
    let problems = Problems::new();
    if options.files.is_empty() {
        problems.push(Problem::error(None, "no configuration file is given").hint("use `-c FILE`"));
    }
    load_all(options, problems)
}

/// The settings of the command line and the usual places, for commands that need no file.
pub fn load_without_file(options: LoadOptions<'_>) -> Result<Settings, Problems> {
    load_all(LoadOptions { files: &[], ..options }, Problems::new())
}

/// Whether [`load`] finds this file.
pub fn is_there(options: LoadOptions<'_>, file: &Path) -> bool {
    find(options, file, &config_folder(options)).is_some()
}

fn load_all(options: LoadOptions<'_>, problems: Problems) -> Result<Settings, Problems> {
    let mut root = default_paths(options.home);
    let config = config_folder(options);
    let mut order = 1;
    let mut complete = !problems.has_errors();
    for file in options.files {
        match read_tree(options, file, &config, order, &problems) {
            Some(tree) => tree::merge(&mut root, tree, &problems),
            None => complete = false,
        }
        order += 1;
    }
    merge_command_line(options, &mut root, order, &problems);
    if !complete {
        return Err(problems);
    }
    if ["path.config", "path.home"].iter().all(|key| is_default(&root, key))
        && let Some(folder) = folder_of_first(options, &config)
    {
        let source = Source::new(0, Source::DEFAULTS);
        let own = tree::text_setting("path.config", &literal(&folder), &source);
        tree::merge(&mut root, own, &problems);
    }
    make_places_absolute(&mut root, options.directory);
    tree::settle_lists(&mut root);
    let secrets = open_keystore(options, &root, &problems);
    let root = expand(options, &root, &root, &secrets);
    check_places(&root, &problems);
    let paths = paths_of(&root);
    let pending = problems.sorted();
    let (secrets, paths) = (Arc::new(secrets), Arc::new(paths));
    Ok(Settings { root, pending, secrets, paths, inputs: Vec::new(), modules: Vec::new() })
}

/// Loads a file that is reloaded (`filebeat.config.inputs.path`). It holds a list
/// or a map; its variables may name settings of `main`. Checked and read like the main file.
pub fn load_part(
    options: LoadOptions<'_>,
    file: &Path,
    main: &Settings,
) -> Result<Settings, Problems> {
    let problems = Problems::new();
    let source = Source::new(0, file.display().to_string());
    let Some(mut root) = read_node(options, file, None, &source, &problems) else {
        return Err(problems);
    };
    tree::settle_lists(&mut root);
    let root = expand(options, &root, &main.root, &main.secrets);
    Ok(Settings { pending: problems.sorted(), ..main.with_root(root) })
}

fn expand(
    options: LoadOptions<'_>,
    node: &Node,
    root: &Node,
    secrets: &BTreeMap<String, Secret>,
) -> Node {
    let keystore = |name: &str| secrets.get(name).map(|secret| secret.reveal().to_owned());
    let environment = options.environment;
    vars::expand(
        node,
        root,
        Lookups {
            extra: &|_| None,
            values: &|_, _| None,
            keystore: &keystore,
            environment,
            data_comes_later: true,
        },
    )
}

/// The lowest layer: the default of `${path.data}`.
fn default_paths(home: &Path) -> Node {
    let source = Source::new(0, Source::DEFAULTS);
    let problems = Problems::new();
    let mut root = tree::text_setting("path.home", &literal(home), &source);
    let defaults = [
        ("path.config", "${path.home}"),
        ("path.data", "${path.home}/data"),
        ("path.logs", "${path.home}/logs"),
    ];
    for (key, value) in defaults {
        tree::merge(&mut root, tree::text_setting(key, value, &source), &problems);
    }
    root
}

/// Whether a setting has the value of [`default_paths`].
pub(crate) fn is_default(root: &Node, key: &str) -> bool {
    tree::find(root, key).is_some_and(|node| node.position.source().name() == Source::DEFAULTS)
}

/// The folder of the first file; `None` for a pipe, whose folder holds nothing else of the configuration.
fn folder_of_first(options: LoadOptions<'_>, config: &Path) -> Option<PathBuf> {
    let path = find(options, options.files.first()?, config)?;
    let metadata = options.fs.metadata(&path).ok()?;
    let folder = path.parent().filter(|_| metadata.kind == FileKind::Regular)?;
    Some(if folder == Path::new("") { PathBuf::from(".") } else { folder.to_owned() })
}

/// A path as a text in which nothing is a variable.
fn literal(path: &Path) -> String {
    path.to_string_lossy().replace('$', "$$")
}

fn merge_command_line(
    options: LoadOptions<'_>,
    root: &mut Node,
    first_order: u32,
    problems: &Problems,
) {
    let mut order = first_order;
    let flags = [
        ("path.home", options.path_home),
        ("path.config", options.path_config),
        ("path.data", options.path_data),
        ("path.logs", options.path_logs),
    ];
    for (key, path) in flags {
        let Some(path) = path else { continue };
        let source = Source::new(order, format!("--{key}"));
        if path.to_str().is_none() {
            let message = format!("`{}` is not valid UTF-8", path.display());
            problems.push(Problem::error(Position::whole(&source), message));
        }
        tree::merge(root, tree::text_setting(key, &literal(path), &source), problems);
    }
    for text in options.overrides {
        order += 1;
        if let Some(tree) = tree::parse_override("-E", text, order, problems) {
            tree::merge(root, tree, problems);
        }
    }
}

/// The folder of relative configuration files, by default that of the program. Only the command line can set it: the
/// files are not read yet.
fn config_folder(options: LoadOptions<'_>) -> PathBuf {
    let mut root = default_paths(options.home);
    merge_command_line(options, &mut root, 0, &Problems::new());
    paths_of(&expand(options, &root, &root, &BTreeMap::new())).config
}

fn paths_of(root: &Node) -> Paths {
    let path = |key: &str, default: &str| PathBuf::from(Settings::text_or(root, key, default));
    Paths {
        home: path("path.home", "."),
        config: path("path.config", "."),
        data: path("path.data", "data"),
        logs: path("path.logs", "logs"),
    }
}

/// Reports places that are no text: where state belongs is not guessed.
fn check_places(root: &Node, problems: &Problems) {
    for (section, keys) in
        [("path", &["home", "config", "data", "logs"][..]), ("keystore", &["path"])]
    {
        let Some(node) = tree::find(root, section) else { continue };
        let refuse = |node: &Node, path: &str, expected: &str| {
            let message = format!("`{path}` is {}; expected {expected}", node.shown());
            problems.push(Problem::error(node.position.clone(), message));
        };
        if node.as_map().is_none() && !node.is_null() {
            refuse(node, section, "a map of settings");
        }
        for key in keys {
            let path = format!("{section}.{key}");
            // A default made of another path is reported at that path.
            if let Some(node) = tree::find(root, &path)
                && !node.is_null()
                && node.position.source().name() != Source::DEFAULTS
                && crate::read::text(node).is_err()
            {
                refuse(node, &path, "a path");
            }
        }
    }
}

/// Relative places begin in `directory`: what is made of them, such as `${path.config}/modules.d/*.yml`, is the same
/// wherever it is used. One that begins with a variable stays as it is.
fn make_places_absolute(root: &mut Node, directory: &Path) {
    for key in ["path.home", "path.config", "path.data", "path.logs"] {
        let Some(node) = tree::find(root, key) else { continue };
        let Some(text) = node.text().filter(|text| !text.is_empty() && !text.starts_with('$'))
        else {
            continue;
        };
        if !matches!(node.content, Content::String) || text.starts_with('/') {
            continue;
        }
        let path = directory.display().to_string().replace('$', "$$");
        let path: PathBuf = Path::new(&path).join(text).components().collect();
        let absolute =
            Node::scalar(node.position.clone(), Content::String, path.to_string_lossy().as_ref());
        tree::merge(root, tree::at_key(key, absolute), &Problems::new());
    }
}

/// Where a file is: in the folder of the configuration, or else here. `None` if it is not there.
fn find(options: LoadOptions<'_>, file: &Path, config: &Path) -> Option<PathBuf> {
    let missing = |path: &Path| {
        let error = options.fs.metadata(path).err();
        error.is_some_and(|error| error.kind() == io::ErrorKind::NotFound)
    };
    let path = config.join(file);
    if !missing(&path) {
        return Some(path);
    }
    (!is_elsewhere(options) && !missing(file)).then(|| file.to_owned())
}

/// With a configured folder, a file of the same name in another one is not used.
fn is_elsewhere(options: LoadOptions<'_>) -> bool {
    options.path_home.is_some() || options.path_config.is_some()
}

/// The tree of one main file, which must be a map or empty.
fn read_tree(
    options: LoadOptions<'_>,
    file: &Path,
    config: &Path,
    order: u32,
    problems: &Problems,
) -> Option<Node> {
    let source = Source::new(order, file.display().to_string());
    let Some(path) = find(options, file, config) else {
        let message = if file.is_absolute() {
            "there is no such file".to_owned()
        } else if is_elsewhere(options) {
            format!("there is no such file in `{}`", config.display())
        } else {
            format!("there is no such file, neither here nor in `{}`", config.display())
        };
        let hint = "give the path with `-c FILE` or its folder with `--path.config DIR`";
        problems.push(Problem::error(Position::whole(&source), message).hint(hint));
        return None;
    };
    let node = read_node(options, &path, Some(options.pipes), &source, problems)?;
    if node.as_map().is_none() && !node.is_null() {
        let message = format!("the file is {}; expected a map of settings", node.shown());
        problems.push(
            Problem::error(node.position, message).hint("settings are lines like `key: value`"),
        );
        return None;
    }
    Some(node)
}

/// Opens, checks, reads and parses one file; dotted keys are levels in the result.
fn read_node(
    options: LoadOptions<'_>,
    path: &Path,
    pipes: Option<&Pipes>,
    source: &Arc<Source>,
    problems: &Problems,
) -> Option<Node> {
    let whole = Position::whole(source);
    let bytes = match read_checked(options, path, pipes) {
        Ok(bytes) => bytes,
        Err(problem) => {
            problems.push(Problem { position: Some(whole), ..problem });
            return None;
        }
    };
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            problems.push(not_utf8(error.as_bytes(), error.utf8_error().valid_up_to(), source));
            return None;
        }
    };
    let node = yaml::parse(source, &text, problems)?;
    Some(tree::expand_dots(node, problems))
}

fn not_utf8(bytes: &[u8], valid: usize, source: &Arc<Source>) -> Problem {
    let before = String::from_utf8_lossy(&bytes[..valid]);
    let line = before.matches('\n').count() as u32 + 1;
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) as u32 + 1;
    let message = "the file is not UTF-8 text from here on";
    Problem::error(Position::new(source, line, column), message)
        .hint("save it as UTF-8; Windows editors may use UTF-16 or a code page")
}

/// The bytes of a file that is safe to trust. The check is made on the open file, so that it cannot
/// be exchanged in between. Without `pipes` a pipe is refused: reading would wait for its writer.
/// The problem has no position.
fn read_checked(
    options: LoadOptions<'_>,
    path: &Path,
    pipes: Option<&Pipes>,
) -> Result<Vec<u8>, Problem> {
    let unreadable = |error: io::Error| {
        let hint = match error.kind() {
            io::ErrorKind::PermissionDenied => "run as the owner of the file, or as root",
            _ => "",
        };
        Problem::error(None, format!("`{}` cannot be read: {error}", path.display())).hint(hint)
    };
    let turned_off = (options.environment)("BEAT_STRICT_PERMS").is_some_and(|it| it == "false");
    let check = |metadata: Metadata| {
        if options.strict_permissions && !turned_off {
            check_permissions(path, metadata, options.user_id)?;
        }
        Ok(())
    };
    let kind = options.fs.metadata(path).map_err(unreadable)?.kind;
    if let (FileKind::Other, Some(pipes)) = (kind, pipes) {
        let (metadata, bytes) = pipes.read(options.fs, path, FILE_BYTES_MAX).map_err(unreadable)?;
        check(metadata)?;
        return Ok(bytes);
    }
    let file = options.fs.open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if metadata.kind != FileKind::Regular {
        let is = if metadata.kind == FileKind::Directory { "directory" } else { "pipe or device" };
        let message = format!("`{}` is a {is}; expected a file", path.display());
        return Err(Problem::error(None, message));
    }
    check(metadata)?;
    read_to_end(&*file, FILE_BYTES_MAX).map_err(unreadable)
}

fn check_permissions(path: &Path, metadata: Metadata, user_id: u32) -> Result<(), Problem> {
    let path = path.display();
    let or_off = "or turn the check off with `--strict.perms=false`";
    if metadata.uid != 0 && metadata.uid != user_id {
        let message = format!(
            "`{path}` belongs to user {}; it must belong to root or to the user that runs \
             skidder ({user_id})",
            metadata.uid
        );
        return Err(
            Problem::error(None, message).hint(format!("run `chown root {path}`, {or_off}"))
        );
    }
    if metadata.mode & 0o022 != 0 {
        let mode = metadata.mode & 0o777;
        let message = format!("`{path}` can be written by others than its owner (mode {mode:04o})");
        return Err(
            Problem::error(None, message).hint(format!("run `chmod go-w {path}`, {or_off}"))
        );
    }
    Ok(())
}

/// `keystore.path`, or its default.
pub(crate) fn keystore_path(root: &Node) -> PathBuf {
    let default = paths_of(root).data.join(KEYSTORE_NAME);
    PathBuf::from(Settings::text_or(root, "keystore.path", &default.to_string_lossy()))
}

/// The secrets of the keystore. Its path may come from settings and environment, not from itself.
fn open_keystore(
    options: LoadOptions<'_>,
    root: &Node,
    problems: &Problems,
) -> BTreeMap<String, Secret> {
    let Some(open) = options.keystore else { return BTreeMap::new() };
    let path = keystore_path(&expand(options, root, root, &BTreeMap::new()));
    match open(&path) {
        Ok(secrets) => secrets,
        Err(error) => {
            let path = path.display();
            let message = format!("the keystore `{path}` cannot be opened: {error}");
            problems.push(Problem::error(None, message));
            BTreeMap::new()
        }
    }
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
