//! Secret values in messages: the one place that replaces them, whichever reader wrote the message.
//!
//! A reader may quote the value that it rejects, a part of it, or a text made of it. [`crate::Problems`] therefore
//! knows the secrets of the trees that are read, and replaces them in all that it gives out.

use crate::node::{Content, MASK, Node};
use crate::problem::{Position, Problem};
use crate::secret::Secret;
use crate::settings::Settings;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Shortest text that is replaced inside of others, in characters; shorter ones only if they are quoted.
const CHARS_MIN: usize = 4;

/// The same in messages about other settings, where a short secret (`elastic`) may be an ordinary word.
const CHARS_MIN_ELSEWHERE: usize = 8;

/// Texts that are replaced in messages.
#[derive(Default)]
pub(crate) struct Veil {
    /// Each with the places of the settings that hold it.
    texts: BTreeMap<String, Places>,
}

/// Where a text is looked for closely.
enum Places {
    Everywhere,
    At(BTreeSet<Position>),
}

impl fmt::Debug for Veil {
    /// Without the texts.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Veil over {}", self.texts.len())
    }
}

impl Veil {
    /// Adds the secrets of a tree, and those of the keystore that are parts of them.
    pub(crate) fn add_tree(&mut self, root: &Node, keystore: &BTreeMap<String, Secret>) {
        let parts: Vec<&str> = keystore.values().map(Secret::reveal).collect();
        self.add_node(root, &parts, &mut Vec::new());
    }

    /// `lists` are the places of the lists that hold the node: a list may be reported as a whole.
    fn add_node<'a>(&mut self, node: &'a Node, parts: &[&str], lists: &mut Vec<&'a Position>) {
        if let Some(text) = node.text.as_deref().filter(|_| node.secret) {
            let is_part = |part: &&&str| text.contains(**part);
            for text in parts.iter().filter(is_part).copied().chain([text]) {
                let places = lists.iter().copied().chain([&node.position]);
                self.add(text, places);
            }
        }
        match &node.content {
            Content::List(items) => {
                lists.push(&node.position);
                for item in items {
                    self.add_node(item, parts, lists);
                }
                lists.pop();
            }
            Content::Map(map) => {
                for entry in map.iter() {
                    self.add_node(&entry.value, parts, &mut Vec::new());
                }
            }
            _ => {}
        }
    }

    fn add<'a>(&mut self, text: &str, places: impl Iterator<Item = &'a Position>) {
        if text.is_empty() {
            return;
        }
        let known = self.texts.entry(text.to_owned());
        if let Places::At(known) = known.or_insert_with(|| Places::At(BTreeSet::new())) {
            known.extend(places.cloned());
        }
    }

    /// Adds texts that messages about any setting may hold.
    pub(crate) fn add_texts(&mut self, texts: &[String]) {
        let texts = texts.iter().filter(|text| !text.is_empty());
        self.texts.extend(texts.map(|text| (text.clone(), Places::Everywhere)));
    }

    /// Replaces the secrets in what a problem says.
    pub(crate) fn cover(&self, problem: &mut Problem) {
        if self.texts.is_empty() {
            return;
        }
        let position = problem.position.as_ref();
        let mut texts: Vec<(&str, bool)> = Vec::with_capacity(self.texts.len());
        for (text, places) in &self.texts {
            let is_here = match (places, position) {
                (Places::At(places), Some(position)) => places.contains(position),
                _ => true,
            };
            texts.push((text, is_here));
        }
        // One may be a part of another.
        texts.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        for message in std::iter::once(&mut problem.message).chain(&mut problem.hints) {
            *message = covered(message, &texts);
        }
    }
}

impl Node {
    /// A message about this tree, which may quote its values, without the secrets in it.
    pub fn cover_secrets(&self, message: &str) -> String {
        covered_everywhere(message, self.secret_texts())
    }
}

impl Settings {
    /// A text about these settings and their files, which may quote their values, without the secrets in it.
    pub fn cover_secrets(&self, text: &str) -> String {
        let files = self.inputs.iter().chain(&self.modules).map(|file| &file.root);
        let mut secrets: Vec<String> =
            std::iter::once(&self.root).chain(files).flat_map(Node::secret_texts).collect();
        let parts = self.secrets.values().map(Secret::reveal).filter(|part| !part.is_empty());
        let parts: Vec<String> = parts
            .filter(|part| secrets.iter().any(|secret| secret.contains(part)))
            .map(str::to_owned)
            .collect();
        secrets.extend(parts);
        covered_everywhere(text, secrets)
    }
}

fn covered_everywhere(message: &str, mut texts: Vec<String>) -> String {
    texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
    let texts: Vec<_> = texts.iter().map(|text| (text.as_str(), true)).collect();
    covered(message, &texts)
}

/// `message` without `texts`, the longest first; each is of the setting that the message is about, or not.
fn covered(message: &str, texts: &[(&str, bool)]) -> String {
    let mut covered = message.to_owned();
    for (text, is_here) in texts {
        for form in forms(text) {
            let chars = form.chars().count();
            for quote in ['"', '\''] {
                covered = covered
                    .replace(&format!("{quote}{form}{quote}"), &format!("{quote}{MASK}{quote}"));
            }
            if *is_here && chars >= CHARS_MIN {
                covered = covered.replace(&form, MASK);
            } else if chars >= CHARS_MIN_ELSEWHERE {
                covered = without_words(&covered, &form);
            }
        }
    }
    let quoted = covered.split('`').enumerate().map(|(index, quoted)| {
        let is_secret = index % 2 == 1
            && texts
                .iter()
                .any(|(text, is_here)| quoted == *text || *is_here && is_part(quoted, text));
        if is_secret { MASK } else { quoted }
    });
    quoted.collect::<Vec<_>>().join("`")
}

/// A text as messages may show it.
fn forms(text: &str) -> BTreeSet<String> {
    let escaped = format!("{text:?}");
    let escaped = escaped[1..escaped.len() - 1].to_owned();
    BTreeSet::from([text.to_owned(), text.replace('\n', "\\n"), escaped])
}

/// Whether a quoted text is a part of a secret, perhaps its shortened beginning.
fn is_part(quoted: &str, secret: &str) -> bool {
    let part = quoted.trim_end_matches('…');
    part.chars().count() >= CHARS_MIN && forms(secret).iter().any(|form| form.contains(part))
}

/// `message` without `text` where it is no part of a longer word or of the name of a setting.
fn without_words(message: &str, text: &str) -> String {
    let is_of_name = |it: char| it.is_alphanumeric() || matches!(it, '_' | '.');
    let (mut rest, mut covered) = (message, String::new());
    while let Some(at) = rest.find(text) {
        let (before, behind) = (&rest[..at], &rest[at + text.len()..]);
        covered.push_str(before);
        let is_word = !covered.ends_with(is_of_name) && !behind.starts_with(is_of_name);
        covered.push_str(if is_word { MASK } else { text });
        rest = behind;
    }
    covered + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Problems;

    /// What a reader of `setting` says, after all that can be shown.
    fn said(secret: &str, text: &str, setting: &str, message: &str) -> String {
        let mut settings = Settings::parse("a.yml", text).unwrap();
        let keystore = BTreeMap::from([("K".to_owned(), Secret::new(secret))]);
        settings.secrets = std::sync::Arc::new(keystore);
        settings.root = settings.expand(&settings.root, &|_| None, &|_| None);
        let problems = Problems::new();
        let root = settings.root(&problems);
        root.problem(setting, message, message);
        root.skip();
        let problem = problems.sorted().remove(0);
        assert_eq!(problem.hints, [problem.message.as_str()], "hints as messages");
        assert!(problems.to_string().ends_with(&problem.message));
        problem.message
    }

    #[test]
    fn secrets_are_replaced_in_messages_about_their_settings() {
        let both = "a: ${K}\nl: ['x', 'y${K}z']";
        let table = [
            ("[hush", "a", "`a`: `[hush` is wrong", "`a`: `xxxxx` is wrong"),
            ("[hush", "l", "`l`: `y[hushz` is wrong", "`l`: `xxxxx` is wrong"),
            ("[hush", "l", "cannot open /srv/[hush: no", "cannot open /srv/xxxxx: no"),
            (
                "/srv/[hush",
                "a",
                "the `[` in `[hush` is not closed",
                "the `[` in `xxxxx` is not closed",
            ),
            ("one\ntwo", "a", "at `one\\ntwo`", "at `xxxxx`"),
            ("one\\two", "a", "at \"one\\\\two\"", "at \"xxxxx\""),
            ("a long one", "a", "at `a lon…`", "at `xxxxx`"),
            ("back`tick", "a", "at `back`tick` of `a`", "at `xxxxx` of `a`"),
        ];
        for (secret, setting, message, expected) in table {
            assert_eq!(said(secret, both, setting, message), expected, "{secret}");
        }
    }

    #[test]
    fn a_short_secret_breaks_no_text() {
        let text = "encoding: ${K}";
        let message = "`encoding` is `a`, 'a' or \"a\": a name as `an` it";
        let expected = "`encoding` is `xxxxx`, 'xxxxx' or \"xxxxx\": a name as `an` it";
        assert_eq!(said("a", text, "encoding", message), expected);
        assert_eq!(said("", text, "encoding", "is ``"), "is ``");
    }

    #[test]
    fn in_messages_about_other_settings_words_and_quoted_texts_are_replaced() {
        let text = "a: ${K}\nother.elastic: 1";
        let message = "`other.elastic` is not `elastic`; elastics elastic";
        let expected = "`other.elastic` is not `xxxxx`; elastics elastic";
        assert_eq!(said("elastic", text, "other.elastic", message), expected);
        let message = "`other.elastically` and elastically, /elastically";
        let expected = "`other.elastically` and xxxxx, /xxxxx";
        assert_eq!(said("elastically", text, "other.elastic", message), expected);
    }

    #[test]
    fn texts_are_replaced_everywhere_and_are_in_no_debug_output() {
        let mut veil = Veil::default();
        veil.add_texts(&["hush".to_owned(), String::new()]);
        let mut problem = Problem::error(None, "a hushed one").hint("hush");
        veil.cover(&mut problem);
        assert_eq!(problem.to_string(), "error: a xxxxxed one\nhint: xxxxx");
        assert!(!format!("{veil:?}").contains("hush"));
    }
}
