//! One input: a `log`, `container` or `docker` input becomes a `filestream` input with parsers.

use super::bare;
use super::edits::Edits;
use super::keys::Key;
use std::collections::BTreeSet;
use std::iter::StepBy;
use std::ops::RangeFrom;

/// Options of `log` inputs that have another name in `filestream` inputs.
const OPTIONS: &[(&str, &str)] = &[
    ("scan_frequency", "prospector.scanner.check_interval"),
    ("exclude_files", "prospector.scanner.exclude_files"),
    ("symlinks", "prospector.scanner.symlinks"),
    ("recursive_glob.enabled", "prospector.scanner.recursive_glob"),
    ("harvester_buffer_size", "buffer_size"),
    ("max_bytes", "message_max_bytes"),
    ("backoff", "backoff.init"),
    ("max_backoff", "backoff.max"),
    ("close_inactive", "close.on_state_change.inactive"),
    ("close_older", "close.on_state_change.inactive"),
    ("close_renamed", "close.on_state_change.renamed"),
    ("force_close_files", "close.on_state_change.removed"),
    ("close_removed", "close.on_state_change.removed"),
    ("close_eof", "close.reader.on_eof"),
    ("close_timeout", "close.reader.after_interval"),
];

/// Options of `log` inputs that have no place in `filestream` inputs.
const OPTIONS_GONE: &[(&str, &str)] = &[
    ("backoff_factor", "`filestream` doubles the pause"),
    ("document_type", "it went with Filebeat 6; a field of your own says it: `fields`"),
    ("partial_line_waiting", "it went with Filebeat 5"),
    ("spool_size", "it went with Filebeat 5"),
    ("combine_partial", "records that were cut are joined, always"),
    ("cri", "both kinds of records are known, always"),
    ("allow_deprecated_use", "it is for inputs that are deprecated"),
    ("containers", "`paths` and the parser `container` say it"),
    ("scan", "all files get their turns at the same time"),
];

/// An input that is written line by line.
pub(super) struct Input<'a> {
    /// Numbers for its `id`: its place among the inputs, from 1, and others that no input has.
    pub(super) numbers: StepBy<RangeFrom<usize>>,
    /// What is an `id` already.
    pub(super) ids: &'a BTreeSet<&'a str>,
    /// Its options.
    pub(super) keys: &'a [&'a Key],
    /// All keys of the file.
    pub(super) all: &'a [Key],
    /// The file.
    pub(super) text: &'a str,
    /// How many parts of the paths of its options lead to it.
    pub(super) base: usize,
    /// In a template, the variable with the id of the container, which is in its `id`, too; otherwise empty.
    pub(super) container: &'a str,
}

/// An option of a parser: its name, and its value with the colon before it.
type Moved<'a> = (String, Vec<&'a str>);

impl Input<'_> {
    /// Writes it as a `filestream` input.
    pub(super) fn rewrite(&self, edits: &mut Edits) {
        let kind_key = self.find("type").or_else(|| self.find("input_type"));
        // As in Filebeat.
        let kind = kind_key.map_or("log", |key| bare(&key.value));
        if !["log", "container", "docker"].contains(&kind) {
            if let Some(key) = self.find("input_type") {
                edits.rename(key, "type", "`input_type` is `type` since Filebeat 6");
            }
            return;
        }
        let last = self.keys.iter().map(|key| key.end).max();
        let (Some(first), Some(last)) = (self.keys.first(), last) else { return };
        let column = first.column();
        let pad = " ".repeat(column);
        let mut added = Vec::new();
        let why = format!(
            "`{kind}` inputs are `filestream` inputs since Filebeat 7.14; it takes their files over"
        );
        match kind_key {
            Some(key) => edits.replace(key, "type: filestream", &why),
            None => {
                added.push(Edits::marked(column, &why));
                added.push(format!("{pad}type: filestream"));
            }
        }
        self.options(edits);
        if self.find("id").is_none() {
            let why = "each `filestream` input has an `id` of its own; never change it";
            added.push(Edits::marked(column, why));
            let container = match self.container {
                "" => String::new(),
                container => format!("-{container}"),
            };
            let mut ids = self.numbers.clone().map(|number| format!("{kind}-{number}{container}"));
            let id = ids.find(|id| !self.ids.contains(id.as_str())).unwrap_or_default();
            added.push(format!("{pad}id: {id}"));
        }
        added.push(format!("{pad}take_over.enabled: true"));
        if kind == "container" && self.find("symlinks").is_none() {
            // As for the type `container`: the kubelet names logs with links.
            added.push(format!("{pad}prospector.scanner.symlinks: true"));
        }
        if kind == "docker" && self.find("paths").is_none() {
            added.extend(self.paths(&pad));
        }
        let mut parsers = Vec::new();
        if kind != "log" {
            parsers.extend(self.container(&pad, edits));
        }
        for (name, parser) in [("json", "ndjson"), ("multiline", "multiline")] {
            parsers.extend(self.parser(name, parser, &pad, edits));
        }
        if !parsers.is_empty() {
            let why = "what was said of lines and records is done by parsers";
            added.extend([Edits::marked(column, why), format!("{pad}parsers:")]);
            added.extend(parsers);
        }
        edits.add(last - 1, added);
    }

    /// Options with another name, or without a place.
    fn options(&self, edits: &mut Edits) {
        for key in self.keys {
            let name = self.option(key);
            if let Some((_, to)) = OPTIONS.iter().find(|(from, _)| *from == name) {
                edits.rename(key, to, &format!("`{name}` of `log` inputs"));
            } else if let Some((_, why)) =
                OPTIONS_GONE.iter().find(|(from, _)| self.is_of(key, from))
            {
                edits.take_out(key, why);
            } else if name == "tail_files" && bare(&key.value) == "true" {
                let to = "ignore_inactive: since_first_start";
                edits.replace(key, to, "`tail_files` of `log` inputs");
            } else if name == "tail_files" {
                edits.take_out(key, "it is the default");
            }
        }
    }

    /// The name of an option.
    fn option(&self, key: &Key) -> String {
        key.path[self.base..].join(".")
    }

    fn is_of(&self, key: &Key, name: &str) -> bool {
        let own = self.option(key);
        own == name || own.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))
    }

    fn find(&self, name: &str) -> Option<&Key> {
        self.keys.iter().find(|key| self.option(key) == name).copied()
    }

    /// A key at any depth of the input, by the end of its path.
    fn find_below(&self, name: &str) -> Option<&Key> {
        let first = self.keys.iter().map(|key| key.line).min()?;
        let last = self.keys.iter().map(|key| key.end).max()?;
        self.all.iter().find(|key| (first..last).contains(&key.line) && key.name().ends_with(name))
    }

    /// The files of a `docker` input.
    fn paths(&self, pad: &str) -> Vec<String> {
        let folder = self.find_below("containers.path");
        let folder = folder.map_or("/var/lib/docker/containers", |key| bare(&key.value));
        let folder = folder.trim_end_matches('/');
        let ids = self.find_below("containers.ids").map(|key| items(key, self.text));
        let path = |id| format!("{pad}  - '{folder}/{id}/*.log'");
        let mut lines = vec![format!("{pad}paths:")];
        lines.extend(ids.unwrap_or_default().into_iter().map(path));
        lines
    }

    /// The parser of the records of a container.
    fn container(&self, pad: &str, edits: &mut Edits) -> Vec<String> {
        let mut lines = Vec::new();
        for name in ["stream", "format"] {
            if let Some(key) = self.find(name) {
                lines.push(format!("{pad}      {name}: {}", key.value));
                edits.take_out(key, "it is an option of the parser `container`");
            } else if let Some(key) = self.find_below(&format!("containers.{name}")) {
                lines.push(format!("{pad}      {name}: {}", key.value));
            }
        }
        let nothing = if lines.is_empty() { " ~" } else { "" };
        lines.insert(0, format!("{pad}  - container:{nothing}"));
        lines
    }

    /// A parser that is made of the options of `name`, which are taken out.
    fn parser(&self, name: &str, parser: &str, pad: &str, edits: &mut Edits) -> Vec<String> {
        let mut options: Vec<Moved<'_>> = Vec::new();
        let own: Vec<&Key> =
            self.keys.iter().copied().filter(|key| self.is_of(key, name)).collect();
        if own.is_empty() {
            return Vec::new();
        }
        for key in own {
            options.extend(self.moved(key, name));
            edits.take_out(key, &format!("`{name}` is the parser `{parser}`"));
        }
        let mut lines = vec![format!("{pad}  - {parser}:")];
        if name == "json" {
            let is_true = |(last, own): &Moved<'_>| {
                last == "keys_under_root" && bare(own[0].trim_start_matches([':', ' '])) == "true"
            };
            let target = if options.iter().any(is_true) { "''" } else { "json" };
            lines.push(format!("{pad}      target: {target}"));
            options.retain(|(last, ..)| last != "keys_under_root");
        }
        for (last, own) in options {
            lines.push(format!("{pad}      {last}{}", own[0]));
            lines.extend(own[1..].iter().map(|line| format!("{pad}    {line}")));
        }
        lines
    }

    /// The options of a parser in a key: that of one of them, or of all together.
    fn moved(&self, key: &Key, name: &str) -> Vec<Moved<'_>> {
        let lines: Vec<&str> = self.text.lines().collect();
        let one = |option: &Key| {
            let mut own = lines[option.line..option.end].to_vec();
            own[0] = &own[0][option.written.end..];
            (option.path.last().cloned().unwrap_or_default(), own)
        };
        if key.path.last().is_none_or(|last| last != name) {
            return vec![one(key)];
        }
        let size = |from: usize, to: usize| -> usize {
            self.text.split_inclusive('\n').skip(from).take(to - from).map(str::len).sum()
        };
        let start = size(0, key.line);
        let whole = &self.text[start + key.written.end..start + size(key.line, key.end)];
        if key.value.starts_with('{') {
            let value = &whole[whole.find('{').map_or(0, |at| at + 1)..];
            let value = value.rfind('}').map_or(value, |end| &value[..end]);
            return split_flow(value)
                .into_iter()
                .filter_map(|part| part.split_once(':').map(|(name, _)| (name, part)))
                .map(|(name, part)| {
                    let end = part[name.len()..].trim_end();
                    (name.trim().trim_matches(['"', '\'']).to_owned(), vec![end])
                })
                .collect();
        }
        let inner = self.all.iter().filter(|other| {
            other.line > key.line && other.line < key.end && other.path.len() == key.path.len() + 1
        });
        inner.map(one).collect()
    }
}

/// The parts of a text in braces: commas inside of quotes and of further brackets do not count.
fn split_flow(text: &str) -> Vec<&str> {
    let (mut parts, mut from, mut depth, mut quote) = (Vec::new(), 0, 0, None);
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth -= 1,
            (None, ',') if depth == 0 => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            (None, _) => {}
        }
    }
    parts.push(&text[from..]);
    parts
}

/// The items of a list, written in brackets or one a line.
fn items(key: &Key, text: &str) -> Vec<String> {
    let bracketed = key.value.trim_start_matches('[').trim_end_matches(']');
    if !bracketed.is_empty() {
        return bracketed.split(',').map(|item| bare(item).to_owned()).collect();
    }
    let lines = text.lines().skip(key.line + 1).take(key.end - key.line - 1);
    let items = lines.filter_map(|line| line.trim_start().strip_prefix('-'));
    items.map(|item| bare(item).to_owned()).collect()
}
