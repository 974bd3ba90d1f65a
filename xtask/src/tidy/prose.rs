//! Lines of documents have at most 110 characters, and ARCHITECTURE.md is read in five minutes.
//!
//! Tables, code and headings may be wider. `--update` wraps the paragraphs and list items that are too wide.

use crate::repository;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// Characters of a line.
const WIDTH_MAX: usize = 110;
/// A page that is read in five minutes.
const SHORT: &str = "ARCHITECTURE.md";
const SHORT_WORDS_MAX: usize = 1500;

/// Checks all documents for readers; with `update` wraps them.
pub(super) fn check(update: bool, offences: &mut Vec<String>) -> Result<()> {
    for path in repository::tracked(&[".md"])? {
        if !is_for_readers(&path) {
            continue;
        }
        let place = repository::root().join(&path);
        let shown = path.display();
        let text = fs::read_to_string(&place).with_context(|| format!("cannot read `{shown}`"))?;
        if path == Path::new(SHORT) && text.split_whitespace().count() > SHORT_WORDS_MAX {
            offences.push(format!("{shown}: has more than {SHORT_WORDS_MAX} words"));
        }
        let wrapped = wrapped(&text);
        if wrapped == text {
            continue;
        }
        if update {
            fs::write(&place, wrapped).with_context(|| format!("cannot write `{shown}`"))?;
        } else {
            let same = text.lines().zip(wrapped.lines()).take_while(|(old, new)| old == new);
            let line = same.count() + 1;
            offences.push(format!("{shown}:{line}: wider than {WIDTH_MAX}; `--update` wraps it"));
        }
    }
    Ok(())
}

/// Pages at the root and of the folders of documents; not the notes beside test data, nor formats.
fn is_for_readers(path: &Path) -> bool {
    let folders = ["docs", "benches", "changelog.d"];
    path.components().count() == 1
        || path == Path::new("crates/README.md")
        || folders.iter().any(|folder| path.starts_with(folder))
}

/// A paragraph or an item of a list: its lines, and the indentation of all but the first.
#[derive(Default)]
struct Paragraph<'a> {
    lines: Vec<&'a str>,
    indentation: usize,
}

impl Paragraph<'_> {
    /// Appends it as it is if it is narrow enough, else wrapped.
    fn write(&mut self, out: &mut String) {
        if self.lines.iter().all(|line| line.chars().count() <= WIDTH_MAX) {
            for line in &self.lines {
                out.push_str(line);
                out.push('\n');
            }
        } else {
            wrap(&self.lines.join(" "), self.indentation, out);
        }
        self.lines.clear();
    }
}

/// `text` with paragraphs that are too wide wrapped.
fn wrapped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut paragraph = Paragraph::default();
    let mut is_code = false;
    for line in text.lines() {
        let start = line.trim_start();
        let is_fence = start.starts_with("```");
        let is_other =
            is_code || is_fence || start.is_empty() || start.starts_with(['|', '#', '<', '!']);
        if is_other {
            paragraph.write(&mut out);
            out.push_str(line);
            out.push('\n');
            is_code ^= is_fence;
            continue;
        }
        let indentation = line.len() - start.len();
        let marker = marker(start);
        if marker > 0 || paragraph.lines.is_empty() {
            paragraph.write(&mut out);
            paragraph.indentation = indentation + marker;
        }
        paragraph.lines.push(line);
    }
    paragraph.write(&mut out);
    out
}

/// Bytes of what begins an item of a list, the space behind it included.
fn marker(line: &str) -> usize {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &line[digits..];
    let length = if digits > 0 { digits + 1 } else { 1 };
    let is_marker = if digits > 0 {
        rest.starts_with(". ")
    } else {
        rest.starts_with("- ") || rest.starts_with("* ")
    };
    if is_marker { length + 1 } else { 0 }
}

/// Appends `paragraph` in lines; code spans are not broken.
fn wrap(paragraph: &str, indentation: usize, out: &mut String) {
    let start = paragraph.trim_start();
    let mut line = paragraph[..paragraph.len() - start.len()].to_owned();
    let mut is_empty = true;
    for word in words(start) {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > WIDTH_MAX {
            out.push_str(&line);
            out.push('\n');
            line = " ".repeat(indentation);
        } else if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    out.push_str(&line);
    out.push('\n');
}

/// The words between spaces that are not in code spans.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    let words = text.split(move |character| {
        is_code ^= character == '`';
        character == ' ' && !is_code
    });
    words.filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_wide_paragraphs_are_wrapped() {
        let narrow = "# Title\n\nOne line,\nand another.\n\n- an item\n  of two lines\n";
        assert_eq!(wrapped(narrow), narrow);

        let wide = format!("- {}`a code span` {}end\n", "word ".repeat(20), "word ".repeat(20));
        let out = wrapped(&wide);
        assert!(out.lines().all(|line| line.len() <= WIDTH_MAX), "{out}");
        assert!(
            out.lines().skip(1).all(|line| line.starts_with("  ") && !line.starts_with("   ")),
            "{out}"
        );
        assert!(out.contains("`a code span`"), "{out}");
        assert_eq!(wrapped(&out), out);
    }

    #[test]
    fn tables_code_and_headings_may_be_wide() {
        let word = "wide ".repeat(30);
        let text = format!("# {word}\n| {word} |\n```\n{word}\n```\n");
        assert_eq!(wrapped(&text), text);
        let span = format!("`{word}`,\nand more\n");
        assert!(wrapped(&span).lines().count() == 2);
    }

    #[test]
    fn numbered_items_keep_their_indentation() {
        let out = wrapped(&format!("12. {}\n", "word ".repeat(40)));
        assert!(out.lines().nth(1).is_some_and(|line| line.starts_with("    word")), "{out}");
    }
}
