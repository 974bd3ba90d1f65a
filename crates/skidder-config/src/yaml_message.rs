//! What a YAML mistake means, in words that need no knowledge of the YAML grammar.

use saphyr_parser::{Marker, ScanError};

/// A part of the parser's message, our message, and a hint.
const WORDS: &[(&str, &str, &str)] = &[
    (
        "mapping values are not allowed",
        "a `:` followed by a space is not allowed here",
        "put the value in quotes if the colon belongs to it; otherwise check the indentation of this line and the one above",
    ),
    (
        "did not find expected key",
        "this line does not fit the indentation of the lines above",
        "keys of the same map begin in the same column",
    ),
    (
        "did not find expected '-' indicator",
        "expected another list item (`- `) in the same column as the ones above",
        "items of one list begin in the same column",
    ),
    (
        "simple key expect",
        "expected `key: value`, but there is no `:` with a space after it",
        "a text over several lines must be in quotes or begin with `|`",
    ),
    ("simple key expected", "expected `key: value`", "check the indentation of this line"),
    (
        "invalid indentation in quoted scalar",
        "a quote is opened here but not closed before the next key",
        "look for the `\"` or `'` that is missing at the end of the value",
    ),
    (
        "invalid indentation",
        "this line does not fit the indentation of the lines above",
        "keys of the same map begin in the same column",
    ),
    (
        "found unexpected end of stream",
        "a quote is opened but never closed",
        "look for the last `\"` or `'` that begins a value",
    ),
    ("unexpected document indicator", "a quote is opened but not closed before the next `---`", ""),
    (
        "unknown escape character",
        "unknown escape after `\\` in a text in double quotes",
        "use single quotes for Windows paths and regular expressions",
    ),
    (
        "trailing content after double-quoted",
        "there is text after the closing quote",
        "put the whole value into one pair of quotes",
    ),
    (
        "unknown anchor",
        "this alias names an anchor that is not defined above",
        "a text that begins with `*` must be in quotes",
    ),
    (
        "while parsing a flow mapping",
        "expected `,` or `}` in this `{...}`",
        "put values that contain `{`, `}` or `,` in quotes, `${...}` too",
    ),
    (
        "while parsing a flow sequence",
        "expected `,` or `]` in this `[...]`",
        "put values that contain `[`, `]`, `{` or `,` in quotes, `${...}` too",
    ),
    (
        "illegal placement of ':'",
        "a `:` is not allowed here; a `[` or `{` above may never be closed",
        "put values that begin with `[` or `{` in quotes if they are no lists or maps",
    ),
    (
        "while scanning a block scalar, did not find",
        "a text that begins with `|` or `>` must start on the next line",
        "put it in quotes if the sign belongs to the value",
    ),
    ("misplaced bracket", "a closing bracket without its opening one", ""),
    (
        "block sequence entries are not allowed",
        "a list item (`- `) is not allowed here",
        "begin the list on a line of its own below the key",
    ),
    (
        "did not find expected node content",
        "expected a value here",
        "put it in quotes if it begins with one of `,[]{}*&!|>%@`",
    ),
    ("the handle wasn't declared", "unknown tag", "a text that begins with `!` must be in quotes"),
    (
        "anchor or alias",
        "expected a name after `*` or `&`",
        "a text that begins with `*` or `&` must be in quotes",
    ),
    ("recursion limit", "brackets are nested too deep", ""),
    (
        "expected <document start>",
        "there is text after the end of the document",
        "check the indentation of this line",
    ),
    ("unprintable character", "a character that YAML does not allow (a control character)", ""),
];

/// Place, message and hint for a mistake the parser found in `text`.
pub(crate) fn explain(error: &ScanError, text: &str) -> (Marker, String, String) {
    let marker = *error.marker();
    if let Some(tab) = tab_in_indentation(text, marker.line(), error.info().contains("tab")) {
        let message = "a tab is used for indentation; YAML allows only spaces";
        return (tab, format!("invalid YAML: {message}"), "replace it by spaces".to_owned());
    }
    let info = error.info();
    if let Some(rest) = info.strip_prefix("unexpected character: `") {
        let character = rest.trim_end_matches('\'');
        let message = format!("invalid YAML: a value cannot begin with `{character}`");
        return (marker, message, "put it in quotes".to_owned());
    }
    let about_structure =
        info.contains("did not find expected key") || info == "invalid indentation";
    if about_structure && follows_text(text, marker) {
        let message = "invalid YAML: this text does not belong to the value before it";
        return (marker, message.to_owned(), "put the whole value in quotes".to_owned());
    }
    let about_key =
        info.contains("mapping values are not allowed") || info.contains("<document start>");
    if about_key && let Some(line) = line_without_colon(text, marker.line()) {
        let message = format!("invalid YAML: line {line} is not a `key: value`");
        let hint = "a key needs a `:` with a space or the end of the line after it";
        return (marker, message, hint.to_owned());
    }
    for (theirs, ours, hint) in WORDS {
        if info.contains(theirs) {
            return (marker, format!("invalid YAML: {ours}"), (*hint).to_owned());
        }
    }
    (marker, format!("invalid YAML: {info}"), String::new())
}

/// Whether there is something before `marker` on its line.
fn follows_text(text: &str, marker: Marker) -> bool {
    let line = text.lines().nth(marker.line().saturating_sub(1)).unwrap_or_default();
    line.chars().take(marker.col()).any(|before| before != ' ')
}

/// The last line with content before `line`, if it should have been a key but has no `: `.
fn line_without_colon(text: &str, line: usize) -> Option<usize> {
    let above = text.lines().take(line.saturating_sub(1)).map(str::trim).enumerate();
    let with_content = above.filter(|(_, it)| !it.is_empty() && !it.starts_with('#'));
    let (index, last) = with_content.last()?;
    let has_colon = last.ends_with(':') || last.contains(": ");
    let is_item = last.starts_with("- ");
    if has_colon || is_item { None } else { Some(index + 1) }
}

/// The place of a control character, which YAML does not allow. The parser would take some of them
/// for the end of the text and ignore the rest.
pub(crate) fn control_character(text: &str) -> Option<(usize, usize, char)> {
    let bad = |found: &char| found.is_control() && !matches!(found, '\t' | '\n' | '\r' | '\u{85}');
    let place = text.chars().position(|found| bad(&found))?;
    let (mut line, mut column) = (1, 1);
    for character in text.chars().take(place) {
        column += 1;
        if character == '\n' {
            (line, column) = (line + 1, 1);
        }
    }
    Some((line, column, text.chars().nth(place)?))
}

/// The place of a tab before the first word of the line of the mistake or the one before it (the
/// parser often notices one line late); with `about_tabs` also the one after it.
fn tab_in_indentation(text: &str, line: usize, about_tabs: bool) -> Option<Marker> {
    let last = if about_tabs { line + 1 } else { line };
    for number in line.saturating_sub(1)..=last {
        let Some(content) = number.checked_sub(1).and_then(|skip| text.lines().nth(skip)) else {
            continue;
        };
        let indentation = content.len() - content.trim_start_matches([' ', '\t']).len();
        if indentation == content.len() {
            continue;
        }
        if let Some(column) = content[..indentation].find('\t') {
            return Some(Marker::new(0, number, column));
        }
    }
    None
}
