//! Reading what is declared.

use super::{Any, Group, Key, Kind, Part, Parts, Readable, Spec, Switch, seen};
use crate::item::Item;
use crate::rule::Verdict;
use crate::section::Section;
use crate::setting::Setting;

impl<'a> Section<'a> {
    /// This section has the settings of `group`. Reports what is known about keys that it does not have, before what
    /// was known in general of a group that was declared earlier; a debug build then refuses to read a key of any
    /// other group.
    pub fn declared_by(&self, group: &'static Group) {
        let rules = |patterns: &[(&str, &str)], verdict| {
            for (pattern, advice) in patterns {
                self.add_rules(&[pattern], verdict, advice);
            }
        };
        let earlier = self.rules.borrow().len();
        for group in group.all() {
            if self.groups.borrow().iter().any(|known| known.id == group.id) {
                continue;
            }
            rules(group.unsupported, Verdict::Unsupported);
            rules(group.deprecated, Verdict::Deprecated);
            rules(group.without_effect, Verdict::NoEffect);
            rules(group.of_others, Verdict::OfOthers);
            self.groups.borrow_mut().push(group);
        }
        self.rules.borrow_mut().rotate_left(earlier);
    }

    /// Reads the setting `key`. End with [`Setting::value`] if it declares a default, with [`Setting::required`] or
    /// [`Setting::optional`] if not.
    pub fn get<K: Readable>(&self, key: &Key<K>) -> Setting<'a, K::Value> {
        let name = self.name_of(&key.spec);
        let setting = K::read(key, self, name);
        let setting = if key.spec.is_hidden { setting.hidden() } else { setting };
        setting.with_default(key.default.map(|default| K::value(key, default)))
    }

    /// The section of `key`; empty if there is none, so that its defaults are read.
    pub fn part(&self, key: &Key<Part>) -> Section<'a> {
        let section = self.section(self.name_of(&key.spec));
        section.declared_by(key.extra);
        section
    }

    /// The section of `key` if it is there (also if it is there and empty).
    pub fn optional_part(&self, key: &Key<Part>) -> Option<Section<'a>> {
        let section = self.optional_section(self.name_of(&key.spec))?;
        section.declared_by(key.extra);
        Some(section)
    }

    /// The sections of a list; a single map is a list of one. Missing means none.
    pub fn parts(&self, key: &Key<Parts>) -> Vec<Section<'a>> {
        let sections = self.sections(self.name_of(&key.spec));
        for section in &sections {
            section.declared_by(key.extra);
        }
        sections
    }

    /// [`Section::parts`], each with its value as it is.
    pub fn part_items(&self, key: &Key<Parts>) -> Vec<(Item<'a>, Section<'a>)> {
        let with_section = |item: Item<'a>| {
            let section = item.section();
            section.declared_by(key.extra);
            (item, section)
        };
        self.items(self.name_of(&key.spec)).into_iter().map(with_section).collect()
    }

    /// The value of `key` as it is, if it is set.
    pub fn any(&self, key: &Key<Any>) -> Option<Item<'a>> {
        self.item(self.name_of(&key.spec))
    }

    /// The map of `key`, in which any names may stand; empty if there is none.
    pub fn names(&self, key: &Key<Any>) -> Section<'a> {
        self.section(self.name_of(&key.spec))
    }

    /// The value of `key` as it is, if it is set, for what reads it by itself.
    pub fn item_of<K: Kind>(&self, key: &Key<K>) -> Option<Item<'a>> {
        self.item(self.name_of(&key.spec))
    }

    /// The items of a list as they are; a single value is a list of one. Missing means none.
    pub fn items_of<K: Kind>(&self, key: &Key<K>) -> Vec<Item<'a>> {
        self.items(self.name_of(&key.spec))
    }

    /// The section at `name`, of a map whose kinds `group` names by their only key. `None` if there is no such kind.
    pub fn kind(&self, name: &str, group: &'static Group) -> Option<Section<'a>> {
        let kinds = (group.kinds?.list)();
        let (_, kind) = kinds.into_iter().find(|(known, _)| *known == name)?;
        let section = self.section(name);
        section.declared_by(kind);
        for every in group.kinds?.every {
            section.declared_by(every);
        }
        Some(section)
    }

    /// The section of `key` if it is a map, otherwise whether it is on. `None` if it is not set, or wrong, which is
    /// reported.
    pub fn switch(&self, key: &Key<Switch>) -> Option<Result<bool, Section<'a>>> {
        let name = self.name_of(&key.spec);
        if self.item(name)?.is_map() {
            let section = self.section(name);
            section.declared_by(key.extra);
            return Some(Err(section));
        }
        self.bool(name).optional().map(Ok)
    }

    /// The settings of the map at `name`, if a group of this section declares them.
    pub fn declared_part(&self, name: &str) -> Option<&'static Group> {
        let groups = self.groups.borrow();
        let mut keys = groups.iter().flat_map(|group| group.own());
        Some(keys.find(|key| key.spec().name == name)?.inner()?.group)
    }

    /// Accepts `key` and everything below it, which is read elsewhere.
    pub fn accept_key<K: Kind>(&self, key: &Key<K>) {
        self.accept(self.name_of(&key.spec));
    }

    /// Whether `key` is there and not empty. Does not count as reading it.
    pub fn has_key<K: Kind>(&self, key: &Key<K>) -> bool {
        self.has(key.spec.name)
    }

    /// The name under which the setting is read: its alias if only that is there.
    pub(super) fn name_of(&self, spec: &Spec) -> &'static str {
        let groups = self.groups.borrow();
        debug_assert!(
            groups.is_empty()
                || spec.group.is_none_or(|own| groups.iter().any(|group| group.id == own.id)),
            "`{}` of {:?} is read from a section of {groups:?}",
            spec.name,
            spec.group,
        );
        let (mut name, mut other) = (spec.name, spec.alias);
        if !other.is_empty() {
            if !self.has(name) && self.has(other) {
                (name, other) = (other, name);
            }
            self.accept(other);
        }
        if self.has(name) {
            seen::record(spec);
        }
        name
    }
}
