//! Settings of one map, and what is known about keys that are not read.

use super::{Key, Kind, Spec};
use serde_json::Value as Json;

/// The settings of one map of the configuration.
#[derive(Clone, Copy)]
pub struct Group {
    /// Its name in the schema and in documents: `output.redis`.
    pub id: &'static str,
    /// Its purpose, one sentence.
    pub about: &'static str,
    pub(crate) keys: &'static [&'static dyn Declared],
    pub(crate) included: &'static [&'static Group],
    pub(crate) unsupported: &'static [(&'static str, &'static str)],
    pub(crate) deprecated: &'static [(&'static str, &'static str)],
    pub(crate) without_effect: &'static [(&'static str, &'static str)],
    pub(crate) of_others: &'static [(&'static str, &'static str)],
    /// A name that another program has, the setting that is meant, and a hint.
    pub(crate) elsewhere: &'static [(&'static str, &'static str, &'static str)],
    /// A map is one of these kinds.
    pub(crate) kinds: Option<Kinds>,
    /// Other keys are allowed: names of fields, or settings that are not declared yet.
    pub(crate) is_open: bool,
    /// Tables leave it out: what several groups share, and a page explains once.
    pub(crate) is_common: bool,
    /// Its settings stand in the table of the map that it is in, under their dotted names.
    pub(crate) is_inline: bool,
}

impl std::fmt::Debug for Group {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Group").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Group {
    /// A group without keys. [`settings!`](macro@crate::settings) adds them.
    pub const fn new(id: &'static str, about: &'static str) -> Self {
        Self {
            id,
            about,
            keys: &[],
            included: &[],
            unsupported: &[],
            deprecated: &[],
            without_effect: &[],
            of_others: &[],
            elsewhere: &[],
            kinds: None,
            is_open: false,
            is_common: false,
            is_inline: false,
        }
    }

    /// The settings of these groups are settings of this one, too.
    pub const fn include(self, included: &'static [&'static Group]) -> Self {
        Self { included, ..self }
    }

    /// Settings that Filebeat knows and skidder does not, each with what to do about it. `key.*` means `key` and
    /// everything below it.
    pub const fn unsupported(self, rules: &'static [(&'static str, &'static str)]) -> Self {
        Self { unsupported: rules, ..self }
    }

    /// Settings that are accepted without effect, each with why, or what to use instead.
    pub const fn deprecated(self, rules: &'static [(&'static str, &'static str)]) -> Self {
        Self { deprecated: rules, ..self }
    }

    /// Settings of a part of Filebeat that is not here and that a run does without, each with what to do instead.
    pub const fn without_effect(self, rules: &'static [(&'static str, &'static str)]) -> Self {
        Self { without_effect: rules, ..self }
    }

    /// Settings of another kind of the same map, each with where it belongs: they are ignored with a warning, as
    /// Filebeat ignores them silently. A name that another program has for a setting of this kind, or that is one edit
    /// away from one, is an unknown setting instead.
    pub const fn of_others(self, rules: &'static [(&'static str, &'static str)]) -> Self {
        Self { of_others: rules, ..self }
    }

    /// Names that settings have in other programs: each with the setting that is meant, which is not reported as missing
    /// then, and a hint. An empty hint proposes the setting.
    pub const fn called_elsewhere(
        self,
        elsewhere: &'static [(&'static str, &'static str, &'static str)],
    ) -> Self {
        Self { elsewhere, ..self }
    }

    /// A map is one of these kinds, besides what it has itself.
    pub const fn kinds(self, kinds: Kinds) -> Self {
        Self { kinds: Some(kinds), ..self }
    }

    /// Other keys are allowed, which are read without a declaration.
    pub const fn open(self) -> Self {
        Self { is_open: true, ..self }
    }

    /// Tables leave it out: what several groups share, and a page explains once.
    pub const fn common(self) -> Self {
        Self { is_common: true, ..self }
    }

    /// Its settings stand in the table of the map that it is in, under their dotted names.
    pub const fn inline(self) -> Self {
        Self { is_inline: true, ..self }
    }

    #[doc(hidden)]
    pub const fn keys(self, keys: &'static [&'static dyn Declared]) -> Self {
        Self { keys, ..self }
    }

    /// The settings that are declared in it, without those of the groups that it includes.
    pub fn own(&self) -> &'static [&'static dyn Declared] {
        self.keys
    }

    /// This group and those that it includes, all levels.
    pub fn all(&'static self) -> Vec<&'static Self> {
        let mut all = vec![self];
        for group in self.included {
            all.extend(group.all());
        }
        all
    }

    /// Its settings and those of the groups that it includes.
    pub fn declared(&'static self) -> impl Iterator<Item = &'static dyn Declared> {
        self.all().into_iter().flat_map(|group| group.keys.iter().copied())
    }

    /// The dotted names of the settings in maps of this one, one level deep.
    pub(crate) fn below(&'static self) -> impl Iterator<Item = String> {
        self.declared().flat_map(|declared| {
            let own = declared.spec().name;
            let inner = declared.inner().filter(|inner| !inner.is_list);
            let inner = inner.into_iter().flat_map(|inner| inner.group.declared());
            let inner = inner.map(move |inner| format!("{own}.{}", inner.spec().name));
            own.contains('.').then(|| own.to_owned()).into_iter().chain(inner)
        })
    }

    /// What is declared about the dotted `key`.
    pub(crate) fn known(&'static self, key: &str) -> Known {
        let mut best = Known::Not;
        for declared in self.declared() {
            let spec = declared.spec();
            for name in [spec.name, spec.alias].into_iter().filter(|name| !name.is_empty()) {
                let below = |rest: &str| match declared.inner() {
                    Some(Inner { group, is_list: false }) => group.known_inside(rest),
                    // Its reader judges the value.
                    _ => Known::Declared,
                };
                best = best.max(known_under(key, name, below));
            }
        }
        let Some(Kinds { by, list, every }) = self.kinds else { return best };
        let kinds = list();
        let kinds = kinds.iter().map(|(name, group)| match by {
            By::Tag { .. } => group.known(key),
            By::Name => known_under(key, name, |rest| {
                let every = every.iter().map(|group| group.known_inside(rest));
                every.fold(group.known_inside(rest), Known::max)
            }),
        });
        kinds.fold(best, Known::max)
    }

    /// [`Group::known`] for the keys in the map of a setting.
    pub(crate) fn known_inside(&'static self, key: &str) -> Known {
        if self.is_open { Known::Declared } else { self.known(key) }
    }

    /// This group and every group that a setting of it leads to or that one of them includes, each once.
    pub fn reachable(&'static self) -> Vec<&'static Self> {
        let mut found: Vec<&'static Self> = Vec::new();
        let mut next = vec![self];
        while let Some(group) = next.pop() {
            match found.iter().find(|known| known.id == group.id) {
                Some(known) => assert!(
                    std::ptr::eq(*known, group),
                    "two groups of settings are called `{}`",
                    group.id
                ),
                None => {
                    found.push(group);
                    next.extend(group.included);
                    next.extend(group.keys.iter().filter_map(|key| Some(key.inner()?.group)));
                    if let Some(kinds) = group.kinds {
                        next.extend(kinds.every);
                        next.extend((kinds.list)().into_iter().map(|(_, group)| group));
                    }
                }
            }
        }
        found
    }
}

/// The declaration of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Known {
    /// Nothing.
    Not,
    /// Settings stand below it.
    Above,
    /// It is a setting.
    Declared,
}

/// What the setting `name` declares about `key`; `below` is the rest of `key` after it.
fn known_under(key: &str, name: &str, below: impl FnOnce(&str) -> Known) -> Known {
    let is_below = |rest: &str| rest.starts_with('.');
    match key.strip_prefix(name) {
        Some("") => Known::Declared,
        Some(rest) if is_below(rest) => below(&rest[1..]),
        _ if name.strip_prefix(key).is_some_and(is_below) => Known::Above,
        _ => Known::Not,
    }
}

/// What a map can be: one of several kinds, each with the settings of a group.
#[derive(Clone, Copy)]
pub struct Kinds {
    /// What the kind is chosen by.
    pub(crate) by: By,
    /// The kinds by their names. A function, because they come from several crates.
    pub(crate) list: fn() -> Vec<(&'static str, &'static Group)>,
    /// What each kind has besides.
    pub(crate) every: &'static [&'static Group],
}

/// What the kind of a map is chosen by.
#[derive(Clone, Copy)]
pub(crate) enum By {
    /// Its only key, with the settings of the kind below it: `{multiline: {type: count}}`.
    Name,
    /// The value of one of its keys: `{type: tcp, host: a}`.
    Tag { key: &'static str, default: &'static str },
}

impl Kinds {
    /// The kind is the only key of the map, and its settings are below it.
    pub const fn by_name(list: fn() -> Vec<(&'static str, &'static Group)>) -> Self {
        Self { by: By::Name, list, every: &[] }
    }

    /// The kind is the value of `key`, `default` if it is not set; its settings are beside it. `key` must be declared
    /// in [`Kinds::with`] or in each kind.
    pub const fn by_tag(
        key: &'static str,
        default: &'static str,
        list: fn() -> Vec<(&'static str, &'static Group)>,
    ) -> Self {
        Self { by: By::Tag { key, default }, list, every: &[] }
    }

    /// Each kind has the settings of these groups, too.
    pub const fn with(self, every: &'static [&'static Group]) -> Self {
        Self { every, ..self }
    }
}

/// Maps below a setting.
#[derive(Clone, Copy, Debug)]
pub struct Inner {
    /// The settings of each map.
    pub group: &'static Group,
    /// It is a list of maps.
    pub is_list: bool,
}

/// A setting of any type.
pub trait Declared: Sync {
    /// What all settings have.
    fn spec(&self) -> &Spec;
    /// The constant default as a user would write it.
    fn default_text(&self) -> Option<String>;
    /// Its JSON Schema, without the parts from [`Spec`].
    fn schema(&self) -> Json;
    /// The constant default in JSON.
    fn default_json(&self) -> Option<Json>;
    /// The maps below it.
    fn inner(&self) -> Option<Inner>;
    /// The id of the group of the maps below it, if another crate declares that.
    fn inner_id(&self) -> Option<&'static str>;
    /// It is a map of any names.
    fn takes_names(&self) -> bool;
}

impl<K: Kind> Declared for Key<K> {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn default_text(&self) -> Option<String> {
        self.default.map(|default| K::show(self, default))
    }

    fn schema(&self) -> Json {
        K::schema(self)
    }

    fn default_json(&self) -> Option<Json> {
        self.default.map(|default| K::json(self, default))
    }

    fn inner(&self) -> Option<Inner> {
        K::inner(self)
    }

    fn inner_id(&self) -> Option<&'static str> {
        K::inner_id(self)
    }

    fn takes_names(&self) -> bool {
        K::TAKES_NAMES
    }
}
