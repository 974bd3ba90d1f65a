//! The keys of a YAML file with their lines, as far as it is written line by line: enough to rewrite a line and to keep
//! everything else, comments among it, as it is.

use std::ops::Range;

/// A key and its place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Key {
    /// All parts of its path; `[]` is an item of a list.
    pub(super) path: Vec<String>,
    /// Its line, from 0.
    pub(super) line: usize,
    /// The line behind its value.
    pub(super) end: usize,
    /// Where the key is written in its line; also its column.
    pub(super) written: Range<usize>,
    /// The text after the colon.
    pub(super) value: String,
    /// The list item that it is directly in, if any: the line where that begins.
    pub(super) item: Option<usize>,
    /// The column of the dash, if the key comes after one.
    pub(super) dash: Option<usize>,
}

impl Key {
    /// The path with dots, without the marks of lists.
    pub(super) fn name(&self) -> String {
        let parts: Vec<&str> =
            self.path.iter().map(String::as_str).filter(|part| *part != "[]").collect();
        parts.join(".")
    }

    /// The column of the key.
    pub(super) fn column(&self) -> usize {
        self.written.start
    }
}

/// The open levels at a line.
struct Level {
    column: usize,
    parts: Vec<String>,
    /// Of a list item: the line where it begins.
    item: Option<usize>,
}

/// All keys of a file.
pub(super) fn keys(text: &str) -> Vec<Key> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found: Vec<Key> = Vec::new();
    let mut levels: Vec<Level> = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        let content = line.trim_start();
        if content.is_empty() || content.starts_with('#') || content.starts_with("---") {
            at += 1;
            continue;
        }
        let mut column = line.len() - content.len();
        let mut rest = content;
        let mut dash = None;
        while let Some(behind) = dashed(rest) {
            levels.retain(|level| {
                level.column < column || (level.column == column && level.item.is_none())
            });
            levels.push(Level { column, parts: vec!["[]".to_owned()], item: Some(at) });
            dash = Some(column);
            column += rest.len() - behind.len();
            rest = behind;
        }
        // A dash alone: the item begins in the next line.
        if rest.is_empty() || dash.is_some() && rest.starts_with('#') {
            at += 1;
            continue;
        }
        let Some((key, value)) = split(rest) else {
            at = behind_value(&lines, at, column, rest);
            continue;
        };
        levels.retain(|level| level.column < column);
        let parts: Vec<String> = unquoted(key).split('.').map(str::to_owned).collect();
        let item = levels.last().and_then(|level| level.item);
        let mut path: Vec<String> =
            levels.iter().flat_map(|level| level.parts.iter().cloned()).collect();
        path.extend(parts.iter().cloned());
        levels.push(Level { column, parts, item: None });
        let written = column..column + key.len();
        let value = value.trim();
        found.push(Key {
            path,
            line: at,
            end: at + 1,
            written,
            value: value.to_owned(),
            item,
            dash,
        });
        at = behind_value(&lines, at, column, value);
    }
    close(&mut found, &lines);
    found
}

/// Says of each key where its value ends: before the next line that does not stand deeper.
fn close(found: &mut [Key], lines: &[&str]) {
    for key in found {
        let column = key.column();
        let mut last = key.line;
        for (at, line) in lines.iter().enumerate().skip(key.line + 1) {
            let content = line.trim_start();
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            let own = line.len() - content.len();
            // Items of a list may stand as far left as its key.
            let is_item = own == column && content.starts_with('-') && key.value.is_empty();
            if own <= column && !is_item {
                break;
            }
            last = at;
        }
        key.end = last + 1;
    }
}

/// The text after a dash.
fn dashed(text: &str) -> Option<&str> {
    let behind = text.strip_prefix('-')?;
    (behind.is_empty() || behind.starts_with(' ')).then(|| behind.trim_start())
}

/// A key and the text after its colon.
fn split(text: &str) -> Option<(&str, &str)> {
    let end = match text.as_bytes().first()? {
        quote @ (b'"' | b'\'') => 2 + text[1..].find(char::from(*quote))?,
        b'{' | b'[' | b'&' | b'*' | b'!' | b'|' | b'>' | b'%' => return None,
        _ => text.match_indices(':').find(|(at, _)| ends_key(&text[at + 1..])).map(|(at, _)| at)?,
    };
    let behind = text[end..].trim_start().strip_prefix(':')?;
    ends_key(behind).then(|| (&text[..end], behind))
}

fn ends_key(behind: &str) -> bool {
    behind.is_empty() || behind.starts_with([' ', '\t'])
}

fn unquoted(key: &str) -> &str {
    key.trim().trim_matches(['"', '\''])
}

/// The line behind a value that goes on over several lines, in which there are no keys: a block of text, braces or
/// quotes that are not closed.
fn behind_value(lines: &[&str], at: usize, column: usize, value: &str) -> usize {
    if value.starts_with(['|', '>']) {
        let deeper = |line: &&str| {
            let content = line.trim_start();
            content.is_empty() || line.len() - content.len() > column
        };
        return at + 1 + lines[at + 1..].iter().take_while(|line| deeper(line)).count();
    }
    let mut open = Open::default();
    open.take(value);
    let mut at = at + 1;
    while open.is_open() && at < lines.len() {
        open.take(lines[at]);
        at += 1;
    }
    at
}

/// Braces and quotes that are not closed.
#[derive(Default)]
struct Open {
    depth: usize,
    quote: Option<char>,
}

impl Open {
    fn is_open(&self) -> bool {
        self.depth > 0 || self.quote.is_some()
    }

    fn take(&mut self, text: &str) {
        let mut begins = self.depth == 0;
        let mut before = ' ';
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            match self.quote {
                Some('"') if letter == '\\' => {
                    letters.next();
                }
                Some(quote) if letter == quote => self.quote = None,
                Some(_) => {}
                None => match letter {
                    '#' if before.is_whitespace() => break,
                    // A quote inside of a plain word is a letter.
                    '"' | '\'' if begins || (self.depth > 0 && !before.is_alphanumeric()) => {
                        self.quote = Some(letter);
                    }
                    '{' | '[' if begins || self.depth > 0 => self.depth += 1,
                    '}' | ']' => self.depth = self.depth.saturating_sub(1),
                    _ => {}
                },
            }
            begins &= letter.is_whitespace();
            before = letter;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_their_paths_lines_and_ends() {
        let text = "# top\nfilebeat.inputs:\n- type: log\n  paths:\n  - /a\n  # of b\n  json:\n    x: |\n      y: z\n\
                    \n- type: 'b' # c\n  \"list\": [a,\n    b: c]\n  s: it's\noutput:\n  file: {path: x}\n";
        let found: Vec<String> = keys(text)
            .iter()
            .map(|key| format!("{}-{} {} {:?}", key.line, key.end, key.path.join("/"), key.item))
            .collect();
        assert_eq!(
            found,
            [
                "1-14 filebeat/inputs None",
                "2-3 filebeat/inputs/[]/type Some(2)",
                "3-5 filebeat/inputs/[]/paths Some(2)",
                "6-9 filebeat/inputs/[]/json Some(2)",
                "7-9 filebeat/inputs/[]/json/x None",
                "10-11 filebeat/inputs/[]/type Some(10)",
                "11-13 filebeat/inputs/[]/list Some(10)",
                "13-14 filebeat/inputs/[]/s Some(10)",
                "14-16 output None",
                "15-16 output/file None",
            ]
        );
    }
}
