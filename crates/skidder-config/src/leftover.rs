//! The rest of a [`Section`] when it ends: keys that were not read, each with a reason or the nearest name.

use crate::declare::Known;
use crate::node::{Content, Entry, Map, Node};
use crate::problem::{Problem, Severity, Subject};
use crate::rule::Rule;
use crate::section::Section;
use crate::{suggest, tree};

impl Section<'_> {
    /// Reports `key`, if it is set, as a setting that is unknown here, with what to write instead. `meant` is the
    /// right setting, which is then not reported as missing. Empty for none.
    pub fn unknown(&self, key: &str, meant: &str, hint: &str) {
        let Some(entry) = self.entry(key) else { return };
        self.accept(key);
        if !meant.is_empty() {
            self.forget_missing(meant);
        }
        self.push_unknown(key, entry, hint);
    }

    /// The missing setting is there under another name. In a lenient configuration that is only a warning.
    fn forget_missing(&self, name: &str) {
        if !self.is_off.get() && self.problems.unknown_severity() == Severity::Error {
            self.problems.forget_missing(&format!("`{}` ", self.path_of(name)));
        }
    }

    fn push_unknown(&self, key: &str, entry: &Entry, hint: &str) {
        let message = format!("unknown setting `{}`", self.path_of(key));
        let place = entry.key_position.clone();
        let problem = Problem::error(place.clone(), message).about(Subject::Unknown).hint(hint);
        let is_mild = self.is_off.get() || self.forgives_at(&place);
        let severity = if is_mild { Severity::Warning } else { self.problems.unknown_severity() };
        self.problems.push(Problem { severity, ..problem });
    }

    /// Whether it is no wonder that not all of its settings were read.
    fn ends_early(&self) -> bool {
        self.is_off.get() || self.problems.errors_reported() > self.errors_before
    }

    /// The declaration of a key that was not read, as far as that excuses it: if the section is turned off, or
    /// its reading may have ended early, after a mistake.
    fn excuse(&self, key: &str, entry: &Entry) -> Known {
        if !self.ends_early() && !entry.value.is_null() {
            return Known::Not;
        }
        let groups = self.groups.borrow();
        groups.iter().map(|group| group.known_inside(key)).fold(Known::Not, Known::max)
    }

    /// Reports the keys of `map` (at `prefix` below this section) that were not read.
    fn check_keys(&self, map: &Map, prefix: &str) {
        for entry in map.iter() {
            let key = tree::join(prefix, &entry.key);
            if self.keys_read.borrow().contains(&key) {
                continue;
            }
            if let Some(rule) = self.rules.borrow().iter().find(|rule| rule.covers(&key)) {
                // Empty, and without effect, like `setup.kibana:` in Filebeat's own file.
                let is_quiet = entry.value.is_null() || self.is_off.get();
                if !is_quiet && rule.is_of_others() && self.is_meant_here(prefix, &key, entry) {
                    self.report_unknown(prefix, &key, entry);
                } else if !is_quiet {
                    self.report_rule(rule, &key, entry);
                }
                continue;
            }
            let below = format!("{key}.");
            let leads_on = self.keys_read.borrow().iter().any(|read| read.starts_with(&below))
                || self.rules.borrow().iter().any(|rule| rule.pattern.starts_with(&below));
            let excuse = self.excuse(&key, entry);
            match &entry.value.content {
                Content::Map(inner) if leads_on || excuse != Known::Not => {
                    self.check_keys(inner, &key);
                }
                // Empty, or reported as "must be a map" when a key below it was read.
                _ if leads_on || excuse != Known::Not => {}
                _ => self.report_unknown(prefix, &key, entry),
            }
        }
    }

    /// The only setting of a map of this section for which `is_meant` is true. None that deletes something.
    fn only_below(&self, is_meant: impl Fn(&str) -> bool) -> Option<String> {
        let groups = self.groups.borrow();
        let below = groups.iter().flat_map(|group| group.below());
        let mut found = below.filter(|path| is_meant(path));
        let first = found.next()?;
        let is_only = found.all(|other| other == first);
        (is_only && !self.deletes(&first)).then_some(first)
    }

    /// Whether a setting deletes files or state: by its name, unless its declaration knows better.
    fn deletes(&self, key: &str) -> bool {
        let groups = self.groups.borrow();
        let mut declared = groups.iter().flat_map(|group| group.declared()).map(|key| key.spec());
        suggest::deletes(&self.path_of(key))
            && !declared.any(|spec| spec.name == key && spec.deletes_nothing)
    }

    /// The setting that another program calls so, and a hint.
    fn called_elsewhere(&self, key: &str) -> Option<(&'static str, &'static str)> {
        let groups = self.groups.borrow();
        let mut names = groups.iter().flat_map(|group| group.elsewhere);
        names.find(|(name, ..)| *name == key).map(|(_, meant, hint)| (*meant, *hint))
    }

    pub(crate) fn report_rule(&self, rule: &Rule, key: &str, entry: &Entry) {
        self.problems.push(rule.problem(&self.path_of(key), entry, self.problems));
    }

    fn report_unknown(&self, prefix: &str, key: &str, entry: &Entry) {
        if let Some(idle) = self.problems.idle(&self.path_of(key)) {
            self.report_rule(&Rule::idle(key, idle), key, entry);
            return;
        }
        if let Some((meant, hint)) = self.called_elsewhere(key) {
            if !meant.is_empty() {
                self.forget_missing(meant);
            }
            let hint = if hint.is_empty() {
                self.proposal(meant, meant, &entry.value)
            } else {
                hint.to_owned()
            };
            self.push_unknown(key, entry, &hint);
            return;
        }
        let hint = self.nearest_name(prefix, key, entry).map(|(name, path)| {
            self.forget_missing(&path);
            self.proposal(&name, &path, &entry.value)
        });
        self.push_unknown(key, entry, &hint.unwrap_or_default());
    }

    /// What was probably meant by an unknown key, as it is proposed, and where in this section that is.
    fn nearest_name(&self, prefix: &str, key: &str, entry: &Entry) -> Option<(String, String)> {
        // `ssl_enabled` is `ssl.enabled`: `enabled`, which is near, would mean something else.
        let plain = key.replace('-', "_");
        if let Some(path) = self.only_below(|path| path.replace('.', "_") == plain) {
            return Some((path.clone(), path));
        }
        let siblings = self.siblings(prefix);
        if let Some(name) = suggest::nearest(&entry.key, siblings.iter().map(String::as_str)) {
            return Some((name.to_owned(), tree::join(prefix, name)));
        }
        let path = self.only_below(|path| path.rsplit('.').next() == Some(key))?;
        Some((path.clone(), path))
    }

    /// The names at `prefix` that can be proposed for an unknown one.
    fn siblings(&self, prefix: &str) -> Vec<String> {
        let keys_read = self.keys_read.borrow();
        let rules = self.rules.borrow();
        let rules = rules.iter().filter(|rule| !rule.is_idle());
        let groups = self.groups.borrow();
        // Those that were not read are no better names, unless nothing was.
        let declared = groups.iter().flat_map(|group| group.own()).map(|key| key.spec().name);
        let declared = declared.filter(|_| self.ends_early());
        let known = keys_read.iter().chain(rules.map(|rule| &rule.pattern)).map(String::as_str);
        let known = known.chain(declared);
        let start = if prefix.is_empty() { String::new() } else { format!("{prefix}.") };
        let siblings = known.filter_map(|known| known.strip_prefix(&*start)).filter_map(|rest| {
            let first = rest.split('.').next()?;
            if first.is_empty() || first == "*" { None } else { Some(first) }
        });
        // What deletes files or state is not proposed because it is spelt alike.
        let siblings = siblings.filter(|name| !self.deletes(&format!("{start}{name}")));
        siblings.map(str::to_owned).collect()
    }

    /// Whether `key`, which is a setting of another kind of this map, was meant for one of this kind. Names that are
    /// less alike than `stream` and `streams` are no sign of that: `exclude_files` is not `exclude_lines`.
    fn is_meant_here(&self, prefix: &str, key: &str, entry: &Entry) -> bool {
        let is_near = |name: &String| suggest::distance_between(&entry.key, name) <= 1;
        self.called_elsewhere(key).is_some() || self.siblings(prefix).iter().any(is_near)
    }

    /// The proposal to write `name`, which is at `path` in this section, in place of a key with `value`.
    fn proposal(&self, name: &str, path: &str, value: &Node) -> String {
        match self.turned(path, value) {
            Some(is_on) => format!("did you mean `{name}.enabled: {is_on}`?"),
            None => format!("did you mean `{name}`?"),
        }
    }

    /// Whether a boolean `value` turns the part at `path` on, if that part has a setting `enabled` for it.
    fn turned(&self, path: &str, value: &Node) -> Option<bool> {
        let Content::Bool(is_on) = value.content else { return None };
        let enabled = format!("{path}.enabled");
        let groups = self.groups.borrow();
        let mut below = groups.iter().flat_map(|group| group.below());
        below.any(|path| path == enabled).then_some(is_on)
    }

    /// The hint for a boolean `value` in place of the part at `path`; empty for none.
    pub(crate) fn hint_to_turn(&self, path: &str, value: &Node) -> String {
        match self.turned(path, value) {
            Some(is_on) => format!("write `{}.enabled: {is_on}`", self.path_of(path)),
            None => String::new(),
        }
    }
}

impl Drop for Section<'_> {
    fn drop(&mut self) {
        self.problems.add_paths_read(self.keys_read.borrow().iter().map(|key| self.path_of(key)));
        // The keys of a part that is off and not declared are not known.
        let is_known = !self.is_off.get() || !self.groups.borrow().is_empty();
        if !self.skipped.get()
            && is_known
            && !std::thread::panicking()
            && let Some(map) = self.map
        {
            self.check_keys(map, "");
        }
    }
}
