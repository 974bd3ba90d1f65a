//! Changes of lines, each with a comment above it.

use super::keys::Key;
use std::collections::BTreeMap;

/// Changes to a file.
#[derive(Default)]
pub(super) struct Edits {
    /// New text of a key, by line: the old text, and the new one.
    renamed: BTreeMap<usize, (std::ops::Range<usize>, String)>,
    /// New text of a whole line.
    lines: BTreeMap<usize, String>,
    /// Lines that become comments.
    out: Vec<std::ops::Range<usize>>,
    /// Comments above a line, without `# `.
    notes: BTreeMap<usize, Vec<String>>,
    /// Lines behind a line.
    behind: BTreeMap<usize, Vec<String>>,
}

/// What each comment begins with.
const MARK: &str = "# skidder migrate:";

impl Edits {
    pub(super) fn is_empty(&self) -> bool {
        self.notes.is_empty() && self.behind.is_empty()
    }

    /// Renames a key.
    pub(super) fn rename(&mut self, key: &Key, to: &str, why: &str) {
        self.renamed.insert(key.line, (key.written.clone(), to.to_owned()));
        self.note(key, why);
    }

    /// Renames a key and changes its value.
    pub(super) fn replace(&mut self, key: &Key, to: &str, why: &str) {
        let dash = key.dash.map_or(String::new(), |dash| {
            format!("{}-{}", " ".repeat(dash), " ".repeat(key.column() - dash - 1))
        });
        let indent = if dash.is_empty() { " ".repeat(key.column()) } else { dash };
        let comment = key.value.find(" #").map_or("", |at| &key.value[at..]);
        self.lines.insert(key.line, format!("{indent}{to}{comment}"));
        self.note(key, why);
    }

    /// Makes a comment of a key and its value.
    pub(super) fn take_out(&mut self, key: &Key, why: &str) {
        self.out.push(key.line..key.end);
        self.note(key, why);
    }

    /// Whether a key is taken out with the section that it is in.
    pub(super) fn takes_out(&self, key: &Key) -> bool {
        self.out.iter().any(|out| out.contains(&key.line))
    }

    /// Adds lines behind a line.
    pub(super) fn add(&mut self, line: usize, text: impl IntoIterator<Item = String>) {
        self.behind.entry(line).or_default().extend(text);
    }

    pub(super) fn marked(indent: usize, why: &str) -> String {
        format!("{}{MARK} {why}", " ".repeat(indent))
    }

    fn note(&mut self, key: &Key, why: &str) {
        let indent = key.dash.unwrap_or(key.column());
        let note = Self::marked(indent, why);
        let notes = self.notes.entry(key.line).or_default();
        if !notes.contains(&note) {
            notes.push(note);
        }
    }

    /// The file with all changes.
    pub(super) fn apply(&self, text: &str) -> String {
        let mut new = Vec::new();
        for (at, line) in text.lines().enumerate() {
            new.extend(self.notes.get(&at).into_iter().flatten().cloned());
            new.push(self.line(at, line));
            new.extend(self.behind.get(&at).into_iter().flatten().cloned());
        }
        new.join("\n") + "\n"
    }

    fn line(&self, at: usize, line: &str) -> String {
        if let Some(new) = self.lines.get(&at) {
            return new.clone();
        }
        let indent = line.len() - line.trim_start().len();
        if self.out.iter().any(|out| out.contains(&at)) && !line.trim().is_empty() {
            let content = line.trim_start();
            // The first key of an item leaves its dash behind.
            return match content.strip_prefix("- ") {
                Some(rest) if self.notes.contains_key(&at) => {
                    format!("{}- # {rest}", &line[..indent])
                }
                _ => format!("{}# {content}", &line[..indent]),
            };
        }
        match self.renamed.get(&at) {
            Some((written, to)) => {
                format!("{}{to}{}", &line[..written.start], &line[written.end..])
            }
            None => line.to_owned(),
        }
    }
}
