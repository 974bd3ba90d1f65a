//! Values of `docs/bounds.md` are those of the constants that its rows name.
//!
//! A row with a constant has a cell `` [`NAME`](../crates/CRATE/src/FILE.rs) `` and its value in the cell before. Values
//! are computed from the source text: integers, `+ - * / <<`, brackets, `as`, other constants of the same
//! file, and `Duration::from_…`.

use crate::repository;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = "docs/bounds.md";
/// Before the path in a link: the page is in a folder.
const UP: &str = "../";
/// Constants inside of constants: beyond it something refers to itself.
const DEPTH_MAX: u32 = 8;
const BYTE_UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "KB", "MB", "GB"];

/// What a constant is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Number(u64),
    Micros(u64),
}

/// The parts of a row that name a constant.
#[derive(Debug, PartialEq, Eq)]
struct Row<'a> {
    value: &'a str,
    name: &'a str,
    path: &'a str,
}

/// Checks each row; with `update` writes values, and paths of constants that moved.
pub(super) fn check(update: bool, offences: &mut Vec<String>) -> Result<()> {
    let root = repository::root();
    let text =
        fs::read_to_string(root.join(PAGE)).with_context(|| format!("cannot read `{PAGE}`"))?;
    let mut page = String::with_capacity(text.len());
    for (index, line) in text.lines().enumerate() {
        let fresh = Row::of(line).map(|row| fresh(root, line, &row));
        match fresh.transpose() {
            Ok(Some(fresh)) if fresh != line && !update => {
                offences.push(format!(
                    "{PAGE}:{}: should be `{fresh}`; `--update` writes it",
                    index + 1
                ));
                page += line;
            }
            Ok(fresh) => page += fresh.as_deref().unwrap_or(line),
            Err(error) => {
                offences.push(format!("{PAGE}:{}: {error:#}", index + 1));
                page += line;
            }
        }
        page.push('\n');
    }
    if update && page != text {
        fs::write(root.join(PAGE), page).with_context(|| format!("cannot write `{PAGE}`"))?;
    }
    Ok(())
}

/// `line` with the path and the value that its constant has now.
fn fresh(root: &Path, line: &str, row: &Row) -> Result<String> {
    let source = fs::read_to_string(root.join(row.path)).unwrap_or_default();
    let (path, source) = if definition(&source, row.name).is_some() {
        (row.path.to_owned(), source)
    } else {
        moved(root, row)?
    };
    let value = evaluate(&source, row.name, 0)
        .with_context(|| format!("cannot compute `{}` of `{path}`", row.name))?;
    let line = line.replacen(
        &format!("| {} |", row.value),
        &format!("| {} |", shown(value, row.value)),
        1,
    );
    Ok(line.replacen(row.path, &path, 1))
}

/// The only other file in the crates that has the constant, and its text.
fn moved(root: &Path, row: &Row) -> Result<(String, String)> {
    let mut found = Vec::new();
    for path in repository::tracked(&[".rs"])? {
        if !path.starts_with("crates") || !is_source(&path) {
            continue;
        }
        let source = fs::read_to_string(root.join(&path)).unwrap_or_default();
        if definition(&source, row.name).is_some() {
            found.push((path.to_string_lossy().into_owned(), source));
        }
    }
    if found.len() > 1 {
        // A whole file moved more often than a constant alone.
        let name = Path::new(row.path).file_name();
        found.retain(|(path, _)| Path::new(path).file_name() == name);
    }
    match found.pop() {
        Some(one) if found.is_empty() => Ok(one),
        _ => anyhow::bail!(
            "`{}` has no constant `{}`, and no other file is the only one with it: correct the link",
            row.path,
            row.name
        ),
    }
}

fn is_source(path: &Path) -> bool {
    path.components().nth(2) == PathBuf::from("src").components().next()
}

impl<'a> Row<'a> {
    /// The parts of `line`, if it is a row with a constant.
    fn of(line: &'a str) -> Option<Self> {
        let cells: Vec<&str> = line.strip_prefix('|')?.split('|').map(str::trim).collect();
        let at = cells.iter().position(|cell| cell.starts_with("[`") && cell.contains(UP))?;
        let (name, link) = cells[at].strip_prefix("[`")?.split_once("`](")?;
        let path = link.strip_suffix(')')?.strip_prefix(UP)?;
        Some(Self { value: cells.get(at.checked_sub(1)?)?, name, path })
    }
}

/// The text after `=` where `source` defines the constant, with its type before.
fn definition<'a>(source: &'a str, name: &str) -> Option<&'a str> {
    let mut from = 0;
    while let Some(found) = source[from..].find("const ") {
        from += found + "const ".len();
        let rest = source[from..].strip_prefix(name).and_then(|rest| rest.strip_prefix(':'));
        if let Some((_, expression)) = rest.and_then(|rest| rest.split_once(" = ")) {
            return expression.split_once(';').map(|(expression, _)| expression);
        }
    }
    None
}

fn evaluate(source: &str, name: &str, depth: u32) -> Result<Value> {
    let text = definition(source, name).with_context(|| format!("no constant `{name}`"))?;
    anyhow::ensure!(depth < DEPTH_MAX, "`{name}` refers to too many others");
    let micros = [
        ("micros", 1),
        ("millis", 1_000),
        ("secs", 1_000_000),
        ("mins", 60_000_000),
        ("hours", 3_600_000_000),
    ];
    for (unit, micros) in micros {
        let inner = text.strip_prefix(&format!("Duration::from_{unit}("));
        if let Some(inner) = inner.and_then(|inner| inner.strip_suffix(')')) {
            return Ok(Value::Micros(Expression { source, rest: inner, depth }.all()? * micros));
        }
    }
    Ok(Value::Number(Expression { source, rest: text, depth }.all()?))
}

/// The rest of an expression.
struct Expression<'a> {
    source: &'a str,
    rest: &'a str,
    depth: u32,
}

impl<'a> Expression<'a> {
    fn all(mut self) -> Result<u64> {
        let value = self.shift()?;
        anyhow::ensure!(self.rest.trim().is_empty(), "`{}` is not understood", self.rest.trim());
        Ok(value)
    }

    fn shift(&mut self) -> Result<u64> {
        let mut value = self.sum()?;
        while self.eat("<<") {
            let by = u32::try_from(self.sum()?)?;
            value = value.checked_shl(by).context("too large")?;
        }
        Ok(value)
    }

    fn sum(&mut self) -> Result<u64> {
        let mut value = self.product()?;
        loop {
            value = if self.eat("+") {
                value.checked_add(self.product()?)
            } else if self.eat("-") {
                value.checked_sub(self.product()?)
            } else {
                return Ok(value);
            }
            .context("too large or below zero")?;
        }
    }

    fn product(&mut self) -> Result<u64> {
        let mut value = self.atom()?;
        loop {
            value = if self.eat("*") {
                value.checked_mul(self.atom()?)
            } else if self.eat("/") {
                value.checked_div(self.atom()?)
            } else {
                return Ok(value);
            }
            .context("too large, or divided by zero")?;
        }
    }

    fn atom(&mut self) -> Result<u64> {
        let value = if self.eat("(") {
            let value = self.shift()?;
            anyhow::ensure!(self.eat(")"), "a bracket is not closed");
            value
        } else {
            let word = self.word();
            let digits: String = word.chars().filter(|character| *character != '_').collect();
            match digits.parse() {
                Ok(number) => number,
                Err(_) => match evaluate(self.source, word, self.depth + 1)? {
                    Value::Number(number) => number,
                    Value::Micros(_) => anyhow::bail!("`{word}` is a duration"),
                },
            }
        };
        if self.eat("as ") {
            self.word();
        }
        Ok(value)
    }

    fn eat(&mut self, token: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// A number or a name; of `Self::NAME` the name.
    fn word(&mut self) -> &'a str {
        self.eat("Self::");
        let rest = self.rest.trim_start();
        let is_part = |character: char| character.is_alphanumeric() || character == '_';
        let (word, rest) =
            rest.split_at(rest.find(|character| !is_part(character)).unwrap_or(rest.len()));
        self.rest = rest;
        word
    }
}

/// `value` as a reader wants it. The unit of `documented` shows whether a number counts bytes.
fn shown(value: Value, documented: &str) -> String {
    let unit = documented.rsplit(' ').next().unwrap_or_default();
    match value {
        Value::Micros(micros) => {
            let units = [(60_000_000, "min"), (1_000_000, "s"), (1_000, "ms")];
            let unit = units.into_iter().find(|(size, _)| micros >= *size && micros % size == 0);
            let (size, unit) = unit.unwrap_or((1, "µs"));
            format!("{} {unit}", micros / size)
        }
        Value::Number(number) if BYTE_UNITS.contains(&unit) => {
            let units = [
                (1 << 30, "GiB"),
                (1 << 20, "MiB"),
                (1 << 10, "KiB"),
                (1_000_000_000, "GB"),
                (1_000_000, "MB"),
                (1_000, "KB"),
            ];
            // The largest that leaves no rest: 10,000,000,000 is 10 GB, and not 9,765,625 KiB.
            let whole = units.into_iter().filter(|(size, _)| number >= *size && number % size == 0);
            let (size, unit) = whole.max_by_key(|(size, _)| *size).unwrap_or((1, "B"));
            format!("{} {unit}", grouped(number / size))
        }
        Value::Number(number) => grouped(number),
    }
}

/// `number` with commas between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "
        const ROOM_BYTES: usize = 512 << 10;
        impl Limits {
            pub(crate) const BATCH_BYTES: usize = ROOM_BYTES - (8 << 10);
            pub const HALF: u64 = Self::BATCH_BYTES as u64 / 2;
        }
        const MAX_SIZE: u64 = 10_000_000_000;
        const PAUSE: Duration = Duration::from_millis(20);
        const LONG: Duration = Duration::from_mins(1);
        const LOOP: usize = LOOP + 1;
        const TEXT: &str = \"a\";
    ";

    #[test]
    fn values_of_constants_are_computed_and_written_for_people() {
        for (name, documented, expected) in [
            ("ROOM_BYTES", "1 KiB", "512 KiB"),
            ("BATCH_BYTES", "? B", "504 KiB"),
            ("HALF", "? B", "252 KiB"),
            ("ROOM_BYTES", "7", "524,288"),
            ("MAX_SIZE", "1 GB", "10 GB"),
            ("PAUSE", "", "20 ms"),
            ("LONG", "", "1 min"),
        ] {
            let value = evaluate(SOURCE, name, 0).unwrap();
            assert_eq!(shown(value, documented), expected, "{name}");
        }
    }

    #[test]
    fn what_is_no_number_is_an_error() {
        for name in ["LOOP", "TEXT", "NONE", "ROOM"] {
            assert!(evaluate(SOURCE, name, 0).is_err(), "{name}");
        }
    }

    #[test]
    fn a_row_names_its_constant_and_the_value_before_it() {
        let row =
            Row::of("| a turn | 256 KiB | [`CHUNK`](../crates/x/src/y.rs) | it ends |").unwrap();
        assert_eq!(row, Row { value: "256 KiB", name: "CHUNK", path: "crates/x/src/y.rs" });
        assert_eq!(Row::of("| a line | 4 × `message_max_bytes` | | skipped |"), None);
    }
}
