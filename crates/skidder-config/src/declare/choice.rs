//! Kinds that are one of two things: `auto` or a number, a word or a map.

use super::kind::{Kind, Readable};
use super::{Group, Inner, Key};
use crate::section::Section;
use crate::setting::Setting;
use serde_json::{Value as Json, json};
use std::marker::PhantomData;

/// The word that leaves a value to the program.
const AUTO: &str = "auto";

/// `auto`, which is `None`, or a value of another kind.
#[derive(Clone, Copy, Debug)]
pub struct OrAuto<K>(PhantomData<K>);

/// A map with the settings of a group, or one of some words. See [`Key::part_or_word`].
#[derive(Clone, Copy, Debug)]
pub struct PartOrWord;

impl<K: Kind<Extra = ()>> Key<OrAuto<K>> {
    /// The same setting without `auto`.
    fn plain(&self) -> Key<K> {
        Key {
            spec: self.spec,
            default: self.default.flatten(),
            low: self.low.flatten(),
            high: self.high.flatten(),
            extra: (),
        }
    }
}

impl<K: Kind<Extra = ()>> Kind for OrAuto<K> {
    /// `None` is `auto`.
    type Const = Option<K::Const>;
    type Extra = ();

    fn show(key: &Key<Self>, value: Self::Const) -> String {
        value.map_or_else(|| AUTO.to_owned(), |value| K::show(&key.plain(), value))
    }

    fn json(key: &Key<Self>, value: Self::Const) -> Json {
        value.map_or_else(|| json!(AUTO), |value| K::json(&key.plain(), value))
    }

    fn schema(key: &Key<Self>) -> Json {
        json!({"anyOf": [{"const": AUTO}, K::schema(&key.plain())]})
    }
}

impl<K: Readable + Kind<Extra = ()>> Readable for OrAuto<K> {
    type Value = Option<K::Value>;

    fn read<'a>(key: &Key<Self>, section: &Section<'a>, name: &str) -> Setting<'a, Self::Value> {
        if section.find(name, false).and_then(|node| node.text()) == Some(AUTO) {
            return section.string(name).map(|_| None);
        }
        K::read(&key.plain(), section, name).map(Some)
    }

    fn value(key: &Key<Self>, value: Self::Const) -> Self::Value {
        value.map(|value| K::value(&key.plain(), value))
    }
}

impl Key<PartOrWord> {
    /// A map with the settings of `group`, or one of `words`.
    pub const fn part_or_word(
        name: &'static str,
        group: &'static Group,
        words: &'static [(&'static str, ())],
    ) -> Self {
        Self::with(name, (group, words))
    }
}

impl Kind for PartOrWord {
    /// The word.
    type Const = &'static str;
    type Extra = (&'static Group, &'static [(&'static str, ())]);

    fn show(_: &Key<Self>, word: &'static str) -> String {
        word.to_owned()
    }

    fn json(_: &Key<Self>, word: &'static str) -> Json {
        json!(word)
    }

    fn schema(key: &Key<Self>) -> Json {
        // An empty text is not set.
        let words = key.extra.1.iter().map(|(word, ())| *word);
        let words: Vec<&str> = words.chain([""]).collect();
        json!({"enum": words})
    }

    fn inner(key: &Key<Self>) -> Option<Inner> {
        Some(Inner { group: key.extra.0, is_list: false })
    }
}

impl<'a> Section<'a> {
    /// The section of `key`; nothing if a word is there, or nothing. Reports a word that is none of the key's.
    pub fn part_unless_word(&self, key: &Key<PartOrWord>) -> Option<Section<'a>> {
        let name = self.name_of(&key.spec);
        let (group, words) = key.extra;
        if !self.item(name)?.is_map() {
            self.one_of(name, words).optional();
            return None;
        }
        let section = self.section(name);
        section.declared_by(group);
        Some(section)
    }
}
