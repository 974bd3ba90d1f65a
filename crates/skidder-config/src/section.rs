//! Typed reading of a map, and the check that every key of it was read.
//!
//! A [`Section`] is a view of one map with its full path. Getters take a dotted key, record that it
//! was read, and return a [`Setting`]. When the section ends ([`Section::finish`] or going out of
//! scope) every key that was not read is reported: as *known to Filebeat, not supported*, as
//! *deprecated*, or as unknown with the nearest known name. Mistakes never stop the reading.

use crate::declare::Group;
use crate::item::Item;
use crate::node::{Content, Entry, Map, Node, Value};
use crate::problem::{Position, Problem, Problems, Subject};
use crate::rule::{Rule, Verdict};
use crate::secret::Secret;
use crate::setting::{Place, Refusal, Setting};
use crate::units::SignedDuration;
use crate::{read, tree};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

/// A view of one map of settings. See the module's text; the crate's page has an example.
#[derive(Debug)]
pub struct Section<'a> {
    pub(crate) map: Option<&'a Map>,
    path: String,
    position: Option<Position>,
    pub(crate) problems: &'a Problems,
    /// Dotted keys that were read, relative to this section.
    pub(crate) keys_read: RefCell<BTreeSet<String>>,
    pub(crate) rules: RefCell<Vec<Rule>>,
    /// The end checks nothing.
    pub(crate) skipped: Cell<bool>,
    /// It is turned off.
    pub(crate) is_off: Cell<bool>,
    /// Unknown settings in it are only warnings.
    pub(crate) forgives: Cell<bool>,
    /// [`Problems::errors_reported`] when it began.
    pub(crate) errors_before: u64,
    /// It is no map, which is reported.
    is_reported: bool,
    /// The declarations that are read here; with none, any.
    pub(crate) groups: RefCell<Vec<&'static Group>>,
}

impl<'a> Section<'a> {
    /// The section of `node`; reports a value that is not a map.
    pub(crate) fn new(node: Option<&'a Node>, path: String, problems: &'a Problems) -> Self {
        Self::with_hint(node, path, problems, "")
    }

    /// [`Section::new`], with what to write instead of a value that is not a map.
    fn with_hint(node: Option<&'a Node>, path: String, problems: &'a Problems, hint: &str) -> Self {
        let map = node.and_then(|node| map_of(node, &path, problems, hint));
        Self {
            map,
            path,
            position: node.map(|node| node.position.clone()),
            problems,
            keys_read: RefCell::default(),
            rules: RefCell::default(),
            groups: RefCell::default(),
            skipped: Cell::new(false),
            is_off: Cell::new(false),
            forgives: Cell::new(false),
            errors_before: problems.errors_reported(),
            is_reported: map.is_none() && node.is_some_and(|node| !node.is_null()),
        }
    }

    /// Full path of this section, empty for the root.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Where this section begins; `None` if it is not in any file.
    pub fn position(&self) -> Option<&Position> {
        self.position.as_ref()
    }

    /// The problems that this section adds to.
    pub fn problems(&self) -> &'a Problems {
        self.problems
    }

    /// The full path of `key`, for messages.
    pub fn path_of(&self, key: &str) -> String {
        tree::join(&self.path, key)
    }

    /// Whether `key` is there, and is neither empty nor an empty text. Does not count as reading it.
    pub fn has_text(&self, key: &str) -> bool {
        self.find(key, false).is_some_and(|node| node.text() != Some(""))
    }

    /// Whether `key` is there and not empty. Does not count as reading it.
    pub fn has(&self, key: &str) -> bool {
        self.find(key, false).is_some()
    }

    /// The keys of this section, one level, in the order of writing. Does not count as reading.
    pub fn keys(&self) -> Vec<&'a str> {
        self.map.into_iter().flat_map(Map::iter).map(|entry| entry.key.as_str()).collect()
    }

    /// A boolean. Words in quotes count too (`"on"`).
    pub fn bool(&self, key: &str) -> Setting<'a, bool> {
        self.setting(key, read::BOOL, |node, _| read::boolean(node))
    }

    /// A whole number, zero or more.
    pub fn u64(&self, key: &str) -> Setting<'a, u64> {
        self.setting(key, read::WHOLE, |node, _| read::whole(node))
    }

    /// A whole number, zero or more.
    pub fn u32(&self, key: &str) -> Setting<'a, u32> {
        self.setting(key, read::WHOLE, |node, _| read::whole(node))
    }

    /// A whole number up to 65535, such as a port.
    pub fn u16(&self, key: &str) -> Setting<'a, u16> {
        self.setting(key, read::WHOLE, |node, _| read::whole(node))
    }

    /// A whole number, zero or more.
    pub fn usize(&self, key: &str) -> Setting<'a, usize> {
        self.setting(key, read::WHOLE, |node, _| read::whole(node))
    }

    /// A whole number.
    pub fn i64(&self, key: &str) -> Setting<'a, i64> {
        self.setting(key, read::WHOLE, |node, _| read::whole(node))
    }

    /// Any number.
    pub fn f64(&self, key: &str) -> Setting<'a, f64> {
        self.setting(key, read::NUMBER, |node, _| read::float(node))
    }

    /// A text, exactly as written: `0644` and `1.10` stay what they are.
    pub fn string(&self, key: &str) -> Setting<'a, String> {
        self.setting(key, read::TEXT, |node, _| read::text(node).map(str::to_owned)).or_blank()
    }

    /// Several texts; a single one is a list of one.
    pub fn strings(&self, key: &str) -> Setting<'a, Vec<String>> {
        self.setting(key, read::TEXTS, read::texts).or_blank()
    }

    /// Paths and patterns of paths, as [`Section::strings`] but no numbers.
    pub fn paths(&self, key: &str) -> Setting<'a, Vec<String>> {
        self.setting(key, read::PATHS, read::paths).or_blank()
    }

    /// A password, key or token: never shown in a message.
    pub fn secret(&self, key: &str) -> Setting<'a, Secret> {
        let place = Place { hidden: true, ..self.place(key) };
        Setting::read(place, read::TEXT, |node, _| read::text(node).map(Secret::new)).or_blank()
    }

    /// A path of the file system, as written (its setting defines what a relative one is relative to).
    pub fn path_buf(&self, key: &str) -> Setting<'a, PathBuf> {
        self.setting(key, "a path", |node, _| match read::text(node) {
            Ok(text) => Ok(PathBuf::from(text)),
            Err(_) => Err(Refusal::Expected("a path".to_owned())),
        })
        .or_blank()
    }

    /// A duration of zero or more: `1h30m`, `5s`, `100ms`, or a bare number of seconds.
    pub fn duration(&self, key: &str) -> Setting<'a, Duration> {
        self.setting(key, read::DURATION, |node, _| read::duration(node))
    }

    /// A duration that may be negative, for settings where `-1` means something.
    pub fn signed_duration(&self, key: &str) -> Setting<'a, SignedDuration> {
        self.setting(key, read::DURATION, |node, _| read::signed_duration(node))
    }

    /// A number of bytes; see [`crate::units::parse_size`] for the units.
    pub fn size(&self, key: &str) -> Setting<'a, u64> {
        self.setting(key, read::SIZE, |node, _| read::size(node))
    }

    /// Permission bits in octal, `0o777` at most.
    pub fn permissions(&self, key: &str) -> Setting<'a, u32> {
        self.setting(key, read::PERMISSIONS, |node, _| read::permissions(node))
    }

    /// One of several words, each standing for a value:
    /// `section.one_of("level", &[("debug", Level::Debug), ("info", Level::Info)])`.
    pub fn one_of<T: Clone>(&self, key: &str, words: &[(&str, T)]) -> Setting<'a, T> {
        self.one_of_same(key, words, str::eq)
    }

    /// [`Section::one_of`], where `same` compares words.
    pub(crate) fn one_of_same<T: Clone>(
        &self,
        key: &str,
        words: &[(&str, T)],
        same: fn(&str, &str) -> bool,
    ) -> Setting<'a, T> {
        let names = words.iter().filter(|(name, _)| !name.is_empty());
        let names: Vec<String> = names.map(|(name, _)| format!("`{name}`")).collect();
        let noun = match names.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
            None => "nothing".to_owned(),
        };
        self.setting(key, &noun, |node, _| {
            let is_meant = |name: &str| node.text().is_some_and(|text| same(name, text));
            match words.iter().find(|(name, _)| is_meant(name)) {
                Some((_, value)) => Ok(value.clone()),
                None => Err(Refusal::Expected(noun.clone())),
            }
        })
        .or_blank()
    }

    /// A map of names to texts. Names may hold dots.
    pub fn string_map(&self, key: &str) -> Setting<'a, BTreeMap<String, String>> {
        self.setting(key, read::TEXT_MAP, read::text_map)
    }

    /// Any value, without places.
    pub fn value(&self, key: &str) -> Setting<'a, Value> {
        self.setting(key, "a value", |node, place| {
            if read::report_unresolved(node, place) {
                Ok(node.to_value())
            } else {
                Err(Refusal::Reported)
            }
        })
    }

    /// The section at `key`; empty if there is none, so that its defaults are read.
    pub fn section(&self, key: &str) -> Section<'a> {
        let place = self.place(key);
        let hint = place.node.map(|node| self.hint_to_turn(key, node)).unwrap_or_default();
        let mut section = Section::with_hint(place.node, place.path, self.problems, &hint);
        if section.position.is_none() {
            section.position = place.section;
            section.is_reported = place.is_reported;
        }
        section
    }

    /// The section at `key` if it is there (also if it is there and empty).
    pub fn optional_section(&self, key: &str) -> Option<Section<'a>> {
        let entry = self.entry(key);
        let section = self.section(key);
        if entry.is_some() { Some(section) } else { None }
    }

    /// The sections of a list; a single map is a list of one. Missing means none.
    pub fn sections(&self, key: &str) -> Vec<Section<'a>> {
        self.items(key).into_iter().map(|item| item.section()).collect()
    }

    /// The value at `key` as it is, if it is set.
    pub fn item(&self, key: &str) -> Option<Item<'a>> {
        let place = self.place(key);
        let node = place.node?;
        Some(Item::new(node, place.path, self.problems))
    }

    /// The items of a list as they are; a single value is a list of one. Missing means none.
    pub fn items(&self, key: &str) -> Vec<Item<'a>> {
        self.item(key).map_or_else(Vec::new, Item::into_items)
    }

    /// Every value of this section with its dotted name, for maps whose keys are field names
    /// (conditions, `fields`). Counts as reading all of them.
    pub fn leaves(&self) -> Vec<(String, Item<'a>)> {
        let mut found = Vec::new();
        for entry in self.map.into_iter().flat_map(Map::iter) {
            self.keys_read.borrow_mut().insert(entry.key.clone());
            read::for_each_leaf(&entry.value, &entry.key, &mut |name, node| {
                let item = Item::new(node, self.path_of(name), self.problems);
                found.push((name.to_owned(), item));
            });
        }
        found
    }

    /// Reports a mistake of the caller's own at the place of `key` (or of the section, if `key` is
    /// not set). An empty `hint` is left out.
    pub fn problem(&self, key: &str, message: impl Into<String>, hint: impl Into<String>) {
        if !self.is_reported {
            let position = self.position_of(key);
            self.problems.push(Problem::error(position, message).hint(hint));
        }
    }

    /// Reports an error of code that knows a setting only by its name in this section: its full path takes the place of
    /// the name.
    pub fn problem_named(&self, key: &str, error: &dyn std::fmt::Display) {
        let message = error.to_string();
        let full = format!("`{}`", self.path_of(key));
        self.problem(key, message.replace(&format!("`{key}`"), &full), "");
    }

    /// Reports that `key` must be there: unless it is found under a misspelt name.
    pub fn missing(&self, key: &str, what: &str, hint: &str) {
        if self.is_reported {
            return;
        }
        let message = format!("`{}` {what}", self.path_of(key));
        let problem = Problem::error(self.position_of(key), message).hint(hint);
        self.problems.push(problem.about(Subject::Missing));
    }

    /// Like [`Section::problem`], for what does not stop the start.
    pub fn warning(&self, key: &str, message: impl Into<String>, hint: impl Into<String>) {
        let position = self.position_of(key);
        self.problems.push(Problem::warning(position, message).hint(hint));
    }

    /// Settings that Filebeat knows and skidder does not, with what to do about it. `key.*` means
    /// `key` and everything below it.
    pub fn unsupported(&self, patterns: &[&str], advice: &str) {
        self.add_rules(patterns, Verdict::Unsupported, advice);
    }

    /// Settings that are accepted without effect; `advice` has the reason, and the replacement.
    pub fn deprecated(&self, patterns: &[&str], advice: &str) {
        self.add_rules(patterns, Verdict::Deprecated, advice);
    }

    /// A part of Filebeat that is not here: fine unless it is `enabled`. Its other settings tune what is off.
    pub fn unsupported_if_enabled(&self, part: &str, advice: &str) {
        self.if_enabled(part, Verdict::Unsupported, advice);
    }

    /// A part of Filebeat that is not here and that a run does without, also if it is `enabled`.
    pub fn without_effect_if_enabled(&self, part: &str, advice: &str) {
        self.if_enabled(part, Verdict::NoEffect, advice);
    }

    fn if_enabled(&self, part: &str, verdict: Verdict, advice: &str) {
        let inner = self.section(part);
        let key = format!("{part}.enabled");
        if inner.bool("enabled").or(false)
            && let Some(entry) = self.entry(&key)
        {
            self.report_rule(&Rule::new(&key, verdict, advice), &key, entry);
        }
        inner.skip();
    }

    /// Settings that are for a part of Filebeat that is not here and that a run does without; `advice` says
    /// what to do instead.
    pub fn without_effect(&self, patterns: &[&str], advice: &str) {
        self.add_rules(patterns, Verdict::NoEffect, advice);
    }

    /// A setting of an older Filebeat that has no effect: a warning with `advice`, unless it says what holds anyway.
    pub fn without_effect_unless(
        &self,
        key: &crate::Key<String>,
        holds: Option<&str>,
        advice: &str,
    ) {
        let Some(value) = self.get(key).optional() else { return };
        if holds != Some(&value) {
            let message = format!("`{}` has no effect", self.path_of(key.name()));
            self.warning(key.name(), message, advice);
        }
    }

    /// Accepts `key` and everything below it, which is read elsewhere.
    pub fn accept(&self, key: &str) {
        self.keys_read.borrow_mut().insert(key.to_owned());
    }

    /// Ends the reading: reports every key that was not read.
    pub fn finish(self) {
        drop(self);
    }

    /// For a section that is turned off (`enabled: false`): settings that are left need not be read. Names that are
    /// not declared are only warnings: Filebeat does not look at it, and neither name nor value does any harm.
    pub fn off(&self) {
        self.is_off.set(true);
    }

    /// Unknown settings in the file where this section begins are only warnings, because a program wrote that file, and
    /// not the user. Those that the user laid over it are errors.
    pub fn forgive(&self) {
        self.forgives.set(true);
    }

    /// Whether a program wrote the setting at `place`.
    pub(crate) fn forgives_at(&self, place: &Position) -> bool {
        let own = self.position.as_ref();
        self.forgives.get() && own.is_some_and(|own| own.source().name() == place.source().name())
    }

    /// Ends the reading without looking at the keys that are left, for a section that is read elsewhere.
    pub fn skip(self) {
        self.skipped.set(true);
    }

    pub(crate) fn add_rules(&self, patterns: &[&str], verdict: Verdict, advice: &str) {
        let rule = |pattern: &&str| Rule::new(pattern, verdict, advice);
        self.rules.borrow_mut().extend(patterns.iter().map(rule));
    }

    fn setting<T>(
        &self,
        key: &str,
        noun: &str,
        parse: impl FnOnce(&'a Node, &Place<'a>) -> Result<T, Refusal>,
    ) -> Setting<'a, T> {
        Setting::read(self.place(key), noun, parse)
    }

    pub(crate) fn place(&self, key: &str) -> Place<'a> {
        Place {
            problems: self.problems,
            path: self.path_of(key),
            node: self.find(key, true),
            section: self.position.clone(),
            hidden: false,
            is_reported: self.is_reported,
        }
    }

    fn position_of(&self, key: &str) -> Option<Position> {
        let entry = self.entry(key);
        entry.map(|entry| entry.value.position.clone()).or_else(|| self.position.clone())
    }

    /// The value at a dotted key, `None` if it is missing or empty. With `ask` the key counts as
    /// read, and a value in the way that is not a map is reported.
    pub(crate) fn find(&self, key: &str, ask: bool) -> Option<&'a Node> {
        if ask {
            self.keys_read.borrow_mut().insert(key.to_owned());
        }
        let mut map = self.map?;
        let mut levels = key.split('.').peekable();
        let mut path = self.path.clone();
        loop {
            let level = levels.next()?;
            let value = &map.get(level)?.value;
            path = tree::join(&path, level);
            if levels.peek().is_none() {
                return if value.is_null() { None } else { Some(value) };
            }
            map = match &value.content {
                Content::Map(inner) => inner,
                _ if ask => {
                    let part = path[self.path.len()..].trim_start_matches('.');
                    map_of(value, &path, self.problems, &self.hint_to_turn(part, value))?
                }
                _ => return None,
            };
        }
    }

    /// The entry at a dotted key, also if its value is empty.
    pub(crate) fn entry(&self, key: &str) -> Option<&'a Entry> {
        let (above, last) = match key.rsplit_once('.') {
            Some((above, last)) => (self.find(above, false)?.as_map()?, last),
            None => (self.map?, key),
        };
        above.get(last)
    }
}

/// The map of `node`; reports a value that is neither a map nor empty, with `hint`.
fn map_of<'a>(node: &'a Node, path: &str, problems: &Problems, hint: &str) -> Option<&'a Map> {
    match &node.content {
        Content::Map(map) => Some(map),
        Content::Null => None,
        _ => {
            let problem = node.unresolved_problem(path).unwrap_or_else(|| {
                let name = if path.is_empty() { "the configuration" } else { path };
                let message =
                    format!("`{name}` is {}; expected a map of settings", node.shown_at(path));
                Problem::error(node.position.clone(), message).hint(hint)
            });
            problems.push(problem);
            None
        }
    }
}

#[cfg(test)]
#[path = "section_tests.rs"]
mod tests;
