//! The settings of `dissect`.

use super::Dissect;
use super::tree::Tree;
use skidder_config::{Group, Key, OneOf, Section, settings};
use skidder_event::Path;
use skidder_parse::dissect::{Name, Tokenizer, Trimmer};

settings! {
    /// Settings of `dissect`.
    pub(crate) static DISSECT = Group::new("processor.dissect", "Cuts a text at delimiters into fields.").without_effect(&[("fail_on_error", "see `ignore_failure`")]);

    TOKENIZER: String = Key::new("tokenizer")
        .required()
        .about("delimiters and keys in turn, as in `%{ip} - [%{time}] %{rest}`; inside the braces a \
                prefix (`?` or `*`: not kept, but may name another; `&`: kept under the name that \
                such a key found; `+`: appended to the key of this name), the name, and then, in \
                this order, `/1` (order of appending), `#3` (exactly so many bytes), `->` (the \
                delimiter behind may be repeated), `|integer` (a type: `integer`, `long`, `float`, \
                `double`, `string`, `boolean`, `ip`); `%{}` is skipped");
    FIELD: String = Key::new("field")
        .default("message")
        .about("the field with the text");
    TARGET_PREFIX: String = Key::new("target_prefix")
        .default(Dissect::TARGET_PREFIX)
        .about("the object that takes the fields; `\"\"` is the root of the event, `@metadata` its \
                metadata");
    OVERWRITE_KEYS: bool = Key::new("overwrite_keys")
        .default(false)
        .about("existing fields are replaced; otherwise they are a failure");
    IGNORE_FAILURE: bool = Key::new("ignore_failure")
        .default(false)
        .about("a text that does not fit the tokenizer is not a failure, and only flagged");
    TRIM_VALUES: OneOf<(bool, bool)> = Key::one_of("trim_values", &[
            ("none", (false, false)),
            ("left", (true, false)),
            ("right", (false, true)),
            ("all", (true, true)),
        ])
        .default("none")
        .about("the ends from which `trim_chars` are taken off values: `none`, `left`, `right` or \
                `all`; means nothing if a key has a type");
    TRIM_CHARS: String = Key::new("trim_chars")
        .default(" ")
        .default_words("a space")
        .about("the characters that `trim_values` takes off");
}

impl Dissect {
    /// Default target of the fields.
    pub const TARGET_PREFIX: &'static str = "dissect";

    /// `tokenizer`, `field`, `target_prefix`, `ignore_failure`, `overwrite_keys`, `trim_values`,
    /// `trim_chars`.
    pub(crate) fn read(settings: &Section<'_>) -> Option<Self> {
        let compile = |source: String| Tokenizer::new(&source).map_err(|error| error.to_string());
        let tokenizer = settings.get(&TOKENIZER).try_map(compile).optional();
        if !settings.has_key(&TOKENIZER) {
            let message = format!("`{}` is missing", settings.path_of(TOKENIZER.name()));
            settings.problem(TOKENIZER.name(), message, "give a text as `%{key} - %{other}`");
        }
        let parse = |text: String| Path::parse(&text).map_err(|error| error.to_string());
        let field = settings.get(&FIELD).try_map(parse).value();
        let is_prefix = |text: &String| match text.as_str() {
            "" | "@metadata" => Ok(()),
            text => Path::parse(text).map(|_| ()).map_err(|error| error.to_string()),
        };
        let target = settings.get(&TARGET_PREFIX).check(is_prefix).value();
        let ignore_failure = settings.get(&IGNORE_FAILURE).value();
        let overwrite_keys = settings.get(&OVERWRITE_KEYS).value();
        let (left, right) = settings.get(&TRIM_VALUES).value();
        let characters = settings.get(&TRIM_CHARS).value();
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

/// Which keys are kept, if each field is the unchanged text of one key, in their order.
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

/// Warns of parts that are accepted, as in Filebeat, without effect.
fn warn(settings: &Section<'_>, tokenizer: &Tokenizer, trims: bool) {
    for key in tokenizer.idle_types() {
        let message = format!(
            "`{}`: the type in `%{{{key}}}` means nothing",
            settings.path_of(TOKENIZER.name())
        );
        settings.warning(
            TOKENIZER.name(),
            message,
            "only keys that are kept and not appended are converted",
        );
    }
    if trims && tokenizer.is_typed() {
        let message = format!(
            "`{}` means nothing beside a key with a type",
            settings.path_of(TRIM_VALUES.name())
        );
        settings.warning(TRIM_VALUES.name(), message, "what is converted has no spaces at its end");
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
                let message = format!("`{}`: {error}", settings.path_of(TOKENIZER.name()));
                settings.problem(TOKENIZER.name(), message, "");
                return None;
            }
        }
    }
    Some(paths.into())
}
