//! The settings of `dissect`.

use super::Dissect;
use super::tree::Tree;
use skidder_config::Section;
use skidder_event::Path;
use skidder_parse::dissect::{Name, Tokenizer, Trimmer};

impl Dissect {
    /// Where the fields go if nothing is said.
    pub const TARGET_PREFIX: &'static str = "dissect";

    /// `tokenizer`, `field`, `target_prefix`, `ignore_failure`, `overwrite_keys`, `trim_values`,
    /// `trim_chars`.
    pub(crate) fn read(settings: &Section<'_>) -> Option<Self> {
        let compile = |source: String| Tokenizer::new(&source).map_err(|error| error.to_string());
        let tokenizer = settings.string("tokenizer").try_map(compile).optional();
        if !settings.has("tokenizer") {
            let message = format!("`{}` is missing", settings.path_of("tokenizer"));
            settings.problem("tokenizer", message, "give a text as `%{key} - %{other}`");
        }
        let parse = |text: String| Path::parse(&text).map_err(|error| error.to_string());
        let message = || Path::parse("message").expect("a constant that is a path");
        let field = settings.string("field").try_map(parse).or_else(message);
        let is_prefix = |text: &String| match text.as_str() {
            "" | "@metadata" => Ok(()),
            text => Path::parse(text).map(|_| ()).map_err(|error| error.to_string()),
        };
        let target = settings.string("target_prefix").check(is_prefix).or(Self::TARGET_PREFIX);
        let ignore_failure = settings.bool("ignore_failure").or(false);
        let overwrite_keys = settings.bool("overwrite_keys").or(false);
        let ends = [
            ("none", (false, false)),
            ("left", (true, false)),
            ("right", (false, true)),
            ("all", (true, true)),
        ];
        let (left, right) = settings.one_of("trim_values", &ends).or((false, false));
        let characters = settings.string("trim_chars").or(" ");
        let tokenizer = tokenizer?;
        warn(settings, &tokenizer, left || right);
        let prefix = if target.is_empty() { target } else { format!("{target}.") };
        let paths = paths(settings, &tokenizer, &prefix)?;
        let tree = Tree::new(prefix.trim_end_matches('.'), &paths);
        let kept = if left || right { None } else { kept(&tokenizer) };
        Some(Self {
            tokenizer,
            field,
            prefix,
            paths,
            kept,
            tree,
            trimmer: (left || right).then(|| Trimmer::new(&characters, left, right)),
            overwrite_keys,
            ignore_failure,
        })
    }
}

/// Which keys are kept, if each field is what one key found as it stands, in their order.
fn kept(tokenizer: &Tokenizer) -> Option<Box<[bool]>> {
    // Half a character may not stand in a text that is known to be UTF-8.
    if tokenizer.cuts_characters() || tokenizer.is_typed() {
        return None;
    }
    let mut kept = vec![false; tokenizer.keys()];
    let mut least = 0;
    for output in tokenizer.outputs() {
        match (&output.name, &*output.parts) {
            (Name::Fixed(_), [part]) if part.key >= least => {
                kept[part.key] = true;
                least = part.key + 1;
            }
            _ => return None,
        }
    }
    Some(kept.into())
}

/// Tells what is accepted, as Filebeat does, and means nothing.
fn warn(settings: &Section<'_>, tokenizer: &Tokenizer, trims: bool) {
    for key in tokenizer.idle_types() {
        let message =
            format!("`{}`: the type in `%{{{key}}}` means nothing", settings.path_of("tokenizer"));
        settings.warning(
            "tokenizer",
            message,
            "only keys that are kept and not appended are converted",
        );
    }
    if trims && tokenizer.is_typed() {
        let message =
            format!("`{}` means nothing beside a key with a type", settings.path_of("trim_values"));
        settings.warning("trim_values", message, "what is converted has no spaces at its end");
    }
}

/// Where the fields go. Returns `None`, and reports the problem, if one has no such place.
fn paths(
    settings: &Section<'_>,
    tokenizer: &Tokenizer,
    prefix: &str,
) -> Option<Box<[Option<Path>]>> {
    let mut paths: Vec<Option<Path>> = Vec::new();
    for output in tokenizer.outputs() {
        let Name::Fixed(name) = &output.name else {
            paths.push(None);
            continue;
        };
        let path = match Path::parse(&format!("{prefix}{name}")) {
            Ok(path) if path.segments()[0] == "@timestamp".into() && !path.is_metadata() => {
                Err("`@timestamp` takes only a time: use the processor `timestamp`".to_owned())
            }
            Ok(path) => match paths.iter().flatten().find(|other| other.overlaps(&path)) {
                Some(other) => Err(format!("`{other}` and `{path}` cannot both be fields")),
                None => Ok(path),
            },
            Err(error) => Err(error.to_string()),
        };
        match path {
            Ok(path) => paths.push(Some(path)),
            Err(error) => {
                let message = format!("`{}`: {error}", settings.path_of("tokenizer"));
                settings.problem("tokenizer", message, "");
                return None;
            }
        }
    }
    Some(paths.into())
}
