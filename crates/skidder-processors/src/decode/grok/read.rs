//! The settings of `grok`.

use super::engine::Engine;
use super::expand::{Bank, Expanded};
use super::steps::Leaves;
use super::{Field, Grok, Pattern};
use skidder_config::{Group, Key, OneOf, Section, settings};
use skidder_event::Path;
use smallvec::smallvec;
use std::cell::RefCell;
use std::collections::BTreeMap;

settings! {
    /// Settings of `grok`.
    pub(crate) static GROK = Group::new("processor.grok", "Finds fields in a text by named patterns.");

    PATTERNS: Vec<String> = Key::new("patterns")
        .required()
        .about("patterns, of which the first that is found in the text wins: regular expressions with \
                `%{NAME}` (a named pattern), `%{NAME:field}` (what it finds is kept), `%{NAME:field:type}` \
                (`int` or `long`, `float`, `double`, `boolean`), and `(?<field>...)`; a field is `a.b` or \
                `[a][b]`");
    PATTERN_DEFINITIONS: BTreeMap<String, String> = Key::new("pattern_definitions")
        .default(())
        .about("own named patterns, which go before those of the same name that come with skidder");
    FIELD: String = Key::new("field")
        .default("message")
        .about("the field with the text");
    TARGET_PREFIX: String = Key::new("target_prefix")
        .default("")
        .default_words("the root")
        .about("the object that takes the fields; `\"\"` is the root of the event, `@metadata` its \
                metadata");
    ECS_COMPATIBILITY: OneOf<bool> = Key::one_of("ecs_compatibility", &[
            ("disabled", false),
            ("v1", true),
            ("v8", true),
        ])
        .default("disabled")
        .about("the names of fields in patterns like `COMBINEDAPACHELOG`: `disabled` has `clientip`, `v1` \
                and `v8` have those of ECS, as `source.address`, and numbers as numbers");
    OVERWRITE_KEYS: bool = Key::new("overwrite_keys")
        .default(false)
        .about("existing fields are replaced; otherwise they are a failure, except `field` itself");
    IGNORE_MISSING: bool = Key::new("ignore_missing")
        .default(false)
        .about("a missing field is not a failure");
    IGNORE_FAILURE: bool = Key::new("ignore_failure")
        .default(false)
        .about("a text that no pattern fits is not a failure, and only flagged");
    TAG_ON_FAILURE: Vec<String> = Key::<Vec<String>>::new("tag_on_failure")
        .default(&[])
        .about("what an event that fails gets in `tags`, beside the flag");
}

impl Grok {
    /// The settings above.
    pub(crate) fn read(settings: &Section<'_>) -> Option<Self> {
        let own = settings.get(&PATTERN_DEFINITIONS).value();
        let parse = |text: String| Path::parse(&text).map_err(|error| error.to_string());
        let field = settings.get(&FIELD).try_map(parse).value();
        let is_prefix = |text: &String| match text.as_str() {
            "" | "@metadata" => Ok(()),
            text => Path::parse(text).map(|_| ()).map_err(|error| error.to_string()),
        };
        let target = settings.get(&TARGET_PREFIX).check(is_prefix).value();
        let bank = Bank { own: &own, ecs: settings.get(&ECS_COMPATIBILITY).value() };
        let overwrite_keys = settings.get(&OVERWRITE_KEYS).value();
        let ignore_missing = settings.get(&IGNORE_MISSING).value();
        let ignore_failure = settings.get(&IGNORE_FAILURE).value();
        let tags = settings.get(&TAG_ON_FAILURE).value();
        let prefix = if target.is_empty() { target } else { format!("{target}.") };
        let are_right = check_definitions(settings, bank);
        let leaves = RefCell::default();
        let compile = |text: &str| {
            // A mistake in a definition is reported at its place.
            let expanded = match Bank::expand(bank, text) {
                Err(error) if !are_right && error.starts_with("pattern `") => return Ok(None),
                expanded => expanded?,
            };
            Pattern::new(&expanded, &prefix, &field, &mut leaves.borrow_mut()).map(Some)
        };
        let patterns = settings.get(&PATTERNS).try_each(compile);
        if !settings.has_key(&PATTERNS) {
            let message = format!("`{}` is missing", settings.path_of(PATTERNS.name()));
            settings.problem(
                PATTERNS.name(),
                message,
                "give a list, as `['%{IP:client.ip} %{GREEDYDATA:rest}']`",
            );
            return None;
        }
        let patterns = patterns.at_least_one("pattern").optional()?;
        Some(Self {
            patterns: patterns.into_iter().collect::<Option<_>>()?,
            field,
            overwrite_keys,
            ignore_missing,
            ignore_failure,
            tags: tags.into(),
            tags_path: Path::parse("tags").ok()?,
        })
    }
}

/// Reports definitions that are wrong, also those that nothing refers to.
fn check_definitions(settings: &Section<'_>, bank: Bank<'_>) -> bool {
    let mut are_right = true;
    for name in bank.own.keys() {
        if let Err(error) = bank.expand_own(name) {
            let message = format!("`{}`: {error}", settings.path_of(PATTERN_DEFINITIONS.name()));
            settings.problem(PATTERN_DEFINITIONS.name(), message, "");
            are_right = false;
        }
    }
    are_right
}

impl Pattern {
    /// Compiles a pattern whose fields go below `prefix`.
    fn new(
        expanded: &Expanded,
        prefix: &str,
        text_field: &Path,
        leaves: &mut Leaves,
    ) -> Result<Self, String> {
        let mut fields: Vec<Field> = Vec::new();
        for (index, (name, kind)) in expanded.captures.iter().enumerate() {
            let path =
                Path::parse(&format!("{prefix}{name}")).map_err(|error| error.to_string())?;
            if path.segments()[0] == "@timestamp".into() && !path.is_metadata() {
                return Err("`@timestamp` takes only a time: use another name, and the processor \
                            `timestamp`"
                    .to_owned());
            }
            if let Some(field) = fields.iter_mut().find(|field| field.path == path) {
                field.groups.push((index + 1, *kind));
                continue;
            }
            if let Some(other) = fields.iter().find(|field| field.path.overlaps(&path)) {
                return Err(format!("`{}` and `{path}` cannot both be fields", other.path));
            }
            fields.push(Field { path, groups: smallvec![(index + 1, *kind)] });
        }
        let is_plain = fields
            .iter()
            .all(|field| matches!(field.groups[..], [_]) && !field.path.overlaps(text_field));
        Ok(Self {
            engine: Engine::new(&expanded.regex, leaves)?,
            paths: fields.iter().map(|field| Some(field.path.clone())).collect(),
            fields: fields.into(),
            is_plain,
        })
    }
}
