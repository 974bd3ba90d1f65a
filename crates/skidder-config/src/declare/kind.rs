//! What a setting can be: how each kind is read, shown and described in a schema.

use super::numbers::named;
use super::schema::{VARIABLE, list_of, text_like};
use super::{Group, Inner, Key};
use crate::node::Value;
use crate::secret::Secret;
use crate::section::Section;
use crate::setting::Setting;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::path::PathBuf;

/// What a setting can be. Most kinds are the type of their value; the others are markers below.
pub trait Kind: Sized + 'static {
    /// What a default and bounds are in a declaration.
    type Const: Copy + Sync + 'static;
    /// What else a declaration has: words, or a group.
    type Extra: Copy + Sync + 'static;
    /// Its values are passwords.
    const IS_SECRET: bool = false;
    /// Its value may be a map of any names.
    const TAKES_NAMES: bool = false;
    /// The default as a user would write it.
    fn show(key: &Key<Self>, value: Self::Const) -> String;
    /// The default in JSON.
    fn json(key: &Key<Self>, value: Self::Const) -> Json;
    /// The JSON Schema of a value.
    fn schema(key: &Key<Self>) -> Json;
    /// The maps below it.
    fn inner(_: &Key<Self>) -> Option<Inner> {
        None
    }
    /// The id of the group of the maps below it, if another crate declares that.
    fn inner_id(_: &Key<Self>) -> Option<&'static str> {
        None
    }
}

/// A kind with one value, which [`Section::get`] reads.
pub trait Readable: Kind {
    /// What is read.
    type Value;
    /// The value under `name`, with the noun and the bounds of the declaration.
    fn read<'a>(key: &Key<Self>, section: &Section<'a>, name: &str) -> Setting<'a, Self::Value>;
    /// The default as a value.
    fn value(key: &Key<Self>, value: Self::Const) -> Self::Value;
}

/// A number of bytes, with or without a unit.
#[derive(Clone, Copy, Debug)]
pub struct Size;
/// Permission bits in octal.
#[derive(Clone, Copy, Debug)]
pub struct Permissions;
/// Paths and patterns of paths: a list, or one; no numbers.
#[derive(Clone, Copy, Debug)]
pub struct PathList;
/// One of several words, each standing for a value. See [`Key::one_of`].
#[derive(Clone, Copy, Debug)]
pub struct OneOf<T>(PhantomData<T>);
/// A map with the settings of a group. See [`Key::part`].
#[derive(Clone, Copy, Debug)]
pub struct Part;
/// A list of maps with the settings of a group. See [`Key::parts`].
#[derive(Clone, Copy, Debug)]
pub struct Parts;
/// A list of maps with the settings of a group of another crate. See [`Key::named_parts`].
#[derive(Clone, Copy, Debug)]
pub struct NamedParts;
/// `true`, `false`, or a map with the settings of a group. See [`Key::switch`].
#[derive(Clone, Copy, Debug)]
pub struct Switch;
/// Anything: a value whose shape is checked by its reader.
#[derive(Clone, Copy, Debug)]
pub struct Any;

/// Kinds of one text.
macro_rules! texts {
    ($($kind:ty, $getter:ident, $is_secret:expr;)*) => {$(
        impl Kind for $kind {
            type Const = &'static str;
            type Extra = ();
            const IS_SECRET: bool = $is_secret;

            fn show(_: &Key<Self>, value: &'static str) -> String {
                value.to_owned()
            }

            fn json(_: &Key<Self>, value: &'static str) -> Json {
                json!(value)
            }

            fn schema(_: &Key<Self>) -> Json {
                json!({"type": ["string", "number", "boolean", "null"]})
            }
        }

        impl Readable for $kind {
            type Value = $kind;

            fn read<'a>(key: &Key<Self>, section: &Section<'a>, name: &str) -> Setting<'a, $kind> {
                named(&key.spec, section.$getter(name))
            }

            fn value(_: &Key<Self>, value: &'static str) -> $kind {
                value.into()
            }
        }
    )*};
}

texts! {
    String, string, false;
    PathBuf, path_buf, false;
    Secret, secret, true;
}

/// Kinds of several texts.
macro_rules! lists {
    ($($kind:ty, $getter:ident, $item:expr;)*) => {$(
        impl Kind for $kind {
            type Const = &'static [&'static str];
            type Extra = ();

            fn show(_: &Key<Self>, value: Self::Const) -> String {
                format!("[{}]", value.join(", "))
            }

            fn json(_: &Key<Self>, value: Self::Const) -> Json {
                json!(value)
            }

            fn schema(key: &Key<Self>) -> Json {
                let items = json!({"type": $item});
                let mut schema = items.clone();
                if let Some(kinds) = schema["type"].as_array_mut() {
                    kinds.extend([json!("array"), json!("null")]);
                }
                schema["items"] = items;
                if key.spec.is_filled {
                    schema["minItems"] = json!(1);
                }
                schema
            }
        }

        impl Readable for $kind {
            type Value = Vec<String>;

            fn read<'a>(
                key: &Key<Self>,
                section: &Section<'a>,
                name: &str,
            ) -> Setting<'a, Vec<String>> {
                named(&key.spec, section.$getter(name))
            }

            fn value(_: &Key<Self>, value: Self::Const) -> Vec<String> {
                value.iter().map(|&text| text.to_owned()).collect()
            }
        }
    )*};
}

lists! {
    Vec<String>, strings, ["string", "number", "boolean"];
    PathList, paths, ["string"];
}

impl<T: Copy + Sync + 'static> Kind for OneOf<T> {
    /// The word.
    type Const = &'static str;
    type Extra = &'static [(&'static str, T)];

    fn show(_: &Key<Self>, word: &'static str) -> String {
        word.to_owned()
    }

    fn json(_: &Key<Self>, word: &'static str) -> Json {
        json!(word)
    }

    fn schema(key: &Key<Self>) -> Json {
        let words = key.extra.iter().map(|(word, _)| *word);
        if key.spec.ignores_case {
            let either = |letter: char| match letter {
                'a'..='z' | 'A'..='Z' => {
                    format!("[{}{}]", letter.to_ascii_lowercase(), letter.to_ascii_uppercase())
                }
                other => other.to_string(),
            };
            let words = words.map(|word| word.chars().map(either).collect::<String>());
            return text_like(&format!("^({})?$", words.collect::<Vec<_>>().join("|")));
        }
        // What YAML 1.1 takes for a boolean, whatever it means here.
        let boolean = |word| match word {
            "true" | "on" | "yes" => Some(json!(true)),
            "false" | "off" | "no" => Some(json!(false)),
            _ => None,
        };
        let booleans = words.clone().filter_map(boolean);
        let words: Vec<Json> = words.clone().map(|word| json!(word)).chain(booleans).collect();
        // An empty text is not set.
        let other = format!("^$|{VARIABLE}");
        json!({"anyOf": [{"enum": words}, {"type": ["null", "string"], "pattern": other}]})
    }
}

impl<T: Copy + Sync + 'static> Readable for OneOf<T> {
    type Value = T;

    fn read<'a>(key: &Key<Self>, section: &Section<'a>, name: &str) -> Setting<'a, T> {
        let same: fn(&str, &str) -> bool =
            if key.spec.ignores_case { str::eq_ignore_ascii_case } else { str::eq };
        named(&key.spec, section.one_of_same(name, key.extra, same))
    }

    fn value(key: &Key<Self>, word: &'static str) -> T {
        let found = key.extra.iter().find(|(name, _)| *name == word);
        let (_, value) = found.unwrap_or_else(|| panic!("`{word}` is no word of its setting"));
        *value
    }
}

impl Kind for BTreeMap<String, String> {
    type Const = ();
    type Extra = ();
    const TAKES_NAMES: bool = true;

    fn show(_: &Key<Self>, (): ()) -> String {
        "{}".to_owned()
    }

    fn json(_: &Key<Self>, (): ()) -> Json {
        json!({})
    }

    fn schema(_: &Key<Self>) -> Json {
        json!({"type": ["object", "null"], "additionalProperties": true})
    }
}

impl Readable for BTreeMap<String, String> {
    type Value = Self;

    fn read<'a>(key: &Key<Self>, section: &Section<'a>, name: &str) -> Setting<'a, Self> {
        named(&key.spec, section.string_map(name))
    }

    fn value(_: &Key<Self>, (): ()) -> Self {
        Self::new()
    }
}

impl Kind for Any {
    type Const = ();
    type Extra = ();
    const TAKES_NAMES: bool = true;

    fn show(_: &Key<Self>, (): ()) -> String {
        String::new()
    }

    fn json(_: &Key<Self>, (): ()) -> Json {
        Json::Null
    }

    fn schema(key: &Key<Self>) -> Json {
        if key.spec.is_map {
            return json!({"type": ["object", "string", "null"], "pattern": VARIABLE});
        }
        json!({})
    }
}

impl Readable for Any {
    type Value = Value;

    fn read<'a>(key: &Key<Self>, section: &Section<'a>, name: &str) -> Setting<'a, Value> {
        named(&key.spec, section.value(name))
    }

    fn value(_: &Key<Self>, (): ()) -> Value {
        Value::Null
    }
}

impl Kind for NamedParts {
    type Const = ();
    /// The group's id.
    type Extra = &'static str;
    const TAKES_NAMES: bool = true;

    fn show(_: &Key<Self>, (): ()) -> String {
        String::new()
    }

    fn json(_: &Key<Self>, (): ()) -> Json {
        Json::Null
    }

    fn schema(key: &Key<Self>) -> Json {
        list_of(key.extra)
    }

    fn inner_id(key: &Key<Self>) -> Option<&'static str> {
        Some(key.extra)
    }
}

/// Kinds of maps.
macro_rules! maps {
    ($($kind:ty, $is_list:expr, $schema:expr;)*) => {$(
        impl Kind for $kind {
            type Const = ();
            type Extra = &'static Group;

            fn show(_: &Key<Self>, (): ()) -> String {
                String::new()
            }

            fn json(_: &Key<Self>, (): ()) -> Json {
                Json::Null
            }

            fn schema(_: &Key<Self>) -> Json {
                $schema
            }

            fn inner(key: &Key<Self>) -> Option<Inner> {
                Some(Inner { group: key.extra, is_list: $is_list })
            }
        }
    )*};
}

maps! {
    Part, false, json!({});
    Parts, true, json!({});
    Switch, false, bool::schema(&Key::<bool>::new(""));
}
