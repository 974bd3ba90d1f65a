//! The settings of `kv`.

use super::Kv;
use super::split::{Class, Splitter};
use crate::fields::pairs::{filled_path, required_path};
use skidder_config::{Group, Key, Section, settings};

settings! {
    /// Settings of `kv`.
    pub(in super::super) static KV = Group::new("processor.kv", "Takes a text of pairs like `key=value` apart into fields.");

    FIELD: String = Key::new("field")
        .required()
        .about("the field with the text");
    FIELD_SPLIT: String = Key::new("field_split")
        .required()
        .about("a regular expression for what is between pairs; it may end in one look-ahead: `\\s+(?=\\w+=)`");
    VALUE_SPLIT: String = Key::new("value_split")
        .required()
        .about("a regular expression for what is between a key and its value; the first place counts");
    TARGET_FIELD: String = Key::new("target_field")
        .default("")
        .default_words("the root")
        .about("the object that takes the fields");
    INCLUDE_KEYS: Vec<String> = Key::new("include_keys")
        .default_words("all")
        .about("the only keys that are kept");
    EXCLUDE_KEYS: Vec<String> = Key::new("exclude_keys")
        .default_words("none")
        .about("keys that are left out");
    PREFIX: String = Key::new("prefix")
        .default("")
        .default_words("none")
        .about("a text before each key");
    TRIM_KEY: String = Key::new("trim_key")
        .default("")
        .default_words("none")
        .about("characters that are removed from both ends of keys, as in the brackets of a regular expression");
    TRIM_VALUE: String = Key::new("trim_value")
        .default("")
        .default_words("none")
        .about("the same for values");
    STRIP_BRACKETS: bool = Key::new("strip_brackets")
        .default(false)
        .about("a bracket (`()`, `<>`, `[]`) or quote at either end of a value is removed");
    IGNORE_MISSING: bool = Key::new("ignore_missing")
        .default(false)
        .about("a missing field is not a failure");
    IGNORE_FAILURE: bool = Key::new("ignore_failure")
        .default(false)
        .about("a text that is no list of pairs is not a failure, and only flagged");
}

impl Kv {
    /// The settings above.
    pub(crate) fn read(settings: &Section<'_>) -> Option<Self> {
        let field = required_path(settings, &FIELD);
        let splitter = |key: &Key<String>, example: &str| {
            let split = settings.get(key).try_map(|text| Splitter::new(&text)).optional();
            if !settings.has_key(key) {
                let message = format!("`{}` is missing", settings.path_of(key.name()));
                settings.problem(key.name(), message, example);
            }
            split
        };
        let field_split = splitter(&FIELD_SPLIT, "say what is between pairs: `field_split: ' '`");
        let value_split =
            splitter(&VALUE_SPLIT, "say what is between a key and its value: `value_split: '='`");
        let class = |key: &Key<String>| {
            let class = settings.get(key).try_map(|text| match text.as_str() {
                "" => Ok(None),
                text => Class::new(text).map(Some),
            });
            class.optional().flatten()
        };
        let include_keys = settings.get(&INCLUDE_KEYS).optional();
        let exclude_keys = settings.get(&EXCLUDE_KEYS).optional().unwrap_or_default();
        let target = filled_path(settings.get(&TARGET_FIELD));
        let (trim_key, trim_value) = (class(&TRIM_KEY), class(&TRIM_VALUE));
        let prefix = settings.get(&PREFIX).value();
        let strip_brackets = settings.get(&STRIP_BRACKETS).value();
        let ignore_missing = settings.get(&IGNORE_MISSING).value();
        let ignore_failure = settings.get(&IGNORE_FAILURE).value();
        Some(Self {
            field: field?,
            target,
            field_split: field_split?,
            value_split: value_split?,
            include_keys: include_keys.map(Into::into),
            exclude_keys: exclude_keys.into(),
            prefix,
            trim_key,
            trim_value,
            strip_brackets,
            ignore_missing,
            ignore_failure,
        })
    }
}
